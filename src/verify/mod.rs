//! Comparison of backends with the reference, as `abide verify` does it.
//!
//! A [`Case`] is a program on an awkward domain; [`cases`] makes the cases of an entry of the catalogue, so
//! that every boundary and both types meet odd, thin and tiny domains. A backend that promises the
//! reference's bits is compared after all steps. A backend that promises a bound per step is compared in
//! every step, from its own values before the step: later steps may magnify a difference as the program
//! magnifies any disturbance.

mod case;
mod difference;

use std::sync::Arc;

use abide_core::catalogue::Entry;
use abide_core::floating::standard;
use rayon::prelude::*;

use crate::backend::{self, Choice, Opened};
use crate::program::Problem;
use crate::{Array, Boundaries, Boundary, DType, Depth, Error, Execution, Options, Program, Result, Shape};

pub use case::Case;
pub use difference::{Difference, distance};

/// Steps of a case: more than one epoch, and odd, so that a swap of buffers too few or too many shows. A
/// kernel that takes many steps per pass is given more, see [`Case::calls`].
pub const STEPS: u64 = 7;

/// Returns awkward domains: a single cell, primes, thinner than any tile, long and flat.
fn sizes(dimensions: usize) -> &'static [&'static [usize]] {
    match dimensions {
        1 => &[&[1], &[61], &[1031], &[2], &[128]],
        2 => &[&[1, 1], &[67, 61], &[3, 257], &[127, 7], &[32, 64]],
        _ => &[&[1, 1, 1], &[13, 17, 19], &[3, 5, 67], &[37, 7, 6], &[2, 1, 131]],
    }
}

fn boundaries() -> Vec<Boundaries> {
    let [fixed, periodic, mirror, constant] =
        [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.375)];
    let mut all: Vec<Boundaries> = Boundary::each_plain(0.375).into_iter().map(Boundaries::all).collect();
    all.push(Boundaries([[mirror, constant], [constant, fixed], [fixed, mirror]]));
    all.push(Boundaries([[periodic; 2], [mirror; 2], [periodic; 2]]));
    all
}

/// Makes the cases of an entry in one type, in all its dimensions: every boundary in turn, the sizes going
/// round.
///
/// ```
/// use abide::{DType, catalogue, verify};
///
/// for case in verify::cases(catalogue::find("1d3pt")?, DType::F64)?.iter().take(2) {
///     println!("{}", case.describe());
///     assert_eq!(case.reference()?.len(), 1);
/// }
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// None for an entry of the catalogue, unless the machine has no memory for small fields ([`Error::Limit`]).
pub fn cases(entry: &Entry, dtype: DType) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for dimensions in entry.dimensions.clone() {
        let program = Arc::new(entry.program(dimensions)?);
        cases.append(&mut cases_of(&program, dtype)?);
    }
    Ok(cases)
}

/// Makes the cases of a program. One that is not plain keeps its own boundary and start, on every size that
/// they allow.
///
/// # Errors
///
/// Those of [`Case::of_start`].
pub fn cases_of(program: &Arc<Program>, dtype: DType) -> Result<Vec<Case>> {
    let sizes = sizes(program.dimensions());
    let mut cases = Vec::new();
    if !program.is_plain() || !program.walls().is_empty() {
        for size in sizes {
            let mut problem = Problem::unchecked(program.clone(), Shape::new(size)?, dtype);
            if problem.lower_walls().is_ok() && problem.check().is_ok() {
                cases.push(Case::of_start(problem)?);
            }
        }
        return Ok(cases);
    }
    let mut turn = program.radius()[2] + program.fields().len();
    for boundaries in boundaries() {
        // A domain thinner than the radius runs a launch per stage alone; the next size is tried then.
        for _ in 0..sizes.len() {
            turn += 1;
            let mut problem =
                Problem::new(program.clone(), Shape::new(&[64; 3][..program.dimensions()])?, dtype)?;
            problem.shape = Shape::new(sizes[turn % sizes.len()])?;
            problem.set_boundaries(boundaries);
            if problem.is_plain() && problem.check().is_ok() {
                cases.push(Case::new(problem, turn as u64)?);
                break;
            }
        }
    }
    Ok(cases)
}

/// The result of one backend for one entry in one type.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Finding {
    /// The backend.
    pub backend: &'static str,
    /// The entry of the catalogue.
    pub entry: &'static str,
    /// The type.
    pub dtype: DType,
    /// Runs compared.
    pub runs: usize,
    /// The difference of the run that comes closest to its bound, or exceeds it most, in units in the last
    /// place: after all steps where the bound is 0, of one step otherwise.
    pub largest: f64,
    /// The bound of that run.
    pub bound: f64,
    /// A case in which the difference is above the bound.
    pub worst: Option<String>,
    /// Runs that did not take place, because a streaming kernel cannot do what they ask.
    pub left_out: usize,
    /// The reason why the backend refused cases, if it did: a type or an operation that its device does not
    /// have.
    pub refused: Option<String>,
    /// Errors that no backend should have.
    pub errors: Vec<String>,
}

impl Finding {
    /// Returns whether the difference is within the bound and there are no errors.
    pub fn holds(&self) -> bool {
        self.largest <= self.bound && self.largest.is_finite() && self.errors.is_empty()
    }
}

/// The result of a verification.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Verification {
    /// One finding for each backend present, entry and type.
    pub findings: Vec<Finding>,
    /// The backends that are absent, each with the reason and whether it had to be present.
    pub skipped: Vec<Skipped>,
}

/// A backend that is absent.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Skipped {
    /// The backend.
    pub backend: &'static str,
    /// The reason for the absence.
    pub reason: String,
    /// Whether [`REQUIRE`] names it.
    pub required: bool,
}

impl Verification {
    /// Returns whether all findings hold and no required backend is absent.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(Finding::holds) && !self.skipped.iter().any(|s| s.required)
    }
}

/// The environment variable that lists backends, separated by commas, that must not be skipped.
pub const REQUIRE: &str = "ABIDE_REQUIRE";

/// Returns whether [`REQUIRE`] names the backend.
pub fn is_required(backend: &str) -> bool {
    std::env::var(REQUIRE).is_ok_and(|list| list.split(',').any(|name| name.trim() == backend))
}

/// Opens the backends that are present, and lists those that are absent.
pub fn present(choice: Choice) -> (Vec<(&'static str, Opened)>, Vec<Skipped>) {
    let mut all = (Vec::new(), Vec::new());
    for name in backend::names().filter(|name| choice == Choice::Auto || choice == Choice::Named(name)) {
        match backend::open(name) {
            Ok(opened) => all.0.push((name, opened)),
            // A backend that the user named counts as required.
            Err(error) => {
                let required = is_required(name) || choice != Choice::Auto;
                all.1.push(Skipped { backend: name, reason: error.to_string(), required });
            }
        }
    }
    all
}

/// Compares every backend present, or one backend, with the reference for some entries of the catalogue.
/// `observe` gets the number of entries that are done, and the number of all.
///
/// ```no_run
/// use abide::{Choice, catalogue, verify};
///
/// let entries = [catalogue::find("heat")?, catalogue::find("2d5pt")?];
/// assert!(verify::verify(Choice::Auto, &entries, |_, _| {})?.holds());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Limit`] where the machine has no threads or memory for the reference. A backend that is absent is listed as
/// [`Skipped`], and one that fails or differs is a [`Finding`].
pub fn verify(
    choice: Choice,
    entries: &[&Entry],
    mut observe: impl FnMut(usize, usize),
) -> Result<Verification> {
    abide_cpu::start_threads()?;
    let (present, skipped) = present(choice);
    let mut findings = Vec::new();
    // Without a backend nothing would be compared with the reference.
    let compared = if present.is_empty() { &[] } else { entries };
    for (number, entry) in compared.iter().enumerate() {
        for dtype in [DType::F32, DType::F64] {
            // The reference takes most of the time, and one thread a case.
            let cases = cases(entry, dtype)?;
            let computed = |case: Case| standard(|| case.reference().map(|fields| (case, fields)));
            let cases: Vec<(Case, Vec<Array>)> =
                abide_cpu::on_threads(|| cases.into_par_iter().map(computed).collect::<Result<_>>())??;
            for (name, opened) in &present {
                findings.push(compare(name, opened, entry, dtype, &cases)?);
            }
        }
        observe(number + 1, entries.len());
    }
    Ok(Verification { findings, skipped })
}

fn compare(
    name: &'static str,
    opened: &Opened,
    entry: &Entry,
    dtype: DType,
    cases: &[(Case, Vec<Array>)],
) -> Result<Finding> {
    let mut finding = Finding {
        backend: name,
        entry: entry.name,
        dtype,
        runs: 0,
        largest: 0.0,
        bound: 0.0,
        worst: None,
        left_out: 0,
        refused: None,
        errors: Vec::new(),
    };
    let backend = opened.backend.as_ref();
    let variants = backend::variants(name)?;
    // Programs that are not plain have a single way to run.
    let suits =
        |case: &Case, options: &Options| case.problem.is_plain() || options.execution == Execution::Stepwise;
    let runs: Vec<(&Case, &Vec<Array>, Options)> = cases
        .iter()
        .flat_map(|(case, expected)| variants.iter().map(move |&o| (case, expected, o)))
        .filter(|(case, _, options)| suits(case, options))
        .collect();
    // Cases run side by side, because most of the time goes into compiling kernels.
    let run = |&(case, expected, options): &(&Case, &Vec<Array>, Options)| -> Result<Option<Difference>> {
        let plan = match backend.plan(&case.problem, &options) {
            // Plans of several steps per launch or exchange have limits of their own; a launch per stage runs what
            // they refuse.
            Err(Error::Limit { .. })
                if !matches!(options.execution, Execution::Auto | Execution::Stepwise) =>
            {
                return Ok(None);
            }
            plan => plan?,
        };
        let exact = backend::ulp_bound_per_step(name, &case.problem, 1.0)? == 0.0;
        let difference = match exact {
            true => case.run(backend, &plan, expected),
            false => case.run_by_steps(name, backend, &plan),
        };
        difference.map(Some)
    };
    let differences: Vec<Result<Option<Difference>>> =
        abide_cpu::on_threads(|| runs.par_iter().map(|own| standard(|| run(own))).collect())?;
    for ((case, _, options), difference) in runs.iter().zip(differences) {
        let run = || format!("{}, {}", case.describe(), words(options));
        match difference {
            Ok(None) => finding.left_out += 1,
            Ok(Some(Difference { ulp, bound })) => {
                finding.runs += 1;
                if ulp > bound {
                    finding.worst = Some(run());
                }
                // The run that comes closest to its bound stands for all runs.
                let so_far = Difference { ulp: finding.largest, bound: finding.bound };
                if (Difference { ulp, bound }).share() >= so_far.share() {
                    (finding.largest, finding.bound) = (ulp, bound);
                }
            }
            Err(error @ Error::Unsupported { .. }) => {
                finding.refused.get_or_insert(error.to_string());
            }
            Err(error) => finding.errors.push(format!("{}: {error}", run())),
        }
    }
    Ok(finding)
}

/// Describes the options of a run.
fn words(options: &Options) -> String {
    match options.depth {
        Depth::Auto => format!("{} {}", options.execution, options.cache),
        Depth::Steps(steps) => format!("{} {} depth {steps}", options.execution, options.cache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, catalogue};

    #[test]
    fn every_entry_meets_every_kind_of_boundary() {
        for entry in catalogue::plain() {
            for case in cases(entry, DType::F32).unwrap().chunks(boundaries().len()) {
                assert_eq!(case.len(), boundaries().len(), "{}", entry.name);
                assert!(case.iter().all(|case| case.problem.check().is_ok()));
            }
        }
    }

    /// All but streaming kernels run every case. Streaming kernels, if they need not be deep, run all cases
    /// without these four: planes of a single row; a periodic axis shorter than the margin of a window, which is
    /// a multiple of 16 bytes; Yee's schemes under `reflect`, whose second stage taps the plane before its own alone;
    /// and three fields of radius 4 in three dimensions, of which no window fits.
    #[cfg(feature = "cuda")]
    #[test]
    fn every_variant_has_a_plan_for_every_case() {
        // Each case on one of the devices.
        let devices = crate::device::PRESETS.map(|name| crate::DeviceSpec::preset(name).unwrap());
        let has_warps = |device: &&crate::DeviceSpec| device.has(crate::device::Capability::Warps);
        let mut devices = devices.iter().filter(has_warps).cycle();
        for entry in catalogue::plain() {
            for case in [DType::F32, DType::F64].iter().flat_map(|&dtype| cases(entry, dtype).unwrap()) {
                let device = devices.next().unwrap();
                let Problem { program, boundaries, shape, .. } = &case.problem;
                let flat = program.dimensions() == 3 && shape.padded()[1] == 1;
                let late = entry.name.starts_with("fdtd")
                    && boundaries.0.as_flattened().contains(&Boundary::Reflect);
                let wide = entry.name == "acoustic" && program.dimensions() == 3;
                let streams = !flat
                    && !late
                    && !wide
                    && (0..3).all(|axis| {
                        let (sides, radius) = (boundaries.0[axis], program.radius()[axis]);
                        let thin = sides[0] == Boundary::Periodic
                            && shape.padded()[axis] < radius.next_multiple_of(4);
                        !thin
                    });
                for options in abide_cuda::variants() {
                    let plan = crate::plan::plan(&case.problem, device, &options);
                    let deep = matches!(options.depth, Depth::Steps(steps) if steps > 1);
                    let streaming = options.execution == Execution::Streaming;
                    let may_refuse = deep || (streaming && !streams);
                    let holds = plan.is_ok() || (may_refuse && matches!(plan, Err(Error::Limit { .. })));
                    assert!(holds, "{} {} {options:?}: {:?}", device.name, case.describe(), plan.err());
                }
            }
        }
    }

    /// Simulates how a launcher divides steps: whole passes, then passes of half the depth for the remainder,
    /// and so on.
    #[test]
    fn the_calls_of_a_case_take_passes_of_every_depth() {
        let case = &cases(catalogue::find("2d5pt").unwrap(), DType::F32).unwrap()[0];
        let backend = backend::open("cpu").unwrap().backend;
        let plan = backend.plan(&case.problem, &Options::default()).unwrap();
        for depth in 1..=40u32 {
            let mut taken = std::collections::BTreeSet::new();
            for mut left in case.calls(&Plan { depth, ..plan.clone() }) {
                let mut pass = u64::from(depth);
                while pass > 0 {
                    if left >= pass {
                        taken.insert(pass);
                    }
                    (left, pass) = (left % pass, pass / 2);
                }
                assert_eq!(left, 0);
            }
            let mut passes = Vec::new();
            let mut pass = u64::from(depth);
            while pass > 0 {
                passes.insert(0, pass);
                pass /= 2;
            }
            assert_eq!(taken.into_iter().collect::<Vec<_>>(), passes, "depth {depth}");
        }
    }

    /// CloverLeaf's fields and scalars, on the CPU with the reference's bits; a scalar that is off is found.
    #[test]
    fn programs_are_compared_with_their_scalars() {
        let entry = catalogue::find("cloverleaf").unwrap();
        let opened = backend::open("cpu").unwrap();
        let with_reference = |case: Case| (case.clone(), case.reference().unwrap());
        let mut cases: Vec<_> = cases(entry, DType::F64).unwrap().into_iter().map(with_reference).collect();
        assert!(cases.len() >= 4, "{}", cases.len());
        let compared = compare("cpu", &opened, entry, DType::F64, &cases).unwrap();
        assert!(compared.holds() && compared.runs == cases.len(), "{compared:?}");
        let Some(Array::F64(scalars)) = cases[1].1.last_mut() else { panic!("no scalars") };
        scalars[0] = scalars[0].next_up();
        assert_eq!(compare("cpu", &opened, entry, DType::F64, &cases).unwrap().largest, 1.0);
    }

    #[test]
    fn a_wrong_value_is_a_finding() {
        let entry = catalogue::find("2d5pt").unwrap();
        let opened = backend::open("cpu").unwrap();
        let mut cases: Vec<_> = cases(entry, DType::F64)
            .unwrap()
            .into_iter()
            .map(|c| (c.clone(), c.reference().unwrap()))
            .collect();
        let compared = compare("cpu", &opened, entry, DType::F64, &cases).unwrap();
        let ways = backend::variants("cpu").unwrap().len();
        assert!(compared.holds() && compared.runs + compared.left_out == cases.len() * ways, "{compared:?}");
        if let Array::F64(values) = &mut cases[1].1[0] {
            values[0] = f64::from_bits(values[0].to_bits() + 3);
        }
        let compared = compare("cpu", &opened, entry, DType::F64, &cases).unwrap();
        assert!(!compared.holds());
        assert_eq!(compared.largest, 3.0);
        assert!(compared.worst.unwrap().contains("2d5pt"));
    }
}
