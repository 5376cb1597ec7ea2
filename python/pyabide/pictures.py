"""Pictures and movies as bytes that notebooks show."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from . import _pyabide
from .errors import FileError, Invalid

__all__ = ["Movie", "Picture"]


class Picture(bytes):
    """A picture: the bytes of a .png file."""

    __slots__ = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture to a file."""
        _save(self, path)

    def _repr_png_(self) -> bytes:
        return bytes(self)

    def __repr__(self) -> str:
        return f"<picture, {len(self)} bytes>"


class Movie(bytes):
    """A movie: the bytes of a .gif file."""

    __slots__ = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the movie to a file."""
        _save(self, path)

    def _repr_html_(self) -> str:
        return f'<img src="data:image/gif;base64,{base64.b64encode(self).decode()}">'

    def __repr__(self) -> str:
        return f"<movie, {len(self)} bytes>"


def _save(data: bytes, path: str | PathLike[str]) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}; give a file that can be written") from None


def picture(values: Any, range: tuple[float, float] | None) -> Picture:
    """Returns the picture of an array."""
    return Picture(_pyabide.png(values, _checked(range)))


def movie(frames: Iterable[Any], range: tuple[float, float] | None) -> Movie:
    """Returns the movie of arrays of one shape."""
    made: _pyabide.Movie | None = None
    for values in frames:
        if made is None:
            made = _pyabide.Movie(list(values.shape), _checked(range))
        made.add(values)
    if made is None:
        raise Invalid("a movie of no frames: ask for at least one step")
    return Movie(made.finish())


def _checked(range: tuple[float, float] | None) -> tuple[float, float] | None:
    if range is None:
        return None
    try:
        low, high = range
        return float(low), float(high)
    except (TypeError, ValueError):
        raise Invalid(f"range: {range!r} is no pair of numbers; give (low, high)") from None
