//! Mass diffusivities of dilute gases by the theory of Chapman and Enskog (Poling, Prausnitz and O'Connell, 5th ed.,
//! eq. 11-3.1 to 11-3.8; Neufeld, Janzen and Aziz, J. Chem. Phys. 57 (1972) 1100).

use abide_core::Expr;

use crate::GAS_CONSTANT;
use crate::species::{Critical, DIAMETER_PER_ROOT, Species, TEMPERATURE_PER_DEPTH};
use crate::state::State;
use crate::sum::{At, Fractions};

/// Avogadro's constant in 1/mol, exact by the SI of 2019.
const AVOGADRO: f64 = 6.02214076e23;

/// μ²/(2 ε σ³) of 1 D² in K Å³: 10⁻³⁶ erg cm³ over 2 k with k = 1.380649·10⁻¹⁶ erg/K.
const POLARITY: f64 = 1e-12 / (2.0 * 1.380649e-16);

/// What a fraction counts at least, so that a pure gas has the diffusivities of traces in it.
const TRACE: f64 = 1e-20;

/// The constants of the pairs of species, row by row. Those of a species with itself are there too.
#[derive(Debug, Clone, PartialEq)]
pub struct Diffusion {
    count: usize,
    /// D_ij p/(T^{3/2}/Ω), its reciprocal, in SI units.
    resistance: Vec<f64>,
    /// k/ε_ij in 1/K, and (ε_ij/k)^0.1561.
    inverse: Vec<f64>,
    power: Vec<f64>,
    /// 0.19 δ_ij² ε_ij/k in K.
    polar: Vec<f64>,
    /// Molar masses in kg/mol.
    mass: Vec<f64>,
}

/// The exponent of the first term of the collision integral.
const EXPONENT: f64 = 0.15610;

impl Diffusion {
    /// Takes the species' own potentials, and of those without the potentials that Chung's method has: σ = 0.809 Vc^⅓,
    /// ε/k = Tc/1.2593.
    pub fn of(species: &[Species], critical: &[Critical]) -> Diffusion {
        let potential = |(species, critical): (&Species, &Critical)| {
            species.lennard_jones.unwrap_or_else(|| {
                let diameter = DIAMETER_PER_ROOT * (critical.volume * 1e6).cbrt();
                [diameter, critical.temperature / TEMPERATURE_PER_DEPTH]
            })
        };
        let potentials: Vec<[f64; 2]> = species.iter().zip(critical).map(potential).collect();
        let mass: Vec<f64> = species.iter().map(|species| species.molar_mass).collect();
        let polarity = |i: usize| {
            let [sigma, depth] = potentials[i];
            POLARITY * species[i].dipole * species[i].dipole / (depth * sigma.powi(3))
        };
        let count = species.len();
        let each = |pair: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..count * count).map(|at| pair(at / count, at % count)).collect()
        };
        let depth = |i: usize, j: usize| (potentials[i][1] * potentials[j][1]).sqrt();
        let resistance = |i: usize, j: usize| {
            let sigma = 0.5e-10 * (potentials[i][0] + potentials[j][0]);
            let reduced = mass[i] * mass[j] / (mass[i] + mass[j]);
            let area = std::f64::consts::PI * sigma * sigma * AVOGADRO;
            16.0 / 3.0 * area * (reduced / std::f64::consts::TAU).sqrt() / GAS_CONSTANT.powf(1.5)
        };
        Diffusion {
            count,
            resistance: each(&resistance),
            inverse: each(&|i, j| 1.0 / depth(i, j)),
            power: each(&|i, j| depth(i, j).powf(EXPONENT)),
            polar: each(&|i, j| 0.19 * polarity(i) * polarity(j) * depth(i, j)),
            mass,
        }
    }

    /// Returns a constant of a pair of species.
    fn pair<'g>(&self, all: &[f64], i: usize, j: At<'g>) -> Expr<'g> {
        match j {
            At::Number(graph, j) => graph.constant(all[i * self.count + j]),
            At::Index(graph, j) => graph.table_of(self.count, all).at_row(graph.index(i), j),
        }
    }
}

impl<'g> State<'_, 'g> {
    /// Returns p/(T^{3/2} D_ij) over the constant of the pair: the collision integral Ω.
    fn collisions(&self, i: usize, j: At<'g>) -> Expr<'g> {
        let (all, t) = (&self.composition.gas.diffusion, self.temperature);
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
        let all = &self.composition.gas.diffusion;
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
        let (x, all) = (&self.composition.x, &self.composition.gas.diffusion);
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
