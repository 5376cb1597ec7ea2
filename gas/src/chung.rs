//! Viscosity and thermal conductivity of dense gases by Chung's method (Poling, Prausnitz and O'Connell, 5th ed.,
//! eq. 9-4.11, 9-5.24 to 9-5.44, 9-6.18 to 9-6.23 and 10-5.5 to 10-5.9).

use abide_core::Expr;

use crate::GAS_CONSTANT;
use crate::coefficients::{DiluteViscosity, HeatCapacity, MolarDensity};
use crate::composition::ChungSums;
use crate::species::{DIAMETER_PER_ROOT, TEMPERATURE_PER_DEPTH};
use crate::state::State;
use crate::sum::polynomial;

/// The quantities of the mixture that both properties have, in Chung's units: cm³/mol, K, g/mol.
struct Mixed<'g> {
    /// T* = T k/ε.
    reduced: Expr<'g>,
    /// T/Tc.
    to_critical: Expr<'g>,
    /// Tc.
    critical: Expr<'g>,
    /// Vc^−⅔.
    volume: Expr<'g>,
    /// M_m.
    mass: Expr<'g>,
    /// ω.
    acentric: Option<Expr<'g>>,
    /// ω, μ_r⁴ and κ.
    corrections: [Option<Expr<'g>>; 3],
    /// F_c/Ω.
    dilute: Expr<'g>,
    /// √T*.
    root: Expr<'g>,
    /// y = ρ Vc/6 and G1.
    y: Expr<'g>,
    g1: Expr<'g>,
}

impl<'g> State<'_, 'g> {
    fn mixed(&self) -> Mixed<'g> {
        let ChungSums { size, depth, acentric, dipole, association, mass } = self.composition.chung;
        let (t, graph) = (self.temperature, self.temperature.graph());
        // σ_m³ = (Σ x σ^1.5)², ε_m = (Σ x σ^1.5 √ε)²/σ_m³.
        let cube = size * size;
        let well = depth * depth / cube;
        let critical = well * TEMPERATURE_PER_DEPTH;
        let volume = cube * DIAMETER_PER_ROOT.powi(-3);
        let per_area = (volume.log() * (-2.0 / 3.0)).exp();
        let acentric = acentric.map(|sum| sum / size);
        // μ_r⁴ = 131.3⁴ μ_m⁴/(Vc Tc)², μ_m⁴ = σ_m³ (Σ x μ²/σ^1.5)².
        let dipole = dipole.map(|sum| {
            let ratio = sum * 131.3f64.powi(2) / (volume * critical);
            cube * ratio * ratio
        });
        let association = association.map(|sum| sum * sum);
        let corrections = [acentric, dipole, association];
        // M_m = [Σ C_ij x_i x_j/(ε_m σ_m²)]², σ_m² = 0.809² Vc^⅔.
        let root_of_mass = mass * per_area / (well * DIAMETER_PER_ROOT.powi(2));
        let mass = root_of_mass * root_of_mass;
        let reduced = t / well;
        // The collision integral of Neufeld, Janzen and Aziz, without the oscillating term.
        let omega = (reduced.log() * -0.14874).exp() * 1.16145;
        let omega = (reduced * -0.77320).exp().mul_add(0.52487, omega);
        let omega = (reduced * -2.43787).exp().mul_add(2.16178, omega);
        let shape = corrected(graph.constant(1.0), &[-0.2756, 0.059035, 1.0], &corrections);
        // Vc in m³, over the molar volume.
        let filled = volume * (1e-6 / 6.0) / self.molar_volume();
        let y = match self.composition.gas.chung.molar_density {
            MolarDensity::MeanMass => filled,
            MolarDensity::ChungMass => filled * (self.composition.molar_mass() * 1000.0) / mass,
        };
        let free = 1.0 - y;
        Mixed {
            reduced,
            to_critical: t / critical,
            critical,
            volume: per_area,
            mass,
            acentric,
            corrections,
            dilute: shape / omega,
            root: reduced.sqrt(),
            y,
            g1: y.mul_add(-0.5, 1.0) / (free * free * free),
        }
    }

    /// Returns the viscosity in Pa s. Chung's correlation is negative for some liquids of associating species where
    /// their association factors do not count.
    pub fn viscosity(&self) -> Expr<'g> {
        let m = self.mixed();
        let e = m.coefficients(&self.composition.gas.chung.viscosity);
        let g2 = m.contact([e[0], e[1], e[2], e[3], e[4]]);
        let inverse = 1.0 / m.reduced;
        let dense = e[6] * m.y * m.y * g2 * polynomial(inverse, &[e[7], e[8], e[9]]).exp();
        let kinetic = (m.root * m.dilute).mul_add(e[5].mul_add(m.y, 1.0 / g2), dense);
        kinetic * 36.344e-7 * (m.mass * m.critical).sqrt() * m.volume
    }

    /// Returns the thermal conductivity in W/(m K).
    pub fn conductivity(&self) -> Expr<'g> {
        let (t, m, chung) = (self.temperature, self.mixed(), &self.composition.gas.chung);
        let b = m.coefficients(&chung.conductivity);
        let h2 = m.contact([b[0], b[1], b[2], b[3], b[4]]);
        let dilute = m.dilute * (m.mass * t).sqrt() * m.volume;
        let viscosity = dilute
            * match chung.dilute_viscosity {
                DiluteViscosity::ByVolume => 40.785e-7,
                DiluteViscosity::ByDiameter => 26.69e-7 / DIAMETER_PER_ROOT.powi(2),
            };
        let alpha = match chung.heat_capacity {
            HeatCapacity::Ideal => self.composition.ideal.heat_capacity(t) - 2.5,
            HeatCapacity::Real => self.molar_heat_capacity() * (1.0 / GAS_CONSTANT) - 1.5,
        };
        let graph = t.graph();
        let beta = match m.acentric {
            Some(w) => w.mul_add(1.3168, -0.7109).mul_add(w, 0.7862),
            None => graph.constant(0.7862),
        };
        let zeta = (m.to_critical * m.to_critical).mul_add(10.5, 2.0);
        let above = zeta.mul_add(0.26665, beta.mul_add(-1.061, alpha.mul_add(0.28288, 0.215)));
        // The digits of the source, which are no 2/π.
        #[allow(clippy::approx_constant)]
        let below = (alpha * beta).mul_add(1.061, beta.mul_add(zeta, 0.6366));
        let psi = alpha.mul_add(above / below, 1.0);
        let per_mass = 1000.0 / m.mass;
        let q = (m.critical * per_mass).sqrt() * m.volume * 3.586e-3;
        let dense = q * b[6] * m.y * m.y * m.to_critical.sqrt() * h2;
        (viscosity * psi * per_mass * 31.2).mul_add(b[5].mul_add(m.y, 1.0 / h2), dense)
    }
}

impl<'g> Mixed<'g> {
    /// Returns the coefficients of the mixture: each row is that of 1, ω, μ_r⁴ and κ.
    fn coefficients<const N: usize>(&self, rows: &[[f64; 4]; N]) -> [Expr<'g>; N] {
        rows.map(|[first, others @ ..]| corrected(self.y.graph().constant(first), &others, &self.corrections))
    }

    /// Returns G2 of the viscosity, or H2 of the conductivity:
    /// [c1 (1 − e^{−c4 y})/y + c2 G1 e^{c5 y} + c3 G1]/(c1 c4 + c2 + c3).
    fn contact(&self, [c1, c2, c3, c4, c5]: [Expr<'g>; 5]) -> Expr<'g> {
        let first = c1 * c4 * fading(c4 * self.y);
        let others = self.g1 * c2.mul_add((c5 * self.y).exp(), c3);
        (first + others) / (c1.mul_add(c4, c2) + c3)
    }
}

/// Below this size [`fading`] is its series.
const SMALL: f64 = 0.25;

/// Terms of the series of [`fading`]: what is left is below 1e-17 for [`SMALL`] arguments.
const TERMS: i32 = 12;

/// Returns (1 − e^−z)/z. Of a small z the difference would have few digits: its series is Σ (−z)^k/(k+1)!.
fn fading(z: Expr<'_>) -> Expr<'_> {
    let mut factorial = 1.0;
    let coefficients = (0..TERMS).map(|k| {
        factorial *= f64::from(k + 1);
        z.graph().constant(if k % 2 == 0 { 1.0 / factorial } else { -1.0 / factorial })
    });
    let series = polynomial(z, &coefficients.collect::<Vec<_>>());
    z.abs().lt(SMALL).select(series, (1.0 - (-z).exp()) / z)
}

/// Returns a value with terms added to it, each a weight times a quantity that the mixture may not have.
fn corrected<'g, const N: usize>(
    first: Expr<'g>,
    weights: &[f64; N],
    by: &[Option<Expr<'g>>; N],
) -> Expr<'g> {
    by.iter().zip(weights).fold(first, |sum, (value, &weight)| match value {
        Some(value) => value.mul_add(weight, sum),
        None => sum,
    })
}
