//! Tiles for a group, of which the one with the least estimate is taken.

use super::estimate::{Estimate, grouped};
use super::{Fused, Refusal, fused};
use crate::device::DeviceSpec;
use crate::program::{Boxes, Does, Problem, is_empty, outlasts};
use crate::reduction::leaf;

/// Rows that a block owns.
const ROWS: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// Indices of a row, with what lies beyond the tile's sides, and the threads of a block.
const LINES: [([usize; 2], usize); 3] = [([1, 128], 128), ([1, 256], 256), ([1, 64], 64)];
const PLANES: [([usize; 2], usize); 3] = [([16, 32], 256), ([16, 64], 512), ([8, 64], 256)];

/// Threads that blocks of planes have at least and at most.
const THREADS: [usize; 2] = [128, 512];

/// Returns the rows that are tried, with these counts beyond a tile's sides: in three dimensions also those that cut an
/// extent into equal parts, because 257 nodes are eight parts of 33 and nine of 31, of which the last has nine.
fn rows(dimensions: usize, extents: [usize; 3], beyond: [usize; 3]) -> Vec<([usize; 2], usize)> {
    if dimensions < 3 {
        return LINES.to_vec();
    }
    let mut all = PLANES.to_vec();
    let parts = |axis: usize, row: usize| {
        let count = extents[axis].div_ceil(row.saturating_sub(beyond[axis]).max(1));
        let even = move |count: usize| extents[axis].div_ceil(count.max(1)) + beyond[axis];
        // A part of a single column costs a block as much as a whole one.
        [even(count), even(count.saturating_sub(1))].into_iter().filter(move |&even| even <= 2 * row)
    };
    for ([y, x], _) in PLANES {
        for x in parts(2, x) {
            for y in parts(1, y) {
                // As many threads as take a row in equal turns.
                let turns = (y * x).div_ceil(THREADS[1]).max((y * x).div_ceil(256));
                let threads = (y * x).div_ceil(turns).next_multiple_of(32).clamp(THREADS[0], THREADS[1]);
                if !all.contains(&([y, x], threads)) {
                    all.push(([y, x], threads));
                }
            }
        }
    }
    all
}

/// Returns the group of some stages with the least estimate of those that fit on the device.
///
/// # Errors
///
/// A [`Refusal`] where the stages are no group, or no tile fits.
pub fn fastest(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    stages: &[usize],
) -> Result<(Fused, Estimate), Refusal> {
    let dimensions = problem.shape.dimensions();
    let outlasts = outlasts(problem, boxes, stages);
    let all = &problem.program.stages();
    let reduces = stages.iter().any(|&stage| matches!(all[stage].does, Does::Reduce(..)));
    let leaf = leaf(dimensions);
    let whole = |count: usize, axis: usize| if reduces { count / leaf[axis] * leaf[axis] } else { count };
    let largest = boxes.stages.iter().flatten().filter(|own| !is_empty(own));
    let extents =
        largest.fold([1; 3], |most: [usize; 3], own| [0, 1, 2].map(|axis| most[axis].max(own[axis].len())));
    let rows_of_all = extents[if dimensions == 3 { 0 } else { 1 }];
    // What lies beyond the sides hardly depends on the tile.
    let probe = match dimensions {
        3 if !reduces => fused(problem, boxes, stages, &outlasts, [16, 16, 32], 256).ok(),
        _ => None,
    };
    let sides = probe.map_or([0; 3], |group| group.beyond.map(|[low, high]| low + high));
    let mut best: Option<(Fused, Estimate)> = None;
    let mut why = Refusal("no tile fits in shared memory".to_owned());
    for ([y, x], threads) in rows(dimensions, extents, sides) {
        // What lies beyond the sides hardly depends on the tile; the second try has it.
        let mut beyond = [[0; 2]; 3];
        let mut last: Option<[usize; 3]> = None;
        for (place, &count) in std::iter::repeat_n(&ROWS[2], 2).chain(&ROWS).enumerate() {
            if threads > device.threads_per_block {
                break;
            }
            let along =
                |row: usize, axis: usize| whole(row.saturating_sub(beyond[axis][0] + beyond[axis][1]), axis);
            let tile = match dimensions {
                1 => [1, 1, along(x, 2)],
                2 => [1, whole(count, 1), along(x, 2)],
                _ => [whole(count, 0), along(y, 1), along(x, 2)],
            };
            let too_long = place > 2 && count >= 2 * rows_of_all.next_power_of_two();
            if tile.contains(&0) || too_long || last == Some(tile) {
                continue;
            }
            match fused(problem, boxes, stages, &outlasts, tile, threads) {
                Ok(group) => {
                    let buffers = group.buffers(problem, boxes);
                    if let Some(most) = device.kernel_buffers.filter(|&most| buffers > most) {
                        let reason =
                            format!("a kernel on {} names {most} buffers, not {buffers}", device.name);
                        return Err(Refusal(reason));
                    }
                    let most = |new: [usize; 2], old: [usize; 2]| [new[0].max(old[0]), new[1].max(old[1])];
                    beyond = [0, 1, 2].map(|axis| most(group.beyond[axis], beyond[axis]));
                    let row = group.row();
                    if row[1] > y || row[2] > x || place == 0 {
                        continue;
                    }
                    last = Some(tile);
                    let bytes = group.values(problem) * problem.dtype.bytes() + device.shared_bytes_reserved;
                    if bytes > device.shared_bytes_per_block {
                        continue;
                    }
                    let estimate = grouped(problem, boxes, device, &group);
                    if best.as_ref().is_none_or(|(_, known)| estimate.seconds < known.seconds) {
                        best = Some((group, estimate));
                    }
                }
                Err(refusal) => {
                    why = refusal;
                    break;
                }
            }
        }
    }
    best.ok_or(why)
}
