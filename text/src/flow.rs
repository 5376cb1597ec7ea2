//! Flows of gases in model files: the table `flow`.

use abide_core::program::Definition;
use abide_gas::{Chung, Flow, Interactions, Mixture, Scheme, Side, Species, Table as Known, Uniform};

use crate::document::{Item, Table};
use crate::fault::Fault;

/// The keys of the table.
const KEYS: [&str; 13] = [
    "gas", "kij", "chung", "kappa", "closure", "ideal", "scheme", "order", "viscous", "newton", "courant",
    "sides", "start",
];

/// Begins the definition of the flow that the table describes, on so many axes.
pub(crate) fn begin(item: Item<'_>, axes: usize, name: Option<&str>) -> Result<Definition, Fault> {
    let table = item.table()?;
    let flow = read(item, axes)?;
    let flow = match table.get("start") {
        Some(start) => beginning(flow, start, axes)?,
        None => flow,
    };
    let flow = if let Some(name) = name { flow.named(name) } else { flow };
    let program = flow.program().map_err(|error| Fault::of(item.begin(), error))?;
    Ok(Definition::of(&program))
}

/// Reads what flows and how.
pub(crate) fn read(item: Item<'_>, axes: usize) -> Result<Flow, Fault> {
    let table = item.table()?;
    table.only("key of a flow", &KEYS)?;
    let mut flow = match (table.get("gas"), table.get("ideal")) {
        (Some(gas), None) => Flow::of(&mixture(table, gas)?, axes),
        (None, Some(ideal)) => {
            let own = ideal.table()?;
            own.only("key of an ideal gas", &["gamma", "R"])?;
            let of = |key: &str, default: f64| own.get(key).map_or(Ok(default), Item::number);
            Flow::ideal(of("gamma", 1.4)?, of("R", 287.0)?, axes)
        }
        _ => {
            let change = "write gas = [\"CH4\", \"O2\"], or ideal = { gamma = 1.4, R = 287.0 }";
            return Err(Fault::new(item.begin(), "a flow is of one gas", change));
        }
    };
    if let Some(scheme) = table.get("scheme") {
        flow = flow.scheme(match scheme.string()? {
            "keep" => Scheme::Keep,
            "hllc" => Scheme::Hllc,
            other => return Err(Fault::unknown(scheme.at(), "scheme", other, ["keep", "hllc"])),
        });
    }
    if let Some(order) = table.get("order") {
        flow = flow.order(order.whole()?);
    }
    if let Some(newton) = table.get("newton") {
        flow = flow.newton(newton.whole()?);
    }
    if let Some(courant) = table.get("courant") {
        flow = flow.courant(courant.number()?);
    }
    if truth(table, "viscous")? {
        flow = flow.viscous();
    }
    if let Some(sides) = table.get("sides") {
        for entry in sides.table()?.entries() {
            let (axis, ends) = side(entry.key, axes).ok_or_else(|| {
                let names = ["x", "y", "z"].iter().take(axes);
                let names = names.flat_map(|name| ["", "-", "+"].map(|sign| format!("{name}{sign}")));
                Fault::unknown(entry.at.clone(), "side", entry.key, names)
            })?;
            for end in ends {
                flow = flow.side(axis, end, beyond(entry.item)?);
            }
        }
    }
    Ok(flow)
}

/// Returns whether a key says true.
fn truth(table: Table<'_>, key: &str) -> Result<bool, Fault> {
    let Some(item) = table.get(key) else { return Ok(false) };
    item.truth()
        .ok_or_else(|| Fault::new(item.at(), format!("`{key}` is true or false"), "write one of both"))
}

/// Reads a mixture of real gases.
fn mixture(table: Table<'_>, gas: Item<'_>) -> Result<Mixture, Fault> {
    let of = |error| Fault::of(gas.at(), error);
    let known = Known::builtin().map_err(of)?;
    let names: Vec<&str> = match gas.is_array() {
        true => gas.array()?.into_iter().map(Item::string).collect::<Result<_, Fault>>()?,
        false => gas.string()?.split(',').map(str::trim).collect(),
    };
    let found = names.iter().map(|name| known.find(name).cloned());
    let mut species = found.collect::<Result<Vec<Species>, _>>().map_err(of)?;
    if truth(table, "closure")? {
        species = species.into_iter().map(Species::closed).collect::<Result<_, _>>().map_err(of)?;
    }
    let mut mixture = Mixture::new(species).map_err(of)?.association(truth(table, "kappa")?);
    if let Some(chung) = table.get("chung") {
        let set = chung.string()?.parse::<Chung>().map_err(|error| Fault::of(chung.at(), error))?;
        mixture = mixture.chung(set);
    }
    if let Some(list) = table.get("kij") {
        let pair = |item: &Item<'_>| match item.array()?.as_slice() {
            [i, j, value] => Ok((i.string()?.to_owned(), j.string()?.to_owned(), value.number()?)),
            _ => Err(Fault::new(item.at(), "it is no pair", "write it like [\"CH4\", \"CO2\", 0.1]")),
        };
        let pairs = list.array()?.iter().map(pair).collect::<Result<Vec<_>, Fault>>()?;
        let interactions = Interactions::new(&known, pairs).map_err(|error| Fault::of(list.at(), error))?;
        mixture = mixture.interactions(&interactions);
    }
    Ok(mixture.fewest_operations())
}

/// Returns the axis of a side, counted from the slowest, and its ends.
fn side(name: &str, axes: usize) -> Option<(usize, std::ops::RangeInclusive<usize>)> {
    let (letter, ends) = match (name.strip_suffix('-'), name.strip_suffix('+')) {
        (Some(letter), _) => (letter, 0..=0),
        (_, Some(letter)) => (letter, 1..=1),
        _ => (name, 0..=1),
    };
    let number = ["x", "y", "z"].iter().position(|known| *known == letter)?;
    Some((axes.checked_sub(number + 1)?, ends))
}

/// Reads what is beyond a side.
fn beyond(item: Item<'_>) -> Result<Side, Fault> {
    if !item.is_table() {
        return match item.string()? {
            "periodic" => Ok(Side::Periodic),
            "slip" => Ok(Side::Slip),
            "no-slip" => Ok(Side::NoSlip),
            "outflow" => Ok(Side::Outflow),
            other => Err(Fault::unknown(
                item.at(),
                "side of a flow",
                other,
                ["periodic", "slip", "no-slip", "outflow"],
            )),
        };
    }
    let table = item.table()?;
    match (table.get("pressure"), table.get("T")) {
        (Some(pressure), None) => {
            table.only("key of an outlet", &["pressure"])?;
            Ok(Side::Pressure(pressure.number()?))
        }
        _ => {
            table.only("key of an inflow", &["T", "p", "velocity", "fractions"])?;
            uniform(item, table).map(Side::Inflow)
        }
    }
}

/// Reads a state that is the same everywhere.
fn uniform(item: Item<'_>, table: Table<'_>) -> Result<Uniform, Fault> {
    let number = |key: &str| match table.get(key) {
        Some(value) => value.number(),
        None => Err(Fault::new(item.begin(), format!("the state has no {key}"), "write T in K and p in Pa")),
    };
    let numbers = |key: &str| match table.get(key) {
        Some(list) => list.array()?.into_iter().map(Item::number).collect(),
        None => Ok(Vec::new()),
    };
    Ok(Uniform {
        temperature: number("T")?,
        pressure: number("p")?,
        velocity: numbers("velocity")?,
        fractions: numbers("fractions")?,
    })
}

/// Begins a flow from a state, or from two of which one stands in the low corner.
fn beginning(flow: Flow, item: Item<'_>, axes: usize) -> Result<Flow, Fault> {
    let table = item.table()?;
    table.only("key of a flow's start", &["T", "p", "velocity", "fractions", "corner"])?;
    let at_rest = |mut state: Uniform| {
        if state.velocity.is_empty() {
            state.velocity = vec![0.0; axes];
        }
        state
    };
    let others = at_rest(uniform(item, table)?);
    let begun = match table.get("corner") {
        None => flow.beginning(&others),
        Some(corner) => {
            let own = corner.table()?;
            own.only("key of a corner", &["parts", "T", "p", "velocity", "fractions"])?;
            let parts: Vec<f64> = match own.get("parts") {
                Some(parts) => parts.array()?.into_iter().map(Item::number).collect::<Result<_, Fault>>()?,
                None => {
                    let change = "write parts = [0.5, 1.0], slowest axis first";
                    return Err(Fault::new(corner.begin(), "it does not say its part of each axis", change));
                }
            };
            flow.beginning_in_corner(&parts, &at_rest(uniform(corner, own)?), &others)
        }
    };
    begun.map_err(|error| Fault::of(item.begin(), error))
}
