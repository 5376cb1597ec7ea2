//! The parts that all kernels of several steps per launch have in common: overlapped tiling and both forms of
//! streaming.

use abide_core::plan::Schedule;
use abide_core::plan::traffic::Traffic;
use abide_core::{DType, Depth, DeviceSpec, Error, Execution, Plan, Problem, Program};

use crate::base::base;

/// The demands of a problem on a kernel of several steps, whatever its form.
pub(super) struct Demand<'a> {
    pub problem: &'a Problem,
    /// The simplified program, of which kernels are made.
    pub program: Program,
    pub radius: [usize; 3],
    /// The cells below and above a cell along each axis that a step reads, all stages combined.
    pub reach: [[usize; 2]; 3],
    /// The same of the step's first stage.
    pub first_reach: [[usize; 2]; 3],
    /// Operations per cell and step; a fused multiply-add is one.
    pub operations: usize,
    /// Places in an arithmetic pipe that these take beyond one each.
    pub more_places: f64,
    /// Fields that a step writes.
    pub written: usize,
}

impl Demand<'_> {
    pub fn of(problem: &Problem) -> Demand<'_> {
        let program = problem.program.simplified(problem.dtype);
        let (mut reach, mut first_reach) = ([[0; 2]; 3], [[0; 2]; 3]);
        for (number, stage) in program.stages().iter().enumerate() {
            for axis in 0..3 {
                let offsets = stage.dag.taps().map(|tap| tap.offset[axis]);
                let (low, high) = offsets.fold((0, 0), |(low, high), at| (low.min(at), high.max(at)));
                let mut sides = [low.unsigned_abs() as usize, high.unsigned_abs() as usize];
                // A ghost cell may show a cell that is as far from the edge on this side.
                if problem.boundaries.shows_a_side(axis).is_some() {
                    sides = [sides[0].max(sides[1]); 2];
                }
                (0..2).for_each(|side| reach[axis][side] += sides[side]);
            }
            if number == 0 {
                first_reach = reach;
            }
        }
        let (operations, radius) = (program.operations(), problem.program.radius());
        let more_places = more_places(&program, problem.dtype);
        let written = (0..program.fields().len()).filter(|&field| program.is_written(field)).count();
        Demand { problem, program, radius, reach, first_reach, operations, more_places, written }
    }

    /// Returns the bytes that a pass moves from and to device memory if `valid` of the computed cells are
    /// kept. Caches hold many of the cells that several windows load, so a cell counts `most` times at most.
    pub fn moved_bytes(&self, valid: f64, most: f64) -> f64 {
        let loads = self.program.fields().len() as f64 * (1.0 / valid).min(most);
        let bytes = self.problem.dtype.bytes() as f64;
        self.problem.shape.cells() as f64 * bytes * (loads + self.written as f64)
    }
}

/// Returns the places in an arithmetic pipe that the operations of a cell and step take beyond one each, the mean of the cycle's
/// steps.
fn more_places(program: &Program, dtype: DType) -> f64 {
    let stages = program.stages().iter().filter(|stage| stage.sweeps());
    stages.map(|stage| stage.dag.more_places(dtype)).sum::<f64>() / program.cycle().max(1) as f64
}

/// Returns the plans of kernels that come with their estimates in seconds per step, the fastest first. Those
/// with the same estimate keep their order.
pub(super) fn fastest_first<K>(mut kernels: Vec<(f64, K)>, plan: impl Fn((f64, K)) -> Plan) -> Vec<Plan> {
    kernels.sort_by(|a, b| a.0.total_cmp(&b.0));
    kernels.into_iter().map(plan).collect()
}

/// Returns the plan of a schedule that takes `depth` steps per launch; `estimate` is in seconds per step.
pub(super) fn plan_of(
    problem: &Problem,
    device: &DeviceSpec,
    (execution, schedule): (Execution, Schedule),
    depth: usize,
    estimate: f64,
) -> Plan {
    let mut traffic = Traffic::in_passes(problem, device, depth);
    traffic.halves = matches!(schedule, Schedule::WarpStreaming(_));
    let mut plan = base(problem, device, execution, schedule, traffic);
    plan.depth = depth as u32;
    plan.estimated_seconds = estimate;
    plan
}

/// Makes the error for a device that has no room for a kind of kernels of several steps on a domain; `room`
/// says how much room there is.
pub(super) fn no_room(what: String, problem: &Problem, domain: String, depth: Depth, room: String) -> Error {
    let depth = match depth {
        Depth::Auto => "1 step deep".to_owned(),
        Depth::Steps(steps) => format!("{steps} steps deep"),
    };
    let (fields, radius) = (problem.program.fields().len(), problem.program.radius());
    let asked = format!("{fields} fields of radius {radius:?} on {domain}, {depth}");
    Error::limit(what, asked, room, "use a smaller --depth, or --execution stepwise")
}
