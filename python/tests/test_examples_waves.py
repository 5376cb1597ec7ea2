"""The examples of waves against forms of their own in numpy, and against exact solutions."""

from typing import Any

import numpy as np
import seismic
from conftest import Array, check_model


def shot(v: Array, steps: int) -> tuple[Array, Array]:
    """The seismic shot by slices: the last wave field, and what the receivers record."""
    width, strength, frequency, delay = (
        seismic.seismic.parameters[name] for name in ("width", "strength", "frequency", "delay")
    )
    inner = (slice(4, -4), slice(4, -4))
    edge = np.minimum.outer(*(np.minimum(np.arange(n), np.arange(n)[::-1]) for n in v.shape))
    sponge = (1 - (strength * np.maximum(width - edge, 0)) ** 2)[inner]
    u, before = np.zeros_like(v), np.zeros_like(v)
    traces = []
    for step in range(steps):
        second = np.zeros_like(u[inner])
        for axis in (0, 1):
            for r, weight in enumerate(seismic.WEIGHTS):
                for side in {-r, r}:
                    second += weight * np.roll(u, side, axis)[inner]
        new = u.copy()
        new[inner] = sponge * (2 * u[inner] - sponge * before[inner] + v[inner] ** 2 * second)
        before[inner], u = u[inner], new
        phase = (np.pi * frequency * (step - delay)) ** 2
        u[seismic.SOURCE] += (1 - 2 * phase) * np.exp(-phase)
        traces.append([u[at] for at in seismic.RECEIVERS])
    return u, np.array(traces)


def test_seismic_traces_are_those_of_numpy(backend: Any) -> None:
    v = 0.3 + 0.1 * np.random.default_rng(1).random((97, 181))
    sim = seismic.start(v, backend=backend)
    sim.run(150)
    u, traces = shot(v, 150)
    assert np.abs(sim["u"] - u).max() < 1e-13 * np.abs(u).max()
    assert np.abs(seismic.gather(sim) - traces).max() < 1e-13 * np.abs(traces).max()


def test_seismic_traces_are_exact_and_the_sponge_absorbs(backend: Any) -> None:
    assert seismic.error(backend) < 0.03


def test_seismic_model() -> None:
    v = 0.3 + 0.1 * np.random.default_rng(1).random((67, 131))
    check_model(seismic.seismic, 90, v=v)
