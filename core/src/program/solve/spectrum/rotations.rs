//! Modes by rotations: a symmetric band is narrowed to three diagonals, and these are made one by the QL algorithm.

use super::{FEWER, OTHER};
use crate::error::{Error, Result};
use crate::memory;

/// The most sweeps for one value; two or three are common.
const MOST_SWEEPS: usize = 50;

/// The cells that are turned together, and the rotations.
pub const LANES: usize = 8;
const TURNS: usize = 1 << 16;

/// A symmetric matrix of up to five diagonals: a line is `diag(weights) · symmetric · diag(1 / weights)`.
pub struct Band {
    /// The cell of each row.
    pub order: Vec<usize>,
    /// The weights by cell.
    pub weights: Vec<f64>,
    /// The number of parts without coefficients of each other.
    pub parts: usize,
    pub diagonal: Vec<f64>,
    /// The entries of a row and the next.
    pub beside: Vec<f64>,
    /// The entries of a row and the next but one.
    pub beyond: Vec<f64>,
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
    pub fn narrow(&mut self, modes: &mut Modes) {
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
    pub fn diagonalise(&mut self, modes: &mut Modes, what: &str) -> Result<()> {
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
pub struct Modes {
    cells: usize,
    /// All rows of the first few cells, then of the next.
    pub entries: Vec<f64>,
    waiting: Vec<(usize, [f64; 2])>,
}

impl Modes {
    /// Makes modes of one cell each.
    pub fn new(order: &[usize], what: &str) -> Result<Modes> {
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
    pub fn place(&self, row: usize, cell: usize) -> usize {
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
    pub fn turn(&mut self) {
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
