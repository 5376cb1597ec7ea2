//! The stages of a model file.

use std::cell::RefCell;

use abide_core::Scope;
use abide_core::domain::axis_name;
use abide_core::expr::Expr;
use abide_core::program::{Centring, Definition, Matrix, Region, Solve};

use crate::document::{Entry, Item, Table};
use crate::fault::Fault;
use crate::formula::{self, Meaning};
use crate::loops::Constants;
use crate::parts::{centring, check_at};

/// The keys of a stage that are no names of values.
pub(crate) const WORDS: [&str; 5] = ["name", "where", "over", "points", "every"];

/// The names that every stage knows.
#[derive(Clone, Copy)]
struct Known<'a> {
    fields: &'a [String],
    scalars: &'a [String],
    tables: &'a [Constants],
    /// Where the stage's values stand, unless they are scalars alone.
    on: Option<Centring>,
}

impl<'a> Known<'a> {
    fn meaning<'b, 'g>(self, scope: &'b Scope<'g>, locals: &'b [(String, Expr<'g>)]) -> Meaning<'b, 'g>
    where
        'a: 'b,
    {
        let Known { fields, scalars, tables, on } = self;
        Meaning { scope, fields, scalars, locals, tables, indices: &[], on }
    }
}

/// Adds a stage to a step of the cycle. All formulas whose names are fields or temporaries make one stage; each
/// formula of a scalar makes a stage of its own; any other name is local, for the formulas behind it.
pub(crate) fn add(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    default: &str,
    tables: &[Constants],
) -> Result<(), Fault> {
    let dimensions = p.dimensions();
    let (fields, scalars) = (p.fields().to_vec(), p.scalars().to_vec());
    let is_word = |key: &str| !fields.iter().chain(&scalars).any(|name| name == key);
    if let Some(stages) = table.get("stages").filter(|stages| is_word("stages") && stages.is_array()) {
        return repeat(p, step, table, stages, default, tables);
    }
    if let Some(unknown) = table.get("solve").filter(|_| is_word("solve")) {
        let known = Known { fields: &fields, scalars: &scalars, tables, on: None };
        return solve(p, step, table, unknown, known);
    }
    let known = Known { fields: &fields, scalars: &scalars, tables, on: None };
    if let Some(matrix) = table.get("transform").filter(|_| is_word("transform")) {
        return transform(p, step, table, matrix, known);
    }
    let formulas: Vec<Entry<'_>> = table.entries().filter(|entry| !WORDS.contains(&entry.key)).collect();
    for entry in &formulas {
        entry.item.string()?;
        if p.is_parameter(entry.key) {
            let reason = format!("{} is a parameter, which the run sets", entry.key);
            return Err(Fault::new(
                entry.at.clone(),
                reason,
                "make it a scalar, or give it a formula as `vary`",
            ));
        }
    }
    let names = |known: &[String], key: &str| known.iter().any(|name| name == key);
    let sets_fields = formulas.iter().find(|entry| names(&fields, entry.key));
    let sets_scalars = formulas.iter().find(|entry| names(&scalars, entry.key));
    match (sets_fields, sets_scalars) {
        (Some(_), Some(scalar)) => {
            let reason = format!("the stage sets fields, and the scalar {}", scalar.key);
            Err(Fault::new(scalar.at.clone(), reason, "write a stage for each"))
        }
        (None, None) => {
            let reason = "the stage sets no field and no scalar";
            Err(Fault::new(table.at(), reason, "name a field's new value, as in u = \"u + 0.1*v\""))
        }
        (Some(first), None) => {
            let known = Known { on: p.on(first.key), ..known };
            update(p, step, table, &formulas, known, default)
        }
        (None, Some(_)) => {
            for key in ["where", "points", "name"] {
                if let Some(item) = table.get(key) {
                    let reason = format!("a stage of scalars has no `{key}`");
                    return Err(Fault::new(item.at(), reason, "leave it out"));
                }
            }
            let over =
                table.get("over").map_or(Ok(Centring::CELL.into()), |item| region(item, dimensions))?;
            let every = table.get("every").map_or(Ok(1), Item::whole)?;
            let is_reduced = |entry: &Entry<'_>| {
                let formula = entry.item.string().map(formula::reduced);
                matches!(formula, Ok(Ok(Some(_))))
            };
            if let Some(item) = table.get("every")
                && !formulas.iter().any(is_reduced)
            {
                let reason =
                    "the stage reduces nothing, and `every` says in how many steps that is done once";
                return Err(Fault::new(item.at(), reason, "leave it out"));
            }
            for (number, entry) in formulas.iter().enumerate().filter(|(_, entry)| names(&scalars, entry.key))
            {
                let before = formulas[..number].iter().filter(|entry| !names(&scalars, entry.key));
                let before: Vec<Entry<'_>> = before.cloned().collect();
                let known = Known { on: is_reduced(entry).then_some(over.centring), ..known };
                scalar(p, step, entry, &before, known, (over, every))?;
            }
            Ok(())
        }
    }
}

/// Adds a loop: its stages, how often they are carried out at most, and the condition that ends it.
fn repeat(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    stages: Item<'_>,
    default: &str,
    tables: &[Constants],
) -> Result<(), Fault> {
    table.only("key of a loop", &["repeat", "until", "once", "stages"])?;
    if let Some(once) = table.get("once") {
        let wrong = |reason: &str| Fault::new(once.at(), reason, "write once = true alone, or repeat = 100");
        if once.truth() != Some(true) {
            return Err(wrong("it is not true"));
        }
        if table.get("repeat").or(table.get("until")).is_some() {
            return Err(wrong("stages that are carried out once are not repeated"));
        }
        p.begin_once(step);
        return turns(p, step, table, stages, default, tables);
    }
    let Some(most) = table.get("repeat") else {
        let change = "add repeat = 100, the most turns";
        return Err(Fault::new(
            table.at(),
            "it has stages, and does not say how often they are repeated",
            change,
        ));
    };
    let until = table.get("until").map(Item::string).transpose()?;
    p.begin_loop(step, most.whole()?, until);
    turns(p, step, table, stages, default, tables)
}

/// Adds the stages of the loop that was begun, and ends it.
fn turns(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    stages: Item<'_>,
    default: &str,
    tables: &[Constants],
) -> Result<(), Fault> {
    for (number, stage) in stages.array()?.into_iter().enumerate() {
        add(p, step, stage.table()?, &format!("{default}.{}", number + 1), tables)?;
    }
    p.end_loop();
    check_at(p, table.at())
}

/// Adds the stages that solve a linear system.
fn solve(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    unknown: Item<'_>,
    known: Known<'_>,
) -> Result<(), Fault> {
    table
        .only("key of a solve", &["solve", "operator", "rhs", "method", "tolerance", "most", "null_space"])?;
    let formula = |key: &str| {
        let missing = || {
            let change = "write operator = \"...\", a formula linear in the unknown, and rhs = \"...\"";
            Fault::new(table.at(), format!("the solve has no `{key}`"), change)
        };
        let item = table.get(key).ok_or_else(missing)?;
        item.string().map(|_| item)
    };
    let (operator, rhs) = (formula("operator")?, formula("rhs")?);
    let mut how = Solve::default();
    if let Some(method) = table.get("method") {
        how.method = method.string()?.parse().map_err(|error| Fault::of(method.at(), error))?;
    }
    how.tolerance = table.get("tolerance").map_or(Ok(how.tolerance), Item::number)?;
    how.most = table.get("most").map_or(Ok(how.most), Item::whole)?;
    if let Some(item) = table.get("null_space") {
        let wrong = || Fault::new(item.at(), "it is neither true nor false", "write null_space = true");
        how.null_space = item.truth().ok_or_else(wrong)?;
    }
    let unknown = unknown.string()?;
    let known = Known { on: p.on(unknown), ..known };
    let fault = RefCell::new(None);
    fn value<'g>(
        scope: &Scope<'g>,
        item: Item<'_>,
        known: Known<'_>,
        fault: &RefCell<Option<Fault>>,
    ) -> Expr<'g> {
        read(item, scope, known, &[]).unwrap_or_else(|found| {
            fault.borrow_mut().get_or_insert(found);
            scope.constant(0.0)
        })
    }
    p.extend(step).solve(unknown, &how, &|scope| value(scope, operator, known, &fault), &|scope| {
        value(scope, rhs, known, &fault)
    });
    match fault.into_inner() {
        Some(fault) => Err(fault),
        None => check_at(p, table.at()),
    }
}

/// The keys of a transform that are no names of values.
pub(crate) const WORDS_OF_TRANSFORM: [&str; 3] = ["transform", "along", "operator"];

/// Adds the stage that transforms the lines of a field along an axis.
fn transform(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    matrix: Item<'_>,
    known: Known<'_>,
) -> Result<(), Fault> {
    let matrix: Matrix = matrix.string()?.parse().map_err(|error| Fault::of(matrix.at(), error))?;
    let missing = |key: &str| {
        let change =
            "write along = \"x\", operator = \"...\", and modes = \"u\" with the names of two fields";
        Fault::new(table.at(), format!("the transform has no `{key}`"), change)
    };
    let along = table.get("along").ok_or_else(|| missing("along"))?;
    let (slowest, name) = (3 - p.dimensions(), along.string()?);
    let Some(axis) = (slowest..3).find(|&axis| axis_name(axis) == name) else {
        let reason =
            format!("it is none of the axes {}", (slowest..3).map(axis_name).collect::<Vec<_>>().join(", "));
        return Err(Fault::new(along.at(), reason, "name the axis of the lines"));
    };
    let operator = table.get("operator").ok_or_else(|| missing("operator"))?;
    let formulas: Vec<Entry<'_>> =
        table.entries().filter(|entry| !WORDS_OF_TRANSFORM.contains(&entry.key)).collect();
    let is_field = |entry: &Entry<'_>| known.fields.iter().any(|name| name == entry.key);
    let Some(target) = formulas.iter().find(|entry| is_field(entry)) else {
        return Err(missing("field"));
    };
    if let Some(second) = formulas.iter().filter(|entry| is_field(entry)).nth(1) {
        return Err(Fault::new(second.at.clone(), "a transform sets one field", "write a stage for each"));
    }
    let of = target.item.string()?;
    if !known.fields.iter().any(|name| name == of) {
        let reason = format!("`{of}` is no field");
        return Err(Fault::new(
            target.at.clone(),
            reason,
            "name the field that is transformed, as in modes = \"u\"",
        ));
    }
    let known = Known { on: p.on(target.key), ..known };
    let before: Vec<Entry<'_>> = formulas.iter().filter(|entry| !is_field(entry)).cloned().collect();
    let mut fault = None;
    p.extend(step).transform(target.key, of, axis - slowest, matrix, |scope| {
        let value = defined(scope, &before, known, |meaning| {
            operator
                .string()
                .and_then(|text| formula::read(text, meaning).map_err(|fault| operator.place(fault)))
        });
        value.unwrap_or_else(|found| {
            fault = Some(found);
            scope.constant(0.0)
        })
    });
    match fault {
        Some(fault) => Err(fault),
        None => check_at(p, table.at()),
    }
}

/// Adds the stage that gives fields and temporaries new values.
fn update(
    p: &mut Definition,
    step: usize,
    table: Table<'_>,
    formulas: &[Entry<'_>],
    known: Known<'_>,
    default: &str,
) -> Result<(), Fault> {
    if let Some(over) = table.get("over") {
        let change = "leave it out; `where` keeps values as they are";
        return Err(Fault::new(over.at(), "a stage of fields is computed everywhere", change));
    }
    if let Some(every) = table.get("every") {
        let change = "leave it out; a reduction to a scalar may be made once in so many steps";
        return Err(Fault::new(every.at(), "a stage of fields is computed in each step", change));
    }
    let mask = table.get("where");
    if let Some(mask) = mask {
        mask.string()?;
    }
    let name = table.get("name").map_or(Ok(default), Item::string)?.to_owned();
    let points = table.get("points").map(points).transpose()?;
    let mut fault = None;
    let define = |scope: &Scope<'_>| {
        let all = || {
            let mut locals = Vec::new();
            if let Some(mask) = mask {
                scope.only_where(read(mask, scope, known, &locals)?);
            }
            for entry in formulas {
                let value = read(entry.item, scope, known, &locals)?;
                match known.fields.iter().any(|field| field == entry.key) {
                    true => scope.set(entry.key, value),
                    false => name_local(&mut locals, entry, value)?,
                }
            }
            Ok(())
        };
        fault = all().err();
    };
    let mut step = p.extend(step);
    match &points {
        Some(points) => drop(step.points_slice(&name, points, define)),
        None => drop(step.stage(&name, define)),
    }
    match fault {
        Some(fault) => Err(fault),
        None => check_at(p, table.at()),
    }
}

/// Adds the stage of a scalar: a formula of scalars, or a reduction of fields.
fn scalar(
    p: &mut Definition,
    step: usize,
    entry: &Entry<'_>,
    before: &[Entry<'_>],
    known: Known<'_>,
    (over, every): (Region, usize),
) -> Result<(), Fault> {
    let text = entry.item.string()?;
    let place = |fault| entry.item.place(fault);
    let reduced = formula::reduced(text).map_err(place)?;
    let reduction = reduced.as_ref().map(|reduced| reduced.reduction);
    let mut fault = None;
    let mut noted = |found: Result<(), Fault>| fault = found.err();
    let mut step = p.extend(step);
    match (reduced, reduction) {
        (Some(reduced), Some(reduction)) => {
            step.reduce_every(every, entry.key, reduction, over, |scope| {
                let value = defined(scope, before, known, |meaning| reduced.read(meaning).map_err(place));
                let zero = scope.constant(0.0);
                value.unwrap_or_else(|found| {
                    noted(Err(found));
                    zero
                })
            });
        }
        _ => drop(step.compute(entry.key, |scope| {
            let value = defined(scope, before, known, |meaning| formula::read(text, meaning).map_err(place));
            let zero = scope.constant(0.0);
            value.unwrap_or_else(|found| {
                noted(Err(found));
                zero
            })
        })),
    }
    match fault {
        Some(fault) => Err(fault),
        None => check_at(p, entry.at.clone()),
    }
}

/// Returns the value of a formula behind those that have names.
fn defined<'g>(
    scope: &Scope<'g>,
    before: &[Entry<'_>],
    known: Known<'_>,
    value: impl FnOnce(&Meaning<'_, 'g>) -> Result<Expr<'g>, Fault>,
) -> Result<Expr<'g>, Fault> {
    let mut locals = Vec::new();
    for entry in before {
        let local = read(entry.item, scope, known, &locals)?;
        name_local(&mut locals, entry, local)?;
    }
    value(&known.meaning(scope, &locals))
}

/// Reads the formula of an entry.
fn read<'g>(
    item: Item<'_>,
    scope: &Scope<'g>,
    known: Known<'_>,
    locals: &[(String, Expr<'g>)],
) -> Result<Expr<'g>, Fault> {
    formula::read(item.string()?, &known.meaning(scope, locals)).map_err(|fault| item.place(fault))
}

fn name_local<'g>(
    locals: &mut Vec<(String, Expr<'g>)>,
    entry: &Entry<'_>,
    value: Expr<'g>,
) -> Result<(), Fault> {
    if entry.key.contains('`') {
        let reason = format!("`{}` is no field, and no name that a formula can use", entry.key);
        return Err(Fault::new(entry.at.clone(), reason, "use no backquotes"));
    }
    locals.push((entry.key.to_owned(), value));
    Ok(())
}

/// Returns the points of a stage, each with an index for each axis.
fn points(item: Item<'_>) -> Result<Vec<Vec<usize>>, Fault> {
    let point = |point: Item<'_>| point.array()?.into_iter().map(Item::whole).collect();
    item.array()?.into_iter().map(point).collect()
}

/// Returns the region of a reduction: where its values stand, and those left out at both sides of axes.
fn region(item: Item<'_>, dimensions: usize) -> Result<Region, Fault> {
    if !item.is_table() {
        return Ok(centring(item, dimensions)?.into());
    }
    let table = item.table()?;
    let on = table.get("on").map_or(Ok(Centring::CELL), |on| centring(on, dimensions))?;
    let mut region = Region::from(on);
    for Entry { key, at, item } in table.entries().filter(|entry| entry.key != "on") {
        let axes = 3 - dimensions..3;
        let axis = axes.clone().find(|&axis| axis_name(axis) == key);
        let axis = axis.ok_or_else(|| {
            let known = ["on"].into_iter().chain(axes.map(axis_name));
            Fault::unknown(at, "key of a region", key, known)
        })?;
        let sides = item.array()?.into_iter().map(Item::whole).collect::<Result<Vec<usize>, _>>()?;
        let &[low, high] = sides.as_slice() else {
            let reason = "an axis has two sides";
            return Err(Fault::new(item.at(), reason, "write the values left out at both, as in x = [1, 0]"));
        };
        region = region.without(axis, low, high);
    }
    Ok(region)
}
