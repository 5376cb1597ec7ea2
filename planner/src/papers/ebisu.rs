//! The performance model of EBISU (Zhang et al., ICS'23, §5 and §6, eq. 1–12 and 17–23): how deep and how wide
//! temporal blocking should be, and whether tiles should recompute their halos or exchange them. Eq. 13–16 (Little's
//! law) take latencies that no device reports, so only the paper's answer is kept ([`fewest_threads`],
//! [`CELLS_PER_THREAD`]).
//!
//! One block per multiprocessor streams along the swept axis; the steps of one pass, the depth t, stand behind each
//! other. Under *SM tiling* tiles overlap and compute their halos redundantly. Under *device tiling* all blocks share
//! one tile, exchange halos through device memory and wait for each other at barriers.
//!
//! Equation numbers are the paper's. Three things are generalised: a radius for each axis; several fields and
//! stages; and, wherever the paper takes shared memory for the bottleneck on the chip, the slower of shared
//! memory and arithmetic. Triples are (swept, slower, faster) axis, pairs (slower, faster) axis of a plane,
//! as in [`Axes`]; a line or square has planes of one row, so that one formula serves eq. 8 and eq. 9.

mod choice;
mod queue;
#[cfg(test)]
mod tests;

use abide_core::domain::Axes;
use abide_core::plan::traffic::Bound;
use abide_core::{DType, DeviceSpec, Error, Neighbourhood, Program, Result, Stage};
use serde::Serialize;

pub use choice::{CELLS_PER_THREAD, Choice, Design, LEAST_VALID, Rules, choose, design, fewest_threads};
pub use queue::Queue;

/// The costs of a step per cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    /// The radius of a step, rad: of all its stages combined.
    pub radius: [usize; 3],
    /// The type of all fields; its size in bytes is S_Cell.
    pub dtype: DType,
    /// Fields of a cell that the chip holds.
    pub fields: usize,
    /// Loads from and stores to device memory per cell and pass, a_gm.
    pub memory_accesses: f64,
    /// Loads from and stores to shared memory per cell and step, a_sm.
    pub shared_accesses: f64,
    /// Floating-point operations per cell and step, a_cmp.
    pub flops: f64,
}

impl Costs {
    /// Returns the costs of a program whose stages follow each other on the chip: each field is loaded once
    /// per pass, each field that changes is stored once. A thread streams `rows` rows of a plane.
    pub fn of(program: &Program, dtype: DType, rows: usize) -> Costs {
        let axes = Axes::of(program.dimensions());
        let fields = program.fields().len();
        let changing = (0..fields).filter(|&field| program.is_written(field)).count();
        let mut radius = [0; 3];
        for stage in program.stages() {
            let own = axes.order(stage.footprint.radius);
            radius = [0, 1, 2].map(|axis| radius[axis] + own[axis]);
        }
        Costs {
            radius,
            dtype,
            fields,
            memory_accesses: (fields + changing) as f64,
            shared_accesses: program.stages().iter().map(|stage| shared_accesses(stage, axes, rows)).sum(),
            flops: program.flops() as f64,
        }
    }

    /// Returns the bytes of a pass through device memory, A_gm × S_Cell of eq. 2.
    fn memory_bytes(&self, work: &Work) -> f64 {
        work.memory_cells * self.memory_accesses * self.dtype.bytes() as f64
    }

    /// Returns the seconds per cell and pass at device memory, of eq. 2.
    fn memory_seconds(&self, device: &DeviceSpec) -> f64 {
        over(self.memory_accesses * self.dtype.bytes() as f64, device.memory_bandwidth)
    }

    /// Returns the seconds per cell and step at shared memory, of eq. 3.
    fn shared_seconds(&self, device: &DeviceSpec) -> f64 {
        over(self.shared_accesses * self.dtype.bytes() as f64, device.shared_bandwidth)
    }

    /// Returns the seconds per cell and step of arithmetic, of eq. 4.
    fn arithmetic_seconds(&self, device: &DeviceSpec) -> f64 {
        over(self.flops, device.flops(self.dtype))
    }

    /// Returns the cells of a tile with a frame of `radius` times `steps` at each side.
    fn framed(&self, tile: [usize; 2], steps: f64) -> f64 {
        let side = |axis: usize| tile[axis] as f64 + 2.0 * steps * self.radius[axis + 1] as f64;
        side(0) * side(1)
    }

    /// Returns the cells of halo that a tile exchanges per step: (tile_x + tile_y) × 2 × rad of eq. 18.
    fn halo(&self, tile: [usize; 2]) -> f64 {
        let [rows, columns] = tile.map(|extent| extent as f64);
        let [above, beside] = [self.radius[1], self.radius[2]].map(|radius| radius as f64);
        2.0 * (columns * above + rows * beside)
    }
}

/// Returns a_sm of one stage under redundant register streaming (§4.3.3), as in table 2. A thread keeps the
/// cells of its own column of `rows` rows in registers. From shared memory it reads the columns beside its
/// own and, of each column, the rows that its own rows' taps span. The field itself is stored once.
fn shared_accesses(stage: &Stage, axes: Axes, rows: usize) -> f64 {
    let footprint = &stage.footprint;
    let rows = rows.max(1) as f64;
    let read = footprint.field_radius.iter().flatten().map(|radius| {
        let [_, above, beside] = axes.order(*radius).map(|radius| radius as f64);
        let spanned = rows + 2.0 * above;
        if above + beside == 0.0 {
            0.0
        } else if footprint.neighbourhood == Neighbourhood::Box {
            (2.0 * beside + 1.0) * spanned / rows
        } else {
            spanned / rows + 2.0 * beside
        }
    });
    read.sum::<f64>() + footprint.stores as f64
}

/// Returns `amount / rate`; 0 if the device does not report its rate, as in [`super::perks`].
fn over(amount: f64, rate: f64) -> f64 {
    if rate > 0.0 { amount / rate } else { 0.0 }
}

/// The cells per plane that one pass of all blocks handles, D.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Work {
    /// Cells updated, D_all; they are also the cells computed, D_cmp and D_sm.
    pub cells: f64,
    /// Cells that go through device memory, D_gm.
    pub memory_cells: f64,
}

impl Work {
    /// Returns the work of SM tiling: D_gm = D_sm = D_all.
    pub fn sm_tiling(device: &DeviceSpec, tile: [usize; 2]) -> Work {
        let cells = blocks(device) * tile[0] as f64 * tile[1] as f64;
        Work { cells, memory_cells: cells }
    }

    /// Returns the work of device tiling: the halos that blocks exchange in each step join D_gm (eq. 18). Of
    /// the plane itself, the frame of one radius that comes with it is counted too. Eq. 18 leaves it out, but
    /// only with it come the paper's 2.42 µs and 365 GCells/s (§6.3.2).
    pub fn device_tiling(costs: &Costs, device: &DeviceSpec, tile: [usize; 2], depth: usize) -> Work {
        let cells = blocks(device) * tile[0] as f64 * tile[1] as f64;
        let memory_cells = blocks(device) * (costs.framed(tile, 1.0) + depth as f64 * costs.halo(tile));
        Work { cells, memory_cells }
    }
}

/// Returns the number of blocks: one per multiprocessor.
fn blocks(device: &DeviceSpec) -> f64 {
    device.multiprocessors.max(1) as f64
}

/// The attainable performance, P: what the slowest of device memory, shared memory and arithmetic allows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Attainable {
    /// Seconds at device memory, T_gm (eq. 2).
    pub memory_seconds: f64,
    /// Seconds at shared memory, T_sm (eq. 3).
    pub shared_seconds: f64,
    /// Seconds of arithmetic, T_com (eq. 4).
    pub arithmetic_seconds: f64,
    /// The longest of these three, T_stencil (eq. 5).
    pub seconds: f64,
    /// The bottleneck that this is (eq. 6).
    pub bound: Bound,
    /// P (eq. 7), in 10⁹ cells and steps per second.
    pub gcells_per_s: f64,
}

/// Returns the attainable performance of a pass of `depth` steps, t.
pub fn attainable(costs: &Costs, device: &DeviceSpec, work: &Work, depth: usize) -> Attainable {
    let t = depth as f64;
    let memory_seconds = work.memory_cells * costs.memory_seconds(device);
    let shared_seconds = work.cells * t * costs.shared_seconds(device);
    let arithmetic_seconds = work.cells * t * costs.arithmetic_seconds(device);
    let seconds = memory_seconds.max(shared_seconds).max(arithmetic_seconds);
    let bound = if seconds == memory_seconds {
        Bound::Memory
    } else if seconds == shared_seconds {
        Bound::Shared
    } else {
        Bound::Arithmetic
    };
    let gcells_per_s = over(work.cells * t, seconds) / 1e9;
    Attainable { memory_seconds, shared_seconds, arithmetic_seconds, seconds, bound, gcells_per_s }
}

/// The way in which tiles get their neighbours' cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tiling {
    /// Each multiprocessor has its own tile: halos are computed redundantly.
    Sm,
    /// One tile for the whole device: halos are exchanged, and barriers keep the order.
    Device,
}

/// The practical attainable performance, PP, of a tiling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Practical {
    /// The tiling.
    pub tiling: Tiling,
    /// The tile of one block: the cells that its first step computes.
    pub tile: [usize; 2],
    /// Steps per pass, t.
    pub depth: usize,
    /// The attainable performance, P.
    pub attainable: Attainable,
    /// The valid share V, 0 to 1: of the computation under SM tiling (eq. 8, 9), of the time under device
    /// tiling (eq. 11).
    pub valid: f64,
    /// Bytes through device memory per kept cell and step: A_gm × S_Cell over D_all × t; under SM tiling over
    /// the valid share of that.
    pub memory_bytes: f64,
    /// PP = P × V (eq. 1), in 10⁹ cells and steps per second.
    pub gcells_per_s: f64,
}

/// Returns the share of an SM tile's computation that is valid, V_SMtile (eq. 8, 9); 0 if halos leave nothing
/// of it.
///
/// `tile` is what the first step computes, from a tile one radius wider; each later step loses a radius at
/// both sides. The paper prints eq. 8 and 9 with one side, but its numbers count both: (34 − 2 × 3)² cells
/// valid of 32² computed are its 77 %.
pub fn valid_sm_tile(costs: &Costs, tile: [usize; 2], depth: usize) -> f64 {
    let lost = depth.saturating_sub(1) as f64;
    let share = |axis: usize| {
        let extent = tile[axis] as f64;
        ((extent - 2.0 * lost * costs.radius[axis + 1] as f64) / extent).max(0.0)
    };
    share(0) * share(1)
}

/// Returns the share of a device tile's time that is not spent at barriers, V_Dtile (eq. 11). `seconds` is
/// T_stencil; `barriers` is the n of one pass: 1 with lazy streaming, else as many as the depth.
pub fn valid_device_tile(device: &DeviceSpec, seconds: f64, barriers: usize) -> f64 {
    over(seconds, seconds + device.barrier_seconds * barriers as f64)
}

/// Returns the practical attainable performance of SM tiling (eq. 10).
pub fn sm_tiling(costs: &Costs, device: &DeviceSpec, tile: [usize; 2], depth: usize) -> Practical {
    let work = Work::sm_tiling(device, tile);
    let valid = valid_sm_tile(costs, tile, depth);
    let attainable = attainable(costs, device, &work, depth);
    let kept = work.cells * valid;
    Practical {
        tiling: Tiling::Sm,
        tile,
        depth,
        valid,
        memory_bytes: over(costs.memory_bytes(&work), kept * depth as f64),
        gcells_per_s: attainable.gcells_per_s * valid,
        attainable,
    }
}

/// Returns the practical attainable performance of device tiling (eq. 12) with `barriers` per pass, n.
pub fn device_tiling(
    costs: &Costs,
    device: &DeviceSpec,
    tile: [usize; 2],
    depth: usize,
    barriers: usize,
) -> Practical {
    let work = Work::device_tiling(costs, device, tile, depth);
    let attainable = attainable(costs, device, &work, depth);
    let valid = valid_device_tile(device, attainable.seconds, barriers);
    Practical {
        tiling: Tiling::Device,
        tile,
        depth,
        valid,
        memory_bytes: over(costs.memory_bytes(&work), work.cells * depth as f64),
        gcells_per_s: attainable.gcells_per_s * valid,
        attainable,
    }
}

/// Returns how deep is enough under SM tiling, in steps: the depth at which the bottleneck leaves device
/// memory (eq. 17 with D_sm = D_gm).
///
/// # Errors
///
/// [`Error::Invalid`] if the device reports neither its shared memory's bandwidth nor its arithmetic rate, or not its
/// memory's bandwidth.
pub fn sufficient_depth(costs: &Costs, device: &DeviceSpec) -> Result<f64> {
    let memory = costs.memory_seconds(device);
    let chip = costs.shared_seconds(device).max(costs.arithmetic_seconds(device));
    if memory > 0.0 && chip > 0.0 {
        return Ok(memory / chip);
    }
    let missing = if memory > 0.0 { "shared memory and arithmetic" } else { "device memory" };
    Err(Error::invalid(
        format!("a model of temporal blocking for {}", device.name),
        format!("the cost of its {missing} is not known"),
        "give the device's rates, or plan for a preset",
    ))
}

/// Returns how deep is enough under device tiling, in steps, where each step adds a halo to exchange (eq. 18
/// and 19, solved for t). `None` for a tile that no depth helps, because its halo alone costs more than its
/// cells (eq. 22 does not hold), and if a rate is not known.
pub fn sufficient_depth_device_tile(costs: &Costs, device: &DeviceSpec, tile: [usize; 2]) -> Option<f64> {
    let ratio = sufficient_depth(costs, device).ok()?;
    // t × chip × D > memory × (D + t × halo): t (1 − ratio × halo / D) > ratio.
    let halo = ratio * costs.halo(tile) / costs.framed(tile, 0.0);
    (halo < 1.0).then(|| ratio / (1.0 - halo))
}

/// Returns how wide a device tile must be, in cells along both axes of its plane (along the one axis of a
/// line), so that the halos it exchanges cost less than the cells it computes (eq. 22 and 23).
///
/// # Errors
///
/// Those of [`sufficient_depth`].
pub fn sufficient_width(costs: &Costs, device: &DeviceSpec) -> Result<f64> {
    Ok(2.0 * (costs.radius[1] + costs.radius[2]) as f64 * sufficient_depth(costs, device)?)
}
