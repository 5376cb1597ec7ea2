"""Systems of linear equations that stay open for many right-hand sides."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import Devices, callable_of, dtype_name, number_of, text_of
from .errors import Invalid
from .solvers import Callback, NotConverged, _array, _asked, _known, _opened, _values

__all__ = ["SolveReport", "System"]


@dataclass(frozen=True)
class SolveReport:
    """What a solve did. Norms are Euclidean."""

    method: str
    """The method's name."""
    backend: str
    """Where it ran."""
    iterations: int
    """Iterations done."""
    converged: bool
    """Whether ``|b - A x| <= threshold``."""
    why: str
    """Why it did not converge; empty where it did."""
    history: NDArray[Any]
    """The norm of the residual before each iteration and after the last one."""
    norm: float
    """The norm of the right-hand side."""
    threshold: float
    """The larger of ``rtol`` times that norm and ``atol``."""
    true_residual: float | None
    """The norm of ``b - A x``, computed afresh; ``None`` where the solve ended before that."""
    restarts: int
    """How often BiCGStab broke down and started anew."""
    seconds: float
    """Wall time, with what comes before the iterations."""
    iteration_seconds: float
    """Seconds of the iterations."""

    def __repr__(self) -> str:
        end = f"{self.history[-1]:.3g}" if len(self.history) else "unknown"
        how = "converged" if self.converged else "not converged"
        return f"<{self.method} on {self.backend}: {how} in {self.iterations} iterations, residual {end}>"


class System:
    """A matrix that is loaded once, and solved with for one right-hand side after the other.

    ``A`` and ``M`` are those of ``ab.cg``. ``method`` is ``"cg"``, ``"cg-single"``, ``"cg-pipelined"``,
    ``"minres"``, ``"bicgstab"``, ``"gmres:30"``, ``"chebyshev"`` or ``"jacobi"``; unless given, conjugate gradients where the
    matrix is symmetric with a diagonal of one sign, else GMRES. ``dtype`` is the matrix's unless given.
    ``backend``, ``devices``, ``nullspace`` and ``assume_symmetric`` are those of ``ab.cg``.

    >>> import numpy as np, pyabide as ab
    >>> system = ab.System(ab.GridOperator("laplacian2d", (30, 40)), M="jacobi")
    >>> x, report = system.solve(np.ones((30, 40)), rtol=1e-10)
    >>> x.shape, report.converged
    ((30, 40), True)
    """

    def __init__(
        self,
        A: Any,
        *,
        method: str | None = None,
        M: Any = None,
        dtype: Any = None,
        backend: str = "auto",
        devices: Devices | None = None,
        nullspace: str | None = None,
        assume_symmetric: bool = False,
    ) -> None:
        self._own = _known(A, M)
        name = dtype_name(dtype)
        self._dtype = self._own.dtype if name is None else np.dtype("float32" if name == "f32" else "float64")
        self._method = None if method is None else text_of("method", method, '"gmres:30"')
        self._options = (backend, devices, nullspace, assume_symmetric)
        self._core = _opened(self._method, self._own, self._dtype, *self._options)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._own.rows, self._own.rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of vectors."""
        return self._dtype

    @property
    def backend(self) -> str:
        """Where systems are solved."""
        return str(self._core.about[0])

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self._core.about[1])

    @property
    def notes(self) -> list[str]:
        """What was chosen for the caller and why, in solves too."""
        return list(self._core.about[2])

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        callback: Callback | None = None,
    ) -> tuple[NDArray[Any], Any]:
        """Returns the solution of ``A x = b``, of the shape of ``b``, and an ``ab.SolveReport``.

        ``b`` has one value a row, the shape of the operator's domain, or several columns of one value a row: these are solved
        one after the other, and the second result is a list of reports. ``x0`` is the first guess, of the same shape. The
        solve ends when ``|b - A x| <= max(rtol |b|, atol)``, or after ``maxiter`` iterations (10 a row unless given), of
        GMRES too. ``callback`` gets the norm of the residual after each iteration.

        Warns with ``ab.NotConverged`` where a solve ended without a solution; ``x`` is then the best or the last
        iterate. Values that are not finite raise ``ab.Invalid``.
        """
        right = _array("b", b)
        rows = self._own.rows
        if right.ndim == 2 and right.shape[0] == rows and right.shape[1] > 1 and right.shape != self._own.extents:
            first = None if x0 is None else _array("x0", x0)
            if first is not None and first.shape != right.shape:
                raise Invalid(f"x0: its shape is {first.shape}; give that of b, {right.shape}")
            solved = [
                self.solve(
                    right[:, column],
                    None if first is None else first[:, column],
                    rtol=rtol,
                    atol=atol,
                    maxiter=maxiter,
                    callback=callback,
                )
                for column in range(right.shape[1])
            ]
            return np.stack([x for x, _ in solved], axis=1), [report for _, report in solved]
        vector, guess, iterations = _asked(self._own, b, x0, self._dtype, maxiter)
        observe = None if callback is None else callable_of("callback", callback)
        tolerances = number_of("rtol", rtol), number_of("atol", atol)
        x, unfinished, why, text = self._core.solve(vector, guess, *tolerances, iterations, observe)
        told = json.loads(text)
        report = SolveReport(
            method=told["method"],
            backend=self.backend,
            iterations=told["iterations"],
            converged=unfinished is None,
            why=why,
            history=np.array(told["history"], float),
            norm=told["norm"],
            threshold=told["threshold"],
            true_residual=told["true_residual"],
            restarts=told["restarts"],
            seconds=told["seconds"],
            iteration_seconds=told["iteration_seconds"],
        )
        if unfinished is not None:
            warnings.warn(why, NotConverged, stacklevel=2)
        return x.reshape(right.shape), report

    def update(self, A: Any) -> None:
        """Takes other values for the same entries: a sparse matrix with these entries, or its values alone, row by row.

        The preconditioner is made anew.
        """
        matrix = self._own.matrix
        if not isinstance(matrix, tuple) or len(matrix) != 4:
            raise Invalid("A: it has no stored entries whose values could change; open another system")
        columns, offsets, indices, old = matrix
        if hasattr(A, "tocsr") or _array("A", A).ndim == 2:
            other = _known(A, None).matrix
            if not (np.array_equal(other[1], offsets) and np.array_equal(other[2], indices)):
                raise Invalid("A: its entries are at other places than before; open another system")
            values = other[3]
        else:
            values = _values(_array("A", A))
        if values.shape != old.shape:
            raise Invalid(f"A: it has {values.size} values for {old.size} entries; give one for each, row by row")
        own = self._own._replace(matrix=(columns, offsets, indices, values))
        self._core = _opened(self._method, own, self._dtype, *self._options)
        self._own = own

    def __repr__(self) -> str:
        return f"<system of {self._own.rows} rows in {self._dtype}, {self.method} on {self.backend}>"
