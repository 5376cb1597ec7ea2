"""Stencils from sympy's equations: finite differences of any order in space, explicit steps in time."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from typing import Any

from .arguments import number_of, whole
from .boundaries import Boundary
from .differences import Translation
from .errors import Error, Invalid, Unknown
from .expressions import Expr
from .fluxes import divergences
from .programs import Program, stencil

__all__ = ["from_sympy"]

BEFORE = "_before"
"""What follows the name of a field in that of its values one step earlier."""


def from_sympy(
    equations: Any,
    *,
    order: int = 2,
    spacing: float | Mapping[Any, float] = 1.0,
    dt: float = 1.0,
    boundary: Boundary | None = None,
    name: str = "equations",
    faces: str = "arithmetic",
    **parameters: float,
) -> Program:
    """Makes a stencil of sympy's equations.

    Each equation is ``Eq(u.diff(t), …)`` or ``Eq(u.diff(t, 2), …)`` with ``u = Function("u")(t, x, y)``; the
    first argument is the time, the others the axes, slowest first. Derivatives in space, of any degree and
    mixed ones too, become central differences of an even ``order`` of accuracy. Steps in time are explicit:
    ``u + dt * …`` for the first derivative, ``2 * u - u_before + dt**2 * …`` for the second, where
    ``u_before`` is a field of its own that starts as the values one step earlier.

    The derivative of a flux, ``Derivative(k*Derivative(u, x), x)``, is the difference of the flux at the faces on
    both sides of a cell: what leaves a cell enters its neighbour, where ``k`` jumps too. What has no derivative
    there (``k``) is the mean of the two cells, of the kind that ``faces`` names: ``"arithmetic"``, or
    ``"harmonic"``, as for layers in series. With an ``order`` above 2 it is interpolated, which may overshoot at
    jumps. What the product rule wrote out, as ``(k*u.diff(x)).diff(x)`` does, is gathered to the same flux.

    ``dt`` and the spacings are parameters of the stencil, named ``dt`` and ``dx``, ``dy``, … by their axes.
    Other symbols are parameters too, with ``parameters`` as their defaults. Functions that have no equation
    are coefficients::

        t, x, y, a = sympy.symbols("t x y a")
        u = sympy.Function("u")(t, x, y)
        heat = ab.from_sympy(sympy.Eq(u.diff(t), a * (u.diff(x, 2) + u.diff(y, 2))), order=4, dt=0.1, a=1.0)
    """
    try:
        import sympy
    except ImportError:
        raise Error("sympy is not installed; install it by: pip install sympy") from None
    order = whole("order", order)
    if order < 2 or order % 2:
        raise Invalid(
            f"order: {order} is no even number above 0; central differences have the orders 2, 4, 6, …"
        )
    if faces not in ("arithmetic", "harmonic"):
        raise Unknown(f"no mean at faces is named `{faces}`; known: arithmetic, harmonic")
    if faces == "harmonic" and order > 2:
        raise Invalid(f'faces: the harmonic mean is of the second order, and order={order} is asked for; give order=2')
    if not isinstance(name, str):
        raise Invalid(f"name: {name!r} is no text; give the program's name")
    system = System(sympy, _listed(sympy, equations), order, faces)
    defaults = system.defaults(spacing, dt, parameters)
    function = system.function(name, defaults)
    return stencil(len(system.axes), boundary=boundary)(function)


def _listed(sympy: Any, equations: Any) -> list[Any]:
    if isinstance(equations, (list, tuple, set, frozenset)):
        return list(equations)
    return [equations]


class System:
    """Equations, sorted: the axes, what each equation gives, and the symbols it uses."""

    def __init__(self, sympy: Any, equations: Iterable[Any], order: int, faces: str) -> None:
        self.sympy, self.order, self.faces = sympy, order, faces
        self.steps: dict[str, tuple[int, Any]] = {}
        """Of each field: the degree of its derivative in time, and what that equals."""
        self.time: Any = None
        self.axes: tuple[Any, ...] = ()
        functions: set[Any] = set()
        for equation in equations:
            left, right = self._sides(equation)
            unknown, degree = left.expr, left.derivative_count
            self._place(unknown)
            if any(variable != self.time for variable in left.variables) or degree > 2:
                raise Invalid(
                    f"{equation}: its left side is {left}; write u.diff({self.time}) or "
                    f"u.diff({self.time}, 2) there"
                )
            if unknown.func.__name__ in self.steps:
                raise Invalid(
                    f"{equation}: there is another equation for {unknown.func.__name__}; write one a field"
                )
            self.steps[unknown.func.__name__] = (degree, right)
            functions |= right.atoms(sympy.core.function.AppliedUndef) | {unknown}
        if not self.steps:
            raise Invalid("equations: there is none; give sympy.Eq(u.diff(t), …)")
        for function in functions:
            self._place(function)
        found = {function.func.__name__ for function in functions}
        self.fields = [*self.steps, *sorted(found - set(self.steps))]
        self.fields += [name + BEFORE for name, (degree, _) in self.steps.items() if degree == 2]
        symbols = {symbol for _, right in self.steps.values() for symbol in right.free_symbols}
        self.symbols = sorted((symbol for symbol in symbols - {self.time, *self.axes}), key=str)

    def _sides(self, equation: Any) -> tuple[Any, Any]:
        if not isinstance(equation, self.sympy.Eq) or not isinstance(equation.lhs, self.sympy.Derivative):
            raise Invalid(
                f"{equation}: it has no derivative in time on its left side; write sympy.Eq(u.diff(t), …)"
            )
        if not isinstance(equation.lhs.expr, self.sympy.core.function.AppliedUndef):
            raise Invalid(f"{equation}: its left side is {equation.lhs}; write the derivative of a function there")
        return equation.lhs, divergences(self.sympy, equation.rhs)

    def _place(self, function: Any) -> None:
        """Checks that a function is of the time and the axes that the others are of."""
        arguments = function.args
        if not arguments:
            raise Invalid(f"{function}: it is a function of nothing; write u(t, x, y) or the like")
        # A coefficient may be constant in time.
        axes = arguments[1:] if self.time is None or arguments[:1] == (self.time,) else arguments
        if self.time is None:
            self.time, self.axes = arguments[0], tuple(axes)
        if tuple(axes) != self.axes or not 1 <= len(self.axes) <= 3:
            raise Invalid(
                f"{function}: functions are of the time and of 1 to 3 axes, the same for all; write u(t, "
                "x, y) or the like"
            )

    def defaults(
        self, spacing: float | Mapping[Any, float], dt: float, parameters: Mapping[str, float]
    ) -> dict[str, float]:
        """Returns the parameters with their defaults."""
        widths = (
            {str(axis): width for axis, width in spacing.items()} if isinstance(spacing, Mapping) else None
        )
        own = {"dt": number_of("dt", dt)}
        for axis in map(str, self.axes):
            if widths is not None and axis not in widths:
                raise Invalid(
                    f"spacing: it has none for the axis {axis}; give one for each of "
                    f"{', '.join(map(str, self.axes))}"
                )
            own["d" + axis] = number_of("spacing", spacing if widths is None else widths[axis])
        names = [str(symbol) for symbol in self.symbols]
        for name in names:
            if name not in parameters and name not in own:
                raise Invalid(
                    f"{name}: the equations use it, and it has no value; give {name}=… to from_sympy"
                )
            own[name] = number_of(name, parameters[name]) if name in parameters else own[name]
        for name in parameters:
            if name not in names:
                raise Invalid(
                    f"{name}: the equations have no such symbol; they have {', '.join(names) or 'none'}"
                )
        self._check_names(own)
        return own

    def _check_names(self, parameters: Iterable[str]) -> None:
        """Checks that each name can be that of an argument."""
        taken: set[str] = set()
        for name in [*self.fields, *parameters]:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise Invalid(
                    f"{name}: Python has no argument of this name; rename it in the equations, as "
                    f'sympy.Symbol("{_identifier(name)}")'
                )
            if name in taken:
                raise Invalid(f"{name}: the equations have it twice, as a function and as a symbol; rename one")
            taken.add(name)

    def function(self, name: str, defaults: Mapping[str, float]) -> Any:
        """Returns a function as ``ab.stencil`` records it."""
        import inspect

        def define(*arguments: Any) -> dict[str, Expr]:
            known = dict(zip([*self.fields, *defaults], arguments, strict=True))
            return self.new_values(known)

        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        fields = [inspect.Parameter(field, positional) for field in self.fields]
        numbers = [inspect.Parameter(own, positional, default=value) for own, value in defaults.items()]
        define.__name__ = name
        define.__signature__ = inspect.Signature(fields + numbers)  # type: ignore[attr-defined]
        return define

    def new_values(self, known: Mapping[str, Any]) -> dict[str, Expr]:
        """Returns the new values of the fields, recorded."""
        new: dict[str, Expr] = {}
        for name, (degree, right) in self.steps.items():
            u, rate = known[name], Translation(self, known).of(right)
            if degree == 1:
                new[name] = u + known["dt"] * rate
            else:
                new[name] = 2.0 * u - known[name + BEFORE] + known["dt"] ** 2 * rate
                new[name + BEFORE] = u
        return new


def _identifier(name: str) -> str:
    """Returns a name near another one that an argument can have."""
    if keyword.iskeyword(name):
        return {"lambda": "lam"}.get(name, name + "_")
    plain = "".join(letter if letter.isidentifier() or letter.isdigit() else "_" for letter in name).strip("_")
    return plain if plain.isidentifier() else "a" + plain
