"""The examples of flows with a pressure, heat, phase fields, spins and species against forms of their own in numpy,
exact solutions and published values."""

from typing import Any

import heat_in_materials
import ising
import numpy as np
import phase_fields
import projection
import pytest
import species
from conftest import Array, check_model, full
from philox import uniform


def chorin(u: Array, v: Array, p: Array, steps: int, dt: float, h: float, nu: float) -> tuple[Array, Array, Array]:
    """Chorin's projection in a cavity whose lid moves with velocity 1."""

    def around(w: Array, axis: int, sides: tuple[float, float]) -> Array:
        """Ghosts at walls along an axis: the mirrored value with the opposite sign, plus twice the wall's."""
        low, high = w.take([0], axis), w.take([-1], axis)
        return np.concatenate([2 * sides[0] - low, w, 2 * sides[1] - high], axis)

    for _ in range(steps):
        w = around(u, 0, (0.0, 1.0))
        mean = 0.25 * (v[:-1, :-1] + v[:-1, 1:] + v[1:, :-1] + v[1:, 1:])
        centre, south, north = w[1:-1, 1:-1], w[:-2, 1:-1], w[2:, 1:-1]
        east, west = w[1:-1, 2:], w[1:-1, :-2]
        advection = centre * (east - west) / (2 * h) + mean * (north - south) / (2 * h)
        laplacian = (east + west + north + south - 4 * centre) / (h * h)
        us = np.pad(centre + dt * (nu * laplacian - advection), ((0, 0), (1, 1)))
        w = around(v, 1, (0.0, 0.0))
        mean = 0.25 * (u[:-1, :-1] + u[1:, :-1] + u[:-1, 1:] + u[1:, 1:])
        centre, south, north = w[1:-1, 1:-1], w[:-2, 1:-1], w[2:, 1:-1]
        east, west = w[1:-1, 2:], w[1:-1, :-2]
        advection = mean * (east - west) / (2 * h) + centre * (north - south) / (2 * h)
        laplacian = (east + west + north + south - 4 * centre) / (h * h)
        vs = np.pad(centre + dt * (nu * laplacian - advection), ((1, 1), (0, 0)))
        rhs = (us[:, 1:] - us[:, :-1] + vs[1:] - vs[:-1]) * (h / dt)
        for _ in range(projection.SWEEPS):
            q = np.pad(p, 1, mode="edge")
            p = 0.25 * (q[:-2, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:] + q[2:, 1:-1] - rhs)
        u, v = us, vs
        u[:, 1:-1] -= dt / h * (p[:, 1:] - p[:, :-1])
        v[1:-1] -= dt / h * (p[1:] - p[:-1])
    return u, v, p


def test_projection_has_the_bits_of_numpy(backend: Any) -> None:
    ny, nx = 15, 19
    sim = projection.projection.start(shape=(ny, nx), dtype="float64", dt=0.01, h=1 / 19, backend=backend)
    sim.run(40)
    start = np.zeros((ny, nx + 1)), np.zeros((ny + 1, nx)), np.zeros((ny, nx))
    for name, values in zip("uvp", chorin(*start, 40, 0.01, 1 / 19, 0.01), strict=True):
        assert np.array_equal(sim[name], values), name


@pytest.mark.parametrize(("n", "time", "most"), [(32, 15, 0.007), pytest.param(64, 30, 0.0075, marks=full)])
def test_projection_is_ghias(n: int, time: float, most: float, backend: Any) -> None:
    sim = projection.cavity(n, time, backend=backend)
    u, v = sim["u"], sim["v"]
    assert max(projection.ghia_errors(u, v)) < most
    assert np.abs(np.diff(u, axis=1) + np.diff(v, axis=0)).max() < 2e-3


def test_projection_model() -> None:
    check_model(projection.projection, 15, shape=(11, 13), dtype="float64", h=1 / 13)


def conduction(T: Array, material: Array, steps: int, dt: float, q: float, h: float = 25.0) -> Array:
    """Conduction by fluxes through faces, of a plate of 0.1 m between air of 293.15 K."""
    k, c = np.where(material > 0.5, 15.0, 1.0), np.where(material > 0.5, 4e6, 2e6)

    def spacing(n: int) -> Array:
        r = np.linspace(-1, 1, n)
        own = 1 - 0.5 * r**2
        return 0.1 * own / own.sum()

    def gain(T: Array, k: Array) -> Array:
        """What flows into cells along the last axis, in W/m^3."""
        d = spacing(T.shape[1])
        half = 0.5 * d / k
        flux = np.zeros((T.shape[0], T.shape[1] + 1))
        flux[:, 1:-1] = (T[:, 1:] - T[:, :-1]) / (half[:, 1:] + half[:, :-1])
        for wall, sign in ((0, -1), (-1, 1)):
            flux[:, wall] = sign * (293.15 - T[:, wall]) / (1 / h + half[:, wall])
        return np.diff(flux, axis=1) / d

    for _ in range(steps):
        T = T + dt / c * (gain(T, k) + gain(T.T, k.T).T + q * (material > 0.5))
    return T


def plate() -> tuple[Array, Array]:
    random = np.random.default_rng(6)
    return 293.15 + 100 * random.random((21, 27)), (random.random((21, 27)) > 0.7).astype(float)


def test_heat_in_materials_is_that_of_numpy(backend: Any) -> None:
    T, material = plate()
    dt = heat_in_materials.step(T.shape)
    sim = heat_in_materials.heat_in_materials.start(T=T, material=material, dt=dt, q=1e6, backend=backend)
    sim.run(200)
    assert np.abs(sim["T"] - conduction(T, material, 200, dt, 1e6)).max() < 1e-10


def test_heat_in_a_slab_converges(backend: Any) -> None:
    errors = [heat_in_materials.slab_error(n, steps, backend) for n, steps in ((8, 5000), (16, 20000))]
    assert errors[1] < 0.5 and errors[0] / errors[1] > 4


def test_heat_in_materials_model() -> None:
    T, material = plate()
    check_model(heat_in_materials.heat_in_materials, 30, T=T, material=material, q=1e6)


def five_points(w: Array) -> Array:
    """The sum of the four neighbours less four times the cell, on a periodic plane."""
    south, west, east, north = (np.roll(w, side, axis) for side, axis in ((1, 0), (1, 1), (-1, 1), (-1, 0)))
    return south + west + east + north - 4 * w


def test_phase_fields_have_the_bits_of_numpy(backend: Any) -> None:
    random = np.random.default_rng(8)
    start = random.standard_normal((19, 23))
    c, n = 0.2 * start, 0.2 * start - 0.35
    mixture = phase_fields.cahn_hilliard.start(c=c, backend=backend)
    crystal = phase_fields.phase_field_crystal.start(n=n, h=1.1, backend=backend)
    u = random.standard_normal(41)
    front = phase_fields.kuramoto_sivashinsky.start(u=u, backend=backend)
    for sim in (mixture, crystal, front):
        sim.run(50)
    for _ in range(50):
        c = c + 0.02 * five_points(c * c * c - c - 1.0 * five_points(c))
        bent = n + five_points(n) / (1.1 * 1.1)
        mu = -0.6 * n + (bent + five_points(bent) / (1.1 * 1.1)) + n * n * n
        n = n + 0.002 * five_points(mu) / (1.1 * 1.1)
        far_low, low, high, far_high = (np.roll(u, side) for side in (2, 1, -1, -2))
        second = (low - 2 * u + high) / 0.25
        fourth = (far_low - 4 * low + 6 * u - 4 * high + far_high) / 0.0625
        u = u - 0.002 * (second + fourth + (high * high - low * low) / 2.0)
    assert np.array_equal(mixture["c"], c)
    assert np.array_equal(crystal["n"], n)
    assert np.array_equal(front["u"], u)


def test_phase_fields_grow_as_linear_theory_says(backend: Any) -> None:
    for measured, theory in phase_fields.growth_rates(backend):
        assert abs(measured / theory - 1) < 0.01


def test_phase_fields_keep_their_mass(backend: Any) -> None:
    c = 0.2 * np.random.default_rng(9).standard_normal((31, 33))
    sim = phase_fields.cahn_hilliard.start(c=c, backend=backend)
    sim.run(2000)
    assert abs(sim["c"].mean() - c.mean()) < 1e-14
    assert np.abs(sim["c"]).max() > 0.9


def test_phase_field_models() -> None:
    start = 0.2 * np.random.default_rng(8).standard_normal((19, 23))
    check_model(phase_fields.cahn_hilliard, 30, c=start, kappa=0.9)
    check_model(phase_fields.phase_field_crystal, 30, n=start - 0.35, h=1.1)
    check_model(phase_fields.kuramoto_sivashinsky, 30, u=start[0], h=0.6)


def spins(s: Array, beta: float, sweeps: int, seed: int) -> Array:
    """Metropolis with Philox in whole numbers of 64 bits."""
    colour = np.indices(s.shape).sum(axis=0) % 2
    s = s.astype(np.int64)
    for sweep in range(sweeps):
        for own in (0, 1):
            new = uniform(s.shape, sweep, stream=own, seed=seed, dtype="float32")
            cost = 2 * s * (five_points(s) + 4 * s)
            flips = new < np.exp(-beta * cost)
            s = np.where((colour == own) & flips, -s, s)
    return s


def test_ising_has_the_spins_of_whole_numbers(backend: Any) -> None:
    sim = ising.start((24, 32), 2.2, seed=5, backend=backend, dtype="float32")
    s = spins(sim["s"], 1 / 2.2, 100, seed=5)
    sim.run(100)
    assert np.array_equal(sim["s"], s)
    assert 0 < (s < 0).sum() < s.size / 2


@pytest.mark.parametrize(
    ("n", "temperature", "sweeps", "most"),
    [(64, 1.8, 500, 3e-3), *(pytest.param(256, t, 2000, 2e-3, marks=full) for t in (1.8, 2.0, 2.1))],
)
def test_ising_magnetisation_is_onsagers(n: int, temperature: float, sweeps: int, most: float, backend: Any) -> None:
    measured = ising.magnetisation(n, temperature, sweeps, backend)
    assert abs(measured - ising.onsager(temperature)) < most


def test_ising_model() -> None:
    check_model(ising.ising, 40, s=np.ones((16, 18)), beta=0.44)


def test_species_have_the_bits_of_numpy(backend: Any, dtype: Any) -> None:
    sim = species.start((13, 17), dtype=dtype, backend=backend)
    y = species.shares(sim)
    sim.run(40)
    d, k, dt = (dtype.type(value) for value in (0.1, 5.0, 0.1))
    for _ in range(40):
        growth = k * y * np.roll(y, 1, axis=0)
        shared = np.add.accumulate(growth)[-1]
        around = np.array([five_points(w) for w in y])
        y = y + d * around + dt * (growth - shared * y)
    assert y.dtype == dtype and np.array_equal(species.shares(sim), y)
    assert np.abs(y.sum(axis=0) - 1).max() < 10 * np.finfo(dtype).eps


def test_species_model() -> None:
    y = np.random.default_rng(3).random((species.SPECIES, 9, 11)) / species.SPECIES
    check_model(species.species, 20, y=list(y), k=4.0)
