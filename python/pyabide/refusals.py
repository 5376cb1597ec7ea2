"""What a formula cannot do while it is recorded, and what to write in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from .errors import Invalid

__all__ = ["Refusals"]

_NUMBER = (
    "it has no value while it is recorded, so it is no number for Python's own functions; use ab.sqrt, "
    "ab.exp and the like"
)
_REMAINDER = "there is no remainder; write a - b * ab.floor(a / b)"
_SHIFT = "it has no bits to shift; write a product, as in 2 * u"
_ELEMENTS = (
    "it holds no elements; a field has one value a cell, and neighbours by their offsets, as in u[-1, 0]"
)
_ASSIGNED = (
    "no value is assigned to while it is recorded; return the new value, or choose among two by ab.where"
)


def _refused(words: str) -> Any:
    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise Invalid(f"a formula: {words}")

    return refuse


class NoAttribute(Invalid, AttributeError):
    """A formula has no such attribute."""


class Refusals:
    """Python's methods that a formula refuses in words."""

    __slots__ = ()

    __bool__ = _refused(
        "it is neither true nor false while it is recorded, so `if`, `and`, `or` and `not` cannot ask it; "
        "write ab.where(condition, yes, no), and & | ~ between comparisons"
    )
    __float__ = _refused(_NUMBER)
    __int__ = _refused(_NUMBER)
    __complex__ = _refused(_NUMBER)
    __index__ = _refused("it has no value while it is recorded, so it is no index; offsets are whole numbers")
    __round__ = _refused("it is no number for Python to round; write ab.floor(u + 0.5)")
    __trunc__ = _refused("it is no number for Python to round; write ab.floor(u)")
    __mod__ = _refused(_REMAINDER)
    __rmod__ = _refused(_REMAINDER)
    __divmod__ = _refused("there is no remainder; write ab.floor(a / b), and a - b * ab.floor(a / b)")
    __rdivmod__ = _refused("there is no remainder; write ab.floor(a / b), and a - b * ab.floor(a / b)")
    __matmul__ = _refused("there is no product of matrices; write the sum of its products")
    __rmatmul__ = _refused("there is no product of matrices; write the sum of its products")
    __lshift__ = _refused(_SHIFT)
    __rlshift__ = _refused(_SHIFT)
    __rshift__ = _refused(_SHIFT)
    __rrshift__ = _refused(_SHIFT)
    __array__ = _refused(
        "it is no array while it is recorded; use its operators, ab.where, ab.sqrt and the like"
    )
    __iter__ = _refused("it cannot be walked through; name the neighbours by their offsets, as in u[-1, 0]")
    __contains__ = _refused(_ELEMENTS)
    __len__ = _refused(_ELEMENTS)
    __setitem__ = _refused(_ASSIGNED)
    __delitem__ = _refused(_ASSIGNED)
    __call__ = _refused("it is no function; multiplication is written u * (…), and a neighbour u[-1, 0]")
    __reduce_ex__ = _refused(
        "it lives while its function is recorded, and cannot be pickled; pickle the program"
    )

    if not TYPE_CHECKING:  # for checkers, it has no such attribute at all

        def __getattr__(self, name: str) -> NoReturn:
            # Packages look for methods of these names, and do without.
            if name.startswith("__"):
                raise AttributeError(name)
            raise NoAttribute(
                f"a formula: it has no {name}, because it is no array while it is recorded; use its operators, "
                "ab.where, ab.sqrt and the like, and ab.extent for the domain's cells"
            )

    def __hash__(self) -> int:
        raise Invalid(
            "a formula: it is no key of a dict or set; write the field's name, as in {\"u\": …}"
        )

    def __copy__(self) -> Refusals:
        return self

    def __deepcopy__(self, _: Any) -> Refusals:
        return self
