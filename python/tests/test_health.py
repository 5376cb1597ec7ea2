"""A run that goes wrong says so; bars show how far a run is; and nothing else is printed."""

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import pyabide as ab


def blown_up() -> ab.Simulation:
    return ab.start("heat", u="random:1", shape=(64, 64), kappa=0.5, backend="cpu")


def test_values_that_are_not_finite_are_warned_of() -> None:
    sim = blown_up()
    with pytest.warns(
        RuntimeWarning, match="are NaN or infinite, which was first noticed after step"
    ) as caught:
        report = sim.run(2000)
    assert caught[0].filename == __file__
    shown = str(caught[0].message)
    assert "kappa is 0.5 (diffusivity · step / width²; stable up to 1/(2·axes))" in shown
    assert shown in report.notes and shown in repr(report)
    assert f"{sim.non_finite} of 4096 values" in shown
    step = int(shown.split("after step ")[1].split(";")[0])
    assert 0 < step <= 2000
    # Once is enough; the note stays.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f"after step {step}" in sim.run(10).notes[-1]
    sim["u"] = 0.5
    assert sim.run(1).notes == []
    sim["u"] = np.nan
    with pytest.warns(RuntimeWarning, match=f"after step {sim.step + 1}"):
        sim.run(1)


def test_short_runs_and_frames_are_watched_too() -> None:
    sim = blown_up()
    with pytest.warns(RuntimeWarning):
        for _ in range(1000):
            sim.run(2)
    with pytest.warns(RuntimeWarning) as caught:
        for frame in blown_up().frames(2000, every=100, progress=False):
            assert frame.step
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(RuntimeWarning):
        blown_up().movie(2000, every=500, progress=False)


def test_programs_of_ones_own_are_watched() -> None:
    @ab.stencil(1)
    def grow(u, rate=ab.parameter(1e30, "growth; stable below 1"), other=1.0):  # type: ignore[no-untyped-def]
        return rate * u * other

    with pytest.warns(
        RuntimeWarning, match=r"; rate is 1e\+?30 \(growth; stable below 1\)$|; rate is 1000000"
    ):
        grow.start(u=np.ones(10, "f4"), backend="cpu").run(3)


def test_what_is_finite_is_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = ab.start("heat", u="random:1", shape=(64, 64), backend="cpu").run(100)
    assert not any("NaN" in note for note in report.notes)


def test_a_bar_shows_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    sim = ab.start("heat", u="random:1", shape=(64, 64), backend="cpu")
    sim.run(100)
    sim.run(100, progress=False)
    assert capsys.readouterr() == ("", "")
    assert sim.run(100, progress=True).steps == 100
    shown = capsys.readouterr().err
    assert "100%|" in shown and "100/100 steps" in shown and shown.endswith("\n")
    sim.run(0, progress=True)
    sim.run(10**9, seconds=0.4, progress=True)
    shown = capsys.readouterr().err
    assert shown.count("\r") > 2 and "s left" in shown


def test_a_bar_appears_on_a_terminal_where_a_run_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    sim = ab.start("heat", u="random:1", shape=(64, 64), backend="cpu")
    sim.run(10)
    assert capsys.readouterr().err == ""
    sim.run(10**9, seconds=1.5)
    assert "steps" in capsys.readouterr().err


def test_a_bar_that_cannot_be_shown_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        encoding = "ascii"

        def write(self, text: str) -> int:
            raise UnicodeEncodeError("ascii", text, 0, 1, "no")

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Broken())
    assert ab.start("heat", u=1.0, shape=(8, 8), backend="cpu").run(5, progress=True).steps == 5
    monkeypatch.setattr(sys, "stderr", None)
    assert ab.start("heat", u=1.0, shape=(8, 8), backend="cpu").run(5).steps == 5


def test_frames_have_a_bar_without_tqdm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    sim = ab.start("heat", u=1.0, shape=(8, 8), backend="cpu")
    assert len(list(sim.frames(10, every=5, progress=True))) == 2
    assert "10/10 steps" in capsys.readouterr().err
    list(sim.frames(10, every=5))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "variables", [{}, {"DISPLAY": ":99"}, {"WAYLAND_DISPLAY": "wayland-7"}, {"XDG_RUNTIME_DIR": ""}]
)
def test_nothing_is_printed_where_there_is_no_session(variables: dict[str, str]) -> None:
    hidden = (
        "XDG_RUNTIME_DIR",
        "WAYLAND_DISPLAY",
        "WAYLAND_SOCKET",
        "DISPLAY",
        "NODEVICE_SELECT",
        "DRI_PRIME",
        "MESA_VK_DEVICE_SELECT",
    )
    kept: dict[str, Any] = {name: own for name, own in os.environ.items() if name not in hidden}
    code = "import pyabide as ab; ab.devices(); ab.start('heat', shape=(8, 8)).run(1)"
    run = subprocess.run(
        [sys.executable, "-c", code], env=kept | variables, capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("", "")
