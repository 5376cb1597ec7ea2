//! A finished formula with its loops: what is computed in which loop, its values at a cell, and the same formula with
//! each turn written out.

use super::dag::value;
use super::loops::{Entries, Place, Term, Turns};
use super::stores::Store;
use super::tree::joined;
use super::{Binary, Constant, Dag, Expr, Graph, Id, Node, Tap};
use crate::real::Real;

/// A formula with loops. Equal turns of loops that do not need each other are one loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looped {
    /// The terms, operands first.
    pub terms: Vec<Term>,
    /// The loops, by their numbers in terms.
    pub loops: Vec<Loop>,
    /// The tables, by their numbers in terms.
    pub tables: Vec<Entries>,
    /// What is computed outside of all loops, in order.
    pub body: Vec<Item>,
    /// The numbers of the terms that are the formula's first values.
    pub outputs: Vec<Id>,
    /// What turns of loops store, by its numbers in items.
    pub stores: Vec<Store>,
    /// The number of values that turns of loops store, which are the formula's last.
    pub stored: usize,
}

/// A loop of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The turns.
    pub turns: Turns,
    /// The values that it carries, by their numbers in terms.
    pub carried: Vec<Carried>,
    /// What a turn computes, in order.
    pub body: Vec<Item>,
}

/// A value that a loop carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// The term that it is before the first turn.
    pub start: Id,
    /// The term that it is after a turn.
    pub next: Id,
}

/// A part of what is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A term.
    Term(Id),
    /// All turns of a loop.
    Loop(u16),
    /// What a turn stores.
    Store(u16),
}

/// What gives terms their values.
trait Machine {
    type Value: Copy;

    fn node(&mut self, node: Node, at: &[Self::Value]) -> Self::Value;

    fn number(&mut self, value: f64) -> Self::Value {
        self.node(Node::Const(Constant::new(value)), &[])
    }

    fn sum(&mut self, a: Self::Value, b: Self::Value) -> Self::Value {
        self.node(Node::Binary(Binary::Add, 0, 1), &[a, b])
    }
}

/// Where a formula is when it is gone through.
struct State<V> {
    values: Vec<V>,
    carried: Vec<Vec<V>>,
    indices: Vec<i64>,
    /// The values of the formula that loops store.
    stored: Vec<V>,
}

impl<V> State<V> {
    fn index(&self, place: Place) -> i64 {
        i64::from(place.offset) + place.of.map_or(0, |number| self.indices[usize::from(number)])
    }
}

impl Looped {
    /// Returns the values of the outputs at one cell.
    ///
    /// `coord` is the index along the three axes, slowest first; for a temporary it may lie beyond the domain.
    pub fn evaluate<T: Real>(
        &self,
        params: &[T],
        coord: [isize; 3],
        tap: impl FnMut(Tap) -> T,
    ) -> impl Iterator<Item = T> {
        struct Cell<'p, T, F> {
            params: &'p [T],
            coord: [isize; 3],
            tap: F,
        }
        impl<T: Real, F: FnMut(Tap) -> T> Machine for Cell<'_, T, F> {
            type Value = T;

            fn node(&mut self, node: Node, at: &[T]) -> T {
                value(node, |id| at[id as usize], self.params, self.coord, &mut self.tap)
            }
        }
        self.run(&mut Cell { params, coord, tap }).into_iter()
    }

    /// Returns the formula with each turn of every loop.
    pub fn unrolled(&self) -> Dag {
        struct Written<'g>(&'g Graph);
        impl<'g> Machine for Written<'g> {
            type Value = Expr<'g>;

            fn node(&mut self, node: Node, at: &[Expr<'g>]) -> Expr<'g> {
                self.0.add(node.map(|id| at[id as usize].id()))
            }
        }
        let graph = Graph::new();
        graph.dag(&self.run(&mut Written(&graph)))
    }

    /// Returns the components that loops read: the first of a field, and the least and the greatest number, of each field
    /// and offset in order.
    pub fn components(&self) -> Vec<(Tap, [i64; 2])> {
        let reach = self.reach();
        let mut found: Vec<(Tap, [i64; 2])> = Vec::new();
        for term in &self.terms {
            let Term::Component(tap, place) = *term else { continue };
            let [low, high] = of(&reach, place);
            match found.iter_mut().find(|(known, _)| *known == tap) {
                Some((_, known)) => *known = [known[0].min(low), known[1].max(high)],
                None => found.push((tap, [low, high])),
            }
        }
        found.sort_by_key(|(tap, _)| *tap);
        found
    }

    /// Returns the least and the greatest index of each loop; loops stand after those around them.
    pub(super) fn reach(&self) -> Vec<[i64; 2]> {
        let mut reach: Vec<[i64; 2]> = Vec::with_capacity(self.loops.len());
        for Loop { turns, .. } in &self.loops {
            let from = of(&reach, turns.from);
            reach.push([from[0], i64::from(turns.to) - 1]);
        }
        reach
    }

    /// Returns the terms of all turns; of turns from an outer index on, as many as from the least one.
    pub fn written_out(&self) -> usize {
        let reach = self.reach();
        self.written_out_of(&self.body, &reach)
    }

    fn written_out_of(&self, items: &[Item], reach: &[[i64; 2]]) -> usize {
        let each = items.iter().map(|item| match *item {
            Item::Term(_) => 1,
            Item::Store(_) => 0,
            Item::Loop(number) => {
                let [low, high] = reach[usize::from(number)];
                let turns = usize::try_from(high - low + 1).unwrap_or(0);
                let Loop { turns: own, carried, body } = &self.loops[usize::from(number)];
                let joins = (own.lanes() - 1) * carried.len();
                turns.saturating_mul(self.written_out_of(body, reach)).saturating_add(joins)
            }
        });
        each.fold(0, usize::saturating_add)
    }

    /// Goes through the formula; returns its values.
    fn run<M: Machine>(&self, machine: &mut M) -> Vec<M::Value> {
        let none = machine.number(f64::NAN);
        let mut state = State {
            values: vec![none; self.terms.len()],
            carried: self.loops.iter().map(|each| vec![none; each.carried.len()]).collect(),
            indices: vec![0; self.loops.len()],
            stored: vec![none; self.stored],
        };
        self.go(&self.body, machine, &mut state);
        let first = self.outputs.iter().map(|&id| state.values[id as usize]);
        first.chain(state.stored.iter().copied()).collect()
    }

    fn go<M: Machine>(&self, items: &[Item], machine: &mut M, state: &mut State<M::Value>) {
        for item in items {
            match *item {
                Item::Term(id) => {
                    state.values[id as usize] = match self.terms[id as usize] {
                        Term::Node(node) => machine.node(node, &state.values),
                        Term::Entry(table, [row, column]) => {
                            let (row, column) = (state.index(row), state.index(column));
                            machine.number(self.tables[usize::from(table)].at(row, column))
                        }
                        Term::Component(first, place) => {
                            // Checked when the formula was built.
                            let field = first.field + state.index(place) as u16;
                            machine.node(Node::Tap(Tap { field, ..first }), &state.values)
                        }
                        Term::Index(place) => machine.number(state.index(place) as f64),
                        Term::Carried(number, k) | Term::Result(number, k) => {
                            state.carried[usize::from(number)][usize::from(k)]
                        }
                    };
                }
                Item::Store(number) => {
                    let Store { first, columns, places, value } = self.stores[usize::from(number)];
                    let [row, column] = places.map(|place| state.index(place) as usize);
                    let at = first - self.outputs.len() + row * columns + column;
                    state.stored[at] = state.values[value as usize];
                }
                Item::Loop(number) => {
                    let own = usize::from(number);
                    let Loop { turns, carried, body } = &self.loops[own];
                    let now = |state: &State<M::Value>, which: fn(&Carried) -> Id| -> Vec<M::Value> {
                        carried.iter().map(|carried| state.values[which(carried) as usize]).collect()
                    };
                    let from = state.index(turns.from);
                    let mut lanes = Vec::with_capacity(turns.lanes());
                    for lane in 0..turns.lanes() {
                        state.carried[own] = now(state, |carried| carried.start);
                        for index in (from + lane as i64..i64::from(turns.to)).step_by(turns.lanes()) {
                            state.indices[own] = index;
                            self.go(body, machine, state);
                            state.carried[own] = now(state, |carried| carried.next);
                        }
                        lanes.push(std::mem::take(&mut state.carried[own]));
                    }
                    let join = |a: Vec<M::Value>, b: Vec<M::Value>| {
                        a.into_iter().zip(b).map(|(a, b)| machine.sum(a, b)).collect()
                    };
                    state.carried[own] = joined(lanes.into_iter(), join).unwrap_or_default();
                }
            }
        }
    }
}

fn of(reach: &[[i64; 2]], place: Place) -> [i64; 2] {
    let own = place.of.map_or([0; 2], |number| reach[usize::from(number)]);
    own.map(|index| index + i64::from(place.offset))
}
