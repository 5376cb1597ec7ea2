"""Going on from checkpoints."""

from __future__ import annotations

from os import PathLike, fspath

from . import _pyabide
from .arguments import Devices, devices_named
from .errors import Invalid
from .programs import Program
from .simulation import Simulation

__all__ = ["resume"]


def resume(
    path: str | PathLike[str],
    program: Program | None = None,
    *,
    backend: str = "auto",
    devices: Devices | None = None,
    force: bool = False,
) -> Simulation:
    """Goes on from a checkpoint, with the bits of a run that was never interrupted.

    For a program of your own, give the program too. Entries of the catalogue are found by their names. A checkpoint
    knows the formulas of its program: one with other formulas of the same name raises ``ab.FileError``, which says
    what differs, unless ``force`` is true.
    """
    if program is not None:
        return program.resume(path, backend=backend, devices=devices, force=force)
    name = _pyabide.program_of(fspath(path))
    if name not in {entry[0] for entry in _pyabide.catalogue()}:
        raise Invalid(
            f"{fspath(path)}: it holds a run of `{name}`, which is no entry of the catalogue; give the "
            "program too, as in "
            f"ab.resume(path, {name})"
        )
    options = {
        "resume": fspath(path),
        "force": force,
        "backend": backend,
        "devices": devices_named(devices),
    }
    return Simulation(_pyabide.start(name, [], options), None)
