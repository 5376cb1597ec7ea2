"""The Ising model by Metropolis on a checkerboard."""

import argparse

import numpy as np

import pyabide as ab


@ab.program(2, boundary="periodic")
def ising(s=ab.field(start=1.0), beta=ab.parameter(0.5, "1 / T; the critical one is 0.4407")):
    """A step is a sweep: the cells of one colour, then those of the other."""
    place = ab.coord(0) + ab.coord(1)
    colour = place - 2 * ab.floor(0.5 * place)
    for own in (0, 1):
        cost = 2 * s * (s[-1, 0] + s[0, -1] + s[0, 1] + s[1, 0])
        yield ab.stage({"s": ab.where(ab.uniform() < ab.exp(-beta * cost), -s, s)}, where=colour == own)


def start(shape, temperature, seed=1, **options):
    """A run with all spins up."""
    return ising.start(shape=shape, beta=1 / temperature, seed=seed, **options)


def onsager(temperature):
    """The magnetisation of an infinite plane below the critical temperature."""
    return (1 - np.sinh(2 / temperature) ** -4) ** 0.125


def magnetisation(n, temperature, sweeps, backend="auto", dtype="float32"):
    """The mean magnetisation of n x n spins over a number of sweeps, after as many to settle."""
    sim = start((n, n), temperature, backend=backend, dtype=dtype)
    sim.run(sweeps)
    return np.mean([abs(frame["s"].values.mean()) for frame in sim.frames(sweeps, every=10, progress=False)])


def main():
    arguments = argparse.ArgumentParser(description="Spins near the critical temperature.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="ising.png")
    options = arguments.parse_args()

    sim = start((240, 240), 2.27, backend=options.backend)
    sim.run(1000)
    sim.png("s", range=(-1, 1)).save(options.picture)
    measured, exact = magnetisation(128, 2.0, 1000, options.backend), onsager(2.0)
    print(f"{options.picture}; magnetisation at T = 2: {measured:.4f}, Onsager's {exact:.4f}")


if __name__ == "__main__":
    main()
