//! Mass diffusivities of dilute gases by the theory of Chapman and Enskog (Poling, Prausnitz and O'Connell, 5th ed.,
//! eq. 11-3.1 to 11-3.8; Neufeld, Janzen and Aziz, J. Chem. Phys. 57 (1972) 1100).

use abide_core::Expr;

use crate::collisions::EXPONENT;
use crate::state::State;
use crate::sum::{At, Fractions};

/// What a fraction counts at least, so that a pure gas has the diffusivities of traces in it.
const TRACE: f64 = 1e-20;

impl<'g> State<'_, 'g> {
    /// Returns p/(T^{3/2} D_ij) over the constant of the pair: the collision integral Ω.
    fn collisions(&self, i: usize, j: At<'g>) -> Expr<'g> {
        let (all, t) = (&self.composition.gas.collisions, self.temperature);
        let reduced = t * all.pair(&all.inverse, i, j);
        let first = (t.log() * -EXPONENT).exp() * 1.06036;
        let mut sum = first * all.pair(&all.power, i, j);
        for (rate, weight) in [(-0.47635, 0.19300), (-1.52996, 1.03587), (-3.89411, 1.76474)] {
            sum = (reduced * rate).exp().mul_add(weight, sum);
        }
        match all.polar.iter().any(|&polar| polar != 0.0) {
            true => all.pair(&all.polar, i, j).mul_add(1.0 / t, sum),
            false => sum,
        }
    }

    /// Returns p/T^{3/2} in Pa/K^{3/2}.
    fn crowding(&self) -> Expr<'g> {
        self.pressure() / (self.temperature * self.temperature.sqrt())
    }

    /// Returns 1/D_ij in s/m².
    fn resistance(&self, i: usize, j: At<'g>) -> Expr<'g> {
        let all = &self.composition.gas.collisions;
        all.pair(&all.resistance, i, j) * self.collisions(i, j)
    }

    /// Returns the binary diffusivity of two species in m²/s, that of the dilute gas at the state's temperature and pressure.
    pub fn binary_diffusivity(&self, i: usize, j: usize) -> Expr<'g> {
        1.0 / (self.crowding() * self.resistance(i, At::Number(self.temperature.graph(), j)))
    }

    /// Returns the binary diffusivities of all pairs of different species `i < j`, by `i` and then by `j`.
    pub fn binary_diffusivities(&self) -> Vec<Expr<'g>> {
        let count = self.composition.x.len();
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        pairs.map(|(i, j)| self.binary_diffusivity(i, j)).collect()
    }

    /// Returns the diffusivity of each species into the mixture in m²/s: (1 − Y_i)/Σ_{j≠i} x_j/D_ij. Of a pure gas it is
    /// that of traces; of a mixture of one species, its own.
    pub fn diffusivities(&self) -> Vec<Expr<'g>> {
        (0..self.composition.x.len()).map(|i| self.diffusivity(i)).collect()
    }

    /// Returns the diffusivity of a species into the mixture in m²/s.
    pub fn diffusivity(&self, i: usize) -> Expr<'g> {
        let (x, all) = (&self.composition.x, &self.composition.gas.collisions);
        if all.count == 1 {
            return self.binary_diffusivity(0, 0);
        }
        let own = |j: At<'g>, term: Expr<'g>| match j {
            At::Number(..) => term,
            // In a loop the species itself takes no part by a weight of 0.
            At::Index(graph, index) => {
                let weights: Vec<f64> = (0..all.count).map(|j| if i == j { 0.0 } else { 1.0 }).collect();
                term * graph.table(&weights).at(index)
            }
        };
        let present = |j: At<'g>| x.of(j).max(TRACE);
        // Σ_{j≠i} x_j W_j over M is 1 − Y_i without the digits that the difference loses.
        let mass = self.others(i, |j| own(j, present(j) * j.of(&all.mass)));
        let resistance = self.others(i, |j| own(j, present(j) * self.resistance(i, j)));
        mass / (self.composition.molar_mass() * self.crowding() * resistance)
    }

    /// Returns the sum over all species but one; in a loop, the term of that one should be 0.
    fn others(&self, i: usize, term: impl Fn(At<'g>) -> Expr<'g>) -> Expr<'g> {
        let (x, graph) = (&self.composition.x, self.temperature.graph());
        match x {
            Fractions::Terms(all) => {
                let terms = (0..all.len()).filter(|&j| j != i).map(|j| term(At::Number(graph, j)));
                terms.reduce(|sum, term| sum + term).unwrap_or(graph.constant(0.0))
            }
            Fractions::Loops(all) => graph.tree_sum(x.lanes(), 0..all.len(), |j| term(At::Index(graph, j))),
        }
    }
}
