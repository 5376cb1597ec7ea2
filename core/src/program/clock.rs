//! The plain form of a problem: scalars that follow from the step's number, the parameters and earlier scalars alone, such as
//! the time or a source's amplitude, are known before the step, and so are all parts of formulas that cells have in common. With
//! these as parameters that change, without temporaries and points, such a program is a plain one. Where fields are reduced once
//! in several steps, the steps between are.

use std::sync::Arc;

use super::timed::{Timed, TimedSteps};
use super::{Probe, Problem, Program, Record, Stretch};
use crate::domain::Boundary;
use crate::error::{Error, Result};
use crate::expr::Dag;
use crate::real::{DType, Real};

/// The least steps from one row of probes to the next for which halting a run costs less than its passes gain.
const ROWS_APART: u64 = 32;

/// The least steps, in the mean, from one reduction to the next for which halting there costs less than passes gain.
const REDUCTIONS_APART: usize = 4;

/// How often as many operations a cell may have on a device without temporaries: kernels of several steps have time for them
/// while they wait for memory.
const GROWTH_ON_DEVICE: f64 = 4.0;

/// Operations that no cell feels.
const SLIGHT: f64 = 16.0;

/// The same for a CPU, which keeps temporaries in its caches.
const GROWTH: f64 = 1.0;

/// The scalars of a problem, step by step, and the plain problem whose parameters they are.
#[derive(Debug, Clone)]
pub struct Clock {
    plain: Problem,
    /// The stages of each step of the cycle in order.
    steps: Vec<Vec<Timed>>,
    /// The step of the cycle, and its stage, that comes next.
    next: [usize; 2],
    /// The reductions of fields, a stage each, if there are any.
    reductions: Option<Problem>,
    /// The parameters, then the scalars, and then what stages of fields read of them.
    values: Vec<f64>,
    /// The number of parameters, and of these and the scalars.
    counts: [usize; 2],
    /// The values of a formula's nodes.
    nodes: Vec<f64>,
    single: Vec<f32>,
}

/// A reduction whose value comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The stage of [`Clock::reductions`].
    pub reduction: usize,
    /// Whether the step's stages of fields come before it.
    pub is_behind: bool,
}

impl Clock {
    /// Returns the clock of a problem; `None` for one that is plain, or that is not plain beside its scalars and points.
    ///
    /// A slab, whose sides are open, has none: its scalars are those of the whole domain's run.
    pub fn of(problem: &Problem) -> Option<Clock> {
        // Choices beyond sides cost a CPU, which computes both values, more than its passes gain.
        if !problem.has_shared_boundaries() {
            return None;
        }
        Clock::with_growth(problem, GROWTH, Vec::new()).filter(|clock| clock.reductions.is_none())
    }

    /// Returns the clock of a problem as [`Clock::of`] does, for a device. Temporaries are computed where they are read.
    ///
    /// Where rows of probes are so close that halting at each would take longer than a launch per stage, kernels of several
    /// steps note their values (`notes`), of plain problems, too; there is no clock where a device has none that do. Such a device
    /// also reduces fields between passes.
    pub fn on_device(problem: &Problem, notes: bool) -> Option<Clock> {
        let is_close = |record: &&Record| record.every < ROWS_APART;
        let close = problem.record.as_ref().filter(is_close);
        let noted = close.map_or(Vec::new(), |record| record.probes.clone());
        // Kernels of several steps have fields of the run's type alone.
        let is_narrow =
            (0..problem.program.fields().len()).any(|own| problem.stored_precision(own).is_some());
        if is_narrow || !noted.is_empty() && !notes {
            return None;
        }
        Clock::with_growth(problem, GROWTH_ON_DEVICE, noted)
            .filter(|clock| notes || clock.reductions.is_none())
    }

    fn with_growth(problem: &Problem, growth: f64, noted: Vec<Probe>) -> Option<Clock> {
        if problem.is_batch() || problem.is_slab() || problem.program.has_loops() {
            return None;
        }
        let (flat, boundaries) = match problem.is_plain() {
            true if noted.is_empty() => return None,
            true => ((*problem.program).clone(), problem.boundaries),
            false => problem.with_shared_boundaries(problem.flattened()?)?,
        };
        let made: Vec<usize> = flat.stages.iter().filter_map(|stage| stage.does.scalar()).collect();
        let TimedSteps { program, steps, reductions } = flat.timed(&made)?;
        // Cells that are held are as many as the radius.
        let is_held = |axis: usize| boundaries.0[axis].contains(&Boundary::Fixed);
        let [old, new] = [&*problem.program, &program].map(Program::radius);
        if (0..3).any(|axis| is_held(axis) && old[axis] != new[axis]) {
            return None;
        }
        let halts = steps.iter().filter(|step| reductions_in(step) > 0).count();
        let is_far = halts * REDUCTIONS_APART <= steps.len();
        if !is_far || program.flops() as f64 > growth * problem.program.flops() as f64 + SLIGHT {
            return None;
        }
        let mut values: Vec<f64> = problem.parameters.iter().chain(&problem.scalars).copied().collect();
        let counts = [problem.parameters.len(), values.len()];
        values.resize(program.parameters.len(), 0.0);
        let next = [(problem.first_step % steps.len() as u64) as usize, 0];
        let alone = Problem {
            boundaries,
            sides: Vec::new(),
            until: None,
            marks: None,
            record: None,
            noted: Vec::new(),
            ..problem.clone()
        };
        let reductions = (!reductions.is_empty()).then(|| alone.with_reductions(&flat, reductions));
        let parameters = values.clone();
        let plain = Problem { program: Arc::new(program), parameters, scalars: Vec::new(), noted, ..alone };
        plain.is_plain().then(|| Clock {
            plain,
            steps,
            next,
            reductions,
            values,
            counts,
            nodes: Vec::new(),
            single: Vec::new(),
        })
    }

    /// Returns the plain problem: it has the stages of fields alone, and the scalars' values before the first step as its
    /// last parameters.
    pub fn plain(&self) -> &Problem {
        &self.plain
    }

    /// Returns the plain problem with scalars that stay what they are before the first step, as a plan is made and timed.
    pub fn at_rest(&self) -> Problem {
        let mut program = (*self.plain.program).clone();
        program.parameters.iter_mut().for_each(|parameter| parameter.varies = false);
        Problem { program: Arc::new(program), ..self.plain.clone() }
    }

    /// Returns what a plan of the plain problem says of what kernels note, and of boundaries that are choices in formulas.
    pub fn notes(&self, problem: &Problem) -> Vec<String> {
        let noted = match self.noted().len() {
            0 => None,
            1 => Some("kernels note the value of the probe after each step".to_owned()),
            count => Some(format!("kernels note the values of {count} probes after each step")),
        };
        let halting = self
            .between_reductions()
            .map(|(steps, _)| format!("passes end once in {steps} steps, where fields are reduced"));
        noted.into_iter().chain(halting).chain(self.note_of_boundaries(problem)).collect()
    }

    fn note_of_boundaries(&self, problem: &Problem) -> Option<String> {
        let shared = self.plain.boundaries;
        let fields = problem.program.fields();
        let own = (0..fields.len()).filter(|&field| problem.boundaries_of(field) != shared);
        let own: Vec<&str> = own.map(|field| &*fields[field]).collect();
        let dimensions = problem.shape.dimensions();
        (!own.is_empty()).then(|| {
            let (shared, own) = (shared.describe(dimensions), own.join(", "));
            format!("ghost cells of all fields are those of {shared}; formulas choose what the own boundaries of {own} say beyond")
        })
    }

    /// Returns whether the program has scalars.
    pub fn has_scalars(&self) -> bool {
        self.counts[0] < self.counts[1]
    }

    /// Returns the values that kernels note after each step.
    pub fn noted(&self) -> &[Probe] {
        &self.plain.noted
    }

    /// Returns whether a stage of fields reads a scalar that changes.
    pub fn is_read(&self) -> bool {
        self.plain.program.parameters.iter().any(|parameter| parameter.varies)
    }

    /// Returns the scalars after the last step.
    pub fn scalars(&self) -> &[f64] {
        &self.values[self.counts[0]..self.counts[1]]
    }

    /// Sets a parameter for the steps that follow.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a number that is none of a parameter.
    pub fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let own = &self.plain.program.parameters()[..self.counts[0]];
        let names = own.iter().map(|parameter| parameter.name.as_str());
        let known = self.values[..self.counts[0]].get_mut(parameter);
        *known.ok_or_else(|| Error::unknown("parameter", parameter.to_string(), names))? = value;
        Ok(())
    }

    /// Returns the reductions of fields between passes: each a stage of a step of this problem, whose scalars are
    /// [`Clock::values`]. `None` if there are none.
    pub fn reductions(&self) -> Option<&Problem> {
        self.reductions.as_ref()
    }

    /// Returns the values of the parameters and of the scalars, as the next stage finds them.
    pub fn values(&self) -> &[f64] {
        &self.values[..self.counts[1]]
    }

    /// Returns the values of all parameters of the plain problem, as the next stage finds them.
    pub fn all_values(&self) -> &[f64] {
        &self.values
    }

    /// Returns what there is to do from each reduction of the cycle to the next, in order; nothing where a device cannot do that
    /// by itself, because a step sets no field.
    pub fn stretches(&self) -> Vec<Stretch> {
        Stretch::of(&self.steps)
    }

    /// Returns the number of the stretch behind the reduction that was asked for.
    pub fn next_stretch(&self) -> usize {
        let [step, stage] = self.next;
        self.steps[..step].iter().map(|step| reductions_in(step)).sum::<usize>()
            + reductions_in(&self.steps[step][..stage])
    }

    /// Returns the mean of the steps from one reduction to the next, and how many there are then; `None` without reductions.
    pub fn between_reductions(&self) -> Option<(usize, usize)> {
        let halts = self.steps.iter().filter(|step| reductions_in(step) > 0).count();
        let all: usize = self.steps.iter().map(|step| reductions_in(step)).sum();
        (halts > 0).then(|| (self.steps.len() / halts, all.div_ceil(halts)))
    }

    /// Does so many steps of the scalars, none of which is one of reductions. Returns what varies in each stage of each step: the
    /// parameters of [`Program::varying`].
    pub fn varying(&mut self, steps: u64) -> Vec<f64> {
        let mut read = Vec::new();
        for _ in 0..steps {
            self.step(&mut read);
        }
        let numbers = self.plain.program.varying();
        let rows = read.chunks(self.values.len().max(1));
        rows.flat_map(|row| numbers.iter().map(|&number| row[number])).collect()
    }

    /// Goes on to the end of the step that is next or under way; returns the reduction whose value it needs for that, if it
    /// does. Adds to `read` what each stage of fields reads: all parameters of the plain problem.
    pub fn step(&mut self, read: &mut Vec<f64>) -> Option<Asked> {
        let Clock { plain, steps, next, values, nodes, single, .. } = self;
        let is_read = plain.program.parameters.iter().any(|parameter| parameter.varies);
        let [step, stage] = *next;
        let stages = &steps[step];
        for (number, stage) in stages.iter().enumerate().skip(stage) {
            match stage {
                Timed::Scalar(dag, scalar) => values[*scalar] = evaluated(dag, nodes, values),
                Timed::Fields(parts) => {
                    for (dag, parameter) in parts {
                        values[*parameter] = match plain.dtype {
                            DType::F64 => evaluated(dag, nodes, values),
                            DType::F32 => evaluated(dag, single, values).to_f64(),
                        };
                    }
                    if is_read {
                        read.extend_from_slice(values);
                    }
                }
                Timed::Reduction(reduction, _) => {
                    next[1] = number;
                    let is_behind = stages[..number].iter().any(|stage| matches!(stage, Timed::Fields(_)));
                    return Some(Asked { reduction: *reduction, is_behind });
                }
            }
        }
        *next = [(step + 1) % steps.len(), 0];
        None
    }

    /// Takes the value of the reduction that [`Clock::step`] has asked for.
    pub fn reduced(&mut self, value: f64) {
        let [step, stage] = self.next;
        if let Some(Timed::Reduction(_, scalar)) = self.steps[step].get(stage) {
            self.values[*scalar] = value;
            self.next[1] += 1;
        }
    }
}

/// Returns how many reductions a step has.
fn reductions_in(step: &[Timed]) -> usize {
    step.iter().filter(|stage| matches!(stage, Timed::Reduction(..))).count()
}

/// Returns the value of a formula of parameters with these values.
fn evaluated<T: Real>(dag: &Dag, nodes: &mut Vec<T>, values: &[f64]) -> T {
    dag.evaluate_parameters(nodes, |number| T::from_f64(values[number]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Shape;
    use crate::program::{Centring, Definition, Reduction};
    use crate::real::DType;

    fn problem(define: impl FnOnce(&mut Definition)) -> Problem {
        let mut p = Definition::new("p", 1);
        p.field("u", Centring::CELL).parameter("dt", 0.5, "a step").scalar("time", Some(0.25), "time");
        define(&mut p);
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[8]).unwrap(), DType::F32).unwrap()
    }

    /// A scalar that is made between two stages has its old value in the first and its new one in the second.
    #[test]
    fn each_stage_reads_the_scalars_of_its_place() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
            step.stage("b", |s| s.set("u", s.field("u").here() - s.param("time")));
        });
        let mut clock = Clock::of(&problem).unwrap();
        assert!(clock.is_read() && clock.plain().is_plain() && clock.plain().check().is_ok());
        assert_eq!(clock.plain().program.stages().len(), 2);
        let mut read = Vec::new();
        clock.step(&mut read);
        clock.set_parameter(0, 1.0).unwrap();
        clock.step(&mut read);
        assert_eq!(read, [0.5, 0.25, 0.5, 0.75, 1.0, 0.75, 1.0, 1.75]);
        assert_eq!(clock.scalars(), [1.75]);
    }

    #[test]
    fn a_scalar_that_no_field_needs_is_not_handed_on() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("dt")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
        });
        let mut clock = Clock::of(&problem).unwrap();
        let mut read = Vec::new();
        clock.step(&mut read);
        assert!(!clock.is_read() && read.is_empty() && clock.scalars() == [0.75]);
    }

    #[test]
    fn scalars_of_fields_and_programs_of_other_kinds_have_no_clock() {
        let reduced = problem(|p| {
            let mut step = p.step();
            step.reduce("time", Reduction::Max, Centring::CELL, |s| s.field("u").here());
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
        });
        assert!(Clock::of(&reduced).is_none());
        // The temporary is made of values that are no longer there where it is read.
        let other = problem(|p| {
            p.temporary("t", Centring::CELL);
            let mut step = p.step();
            step.stage("t", |s| s.set("t", s.field("u").here()));
            step.stage("a", |s| s.set("u", s.field("u").at([1])));
            step.stage("b", |s| s.set("u", s.field("u").here() + s.field("t").here()));
        });
        assert!(Clock::of(&other).is_none());
    }
}
