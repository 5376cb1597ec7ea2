//! A mixture's composition at a cell, and the sums over its species.

use abide_core::expr::{Components, Index};
use abide_core::{Error, Expr, Result};

use crate::ideal::Ideal;
use crate::state::State;
use crate::sum::{At, Fractions, Indexed};
use crate::{GAS_CONSTANT, Mixture};

/// A mixture with its mole fractions at a cell.
#[derive(Debug, Clone)]
pub struct Composition<'m, 'g> {
    pub(crate) gas: &'m Mixture,
    pub(crate) x: Fractions<'g>,
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
        Composition::new(self, Fractions::Terms((0..self.len()).map(fraction).collect()))
    }

    /// Gives the mixture's mole fractions at a cell, as the components of a field in the order of the species. Sums over
    /// species are then loops ([`Sums::Loops`](crate::Sums)).
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for fewer or more components than species.
    pub fn mole_fractions_in<'m, 'g>(&'m self, components: Components<'g>) -> Result<Composition<'m, 'g>> {
        self.mole_fractions_in_lanes(1, components)
    }

    /// Gives the mixture's mole fractions at a cell, as [`Mixture::mole_fractions_in`], with sums that are trees of `lanes`
    /// lanes ([`Sums::Trees`](crate::Sums)).
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for fewer or more components than species. If `lanes` is no power of two up to 32, building
    /// the program that uses the composition fails.
    pub fn mole_fractions_in_lanes<'m, 'g>(
        &'m self,
        lanes: usize,
        components: Components<'g>,
    ) -> Result<Composition<'m, 'g>> {
        self.check_components(components)?;
        Ok(Composition::new(self, Fractions::Loops(Indexed::new(components, lanes, None))))
    }

    /// Gives the mixture's mass fractions at a cell, as [`Mixture::mole_fractions_in`] does mole fractions.
    pub fn mass_fractions_in<'m, 'g>(&'m self, components: Components<'g>) -> Result<Composition<'m, 'g>> {
        self.mass_fractions_in_lanes(1, components)
    }

    /// Gives the mixture's mass fractions at a cell, as [`Mixture::mole_fractions_in_lanes`] does mole fractions.
    pub fn mass_fractions_in_lanes<'m, 'g>(
        &'m self,
        lanes: usize,
        components: Components<'g>,
    ) -> Result<Composition<'m, 'g>> {
        self.check_components(components)?;
        let graph = components.graph();
        let weights: Vec<f64> = self.species().iter().map(|species| 1.0 / species.molar_mass).collect();
        let y = Fractions::Loops(Indexed::new(components, lanes, None));
        let mean = 1.0 / y.weighted(&weights).unwrap_or(graph.constant(0.0));
        let x = Indexed::new(components, lanes, Some((graph.table(&weights), mean)));
        Ok(Composition::new(self, Fractions::Loops(x)))
    }

    fn check_components(&self, components: Components<'_>) -> Result<()> {
        if components.len() == self.len() {
            return Ok(());
        }
        let limit = format!("{}, one for each species", self.len());
        Err(Error::limit("components of a mixture's fractions", components.len(), limit, "declare as many"))
    }

    /// Gives the mixture's mass fractions at a cell, by the numbers of its species; x_i = (Y_i/W_i)/Σ Y_j/W_j.
    pub fn mass_fractions<'m, 'g>(&'m self, fraction: impl FnMut(usize) -> Expr<'g>) -> Composition<'m, 'g> {
        let y: Vec<Expr<'g>> = (0..self.len()).map(fraction).collect();
        let weights: Vec<f64> = self.species().iter().map(|species| 1.0 / species.molar_mass).collect();
        let all = Fractions::Terms(y.clone());
        let mean = 1.0 / all.weighted(&weights).unwrap_or(all.graph().constant(0.0));
        let x = y.iter().zip(&weights).map(|(&y, &weight)| y * weight * mean).collect();
        Composition::new(self, Fractions::Terms(x))
    }
}

impl<'m, 'g> Composition<'m, 'g> {
    fn new(gas: &'m Mixture, x: Fractions<'g>) -> Self {
        let zero = x.graph().constant(0.0);
        let masses: Vec<f64> = gas.species().iter().map(|species| species.molar_mass).collect();
        let molar_mass = x.weighted(&masses).unwrap_or(zero);
        let covolume = x.weighted(&gas.equation.covolume).unwrap_or(zero);
        let ideal = Ideal::of(gas, &x);
        // All sums over fractions alone stand before those that depend on the temperature, so that a thread need not keep
        // the fractions of many species beside what is made of them.
        let chung = ChungSums::of(gas, &x);
        let mixing = x.products(|at| x.of(at).max(f64::MIN_POSITIVE).log()).unwrap_or(zero);
        Composition { gas, x, molar_mass, covolume, ideal, chung, mixing }
    }

    /// Returns the mole fractions.
    pub fn fractions(&self) -> Vec<Expr<'g>> {
        (0..self.x.len()).map(|i| self.x.of(At::Number(self.x.graph(), i))).collect()
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
        let root = temperature.sqrt();
        let [u, v] = self.sizes(temperature);
        let (mut uu, mut uv, mut vv) = (u * u, u * v, v * v);
        let own = |at: At<'g>| self.own(temperature, at);
        // Half of what the pairs take from each form; in loops where more than half of all have a k_ij.
        let taken = match self.x.are_looped()
            && 4 * self.gas.equation.interactions.len() > self.x.len() * (self.x.len() - 1)
        {
            true => Some(self.pairs_in_loops(own)),
            false => self.pairs(own),
        };
        if let Some([pairs_uu, pairs_uv, pairs_vv]) = taken {
            uu = pairs_uu.mul_add(-2.0, uu);
            uv = uv - pairs_uv;
            vv = pairs_vv.mul_add(-2.0, vv);
        }
        let per_root = uv / root;
        Attraction { value: uu, first: -per_root, second: 0.5 * ((vv + per_root) / temperature) }
    }

    /// Returns |√a_i (1 + κ_i) − β_i √T| of a species, and s_i β_i.
    pub(crate) fn constants(&self, temperature: Expr<'g>, at: At<'g>) -> [Expr<'g>; 2] {
        let equation = &self.gas.equation;
        let signed = temperature.sqrt().mul_add(at.opposite(&equation.beta), at.of(&equation.alpha));
        let slope = signed.lt(0.0).select(at.opposite(&equation.beta), at.of(&equation.beta));
        [signed.abs(), slope]
    }

    /// Returns u_i and v_i of a species.
    pub(crate) fn own(&self, temperature: Expr<'g>, at: At<'g>) -> [Expr<'g>; 2] {
        self.constants(temperature, at).map(|value| self.x.of(at) * value)
    }

    /// Returns Σ u_i and Σ v_i.
    pub(crate) fn sizes(&self, temperature: Expr<'g>) -> [Expr<'g>; 2] {
        let zero = temperature.graph().constant(0.0);
        [0, 1].map(|part| self.x.products(|at| self.constants(temperature, at)[part]).unwrap_or(zero))
    }

    /// Returns the sums of u_i k_ij u_j, of the mixed products, and of v_i k_ij v_j over the pairs that have a k_ij, of one
    /// row of the upper triangle after another; `None` of none.
    fn pairs(&self, own: impl Fn(At<'g>) -> [Expr<'g>; 2]) -> Option<[Expr<'g>; 3]> {
        let graph = self.x.graph();
        let mut all: Option<[Expr<'g>; 3]> = None;
        for row in self.gas.equation.interactions.chunk_by(|a, b| a.0 == b.0) {
            let [ui, vi] = own(At::Number(graph, row[0].0));
            let (us, vs): (Vec<_>, Vec<_>) =
                row.iter().map(|&(_, j, _)| own(At::Number(graph, j)).into()).unzip();
            let sum = |values: Vec<Expr<'g>>| {
                let terms = values.into_iter().zip(row).map(|(value, &(.., k))| (value, k));
                terms.fold(None, |sum: Option<Expr<'g>>, (value, k)| {
                    Some(sum.map_or_else(|| value * k, |sum| value.mul_add(k, sum)))
                })
            };
            let (Some(ku), Some(kv)) = (sum(us), sum(vs)) else { continue };
            all = Some(match all {
                None => [ui * ku, ui.mul_add(kv, vi * ku), vi * kv],
                Some([uu, uv, vv]) => {
                    [ui.mul_add(ku, uu), vi.mul_add(ku, ui.mul_add(kv, uv)), vi.mul_add(kv, vv)]
                }
            });
        }
        all
    }

    /// Returns the same sums over all pairs, in loops.
    fn pairs_in_loops(&self, own: impl Fn(At<'g>) -> [Expr<'g>; 2]) -> [Expr<'g>; 3] {
        let (graph, count) = (self.x.graph(), self.x.len());
        let mut entries = vec![0.0; count * count];
        for &(i, j, k) in &self.gas.equation.interactions {
            entries[i * count + j] = k;
        }
        let table = graph.table_of(count, &entries);
        let zero = graph.constant(-0.0);
        graph.tree_sums(self.x.lanes(), 0..count, |i, [uu, uv, vv]| {
            let [ku, kv] = graph.repeat(i.plus(1).to(count), [zero; 2], |j, [ku, kv]| {
                let ([uj, vj], k) = (own(At::Index(graph, j)), table.at_row(i, j));
                [uj.mul_add(k, ku), vj.mul_add(k, kv)]
            });
            let [ui, vi] = own(At::Index(graph, i));
            [ui.mul_add(ku, uu), vi.mul_add(ku, ui.mul_add(kv, uv)), vi.mul_add(kv, vv)]
        })
    }
}

impl<'g> ChungSums<'g> {
    fn of(gas: &Mixture, x: &Fractions<'g>) -> Self {
        let transport = &gas.transport;
        let graph = x.graph();
        let zero = graph.constant(0.0);
        let sum = |weights: &[f64]| x.weighted(weights);
        let value = |index: Index<'g>| {
            x.of(index.number().map_or(At::Index(graph, index), |number| At::Number(graph, number)))
        };
        let mass = match x.are_looped() {
            true => transport.mass.in_lanes(x.lanes(), graph, value),
            false => transport.mass.written_out(graph, value),
        };
        ChungSums {
            size: sum(&transport.size).unwrap_or(zero),
            depth: sum(&transport.depth).unwrap_or(zero),
            acentric: sum(&transport.acentric),
            dipole: sum(&transport.dipole),
            association: sum(&transport.association),
            mass,
        }
    }
}

/// Returns R T.
pub(crate) fn thermal(temperature: Expr<'_>) -> Expr<'_> {
    temperature * GAS_CONSTANT
}
