//! `abide plan`.

use abide::backend::{self, Advances, Devices, Ran, Timing};
use abide::device::{Capability, Link, PRESETS};
use abide::plan::fused::{Report, report};
use abide::plan::papers::{Compared, compare};
use abide::plan::{Alike, notes_probes, plan_ranks};
use abide::program::Problem;
use abide::{Choice, DeviceSpec, Error, Options, Plan, Result};
use abide_console::RunOptions;
use abide_console::headings::{DEVICES, LOOPS, MEASURING, PLANNING};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::devices_chosen::DeviceArguments;
use super::fusion::{Answer, LoopArgs};
use super::problem::Domain;
use super::record::{Probe, every, probing};
use super::{Ended, measured, print, print_json};

const EXAMPLES: &str = "\
Examples:
  abide plan 2d5pt --size 3072x3072 --device a100
  abide plan 3d7pt --size 512x512x512 --device rtx4090
  abide plan gray-scott --size 4096x4096 --device h200 --cache registers
  abide plan 3d7pt --size 256x256x256 --dtype f64 --backend cpu
  abide plan 3d7pt --size 256x256x256 --dtype f64 --backend cpu --devices 4
  abide plan 3d7pt --size 32768x512x512 --dtype f64 --device h200 --devices 64 --link 40,45
  abide plan 3d7pt --size 512x512x512 --dtype f64 --device a100 --papers
  abide plan 2d5pt --size 8352x8352 --measured --tune full
  abide plan 2d5pt --size 64x64 --batch 4096 --device h200
  abide plan cloverleaf --size 3840x3840 --dtype f64 --device h200 --papers
  abide plan cloverleaf --size 3840x3840 --dtype f64 --fuse search --measured
  abide plan cloverleaf --device h200 --graph loops.svg";

/// The device that is planned for where no device is present.
const DEFAULT: &str = "a100";

/// The arguments of `plan`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    #[command(flatten)]
    domain: Domain,

    #[command(flatten)]
    run_options: RunOptions,

    #[arg(long, value_name = "NAME", conflicts_with = "backend", help = format!(
        "A device that need not be here: {}", PRESETS.join(", "),
    ))]
    device: Option<String>,

    /// The device of this backend [default: CUDA's where there is one, else that of --device a100]
    #[arg(long)]
    backend: Option<Choice>,

    #[command(flatten)]
    several: DeviceArguments,

    /// The network between several devices that need not be here: the microseconds of an exchange, and the GB/s that leave a
    /// device, as in 40,45 [default: the device's own in one host]
    #[arg(long, help_heading = DEVICES, value_name = "MICROSECONDS,GB/S", requires = "device")]
    link: Option<Link>,

    /// Time the plans around the planner's own choice on the device: predicted beside measured. As many as
    /// --tune asks for, and the fastest is kept where it asks for any; else a few, and nothing is kept. Of a program
    /// of several loops each group is timed, and each loop by itself
    #[arg(long, help_heading = MEASURING, conflicts_with = "device")]
    measured: bool,

    /// Show beside the plan what the models of the PERKS and EBISU papers would choose for the device, and
    /// project; with --measured also what the device reaches of that. Of a program of several loops also the groups that a
    /// search finds to be fused, with a model's times and the fusion paper's projection
    #[arg(long, help_heading = LOOPS)]
    papers: bool,

    /// Say what runs where a run halts after every N steps, as one with a record of N does: how deep its passes are, and what
    /// they move
    #[arg(long, help_heading = PLANNING, value_name = "N", value_parser = every, allow_negative_numbers = true, conflicts_with = "measured")]
    record_every: Option<u64>,

    /// A value of a field that the record has: u@12,40; may be given several times
    #[arg(long = "probe", help_heading = PLANNING, value_name = "FIELD@I,J,K", requires = "record_every")]
    probes: Vec<Probe>,

    #[command(flatten)]
    loops: LoopArgs,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

/// A plan as JSON.
#[derive(Serialize)]
struct Reported<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    halting: Option<Halting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    papers: Option<Compared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fusion: Option<Answer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Value>,
}

/// What of a plan runs where a run halts again and again.
#[derive(Serialize)]
struct Halting {
    /// Steps between halts.
    every: u64,
    /// What runs in 1000 steps or so.
    ran: Ran,
    /// Bytes per cell and step.
    bytes: f64,
}

impl Halting {
    /// Returns what runs of a plan; of programs that are not plain all does, for they record on the device.
    fn of(problem: &Problem, plan: &Plan, every: u64) -> Halting {
        let steps = every.max(1000 / every * every);
        let advances =
            if problem.is_plain() { Advances::halting(steps, every) } else { Advances::one(steps) };
        let cells = plan.cells() as f64;
        let bytes = plan.project_advances(&advances).memory_bytes / cells / steps as f64;
        Halting { every, ran: Ran::of(plan, &advances), bytes }
    }

    /// Returns the line of an explanation.
    fn line(&self) -> String {
        let Halting { every, ran, bytes } = self;
        format!(
            "{:<14}every {every} step{}: passes of {} step{} at the most, {bytes:.2} bytes per cell and step\n",
            "halting",
            if *every == 1 { "" } else { "s" },
            ran.depth,
            if ran.depth == 1 { "" } else { "s" },
        )
    }
}

impl PlanArgs {
    /// Plans and explains.
    pub fn execute(&self) -> Ended {
        let mut builder = self.domain.describe(&[], None)?.builder;
        if let Some(every) = self.record_every.filter(|_| !self.probes.is_empty()) {
            builder = probing(builder.record(every), &self.probes)?;
        }
        let problem = builder.problem()?;
        let options = self.run_options.options();
        if self.papers && problem.is_batch() {
            let error = Error::unsupported(
                "--papers",
                "the papers' models are of a single domain, a batch was asked for",
                "leave --papers out, or --batch",
            );
            return Err(error.into());
        }
        self.loops.check(self.domain.model_file())?;
        let devices = self.several.devices()?;
        if self.measured && !devices.is_one() {
            let reason = format!("{devices} were asked for, and plans are timed on one");
            return Err(Error::unsupported("--measured", reason, "ask for one device").into());
        }
        if self.measured {
            return self.measure(&problem, &options);
        }
        let preset = |name: &str| -> Result<Plan> {
            let mut device = DeviceSpec::preset(name)?;
            device.link = self.link.or(device.link);
            let count = match &devices {
                Devices::Count(count) => *count,
                other => {
                    let reason = format!("{other} were asked for, and it need not be here");
                    let change = "ask for a number of devices (--devices 4)";
                    return Err(Error::unsupported(format!("--device {name}"), reason, change));
                }
            };
            if count > 1 && !device.has(Capability::Warps) {
                let reason = format!("{count} devices were asked for, and wgpu runs on one");
                let change = "leave --devices out, or plan for a device of CUDA";
                return Err(Error::unsupported(format!("--device {name}"), reason, change));
            }
            let mut plan = plan_ranks(&problem, &options, &Alike { device: &device, count })?;
            if options.tune.measures() {
                let asked = format!("tuning {} was asked for", options.tune);
                plan.notes.push(format!("{asked}: nothing can be timed on a device that is not opened"));
            }
            Ok(plan)
        };
        let mut notes = Vec::new();
        let mut plan: Plan = match (&self.device, self.backend) {
            (Some(name), _) => preset(name)?,
            (None, Some(Choice::Named(name))) => {
                backend::plan(&backend::open_on(name, &devices)?, &problem, &options)?
            }
            (None, None | Some(Choice::Auto)) => match backend::open_on("cuda", &devices) {
                Ok(opened) => backend::plan(&opened, &problem, &options)?,
                Err(Error::Unavailable { .. } | Error::Unknown { .. }) => {
                    notes.push(format!(
                        "no CUDA device here: planned for an {}; --device takes {}",
                        DEFAULT.to_uppercase(),
                        PRESETS.join(", ")
                    ));
                    preset(DEFAULT)?
                }
                Err(error) => return Err(error.into()),
            },
        };
        plan.notes.splice(0..0, notes);
        let papers = if self.papers { Some(compare(&problem, &plan, &[])?) } else { None };
        let fusion = self.loops.groups(&problem, &plan.device, self.papers)?;
        let groups =
            if problem.is_plain() || problem.is_batch() { None } else { report(&problem, &plan, &[])? };
        self.print(&problem, &plan, papers, fusion, groups.filter(Report::has_groups))
    }

    /// Prints a plan with everything that was asked for beside it.
    fn print(
        &self,
        problem: &Problem,
        plan: &Plan,
        papers: Option<Compared>,
        fusion: Option<Answer>,
        groups: Option<Report>,
    ) -> Ended {
        let halts = self.record_every.filter(|_| !notes_probes(problem, plan));
        let halting = halts.map(|every| Halting::of(problem, plan, every));
        if self.json {
            let groups = groups.as_ref().map(measured::groups_as_json);
            print_json(&Reported { plan, halting, papers, fusion, groups })?;
        } else {
            let groups = groups.map(|groups| format!("\n{groups}")).unwrap_or_default();
            let fusion = fusion.map(|answer| answer.table()).unwrap_or_default();
            let halting = halting.map(|halting| halting.line()).unwrap_or_default();
            print(&(plan.explain() + &halting + &after(papers.as_ref()) + &groups + &fusion))?;
        }
        Ok(())
    }

    /// Times plans and compares.
    fn measure(&self, problem: &Problem, options: &Options) -> Ended {
        let opened = match self.backend {
            Some(Choice::Named(name)) => backend::open(name)?,
            None | Some(Choice::Auto) => backend::open("cuda")?,
        };
        if !problem.is_plain() && !problem.is_batch() {
            let (plan, groups) = backend::measure_groups(&opened, problem, options, &Timing::default())?;
            let papers = if self.papers { Some(compare(problem, &plan, &[])?) } else { None };
            let fusion = self.loops.groups(problem, &plan.device, self.papers)?;
            return self.print(problem, &plan, papers, fusion, Some(groups));
        }
        let rows = backend::measure(&opened, problem, options)?;
        let papers = match rows.first() {
            Some(own) if self.papers => Some(compare(problem, &own.plan, &rows)?),
            _ => None,
        };
        // Loops of a plain program are fused by no kernel: nothing is timed of their groups.
        let fusion = match rows.first() {
            Some(own) => self.loops.groups(problem, &own.plan.device, self.papers)?,
            None => None,
        };
        if self.json {
            let mut reported = measured::as_json(&rows, problem, &opened, options, papers.as_ref());
            if let Some(fusion) = fusion {
                reported["fusion"] = serde_json::json!(fusion);
            }
            print_json(&reported)?;
        } else {
            let groups = fusion.map(|answer| answer.table()).unwrap_or_default();
            print(&(measured::table(&rows, problem, &opened) + &after(papers.as_ref()) + &groups))?;
        }
        Ok(())
    }
}

/// Returns what the papers' models say, after a blank line, or nothing where they were not asked.
fn after(papers: Option<&Compared>) -> String {
    papers.map(|papers| format!("\n{papers}")).unwrap_or_default()
}
