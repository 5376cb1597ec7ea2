//! One species: its mass, critical data, molecule and ideal-gas polynomials.

use abide_core::{Error, Result};

use crate::GAS_CONSTANT;

/// The critical point of a species, and its acentric factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Critical {
    /// The temperature in K.
    pub temperature: f64,
    /// The pressure in Pa.
    pub pressure: f64,
    /// The molar volume in m³/mol.
    pub volume: f64,
    /// Pitzer's acentric factor.
    pub acentric: f64,
}

/// NASA's polynomials of seven coefficients for the heat capacity, enthalpy and entropy of an ideal gas at
/// 101325 Pa: `c_p/R = a0 + a1 T + a2 T² + a3 T³ + a4 T⁴`; a5 and a6 are the constants of enthalpy and entropy
/// (Burcat and Ruscic, ANL-05/20, 2005).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nasa7 {
    /// The least temperature in K for which the polynomials were fitted.
    pub lowest: f64,
    /// The temperature in K up to which, itself included, the coefficients `low` hold.
    pub middle: f64,
    /// The greatest temperature in K for which the polynomials were fitted.
    pub highest: f64,
    /// The coefficients up to the middle temperature.
    pub low: [f64; 7],
    /// The coefficients above it.
    pub high: [f64; 7],
}

/// A species.
#[derive(Debug, Clone, PartialEq)]
pub struct Species {
    /// The name, as `CH4`.
    pub name: String,
    /// The molar mass in kg/mol.
    pub molar_mass: f64,
    /// The critical data; `None` where the species has none, as most radicals.
    pub critical: Option<Critical>,
    /// The dipole moment in debye.
    pub dipole: f64,
    /// Chung's association factor κ of hydrogen-bonding species, else 0.
    pub association: f64,
    /// The diameter σ in Å and the depth ε/k in K of its Lennard-Jones potential, where they are known.
    pub lennard_jones: Option<[f64; 2]>,
    /// The polynomials.
    pub thermo: Nasa7,
}

/// Chung's factor between the critical temperature and the depth of the potential: ε/k = Tc/1.2593.
pub(crate) const TEMPERATURE_PER_DEPTH: f64 = 1.2593;
/// Chung's factor between the diameter in Å and the cubic root of the critical volume in cm³/mol.
pub(crate) const DIAMETER_PER_ROOT: f64 = 0.809;
/// The compressibility at the critical point of Peng–Robinson's equation: pc Vc = 0.3074 R Tc.
pub(crate) const CRITICAL_COMPRESSIBILITY: f64 = 0.30740130869870386;

/// What [`Species::closed`] does, in words for messages.
pub(crate) const CLOSURE: &str =
    "Tc = 1.2593 eps/k, Vc = (sigma/0.809)^3, pc = 0.307401 R Tc/Vc, omega = 0 (--closure)";

impl Species {
    /// Returns the species with critical data from its Lennard-Jones potential where it has none of its own:
    /// Tc = 1.2593 ε/k and Vc = (σ/0.809)³ by Chung's relations, pc = 0.307401 R Tc/Vc by the equation of state,
    /// ω = 0.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if it has no potential either.
    pub fn closed(mut self) -> Result<Species> {
        if self.critical.is_none() {
            let Some([sigma, depth]) = self.lennard_jones else {
                return Err(Error::invalid(
                    format!("species {}", self.name),
                    "it has neither critical data nor sigma and eps/k, from which they could follow",
                    "give its Tc, pc, Vc and omega",
                ));
            };
            let temperature = TEMPERATURE_PER_DEPTH * depth;
            let volume = (sigma / DIAMETER_PER_ROOT).powi(3) * 1e-6;
            let pressure = CRITICAL_COMPRESSIBILITY * GAS_CONSTANT * temperature / volume;
            self.critical = Some(Critical { temperature, pressure, volume, acentric: 0.0 });
        }
        Ok(self)
    }

    /// Returns the critical data; the error of a species without names the closure by which [`Species::closed`]
    /// makes them.
    pub fn critical(&self) -> Result<Critical> {
        self.critical.ok_or_else(|| {
            Error::invalid(
                format!("species {}", self.name),
                "it has no critical data",
                format!("give Tc, pc, Vc and omega, or take the closure {CLOSURE}"),
            )
        })
    }

    /// Refuses values that no species has.
    pub(crate) fn check(&self) -> Result<()> {
        let Species { name, molar_mass, critical, dipole, association, lennard_jones, thermo } = self;
        let fault = |what: &str, value: f64, limit: &str| {
            Err(Error::limit(format!("{what} of species {name}"), value, limit, "correct the table"))
        };
        let positive = |what: &str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => fault(what, value, "a finite number above 0"),
        };
        let finite = |what: &str, value: f64| match value.is_finite() {
            true => Ok(()),
            false => fault(what, value, "a finite number"),
        };
        positive("molar mass", *molar_mass)?;
        if let Some(critical) = critical {
            positive("critical temperature", critical.temperature)?;
            positive("critical pressure", critical.pressure)?;
            positive("critical volume", critical.volume)?;
            finite("acentric factor", critical.acentric)?;
        }
        if let Some([sigma, depth]) = lennard_jones {
            positive("sigma", *sigma)?;
            positive("eps/k", *depth)?;
        }
        finite("dipole moment", *dipole)?;
        if !(association.is_finite() && *association >= 0.0) {
            return fault("association factor kappa", *association, "0 or a finite number above");
        }
        let Nasa7 { lowest, middle, highest, low, high } = thermo;
        low.iter().chain(high).try_for_each(|&value| finite("coefficient of the polynomials", value))?;
        if !(*lowest >= 0.0 && lowest <= middle && middle <= highest && highest.is_finite()) {
            let limit = "0 <= Tlow <= Tmid <= Thigh";
            let asked = format!("{lowest}, {middle}, {highest}");
            return Err(Error::limit(
                format!("temperatures of species {name}"),
                asked,
                limit,
                "correct the table",
            ));
        }
        Ok(())
    }
}
