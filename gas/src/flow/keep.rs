//! Central fluxes in split form: of second order between two cells, and of higher order as sums of such over pairs of cells farther
//! apart (Pirozzoli, J. Comput. Phys. 229 (2010) 7180).

use abide_core::Expr;
use abide_core::program::Scope;

use super::names::Names;

/// Returns twice the weights of the central first derivative of an order, of the cells 1, 2, … away.
pub fn weights(order: usize) -> Option<&'static [f64]> {
    match order {
        2 => Some(&[1.0]),
        4 => Some(&[4.0 / 3.0, -1.0 / 6.0]),
        6 => Some(&[3.0 / 2.0, -3.0 / 10.0, 1.0 / 30.0]),
        _ => None,
    }
}

/// A cell so far away along an axis.
struct Far<'a, 'g> {
    s: &'a Scope<'g>,
    names: &'a Names,
    axis: usize,
    distance: i32,
}

impl<'g> Far<'_, 'g> {
    fn of(&self, name: &str) -> Expr<'g> {
        self.s.field(name).along(self.axis, self.distance)
    }

    fn velocity(&self, axis: usize) -> Expr<'g> {
        self.of(self.names.velocity(axis))
    }
}

/// Returns the flux of a conserved quantity between two cells along their axis:
/// C = ρ̄ ū, momentum C ū_d + p̄, energy C (ē + ½ u·u⁺) + ½ (u p⁺ + u⁺ p), species C Ȳ.
fn between<'g>(low: &Far<'_, 'g>, high: &Far<'_, 'g>, name: &str) -> Expr<'g> {
    let (names, axis) = (low.names, low.axis);
    let mean = |name: &str| 0.5 * (low.of(name) + high.of(name));
    let mass = mean("rho") * mean(names.velocity(axis));
    if name == "rho" {
        return mass;
    }
    if name == "energy" {
        let products = (0..names.axes).map(|other| low.velocity(other) * high.velocity(other));
        let kinetic = products.reduce(|sum, product| sum + product).map(|sum| 0.5 * sum);
        let carried = kinetic.map_or(mean("e"), |kinetic| mean("e") + kinetic);
        let work = 0.5 * (low.velocity(axis) * high.of("p") + high.velocity(axis) * low.of("p"));
        return mass * carried + work;
    }
    match (0..names.axes).find(|&other| names.momentum(other) == name) {
        Some(other) if other == axis => mass * mean(names.velocity(other)) + mean("p"),
        Some(other) => mass * mean(names.velocity(other)),
        // A partial density.
        None => {
            let fraction = |far: &Far<'_, 'g>| names.fraction(name, |name| far.of(name));
            mass * (0.5 * (fraction(low) + fraction(high)))
        }
    }
}

/// Returns what a cell loses of a conserved quantity along an axis, times the width of a cell.
pub fn outflow<'g>(s: &Scope<'g>, names: &Names, axis: usize, order: usize, name: &str) -> Expr<'g> {
    let far = |distance: i32| Far { s, names, axis, distance };
    let mut sum = None;
    for (apart, &weight) in (1..).zip(weights(order).unwrap_or(&[1.0])) {
        let own = between(&far(0), &far(apart), name) - between(&far(-apart), &far(0), name);
        sum = Some(match sum {
            None => own * weight,
            Some(sum) => own.mul_add(weight, sum),
        });
    }
    sum.unwrap_or_else(|| s.constant(0.0))
}
