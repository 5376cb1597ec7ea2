"""Loops in a step, and linear systems that a step solves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .arguments import number_of, text_of, whole
from .errors import Invalid, Limit
from .expressions import Expr, Field, Operand, current

__all__ = ["once", "repeat", "solve"]


_MOST_TURNS = 2**53


def _most(most: Any) -> int:
    """Returns the most turns of a loop, or iterations of a solve."""
    own = whole("most", most, least=1)
    if own > _MOST_TURNS:
        raise Limit(f"most: {own} asked, the limit is {_MOST_TURNS}; give fewer")
    return own


@dataclass(frozen=True)
class Repeat:
    """Stages that are carried out turn by turn."""

    stages: Iterable[Any]
    most: int
    until: str | None
    once: bool = False


def _stages(what: str, stages: Any) -> Iterable[Any]:
    """Returns one stage or several as several."""
    own = [stages] if isinstance(stages, Mapping) or not isinstance(stages, Iterable) else stages
    if isinstance(own, (str, bytes)):
        raise Invalid(f"{what}: {stages!r} is no list of stages; give dicts of new values by name")
    return own


def repeat(stages: Any, *, most: int, until: str | None = None) -> Repeat:
    """Carries stages out turn by turn, at most ``most`` times, until a condition on a computed scalar holds.

    ``stages`` is one stage, several in a list, or what a generator yields. The condition is tested before each turn: where it
    holds at once, or the scalar is not a number, there is none; without one there are ``most`` turns. Temporaries of a loop
    live within a turn, and a loop has no loop within::

        yield {"change": 1.0}
        yield ab.repeat(
            [{"change": ab.max(abs(ab.laplacian(p) - f))}, {"p": p + 0.25 * (ab.laplacian(p) - f)}],
            most=500,
            until="change <= 1e-6",
        )
    """
    own = _stages("ab.repeat", stages)
    if until is not None:
        text_of("until", until, '"change <= 1e-6"')
    return Repeat(own, _most(most), until)


def once(stages: Any) -> Repeat:
    """Carries stages out once for all steps, where they make the same in each.

    ``stages`` is what :func:`repeat` takes. They make fields of parameters, of places and of fields that no stage makes: a run
    carries them out in its first step, and again once a parameter or a field was set from outside. Where one of them reads
    anything else they are carried out in each step. What they make must not be made by other stages, and what they read of it
    they must have made before::

        yield ab.once({"damping": ab.exp(-strength * ab.position(1))})
        yield {"u": damping * u}
    """
    return Repeat(_stages("ab.once", stages), 1, None, once=True)


@dataclass(frozen=True)
class Solve:
    """A linear system that a step solves.

    ``iterations`` and ``residual`` are scalars of the program, for the stages that follow.
    """

    unknown: str
    operator: Expr
    rhs: Expr
    method: str
    tolerance: float
    most: int
    null_space: bool
    iterations: Expr
    residual: Expr


def solve(
    unknown: Any,
    *,
    operator: Expr | Callable[[Any], Expr],
    rhs: Operand,
    tolerance: float = 1e-8,
    most: int = 10_000,
    method: str = "cg",
    null_space: bool = False,
) -> Solve:
    """Solves a linear system for a field within a step, from the values that it has.

    ``operator`` is a formula linear in the field, or a function that returns it of the field; ``rhs`` is what it is to be
    equal to at all of the field's values, in which the field is its value before the solve. What stands beyond the sides and at walls follows the field's boundaries and
    conditions, values included. The solve ends where the residual's norm is ``tolerance`` times that of the right-hand side,
    or after ``most`` iterations: ``"cg"`` is for symmetric operators, ``"multigrid"`` for those of a cell and its neighbours, with
    iterations that grow little with the domain, ``"direct"`` for those whose coefficients change along their own axis alone or nowhere,
    by transforms along the axes, ``"bicgstab"`` for others. With ``null_space`` the
    operator may give 0 for a constant, as with derivatives alone at all sides: the mean of ``rhs`` is left out then, and the
    solution's mean is 0::

        pressure = ab.solve(p, operator=ab.laplacian, rhs=divergence / dt, tolerance=1e-6, null_space=True)
        yield pressure

    ``pressure.iterations`` and ``pressure.residual`` are scalars then, by their names ``p_iterations`` and ``p_residual``.
    """
    own = getattr(unknown, "name", unknown)
    if not isinstance(own, str):
        raise Invalid(f"ab.solve: {unknown!r} is no field; give one, or the name of one")
    tape = current()
    value: Any = operator
    if callable(operator) and not isinstance(operator, (Expr, type)):
        value = operator(unknown if isinstance(unknown, Field) else Field(tape, own))
    if not isinstance(value, Expr):
        raise Invalid(f"ab.solve: the operator is {value!r}; give a formula of {own}, as in operator=ab.laplacian({own})")
    if not isinstance(null_space, bool):
        raise Invalid(f"ab.solve: null_space is {null_space!r}; give True or False")
    return Solve(
        own,
        value,
        tape.expression(rhs),
        text_of("method", method, '"cg"'),
        number_of("tolerance", tolerance),
        _most(most),
        null_space,
        tape.add("scalar", f"{own}_iterations"),
        tape.add("scalar", f"{own}_residual"),
    )
