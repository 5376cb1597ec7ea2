"""What all tests share: backends, extents, and runs of numpy beside those of Abide."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pyabide as ab

Array = NDArray[Any]

# The modes of numpy.pad by the names of Abide's boundaries.
PADS: dict[str, dict[str, Any]] = {
    "periodic": {"mode": "wrap"},
    "mirror": {"mode": "symmetric"},
    "reflect": {"mode": "reflect"},
    "-mirror": {"mode": "symmetric", "odd": True},
    "clamp": {"mode": "edge"},
    "constant=0.25": {"mode": "constant", "constant_values": 0.25},
}


def taps(boundary: str) -> Callable[[Array], Any]:
    """Returns what gives a numpy array neighbours by offsets, as a field has them in a stencil."""

    def of(values: Array) -> Any:
        pad = dict(PADS[boundary])
        radius = 2
        padded = np.pad(
            values, radius, mode=pad["mode"], **{key: pad[key] for key in pad if key not in ("mode", "odd")}
        )
        if pad.get("odd"):
            # numpy's odd reflection is about the edge's value; Abide's is about zero.
            sign = np.ones_like(padded)
            for axis in range(values.ndim):
                index: list[Any] = [slice(None)] * values.ndim
                for side in (slice(0, radius), slice(-radius, None)):
                    index[axis] = side
                    sign[tuple(index)] *= -1
            padded = padded * sign

        class Taps:
            def __getitem__(self, offset: Any) -> Array:
                given = offset if isinstance(offset, tuple) else (offset,)
                part = tuple(
                    slice(radius + int(step), radius + int(step) + extent)
                    for step, extent in zip(given, values.shape, strict=True)
                )
                return padded[part]

        return Taps()

    return of


MODELS = Path(__file__).parents[2] / "examples" / "models"

# What takes minutes runs with the full tests.
full = pytest.mark.skipif("ABIDE_ALL" not in os.environ, reason="examples at full size run with ABIDE_ALL=1")


def check_model(program: ab.Program, steps: int, **start: Any) -> None:
    """Checks that the model file of an example's name has the example's bits, and that it runs with its own starts."""
    model = ab.load(MODELS / f"{program.name}.toml")
    sims = [own.start(**start, backend="cpu") for own in (program, model)]
    for sim in sims:
        sim.run(steps)
    one, other = sims
    assert one.step == other.step > 0 and one.scalars == other.scalars
    assert one.fields == other.fields
    for name in one.fields:
        assert one[name].tobytes() == other[name].tobytes(), name
    sim = model.start(backend="cpu")
    sim.run(2)
    assert sim.step > 0 and sim.non_finite == 0


def cuda() -> Any:
    """Returns what is known of CUDA's device."""
    return next(device for device in ab.devices() if device.backend == "cuda")


@pytest.fixture(params=["cpu", "cuda"] if cuda() else ["cpu"])
def backend(request: pytest.FixtureRequest) -> Any:
    """The backends that have numpy's bits: those that are here."""
    return request.param


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return np.dtype(request.param)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the results in the form of cargo's runners, so that both are counted alike, and names skipped
    tests."""
    count = {
        name: len(terminalreporter.stats.get(name, [])) for name in ("passed", "failed", "error", "skipped")
    }
    skipped = terminalreporter.stats.get("skipped", [])
    for reason in sorted({str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped}):
        terminalreporter.write_line(f"skipped: python: {reason}")
    failed = count["failed"] + count["error"]
    verdict = "FAILED" if failed else "ok"
    terminalreporter.write_line(
        f"test result: {verdict}. {count['passed']} passed; {failed} failed; {count['skipped']} ignored"
    )
