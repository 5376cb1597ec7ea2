//! The constants of pairs of molecules that collide, by the theory of Chapman and Enskog (Poling, Prausnitz and O'Connell, 5th ed.,
//! eq. 11-3.1 to 11-3.8).

use abide_core::Expr;

use crate::GAS_CONSTANT;
use crate::species::{Critical, DIAMETER_PER_ROOT, Species, TEMPERATURE_PER_DEPTH};
use crate::sum::At;

/// Avogadro's constant in 1/mol, exact by the SI of 2019.
const AVOGADRO: f64 = 6.02214076e23;

/// μ²/(2 ε σ³) of 1 D² in K Å³: 10⁻³⁶ erg cm³ over 2 k with k = 1.380649·10⁻¹⁶ erg/K.
const POLARITY: f64 = 1e-12 / (2.0 * 1.380649e-16);

/// The constants of the pairs of species, row by row. Those of a species with itself are there too.
#[derive(Debug, Clone, PartialEq)]
pub struct Collisions {
    pub count: usize,
    /// T^{3/2}/(D_ij p Ω), in SI units.
    pub resistance: Vec<f64>,
    /// k/ε_ij in 1/K, and (ε_ij/k)^0.1561.
    pub inverse: Vec<f64>,
    pub power: Vec<f64>,
    /// 0.19 δ_ij² ε_ij/k in K.
    pub polar: Vec<f64>,
    /// Molar masses in kg/mol, of the species.
    pub mass: Vec<f64>,
}

/// The exponent of the first term of the collision integral.
pub const EXPONENT: f64 = 0.15610;

impl Collisions {
    /// Takes the species' own potentials, and of those without the potentials that Chung's method has: σ = 0.809 Vc^⅓,
    /// ε/k = Tc/1.2593.
    pub fn of(species: &[Species], critical: &[Critical]) -> Collisions {
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
        Collisions {
            count,
            resistance: each(&resistance),
            inverse: each(&|i, j| 1.0 / depth(i, j)),
            power: each(&|i, j| depth(i, j).powf(EXPONENT)),
            polar: each(&|i, j| 0.19 * polarity(i) * polarity(j) * depth(i, j)),
            mass,
        }
    }

    /// Returns a constant of a pair of species.
    pub fn pair<'g>(&self, all: &[f64], i: usize, j: At<'g>) -> Expr<'g> {
        match j {
            At::Number(graph, j) => graph.constant(all[i * self.count + j]),
            At::Index(graph, j) => graph.table_of(self.count, all).at_row(graph.index(i), j),
        }
    }
}
