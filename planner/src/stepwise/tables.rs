//! Where the constant tables that loops read lie on a device.
//!
//! All threads of a warp read the same entry at a time, because an index is that of a loop whose turns are known when the
//! formula is built: constant memory gives it to all of them at once, and so does shared memory. An index that is known
//! only when a kernel runs makes a load of either, and shared memory's is the faster: on an H200 properties of 10 and 33
//! species took 1.5 to 2.1 times as long with tables in constant memory, also where its cache held them.

#[cfg(test)]
mod tests;

use abide_core::plan::PlacedTable;
use abide_core::plan::tables::{ALIGNMENT, shared_bytes};
use abide_core::{DType, DeviceSpec, Error, Options, Placement, Problem, Result, Stage};

/// Blocks of a multiprocessor for which shared memory is divided: as many as registers leave where loops carry many values.
const BLOCKS: usize = 2;

/// Returns whether blocks of a device share tables: where its compiler leaves their places to the plan.
pub(super) fn are_shared(device: &DeviceSpec) -> bool {
    device.constant_bytes.is_some()
}

/// A table of a stage that its formula reads.
struct Read {
    stage: usize,
    table: usize,
    entries: usize,
    bytes: usize,
    /// How often a point reads it.
    times: usize,
}

/// Places the tables of a problem whose loops are kept: for each stage those of its formula, by their numbers. `tiles` has
/// the bytes of shared memory that each stage's tile takes.
pub(super) fn place(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    tiles: &[usize],
) -> Result<Vec<Vec<PlacedTable>>> {
    let mut all = read(problem);
    let entry_bytes = problem.dtype.bytes();
    let of_stage = |(number, stage): (usize, &Stage)| {
        let mut tables = vec![0; stage.looped.as_ref().map_or(0, |looped| looped.tables.len())];
        all.iter().filter(|read| read.stage == number).for_each(|read| tables[read.table] = read.entries);
        let place = Placement::Memory;
        tables.into_iter().map(|entries| PlacedTable { place, entries, entry_bytes }).collect()
    };
    let stages = problem.program.stages();
    let mut placed: Vec<Vec<PlacedTable>> = stages.iter().enumerate().map(of_stage).collect();
    let Some(constant_bytes) = device.constant_bytes else {
        return match options.tables {
            Placement::Auto => Ok(placed),
            asked => {
                let reason = format!("tables {asked} is for CUDA: other kernels' compilers place tables");
                Err(Error::unsupported(device.name.clone(), reason, "leave --tables at auto"))
            }
        };
    };
    let constant_bytes = constant_bytes.saturating_sub(of_functions(problem));
    let bytes: usize = all.iter().map(|read| read.bytes).sum();
    let mut put = |read: &Read, to: Placement| placed[read.stage][read.table].place = to;
    match options.tables {
        Placement::Memory => {}
        Placement::Constant if bytes > constant_bytes => {
            let what = format!("bytes of tables in constant memory on {}", device.name);
            return Err(Error::limit(what, bytes, constant_bytes, "use --tables shared or memory"));
        }
        Placement::Constant => all.iter().for_each(|read| put(read, Placement::Constant)),
        Placement::Shared => all.iter().for_each(|read| put(read, Placement::Shared)),
        Placement::Auto => {
            let room = |tile: &usize| device.shared_bytes_for(BLOCKS).saturating_sub(*tile);
            let mut room: Vec<usize> = tiles.iter().map(room).collect();
            // What is read most for its size goes first.
            all.sort_by_key(|read| std::cmp::Reverse(read.times.saturating_mul(1024) / read.bytes.max(1)));
            for read in &all {
                let room = &mut room[read.stage];
                let taken = read.bytes.next_multiple_of(ALIGNMENT);
                if taken <= *room {
                    *room -= taken;
                    put(read, Placement::Shared);
                }
            }
        }
    }
    for ((tables, tile), stage) in placed.iter().zip(tiles).zip(stages) {
        let bytes = shared_bytes(tables);
        if bytes + tile > device.shared_bytes_per_block {
            let beside = if *tile > 0 { format!(", beside {tile} of a tile") } else { String::new() };
            let what =
                format!("bytes of shared memory for tables of {} on {}{beside}", stage.name, device.name);
            let most = device.shared_bytes_per_block - tile;
            return Err(Error::limit(what, bytes, most, "use --tables memory or auto"));
        }
    }
    Ok(placed)
}

/// Returns the bytes of constant memory that are left to the coefficients of a problem's elementary functions.
fn of_functions(problem: &Problem) -> usize {
    let mut nodes = problem.program.stages().iter().flat_map(|stage| &stage.dag.nodes);
    match problem.dtype {
        DType::F64 if nodes.any(|node| node.function().is_some()) => 8 << 10,
        _ => 0,
    }
}

/// Returns the tables that formulas read.
fn read(problem: &Problem) -> Vec<Read> {
    let of_stage = |(number, stage): (usize, &Stage)| -> Vec<Read> {
        let Some(looped) = &stage.looped else { return Vec::new() };
        let each = looped.table_reads().into_iter().zip(&looped.tables).enumerate();
        each.filter(|(_, (times, _))| *times > 0)
            .map(|(table, (times, entries))| {
                let entries = entries.bits.len();
                Read { stage: number, table, entries, bytes: entries * problem.dtype.bytes(), times }
            })
            .collect()
    };
    problem.program.stages().iter().enumerate().flat_map(of_stage).collect()
}
