//! The parts of an evaluation, one after the other.

use std::sync::Arc;
use std::time::Instant;

use abide::backend::{self, Kind, Opened};
use abide::program::{Centring, Definition, Problem};
use abide::solve::{Method, Solve, SolverError, named};
use abide::verify::{Verification, verify};
use abide::{Choice, DType, Error, Execution, Fuse, Result, Shape, catalogue};
use serde::Serialize;

use super::super::record::Machine;
use super::extent::{Extent, STENCILS};
use crate::{Check, Row, Settings, Way, measure, measure_program, problem, solving, stepwise};

/// The program that is measured.
const PROGRAM: &str = "cloverleaf";

/// A backend, with its device or the reason why it has none.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// The backend.
    pub backend: &'static str,
    /// The device's name.
    pub device: Option<String>,
    /// The reason why there is none, or why the device is passed over.
    pub reason: Option<String>,
}

/// A program's time per step.
#[derive(Debug, Clone, Serialize)]
pub struct Program {
    /// The program.
    pub name: &'static str,
    /// The domain.
    pub shape: Shape,
    /// The type of its fields.
    pub dtype: DType,
    /// Milliseconds per step as the planner chooses.
    pub ms_per_step: f64,
    /// Milliseconds per step with its stages by themselves.
    pub ms_by_stages: f64,
    /// Where the fields differ between the two.
    pub faults: Vec<String>,
}

/// What an evaluation found.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// The machine, and the device that was measured.
    pub machine: Machine,
    /// All backends.
    pub devices: Vec<Found>,
    /// The comparison with the reference.
    pub verification: Verification,
    /// Bytes read and written per second by a sweep without neighbours, in 10⁹; 0 if it was not measured.
    pub copy_gb_per_s: f64,
    /// The stencils, each beside a launch per step.
    pub stencils: Vec<Row>,
    /// The program.
    pub program: Option<Program>,
    /// The solver.
    pub solver: Option<solving::Row>,
    /// What was not measured, and why.
    pub left_out: Vec<String>,
    /// Seconds that all took.
    pub seconds: f64,
}

impl Evaluation {
    /// Measures all parts; `begun` is called with the name of each as it begins.
    ///
    /// # Errors
    ///
    /// Those of [`verify`], and a device that fails. A part that cannot be measured is left out by name.
    pub fn of(opened: &Opened, extent: &Extent, mut begun: impl FnMut(&str)) -> Result<Evaluation> {
        let clock = Instant::now();
        let mut evaluation = Evaluation {
            machine: Machine::of(opened),
            devices: backend::names().map(|name| found(name, opened)).collect(),
            verification: Verification { findings: Vec::new(), skipped: Vec::new() },
            copy_gb_per_s: 0.0,
            stencils: Vec::new(),
            program: None,
            solver: None,
            left_out: Vec::new(),
            seconds: 0.0,
        };
        let mut left_out = Vec::new();
        // Whether a part is begun: within so many eighths of the time, or always.
        let mut is_time = |what: &str, eighths: Option<u32>| {
            begun(what);
            let is_time = eighths.is_none_or(|eighths| clock.elapsed() * 8 < extent.budget * eighths);
            if !is_time {
                left_out.push(format!("{what}: no time"));
            }
            is_time
        };
        let choice = Choice::Named(opened.backend.name());
        let mut failed = Vec::new();
        if is_time("copy", Some(6)) {
            match copy(opened, extent) {
                Ok(rate) => evaluation.copy_gb_per_s = rate,
                Err(error) => failed.push(excused("copy", error)?),
            }
        }
        for name in STENCILS {
            if !is_time(name, Some(6)) {
                continue;
            }
            let row = stencil(name, extent).and_then(|problem| measure(opened, &problem, &extent.settings));
            match row {
                Ok(row) => evaluation.stencils.push(row),
                Err(error) => failed.push(excused(name, error)?),
            }
        }
        if is_time(PROGRAM, Some(7)) {
            match program(opened, extent) {
                Ok(program) => evaluation.program = Some(program),
                Err(error) => failed.push(excused(PROGRAM, error)?),
            }
        }
        if is_time("cg", Some(7)) {
            match solver(choice, extent) {
                Ok(row) => evaluation.solver = Some(row),
                Err(SolverError::Invalid(error)) => failed.push(excused("cg", error)?),
                Err(error) => failed.push(format!("cg: {error}")),
            }
        }
        for (number, name) in extent.verified.iter().enumerate() {
            // Last, because a device that compiles its kernels has many to compile for that. No rate counts without right
            // results: the first is always compared.
            if is_time(&format!("bits of {name}"), (number > 0).then_some(8)) {
                let one = verify(choice, &[catalogue::find(name)?], |_, _| {})?;
                evaluation.verification.findings.extend(one.findings);
                evaluation.verification.skipped = one.skipped;
            }
        }
        evaluation.left_out = failed;
        evaluation.left_out.extend(left_out);
        evaluation.seconds = clock.elapsed().as_secs_f64();
        Ok(evaluation)
    }

    /// Returns whether all that was compared is right.
    pub fn holds(&self) -> bool {
        self.verification.holds()
            && self.stencils.iter().all(Row::holds)
            && self.program.iter().all(|program| program.faults.is_empty())
            && self.solver.iter().all(solving::Row::holds)
    }

    /// Returns the differences found.
    pub fn faults(&self) -> Vec<String> {
        let findings = self.verification.findings.iter().filter(|finding| !finding.holds());
        let findings = findings.map(|finding| {
            let how = finding.worst.clone().or(finding.errors.first().cloned()).unwrap_or_default();
            format!("{} in {} on {}: {how}", finding.entry, finding.dtype, finding.backend)
        });
        let rows = self.stencils.iter().flat_map(|row| {
            let faults = row.checked.iter().flat_map(|checked| &checked.faults);
            faults.map(|fault| format!("{}: {fault}", row.stencil))
        });
        let program = self.program.iter().flat_map(|program| &program.faults);
        let solver = self.solver.iter().filter(|row| !row.holds());
        let solver = solver.map(|row| format!("cg: the residual is {:.1e}", row.true_residual));
        findings.chain(rows).chain(program.map(|fault| format!("{PROGRAM}: {fault}"))).chain(solver).collect()
    }

    /// Returns the rate, in 10⁹ cells per second, of a code that loads and stores each cell once in each step at the bandwidth of
    /// the copy; `None` where there was no copy.
    pub fn memory_roof(&self, dtype: DType) -> Option<f64> {
        (self.copy_gb_per_s > 0.0).then(|| self.copy_gb_per_s / (2 * dtype.bytes()) as f64)
    }
}

/// Returns the words on a part that could not be measured; a device that fails ends the evaluation.
fn excused(what: &str, error: Error) -> Result<String> {
    match error {
        Error::Device { .. } => Err(error),
        error => Ok(format!("{what}: {error}")),
    }
}

fn found(name: &'static str, chosen: &Opened) -> Found {
    if name == chosen.backend.name() {
        return Found { backend: name, device: Some(chosen.backend.device().name.clone()), reason: None };
    }
    match backend::open(name) {
        Ok(opened) => Found {
            backend: name,
            device: Some(opened.backend.device().name.clone()),
            reason: (opened.kind == Kind::Software).then(|| "a software driver".to_owned()),
        },
        Err(error) => Found { backend: name, device: None, reason: Some(error.to_string()) },
    }
}

/// Measures a sweep that reads and writes each cell once, in 10⁹ bytes per second.
fn copy(opened: &Opened, extent: &Extent) -> Result<f64> {
    let mut definition = Definition::new("copy", 2);
    definition.field("u", Centring::CELL);
    // No value grows or vanishes.
    definition.step().stage("copy", |s| s.set("u", s.constant(1.0) - s.field("u").here()));
    let problem = Problem::new(Arc::new(definition.build()?), extent.copied, DType::F32)?;
    let settings = Settings { options: stepwise(), check: Check::Off, baseline: false, ..extent.settings };
    let row = measure(opened, &problem, &settings)?;
    Ok(row.gcells_per_s * (2 * DType::F32.bytes()) as f64)
}

fn stencil(name: &str, extent: &Extent) -> Result<Problem> {
    let axes = *catalogue::find(name)?.dimensions.start();
    problem(name, if axes == 3 { extent.boxes } else { extent.planes }, extent.dtype)
}

fn program(opened: &Opened, extent: &Extent) -> Result<Program> {
    let own = catalogue::find(PROGRAM)?.program(extent.program.dimensions())?;
    let problem = Problem::new(Arc::new(own), extent.program, extent.dtype)?;
    let row = |fuse| {
        let way = Way { fuse, execution: Execution::Auto };
        measure_program(opened, &problem, way, &extent.settings)
    };
    let (stages, own) = (row(Fuse::Off)?, row(Fuse::Auto)?);
    Ok(Program {
        name: PROGRAM,
        shape: extent.program,
        dtype: extent.dtype,
        ms_per_step: own.ms_per_step,
        ms_by_stages: stages.ms_per_step,
        faults: own.faults,
    })
}

fn solver(choice: Choice, extent: &Extent) -> Result<solving::Row, SolverError> {
    let matrix = named::matrix(extent.system, extent.dtype)?;
    let solve = Solve::new(matrix).method(Method::Cg).backend(choice);
    solving::measure(extent.system, solve, &extent.solving)
}
