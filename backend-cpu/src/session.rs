//! A problem in progress: two arrays for each field that changes, one for each that does not.

use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{check_field, check_window};
use abide_core::plan::Rows;
use abide_core::{Array, Error, Plan, Problem, Real, Result, Session};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::region::Region;
use crate::sweep::{Band, Outputs, Stage, sweep};
use crate::tape::Tape;

/// A session on all threads of a pool.
pub struct Threaded<T> {
    problem: Problem,
    plan: Plan,
    pool: Option<Arc<ThreadPool>>,
    region: Region,
    chunk: usize,
    /// Each stage's tape and the fields it writes.
    stages: Vec<(Tape, Vec<usize>)>,
    bands: Vec<Band<T>>,
    parameters: Vec<T>,
    /// The current values of each field.
    now: Vec<Vec<T>>,
    /// Where a stage puts the new values; empty for a field that none writes. Cells that are not computed hold the
    /// same values here as in `now`, always.
    new: Vec<Vec<T>>,
}

impl<T: Real> Threaded<T> {
    /// Lowers the problem and takes over its fields, whose number and sizes have been checked. Sums of additions are
    /// turned into multiply-adds if `fused` says so (see [`Tape::new`]).
    pub fn open(
        problem: &Problem,
        plan: &Plan,
        rows: &Rows,
        pool: Option<Arc<ThreadPool>>,
        fused: bool,
        fields: Vec<Vec<T>>,
    ) -> Result<Self> {
        let simplified = problem.program.simplified(problem.dtype);
        let stages: Vec<_> =
            simplified.stages().iter().map(|stage| (Tape::new(&stage.dag, fused), stage.writes.clone())).collect();
        // A plan's fields are anyone's to change; scratch grows with both.
        let (threads, chunk) = (rows.threads.clamp(1, 4096), rows.chunk.clamp(1, 1 << 16));
        let region = Region::new(problem, threads, chunk);
        let tapes: Vec<&Tape> = stages.iter().map(|(tape, _)| tape).collect();
        let bands = region.bands(threads).into_iter().map(|units| Band::new(units, &region, &tapes, chunk)).collect();
        let new = fields
            .iter()
            .enumerate()
            .map(|(field, values)| if problem.program.is_written(field) { copied(values) } else { Ok(Vec::new()) })
            .collect::<Result<_>>()?;
        let parameters = problem.parameters.iter().map(|&value| T::from_f64(value)).collect();
        Ok(Threaded {
            problem: problem.clone(),
            plan: plan.clone(),
            pool,
            region,
            chunk,
            stages,
            bands,
            parameters,
            now: fields,
            new,
        })
    }

    fn steps(&mut self, steps: u64) {
        for _ in 0..steps {
            for (tape, writes) in &self.stages {
                let Threaded { region, parameters, chunk, .. } = self;
                let stage = Stage { region, tape, parameters, old: &self.now, chunk: *chunk };
                sweep(&stage, &mut self.bands, Outputs::new(&mut self.new, writes));
                for &field in writes {
                    std::mem::swap(&mut self.now[field], &mut self.new[field]);
                }
            }
        }
    }

    fn field(&self, field: usize) -> Result<&Vec<T>> {
        let names = self.problem.program.fields();
        self.now.get(field).ok_or_else(|| Error::unknown("field", field.to_string(), names))
    }
}

/// A copy made by all threads, which are then the first to touch its memory; an error where there is not that much.
fn copied<T: Real>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(values.len()).map_err(|_| {
        Error::limit(
            "memory for a field",
            format!("{} bytes", size_of_val(values)),
            "what the operating system grants",
            "choose a smaller size or f32",
        )
    })?;
    copy.par_extend(values.par_iter().copied());
    Ok(copy)
}

impl<T: Real> Session for Threaded<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let begun = Instant::now();
        match (self.bands.len(), self.pool.clone()) {
            // Too little work to wake anyone.
            (0 | 1, _) => self.steps(steps),
            (_, Some(pool)) => pool.install(|| self.steps(steps)),
            (_, None) => rayon::scope(|_| self.steps(steps)),
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        copied(self.field(field)?).map(T::into_array)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let [_, _, width] = check_window(&self.problem, low, high)?;
        let values = self.field(field)?;
        let mut window = Vec::new();
        for z in low[0]..high[0] {
            for y in low[1]..high[1] {
                let start = self.problem.shape.index([z, y, low[2]]);
                window.extend_from_slice(&values[start..start + width]);
            }
        }
        Ok(T::into_array(window))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.field(field)?;
        check_field(&self.problem, &self.problem.program.fields()[field], values)?;
        if let Some(values) = T::slice(values) {
            self.now[field].copy_from_slice(values);
            if !self.new[field].is_empty() {
                self.new[field].copy_from_slice(values);
            }
        }
        Ok(())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let names = self.problem.program.parameters().iter().map(|p| p.name.as_str());
        match self.parameters.get_mut(parameter) {
            Some(known) => {
                *known = T::from_f64(value);
                Ok(())
            }
            None => Err(Error::unknown("parameter", parameter.to_string(), names)),
        }
    }
}
