//! Flows of gases: the Euler and Navier–Stokes equations on Cartesian grids, for mixtures of real gases and for ideal gas.
//!
//! A [`Flow`] says what flows and how it is discretised; [`Flow::program`] writes the program: three stages of the Runge–Kutta
//! method of Shu and Osher (J. Comput. Phys. 77, 1988), each an update of the conserved quantities and the state of the gas that
//! follows from them.

mod entries;
mod fluid;
mod hllc;
mod keep;
mod names;
mod side;
mod start;
mod viscous;

use abide_core::domain::Boundary;
use abide_core::program::{Centring, Definition, Program, Reduction, Scope, Start, Step};
use abide_core::{Error, Expr, Result};

use self::names::{FRACTIONS, Names, PARTS, before, through, width};
use crate::Mixture;
pub use entries::ENTRIES;
pub use fluid::Fluid;
pub use side::Side;
pub use start::Uniform;

/// How the fluxes between cells are discretised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// Central fluxes in split form that preserve kinetic energy and keep the entropy well (KEEP; Kuya, Totani and Kawai,
    /// J. Comput. Phys. 375 (2018) 823), of the [order](Flow::order) of the flow: for smooth flows.
    #[default]
    Keep,
    /// Slopes limited by van Leer's function, and the fluxes of Riemann problems with a contact (MUSCL and HLLC; Toro, Spruce and
    /// Speares, Shock Waves 4 (1994) 25), of second order: for shocks.
    Hllc,
}

/// The time step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Steps {
    /// A parameter `dt` in s.
    Fixed,
    /// By the fastest wave and the parameter `cfl`.
    Computed(f64),
}

/// A flow on one to three axes. The velocities along x, y and z are `u`, `v` and `w`; of fewer axes those of the first.
///
/// ```
/// use abide_gas::{Flow, Mixture, Scheme, Side, Table};
///
/// let gas = Mixture::of(&Table::builtin()?, &["CH4", "O2"])?;
/// let program = Flow::of(&gas, 2).order(4).side(0, 0, Side::Slip).side(0, 1, Side::Slip).program()?;
/// let fields = ["rhoY[0]", "rhoY[1]", "mx", "my", "energy", "rho", "u", "v", "e", "T", "p", "Y[0]", "Y[1]"];
/// assert_eq!(program.fields(), fields);
///
/// let tube = Flow::of(&gas, 1).scheme(Scheme::Hllc).courant(0.4).side(0, 0, Side::Outflow).side(0, 1, Side::Outflow);
/// assert!(tube.program()?.scalar("dt").is_ok());
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Flow {
    name: Option<String>,
    fluid: Fluid,
    axes: usize,
    order: usize,
    scheme: Scheme,
    is_viscous: bool,
    newton: usize,
    steps: Steps,
    /// Of each axis, slowest first, the low and the high side.
    sides: Vec<[Side; 2]>,
    starts: Vec<(String, Start)>,
}

impl Flow {
    /// A flow of a mixture of real gases, by the equation of state of Peng and Robinson, without viscosity.
    pub fn of(gas: &Mixture, axes: usize) -> Flow {
        Flow::new(Fluid::Real(Box::new(gas.clone())), axes)
    }

    /// A flow of an ideal gas by the ratio of its specific heats and its gas constant in J/(kg K). With viscosity it has the
    /// parameters `viscosity` (Pa s) and `Pr`.
    pub fn ideal(gamma: f64, constant: f64, axes: usize) -> Flow {
        Flow::new(Fluid::Ideal { gamma, constant }, axes)
    }

    fn new(fluid: Fluid, axes: usize) -> Flow {
        Flow {
            name: None,
            fluid,
            axes,
            order: 2,
            scheme: Scheme::Keep,
            is_viscous: false,
            newton: 4,
            steps: Steps::Fixed,
            sides: vec![[Side::Periodic, Side::Periodic]; axes.clamp(1, 3)],
            starts: Vec::new(),
        }
    }

    /// Sets the program's name; `euler-real-gas` or the like unless given.
    pub fn named(mut self, name: impl Into<String>) -> Flow {
        self.name = Some(name.into());
        self
    }

    /// Sets the order of the central fluxes: 2, 4 or 6.
    pub fn order(mut self, order: usize) -> Flow {
        self.order = order;
        self
    }

    /// Sets the scheme of the fluxes.
    pub fn scheme(mut self, scheme: Scheme) -> Flow {
        self.scheme = scheme;
        self
    }

    /// Adds viscosity and conduction of heat by Chung's method, and in mixtures diffusion by binary diffusivities of dilute gas,
    /// with the enthalpies that the species carry.
    pub fn viscous(mut self) -> Flow {
        self.is_viscous = true;
        self
    }

    /// Sets the Newton steps to the temperature of an energy, from the temperature before; 4 unless given.
    pub fn newton(mut self, steps: usize) -> Flow {
        self.newton = steps;
        self
    }

    /// Computes the time step, by this Courant number (a parameter `cfl`), in place of a parameter `dt`.
    pub fn courant(mut self, cfl: f64) -> Flow {
        self.steps = Steps::Computed(cfl);
        self
    }

    /// Sets what is beyond a side: of an axis, counted from the slowest, the low (0) or the high (1) side. A side that no axis has is
    /// refused by [`Flow::program`].
    pub fn side(mut self, axis: usize, side: usize, what: Side) -> Flow {
        // No more than is needed for the refusal.
        let axis = axis.min(3);
        if axis >= self.sides.len() {
            self.sides.resize(axis + 1, [Side::Periodic, Side::Periodic]);
        }
        self.sides[axis][side.min(1)] = what;
        self
    }

    /// Returns the species; 1 of an ideal gas.
    fn species(&self) -> usize {
        match &self.fluid {
            Fluid::Real(gas) => gas.len(),
            Fluid::Ideal { .. } => 1,
        }
    }

    fn names(&self) -> Names {
        Names { axes: self.axes, species: self.species() }
    }

    /// Returns whether the speed of sound is a field.
    fn has_sound(&self) -> bool {
        self.scheme == Scheme::Hllc || self.steps != Steps::Fixed
    }

    /// Returns whether species diffuse.
    fn diffuses(&self) -> bool {
        self.is_viscous && self.species() > 1
    }

    fn check(&self) -> Result<()> {
        if !(1..=3).contains(&self.axes) {
            return Err(Error::limit("axes of a flow", self.axes, "1 to 3", "give another number"));
        }
        if self.sides.len() > self.axes {
            let change = "count axes from the slowest, from 0 on";
            return Err(Error::limit("axis of a side", self.sides.len() - 1, self.axes - 1, change));
        }
        if keep::weights(self.order).is_none() {
            return Err(Error::limit("order of the fluxes", self.order, "2, 4 or 6", "give one of these"));
        }
        if !(1..=NEWTON).contains(&self.newton) {
            let (what, limit) = ("Newton steps to a temperature", format!("1 to {NEWTON}"));
            return Err(Error::limit(what, self.newton, limit, "take 3 or more"));
        }
        for (axis, [low, high]) in self.sides.iter().enumerate() {
            if (*low == Side::Periodic) != (*high == Side::Periodic) {
                let letter = self.names().letter(axis);
                let what = format!("sides of axis {letter}");
                return Err(Error::invalid(what, "one alone is periodic", "make both periodic, or none"));
            }
        }
        Ok(())
    }

    /// Returns the program of one step. Its fields are the conserved quantities, per volume: `rho` (of several species their partial
    /// densities `rhoY[0]`, …), the momenta `mx`, `my`, `mz`, and `energy` (inner and kinetic); and what follows from them: `rho`,
    /// the velocities `u`, `v`, `w`, `T`, `p`, and of up to 24 species the mass fractions `Y[0]`, …. All of them begin from values
    /// that fit to each other: [`Flow::start`] computes them. Parameters are the widths of a cell `dx`, `dy`, `dz` in m and `dt` in s, or `cfl`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for axes, orders and Newton steps that there are not, and for more species than a program has fields for;
    /// [`Error::Invalid`] where one side alone of an axis is periodic, or an inflow is no state of the gas.
    pub fn program(&self) -> Result<Program> {
        self.check()?;
        let kind = if self.is_viscous { "navier-stokes" } else { "euler" };
        let name = self.name.clone().unwrap_or_else(|| format!("{kind}-{}", self.fluid.name()));
        let mut p = Definition::new(name, self.axes);
        self.declare(&mut p)?;
        let mut step = p.step();
        self.time_step(&mut step);
        for number in 0..3 {
            self.advance(&mut step, number);
            step.stage("state", |s| self.fluid.state(s, self));
        }
        step.compute("time", |s| s.param("time") + s.param("dt"));
        p.build()
    }

    /// Returns the fields that follow from the conserved ones, with whether people see them.
    fn derived(&self) -> Vec<(String, bool)> {
        let names = self.names();
        let mut all = Vec::new();
        if names.species > 1 {
            all.push(("rho".to_owned(), true));
        }
        all.extend((0..self.axes).rev().map(|axis| (names.velocity(axis).to_owned(), true)));
        all.extend(
            [("e", false), ("T", true), ("p", true)].map(|(name, is_seen)| (name.to_owned(), is_seen)),
        );
        let has_transport = self.is_viscous && matches!(self.fluid, Fluid::Real(_));
        let hidden = [("c", self.has_sound()), ("mu", has_transport), ("lambda", has_transport)];
        all.extend(
            hidden.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| (name.to_owned(), false)),
        );
        all
    }

    /// Returns the fields with a component for each species that follow from the conserved ones, with whether people see them.
    fn of_species(&self) -> Vec<(&'static str, bool)> {
        let hidden = [("D", self.diffuses()), ("h", self.diffuses())];
        let hidden = hidden.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| (name, false));
        self.names().keeps_fractions().then_some((FRACTIONS, true)).into_iter().chain(hidden).collect()
    }

    fn declare(&self, p: &mut Definition) -> Result<()> {
        let names = self.names();
        p.boundary(Boundary::Periodic);
        match names.species {
            1 => p.field("rho", Centring::CELL),
            many => p.components(PARTS, many, Centring::CELL),
        };
        for axis in (0..self.axes).rev() {
            p.field(&names.momentum(axis), Centring::CELL);
        }
        p.field("energy", Centring::CELL);
        for (name, is_seen) in self.derived() {
            p.field(&name, Centring::CELL);
            if !is_seen {
                p.internal(&name);
            }
        }
        for (name, is_seen) in self.of_species() {
            p.components(name, names.species, Centring::CELL);
            if !is_seen {
                p.internal(name);
            }
        }
        p.shown("rho");
        for name in names.conserved() {
            p.temporary(&before(&name), Centring::CELL);
        }
        for axis in 0..self.axes {
            for name in self.through_faces() {
                p.temporary(&through(&name, names.letter(axis)), Centring::face(self.axes, axis));
            }
        }
        for axis in (0..self.axes).rev() {
            let width = format!("d{}", names.letter(axis));
            p.parameter(&width, 1e-3, "width of a cell in m").spacing(axis, |s| s.param(&width));
        }
        match self.steps {
            Steps::Fixed => p.parameter("dt", 1e-7, "time step in s"),
            Steps::Computed(cfl) => p
                .parameter("cfl", cfl, "fastest wave · step / width")
                .scalar("fastest", None, "largest sum of waves over widths, in 1/s")
                .scalar("dt", None, "time step in s"),
        };
        p.scalar("time", Some(0.0), "time in s");
        self.fluid.declare(p, self.is_viscous);
        for (name, start) in &self.starts {
            p.start(name, start.clone());
        }
        side::declare(p, self)
    }

    fn time_step(&self, step: &mut Step<'_>) {
        let (Steps::Computed(_), names) = (self.steps, self.names()) else { return };
        step.reduce("fastest", Reduction::Max, Centring::CELL, |s| {
            let here = |name: &str| s.field(name).here();
            let wave = |axis: usize| (here(names.velocity(axis)).abs() + here("c")) / width(s, &names, axis);
            let waves = (0..self.axes).map(wave).reduce(|sum, wave| sum + wave);
            let sum = waves.unwrap_or_else(|| s.constant(0.0));
            if !self.is_viscous {
                return sum;
            }
            // What diffusion needs: 4 ν/h² along each axis, ν the larger of 4/3 μ/ρ and λ/(ρ c_v), and that is less than μ/ρ times 2.
            let viscosity = match self.fluid {
                Fluid::Real(_) => here("mu"),
                Fluid::Ideal { .. } => s.param("viscosity"),
            };
            let viscosity = 8.0 * viscosity / here("rho");
            let diffuse = |axis: usize| viscosity / (width(s, &names, axis) * width(s, &names, axis));
            (0..self.axes).map(diffuse).fold(sum, |sum, term| sum + term)
        });
        step.compute("dt", |s| s.param("cfl") / s.param("fastest").max(f64::MIN_POSITIVE));
    }

    /// Returns whether fluxes through faces are kept, and of which conserved quantities.
    fn through_faces(&self) -> Vec<String> {
        let names = self.names().conserved();
        match self.scheme {
            Scheme::Hllc => names,
            // Where nothing diffuses, there is no flux of mass but the central one.
            Scheme::Keep if self.is_viscous && !self.diffuses() => names[self.species()..].to_vec(),
            Scheme::Keep if self.is_viscous => names,
            Scheme::Keep => Vec::new(),
        }
    }

    /// Adds the stages that advance the conserved quantities by one of the three parts of a step. Species have stages of their own, so
    /// few that a thread has room for what it makes.
    fn advance(&self, step: &mut Step<'_>, number: usize) {
        let names = self.names();
        if !self.through_faces().is_empty() {
            for axis in 0..self.axes {
                step.stage(&format!("fluxes {}", names.letter(axis)), |s| self.faces(s, axis));
            }
        }
        let part = ["first", "second", "third"][number];
        let all = names.conserved();
        let (masses, others) = all.split_at(names.masses().len());
        if masses.len() == 1 {
            step.stage(part, |s| self.change(s, number, &all));
            return;
        }
        step.stage(part, |s| self.change(s, number, others));
        for some in masses.chunks(SPECIES) {
            step.stage(&format!("{part} of {}", some[0]), |s| self.change(s, number, some));
        }
    }

    /// Sets the fluxes that are kept, through the faces normal to an axis.
    fn faces(&self, s: &Scope<'_>, axis: usize) {
        let names = self.names();
        let own = match self.scheme {
            Scheme::Hllc => hllc::fluxes(s, &names, axis),
            Scheme::Keep => names.conserved().iter().map(|_| None).collect(),
        };
        let viscous = match self.is_viscous {
            true => viscous::fluxes(s, &names, axis, self),
            false => names.conserved().iter().map(|_| None).collect(),
        };
        let both = own.into_iter().zip(viscous);
        for (name, both) in names.conserved().iter().zip(both) {
            match both {
                (Some(own), Some(viscous)) => s.set(&through(name, names.letter(axis)), own + viscous),
                (Some(flux), None) | (None, Some(flux)) => s.set(&through(name, names.letter(axis)), flux),
                (None, None) => {}
            }
        }
    }

    /// Changes some of what is conserved by what a cell loses.
    fn change(&self, s: &Scope<'_>, number: usize, wanted: &[String]) {
        let (names, kept) = (self.names(), self.through_faces());
        for name in wanted {
            let mut outflow: Option<Expr<'_>> = None;
            for axis in 0..self.axes {
                let central = match self.scheme {
                    Scheme::Keep => Some(keep::outflow(s, &names, axis, self.order, name)),
                    Scheme::Hllc => None,
                };
                let through = kept.contains(name).then(|| {
                    let flux = through(name, names.letter(axis));
                    s.field(&flux).along(axis, 1) - s.field(&flux).along(axis, 0)
                });
                let own = match (central, through) {
                    (Some(central), Some(through)) => central + through,
                    (central, through) => central.or(through).unwrap_or_else(|| s.constant(0.0)),
                };
                let own = own / width(s, &names, axis);
                outflow = Some(outflow.map_or(own, |sum| sum + own));
            }
            let now = s.field(name).here();
            let next = outflow.map_or(now, |outflow| now - s.param("dt") * outflow);
            let saved = before(name);
            if number == 0 {
                s.set(&saved, now);
            }
            s.set(
                name,
                match number {
                    0 => next,
                    1 => 0.75 * s.field(&saved).here() + 0.25 * next,
                    _ => (s.field(&saved).here() + 2.0 * next) * (1.0 / 3.0),
                },
            );
        }
    }
}

/// The most Newton steps to a temperature: each is written out.
const NEWTON: usize = 32;

/// The species of a stage.
const SPECIES: usize = 4;
