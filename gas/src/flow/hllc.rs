//! Limited slopes, and the fluxes of Riemann problems with a contact.

use abide_core::Expr;
use abide_core::program::Scope;

use super::names::{Cell, Names};

/// One side of a face.
struct Edge<'g> {
    cell: Cell<'g>,
    /// The speed of sound.
    sound: Expr<'g>,
}

/// The harmonic mean of two differences of one sign, else 0 (van Leer, J. Comput. Phys. 14 (1974) 361).
fn van_leer<'g>(before: Expr<'g>, behind: Expr<'g>) -> Expr<'g> {
    let product = before * behind;
    let is_monotone = product.gt(0.0);
    let sum = is_monotone.select(before + behind, 1.0);
    is_monotone.select(2.0 * product / sum, 0.0)
}

/// Returns a quantity at both sides of the face between the second and the third of four cells.
fn sides<'g>([a, b, c, d]: [Expr<'g>; 4]) -> [Expr<'g>; 2] {
    [b + 0.5 * van_leer(b - a, c - b), c - 0.5 * van_leer(c - b, d - c)]
}

/// Returns the flow at both sides of a face normal to an axis.
fn edges<'g>(s: &Scope<'g>, names: &Names, axis: usize) -> [Edge<'g>; 2] {
    let cells = [-2, -1, 0, 1].map(|distance| Cell::along(s, names, axis, distance));
    let of = |quantity: &dyn Fn(&Cell<'g>) -> Expr<'g>| sides(cells.each_ref().map(quantity));
    let each = |count: usize, quantity: &dyn Fn(&Cell<'g>, usize) -> Expr<'g>| -> Vec<[Expr<'g>; 2]> {
        (0..count).map(|number| of(&|cell| quantity(cell, number))).collect()
    };
    let (density, pressure) = (of(&|cell| cell.density), of(&|cell| cell.pressure));
    let energy = of(&|cell| cell.energy);
    let velocity = each(names.axes, &|cell, number| cell.velocity[number]);
    let parts = each(cells[0].parts.len(), &|cell, number| cell.parts[number]);
    let sound = sides([-2, -1, 0, 1].map(|distance| s.field("c").along(axis, distance)));
    [0, 1].map(|side| Edge {
        cell: Cell {
            density: density[side],
            velocity: velocity.iter().map(|both| both[side]).collect(),
            pressure: pressure[side],
            energy: energy[side],
            parts: parts.iter().map(|both| both[side]).collect(),
        },
        sound: sound[side],
    })
}

impl<'g> Edge<'g> {
    /// Returns the total energy per mass.
    fn total(&self) -> Expr<'g> {
        let squares = self.cell.velocity.iter().map(|&u| u * u).reduce(|sum, square| sum + square);
        squares.map_or(self.cell.energy, |squares| self.cell.energy + 0.5 * squares)
    }

    /// Returns what is conserved, per volume.
    fn conserved(&self) -> Vec<Expr<'g>> {
        let Cell { density, velocity, parts, .. } = &self.cell;
        let momenta = velocity.iter().map(|&u| *density * u);
        let energy = *density * self.total();
        Cell::masses(parts, *density).into_iter().chain(momenta).chain([energy]).collect()
    }

    /// Returns the flux of the side itself.
    fn flux(&self, axis: usize) -> Vec<Expr<'g>> {
        let Cell { density, velocity, pressure, parts, .. } = &self.cell;
        let mass = *density * velocity[axis];
        let momenta = velocity.iter().enumerate().map(|(other, &u)| match other == axis {
            true => mass * u + *pressure,
            false => mass * u,
        });
        let energy = mass * self.total() + velocity[axis] * *pressure;
        Cell::masses(parts, mass).into_iter().chain(momenta).chain([energy]).collect()
    }

    /// Returns what is conserved behind the wave of a speed that runs into the side, where the gas moves with the contact.
    fn behind(&self, axis: usize, wave: Expr<'g>, contact: Expr<'g>) -> Vec<Expr<'g>> {
        let Cell { density, velocity, pressure, parts, .. } = &self.cell;
        let squeezed = *density * (wave - velocity[axis]) / (wave - contact);
        let momenta = velocity.iter().enumerate().map(|(other, &u)| match other == axis {
            true => squeezed * contact,
            false => squeezed * u,
        });
        let work = (contact - velocity[axis]) * (contact + *pressure / (*density * (wave - velocity[axis])));
        let energy = squeezed * (self.total() + work);
        Cell::masses(parts, squeezed).into_iter().chain(momenta).chain([energy]).collect()
    }
}

/// Returns the fluxes through a face normal to an axis, in the order of what is conserved.
pub fn fluxes<'g>(s: &Scope<'g>, names: &Names, axis: usize) -> Vec<Option<Expr<'g>>> {
    let [low, high] = edges(s, names, axis);
    let speed = |edge: &Edge<'g>| edge.cell.velocity[axis];
    let (ul, ur) = (low.cell.velocity[axis], high.cell.velocity[axis]);
    let first = (ul - low.sound).min(ur - high.sound);
    let last = (ul + low.sound).max(ur + high.sound);
    // The mass per time and area that each wave takes in.
    let [taken_low, taken_high] =
        [(&low, first), (&high, last)].map(|(edge, wave)| edge.cell.density * (wave - speed(edge)));
    let pushed = high.cell.pressure - low.cell.pressure + taken_low * ul - taken_high * ur;
    let contact = pushed / (taken_low - taken_high);
    let inner = |edge: &Edge<'g>, wave: Expr<'g>| {
        let jump = edge.behind(axis, wave, contact).into_iter().zip(edge.conserved());
        let flux = edge.flux(axis).into_iter().zip(jump);
        flux.map(|(flux, (behind, own))| [flux, flux + wave * (behind - own)]).collect::<Vec<_>>()
    };
    let both = inner(&low, first).into_iter().zip(inner(&high, last));
    both.map(|([own_low, inner_low], [own_high, inner_high])| {
        let behind = contact.ge(0.0).select(inner_low, last.gt(0.0).select(inner_high, own_high));
        Some(first.ge(0.0).select(own_low, behind))
    })
    .collect()
}
