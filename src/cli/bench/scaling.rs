//! `abide bench scaling`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use abide::backend::{self, Devices, Opened};
use abide::bench::{ScalingCase, Settings, Wanted, Way, measure_scaling};
use abide::program::Problem;
use abide::{Error, Execution, Fuse, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::super::{Ended, Ending};
use super::cases::{Cases, Item, Measured};
use super::record::{Columns, significant};

const EXAMPLES: &str = "\
Examples:
  abide bench scaling --csv scaling.csv
  abide bench scaling --devices 1,2 --only weak 2d5pt,3d7pt f64
  abide bench scaling --backend cpu --devices 1,2 --most-cells 12000000 --quick

Stencils on several devices: domains of which each device has as much as one alone (weak), and domains that are divided \
(strong), fixed and periodic. Efficiency is the rate over as many times that of one device in the same table's base; the \
fields after the timed steps are compared to the bit with those of one device.";

/// The arguments of `bench scaling`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Scaling {
    #[command(flatten)]
    cases: Cases,

    /// Numbers of devices [default: 1, 2, 4 and 8, as far as there are]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    devices: Vec<usize>,
}

/// The rate of several devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    case: String,
    dtype: String,
    devices: usize,
    exchange: String,
    domain: String,
    gcells_per_s: f64,
    us_per_iteration: Option<f64>,
    efficiency: f64,
    spread_percent: f64,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] = &[
        "case",
        "dtype",
        "devices",
        "exchange",
        "domain",
        "gcells_per_s",
        "us_per_iteration",
        "efficiency",
        "spread_percent",
    ];
    const COMMAND: &'static str = "abide bench scaling";

    fn words(&self) -> [String; 4] {
        [self.case.clone(), self.domain.clone(), self.dtype.clone(), self.devices.to_string()]
    }
}

/// Returns a case's name: how it scales, the stencil, the domain of one device and its boundary.
fn name(case: &ScalingCase) -> Result<String> {
    let ScalingCase { scaling, stencil, boundary, .. } = case;
    Ok(format!("{} {stencil} {} {boundary}", scaling.name(), case.problem(1)?.shape))
}

/// The backends of each number of devices, opened when first needed, and the rates of one device.
#[derive(Default)]
struct Known {
    opened: HashMap<usize, Opened>,
    base: HashMap<String, f64>,
}

impl Scaling {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        if self.devices.contains(&0) {
            return Err(Ending::usage(Error::limit("--devices", 0, "1 at least", "give other numbers")));
        }
        let header = format!(
            "{:<38}{:>16}{:>5}{:>8}{:>10}{:>10}{:>7}{:>11}{:>10}  plan\n",
            "case", "domain", "type", "devices", "exchange", "GCells/s", "± %", "efficiency", "exchanges"
        );
        let known = Mutex::new(Known::default());
        let (counts, mut items) = (self.counts(), Vec::new());
        for case in ScalingCase::all() {
            for &devices in &counts {
                let problem = case.problem(devices)?;
                let words =
                    [name(&case)?, problem.shape.to_string(), case.dtype.to_string(), devices.to_string()];
                items.push((case, devices, Item { problem, way: WAY, words }));
            }
        }
        let all: HashMap<[String; 4], (ScalingCase, usize)> =
            items.iter().map(|(case, devices, item)| (item.words.clone(), (*case, *devices))).collect();
        let measured = |single: &Opened, item: &Item, settings: &Settings| {
            let (case, devices) = all.get(&item.words).copied().ok_or_else(|| {
                Error::unknown("case", item.words.join(" "), all.keys().map(|words| words.join(" ")))
            })?;
            let base = base(&known, single, &case, settings)?;
            let opened = opened(&known, single, devices)?;
            let row = measure_scaling(&opened, single, &item.problem, settings)?;
            let efficiency = row.gcells_per_s / (base * row.devices as f64);
            let [case, domain, dtype, asked] = item.words.clone();
            let fewer = if row.devices < devices { format!(" ({} run)", row.devices) } else { String::new() };
            let exchange = if row.exchange.is_empty() { "-" } else { row.exchange };
            let text = format!(
                "{case:<38}{domain:>16}{dtype:>5}{asked:>8}{exchange:>10}{:>10.1}{:>7.1}{:>10.1}%{:>9.1}%  {}{fewer}\n",
                row.gcells_per_s,
                row.spread_percent,
                100.0 * efficiency,
                100.0 * row.exchange_share,
                row.plan,
            );
            let line = Line {
                case,
                dtype,
                devices,
                exchange: row.exchange.to_owned(),
                domain,
                gcells_per_s: significant(row.gcells_per_s),
                us_per_iteration: None,
                efficiency: significant(efficiency),
                spread_percent: (100.0 * row.spread_percent).round() / 100.0,
            };
            Ok(Measured { line, text, faults: row.faults })
        };
        // The kernels of slabs are those of other problems than the item's, so they are compiled here.
        let wanted = |single: &Opened, item: &Item| {
            if let Some((_, devices)) = all.get(&item.words)
                && let Ok(opened) = opened(&known, single, *devices)
                && let Ok(plan) = opened.backend.plan(&item.problem, &Settings::default().options)
                && let Some(compiler) = opened.backend.compiler()
            {
                // What does not compile is met when it is measured.
                let _ = compiler.compile(&item.problem, &plan, false);
            }
            Wanted::of(single, &item.problem, &[])
        };
        let items = items.into_iter().map(|(.., item)| item).collect();
        self.cases.execute(items, &header, wanted, measured, |lines| format!("\nrows: {}\n", lines.len()))
    }

    fn counts(&self) -> Vec<usize> {
        match &self.devices[..] {
            [] => {
                let most = self.cases.devices();
                [1, 2, 4, 8].into_iter().filter(|&count| count <= most).collect()
            }
            asked => asked.to_vec(),
        }
    }
}

const WAY: Way = Way { fuse: Fuse::Auto, execution: Execution::Auto };

/// Returns the backend of so many devices.
fn opened(known: &Mutex<Known>, single: &Opened, devices: usize) -> Result<Opened> {
    if devices == 1 {
        return Ok(single.clone());
    }
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(opened) = known.opened.get(&devices) {
        return Ok(opened.clone());
    }
    let opened = backend::open_on(single.backend.name(), &Devices::Count(devices))?;
    known.opened.insert(devices, opened.clone());
    Ok(opened)
}

/// Returns the rate of one device on the domain of one.
fn base(known: &Mutex<Known>, single: &Opened, case: &ScalingCase, settings: &Settings) -> Result<f64> {
    let problem: Problem = case.problem(1)?;
    // Weak and strong cases of one domain have the same base.
    let key = format!("{} {} {} {}", case.stencil, problem.shape, case.dtype, case.boundary);
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&rate) = lock().base.get(&key) {
        return Ok(rate);
    }
    let rate = measure_scaling(single, single, &problem, settings)?.gcells_per_s;
    lock().base.insert(key, rate);
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_names_of_their_own() {
        let words: std::collections::HashSet<String> =
            ScalingCase::all().iter().map(|case| format!("{} {}", name(case).unwrap(), case.dtype)).collect();
        assert_eq!(words.len(), ScalingCase::all().len());
        assert_eq!(name(&ScalingCase::all()[0]).unwrap(), "weak 2d5pt 8352x8352 fixed");
    }
}
