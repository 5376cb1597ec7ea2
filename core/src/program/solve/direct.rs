//! A separable system solved directly: transforms along all axes make the operator a division, and transforms back the solution.
//!
//! What the matrices' rounding leaves is solved for again until the residual is as small as asked, or no longer falls.

use super::{Definition, Expr, Matrix, Scope, Step, System};

/// Amplitudes of modes, on the way from defect to correction.
const AMPLITUDES: [&str; 2] = ["amplitudes", "waves"];
/// The factors of one axis, and the reciprocals of their sums.
const FACTORS: &str = "factors";
const INVERSE: &str = "of_factors";

/// The transforms of a system.
pub(super) struct Modes<'s, 'a> {
    system: &'s System<'a>,
    dimensions: usize,
}

impl<'s, 'a> Modes<'s, 'a> {
    pub fn new(system: &'s System<'a>, dimensions: usize) -> Self {
        Modes { system, dimensions }
    }

    /// Declares the fields.
    pub fn declare(&self, p: &mut Definition) {
        for what in AMPLITUDES.iter().take(self.dimensions.min(2)).chain(&[FACTORS, INVERSE]) {
            let name = self.system.name(what);
            p.correction(&name, self.system.unknown).internal(&name);
        }
    }

    /// Returns the first field of the solve, which says whether they are declared.
    pub fn first(&self) -> String {
        self.system.name(INVERSE)
    }

    fn transform(
        &self,
        step: &mut Step<'_>,
        target: &str,
        (axis, matrix): (usize, Matrix),
        values: impl for<'g> Fn(&Scope<'g>) -> Expr<'g>,
    ) {
        step.transform(&self.system.name(target), axis, matrix, |s| {
            [values(s), self.system.applied(s, &self.system.name("defect"))]
        });
    }

    /// Makes the reciprocals of the operator's factors, 0 where one is 0.
    pub fn set_up(&self, step: &mut Step<'_>) {
        let system = self.system;
        for axis in 0..self.dimensions {
            self.transform(step, FACTORS, (axis, Matrix::Values), |s| s.constant(1.0));
            let is_last = axis + 1 == self.dimensions;
            step.stage(&system.name(INVERSE), |s| {
                let own = system.here(s, FACTORS);
                let sum = if axis == 0 { own } else { system.here(s, INVERSE) + own };
                let value = if is_last { sum.ne(0.0).select(1.0 / sum, 0.0) } else { sum };
                s.set(&system.name(INVERSE), value);
            });
        }
    }

    /// Solves for the correction `direction` of the defect.
    pub fn solve(&self, step: &mut Step<'_>) {
        let axes = (0..self.dimensions).rev();
        let there = axes.clone().map(|axis| (axis, Matrix::Forward));
        let back = axes.rev().map(|axis| (axis, Matrix::Backward));
        let mut from = "defect";
        for (turn, (axis, matrix)) in there.chain(back).enumerate() {
            let target = match turn + 1 == 2 * self.dimensions {
                true => "direction",
                false => AMPLITUDES[turn % 2],
            };
            self.transform(step, target, (axis, matrix), |s| {
                let value = self.system.here(s, from);
                if turn == self.dimensions { value * self.system.here(s, INVERSE) } else { value }
            });
            from = target;
        }
    }
}

impl Step<'_> {
    pub(super) fn direct(&mut self, system: &System<'_>) {
        let name = |what: &str| system.name(what);
        let modes = Modes::new(system, self.definition.dimensions());
        let (unknown, enough) = (system.unknown, system.how.tolerance * system.how.tolerance);
        // It begins from zeros, of which the defect is the right-hand side itself.
        self.compute(&name("length"), |s| s.constant(1.0));
        self.compute(&name("next"), |s| s.constant(1.0));
        self.compute(&name("rho"), |s| system.param(s, "squares").gt(0.0).select(s.constant(1.0), 0.0));
        self.repeat(system.how.most, Some(&format!("{} <= 0", name("rho"))), |turn| {
            modes.solve(turn);
            turn.stage(unknown, |s| {
                let change = system.param(s, "length") * system.here(s, "direction");
                s.set(unknown, s.field(unknown).here() + change);
            });
            turn.make_defect(system, true);
            turn.compute(&name("rho"), |s| {
                let squares = system.param(s, "squares");
                let falls = squares.lt(0.25 * system.param(s, "next")).select(s.constant(1.0), 0.0);
                squares.le(enough).select(s.constant(0.0), falls)
            });
            turn.compute(&name("next"), |s| system.param(s, "squares"));
            // Later defects are in units of the right-hand side's norm.
            turn.compute(&name("length"), |s| system.param(s, "scale"));
            turn.count(system);
        });
    }
}
