//! Domains and their boundaries.

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
    /// A shape from its extents, slowest first; an error unless there are one to three, none is zero and the
    /// cells can be counted.
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

    /// The number of axes.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The extents of the axes there are, slowest first.
    pub fn extents(&self) -> &[usize] {
        &self.extents[3 - self.dimensions..]
    }

    /// The extents of three axes, slowest first; the axes that are not there have extent 1.
    pub fn padded(&self) -> [usize; 3] {
        self.extents
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.extents.iter().product()
    }

    /// The index of a cell in an array of the whole domain.
    pub fn index(&self, at: [usize; 3]) -> usize {
        (at[0] * self.extents[1] + at[1]) * self.extents[2] + at[2]
    }

    /// The cell at an index of an array of the whole domain.
    pub fn cell(&self, index: usize) -> [usize; 3] {
        let [_, y, x] = self.extents;
        [index / (y * x), index / x % y, index % x]
    }

    /// Bytes of one field.
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

/// What lies beyond one side of the domain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The outermost cells, as many as the program's radius on the axis, keep their initial values.
    #[default]
    Fixed,
    /// The domain continues at its other side.
    Periodic,
    /// Ghost cells mirror the edge, `u[-1] = u[0]`: no flux.
    Mirror,
    /// Ghost cells hold this value, in every field.
    Constant(f64),
}

impl Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Boundary::Fixed => f.write_str("fixed"),
            Boundary::Periodic => f.write_str("periodic"),
            Boundary::Mirror => f.write_str("mirror"),
            Boundary::Constant(value) => write!(f, "constant={value}"),
        }
    }
}

impl FromStr for Boundary {
    type Err = Error;

    /// Reads `fixed`, `periodic`, `mirror`, `constant=C` or `constant(C)`.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "fixed" => return Ok(Boundary::Fixed),
            "periodic" => return Ok(Boundary::Periodic),
            "mirror" => return Ok(Boundary::Mirror),
            _ => {}
        }
        let value = text
            .strip_prefix("constant=")
            .or_else(|| text.strip_prefix("constant(").and_then(|rest| rest.strip_suffix(')')))
            .and_then(|value| value.parse::<f64>().ok())
            .filter(|value| value.is_finite());
        match value {
            Some(value) => Ok(Boundary::Constant(value)),
            None => Err(Error::unknown(
                "boundary",
                text,
                ["fixed", "periodic", "mirror", "constant=C (C finite)"],
            )),
        }
    }
}

/// The boundary at each axis and side, slowest axis first; `[axis][0]` is the low side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Boundaries(pub [[Boundary; 2]; 3]);

/// Where a tap's cell is found once the boundary has been asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// At this index along the axis.
    Cell(usize),
    /// Nowhere: it holds this value.
    Value(f64),
}

impl Boundaries {
    /// The same boundary everywhere.
    pub fn all(boundary: Boundary) -> Self {
        Boundaries([[boundary; 2]; 3])
    }

    /// Reads a [`BoundaryText`] whose sides that are not named keep `default`.
    pub fn parse(text: &str, default: Boundary) -> Result<Self> {
        Ok(text.parse::<BoundaryText>()?.over(default))
    }

    /// Checks the boundaries of the axes there are against the domain, the radius of the program on each axis
    /// and the type of the fields.
    pub fn check(&self, shape: &Shape, radius: [usize; 3], dtype: DType) -> Result<()> {
        for axis in 3 - shape.dimensions()..3 {
            let [low, high] = self.0[axis];
            let name = axis_name(axis);
            if (low == Boundary::Periodic) != (high == Boundary::Periodic) {
                return Err(Error::invalid(
                    format!("boundary of axis {name}"),
                    "only one side is periodic",
                    "make both sides periodic or neither",
                ));
            }
            for boundary in [low, high] {
                if let Boundary::Constant(value) = boundary
                    && !dtype.is_finite(value)
                {
                    return Err(Error::invalid(
                        format!("boundary of axis {name}"),
                        format!("the constant {value:?} is not a finite number in {dtype}"),
                        "give a finite value",
                    ));
                }
            }
            let reflects = |b: Boundary| matches!(b, Boundary::Periodic | Boundary::Mirror);
            let extent = shape.padded()[axis];
            if (reflects(low) || reflects(high)) && extent < radius[axis] {
                return Err(Error::limit(
                    format!("extent of axis {name} under a periodic or mirror boundary"),
                    extent,
                    format!("at least the radius, {}", radius[axis]),
                    "choose a larger size or another boundary",
                ));
            }
        }
        Ok(())
    }

    /// Where the value at `index` along `axis` is found, for an index at most one extent outside `0..extent`.
    ///
    /// Under `fixed` no computed cell reaches outside; the nearest cell stands there.
    pub fn source(&self, axis: usize, index: isize, extent: usize) -> Source {
        let n = extent as isize;
        let side = match index {
            i if i < 0 => 0,
            i if i >= n => 1,
            _ => return Source::Cell(index as usize),
        };
        match self.0[axis][side] {
            Boundary::Fixed => Source::Cell(index.clamp(0, n - 1) as usize),
            Boundary::Periodic => Source::Cell(index.rem_euclid(n) as usize),
            Boundary::Mirror => {
                let mirrored = if side == 0 { -1 - index } else { 2 * n - 1 - index };
                Source::Cell(mirrored.clamp(0, n - 1) as usize)
            }
            Boundary::Constant(value) => Source::Value(value),
        }
    }

    /// The indices along `axis` that are computed; the rest of `0..extent` keep their values.
    pub fn computed(&self, axis: usize, extent: usize, radius: usize) -> std::ops::Range<usize> {
        let width = |side: usize| if self.0[axis][side] == Boundary::Fixed { radius } else { 0 };
        let start = width(0).min(extent);
        start..extent.saturating_sub(width(1)).max(start)
    }

    /// In words: once where all axes of `shape` agree, else per axis and side.
    pub fn describe(&self, dimensions: usize) -> String {
        let axes = &self.0[3 - dimensions..];
        if axes.iter().flatten().all(|b| *b == axes[0][0]) {
            return axes[0][0].to_string();
        }
        let axis = |(number, [low, high]): (usize, &[Boundary; 2])| {
            let name = axis_name(3 - dimensions + number);
            if low == high { format!("{name}={low}") } else { format!("{name}-={low},{name}+={high}") }
        };
        axes.iter().enumerate().map(axis).collect::<Vec<_>>().join(",")
    }
}

/// The letter of an axis of the padded three: z, y, x from the slowest.
pub fn axis_name(axis: usize) -> &'static str {
    ["z", "y", "x"][axis]
}

/// Boundaries as somebody wrote them: one for all sides, or one for each side that is named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BoundaryText {
    /// As in `periodic`.
    All(Boundary),
    /// As in `y=periodic,x-=mirror`: by axis and side, `None` where none is named.
    Sides([[Option<Boundary>; 2]; 3]),
}

impl BoundaryText {
    /// Returns them over `default` for the sides that are not named.
    pub fn over(self, default: Boundary) -> Boundaries {
        match self {
            BoundaryText::All(boundary) => Boundaries::all(boundary),
            BoundaryText::Sides(sides) => {
                Boundaries(sides.map(|sides| sides.map(|side| side.unwrap_or(default))))
            }
        }
    }

    /// The same for a program of so many axes; an error where another axis is named.
    pub fn resolve(self, default: Boundary, dimensions: usize) -> Result<Boundaries> {
        let axes = 3 - dimensions.min(3)..3;
        if let BoundaryText::Sides(sides) = self
            && let Some(axis) = (0..axes.start).find(|&axis| sides[axis] != [None; 2])
        {
            return Err(Error::unknown("axis", axis_name(axis), axes.map(axis_name)));
        }
        Ok(self.over(default))
    }
}

impl FromStr for BoundaryText {
    type Err = Error;

    /// Reads `periodic`, or per axis `y=periodic,x=fixed`, or per side `x-=mirror,x+=constant=1`, each once.
    fn from_str(text: &str) -> Result<Self> {
        let mut sides_of = [[None; 2]; 3];
        for part in text.split(',') {
            let part = part.trim();
            let Some((axis, sides, boundary)) = split_axis(part) else {
                let boundary = part.parse()?;
                if text.contains(',') {
                    return Err(Error::invalid(
                        format!("boundary `{text}`"),
                        format!("`{part}` names no axis"),
                        "give one boundary for all axes, or one for each as in y=periodic,x=fixed",
                    ));
                }
                return Ok(BoundaryText::All(boundary));
            };
            let boundary = boundary.parse()?;
            for side in sides {
                if sides_of[axis][side].replace(boundary).is_some() {
                    return Err(Error::invalid(
                        format!("boundary `{text}`"),
                        format!("the {} side of axis {} has two", ["low", "high"][side], axis_name(axis)),
                        "give each side one boundary",
                    ));
                }
            }
        }
        Ok(BoundaryText::Sides(sides_of))
    }
}

fn split_axis(part: &str) -> Option<(usize, std::ops::Range<usize>, &str)> {
    let (name, boundary) = part.split_once('=')?;
    let (letter, sides) = match name.trim() {
        n if n.ends_with('-') => (&n[..n.len() - 1], 0..1),
        n if n.ends_with('+') => (&n[..n.len() - 1], 1..2),
        n => (n, 0..2),
    };
    let axis = (0..3).find(|&axis| axis_name(axis) == letter)?;
    Some((axis, sides, boundary.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_as_written_are_resolved_for_a_program() {
        let text: BoundaryText = "y=periodic,x-=mirror".parse().unwrap();
        let boundaries = text.resolve(Boundary::Constant(2.0), 2).unwrap();
        let default = Boundary::Constant(2.0);
        let expected = [[default; 2], [Boundary::Periodic; 2], [Boundary::Mirror, default]];
        assert_eq!(boundaries, Boundaries(expected));
        let error = text.resolve(Boundary::Fixed, 1).unwrap_err().to_string();
        assert!(error.contains("no axis is named `y`"), "{error}");
        // The default itself is named like any other.
        let named: BoundaryText = "z=fixed".parse().unwrap();
        assert!(named.resolve(Boundary::Fixed, 2).is_err());
        let all: BoundaryText = "mirror".parse().unwrap();
        assert_eq!(all.resolve(Boundary::Fixed, 1), Ok(Boundaries::all(Boundary::Mirror)));
    }

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

    #[test]
    fn boundaries_map_ghosts() {
        let source = |b: Boundary, i| Boundaries::all(b).source(2, i, 5);
        assert_eq!(source(Boundary::Periodic, -2), Source::Cell(3));
        assert_eq!(source(Boundary::Periodic, 6), Source::Cell(1));
        assert_eq!(source(Boundary::Mirror, -1), Source::Cell(0));
        assert_eq!(source(Boundary::Mirror, -5), Source::Cell(4));
        assert_eq!(source(Boundary::Mirror, 5), Source::Cell(4));
        assert_eq!(source(Boundary::Mirror, 9), Source::Cell(0));
        assert_eq!(source(Boundary::Constant(2.5), 5), Source::Value(2.5));
    }

    #[test]
    fn per_axis_and_side_syntax() {
        let b = Boundaries::parse("y=periodic,x-=mirror,x+=constant=1.5", Boundary::Fixed).unwrap();
        assert_eq!(b.0[1], [Boundary::Periodic; 2]);
        assert_eq!(b.0[2], [Boundary::Mirror, Boundary::Constant(1.5)]);
        assert_eq!(b.0[0], [Boundary::Fixed; 2]);
        assert_eq!(b.describe(2), "y=periodic,x-=mirror,x+=constant=1.5");
        assert_eq!(
            Boundaries::parse("constant=2", Boundary::Fixed).unwrap(),
            Boundaries::all(Boundary::Constant(2.0))
        );
        for bad in ["round", "y=round", "periodic,x=fixed", "constant=nan", "q=fixed"] {
            assert!(Boundaries::parse(bad, Boundary::Fixed).is_err(), "{bad}");
        }
        for twice in
            ["x=fixed,x=mirror", "x=fixed,x=fixed", "x-=fixed,x=mirror", "y=mirror,x+=fixed,x+=constant=1"]
        {
            let error = Boundaries::parse(twice, Boundary::Fixed).unwrap_err().to_string();
            assert!(error.contains("axis x has two"), "{twice}: {error}");
        }
    }

    #[test]
    fn constants_are_numbers_of_the_type() {
        let shape = Shape::new(&[9, 9]).unwrap();
        let check = |value, dtype| Boundaries::all(Boundary::Constant(value)).check(&shape, [0, 1, 1], dtype);
        assert!(check(3e38, DType::F32).is_ok() && check(1e39, DType::F64).is_ok());
        assert!(
            check(1e39, DType::F32)
                .unwrap_err()
                .to_string()
                .contains("the constant 1e39 is not a finite number in f32")
        );
        assert!(check(f64::INFINITY, DType::F64).is_err());
    }

    #[test]
    fn thin_domains_and_half_periodic_axes_are_refused() {
        let shape = Shape::new(&[1, 9]).unwrap();
        let check = |boundaries: Boundaries, radius| boundaries.check(&shape, radius, DType::F64);
        assert!(check(Boundaries::all(Boundary::Mirror), [0, 2, 2]).is_err());
        assert!(check(Boundaries::all(Boundary::Constant(0.0)), [0, 2, 2]).is_ok());
        assert!(check(Boundaries::parse("x-=periodic", Boundary::Fixed).unwrap(), [0, 0, 1]).is_err());
    }

    #[test]
    fn a_fixed_domain_without_interior_computes_nothing() {
        let b = Boundaries::all(Boundary::Fixed);
        assert!(b.computed(2, 3, 2).is_empty());
        assert_eq!(b.computed(2, 5, 2), 2..3);
        assert!(b.computed(2, 1, 2).is_empty());
    }
}
