//! The machine's properties, as far as the system reports them.

use abide_core::process::Found;
use std::fs;
use std::ops::Range;
use std::time::Instant;

use abide_core::DeviceSpec;
use abide_core::device::Caches;
use abide_tuning::rates::Rates;

use crate::memory;

/// Returns the machine with the given number of threads at work. The bandwidth of its memory takes a while to
/// measure, and is 0 where it was not requested.
pub fn machine(threads: usize, memory_bandwidth: f64) -> DeviceSpec {
    let memory_bytes = total_memory();
    let flops = threads as f64 * peak_per_core();
    DeviceSpec {
        name: name(),
        compute_capability: None,
        multiprocessors: threads,
        registers: None,
        registers_per_thread: None,
        shared_bytes: 0,
        shared_bytes_per_block: 0,
        constant_bytes: None,
        caches: Some(Caches { level1_bytes: cache_bytes(1), level2_bytes: cache_bytes(2) }),
        shared_bytes_reserved: 0,
        threads: 1,
        threads_per_block: 1,
        warp: None,
        l2_bytes: last_level_cache(),
        memory_bytes,
        buffer_bytes: memory_bytes,
        kernel_buffers: None,
        memory_bandwidth,
        l2_bandwidth: 0.0,
        shared_bandwidth: 0.0,
        f32_flops: 2.0 * flops,
        f64_flops: flops,
        launch_seconds: 5e-6,
        barrier_seconds: 5e-6,
        exchange_seconds: 5e-6,
        link: None,
    }
}

/// Returns the first value of a `key : value` line of a file under /proc.
fn proc_value(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
}

fn name() -> String {
    proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| format!("{} CPU", std::env::consts::ARCH))
}

/// Returns the bytes of memory; 0 where the system does not report them.
fn total_memory() -> u64 {
    let kib = proc_value("/proc/meminfo", "MemTotal")
        .and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Returns one core's share, in bytes, of the data cache of a level; `None` where the system does not report
/// it.
fn cache_bytes(level: usize) -> Option<usize> {
    let read = |index: usize, file: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}")).ok()
    };
    (0..8).find_map(|index| {
        let is_level = read(index, "level")?.trim().parse() == Ok(level);
        let holds_data = read(index, "type")?.trim() != "Instruction";
        let text = read(index, "size")?;
        let text = text.trim();
        let bytes = match text.strip_suffix('K') {
            Some(kib) => kib.parse::<usize>().ok()? << 10,
            None => text.strip_suffix('M')?.parse::<usize>().ok()? << 20,
        };
        let sharing = read(index, "shared_cpu_map").map_or(1, |map| {
            map.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum::<u32>().max(1)
        });
        // The size of a level that all cores share is returned whole, of any other level one core's part.
        (is_level && holds_data).then(|| if level < 3 { bytes / sharing as usize } else { bytes })
    })
}

/// Returns the bytes of the last level of cache; 1 MiB where the system does not report them.
fn last_level_cache() -> usize {
    (1..=4).rev().find_map(cache_bytes).unwrap_or(1 << 20)
}

/// Returns the peak operations per second in f64 of one core: two vector units at the clock that the system
/// reports, or at 2 GHz where it reports none.
fn peak_per_core() -> f64 {
    let mhz =
        proc_value("/proc/cpuinfo", "cpu MHz").and_then(|value| value.parse::<f64>().ok()).unwrap_or(2000.0);
    2.0 * 2.0 * lanes() * mhz * 1e6
}

/// Returns the f64 lanes of a vector.
fn lanes() -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return 8.0;
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return 4.0;
        }
    }
    2.0
}

/// Names the architecture and its widest vectors.
pub fn instruction_set() -> String {
    let text = std::env::consts::ARCH.to_owned();
    #[cfg(target_arch = "x86_64")]
    let text = {
        let fused = if std::arch::is_x86_feature_detected!("fma") { " with fma" } else { "" };
        let vectors = match lanes() {
            8.0 => " avx512",
            4.0 => " avx2",
            _ => " sse2",
        };
        format!("{text}{vectors}{fused}")
    };
    text
}

/// Returns the machine's bandwidth, in bytes per second read and written. It is found once per process: as an
/// earlier process kept it, or by measuring. It is 0 where there is no memory, or no thread, to measure with.
///
/// The measurement uses threads of its own, because rayon's may all be waiting for this very measurement.
pub fn bandwidth() -> f64 {
    static FOUND: Found = Found::new();
    FOUND.or_find(|| {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let machine = [name(), cores.to_string(), total_memory().to_string(), last_level_cache().to_string()];
        Rates::of_user().kept("copy", &machine, PLAUSIBLE, || copy_bandwidth(cores)).unwrap_or(0.0)
    })
}

/// Bytes per second that a machine's memory may have; a kept number outside this range is ignored.
const PLAUSIBLE: Range<f64> = 1e8..1e14;

/// Words of each of the two arrays of a measurement: more than caches hold; and the fewest, where memory is
/// short.
const WORDS: usize = 8 << 20;
const FEWEST: usize = 1 << 16;

/// Returns the best rate of a few copies by `cores` threads; `None` where the system grants too little
/// memory or no threads.
fn copy_bandwidth(cores: usize) -> Option<f64> {
    // No more than an eighth of the available memory: a measurement must not be the reason that it runs out.
    let room = memory::available().map_or(u64::MAX, |bytes| bytes / 8) / (2 * size_of::<u64>() as u64);
    let words = usize::try_from(room).unwrap_or(usize::MAX).min(WORDS);
    if words < FEWEST {
        return None;
    }
    let array = |value: u64| {
        let mut array = Vec::new();
        array.try_reserve_exact(words).ok()?;
        array.resize(words, value);
        Some(array)
    };
    let (from, mut to) = (array(1)?, array(0)?);
    let piece = words.div_ceil(cores);
    let mut copy = || {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            to.chunks_mut(piece).zip(from.chunks(piece)).try_for_each(|(to, from)| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || to.copy_from_slice(from))
                    .ok()
                    .map(drop)
            })
        })?;
        Some(begun.elapsed().as_secs_f64())
    };
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        best = best.min(copy()?);
    }
    Some((2 * words * size_of::<u64>()) as f64 / best.max(1e-9))
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn the_machine_has_a_name_memory_and_rates() {
        let device = machine(3, bandwidth());
        assert!(!device.name.is_empty());
        assert_eq!(device.multiprocessors, 3);
        assert!(
            device.memory_bandwidth > 1e8 && device.memory_bandwidth.is_finite(),
            "{}",
            device.memory_bandwidth
        );
        assert!(device.f64_flops > 1e8);
        assert_eq!(bandwidth(), device.memory_bandwidth, "found once");
        assert!(PLAUSIBLE.contains(&copy_bandwidth(2).unwrap()));
    }

    /// All of rayon's threads may ask at once, as in `abide verify`: they must not wait for work that waits
    /// for them.
    #[test]
    fn all_threads_may_ask_at_once() {
        let rates: Vec<f64> = (0..64).into_par_iter().map(|_| bandwidth()).collect();
        assert!(rates.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
