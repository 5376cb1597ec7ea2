//! Work on as many threads as there are cores, and in any number of processes.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` with each item on as many threads as there are cores; a panic is passed on. With
/// `ABIDE_PART=k/n`, it takes only every n-th item from the k-th on: a process compiles one kernel at a time,
/// and compiling takes longest.
pub fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let [first, step] = part();
    let next = AtomicUsize::new(first);
    let turns = || {
        while let Some(item) = items.get(next.fetch_add(step, Ordering::Relaxed)) {
            work(item);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).div_ceil(step);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(turns))));
}

/// Returns the first item and the distance to the next: 0 and 1, unless the environment says otherwise.
pub fn part() -> [usize; 2] {
    let Ok(text) = std::env::var("ABIDE_PART") else { return [0, 1] };
    let numbers: Vec<usize> = text.split('/').filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [part, parts] if part < parts => [part, parts],
        _ => panic!("ABIDE_PART is {text}, and not k/n with k from 0 to n - 1"),
    }
}
