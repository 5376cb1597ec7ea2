"""sympy's expressions as formulas: derivatives become differences, at cells and at the faces between them."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import Invalid
from .expressions import (
    Expr,
    Field,
    absolute,
    arccos,
    arcsin,
    arctan,
    arctan2,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    log,
    maximum,
    minimum,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)

if TYPE_CHECKING:
    from .symbolic import System

__all__ = ["Translation"]

Place = tuple[int, ...]
"""Where a value stands: half cells from the cell along each axis. An odd number is a face between two cells."""

_FUNCTIONS: dict[str, Any] = {
    "Abs": absolute,
    "acos": arccos,
    "asin": arcsin,
    "atan": arctan,
    "atan2": arctan2,
    "ceiling": ceil,
    "cos": cos,
    "cosh": cosh,
    "erf": erf,
    "exp": exp,
    "floor": floor,
    "log": log,
    "sign": sign,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
}
_COMPARISONS = {">": "__gt__", ">=": "__ge__", "<": "__lt__", "<=": "__le__", "==": "__eq__", "!=": "__ne__"}
_JOINTS: dict[str, Callable[[Any, Any], Any]] = {
    "And": operator.and_,
    "Or": operator.or_,
    "Max": maximum,
    "Min": minimum,
}


class Translation:
    """sympy's expressions in Abide's; what is equal at one place is translated once."""

    def __init__(self, system: System, known: Mapping[str, Any]) -> None:
        self.system, self.known = system, known
        self.made: dict[Any, Any] = {}

    def of(self, e: Any) -> Any:
        """Returns an expression's value at the cell."""
        return self._at(e, (0,) * len(self.system.axes))

    def _at(self, e: Any, place: Place) -> Any:
        if (e, place) not in self.made:
            self.made[e, place] = self._new(e, place)
        return self.made[e, place]

    def _new(self, e: Any, place: Place) -> Any:
        sympy = self.system.sympy
        if e.is_number:
            return number(e)
        if e.is_Symbol:
            if str(e) not in self.known:
                raise Invalid(
                    f"{e}: time and axes stand in the equations only as those of functions; give a "
                    "coefficient instead"
                )
            return self.known[str(e)]
        if isinstance(e, sympy.Derivative):
            return self._difference(e, place)
        is_face = any(step % 2 for step in place)
        if is_face and not e.has(sympy.Derivative) and e.has(sympy.core.function.AppliedUndef):
            return self._between(e, place)
        if isinstance(e, sympy.core.function.AppliedUndef):
            field = self.known[e.func.__name__]
            return field[tuple(step // 2 for step in place)] if any(place) else field
        if e.is_Pow:
            return self._at(e.base, place) ** (int(e.exp) if e.exp.is_Integer else self._at(e.exp, place))
        if isinstance(e, sympy.Piecewise):
            return self._piecewise(e, place)
        if e.is_Mul and is_face and e.has(sympy.Derivative):
            return self._flux(e, place)
        operands = [self._at(operand, place) for operand in e.args]
        if e.is_Add or e.is_Mul:
            return _joined(operator.add if e.is_Add else operator.mul, operands)
        return self._called(e, operands)

    def _called(self, e: Any, operands: list[Any]) -> Any:
        """Returns a function, a comparison or a joint of comparisons of operands."""
        name = e.func.__name__
        comparison = _COMPARISONS.get(getattr(e, "rel_op", ""))
        if comparison is not None:
            return getattr(self._expression(operands[0]), comparison)(operands[1])
        if name in _JOINTS:
            return _joined(_JOINTS[name], operands)
        if name == "Not":
            return ~operands[0]
        function = _FUNCTIONS.get(name)
        if function is None:
            raise Invalid(f"{e}: Abide has no {name}; it has {', '.join([*_FUNCTIONS, *_JOINTS])}")
        return function(*operands)

    def _expression(self, value: Any) -> Expr:
        return value if isinstance(value, Expr) else 0.0 * next(iter(self.known.values())) + value

    def _piecewise(self, e: Any, place: Place) -> Any:
        *pieces, (last, condition) = e.args
        if condition != self.system.sympy.true:
            raise Invalid(
                f"{e}: its last piece has a condition, so that it may have no value; end it with (value, "
                "True)"
            )
        whole = self._at(last, place)
        for value, holds in reversed(pieces):
            whole = where(self._at(holds, place), self._at(value, place), whole)
        return whole

    def _between(self, e: Any, place: Place) -> Any:
        """Returns what stands at cells as it is at a face: interpolated, by the mean of two in the second order."""
        axis = next(axis for axis, step in enumerate(place) if step % 2)
        return _weighted(
            [(weight, self._at(e, _moved(place, axis, step))) for step, weight in self._weights(0, True)]
        )

    def _flux(self, e: Any, place: Place) -> Any:
        """Returns a product at a face: its slopes as they are there, the other factors as one coefficient."""
        slopes = [factor for factor in e.args if factor.has(self.system.sympy.Derivative)]
        rest = e.func(*(factor for factor in e.args if factor not in slopes))
        factors = [self._at(slope, place) for slope in slopes]
        return _joined(operator.mul, factors if rest == 1 else [self._coefficient(rest, place), *factors])

    def _coefficient(self, e: Any, place: Place) -> Any:
        """Returns a flux's coefficient at a face, by the mean that ``faces`` names."""
        odd = [axis for axis, step in enumerate(place) if step % 2]
        if self.system.faces == "arithmetic" or not e.has(self.system.sympy.core.function.AppliedUndef):
            return self._at(e, place)
        sides = [
            self._at(e, _moved(place, odd[0], step))
            if len(odd) == 1
            else self._coefficient(e, _moved(place, odd[0], step))
            for step in (-1, 1)
        ]
        return 2.0 / (1.0 / sides[0] + 1.0 / sides[1])

    def _difference(self, e: Any, place: Place) -> Any:
        """Returns a derivative as weighted values around a place, divided by the spacings' powers."""
        system = self.system
        for variable, _ in e.variable_count:
            if variable not in system.axes:
                raise Invalid(
                    f"{e}: on the right side there is a derivative in {variable}; leave it to the left one"
                )
        if isinstance(e.expr, system.sympy.core.function.AppliedUndef):
            return self._of_field(e, place)
        (variable, degree), *others = e.variable_count
        inner = system.sympy.Derivative(e.expr, *others) if others else e.expr
        axis, is_face = system.axes.index(variable), place[system.axes.index(variable)] % 2 == 1
        # Slopes are fluxes of faces: an odd difference at a cell takes those half a cell away.
        halves = is_face != (int(degree) % 2 == 1 and inner.has(system.sympy.Derivative))
        taps = [
            (weight, self._at(inner, _moved(place, axis, step)))
            for step, weight in self._weights(int(degree), halves)
        ]
        return _weighted(taps) / self._power(axis, int(degree))

    def _of_field(self, e: Any, place: Place) -> Any:
        """Returns a derivative of a function, of several axes too, by one set of weights."""
        field: Field = self.known[e.expr.func.__name__]
        degrees = [0] * len(place)
        for variable, count in e.variable_count:
            degrees[self.system.axes.index(variable)] += int(count)
        along = [self._weights(degree, step % 2 == 1) for degree, step in zip(degrees, place, strict=True)]
        taps: list[tuple[tuple[int, ...], float]] = []
        for each in itertools.product(*along):
            weight = 1.0
            for _, own in each:
                weight *= own
            taps.append((tuple((at + step) // 2 for at, (step, _) in zip(place, each, strict=True)), weight))
        scale: Any = None
        for axis, degree in enumerate(degrees):
            if degree:
                power = self._power(axis, degree)
                scale = power if scale is None else scale * power
        return _joined(operator.add, [weight * field[offset] for offset, weight in sorted(taps)]) / scale

    def _power(self, axis: int, degree: int) -> Any:
        return self.known[f"d{self.system.axes[axis]}"] ** degree

    def _weights(self, degree: int, halves: bool) -> list[tuple[int, float]]:
        return weights(self.system.sympy, degree, self.system.order, halves)


def weights(sympy: Any, degree: int, order: int, halves: bool) -> list[tuple[int, float]]:
    """Returns steps in half cells and weights of a central difference, of the degree 0 of an interpolation.

    ``halves`` says that the values stand half a cell away from the place, and so on. Weights of 0 are left out.
    """
    if halves:
        count = degree // 2 + order // 2
        points = [2 * point + 1 for point in range(-count, count)]
    elif degree == 0:
        return [(0, 1.0)]
    else:
        radius = (degree + 1) // 2 - 1 + order // 2
        points = [2 * point for point in range(-radius, radius + 1)]
    own = sympy.finite_diff_weights(degree, [sympy.Rational(point, 2) for point in points], 0)[degree][-1]
    return [(point, float(weight)) for point, weight in zip(points, own, strict=True) if weight != 0]


def number(e: Any) -> float:
    """Returns the value of one of sympy's numbers."""
    try:
        own = float(e)
    except (TypeError, ValueError):
        raise Invalid(f"{e}: it is no real number; equations are of real ones") from None
    if not math.isfinite(own):
        raise Invalid(f"{e}: it is infinite or beyond float64; scale the equation")
    return own


def _moved(place: Place, axis: int, step: int) -> Place:
    return (*place[:axis], place[axis] + step, *place[axis + 1 :])


def _joined(join: Callable[[Any, Any], Any], operands: list[Any]) -> Any:
    return functools.reduce(join, operands)


def _weighted(taps: list[tuple[float, Any]]) -> Any:
    """Returns the sum of weighted values; of a difference or a mean of two without needless products."""
    weights, values = [weight for weight, _ in taps], [value for _, value in taps]
    if weights == [-1.0, 1.0]:
        return values[1] - values[0]
    if len(set(weights)) == 1:
        return weights[0] * _joined(operator.add, values)
    return _joined(operator.add, [weight * value for weight, value in taps])
