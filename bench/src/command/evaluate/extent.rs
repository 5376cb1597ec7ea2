//! What an evaluation measures, and how long it may take.

use std::time::Duration;

use abide::backend::{Kind, Opened};
use abide::{DType, Result, Shape};

use crate::{Check, Domain, Settings, measure, problem, solving, stepwise};

/// The stencils: stars and boxes of both numbers of axes, of few and many points.
pub const STENCILS: [&str; 5] = ["2d5pt", "2d25pt", "3d7pt", "3d27pt", "poisson"];

/// The domains, the settings, and the time.
#[derive(Debug, Clone)]
pub struct Extent {
    /// The domain of stencils of two axes.
    pub planes: Shape,
    /// The domain of stencils of three axes.
    pub boxes: Shape,
    /// The domain of the copy, larger than caches.
    pub copied: Shape,
    /// The domain of the program.
    pub program: Shape,
    /// The matrix of the solver.
    pub system: &'static str,
    /// The entries of the catalogue whose bits are compared.
    pub verified: &'static [&'static str],
    /// The type of fields: f64 where the device computes fast in it.
    pub dtype: DType,
    /// How stencils and the program are timed.
    pub settings: Settings,
    /// How the solver is timed.
    pub solving: solving::Settings,
    /// The time after which nothing more is begun.
    pub budget: Duration,
}

/// Domains of two axes and of three, and systems by their side, the largest first.
const PLANES: [[usize; 2]; 5] = [[8352, 8352], [4096, 4096], [2304, 2304], [1152, 1152], [384, 384]];
const BOXES: [[usize; 3]; 5] =
    [[512, 512, 512], [256, 256, 256], [128, 192, 256], [96, 96, 128], [48, 48, 64]];
const PROGRAMS: [[usize; 2]; 4] = [[1920, 1920], [960, 960], [240, 240], [60, 60]];
const SYSTEMS: [(usize, &str); 4] = [
    (1000, "laplacian2d:1000x1000"),
    (500, "laplacian2d:500x500"),
    (200, "laplacian2d:200x200"),
    (50, "laplacian2d:50x50"),
];

/// Steps that measuring and comparing a stencil takes, and a program with the steps of a stencil that one of it takes.
const STEPS: f64 = 150.0;
const PROGRAM_STEPS: f64 = 4000.0;

/// Sweeps per row and column that measuring and checking a solver takes.
const SWEEPS: f64 = 50.0;

impl Extent {
    /// Returns what takes a minute at most on a device.
    ///
    /// # Errors
    ///
    /// Those of [`measure`].
    pub fn quick(opened: &Opened) -> Result<Extent> {
        Extent::within(
            opened,
            Duration::from_secs(40),
            Extent {
                planes: Domain::OnChip.shape(2)?,
                boxes: Domain::OnChip.shape(3)?,
                copied: copied(opened)?,
                program: Shape::new(&[480, 480])?,
                system: "laplacian2d:500x500",
                verified: &["2d5pt"],
                dtype: dtype(opened),
                settings: Settings { baseline: true, ..Settings::quick() },
                solving: solving::Settings { seconds: 0.05, repeats: 3, ..solving::Settings::default() },
                budget: Duration::ZERO,
            },
        )
    }

    /// Returns what takes five minutes at most on a device.
    ///
    /// # Errors
    ///
    /// Those of [`measure`].
    pub fn full(opened: &Opened) -> Result<Extent> {
        let is_gpu = opened.kind == Kind::Gpu;
        let [planes, boxes] = match is_gpu {
            true => [Domain::Large.shape(2)?, Domain::Large.shape(3)?],
            false => [Shape::new(&PLANES[1])?, Shape::new(&BOXES[1])?],
        };
        Extent::within(
            opened,
            Duration::from_secs(210),
            Extent {
                planes,
                boxes,
                copied: copied(opened)?,
                program: Shape::new(&PROGRAMS[usize::from(!is_gpu)])?,
                system: SYSTEMS[usize::from(!is_gpu)].1,
                verified: &["2d5pt", "3d7pt", "heat", "gray-scott", "fdtd-tm"],
                dtype: dtype(opened),
                settings: Settings { baseline: true, least_steps: 20, repeats: 3, ..Settings::default() },
                solving: solving::Settings { repeats: 3, ..solving::Settings::default() },
                budget: Duration::ZERO,
            },
        )
    }

    /// Returns an evaluation within a time: its domains, or the next smaller ones that the device has time for.
    fn within(opened: &Opened, budget: Duration, most: Extent) -> Result<Extent> {
        let rate = 1e9 * probe(opened, most.dtype)?;
        // The time of a part.
        let cells = rate * budget.as_secs_f64() / 10.0;
        let fitting = |own: Shape, smaller: &[&[usize]], steps: f64| -> Result<Shape> {
            let fits = |shape: &Shape| shape.cells() as f64 * steps <= cells;
            let shapes = smaller.iter().map(|extents| Shape::new(extents)).collect::<Result<Vec<_>>>()?;
            let least = shapes.last().copied().unwrap_or(own);
            let smaller = shapes.into_iter().filter(|shape| shape.cells() < own.cells());
            Ok(std::iter::once(own).chain(smaller).find(fits).unwrap_or(least))
        };
        let systems = SYSTEMS.iter().skip_while(|(_, name)| *name != most.system);
        let system = systems.clone().find(|(side, _)| (side * side * side) as f64 * SWEEPS <= cells);
        Ok(Extent {
            planes: fitting(most.planes, &PLANES.each_ref().map(|extents| &extents[..]), STEPS)?,
            boxes: fitting(most.boxes, &BOXES.each_ref().map(|extents| &extents[..]), STEPS)?,
            program: fitting(most.program, &PROGRAMS.each_ref().map(|extents| &extents[..]), PROGRAM_STEPS)?,
            system: system.or(systems.last()).map_or(most.system, |(_, name)| name),
            budget,
            ..most
        })
    }

    /// Returns the number of parts that are measured.
    pub fn parts(&self) -> usize {
        self.verified.len() + STENCILS.len() + 3
    }
}

/// Returns the rate of a launch per step on a small domain, in 10⁹ cells per second.
fn probe(opened: &Opened, dtype: DType) -> Result<f64> {
    let problem = problem(STENCILS[0], Shape::new(&PLANES[4])?, dtype)?;
    let settings = Settings {
        options: stepwise(),
        steps: Some(10),
        seconds: 0.01,
        repeats: 1,
        check: Check::Off,
        ..Settings::quick()
    };
    Ok(measure(opened, &problem, &settings)?.gcells_per_s)
}

/// Returns f64 unless the device is slow in it, or may have none.
fn dtype(opened: &Opened) -> DType {
    let device = opened.backend.device();
    let is_slow = device.f64_flops < 0.25 * device.f32_flops;
    if is_slow || opened.backend.name() == "wgpu" { DType::F32 } else { DType::F64 }
}

/// Returns a domain of f32 that is larger than the last-level cache, of 256 MB at the most.
fn copied(opened: &Opened) -> Result<Shape> {
    const ROW: usize = 8192;
    let cells = opened.backend.device().l2_bytes.clamp(32 << 20, 256 << 20) / 4;
    Shape::new(&[cells.div_ceil(ROW), ROW])
}
