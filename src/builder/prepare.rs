//! From a description to a checked problem and its initial fields.

use std::path::PathBuf;

use super::batch::{all_values, axes, axes_of, make_batch};
use super::{Builder, Initial, Model, Values};
use crate::backend::Host;
use crate::domain::Sides;
use crate::io;
use crate::io::checkpoint::{Formulas, Head};
use crate::program::{Marks, Member, Probe, Problem, Record, Until, check_members};
use crate::{Boundaries, DType, Error, Result, Shape, Start};

impl Builder {
    /// Checks the description against the program, its inputs' sizes and the checkpoint.
    pub(super) fn prepare(mut self) -> Result<(Builder, Prepared)> {
        let model = std::mem::replace(&mut self.model, Err(Error::unknown("model", "", [""; 0])))?;
        let resumed = match &self.resume {
            Some(path) => Some((path.clone(), io::checkpoint::read_head(path)?)),
            None => None,
        };
        let stored = resumed.as_ref().and_then(|(_, head)| head.members());
        let members = self.batch.or(stored);
        members.map_or(Ok(()), check_members)?;
        let shape = self.shape(&model, resumed.as_ref().map(|(_, head)| head), members)?;
        let mut program = model.program(shape.dimensions())?;
        if let Some(text) = &self.boundary_text {
            program = program.with_boundary_text(text)?;
            self.boundaries = Some(text.over(program.boundaries(), program.dimensions())?);
        }
        let boundaries = self.boundaries.unwrap_or_else(|| program.boundaries());
        let dtype = self.dtype.unwrap_or(DType::F32);
        let mut problem = Problem::unchecked(program, shape, dtype);
        problem.boundaries = boundaries;
        if let Some(text) = &self.boundary_text {
            let program = &problem.program;
            let own = text.of_fields(program.fields(), program.dimensions())?;
            problem.sides = own.iter().zip(&problem.sides).map(|(own, sides)| own.or(*sides)).collect();
        }
        problem.lower_walls()?;
        self.boundaries = self.boundaries.and(Some(problem.boundaries));
        for (name, value) in &self.scalars {
            let number = problem.program.scalar(name)?;
            check_parameter(name, *value, dtype)?;
            problem.scalars[number] = *value;
        }
        problem.first_step = self.first_step;
        if let Some(condition) = &self.until {
            problem.until = Some(Until::parse(condition, &problem.program)?);
        }
        problem.marks = match &self.marks {
            Some((scalar, by)) => Some(Marks::new(&problem.program, scalar, *by)?),
            None => None,
        };
        if self.record.is_some() || !self.probes.is_empty() {
            let probes = self.probes.iter().map(|(field, index)| Probe::new(&problem.program, field, index));
            let probes = probes.collect::<Result<Vec<_>>>()?;
            problem.record = Some(Record::new(&problem.program, self.record.unwrap_or(1), probes));
        }
        if let Some(members) = members {
            make_batch(&mut problem, members)?;
        }
        for (name, setting) in &self.parameters {
            setting.set(&mut problem, name)?;
        }
        problem.derive();
        for (name, _) in &self.initial {
            problem.program.field(name)?;
        }
        // A default that is an infinity is carried; one that becomes one in the type is refused.
        for (parameter, &value) in problem.program.parameters().iter().zip(&problem.parameters) {
            if value.is_finite() {
                check_parameter(&parameter.name, value, dtype)?;
            }
        }
        let mut notes = Vec::new();
        let walls = problem.program.words_of_walls();
        if !walls.is_empty() {
            notes.push(format!("conditions at walls: {}", walls.join(", ")));
        }
        if let Some((_, head)) = &resumed {
            self.adopt(head, &mut problem, &mut notes)?;
        }
        let of_members = problem.batch.iter().map(|member| &member.parameters);
        for parameters in of_members.chain([&problem.parameters]) {
            problem.program.check_derived(parameters, problem.dtype)?;
        }
        problem.check()?;
        Ok((self, Prepared { problem, resumed, notes }))
    }

    /// Checks that the run gives values to the fields for which the program has none.
    pub(super) fn check_starts(&self, problem: &Problem) -> Result<()> {
        let program = &problem.program;
        for (number, name) in program.fields().iter().enumerate() {
            let own = self.initial.iter().rfind(|(field, _)| field == name).map(|(_, initial)| initial);
            let start = match own {
                None => program.start(number),
                Some(Initial::Start(start)) => start,
                Some(_) => continue,
            };
            if *start == Start::Given {
                return Err(Start::missing(&format!("field {name}")));
            }
        }
        Ok(())
    }

    /// Returns the size: the given one, else the one that the checkpoint or an input implies, else the
    /// model's default.
    fn shape(&mut self, model: &Model, resumed: Option<&Head>, members: Option<usize>) -> Result<Shape> {
        let given = self.size.as_deref().map(Shape::new).transpose()?;
        let axes =
            axes(members, given.map_or(model.dimensions(), |given| given.dimensions()..=given.dimensions()));
        let mut implied = None;
        for (name, initial) in &mut self.initial {
            let own = match initial {
                Initial::Start(_) => None,
                Initial::Values(values) => values.shape(name, &axes)?,
                Initial::File(path) => match io::announced_as(path, &axes)? {
                    Some(announced) => Some(announced.shape),
                    // A file that can be read only once is read now.
                    None => {
                        let loaded = io::read_as(path, DType::F64, &axes)?;
                        let shape = loaded.shape;
                        *initial = Initial::Values(loaded.into());
                        Some(shape)
                    }
                },
            };
            // What stands on faces and nodes is held against its field's extents when the fields are filled.
            let Some(own) = own.filter(|own| model.is_on_cells(name, own.dimensions())) else { continue };
            if let Some(other) = given.or(implied).filter(|other| *other != own) {
                return Err(Error::invalid(
                    format!("input of field {name}"),
                    format!("its size is {own}, the domain's is {other}"),
                    "give inputs of the domain's size, or leave --size out",
                ));
            }
            implied = Some(own);
        }
        match given.or(implied).or(resumed.map(|head| head.shape)) {
            Some(shape) => Ok(shape),
            None => model.default_size(),
        }
    }

    /// Takes from a checkpoint everything that was not given, and refuses whatever was given otherwise.
    fn adopt(&self, checkpoint: &Head, problem: &mut Problem, notes: &mut Vec<String>) -> Result<()> {
        let path = self.resume.clone().unwrap_or_default();
        let differs = |what: &str, stored: String, given: String| {
            Error::file(
                path.clone(),
                format!("{what}: the checkpoint has {stored}, given is {given}"),
                format!("leave {what} out to go on as before"),
            )
        };
        if !self.initial.is_empty() {
            return Err(Error::file(path, "a checkpoint brings all fields with it", "leave the inputs out"));
        }
        let program = &problem.program;
        if checkpoint.program != program.name() && !self.force {
            return Err(differs("the program", checkpoint.program.clone(), program.name().to_owned()));
        }
        match (&checkpoint.formulas, checkpoint.formulas.differs(program)) {
            (_, Some(difference)) if !self.force => {
                return Err(Error::file(
                    path,
                    format!("it is of another program named {}: {difference}", checkpoint.program),
                    "resume with the program that wrote it, or by force",
                ));
            }
            (_, Some(difference)) => notes.push(format!(
                "{} is of another program, and the run goes on by force: {difference}",
                path.display()
            )),
            (Formulas::Unknown, None) => notes.push(format!(
                "{} does not say of which formulas it is: it was written before checkpoints had them",
                path.display()
            )),
            _ => {}
        }
        if checkpoint.fields != program.fields() {
            return Err(differs("the fields", checkpoint.fields.join(", "), program.fields().join(", ")));
        }
        if checkpoint.parameters.iter().map(|p| &p.0).ne(program.parameters().iter().map(|p| &p.name)) {
            let stored = checkpoint.parameters.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(", ");
            let own = program.parameters().iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(differs("the parameters", stored, own));
        }
        if checkpoint.scalars.iter().map(|s| &s.0).ne(program.scalars().iter().map(|s| &s.name)) {
            let stored = checkpoint.scalars.iter().map(|s| s.0.as_str()).collect::<Vec<_>>().join(", ");
            let own = program.scalars().iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(differs("the computed scalars", stored, own));
        }
        if !self.scalars.is_empty() {
            return Err(Error::file(
                path,
                "a checkpoint brings all scalars with it",
                "leave the scalars out",
            ));
        }
        let own = |sides: &[Sides]| {
            let written = program.fields().iter().zip(sides).filter(|(_, sides)| **sides != Sides::default());
            written.map(|(name, sides)| format!("{name}:{sides}")).collect::<Vec<_>>().join(" ")
        };
        if self.boundary_text.is_some() && own(&checkpoint.sides) != own(&problem.sides) {
            return Err(differs("the boundary", own(&checkpoint.sides), own(&problem.sides)));
        }
        if checkpoint.shape != problem.shape {
            return Err(differs("the size", checkpoint.shape.to_string(), problem.shape.to_string()));
        }
        if self.dtype.is_some_and(|dtype| dtype != checkpoint.dtype) {
            return Err(differs("the dtype", checkpoint.dtype.to_string(), problem.dtype.to_string()));
        }
        let axes = problem.shape.dimensions();
        let sides = |b: &Boundaries| b.0[3 - axes..].to_vec();
        if self.boundaries.as_ref().is_some_and(|given| sides(given) != sides(&checkpoint.boundaries)) {
            return Err(differs(
                "the boundary",
                checkpoint.boundaries.describe(axes),
                problem.boundaries.describe(axes),
            ));
        }
        let members =
            |members: Option<usize>| members.map_or("a single domain".to_owned(), |n| n.to_string());
        if problem.is_batch() != checkpoint.members().is_some()
            || problem.batch.len() != checkpoint.batch.len()
        {
            let given = members(problem.is_batch().then_some(problem.batch.len()));
            return Err(differs("the batch", members(checkpoint.members()), given));
        }
        for (name, _) in &self.parameters {
            let number = program.parameter(name)?;
            let stored = |member: Option<&Member>| match member {
                Some(member) => member.parameters.get(number).copied(),
                None => checkpoint.parameters.get(number).map(|p| p.1),
            };
            let given = problem.batch.iter().map(|member| &member.parameters).chain([&problem.parameters]);
            let stored = checkpoint.batch.iter().map(Some).chain([None]).map(stored);
            let other =
                stored.zip(given.map(|all| all[number])).find(|(stored, given)| *stored != Some(*given));
            if let Some((stored, given)) = other {
                let stored = stored.map_or("none".to_owned(), |stored| stored.to_string());
                return Err(differs(&format!("parameter {name}"), stored, given.to_string()));
            }
        }
        problem.batch = checkpoint.batch.clone();
        problem.dtype = checkpoint.dtype;
        problem.boundaries = checkpoint.boundaries;
        problem.parameters = checkpoint.parameters.iter().map(|p| p.1).collect();
        problem.scalars = checkpoint.scalars.iter().map(|s| s.1).collect();
        problem.first_step = checkpoint.steps;
        problem.sides = match checkpoint.sides.is_empty() {
            true => vec![Sides::default(); checkpoint.fields.len()],
            false => checkpoint.sides.clone(),
        };
        Ok(())
    }
}

pub(super) struct Prepared {
    pub problem: Problem,
    /// The checkpoint that the run goes on from; its fields are still to be read.
    pub resumed: Option<(PathBuf, Head)>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Returns the host's memory that filling the fields and writing them will take.
pub(super) fn host(problem: &Problem, builder: &Builder) -> Result<Host> {
    let mut host = Host::of(problem);
    host.output = builder.output_bytes.map_or(host.output, u128::from);
    for (number, name) in problem.program.fields().iter().enumerate() {
        match builder.initial.iter().rfind(|(field, _)| field == name) {
            Some((_, Initial::Values(Values { values, .. })))
                if values.dtype() == problem.dtype && values.len() == all_values(problem, number) =>
            {
                host.fields -= 1
            }
            Some((_, Initial::File(path))) => {
                let Some(announced) = io::announced_as(path, &axes_of(problem))? else { continue };
                let besides = announced.besides(problem.dtype);
                host.reading = host.reading.max(besides);
                if announced.is_read_whole {
                    let values = all_values(problem, number) * problem.dtype.bytes();
                    host.reading_whole = host.reading_whole.max(besides + values as u128);
                }
            }
            _ => {}
        }
    }
    Ok(host)
}

/// Checks that a parameter's value is a number of the run's type.
pub(crate) fn check_parameter(name: &str, value: f64, dtype: DType) -> Result<()> {
    if dtype.is_finite(value) {
        return Ok(());
    }
    Err(Error::invalid(
        format!("parameter {name}"),
        format!("{value:?} is not a finite number in {dtype}"),
        "give a finite value",
    ))
}
