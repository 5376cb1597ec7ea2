//! A definition made a program: its checks as a whole, and the order of its fields and scalars.

use super::{Definition, FieldPart, Value};
use crate::domain::is_of;
use crate::error::{Error, Result};
use crate::expr::{Node, Tap, Term};
use crate::program::derived::Derived;
use crate::program::phases::Cut;
use crate::program::stage::{Stage, StageKind};
use crate::program::{FieldKind, Footprint, Grid, MAX_CYCLE, MAX_FIELDS, Program, Scalar, Temporary};

impl Definition {
    /// Returns the program.
    ///
    /// # Errors
    ///
    /// The first fault of any part; [`Error::Limit`] for a program without fields, steps or stages, or with
    /// more than [`MAX_FIELDS`] fields and temporaries, or [`MAX_COMPONENTS`](crate::program::MAX_COMPONENTS) if it is plain and they
    /// are components; [`Error::Invalid`] for a temporary or a scalar without value that
    /// is used before a stage has made it.
    pub fn build(mut self) -> Result<Program> {
        let counted = self.count_draws();
        self.note(counted);
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let fields = self.kinds.iter().filter(|(_, part)| part.is_some()).count();
        if fields == 0 {
            return Err(Error::limit(
                "fields and temporaries of a program",
                self.kinds.len(),
                format!("1 to {MAX_FIELDS}, of which one is a field"),
                "split the program",
            ));
        }
        if self.steps.is_empty() || self.steps.iter().any(Vec::is_empty) {
            let reason = if self.steps.is_empty() { "it has no step" } else { "a step has no stages" };
            return Err(Error::invalid(
                format!("program {}", self.name),
                reason,
                "call Definition::step, and add stages to the step",
            ));
        }
        let cuts = self.cut_at_loops()?;
        check_order(&self, &cuts)?;
        self.check_levels()?;
        self.check_derived()?;
        self.check_grid()?;
        self.unroll()?;
        let (until, written) = (self.until.take(), std::mem::take(&mut self.written));
        let given = std::mem::take(&mut self.given);
        let shown = match &self.shown {
            None => 0,
            Some(name) => self
                .names
                .fields
                .iter()
                .zip(&self.kinds)
                .filter(|(_, (_, part))| part.is_some())
                .position(|(known, _)| known == name)
                .ok_or_else(|| Error::unknown("field", name, &self.names.fields))?,
        };
        let mut program = self.program(shown);
        program.phases = cuts.into_iter().map(|cut| cut.phase(&program)).collect::<Result<_>>()?;
        for (number, (field, text)) in written.iter().enumerate() {
            let is_later = |name: &str, side: [usize; 2]| {
                let mut later = given.iter().filter(|(after, ..)| *after > number);
                later.any(|(_, other, sides)| is_of(name, other) && sides.contains(&side))
            };
            program.take_conditions(field.as_deref(), text, is_later)?;
        }
        program.sort_walls();
        program.walls.iter().try_for_each(|wall| program.check_wall(wall))?;
        program.check_count()?;
        program.check_names()?;
        match until {
            Some(condition) => program.with_until(&condition),
            None => Ok(program),
        }
    }

    /// Checks that the grid's formulas are of parameters.
    fn check_grid(&self) -> Result<()> {
        let is_parameter = |number: usize| matches!(self.values.get(number), Some(Value::Parameter(_)));
        match self.names.grid.uses().find(|&number| !is_parameter(number)) {
            None => Ok(()),
            Some(number) => Err(Error::invalid(
                format!("grid of program {}", self.name),
                format!("it is a formula of {}, which is computed in each step", self.names.scalars[number]),
                "use parameters",
            )),
        }
    }

    /// Checks that what stages read of other grids are fields, for all values of their own.
    fn check_levels(&self) -> Result<()> {
        for stage in self.steps.iter().flatten() {
            let grid = stage.grid(|name| self.kinds[name].0);
            let apart = stage.dag.taps().map(|tap| usize::from(tap.field)).find(|&name| {
                let is_temporary = self.kinds[name].1.is_none();
                !grid.to(self.kinds[name].0).is_same() && (is_temporary || !stage.points.is_empty())
            });
            if let Some(name) = apart {
                let reason = match stage.points.is_empty() {
                    true => format!("it reads the temporary {} of another grid", self.names.fields[name]),
                    false => format!("at points it reads {}, of another grid", self.names.fields[name]),
                };
                let change = "keep what it reads in a field of its own grid before";
                return Err(Error::invalid(format!("stage {}", stage.name), reason, change));
            }
        }
        Ok(())
    }

    /// Makes the cycle as long as it takes until reductions that are not made in each step come round together.
    fn unroll(&mut self) -> Result<()> {
        let count = self.steps.len();
        let least =
            |length: usize, every: usize| (1..=every).map(|n| n * length).find(|all| all % every == 0);
        let all = self
            .rare
            .iter()
            .try_fold(count, |all, rare| least(all, rare.every).filter(|&all| all <= MAX_CYCLE));
        let Some(all) = all else {
            let what = format!("steps until all reductions of program {} come round together", self.name);
            let every: Vec<String> = self.rare.iter().map(|rare| rare.every.to_string()).collect();
            let asked = format!("those of {} and of every {}", count, every.join(", "));
            return Err(Error::limit(what, asked, MAX_CYCLE, "give numbers of which one divides the other"));
        };
        let is_made = |stage: &Stage, step: usize| match stage.does {
            StageKind::Reduce(_, _, scalar) => {
                let own = self.rare.iter().find(|rare| rare.step == step % count && rare.scalar == scalar);
                own.is_none_or(|rare| step.is_multiple_of(rare.every))
            }
            _ => true,
        };
        let step = |step: usize| {
            self.steps[step % count].iter().filter(move |stage| is_made(stage, step)).cloned().collect()
        };
        let steps: Vec<Vec<Stage>> = (0..all).map(step).collect();
        if steps.iter().any(Vec::is_empty) {
            return Err(Error::invalid(
                format!("program {}", self.name),
                "a step has a reduction alone, which is not made each time",
                "add what the steps between do",
            ));
        }
        self.steps = steps;
        Ok(())
    }

    /// Checks that formulas of parameters are of nothing else, and set nothing else.
    fn check_derived(&self) -> Result<()> {
        let is_parameter = |number: usize| matches!(self.values.get(number), Some(Value::Parameter(_)));
        for (number, dag) in &self.derived {
            if let Some(other) = dag.parameters().chain([*number]).find(|&used| !is_parameter(used)) {
                let name = &self.names.scalars[*number];
                return Err(Error::invalid(
                    format!("parameter {name}"),
                    format!(
                        "it is a formula of parameters, and {} is computed in each step",
                        self.names.scalars[other]
                    ),
                    format!("make {name} a scalar that a stage computes"),
                ));
            }
        }
        Ok(())
    }

    /// Puts fields before temporaries, and parameters before computed scalars.
    fn program(self, shown: usize) -> Program {
        let Definition {
            name, mut names, kinds, values, mut derived, steps, boundary, sides, mut walls, ..
        } = self;
        let is_field: Vec<bool> = kinds.iter().map(|(_, part)| part.is_some()).collect();
        let is_parameter: Vec<bool> =
            values.iter().map(|value| matches!(value, Value::Parameter(_))).collect();
        let (field_order, scalar_order) = (ordered(&is_field), ordered(&is_parameter));
        let mut program = Program {
            name,
            dimensions: names.dimensions,
            fields: Vec::new(),
            kinds: Vec::new(),
            temporaries: Vec::new(),
            parameters: Vec::new(),
            derived: Vec::new(),
            scalars: Vec::new(),
            stages: Vec::new(),
            steps: Vec::new(),
            phases: Vec::new(),
            boundary,
            sides,
            until: None,
            shown,
            starts: Vec::new(),
            coefficients: Vec::new(),
            grid: Grid::default(),
            walls: Vec::new(),
            declared: None,
        };
        let mut followers = Vec::new();
        let precisions = (0..names.fields.len()).map(|field| names.precision(field as u16));
        let precisions: Vec<_> = precisions.collect();
        for (((centring, part), name), precision) in kinds.into_iter().zip(names.fields).zip(precisions) {
            match part {
                Some(FieldPart { sides, start, follows, is_internal }) => {
                    program.fields.push(name);
                    followers.extend(follows.map(|other| (program.kinds.len(), other)));
                    program.kinds.push(FieldKind { centring, sides, follows: None, is_internal, precision });
                    program.starts.push(start);
                }
                None => program.temporaries.push(Temporary { name, centring }),
            }
        }
        for (field, (of, how)) in followers {
            let of = program.fields.iter().position(|known| *known == of);
            program.kinds[field].follows = of.map(|of| (of, how));
        }
        for value in values {
            match value {
                Value::Parameter(parameter) => program.parameters.push(parameter),
                Value::Computed(scalar) => program.scalars.push(scalar),
            }
        }
        for mut step in steps {
            let first = program.stages.len();
            step.iter_mut().for_each(|stage| stage.renumber(&field_order, &scalar_order));
            program.stages.extend(step);
            program.steps.push(first..program.stages.len());
        }
        for (number, dag) in &mut derived {
            dag.nodes.iter_mut().for_each(|node| renumber(node, &field_order, &scalar_order));
            *number = scalar_order[*number];
        }
        for wall in &mut walls {
            wall.dag.nodes.iter_mut().for_each(|node| renumber(node, &field_order, &scalar_order));
            wall.field = field_order[wall.field];
        }
        let formulas = names.grid.formulas_mut().flat_map(|dag| &mut dag.nodes);
        formulas.for_each(|node| renumber(node, &field_order, &scalar_order));
        (program.walls, program.grid) = (walls, names.grid);
        derived.sort_unstable_by_key(|(number, _)| *number);
        program.derived = derived.into_iter().map(|(parameter, dag)| Derived { parameter, dag }).collect();
        let mut defaults: Vec<f64> = program.parameters.iter().map(|parameter| parameter.default).collect();
        program.derive(&mut defaults);
        for (parameter, default) in program.parameters.iter_mut().zip(defaults) {
            parameter.default = default;
        }
        program.find_coefficients();
        program
    }
}

/// Returns for each item its number when those of the first kind come first.
fn ordered(is_first: &[bool]) -> Vec<usize> {
    let firsts = is_first.iter().filter(|&&first| first).count();
    let (mut first, mut second) = (0..firsts, firsts..is_first.len());
    is_first.iter().map(|&f| if f { first.next() } else { second.next() }.unwrap_or(0)).collect()
}

/// Gives a node the new numbers of the field or the scalar that it reads.
fn renumber(node: &mut Node, fields: &[usize], scalars: &[usize]) {
    match node {
        Node::Tap(Tap { field, .. }) => *field = fields[usize::from(*field)] as u16,
        Node::Param(number) => *number = scalars[usize::from(*number)] as u16,
        _ => {}
    }
}

impl Stage {
    fn renumber(&mut self, fields: &[usize], scalars: &[usize]) {
        let renumber = |node: &mut Node| renumber(node, fields, scalars);
        self.dag.nodes.iter_mut().for_each(renumber);
        for term in self.looped.iter_mut().flat_map(|looped| &mut looped.terms) {
            match term {
                Term::Node(node) => renumber(node),
                // The components of a field stay beside each other.
                Term::Component(Tap { field, .. }, _) => *field = fields[usize::from(*field)] as u16,
                _ => {}
            }
        }
        self.writes.iter_mut().for_each(|field| *field = fields[*field]);
        if let StageKind::Reduce(_, _, scalar) | StageKind::Scalar(scalar) = &mut self.does {
            *scalar = scalars[*scalar];
        }
        let stores = self.footprint.stores;
        self.footprint = Footprint { stores, ..Footprint::of(&self.dag, fields.len()) };
    }
}

/// Checks that temporaries are made in a step before it reads them, and scalars in the cycle.
fn check_order(definition: &Definition, cuts: &[Cut]) -> Result<()> {
    let Definition { names, kinds, values, steps, .. } = definition;
    let has_value = values
        .iter()
        .map(|value| !matches!(value, Value::Computed(Scalar { initial: None, extent: None, .. })));
    let mut has_value: Vec<bool> = has_value.collect();
    for (number, step) in steps.iter().enumerate() {
        // A loop may have no turn.
        let before = cuts.get(number).filter(|cut| cut.repeat.is_some()).map(|_| has_value.clone());
        let mut made: Vec<bool> = kinds.iter().map(|(_, part)| part.is_some()).collect();
        for stage in step {
            let unmade = |name: &str, what: &str| {
                Error::invalid(
                    format!("stage {}", stage.name),
                    format!("it uses the {what} {name} before a stage has made it"),
                    "put the stage that makes it before this one",
                )
            };
            for node in &stage.dag.nodes {
                match *node {
                    Node::Tap(Tap { field, .. }) if !made[usize::from(field)] => {
                        let field = usize::from(field);
                        let name = &names.fields[field];
                        return Err(match stage.writes.contains(&field) {
                            true => Error::invalid(
                                format!("stage {}", stage.name),
                                format!("it defines the temporary {name} by {name} itself"),
                                "make it a field, which has an old value",
                            ),
                            false if !cuts.is_empty() => Error::invalid(
                                format!("stage {}", stage.name),
                                format!(
                                    "it uses the temporary {name}, which lives within its loop, or between two"
                                ),
                                "make it a field, or make it where it is used",
                            ),
                            false => unmade(name, "temporary"),
                        });
                    }
                    Node::Param(number) if !has_value[usize::from(number)] => {
                        return Err(unmade(&names.scalars[usize::from(number)], "scalar"));
                    }
                    _ => {}
                }
            }
            stage.writes.iter().for_each(|&field| made[field] = true);
            if let StageKind::Reduce(_, _, scalar) | StageKind::Scalar(scalar) = stage.does {
                has_value[scalar] = true;
            }
        }
        has_value = before.unwrap_or(has_value);
    }
    Ok(())
}
