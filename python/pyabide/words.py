"""Words that people bring from elsewhere: those that mean the same are taken, others get a hint.

What is near a known word in its letters, or one of another tool's, is suggested by the library's own errors. Here
is what Python says otherwise than the command: numbers instead of words, and the words of numpy and scipy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from .errors import Unknown

__all__ = ["DTYPES", "backend", "boundary", "entry", "start", "unknown"]

DTYPES = {"f32": "float32", "f64": "float64"}

_BOUNDARIES = {
    "wrap": "periodic",
    "grid-wrap": "periodic",
    "symmetric": "mirror",
    "edge": "clamp",
    "nearest": "clamp",
}
"""The words of ``numpy.pad`` and ``scipy.ndimage`` that mean the same."""

_BOUNDARY_HINTS = {
    "constant": '"constant=0", or the number itself',
    "dirichlet": '"dirichlet=0", with the value at the wall, or "fixed", where the outermost cells keep their start',
    "neumann": '"neumann=0", with the slope at the wall, or "mirror", where nothing flows through the side',
    "robin": '"robin=1/1/0", of a u + b du/dn = c at the wall',
    "ones": "1.0",
    "zero": "0.0",
    "zeros": "0.0",
}
_START_HINTS = {
    "gaus": '"gaussian"',
    "gauss": '"gaussian"',
    "one": "1.0",
    "ones": "1.0",
    "zero": "0.0",
    "zeros": "0.0",
}
_BACKEND_HINTS = {"gpu": '"cuda", "wgpu", or "auto", which takes a GPU where there is one'}


def _plain(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())


def unknown(what: str, word: object, known: Iterable[str]) -> Unknown:
    """Returns the error of a name that is not known, with the one that may be meant."""
    names = list(known)
    plain = {_plain(name): name for name in names}
    near = difflib.get_close_matches(_plain(str(word)), plain, n=1, cutoff=0.75)
    meant = f"did you mean `{plain[near[0]]}`? " if near else ""
    return Unknown(f"{what} named `{word}`; {meant}known: {', '.join(names) or 'none'}")


def _hinted(kind: str, word: str, hints: Mapping[str, str]) -> None:
    meant = hints.get(_plain(word))
    if meant is not None:
        raise Unknown(f"no {kind} is named `{word}`; did you mean {meant}?")


def boundary(word: str) -> str:
    """Returns the word of a boundary as Abide has it."""
    plain = word.strip().lower()
    _hinted("boundary", word, _BOUNDARY_HINTS)
    # Names of fields and scalars have large letters and small ones.
    return word if {":", "=", "("} & set(word) else _BOUNDARIES.get(plain, plain)


def start(word: str) -> str:
    """Returns the name of a start as Abide has it."""
    _hinted("start", word, _START_HINTS)
    return word.strip().lower()


def backend(word: str) -> str:
    """Returns the name of a backend as Abide has it."""
    _hinted("backend", word, _BACKEND_HINTS)
    return word.strip().lower()


def entry(word: str, known: Iterable[str]) -> str:
    """Returns the name of an entry of the catalogue that a word is, whatever its case and its dashes."""
    names = list(known)
    same = [name for name in names if _plain(name) == _plain(word)]
    return same[0] if len(same) == 1 and word not in names else word
