//! Tiles for a group, of which the one with the least estimate is taken.

use abide_core::plan::fused::Fused;
use abide_core::program::{Boxes, StageKind, is_empty, outlasts};
use abide_core::reduction::leaf;
use abide_core::{DeviceSpec, Problem};

use super::geometry::{Refusal, fused};
use super::loads::values_of_word;
use crate::estimate::{Estimate, grouped};

/// Rows that a block owns.
const ROWS: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// Returns the indices of a row, with what lies beyond the tile's sides, and the threads of a block.
fn rows(dimensions: usize) -> &'static [([usize; 2], usize)] {
    match dimensions {
        1 | 2 => &[([1, 128], 128), ([1, 256], 256), ([1, 64], 64)],
        _ => &[([16, 32], 256), ([16, 64], 512), ([8, 64], 256)],
    }
}

/// The rows and columns of planes and rows that stages make, where they copy what they read, and the rows that a block owns. Longer
/// columns, planes of 16 rows and of 64 columns were slower on an H200.
fn copied(dimensions: usize) -> &'static [([usize; 2], usize)] {
    match dimensions {
        1 | 2 => &[([1, 128], 32), ([1, 128], 64), ([1, 256], 32)],
        _ => &[([4, 32], 16), ([4, 32], 32), ([8, 32], 32)],
    }
}

/// Returns the group of some stages that copies what they read, with the least estimate of those that fit on the device; `None` if
/// none does.
pub fn fastest_with_copies(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    stages: &[usize],
) -> Option<(Fused, Estimate)> {
    const WARP: usize = 32;
    // The least device that copies into shared memory while it computes.
    if device.compute_capability.is_none_or(|capability| capability < (8, 0)) {
        return None;
    }
    let dimensions = problem.shape.dimensions();
    // Where a value lies in its plane has 30 bits of a word.
    let is_large = |[_, rows, columns]: [usize; 3]| rows.saturating_mul(columns) >= 1 << 28;
    if dimensions == 3 && boxes.buffers.iter().any(|buffer| is_large(buffer.extents)) {
        return None;
    }
    // Words are copied as they lie, and read as values of the run's type.
    let mut names = stages.iter().flat_map(|&stage| problem.program.stages()[stage].names());
    if names.any(|name| boxes.buffers[name].precision.is_some()) {
        return None;
    }
    let outlasts = outlasts(problem, boxes, stages);
    let all = &problem.program.stages();
    let reduces = stages.iter().any(|&stage| matches!(all[stage].does, StageKind::Reduce(..)));
    let leaf = leaf(dimensions);
    let mut best: Option<(Fused, Estimate)> = None;
    for &([y, x], rows) in copied(dimensions) {
        let tile = |x: usize| match dimensions {
            1 => [1, 1, x],
            2 => [1, rows, x],
            _ => [rows, y, x],
        };
        // Rows of whole warps, with what lies beyond the sides, which hardly depends on the tile.
        let tried = fused(problem, boxes, stages, &outlasts, tile(x), WARP, true).ok()?;
        let beyond: usize = tried.beyond[2].iter().sum();
        let word = values_of_word(problem.dtype);
        let x = if reduces { x } else { x.saturating_sub(beyond) / word * word };
        let tile = tile(x);
        if x == 0 || reduces && (0..3).any(|axis| !tile[axis].is_multiple_of(leaf[axis])) {
            continue;
        }
        let mut group = fused(problem, boxes, stages, &outlasts, tile, WARP, true).ok()?;
        // A thread for each place of a row.
        group.threads = group.values_of_row().next_multiple_of(WARP);
        let bytes = group.shared_bytes(problem) + device.shared_bytes_reserved;
        let buffers = group.buffers(problem, boxes);
        if group.threads > device.threads_per_block
            || bytes > device.shared_bytes_per_block
            || device.kernel_buffers.is_some_and(|most| buffers > most)
        {
            continue;
        }
        let estimate = grouped(problem, boxes, device, &group);
        if best.as_ref().is_none_or(|(_, known)| estimate.seconds < known.seconds) {
            best = Some((group, estimate));
        }
    }
    best
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
    let reduces = stages.iter().any(|&stage| matches!(all[stage].does, StageKind::Reduce(..)));
    let leaf = leaf(dimensions);
    let whole = |count: usize, axis: usize| if reduces { count / leaf[axis] * leaf[axis] } else { count };
    let largest = boxes.stages.iter().flatten().filter(|own| !is_empty(own));
    let rows_of_all = largest.map(|own| own[if dimensions == 3 { 0 } else { 1 }].len()).max().unwrap_or(1);
    let mut best: Option<(Fused, Estimate)> = None;
    let mut why = Refusal("no tile fits in shared memory".to_owned());
    for &([y, x], threads) in rows(dimensions) {
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
            match fused(problem, boxes, stages, &outlasts, tile, threads, false) {
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
                    let bytes = group.shared_bytes(problem) + device.shared_bytes_reserved;
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
