//! What a flow's fields are called, and how a cell's are read.

use abide_core::Expr;
use abide_core::program::Scope;

/// The letters of the axes, x first.
pub const LETTERS: [&str; 3] = ["x", "y", "z"];
/// The velocities along x, y and z.
pub const VELOCITIES: [&str; 3] = ["u", "v", "w"];
/// The components of the partial densities, and of the mass fractions.
pub const PARTS: &str = "rhoY";
pub const FRACTIONS: &str = "Y";
/// The most species whose mass fractions are fields.
const KEPT: usize = 24;

/// What a flow has in a cell, by the names of its fields.
pub struct Names {
    /// The number of axes.
    pub axes: usize,
    /// The number of species; 1 has no partial densities.
    pub species: usize,
}

impl Names {
    /// Returns the letter of an axis, counted from the slowest.
    pub fn letter(&self, axis: usize) -> &'static str {
        LETTERS[self.axes - 1 - axis]
    }

    /// Returns the velocity along an axis, counted from the slowest.
    pub fn velocity(&self, axis: usize) -> &'static str {
        VELOCITIES[self.axes - 1 - axis]
    }

    pub fn momentum(&self, axis: usize) -> String {
        format!("m{}", self.letter(axis))
    }

    /// Returns the partial densities; the density itself of one species.
    pub fn masses(&self) -> Vec<String> {
        match self.species {
            1 => vec!["rho".to_owned()],
            many => (0..many).map(|number| format!("{PARTS}[{number}]")).collect(),
        }
    }

    /// Returns whether mass fractions are fields: a program has no room for those of very many species.
    pub fn keeps_fractions(&self) -> bool {
        (2..=KEPT).contains(&self.species)
    }

    /// Returns the mass fraction of a partial density, in the cell in which `of` reads fields.
    pub fn fraction<'g>(&self, mass: &str, of: impl Fn(&str) -> Expr<'g>) -> Expr<'g> {
        match (self.keeps_fractions(), mass.strip_prefix("rho")) {
            (true, Some(fraction)) => of(fraction),
            _ => of(mass) / of("rho"),
        }
    }

    /// Returns what is conserved: masses, momenta by axes from the slowest, energy.
    pub fn conserved(&self) -> Vec<String> {
        let momenta = (0..self.axes).map(|axis| self.momentum(axis));
        self.masses().into_iter().chain(momenta).chain(["energy".to_owned()]).collect()
    }
}

/// The flow in a cell.
pub struct Cell<'g> {
    pub density: Expr<'g>,
    /// By axes from the slowest.
    pub velocity: Vec<Expr<'g>>,
    pub pressure: Expr<'g>,
    /// Per mass.
    pub energy: Expr<'g>,
    /// Mass fractions; none of one species.
    pub parts: Vec<Expr<'g>>,
}

impl<'g> Cell<'g> {
    /// Returns the flow in the cell so far away along an axis.
    pub fn along(s: &Scope<'g>, names: &Names, axis: usize, distance: i32) -> Cell<'g> {
        let of = |name: &str| s.field(name).along(axis, distance);
        let density = of("rho");
        let parts = match names.species {
            1 => Vec::new(),
            _ => names.masses().iter().map(|name| names.fraction(name, of)).collect(),
        };
        Cell {
            density,
            velocity: (0..names.axes).map(|axis| of(names.velocity(axis))).collect(),
            pressure: of("p"),
            energy: of("e"),
            parts,
        }
    }

    /// Returns a flux's parts in the order of [`Names::conserved`], of the flux of mass.
    pub fn masses(parts: &[Expr<'g>], mass: Expr<'g>) -> Vec<Expr<'g>> {
        match parts {
            [] => vec![mass],
            parts => parts.iter().map(|&part| mass * part).collect(),
        }
    }
}

/// Returns the name of what belongs to a field, or to a component of one.
fn beside(name: &str, what: &str) -> String {
    match name.split_once('[') {
        Some((name, number)) => format!("{name}_{what}[{number}"),
        None => format!("{name}_{what}"),
    }
}

/// Returns the temporary of a flux through the faces of an axis.
pub fn through(name: &str, letter: &str) -> String {
    beside(name, letter)
}

/// Returns the temporary that holds a field's value from before the step.
pub fn before(name: &str) -> String {
    beside(name, "before")
}

/// Returns the width of a cell along an axis, counted from the slowest.
pub fn width<'g>(s: &Scope<'g>, names: &Names, axis: usize) -> Expr<'g> {
    s.param(&format!("d{}", names.letter(axis)))
}
