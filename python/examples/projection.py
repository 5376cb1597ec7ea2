"""Incompressible flow by Chorin's projection on a staggered grid: a lid-driven cavity.

Velocities stand on the faces of cells, the pressure in cells. A step predicts the velocities, relaxes the pressure by
Jacobi sweeps, and removes the divergence. The pressure is kept, so that few sweeps a step suffice.
"""

import argparse

import numpy as np

import pyabide as ab

SWEEPS = 20


@ab.program(2, boundary="mirror")
def projection(
    u=ab.field(on="x-faces", start=0.0, boundary={"x": "constant=0", "y": "-mirror"}),
    v=ab.field(on="y-faces", start=0.0, boundary={"y": "constant=0", "x": "-mirror"}),
    p=ab.field(start=0.0),
    us=ab.temporary("x-faces"),
    vs=ab.temporary("y-faces"),
    rhs=ab.temporary(),
    dt=0.004,
    h=ab.parameter(1 / 64, "width of a cell"),
    nu=ab.parameter(0.01, "viscosity"),
    lid=ab.parameter(1.0, "velocity of the lid, at the last row"),
    nx=ab.extent("x"),
    ny=ab.extent("y"),
):
    x, y = ab.coord(1), ab.coord(0)
    # The faces at the walls, whose velocity stays 0.
    inner_u, inner_v = (x > 0) * (x < nx), (y > 0) * (y < ny)

    # The prediction: advection and viscosity. Beyond the lid, u continues so that it is the lid's in between.
    u_north = ab.where(y == ny - 1, 2 * lid - u[0, 0], u[1, 0])
    v_there = 0.25 * (v[0, -1] + v[0, 0] + v[1, -1] + v[1, 0])
    advection = u[0, 0] * (u[0, 1] - u[0, -1]) / (2 * h) + v_there * (u_north - u[-1, 0]) / (2 * h)
    laplacian = (u[0, 1] + u[0, -1] + u_north + u[-1, 0] - 4 * u[0, 0]) / (h * h)
    yield {"us": ab.where(inner_u, u[0, 0] + dt * (nu * laplacian - advection), 0.0)}
    u_there = 0.25 * (u[-1, 0] + u[0, 0] + u[-1, 1] + u[0, 1])
    advection = u_there * (v[0, 1] - v[0, -1]) / (2 * h) + v[0, 0] * (v[1, 0] - v[-1, 0]) / (2 * h)
    laplacian = (v[0, 1] + v[0, -1] + v[1, 0] + v[-1, 0] - 4 * v[0, 0]) / (h * h)
    yield {"vs": ab.where(inner_v, v[0, 0] + dt * (nu * laplacian - advection), 0.0)}

    # The pressure, whose gradient removes the divergence.
    yield {"rhs": (us[0, 1] - us[0, 0] + vs[1, 0] - vs[0, 0]) * (h / dt)}
    for _ in range(SWEEPS):
        yield {"p": 0.25 * (p[-1, 0] + p[0, -1] + p[0, 1] + p[1, 0] - rhs)}
    yield {"u": ab.where(inner_u, us[0, 0] - dt / h * (p[0, 0] - p[0, -1]), 0.0)}
    yield {"v": ab.where(inner_v, vs[0, 0] - dt / h * (p[0, 0] - p[-1, 0]), 0.0)}


def cavity(n, time, *, reynolds=100, backend="auto"):
    """The cavity on n x n cells after a time, in units of the cavity's and the lid's."""
    nu, h = 1 / reynolds, 1 / n
    dt = min(0.2 * h * h / nu, 0.25 * h)
    sim = projection.start(shape=(n, n), dtype="float64", dt=dt, h=h, nu=nu, backend=backend)
    sim.run(round(time / dt))
    return sim


# Velocities along the vertical and horizontal middle at Re = 100: Ghia, Ghia and Shin, J. Comput. Phys. 48 (1982).
GHIA_Y = [0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688]
GHIA_U = [-0.03717, -0.04192, -0.04775, -0.06434, -0.1015, -0.15662, -0.2109, -0.20581, -0.13641, 0.00332, 0.23151]
GHIA_U += [0.68717, 0.73722, 0.78871]
GHIA_X = [0.0625, 0.0703, 0.0781, 0.0938, 0.1563, 0.2266, 0.2344, 0.5, 0.8047, 0.8594, 0.9063, 0.9453, 0.9531, 0.9609]
GHIA_V = [0.09233, 0.10091, 0.1089, 0.12317, 0.16077, 0.17507, 0.17527, 0.05454, -0.24533, -0.22445, -0.16914]
GHIA_V += [-0.10313, -0.08864, -0.07391]


def ghia_errors(u, v):
    """The largest differences of u and v to Ghia's values, for an even number of cells."""
    n = len(u)
    centres = (np.arange(n) + 0.5) / n
    return (
        np.abs(np.interp(GHIA_Y, centres, u[:, n // 2]) - GHIA_U).max(),
        np.abs(np.interp(GHIA_X, centres, v[n // 2]) - GHIA_V).max(),
    )


def main():
    arguments = argparse.ArgumentParser(description="A lid-driven cavity at Re = 100.")
    arguments.add_argument("--backend", default="auto")
    arguments.add_argument("--picture", default="projection.png")
    options = arguments.parse_args()

    n = 48
    sim = cavity(n, 20, backend=options.backend)
    u, v = sim["u"], sim["v"]
    # Stripes of the stream function, which is 0 at the nodes of the bottom.
    stream = np.zeros((n + 1, n + 1))
    stream[1:] = np.cumsum(u, axis=0) / n
    fine = np.linspace(0, n, 8 * n + 1)
    for _ in range(2):
        stream = np.array([np.interp(fine, np.arange(n + 1), line) for line in stream]).T
    ab.FieldValues(np.floor(stream[::-1] / 0.005), "stream", sim.step).png().save(options.picture)
    along_y, along_x = ghia_errors(u, v)
    print(f"{options.picture}; u within {along_y:.4f} and v within {along_x:.4f} of Ghia's")


if __name__ == "__main__":
    main()
