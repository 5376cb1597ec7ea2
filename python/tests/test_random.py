"""Formulas that nobody thought of have numpy's bits too."""

import random
from typing import Any

import numpy as np
import pytest
from conftest import taps

import pyabide as ab

FORMULAS = 60
PARAMETERS = {"a": 0.3, "b": 1.7, "c": -0.45}


def formula(choose: random.Random, depth: int) -> str:
    """Returns a formula with at least one field in it, as Python's text."""
    if depth == 0 or choose.random() < 0.1:
        name = choose.choice("uv")
        offset = choose.choice([None, (0, 1), (0, -1), (1, 0), (-1, 0), (2, -1), (-1, 2)])
        return f"{name}[0, 0]" if offset is None else f"{name}[{offset[0]}, {offset[1]}]"
    x, y = formula(choose, depth - 1), formula(choose, depth - 1)
    other = choose.choice([y, y, number(choose, 2)])
    forms = [
        f"({x} + {other})",
        f"({x} - {other})",
        f"({other} - {x})",
        f"({x} * {other})",
        f"({x} / (2.0 + np.abs({y})))",
        f"({number(choose, 2)} / (1.5 + {x} ** 2))",
        f"(-{x})",
        f"np.sqrt(np.abs({x}))",
        f"np.minimum({x}, {y})",
        f"np.maximum({x}, {other})",
        f"np.floor({x} * 3)",
        f"np.where({x} > {y}, {y}, {x})",
        f"np.where(({x} <= {y}) & ({x} != {y}), {other}, {x})",
        f"abs({x})",
    ]
    return choose.choice(forms)


def number(choose: random.Random, depth: int) -> str:
    """Returns a formula of parameters and numbers, which Python computes."""
    if depth == 0 or choose.random() < 0.4:
        return choose.choice([*PARAMETERS, "0.1", "2", "-0.7", "np.float32(0.3)"])
    return f"({number(choose, depth - 1)} {choose.choice('+-*')} {number(choose, depth - 1)})"


@pytest.mark.parametrize("seed", range(FORMULAS))
def test_a_formula(backend: str, seed: int, dtype: Any) -> None:
    choose = random.Random(seed)
    if dtype == np.float32:
        # float64 scalars of numpy would make arrays of float64.
        text = formula(choose, 5).replace("np.float32(0.3)", "0.3")
    else:
        text = formula(choose, 5).replace("np.float32(0.3)", "np.float64(0.3)")
    boundary = choose.choice(["periodic", "mirror", "clamp", "reflect", "constant=0.25"])

    # No stage sets v, so a constant is its own only where it is said.
    @ab.stencil(2, boundary={"y": boundary, "x": boundary, "v": boundary})
    def step(u, v, a=0.3, b=1.7, c=-0.45):  # type: ignore[no-untyped-def]
        return {"u": eval(text, {"np": np}, {"u": u, "v": v, "a": a, "b": b, "c": c})}

    numbers = np.random.default_rng(seed)
    u, v = (numbers.standard_normal((13, 18)).astype(dtype) for _ in range(2))
    sim = step.start(u=u, v=v, backend=backend)
    for _ in range(2):
        sim.run(1)
        names = {"u": taps(boundary)(u), "v": taps(boundary)(v), **PARAMETERS}
        u = np.asarray(eval(text, {"np": np}, names))
        assert u.dtype == dtype
        assert np.array_equal(sim["u"], u), text
