//! The kernels by which a device's launches and waits are timed: the same for any problem.

use super::DEVICE;

/// Threads of a block.
pub const MEET_THREADS: u32 = 256;

/// Words between the counters of two blocks: each has a line of its own.
pub const COUNTER_STRIDE: usize = 32;

/// The name of the kernel whose blocks meet all others once a pass.
pub const MEET_ALL: &str = "meet_all";

/// The name of the kernel whose blocks meet those beside them in a ring once a pass.
pub const MEET_BESIDE: &str = "meet_beside";

/// The name of the kernel that does nothing.
pub const IDLE: &str = "idle";

/// Returns the text of all three kernels.
pub fn meet() -> String {
    [DEVICE, "\n", include_str!("../../kernels/cuda/persistent/meet.cu")].concat()
}

/// Returns the words that blocks leave after so many passes, in the half that [`meet_half`] names: what they are if
/// every block waits in every pass.
pub fn met(blocks: usize, passes: u32) -> Vec<u32> {
    let threads = MEET_THREADS as usize;
    let mut values: Vec<u32> = (0..(blocks * threads) as u32).collect();
    for _ in 0..passes {
        let of = |block: usize, thread: usize| values[block % blocks * threads + thread];
        values = (0..blocks * threads)
            .map(|i| {
                let (block, thread) = (i / threads, i % threads);
                let beside = [of(block + blocks - 1, thread), of(block + 1, thread)];
                values[i].wrapping_add(beside[0]).wrapping_add(beside[1].wrapping_mul(3))
            })
            .collect();
    }
    values
}

/// Returns the half of the words, 0 or 1, that holds the result.
pub fn meet_half(passes: u32) -> usize {
    (!passes & 1) as usize
}
