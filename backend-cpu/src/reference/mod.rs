//! The definition of a run, in code that reads like it: the oracle of every other path.
//!
//! Nothing here is simplified, vectorised or threaded, and nothing is shared with the fast path.

mod program;

use std::time::Instant;

use abide_core::backend::{check_field, check_fields, check_values, window_of, write_rows};
use abide_core::domain::Source;
use abide_core::expr::Tap;
use abide_core::floating::standard;
use abide_core::program::{Probe, Rows, Watch};
use abide_core::{Array, DType, Error, Plan, Problem, Real, Result, Session};

use self::program::State;

/// Advances the fields of a problem by `steps` steps.
///
/// A problem that is not plain runs by [`run_program`], whose scalars are lost. Of a plain one, each step runs
/// the program's stages in order. A stage computes each of its outputs at each computed cell
/// from the values before the stage, by the formula as it was written. Along an axis whose side is `fixed`,
/// the outermost cells, as many as the program's radius on that axis, are not computed: they keep their
/// values.
pub fn advance(problem: &Problem, fields: &mut [Array], steps: u64) -> Result<()> {
    problem.check()?;
    check_fields(problem, fields)?;
    match problem.dtype {
        _ if !problem.is_plain() => drop(run_program(problem, fields, steps, |_, _, _| {})?),
        DType::F32 => run::<f32>(problem, fields, steps),
        DType::F64 => run::<f64>(problem, fields, steps),
    }
    Ok(())
}

fn run<T: Real>(problem: &Problem, fields: &mut [Array], steps: u64) {
    let parameters: Vec<T> = problem.parameters.iter().map(|&value| T::from_f64(value)).collect();
    let (program, shape) = (&problem.program, problem.shape);
    let (extents, radius) = (shape.padded(), program.radius());
    let [zs, ys, xs] = [0, 1, 2].map(|axis| problem.boundaries.computed(axis, extents[axis], radius[axis]));
    let mut now: Vec<Vec<T>> = fields.iter().filter_map(T::slice).map(<[T]>::to_vec).collect();
    let mut values = Vec::new();
    for _ in 0..steps {
        for stage in program.stages() {
            let old = now.clone();
            for z in zs.clone() {
                for y in ys.clone() {
                    for x in xs.clone() {
                        let cell = [z, y, x];
                        let index = cell.map(|i| i as isize);
                        stage.values(&mut values, &parameters, index, |tap| {
                            value_at(problem, &old, cell, tap)
                        });
                        for (&value, &field) in values.iter().zip(&stage.writes) {
                            now[field][shape.index(cell)] = value;
                        }
                    }
                }
            }
        }
    }
    for (field, values) in fields.iter_mut().zip(now) {
        *field = T::into_array(values);
    }
}

/// Returns the old value that a tap of a cell reads. Where it lies beyond the domain along several axes, they
/// are asked from the slowest on, and the first constant decides.
fn value_at<T: Real>(problem: &Problem, old: &[Vec<T>], cell: [usize; 3], tap: Tap) -> T {
    let extents = problem.shape.padded();
    let mut at = [0; 3];
    for axis in 0..3 {
        let index = cell[axis] as isize + tap.offset[axis] as isize;
        match problem.boundaries.source(axis, index, extents[axis]) {
            Source::Cell(index) => at[axis] = index,
            Source::Value(value) => return T::from_f64(value),
        }
    }
    old[tap.field as usize][problem.shape.index(at)]
}

/// Returns what these stages reduce fields to, each by itself.
///
/// # Errors
///
/// Those of [`run_program`].
pub fn reduced(problem: &Problem, stages: &[usize], fields: &[Array]) -> Result<Vec<f64>> {
    let reductions = problem.of_reductions(stages);
    if reductions.program.stages().is_empty() {
        return Ok(Vec::new());
    }
    let scalars = run_program(&reductions, &mut fields.to_vec(), 1, |_, _, _| {})?;
    let made = reductions.program.stages().iter().filter_map(|stage| stage.does.scalar());
    Ok(made.map(|number| scalars[number - problem.parameters.len()]).collect())
}

/// Advances the fields and scalars of any problem by `steps` steps. After each stage it calls `after` with the
/// stage's number, the fields and the scalars.
///
/// The steps go on in the program's cycle from [`Problem::first_step`]. Returns the computed scalars.
pub fn run_program(
    problem: &Problem,
    fields: &mut [Array],
    steps: u64,
    after: impl FnMut(usize, &[Array], &[f64]),
) -> Result<Vec<f64>> {
    problem.check()?;
    check_fields(problem, fields)?;
    match problem.dtype {
        DType::F32 => run_stages::<f32>(problem, fields, steps, after),
        DType::F64 => run_stages::<f64>(problem, fields, steps, after),
    }
}

fn run_stages<T: Real>(
    problem: &Problem,
    fields: &mut [Array],
    steps: u64,
    mut after: impl FnMut(usize, &[Array], &[f64]),
) -> Result<Vec<f64>> {
    let mut state = State::<T>::new(problem, fields)?;
    let arrays = |state: &State<T>| -> Vec<Array> {
        state.fields.iter().map(|values| T::into_array((**values).clone())).collect()
    };
    let computed = |state: &State<T>| -> Vec<f64> { state.scalars[problem.parameters.len()..].to_vec() };
    for _ in 0..steps {
        state.step(problem, |stage, state| after(stage, &arrays(state), &computed(state)));
    }
    fields.clone_from_slice(&arrays(&state));
    Ok(computed(&state))
}

/// A session that advances by [`advance`].
pub(crate) struct Plain {
    problem: Problem,
    plan: Plan,
    fields: Vec<Array>,
    watch: Watch,
    /// Steps of the last advance that were not done.
    remaining: u64,
}

impl Plain {
    /// Takes over the fields, whose number and sizes have been checked.
    pub(crate) fn open(problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Plain> {
        let watch = Watch::new(problem, &fields)?;
        Ok(Plain { problem: problem.clone(), plan: plan.clone(), fields, watch, remaining: 0 })
    }

    /// Takes note of the step that was just done.
    fn note(&mut self) -> Result<()> {
        let Plain { problem, fields, watch, .. } = self;
        let probed = |probe: &Probe| {
            let position = probe.position(problem.extents_of(probe.field));
            Ok(fields[probe.field].get(position).unwrap_or(f64::NAN))
        };
        watch.step(problem.first_step, |number| problem.scalars[number], probed)
    }

    fn steps(&mut self, steps: u64) -> Result<()> {
        self.remaining = steps;
        self.watch.begin();
        while self.remaining > 0 && self.watch.goes_on() {
            let most = self.watch.until_due(self.problem.first_step).unwrap_or(self.remaining);
            let (due, now) = (most <= self.remaining, most.min(self.remaining));
            match self.problem.is_plain() {
                true => advance(&self.problem, &mut self.fields, now)?,
                false => {
                    self.problem.scalars = run_program(&self.problem, &mut self.fields, now, |_, _, _| {})?
                }
            }
            self.problem.first_step += now;
            self.remaining -= now;
            if due {
                self.note()?;
            }
        }
        Ok(())
    }

    fn field(&self, field: usize) -> Result<&Array> {
        self.fields
            .get(field)
            .ok_or_else(|| Error::unknown("field", field.to_string(), self.problem.program.fields()))
    }
}

impl Session for Plain {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let begun = Instant::now();
        standard(|| self.steps(steps))?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn is_at_mark(&self) -> bool {
        self.watch.is_at_mark()
    }

    fn take_rows(&mut self) -> Result<Rows> {
        Ok(self.watch.take_rows())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.field(field).cloned()
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        window_of(self.problem.extents_of(field), self.field(field)?, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.field(field)?;
        check_field(&self.problem, field, values)?;
        self.fields[field] = values.clone();
        self.watch.go_on();
        Ok(())
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(&self.problem, field, low, high, values)?;
        let extents = self.problem.extents_of(field);
        match (&mut self.fields[field], values) {
            (Array::F32(to), Array::F32(values)) => write_rows(extents, to, low, high, values),
            (Array::F64(to), Array::F64(values)) => write_rows(extents, to, low, high, values),
            _ => {}
        }
        self.watch.go_on();
        Ok(())
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        Ok(self.problem.scalars.clone())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let names = self.problem.program.parameters().iter().map(|p| p.name.as_str());
        let known = self.problem.parameters.get_mut(parameter);
        *known.ok_or_else(|| Error::unknown("parameter", parameter.to_string(), names))? = value;
        self.watch.go_on();
        Ok(())
    }
}
