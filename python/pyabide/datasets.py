"""All fields of a simulation as a dataset of xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _pyabide
from .errors import Error

if TYPE_CHECKING:
    import xarray

    from .simulation import Simulation

__all__: list[str] = []


def dataset(simulation: Simulation) -> xarray.Dataset:
    """Returns all fields with the coordinates of their axes, as ``xarray.open_dataset`` finds them in a ``.h5``."""
    try:
        import xarray
    except ImportError:
        raise Error("xarray is not installed; install it by: pip install xarray") from None
    core = simulation._core
    coordinates: dict[str, Any] = {"t": core.time(), "step": simulation.step}
    variables: dict[str, Any] = {}
    for name in simulation.fields:
        values = core.read(name)
        axes = []
        for axis, extent, cells, (origin, spacing) in zip(
            "zyx"[3 - values.ndim :], values.shape, simulation.shape, core.places(name), strict=True
        ):
            # Values on nodes are one more than the cells.
            axis = _free(axis if extent == cells else f"{axis}_nodes", simulation)
            axes.append(axis)
            coordinates[axis] = (axis, origin + spacing * np.arange(extent))
        variables[name] = (axes, values)
    attributes = {"program": core.program, "abide": _pyabide.__version__} | dict(core.parameters())
    free = {_free(name, simulation): own for name, own in coordinates.items()}
    scalars = {name: own for name, own in core.scalars() if name not in free}
    return xarray.Dataset(variables | scalars, coords=free, attrs=attributes)


def _free(name: str, simulation: Simulation) -> str:
    """Returns a name that no field has."""
    while name in simulation.fields:
        name += "_axis"
    return name
