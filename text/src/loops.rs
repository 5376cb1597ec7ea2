//! Loops in formulas: `sum(x[i]*w[i] for i in range(5))`, and the tables that their indices read.

use std::cell::RefCell;
use std::ops::Range;

use abide_core::expr::{Components, Expr, Graph, Index, QuadraticForm, Turns};
use pest::iterators::Pair;

use crate::document::{Entry, Item, Table};
use crate::fault::Fault;
use crate::formula::{Meaning, Rule, range};

/// A table of constants.
#[derive(Debug, Clone)]
pub(crate) struct Constants {
    pub name: String,
    /// One, or the rows of a table that two indices read.
    pub rows: usize,
    entries: Vec<f64>,
}

/// The calls that take a loop, beside [`FORMS`].
const FOLDS: [&str; 6] = ["sum", "prod", "min", "max", "dot", "fold"];

/// Those of them that are trees, of as many lanes as their first operand says.
const TREES: [&str; 2] = ["tree_sum", "tree_dot"];

/// Makes the form of a table from its rows' length and its entries.
type MakeForm = fn(usize, &[f64]) -> abide_core::Result<QuadraticForm>;

/// The calls that sum over pairs by the structure of a table.
const FORMS: [(&str, MakeForm); 3] = [
    ("symmetric", QuadraticForm::symmetric),
    ("sparse", QuadraticForm::sparse),
    ("lowrank", |size, entries| QuadraticForm::low_rank(size, entries, LOW_RANK)),
];

/// The error of an entry of a table of a low rank, in units of the diagonal's entries.
const LOW_RANK: f64 = 1e-15;

/// Reads the tables of a model: an array of numbers each, or of rows.
pub(crate) fn tables(table: Table<'_>, is_taken: impl Fn(&str) -> bool) -> Result<Vec<Constants>, Fault> {
    let numbers =
        |row: &[Item<'_>]| row.iter().map(|item| item.number()).collect::<Result<Vec<f64>, Fault>>();
    let read = |Entry { key, at, item }: Entry<'_>| {
        if is_taken(key) {
            let reason = format!("{key} stands for two things");
            return Err(Fault::new(at, reason, "give the table another name"));
        }
        let items = item.array()?;
        let (rows, entries) = match items.iter().any(|item| item.is_array()) {
            false => (1, numbers(&items)?),
            true => {
                let rows: Vec<Vec<f64>> =
                    items.iter().map(|row| numbers(&row.array()?)).collect::<Result<_, Fault>>()?;
                if let Some(other) = rows.iter().position(|row| row.len() != rows[0].len()) {
                    let reason =
                        format!("row {other} has {} entries, the first {}", rows[other].len(), rows[0].len());
                    return Err(Fault::new(items[other].at(), reason, "give each row as many"));
                }
                (rows.len(), rows.concat())
            }
        };
        let graph = Graph::new();
        graph.table_of(rows, &entries);
        match graph.fault() {
            Some(fault) => Err(Fault::of(item.at(), fault)),
            None => Ok(Constants { name: key.to_owned(), rows, entries }),
        }
    };
    table.entries().map(read).collect()
}

/// A number in brackets: a whole one, or the index of a loop.
#[derive(Clone, Copy)]
pub(crate) enum Number<'g> {
    Whole(i32),
    Index(Index<'g>),
}

impl<'g> Meaning<'_, 'g> {
    /// Returns what a call makes of the turns of a loop.
    pub(crate) fn folded(
        &self,
        call: &Pair<'_, Rule>,
        name: &str,
        terms: &[Pair<'_, Rule>],
        turns: Pair<'_, Rule>,
    ) -> Result<Expr<'g>, Fault> {
        let at = range(call);
        let make_form = FORMS.into_iter().find(|(form, _)| *form == name).map(|(_, make)| make);
        let expected = match name {
            "dot" | "tree_sum" => 2,
            "tree_dot" => 3,
            _ if make_form.is_some() => 2,
            _ if FOLDS.contains(&name) => 1,
            _ => {
                let known = FOLDS.into_iter().chain(TREES).chain(FORMS.map(|(form, _)| form));
                return Err(Fault::unknown(at, "loop", name, known));
            }
        };
        if terms.len() != expected {
            let reason = format!("{name} has {} operands before its loop, and takes {expected}", terms.len());
            return Err(Fault::new(at, reason, "give it as many"));
        }
        let parts = turns
            .into_inner()
            .filter(|part| !matches!(part.as_rule(), Rule::for_ | Rule::in_ | Rule::range | Rule::with));
        let parts: Vec<Pair<'_, Rule>> = parts.collect();
        // The grammar has an index, one or two bounds, and what a fold carries.
        let Some((index, parts)) = parts.split_first() else {
            return Err(Fault::new(at, "it has no index", "name one"));
        };
        let bounds = parts.iter().take_while(|part| part.as_rule() != Rule::name).count();
        let (bounds, carried) = parts.split_at(bounds);
        let turns = self.turns(bounds)?;
        let graph = self.scope.graph();
        let new = |name: &Pair<'_, Rule>| {
            let text = name.as_str().trim_matches('`');
            match self.means(text) {
                false => Ok(text.to_owned()),
                true => {
                    let reason = format!("{text} stands for two things");
                    Err(Fault::new(range(name), reason, "give the loop another name"))
                }
            }
        };
        let (index, fault) = (new(index)?, RefCell::new(None));
        let (form, lanes, terms) = match (make_form, terms) {
            (Some(make), [table, terms @ ..]) => (Some(self.form(name, make, table, turns)?), 1, terms),
            (None, [lanes, terms @ ..]) if TREES.contains(&name) => (None, whole_lanes(lanes)?, terms),
            _ => (None, 1, terms),
        };
        // What a turn makes of the index and of what is carried.
        let turn = |i: Index<'g>, carried: Option<(&str, Expr<'g>)>| {
            let indices = [self.indices, &[(index.clone(), i)]].concat();
            let carried = carried.map(|(name, value)| (name.to_owned(), value));
            let locals: Vec<_> = self.locals.iter().cloned().chain(carried).collect();
            let inner = Meaning { indices: &indices, locals: &locals, ..*self };
            let values = terms.iter().map(|term| Ok(inner.value(term.clone())?.expr));
            let values: Result<Vec<Expr<'g>>, Fault> = values.collect();
            values.unwrap_or_else(|found| {
                fault.replace(Some(found));
                vec![graph.constant(0.0); terms.len()]
            })
        };
        let value = match (name, carried, form) {
            (_, [], Some(form)) => form.of(graph, |i| turn(i, None)[0]),
            ("fold", [name, start], _) => {
                let (name, start) = (new(name)?, self.value(start.clone())?.expr);
                graph.fold(turns, start, |i, value| turn(i, Some((&name, value)))[0])
            }
            ("fold", ..) => {
                let reason = "a fold carries a value, and this one does not say which";
                return Err(Fault::new(
                    at,
                    reason,
                    "write it as fold(s + x[i] for i in range(5) with s = 0)",
                ));
            }
            (_, [name, ..], _) => {
                let reason = format!("{} begins at a value of its own", call_name(call));
                return Err(Fault::new(range(name), reason, "leave `with` out, or write a fold"));
            }
            ("prod", ..) => graph.product(turns, |i| turn(i, None)[0]),
            ("min", ..) => graph.least(turns, |i| turn(i, None)[0]),
            ("max", ..) => graph.greatest(turns, |i| turn(i, None)[0]),
            ("dot" | "tree_dot", ..) => graph.tree_sum_of_products(lanes, turns, |i| {
                let factors = turn(i, None);
                [factors[0], factors[1]]
            }),
            _ => graph.tree_sum(lanes, turns, |i| turn(i, None)[0]),
        };
        match fault.into_inner().or_else(|| graph.fault().map(|error| Fault::of(at, error))) {
            Some(fault) => Err(fault),
            None => Ok(value),
        }
    }

    /// Returns the form of a table that a call names before what it sums.
    fn form(
        &self,
        name: &str,
        make: MakeForm,
        table: &Pair<'_, Rule>,
        turns: Turns,
    ) -> Result<QuadraticForm, Fault> {
        let (at, text) = (range(table), table.as_str().trim().trim_matches('`'));
        let Some(table) = self.tables.iter().find(|table| table.name == text) else {
            let names = self.tables.iter().map(|table| &table.name);
            return Err(Fault::unknown(at, "table", text, names));
        };
        let size = table.rows;
        if turns != Turns::from(0..size) {
            let reason = format!("{name} sums over all {size} rows of {text}, and its loop has other turns");
            return Err(Fault::new(at, reason, format!("write for i in range({size})")));
        }
        make(size, &table.entries).map_err(|error| Fault::of(at, error))
    }

    /// Returns the turns of a range: up to before a bound, or from one to before another.
    fn turns(&self, bounds: &[Pair<'_, Rule>]) -> Result<Turns, Fault> {
        let bounds = bounds.iter().map(|bound| Ok((range(bound), self.bound(bound.clone())?)));
        let bounds = bounds.collect::<Result<Vec<_>, Fault>>()?;
        let whole = |at: &Range<usize>, number: i32| {
            let reason = format!("{number} is no bound of a range");
            usize::try_from(number).map_err(|_| Fault::new(at.clone(), reason, "begin and end at 0 or above"))
        };
        match bounds.as_slice() {
            [(at, Number::Whole(end))] => Ok((0..whole(at, *end)?).into()),
            [(at, Number::Whole(from)), (end_at, Number::Whole(end))] => {
                Ok((whole(at, *from)?..whole(end_at, *end)?).into())
            }
            [(_, Number::Index(from)), (at, Number::Whole(end))] => Ok(from.to(whole(at, *end)?)),
            [.., (at, _)] => {
                let reason = "a range ends at an index of another loop";
                Err(Fault::new(
                    at.clone(),
                    reason,
                    "begin there instead, as in range(i + 1, 5): all ends are numbers",
                ))
            }
            [] => Ok((0..0).into()),
        }
    }

    fn bound(&self, bound: Pair<'_, Rule>) -> Result<Number<'g>, Fault> {
        if bound.as_rule() != Rule::length {
            return self.number_in_brackets(bound);
        }
        let at = range(&bound);
        let name = bound
            .into_inner()
            .next()
            .map_or(String::new(), |name| name.as_str().trim_matches('`').to_owned());
        let table = self.tables.iter().find(|table| table.name == name);
        let length = match table {
            Some(table) if table.rows > 1 => table.rows,
            Some(table) => table.entries.len(),
            None if self.has_components(&name) => self.scope.components(&name).len(),
            None => {
                let reason = format!("`{name}` is no table, and no field of several components");
                return Err(Fault::new(at, reason, "write a number"));
            }
        };
        Ok(Number::Whole(length as i32))
    }

    /// Reads a number in brackets.
    pub(crate) fn number_in_brackets(&self, number: Pair<'_, Rule>) -> Result<Number<'g>, Fault> {
        let at = range(&number);
        let whole = |text: &str| {
            let wrong = |_| {
                let reason = format!("`{text}` is no offset in cells");
                Fault::new(at.clone(), reason, "write a whole number of 32 bits")
            };
            text.replace(' ', "").parse::<i32>().map_err(wrong)
        };
        if number.as_rule() == Rule::whole {
            return Ok(Number::Whole(whole(number.as_str())?));
        }
        let mut parts = number.into_inner();
        let name = parts.next().map_or("", |name| name.as_str().trim_matches('`'));
        let index = self.indices.iter().find(|(known, _)| known == name);
        let names = || self.indices.iter().map(|(name, _)| name);
        let (_, index) = index.ok_or_else(|| Fault::unknown(at.clone(), "index of a loop", name, names()))?;
        Ok(Number::Index(match parts.next() {
            Some(shift) => index.plus(whole(shift.as_str())?),
            None => *index,
        }))
    }

    /// Returns an entry of a table, which one or two indices or numbers in brackets name.
    pub(crate) fn entry(
        &self,
        table: &Constants,
        at: Range<usize>,
        numbers: &[Number<'g>],
    ) -> Result<Expr<'g>, Fault> {
        let graph = self.scope.graph();
        let axes = if table.rows > 1 { 2 } else { 1 };
        if numbers.len() != axes {
            let reason =
                format!("the table {} is read by {axes}, and {} are given", table.name, numbers.len());
            return Err(Fault::new(at, reason, "write as many indices, as in w[i] or k[i, j]"));
        }
        let index = |number: &Number<'g>| match *number {
            Number::Index(index) => Ok(index),
            Number::Whole(number) => {
                usize::try_from(number).map(|number| graph.index(number)).map_err(|_| {
                    Fault::new(
                        at.clone(),
                        format!("the table {} has no entry {number}", table.name),
                        "count from 0",
                    )
                })
            }
        };
        let own = graph.table_of(table.rows, &table.entries);
        let value = match numbers {
            [column] => own.at(index(column)?),
            [row, column, ..] => own.at_row(index(row)?, index(column)?),
            [] => return Err(Fault::new(at, "the table has no index", "write one")),
        };
        self.checked(at, value)
    }

    /// Returns the component that an index names of a field.
    pub(crate) fn component(
        &self,
        components: Components<'g>,
        at: Range<usize>,
        index: Index<'g>,
    ) -> Result<Expr<'g>, Fault> {
        self.checked(at, components.at(index))
    }

    fn checked(&self, at: Range<usize>, value: Expr<'g>) -> Result<Expr<'g>, Fault> {
        self.scope.graph().fault().map_or(Ok(value), |error| Err(Fault::of(at, error)))
    }

    /// Returns the offset that numbers in brackets are.
    pub(crate) fn offset(&self, place: &Range<usize>, numbers: &[Number<'g>]) -> Result<Vec<i32>, Fault> {
        let axes = self.scope.dimensions();
        if numbers.len() != axes {
            let reason = format!("the offset has {} numbers, the model {axes} axes", numbers.len());
            return Err(Fault::new(place.clone(), reason, "give one for each axis, slowest first"));
        }
        let whole = numbers.iter().map(|number| match *number {
            Number::Whole(number) => Ok(number),
            Number::Index(_) => {
                let reason = "an offset is the index of a loop";
                Err(Fault::new(place.clone(), reason, "write whole numbers"))
            }
        });
        whole.collect()
    }

    /// Returns whether a name is that of a field of several components.
    pub(crate) fn has_components(&self, name: &str) -> bool {
        let first = format!("{name}[0]");
        self.fields.contains(&first)
    }

    /// Returns whether a name means anything.
    fn means(&self, name: &str) -> bool {
        self.is_known(name)
            || self.has_components(name)
            || self.tables.iter().any(|table| table.name == name)
            || self.indices.iter().any(|(index, _)| index == name)
    }
}

fn call_name<'t>(call: &Pair<'t, Rule>) -> &'t str {
    call.as_str().split('(').next().unwrap_or_default().trim()
}

/// Reads the lanes of a tree sum, which stand before what it sums.
fn whole_lanes(lanes: &Pair<'_, Rule>) -> Result<usize, Fault> {
    let text = lanes.as_str().trim();
    text.parse().map_err(|_| {
        let reason = format!("`{text}` is no number of lanes");
        Fault::new(
            range(lanes),
            reason,
            "write a power of two up to 32, as in tree_sum(8, x[i] for i in range(53))",
        )
    })
}
