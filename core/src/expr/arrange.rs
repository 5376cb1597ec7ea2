//! The order in which a formula with loops is computed, and which of its loops become one.
//!
//! A term stands in the innermost loop on whose turn it depends, after the loops that do not need it. Loops that are
//! ready at the same time and have the same turns are fused: shared operands are read once. Fused loops exchange no
//! values, so no bit changes. Registers hold what a loop carries, also while its inner loops run. So loops with inner
//! loops are not fused with loops without any, and a fused loop carries few values.

use std::collections::HashMap;

use super::looped::{Carried, Item, Loop, Looped};
use super::loops::{LoopId, Place, Term, Turns};
use super::stores::Store;
use super::{Id, Nodes};

/// The most values that fused loops carry: a third of a thread's registers, in f64 with two points a thread.
const MOST_CARRIED: usize = 16;

/// Returns the needed part of a graph with its loops; `None` if it needs none.
pub(super) fn arranged(nodes: &Nodes, outputs: &[Id]) -> Option<Looped> {
    let mut arranger = Arranger::new(nodes, outputs);
    if !arranger.is_kept.contains(&true) {
        return None;
    }
    let body = arranger.scope(&[None]);
    let outputs = outputs.iter().filter_map(|&id| arranger.new[id as usize]).collect();
    let Arranger { terms, loops, stores, .. } = arranger;
    let stored = nodes.stored.iter().sum();
    Some(Looped { terms, loops, tables: nodes.tables.clone(), body, outputs, stores, stored })
}

struct Arranger<'a> {
    nodes: &'a Nodes,
    needed: Vec<bool>,
    /// Of each loop, the numbers of the carried values that are needed.
    carried: Vec<Vec<u16>>,
    /// Of each loop, whether it is needed: for a value that it carries, or for what is stored in it.
    is_kept: Vec<bool>,
    /// Of each group of stored values, the number of the first among the formula's.
    first: Vec<usize>,
    /// Of each loop, whether there are loops within it.
    has_loops: Vec<bool>,
    /// Of each loop, the terms outside of it that its turns read.
    reads: Vec<Vec<Id>>,
    /// The new number of each term that has a place.
    new: Vec<Option<Id>>,
    terms: Vec<Term>,
    index: HashMap<Term, Id>,
    loops: Vec<Loop>,
    stores: Vec<Store>,
    /// Of each loop, its new number, the first number of its carried values, and whether it is done.
    place: Vec<Option<(LoopId, u16, bool)>>,
}

impl<'a> Arranger<'a> {
    fn new(nodes: &'a Nodes, outputs: &[Id]) -> Arranger<'a> {
        let loops = nodes.loops.len();
        let mut all = Arranger {
            nodes,
            needed: vec![false; nodes.list.len()],
            carried: vec![Vec::new(); loops],
            is_kept: vec![false; loops],
            first: Vec::with_capacity(nodes.stored.len()),
            has_loops: vec![false; loops],
            reads: vec![Vec::new(); loops],
            new: vec![None; nodes.list.len()],
            terms: Vec::new(),
            index: HashMap::new(),
            loops: Vec::new(),
            stores: Vec::new(),
            place: vec![None; loops],
        };
        let mut first = outputs.len();
        for count in &nodes.stored {
            all.first.push(first);
            first += count;
        }
        let mut stack = outputs.to_vec();
        stack.extend(nodes.stores.iter().map(|store| store.value));
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut all.needed[id as usize], true) {
                continue;
            }
            match nodes.list[id as usize] {
                Term::Node(node) => stack.extend(node.operands()),
                Term::Carried(number, k) | Term::Result(number, k) => {
                    let own = usize::from(number);
                    if !all.carried[own].contains(&k) {
                        all.carried[own].push(k);
                        stack.extend(nodes.loops[own].carried[usize::from(k)]);
                    }
                }
                Term::Entry(..) | Term::Component(..) | Term::Index(_) => {}
            }
        }
        for store in &nodes.stores {
            let around = |number: &LoopId| nodes.loops[usize::from(*number)].parent;
            std::iter::successors(Some(store.home), around)
                .for_each(|number| all.is_kept[usize::from(number)] = true);
            all.note(Some(store.home), store.value);
        }
        for number in 0..loops {
            all.carried[number].sort_unstable();
            all.is_kept[number] |= !all.carried[number].is_empty();
            if let Some(around) = nodes.loops[number].parent.filter(|_| all.is_kept[number]) {
                all.has_loops[usize::from(around)] = true;
            }
            for &k in &all.carried[number].clone() {
                let [start, next] = nodes.loops[number].carried[usize::from(k)];
                all.note(nodes.loops[number].parent, start);
                all.note(Some(number as LoopId), next);
            }
        }
        for (id, term) in nodes.list.iter().enumerate().filter(|(id, _)| all.needed[*id]).collect::<Vec<_>>()
        {
            match term {
                Term::Node(node) => node.operands().for_each(|operand| all.note(nodes.homes[id], operand)),
                // What starts a loop is read where the loop stands; its results are terms there.
                Term::Entry(..)
                | Term::Component(..)
                | Term::Index(_)
                | Term::Carried(..)
                | Term::Result(..) => {}
            }
        }
        all
    }

    /// Takes note of a term that is read in a loop: every loop from there out to the term's own reads it.
    fn note(&mut self, mut reader: Option<LoopId>, id: Id) {
        let home = self.nodes.homes[id as usize];
        while let Some(number) = reader.filter(|_| reader != home) {
            self.reads[usize::from(number)].push(id);
            reader = self.nodes.loops[usize::from(number)].parent;
        }
    }

    /// Places everything that stands in the fused loops `members`, or outside of all loops.
    fn scope(&mut self, members: &[Option<LoopId>]) -> Vec<Item> {
        let nodes = self.nodes;
        let all = 0..nodes.list.len() as Id;
        let own = |id: &Id| self.needed[*id as usize] && members.contains(&nodes.homes[*id as usize]);
        let mut waiting: Vec<Id> = all.filter(own).collect();
        let inner = |number: &LoopId| {
            let own = usize::from(*number);
            self.is_kept[own] && members.contains(&nodes.loops[own].parent)
        };
        let mut loops: Vec<LoopId> = (0..nodes.loops.len() as LoopId).filter(inner).collect();
        let (mut items, mut later) = (Vec::new(), Vec::new());
        loop {
            // Operands come first, so that one pass is enough.
            waiting.retain(|&id| {
                let Some(term) = self.renewed(nodes.list[id as usize]) else { return true };
                let next = self.terms.len() as Id;
                let new = *self.index.entry(term).or_insert(next);
                if new == next {
                    self.terms.push(term);
                    later.push(new);
                }
                self.new[id as usize] = Some(new);
                false
            });
            let is_ready = |number: &LoopId| {
                let own = usize::from(*number);
                let starts = self.carried[own].iter().map(|&k| nodes.loops[own].carried[usize::from(k)][0]);
                starts.chain(self.reads[own].iter().copied()).all(|id| self.new[id as usize].is_some())
            };
            let Some(&first) = loops.iter().find(|number| is_ready(number)) else {
                items.extend(later.into_iter().map(Item::Term));
                items.extend(self.stores_of(members));
                return items;
            };
            let turns = self.turns(first);
            let is_outer = self.has_loops[usize::from(first)];
            let alike = |number: &LoopId| {
                is_ready(number)
                    && self.turns(*number) == turns
                    && self.has_loops[usize::from(*number)] == is_outer
            };
            let mut count = 0;
            let fits = |number: &LoopId| {
                count += self.carried[usize::from(*number)].len();
                *number == first || count <= MOST_CARRIED
            };
            let together: Vec<LoopId> = loops.iter().copied().filter(alike).take_while(fits).collect();
            loops.retain(|number| !together.contains(number));
            items.extend(self.before(&together, &mut later).into_iter().map(Item::Term));
            items.push(Item::Loop(self.one(turns, &together)));
        }
    }

    /// Places what the turns of the fused loops `members` store.
    fn stores_of(&mut self, members: &[Option<LoopId>]) -> Vec<Item> {
        let mut items = Vec::new();
        for store in self.nodes.stores.iter().filter(|store| members.contains(&Some(store.home))) {
            let Some(value) = self.new[store.value as usize] else { continue };
            items.push(Item::Store(self.stores.len() as u16));
            let places = store.places.map(|place| self.placed(place));
            let (first, columns) = (self.first[store.group], store.columns);
            self.stores.push(Store { first, columns, places, value });
        }
        items
    }

    /// Takes those terms out of `later` that loops need: what only comes after them would keep registers through them.
    fn before(&self, together: &[LoopId], later: &mut Vec<Id>) -> Vec<Id> {
        let mut is_needed = vec![false; self.terms.len()];
        for &number in together {
            let own = usize::from(number);
            let starts = self.carried[own].iter().map(|&k| self.nodes.loops[own].carried[usize::from(k)][0]);
            for id in starts.chain(self.reads[own].iter().copied()).filter_map(|id| self.new[id as usize]) {
                is_needed[id as usize] = true;
            }
        }
        for id in (0..self.terms.len()).rev() {
            if let Term::Node(node) = self.terms[id]
                && is_needed[id]
            {
                node.operands().for_each(|operand| is_needed[operand as usize] = true);
            }
        }
        let (now, rest) = later.iter().partition(|&&id| is_needed[id as usize]);
        *later = rest;
        now
    }

    /// Makes one loop of several of the same turns; returns its number.
    fn one(&mut self, turns: Turns, together: &[LoopId]) -> LoopId {
        let number = self.loops.len() as LoopId;
        // Loops stand after those around them.
        self.loops.push(Loop { turns, carried: Vec::new(), body: Vec::new() });
        let mut count = 0;
        for &own in together {
            self.place[usize::from(own)] = Some((number, count, false));
            count += self.carried[usize::from(own)].len() as u16;
        }
        let members: Vec<Option<LoopId>> = together.iter().copied().map(Some).collect();
        let body = self.scope(&members);
        let mut carried = Vec::with_capacity(usize::from(count));
        for &own in together {
            let own = usize::from(own);
            for &k in &self.carried[own] {
                let ends = self.nodes.loops[own].carried[usize::from(k)];
                if let [Some(start), Some(next)] = ends.map(|id| self.new[id as usize]) {
                    carried.push(Carried { start, next });
                }
            }
            if let Some((.., is_done)) = &mut self.place[own] {
                *is_done = true;
            }
        }
        self.loops[usize::from(number)] = Loop { turns, carried, body };
        number
    }

    /// Returns a term with new numbers; `None` while something that it needs has no place.
    fn renewed(&self, term: Term) -> Option<Term> {
        Some(match term {
            Term::Node(node) => {
                if node.operands().any(|operand| self.new[operand as usize].is_none()) {
                    return None;
                }
                Term::Node(node.map(|operand| self.new[operand as usize].unwrap_or_default()))
            }
            Term::Entry(table, places) => Term::Entry(table, places.map(|place| self.placed(place))),
            Term::Component(tap, place) => Term::Component(tap, self.placed(place)),
            Term::Index(place) => Term::Index(self.placed(place)),
            Term::Carried(number, k) => {
                let (new, first, _) = self.place[usize::from(number)]?;
                Term::Carried(new, first + self.rank(number, k))
            }
            Term::Result(number, k) => {
                let (new, first, _) = self.place[usize::from(number)].filter(|(.., is_done)| *is_done)?;
                Term::Result(new, first + self.rank(number, k))
            }
        })
    }

    /// Returns the number of a carried value among those of its loop that are needed.
    fn rank(&self, number: LoopId, k: u16) -> u16 {
        self.carried[usize::from(number)].iter().take_while(|&&known| known < k).count() as u16
    }

    fn placed(&self, place: Place) -> Place {
        let of = place.of.and_then(|number| self.place[usize::from(number)]).map(|(number, ..)| number);
        Place { of, ..place }
    }

    fn turns(&self, number: LoopId) -> Turns {
        let turns = self.nodes.loops[usize::from(number)].turns;
        Turns { from: self.placed(turns.from), ..turns }
    }
}
