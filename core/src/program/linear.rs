//! Linear stencils: weighted sums of taps.

use super::stencil::{Scope, Stencil};
use crate::error::{Error, Result};

/// A stencil that replaces a single field `u` by a weighted sum of its neighbours, given as weights at
/// offsets.
///
/// Taps are summed in the order of their offsets, slowest axis first: the first product is a plain
/// multiplication, every later tap one fused multiply-add onto the sum.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearStencil {
    name: String,
    dimensions: usize,
    taps: Vec<([i32; 3], f64)>,
}

impl LinearStencil {
    /// Makes a linear stencil from offsets of `D` numbers, slowest axis first, and weights.
    ///
    /// Fails if there are no taps, an offset stands twice, or a weight is not finite.
    pub fn new<const D: usize>(name: impl Into<String>, taps: &[([i32; D], f64)]) -> Result<Self> {
        let name = name.into();
        if !(1..=3).contains(&D) {
            return Err(Error::limit("axes of a stencil", D, "1 to 3", "use offsets of 1 to 3 numbers"));
        }
        let mut padded: Vec<([i32; 3], f64)> = taps
            .iter()
            .map(|(offset, weight)| {
                let mut three = [0; 3];
                three[3 - D..].copy_from_slice(offset);
                (three, *weight)
            })
            .collect();
        padded.sort_by_key(|(offset, _)| *offset);
        if padded.is_empty() {
            return Err(Error::invalid(format!("stencil {name}"), "it has no taps", "give at least one"));
        }
        if let Some(pair) = padded.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::invalid(
                format!("stencil {name}"),
                format!("offset {:?} stands twice", pair[0].0),
                "add the weights up",
            ));
        }
        if let Some((offset, weight)) = padded.iter().find(|(_, weight)| !weight.is_finite()) {
            return Err(Error::invalid(
                format!("stencil {name}"),
                format!("the weight {weight} at {offset:?} is not finite"),
                "give finite weights",
            ));
        }
        Ok(LinearStencil { name, dimensions: D, taps: padded })
    }

    /// Returns the stencil with every sign changed.
    pub fn negated(&self) -> LinearStencil {
        let taps = self.taps.iter().map(|&(offset, weight)| (offset, -weight)).collect();
        LinearStencil { name: self.name.clone(), dimensions: self.dimensions, taps }
    }

    /// Returns the taps in the order of summation, their offsets padded to three axes.
    pub fn taps(&self) -> &[([i32; 3], f64)] {
        &self.taps
    }
}

impl Stencil for LinearStencil {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        let mut terms = self
            .taps
            .iter()
            .map(|(offset, weight)| (u.at_slice(&offset[3 - self.dimensions..]), s.constant(*weight)));
        if let Some((first, weight)) = terms.next() {
            s.set("u", terms.fold(weight * first, |sum, (tap, weight)| weight.mul_add(tap, sum)));
        }
    }
}
