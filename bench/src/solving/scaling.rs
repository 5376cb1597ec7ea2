//! Iterations of conjugate gradients on several devices beside one, on systems that are divided.

use std::ops::ControlFlow;

use abide::backend::Opened;
use abide::solve::{Solve, named, random_vector};
use abide::{Array, Boundaries, Boundary, DType, Result, Shape};
use abide_core::solver::{GridOperator, Matrix, Method, Parameters, Report, SolverError};

use super::{Settings, measure};

/// Iterations after which several devices are compared with one: they cross every cut, and residuals are still far from
/// rounding.
const COMPARED: usize = 60;

/// A system that devices divide among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCase {
    /// The words for it in a table.
    pub name: &'static str,
    /// The domain whose cells are its rows, slowest axis first.
    pub extents: &'static [usize],
    /// The stencil, as in [`named::operator`].
    pub stencil: &'static str,
    /// Whether the matrix is stored.
    pub is_stored: bool,
}

/// The systems of `abide bench scaling`, in f64.
pub const SYSTEMS: [SystemCase; 4] = [
    SystemCase {
        name: "cg 2D Laplacian 1000x999 stored",
        extents: &[1000, 999],
        stencil: "laplacian2d",
        is_stored: true,
    },
    SystemCase {
        name: "cg 2D Laplacian 1000x999 matrix-free",
        extents: &[1000, 999],
        stencil: "laplacian2d",
        is_stored: false,
    },
    SystemCase { name: "cg HPCG 104^3 stored", extents: &[104, 104, 104], stencil: "hpcg", is_stored: true },
    SystemCase { name: "cg HPCG 256^3 stored", extents: &[256, 256, 256], stencil: "hpcg", is_stored: true },
];

impl SystemCase {
    /// Returns the domain.
    pub fn shape(&self) -> Result<Shape> {
        Shape::new(self.extents)
    }

    /// Makes the matrix; values beyond the domain are 0.
    ///
    /// # Errors
    ///
    /// Those of [`named::matrix`], or of the stencil and of the domain.
    pub fn matrix(&self) -> Result<Matrix> {
        if self.is_stored {
            return Ok(named::matrix(&format!("{}:{}", self.stencil, self.shape()?), DType::F64)?.into());
        }
        let zero = Boundaries::all(Boundary::Constant(0.0));
        Ok(GridOperator::new(named::operator(self.stencil)?, self.shape()?, zero, DType::F64)?.into())
    }
}

/// What several devices reached.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemRow {
    /// The devices that solved; fewer than were asked for where there are too few rows.
    pub devices: usize,
    /// How they exchanged entries of vectors; empty for one.
    pub exchange: &'static str,
    /// The median time of an iteration.
    pub us_per_iteration: f64,
    /// The rate in 10⁹ rows per second and iteration.
    pub grows_per_s: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// The share of a solve in which devices exchanged or waited, their mean.
    pub exchange_share: f64,
    /// The plan in one line.
    pub plan: String,
    /// What is wrong: a residual that is not what the solver said, or other bits than those of one device.
    pub faults: Vec<String>,
}

/// Times iterations of conjugate gradients on several devices, and compares the iterate and every residual of a short solve
/// with those of `single`.
///
/// # Errors
///
/// Those of [`measure`].
pub fn measure_system(
    opened: &Opened,
    single: &Opened,
    case: &SystemCase,
    settings: &Settings,
) -> Result<SystemRow, SolverError> {
    let matrix = case.matrix()?;
    let solve = |opened: &Opened| Solve::new(matrix.clone()).method(Method::Cg).on(opened);
    let row = measure(case.name, solve(opened), settings)?;
    let mut faults = Vec::new();
    if !row.holds() {
        faults.push(format!(
            "the residual is {:e} of the right-hand side where {:e} was told",
            row.true_residual, row.tolerance
        ));
    }
    let (report, x) = short(solve(opened))?;
    let ranks = &report.ranks;
    if !ranks.is_empty() {
        let (alone, expected) = short(solve(single))?;
        let bits = |report: &Report| report.history.iter().map(|r| r.to_bits()).collect::<Vec<_>>();
        if bits(&report) != bits(&alone) || !x.same_bits(&expected) {
            faults
                .push(format!("other bits than those of one device after {} iterations", report.iterations));
        }
    }
    let share = |rank: &abide_core::solver::RankSolve| 1.0 - rank.efficiency;
    Ok(SystemRow {
        devices: ranks.len().max(1),
        exchange: ranks.first().map_or("", |rank| rank.exchange),
        us_per_iteration: row.us_per_iteration,
        grows_per_s: row.rows as f64 / row.us_per_iteration.max(1e-9) / 1e3,
        spread_percent: row.spread_percent,
        exchange_share: ranks.iter().map(share).sum::<f64>() / ranks.len().max(1) as f64,
        plan: format!("{}, {}", row.plan.product, row.plan.schedule.describe()),
        faults,
    })
}

/// Solves for some iterations from 0, and returns the report and the iterate.
fn short(solve: Solve) -> Result<(Report, Array), SolverError> {
    let mut system = solve.open()?;
    let b = random_vector(system.matrix().dtype(), system.matrix().rows(), 1)?;
    let mut x = Array::zeros(b.dtype(), b.len())?;
    let parameters = Parameters {
        relative: 0.0,
        absolute: 0.0,
        iterations: COMPARED,
        stagnation: None,
        ..Parameters::DEFAULT
    };
    match system.solve_with(&b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(())) {
        Ok(report) => Ok((report, x)),
        Err(SolverError::NotConverged { report, .. }) => Ok((*report, x)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::backend::{Devices, open, open_on};

    /// Ranks of a CPU are timed, have the bits of one, and report how they exchanged.
    #[test]
    fn several_are_timed_and_compared_with_one() {
        let settings = Settings { seconds: 1e-3, repeats: 3, ..Settings::default() };
        let (one, two) = (open("cpu").unwrap(), open_on("cpu", &Devices::Count(2)).unwrap());
        for (stencil, is_stored, extents) in [
            ("laplacian2d", true, &[41, 37][..]),
            ("laplacian2d", false, &[41, 37]),
            ("hpcg", true, &[9, 8, 11]),
        ] {
            let case = SystemCase { name: "small", extents, stencil, is_stored };
            // A machine that does other work meanwhile may leave no time to iterations: then they are timed again.
            let mut rows = (0..5).map(|_| measure_system(&two, &one, &case, &settings).unwrap());
            let row = rows.find(|row| row.us_per_iteration > 0.0).unwrap();
            assert_eq!((row.devices, row.exchange, &row.faults[..]), (2, "messages", &[][..]), "{stencil}");
            assert!(row.us_per_iteration > 0.0 && (0.0..1.0).contains(&row.exchange_share), "{row:?}");
            let single = measure_system(&one, &one, &case, &settings).unwrap();
            assert_eq!((single.devices, single.exchange), (1, ""));
        }
    }

    #[test]
    fn systems_have_names_of_their_own_and_rows_of_their_domain() {
        for (number, case) in SYSTEMS.iter().enumerate() {
            assert!(SYSTEMS[number + 1..].iter().all(|other| other.name != case.name));
            let small = SystemCase { extents: &[5, 6, 7][..case.extents.len()], ..*case };
            assert_eq!(small.matrix().unwrap().rows(), small.shape().unwrap().cells(), "{}", case.name);
        }
    }
}
