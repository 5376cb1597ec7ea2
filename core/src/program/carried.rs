//! Reductions of what a step finds, made at the end of the step before, whose last update has the values at hand.
//!
//! The value waits in a scalar of its own, so that no scalar, row or condition sees it before its step: in the place of the
//! reduction the step takes it over. No bit differs.

use std::sync::Arc;

use super::{Footprint, Problem, Program, Scalar, Stage, StageKind};
use crate::error::{Error, Result};
use crate::expr::{Dag, Node};

impl Problem {
    /// Returns the stages that reduce fields as each step finds them, by the parameters alone: those that can be made at the end of
    /// the step before. None of a batch, of a slab, or of a cycle of several steps.
    ///
    /// ```
    /// # use abide_core::{DType, Problem, Shape, program::{Centring, Definition, Reduction}};
    /// # use std::sync::Arc;
    /// let mut p = Definition::new("burgers", 1);
    /// p.field("u", Centring::CELL).scalar("fastest", None, "the largest speed");
    /// p.step()
    ///     .reduce("fastest", Reduction::Max, Centring::CELL, |s| s.field("u").here().abs())
    ///     .stage("update", |s| {
    ///         let u = s.field("u");
    ///         s.set("u", u.here() - 0.1 / s.param("fastest") * u.here() * (u.here() - u.at([-1])));
    ///     });
    /// let problem = Problem::new(Arc::new(p.build()?), Shape::new(&[64])?, DType::F64)?;
    /// assert_eq!(problem.reductions_of_found(), [0]);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn reductions_of_found(&self) -> Vec<usize> {
        let program = &*self.program;
        if self.is_batch() || self.is_slab() || program.steps.len() != 1 || program.has_loops() {
            return Vec::new();
        }
        let first_made = program.parameters.len();
        let is_of_found = |&number: &usize| {
            let stage = &program.stages[number];
            let is_set =
                |name: usize| program.stages[..number].iter().any(|earlier| earlier.writes.contains(&name));
            let mut taps = stage.dag.taps().map(|tap| (usize::from(tap.field), tap.offset));
            matches!(stage.does, StageKind::Reduce(..))
                && stage.looped.is_none()
                && taps.all(|(name, offset)| name < program.fields.len() && offset == [0; 3] && !is_set(name))
                && !stage
                    .dag
                    .nodes
                    .iter()
                    .any(|node| matches!(*node, Node::Param(own) if usize::from(own) >= first_made))
        };
        (0..program.stages.len()).filter(is_of_found).collect()
    }

    /// Returns the problem in which these stages, of [`Problem::reductions_of_found`], are made at the end of the step for the next
    /// one. Each has a scalar more, behind the others, which is to have the reduction of the initial fields before the first step.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where a stage is none of those.
    pub fn carried(&self, reductions: &[usize]) -> Result<Problem> {
        if reductions.is_empty() {
            return Ok(self.clone());
        }
        let known = self.reductions_of_found();
        let mut program = (*self.program).clone();
        let (mut scalars, names) = (self.scalars.clone(), program.names().len());
        for &number in reductions {
            let Some(stage) = program.stages.get(number).filter(|_| known.contains(&number)).cloned() else {
                let reason = format!("stage {number} does not reduce fields as a step finds them");
                return Err(Error::invalid("plan", reason, "make a plan for this problem"));
            };
            let StageKind::Reduce(reduction, region, scalar) = stage.does else { continue };
            let waiting = program.parameters.len() + program.scalars.len();
            let dag = Dag { nodes: vec![Node::Param(waiting as u16)], outputs: vec![0] };
            program.scalars.push(Scalar {
                is_internal: true,
                name: format!("{} of the next step", program.scalars[scalar - program.parameters.len()].name),
                initial: Some(f64::NAN),
                extent: None,
                about: "made at the end of the step before".to_owned(),
            });
            scalars.push(f64::NAN);
            program.stages[number] = Stage {
                name: format!("{} of the step before", stage.name),
                footprint: Footprint::of(&dag, names),
                dag,
                does: StageKind::Scalar(scalar),
                ..stage.clone()
            };
            program.stages.push(Stage { does: StageKind::Reduce(reduction, region, waiting), ..stage });
        }
        program.steps = std::iter::once(0..program.stages.len()).collect();
        Ok(Problem { program: Arc::new(program), scalars, ..self.clone() })
    }

    /// Returns the problem whose stages are some reductions of this one alone, which no condition and no record watches.
    pub fn of_reductions(&self, reductions: &[usize]) -> Problem {
        let stages = reductions.iter().filter_map(|&number| self.program.stages.get(number).cloned());
        self.with_reductions(&self.program, stages.collect())
    }

    /// Returns the problem whose stages are these reductions over the fields of a program.
    pub(super) fn with_reductions(&self, program: &Program, reductions: Vec<Stage>) -> Problem {
        Problem {
            program: Arc::new(program.of_stages(reductions)),
            first_step: 0,
            until: None,
            marks: None,
            record: None,
            noted: Vec::new(),
            ..self.clone()
        }
    }
}
