"""What is recorded: functions, partial ones, objects that are called; and what a program keeps of them."""

import copy
import functools
import inspect
import itertools
import multiprocessing
import pickle
import random as stdlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyabide as ab

RNG = np.random.default_rng(1)
OLD = np.random.RandomState(1)
PYTHONS = stdlib.Random(1)


def plain(u, kappa=0.1):  # type: ignore[no-untyped-def]
    """Heat, explicitly."""
    return u + kappa * (u[-1] - 2 * u + u[1])


class Called:
    """Heat as an object."""

    def __init__(self, power: int) -> None:
        self.power = power

    def __call__(self, u: Any, kappa: Any = 0.1) -> Any:
        return u + kappa**self.power * (u[-1] - 2 * u + u[1])

    def method(self, u: Any, kappa: Any = 0.1) -> Any:
        return self(u, kappa)


def weighted(weights, u, kappa=0.1):  # type: ignore[no-untyped-def]
    return u + kappa * (weights[0] * u[-1] + weights[1] * u + weights[2] * u[1])


def keyword_only(u, *, kappa=0.1):  # type: ignore[no-untyped-def]
    return plain(u, kappa)


def stages(u, *, kappa=0.1):  # type: ignore[no-untyped-def]
    yield {"u": plain(u, kappa)}


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "function": (plain, "plain"),
    "object": (Called(1), "Called"),
    "method": (Called(1).method, "method"),
    "partial": (functools.partial(weighted, (1, -2, 1)), "weighted"),
    "partial by name": (functools.partial(plain, kappa=0.1), "plain"),
    "partial of partial": (functools.partial(functools.partial(weighted, (1, -2, 1)), kappa=0.1), "weighted"),
    "partial of an object": (functools.partial(Called(1), kappa=0.1), "Called"),
    "keyword only": (keyword_only, "keyword_only"),
    "cached": (functools.wraps(plain)(lambda u, kappa=0.1: plain(u, kappa)), "plain"),
    "lambda": (lambda u, kappa=0.1: plain(u, kappa), "<lambda>"),
}


@pytest.mark.parametrize(("function", "name"), FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_what_can_be_called_can_be_recorded(function: Any, name: str) -> None:
    for record in (ab.stencil, ab.program):
        program = record(1, boundary="mirror")(function)
        assert program.name == name and program.fields == ("u",) and program.parameters == {"kappa": 0.1}
        w = np.random.default_rng(1).random(20)
        sim = program.start(u=w, kappa=0.2, backend="cpu")
        sim.run(1)
        p = np.pad(w, 1, mode="symmetric")
        assert np.allclose(sim["u"], w + 0.2 * (p[:-2] - 2 * w + p[2:]), rtol=1e-14)


def test_generators_may_be_partial_too() -> None:
    program = ab.program(1)(functools.partial(stages, kappa=0.3))
    assert program.name == "stages" and program.parameters == {"kappa": 0.3}


async def waits(u):  # type: ignore[no-untyped-def]
    return u


async def waits_often(u):  # type: ignore[no-untyped-def]
    yield u


class Stages:
    def __call__(self, u: Any) -> Any:
        yield {"u": u}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (5, "5 is no function"),
        ("u + 1", "is no function"),
        (None, "is no function"),
        (waits, "it is asynchronous"),
        (waits_often, "it is asynchronous"),
        (Stages(), "what yields stages is made by @ab.program"),
        (functools.partial(stages), "what yields stages is made by @ab.program"),
        (dict, "dict: "),
        (np.sin, "sin: "),
        (max, "max: its arguments are not known"),
        (ab.stencil(1)(plain), "it is recorded already; start it by plain.start"),
        (lambda u, **more: u, "stands for many"),
        (lambda u, k=None: u, "k has the default None"),
        (lambda u, by_name=1.0: u, "by_name is an argument of start"),
    ],
)
def test_what_cannot_be_recorded(function: Any, words: str) -> None:
    with pytest.raises(ab.Invalid) as caught:
        ab.stencil(1)(function)
    assert words in str(caught.value)


def test_a_program_that_never_ends_yielding_is_stopped() -> None:
    def endless(u):  # type: ignore[no-untyped-def]
        for _ in itertools.count():
            yield {"u": u}

    with pytest.raises(ab.Limit, match="it yields more than 4096 stages"):
        ab.program(1)(endless)


def test_docstrings_and_signatures_are_the_functions() -> None:
    program = ab.stencil(1)(plain)
    assert program.__doc__ == "Heat, explicitly." == inspect.getdoc(program)
    assert program.__name__ == program.__qualname__ == "plain" and program.__module__ == __name__  # type: ignore[attr-defined]
    assert list(inspect.signature(program).parameters) == ["u", "kappa"] and inspect.unwrap(program) is plain
    assert ab.stencil(1)(functools.partial(plain, kappa=1.0)).__doc__ == "Heat, explicitly."
    assert ab.stencil(1)(Called(1)).__doc__ == "Heat as an object."


def started(program: ab.Program) -> list[float]:
    sim = program.start(u=np.arange(9.0) ** 2, backend="cpu", feed=0.4, dtype="float32")
    sim.run(3)
    values: list[float] = sim["u"].tolist()
    return values


@ab.program(1, boundary={"x-": "mirror", "x+": 2.0}, until="time >= 2.5")
def kept(u, w=ab.field(start="gaussian"), feed=0.1, dx=2.0, time=ab.scalar(0.0)):  # type: ignore[no-untyped-def]
    yield {"u": u + feed / dx * (u[-1] - 2 * u + u[1]) * w}
    yield {"time": time + 1.0}


def test_programs_are_pickled_with_all_that_they_are() -> None:
    expected = started(kept)
    for again in (pickle.loads(pickle.dumps(kept)), copy.copy(kept), copy.deepcopy(kept)):
        assert (
            again.fields == kept.fields and again.parameters == kept.parameters and again.until == kept.until
        )
        assert started(again) == expected and again.__doc__ == kept.__doc__ and repr(again) == repr(kept)
    text = ab.loads(
        'axes = 1\n[fields]\nu = 0.0\n[parameters]\nk = 0.1\n[run]\nsize = "9"\n[[stages]]\nu = "u + k"\n'
    )
    again = pickle.loads(pickle.dumps(text))
    sim = again.start(k=0.5, backend="cpu")
    sim.run(2)
    assert sim.shape == (9,) and np.array_equal(sim["u"], np.ones(9, "f4"))


def test_programs_go_to_other_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(started, [pickle.loads(pickle.dumps(kept))]) == [started(kept)]


def test_operators_and_values_are_pickled() -> None:
    operator = ab.GridOperator({-1: -1, 0: 2.5, 1: -1}, (50,), boundary="periodic", dtype="f4")
    again = pickle.loads(pickle.dumps(operator))
    assert again.extents == (50,) and again.dtype == np.float32
    assert (again.tocsr() != operator.tocsr()).nnz == 0
    sim = kept.start(u=np.arange(9.0), backend="cpu")
    values = pickle.loads(pickle.dumps(sim.field("u")))
    assert values.name == "u" and values.step == 0 and np.array_equal(values.values, np.arange(9.0))


def test_what_lives_on_a_device_is_not_pickled() -> None:
    sim = kept.start(u=np.arange(9.0), backend="cpu")
    report = sim.run(1)
    frame = next(iter(sim.frames(1, every=1, progress=False)))
    shallow = (pickle.dumps, copy.copy, copy.deepcopy)
    for own, ways, words in [
        (sim, shallow, r"sim.checkpoint\(path\), and go on from it by ab.resume"),
        (frame, (pickle.dumps, copy.deepcopy), "sim.checkpoint"),
        (sim.parameters, (pickle.dumps, copy.deepcopy), "sim.checkpoint"),
        (report, shallow, r"report.to_json\(\)"),
        (sim.plan, shallow, r"plan.to_json\(\)"),
    ]:
        for copied in ways:
            with pytest.raises(ab.Invalid, match=words):
                copied(own)


DRAWS: dict[str, Any] = {
    "np.random": lambda u: u + np.random.normal(),
    "np.random.rand": lambda u: u * np.random.rand(),
    "random": lambda u: u + stdlib.random(),
    "random.gauss": lambda u: u + stdlib.gauss(0, 1),
    "a global generator": lambda u: u + RNG.normal(),
    "a global RandomState": lambda u: u + OLD.normal(),
    "a global Random": lambda u: u + PYTHONS.random(),
    "a generator of its own": lambda u: u + np.random.default_rng(3).normal(),
    "a default": lambda u, k=ab.parameter(1.0), /: u + RNG.integers(1, 5) * k,
    "a closure": (lambda rng: lambda u: u + rng.normal())(np.random.default_rng(1)),
    "a partial": functools.partial(lambda rng, u: u + rng.normal(), np.random.default_rng(1)),
    "within": lambda u: (lambda: u + RNG.normal())(),
}


@pytest.mark.parametrize("function", DRAWS.values(), ids=list(DRAWS))
def test_frozen_random_numbers_are_warned_of(function: Any) -> None:
    with pytest.warns(UserWarning, match="draws random numbers while it is recorded, once") as caught:
        ab.stencil(1)(function)
    assert caught[0].filename == __file__


def test_generators_that_draw_nothing_are_not_warned_of() -> None:
    constants = np.random.default_rng(1).random(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ab.stencil(1)(lambda u: u * constants[0] + (RNG is None) + (np.random is None))


def test_names_of_options_in_model_files_are_never_confused(tmp_path: Path) -> None:
    text = """
axes = 1
[fields]
shape = 0.0
[parameters]
depth = 2.0
[[stages]]
shape = "shape + depth"
"""
    water = ab.loads(text)
    sim = water.start(shape=(5,), by_name={"shape": np.ones(5), "depth": 3.0}, backend="cpu")
    sim.run(1)
    assert np.array_equal(sim["shape"], np.full(5, 4.0)) and sim.parameters["depth"] == 3.0
    with pytest.raises(
        ab.Invalid, match=r'depth is an argument of start.*give the value as by_name=\{"depth": …\}'
    ):
        water.start(by_name={"shape": np.ones(5)}, depth=4, backend="cpu")
    with pytest.raises(ab.Invalid, match="shape is an argument of start"):
        water.start(shape=(5,), backend="cpu")
    with pytest.raises(ab.Invalid, match="it is given twice"):
        kept.start(u=1.0, by_name={"u": 2.0}, shape=(4,))
    for name in ("depth", "record", "cache", "shape", "by_name"):
        with pytest.raises(ab.Invalid, match=f"{name} is an argument of start"):
            exec(f"ab.stencil(1)(lambda {name}: {name})", {"ab": ab})


def test_keys_of_run_that_the_command_refuses_are_refused(tmp_path: Path) -> None:
    text = 'axes = 1\n[fields]\nu = 0.0\n[[stages]]\nu = "u"\n[run]\n{}\n'
    for line, words in [
        ("colour = 1", "no option of the table \\[run\\] is named `colour`"),
        ('sizes = "4"', "`sizes`"),
        ("dtype = 'f16'", "give numpy's float32 or float64"),
    ]:
        with pytest.raises(ab.Error, match=words):
            ab.loads(text.format(line)).start(shape=(4,), backend="cpu")
        path = tmp_path / "model.toml"
        path.write_text(text.format(line))
        with pytest.raises(ab.Error, match=words):
            ab.load(path).start(shape=(4,), backend="cpu")
    assert ab.loads(text.format('steps = 5\noutput = "u.npy"\nlowering = "auto"')).name
