"""The examples of waves against forms of their own in numpy, and against exact solutions."""

from typing import Any

import maxwell
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


def yee(permittivity: Array, steps: int, receiver: tuple[int, int, int]) -> tuple[dict[str, Array], Array]:
    """Yee's scheme with CPML on slices: the fields by name, and what the receiver records."""
    shape = permittivity.shape
    axes, s = {"x": 2, "y": 1, "z": 0}, 0.5
    fields = {field + a: np.zeros(shape) for field in "eh" for a in axes}
    memory = {field + a + along: 0.0 for field in "eh" for a in axes for along in axes}
    inner = (slice(1, -1),) * 3

    def factors(along: str, shift: float) -> tuple[Array, Array]:
        i, last = np.arange(shape[axes[along]]) + shift, shape[axes[along]] - 1
        depth = np.clip(np.maximum(maxwell.LAYER - i, i - (last - maxwell.LAYER)) / maxwell.LAYER, 0, None)
        sigma = 1.6 * depth**3
        b = np.exp(-(sigma + 0.025))
        c = sigma / (sigma + 0.025) * (b - 1)
        along_axis = [1, 1, 1]
        along_axis[axes[along]] = -1
        return b[1:-1].reshape(along_axis), c[1:-1].reshape(along_axis)

    def stretched(name: str, of: Array, along: str, ahead: bool) -> Array:
        b, c = factors(along, 0.5 if ahead else 0.0)
        beside = np.roll(of, -1 if ahead else 1, axes[along])
        difference = (beside - of if ahead else of - beside)[inner]
        memory[name] = b * memory[name] + c * difference
        return difference + memory[name]

    trace = []
    for step in range(1, steps + 1):
        for field, other, ahead in (("h", "e", True), ("e", "h", False)):
            for a, p, q in (("x", "y", "z"), ("y", "z", "x"), ("z", "x", "y")):
                curl = stretched(field + a + p, fields[other + q], p, ahead)
                curl = curl - stretched(field + a + q, fields[other + p], q, ahead)
                factor = -s if field == "h" else s / permittivity[inner]
                fields[field + a][inner] += factor * curl
        phase = (step - maxwell.DELAY) / maxwell.WIDTH
        fields["ez"][maxwell.SOURCE] -= 2 * phase / maxwell.WIDTH * np.exp(-(phase**2))
        trace.append(fields["ez"][receiver])
    return fields, np.array(trace)


def test_maxwell_fields_are_those_of_numpy(backend: Any) -> None:
    shape, receiver = (27, 37, 31), (21, 29, 25)
    permittivity = 1 + np.random.default_rng(2).random(shape)
    sim = maxwell.start(shape, receiver, permittivity=permittivity, backend=backend)
    sim.run(60)
    fields, trace = yee(permittivity, 60, receiver)
    assert np.abs(maxwell.received(sim, receiver) - trace).max() < 1e-13 * np.abs(trace).max()
    for name in "eh":
        for component, a in enumerate("xyz"):
            values = fields[name + a]
            assert np.abs(sim[f"{name}[{component}]"] - values).max() < 1e-13 * np.abs(values).max(), name + a


def test_maxwell_has_the_field_of_a_dipole(backend: Any) -> None:
    assert maxwell.error(backend) < 0.023


def test_maxwell_layers_absorb(backend: Any) -> None:
    """When the pulse has passed, what is left beside the dipole is what the layers have sent back."""
    receiver = (20, 30, 28)
    sim = maxwell.start((41, 61, 41), receiver, backend=backend)
    sim.run(200)
    trace = np.abs(maxwell.received(sim, receiver))
    assert trace[140:].max() < 2e-5 * trace.max()


def test_maxwell_model() -> None:
    shape = (23, 33, 25)
    check_model(maxwell.maxwell, 30, permittivity=1 + np.random.default_rng(2).random(shape))
