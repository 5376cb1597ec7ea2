"""Diffusion problems of every kind for both multigrids: that of a step, which knows the grid, and that of matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from conftest import Array

import pyabide as ab

SIZE = 24


class Problem:
    """Finite volumes of ``-div(k grad p) + s p`` on a box of cells (z, y, x).

    ``sides`` says of each axis what its low and high side is: ``n`` (nothing flows), ``d`` (the value 0) or ``p``
    (periodic).
    """

    def __init__(
        self, k: Array, widths: tuple[Any, Any, Any], sides: str, s: float = 0.0, fluid: Array | None = None
    ) -> None:
        self.shape, self.sides, self.s = k.shape, sides.split(), s
        self.fluid = np.ones(self.shape, bool) if fluid is None else fluid
        spans = [np.broadcast_to(np.asarray(width, float), n) for width, n in zip(widths, self.shape)]
        self.volume = spans[0][:, None, None] * spans[1][:, None] * spans[2]
        self.faces = [self._faces(axis, k, spans[axis]) for axis in range(3)]

    def _faces(self, axis: int, k: Array, span: Array) -> Array:
        """Returns how much flows through the faces normal to an axis for a difference of 1, one more than cells."""
        width = np.moveaxis(np.ones(self.shape), axis, -1) * span
        half = width / (2 * np.moveaxis(k, axis, -1))
        area = np.moveaxis(self.volume, axis, -1) / width
        live = np.moveaxis(self.fluid, axis, -1)
        flow = np.zeros((*half.shape[:-1], half.shape[-1] + 1))
        inner = live[..., :-1] & live[..., 1:]
        flow[..., 1:-1] = np.where(inner, area[..., 1:] / (half[..., :-1] + half[..., 1:]), 0)
        low, high = self.sides[axis]
        if low == "p":
            around = np.where(live[..., 0] & live[..., -1], area[..., 0] / (half[..., 0] + half[..., -1]), 0)
            flow[..., 0] = flow[..., -1] = around if half.shape[-1] > 1 else 0
        if low == "d":
            flow[..., 0] = np.where(live[..., 0], area[..., 0] / half[..., 0], 0)
        if high == "d":
            flow[..., -1] = np.where(live[..., -1], area[..., -1] / half[..., -1], 0)
        return np.moveaxis(flow, -1, axis)

    @property
    def is_singular(self) -> bool:
        return self.s == 0 and not any("d" in sides for sides in self.sides)

    def rhs(self) -> Array:
        b = np.where(self.fluid, np.random.default_rng(7).uniform(-1, 1, self.shape), 0.0)
        return np.where(self.fluid, b - b[self.fluid].mean(), 0.0) if self.is_singular else b

    def matrix(self) -> Any:
        cells = np.arange(self.volume.size).reshape(self.shape)
        diagonal = np.where(self.fluid, self.s * self.volume, 0.0)
        rows, columns, values = [], [], []
        for axis, flow in enumerate(self.faces):
            n = self.shape[axis]
            low, high = np.take(flow, range(n), axis), np.take(flow, range(1, n + 1), axis)
            diagonal = diagonal + low + high
            if n == 1:
                continue
            joins = np.moveaxis(high, axis, 0)
            if self.sides[axis] != "pp":
                joins = joins[:-1]
            here = np.moveaxis(cells, axis, 0)[: len(joins)]
            there = np.moveaxis(np.roll(cells, -1, axis), axis, 0)[: len(joins)]
            for one, other in ((here, there), (there, here)):
                rows.append(one[joins > 0])
                columns.append(other[joins > 0])
                values.append(-joins[joins > 0])
        # Cells that take no part have rows of the identity.
        rows.append(cells.ravel())
        columns.append(cells.ravel())
        values.append(np.where(diagonal > 0, diagonal, 1.0).ravel())
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_array(entries, shape=(cells.size, cells.size))

    def solved_in_a_step(self) -> tuple[Array, float]:
        """Returns the solution of a step with a multigrid solve, and its iterations."""
        sides = ",".join(
            f"{axis}={'periodic' if own == 'pp' else 'constant=0'}" for axis, own in zip("zyx", self.sides)
        )
        is_singular = self.is_singular

        @ab.program(3, boundary=sides)
        def conduction(
            p,
            f,
            volume,
            flow_z=ab.field(on="z-faces"),
            flow_y=ab.field(on="y-faces"),
            flow_x=ab.field(on="x-faces"),
            s=0.0,
        ):
            def operator(p):
                sum = s * volume * p[0, 0, 0]
                for axis, flow in enumerate((flow_z, flow_y, flow_x)):
                    on = tuple(int(axis == k) for k in range(3))
                    back = tuple(-step for step in on)
                    sum = sum + flow[0, 0, 0] * (p[0, 0, 0] - p[back]) + flow[on] * (p[0, 0, 0] - p[on])
                return sum

            yield ab.solve(
                p, operator=operator, rhs=f, method="multigrid", tolerance=1e-8, most=200, null_space=is_singular
            )

        flows = [
            np.take(flow, range(n + (own != "pp")), axis)
            for axis, (flow, n, own) in enumerate(zip(self.faces, self.shape, self.sides))
        ]
        volume = np.where(self.fluid, self.volume, 0.0)
        sim = conduction.start(
            p=np.zeros(self.shape),
            f=self.rhs(),
            volume=volume,
            flow_z=flows[0],
            flow_y=flows[1],
            flow_x=flows[2],
            s=self.s,
            backend="cpu",
        )
        sim.run(1)
        return np.asarray(sim["p"]), sim.scalars["p_iterations"]


def cube(size: int = SIZE) -> Array:
    return np.ones((size,) * 3)


def balls(shape: tuple[int, int, int], count: int, radius: float, seed: int) -> Array:
    """Whether cells lie in balls at places that look random, around the sides."""
    random = np.random.default_rng(seed)
    places = np.meshgrid(*[(np.arange(n) + 0.5) / n for n in shape], indexing="ij")
    inside = np.zeros(shape, bool)
    for _ in range(count):
        apart = [np.abs(place - centre) for place, centre in zip(places, random.uniform(0, 1, 3))]
        inside |= sum(np.minimum(far, 1 - far) ** 2 for far in apart) < radius**2
    return inside


def smooth() -> Array:
    z, y, x = np.meshgrid(*[(np.arange(SIZE) + 0.5) / SIZE] * 3, indexing="ij")
    return np.asarray(10 ** (1 + np.sin(6 * x) * np.cos(5 * y) * np.sin(7 * z + 1)))


def blocks() -> Array:
    decades = np.random.default_rng(5).uniform(0, 6, (5, 5, 5))
    return np.asarray(10 ** np.kron(decades, np.ones((5, 5, 5)))[:SIZE, :SIZE, :SIZE])


def stretched(n: int, ratio: float) -> Array:
    """Widths by a tanh, small at both ends; the largest is ``ratio`` times the least."""
    low, high = 1e-3, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        widths = np.diff(np.tanh(middle * np.linspace(-1, 1, n + 1)) / np.tanh(middle))
        low, high = (low, middle) if widths.max() / widths.min() > ratio else (middle, high)
    return np.asarray(widths / widths.sum())


def islands() -> tuple[Array, tuple[int, int, int]]:
    """A basin with a sea floor of waves, and a wall with a gap of two cells."""
    nz, ny, nx = shape = (SIZE // 2, 3 * SIZE // 2, 3 * SIZE // 2)
    y, x = np.meshgrid((np.arange(ny) + 0.5) / ny, (np.arange(nx) + 0.5) / nx, indexing="ij")
    depth = 0.65 + 0.3 * np.sin(5 * x + 1) * np.cos(7 * y)
    z = (np.arange(nz) + 0.5) / nz
    fluid = z[:, None, None] > 1 - depth[None]
    fluid[:, :, nx // 2] = False
    fluid[:, ny // 2 : ny // 2 + 2, nx // 2] = (z > 0.3)[:, None]
    return fluid, shape


def ocean() -> Problem:
    fluid, shape = islands()
    return Problem(np.ones(shape), (1 / (10 * shape[0]), 1 / shape[1], 1 / shape[2]), "nn nn nn", fluid=fluid)


PLANE = np.ones((1, 4 * SIZE, 4 * SIZE))
N = SIZE
PROBLEMS: dict[str, tuple[Callable[[], Problem], int | None, int]] = {
    "2D periodic": (lambda: Problem(PLANE, (1, 1 / N, 1 / N), "nn pp pp"), 7, 11),
    "2D values at the sides, odd": (lambda: Problem(PLANE[:, 1:, : 3 * N + 1], (1, 1 / N, 1 / N), "nn dd dd"), 8, 11),
    "3D periodic": (lambda: Problem(cube(), (1 / N,) * 3, "pp pp pp"), 7, 11),
    "3D nothing flows out": (lambda: Problem(cube(), (1 / N,) * 3, "nn nn nn"), 8, 12),
    "3D mixed sides, odd": (
        lambda: Problem(np.ones((N + 1, 3 * N // 4 - 1, N // 2 + 1)), (1 / N,) * 3, "nn pp dn"),
        8,
        11,
    ),
    "smooth k, 1 to 100": (lambda: Problem(smooth(), (1 / N,) * 3, "nn nn dd"), 8, 11),
    "bubbles, k 1 to 1000": (
        lambda: Problem(np.where(balls((N,) * 3, 8, 0.15, 3), 1000.0, 1.0), (1 / N,) * 3, "nn nn nn"),
        40,
        25,
    ),
    "blocks, k 1 to 1e6": (lambda: Problem(blocks(), (1 / N,) * 3, "nn nn nn"), 80, 30),
    "solid spheres": (
        lambda: Problem(cube(), (1 / N,) * 3, "nn pp pp", fluid=~balls((N,) * 3, 12, 0.12, 11)),
        10,
        12,
    ),
    "ocean, wide cells": (ocean, 60, 16),
    "channel, heights 1 to 100": (
        lambda: Problem(cube(), (2 * stretched(N, 100), 6 / N, 3 / N), "nn pp pp"),
        120,
        15,
    ),
    "cells 100 times as wide as high": (
        lambda: Problem(np.ones((N // 2, 3 * N // 2, 3 * N // 2)), (1 / 100 / N, 1 / N, 1 / N), "nn nn nn"),
        None,
        14,
    ),
    "stretched both ways": (
        lambda: Problem(PLANE, (1, stretched(4 * N, 100), stretched(4 * N, 100)), "nn nn nn"),
        None,
        20,
    ),
    "with a part of the field itself": (lambda: Problem(cube(), (1 / N,) * 3, "dd dd dd", s=N * N / 10), 7, 9),
}
"""A problem, the most iterations of multigrid in a step (``None`` where it is no method for that), and those of AMG."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_iterations_to_1e_8(name: str) -> None:
    make, in_a_step, algebraic = PROBLEMS[name]
    problem = make()
    A, b = problem.matrix(), problem.rhs()
    if in_a_step is not None:
        p, iterations = problem.solved_in_a_step()
        assert np.linalg.norm(b.ravel() - A @ p.ravel()) <= 1.1e-8 * np.linalg.norm(b)
        assert iterations <= in_a_step, iterations
    system = ab.System(A, method="cg", M="amg", backend="cpu")
    x, report = system.solve(b.ravel(), rtol=1e-8)
    assert report.converged and np.linalg.norm(b.ravel() - A @ x) <= 1.1e-8 * np.linalg.norm(b)
    assert report.iterations <= algebraic, report.iterations
