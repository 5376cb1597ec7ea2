//! Sums over the species of a mixture. All formulas of this crate that run over species are written by these two
//! functions, in the order of the species, one fused multiply-add a species.

use abide_core::Expr;

/// Returns the sum of `x_i w_i` of constant weights; `None` if all of them are 0. Weights of 0 take no operation.
pub fn weighted<'g>(x: &[Expr<'g>], weight: impl Fn(usize) -> f64) -> Option<Expr<'g>> {
    let terms = x.iter().enumerate().map(|(i, &x)| (x, weight(i))).filter(|&(_, weight)| weight != 0.0);
    terms.fold(None, |sum, (x, weight)| {
        Some(match sum {
            None => x * weight,
            Some(sum) => x.mul_add(weight, sum),
        })
    })
}

/// Returns the sum of `x_i y_i`; `None` of no species.
pub fn products<'g>(x: &[Expr<'g>], factor: impl Fn(usize) -> Expr<'g>) -> Option<Expr<'g>> {
    x.iter().enumerate().fold(None, |sum, (i, &x)| {
        Some(match sum {
            None => x * factor(i),
            Some(sum) => x.mul_add(factor(i), sum),
        })
    })
}

/// Returns the value of a polynomial, `c[0] + c[1] x + …`, by Horner's rule.
pub fn polynomial<'g>(x: Expr<'g>, coefficients: &[Expr<'g>]) -> Expr<'g> {
    let mut all = coefficients.iter().rev().copied();
    let last = all.next().unwrap_or_else(|| x.graph().constant(0.0));
    all.fold(last, |sum, coefficient| sum.mul_add(x, coefficient))
}
