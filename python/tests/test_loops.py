"""Loops in a step and linear systems that a step solves, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import pyabide as ab



def test_sweeps_are_those_of_numpy() -> None:
    @ab.program(2, boundary="constant=0")
    def potential(u, f, change=ab.scalar(), sweeps=ab.scalar(0.0)):
        def sweep():
            new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] + f)
            yield {"change": ab.max(abs(new - u))}
            yield {"u": new}
            yield {"sweeps": sweeps + 1}

        yield {"change": ab.where(sweeps < 0, 0.0, 1.0)}
        yield ab.repeat(sweep(), most=1000, until="change < 1e-3")

    random = np.random.default_rng(1)
    u, f = random.random((19, 23)), random.random((19, 23))
    sim = potential.start(u=u, f=f)
    sim.run(2)
    count = 0
    for _ in range(2):
        change = 1.0
        while change >= 1e-3:
            around = np.pad(u, 1)
            new = 0.25 * (around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:] + f)
            change, u, count = np.abs(new - u).max(), new, count + 1
    assert count > 50
    assert sim.scalars["sweeps"] == count
    np.testing.assert_array_equal(np.asarray(sim["u"]), u)


def test_what_is_made_once_follows_what_is_set() -> None:
    @ab.program(1, boundary="periodic")
    def damped(u, damping, profile, strength=0.5):
        yield ab.once({"damping": 1 - strength * profile})
        yield {"u": damping * u}

    profile = np.linspace(0, 1, 11)
    sim = damped.start(u=np.ones(11), profile=profile, damping=0.0)
    expected = np.ones(11)
    for strength in (0.5, 0.5, 0.25):
        sim.parameters["strength"] = strength
        sim.run(2)
        expected = (1 - strength * profile) * ((1 - strength * profile) * expected)
        np.testing.assert_array_equal(np.asarray(sim["u"]), expected)
    sim["profile"] = profile = profile[::-1].copy()
    sim.run(1)
    np.testing.assert_array_equal(np.asarray(sim["u"]), (1 - 0.25 * profile) * expected)


@pytest.mark.parametrize("method", ["cg", "multigrid", "bicgstab"])
def test_a_solve_is_that_of_a_dense_system(method: str) -> None:
    @ab.program(2, boundary="mirror")
    def diffusion(u, k, f, dt=0.5):
        flux = lambda axis, by: 0.5 * (k + k.along(axis, by)) * (u.along(axis, by) - u)  # noqa: E731
        operator = u - dt * (flux(0, -1) + flux(0, 1) + flux(1, -1) + flux(1, 1))
        yield ab.wall(u, "x-", dirichlet=2.0)
        solved = ab.solve(u, operator=operator, rhs=f, tolerance=1e-11, method=method)
        yield solved
        yield {"f": f + 0 * solved.iterations}

    rows, cells = 8, 7
    n, random = rows * cells, np.random.default_rng(2)
    k, f = 0.1 + random.random((rows, cells)) ** 4 * 50, random.random((rows, cells))
    a, b = np.zeros((n, n)), f.reshape(-1).copy()
    for y in range(rows):
        for x in range(cells):
            own = y * cells + x
            a[own, own] += 1
            for other_y, other_x in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= other_y < rows and 0 <= other_x < cells:
                    face = 0.5 * 0.5 * (k[y, x] + k[other_y, other_x])
                    a[own, own] += face
                    a[own, other_y * cells + other_x] -= face
                elif other_x < 0:
                    a[own, own] += 0.5 * 2 * k[y, x]
                    b[own] += 0.5 * 2 * 2.0 * k[y, x]
    sim = diffusion.start(u=np.zeros((rows, cells)), k=k, f=f)
    sim.run(1)
    np.testing.assert_allclose(np.asarray(sim["u"]).reshape(-1), np.linalg.solve(a, b), atol=1e-8)
    assert 3 < sim.scalars["u_iterations"] < 60
    assert sim.scalars["u_residual"] < 1e-10
    # Its text says the same program.
    again = ab.loads(diffusion.text(), "again").start(u=np.zeros((rows, cells)), k=k, f=f)
    again.run(1)
    np.testing.assert_array_equal(np.asarray(again["u"]), np.asarray(sim["u"]))


def test_a_separable_system_is_solved_directly() -> None:
    """Implicit heat on cells that grow along x, against a dense system; a parameter changes the operator."""

    @ab.program(2, boundary="mirror")
    def heat(u, r=4.0):
        width = 1 + 0.25 * ab.coord(1)
        along = u.along(1, 1) - 2 * u + u.along(1, -1)
        across = u.along(0, 1) - 2 * u + u.along(0, -1)
        yield ab.solve(u, operator=u - r * (along / width + across), rhs=u, method="direct", tolerance=1e-12)

    rows, cells = 5, 6

    def second(n: int) -> np.ndarray:
        matrix = np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n)
        matrix[0, 0] = matrix[-1, -1] = -1
        return matrix

    stretched = second(cells) / (1 + 0.25 * np.arange(cells))[:, None]
    laplacian = np.kron(np.eye(rows), stretched) + np.kron(second(rows), np.eye(cells))
    expected = np.random.default_rng(3).random(rows * cells)
    sim = heat.start(u=expected.reshape(rows, cells))
    for r in (4.0, 4.0, 0.5):
        sim.parameters["r"] = r
        sim.run(1)
        expected = np.linalg.solve(np.eye(rows * cells) - r * laplacian, expected)
        np.testing.assert_allclose(np.asarray(sim["u"]).reshape(-1), expected, atol=1e-13)
        assert sim.scalars["u_iterations"] <= 2

    with pytest.raises(ab.Invalid, match="solve by multigrid"):

        @ab.program(1, boundary="mirror")
        def varying(u, k):
            yield ab.solve(u, operator=k * u - ab.laplacian(u), rhs=1.0, method="direct")

        varying.start(u=np.zeros(4), k=np.ones(4))


def test_what_is_no_loop_and_no_system_is_refused() -> None:
    def built(stage):
        @ab.program(1, boundary="mirror")
        def wrong(u, f, s=ab.scalar(1.0)):
            yield stage(u, f)

        return wrong

    for stage, words in [
        (lambda u, f: ab.solve(u, operator=u * u, rhs=f), "not linear in u"),
        (lambda u, f: ab.solve(u, operator=u + f, rhs=f), "part that does not read it"),
        (lambda u, f: ab.solve("w", operator=u, rhs=f), "w"),
        (lambda u, f: ab.solve(u, operator=3.0, rhs=f), "give a formula of u"),
        (lambda u, f: ab.solve(u, operator=u, rhs=f, method="jacobi"), "known: cg, multigrid, bicgstab"),
        (lambda u, f: ab.solve(u, operator=u, rhs=f, tolerance=0), "above 0"),
        (lambda u, f: ab.repeat({"u": u}, most=0), "most"),
        (lambda u, f: ab.repeat([], most=3), "no stages"),
        (lambda u, f: ab.repeat({"u": u}, most=3, until="t > 1"), "`t`"),
        (lambda u, f: ab.repeat(ab.repeat({"u": u}, most=2), most=3), "another loop within"),
        (lambda u, f: ab.repeat([ab.end_of_step], most=3), "the end of a step within"),
    ]:
        with pytest.raises(ab.Error) as refused:
            built(stage)
        assert words in str(refused.value), (words, str(refused.value))


def test_fields_of_coarser_grids_are_those_of_numpy() -> None:
    @ab.program(2, boundary="clamp")
    def means(u, mean=ab.field(on="cells of level 1"), rough=ab.field(on="cells of level 2")):
        yield {"mean": 0.25 * (u[0, 0] + u[0, 1] + u[1, 0] + u[1, 1])}
        yield {"rough": 0.5 * (mean[0, 0] + mean[1, 1])}
        yield {"u": 0.5 * u + 0.25 * mean[0, 0] + 0.25 * rough[0, 0]}

    u = np.random.default_rng(4).random((7, 10))
    sim = means.start(u=u, mean=0.0, rough=0.0)
    sim.run(1)
    padded = np.pad(u, ((0, 1), (0, 0)), mode="edge")
    mean = 0.25 * (padded[::2, ::2] + padded[::2, 1::2] + padded[1::2, ::2] + padded[1::2, 1::2])
    around = np.pad(mean, ((0, 0), (0, 1)), mode="edge")
    rough = 0.5 * (around[::2, ::2] + around[1::2, 1::2])
    back = [np.repeat(np.repeat(own, by, 0), by, 1)[:7, :10] for own, by in ((mean, 2), (rough, 4))]
    assert sim["mean"].shape == (4, 5)
    assert sim["rough"].shape == (2, 3)
    np.testing.assert_array_equal(np.asarray(sim["mean"]), mean)
    np.testing.assert_array_equal(np.asarray(sim["rough"]), rough)
    np.testing.assert_array_equal(np.asarray(sim["u"]), 0.5 * u + 0.25 * back[0] + 0.25 * back[1])
