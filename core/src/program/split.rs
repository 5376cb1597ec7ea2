//! Fission: a stage whose results share no operation, taken apart into several (Wahib and Maruyama, HPDC'15).
//!
//! A split program computes what the whole one does, to the bit. Its fields, temporaries, parameters and scalars are the
//! same, and so is all that a problem says of them; only the numbers of its stages are others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Boxes, Footprint, Problem, Program, Stage, StageKind, is_renamed};
use crate::error::{Error, Result};
use crate::expr::Node;

/// A stage in parts, each of which runs as a stage of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Split {
    /// The number of the stage in the whole program.
    pub stage: usize,
    /// The results of each part, by their places in [`Stage::writes`], ascending.
    pub parts: Vec<Vec<usize>>,
}

/// The place of a result in a program: the number of the stage, and the place among its formula's outputs.
pub type Place = [usize; 2];

impl Stage {
    /// Returns the results of the stage in parts that can be stages of their own; a single part where it has none.
    ///
    /// Two results stay in one part where their formulas share an operation, which each part would compute again, or
    /// where one overwrites values from before the stage that the other reads. Taps, constants, scalars and
    /// coordinates may be shared: parts that read the same field may be fused again.
    pub fn parts(&self) -> Vec<Vec<usize>> {
        let count = self.dag.outputs.len();
        if self.does != StageKind::Update || !self.points.is_empty() {
            return vec![(0..count).collect()];
        }
        let needs: Vec<Needs> = (0..count).map(|output| Needs::of(self, output)).collect();
        let mut part: Vec<usize> = (0..count).collect();
        for later in 0..count {
            for earlier in 0..later {
                if needs[later].binds(&needs[earlier]) {
                    let (from, to) = (part[later], part[earlier]);
                    part.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
                }
            }
        }
        let all = |number: usize| (0..count).filter(|&output| part[output] == number).collect::<Vec<_>>();
        (0..count).map(all).filter(|outputs| !outputs.is_empty()).collect()
    }
}

/// What a result needs.
struct Needs {
    operations: Vec<bool>,
    reads: Vec<usize>,
    writes: usize,
}

impl Needs {
    fn of(stage: &Stage, output: usize) -> Needs {
        let nodes = &stage.dag.nodes;
        let mut needed = vec![false; nodes.len()];
        needed[stage.dag.outputs[output] as usize] = true;
        let mut reads = Vec::new();
        for id in (0..nodes.len()).rev() {
            if needed[id] {
                nodes[id].operands().for_each(|operand| needed[operand as usize] = true);
                if let Node::Tap(tap) = nodes[id] {
                    reads.push(usize::from(tap.field));
                }
            }
        }
        let operations =
            needed.iter().zip(nodes).map(|(&needed, node)| needed && node.operands().next().is_some());
        Needs { operations: operations.collect(), reads, writes: stage.writes[output] }
    }

    fn binds(&self, other: &Needs) -> bool {
        self.reads.contains(&other.writes)
            || other.reads.contains(&self.writes)
            || self.operations.iter().zip(&other.operations).any(|(own, other)| *own && *other)
    }
}

impl Program {
    /// Returns the program with some stages in parts, which run one after the other in the stage's place.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] that names the stage, where there is none of a number or the numbers do not ascend, a part
    /// lacks results or there is one alone, or the parts are not all results of the stage, each once and with those
    /// from which it cannot be parted.
    pub fn split(&self, splits: &[Split]) -> Result<Program> {
        let fault = |split: &Split, reason: String| {
            let name = self.stages.get(split.stage).map_or("?", |stage| &stage.name);
            Err(Error::invalid(format!("parts of stage {name}"), reason, "make a plan for this program"))
        };
        for (place, split) in splits.iter().enumerate() {
            let Some(stage) = self.stages.get(split.stage) else {
                return fault(split, format!("there are {} stages, not {}", self.stages.len(), split.stage));
            };
            if place > 0 && splits[place - 1].stage >= split.stage {
                return fault(split, "stages are not in ascending order".to_owned());
            }
            let mut all: Vec<usize> = split.parts.iter().flatten().copied().collect();
            all.sort_unstable();
            let are_sorted = split.parts.iter().all(|part| !part.is_empty() && part.is_sorted());
            if split.parts.len() < 2 || !are_sorted || !all.into_iter().eq(0..stage.writes.len()) {
                return fault(split, "they are not two or more of its results, each of them once".to_owned());
            }
            let holds = |whole: &Vec<usize>| {
                let within = |part: &Vec<usize>| whole.iter().all(|output| part.contains(output));
                split.parts.iter().any(within)
            };
            if !stage.parts().iter().all(holds) {
                return fault(split, "results that need each other are in several of them".to_owned());
            }
        }
        let mut program = Program { stages: Vec::new(), steps: Vec::new(), ..self.clone() };
        for step in &self.steps {
            let first = program.stages.len();
            for number in step.clone() {
                let stage = &self.stages[number];
                match splits.iter().find(|split| split.stage == number) {
                    Some(split) => {
                        program.stages.extend(split.parts.iter().map(|part| self.part(stage, part)))
                    }
                    None => program.stages.push(stage.clone()),
                }
            }
            program.steps.push(first..program.stages.len());
        }
        Ok(program)
    }

    /// Returns the results that each stage of a split program computes, by their places in this one. The splits have
    /// been checked.
    pub fn places(&self, splits: &[Split]) -> Vec<Vec<Place>> {
        let mut places = Vec::new();
        for (number, stage) in self.stages.iter().enumerate() {
            let of = |outputs: &[usize]| outputs.iter().map(|&output| [number, output]).collect();
            match splits.iter().find(|split| split.stage == number) {
                Some(split) => places.extend(split.parts.iter().map(|part| of(part))),
                None => places.push(of(&(0..stage.dag.outputs.len()).collect::<Vec<_>>())),
            }
        }
        places
    }

    /// Returns some results of a stage as a stage, named by them.
    fn part(&self, stage: &Stage, outputs: &[usize]) -> Stage {
        let writes: Vec<usize> = outputs.iter().map(|&output| stage.writes[output]).collect();
        let all = self.names();
        let names: Vec<&str> = writes.iter().map(|&name| &*all[name]).collect();
        let dag = stage.dag.restricted(outputs);
        Stage {
            name: format!("{} ({})", stage.name, names.join(", ")),
            footprint: Footprint::of(&dag, all.len()),
            dag,
            looped: None,
            does: StageKind::Update,
            writes,
            points: Vec::new(),
        }
    }
}

impl Problem {
    /// Returns the problem with some stages of its program in parts.
    ///
    /// # Errors
    ///
    /// Those of [`Program::split`].
    pub fn split(&self, splits: &[Split]) -> Result<Problem> {
        match splits {
            [] => Ok(self.clone()),
            _ => Ok(Problem { program: Arc::new(self.program.split(splits)?), ..self.clone() }),
        }
    }

    /// Returns all stages that have parts, in as many as there are; but none that only copies, which is never launched.
    pub fn splits(&self, boxes: &Boxes) -> Vec<Split> {
        let stages = self.program.stages().iter().enumerate();
        let split = |(stage, own): (usize, &Stage)| {
            let parts = own.parts();
            (parts.len() > 1 && !is_renamed(self, boxes, stage)).then_some(Split { stage, parts })
        };
        stages.filter_map(split).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Boundary, Shape};
    use crate::program::{Centring, Definition};
    use crate::real::DType;

    /// A stage of three results, of which two share a product, and one of two that read each other.
    fn problem() -> Problem {
        let mut p = Definition::new("parts", 1);
        p.boundary(Boundary::Mirror);
        for name in ["u", "v", "w"] {
            p.field(name, Centring::CELL);
        }
        p.temporary("t", Centring::CELL);
        p.step()
            .stage("three", |s| {
                let shared = s.field("u").at([1]) * 0.5;
                s.set("u", shared + s.field("u").here());
                s.set("w", s.field("w").here() * 2.0);
                s.set("t", shared - 1.0);
            })
            .stage("swap", |s| {
                s.set("u", s.field("v").here());
                s.set("v", s.field("u").here());
            })
            .stage("last", |s| s.set("v", s.field("t").at([1]) + s.field("v").here()));
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[9]).unwrap(), DType::F64).unwrap()
    }

    #[test]
    fn parts_have_what_they_share_together() {
        let problem = problem();
        let splits = problem.splits(&Boxes::of(&problem).unwrap());
        assert_eq!(splits, [Split { stage: 0, parts: vec![vec![0, 2], vec![1]] }]);
        let split = problem.split(&splits).unwrap();
        let names: Vec<&str> = split.program.stages().iter().map(|stage| &*stage.name).collect();
        assert_eq!(names, ["three (u, t)", "three (w)", "swap", "last"]);
        assert!(split.program.steps().iter().cloned().flatten().eq(0..4));
        assert_eq!(split.program.radius(), problem.program.radius());
        assert_eq!(split.check(), Ok(()));
        let places = problem.program.places(&splits);
        assert_eq!(places, [vec![[0, 0], [0, 2]], vec![[0, 1]], vec![[1, 0], [1, 1]], vec![[2, 0]]]);
        let taps = |program: &Program, stage: usize| program.stages()[stage].dag.taps().count();
        assert_eq!((taps(&split.program, 0), taps(&split.program, 1)), (2, 1));
    }

    #[test]
    fn what_is_no_split_is_refused() {
        let problem = problem();
        let split = |stage: usize, parts: &[&[usize]]| Split {
            stage,
            parts: parts.iter().map(|part| part.to_vec()).collect(),
        };
        let good = split(0, &[&[1], &[0, 2]]);
        assert!(problem.split(std::slice::from_ref(&good)).is_ok());
        for (bad, why) in [
            (vec![split(7, &[&[0], &[1]])], "there are 3 stages"),
            (vec![split(0, &[&[0], &[1, 2]])], "need each other"),
            (vec![split(1, &[&[0], &[1]])], "need each other"),
            (vec![split(0, &[&[0, 1, 2]])], "two or more"),
            (vec![split(0, &[&[0, 2], &[1], &[]])], "two or more"),
            (vec![split(0, &[&[0, 2], &[1, 1]])], "two or more"),
            (vec![split(0, &[&[2, 0], &[1]])], "two or more"),
            (vec![good.clone(), good], "ascending"),
        ] {
            let error = problem.split(&bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
