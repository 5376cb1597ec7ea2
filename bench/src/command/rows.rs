//! The rows of a table that are asked for, and those that a file has already.

use std::path::PathBuf;

use abide::io::Targets;
use abide::{Error, Result};
use clap::Args;

use super::record::{self, Columns, Machine};

/// The arguments that choose rows and keep them in a file.
#[derive(Args)]
pub struct Rows {
    /// Only the rows that have all of these words: a problem, a domain, a type, a boundary; commas give alternatives,
    /// as in --only 2d5pt,3d7pt f32
    #[arg(long, value_name = "WORD", num_args = 1..)]
    only: Vec<String>,

    /// A file for the table; each row is in it as soon as it is measured
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,

    /// Keep the rows that the file has, and measure the others alone; the file must be of this device and commit
    #[arg(long, requires = "csv")]
    append: bool,
}

impl Rows {
    /// Returns whether the words that name a problem are asked for. A name of several words is asked for by any of them.
    pub fn ask_for(&self, words: &[String; 4]) -> bool {
        let is_one = |word: &str| words.iter().flat_map(|own| own.split(' ')).any(|own| own == word);
        self.only.iter().all(|group| group.split(',').any(is_one))
    }

    /// Adds the file to those that are written.
    pub fn target(&self, targets: &mut Targets) {
        self.csv.iter().for_each(|path| targets.rewritten(path, None));
    }

    /// Returns the lines that the file has already, where they are to be kept.
    pub fn kept<L: Columns>(&self, machine: &Machine) -> Result<Vec<L>> {
        let Some(path) = self.csv.as_ref().filter(|path| self.append && path.exists()) else {
            return Ok(Vec::new());
        };
        let known = record::read::<L>(path)?;
        let of = |machine: &Machine| {
            let Machine { device, backend, driver, version, commit, .. } = machine.clone();
            [device, backend, record::one_line(&driver), version, commit].join(", ")
        };
        let (had, has) = (of(&known.machine), of(machine));
        if had != has {
            let message = format!("its rows are of {had}, and this is {has}");
            return Err(Error::file(path, message, "leave --append out, or name another file"));
        }
        Ok(known.lines)
    }

    /// Writes the table, if there is a file for it.
    pub fn write<L: Columns>(&self, machine: &Machine, remarks: &[String], lines: &[L]) -> Result<()> {
        match &self.csv {
            Some(path) => super::write(path, &record::text(machine, remarks, lines)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Line;
    use super::*;

    fn rows(only: &[&str], csv: Option<PathBuf>) -> Rows {
        Rows { only: only.iter().map(|&word| word.to_owned()).collect(), append: csv.is_some(), csv }
    }

    #[test]
    fn words_choose_rows() {
        let words = ["2d5pt", "64x64", "f32", "constant=1"].map(str::to_owned);
        for (only, asked) in [
            (&[][..], true),
            (&["f32"], true),
            (&["f64"], false),
            (&["3d7pt,2d5pt", "f32"], true),
            (&["3d7pt,2d5pt", "f64"], false),
            (&["64x64", "constant=1"], true),
            (&["64"], false),
        ] {
            assert_eq!(rows(only, None).ask_for(&words), asked, "{only:?}");
        }
        let several = ["weak 2d5pt 64x64 fixed", "128x64", "f64", "2"].map(str::to_owned);
        assert!(rows(&["weak", "2d5pt,3d7pt", "64x64"], None).ask_for(&several));
        assert!(!rows(&["strong"], None).ask_for(&several));
    }

    #[test]
    fn rows_of_another_commit_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let own = rows(&[], Some(path));
        let machine = Machine {
            device: "chip".to_owned(),
            driver: "CUDA\n13".to_owned(),
            commit: "a".to_owned(),
            ..Machine::default()
        };
        assert!(own.kept::<Line>(&machine).unwrap().is_empty(), "there is no file yet");
        own.write::<Line>(&machine, &[], &[]).unwrap();
        assert!(
            own.kept::<Line>(&Machine { date: "later".to_owned(), ..machine.clone() }).unwrap().is_empty()
        );
        let error = own.kept::<Line>(&Machine { commit: "b".to_owned(), ..machine }).unwrap_err().to_string();
        assert!(error.contains("leave --append out"), "{error}");
    }
}
