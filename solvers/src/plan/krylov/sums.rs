//! How blocks sum over all rows by the tree of [`reduction`](abide_core::reduction), whoever owns which rows.
//!
//! Every share begins at a multiple of a *unit* of rows, a power of two, so that units are blocks of the tree.
//! Within a block a warp joins *runs* of a few times 32 rows, which are blocks of the tree, too. In a block or
//! a cluster every block then has the sums of all runs in its shared memory, and one warp of it joins them.
//!
//! On the grid these would be too many. The blocks of the tree that a share has whole, each as large as can be, are
//! its *nodes*: what it adds to a sum. Rows are cut into *windows*: blocks of the tree, as large as possible, inside
//! of each of which at most one share begins. Where a share begins inside a window, the window's nodes are a *chain*:
//! the share's first node, then the one beside it, then the one beside both, and so on. One warp joins runs to nodes,
//! a few neighbouring runs a lane, and stores the nodes in their *slots*. After the barrier windows are joined
//! likewise.

use abide_core::solver::plan::krylov::sums::JOINS;
use abide_core::solver::plan::krylov::{SLICE, Share, Space, Sums};

/// The most windows: 32 groups of 32 lanes, of which each joins 8.
const WINDOWS: usize = 32 * SLICE * WINDOWS_OF_A_LANE;

/// The most windows that a lane joins.
const WINDOWS_OF_A_LANE: usize = 8;

/// The most nodes that a lane loads at once for one sum, because all these loads are in flight at the same time.
const LOADS: usize = 16;

/// The most units of a window: so many does a warp join at a time, two a lane.
const OF_A_WINDOW: usize = 2 * SLICE;

/// The sums of runs that a lane joins before lanes join theirs, because a load takes a lane less time than a
/// shuffle.
const EACH: usize = 8;

/// The slot of lanes that store no node.
const NOWHERE: u32 = (1 << 24) - 1;

/// Windows over all rows.
struct Windows {
    /// Rows of a window.
    rows: usize,
    /// For each window, the row inside it at which a share begins, if one does.
    cuts: Vec<Option<usize>>,
}

impl Windows {
    /// Cuts `rows` rows into windows for shares that begin at `firsts`, ascending, multiples of `unit`.
    fn new(rows: usize, firsts: &[usize], unit: usize) -> Windows {
        let mut cuts: Vec<usize> =
            firsts.iter().copied().filter(|&first| first > 0 && first < rows).collect();
        cuts.dedup();
        // Two that are inside one window are inside one that is twice as large, too.
        let fits = |size: usize| {
            let inside = |cut: &usize| !cut.is_multiple_of(size);
            let mut within = cuts.iter().filter(|cut| inside(cut)).map(|cut| cut / size);
            let mut before = None;
            within.all(|window| before.replace(window) != Some(window))
        };
        let mut size = unit;
        while size < rows && size < OF_A_WINDOW * unit && fits(2 * size) {
            size *= 2;
        }
        let mut windows = Windows { rows: size, cuts: vec![None; rows.div_ceil(size)] };
        for cut in cuts.into_iter().filter(|cut| cut % size != 0) {
            windows.cuts[cut / size] = Some(cut);
        }
        windows
    }

    /// Returns the nodes of a window's chain.
    fn links(&self, window: usize) -> usize {
        self.cuts[window].map_or(1, |cut| 1 + (self.rows.ilog2() - cut.trailing_zeros()) as usize)
    }

    /// Returns the place in its window's chain of the node of `size` rows at row `first`.
    fn link(&self, first: usize, size: usize) -> usize {
        match self.cuts[first / self.rows] {
            Some(cut) if cut != first => 1 + (size.ilog2() - cut.trailing_zeros()) as usize,
            _ => 0,
        }
    }
}

/// Returns the number of windows that shares at these first rows ask for.
pub fn windows(rows: usize, firsts: &[usize], unit: usize) -> usize {
    Windows::new(rows, firsts, unit).cuts.len()
}

/// Returns the most rows of 32 that a warp sums at a time, for `at_once` simultaneous sums and so many registers of a
/// thread. The terms of all rows are in registers. Few registers must leave room for loads in flight, and more room
/// where a matrix `streams`. Measured on an H200 for the 2D Laplacian 1000×999: runs of 4 take 25.4 µs an iteration on
/// one device, and 12.1 µs on two, where the matrix stays on the chip; runs of 1 take 19.6 µs and 13.6 µs.
pub fn most_of_a_run(registers: usize, real: usize, at_once: usize, streams: bool) -> usize {
    match (registers <= 64 && real == 8, at_once) {
        (true, 1) if streams => 1,
        (true, 1) => 4,
        (true, 2) => 1,
        (_, at_once) => (8 / at_once).max(1),
    }
}

/// Checks whether there is room for so many windows.
pub fn is_room(windows: usize) -> bool {
    windows <= WINDOWS
}

/// Lays out the sums over `rows` rows of shares that begin at multiples of `unit` rows, for blocks of
/// `warps` warps that sum at most `most` rows of 32 at a time.
pub fn lay_out(rows: usize, shares: &[Share], unit: usize, space: Space, [warps, most]: [usize; 2]) -> Sums {
    let most_rows = shares.iter().map(|share| share.rows).max().unwrap_or(0);
    // As many rows a run as cost no warp a row more.
    let turns = |run: usize| most_rows.div_ceil(run * SLICE).div_ceil(warps) * run;
    let fits = |run: &usize| *run <= most && run * SLICE <= unit && turns(*run) == turns(1);
    let run = [8, 4, 2].into_iter().find(fits).unwrap_or(1);
    if space == Space::Grid {
        of_grid(rows, shares, unit, run)
    } else {
        let all = rows.div_ceil(run * SLICE).max(1);
        let each = all.min(EACH).max(all.div_ceil(SLICE)).next_power_of_two();
        let lanes = all.div_ceil(each).next_power_of_two();
        // One of each of the grid's, because the kernels have arrays of them.
        let grid = Sums { passes: 1, windows: 1, window_lanes: 1, groups: 1, links: 1, ..Sums::default() };
        Sums { run, runs: each * lanes, each, lanes, ..grid }
    }
}

/// Lays out the sums of the blocks of a grid.
fn of_grid(rows: usize, shares: &[Share], unit: usize, run: usize) -> Sums {
    let firsts: Vec<usize> = shares.iter().map(|share| share.first).collect();
    let windows = Windows::new(rows, &firsts, unit);
    let most_rows = shares.iter().map(|share| share.rows).max().unwrap_or(0);
    // A share ends inside what a lane joins at a unit or not at all, so a lane has one node.
    let most_of_a_lane = windows.rows.min(2 * unit);
    let mut of_a_lane = run * SLICE;
    let groups = |of_a_group: usize| {
        let spans = shares.iter().filter(|share| share.rows > 0);
        spans.map(|s| (s.first + s.rows).div_ceil(of_a_group) - s.first / of_a_group).max().unwrap_or(1)
    };
    while groups(of_a_lane) > SLICE && of_a_lane < most_of_a_lane {
        of_a_lane *= 2;
    }
    let passes = if groups(of_a_lane) <= SLICE { 1 } else { groups(of_a_lane * SLICE) };
    let runs = most_rows.div_ceil(run * SLICE);
    let mut sums = Sums { run, runs, each: of_a_lane / (run * SLICE), lanes: 1, passes, ..Sums::default() };
    chain(&mut sums, &windows);
    lay_out_nodes(&mut sums, rows, shares, &windows, of_a_lane);
    sums.runs = sums.runs.max(sums.groups).max(1);
    sums
}

/// Lays out the windows' chains.
fn chain(sums: &mut Sums, windows: &Windows) {
    let count = windows.cuts.len();
    sums.links = (0..count).map(|window| windows.links(window)).max().unwrap_or(1);
    // One warp loads them all, where that is not too much for it.
    let of_one_warp = count.div_ceil(SLICE).next_power_of_two();
    let fits = of_one_warp <= WINDOWS_OF_A_LANE && of_one_warp * sums.links <= LOADS;
    let of_all = count.div_ceil(SLICE * SLICE).next_power_of_two();
    sums.windows = if fits { of_one_warp } else { of_all };
    sums.groups = count.div_ceil(SLICE * sums.windows);
    sums.window_lanes = count.div_ceil(sums.windows).min(SLICE).next_power_of_two();
    let places = sums.groups * SLICE * sums.windows;
    sums.chains = vec![0; places];
    for window in 0..count {
        // Nodes lie so that a warp's lanes load neighbours.
        let place = place(sums, window);
        sums.chains[place] = place as u32 | (windows.links(window) as u32) << 24;
    }
    (sums.slots, sums.step) = (places * sums.links, places);
}

/// Returns where a window's chain stands in `chains`.
fn place(sums: &Sums, window: usize) -> usize {
    let (lane, of_lane) = (window / sums.windows, window % sums.windows);
    (lane / SLICE * sums.windows + of_lane) * SLICE + lane % SLICE
}

/// Lays out the blocks' nodes.
fn lay_out_nodes(sums: &mut Sums, rows: usize, shares: &[Share], windows: &Windows, of_a_lane: usize) {
    sums.nodes = vec![NOWHERE * JOINS; shares.len() * sums.passes * SLICE];
    let all = rows.next_multiple_of(windows.rows);
    for (block, share) in shares.iter().enumerate().filter(|(_, share)| share.rows > 0) {
        // Values missing behind the last row are neutral. They belong to the last share, and no block stores them.
        let end = share.first + share.rows;
        let own = share.first..if end == rows { all } else { end };
        let first = own.start / of_a_lane;
        let mut stored = None;
        for lane in first..end.div_ceil(of_a_lane) {
            // The lane's own rows, and then blocks of the tree around them.
            let (mut at, mut size, mut joins) = (lane * of_a_lane, of_a_lane, 0);
            if !(own.contains(&at) && at + size <= own.end) {
                size /= 2;
                at = at.max(own.start);
            } else {
                for up in 0.. {
                    let around = at / (2 * size) * (2 * size);
                    if size == windows.rows || around < own.start || around + 2 * size > own.end {
                        break;
                    }
                    // Lanes behind the last row may have the rows of others.
                    if around < at || at + size < end {
                        joins |= 1 << up;
                        sums.lanes = sums.lanes.max(2 << up);
                    }
                    (at, size) = (around, 2 * size);
                }
            }
            let slot = if stored.replace(at) == Some(at) {
                NOWHERE
            } else {
                let chain = sums.chains[place(sums, at / windows.rows)] & NOWHERE;
                chain + (windows.link(at, size) * sums.step) as u32
            };
            let pass = if sums.passes > 1 { lane / SLICE - first / SLICE } else { 0 };
            sums.nodes[(block * sums.passes + pass) * SLICE + lane % SLICE] = slot * JOINS + joins;
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::reduction::{Reduction, join_all};

    use super::*;

    fn share(first: usize, rows: usize) -> Share {
        Share::of(first..first + rows)
    }

    /// Sums as the kernels do, lane by lane: runs, nodes, windows.
    fn sum(sums: &Sums, values: &[f64], shares: &[Share], space: Space) -> f64 {
        let of = |values: &[f64]| join_all(Reduction::Sum, &mut values.to_vec());
        let of_a_run = sums.run * SLICE;
        if space != Space::Grid {
            let mut places = vec![-0.0; sums.runs];
            for share in shares {
                let own = &values[share.first..share.first + share.rows];
                for (run, own) in own.chunks(of_a_run).enumerate() {
                    places[sums.place_of_run(share.first / of_a_run + run)] = of(own);
                }
            }
            let part = |lane: usize| {
                of(&(0..sums.each).map(|n| places[n * sums.lanes + lane]).collect::<Vec<f64>>())
            };
            return of(&(0..sums.lanes).map(part).collect::<Vec<f64>>());
        }
        // No block stores the values missing behind the last row.
        let mut stored = vec![None; sums.slots];
        for (block, share) in shares.iter().enumerate() {
            let own = &values[share.first..share.first + share.rows];
            let runs: Vec<f64> = own.chunks(of_a_run).map(&of).collect();
            let before = share.first / of_a_run;
            let first = before / sums.each;
            for pass in 0..sums.passes {
                let place = |lane: usize| match sums.passes {
                    1 => first + (lane + SLICE - first % SLICE) % SLICE,
                    _ => (first / SLICE + pass) * SLICE + lane,
                };
                let part = |lane: usize| {
                    let run = |n: usize| (place(lane) * sums.each + n).checked_sub(before);
                    let run = |n: usize| run(n).and_then(|run| runs.get(run)).copied().unwrap_or(-0.0);
                    of(&(0..sums.each).map(run).collect::<Vec<f64>>())
                };
                let mut parts: Vec<f64> = (0..SLICE).map(part).collect();
                let nodes = &sums.nodes[(block * sums.passes + pass) * SLICE..][..SLICE];
                for up in 0..sums.lanes.ilog2() {
                    let old = parts.clone();
                    for lane in (0..SLICE).filter(|&lane| nodes[lane] >> up & 1 == 1) {
                        parts[lane] = old[lane] + old[lane ^ 1 << up];
                    }
                }
                for (node, part) in nodes.iter().zip(parts).filter(|(node, _)| **node / JOINS != NOWHERE) {
                    assert_eq!(stored[(node / JOINS) as usize].replace(part), None, "a slot has two nodes");
                }
            }
        }
        let chain = |place: usize| {
            let (first, links) = (sums.chains[place] & NOWHERE, sums.chains[place] >> 24);
            let node = |link: u32| stored[first as usize + link as usize * sums.step].unwrap_or(-0.0);
            (0..links).fold(-0.0, |sum, link| sum + node(link))
        };
        let group = |group: usize| {
            let windows = group * SLICE * sums.windows..(group * SLICE + sums.window_lanes) * sums.windows;
            of(&windows.map(|window| chain(place(sums, window))).collect::<Vec<f64>>())
        };
        of(&(0..sums.groups).map(group).collect::<Vec<f64>>())
    }

    #[test]
    fn every_layout_sums_by_the_tree() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut most_passes, mut most_groups, mut most_links) = (0, 0, 0);
        for turn in 0..600 {
            let unit = SLICE << rng.usize(0..5);
            let blocks = if turn % 3 == 0 { rng.usize(1..5) } else { rng.usize(1..140) };
            let rows = rng.usize(1..60_000).max(blocks);
            let units = rows.div_ceil(unit);
            // Some shares are alike, some have no rows.
            let mut firsts: Vec<usize> = if turn % 2 == 0 {
                (0..blocks).map(|block| (units * block / blocks * unit).min(rows)).collect()
            } else {
                (0..blocks).map(|_| (rng.usize(0..=units) * unit).min(rows)).collect()
            };
            firsts.sort_unstable();
            firsts[0] = 0;
            let space = match turn % 5 {
                0 => Space::Block,
                1 => Space::Cluster,
                _ => Space::Grid,
            };
            if space == Space::Block {
                firsts.truncate(1);
            }
            if space != Space::Block && !is_room(windows(rows, &firsts, unit)) {
                continue;
            }
            let unit = if space == Space::Block { rows.next_power_of_two().max(SLICE) } else { unit };
            let ends = firsts.iter().skip(1).copied().chain([rows]);
            let shares: Vec<Share> =
                firsts.iter().zip(ends).map(|(&first, end)| share(first, end - first)).collect();
            let sums = lay_out(rows, &shares, unit, space, [rng.usize(4..=32), rng.usize(1..=8)]);
            let values: Vec<f64> = (0..rows).map(|_| rng.f64() - 0.4).collect();
            let expected = join_all(Reduction::Sum, &mut values.clone());
            let got = sum(&sums, &values, &shares, space);
            assert_eq!(
                got.to_bits(),
                expected.to_bits(),
                "turn {turn}: {rows} rows, unit {unit}, {firsts:?}"
            );
            most_passes = most_passes.max(sums.passes);
            most_groups = most_groups.max(sums.groups);
            most_links = most_links.max(sums.links);
        }
        assert!(most_passes > 1 && most_groups > 1 && most_links > 3);
    }
}
