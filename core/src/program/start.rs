//! Named initial states.

use std::ops::Range;
use std::str::FromStr;

use crate::domain::Shape;
use crate::error::{Error, Result};
use crate::real::{Array, DType};

/// An initial state of one field.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// The same value everywhere.
    Constant(f64),
    /// Independent uniform values in `low..high`; the same for the same seed and size on every machine.
    Random {
        /// The seed of the values.
        seed: u64,
        /// The smallest value possible.
        low: f64,
        /// The bound above all values.
        high: f64,
    },
    /// A Gaussian of height 1 in the middle. Its width is an eighth of the shortest axis that has more than
    /// one cell.
    Gaussian,
    /// 1 in the middle cell, 0 elsewhere.
    Point,
    /// Squares (cubes) of one value on a background of another: one square in the middle and, on a large
    /// domain, more at random places.
    Seeds {
        /// The value in the squares.
        inside: f64,
        /// The value elsewhere.
        outside: f64,
        /// The seed of the places; fields of one model that share the seed share the places.
        seed: u64,
    },
    /// A box of one value in the low corner of all axes, on a background of another.
    Corner {
        /// The value in the box.
        inside: f64,
        /// The value elsewhere.
        outside: f64,
        /// The box's part of each of the padded axes, slowest first, from 0 to 1; a value stands in the box if
        /// the part of the axis before it is less.
        parts: [f64; 3],
    },
    /// 1 with this probability, else 0, cell by cell.
    Coin {
        /// The seed of the values.
        seed: u64,
        /// The probability of a 1.
        probability: f64,
    },
    /// None: each run gives the field's values itself.
    Given,
}

impl FromStr for Start {
    type Err = Error;

    /// Reads `random:SEED`, `random`, `gaussian` or `point`.
    fn from_str(text: &str) -> Result<Self> {
        let random = |seed| Start::Random { seed, low: 0.0, high: 1.0 };
        match text {
            "random" => Ok(random(1)),
            "gaussian" => Ok(Start::Gaussian),
            "point" => Ok(Start::Point),
            _ => match text.strip_prefix("random:").map(str::parse) {
                Some(Ok(seed)) => Ok(random(seed)),
                _ => Err(Error::unknown("start", text, ["random:SEED", "gaussian", "point"])),
            },
        }
    }
}

impl Start {
    /// Returns the start of a member of a batch: a start that is random has the seed plus the member's number,
    /// any other is the same for all.
    pub fn of_member(&self, member: usize) -> Start {
        let mut own = self.clone();
        match &mut own {
            Start::Random { seed, .. } | Start::Seeds { seed, .. } | Start::Coin { seed, .. } => {
                *seed = seed.wrapping_add(member as u64);
            }
            Start::Constant(_) | Start::Gaussian | Start::Point | Start::Corner { .. } | Start::Given => {}
        }
        own
    }

    /// Returns the error of a field whose run does not give its values.
    pub fn missing(field: &str) -> Error {
        Error::invalid(
            format!("the start of {field}"),
            "the program has none, and the run gives none",
            "give the run values, a number, or a name such as random:1",
        )
    }

    /// Checks the numbers of a start for fields of a type. An infinity or NaN that is written as such is carried; one
    /// that a finite number becomes in the type is refused.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a number beyond the type, or beyond what it stands for.
    pub fn check(&self, dtype: DType) -> Result<()> {
        let within =
            |what: &str, value: f64, low: f64, high: f64, limit: &str| match (low..=high).contains(&value) {
                true => Ok(()),
                false => Err(Error::limit(format!("{what} of a start"), value, limit, "give another number")),
            };
        let carried = |what: &str, value: f64| match dtype.is_finite(value) || !value.is_finite() {
            true => Ok(()),
            false => Err(Error::limit(
                format!("{what} of a start in {dtype}"),
                format!("{value:e}"),
                format!("{:e}", dtype.largest()),
                "give a smaller number, or compute in f64",
            )),
        };
        match *self {
            Start::Constant(value) => carried("the value", value),
            Start::Random { low, high, .. } => {
                let largest = dtype.largest();
                let limit = "a finite number of the type";
                within("low", low, -largest, largest, limit)?;
                within("high", high, -largest, largest, limit)?;
                within(
                    "the range",
                    high - low,
                    0.0,
                    f64::MAX,
                    "low at most high, and their difference finite",
                )
            }
            Start::Coin { probability, .. } => within("the probability", probability, 0.0, 1.0, "0 to 1"),
            Start::Corner { inside, outside, parts } => {
                carried("inside", inside)?;
                carried("outside", outside)?;
                parts.iter().try_for_each(|part| within("a part of a corner", *part, 0.0, 1.0, "0 to 1"))
            }
            Start::Seeds { inside, outside, .. } => {
                carried("inside", inside)?;
                carried("outside", outside)
            }
            Start::Gaussian | Start::Point | Start::Given => Ok(()),
        }
    }

    /// Returns the start's values on a domain. Fails if the machine does not have that much memory.
    pub fn fill(&self, shape: &Shape, dtype: DType) -> Result<Array> {
        self.fill_planes(shape, dtype, 0..shape.extents().first().copied().unwrap_or(1))
    }

    /// Returns the start's values on some planes of a domain along its slowest axis. Fails if the machine does not have
    /// that much memory, or for numbers that [`Start::check`] refuses.
    pub fn fill_planes(&self, shape: &Shape, dtype: DType, planes: Range<usize>) -> Result<Array> {
        if *self == Start::Given {
            return Err(Start::missing("a field"));
        }
        self.check(dtype)?;
        let plane = shape.cells() / shape.extents().first().copied().unwrap_or(1).max(1);
        let own = planes.start * plane..planes.end * plane;
        let mut array = Array::zeros(dtype, own.len())?;
        let mut write = |value: &mut dyn FnMut(usize) -> f64| match &mut array {
            Array::F32(v) => v.iter_mut().zip(own.clone()).for_each(|(x, i)| *x = value(i) as f32),
            Array::F64(v) => v.iter_mut().zip(own.clone()).for_each(|(x, i)| *x = value(i)),
        };
        let random = |seed: u64| {
            let mut rng = fastrand::Rng::with_seed(seed);
            // The values before them are drawn as they are on the whole domain.
            for _ in 0..own.start {
                rng.f64();
            }
            rng
        };
        let middle = shape.padded().map(|n| n / 2);
        match *self {
            Start::Given => {}
            Start::Constant(value) => write(&mut |_| value),
            Start::Random { seed, low, high } => {
                let mut rng = random(seed);
                write(&mut |_| low + (high - low) * rng.f64());
            }
            Start::Coin { seed, probability } => {
                let mut rng = random(seed);
                write(&mut |_| f64::from(rng.f64() < probability));
            }
            Start::Corner { inside, outside, parts } => {
                let extents = shape.padded();
                write(&mut |i| {
                    let at = shape.cell(i);
                    let is_in = |axis: usize| (at[axis] as f64) < parts[axis] * extents[axis] as f64;
                    if (0..3).all(is_in) { inside } else { outside }
                });
            }
            Start::Point => write(&mut |i| f64::from(shape.cell(i) == middle)),
            Start::Gaussian => {
                let shortest = shape.extents().iter().filter(|&&n| n > 1).min().map_or(1, |&n| n);
                let width = (shortest as f64 / 8.0).max(0.5);
                write(&mut |i| {
                    let at = shape.cell(i);
                    let distance = |axis: usize| (at[axis] as f64 - middle[axis] as f64) / width;
                    (-0.5 * (0..3).map(|axis| distance(axis).powi(2)).sum::<f64>()).exp()
                });
            }
            Start::Seeds { inside, outside, seed } => {
                write(&mut |_| outside);
                for (low, high) in squares(shape, seed) {
                    for row in (low[0]..high[0]).flat_map(|z| (low[1]..high[1]).map(move |y| [z, y])) {
                        // In one dimension a part of the row may lie beyond the planes.
                        let cells = [low[2], high[2]]
                            .map(|x| shape.index([row[0], row[1], x]).clamp(own.start, own.end) - own.start);
                        match &mut array {
                            Array::F32(v) => v[cells[0]..cells[1]].fill(inside as f32),
                            Array::F64(v) => v[cells[0]..cells[1]].fill(inside),
                        }
                    }
                }
            }
        }
        Ok(array)
    }
}

/// Returns the corners of the squares of [`Start::Seeds`]: one square for each 48² cells or so, at most 12
/// cells wide.
fn squares(shape: &Shape, seed: u64) -> Vec<([usize; 3], [usize; 3])> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let extents = shape.padded();
    let count = (shape.cells() / (48 * 48)).max(1);
    (0..count)
        .map(|number| {
            let mut corners = ([0; 3], [1; 3]);
            for axis in 0..3 {
                let half = (extents[axis] / 8).clamp(1, 6);
                let centre = if number == 0 { extents[axis] / 2 } else { rng.usize(0..extents[axis]) };
                corners.0[axis] = centre.saturating_sub(half);
                corners.1[axis] = (centre + half).min(extents[axis]).max(corners.0[axis] + 1);
            }
            corners
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_starts_parse() {
        assert_eq!("random:7".parse::<Start>(), Ok(Start::Random { seed: 7, low: 0.0, high: 1.0 }));
        assert_eq!("point".parse::<Start>(), Ok(Start::Point));
        assert!("random:x".parse::<Start>().is_err());
        assert!("noise".parse::<Start>().is_err());
    }

    #[test]
    fn a_point_is_one_cell_in_the_middle() {
        let shape = Shape::new(&[5, 7]).unwrap();
        let values = Start::Point.fill(&shape, DType::F64).unwrap().to_f64();
        assert_eq!(values.iter().sum::<f64>(), 1.0);
        assert_eq!(values[shape.index([0, 2, 3])], 1.0);
    }

    #[test]
    fn a_corner_is_a_box_at_the_low_sides() {
        let shape = Shape::new(&[5, 4]).unwrap();
        let start = Start::Corner { inside: 2.0, outside: 1.0, parts: [1.0, 0.2, 0.5] };
        let values = start.fill(&shape, DType::F32).unwrap().to_f64();
        assert_eq!(values[..5], [2.0, 2.0, 1.0, 1.0, 1.0]);
        assert_eq!(values.iter().sum::<f64>(), 22.0);
    }

    #[test]
    fn seeds_lie_in_the_domain_and_share_their_places() {
        for extents in [&[1][..], &[3, 200], &[96, 96], &[20, 1, 30]] {
            let shape = Shape::new(extents).unwrap();
            let fill = |inside, dtype| {
                Start::Seeds { inside, outside: 0.0, seed: 8 }.fill(&shape, dtype).unwrap().to_f64()
            };
            let (a, b) = (fill(1.0, DType::F32), fill(2.0, DType::F64));
            assert!(a.iter().zip(&b).all(|(a, b)| 2.0 * a == *b));
            assert_eq!(a[shape.index(shape.padded().map(|n| n / 2))], 1.0);
        }
    }

    #[test]
    fn planes_are_those_of_the_whole() {
        let starts = [
            Start::Constant(2.5),
            Start::Random { seed: 5, low: -1.0, high: 2.0 },
            Start::Gaussian,
            Start::Point,
            Start::Seeds { inside: 1.0, outside: 0.5, seed: 8 },
            Start::Corner { inside: 2.0, outside: 1.0, parts: [0.5, 0.4, 0.5] },
            Start::Coin { seed: 3, probability: 0.4 },
        ];
        for extents in [&[70][..], &[29, 11], &[13, 5, 9], &[3, 1, 4]] {
            let shape = Shape::new(extents).unwrap();
            let plane = shape.cells() / extents[0];
            for start in &starts {
                let whole = start.fill(&shape, DType::F64).unwrap();
                for planes in [0..1, 0..extents[0], 1..extents[0], 1..3, extents[0] - 1..extents[0], 2..2] {
                    let own = start.fill_planes(&shape, DType::F64, planes.clone()).unwrap();
                    let part = whole.part(planes.start * plane..planes.end * plane).unwrap();
                    assert_eq!(own, part, "{start:?} {shape} {planes:?}");
                }
            }
        }
    }

    #[test]
    fn random_is_the_same_for_the_same_seed() {
        let shape = Shape::new(&[33]).unwrap();
        let fill = |seed| Start::Random { seed, low: -1.0, high: 1.0 }.fill(&shape, DType::F32).unwrap();
        assert_eq!(fill(3), fill(3));
        assert_ne!(fill(3), fill(4));
    }
}
