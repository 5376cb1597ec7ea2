"""Words of other packages: taken where they mean the same, else refused with a suggestion; advice in Python's words."""

from typing import Any

import numpy as np
import pytest

import pyabide as ab


@ab.stencil(1)
def shift(u):  # type: ignore[no-untyped-def]
    return u[-1] + 2 * u[1]


def after(boundary: Any) -> Any:
    sim = shift.start(u=np.arange(1.0, 6.0), boundary=boundary, backend="cpu")
    sim.run(2)
    return sim["u"].tolist()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("wrap", "periodic"),
        ("Periodic", "periodic"),
        ("edge", "clamp"),
        ("nearest", "clamp"),
        ("symmetric", "mirror"),
        (" Mirror ", "mirror"),
        ("FIXED", "fixed"),
        (np.float32(2), 2.0),
        (np.int64(2), "constant=2"),
        ({"x-": "wrap", "x+": "wrap"}, {"x": "periodic"}),
        ({"u": {"x-": "edge", "x+": np.float64(1)}}, {"x-": "clamp", "x+": 1.0}),
    ],
)
def test_boundaries_that_mean_the_same(theirs: Any, ours: Any) -> None:
    assert after(theirs) == after(ours)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        ("Float64", "float64"),
        ("f4", "float32"),
        ("<f8", "float64"),
        ("F32", "float32"),
        ("f64", "float64"),
        ("single", "float32"),
        ("double", "float64"),
        (float, "float64"),
        (np.float32, "float32"),
        (np.dtype("f4"), "float32"),
    ],
)
def test_types_by_many_names(dtype: Any, name: str) -> None:
    assert shift.start(u=1.0, shape=(4,), dtype=dtype, backend="cpu").dtype == np.dtype(name)


def test_entries_in_any_writing() -> None:
    for name in ("gray_scott", "Gray-Scott", "GRAY SCOTT", "grayscott"):
        assert ab.start(name, shape=(8, 8), backend="cpu").fields == ("u", "v")
    assert ab.start("HEAT", u="GAUSSIAN", shape=(8, 8), backend="CPU").backend == "cpu"
    assert ab.plan("HEAT", (64, 64), device="a100").device == "A100"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"boundary": "dirichlet"}, 'no boundary is named `dirichlet`; did you mean "dirichlet=0"'),
        ({"boundary": "Dirichlet"}, 'or "fixed", where the outermost cells keep their start'),
        ({"boundary": "neumann"}, 'or "mirror", where nothing flows through the side'),
        ({"boundary": {"x": "Neumann"}}, 'did you mean "neumann=0"'),
        ({"boundary": {"u": "dirichlet"}}, 'did you mean "dirichlet=0"'),
        ({"boundary": "robin=1"}, "it has 1 values, and robin takes 3"),
        ({"boundary": "zeros"}, "did you mean 0.0"),
        ({"backend": "gpu"}, 'no backend is named `gpu`; did you mean "cuda", "wgpu", or "auto"'),
        ({"backend": "GPU"}, 'did you mean "cuda"'),
        ({"u": "gaus"}, 'no start is named `gaus`; did you mean "gaussian"?'),
        ({"u": "gauss"}, 'did you mean "gaussian"?'),
        ({"u": "zeros"}, "did you mean 0.0?"),
        ({"dtype": "float16"}, "give numpy's float32 or float64"),
        ({"w": 1.0}, "no field and no parameter named `w`; known: u"),
        ({"U": 1.0}, "named `U`; did you mean `u`?"),
        ({"device": "gpu"}, "no field and no parameter named `device`"),
    ],
)
def test_what_may_be_meant(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        shift.start(**({"u": 1.0, "shape": (4,), "backend": "cpu"} | options))
    assert words in str(caught.value) and isinstance(caught.value, ValueError)


def test_what_may_be_meant_elsewhere() -> None:
    sim = ab.stencil(1)(lambda u, kappa=0.1: u * kappa).start(u=np.ones(4), backend="cpu")
    with pytest.raises(ab.Unknown, match="no parameter is named `Kapa`; did you mean `kappa`"):
        sim.parameters["Kapa"]
    with pytest.raises(ab.Unknown, match="did you mean `boundary`"):
        ab.plan("heat", (8, 8), device="a100", boundry="mirror")
    with pytest.raises(ab.Unknown, match="gpu"):
        ab.plan("heat", (8, 8), device="gpu")
    with pytest.raises(ab.Unknown, match='did you mean "cuda"'):
        ab.cg(np.eye(3), np.ones(3), backend="gpu")
    with pytest.raises(ab.Unknown, match='did you mean "dirichlet=0"'):
        ab.GridOperator("laplacian2d", (4, 4), boundary="dirichlet")
    with pytest.raises(ab.Error, match="a condition at a wall"):
        ab.GridOperator("laplacian2d", (4, 4), boundary="dirichlet=0")
    with pytest.raises(ab.Unknown, match='did you mean "gaussian"'):
        ab.field(start="gauss")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: shift.start(u=np.ones((40,)), shape=(50,), backend="cpu"), "leave shape out"),
        (lambda: shift.start(u=1.0, shape=(8,), backend="cpu", depth=3, execution="stepwise"), "depth="),
        (lambda: shift.start(u=1.0, shape=(2**40,), backend="cpu"), "choose a smaller shape"),
        (lambda: shift.start(u=1.0, shape=(64,), backend="cpu", devices=2, pin=True), "leave pin out"),
    ],
)
def test_advice_names_arguments_of_python(use: Any, words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        use()
    assert words in str(caught.value) and "--" not in str(caught.value)


def test_notes_name_arguments_of_python() -> None:
    notes = shift.plan((64,), device="a100", depth=40000).notes
    assert notes and 'use a smaller depth, or execution="stepwise"' in notes[0]
