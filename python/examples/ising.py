"""The Ising model by Metropolis on a checkerboard, with a generator of random numbers in each cell.

The generator is Lehmer's, r -> 16807 r mod 2^31 - 1. Its products stay below 2^46, so float64 computes them exactly
and a run can be repeated to the bit, in integers too.
"""

import argparse

import numpy as np

import pyabide as ab

MULTIPLIER, MODULUS = 16807.0, 2147483647.0


def drawn(r):
    """The next state of a generator, a whole number from 1 to the modulus less 1."""
    product = r * MULTIPLIER
    rest = product - MODULUS * ab.floor(product / MODULUS)
    # The quotient is rounded, so its floor may be off by one.
    return ab.where(rest < 0, rest + MODULUS, ab.where(rest >= MODULUS, rest - MODULUS, rest))


@ab.program(2, boundary="periodic")
def ising(s=ab.field(start=1.0), r=ab.field(), beta=ab.parameter(0.5, "1 / T; the critical one is 0.4407")):
    """A step is a sweep: the cells of one colour, then those of the other. A start of r is rounded down."""
    place = ab.coord(0) + ab.coord(1)
    colour = place - 2 * ab.floor(0.5 * place)
    for own in (0, 1):
        new = drawn(ab.floor(r))
        cost = 2 * s * (s[-1, 0] + s[0, -1] + s[0, 1] + s[1, 0])
        flips = ab.maximum(cost <= 0, new / MODULUS < ab.exp(-beta * cost))
        yield ab.stage({"s": ab.where(flips, -s, s), "r": new}, where=colour == own)


def start(shape, temperature, seed=1, **options):
    """A run with all spins up, and generators in states of their own."""
    states = np.random.default_rng(seed).integers(1, int(MODULUS), shape).astype(float)
    return ising.start(r=states, beta=1 / temperature, **options)


def onsager(temperature):
    """The magnetisation of an infinite plane below the critical temperature."""
    return (1 - np.sinh(2 / temperature) ** -4) ** 0.125


def magnetisation(n, temperature, sweeps, backend="auto"):
    """The mean magnetisation of n x n spins over a number of sweeps, after as many to settle."""
    sim = start((n, n), temperature, backend=backend)
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
