"""What the arguments of a program's function stand for, and what its stages do.

Declarations are the defaults of arguments::

    def sound(p=ab.field(start="gaussian"), v=ab.field(on="x-faces"), dx=0.01, dt=ab.scalar()):
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Any, Union

from . import words
from .arguments import number_of, text_of, whole
from .boundaries import Boundary
from .errors import Invalid, Limit
from .expressions import Expr, Operand

__all__ = [
    "dot",
    "end_of_step",
    "extent",
    "field",
    "max",
    "min",
    "parameter",
    "scalar",
    "stage",
    "sum",
    "temporary",
]


@dataclass(frozen=True)
class FieldPart:
    """A declared field."""

    on: str
    start: Any
    boundary: Boundary | None
    components: int
    precision: str | None


@dataclass(frozen=True)
class TemporaryPart:
    """A declared temporary."""

    on: str


@dataclass(frozen=True)
class ScalarPart:
    """A declared computed scalar."""

    initial: float | None
    about: str


@dataclass(frozen=True)
class ExtentPart:
    """A declared extent of the domain."""

    axis: str
    about: str


@dataclass(frozen=True)
class ParameterPart:
    """A declared parameter."""

    default: float
    about: str


MOST_COMPONENTS = 4096
"""The most components of a field."""
_ON = '"cells", "nodes", "x-faces" or "x-edges"'

Part = Union[FieldPart, TemporaryPart, ScalarPart, ExtentPart, ParameterPart]


# Checkers see the arguments of a program's function as what they are while it is recorded: hence `Any`.


def field(
    on: str = "cells",
    *,
    start: Any = None,
    boundary: Boundary | None = None,
    components: int = 0,
    precision: str | None = None,
) -> Any:
    """Declares a field, which lives from step to step.

    ``on`` is ``"cells"``, ``"nodes"``, ``"x-faces"`` (normal to x), ``"x-edges"`` (along x), or the same of y
    and z, behind each as in ``"cells of level 2"`` how often two cells are one on its coarser grid. Node i is the low end of cell i, and face i lies between the cells i - 1 and i. ``start`` is a
    number or a name such as ``"random:1"``, ``"gaussian"``, ``"point"``; a run that gives none starts with
    it. ``boundary`` is the field's own. With ``components``, the function gets a list of as many fields.
    ``precision``, ``"f32"``, ``"f16"`` or ``"bf16"``, is that to which its values are rounded, and in which a
    device may store them; what follows from such fields alone is computed in f32.
    """
    if isinstance(start, str):
        start = words.start(start)
    elif start is not None:
        start = number_of("start", start)
    count = whole("components", components, least=0)
    if count > MOST_COMPONENTS:
        raise Limit(f"components: {count} asked, the limit is {MOST_COMPONENTS}; declare fewer")
    own = None if precision is None else text_of("precision", precision, '"f16"')
    return FieldPart(text_of("on", on, _ON), start, boundary, count, own)


def temporary(on: str = "cells") -> Any:
    """Declares a temporary, an intermediate of a step that has no state and no boundary.

    A stage sets it, and later stages of the same step read it; beyond the domain it is its formula there.
    """
    return TemporaryPart(text_of("on", on, _ON))


def scalar(initial: float | None = None, about: str = "") -> Any:
    """Declares a computed scalar, which stages make and which lives from step to step.

    Without a value before the first step, a stage must make it before another one uses it.
    """
    own = None if initial is None else number_of("initial", initial)
    return ScalarPart(own, text_of("about", about, '"time in s"'))


def extent(axis: str, about: str = "") -> Any:
    """Declares a scalar that is the number of the domain's cells along ``"x"``, ``"y"`` or ``"z"``."""
    return ExtentPart(text_of("axis", axis, '"x"'), text_of("about", about, '"cells along x"'))


def parameter(default: float, about: str = "") -> Any:
    """Declares a parameter with its meaning; a number alone as default is one without."""
    return ParameterPart(number_of("default", default), text_of("about", about, '"width in m"'))


@dataclass(frozen=True)
class Reduction:
    """A formula that is reduced to a scalar."""

    how: str
    value: Expr
    on: str | None
    margins: Mapping[str, tuple[int, int]]
    every: int


def max(
    value: Expr,
    *,
    on: str | None = None,
    margins: Mapping[str, tuple[int, int]] | None = None,
    every: int = 1,
) -> Reduction:
    """Reduces a formula to its largest value, for a scalar of a stage.

    ``on`` says where the values stand, as in ``ab.field``; unless given, where the formula's fields do.
    ``margins`` leaves values out at the sides of axes: ``{"x": (1, 0)}`` the first along x. With ``every=8``
    it is made in steps 0, 8, 16, … of a run alone, and the steps between keep its value: kernels can then do
    them at a time, but a time step that follows from it has to be stable for as long, so leave it room.
    """
    return _reduction("max", value, on, margins, every)


def min(
    value: Expr,
    *,
    on: str | None = None,
    margins: Mapping[str, tuple[int, int]] | None = None,
    every: int = 1,
) -> Reduction:
    """Reduces a formula to its smallest value; the arguments are those of ``ab.max``."""
    return _reduction("min", value, on, margins, every)


def sum(
    value: Expr,
    *,
    on: str | None = None,
    margins: Mapping[str, tuple[int, int]] | None = None,
    every: int = 1,
) -> Reduction:
    """Reduces a formula to the sum of its values, in one fixed tree; the arguments are those of
    ``ab.max``."""
    return _reduction("sum", value, on, margins, every)


def dot(a: Expr, b: Expr, *, on: str | None = None, every: int = 1) -> Reduction:
    """Reduces two formulas to the sum of their products."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        raise Invalid(f"ab.dot: {a!r} and {b!r} are no formulas; give fields or formulas of them")
    return _reduction("sum", a * b, on, None, every)


_LONGEST_CYCLE = 1024


def _reduction(
    how: str, value: Expr, on: str | None, margins: Mapping[str, tuple[int, int]] | None, every: int
) -> Reduction:
    if on is not None:
        text_of("on", on, _ON)
    steps = whole("every", every, least=1)
    if steps > _LONGEST_CYCLE:
        raise Limit(f"every: {steps} steps asked, the limit is {_LONGEST_CYCLE}; give fewer")
    return Reduction(how, value, on, {} if margins is None else margins, steps)


@dataclass(frozen=True)
class Stage:
    """New values of some fields, or of some scalars, with what is said besides."""

    values: Mapping[str, Operand | Reduction]
    name: str = ""
    where: Expr | None = None
    points: Sequence[Sequence[int]] = attribute(default_factory=list)


def stage(
    values: Mapping[str, Operand | Reduction],
    *,
    name: str = "",
    where: Expr | None = None,
    points: Sequence[Sequence[int]] = (),
) -> Stage:
    """Describes a stage of a program: the new values by name, and more than a plain dict can say.

    Where ``where`` is 0, the old values stay. With ``points``, only the values at these indices are set, as by a
    source; each has one number an axis, slowest first.
    """
    if not isinstance(values, Mapping):
        raise Invalid(f'ab.stage: {values!r} is no dict; give new values by name, as in {{"u": …}}')
    return Stage(values, text_of("name", name, '"advect"'), where, points)


@dataclass(frozen=True)
class Wall:
    """A condition that a field meets at a side."""

    field: str
    sides: str
    condition: str
    values: tuple[Operand, ...]


_CONDITIONS = {"dirichlet": 1, "neumann": 1, "robin": 3}
"""The conditions at walls, and how many values each has."""


def wall(
    field: Any,
    sides: str,
    *,
    dirichlet: Operand | None = None,
    neumann: Operand | None = None,
    robin: tuple[Operand, Operand, Operand] | None = None,
) -> Wall:
    """Has a field meet a condition at a side (``"x-"``), at both of an axis (``"x"``) or at ``"all"``, to second order.

    ``dirichlet`` is the value at the wall, ``neumann`` the derivative along the outward normal in the units of the
    program's spacing, ``robin`` the a, b and c of a·u + b·∂u/∂n = c. Each is a number or a formula of scalars and of
    places along the wall. A program yields it among its stages, wherever that is; a later one takes the place of an
    earlier one at the same side::

        yield ab.wall(u, "y-", dirichlet=ab.sin(ab.position("x")) * ab.exp(-time))
    """
    first = field[0] if isinstance(field, list) and field else field
    own = getattr(first, "name", first)
    if isinstance(own, str) and first is not field:
        own = own.partition("[")[0]
    if not isinstance(own, str):
        raise Invalid(f"ab.wall: {field!r} is no field; give one, or the name of one")
    given = {"dirichlet": dirichlet, "neumann": neumann, "robin": robin}
    chosen = [(name, value) for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise Invalid(f"ab.wall: {own} gets {len(chosen)} conditions; give one of {', '.join(given)}")
    name, value = chosen[0]
    values: tuple[Any, ...] = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) != _CONDITIONS[name]:
        raise Invalid(f"ab.wall: {name} takes {_CONDITIONS[name]} values; give a, b and c, as in robin=(h, 1, 0)")
    return Wall(own, text_of("sides", sides, '"x-"'), name, values)


class EndOfStep:
    """The type of ``end_of_step``."""

    def __repr__(self) -> str:
        return "end_of_step"


end_of_step = EndOfStep()
"""Yielded between stages, it ends a step: what follows is the next one, and the steps are taken in turn."""
