"""Arrays in and out: whatever holds numbers in the host's memory, and the values of a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import Error, Invalid
from .pictures import Picture, picture

if TYPE_CHECKING:
    import xarray

__all__ = ["FieldValues"]


def array(name: str, values: Any) -> NDArray[Any]:
    """Returns values as an array of float32 or float64, of numpy's own byte order; copied only where "
    "they must be."""
    if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        try:
            values = np.from_dlpack(values)
        except (BufferError, RuntimeError, TypeError) as error:
            raise Invalid(
                f"field {name}: {type(values).__name__} hands nothing over to the host ({error}); bring "
                "it there first, as by "
                ".get() of CuPy or .cpu() of torch"
            ) from None
    try:
        own = np.asarray(values)
    except Error:
        raise
    except (TypeError, ValueError) as error:
        raise Invalid(
            f"field {name}: {type(values).__name__} makes no array ({error}); give numpy's"
        ) from None
    if own.dtype.kind not in "fiub" or own.dtype.itemsize > 8:
        raise Invalid(f"field {name}: its values are {own.dtype}; give float32 or float64")
    if not own.dtype.isnative or own.dtype.type not in (np.float32, np.float64):
        return own.astype(np.float32 if own.dtype.kind == "f" and own.dtype.itemsize <= 4 else np.float64)
    return own


def starts(fields: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], tuple[int, ...] | None, str | None]:
    """Returns the starts of fields, the extents of one of their arrays and the type of all, if there "
    "are arrays."""
    given: list[tuple[str, Any]] = []
    shape: tuple[int, ...] | None = None
    types: set[str] = set()
    for name, value in fields.items():
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            given.append((name, value))
            continue
        own = array(name, value)
        if own.ndim == 0:
            given.append((name, float(own)))
            continue
        given.append((name, own))
        types.add(own.dtype.name)
        shape = own.shape if shape is None else shape
    dtype = "float64" if "float64" in types else "float32" if types else None
    return given, shape, dtype


class FieldValues:
    """The values of a field at a step: a copy in the host's memory, to be had in several forms.

    ``np.asarray(values)`` and ``np.from_dlpack(values)`` give it without another copy, also to torch and JAX.
    """

    def __init__(self, values: NDArray[Any], name: str, step: int, axes: tuple[str, ...]) -> None:
        self.values = values
        self.name = name
        self.step = step
        self.axes = axes

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, slowest axis first."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.values.dtype

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.values.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        own = self.values if dtype is None else self.values.astype(dtype, copy=False)
        return own.copy() if copy and own is self.values else own

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.values.__dlpack_device__()
        return (int(device[0]), int(device[1]))

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def xarray(self) -> xarray.DataArray:
        """Returns the values as an ``xarray.DataArray`` with axes named z, y, x; xarray must be installed."""
        try:
            import xarray
        except ImportError:
            raise Error("xarray is not installed; install it by: pip install xarray") from None
        return xarray.DataArray(self.values, dims=self.axes, name=self.name, attrs={"step": self.step})

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
