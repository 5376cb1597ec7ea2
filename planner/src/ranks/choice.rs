//! The choice of the steps between exchanges, and the plans of all slabs.

use abide_core::slabs::Slabs;
use abide_core::{Depth, Error, Exchanging, Execution, Options, Plan, Problem, Result, memory};

use super::costs::{communicator, exchange, giving, kept, paid_steps, reductions, restart, seconds};
use super::{Devices, Wanted};

/// The most steps between exchanges that are considered: of one stage, and of programs, whose slabs take longer to plan.
const MOST_BETWEEN: [u32; 2] = [256, 64];

/// The cut of a domain with the least estimate.
pub(super) struct Chosen {
    pub slabs: Slabs,
    pub plans: Vec<Plan>,
    /// Of a step, and of an exchange.
    pub seconds: [f64; 2],
}

/// Chooses the steps between exchanges, and plans all slabs.
pub(super) fn choose(
    problem: &Problem,
    wanted: &Wanted,
    weights: &[usize],
    devices: &dyn Devices,
) -> Result<Chosen> {
    let (ranks, options) = (weights.len(), &wanted.kernel);
    let reductions = reductions(problem);
    let mut best: Option<(f64, Slabs, f64)> = None;
    let depths = match wanted.between {
        // What a loop's turns read beyond a slab is exchanged before each of them.
        Some(depth) if depth > 1 && problem.program.has_loops() => {
            let change = "leave --depth out";
            return Err(Error::limit("steps between exchanges of a program with loops", depth, 1, change));
        }
        Some(depth) => vec![depth],
        None if problem.program.has_loops() => vec![1],
        None => considered(problem, options, weights, devices)?,
    };
    let asked = matches!(options.exchange, Exchanging::Auto | Exchanging::PeerPuts);
    let stores = asked && devices.stores(ranks)?;
    for depth in depths.into_iter().filter(|&depth| ranks <= Slabs::most(problem, depth)) {
        let slabs = Slabs::new(problem, depth, weights)?;
        // A rank in the middle has two neighbours, where there is one.
        let rank = ranks / 2;
        let slab = slabs.problem(rank, problem)?;
        let plan = of_slab(&slab, options, depth, &|own| devices.plan(ranks, rank, &slab, own))?;
        let (exchange, plan) = match giving(&slabs, rank, stores, &plan) {
            // What is exchanged goes out with the steps' own stores; each device waits for its neighbours.
            Some(giving) => {
                let (_, bytes) = exchange(&slabs, problem, &giving, stores);
                (communicator(&slabs, rank, &giving, bytes), giving)
            }
            None => (exchange(&slabs, problem, &plan, stores).0, plan),
        };
        // Every rank waits for a message of each other one.
        let gathers = (reductions * (ranks - 1)) as f64 * plan.device.exchange_seconds;
        let between = exchange + restart(&slab, &plan);
        let seconds = (seconds(&plan) * kept(&slabs, rank, &plan) * paid_steps(&plan, depth) + between)
            / f64::from(depth)
            + gathers;
        if best.as_ref().is_none_or(|(least, ..)| seconds < *least) {
            best = Some((seconds, slabs, exchange));
        }
    }
    let Some((seconds, slabs, exchange_seconds)) = best else {
        // The depth of one step was considered, or the one asked for.
        return Err(Error::limit("devices", ranks, "1", "take one device"));
    };
    let mut plans = memory::reserved(ranks, "plans of slabs", "take fewer devices")?;
    for rank in 0..ranks {
        let slab = slabs.problem(rank, problem)?;
        let plan = of_slab(&slab, options, slabs.depth, &|own| devices.plan(ranks, rank, &slab, own))?;
        plans.push(plan);
    }
    let all_give =
        (0..ranks).map(|rank| giving(&slabs, rank, stores, &plans[rank])).collect::<Option<Vec<_>>>();
    if let Some(given) = all_give {
        plans = given;
    }
    Ok(Chosen { slabs, plans, seconds: [seconds, exchange_seconds] })
}

/// Returns the steps between exchanges that are considered: whole passes of the kernel that a slab would have if it never
/// exchanged, doubled again and again, because steps that are left over take shallower passes; and powers of two below one.
fn considered(
    problem: &Problem,
    options: &Options,
    weights: &[usize],
    devices: &dyn Devices,
) -> Result<Vec<u32>> {
    let [plain, program] = MOST_BETWEEN;
    let (pass, most) = match problem.is_plain() {
        true => {
            let rank = weights.len() / 2;
            let slab = Slabs::new(problem, 1, weights)?.problem(rank, problem)?;
            (devices.plan(weights.len(), rank, &slab, options)?.depth.max(1), plain)
        }
        false => (1, program),
    };
    let doubled = |first: u32| std::iter::successors(Some(first), |steps| steps.checked_mul(2));
    let below = doubled(1).take_while(|&steps| steps < pass);
    Ok(below.chain(doubled(pass).take_while(|&steps| steps <= most.max(pass))).collect())
}

/// Plans a slab whose devices exchange every `depth` steps: by the options, or where their plan's passes are longer than
/// that, by passes of so many steps.
fn of_slab(
    slab: &Problem,
    options: &Options,
    depth: u32,
    plan: &dyn Fn(&Options) -> Result<Plan>,
) -> Result<Plan> {
    let free = plan(options)?;
    if !slab.is_plain() || free.depth <= 1 {
        return Ok(free);
    }
    if free.depth <= depth {
        return Ok(in_whole_passes(free, options, depth, plan));
    }
    let short = Options { depth: Depth::Steps(depth), execution: free.execution, ..*options };
    match free.execution {
        Execution::Streaming | Execution::Persistent | Execution::Overlapped => match plan(&short) {
            // An execution that has room for the longer passes may have none for shorter ones, and another may.
            Err(Error::Limit { .. }) if options.execution == Execution::Auto => {
                plan(&Options { execution: Execution::Auto, ..short })
            }
            short => short,
        },
        _ => Ok(free),
    }
}

/// Returns a plan whose passes fill `depth` steps evenly where that is estimated to take less: the deepest such that is no
/// deeper than the given one, which is asked for no depth.
fn in_whole_passes(
    free: Plan,
    options: &Options,
    depth: u32,
    plan: &dyn Fn(&Options) -> Result<Plan>,
) -> Plan {
    let divides = |pass: &u32| depth.is_multiple_of(*pass);
    let Some(pass) = (2..=free.depth).rev().find(divides).filter(|&pass| pass < free.depth) else {
        return free;
    };
    if options.depth != Depth::Auto {
        return free;
    }
    let even = plan(&Options { depth: Depth::Steps(pass), execution: free.execution, ..*options });
    let takes = |plan: &Plan| seconds(plan) * paid_steps(plan, depth);
    match even {
        Ok(even) if takes(&even) < takes(&free) => even,
        _ => free,
    }
}
