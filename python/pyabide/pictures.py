"""Pictures and movies as bytes that notebooks show."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from . import _pyabide
from .arguments import number_of, path_of
from .errors import FileError, Invalid

__all__ = ["Movie", "Picture"]


class Picture(bytes):
    """A picture: the bytes of a .png file."""

    __slots__ = ()

    def __new__(cls, data: Any = b"") -> Picture:
        """Makes a picture of the bytes of a .png file."""
        return super().__new__(cls, _bytes(data))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture to a file, whose name ends in .png; raises ``ab.Invalid`` where it says otherwise."""
        _save(self, path, ".png", "a picture")

    def _repr_png_(self) -> bytes:
        return bytes(self)

    def __repr__(self) -> str:
        return f"<picture, {len(self)} bytes>"


class Movie(bytes):
    """A movie: the bytes of a .gif file."""

    __slots__ = ()

    def __new__(cls, data: Any = b"") -> Movie:
        """Makes a movie of the bytes of a .gif file."""
        return super().__new__(cls, _bytes(data))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the movie to a file, whose name ends in .gif; raises ``ab.Invalid`` where it says otherwise."""
        _save(self, path, ".gif", "a movie")

    def _repr_html_(self) -> str:
        return f'<img src="data:image/gif;base64,{base64.b64encode(self).decode()}">'

    def __repr__(self) -> str:
        return f"<movie, {len(self)} bytes>"


def _bytes(data: Any) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise Invalid(f"{data!r}: it is no bytes of a file; sim.png(…) and sim.movie(…) make them")
    return bytes(data)


def _save(data: bytes, path: str | PathLike[str], ending: str, what: str) -> None:
    own = Path(path_of(path))
    if own.suffix.lower() != ending:
        others = "" if ending != ".gif" else "; pictures of single steps make other films, as frame.png(…) of sim.frames"
        raise Invalid(f"{own}: {what} is written as {ending}, and the name says otherwise; name it {own.stem}{ending}{others}")
    try:
        own.write_bytes(data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileError(f"{own}: {reason}; give a file that can be written") from None


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
        return number_of("range", low), number_of("range", high)
    except (TypeError, ValueError):
        raise Invalid(f"range: {range!r} is no pair of numbers; give (low, high)") from None
