"""Boundaries as Python says them: a word, or a dict of axes, sides and fields."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TypeAlias, Union

from . import words
from .arguments import number_of
from .errors import Invalid

Boundary: TypeAlias = Union[str, float, Mapping[str, Union[str, float, Mapping[str, Union[str, float]]]]]
"""``"periodic"``, a number for what is seen beyond, or a dict.

A word may be a condition at a wall: ``"dirichlet=1"``, ``"neumann=0"``, ``"robin=h/1/0"``, with numbers and names of
scalars. A dict's keys are axes (``"x"``), sides (``"x-"``, ``"x+"``) or fields; a field's value may be a dict of axes
and sides again.
"""

_SIDES = {axis + side for axis in "xyz" for side in ("", "-", "+")}


def text(boundary: Boundary, fields: tuple[str, ...] = ()) -> str:
    """Returns a boundary as Abide reads it, as in ``y=periodic,x-=mirror,u:x=-reflect``."""
    if not isinstance(boundary, Mapping):
        return _word(boundary)
    parts = []
    for name, value in boundary.items():
        is_side = name in _SIDES and name not in fields
        if isinstance(value, Mapping):
            if is_side:
                raise Invalid(
                    f"boundary: {name} is a side, and a dict stands there; give it a word, or name a field"
                )
            parts += [f"{name}:{side}={_word(word)}" for side, word in value.items()]
        elif is_side:
            parts.append(f"{name}={_word(value)}")
        else:
            parts.append(f"{name}:{_word(value)}")
    if not parts:
        raise Invalid(
            'boundary: the dict is empty; give a word for an axis, as in {"x": "periodic"}, or leave it out'
        )
    return ",".join(parts)


def _word(value: object) -> str:
    if isinstance(value, str):
        return words.boundary(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return f"constant={number_of('boundary', value)!r}"
    raise Invalid(
        f'boundary: {value!r} is neither a word nor a number; write "periodic", "mirror", "clamp", "fixed", '
        '"constant=0" or the like'
    )
