//! A problem of the comparison, and its runs.

use super::STEPS;
use super::difference::{Difference, distance, farthest, largest, ulp};
use crate::backend;
use crate::program::Problem;
use crate::{Array, Backend, Plan, Result, Session, Start};

/// A problem with its initial fields.
#[derive(Debug, Clone)]
pub struct Case {
    /// The problem.
    pub problem: Problem,
    /// The initial fields.
    pub fields: Vec<Array>,
    /// Least number of steps to advance.
    pub steps: u64,
}

impl Case {
    /// Makes a case of [`STEPS`] steps with random fields between 0 and 1, or with the program's own fields
    /// where those are 0 and 1.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::check`]; [`Error::Limit`](crate::Error::Limit) where there is no memory for the fields.
    pub fn new(problem: Problem, seed: u64) -> Result<Case> {
        problem.check()?;
        let program = &problem.program;
        let start = |field: usize| match program.start(field) {
            coin @ Start::Coin { .. } => coin.clone(),
            _ => Start::Random { seed: seed + field as u64, low: 0.0, high: 1.0 },
        };
        let fields = (0..program.fields().len())
            .map(|f| start(f).fill(&problem.shape, problem.dtype))
            .collect::<Result<_>>()?;
        Ok(Case { problem, fields, steps: STEPS })
    }

    /// Makes a case of [`STEPS`] steps with the program's own start, for programs whose fields depend on each other.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::check`]; [`Error::Invalid`](crate::Error::Invalid) for a program that has no start of its own; [`Error::Limit`](crate::Error::Limit)
    /// where there is no memory for the fields.
    pub fn of_start(problem: Problem) -> Result<Case> {
        problem.check()?;
        let fields = (0..problem.program.fields().len())
            .map(|f| problem.program.start(f).fill(&problem.shape_of(f)?, problem.dtype))
            .collect::<Result<_>>()?;
        Ok(Case { problem, fields, steps: STEPS })
    }

    /// Returns the fields after the steps, by the definition, and behind them the computed scalars.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::check`]; [`Error::Invalid`](crate::Error::Invalid) for fields of another number, length or type than the problem's.
    pub fn reference(&self) -> Result<Vec<Array>> {
        self.after(self.steps)
    }

    /// Returns what [`Case::reference`] returns, after other steps.
    fn after(&self, steps: u64) -> Result<Vec<Array>> {
        let mut values = self.fields.clone();
        let scalars = advance(&self.problem, &mut values, steps)?;
        values.extend((!scalars.is_empty()).then_some(Array::F64(scalars)));
        Ok(values)
    }

    /// Returns the steps of the calls that advance the case by a plan. The first call has a single step. The
    /// second has passes of the plan's depth and of every depth that remainders run in, each half as deep as
    /// the one before.
    pub fn calls(&self, plan: &Plan) -> [u64; 2] {
        let passes = std::iter::successors(Some(u64::from(plan.depth)), |depth| Some(depth / 2));
        let all = passes.take_while(|&depth| depth > 0).sum::<u64>();
        [1, all.max(self.steps.saturating_sub(1))]
    }

    /// Returns the largest difference of any value or scalar after the [`Case::calls`] of a plan, in its own
    /// units in the last place; `expected` is the case's own [`Case::reference`].
    ///
    /// # Errors
    ///
    /// Those of opening a session with this plan and of the device.
    pub fn run(&self, backend: &dyn Backend, plan: &Plan, expected: &[Array]) -> Result<Difference> {
        let mut session = backend.open(&self.problem, plan, self.fields.clone())?;
        let calls = self.calls(plan);
        calls.iter().try_for_each(|&steps| session.advance(steps).map(drop))?;
        let found = self.read(session.as_mut())?;
        let more = calls.iter().sum::<u64>().saturating_sub(self.steps);
        let ulp = if more == 0 {
            distance(&found, expected)
        } else if self.problem.is_plain() {
            let mut expected = expected.to_vec();
            abide_cpu::reference::advance(&self.problem, &mut expected, more)?;
            distance(&found, &expected)
        } else {
            distance(&found, &self.after(self.steps + more)?)
        };
        Ok(Difference { ulp: ulp as f64, bound: 0.0 })
    }

    /// Returns the step of a backend that differs most from the reference's step from the same values,
    /// relative to the bound that the backend states for it. The difference is in units in the last place of
    /// the largest magnitude.
    ///
    /// # Errors
    ///
    /// Those of [`Case::run`], and of [`backend::ulp_bound_per_step`].
    pub fn run_by_steps(&self, name: &str, backend: &dyn Backend, plan: &Plan) -> Result<Difference> {
        let mut session = backend.open(&self.problem, plan, self.fields.clone())?;
        let mut worst = Difference { ulp: 0.0, bound: 0.0 };
        let mut problem = self.problem.clone();
        for _ in 0..self.steps {
            let mut expected = self.fields(session.as_mut())?;
            let before = largest(&expected);
            problem.scalars = session.scalars()?;
            session.advance(1)?;
            advance(&problem, &mut expected, 1)?;
            let magnitude = before.max(largest(&expected));
            let unit = ulp(magnitude, problem.dtype);
            let bound = backend::ulp_bound_per_step(name, &problem, magnitude)?;
            let ulp = farthest(&self.fields(session.as_mut())?, &expected) / unit;
            problem.first_step += 1;
            let now = Difference { ulp, bound };
            if now.share() >= worst.share() {
                worst = now;
            }
        }
        // Many steps in one call must give the bits of as many single steps.
        let single = self.read(session.as_mut())?;
        let mut session = backend.open(&self.problem, plan, self.fields.clone())?;
        let first = self.steps / 2;
        session.advance(first)?;
        session.advance(self.steps - first)?;
        if distance(&single, &self.read(session.as_mut())?) != 0 {
            worst.ulp = f64::INFINITY;
        }
        Ok(worst)
    }

    /// Reads the fields, and behind them the computed scalars.
    fn read(&self, session: &mut dyn Session) -> Result<Vec<Array>> {
        let mut values = self.fields(session)?;
        let scalars = session.scalars()?;
        values.extend((!scalars.is_empty()).then_some(Array::F64(scalars)));
        Ok(values)
    }

    fn fields(&self, session: &mut dyn Session) -> Result<Vec<Array>> {
        (0..self.fields.len()).map(|field| session.read(field)).collect()
    }

    /// Describes the problem in a few words.
    pub fn describe(&self) -> String {
        let Problem { program, shape, dtype, boundaries, .. } = &self.problem;
        format!("{} {shape} {dtype} {}", program.name(), boundaries.describe(shape.dimensions()))
    }
}

/// Advances fields by the definition, and returns the computed scalars.
fn advance(problem: &Problem, fields: &mut [Array], steps: u64) -> Result<Vec<f64>> {
    match problem.is_plain() {
        true => abide_cpu::reference::advance(problem, fields, steps).map(|()| Vec::new()),
        false => abide_cpu::reference::run_program(problem, fields, steps, |_, _, _| {}),
    }
}
