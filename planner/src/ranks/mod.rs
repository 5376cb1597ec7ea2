//! The plan of several devices that advance one domain, each with its own slab: how many devices, how the domain is
//! cut, and after how many steps they exchange planes.

mod choice;
mod costs;
#[cfg(test)]
mod tests;

use abide_core::domain::axis_name;
use abide_core::plan::Ranks;
use abide_core::slabs::{Slabs, whole_leaves};
use abide_core::units::count;
use abide_core::{Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use self::choice::choose;
use self::costs::{exchange, reductions};

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
        super::plan_absent(slab, self.device, options)
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
