"""Random numbers of each cell and step.

They follow from the cell's indices, the step, the number of a stream and the program's parameter ``seed`` alone: the same bits
on every device and in every run of the same seed.
"""

from __future__ import annotations

from typing import Any

from .arguments import whole
from .errors import Limit
from .expressions import Expr, Operand, Tape, current

__all__ = ["bernoulli", "exponential", "normal", "uniform"]

_MOST_STREAMS = 1 << 16


def _scaled(number: Expr, offset: Operand, scale: Operand) -> Expr:
    """Returns a number times a scale, and an offset more; without what changes nothing."""
    tape = current()
    offset, scale = tape.expression(offset), tape.expression(scale)
    scaled = number if _is(scale, 1.0) else scale * number
    return scaled if _is(offset, 0.0) else offset + scaled


def _is(value: Expr, number: float) -> bool:
    return value._tape.ops[value._number] == ("constant", number)


def _drawn(distribution: str, stream: Any) -> Expr:
    """Returns the number of a distribution, from a stream or from the next one that none has asked for."""
    tape: Tape = current()
    own = tape.streams if stream is None else whole("stream", stream)
    if not 0 <= own < _MOST_STREAMS:
        raise Limit(f"stream of random numbers: {own} asked, limit 0 to {_MOST_STREAMS - 1}; number streams from 0")
    tape.streams = max(tape.streams, own + 1)
    return tape.add(f"draw {distribution}", own)


def uniform(low: Operand = 0.0, high: Operand = 1.0, *, stream: int | None = None) -> Expr:
    """Returns a random number of the cell and step, uniform from ``low`` to below ``high``.

    A stream has one number for each cell and step, and those of two streams are independent. Each call has a stream of its
    own, counted from 0 in the order of the calls, unless it names one: two that name the same have the same number.
    A number has 24 random bits in float32, 53 in float64; with bounds it may round up to ``high``.

    The program has a parameter ``seed``, 0 unless given, and two scalars that count the steps::

        @ab.stencil(2, boundary="periodic")
        def noisy(u):
            return u + 0.2 * ab.laplacian(u) + 0.01 * ab.normal()

        sim = noisy.start(shape=(256, 256), seed=7)
    """
    number, low = _drawn("uniform", stream), current().expression(low)
    return _scaled(number, low, high if _is(low, 0.0) else current().expression(high) - low)


def exponential(scale: Operand = 1.0, *, stream: int | None = None) -> Expr:
    """Returns a random number of the cell and step of the exponential distribution of this mean: see `uniform`."""
    return _scaled(_drawn("exponential", stream), 0.0, scale)


def normal(mean: Operand = 0.0, deviation: Operand = 1.0, *, stream: int | None = None) -> Expr:
    """Returns a random number of the cell and step of the normal distribution: see `uniform`. By the formula of Box and
    Muller."""
    return _scaled(_drawn("normal", stream), mean, deviation)


def bernoulli(probability: Operand, *, stream: int | None = None) -> Expr:
    """Returns 1 with this probability, else 0, for the cell and step: see `uniform`."""
    return _drawn("uniform", stream) < probability
