"""Solvers agree with scipy's, and refuse in a sentence what cannot run on a device."""

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
    x, info = ab.cg(A.astype("f4"), b, rtol=1e-4, backend="cpu")
    assert info == 0 and x.dtype == np.float32
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
    _, info = ab.gmres(A, b, callback=seen.append, callback_type="pr_norm", backend="cpu")
    assert info == 0

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
        ((linalg.aslinearoperator(laplacian(3)), right(9)), {}, "known by its products alone"),
        (("A", right(9)), {}, "str is no matrix"),
        ((laplacian(3)[:4], right(9)), {}, "4 rows and 9 columns"),
        ((laplacian(3), right(8)), {}, "it has 8 values and the matrix 9 rows"),
        ((laplacian(3), right(9), right(3)), {}, "x0: it has 3 values"),
        ((laplacian(3) * 1j, right(9)), {}, "complex128"),
        ((laplacian(3), right(9) * 1j), {}, "complex128"),
        ((laplacian(3), right(9)), {"M": linalg.aslinearoperator(laplacian(3))}, "name a preconditioner"),
        ((laplacian(3), right(9)), {"M": "ilu"}, "no preconditioner is named `ilu`"),
        ((laplacian(3), right(9)), {"callback": print}, 'say callback_type="residual"'),
        ((laplacian(3), right(9)), {"rtol": -1}, "give a finite number, 0 or more"),
        ((laplacian(3), right(9)), {"maxiter": -1}, "maxiter: -1 is below 0"),
        ((laplacian(3), right(9)), {"backend": "tpu"}, "no backend is named `tpu`"),
        ((np.triu(laplacian(3).toarray()), right(9)), {}, "cg needs a symmetric matrix"),
        ((-laplacian(3), right(9)), {}, "needs a positive definite matrix"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.cg(*arguments, **options)
    assert words in str(caught.value) and isinstance(caught.value, ValueError)
