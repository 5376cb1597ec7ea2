//! Temperatures from energy and enthalpy, by Newton's method of a fixed count of steps.

use abide_core::Expr;

use crate::Composition;
use crate::state::{State, logarithm, molar_energy, molar_heat_capacity};

/// Newton's steps that find the temperature to rounding from a guess some five times off. From the temperature of
/// the step before, in a flow, 3 suffice.
pub const NEWTON_STEPS: usize = 8;

/// The most by which a step multiplies or divides the temperature: a bad guess does not end below 0, nor where the
/// polynomials mean nothing.
const MOST: f64 = 2.0;

impl<'g> Composition<'_, 'g> {
    /// Returns the temperature in K of a density in kg/m³ and an internal energy in J/kg, by `steps` of Newton's
    /// method from a guess in K: at a constant volume L is constant, and the slope is c_v.
    ///
    /// The polynomials of a species jump at their middle temperature, by up to 2e-5 R T in the enthalpy. An energy
    /// within a jump is that of no temperature; the result is then within rounding of the middle temperature's side
    /// that the last step met.
    pub fn temperature_of_energy(
        &self,
        density: Expr<'g>,
        energy: Expr<'g>,
        guess: Expr<'g>,
        steps: usize,
    ) -> Expr<'g> {
        let (molar, volume) = (energy * self.molar_mass, self.molar_mass / density);
        let logarithm = logarithm(volume, self.covolume);
        self.x.iterated(steps, guess, |t| {
            let attraction = self.attraction(t);
            let excess = molar_energy(self, t, &attraction, logarithm) - molar;
            newton(t, excess / molar_heat_capacity(self, t, &attraction, logarithm))
        })
    }

    /// Returns the temperature in K of an enthalpy in J/kg and a pressure in Pa, by `steps` of Newton's method from a
    /// guess in K; the slope is c_p. Every step solves the equation of state for the volume.
    pub fn temperature_of_enthalpy(
        &self,
        enthalpy: Expr<'g>,
        pressure: Expr<'g>,
        guess: Expr<'g>,
        steps: usize,
    ) -> Expr<'g> {
        self.x.iterated(steps, guess, |t| {
            let state = State::at(self, t, pressure);
            newton(t, (state.enthalpy() - enthalpy) / state.heat_capacity_at_pressure())
        })
    }
}

fn newton<'g>(t: Expr<'g>, step: Expr<'g>) -> Expr<'g> {
    (t - step).max(t * (1.0 / MOST)).min(t * MOST)
}
