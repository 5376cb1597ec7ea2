//! A layout in words.

use super::{Division, Home, Krylov, RecomputedHalo, Share, Space, entry_bytes};
use crate::real::DType;
use crate::solver::{Place, Resident};

/// Returns the bytes that stay in each place, summed over all blocks.
pub fn residents(krylov: &Krylov, dtype: DType) -> Vec<Resident> {
    let rows: usize = krylov.shares.iter().map(|share| share.rows).sum();
    let streamed: usize = krylov.shares.iter().map(Share::streamed).sum();
    let cached: usize = krylov.shares.iter().map(|share| share.cached_entries).sum();
    let entry = entry_bytes(dtype, krylov.column_bytes);
    let in_home = |wanted: Home| {
        krylov.vectors.iter().filter(|(_, home)| *home == wanted).count() * rows * dtype.bytes()
    };
    let all = [
        ("matrix", Place::Shared, cached * entry),
        ("matrix", Place::Cache, if krylov.evict_first { 0 } else { streamed * entry }),
        ("matrix", Place::Memory, if krylov.evict_first { streamed * entry } else { 0 }),
        ("vectors", Place::Registers, in_home(Home::Registers)),
        ("vectors", Place::Shared, in_home(Home::Shared)),
        ("vectors", Place::Memory, in_home(Home::Device) + krylov.basis() * rows * dtype.bytes()),
    ];
    let resident = |(what, place, bytes): (&'static str, Place, usize)| Resident { what, place, bytes };
    all.into_iter().filter(|(_, _, bytes)| *bytes > 0).map(resident).collect()
}

impl Krylov {
    /// Returns the layout in words, within a line.
    pub fn describe(&self) -> String {
        let space = match self.space {
            Space::Block => "one block".to_owned(),
            Space::Cluster => format!("a cluster of {} blocks", self.blocks),
            Space::Grid if self.slabs.count > 1 => {
                format!("{} times {} blocks", self.slabs.count, self.blocks_of_a_slab())
            }
            Space::Grid => format!("{} blocks", self.blocks),
        };
        let division = match self.division {
            Division::Sliced { width: Some(width) } => format!("slices {width} wide"),
            Division::Sliced { width: None } => "slices".to_owned(),
            Division::Split { lanes } => format!("{lanes} lanes a row"),
            Division::Merged { items } => format!("merge path, {items} items per thread"),
            Division::Stencil => "a thread per cell".to_owned(),
        };
        let columns = if self.division == Division::Stencil {
            String::new()
        } else {
            format!(", columns of {} bits", 8 * self.column_bytes)
        };
        let spread = match self.spread_rows.len() {
            0 => String::new(),
            1 => ", 1 long row spread over them".to_owned(),
            rows => format!(", {rows} long rows spread over them"),
        };
        let recomputed = match self.recomputed {
            RecomputedHalo::Nothing => "",
            RecomputedHalo::Slabs => ", directions of other slabs made where they are read",
            RecomputedHalo::Blocks => ", directions of others made where they are read",
        };
        let cycle = if self.restart > 0 { format!(", cycles of {}", self.restart) } else { String::new() };
        format!(
            "{division}{columns}, {space} of {} threads{spread}{recomputed}, {} barriers per iteration{cycle}, {:.1} µs by the model",
            self.threads,
            self.barriers,
            self.seconds * 1e6
        )
    }
}
