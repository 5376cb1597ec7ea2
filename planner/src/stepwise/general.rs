//! Plans of programs that are not plain: a launch per stage or group of stages.

use abide_core::device::Capability;
use abide_core::plan::fused::Partition;
use abide_core::plan::traffic::Traffic;
use abide_core::plan::{Schedule, Stepwise};
use abide_core::program::{Boxes, Buffer, Groups, Launch, Place, Split, Storage};
use abide_core::reduction::leaf;
use abide_core::{DeviceSpec, Error, Execution, Fuse, Options, Plan, Problem, Result};

use super::lowering;
use super::persistent_program::{of_launches, persistent_in};
use crate::base::base;
use crate::fused::{self, Passing};
use crate::limits::refuse_others;

/// Plans a launch per stage or group for a problem that is not plain, which has been checked. Reductions of what a step finds are
/// made at the end of the step before where an update there makes them at less cost.
pub(super) fn plan_launches(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let passing = passing_as(options);
    let own = plan_general(problem, device, options, passing)?;
    if options.fuse != Fuse::Auto || !device.has(Capability::Warps) {
        return Ok(own);
    }
    let carried = problem.reductions_of_found();
    if carried.is_empty() {
        return Ok(own);
    }
    let changed = problem.carried(&carried)?;
    let other = plan_in_groups(problem, device, options, |_| {
        let partition = fused::worthwhile(&changed, &Boxes::of(&changed)?, device, passing);
        Ok(Partition { carried, ..partition })
    })?;
    Ok(if other.estimated_seconds < own.estimated_seconds { other } else { own })
}

/// Plans a launch per stage or group of the stages as they are.
pub(super) fn plan_general(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    passing: Passing,
) -> Result<Plan> {
    plan_in_groups(problem, device, options, |boxes| {
        Ok(match options.fuse {
            Fuse::Auto => fused::worthwhile(problem, boxes, device, passing),
            Fuse::Off => Partition::alone(&problem.program),
            Fuse::Greedy => fused::greedy(problem, boxes, device, passing),
            Fuse::Search => fused::searched(problem, boxes, device, &[], passing)?,
        })
    })
}

/// Plans a problem that is not plain in the groups that a search finds, without those that are refused, each given by the
/// results that it computes, in ascending order.
///
/// # Errors
///
/// Those of [`plan_stepwise`](super::plan_stepwise), and where one kernel is asked for of
/// [`plan_persistent_program`](super::plan_persistent_program).
pub fn plan_searched(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    refused: &[Vec<Place>],
) -> Result<Plan> {
    problem.check()?;
    plan_as_asked(problem, device, options, |boxes| {
        fused::searched(problem, boxes, device, refused, passing_as(options))
    })
}

/// Plans a problem that is not plain in groups that were found before, of its stages with some of them in parts; `None`
/// where it has no such parts, or no such groups on the device. Both may come from a file.
pub fn plan_grouped(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    splits: &[Split],
    groups: &Groups,
) -> Option<Plan> {
    problem.check().ok().filter(|()| !problem.is_plain())?;
    let split = problem.split(splits).ok()?;
    let partition =
        fused::partition_of(&split, &Boxes::of(&split).ok()?, device, groups, passing_as(options))?;
    let partition = Partition { splits: splits.to_vec(), ..partition };
    plan_as_asked(problem, device, options, |_| Ok(partition)).ok()
}

/// Returns whether stages may be passes: launches have them, one persistent kernel has not.
fn passing_as(options: &Options) -> Passing {
    match options.execution {
        Execution::Persistent => Passing::Refused,
        _ if options.slab => Passing::Slab,
        _ => Passing::Allowed,
    }
}

/// Plans the groups of a partition as launches, or as one persistent kernel where that is asked for.
fn plan_as_asked(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    partition: impl FnOnce(&Boxes) -> Result<Partition>,
) -> Result<Plan> {
    match options.execution {
        Execution::Persistent => persistent_in(problem, device, options, |stepwise| {
            plan_in_groups(problem, device, stepwise, partition)
        }),
        _ => plan_in_groups(problem, device, options, partition),
    }
}

/// Plans a launch per stage or group of a partition that is asked for once the device is found to be able. A block's
/// tile is a leaf of the tree of reductions, and each thread computes one index of it.
fn plan_in_groups(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    partition: impl FnOnce(&Boxes) -> Result<Partition>,
) -> Result<Plan> {
    refuse_others(problem, device, options)?;
    let tile = leaf(problem.shape.dimensions());
    let threads: usize = tile.iter().product();
    if device.threads_per_block < threads {
        let (what, most) = (format!("threads of a block on {}", device.name), device.threads_per_block);
        return Err(Error::limit(what, threads, most, "use another backend"));
    }
    let boxes = Boxes::of(problem)?;
    let bytes = problem.dtype.bytes();
    if let Some(buffer) = boxes.buffers.iter().max_by_key(|buffer| buffer.len())
        && (buffer.len() * bytes) as u64 > device.buffer_bytes
    {
        return Err(Error::limit(
            format!("bytes of one field on {}", device.name),
            buffer.len() * bytes,
            device.buffer_bytes,
            "choose a smaller size, f32 or another backend",
        ));
    }
    let lowering = lowering::lowering(problem, device, options);
    let rows = lowering::rows(problem, device, options, lowering)?;
    let partition = partition(&boxes)?;
    // Of the user's stages.
    let shared_bytes = vec![0; problem.program.stages().len()];
    let problem = &partition.split_problem(problem)?;
    let boxes = Boxes::of(problem)?;
    let storage = Storage::of_groups(problem, &boxes, &partition.groups())?;
    let traffic = traffic(problem, device, &boxes, &storage, &partition);
    let piece_cells = problem.shape.cells();
    let seconds = of_launches(problem, &boxes, device, &partition);
    let schedule = Schedule::Stepwise(Stepwise {
        tile,
        threads: tile,
        shared_bytes,
        piece_cells,
        is_repeated: false,
        lowering,
        points: 1,
        team: 1,
        rows,
        tables: Vec::new(),
        launched: None,
        partition,
    });
    let mut plan = base(problem, device, Execution::Stepwise, schedule, traffic);
    plan.estimated_seconds = seconds;
    Ok(plan)
}

/// Returns the traffic of a step, the mean of those that are repeated, without what is made once for all steps.
fn traffic(
    problem: &Problem,
    device: &DeviceSpec,
    boxes: &Boxes,
    storage: &Storage,
    partition: &Partition,
) -> Traffic {
    let repeated = &storage.steps[storage.repeated..];
    let is_one = |before: &Launch, launch: &Launch| {
        let chain = partition.chain_of(&launch.stages);
        chain.is_some() && chain == partition.chain_of(&before.stages)
    };
    // A phase or step may stand there several times, with other buffers: each counts its part.
    let times = |number: usize| repeated.iter().filter(|step| step.number == number).count() as f64;
    let each = || repeated.iter().filter(|step| !problem.is_once(step.number));
    let (mut loads, mut stores, mut launches) = (0.0, 0.0, 0.0);
    for step in each() {
        let part = 1.0 / times(step.number);
        launches += part * step.launches.chunk_by(is_one).count() as f64;
        for launch in &step.launches {
            let [loaded, stored] = moved(problem, boxes, storage, &[launch]);
            (loads, stores) = (loads + part * loaded, stores + part * stored);
        }
    }
    let mut traffic = Traffic::uncached(problem, device);
    // Each phase of a step with loops counts as one turn of it.
    let cycle = problem.program.cycle().max(1) as f64;
    let per_cell = traffic.cells * cycle;
    (traffic.load_bytes, traffic.store_bytes) = (loads / per_cell, stores / per_cell);
    let cells = traffic.cells * cycle;
    for stage in problem.program.stages().iter().filter(|stage| !stage.points.is_empty()) {
        let [loaded, stored] = problem.stage_bytes(stage);
        (traffic.load_bytes, traffic.store_bytes) =
            (traffic.load_bytes + loaded / cells, traffic.store_bytes + stored / cells);
    }
    traffic.overhead_seconds = device.launch_seconds * launches / cycle;
    traffic
}

/// Returns the bytes that launches which share what they read and make load from memory and store there: each field
/// or temporary once.
pub(crate) fn moved(problem: &Problem, boxes: &Boxes, storage: &Storage, launches: &[&Launch]) -> [f64; 2] {
    let bytes = |buffer: &Buffer| (buffer.len() * problem.dtype.bytes()) as f64;
    let stages = launches.iter().flat_map(|launch| &launch.stages);
    let stages = stages.map(|&stage| &problem.program.stages()[stage]);
    // What an earlier stage of the group has made does not come from memory.
    let (mut read, mut made): (Vec<usize>, Vec<usize>) = Default::default();
    for stage in stages.filter(|stage| stage.points.is_empty()) {
        let taps = stage.footprint.field_radius.iter().enumerate().filter(|(_, radius)| radius.is_some());
        read.extend(taps.map(|(name, _)| name).filter(|name| !made.contains(name)));
        made.extend(&stage.writes);
    }
    let written = launches.iter().flat_map(|launch| launch.made.iter().zip(&launch.writes));
    let mut written: Vec<(usize, usize)> = written
        .filter(|(name, _)| made.contains(name))
        .filter_map(|(&name, buffer)| Some((name, (*buffer)?)))
        .collect();
    read.sort_unstable();
    read.dedup();
    written.sort_unstable();
    written.dedup_by_key(|(name, _)| *name);
    [
        read.iter().fold(0.0, |sum, &name| sum + bytes(&boxes.buffers[name])),
        written.iter().fold(0.0, |sum, &(_, buffer)| sum + bytes(&storage.buffers[buffer])),
    ]
}

/// Returns the launches of a step of a plan, the mean of its cycle.
pub(super) fn launches(plan: &Plan) -> f64 {
    let Some(steps) = plan.stages().map(|tiles| &tiles.partition.steps) else { return 0.0 };
    steps.iter().map(Vec::len).sum::<usize>() as f64 / steps.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use abide_core::catalogue::cloverleaf;
    use abide_core::program::{Centring, Definition, Reduction};
    use std::sync::Arc;

    use abide_core::{CachePolicy, DType, Depth, Shape};

    use super::*;
    use crate::choice::plan;
    use crate::persistent::plan_persistent;
    use crate::stepwise::plan_stepwise;
    use crate::streaming::warp::plan_streaming;

    fn clover() -> Problem {
        let shape = Shape::new(&[960, 960]).unwrap();
        Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap()
    }

    #[test]
    fn a_program_runs_a_launch_per_stage() {
        let (problem, device) = (clover(), DeviceSpec::preset("h200").unwrap());
        let plan = plan(&problem, &device, &Options::default()).unwrap();
        let tiles = plan.stepwise().unwrap();
        assert_eq!(
            (plan.execution, tiles.tile, tiles.threads),
            (Execution::Stepwise, [1, 8, 32], [1, 8, 32])
        );
        assert!(tiles.shared_bytes.iter().all(|&bytes| bytes == 0));
        assert_eq!(plan.check(&problem), Ok(()));
        // At the very least each field is read once; at the most each stage moves nine of them.
        let stages = problem.program.stages().len() as f64 / 2.0;
        let (least, most) = (15.0 * 8.0 / 4.9e12, stages * 9.0 * 8.0 / 4e12);
        let seconds = (plan.estimated_seconds - plan.traffic.overhead_seconds) / problem.shape.cells() as f64;
        assert!((least..most).contains(&seconds), "{seconds}");
        assert!(plan.traffic.overhead_seconds > 20.0 * device.launch_seconds);
    }

    /// A stable time step of what a step finds: the update of the step before has the values at hand.
    #[test]
    fn a_reduction_of_what_a_step_finds_is_carried() {
        let mut p = Definition::new("limited", 2);
        p.field("u", Centring::CELL).scalar("most", None, "of u");
        p.step().reduce("most", Reduction::Max, Centring::CELL, |s| s.field("u").here().abs()).stage(
            "heat",
            |s| {
                let u = s.field("u");
                s.set("u", u.here() + 0.1 / (1.0 + s.param("most")) * u.laplacian());
            },
        );
        let shape = Shape::new(&[8192, 8192]).unwrap();
        let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let of = |fuse| {
            let options = Options { fuse, ..Options::default() };
            plan_stepwise(&problem, &device, &options).unwrap()
        };
        let (own, alone) = (of(Fuse::Auto), of(Fuse::Off));
        let partition = |plan: &Plan| plan.stepwise().unwrap().partition.clone();
        assert_eq!((partition(&own).carried, partition(&alone).carried), (vec![0], vec![]));
        let groups: Vec<Vec<usize>> = partition(&own).all().map(|group| group.stages.clone()).collect();
        assert_eq!(groups, [vec![0], vec![1, 2]]);
        // Once less through the field, of three times.
        let ratio = own.estimated_seconds / alone.estimated_seconds;
        assert!((0.6..0.9).contains(&ratio), "{ratio}");
        assert_eq!(own.check(&problem), Ok(()));
        assert!(own.explain().contains("at the end of the step before"), "{}", own.explain());
    }

    #[test]
    fn any_other_schedule_is_refused() {
        let (problem, device) = (clover(), DeviceSpec::preset("h200").unwrap());
        let with = |execution, cache, depth| Options { execution, cache, depth, ..Options::default() };
        let (auto, none) = (CachePolicy::Auto, Depth::Auto);
        for options in [
            with(Execution::Streaming, auto, none),
            with(Execution::Overlapped, auto, none),
            with(Execution::Auto, CachePolicy::Mixed, none),
            with(Execution::Stepwise, CachePolicy::Registers, none),
            with(Execution::Auto, auto, Depth::Steps(4)),
        ] {
            let error = plan(&problem, &device, &options).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains("runs a launch per stage"), "{error}");
        }
        for other in [plan_persistent, plan_streaming] {
            assert!(matches!(other(&problem, &device, &Options::default()), Err(Error::Unsupported { .. })));
        }
        assert!(plan(&problem, &device, &with(Execution::Stepwise, CachePolicy::None, none)).is_ok());
    }
}
