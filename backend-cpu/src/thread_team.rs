//! Division of tiles among threads, and the threads' waiting for each other between passes.
//!
//! A streaming run shares the tiles of each pass among the threads of a pool as they come free, and all meet
//! when the pass is done. In a persistent run each thread keeps its tiles, and so the caches of its core keep
//! their cells. A thread begins pass *n* once the threads whose tiles lie within its halo have finished the
//! pass before. That suffices because a pass reads one array and writes another. By then the halo holds what
//! those threads wrote. They also no longer read what this thread will overwrite, because only the pass
//! before read it. Halos are alike on all sides, so every thread is waited for by those that it waits for.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

use abide_core::floating::standard;
use abide_core::plan::{Levels, Tiling};
use abide_core::{Real, Result};
use core_affinity::CoreId;
use rayon::prelude::*;

use crate::pass::{Rings, advance};
use crate::pin::pin;
use crate::region::Region;
use crate::threads::refused;
use crate::tile::{Pass, Tile};

/// The number of times that a thread looks for its neighbours' progress before it lets others run.
const SPINS: u32 = 4000;

/// Cuts a region into tiles, the streamed axis slowest, each axis evenly.
pub fn tiles(region: &Region, tiling: &Tiling, stream: usize) -> Vec<Tile> {
    let computed = [0, 1, 2].map(|axis| region.computed(axis));
    let cut = |axis: usize| {
        let Range { start, end } = computed[axis].clone();
        // A plan's numbers can be changed by any caller.
        let count = tiling.tiles[axis].clamp(1, (end - start).max(1));
        (0..count).map(move |i| start + (end - start) * i / count..start + (end - start) * (i + 1) / count)
    };
    let mut tiles = Vec::new();
    for slow in cut(stream) {
        for across in cut(1 - stream) {
            for row in cut(2) {
                let mut cells = [slow.clone(), across.clone(), row];
                if stream == 1 {
                    cells.swap(0, 1);
                }
                if cells.iter().all(|cells| !cells.is_empty()) {
                    tiles.push(Tile { cells });
                }
            }
        }
    }
    tiles
}

/// Runs one pass on the threads of the pool that this is called in.
///
/// Nobody else uses the pass's arrays, and its tiles are disjoint.
pub fn stream<T: Real>(pass: &Pass<'_, T>, tiles: &[Tile], rings: &mut [Rings<T>]) {
    let next = AtomicUsize::new(0);
    let work = |rings: &mut Rings<T>| {
        while let Some(tile) = tiles.get(next.fetch_add(1, Ordering::Relaxed)) {
            // SAFETY: a pass reads `now` and writes `new`, which are different arrays, and each tile's cells
            // belong to one thread.
            standard(|| unsafe { advance(pass, rings, tile) });
        }
    };
    match rings {
        [rings] => work(rings),
        _ => rings.par_iter_mut().with_max_len(1).for_each(work),
    }
}

/// The number of passes that a thread has finished; on a cache line of its own because its neighbours read it
/// all the time.
#[repr(align(128))]
#[derive(Default)]
struct Progress(AtomicU64);

/// Releases the waiting threads when a thread unwinds, because they would wait for it for ever.
struct Watch<'a>(&'a AtomicBool);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs all passes, each thread with its own tiles, and on its own core where there are `cores`. `passes`
/// returns the pass of a number.
///
/// # Errors
///
/// The errors of [`crate::pin::pin`]; [`abide_core::Error::Limit`] where the system grants fewer threads, and
/// then nothing has changed.
pub fn persist<'a, T: Real>(
    count: u64,
    passes: impl Fn(u64) -> Pass<'a, T> + Sync,
    region: &Region,
    halo: [usize; 3],
    tiles: &[Tile],
    rings: &mut [Rings<T>],
    cores: &[CoreId],
) -> Result<()> {
    let workers = rings.len().min(tiles.len()).max(1);
    let own: Vec<&[Tile]> =
        (0..workers).map(|i| &tiles[tiles.len() * i / workers..tiles.len() * (i + 1) / workers]).collect();
    let near: Vec<Vec<usize>> = (0..workers)
        .map(|i| (0..workers).filter(|&j| j != i && touch(region, halo, own[i], own[j])).collect())
        .collect();
    let progress: Vec<Progress> = (0..workers).map(|_| Progress::default()).collect();
    let abandoned = AtomicBool::new(false);
    // Held until all threads are there: if one is refused, no thread has touched a cell.
    let gate = RwLock::new(());
    let work = |worker: usize, rings: &mut Rings<T>| {
        let _watch = Watch(&abandoned);
        drop(gate.read().unwrap_or_else(PoisonError::into_inner));
        if abandoned.load(Ordering::Relaxed) {
            return;
        }
        for number in 0..count {
            for &other in &near[worker] {
                if !reached(&progress[other].0, number, &abandoned) {
                    return;
                }
            }
            let pass = passes(number);
            for tile in own[worker] {
                // SAFETY: the neighbours have finished the pass before, so nobody writes the halo or reads
                // the tile.
                unsafe { advance(&pass, rings, tile) };
            }
            progress[worker].0.store(number + 1, Ordering::Release);
        }
    };
    thread::scope(|scope| {
        let (mut own, mut started) = (None, Vec::new());
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        for (i, rings) in rings[..workers].iter_mut().enumerate() {
            // The thread that asked works too, unless that would pin it.
            if i == 0 && cores.is_empty() {
                own = Some(rings);
                continue;
            }
            let (work, abandoned, core) = (&work, &abandoned, cores.get(i).copied());
            let thread = thread::Builder::new().name(format!("abide-{i}")).spawn_scoped(scope, move || {
                core.map_or(Ok(()), pin).inspect_err(|_| abandoned.store(true, Ordering::Relaxed))?;
                standard(|| work(i, rings));
                Ok(())
            });
            started.push(thread.map_err(|error| {
                abandoned.store(true, Ordering::Relaxed);
                refused(workers, error)
            })?);
        }
        drop(closed);
        if let Some(rings) = own {
            work(0, rings);
        }
        started.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Waits until a thread has finished `passes` passes; returns `false` if it never will.
fn reached(progress: &AtomicU64, passes: u64, abandoned: &AtomicBool) -> bool {
    let mut looks = 0;
    while progress.load(Ordering::Acquire) < passes {
        if looks < SPINS {
            looks += 1;
            std::hint::spin_loop();
        } else if abandoned.load(Ordering::Relaxed) {
            return false;
        } else {
            thread::yield_now();
        }
    }
    true
}

/// Returns whether any tile of `some` lies within the halo of any tile of `others`.
fn touch(region: &Region, halo: [usize; 3], some: &[Tile], others: &[Tile]) -> bool {
    let near = |axis: usize, a: &Range<usize>, b: &Range<usize>| {
        let extent = region.extent(axis) as isize;
        let (low, high) = (a.start as isize - halo[axis] as isize, (a.end + halo[axis]) as isize);
        let (start, end) = (b.start as isize, b.end as isize);
        let meets = |shift: isize| low < end + shift && start + shift < high;
        meets(0) || (region.is_periodic(axis) && (high - low >= extent || meets(extent) || meets(-extent)))
    };
    some.iter().any(|a| others.iter().any(|b| (0..3).all(|axis| near(axis, &a.cells[axis], &b.cells[axis]))))
}

/// Returns for each axis whether there are several tiles along it; the streamed axis always counts.
pub fn divided(tiles: &[Tile], levels: &Levels) -> [bool; 3] {
    let several = |axis: usize| tiles.iter().any(|tile| tile.cells[axis] != tiles[0].cells[axis]);
    std::array::from_fn(|axis| axis == levels.stream || several(axis))
}
