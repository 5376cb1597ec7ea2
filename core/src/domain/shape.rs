//! The extents of a domain.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::real::DType;

/// The extents of a domain of one to three axes, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dimensions: usize,
    extents: [usize; 3],
}

impl Shape {
    /// Makes a shape from its extents, slowest first. Fails unless there are one to three extents, none is
    /// zero and the number of cells can be counted.
    pub fn new(extents: &[usize]) -> Result<Self> {
        let dimensions = extents.len();
        if !(1..=3).contains(&dimensions) {
            return Err(Error::limit(
                "axes of a domain",
                dimensions,
                "1 to 3",
                "give as many extents as the stencil has axes",
            ));
        }
        if extents.contains(&0) {
            return Err(Error::invalid(
                format!("size {}", join(extents)),
                "an extent is zero",
                "give each axis one cell or more",
            ));
        }
        let mut padded = [1; 3];
        padded[3 - dimensions..].copy_from_slice(extents);
        let shape = Shape { dimensions, extents: padded };
        let bytes = extents.iter().try_fold(16usize, |product, &n| product.checked_mul(n));
        match bytes {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(shape),
            _ => Err(Error::limit(
                "cells of a domain",
                join(extents),
                format!("{} bytes a field", isize::MAX),
                "choose a smaller size",
            )),
        }
    }

    /// Returns the number of axes.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the extents of the axes that the domain has, slowest first.
    pub fn extents(&self) -> &[usize] {
        &self.extents[3 - self.dimensions..]
    }

    /// Returns the extents of three axes, slowest first; axes that the domain does not have have extent 1.
    pub fn padded(&self) -> [usize; 3] {
        self.extents
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the index of a cell in an array of the whole domain.
    pub fn index(&self, at: [usize; 3]) -> usize {
        (at[0] * self.extents[1] + at[1]) * self.extents[2] + at[2]
    }

    /// Returns the cell at an index of an array of the whole domain, as its indices along three axes, slowest
    /// first.
    pub fn cell(&self, index: usize) -> [usize; 3] {
        let [_, y, x] = self.extents;
        [index / (y * x), index / x % y, index % x]
    }

    /// Returns the bytes of one field.
    pub fn bytes(&self, dtype: DType) -> usize {
        self.cells() * dtype.bytes()
    }
}

fn join(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

impl Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&join(self.extents()))
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.extents().serialize(serializer)
    }
}

impl FromStr for Shape {
    type Err = Error;

    /// Reads `512`, `512x1024` or `64x64x64`, slowest axis first.
    fn from_str(text: &str) -> Result<Self> {
        let extents: Option<Vec<usize>> =
            text.split(['x', 'X', '×']).map(|part| part.trim().parse().ok()).collect();
        match extents {
            Some(extents) => Shape::new(&extents),
            None => Err(Error::invalid(
                format!("size `{text}`"),
                "not a list of whole numbers",
                "write it like 512x1024, slowest axis first",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_parse_and_refuse() {
        assert_eq!("3x5x7".parse::<Shape>().unwrap().padded(), [3, 5, 7]);
        assert_eq!("9".parse::<Shape>().unwrap().padded(), [1, 1, 9]);
        for bad in ["", "3x", "0x4", "-1x4", "1x2x3x4", "1.5x2", "4294967296x4294967296"] {
            assert!(bad.parse::<Shape>().is_err(), "{bad}");
        }
    }

    #[test]
    fn index_and_cell_are_inverse() {
        let shape = Shape::new(&[3, 5, 7]).unwrap();
        for i in 0..shape.cells() {
            assert_eq!(shape.index(shape.cell(i)), i);
        }
    }
}
