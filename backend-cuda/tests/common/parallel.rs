//! Work on as many threads as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Does something with each item on as many threads as there are cores, for compiling takes long; a panic is passed on.
pub fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let turns = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(turns))));
}
