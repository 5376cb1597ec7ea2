//! Turns of a loop that go through the loops within it together, as text: for each of several rows there are locals of
//! its own, and what all of them have in common is written once.

use abide_core::expr::{Carried, Group, Id, Item, Loop, Place, Rows, Tap};

use super::{TERMS_TOGETHER, TURNS_TOGETHER, Writer, counter};

/// The row for which a text is written.
pub(super) struct Row<'r> {
    /// The loop whose turn it is.
    around: u16,
    /// How many turns it is after the first of those that go together.
    number: usize,
    rows: &'r Rows,
}

impl Row<'_> {
    /// Returns what is added to the index of a place.
    pub(super) fn plus(&self, place: Place) -> i64 {
        if place.of == Some(self.around) { self.number as i64 } else { 0 }
    }

    /// Returns the end of the name of a value that a loop carries for this row alone; `None` if it is not one.
    pub(super) fn suffix(&self, carrier: u16) -> Option<String> {
        self.rows.loops().any(|inner| inner == carrier).then(|| format!("_{}", self.number))
    }
}

/// Rows that are written beside each other.
struct Beside<'r> {
    around: u16,
    /// One more than the last index of the loop around.
    to: i32,
    rows: &'r Rows,
    /// Of each row the names of terms.
    names: Vec<Vec<String>>,
}

impl<'a, T, C> Writer<'a, T, C>
where
    T: FnMut(Tap) -> String,
    C: FnMut(Tap, [i64; 2], &str) -> Option<String>,
{
    /// Writes the turns of a loop, several of which go through loops within it together.
    pub(super) fn grouped(&mut self, number: u16, rows: &'a Rows) {
        for Group { from, to, rows: count } in rows.groups(self.most_rows) {
            let i = counter(number);
            let c = format!("#pragma unroll 1\nfor (int {i} = {from}; {i} < {to}; {i} += {count}) {{");
            let wgsl = format!("for (var {i}: i32 = {from}; {i} < {to}; {i} += {count}) {{");
            self.statements.push(self.language.own(&c, &wgsl).to_owned());
            let named = |row: usize| -> Vec<String> {
                let all = self.names.iter().zip(&rows.differs);
                all.map(|(name, differs)| if *differs { format!("{name}_{row}") } else { name.clone() })
                    .collect()
            };
            let mut beside = Beside { around: number, to, rows, names: (0..count).map(named).collect() };
            for item in &rows.together {
                match *item {
                    Item::Term(id) => self.each(&mut beside, 0..count, |writer| writer.term(id)),
                    Item::Loop(inner) => self.beside(inner, &mut beside),
                    // A row's own results are among what is computed in turn.
                    Item::Store(_) => {}
                }
            }
            self.each(&mut beside, 0..count, |writer| {
                writer.statements.push("{".to_owned());
                writer.items(&rows.in_turn);
                writer.replace(number);
                writer.statements.push("}".to_owned());
            });
            self.statements.push("}".to_owned());
        }
    }

    /// Writes something for each of some rows.
    fn each(&mut self, beside: &mut Beside<'a>, which: std::ops::Range<usize>, write: impl Fn(&mut Self)) {
        for number in which {
            std::mem::swap(&mut self.names, &mut beside.names[number]);
            self.row.push(Row { around: beside.around, number, rows: beside.rows });
            write(self);
            self.row.pop();
            std::mem::swap(&mut self.names, &mut beside.names[number]);
        }
    }

    /// Writes a loop that several rows go through together. Where it begins at the index of the loop around, rows before the
    /// last have turns before those of all.
    fn beside(&mut self, number: u16, beside: &mut Beside<'a>) {
        let looped = self.looped;
        let Loop { turns, carried: all, body } = &looped.loops[usize::from(number)];
        let count = beside.names.len();
        self.each(beside, 0..count, |writer| writer.starts(number, all));
        let (j, to) = (counter(number), turns.to);
        let is_shifted = turns.from.of == Some(beside.around);
        let first = self.index(turns.from, 0);
        // Other loops end before the last row has begun.
        let may_end = i64::from(beside.to) + i64::from(turns.from.offset) > i64::from(to) + 1;
        for before in (0..count.saturating_sub(1)).filter(|_| is_shifted) {
            let own = self.index(turns.from, before as i64);
            let (c, wgsl) = (format!("const int {j} = {own};"), format!("let {j}: i32 = {own};"));
            self.statements.push("{".to_owned());
            self.statements.push(self.language.own(&c, &wgsl).to_owned());
            if may_end {
                self.statements.push(format!("if ({j} < {to}) {{"));
            }
            self.body_beside(number, body, beside, before + 1);
            self.statements.extend((0..1 + usize::from(may_end)).map(|_| "}".to_owned()));
        }
        let from = if is_shifted { self.index(turns.from, count as i64 - 1) } else { first };
        let own =
            body.iter().filter(|item| matches!(item, Item::Term(id) if beside.rows.differs[*id as usize]));
        let terms = body.len() + own.count() * (count - 1);
        let together = (TERMS_TOGETHER / terms.max(1)).clamp(1, TURNS_TOGETHER);
        let c = format!("#pragma unroll {together}\nfor (int {j} = {from}; {j} < {to}; ++{j}) {{");
        let wgsl = format!("for (var {j}: i32 = {from}; {j} < {to}; {j}++) {{");
        self.statements.push(self.language.own(&c, &wgsl).to_owned());
        self.body_beside(number, body, beside, count);
        self.statements.push("}".to_owned());
    }

    /// Writes a turn of a loop for the first of the rows: what they have in common, then each row's own.
    fn body_beside(&mut self, number: u16, body: &[Item], beside: &mut Beside<'a>, count: usize) {
        let differs = |id: &Id| beside.rows.differs[*id as usize];
        let terms = || {
            body.iter().filter_map(|item| match *item {
                Item::Term(id) => Some(id),
                Item::Loop(_) | Item::Store(_) => None,
            })
        };
        let stores = || {
            body.iter().filter_map(|item| match *item {
                Item::Store(number) => Some(number),
                Item::Term(_) | Item::Loop(_) => None,
            })
        };
        let (own, common): (Vec<Id>, Vec<Id>) = terms().partition(differs);
        common.into_iter().for_each(|id| self.term(id));
        self.each(beside, 0..count, |writer| {
            own.iter().for_each(|&id| writer.term(id));
            stores().for_each(|number| writer.store(number));
            writer.replace(number);
        });
    }

    /// Writes what a loop carries before its first turn.
    pub(super) fn starts(&mut self, number: u16, all: &[Carried]) {
        for (k, one) in all.iter().enumerate() {
            let (name, start) = (self.carried(number, k), &self.names[one.start as usize]);
            let real = self.language.real(self.dtype);
            let (c, wgsl) = (format!("{real} {name} = {start};"), format!("var {name}: {real} = {start};"));
            self.statements.push(self.language.own(&c, &wgsl).to_owned());
        }
    }
}
