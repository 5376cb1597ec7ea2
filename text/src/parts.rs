//! What a model file declares: fields, temporaries, parameters and scalars.

use abide_core::program::{Centring, Definition, Follows, Start};

use crate::document::{Entry, Item, Table};
use crate::fault::Fault;
use crate::formula::{self, Meaning};
use crate::loops::Constants;

/// The start of a field whose values each run gives.
pub(crate) const GIVEN: &str = "given";

/// Declares the fields of a table, or changes those that there are.
pub(crate) fn fields(p: &mut Definition, table: Table<'_>, dimensions: usize) -> Result<(), Fault> {
    for Entry { key, at, item } in table.entries() {
        let is_known = p.fields().iter().any(|field| field == key);
        let part = if item.is_table() { Some(item.table()?) } else { None };
        let on = match part.and_then(|part| part.get("on")) {
            Some(on) => centring(on, dimensions)?,
            None => Centring::CELL,
        };
        match part.and_then(|part| part.get("components")) {
            _ if is_known => {}
            Some(count) => drop(p.components(key, count.whole()?, on)),
            None => drop(p.field(key, on)),
        }
        let own_start = match part {
            Some(part) => {
                let follows = Follows::ALL.map(|(_, word)| word);
                let words =
                    [&["on", "components"][..], &follows, &["precision", "internal", "boundary", "start"]]
                        .concat();
                part.only("key of a field", &words)?;
                for (how, word) in Follows::ALL {
                    if let Some(other) = part.get(word) {
                        p.follow(key, other.string()?, how);
                        check(p, other)?;
                    }
                }
                internal(p, key, part)?;
                if let Some(precision) = part.get("precision") {
                    let own =
                        precision.string()?.parse().map_err(|error| Fault::of(precision.at(), error))?;
                    p.precision(key, own);
                    check(p, precision)?;
                }
                if let Some(boundary) = part.get("boundary") {
                    p.boundary_of(key, boundary.string()?);
                    check(p, boundary)?;
                }
                part.get("start")
            }
            None => Some(item),
        };
        if let Some(own) = own_start {
            p.start(key, start(own)?);
        }
        check_at(p, at)?;
    }
    Ok(())
}

/// Declares the temporaries of a table: names, and where their values stand.
pub(crate) fn temporaries(p: &mut Definition, table: Table<'_>, dimensions: usize) -> Result<(), Fault> {
    for Entry { key, at, item } in table.entries() {
        p.temporary(key, centring(item, dimensions)?);
        check_at(p, at)?;
    }
    Ok(())
}

/// Declares the parameters of a table; of a program that there is, they may be made to vary.
pub(crate) fn parameters(p: &mut Definition, table: Table<'_>) -> Result<(), Fault> {
    for Entry { key, at, item } in table.entries() {
        let (number, about) = match item.is_table() {
            false => (Some(item), ""),
            true => {
                let part = item.table()?;
                part.only("key of a parameter", &["default", "about", "vary", "formula", "parts"])?;
                (part.get("default"), part.get("about").map_or(Ok(""), Item::string)?)
            }
        };
        let is_known = p.is_parameter(key);
        let formula = if item.is_table() { item.table()?.get("formula") } else { None };
        if let Some(formula) = formula {
            if let Some(other) = item.table()?.get("vary").or(number) {
                let reason = format!("{key} has a formula of parameters, and another value");
                return Err(Fault::new(other.at(), reason, "leave one of them out"));
            }
            derived(p, key, about, item.table()?, formula)?;
            check_at(p, at)?;
            continue;
        }
        if let Some(parts) = if item.is_table() { item.table()?.get("parts") } else { None } {
            let reason = format!("{key} has parts of a formula, and no formula");
            return Err(Fault::new(
                parts.at(),
                reason,
                "write the formula that uses them, or leave them out",
            ));
        }
        match number {
            Some(number) if is_known => {
                let change = "leave the number out, and give the run another one";
                return Err(Fault::new(
                    number.at(),
                    format!("the program has {key} and its default"),
                    change,
                ));
            }
            Some(number) => drop(p.parameter(key, number.number()?, about)),
            None if is_known => {}
            None => return Err(Fault::new(at, format!("{key} has no default"), "write it as k = 0.1")),
        }
        check_at(p, at)?;
    }
    Ok(())
}

/// Declares a parameter that is a formula of those before it.
fn derived(
    p: &mut Definition,
    key: &str,
    about: &str,
    entry: Table<'_>,
    formula: Item<'_>,
) -> Result<(), Fault> {
    let scalars: Vec<String> = p.scalars().iter().filter(|name| p.is_parameter(name)).cloned().collect();
    let parts = entry.get("parts").map(Item::table).transpose()?;
    let mut fault = None;
    p.derived(key, about, |scope| {
        let mut locals = Vec::new();
        let mut read = |item: Item<'_>, name: Option<&str>| {
            let meaning = Meaning {
                scope,
                fields: &[],
                scalars: &scalars,
                locals: &locals,
                tables: &[],
                indices: &[],
                on: None,
            };
            let value = formula::read(item.string()?, &meaning).map_err(|fault| item.place(fault))?;
            locals.extend(name.map(|name| (name.to_owned(), value)));
            Ok(value)
        };
        let mut parts = parts.iter().flat_map(|parts| parts.entries());
        let value = parts
            .try_for_each(|part| read(part.item, Some(part.key)).map(drop))
            .and_then(|()| read(formula, None));
        value.unwrap_or_else(|found: Fault| {
            fault = Some(found);
            scope.constant(0.0)
        })
    });
    fault.map_or_else(|| check(p, formula), Err)
}

/// Makes those parameters vary whose entries have a formula; the scalars that it needs are declared by now.
pub(crate) fn varying(p: &mut Definition, table: Table<'_>, tables: &[Constants]) -> Result<(), Fault> {
    for Entry { key, item, .. } in table.entries().filter(|entry| entry.item.is_table()) {
        let Some(text) = item.table()?.get("vary") else { continue };
        let formula = text.string()?;
        let scalars = p.scalars().to_vec();
        let mut fault = None;
        p.vary(key, |scope| {
            let meaning = Meaning {
                scope,
                fields: &[],
                scalars: &scalars,
                locals: &[],
                tables,
                indices: &[],
                on: None,
            };
            formula::read(formula, &meaning).unwrap_or_else(|found| {
                fault = Some(found);
                scope.constant(0.0)
            })
        });
        if let Some(fault) = fault {
            return Err(text.place(fault));
        }
        check(p, text)?;
    }
    Ok(())
}

/// Declares the computed scalars of a table: a value before the first step, or more.
pub(crate) fn scalars(p: &mut Definition, table: Table<'_>, dimensions: usize) -> Result<(), Fault> {
    for Entry { key, at, item } in table.entries() {
        if item.is_number() {
            p.scalar(key, Some(item.number()?), "");
        } else {
            let part = item.table()?;
            part.only("key of a scalar", &["start", "extent", "about", "internal"])?;
            let about = part.get("about").map_or(Ok(""), Item::string)?;
            match part.get("extent") {
                Some(extent) => {
                    let axis = formula::axis(extent.string()?, dimensions, extent.at())?;
                    p.extent(key, axis, about);
                }
                None => {
                    let start = part.get("start").map(Item::number).transpose()?;
                    p.scalar(key, start, about);
                }
            }
            internal(p, key, part)?;
        }
        check_at(p, at)?;
    }
    Ok(())
}

/// Says of a field or a scalar that it is internal, where its table does.
fn internal(p: &mut Definition, name: &str, part: Table<'_>) -> Result<(), Fault> {
    let Some(own) = part.get("internal") else { return Ok(()) };
    match own.truth() {
        Some(true) => drop(p.internal(name)),
        Some(false) => {}
        None => return Err(Fault::new(own.at(), "it is neither true nor false", "write internal = true")),
    }
    Ok(())
}

/// Fails if the definition has a fault, which the item has caused.
pub(crate) fn check(p: &Definition, item: Item<'_>) -> Result<(), Fault> {
    check_at(p, item.at())
}

pub(crate) fn check_at(p: &Definition, at: std::ops::Range<usize>) -> Result<(), Fault> {
    p.fault().map_or(Ok(()), |fault| Err(Fault::of(at, fault.clone())))
}

/// Returns where values stand, as in `x-faces`.
pub(crate) fn centring(item: Item<'_>, dimensions: usize) -> Result<Centring, Fault> {
    Centring::parse(item.string()?, dimensions).map_err(|error| Fault::of(item.at(), error))
}

/// Returns an initial state: a number, words such as `random:1`, or a table such as `{ random = 1, low = 0.0,
/// high = 2.0 }`.
fn start(item: Item<'_>) -> Result<Start, Fault> {
    if item.is_number() {
        return Ok(Start::Constant(item.number()?));
    }
    if item.is_text() && item.string()? == GIVEN {
        return Ok(Start::Given);
    }
    if item.is_text() {
        return item.string()?.parse().map_err(|error| Fault::of(item.at(), error));
    }
    let table = item.table()?;
    let number = |key: &str, default: f64| table.get(key).map_or(Ok(default), Item::number);
    if let Some(seed) = table.get("random") {
        table.only("key of a random start", &["random", "low", "high"])?;
        return Ok(Start::Random {
            seed: seed.whole()?,
            low: number("low", 0.0)?,
            high: number("high", 1.0)?,
        });
    }
    if let Some(seed) = table.get("seeds") {
        table.only("key of a start of seeds", &["seeds", "inside", "outside"])?;
        let (inside, outside) = (number("inside", 1.0)?, number("outside", 0.0)?);
        return Ok(Start::Seeds { inside, outside, seed: seed.whole()? });
    }
    if let Some(seed) = table.get("coin") {
        table.only("key of a coin's start", &["coin", "probability"])?;
        return Ok(Start::Coin { seed: seed.whole()?, probability: number("probability", 0.5)? });
    }
    if let Some(corner) = table.get("corner") {
        table.only("key of a corner's start", &["corner", "inside", "outside"])?;
        let parts = corner.array()?.into_iter().map(Item::number).collect::<Result<Vec<_>, _>>()?;
        let wrong = || Fault::new(corner.at(), "a corner has three parts", "write them as [1.0, 0.5, 0.5]");
        let parts: [f64; 3] = parts.try_into().map_err(|_| wrong())?;
        return Ok(Start::Corner { inside: number("inside", 1.0)?, outside: number("outside", 0.0)?, parts });
    }
    let reason = "it names no kind of start";
    Err(Fault::new(
        item.at(),
        reason,
        "give a number, \"gaussian\", \"point\", \"random:1\", or a table with random, seeds, coin or corner",
    ))
}
