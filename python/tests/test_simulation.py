"""Runs: starts, reading and writing, frames, pictures, checkpoints, and other threads."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from conftest import Array

import pyabide as ab


@ab.stencil(2, boundary="periodic")
def heat(u, kappa=0.1):  # type: ignore[no-untyped-def]
    return u + kappa * (u[-1, 0] + u[0, -1] + u[0, 1] + u[1, 0] - 4 * u)


def stepped(u: Array, steps: int) -> Array:
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) + np.roll(u, -1, 0)
        u = u + 0.1 * (around - 4 * u)
    return u


def plane(*shape: int) -> Array:
    return np.random.default_rng(3).random(shape or (24, 31))


def test_shape_and_type_are_the_arrays() -> None:
    assert heat.start(u=plane(5, 9).astype("f4"), backend="cpu").dtype == np.float32
    sim = heat.start(u=plane(5, 9), backend="cpu")
    assert (sim.shape, sim.dtype, sim.fields, sim.step, sim.backend) == ((5, 9), np.float64, ("u",), 0, "cpu")
    assert sim["u"].shape == (5, 9)
    assert heat.start(u=plane(5, 9), dtype="float32", backend="cpu").notes == [
        "field u: input in f64 rounded to f32, the run's type"
    ]


def test_starts_by_name_and_number() -> None:
    sim = heat.start(u="random:5", shape=(6, 7), backend="cpu")
    assert 0 <= sim["u"].min() < sim["u"].max() < 1
    assert (heat.start(u=0.25, shape=(6, 7), backend="cpu")["u"] == 0.25).all()
    assert (heat.start(u=np.float32(2), shape=(6, 7), backend="cpu")["u"] == 2).all()


@pytest.mark.parametrize(
    "strided",
    [
        lambda u: u[::2, ::3],
        lambda u: u.T,
        lambda u: np.asfortranarray(u),
        lambda u: u[::-1, ::-1],
        lambda u: np.broadcast_to(u[:1], u.shape),
        lambda u: u.astype(">f8"),
        lambda u: u.astype("f2"),
        lambda u: np.lib.stride_tricks.as_strided(u, (8, 8), (8, 8 * 31)),
    ],
)
def test_any_strides_go_in(strided: Any) -> None:
    u = strided(plane())
    sim = heat.start(u=u, backend="cpu")
    assert np.array_equal(sim["u"], u)
    sim["u"] = u[::-1]
    assert np.array_equal(sim["u"], u[::-1])


def test_dlpack_goes_in_and_out() -> None:
    class Foreign:
        def __init__(self, values: Array) -> None:
            self.values = values

        def __dlpack__(self, **options: Any) -> Any:
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.values.__dlpack_device__()

    u = plane()
    sim = heat.start(u=Foreign(u[::2]), backend="cpu")
    field = sim.field("u")
    out = np.from_dlpack(field)
    assert np.array_equal(out, u[::2])
    assert np.shares_memory(out, field.values) and np.shares_memory(np.asarray(field), field.values)
    sim.run(1)
    assert np.array_equal(out, u[::2]), "a copy stays as it is"
    assert np.array_equal(np.array(field, copy=True), u[::2])


def test_writing_and_parameters() -> None:
    u = plane()
    sim = heat.start(u=0.0, shape=u.shape, dtype="f64", backend="cpu")
    sim["u"] = u
    sim.run(2)
    assert np.array_equal(sim["u"], stepped(u, 2))
    sim["u"] = 1.5
    assert (sim["u"] == 1.5).all()
    sim.parameters["kappa"] = 0.2
    assert sim.parameters == {"kappa": 0.2} and len(sim.parameters) == 1 and "kappa" in sim.parameters
    sim["u"] = u.astype("f4")
    assert np.array_equal(sim["u"], u.astype("f4"))
    assert np.array_equal(sim.window("u", slice(2, 5), slice(-3, None)), u.astype("f4")[2:5, -3:])


def test_reports_tell() -> None:
    sim = heat.start(u=plane(), backend="cpu")
    report = sim.run(12)
    assert (report.steps, report.steps_asked, report.cells) == (12, 12, 24 * 31)
    assert sim.non_finite == 0
    sim.parameters["kappa"] = 1e300
    with pytest.warns(RuntimeWarning, match="are NaN or infinite"):
        sim.run(3)
    assert sim.non_finite > 0
    assert report.seconds > 0 and report.gcells_per_s > 0
    assert "GCells/s" in repr(report) and "<table>" in report._repr_html_()
    assert report.plan.execution in str(report.plan._repr_html_()) or report.plan.summary()
    assert '"steps":12' in report.to_json() and '"shape"' in report.plan.to_json()
    assert sim.run(0).steps == 0 and sim.step == 15
    assert sim.run(10**9, seconds=0.2).steps < 10**9


def test_several_devices_have_the_bits_of_one(tmp_path: Path) -> None:
    u = plane(40, 31)
    one = heat.start(u=u, backend="cpu", devices=1)
    one.run(20)
    three = heat.start(u=u, backend="cpu", devices=3)
    report = three.run(10)
    assert "3 devices" in report.plan.summary() and len(json.loads(report.to_json())["ranks"]) == 3
    three.checkpoint(tmp_path / "heat.npz")
    for sim in (three, ab.resume(tmp_path / "heat.npz", heat, backend="cpu", devices=2)):
        sim.run(10)
        assert np.array_equal(sim["u"], one["u"])
    assert json.loads(report.to_json())["ranks"][0]["exchange"] == "messages"
    with pytest.raises(ab.Error, match="exchanging by network"):
        heat.start(u=u, backend="cpu", devices=3, exchange="network")
    assert "4 devices" in ab.plan(heat, (400, 300), device="h200", devices=4).summary()
    for wrong, words in [(0, "at least 1"), ("x", "write 2, or all"), (1.5, "names none"), ([0, 1], "cpu")]:
        with pytest.raises(ab.Error, match=words):
            heat.start(u=u, backend="cpu", devices=wrong)


def test_frames() -> None:
    u = plane()
    sim = heat.start(u=u, backend="cpu")
    frames = []
    for frame in sim.frames(25, every=10, progress=False):
        frames.append((frame.step, frame["u"].values))
        assert frame.report.steps in (5, 10)
    assert [step for step, _ in frames] == [10, 20, 25]
    assert all(np.array_equal(values, stepped(u, step)) for step, values in frames)
    with pytest.raises(ab.Invalid, match="read a frame in the loop"):
        first = next(iter(sim.frames(5, every=1)))
        sim.run(1)
        first["u"]


def test_xarray_and_pictures(tmp_path: Path) -> None:
    sim = heat.start(u="gaussian", shape=(20, 30), backend="cpu")
    values = sim.xarray("u")
    assert isinstance(values, xarray.DataArray) and values.dims == ("y", "x") and values.attrs["step"] == 0
    picture = sim.png()
    assert picture.startswith(b"\x89PNG") and picture._repr_png_() == bytes(picture)
    picture.save(tmp_path / "u.png")
    assert (tmp_path / "u.png").read_bytes() == picture
    movie = sim.movie(30, every=10, range=(0, 1), progress=False)
    assert movie.startswith(b"GIF89a") and "image/gif" in movie._repr_html_()
    assert sim.step == 30 and "data:image/png" in sim._repr_html_() and "step 30" in repr(sim)


def test_checkpoints_go_on_to_the_bit(tmp_path: Path) -> None:
    u = plane().astype("f4")
    sim = heat.start(u=u, kappa=0.15, backend="cpu")
    sim.run(7)
    sim.checkpoint(tmp_path / "heat.npz")
    sim.run(5)
    again = heat.resume(tmp_path / "heat.npz", backend="cpu")
    assert again.step == 7 and again.parameters["kappa"] == 0.15
    again.run(5)
    assert np.array_equal(again["u"], sim["u"])
    same = ab.resume(tmp_path / "heat.npz", heat, backend="cpu")
    assert same.step == 7
    life = ab.start("life", shape=(16, 16), backend="cpu")
    life.run(3)
    life.checkpoint(tmp_path / "life.npz")
    assert ab.resume(tmp_path / "life.npz", backend="cpu").step == 3


def test_the_catalogue_by_name() -> None:
    names = {entry.name: entry for entry in ab.catalogue()}
    assert names["gray-scott"].fields == ("u", "v") and "feed" in names["gray-scott"].parameters
    sim = ab.start("gray-scott", shape=(32, 32), feed=0.04, boundary="periodic", backend="cpu")
    assert sim.run(10).steps == 10 and sim.parameters["feed"] == 0.04
    sim = ab.start("heat", u=plane(), backend="cpu")
    assert sim.dtype == np.float64 and np.array_equal(sim["u"], plane())
    assert ab.start(heat, u=1.0, shape=(4, 4), backend="cpu").shape == (4, 4)
    assert names["wave"].dimensions == (1, 2, 3)


def test_plans_and_devices() -> None:
    plan = heat.plan((2048, 2048), device="h200")
    assert plan.device == "H200" and "problem" in str(plan) and plan.depth >= 1
    assert ab.plan("heat", (512, 512), device="a100", execution="persistent").execution == "persistent"
    assert ab.plan(heat, (64, 64), backend="cpu").estimated_seconds >= 0
    assert [device.backend for device in ab.devices()] == ["cuda", "wgpu", "cpu"]
    assert any(device.backend == "cpu" and device and device.kind == "CPU" for device in ab.devices())


def test_other_threads_go_on_while_one_runs() -> None:
    sim = heat.start(u="random:1", shape=(512, 512), backend="cpu")
    ticks, steps = 0, 0
    done = threading.Event()

    def run() -> None:
        sim.run(10**9, seconds=0.6)
        done.set()

    runner = threading.Thread(target=run)
    runner.start()
    while not done.is_set():
        time.sleep(0.005)
        ticks += 1
        steps = max(steps, sim.step)
    runner.join()
    assert ticks > 20 and 0 < steps <= sim.step


def test_calls_of_two_threads_wait_for_one_another() -> None:
    sim = heat.start(u="random:1", shape=(64, 64), backend="cpu")
    runners = [threading.Thread(target=lambda: [sim.run(10) for _ in range(20)]) for _ in range(3)]
    for runner in runners:
        runner.start()
    while any(runner.is_alive() for runner in runners):
        assert np.isfinite(sim["u"]).all()
    assert sim.step == 600


def test_records_and_probes() -> None:
    sim = heat.start(u=plane(), backend="cpu", record=5, probes=[("u", (2, 3))])
    sim.run(12)
    rows = sim.records()
    assert rows.columns == ["step", "u@2,3"] and list(rows.steps) == [0, 5, 10]
    assert rows["u@2,3"][1] == stepped(plane(), 5)[2, 3] and len(sim.records()) == 0


@pytest.mark.parametrize("backend", ["cuda", "wgpu"])
def test_the_same_on_other_backends(backend: str) -> None:
    device = next(device for device in ab.devices() if device.backend == backend)
    if not device:
        pytest.skip(f"{backend}: {device.unavailable}")
    u = plane().astype("f4")
    sim = heat.start(u=u, backend=backend)
    sim.run(20)
    close = np.array_equal if backend == "cuda" else np.allclose
    assert close(sim["u"], stepped(u, 20))
