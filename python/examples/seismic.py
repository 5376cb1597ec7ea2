"""A seismic shot: the acoustic wave equation in 2D, of 8th order in space and 2nd in time.

A Ricker source below the surface, a sponge at all sides, and 100 receivers in a row. Lengths are in cells and
times in steps: a velocity v stands for v cells per step.
"""

import argparse

import numpy as np

import pyabide as ab

# The central second difference of 8th order: the weight of the cell, and of its neighbours 1 to 4 away.
WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
SOURCE = (60, 120)
RECEIVERS = [(44, 70 + i) for i in range(100)]


def laplacian(u):
    total = 2 * WEIGHTS[0] * u
    for r in range(1, 5):
        total = total + WEIGHTS[r] * (u[-r, 0] + u[r, 0] + u[0, -r] + u[0, r])
    return total


@ab.program(2, boundary="fixed")
def seismic(
    u=ab.field(start=0.0),
    before=ab.field(start=0.0),
    v=ab.field(start=0.35),
    width=ab.parameter(40.0, "width of the sponge in cells"),
    strength=ab.parameter(0.006, "damping of the sponge, per cell"),
    frequency=ab.parameter(0.02, "peak frequency of the source, per step"),
    delay=ab.parameter(60.0, "time of the source's peak in steps"),
    nx=ab.extent("x"),
    ny=ab.extent("y"),
    time=ab.scalar(0.0),
    ricker=ab.scalar(0.0),
):
    # The sponge multiplies both time levels by a factor that falls from 1 towards the edges.
    x, y = ab.coord(1), ab.coord(0)
    edge = ab.minimum(ab.minimum(x, nx - 1 - x), ab.minimum(y, ny - 1 - y))
    depth = strength * ab.maximum(width - edge, 0.0)
    sponge = 1.0 - depth * depth
    yield {"u": sponge * (2.0 * u - sponge * before + v * v * laplacian(u)), "before": u}
    # The source's second derivative of a Gaussian, added at one cell.
    phase = np.pi * frequency * (time - delay)
    yield {"ricker": (1.0 - 2.0 * phase * phase) * ab.exp(-phase * phase)}
    yield {"time": time + 1.0}
    yield ab.stage({"u": u + ricker}, points=[SOURCE])


def start(v, *, receivers=RECEIVERS, **options):
    """A shot in a medium of given velocities, whose record has a column per receiver."""
    return seismic.start(v=v, record=1, probes=[("u", at) for at in receivers], **options)


def gather(sim, receivers=RECEIVERS):
    """The seismogram: a row per step, a column per receiver."""
    records = sim.records()
    return np.array([records[f"u@{y},{x}"] for y, x in receivers]).T[1:]


def exact(v, steps, receivers=RECEIVERS, frequency=0.02, delay=60.0):
    """The seismogram of an unbounded medium of one velocity.

    The Green's function of a point r away is H(t - r/v) / (2 pi v^2 sqrt(t^2 - r^2/v^2)); with t = (r/v) cosh a,
    its convolution with the source is an integral over a without the singularity.
    """
    traces = np.zeros((steps, len(receivers)))
    for i, (y, x) in enumerate(receivers):
        arrival = np.hypot(y - SOURCE[0], x - SOURCE[1]) / v
        for step in range(int(arrival) + 1, steps + 1):
            a = (np.arange(400) + 0.5) / 400 * np.arccosh(step / arrival)
            phase = (np.pi * frequency * (step - arrival * np.cosh(a) - delay)) ** 2
            mean = ((1 - 2 * phase) * np.exp(-phase)).mean()
            traces[step - 1, i] = mean * np.arccosh(step / arrival) / (2 * np.pi * v * v)
    return traces


def error(backend="auto", steps=600):
    """The largest error of all traces in a medium of one velocity, relative to the largest amplitude of each."""
    sim = start(np.full((240, 240), 0.35), backend=backend)
    sim.run(steps)
    expected = exact(0.35, steps)
    return (np.abs(gather(sim) - expected).max(axis=0) / np.abs(expected).max(axis=0)).max()


def main():
    arguments = argparse.ArgumentParser(description="A seismic shot in two layers.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="seismic.png")
    options = arguments.parse_args()

    # Two layers, the lower one faster.
    v = np.full((260, 240), 0.35)
    v[140:] = 0.5
    sim = start(v, backend=options.backend)
    sim.run(370)
    wave = sim["u"]
    sim.run(330)
    picture(wave, gather(sim)).save(options.picture)
    print(f"{options.picture}; traces within {error(options.backend):.1%} of the exact ones in one medium")


def picture(u, traces):
    """The wave field beside the seismogram, in which time runs downwards; both are clipped."""
    rows = np.arange(len(u)) * len(traces) // len(u)
    both = [np.clip(part / (0.2 * np.abs(part).max()), -1, 1) for part in (u, traces[rows])]
    return ab.FieldValues(np.hstack(both), "u", 0).png(range=(-1, 1))


if __name__ == "__main__":
    main()
