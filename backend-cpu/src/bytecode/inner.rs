//! The steps of a formula in cells that make none of its choices, as those of a source or beside a side: almost all.

use std::ops::Range;

use abide_core::expr::{Cells, Dag, Id, choice};

use super::select::Compiler;
use super::step::TapAt;
use super::{Made, Steps};

/// Cells of a row in which parts of their own for those that make choices cost less than the choices in all.
const LONG: isize = 1024;

/// Steps for cells that make no choice along some axes, over the scalars and taps of the whole formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    /// The steps.
    pub steps: Steps,
    /// Whether their scalars differ from row to row.
    pub varies_by_row: bool,
    /// Of each axis, the indices in which such a choice is made.
    chosen: [Vec<Range<isize>>; 3],
}

impl Inner {
    /// Returns whether the cells of a row, by its place along the two slower axes, make no choice by that.
    #[inline]
    pub fn has_row(&self, row: [isize; 2]) -> bool {
        let is_chosen = |axis: usize| self.chosen[axis].iter().any(|cells| cells.contains(&row[axis]));
        !is_chosen(0) && !is_chosen(1)
    }

    /// Returns whether all cells of a row have these steps, whose formula may choose along the row.
    #[inline]
    pub fn is_whole_rows(&self) -> bool {
        self.chosen[2].is_empty()
    }

    /// Returns the cells along a row of so many that make no choice: the largest part between two choices. None where rows
    /// are too short for parts.
    pub fn cells(&self, width: isize) -> Range<isize> {
        if self.is_whole_rows() {
            return isize::MIN / 2..isize::MAX / 2;
        }
        if width < LONG {
            return 0..0;
        }
        let (mut largest, mut start) = (0..0, 0);
        for cells in self.chosen[2].iter().chain([&(width..isize::MAX)]) {
            let between = start..cells.start.min(width);
            if between.len() > largest.len() {
                largest = between;
            }
            start = start.max(cells.end);
        }
        largest
    }
}

/// Steps whose operands have no numbers yet, for an [`Inner`].
pub(super) struct MadeInner {
    made: Made,
    varies_by_row: bool,
    chosen: [Vec<Range<isize>>; 3],
}

impl MadeInner {
    /// Numbers the operands.
    pub fn inner(self, counts: [usize; 3]) -> Inner {
        let MadeInner { made, varies_by_row, chosen } = self;
        Inner { steps: made.steps(counts), varies_by_row, chosen }
    }
}

/// Returns the steps in cells that make no choice at all, and those in rows that make none by their place, where a formula makes
/// such choices. The scalars that they need are added to those of the whole formula.
pub(super) fn all(dag: &Dag, fused: bool, outer: &mut Compiler<'_>) -> Vec<MadeInner> {
    let mut chosen: [Vec<Range<isize>>; 3] = Default::default();
    for id in 0..dag.nodes.len() as Id {
        let Some((axis, cells)) = choice(&dag.nodes, id) else { continue };
        chosen[axis].push(match cells {
            Cells::At(index) => index as isize..index as isize + 1,
            Cells::First(count) => isize::MIN..count.ceil() as isize,
            Cells::Last(last, count) => (last - count).floor() as isize + 1..isize::MAX,
        });
    }
    chosen.iter_mut().for_each(|cells| cells.sort_by_key(|cells| cells.start));
    let [along_z, along_y, along_x] = [0, 1, 2].map(|axis| !chosen[axis].is_empty());
    let mut all = Vec::new();
    if along_x {
        all.extend(inner(&dag.elsewhere(), fused, outer, chosen.clone()));
    }
    if along_z || along_y {
        chosen[2].clear();
        all.extend(inner(&dag.elsewhere_along([true, true, false]), fused, outer, chosen));
    }
    all
}

/// Returns the steps of what is left of a formula; `None` where its taps are not those of the whole one.
fn inner(
    dag: &Dag,
    fused: bool,
    outer: &mut Compiler<'_>,
    chosen: [Vec<Range<isize>>; 3],
) -> Option<MadeInner> {
    let mut own = Compiler::new(dag, fused);
    let made = Made::of(dag, &mut own);
    let place = |rows: &Compiler<'_>, tap: &TapAt| {
        let row = rows.rows[tap.row];
        (row.field, rows.lines[row.line], tap.shift)
    };
    let known: Vec<_> = outer.taps.iter().map(|tap| place(outer, tap)).collect();
    let taps = own.taps.iter().map(|tap| known.iter().position(|known| *known == place(&own, tap)));
    let taps: Vec<usize> = taps.collect::<Option<_>>()?;
    let first = outer.uniform.len();
    outer.uniform.extend(own.uniform.iter().map(|node| node.map(|operand| operand + first as Id)));
    Some(MadeInner { made: made.moved(first, &taps), varies_by_row: own.varies_by_row, chosen })
}
