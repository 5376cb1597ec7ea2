"""Divergences of fluxes in sympy's expressions: found, kept whole, and gathered where a product rule took them apart."""

from __future__ import annotations

from typing import Any

__all__ = ["divergences"]


def divergences(sympy: Any, e: Any) -> Any:
    """Returns an expression whose derivatives are those of functions and of whole fluxes.

    ``Derivative(k*Derivative(u, x), x)`` stays as it is, where sympy's ``doit`` would write the product rule. Sums and
    constant factors leave derivatives, because the differences are linear. What the product rule made of a
    flux, as ``(k*u.diff(x)).diff(x)`` does, is gathered again.
    """
    if not e.args or isinstance(e, sympy.core.function.AppliedUndef):
        return e
    if isinstance(e, sympy.Derivative):
        return _derivative(sympy, divergences(sympy, e.expr), e.variable_count)
    if not e.has(sympy.Derivative):
        return e.doit()
    if isinstance(e, (sympy.Integral, sympy.Subs)):
        return divergences(sympy, e.doit())
    own = e.func(*(divergences(sympy, part) for part in e.args))
    return _gathered(sympy, own) if own.is_Add else own


def _derivative(sympy: Any, e: Any, counts: Any) -> Any:
    """Returns the derivative of an expression, linear parts taken out of it."""
    if not e.has(sympy.core.function.AppliedUndef):
        return sympy.diff(e, *counts)
    if e.is_Add:
        return sympy.Add(*(_derivative(sympy, part, counts) for part in e.args))
    if e.is_Mul:
        variables = {variable for variable, _ in counts}
        constant, rest = e.as_independent(*variables, sympy.core.function.AppliedUndef, as_Add=False)
        if constant != 1:
            return constant * _derivative(sympy, rest, counts)
    return sympy.Derivative(e, *counts)


def _gathered(sympy: Any, e: Any) -> Any:
    """Returns a sum in which ``k*u_xx + k_x*u_x`` is ``(k*u_x)_x``, for each such pair."""
    others = [part for part in e.args if not part.has(sympy.Derivative)]
    slopes = sympy.Add(*(sympy.expand_mul(part, deep=False) for part in e.args if part.has(sympy.Derivative)))
    terms = dict(slopes.as_coefficients_dict())
    found = []
    for term in sorted(terms, key=sympy.default_sort_key):
        for inner, variable, factor in _lowered(sympy, term):
            factor = factor * terms.get(term, 0)
            slope = sympy.diff(factor, variable)
            partners = sympy.expand_mul(slope * inner).as_coefficients_dict()
            whole = all(key != term and _holds(terms.get(key, 0), partners[key]) for key in partners)
            if slope == 0 or not whole:
                continue
            del terms[term]
            for key, amount in partners.items():
                terms[key] -= amount
            found.append(_derivative(sympy, factor * inner, [(variable, 1)]))
    if not found:
        return e
    return sympy.Add(*others, *found, *(amount * term for term, amount in terms.items() if amount != 0))


def _holds(amount: Any, part: Any) -> bool:
    return bool(amount != 0 and part / amount > 0 and abs(part) <= abs(amount))


def _lowered(sympy: Any, term: Any) -> list[tuple[Any, Any, Any]]:
    """Returns each way to see a term as a factor times the derivative along a variable of a lower derivative."""
    ways = []
    for factor in sympy.Mul.make_args(term):
        if isinstance(factor, sympy.Derivative) and factor.derivative_count > 1:
            rest = term / factor
            for at, (variable, count) in enumerate(factor.variable_count):
                left = [*factor.variable_count[:at], (variable, count - 1), *factor.variable_count[at + 1 :]]
                left = [own for own in left if own[1] != 0]
                ways.append((sympy.Derivative(factor.expr, *left), variable, rest))
    return ways
