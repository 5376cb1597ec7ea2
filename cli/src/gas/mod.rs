//! `abide gas`.

mod evaluate;
mod mixture;
mod notes;
mod plot;
mod states;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use abide::gas::{Basis, Chung, Given, Interactions, Mixture, Points, Property, States as How, Table};
use abide::io::{Staged, Targets, bounded};
use abide::{Choice, Error, Result};
use clap::Args;
use serde::Serialize;

use self::evaluate::{Batch, Evaluation, Wanted};
use self::mixture::{Fractions, Values};
use self::plot::{CURVES, Curves};
use self::states::States;
use super::report::duration;
use super::{Ended, Ending, print, print_report};

const EXAMPLES: &str = "\
Examples:
  abide gas --mixture CH4:0.3,O2:0.7 --T 150:1000:50 --p 5e6
  abide gas --mixture N2 --T 100:400:1 --p 1e6:1e7:3e6 --output nitrogen.svg --csv nitrogen.csv
  abide gas --mixture CH4:0.2,O2:0.8 --mass --T 300 --p 101325 --kij kij.csv
  abide gas --mixture N2 --h=-2e5:2e5:1e4 --p 5e6 --properties T,rho,c
  abide gas --mixture CH4:0.5,O2:0.5 --T 300 --p 1e5:1e7:1e6 --properties D,Dij,h_Y,rho_T
  abide gas --states states.csv --output properties.csv
  abide gas --states states.csv --kij kij.csv --chung cantera32 --backend cuda --output out.csv
  abide gas --states states.csv --species mechanism.yaml --closure --kappa --output properties.csv

Peng-Robinson's equation of state, NASA's polynomials of seven coefficients, Chung's viscosity and conductivity of dense \
gases, always in f64. A state is given by T and p, T and rho, h and p, or rho and e. Tables have the columns T (K), p (Pa), \
rho (kg/m³), h (J/kg), s, cp, cv (J/(kg K)), c (m/s), mu (Pa s) and lambda (W/(m K)), or those of --properties.

A table of states has columns of two quantities that give a state, as T and p, and x_NAME, the mole fraction of each species, \
or Y_NAME, its mass fraction; other columns and lines that begin \
with # are ignored. The rows of the result stand in the same order, its numbers have 17 digits. Below the lowest \
temperature of a species' polynomials these are extrapolated; above the highest, at T or p of 0 or less, and where mole \
fractions do not sum to 1 within 1e-9, a row is refused by name.";

/// The arguments of `gas`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Gas {
    /// A mixture by mole fractions, or the name of a single species
    #[arg(long, value_name = "NAME:X,...", conflicts_with = "states", required_unless_present_any = ["states", "properties"])]
    mixture: Option<Fractions>,

    /// The fractions of --mixture are of mass
    #[arg(long, requires = "mixture")]
    mass: bool,

    /// Temperatures in K
    #[arg(
        long = "T",
        id = "temperature",
        value_name = "T|FIRST:LAST:STEP",
        requires = "mixture",
        allow_negative_numbers = true
    )]
    temperature: Option<Values>,

    /// Pressures in Pa
    #[arg(
        long = "p",
        id = "pressure",
        value_name = "P|FIRST:LAST:STEP",
        requires = "mixture",
        allow_negative_numbers = true
    )]
    pressure: Option<Values>,

    /// Densities in kg/m³
    #[arg(
        long = "rho",
        id = "density",
        value_name = "RHO|FIRST:LAST:STEP",
        requires = "mixture",
        allow_negative_numbers = true
    )]
    density: Option<Values>,

    /// Enthalpies in J/kg
    #[arg(
        long = "h",
        id = "enthalpy",
        value_name = "H|FIRST:LAST:STEP",
        requires = "mixture",
        allow_hyphen_values = true
    )]
    enthalpy: Option<Values>,

    /// Internal energies in J/kg
    #[arg(
        long = "e",
        id = "energy",
        value_name = "E|FIRST:LAST:STEP",
        requires = "mixture",
        allow_hyphen_values = true
    )]
    energy: Option<Values>,

    /// Properties by their names, those of each species as D too; `help` lists them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    properties: Vec<String>,

    /// A table of states with columns T and p (or T and rho, h and p, rho and e) and x_NAME or Y_NAME for each species
    #[arg(long, value_name = "FILE.csv", requires = "output")]
    states: Option<PathBuf>,

    /// Species in place of the 53 that are built in: a table of the same columns, or a YAML file of Cantera's
    #[arg(long, value_name = "FILE.csv|FILE.yaml")]
    species: Option<PathBuf>,

    /// Interaction parameters: a table with columns i, j and kij; those of pairs that are not listed are 0
    #[arg(long, value_name = "FILE.csv")]
    kij: Option<PathBuf>,

    /// Coefficients of Chung's method: poling, cantera32 or 1988
    #[arg(long, default_value = "poling", value_name = "SET")]
    chung: ChungSet,

    /// Count the association factors of hydrogen-bonding species, which else are 0
    #[arg(long)]
    kappa: bool,

    /// Give species without critical data those that follow from sigma and eps/k of their potentials
    #[arg(long)]
    closure: bool,

    /// auto, cpu, wgpu or cuda; auto takes the first that is present and has f64
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// The result: of --states a table, of --mixture a picture (.svg) or a table (.csv)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the table of --mixture to a file, too
    #[arg(long, value_name = "FILE.csv", requires = "mixture")]
    csv: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// A variant of Chung's method by its name.
#[derive(Clone)]
struct ChungSet(Chung);

impl std::str::FromStr for ChungSet {
    type Err = Error;

    fn from_str(name: &str) -> Result<ChungSet> {
        name.parse().map(ChungSet)
    }
}

/// What was evaluated, and how.
#[derive(Serialize)]
struct Report {
    species: Vec<String>,
    interacting_pairs: usize,
    chung: &'static str,
    rows: u64,
    backend: String,
    device: String,
    /// Seconds on the device, without reading and writing.
    seconds: f64,
    points_per_s: f64,
    notes: Vec<String>,
    files: Vec<PathBuf>,
}

/// Reads a table of states to its end and returns its rows; nothing is evaluated.
pub fn check_states(path: &Path) -> Result<u64> {
    let mut states = States::open(path)?;
    let mut batch = Batch::new(states.species().len());
    let mut rows = 0;
    loop {
        states.read(&mut batch, 64)?;
        if batch.len() == 0 {
            return Ok(rows);
        }
        rows += batch.len() as u64;
    }
}

impl Gas {
    /// Evaluates, writes and reports.
    pub fn execute(&self) -> Ended {
        let mut targets = Targets::default();
        self.output.iter().chain(&self.csv).for_each(|path| targets.output(path));
        let inputs = self.states.iter().chain(&self.species).chain(&self.kij);
        inputs.for_each(|path| targets.input(path, Vec::new()));
        targets.check()?;
        match (&self.states, &self.output, &self.mixture) {
            _ if self.properties.iter().any(|name| name == "help") => Ok(print(&list())?),
            (Some(states), Some(output), _) => self.table(states, output),
            (_, _, Some(fractions)) => {
                let (given, values) = self.given().map_err(Ending::usage)?;
                self.ranges(fractions, given, values)
            }
            // The parser has required one of both.
            _ => Err(Ending::usage(Error::invalid(
                "abide gas",
                "nothing is asked for",
                "give --states or --mixture",
            ))),
        }
    }

    /// Returns the two quantities that give the states of a mixture, and their values.
    fn given(&self) -> Result<(Given, [&[f64]; 2])> {
        let all = [
            ("T", &self.temperature),
            ("p", &self.pressure),
            ("rho", &self.density),
            ("h", &self.enthalpy),
            ("e", &self.energy),
        ];
        let there: Vec<(&str, &[f64])> =
            all.into_iter().filter_map(|(name, values)| Some((name, &values.as_ref()?.0[..]))).collect();
        let given = Given::among(there.iter().map(|(name, _)| *name)).ok().filter(|_| there.len() == 2);
        let Some(given) = given else {
            let names: Vec<String> = there.iter().map(|(name, _)| format!("--{name}")).collect();
            let reason = match names.as_slice() {
                [] => "no quantity gives a state".to_owned(),
                names => format!("{} are not two that give one state", names.join(", ")),
            };
            let pairs =
                Given::ALL.iter().map(|given| given.quantities.map(|name| format!("--{name}")).join(" and "));
            let change = format!("give {}", pairs.collect::<Vec<_>>().join(", or "));
            return Err(Error::invalid("states of --mixture", reason, change));
        };
        let values =
            |name: &str| there.iter().find(|(own, _)| *own == name).map_or(&[][..], |(_, values)| *values);
        Ok((given, given.quantities.map(values)))
    }

    /// Returns a mixture of named species, as the arguments describe it.
    fn gas(&self, names: &[&str]) -> Result<Mixture> {
        let read = |path: &Path| {
            bounded::text(path, bounded::LARGEST_TABLE, "give a table of species or interactions")
        };
        let within = |path: &Path| {
            let path = path.to_owned();
            move |error: Error| match error {
                Error::Invalid { reason, change, what } => {
                    Error::file(&path, format!("{what}: {reason}"), change)
                }
                Error::Limit { what, asked, limit, change } => {
                    Error::file(&path, format!("{what}: {asked}, the limit is {limit}"), change)
                }
                other => other,
            }
        };
        let (table, own) = match &self.species {
            None => (Table::builtin()?, Interactions::default()),
            Some(path) => {
                let is_yaml = path
                    .extension()
                    .is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"));
                let text = read(path)?;
                match is_yaml {
                    true => Table::from_cantera(&text),
                    false => Table::from_csv(&text).map(|table| (table, Interactions::default())),
                }
                .map_err(within(path))?
            }
        };
        let interactions = match &self.kij {
            Some(path) => Interactions::from_csv(&table, &read(path)?).map_err(within(path))?,
            None => own,
        };
        let mut species = names.iter().map(|name| table.find(name).cloned()).collect::<Result<Vec<_>>>()?;
        if self.closure {
            species = species.into_iter().map(abide::gas::Species::closed).collect::<Result<_>>()?;
        }
        let gas = Mixture::new(species)?.interactions(&interactions);
        Ok(gas.chung(self.chung.0).association(self.kappa).fewest_operations())
    }

    fn report(&self, gas: &Mixture, mut evaluation: Evaluation<'_>, files: Vec<PathBuf>) -> Report {
        let (rows, mut notes) = (evaluation.rows(), evaluation.remarks.notes());
        let (mut backend, mut device, mut seconds) = (String::new(), String::new(), 0.0);
        if let Some(points) = evaluation.points() {
            seconds = points.seconds();
            let simulation = points.simulation();
            backend = simulation.backend().to_owned();
            device = simulation.plan().device.name.clone();
            notes.splice(0..0, simulation.notes().iter().cloned());
        }
        Report {
            species: gas.species().iter().map(|species| species.name.clone()).collect(),
            interacting_pairs: gas.interacting(),
            chung: self.chung.0.name,
            rows,
            backend,
            device,
            seconds,
            points_per_s: if seconds > 0.0 { rows as f64 / seconds } else { 0.0 },
            notes,
            files,
        }
    }

    /// Evaluates a table of states.
    fn table(&self, path: &Path, output: &Path) -> Ended {
        let mut states = States::open(path)?;
        let names: Vec<&str> = states.species().iter().map(String::as_str).collect();
        let gas = self.gas(&names)?;
        let wanted = Wanted::new(&gas, states.given(), &self.properties)?;
        let mut evaluation = Evaluation::new(&gas, &wanted, self.backend);
        let most = Points::most(gas.len() + 2 + wanted.columns.len());
        let mut batch = Batch::new(gas.len());
        let staged = Staged::new(output)?;
        let mut file = std::io::BufWriter::with_capacity(1 << 20, staged.handle()?);
        let write = |file: &mut std::io::BufWriter<std::fs::File>, text: &[u8]| {
            file.write_all(text).map_err(|e| Error::file(output, e, "make room, or write elsewhere"))
        };
        write(&mut file, wanted.header().as_bytes())?;
        loop {
            states.read(&mut batch, most)?;
            if batch.len() == 0 {
                break;
            }
            let values = evaluation.run(&mut batch, |number| states.row(number))?;
            for text in evaluate::lines(&batch, &values) {
                write(&mut file, &text)?;
            }
        }
        file.flush().map_err(|e| Error::file(output, e, "make room, or write elsewhere"))?;
        drop(file);
        staged.commit()?;
        let report = self.report(&gas, evaluation, vec![output.to_owned()]);
        match self.json {
            true => print_report(&report, Ok(())),
            false => Ok(print(&report.text())?),
        }
    }

    /// Evaluates a mixture at ranges of two quantities: one curve over the longer of both for each value of the other.
    fn ranges(&self, fractions: &Fractions, given: Given, [first, second]: [&[f64]; 2]) -> Ended {
        let is_svg = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
        let is_csv = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let picture = self.output.as_ref().filter(is_svg);
        let tables: Vec<&PathBuf> =
            self.output.as_ref().filter(is_csv).into_iter().chain(&self.csv).collect();
        if let Some(path) = self.output.as_ref().filter(|path| !is_svg(path) && !is_csv(path)) {
            let message = "a mixture is drawn as .svg or written as .csv";
            return Err(Error::file(path, message, "name it like properties.svg").into());
        }
        let gas = self.gas(&fractions.names())?;
        let basis = if self.mass { Basis::Mass } else { Basis::Mole };
        let wanted = Wanted::new(&gas, How { given, basis, ..How::LOOPS }, &self.properties)?;
        // Curves over the second quantity where it has more values.
        let over = usize::from(first.len() < second.len());
        let (along, others) = if over == 0 { (first, second) } else { (second, first) };
        if picture.is_some() && others.len() > CURVES {
            let change = "take larger steps, or one value";
            return Err(Error::limit("curves of a picture", others.len(), CURVES, change).into());
        }
        const MOST: usize = 4_000_000;
        let count = along.len().saturating_mul(others.len());
        if count > MOST {
            let change = "take larger steps, or give a table by --states";
            let what = given.quantities.map(|name| format!("values of {name}")).join(" times ");
            return Err(Error::limit(what, count, MOST, change).into());
        }
        let mut batch = Batch::new(gas.len());
        for &other in others {
            for &value in along {
                batch.given[over].push(value);
                batch.given[1 - over].push(other);
            }
        }
        for (column, &(_, x)) in batch.fractions.iter_mut().zip(&fractions.0) {
            column.resize(count, x);
        }
        let mut evaluation = Evaluation::new(&gas, &wanted, self.backend);
        let values = evaluation.run(&mut batch, |_| "--mixture".to_owned())?;
        let mut files = Vec::new();
        for path in tables {
            let text = evaluate::lines(&batch, &values);
            let body = |out: &mut std::io::BufWriter<&mut std::fs::File>| {
                out.write_all(wanted.header().as_bytes())?;
                text.iter().try_for_each(|text| out.write_all(text))
            };
            Staged::new(path)?.fill(body)?.commit()?;
            files.push(path.clone());
        }
        if let Some(path) = picture {
            let title =
                fractions.0.iter().map(|(name, x)| format!("{name} {x}")).collect::<Vec<_>>().join(", ");
            let label = |other: &f64| match given.quantities[1 - over] {
                "T" | "p" => format!("{other} {}", given.units[1 - over]),
                name => format!("{name} {other} {}", given.units[1 - over]),
            };
            let axis = format!("{} in {}", given.quantities[over], given.units[over]);
            let labels: Vec<String> = others.iter().map(label).collect();
            let title = match &labels[..] {
                [one] => format!("{title} at {one}"),
                _ => title,
            };
            let svg =
                Curves { title: &title, axis: (&axis, along), labels, wanted: &wanted, values: &values }
                    .draw()?;
            Staged::new(path)?.fill(|out| out.write_all(svg.as_bytes()))?.commit()?;
            files.push(path.clone());
        }
        let is_told = files.is_empty();
        let report = self.report(&gas, evaluation, files);
        if self.json {
            let rows = (0..count).map(|row| {
                let all = batch.given.iter().map(|column| column[row]);
                all.chain(values.iter().map(|column| column[row])).collect::<Vec<f64>>()
            });
            let reported = Reported { report: &report, columns: wanted.names(), values: rows.collect() };
            return print_report(&reported, Ok(()));
        }
        let table = if is_told { table(&wanted, &batch, &values) } else { String::new() };
        Ok(print(&(table + &report.text()))?)
    }
}

/// A report with the values of a mixture.
#[derive(Serialize)]
struct Reported<'a> {
    #[serde(flatten)]
    report: &'a Report,
    columns: Vec<&'a str>,
    values: Vec<Vec<f64>>,
}

/// Returns the names of all properties, their units and meaning.
fn list() -> String {
    let line = |property: &Property| format!("{:<8}{:<10}{}\n", property.name, property.unit, property.about);
    Property::ALL.iter().map(line).collect()
}

/// Returns a table for people, with six digits.
fn table(wanted: &Wanted, batch: &Batch, values: &evaluate::Values) -> String {
    let width = |name: &str| if name == "T" { 9 } else { 13 };
    let widths = wanted.states.given.quantities.map(width);
    let mut text = String::new();
    for (number, name) in wanted.names().into_iter().enumerate() {
        let width = widths.get(number).copied().unwrap_or_else(|| (name.chars().count() + 2).max(14));
        // Writing to a string cannot fail.
        let _ = write!(text, "{name:>width$}");
    }
    text.push('\n');
    for row in 0..batch.len() {
        for (column, width) in batch.given.iter().zip(widths) {
            let _ = write!(text, "{:>width$}", column[row]);
        }
        for (column, (_, name)) in values.iter().zip(&wanted.columns) {
            let width = (name.chars().count() + 2).max(14);
            let _ = write!(text, "{:>width$}", six(column[row]));
        }
        text.push('\n');
    }
    text + "\n"
}

/// Returns a number with six digits.
fn six(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && (1e-3..1e7).contains(&size) => {
            let before = size.log10().floor() as i32 + 1;
            format!("{value:.*}", (6 - before).clamp(0, 8) as usize)
        }
        _ => format!("{value:.5e}"),
    }
}

impl Report {
    /// Returns the report for people.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12}{value}");
        };
        let species = match self.species.len() {
            0..=12 => self.species.join(" "),
            many => format!("{many} species"),
        };
        let pairs = if self.interacting_pairs == 1 { "pair" } else { "pairs" };
        line("gas", format!("{species}; k_ij of {} {pairs}, Chung {}", self.interacting_pairs, self.chung));
        if self.rows > 0 {
            line("backend", format!("{} on {}", self.backend, self.device));
            let rate = format!("{:.3e} points/s", self.points_per_s);
            line(
                "rows",
                format!("{} in {}, {rate} without reading and writing", self.rows, duration(self.seconds)),
            );
        }
        self.notes.iter().for_each(|note| line("note", note.clone()));
        self.files.iter().for_each(|file| line("wrote", file.display().to_string()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_told() {
        for (value, text) in [
            (332.30511, "332.305"),
            (0.0123456789, "0.0123457"),
            (1.2345678e-5, "1.23457e-5"),
            (-4.7e6, "-4700000"),
            (0.0, "0.00000e0"),
        ] {
            assert_eq!(six(value), text);
        }
    }
}
