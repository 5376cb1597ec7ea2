"""Counts the bytes that pass between host and device while fields go to CuPy, torch and JAX and back.

Needs CUDA, the three packages, and torch's profiler, which records the copies of the whole process. Ends with 1
where any copy touches the host.
"""

import sys

import cupy
import jax
import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

import pyabide as ab


@ab.stencil(2, boundary="periodic")
def heat(u, kappa=0.1):  # type: ignore[no-untyped-def]
    return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)


u = np.random.default_rng(1).random((2049, 2047), dtype="float32")
sim = heat.start(u=u, backend="cuda")
given = {"cupy": cupy.asarray(u), "torch": torch.asarray(u, device="cuda"), "jax": jax.device_put(u)}
take = {"cupy": cupy.from_dlpack, "torch": torch.from_dlpack, "jax": jax.dlpack.from_dlpack}
twice = jax.jit(lambda values: 2 * values)
twice(given["jax"]).block_until_ready()


def exchange() -> None:
    """Sends the field to each package and back, with a computation there."""
    for name, values in given.items():
        sim["u"] = values
        sim.run(4)
        taken = take[name](sim.field("u"))
        sim["u"] = twice(taken) if name == "jax" else 2 * taken
        if name != "jax":
            with sim.view("u") as view:
                take[name](view)[:, 0] = 1.0
        sim.run(4)


exchange()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
    exchange()
    torch.cuda.synchronize()

copies = [event for event in recorded.events() if "memcpy" in event.name.lower() and "cu" not in event.name[:2]]
kinds = sorted({event.name for event in copies})
print(f"{len(copies)} copies on the device: {', '.join(kinds)}")
for event in recorded.key_averages():
    if event.key.lower().startswith(("memcpy", "memset", "cumemcpy", "cudamemcpy")):
        print(f"{event.count:6d} {event.key}")
crossing = [event for event in copies if "HtoD" in event.name or "DtoH" in event.name]
print(f"{len(crossing)} of them between host and device")
sys.exit(int(bool(crossing) or not copies))
