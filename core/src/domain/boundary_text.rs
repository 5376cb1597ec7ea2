//! Boundaries as users write them: `[FIELD:][AXIS[-|+]=]KIND`, separated by commas. A kind is a rule for ghost cells or a
//! condition at a wall.

use std::ops::Range;
use std::str::FromStr;

use super::axes::axis_name;
use super::boundaries::{Boundaries, Sides};
use super::boundary::Boundary;
use super::condition::{Condition, ConditionText};
use crate::error::{Error, Result};

/// Boundaries as a user writes them: for all fields, and for single fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundaryText {
    /// Those of all fields.
    all: Part,
    /// Those of single fields, by name.
    fields: Vec<(String, Part)>,
}

/// What a user writes for a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Named {
    /// A rule for ghost cells.
    Rule(Boundary),
    /// A condition that the field meets at the wall.
    Condition(ConditionText),
}

impl Named {
    fn rule(self) -> Option<Boundary> {
        match self {
            Named::Rule(boundary) => Some(boundary),
            Named::Condition(_) => None,
        }
    }
}

impl FromStr for Named {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match ConditionText::parse(text) {
            Some(condition) => condition.map(Named::Condition),
            None => text.parse().map(Named::Rule).map_err(|error| match error {
                Error::Unknown { .. } => {
                    let known = Boundary::NAMES.iter().map(|&name| name.to_owned());
                    let conditions = Condition::all().map(Condition::notation);
                    let meaning = "where values are finite numbers or names of scalars".to_owned();
                    Error::unknown("boundary", text, known.chain(conditions).chain([meaning]))
                }
                other => other,
            }),
        }
    }
}

/// What is written for each axis and side.
pub(crate) type NamedSides = [[Option<Named>; 2]; 3];

/// The boundaries of one field, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Part {
    /// One for every side, as in `periodic`.
    every: Option<Named>,
    /// One per axis and side, as in `y=periodic,x-=mirror`.
    sides: NamedSides,
}

impl Part {
    /// Returns what it names at each side, for a program of `dimensions` axes.
    fn all(self, dimensions: usize) -> Result<NamedSides> {
        let axes = 3 - dimensions.min(3)..3;
        if let Some(axis) = (0..axes.start).find(|&axis| self.sides[axis] != [None; 2]) {
            return Err(Error::unknown("axis", axis_name(axis), axes.map(axis_name)));
        }
        let every = |axis: usize| if axes.contains(&axis) { [self.every; 2] } else { [None; 2] };
        Ok(if self.every.is_some() { [0, 1, 2].map(every) } else { self.sides })
    }

    /// Returns the rules for ghost cells that it names, for a program of `dimensions` axes.
    fn named(self, dimensions: usize) -> Result<Sides> {
        Ok(Sides(self.all(dimensions)?.map(|sides| sides.map(|side| side.and_then(Named::rule)))))
    }

    fn has_conditions(&self) -> bool {
        let all = self.sides.iter().flatten().chain([&self.every]).flatten();
        all.into_iter().any(|named| matches!(named, Named::Condition(_)))
    }
}

impl BoundaryText {
    /// Returns the boundaries of all fields of a program of `dimensions` axes, with `default` for the sides
    /// that are not named. Fails if an axis is named that the program does not have, and for conditions at walls.
    pub fn resolve(&self, default: Boundary, dimensions: usize) -> Result<Boundaries> {
        self.refuse_conditions()?;
        self.over(Boundaries::all(default), dimensions)
    }

    /// Returns the boundaries of all fields as [`BoundaryText::resolve`] does, with those of `others` for the sides that
    /// are not named.
    pub fn over(&self, others: Boundaries, dimensions: usize) -> Result<Boundaries> {
        let named = self.of_all(dimensions)?;
        Ok(named.over(self.all.every.and_then(Named::rule).map_or(others, Boundaries::all)))
    }

    /// Returns the boundary of every side of all fields, where one is named.
    pub(crate) fn every(&self) -> Option<Boundary> {
        self.all.every.and_then(Named::rule)
    }

    /// Forgets what it names for all fields.
    pub(crate) fn forget_all(&mut self) {
        self.all = Part::default();
    }

    /// Returns whether it names conditions at walls, which are part of a program.
    pub fn has_conditions(&self) -> bool {
        self.all.has_conditions() || self.fields.iter().any(|(_, part)| part.has_conditions())
    }

    /// Returns all that is named at the sides of each of a program's fields: for it alone, and for all fields.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a field or an axis that the program does not have.
    pub(crate) fn at_sides(
        &self,
        fields: &[String],
        dimensions: usize,
    ) -> Result<(Vec<NamedSides>, NamedSides)> {
        let mut own = vec![NamedSides::default(); fields.len()];
        for (name, part) in &self.fields {
            for (own, _) in own.iter_mut().zip(fields).filter(|(_, field)| is_of(field, name)) {
                *own = part.all(dimensions)?;
            }
        }
        Ok((own, self.all.all(dimensions)?))
    }

    /// Returns the boundaries of all fields at the sides that are named.
    pub(crate) fn of_all(&self, dimensions: usize) -> Result<Sides> {
        self.all.named(dimensions)
    }

    /// Returns the boundaries of each of a program's fields that are named for that field alone, or for all of
    /// its components. Fails if a
    /// field or an axis is named that the program does not have.
    pub fn of_fields(&self, fields: &[String], dimensions: usize) -> Result<Vec<Sides>> {
        let mut own = vec![Sides::default(); fields.len()];
        for (name, part) in &self.fields {
            let mut is_known = false;
            for (own, _) in own.iter_mut().zip(fields).filter(|(_, field)| is_of(field, name)) {
                (*own, is_known) = (part.named(dimensions)?, true);
            }
            if !is_known {
                return Err(Error::unknown("field", name, fields));
            }
        }
        Ok(own)
    }

    /// Returns the rules for ghost cells that it names for a single field of a program of `dimensions` axes, whose name
    /// the text leaves out.
    pub fn sides(&self, dimensions: usize) -> Result<Sides> {
        self.refuse_fields()?;
        self.all.named(dimensions)
    }

    /// Fails if a condition at a wall is named.
    pub(super) fn refuse_conditions(&self) -> Result<()> {
        match self.has_conditions() {
            false => Ok(()),
            true => Err(Error::invalid(
                "boundary",
                "it names a condition at a wall, which the formulas of a program meet",
                "use a rule for ghost cells, as in mirror or constant=0",
            )),
        }
    }

    /// Fails if a field is named.
    pub(super) fn refuse_fields(&self) -> Result<()> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(Error::invalid(
                "boundary",
                format!("it names the field {name}, and is for one field or for all"),
                "leave the name out",
            )),
        }
    }
}

impl FromStr for BoundaryText {
    type Err = Error;

    /// Reads `periodic`, or per axis `y=periodic,x=fixed`, or per side `x-=mirror,x+=constant=1`, each side
    /// once; with a field's name before it, as in `u:x-=-reflect`, for that field alone.
    fn from_str(text: &str) -> Result<Self> {
        let mut all = BoundaryText::default();
        let invalid =
            |reason: String, change: &str| Error::invalid(format!("boundary `{text}`"), reason, change);
        let mixed = |which: &str| {
            let change = "give one boundary for all axes, or one for each as in y=periodic,x=fixed";
            invalid(format!("{which} names no axis"), change)
        };
        for written in text.split(',') {
            let (part, written) = match written.split_once(':') {
                None => (&mut all.all, written.trim()),
                Some((name, rest)) => {
                    let name = name.trim();
                    let known = all.fields.iter().position(|(field, _)| field == name);
                    let number = known.unwrap_or_else(|| {
                        all.fields.push((name.to_owned(), Part::default()));
                        all.fields.len() - 1
                    });
                    (&mut all.fields[number].1, rest.trim())
                }
            };
            let had_some = *part != Part::default();
            match split_axis(written) {
                Some((axis, sides, boundary)) if part.every.is_none() => {
                    let boundary: Named = boundary.parse()?;
                    for side in sides {
                        if part.sides[axis][side].replace(boundary).is_some() {
                            let side = ["low", "high"][side];
                            return Err(invalid(
                                format!("the {side} side of axis {} has two", axis_name(axis)),
                                "give each side one boundary",
                            ));
                        }
                    }
                }
                Some(_) => return Err(mixed("the boundary before it")),
                None => {
                    let boundary = written.parse()?;
                    if had_some {
                        return Err(mixed(&format!("`{written}`")));
                    }
                    part.every = Some(boundary);
                }
            }
        }
        Ok(all)
    }
}

/// Splits `x-=KIND` into axis, sides and the text of the kind; `None` if it names no axis.
fn split_axis(part: &str) -> Option<(usize, Range<usize>, &str)> {
    let (name, boundary) = part.split_once('=')?;
    let (axis, sides) = axis_and_sides(name)?;
    Some((axis, sides, boundary.trim()))
}

/// Reads an axis with or without a side, as in `x-` or `x`.
fn axis_and_sides(name: &str) -> Option<(usize, Range<usize>)> {
    let (letter, sides) = match name.trim() {
        n if n.ends_with('-') => (&n[..n.len() - 1], 0..1),
        n if n.ends_with('+') => (&n[..n.len() - 1], 1..2),
        n => (n, 0..2),
    };
    let axis = (0..3).find(|&axis| axis_name(axis) == letter)?;
    Some((axis, sides))
}

/// Returns the sides (the padded axis, and 0 or 1) that `x-`, `x` or `all` name, for a program of `dimensions` axes.
pub(crate) fn sides_of(text: &str, dimensions: usize) -> Result<Vec<[usize; 2]>> {
    let axes = 3 - dimensions.min(3)..3;
    if text == "all" {
        return Ok(axes.flat_map(|axis| [[axis, 0], [axis, 1]]).collect());
    }
    match axis_and_sides(text).filter(|(axis, _)| axes.contains(axis)) {
        Some((axis, sides)) => Ok(sides.map(|side| [axis, side]).collect()),
        None => {
            let names = axes.flat_map(|axis| ["", "-", "+"].map(|sign| format!("{}{sign}", axis_name(axis))));
            Err(Error::unknown("side", text, names.chain(["all".to_owned()])))
        }
    }
}

/// Returns whether a field has a name, or is a component of the field of that name.
pub(crate) fn is_of(field: &str, name: &str) -> bool {
    field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}
