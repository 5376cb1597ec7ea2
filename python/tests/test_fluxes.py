"""Divergences of fluxes from sympy are differences of fluxes at faces, which nothing is lost between."""

from typing import Any

import numpy as np
import pytest
import sympy
from conftest import Array

import pyabide as ab

t, x, y, a, m = sympy.symbols("t x y a m")
u, k = sympy.Function("u")(t, x), sympy.Function("k")(x)
U, K = sympy.Function("u")(t, y, x), sympy.Function("k")(t, y, x)
D = sympy.Derivative

BAR = [
    D(k * D(u, x), x),
    # sympy writes the product rule; it is gathered again.
    (k * u.diff(x)).diff(x),
    (k * u.diff(x)).diff(x).expand(),
    D(D(u, x) * k, x),
]


def steady(program: ab.Program, start: Array, conductivity: Array, steps: int, **values: Any) -> Array:
    sim = program.start(u=start, k=conductivity, backend="cpu", **values)
    sim.run(steps)
    return np.array(sim["u"])


def mean(values: Array, kind: str) -> Array:
    left, right = values[:-1], values[1:]
    return (left + right) / 2 if kind == "arithmetic" else 2 / (1 / left + 1 / right)


@pytest.mark.parametrize("right", BAR, ids=str)
@pytest.mark.parametrize("faces", ["arithmetic", "harmonic"])
def test_a_bar_of_two_materials_has_one_flux(right: Any, faces: str) -> None:
    n = 20
    conductivity = np.where(np.arange(n) < n // 2, 1.0, 10.0)
    start = np.linspace(1.0, 0.0, n)
    bar = ab.from_sympy(sympy.Eq(u.diff(t), right), dt=0.04, faces=faces)
    T = steady(bar, start, conductivity, 60_000)
    at_faces = mean(conductivity, faces)
    flux = -at_faces * np.diff(T)
    # Resistances in series: each face drops its share of the difference between the ends.
    drops = np.concatenate([[0.0], np.cumsum(1 / at_faces)])
    assert np.allclose(T, 1 - drops / drops[-1], atol=1e-12)
    assert np.allclose(flux, 1 / drops[-1], rtol=1e-10)


@pytest.mark.parametrize("kind", ["product", "whole", "sum", "constant", "nonlinear", "nested"])
def test_what_leaves_a_cell_enters_its_neighbour(kind: str) -> None:
    fluxes = {
        "product": D(a * K * U * D(U, y), y) + D(2 * K * D(U, x), x),
        "whole": D(K * D(U, x) + K * D(U, y), x) + D(K * D(U, y), y),
        "sum": 3 * (D(K * D(U, x), x) + D((1 + K) * D(U, y), y)),
        "constant": a * D(K * D(a * U + 1, x), x) / 4 - D(U * U / 2, y),
        "nonlinear": D(D(U, x) / sympy.sqrt(1 + D(U, x) ** 2 + D(U, y) ** 2), x),
        "nested": D(K * D(K * D(D(K * D(U, x), x), x), x), x),
    }
    right = fluxes[kind]
    values = {"a": 0.3} if right.has(a) else {}
    program = ab.from_sympy(sympy.Eq(U.diff(t), right), dt=1e-3, boundary="periodic", **values)
    random = np.random.default_rng(3)
    w = random.random((12, 15))
    given = {"k": 1 + 9.0 * (random.random((12, 15)) > 0.5)} if "k" in program.fields else {}
    sim = program.start(u=w, backend="cpu", **given)
    sim.run(20)
    assert not np.array_equal(sim["u"], w)
    assert abs(sim["u"].sum() - w.sum()) < 1e-13 * np.abs(sim["u"]).sum()


def test_taps_of_a_flux_are_those_of_the_textbook() -> None:
    program = ab.from_sympy(
        sympy.Eq(U.diff(t), D(K * D(U, x), x) + D(K * D(U, y), y)),
        dt=0.1,
        boundary="mirror",
        spacing={x: 0.5, y: 2.0},
    )
    random = np.random.default_rng(4)
    w, c = random.random((2, 9, 11))
    sim = program.start(u=w, k=c, backend="cpu")
    sim.run(1)
    p, q = np.pad(w, 1, mode="symmetric"), np.pad(c, 1, mode="symmetric")
    along_x = np.diff((q[1:-1, 1:] + q[1:-1, :-1]) / 2 * np.diff(p[1:-1], axis=1), axis=1) / 0.25
    along_y = np.diff((q[1:, 1:-1] + q[:-1, 1:-1]) / 2 * np.diff(p[:, 1:-1], axis=0), axis=0) / 4.0
    assert np.allclose(sim["u"], w + 0.1 * (along_x + along_y), rtol=1e-13)


@pytest.mark.parametrize("order", [2, 4, 6])
def test_errors_of_fluxes_fall_with_the_order(order: int) -> None:
    def error(n: int) -> float:
        h = 2 * np.pi / n
        rates = ab.from_sympy(
            sympy.Eq(U.diff(t), D(K * D(U, x), x) + D(K * D(U, x), y) + D(K, x)),
            order=order,
            spacing=h,
            boundary="periodic",
        )
        Y, X = np.meshgrid(h * np.arange(n), h * np.arange(n), indexing="ij")
        w, c = np.sin(X) * np.cos(Y), 2 + np.cos(X) * np.sin(Y)
        sim = rates.start(u=w, k=c, backend="cpu")
        sim.run(1)
        cx, cy = -np.sin(X) * np.sin(Y), np.cos(X) * np.cos(Y)
        wx, wxx, wxy = np.cos(X) * np.cos(Y), -w, -np.cos(X) * np.sin(Y)
        exact = cx * wx + c * wxx + cy * wx + c * wxy + cx
        return float(np.abs(sim["u"] - w - exact).max())

    assert error(20) / error(40) > 0.8 * 2**order


def test_waves_in_layers_keep_their_energy() -> None:
    """u_tt = (k u_x)_x between walls: the leapfrog keeps a discrete energy to rounding."""
    wave = ab.from_sympy(sympy.Eq(u.diff(t, 2), (k * u.diff(x)).diff(x)), dt=0.2, boundary="mirror")
    n = 60
    c = np.where(np.arange(n) < 30, 1.0, 4.0)
    start = np.exp(-(((np.arange(n) - 15.0) / 4) ** 2))
    sim = wave.start(u=start, u_before=start, k=c, backend="cpu")

    def energy() -> float:
        now, before = sim["u"], sim["u_before"]
        return float(
            (((now - before) / 0.2) ** 2).sum()
            + (mean(c, "arithmetic") * np.diff(now) * np.diff(before)).sum()
        )

    sim.run(1)
    first = energy()
    sim.run(2000)
    assert abs(energy() / first - 1) < 1e-10


def test_what_is_plain_stays_as_it_was() -> None:
    plain = ab.from_sympy(
        sympy.Eq(U.diff(t), a * (U.diff(x, 2) + D(D(U, y), y)) - (1 - U) ** 2 + D(a * U, x)), a=0.5
    )
    longer = ab.from_sympy(
        sympy.Eq(U.diff(t), a * (U.diff(x, 2) + U.diff(y, 2)) - (1 - U) ** 2 + a * U.diff(x)), a=0.5
    )
    w = np.random.default_rng(1).random((9, 9))
    both = [program.start(u=w, dt=0.1, backend="cpu") for program in (plain, longer)]
    for sim in both:
        sim.run(5)
    assert np.array_equal(both[0]["u"], both[1]["u"])


@pytest.mark.parametrize(
    ("equations", "options", "words"),
    [
        (sympy.Eq(u.diff(t), D(k * D(u, x), x)), {"faces": "geometric"}, "known: arithmetic, harmonic"),
        (sympy.Eq(u.diff(t), D(k * D(u, x), x)), {"faces": "harmonic", "order": 4}, "give order=2"),
        (sympy.Eq(u.diff(t), D(k * D(u, t), x)), {}, "leave it to the left one"),
        (sympy.Eq(u.diff(t), D(k * u, t)), {}, "leave it to the left one"),
        (sympy.Eq(u.diff(t), sympy.Symbol("lambda") * u), {"lambda": 2.0}, 'as sympy.Symbol("lam")'),
        (sympy.Eq(u.diff(t), sympy.Symbol("\\alpha'") * u), {"\\alpha'": 2.0}, 'as sympy.Symbol("alpha")'),
        (sympy.Eq(u.diff(t), sympy.I * u), {}, "I: it is no real number"),
        (sympy.Eq(u.diff(t), u**sympy.I), {}, "I: it is no real number"),
        (sympy.Eq(u.diff(t), sympy.zoo * u), {}, "no real number"),
        (sympy.Eq(u.diff(t), sympy.Integer(10) ** 400 * u), {}, "beyond float64"),
        (sympy.Eq(u.diff(t), sympy.Symbol("u") * u), {"u": 1.0}, "as a function and as a symbol"),
        (sympy.Eq(D(2 * u, t), u), {}, "write the derivative of a function there"),
        (u.diff(t) - u, {}, "write sympy.Eq"),
        ("u_t = u_xx", {}, "write sympy.Eq"),
        (None, {}, "write sympy.Eq"),
        ([1, 2], {}, "write sympy.Eq"),
        (sympy.Eq(1, 1), {}, "write sympy.Eq"),
        (sympy.Eq(u.diff(t), u), {"order": 2.0}, "order: 2.0 is no whole number"),
        (sympy.Eq(u.diff(t), u), {"order": "4"}, "order: '4' is no whole number"),
        (sympy.Eq(u.diff(t), u), {"dt": "small"}, "dt: 'small' is no number"),
        (sympy.Eq(u.diff(t), u), {"spacing": "wide"}, "spacing: 'wide' is no number"),
        (sympy.Eq(u.diff(t), a * u), {"a": 1j}, "a: 1j is no number"),
        (sympy.Eq(u.diff(t), u), {"name": 5}, "name: 5 is no text"),
        (sympy.Eq(u.diff(t), u), {"boundary": 5j}, "neither a word nor a number"),
    ],
)
def test_refusals(equations: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.from_sympy(equations, **options)
    assert words in str(caught.value) and isinstance(caught.value, ValueError)
