//! Formulas with their loops as text: loops of kernels, tables in memory, and components that an index reads.

mod lanes;
mod rows;

use abide_core::DType;
use abide_core::expr::{Id, Item, Loop, Looped, Node, Place, Rows, Store, Tap, Term};
use abide_core::plan::{PlacedTable, Placement};

use crate::emit::{Formula, Language, value};
use crate::text::Text;
use rows::Row;

/// Terms of an innermost loop's turns that are written out together, at the most: loads of the next turns do not wait for
/// this one's, but they take registers.
const TERMS_TOGETHER: usize = 48;

/// Turns of an innermost loop that are written out together, at the most.
const TURNS_TOGETHER: usize = 4;

/// What goes through loops together.
#[derive(Clone, Copy)]
pub(crate) struct Joint {
    /// The most turns of a loop that go through loops within it.
    pub rows: usize,
    /// The threads that share the loops of a point.
    pub team: usize,
}

/// How a kernel reads old values, and stores new ones in loops.
pub(crate) struct Reads<'a, T, C> {
    /// Returns the text of a tap.
    pub tap: T,
    /// Returns the text of the component at an index, given as text, of the components that begin with a tap; of those
    /// between two numbers. `None` where a kernel cannot index them: they are copied to a local array then.
    pub component: C,
    /// Returns the text that stores a value, given as text, as the output at an index, given as text, behind another output.
    pub store: &'a dyn Fn(usize, &str, &str) -> String,
}

/// Returns the name of a table of a stage.
fn table_name(stage: usize, table: usize) -> String {
    format!("stage_{stage}_table_{table}")
}

/// Writes the tables of a stage's formula where the plan has them. Those that a block loads into shared memory come from
/// device memory. In WGSL all lie where the compiler has them.
pub(crate) fn tables(
    text: &mut Text,
    language: &dyn Language,
    dtype: DType,
    stage: usize,
    looped: &Looped,
    placed: &[PlacedTable],
) {
    for number in used(looped) {
        let (len, entries) = entries(language, dtype, looped, number);
        let name = table_name(stage, number);
        let qualifier = match place(placed, number) {
            Placement::Constant => "__constant__",
            _ => "__device__ const",
        };
        text.push(language.own(
            &format!("{qualifier} real {name}[{len}] = {{{entries}}};"),
            &format!("var<private> {name}: array<real, {len}> = array<real, {len}>({entries});"),
        ));
    }
}

/// Returns the number of a table's entries, and their text.
fn entries(language: &dyn Language, dtype: DType, looped: &Looped, number: usize) -> (usize, String) {
    let bits = &looped.tables[number].bits;
    let entries: Vec<String> =
        bits.iter().map(|&bits| language.literal(dtype, f64::from_bits(bits))).collect();
    (entries.len(), entries.join(", "))
}

/// Returns the statements of C that begin a function whose formula reads these tables, as those of stage 0.
pub(crate) fn own_tables(language: &dyn Language, dtype: DType, looped: &Looped) -> Vec<String> {
    let table = |number: usize| {
        let (len, entries) = entries(language, dtype, looped, number);
        format!("static const real {}[{len}] = {{{entries}}};", table_name(0, number))
    };
    used(looped).into_iter().map(table).collect()
}

/// Returns how a formula reads each of its tables, by their numbers.
pub(crate) fn table_texts(stage: usize, looped: &Looped, placed: &[PlacedTable]) -> Vec<TableText> {
    let starts = starts(placed);
    let of = |number: usize| match place(placed, number) {
        Placement::Shared => TableText { name: "shared_values()".to_owned(), first: starts[number] },
        _ => TableText { name: table_name(stage, number), first: 0 },
    };
    (0..looped.tables.len()).map(of).collect()
}

/// How a formula reads a table: the array, and the place of the table's first entry in it.
pub(crate) struct TableText {
    name: String,
    first: usize,
}

fn place(placed: &[PlacedTable], number: usize) -> Placement {
    placed.get(number).map_or(Placement::Memory, |table| table.place)
}

/// Returns the entries of tables in shared memory before each table.
fn starts(placed: &[PlacedTable]) -> Vec<usize> {
    let mut all = 0;
    let start = |table: &PlacedTable| {
        let own = all;
        all += if table.place == Placement::Shared { table.entries } else { 0 };
        own
    };
    placed.iter().map(start).collect()
}

/// Returns the statements that load a stage's tables into shared memory.
pub(crate) fn loads(stage: usize, placed: &[PlacedTable]) -> Vec<String> {
    let all = placed.iter().zip(starts(placed)).enumerate();
    let shared = all.filter(|(_, (table, _))| table.place == Placement::Shared && table.entries > 0);
    let load = |(number, (table, first)): (usize, (&PlacedTable, usize))| {
        format!("load_table<{}>(to + {first}, {});", table.entries, table_name(stage, number))
    };
    shared.map(load).collect()
}

/// Returns the tables that the formula reads, by their numbers.
fn used(looped: &Looped) -> Vec<usize> {
    let is_read = |number: &usize| {
        looped.terms.iter().any(|term| matches!(term, Term::Entry(t, _) if usize::from(*t) == *number))
    };
    (0..looped.tables.len()).filter(is_read).collect()
}

/// Writes the formula of a stage in a language, its loops as loops. The outputs are those that no loop stores.
pub(crate) fn formula<T, C>(
    looped: &Looped,
    language: &dyn Language,
    dtype: DType,
    tables: &[TableText],
    Joint { rows: most_rows, team }: Joint,
    mut reads: Reads<'_, T, C>,
) -> Formula
where
    T: FnMut(Tap) -> String,
    C: FnMut(Tap, [i64; 2], &str) -> Option<String>,
{
    let mut statements = Vec::new();
    let mut arrays = Vec::new();
    let components = looped.components();
    for &(first, [low, high]) in &components {
        if (reads.component)(first, [low, high], "0").is_some() {
            continue;
        }
        let (name, len) = (format!("components_{}", arrays.len()), high - low + 1);
        let c = format!("{} {name}[{len}];", language.real(dtype));
        statements.push(language.own(&c, &format!("var {name}: array<real, {len}>;")).to_owned());
        for number in low..=high {
            let tap = Tap { field: first.field + number as u16, ..first };
            statements.push(format!("{name}[{}] = {};", number - low, (reads.tap)(tap)));
        }
        arrays.push((first, low));
    }
    let names = (0..looped.terms.len()).map(|id| format!("v{id}")).collect();
    let rows_of = |number: usize| looped.rows(number as u16).filter(|_| most_rows > 1);
    let grouped: Vec<Option<Rows>> = (0..looped.loops.len()).map(rows_of).collect();
    let mut writer = Writer {
        looped,
        language,
        dtype,
        tables,
        reads,
        components,
        arrays,
        names,
        statements,
        most_rows,
        grouped: &grouped,
        row: Vec::new(),
        team,
        shared: if team > 1 { looped.shared(team) } else { vec![false; looped.loops.len()] },
        is_shared_around: false,
    };
    writer.items(&looped.body);
    let outputs = looped.outputs.iter().map(|&id| writer.names[id as usize].clone()).collect();
    Formula { statements: writer.statements, outputs, places: Vec::new() }
}

struct Writer<'a, T, C> {
    looped: &'a Looped,
    language: &'a dyn Language,
    dtype: DType,
    tables: &'a [TableText],
    reads: Reads<'a, T, C>,
    /// The components that loops read, and the least and the greatest number of each.
    components: Vec<(Tap, [i64; 2])>,
    /// The components that were copied: the first, and the number of the array's first.
    arrays: Vec<(Tap, i64)>,
    names: Vec<String>,
    statements: Vec<String>,
    /// The most turns of a loop that go through loops within it together.
    most_rows: usize,
    /// Of each loop, how its turns do.
    grouped: &'a [Option<Rows>],
    /// The rows that are being written, those of outer loops first.
    row: Vec<Row<'a>>,
    /// The threads that share the loops of a point.
    team: usize,
    /// Of each loop, whether they share its turns.
    shared: Vec<bool>,
    /// Whether the loop that is being written, or one around it, is shared.
    is_shared_around: bool,
}

impl<T, C> Writer<'_, T, C>
where
    T: FnMut(Tap) -> String,
    C: FnMut(Tap, [i64; 2], &str) -> Option<String>,
{
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match *item {
                Item::Term(id) => self.term(id),
                Item::Loop(number) => self.turns(number),
                Item::Store(number) => self.store(number),
            }
        }
    }

    /// Writes what a turn stores.
    fn store(&mut self, number: u16) {
        let Store { first, columns, places: [row, column], value } = self.looped.stores[usize::from(number)];
        let column = self.index(column, 0);
        let at = match row {
            Place { of: None, offset: 0 } => column,
            _ => format!("({}) * {columns} + {column}", self.index(row, 0)),
        };
        let text = (self.reads.store)(first, &at, &self.names[value as usize]);
        // All threads of a team have what a turn stores that they go through together.
        let is_alone = self.team == 1 || self.is_shared_around;
        self.statements.push(if is_alone { text } else { format!("if (lane_of_team() == 0) {text}") });
    }

    fn term(&mut self, id: Id) {
        let (looped, language, dtype) = (self.looped, self.language, self.dtype);
        let text = match looped.terms[id as usize] {
            Term::Node(Node::Const(c)) => {
                self.names[id as usize] = language.literal(dtype, c.value());
                return;
            }
            Term::Carried(number, k) | Term::Result(number, k) => {
                self.names[id as usize] = self.carried(number, usize::from(k));
                return;
            }
            Term::Node(node) => {
                let names = &self.names;
                let at = |id: Id| names[id as usize].as_str();
                let comparison = |id: Id| match looped.terms[id as usize] {
                    Term::Node(Node::Binary(op, a, b)) => {
                        op.relation().map(|sign| format!("{} {sign} {}", at(a), at(b)))
                    }
                    _ => None,
                };
                value(node, &at, comparison, language, dtype, &mut self.reads.tap)
            }
            Term::Entry(table, [row, column]) => {
                let columns = looped.tables[usize::from(table)].columns;
                let TableText { name, first } = &self.tables[usize::from(table)];
                let row = match row {
                    Place { of: None, offset } => {
                        (*first as i64 + i64::from(offset) * columns as i64).to_string()
                    }
                    _ if *first == 0 => format!("({}) * {columns}", self.index(row, 0)),
                    _ => format!("{first} + ({}) * {columns}", self.index(row, 0)),
                };
                let at = if row == "0" {
                    self.index(column, 0)
                } else {
                    format!("{row} + {}", self.index(column, 0))
                };
                format!("{name}[{at}]")
            }
            Term::Component(first, place) => {
                match self.arrays.iter().position(|(known, _)| *known == first) {
                    Some(array) => {
                        let low = self.arrays[array].1;
                        format!("components_{array}[{}]", self.index(place, -low))
                    }
                    None => {
                        // What can be indexed was asked for before.
                        let reach = self.components.iter().find(|(known, _)| *known == first);
                        let reach = reach.map_or([0; 2], |(_, reach)| *reach);
                        let at = self.index(place, 0);
                        (self.reads.component)(first, reach, &at).unwrap_or_default()
                    }
                }
            }
            Term::Index(place) => format!("real({})", self.index(place, 0)),
        };
        let statement = language.declare(dtype, &self.names[id as usize], &text);
        self.statements.push(format!("{statement};"));
    }

    /// Writes a loop. All that it carries is made anew of the values before the turn, and only then replaced.
    fn turns(&mut self, number: u16) {
        let looped = self.looped;
        let Loop { turns, carried: all, .. } = &looped.loops[usize::from(number)];
        if self.shared[usize::from(number)] {
            return self.by_team(number);
        }
        if turns.lanes() > 1 {
            return self.lane_by_lane(number);
        }
        self.starts(number, all);
        match &self.grouped[usize::from(number)] {
            Some(rows) => self.grouped(number, rows),
            None => self.each_turn(number, None),
        }
    }

    /// Returns how many turns of a loop are written out together.
    fn turns_together(&self, body: &[Item]) -> usize {
        let is_innermost = !body.iter().any(|item| matches!(item, Item::Loop(_)));
        let together = (TERMS_TOGETHER / body.len().max(1)).clamp(1, TURNS_TOGETHER);
        if is_innermost { together } else { 1 }
    }

    /// Replaces what a loop carries by what a turn has made of it.
    fn replace(&mut self, number: u16) {
        let looped = self.looped;
        // A value that is another carried one before the turn must not see it replaced.
        let is_carried =
            |id: Id| matches!(looped.terms[id as usize], Term::Carried(other, _) if other == number);
        let mut next = Vec::new();
        for (k, one) in looped.loops[usize::from(number)].carried.iter().enumerate() {
            let mut name = self.names[one.next as usize].clone();
            let own = self.carried(number, k);
            if name == own {
                continue;
            }
            if is_carried(one.next) {
                let kept = format!("next_{}", &own[1..]);
                self.statements.push(format!("{};", self.language.declare(self.dtype, &kept, &name)));
                name = kept;
            }
            next.push(format!("{own} = {name};"));
        }
        self.statements.extend(next);
    }

    /// Returns the name of a value that a loop carries.
    fn carried(&self, number: u16, k: usize) -> String {
        let own = self.row.last().and_then(|row| row.suffix(number)).unwrap_or_default();
        format!("c{number}_{k}{own}")
    }

    /// Returns the text of an index, plus a number, in the row that is being written.
    fn index(&self, place: Place, plus: i64) -> String {
        index(place, plus + self.row.iter().map(|row| row.plus(place)).sum::<i64>())
    }
}

fn counter(number: u16) -> String {
    format!("i{number}")
}

/// Returns the text of an index, plus a number.
fn index(place: Place, plus: i64) -> String {
    let offset = i64::from(place.offset) + plus;
    match (place.of, offset) {
        (None, _) => offset.to_string(),
        (Some(number), 0) => counter(number),
        (Some(number), 1..) => format!("{} + {offset}", counter(number)),
        (Some(number), _) => format!("{} - {}", counter(number), -offset),
    }
}
