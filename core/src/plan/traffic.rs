//! The bytes and operations of a plan, and the peak that a device's bandwidths allow: the projection of PERKS (Zhang et
//! al., ICS'23, §5.2, eq. 4–12).
//!
//! Equation numbers are the paper's. Bytes are generalised from one field read and one written per step to as
//! many as the program reads and writes.

use std::fmt::{self, Display};

use serde::Serialize;

use super::advances::Advances;
use crate::device::DeviceSpec;
use crate::program::{Problem, Stage};

/// The bytes and operations of a problem's cells, and how many of the cells stay on the chip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Cells of the domain, D.
    pub cells: f64,
    /// Cells that stay in registers between steps, D_cache^reg.
    pub cached_registers: f64,
    /// Cells that stay in shared memory between steps, D_cache^sm.
    pub cached_shared: f64,
    /// Bytes that an uncached cell loads per step, L_gm.
    pub load_bytes: f64,
    /// Bytes that an uncached cell stores per step, S_gm.
    pub store_bytes: f64,
    /// Bytes of all fields of a cell: a cached cell loads them once and takes so much room on the chip.
    pub cell_bytes: f64,
    /// Bytes of the fields of a cell that change: a cached cell stores them once.
    pub changing_bytes: f64,
    /// Bytes per cell of reading every field that a stage reads once, and of writing every field that changes once.
    pub least_bytes: f64,
    /// Bytes that a cell loads and stores per step where each stage is a launch of its own, whatever the plan does.
    pub launched_bytes: f64,
    /// Steps of a pass, in which an uncached cell is loaded and stored once: `load_bytes` and `store_bytes` are a step's
    /// share of it.
    pub pass_steps: u32,
    /// Whether steps that do not fill a pass take passes of half as many steps, a quarter …; else they take one pass.
    pub halves: bool,
    /// Bytes of halo that all tiles load and store per step, A(H(D_cache)).
    pub halo_bytes: f64,
    /// Bytes of shared memory that the kernel moves per cell and step whatever is cached, A_sm(KERNEL).
    pub kernel_shared_bytes: f64,
    /// Floating-point operations per cell and step.
    pub flops: f64,
    /// The rate of these operations on the device, per second.
    pub flops_per_second: f64,
    /// Seconds per step between launches or at barriers, whatever else the step does. They are not part of
    /// the paper's projection, which is a bound by bandwidth, and so are reported beside it.
    pub overhead_seconds: f64,
}

impl Traffic {
    /// Returns the traffic of a problem whose cells all go through device memory in every step.
    pub fn uncached(problem: &Problem, device: &DeviceSpec) -> Traffic {
        let program = &problem.program;
        let bytes = problem.dtype.bytes();
        let written = (0..program.fields().len()).filter(|&f| program.is_written(f)).count();
        let cells = problem.shape.cells() as f64;
        let [load_bytes, store_bytes] = launched(problem).map(|bytes| bytes / cells.max(1.0));
        Traffic {
            cells,
            cached_registers: 0.0,
            cached_shared: 0.0,
            load_bytes,
            store_bytes,
            cell_bytes: (bytes * program.fields().len()) as f64,
            changing_bytes: (bytes * written) as f64,
            least_bytes: least(problem) / cells.max(1.0),
            launched_bytes: load_bytes + store_bytes,
            pass_steps: 1,
            halves: false,
            halo_bytes: 0.0,
            kernel_shared_bytes: 0.0,
            flops: program.flops() as f64,
            flops_per_second: device.flops(problem.dtype),
            overhead_seconds: 0.0,
        }
    }

    /// Returns the traffic of a problem whose cells all go through device memory once per launch of `depth`
    /// steps.
    pub fn in_passes(problem: &Problem, device: &DeviceSpec, depth: usize) -> Traffic {
        let mut traffic = Traffic::uncached(problem, device);
        traffic.pass_steps = depth.clamp(1, u32::MAX as usize) as u32;
        let depth = depth as f64;
        traffic.load_bytes = traffic.cell_bytes / depth;
        traffic.store_bytes = traffic.changing_bytes / depth;
        traffic.overhead_seconds = device.launch_seconds / depth;
        traffic
    }

    /// Returns the passes that `steps` steps take, each of which loads and stores every uncached cell once.
    pub fn passes(&self, steps: u64) -> u64 {
        let pass = u64::from(self.pass_steps.max(1));
        if !self.halves {
            return steps.div_ceil(pass);
        }
        let depths =
            std::iter::successors(Some(pass), |depth| Some(depth / 2)).take_while(|&depth| depth > 0);
        depths.fold((0, steps), |(passes, left), depth| (passes + left / depth, left % depth)).0
    }

    /// Returns the steps of the deepest pass of a run of `steps` steps.
    pub fn deepest(&self, steps: u64) -> u64 {
        let pass = u64::from(self.pass_steps.max(1));
        match self.halves {
            false => steps.min(pass),
            true => {
                let depths = std::iter::successors(Some(pass), |depth| Some(depth / 2));
                depths.take_while(|&depth| depth > 0).find(|&depth| depth <= steps).unwrap_or(0)
            }
        }
    }

    /// Returns the cells that stay on the chip, D_cache.
    pub fn cached(&self) -> f64 {
        self.cached_registers + self.cached_shared
    }

    /// Returns the share of cells that stay on the chip, 0 to 1.
    pub fn cached_share(&self) -> f64 {
        if self.cells > 0.0 { self.cached() / self.cells } else { 0.0 }
    }
}

/// Returns the bytes that a step loads and stores where each stage is a launch of its own, the mean of the cycle's steps.
fn launched(problem: &Problem) -> [f64; 2] {
    let program = &problem.program;
    let sum = program
        .stages()
        .iter()
        .map(|stage| problem.stage_bytes(stage))
        .fold([0.0; 2], |sum, own| [sum[0] + own[0], sum[1] + own[1]]);
    sum.map(|bytes| bytes / program.cycle().max(1) as f64)
}

/// Returns the bytes of reading every field once that a stage reads, and of writing every field once that a stage writes.
/// Stages at points read and write only there.
fn least(problem: &Problem) -> f64 {
    let program = &problem.program;
    let (points, sweeps): (Vec<&Stage>, Vec<&Stage>) =
        program.stages().iter().partition(|stage| !stage.points.is_empty());
    let uses = |field: usize| {
        let is_read = sweeps.iter().any(|stage| stage.footprint.field_radius[field].is_some());
        let is_written = sweeps.iter().any(|stage| stage.writes.contains(&field));
        f64::from(u8::from(is_read) + u8::from(is_written)) * problem.cells_of(field) as f64
    };
    let uses: f64 = (0..program.fields().len()).map(uses).sum();
    uses * problem.dtype.bytes() as f64
        + points.iter().flat_map(|stage| problem.stage_bytes(stage)).sum::<f64>()
}

/// The bottleneck that bounds a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Device memory's bandwidth.
    Memory,
    /// Shared memory's bandwidth.
    Shared,
    /// Arithmetic.
    Arithmetic,
}

impl Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bound::Memory => "device memory",
            Bound::Shared => "shared memory",
            Bound::Arithmetic => "arithmetic",
        })
    }
}

/// The projected peak of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Projection {
    /// Bytes to and from device memory, halos included: A_gm (eq. 5) + A(H).
    pub memory_bytes: f64,
    /// The least bytes possible: every field that is read, read once, and every field that changes, written once. It is what
    /// the steps move where that is less: a run shorter than the program's cycle may leave fields alone, and a stage that
    /// only renames a field moves nothing.
    pub least_bytes: f64,
    /// Seconds that A_gm takes (eq. 6).
    pub memory_seconds: f64,
    /// Seconds that the halos' bytes take.
    pub halo_seconds: f64,
    /// Seconds that shared memory takes (eq. 8).
    pub shared_seconds: f64,
    /// Seconds that the arithmetic takes; not in the paper, whose stencils never reach it.
    pub arithmetic_seconds: f64,
    /// The projected time, T_PERKS (eq. 9).
    pub seconds: f64,
    /// Cells times steps over the projected time, P (eq. 10), in 10⁹ per second.
    pub gcells_per_s: f64,
    /// The bottleneck with the longest time.
    pub bound: Bound,
}

/// Projects a run of `steps` steps, N, in one launch.
pub fn project(traffic: &Traffic, device: &DeviceSpec, steps: u64) -> Projection {
    project_advances(traffic, device, &Advances::one(steps))
}

/// Projects a run that is launched anew after every advance: then cached cells are loaded and stored again, and steps that
/// do not fill a pass take one of their own.
pub fn project_advances(traffic: &Traffic, device: &DeviceSpec, advances: &Advances) -> Projection {
    let (n, launches) = (advances.steps() as f64, advances.count() as f64);
    let passes: u64 = advances.iter().map(|(steps, times)| traffic.passes(steps) * times).sum();
    let uncached = traffic.cells - traffic.cached();
    // Eq. 5: uncached cells are loaded and stored every step, cached ones once a launch.
    // Steps that do not fill a pass load and store as much as a whole one.
    let passed = passes as f64 * f64::from(traffic.pass_steps.max(1));
    let a_gm = passed * (traffic.load_bytes + traffic.store_bytes) * uncached
        + launches * (traffic.cell_bytes + traffic.changing_bytes) * traffic.cached();
    let halo = n * traffic.halo_bytes;
    // Eq. 7 and 8: cells in shared memory are loaded and stored there in each step but a launch's first.
    let a_sm = 2.0 * (n - launches).max(0.0) * traffic.cell_bytes * traffic.cached_shared
        + n * traffic.kernel_shared_bytes * traffic.cells;
    // A rate that is not known bounds nothing.
    let over = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
    let memory_seconds = over(a_gm, device.memory_bandwidth);
    let halo_seconds = over(halo, device.memory_bandwidth);
    let shared_seconds = over(a_sm, device.shared_bandwidth);
    let arithmetic_seconds = over(n * traffic.flops * traffic.cells, traffic.flops_per_second);
    let memory = memory_seconds + halo_seconds;
    let seconds = memory.max(shared_seconds).max(arithmetic_seconds);
    let bound = if seconds == memory {
        Bound::Memory
    } else if seconds == shared_seconds {
        Bound::Shared
    } else {
        Bound::Arithmetic
    };
    Projection {
        memory_bytes: a_gm + halo,
        least_bytes: (traffic.least_bytes * traffic.cells).min(a_gm + halo),
        memory_seconds,
        halo_seconds,
        shared_seconds,
        arithmetic_seconds,
        seconds,
        gcells_per_s: if seconds > 0.0 { traffic.cells * n / seconds / 1e9 } else { 0.0 },
        bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §5.2: "N = 1000 time-steps of a single precision 2D 5-point Jacobi stencil on A100. D = 3072², D_cache
    /// = 3072 · 2448, T_gm(D) = 9900.70 us. A(H(D_cache)) = 1000 · 2 · 216 · (136·2 + 256·2), T_gm(H) =
    /// 871.22 us, P = 876.09 GCells/s."
    #[test]
    fn the_papers_worked_example() {
        let device = DeviceSpec::preset("a100").unwrap();
        let traffic = Traffic {
            cells: 3072.0 * 3072.0,
            cached_registers: 3072.0 * 2448.0,
            cached_shared: 0.0,
            load_bytes: 4.0,
            store_bytes: 4.0,
            cell_bytes: 4.0,
            changing_bytes: 4.0,
            least_bytes: 8.0,
            launched_bytes: 8.0,
            pass_steps: 1,
            halves: false,
            halo_bytes: 2.0 * 216.0 * (136.0 * 2.0 + 256.0 * 2.0) * 4.0,
            kernel_shared_bytes: 0.0,
            flops: 9.0,
            flops_per_second: device.f32_flops,
            overhead_seconds: 0.0,
        };
        let projection = project(&traffic, &device, 1000);
        let close =
            |value: f64, paper: f64| assert!((value / paper - 1.0).abs() < 1e-3, "{value} against {paper}");
        close(projection.memory_seconds * 1e6, 9900.70);
        close(projection.halo_seconds * 1e6, 871.22);
        close(projection.gcells_per_s, 876.09);
        assert_eq!(projection.bound, Bound::Memory);
    }
}
