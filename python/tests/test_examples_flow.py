"""The examples of flows against forms of their own in numpy, exact solutions and published values."""

from typing import Any

import euler
import lattice_boltzmann
import numpy as np
import pytest
import shallow_water
from conftest import Array, check_model, full

State = list[Array]


def faces(w: Array, axis: int, sign: int, mode: Any) -> State:
    """The values of two cells before and two behind each face along an axis."""
    pads = [(2, 2) if each == axis else (0, 0) for each in (0, 1)]
    padded = np.moveaxis(np.pad(w, pads, mode=mode), axis, -1)
    padded[..., :2] *= sign
    padded[..., -2:] *= sign
    n = w.shape[axis] + 1
    return [np.moveaxis(padded[..., k : k + n], -1, axis) for k in range(4)]


def water_flux(state: State, sea: Array, axis: int) -> State:
    """The HLL fluxes of shallow water through all faces along an axis, of reconstructed depths and velocities."""
    g, dry = shallow_water.G, shallow_water.DRY
    at = faces(sea, axis, 1, "symmetric")
    flat_left, flat_right = at[0] * at[1] * at[2] == 0, at[1] * at[2] * at[3] == 0
    h = state[0]
    primitive = [h, *(np.where(h > dry, q / np.maximum(h, dry), 0.0) for q in state[1:])]
    left, right, signs = [], [], (1, -1, 1)
    for w, sign in zip(primitive, signs, strict=True):
        a, b, c, d = faces(w, axis, sign, "symmetric")
        slopes = [
            np.where(p * q > 0, np.where(np.abs(p) < np.abs(q), p, q), 0.0) for p, q in ((b - a, c - b), (c - b, d - c))
        ]
        left.append(b + 0.5 * np.where(flat_left, 0.0, slopes[0]))
        right.append(c - 0.5 * np.where(flat_right, 0.0, slopes[1]))
    left, right = (
        [np.where(at[1] > 0, l, s * r) for l, r, s in zip(left, right, signs, strict=True)],
        [np.where(at[2] > 0, r, s * l) for l, r, s in zip(left, right, signs, strict=True)],
    )
    (hl, ul, vl), (hr, ur, vr) = left, right
    cl, cr = np.sqrt(g * np.maximum(hl, 0)), np.sqrt(g * np.maximum(hr, 0))
    sl = np.minimum(np.minimum(ul - cl, ur - cr), 0)
    sr = np.maximum(np.maximum(ul + cl, ur + cr), 0)
    ql, qr = hl * ul, hr * ur
    fl = [ql, ql * ul + 0.5 * g * hl * hl, ql * vl]
    fr = [qr, qr * ur + 0.5 * g * hr * hr, qr * vr]
    jumps = [hr - hl, qr - ql, hr * vr - hl * vl]
    width = np.maximum(sr - sl, 1e-12)
    return [(sr * a - sl * b + sl * sr * jump) / width for a, b, jump in zip(fl, fr, jumps, strict=True)]


def water_rate(state: State, sea: Array) -> State:
    h, hu, hv = state
    fx = water_flux([h, hu, hv], sea, 1)
    fy = water_flux([h, hv, hu], sea, 0)
    x = [-(f[:, 1:] - f[:, :-1]) for f in fx]
    y = [f[1:] - f[:-1] for f in (fy[0], fy[2], fy[1])]
    return [a - b for a, b in zip(x, y, strict=True)]


def water(state: State, sea: Array, steps: int, dx: float = 0.1, cfl: float = 0.25, end: float = 2.0) -> State:
    dry, time = shallow_water.DRY, 0.0
    for _ in range(steps):
        h, hu, hv = state
        c = np.sqrt(shallow_water.G * np.maximum(h, 0))
        u, v = (np.abs(np.where(h > dry, q / np.maximum(h, dry), 0)) for q in (hu, hv))
        dt = min(cfl * dx / np.maximum(u + c, v + c).max(), end + 1e-12 - time)
        one = [w + sea * dt / dx * k for w, k in zip(state, water_rate(state, sea), strict=True)]
        two = water_rate(one, sea)
        state = [
            np.where(sea > 0, 0.5 * (w + p + dt / dx * k), w) for w, p, k in zip(state, one, two, strict=True)
        ]
        time += dt
    return state


def pool() -> tuple[Array, Array]:
    """A corner full of rough water, dry ground, and an island."""
    n = (41, 57)
    y, x = np.indices(n)
    h = np.where(x + y < 40, 1 + 0.1 * np.random.default_rng(3).random(n), 0.0)
    return h, np.where(np.hypot(x - 25, y - 18) < 6, 0.0, 1.0)


def test_shallow_water_has_the_bits_of_numpy(backend: Any) -> None:
    h, sea = pool()
    sim = shallow_water.shallow_water.start(h=h, sea=sea, backend=backend)
    sim.run(40)
    expected = water([h, np.zeros_like(h), np.zeros_like(h)], sea, 40)
    for name, values in zip(("h", "hu", "hv"), expected, strict=True):
        assert np.array_equal(sim[name], values), name
    assert (sim["h"] < shallow_water.DRY).sum() > 20 and sim["h"].min() >= 0
    # No water enters the land or leaves the domain.
    assert abs((sea * sim["h"]).sum() / (sea * h).sum() - 1) < 1e-14


def test_shallow_water_converges_to_stokers_solution(backend: Any) -> None:
    errors = [shallow_water.stoker_error(n, backend) for n in (100, 200)]
    assert errors[1] < 0.006 and errors[0] / errors[1] > 1.7


@full
def test_shallow_water_converges_further(backend: Any) -> None:
    errors = [shallow_water.stoker_error(n, backend) for n in (400, 800)]
    assert errors[1] < 0.0015 and errors[0] / errors[1] > 1.8


def test_shallow_water_model() -> None:
    h, sea = pool()
    check_model(shallow_water.shallow_water, 30, h=h, sea=sea, end=2.0, until="time >= 2")


def collision(f: State, axes: int, omega: float) -> State:
    """The collision of populations by their velocities, one after the other."""
    velocities, weights = {
        2: (lattice_boltzmann.D2Q9, lattice_boltzmann.W9),
        3: (lattice_boltzmann.D3Q19, lattice_boltzmann.W19),
    }[axes]
    density = f[0].copy()
    for g in f[1:]:
        density += g
    flows = []
    for axis in range(axes):
        forth, back = np.zeros_like(density), np.zeros_like(density)
        for g, c in zip(f, velocities, strict=True):
            forth += g if c[axis] == 1 else 0.0
            back += g if c[axis] == -1 else 0.0
        flows.append((forth - back) / density)
    squares = flows[0] ** 2
    for flow in flows[1:]:
        squares = squares + flow**2
    new = []
    for g, c, w in zip(f, velocities, weights, strict=True):
        cu = np.zeros_like(density)
        for step, flow in zip(c, flows, strict=True):
            cu = cu + step * flow
        equilibrium = w * density * (1 - 1.5 * squares + 3 * cu + 4.5 * cu * cu)
        new.append(g + omega * (equilibrium - g))
    return new


def cavity(shape: tuple[int, int], steps: int, omega: float, lid: float) -> State:
    f = [np.full(shape, 1 / 9)] * 9
    velocities = lattice_boltzmann.D2Q9
    for _ in range(steps):
        pulled = []
        for i, (cy, cx) in enumerate(velocities):
            g = np.roll(f[i], (cy, cx), (0, 1))
            opposite = f[velocities.index((-cy, -cx))].copy()
            if cy < 0 and cx:
                opposite[-1] += 6 * lattice_boltzmann.W9[i] * cx * lid
            if cx:
                column = 0 if cx > 0 else -1
                g[:, column] = opposite[:, column]
            if cy:
                row = 0 if cy > 0 else -1
                g[row] = opposite[row]
            pulled.append(g)
        f = collision(pulled, 2, omega)
    return f


def test_lattice_boltzmann_cavity_has_the_bits_of_numpy(backend: Any) -> None:
    sim = lattice_boltzmann.lattice_boltzmann.start(shape=(23, 31), dtype="float64", omega=1.3, backend=backend)
    sim.run(60)
    for i, g in enumerate(cavity((23, 31), 60, 1.3, 0.1)):
        assert np.array_equal(sim[f"f[{i}]"], g), i


def test_lattice_boltzmann_in_3d_has_the_bits_of_numpy(backend: Any) -> None:
    velocities = lattice_boltzmann.D3Q19
    f = list(np.random.default_rng(4).random((19, 7, 9, 11)) + 1)
    sim = lattice_boltzmann.taylor_green.start(f=f, omega=1.3, backend=backend)
    sim.run(10)
    for _ in range(10):
        f = collision([np.roll(g, c, (0, 1, 2)) for g, c in zip(f, velocities, strict=True)], 3, 1.3)
    for i, g in enumerate(f):
        assert np.array_equal(sim[f"f[{i}]"], g), i


def test_lattice_boltzmann_vortices_decay(backend: Any) -> None:
    errors = [lattice_boltzmann.decay_error(n, steps, backend=backend) for n, steps in ((12, 50), (24, 200))]
    assert errors[1] < 0.012 and errors[0] / errors[1] > 3.5


@pytest.mark.parametrize("n", [32, pytest.param(100, marks=full)])
def test_lattice_boltzmann_cavity_is_ghias(n: int, backend: Any) -> None:
    steps, most = (4000, 0.012) if n == 32 else (20000, 0.006)
    _, u = lattice_boltzmann.cavity(n, steps, backend=backend)
    assert lattice_boltzmann.ghia_error(u) < most


def test_lattice_boltzmann_model() -> None:
    check_model(lattice_boltzmann.lattice_boltzmann, 40, shape=(15, 21), dtype="float64", omega=1.3)


def gas_flux(primitive: State, axis: int) -> State:
    """The HLLC fluxes through the faces along an axis that have two cells at each side, of primitive values with the
    normal velocity second. Across, two cells at each side are left out."""
    gamma = euler.GAMMA

    def slope(p: Array, q: Array) -> Array:
        same = p * q > 0
        return np.where(same, 2 * p * q / np.where(same, p + q, 1.0), 0.0)

    left, right = [], []
    for w in primitive:
        along = np.moveaxis(w, axis, -1)[2:-2]
        n = along.shape[-1] - 3
        a, b, c, d = (np.moveaxis(along[:, k : k + n], -1, axis) for k in range(4))
        left.append(b + 0.5 * slope(b - a, c - b))
        right.append(c - 0.5 * slope(c - b, d - c))
    (rl, ul, _, pl), (rr, ur, _, pr) = left, right
    cl, cr = np.sqrt(gamma * pl / rl), np.sqrt(gamma * pr / rr)
    sl, sr = np.minimum(ul - cl, ur - cr), np.maximum(ul + cl, ur + cr)
    sm = (pr - pl + rl * ul * (sl - ul) - rr * ur * (sr - ur)) / (rl * (sl - ul) - rr * (sr - ur))
    own, star = [], []
    for (r, u, v, p), s in ((left, sl), (right, sr)):
        e = p / (gamma - 1) + 0.5 * r * (u * u + v * v)
        flux = [r * u, r * u * u + p, r * u * v, u * (e + p)]
        k = r * (s - u) / (s - sm)
        inner = [k, k * sm, k * v, k * (e / r + (sm - u) * (sm + p / (r * (s - u))))]
        own.append(flux)
        star.append([f + s * (x - q) for f, x, q in zip(flux, inner, [r, r * u, r * v, e], strict=True)])
    return [
        np.select([sl >= 0, sm >= 0, sr > 0], [fl, gl, gr], fr)
        for fl, gl, gr, fr in zip(own[0], star[0], star[1], own[1], strict=True)
    ]


def gas(q: State, steps: int, dx: float, cfl: float = 0.4, end: float = 0.2) -> State:
    time = 0.0

    def primitive(q: State) -> State:
        u, v = q[1] / q[0], q[2] / q[0]
        return [q[0], u, v, (euler.GAMMA - 1) * (q[3] - 0.5 * q[0] * (u * u + v * v))]

    def rate(q: State) -> State:
        r, u, v, p = primitive(q)
        fx, fy = gas_flux([r, u, v, p], 1), gas_flux([r, v, u, p], 0)
        fy = [fy[0], fy[2], fy[1], fy[3]]
        return [dt / dx * (-(f[:, 1:] - f[:, :-1]) - (g[1:] - g[:-1])) for f, g in zip(fx, fy, strict=True)]

    def inner(w: Array, layers: int) -> Array:
        return w[layers:-layers, layers:-layers]

    for _ in range(steps):
        r, u, v, p = primitive(q)
        fastest = (np.maximum(np.abs(u), np.abs(v)) + np.sqrt(euler.GAMMA * p / r)).max()
        dt = min(cfl * dx / fastest, end - time + 1e-14)
        # The stages need two cells more at each side, one after the other: what lies beyond the domain takes part.
        q = [np.pad(w, ((6, 0), (0, 0)), "symmetric") for w in q]
        q[2][:6] *= -1
        q = [np.pad(w, ((0, 6), (6, 6)), "edge") for w in q]
        one = [inner(w, 2) + k for w, k in zip(q, rate(q), strict=True)]
        two = [0.75 * inner(w, 4) + 0.25 * (inner(x, 2) + k) for w, x, k in zip(q, one, rate(one), strict=True)]
        q = [(inner(w, 6) + 2 * (inner(x, 2) + k)) / 3 for w, x, k in zip(q, two, rate(two), strict=True)]
        time += dt
    return q


def blast() -> State:
    """A box of hot gas in noise, near the reflecting wall."""
    n = (27, 35)
    y, x = np.indices(n)
    noise = np.random.default_rng(5).random((4, *n))
    hot = (np.abs(x - 15) < 5) & (np.abs(y - 8) < 5)
    return [1 + 0.1 * noise[0], 0.1 * noise[1], 0.1 * noise[2], np.where(hot, 25.0, 0.5) + 0.1 * noise[3]]


def test_euler_has_the_bits_of_numpy(backend: Any) -> None:
    q, names = blast(), ("r", "mx", "my", "e")
    sim = euler.euler.start(**dict(zip(names, q, strict=True)), backend=backend)
    sim.run(25)
    for name, values in zip(names, gas(q, 25, 0.01), strict=True):
        assert np.array_equal(sim[name], values), name


def test_euler_converges_to_sods_tube(backend: Any) -> None:
    errors = [euler.sod_error(n, backend) for n in (100, 200)]
    assert errors[1] < 0.0029 and errors[0] / errors[1] > 1.8


def test_euler_model() -> None:
    q = dict(zip(("r", "mx", "my", "e"), blast(), strict=True))
    check_model(euler.euler, 20, **q, dx=0.01)
