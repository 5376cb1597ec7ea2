//! Coarser grids beside the domain's own: how indices go from one to another, and which grids a domain has.

use std::ops::Range;
use std::sync::Arc;

use super::{Problem, Program};

/// The way from one grid to another: how many levels coarser that one is.
///
/// A formula that computes values on one grid taps a field of a coarser one from the cell that holds its own, and a field of a finer one
/// from the first cell that its own holds. The offset counts whole steps of the field's grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels(pub i8);

impl Levels {
    /// Returns whether both are one grid.
    pub fn is_same(self) -> bool {
        self.0 == 0
    }

    /// Returns the index on the other grid from which offsets count.
    pub fn index(self, index: isize) -> isize {
        let by = self.0.unsigned_abs();
        if self.0 > 0 { index >> by } else { index << by }
    }

    /// Returns the indices on this grid that are tapped at indices of a range of the other one, at an offset.
    pub fn inside(self, range: &Range<isize>, offset: isize) -> Range<isize> {
        let (start, end, by) = (range.start - offset, range.end - offset, self.0.unsigned_abs());
        match self.0 > 0 {
            true => start << by..end << by,
            // The first whose place does not lie before the range, and the first whose lies behind it.
            false => -(-start >> by)..-(-end >> by),
        }
    }

    /// Returns the indices of the other grid that are tapped at an offset from indices of this one.
    pub fn tapped(self, range: &Range<isize>, offset: isize) -> Range<isize> {
        match range.is_empty() {
            true => 0..0,
            false => self.index(range.start) + offset..self.index(range.end - 1) + offset + 1,
        }
    }
}

impl Problem {
    /// Leaves out the stages of grids that are coarser than one of a single cell: what stands there keeps its start. No phase of a step
    /// is left without stages.
    pub(super) fn leave_out_levels(&mut self) {
        let program = &*self.program;
        let most = self.shape.padded().into_iter().max().unwrap_or(1);
        // The first grid of one cell.
        let last = most.next_power_of_two().trailing_zeros();
        let is_left = |number: &usize| u32::from(program.grid_of(&program.stages[*number]).level()) <= last;
        let kept: Vec<Vec<usize>> = (program.steps.iter())
            .map(|step| {
                let own: Vec<usize> = step.clone().filter(is_left).collect();
                if own.is_empty() { step.clone().collect() } else { own }
            })
            .collect();
        if kept.iter().map(Vec::len).sum::<usize>() == program.stages.len() {
            return;
        }
        let mut first = 0;
        let steps = kept.iter().map(|own| {
            let step = first..first + own.len();
            first = step.end;
            step
        });
        let own = Program {
            steps: steps.collect(),
            stages: kept.iter().flatten().map(|&number| program.stages[number].clone()).collect(),
            declared: Some(program.declared.clone().unwrap_or_else(|| self.program.clone())),
            ..program.clone()
        };
        self.program = Arc::new(own);
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Centring;

    #[test]
    fn indices_go_to_other_grids_and_back() {
        let fine = Centring::CELL;
        for level in 1..4 {
            let coarse = fine.on_level(level);
            let (up, down) = (fine.to(coarse), coarse.to(fine));
            for (offset, end) in (-3..4).flat_map(|offset| [(offset, 5), (offset, 8)]) {
                for way in [up, down] {
                    let inside = way.inside(&(0..end), offset);
                    for index in -40..40 {
                        let at = way.index(index) + offset;
                        assert_eq!(
                            inside.contains(&index),
                            (0..end).contains(&at),
                            "{way:?} {offset} {index}"
                        );
                    }
                    let tapped = way.tapped(&(2..7), offset);
                    let each = (2..7).map(|index| way.index(index) + offset);
                    assert_eq!((Some(tapped.start), Some(tapped.end - 1)), (each.clone().min(), each.max()));
                }
            }
        }
    }
}
