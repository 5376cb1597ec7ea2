"""Fields where they lie on a GPU, for other packages on the same device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _pyabide
from .errors import Invalid

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["View", "capsule"]


def capsule(
    lent: _pyabide.Lent,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Returns what ``__dlpack__`` shall for values on a GPU that are not to be copied."""
    if copy:
        raise BufferError("no copy is made here; make one of what from_dlpack returns")
    if dl_device is not None and tuple(dl_device) != (2, lent.device):
        raise BufferError(f"the values lie on CUDA device {lent.device}; np.asarray brings a field to the host")
    return lent.capsule(max_version is not None and max_version[0] >= 1)


class View:
    """A field's values in the memory of a CUDA device, without a copy, within a ``with`` block.

    ``cupy.from_dlpack(view)``, ``torch.from_dlpack(view)``, and Numba by ``__cuda_array_interface__``, read
    and write the field itself. What they make of it ends with the block: later steps overwrite the memory.
    While the block lasts, the simulation neither runs nor writes; at its end all work of the device is waited
    for. Rows lie further apart than they are long, which JAX does not take: give it ``sim.field(…)``.
    """

    def __init__(self, simulation: Simulation, field: str) -> None:
        if not hasattr(simulation, "_core"):
            raise Invalid(f"a view: {simulation!r} is no simulation; take sim.view(\"u\")")
        self._simulation = simulation
        self._field = field
        self._lent: _pyabide.Lent | None = None

    def __enter__(self) -> View:
        self._lent = self._simulation._core.export(self._field)
        self._simulation._views.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        lent, self._lent = self._lent, None
        if self in self._simulation._views:
            self._simulation._views.remove(self)
        if lent is not None:
            lent.wait()

    def _own(self) -> _pyabide.Lent:
        if self._lent is None:
            raise Invalid(
                f"the view of {self._field}: its block has ended; use it within `with sim.view(…) as view`"
            )
        return self._lent

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, slowest axis first."""
        return tuple(self._own().shape)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        # The simulation's steps have ended, so that no stream has to wait.
        return capsule(self._own(), max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._own().device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        lent = self._own()
        return {
            "shape": tuple(lent.shape),
            "typestr": lent.typestr,
            "data": (lent.address, False),
            "strides": tuple(lent.strides),
            "stream": None,
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<view of {self._field}{'' if self._lent is not None else ', ended'}>"
