//! Which blocks of a persistent kernel wait for which: those whose parts of a task touch what others have made, or
//! overwrite what others have read.
//!
//! Tasks follow one another, and tiles of each are shared out in order. A task waits, for each thing that it reads, for
//! the last task that made all of it and for those that made parts since; for each that it makes, also for those that
//! have read it since. Whatever came before that, those tasks have waited for themselves, place by place.

use std::ops::Range;

use abide_core::program::Indices;

use super::Grid;

/// A thing that tasks read and make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thing {
    /// A buffer, by its number.
    Buffer(usize),
    /// A scalar, by its number in formulas.
    Scalar(usize),
    /// The leaves of reductions.
    Leaves,
    /// How far the run has come.
    Progress,
}

/// What a task does with a thing.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub thing: Thing,
    pub makes: bool,
    /// Whether it makes all of the thing, or at least takes every tile of it.
    pub covers: bool,
    /// The places that a tile touches; `None` if any tile may touch any place.
    pub reach: Option<Reach>,
}

/// The places that a tile touches.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    /// The offsets to the lowest and the highest along each axis.
    pub by: [[isize; 2]; 3],
    /// The box of all places.
    pub held: Indices,
    /// Whether what lies beyond the box along an axis is found at its other end, or else near this one.
    pub is_periodic: [bool; 3],
}

/// A task: its tiles, the box that they are cut to, and what they touch.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub grid: Grid,
    pub own: Indices,
    pub accesses: Vec<Access>,
}

/// A wait of a block for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub block: usize,
    /// How many tasks before this one.
    pub back: usize,
}

/// Returns the first of the tiles of a block, of which there are so many.
pub(crate) fn share(block: usize, blocks: usize, tiles: usize) -> usize {
    block * tiles / blocks
}

/// Returns the block that has a tile.
fn block_of(tile: usize, blocks: usize, tiles: usize) -> usize {
    ((tile + 1) * blocks - 1) / tiles
}

/// Returns the waits of each block before each task. After the last task comes the first again, if it `repeats`.
pub(crate) fn waits(tasks: &[Task], blocks: usize, repeats: bool) -> Vec<Vec<Vec<Wait>>> {
    let mut needed = vec![0_u32; blocks * blocks];
    let of = |place: usize| {
        for access in &tasks[place].accesses {
            let most = if repeats { tasks.len() } else { place };
            for back in 1..=most {
                let earlier = &tasks[(place + tasks.len() - back) % tasks.len()];
                let mut is_covered = false;
                for other in earlier.accesses.iter().filter(|other| other.thing == access.thing) {
                    if access.makes || other.makes {
                        let mut note = |own: usize, awaited: usize| {
                            let known = &mut needed[own * blocks + awaited];
                            if own != awaited && (*known == 0 || back < *known as usize) {
                                *known = back as u32;
                            }
                        };
                        // The one that only reads may touch more than its tiles.
                        if access.makes && !other.makes {
                            let own = (&tasks[place], access);
                            meet((earlier, other), own, blocks, |their, own| note(own, their));
                        } else {
                            meet((&tasks[place], access), (earlier, other), blocks, note);
                        }
                    }
                    is_covered |= other.makes && other.covers;
                }
                if is_covered {
                    break;
                }
            }
        }
        let of_block = |row: &mut [u32]| {
            let waits = row.iter_mut().enumerate().filter(|(_, back)| **back > 0);
            waits.map(|(block, back)| Wait { block, back: std::mem::take(back) as usize }).collect()
        };
        needed.chunks_mut(blocks).map(of_block).collect()
    };
    let mut all: Vec<Vec<Vec<Wait>>> = (0..tasks.len()).map(of).collect();
    leave_out_known(&mut all, blocks, repeats);
    all
}

/// Leaves out waits for what a block knows from an earlier wait for the same block. What it knows from the round before is
/// the same in every round but the first, in which a wait for anything before the first task is none.
fn leave_out_known(all: &mut [Vec<Vec<Wait>>], blocks: usize, repeats: bool) {
    let count = all.len();
    let mut known = vec![0; blocks * blocks];
    for round in [1, 2].into_iter().filter(|&round| repeats || round == 2) {
        for (place, task) in all.iter_mut().enumerate() {
            for (block, waits) in task.iter_mut().enumerate() {
                waits.retain(|wait| {
                    let (done, known) =
                        (round * count + place - wait.back + 1, &mut known[block * blocks + wait.block]);
                    let is_new = done > *known;
                    *known = done.max(*known);
                    // All rounds have the waits of the second.
                    is_new || round == 1
                });
            }
        }
    }
}

/// Calls `found` with each block of a task and each of another one whose tiles the first touches by an access. The other
/// one's own access is to its tiles alone, unless it is to any place.
fn meet(
    (task, access): (&Task, &Access),
    (other, its): (&Task, &Access),
    blocks: usize,
    mut found: impl FnMut(usize, usize),
) {
    let [tiles, others] = [task.grid.count(), other.grid.count()];
    for block in 0..blocks {
        let own = share(block, blocks, tiles)..share(block + 1, blocks, tiles);
        if own.is_empty() {
            continue;
        }
        let mut touched = |tiles: Range<usize>| {
            // Where there are fewer tiles than blocks, some blocks between have none.
            let (first, last) =
                (block_of(tiles.start, blocks, others), block_of(tiles.end - 1, blocks, others));
            if others >= blocks {
                (first..=last).for_each(|other| found(block, other));
            } else {
                tiles.for_each(|tile| found(block, block_of(tile, blocks, others)));
            }
        };
        let Some(reach) = access.reach.as_ref().filter(|_| its.reach.is_some()) else {
            touched(0..others);
            continue;
        };
        for part in boxes(own, task.grid.blocks) {
            let along = [0, 1, 2].map(|axis| {
                let (grid, cut) = (&task.grid, &task.own[axis]);
                let at = |tile: usize| grid.first[axis] + (tile * grid.tile[axis]) as isize;
                let (start, end) = (at(part[axis].start).max(cut.start), at(part[axis].end).min(cut.end));
                let own = (start < end).then_some(start..end);
                own.map(|own| places(&own, reach, axis)).unwrap_or_default()
            });
            for z in &along[0] {
                for y in &along[1] {
                    for x in &along[2] {
                        tiles_in(&other.grid, [z, y, x]).into_iter().for_each(&mut touched);
                    }
                }
            }
        }
    }
}

/// Returns the ranges of places along an axis that indices touch.
fn places(own: &Range<isize>, reach: &Reach, axis: usize) -> Vec<Range<isize>> {
    let (held, [low, high]) = (&reach.held[axis], reach.by[axis]);
    let (start, end) = (own.start + low, own.end + high);
    let (below, above) = ((held.start - start).max(0), (end - held.end).max(0));
    let inside = start.max(held.start)..end.min(held.end);
    if below == 0 && above == 0 {
        return vec![inside];
    }
    // A ghost value shows one that lies as far from the side as it does, or one place farther.
    let (low, high) = match reach.is_periodic[axis] {
        true => (held.end - below..held.end, held.start..held.start + above),
        false => (held.start..held.start + below + 1, held.end - above - 1..held.end),
    };
    let shown = [(low, below), (high, above)].into_iter().filter(|(_, beyond)| *beyond > 0);
    let mut places: Vec<Range<isize>> =
        shown.map(|(place, _)| place.start.max(held.start)..place.end.min(held.end)).collect();
    places.push(inside);
    places.retain(|place| !place.is_empty());
    places
}

/// Returns the ranges of numbers of a grid's tiles that a box touches.
fn tiles_in(grid: &Grid, places: [&Range<isize>; 3]) -> Vec<Range<usize>> {
    let [z, y, x] = [0, 1, 2].map(|axis| {
        let (tile, count) = (grid.tile[axis] as isize, grid.blocks[axis] as isize);
        let first = (places[axis].start - grid.first[axis]).div_euclid(tile).clamp(0, count);
        let last = (places[axis].end - 1 - grid.first[axis]).div_euclid(tile).clamp(-1, count - 1);
        first as usize..(last + 1).max(first) as usize
    });
    let [_, rows, columns] = grid.blocks;
    if x.is_empty() || y.is_empty() || z.is_empty() {
        return Vec::new();
    }
    // Whole rows, and whole planes, have consecutive numbers.
    let number = |z: usize, y: usize, x: usize| (z * rows + y) * columns + x;
    if x.len() < columns {
        let row = |(z, y): (usize, usize)| number(z, y, x.start)..number(z, y, x.end);
        return z.flat_map(|z| y.clone().map(move |y| (z, y))).map(row).collect();
    }
    if y.len() < rows {
        return z.map(|z| number(z, y.start, 0)..number(z, y.end, 0)).collect();
    }
    let whole = number(z.start, 0, 0)..number(z.end, 0, 0);
    Vec::from([whole])
}

/// Returns consecutive tiles as boxes.
fn boxes(tiles: Range<usize>, [_, rows, columns]: [usize; 3]) -> Vec<[Range<usize>; 3]> {
    let (mut at, mut boxes) = (tiles.start, Vec::new());
    while at < tiles.end {
        let (left, row, x) = (tiles.end - at, at / columns, at % columns);
        let (z, y) = (row / rows, row % rows);
        let part = if x > 0 || left < columns {
            [z..z + 1, y..y + 1, x..columns.min(x + left)]
        } else if y > 0 || left < rows * columns {
            [z..z + 1, y..rows.min(y + left / columns), 0..columns]
        } else {
            [z..z + left / (rows * columns), 0..rows, 0..columns]
        };
        at += part.iter().map(|range| range.len()).product::<usize>();
        boxes.push(part);
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task over 24×40 places that reads one buffer around it and makes another.
    fn task(tile: [usize; 2], by: isize, [from, to]: [usize; 2], is_periodic: bool) -> Task {
        let held = [0..1, 0..24, 0..40];
        let reach = |by: isize| {
            let by = [[0; 2], [-by, by], [-by, by]];
            Some(Reach { by, held: held.clone(), is_periodic: [is_periodic; 3] })
        };
        let access = |buffer: usize, makes: bool, by: isize| Access {
            thing: Thing::Buffer(buffer),
            makes,
            covers: makes,
            reach: reach(by),
        };
        let grid = Grid::over(&held, [1, tile[0], tile[1]], [0; 3]);
        Task { grid, own: held.clone(), accesses: vec![access(from, false, by), access(to, true, 0)] }
    }

    /// Returns the block that has a place of a task.
    fn owner(task: &Task, y: usize, x: usize, blocks: usize) -> usize {
        let tile = y / task.grid.tile[1] * task.grid.blocks[2] + x / task.grid.tile[2];
        (0..blocks).find(|&block| share(block + 1, blocks, task.grid.count()) > tile).unwrap()
    }

    /// Every place that is read has been made, and every place that is overwritten has been read: asked place by place, of
    /// waits that lead from one to another too.
    #[test]
    fn nobody_reads_or_overwrites_too_early() {
        for (blocks, is_periodic) in [(1, true), (5, false), (7, true), (13, false), (40, true)] {
            let tasks = [
                task([8, 8], 1, [0, 1], is_periodic),
                task([5, 11], 2, [1, 2], is_periodic),
                task([24, 40], 0, [2, 3], is_periodic),
                task([3, 40], 3, [2, 0], is_periodic),
            ];
            let all = waits(&tasks, blocks, true);
            let rounds = 3;
            let count = rounds * tasks.len();
            // Whether a block's part of a task comes after another block's part of another.
            let mut after = vec![vec![vec![false; count * blocks]; blocks]; count];
            for number in 0..count {
                for block in 0..blocks {
                    let mut before = vec![false; count * blocks];
                    let mut follow = |other: usize, by: usize| {
                        before[other * blocks + by] = true;
                        let known = after[other][by].clone();
                        before.iter_mut().zip(known).for_each(|(to, from)| *to |= from);
                    };
                    if number > 0 {
                        follow(number - 1, block);
                    }
                    for wait in &all[number % tasks.len()][block] {
                        if wait.back <= number {
                            follow(number - wait.back, wait.block);
                        }
                    }
                    after[number][block] = before;
                }
            }
            for number in 1..count {
                for other in number.saturating_sub(tasks.len())..number {
                    let [own, earlier] = [number, other].map(|number| &tasks[number % tasks.len()]);
                    check(own, earlier, blocks, is_periodic, |block, by| {
                        let is_after = block == by || after[number][block][other * blocks + by];
                        assert!(is_after, "{blocks} blocks: {number} of {block} and {other} of {by}");
                    });
                }
            }
        }
    }

    /// Calls `follows` for each pair of blocks of two tasks that touch the same place, unless both only read it.
    fn check(own: &Task, earlier: &Task, blocks: usize, is_periodic: bool, follows: impl Fn(usize, usize)) {
        let shown = |at: isize, n: isize| match is_periodic {
            true => at.rem_euclid(n),
            false if at < 0 => -1 - at,
            false if at >= n => 2 * n - 1 - at,
            false => at,
        };
        let touched = |access: &Access, y: usize, x: usize| {
            let [low, high] = access.reach.as_ref().unwrap().by[1];
            let mut all = Vec::new();
            for dy in low..=high {
                for dx in low..=high {
                    all.push([shown(y as isize + dy, 24), shown(x as isize + dx, 40)]);
                }
            }
            all
        };
        for access in &own.accesses {
            for other in earlier.accesses.iter().filter(|other| other.thing == access.thing) {
                if !access.makes && !other.makes {
                    continue;
                }
                let mut by_place: Vec<Vec<usize>> = vec![Vec::new(); 24 * 40];
                for (y, x) in (0..24).flat_map(|y| (0..40).map(move |x| (y, x))) {
                    for [z, w] in touched(other, y, x) {
                        by_place[(z * 40 + w) as usize].push(owner(earlier, y, x, blocks));
                    }
                }
                for (y, x) in (0..24).flat_map(|y| (0..40).map(move |x| (y, x))) {
                    for [z, w] in touched(access, y, x) {
                        let block = owner(own, y, x, blocks);
                        by_place[(z * 40 + w) as usize].iter().for_each(|&by| follows(block, by));
                    }
                }
            }
        }
    }

    #[test]
    fn only_blocks_with_tiles_are_awaited_and_most_are_not() {
        let tasks = [task([8, 8], 1, [0, 1], false), task([8, 8], 1, [1, 0], false)];
        // Fifteen tiles: some of twenty blocks have none.
        let all = waits(&tasks, 20, true);
        let has_tile = |block: usize| share(block, 20, 15) < share(block + 1, 20, 15);
        let awaited: Vec<usize> = all.iter().flatten().flatten().map(|wait| wait.block).collect();
        assert!(awaited.iter().all(|&block| has_tile(block)));
        let idle = (0..20).filter(|&block| !has_tile(block));
        assert!(idle.clone().count() == 5 && idle.into_iter().all(|block| all[0][block].is_empty()));
        // A tile has eight around it at the most.
        assert!(all.iter().flatten().all(|waits| waits.len() <= 8), "{all:?}");
        assert!(all.iter().flatten().any(|waits| waits.len() == 8));
        // Nothing comes before the first task of a run that does not repeat.
        let first = &waits(&tasks, 20, false)[0];
        assert!(first.iter().all(Vec::is_empty));
    }

    #[test]
    fn tiles_are_boxes_and_each_has_a_block() {
        for grid in [[1, 5, 7], [3, 4, 5], [2, 1, 9], [1, 1, 1]] {
            let count: usize = grid.iter().product();
            for start in 0..count {
                for end in start..=count {
                    let parts = boxes(start..end, grid);
                    let tiles = parts.iter().flat_map(|[z, y, x]| {
                        let rows = z.clone().flat_map(|z| y.clone().map(move |y| z * grid[1] + y));
                        rows.flat_map(|row| x.clone().map(move |x| row * grid[2] + x)).collect::<Vec<_>>()
                    });
                    assert_eq!(tiles.collect::<Vec<_>>(), (start..end).collect::<Vec<_>>());
                    assert!(parts.len() <= 5);
                }
            }
            for blocks in [1, 3, 8, 200] {
                for tile in 0..count {
                    let block = block_of(tile, blocks, count);
                    let own = share(block, blocks, count)..share(block + 1, blocks, count);
                    assert!(block < blocks && own.contains(&tile));
                }
            }
        }
    }
}
