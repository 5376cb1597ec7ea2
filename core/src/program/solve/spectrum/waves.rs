//! The modes of uniform lines in closed form.

use std::f64::consts::PI;

use super::{FEWER, Line, Spectrum};
use crate::error::Result;
use crate::functions::{cos, sin};
use crate::memory;

/// The modes of a uniform line: sines and cosines of whole multiples of one angle.
pub struct Waves {
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
    pub fn of(line: &Line) -> Option<Waves> {
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
    pub fn spectrum(&self, what: &str) -> Result<Spectrum> {
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
