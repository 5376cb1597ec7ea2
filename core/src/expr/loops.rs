//! Loops in formulas: the same body for each turn of an index, with values that are carried from turn to turn, and
//! components and constant tables that the index reads.
//!
//! A loop's meaning is its turns one after another, the index ascending: what is carried starts at given values, and each
//! turn makes the next ones of those before it. [`Graph::sum`] starts at −0, to which any first term is added without a
//! change, [`Graph::product`] at 1, [`Graph::least`] at ∞ and [`Graph::greatest`] at −∞. Only [`Graph::tree_sum`] is defined
//! otherwise, as a tree of partial sums. The number of turns is known when the formula is built. How a loop becomes text is a plan's choice and changes no bit: each turn written out
//! ([`Dag`](super::Dag)), or a loop ([`Looped`](super::Looped)).

use std::ops::Range;

use super::{Binary, Expr, Graph, Id, IntoExpr, Node, Tap};
use crate::error::Error;

/// The number of a loop in its formula.
pub type LoopId = u16;

/// The most loops within loops.
pub const MAX_NESTED: usize = 4;

/// The most turns of a loop, times those of the loops around it: every turn is written out for backends that keep no
/// loops.
pub const MAX_TURNS: usize = 1 << 16;

/// The most loops of a formula.
pub const MAX_LOOPS: usize = 1 << 12;

/// The most entries of a table: 512 rows and columns.
pub const MAX_ENTRIES: usize = 1 << 18;

/// A number that a loop's index gives, plus a constant; without a loop the constant alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The loop.
    pub of: Option<LoopId>,
    /// What is added to its index.
    pub offset: i32,
}

/// The turns of a loop: the index goes from one place to before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turns {
    /// The first index.
    pub from: Place,
    /// One more than the last index; no turns where it is not above the first.
    pub to: i32,
    /// The lanes of a tree sum; 1 of turns one after another.
    pub(super) lanes: u8,
}

impl From<Range<usize>> for Turns {
    fn from(range: Range<usize>) -> Turns {
        let number = |n: usize| n.min(i32::MAX as usize) as i32;
        Turns { from: Place { of: None, offset: number(range.start) }, to: number(range.end), lanes: 1 }
    }
}

/// A value of a formula with loops; operands are numbers of earlier terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    /// An operation.
    Node(Node),
    /// The entry of a table, by its number, in a row and a column; a table of one axis has one row.
    Entry(u16, [Place; 2]),
    /// An old value of a field of several components: the tap of the first, and which one.
    Component(Tap, Place),
    /// An index as a number.
    Index(Place),
    /// The value of this number that a loop carries, before the turn.
    Carried(LoopId, u16),
    /// The value of this number that a loop carries, after its last turn.
    Result(LoopId, u16),
}

/// A constant table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entries {
    /// The number of columns; a multiple of it is the number of entries.
    pub columns: usize,
    /// The entries' bits as f64, row by row.
    pub bits: Vec<u64>,
}

impl Entries {
    /// Returns the entry of a row and a column; NaN beyond the table, which no formula that was built reads.
    pub fn at(&self, row: i64, column: i64) -> f64 {
        let at = row * self.columns as i64 + column;
        let bits = usize::try_from(at).ok().and_then(|at| self.bits.get(at));
        bits.map_or(f64::NAN, |&bits| f64::from_bits(bits))
    }
}

/// A loop as it is built.
#[derive(Debug, Clone)]
pub(super) struct Built {
    pub turns: Turns,
    /// The least and the greatest index.
    pub reach: [i64; 2],
    /// The most turns, times those of the loops around it.
    pub count: usize,
    /// The loop around it, and how many there are.
    pub parent: Option<LoopId>,
    pub depth: usize,
    /// Where each carried value starts, and what it is next.
    pub carried: Vec<[Id; 2]>,
}

/// The index of a loop, within its body.
#[derive(Clone, Copy)]
pub struct Index<'g> {
    graph: &'g Graph,
    place: Place,
}

impl<'g> Index<'g> {
    /// Returns the index plus a constant, to read a component or an entry beside it.
    pub fn plus(self, offset: i32) -> Index<'g> {
        let offset = self.place.offset.saturating_add(offset);
        Index { place: Place { offset, ..self.place }, ..self }
    }

    /// Returns the turns from this index to before a number, as of the upper triangle of a table.
    pub fn to(self, end: usize) -> Turns {
        Turns { from: self.place, to: end.min(i32::MAX as usize) as i32, lanes: 1 }
    }

    /// Returns the number that the index is; `None` if it is a loop's.
    pub fn number(self) -> Option<usize> {
        match self.place.of {
            Some(_) => None,
            None => usize::try_from(self.place.offset).ok(),
        }
    }

    pub(super) fn place(self) -> Place {
        self.place
    }

    /// Returns the index as a number.
    pub fn value(self) -> Expr<'g> {
        match self.place.of {
            Some(_) => self.graph.put(Term::Index(self.place)),
            None => self.graph.constant(f64::from(self.place.offset)),
        }
    }
}

/// A constant table of a formula.
#[derive(Clone, Copy)]
pub struct Table<'g> {
    graph: &'g Graph,
    number: u16,
}

impl<'g> Table<'g> {
    /// Returns the entry at an index of a table of one axis.
    pub fn at(self, column: Index<'g>) -> Expr<'g> {
        let row = Index { graph: self.graph, place: Place { of: None, offset: 0 } };
        self.entry([row, column], 1)
    }

    /// Returns the entry in a row and a column of a table of two axes.
    pub fn at_row(self, row: Index<'g>, column: Index<'g>) -> Expr<'g> {
        self.entry([row, column], 2)
    }

    /// Returns the entry at as many indices as the table has axes.
    fn entry(self, indices: [Index<'g>; 2], axes: usize) -> Expr<'g> {
        let graph = self.graph;
        let Some((rows, columns)) = graph.extents(self.number) else { return graph.constant(f64::NAN) };
        if axes == 1 && rows > 1 {
            let reason = format!("it has {rows} rows, and is read by one index");
            graph.fail(Error::invalid("table", reason, "give the row and the column"));
            return graph.constant(f64::NAN);
        }
        let is_in = graph.is_in("rows of a table", indices[0].place, rows)
            && graph.is_in("entries of a table's row", indices[1].place, columns);
        let places = indices.map(|index| index.place);
        if is_in && places.iter().any(|place| place.of.is_some()) {
            return graph.put(Term::Entry(self.number, places));
        }
        let [row, column] = places.map(|place| i64::from(place.offset));
        let entry = graph.nodes.borrow().tables[usize::from(self.number)].at(row, column);
        graph.constant(if is_in { entry } else { f64::NAN })
    }
}

/// The components of a field at an offset from the cell, to be read by the index of a loop.
#[derive(Clone, Copy)]
pub struct Components<'g> {
    graph: &'g Graph,
    first: Tap,
    count: usize,
}

impl<'g> Components<'g> {
    /// Returns the number of components.
    pub fn len(self) -> usize {
        self.count
    }

    /// Returns whether there are no components; a field has one at least.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Returns the graph of the formula.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Returns the old value of the component at an index.
    pub fn at(self, index: Index<'g>) -> Expr<'g> {
        let Place { of, offset } = index.place;
        if !self.graph.is_in("components of a field", index.place, self.count) {
            return self.graph.constant(f64::NAN);
        }
        match of {
            Some(_) => self.graph.put(Term::Component(self.first, index.place)),
            // Within the components, so that the number is that of a field.
            None => self.graph.add(Node::Tap(Tap { field: self.first.field + offset as u16, ..self.first })),
        }
    }
}

impl Graph {
    /// Returns the handle of `count` fields that follow each other, of which the first is tapped so.
    pub fn components(&self, first: Tap, count: usize) -> Components<'_> {
        Components { graph: self, first, count }
    }

    /// Returns a number as an index, beside those of loops.
    pub fn index(&self, number: usize) -> Index<'_> {
        let offset = number.min(i32::MAX as usize) as i32;
        Index { graph: self, place: Place { of: None, offset } }
    }

    /// Returns a table of one axis.
    pub fn table(&self, entries: &[f64]) -> Table<'_> {
        self.table_of(1, entries)
    }

    /// Returns a table of two axes, whose entries stand row by row.
    pub fn table_of(&self, rows: usize, entries: &[f64]) -> Table<'_> {
        let (rows, mut number) = (rows.max(1), 0);
        if let Some(other) = entries.iter().find(|entry| !entry.is_finite()) {
            self.fail(Error::limit("entry of a table", other, "a finite number", "correct the table"));
        } else if entries.is_empty() || !entries.len().is_multiple_of(rows) || entries.len() > MAX_ENTRIES {
            let asked = format!("{} in {rows} rows", entries.len());
            let limit = format!("1 to {MAX_ENTRIES}, as many in each row");
            self.fail(Error::limit("entries of a table", asked, limit, "correct the table"));
        } else {
            let bits = entries.iter().map(|entry| entry.to_bits()).collect();
            let table = Entries { columns: entries.len() / rows, bits };
            let nodes = &mut *self.nodes.borrow_mut();
            number = nodes.tables.iter().position(|known| *known == table).unwrap_or(nodes.tables.len());
            if number == nodes.tables.len() {
                nodes.tables.push(table);
            }
        }
        if number > usize::from(u16::MAX) {
            let limit = u16::MAX;
            self.fail(Error::limit("tables of a formula", number, limit, "put several in one, as rows"));
        }
        Table { graph: self, number: number as u16 }
    }

    /// Returns what is carried through the turns of a loop: `starts` before the first, and after each what `body` makes of
    /// the index and the values before the turn. All of a turn's values are made of those before it.
    pub fn repeat<'g, const K: usize>(
        &'g self,
        turns: impl Into<Turns>,
        starts: [Expr<'g>; K],
        body: impl FnOnce(Index<'g>, [Expr<'g>; K]) -> [Expr<'g>; K],
    ) -> [Expr<'g>; K] {
        let Some(number) = self.open(turns.into()) else { return starts };
        let index = Index { graph: self, place: Place { of: Some(number), offset: 0 } };
        let next = body(index, std::array::from_fn(|k| self.put(Term::Carried(number, k as u16))));
        let carried = std::array::from_fn::<_, K, _>(|k| [starts[k], next[k]].map(|value| self.inner(value)));
        {
            let nodes = &mut *self.nodes.borrow_mut();
            let built = &mut nodes.loops[usize::from(number)];
            built.carried = carried.to_vec();
            nodes.open = built.parent;
        }
        std::array::from_fn(|k| self.put(Term::Result(number, k as u16)))
    }

    /// Returns one value that is carried through the turns of a loop.
    pub fn fold<'g>(
        &'g self,
        turns: impl Into<Turns>,
        start: impl IntoExpr<'g>,
        body: impl FnOnce(Index<'g>, Expr<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        let start = start.beside(self.constant(0.0));
        let [value] = self.repeat(turns, [start], |i, [value]| [body(i, value)]);
        value
    }

    /// Returns a sum: the terms of ascending indices are added to −0.
    pub fn sum<'g>(&'g self, turns: impl Into<Turns>, term: impl FnOnce(Index<'g>) -> Expr<'g>) -> Expr<'g> {
        self.tree_sum(1, turns, term)
    }

    /// Returns a sum of products, each one fused multiply-add onto the sum before it, from −0.
    pub fn sum_of_products<'g>(
        &'g self,
        turns: impl Into<Turns>,
        factors: impl FnOnce(Index<'g>) -> [Expr<'g>; 2],
    ) -> Expr<'g> {
        self.tree_sum_of_products(1, turns, factors)
    }

    /// Returns a product: 1 is multiplied by the factors of ascending indices.
    pub fn product<'g>(
        &'g self,
        turns: impl Into<Turns>,
        factor: impl FnOnce(Index<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        self.fold(turns, 1.0, |i, product| product * factor(i))
    }

    /// Returns the least of terms of ascending indices, as [`Expr::min`] from ∞ on.
    pub fn least<'g>(
        &'g self,
        turns: impl Into<Turns>,
        term: impl FnOnce(Index<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        self.fold(turns, f64::INFINITY, |i, least| self.binary_of(Binary::Min, least, term(i)))
    }

    /// Returns the greatest of terms of ascending indices, as [`Expr::max`] from −∞ on.
    pub fn greatest<'g>(
        &'g self,
        turns: impl Into<Turns>,
        term: impl FnOnce(Index<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        self.fold(turns, f64::NEG_INFINITY, |i, greatest| self.binary_of(Binary::Max, greatest, term(i)))
    }

    /// Returns the value of an iteration of at most `turns` turns that ends where `is_done` is not zero: a cell that is
    /// done keeps its value by selection through the turns that are left, so that no cell's bits depend on another's.
    pub fn converge<'g>(
        &'g self,
        turns: usize,
        start: Expr<'g>,
        step: impl FnOnce(Expr<'g>) -> Expr<'g>,
        is_done: impl FnOnce(Expr<'g>, Expr<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        let [value, _] = self.repeat(0..turns, [start, self.constant(0.0)], |_, [value, done]| {
            let next = step(value);
            let now = is_done(value, next);
            [done.select(value, next), done.select(1.0, now)]
        });
        value
    }

    fn binary_of<'g>(&'g self, op: Binary, a: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
        self.computed(Node::Binary(op, a.id(), b.id()))
    }

    /// Returns the number of a value that is seen where a formula is being built; of NaN for one that is not, which the
    /// formula's error names.
    pub(super) fn inner(&self, value: Expr<'_>) -> Id {
        match std::ptr::eq(value.graph(), self) && self.is_seen(value.id()) {
            true => value.id(),
            false => {
                self.fail(leaked());
                self.constant(f64::NAN).id()
            }
        }
    }

    /// Begins a loop within the one that is being built; `None` if it cannot be.
    fn open(&self, turns: Turns) -> Option<LoopId> {
        let nodes = &mut *self.nodes.borrow_mut();
        let refuse = |nodes: &mut super::Nodes, error| {
            nodes.fault.get_or_insert(error);
            None
        };
        let parent = nodes.open;
        let around = parent.map(|parent| nodes.loops[usize::from(parent)].clone());
        let (depth, outer) = around.as_ref().map_or((0, 1), |around| (around.depth + 1, around.count));
        let Some(from) = nodes.reach(turns.from) else { return refuse(nodes, leaked()) };
        let reach = [from[0], i64::from(turns.to) - 1];
        let most = usize::try_from(i64::from(turns.to) - from[0]).unwrap_or(0);
        let count = outer.saturating_mul(most.max(1));
        if depth >= MAX_NESTED {
            let change = "write the inner loops out";
            return refuse(nodes, Error::limit("loops within loops", depth + 1, MAX_NESTED, change));
        }
        if count > MAX_TURNS {
            let change = "choose fewer turns, or keep partial results in fields";
            return refuse(
                nodes,
                Error::limit("turns of a loop times those around it", count, MAX_TURNS, change),
            );
        }
        if nodes.loops.len() >= MAX_LOOPS {
            let change = "put what several loops do into one";
            return refuse(nodes, Error::limit("loops of a formula", nodes.loops.len(), MAX_LOOPS, change));
        }
        nodes.loops.push(Built { turns, reach, count, parent, depth, carried: Vec::new() });
        let number = (nodes.loops.len() - 1) as LoopId;
        nodes.open = Some(number);
        Some(number)
    }

    /// Checks that a place is below a count for every turn.
    fn is_in(&self, what: &str, place: Place, count: usize) -> bool {
        let reach = self.nodes.borrow().reach(place);
        let Some([low, high]) = reach else {
            self.fail(leaked());
            return false;
        };
        // A loop without turns reads nothing.
        if low <= high && (low < 0 || high >= count as i64) {
            let far = if low < 0 { low } else { high };
            let limit = format!("0 to {}", count - 1);
            self.fail(Error::limit(format!("index of the {what}"), far, limit, "choose other turns"));
            return false;
        }
        true
    }

    /// Returns the rows and columns of a table.
    fn extents(&self, table: u16) -> Option<(usize, usize)> {
        let nodes = self.nodes.borrow();
        let table = nodes.tables.get(usize::from(table))?;
        Some((table.bits.len() / table.columns, table.columns))
    }
}

pub(super) fn leaked() -> Error {
    Error::invalid(
        "loop in a formula",
        "an index or a value of its turns is used outside of it",
        "carry what is needed outside, as the loop's result",
    )
}
