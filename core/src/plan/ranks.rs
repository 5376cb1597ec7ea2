//! The plan of several devices that advance a domain together, each a slab of it: how many, how the domain is cut, and
//! after how many steps they exchange.

use std::ops::Range;

use serde::Serialize;

use super::description::{Line, count};
use super::streaming::warp::Edges;
use super::{Depth, Exchanging, Execution, Options, Plan};
use crate::device::DeviceSpec;
use crate::domain::axis_name;
use crate::error::{Error, Result};
use crate::memory;
use crate::program::{Does, Problem, Stage};
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
    /// The most ranks that are told one by one.
    const MOST: usize = 8;
    let told = |own: &[Range<usize>]| -> Vec<String> {
        own.iter().map(|own| format!("{}..{}", own.start, own.end)).collect()
    };
    match own {
        [first @ .., last] if own.len() > MOST => {
            let first = told(&first[..MOST / 2]).join(", ");
            format!("{first}, … {}..{}", last.start, last.end)
        }
        all => told(all).join(", "),
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

/// The most steps between exchanges that are considered: of one stage, and of programs, whose slabs take longer to plan.
const MOST_BETWEEN: [u32; 2] = [256, 64];

/// Bytes per second at which planes are handed on through messages where the memory's bandwidth is not known; and how
/// often such an exchange moves each byte: out of the field, into the message, into the other's field.
const COPIES: (f64, f64) = (4e9, 6.0);

/// What an exchange by copies takes beside one by stores, in seconds: events between devices, and copies that begin one after
/// another. Of H200s in steps of 2304² planes.
const COPIED: f64 = 20e-6;

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
    let fixed = devices.between().or(match options.depth {
        Depth::Steps(steps) => Some(steps),
        Depth::Auto => None,
    });
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
        let mut plan = devices.plan(1, 0, problem, options)?;
        plan.notes.extend(note);
        return Ok(plan);
    }
    let weights = devices.weights(ranks)?;
    let reductions = reductions(problem);
    let mut best: Option<(f64, Slabs, f64)> = None;
    let depths = match fixed {
        Some(depth) => vec![depth],
        None => considered(problem, options, &weights, devices)?,
    };
    let asked = matches!(options.exchange, Exchanging::Auto | Exchanging::Stores);
    let stores = asked && devices.stores(ranks)?;
    for depth in depths.into_iter().filter(|&depth| ranks <= Slabs::most(problem, depth)) {
        let slabs = Slabs::new(problem, depth, &weights)?;
        // A rank in the middle has two neighbours, where there is one.
        let rank = ranks / 2;
        let slab = slabs.problem(rank, problem)?;
        let plan = of_slab(&slab, options, depth, &|own| devices.plan(ranks, rank, &slab, own))?;
        let (exchange, plan) = match giving(&slabs, rank, stores, &plan) {
            // What is exchanged goes out with the steps' own stores; each device waits for its neighbours.
            Some(giving) => {
                let (_, bytes) = exchange(&slabs, problem, &giving, stores);
                (meeting(&slabs, rank, &giving, bytes), giving)
            }
            None => (exchange(&slabs, problem, &plan, stores).0, plan),
        };
        let passes = depth.div_ceil(plan.depth.max(1)) * plan.depth.max(1);
        // Every rank waits for a message of each other one.
        let gathers = (reductions * (ranks - 1)) as f64 * plan.device.exchange_seconds;
        let between = exchange + restart(&slab, &plan);
        let seconds = (seconds(&plan) * kept(&slabs, rank, &plan) * f64::from(passes) + between)
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
    Ok(together(problem, options, &slabs, plans, [seconds, exchange_seconds], note))
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
    if free.depth <= depth || options.depth != Depth::Auto || !slab.is_plain() {
        return Ok(free);
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

/// Returns the plan of a slab whose passes give neighbours what they read, where it can: devices store into each other's memory,
/// and exchange after each pass.
fn giving(slabs: &Slabs, rank: usize, stores: bool, plan: &Plan) -> Option<Plan> {
    let over_link = plan.device.link.is_some_and(|link| link.stores);
    if !stores || !over_link || plan.depth != slabs.depth {
        return None;
    }
    let slab = &slabs.slabs[rank];
    let own = slab.halo[0]..slab.halo[0] + slab.own.len();
    // Neighbours' halos are as deep as the own ones.
    let halo = slab.halo.into_iter().max().unwrap_or(0);
    let given = [0, 1].map(|side| if slabs.is_inner(rank, side) { halo } else { 0 });
    plan.giving(Edges { own, given })
}

/// Returns the share of a slab's planes that its passes make: all, or its own where neighbours give the others.
fn kept(slabs: &Slabs, rank: usize, plan: &Plan) -> f64 {
    match plan.warp_streaming().and_then(|streaming| streaming.edges.as_ref()) {
        Some(edges) => edges.own.len() as f64 / slabs.slabs[rank].cells() as f64,
        None => 1.0,
    }
}

/// Returns the seconds between two passes that give so many bytes: a meeting, and what of the bytes is still on its way.
fn meeting(slabs: &Slabs, rank: usize, plan: &Plan, bytes: f64) -> f64 {
    let pass = seconds(plan) * kept(slabs, rank, plan) * f64::from(plan.depth);
    plan.device.link.map_or(0.0, |link| link.seconds + (bytes / link.bandwidth - pass).max(0.0))
}

/// Returns the estimated seconds of a step of a slab: the planner's own where it made one.
fn seconds(plan: &Plan) -> f64 {
    let traffic = &plan.traffic;
    let arithmetic =
        traffic.cells * traffic.flops / traffic.flops_per_second.max(1.0) + traffic.overhead_seconds;
    if plan.estimated_seconds > 0.0 && plan.estimated_seconds.is_finite() {
        plan.estimated_seconds.max(arithmetic)
    } else {
        arithmetic
    }
}

/// Returns the seconds that a kernel which keeps the domain on the chip takes to load and store it, as it does between two
/// exchanges.
fn restart(slab: &Problem, plan: &Plan) -> f64 {
    let bandwidth = plan.device.memory_bandwidth;
    if plan.execution != Execution::Persistent || bandwidth <= 0.0 {
        return 0.0;
    }
    let written = |field: usize| if slab.program.is_written(field) { 2.0 } else { 1.0 };
    let values: f64 =
        (0..slab.program.fields().len()).map(|field| written(field) * slab.values_of(field) as f64).sum();
    values * slab.dtype.bytes() as f64 / bandwidth
}

/// Returns the most reductions of a step of the program's cycle.
fn reductions(problem: &Problem) -> usize {
    let program = &problem.program;
    let is_reduction = |stage: &&Stage| matches!(stage.does, Does::Reduce(..));
    let of_step = |step: &Range<usize>| program.stages()[step.clone()].iter().filter(is_reduction).count();
    program.steps().iter().map(of_step).max().unwrap_or(0)
}

/// Returns the estimated seconds of an exchange and the most bytes that a rank sends.
fn exchange(slabs: &Slabs, problem: &Problem, plan: &Plan, stores: bool) -> (f64, f64) {
    let cell = problem.dtype.bytes() as f64;
    let plane =
        |field: usize| problem.values_of(field) as f64 / problem.extents_of(field)[slabs.axis].max(1) as f64;
    let all = (0..slabs.slabs.len()).map(|rank| {
        let exchanges = slabs.exchanges(rank);
        let edges = exchanges.iter().flat_map(|exchange| &exchange.fields);
        let bytes: f64 = edges.map(|edge| edge.sent.len() as f64 * plane(edge.field) * cell).sum();
        (exchanges.len(), bytes)
    });
    let (messages, bytes) = all.fold((0, 0.0_f64), |(n, most), (own, bytes)| (n.max(own), most.max(bytes)));
    let device = &plan.device;
    let seconds = match device.link {
        Some(link) if messages > 0 => {
            let more = if link.stores && !stores { COPIED } else { 0.0 };
            link.seconds + more + bytes / link.bandwidth
        }
        Some(_) => 0.0,
        None => {
            let bandwidth = if device.memory_bandwidth > 0.0 { device.memory_bandwidth } else { COPIES.0 };
            messages as f64 * device.exchange_seconds + COPIES.1 * bytes / bandwidth
        }
    };
    (seconds, bytes)
}

/// Makes the plan of all devices from those of their slabs.
fn together(
    problem: &Problem,
    options: &Options,
    slabs: &Slabs,
    plans: Vec<Plan>,
    [seconds, exchange_seconds]: [f64; 2],
    note: Option<String>,
) -> Plan {
    let (_, exchange_bytes) = exchange(slabs, problem, &plans[0], true);
    let mut plan = plans[plans.len() / 2].clone();
    plan.program = problem.program.name().to_owned();
    (plan.shape, plan.boundaries) = (problem.shape, problem.boundaries);
    plan.traffic.cells = problem.shape.cells() as f64;
    plan.estimated_seconds = seconds;
    let notes = plans.iter().skip(1).flat_map(|other| other.notes.iter().cloned());
    for note in note.into_iter().chain(notes) {
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
