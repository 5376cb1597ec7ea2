//! The restarted generalised minimal residual method.

use abide_core::backend::Observe;
use abide_core::solver::{Gmres, Parameters, Profile, Quantity, Report, SolverError};
use abide_core::{Real, Result};

use crate::engine::{Engine, zeros};
use crate::run::{Begin, Run, residual};
use crate::solver::{Equations, Solver};

/// The least-squares problem of a cycle: the Hessenberg matrix, which Givens rotations make triangular as it
/// grows.
struct Triangle<T> {
    /// The columns; column j has j + 1 entries.
    columns: Vec<Vec<T>>,
    rotations: Vec<(T, T)>,
    /// The rotated right-hand side.
    g: Vec<T>,
    /// The minimiser.
    y: Vec<T>,
}

impl<T: Real> Triangle<T> {
    fn new(m: usize) -> abide_core::Result<Self> {
        let columns = (0..m).map(|j| zeros(j + 1)).collect::<Result<_, _>>()?;
        Ok(Triangle { columns, rotations: vec![(T::ONE, T::ZERO); m], g: zeros(m + 1)?, y: zeros(m)? })
    }

    fn restart(&mut self, residual: T) {
        self.g[0] = residual;
    }

    /// Takes column j (its entries are in `columns[j]`, the one below the diagonal is `below`), and returns
    /// the norm of the residual that results.
    fn add(&mut self, j: usize, below: T) -> T {
        let column = &mut self.columns[j];
        for (i, &(c, s)) in self.rotations[..j].iter().enumerate() {
            let (upper, lower) = (column[i], column[i + 1]);
            column[i] = c * upper + s * lower;
            column[i + 1] = c * lower - s * upper;
        }
        let diagonal = column[j];
        // Both are scaled by the larger of the two, which keeps the squares in range.
        let scale = if diagonal.abs() > below.abs() { diagonal.abs() } else { below.abs() };
        let (c, s) = if scale == T::ZERO {
            (T::ONE, T::ZERO)
        } else {
            let (d, e) = (diagonal / scale, below / scale);
            let root = (d * d + e * e).sqrt();
            (d / root, e / root)
        };
        column[j] = c * diagonal + s * below;
        self.rotations[j] = (c, s);
        self.g[j + 1] = -(s * self.g[j]);
        self.g[j] = c * self.g[j];
        self.g[j + 1].abs()
    }

    /// Returns the minimiser of the first `k` columns; `None` if the triangle is singular.
    fn solve(&mut self, k: usize) -> Option<&[T]> {
        for i in (0..k).rev() {
            let mut sum = self.g[i];
            for j in i + 1..k {
                sum = sum - self.columns[j][i] * self.y[j];
            }
            let diagonal = self.columns[i][i];
            if diagonal == T::ZERO {
                return None;
            }
            self.y[i] = sum / diagonal;
        }
        Some(&self.y[..k])
    }
}

impl<T: Real, E: Engine<T>> Solver<T, E> for Gmres {
    fn name(&self) -> &'static str {
        Profile::GMRES.name
    }

    fn solve_observed(
        &self,
        engine: &E,
        Equations { a, m, b }: Equations<'_, T, E>,
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        self.check()?;
        let mut run = match Run::begin(Profile::GMRES, engine, (a, &*m), b, x, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        let n = b.len();
        // A basis with more vectors than rows or iterations would never be filled.
        let restart = self.restart.min(a.all_rows()).min(parameters.iterations.max(1));
        let mut basis = (0..=restart).map(|_| zeros::<T>(n)).collect::<Result<Vec<_>, _>>()?;
        let (mut w, mut z) = (zeros(n)?, zeros(n)?);
        let mut h = zeros::<T>(restart)?;
        let mut triangle = Triangle::new(restart)?;

        residual(engine, a, b, x, &mut w);
        let mut norm = engine.dot(&w, &w).sqrt();
        let mut done = run.converged_norm(norm.to_f64())?;
        while !done {
            engine.update([&mut basis[0]], [&w], |[_], [w]| [w / norm]);
            triangle.restart(norm);
            let mut steps = 0;
            let mut outcome = Ok(false);
            let mut singular = false;
            while steps < restart && !singular && matches!(outcome, Ok(false)) {
                let j = steps;
                m.apply(engine, &basis[j], &mut z);
                a.apply(&z, &mut w);
                triangle.columns[j].fill(T::ZERO);
                for _ in 0..2 {
                    let h = &mut h[..=j];
                    engine.project(&basis[..=j], &w, h);
                    for (h, entry) in h.iter_mut().zip(&mut triangle.columns[j]) {
                        *entry = *entry + *h;
                        *h = -*h;
                    }
                    engine.combine(&mut w, &basis[..=j], h);
                }
                let below = engine.dot(&w, &w).sqrt();
                if !below.is_finite() {
                    return Err(run.not_finite(Quantity::Basis));
                }
                outcome = run.converged_norm(triangle.add(j, below).to_f64());
                steps += 1;
                if below == T::ZERO {
                    // The Krylov space is exhausted: it holds the solution, or A is singular.
                    singular = true;
                } else {
                    engine.update([&mut basis[j + 1]], [&w], |[_], [w]| [w / below]);
                }
            }
            // This is done after a limit too: x is then the best of the cycle so far.
            let Some(y) = triangle.solve(steps) else {
                return Err(run.breakdown(Quantity::Determinant, T::ZERO));
            };
            w.fill(T::ZERO);
            engine.combine(&mut w, &basis[..steps], y);
            m.apply(engine, &w, &mut z);
            engine.update([&mut *x], [&z], |[x], [z]| [x + z]);
            let met = outcome?;
            residual(engine, a, b, x, &mut w);
            let fresh = engine.dot(&w, &w).sqrt();
            if !fresh.is_finite() {
                return Err(run.not_finite(Quantity::TrueResidual));
            }
            // If the basis was not quite orthogonal, the recurred norm was met too early: another cycle
            // refines x.
            if run.is_met(fresh.to_f64(), met) {
                run.correct(fresh.to_f64());
                done = true;
            } else if singular && !met {
                return Err(run.breakdown(Quantity::Next, T::ZERO));
            } else if fresh >= norm {
                return Err(run.stagnation());
            }
            norm = fresh;
        }
        run.finish(engine, a, b, x, &mut w)
    }
}
