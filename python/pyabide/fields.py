"""Arrays in and out: whatever holds numbers in the host's memory, and the values of a field."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _pyabide, words
from .arguments import number_of
from .errors import Error, Invalid
from .exchange import is_on_gpu, type_on_gpu
from .pictures import Picture, picture
from .views import capsule

if TYPE_CHECKING:
    import xarray

__all__ = ["FieldValues"]


def array(name: str, values: Any) -> NDArray[Any]:
    """Returns values as an array of float32 or float64, of numpy's own byte order; copied only where
    they must be."""
    own = _raw(name, values)
    if not own.dtype.isnative or own.dtype.type not in (np.float32, np.float64):
        return own.astype(np.float32 if own.dtype.kind == "f" and own.dtype.itemsize <= 4 else np.float64)
    return own


def _raw(name: str, values: Any) -> NDArray[Any]:
    """Returns values as an array of numbers of the type that they have."""
    if np.ma.isMaskedArray(values):
        raise Invalid(
            f"field {name}: it is a masked array, and a field has a value in each cell; give values.filled(0.0) or "
            "the like, and the mask as a field of its own"
        )
    is_foreign = not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__")
    try:
        # An array on a GPU that comes to the host by itself, as JAX's, does so by __array__.
        if is_foreign and not is_on_gpu(values):
            values = np.from_dlpack(values)
        own = np.asarray(values)
        if own.dtype.kind == "O" and is_foreign:
            raise TypeError("it does not come to the host by itself")
    except Error:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        change = "bring it to the host, as by .get() of CuPy or .cpu() of torch" if is_foreign else "give numpy's"
        raise Invalid(f"field {name}: {type(values).__name__} makes no array ({error}); {change}") from None
    if own.dtype.kind not in "fiub" or own.dtype.itemsize > 8:
        raise Invalid(f"field {name}: its values are {own.dtype}; give float32 or float64")
    return own


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Returns an array that refuses to be written to."""
    values.flags.writeable = False
    return values


class Starts:
    """The starts of fields, with the extents of one of their arrays and the type of all, if there are arrays."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.given: list[tuple[str, Any]] = []
        self.on_gpu: dict[str, Any] = {}
        self.shape: tuple[int, ...] | None = None
        types: set[str] = set()
        for name, value in fields.items():
            if isinstance(value, str):
                self.given.append((name, words.start(value)))
                continue
            if isinstance(value, Real) and not isinstance(value, bool):
                self.given.append((name, number_of(f"the start of field {name}", value)))
                continue
            if is_on_gpu(value):
                shape, dtype = type_on_gpu(value)
                self.on_gpu[name] = value
                # It is copied there once the simulation has its memory.
                self.given.append((name, 0.0))
            else:
                raw = _raw(name, value)
                own = array(name, raw)
                if own.ndim == 0:
                    self.given.append((name, float(own)))
                    continue
                self.given.append((name, own))
                # Masks and whole numbers take the type of the floats beside them.
                shape, dtype = own.shape, own.dtype.name if raw.dtype.kind == "f" else "whole"
            types.add(dtype)
            self.shape = shape if self.shape is None else self.shape
        alone = "float64" if "whole" in types else None
        self.dtype = "float64" if "float64" in types else "float32" if types - {"whole"} else alone

    @property
    def shape_on_gpu(self) -> tuple[int, ...] | None:
        """The extents of one of the arrays on a GPU; ``None`` where an array on the host states them."""
        is_on_host = any(isinstance(value, np.ndarray) for _, value in self.given)
        return None if is_on_host or not self.on_gpu else self.shape


class FieldValues:
    """A copy of a field's values at a step, to be had in several forms.

    It lies where the simulation runs: on a CUDA device in packed rows, else in the host's memory. ``np.asarray``
    brings it to the host, once. ``from_dlpack`` of CuPy, torch and JAX, or of numpy on the host, takes it where it
    is, without another copy. Its arrays are read-only, because a change of a copy changes no field: write by
    ``sim["u"] = array``. Pickled, it takes its values along.
    """

    def __init__(
        self,
        values: NDArray[Any] | _pyabide.Lent,
        name: str,
        step: int,
    ) -> None:
        if not isinstance(values, (np.ndarray, _pyabide.Lent)):
            raise Invalid(f"a field's values: {type(values).__name__} holds none; take sim.field(…)")
        self._lent = values if isinstance(values, _pyabide.Lent) else None
        self._values = None if isinstance(values, _pyabide.Lent) else values
        self._shape = tuple(values.shape)
        self.name = name
        self.step = step
        self.axes = ("z", "y", "x")[3 - len(self._shape) :]

    @property
    def values(self) -> NDArray[Any]:
        """The values in the host's memory, read-only; ``np.array(…)`` of them is a copy to write to."""
        return read_only(self._own().view())

    def _own(self) -> NDArray[Any]:
        if self._values is None:
            assert self._lent is not None
            self._values = self._lent.read()
        return self._values

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldValues, (self._own(), self.name, self.step)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, slowest axis first."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.values.dtype if self._lent is None else np.dtype(self._lent.typestr)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.values.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        own = self.values if dtype is None else self.values.astype(dtype, copy=False)
        return own.copy() if copy and own is self.values else own

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if self._lent is None or (dl_device is not None and dl_device[0] == 1):
            # Versions of numpy before 2.1 know no options.
            known: dict[str, Any] = {"max_version": max_version, "copy": copy}
            return self._own().__dlpack__(**{name: own for name, own in known.items() if own is not None})
        return capsule(self._lent, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._lent is None else (2, self._lent.device)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise Invalid(
            f"field {self.name}: this is a copy, whose change would change no field; change np.array(…) of it, and "
            f'write it by sim["{self.name}"] = array'
        )

    def __len__(self) -> int:
        return int(self._shape[0])

    def xarray(self) -> xarray.DataArray:
        """Returns the values as an ``xarray.DataArray`` with axes named z, y, x; xarray must be installed."""
        try:
            import xarray
        except ImportError:
            raise Error("xarray is not installed; install it by: pip install xarray") from None
        return xarray.DataArray(self._own(), dims=self.axes, name=self.name, attrs={"step": self.step})

    def plot(self, **options: Any) -> Any:
        """Draws the values by matplotlib; of three axes, the middle plane of the slowest."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise Error(
                "matplotlib is not installed; install it by: pip install matplotlib, or use .png()"
            ) from None
        values = self.values[len(self.values) // 2] if self.values.ndim == 3 else self.values
        drawn = pyplot.plot(values, **options) if values.ndim == 1 else pyplot.imshow(values, **options)
        pyplot.title(f"{self.name} after step {self.step}")
        return drawn

    def png(self, range: tuple[float, float] | None = None) -> Picture:
        """Returns a picture in false colours, which notebooks show and ``save`` writes to a file.

        ``range`` holds the values at the ends of the colours; unless given, the least and the largest.
        """
        return picture(self.values, range)

    def _repr_png_(self) -> bytes:
        return bytes(self.png())

    def __repr__(self) -> str:
        return f"{self.name} after step {self.step}:\n{self.values!r}"
