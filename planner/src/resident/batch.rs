//! Batches of domains that lie in a block each: a block for each member, none of which waits for another.

use abide_core::device::Capability;
use abide_core::plan::resident::{Configuration, Exchange};
use abide_core::plan::{Batched, Order, Resident};
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use super::candidates::{MOST_LINES, planes_in_registers, resident};
use super::estimate::step_seconds;
use super::plan_of;
use crate::limits::refuse_others;
use crate::streaming::requirement::Demand;

/// Warps of a block that are tried.
const WARPS: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32];

/// Blocks of a multiprocessor that are tried; every device holds 16.
const BLOCKS: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];

/// Threads of a multiprocessor at most: with more, each has too few registers to work in.
const MOST_THREADS: usize = 1024;

/// Returns all plans of a batch whose members run side by side, a block for each, the one that the model finds
/// fastest first; none where a domain does not fit a block.
pub fn batch_plans(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Vec<Plan>> {
    problem.check()?;
    if !problem.is_batch() {
        return Err(Error::invalid("problem", "it is a single domain, not a batch", "use resident_plans"));
    }
    refuse_others(problem, device, &Options { execution: Execution::Persistent, ..*options })?;
    refuse_options(device, options)?;
    device.require(Capability::Warps, "a kernel of a block for each member")?;
    let demand = Demand::of(problem);
    let mut plans = configurations(&demand, device)
        .into_iter()
        .filter_map(|configuration| of(&demand, device, resident(&demand, device, &configuration)?))
        .collect::<Vec<_>>();
    plans.sort_by(|a, b| a.estimated_seconds.total_cmp(&b.estimated_seconds));
    Ok(plans)
}

/// Plans a batch whose members run side by side: the first of [`batch_plans`].
///
/// # Errors
///
/// [`Error::Limit`] where a domain does not fit a block, [`Error::Unsupported`] where the options ask for something
/// else.
pub fn plan_batch(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = batch_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let boundaries = problem.boundaries.describe(problem.shape.dimensions());
        Error::limit(
            format!("registers and shared memory of one block on {}", device.name),
            format!(
                "{} {} of {}, boundary {boundaries}",
                problem.program.fields().len(),
                problem.dtype,
                problem.shape
            ),
            format!(
                "{} KiB; a fastest axis that is periodic has a multiple of 32 cells, up to 256",
                (4 * device.registers.unwrap_or(0) + device.shared_bytes_per_block) / 1024
            ),
            "choose a smaller domain or f32, or let the members run one after another",
        )
    })
}

/// Refuses options that ask for another schedule.
fn refuse_options(device: &DeviceSpec, options: &Options) -> Result<()> {
    let asked = if !matches!(options.execution, Execution::Auto | Execution::Persistent) {
        format!("execution {}", options.execution)
    } else if !matches!(options.cache, CachePolicy::Auto | CachePolicy::Mixed) {
        format!("cache policy {}", options.cache)
    } else if let Depth::Steps(steps @ 2..) = options.depth {
        format!("depth {steps}")
    } else {
        return Ok(());
    };
    Err(Error::unsupported(
        device.name.clone(),
        format!(
            "{asked} was asked for, and a block that holds a member's domain is persistent, mixed and of depth 1"
        ),
        "leave it out",
    ))
}

/// Returns the plan of a batch by such blocks; `None` unless one of them holds the domain and exchanges nothing.
pub(super) fn of(demand: &Demand<'_>, device: &DeviceSpec, resident: Resident) -> Option<Plan> {
    if resident.exchanges() || resident.depth != 1 {
        return None;
    }
    let problem = demand.pass.problem;
    let members = problem.members();
    let estimate = all_seconds(demand, device, &resident, members) / members as f64;
    let mut plan = plan_of(problem, device, resident, estimate);
    // No block waits for another.
    plan.traffic.overhead_seconds = 0.0;
    plan.batch = Some(Batched { members, order: Order::AtOnce });
    Some(plan)
}

/// Returns the estimated seconds of a step of all members: multiprocessors take as many as they have room for, and
/// those that are left over share what is then free.
fn all_seconds(demand: &Demand<'_>, device: &DeviceSpec, resident: &Resident, members: usize) -> f64 {
    let most = resident.blocks_per_multiprocessor;
    let of = |blocks_per_multiprocessor: usize| match blocks_per_multiprocessor {
        0 => 0.0,
        _ => step_seconds(demand, device, &Resident { blocks_per_multiprocessor, ..resident.clone() }),
    };
    let at_once = device.multiprocessors * most;
    let left = (members % at_once).div_ceil(device.multiprocessors);
    (members / at_once) as f64 * of(most) + of(left)
}

/// Returns all configurations worth a try.
fn configurations(demand: &Demand<'_>, device: &DeviceSpec) -> Vec<Configuration> {
    let dimensions = demand.dimensions();
    let warps: &[usize] = if dimensions == 1 { &[1] } else { &WARPS };
    let columns: &[usize] = if dimensions == 1 { &[1, 2, 4, 8, 16, 32] } else { &[1, 2, 3, 4, 5, 6, 7, 8] };
    let rows: &[usize] = if dimensions == 3 { &[1, 2, 3, 4] } else { &[1] };
    let most_planes = if dimensions == 1 { 1 } else { MOST_LINES };
    // Each thread keeps its member's parameters.
    let parameters = demand.pass.problem.program.parameters().len() * demand.bytes / 4;
    let mut all = Vec::new();
    for &warps in warps {
        let room = device.threads.min(MOST_THREADS) / (32 * warps);
        for blocks_per_multiprocessor in BLOCKS.into_iter().filter(|&blocks| blocks <= room) {
            let registers = device.registers_for(32 * warps * blocks_per_multiprocessor);
            let registers = registers.saturating_sub(parameters);
            for own in rows.iter().flat_map(|&row| columns.iter().map(move |&column| [row, column])) {
                all.extend((1..=most_planes / own[0]).map(|planes| Configuration {
                    depth: 1,
                    warps,
                    planes,
                    planes_registers: planes_in_registers(demand, registers, planes, own),
                    cells_per_thread: own,
                    blocks_per_multiprocessor,
                    exchange: Exchange::Counted,
                }));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::resident::with_resident_registers;
    use std::sync::Arc;

    use abide_core::{Boundaries, DType, Shape, catalogue};

    use super::*;
    use crate::choice::{plan, plan_members};
    use abide_core::domain::Boundary;

    fn batch(name: &str, extents: &[usize], dtype: DType, boundary: Boundary, members: usize) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
        if problem.is_plain() {
            problem.boundaries = Boundaries::all(boundary);
        }
        problem.repeat(members).unwrap();
        problem
    }

    fn h200() -> DeviceSpec {
        DeviceSpec::preset("h200").unwrap()
    }

    /// What a block is given is there for all blocks of a multiprocessor, and several share one.
    #[test]
    fn many_small_domains_share_multiprocessors() {
        for dtype in [DType::F32, DType::F64] {
            for extents in [[64, 64], [61, 57]] {
                let (problem, device) = (batch("2d5pt", &extents, dtype, Boundary::Mirror, 4096), h200());
                let plan = plan(&problem, &device, &Options::default()).unwrap();
                let tiles = plan.resident().unwrap();
                assert_eq!((plan.members(), plan.is_at_once(), plan.depth), (4096, true, 1));
                assert_eq!((tiles.tiles, tiles.margin), ([1; 3], [0; 3]));
                let blocks = tiles.blocks_per_multiprocessor;
                assert!(blocks >= 4, "{dtype}: {tiles:?}");
                assert!(blocks * (tiles.shared_bytes + device.shared_bytes_reserved) <= device.shared_bytes);
                assert!(blocks * tiles.threads_per_block() * tiles.registers <= device.registers.unwrap());
                assert!(tiles.tile[0] * tiles.tile[2] >= extents[0] * extents[1]);
                assert_eq!(plan.check(&problem), Ok(()));
                // At least the rate of 50 members that run alone.
                let alone = crate::plan(&problem.member(0), &device, &Options::default()).unwrap();
                assert!(50.0 * plan.estimated_seconds < alone.estimated_seconds, "{plan:?}");
            }
        }
    }

    #[test]
    fn every_kind_of_domain_that_fits_has_plans() {
        for (name, extents, boundary) in [
            ("1d3pt", &[100][..], Boundary::Fixed),
            ("2d9pt", &[48, 96], Boundary::Periodic),
            ("2d13pt", &[40, 61], Boundary::Mirror),
            ("heat", &[33, 47], Boundary::Mirror),
            ("gray-scott", &[33, 64], Boundary::Clamp),
            ("wave", &[7, 9, 11], Boundary::Constant(0.25)),
            ("fdtd-tm", &[17, 13], Boundary::Fixed),
        ] {
            let problem = batch(name, extents, DType::F64, boundary, 300);
            let plans = batch_plans(&problem, &h200(), &Options::default()).unwrap();
            assert!(!plans.is_empty(), "{name}");
            // A block each is also what a few members are given.
            let few = batch(name, extents, DType::F64, boundary, 5);
            assert!(plan(&few, &h200(), &Options::default()).unwrap().is_at_once(), "{name}");
            assert!(plans.is_sorted_by(|a, b| a.estimated_seconds <= b.estimated_seconds), "{name}");
        }
    }

    /// Fewer planes in registers, as the compiler may ask for, leave a batch what it is.
    #[test]
    fn a_batch_can_do_with_fewer_registers() {
        let problem = batch("2d5pt", &[32, 64], DType::F64, Boundary::Periodic, 1000);
        let own = plan_batch(&problem, &h200(), &Options::default()).unwrap();
        let planes = own.resident().unwrap().planes_registers - 1;
        let fewer = with_resident_registers(&own, &problem, planes).unwrap();
        assert_eq!((fewer.batch, fewer.resident().unwrap().planes_registers), (own.batch, planes));
        assert_eq!(fewer.check(&problem), Ok(()));
    }

    #[test]
    fn other_batches_run_in_turn_and_say_why() {
        let device = h200();
        let small = |boundary| batch("2d5pt", &[64, 64], DType::F64, boundary, 4096);
        let with = |execution, cache, depth| Options { execution, cache, depth, ..Options::default() };
        let (auto, own) = (Execution::Auto, Options::default());
        let cases = [
            (batch("2d5pt", &[512, 512], DType::F64, Boundary::Fixed, 8), own, "shared memory of one block"),
            (batch("2d5pt", &[64, 65], DType::F64, Boundary::Periodic, 8), own, "multiple of 32"),
            (batch("cloverleaf", &[16, 16], DType::F64, Boundary::Fixed, 8), own, "a launch per stage"),
            (
                small(Boundary::Fixed),
                with(Execution::Stepwise, CachePolicy::Auto, Depth::Auto),
                "execution stepwise",
            ),
            (
                small(Boundary::Fixed),
                with(auto, CachePolicy::Registers, Depth::Auto),
                "cache policy registers",
            ),
            (small(Boundary::Fixed), with(auto, CachePolicy::Auto, Depth::Steps(4)), "depth 4"),
            (batch("2d5pt", &[150, 150], DType::F32, Boundary::Fixed, 1), own, "estimated"),
        ];
        for (problem, options, why) in cases {
            let refused = plan_batch(&problem, &device, &options);
            if why != "estimated" {
                assert!(refused.unwrap_err().to_string().contains(why), "{why}");
            }
            let plan = plan(&problem, &device, &options).unwrap();
            let in_turn = plan_members(&problem, Order::InTurn, |one| crate::plan(one, &device, &options));
            assert_eq!(
                (plan.batch, &plan.schedule),
                (in_turn.as_ref().unwrap().batch, &in_turn.as_ref().unwrap().schedule)
            );
            assert!(
                problem.members() == 1 || plan.notes.iter().any(|note| note.contains(why)),
                "{:?}",
                plan.notes
            );
        }
        assert!(plan_batch(&small(Boundary::Fixed).member(0), &device, &own).is_err());
    }
}
