//! Stresses, conduction of heat, and diffusion of species.

use abide_core::Expr;
use abide_core::program::Scope;

use super::names::{Names, width};
use super::{Flow, Fluid};

/// Returns the weights of the first derivative at a face, of the differences between the cells 1, 2, … on both sides.
fn at_face(order: usize) -> &'static [f64] {
    match order {
        2 => &[1.0],
        4 => &[9.0 / 8.0, -1.0 / 24.0],
        _ => &[75.0 / 64.0, -25.0 / 384.0, 3.0 / 640.0],
    }
}

/// Returns the weights of the first derivative in a cell, of the differences between the cells 1, 2, … away.
fn in_cell(order: usize) -> &'static [f64] {
    match order {
        2 => &[1.0 / 2.0],
        4 => &[2.0 / 3.0, -1.0 / 12.0],
        _ => &[3.0 / 4.0, -3.0 / 20.0, 1.0 / 60.0],
    }
}

/// A face normal to an axis, between the cell before and this one.
struct Face<'a, 'g> {
    s: &'a Scope<'g>,
    names: &'a Names,
    axis: usize,
    order: usize,
}

impl<'g> Face<'_, 'g> {
    fn tap(&self, name: &str, along: i32, across: Option<(usize, i32)>) -> Expr<'g> {
        let mut offset = vec![0; self.names.axes];
        offset[self.axis] = along;
        if let Some((axis, distance)) = across {
            offset[axis] = distance;
        }
        self.s.field(name).at_slice(&offset)
    }

    /// Returns the mean of a quantity of the cells.
    fn mean(&self, name: &str) -> Expr<'g> {
        0.5 * (self.tap(name, -1, None) + self.tap(name, 0, None))
    }

    /// Returns a quantity's derivative along an axis.
    fn slope(&self, name: &str, axis: usize) -> Expr<'g> {
        let sum = |terms: Vec<(f64, Expr<'g>)>| {
            let weighted = terms.into_iter().map(|(weight, difference)| difference * weight);
            weighted.reduce(|sum, term| sum + term).unwrap_or_else(|| self.s.constant(0.0))
        };
        let difference = match axis == self.axis {
            true => sum((0..)
                .zip(at_face(self.order))
                .map(|(k, &weight)| (weight, self.tap(name, k, None) - self.tap(name, -1 - k, None)))
                .collect()),
            // Across, the mean of the derivatives in both cells.
            false => sum((1..)
                .zip(in_cell(self.order))
                .flat_map(|(k, &weight)| [-1, 0].map(|cell| (k, 0.5 * weight, cell)))
                .map(|(k, weight, cell)| {
                    let [low, high] = [-k, k].map(|far| self.tap(name, cell, Some((axis, far))));
                    (weight, high - low)
                })
                .collect()),
        };
        difference / width(self.s, self.names, axis)
    }

    /// Returns viscosity and conductivity.
    fn coefficients(&self, flow: &Flow) -> [Expr<'g>; 2] {
        match flow.fluid {
            Fluid::Real(_) => [self.mean("mu"), self.mean("lambda")],
            Fluid::Ideal { gamma, constant } => {
                let viscosity = self.s.param("viscosity");
                let capacity = gamma * constant / (gamma - 1.0);
                [viscosity, viscosity * capacity / self.s.param("Pr")]
            }
        }
    }

    /// Returns the flux through the face, in the order of what is conserved.
    fn flux(&self, flow: &Flow) -> Vec<Option<Expr<'g>>> {
        let (names, axis) = (self.names, self.axis);
        let [viscosity, conductivity] = self.coefficients(flow);
        let slopes: Vec<Expr<'g>> =
            (0..names.axes).map(|other| self.slope(names.velocity(other), other)).collect();
        let spread = slopes.iter().copied().reduce(|sum, slope| sum + slope).unwrap_or(viscosity);
        let stress = |other: usize| match other == axis {
            true => viscosity * (2.0 * slopes[axis] - (2.0 / 3.0) * spread),
            false => {
                viscosity
                    * (self.slope(names.velocity(other), axis) + self.slope(names.velocity(axis), other))
            }
        };
        let stresses: Vec<Expr<'g>> = (0..names.axes).map(stress).collect();
        let work =
            stresses.iter().enumerate().map(|(other, &stress)| stress * self.mean(names.velocity(other)));
        let work = work.reduce(|sum, term| sum + term).unwrap_or(viscosity);
        let mut energy = -(conductivity * self.slope("T", axis)) - work;
        let mut masses = vec![None; names.masses().len()];
        if flow.diffuses() {
            let diffusion = self.diffusion();
            for (number, &mass) in diffusion.iter().enumerate() {
                energy = energy + mass * self.mean(&format!("h[{number}]"));
            }
            masses = diffusion.into_iter().map(Some).collect();
        }
        masses
            .into_iter()
            .chain(stresses.into_iter().map(|stress| Some(-stress)))
            .chain([Some(energy)])
            .collect()
    }

    /// Returns the flux of each species: −ρ D_i ∂Y_i, and what makes their sum 0, by their fractions.
    fn diffusion(&self) -> Vec<Expr<'g>> {
        let density = self.mean("rho");
        let fraction = |name: &str, cell: i32| self.names.fraction(name, |name| self.tap(name, cell, None));
        let names = self.names.masses();
        let pairs: Vec<[Expr<'g>; 2]> =
            names.iter().map(|name| [fraction(name, -1), fraction(name, 0)]).collect();
        let own = |(number, [low, high]): (usize, &[Expr<'g>; 2])| {
            let slope = (*high - *low) / width(self.s, self.names, self.axis);
            -(density * self.mean(&format!("D[{number}]")) * slope)
        };
        let own: Vec<Expr<'g>> = pairs.iter().enumerate().map(own).collect();
        let excess = own.iter().copied().reduce(|sum, flux| sum + flux).unwrap_or(density);
        own.into_iter().zip(pairs).map(|(own, [low, high])| own - 0.5 * (low + high) * excess).collect()
    }
}

/// Returns the fluxes through a face normal to an axis, in the order of what is conserved; none of mass where nothing diffuses.
pub fn fluxes<'g>(s: &Scope<'g>, names: &Names, axis: usize, flow: &Flow) -> Vec<Option<Expr<'g>>> {
    Face { s, names, axis, order: flow.order }.flux(flow)
}
