"""Systems of linear equations, with the signatures of ``scipy.sparse.linalg``."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _pyabide, boundaries
from .arguments import (
    Devices,
    backend_named,
    callable_of,
    devices_named,
    dtype_name,
    extents,
    number_of,
    text_of,
    whole,
    wholes,
)
from .boundaries import Boundary
from .errors import Error, Invalid, Limit

__all__ = ["GridOperator", "NotConverged", "bicgstab", "cg", "gmres", "minres"]


class NotConverged(UserWarning):
    """The warning of a solver that ended without a solution; ``info`` is then above 0."""


class GridOperator:
    """A matrix that is never stored: one step of a linear stencil on a domain, boundary and all.

    ``stencil`` is a name, such as ``"laplacian2d"`` or ``"hpcg"``, or a dict of weights by offsets, slowest
    axis first: ``{(0, 0): 4, (-1, 0): -1, (1, 0): -1, (0, -1): -1, (0, 1): -1}``. Rows are cells, in C order.
    """

    def __init__(
        self,
        stencil: str | Mapping[Any, float],
        shape: Sequence[int],
        *,
        boundary: Boundary = 0.0,
        dtype: Any = "float64",
    ) -> None:
        given: Any = stencil
        if isinstance(stencil, Mapping):
            given = [
                (_offset(offset), number_of(f"the weight at {offset!r}", weight))
                for offset, weight in stencil.items()
            ]
        elif not isinstance(stencil, str):
            raise Invalid(
                f'stencil: {stencil!r} is none; give a name, as in "laplacian2d", or weights by offsets, as in '
                "{(0, 0): 4, (-1, 0): -1, …}"
            )
        name = dtype_name(dtype) or "f64"
        self._stencil = stencil if isinstance(stencil, str) else dict(stencil)
        self._boundary = boundary
        self._core = _pyabide.GridOperator(given, extents(shape) or [], boundaries.text(boundary), name)
        self.extents = tuple(self._core.extents)
        self._assembled: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        cells = int(np.prod(self.extents))
        return cells, cells

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of weights and vectors."""
        return np.dtype("float32" if self._core.dtype == "f32" else "float64")

    def __reduce__(self) -> tuple[Any, ...]:
        make = functools.partial(GridOperator, boundary=self._boundary, dtype=self.dtype)
        return make, (self._stencil, self.extents)

    def tocsr(self) -> Any:
        """Returns the matrix as ``scipy.sparse.csr_array``; scipy must be installed."""
        try:
            from scipy.sparse import csr_array
        except ImportError:
            raise Error("scipy is not installed; install it by: pip install scipy") from None

        offsets, columns, values = self._core.assemble()
        return csr_array((values, columns, offsets), shape=self.shape)

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """Returns the product with a vector, by scipy, so that its solvers take the operator too."""
        if self._assembled is None:
            self._assembled = self.tocsr()
        own = _array("x", x)
        if own.dtype.kind not in "fiubc" or own.shape[:1] != self.shape[1:]:
            raise Invalid(
                f"x: an array of {own.dtype} and shape {own.shape} has no product with {self!r}; give numbers, "
                f"{self.shape[1]} of them"
            )
        product: NDArray[Any] = self._assembled @ own
        return product

    __matmul__ = matvec

    def __repr__(self) -> str:
        return f"<operator on {'×'.join(map(str, self.extents))} cells in {self.dtype}>"


def _offset(offset: Any) -> list[int]:
    own = wholes("an offset", offset if isinstance(offset, (tuple, list)) else (offset,), "(-1, 0)")
    if any(not -(2**31) <= step < 2**31 for step in own):
        raise Limit(f"an offset: {offset!r} is beyond 32 bits; give the cells from one to a neighbour")
    return own


Callback = Callable[[Any], object]


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    callback_type: str | None = None,
    backend: str = "auto",
    devices: Devices | None = None,
    nullspace: str | None = None,
    assume_symmetric: bool = False,
) -> tuple[NDArray[Any], int]:
    """Solves ``A x = b`` by conjugate gradients, for a symmetric positive (or negative) definite matrix.

    ``A`` is a sparse matrix of scipy, a dense array, or an ``ab.GridOperator``; ``b`` has one value a row, or
    the shape of the operator's domain. The run ends when ``|b - A x| <= max(rtol |b|, atol)``, or after
    ``maxiter`` iterations (10 a row unless given). ``M`` names a preconditioner: ``"jacobi"``,
    ``"block-jacobi:8"``, ``"chebyshev:3"``, on the CPU also ``"ilu"`` and ``"amg"``. The type is float32 where both
    ``A`` and ``b`` are, else float64.

    ``A`` may also be a ``LinearOperator`` of scipy or a function from a vector to its product, and ``M`` a matrix, a
    ``LinearOperator`` or a function from a residual to an approximate error. Such a system is solved on this machine's
    processors, and what the method needs of the matrix is not checked.

    ``callback`` gets the norm of the residual after each iteration, and wants ``callback_type="residual"``,
    because scipy's own gets the solution, which stays on the device here.

    ``devices`` are so many, ``"all"``, or those of some numbers: each has some rows, and the bits are those of
    one.

    ``nullspace="constant"`` is for a matrix that takes constants to 0, as that of a pure Neumann problem: the
    means of ``b`` and ``x`` are taken away, and ``|b|`` is the norm of what is left. ``assume_symmetric``
    leaves out the look at the symmetry, which allows for rounding.

    Returns the solution and ``info``: 0 where it converged, else the number of iterations done, with a
    warning ``ab.NotConverged`` that says why; ``x`` is then the best or the last iterate. A matrix that the
    method cannot take, and values that are not finite, raise ``ab.Invalid``.
    """
    observe = _residual(callback, callback_type)
    symmetric = assume_symmetric
    return _solve(
        "cg", A, b, x0, rtol, atol, maxiter, M, observe, backend, devices, nullspace, symmetric=symmetric
    )


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    callback_type: str | None = None,
    backend: str = "auto",
    devices: Devices | None = None,
    nullspace: str | None = None,
) -> tuple[NDArray[Any], int]:
    """Solves ``A x = b`` by stabilised bi-conjugate gradients; arguments and results are those of
    ``ab.cg``. Where the method breaks down it starts anew from its iterate, 40 times at most."""
    observe = _residual(callback, callback_type)
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, observe, backend, devices, nullspace)


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    callback_type: str | None = None,
    backend: str = "auto",
    devices: Devices | None = None,
    nullspace: str | None = None,
    assume_symmetric: bool = False,
) -> tuple[NDArray[Any], int]:
    """Solves ``A x = b`` by MINRES, for a symmetric matrix that need not be definite; arguments and results are
    those of ``ab.cg``. ``M`` must be positive definite. The norm that ends the run is that of the residual
    itself, with ``M`` too."""
    observe = _residual(callback, callback_type)
    symmetric = assume_symmetric
    return _solve(
        "minres", A, b, x0, rtol, atol, maxiter, M, observe, backend, devices, nullspace, symmetric=symmetric
    )


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    callback_type: str | None = None,
    backend: str = "auto",
    devices: Devices | None = None,
    nullspace: str | None = None,
) -> tuple[NDArray[Any], int]:
    """Solves ``A x = b`` by GMRES, which starts anew after ``restart`` iterations (20 unless given).

    ``maxiter`` counts these cycles, as scipy's does. ``callback_type`` is scipy's: ``"pr_norm"`` for the
    residual's norm over that of ``b``, after every iteration; ``"legacy"``, the default, for the same with a
    ``maxiter`` that counts iterations; ``"x"`` for the solution after every cycle. Preconditioners stand on
    the right here, so with ``M`` too the norm is that of the residual itself. ``"residual"`` gives the norm as
    it is. The other arguments and the results are those of ``ab.cg``.
    """
    rows = _rows(A, b)
    cycle = max(1, min(20 if restart is None else whole("restart", restart), rows))
    most = 10 * rows if maxiter is None else whole("maxiter", maxiter)
    iterations = cycle * most
    by_cycle, relative = None, False
    if callback is not None:
        if callback_type is None:
            warnings.warn(
                'callback: say callback_type="pr_norm"; without it maxiter counts iterations, as scipy\'s '
                '"legacy" does',
                DeprecationWarning,
                stacklevel=2,
            )
            callback_type = "legacy"
        if text_of("callback_type", callback_type, '"pr_norm"') not in ("x", "pr_norm", "legacy", "residual"):
            raise Invalid(
                f'callback_type: {callback_type!r} is none; give "x", "pr_norm", "legacy" or "residual"'
            )
        if callback_type == "legacy" and maxiter is not None:
            iterations = most
        if callback_type == "x":
            by_cycle = cycle
        relative = callback_type in ("pr_norm", "legacy")
    return _solve(
        f"gmres:{cycle}",
        A,
        b,
        x0,
        rtol,
        atol,
        iterations,
        M,
        callback,
        backend,
        devices,
        nullspace,
        cycle=by_cycle,
        relative=relative,
    )


def _residual(callback: Callback | None, callback_type: str | None) -> Callback | None:
    if callback_type is not None:
        text_of("callback_type", callback_type, '"residual"')
    if callback is not None and callback_type != "residual":
        raise Invalid(
            "callback: scipy's gets the solution of each iteration, which stays on the device here; say "
            'callback_type="residual" for one that gets the norm of the residual'
        )
    return callback


def _solve(
    method: str,
    A: Any,
    b: Any,
    x0: Any,
    rtol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Callback | None,
    backend: str,
    devices: Devices | None,
    nullspace: str | None,
    *,
    cycle: int | None = None,
    relative: bool = False,
    symmetric: bool = False,
) -> tuple[NDArray[Any], int]:
    own = _known(A, M, b)
    dtype = np.result_type(own.dtype, np.float32 if _array("b", b).dtype == np.float32 else np.float64)
    system = _opened(method, own, dtype, backend, devices, nullspace, symmetric)
    right, first, iterations = _asked(own, b, x0, dtype, maxiter)
    observe = None if callback is None else callable_of("callback", callback)
    if observe is not None and relative:
        observe = _over(observe, right - right.mean() if nullspace == "constant" else right)
    tolerances = number_of("rtol", rtol), number_of("atol", atol)
    solution, unfinished, why, _ = system.solve(right, first, *tolerances, iterations, observe, cycle)
    if unfinished is None:
        return solution, 0
    warnings.warn(why, NotConverged, stacklevel=3)
    return solution, unfinished


class _Known(NamedTuple):
    """What is known of a system."""

    matrix: Any
    """As the extension module takes it."""
    inverse: Any
    rows: int
    extents: tuple[int, ...] | None
    """Those of the domain of an operator on a grid."""
    dtype: np.dtype[Any]


def _known(A: Any, M: Any, b: Any = None) -> _Known:
    """Returns what is known of a system; ``b`` says how many rows a function has."""
    if _is_function(A):
        rows = _rows(A, b)
        dtype = np.dtype(np.float32 if getattr(A, "dtype", None) == np.float32 else np.float64)
        return _Known((rows, _product("A", A, rows)), _inverse(M, rows), rows, None, dtype)
    matrix, dtype = _matrix(A)
    rows = _rows(A)
    extents = A.extents if isinstance(A, GridOperator) else None
    return _Known(matrix, _inverse(M, rows), rows, extents, dtype)


def _opened(
    method: str | None,
    own: _Known,
    dtype: np.dtype[Any],
    backend: str,
    devices: Devices | None,
    nullspace: str | None,
    symmetric: bool,
) -> Any:
    return _pyabide.System(
        method,
        own.matrix,
        "f32" if dtype == np.float32 else "f64",
        own.inverse,
        backend_named(backend),
        devices_named(devices),
        "none" if nullspace is None else text_of("nullspace", nullspace, '"constant"'),
        bool(symmetric),
    )


def _asked(
    own: _Known, b: Any, x0: Any, dtype: np.dtype[Any], maxiter: int | None
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Returns the right-hand side, the first guess and the most iterations."""
    right = _vector("b", b, own.rows, own.extents, dtype)
    first = np.zeros(own.rows, dtype) if x0 is None else _vector("x0", x0, own.rows, own.extents, dtype)
    # More than anything can do.
    iterations = min(10 * own.rows if maxiter is None else whole("maxiter", maxiter), 2**62)
    if iterations < 0:
        raise Invalid(f"maxiter: {iterations} is below 0; give 1 or more")
    return right, first, iterations


def _is_function(A: Any) -> bool:
    """Whether a matrix is known by its products alone: a function, or a ``LinearOperator`` of scipy."""
    if isinstance(A, (GridOperator, np.ndarray, type)) or hasattr(A, "tocsr"):
        return False
    return callable(getattr(A, "matvec", None)) or callable(A)


def _product(name: str, A: Any, rows: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Returns the function that multiplies with a matrix, which checks what the caller's returns."""
    multiply = A.matvec if callable(getattr(A, "matvec", None)) else A if callable(A) else A.__matmul__

    def product(x: NDArray[Any]) -> NDArray[Any]:
        own = np.asarray(multiply(x))
        if own.dtype.kind not in "fiub" or own.shape not in ((rows,), (rows, 1)):
            raise Invalid(
                f"{name}: for a vector of {rows} values it returned {own.dtype} of shape {own.shape}; return one real "
                "value a row"
            )
        return np.ascontiguousarray(own.reshape(-1), x.dtype)

    return product


def _inverse(M: Any, rows: int) -> Any:
    """Returns a preconditioner's name, or the function that applies an approximate inverse."""
    if M is None:
        return "none"
    if isinstance(M, str):
        return M
    if not (_is_function(M) or isinstance(M, (np.ndarray, GridOperator)) or hasattr(M, "tocsr")):
        raise Invalid(
            f"M: {type(M).__name__} is no approximate inverse; name a preconditioner, as in "
            '"jacobi", "chebyshev:3" or "amg", or give a matrix or a function from a residual to an approximate error'
        )
    shape = getattr(M, "shape", None)
    if isinstance(shape, tuple) and shape != (rows, rows):
        raise Invalid(f"M: its shape is {shape}; give one of shape {(rows, rows)}, as the matrix has")
    return _product("M", M, rows)


def _over(callback: Callback, b: NDArray[Any]) -> Callback:
    """Returns a callback that passes on its argument divided by the norm of ``b``."""
    norm = float(np.linalg.norm(b.astype(np.float64)))
    return lambda residual: callback(residual / norm)


def _rows(A: Any, b: Any = None) -> int:
    """Returns the number of rows of a matrix; of a function, that of the values of ``b``."""
    shape = getattr(A, "shape", None)
    if shape is None and _is_function(A):
        if b is None:
            raise Invalid("A: a function does not say how many rows it has; give scipy's LinearOperator((n, n), matvec=…)")
        return int(_array("b", b).size)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise Invalid(
            f"A: {type(A).__name__} is no matrix; give a sparse matrix of scipy, a dense array or "
            "ab.GridOperator"
        )
    if shape[0] != shape[1] or shape[0] == 0:
        raise Invalid(
            f"A: it has {shape[0]} rows and {shape[1]} columns; give a square matrix with a row at least"
        )
    return int(shape[0])


def _matrix(A: Any) -> tuple[Any, np.dtype[Any]]:
    """Returns the matrix as Abide takes it, and its type."""
    if isinstance(A, GridOperator):
        return A._core, A.dtype
    _rows(A)
    if hasattr(A, "tocsr"):
        rows = A.tocsr()
    elif isinstance(A, np.ndarray):
        return _dense(A)
    else:
        raise Invalid(
            f"A: {type(A).__name__} is no matrix; give a sparse matrix of scipy, a dense array, ab.GridOperator, or "
            "a LinearOperator"
        )
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    values = _values(rows.data)
    offsets, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    return (int(rows.shape[1]), offsets, columns, values), values.dtype


def _dense(A: NDArray[Any]) -> tuple[Any, np.dtype[Any]]:
    values = _values(A)
    filled = values != 0
    offsets = np.concatenate([[0], np.cumsum(filled.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(filled)[1].astype(np.int64)
    return (int(values.shape[1]), offsets, columns, values[filled]), values.dtype


def _values(values: NDArray[Any]) -> NDArray[Any]:
    if np.ma.isMaskedArray(values):
        raise Invalid("A: it is a masked array; give the filled matrix, as by A.filled(0.0)")
    if values.dtype.kind not in "fiub":
        raise Invalid(f"A: its entries are {values.dtype}; give float32 or float64")
    return values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{name}: {type(values).__name__} makes no array ({error}); give numpy's") from None


def _vector(
    name: str, values: Any, rows: int, extents: tuple[int, ...] | None, dtype: np.dtype[Any]
) -> NDArray[Any]:
    if np.ma.isMaskedArray(values):
        raise Invalid(f"{name}: it is a masked array, and each row has a value; give values.filled(0.0) or the like")
    own = _array(name, values)
    if own.dtype.kind not in "fiub":
        raise Invalid(f"{name}: its values are {own.dtype}; give float32 or float64")
    if own.size != rows:
        raise Limit(f"{name}: it has {own.size} values and the matrix {rows} rows; give one value a row")
    shapes = [(rows,), (rows, 1)] + ([extents] if extents else [])
    if own.shape not in shapes:
        domain = f", the operator's domain is {extents}: give that shape or" if extents else ": give"
        raise Invalid(f"{name}: its shape is {own.shape}{domain} one value a row, ({rows},)")
    finite = np.isfinite(own)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), own.shape)
        at = ", ".join(str(int(index)) for index in place)
        raise Invalid(f"{name}: {name}[{at}] is {own[place]}; give finite values")
    return np.ascontiguousarray(own.reshape(-1), dtype)
