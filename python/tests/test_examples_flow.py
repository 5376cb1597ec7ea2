"""The examples of flows against forms of their own in numpy, exact solutions and published values."""

from typing import Any

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
