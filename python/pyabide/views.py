"""Fields where they lie on a GPU, for other packages on the same device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _pyabide
from .errors import Invalid

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["View"]


class View:
    """A field's values in the memory of a CUDA device, without a copy, within a ``with`` block.

    ``cupy.asarray(view)``, ``torch.as_tensor(view, device="cuda")`` and Numba take it by
    ``__cuda_array_interface__``. What they make of it is to be read, or copied, before the block ends: later
    steps overwrite the memory. While the block lasts, the simulation neither runs nor writes.
    """

    def __init__(self, simulation: Simulation, field: str) -> None:
        self._simulation = simulation
        self._field = field
        self._lent: _pyabide.Lent | None = None

    def __enter__(self) -> View:
        self._lent = self._simulation._core.lend(self._field)
        self._simulation._views.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._lent = None
        if self in self._simulation._views:
            self._simulation._views.remove(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        lent = self._lent
        if lent is None:
            raise Invalid(
                f"the view of {self._field}: its block has ended; use it within `with sim.view(…) as view`"
            )
        return {
            "shape": tuple(lent.shape),
            "typestr": lent.typestr,
            # What is written there would not reach the fields' other copies: it is to be read alone.
            "data": (lent.address, True),
            "strides": tuple(lent.strides),
            "stream": lent.stream,
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<view of {self._field}{'' if self._lent is not None else ', ended'}>"
