"""Programs written in numpy have the last bit of Abide's runs on the CPU.

The same formulas run in both: on arrays with their neighbours by np.pad or np.roll, and recorded.
"""

from typing import Any

import numpy as np
import pytest
from conftest import PADS, Array, taps

import pyabide as ab

PLANE = sorted(set(PADS))


def same(left: Array, right: Array) -> None:
    assert left.dtype == right.dtype
    assert np.array_equal(left.view(f"u{left.itemsize}"), right.view(f"u{right.itemsize}"))


@pytest.mark.parametrize("shape", [(31, 45), (1, 64), (97, 101)])
def test_gray_scott_by_roll(backend: str, shape: tuple[int, int], dtype: Any, random: np.random.Generator) -> None:
    @ab.stencil(2, boundary="periodic")
    def gray_scott(u, v, du=0.16, dv=0.08, feed=0.03, kill=0.062):  # type: ignore[no-untyped-def]
        lap = lambda w: w[-1, 0] + w[0, -1] + w[0, 1] + w[1, 0] - 4 * w  # noqa: E731
        r = u * v * v
        return {"u": u + du * lap(u) - r + feed * (1 - u), "v": v + dv * lap(v) + r - (feed + kill) * v}

    u, v = random.random(shape).astype(dtype), random.random(shape).astype(dtype)
    sim = gray_scott.start(u=u, v=v, feed=0.037, backend=backend)
    sim.run(40)

    def lap(w: Array) -> Any:
        around = np.roll(w, 1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) + np.roll(w, -1, 0)
        return around - 4 * w

    du, dv, feed, kill = 0.16, 0.08, 0.037, 0.062
    for _ in range(40):
        r = u * v * v
        u, v = u + du * lap(u) - r + feed * (1 - u), v + dv * lap(v) + r - (feed + kill) * v
    same(sim["u"], u)
    same(sim["v"], v)


@pytest.mark.parametrize("boundary", PLANE)
@pytest.mark.parametrize("shape", [(33, 17), (2, 51)])
def test_heat(backend: str, boundary: str, shape: tuple[int, int], dtype: Any, random: np.random.Generator) -> None:
    @ab.stencil(2, boundary=boundary)
    def heat(u, kappa=0.1):  # type: ignore[no-untyped-def]
        return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)

    u = random.random(shape).astype(dtype)
    sim = heat.start(u=u, backend=backend)
    sim.run(30)
    for _ in range(30):
        w = taps_of_radius_one(boundary, u)
        u = u + 0.1 * (w[-1, 0] + w[0, -1] + w[0, 1] + w[1, 0] - 4 * u)
    same(sim["u"], u)


def taps_of_radius_one(boundary: str, u: Array) -> Any:
    return taps(boundary)(u) if min(u.shape) > 2 else Narrow(boundary, u)


class Narrow:
    """Neighbours at a distance of one, on domains too narrow for a pad of two."""

    def __init__(self, boundary: str, u: Array) -> None:
        pad = PADS[boundary]
        self.u, self.padded = u, np.pad(u, 1, **{key: pad[key] for key in pad if key != "odd"})
        if "odd" in pad:
            for side in (0, -1):
                self.padded[side, :] *= -1
                self.padded[:, side] *= -1

    def __getitem__(self, offset: tuple[int, int]) -> Array:
        y, x = offset
        return self.padded[1 + y : 1 + y + self.u.shape[0], 1 + x : 1 + x + self.u.shape[1]]


@pytest.mark.parametrize("boundary", PLANE)
def test_wave_in_space(backend: str, boundary: str, dtype: Any, random: np.random.Generator) -> None:
    @ab.stencil(3, boundary=boundary)
    def wave(u, before, courant=0.4):  # type: ignore[no-untyped-def]
        lap = u[-1, 0, 0] + u[0, -1, 0] + u[0, 0, -1] + u[0, 0, 1] + u[0, 1, 0] + u[1, 0, 0] - 6 * u
        return {"u": 2 * u - before + courant**2 * lap, "before": u}

    u, before = (random.random((9, 13, 21)).astype(dtype) for _ in range(2))
    sim = wave.start(u=u, before=before, courant=0.37, backend=backend)
    sim.run(25)
    for _ in range(25):
        w = taps(boundary)(u)
        lap = w[-1, 0, 0] + w[0, -1, 0] + w[0, 0, -1] + w[0, 0, 1] + w[0, 1, 0] + w[1, 0, 0] - 6 * u
        u, before = 2 * u - before + 0.37**2 * lap, u
    same(sim["u"], u)
    same(sim["before"], before)


@pytest.mark.parametrize("boundary", PLANE)
def test_perona_malik(backend: str, boundary: str, dtype: Any, random: np.random.Generator) -> None:
    def step(u: Any, w: Any, edge: Any) -> Any:
        total: Any = 0.0
        for offset in [(-1, 0), (0, -1), (0, 1), (1, 0)]:
            difference = w[offset] - u
            total = total + difference / (1 + (difference / edge) ** 2)
        return u + 0.2 * total

    @ab.stencil(2, boundary=boundary)
    def perona(u, edge=0.1):  # type: ignore[no-untyped-def]
        return step(u, u, edge)

    u = random.random((29, 41)).astype(dtype)
    sim = perona.start(u=u, edge=0.05, backend=backend)
    sim.run(20)
    for _ in range(20):
        u = step(u, taps(boundary)(u), 0.05)
    same(sim["u"], u)


@pytest.mark.parametrize("boundary", PLANE)
def test_advection(backend: str, boundary: str, dtype: Any, random: np.random.Generator) -> None:
    """Upwind, of the second order with a limiter: comparisons, np.where, np.minimum and a coefficient."""

    def flux(w: Any, at: int, c: Any) -> Any:
        slope = w[at] - w[at - 1]
        ahead = w[at + 1] - w[at]
        limited = np.where(slope * ahead > 0, np.minimum(np.abs(slope), np.abs(ahead)), 0.0)
        return c * (w[at] + 0.5 * (1 - c) * np.where(slope < 0, -limited, limited))

    @ab.stencil(1, boundary=boundary)
    def advect(u, c):  # type: ignore[no-untyped-def]
        return {"u": u - (flux(u, 0, c) - flux(u, -1, c))}

    u = random.random(203).astype(dtype)
    c = (0.2 + 0.6 * random.random(203)).astype(dtype)
    sim = advect.start(u=u, c=c, backend=backend)
    sim.run(50)
    for _ in range(50):
        w = taps(boundary)(u)
        u = u - (flux(w, 0, c) - flux(w, -1, c))
    same(sim["u"], u)


@pytest.mark.parametrize("shape", [(7,), (64,), (129,)])
def test_fixed_keeps_the_outermost_cells(backend: str, shape: tuple[int], dtype: Any, random: np.random.Generator) -> None:
    @ab.stencil(1)
    def smooth(u):  # type: ignore[no-untyped-def]
        return 0.25 * u[-1] + 0.5 * u + 0.25 * u[1]

    u = random.random(shape).astype(dtype)
    sim = smooth.start(u=u, backend=backend)
    sim.run(33)
    for _ in range(33):
        new = u.copy()
        new[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
        u = new
    same(sim["u"], u)


def test_boundaries_of_axes_sides_and_fields(backend: str, random: np.random.Generator) -> None:
    @ab.stencil(2, boundary={"y": "periodic", "x-": "mirror", "x+": 1.5})
    def mean(u):  # type: ignore[no-untyped-def]
        return 0.25 * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0])

    u = random.random((11, 13))
    sim = mean.start(u=u, backend=backend)
    sim.run(9)
    for _ in range(9):
        w = np.pad(u, ((1, 1), (0, 0)), mode="wrap")
        w = np.concatenate([w[:, :1], w, np.full((13, 1), 1.5)], axis=1)
        u = 0.25 * (w[:-2, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:] + w[2:, 1:-1])
    same(sim["u"], u)


def test_constants_and_parameters_are_rounded_as_numpy_does(backend: str) -> None:
    @ab.stencil(1)
    def scale(u, a=0.1, b=0.7):  # type: ignore[no-untyped-def]
        return (a + b) / (1 - a) * u * np.float32(0.3) + 2 * b

    u = np.linspace(0, 1, 33, dtype=np.float32)
    sim = scale.start(u=u, a=0.3, backend=backend)
    sim.run(1)
    a, b = 0.3, 0.7
    same(sim["u"], (a + b) / (1 - a) * u * np.float32(0.3) + 2 * b)
    sim["u"] = u
    sim.parameters["b"] = b = 0.123
    sim.run(1)
    same(sim["u"], (a + b) / (1 - a) * u * np.float32(0.3) + 2 * b)
    assert dict(sim.parameters) == {"a": 0.3, "b": 0.123}


def test_numpy_scalars_on_the_left_and_functions_of_numpy(backend: str) -> None:
    @ab.stencil(1, boundary="periodic")
    def mix(u):  # type: ignore[no-untyped-def]
        u2 = np.float64(2) * u[1] + np.sqrt(u) - np.float32(0.5) / (1 + np.square(u))
        return np.maximum(u2, np.int64(0)) + ((u > 0.5) & ~(u < 0.7)) * np.negative(u) + 1 / u**2 + u**0.5

    u = np.random.default_rng(1).random(50) + 0.1
    sim = mix.start(u=u, backend=backend)
    sim.run(1)
    u2 = 2 * np.roll(u, -1) + np.sqrt(u) - 0.5 / (1 + u * u)
    same(sim["u"], np.maximum(u2, 0) + ((u > 0.5) & ~(u < 0.7)) * -u + 1 / (u * u) + np.sqrt(u))
