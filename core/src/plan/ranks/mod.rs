//! The plan of several devices that advance one domain, each with its own slab: how many devices, how the domain is
//! cut, and after how many steps they exchange planes.

mod choice;
mod costs;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::Serialize;

use self::choice::choose;
use self::costs::{exchange, reductions};
use super::description::{Line, count};
use super::{Depth, Exchanging, Execution, Options, Plan};
use crate::device::DeviceSpec;
use crate::domain::axis_name;
use crate::error::{Error, Result};
use crate::program::Problem;
use crate::slabs::{Slabs, whole_leaves};

/// The part of a plan that is for several devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranks {
    /// The axis that is cut.
    pub axis: &'static str,
    /// The planes of each rank, in cells of the whole domain.
    pub own: Vec<Range<usize>>,
    /// Planes of a halo at an inner side.
    pub halo: usize,
    /// Steps between two exchanges.
    pub depth: u32,
    /// How planes are to be exchanged.
    pub exchange: Exchanging,
    /// The most bytes that a rank sends in an exchange.
    pub exchange_bytes: f64,
    /// Seconds that an exchange is estimated to take.
    pub exchange_seconds: f64,
    /// The most reductions of a step, each of which gathers a part from every device.
    pub reductions: usize,
    /// The plan of each rank's slab.
    #[serde(skip)]
    pub slabs: Vec<Plan>,
}

impl Ranks {
    /// Returns the words that a summary begins with.
    pub(super) fn summary(&self) -> String {
        format!("{} devices, exchanging every {}, each ", self.own.len(), count(self.depth as usize, "step"))
    }

    /// Returns the lines of an explanation.
    pub(super) fn lines(&self) -> Vec<Line> {
        let reductions = format!(
            "{} a step, each gathered from all devices and finished by each",
            count(self.reductions, "reduction")
        );
        let reductions = (self.reductions > 0).then_some(("reductions", reductions));
        let lines = [
            (
                "devices",
                format!("{}, each a slab of {}: planes {}", self.own.len(), self.axis, planes(&self.own)),
            ),
            (
                "exchange",
                format!(
                    "every {}, halos of {}; a device sends {:.1} KB at most, estimated at {:.1} µs",
                    count(self.depth as usize, "step"),
                    count(self.halo, "plane"),
                    self.exchange_bytes / 1e3,
                    self.exchange_seconds * 1e6,
                ),
            ),
        ];
        let last = (
            "each device",
            "what follows is said of one device's slab; cells and bytes are those of all".to_owned(),
        );
        lines.into_iter().chain(reductions).chain([last]).collect()
    }
}

/// Returns the planes of all ranks in words, of many the first and the last.
fn planes(own: &[Range<usize>]) -> String {
    /// The most ranks that are listed one by one.
    const MOST: usize = 8;
    let listed = |own: &[Range<usize>]| -> Vec<String> {
        own.iter().map(|own| format!("{}..{}", own.start, own.end)).collect()
    };
    match own {
        [first @ .., last] if own.len() > MOST => {
            let first = listed(&first[..MOST / 2]).join(", ");
            format!("{first}, … {}..{}", last.start, last.end)
        }
        all => listed(all).join(", "),
    }
}

/// The devices that a problem is planned for.
pub trait Devices {
    /// Returns how many were asked for.
    fn asked(&self) -> usize;

    /// Returns the weights of so many ranks: their devices' rates, in any unit.
    fn weights(&self, ranks: usize) -> Result<Vec<usize>>;

    /// Plans the slab of a rank among so many.
    fn plan(&self, ranks: usize, rank: usize, slab: &Problem, options: &Options) -> Result<Plan>;

    /// Returns the plan that runs where a slab of a rank is opened with `plan`: the compiler's report may ask for another one.
    fn fitted(&self, ranks: usize, rank: usize, slab: &Problem, plan: &Plan) -> Result<Plan> {
        let _ = (ranks, rank, slab);
        Ok(plan.clone())
    }

    /// Returns whether so many ranks could each store into the memory of those beside it, because they are different devices of
    /// one process.
    fn stores(&self, ranks: usize) -> Result<bool> {
        let _ = ranks;
        Ok(true)
    }

    /// Returns the steps between two exchanges that are asked for, whatever the temporal depth of a slab is; `None` where
    /// the planner chooses.
    fn between(&self) -> Option<u32> {
        None
    }
}

/// Devices of one kind that need not be here.
pub struct Alike<'a> {
    /// The device.
    pub device: &'a DeviceSpec,
    /// How many there are.
    pub count: usize,
}

impl Devices for Alike<'_> {
    fn asked(&self) -> usize {
        self.count
    }

    fn weights(&self, ranks: usize) -> Result<Vec<usize>> {
        Ok(vec![1; ranks])
    }

    fn plan(&self, _: usize, _: usize, slab: &Problem, options: &Options) -> Result<Plan> {
        super::plan(slab, self.device, options)
    }
}

/// Plans several devices: as many as were asked for, or fewer with a note where the domain has too few planes; the steps
/// between exchanges that are estimated to be fastest, or those of a depth that is asked for.
///
/// # Errors
///
/// Those of [`Slabs::check`], and of planning a slab.
pub fn plan_ranks(problem: &Problem, options: &Options, devices: &dyn Devices) -> Result<Plan> {
    let asked = devices.asked();
    if asked == 0 {
        return Err(Error::limit("devices", 0, "at least 1", "ask for one device or more"));
    }
    if asked == 1 {
        return devices.plan(1, 0, problem, options);
    }
    Slabs::check(problem)?;
    let wanted = Wanted::of(options, devices.between());
    let fixed = wanted.between;
    let ranks = asked.min(Slabs::most(problem, fixed.unwrap_or(1)));
    let note = (ranks < asked).then(|| {
        let planes = problem.shape.padded()[problem.slowest()];
        let depth = count(fixed.unwrap_or(1) as usize, "step");
        let devices = count(ranks, "device");
        format!(
            "{asked} devices were asked for: {planes} planes along {} are enough for {devices}, where each has the planes \
             that {depth} of its neighbours read{}",
            axis_name(problem.slowest()),
            whole_leaves(problem),
        )
    });
    if ranks == 1 {
        let mut plan = devices.plan(1, 0, problem, &wanted.kernel)?;
        plan.notes.extend(note);
        return Ok(plan);
    }
    let weights = devices.weights(ranks)?;
    let mut plan = fitted(problem, &wanted, &weights, devices)?;
    plan.notes.splice(0..0, note);
    Ok(plan)
}

/// What is asked of a plan of several devices.
struct Wanted {
    /// Steps between two exchanges; `None` where the planner chooses.
    between: Option<u32>,
    /// The options of the kernels of slabs.
    kernel: Options,
}

impl Wanted {
    /// Returns what options ask for. Where `between` is not given, a depth is that of an exchange, whatever the depth of
    /// kernels is.
    fn of(options: &Options, between: Option<u32>) -> Wanted {
        match (between, options.depth) {
            (None, Depth::Steps(steps)) => {
                Wanted { between: Some(steps.max(1)), kernel: Options { depth: Depth::Auto, ..*options } }
            }
            (between, _) => Wanted { between, kernel: *options },
        }
    }
}

/// Plans so many ranks as there are weights, by the kernels that run: where the compiler leaves a kernel of fewer steps than
/// planned, steps between exchanges are chosen anew for kernels of so many.
fn fitted(problem: &Problem, wanted: &Wanted, weights: &[usize], devices: &dyn Devices) -> Result<Plan> {
    let ranks = weights.len();
    let mut kernel = wanted.kernel;
    loop {
        let chosen = choose(problem, &Wanted { kernel, ..*wanted }, weights, devices)?;
        let mut plans = chosen.plans;
        // Slabs of the same extents have the same kernel: of each kind the first is compiled.
        let mut kinds: Vec<(Problem, Plan, Plan)> = Vec::new();
        let mut least: Option<(u32, Execution)> = None;
        for (rank, plan) in plans.iter_mut().enumerate() {
            let slab = chosen.slabs.problem(rank, problem)?;
            let is_alike = |(other, planned, _): &(Problem, Plan, Plan)| {
                let extents = (other.shape, other.boundaries) == (slab.shape, slab.boundaries);
                extents && planned.schedule == plan.schedule
            };
            let number = match kinds.iter().position(is_alike) {
                Some(number) => number,
                None => {
                    let compiled = devices.fitted(ranks, rank, &slab, plan)?;
                    kinds.push((slab, plan.clone(), compiled));
                    kinds.len() - 1
                }
            };
            let compiled = &kinds[number].2;
            if compiled.depth < plan.depth && least.is_none_or(|(depth, _)| compiled.depth < depth) {
                least = Some((compiled.depth, compiled.execution));
            }
            *plan = compiled.clone();
        }
        match least {
            // Depths become less each time, so this ends.
            Some((depth, execution)) => kernel = Options { depth: Depth::Steps(depth), execution, ..kernel },
            None => return Ok(together(problem, &kernel, &chosen.slabs, plans, chosen.seconds)),
        }
    }
}

/// Makes the plan of all devices from those of their slabs.
fn together(
    problem: &Problem,
    options: &Options,
    slabs: &Slabs,
    plans: Vec<Plan>,
    [seconds, exchange_seconds]: [f64; 2],
) -> Plan {
    let (_, exchange_bytes) = exchange(slabs, problem, &plans[0], true);
    let mut plan = plans[plans.len() / 2].clone();
    plan.program = problem.program.name().to_owned();
    (plan.shape, plan.boundaries) = (problem.shape, problem.boundaries);
    plan.traffic.cells = problem.shape.cells() as f64;
    plan.estimated_seconds = seconds;
    let notes = plans.iter().skip(1).flat_map(|other| other.notes.iter().cloned());
    for note in notes {
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }
    // Several devices compute at the same time.
    plan.traffic.flops_per_second *= plans.len() as f64;
    plan.ranks = Some(Ranks {
        axis: axis_name(slabs.axis),
        own: slabs.slabs.iter().map(|slab| slab.own.clone()).collect(),
        halo: slabs.slabs.iter().flat_map(|slab| slab.halo).max().unwrap_or(0),
        depth: slabs.depth,
        exchange: options.exchange,
        exchange_bytes,
        exchange_seconds,
        reductions: reductions(problem),
        slabs: plans,
    });
    plan
}
