//! The modes of an operator along one axis, by which separable systems on boxes are solved directly.
//!
//! Along a line the operator is a tridiagonal matrix, or one of a ring. Uniform lines have waves as modes, in closed form. Others
//! are made symmetric by a weight for each cell and diagonalised by rotations: the QL algorithm (Bowdler, Martin, Reinsch and
//! Wilkinson, Numerische Mathematik 11 (1968) 293) with implicit shifts (Dubrulle, Martin and Wilkinson, 12 (1968) 377). Folded in
//! two, a ring is a band of two diagonals on either side, which rotations narrow to one (Schwarz, 12 (1968) 231).
//!
//! All operations are done in one order and rounded once, so that all machines have the same bits.

mod rotations;
mod waves;

use self::rotations::{Band, LANES, Modes};
use self::waves::Waves;
use crate::error::{Error, Result};
use crate::memory;

/// The most cells of a line.
const MOST_CELLS: usize = 4096;

/// The largest ratio of the weights that make a line symmetric: the modes lose as many digits as it has.
const MOST_SPREAD: f64 = 1e6;

/// The advice.
const FEWER: &str = "choose fewer cells along the axis, or solve by multigrid or cg";
const OTHER: &str = "solve by multigrid, cg or bicgstab, or choose other coefficients";

/// The modes of a matrix: it is `backward · diag(values) · forward`, and `forward · backward` is 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// The amplitudes of the modes by the values of the cells: a row for each mode.
    pub forward: Vec<f64>,
    /// The values of the cells by the amplitudes of the modes: a row for each cell.
    pub backward: Vec<f64>,
    /// The values of the modes, in ascending order.
    pub values: Vec<f64>,
}

/// A matrix that gives cell `i` the value `lower[i] u[i - 1] + diagonal[i] u[i] + upper[i] u[i + 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The coefficients of the cells before.
    pub lower: Vec<f64>,
    /// The coefficients of the cells themselves.
    pub diagonal: Vec<f64>,
    /// The coefficients of the cells behind.
    pub upper: Vec<f64>,
    /// Whether the last cell is before the first one. Otherwise the first has none before and the last none behind.
    pub is_periodic: bool,
}

impl Line {
    /// Returns the modes; `what` names the line in errors.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if an entry is not finite, or if no weights of the cells make the matrix symmetric: neighbours need
    /// coefficients of each other that have one sign, or are both 0, and around a ring both directions need the same product.
    /// [`Error::Limit`] if there are more than 4096 cells, the weights differ too much, or there is no memory.
    pub fn spectrum(&self, what: &str) -> Result<Spectrum> {
        let (line, unit) = self.scaled(what)?;
        let mut spectrum = match Waves::of(&line) {
            Some(waves) => waves.spectrum(what)?,
            None => line.rotated(what)?,
        };
        spectrum.values.iter_mut().for_each(|value| *value *= unit);
        Ok(spectrum)
    }

    /// Returns the matrix over a power of two that is about its largest entry, and that power. Ends without a neighbour have 0 as its
    /// coefficient; a line of one or two cells is not periodic.
    fn scaled(&self, what: &str) -> Result<(Line, f64)> {
        let cells = self.diagonal.len();
        if cells > MOST_CELLS {
            return Err(Error::limit(what, format!("{cells} cells"), MOST_CELLS, FEWER));
        }
        if cells == 0 || self.lower.len() != cells || self.upper.len() != cells {
            let [lower, upper] = [self.lower.len(), self.upper.len()];
            let reason =
                format!("{cells} cells have {lower} coefficients of cells before and {upper} behind");
            return Err(Error::invalid(what, reason, "give one for each cell"));
        }
        let copied = |entries: &[f64]| memory::copied(entries, what, FEWER);
        let (mut lower, mut upper) = (copied(&self.lower)?, copied(&self.upper)?);
        let mut diagonal = copied(&self.diagonal)?;
        if !self.is_periodic {
            (lower[0], upper[cells - 1]) = (0.0, 0.0);
        }
        let mut largest = 0.0_f64;
        for cell in 0..cells {
            let most = lower[cell].abs() + diagonal[cell].abs() + upper[cell].abs();
            if !(4.0 * most).is_finite() {
                let reason = format!("the coefficients of cell {cell} are not finite, or too large");
                return Err(Error::invalid(what, reason, OTHER));
            }
            largest = largest.max(most);
        }
        let exponent = (largest.to_bits() >> 52).max(1);
        let scale = f64::from_bits((2046 - exponent) << 52);
        let entries = lower.iter_mut().chain(&mut diagonal).chain(&mut upper);
        entries.for_each(|entry| *entry *= scale);
        // Both neighbours of a cell are the same one.
        match cells {
            1 => diagonal[0] += std::mem::take(&mut lower[0]) + std::mem::take(&mut upper[0]),
            2 => {
                upper[0] += std::mem::take(&mut lower[0]);
                lower[1] += std::mem::take(&mut upper[1]);
            }
            _ => {}
        }
        Ok((Line { lower, diagonal, upper, is_periodic: self.is_periodic && cells > 2 }, 1.0 / scale))
    }

    /// Returns the modes by rotations.
    fn rotated(&self, what: &str) -> Result<Spectrum> {
        let cells = self.diagonal.len();
        let mut band = self.symmetric(what)?;
        let mut modes = Modes::new(&band.order, what)?;
        band.narrow(&mut modes);
        band.diagonalise(&mut modes, what)?;
        modes.turn();
        let mut found = band.diagonal;
        let mut rows = memory::reserved(cells, what, FEWER)?;
        rows.extend(0..cells);
        if self.keeps_constants() {
            rows.sort_unstable_by(|&a, &b| found[a].abs().total_cmp(&found[b].abs()).then(a.cmp(&b)));
            rows[..band.parts].iter().for_each(|&row| found[row] = 0.0);
        }
        rows.sort_unstable_by(|&a, &b| found[a].total_cmp(&found[b]).then(a.cmp(&b)));
        let mut sorted = memory::reserved(cells * cells, what, FEWER)?;
        let mut values = memory::reserved(cells, what, FEWER)?;
        for &row in &rows {
            sorted.extend((0..cells).map(|cell| modes.entries[modes.place(row, cell)]));
            values.push(found[row]);
        }
        Spectrum::of(sorted, values, &band.weights, what)
    }

    /// Returns whether fields that are the same everywhere become 0 in each cell.
    fn keeps_constants(&self) -> bool {
        let rows =
            || (0..self.diagonal.len()).map(|cell| [self.lower[cell], self.diagonal[cell], self.upper[cell]]);
        let most = rows().flatten().fold(0.0_f64, |most, entry| most.max(entry.abs()));
        rows().all(|[lower, own, upper]| (lower + own + upper).abs() <= 16.0 * f64::EPSILON * most)
    }

    /// Returns the symmetric matrix with the same values. A line that is not periodic is a ring that is cut.
    fn symmetric(&self, what: &str) -> Result<Band> {
        let cells = self.diagonal.len();
        let filled = |value: f64| memory::filled(value, cells, what, FEWER);
        let pair = |cell: usize| [self.upper[cell], self.lower[(cell + 1) % cells]];
        let is_cut = |cell: &usize| pair(*cell) == [0.0; 2];
        let parts = (0..cells).filter(is_cut).count();
        let first = (0..cells).rfind(is_cut).map_or(0, |cell| cell + 1);
        let (mut links, mut weights) = (filled(0.0)?, filled(1.0)?);
        let (mut weight, mut least, mut most) = (1.0_f64, 1.0_f64, 1.0_f64);
        for cell in (first..first + cells).map(|place| place % cells) {
            weights[cell] = weight;
            (least, most) = (least.min(weight), most.max(weight));
            let [upper, lower] = pair(cell);
            if (upper > 0.0) != (lower > 0.0) || (upper < 0.0) != (lower < 0.0) {
                let next = (cell + 1) % cells;
                let reason = format!("what cells {cell} and {next} have of each other differs in sign");
                return Err(Error::invalid(what, reason, OTHER));
            }
            links[cell] = if upper == lower { upper } else { (upper * lower).sqrt().copysign(upper) };
            weight = if is_cut(&cell) {
                1.0
            } else if upper == lower {
                weight
            } else {
                weight * (lower / upper).sqrt()
            };
        }
        if most / least > MOST_SPREAD {
            let asked = format!("a growth by {:e} along the line", most / least);
            return Err(Error::limit(what, asked, format!("{MOST_SPREAD:e}"), OTHER));
        }
        if parts == 0 && (weight * weight - 1.0).abs() > 1e-10 {
            let reason = "the product of the coefficients around the ring depends on the direction";
            return Err(Error::invalid(what, reason, OTHER));
        }
        let mut order = memory::reserved(cells, what, FEWER)?;
        let [mut diagonal, mut beside, mut beyond] = [filled(0.0)?, filled(0.0)?, filled(0.0)?];
        if parts > 0 {
            order.extend((first..first + cells).map(|place| place % cells));
            (0..cells).for_each(|row| beside[row] = links[order[row]]);
        } else {
            // Folded: the first cell, the last, the second, the last but one, and so on.
            let half = |row: usize| if row.is_multiple_of(2) { row / 2 } else { cells - 1 - row / 2 };
            order.extend((0..cells).map(half));
            (0..cells - 2).for_each(|row| beyond[row] = links[order[row].min(order[row + 2])]);
            beside[0] = links[cells - 1];
            beside[cells - 2] = links[order[cells - 2].min(order[cells - 1])];
        }
        (0..cells).for_each(|row| diagonal[row] = self.diagonal[order[row]]);
        Ok(Band { order, weights, parts: parts.max(1), diagonal, beside, beyond })
    }
}

impl Spectrum {
    /// Makes a spectrum from the modes of the symmetric matrix, a row for each, and the weights of the cells.
    fn of(mut modes: Vec<f64>, values: Vec<f64>, weights: &[f64], what: &str) -> Result<Spectrum> {
        let cells = values.len();
        let mut backward = memory::filled(0.0, cells * cells, what, FEWER)?;
        // As many cells at once as a cache line of the modes has.
        for (block, rows) in backward.chunks_mut(LANES * cells).enumerate() {
            for mode in 0..cells {
                for (row, cell) in rows.chunks_exact_mut(cells).zip(block * LANES..) {
                    row[mode] = weights[cell] * modes[mode * cells + cell];
                }
            }
        }
        for mode in modes.chunks_exact_mut(cells) {
            mode.iter_mut().zip(weights).for_each(|(entry, weight)| *entry /= weight);
        }
        Ok(Spectrum { forward: modes, backward, values })
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// Checks the modes of a line, and returns the values.
    fn check(line: &Line) -> Vec<f64> {
        let n = line.diagonal.len();
        let mut matrix = vec![0.0_f64; n * n];
        for i in 0..n {
            matrix[i * n + i] += line.diagonal[i];
            if line.is_periodic || i > 0 {
                matrix[i * n + (i + n - 1) % n] += line.lower[i];
            }
            if line.is_periodic || i + 1 < n {
                matrix[i * n + (i + 1) % n] += line.upper[i];
            }
        }
        let Spectrum { forward, backward, values } = line.spectrum("line").unwrap();
        let unit = f64::EPSILON * (n as f64).sqrt();
        let most = matrix.iter().fold(f64::MIN_POSITIVE, |most, entry| most.max(entry.abs()));
        for (i, j) in (0..n * n).map(|place| (place / n, place % n)) {
            let own: f64 = (0..n).map(|k| backward[i * n + k] * values[k] * forward[k * n + j]).sum();
            let one: f64 = (0..n).map(|k| forward[i * n + k] * backward[k * n + j]).sum();
            let off = [(own - matrix[i * n + j]) / most, one - f64::from(i == j)];
            assert!(off.iter().all(|off| off.abs() < 40.0 * unit), "{i} {j}: {off:?} of {line:?}");
        }
        assert!(values.is_sorted());
        values
    }

    fn uniform(n: usize, middle: f64, link: f64, ends: Option<[f64; 2]>) -> Line {
        let [lower, mut diagonal, upper] = [link, middle, link].map(|value| vec![value; n]);
        if let Some([low, high]) = ends {
            diagonal[0] += low * link;
            diagonal[n - 1] += high * link;
        }
        Line { lower, diagonal, upper, is_periodic: ends.is_none() }
    }

    /// Returns minus the second derivative on cells of uneven widths.
    fn stretched(n: usize, is_periodic: bool) -> Line {
        let width = |i: usize| 0.1 + ((i * i) % 7 + i) as f64;
        let link = |i: usize, j: usize| -2.0 / (width(i) * (width(i) + width(j)));
        let mut lower: Vec<f64> = (0..n).map(|i| link(i, (i + n - 1) % n)).collect();
        let mut upper: Vec<f64> = (0..n).map(|i| link(i, (i + 1) % n)).collect();
        if !is_periodic {
            (lower[0], upper[n - 1]) = (0.0, 0.0);
        }
        let diagonal = lower.iter().zip(&upper).map(|(a, b)| -(a + b)).collect();
        Line { lower, diagonal, upper, is_periodic }
    }

    #[test]
    fn uniform_lines_are_closed_forms_and_agree_with_rotations() {
        let ghosts = [1.0, 0.0, -1.0];
        let pairs = ghosts.iter().flat_map(|&low| ghosts.map(|high| Some([low, high])));
        for ends in pairs.chain([None]) {
            for n in [1, 2, 3, 5, 8, 17, 64] {
                for (middle, link) in [(2.0, -1.0), (-0.6, 0.3), (7.3, -0.7)] {
                    let line = uniform(n, middle, link, ends);
                    let values = check(&line);
                    let (plain, unit) = line.scaled("line").unwrap();
                    assert_eq!(Waves::of(&plain).is_some(), n > 2);
                    let rotated = plain.rotated("line").unwrap().values;
                    let most = values[0].abs().max(values[n - 1].abs());
                    let is_near = |(a, b): (&f64, &f64)| (a - b * unit).abs() <= 1e-12 * most;
                    assert!(values.iter().zip(&rotated).all(is_near), "{values:?} {rotated:?} of {line:?}");
                    let is_singular = middle != 7.3 && matches!(ends, None | Some([1.0, 1.0]));
                    assert_eq!(values.contains(&0.0), is_singular, "{values:?} of {line:?}");
                }
            }
        }
    }

    #[test]
    fn other_lines_are_rotated() {
        for (n, is_periodic) in [3, 4, 5, 47, 48].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let values = check(&stretched(n, is_periodic));
            assert!(values[0] == 0.0 && values[1] > 0.0, "{values:?}");
        }
        // Mirrored about the first cell: 2 - 2 cos of odd multiples of a half of π / n.
        let mut line = uniform(20, 2.0, -1.0, Some([0.0, 0.0]));
        line.upper[0] = -2.0;
        for (k, value) in check(&line).into_iter().enumerate() {
            let half = PI * (2 * k + 1) as f64 / 80.0;
            assert!((value - 4.0 * half.sin().powi(2)).abs() < 1e-14, "{k} {value}");
        }
        // Two parts, each with constants; a ring that is cut is one part.
        for is_periodic in [false, true] {
            let mut line = stretched(48, is_periodic);
            (line.upper[9], line.lower[10]) = (0.0, 0.0);
            (line.diagonal[9], line.diagonal[10]) = (-line.lower[9], -line.upper[10]);
            let values = check(&line);
            assert!(values[0] == 0.0 && (values[1] == 0.0) != is_periodic, "{values:?}");
        }
        assert_eq!(check(&uniform(5, 0.0, 0.0, None)), [0.0; 5]);
        assert!(check(&uniform(6, 1e300, 3e299, Some([0.3, 0.7])))[0] > 1e299);
    }

    #[test]
    fn what_has_no_modes_is_refused() {
        let refusal = |change: fn(&mut Line)| {
            let mut line = uniform(6, 2.0, -1.0, None);
            change(&mut line);
            line.spectrum("axis 1").unwrap_err().to_string()
        };
        assert!(refusal(|line| line.upper[2] = 1.0).contains("axis 1: what cells 2 and 3 have"));
        assert!(refusal(|line| line.upper[2] = 0.0).contains("cells 2 and 3"));
        assert!(refusal(|line| line.upper[2] = -1.1).contains("around the ring"));
        assert!(refusal(|line| line.diagonal[4] = f64::NAN).contains("cell 4"));
        assert!(refusal(|line| line.lower[0] = f64::INFINITY).contains("cell 0"));
        assert!(refusal(|line| line.lower.truncate(5)).contains("6 cells have 5"));
        assert!(refusal(|line| line.upper = vec![-1e-3; 6]).contains("1e6"));
        assert!(refusal(|line| *line = uniform(4097, 2.0, -1.0, None)).contains("4097 cells asked"));
    }
}
