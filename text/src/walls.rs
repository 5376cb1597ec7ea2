//! The grid in space and the conditions at walls of a model file.

use abide_core::Scope;
use abide_core::expr::Expr;
use abide_core::program::{Centring, Condition, Definition, Wall};

use crate::document::{Entry, Item, Table};
use crate::fault::Fault;
use crate::formula::{self, Meaning};
use crate::parts::{check, check_at};

/// Reads `spacing` and `origin`: one value for all axes, or a table of axes. Parameters are declared by now.
pub(crate) fn grid(p: &mut Definition, all: Table<'_>) -> Result<(), Fault> {
    for is_spacing in [true, false] {
        let Some(item) = all.get(if is_spacing { "spacing" } else { "origin" }) else { continue };
        let dimensions = p.dimensions();
        let along: Vec<(usize, Item<'_>)> = match item.is_table() {
            false => (0..dimensions).map(|axis| (axis, item)).collect(),
            true => {
                let mut along = Vec::new();
                for Entry { key, at, item } in item.table()?.entries() {
                    along.push((formula::axis(key, dimensions, at)?, item));
                }
                along
            }
        };
        let scalars: Vec<String> = p.scalars().to_vec();
        for (axis, item) in along {
            let mut fault = None;
            match is_spacing {
                true => p.spacing(axis, |scope| read(item, scope, &scalars, None, &mut fault)),
                false => p.origin(axis, |scope| read(item, scope, &scalars, None, &mut fault)),
            };
            fault.map_or_else(|| check(p, item), Err)?;
        }
    }
    Ok(())
}

/// Reads the conditions of fields: of each side, as in `x-`, a kind with its values.
pub(crate) fn walls(p: &mut Definition, table: Table<'_>) -> Result<(), Fault> {
    for field in table.entries() {
        let on = p.on(field.key);
        for side in field.item.table()?.entries() {
            let (condition, values) = condition(&side)?;
            let scalars = p.scalars().to_vec();
            let mut fault = None;
            p.wall(field.key, side.key, |scope| {
                let all: Vec<Expr<'_>> =
                    values.iter().map(|&item| read(item, scope, &scalars, on, &mut fault)).collect();
                Wall::of(condition, &all).unwrap_or_else(|| Wall::dirichlet(scope.constant(0.0)))
            });
            match fault {
                Some(fault) => return Err(fault),
                None => check_at(p, side.at.clone())?,
            }
        }
    }
    Ok(())
}

/// Returns the kind of a condition, and its values.
fn condition<'d>(side: &Entry<'d>) -> Result<(Condition, Vec<Item<'d>>), Fault> {
    let names = Condition::all().map(Condition::name);
    let mut entries = side.item.table()?.entries();
    let (Some(only), None) = (entries.next(), entries.next()) else {
        let reason = "a side has one condition";
        return Err(Fault::new(
            side.item.at(),
            reason,
            "write it as { dirichlet = 1 } or { robin = [1, 2, 0] }",
        ));
    };
    let condition = Condition::of_name(only.key)
        .ok_or_else(|| Fault::unknown(only.at.clone(), "condition", only.key, names))?;
    let values = if only.item.is_array() { only.item.array()? } else { vec![only.item] };
    if values.len() != condition.values() {
        let reason = format!("it has {} values, and {} takes {}", values.len(), only.key, condition.values());
        return Err(Fault::new(only.item.at(), reason, format!("write {}", condition.notation())));
    }
    Ok((condition, values))
}

/// Reads a number or a formula of scalars, and of places where `on` says where values stand.
fn read<'g>(
    item: Item<'_>,
    scope: &Scope<'g>,
    scalars: &[String],
    on: Option<Centring>,
    fault: &mut Option<Fault>,
) -> Expr<'g> {
    let value = || {
        if item.is_number() {
            return Ok(scope.constant(item.number()?));
        }
        let meaning = Meaning { scope, fields: &[], scalars, locals: &[], tables: &[], indices: &[], on };
        formula::read(item.string()?, &meaning).map_err(|fault| item.place(fault))
    };
    value().unwrap_or_else(|found: Fault| {
        fault.get_or_insert(found);
        scope.constant(0.0)
    })
}
