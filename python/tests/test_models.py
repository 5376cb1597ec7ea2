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


def test_faults_have_places() -> None:
    with pytest.raises(ab.Invalid, match=r"spots.toml, line 15, column 10: no value is named `w`; use one of u, v"):
        ab.loads(SPOTS.replace("u * v**2", "u * w**2"), "spots.toml")
    with pytest.raises(ab.FileError, match="none.toml"):
        ab.load("none.toml")
