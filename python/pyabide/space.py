"""Places in space and derivatives along axes, in the units of a program's spacing."""

from __future__ import annotations

from typing import Any

from .arguments import text_of, whole
from .errors import Invalid
from .expressions import Expr, Operand, Tape, current
from .formulas import is_draw, needed, operands

__all__ = ["d", "d2", "position"]

_EXAMPLE = '"cells", "nodes", "x-faces" or "x-edges"'
_PLACES = ["cells", "nodes", *(f"{axis}-{kind}" for axis in "xyz" for kind in ("faces", "edges"))]


def _named_axis(tape: Tape, axis: Any) -> int:
    """Returns the number of an axis of a letter or a number."""
    names = ["z", "y", "x"][3 - tape.dimensions :]
    if isinstance(axis, str):
        if axis not in names:
            raise Invalid(f"axis `{axis}`: the program has the axes {', '.join(names)}; use one of them")
        return names.index(axis)
    own = whole("axis", axis)
    if not 0 <= own < tape.dimensions:
        raise Invalid(f"axis {own}: the program has {tape.dimensions} axes; use one of them, 0 for the slowest")
    return own


def _along(tape: Tape, kind: str, axis: int) -> Expr | None:
    value = tape.grid.get(kind, {}).get(axis)
    if value is None:
        return None
    return tape.add("scalar", value) if isinstance(value, str) else tape.expression(value)


def position(axis: str | int, *, on: str = "cells") -> Expr:
    """Returns the place of a formula's values along an axis, in the units of the program's spacing.

    ``on`` says where they stand, as in ``ab.field``: the place is the origin, and the spacing times the index for values
    on nodes of the axis, times half a cell more for those in the middle of cells.
    """
    tape = current()
    own = _named_axis(tape, axis)
    name = ["z", "y", "x"][3 - tape.dimensions + own]
    if text_of("on", on, _EXAMPLE) not in _PLACES:
        raise Invalid(f"on: no place of values is named `{on}`; known: {', '.join(_PLACES)}")
    on_nodes = on == "nodes" or on == f"{name}-faces" or (on.endswith("-edges") and on != f"{name}-edges")
    index = tape.add("coord", own)
    cells = index if on_nodes else index + 0.5
    spacing, origin = (_along(tape, kind, own) for kind in ("spacing", "origin"))
    spaced = cells if spacing is None else cells * spacing
    return spaced if origin is None else origin + spaced


def d(value: Expr, axis: str | int) -> Expr:
    """Returns the first derivative of a formula along an axis, of second order: ``(a[1] - a[-1]) * (0.5 / dx)``, with
    the program's spacing."""
    tape, own = current(), _named_axis(current(), axis)
    value, spacing = tape.expression(value), _along(tape, "spacing", own)
    rise = _shifted(value, own, 1) - _shifted(value, own, -1)
    return rise * (0.5 if spacing is None else 0.5 / spacing)


def d2(value: Expr, axis: str | int) -> Expr:
    """Returns the second derivative of a formula along an axis: ``(a[-1] - 2 a + a[1]) * (1 / dx**2)``, with the
    program's spacing."""
    tape, own = current(), _named_axis(current(), axis)
    value, spacing = tape.expression(value), _along(tape, "spacing", own)
    rise = _shifted(value, own, -1) - 2.0 * value + _shifted(value, own, 1)
    return rise if spacing is None else rise * (1.0 / (spacing * spacing))


def _shifted(value: Expr, axis: int, by: int) -> Expr:
    """Returns a formula's value at a cell so far away along an axis."""
    tape = value._tape
    made: dict[int, Expr] = {}
    for number in sorted(needed(tape.ops, [value._number])):
        op = tape.ops[number]
        if op[0] == "tap":
            offset = [0] * tape.dimensions if op[2] is None else list(op[2])
            offset[axis] += by
            made[number] = tape.add("tap", op[1], tuple(offset))
        elif is_draw(op):
            raise Invalid(
                "a formula at another cell: it draws random numbers, which are those of the cell; give them to a field "
                "in a stage before, and read that"
            )
        elif op[0] == "coord":
            index = tape.add(*op)
            made[number] = index + by if op[1] == axis else index
        elif inner := operands(op):
            made[number] = tape.add(op[0], *(made[operand]._number for operand in inner))
        else:
            made[number] = tape.add(*op)
    return made[value._number]
