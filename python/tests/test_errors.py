"""Every error is a sentence of Abide's that says what was wrong and what to change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyabide as ab


@ab.stencil(2, boundary="mirror")
def mean(u, k, weight=0.25):  # type: ignore[no-untyped-def]
    return {"u": weight * k * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0])}


def made(function: Callable[..., Any], dimensions: int = 2, **options: Any) -> ab.Program:
    return ab.stencil(dimensions, **options)(function)


def started(**values: Any) -> ab.Simulation:
    return mean.start(**{"u": np.ones((8, 9)), "k": 1.0, "backend": "cpu"} | values)


RECORDING: list[tuple[Callable[..., Any], str]] = [
    (lambda u: u if u > 0 else -u, "write ab.where"),
    (lambda u: u and u, "write ab.where"),
    (lambda u: u[0], "a whole number for each of the 2 axes"),
    (lambda u: u[0.5, 0], "a whole number for each of the 2 axes"),
    (lambda u: u[0:2, 0], "a whole number for each of the 2 axes"),
    (lambda u: (2 * u)[1, 0], "only a field has neighbours"),
    (lambda u: u + np.ones((8, 9)), "make the array a field"),
    (lambda u: np.ones((8, 9)) * u, "make the array a field"),
    (lambda u: u + "1", "cannot stand in it"),
    (lambda u: u + 1j, "cannot stand in it"),
    (lambda u: u == None, "cannot stand in it"),  # noqa: E711
    (lambda u: np.heaviside(u, 0), "np.heaviside cannot stand in it; of numpy's functions it may use: absolute, add"),
    (lambda u: np.sum(u), "np.sum cannot stand in it"),
    (lambda u: np.add.reduce(u), "np.add.reduce cannot stand in it"),
    (lambda u: np.roll(u, 1, 0), "np.roll cannot stand in it"),
    (lambda u: float(u), "it is no number for Python's own functions"),
    (lambda u: np.array(u), "it is no array while it is recorded"),
    (lambda u: sum(u), "name the neighbours by their offsets"),
    (lambda u: u % 2, "there is no remainder"),
    (lambda u: u & u, "compare the value first"),
    (lambda u: None, "it returns nothing; return the new value of u"),
    (lambda u: {"w": u}, "`w` is no field and no scalar; what a stage can set: u"),
    (lambda u, v: u + v, "return a dict of the new values"),
    (lambda u: {}, "a stage sets nothing"),
    (lambda u: {"u": "u"}, "cannot stand in it"),
    (lambda u, backend=1: u, "backend is an argument of start"),
    (lambda *u: u[0], "write each field as one argument"),
    (lambda u, a="x": u, "'x' is no number"),
    (lambda u: u[2000, 0], "offset of a tap: 2000 asked, the limit is 1024"),
    (lambda u: u[10**12, 0], "offset of a tap"),
    (lambda u: ab.coord(2) * u, "axis 2: the program has 2 axes"),
    (lambda u: {"u": ab.max(u)}, "declare a scalar for it"),
    (lambda a=1.0: a, "its fields are none"),
]


@pytest.mark.parametrize(("function", "words"), RECORDING)
def test_recording(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        made(function)
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_formula_of_another_program_is_refused() -> None:
    kept: list[Any] = []

    def keep(u):  # type: ignore[no-untyped-def]
        kept.append(u)
        return u

    made(keep)
    with pytest.raises(ab.Invalid, match="belongs to another program"):
        made(lambda u: u + kept[0])
    with pytest.raises(ab.Invalid, match="no program is being recorded"):
        ab.sqrt(2.0)


STARTS: list[tuple[dict[str, Any], type[ab.Error], str]] = [
    ({"u": np.ones((8, 9, 2))}, ab.Invalid, "axes"),
    ({"k": np.ones((3, 9))}, ab.Invalid, "input of field k: its size is 3x9, the domain's is 8x9"),
    ({"w": 1.0}, ab.Unknown, "no field and no parameter named `w`; known: u, k, weight"),
    (
        {"u": "noise", "shape": (4, 4)},
        ab.Unknown,
        "no start is named `noise`; known: random:SEED, gaussian, point",
    ),
    ({"u": np.ones((8, 9), complex)}, ab.Invalid, "its values are complex128"),
    ({"u": np.array([["a"]])}, ab.Invalid, "give float32 or float64"),
    ({"u": object()}, ab.Invalid, "field u"),
    ({"u": [[1.0, 2.0], [3.0]]}, ab.Invalid, "makes no array"),
    ({"u": 1.0}, ab.Invalid, "the domain has no extents; give an array, or shape=(64, 64)"),
    ({"u": None, "shape": (4, 4)}, ab.Invalid, "field u"),
    ({"shape": (4, 4)}, ab.Invalid, "its size is 8x9, the domain's is 4x4"),
    ({"shape": (0, 4)}, ab.Invalid, "an extent below 1"),
    ({"shape": "ab"}, ab.Invalid, "is no shape"),
    ({"dtype": "int32"}, ab.Invalid, "give numpy's float32 or float64"),
    ({"dtype": 7}, ab.Invalid, "give numpy's float32 or float64"),
    ({"backend": "tpu"}, ab.Unknown, "no backend is named `tpu`; known: auto, cuda, wgpu, cpu"),
    ({"boundary": "open"}, ab.Unknown, "no boundary is named `open`"),
    ({"boundary": {"x": 3j}}, ab.Invalid, "neither a word nor a number"),
    ({"boundary": {"q": "mirror"}}, ab.Unknown, "no field is named `q`"),
    ({"boundary": {}}, ab.Invalid, "the dict is empty"),
    ({"boundary": {"z": "mirror"}}, ab.Unknown, "no axis is named `z`"),
    ({"weight": "big"}, ab.Invalid, "'big' is no number"),
    ({"weight": float("nan")}, ab.Invalid, "not a finite number"),
    ({"until": "time > 3"}, ab.Unknown, "no scalar is named `time`"),
    ({"execution": "fast"}, ab.Unknown, "no execution is named `fast`"),
    ({"depth": 0}, ab.Invalid, "neither `auto` nor a whole number above 0"),
    ({"probes": [("u", (99, 0))]}, ab.Limit, "99"),
]


@pytest.mark.parametrize(("values", "kind", "words"), STARTS)
def test_starting(values: dict[str, Any], kind: type[ab.Error], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        started(**values)
    assert words in str(caught.value)
    assert isinstance(caught.value, kind) and isinstance(caught.value, ValueError)


USES: list[tuple[Callable[[ab.Simulation], Any], str]] = [
    (lambda sim: sim["w"], "no field is named `w`; known: u, k"),
    (lambda sim: sim.field("w"), "no field is named `w`; known: u, k"),
    (lambda sim: sim.png("w"), "no field is named `w`"),
    (lambda sim: sim.__setitem__("w", 1.0), "no field is named `w`"),
    (lambda sim: sim.__setitem__("u", np.ones((2, 2))), "the array's shape is [2, 2], the field's is [8, 9]"),
    (lambda sim: sim.parameters["q"], "no parameter is named `q`; known: weight"),
    (lambda sim: sim.parameters.update(q=1), "no parameter is named `q`; known: weight"),
    (lambda sim: sim.parameters.update(weight=float("inf")), "not a finite number"),
    (lambda sim: sim.parameters.update(weight="x"), "'x' is no number"),
    (lambda sim: sim.parameters.pop("weight"), "a program keeps its parameters"),
    (lambda sim: sim.run(-1), "-1 steps cannot be done"),
    (lambda sim: sim.run(1.5), "1.5 is no whole number"),
    (lambda sim: sim.run(2**64), "steps cannot be done"),
    (lambda sim: sim.run(1, seconds=-1), "no run can last so long"),
    (lambda sim: sim.frames(10, every=0), "give 1 or more"),
    (lambda sim: sim.window("u", slice(0, 3)), "1 slices are given on 2 axes"),
    (lambda sim: sim.window("u", slice(3, 3), slice(0, 1)), "a slice is empty"),
    (lambda sim: sim.png(range=(1, 2, 3)), "is no pair of numbers"),
    (lambda sim: sim.movie(0, every=1, progress=False), "a movie of no frames"),
    (lambda sim: sim.records()["u"], "no column is named `u`"),
    (lambda sim: mean(1), "start it by mean.start"),
    (lambda sim: mean.plan((8, 8), device="z80"), "known: v100, a100, h100, h200"),
    (lambda sim: ab.start("lava", shape=(8, 8)), "no stencil is named `lava`"),
    (lambda sim: ab.plan("lava", (8, 8)), "no stencil is named `lava`"),
    (lambda sim: ab.stencil(4)(lambda u: u), "give 1, 2 or 3"),
    (lambda sim: ab.stencil(lambda u: u), "the number of axes is missing"),
]


@pytest.mark.parametrize(("use", "words"), USES)
def test_using(use: Callable[[ab.Simulation], Any], words: str) -> None:
    sim = started()
    with pytest.raises(ab.Error) as caught:
        use(sim)
    assert words in str(caught.value)
    assert sim.run(1).steps == 1


def test_files(tmp_path: Path) -> None:
    sim = started()
    with pytest.raises(ab.FileError, match="nowhere"):
        sim.checkpoint(tmp_path / "nowhere" / "a.npz")
    with pytest.raises(ab.FileError):
        ab.resume(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"nonsense")
    with pytest.raises(ab.FileError):
        mean.resume(tmp_path / "bad.npz")
    sim.checkpoint(tmp_path / "a.npz")
    with pytest.raises(ab.Invalid, match=r"give the program too, as in ab.resume\(path, mean\)"):
        ab.resume(tmp_path / "a.npz")
    other = made(lambda u: u)
    with pytest.raises(ab.FileError, match="the checkpoint has mean"):
        other.resume(tmp_path / "a.npz", backend="cpu")
    with pytest.raises(ab.FileError):
        sim.png().save(tmp_path / "nowhere" / "a.png")


def test_what_is_not_there() -> None:
    missing = [device for device in ab.devices() if not device]
    for device in missing:
        with pytest.raises(ab.Unavailable, match="is unavailable"):
            started(backend=device.backend)
        assert device.unavailable


def test_a_cpu_is_not_cut_into_thousands_of_devices() -> None:
    for asked in (2000, 20_000):
        with pytest.raises(ab.Limit, match=f"devices of backend cpu: {asked} asked.*ask for fewer"):
            started(devices=asked)
        with pytest.raises(ab.Limit, match=f"{asked} asked"):
            ab.cg(ab.GridOperator("laplacian2d", (30, 30)), np.ones(900), backend="cpu", devices=asked)
