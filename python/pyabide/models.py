"""Model files: programs as text, as ``abide run model.toml`` takes them."""

from __future__ import annotations

from os import PathLike
from typing import Any

from . import _pyabide
from .arguments import path_of, text_of
from .programs import Program

__all__ = ["load", "loads"]


def load(path: str | PathLike[str]) -> Program:
    """Reads a model file: a program as text, in TOML.

    What its table ``run`` says of extents, type, boundary, parameters, backend and end is taken where ``start``
    says nothing else::

        sim = ab.load("spots.toml").start(backend="cpu")

    The language is described in docs/models. Faults are ``ab.Invalid``, with line and column.
    """
    return _program(*_pyabide.load(path_of(path)))


def loads(text: str, source: str = "model") -> Program:
    """Reads the text of a model file; ``source`` names it in errors."""
    own, name = text_of("text", text, "ab.loads(program.text())"), text_of("source", source, '"model"')
    return _program(*_pyabide.loads(own, name))


def _program(core: _pyabide.Program, options: list[str]) -> Program:
    defaults: dict[str, Any] = {}
    parameters: dict[str, float] = {}
    for option in options:
        name, _, value = option.removeprefix("--").partition("=")
        match name:
            case "size":
                defaults["shape"] = tuple(int(extent) for extent in value.split("x"))
            case "dtype":
                defaults["dtype"] = {"f32": "float32", "f64": "float64"}.get(value, value)
            case "boundary" | "until" | "backend":
                defaults[name] = value
            case "param":
                parameter, _, number = value.partition("=")
                parameters[parameter] = float(number)
            # The others say what the command writes, and when.
    return Program.of_text(core, parameters, defaults, options)
