//! Results as a file: a line for each rate, and comments that describe the machine.

use std::fmt::Write as _;
use std::path::Path;

use abide::backend::Opened;
use abide::io::bounded;
use abide::{DType, Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Row;

/// The machine and the software with which rates were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    /// The day and minute, UTC.
    pub date: String,
    /// The device's name.
    pub device: String,
    /// The backend's name.
    pub backend: String,
    /// The backend's words on its driver.
    pub driver: String,
    /// The version of Abide.
    pub version: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// The bandwidth of the device's memory in 10⁹ bytes per second; 0 where the device does not report it.
    pub memory_gb_per_s: f64,
    /// The device's peak in f32 in 10¹² operations per second; 0 where the device does not report it.
    pub f32_tflop_per_s: f64,
    /// The device's peak in f64 in 10¹² operations per second; 0 where the device does not report it.
    pub f64_tflop_per_s: f64,
}

impl Machine {
    /// Describes the machine at hand, now.
    pub fn of(opened: &Opened) -> Machine {
        let device = opened.backend.device();
        Machine {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            device: device.name.clone(),
            backend: opened.backend.name().to_owned(),
            driver: opened.backend.driver(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("ABIDE_COMMIT").to_owned(),
            memory_gb_per_s: significant(device.memory_bandwidth / 1e9),
            f32_tflop_per_s: significant(device.f32_flops / 1e12),
            f64_tflop_per_s: significant(device.f64_flops / 1e12),
        }
    }

    /// Returns the head of a table: the machine, and one line per note.
    pub fn title(&self, notes: &[String]) -> String {
        let Machine { device, backend, driver, version, commit, date, .. } = self;
        let head = format!("{device}, {backend} ({driver}), abide {version} ({commit}), {date}\n");
        notes.iter().fold(head, |text, note| text + note + "\n")
    }

    /// Returns the device's peak in a type, in 10¹² operations per second.
    pub fn tflop_per_s(&self, dtype: DType) -> f64 {
        match dtype {
            DType::F32 => self.f32_tflop_per_s,
            DType::F64 => self.f64_tflop_per_s,
        }
    }

    /// Returns names and values, as they stand at the head of a file.
    pub fn comments(&self) -> [(&'static str, String); 9] {
        [
            ("date", self.date.clone()),
            ("device", self.device.clone()),
            ("backend", self.backend.clone()),
            ("driver", self.driver.clone()),
            ("abide", self.version.clone()),
            ("commit", self.commit.clone()),
            ("memory_gb_per_s", self.memory_gb_per_s.to_string()),
            ("f32_tflop_per_s", self.f32_tflop_per_s.to_string()),
            ("f64_tflop_per_s", self.f64_tflop_per_s.to_string()),
        ]
    }

    fn from_comments(text: &str) -> Machine {
        let find = |key: &str| {
            let comments = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(':'));
            comments
                .map(|(name, value)| (name.trim(), value.trim()))
                .find(|(name, _)| *name == key)
                .map_or("", |c| c.1)
        };
        let number = |key: &str| find(key).parse().unwrap_or(0.0);
        Machine {
            date: find("date").to_owned(),
            device: find("device").to_owned(),
            backend: find("backend").to_owned(),
            driver: find("driver").to_owned(),
            version: find("abide").to_owned(),
            commit: find("commit").to_owned(),
            memory_gb_per_s: number("memory_gb_per_s"),
            f32_tflop_per_s: number("f32_tflop_per_s"),
            f64_tflop_per_s: number("f64_tflop_per_s"),
        }
    }
}

/// A line of a file of results; its fields are the columns, in their order.
pub trait Columns: Clone + Serialize + DeserializeOwned {
    /// The names of the columns.
    const NAMES: &'static [&'static str];
    /// The command that writes such files.
    const COMMAND: &'static str;

    /// Returns the words that name the line's problem, as [`crate::words`] does.
    fn words(&self) -> [String; 4];
}

/// A rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub stencil: String,
    pub dtype: String,
    pub domain: String,
    pub boundary: String,
    pub steps: u64,
    pub gcells_per_s: f64,
    pub spread_percent: f64,
    pub share_of_ceiling: Option<f64>,
    pub cache: String,
    pub depth: u32,
    pub plan: String,
}

impl Line {
    /// Returns a row's line, its numbers to four digits.
    pub fn of(row: &Row) -> Line {
        Line {
            stencil: row.stencil.clone(),
            dtype: row.dtype.to_string(),
            domain: row.shape.to_string(),
            boundary: row.boundary.clone(),
            steps: row.steps,
            gcells_per_s: significant(row.gcells_per_s),
            spread_percent: (100.0 * row.spread_percent).round() / 100.0,
            share_of_ceiling: row.share_of_ceiling.map(significant),
            cache: row.cache.to_string(),
            depth: row.depth,
            plan: row.plan.clone(),
        }
    }
}

impl Columns for Line {
    const NAMES: &'static [&'static str] = &[
        "stencil",
        "dtype",
        "domain",
        "boundary",
        "steps",
        "gcells_per_s",
        "spread_percent",
        "share_of_ceiling",
        "cache",
        "depth",
        "plan",
    ];
    const COMMAND: &'static str = "abide bench stencils";

    fn words(&self) -> [String; 4] {
        [&self.stencil, &self.domain, &self.dtype, &self.boundary].map(String::clone)
    }
}

/// A file of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<L> {
    /// The machine that was measured.
    pub machine: Machine,
    /// The lines.
    pub lines: Vec<L>,
}

/// Returns a text as a comment has it: on one line.
pub fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the file's text; `remarks` become comments after those of the machine. A comment is one line,
/// whatever its text.
pub fn text<L: Columns>(machine: &Machine, remarks: &[String], lines: &[L]) -> Result<String> {
    let fault = |error: &dyn std::fmt::Display| {
        Error::invalid("the results as CSV", error.to_string(), "leave --csv out, or take --json")
    };
    let mut text = String::new();
    for (key, value) in machine.comments() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# {key}: {}", one_line(&value));
    }
    for remark in remarks {
        let _ = writeln!(text, "# {}", one_line(remark));
    }
    // Without lines the serialiser would leave the header out, so the header is written apart.
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(L::NAMES).map_err(|e| fault(&e))?;
    for line in lines {
        writer.serialize(line).map_err(|e| fault(&e))?;
    }
    let table = writer.into_inner().map_err(|e| fault(&e))?;
    text.push_str(&String::from_utf8(table).map_err(|e| fault(&e))?);
    Ok(text)
}

/// Reads a file that [`text`] made.
pub fn read<L: Columns>(path: &Path) -> Result<Record<L>> {
    let change = format!("give a file that `{} --csv` wrote", L::COMMAND);
    let text = bounded::text(path, bounded::LARGEST_TABLE, &change)?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let lines =
        reader.deserialize().collect::<Result<Vec<L>, _>>().map_err(|e| Error::file(path, e, &change))?;
    Ok(Record { machine: Machine::from_comments(&text), lines })
}

/// Rounds a number to four digits.
pub fn significant(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let machine = Machine {
            date: "2026-01-02 03:04 UTC".to_owned(),
            device: "Some GPU: fast".to_owned(),
            backend: "cuda".to_owned(),
            driver: "CUDA 13.0,\nkernel module 1.2".to_owned(),
            version: "0.1.0".to_owned(),
            commit: "abc".to_owned(),
            memory_gb_per_s: 4800.0,
            f32_tflop_per_s: 66.91,
            f64_tflop_per_s: 0.0,
        };
        let line = Line {
            stencil: "2d5pt".to_owned(),
            dtype: "f64".to_owned(),
            domain: "8352x8352".to_owned(),
            boundary: "fixed".to_owned(),
            steps: 1200,
            gcells_per_s: 1078.0,
            spread_percent: 0.41,
            share_of_ceiling: None,
            cache: "mixed".to_owned(),
            depth: 8,
            plan: "persistent, cache mixed, \"all\"".to_owned(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let remarks = ["a remark\nof two lines".to_owned()];
        std::fs::write(&path, text(&machine, &remarks, &[line.clone(), line.clone()]).unwrap()).unwrap();
        let record = read::<Line>(&path).unwrap();
        let driver = "CUDA 13.0, kernel module 1.2".to_owned();
        assert_eq!(
            record,
            Record { machine: Machine { driver, ..machine.clone() }, lines: vec![line.clone(), line] }
        );
        std::fs::write(&path, text::<Line>(&machine, &[], &[]).unwrap()).unwrap();
        assert_eq!(read::<Line>(&path).unwrap().lines, []);
        std::fs::write(&path, "stencil,rate\n2d5pt,3\n").unwrap();
        assert!(read::<Line>(&path).unwrap_err().to_string().contains("bench stencils --csv"));
    }

    #[test]
    fn four_digits_are_enough() {
        assert_eq!([1078.34, 0.123456, 98765.4, 0.0].map(significant), [1078.0, 0.1235, 98770.0, 0.0]);
    }
}
