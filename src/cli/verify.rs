//! `abide verify`.

use abide::Result;
use clap::Args;

use super::Outcome;

/// The arguments of `verify`.
#[derive(Args)]
pub struct Verify {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Compares and prints the table.
    pub fn execute(&self) -> Result<Outcome> {
        let _ = self.json;
        Ok(Outcome::Failed)
    }
}
