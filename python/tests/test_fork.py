"""Forked processes: a run or a solve in the parent, then one in a child, as by multiprocessing with fork."""

import os
import subprocess
import sys
import textwrap

import pytest

if not hasattr(os, "fork"):
    pytest.skip("this system cannot fork", allow_module_level=True)

# Seconds after which a process counts as hanging.
LIMIT = 120

HEAD = """
import multiprocessing, os, sys, threading, time, warnings
import numpy as np
import pyabide as ab
warnings.filterwarnings("ignore", category=DeprecationWarning)
fork = multiprocessing.get_context("fork")

@ab.stencil(2, boundary="periodic")
def heat(u, kappa=0.2):
    return u + kappa * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u)

START = np.random.default_rng(3).random((256, 200))

def run(steps=20, devices=None):
    sim = heat.start(u=START, backend="cpu", devices=devices)
    sim.run(steps)
    return sim["u"].tobytes()

OPERATOR = ab.GridOperator("laplacian2d", (120, 120))
B = np.random.default_rng(4).random(14400)

def solve(_=0):
    return ab.cg(OPERATOR, B, backend="cpu")[0].tobytes()

def child(work):
    '''Forks, has the child do some work, and returns what it says.'''
    read, write = os.pipe()
    number = os.fork()
    if number == 0:
        os.close(read)
        try:
            said = work()
            said = said if isinstance(said, bytes) else str(said).encode()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}".encode()
        with os.fdopen(write, "wb") as to:
            to.write(said)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as source:
        said = source.read()
    os.waitpid(number, 0)
    return said
"""


def script(body: str) -> None:
    """Runs a program of its own, which must end in time."""
    text = HEAD + textwrap.dedent(body) + "\nprint('done')\n"
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert found.returncode == 0 and found.stdout.endswith("done\n"), found.stdout + found.stderr


def test_children_run_after_a_run_and_a_solve() -> None:
    script("""
        expected = [run(), solve()]
        assert [child(run), child(solve)] == expected
        # And the parent goes on.
        assert [run(), solve()] == expected
    """)


def test_a_pool_of_processes_runs_and_solves() -> None:
    script("""
        expected = [run(10), run(11), run(12), solve()]
        with fork.Pool(2) as pool:
            assert pool.map(run, [10, 11, 12]) == expected[:3]
            assert pool.map(solve, range(4)) == [expected[3]] * 4
    """)


def test_children_of_children_run() -> None:
    script("""
        expected = run()
        assert child(lambda: child(lambda: run() + child(run)) + run()) == expected * 3
    """)


def test_a_fork_during_a_run_of_another_thread() -> None:
    script("""
        expected = [run(), solve()]
        busy = heat.start(u=START, backend="cpu")
        thread = threading.Thread(target=lambda: busy.run(10**9, seconds=4.0))
        thread.start()
        time.sleep(0.3)
        refused = 0
        for _ in range(5):
            said = child(lambda: busy["u"])
            # A slow machine's run may end before the fifth child: what a run holds is then free.
            if thread.is_alive():
                assert b"forked" in said and b"spawn" in said and said.startswith(b"Unsupported"), said
                refused += 1
            assert [child(run), child(solve)] == expected
        assert refused > 0
        thread.join()
        assert busy["u"].shape == START.shape
    """)


def test_a_simulation_goes_on_in_a_child() -> None:
    script("""
        def both(sim):
            sim.run(10)
            return sim["u"].tobytes()
        one, two = heat.start(u=START, backend="cpu"), heat.start(u=START, backend="cpu")
        one.run(10), two.run(10)
        assert child(lambda: both(one)) == both(two)
        # The parent's own is where it was.
        assert both(one) == two["u"].tobytes()
    """)


def test_threads_of_several_devices_are_named_where_a_fork_lost_them() -> None:
    script("""
        sim = heat.start(u=START, backend="cpu", devices=2)
        sim.run(10)
        def go_on():
            sim.run(10)
        said = child(go_on)
        assert b"2 devices" in said and b"spawn" in said, said
        # A new one works, and nothing waits for the old one's threads.
        def anew():
            global sim
            del sim
            return run(20, devices=2)
        assert child(anew) == run(20)
        sim.run(10)
        assert sim["u"].tobytes() == run(20)
    """)


def test_a_child_whose_parent_looked_for_gpus_is_told_of_spawn() -> None:
    script("""
        found = {device.backend for device in ab.devices()}
        for backend in ("cuda", "wgpu"):
            def start():
                heat.start(u=START.astype("f4"), backend=backend).run(1)
            try:
                start()
            except ab.Error:
                continue
            said = child(start)
            assert b"spawn" in said and b"forked" in said, said
        # And `auto` goes on to the CPU.
        assert child(lambda: heat.start(u=START).backend) == b"cpu"
    """)
