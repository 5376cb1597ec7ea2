"""Formulas, recorded as they are written.

A function of a stencil is called once, with objects in the place of arrays. What is done with them is noted
on a tape, in order, and Abide makes its kernels from that. Nothing is reassociated and no multiply-add is
fused, so a formula has the bits that numpy gives it.

Arithmetic among parameters and numbers alone is Python's: it is done in float64 on the host and rounded to
the run's type once, as numpy does with Python's floats.
"""

from __future__ import annotations

import numbers
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, Union

import numpy as np

from .arguments import number_of, whole
from .errors import Invalid
from .formulas import Op, is_draw, shown_offset, text
from .refusals import Refusals

__all__ = [
    "Expr",
    "Field",
    "absolute",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "cbrt",
    "ceil",
    "clip",
    "coord",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "fma",
    "laplacian",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "rint",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]

Number: TypeAlias = Union[int, float, "np.integer[Any]", "np.floating[Any]", "np.bool_"]
Operand: TypeAlias = Union["Expr", Number]

_COMPARISONS = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}
_HIGHEST_POWER = 64
_recording = threading.local()


class Tape:
    """The operations of one program, operands before what uses them; equal ones stand once."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.ops: list[Op] = []
        self.on_host: list[bool] = []
        """Of each operation: whether it is of parameters and numbers alone."""
        self._numbers: dict[Op, int] = {}
        self.parameters: set[str] = set()
        self.streams = 0
        """The streams of random numbers so far."""
        self.grid: dict[str, dict[int, float | str]] = {}
        """Spacing and origin of each axis: a number, or the name of a parameter."""

    def __enter__(self) -> Tape:
        self._outer: Tape | None = getattr(_recording, "tape", None)
        _recording.tape = self
        return self

    def __exit__(self, *_: object) -> None:
        _recording.tape = self._outer

    def add(self, *op: Any) -> Expr:
        # The key of a constant is its text, because 0.0 and -0.0 are equal and NaN is not.
        key = (op[0], repr(op[1])) if op[0] == "constant" else op
        number = self._numbers.get(key)
        if number is None:
            number = len(self.ops)
            self._numbers[key] = number
            self.ops.append(op)
            self.on_host.append(self._is_on_host(op))
        return Expr(self, number)

    def _is_on_host(self, op: Op) -> bool:
        match op[0]:
            case "constant":
                return True
            case "scalar":
                return op[1] in self.parameters
            case "tap" | "coord":
                return False
            case _:
                return not is_draw(op) and all(self.on_host[operand] for operand in op[1:])

    def expression(self, value: Operand) -> Expr:
        """Returns an operand as an expression on this tape."""
        if isinstance(value, Expr):
            if value._tape is not self:
                raise Invalid(
                    "a formula: one of its values belongs to another program; use the arguments of this "
                    "function"
                )
            return Expr(self, value._number)
        if np.ma.isMaskedArray(value):
            raise Invalid("a formula: a masked value cannot stand in it; fill it, as by .filled(0.0)")
        if isinstance(value, np.ndarray) and value.ndim > 0:
            raise Invalid(
                "a formula: an array cannot stand in it; make the array a field, which is an argument of "
                "the function "
                "that is not returned, and give it to start"
            )
        if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiub":
            value = value.item()
        if isinstance(value, (numbers.Real, np.bool_)):
            return self.add("constant", number_of("a formula", value))
        raise Invalid(
            f"a formula: {value!r} of type {type(value).__name__} cannot stand in it; use fields, "
            "parameters and numbers"
        )


def current() -> Tape:
    """Returns the tape of the function that is being recorded."""
    tape: Tape | None = getattr(_recording, "tape", None)
    if tape is None:
        raise Invalid(
            "a formula: no program is being recorded; call this in a function of @stencil or @program"
        )
    return tape


class Expr(Refusals):
    """A formula of fields, parameters and numbers.

    It has Python's arithmetic and comparisons, and numpy's functions that Abide has too, as in
    ``np.sqrt(u)``. Comparisons give 1 where they hold and 0 where they do not.
    """

    __slots__ = ("_number", "_tape")
    def __init__(self, tape: Tape, number: int) -> None:
        if not isinstance(tape, Tape):
            raise Invalid("a formula: functions of @stencil and @program get them; declare fields and parameters there")
        self._tape = tape
        self._number = number

    def _unary(self, op: str) -> Expr:
        return self._tape.add(op, self._number)

    def _binary(self, op: str, right: Operand, swapped: bool = False) -> Expr:
        a, b = self._number, self._tape.expression(right)._number
        return self._tape.add(op, b, a) if swapped else self._tape.add(op, a, b)

    def __add__(self, right: Operand) -> Expr:
        return self._binary("Add", right)

    def __radd__(self, left: Operand) -> Expr:
        return self._binary("Add", left, swapped=True)

    def __sub__(self, right: Operand) -> Expr:
        return self._binary("Sub", right)

    def __rsub__(self, left: Operand) -> Expr:
        return self._binary("Sub", left, swapped=True)

    def __mul__(self, right: Operand) -> Expr:
        return self._binary("Mul", right)

    def __rmul__(self, left: Operand) -> Expr:
        return self._binary("Mul", left, swapped=True)

    def __truediv__(self, right: Operand) -> Expr:
        return self._binary("Div", right)

    def __rtruediv__(self, left: Operand) -> Expr:
        return self._binary("Div", left, swapped=True)

    def __floordiv__(self, right: Operand) -> Expr:
        return floor(self / right)

    def __rfloordiv__(self, left: Operand) -> Expr:
        return floor(left / self)

    def __floor__(self) -> Expr:
        return floor(self)

    def __ceil__(self) -> Expr:
        return -floor(-self)

    def __neg__(self) -> Expr:
        return self._unary("Neg")

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return self._unary("Abs")

    def __pow__(self, power: Operand, modulus: Any = None) -> Expr:
        if modulus is not None:
            raise Invalid("a formula: there is no remainder; write the power and a - b * ab.floor(a / b) of it")
        exponent = self._tape.expression(power)
        op = self._tape.ops[exponent._number]
        if isinstance(power, Expr) or op[0] != "constant" or self._is_of_the_host(power):
            return self._binary("Pow", power)
        own: float = op[1]
        if own == 0.5:
            return self._unary("Sqrt")
        if own.is_integer() and abs(own) <= _HIGHEST_POWER:
            return self._product(int(own))
        return self._binary("Pow", power)

    def __rpow__(self, base: Operand) -> Expr:
        return self._binary("Pow", base, swapped=True)

    def _is_of_the_host(self, other: Operand) -> bool:
        """Returns whether an operation with the other operand takes only parameters and numbers."""
        own, on_host = self._tape.on_host[self._number], not isinstance(other, Expr)
        return own and (on_host or self._tape.on_host[self._tape.expression(other)._number])

    def _product(self, power: int) -> Expr:
        """Returns a whole power as products from the left: u * u * u."""
        if power == 0:
            return self._tape.expression(1.0)
        product: Expr = Expr(self._tape, self._number)
        for _ in range(abs(power) - 1):
            product = product * self
        return product if power > 0 else 1.0 / product

    def __lt__(self, right: Operand) -> Expr:
        return self._binary("Less", right)

    def __le__(self, right: Operand) -> Expr:
        return self._binary("LessEqual", right)

    def __gt__(self, right: Operand) -> Expr:
        return self._binary("Greater", right)

    def __ge__(self, right: Operand) -> Expr:
        return self._binary("GreaterEqual", right)

    def __eq__(self, right: object) -> Expr:  # type: ignore[override]
        return self._binary("Equal", right)  # type: ignore[arg-type]

    def __ne__(self, right: object) -> Expr:  # type: ignore[override]
        return self._binary("NotEqual", right)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        # What defines __eq__ has no other's __hash__ unless it says so.
        return super().__hash__()

    def __and__(self, right: Operand) -> Expr:
        return self._condition() * self._tape.expression(right)._condition()

    def __rand__(self, left: Operand) -> Expr:
        return self._tape.expression(left) & self

    def __or__(self, right: Operand) -> Expr:
        return maximum(self._condition(), self._tape.expression(right)._condition())

    def __ror__(self, left: Operand) -> Expr:
        return self._tape.expression(left) | self

    def __xor__(self, right: Operand) -> Expr:
        return self._condition() != self._tape.expression(right)._condition()

    def __rxor__(self, left: Operand) -> Expr:
        return self._tape.expression(left) ^ self

    def __invert__(self) -> Expr:
        return self._condition() == 0.0

    def _condition(self) -> Expr:
        """Returns this, if it is a comparison, True or False, or made of some."""
        waiting, seen = [self._number], set[int]()
        while waiting:
            number = waiting.pop()
            op = self._tape.ops[number]
            if number in seen or op[0] in _COMPARISONS or (op[0] == "constant" and op[1] in (0.0, 1.0)):
                continue
            seen.add(number)
            if op[0] not in {"Mul", "Max"}:
                raise Invalid(
                    "a formula: & | ^ and ~ join comparisons, as in (u > 0) & (v < 1); compare the value first"
                )
            waiting.extend(op[1:])
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Expr:
        function = _UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or options:
            known = ", ".join(sorted(_UFUNCS))
            asked = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise Invalid(
                f"a formula: np.{asked} cannot stand in it; of numpy's functions it may use: {known}"
            )
        return function(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Expr:
        name = getattr(function, "__name__", str(function))
        known = {"where": where, "clip": clip}.get(name)
        if known is not None and len(args) == 3 and not options:
            return known(*args)
        raise Invalid(
            f"a formula: np.{name} cannot stand in it; write it by operators, ab.where, ab.sqrt and the like"
        )

    def __getitem__(self, offset: Any) -> Expr:
        raise Invalid(
            "a formula: only a field has neighbours, not a formula of fields; write a function of the "
            "field, as in "
            "lap = lambda w: w[-1] + w[1] - 2 * w, or declare a temporary"
        )

    def __format__(self, _: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return text(self._tape.ops, self._number)


class Field(Expr):
    """A field or temporary: by itself its value at the cell, by offsets in brackets that of a neighbour.

    ``u[-1, 0]`` is the value one cell before along the slowest axis. There is one offset for each axis.
    """

    __slots__ = ("name",)

    def __init__(self, tape: Tape, name: str) -> None:
        super().__init__(tape, 0)
        self._number = tape.add("tap", name, None)._number
        self.name = name

    def __getitem__(self, offset: Any) -> Expr:
        given = offset if isinstance(offset, tuple) else (offset,)
        if len(given) != self._tape.dimensions or not all(_is_whole(number) for number in given):
            axes = self._tape.dimensions
            zeros = ", ".join(["-1", "0", "0"][:axes])
            raise Invalid(
                f"{self.name}[{shown_offset(offset)}]: the brackets hold a whole number for each of the {axes} "
                "axes, slowest first; "
                f"write {self.name}[{zeros}] or the like"
            )
        limited = tuple(max(-(2**31), min(2**31 - 1, int(number))) for number in given)
        return self._tape.add("tap", self.name, limited)

    def along(self, axis: int, distance: int) -> Expr:
        """Returns the value some cells away along one axis, 0 for the slowest."""
        axis, distance = _axis(self._tape, axis), whole("distance", distance)
        return self[tuple(distance if own == axis else 0 for own in range(self._tape.dimensions))]


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _tape_of(values: Iterable[Any]) -> Tape:
    for value in values:
        if isinstance(value, Expr):
            return value._tape
    return current()


def sqrt(x: Operand) -> Expr:
    """Returns the square root, correctly rounded."""
    return _tape_of([x]).expression(x)._unary("Sqrt")


def absolute(x: Operand) -> Expr:
    """Returns the value without its sign."""
    return _tape_of([x]).expression(x)._unary("Abs")


def floor(x: Operand) -> Expr:
    """Returns the greatest whole number that is not greater."""
    return _tape_of([x]).expression(x)._unary("Floor")


def exp(x: Operand) -> Expr:
    """Returns e to this power; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Exp")


def log(x: Operand) -> Expr:
    """Returns the natural logarithm; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Log")


def sin(x: Operand) -> Expr:
    """Returns the sine of radians; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Sin")


def cos(x: Operand) -> Expr:
    """Returns the cosine of radians; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Cos")


def tanh(x: Operand) -> Expr:
    """Returns the hyperbolic tangent; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Tanh")


def cbrt(x: Operand) -> Expr:
    """Returns the cube root; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Cbrt")


def expm1(x: Operand) -> Expr:
    """Returns e to this power, less one; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Expm1")


def log1p(x: Operand) -> Expr:
    """Returns the natural logarithm of this and one; numpy's may be the number beside it."""
    return _tape_of([x]).expression(x)._unary("Log1p")


def erf(x: Operand) -> Expr:
    """Returns the error function, which numpy lacks."""
    return _tape_of([x]).expression(x)._unary("Erf")


def arctan2(y: Operand, x: Operand) -> Expr:
    """Returns the angle in radians of the point (x, y); numpy's may be the number beside it."""
    return _tape_of([y, x]).expression(y)._binary("Atan2", x)


def minimum(a: Operand, b: Operand) -> Expr:
    """Returns the smaller of two values at each cell; ``b`` where either is NaN. See ``ab.min`` for
    reductions."""
    return _tape_of([a, b]).expression(a)._binary("Min", b)


def maximum(a: Operand, b: Operand) -> Expr:
    """Returns the larger of two values at each cell; ``b`` where either is NaN. See ``ab.max`` for
    reductions."""
    return _tape_of([a, b]).expression(a)._binary("Max", b)


def where(condition: Operand, yes: Operand, no: Operand) -> Expr:
    """Returns ``yes`` where the condition is not 0, else ``no``."""
    tape = _tape_of([condition, yes, no])
    operands = [tape.expression(value)._number for value in (condition, yes, no)]
    return tape.add("select", *operands)


def fma(a: Operand, b: Operand, c: Operand) -> Expr:
    """Returns ``a * b + c``, rounded once; numpy has nothing like it."""
    tape = _tape_of([a, b, c])
    return tape.add("fma", *(tape.expression(value)._number for value in (a, b, c)))


def coord(axis: int) -> Expr:
    """Returns the cell's index along an axis, 0 for the slowest, as a number that counts from 0."""
    tape = current()
    return tape.add("coord", _axis(tape, axis))


def _axis(tape: Tape, axis: Any) -> int:
    own = whole("axis", axis)
    if not 0 <= own < tape.dimensions:
        raise Invalid(
            f"axis {own}: the program has {tape.dimensions} axes; use one of them, 0 for the slowest"
        )
    return own


def laplacian(u: Field) -> Expr:
    """Returns the sum of the nearest neighbours less as many times the cell.

    Neighbours are added slowest axis first, from the low sides and then back from the high ones.
    """
    if not isinstance(u, Field):
        raise Invalid(f"ab.laplacian: {u!r} is no field; give one, or declare a temporary for a formula")
    dimensions = u._tape.dimensions
    terms = [u.along(axis, -1) for axis in range(dimensions)]
    terms += [u.along(axis, 1) for axis in reversed(range(dimensions))]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total - 2.0 * dimensions * u


def _on_either(method: str) -> Callable[[Operand, Operand], Expr]:
    def call(a: Operand, b: Operand) -> Expr:
        tape = _tape_of([a, b])
        result: Expr = getattr(tape.expression(a), method)(
            tape.expression(b) if isinstance(b, np.ndarray) else b
        )
        return result

    return call


def _composed(name: str, *operands: Operand) -> Expr:
    """Returns a function that is a formula of operators."""
    tape = _tape_of(operands)
    return tape.add(f"composed {name}", *(tape.expression(value)._number for value in operands))


def sign(x: Operand) -> Expr:
    """Returns 1 for positive values, -1 for negative ones, 0 for zeros."""
    return _composed("sign", x)


def ceil(x: Operand) -> Expr:
    """Returns the smallest whole number that is not less."""
    return _composed("ceil", x)


def trunc(x: Operand) -> Expr:
    """Returns the whole number between the value and 0 that is nearest to the value."""
    return _composed("trunc", x)


def rint(x: Operand) -> Expr:
    """Returns the nearest whole number, of two equally near ones the even one."""
    return _composed("round", x)


def clip(x: Operand, low: Operand, high: Operand) -> Expr:
    """Returns the value where it lies between two bounds, else the nearer of them."""
    return _composed("clip", x, low, high)


def tan(x: Operand) -> Expr:
    """Returns the tangent of radians; numpy's may be a number nearby."""
    return _composed("tan", x)


def arcsin(x: Operand) -> Expr:
    """Returns the angle of this sine; numpy's may be a number nearby."""
    return _composed("asin", x)


def arccos(x: Operand) -> Expr:
    """Returns the angle of this cosine; numpy's may be a number nearby."""
    return _composed("acos", x)


def arctan(x: Operand) -> Expr:
    """Returns the angle of this tangent; numpy's may be the number beside it."""
    return _composed("atan", x)


def sinh(x: Operand) -> Expr:
    """Returns the hyperbolic sine; numpy's may be a number nearby."""
    return _composed("sinh", x)


def cosh(x: Operand) -> Expr:
    """Returns the hyperbolic cosine; numpy's may be a number nearby."""
    return _composed("cosh", x)


_UFUNCS: dict[str, Callable[..., Expr]] = {
    "absolute": absolute,
    "add": _on_either("__add__"),
    "arccos": arccos,
    "arcsin": arcsin,
    "arctan": arctan,
    "arctan2": arctan2,
    "bitwise_and": _on_either("__and__"),
    "bitwise_or": _on_either("__or__"),
    "bitwise_xor": _on_either("__xor__"),
    "cbrt": cbrt,
    "ceil": ceil,
    "clip": clip,
    "cos": cos,
    "cosh": cosh,
    "divide": _on_either("__truediv__"),
    "equal": _on_either("__eq__"),
    "exp": exp,
    "expm1": expm1,
    "fabs": absolute,
    "float_power": _on_either("__pow__"),
    "floor": floor,
    "floor_divide": _on_either("__floordiv__"),
    "greater": _on_either("__gt__"),
    "greater_equal": _on_either("__ge__"),
    "invert": lambda a: ~a,
    "less": _on_either("__lt__"),
    "less_equal": _on_either("__le__"),
    "log": log,
    "log1p": log1p,
    "logical_and": _on_either("__and__"),
    "logical_not": lambda a: ~_tape_of([a]).expression(a),
    "logical_or": _on_either("__or__"),
    "logical_xor": _on_either("__xor__"),
    "maximum": maximum,
    "minimum": minimum,
    "multiply": _on_either("__mul__"),
    "negative": lambda a: -a,
    "not_equal": _on_either("__ne__"),
    "positive": lambda a: a,
    "power": _on_either("__pow__"),
    "reciprocal": lambda a: 1.0 / a,
    "remainder": _on_either("__mod__"),
    "rint": rint,
    "sign": sign,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": lambda a: a * a,
    "subtract": _on_either("__sub__"),
    "tan": tan,
    "tanh": tanh,
    "trunc": trunc,
}
