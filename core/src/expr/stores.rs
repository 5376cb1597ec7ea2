//! Results that loops give: each turn stores its own component, as out_ij = x_i y_j of all pairs.
//!
//! A store says which output it gives by the turns of up to two loops, so that each output is stored once; what a turn stores
//! no other reads.

use super::loops::{LoopId, Place, Turns};
use super::{Expr, Graph, Id, Index};

/// A result that is stored in each turn of a loop, or of a loop within a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// The number of the first output that it gives.
    pub first: usize,
    /// The outputs of a row.
    pub columns: usize,
    /// The row and the column of the output of a turn.
    pub places: [Place; 2],
    /// The term that is stored.
    pub value: Id,
}

/// A store as it is built.
#[derive(Debug, Clone, Copy)]
pub(super) struct BuiltStore {
    /// The loop in whose turns it is.
    pub home: LoopId,
    /// The number of the results that it is one of.
    pub group: usize,
    pub columns: usize,
    pub places: [Place; 2],
    pub value: Id,
}

impl Graph {
    /// Makes a result of each turn of a loop of `columns` turns within each of one of `rows`, row by row; returns how many
    /// they are. Results of loops follow those of outputs, in the order in which they are made.
    pub fn each_of<'g>(
        &'g self,
        rows: usize,
        columns: usize,
        value: impl FnOnce(Index<'g>, Index<'g>) -> Expr<'g>,
    ) -> usize {
        let count = rows.saturating_mul(columns);
        self.nodes.borrow_mut().stored.push(count);
        match rows {
            // A single row needs no loop around it.
            1 => self.row(self.index(0), columns, |column| value(self.index(0), column)),
            _ => self.within(0..rows, |row| self.row(row, columns, |column| value(row, column))),
        }
        count
    }

    /// Makes the last of the results so far for each column of a row.
    fn row<'g>(&'g self, row: Index<'g>, columns: usize, value: impl FnOnce(Index<'g>) -> Expr<'g>) {
        self.within(0..columns, |column| {
            let value = self.inner(value(column));
            let places = [row.place(), column.place()];
            let nodes = &mut *self.nodes.borrow_mut();
            let group = nodes.stored.len() - 1;
            nodes.stores.extend(nodes.open.map(|home| BuiltStore { home, group, columns, places, value }));
        });
    }

    /// Builds the body of a loop that carries nothing.
    fn within<'g>(&'g self, turns: impl Into<Turns>, body: impl FnOnce(Index<'g>)) {
        self.repeat(turns, [], |index, []| {
            body(index);
            []
        });
    }
}
