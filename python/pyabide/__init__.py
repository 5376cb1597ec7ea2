"""Iterative computations on grids, at the speed of the chip: stencils, programs and solvers.

A stencil is a function, recorded once::

    import pyabide as ab

    @ab.stencil(2, boundary="periodic")
    def heat(u, kappa=0.1):
        return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)

    sim = heat.start(u="random:1", shape=(512, 512))
    print(sim.run(1000))
    sim.png().save("heat.png")

It runs on NVIDIA GPUs by CUDA, on others by Vulkan or Metal, and on the CPU, with numpy's bits on CUDA and
the CPU.
"""

from . import _nvrtc

# Before the library looks for it.
_nvrtc.offer()

from ._pyabide import Plan, Report, __version__
from .checkpoints import resume
from .declare import dot, end_of_step, extent, field, max, min, parameter, scalar, stage, sum, temporary, wall
from .devices import Device, Entry, catalogue, devices
from .errors import (
    CompileError,
    Defect,
    DeviceError,
    Error,
    FileError,
    Invalid,
    Limit,
    Unavailable,
    Unknown,
    Unsupported,
)
from .expressions import (
    Expr,
    Field,
    absolute,
    arccos,
    arcsin,
    arctan,
    arctan2,
    cbrt,
    ceil,
    clip,
    coord,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    floor,
    fma,
    laplacian,
    log,
    log1p,
    maximum,
    minimum,
    rint,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
)
from .fields import FieldValues
from .gases import Flow, Gas
from .loops import once, repeat, solve
from .models import load, loads
from .noise import bernoulli, exponential, normal, uniform
from .pictures import Movie, Picture
from .programs import Program, plan, program, start, stencil
from .simulation import Frame, Parameters, Records, Simulation
from .solvers import GridOperator, NotConverged, bicgstab, cg, gmres, minres
from .systems import SolveReport, System
from .space import d, d2, position
from .symbolic import from_sympy
from .views import View

__all__ = [
    "CompileError",
    "Defect",
    "Device",
    "DeviceError",
    "Entry",
    "Error",
    "Expr",
    "Field",
    "FieldValues",
    "FileError",
    "Flow",
    "Frame",
    "Gas",
    "GridOperator",
    "Invalid",
    "Limit",
    "Movie",
    "NotConverged",
    "Parameters",
    "Picture",
    "Plan",
    "Program",
    "Records",
    "Report",
    "Simulation",
    "SolveReport",
    "System",
    "Unavailable",
    "Unknown",
    "Unsupported",
    "View",
    "__version__",
    "absolute",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "bernoulli",
    "bicgstab",
    "catalogue",
    "cbrt",
    "ceil",
    "cg",
    "clip",
    "coord",
    "cos",
    "cosh",
    "d",
    "d2",
    "devices",
    "dot",
    "end_of_step",
    "erf",
    "exp",
    "expm1",
    "exponential",
    "extent",
    "field",
    "floor",
    "fma",
    "from_sympy",
    "gmres",
    "laplacian",
    "load",
    "loads",
    "log",
    "log1p",
    "max",
    "maximum",
    "min",
    "minimum",
    "minres",
    "normal",
    "once",
    "parameter",
    "plan",
    "position",
    "program",
    "repeat",
    "resume",
    "rint",
    "scalar",
    "sign",
    "sin",
    "sinh",
    "solve",
    "sqrt",
    "stage",
    "start",
    "stencil",
    "sum",
    "tan",
    "tanh",
    "temporary",
    "trunc",
    "uniform",
    "wall",
    "where",
]
