//! The entries of a vector that a slab's rows read.

use std::ops::Range;

use crate::domain::Source;
use crate::error::Result;
use crate::memory;
use crate::solver::{GridOperator, Matrix};
use crate::sparse::Csr;

/// The entries of a vector that some rows read: ranges of the whole vector, which are kept one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// The ranges, in order, none beside the next.
    ranges: Vec<Range<usize>>,
    /// The place of each range's first entry among those that are kept.
    places: Vec<usize>,
    /// The range's first entry where there is one range: of a whole vector, and of a slab in the middle of a domain.
    /// Products ask for places in their inner loops.
    only: Option<usize>,
}

impl Reads {
    /// Returns all entries of a vector.
    pub fn whole(len: usize) -> Reads {
        Reads { ranges: std::iter::once(0..len).collect(), places: vec![0], only: Some(0) }
    }

    /// Returns no entries.
    pub fn nothing() -> Reads {
        Reads { ranges: Vec::new(), places: Vec::new(), only: None }
    }

    /// Returns the entries that some rows of a matrix read, and those with the rows' own numbers.
    pub fn of(matrix: &Matrix, rows: Range<usize>) -> Result<Reads> {
        match matrix {
            Matrix::Stored(matrix) => Reads::of_stored(matrix, rows),
            Matrix::Stencil(operator) => Ok(Reads::of_stencil(operator, rows)),
        }
    }

    /// Looks at each column of the rows.
    fn of_stored(matrix: &Csr, rows: Range<usize>) -> Result<Reads> {
        let columns = matrix.columns();
        let change = "make the system smaller, or take one device";
        let mut is_read = memory::filled(false, columns, "what a slab reads", change)?;
        is_read[rows.clone()].fill(true);
        for row in rows {
            for &column in &matrix.indices()[matrix.range(row)] {
                is_read[column as usize] = true;
            }
        }
        let mut ranges = Vec::new();
        let mut at = 0;
        while let Some(start) = is_read[at..].iter().position(|&is_read| is_read).map(|skipped| at + skipped)
        {
            let len = is_read[start..].iter().position(|&is_read| !is_read).unwrap_or(columns - start);
            ranges.push(start..start + len);
            at = start + len;
        }
        Ok(Reads::sorted(ranges))
    }

    /// Takes the planes of the rows' own cells and, along the slowest axis, as many more at each side as the stencil reaches:
    /// those that the boundary puts there.
    fn of_stencil(operator: &GridOperator, rows: Range<usize>) -> Reads {
        let (shape, boundaries) = (operator.shape(), operator.boundaries());
        let axis = 3 - shape.dimensions();
        let planes = shape.padded()[axis];
        let (plane, reach) = (shape.cells() / planes, operator.radius()[axis] as isize);
        let (first, end) = (rows.start / plane, rows.end.div_ceil(plane));
        let beside = (1..=reach).flat_map(|k| [first as isize - k, end as isize - 1 + k]);
        let read = beside.filter_map(|at| match boundaries.source(axis, at, planes) {
            Source::Cell(at) => Some(at..at + 1),
            Source::Value(_) => None,
        });
        let mut ranges: Vec<_> = read.chain(std::iter::once(first..end)).collect();
        ranges.sort_by_key(|range| range.start);
        Reads::sorted(ranges.into_iter().map(|planes| planes.start * plane..planes.end * plane))
    }

    /// Joins ranges that are sorted by their start wherever they touch.
    fn sorted(ranges: impl IntoIterator<Item = Range<usize>>) -> Reads {
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        let places = joined.iter().scan(0, |len, range| {
            let place = *len;
            *len += range.len();
            Some(place)
        });
        let only = match &joined[..] {
            [range] => Some(range.start),
            _ => None,
        };
        Reads { places: places.collect(), ranges: joined, only }
    }

    /// Returns the ranges, in order.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// Returns whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the place at which an entry is kept. It is one of those that are read.
    #[inline]
    pub fn place(&self, entry: usize) -> usize {
        match self.only {
            Some(start) => entry - start,
            None => {
                let range = self.ranges.partition_point(|range| range.end <= entry);
                self.places[range] + entry - self.ranges[range].start
            }
        }
    }

    /// Returns the entries among a range.
    pub fn within(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let cut = |own: &Range<usize>| own.start.max(range.start)..own.end.min(range.end);
        self.ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::domain::{Boundaries, Boundary, Shape};
    use crate::real::DType;
    use crate::sparse::Triplets;

    #[test]
    fn places_follow_each_other() {
        let reads = Reads::sorted([2..4, 4..5, 9..12, 10..11, 20..21]);
        assert_eq!(reads.ranges(), [2..5, 9..12, 20..21]);
        let places: Vec<usize> = [2, 3, 4, 9, 10, 11, 20].map(|entry| reads.place(entry)).to_vec();
        assert_eq!((places, reads.len()), ((0..7).collect(), 7));
        assert_eq!(reads.within(&(4..10)), [4..5, 9..10]);
    }

    /// What the rows' own taps or columns name is among what they are said to read.
    #[test]
    fn a_stencil_reads_what_its_stored_matrix_reads() {
        for (name, extents) in [("3d7pt", &[9, 4, 5][..]), ("2d9pt", &[17, 6]), ("3d13pt", &[11, 6, 7])] {
            let stencil = catalogue::linear(name).unwrap();
            for boundary in [Boundary::Constant(0.0), Boundary::Periodic, Boundary::Mirror, Boundary::Reflect]
            {
                let shape = Shape::new(extents).unwrap();
                let operator =
                    GridOperator::new(stencil.clone(), shape, Boundaries::all(boundary), DType::F64).unwrap();
                let stored = operator.assemble().unwrap();
                for rows in [0..31, 31..77, shape.cells() - 13..shape.cells()] {
                    let reads = Reads::of_stencil(&operator, rows.clone());
                    for exact in Reads::of_stored(&stored, rows).unwrap().ranges() {
                        let inside =
                            reads.ranges().iter().any(|own| own.start <= exact.start && exact.end <= own.end);
                        assert!(inside, "{name} {boundary}: {exact:?} in {reads:?}");
                    }
                }
            }
        }
        let mut arrow = Triplets::new(50, 50).unwrap();
        for row in 0..50 {
            for (row, column) in [(row, row), (row, 0), (0, row)] {
                arrow.push(row, column, 1.0).unwrap();
            }
        }
        let reads = Reads::of_stored(&arrow.into_csr().unwrap(), 10..20).unwrap();
        assert_eq!(reads.ranges(), [0..1, 10..20]);
    }
}
