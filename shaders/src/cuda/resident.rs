//! The text of a kernel that keeps the whole domain on the chip: each stage as the work that is done when a plane
//! arrives, as in a streaming kernel.

use abide_core::domain::Axes;
use abide_core::expr::Node;
use abide_core::plan::Resident;
use abide_core::plan::resident::Exchange;
use abide_core::plan::streaming::carry::Carry;
use abide_core::{Problem, Program};

use super::late::late;
use super::streaming::{arriving, stage_types};
use super::{BESIDE, COMMON, COPIES, constant, constants};
use crate::text::Text;

const TILE: &str = include_str!("../../kernels/cuda/persistent/tile.cuh");
const EXCHANGE: &str = include_str!("../../kernels/cuda/persistent/exchange.cuh");
const COUNTED: &str = include_str!("../../kernels/cuda/persistent/counted.cuh");
const TAGGED: &str = include_str!("../../kernels/cuda/persistent/tagged.cuh");
const RESIDENT: &str = include_str!("../../kernels/cuda/persistent/resident.cu");
const ALONE: &str = include_str!("../../kernels/cuda/persistent/alone.cu");
const BATCH: &str = include_str!("../../kernels/cuda/persistent/batch.cu");

/// Returns the bytes of what tiles exchange in words with tags: an exchange buffer in two halves for each tile, and in it, for each
/// field that changes, its lines and the columns that tiles beside read. Each 32 bits of a value take 64.
pub fn exchange_bytes(problem: &Problem, resident: &Resident) -> usize {
    let fields = problem.program.fields().len();
    let changing = (0..fields).filter(|&field| problem.program.is_written(field)).count();
    let [planes, rows, columns] = resident.tile;
    let cells = planes * rows * (columns + 2 * resident.margin[2]);
    resident.blocks() * 2 * changing * cells * 2 * problem.dtype.bytes()
}

/// Returns the text of the kernel of a resident plan, of one domain or `batched`, a member of a batch in each block;
/// `program` is simplified already. The number of members is not in it.
pub(super) fn resident(problem: &Problem, program: &Program, resident: &Resident, batched: bool) -> String {
    let axes = Axes::of(problem.shape.dimensions());
    let mut text = constants(problem, program);
    for (name, value) in [
        ("DEPTH", resident.depth),
        ("WARPS", resident.warps),
        ("PLANES", resident.planes),
        ("PLANES_REGISTERS", resident.planes_registers),
        ("OWN_Y", resident.cells_per_thread[0]),
        ("OWN_X", resident.cells_per_thread[1]),
        ("TILES_S", resident.tiles[0]),
        ("TILES_Y", resident.tiles[1]),
        ("TILES_X", resident.tiles[2]),
        ("TILE_S", resident.tile[0]),
        ("TILE_Y", resident.tile[1]),
        ("MARGIN_S", resident.margin[0]),
        ("MARGIN_Y", resident.margin[1]),
        ("MARGIN_X", resident.margin[2]),
        ("RING_S", resident.ring[0]),
        ("RING_Y", resident.ring[1]),
        ("HALVES", resident.halves),
        ("BLOCKS_PER_MULTIPROCESSOR", resident.blocks_per_multiprocessor),
        ("REGISTERS", resident.registers),
    ] {
        constant(&mut text, name, value);
    }
    let tagged = resident.exchange == Exchange::Tagged;
    let stacked = resident.stacked;
    text.push(format!("constexpr bool STACKED = {stacked}, BATCHED = {batched}, TAGGED = {tagged};"));
    if tagged {
        text.push(format!("constexpr long long EXCHANGE_BYTES = {};", exchange_bytes(problem, resident)));
    }
    text.file(COMMON);
    let fields = program.fields().len();
    let mut choices = 0;
    for (number, stage) in program.stages().iter().enumerate() {
        let carry = Carry::of(stage, fields, axes);
        choices = arriving(&mut text, problem, stage, &carry, number, choices);
        reaches(&mut text, &carry, axes);
        late(&mut text, problem, &carry, axes);
        text.push("};");
    }
    stage_types(&mut text, program.stages().len());
    text.file(COPIES);
    text.file(BESIDE);
    text.file(TILE);
    text.file(EXCHANGE);
    text.file(if tagged { TAGGED } else { COUNTED });
    let step = (0..program.stages().len()).map(|number| format!("stage<Stage{number}, SIDE>(kept);"));
    text.filled(RESIDENT, &[("step", step.collect())]);
    text.file(if batched { BATCH } else { ALONE });
    text.into()
}

/// Writes the function that returns how far taps reach to the left or right in one row of one plane, given by
/// their offsets from the cell.
fn reaches(text: &mut Text, carry: &Carry, axes: Axes) {
    let mut farthest: Vec<(u16, [i32; 2], [i32; 2])> = Vec::new();
    for node in &carry.nodes {
        let Node::Tap(tap) = node else { continue };
        let [s, y, x] = axes.order(tap.offset);
        let reach = [(-x).max(0), x.max(0)];
        match farthest.iter_mut().find(|(field, at, _)| (*field, *at) == (tap.field, [s, y])) {
            Some((.., most)) => *most = [most[0].max(reach[0]), most[1].max(reach[1])],
            None => farthest.push((tap.field, [s, y], reach)),
        }
    }
    let side = |side: usize| -> String {
        let reaching = farthest.iter().filter(|(.., most)| most[side] > 0);
        reaching
            .map(|(f, [s, y], most)| format!("f == {f} && ds == {s} && dy == {y} ? {} : ", most[side]))
            .collect()
    };
    text.push("// How far along X taps in row `dy` of plane `ds` reach to the left or right.");
    text.push(format!(
        "__device__ static constexpr int side_at(int f, int ds, int dy, bool left) \
         {{ return left ? ({}0) : ({}0); }}",
        side(0),
        side(1)
    ));
}
