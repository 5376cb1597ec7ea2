"""Real gases: properties of mixtures, and flows of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _pyabide, words
from .arguments import backend_named, dtype_name, flag, number_of, path_of, text_of, whole
from .errors import Invalid
from .models import loads
from .programs import Program, _with
from .simulation import Simulation

__all__ = ["Flow", "Gas"]

_PAIRS = {"Tp": ("T", "p"), "Trho": ("T", "rho"), "hp": ("h", "p"), "rhoe": ("rho", "e")}
_VELOCITIES = ("u", "v", "w")


class Gas:
    """A mixture of real gases: Peng-Robinson's equation of state, NASA's polynomials of seven coefficients, Chung's viscosity and
    conductivity, and the diffusivities of dilute gas by Chapman and Enskog.

    ``names`` are species of GRI-Mech 3.0, or of ``species``: a table (``.csv``) or a file of Cantera's (``.yaml``). ``kij`` has
    the interactions of pairs, 0 unless given. ``chung`` is the set of coefficients: ``"poling"``, ``"cantera32"`` or ``"1988"``.
    ``kappa`` counts association factors; ``closure`` gives species without critical data those of their potentials.

    >>> import pyabide as ab
    >>> gas = ab.Gas(["CH4", "O2"], kij={("CH4", "O2"): 0.01})
    >>> found = gas.properties("rho", "c", "D", T=[300.0, 400.0], p=5e6, x=[0.3, 0.7], backend="cpu")
    >>> found["rho"].shape, found["D"].shape
    ((2,), (2, 2))
    """

    def __init__(
        self,
        names: Iterable[str] | str,
        *,
        species: str | PathLike[str] | None = None,
        kij: Mapping[tuple[str, str], float] | None = None,
        chung: str = "poling",
        kappa: bool = False,
        closure: bool = False,
    ) -> None:
        own = names.split(",") if isinstance(names, str) else list(_listed("names", names))
        self._names = [text_of("a species", name, '"CH4"').strip() for name in own]
        pairs = [] if kij is None else [_pair(pair, value) for pair, value in _items(kij)]
        self._options: dict[str, Any] = {
            "gas": self._names,
            "kij": [list(pair) for pair in pairs],
            "chung": text_of("chung", chung, '"poling"'),
            "kappa": flag("kappa", kappa),
            "closure": flag("closure", closure),
        }
        self._file = None if species is None else path_of(species)
        self._core = _pyabide.Gas(
            self._names, self._file, pairs, self._options["chung"], self._options["kappa"], self._options["closure"]
        )

    def __repr__(self) -> str:
        return f"Gas({', '.join(self._names)})"

    @property
    def species(self) -> list[str]:
        """The names of the species."""
        return self._core.species

    @property
    def molar_masses(self) -> NDArray[np.float64]:
        """The molar masses in kg/mol."""
        return np.array(self._core.molar_masses)

    def properties(
        self,
        *names: str,
        T: Any = None,
        p: Any = None,
        rho: Any = None,
        h: Any = None,
        e: Any = None,
        x: Any = None,
        Y: Any = None,
        backend: str = "auto",
    ) -> dict[str, NDArray[np.float64]]:
        """Computes properties at states, in float64, SI units and per kilogram.

        A state is given by ``T`` and ``p``, ``T`` and ``rho``, ``h`` and ``p``, or ``rho`` and ``e``: arrays or numbers, which are
        broadcast. ``x`` are mole fractions, ``Y`` mass fractions: one array for each species, in the order of ``names`` or by
        their names; a gas of one species needs none.

        Names are ``rho``, ``h``, ``s``, ``cp``, ``cv``, ``c``, ``mu``, ``lambda``, ``e``, ``T``, ``p``, ``M``, ``Z``, ``roots``,
        the derivatives ``p_T``, ``p_rho``, ``e_rho``, ``rho_T``, ``rho_p``, ``h_p``, ``beta`` and ``kappa``, and with a first axis
        for species ``D`` (diffusivities), ``rho_Y``, ``h_Y``, ``v_Y``, for pairs ``Dij``.
        """
        given = {"T": T, "p": p, "rho": rho, "h": h, "e": e}
        there = {name: value for name, value in given.items() if value is not None}
        pair = [key for key, quantities in _PAIRS.items() if set(quantities) == set(there)]
        if not pair:
            ways = ", ".join(" and ".join(quantities) for quantities in _PAIRS.values())
            raise Invalid(f"a state is given by two of these: {ways}; not by {', '.join(there) or 'nothing'}")
        if not names:
            raise Invalid('no property is asked for; name one, as in gas.properties("rho", ...)')
        wanted = [text_of("a property", name, '"rho"') for name in names]
        quantities = [_numbers(name, there[name]) for name in _PAIRS[pair[0]]]
        fractions = self._fractions(x, Y)
        try:
            shape = np.broadcast_shapes(*(values.shape for values in (*quantities, *fractions)))
        except ValueError as error:
            raise Invalid(f"the quantities of the states do not fit to each other: {error}") from None
        flat = [_flat(values, shape) for values in (*quantities, *fractions)]
        found = self._core.properties(
            wanted, pair[0], Y is not None, flat, list(shape) or [1], backend_named(backend)
        )
        result: dict[str, NDArray[np.float64]] = {}
        for name in wanted:
            own = [values for known, values in found if known == name]
            several = [values for known, values in found if known.startswith(f"{name}_")]
            values = own[0].reshape(shape) if own else np.stack([part.reshape(shape) for part in several])
            result[name] = values
        return result

    def _fractions(self, x: Any, Y: Any) -> list[NDArray[np.float64]]:
        if x is not None and Y is not None:
            raise Invalid("both x and Y are given; give mole fractions or mass fractions")
        given = x if Y is None else Y
        if given is None:
            if len(self._names) > 1:
                raise Invalid(f"the fractions of {', '.join(self._names)} are missing; give x or Y")
            return [np.ones(())]
        if isinstance(given, Mapping):
            for name in given:
                if name not in self._names:
                    raise words.unknown("the gas has no species", name, self._names)
            values = [given.get(name, 0.0) for name in self._names]
        else:
            values = list(_listed("fractions", given))
        if len(values) != len(self._names):
            raise Invalid(f"there are {len(values)} fractions of {len(self._names)} species; give one for each")
        return [_numbers("a fraction", value) for value in values]


class Flow:
    """A flow of gas on one to three axes: the Euler equations, or with ``viscous`` those of Navier and Stokes with diffusion of
    species, by the Runge-Kutta method of third order.

    ``gas`` is an ``ab.Gas``, or ``ideal`` the ratio of specific heats and the gas constant of an ideal gas. ``scheme`` is
    ``"keep"``, central fluxes of ``order`` 2, 4 or 6 that preserve kinetic energy, for smooth flows, or ``"hllc"``, limited slopes
    and Riemann problems, for shocks. ``courant`` computes the time step; else ``dt`` is a parameter. ``newton`` steps find the
    temperature from the one before. ``sides`` has what is beyond them: ``"slip"``, ``"no-slip"``, ``"outflow"``,
    ``{"pressure": p}`` or an inflow ``{"T": …, "p": …, "velocity": […], "fractions": […]}``, by names such as ``"x-"``; sides
    that are not named are periodic.

    >>> import numpy as np, pyabide as ab
    >>> flow = ab.Flow(ab.Gas("N2"), axes=1, order=4)
    >>> x = np.arange(32) / 32
    >>> sim = flow.start(T=200 - 60 * np.sin(2 * np.pi * x), p=1e7, u=100.0, dx=1 / 32, dt=1e-5, backend="cpu")
    >>> report = sim.run(10, progress=False)
    >>> sim["rho"].shape
    (32,)
    """

    def __init__(
        self,
        gas: Gas | None = None,
        *,
        ideal: tuple[float, float] | None = None,
        axes: int = 2,
        scheme: str = "keep",
        order: int = 2,
        viscous: bool = False,
        courant: float | None = None,
        newton: int = 4,
        sides: Mapping[str, Any] | None = None,
    ) -> None:
        if (gas is None) == (ideal is None):
            raise Invalid("a flow is of one gas; give gas=ab.Gas(...) or ideal=(1.4, 287.0)")
        own: dict[str, Any] = {}
        if gas is not None:
            if not isinstance(gas, Gas):
                raise Invalid(f"gas is {type(gas).__name__}; give an ab.Gas")
            if gas._file is not None:
                raise Invalid("the flow of a gas whose species are of a file cannot be written as a model; use the built-in ones")
            own |= gas._options
        if ideal is not None:
            gamma, constant = _two("ideal", ideal)
            own["ideal"] = {"gamma": gamma, "R": constant}
        own["scheme"] = text_of("scheme", scheme, '"keep"')
        own["order"] = whole("order", order, least=0)
        own["viscous"] = flag("viscous", viscous)
        own["newton"] = whole("newton", newton, least=0)
        if courant is not None:
            own["courant"] = number_of("courant", courant)
        if sides is not None:
            own["sides"] = {text_of("a side", name, '"x-"'): _side(what) for name, what in _items(sides)}
        self.axes = whole("axes", axes, least=0)
        """The number of axes."""
        self._species = 0 if gas is None or len(gas._names) == 1 else len(gas._names)
        self._gas = gas
        self._text = f"axes = {self.axes}\nflow = {_toml(own)}\n"
        self.program: Program = loads(self._text, "flow")
        """The program of a step."""

    def __repr__(self) -> str:
        return f"Flow({self.program.name}, {self.axes} axes)"

    def start(
        self,
        *,
        T: Any,
        p: Any,
        u: Any = 0.0,
        v: Any = 0.0,
        w: Any = 0.0,
        Y: Any = None,
        shape: Iterable[int] | None = None,
        dtype: Any = np.float64,
        by_name: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Simulation:
        """Starts a simulation from temperature (K), pressure (Pa), velocities along x, y and z (m/s) and mass fractions: arrays,
        slowest axis first, or numbers, which are broadcast to ``shape``.

        ``options`` are those of ``Program.start``, and parameters such as ``dx``, ``dy`` and ``dt``.
        """
        velocities = [_numbers(name, value) for name, value in zip(_VELOCITIES[: self.axes], (u, v, w))]
        if Y is not None and self._species == 0:
            raise Invalid("a gas of one species has no mass fractions; leave Y out")
        fractions = [] if self._species == 0 or self._gas is None else self._gas._fractions(None, Y)
        quantities = [_numbers("T", T), _numbers("p", p), *velocities, *fractions]
        try:
            found = np.broadcast_shapes(*(values.shape for values in quantities), tuple(shape or ()))
        except (TypeError, ValueError) as error:
            raise Invalid(f"the quantities do not fit to each other: {error}") from None
        if len(found) != self.axes:
            raise Invalid(
                f"the quantities have {len(found)} axes, and the flow {self.axes}; give arrays of as many, or shape=(...)"
            )
        fields = dict(
            _pyabide.flow_fields(self._text, [_flat(values, found) for values in quantities], list(found))
        )
        kind = np.float32 if dtype_name(dtype) == "f32" else np.float64
        values = {name: array.astype(kind, copy=False) for name, array in fields.items()}
        return self.program.start(by_name=_with(values, by_name), **options)


def _items(given: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(given, Mapping):
        raise Invalid(f"it is {type(given).__name__}; give a dict")
    return given.items()


def _listed(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (Iterable, np.ndarray)):
        raise Invalid(f"{name} is {type(given).__name__}; give a list")
    try:
        return list(given)
    except TypeError as error:
        raise Invalid(f"{name}: {error}; give a list") from None


def _pair(pair: Any, value: Any) -> tuple[str, str, float]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise Invalid('kij has pairs of names, as in {("CH4", "CO2"): 0.1}')
    i, j = (text_of("a species", name, '"CH4"') for name in pair)
    return i, j, number_of("kij", value)


def _two(name: str, given: Any) -> tuple[float, float]:
    values = list(_listed(name, given))
    if len(values) != 2:
        raise Invalid(f"{name} has two numbers, as in (1.4, 287.0)")
    return number_of(name, values[0]), number_of(name, values[1])


def _numbers(name: str, value: Any) -> NDArray[np.float64]:
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"{name} is no number and no array of numbers: {error}") from None
    return values


def _flat(values: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.broadcast_to(values, shape)).reshape(-1)


def _side(what: Any) -> Any:
    if isinstance(what, str):
        return what
    return {text_of("a key of a side", key, '"pressure"'): _plain(value) for key, value in _items(what)}


def _plain(value: Any) -> Any:
    values = _numbers("a value of a side", value)
    return [float(number) for number in values.reshape(-1)] if values.ndim else float(values)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(own)}" for key, own in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)
