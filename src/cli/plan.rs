//! `abide plan`.

use abide::backend;
use abide::device::PRESETS;
use abide::{Choice, DeviceSpec, Error, Plan, Result};
use clap::Args;

use super::Outcome;
use super::problem::{Domain, Manner};

const EXAMPLES: &str = "\
Examples:
  abide plan 2d5pt --size 3072x3072 --device a100
  abide plan gray-scott --size 4096x4096 --device h200 --cache registers
  abide plan 3d7pt --size 256x256x256 --dtype f64 --backend cpu";

/// The device that is planned for where none is here.
const DEFAULT: &str = "a100";

/// The arguments of `plan`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    #[command(flatten)]
    domain: Domain,

    #[command(flatten)]
    manner: Manner,

    /// A device that need not be here: v100, a100, h100 or h200
    #[arg(long, conflicts_with = "backend")]
    device: Option<String>,

    /// The device of this backend [default: CUDA's where there is one, else that of --device a100]
    #[arg(long)]
    backend: Option<Choice>,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

impl PlanArgs {
    /// Plans and explains.
    pub fn execute(&self) -> Result<Outcome> {
        let problem = self.domain.describe(&[], None)?.builder.problem()?;
        let options = self.manner.options();
        let preset =
            |name: &str| DeviceSpec::preset(name).and_then(|device| abide::plan::plan(&problem, &device, &options));
        let mut notes = Vec::new();
        let mut plan: Plan = match (&self.device, self.backend) {
            (Some(name), _) => preset(name)?,
            (None, Some(Choice::Named(name))) => backend::plan(&backend::open(name)?, &problem, &options)?,
            (None, None | Some(Choice::Auto)) => match backend::open("cuda") {
                Ok(opened) => backend::plan(&opened, &problem, &options)?,
                Err(Error::Unavailable { .. } | Error::Unknown { .. }) => {
                    notes.push(format!(
                        "no CUDA device here: planned for an {}; --device takes {}",
                        DEFAULT.to_uppercase(),
                        PRESETS.join(", ")
                    ));
                    preset(DEFAULT)?
                }
                Err(error) => return Err(error),
            },
        };
        plan.notes.splice(0..0, notes);
        if self.json {
            super::print_json(&plan)?;
        } else {
            super::print(&plan.explain())?;
        }
        Ok(Outcome::Done)
    }
}
