"""Maxwell's equations in 3D by Yee's scheme: a permittivity per cell, CPML at all sides, a dipole, a receiver.

Components are in the order x, y, z. Lengths are in cells and times in steps; light runs s cells per step. The
magnetic field is scaled by the impedance of vacuum.
"""

import argparse

import numpy as np

import pyabide as ab

SOURCE = (20, 30, 20)
LAYER = 10  # The thickness of the absorbing layers in cells.
DELAY, WIDTH = 50.0, 14.0  # The dipole moment is a Gaussian of time with this centre and width.


def profile(i, last):
    """The factors b and c of CPML at a place along an axis whose last cell is given."""
    depth = ab.maximum(ab.maximum(LAYER - i, i - (last - LAYER)), 0.0) / LAYER
    sigma = 1.6 * (depth * depth * depth)
    b = ab.exp(-(sigma + 0.025))
    return b, sigma / (sigma + 0.025) * (b - 1.0)


def curl(w, memory, name, ahead, profiles):
    """The curl of a field with the derivatives that CPML stretches, and the new values of its memory.

    Differences go to the cell ahead or from the cell before. The memory has two components for each of the curl.
    """
    result, new = [], {}
    for a in range(3):
        terms = []
        first, second = (a + 1) % 3, (a + 2) % 3
        for k, (along, of) in enumerate(((first, second), (second, first))):
            offset = [0, 0, 0]
            offset[2 - along] = 1 if ahead else -1
            beside = w[of][tuple(offset)]
            difference = beside - w[of] if ahead else w[of] - beside
            b, c = profiles[along]
            kept = b * memory[2 * a + k] + c * difference
            new[f"{name}[{2 * a + k}]"] = kept
            terms.append(difference + kept)
        result.append(terms[0] - terms[1])
    return result, new


@ab.program(3, boundary="fixed")
def maxwell(
    e=ab.field(components=3, start=0.0),
    h=ab.field(components=3, start=0.0),
    pe=ab.field(components=6, start=0.0),
    ph=ab.field(components=6, start=0.0),
    permittivity=ab.field(start=1.0),
    s=ab.parameter(0.5, "Courant number, below 1 / sqrt(3)"),
    nx=ab.extent("x"),
    ny=ab.extent("y"),
    nz=ab.extent("z"),
    time=ab.scalar(0.0),
    current=ab.scalar(0.0),
):
    sides = (nx, ny, nz)
    # H lies half a cell behind E along the axes that its curl differentiates.
    behind = [profile(ab.coord(2 - a) + 0.5, sides[a] - 1.0) for a in range(3)]
    rotation, memory = curl(e, ph, "ph", True, behind)
    yield {f"h[{a}]": h[a] - s * rotation[a] for a in range(3)} | memory
    here = [profile(ab.coord(2 - a), sides[a] - 1.0) for a in range(3)]
    rotation, memory = curl(h, pe, "pe", False, here)
    yield {f"e[{a}]": e[a] + s / permittivity * rotation[a] for a in range(3)} | memory
    # The dipole along z: the derivative of its moment, added to E at one cell.
    yield {"time": time + 1.0}
    phase = (time - DELAY) / WIDTH
    yield {"current": -2.0 * phase / WIDTH * ab.exp(-phase * phase)}
    yield ab.stage({"e[2]": e[2] + current}, points=[SOURCE])


def start(shape, receiver, **options):
    """A run whose record has E along z at a cell, after each step."""
    return maxwell.start(shape=shape, dtype="float64", record=1, probes=[("e[2]", receiver)], **options)


def received(sim, receiver):
    return sim.records()["e[2]@{},{},{}".format(*receiver)][1:]


def dipole(distance, steps, s=0.5):
    """E along z beside a small dipole in vacuum, after each step: near, middle and far field."""
    # A current that is added after a step flowed in its middle.
    phase = (np.arange(1, steps + 1) + 0.5 - distance / s - DELAY) / WIDTH
    moment = np.exp(-(phase**2))
    rate, second = -2 * phase / WIDTH * moment, (4 * phase**2 - 2) / WIDTH**2 * moment
    return (moment / distance**3 + rate / (s * distance**2) + second / (s * s * distance)) / (4 * np.pi)


def error(backend="auto", shape=(41, 61, 41), steps=200):
    """The largest difference to the exact field 8 cells from the dipole, relative to the largest value."""
    receiver = (SOURCE[0], SOURCE[1], SOURCE[2] + 8)
    sim = start(shape, receiver, backend=backend)
    sim.run(steps)
    exact = dipole(8, steps)
    return np.abs(received(sim, receiver) - exact).max() / np.abs(exact).max()


def main():
    arguments = argparse.ArgumentParser(description="A dipole in front of a sphere of glass.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="maxwell.png")
    options = arguments.parse_args()

    shape = 41, 61, 100
    z, y, x = np.indices(shape)
    glass = np.sqrt((z - 20) ** 2 + (y - 30) ** 2 + (x - 55) ** 2) < 16
    sim = maxwell.start(permittivity=np.where(glass, 2.25, 1.0), backend=options.backend)
    sim.run(175)
    plane = np.kron(sim["e[2]"][20], np.ones((4, 4)))
    ab.FieldValues(plane, "Ez", sim.step).png(range=(-1e-4, 1e-4)).save(options.picture)
    print(f"{options.picture}; the field of a dipole in vacuum within {error(options.backend):.1%} of the exact one")


if __name__ == "__main__":
    main()
