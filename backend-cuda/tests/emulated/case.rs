//! A launch that is emulated and compared with the reference: its problem, its plan, its words.

use std::sync::Arc;

use abide_planner::persistent::with_planes_in_registers;

use abide_core::plan::persistent::Synchronisation;
use abide_core::plan::resident::Exchange;
use abide_core::plan::streaming::warp;
use abide_core::plan::{CachePolicy, Schedule, persistent, resident};
use abide_core::program::{Centring, Clock, Definition};
use abide_core::{
    Array, Boundaries, Boundary, DType, DeviceSpec, Error, Plan, Problem, Program, Result, Scope, Shape,
    Start, Stencil, catalogue,
};
use abide_emulator::{Compiler, Launch, replaced};

/// Orders of the lanes that each case runs in, one for each way in which copies may arrive.
const SEEDS: std::ops::Range<usize> = 0..3;

/// `u' = 1.01·u + 0.1`: a stage of radius 0.
struct Grow;

impl Stencil for Grow {
    fn name(&self) -> &str {
        "grow"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn define(&self, scope: &Scope<'_>) {
        let u = scope.field("u");
        scope.set("u", u.here() * 1.01 + 0.1);
    }
}

/// A star of radius 2, all of whose weights are different.
struct Star;

impl Stencil for Star {
    fn name(&self) -> &str {
        "star"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn define(&self, scope: &Scope<'_>) {
        let u = scope.field("u");
        let taps = [(0, -2), (0, -1), (0, 1), (0, 2), (1, -2), (1, -1), (1, 1), (1, 2)];
        let weighted = taps
            .into_iter()
            .zip(1..)
            .map(|((axis, by), number)| u.along(axis, by) * (0.01 * f64::from(number)));
        scope.set("u", weighted.fold(u.here() * 0.5, |sum, tap| sum + tap));
    }
}

/// Taps along two axes that reach to one side alone.
struct Lean;

impl Stencil for Lean {
    fn name(&self) -> &str {
        "lean"
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn define(&self, scope: &Scope<'_>) {
        let u = scope.field("u");
        let taps = [(0, -1), (0, 1), (1, 1), (1, 2), (2, 1), (2, 2)];
        let weighted = taps
            .into_iter()
            .zip(1..)
            .map(|((axis, by), number)| u.along(axis, by) * (0.01 * f64::from(number)));
        scope.set("u", weighted.fold(u.here() * 0.5, |sum, tap| sum + tap));
    }
}

/// Returns a program of two stages whose scalars follow from the step: one is made before both, one between them.
fn swinging(dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("swinging", dimensions);
    p.field("u", Centring::CELL).field("v", Centring::CELL).parameter("dt", 0.125, "time step");
    p.scalar("time", Some(0.25), "the time").scalar("drift", Some(-0.5), "of v");
    p.step()
        .compute("time", |s| s.param("time") + s.param("dt"))
        .stage("heat", |s| {
            let u = s.field("u");
            s.set("u", u.here() + 0.1 * u.laplacian() + s.coord(0) * s.param("time").sin());
        })
        .compute("drift", |s| s.param("time").cos() / (1.0 + s.param("drift") * s.param("drift")))
        .stage("follow", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("v", v.here() + s.param("drift") * (u.here() - v.here()) + s.param("dt"));
        });
    p.build()
}

/// A launch that is emulated.
pub struct Case {
    pub name: &'static str,
    pub program: &'static str,
    pub extents: &'static [usize],
    pub dtype: DType,
    pub boundaries: &'static str,
    /// The device's compute capability, times 100; copies to shared memory are asynchronous from 800 on.
    pub architecture: u32,
    pub plan: How,
}

pub enum How {
    /// A streaming kernel on `multiprocessors`, for `passes` passes in one launch.
    Streaming { configuration: warp::Configuration, multiprocessors: usize, passes: u64 },
    /// A pass of a slab's kernel that stores the planes `own` alone, and `given` of them, the first and the last, into the memory of
    /// the slabs beside it, too.
    Giving { configuration: warp::Configuration, own: [usize; 2], given: [usize; 2] },
    /// A persistent kernel on `multiprocessors`, with `planes` of a tile in registers, for `steps` steps.
    Persistent {
        configuration: persistent::Configuration,
        multiprocessors: usize,
        planes_registers: usize,
        steps: u64,
        synchronisation: Synchronisation,
    },
    /// A kernel that keeps the whole domain on `multiprocessors`, for `steps` steps, with so many copies of the
    /// lines that warps read of each other.
    Resident { configuration: resident::Configuration, multiprocessors: usize, steps: u64, halves: usize },
}

/// Returns tiles that hold the whole domain and exchange by counters.
pub const fn resident(
    depth: usize,
    warps: usize,
    planes: usize,
    planes_registers: usize,
    cells_per_thread: [usize; 2],
    multiprocessors: usize,
    steps: u64,
) -> How {
    let configuration = resident::Configuration {
        depth,
        warps,
        planes,
        planes_registers,
        cells_per_thread,
        blocks_per_multiprocessor: 1,
        exchange: Exchange::Counted,
    };
    How::Resident { configuration, multiprocessors, steps, halves: 2 }
}

impl Case {
    fn problem(&self) -> Result<Problem> {
        let program = match self.program {
            "lean" => Program::new(&Lean)?,
            "unequal" => Program::sequence("unequal", &[&Grow, &Star])?,
            "swinging" => swinging(self.extents.len())?,
            name => catalogue::find(name)?.program(self.extents.len())?,
        };
        let mut problem = Problem::new(Arc::new(program), Shape::new(self.extents)?, self.dtype)?;
        problem.set_boundaries(Boundaries::parse(self.boundaries, Boundary::Fixed)?);
        problem.check()?;
        Ok(problem)
    }

    /// Returns the plan after a check of what the case is there for, such as several blocks.
    fn plan(&self, problem: &Problem) -> Result<Plan> {
        let mut device = DeviceSpec::preset("h200")?;
        device.multiprocessors = 1;
        let none = || {
            Error::invalid(format!("the configuration of {}", self.name), "it does not fit", "give another")
        };
        match &self.plan {
            How::Streaming { configuration, multiprocessors, passes } => {
                device.multiprocessors = *multiprocessors;
                let plan =
                    abide_planner::streaming::warp::plan_configuration(problem, &device, configuration)
                        .ok_or_else(none)?;
                // Both ways to sum places are covered.
                let other = if *passes > 1 { plan.with_other_sums() } else { None };
                let plan = other.unwrap_or(plan);
                let stream = plan.warp_streaming().ok_or_else(none)?;
                assert_eq!(stream.configuration(), *configuration, "{}", self.name);
                assert!(stream.shares > 1, "{}: one block", self.name);
                assert_eq!(stream.chained, *passes > 1, "{}", self.name);
                Ok(plan)
            }
            How::Giving { configuration, own: [first, end], given } => {
                let plan =
                    abide_planner::streaming::warp::plan_configuration(problem, &device, configuration)
                        .ok_or_else(none)?;
                let edges = warp::Edges { own: *first..*end, given: *given };
                plan.unchained().unwrap_or(plan).giving(edges).ok_or_else(none)
            }
            How::Persistent { configuration, multiprocessors, planes_registers, synchronisation, .. } => {
                device.multiprocessors = *multiprocessors;
                let plan = abide_planner::persistent::plan_configuration(
                    problem,
                    &device,
                    CachePolicy::Mixed,
                    configuration,
                )
                .ok_or_else(none)?;
                let plan = with_planes_in_registers(&plan, problem, *planes_registers);
                let persistent = plan.persistent().ok_or_else(none)?;
                assert_eq!(
                    (persistent.planes_registers, persistent.synchronisation),
                    (*planes_registers, *synchronisation)
                );
                assert!(
                    persistent.blocks > 1 && persistent.planes_shared > 0,
                    "{}: {persistent:?}",
                    self.name
                );
                Ok(plan)
            }
            How::Resident { configuration, multiprocessors, halves, .. } => {
                device.multiprocessors = *multiprocessors;
                let mut plan = abide_planner::resident::plan_configuration(problem, &device, configuration)
                    .ok_or_else(none)?;
                if let Schedule::Resident(resident) = &mut plan.schedule {
                    resident.halves = *halves;
                }
                let blocks = plan.resident().ok_or_else(none)?.blocks();
                assert_eq!(blocks > 1, *multiprocessors > 1, "{}: {:?}", self.name, plan.schedule);
                Ok(plan)
            }
        }
    }

    fn steps(&self) -> u64 {
        match &self.plan {
            How::Streaming { configuration, passes, .. } => configuration.depth as u64 * passes,
            How::Giving { configuration, .. } => configuration.depth as u64,
            How::Persistent { steps, .. } | How::Resident { steps, .. } => *steps,
        }
    }

    /// Runs the case with some words of its kernel replaced; the error describes what is wrong with the result.
    pub fn run(&self, compiler: &Compiler, changes: &[(&str, &str)]) -> std::result::Result<(), String> {
        let said = |error: Error| error.to_string();
        let whole = self.problem().map_err(said)?;
        let mut clock = Clock::of(&whole);
        let problem = clock.as_ref().map_or(&whole, Clock::plain).clone();
        let plan = self.plan(&problem).map_err(said)?;
        let text = abide_shaders::cuda::kernel(&problem, &plan).map_err(said)?;
        let text = replaced(&text, changes)?;
        let start: Vec<Array> = (1..=problem.program.fields().len() as u64)
            .map(|seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype))
            .collect::<Result<_>>()
            .map_err(said)?;
        let mut expected = start.clone();
        abide_cpu::reference::advance(&whole, &mut expected, self.steps()).map_err(said)?;
        let launch = Launch::compile(compiler, &problem, &plan, self.architecture, self.steps(), &text)?;
        let varying = clock.as_mut().map(|clock| clock.varying(self.steps())).unwrap_or_default();
        for seed in SEEDS {
            let result = launch
                .run(&start, [&problem.parameters, &varying], seed)
                .map_err(|why| format!("seed {seed}: {why}"))?;
            for (number, (expected, result)) in expected.iter().zip(&result).enumerate() {
                let size = problem.dtype.bytes();
                let pairs = expected.as_bytes().chunks(size).zip(result.chunks(size)).enumerate();
                // Other planes are for others to store.
                let is_own = |&(index, _): &(usize, (&[u8], &[u8]))| match self.plan {
                    How::Giving { own: [first, end], .. } => {
                        (first..end).contains(&problem.shape.cell(index)[0])
                    }
                    _ => true,
                };
                let wrong = pairs.filter(is_own).filter(|(_, (a, b))| a != b).map(|(index, _)| index);
                let wrong: Vec<usize> = wrong.collect();
                if let Some(&first) = wrong.first() {
                    return Err(format!(
                        "seed {seed}: {} cells of field {} are not the reference's, the first at {:?}",
                        wrong.len(),
                        problem.program.fields()[number],
                        problem.shape.cell(first)
                    ));
                }
            }
        }
        Ok(())
    }
}
