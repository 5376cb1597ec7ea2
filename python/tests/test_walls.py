"""Conditions at walls, places and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import pyabide as ab


def test_a_stencil_meets_conditions() -> None:
    @ab.stencil(1, boundary={"x-": "dirichlet=1", "x+": "neumann=slope"}, spacing="h")
    def rod(u, h=0.1, slope=-2.0):
        return u + 0.2 * h * h * ab.d2(u, "x")

    sim = rod.start(shape=20, dtype="float64", backend="cpu", u=np.zeros(20))
    sim.run(20000)
    x = (np.arange(20) + 0.5) * 0.1
    np.testing.assert_allclose(sim["u"], 1.0 - 2.0 * x, atol=1e-8)


def test_a_program_has_walls_of_formulas() -> None:
    @ab.program(2, boundary="periodic", spacing="h", origin={"x": -0.5})
    def heat(T=ab.field(boundary={"x": "mirror"}), h=0.05, time=ab.scalar(0.0), decay=ab.scalar(1.0)):
        dt = 0.125 * h * h
        wave = ab.sin(2 * np.pi * ab.position("y"))
        # exp(-(1 + 4 pi^2) t) cos(x) sin(2 pi y)
        yield ab.wall(T, "x-", dirichlet=np.cos(0.5) * decay * wave)
        yield ab.wall("T", "x+", robin=(2.0, 1.0, (2 * np.cos(0.5) - np.sin(0.5)) * decay * wave))
        yield {"T": T + dt * (ab.d2(T, "x") + ab.d2(T, "y"))}
        yield {"time": time + dt}
        yield {"decay": ab.exp(-(1 + 4 * np.pi**2) * time)}

    errors = []
    for cells in (20, 40):
        h = 1 / cells
        x = (np.arange(cells) + 0.5) * h - 0.5
        start = np.sin(2 * np.pi * (np.arange(cells) + 0.5) * h)[:, None] * np.cos(x)
        sim = heat.start(shape=(cells, cells), dtype="float64", backend="cpu", T=start, h=h)
        sim.run(round(0.02 / (0.125 * h * h)))
        exact = np.exp(-(1 + 4 * np.pi**2) * sim.scalars["time"]) * start
        errors.append(np.abs(sim["T"] - exact).max())
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1, errors


def test_derivatives_are_differences_of_shifted_formulas() -> None:
    @ab.stencil(2, boundary="periodic", spacing={"y": 0.5})
    def slopes(u, v, w):
        return {"v": ab.d(u * u + ab.coord(0), "y"), "w": ab.d2(3.0 * u[0, 1], 1)}

    u = np.random.default_rng(1).random((7, 9))
    sim = slopes.start(shape=(7, 9), dtype="float64", backend="cpu", u=u, v=0.0, w=0.0)
    sim.run(1)
    square = u * u
    rise = (np.roll(square, -1, 0) - np.roll(square, 1, 0))[1:-1]
    np.testing.assert_allclose(sim["v"][1:-1], rise + 2.0, rtol=1e-14)
    t = 3.0 * np.roll(u, -1, 1)
    np.testing.assert_allclose(sim["w"], np.roll(t, 1, 1) - 2 * t + np.roll(t, -1, 1), atol=1e-14)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda u: ab.wall(u, "x-"), "0 conditions"),
        (lambda u: ab.wall(u, "x-", dirichlet=1, neumann=0), "2 conditions"),
        (lambda u: ab.wall(u, "x-", robin=(1, 2)), "takes 3 values"),
        (lambda u: ab.wall(u, "q", dirichlet=1), "no side is named `q`"),
        (lambda u: ab.wall(u, "x-", dirichlet=u), "it reads the field u"),
        (lambda u: ab.wall(u, "x-", dirichlet=ab.position("x")), "along x, the normal"),
        (lambda u: ab.wall("w", "x-", dirichlet=1), "no field is named `w`"),
        (lambda u: ab.wall(3.0, "x-", dirichlet=1), "is no field"),
    ],
)
def test_faulty_walls_are_refused(make, says) -> None:
    def faulty(u=ab.field()):
        yield make(u)
        yield {"u": u + 0.1 * ab.laplacian(u)}

    with pytest.raises(ab.Error, match=says):
        ab.program(1)(faulty)


def test_faulty_grids_are_refused() -> None:
    with pytest.raises(ab.Error, match="no axis is named `z`"):
        ab.stencil(2, spacing={"z": 1.0})(lambda u: u)
    with pytest.raises(ab.Error, match="`h`"):
        ab.stencil(2, spacing="h")(lambda u: ab.d(u, "x"))
