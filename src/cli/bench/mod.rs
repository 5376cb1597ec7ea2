//! `abide bench`.

mod labels;
mod portable;
mod record;
mod roofline;
mod solvers;
mod stencils;
mod table;

use std::path::PathBuf;

use abide::io::{Staged, check_target};
use abide::{Error, Result};
use clap::{Args, Subcommand};

use super::Outcome;

/// The arguments of `bench`.
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time the linear stencils, set their rates against the hardware's limits, and compare the results to the bit
    Stencils(Box<stencils::Stencils>),
    /// Time iterations of the solvers on matrices of several kinds and sizes, and check their solutions
    Solvers(Box<solvers::Solvers>),
    /// Time several steps at once against one, on wgpu and the CPU, and hold the results to the CPU's
    Portable(portable::Portable),
    /// Draw the roofline of results that --csv wrote
    Roofline(Roofline),
}

impl Bench {
    /// Measures or draws.
    pub fn execute(&self) -> Result<Outcome> {
        match &self.what {
            What::Stencils(args) => args.execute(),
            What::Solvers(args) => args.execute(),
            What::Portable(args) => args.execute(),
            What::Roofline(args) => args.execute(),
        }
    }
}

/// The arguments of `bench roofline`.
#[derive(Args)]
struct Roofline {
    /// Results of `abide bench stencils --csv` on one device
    #[arg(required = true, value_name = "FILE.csv")]
    results: Vec<PathBuf>,

    /// The picture
    #[arg(long, value_name = "FILE.svg")]
    output: PathBuf,
}

impl Roofline {
    fn execute(&self) -> Result<Outcome> {
        check_target(&self.output)?;
        let records = self.results.iter().map(|path| record::read(path)).collect::<Result<Vec<_>>>()?;
        let mut marks = Vec::new();
        for (record, path) in records.iter().zip(&self.results) {
            if record.machine.device != records[0].machine.device {
                let message = format!("its device is {}, not {}", record.machine.device, records[0].machine.device);
                return Err(Error::file(path, message, "draw the results of one device"));
            }
            marks.extend(record.lines.iter().map(roofline::Mark::of).collect::<Result<Vec<_>>>()?);
        }
        let svg = roofline::draw(&records[0].machine, &marks)?;
        write(&self.output, &svg)?;
        super::print(&format!("wrote {}\n", self.output.display()))?;
        Ok(Outcome::Done)
    }
}

/// Puts a text in place of a file.
fn write(path: &std::path::Path, text: &str) -> Result<()> {
    use std::io::Write;
    Staged::new(path)?.fill(|out| out.write_all(text.as_bytes()))?.commit()
}
