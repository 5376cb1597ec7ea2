//! Temperatures from energy and enthalpy, by Newton's method of a fixed count of steps.

use abide_core::Expr;
use abide_core::expr::Graph;

use crate::Composition;
use crate::state::{State, logarithm, molar_energy, molar_heat_capacity};

/// The temperatures in K between which a state is looked for where no guess is given.
const RANGE: [f64; 2] = [20.0, 8000.0];

/// Steps that find a temperature to rounding within [`RANGE`]: of an energy, whose slope c_v is smooth, and of an enthalpy,
/// whose slope c_p has a sharp maximum near the critical point and a jump where a liquid boils.
const STEPS: [usize; 2] = [12, 32];

/// Newton's steps that find the temperature to rounding from a guess some five times off. From the temperature of
/// the step before, in a flow, 3 suffice.
pub const NEWTON_STEPS: usize = 8;

/// The most by which a step multiplies or divides the temperature: a bad guess does not end below 0, nor where the
/// polynomials mean nothing.
const MOST: f64 = 2.0;

impl<'m, 'g> Composition<'m, 'g> {
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

    /// Returns the state of a density in kg/m³ and an internal energy in J/kg, found without a guess between 20 and 8000 K.
    pub fn at_energy(&self, density: Expr<'g>, energy: Expr<'g>) -> State<'m, 'g> {
        let (molar, volume) = (energy * self.molar_mass, self.molar_mass / density);
        let logarithm = logarithm(volume, self.covolume);
        let found = self.between(STEPS[0], density.graph(), |t| {
            let attraction = self.attraction(t);
            let excess = molar_energy(self, t, &attraction, logarithm) - molar;
            [excess, molar_heat_capacity(self, t, &attraction, logarithm)]
        });
        self.at_density(found, density)
    }

    /// Returns the state of an enthalpy in J/kg and a pressure in Pa, found without a guess between 20 and 8000 K. An enthalpy
    /// between those of a boiling liquid and its vapour is that of no state of one phase: the result is one of the two.
    pub fn at_enthalpy(&self, enthalpy: Expr<'g>, pressure: Expr<'g>) -> State<'m, 'g> {
        let found = self.between(STEPS[1], pressure.graph(), |t| {
            let state = State::at(self, t, pressure);
            [state.enthalpy() - enthalpy, state.heat_capacity_at_pressure()]
        });
        self.at(found, pressure)
    }

    /// Returns the temperature at which what rises with it is 0: Newton's steps, and halvings (of the logarithm) where a step
    /// would leave the range in which the zero lies. `rising` returns the value and its slope.
    fn between(
        &self,
        steps: usize,
        graph: &'g Graph,
        rising: impl Fn(Expr<'g>) -> [Expr<'g>; 2],
    ) -> Expr<'g> {
        let [low, high] = RANGE.map(|end| graph.constant(end));
        let [found, ..] = graph.repeat(0..steps, [(low * high).sqrt(), low, high], |_, [t, low, high]| {
            let [value, slope] = rising(t);
            let is_below = value.lt(0.0);
            let (low, high) = (is_below.select(t, low), is_below.select(high, t));
            let next = t - value / slope;
            let is_within = next.ge(low) * next.le(high);
            [is_within.select(next, (low * high).sqrt()), low, high]
        });
        found
    }
}

fn newton<'g>(t: Expr<'g>, step: Expr<'g>) -> Expr<'g> {
    (t - step).max(t * (1.0 / MOST)).min(t * MOST)
}
