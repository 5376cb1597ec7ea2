//! The planner's estimate of a step, fitted to kernels on an H200: 350 of `2d5pt`, 64² to 1536², f32 and f64, and 98 of
//! stencils of other radii, of models and of cubes, where the root mean square of the relative error is 17 %.

use abide_core::DeviceSpec;
use abide_core::plan::Resident;
use abide_core::plan::resident::Exchange;

use crate::streaming::requirement::Demand;

/// Issue slots that pass for one that the arithmetic takes: copies, moves, and what latency leaves empty.
const SLOTS: f64 = 1.0;

/// Clocks of a line of a warp, however many warps there are: a shuffle and the chain of a cell; of a cube, lines of
/// other warps before them.
const LINE_CLOCKS: [f64; 2] = [14.4, 40.0];

/// Instructions of a sweep that the cache of instructions holds, and the additional time per share of them beyond: of
/// stars, and of boxes, for which it was fitted to four kernels of `2d25pt`.
const CODE: f64 = 1200.0;

const BEYOND_CODE: [f64; 2] = [0.9, 0.3];

/// Clocks of a stage for each warp of a block: the barrier, and the lines that go to other warps.
const WARP_CLOCKS: f64 = 8.2;

/// Clocks of a pass beside its steps.
const PASS_CLOCKS: f64 = 56.0;

/// What an exchange through the second-level cache takes beside its bytes.
struct Latency {
    /// Exchanges of a word with the blocks beside that would take as long.
    exchanges: f64,
    /// The share of that time that every other field takes again.
    field_share: f64,
    /// Words that travel for each word of a value.
    words: f64,
}

/// Writes that must have arrived before the counter, the counter, loads; each field's cells follow those of the field
/// before.
const COUNTED: Latency = Latency { exchanges: 2.3, field_share: 0.4, words: 1.0 };

/// Writes, and loads until the tags are right, all fields at once. Of a prototype of 512² cells; the kernel itself was
/// not timed yet.
const TAGGED: Latency = Latency { exchanges: 1.15, field_share: 0.0, words: 2.0 };

/// Loads of words with tags that a lane has under way at once, and the seconds of each further group of them: a trip to
/// the second-level cache, guessed.
const LOADS_AT_ONCE: f64 = 8.0;

const TRIP_SECONDS: f64 = 0.3e-6;

/// Seconds of an exchange per byte of columns that a block sends and takes.
const COLUMN_SECONDS: f64 = 20e-12;

/// The factor by which passes with tags take longer than the sum of their parts, where tiles lie in a plane: measured
/// for f32, 128² to 1536².
const TAGS_ACROSS: f64 = 1.25;

/// The same where a side shows cells of its own side: measured for f32 under `mirror`, 59×563 and 344×119. What takes so
/// long there is not known.
const TAGS_MIRRORED: f64 = 1.8;

/// Returns the estimated seconds of a step.
pub(super) fn step_seconds(demand: &Demand<'_>, device: &DeviceSpec, resident: &Resident) -> f64 {
    let words = demand.bytes as f64 / 4.0;
    let multiprocessors = device.multiprocessors as f64;
    let clocks = device.shared_bandwidth.max(1.0) / 128.0 / multiprocessors;
    let [rows, columns] = resident.cells_per_thread.map(|n| n as f64);
    let planes = resident.planes as f64;
    let lines = planes * rows;
    let warps = (resident.warps * resident.blocks_per_multiprocessor) as f64;
    let stages = demand.carries.len() as f64;
    // Each quarter of a multiprocessor issues for the warps that it has.
    let busiest = (warps / 4.0).ceil();
    // Clocks of an operation of a warp on a quarter.
    let rate =
        (128.0 * 2.0 * multiprocessors * clocks / device.flops(demand.pass.problem.dtype).max(1.0)).max(1.0);
    let places = demand.pass.operations as f64 + demand.pass.more_places;
    let arithmetic = places * rate * columns * lines;
    // Values that come from shared memory and go there, beside those that arithmetic pays for: planes that stay
    // there, and of a cube the rows of other warps.
    let fields = demand.fields as f64;
    let rest = (resident.planes - resident.planes_registers) as f64 * rows * fields;
    let across = if demand.radius[1] > 0 {
        let reach = demand.radius[1] as f64;
        planes * (2.0 * reach + rows.min(2.0 * reach)) * fields
    } else {
        0.0
    };
    // The pipe of shared memory serves all quarters.
    let moved = warps * words * columns * (2.0 * rest + 0.5 * across);
    let shuffles = 2.0 * words * demand.radius[2] as f64 * lines * fields;
    let step = busiest * (SLOTS * arithmetic + shuffles)
        + moved
        + stages
            * (LINE_CLOCKS[usize::from(!resident.stacked)] * lines
                + WARP_CLOCKS * warps
                + if resident.halves == 1 { 40.0 } else { 0.0 });
    let exchange = if resident.exchanges() {
        let latency = match resident.exchange {
            Exchange::Counted => COUNTED,
            Exchange::Tagged => TAGGED,
        };
        let written = demand.pass.written as f64;
        let bytes = written * demand.bytes as f64 * latency.words;
        let columns_of_block = (resident.tile[0] * resident.tile[1]) as f64 * 2.0 * resident.margin[2] as f64;
        let halo = |axis: usize| {
            let depth = resident.margin[axis] + resident.ring[axis];
            if resident.tiles[axis] > 1 { 2.0 * depth as f64 } else { 0.0 }
        };
        let lines_of_block = halo(0) * resident.tile[1] as f64 + halo(1) * resident.tile[0] as f64;
        // What a lane of a warp at the tile's side waits for: its lines, the lines beyond the tile, and columns.
        let trips = match resident.exchange {
            Exchange::Counted => 0.0,
            Exchange::Tagged => {
                let own = if resident.margin[..2] == [0; 2] { 0.0 } else { lines * columns };
                let beyond = 2.0
                    * (resident.ring[0] * (resident.tile[1] + 2 * resident.ring[1])
                        + resident.ring[1] * resident.tile[0]) as f64
                    * columns;
                let shared = beyond + columns_of_block / 32.0;
                // A load has 8 bytes of values.
                let loads = bytes / latency.words * (own + shared / resident.warps as f64) / 8.0;
                (loads / LOADS_AT_ONCE - 1.0).max(0.0)
            }
        };
        // All blocks send at the same time, and then all load.
        let cells = lines_of_block * resident.tile[2] as f64 + columns_of_block;
        latency.exchanges * device.exchange_seconds * (1.0 + latency.field_share * (written - 1.0).max(0.0))
            + TRIP_SECONDS * trips
            + COLUMN_SECONDS * bytes * columns_of_block
            + 2.0 * bytes * cells * resident.blocks() as f64 / device.l2_bandwidth
    } else {
        0.0
    };
    // A sweep is unrolled, and instructions beyond the cache's come again with each step.
    let code = lines * (demand.pass.operations as f64 * columns + 20.0) / CODE;
    let step = step * (1.0 + BEYOND_CODE[usize::from(demand.is_boxed())] * (code - 1.0).max(0.0));
    let depth = resident.depth as f64;
    let tags = resident.exchanges() && resident.exchange == Exchange::Tagged && demand.dimensions() > 1;
    let seconds = (step + PASS_CLOCKS / depth) / clocks + exchange / depth;
    let is_mirrored = demand.sides.iter().flatten().any(|side| side.shows_this_side());
    match (tags, is_mirrored) {
        (false, _) => seconds,
        (true, false) => seconds * TAGS_ACROSS,
        (true, true) => seconds * TAGS_MIRRORED,
    }
}
