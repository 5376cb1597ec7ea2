//! What one more mole of a species adds: partial volumes and enthalpies, and with them the derivatives by the mass fractions
//! (Michelsen and Mollerup, Thermodynamic Models, 2nd ed. 2007, ch. 3).

use abide_core::Expr;

use crate::GAS_CONSTANT;
use crate::composition::thermal;
use crate::ideal::Ideal;
use crate::state::{State, denominator};
use crate::sum::At;

/// What a species adds to a mole of mixture at its temperature and volume: pressure in Pa, and energy in J/mol.
struct Added<'g> {
    pressure: Expr<'g>,
    energy: Expr<'g>,
}

impl<'g> State<'_, 'g> {
    /// Returns the sums Σ_j (1 − k_ij) u_j and Σ_j (1 − k_ij) v_j of a species, u and v those of the attraction.
    fn attracted(&self, i: usize) -> [Expr<'g>; 2] {
        let (gas, graph) = (self.composition.gas, self.temperature.graph());
        let mut sums = self.composition.sizes(self.temperature);
        for &(one, other, k) in &gas.equation.interactions {
            let j = match (one == i, other == i) {
                (true, _) => other,
                (_, true) => one,
                _ => continue,
            };
            let own = self.composition.own(self.temperature, At::Number(graph, j));
            sums = std::array::from_fn(|part| own[part].mul_add(-k, sums[part]));
        }
        sums
    }

    /// With D_i = ∂(n² a)/∂n_i = 2 q_i Σ_j (1 − k_ij) u_j and L_b = (V/D − L)/b: p_i and U_i at constant T, V.
    fn added(&self, i: usize) -> Added<'g> {
        let (gas, t, graph) = (self.composition.gas, self.temperature, self.temperature.graph());
        let (v, b, attraction) = (self.molar_volume(), self.composition.covolume, &self.attraction);
        let [u_sum, v_sum] = self.attracted(i);
        let [q, slope] = self.composition.constants(t, At::Number(graph, i));
        let own = 2.0 * q * u_sum;
        let own_first = -(slope.mul_add(u_sum, q * v_sum) / t.sqrt());
        let (free, inverse) = (1.0 / (v - b), 1.0 / denominator(v, b));
        let covolume = gas.equation.covolume[i];
        // Of the repulsion R T/(V − b), and of the attraction a/(V² + 2 V b − b²).
        let repelled = thermal(t) * free * (free * covolume + 1.0);
        let attracted = (attraction.value * (2.0 * covolume) * (v - b) * inverse - own) * inverse;
        let by_covolume = (v * inverse - self.logarithm) / b * covolume;
        let ideal = (Ideal::of_species(graph, &gas.species()[i].thermo).enthalpy(t) - t) * GAS_CONSTANT;
        let excess = t.mul_add(attraction.first, -attraction.value);
        let energy = t.mul_add(own_first, -own).mul_add(self.logarithm, ideal);
        Added { pressure: repelled + attracted, energy: excess.mul_add(by_covolume, energy) }
    }

    /// Returns a quantity per mole of a species, per kilogram of it.
    fn per_mass_of(&self, i: usize, molar: Expr<'g>) -> Expr<'g> {
        molar * (1.0 / self.composition.gas.species()[i].molar_mass)
    }

    /// Returns the partial volume of each species in m³/kg: what a kilogram of it adds at constant temperature and pressure.
    /// The sum of Y_i times these is 1/ρ.
    pub fn partial_volumes(&self) -> Vec<Expr<'g>> {
        let each = |i: usize| self.per_mass_of(i, self.partial_molar_volume(&self.added(i)));
        (0..self.composition.x.len()).map(each).collect()
    }

    /// Returns −p_i/p_V in m³/mol.
    fn partial_molar_volume(&self, added: &Added<'g>) -> Expr<'g> {
        -(added.pressure / self.pressure_by_volume())
    }

    /// Returns the partial enthalpy of each species in J/kg: what a kilogram of it adds at constant temperature and pressure,
    /// which is ∂h/∂Y_i with all others held. The sum of Y_i times these is h.
    pub fn partial_enthalpies(&self) -> Vec<Expr<'g>> {
        let each = |i: usize| {
            let added = self.added(i);
            let work = self.temperature * self.pressure_by_temperature();
            self.per_mass_of(i, work.mul_add(self.partial_molar_volume(&added), added.energy))
        };
        (0..self.composition.x.len()).map(each).collect()
    }

    /// Returns ∂ρ/∂Y_i at constant temperature and pressure in kg/m³, with all others held: −ρ² times the partial volume.
    pub fn density_by_fractions(&self) -> Vec<Expr<'g>> {
        let density = self.density();
        self.partial_volumes().into_iter().map(|volume| -(density * density * volume)).collect()
    }
}
