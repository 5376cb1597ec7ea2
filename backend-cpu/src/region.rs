//! The computed cells of a domain as units of work: rows, or segments of rows where there are few.

use std::ops::Range;

use abide_core::domain::{Boundary, Source};
use abide_core::{Boundaries, Problem, Shape};

/// Bands per thread, so that a thread that falls behind leaves its last bands to others; and the fewest cells
/// of a band. Where bands are short they are few, because fewer cells are not worth waking a thread for;
/// where bands stay long they are many.
const BANDS: [(usize, usize); 2] = [(4, 8192), (16, 65536)];

/// The computed cells of a domain, in units numbered in the order of memory.
#[derive(Debug, Clone)]
pub struct Region {
    shape: Shape,
    boundaries: Boundaries,
    computed: [Range<usize>; 3],
    /// Cells of a unit, except the last of a row.
    segment: usize,
    /// Units of a row.
    segments: usize,
}

/// One unit: a row's place and the cells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The row's index along the two slower axes.
    pub row: [usize; 2],
    /// The cells along the row.
    pub cells: Range<usize>,
}

/// The row of old values that lies beside a computed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// In the array, starting at this index.
    At(usize),
    /// Beyond the domain: a row of the constant of this axis and side.
    Constant([usize; 2]),
}

impl Region {
    /// Cuts the region of a problem for `threads` threads into segments that are multiples of `chunk`.
    pub fn new(problem: &Problem, threads: usize, chunk: usize) -> Region {
        let (extents, radius) = (problem.shape.padded(), problem.program.radius());
        let computed = [0, 1, 2].map(|axis| problem.boundaries.computed(axis, extents[axis], radius[axis]));
        let [rows, width] = [computed[0].len() * computed[1].len(), computed[2].len()];
        let wanted = (threads * BANDS[1].0).div_ceil(rows.max(1));
        let segment = width.div_ceil(wanted).next_multiple_of(chunk);
        Region {
            shape: problem.shape,
            boundaries: problem.boundaries,
            computed,
            segment,
            segments: width.div_ceil(segment.max(1)),
        }
    }

    /// Returns the number of units.
    pub fn units(&self) -> usize {
        self.computed[0].len() * self.computed[1].len() * self.segments
    }

    /// Groups the units into bands of about the same length for `threads` threads; none where nothing is
    /// computed.
    pub fn bands(&self, threads: usize) -> Vec<Range<usize>> {
        let units = self.units();
        let cells: usize = self.computed.iter().map(Range::len).product();
        let most = BANDS.map(|(bands, fewest)| (cells / fewest).min(threads * bands));
        let count = if threads > 1 { most[0].max(most[1]).max(1).min(units) } else { 1.min(units) };
        (0..count).map(|i| units * i / count..units * (i + 1) / count).collect()
    }

    /// Returns the unit of a number.
    pub fn unit(&self, number: usize) -> Unit {
        let (row, segment) = (number / self.segments, number % self.segments);
        let rows = self.computed[1].len();
        let start = self.computed[2].start + segment * self.segment;
        let end = (start + self.segment).min(self.computed[2].end);
        Unit {
            row: [self.computed[0].start + row / rows, self.computed[1].start + row % rows],
            cells: start..end,
        }
    }

    /// Counts the units, from the one at a row on, that are rows beside each other along the second axis with
    /// all lines that taps reach inside the domain. `reach` is the least and the greatest offset along each
    /// axis.
    pub fn beside(&self, row: [usize; 2], reach: &[[isize; 2]; 3]) -> usize {
        let inside = |axis: usize| {
            let ([low, high], at) = (reach[axis], row[axis] as isize);
            if at + low < 0 { 0 } else { (self.extent(axis) as isize - high - at).max(0) as usize }
        };
        if self.segments != 1 || inside(0) == 0 { 0 } else { inside(1).min(self.computed[1].end - row[1]) }
    }

    /// Returns the index, in an array of the whole domain, of the first cell of a unit.
    pub fn index(&self, unit: &Unit) -> usize {
        self.shape.index([unit.row[0], unit.row[1], unit.cells.start])
    }

    /// Returns the cells of a row.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.shape.padded()[2]
    }

    /// Returns the constant beyond a side of an axis, if that is its boundary.
    pub fn constant(&self, axis: usize, side: usize) -> Option<f64> {
        self.boundaries.0[axis][side].held()
    }

    /// Returns whether taps along the row can reach beyond it.
    pub fn reaches_out(&self) -> bool {
        self.boundaries.0[2] != [Boundary::Fixed; 2]
    }

    /// Finds a row that may lie beyond the domain, or else the axis and side whose constant it holds. The
    /// slower axis is asked first.
    #[inline(always)]
    pub fn place(&self, row: [isize; 2]) -> Result<[usize; 2], [usize; 2]> {
        let extents = self.shape.padded();
        let mut at = [0; 2];
        for axis in 0..2 {
            match self.boundaries.source(axis, row[axis], extents[axis]) {
                Source::Cell(index) => at[axis] = index,
                Source::Value(_) => return Err([axis, usize::from(row[axis] >= 0)]),
            }
        }
        Ok(at)
    }

    /// Finds a row that may lie beyond the domain, as a line of the array.
    pub fn line(&self, row: [isize; 2]) -> Line {
        match self.place(row) {
            Ok(place) => Line::At(self.row_index(place)),
            Err(side) => Line::Constant(side),
        }
    }

    /// Returns the index, in an array of the whole domain, of the first cell of a row.
    #[inline(always)]
    pub fn row_index(&self, [z, y]: [usize; 2]) -> usize {
        self.shape.index([z, y, 0])
    }

    /// Returns the extent of an axis.
    #[inline(always)]
    pub fn extent(&self, axis: usize) -> usize {
        self.shape.padded()[axis]
    }

    /// Returns the cells along an axis that are computed.
    #[inline(always)]
    pub fn computed(&self, axis: usize) -> Range<usize> {
        self.computed[axis].clone()
    }

    /// Returns whether the domain goes on at its other side.
    #[inline(always)]
    pub fn is_periodic(&self, axis: usize) -> bool {
        self.boundaries.0[axis][0] == Boundary::Periodic
    }

    /// Finds a cell of a row that may lie beyond the row's ends.
    pub fn along_row(&self, x: isize) -> Source {
        self.boundaries.source(2, x, self.width())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::{DType, catalogue};

    use super::*;

    #[test]
    fn units_cover_the_computed_cells_once_in_the_order_of_memory() {
        for (extents, threads) in
            [(vec![1], 2), (vec![100_003], 3), (vec![3, 5000], 8), (vec![700, 30], 4), (vec![5, 6, 7], 2)]
        {
            for boundary in [Boundary::Fixed, Boundary::Mirror] {
                let program = catalogue::find("heat").unwrap().program(extents.len()).unwrap();
                let mut problem =
                    Problem::new(Arc::new(program), Shape::new(&extents).unwrap(), DType::F64).unwrap();
                problem.boundaries = Boundaries::all(boundary);
                let region = Region::new(&problem, threads, 512);
                let bands = region.bands(threads);
                let units: Vec<usize> = bands.iter().cloned().flatten().collect();
                assert_eq!(units, (0..region.units()).collect::<Vec<_>>());
                let seen: Vec<usize> = units
                    .iter()
                    .map(|&u| region.unit(u))
                    .flat_map(|u| (0..u.cells.len()).map(move |i| (u.clone(), i)))
                    .map(|(u, i)| region.index(&u) + i)
                    .collect();
                let width = usize::from(boundary == Boundary::Fixed);
                let inside = |i: &usize| {
                    let cell = problem.shape.cell(*i);
                    (3 - extents.len()..3)
                        .all(|a| cell[a] >= width && cell[a] + width < problem.shape.padded()[a])
                };
                assert_eq!(seen, (0..problem.shape.cells()).filter(inside).collect::<Vec<_>>());
            }
        }
    }
}
