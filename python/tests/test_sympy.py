"""Equations of sympy become stencils of the order asked for."""

from typing import Any

import numpy as np
import pytest
import sympy
from conftest import Array

import pyabide as ab

t, x, y, a = sympy.symbols("t x y a")
u, v, c = sympy.Function("u")(t, y, x), sympy.Function("v")(t, y, x), sympy.Function("c")(y, x)
LAPLACE = u.diff(y, 2) + u.diff(x, 2)


def test_second_order_is_the_common_stencil() -> None:
    heat = ab.from_sympy(
        sympy.Eq(u.diff(t), a * LAPLACE - u**3 + u), boundary="periodic", dt=0.05, a=0.7, spacing=0.5
    )
    assert heat.fields == ("u",) and heat.parameters == {"dt": 0.05, "dy": 0.5, "dx": 0.5, "a": 0.7}
    w: Array = np.random.default_rng(1).random((15, 22))
    sim = heat.start(u=w, backend="cpu")
    sim.run(10)
    for _ in range(10):
        around = sum(np.roll(w, step, axis) for step in (-1, 1) for axis in (0, 1))
        w = w + 0.05 * (0.7 * (around - 4 * w) / 0.25 - w**3 + w)
    assert np.allclose(sim["u"], w, rtol=1e-13)


@pytest.mark.parametrize("order", [2, 4, 6, 8])
def test_errors_fall_with_the_order(order: int) -> None:
    def error(n: int) -> float:
        h = 2 * np.pi / n
        rates = ab.from_sympy(
            sympy.Eq(u.diff(t), u.diff(x, y) + u.diff(x, 2) + u.diff(y)),
            order=order,
            spacing=h,
            boundary="periodic",
        )
        Y, X = np.meshgrid(h * np.arange(n), h * np.arange(n), indexing="ij")
        w = np.sin(X) * np.cos(Y)
        sim = rates.start(u=w, backend="cpu")
        sim.run(1)
        exact = -np.cos(X) * np.sin(Y) - w - np.sin(X) * np.sin(Y)
        return float(np.abs(sim["u"] - w - exact).max())

    assert error(20) / error(40) > 0.8 * 2**order


def test_waves_keep_two_levels_and_systems_are_solved_together() -> None:
    wave = ab.from_sympy(
        [sympy.Eq(u.diff(t, 2), c**2 * LAPLACE), sympy.Eq(v.diff(t), sympy.Max(u, v) - sympy.sqrt(v))],
        boundary="mirror",
        dt=0.1,
        name="wave",
    )
    assert wave.fields == ("u", "v", "c", "u_before") and wave.name == "wave"
    random = np.random.default_rng(1)
    w, z, k = random.random((3, 9, 11))
    sim = wave.start(u=w, u_before=w, v=z, c=k, backend="cpu")
    sim.run(1)
    p = np.pad(w, 1, mode="symmetric")
    lap = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * w
    assert np.allclose(sim["u"], w + 0.01 * k**2 * lap, rtol=1e-13)
    assert np.allclose(sim["v"], z + 0.1 * (np.maximum(w, z) - np.sqrt(z)), rtol=1e-14)
    assert np.array_equal(sim["u_before"], w)


def test_piecewise() -> None:
    jump = ab.from_sympy(sympy.Eq(u.diff(t), sympy.Piecewise((1, u > 0.5), (-u, True))))
    w = np.random.default_rng(1).random((5, 6))
    sim = jump.start(u=w, backend="cpu")
    sim.run(1)
    assert np.array_equal(sim["u"], w + np.where(w > 0.5, 1.0, -w))


@pytest.mark.parametrize(
    ("equation", "options", "words"),
    [
        (sympy.Eq(u, v), {}, "no derivative in time on its left side"),
        (sympy.Eq(u.diff(t, 3), v), {}, "write u.diff(t) or u.diff(t, 2) there"),
        (sympy.Eq(u.diff(t), a * u), {}, "a: the equations use it, and it has no value"),
        (sympy.Eq(u.diff(t), u), {"b": 1.0}, "the equations have no such symbol"),
        (sympy.Eq(u.diff(t), sympy.gamma(u)), {}, "Abide has no gamma"),
        (sympy.Eq(u.diff(t), u), {"order": 3}, "3 is no even number above 0"),
        (sympy.Eq(u.diff(t), u.diff(x)), {"spacing": {x: 1.0}}, "it has none for the axis y"),
        (sympy.Eq(u.diff(t), sympy.Function("w")(t, x)), {}, "the same for all"),
        (sympy.Eq(u.diff(t), v.diff(t)), {}, "leave it to the left one"),
        ([], {}, "there is none"),
    ],
)
def test_refusals(equation: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ab.Invalid) as caught:
        ab.from_sympy(equation, **options)
    assert words in str(caught.value)
