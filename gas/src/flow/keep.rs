//! Central fluxes in split form: of second order between two cells, and of higher order as sums of such over pairs of cells farther
//! apart (Pirozzoli, J. Comput. Phys. 229 (2010) 7180).

use abide_core::Expr;
use abide_core::program::Scope;

use super::{Cell, Names};

/// Returns twice the weights of the central first derivative of an order, of the cells 1, 2, … away.
pub fn weights(order: usize) -> Option<&'static [f64]> {
    match order {
        2 => Some(&[1.0]),
        4 => Some(&[4.0 / 3.0, -1.0 / 6.0]),
        6 => Some(&[3.0 / 2.0, -3.0 / 10.0, 1.0 / 30.0]),
        _ => None,
    }
}

/// Returns the flux between two cells along an axis, in the order of what is conserved:
/// C = ρ̄ ū, momentum C ū_d + p̄, energy C (ē + ½ u·u⁺) + ½ (u p⁺ + u⁺ p), species C Ȳ.
fn between<'g>(low: &Cell<'g>, high: &Cell<'g>, axis: usize) -> Vec<Expr<'g>> {
    let mean = |a: Expr<'g>, b: Expr<'g>| 0.5 * (a + b);
    let velocities = || low.velocity.iter().zip(&high.velocity);
    let mass = mean(low.density, high.density) * mean(low.velocity[axis], high.velocity[axis]);
    let parts: Vec<Expr<'g>> = low.parts.iter().zip(&high.parts).map(|(&a, &b)| mean(a, b)).collect();
    let momenta = velocities().enumerate().map(|(other, (&a, &b))| {
        let carried = mass * mean(a, b);
        if other == axis { carried + mean(low.pressure, high.pressure) } else { carried }
    });
    let kinetic = velocities().map(|(&a, &b)| a * b).reduce(|sum, term| sum + term);
    let own = mean(low.energy, high.energy);
    let work = mean(low.velocity[axis] * high.pressure, high.velocity[axis] * low.pressure);
    let energy = mass * kinetic.map_or(own, |kinetic| own + 0.5 * kinetic) + work;
    Cell::masses(&parts, mass).into_iter().chain(momenta).chain([energy]).collect()
}

/// Returns what a cell loses along an axis, times the width of a cell.
pub fn outflow<'g>(s: &Scope<'g>, names: &Names, axis: usize, order: usize) -> Vec<Expr<'g>> {
    let weights = weights(order).unwrap_or(&[1.0]);
    let far = weights.len() as i32;
    let cells: Vec<Cell<'g>> = (-far..=far).map(|distance| Cell::along(s, names, axis, distance)).collect();
    let here = weights.len();
    let mut sum: Vec<Expr<'g>> = Vec::new();
    for (apart, &weight) in (1..).zip(weights) {
        let behind = between(&cells[here], &cells[here + apart], axis);
        let before = between(&cells[here - apart], &cells[here], axis);
        let own = behind.into_iter().zip(before).map(|(behind, before)| behind - before);
        sum = match apart {
            1 => own.map(|value| value * weight).collect(),
            _ => sum.into_iter().zip(own).map(|(sum, value)| value.mul_add(weight, sum)).collect(),
        };
    }
    sum
}
