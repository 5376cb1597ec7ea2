"""Wrong arguments of any kind end in an error of Abide, wherever they are given."""

import copy
import datetime
import decimal
import fractions
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyabide as ab


class Odd:
    """An object of another package, which is nothing that Abide knows."""

    def __repr__(self) -> str:
        return "<odd>"


WRONG: dict[str, Any] = {
    "None": None,
    "bool": True,
    "int": -3,
    "zero": 0,
    "huge": 10**400,
    "float": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "complex": 1j,
    "text": "tarantella",
    "empty text": "",
    "nul": "a\0b",
    "bytes": b"bytes",
    "list": [1, "x"],
    "nested list": [[1], [2, 3]],
    "empty list": [],
    "tuple": (None,),
    "dict": {"q": Odd()},
    "number keys": {1: 2},
    "empty dict": {},
    "set": {1, 2},
    "object": Odd(),
    "class": Odd,
    "function": lambda *_: None,
    "array": np.ones((2, 3)),
    "object array": np.array([Odd()], dtype=object),
    "masked": np.ma.masked_array(np.ones(4), [0, 1, 0, 0]),
    "date": np.datetime64("2026-01-01"),
    "time": datetime.timedelta(1),
    "decimal": decimal.Decimal("0.1"),
    "generator": (n for n in "ab"),
    "slice": slice(0, 2),
    "ellipsis": ...,
    "dtype": np.dtype("int32"),
    "exception": ValueError("x"),
}


def heat() -> ab.Program:
    @ab.stencil(1, boundary="mirror")
    def heat(u, kappa=0.1):  # type: ignore[no-untyped-def]
        return u + kappa * ab.laplacian(u)

    return heat


def sim() -> ab.Simulation:
    return heat().start(u=np.ones(8), backend="cpu")


def recorded(formula: Callable[[Any], Any]) -> ab.Program:
    return ab.stencil(1)(lambda u: formula(u))


def staged(make: Callable[[Any, Any], Any]) -> ab.Program:
    def stages(u, s=ab.scalar(0.0)):  # type: ignore[no-untyped-def]
        yield make(u, s)

    return ab.program(1)(stages)


def cg(**options: Any) -> Any:
    return ab.cg(np.eye(4), np.ones(4), backend="cpu", **options)


def gmres(**options: Any) -> Any:
    return ab.gmres(np.eye(4), np.ones(4), backend="cpu", **options)


# What takes a value in each of its arguments, by the name of what is public.
CALLS: dict[str, list[Callable[[Any], Any]]] = {
    "Expr": [lambda w: ab.Expr(w, w)],
    "Field": [lambda w: ab.Field(w, w)],
    "FieldValues": [
        lambda w: ab.FieldValues(w, "u", 0) if not isinstance(w, np.ndarray) else ab.FieldValues(None, "u", 0)
    ],  # type: ignore[arg-type]
    "Flow": [
        lambda w: ab.Flow(w),
        *(
            (lambda w, name=name: ab.Flow(**({"ideal": (1.4, 287.0), "axes": 1} | {name: w})))
            for name in "gas ideal axes scheme order viscous courant newton sides".split()
        ),
        lambda w: ab.Flow(ideal=(1.4, 287.0), axes=1, sides={"x-": w, "x+": "slip"}),
        *(
            (
                lambda w, name=name: ab.Flow(ideal=(1.4, 287.0), axes=1).start(
                    **({"T": 300.0, "p": 1e5, "shape": (8,), "backend": "cpu"} | {name: w})
                )
            )
            for name in "T p u v w Y shape dtype by_name dx".split()
        ),
    ],
    "Frame": [lambda w: ab.Frame(w, w), lambda w: next(iter(sim().frames(1, every=1, progress=False)))[w]],
    "Gas": [
        lambda w: ab.Gas(w),
        *(
            (lambda w, name=name: ab.Gas(["N2"], **{name: w}))
            for name in "species kij chung kappa closure".split()
        ),
        lambda w: ab.Gas(["N2", "O2"], kij={("N2", "O2"): w}),
        lambda w: ab.Gas(["N2"]).properties(w, T=300.0, p=1e5, backend="cpu"),
        *(
            (
                lambda w, name=name: ab.Gas(["N2"]).properties(
                    "c", **({"T": 300.0, "p": 1e5, "backend": "cpu"} | {name: w})
                )
            )
            for name in "T p rho h e x Y backend".split()
        ),
    ],
    "GridOperator": [
        lambda w: ab.GridOperator(w, (4, 4)),
        lambda w: ab.GridOperator("laplacian2d", w),
        lambda w: ab.GridOperator("laplacian2d", (4, 4), boundary=w),
        lambda w: ab.GridOperator("laplacian2d", (4, 4), dtype=w),
        lambda w: (
            ab.GridOperator({w if isinstance(w, (tuple, str, float, bytes)) else (w,): 1.0}, (4,))
            if hash_of(w)
            else refused()
        ),
        lambda w: ab.GridOperator({0: w}, (4,)),
        lambda w: ab.GridOperator("laplacian2d", (4, 4)) @ w,
    ],
    "Movie": [lambda w: ab.Movie(w), lambda w: ab.Movie(b"GIF").save(w)],
    "Parameters": [
        lambda w: ab.Parameters(w),
        lambda w: sim().parameters[w],
        lambda w: sim().parameters.__setitem__("kappa", w),
        lambda w: sim().parameters.__setitem__(w, 1.0) if hash_of(w) else refused(),
        lambda w: sim().parameters.update(w),
        lambda w: sim().parameters.update(kappa=w),
    ],
    "Picture": [lambda w: ab.Picture(w), lambda w: ab.Picture(b"PNG").save(w)],
    "Program": [
        lambda w: ab.Program(w),
        lambda w: heat()(w),
        lambda w: heat().start(u=w, backend="cpu"),
        lambda w: heat().start(u=np.ones(8), kappa=w, backend="cpu"),
        lambda w: heat().start(u=np.ones(8), other=w),
        lambda w: heat().start(u=1.0, by_name=w),
        *(
            (lambda w, name=name: heat().start(**({"u": 1.0, "shape": (8,), "backend": "cpu"} | {name: w})))
            for name in (
                "shape dtype backend devices boundary until marks record probes execution cache depth tune fuse "
                "exchange pin"
            ).split()
        ),
        lambda w: heat().resume(w),
        lambda w: heat().plan(w),
        *(
            (lambda w, name=name: heat().plan((64,), **({"device": "a100"} | {name: w})))
            for name in "dtype device backend devices boundary execution cache depth".split()
        ),
    ],
    "Records": [lambda w: sim().records()[w]],
    "Simulation": [
        lambda w: ab.Simulation(w, None),
        lambda w: sim()[w],
        lambda w: sim().__setitem__(w, 1.0),
        lambda w: sim().__setitem__("u", w),
        lambda w: sim().run(w),
        lambda w: sim().run(1, seconds=w),
        lambda w: sim().frames(w, every=1),
        lambda w: sim().frames(1, every=w),
        lambda w: sim().field(w),
        lambda w: sim().view(w).__enter__(),
        lambda w: sim().window(w, slice(0, 1)),
        lambda w: sim().window("u", w),
        lambda w: sim().xarray(w),
        lambda w: sim().png(w),
        lambda w: sim().png(range=w),
        lambda w: sim().movie(w, every=1),
        lambda w: sim().movie(1, every=w),
        lambda w: sim().movie(1, every=1, field=w, progress=False),
        lambda w: sim().movie(1, every=1, range=w, progress=False),
        lambda w: sim().checkpoint(w),
        lambda w: sim().save(w),
        lambda w: sim().save("u.npy", w),
    ],
    "System": [
        lambda w: ab.System(w),
        *(
            (lambda w, name=name: ab.System(np.eye(4), **{name: w}))
            for name in "method M dtype backend devices nullspace".split()
        ),
        lambda w: ab.System(np.eye(4)).solve(w),
        *(
            (lambda w, name=name: ab.System(np.eye(4)).solve(np.ones(4), **{name: w}))
            for name in "x0 rtol atol maxiter".split()
        ),
        lambda w: ab.System(np.eye(4)).solve(np.ones(4), callback=w if not callable(w) else 5),
        lambda w: ab.System(np.eye(4)).update(w),
    ],
    "View": [lambda w: ab.View(w, "u")],
    "bicgstab": [lambda w: ab.bicgstab(w, np.ones(4))],
    "cg": [
        lambda w: ab.cg(w, np.ones(4)),
        lambda w: ab.cg(np.eye(4), w),
        *((lambda w, name=name: cg(**{name: w})) for name in "x0 rtol atol maxiter M devices".split()),
        lambda w: ab.cg(np.eye(4), np.ones(4), backend=w),
        lambda w: cg(callback=w if not callable(w) else 5, callback_type="residual"),
        lambda w: cg(callback=print, callback_type=w),
    ],
    "coord": [lambda w: recorded(lambda u: u * ab.coord(w))],
    "dot": [
        lambda w: staged(lambda u, s: {"s": ab.dot(w, w)}),
        lambda w: staged(lambda u, s: {"s": ab.dot(u, u, on=w)}),
    ],
    "extent": [lambda w: ab.stencil(1)(stand_in(ab.extent, w)), lambda w: ab.extent("x", w)],
    "field": [
        lambda w: ab.stencil(1)(stand_in(ab.field, w)),
        lambda w: ab.stencil(1)(stand_in(lambda own: ab.field(start=own), w)),
        lambda w: ab.stencil(1)(stand_in(lambda own: ab.field(boundary=own), w)),
        lambda w: ab.stencil(1)(stand_in(lambda own: ab.field(components=own), w)),
        lambda w: ab.stencil(1)(stand_in(lambda own: ab.field(precision=own), w)),
    ],
    "from_sympy": [lambda w: ab.from_sympy(w)],
    "gmres": [lambda w: gmres(restart=w), lambda w: gmres(maxiter=w)],
    "laplacian": [
        lambda w: recorded(lambda u: ab.laplacian(w)),
        lambda w: recorded(lambda u: u.along(w, 1)),
        lambda w: recorded(lambda u: u.along(0, w)),
    ],
    "load": [lambda w: ab.load(w)],
    "loads": [lambda w: ab.loads(w), lambda w: ab.loads("axes = 1", w)],
    "max": [
        lambda w: staged(lambda u, s: {"s": ab.max(w)}),
        lambda w: staged(lambda u, s: {"s": ab.max(u, on=w)}),
        lambda w: staged(lambda u, s: {"s": ab.max(u, margins=w)}),
        lambda w: staged(lambda u, s: {"s": ab.max(u, margins={"x": w})}),
        lambda w: staged(lambda u, s: {"s": ab.max(u, every=w)}),
    ],
    "min": [lambda w: staged(lambda u, s: {"s": ab.min(w)})],
    "minres": [lambda w: ab.minres(w, np.ones(4)), lambda w: ab.minres(np.eye(4), w)],
    "parameter": [lambda w: ab.stencil(1)(stand_in(ab.parameter, w)), lambda w: ab.parameter(1.0, w)],
    "plan": [
        lambda w: ab.plan(w, (8,)),
        lambda w: ab.plan("heat", w),
        lambda w: ab.plan("heat", (8, 8), device=w),
        lambda w: ab.plan("heat", (8, 8), device="a100", other=w),
        lambda w: ab.plan("heat", (8, 8), device="a100", depth=w),
        lambda w: ab.plan("heat", (8, 8), device="a100", dtype=w),
    ],
    "program": [
        lambda w: ab.program(w)(lambda u: u),
        lambda w: ab.program(1)(w),
        lambda w: ab.program(1, boundary=w)(lambda u: u).start(u=np.ones(8), backend="cpu"),
        lambda w: ab.program(1, until=w)(lambda u: u).start(u=np.ones(8), backend="cpu"),
        lambda w: staged(lambda u, s: w),
        lambda w: staged(lambda u, s: {"u": w}),
        lambda w: staged(lambda u, s: {"s": w}),
        lambda w: staged(lambda u, s: {w: u}) if hash_of(w) else refused(),
    ],
    "resume": [
        lambda w: ab.resume(w),
        lambda w: ab.resume("missing.npz", w),
        lambda w: ab.resume("missing.npz", backend=w),
    ],
    "scalar": [lambda w: ab.program(1)(stand_in(ab.scalar, w)), lambda w: ab.scalar(0.0, w)],
    "stage": [
        lambda w: staged(lambda u, s: ab.stage(w)),
        lambda w: staged(lambda u, s: ab.stage({"u": u}, name=w)),
        lambda w: staged(lambda u, s: ab.stage({"u": u}, where=w)),
        lambda w: staged(lambda u, s: ab.stage({"u": u}, points=w)),
        lambda w: staged(lambda u, s: ab.stage({"u": u}, points=[w])),
    ],
    "start": [
        lambda w: ab.start(w, shape=(8,)),
        lambda w: ab.start("heat", shape=w, backend="cpu"),
        lambda w: ab.start("heat", u=w, backend="cpu"),
        *(
            (lambda w, name=name: ab.start("heat", **({"shape": (8, 8), "backend": "cpu"} | {name: w})))
            for name in "dtype backend devices boundary until kappa other record probes depth cache".split()
        ),
    ],
    "stencil": [
        lambda w: ab.stencil(w)(lambda u: u),
        lambda w: ab.stencil(1)(w),
        lambda w: ab.stencil(1, boundary=w)(lambda u: u).start(u=np.ones(8), backend="cpu"),
        lambda w: ab.stencil(1, spacing=w)(lambda u: ab.d(u, "x")),
        lambda w: ab.stencil(1, origin={"x": w})(lambda u: u),
    ],
    "sum": [lambda w: staged(lambda u, s: {"s": ab.sum(w)})],
    "temporary": [lambda w: ab.stencil(1)(stand_in(ab.temporary, w))],
}
for name in (
    "absolute sqrt floor exp log sin cos tanh cbrt expm1 log1p erf "
    "sign ceil trunc rint tan arcsin arccos arctan sinh cosh"
).split():
    CALLS[name] = [
        lambda w, f=getattr(ab, name): f(w),
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(w)),
    ]
for name in "arctan2 minimum maximum".split():
    CALLS[name] = [
        lambda w, f=getattr(ab, name): recorded(lambda u: f(u, w)),
        lambda w, f=getattr(ab, name): recorded(lambda u: f(w, u)),
    ]
CALLS["where"] = [
    lambda w: recorded(lambda u: ab.where(w, u, u)),
    lambda w: recorded(lambda u: ab.where(u > 0, w, u)),
]
CALLS["fma"] = [lambda w: recorded(lambda u: ab.fma(u, w, u))]
CALLS["clip"] = [
    lambda w: recorded(lambda u: ab.clip(w, u, u)),
    lambda w: recorded(lambda u: ab.clip(u, w, u)),
    lambda w: recorded(lambda u: ab.clip(u, u, w)),
]
for name in ("d", "d2"):
    CALLS[name] = [
        lambda w, f=getattr(ab, name): recorded(lambda u: f(w, "x")),
        lambda w, f=getattr(ab, name): recorded(lambda u: f(u, w)),
    ]
CALLS["position"] = [
    lambda w: recorded(lambda u: u + ab.position(w)),
    lambda w: recorded(lambda u: u + ab.position("x", on=w)),
]
for name in ("uniform", "normal"):
    CALLS[name] = [
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(w)),
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(0.0, w)),
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(stream=w)),
    ]
for name in ("exponential", "bernoulli"):
    CALLS[name] = [
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(w)),
        lambda w, f=getattr(ab, name): recorded(lambda u: u + f(0.5, stream=w)),
    ]
CALLS["once"] = [lambda w: staged(lambda u, s: ab.once(w))]
CALLS["repeat"] = [
    lambda w: staged(lambda u, s: ab.repeat(w, most=3)),
    lambda w: staged(lambda u, s: ab.repeat([{"u": u}], most=w)),
    lambda w: staged(lambda u, s: ab.repeat([{"u": u}], most=3, until=w)),
]
CALLS["solve"] = [
    lambda w: staged(lambda u, s: ab.solve(w, operator=u, rhs=1.0)),
    lambda w: staged(lambda u, s: ab.solve(u, operator=w, rhs=1.0)),
    lambda w: staged(lambda u, s: ab.solve(u, operator=u, rhs=w)),
    *(
        (lambda w, name=name: staged(lambda u, s: ab.solve(u, operator=u, rhs=1.0, **{name: w})))
        for name in ("tolerance", "most", "method", "null_space")
    ),
]
CALLS["wall"] = [
    lambda w: staged(lambda u, s: ab.wall(w, "x-", dirichlet=0)),
    lambda w: staged(lambda u, s: ab.wall(u, w, dirichlet=0)),
    *(
        (lambda w, name=name: staged(lambda u, s: ab.wall(u, "x-", **{name: w})))
        for name in ("dirichlet", "neumann", "robin")
    ),
    lambda w: staged(lambda u, s: ab.wall(u, "x-", robin=(1, w, 1))),
]

NOT_CALLED = {
    "CompileError",
    "Defect",
    "DeviceError",
    "Error",
    "FileError",
    "Invalid",
    "Limit",
    "NotConverged",
    "Unavailable",
    "Unknown",
    "Unsupported",
}
"""Exceptions, which take any text."""
NO_ARGUMENTS = {
    "Device",
    "Entry",
    "Plan",
    "Report",
    "SolveReport",
    "catalogue",
    "devices",
    "end_of_step",
    "__version__",
}
"""What takes none, or what nobody makes."""


def hash_of(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def refused() -> None:
    raise ab.Invalid("Python takes no such key")


def stand_in(declare: Callable[[Any], Any], value: Any) -> Callable[..., Any]:
    part = declare(value)

    def function(u, other=part):  # type: ignore[no-untyped-def]
        return {"u": u}

    return function


def test_every_public_name_is_in_the_table() -> None:
    assert set(ab.__all__) == set(CALLS) | NOT_CALLED | NO_ARGUMENTS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments(name: str, wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, call in enumerate(CALLS[name]):
        try:
            call(copy.copy(wrong) if isinstance(wrong, (list, dict)) else wrong)
        except ab.Defect as error:
            raise AssertionError(f"{name}, call {number}, of {wrong!r}") from error
        except ab.Error as error:
            assert str(error), (name, number)
        except BaseException as error:
            raise AssertionError(
                f"{name}, call {number}, of {wrong!r}: {type(error).__name__}: {error}"
            ) from error


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "u % 2": lambda u: u % 2,
    "2 % u": lambda u: 2 % u,
    "np.float64(2) % u": lambda u: np.float64(2) % u,
    "divmod(u, 2)": lambda u: divmod(u, 2),
    "divmod(2, u)": lambda u: divmod(2, u),
    "u @ u": lambda u: u @ u,
    "2 @ u": lambda u: np.ones(3) @ u,
    "u << 1": lambda u: u << 1,
    "1 << u": lambda u: 1 << u,
    "u >> 1": lambda u: u >> 1,
    "1 >> u": lambda u: 1 >> u,
    "u & 3": lambda u: u & 3,
    "3 | u": lambda u: 3 | u,
    "u ^ u": lambda u: u ^ u,
    "~u": lambda u: ~u,
    "u**1j": lambda u: u**1j,
    "1j**u": lambda u: 1j**u,
    "u**None": lambda u: u**None,
    "u**'2'": lambda u: u ** "2",
    "u**[2]": lambda u: u ** [2],
    "pow(u, 2, 3)": lambda u: pow(u, 2, 3),
    "u + 10**400": lambda u: u + 10**400,
    "10**400 * u": lambda u: 10**400 * u,
    "u**10**400": lambda u: u**10**400,
    "u + Fraction": lambda u: u + fractions.Fraction(10**400, 3),
    "u < None": lambda u: u < None,
    "u + Decimal": lambda u: u + decimal.Decimal(1),
    "u * masked": lambda u: u * np.ma.masked,
    "masked * u": lambda u: np.ma.masked * u,
    "u * masked array": lambda u: u * np.ma.masked_array([1.0], [True]),
    "round": round,
    "round 2": lambda u: round(u, 2),
    "trunc": __import__("math").trunc,
    "int": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "not": lambda u: not u,
    "len": len,
    "iter": iter,
    "list": list,
    "reversed": reversed,
    "in": lambda u: 1.0 in u,
    "index": lambda u: [1, 2][u],
    "range": range,
    "hex": hex,
    "hash": hash,
    "set": lambda u: {u},
    "dict": lambda u: {u: u + 1},
    "setitem": lambda u: u.__setitem__((0,), 1.0),
    "delitem": lambda u: u.__delitem__((0,)),
    "call": lambda u: u(0),
    "shape": lambda u: u.shape,
    "T": lambda u: u.T,
    "sum": lambda u: u.sum(),
    "mean": lambda u: (u + 1).mean(),
    "copy": lambda u: u.copy(),
    "math.sqrt": __import__("math").sqrt,
    "math.sin": __import__("math").sin,
    "max": lambda u: max(u, 0),
    "sorted": sorted,
    "any": any,
    "chained": lambda u: 0 < u < 1,
    "np.array": np.array,
    "np.asarray": np.asarray,
    "np.sum": np.sum,
    "np.diff": np.diff,
    "np.gradient": np.gradient,
    "np.roll": lambda u: np.roll(u, 1),
    "np.isnan": np.isnan,
    "np.mod": lambda u: np.mod(u, 2),
    "np.divmod": lambda u: np.divmod(u, 2),
    "np.matmul": lambda u: np.matmul(u, u),
    "np.add out": lambda u: np.add(u, 1, out=np.ones(3)),
    "np.add.at": lambda u: np.add.at(u, 0, 1),
    "np.add.reduce": np.add.reduce,
    "np.add.outer": lambda u: np.add.outer(u, u),
    "np.stack": lambda u: np.stack([u, u]),
    "np.concatenate": lambda u: np.concatenate([u, u]),
    "np.linalg.norm": lambda u: np.linalg.norm(u),
    "np.fft": lambda u: np.fft.fft(u),
    "np.dot": lambda u: np.dot(u, u),
    "array * u": lambda u: np.ones(3) * u,
    "array < u": lambda u: np.ones(3) < u,
    "u @ array": lambda u: u @ np.ones(3),
    "pickle": pickle.dumps,
    "u[...]": lambda u: u[...],
    "u[None]": lambda u: u[None],
    "u[True]": lambda u: u[True],
    "u['x']": lambda u: u["x"],
    "u[1.0]": lambda u: u[1.0],
    "u[u]": lambda u: u[u],
    "u[[1]]": lambda u: u[[1]],
    "u[10**30]": lambda u: u[10**30],
    "int from bytes": lambda u: bytes(u),
    "string": lambda u: "a" + u,
    "format": lambda u: f"{u:d}" + u,
    "a list": lambda u: [u],
    "a tuple": lambda u: (u, u),
    "a function": lambda u: lambda: u,
}


@pytest.mark.parametrize("use", OPERATORS.values(), ids=list(OPERATORS))
@pytest.mark.parametrize("of", ["a field", "a formula", "a parameter", "a formula of parameters"])
def test_what_a_formula_cannot_do_is_told_in_words(use: Callable[[Any], Any], of: str) -> None:
    def function(u, a=2.0):  # type: ignore[no-untyped-def]
        return {
            "u": u
            + use({"a field": u, "a formula": u * 2, "a parameter": a, "a formula of parameters": a + 1}[of])
        }

    with pytest.raises(ab.Error) as caught:
        ab.stencil(1)(function)
    assert not isinstance(caught.value, ab.Defect)
    assert ";" in str(caught.value)


WORK: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "7 // u": (lambda u: 7 // u, lambda u: np.floor(7 / u)),
    "u // 0.3": (lambda u: u // 0.3, lambda u: np.floor(u / 0.3)),
    "floor": (lambda u: __import__("math").floor(3 * u), lambda u: np.floor(3 * u)),
    "ceil": (lambda u: __import__("math").ceil(3 * u), lambda u: np.ceil(3 * u)),
    "np.sign": (lambda u: np.sign(u - 0.5), lambda u: np.sign(u - 0.5)),
    "np.ceil": (lambda u: np.ceil(3 * u - 1), lambda u: np.ceil(3 * u - 1)),
    "np.trunc": (lambda u: np.trunc(3 * u - 2), lambda u: np.trunc(3 * u - 2)),
    "np.rint": (lambda u: np.rint(9 * u), lambda u: np.rint(9 * u)),
    "np.clip": (lambda u: np.clip(u, 0.3, 0.7), lambda u: np.clip(u, 0.3, 0.7)),
    "np.tan": (lambda u: np.tan(u), lambda u: np.tan(u)),
    "np.arcsin": (lambda u: np.arcsin(0.9 * u), lambda u: np.arcsin(0.9 * u)),
    "np.arccos": (lambda u: np.arccos(0.9 * u), lambda u: np.arccos(0.9 * u)),
    "np.arctan": (lambda u: np.arctan(u), lambda u: np.arctan(u)),
    "np.sinh": (lambda u: np.sinh(u), lambda u: np.sinh(u)),
    "np.cosh": (lambda u: np.cosh(u), lambda u: np.cosh(u)),
    "True & mask": (lambda u: True & (u > 0.5), lambda u: True & (u > 0.5)),
    "mask & True": (lambda u: (u > 0.5) & np.True_, lambda u: (u > 0.5) & True),
    "False | mask": (lambda u: False | (u > 0.5), lambda u: u > 0.5),
    "np.True_ & mask": (lambda u: np.True_ & (u > 0.5), lambda u: u > 0.5),
    "mask ^ mask": (lambda u: (u > 0.5) ^ (u > 0.7), lambda u: (u > 0.5) ^ (u > 0.7)),
    "True ^ mask": (lambda u: True ^ (u > 0.5), lambda u: u <= 0.5),
    "u += 1": (lambda u: grown(u), lambda u: u + 1),
    "2 ** u": (lambda u: 2**u, lambda u: 2**u),
    "0-d": (lambda u: u * np.array(3), lambda u: u * 3),
    "np.int8": (lambda u: np.int8(3) * u, lambda u: u * 3),
    "fraction": (lambda u: fractions.Fraction(1, 4) * u, lambda u: u / 4),
    "sum of a list": (lambda u: sum([u, u]), lambda u: u + u),
    "abs": (lambda u: abs(u - 0.5), lambda u: abs(u - 0.5)),
    "copies": (lambda u: copy.deepcopy(u) + copy.copy(u), lambda u: u + u),
}


def grown(u: Any) -> Any:
    u += 1
    return u


@pytest.mark.parametrize(("recorded", "numpy"), WORK.values(), ids=list(WORK))
def test_what_a_formula_can_do(recorded: Callable[[Any], Any], numpy: Callable[[Any], Any]) -> None:
    w = np.random.default_rng(2).random(30) + 0.1
    sim = ab.stencil(1, boundary="mirror")(lambda u: recorded(u)).start(u=w, backend="cpu")
    sim.run(1)
    assert np.allclose(sim["u"], numpy(w), rtol=1e-15)


FOURS = [np.int64(4), np.int8(4), np.int32(4), np.array(4)]


@pytest.mark.parametrize("four", FOURS, ids=lambda four: type(four).__name__)
def test_whole_numbers_of_numpy_are_whole_numbers(four: Any, tmp_path: Path) -> None:
    program = ab.stencil(np.int64(1))(lambda u, w=ab.field(components=four): {"u": u + u[four - 4]})
    sim = program.start(
        u=1.0,
        w=0.0,
        shape=four,
        record=four,
        depth=four,
        devices=1,
        probes=[("u", [four - 1])],
        backend="cpu",
    )
    assert sim.shape == (4,) and sim.run(four, seconds=np.float32(60)).steps == 4
    assert program.start(u=1.0, w=0.0, shape=(four,), backend="cpu", devices=np.int64(1)).shape == (4,)
    assert [frame.step for frame in sim.frames(four, every=four - 2, progress=False)] == [6, 8]
    assert sim.movie(four, every=four, progress=False)
    assert ab.plan("heat", (400, int(four) * 100), device="a100", devices=four - 3).depth >= 1
    assert ab.gmres(np.eye(4), np.ones(4), restart=four, maxiter=four, backend="cpu")[1] == 0
    ab.stencil(1)(lambda u: u.along(four - 4, four - 3) + ab.coord(four - 4))
    ab.program(1)(lambda u: ab.stage({"u": u}, points=[(four,)]))
    assert ab.GridOperator({(four - 5,): -1, (four - 4,): 3.0, (four - 3,): -1}, (four,)).shape == (4, 4)


def test_shapes_are_whole() -> None:
    for shape in [(4.7,), 4.7, (4.0,), "64", ("64",), (True,), (np.float64(8),), (None,), [[4]], {"x": 4}]:
        with pytest.raises(ab.Invalid, match="is no shape; give whole numbers"):
            heat().start(u=1.0, shape=shape, backend="cpu")  # type: ignore[arg-type]
    with pytest.raises(ab.Invalid, match="probes: 1.5 is no whole number"):
        heat().start(u=1.0, shape=8, probes=[("u", (1.5,))], backend="cpu")
    with pytest.raises(ab.Invalid, match="points: 1.5 is no whole number"):
        ab.program(1)(lambda u: ab.stage({"u": u}, points=[(1.5,)]))
    with pytest.raises(ab.Invalid, match="restart: 2.5 is no whole number"):
        gmres(restart=2.5)


def test_probes_may_be_a_dict() -> None:
    for probes in [{"u": (3,)}, {"u": 3}, {"u": [(3,), (4,)]}, [("u", 3)]]:
        sim = heat().start(u=np.arange(8.0), record=1, probes=probes, backend="cpu")
        sim.run(1)
        assert sim.records()["u@3"][0] == 3.0
