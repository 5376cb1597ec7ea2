//! Fields that fit to each other: what a flow begins from.

use abide_core::expr::Graph;
use abide_core::program::{Centring, Definition, Program, Scope, Start};
use abide_core::{DType, Error, Expr, Result};

use super::names::{Cell, FRACTIONS, LETTERS, VELOCITIES};
use super::{Flow, Fluid};

/// Returns the names of all fields of a flow.
pub(super) fn names(flow: &Flow) -> Vec<String> {
    let mut all = flow.names().conserved();
    all.extend(flow.derived().into_iter().map(|(name, _)| name));
    let each = |name: &'static str| (0..flow.species()).map(move |number| format!("{name}[{number}]"));
    all.extend(flow.of_species().into_iter().flat_map(|(name, _)| each(name)));
    all
}

/// Returns the values of all fields where the gas has a temperature, a pressure, velocities along x, y and z, and mass fractions.
fn fields<'g>(
    flow: &Flow,
    [t, p]: [Expr<'g>; 2],
    velocity: &[Expr<'g>],
    parts: &[Expr<'g>],
) -> Vec<(String, Expr<'g>)> {
    let graph = t.graph();
    let mut own: Vec<(String, Expr<'g>)> = Vec::new();
    let (density, energy);
    match &flow.fluid {
        Fluid::Ideal { gamma, constant } => {
            let thermal = t * *constant;
            density = p / thermal;
            energy = thermal * (1.0 / (gamma - 1.0));
            own.push(("c".to_owned(), (thermal * *gamma).sqrt()));
        }
        Fluid::Real(gas) => {
            let state = match gas.len() {
                1 => gas.mole_fractions(|_| graph.constant(1.0)),
                _ => gas.mass_fractions(|number| parts[number]),
            }
            .at(t, p);
            density = state.density();
            energy = state.internal_energy();
            own.push(("c".to_owned(), state.speed_of_sound()));
            if flow.is_viscous {
                own.push(("mu".to_owned(), state.viscosity()));
                own.push(("lambda".to_owned(), state.conductivity()));
            }
            if flow.diffuses() {
                let each = [("D", state.diffusivities()), ("h", state.partial_enthalpies())];
                let named = |(name, values): (&'static str, Vec<Expr<'g>>)| {
                    values.into_iter().enumerate().map(move |(i, value)| (format!("{name}[{i}]"), value))
                };
                own.extend(each.into_iter().flat_map(named));
            }
        }
    }
    let all = flow.names();
    let masses = Cell::masses(if all.species > 1 { parts } else { &[] }, density);
    own.extend(all.masses().into_iter().zip(masses));
    if all.species > 1 {
        own.push(("rho".to_owned(), density));
        let each = parts.iter().enumerate();
        own.extend(each.map(|(number, &part)| (format!("{FRACTIONS}[{number}]"), part)));
    }
    let squares = velocity.iter().map(|&u| u * u).reduce(|sum, square| sum + square);
    let kinetic = squares.map_or(graph.constant(0.0), |squares| 0.5 * squares);
    for (number, &u) in velocity.iter().enumerate() {
        own.push((VELOCITIES[number].to_owned(), u));
        own.push((format!("m{}", LETTERS[number]), density * u));
    }
    own.push(("energy".to_owned(), density * (energy + kinetic)));
    for (name, value) in [("e", energy), ("T", t), ("p", p)] {
        own.push((name.to_owned(), value));
    }
    let in_order =
        names(flow).into_iter().filter_map(|name| own.iter().find(|(known, _)| *known == name).cloned());
    in_order.collect()
}

/// Gas of the same state everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Uniform {
    /// The temperature in K.
    pub temperature: f64,
    /// The pressure in Pa.
    pub pressure: f64,
    /// The velocities along x, y and z in m/s, as many as axes.
    pub velocity: Vec<f64>,
    /// The mass fractions of the species; none of one species.
    pub fractions: Vec<f64>,
}

/// Returns the values of all fields in a uniform flow.
fn uniform(flow: &Flow, state: &Uniform) -> Result<Vec<(String, f64)>> {
    flow.check()?;
    let Uniform { temperature, pressure, velocity, fractions } = state;
    let state = [*temperature, *pressure];
    let count = |what: &str, asked: usize, limit: usize| match asked == limit {
        true => Ok(()),
        false => Err(Error::limit(what.to_owned(), asked, limit, "give one each")),
    };
    count("velocities of a flow", velocity.len(), flow.axes)?;
    let species = flow.species();
    count(
        "mass fractions of a flow",
        fractions.len(),
        if species == 1 { fractions.len().min(1) } else { species },
    )?;
    let sum: f64 = fractions.iter().sum();
    if species > 1 && (sum - 1.0).abs() > 1e-9 {
        return Err(Error::invalid(
            "mass fractions of a flow",
            format!("they sum to {sum}"),
            "make them 1 within 1e-9",
        ));
    }
    let graph = Graph::new();
    let constants = |values: &[f64]| values.iter().map(|&value| graph.constant(value)).collect::<Vec<_>>();
    let named =
        fields(flow, state.map(|value| graph.constant(value)), &constants(velocity), &constants(fractions));
    let outputs: Vec<Expr<'_>> = named.iter().map(|(_, value)| *value).collect();
    let dag = graph.dag(&outputs).simplified(DType::F64);
    let mut values = Vec::new();
    dag.evaluate::<f64>(&mut values, &[], [0; 3], |_| f64::NAN);
    let found = dag.outputs.iter().map(|&id| values[id as usize]);
    let all: Vec<(String, f64)> = named.into_iter().map(|(name, _)| name).zip(found).collect();
    match all.iter().find(|(_, value)| !value.is_finite()) {
        None => Ok(all),
        Some((name, value)) => Err(Error::invalid(
            format!("{name} of a gas at {} K and {} Pa", state[0], state[1]),
            format!("it is {value}"),
            "give a state of the gas",
        )),
    }
}

impl Flow {
    /// Returns the values of all fields where the gas has the same state everywhere.
    ///
    /// ```
    /// use abide_gas::{Flow, Mixture, Table, Uniform};
    ///
    /// let flow = Flow::of(&Mixture::of(&Table::builtin()?, &["N2"])?, 1);
    /// let wind = Uniform { temperature: 300.0, pressure: 101325.0, velocity: vec![10.0], fractions: vec![] };
    /// let fields = flow.uniform(&wind)?;
    /// let value = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    /// assert!((value("rho").unwrap() - 1.138).abs() < 1e-3);
    /// assert_eq!(value("mx"), value("rho").map(|rho| 10.0 * rho));
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for other numbers of velocities or fractions, [`Error::Invalid`] for fractions that do not sum to 1 and for
    /// what is no state of the gas.
    pub fn uniform(&self, state: &Uniform) -> Result<Vec<(String, f64)>> {
        uniform(self, state)
    }

    /// Begins from gas of the same state everywhere, unless a run gives the fields.
    ///
    /// # Errors
    ///
    /// Those of [`Flow::uniform`].
    pub fn beginning(mut self, state: &Uniform) -> Result<Flow> {
        let constant = |(name, value)| (name, Start::Constant(value));
        self.starts = uniform(&self, state)?.into_iter().map(constant).collect();
        Ok(self)
    }

    /// Begins from gas of one state in the low corner of the domain, and of another elsewhere; the corner takes a part of each axis,
    /// slowest first, from 0 to 1.
    ///
    /// # Errors
    ///
    /// Those of [`Flow::uniform`]; [`Error::Limit`] for other numbers of parts than axes.
    pub fn beginning_in_corner(mut self, parts: &[f64], corner: &Uniform, others: &Uniform) -> Result<Flow> {
        if parts.len() != self.axes {
            return Err(Error::limit("parts of a corner", parts.len(), self.axes, "give one for each axis"));
        }
        let mut all = [1.0; 3];
        all[3 - self.axes..].copy_from_slice(parts);
        let both = uniform(&self, corner)?.into_iter().zip(uniform(&self, others)?);
        let start = |((name, inside), (_, outside)): ((String, f64), (String, f64))| match inside == outside {
            true => (name, Start::Constant(inside)),
            false => (name, Start::Corner { inside, outside, parts: all }),
        };
        self.starts = both.map(start).collect();
        Ok(self)
    }

    /// Returns the program of one step that computes the fields of the flow at every point of one axis, from fields `T0` (K), `p0` (Pa),
    /// velocities `u0`, `v0`, `w0` and mass fractions `Y0[0]`, …, of which one species has none. It is what a flow begins from.
    ///
    /// # Errors
    ///
    /// Those of [`Flow::program`].
    pub fn start(&self) -> Result<Program> {
        self.check()?;
        let mut p = Definition::new("start of a flow", 1);
        p.field("T0", Centring::CELL).field("p0", Centring::CELL);
        let velocities: Vec<String> = VELOCITIES[..self.axes].iter().map(|name| format!("{name}0")).collect();
        for name in &velocities {
            p.field(name, Centring::CELL);
        }
        let species = if self.species() > 1 { self.species() } else { 0 };
        if species > 0 {
            p.components("Y0", species, Centring::CELL);
        }
        for name in names(self) {
            p.field(&name, Centring::CELL);
        }
        p.step().stage("start", |s: &Scope<'_>| {
            let here = |name: &str| s.field(name).here();
            let velocity: Vec<Expr<'_>> = velocities.iter().map(|name| here(name)).collect();
            let parts: Vec<Expr<'_>> = (0..species).map(|number| s.component("Y0", number).here()).collect();
            for (name, value) in fields(self, [here("T0"), here("p0")], &velocity, &parts) {
                s.set(&name, value);
            }
        });
        p.build()
    }
}
