//! `abide bench scaling`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use abide::backend::{self, Devices, Opened};
use abide::plan::Exchanging;
use abide::program::Problem;
use abide::solve::SolverError;
use abide::{DType, Error, Execution, Fuse, Options, Result};
use abide_console::{Ended, Ending};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured, Work};
use super::record::{Columns, significant};
use crate::solving;
use crate::solving::scaling::{SYSTEMS, SystemCase, measure_system};
use crate::{ScalingCase, Settings, Wanted, Way, measure_scaling};

const EXAMPLES: &str = "\
Examples:
  abide bench scaling --csv scaling.csv
  abide bench scaling --devices 1,2 --only weak 2d5pt,3d7pt f64
  abide bench scaling --devices 1,2 --only weak --exchange network --csv network.csv
  abide bench scaling --devices 1,2 --only cg
  abide bench scaling --backend cpu --devices 1,2 --most-cells 12000000 --quick

Stencils on several devices: domains of which each device has as much as one alone (weak), and domains that are divided \
(strong), fixed and periodic; and iterations of conjugate gradients on systems that are divided, whose rows count as cells. \
Efficiency is the rate over as many times that of one device in the same table's base; the \
fields after the timed steps, and the residuals and the iterate of a short solve, are compared to the bit with those of one device.";

/// The arguments of `bench scaling`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Scaling {
    #[command(flatten)]
    cases: Cases,

    /// Numbers of devices [default: 1, 2, 4 and 8, as far as there are]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    devices: Vec<usize>,

    /// How stencils' planes are exchanged: auto, stores, copies, network or messages
    #[arg(long, default_value = "auto")]
    exchange: Exchanging,
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

/// What is timed on so many devices.
enum Scaled {
    /// A stencil on a domain.
    Stencil(ScalingCase, Box<Problem>),
    /// Iterations of a solver, on a system of so many rows.
    System(SystemCase, usize),
}

impl Work for Scaled {
    fn cells(&self) -> usize {
        match self {
            Scaled::Stencil(_, problem) => problem.shape.cells(),
            Scaled::System(_, rows) => *rows,
        }
    }

    fn problem(&self) -> Option<&Problem> {
        match self {
            Scaled::Stencil(_, problem) => Some(problem),
            Scaled::System(..) => None,
        }
    }
}

/// What either kind of row has in its columns.
struct Reached {
    devices: usize,
    exchange: &'static str,
    gcells_per_s: f64,
    us_per_iteration: Option<f64>,
    /// The rate of one device.
    base: f64,
    spread_percent: f64,
    exchange_share: f64,
    plan: String,
    faults: Vec<String>,
}

impl Scaling {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        if self.devices.contains(&0) {
            return Err(Ending::usage(Error::limit("--devices", 0, "1 at least", "give other numbers")));
        }
        let header = format!(
            "{:<38}{:>16}{:>5}{:>8}{:>10}{:>10}{:>9}{:>7}{:>11}{:>10}  plan\n",
            "case",
            "domain",
            "type",
            "devices",
            "exchange",
            "GCells/s",
            "µs/iter",
            "± %",
            "efficiency",
            "exchanges"
        );
        let known = Mutex::new(Known::default());
        let (counts, mut items) = (self.counts(), Vec::new());
        let way = Way { fuse: Fuse::Auto, execution: Execution::Auto };
        for case in ScalingCase::all() {
            for &devices in &counts {
                let problem = case.problem(devices)?;
                let words =
                    [name(&case)?, problem.shape.to_string(), case.dtype.to_string(), devices.to_string()];
                items.push(Item { problem: Scaled::Stencil(case, Box::new(problem)), way, words });
            }
        }
        for case in SYSTEMS {
            for &devices in &counts {
                let shape = case.shape()?;
                let words =
                    [case.name.to_owned(), shape.to_string(), DType::F64.to_string(), devices.to_string()];
                items.push(Item { problem: Scaled::System(case, shape.cells()), way, words });
            }
        }
        let measured = |single: &Opened, item: &Item<Scaled>, settings: &Settings| {
            let devices = asked(item);
            let opened = opened(&known, single, devices)?;
            let options = Options { exchange: self.exchange, ..settings.options };
            let settings = &Settings { options, ..*settings };
            let row = match &item.problem {
                Scaled::Stencil(case, problem) => {
                    let base = base(&known, single, case, settings)?;
                    let row = measure_scaling(&opened, single, problem, settings)?;
                    Reached {
                        devices: row.devices,
                        exchange: row.exchange,
                        gcells_per_s: row.gcells_per_s,
                        us_per_iteration: None,
                        base,
                        spread_percent: row.spread_percent,
                        exchange_share: row.exchange_share,
                        plan: row.plan,
                        faults: row.faults,
                    }
                }
                Scaled::System(case, _) => system(&known, &opened, single, case, settings)?,
            };
            Ok(self.line(item, devices, row))
        };
        // The kernels of slabs are those of other problems than the item's, so they are compiled here.
        let wanted = |single: &Opened, item: &Item<Scaled>| {
            let Scaled::Stencil(_, problem) = &item.problem else {
                return Wanted { plans: Vec::new(), any_steps: false };
            };
            if let Ok(opened) = opened(&known, single, asked(item))
                && let Ok(plan) = opened.backend.plan(problem, &Settings::default().options)
                && let Some(compiler) = opened.backend.compiler()
            {
                // What does not compile is met when it is measured.
                let _ = compiler.compile(problem, &plan, false);
            }
            Wanted::of(single, problem, &[])
        };
        self.cases.execute(items, &header, wanted, measured, |lines| format!("\nrows: {}\n", lines.len()))
    }

    /// Puts what was reached into columns.
    fn line(&self, item: &Item<Scaled>, devices: usize, row: Reached) -> Measured<Line> {
        let efficiency = row.gcells_per_s / (row.base * row.devices as f64);
        let [case, domain, dtype, asked] = item.words.clone();
        let fewer = if row.devices < devices { format!(" ({} run)", row.devices) } else { String::new() };
        let exchange = if row.exchange.is_empty() { "-" } else { row.exchange };
        let text = format!(
            "{case:<38}{domain:>16}{dtype:>5}{asked:>8}{exchange:>10}{:>10.1}{:>9}{:>7.1}{:>10.1}%{:>9.1}%  {}{fewer}\n",
            row.gcells_per_s,
            row.us_per_iteration.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}")),
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
            us_per_iteration: row.us_per_iteration.map(significant),
            efficiency: significant(efficiency),
            spread_percent: (100.0 * row.spread_percent).round() / 100.0,
        };
        Measured { line, text, faults: row.faults }
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

/// Returns the number of devices that an item asks for, its last word.
fn asked(item: &Item<Scaled>) -> usize {
    item.words[3].parse().unwrap_or(1)
}

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

/// Times iterations of a solver, and on one device where that was not done yet.
fn system(
    known: &Mutex<Known>,
    opened: &Opened,
    single: &Opened,
    case: &SystemCase,
    settings: &Settings,
) -> Result<Reached> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    let settings =
        solving::Settings { seconds: settings.seconds, repeats: settings.repeats, ..Default::default() };
    let measured = |opened: &Opened| {
        measure_system(opened, single, case, &settings).map_err(|error| match error {
            SolverError::Invalid(error) => error,
            error => Error::device(single.backend.name(), case.name, error.to_string()),
        })
    };
    let row = measured(opened)?;
    let alone = lock().base.get(case.name).copied();
    let base = match alone {
        Some(base) => base,
        None if row.devices == 1 => row.grows_per_s,
        None => measured(single)?.grows_per_s,
    };
    lock().base.insert(case.name.to_owned(), base);
    Ok(Reached {
        devices: row.devices,
        exchange: row.exchange,
        gcells_per_s: row.grows_per_s,
        us_per_iteration: Some(row.us_per_iteration),
        base,
        spread_percent: row.spread_percent,
        exchange_share: row.exchange_share,
        plan: row.plan,
        faults: row.faults,
    })
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
