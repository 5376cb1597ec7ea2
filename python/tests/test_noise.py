"""Random numbers of cells and steps against Philox in numpy, and their distributions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import philox
import pytest

import pyabide as ab


@ab.stencil(2, boundary="periodic")
def drawn(u, v, w, b, p=0.25):
    return {"u": ab.uniform(), "v": ab.normal(), "w": ab.exponential(), "b": ab.bernoulli(p)}


def start(shape: tuple[int, int], **options: Any) -> ab.Simulation:
    return drawn.start(shape=shape, u=0.0, v=0.0, w=0.0, b=0.0, **options)


def test_the_words_are_those_of_random123() -> None:
    counter, key = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]
    known = [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    assert [int(word) for word in philox.words(counter, key)] == known


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_philox_of_cell_step_stream_and_seed(dtype: str, backend: Any) -> None:
    sim = start((13, 37), dtype=dtype, seed=1234567, backend=backend)
    sim.run(3)
    first, second = (philox.uniform((13, 37), 2, 1, 1234567, dtype, part) for part in (0, 1))
    normal = np.sqrt(-2 * np.log(1 - first.astype(float))) * np.cos(2 * np.pi * second.astype(float))
    assert np.array_equal(sim["u"], philox.uniform((13, 37), 2, 0, 1234567, dtype))
    assert np.array_equal(sim["b"], philox.uniform((13, 37), 2, 3, 1234567, dtype) < 0.25)
    # The angle is rounded, by half a unit of 2 pi at most, and the radius is below 6.
    np.testing.assert_allclose(sim["v"], normal, rtol=1e-6 if dtype == "float32" else 1e-14, atol=6 * np.spacing(np.dtype(dtype).type(6)))
    assert sim.scalars["random_step"] == 3


@pytest.mark.parametrize("shape", [(41,), (5, 6, 7)])
def test_numbers_are_of_all_axes(shape: tuple[int, ...], backend: Any) -> None:
    @ab.stencil(len(shape))
    def one(u):
        return ab.uniform(-2.0, 4.0, stream=700)

    sim = one.start(shape=shape, u=0.0, dtype="float64", backend=backend)
    sim.run(1)
    assert np.array_equal(sim["u"], -2.0 + 6.0 * philox.uniform(shape, 0, 700, 0, "float64"))


def test_a_run_goes_on_with_its_numbers(tmp_path: Path) -> None:
    whole, parts, other = (start((8, 9), seed=seed, dtype="float64", backend="cpu") for seed in (1, 1, 2))
    whole.run(7)
    parts.run(3)
    parts.checkpoint(tmp_path / "run.abide")
    resumed = ab.resume(tmp_path / "run.abide", drawn, backend="cpu")
    resumed.run(4)
    other.run(7)
    assert np.array_equal(whole["v"], resumed["v"])
    assert not np.array_equal(whole["v"], other["v"])


def test_steps_beyond_a_turn_have_numbers_of_their_own() -> None:
    @ab.program(1)
    def late(u=ab.field(), random_step=ab.scalar(2.0**24 - 2)):
        yield {"u": ab.uniform()}
        yield {"random_step": random_step}

    sim = late.start(shape=(50,), u=0.0, dtype="float32", backend="cpu")
    sim.run(4)
    assert sim.scalars["random_step"] == 2 and sim.scalars["random_turn"] == 1
    assert np.array_equal(sim["u"], philox.uniform((50,), 2**24 + 1, 0, 0, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions_have_their_moments(dtype: str) -> None:
    sim = start((600, 700), dtype=dtype, seed=9, backend="cpu")
    sim.run(1)
    u, v, w, b = (sim[name].astype(float).ravel() for name in "uvwb")
    n = u.size
    # Mean, variance and the variance of a sample of each.
    for values, mean, variance, fourth in [(u, 1 / 2, 1 / 12, 1 / 80), (v, 0, 1, 3), (w, 1, 1, 9)]:
        assert abs(values.mean() - mean) < 4 * np.sqrt(variance / n)
        assert abs(values.var() - variance) < 4 * np.sqrt((fourth - variance**2) / n)
    assert abs(b.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)
    # Kolmogorov and Smirnov's distance, below which 99.9 % of samples lie.
    rank = (np.arange(n) + 0.5) / n
    for values, below in [(u, lambda x: x), (w, lambda x: 1 - np.exp(-x))]:
        assert np.abs(below(np.sort(values)) - rank).max() < 1.95 / np.sqrt(n)
    assert np.abs(v).max() < 6
    # Neighbours, and one cell in two streams, have nothing in common.
    grid = v.reshape(600, 700)
    for pair in [(grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1]), (v, w)]:
        assert abs(np.corrcoef(pair[0].ravel(), pair[1].ravel())[0, 1]) < 4 / np.sqrt(n)


def test_what_is_refused() -> None:
    def recorded(formula: Any) -> None:
        @ab.stencil(1)
        def one(u):
            return formula(u)

        one.start(shape=(5,), u=0.0, backend="cpu")

    with pytest.raises(ab.Limit, match="stream of random numbers: 65536 asked"):
        recorded(lambda u: ab.uniform(stream=65536))
    with pytest.raises(ab.Invalid, match="those of the cell; give them to a field"):
        recorded(lambda u: ab.d(ab.normal(), "x"))
    with pytest.raises(ab.Invalid, match="no program is being recorded"):
        ab.uniform()
