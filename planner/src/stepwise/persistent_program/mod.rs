//! Plans of a program that is not plain as one persistent kernel.

mod estimate;

use abide_core::device::Capability;
use abide_core::plan::{PersistentProgram, Schedule, Stepwise};
use abide_core::program::Boxes;
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Program, Result};

use self::estimate::{TASK_SECONDS, of_tasks};
use super::general::{launches, plan_general};
use crate::fused::Passing;

pub(crate) use self::estimate::chain_seconds;
pub(super) use self::estimate::of_launches;

/// The most blocks of a multiprocessor: four of 256 threads leave each thread 64 registers, which CloverLeaf's stages
/// by themselves need. Where the compiler's report shows spills, there are fewer.
const BLOCKS: usize = 4;

/// Bytes of shared memory besides those of groups: a reduction's rows, and a launch's arguments.
const OTHER_BYTES: usize = 4096;

/// Divides stages among blocks, of which a multiprocessor holds no more than these.
fn over_blocks(
    problem: &Problem,
    device: &DeviceSpec,
    tiles: Stepwise,
    most: usize,
) -> Result<PersistentProgram> {
    let problem = &tiles.partition.split_problem(problem)?;
    let groups = || tiles.partition.all().filter_map(|group| group.fused.as_ref());
    let shared = groups().map(|fused| fused.shared_bytes(problem)).max().unwrap_or(0);
    let held = shared + OTHER_BYTES;
    if held > device.shared_bytes_per_block {
        return Err(Error::limit(
            "bytes of shared memory of a block of a persistent kernel",
            held,
            device.shared_bytes_per_block,
            "use --fuse off, or --execution stepwise",
        ));
    }
    let by_shared = device.shared_bytes / (held + device.shared_bytes_reserved).max(1);
    let by_threads = device.threads / tiles.threads_per_block().max(1);
    let each = most.min(by_shared).min(by_threads).max(1);
    // More blocks than the most tiles of any stage would have nothing to do.
    let boxes = Boxes::of(problem)?;
    let alone = |extents: [usize; 3]| tiles.blocks(extents).iter().product::<usize>();
    let stages = boxes.buffers.iter().map(|buffer| alone(buffer.extents));
    let tiled = stages.chain(groups().map(|fused| fused.blocks.iter().product())).max().unwrap_or(1);
    let blocks = (device.multiprocessors * each).clamp(1, tiled.max(1));
    Ok(PersistentProgram { tiles, blocks, blocks_per_multiprocessor: each, shared_bytes: shared })
}

/// Plans one persistent kernel for a problem that is not plain.
///
/// # Errors
///
/// Those of [`Problem::check`]; [`Error::Unsupported`] where the device has no barrier of all blocks, or the options ask
/// for a cache policy or a depth; [`Error::Limit`] where a group leaves no room in shared memory.
pub fn plan_persistent_program(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    problem.check()?;
    persistent_in(problem, device, options, |stepwise| {
        plan_general(problem, device, stepwise, Passing::Refused)
    })
}

/// Plans one persistent kernel of the stages and groups of a plan of launches, which is made with the options given to it.
///
/// # Errors
///
/// Those of [`plan_persistent_program`] for a checked problem.
pub(super) fn persistent_in(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    launched: impl FnOnce(&Options) -> Result<Plan>,
) -> Result<Plan> {
    let asked = match (options.cache, options.depth) {
        (cache @ (CachePolicy::Shared | CachePolicy::Registers | CachePolicy::Mixed), _) => {
            Some(format!("cache policy {cache}"))
        }
        (_, Depth::Steps(depth)) if depth > 1 => Some(format!("depth {depth}")),
        _ => None,
    };
    if let Some(asked) = asked {
        return Err(Error::unsupported(
            device.name.clone(),
            format!(
                "{asked} is for stencils over fields that stand on cells and share a plain boundary, and fields of {} \
                 stay in device memory",
                problem.program.name()
            ),
            "leave cache policy and depth out",
        ));
    }
    device.require(Capability::Barrier, "a program as one persistent kernel")?;
    persistent_of(problem, &launched(&Options { execution: Execution::Stepwise, ..*options })?)
}

/// Returns a plan of a launch per stage or group as one persistent kernel of the same stages and groups.
pub(super) fn persistent_of(problem: &Problem, launched: &Plan) -> Result<Plan> {
    if let Some(what) = unfit(&problem.program) {
        return Err(Error::unsupported(
            launched.device.name.clone(),
            format!("{} has {what}", problem.program.name()),
            "leave the execution out",
        ));
    }
    let mut plan = launched.clone();
    let Some(tiles) = launched.stepwise() else {
        return Err(Error::invalid("plan", "it has no tiles", "make it with plan_stepwise"));
    };
    let persistent = over_blocks(problem, &launched.device, tiles.clone(), BLOCKS)?;
    let split = tiles.partition.split_problem(problem)?;
    plan.traffic.overhead_seconds = TASK_SECONDS * launches(launched);
    plan.estimated_seconds = of_tasks(&split, &Boxes::of(&split)?, &launched.device, &persistent);
    plan.schedule = Schedule::PersistentProgram(persistent);
    plan.execution = Execution::Persistent;
    Ok(plan)
}

/// Returns what a program has that one kernel of all steps cannot have, if there is such.
fn unfit(program: &Program) -> Option<&'static str> {
    if program.has_loops() {
        return Some("loops, and one kernel of all steps has a schedule that is known before");
    }
    if program.transforms() {
        return Some("transforms of lines, which have kernels of their own");
    }
    program
        .has_levels()
        .then_some("fields of coarser grids, and the tiles of one kernel are those of one grid")
}

/// Says of a plan of launches what is estimated of one persistent kernel, where that is the faster one. It does not run
/// unasked, because it has not been timed on a device yet.
pub(crate) fn compare(problem: &Problem, launched: &mut Plan) {
    let has_passes = launched.stages().is_some_and(|tiles| tiles.partition.all().any(|g| g.pass.is_some()));
    if !launched.device.has(Capability::Barrier) || has_passes || unfit(&problem.program).is_some() {
        return;
    }
    let other = match persistent_of(problem, launched) {
        Ok(other) => other,
        Err(why) => return launched.notes.push(format!("not persistent because that cannot be: {why}")),
    };
    if other.estimated_seconds < launched.estimated_seconds {
        launched.notes.push(format!(
            "not persistent because that has not been timed: the estimate is {:.0} µs a step, and {:.0} µs for launches; \
             --execution persistent asks for it",
            other.estimated_seconds * 1e6,
            launched.estimated_seconds * 1e6
        ));
    }
}

/// Returns a plan with fewer blocks on a multiprocessor, which leaves each thread more registers; `None` where
/// there is one, or the plan is no persistent kernel of a program.
pub fn with_fewer_blocks(plan: &Plan, problem: &Problem) -> Option<Plan> {
    let own = plan.persistent_program()?;
    let fewer = own.blocks_per_multiprocessor.checked_sub(1).filter(|&fewer| fewer > 0)?;
    let persistent = over_blocks(problem, &plan.device, own.tiles.clone(), fewer).ok()?;
    Some(Plan { schedule: Schedule::PersistentProgram(persistent), ..plan.clone() })
}

#[cfg(test)]
mod tests {
    use abide_core::catalogue::cloverleaf;
    use std::sync::Arc;

    use abide_core::{DType, Fuse, Shape};

    use super::*;
    use crate::choice::plan;
    use crate::stepwise::general::{plan_grouped, plan_searched};

    fn clover(extents: [usize; 2]) -> Problem {
        let shape = Shape::new(&extents).unwrap();
        Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap()
    }

    #[test]
    fn a_program_is_one_kernel_where_that_is_asked_for() {
        let device = DeviceSpec::preset("h200").unwrap();
        let asked = |fuse| Options { execution: Execution::Persistent, fuse, ..Options::default() };
        for (fuse, extent) in [(Fuse::Off, 960), (Fuse::Greedy, 3840)] {
            let problem = clover([extent, extent]);
            let plan = plan(&problem, &device, &asked(fuse)).unwrap();
            let own = plan.persistent_program().unwrap();
            assert_eq!(
                (plan.execution, own.blocks),
                (Execution::Persistent, 132 * own.blocks_per_multiprocessor),
                "{fuse}"
            );
            assert!(own.blocks_per_multiprocessor > 1, "{own:?}");
            assert_eq!(own.threads(), 256);
            assert!(own.shared_bytes + OTHER_BYTES <= device.shared_bytes_per_block);
            assert_eq!(own.shared_bytes > 0, fuse == Fuse::Greedy);
            assert_eq!(plan.check(&problem), Ok(()));
            let text = plan.explain();
            assert!(text.contains("waits         by flags"), "{text}");
            let fewer = with_fewer_blocks(&plan, &problem).unwrap();
            assert_eq!(fewer.persistent_program().unwrap().blocks, own.blocks - 132);
            let least = std::iter::successors(Some(fewer), |plan| with_fewer_blocks(plan, &problem)).last();
            assert_eq!(least.unwrap().persistent_program().unwrap().blocks, 132);
        }
        // Small domains have no tiles for all blocks.
        let small = clover([20, 40]);
        let plan = plan(&small, &device, &asked(Fuse::Off)).unwrap();
        assert_eq!(plan.persistent_program().unwrap().blocks, 6);
    }

    /// Groups that a search found, or an earlier one kept, are those of one kernel too.
    #[test]
    fn groups_of_a_search_become_one_kernel() {
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { execution: Execution::Persistent, fuse: Fuse::Search, ..Options::default() };
        let problem = clover([3840, 3840]);
        let found = plan_searched(&problem, &device, &options, &[]).unwrap();
        assert_eq!((found.execution, found.persistent_program().is_some()), (Execution::Persistent, true));
        let partition = &found.stages().unwrap().partition;
        assert!(partition.all().any(|group| group.stages.len() > 1));
        let again =
            plan_grouped(&problem, &device, &options, &partition.splits, &partition.groups()).unwrap();
        assert_eq!(again, found);
        let cached = Options { cache: CachePolicy::Mixed, ..options };
        assert!(plan_searched(&problem, &device, &cached, &[]).is_err());
    }

    /// Unasked a graph of launches runs, and the plan says what was not chosen and why.
    #[test]
    fn unasked_it_does_not_run_and_the_plan_says_why() {
        let device = DeviceSpec::preset("h200").unwrap();
        let small = plan(&clover([96, 96]), &device, &Options::default()).unwrap();
        assert!(small.stepwise().is_some());
        assert!(small.notes.iter().any(|note| note.contains("--execution persistent")), "{:?}", small.notes);
        let stepwise = Options { execution: Execution::Stepwise, ..Options::default() };
        assert!(plan(&clover([96, 96]), &device, &stepwise).unwrap().notes.is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let problem = clover([96, 96]);
        let asked = Options { execution: Execution::Persistent, ..Options::default() };
        let mut device = DeviceSpec::preset("h200").unwrap();
        let cached = Options { cache: CachePolicy::Mixed, ..asked };
        assert!(plan(&problem, &device, &cached).unwrap_err().to_string().contains("cache policy mixed"));
        let deep = Options { depth: Depth::Steps(3), ..asked };
        assert!(plan(&problem, &device, &deep).unwrap_err().to_string().contains("depth 3"));
        device.shared_bytes_per_block = 1024;
        let error = plan(&problem, &device, &asked).unwrap_err().to_string();
        assert!(error.contains("bytes of shared memory of a block of a persistent kernel"), "{error}");
        let notes = plan(&problem, &device, &Options::default()).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("not persistent because that cannot be")), "{notes:?}");
        device.registers = None;
        let error = plan(&problem, &device, &asked).unwrap_err().to_string();
        assert!(error.contains("a barrier among all blocks"), "{error}");
        assert!(plan(&problem, &device, &Options::default()).unwrap().notes.is_empty());
    }
}
