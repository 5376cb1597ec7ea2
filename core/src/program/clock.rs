//! Programs whose scalars follow from the step's number, the parameters and earlier scalars alone, such as the time or a
//! source's amplitude: a host knows them before the step. With these as parameters that change, such a program is a plain one.

use std::sync::Arc;

use super::stage::StageKind;
use super::{Parameter, Problem, Program};
use crate::domain::Boundary;
use crate::error::{Error, Result};
use crate::expr::{Dag, Node};

/// The scalars of a problem, step by step, and the plain problem whose parameters they are.
#[derive(Debug, Clone)]
pub struct Clock {
    plain: Problem,
    /// The stages of a step in order: the formula and the number of the scalar that one makes; `None` for one of fields.
    stages: Vec<Option<(Dag, usize)>>,
    /// The parameters, and then the scalars.
    values: Vec<f64>,
    /// The number of parameters.
    parameters: usize,
    is_read: bool,
    /// The values of a formula's nodes.
    nodes: Vec<f64>,
}

impl Clock {
    /// Returns the clock of a problem; `None` for one that has no scalars, or that is not plain beside them.
    ///
    /// A slab, whose sides are open, has none: its scalars are those of the whole domain's run.
    pub fn of(problem: &Problem) -> Option<Clock> {
        let program = &*problem.program;
        let is_slab = problem.boundaries.0.as_flattened().contains(&Boundary::Open);
        if program.scalars().is_empty() || program.steps().len() != 1 || problem.is_batch() || is_slab {
            return None;
        }
        let stages = program.stages().iter().map(|stage| match stage.does {
            StageKind::Update => Some(None),
            StageKind::Scalar(scalar) => Some(Some((stage.dag.clone(), scalar))),
            StageKind::Reduce(..) => None,
        });
        let stages = stages.collect::<Option<Vec<_>>>()?;
        let values: Vec<f64> = problem.parameters.iter().chain(&problem.scalars).copied().collect();
        let plain = Problem {
            program: Arc::new(program.with_scalars_as_parameters()),
            parameters: values.clone(),
            scalars: Vec::new(),
            until: None,
            marks: None,
            record: None,
            ..problem.clone()
        };
        if !plain.is_plain() {
            return None;
        }
        let made: Vec<usize> = stages.iter().flatten().map(|(_, scalar)| *scalar).collect();
        let reads = |node: &Node| matches!(*node, Node::Param(number) if made.contains(&usize::from(number)));
        let is_read = plain.program.stages().iter().any(|stage| stage.dag.nodes.iter().any(reads));
        Some(Clock {
            plain,
            stages,
            values,
            parameters: problem.parameters.len(),
            is_read,
            nodes: Vec::new(),
        })
    }

    /// Returns the plain problem: it has the stages of fields alone, and the scalars' values before the first step as its
    /// last parameters.
    pub fn plain(&self) -> &Problem {
        &self.plain
    }

    /// Returns whether a stage of fields reads a scalar that changes.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns the scalars after the last step.
    pub fn scalars(&self) -> &[f64] {
        &self.values[self.parameters..]
    }

    /// Sets a parameter for the steps that follow.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a number that is none of a parameter.
    pub fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let own = &self.plain.program.parameters()[..self.parameters];
        let names = own.iter().map(|parameter| parameter.name.as_str());
        let known = self.values[..self.parameters].get_mut(parameter);
        *known.ok_or_else(|| Error::unknown("parameter", parameter.to_string(), names))? = value;
        Ok(())
    }

    /// Does a step of the scalars. Adds to `read` what each stage of fields reads: the parameters, and then the scalars.
    pub fn step(&mut self, read: &mut Vec<f64>) {
        for stage in &self.stages {
            match stage {
                None if self.is_read => read.extend_from_slice(&self.values),
                None => {}
                Some((dag, scalar)) => {
                    dag.evaluate(&mut self.nodes, &self.values, [0; 3], |_| f64::NAN);
                    self.values[*scalar] = self.nodes[dag.outputs[0] as usize];
                }
            }
        }
    }
}

impl Program {
    /// Returns the program without the stages that make scalars, which are parameters behind its own.
    fn with_scalars_as_parameters(&self) -> Program {
        let scalars = self.scalars.iter().map(|scalar| Parameter {
            name: scalar.name.clone(),
            default: scalar.initial.unwrap_or(0.0),
            about: scalar.about.clone(),
        });
        let stages: Vec<_> =
            self.stages.iter().filter(|stage| stage.does == StageKind::Update).cloned().collect();
        Program {
            parameters: self.parameters.iter().cloned().chain(scalars).collect(),
            scalars: Vec::new(),
            steps: std::iter::once(0..stages.len()).collect(),
            stages,
            until: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Shape;
    use crate::program::{Centring, Definition, Reduction};
    use crate::real::DType;

    fn problem(define: impl FnOnce(&mut Definition)) -> Problem {
        let mut p = Definition::new("p", 1);
        p.field("u", Centring::CELL).parameter("dt", 0.5, "a step").scalar("time", Some(0.25), "time");
        define(&mut p);
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[8]).unwrap(), DType::F32).unwrap()
    }

    /// A scalar that is made between two stages has its old value in the first and its new one in the second.
    #[test]
    fn each_stage_reads_the_scalars_of_its_place() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
            step.stage("b", |s| s.set("u", s.field("u").here() - s.param("time")));
        });
        let mut clock = Clock::of(&problem).unwrap();
        assert!(clock.is_read() && clock.plain().is_plain() && clock.plain().check().is_ok());
        assert_eq!(clock.plain().program.stages().len(), 2);
        let mut read = Vec::new();
        clock.step(&mut read);
        clock.set_parameter(0, 1.0).unwrap();
        clock.step(&mut read);
        assert_eq!(read, [0.5, 0.25, 0.5, 0.75, 1.0, 0.75, 1.0, 1.75]);
        assert_eq!(clock.scalars(), [1.75]);
    }

    #[test]
    fn a_scalar_that_no_field_needs_is_not_handed_on() {
        let problem = problem(|p| {
            let mut step = p.step();
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("dt")));
            step.compute("time", |s| s.param("time") + s.param("dt"));
        });
        let mut clock = Clock::of(&problem).unwrap();
        let mut read = Vec::new();
        clock.step(&mut read);
        assert!(!clock.is_read() && read.is_empty() && clock.scalars() == [0.75]);
    }

    #[test]
    fn scalars_of_fields_and_programs_of_other_kinds_have_no_clock() {
        let reduced = problem(|p| {
            let mut step = p.step();
            step.reduce("time", Reduction::Max, Centring::CELL, |s| s.field("u").here());
            step.stage("a", |s| s.set("u", s.field("u").here() * s.param("time")));
        });
        assert!(Clock::of(&reduced).is_none());
        let other = problem(|p| {
            p.temporary("t", Centring::CELL);
            let mut step = p.step();
            step.stage("t", |s| s.set("t", s.field("u").here()));
            step.stage("a", |s| s.set("u", s.field("t").at([1])));
        });
        assert!(Clock::of(&other).is_none());
    }
}
