"""Random numbers drawn while a function is recorded: each is drawn once, and stands in the formula for ever."""

from __future__ import annotations

import functools
import random
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["watched"]

_MAKERS = {"default_rng", "RandomState", "SystemRandom", "Generator", "PCG64"}
"""Names that make a generator. The numbers that it draws are noticed by nothing else."""


@contextmanager
def watched(function: Any, name: str) -> Iterator[None]:
    """Warns where random numbers are drawn within the block, in which a function is recorded."""
    generators = [random, np.random, *_generators(function)]
    before = [_state(generator) for generator in generators]
    yield
    drawn = any(_state(generator) != own for generator, own in zip(generators, before, strict=True))
    if drawn or any(_MAKERS & _names(code) for code in _codes(function)):
        warnings.warn(
            f"{name}: it draws random numbers while it is recorded, once: the same numbers stand in each cell and "
            "step. For random values, make them a field, as in start(noise=rng.random(shape)), and write it anew "
            'between runs, as in sim["noise"] = rng.random(shape)',
            UserWarning,
            stacklevel=_outside(),
        )


def _state(generator: Any) -> str:
    """Returns what changes with each number that a generator draws, as text, which compares as a whole."""
    if isinstance(generator, np.random.Generator):
        return _text(generator.bit_generator.state)
    if generator is np.random or isinstance(generator, np.random.RandomState):
        return _text(generator.get_state(legacy=False))
    return repr(generator.getstate())


def _text(state: Any) -> str:
    if isinstance(state, dict):
        return repr({name: _text(own) for name, own in state.items()})
    return state.tobytes().hex() if isinstance(state, np.ndarray) else repr(state)


def _generators(function: Any) -> list[Any]:
    """Returns the generators that a function can reach: of its module, its closure, its defaults, its object."""
    found: list[Any] = []
    for own in _functions(function):
        names = set[str]().union(*(_names(code) for code in _within(own.__code__)))
        cells = []
        for cell in own.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:
                continue
        found += [own.__globals__[name] for name in names if name in own.__globals__]
        found += [*cells, *(own.__defaults__ or ()), *(own.__kwdefaults__ or {}).values()]
    for holder in (getattr(function, "__self__", None), function):
        found += list(getattr(holder, "__dict__", {}).values())
    if isinstance(function, functools.partial):
        found += [*function.args, *function.keywords.values()]
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    return [own for own in found if isinstance(own, kinds) and not isinstance(own, random.SystemRandom)]


def _functions(function: Any) -> Iterator[types.FunctionType]:
    """Returns the functions of Python that a call of an object runs first."""
    if isinstance(function, functools.partial):
        yield from _functions(function.func)
    elif isinstance(function, types.FunctionType):
        yield function
    elif isinstance(function, types.MethodType):
        yield from _functions(function.__func__)
    else:
        called: Any = getattr(type(function), "__call__", None)
        if isinstance(called, types.FunctionType):
            yield called


def _codes(function: Any) -> Iterator[types.CodeType]:
    for own in _functions(function):
        yield from _within(own.__code__)


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    """Returns a function's code and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _within(constant)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names) | set(code.co_freevars)


def _outside() -> int:
    """Returns the level of the frame that asked for the recording, which a warning points to."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "pyabide",
        "contextlib",
    ):
        level, frame = level + 1, frame.f_back
    return level
