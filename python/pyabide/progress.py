"""Bars that show how far a run is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Protocol

__all__ = ["Bar", "of_frames", "of_run"]

_WIDTH = 30
"""Letters of the bar itself."""
_PAUSE = 0.1
"""Seconds between two looks of the bar at the least."""
_QUIET = 1.0
"""Seconds that a run lasts before a bar nobody asked for appears."""


class Bar(Protocol):
    """What shows the steps done."""

    def update(self, steps: int) -> object:
        """Adds steps."""

    def set_postfix_str(self, text: str, refresh: bool = True) -> object:
        """Sets what stands behind the bar."""

    def close(self) -> object:
        """Ends the bar."""


class Line:
    """A bar on a line of the terminal: ``42 %|████      | 420/1000 steps, 3 s left``."""

    def __init__(self, total: int, quiet: float = 0.0) -> None:
        self._total, self._done, self._after = total, 0, ""
        self._begun = time.monotonic()
        self._next = self._begun + quiet
        self._length = 0

    def update(self, steps: int) -> None:
        self._done += steps
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PAUSE
            self._show(now)

    def to(self, done: int) -> None:
        """Sets the steps done."""
        self.update(done - self._done)

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self._after = f", {text}"

    def _show(self, now: float) -> None:
        share = min(1.0, self._done / self._total) if self._total else 1.0
        took = now - self._begun
        left = f", {took / share - took:.0f} s left" if 0 < share < 1 else f", {took:.1f} s"
        bar = ("█" * round(share * _WIDTH)).ljust(_WIDTH)
        self._write(f"{share:4.0%}|{bar}| {self._done}/{self._total} steps{left}{self._after}")

    def _write(self, line: str) -> None:
        padded = line.ljust(self._length)
        self._length = len(line)
        try:
            sys.stderr.write(f"\r{padded}")
            sys.stderr.flush()
        except (OSError, ValueError, UnicodeError):
            # A run goes on where nobody looks any more.
            self._next = float("inf")

    def close(self) -> None:
        if self._length:
            self._show(time.monotonic())
            self._write_end()

    def _write_end(self) -> None:
        try:
            sys.stderr.write("\n")
        except (OSError, ValueError):
            pass

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def of_run(total: int, progress: bool | None) -> Line | None:
    """Returns the bar of a run: where it is wanted, or where nothing is said and a terminal is looked at, of a run that
    takes longer."""
    if progress or (progress is None and _is_terminal()):
        return Line(total, 0.0 if progress else _QUIET)
    return None


def of_frames(total: int, progress: bool | None) -> Bar | None:
    """Returns the bar of a run by frames: tqdm's where it is installed, which notebooks show too."""
    if progress is False:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return of_run(total, progress)
    bar: Bar = tqdm(total=total, unit="step")
    return bar


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
