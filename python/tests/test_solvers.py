"""Solvers agree with scipy's, and refuse in a sentence what cannot run on a device."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg
from conftest import Array

import pyabide as ab

SOLVERS = ["cg", "bicgstab", "gmres"]


def laplacian(n: int = 20) -> Any:
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sparse.eye_array(n)
    return (sparse.kron(line, eye) + sparse.kron(eye, line)).tocsr()


def right(rows: int) -> Array:
    return np.random.default_rng(5).random(rows)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dense", "unsorted"])
def test_scipy_finds_the_same(solver: str, form: str) -> None:
    A = laplacian()
    if solver != "cg":
        A = A + sparse.random_array(A.shape, density=0.01, rng=np.random.default_rng(2)) * 0.1
    b = right(A.shape[0])
    given = {"csr": A, "csc": sparse.csc_array(A), "coo": sparse.coo_array(A), "dense": A.toarray()}.get(form)
    if given is None:
        order = np.random.default_rng(4).permutation(A.nnz)
        coo = sparse.coo_array(A)
        given = sparse.coo_array((coo.data[order], (coo.row[order], coo.col[order])), shape=A.shape)
    x, info = getattr(ab, solver)(given, b, rtol=1e-10, backend="cpu")
    theirs, _ = getattr(linalg, solver)(A, b, rtol=1e-10)
    assert info == 0
    assert np.linalg.norm(b - A @ x) <= 1e-9 * np.linalg.norm(b)
    assert np.allclose(x, theirs, rtol=1e-7)


def test_tolerances_starts_and_types() -> None:
    A, b = laplacian(), right(400)
    loose, info = ab.cg(A, b, atol=0.1, rtol=0.0, backend="cpu")
    assert info == 0 and np.linalg.norm(b - A @ loose) <= 0.1
    exact = linalg.spsolve(A.tocsc(), b)
    x, info = ab.cg(A, b, x0=exact, rtol=1e-8, backend="cpu")
    assert info == 0 and np.array_equal(x, exact)
    for of_a, of_b in [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("i4", "f4"), ("f4", "i4"), ("f8", "f8")]:
        given = (A.astype(of_a), (8 * b).astype(of_b))
        x, info = ab.cg(*given, rtol=1e-4, backend="cpu")
        theirs, _ = linalg.cg(*given, rtol=1e-4)
        assert info == 0 and x.dtype == theirs.dtype, (of_a, of_b)
    for preconditioner in ("jacobi", "block-jacobi:4", "chebyshev:3"):
        x, info = ab.cg(A, b, rtol=1e-9, M=preconditioner, backend="cpu")
        assert info == 0 and np.allclose(x, exact)


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_devices_have_the_bits_of_one(solver: str) -> None:
    A, b = laplacian(40), right(1600)
    one, three = (getattr(ab, solver)(A, b, backend="cpu", devices=devices)[0] for devices in (1, 3))
    assert np.array_equal(one, three)


def test_what_does_not_converge_warns() -> None:
    A, b = laplacian(), right(400)
    with pytest.warns(ab.NotConverged, match="the limit on iterations ended it after 3 iterations"):
        x, info = ab.cg(A, b, rtol=1e-12, maxiter=3, backend="cpu")
    assert info == 3 and x.any()
    with pytest.warns(ab.NotConverged):
        _, info = ab.gmres(A, b, rtol=1e-12, restart=5, maxiter=2, backend="cpu")
    assert info == 10


def test_callbacks_get_residuals() -> None:
    A, b = laplacian(), right(400)
    seen: list[float] = []
    _, info = ab.cg(A, b, rtol=1e-6, callback=seen.append, callback_type="residual", backend="cpu")
    assert info == 0 and len(seen) > 10 and seen[-1] <= 1e-6 * np.linalg.norm(b) < seen[0]

    def fail(_: float) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ab.cg(A, b, callback=fail, callback_type="residual", backend="cpu")


@pytest.mark.parametrize("shape", [(37,), (12, 17), (5, 6, 7)])
def test_operators_on_grids(shape: tuple[int, ...]) -> None:
    operator = ab.GridOperator(f"laplacian{len(shape)}d", shape)
    b = np.random.default_rng(5).random(shape)
    x, info = ab.cg(operator, b, rtol=1e-10, backend="cpu")
    A = operator.tocsr()
    assert info == 0 and A.shape == operator.shape and np.allclose(A @ x, b.ravel(), atol=1e-8)
    assert np.allclose(operator @ x, b.ravel(), atol=1e-8)
    theirs, _ = linalg.cg(linalg.aslinearoperator(operator), b.ravel(), rtol=1e-10)
    assert np.allclose(x, theirs)


def test_operators_of_weights() -> None:
    operator = ab.GridOperator({-1: -1, 0: 2.5, 1: -1}, (50,), boundary="periodic", dtype="f4")
    x, info = ab.cg(operator, np.ones(50), backend="cpu")
    assert info == 0 and np.allclose(x, 2.0, atol=1e-4) and operator.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("A", right(9)), {}, "str is no matrix"),
        ((laplacian(3)[:4], right(9)), {}, "4 rows and 9 columns"),
        ((laplacian(3), right(8)), {}, "it has 8 values and the matrix 9 rows"),
        ((laplacian(3), right(9), right(3)), {}, "x0: it has 3 values"),
        ((laplacian(3) * 1j, right(9)), {}, "complex128"),
        ((laplacian(3), right(9) * 1j), {}, "complex128"),
        ((laplacian(3), right(9)), {"M": 5}, "name a preconditioner"),
        ((laplacian(3), right(9)), {"M": "ssor"}, "no preconditioner is named `ssor`"),
        ((laplacian(3), right(9)), {"callback": print}, 'say callback_type="residual"'),
        ((laplacian(3), right(9)), {"rtol": -1}, "give a finite number, 0 or more"),
        ((laplacian(3), right(9)), {"maxiter": -1}, "maxiter: -1 is below 0"),
        ((laplacian(3), right(9)), {"backend": "tpu"}, "no backend is named `tpu`"),
        ((np.triu(laplacian(3).toarray()), right(9)), {}, "cg needs a symmetric matrix"),
        ((laplacian(3) - sparse.diags_array(8.0 * (np.arange(9) == 4)), right(9)), {}, "positive definite"),
        ((laplacian(3), right(9).reshape(3, 3)), {}, "b: its shape is (3, 3): give one value a row, (9,)"),
        ((laplacian(3), right(9), right(9).reshape(1, 9)), {}, "x0: its shape is (1, 9)"),
        ((laplacian(3), np.where(np.arange(9) == 4, np.nan, 1.0)), {}, "b: b[4] is nan"),
        ((laplacian(3), right(9), np.where(np.arange(9) == 7, -np.inf, 1.0)), {}, "x0: x0[7] is -inf"),
        ((laplacian(3), right(9)), {"nullspace": "constant"}, "row 0 of the matrix adds up to"),
        ((laplacian(3), right(9)), {"nullspace": "linear"}, "no null space is named `linear`"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.cg(*arguments, **options)
    assert words in str(caught.value) and isinstance(caught.value, ValueError)


def convective(n: int, peclet: float, angle: float) -> Any:
    """Returns diffusion with a wind in central differences on a square of n×n cells."""
    eye = sparse.eye_array(n)
    second = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    first = sparse.diags_array([-1.0, 1.0], offsets=[-1, 1], shape=(n, n)) * (0.5 * peclet / (n + 1))
    diffusion = sparse.kron(second, eye) + sparse.kron(eye, second)
    wind = np.sin(angle) * sparse.kron(first, eye) + np.cos(angle) * sparse.kron(eye, first)
    return (diffusion + wind).tocsr()


@pytest.mark.filterwarnings("ignore")
def test_bicgstab_solves_what_scipy_solves() -> None:
    own, theirs = 0, 0
    for peclet in np.geomspace(100, 3000, 20):
        for n, angle in [(16, 0.0), (20, np.pi / 4), (24, 0.3)]:
            A, b = convective(n, peclet, angle), np.ones(n * n)
            x, info = ab.bicgstab(A, b, rtol=1e-8, maxiter=3000, backend="cpu")
            own += info == 0
            theirs += linalg.bicgstab(A, b, rtol=1e-8, maxiter=3000)[1] == 0
            if info == 0:
                assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b) * (1 + 1e-9)
    assert own >= max(theirs, 48), (own, theirs)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_success_is_within_one_tolerance(solver: str, dtype: str) -> None:
    random = np.random.default_rng(8)
    for rtol in [1e-2, 1e-3, 1e-4] + ([1e-9, 1e-12] if dtype == "f8" else []):
        for n in (10, 25, 40):
            A, b = laplacian(n).astype(dtype), (random.random(n * n) - 0.5).astype(dtype)
            x, info = getattr(ab, solver)(A, b, rtol=rtol, maxiter=2000, backend="cpu")
            residual = b.astype("f8") - A.astype("f8") @ x.astype("f8")
            wanted = rtol * np.linalg.norm(b.astype("f8")) * (1 + 1e-6)
            assert info == 0 and np.linalg.norm(residual) <= wanted, (rtol, n)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_right_hand_sides_of_any_size(solver: str, dtype: str) -> None:
    A, b = laplacian(12).astype(dtype), right(144).astype(dtype)
    plain, _ = getattr(ab, solver)(A, b, rtol=1e-4, backend="cpu")
    for power in [-100, -70, 66, 100] if dtype == "f4" else [-900, -530, 530, 1000]:
        x, info = getattr(ab, solver)(A, np.ldexp(b, power), rtol=1e-4, backend="cpu")
        assert info == 0 and np.array_equal(x, np.ldexp(plain, power)), power


def test_rounding_is_no_asymmetry() -> None:
    A = laplacian(6).tolil()
    A[3, 20], A[20, 3], A[5, 30] = 7e-18, 0.0, -2e-17
    b = right(36)
    x, info = ab.cg(A.tocsr(), b, rtol=1e-10, backend="cpu")
    assert info == 0 and np.allclose(x, linalg.spsolve(A.tocsc(), b))
    A[3, 20] = 1e-6
    with pytest.raises(ab.Invalid, match="assume_symmetric=True"):
        ab.cg(A.tocsr(), b, backend="cpu")
    x, info = ab.cg(A.tocsr(), b, assume_symmetric=True, backend="cpu")
    assert info == 0


def test_negative_definite_systems_are_solved() -> None:
    A, b = -laplacian(), right(400)
    x, info = ab.cg(A, b, rtol=1e-10, backend="cpu")
    assert info == 0 and np.allclose(x, linalg.spsolve(A.tocsc(), b))
    operator = ab.GridOperator({-1: 1.0, 0: -2.0, 1: 1.0}, (60,))
    x, info = ab.cg(operator, np.ones(60), rtol=1e-10, backend="cpu")
    assert info == 0 and np.allclose(operator @ x, 1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_pure_neumann_problems(solver: str) -> None:
    operator = ab.GridOperator("laplacian2d", (9, 10), boundary="mirror")
    b = np.random.default_rng(3).random((9, 10))
    with pytest.warns(ab.NotConverged, match="its rows add up to 0, so must b") as caught:
        x, info = getattr(ab, solver)(operator, b, rtol=1e-8, maxiter=50, backend="cpu")
    assert 'nullspace="constant"' in str(caught[0].message)
    assert info > 0 and np.abs(x).max() < 1e3
    x, info = getattr(ab, solver)(operator, b, rtol=1e-8, nullspace="constant", backend="cpu")
    least = np.linalg.lstsq(operator.tocsr().toarray(), b.ravel(), rcond=None)[0]
    assert info == 0 and abs(x.mean()) < 1e-9 and np.allclose(x, least, atol=1e-6)


def test_an_indefinite_matrix_warns_and_keeps_x() -> None:
    A = laplacian(8) - 2.5 * sparse.eye_array(64)
    with pytest.warns(ab.NotConverged, match="not symmetric positive definite"):
        x, info = ab.cg(A, right(64), backend="cpu")
    assert info > 0 and x.shape == (64,)


def test_gmres_on_a_singular_matrix() -> None:
    A = np.random.default_rng(1).random((12, 12)) + 3 * np.eye(12)
    A[11] = A[0]
    b = right(12)
    with pytest.warns(ab.NotConverged, match="singular") as caught:
        x, info = ab.gmres(A, b, restart=12, backend="cpu")
    residual = np.linalg.norm(b - A @ x)
    assert info > 0 and residual <= np.linalg.norm(b) and np.abs(x).max() < 1e6
    assert f"{residual / np.linalg.norm(b):.3e}"[:4] in str(caught[0].message)


def test_callbacks_of_gmres_are_those_of_scipy() -> None:
    A = laplacian(8) + sparse.random_array((64, 64), density=0.05, rng=np.random.default_rng(2)) * 0.3
    b = right(64)
    for kind in ("pr_norm", "legacy"):
        for maxiter in (None, 3, 11):
            own: list[float] = []
            theirs: list[float] = []
            options: dict[str, Any] = {"rtol": 1e-8, "restart": 7, "maxiter": maxiter, "callback_type": kind}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x, info = ab.gmres(A, b, callback=own.append, backend="cpu", **options)
            y, failed = linalg.gmres(A, b, callback=theirs.append, **options)
            assert (info > 0) == (failed > 0), (kind, maxiter)
            # scipy's inner tolerance is a little tighter, so it may go on where a cycle ends at convergence.
            assert abs(len(own) - len(theirs)) <= (0 if failed else 7), (kind, maxiter)
            common = min(len(own), len(theirs))
            assert np.allclose(own[:common], theirs[:common], rtol=1e-6)
            assert np.allclose(x, y, atol=1e-6)
    iterates: list[Array] = []
    expected: list[Array] = []
    options = {"rtol": 1e-8, "restart": 7, "maxiter": 5, "callback_type": "x"}
    with pytest.warns(ab.NotConverged):
        x, _ = ab.gmres(A, b, callback=iterates.append, backend="cpu", **options)
    linalg.gmres(A, b, callback=lambda x: expected.append(x.copy()), **options)
    assert len(iterates) == len(expected) == 5 and np.allclose(iterates, expected)
    assert np.array_equal(iterates[-1], x)
    with pytest.warns(ab.NotConverged):
        plain, _ = ab.gmres(A, b, rtol=1e-8, restart=7, maxiter=5, backend="cpu")
    assert np.array_equal(plain, x)
    with pytest.warns(DeprecationWarning, match="callback_type"):
        ab.gmres(A, b, callback=own.append, restart=7, backend="cpu")
    with pytest.raises(ab.Invalid, match="callback_type: 'resid' is none"):
        ab.gmres(A, b, callback=own.append, callback_type="resid", backend="cpu")


def test_the_shape_of_b_is_the_domains() -> None:
    operator = ab.GridOperator("laplacian2d", (5, 6))
    b = right(30)
    expected, _ = ab.cg(operator, b, backend="cpu")
    for shape in [(5, 6), (30, 1)]:
        assert np.array_equal(ab.cg(operator, b.reshape(shape), backend="cpu")[0], expected)
    with pytest.raises(ab.Invalid, match=r"b: its shape is \(6, 5\), the operator's domain is \(5, 6\)"):
        ab.cg(operator, b.reshape(6, 5), backend="cpu")
    bad = b.reshape(5, 6).copy()
    bad[2, 3] = np.nan
    with pytest.raises(ab.Invalid, match=r"b\[2, 3\] is nan"):
        ab.cg(operator, bad, backend="cpu")


def test_warnings_tell_relative_residuals() -> None:
    A, b = laplacian(), 1e6 * right(400)
    with pytest.warns(ab.NotConverged, match=r"of \|b\| \(wanted 1e-12\)") as caught:
        x, _ = ab.cg(A, b, rtol=1e-12, maxiter=3, backend="cpu")
    reported = float(str(caught[0].message).split("residual of ")[1].split()[0])
    assert np.isclose(reported, np.linalg.norm(b - A @ x) / np.linalg.norm(b))
