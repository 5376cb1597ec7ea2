//! The published variants of Chung's method, as data.

use std::str::FromStr;

use abide_core::{Error, Result};

/// A variant of Chung's method for the viscosity and the conductivity of dense gases: its coefficients, and what
/// its source takes for quantities on which sources differ.
///
/// Each row of coefficients is that of `1`, `ω`, `μ_r⁴` and `κ`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chung {
    /// The name, as `poling`.
    pub name: &'static str,
    /// The coefficients E1 to E10 of the viscosity.
    pub viscosity: [[f64; 4]; 10],
    /// The coefficients B1 to B7 of the conductivity.
    pub conductivity: [[f64; 4]; 7],
    /// The critical volume of a species.
    pub critical_volume: CriticalVolume,
    /// The molar density.
    pub molar_density: MolarDensity,
    /// The heat capacity of the factor ψ of the conductivity.
    pub heat_capacity: HeatCapacity,
    /// The viscosity at no density that the conductivity is built on.
    pub dilute_viscosity: DiluteViscosity,
}

/// Sources of a species' critical volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriticalVolume {
    /// The table of species.
    Table,
    /// The equation of state: 0.3074 R Tc/pc.
    EquationOfState,
}

/// The molar mass by which the density in kg/m³ becomes one in mol/m³.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MolarDensity {
    /// That of the mixture.
    MeanMass,
    /// The M_m of Chung's mixing rule.
    ChungMass,
}

/// Heat capacities at constant volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatCapacity {
    /// That of the ideal gas.
    Ideal,
    /// That of the real gas.
    Real,
}

/// Forms of the viscosity at no density.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiluteViscosity {
    /// 40.785e-7 F_c √(M T)/(Vc^⅔ Ω).
    ByVolume,
    /// 26.69e-7 F_c √(M T)/(σ² Ω).
    ByDiameter,
}

/// Tables 9-6 and 10-3 of Poling, Prausnitz and O'Connell, The Properties of Gases and Liquids, 5th ed., 2001.
pub const POLING: Chung = Chung {
    name: "poling",
    viscosity: [
        [6.324, 50.412, -51.680, 1189.0],
        [1.210e-3, -1.154e-3, -6.257e-3, 0.03728],
        [5.283, 254.209, -168.48, 3898.0],
        [6.623, 38.096, -8.464, 31.42],
        [19.745, 7.630, -14.354, 31.53],
        [-1.900, -12.537, 4.985, -18.15],
        [24.275, 3.450, -11.291, 69.35],
        [0.7972, 1.117, 0.01235, -4.117],
        [-0.2382, 0.06770, -0.8163, 4.025],
        [0.06863, 0.3479, 0.5926, -0.727],
    ],
    conductivity: [
        [2.4166, 0.74824, -0.91858, 121.72],
        [-0.50924, -1.5094, -49.991, 69.983],
        [6.6107, 5.6207, 64.760, 27.039],
        [14.543, -8.9139, -5.6379, 74.344],
        [0.79274, 0.82019, -0.69369, 6.3173],
        [-5.8634, 12.801, 9.5893, 65.529],
        [91.089, 128.11, -54.217, 523.81],
    ],
    critical_volume: CriticalVolume::Table,
    molar_density: MolarDensity::MeanMass,
    heat_capacity: HeatCapacity::Ideal,
    dilute_viscosity: DiluteViscosity::ByVolume,
};

/// `HighPressureGasTransport.cpp` of Cantera 3.2.0: Poling's tables with two numbers of other digits (4.958 in
/// E6, 2.44166 in B1), and other choices of all four quantities.
pub const CANTERA32: Chung = {
    let mut chung = POLING;
    chung.name = "cantera32";
    chung.viscosity[5][2] = 4.958;
    chung.conductivity[0][0] = 2.44166;
    chung.critical_volume = CriticalVolume::EquationOfState;
    chung.molar_density = MolarDensity::ChungMass;
    chung.heat_capacity = HeatCapacity::Real;
    chung.dilute_viscosity = DiluteViscosity::ByDiameter;
    chung
};

/// Chung, Ajlan, Lee and Starling, Ind. Eng. Chem. Res. 27 (1988) 671, with the digits of PelePhysics'
/// `TransportParams.H`. B7 and the sign in B6 differ from Poling's.
pub const CHUNG1988: Chung = Chung {
    name: "1988",
    viscosity: [
        [6.32402, 50.41190, -51.68010, 1189.020],
        [0.12102e-2, -0.11536e-2, -0.62571e-2, 0.37283e-1],
        [5.28346, 254.209, -168.481, 3898.27],
        [6.62263, 38.09570, -8.46414, 31.41780],
        [19.74540, 7.63034, -14.35440, 31.52670],
        [-1.89992, -12.5367, 4.98529, -18.15070],
        [24.27450, 3.44945, -11.29130, 69.34660],
        [0.79716, 1.11764, 0.12348e-1, -4.11661],
        [-0.23816, 0.67695e-1, -0.81630, 4.02528],
        [0.68629e-1, 0.34793, 0.59256, -0.72663],
    ],
    conductivity: [
        [2.41657, 0.74824, -0.91858, 121.721],
        [-0.50924, -1.50936, -49.99120, 69.9834],
        [6.61069, 5.62073, 64.75990, 27.0389],
        [14.54250, -8.91387, -5.63794, 74.3435],
        [0.79274, 0.82019, -0.69369, 6.31734],
        [-5.86340, 12.80050, 9.58926, -65.5292],
        [81.17100, 114.15800, -60.84100, 466.7750],
    ],
    ..POLING
};

impl Chung {
    /// All variants.
    pub const ALL: [Chung; 3] = [POLING, CANTERA32, CHUNG1988];
}

impl Default for Chung {
    fn default() -> Chung {
        POLING
    }
}

impl FromStr for Chung {
    type Err = Error;

    fn from_str(name: &str) -> Result<Chung> {
        let found = Chung::ALL.into_iter().find(|chung| chung.name == name);
        found.ok_or_else(|| Error::unknown("variant of Chung's method", name, Chung::ALL.map(|c| c.name)))
    }
}
