//! States of a mixture, and their properties by Peng–Robinson's equation of state.

use std::f64::consts::SQRT_2;

use abide_core::Expr;

use crate::composition::{Attraction, Composition, thermal};
use crate::sum::Fractions;
use crate::{GAS_CONSTANT, STANDARD_PRESSURE};

/// Halley's steps to the compressibility: six are enough for every root at which the iteration is monotone.
const HALLEY_STEPS: usize = 6;

/// A state of a mixture: composition, temperature and molar volume, from which all properties follow
/// (Peng and Robinson, Ind. Eng. Chem. Fundam. 15 (1976) 59).
#[derive(Debug, Clone)]
pub struct State<'m, 'g> {
    pub(crate) composition: Composition<'m, 'g>,
    pub(crate) temperature: Expr<'g>,
    pressure: Expr<'g>,
    /// V in m³/mol.
    volume: Expr<'g>,
    pub(crate) attraction: Attraction<'g>,
    /// ln[(V + (1+√2) b)/(V + (1−√2) b)]/(2√2 b) in mol/m³.
    pub(crate) logarithm: Expr<'g>,
}

/// The cubic Z³ + (B−1) Z² + (𝒜−2B−3B²) Z − (𝒜B−B²−B³).
struct Cubic<'g> {
    /// B = b p/(R T).
    b: Expr<'g>,
    /// The coefficients of Z⁰ to Z².
    c: [Expr<'g>; 3],
    /// Where the second derivative vanishes.
    turn: Expr<'g>,
}

impl<'g> Cubic<'g> {
    fn new(attraction: Expr<'g>, covolume: Expr<'g>, temperature: Expr<'g>, pressure: Expr<'g>) -> Self {
        let inverse = 1.0 / thermal(temperature);
        let a = attraction * pressure * inverse * inverse;
        let b = covolume * pressure * inverse;
        let square = b * b;
        let c = [b * (square + b - a), square.mul_add(-3.0, b.mul_add(-2.0, a)), b - 1.0];
        Cubic { b, c, turn: (1.0 - b) * (1.0 / 3.0) }
    }

    fn value(&self, z: Expr<'g>) -> Expr<'g> {
        let [c0, c1, c2] = self.c;
        (z + c2).mul_add(z, c1).mul_add(z, c0)
    }

    /// Returns a root above B by Halley's method: from B where the root lies before the turn, else from 1 + B. Both
    /// ways are monotone, since the cubic is 𝒜 at 1 + B and −2B² at B.
    fn root(&self, x: &Fractions<'g>) -> Expr<'g> {
        let [_, c1, c2] = self.c;
        let is_low = self.value(self.turn).gt(0.0) * self.turn.gt(self.b);
        x.iterated(HALLEY_STEPS, is_low.select(self.b, 1.0 + self.b), |z| {
            let value = self.value(z);
            let slope = z.mul_add(3.0, 2.0 * c2).mul_add(z, c1);
            let bend = z.mul_add(3.0, c2);
            z - value * slope / slope.mul_add(slope, -(value * bend))
        })
    }

    /// Returns the number of roots above B, 1 or 3: 3 where the cubic has a maximum above B, is positive there, and
    /// negative at its minimum.
    fn roots(&self) -> Expr<'g> {
        let square = self.turn * self.turn - self.c[1] * (1.0 / 3.0);
        let half = square.max(0.0).sqrt();
        let (maximum, minimum) = (self.turn - half, self.turn + half);
        let are_three =
            square.gt(0.0) * maximum.gt(self.b) * self.value(maximum).gt(0.0) * self.value(minimum).lt(0.0);
        are_three.mul_add(2.0, 1.0)
    }
}

impl<'m, 'g> State<'m, 'g> {
    pub(crate) fn at(composition: &Composition<'m, 'g>, temperature: Expr<'g>, pressure: Expr<'g>) -> Self {
        let attraction = composition.attraction(temperature);
        let cubic = Cubic::new(attraction.value, composition.covolume, temperature, pressure);
        let volume = cubic.root(&composition.x) * thermal(temperature) / pressure;
        State::new(composition, temperature, pressure, volume, attraction)
    }

    pub(crate) fn at_volume(
        composition: &Composition<'m, 'g>,
        temperature: Expr<'g>,
        volume: Expr<'g>,
    ) -> Self {
        let attraction = composition.attraction(temperature);
        let b = composition.covolume;
        let pressure = thermal(temperature) / (volume - b) - attraction.value / denominator(volume, b);
        State::new(composition, temperature, pressure, volume, attraction)
    }

    fn new(
        composition: &Composition<'m, 'g>,
        temperature: Expr<'g>,
        pressure: Expr<'g>,
        volume: Expr<'g>,
        attraction: Attraction<'g>,
    ) -> Self {
        let logarithm = logarithm(volume, composition.covolume);
        State { composition: composition.clone(), temperature, pressure, volume, attraction, logarithm }
    }

    /// Returns a property that is known per mole, per kilogram.
    fn per_mass(&self, molar: Expr<'g>) -> Expr<'g> {
        molar / self.composition.molar_mass
    }

    /// Returns the temperature in K.
    pub fn temperature(&self) -> Expr<'g> {
        self.temperature
    }

    /// Returns the pressure in Pa.
    pub fn pressure(&self) -> Expr<'g> {
        self.pressure
    }

    /// Returns the molar volume in m³/mol.
    pub fn molar_volume(&self) -> Expr<'g> {
        self.volume
    }

    /// Returns the density in kg/m³.
    pub fn density(&self) -> Expr<'g> {
        self.composition.molar_mass / self.volume
    }

    /// Returns the compressibility p V/(R T).
    pub fn compressibility(&self) -> Expr<'g> {
        self.pressure * self.volume / thermal(self.temperature)
    }

    /// Returns the number of molar volumes, 1 or 3, that the equation of state has at the state's temperature and
    /// pressure.
    pub fn roots(&self) -> Expr<'g> {
        let covolume = self.composition.covolume;
        Cubic::new(self.attraction.value, covolume, self.temperature, self.pressure).roots()
    }

    /// Returns the internal energy less that of the ideal gas's enthalpy, (T a' − a) L − R T, in J/mol.
    fn molar_energy(&self) -> Expr<'g> {
        molar_energy(&self.composition, self.temperature, &self.attraction, self.logarithm)
    }

    /// Returns the enthalpy in J/kg.
    pub fn enthalpy(&self) -> Expr<'g> {
        self.per_mass(self.pressure.mul_add(self.volume, self.molar_energy()))
    }

    /// Returns the enthalpy of the ideal gas at the temperature, in J/kg.
    pub fn ideal_enthalpy(&self) -> Expr<'g> {
        self.per_mass(self.composition.ideal.enthalpy(self.temperature) * GAS_CONSTANT)
    }

    /// Returns the internal energy in J/kg.
    pub fn internal_energy(&self) -> Expr<'g> {
        self.per_mass(self.molar_energy())
    }

    /// Returns the entropy in J/(kg K); that of each pure ideal gas refers to 101325 Pa.
    pub fn entropy(&self) -> Expr<'g> {
        let Composition { ideal, covolume, .. } = &self.composition;
        let free = (self.volume - *covolume) * STANDARD_PRESSURE / thermal(self.temperature);
        let own = ideal.entropy(self.temperature) - self.composition.mixing + free.log();
        self.per_mass(own.mul_add(GAS_CONSTANT, self.attraction.first * self.logarithm))
    }

    /// Returns the heat capacity at constant volume in J/(mol K).
    pub(crate) fn molar_heat_capacity(&self) -> Expr<'g> {
        molar_heat_capacity(&self.composition, self.temperature, &self.attraction, self.logarithm)
    }

    /// Returns the heat capacity at constant volume in J/(kg K).
    pub fn heat_capacity_at_volume(&self) -> Expr<'g> {
        self.per_mass(self.molar_heat_capacity())
    }

    /// Returns c_p in J/(mol K): c_v − T p_T²/p_V.
    fn molar_heat_capacity_at_pressure(&self) -> Expr<'g> {
        let slope = self.pressure_by_temperature();
        self.molar_heat_capacity() - self.temperature * slope * slope / self.pressure_by_volume()
    }

    /// Returns the heat capacity at constant pressure in J/(kg K).
    pub fn heat_capacity_at_pressure(&self) -> Expr<'g> {
        self.per_mass(self.molar_heat_capacity_at_pressure())
    }

    /// Returns the heat capacity of the ideal gas at constant pressure in J/(kg K).
    pub fn ideal_heat_capacity(&self) -> Expr<'g> {
        self.per_mass(self.composition.ideal.heat_capacity(self.temperature) * GAS_CONSTANT)
    }

    /// Returns the speed of sound in m/s: c² = −V² (c_p/c_v) p_V/M.
    pub fn speed_of_sound(&self) -> Expr<'g> {
        let ratio = self.molar_heat_capacity_at_pressure() / self.molar_heat_capacity();
        self.volume * (-(ratio * self.pressure_by_volume()) / self.composition.molar_mass).sqrt()
    }

    /// Returns ∂p/∂T at constant volume in Pa/K.
    pub fn pressure_by_temperature(&self) -> Expr<'g> {
        let b = self.composition.covolume;
        (1.0 / (self.volume - b))
            .mul_add(GAS_CONSTANT, -(self.attraction.first / denominator(self.volume, b)))
    }

    /// Returns ∂p/∂V of the molar volume at constant temperature, in Pa mol/m³.
    pub fn pressure_by_volume(&self) -> Expr<'g> {
        let (v, b) = (self.volume, self.composition.covolume);
        let (free, inverse) = (1.0 / (v - b), 1.0 / denominator(v, b));
        let repelled = thermal(self.temperature) * free * free;
        (2.0 * self.attraction.value * (v + b) * inverse).mul_add(inverse, -repelled)
    }

    /// Returns ∂p/∂ρ at constant temperature in m²/s².
    pub fn pressure_by_density(&self) -> Expr<'g> {
        -(self.pressure_by_volume() * self.volume * self.volume) / self.composition.molar_mass
    }

    /// Returns ∂e/∂ρ at constant temperature in J m³/kg²: −(T p_T − p)/ρ².
    pub fn energy_by_density(&self) -> Expr<'g> {
        let inner = self.temperature.mul_add(self.pressure_by_temperature(), -self.pressure);
        let density = self.density();
        -inner / (density * density)
    }

    /// Returns the thermal expansion (∂V/∂T)/V at constant pressure in 1/K.
    pub fn thermal_expansion(&self) -> Expr<'g> {
        -self.pressure_by_temperature() / (self.volume * self.pressure_by_volume())
    }

    /// Returns ∂ρ/∂T at constant pressure in kg/(m³ K).
    pub fn density_by_temperature(&self) -> Expr<'g> {
        -(self.density() * self.thermal_expansion())
    }

    /// Returns ∂ρ/∂p at constant temperature in s²/m².
    pub fn density_by_pressure(&self) -> Expr<'g> {
        1.0 / self.pressure_by_density()
    }

    /// Returns ∂h/∂p at constant temperature in m³/kg: (1 − T β)/ρ.
    pub fn enthalpy_by_pressure(&self) -> Expr<'g> {
        self.temperature.mul_add(-self.thermal_expansion(), 1.0) / self.density()
    }

    /// Returns the isothermal compressibility −(∂V/∂p)/V in 1/Pa.
    pub fn isothermal_compressibility(&self) -> Expr<'g> {
        -1.0 / (self.volume * self.pressure_by_volume())
    }
}

/// Returns V² + 2 V b − b².
pub(crate) fn denominator<'g>(v: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
    v.mul_add(v, b * (2.0 * v - b))
}

/// Returns ln[(V + (1+√2) b)/(V + (1−√2) b)]/(2√2 b).
pub(crate) fn logarithm<'g>(v: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
    (b.mul_add(1.0 + SQRT_2, v) / b.mul_add(1.0 - SQRT_2, v)).log() / (b * (2.0 * SQRT_2))
}

/// Returns the internal energy in J/mol: h° − R T + (T a' − a) L.
pub(crate) fn molar_energy<'g>(
    composition: &Composition<'_, 'g>,
    temperature: Expr<'g>,
    attraction: &Attraction<'g>,
    logarithm: Expr<'g>,
) -> Expr<'g> {
    let ideal = (composition.ideal.enthalpy(temperature) - temperature) * GAS_CONSTANT;
    temperature.mul_add(attraction.first, -attraction.value).mul_add(logarithm, ideal)
}

/// Returns c_v in J/(mol K): c_p° − R + T a″ L.
pub(crate) fn molar_heat_capacity<'g>(
    composition: &Composition<'_, 'g>,
    temperature: Expr<'g>,
    attraction: &Attraction<'g>,
    logarithm: Expr<'g>,
) -> Expr<'g> {
    let ideal = (composition.ideal.heat_capacity(temperature) - 1.0) * GAS_CONSTANT;
    (temperature * attraction.second).mul_add(logarithm, ideal)
}
