"""Gas dynamics in 2D: Euler's equations by MUSCL with van Leer's limiter, HLLC fluxes and three-stage SSP Runge-Kutta.

The state q is density, momentum along x and y, and energy. The case is a strong blast beside a reflecting wall.
"""

import argparse

import numpy as np

import pyabide as ab

GAMMA = 1.4


def primitive(q):
    """Density, velocity along x and y, and pressure."""
    density, mx, my, energy = q
    u, v = mx / density, my / density
    return density, u, v, (GAMMA - 1) * (energy - 0.5 * density * (u * u + v * v))


def limited(a, b):
    """Van Leer's slope of two differences."""
    return ab.where(a * b > 0, 2 * a * b / ab.where(a * b > 0, a + b, 1.0), 0.0)


def hllc(left, right):
    """The flux of (density, normal and tangential momentum, energy) between two states of primitive values."""
    (rl, ul, _, pl), (rr, ur, _, pr) = left, right
    cl, cr = ab.sqrt(GAMMA * pl / rl), ab.sqrt(GAMMA * pr / rr)
    sl, sr = ab.minimum(ul - cl, ur - cr), ab.maximum(ul + cl, ur + cr)
    contact = (pr - pl + rl * ul * (sl - ul) - rr * ur * (sr - ur)) / (rl * (sl - ul) - rr * (sr - ur))

    def side(r, u, v, p, s):
        """The flux of a state, and that of the star state between its wave and the contact."""
        energy = p / (GAMMA - 1) + 0.5 * r * (u * u + v * v)
        own = r * u, r * u * u + p, r * u * v, u * (energy + p)
        star = r * (s - u) / (s - contact)
        stars = star, star * contact, star * v, star * (energy / r + (contact - u) * (contact + p / (r * (s - u))))
        conserved = r, r * u, r * v, energy
        return own, [f + s * (a - b) for f, a, b in zip(own, stars, conserved, strict=True)]

    (fl, star_l), (fr, star_r) = side(*left, sl), side(*right, sr)
    return [
        ab.where(sl >= 0, a, ab.where(contact >= 0, b, ab.where(sr > 0, c, d)))
        for a, b, c, d in zip(fl, star_l, star_r, fr, strict=True)
    ]


def flux(q, axis):
    """The flux through the low face of each cell along an axis: (density, normal and tangential momentum, energy)."""
    cells = [primitive([w[(0, k) if axis == 1 else (k, 0)] for w in q]) for k in (-2, -1, 0, 1)]
    if axis == 0:
        cells = [(r, v, u, p) for r, u, v, p in cells]
    left = [b + 0.5 * limited(b - a, c - b) for a, b, c in zip(*cells[:3], strict=True)]
    right = [c - 0.5 * limited(c - b, d - c) for b, c, d in zip(*cells[1:], strict=True)]
    return hllc(left, right)


@ab.program(2, boundary="clamp", until="time >= 0.2")
def euler(
    r=ab.field(start=1.0, boundary={"y-": "mirror"}),
    mx=ab.field(start=0.0, boundary={"y-": "mirror"}),
    my=ab.field(start=0.0, boundary={"y-": "-mirror"}),
    e=ab.field(start=2.5, boundary={"y-": "mirror"}),
    r1=ab.temporary(),
    mx1=ab.temporary(),
    my1=ab.temporary(),
    e1=ab.temporary(),
    r2=ab.temporary(),
    mx2=ab.temporary(),
    my2=ab.temporary(),
    e2=ab.temporary(),
    fx0=ab.temporary("x-faces"),
    fx1=ab.temporary("x-faces"),
    fx2=ab.temporary("x-faces"),
    fx3=ab.temporary("x-faces"),
    fy0=ab.temporary("y-faces"),
    fy1=ab.temporary("y-faces"),
    fy2=ab.temporary("y-faces"),
    fy3=ab.temporary("y-faces"),
    dx=ab.parameter(0.01, "width of a cell"),
    cfl=ab.parameter(0.4, "at most 0.5"),
    end=ab.parameter(0.2, "the time that the last step ends at"),
    fastest=ab.scalar(),
    dt=ab.scalar(),
    time=ab.scalar(0.0),
):
    q, fx, fy = [r, mx, my, e], [fx0, fx1, fx2, fx3], [fy0, fy1, fy2, fy3]
    names = ["r", "mx", "my", "e"]
    _, u, v, p = primitive(q)
    yield {"fastest": ab.max(ab.maximum(ab.absolute(u), ab.absolute(v)) + ab.sqrt(GAMMA * p / r))}
    yield {"dt": ab.minimum(cfl * dx / fastest, end - time + 1e-14)}

    def fluxes(q):
        """Stages that compute the fluxes of a state, components in its order."""
        yield dict(zip(("fx0", "fx1", "fx2", "fx3"), flux(q, 1), strict=True))
        yield dict(zip(("fy0", "fy2", "fy1", "fy3"), flux(q, 0), strict=True))

    def change(i):
        return dt / dx * (-(fx[i][0, 1] - fx[i][0, 0]) - (fy[i][1, 0] - fy[i][0, 0]))

    one, two = [r1, mx1, my1, e1], [r2, mx2, my2, e2]
    yield from fluxes(q)
    yield {f"{name}1": q[i] + change(i) for i, name in enumerate(names)}
    yield from fluxes(one)
    yield {f"{name}2": 0.75 * q[i] + 0.25 * (one[i] + change(i)) for i, name in enumerate(names)}
    yield from fluxes(two)
    yield {name: (q[i] + 2 * (two[i] + change(i))) / 3 for i, name in enumerate(names)}
    yield {"time": time + dt}


def sod(x, time):
    """The density of Sod's shock tube, broken at x = 0: the exact solution."""
    g, rl, pl, rr, pr = GAMMA, 1.0, 1.0, 0.125, 0.1
    cl, cr = np.sqrt(g * pl / rl), np.sqrt(g * pr / rr)
    # The pressure between the fan and the shock, by bisection: both give the gas there one velocity.
    below, above = pr, pl
    for _ in range(60):
        p = 0.5 * (below + above)
        behind_fan = 2 * cl / (g - 1) * (1 - (p / pl) ** ((g - 1) / (2 * g)))
        behind_shock = (p - pr) * np.sqrt(2 / (rr * ((g + 1) * p + (g - 1) * pr)))
        below, above = (p, above) if behind_fan > behind_shock else (below, p)
    u = behind_fan
    left = rl * (p / pl) ** (1 / g)
    ratio = (g - 1) / (g + 1)
    right = rr * (p / pr + ratio) / (ratio * p / pr + 1)
    shock = cr * np.sqrt((g + 1) / (2 * g) * p / pr + (g - 1) / (2 * g))
    xi = x / time
    fan = rl * np.maximum(2 / (g + 1) - ratio / cl * xi, 0) ** (2 / (g - 1))
    inside = [xi < -cl, xi < u - np.sqrt(g * p / left), xi < u, xi < shock]
    return np.select(inside, [rl, fan, left, right], rr)


def sod_error(n, backend="auto"):
    """The mean error of the density in Sod's tube on n cells, at time 0.2."""
    x = (np.arange(n) + 0.5) / n - 0.5
    density, pressure = (np.tile(np.where(x < 0, 1.0, low), (4, 1)) for low in (0.125, 0.1))
    sim = euler.start(r=density, e=pressure / (GAMMA - 1), dx=1 / n, backend=backend)
    sim.run(10**6)
    return np.abs(sim["r"][1] - sod(x, 0.2)).mean()


def main():
    arguments = argparse.ArgumentParser(description="A blast above a reflecting wall.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="euler.png")
    options = arguments.parse_args()

    n = 160, 240
    y, x = (np.indices(n) + 0.5) / 160
    energy = np.where(np.hypot(x - 0.75, y - 0.35) < 0.12, 25.0, 0.25)
    sim = euler.start(r=np.ones(n), e=energy, dx=1 / 160, end=0.22, until="time >= 0.22", backend=options.backend)
    sim.run(10**6)
    density = np.kron(sim["r"][::-1], np.ones((2, 2)))
    ab.FieldValues(density, "r", sim.step).png(range=(0, 3)).save(options.picture)
    error = sod_error(200, options.backend)
    print(f"{options.picture}; mean error of the density in Sod's tube on 200 cells: {error:.4f}")


if __name__ == "__main__":
    main()
