//! The windows that cover a plane of the domain.
//!
//! Each form cuts the planes into shares in its own way: on CUDA a share may go on from one window to the
//! next, while a workgroup of the portable form has one window.

use super::requirement::Demand;

/// Returns the number of windows of `window` cells that cover an axis; `None` if that takes several and their
/// margins leave nothing between them. The outermost windows hold `lead` cells beyond the domain.
pub(super) fn tiles(extent: usize, window: usize, margin: [usize; 2], lead: [usize; 2]) -> Option<usize> {
    let needed = lead[0] + extent + lead[1];
    if needed <= window {
        return Some(1);
    }
    let kept = window.checked_sub(margin[0] + margin[1]).filter(|&kept| kept > 0)?;
    Some(1 + (needed - window).div_ceil(kept))
}

/// Returns how many rows and columns of windows lie at a side of the domain, if those along axes that have
/// `ends` do.
pub(super) fn at_sides(tiles: [usize; 2], ends: impl Fn(usize) -> bool) -> [usize; 2] {
    [0, 1].map(|axis| if ends(axis + 1) { tiles[axis].min(2) } else { 0 })
}

/// Returns the share of the computed cells that are kept if windows go through `planes` planes in total.
pub(super) fn valid(demand: &Demand<'_>, planes: f64, window: [usize; 2]) -> f64 {
    demand.pass.problem.shape.cells() as f64 / (planes * (window[0] * window[1]) as f64)
}
