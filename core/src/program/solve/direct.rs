//! A separable system solved directly: transforms along all axes make the operator a division, and transforms back the solution.
//!
//! What the matrices' rounding leaves is solved for again until the residual is as small as asked, or no longer falls. It begins from
//! zeros: a first guess would save nothing.

use super::{Definition, Expr, Matrix, Scope, Step, System};

/// Amplitudes of modes, on the way from defect to correction.
const AMPLITUDES: [&str; 2] = ["amplitudes", "waves"];
/// The factors of one axis, and the reciprocals of their sums.
const FACTORS: &str = "factors";
const INVERSE: &str = "of_factors";
/// The shares of cells in the mean that the operator cannot make.
const SHARES: &str = "shares";

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
        let shares = self.system.how.null_space.then_some(&SHARES);
        for what in AMPLITUDES.iter().take(self.dimensions.min(2)).chain(&[FACTORS, INVERSE]).chain(shares) {
            let name = self.system.name(what);
            p.correction(&name, self.system.unknown).internal(&name);
        }
    }

    /// Returns the first field of the solve, which says whether they are declared.
    pub fn first(&self) -> String {
        self.system.name(INVERSE)
    }

    fn transform(&self, step: &mut Step<'_>, [target, of]: [&str; 2], (axis, matrix): (usize, Matrix)) {
        let [target, of] = [target, of].map(|what| self.system.name(what));
        step.transform(&target, &of, axis, matrix, |s| self.system.applied(s, &self.system.name("defect")));
    }

    /// Makes the reciprocals of the operator's factors, 0 where one is 0, and the shares of the mean.
    pub fn set_up(&self, step: &mut Step<'_>) {
        let system = self.system;
        let shares = system.how.null_space.then_some((SHARES, Matrix::Shares));
        for (all, matrix) in [(INVERSE, Matrix::Values)].into_iter().chain(shares) {
            for axis in 0..self.dimensions {
                step.make(system, FACTORS, |s| s.constant(1.0));
                self.transform(step, [FACTORS, FACTORS], (axis, matrix));
                let is_last = axis + 1 == self.dimensions;
                step.make(system, all, |s| {
                    let (before, own) = (system.here(s, all), system.here(s, FACTORS));
                    let value = match (axis, matrix) {
                        (0, _) => own,
                        (_, Matrix::Values) => before + own,
                        _ => before * own,
                    };
                    let is_inverse = is_last && matrix == Matrix::Values;
                    if is_inverse { value.ne(0.0).select(1.0 / value, 0.0) } else { value }
                });
            }
        }
    }

    /// Solves for the correction `direction` of the defect.
    pub fn solve(&self, step: &mut Step<'_>) {
        let axes = (0..self.dimensions).rev();
        let there = axes.clone().map(|axis| (axis, Matrix::Forward));
        let back = axes.rev().map(|axis| (axis, Matrix::Backward));
        let mut from = "defect";
        for (turn, transform) in there.chain(back).enumerate() {
            let target = match turn + 1 == 2 * self.dimensions {
                true => "direction",
                false => AMPLITUDES[turn % 2],
            };
            self.transform(step, [target, from], transform);
            from = target;
            if turn + 1 == self.dimensions {
                step.make(self.system, from, |s| self.system.here(s, from) * self.system.here(s, INVERSE));
            }
        }
    }
}

impl Step<'_> {
    pub(super) fn direct(&mut self, system: &System<'_>) {
        let name = |what: &str| system.name(what);
        let modes = Modes::new(system, self.definition.dimensions());
        let (unknown, enough) = (system.unknown, system.how.tolerance * system.how.tolerance);
        // What the operator cannot make the modes leave out; it does not count for the residual.
        fn without_mean<'g>(system: &System<'_>, s: &Scope<'g>, value: Expr<'g>) -> Expr<'g> {
            if system.how.null_space { value - system.param(s, "mean") } else { value }
        }
        self.keep_before(system);
        self.stage(unknown, |s| s.set(unknown, s.constant(0.0)));
        self.make(system, "defect", |s| system.defect(s));
        if system.how.null_space {
            self.sum(system, "mean", |s| system.here(s, SHARES) * system.here(s, "defect"));
        }
        self.sum(system, "squares", |s| {
            let defect = without_mean(system, s, system.here(s, "defect"));
            defect * defect
        });
        self.compute(&name("rho"), |s| system.param(s, "squares").gt(0.0).select(s.constant(1.0), 0.0));
        self.find_scale(system);
        for (scalar, value) in [("length", 1.0), ("next", 1.0), ("iterations", 0.0)] {
            self.compute(&name(scalar), |s| s.constant(value));
        }
        self.repeat(system.how.most, Some(&format!("{} <= 0", name("rho"))), |turn| {
            modes.solve(turn);
            turn.stage(unknown, |s| {
                let change = system.param(s, "length") * system.here(s, "direction");
                s.set(unknown, s.field(unknown).here() + change);
            });
            turn.make(system, "defect", |s| {
                without_mean(system, s, system.defect(s)) / system.param(s, "scale")
            });
            turn.sum_of_squares(system);
            turn.compute(&name("rho"), |s| {
                let squares = system.param(s, "squares");
                let falls = squares.lt(0.01 * system.param(s, "next")).select(s.constant(1.0), 0.0);
                squares.le(enough).select(s.constant(0.0), falls)
            });
            turn.compute(&name("next"), |s| system.param(s, "squares"));
            // Later defects are in units of the right-hand side's norm.
            turn.compute(&name("length"), |s| system.param(s, "scale"));
            turn.count(system);
        });
        self.compute(&name("residual"), |s| system.param(s, "squares").sqrt());
    }
}
