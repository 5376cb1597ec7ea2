//! What a formula with loops asks of a thread that computes it: how often it reads each table, and how many values it
//! holds at once.

use std::collections::HashMap;

use super::looped::{Item, Looped};
use super::loops::{LoopId, Term};
use super::{Id, Node};

/// A value that a register holds: a term's, or one that a loop carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Value {
    Term(Id),
    Carried(u16, u16),
}

/// Where a value is made and where it is read last, and the loops around where it is made.
struct Span {
    first: usize,
    last: usize,
    around: Vec<u16>,
    /// Copies of the value: one for each row that shares a pass over an inner loop.
    count: usize,
}

/// Where a formula is when its values' spans are looked for.
struct Walk<'a> {
    looped: &'a Looped,
    at: usize,
    around: Vec<u16>,
    /// Values that are read within a loop, but made outside of it, are held until its end.
    kept: Vec<(u16, Value)>,
    spans: HashMap<Value, Span>,
    /// The values of which each row has one of its own, and the rows.
    rows: HashMap<Value, usize>,
}

impl Looped {
    /// Returns how often a point reads each table, by the tables' numbers; of turns from an outer index on as from the
    /// least one.
    pub fn table_reads(&self) -> Vec<usize> {
        let mut reads = vec![0; self.tables.len()];
        self.count_reads(&self.body, 1, &self.reach(), &mut reads);
        reads
    }

    fn count_reads(&self, items: &[Item], times: usize, reach: &[[i64; 2]], reads: &mut [usize]) {
        for item in items {
            match *item {
                Item::Term(id) => {
                    if let Term::Entry(table, _) = self.terms[id as usize] {
                        let read = &mut reads[usize::from(table)];
                        *read = read.saturating_add(times);
                    }
                }
                Item::Loop(number) => {
                    let [low, high] = reach[usize::from(number)];
                    let turns = usize::try_from(high - low + 1).unwrap_or(0);
                    let body = &self.loops[usize::from(number)].body;
                    self.count_reads(body, times.saturating_mul(turns), reach, reads);
                }
                Item::Store(_) => {}
            }
        }
    }

    /// Returns the most values of a point that are held at once where terms are computed in their order: values that
    /// are still to be read, and values that loops carry. Constants, indices and entries of tables do not count as a
    /// point's. Up to `rows` turns of a loop share a pass over its inner loops.
    pub fn most_held(&self, rows: usize) -> usize {
        let mut walk = Walk {
            looped: self,
            at: 0,
            around: Vec::new(),
            kept: Vec::new(),
            spans: HashMap::new(),
            rows: self.values_of_rows(rows),
        };
        walk.items(&self.body);
        let end = walk.at;
        self.outputs.iter().for_each(|&id| walk.read(id));
        let mut change = vec![0i64; end + 2];
        for span in walk.spans.values() {
            let count = span.count as i64;
            change[span.first] += count;
            change[span.last.max(span.first) + 1] -= count;
        }
        let held = change.iter().scan(0, |held, change| {
            *held += change;
            Some(*held)
        });
        held.max().and_then(|most| usize::try_from(most).ok()).unwrap_or(0)
    }

    /// Returns the values that are held once for each of several rows, and the rows.
    fn values_of_rows(&self, most: usize) -> HashMap<Value, usize> {
        let mut values = HashMap::new();
        for number in (0..self.loops.len() as LoopId).filter(|_| most > 1) {
            let Some(rows) = self.rows(number) else { continue };
            let count = rows.groups(most).first().map_or(1, |group| group.rows);
            for item in &rows.together {
                match *item {
                    Item::Term(id) => {
                        values.insert(Value::Term(id), count);
                    }
                    Item::Loop(inner) => {
                        let carried = 0..self.loops[usize::from(inner)].carried.len() as u16;
                        values.extend(carried.map(|k| (Value::Carried(inner, k), count)));
                    }
                    Item::Store(_) => {}
                }
            }
        }
        values
    }
}

impl Walk<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.at += 1;
            match *item {
                Item::Term(id) => self.term(id),
                Item::Loop(number) => self.turns(number),
                Item::Store(number) => self.read(self.looped.stores[usize::from(number)].value),
            }
        }
    }

    fn term(&mut self, id: Id) {
        match self.looped.terms[id as usize] {
            Term::Node(node) => {
                node.operands().for_each(|operand| self.read(operand));
                if !matches!(node, Node::Const(_) | Node::Param(_)) {
                    self.make(Value::Term(id));
                }
            }
            Term::Component(..) => self.make(Value::Term(id)),
            // These are other names of what a loop carries, or the same for all points.
            Term::Carried(..) | Term::Result(..) | Term::Entry(..) | Term::Index(_) => {}
        }
    }

    fn turns(&mut self, number: u16) {
        let each = &self.looped.loops[usize::from(number)];
        for (k, carried) in each.carried.iter().enumerate() {
            self.read(carried.start);
            self.make(Value::Carried(number, k as u16));
            // A block of lanes of each size waits for the next one.
            if let Some(span) = self.spans.get_mut(&Value::Carried(number, k as u16)) {
                span.count += each.turns.levels();
            }
        }
        self.around.push(number);
        self.items(&each.body);
        self.at += 1;
        for (k, carried) in each.carried.iter().enumerate() {
            self.read(carried.next);
            self.touch(Value::Carried(number, k as u16));
        }
        self.around.pop();
        // The next turn reads them again.
        let at = self.at;
        for (_, value) in self.kept.extract_if(.., |(of, _)| *of == number) {
            if let Some(span) = self.spans.get_mut(&value) {
                span.last = at;
            }
        }
    }

    fn make(&mut self, value: Value) {
        let count = self.rows.get(&value).copied().unwrap_or(1);
        let span = Span { first: self.at, last: self.at, around: self.around.clone(), count };
        self.spans.insert(value, span);
    }

    fn read(&mut self, id: Id) {
        match self.looped.terms[id as usize] {
            Term::Carried(number, k) | Term::Result(number, k) => self.touch(Value::Carried(number, k)),
            _ => self.touch(Value::Term(id)),
        }
    }

    fn touch(&mut self, value: Value) {
        let Some(span) = self.spans.get_mut(&value) else { return };
        span.last = self.at;
        if let Some(&outermost) = self.around.get(span.around.len()) {
            self.kept.push((outermost, value));
        }
    }
}
