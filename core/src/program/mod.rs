//! Programs: the stages of a step, or of a cycle of steps, over fields, temporaries and scalars; the
//! footprint of a stage; the starts of fields; and a program on a domain.
//!
//! A *plain* program is one or more stencils per step over fields that all stand on cells and share one
//! boundary ([`Program::sequence`]). Any other is written part by part ([`Definition`]).

mod beyond;
mod boxes;
mod carried;
mod centring;
mod clock;
mod definition;
mod derived;
mod flat;
mod footprint;
mod ghosts;
mod grid;
mod groups;
mod levels;
mod linear;
mod marks;
mod member;
mod names;
mod phases;
mod placed;
mod problem;
mod random;
mod record;
mod region;
mod repeated;
mod solve;
mod split;
mod stage;
mod start;
mod stencil;
mod step;
mod storage;
mod stretch;
#[cfg(test)]
mod tests;
mod timed;
mod transform;
mod until;
mod walls;
mod watch;

use std::ops::Range;
use std::sync::Arc;

pub use crate::domain::Condition;
use crate::domain::{Boundaries, Boundary, Sides, is_of};
use crate::error::{Error, Result};
pub use crate::precision::Precision;
use crate::real::DType;
pub use crate::reduction::Reduction;

pub use self::boxes::{Boxes, Buffer, GhostSource, Indices, around, is_empty};
pub use self::centring::{Centring, MAX_LEVEL};
pub use self::clock::{Asked, Clock};
pub use self::definition::Definition;
pub use self::derived::Derived;
pub use self::footprint::{Footprint, Neighbourhood};
pub use self::grid::{Grid, Space};
pub use self::groups::{Groups, made, ordered, outlasts, uses_scalar, waits};
pub use self::levels::Levels;
pub use self::linear::LinearStencil;
pub use self::marks::Marks;
pub use self::member::{Member, check_members};
pub use self::names::{Named, check_name};
pub use self::phases::{Once, Phase, Repeat};
pub use self::placed::Part;
pub(crate) use self::placed::knows_where;
pub use self::problem::Problem;
pub use self::random::{DISTRIBUTIONS, Distribution, MAX_STREAMS};
pub use self::record::{Probe, Record, Rows};
pub use self::region::Region;
pub use self::repeated::Repeated;
pub use self::solve::{Solve, SolveMethod, SystemFormula};
pub use self::split::{Place, Split};
pub use self::stage::{Stage, StageKind};
pub use self::start::Start;
pub use self::stencil::{Field, MAX_RADIUS, Parameter, Scope, Stencil};
pub use self::step::Step;
pub use self::storage::{Launch, Launches, Storage, is_renamed};
pub use self::stretch::Stretch;
pub use self::timed::Timed;
pub use self::transform::{Matrix, Transform, Transforms};
pub use self::until::Until;
pub use self::walls::{FieldWall, Follows, Wall};
pub use self::watch::Watch;

use self::stage::update;
use self::stencil::Names;

/// A computation: fields, parameters, scalars, and the stages of each step of a cycle.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    dimensions: usize,
    fields: Vec<String>,
    /// Of each field.
    kinds: Vec<FieldKind>,
    temporaries: Vec<Temporary>,
    parameters: Vec<Parameter>,
    /// The parameters that are formulas of others.
    derived: Vec<Derived>,
    scalars: Vec<Scalar>,
    /// The stages of all steps of the cycle, and the stages of each.
    stages: Vec<Stage>,
    steps: Vec<Range<usize>>,
    /// What each of the steps is where a step has loops; see [`Program::phases`].
    phases: Vec<Phase>,
    boundary: Boundary,
    /// The sides at which all fields have another boundary.
    sides: Sides,
    until: Option<Until>,
    shown: usize,
    starts: Vec<Start>,
    /// The coefficients that are read beyond the domain, by their numbers; see [`Program::is_tapped_coefficient`].
    coefficients: Vec<usize>,
    grid: Grid,
    /// Conditions at walls that the formulas do not meet yet.
    walls: Vec<FieldWall>,
    /// The program as it was written, where the formulas meet its conditions at walls.
    declared: Option<Arc<Program>>,
}

/// The kind of a field.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FieldKind {
    /// The places of its values.
    pub centring: Centring,
    /// Its own boundary at each axis and side; `None` where it has the program's.
    pub sides: Sides,
    /// The field whose boundaries its own follow, by its number, and how.
    pub follows: Option<(usize, Follows)>,
    /// Whether only the program itself works with it, so that lists of fields leave it out ([`Definition::internal`]).
    pub is_internal: bool,
    /// The precision to which its values are rounded, if that is not the run's type ([`Definition::precision`]).
    pub precision: Option<Precision>,
}

/// A named intermediate of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Temporary {
    /// The name.
    pub name: String,
    /// The places of its values.
    pub centring: Centring,
}

/// A scalar that no host sets: stages make it, and it lives from step to step, or it is an extent of the
/// domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The name.
    pub name: String,
    /// The value before the first step; `None` if a stage makes it before another uses it, or the domain
    /// gives it.
    pub initial: Option<f64>,
    /// The axis, counted from the slowest, whose number of cells the scalar is; no stage makes it then.
    pub extent: Option<usize>,
    /// The meaning with its unit, in a few words.
    pub about: String,
    /// Whether only the program itself works with it, so that lists of scalars leave it out ([`Definition::internal`]).
    pub is_internal: bool,
}

impl Program {
    /// Makes the program of a single stencil per step.
    pub fn new(stencil: &dyn Stencil) -> Result<Program> {
        Program::sequence(stencil.name(), &[stencil])
    }

    /// Makes the program that applies several stencils in order in each step. Fields and parameters of the
    /// same name are shared. Boundary, starts and the shown field are those of the first stencil that has
    /// them.
    pub fn sequence(name: impl Into<String>, stencils: &[&dyn Stencil]) -> Result<Program> {
        let name = name.into();
        let Some(first) = stencils.first() else {
            return Err(Error::invalid(format!("program {name}"), "it has no stencils", "give at least one"));
        };
        let dimensions = first.dimensions();
        if !(1..=3).contains(&dimensions) {
            return Err(Error::limit(
                format!("axes of stencil {}", first.name()),
                dimensions,
                "1 to 3",
                "use 1 to 3 axes",
            ));
        }
        let mut fields: Vec<String> = Vec::new();
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut starts: Vec<Start> = Vec::new();
        for stencil in stencils {
            if stencil.dimensions() != dimensions {
                return Err(Error::invalid(
                    format!("program {name}"),
                    format!(
                        "{} has {} axes, {} has {dimensions}",
                        stencil.name(),
                        stencil.dimensions(),
                        first.name()
                    ),
                    "use stencils of the same number of axes",
                ));
            }
            for field in stencil.fields() {
                if !fields.contains(&field) {
                    starts.push(stencil.start(&field));
                    fields.push(field);
                }
            }
            for parameter in stencil.parameters() {
                if !parameters.iter().any(|p| p.name == parameter.name) {
                    parameters.push(parameter);
                }
            }
        }
        if fields.is_empty() || fields.len() > MAX_COMPONENTS {
            return Err(Error::limit(
                "fields of a program",
                fields.len(),
                format!("1 to {MAX_COMPONENTS}"),
                "split the program",
            ));
        }
        let scalars = parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let names = Names { dimensions, fields, scalars, ..Names::default() };
        let stages = stencils
            .iter()
            .map(|stencil| update(stencil.name(), &names, &|_| Centring::CELL, |s| stencil.define(s)))
            .collect::<Result<Vec<_>>>()?;
        let fields = names.fields;
        let shown = first.shown().min(fields.len() - 1);
        let mut program = Program {
            name,
            dimensions,
            kinds: vec![FieldKind::default(); fields.len()],
            fields,
            temporaries: Vec::new(),
            parameters,
            derived: Vec::new(),
            scalars: Vec::new(),
            steps: std::iter::once(0..stages.len()).collect(),
            stages,
            phases: Vec::new(),
            boundary: first.boundary(),
            sides: Sides::default(),
            until: None,
            shown,
            starts,
            coefficients: Vec::new(),
            grid: Grid::default(),
            walls: Vec::new(),
            declared: None,
        };
        if program.stages.iter().any(|stage| stage.dag.draws()) {
            return Definition::of(&program).build();
        }
        program.find_coefficients();
        program.check_count()?;
        program.check_names().map(|()| program)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of axes.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the names of the fields, in order.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Returns the names of the fields that are somebody's but the program's own.
    pub fn public_fields(&self) -> Vec<String> {
        let all = self.fields.iter().zip(&self.kinds);
        all.filter(|(_, kind)| !kind.is_internal).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the number of a field by its name.
    pub fn field(&self, name: &str) -> Result<usize> {
        self.fields.iter().position(|f| f == name).ok_or_else(|| Error::unknown("field", name, &self.fields))
    }

    /// Returns the numbers of the fields that a name means: those of its components, or a single one.
    pub fn fields_of(&self, name: &str) -> Result<Vec<usize>> {
        let named: Vec<usize> = (0..self.fields.len()).filter(|&f| is_of(&self.fields[f], name)).collect();
        if named.is_empty() { Err(Error::unknown("field", name, &self.fields)) } else { Ok(named) }
    }

    /// Returns the parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the number of a parameter by its name.
    pub fn parameter(&self, name: &str) -> Result<usize> {
        let position = self.parameters.iter().position(|p| p.name == name);
        position
            .ok_or_else(|| Error::unknown("parameter", name, self.parameters.iter().map(|p| p.name.as_str())))
    }

    /// Returns the stages of all steps of the cycle, in order. A plain program has one step.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the stages of each step of the cycle, by their numbers; of each phase of the steps where there are loops
    /// ([`Program::phases`]).
    pub fn steps(&self) -> &[Range<usize>] {
        &self.steps
    }

    /// Returns the kind of each field, in order.
    pub fn kinds(&self) -> &[FieldKind] {
        &self.kinds
    }

    /// Returns the fields whose values are rounded to a precision, by their numbers.
    fn precisions(&self) -> Vec<(u16, Precision)> {
        let all = self.kinds.iter().enumerate();
        all.filter_map(|(field, kind)| Some((field as u16, kind.precision?))).collect()
    }

    /// Returns the temporaries, whose numbers in taps follow those of the fields.
    pub fn temporaries(&self) -> &[Temporary] {
        &self.temporaries
    }

    /// Returns the places of the values of a field or a temporary, by its number in taps.
    pub fn centring(&self, number: usize) -> Centring {
        let temporary = |number: usize| self.temporaries.get(number).map(|temporary| temporary.centring);
        let field = self.kinds.get(number).map(|kind| kind.centring);
        field.or_else(|| temporary(number.checked_sub(self.fields.len())?)).unwrap_or_default()
    }

    /// Returns the names of the fields and then of the temporaries, by their numbers in taps.
    pub fn names(&self) -> Vec<String> {
        self.fields.iter().chain(self.temporaries.iter().map(|temporary| &temporary.name)).cloned().collect()
    }

    /// Returns the computed scalars, whose numbers in formulas follow those of the parameters.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Returns the number of a computed scalar among [`Program::scalars`] by its name.
    pub fn scalar(&self, name: &str) -> Result<usize> {
        let position = self.scalars.iter().position(|scalar| scalar.name == name);
        position.ok_or_else(|| Error::unknown("scalar", name, self.scalars.iter().map(|s| s.name.as_str())))
    }

    /// Returns the number of a parameter or a computed scalar in formulas by its name: parameters come first.
    pub fn number_of_scalar(&self, name: &str) -> Result<usize> {
        let names = || {
            let computed = self.scalars.iter().map(|scalar| &*scalar.name);
            self.parameters.iter().map(|parameter| &*parameter.name).chain(computed)
        };
        names().position(|known| known == name).ok_or_else(|| Error::unknown("scalar", name, names()))
    }

    /// Returns whether the program is one step of stencils over all of the fields, which stand on cells and have
    /// no boundary of their own, so that every schedule can run it.
    pub fn is_plain(&self) -> bool {
        self.steps.len() == 1
            && self.phases.is_empty()
            && self.temporaries.is_empty()
            && self.scalars.is_empty()
            && self.kinds.iter().all(|kind| *kind == FieldKind::default())
            && self.stages.iter().all(|stage| stage.does == StageKind::Update && stage.points.is_empty())
    }

    /// Returns the boundary that suits the program, at the sides that [`Program::boundaries`] does not name otherwise.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// Returns the boundary at each axis and side that suits the program, for the fields that have none of their own.
    pub fn boundaries(&self) -> Boundaries {
        self.sides.over(Boundaries::all(self.boundary))
    }

    /// Returns the program with a condition on a computed scalar that ends its runs, as in `time >= 15.5`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a text that is no condition, [`Error::Unknown`] for a scalar that it does not have.
    pub fn with_until(mut self, condition: &str) -> Result<Program> {
        self.until = Some(Until::parse(condition, &self)?);
        Ok(self)
    }

    /// Returns the condition that ends a run unless the run has another one.
    pub fn until(&self) -> Option<Until> {
        self.until
    }

    /// Returns the number of the field that a picture shows.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Returns the initial state of a field, by its number.
    pub fn start(&self, field: usize) -> &Start {
        &self.starts[field]
    }

    /// Returns the numbers of the fields in groups; a device keeps each group in one array. A group is a single field.
    /// With more than [`MAX_FIELDS`] fields, it is the components of a field that the same stages write.
    pub fn arrays(&self) -> Vec<Range<usize>> {
        let fields = 0..self.fields.len();
        if fields.len() <= MAX_FIELDS {
            return fields.map(|field| field..field + 1).collect();
        }
        // Writers are sorted by field, so that thousands of fields are gone through once a stage.
        let mut writers = vec![Vec::new(); fields.len()];
        for (number, stage) in self.stages.iter().enumerate() {
            stage.writes.iter().for_each(|&field| writers[field].push(number));
        }
        let name = |field: usize| self.fields[field].split_once('[').map(|(name, _)| name);
        let mut arrays: Vec<Range<usize>> = Vec::new();
        for field in fields {
            match arrays.last_mut() {
                Some(last)
                    if name(field).is_some()
                        && name(field) == name(last.start)
                        && writers[field] == writers[last.start] =>
                {
                    last.end += 1;
                }
                _ => arrays.push(field..field + 1),
            }
        }
        arrays
    }

    /// Returns an error if a program that is not plain, or its arrays, are more than a kernel takes.
    pub(crate) fn check_count(&self) -> Result<()> {
        let count = self.fields.len() + self.temporaries.len();
        let refused = |what: &str, asked, limit: String| {
            Err(Error::limit(format!("{what} of program {}", self.name), asked, limit, "split the program"))
        };
        match self.is_plain() {
            false if count > MAX_FIELDS => refused(
                "fields and temporaries",
                count,
                format!("1 to {MAX_FIELDS}, of which one is a field"),
            ),
            true if count > MAX_COMPONENTS => {
                refused("fields and components", count, format!("1 to {MAX_COMPONENTS}"))
            }
            _ if self.arrays().len() > MAX_FIELDS => {
                let limit = format!("1 to {MAX_FIELDS}, each with its components that the same stages set");
                refused("fields", self.arrays().len(), limit)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether any stage writes the field; a field that no stage writes is a coefficient.
    pub fn is_written(&self, field: usize) -> bool {
        self.stages.iter().any(|stage| stage.writes.contains(&field))
    }

    /// Returns whether a field is a coefficient that may be read beyond the domain: a stage taps it away from the place of
    /// the value, or the program has temporaries, whose values beyond the domain are their formulas there.
    pub fn is_tapped_coefficient(&self, field: usize) -> bool {
        self.coefficients.binary_search(&field).is_ok()
    }

    fn find_coefficients(&mut self) {
        let has_temporaries = !self.temporaries.is_empty();
        let mut found = vec![false; self.fields.len()];
        for stage in &self.stages {
            for (found, radius) in found.iter_mut().zip(&stage.footprint.field_radius) {
                *found |= radius.is_some_and(|radius| has_temporaries || radius != [0; 3]);
            }
        }
        for &field in self.stages.iter().flat_map(|stage| &stage.writes) {
            if let Some(found) = found.get_mut(field) {
                *found = false;
            }
        }
        self.coefficients = (0..found.len()).filter(|&field| found[field]).collect();
    }

    /// Returns the radius along each of the three axes, slowest first: the largest of any stage's.
    pub fn radius(&self) -> [usize; 3] {
        let mut radius = [0; 3];
        for stage in self.stages.iter().filter(|stage| stage.points.is_empty()) {
            // Taps of other grids ask for nothing beyond what the stage computes.
            for (name, own) in stage.footprint.field_radius.iter().enumerate() {
                if let Some(own) = own.filter(|_| self.levels(stage, name).is_same()) {
                    radius = [0, 1, 2].map(|axis| radius[axis].max(own[axis]));
                }
            }
        }
        radius
    }

    /// Returns the grid on which a stage computes: the places of what it sets or reduces.
    pub fn grid_of(&self, stage: &Stage) -> Centring {
        stage.grid(|name| self.centring(name))
    }

    /// Returns how the indices at which a stage computes become those of a field or temporary that it taps.
    pub fn levels(&self, stage: &Stage, name: usize) -> Levels {
        self.grid_of(stage).to(self.centring(name))
    }

    /// Returns whether stages compute on one grid, and read nothing of another one.
    pub fn are_on_one_grid<'s>(&self, stages: impl IntoIterator<Item = &'s Stage>) -> bool {
        let mut stages = stages.into_iter().peekable();
        let Some(grid) = stages.peek().map(|stage| self.grid_of(stage)) else { return true };
        stages.all(|stage| {
            let mut read = stage.dag.taps().map(|tap| self.centring(usize::from(tap.field)));
            grid.to(self.grid_of(stage)).is_same() && read.all(|own| grid.to(own).is_same())
        })
    }

    /// Returns whether any field stands on a coarser grid.
    pub fn has_levels(&self) -> bool {
        self.kinds.iter().any(|kind| kind.centring.level() > 0)
    }

    /// Returns whether stages transform lines.
    pub fn transforms(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage.does, StageKind::Transform(_)))
    }

    /// Returns the stages that go over the domain.
    fn sweeps(&self) -> impl Iterator<Item = &Stage> {
        self.stages.iter().filter(|stage| stage.sweeps())
    }

    /// Returns the floating-point operations per cell and step; the mean of the cycle's steps. Those at points and of
    /// scalars are none of a cell's.
    pub fn flops(&self) -> usize {
        self.sweeps().map(|stage| stage.footprint.flops).sum::<usize>().div_ceil(self.cycle())
    }

    /// Returns the operations per cell and step that take a place in an arithmetic pipe; a fused multiply-add
    /// is one. Those of choices at single indices are none of most cells'. The stages are those of [`Program::flops`].
    pub fn operations(&self) -> usize {
        self.sweeps().map(|stage| stage.dag.operations()).sum::<usize>().div_ceil(self.cycle())
    }

    /// Returns the bytes per cell and step of a code that runs the stages in turn, and reads and writes each
    /// field once per stage. The stages are those of [`Program::flops`].
    pub fn bytes(&self, dtype: DType) -> usize {
        let bytes: usize = self.sweeps().map(|stage| stage.footprint.bytes(dtype)).sum();
        bytes.div_ceil(self.cycle())
    }

    /// Returns the same program with every stage's formula simplified for a type of the fields; no value changes by a bit.
    pub fn simplified(&self, dtype: DType) -> Program {
        let mut program = self.clone();
        for stage in &mut program.stages {
            stage.dag = stage.dag.simplified(stage.dtype(dtype));
            let (stores, fields) = (stage.footprint.stores, self.fields.len() + self.temporaries.len());
            stage.footprint = Footprint { stores, ..Footprint::of(&stage.dag, fields) };
        }
        program
    }
}

/// Returns the name of a component, as in `Y[3]`.
pub(crate) fn component(name: &str, number: usize) -> String {
    format!("{name}[{number}]")
}

/// The most fields that a program may have, unless components are more.
pub const MAX_FIELDS: usize = 128;

/// The most steps of a program's cycle. Each is a plan, and kernels, of its own.
pub const MAX_CYCLE: usize = 1024;

/// The most fields that a plain program may have of which all or most are components: [`Program::arrays`] of them must not be
/// more than [`MAX_FIELDS`].
pub const MAX_COMPONENTS: usize = 1 << 13;
