//! Turns of an outer loop that share one pass over its inner loops (unroll and jam), as the rows of
//! Σ_i x_i Σ_j T_ij y_j: terms that depend on j alone are read and computed once for all rows.
//!
//! This is possible where the inner loops need nothing that the outer loop carries. Each row has its own copy of every
//! value that the inner loops carry, and each copy takes its turns in their order: no bit changes.

use super::Id;
use super::looped::{Item, Looped};
use super::loops::{LoopId, Term};

/// How turns of a loop share passes over its inner loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// What several turns compute in one pass, in order: innermost loops, and the terms that they need.
    pub together: Vec<Item>,
    /// What is computed of one turn after another then, in order.
    pub in_turn: Vec<Item>,
    /// For each term, whether each of the turns that share a pass has its own value.
    pub differs: Vec<bool>,
    /// The first index of the loop around, and one more than the last.
    turns: [i32; 2],
}

/// Turns of which several share a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The first index.
    pub from: i32,
    /// One more than the last index.
    pub to: i32,
    /// The number of turns that share a pass; it divides the group's number of turns.
    pub rows: usize,
}

impl Rows {
    /// Returns the turns in groups of so many rows, and those that are left in one of fewer.
    pub fn groups(&self, most: usize) -> Vec<Group> {
        let [from, to] = self.turns;
        let turns = usize::try_from(to - from).unwrap_or(0);
        let rows = most.clamp(1, turns.max(1));
        let middle = to - (turns % rows) as i32;
        let rest = Group { from: middle, to, rows: turns % rows };
        let groups = [Group { from, to: middle, rows }, rest];
        groups.into_iter().filter(|group| group.from < group.to).collect()
    }

    /// Returns the loops over which several turns share a pass.
    pub fn loops(&self) -> impl Iterator<Item = LoopId> + '_ {
        self.together.iter().filter_map(|item| match *item {
            Item::Loop(number) => Some(number),
            Item::Term(_) | Item::Store(_) => None,
        })
    }
}

impl Looped {
    /// Returns how turns of a loop share passes over its inner loops. Returns `None` where they cannot: the loop has
    /// one turn, begins at another loop's index or is a tree sum, or each of its inner loops is a tree sum, has inner
    /// loops of its own or needs what the outer loop carries.
    pub fn rows(&self, number: LoopId) -> Option<Rows> {
        let around = &self.loops[usize::from(number)];
        let turns = [around.turns.from.offset, around.turns.to];
        let is_tree = around.turns.lanes() > 1;
        if is_tree || around.turns.from.of.is_some() || i64::from(turns[1]) - i64::from(turns[0]) < 2 {
            return None;
        }
        let (mut is_bound, mut bound_loops) = (vec![false; self.terms.len()], vec![false; self.loops.len()]);
        for item in &around.body {
            match *item {
                Item::Term(id) => {
                    is_bound[id as usize] = match self.terms[id as usize] {
                        Term::Carried(of, _) => of == number,
                        Term::Result(of, _) => bound_loops[usize::from(of)],
                        Term::Node(node) => node.operands().any(|operand| is_bound[operand as usize]),
                        Term::Entry(..) | Term::Component(..) | Term::Index(_) => false,
                    };
                }
                Item::Loop(inner) => {
                    bound_loops[usize::from(inner)] = self.has_loops(inner)
                        || self.loops[usize::from(inner)].turns.lanes() > 1
                        || self.reads(inner).any(|id| is_bound[id as usize]);
                }
                Item::Store(_) => {}
            }
        }
        let mut is_needed = vec![false; self.terms.len()];
        let mut in_order = Vec::new();
        for &item in around.body.iter().rev() {
            let is_together = match item {
                Item::Term(id) => {
                    if let (true, Term::Node(node)) = (is_needed[id as usize], self.terms[id as usize]) {
                        node.operands().for_each(|operand| is_needed[operand as usize] = true);
                    }
                    is_needed[id as usize]
                }
                Item::Loop(inner) => {
                    let is_together = !bound_loops[usize::from(inner)];
                    self.reads(inner).filter(|_| is_together).for_each(|id| is_needed[id as usize] = true);
                    is_together
                }
                Item::Store(_) => false,
            };
            in_order.push((item, is_together));
        }
        let (together, in_turn): (Vec<_>, Vec<_>) = in_order.into_iter().rev().partition(|(_, is)| *is);
        let [together, in_turn] =
            [together, in_turn].map(|items| items.into_iter().map(|(item, _)| item).collect());
        let mut rows = Rows { together, in_turn, differs: vec![false; self.terms.len()], turns };
        rows.loops().next()?;
        self.mark_differing(number, &mut rows);
        Some(rows)
    }

    /// Marks the terms of which each turn has a value of its own.
    fn mark_differing(&self, around: LoopId, rows: &mut Rows) {
        for item in &rows.together {
            let &Item::Loop(inner) = item else {
                // All that stands in a loop depends on its turn.
                if let Item::Term(id) = *item {
                    rows.differs[id as usize] = true;
                }
                continue;
            };
            for item in &self.loops[usize::from(inner)].body {
                let Item::Term(id) = *item else { continue };
                rows.differs[id as usize] = match self.terms[id as usize] {
                    Term::Node(node) => node.operands().any(|operand| rows.differs[operand as usize]),
                    Term::Entry(_, places) => places.iter().any(|place| place.of == Some(around)),
                    Term::Component(_, place) | Term::Index(place) => place.of == Some(around),
                    Term::Carried(..) | Term::Result(..) => true,
                };
            }
        }
    }

    /// Returns whether turns of any loop can share a pass over its inner loops.
    pub fn has_rows(&self) -> bool {
        (0..self.loops.len()).any(|number| self.rows(number as LoopId).is_some())
    }

    /// Returns whether any loop over which turns can share a pass carries a value, of which each turn then has its
    /// own.
    pub fn rows_carry(&self) -> bool {
        let all = (0..self.loops.len()).filter_map(|number| self.rows(number as LoopId));
        all.flat_map(|rows| rows.loops().collect::<Vec<_>>())
            .any(|inner| !self.loops[usize::from(inner)].carried.is_empty())
    }

    fn has_loops(&self, number: LoopId) -> bool {
        self.loops[usize::from(number)].body.iter().any(|item| matches!(item, Item::Loop(_)))
    }

    /// Returns what a loop without loops within it reads: terms of its own and others.
    fn reads(&self, number: LoopId) -> impl Iterator<Item = Id> + '_ {
        let own = &self.loops[usize::from(number)];
        let operands = own.body.iter().flat_map(|item| match *item {
            Item::Term(id) => match self.terms[id as usize] {
                Term::Node(node) => node.operands().collect(),
                _ => Vec::new(),
            },
            Item::Store(store) => vec![self.stores[usize::from(store)].value],
            Item::Loop(_) => Vec::new(),
        });
        own.carried.iter().flat_map(|carried| [carried.start, carried.next]).chain(operands)
    }
}
