//! `abide bench functions`: the rates of elementary functions, beside the platform's own.

use std::path::PathBuf;

use abide::functions::{Function, FunctionRate};
use abide::io::Targets;
use abide::{Choice, DType, Error, Result};
use abide_console::{Ended, print, print_report};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{choose, judge};

const EXAMPLES: &str = "\
Examples:
  abide bench functions
  abide bench functions --backend cuda --csv benches/results/h200-functions.csv

A rate is of values that stay in registers or the first-level cache: on a CPU on one thread, on CUDA on the whole device. \
The platform's function is the standard library's on a CPU, and CUDA's own, compiled in the same text with the same \
options. On CUDA every value of the formula is compared with the CPU's, to the bit.";

/// The arguments of `bench functions`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Functions {
    /// cuda or cpu, or auto: the first that is present
    #[arg(long, default_value = "auto", value_name = "NAME")]
    backend: Choice,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// A file for the table
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    backend: &'a str,
    device: &'a str,
    function: &'static str,
    dtype: DType,
    values_per_s: f64,
    platform_values_per_s: f64,
    ratio: f64,
    wrong_bits: usize,
}

impl Functions {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let mut targets = Targets::default();
        self.csv.iter().for_each(|path| targets.rewritten(path, None));
        targets.check()?;
        let lacks = |opened: &abide::backend::Opened| match opened.backend.name() {
            "wgpu" => Some("does not time functions"),
            _ => None,
        };
        let (opened, notes) = choose(self.backend, lacks)?;
        let backend = &*opened.backend;
        let device = backend.device().name.clone();
        if !self.json {
            notes.iter().try_for_each(|note| print(&format!("{note}\n")))?;
            print(&format!(
                "{device}, {} ({})\n\n{:<8} {:<4} {:>12} {:>12} {:>7}\n",
                backend.name(),
                backend.driver(),
                "function",
                "type",
                "1e9 values/s",
                "platform",
                "ratio"
            ))?;
        }
        let mut lines = Vec::new();
        for dtype in [DType::F64, DType::F32] {
            for &function in Function::ALL {
                let Some(rate) = backend.function_rate(function, dtype)? else {
                    let (what, change) = (format!("backend {}", backend.name()), "use --backend cuda or cpu");
                    return Err(Error::unsupported(what, "it does not time functions", change).into());
                };
                let FunctionRate { formula, platform, wrong } = rate;
                if !self.json {
                    let fault = if wrong > 0 { format!("  WRONG: {wrong} values") } else { String::new() };
                    print(&format!(
                        "{:<8} {dtype:<4} {:>12.3} {:>12.3} {:>7.2}{fault}\n",
                        function.name(),
                        formula / 1e9,
                        platform / 1e9,
                        formula / platform
                    ))?;
                }
                lines.push(Line {
                    backend: backend.name(),
                    device: &device,
                    function: function.name(),
                    dtype,
                    values_per_s: formula,
                    platform_values_per_s: platform,
                    ratio: formula / platform,
                    wrong_bits: wrong,
                });
            }
        }
        if let Some(path) = &self.csv {
            super::write(path, &csv(&lines)?)?;
        }
        let holds = lines.iter().all(|line| line.wrong_bits == 0);
        if self.json {
            return print_report(&json!({ "holds": holds, "rows": lines, "notes": notes }), judge(holds));
        }
        judge(holds)
    }
}

fn csv(lines: &[Line<'_>]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: &dyn std::fmt::Display| {
        Error::invalid("the table", error.to_string(), "report this as a defect of Abide")
    };
    for line in lines {
        writer.serialize(line).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}
