"""Stencils from sympy's equations."""

from __future__ import annotations

from typing import Any

__all__ = ["from_sympy"]


def from_sympy(equations: Any) -> Any:
    raise NotImplementedError
