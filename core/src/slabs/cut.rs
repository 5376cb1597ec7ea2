//! The cut of a number of planes into parts of given weights.

use std::ops::Range;

/// Cuts `planes` planes into a part for each weight, in order, each in proportion to its weight as far as whole planes
/// and at least `least` in each allow. The caller sees to it that there are as many planes.
pub fn cut(planes: usize, weights: &[usize], least: usize) -> Vec<Range<usize>> {
    let parts = proportional(planes, weights);
    let parts = match parts.iter().any(|&own| own < least) {
        false => parts,
        // Every part has the least, and the rest is divided by weight.
        true => {
            let rest = planes.saturating_sub(least * weights.len());
            proportional(rest, weights).into_iter().map(|own| own + least).collect()
        }
    };
    let mut end = 0;
    let ranges = parts.into_iter().map(|own| {
        let start = end;
        end = (start + own).min(planes);
        start..end
    });
    ranges.collect()
}

/// Returns the least multiple of both numbers, which are above 0: cuts may lie there.
pub fn common_multiple(a: usize, b: usize) -> usize {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.saturating_mul(b / divisor)
}

/// Divides a number by weights into whole numbers; what is left over goes to the first ones.
fn proportional(planes: usize, weights: &[usize]) -> Vec<usize> {
    let total = weights.iter().map(|&weight| weight as u128).sum::<u128>();
    let share = |weight: usize| match total {
        0 => planes / weights.len(),
        _ => (planes as u128 * weight as u128 / total) as usize,
    };
    let mut parts: Vec<usize> = weights.iter().map(|&weight| share(weight)).collect();
    let left = planes - parts.iter().sum::<usize>();
    parts.iter_mut().take(left).for_each(|own| *own += 1);
    parts
}
