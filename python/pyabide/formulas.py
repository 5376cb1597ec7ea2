"""Recorded formulas as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Op: TypeAlias = tuple[Any, ...]
"""A recorded operation: its name, and the numbers of its operands or what it stands for."""


def is_draw(op: Op) -> bool:
    """Returns whether an operation draws a random number: of the distribution in its name, from a stream."""
    return bool(op[0].startswith("draw "))


def operands(op: Op) -> tuple[int, ...]:
    """Returns the numbers of an operation's operands."""
    return () if is_draw(op) or op[0] in {"constant", "scalar", "tap", "coord"} else op[1:]


def needed(ops: Sequence[Op], outputs: Iterable[int]) -> set[int]:
    """Returns the numbers of all operations that some of them need."""
    found, waiting = set[int](), list(outputs)
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting.extend(operands(ops[at]))
    return found


def shown_offset(offset: Any) -> str:
    """Returns what stands in the brackets of a field."""
    return ", ".join(map(repr, offset)) if isinstance(offset, tuple) else repr(offset)


_SIGNS = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "Div": "/",
    "Pow": "**",
    "Less": "<",
    "LessEqual": "<=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "Equal": "==",
    "NotEqual": "!=",
}


def text(ops: Sequence[Op], number: int, limit: int = 400) -> str:
    """Returns a formula as it could be written, cut where it is long."""

    left = limit

    def shown(number: int) -> str:
        # What is used in several places is written in each: there is no end to that but a limit.
        nonlocal left
        left -= 1
        op = ops[number]
        if left < 0:
            return "…"
        match op[0]:
            case "constant":
                return repr(op[1])
            case "scalar":
                return str(op[1])
            case "tap":
                return str(op[1]) if op[2] is None else f"{op[1]}[{shown_offset(op[2])}]"
            case "coord":
                return f"coord({op[1]})"
            case name if is_draw(op):
                return f"{name.removeprefix('draw ')}(stream={op[1]})"
            case "Neg":
                return f"-{shown(op[1])}"
            case sign if sign in _SIGNS:
                return f"({shown(op[1])} {_SIGNS[sign]} {shown(op[2])})"
            case name:
                name = name.removeprefix("composed ")
                called = {"Atan2": "arctan2", "Min": "minimum", "Max": "maximum", "select": "where"}.get(name, name.lower())
                return f"{called}({', '.join(shown(operand) for operand in op[1:])})"

    whole = shown(number)
    whole = whole[1:-1] if whole.startswith("(") and whole.endswith(")") and _is_one_pair(whole) else whole
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _is_one_pair(whole: str) -> bool:
    depth = 0
    for place, letter in enumerate(whole):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(whole) - 1
    return False
