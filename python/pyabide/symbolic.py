"""Stencils from sympy's equations: finite differences of any order in space, explicit steps in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .boundaries import Boundary
from .errors import Error, Invalid
from .expressions import Expr, Field, absolute, arctan2, cos, erf, exp, floor, log, maximum, minimum, sin, sqrt, tanh, where
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
    **parameters: float,
) -> Program:
    """Makes a stencil of sympy's equations.

    Each equation is ``Eq(u.diff(t), …)`` or ``Eq(u.diff(t, 2), …)`` with ``u = Function("u")(t, x, y)``; the
    first argument is the time, the others the axes, slowest first. Derivatives in space, of any degree and
    mixed ones too, become central differences of an even ``order`` of accuracy. Steps in time are explicit:
    ``u + dt * …`` for the first derivative, ``2 * u - u_before + dt**2 * …`` for the second, where
    ``u_before`` is a field of its own that starts as the values one step earlier.

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
    if order < 2 or order % 2:
        raise Invalid(
            f"order: {order} is no even number above 0; central differences have the orders 2, 4, 6, …"
        )
    given = [equations] if isinstance(equations, sympy.Eq) else list(equations)
    system = System(sympy, given, order)
    defaults = system.defaults(spacing, dt, parameters)
    function = system.function(name, defaults)
    return stencil(len(system.axes), boundary=boundary)(function)


class System:
    """Equations, sorted: the axes, what each equation gives, and the symbols it uses."""

    def __init__(self, sympy: Any, equations: Iterable[Any], order: int) -> None:
        self.sympy, self.order = sympy, order
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
        return equation.lhs, equation.rhs.doit()

    def _place(self, function: Any) -> None:
        """Checks that a function is of the time and the axes that the others are of."""
        arguments = function.args
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
        own = {"dt": float(dt)}
        for axis in map(str, self.axes):
            if widths is not None and axis not in widths:
                raise Invalid(
                    f"spacing: it has none for the axis {axis}; give one for each of "
                    f"{', '.join(map(str, self.axes))}"
                )
            own["d" + axis] = float(widths[axis] if widths is not None else spacing)  # type: ignore[arg-type]
        names = [str(symbol) for symbol in self.symbols]
        for name in names:
            if name not in parameters and name not in own:
                raise Invalid(
                    f"{name}: the equations use it, and it has no value; give {name}=… to from_sympy"
                )
            own[name] = float(parameters[name]) if name in parameters else own[name]
        for name in parameters:
            if name not in names:
                raise Invalid(
                    f"{name}: the equations have no such symbol; they have {', '.join(names) or 'none'}"
                )
        return own

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


class Translation:
    """sympy's expressions in Abide's; what is equal is translated once."""

    def __init__(self, system: System, known: Mapping[str, Any]) -> None:
        self.system, self.known = system, known
        self.made: dict[Any, Any] = {}

    def of(self, e: Any) -> Any:
        if e not in self.made:
            self.made[e] = self._new(e)
        return self.made[e]

    def _new(self, e: Any) -> Any:
        sympy = self.system.sympy
        if e.is_number:
            return float(e)
        if e.is_Symbol:
            if str(e) not in self.known:
                raise Invalid(
                    f"{e}: time and axes stand in the equations only as those of functions; give a "
                    "coefficient instead"
                )
            return self.known[str(e)]
        if isinstance(e, sympy.Derivative):
            return self._difference(e)
        if isinstance(e, sympy.core.function.AppliedUndef):
            return self.known[e.func.__name__]
        if e.is_Pow:
            return self.of(e.base) ** (int(e.exp) if e.exp.is_Integer else self.of(e.exp))
        operands = [self.of(operand) for operand in e.args if not isinstance(e, sympy.Piecewise)]
        if e.is_Add or e.is_Mul:
            whole = operands[0]
            for operand in operands[1:]:
                whole = whole + operand if e.is_Add else whole * operand
            return whole
        if isinstance(e, sympy.Piecewise):
            return self._piecewise(e)
        comparison = {">": "__gt__", ">=": "__ge__", "<": "__lt__", "<=": "__le__"}.get(
            getattr(e, "rel_op", "")
        )
        if comparison is not None:
            first = (
                operands[0]
                if isinstance(operands[0], Expr)
                else 0.0 * next(iter(self.known.values())) + operands[0]
            )
            return getattr(first, comparison)(operands[1])
        functions: dict[str, Any] = {
            "Abs": absolute,
            "Max": maximum,
            "Min": minimum,
            "atan2": arctan2,
            "cos": cos,
            "erf": erf,
            "exp": exp,
            "floor": floor,
            "log": log,
            "sin": sin,
            "sqrt": sqrt,
            "tanh": tanh,
        }
        function = functions.get(e.func.__name__)
        if function is None:
            raise Invalid(f"{e}: Abide has no {e.func.__name__}; it has {', '.join(functions)}")
        if e.func.__name__ in ("Max", "Min"):
            whole = operands[0]
            for operand in operands[1:]:
                whole = function(whole, operand)
            return whole
        return function(*operands)

    def _piecewise(self, e: Any) -> Any:
        *pieces, (last, condition) = e.args
        if condition != self.system.sympy.true:
            raise Invalid(
                f"{e}: its last piece has a condition, so that it may have no value; end it with (value, "
                "True)"
            )
        whole = self.of(last)
        for value, holds in reversed(pieces):
            whole = where(self.of(holds), self.of(value), whole)
        return whole

    def _difference(self, e: Any) -> Any:
        """Returns a derivative as weighted neighbours, divided by the spacings' powers."""
        system = self.system
        function = e.expr
        if not isinstance(function, system.sympy.core.function.AppliedUndef):
            raise Invalid(
                f"{e}: derivatives are of functions; call doit() on the equation, or write the product "
                "rule out"
            )
        degrees = {axis: 0 for axis in system.axes}
        for variable, count in e.variable_count:
            if variable not in degrees:
                raise Invalid(
                    f"{e}: on the right side there is a derivative in {variable}; leave it to the left one"
                )
            degrees[variable] += int(count)
        field: Field = self.known[function.func.__name__]
        taps: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        scale: Any = None
        for axis, degree in degrees.items():
            own = weights(system.sympy, degree, system.order)
            taps = [((*offset, step), weight * more) for offset, weight in taps for step, more in own]
            if degree:
                power = self.known[f"d{axis}"] ** degree
                scale = power if scale is None else scale * power
        terms = [weight * field[offset] for offset, weight in sorted(taps)]
        whole = terms[0]
        for term in terms[1:]:
            whole = whole + term
        return whole / scale


def weights(sympy: Any, degree: int, order: int) -> list[tuple[int, float]]:
    """Returns offsets and weights of a central difference; those of weight 0 are left out."""
    if degree == 0:
        return [(0, 1.0)]
    radius = (degree + 1) // 2 - 1 + order // 2
    points = list(range(-radius, radius + 1))
    own = sympy.finite_diff_weights(degree, points, 0)[degree][-1]
    return [(point, float(weight)) for point, weight in zip(points, own, strict=True) if weight != 0]
