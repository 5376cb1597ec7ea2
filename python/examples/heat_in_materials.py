"""Conduction of heat in two materials on a stretched grid, with heat sources and convection at the walls; SI units.

A picture says where the second material is, which is heated. Cells are narrower towards the walls.
"""

import argparse

import numpy as np

import pyabide as ab


def spacings(n, length, stretch):
    """Returns the spacing as a function of the index: (1 + stretch r^2) times a mean, where r is -1 and 1 in the
    outermost cells. All n cells together have the length. Numbers, arrays and recorded formulas may be given."""
    unit = length / (n * (1.0 + stretch * (n + 1.0) / (3.0 * (n - 1.0))))
    middle = 0.5 * (n - 1.0)

    def spacing(i):
        r = (i - middle) / middle
        return unit * (1.0 + stretch * (r * r))

    return spacing


@ab.program(2, boundary="clamp")
def heat_in_materials(
    T=ab.field(start=293.15),
    material=ab.field(start=0.0),
    dt=ab.parameter(0.005, "time step in s"),
    width=ab.parameter(0.1, "in m"),
    height=ab.parameter(0.1, "in m"),
    stretch=ab.parameter(-0.5, "above -1; 0 is an even grid"),
    k0=ab.parameter(1.0, "conductivity of the first material in W/(m K)"),
    k1=ab.parameter(15.0, "of the second"),
    c0=ab.parameter(2e6, "heat capacity of the first material in J/(m^3 K)"),
    c1=ab.parameter(4e6, "of the second"),
    q=ab.parameter(0.0, "heat source in the second material in W/m^3"),
    hx=ab.parameter(25.0, "heat transfer at the walls across x in W/(m^2 K)"),
    hy=ab.parameter(25.0, "across y"),
    outside=ab.parameter(293.15, "temperature of the air in K"),
    nx=ab.extent("x"),
    ny=ab.extent("y"),
):
    def conductivity(m):
        return ab.where(m > 0.5, k1, k0)

    def inflow(axis, side):
        """The heat that flows in through the side -1 or 1 along an axis, in W/m^2."""
        n, length, h = (ny, height, hy) if axis == 0 else (nx, width, hx)
        i, spacing = ab.coord(axis), spacings(n, length, stretch)
        offset = (side, 0) if axis == 0 else (0, side)
        # Resistances in series: half a cell, and half its neighbour or the air at the wall.
        half = 0.5 * spacing(i) / conductivity(material)
        beside = 0.5 * spacing(i + side) / conductivity(material[offset])
        at_wall = i == (0 if side < 0 else n - 1)
        return ab.where(at_wall, h * (outside - T) / (1.0 + h * half), (T[offset] - T) / (half + beside))

    x, y = ab.coord(1), ab.coord(0)
    gain = (inflow(1, -1) + inflow(1, 1)) / spacings(nx, width, stretch)(x)
    gain = gain + (inflow(0, -1) + inflow(0, 1)) / spacings(ny, height, stretch)(y)
    heated = ab.where(material > 0.5, 1.0, 0.0)
    yield {"T": T + dt / ab.where(material > 0.5, c1, c0) * (gain + q * heated)}


def step(shape, *, width=0.1, height=0.1, stretch=-0.5, diffusivity=15 / 4e6):
    """A stable time step: 0.2 of the smallest spacing's square over the largest diffusivity."""
    axes = zip(shape, (height, width), strict=True)
    least = min(spacings(n, length, stretch)(np.arange(float(n))).min() for n, length in axes)
    return 0.2 * least**2 / diffusivity


def slab_error(n, steps, backend="auto"):
    """The error in K of a heated slab of the second material, 0.1 m between walls of air, in its steady state."""
    sim = heat_in_materials.start(
        shape=(4, n), dtype="float64", material=1.0, dt=step((4, n)), q=1e6, hx=500.0, hy=0.0, backend=backend
    )
    sim.run(steps)
    spacing = spacings(n, 0.1, -0.5)(np.arange(float(n)))
    x = np.cumsum(spacing) - 0.5 * spacing
    exact = 293.15 + 1e6 * 0.1 / (2 * 500.0) + 1e6 / (2 * 15.0) * x * (0.1 - x)
    return np.abs(sim["T"][1] - exact).max()


def wire(n):
    """A picture of n x n cells: a bent wire."""
    y, x = np.indices((n, n)) / n
    bars = (np.abs(y * 6 % 1 - 0.5) < 0.15) & (np.abs(x - 0.5) < 0.36)
    ends = (np.abs(np.abs(x - 0.5) - 0.34) < 0.02) & (np.abs(y - 0.5) < 0.435)
    side = np.where(np.floor(y * 6 - 0.5) % 2 == 0, x > 0.5, x < 0.5)
    return np.where(bars | (ends & side), 1.0, 0.0)


def main():
    arguments = argparse.ArgumentParser(description="A heating wire of steel in concrete.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="heat_in_materials.png")
    options = arguments.parse_args()

    dt = step((160, 160))
    sim = heat_in_materials.start(material=wire(160), T=293.15, dt=dt, q=2e6, backend=options.backend)
    sim.run(round(60 / dt))
    shown = np.kron(sim["T"], np.ones((2, 2)))
    ab.FieldValues(shown, "T", sim.step).png().save(options.picture)
    print(f"{options.picture}; steady temperature of a slab within {slab_error(32, 40_000, options.backend):.2f} K of 183 K")


if __name__ == "__main__":
    main()
