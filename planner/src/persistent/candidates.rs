//! All configurations of a persistent sweep that fit a device.

use abide_core::domain::Axes;
use abide_core::plan::persistent::Configuration;
use abide_core::plan::{Persistent, Synchronisation};
use abide_core::{CachePolicy, DeviceSpec, Problem};

use super::room::{planes_shared, shared_bytes, working_registers};

/// Returns all sweeps of a cache policy that fit: threads, cells per thread and blocks per SM, each with as
/// many planes on the chip as it can hold.
pub(super) fn candidates<'a>(
    problem: &'a Problem,
    device: &'a DeviceSpec,
    policy: CachePolicy,
) -> impl Iterator<Item = Persistent> + 'a {
    let three = problem.shape.dimensions() == 3;
    let rows: &[usize] = if three { &[1, 2, 3, 4, 5, 6, 8, 10, 12, 16] } else { &[1] };
    let columns: Vec<usize> =
        if three { vec![16, 32, 64, 128] } else { (32..=512).step_by(32).chain([768, 1024]).collect() };
    let vector = 16 / problem.dtype.bytes();
    let cells: &[[usize; 2]] =
        if three { &[[1, 1], [2, 1], [1, 2], [2, 2], [1, 4]] } else { &[[1, 2], [1, 4], [1, 8]] };
    // If a thread's row is wider than 32 bytes, the window's registers leave none for planes.
    let cells = cells.iter().filter(move |c| c[1] <= 2 * vector && (c[1] < vector || c[1] % vector == 0));
    let threads = rows.iter().flat_map(move |&y| columns.clone().into_iter().map(move |x| [y, x]));
    threads
        .flat_map(move |threads| cells.clone().map(move |&cells| (threads, cells)))
        .flat_map(|(threads, cells)| [1, 2, 4, 8, 16].map(|blocks| (threads, cells, blocks)))
        .flat_map(|(threads, cells, blocks)| [1, 2, 4].map(|chunk| (threads, cells, blocks, chunk)))
        .filter_map(move |(threads, cells_per_thread, blocks_per_multiprocessor, chunk)| {
            let configuration = Configuration { threads, cells_per_thread, blocks_per_multiprocessor, chunk };
            candidate(problem, device, policy, &configuration)
        })
}

fn candidate(
    problem: &Problem,
    device: &DeviceSpec,
    policy: CachePolicy,
    configuration: &Configuration,
) -> Option<Persistent> {
    let Configuration { threads, cells_per_thread, blocks_per_multiprocessor, chunk } = *configuration;
    let per_block = threads[0] * threads[1];
    let resident_threads = per_block * blocks_per_multiprocessor;
    if per_block > device.threads_per_block
        || resident_threads > device.threads.min(1024)
        || resident_threads < 192
        || !per_block.is_multiple_of(device.warp.unwrap_or(1))
    {
        return None;
    }
    let axes = Axes::of(problem.shape.dimensions());
    let extents = axes.order(problem.shape.padded());
    let radius = axes.order(problem.program.radius());
    let plane = [threads[0] * cells_per_thread[0], threads[1] * cells_per_thread[1]];
    let resident = device.multiprocessors * blocks_per_multiprocessor;
    let across = [extents[1].div_ceil(plane[0]), extents[2].div_ceil(plane[1])];
    // A tile must be as thick as the radius, so that only touching tiles exchange cells.
    let rows =
        (resident / (across[0] * across[1]).max(1)).min(extents[0] / radius[0].max(1)).clamp(1, extents[0]);
    let tiles = [rows, across[0], across[1]];
    let planes = [extents[0] / rows, extents[0].div_ceil(rows)];
    let tile_count = tiles.iter().product::<usize>();
    let registers = device.registers_for(resident_threads);
    let own = cells_per_thread[0] * cells_per_thread[1];
    // Some eight cells per thread between barriers hide the latency of arithmetic and of the barrier itself;
    // more cells only take registers.
    if chunk > 1 && (chunk * own > 8 || chunk > planes[0]) {
        return None;
    }
    // Tiles at the far side of a plane may be narrower than the radius; then cells of a neighbour's neighbour
    // are needed too.
    let last = |axis: usize| extents[axis] - (tiles[axis] - 1) * plane[axis - 1];
    let touching =
        (1..3).all(|axis| tiles[axis] == 1 || last(axis) >= radius[axis]) && planes[0] >= radius[0];
    let mut persistent = Persistent {
        threads,
        cells_per_thread,
        tiles,
        planes,
        planes_registers: 0,
        planes_shared: 0,
        chunk,
        halo_ahead: 1,
        blocks: tile_count.min(resident),
        blocks_per_multiprocessor,
        synchronisation: if tile_count <= resident && touching {
            Synchronisation::Neighbours
        } else {
            Synchronisation::Grid
        },
        shared_bytes: 0,
        registers,
    };
    if persistent.ring_bytes(problem) > device.shared_bytes_for(blocks_per_multiprocessor) {
        return None;
    }
    // Prefetch so many chunks' halo at once that every thread has a halo cell to fetch. Measured on an H200, eight
    // chunks beat one by 7 %.
    let halo = 2 * radius[1] * (plane[1] + 2 * radius[2]) + 2 * radius[2] * plane[0];
    persistent.halo_ahead = (per_block / (chunk * halo).max(1)).clamp(1, 8);
    let working = working_registers(problem, cells_per_thread, chunk);
    if working > registers && resident_threads > 256 {
        return None;
    }
    let room = registers.saturating_sub(working)
        / (problem.program.fields().len() * own * problem.dtype.bytes() / 4);
    if matches!(policy, CachePolicy::Shared | CachePolicy::Mixed) {
        persistent.planes_shared = planes_shared(problem, device, &persistent);
    }
    if matches!(policy, CachePolicy::Registers | CachePolicy::Mixed) {
        // Only planes that shared memory does not hold go to registers. Registers are the dearer place,
        // because every plane in them has code of its own.
        let wanted = planes[0].min(planes[1] - persistent.planes_shared).next_multiple_of(chunk);
        persistent.planes_registers = wanted.min(room / chunk * chunk).min(planes[0] / chunk * chunk);
        persistent.planes_shared = persistent.planes_shared.min(planes[1] - persistent.planes_registers);
    }
    persistent.shared_bytes = shared_bytes(problem, &persistent);
    Some(persistent)
}
