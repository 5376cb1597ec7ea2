//! `abide verify`.

use std::fmt::Write as _;

use abide::verify::{Finding, Verification, verify};
use abide::{Choice, DType, catalogue};
use clap::Args;
use indicatif::ProgressBar;

use super::{Ended, Ending, print_report};

const ABOUT: &str = "\
Runs every stencil and model at awkward sizes, under every boundary, in both types, on every backend that is here (with \
every execution, cache policy and some depths it has), and compares with the reference: code that reads like the definition. CPU and \
CUDA must have its bits; for wgpu, whose drivers may fuse operations, the bound in units in the last place (ulp) is \
stated, unless a comparison may fall either way. Absent backends are skipped by name; ABIDE_REQUIRE=wgpu,cuda makes that a failure.";

/// The arguments of `verify`.
#[derive(Args)]
#[command(after_help = ABOUT)]
pub struct Verify {
    /// Only these stencils and models, as `abide list` names them [default: all]
    names: Vec<String>,

    /// Only this backend: cpu, wgpu or cuda [default: all]
    #[arg(long, default_value = "auto", hide_default_value = true)]
    backend: Choice,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Compares and prints the table.
    pub fn execute(&self) -> Ended {
        let named = self.names.iter().map(|name| catalogue::find(name)).collect::<Result<Vec<_>, _>>()?;
        let entries = if named.is_empty() { catalogue::entries().collect() } else { named };
        let bar = ProgressBar::new(0);
        let verification = verify(self.backend, &entries, |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let verification = verification?;
        let ended = match verification.holds() {
            true => Ok(()),
            false => {
                Err(Ending::refuted("not all is within its bounds, or a backend that must be here is not"))
            }
        };
        if self.json {
            return print_report(&verification, ended);
        }
        super::print(&table(&verification))?;
        ended
    }
}

/// Formats a line for each entry and a column for each backend and type: the largest difference, and the
/// bound where it is not 0.
fn table(verification: &Verification) -> String {
    const NAME: usize = 22;
    let findings = &verification.findings;
    let mut columns: Vec<(&str, DType)> = Vec::new();
    let mut entries: Vec<&str> = Vec::new();
    for finding in findings {
        if !columns.contains(&(finding.backend, finding.dtype)) {
            columns.push((finding.backend, finding.dtype));
        }
        if !entries.contains(&finding.entry) {
            entries.push(finding.entry);
        }
    }
    columns.sort_by_key(|(backend, dtype)| (*backend, dtype.bytes()));
    let mut text = String::from(
        "Largest difference from the reference in ulp: after 7 steps or more, where the bound is 0; \"1.5 of 4.0\" where it is not,\nof any one step, in ulp of the fields' largest magnitude\n\n",
    );
    let row = |text: &mut String, name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>16}")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<NAME$}{cells}");
    };
    row(&mut text, "", columns.iter().map(|(backend, dtype)| format!("{backend} {dtype}")).collect());
    for entry in entries {
        let of = |column: &(&str, DType)| {
            findings.iter().find(|f| f.entry == entry && (f.backend, f.dtype) == *column)
        };
        row(
            &mut text,
            entry,
            columns.iter().map(|column| of(column).map(cell).unwrap_or_default()).collect(),
        );
    }
    let mut refused: Vec<&str> = findings.iter().filter_map(|f| f.refused.as_deref()).collect();
    refused.sort_unstable();
    refused.dedup();
    for reason in refused {
        let _ = writeln!(text, "refused: {reason}");
    }
    for finding in findings {
        if let Some(worst) = &finding.worst {
            let _ = writeln!(
                text,
                "differs: {} by {} ulp, the bound is {}: {worst}",
                finding.backend, finding.largest, finding.bound
            );
        }
        for error in &finding.errors {
            let _ = writeln!(text, "failed: {}: {error}", finding.backend);
        }
    }
    for skipped in &verification.skipped {
        let required = if skipped.required { ", but it is required" } else { "" };
        let _ = writeln!(text, "skipped: {}{required}: {}", skipped.backend, skipped.reason);
    }
    let runs: usize = findings.iter().map(|f| f.runs).sum();
    let left_out: usize = findings.iter().map(|f| f.left_out).sum();
    if left_out > 0 {
        let _ = writeln!(
            text,
            "{left_out} runs left out: a streaming kernel cannot do what they ask, the other kernels did"
        );
    }
    let verdict =
        if verification.holds() { "all within their bounds" } else { "NOT all within their bounds" };
    let _ = writeln!(text, "{runs} runs compared: {verdict}");
    text
}

fn cell(finding: &Finding) -> String {
    match finding {
        f if !f.errors.is_empty() => "error".to_owned(),
        f if f.runs == 0 => "refused".to_owned(),
        f if f.bound == 0.0 => f.largest.to_string(),
        f if f.bound.is_infinite() => format!("{:.1}, no bound", f.largest),
        f => format!("{:.1} of {:.1}", f.largest, f.bound),
    }
}
