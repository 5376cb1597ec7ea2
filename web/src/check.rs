//! Checks of steps in this browser against the CPU reference, within the bound that the backend states.

use std::fmt;

use abide_core::{Array, Plan, Problem, Result, Start};
use abide_wgpu::{WgpuBackend, WgpuSession, ulp_bound_per_step_of};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The outcome of a check.
#[derive(Serialize)]
pub struct Report {
    /// The problem, in words.
    problem: String,
    /// Steps done.
    steps: u64,
    /// The plan, in words.
    plan: String,
    /// The digest of the shown field after all steps, on this browser's device.
    device: String,
    /// The digest of the same field by the CPU reference, compiled to WebAssembly.
    reference: String,
    /// The largest difference of a step from the reference's step from the same values, in units in the last
    /// place of the largest value.
    off: f64,
    /// The backend's stated bound per step, in the same unit.
    bound: f64,
    /// The largest difference after all steps, where each side goes on from its own values.
    drift: f64,
    /// Whether all steps in one call gave the bits of as many calls.
    same_bits: bool,
}

impl Report {
    /// Returns the report as JSON, for whoever drives the page.
    pub fn json(&self) -> String {
        // The report has only numbers and text, which can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn holds(&self) -> bool {
        self.off <= self.bound && self.same_bits
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { problem, steps, device, reference, off, bound, drift, same_bits, .. } = self;
        writeln!(f, "{}: {problem}, {steps} steps", if self.holds() { "right" } else { "WRONG" })?;
        writeln!(f, "a step is off by {off:.2} units in the last place, the bound is {bound:.2}")?;
        writeln!(
            f,
            "all in one call {} of one by one",
            if *same_bits { "have the bits" } else { "DIFFER from those" }
        )?;
        writeln!(f, "after all of them {drift:.1e} from the CPU reference")?;
        writeln!(f, "device    {device}")?;
        write!(f, "reference {reference}")
    }
}

/// Steps a problem and compares each step from the device's own values with the reference's; then takes all
/// steps at once.
///
/// The start is random, because a model's own start may be mostly nothing, with edges so faint that devices
/// may take them for zero, which is outside the bound. Field `n`, counted from 0, starts as the command's
/// `random:n+1`.
pub async fn check(backend: &WgpuBackend, problem: &Problem, plan: &Plan, steps: u64) -> Result<Report> {
    let program = &problem.program;
    let values = |field: usize| match program.is_written(field) {
        true => Start::Random { seed: field as u64 + 1, low: 0.0, high: 1.0 },
        false => program.start(field).clone(),
    };
    let fields = (0..program.fields().len()).map(|field| values(field).fill(&problem.shape, problem.dtype));
    let start: Vec<Array> = fields.collect::<Result<_>>()?;
    let mut session = backend.open_async(problem, plan, start.clone()).await?;
    let (mut off, mut bound) = (0.0f64, 0.0f64);
    let mut old = start.clone();
    for _ in 0..steps {
        session.advance_async(1).await?;
        let new = read_all(&mut session, old.len()).await?;
        let before = magnitude(&old);
        let mut expected = old;
        abide_cpu::reference::advance(problem, &mut expected, 1)?;
        let scale = before.max(magnitude(&expected)).max(0.5);
        bound = bound.max(ulp_bound_per_step_of(problem, scale));
        off = off.max(distance(&new, &expected, scale));
        old = new;
    }
    for (field, values) in start.iter().enumerate() {
        session.write_async(field, values).await?;
    }
    session.advance_async(steps).await?;
    let at_once = read_all(&mut session, old.len()).await?;
    let mut reference = start;
    abide_cpu::reference::advance(problem, &mut reference, steps)?;
    let shown = program.shown();
    Ok(Report {
        problem: format!("{} {} {}", program.name(), problem.shape, problem.dtype),
        steps,
        plan: plan.summary(),
        device: digest(&old[shown]),
        reference: digest(&reference[shown]),
        off,
        bound,
        drift: difference(&old, &reference),
        same_bits: at_once.iter().zip(&old).all(|(a, b)| a.same_bits(b)),
    })
}

async fn read_all(session: &mut WgpuSession, fields: usize) -> Result<Vec<Array>> {
    let mut all = Vec::with_capacity(fields);
    for field in 0..fields {
        all.push(session.read_async(field).await?);
    }
    Ok(all)
}

fn magnitude(fields: &[Array]) -> f64 {
    fields.iter().map(Array::magnitude).fold(0.0, f64::max)
}

/// Returns the largest difference in units in the last place at `magnitude`; infinite where values cannot be
/// compared.
fn distance(a: &[Array], b: &[Array], magnitude: f64) -> f64 {
    let one = |(a, b): (&Array, &Array)| a.scaled_ulp_distance(b, magnitude).unwrap_or(f64::INFINITY);
    a.iter().zip(b).map(one).fold(0.0, f64::max)
}

fn difference(a: &[Array], b: &[Array]) -> f64 {
    let values = |fields: &[Array]| fields.iter().flat_map(Array::to_f64).collect::<Vec<_>>();
    values(a).iter().zip(values(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Returns the SHA-256 of a field's bytes, in little-endian order as in an npy file.
fn digest(field: &Array) -> String {
    Sha256::digest(field.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
