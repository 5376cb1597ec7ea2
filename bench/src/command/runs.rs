//! How often and how thoroughly each row of a table is timed.

use abide::{Error, Result};
use clap::Args;

use crate::Settings;

/// The fewest runs whose median is worth quoting.
const LEAST_REPEATS: usize = 5;

/// The arguments that say how often a row is timed.
#[derive(Args)]
pub struct Runs {
    /// Timed runs, 5 at least without --quick [default: 5; 3 with --quick]
    #[arg(long, value_name = "N")]
    repeats: Option<usize>,

    /// Short runs, for a look instead of a result to quote
    #[arg(long)]
    pub quick: bool,
}

impl Runs {
    /// Returns the number of timed runs.
    pub fn repeats(&self) -> Result<usize> {
        let (least, usual) =
            if self.quick { (1, Settings::quick()) } else { (LEAST_REPEATS, Settings::default()) };
        match self.repeats {
            Some(repeats) if repeats < least => {
                let (limit, change) = (format!("at least {least}"), "give more, or add --quick");
                Err(Error::limit("timed runs", repeats, limit, change))
            }
            asked => Ok(asked.unwrap_or(usual.repeats)),
        }
    }
}
