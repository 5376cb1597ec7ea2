//! Boundaries of single fields as choices in formulas: where a field's ghost cells show what those of all fields show, but with
//! the opposite sign, or hold a value, a tap beyond the side chooses that instead; where they show other cells, which lie no
//! farther away, it chooses the taps of these. No bit of any field differs.

use super::beyond::{Beyond, choose_at};
use super::flat::Formula;
use super::{Footprint, Problem, Program};
use crate::domain::{Boundaries, Boundary, Source};
use crate::expr::{Constant, Dag, Id, Node, Tap, Unary};

/// Returns whether ghost cells of a kind hold a value.
fn holds(kind: Boundary) -> bool {
    kind.held().is_some() || matches!(kind, Boundary::Scalar(_))
}

/// Returns the indices of the ghost cells beyond a side of an axis of `n` cells, as far as `radius`.
fn ghosts(side: usize, n: usize, radius: usize) -> impl Iterator<Item = isize> {
    (1..=radius as isize).map(move |far| if side == 0 { -far } else { n as isize - 1 + far })
}

/// Returns what the ghost cell of an index shows.
fn place(kind: Boundary, axis: usize, at: isize, n: usize) -> Source {
    Boundaries::all(kind).shown(axis, at, n).0
}

impl Problem {
    /// Returns a program of stages over cells in which no field has a boundary of its own, and the boundaries that all fields
    /// have there; `None` where single fields have cells that are held or of a slab's neighbours, or a temporary would read a
    /// boundary's scalar too late.
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

    /// Returns a boundary of a side whose ghost cells show the cells that those of each field show or hold no cell's value; where
    /// these differ from field to field, one that some field has. Where a domain goes on at its other side for some field, formulas
    /// cannot choose that.
    fn shared(&self, program: &Program, own: &[Boundaries], axis: usize, side: usize) -> Option<Boundary> {
        let (n, radius) = (self.shape.padded()[axis], program.radius()[axis]);
        let kinds: Vec<Boundary> = own.iter().map(|own| own.0[axis][side]).collect();
        let first = *kinds.first()?;
        if kinds.iter().all(|&kind| kind == first) && first.is_plain() {
            return Some(first);
        }
        if kinds.iter().any(|kind| matches!(kind, Boundary::Fixed | Boundary::Open)) || radius > n {
            return None;
        }
        if kinds.contains(&Boundary::Periodic) {
            return Some(Boundary::Periodic);
        }
        let positive = kinds.iter().map(|kind| match kind {
            Boundary::MinusMirror => Boundary::Mirror,
            Boundary::MinusReflect => Boundary::Reflect,
            Boundary::Constant(_) | Boundary::Scalar(_) => Boundary::Clamp,
            &other => other,
        });
        let is_wide = |shared: &Boundary| Boundaries::all(*shared).is_wide(axis, n, radius);
        let fitting: Vec<Boundary> = positive.filter(is_wide).collect();
        let shows = |kind: Boundary, shared: Boundary| {
            holds(kind)
                || ghosts(side, n, radius).all(|at| place(kind, axis, at, n) == place(shared, axis, at, n))
        };
        let alike = fitting.iter().find(|&&shared| kinds.iter().all(|&kind| shows(kind, shared)));
        alike.or(fitting.first()).copied()
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
                Node::Tap(tap) => self.tap_from(
                    self.slowest(),
                    program,
                    &mut formula,
                    tap,
                    &own[usize::from(tap.field)],
                    shared,
                )?,
                other => formula.put(other.map(|operand| new[operand as usize])),
            };
            new.push(id);
        }
        let outputs: Vec<Id> = dag.outputs.iter().map(|&output| new[output as usize]).collect();
        Some(formula.finished(&outputs))
    }

    /// Returns the value of a tap where it reaches beyond sides of this axis and of faster ones. The slowest axis is asked first,
    /// and the first value decides: it is chosen last.
    fn tap_from(
        &self,
        axis: usize,
        program: &Program,
        formula: &mut Formula,
        tap: Tap,
        own: &Boundaries,
        shared: &Boundaries,
    ) -> Option<Id> {
        if axis == 3 {
            return Some(formula.put(Node::Tap(tap)));
        }
        let value = self.tap_from(axis + 1, program, formula, tap, own, shared)?;
        if tap.offset[axis] == 0 {
            return Some(value);
        }
        let (side, n) = (usize::from(tap.offset[axis] > 0), self.shape.padded()[axis]);
        let [kind, other] = [own, shared].map(|boundaries| boundaries.0[axis][side]);
        let raw = formula.put(Node::Tap(tap));
        let is_alike = kind == other;
        if is_alike && (kind.held().is_none() || value == raw) {
            return Some(value);
        }
        let distance = tap.offset[axis].unsigned_abs() as usize;
        let is_same = |at: isize| place(kind, axis, at, n) == place(other, axis, at, n);
        let instead = match kind {
            _ if is_alike => raw,
            Boundary::Scalar(name) => {
                let number = program.number_of_scalar(name.as_str()).ok()?;
                formula.put(Node::Param(u16::try_from(number).ok()?))
            }
            _ if kind.held().is_some() => formula.put(Node::Const(Constant::new(kind.held()?))),
            _ if !ghosts(side, n, distance).all(is_same) => {
                return self.shifted(axis, program, formula, tap, [own, shared], value);
            }
            _ if kind.is_negated() => formula.put(Node::Unary(Unary::Neg, value)),
            _ => return Some(value),
        };
        let beyond = Beyond { axis, side, distance, extent: n };
        Some(beyond.choose(formula, self.slowest(), instead, value))
    }

    /// Returns the value of a tap whose field has ghost cells that show other cells than those of all fields: in each of the
    /// outermost cells from which it reaches one, the tap of the cell that it shows.
    fn shifted(
        &self,
        axis: usize,
        program: &Program,
        formula: &mut Formula,
        tap: Tap,
        [own, shared]: [&Boundaries; 2],
        other: Id,
    ) -> Option<Id> {
        let (side, n) = (usize::from(tap.offset[axis] > 0), self.shape.padded()[axis]);
        let (kind, distance) = (own.0[axis][side], tap.offset[axis].unsigned_abs() as usize);
        let mut value = other;
        for far in (0..distance).rev() {
            let at = if side == 0 { far } else { n.checked_sub(far + 1)? } as isize;
            let (Source::Cell(cell), is_negated) =
                Boundaries::all(kind).shown(axis, at + tap.offset[axis] as isize, n)
            else {
                return None;
            };
            let mut shown = tap;
            shown.offset[axis] = i32::try_from(cell as isize - at).ok()?;
            let mut instead = self.tap_from(axis + 1, program, formula, shown, own, shared)?;
            if is_negated {
                instead = formula.put(Node::Unary(Unary::Neg, instead));
            }
            value = match axis == self.slowest() && axis < 2 {
                true => choose_at(formula, axis, at as usize, instead, value),
                false => {
                    let beyond = Beyond { axis, side, distance: far + 1, extent: n };
                    beyond.choose(formula, self.slowest(), instead, value)
                }
            };
        }
        Some(value)
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
            // Other cells, which are tapped.
            ("reflect", "mirror", Boundary::Reflect),
            ("-reflect", "-mirror", Boundary::Reflect),
            ("-mirror", "periodic", Boundary::Periodic),
            ("constant=k", "periodic", Boundary::Periodic),
        ] {
            let problem = problem(&[7, 9], own, others);
            let clock = Clock::on_device(&problem, true).unwrap_or_else(|| panic!("{own} and {others}"));
            let plain = clock.plain();
            assert!(plain.is_plain() && plain.check().is_ok(), "{own} and {others}");
            assert_eq!(plain.boundaries.0[2], [shared; 2], "{own} and {others}");
        }
    }
}
