//! Where the constant tables that loops read lie on a device.

use serde::Serialize;

use super::options::Placement;

/// Bytes to which what tables take of shared memory is rounded, so that a tile behind them is aligned.
pub const ALIGNMENT: usize = 16;

/// A constant table of a stage's formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlacedTable {
    /// Where it lies.
    pub place: Placement,
    /// Its entries; 0 if no loop reads it.
    pub entries: usize,
    /// The bytes of an entry.
    pub entry_bytes: usize,
}

impl PlacedTable {
    /// Returns the bytes of the table.
    pub fn bytes(&self) -> usize {
        self.entries * self.entry_bytes
    }
}

/// Returns the bytes of shared memory that tables of a stage take before its tile.
pub fn shared_bytes(tables: &[PlacedTable]) -> usize {
    let shared = tables.iter().filter(|table| table.place == Placement::Shared);
    shared.map(PlacedTable::bytes).sum::<usize>().next_multiple_of(ALIGNMENT)
}

/// Returns how many tables lie where, and their bytes, in words; `None` of no tables.
pub fn words(placed: &[Vec<PlacedTable>]) -> Option<String> {
    let words = |place: Placement, name: &str| {
        let here = placed.iter().flatten().filter(|table| table.place == place && table.entries > 0);
        let (count, bytes) = here.fold((0, 0), |(count, sum), table| (count + 1, sum + table.bytes()));
        (count > 0).then(|| format!("{count} of {bytes} bytes in {name} memory"))
    };
    let all = [
        words(Placement::Constant, "constant"),
        words(Placement::Shared, "shared"),
        words(Placement::Memory, "device"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}
