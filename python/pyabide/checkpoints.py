"""Going on from checkpoints."""

from __future__ import annotations

from os import PathLike

from . import _pyabide
from .arguments import Devices, backend_named, devices_named, path_of
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
        if not isinstance(program, Program):
            raise Invalid(f"program: {program!r} is no program; give what @ab.stencil or @ab.program made")
        return program.resume(path, backend=backend, devices=devices, force=force)
    path = path_of(path)
    name = _pyabide.program_of(path)
    if name not in {entry[0] for entry in _pyabide.catalogue()}:
        raise Invalid(
            f"{path}: it holds a run of `{name}`, which is no entry of the catalogue; give the "
            "program too, as in "
            f"ab.resume(path, {name})"
        )
    options = {
        "resume": path,
        "force": force,
        "backend": backend_named(backend),
        "devices": devices_named(devices),
    }
    return Simulation(_pyabide.start(name, [], options), None)
