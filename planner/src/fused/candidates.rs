//! Tiles for a group, of which the one with the least estimate is taken.

use abide_core::plan::fused::Fused;
use abide_core::program::{Boxes, StageKind, is_empty, outlasts};
use abide_core::reduction::leaf;
use abide_core::{DeviceSpec, Problem};

use super::geometry::{Refusal, fused};
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
