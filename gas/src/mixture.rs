//! Mixtures: the species of a gas, and all constants that its formulas have.

use abide_core::expr::{QuadraticForm, factors};
use abide_core::{Error, Result};

use crate::coefficients::{Chung, CriticalVolume};
use crate::collisions::Collisions;
use crate::species::{CRITICAL_COMPRESSIBILITY, Critical, DIAMETER_PER_ROOT, Species, TEMPERATURE_PER_DEPTH};
use crate::{GAS_CONSTANT, Interactions, Table};

/// Ω_a and Ω_b of Peng and Robinson (Ind. Eng. Chem. Fundam. 15 (1976) 59, eq. 9 and 10) to all digits of a double.
pub(crate) const OMEGA_A: f64 = 0.4572355289213822;
pub(crate) const OMEGA_B: f64 = 0.0777960739038885;

/// How Chung's mixing rule for the molar mass sums over pairs of species, the only sum that is not separable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairs {
    /// Every pair.
    #[default]
    Each,
    /// By factors of the table of pairs, which has a low rank (12 for the 53 species built in): fewer operations for
    /// many species. Every entry of the table is right to some 1e-15, so the bits are other than those of
    /// [`Pairs::Each`].
    Factored,
}

/// The species of a gas, with k_ij and the variant of Chung's method, and the constants that follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    species: Vec<Species>,
    critical: Vec<Critical>,
    pub(crate) equation: Equation,
    pub(crate) chung: Chung,
    pub(crate) transport: Transport,
    pub(crate) collisions: Collisions,
    is_associating: bool,
    pairs: Pairs,
}

/// The constants of the equation of state, of each species.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Equation {
    /// √a (1 + κ).
    pub alpha: Vec<f64>,
    /// √a κ/√Tc.
    pub beta: Vec<f64>,
    /// b in m³/mol.
    pub covolume: Vec<f64>,
    /// k_ij that are not 0, of `i < j`, in order.
    pub interactions: Vec<(usize, usize, f64)>,
}

/// The constants of Chung's mixing rules, of each species: σ in Å, ε/k in K, the molar mass in g/mol, and the dipole
/// moment in debye.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transport {
    /// σ^1.5.
    pub size: Vec<f64>,
    /// σ^1.5 √ε.
    pub depth: Vec<f64>,
    /// σ^1.5 ω.
    pub acentric: Vec<f64>,
    /// μ²/σ^1.5.
    pub dipole: Vec<f64>,
    /// √κ; all 0 unless association is asked for.
    pub association: Vec<f64>,
    /// The form of C_ij = √(ε_i ε_j) σ_i σ_j √(2 M_i M_j/(M_i + M_j)), of the rule for the molar mass.
    pub mass: QuadraticForm,
}

impl Mixture {
    /// Makes a mixture without interactions, with Poling's coefficients and association factors of 0.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for no species, [`Error::Invalid`] for one that stands twice or has no critical data.
    pub fn new(species: Vec<Species>) -> Result<Mixture> {
        if species.is_empty() {
            return Err(Error::limit("species of a mixture", 0, "1 at least", "name a species"));
        }
        species.iter().try_for_each(Species::check)?;
        for (number, one) in species.iter().enumerate() {
            if species[..number].iter().any(|other| other.name == one.name) {
                let what = format!("species {} of a mixture", one.name);
                return Err(Error::invalid(what, "it is given twice", "give it once"));
            }
        }
        let critical = species.iter().map(Species::critical).collect::<Result<Vec<_>>>()?;
        let equation = Equation::of(&species, &critical);
        let chung = Chung::default();
        let transport = Transport::of(&species, &critical, &chung, false, Pairs::Each);
        let (collisions, pairs) = (Collisions::of(&species, &critical), Pairs::Each);
        Ok(Mixture {
            species,
            critical,
            equation,
            chung,
            transport,
            collisions,
            is_associating: false,
            pairs,
        })
    }

    /// Makes a mixture of species of a table, by their names. The errors are those of [`Mixture::new`], and
    /// [`Error::Unknown`] for a name that is not in the table.
    pub fn of(table: &Table, names: &[&str]) -> Result<Mixture> {
        Mixture::new(names.iter().map(|name| table.find(name).cloned()).collect::<Result<_>>()?)
    }

    /// Sets the interactions; those with other species are left out.
    pub fn interactions(mut self, interactions: &Interactions) -> Mixture {
        let names: Vec<&str> = self.species.iter().map(|species| &*species.name).collect();
        self.equation.interactions = interactions.among(&names);
        self
    }

    /// Sets the variant of Chung's method.
    pub fn chung(mut self, chung: Chung) -> Mixture {
        self.chung = chung;
        self.renewed()
    }

    /// Sets whether the association factors of the species count, which else are 0.
    pub fn association(mut self, is_associating: bool) -> Mixture {
        self.is_associating = is_associating;
        self.renewed()
    }

    /// Sets how the mixing rule for the molar mass sums; every pair unless given.
    pub fn pairs(mut self, pairs: Pairs) -> Mixture {
        self.pairs = pairs;
        self.renewed()
    }

    /// Sets the way in which the mixing rule for the molar mass takes fewer operations.
    pub fn fewest_operations(self) -> Mixture {
        let operations = |mixture: &Mixture| mixture.transport.mass.operations();
        let (each, factored) = (self.clone().pairs(Pairs::Each), self.pairs(Pairs::Factored));
        if operations(&factored) < operations(&each) { factored } else { each }
    }

    fn renewed(mut self) -> Mixture {
        let Mixture { species, critical, chung, is_associating, pairs, .. } = &self;
        self.transport = Transport::of(species, critical, chung, *is_associating, *pairs);
        self
    }

    /// Returns the species, in order.
    pub fn species(&self) -> &[Species] {
        &self.species
    }

    /// Returns the number of species.
    pub fn len(&self) -> usize {
        self.species.len()
    }

    /// Returns whether there are no species; a mixture has one at least.
    pub fn is_empty(&self) -> bool {
        self.species.is_empty()
    }

    /// Returns the number of pairs whose k_ij is not 0.
    pub fn interacting(&self) -> usize {
        self.equation.interactions.len()
    }
}

impl Equation {
    fn of(species: &[Species], critical: &[Critical]) -> Equation {
        let (mut alpha, mut beta, mut covolume) = (Vec::new(), Vec::new(), Vec::new());
        for critical in critical.iter().take(species.len()) {
            let Critical { temperature, pressure, acentric: w, .. } = *critical;
            // Peng and Robinson 1976, eq. 18; above 0.491 the form of 1978 with Cantera's digits.
            let kappa = match w <= 0.491 {
                true => 0.37464 + 1.54226 * w - 0.26992 * w * w,
                false => 0.374642 + 1.487503 * w - 0.164423 * w * w + 0.016666 * w * w * w,
            };
            let root = OMEGA_A.sqrt() * GAS_CONSTANT * temperature / pressure.sqrt();
            alpha.push(root * (1.0 + kappa));
            beta.push(root * kappa / temperature.sqrt());
            covolume.push(OMEGA_B * GAS_CONSTANT * temperature / pressure);
        }
        Equation { alpha, beta, covolume, interactions: Vec::new() }
    }
}

/// The error of an entry of the factored table of pairs that is left, in units of the diagonal's.
const FACTORED: f64 = 1e-15;

impl Transport {
    fn of(
        species: &[Species],
        critical: &[Critical],
        chung: &Chung,
        is_associating: bool,
        pairs: Pairs,
    ) -> Transport {
        let all: Vec<(&Species, &Critical)> = species.iter().zip(critical).collect();
        let each = |value: &dyn Fn(&Species, &Critical) -> f64| -> Vec<f64> {
            all.iter().map(|(species, critical)| value(species, critical)).collect()
        };
        // cm³/mol, as Chung's factors have it.
        let volume = |critical: &Critical| match chung.critical_volume {
            CriticalVolume::Table => critical.volume * 1e6,
            CriticalVolume::EquationOfState => {
                CRITICAL_COMPRESSIBILITY * GAS_CONSTANT * critical.temperature / critical.pressure * 1e6
            }
        };
        let sigma = |critical: &Critical| DIAMETER_PER_ROOT * volume(critical).cbrt();
        let size = |critical: &Critical| (DIAMETER_PER_ROOT.powi(3) * volume(critical)).sqrt();
        let depth = |critical: &Critical| (critical.temperature / TEMPERATURE_PER_DEPTH).sqrt();
        let association = |species: &Species| match is_associating {
            true => species.association.sqrt(),
            false => 0.0,
        };
        // C_ij = h_i h_j G_ij with G_ij = √(2 √(M_i M_j)/(M_i + M_j)), whose diagonal is 1.
        let mass = each(&|species, _| 1000.0 * species.molar_mass);
        let scale = each(&|s, c| depth(c) * sigma(c) * (1000.0 * s.molar_mass).sqrt().sqrt());
        let count = species.len();
        let table = match pairs {
            Pairs::Each => {
                let pair = |i: usize, j: usize| {
                    let reduced = (2.0 * mass[i] * mass[j] / (mass[i] + mass[j])).sqrt();
                    let own = |i: usize| depth(&critical[i]) * sigma(&critical[i]);
                    own(i) * own(j) * reduced
                };
                QuadraticForm::of_triangle(count, pair)
            }
            Pairs::Factored => {
                let entry = |i: usize, j: usize| match mass[i] == mass[j] {
                    true => 1.0,
                    false => (2.0 * (mass[i] * mass[j]).sqrt() / (mass[i] + mass[j])).sqrt(),
                };
                let columns = factors(count, entry, FACTORED);
                let scaled = |column: Vec<f64>| column.iter().zip(&scale).map(|(l, h)| l * h).collect();
                QuadraticForm::of_columns(count, columns.into_iter().map(scaled).collect())
            }
        };
        Transport {
            size: each(&|_, c| size(c)),
            depth: each(&|_, c| size(c) * depth(c)),
            acentric: each(&|_, c| size(c) * c.acentric),
            dipole: each(&|s, c| s.dipole * s.dipole / size(c)),
            association: each(&|s, _| association(s)),
            mass: table,
        }
    }
}
