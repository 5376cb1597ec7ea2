"""Programs: functions that were recorded, and the runs that they start."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, TypeAlias, Union

import numpy as np

from . import _pyabide, boundaries, words
from .arguments import (
    Devices,
    backend_named,
    callable_of,
    devices_named,
    dtype_name,
    extents,
    number_of,
    path_of,
    probes_of,
    text_of,
)
from .boundaries import Boundary
from .errors import Invalid
from .fields import Starts
from .recording import RESERVED, Recorder, name_of
from .simulation import Simulation

__all__ = ["Program", "plan", "program", "start", "stencil"]


class Program:
    """A recorded stencil or program, to be started.

    Its name and its docstring are the function's, which ``__wrapped__`` is. ``fields``, ``parameters`` and
    ``scalars`` are what the arguments declare. A program can be pickled, with its formulas and without the
    function.
    """

    def __init__(self, recorded: Recorder) -> None:
        if not isinstance(recorded, Recorder):
            raise Invalid(f"a program: {recorded!r} is no recorded function; write @ab.stencil(2) or @ab.program(2)")
        function = recorded.function
        while isinstance(function, functools.partial):
            function = function.func
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if isinstance(getattr(function, name, None), str):
                setattr(self, name, getattr(function, name))
        self.__wrapped__ = recorded.function
        self.name = recorded.name
        self.dimensions = recorded.tape.dimensions
        self.boundary = recorded.boundary
        self.until = recorded.until
        self.parameters: dict[str, float] = dict(recorded.parameters)
        self._core = recorded.define()
        # Random numbers bring the parameter of their seed.
        for name, default, _ in self._core.parameters:
            self.parameters.setdefault(name, default)
        self._definition: tuple[Any, ...] | None = recorded.definition
        self._given = frozenset(self._core.given)
        self.fields: tuple[str, ...] = tuple(self._core.fields)
        self.scalars: tuple[str, ...] = tuple(self._core.scalars)
        self._defaults: Mapping[str, Any] = {}
        self._run: list[str] = []

    @classmethod
    def of_text(
        cls,
        core: _pyabide.Program,
        parameters: Mapping[str, float],
        defaults: Mapping[str, Any],
        run: list[str],
    ) -> Program:
        """Makes the program of a model file, with the values that ``start`` takes unless others are given."""
        own = cls.__new__(cls)
        own.name, own.dimensions = core.name, core.dimensions
        own.boundary = defaults.get("boundary", core.boundary)
        own.until = defaults.get("until", core.until)
        own.parameters = {name: default for name, default, _ in core.parameters} | dict(parameters)
        own.fields, own.scalars = tuple(core.fields), tuple(core.scalars)
        own._given = frozenset(core.given)
        own._core, own._defaults, own._run, own._definition = core, dict(defaults), run, None
        return own

    def __getstate__(self) -> dict[str, Any]:
        own = {name: value for name, value in self.__dict__.items() if name not in ("_core", "__wrapped__")}
        return own if self._definition is not None else own | {"_text": self.text()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = state.pop("_text", None)
        self.__dict__.update(state)
        definition = self._definition
        self._core = (
            _pyabide.Program.define(*definition) if definition is not None else _pyabide.loads(written, self.name)[0]
        )

    def text(self) -> str:
        """Returns the program as the text of a model file, which ``ab.loads`` and ``abide run`` read.

        A program that is read from it has the same bits, for other parameters too. A field without a start has
        ``"given"`` there: each run gives its values.

        Raises ``ab.Invalid`` for a name that a model file cannot hold, as one with a backquote.
        """
        return self._core.text(self._run)

    def start(
        self,
        *,
        shape: Iterable[int] | None = None,
        dtype: Any = None,
        backend: str = "auto",
        devices: Devices | None = None,
        boundary: Boundary | None = None,
        until: str | None = None,
        marks: tuple[str, float] | None = None,
        record: int | None = None,
        probes: Iterable[tuple[str, Iterable[int]]] = (),
        execution: str = "auto",
        cache: str = "auto",
        depth: int | str = "auto",
        tune: str = "kept",
        fuse: str = "auto",
        exchange: str = "auto",
        pin: bool = False,
        by_name: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Simulation:
        """Starts a simulation.

        ``values`` are the starts of fields and the values of parameters and scalars, by name; ``by_name`` has more
        of them, whose names are those of options or no words of Python. A field starts
        from an array (float32 or float64, any strides, from numpy or anything with ``__dlpack__`` in the
        host's memory), a number, or a name such as ``"random:1"``, ``"gaussian"`` or ``"point"``.

        Extents (in cells, slowest axis first) and type are those of the arrays, unless ``shape`` and
        ``dtype`` say otherwise. Masks and whole numbers take the type of the arrays of floats beside them.
        ``backend`` is ``"auto"``, ``"cuda"``, ``"wgpu"`` or ``"cpu"``. ``devices`` are so many, ``"all"``,
        or those of some numbers: each has a slab of the domain, and the bits are those of one. ``until``
        ends a run by a scalar, as in ``"time >= 1.5"``. ``record`` notes the scalars each so many steps,
        and ``probes`` values of fields, for ``Simulation.records``. ``fuse`` says how stages become
        kernels: ``"auto"``, ``"off"``, ``"greedy"`` or ``"search"``; ``exchange`` how several devices hand
        each other planes: ``"auto"``, ``"stores"``, ``"copies"``, ``"network"`` or ``"messages"``.

        Raises ``ab.Error``, mostly as a ``ValueError``, with a sentence that says what to change.
        """
        self._check_clashes(locals(), by_name)
        fields, parameters, scalars = self._sorted(_with(values, by_name))
        missing = [name for name in self.fields if name not in fields and name in self._given]
        if missing:
            raise Invalid(
                f"{self.name}: nothing is said of the start of {', '.join(missing)}; give an array, a "
                "number, or a name such "
                f'as {missing[0]}="random:1"'
            )
        started = Starts(fields)
        if shape is None:
            shape = self._defaults.get("shape") if started.shape is None else started.shape_on_gpu
        if dtype is None:
            dtype = started.dtype or self._defaults.get("dtype")
        options = self._options(parameters, shape, dtype, boundary, until)
        chosen = backend_named(backend)
        options |= {
            "scalars": list(scalars.items()),
            "backend": self._defaults.get("backend", chosen) if chosen == "auto" else chosen,
            "devices": devices_named(devices),
            "marks": marks,
            "record": record,
            "probes": probes_of(probes),
            "execution": execution,
            "cache": cache,
            "depth": str(depth),
            "tune": tune,
            "fuse": fuse,
            "exchange": exchange,
            "pin": pin,
        }
        if shape is None and started.shape is None:
            raise Invalid(
                f"{self.name}: the domain has no extents; give an array, or shape=({self._example()})"
            )
        return _started(self._core, self, started, options)

    def resume(
        self,
        path: str | PathLike[str],
        *,
        backend: str = "auto",
        devices: Devices | None = None,
        until: str | None = None,
        force: bool = False,
    ) -> Simulation:
        """Goes on from a checkpoint of this program, to the bit.

        Raises ``ab.FileError`` for a checkpoint of a program with other formulas, which ``force`` resumes all the
        same; ``sim.notes`` says what differs.
        """
        options = {
            "resume": path_of(path),
            "force": force,
            "backend": backend_named(backend),
            "devices": devices_named(devices),
            "until": self.until if until is None else until,
        }
        simulation = Simulation(_pyabide.start(self._core, [], options), self)
        return simulation

    def plan(
        self,
        shape: Iterable[int],
        *,
        dtype: Any = "float32",
        device: str | None = None,
        backend: str = "auto",
        devices: Devices | None = None,
        boundary: Boundary | None = None,
        execution: str = "auto",
        cache: str = "auto",
        depth: int | str = "auto",
    ) -> _pyabide.Plan:
        """Plans how a device would run this, without running it.

        ``device`` is one that need not be here: ``"v100"``, ``"a100"``, ``"h100"`` or ``"h200"``, and
        ``devices`` how many of them.
        """
        options = self._options({}, shape, dtype, boundary, None)
        options |= {
            "device": device,
            "backend": backend_named(backend),
            "devices": devices_named(devices),
            "execution": execution,
            "cache": cache,
            "depth": str(depth),
        }
        return _pyabide.plan(self._core, options)

    def _options(
        self,
        parameters: Mapping[str, float],
        shape: Iterable[int] | None,
        dtype: Any,
        boundary: Boundary | None,
        until: str | None,
    ) -> dict[str, Any]:
        chosen = self._defaults.get("boundary") if boundary is None else boundary
        return {
            "parameters": list((self.parameters | dict(parameters)).items()),
            "shape": extents(shape),
            "dtype": dtype_name(dtype),
            "boundary": None if chosen is None else boundaries.text(chosen, self.fields),
            "until": self._defaults.get("until") if until is None else until,
        }

    def _sorted(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float], dict[str, float]]:
        """Sorts values by what they are for: fields, parameters, scalars."""
        fields: dict[str, Any] = {}
        parameters: dict[str, float] = {}
        scalars: dict[str, float] = {}
        for name, value in values.items():
            if name in self.fields or name in {_base(field) for field in self.fields}:
                fields |= _components(name, value, self.fields, self.dimensions)
            elif name in self.parameters:
                parameters[name] = number_of(name, value)
            elif name in self.scalars:
                scalars[name] = number_of(name, value)
            else:
                known = [*self.fields, *self.parameters, *self.scalars]
                raise words.unknown(f"{self.name} has no field and no parameter", name, known)
        return fields, parameters, scalars

    def _check_clashes(self, given: Mapping[str, Any], by_name: Mapping[str, Any] | None) -> None:
        """Checks that no option is given whose name is that of a field or parameter too, as a model file may have
        one."""
        own = {*map(_base, self.fields), *self.parameters, *self.scalars}
        for name in own.intersection(RESERVED):
            default = _DEFAULTS.get(name)
            is_default = given.get(name) is default or (isinstance(default, str) and given.get(name) == default)
            if not is_default and name not in (by_name or {}):
                raise Invalid(
                    f"{self.name}: {name} is an argument of start, and the program has a value of this name; give "
                    f'the value as by_name={{"{name}": …}}'
                )

    def _example(self) -> str:
        return ", ".join(["64"] * self.dimensions) + ("," if self.dimensions == 1 else "")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise Invalid(
            f"{self.name}: a recorded program is no function any more; start it by {self.name}.start(…)"
        )

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value}" for name, value in self.parameters.items())
        flops, size, radius = self._core.footprint
        where = f"radius {max(radius)}, {flops} operations and {size} bytes a cell and step in float32"
        return f"<{self.name}({', '.join(self.fields)}{parameters}), {self.dimensions} axes, {where}>"


_DEFAULTS = {name: own.default for name, own in inspect.signature(Program.start).parameters.items()}


def _with(values: dict[str, Any], by_name: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the values of both, none of them given twice."""
    if by_name is None:
        return values
    if not isinstance(by_name, Mapping):
        raise Invalid(f'by_name: {by_name!r} is no dict; give values by name, as in {{"depth": 1.0}}')
    both = values.keys() & by_name.keys()
    if both:
        raise Invalid(f"{min(both)}: it is given twice, in by_name too; give it once")
    return values | {text_of("by_name", name, '{"depth": 1.0}'): value for name, value in by_name.items()}


def _base(field: str) -> str:
    return field.split("[")[0]


def _components(name: str, value: Any, fields: tuple[str, ...], axes: int) -> dict[str, Any]:
    """Returns the starts of all components of a field; of a list, or of an array with an axis more, one for each."""
    own = [field for field in fields if _base(field) == name]
    if name in fields:
        return {name: value}
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == axes + 1):
        if len(value) != len(own):
            raise Invalid(
                f"the start of field {name}: {len(value)} values for {len(own)} components; give one for each"
            )
        return dict(zip(own, value, strict=True))
    return dict.fromkeys(own, value)


Along: TypeAlias = Union[float, str, Mapping[str, Union[float, str]], None]
"""A number or the name of a parameter, for all axes or in a dict of axes."""


def stencil(
    dimensions: int, *, boundary: Boundary | None = None, spacing: Along = None, origin: Along = None
) -> Callable[[Callable[..., Any]], Program]:
    """Records a function as a stencil on 1 to 3 axes.

    Arguments without default are fields, those with a number are parameters. The function is called once. It
    returns the new value of its field, or a dict of the new values; a field that it does not return is a
    coefficient. ``boundary`` is ``"fixed"`` unless given. ``spacing`` is the distance between cells and ``origin`` the low
    side of the domain: a number or the name of a parameter for all axes, or a dict of axes::

        @ab.stencil(2, boundary="mirror")
        def heat(u, kappa=0.1):
            return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)
    """

    def record(function: Callable[..., Any]) -> Program:
        if any(map(inspect.isgeneratorfunction, (function, getattr(function, "__call__", None)))):
            raise Invalid(
                f"{name_of(function)}: a stencil returns its new values; what yields stages is made by "
                "@ab.program"
            )
        return _recorded(function, dimensions, boundary, None, {"spacing": spacing, "origin": origin})

    return _called_rightly("stencil", dimensions, record)


def program(
    dimensions: int,
    *,
    boundary: Boundary | None = None,
    until: str | None = None,
    spacing: Along = None,
    origin: Along = None,
) -> Callable[[Callable[..., Any]], Program]:
    """Records a function as a program of several stages.

    The arguments declare what there is: ``ab.field(…)``, ``ab.temporary(…)``, ``ab.scalar(…)``,
    ``ab.extent(…)``, a number for a parameter. The function yields the stages of a step in order, each a dict
    of new values by name: of fields and temporaries, or of scalars, which may be reductions such as
    ``ab.max(u)``. All values of a stage are computed from those before it. ``yield ab.end_of_step`` begins
    another step of a cycle. ``until`` ends a run by a scalar, as in ``"time >= 1.5"``. ``spacing`` and ``origin`` are those
    of ``ab.stencil``::

        @ab.program(1, boundary="mirror", until="time >= 1e-3")
        def sound(p=ab.field(start="gaussian"), c=ab.field(start=340.0), v=ab.field(on="x-faces", boundary="-reflect"),
                  dx=0.01, fastest=ab.scalar(), dt=ab.scalar(), time=ab.scalar(0.0)):
            yield {"fastest": ab.max(c)}
            yield {"dt": 0.5 * dx / fastest}
            yield {"v": v - dt * (p[0] - p[-1]) / dx}
            yield {"p": p - dt * c * c * (v[1] - v[0]) / dx}
            yield {"time": time + dt}
    """
    return _called_rightly(
        "program",
        dimensions,
        lambda function: _recorded(function, dimensions, boundary, until, {"spacing": spacing, "origin": origin}),
    )


def _called_rightly(
    name: str, dimensions: Any, record: Callable[[Callable[..., Any]], Program]
) -> Callable[[Callable[..., Any]], Program]:
    if callable(dimensions):
        raise Invalid(f"@ab.{name}: the number of axes is missing; write @ab.{name}(2) or the like")
    return record


def _recorded(
    function: Callable[..., Any],
    dimensions: int,
    boundary: Boundary | None,
    until: str | None,
    grid: Mapping[str, Along],
) -> Program:
    if isinstance(function, Program):
        raise Invalid(f"{function.name}: it is recorded already; start it by {function.name}.start(…)")
    recorder = Recorder(callable_of("a stencil or program", function), dimensions, boundary, until, grid)
    recorder.record()
    return Program(recorder)


def start(
    model: str | Program,
    *,
    shape: Iterable[int] | None = None,
    dtype: Any = None,
    backend: str = "auto",
    devices: Devices | None = None,
    boundary: Boundary | None = None,
    until: str | None = None,
    **values: Any,
) -> Simulation:
    """Starts an entry of the catalogue by name, as in ``ab.start("gray-scott", shape=(512, 512),
    feed=0.037)``.

    The arguments are those of ``Program.start``; fields that are not given have the entry's own start, and
    ``shape`` that of the arrays or the entry's default. ``ab.catalogue()`` lists the entries.
    """
    if isinstance(model, Program):
        return model.start(
            shape=shape,
            dtype=dtype,
            backend=backend,
            devices=devices,
            boundary=boundary,
            until=until,
            **values,
        )
    name = words.entry(text_of("model", model, '"heat"'), _entries())
    more: dict[str, Any] = {option: values.pop(option) for option in _OPTIONS if option in values}
    more["depth"] = str(values.pop("depth", "auto"))
    more["probes"] = probes_of(values.pop("probes", ()))
    values = _with(values, values.pop("by_name", None))
    parameters = _entries().get(name, frozenset())
    numbers = {own: number_of(own, value) for own, value in values.items() if own in parameters}
    fields = {own: value for own, value in values.items() if own not in numbers}
    started = Starts(fields)
    options = more | {
        "parameters": list(numbers.items()),
        "shape": extents(started.shape_on_gpu if shape is None else shape),
        "dtype": dtype_name(started.dtype if dtype is None else dtype),
        "boundary": None if boundary is None else boundaries.text(boundary, tuple(fields)),
        "until": until,
        "backend": backend_named(backend),
        "devices": devices_named(devices),
    }
    return _started(name, None, started, options)


_OPTIONS = ("marks", "record", "execution", "cache", "tune", "fuse", "exchange", "pin")


def _started(
    model: _pyabide.Program | str, program: Program | None, started: Starts, options: dict[str, Any]
) -> Simulation:
    simulation = Simulation(_pyabide.start(model, started.given, options), program)
    for name, values in started.on_gpu.items():
        simulation[name] = values
    return simulation


_ENTRIES: dict[str, frozenset[str]] = {}


def _entries() -> dict[str, frozenset[str]]:
    """Returns the names of the catalogue's entries, and of the parameters of each."""
    if not _ENTRIES:
        _ENTRIES.update((own[0], frozenset(name for name, _ in own[4])) for own in _pyabide.catalogue())
    return _ENTRIES


def plan(
    model: str | Program, shape: Iterable[int], *, device: str | None = None, **options: Any
) -> _pyabide.Plan:
    """Plans how a device would run a program or an entry of the catalogue, without running it.

    ``device`` is one that need not be here (``"v100"``, ``"a100"``, ``"h100"``, ``"h200"``); unless given, it
    is the best one here. Other options are those of ``Program.plan``. Print the plan to see why it is so.
    """
    for option in options:
        if option not in _PLANNED:
            raise words.unknown("plan: no option is", option, _PLANNED)
    if isinstance(model, Program):
        return model.plan(shape, device=device, **options)
    name = words.entry(text_of("model", model, '"heat"'), _entries())
    boundary = options.pop("boundary", None)
    dtype = dtype_name(options.pop("dtype", "float32"))
    if "depth" in options:
        options["depth"] = str(options["depth"])
    options |= {"shape": extents(shape), "dtype": dtype, "device": device}
    options["backend"] = backend_named(options.get("backend"))
    options["devices"] = devices_named(options.get("devices"))
    options["boundary"] = None if boundary is None else boundaries.text(boundary)
    return _pyabide.plan(name, options)


_PLANNED = tuple(name for name in inspect.signature(Program.plan).parameters if name not in ("self", "shape"))
