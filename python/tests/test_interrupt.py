"""Ctrl-C: a run ends within half a second, wherever it is, and the simulation goes on from there."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import pyabide as ab

TIMES = 200

# A machine that does other things too may keep one of these waiting.
TRIES = 3


@ab.stencil(2, boundary="periodic")
def shift(u):  # type: ignore[no-untyped-def]
    return u[0, -1]


@pytest.fixture(autouse=True)
def answers_to_ctrl_c() -> Iterator[None]:
    """Answers as a program of a terminal does: one begun by `nohup … &` ignores Ctrl-C, and the tests would wait for ever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(work: Callable[[], object], after: float) -> float:
    """Calls `work`, presses Ctrl-C after some seconds, and returns the seconds that it took to end."""
    pressed = 0.0

    def press() -> None:
        nonlocal pressed
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    try:
        # It may be pressed before all is begun.
        timer.start()
        work()
    except KeyboardInterrupt:
        return time.monotonic() - pressed
    finally:
        timer.join()
    raise AssertionError("it was not interrupted")


def test_a_run_interrupted_at_any_moment_stays_usable() -> None:
    moments = random.Random(11)
    u = np.random.default_rng(1).random((64, 64)).astype("f4")
    sim = shift.start(u=u, backend="cpu")
    took: list[float] = []
    for number in range(TIMES):
        before = sim.step
        try:
            took.append(interrupted(lambda: sim.run(10**12), moments.uniform(0.001, 0.03)))
        except KeyboardInterrupt:
            # Pressed between the run's end and what the test does next.
            pass
        assert sim.step >= before
        # Every step moves all by one: the count and the values agree, whenever it was.
        if number % 20 == 0:
            assert np.array_equal(sim["u"], np.roll(u, sim.step % 64, 1))
    sim.run(3)
    assert np.array_equal(sim["u"], np.roll(u, sim.step % 64, 1))
    # A machine that does other things too may keep a few waiting for longer.
    assert sorted(took)[len(took) * 9 // 10] < 0.5, sorted(took)[-20:]


def test_frames_can_be_interrupted_and_begun_again() -> None:
    u = np.random.default_rng(1).random((128, 128))
    sim = shift.start(u=u, backend="cpu")

    def watch() -> None:
        for frame in sim.frames(10**9, every=1000, progress=False):
            frame["u"]

    for moment in (0.01, 0.05, 0.15):
        assert min(interrupted(watch, moment) for _ in range(TRIES)) < 0.5
        assert np.array_equal(sim["u"], np.roll(u, sim.step % 128, 1))


def test_a_handler_may_not_use_the_run_that_it_interrupts() -> None:
    sim = shift.start(u=1.0, shape=(64, 64), backend="cpu")
    messages: list[str] = []

    def handle(*_: object) -> None:
        with pytest.raises(ab.Invalid) as caught:
            sim.run(1)
        messages.append(str(caught.value))
        raise RuntimeError("from the handler")

    before = signal.signal(signal.SIGUSR1, handle)
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(RuntimeError, match="from the handler"):
            sim.run(10**12)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert messages == [
        "the simulation: it is running, and this is called from within the run, as by a signal's handler; "
        "call it once the run has ended"
    ]
    assert sim.run(2).steps == 2


def test_a_solve_can_be_interrupted() -> None:
    operator = ab.GridOperator("laplacian2d", (300, 300))
    b = np.random.default_rng(1).random(90_000)

    def solve() -> None:
        ab.cg(operator, b, rtol=0.0, atol=1e-300, maxiter=10**9)

    assert min(interrupted(solve, 0.1) for _ in range(TRIES)) < 0.5
