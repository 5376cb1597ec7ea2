"""Arguments as Python gives them, in the form in which Abide takes them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .errors import Invalid


def number_of(name: str, value: Any) -> float:
    """Returns the value of a parameter or scalar."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Invalid(f"{name}: {value!r} is no number; give one") from None


def extents(shape: Iterable[int] | int | None) -> list[int] | None:
    """Returns the extents that a shape names."""
    if shape is None:
        return None
    try:
        own = [shape] if isinstance(shape, int) else [int(extent) for extent in shape]
    except (TypeError, ValueError):
        raise Invalid(
            f"shape: {shape!r} is no shape; give whole numbers, slowest axis first, as in (512, 512)"
        ) from None
    if any(extent < 1 for extent in own):
        raise Invalid(f"shape: {tuple(own)} has an extent below 1; give whole numbers above 0")
    return own


Devices = int | str | Sequence[int]
"""The devices of a run: so many, ``"all"``, or those of these numbers."""


def devices_named(devices: Any) -> str | list[int] | None:
    """Returns devices as Rust reads them."""
    if devices is None or isinstance(devices, str):
        return devices
    try:
        if isinstance(devices, Sequence):
            return [operator.index(number) for number in devices]
        return str(operator.index(devices))
    except TypeError:
        raise Invalid(
            f'devices: {devices!r} names none; give a number, "all", or numbers of devices as in [0, 2]'
        ) from None


def dtype_name(dtype: Any) -> str | None:
    """Returns Abide's name of a type."""
    if dtype is None:
        return None
    try:
        name = {"f32": "float32", "f64": "float64"}.get(dtype, dtype) if isinstance(dtype, str) else dtype
        found = {"float32": "f32", "float64": "f64"}.get(np.dtype(name).name)
    except TypeError:
        found = None
    if found is None:
        raise Invalid(f"dtype: {dtype!r} is not known; give numpy's float32 or float64")
    return found


def steps_of(name: str, steps: Any) -> int:
    """Returns a number of steps."""
    try:
        own = operator.index(steps)
    except TypeError:
        raise Invalid(f"{name}: {steps!r} is no whole number; give one") from None
    if not 0 <= own < 2**64:
        raise Invalid(f"{name}: {own} steps cannot be done; give a number from 0 to 2**64 - 1")
    return own
