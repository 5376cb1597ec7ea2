//! Functions that are formulas of operators. The row of a function in the table is all there is of it: it has the bits of its
//! formula on every backend.

use super::{Expr, IntoExpr};

/// A function that is a formula of operators.
pub struct Composed {
    /// The name.
    pub name: &'static str,
    /// The number of its operands.
    pub operands: usize,
    make: for<'g> fn(&[Expr<'g>]) -> Expr<'g>,
}

impl Composed {
    /// Returns the function of a name.
    pub fn named(name: &str) -> Option<&'static Composed> {
        COMPOSED.iter().find(|row| row.name == name)
    }

    /// Returns the function's formula; `None` unless it is given as many operands as it has.
    pub fn of<'g>(&self, operands: &[Expr<'g>]) -> Option<Expr<'g>> {
        (operands.len() == self.operands).then(|| (self.make)(operands))
    }
}

macro_rules! composed {
    ($($(#[$doc:meta])* $name:ident |$x:ident $(, $more:ident)*| $value:expr;)*) => {
        /// All functions that are formulas of operators.
        pub const COMPOSED: &[Composed] = &[$(Composed {
            name: stringify!($name),
            operands: [stringify!($x) $(, stringify!($more))*].len(),
            make: |operands| match operands {
                &[$x $(, $more)*] => $x.$name($($more),*),
                // The number of operands was checked.
                _ => operands[0],
            },
        }),*];

        impl<'g> Expr<'g> {
            $(
                $(#[$doc])*
                pub fn $name(self $(, $more: impl IntoExpr<'g>)*) -> Expr<'g> {
                    let $x = self;
                    $(let $more = $more.beside(self);)*
                    $value
                }
            )*
        }
    };
}

composed! {
    /// 1 for positive values, -1 for negative ones, 0 for zeros.
    sign |x| x.gt(0.0).select(1.0, x.lt(0.0).select(-1.0, x.eq(0.0).select(0.0, x)));
    /// The smallest whole number that is not less.
    ceil |x| -(-x).floor();
    /// The whole number between this and 0 that is nearest to this.
    trunc |x| x.lt(0.0).select(x.ceil(), x.floor());
    /// The nearest whole number, of two equally near ones the even one.
    round |x| {
        let low = x.floor();
        let (part, next) = (x - low, low + 1.0);
        let is_even = (low - 2.0 * (0.5 * low).floor()).eq(0.0);
        let middle = is_even.select(low, next);
        let nearest = part.lt(0.5).select(low, part.gt(0.5).select(next, part.eq(0.5).select(middle, x)));
        // A zero has the sign of what was rounded to it.
        nearest.eq(0.0).select(0.0 * x, nearest)
    };
    /// This where it lies between two bounds, else the nearer of them.
    clip |x, low, high| x.lt(low).select(low, x.gt(high).select(high, x));
    /// Tangent of radians: sine over cosine, within 2.5 units in the last place.
    tan |x| x.sin() / x.cos();
    /// Angle in radians of this sine, within 3 units in the last place.
    asin |x| x.atan2(((1.0 - x) * (1.0 + x)).sqrt());
    /// Angle in radians of this cosine, within 3 units in the last place.
    acos |x| ((1.0 - x) * (1.0 + x)).sqrt().atan2(x);
    /// Angle in radians of this tangent, within 0.96 units in the last place.
    atan |x| x.atan2(1.0);
    /// Hyperbolic sine, within 3 units in the last place.
    sinh |x| {
        let rise = x.abs().expm1();
        let bounded = rise.min(1e16);
        let half = 0.5 * (rise + bounded / (bounded + 1.0));
        x.eq(0.0).select(x, x.lt(0.0).select(-half, half))
    };
    /// Hyperbolic cosine, within 3 units in the last place.
    cosh |x| {
        let rise = x.abs().exp();
        0.5 * (rise + 1.0 / rise)
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Graph;
    use crate::real::Real;

    fn value<T: Real>(row: &Composed, operands: &[f64]) -> T {
        let graph = Graph::new();
        let params: Vec<T> = operands.iter().map(|&x| T::from_f64(x)).collect();
        let given: Vec<Expr<'_>> =
            (0..operands.len()).map(|number| graph.add(crate::expr::Node::Param(number as u16))).collect();
        let dag = graph.dag(&[row.of(&given).unwrap()]);
        let mut values = Vec::new();
        dag.evaluate(&mut values, &params, [0; 3], |_| T::ZERO);
        values[dag.outputs[0] as usize]
    }

    /// Against the machine's library in f64, of the operand as the type has it.
    #[test]
    fn values_are_near_those_of_a_library() {
        type Known = fn(f64) -> f64;
        let known: [(&str, f64, Known); 10] = [
            ("sign", 50.0, |x| if x == 0.0 { 0.0 } else { x.signum() }),
            ("ceil", 50.0, f64::ceil),
            ("trunc", 50.0, f64::trunc),
            ("round", 50.0, f64::round_ties_even),
            ("tan", 1.5, f64::tan),
            ("asin", 1.0, f64::asin),
            ("acos", 1.0, f64::acos),
            ("atan", 50.0, f64::atan),
            ("sinh", 80.0, f64::sinh),
            ("cosh", 80.0, f64::cosh),
        ];
        assert_eq!(known.len() + 1, COMPOSED.len());
        let mut rng = fastrand::Rng::with_seed(7);
        for (name, most, function) in known {
            let row = Composed::named(name).unwrap();
            let exact = ["sign", "ceil", "trunc", "round"].contains(&name);
            let mut worst = [0.0_f64; 2];
            for turn in 0..4000 {
                let x = match turn % 4 {
                    0 => (rng.f64() - 0.5) * 2.0 * most,
                    1 => ((rng.f64() - 0.5) * 2.0 * most).round() * 0.5,
                    2 => (rng.f64() - 0.5) * f64::powi(2.0, -(turn % 40)),
                    _ => [0.0, -0.0, 0.5, 1.0, -1.0, 0.49999999999999994][turn as usize / 4 % 6],
                };
                if x.abs() > most {
                    continue;
                }
                let (double, single) = (value::<f64>(row, &[x]), value::<f32>(row, &[x]));
                let [truth, rounded] = [function(x), function(f64::from(x as f32))];
                if exact {
                    assert_eq!(double.to_bits(), truth.to_bits(), "{name}({x})");
                    continue;
                }
                let units =
                    |error: f64, of: f64, epsilon: f64| error.abs() / (of.abs() * epsilon).max(1e-300);
                worst[0] = worst[0].max(units(double - truth, truth, f64::EPSILON));
                worst[1] = worst[1].max(units(f64::from(single) - rounded, rounded, f32::EPSILON.into()));
            }
            println!("{name}: {worst:?} units of the last place");
            assert!(worst.iter().all(|&worst| worst < 3.0), "{name}: {worst:?}");
        }
    }

    #[test]
    fn what_is_no_number_stays_so() {
        for row in COMPOSED {
            let operands = [f64::NAN, -1.0, 1.0];
            assert!(value::<f64>(row, &operands[..row.operands]).is_nan(), "{}", row.name);
        }
        for (x, clipped) in [(-2.0, -1.0), (0.25, 0.25), (7.0, 1.0)] {
            assert_eq!(value::<f64>(Composed::named("clip").unwrap(), &[x, -1.0, 1.0]), clipped);
        }
        let infinite = |name: &str, x: f64| value::<f64>(Composed::named(name).unwrap(), &[x]);
        assert_eq!(infinite("sinh", f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(infinite("cosh", f64::INFINITY), f64::INFINITY);
        assert!(infinite("asin", 1.5).is_nan() && infinite("acos", -1.5).is_nan());
    }
}
