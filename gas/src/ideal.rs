//! The mixture as an ideal gas: NASA's polynomials, summed over the species before they are evaluated.

use abide_core::Expr;
use abide_core::expr::Graph;

use crate::Mixture;
use crate::species::Nasa7;
use crate::sum::{Fractions, polynomial};

/// Coefficients of a mixture's polynomials, for all species of one middle temperature.
#[derive(Debug, Clone)]
pub struct Ideal<'g> {
    groups: Vec<Group<'g>>,
}

#[derive(Debug, Clone)]
struct Group<'g> {
    middle: f64,
    low: [Option<Expr<'g>>; 7],
    high: [Option<Expr<'g>>; 7],
}

impl<'g> Ideal<'g> {
    /// Sums the coefficients of species with mole fractions `x`.
    pub fn of(gas: &Mixture, x: &Fractions<'g>) -> Self {
        let thermo = |i: usize| &gas.species()[i].thermo;
        let mut middles: Vec<f64> = (0..x.len()).map(|i| thermo(i).middle).collect();
        middles.sort_by(f64::total_cmp);
        middles.dedup();
        let groups = middles.into_iter().map(|middle| {
            let sum = |of: &dyn Fn(usize) -> f64| {
                let weight = |i| if thermo(i).middle == middle { of(i) } else { 0.0 };
                x.weighted(&(0..x.len()).map(weight).collect::<Vec<f64>>())
            };
            Group {
                middle,
                low: std::array::from_fn(|k| sum(&|i| thermo(i).low[k])),
                high: std::array::from_fn(|k| sum(&|i| thermo(i).high[k])),
            }
        });
        Ideal { groups: groups.collect() }
    }

    /// Takes the coefficients of one species alone.
    pub fn of_species(graph: &'g Graph, thermo: &Nasa7) -> Self {
        let constants = |all: &[f64; 7]| all.map(|value| Some(graph.constant(value)));
        let (low, high) = (constants(&thermo.low), constants(&thermo.high));
        Ideal { groups: vec![Group { middle: thermo.middle, low, high }] }
    }

    /// Returns the coefficients at a temperature. Each is the sum over groups.
    fn coefficients(&self, temperature: Expr<'g>) -> [Expr<'g>; 7] {
        let zero = temperature.graph().constant(0.0);
        std::array::from_fn(|k| {
            let groups = self.groups.iter().filter_map(|group| {
                let (low, high) = (group.low[k], group.high[k]);
                let is_low = temperature.le(group.middle);
                (low.is_some() || high.is_some())
                    .then(|| is_low.select(low.unwrap_or(zero), high.unwrap_or(zero)))
            });
            groups.reduce(|sum, group| sum + group).unwrap_or(zero)
        })
    }

    /// Returns c_p°/R.
    pub fn heat_capacity(&self, temperature: Expr<'g>) -> Expr<'g> {
        polynomial(temperature, &self.coefficients(temperature)[..5])
    }

    /// Returns h°/R in K.
    pub fn enthalpy(&self, temperature: Expr<'g>) -> Expr<'g> {
        let [a0, a1, a2, a3, a4, a5, _] = self.coefficients(temperature);
        polynomial(temperature, &[a5, a0, a1 * 0.5, a2 * (1.0 / 3.0), a3 * 0.25, a4 * 0.2])
    }

    /// Returns s°/R of the species at 101325 Pa each, without that of mixing.
    pub fn entropy(&self, temperature: Expr<'g>) -> Expr<'g> {
        let [a0, a1, a2, a3, a4, _, a6] = self.coefficients(temperature);
        let powers = polynomial(temperature, &[a6, a1, a2 * 0.5, a3 * (1.0 / 3.0), a4 * 0.25]);
        a0.mul_add(temperature.log(), powers)
    }
}
