//! Operators and functions on [`Expr`].

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{Binary, Expr, Node, Unary};

/// A value that can stand in a formula: an expression or a number.
pub trait IntoExpr<'g> {
    /// Returns the operand as an expression of `peer`'s graph.
    fn beside(self, peer: Expr<'g>) -> Expr<'g>;
}

impl<'g> IntoExpr<'g> for Expr<'g> {
    fn beside(self, _: Expr<'g>) -> Expr<'g> {
        self
    }
}

impl<'g> IntoExpr<'g> for f64 {
    fn beside(self, peer: Expr<'g>) -> Expr<'g> {
        peer.graph.constant(self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<'g, R: IntoExpr<'g>> $trait<R> for Expr<'g> {
            type Output = Expr<'g>;
            fn $method(self, right: R) -> Expr<'g> {
                self.binary(Binary::$op, right)
            }
        }
        impl<'g> $trait<Expr<'g>> for f64 {
            type Output = Expr<'g>;
            fn $method(self, right: Expr<'g>) -> Expr<'g> {
                self.beside(right).binary(Binary::$op, right)
            }
        }
    )*};
}

operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl<'g> Neg for Expr<'g> {
    type Output = Expr<'g>;
    fn neg(self) -> Expr<'g> {
        self.unary(Unary::Neg)
    }
}

impl<'g> Expr<'g> {
    pub(crate) fn unary(self, op: Unary) -> Expr<'g> {
        self.graph.computed(Node::Unary(op, self.id))
    }

    pub(super) fn binary(self, op: Binary, right: impl IntoExpr<'g>) -> Expr<'g> {
        let right = right.beside(self);
        self.graph.computed(Node::Binary(op, self.id, right.id))
    }

    /// Returns `self * a + b`, rounded once.
    pub fn mul_add(self, a: impl IntoExpr<'g>, b: impl IntoExpr<'g>) -> Expr<'g> {
        let (a, b) = (a.beside(self), b.beside(self));
        self.graph.computed(Node::Fma(self.id, a.id, b.id))
    }

    /// Returns `yes` if this is not zero (a NaN is not zero), else `no`.
    pub fn select(self, yes: impl IntoExpr<'g>, no: impl IntoExpr<'g>) -> Expr<'g> {
        let (yes, no) = (yes.beside(self), no.beside(self));
        self.graph.computed(Node::Select(self.id, yes.id, no.id))
    }

    /// Returns a whole power as multiplications from the left, `x * x * x`; 1 over it where the power is negative.
    pub fn powi(self, power: i32) -> Expr<'g> {
        if power == 0 {
            return self.graph.constant(1.0);
        }
        let product = (1..power.unsigned_abs()).fold(self, |product, _| product * self);
        if power < 0 { 1.0 / product } else { product }
    }

    /// Returns the square, as one multiplication.
    pub fn squared(self) -> Expr<'g> {
        self * self
    }
}
