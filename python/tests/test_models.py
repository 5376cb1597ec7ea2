"""Model files: programs as text, read and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pyabide as ab

SPOTS = """
axes = 2
boundary = "periodic"
[fields]
u = 1.0
v = { start = { seeds = 8, inside = 0.5, outside = 0.0 } }
[parameters]
feed = 0.03
kill = 0.062
[scalars]
time = 0.0
[[stages]]
lap_u = "u[-1,0] + u[0,-1] + u[0,1] + u[1,0] - 4*u"
lap_v = "v[-1,0] + v[0,-1] + v[0,1] + v[1,0] - 4*v"
r = "u * v**2"
u = "u + 0.16*lap_u - r + feed*(1 - u)"
v = "v + 0.08*lap_v + r - kill*v"
[[stages]]
time = "time + 0.5"
[run]
size = "33x41"
dtype = "f64"
steps = 500
until = "time >= 20"
param = { feed = 0.04 }
backend = "cpu"
output = "spots.png"
"""


def test_a_model_file_has_the_bits_of_the_same_function(tmp_path: Path) -> None:
    (tmp_path / "spots.toml").write_text(SPOTS)
    spots = ab.load(tmp_path / "spots.toml")
    assert (spots.name, spots.dimensions, spots.fields) == ("spots", 2, ("u", "v"))
    sim = spots.start()
    assert sim["u"].shape == (33, 41) and sim["u"].dtype == np.float64
    assert sim.parameters["feed"] == 0.04
    v = sim["v"]
    assert sim.run(1000).steps == 40

    @ab.stencil(2, boundary="periodic")
    def same(u, v, feed=0.04, kill=0.062):  # type: ignore[no-untyped-def]
        lap_u = u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u
        lap_v = v[-1, 0] + v[0, -1] + v[0, 1] + v[1, 0] - 4 * v
        r = u * v**2
        return {"u": u + 0.16 * lap_u - r + feed * (1 - u), "v": v + 0.08 * lap_v + r - kill * v}

    other = same.start(u=np.ones((33, 41)), v=v, backend="cpu")
    other.run(40)
    assert np.array_equal(sim["u"], other["u"]) and np.array_equal(sim["v"], other["v"])


def test_what_start_is_given_wins() -> None:
    spots = ab.loads(SPOTS, "spots.toml")
    sim = spots.start(shape=(8, 9), dtype="float32", feed=0.05, until="time >= 1")
    assert sim["u"].shape == (8, 9) and sim["u"].dtype == np.float32 and sim.parameters["feed"] == 0.05
    assert sim.run(100).steps == 2


def test_a_program_is_written_as_text() -> None:
    @ab.program(1, boundary="mirror")
    def sound(
        p=ab.field(start="gaussian"),
        v=ab.field(on="x-faces", boundary="-reflect", start=0.0),
        dx=0.5,
        most=ab.scalar(),
        time=ab.scalar(0.0),
    ):  # type: ignore[no-untyped-def]
        yield {"most": ab.max(p)}
        yield {"v": v - 0.1 * (p[0] - p[-1]) / dx}
        yield {"p": p - 0.1 * (v[1] - v[0]) / dx}
        yield {"time": time + 0.1}

    text = sound.text()
    assert 'on = "nodes"' in text and 'most = "max(p)"' in text
    read = ab.loads(text, "sound.toml")
    assert read.text() == text
    sims = [program.start(shape=(50,), dtype="float64", backend="cpu") for program in (sound, read)]
    for sim in sims:
        sim.run(30)
    assert np.array_equal(sims[0]["p"], sims[1]["p"]) and sims[0].scalars == sims[1].scalars


@ab.stencil(1, boundary="periodic")
def upwind(u, dt=0.1, dx=0.5):  # type: ignore[no-untyped-def]
    return u + dt / dx * (u[-1] - u)


@ab.stencil(2, boundary={"y": "periodic", "x-": "mirror", "x+": 0.25, "v": {"x": "clamp"}})
def spots(u, v, feed=0.03, kill=0.062, h=0.7):  # type: ignore[no-untyped-def]
    r = u * v**2
    decay = ab.exp(-feed / h) * np.sin(kill) + ab.erf(h) ** 0.5 - ab.arctan2(h, feed)
    return {
        "u": u + 0.16 * ab.laplacian(u) - r + feed * (1 - u) / h**2,
        "v": v + 0.08 * ab.laplacian(v) + r - (feed + kill) * v + 1e-3 * decay,
    }


@ab.program(1, boundary={"x": "clamp", "v": "-reflect", "p": {"x-": "mirror", "x+": "constant=gain"}}, until="time >= 0.9")
def clocked(  # type: ignore[no-untyped-def]
    p,
    v=ab.field(on="x-faces", start=0.0),
    Y=ab.field(components=3, start="random:2"),
    w=ab.temporary(),
    dx=0.5,
    c=ab.parameter(1.5, "speed"),
    gain=0.125,
    n=ab.extent("x"),
    most=ab.scalar(),
    dt=ab.scalar(0.1),
    time=ab.scalar(0.0),
):
    yield {"most": ab.max(abs(p) * (c * dx), margins={"x": (1, 0)})}
    yield {"dt": ab.minimum(0.3 * dx / c, 1.0 / (most + 1.0)) + c**-2 * 1e-3}
    yield {"w": p * (gain / c) + sum(Y) / n}
    yield ab.stage({"v": v - dt * (w[0] - w[-1]) / dx}, where=v > -gain / dx)
    yield {"p": p - dt * c * c * (v[1] - v[0]) / dx, "Y[1]": Y[0] * (1.0 - gain)}
    yield ab.stage({"p": p + ab.sqrt(gain) * ab.cos(time)}, points=[(3,)])
    yield {"time": time + dt}
    yield ab.end_of_step
    yield {"p": p * (1.0 - gain * dx)}
    yield {"time": time + dt}


def deep() -> ab.Program:
    @ab.stencil(1, boundary="mirror")
    def deep(u, a=0.3, b=0.7):  # type: ignore[no-untyped-def]
        x = a
        for i in range(90):
            x = (x * b + a) / (x + 1.5) if i % 3 else np.sqrt(x * x + b)
        return u * x + u[1] * (a - b)

    return deep


SHAPES: dict[str, tuple[int, ...]] = {"upwind": (8,), "spots": (9, 8), "clocked": (12,), "deep": (7,)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # Drawn parameters may be unstable.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", [upwind, spots, clocked, deep()], ids=lambda program: program.name)
def test_text_is_the_program_for_other_parameters_too(program: ab.Program, dtype: str) -> None:
    read = ab.loads(program.text())
    assert read.text() == program.text()
    assert read.parameters == program.parameters and read.fields == program.fields
    random = np.random.default_rng(5)
    shape = SHAPES[program.name]
    without_start = ("p",) if program is clocked else program.fields
    given = {name: random.random(shape).astype(dtype) for name in without_start}
    for _ in range(4):
        values = {name: float(random.random() + 0.05) for name in program.parameters}
        probes = [(program.fields[0], [0] * len(shape))]
        sims = [
            own.start(**given, **values, backend="cpu", record=1, probes=probes) for own in (program, read)
        ]
        for sim in sims:
            sim.run(3)
            sim.parameters.update({name: value / 2 for name, value in values.items()})
            sim.run(20)
        one, other = sims
        assert one.step == other.step and one.scalars == other.scalars
        assert dict(one.parameters) == dict(other.parameters)
        for name in program.fields:
            assert one[name].tobytes() == other[name].tobytes(), name
        assert one.records().values.tobytes() == other.records().values.tobytes()


def test_text_keeps_formulas_of_parameters_starts_and_ends() -> None:
    text = upwind.text()
    assert 'formula = "dt/dx"' in text and 'u = "given"' in text
    u = np.arange(8.0)
    sims = [own.start(u=u, dt=0.2, backend="cpu") for own in (upwind, ab.loads(text))]
    for sim in sims:
        sim.run(1)
    assert np.array_equal(sims[0]["u"], sims[1]["u"])
    assert np.array_equal(sims[0]["u"], u + 0.2 / 0.5 * (np.roll(u, 1) - u))
    with pytest.raises(ab.Invalid, match="nothing is said of the start of u"):
        ab.loads(text).start(shape=(8,))
    assert "until = \"time >= 0.9\"" in clocked.text()
    assert ab.loads(clocked.text()).until == "time >= 0.9"
    with pytest.raises(ab.Invalid, match="computed from other parameters; set dt, dx"):
        sims[0]._core.set_parameters([("dt / dx", 1.0)])


def test_text_of_a_model_keeps_its_run() -> None:
    model = ab.loads(SPOTS)
    again = ab.loads(model.text())
    assert again.text() == model.text() and again.parameters["feed"] == 0.04
    sims = [own.start() for own in (model, again)]
    assert [sim.run(1000).steps for sim in sims] == [40, 40]
    assert np.array_equal(sims[0]["v"], sims[1]["v"])


def test_names_that_text_cannot_hold_are_refused() -> None:
    @ab.stencil(1)
    def f(where):  # type: ignore[no-untyped-def]
        return where * 2

    with pytest.raises(ab.Invalid, match="name `where`"):
        f.text()


def test_a_checkpoint_knows_its_formulas(tmp_path: Path) -> None:
    @ab.stencil(1, boundary="periodic")
    def heat(u, k=0.1, h=2.0):  # type: ignore[no-untyped-def]
        return u + k / h * (u[-1] - 2 * u + u[1])

    def other() -> ab.Program:
        @ab.stencil(1, boundary="periodic")
        def heat(u, k=0.1, h=2.0):  # type: ignore[no-untyped-def]
            return u + k / h * (u[-1] - 2 * u + u[2])

        return heat

    path = tmp_path / "c.npz"
    sim = heat.start(u="random:1", shape=(16,), k=0.3, backend="cpu")
    sim.run(3)
    sim.checkpoint(path)
    sim.run(4)
    for again in (ab.resume(path, heat, backend="cpu"), ab.loads(heat.text()).resume(path, backend="cpu")):
        again.run(4)
        assert np.array_equal(sim["u"], again["u"]) and not any("formulas" in note for note in again.notes)
    # The catalogue has a program of this name.
    for resume in (lambda: ab.resume(path, backend="cpu"), lambda: ab.resume(path, other(), backend="cpu")):
        with pytest.raises(ab.FileError, match="another program named heat.*by force"):
            resume()
    forced = ab.resume(path, other(), backend="cpu", force=True)
    assert any("by force" in note and "u[2]" in note for note in forced.notes)
    forced.run(1)


def test_faults_have_places() -> None:
    with pytest.raises(ab.Invalid, match=r"spots.toml, line 15, column 10: no value is named `w`; use one of u, v"):
        ab.loads(SPOTS.replace("u * v**2", "u * w**2"), "spots.toml")
    with pytest.raises(ab.FileError, match="none.toml"):
        ab.load("none.toml")
