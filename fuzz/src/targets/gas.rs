//! Tables of gases: what is read of them holds what a mixture needs, and no name twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use abide::gas::{Interactions, Table};
use abide_cli::check_states;

use super::{by_length, ensure, file, refused};

pub const CANTERA_WORDS: &[&str] = &[
    "units: {length: cm, quantity: mol}\n",
    "species:\n",
    "- name: A\n",
    "  composition: {C: 1, H: 4}\n",
    "  thermo:\n",
    "    model: NASA7\n",
    "    temperature-ranges: [200.0, 1000.0]\n",
    "    data:\n",
    "    - [1, 2, 3, 4, 5, 6, 7]\n",
    "  equation-of-state:\n",
    "    model: Peng-Robinson\n",
    "    a: 3.6e+12 cm^6*bar/mol^2\n",
    "    b: 29 cm^3/mol\n",
    "    acentric-factor: 0.2\n",
    "    binary-a:\n",
    "  critical-parameters:\n",
    "    critical-temperature: 190 K\n",
    "    critical-pressure: 4.6 MPa\n",
    "  transport:\n",
    "    diameter: 3.7\n",
    "    well-depth: 140\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "[",
    "]",
    "{",
    "}",
    "? ",
    ": ",
    "- ",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "!!float ",
    "! ",
    "\"\\u001b\"",
    ".nan",
    ".inf",
    "~",
];

pub const TABLE_WORDS: &[&str] = &[
    "name,W,Tc,pc,Vc,omega,dipole,kappa,sigma,eps_k,Tlow,Tmid,Thigh,",
    "lo0,lo1,lo2,lo3,lo4,lo5,lo6,hi0,hi1,hi2,hi3,hi4,hi5,hi6\n",
    "T,p,x_CH4,x_O2\n",
    "x_",
    "i,j,kij\n",
    "CH4,O2,0.1\n",
    "CO2",
    "H2O",
    "#\n",
    "\n",
    "\r",
    ",",
    "\"",
    "\"\"",
    " ",
    "1",
    "-1e-3",
    "1e999",
    "nan",
    "inf",
    "\u{feff}",
];

/// The memory of a file: the nodes of YAML are some hundred bytes each and may have one byte, and an error may name every
/// species.
pub fn memory(input: &[u8]) -> usize {
    (2 << 20) + 16 * by_length(input)
}

/// Aliases stand for as many nodes as there may be.
pub fn cantera_memory(input: &[u8]) -> usize {
    let has_aliases = input.contains(&b'*');
    memory(input) + if has_aliases { 512 << 20 } else { 0 }
}

/// Reads Cantera's YAML.
pub fn cantera(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    match Table::from_cantera(text) {
        Ok((table, interactions)) => {
            sound(&table)?;
            let again = Interactions::new(&table, interactions.pairs().to_vec());
            let again = again.map_err(|error| format!("interactions that were read are refused: {error}"))?;
            ensure(again == interactions, || "interactions come back otherwise".to_owned())
        }
        Err(error) => refused(&error),
    }
}

/// Reads a table of species.
pub fn species(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    match Table::from_csv(text) {
        Ok(table) => sound(&table),
        Err(error) => refused(&error),
    }
}

/// Checks that a table may be made of its species, whose names are found.
fn sound(table: &Table) -> Result<(), String> {
    let again = Table::new(table.species().to_vec());
    ensure(again.as_ref() == Ok(table), || "species that were read are refused".to_owned())?;
    let names: BTreeSet<&str> = table.species().iter().map(|species| species.name.as_str()).collect();
    ensure(names.len() == table.species().len(), || "two species have a name".to_owned())?;
    let found = names.iter().all(|name| table.find(name).is_ok_and(|species| species.name == *name));
    ensure(found, || "a species is not found".to_owned())
}

/// Reads interactions of the species that are built in; they are written, and read back to the same bits.
pub fn interactions(input: &[u8]) -> Result<(), String> {
    static BUILTIN: LazyLock<Option<Table>> = LazyLock::new(|| Table::builtin().ok());
    let Some(table) = &*BUILTIN else { return Err("the species that are built in are not read".to_owned()) };
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let read = match Interactions::from_csv(table, text) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    let mut written = "i,j,kij\n".to_owned();
    for (i, j, value) in read.pairs() {
        // Writing to a string cannot fail.
        let _ = writeln!(written, "{i},{j},{value:?}");
    }
    let again = Interactions::from_csv(table, &written).map_err(|error| format!("{error} in\n{written}"))?;
    let bits = |all: &Interactions| all.pairs().iter().map(|pair| pair.2.to_bits()).collect::<Vec<_>>();
    let same = again == read && bits(&again) == bits(&read);
    ensure(same, || format!("interactions that were written come back otherwise:\n{written}"))
}

/// Reads a table of states, from a file.
pub fn states(input: &[u8]) -> Result<(), String> {
    let file = file(input, ".csv")?;
    match check_states(file.path()) {
        Ok(rows) => ensure(rows <= input.len() as u64, || format!("{rows} rows of {} bytes", input.len())),
        Err(error) => refused(&error),
    }
}
