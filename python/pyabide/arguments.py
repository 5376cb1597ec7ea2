"""Arguments as Python gives them, in the form in which Abide takes them."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import words
from .errors import Invalid


def number_of(name: str, value: Any) -> float:
    """Returns the value of a parameter or scalar."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise Invalid(f"{name}: {value!r} is no number; give one") from None
    except OverflowError:
        raise Invalid(
            f"{name}: the number is beyond float64, whose largest is 1.8e308; give a smaller one"
        ) from None


def whole(name: str, value: Any, *, least: int | None = None) -> int:
    """Returns a whole number, of Python or numpy."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        own = operator.index(value)
    except TypeError:
        raise Invalid(f"{name}: {value!r} is no whole number; give one") from None
    if least is not None and own < least:
        raise Invalid(f"{name}: {own} is below {least}; give {least} or more")
    return own


def flag(name: str, value: Any) -> bool:
    """Returns a truth value; other things than truth values are refused."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise Invalid(f"{name} is {type(value).__name__}; give True or False")


def wholes(name: str, values: Any, example: str) -> list[int]:
    """Returns a list of whole numbers."""
    try:
        return [whole(name, value) for value in values]
    except TypeError:
        raise Invalid(f"{name}: {values!r} holds no whole numbers; give some, as in {example}") from None


def text_of(name: str, value: Any, example: str) -> str:
    """Returns a text, such as a name or a word."""
    if not isinstance(value, str):
        raise Invalid(f"{name}: {value!r} is no text; give one, as in {example}")
    return value


def path_of(path: Any) -> str:
    """Returns a file's path."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise Invalid(f"{path!r}: it is no path; give a text or a pathlib.Path") from None


def callable_of(name: str, value: Any) -> Callable[..., Any]:
    """Returns a function."""
    if not callable(value):
        raise Invalid(f"{name}: {value!r} is no function; give one")
    own: Callable[..., Any] = value
    return own


def extents(shape: Iterable[int] | int | None) -> list[int] | None:
    """Returns the extents that a shape names."""
    if shape is None:
        return None
    try:
        if isinstance(shape, (str, bytes)):
            raise TypeError
        is_one = not isinstance(shape, Iterable) or (isinstance(shape, np.ndarray) and shape.ndim == 0)
        own = [shape] if is_one else list(shape)  # type: ignore[arg-type]
        own = [whole("shape", extent) for extent in own]
    except (TypeError, Invalid):
        raise Invalid(
            f"shape: {shape!r} is no shape; give whole numbers, slowest axis first, as in (512, 512)"
        ) from None
    if any(extent < 1 for extent in own):
        raise Invalid(f"shape: {tuple(own)} has an extent below 1; give whole numbers above 0")
    if any(extent >= 2**63 for extent in own):
        raise Invalid(f"shape: {tuple(own)} has an extent beyond 64 bits; give smaller ones")
    return own


Devices = int | str | Sequence[int]
"""The devices of a run: so many, ``"all"``, or those of these numbers."""


def devices_named(devices: Any) -> str | list[int] | None:
    """Returns devices as Rust reads them."""
    if devices is None or isinstance(devices, str):
        return devices
    try:
        if isinstance(devices, (Sequence, np.ndarray)) and not isinstance(devices, bytes):
            return [whole("devices", number, least=0) for number in devices]
        return str(whole("devices", devices))
    except (TypeError, Invalid):
        raise Invalid(
            f'devices: {devices!r} names none; give a number, "all", or numbers of devices as in [0, 2]'
        ) from None


def backend_named(backend: Any) -> str:
    """Returns a backend's name as Rust reads it."""
    return words.backend(
        text_of("backend", "auto" if backend is None else backend, '"auto", "cuda", "wgpu" or "cpu"')
    )


def dtype_name(dtype: Any) -> str | None:
    """Returns Abide's name of a type."""
    if dtype is None:
        return None
    try:
        name = words.DTYPES.get(dtype.lower(), dtype.lower()) if isinstance(dtype, str) else dtype
        # torch writes torch.float32.
        name = str(name).removeprefix("torch.") if type(name).__module__ == "torch" else name
        found = {"float32": "f32", "float64": "f64"}.get(np.dtype(name).name)
    except (TypeError, ValueError, AttributeError):
        found = None
    if found is None:
        raise Invalid(f"dtype: {dtype!r} is not known; give numpy's float32 or float64")
    return found


def steps_of(name: str, steps: Any) -> int:
    """Returns a number of steps."""
    own = whole(name, steps)
    if not 0 <= own < 2**64:
        raise Invalid(f"{name}: {own} steps cannot be done; give a number from 0 to 2**64 - 1")
    return own


def probes_of(probes: Any) -> list[tuple[str, list[int]]]:
    """Returns probes: pairs of a field and an index, or a dict of an index, or a list of them, for each field."""
    example = '[("u", (3, 4))], or {"u": (3, 4)}'
    try:
        pairs = list(_pairs(probes) if isinstance(probes, Mapping) else probes)
        return [(text_of("probes", field, '"u"'), _index(index)) for field, index in pairs]
    except (TypeError, ValueError) as error:
        if isinstance(error, Invalid):
            raise
        raise Invalid(
            f"probes: {probes!r} names no values; give pairs of a field and an index, as in {example}"
        ) from None


def _pairs(probes: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    for field, index in probes.items():
        several = isinstance(index, (list, tuple)) and any(isinstance(own, (list, tuple)) for own in index)
        yield from ((field, own) for own in (index if several else [index]))


def _index(index: Any) -> list[int]:
    if isinstance(index, Iterable):
        return [whole("probes", own, least=0) for own in index]
    return [whole("probes", index, least=0)]
