"""Lattice Boltzmann with the BGK collision: a lid-driven cavity on D2Q9, and Taylor-Green vortices on D3Q19.

Each step pulls populations from the neighbours and collides them. Walls are half-way bounce-back: they lie half a
cell beyond the outermost cells. Units are those of the lattice.
"""

import argparse
import itertools

import numpy as np

import pyabide as ab

# Velocities, slowest axis first as all offsets are, and their weights.
D2Q9 = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
W9 = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
D3Q19 = [c for c in itertools.product((-1, 0, 1), repeat=3) if np.abs(c).sum() <= 2]
W19 = [{0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[int(np.abs(c).sum())] for c in D3Q19]


def collided(f, velocities, weights, omega):
    """The populations after their collision, which relaxes them towards equilibrium."""
    density = sum(f[1:], f[0])
    u = []
    for axis in range(len(velocities[0])):
        forth = [g for g, c in zip(f, velocities, strict=True) if c[axis] > 0]
        back = [g for g, c in zip(f, velocities, strict=True) if c[axis] < 0]
        u.append((sum(forth[1:], forth[0]) - sum(back[1:], back[0])) / density)
    squares = [v * v for v in u]
    rest = 1.0 - 1.5 * sum(squares[1:], squares[0])
    new = []
    for g, c, w in zip(f, velocities, weights, strict=True):
        along = [v if step > 0 else -v for v, step in zip(u, c, strict=True) if step]
        if along:
            cu = sum(along[1:], along[0])
            equilibrium = w * density * (rest + 3.0 * cu + 4.5 * cu * cu)
        else:
            equilibrium = w * density * rest
        new.append(g + omega * (equilibrium - g))
    return {f"f[{i}]": g for i, g in enumerate(new)}


@ab.program(2, boundary="clamp")
def lattice_boltzmann(
    f=ab.field(components=9, start=1 / 9),
    omega=ab.parameter(1.0, "rate of relaxation: 1 / (3 nu + 1/2), below 2"),
    lid=ab.parameter(0.1, "velocity of the lid"),
    nx=ab.extent("x"),
    ny=ab.extent("y"),
):
    x, y = ab.coord(1), ab.coord(0)
    pulled = []
    for i, (cy, cx) in enumerate(D2Q9):
        walls = []
        if cx:
            walls.append(x == (0 if cx > 0 else nx - 1))
        if cy:
            walls.append(y == (0 if cy > 0 else ny - 1))
        if not walls:
            pulled.append(f[i])
            continue
        # What a wall would send is what left the cell towards it. The lid, at the last row, adds its momentum.
        back = f[D2Q9.index((-cy, -cx))]
        if cy < 0 and cx:
            back = back + (y == ny - 1) * (6 * W9[i] * cx) * lid
        at_wall = walls[0] if len(walls) == 1 else ab.maximum(*walls)
        pulled.append(ab.where(at_wall, back, f[i][-cy, -cx]))
    yield collided(pulled, D2Q9, W9, omega)


@ab.program(3, boundary="periodic")
def taylor_green(f=ab.field(components=19), omega=1.0):
    pulled = [f[i][tuple(-step for step in c)] for i, c in enumerate(D3Q19)]
    yield collided(pulled, D3Q19, W19, omega)


def velocity(sim, velocities):
    """The components of the velocity, slowest axis first."""
    f = np.array([sim[f"f[{i}]"] for i in range(len(velocities))])
    return np.tensordot(np.transpose(velocities), f, 1) / f.sum(axis=0)


def cavity(n, steps, *, reynolds=100, lid=0.1, backend="auto"):
    """The velocity in a cavity of n x n cells after a number of steps, in units of the lid's."""
    omega = 1 / (3 * lid * n / reynolds + 0.5)
    sim = lattice_boltzmann.start(shape=(n, n), dtype="float64", omega=omega, lid=lid, backend=backend)
    sim.run(steps)
    return velocity(sim, D2Q9) / lid


# The velocity u along the cavity's vertical middle at Re = 100: Ghia, Ghia and Shin, J. Comput. Phys. 48 (1982).
GHIA_Y = [0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688]
GHIA_U = [-0.03717, -0.04192, -0.04775, -0.06434, -0.1015, -0.15662, -0.2109, -0.20581, -0.13641, 0.00332, 0.23151]
GHIA_U += [0.68717, 0.73722, 0.78871]


def ghia_error(u):
    """The largest difference to Ghia's values, for an even number of cells."""
    n = len(u)
    middle = 0.5 * (u[:, n // 2 - 1] + u[:, n // 2])
    return np.abs(np.interp(GHIA_Y, (np.arange(n) + 0.5) / n, middle) - GHIA_U).max()


def decay_error(n, steps, *, nu=0.02, speed=0.02, backend="auto"):
    """The error of decaying vortices, constant along z, relative to their largest velocity."""
    k = 2 * np.pi / n
    _, y, x = np.indices((n, n, n)) * k
    u = np.array([np.zeros_like(x), -speed * np.cos(x) * np.sin(y), speed * np.sin(x) * np.cos(y)])
    density = 1 + 0.75 * speed**2 * (np.cos(2 * x) + np.cos(2 * y))
    cu = np.tensordot(D3Q19, u, 1)
    equilibrium = 1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(axis=0)
    f = np.reshape(W19, (-1, 1, 1, 1)) * density * equilibrium
    sim = taylor_green.start(f=list(f), omega=1 / (3 * nu + 0.5), backend=backend)
    sim.run(steps)
    exact = u * np.exp(-2 * nu * k**2 * steps)
    return np.abs(velocity(sim, D3Q19) - exact).max() / np.abs(exact).max()


def main():
    arguments = argparse.ArgumentParser(description="A lid-driven cavity at Re = 100.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="lattice_boltzmann.png")
    options = arguments.parse_args()

    v, u = cavity(100, 12000, backend=options.backend)
    speed = np.kron(np.hypot(u, v)[::-1], np.ones((3, 3)))
    ab.FieldValues(speed, "speed", 12000).png(range=(0, 0.6)).save(options.picture)
    decay = decay_error(24, 200, backend=options.backend)
    print(f"{options.picture}; u within {ghia_error(u):.4f} of Ghia's; Taylor-Green vortices within {decay:.1%}")


if __name__ == "__main__":
    main()
