//! `--record`: computed scalars and probed values of a run, as a file that grows with it.

use std::path::PathBuf;

use abide::backend::processes;
use abide::io::Table;
use abide::program::{Probe as Place, Rows};
use abide::{Builder, Error, Result, Simulation};
use abide_console::headings::OUTPUT;
use clap::Args;

/// The arguments that concern the record.
#[derive(Args)]
pub struct Recorded {
    /// A .csv file of the computed scalars, and of probed values, after each step: step,time,NAME… It grows
    /// while the run goes on
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Steps between rows of the record, counted from the start [default: 1]
    #[arg(long, help_heading = OUTPUT, value_name = "N", value_parser = every, allow_negative_numbers = true, requires = "record")]
    record_every: Option<u64>,

    /// A value of a field that the record has too, by its indices, slowest axis first: u@12,40; may be given
    /// several times
    #[arg(long = "probe", help_heading = OUTPUT, value_name = "FIELD@I,J,K", requires = "record")]
    probes: Vec<Probe>,
}

/// One `--probe`.
#[derive(Clone)]
pub struct Probe {
    field: String,
    index: Vec<usize>,
}

impl std::str::FromStr for Probe {
    type Err = Error;

    fn from_str(text: &str) -> Result<Probe> {
        Place::parse(text).map(|(field, index)| Probe { field, index })
    }
}

pub(super) fn every(text: &str) -> Result<u64> {
    super::whole("steps between rows", text, 1, "100")
}

impl Recorded {
    /// Adds the record to a description.
    pub fn apply(&self, mut builder: Builder) -> Result<Builder> {
        if self.record.is_none() {
            return Ok(builder);
        }
        builder = builder.record(self.record_every.unwrap_or(1));
        probing(builder, &self.probes)
    }
}

/// Adds probes to a description.
pub fn probing(builder: Builder, probes: &[Probe]) -> Result<Builder> {
    let name = |probe: &Probe| {
        let index: Vec<String> = probe.index.iter().map(usize::to_string).collect();
        format!("{}@{}", probe.field, index.join(","))
    };
    super::once("--probe", probes.iter().map(name).collect::<Vec<_>>().iter())?;
    Ok(probes.iter().fold(builder, |builder, probe| builder.probe(&probe.field, &probe.index)))
}

/// The file of a record while a run goes on.
pub struct Recording {
    path: PathBuf,
    /// None in all processes but the first.
    table: Option<Table>,
    rows: u64,
    /// The rows of the run before.
    kept: u64,
    /// The reason why the file ends early; the run went on.
    fault: Option<Error>,
}

impl Recording {
    /// Begins the file with its names and the values before the first step. A run that goes on adds to the file of the
    /// run before, where it is there: it then holds what the file of one run holds.
    pub fn begin(recorded: &Recorded, simulation: &mut Simulation) -> Result<Option<Recording>> {
        let Some(path) = recorded.record.clone() else { return Ok(None) };
        let (begun, columns) = (simulation.step(), simulation.columns());
        let mut rows = simulation.records()?;
        let mut kept = 0;
        let mut open = || {
            if begun > 0
                && let Some((table, before)) = Table::resume(&path, &columns, begun)?
            {
                kept = before;
                return Ok(table);
            }
            Table::new(&path, &columns)
        };
        let table = processes::is_first().then(&mut open).transpose()?;
        // In the run before, no row was due at the step where it ended.
        if kept > 0 && !begun.is_multiple_of(recorded.record_every.unwrap_or(1)) {
            rows = Rows::new(columns.len().saturating_sub(1));
        }
        let mut recording = Recording { path, table, rows: 0, kept, fault: None };
        match recording.add(&rows) {
            Some(fault) => Err(fault),
            None => Ok(Some(recording)),
        }
    }

    /// Adds rows. Once a row cannot be written, none is; returns the reason the first time.
    pub fn add(&mut self, rows: &Rows) -> Option<Error> {
        if self.fault.is_some() {
            return None;
        }
        match self.table.as_mut().map_or(Ok(()), |table| table.add(rows)) {
            Ok(()) => self.rows += rows.len() as u64,
            Err(fault) => self.fault = Some(fault),
        }
        self.fault.clone()
    }

    /// Returns the file in words, or the reason why it ends early.
    pub fn finish(self) -> Result<String> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.kept > 0 => Ok(format!(
                "{} ({} rows, behind the {} of earlier steps)",
                self.path.display(),
                self.rows,
                self.kept
            )),
            None => Ok(format!("{} ({} rows)", self.path.display(), self.rows)),
        }
    }
}
