//! A matrix's sparsity pattern as a picture.

use abide::sparse::Csr;
use egui::{Color32, ColorImage};

use crate::field::look::ColourMap;

/// The most pixels per side.
const SIDE: usize = 512;

/// The number of entries in each part of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Rows and columns.
    pub extents: [usize; 2],
    /// Stored entries.
    pub entries: usize,
    /// Rows and columns of the picture.
    pub size: [usize; 2],
    /// The entries in each pixel, rows from the top.
    pub counts: Vec<u32>,
}

impl Pattern {
    /// Counts the entries of a matrix.
    pub fn of(matrix: &Csr) -> Pattern {
        let extents = [matrix.rows(), matrix.columns()];
        let size = extents.map(|n| n.clamp(1, SIDE));
        let mut counts = vec![0u32; size[0] * size[1]];
        for row in 0..extents[0] {
            let line = row * size[0] / extents[0] * size[1];
            for &column in &matrix.indices()[matrix.range(row)] {
                let count = &mut counts[line + column as usize * size[1] / extents[1]];
                *count = count.saturating_add(1);
            }
        }
        Pattern { extents, entries: matrix.nnz(), size, counts }
    }

    /// Returns the picture: empty parts as the background, other parts brighter the more entries they hold.
    pub fn picture(&self, empty: Color32) -> ColorImage {
        let most = self.counts.iter().copied().max().unwrap_or(1).max(1);
        let colour = |&count: &u32| {
            if count == 0 {
                return empty;
            }
            let place = 0.3 + 0.7 * f64::from(count).ln_1p() / f64::from(most).ln_1p();
            let [r, g, b] = ColourMap::Viridis.at(place);
            Color32::from_rgb(r, g, b)
        };
        ColorImage::new([self.size[1], self.size[0]], self.counts.iter().map(colour).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::DType;
    use abide::solve::named;

    #[test]
    fn every_entry_is_counted_where_it_is() {
        let matrix = named::matrix("laplacian2d:31x37", DType::F64).unwrap();
        let pattern = Pattern::of(&matrix);
        assert_eq!(pattern.counts.iter().map(|&c| c as usize).sum::<usize>(), matrix.nnz());
        // A banded matrix has no entries far from its diagonal.
        assert_eq!(pattern.counts[pattern.size[1] - 1], 0);
        let small = named::matrix("laplacian2d:3x3", DType::F64).unwrap();
        let pattern = Pattern::of(&small);
        assert_eq!(pattern.size, [9, 9]);
        for row in 0..9 {
            for column in 0..9 {
                let there = small.row(row).any(|(c, _)| c == column);
                assert_eq!(pattern.counts[row * 9 + column] > 0, there);
            }
        }
    }
}
