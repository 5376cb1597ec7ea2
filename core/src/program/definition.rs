//! Programs as their authors write them: fields of several kinds, temporaries, scalars, and the stages of
//! each step of a cycle.

mod build;

use super::centring::Centring;
use super::phases::Loop;
use super::stage::{Stage, StageKind, single};
use super::start::Start;
use super::stencil::{Names, Parameter, Scope};
use super::step::Step;
use super::walls::{FieldWall, Follows, Wall, walls_of};
use super::{MAX_COMPONENTS, MAX_CYCLE, Program, Scalar, component};
use crate::domain::{Boundary, BoundaryText, Sides, is_of, sides_of};
use crate::error::{Error, Result};
use crate::expr::{Dag, Expr, Looped};
use crate::precision::Precision;
use crate::real::DType;

/// Defines a program, part by part; [`Definition::build`] checks all of it.
///
/// Fields, temporaries, parameters and scalars are declared before the stages that use them. A faulty part
/// does not stop the definition; the first fault is the error of [`Definition::build`].
///
/// ```
/// use abide_core::program::{Centring, Definition, Reduction};
///
/// // Heat with the largest stable time step, found anew in each step.
/// let mut p = Definition::new("heat-adaptive", 1);
/// p.field("u", Centring::CELL).field("k", Centring::CELL);
/// p.scalar("stiffest", None, "largest conductivity").scalar("time", Some(0.0), "time in s");
/// let mut step = p.step();
/// step.reduce("stiffest", Reduction::Max, Centring::CELL, |s| s.field("k").here());
/// step.stage("diffuse", |s| {
///     let (u, k) = (s.field("u"), s.field("k"));
///     s.set("u", u.here() + 0.5 / s.param("stiffest") * k.here() * u.laplacian());
/// });
/// step.compute("time", |s| s.param("time") + 0.5 / s.param("stiffest"));
/// let program = p.build()?;
/// assert_eq!(program.scalars().len(), 2);
/// # Ok::<(), abide_core::Error>(())
/// ```
pub struct Definition {
    name: String,
    pub(super) names: Names,
    /// Of each name among fields and temporaries.
    pub(super) kinds: Vec<(Centring, Option<FieldPart>)>,
    /// Of each name among scalars: a parameter or a computed scalar.
    pub(super) values: Vec<Value>,
    /// The scalars that are formulas of parameters, by their numbers.
    derived: Vec<(usize, Dag)>,
    pub(super) steps: Vec<Vec<Stage>>,
    pub(super) rare: Vec<Rare>,
    /// The loops of all steps, in order.
    pub(super) loops: Vec<Loop>,
    /// The loop to which stages are added.
    pub(super) open_loop: Option<Loop>,
    boundary: Boundary,
    sides: Sides,
    /// Conditions at walls, by the numbers of their fields.
    walls: Vec<FieldWall>,
    /// The boundaries as they were written, of all fields or of the named one, whose conditions may name scalars that are
    /// declared later.
    written: Vec<(Option<String>, BoundaryText)>,
    /// The sides of fields that were given conditions after so many of these.
    given: Vec<(usize, String, Vec<[usize; 2]>)>,
    until: Option<String>,
    shown: Option<String>,
    fault: Option<Error>,
}

/// A reduction of a step of the cycle that is made once in so many steps of the run.
pub(super) struct Rare {
    pub step: usize,
    /// The scalar, by its number among all.
    pub scalar: usize,
    pub every: usize,
}

pub(super) struct FieldPart {
    sides: Sides,
    start: Start,
    /// The field whose boundaries its own follow, and how.
    follows: Option<(String, Follows)>,
    is_internal: bool,
}

pub(super) enum Value {
    Parameter(Parameter),
    Computed(Scalar),
}

impl Definition {
    /// Begins a program of a name on 1 to 3 axes.
    pub fn new(name: impl Into<String>, dimensions: usize) -> Self {
        let name = name.into();
        let fault = (!(1..=3).contains(&dimensions)).then(|| {
            Error::limit(format!("axes of program {name}"), dimensions, "1 to 3", "use 1 to 3 axes")
        });
        Definition {
            name,
            names: Names { dimensions, ..Names::default() },
            kinds: Vec::new(),
            values: Vec::new(),
            derived: Vec::new(),
            steps: Vec::new(),
            rare: Vec::new(),
            loops: Vec::new(),
            open_loop: None,
            boundary: Boundary::Fixed,
            sides: Sides::default(),
            walls: Vec::new(),
            written: Vec::new(),
            given: Vec::new(),
            until: None,
            shown: None,
            fault,
        }
    }

    /// Begins with all parts of a program, to which others are added: sources, probed scalars, parameters that
    /// vary ([`Definition::extend`], [`Definition::vary`]).
    ///
    /// ```
    /// use abide_core::catalogue;
    /// use abide_core::program::Definition;
    ///
    /// // A wave that an oscillating point drives.
    /// let mut p = Definition::of(&catalogue::find("wave")?.program(2)?);
    /// p.scalar("step", Some(0.0), "steps done");
    /// p.extend(0)
    ///     .compute("step", |s| s.param("step") + 1.0)
    ///     .points("source", &[[40, 60]], |s| {
    ///         s.set("u", s.field("u").here() + 0.1 * (0.3 * s.param("step")).sin());
    ///     });
    /// let program = p.build()?;
    /// assert!(!program.is_plain());
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn of(program: &Program) -> Self {
        let program = program.declared();
        let fields = program.kinds.iter().zip(&program.starts).map(|(kind, start)| {
            let follows = kind.follows.map(|(other, how)| (program.fields[other].clone(), how));
            let is_internal = kind.is_internal;
            let part = FieldPart { sides: kind.sides, start: start.clone(), follows, is_internal };
            (kind.centring, Some(part))
        });
        let temporaries = program.temporaries.iter().map(|temporary| (temporary.centring, None));
        let parameters = program.parameters.iter().cloned().map(Value::Parameter);
        let computed = program.scalars.iter().cloned().map(Value::Computed);
        let scalars = program.parameters.iter().map(|parameter| parameter.name.clone());
        let mut definition = Definition {
            name: program.name.clone(),
            names: Names {
                dimensions: program.dimensions,
                fields: program.names(),
                scalars: scalars.chain(program.scalars.iter().map(|scalar| scalar.name.clone())).collect(),
                grid: program.grid.clone(),
                precisions: program.precisions(),
            },
            kinds: fields.chain(temporaries).collect(),
            values: parameters.chain(computed).collect(),
            derived: program.derived.iter().map(|own| (own.parameter, own.dag.clone())).collect(),
            steps: program.steps.iter().map(|step| program.stages[step.clone()].to_vec()).collect(),
            rare: Vec::new(),
            loops: Vec::new(),
            open_loop: None,
            boundary: program.boundary,
            sides: program.sides,
            walls: program.walls.clone(),
            written: Vec::new(),
            given: Vec::new(),
            until: program.until.map(|until| until.describe(program)),
            shown: program.fields.get(program.shown).cloned(),
            fault: None,
        };
        definition.join_phases(program);
        definition
    }

    /// Returns the program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the program another name.
    pub fn rename(&mut self, name: impl Into<String>) -> &mut Self {
        self.name = name.into();
        self
    }

    /// Returns the number of axes.
    pub fn dimensions(&self) -> usize {
        self.names.dimensions
    }

    /// Returns the steps of the cycle so far.
    pub fn cycle(&self) -> usize {
        self.steps.len()
    }

    /// Returns the terms of all stages so far that have loops, with each turn written out.
    pub fn written_out(&self) -> usize {
        let looped = self.steps.iter().flatten().filter_map(|stage| stage.looped.as_ref());
        looped.map(Looped::written_out).fold(0, usize::saturating_add)
    }

    /// Returns the first fault so far, which [`Definition::build`] will return as its error.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// Returns the names of the fields and temporaries declared so far.
    pub fn fields(&self) -> &[String] {
        &self.names.fields
    }

    /// Returns the names of the parameters and computed scalars declared so far.
    pub fn scalars(&self) -> &[String] {
        &self.names.scalars
    }

    /// Returns whether a name is that of a parameter, which no stage makes.
    pub fn is_parameter(&self, name: &str) -> bool {
        let all = self.names.scalars.iter().zip(&self.values);
        all.into_iter().any(|(known, value)| known == name && matches!(value, Value::Parameter(_)))
    }

    /// Returns where the values of a field or temporary of a name stand; `None` if there is none.
    pub fn on(&self, name: &str) -> Option<Centring> {
        let number = self.names.fields.iter().position(|known| is_of(known, name))?;
        Some(self.centring(number))
    }

    /// Returns the centring of a field or temporary by its number.
    pub(super) fn centring(&self, field: usize) -> Centring {
        self.kinds.get(field).map_or(Centring::CELL, |kind| kind.0)
    }

    pub(super) fn note(&mut self, result: Result<()>) {
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }

    fn new_name(&mut self, name: &str) {
        if name.is_empty() || self.names.fields.iter().chain(&self.names.scalars).any(|known| known == name) {
            self.note(Err(Error::invalid(
                format!("program {}", self.name),
                format!("the name `{name}` is empty or stands for two things"),
                "give each field, temporary, parameter and scalar a name of its own",
            )));
        }
    }

    /// Declares a field, which lives from step to step; its start is zero and its boundary the program's
    /// unless [`Definition::start`] and [`Definition::boundary_of`] say otherwise.
    pub fn field(&mut self, name: &str, centring: Centring) -> &mut Self {
        self.new_name(name);
        let part = FieldPart {
            sides: Sides::default(),
            start: Start::Constant(0.0),
            follows: None,
            is_internal: false,
        };
        self.names.fields.push(name.to_owned());
        self.kinds.push((centring.of(self.names.dimensions), Some(part)));
        self
    }

    /// Declares a temporary, a named intermediate of a step: a stage sets it, and later stages of the same
    /// step read it. It has neither state nor boundary; read beyond the domain, it is its formula there, of
    /// its inputs' ghost values.
    pub fn temporary(&mut self, name: &str, centring: Centring) -> &mut Self {
        self.new_name(name);
        self.names.fields.push(name.to_owned());
        self.kinds.push((centring.of(self.names.dimensions), None));
        self
    }

    /// Declares a field of `count` components `NAME[0]`, `NAME[1]`, …, each of which is a field: formulas read and
    /// set them by [`Scope::component`] and [`Scope::set_component`], boundary and start are said for all of
    /// them by the name alone.
    pub fn components(&mut self, name: &str, count: usize, centring: Centring) -> &mut Self {
        if count == 0 {
            let (what, change) = (format!("components of field {name}"), "give it one at least");
            self.note(Err(Error::limit(what, count, "1 at least", change)));
        }
        let asked = self.kinds.len().saturating_add(count);
        if asked > MAX_COMPONENTS {
            let what = "fields and components of a program";
            self.note(Err(Error::limit(what, asked, MAX_COMPONENTS, "split the program")));
            return self;
        }
        for number in 0..count {
            self.field(&component(name, number), centring);
        }
        self
    }

    /// Has the values of a field, or of all of its components, rounded to a precision: those that it starts with and those that
    /// stages set. A device may store them so, which takes less memory and less time to read and write. In a run of f64, operations
    /// whose fields are all of such precisions are those of f32. Stages come behind it.
    ///
    /// ```
    /// use abide_core::Precision;
    /// use abide_core::program::{Centring, Definition};
    ///
    /// let mut p = Definition::new("blur", 1);
    /// p.field("u", Centring::CELL).precision("u", Precision::F16);
    /// p.step().stage("blur", |s| s.set("u", s.field("u").here() + 0.1 * s.field("u").laplacian()));
    /// assert_eq!(p.build()?.kinds()[0].precision, Some(Precision::F16));
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn precision(&mut self, name: &str, precision: Precision) -> &mut Self {
        // The fields are known by their names alone.
        self.change(name, |_| ());
        let numbers = (0..self.names.fields.len()).filter(|&field| is_of(&self.names.fields[field], name));
        let numbers: Vec<u16> = numbers.map(|field| field as u16).collect();
        let is_used = |stage: &Stage| {
            let read = stage.dag.taps().map(|tap| tap.field);
            read.chain(stage.writes.iter().map(|&field| field as u16)).any(|field| numbers.contains(&field))
        };
        if self.steps.iter().flatten().any(is_used) {
            self.note(Err(Error::invalid(
                format!("precision of field {name}"),
                "a stage before reads or sets the field",
                "give precisions before stages",
            )));
        }
        self.names.precisions.retain(|(known, _)| !numbers.contains(known));
        self.names.precisions.extend(numbers.into_iter().map(|field| (field, precision)));
        self
    }

    /// Calls `change` with the field of a name, or with all of its components.
    fn change(&mut self, name: &str, mut change: impl FnMut(&mut FieldPart)) {
        let kinds = self.names.fields.iter().zip(&mut self.kinds);
        let fields = kinds.filter_map(|(known, (_, part))| Some((known, part.as_mut()?)));
        let mut is_known = false;
        for (_, part) in fields.filter(|(known, _)| is_of(known, name)) {
            change(part);
            is_known = true;
        }
        if !is_known {
            let kinds = self.names.fields.iter().zip(&self.kinds);
            let fields = kinds.filter(|(_, (_, part))| part.is_some()).map(|(name, _)| name);
            let unknown = Error::unknown("field", name, fields);
            self.note(Err(unknown));
        }
    }

    /// Sets the boundary of all fields that have none of their own; `fixed` unless given.
    pub fn boundary(&mut self, boundary: Boundary) -> &mut Self {
        (self.boundary, self.sides) = (boundary, Sides::default());
        self.written.iter_mut().for_each(|(_, text)| text.forget_all());
        self
    }

    /// Sets boundaries as a user writes them: for all fields as in `periodic` or `x-=mirror,x+=constant=1`, and for
    /// single ones as in `u:x=-reflect` or, as a condition at a wall, `u:x-=dirichlet=1`. Sides that it does not name keep theirs. The fields that it names are declared
    /// before.
    pub fn boundaries(&mut self, text: &str) -> &mut Self {
        let dimensions = self.names.dimensions;
        let read = text.parse::<BoundaryText>().and_then(|text| {
            let own = text.of_fields(&self.names.fields, dimensions)?;
            Ok((text.every(), text.of_all(dimensions)?, own, text))
        });
        match read {
            Ok((every, sides, own, text)) => {
                match every {
                    Some(every) => drop(self.boundary(every)),
                    None => self.sides = sides.or(self.sides),
                }
                self.written.push((None, text));
                let of_temporaries = self.kinds.iter_mut().zip(&own).zip(&self.names.fields).find_map(
                    |((kind, own), name)| {
                        match &mut kind.1 {
                            Some(part) => part.sides = own.or(part.sides),
                            None if *own != Sides::default() => return Some(name.clone()),
                            None => {}
                        }
                        None
                    },
                );
                if let Some(name) = of_temporaries {
                    let change = "name a field; beyond the domain a temporary is its formula there";
                    self.note(Err(Error::invalid(
                        format!("boundary of {name}"),
                        "it is a temporary",
                        change,
                    )));
                }
            }
            Err(fault) => self.note(Err(fault)),
        }
        self
    }

    /// Ends each run of the program by a condition on a computed scalar, as in `time >= 15.5`, unless a run has
    /// another one.
    pub fn until(&mut self, condition: &str) -> &mut Self {
        self.until = Some(condition.to_owned());
        self
    }

    /// Sets a field's own boundary, written as in `x=-reflect,y=mirror`; sides that it does not name have the
    /// program's.
    pub fn boundary_of(&mut self, field: &str, text: &str) -> &mut Self {
        let read = text.parse::<BoundaryText>();
        match read.and_then(|text| Ok((text.sides(self.names.dimensions)?, text))) {
            Ok((sides, text)) => {
                self.change(field, |part| part.sides = sides);
                self.written.push((Some(field.to_owned()), text));
            }
            Err(fault) => self.note(Err(fault)),
        }
        self
    }

    /// Gives a field, or all components of one, a condition at a wall: at a side as in `x-`, at both of an axis as in `x`,
    /// or at `all`. Its values are formulas of scalars and of the places along the wall ([`Scope::position`]).
    pub fn wall(
        &mut self,
        field: &str,
        sides: &str,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Wall<'g>,
    ) -> &mut Self {
        let sides = sides_of(sides, self.names.dimensions);
        let walls = sides.and_then(|sides| Ok((walls_of(&self.names, 0, &sides, define)?, sides)));
        let (walls, sides) = match walls {
            Ok(walls) => walls,
            Err(fault) => {
                self.note(Err(fault));
                return self;
            }
        };
        self.change(field, |part| {
            sides.iter().for_each(|&[axis, side]| part.sides.0[axis][side] = None);
        });
        self.given.push((self.written.len(), field.to_owned(), sides.clone()));
        for (number, _) in self.names.fields.iter().enumerate().filter(|(_, name)| is_of(name, field)) {
            let own = walls.iter().map(|wall| FieldWall { field: number, ..wall.clone() });
            self.walls.retain(|known| {
                let is_other = |&[axis, side]: &[usize; 2]| [known.axis, known.side] != [axis, side];
                known.field != number || sides.iter().all(is_other)
            });
            self.walls.extend(own);
        }
        self
    }

    /// Returns whether a field's boundaries follow those of another one, and how.
    pub(super) fn does_follow(&self, name: &str, of: &str, how: Follows) -> bool {
        let number = self.names.fields.iter().position(|known| known == name);
        let part = number.and_then(|number| self.kinds[number].1.as_ref());
        part.and_then(|part| part.follows.as_ref()).is_some_and(|(other, own)| other == of && *own == how)
    }

    /// Lets a field's boundaries follow those of another one, whichever a run gives that one: see [`Definition::correction`] and
    /// [`Definition::inside`].
    pub fn follow(&mut self, name: &str, of: &str, how: Follows) -> &mut Self {
        if self.on(of).is_none() || self.on(of) != self.on(name) || name == of {
            let change = "name another field that stands where this one does";
            let reason = format!("its boundaries cannot follow those of {of}");
            self.note(Err(Error::invalid(format!("field {name}"), reason, change)));
        }
        self.change(name, |part| part.follows = Some((of.to_owned(), how)));
        self
    }

    /// Sets a field's initial state unless a run gives another one.
    pub fn start(&mut self, field: &str, start: Start) -> &mut Self {
        self.note(start.check(DType::F64));
        self.change(field, |part| part.start = start.clone());
        self
    }

    /// Sets the field that a picture shows; the first unless given.
    pub fn shown(&mut self, field: &str) -> &mut Self {
        self.shown = Some(field.to_owned());
        self
    }

    /// Declares a parameter, which the host sets, with its default and its meaning.
    pub fn parameter(&mut self, name: &str, default: f64, about: &str) -> &mut Self {
        self.new_name(name);
        self.names.scalars.push(name.to_owned());
        self.values.push(Value::Parameter(Parameter::new(name, default, about)));
        self
    }

    /// Declares a parameter that is a formula of parameters declared before, with its meaning. No host sets it: the
    /// host computes it in f64 whenever one of them is set, and rounds it once to the run's type. Its default is its
    /// value where they have theirs.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition};
    ///
    /// let mut p = Definition::new("upwind", 1);
    /// p.field("u", Centring::CELL).parameter("dt", 0.1, "step in s").parameter("dx", 0.5, "cell in m");
    /// p.derived("courant", "cells a step at 1 m/s", |s| s.param("dt") / s.param("dx"));
    /// p.step().stage("move", |s| {
    ///     let u = s.field("u");
    ///     s.set("u", u.here() + s.param("courant") * (u.at([-1]) - u.here()));
    /// });
    /// assert_eq!(p.build()?.parameters()[2].default, 0.1 / 0.5);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn derived(
        &mut self,
        name: &str,
        about: &str,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        let number = self.names.scalars.len();
        let centring = |field| self.centring(field);
        let stage = single(name, &self.names, &centring, StageKind::Scalar(number), define);
        self.parameter(name, f64::NAN, about);
        match stage {
            Ok(stage) => self.derived.push((number, stage.dag)),
            Err(fault) => self.note(Err(fault)),
        }
        self
    }

    /// Declares a computed scalar, which stages make and which lives from step to step, with its value before
    /// the first step and its meaning. Without a value, a stage must make it before another one uses it.
    pub fn scalar(&mut self, name: &str, initial: Option<f64>, about: &str) -> &mut Self {
        self.new_name(name);
        self.names.scalars.push(name.to_owned());
        self.values.push(Value::Computed(Scalar {
            name: name.to_owned(),
            initial,
            extent: None,
            about: about.to_owned(),
            is_internal: false,
        }));
        self
    }

    /// Says of a field or a computed scalar that only the program itself works with it: lists of fields and scalars, and files of all fields, leave
    /// it out. By its name it is there for all.
    pub fn internal(&mut self, name: &str) -> &mut Self {
        let scalar = self.names.scalars.iter().position(|known| known == name);
        match scalar.map(|number| &mut self.values[number]) {
            Some(Value::Computed(scalar)) => scalar.is_internal = true,
            _ => self.change(name, |part| part.is_internal = true),
        }
        self
    }

    /// Declares a scalar that is the number of the domain's cells along an axis, counted from the slowest,
    /// with its meaning.
    ///
    /// A formula needs it to know, by [`Scope::coord`], that a value lies at the high side of an axis or
    /// beyond. Boundaries say what is seen there, but each field has one rule for each side: what holds only
    /// where two sides meet, or on a single plane, is a choice that the formula makes.
    pub fn extent(&mut self, name: &str, axis: usize, about: &str) -> &mut Self {
        self.new_name(name);
        let dimensions = self.names.dimensions;
        if axis >= dimensions {
            let change = "use an axis of the program";
            let what = format!("axis of the extent {name}");
            self.note(Err(Error::limit(what, axis, dimensions.saturating_sub(1), change)));
        }
        self.names.scalars.push(name.to_owned());
        self.values.push(Value::Computed(Scalar {
            name: name.to_owned(),
            initial: None,
            extent: Some(axis),
            about: about.to_owned(),
            is_internal: false,
        }));
        self
    }

    /// Begins the next step of the cycle. A program of one step repeats it; one of two takes them in turn.
    pub fn step(&mut self) -> Step<'_> {
        if self.steps.len() == MAX_CYCLE {
            let what = format!("steps of the cycle of program {}", self.name);
            self.note(Err(Error::limit(
                what,
                MAX_CYCLE + 1,
                MAX_CYCLE,
                "let a scalar count, and formulas choose by it",
            )));
        }
        self.steps.push(Vec::new());
        Step { number: self.steps.len() - 1, definition: self }
    }

    /// Goes on with a step of the cycle, counted from 0: stages are added to its end.
    pub fn extend(&mut self, number: usize) -> Step<'_> {
        if number >= self.steps.len() {
            let (what, most) = (format!("step of program {}", self.name), self.steps.len());
            let asked = Error::limit(what, number, format!("below {most}"), "begin it by Definition::step");
            self.note(Err(asked));
        }
        Step { number, definition: self }
    }

    /// Makes a parameter a function of scalars, for example of a computed time: a computed scalar from now on,
    /// which has the parameter's default before the first step and is found anew at the beginning of each step
    /// that is defined.
    pub fn vary(
        &mut self,
        parameter: &str,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        let number = self.names.scalars.iter().position(|known| known == parameter);
        let value = number.and_then(|number| self.values.get_mut(number));
        let (Some(number), Some(value @ Value::Parameter(_))) = (number, value) else {
            let parameters = self.names.scalars.iter().zip(&self.values);
            let parameters = parameters.filter(|(_, value)| matches!(value, Value::Parameter(_)));
            let unknown = Error::unknown("parameter", parameter, parameters.map(|(name, _)| name));
            self.note(Err(unknown));
            return self;
        };
        if let Value::Parameter(Parameter { name, default, about, .. }) = &*value {
            let (name, about) = (name.clone(), about.clone());
            *value = Value::Computed(Scalar {
                name,
                initial: Some(*default),
                extent: None,
                about,
                is_internal: false,
            });
        }
        let centring = |field| self.centring(field);
        match single(parameter, &self.names, &centring, StageKind::Scalar(number), define) {
            Ok(stage) => {
                self.steps.iter_mut().for_each(|step| step.insert(0, stage.clone()));
                self.shift_loops();
            }
            Err(fault) => self.note(Err(fault)),
        }
        self
    }
}
