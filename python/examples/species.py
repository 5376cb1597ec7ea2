"""A hypercycle of 20 species with diffusion: each helps the next to grow, and together they fill the space.

The species are the components of one field, and Python's loops write the formulas.
"""

import argparse

import numpy as np

import pyabide as ab

SPECIES = 20


@ab.program(2, boundary="periodic")
def species(
    y=ab.field(components=SPECIES),
    d=ab.parameter(0.1, "diffusion, below 1/4"),
    k=ab.parameter(5.0, "rate of growth"),
    dt=0.1,
):
    growth = [k * y[i] * y[i - 1] for i in range(SPECIES)]
    # What all grow together, each gives up by its share, so that the sum of all stays 1.
    shared = sum(growth[1:], growth[0])
    new = {}
    for i, w in enumerate(y):
        spread = w[-1, 0] + w[0, -1] + w[0, 1] + w[1, 0] - 4 * w
        new[f"y[{i}]"] = w + d * spread + dt * (growth[i] - shared * w)
    yield new


def start(shape, seed=1, dtype="float64", **options):
    """A run with random shares, whose sum is 1 in each cell."""
    shares = np.random.default_rng(seed).random((SPECIES, *shape)) ** 4
    shares = (shares / shares.sum(axis=0)).astype(dtype)
    return species.start(y=list(shares), **options)


def shares(sim):
    return np.array([sim[f"y[{i}]"] for i in range(SPECIES)])


def main():
    arguments = argparse.ArgumentParser(description="Spirals of 20 species.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="species.png")
    options = arguments.parse_args()

    sim = start((160, 160), dtype="float32", backend=options.backend)
    sim.run(3000)
    found = shares(sim)
    most = np.kron(found.argmax(axis=0).astype("float32"), np.ones((2, 2), "float32"))
    ab.FieldValues(most, "most common", sim.step).png().save(options.picture)
    drift = np.abs(found.sum(axis=0, dtype="float64") - 1).max()
    print(f"{options.picture}; the sum of all species is 1 within {drift:.0e}")


if __name__ == "__main__":
    main()
