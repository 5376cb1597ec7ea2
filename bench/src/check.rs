//! Checks of timed results.
//!
//! The CPU computes a few steps of all cells, because it has no time for more. The timed runs, of many steps,
//! are compared with each other and with a launch per step on the same device.

use abide::backend::{self, Given, Kind, Opened, open_session};
use abide::program::Problem;
use abide::{Array, Error, Execution, Options, Plan, Result, Shape};
use abide_cpu::CpuBackend;
use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::timing::Timed;

/// Extent of the comparison once the times are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// A few steps with the CPU; all timed runs with each other and, unless they were stepwise themselves,
    /// with a launch per step.
    #[default]
    Full,
    /// A few steps with the CPU.
    Sampled,
    /// Nothing.
    Off,
}

impl Check {
    /// All checks, from the strictest.
    pub const ALL: [Check; 3] = [Check::Full, Check::Sampled, Check::Off];

    /// The name as the command writes it.
    pub fn name(self) -> &'static str {
        match self {
            Check::Full => "full",
            Check::Sampled => "sampled",
            Check::Off => "off",
        }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl std::str::FromStr for Check {
    type Err = Error;

    fn from_str(text: &str) -> Result<Check> {
        let found = Check::ALL.into_iter().find(|check| check.name() == text);
        found.ok_or_else(|| Error::unknown("verification", text, Check::ALL.map(Check::name)))
    }
}

/// The comparisons made, of every cell of every field, and the differences found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Checked {
    /// Steps compared with the CPU's.
    pub cpu_steps: u64,
    /// Steps of the timed runs that were compared with each other; 0 where they were not compared.
    pub repeated_steps: u64,
    /// Steps of a timed run compared with a launch per step; 0 where they were not compared, or the timed
    /// runs were stepwise themselves.
    pub stepwise_steps: u64,
    /// The differences found; empty where all is right.
    pub faults: Vec<String>,
}

/// Returns the options of a launch per step.
pub fn stepwise() -> Options {
    Options { execution: Execution::Stepwise, ..Options::default() }
}

/// Returns whether two plans run the same kernels.
pub fn same_path(a: &Plan, b: &Plan) -> bool {
    a.execution == b.execution && a.depth == b.depth && a.schedule == b.schedule
}

/// Returns the number of steps compared with the CPU's: two rounds of a kernel's temporal depth and one step
/// more.
fn few_steps(plan: &Plan, on_cpu: bool) -> u64 {
    let rounds = 2 * u64::from(plan.depth) + 1;
    // The CPU's own backend is compared with the definition: cell by cell on one thread, seconds per step.
    if on_cpu { rounds } else { rounds.max(9) }
}

/// The fields that a few steps of the very session that was timed left.
pub struct FewSteps {
    steps: u64,
    fields: Vec<Array>,
    on_cpu: bool,
}

impl FewSteps {
    /// Compares the fields with those that the CPU makes of the same start; returns the difference found.
    pub fn against_cpu(&self, problem: &Problem, start: &[Array]) -> Result<Option<String>> {
        let expected = cpu(self.on_cpu, problem, start.to_vec(), self.steps)?;
        let how = differs(problem, &self.fields, &expected);
        Ok(how.map(|how| format!("after {} steps from the CPU's: {how}", self.steps)))
    }
}

/// Lets the session that was timed make a few steps anew. Where the backend promises bits, these wait to be compared with
/// the CPU's; else each is held to its bound here.
pub fn few_steps_of(
    opened: &Opened,
    problem: &Problem,
    timed: &mut Timed<'_>,
    start: &[Array],
    found: &mut Checked,
) -> Result<Option<FewSteps>> {
    let (name, on_cpu) = (opened.backend.name(), opened.kind == Kind::Cpu);
    let steps = few_steps(timed.session().plan(), on_cpu);
    found.cpu_steps = steps;
    timed.restart()?;
    if backend::ulp_bound_per_step(name, problem, 1.0)? == 0.0 {
        timed.session().advance(steps)?;
        return Ok(Some(FewSteps { steps, fields: timed.read()?, on_cpu }));
    }
    // A driver that may round otherwise: each step must be within its bound, from the session's own values
    // before it.
    let mut before = start.to_vec();
    for step in 1..=steps {
        let expected = cpu(on_cpu, problem, before.clone(), 1)?;
        timed.session().advance(1)?;
        let after = timed.read()?;
        let magnitude = before.iter().chain(&expected).map(Array::magnitude).fold(0.0, f64::max);
        let bound = backend::ulp_bound_per_step(name, problem, magnitude)?;
        let ulp = after
            .iter()
            .zip(&expected)
            .map(|(a, b)| a.scaled_ulp_distance(b, magnitude).unwrap_or(f64::INFINITY));
        let ulp = ulp.fold(0.0, f64::max);
        if ulp > bound {
            found.faults.push(format!("step {step} is {ulp:.1} ulp from the CPU's, the bound is {bound:.1}"));
            return Ok(None);
        }
        before = after;
    }
    timed.restart()?;
    timed.session().advance(steps)?;
    found.faults.extend(
        differs(problem, &timed.read()?, &before)
            .map(|how| format!("{steps} steps at once from as many single ones: {how}")),
    );
    Ok(None)
}

/// Returns the fields after a few steps by the CPU; for the CPU's own backend, by the definition.
fn cpu(on_cpu: bool, problem: &Problem, mut fields: Vec<Array>, steps: u64) -> Result<Vec<Array>> {
    if on_cpu {
        abide_cpu::reference::advance(problem, &mut fields, steps)?;
        return Ok(fields);
    }
    let oracle = Opened::new(Kind::Cpu, CpuBackend::new());
    let mut fields = Given::new(problem, fields);
    let mut session = open_session(&oracle, problem, &Options::default(), &mut fields)?;
    session.advance(steps)?;
    (0..problem.program.fields().len()).map(|field| session.read(field)).collect()
}

/// Describes where two states differ in their bits: how many values, and the first of them.
pub fn differs(problem: &Problem, a: &[Array], b: &[Array]) -> Option<String> {
    let names = problem.program.fields();
    a.iter().zip(b).zip(names).find_map(|((a, b), name)| {
        let places = match (a, b) {
            (Array::F32(a), Array::F32(b)) => {
                unequal(a.par_iter().zip(b).map(|(a, b)| a.to_bits() != b.to_bits()))
            }
            (Array::F64(a), Array::F64(b)) => {
                unequal(a.par_iter().zip(b).map(|(a, b)| a.to_bits() != b.to_bits()))
            }
            _ => return Some(format!("field {name} is {} and {}", a.dtype(), b.dtype())),
        };
        let (count, first) = places?;
        let at = place(&problem.shape, first);
        let (a_value, b_value) = (a.get(first).unwrap_or(f64::NAN), b.get(first).unwrap_or(f64::NAN));
        Some(format!(
            "{count} of {} values of {name} differ, the first at {at}: {a_value:e} and {b_value:e}",
            problem.shape.cells()
        ))
    })
}

fn unequal(each: impl IndexedParallelIterator<Item = bool>) -> Option<(usize, usize)> {
    each.enumerate()
        .filter(|(_, differs)| *differs)
        .map(|(index, _)| (1, index))
        .reduce_with(|(n, first), (m, second)| (n + m, first.min(second)))
}

/// Formats a cell's place along the axes that the domain has.
fn place(shape: &Shape, index: usize) -> String {
    format!("{:?}", &shape.cell(index)[3 - shape.dimensions()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::DType;

    #[test]
    fn differences_are_counted_and_placed() {
        let problem = super::super::problem("2d5pt", Shape::new(&[4, 5]).unwrap(), DType::F32).unwrap();
        let a = vec![Array::F32(vec![1.0; 20])];
        assert_eq!(differs(&problem, &a, &a), None);
        let mut values = vec![1.0f32; 20];
        values[7] = 1.0 + f32::EPSILON;
        values[13] = 2.0;
        let reported = differs(&problem, &a, &[Array::F32(values)]).unwrap();
        assert!(reported.contains("2 of 20 values of u differ, the first at [1, 2]"), "{reported}");
        assert!(differs(&problem, &a, &[Array::F64(vec![1.0; 20])]).unwrap().contains("f32 and f64"));
        assert!(differs(&problem, &a, &[Array::F32(vec![-0.0; 20])]).is_some());
        assert!(
            differs(&problem, &[Array::F32(vec![0.0; 20])], &[Array::F32(vec![-0.0; 20])]).is_some(),
            "signs are bits"
        );
    }
}
