"""Recorded formulas: as text, and their values where they are of parameters and numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

Op: TypeAlias = tuple[Any, ...]
"""A recorded operation: its name, and the numbers of its operands or what it stands for."""


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
            case "Neg":
                return f"-{shown(op[1])}"
            case sign if sign in _SIGNS:
                return f"({shown(op[1])} {_SIGNS[sign]} {shown(op[2])})"
            case name:
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


def _power(a: float, b: float) -> float:
    """Returns a power, where it is real: Python's own goes on to complex numbers."""
    own = a**b
    if isinstance(own, complex):
        raise ValueError(f"{a} to the power {b} is no real number")
    return float(own)


_OF_NUMBERS: dict[str, Callable[..., float]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Pow": _power,
    "Neg": lambda a: -a,
    "Abs": abs,
    "Sqrt": math.sqrt,
    "Floor": lambda a: float(math.floor(a)),
    "Exp": math.exp,
    "Log": math.log,
    "Sin": math.sin,
    "Cos": math.cos,
    "Tanh": math.tanh,
    "Cbrt": lambda a: float(np.cbrt(a)),
    "Expm1": math.expm1,
    "Log1p": math.log1p,
    "Erf": math.erf,
    "Atan2": math.atan2,
    "Min": lambda a, b: a if a < b else b,
    "Max": lambda a, b: a if a > b else b,
    "Less": lambda a, b: float(a < b),
    "LessEqual": lambda a, b: float(a <= b),
    "Greater": lambda a, b: float(a > b),
    "GreaterEqual": lambda a, b: float(a >= b),
    "Equal": lambda a, b: float(a == b),
    "NotEqual": lambda a, b: float(a != b),
    "fma": lambda a, b, c: float(Fraction(a) * Fraction(b) + Fraction(c)),
    "select": lambda condition, yes, no: yes if condition != 0 else no,
}


def evaluate(ops: Sequence[Op], number: int, parameters: dict[str, float]) -> float:
    """Returns the value of a formula of parameters and numbers, as Python computes it."""
    needed, waiting = set[int](), [number]
    while waiting:
        at = waiting.pop()
        if at not in needed:
            needed.add(at)
            if ops[at][0] not in {"constant", "scalar"}:
                waiting.extend(ops[at][1:])
    values: dict[int, float] = {}
    for at in sorted(needed):
        op = ops[at]
        match op[0]:
            case "constant":
                values[at] = op[1]
            case "scalar":
                values[at] = parameters[op[1]]
            case name:
                values[at] = _OF_NUMBERS[name](*(values[operand] for operand in op[1:]))
    return values[number]
