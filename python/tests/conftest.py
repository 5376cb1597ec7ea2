"""What all tests share: backends, extents, and runs of numpy beside those of Abide."""

from collections.abc import Callable
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
