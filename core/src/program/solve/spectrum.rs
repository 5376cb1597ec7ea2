//! The modes of an operator along one axis, by which separable systems on boxes are solved directly.
//!
//! Along a line the operator is a tridiagonal matrix, or one of a ring. Uniform lines have waves as modes, in closed form. Others
//! are made symmetric by a weight for each cell and diagonalised by rotations: the QL algorithm (Bowdler, Martin, Reinsch and
//! Wilkinson, Numerische Mathematik 11 (1968) 293) with implicit shifts (Dubrulle, Martin and Wilkinson, 12 (1968) 377). Folded in
//! two, a ring is a band of two diagonals on either side, which rotations narrow to one (Schwarz, 12 (1968) 231).
//!
//! All operations are done in one order and rounded once, so that all machines have the same bits.

use std::f64::consts::PI;

use crate::error::{Error, Result};
use crate::functions::{cos, sin};
use crate::memory;

/// The most cells of a line.
const MOST_CELLS: usize = 4096;

/// The largest ratio of the weights that make a line symmetric: the modes lose as many digits as it has.
const MOST_SPREAD: f64 = 1e6;

/// The most sweeps for one value; two or three are common.
const MOST_SWEEPS: usize = 50;

/// The cells that are turned together, and the rotations.
const LANES: usize = 8;
const TURNS: usize = 1 << 16;

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

/// The modes of a uniform line: sines and cosines of whole multiples of one angle.
struct Waves {
    cells: usize,
    /// The value of a field that is the same everywhere.
    shift: f64,
    /// The coefficient of a neighbour, with the opposite sign.
    coupling: f64,
    /// The number of these angles in a right angle.
    quarter: usize,
    /// Half cells from the point about which the modes are even or odd to the first cell; 0 where the line is periodic.
    start: usize,
    /// Whether the modes are even about either end; `None` where the line is periodic.
    is_even: Option<[bool; 2]>,
}

impl Waves {
    /// Returns the modes of a line; `None` if it is not uniform.
    fn of(line: &Line) -> Option<Waves> {
        const EPSILON: f64 = f64::EPSILON;
        let cells = line.diagonal.len();
        let (link, middle) = (line.upper[0], *line.diagonal.get(1)?);
        let end = usize::from(!line.is_periodic);
        let mut links = line.lower[end..].iter().chain(&line.upper[..cells - end]);
        let mut inner = line.diagonal[end..cells - end].iter();
        let is_uniform = cells > 2
            && link != 0.0
            && links.all(|&entry| entry == link)
            && inner.all(|entry| (entry - middle).abs() <= 4.0 * EPSILON * middle.abs());
        if !is_uniform {
            return None;
        }
        let shift = middle + 2.0 * link;
        let shift = if shift.abs() <= 8.0 * EPSILON * link.abs() { 0.0 } else { shift };
        let waves = Waves { cells, shift, coupling: -link, quarter: cells, start: 0, is_even: None };
        if line.is_periodic {
            return Some(waves);
        }
        // What the cell beyond has of the end's value, the half cells to the point of symmetry, and whether that is even.
        let kinds = [(1.0, 1, true), (0.0, 2, false), (-1.0, 1, false)];
        let near = 8.0 * EPSILON * middle.abs().max(link.abs());
        let kind = |own: f64| kinds.iter().find(|(ghost, ..)| (own - (middle + ghost * link)).abs() <= near);
        let (&(_, start, low), &(_, rest, high)) = (kind(line.diagonal[0])?, kind(line.diagonal[cells - 1])?);
        Some(Waves { quarter: 2 * cells - 2 + start + rest, start, is_even: Some([low, high]), ..waves })
    }

    /// Returns half of what the angle of a mode grows by from one cell to the next, and whether the mode is a sine.
    fn mode(&self, mode: usize) -> (usize, bool) {
        match self.is_even {
            None => (mode.div_ceil(2) * 2, mode > 0 && mode.is_multiple_of(2)),
            Some([true, true]) => (2 * mode, false),
            Some([false, false]) => (2 * mode + 2, true),
            Some([low, _]) => (2 * mode + 1, !low),
        }
    }

    /// Returns the modes with their values.
    fn spectrum(&self, what: &str) -> Result<Spectrum> {
        let (cells, quarter) = (self.cells, self.quarter);
        let mut circle = memory::reserved(4 * quarter, what, FEWER)?;
        circle.extend((0..4 * quarter).map(|angle| sine(angle, quarter)));
        let mut modes = memory::reserved(cells * cells, what, FEWER)?;
        let mut values = memory::reserved(cells, what, FEWER)?;
        for place in 0..cells {
            let (half, is_sine) = self.mode(if self.coupling > 0.0 { place } else { cells - 1 - place });
            // The squares of a wave sum to half the length, of one that is 1 or -1 everywhere to all of it.
            let halves = if self.is_even.is_some() { 4.0 } else { 2.0 };
            let length = if half % quarter == 0 { 2.0 } else { 1.0 } * quarter as f64;
            let scale = (halves / length).sqrt();
            let mut angle = (half * self.start + if is_sine { 0 } else { quarter }) % (4 * quarter);
            for _ in 0..cells {
                modes.push(scale * circle[angle]);
                angle += 2 * half;
                angle -= if angle >= 4 * quarter { 4 * quarter } else { 0 };
            }
            values.push(self.shift + 4.0 * self.coupling * (circle[half] * circle[half]));
        }
        Spectrum::of(modes, values, &memory::filled(1.0, cells, what, FEWER)?, what)
    }
}

/// Returns the sine of an angle in parts of a right angle of which there are `quarter`.
fn sine(angle: usize, quarter: usize) -> f64 {
    let (quadrant, rest) = (angle / quarter, angle % quarter);
    let rest = if quadrant % 2 == 0 { rest } else { quarter - rest };
    let radians = |angle: usize| PI * angle as f64 / (2 * quarter) as f64;
    let size = if 2 * rest <= quarter { sin(radians(rest)) } else { cos(radians(quarter - rest)) };
    if quadrant < 2 { size } else { -size }
}

/// A symmetric matrix of up to five diagonals: a line is `diag(weights) · symmetric · diag(1 / weights)`.
struct Band {
    /// The cell of each row.
    order: Vec<usize>,
    /// The weights by cell.
    weights: Vec<f64>,
    /// The number of parts without coefficients of each other.
    parts: usize,
    diagonal: Vec<f64>,
    /// The entries of a row and the next.
    beside: Vec<f64>,
    /// The entries of a row and the next but one.
    beyond: Vec<f64>,
}

impl Band {
    /// Turns rows and columns `row` and `row + 1` where they meet: the second becomes `cosine` of itself plus `sine` of the first.
    fn turn(&mut self, row: usize, [cosine, sine]: [f64; 2]) {
        let (first, second, both) = (self.diagonal[row], self.diagonal[row + 1], self.beside[row]);
        let moved = sine * (first - second) + 2.0 * cosine * both;
        self.diagonal[row] = first - sine * moved;
        self.diagonal[row + 1] = second + sine * moved;
        self.beside[row] = cosine * moved - both;
    }

    /// Makes a tridiagonal matrix: outer entries are turned into inner ones, and what that brings up outside is chased off the end.
    fn narrow(&mut self, modes: &mut Modes) {
        let cells = self.diagonal.len();
        for column in 0..cells.saturating_sub(2) {
            if self.beyond[column] == 0.0 {
                continue;
            }
            let (mut turn, kept) = turn_onto(self.beside[column], self.beyond[column]);
            (self.beside[column], self.beyond[column]) = (kept, 0.0);
            let mut row = column + 1;
            loop {
                let [cosine, sine] = [turn[0], -turn[1]];
                modes.push(row, [cosine, sine]);
                self.turn(row, [cosine, sine]);
                if row + 2 >= cells {
                    break;
                }
                let (outer, inner) = (self.beyond[row], self.beside[row + 1]);
                self.beyond[row] = cosine * outer - sine * inner;
                self.beside[row + 1] = cosine * inner + sine * outer;
                if row + 3 >= cells {
                    break;
                }
                let outside = -sine * self.beyond[row + 1];
                self.beyond[row + 1] *= cosine;
                (turn, self.beyond[row]) = turn_onto(self.beyond[row], outside);
                let (inner, outer) = (self.beside[row + 1], self.beyond[row + 1]);
                self.beside[row + 1] = turn[0] * inner + turn[1] * outer;
                self.beyond[row + 1] = turn[0] * outer - turn[1] * inner;
                row += 2;
            }
        }
    }

    /// Makes a tridiagonal matrix diagonal, from the first row on.
    fn diagonalise(&mut self, modes: &mut Modes, what: &str) -> Result<()> {
        let last = self.diagonal.len() - 1;
        for low in 0..last {
            for sweep in 0.. {
                // The matrix was scaled, so that the constant is small beside its largest entry.
                let is_small = |&row: &usize| {
                    let near = self.diagonal[row].abs() + self.diagonal[row + 1].abs() + 1e-6;
                    self.beside[row].abs() <= f64::EPSILON * near
                };
                let high = (low..last).find(is_small).unwrap_or(last);
                if high == low {
                    break;
                }
                if sweep == MOST_SWEEPS {
                    let reason = format!("its modes are not found in {MOST_SWEEPS} sweeps");
                    return Err(Error::invalid(what, reason, OTHER));
                }
                self.sweep(low, high, modes);
            }
        }
        Ok(())
    }

    /// Does a sweep from row `high` up to `low`. The shift is the value of the first two rows that is nearer to the first.
    fn sweep(&mut self, low: usize, high: usize, modes: &mut Modes) {
        let (half, link) = (0.5 * (self.diagonal[low + 1] - self.diagonal[low]), self.beside[low]);
        let root = turn_onto(half, link).1.abs();
        let shift = self.diagonal[low] - link * (link / (half + root.copysign(half)));
        let (mut inner, mut outer) = (self.diagonal[high] - shift, self.beside[high - 1]);
        for row in (low..high).rev() {
            let (turn, kept) = turn_onto(inner, outer);
            if row + 1 < high {
                self.beside[row + 1] = kept;
            }
            self.turn(row, turn);
            modes.push(row, turn);
            inner = self.beside[row];
            if row > low {
                outer = turn[1] * self.beside[row - 1];
                self.beside[row - 1] *= turn[0];
            }
        }
    }
}

/// Returns cosine and sine of the rotation of `[first, second]` onto `[length, 0]`, and the length, which may be negative.
fn turn_onto(first: f64, second: f64) -> ([f64; 2], f64) {
    if second == 0.0 {
        ([1.0, 0.0], first)
    } else if first.abs() >= second.abs() {
        let tangent = second / first;
        let secant = (1.0 + tangent * tangent).sqrt();
        ([1.0 / secant, tangent / secant], first * secant)
    } else {
        let cotangent = first / second;
        let cosecant = (1.0 + cotangent * cotangent).sqrt();
        ([cotangent / cosecant, 1.0 / cosecant], second * cosecant)
    }
}

/// The modes while they are turned: a row for each. Rotations wait until there are many, because a cache holds a few cells of all
/// modes.
struct Modes {
    cells: usize,
    /// All rows of the first few cells, then of the next.
    entries: Vec<f64>,
    waiting: Vec<(usize, [f64; 2])>,
}

impl Modes {
    /// Makes modes of one cell each.
    fn new(order: &[usize], what: &str) -> Result<Modes> {
        let cells = order.len();
        let entries = memory::filled(0.0, cells * cells.next_multiple_of(LANES), what, FEWER)?;
        let waiting = memory::reserved(TURNS, what, FEWER)?;
        let mut modes = Modes { cells, entries, waiting };
        for (row, &cell) in order.iter().enumerate() {
            let place = modes.place(row, cell);
            modes.entries[place] = 1.0;
        }
        Ok(modes)
    }

    /// Returns where the entry of a mode at a cell is.
    fn place(&self, row: usize, cell: usize) -> usize {
        (cell / LANES * self.cells + row) * LANES + cell % LANES
    }

    /// Turns two rows as [`Band::turn`] does, now or later.
    fn push(&mut self, row: usize, turn: [f64; 2]) {
        if self.waiting.len() == TURNS {
            self.turn();
        }
        self.waiting.push((row, turn));
    }

    /// Does the rotations that wait. The row that the next one is likely to need is kept at hand.
    fn turn(&mut self) {
        for block in self.entries.chunks_exact_mut(self.cells * LANES) {
            let (rows, _) = block.as_chunks_mut::<LANES>();
            let mut at = 0;
            let mut held = rows[at];
            for &(row, [cosine, sine]) in &self.waiting {
                if at != row + 1 {
                    rows[at] = held;
                    at = row + 1;
                    held = rows[at];
                }
                let first = rows[row];
                rows[at] = std::array::from_fn(|lane| cosine * held[lane] + sine * first[lane]);
                held = std::array::from_fn(|lane| cosine * first[lane] - sine * held[lane]);
                at = row;
            }
            rows[at] = held;
        }
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
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
