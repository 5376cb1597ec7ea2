"""What there is to run on, and to run: devices, and the entries of the catalogue."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from . import _pyabide

__all__ = ["Device", "Entry", "catalogue", "devices"]


@dataclass(frozen=True)
class Device:
    """A backend and its device, or the reason why it has none."""

    backend: str
    kind: str = ""
    """``"GPU"``, ``"CPU"``, or ``"software"`` for a driver that computes on the CPU, which ``"auto"`` never
    takes."""
    name: str = ""
    driver: str = ""
    unavailable: str = ""
    """Why the backend cannot run here; empty where it can."""
    numbers: dict[str, Any] = field(default_factory=dict, repr=False)
    """All numbers that the device reports: multiprocessors, bytes of its memories, bandwidths in bytes/s and
    the like."""

    def __bool__(self) -> bool:
        return not self.unavailable


@dataclass(frozen=True)
class Entry:
    """An entry of the catalogue."""

    name: str
    about: str
    dimensions: tuple[int, ...]
    fields: tuple[str, ...]
    parameters: dict[str, float]


def devices() -> list[Device]:
    """Returns every backend with its device, in the order in which ``backend="auto"`` tries them."""
    found = []
    for entry in json.loads(_pyabide.devices()):
        own = entry.pop("device", {})
        found.append(Device(name=own.get("name", ""), numbers=own, **entry))
    return found


def catalogue() -> list[Entry]:
    """Returns the stencils and models that come with Abide, for ``ab.start`` by name."""
    return [
        Entry(name, about, tuple(dimensions), tuple(fields), dict(parameters))
        for name, about, dimensions, fields, parameters in _pyabide.catalogue()
    ]
