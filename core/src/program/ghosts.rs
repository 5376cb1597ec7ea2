//! Boundaries of single fields as choices in formulas: where a field's ghost cells show what those of all fields show, but with
//! the opposite sign, or hold a value, a tap beyond the side chooses that instead. No bit of any field differs.

use super::flat::Formula;
use super::{Footprint, Problem, Program};
use crate::domain::{Boundaries, Boundary};
use crate::expr::{Binary, Constant, Dag, Id, Node, Tap, Unary};

/// The side of an axis beyond which a tap may reach, and how far.
#[derive(Clone, Copy)]
struct Beyond {
    axis: usize,
    side: usize,
    distance: usize,
}

impl Problem {
    /// Returns a program of stages over cells in which no field has a boundary of its own, and the boundaries that all fields
    /// have there; `None` where the cells that ghost cells show differ from field to field, or a temporary would read a boundary's
    /// scalar too late.
    pub(super) fn with_shared_boundaries(&self, program: Program) -> Option<(Program, Boundaries)> {
        if self.has_shared_boundaries() {
            return Some((program, self.boundaries));
        }
        let own: Vec<Boundaries> = (0..program.fields.len()).map(|field| self.boundaries_of(field)).collect();
        // A formula that is computed where a temporary is read has the scalar that is there then.
        let changes = |side: &Boundary| match side {
            Boundary::Scalar(name) => {
                let number = program.number_of_scalar(name.as_str());
                number.is_ok_and(|number| number >= program.parameters.len())
            }
            _ => false,
        };
        let sets_temporaries =
            self.program.stages.iter().any(|stage| stage.writes.iter().any(|&value| value >= own.len()));
        let reads_late = sets_temporaries && own.iter().any(|own| own.0.as_flattened().iter().any(changes));
        let has_loops = program.stages.iter().any(|stage| stage.looped.is_some());
        if reads_late || has_loops || !self.tells_indices() {
            return None;
        }
        // Along axes that the domain does not have, no formula taps.
        let plain = |side: Boundary| if side.is_plain() { side } else { Boundary::Clamp };
        let mut shared = Boundaries(self.boundaries.0.map(|sides| sides.map(plain)));
        for axis in self.slowest()..3 {
            for side in 0..2 {
                shared.0[axis][side] = self.shared(&program, &own, axis, side)?;
            }
        }
        let mut program = program;
        for number in 0..program.stages.len() {
            let stage = &program.stages[number];
            let dag = self.chosen_beyond(&program, &stage.dag, &own, &shared)?;
            let footprint = Footprint::of(&dag, program.fields.len());
            let stage = &mut program.stages[number];
            (stage.dag, stage.footprint) = (dag, footprint);
        }
        program.kinds.iter_mut().for_each(|kind| kind.sides = Default::default());
        Some((program, shared))
    }

    /// Returns the boundaries of the problem's plain form, if it has one.
    pub(crate) fn plain_boundaries(&self) -> Option<Boundaries> {
        self.with_shared_boundaries(self.flattened()?).map(|(_, boundaries)| boundaries)
    }

    /// Returns a boundary of a side whose ghost cells show the cells that those of each field show or hold no cell's value.
    fn shared(&self, program: &Program, own: &[Boundaries], axis: usize, side: usize) -> Option<Boundary> {
        let (n, radius) = (self.shape.padded()[axis], program.radius()[axis]);
        let kinds: Vec<Boundary> = own.iter().map(|own| own.0[axis][side]).collect();
        let first = *kinds.first()?;
        if kinds.iter().all(|&kind| kind == first) && first.is_plain() {
            return Some(first);
        }
        let is_whole =
            |kind: &Boundary| matches!(kind, Boundary::Fixed | Boundary::Periodic | Boundary::Open);
        if kinds.iter().any(is_whole) || radius > n {
            return None;
        }
        let ghosts = || (1..=radius as isize).map(|far| if side == 0 { -far } else { n as isize - 1 + far });
        let place = |kind: Boundary, at: isize| Boundaries::all(kind).shown(axis, at, n).0;
        let shows = |kind: Boundary, shared: Boundary| {
            kind.held().is_some()
                || matches!(kind, Boundary::Scalar(_))
                || ghosts().all(|at| place(kind, at) == place(shared, at))
        };
        let positive = kinds.iter().map(|kind| match kind {
            Boundary::MinusMirror => Boundary::Mirror,
            Boundary::MinusReflect => Boundary::Reflect,
            Boundary::Constant(_) | Boundary::Scalar(_) => Boundary::Clamp,
            &other => other,
        });
        let is_wide = |shared: &Boundary| Boundaries::all(*shared).is_wide(axis, n, radius);
        let mut fitting =
            positive.filter(is_wide).filter(|&shared| kinds.iter().all(|&kind| shows(kind, shared)));
        fitting.next()
    }

    /// Returns a formula whose taps beyond a side choose what the field's own boundary has there.
    fn chosen_beyond(
        &self,
        program: &Program,
        dag: &Dag,
        own: &[Boundaries],
        shared: &Boundaries,
    ) -> Option<Dag> {
        let mut formula = Formula::default();
        let mut new: Vec<Id> = Vec::with_capacity(dag.nodes.len());
        for &node in &dag.nodes {
            let id = match node {
                Node::Tap(tap) => {
                    self.tap(program, &mut formula, tap, &own[usize::from(tap.field)], shared)?
                }
                other => formula.put(other.map(|operand| new[operand as usize])),
            };
            new.push(id);
        }
        let outputs: Vec<Id> = dag.outputs.iter().map(|&output| new[output as usize]).collect();
        Some(formula.finished(&outputs))
    }

    fn tap(
        &self,
        program: &Program,
        formula: &mut Formula,
        tap: Tap,
        own: &Boundaries,
        shared: &Boundaries,
    ) -> Option<Id> {
        let raw = formula.put(Node::Tap(tap));
        let mut value = raw;
        // The slowest axis is asked first, and the first value decides: it is chosen last.
        for axis in (self.slowest()..3).rev().filter(|&axis| tap.offset[axis] != 0) {
            let side = usize::from(tap.offset[axis] > 0);
            let kind = own.0[axis][side];
            let is_alike = kind == shared.0[axis][side];
            if is_alike && (kind.held().is_none() || value == raw) {
                continue;
            }
            let instead = match kind {
                _ if is_alike => raw,
                Boundary::Scalar(name) => {
                    let number = program.number_of_scalar(name.as_str()).ok()?;
                    formula.put(Node::Param(u16::try_from(number).ok()?))
                }
                _ if kind.is_negated() => formula.put(Node::Unary(Unary::Neg, value)),
                _ => match kind.held() {
                    Some(held) => formula.put(Node::Const(Constant::new(held))),
                    None => continue,
                },
            };
            let beyond = Beyond { axis, side, distance: tap.offset[axis].unsigned_abs() as usize };
            value = self.choose(formula, beyond, instead, value);
        }
        Some(value)
    }

    /// Returns the value `instead` in the cells from which a tap reaches beyond a side, and the other one elsewhere.
    fn choose(&self, formula: &mut Formula, beyond: Beyond, instead: Id, other: Id) -> Id {
        let Beyond { axis, side, distance } = beyond;
        let at = formula.put(Node::Coord(axis as u8));
        let index = |formula: &mut Formula, index: f64| formula.put(Node::Const(Constant::new(index)));
        let (last, distance) = (self.shape.padded()[axis] as f64 - 1.0, distance as f64);
        if axis == self.slowest() && axis < 2 {
            // Kernels that go from plane to plane ask for single planes only there.
            return (0..beyond.distance).fold(other, |other, far| {
                let index = index(formula, if side == 0 { far as f64 } else { last - far as f64 });
                let is_there = formula.put(Node::Binary(Binary::Equal, at, index));
                formula.put(Node::Select(is_there, instead, other))
            });
        }
        // Kernels know such conditions as those of outermost cells.
        let from_side = match side {
            0 => at,
            _ => {
                let last = index(formula, last);
                formula.put(Node::Binary(Binary::Sub, last, at))
            }
        };
        let distance = index(formula, distance);
        let is_beyond = formula.put(Node::Binary(Binary::Less, from_side, distance));
        formula.put(Node::Select(is_beyond, instead, other))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{Shape, Sides};
    use crate::program::{Centring, Clock, Definition};
    use crate::real::DType;

    fn problem(extents: &[usize], own: &str, others: &str) -> Problem {
        let mut p = Definition::new("p", extents.len());
        p.field("u", Centring::CELL).field("v", Centring::CELL).parameter("k", 0.5, "a factor");
        p.step().stage("both", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("u", u.here() + s.param("k") * v.laplacian());
            s.set("v", v.here() + s.param("k") * u.laplacian());
        });
        let shape = Shape::new(extents).unwrap();
        let mut problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap();
        problem.set_boundaries(Boundaries::parse(others, Boundary::Mirror).unwrap());
        problem.sides = vec![Sides::default(); 2];
        problem.sides[0] = Sides::all(Boundaries::parse(own, Boundary::Mirror).unwrap());
        problem.check().unwrap();
        problem
    }

    #[test]
    fn signs_and_values_of_single_fields_are_chosen_in_formulas() {
        for (own, others, shared) in [
            ("-mirror", "mirror", Boundary::Mirror),
            ("constant=2", "clamp", Boundary::Clamp),
            ("constant=k", "reflect", Boundary::Reflect),
            // The taps reach one cell, where both show the same.
            ("clamp", "-mirror", Boundary::Clamp),
        ] {
            let problem = problem(&[7, 9], own, others);
            let clock = Clock::on_device(&problem, true).unwrap_or_else(|| panic!("{own} and {others}"));
            let plain = clock.plain();
            assert!(plain.is_plain() && plain.check().is_ok(), "{own} and {others}");
            assert_eq!(plain.boundaries.0[2], [shared; 2], "{own} and {others}");
        }
    }

    #[test]
    fn other_cells_of_single_fields_are_no_choices() {
        for (own, others) in [("reflect", "mirror"), ("-reflect", "-mirror")] {
            assert!(Clock::on_device(&problem(&[7, 9], own, others), true).is_none(), "{own} and {others}");
        }
    }
}
