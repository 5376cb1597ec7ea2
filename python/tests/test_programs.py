"""Programs of several stages, kinds of fields, scalars and reductions, beside numpy."""

from typing import Any

import numpy as np
import pytest
from conftest import Array

import pyabide as ab


@ab.program(1, boundary="mirror", until="time >= 1e-3")
def sound(  # type: ignore[no-untyped-def]
    p=ab.field(start="gaussian"),
    c=ab.field(start=340.0),
    v=ab.field(on="x-faces", boundary="-reflect", start=0.0),
    dx=ab.parameter(0.01, "width of a cell in m"),
    fastest=ab.scalar(about="largest speed of sound in m/s"),
    dt=ab.scalar(),
    time=ab.scalar(0.0, "time in s"),
):
    yield {"fastest": ab.max(c)}
    yield {"dt": 0.5 * dx / fastest}
    yield {"v": v - dt * (p[0] - p[-1]) / dx}
    yield {"p": p - dt * c * c * (v[1] - v[0]) / dx}
    yield {"time": time + dt}


def test_acoustics_have_numpys_bits(backend: str, dtype: Any) -> None:
    random = np.random.default_rng(2)
    p, c = random.random(200).astype(dtype), (300 + 50 * random.random(200)).astype(dtype)
    sim = sound.start(p=p, c=c, dx=0.02, backend=backend)
    assert sound.scalars == ("fastest", "dt", "time") and sim["v"].shape == (201,)
    report = sim.run(10**6)
    v, time, one = np.zeros(201, dtype), 0.0, dtype.type
    dx, steps = one(0.02), 0
    while not time >= 1e-3:
        # Scalars are float64, whatever the fields are; a field reads one rounded once.
        exact = 0.5 * 0.02 / float(c.max())
        dt = one(exact)
        # A mirrored p has no gradient at the ends.
        gradient = np.diff(np.concatenate([p[:1], p, p[-1:]]))
        v = v - dt * gradient / dx
        p = p - dt * c * c * np.diff(v) / dx
        time, steps = time + exact, steps + 1
    assert report.steps == steps == sim.step and report.scalars["time"] == time == sim.scalars["time"]
    assert np.array_equal(sim["v"], v) and np.array_equal(sim["p"], p)
    assert any("time >= 0.001 after step" in note for note in report.notes)


def test_a_reduction_once_in_four_steps_has_numpys_bits(backend: str) -> None:
    @ab.program(1, boundary="periodic")
    def burgers(u, most=ab.scalar(), dt=ab.scalar()):  # type: ignore[no-untyped-def]
        yield {"most": ab.max(abs(u), every=4)}
        yield {"dt": 0.25 / most}
        yield {"u": u - dt * u * (u - u[-1])}

    u = np.random.default_rng(5).random(300)
    sim = burgers.start(u=u, backend=backend)
    sim.run(5)
    sim.run(6)
    most = 0.0
    for step in range(11):
        if step % 4 == 0:
            most = float(np.abs(u).max())
        u = u - (0.25 / most) * u * (u - np.roll(u, 1))
    assert np.array_equal(sim["u"], u) and sim.scalars["most"] == most


def test_frames_end_where_the_condition_ends_the_run(backend: str) -> None:
    sim = sound.start(shape=(200,), backend=backend)
    frames = list(sim.frames(10**6, every=10, progress=False))
    assert frames[-1].step == sim.step < 10**6 and frames[-1].scalars["time"] >= 1e-3


def test_temporaries_masks_points_and_steps(backend: str) -> None:
    @ab.program(2, boundary="periodic")
    def flow(  # type: ignore[no-untyped-def]
        u,
        wall,
        flux=ab.temporary(on="x-faces"),
        count=ab.scalar(0.0),
        total=ab.scalar(),
        nx=ab.extent("x"),
        k=0.2,
    ):
        yield {"flux": k * (u[0, 0] - u[0, -1])}
        yield ab.stage({"u": u + flux[0, 1] - flux[0, 0]}, name="diffuse", where=wall == 0)
        yield ab.stage({"u": u + 1.0}, points=[(3, 4), (0, 0)])
        yield {"count": count + 1.0, "total": ab.sum(u / nx, margins={"y": (1, 0)})}
        yield ab.end_of_step
        yield {"u": u * 0.5}

    random = np.random.default_rng(3)
    u, wall = random.random((9, 12)), (random.random((9, 12)) > 0.7).astype(float)
    sim = flow.start(u=u, wall=wall, backend=backend)
    sim.run(3)
    for step in range(3):
        if step % 2:
            u = u * 0.5
            continue
        flux = 0.2 * (u - np.roll(u, 1, 1))
        u = np.where(wall == 0, u + np.roll(flux, -1, 1) - flux, u)
        u[3, 4] += 1.0
        u[0, 0] += 1.0
    assert np.array_equal(sim["u"], u)
    assert sim.scalars["count"] == 2.0 and np.isclose(sim.scalars["total"], u[1:].sum() / 12, rtol=1e-12)


def test_components(backend: str) -> None:
    @ab.program(1, boundary="clamp")
    def mixture(Y=ab.field(components=3), k=0.1):  # type: ignore[no-untyped-def]
        return {y.name: y + k * (y[-1] - 2 * y + y[1]) for y in Y}

    values: list[Array] = [np.random.default_rng(n).random(20) for n in range(3)]
    sim = mixture.start(Y=values, backend=backend)
    sim.run(1)
    assert sim.fields == ("Y[0]", "Y[1]", "Y[2]")
    for name, y in zip(sim.fields, values, strict=True):
        w = np.pad(y, 1, mode="edge")
        assert np.array_equal(sim[name], y + 0.1 * (w[:-2] - 2 * y + w[2:]))


def test_scalars_can_be_given_and_boundaries_be_of_fields(backend: str) -> None:
    @ab.program(1, boundary={"u": {"x-": "constant=edge"}, "x": "clamp"})
    def push(u, edge=ab.scalar(1.0)):  # type: ignore[no-untyped-def]
        yield {"u": u[-1]}
        yield {"edge": edge * 2.0}

    sim = push.start(u=np.zeros(5), edge=3.0, backend=backend)
    sim.run(3)
    assert list(sim["u"]) == [12.0, 6.0, 3.0, 0.0, 0.0]


def faulty(*stages: Any) -> Any:
    def made(u, w=ab.field(on="x-faces"), a=ab.scalar(), b=ab.scalar()):  # type: ignore[no-untyped-def]
        for stage in stages:
            yield stage(u, w, a, b)

    return made


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (faulty(), "it has no stage; yield or return"),
        (faulty(lambda u, w, a, b: u), "which is no stage; yield a dict"),
        (faulty(lambda u, w, a, b: {"u": u, "a": ab.max(u)}), "write a stage for each"),
        (
            faulty(lambda u, w, a, b: {"a": ab.max(u), "b": 2.0 * a}),
            "b is computed from a, which the same stage sets",
        ),
        (faulty(lambda u, w, a, b: {"a": ab.max(u + w[0])}), "say where its values stand"),
        (faulty(lambda u, w, a, b: {"u": u + a}), "a"),
        (faulty(lambda u, w, a, b: {"u": u + w}), "say by `at` which value is meant"),
        (faulty(lambda u, w, a, b: {"u": u, "w": w}), "write a stage for each"),
        (faulty(lambda u, w, a, b: {"a": u}), "a scalar is no function of the field u"),
        (faulty(lambda u, w, a, b: {"a": ab.max(u, margins={"q": (1, 1)})}), "no axis is named `q`"),
        (faulty(lambda u, w, a, b: ab.stage({"a": 1.0}, points=[(1,)])), "leave where and points out"),
        (faulty(lambda u, w, a, b: ab.stage({"u": u}, points=[(1, 2)])), "it has 1 points of 2 indices on 1 axes"),
        (
            lambda u=ab.field(on="corners"): u,
            "no place of values is named `corners`; known: cells, nodes, x-faces",
        ),
        (lambda u=ab.field(on="y-faces"): u, "no place of values is named `y-faces`"),
        (lambda u, n=ab.extent("y"): u * n, "no axis is named `y`"),
    ],
)
def test_faults_are_named(function: Any, words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.program(1)(function)
    assert words in str(caught.value) and isinstance(caught.value, ValueError)


def test_a_stencil_does_not_yield() -> None:
    with pytest.raises(ab.Invalid, match="is made by @ab.program"):
        ab.stencil(1)(faulty())
