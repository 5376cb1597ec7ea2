//! Random numbers in formulas, and what they are counted by: the parameter `seed`, and two scalars that count the steps.
//!
//! A formula that draws random numbers reads the three by their names. A definition that does not declare them is given them
//! when it is built, and each step counts at its end.

use super::definition::Definition;
use super::stage::{Stage, StageKind, single};
use super::stencil::Scope;
use crate::error::{Error, Result};
use crate::expr::{Draw, Expr, Node, STEPS_OF_TURN, Term};

/// The names of what random numbers are counted by, in the order of the operands of a [`Draw`]: what they mean.
const COUNTED: [(&str, &str); 3] = [
    ("seed", "seed of all random numbers, a whole number below 2^24"),
    ("random_step", "steps done, from 0 again after 2^24"),
    ("random_turn", "how often that was"),
];

/// The number of the first of them in formulas while they are not declared: beyond those of all parameters and scalars.
const UNDECLARED: u16 = u16::MAX - COUNTED.len() as u16;

/// A distribution whose numbers follow from a stream alone.
pub struct Distribution {
    /// The name in formulas.
    pub name: &'static str,
    /// Returns a number of it, of the stream of a number.
    pub draw: for<'s, 'g> fn(&'s Scope<'g>, usize) -> Expr<'g>,
}

impl Distribution {
    /// Returns the distribution of a name.
    pub fn named(name: &str) -> Option<&'static Distribution> {
        DISTRIBUTIONS.iter().find(|row| row.name == name)
    }
}

/// All such distributions.
pub const DISTRIBUTIONS: &[Distribution] = &[
    Distribution { name: "uniform", draw: |s, stream| s.uniform(stream) },
    Distribution { name: "normal", draw: |s, stream| s.normal(stream) },
    Distribution { name: "exponential", draw: |s, stream| s.exponential(stream) },
];

/// The most streams of random numbers.
pub const MAX_STREAMS: usize = 1 << 16;

impl<'g> Scope<'g> {
    /// Returns a random number of this cell and step, uniform in [0, 1): of 24 random bits in f32, of 53 in f64. Numbers of
    /// two streams are independent; a stream has one number for each cell and step.
    ///
    /// The numbers follow from the cell's indices, the step, the stream and the program's parameter `seed`, 0 unless it is
    /// given, and from nothing else: they are the same on all backends, in all schedules and on any number of devices, and
    /// a run that is resumed goes on with those that it would have had. The program has the scalars `random_step` and
    /// `random_turn` for that.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition};
    ///
    /// // Heat with noise.
    /// let mut p = Definition::new("noisy-heat", 2);
    /// p.field("u", Centring::CELL);
    /// p.step().stage("step", |s| {
    ///     let u = s.field("u");
    ///     s.set("u", u.here() + 0.2 * u.laplacian() + 0.01 * s.normal(0));
    /// });
    /// let program = p.build()?;
    /// assert_eq!(program.parameters()[0].name, "seed");
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn uniform(&self, stream: usize) -> Expr<'g> {
        self.drawn(stream, 0)
    }

    /// Returns the first or the second, by `part`, of the two independent numbers that each stream has for a cell and step:
    /// see [`Scope::uniform`], which is the first.
    pub fn drawn(&self, stream: usize, part: usize) -> Expr<'g> {
        if stream >= MAX_STREAMS || part > 1 {
            self.fail(match part {
                0 | 1 => {
                    let change = "number streams from 0";
                    Error::limit("stream of random numbers", stream, MAX_STREAMS - 1, change)
                }
                _ => Error::limit("number of a stream's two", part, 1, "use 0 or 1, or another stream"),
            });
            return self.constant(0.0);
        }
        let place = |axis: usize| match axis.checked_sub(3 - self.dimensions()) {
            Some(own) => self.coord(own),
            None => self.constant(0.0),
        };
        let counted = |number: usize| {
            let known = self.scalars().iter().position(|name| name == COUNTED[number].0);
            self.graph().add(Node::Param(known.map_or(UNDECLARED + number as u16, |known| known as u16)))
        };
        let operands = [place(0), place(1), place(2), counted(0), counted(1), counted(2)];
        self.graph().draw(Draw { stream: stream as u16, part: part as u8 }, operands)
    }

    /// Returns a random number of the normal distribution of mean 0 and deviation 1, of this cell and step: see
    /// [`Scope::uniform`]. By the formula of Box and Muller, of both numbers of the stream.
    pub fn normal(&self, stream: usize) -> Expr<'g> {
        let turn = std::f64::consts::TAU * self.drawn(stream, 1);
        (2.0 * self.exponential(stream)).sqrt() * turn.cos()
    }

    /// Returns a random number of the exponential distribution of mean 1, of this cell and step: see [`Scope::uniform`].
    pub fn exponential(&self, stream: usize) -> Expr<'g> {
        -(1.0 - self.uniform(stream)).log()
    }

    /// Returns 1 with this probability, else 0, of this cell and step: see [`Scope::uniform`].
    pub fn bernoulli(&self, stream: usize, probability: Expr<'g>) -> Expr<'g> {
        self.uniform(stream).lt(probability)
    }
}

/// Returns which of a program's counted things a node reads that is not declared yet.
fn undeclared(node: &Node) -> Option<usize> {
    match *node {
        Node::Param(number) if number >= UNDECLARED => Some(usize::from(number - UNDECLARED)),
        _ => None,
    }
}

impl Stage {
    fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let looped = self.looped.iter_mut().flat_map(|looped| &mut looped.terms);
        self.dag.nodes.iter_mut().chain(looped.filter_map(|term| match term {
            Term::Node(node) => Some(node),
            _ => None,
        }))
    }
}

impl Definition {
    /// Declares what random numbers are counted by, where formulas draw any and it is not declared, and has each step count
    /// at its end.
    pub(super) fn count_draws(&mut self) -> Result<()> {
        let reads = |stage: &Stage| stage.dag.nodes.iter().any(|node| undeclared(node).is_some());
        if self.steps.iter().flatten().any(reads) {
            self.declare_counted();
            let numbers = COUNTED.map(|(name, _)| self.number_of(name));
            for node in self.steps.iter_mut().flatten().flat_map(Stage::nodes_mut) {
                if let Some(number) = undeclared(node).and_then(|own| numbers[own]) {
                    *node = Node::Param(number as u16);
                }
            }
        }
        if !self.steps.iter().flatten().any(|stage| stage.dag.draws()) {
            return Ok(());
        }
        let [_, Some(step), Some(turn)] = COUNTED.map(|(name, _)| self.number_of(name)) else {
            return Ok(());
        };
        let centring = |field| self.centring(field);
        let count = |name: &str, number: usize, define: for<'g> fn(&Scope<'g>) -> Expr<'g>| {
            single(name, &self.names, &centring, StageKind::Scalar(number), define)
        };
        // The turn first, by the step before.
        let counts = [
            count("random_turn", turn, |s| {
                let turn = s.param("random_turn");
                (s.param("random_step") + 1.0).lt(STEPS_OF_TURN).select(turn, turn + 1.0)
            })?,
            count("random_step", step, |s| {
                let next = s.param("random_step") + 1.0;
                next.lt(STEPS_OF_TURN).select(next, 0.0)
            })?,
        ];
        for stages in &mut self.steps {
            // A definition of another program's parts has them before what it adds.
            stages.retain(|stage| stage.does.scalar().is_none_or(|made| made != step && made != turn));
            stages.extend(counts.iter().cloned());
        }
        Ok(())
    }

    fn number_of(&self, name: &str) -> Option<usize> {
        self.names.scalars.iter().position(|known| known == name)
    }

    fn declare_counted(&mut self) {
        for (number, (name, about)) in COUNTED.into_iter().enumerate() {
            if self.number_of(name).is_some() {
                continue;
            }
            match number {
                0 => drop(self.parameter(name, 0.0, about)),
                _ => drop(self.scalar(name, Some(0.0), about)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stencil;
    use crate::program::{Centring, Program, Wall};

    struct Noise;

    impl Stencil for Noise {
        fn name(&self) -> &str {
            "noise"
        }

        fn dimensions(&self) -> usize {
            2
        }

        fn define(&self, s: &Scope<'_>) {
            s.set("u", s.field("u").here() + s.normal(5));
        }
    }

    #[test]
    fn a_program_that_draws_counts_its_steps_last() {
        let program = Program::new(&Noise).unwrap();
        let names =
            |program: &Program| program.stages().iter().map(|stage| stage.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&program), ["noise", "random_turn", "random_step"]);
        assert_eq!(program.parameters()[0].name, "seed");
        // What is added comes before, and draws the same step's numbers.
        let mut more = Definition::of(&program);
        more.extend(0).stage("more", |s| s.set("u", s.field("u").here() * s.uniform(6)));
        let more = more.build().unwrap();
        assert_eq!(names(&more), ["noise", "more", "random_turn", "random_step"]);
        assert_eq!((more.parameters().len(), more.scalars().len()), (1, 2));
    }

    #[test]
    fn what_is_no_formula_of_cells_draws_nothing() {
        let refused = |define: fn(&mut Definition)| {
            let mut p = Definition::new("p", 1);
            p.field("u", Centring::CELL).scalar("a", Some(0.0), "a scalar");
            define(&mut p);
            p.step().stage("same", |s| s.set("u", s.field("u").here()));
            p.build().unwrap_err().to_string()
        };
        let wall = refused(|p| {
            p.wall("u", "x-", |s| Wall::dirichlet(s.uniform(0)));
        });
        assert!(wall.contains("it draws random numbers, which are those of cells"), "{wall}");
        let scalar = refused(|p| {
            p.step().compute("a", |s| s.uniform(0));
        });
        assert!(scalar.contains("no function of a coordinate"), "{scalar}");
        let spacing = refused(|p| {
            p.spacing(0, |s| s.uniform(0));
        });
        assert!(spacing.contains("no function of a coordinate"), "{spacing}");
    }
}
