//! A mixture's composition at a cell, and the sums over its species.

use abide_core::Expr;

use crate::ideal::Ideal;
use crate::mixture::MassTable;
use crate::state::State;
use crate::sum::{products, weighted};
use crate::{GAS_CONSTANT, Mixture};

/// A mixture with its mole fractions at a cell.
#[derive(Debug, Clone)]
pub struct Composition<'m, 'g> {
    pub(crate) gas: &'m Mixture,
    pub(crate) x: Vec<Expr<'g>>,
    /// M in kg/mol.
    pub(crate) molar_mass: Expr<'g>,
    /// b in m³/mol.
    pub(crate) covolume: Expr<'g>,
    pub(crate) ideal: Ideal<'g>,
    pub(crate) chung: ChungSums<'g>,
    /// Σ x_i ln x_i, to which species without any add nothing.
    pub(crate) mixing: Expr<'g>,
}

/// The attraction a α of the mixture in Pa m⁶/mol², and its first two derivatives by the temperature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attraction<'g> {
    pub value: Expr<'g>,
    pub first: Expr<'g>,
    pub second: Expr<'g>,
}

/// The sums over species of Chung's mixing rules; `None` where no species has any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChungSums<'g> {
    pub size: Expr<'g>,
    pub depth: Expr<'g>,
    pub acentric: Option<Expr<'g>>,
    pub dipole: Option<Expr<'g>>,
    pub association: Option<Expr<'g>>,
    pub mass: Expr<'g>,
}

impl Mixture {
    /// Gives the mixture's mole fractions at a cell, by the numbers of its species. They are taken as they are: their
    /// sum should be 1.
    pub fn mole_fractions<'m, 'g>(&'m self, fraction: impl FnMut(usize) -> Expr<'g>) -> Composition<'m, 'g> {
        Composition::new(self, (0..self.len()).map(fraction).collect())
    }

    /// Gives the mixture's mass fractions at a cell, by the numbers of its species; x_i = (Y_i/W_i)/Σ Y_j/W_j.
    pub fn mass_fractions<'m, 'g>(&'m self, fraction: impl FnMut(usize) -> Expr<'g>) -> Composition<'m, 'g> {
        let y: Vec<Expr<'g>> = (0..self.len()).map(fraction).collect();
        let weight = |i: usize| 1.0 / self.species()[i].molar_mass;
        let zero = y[0].graph().constant(0.0);
        let mean = 1.0 / weighted(&y, weight).unwrap_or(zero);
        let x = y.iter().enumerate().map(|(i, &y)| y * weight(i) * mean).collect();
        Composition::new(self, x)
    }
}

impl<'m, 'g> Composition<'m, 'g> {
    fn new(gas: &'m Mixture, x: Vec<Expr<'g>>) -> Self {
        let zero = x[0].graph().constant(0.0);
        let molar_mass = weighted(&x, |i| gas.species()[i].molar_mass).unwrap_or(zero);
        let covolume = weighted(&x, |i| gas.equation.covolume[i]).unwrap_or(zero);
        let ideal = Ideal::of(gas, &x);
        // All sums over fractions alone stand before those that depend on the temperature, so that a thread need not keep
        // the fractions of many species beside what is made of them.
        let chung = ChungSums::of(gas, &x);
        let logarithm = |i: usize| x[i].max(f64::MIN_POSITIVE).log();
        let mixing = products(&x, logarithm).unwrap_or(zero);
        Composition { gas, x, molar_mass, covolume, ideal, chung, mixing }
    }

    /// Returns the mole fractions.
    pub fn fractions(&self) -> &[Expr<'g>] {
        &self.x
    }

    /// Returns the molar mass in kg/mol.
    pub fn molar_mass(&self) -> Expr<'g> {
        self.molar_mass
    }

    /// Returns the state at a temperature in K and a pressure in Pa. Where the equation of state has three volumes
    /// there, the state has the least or the greatest of them ([`State::roots`]).
    pub fn at(&self, temperature: Expr<'g>, pressure: Expr<'g>) -> State<'m, 'g> {
        State::at(self, temperature, pressure)
    }

    /// Returns the state at a temperature in K and a density in kg/m³.
    pub fn at_density(&self, temperature: Expr<'g>, density: Expr<'g>) -> State<'m, 'g> {
        State::at_volume(self, temperature, self.molar_mass / density)
    }

    /// Returns the attraction, by Peng–Robinson's mixing rule with |√(a α)|.
    ///
    /// With u_i = x_i |√a_i (1 + κ_i) − β_i √T| and v_i = x_i s_i β_i, s_i the sign of what is between the bars:
    /// a = uᵀKu, a' = −uᵀKv/√T, a″ = ½(vᵀKv/T + uᵀKv/T^{3/2}), K = 1 − k_ij. That is one root a point, none a
    /// species, and separable but for the pairs that have a k_ij.
    pub(crate) fn attraction(&self, temperature: Expr<'g>) -> Attraction<'g> {
        let equation = &self.gas.equation;
        let zero = temperature.graph().constant(0.0);
        let root = temperature.sqrt();
        let signed = |i: usize| root.mul_add(-equation.beta[i], equation.alpha[i]);
        let size = |i: usize| signed(i).abs();
        let slope = |i: usize| signed(i).lt(0.0).select(-equation.beta[i], equation.beta[i]);
        let u = products(&self.x, size).unwrap_or(zero);
        let v = products(&self.x, slope).unwrap_or(zero);
        let (mut uu, mut uv, mut vv) = (u * u, u * v, v * v);
        let own = |i: usize| (self.x[i] * size(i), self.x[i] * slope(i));
        // Half of what the pairs take from each form, of one row of the upper triangle after another.
        let mut taken: Option<[Expr<'g>; 3]> = None;
        for row in equation.interactions.chunk_by(|a, b| a.0 == b.0) {
            let (ui, vi) = own(row[0].0);
            let k = |number: usize| row[number].2;
            let (us, vs): (Vec<_>, Vec<_>) = row.iter().map(|&(_, j, _)| own(j)).unzip();
            let (ku, kv) = (weighted(&us, k).unwrap_or(zero), weighted(&vs, k).unwrap_or(zero));
            taken = Some(match taken {
                None => [ui * ku, ui.mul_add(kv, vi * ku), vi * kv],
                Some([uu, uv, vv]) => {
                    [ui.mul_add(ku, uu), vi.mul_add(ku, ui.mul_add(kv, uv)), vi.mul_add(kv, vv)]
                }
            });
        }
        if let Some([pairs_uu, pairs_uv, pairs_vv]) = taken {
            uu = pairs_uu.mul_add(-2.0, uu);
            uv = uv - pairs_uv;
            vv = pairs_vv.mul_add(-2.0, vv);
        }
        let per_root = uv / root;
        Attraction { value: uu, first: -per_root, second: 0.5 * ((vv + per_root) / temperature) }
    }
}

impl<'g> ChungSums<'g> {
    fn of(gas: &Mixture, x: &[Expr<'g>]) -> Self {
        let transport = &gas.transport;
        let zero = x[0].graph().constant(0.0);
        let sum = |weights: &[f64]| weighted(x, |i| weights[i]);
        let mass = match &transport.mass {
            MassTable::Each(rows) => {
                let row = |i: usize| {
                    let own = x[i] * (0.5 * rows[i][i]);
                    (i + 1..x.len()).fold(own, |sum, j| x[j].mul_add(rows[i][j], sum))
                };
                products(x, row).map(|half| 2.0 * half)
            }
            MassTable::Factored(columns) => {
                columns.iter().filter_map(|column| sum(column)).fold(None, |all, q| {
                    Some(match all {
                        None => q * q,
                        Some(all) => q.mul_add(q, all),
                    })
                })
            }
        };
        ChungSums {
            size: sum(&transport.size).unwrap_or(zero),
            depth: sum(&transport.depth).unwrap_or(zero),
            acentric: sum(&transport.acentric),
            dipole: sum(&transport.dipole),
            association: sum(&transport.association),
            mass: mass.unwrap_or(zero),
        }
    }
}

/// Returns R T.
pub(crate) fn thermal(temperature: Expr<'_>) -> Expr<'_> {
    temperature * GAS_CONSTANT
}
