"""Arrays of other packages in a GPU's memory: CuPy's, torch's, JAX's, Numba's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import Invalid

__all__ = ["handed_over", "is_on_gpu", "type_on_gpu"]

# kDLCUDA and kDLCUDAManaged of DLPack.
_CUDA = (2, 13)


def is_on_gpu(values: Any) -> bool:
    """Returns whether values lie in the memory of a CUDA device."""
    if isinstance(values, np.ndarray):
        return False
    if hasattr(values, "__dlpack_device__"):
        return int(values.__dlpack_device__()[0]) in _CUDA
    return hasattr(values, "__cuda_array_interface__")


def type_on_gpu(values: Any) -> tuple[tuple[int, ...], str]:
    """Returns the shape and the name of the type of values on a GPU."""
    if hasattr(values, "dtype"):
        # torch writes torch.float32.
        return tuple(int(n) for n in values.shape), str(values.dtype).rpartition(".")[2]
    described = values.__cuda_array_interface__
    return tuple(described["shape"]), np.dtype(described["typestr"]).name


def handed_over(field: str, values: Any) -> Any:
    """Returns what the extension module copies values on a GPU from: a capsule, or a description."""
    if not hasattr(values, "__dlpack__"):
        described = values.__cuda_array_interface__
        strides = described.get("strides")
        return (
            described["data"][0],
            list(described["shape"]),
            None if strides is None else list(strides),
            described["typestr"],
        )
    try:
        try:
            return values.__dlpack__(max_version=(1, 0))
        except TypeError:
            # The protocol before array API 2023.12 knows no versions.
            return values.__dlpack__()
    except (BufferError, RuntimeError) as error:
        raise Invalid(
            f"field {field}: {type(values).__name__} does not hand its values over ({error}); give a copy, "
            "as by .detach().contiguous() of torch"
        ) from None
