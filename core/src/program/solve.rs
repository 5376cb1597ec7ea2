//! Linear systems that a step solves: the unknown is a field, the operator a formula linear in it.
//!
//! A solve is stages and a loop like any others, so that it runs wherever programs do, with the same bits. Its vectors are fields:
//! those that the operator is applied to are *corrections* of the unknown ([`Definition::correction`]), which have its boundaries
//! and conditions at walls without their values, as linear systems need.

mod direct;
mod linear;
mod multigrid;
mod spectrum;

use self::direct::Modes;
use self::multigrid::Grids;
pub(super) use self::spectrum::{Line, Spectrum};
use super::centring::Centring;
use super::definition::Definition;
use super::stencil::Scope;
use super::step::Step;
use super::transform::Matrix;
use super::walls::Follows;
use crate::error::Error;
use crate::expr::{Dag, Expr, Node};
use crate::named::named;
use crate::precision::Precision;
use crate::reduction::Reduction;

/// How a step solves a linear system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solve {
    /// The method.
    pub method: SolveMethod,
    /// The residual's norm over that of the right-hand side at which the solve ends.
    pub tolerance: f64,
    /// The most iterations.
    pub most: u64,
    /// Whether the operator gives zero for a field that is the same everywhere, as with derivatives alone at all walls. The
    /// right-hand side's mean, which no solution has, is left out then, and the solution's mean is 0; means by
    /// [`Matrix::Shares`] where the solve is direct. Cells where the operator's
    /// formula does not read the unknown at the cell take no part.
    pub null_space: bool,
}

impl Default for Solve {
    fn default() -> Self {
        Solve { method: SolveMethod::Cg, tolerance: 1e-8, most: 10_000, null_space: false }
    }
}

named! {
    /// The method by which a step solves a linear system.
    SolveMethod "method of a solve" {
        /// Conjugate gradients, for symmetric operators that are positive definite, or negative definite as a Laplacian is. Where the
        /// operator's diagonal varies from cell to cell, preconditioned by it.
        #[default]
        Cg = "cg",
        /// Conjugate gradients, preconditioned by a V cycle of geometric multigrid: for operators of a cell and its neighbours along the
        /// axes, symmetric and definite, on cells. Its iterations grow little with the domain.
        Multigrid = "multigrid",
        /// BiCGStab, for operators that are not symmetric. The operator and the right-hand side are divided by the diagonal where that
        /// varies.
        BiCgStab = "bicgstab",
        /// Transforms along all axes, for operators that are a sum of one along each axis: constant coefficients, or such that change
        /// along their own axis alone, on cells. It takes one iteration, or two where rounding asks for it.
        Direct = "direct",
    }
}

/// A formula of a system: of the operator, or of its right-hand side.
pub type SystemFormula<'a> = &'a dyn for<'s, 'g> Fn(&'s Scope<'g>) -> Expr<'g>;

/// A system whose stages are recorded.
struct System<'a> {
    unknown: &'a str,
    centring: Centring,
    how: Solve,
    operator: SystemFormula<'a>,
    rhs: SystemFormula<'a>,
    /// Whether the operator's diagonal varies, so that the system is divided by it.
    divides: bool,
    /// Whether the right-hand side reads the unknown's values before the solve, which a field keeps.
    keeps: bool,
    /// The operator's coefficients of the neighbours before and behind a cell along each axis, where they are the same in all cells.
    even: Option<Dag>,
}

impl System<'_> {
    /// Returns the name of a field or a scalar of the solve.
    fn name(&self, what: &str) -> String {
        let unknown = self.unknown.replace('[', "_").replace(']', "");
        format!("{unknown}_{what}")
    }

    /// Returns the operator applied to a field of the solve.
    fn applied<'g>(&self, s: &Scope<'g>, to: &str) -> Expr<'g> {
        let product = linear::applied(s, (self.operator)(s), self.unknown, to);
        match self.how.method {
            SolveMethod::BiCgStab if self.divides => product * s.field(&self.name("inverse")).here(),
            _ => product,
        }
    }

    /// Returns the right-hand side less the operator applied to the unknown as it is.
    fn defect<'g>(&self, s: &Scope<'g>) -> Expr<'g> {
        let rhs = (self.rhs)(s);
        let rhs = if self.keeps { linear::applied(s, rhs, self.unknown, &self.name("before")) } else { rhs };
        let defect = rhs - (self.operator)(s);
        match self.how.method {
            SolveMethod::BiCgStab if self.divides => defect * s.field(&self.name("inverse")).here(),
            _ => defect,
        }
    }

    /// Returns 1 where the operator reads the unknown at the cell, else 0.
    fn takes_part<'g>(&self, s: &Scope<'g>) -> Expr<'g> {
        let diagonal = linear::diagonal(s, (self.operator)(s), self.unknown);
        diagonal.ne(0.0).select(s.constant(1.0), s.constant(0.0))
    }

    /// Returns a correction divided by the operator's diagonal where that preconditions, else itself.
    fn preconditioned<'g>(&self, s: &Scope<'g>, what: &str) -> Expr<'g> {
        let value = s.field(&self.name(what)).here();
        match self.divides {
            true => value * s.field(&self.name("inverse")).here(),
            false => value,
        }
    }

    /// Returns a field of the solve less its mean where values take part.
    fn without_mean<'g>(&self, s: &Scope<'g>, what: &str) -> Expr<'g> {
        self.here(s, what) - self.takes_part(s) * self.param(s, "mean")
    }

    fn here<'g>(&self, s: &Scope<'g>, what: &str) -> Expr<'g> {
        s.field(&self.name(what)).here()
    }

    fn param<'g>(&self, s: &Scope<'g>, what: &str) -> Expr<'g> {
        s.param(&self.name(what))
    }

    /// Returns the direction times a number in the run's type, whatever the direction's own is: the unknown takes what its product with
    /// the operator takes from the defect.
    fn along<'g>(&self, s: &Scope<'g>, times: Expr<'g>) -> Expr<'g> {
        times * self.here(s, "direction").widened()
    }

    /// Returns whether a scalar divides another one, and the quotient, which is 0 where it does not.
    fn ratio<'g>(&self, s: &Scope<'g>, over: &str, under: &str) -> (Expr<'g>, Expr<'g>) {
        let under = self.param(s, under);
        let divides = under.ne(0.0);
        (divides, divides.select(self.param(s, over) / under, 0.0))
    }
}

impl Definition {
    /// Declares a field of corrections of another field: it stands where that one does, and has its boundaries and its conditions at
    /// walls, whichever a run gives it, with 0 in place of their values. What a linear operator's boundary adds to its product with
    /// the other field it does not add to that with this one.
    pub fn correction(&mut self, name: &str, of: &str) -> &mut Self {
        let centring = self.on(of).unwrap_or(Centring::CELL);
        self.field(name, centring);
        self.follow(name, of, Follows::Correction)
    }

    /// Declares a field that marks where another one has values: it stands where that one does, and is 0 beyond all of its sides but
    /// periodic ones. Where the other's outermost cells are held, its own are held as they start, which is 0.
    pub fn inside(&mut self, name: &str, of: &str) -> &mut Self {
        let centring = self.on(of).unwrap_or(Centring::CELL);
        self.field(name, centring);
        self.follow(name, of, Follows::Inside)
    }

    /// Declares the fields and scalars of a solve, those that are not there from another one of the same unknown.
    fn declare_system(&mut self, system: &System<'_>) {
        let method = system.how.method;
        let known: Vec<String> =
            match self.does_follow(&system.name("direction"), system.unknown, Follows::Correction) {
                true => self.fields().iter().chain(self.scalars()).cloned().collect(),
                // Other things of these names are refused.
                false => Vec::new(),
            };
        let is_new = |name: &String| !known.contains(name);
        let of_method: &[&str] = match method {
            SolveMethod::Cg | SolveMethod::Multigrid => &["product"],
            SolveMethod::BiCgStab => &["product", "shadow", "image"],
            SolveMethod::Direct => &[],
        };
        let others = system.divides.then_some("inverse").into_iter().chain(system.keeps.then_some("before"));
        // All stand where the unknown's boundary lets it be computed.
        for what in ["defect", "direction"].into_iter().chain(of_method.iter().copied()).chain(others) {
            let name = system.name(what);
            if is_new(&name) {
                self.correction(&name, system.unknown).internal(&name);
                // It is made of corrections that are f32, too; unknown and defect follow it in the run's type.
                if what == "direction" && method == SolveMethod::Multigrid {
                    self.precision(&name, Precision::F32);
                }
            }
        }
        let start = system.name("start");
        if method != SolveMethod::Direct && is_new(&start) {
            self.temporary(&start, system.centring);
        }
        let grids = Grids::new(system, self.dimensions());
        if method == SolveMethod::Multigrid && is_new(&grids.correction()) {
            grids.declare(self);
        }
        let modes = Modes::new(system, self.dimensions());
        if method == SolveMethod::Direct && is_new(&modes.first()) {
            modes.declare(self);
        }
        for (what, is_needed, about) in [
            ("iterations", true, "iterations of the last solve"),
            ("residual", true, "norm of the residual over that of the right-hand side"),
            ("scale", true, "norm of the right-hand side"),
            ("squares", true, "square of the residual, as the method has it"),
            ("rho", true, "product of the method"),
            ("curvature", method != SolveMethod::Direct, "product of the method"),
            ("next", method != SolveMethod::Cg || system.divides, "product of the method"),
            ("along", method == SolveMethod::BiCgStab, "product of the method"),
            (
                "length",
                matches!(method, SolveMethod::BiCgStab | SolveMethod::Direct),
                "product of the method",
            ),
            ("cells", system.how.null_space && method != SolveMethod::Direct, "values that take part"),
            ("mean", system.how.null_space, "mean of what the operator cannot make"),
        ] {
            let name = system.name(what);
            if is_needed && is_new(&name) {
                self.scalar(&name, Some(0.0), about);
                if !matches!(what, "iterations" | "residual") {
                    self.internal(&name);
                }
            }
        }
    }
}

impl Step<'_> {
    /// Solves a linear system for a field: adds the stages and the loop that make `operator` equal to `rhs` at all of the field's
    /// values, from the values that it has. The operator is a formula linear in the field and without a part that does not read it;
    /// what stands beyond the sides and at walls follows the field's boundaries and conditions, values included. The right-hand side may
    /// read the field at the cell: that is its value before the solve.
    ///
    /// The program has the scalars `NAME_iterations` and `NAME_residual` then, which later stages and the condition that ends a run
    /// may read, and further fields and scalars that begin with the field's name and an underscore.
    ///
    /// # Errors
    ///
    /// A formula that is not linear in the field is the error of [`Definition::build`].
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition, Solve, Wall};
    ///
    /// // Heat by the implicit Euler method, whose time step no stability limits.
    /// let mut p = Definition::new("implicit", 2);
    /// p.field("u", Centring::CELL).parameter("r", 10.0, "dt k / dx^2");
    /// p.wall("u", "all", |s| Wall::dirichlet(s.constant(0.0)));
    /// p.step().solve("u", &Solve::default(), &|s| {
    ///     let u = s.field("u");
    ///     u.here() - s.param("r") * u.laplacian()
    /// }, &|s| s.field("u").here());
    /// let program = p.build()?;
    /// assert!(program.scalar("u_iterations").is_ok());
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn solve(
        &mut self,
        unknown: &str,
        how: &Solve,
        operator: SystemFormula<'_>,
        rhs: SystemFormula<'_>,
    ) -> &mut Self {
        let Some(centring) = self.definition.on(unknown) else {
            let missing = Error::unknown("field", unknown, self.definition.fields());
            self.definition.note(Err(missing));
            return self;
        };
        let checked = match linear::check(self.definition, unknown, [operator, rhs], how) {
            Ok(checked) => checked,
            Err(fault) => {
                self.definition.note(Err(fault));
                return self;
            }
        };
        let linear::Checked { varies, keeps, even } = checked;
        let divides = varies && matches!(how.method, SolveMethod::Cg | SolveMethod::BiCgStab);
        let system = System { unknown, centring, how: *how, operator, rhs, divides, keeps, even };
        self.definition.declare_system(&system);
        let dimensions = self.definition.dimensions();
        match how.method {
            SolveMethod::Multigrid => self.once(|first| Grids::new(&system, dimensions).set_up(first)),
            SolveMethod::Direct => self.once(|first| Modes::new(&system, dimensions).set_up(first)),
            SolveMethod::Cg | SolveMethod::BiCgStab => self,
        };
        let until = format!("{} <= {:e}", system.name("squares"), how.tolerance * how.tolerance);
        let iterate: fn(&mut Self, &System<'_>, &str) = match how.method {
            SolveMethod::Direct => {
                self.direct(&system);
                return self;
            }
            SolveMethod::Cg => Self::conjugate_gradients,
            SolveMethod::Multigrid => Self::multigrid,
            SolveMethod::BiCgStab => Self::bicgstab,
        };
        self.begin(&system);
        iterate(self, &system, &until);
        self.finish(&system);
        self
    }

    /// Makes a field of the solve, by its name without the unknown's.
    fn make(&mut self, system: &System<'_>, what: &str, value: impl for<'g> Fn(&Scope<'g>) -> Expr<'g>) {
        let name = system.name(what);
        self.stage(&name, |s| s.set(&name, value(s)));
    }

    fn sum(&mut self, system: &System<'_>, what: &str, value: impl for<'g> Fn(&Scope<'g>) -> Expr<'g>) {
        self.reduce(&system.name(what), Reduction::Sum, system.centring, value);
    }

    /// Makes the defect in units of `scale`, and the sum of its squares. Outermost cells that a boundary holds are none of the
    /// system's: their defect stays 0.
    fn make_defect(&mut self, system: &System<'_>, in_units: bool) {
        self.make(system, "defect", |s| {
            let defect = system.defect(s);
            if in_units { defect / system.param(s, "scale") } else { defect }
        });
        if system.how.null_space {
            self.find_mean(system, &system.name("defect"));
            self.make(system, "defect", |s| system.without_mean(s, "defect"));
        }
        self.sum_of_squares(system);
    }

    /// Finds the mean of a field over all values that take part.
    fn find_mean(&mut self, system: &System<'_>, field: &str) {
        self.sum(system, "mean", |s| system.takes_part(s) * s.field(field).here());
        self.compute(&system.name("mean"), |s| system.param(s, "mean") / system.param(s, "cells"));
    }

    fn sum_of_squares(&mut self, system: &System<'_>) {
        self.sum(system, "squares", |s| {
            let defect = system.here(s, "defect");
            defect * defect
        });
    }

    /// Finds the norm of the right-hand side, with what the boundary adds to it, and the first defect.
    fn begin(&mut self, system: &System<'_>) {
        let unknown = system.unknown;
        if system.divides {
            self.make(system, "inverse", |s| {
                let diagonal = linear::diagonal(s, (system.operator)(s), unknown);
                diagonal.ne(0.0).select(1.0 / diagonal, s.constant(1.0))
            });
        }
        if system.how.null_space {
            self.sum(system, "cells", |s| system.takes_part(s) + 0.0 * s.field(unknown).here());
        }
        self.keep_before(system);
        // The operator applied to a field of zeros is what the boundary alone adds.
        self.make(system, "start", |s| s.field(unknown).here());
        self.stage(unknown, |s| s.set(unknown, s.constant(0.0)));
        self.make_defect(system, false);
        self.find_scale(system);
        self.stage(unknown, |s| s.set(unknown, system.here(s, "start")));
        self.make_defect(system, true);
        self.compute(&system.name("iterations"), |s| s.constant(0.0));
    }

    /// Keeps the unknown as it is before the solve, where the right-hand side reads it.
    fn keep_before(&mut self, system: &System<'_>) {
        if system.keeps {
            self.make(system, "before", |s| s.field(system.unknown).here());
        }
    }

    /// Makes the norm of the right-hand side from the square of the defect of zeros; 1 where it is 0.
    fn find_scale(&mut self, system: &System<'_>) {
        self.compute(&system.name("scale"), |s| {
            let squares = system.param(s, "squares");
            squares.gt(0.0).select(squares.sqrt(), s.constant(1.0))
        });
    }

    fn count(&mut self, system: &System<'_>) {
        self.compute(&system.name("iterations"), |s| system.param(s, "iterations") + 1.0);
    }

    /// Goes along the direction of conjugate gradients as far as lessens the error most: changes the unknown, and has `set` take the
    /// new defect. `product` is the scalar of the defect's square in the preconditioner's norm.
    fn go_along(&mut self, system: &System<'_>, product: &str, set: impl for<'g> Fn(&Scope<'g>, Expr<'g>)) {
        let unknown = system.unknown;
        self.make(system, "product", |s| system.applied(s, &system.name("direction")));
        self.sum(system, "curvature", |s| system.here(s, "direction") * system.here(s, "product"));
        self.stage(unknown, |s| {
            let (goes_on, alpha) = system.ratio(s, product, "curvature");
            let (u, defect) = (s.field(unknown).here(), system.here(s, "defect"));
            s.set(unknown, u + system.along(s, alpha * system.param(s, "scale")));
            // What is no number ends the loop.
            set(s, goes_on.select(defect - alpha * system.here(s, "product"), f64::NAN));
        });
    }

    fn conjugate_gradients(&mut self, system: &System<'_>, until: &str) {
        let name = |what: &str| system.name(what);
        // The square of the defect in the preconditioner's norm.
        let next = if system.divides { "next" } else { "squares" };
        let find_next = |step: &mut Step<'_>| {
            if system.divides {
                step.sum(system, next, |s| system.here(s, "defect") * system.preconditioned(s, "defect"));
            }
        };
        find_next(self);
        self.compute(&name("rho"), |s| system.param(s, next));
        self.make(system, "direction", |s| system.preconditioned(s, "defect"));
        self.repeat(system.how.most, Some(until), |turn| {
            turn.go_along(system, "rho", |s, defect| s.set(&name("defect"), defect));
            turn.sum_of_squares(system);
            find_next(turn);
            turn.make(system, "direction", |s| {
                let (_, beta) = system.ratio(s, next, "rho");
                system.preconditioned(s, "defect") + beta * system.here(s, "direction")
            });
            turn.compute(&name("rho"), |s| system.param(s, next));
            turn.count(system);
        });
    }

    fn multigrid(&mut self, system: &System<'_>, until: &str) {
        let name = |what: &str| system.name(what);
        let grids = Grids::new(system, self.definition.dimensions());
        let correction = grids.correction();
        self.stage(&name("direction"), |s| {
            grids.begin(s, system.here(s, "defect"));
            s.set(&name("direction"), s.constant(0.0));
        });
        self.compute(&name("rho"), |s| s.constant(0.0));
        if system.how.null_space {
            self.compute(&name("mean"), |s| s.constant(0.0));
        }
        self.repeat(system.how.most, Some(until), |turn| {
            grids.cycle(turn);
            turn.sum(system, "next", |s| grids.rest(s, 0, &grids.own()) * s.field(&correction).here());
            turn.make(system, "direction", |s| {
                let (_, beta) = system.ratio(s, "next", "rho");
                s.field(&correction).here() + beta * system.here(s, "direction")
            });
            turn.go_along(system, "next", |s, defect| {
                s.set(&name("defect"), defect);
                grids.begin(s, defect);
            });
            turn.sum_of_squares(system);
            if system.how.null_space {
                // What rounding adds to the mean no iteration takes away, and coarse grids would make it large.
                turn.find_mean(system, &grids.first_rest());
            }
            turn.compute(&name("rho"), |s| system.param(s, "next"));
            turn.count(system);
        });
    }

    fn bicgstab(&mut self, system: &System<'_>, until: &str) {
        let (unknown, name) = (system.unknown, |what: &str| system.name(what));
        self.make(system, "shadow", |s| system.here(s, "defect"));
        self.make(system, "direction", |s| system.here(s, "defect"));
        self.compute(&name("rho"), |s| system.param(s, "squares"));
        self.repeat(system.how.most, Some(until), |turn| {
            turn.make(system, "product", |s| system.applied(s, &name("direction")));
            turn.sum(system, "curvature", |s| system.here(s, "shadow") * system.here(s, "product"));
            turn.make(system, "defect", |s| {
                let (_, alpha) = system.ratio(s, "rho", "curvature");
                system.here(s, "defect") - alpha * system.here(s, "product")
            });
            turn.make(system, "image", |s| system.applied(s, &name("defect")));
            turn.sum(system, "along", |s| system.here(s, "image") * system.here(s, "defect"));
            turn.sum(system, "length", |s| {
                let image = system.here(s, "image");
                image * image
            });
            turn.stage(unknown, |s| {
                let ((goes_on, alpha), (_, omega)) =
                    (system.ratio(s, "rho", "curvature"), system.ratio(s, "along", "length"));
                let defect = system.here(s, "defect");
                let along = system.along(s, alpha) + omega * defect;
                s.set(unknown, s.field(unknown).here() + system.param(s, "scale") * along);
                // What is no number ends the loop.
                s.set(&name("defect"), goes_on.select(defect - omega * system.here(s, "image"), f64::NAN));
            });
            turn.sum_of_squares(system);
            turn.sum(system, "next", |s| system.here(s, "shadow") * system.here(s, "defect"));
            turn.make(system, "direction", |s| {
                let ((_, alpha), (has_omega, omega)) =
                    (system.ratio(s, "rho", "curvature"), system.ratio(s, "along", "length"));
                let (_, ratio) = system.ratio(s, "next", "rho");
                let beta = has_omega.select(ratio * alpha / omega, 0.0);
                system.here(s, "defect")
                    + beta * (system.here(s, "direction") - omega * system.here(s, "product"))
            });
            turn.compute(&name("rho"), |s| system.param(s, "next"));
            turn.count(system);
        });
    }

    /// Finds the residual anew, from the unknown itself, and leaves out what the operator does not see.
    fn finish(&mut self, system: &System<'_>) {
        let unknown = system.unknown;
        self.make_defect(system, true);
        self.compute(&system.name("residual"), |s| system.param(s, "squares").sqrt());
        if system.how.null_space {
            self.find_mean(system, unknown);
            self.stage(unknown, |s| {
                s.set(unknown, s.field(unknown).here() - system.takes_part(s) * system.param(s, "mean"));
            });
        }
    }
}
