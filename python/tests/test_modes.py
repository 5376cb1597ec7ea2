"""A library built with -ffast-math changes the floating-point mode of the thread that loads it; bits stay."""

import platform
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIMIT = 120

# What GCC before 13 links into each library that is built with -ffast-math: denormal numbers become zeros.
FAST = """
#include <xmmintrin.h>
__attribute__((constructor)) static void set(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
"""

BODY = """
import ctypes, hashlib, threading, sys
import numpy as np
import pyabide as ab

library = sys.argv[1]

def load():
    ctypes.CDLL(library)

@ab.stencil(2, boundary="periodic")
def heat(u, kappa=0.2):
    return u + kappa * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u)

# Numbers of which a library in another mode would make zeros.
start = np.array([(7 * i) % 31 + 1 for i in range(300 * 200)], dtype=np.uint64).view("f8").reshape(300, 200)
b = np.ones(6400)
operator = ab.GridOperator("laplacian2d", (80, 80))

def digest():
    bits = hashlib.sha256()
    for threads in range(2):
        sim = heat.start(u=start, backend="cpu", devices=1 + threads)
        sim.run(5)
        if threads == 0 and when == "during":
            load()
        sim.run(20)
        bits.update(sim["u"].tobytes())
    seen = []
    def watch(residual):
        if when == "callback" and not seen:
            load()
        seen.append(1)
    bits.update(ab.cg(operator, b, backend="cpu", callback=watch, callback_type="residual")[0].tobytes())
    return bits.hexdigest()

when = sys.argv[2]
if when == "before":
    load()
if when == "thread":
    # Threads begin in the mode of the thread that starts them.
    found = []
    def work():
        load()
        found.append(digest())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print(found[0])
else:
    print(digest())
if when == "before":
    # The caller's own mode is back.
    assert np.float64(5e-324) * np.float64(1.0) == 0.0
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the compiler sets no mode here")
def test_bits_do_not_depend_on_libraries_of_others(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler for a library that changes the mode")
    source, library = tmp_path / "fast.c", tmp_path / "fast.so"
    source.write_text(FAST)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)

    def digest(when: str) -> str:
        call = [sys.executable, "-c", textwrap.dedent(BODY), str(library), when]
        found = subprocess.run(call, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    expected = digest("never")
    for when in ("before", "during", "thread", "callback"):
        assert digest(when) == expected, when
