//! Which rows of device memory a group's blocks copy into shared memory before stages read them.

use abide_core::plan::fused::{COPIES_AHEAD, Fused, Load};
use abide_core::program::{Boxes, Buffer};
use abide_core::{Boundaries, DType, Problem};

/// Has a group copy all that its stages read of device memory.
pub fn copy(problem: &Problem, boxes: &Boxes, group: &mut Fused) {
    let fields = problem.program.fields().len();
    let axis = group.axis;
    // Of each name, the first and the last row that is read in a turn, from the front.
    let mut rows: Vec<(usize, [isize; 2])> = Vec::new();
    let mut copied = [[0; 2]; 3];
    for member in &group.members {
        for tap in problem.program.stages()[member.stage].dag.taps() {
            let name = usize::from(tap.field);
            if member.sources.iter().any(|&(made, _)| made == name) {
                continue;
            }
            let row = tap.offset[axis] as isize - member.lag as isize;
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, [first, last])) => (*first, *last) = ((*first).min(row), (*last).max(row)),
                None => rows.push((name, [row; 2])),
            }
            for (across, copied) in copied.iter_mut().enumerate().skip(axis + 1) {
                let offset = tap.offset[across] as isize;
                for (side, by) in [-offset, offset].into_iter().enumerate() {
                    let beyond = member.beyond[across][side] as isize + by;
                    copied[side] = copied[side].max(beyond.max(0) as usize);
                }
            }
        }
    }
    let mut layouts: Vec<(&Buffer, Option<Boundaries>)> = Vec::new();
    for (name, [first, last]) in rows {
        let layout = (&boxes.buffers[name], (name < fields).then(|| problem.boundaries_of(name)));
        let place = layouts.iter().position(|known| *known == layout).unwrap_or_else(|| {
            layouts.push(layout);
            layouts.len() - 1
        });
        let window = (last - first) as usize;
        group.loads.push(Load { name, rows: window + COPIES_AHEAD + 1, top: last, window, layout: place });
    }
    // A row holds what is computed, too, and is whole words of 16 bytes, of which a tile begins with one.
    group.copied = [0, 1, 2].map(|across| {
        [0, 1].map(|side| match across > axis {
            true => copied[across][side].max(group.beyond[across][side]),
            false => 0,
        })
    });
    let values = values_of_word(problem.dtype);
    let [low, high] = &mut group.copied[2];
    *low = low.next_multiple_of(values);
    let row = group.tile[2] + *low + *high;
    *high += row.next_multiple_of(values) - row;
}

/// Returns the values of 16 bytes, which are copied at once.
pub fn values_of_word(dtype: DType) -> usize {
    16 / dtype.bytes()
}
