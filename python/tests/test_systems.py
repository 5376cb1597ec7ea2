"""Systems that stay open, matrices and inverses that are functions, and preconditioners that need all entries."""

import threading
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg
from conftest import Array

import pyabide as ab


def laplacian(n: int = 20, shift: float = 0.0) -> Any:
    line = sparse.diags_array([-1.0, 2.0 + shift, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = sparse.eye_array(n)
    return (sparse.kron(line, eye) + sparse.kron(eye, line)).tocsr()


def right(rows: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).random(rows)


def test_one_system_solves_many_right_hand_sides() -> None:
    A = laplacian()
    system = ab.System(A, backend="cpu")
    assert (system.shape, system.dtype, system.backend, system.method) == ((400, 400), "float64", "cpu", "cg")
    assert any("symmetric" in note for note in system.notes)
    for seed in range(3):
        b = right(400, seed)
        x, report = system.solve(b, rtol=1e-10)
        alone, info = ab.cg(A, b, rtol=1e-10, backend="cpu")
        assert info == 0 and np.array_equal(x, alone)
        assert report.converged and report.why == "" and report.method == "cg"
        assert len(report.history) == report.iterations + 1
        assert report.history[0] == pytest.approx(report.norm)
        assert report.true_residual == pytest.approx(np.linalg.norm(b - A @ x), rel=1e-6)
        assert report.true_residual <= report.threshold == pytest.approx(1e-10 * np.linalg.norm(b))
    assert repr(report).startswith("<cg on cpu: converged in")
    _, again = system.solve(b, x, rtol=1e-10)
    assert again.iterations == 0


def test_columns_are_solved_one_after_the_other() -> None:
    A, B = laplacian(), np.random.default_rng(1).random((400, 3))
    system = ab.System(A, method="cg", M="jacobi", backend="cpu")
    X, reports = system.solve(B, rtol=1e-9)
    assert X.shape == B.shape and [report.converged for report in reports] == [True] * 3
    for column in range(3):
        assert np.array_equal(X[:, column], system.solve(B[:, column], rtol=1e-9)[0])
    _, again = system.solve(B, X, rtol=1e-8)
    assert [report.iterations for report in again] == [0] * 3
    x, report = system.solve(B[:, :1], rtol=1e-9)
    assert x.shape == (400, 1) and report.converged
    with pytest.raises(ab.Invalid, match="x0: its shape"):
        system.solve(B, X[:, :2])


def test_operators_on_grids_keep_their_shape() -> None:
    system = ab.System(ab.GridOperator("laplacian2d", (12, 15), dtype="float32"), backend="cpu")
    x, report = system.solve(np.ones((12, 15)), rtol=1e-4)
    assert x.shape == (12, 15) and x.dtype == np.float32 and report.converged
    with pytest.raises(ab.Invalid, match="no stored entries"):
        system.update(np.ones(3))


def test_values_change_with_the_same_entries() -> None:
    b = right(400)
    system = ab.System(laplacian(), backend="cpu")
    system.update(laplacian(shift=0.5))
    x, _ = system.solve(b, rtol=1e-10)
    assert np.linalg.norm(b - laplacian(shift=0.5) @ x) <= 2e-10 * np.linalg.norm(b)
    system.update(laplacian(shift=1.5).data)
    x, _ = system.solve(b, rtol=1e-10)
    assert np.linalg.norm(b - laplacian(shift=1.5) @ x) <= 2e-10 * np.linalg.norm(b)
    with pytest.raises(ab.Invalid, match="at other places"):
        system.update(sparse.eye_array(400, format="csr"))
    with pytest.raises(ab.Invalid, match="3 values for 1920 entries"):
        system.update(np.ones(3))
    # What was refused has changed nothing.
    assert np.array_equal(system.solve(b, rtol=1e-10)[0], x)


def test_what_does_not_converge_is_told() -> None:
    with pytest.warns(ab.NotConverged, match="after 2 iterations"):
        x, report = ab.System(laplacian(), backend="cpu").solve(right(400), rtol=1e-12, maxiter=2)
    assert x.any() and not report.converged and report.iterations == 2 and "2 iterations" in report.why


def test_a_system_solves_one_thing_at_a_time() -> None:
    system = ab.System(laplacian(), method="cg", backend="cpu")
    raised: list[BaseException] = []

    def callback(_residual: float) -> None:
        def other() -> None:
            try:
                system.solve(right(400))
            except ab.Unsupported as error:
                raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    system.solve(right(400), rtol=1e-3, callback=callback)
    assert raised and "is being solved" in str(raised[0])
    assert system.solve(right(400))[1].converged


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_and_linear_operators_are_matrices(solver: str, dtype: str) -> None:
    A, b = laplacian().astype(dtype), right(400).astype(dtype)
    rtol = 1e-9 if dtype == "float64" else 1e-4
    stored, _ = getattr(ab, solver)(A, b, rtol=rtol, backend="cpu")
    products = 0

    def product(x: Array) -> Array:
        nonlocal products
        products += 1
        assert x.dtype == dtype and x.shape == (400,)
        return A @ x

    for given in (linalg.LinearOperator((400, 400), matvec=product, dtype=dtype), product):
        x, info = getattr(ab, solver)(given, b, rtol=rtol)
        # A function has no type of its own.
        assert info == 0 and x.dtype == (dtype if given is not product else "float64")
        assert np.linalg.norm(b - A @ x) <= 2 * rtol * np.linalg.norm(b)
        assert np.allclose(x, stored, rtol=1e-2 if dtype == "float32" else 1e-7)
        if given is product:
            break
        assert products > 10
        if dtype == "float32":
            break


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_functions_and_matrices_are_inverses(solver: str) -> None:
    scale = np.geomspace(1, 1e4, 400)
    A = (laplacian() + sparse.diags_array(scale)).tocsr()
    b = right(400)
    plain = ab.System(A, method=solver, backend="cpu").solve(b, rtol=1e-8)[1].iterations
    inverse = sparse.diags_array(1 / A.diagonal()).tocsr()
    named = ab.System(A, method=solver, M="jacobi", backend="cpu").solve(b, rtol=1e-8)
    for given in (inverse, inverse.toarray(), lambda r: r / A.diagonal(), linalg.aslinearoperator(inverse)):
        x, report = ab.System(A, method=solver, M=given).solve(b, rtol=1e-8)
        assert report.converged and report.backend == "cpu"
        assert report.iterations == named[1].iterations < plain / 2
        assert np.allclose(x, named[0], rtol=1e-6)
        x, info = getattr(ab, solver)(A, b, rtol=1e-8, M=given)
        assert info == 0 and np.allclose(x, named[0], rtol=1e-6)


def test_what_functions_raise_is_raised() -> None:
    b = right(400)

    def fails(_x: Array) -> Array:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ab.cg(fails, b)
    with pytest.raises(KeyError, match="mine"):
        ab.cg(laplacian(), b, M=fails)
    for wrong in (lambda x: x[1:], lambda x: None, lambda x: x * 1j, lambda x: "word"):
        with pytest.raises(ab.Invalid, match="A: for a vector of 400 values it returned"):
            ab.gmres(wrong, b)
        with pytest.raises(ab.Invalid, match="M: for a vector of 400 values it returned"):
            ab.bicgstab(laplacian(), b, M=wrong)
    for options, words in [
        ({"backend": "cuda"}, "functions of Python run on one host"),
        ({"devices": 2}, "leave devices out"),
        ({"nullspace": "constant"}, "take the means away"),
        ({"M": "ilu"}, "does not know its entries"),
        ({"M": "jacobi"}, "does not know its diagonal"),
        ({"M": np.eye(3)}, r"its shape is \(3, 3\)"),
    ]:
        with pytest.raises(ab.Error, match=words):
            ab.cg(lambda x: x, b, **options)
    with pytest.raises(ab.Invalid, match="name one"):
        ab.System(linalg.aslinearoperator(laplacian()))
    with pytest.raises(ab.Invalid, match="how many rows"):
        ab.System(lambda x: x, method="cg")


def test_factors_are_those_of_scipy() -> None:
    """ILU(0) of a matrix whose exact factors have no fill is exact; of others it is that of a dense algorithm."""
    b = right(60)
    chain = sparse.diags_array([-1.0, 2.3, -1.2], offsets=[-1, 0, 1], shape=(60, 60)).tocsr()
    x, report = ab.System(chain, method="gmres", M="ilu").solve(b, rtol=1e-12)
    assert report.iterations == 1 and np.allclose(chain @ x, b)
    A = laplacian(8) + sparse.random_array((64, 64), density=0.05, rng=np.random.default_rng(3))
    A = (A + 8 * sparse.eye_array(64)).tocsr()
    dense, places = A.toarray(), A.toarray() != 0
    for i in range(1, 64):
        for k in range(i):
            if places[i, k]:
                dense[i, k] /= dense[k, k]
                dense[i, k + 1 :] -= np.where(places[i, k + 1 :], dense[i, k] * dense[k, k + 1 :], 0)
    lower, upper = np.tril(dense, -1) + np.eye(64), np.triu(dense)
    mine = ab.System(A, method="bicgstab", M="ilu").solve(right(64), rtol=1e-10)
    theirs = ab.System(A, method="bicgstab", M=lambda r: np.linalg.solve(upper, np.linalg.solve(lower, r)))
    other = theirs.solve(right(64), rtol=1e-10)
    assert mine[1].converged and mine[1].iterations == other[1].iterations
    assert np.allclose(mine[1].history, other[1].history, rtol=1e-4, atol=1e-9)
    with pytest.raises(ab.Invalid, match="the pivot of row 1 is 0"):
        ab.System(np.array([[1.0, 1.0], [1.0, 1.0]]), method="gmres", M="ilu", backend="cpu")


def test_multigrid_needs_as_many_iterations_on_every_grid() -> None:
    counts = []
    for n in (20, 60, 180):
        A, b = laplacian(n), right(n * n)
        x, report = ab.System(A, M="amg", backend="cpu").solve(b, rtol=1e-8)
        assert report.converged and np.linalg.norm(b - A @ x) <= 2e-8 * np.linalg.norm(b)
        counts.append(report.iterations)
    assert max(counts) <= 16, counts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = ab.cg(A, b, rtol=1e-8, M="amg", devices=1, backend="cpu")
    assert info == 0
    with pytest.raises(ab.Error, match="solve on one device"):
        ab.cg(A, b, M="amg", devices=2, backend="cpu")


def test_symmetric_systems_need_not_be_definite() -> None:
    """A Helmholtz problem with eigenvalues of both signs: the residuals are those of scipy's MINRES."""
    A = (laplacian() - 1.3 * sparse.eye_array(400)).tocsr()
    b = right(400)
    assert np.linalg.eigvalsh(A.toarray())[0] < 0
    residuals: list[float] = []
    x, info = ab.minres(A, b, rtol=1e-10, backend="cpu", callback=residuals.append, callback_type="residual")
    assert info == 0 and np.linalg.norm(b - A @ x) <= 2e-10 * np.linalg.norm(b)
    for count in (5, 20, 60):
        theirs, _ = linalg.minres(A, b, rtol=1e-30, maxiter=count)
        assert residuals[count - 1] == pytest.approx(np.linalg.norm(b - A @ theirs), rel=1e-6)
    scale = sparse.diags_array(np.geomspace(1, 1e4, 400) ** 0.5)
    scaled = (scale @ A @ scale).tocsr()
    inverse = sparse.diags_array(1 / np.geomspace(1, 1e4, 400)).tocsr()
    x, report = ab.System(scaled, method="minres", M=inverse).solve(b, rtol=1e-8)
    assert report.converged and np.linalg.norm(b - scaled @ x) <= 1.1e-8 * np.linalg.norm(b)
    with pytest.raises(ab.Invalid, match="symmetric"):
        ab.minres(sparse.csr_array(np.triu(np.ones((5, 5)))), np.ones(5))
