//! Compressed sparse rows.

use std::ops::Range;

use super::lengths::RowLengths;
use super::rows::{check_extents, copied, filled, reserved};
use crate::error::{Error, Result};
use crate::real::{Array, DType, Real};
use crate::with_array;

/// The index among the entries at which each row begins, and the end of the last row: one number more than
/// there are rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offsets {
    /// Numbers of 32 bits: fewer than 2³² entries.
    U32(Vec<u32>),
    /// Numbers of 64 bits.
    U64(Vec<u64>),
}

impl Offsets {
    /// Makes offsets in 32 bits if the last of them fits, else in 64.
    pub fn narrowest(offsets: Vec<u64>) -> Result<Self> {
        if offsets.last().is_some_and(|&last| last > u64::from(u32::MAX)) {
            return Ok(Offsets::U64(offsets));
        }
        let mut narrow = reserved(offsets.len())?;
        narrow.extend(offsets.iter().map(|&offset| offset as u32));
        Ok(Offsets::U32(narrow))
    }

    /// Returns the number of offsets.
    pub fn len(&self) -> usize {
        match self {
            Offsets::U32(offsets) => offsets.len(),
            Offsets::U64(offsets) => offsets.len(),
        }
    }

    /// Returns whether there are no offsets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes per offset.
    pub fn width(&self) -> usize {
        match self {
            Offsets::U32(_) => 4,
            Offsets::U64(_) => 8,
        }
    }

    /// Returns the offset at `index`; `None` if there is none.
    #[inline]
    pub fn get(&self, index: usize) -> Option<usize> {
        match self {
            Offsets::U32(offsets) => offsets.get(index).map(|&offset| offset as usize),
            Offsets::U64(offsets) => offsets.get(index).map(|&offset| offset as usize),
        }
    }
}

/// A sparse matrix in compressed rows; the entries of a row are stored by ascending column, each column once.
///
/// Entries that are zero are kept as they were given.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    columns: usize,
    offsets: Offsets,
    indices: Vec<u32>,
    values: Array,
}

impl Csr {
    /// Makes a matrix from its three arrays.
    ///
    /// Fails unless the offsets start at 0, never fall and end at the number of entries, there are as many
    /// values as column indices, and the columns of each row ascend within `columns`.
    pub fn new(columns: usize, offsets: Offsets, indices: Vec<u32>, values: Array) -> Result<Self> {
        let wrong = |reason: String, change: &str| Err(Error::invalid("sparse matrix", reason, change));
        check_extents(offsets.len().saturating_sub(1), columns)?;
        if offsets.get(0) != Some(0) {
            return wrong(
                "its row offsets do not start with 0".into(),
                "give one offset a row and one for the end",
            );
        }
        if indices.len() != values.len() {
            return wrong(
                format!("it has {} column indices and {} values", indices.len(), values.len()),
                "give one of each for every entry",
            );
        }
        let rows = offsets.len() - 1;
        if offsets.get(rows) != Some(indices.len()) {
            return wrong(
                format!("its last row offset is {:?}, its entries {}", offsets.get(rows), indices.len()),
                "end the offsets with the number of entries",
            );
        }
        let matrix = Csr { columns, offsets, indices, values };
        for row in 0..rows {
            let range = matrix.range(row);
            let Some(indices) = matrix.indices.get(range.clone()).filter(|_| range.start <= range.end) else {
                return wrong(
                    format!("the offsets of row {row} are {range:?}"),
                    "give offsets that never fall",
                );
            };
            if let Some(pair) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
                return wrong(
                    format!("column {} follows column {} in row {row}", pair[1], pair[0]),
                    "sort each row by column, each column once, or assemble from triplets",
                );
            }
            if let Some(&last) = indices.last().filter(|&&last| last as usize >= columns) {
                return Err(Error::limit(
                    format!("column of row {row}"),
                    last,
                    format!("below {columns}"),
                    "give the matrix more columns",
                ));
            }
        }
        Ok(matrix)
    }

    /// Makes a matrix as [`Csr::new`] does, from arrays that are known to be right.
    pub(super) fn sorted(columns: usize, offsets: Offsets, indices: Vec<u32>, values: Array) -> Self {
        Csr { columns, offsets, indices, values }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of entries stored.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Returns the index of the entry at which each row begins.
    pub fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// Returns the columns of all entries, row by row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Returns the values of all entries, row by row.
    pub fn values(&self) -> &Array {
        &self.values
    }

    /// Returns the bytes of the three arrays.
    pub fn bytes(&self) -> usize {
        self.offsets.len() * self.offsets.width() + self.nnz() * (size_of::<u32>() + self.dtype().bytes())
    }

    /// Returns the indices of a row's entries; an empty range if there is no such row.
    #[inline]
    pub fn range(&self, row: usize) -> Range<usize> {
        match (self.offsets.get(row), self.offsets.get(row.saturating_add(1))) {
            (Some(start), Some(end)) => start..end,
            _ => 0..0,
        }
    }

    /// Returns the columns and values, exact in f64, of a row; none if there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.range(row).map(|at| (self.indices[at] as usize, with_array!(&self.values, v => v[at].to_f64())))
    }

    /// Returns the value at a row and column, exact in f64; 0 if none is stored.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.place(row, column).and_then(|at| self.values.get(at)).unwrap_or(0.0)
    }

    /// Returns the index of the entry at a row and column; `None` if none is stored.
    fn place(&self, row: usize, column: usize) -> Option<usize> {
        let range = self.range(row);
        let column = u32::try_from(column).ok()?;
        self.indices[range.clone()].binary_search(&column).ok().map(|at| range.start + at)
    }

    /// Returns the main diagonal, as long as the shorter extent; 0 where none is stored.
    pub fn diagonal(&self) -> Result<Array> {
        Array::try_from_fn(self.dtype(), self.rows().min(self.columns), |i| self.get(i, i))
    }

    /// Returns the same matrix with values rounded to `dtype`. Fails if the machine has no memory for it.
    pub fn cast(&self, dtype: DType) -> Result<Csr> {
        let offsets = match &self.offsets {
            Offsets::U32(offsets) => Offsets::U32(copied(offsets)?),
            Offsets::U64(offsets) => Offsets::U64(copied(offsets)?),
        };
        Ok(Csr {
            columns: self.columns,
            offsets,
            indices: copied(&self.indices)?,
            values: self.values.cast(dtype)?,
        })
    }

    /// Returns the matrix with every sign changed. Fails if the machine has no memory for it.
    pub fn negated(&self) -> Result<Csr> {
        let mut negated = self.cast(self.dtype())?;
        with_array!(&mut negated.values, v => v.iter_mut().for_each(|value| *value = -*value));
        Ok(negated)
    }

    /// Returns the same matrix with row offsets of 64 bits, whether it needs them or not.
    pub fn with_wide_offsets(&self) -> Csr {
        let wide =
            (0..self.offsets.len()).filter_map(|row| self.offsets.get(row)).map(|offset| offset as u64);
        let (offsets, indices) = (Offsets::U64(wide.collect()), self.indices.clone());
        Csr { columns: self.columns, offsets, indices, values: self.values.clone() }
    }

    /// Checks whether the matrix is square and each entry equals the one across the diagonal, which is stored
    /// too.
    pub fn is_symmetric(&self) -> bool {
        with_array!(&self.values, v => self.is_mirrored(|a, b| v[a] == v[b]))
    }

    /// Returns the row and column of an entry that differs from the one across the diagonal by more than rounding;
    /// `None` for a matrix that is symmetric within its type's precision. The matrix must be square. Fails if the
    /// machine has no memory for one number per row.
    ///
    /// Rounding is half of the type's digits relative to the larger of the two entries, or to the geometric
    /// mean of the two rows' diagonal entries, whichever allows more: sums that cancel leave pairs such as 0
    /// and 7e-18. Where a diagonal entry is 0 the row's largest entry stands for it. An entry that is not
    /// stored is 0. One pass suffices: rows are visited in order, so the entries above the diagonal of each
    /// row are met in order too.
    pub fn asymmetry(&self) -> Result<Option<(usize, usize)>> {
        with_array!(&self.values, v => self.first_asymmetry(v))
    }

    fn first_asymmetry<T: Real>(&self, values: &[T]) -> Result<Option<(usize, usize)>> {
        let tolerance = if T::DTYPE == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }.sqrt();
        let differs = |row: usize, column: usize, value: f64, mirror: f64| {
            let (difference, larger) = ((value - mirror).abs(), value.abs().max(mirror.abs()));
            // The rows' sizes are looked up for entries that differ, and those are few.
            difference > tolerance * larger
                && difference > tolerance * self.size(row).sqrt() * self.size(column).sqrt()
        };
        // For each row, the next entry above the diagonal that no row below has met yet.
        let mut next: Vec<usize> = reserved(self.rows())?;
        next.extend((0..self.rows()).map(|row| {
            let range = self.range(row);
            range.start + self.indices[range].partition_point(|&column| column as usize <= row)
        }));
        for row in 0..self.rows() {
            for at in self.range(row) {
                let (column, value) = (self.indices[at] as usize, values[at].to_f64());
                if column >= row {
                    break;
                }
                let end = self.range(column).end;
                let next = &mut next[column];
                // Entries above the diagonal before this row have no image below it.
                while *next < end && (self.indices[*next] as usize) < row {
                    let above = self.indices[*next] as usize;
                    if differs(column, above, values[*next].to_f64(), 0.0) {
                        return Ok(Some((column, above)));
                    }
                    *next += 1;
                }
                let mut mirror = 0.0;
                if *next < end && self.indices[*next] as usize == row {
                    mirror = values[*next].to_f64();
                    *next += 1;
                }
                if differs(row, column, value, mirror) {
                    return Ok(Some((row, column)));
                }
            }
        }
        Ok((0..self.rows()).find_map(|row| {
            let rest = next[row]..self.range(row).end;
            rest.into_iter()
                .map(|at| (at, self.indices[at] as usize))
                .find(|&(at, column)| differs(row, column, values[at].to_f64(), 0.0))
                .map(|(_, column)| (row, column))
        }))
    }

    /// Returns the magnitude of a row's diagonal entry, or of its largest entry where that is 0.
    fn size(&self, row: usize) -> f64 {
        match self.get(row, row).abs() {
            0.0 => self.row(row).fold(0.0, |most, (_, value)| value.abs().max(most)),
            diagonal => diagonal,
        }
    }

    /// Checks whether [`Csr::is_symmetric`] holds and the signs of zeros are equal too.
    pub fn is_symmetric_to_the_bit(&self) -> bool {
        with_array!(&self.values, v => self.is_mirrored(|a, b| v[a].to_bits64() == v[b].to_bits64()))
    }

    /// Checks whether each entry has a mirror image, and `same` holds for the two indices.
    fn is_mirrored(&self, same: impl Fn(usize, usize) -> bool) -> bool {
        if self.rows() != self.columns {
            return false;
        }
        // If every entry below the diagonal has its image above it, and as many entries are above, none is
        // left over.
        let mut above = 0;
        let mut below = 0;
        for row in 0..self.rows() {
            for at in self.range(row) {
                let column = self.indices[at] as usize;
                above += usize::from(column > row);
                if column < row {
                    below += 1;
                    if !self.place(column, row).is_some_and(|mirror| same(at, mirror)) {
                        return false;
                    }
                }
            }
        }
        above == below
    }

    /// Returns the transposed matrix.
    pub fn transpose(&self) -> Result<Csr> {
        with_array!(&self.values, v => self.transpose_of(v))
    }

    fn transpose_of<T: Real>(&self, old: &[T]) -> Result<Csr> {
        let mut offsets: Vec<u64> = filled(0, self.columns + 1)?;
        for &column in &self.indices {
            offsets[column as usize + 1] += 1;
        }
        for column in 0..self.columns {
            offsets[column + 1] += offsets[column];
        }
        let mut next = copied(&offsets)?;
        let mut indices: Vec<u32> = filled(0, self.nnz())?;
        let mut values: Vec<T> = filled(T::ZERO, self.nnz())?;
        for row in 0..self.rows() {
            for at in self.range(row) {
                let place = &mut next[self.indices[at] as usize];
                indices[*place as usize] = row as u32;
                values[*place as usize] = old[at];
                *place += 1;
            }
        }
        Ok(Csr::sorted(self.rows(), Offsets::narrowest(offsets)?, indices, T::into_array(values)))
    }

    /// Returns the product with a vector, in the order that every backend keeps: rows from the first on,
    /// columns ascending. The first product is a plain multiplication, every later entry one fused
    /// multiply-add onto the sum. A row without entries gives 0.
    ///
    /// Fails unless the vector has the matrix's type and one value per column.
    pub fn matvec(&self, vector: &Array) -> Result<Array> {
        if vector.dtype() != self.dtype() {
            return Err(Error::invalid(
                "product of matrix and vector",
                format!("the matrix is {}, the vector {}", self.dtype(), vector.dtype()),
                "cast one of them",
            ));
        }
        if vector.len() != self.columns {
            return Err(Error::limit(
                "values of a vector to be multiplied",
                vector.len(),
                self.columns,
                "give one for each column of the matrix",
            ));
        }
        let mut product = Array::zeros(self.dtype(), self.rows())?;
        match (vector, &mut product) {
            (Array::F32(x), Array::F32(y)) => self.multiply_rows(0, x, y),
            (Array::F64(x), Array::F64(y)) => self.multiply_rows(0, x, y),
            _ => {}
        }
        Ok(product)
    }

    /// Returns the histogram of the rows' lengths.
    pub fn row_lengths(&self) -> RowLengths {
        RowLengths::of((0..self.rows()).map(|row| self.range(row).len()))
    }
}
