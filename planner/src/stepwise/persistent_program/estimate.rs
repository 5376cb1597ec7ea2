//! The planner's estimates of a step of a program that is not plain: as a launch for each group, and as tasks of one
//! persistent kernel. Both take what a group computes and moves from `estimate`.

use abide_core::plan::fused::{Group, Partition};
use abide_core::plan::{Carrier, Chain, PersistentProgram};
use abide_core::program::{Boxes, around, is_renamed};
use abide_core::{DeviceSpec, Problem};

use crate::estimate::{bytes_alone, bytes_of_tail, grouped, held_at_once, multiprocessors};
use crate::fused::{link_seconds, pass_seconds};
use crate::stepwise::launch::{launch_seconds, stage_seconds, tail_seconds};
use crate::stepwise::reached_cells;

/// Seconds of a task for which a block waits: a flag and a poll (0.75 µs on an H200), and loads that nothing hides.
pub const TASK_SECONDS: f64 = 1.5e-6;

/// Returns the seconds of a step with a launch for each group, the mean of the cycle: a turn of each loop, and nothing of what is
/// made once for all steps. The problem is that whose stages the groups are of.
pub fn of_launches(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, partition: &Partition) -> f64 {
    let reached = reached_cells(problem, device);
    let chains = partition.chains.iter().filter(|chain| !problem.is_once(chain.step));
    let chains = chains.map(|chain| chain_seconds(problem, boxes, device, partition, chain)).sum::<f64>();
    chains / problem.program.cycle().max(1) as f64
        + mean(problem, boxes, partition, |group| match partition.chain_of(&group.stages) {
            Some(_) => 0.0,
            None => group_seconds(problem, boxes, device, group, &reached),
        })
}

/// Returns the seconds of a group with its launch.
fn group_seconds(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    group: &Group,
    reached: &[f64],
) -> f64 {
    if let Some(seconds) = pass_seconds(problem, boxes, device, group) {
        return seconds;
    }
    let seconds = match &group.fused {
        Some(fused) => grouped(problem, boxes, device, fused).seconds,
        None => of_stages(problem, boxes, device, group, reached),
    };
    launch_seconds(device, seconds)
}

/// Returns the seconds of a chain with its launch.
pub fn chain_seconds(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    partition: &Partition,
    chain: &Chain,
) -> f64 {
    let groups = partition.of_chain(chain);
    match (chain.by, groups) {
        (Carrier::Blocks { blocks, alone, .. }, _) => {
            let launched = groups.iter().filter(|group| !is_name(problem, boxes, group));
            let links = launched.map(|group| link_seconds(problem, boxes, [blocks, alone], group));
            launch_seconds(device, 0.0) + links.sum::<f64>()
        }
        (Carrier::Reduction, [first, ..]) => {
            group_seconds(problem, boxes, device, first, &reached_cells(problem, device))
        }
        (Carrier::Reduction, []) => 0.0,
    }
}

/// Returns the seconds of a stage, or of an update that reduces what it makes, without a launch.
fn of_stages(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, group: &Group, reached: &[f64]) -> f64 {
    let stage = |number: usize| &problem.program.stages()[number];
    match group.stages[..] {
        [update, reduction] => {
            let stages = [stage(update), stage(reduction)];
            tail_seconds(problem, device, stages, bytes_of_tail(problem, boxes, stages), reached[update])
        }
        ref alone => {
            let seconds = |&number: &usize| {
                let bytes = bytes_alone(problem, boxes, stage(number));
                stage_seconds(problem, device, stage(number), bytes, reached[number])
            };
            alone.iter().map(seconds).sum()
        }
    }
}

/// Returns the seconds of a step as tasks of a persistent kernel, in the same way.
///
/// A task's tiles are shared out among the blocks once and for all, so the one that has the most is the last; of a group a
/// multiprocessor holds as many blocks as the kernel has there. Not in it: registers of the largest task, which all have,
/// and what blocks gain that need not wait for the slowest of all.
pub fn of_tasks(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, own: &PersistentProgram) -> f64 {
    let reached = reached_cells(problem, device);
    mean(problem, boxes, &own.tiles.partition, |group| {
        let (seconds, tiles) = match &group.fused {
            Some(fused) => {
                let most = own.blocks_per_multiprocessor;
                let estimate = held_at_once(problem, boxes, device, fused, most);
                (estimate.seconds, fused.blocks.iter().product())
            }
            None => {
                let seconds = of_stages(problem, boxes, device, group, &reached);
                let all = group.stages.iter().filter_map(|&stage| around(&boxes.stages[stage]));
                let tiles = all.map(|all| {
                    let extents = [0, 1, 2].map(|axis| all[axis].len());
                    own.tiles.blocks(extents).iter().product::<usize>()
                });
                (seconds, tiles.sum())
            }
        };
        seconds * uneven(tiles, own.blocks, multiprocessors(device)) + TASK_SECONDS
    })
}

/// Returns how much longer the block takes that has the most tiles than all would with the same share; where there are
/// fewer tiles than blocks, the multiprocessor.
fn uneven(tiles: usize, blocks: usize, multiprocessors: usize) -> f64 {
    let places = if tiles < blocks { multiprocessors.min(blocks) } else { blocks }.max(1);
    match tiles {
        0 => 1.0,
        tiles => (tiles.div_ceil(places) * places) as f64 / tiles as f64,
    }
}

/// Returns whether a group is a stage that only renames, and is never launched.
fn is_name(problem: &Problem, boxes: &Boxes, group: &Group) -> bool {
    matches!(*group.stages, [stage] if is_renamed(problem, boxes, stage))
}

/// Returns the mean of the steps' sums over all groups that are launched in each: what only renames is not.
fn mean(problem: &Problem, boxes: &Boxes, partition: &Partition, seconds: impl Fn(&Group) -> f64) -> f64 {
    let steps = partition.steps.iter().enumerate().filter(|(place, _)| !problem.is_once(*place));
    let all = steps.flat_map(|(_, groups)| groups).filter(|group| !is_name(problem, boxes, group));
    all.map(seconds).sum::<f64>() / problem.program.cycle().max(1) as f64
}

#[cfg(test)]
mod tests {
    use abide_core::catalogue::cloverleaf;
    use std::sync::Arc;

    use abide_core::program::{Centring, Definition, Solve, SolveMethod};
    use abide_core::{Boundary, DType, Execution, Fuse, Options, Shape, Tune};

    use super::*;
    use crate::choice::plan;

    fn seconds(extent: usize, options: &Options) -> f64 {
        let device = DeviceSpec::preset("h200").unwrap();
        let shape = Shape::new(&[extent, extent]).unwrap();
        let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
        plan(&problem, &device, options).unwrap().estimated_seconds
    }

    /// Milliseconds a step of CloverLeaf in f64 on an H200, commit efafd85 (`benches/results/h200-programs.csv`).
    #[test]
    fn launches_take_what_was_measured() {
        for (extent, fuse, measured) in [
            (960, Fuse::Off, 0.299),
            (3840, Fuse::Off, 4.30),
            (7680, Fuse::Off, 17.0),
            (3840, Fuse::Greedy, 3.36),
            (7680, Fuse::Greedy, 13.3),
        ] {
            let estimate = 1e3 * seconds(extent, &Options { fuse, ..Options::default() });
            println!("{extent} {fuse}: {estimate:.3} ms, measured {measured}");
            assert!(
                (estimate / measured - 1.0).abs() < 0.25,
                "{extent} {fuse}: {estimate} ms, not {measured}"
            );
        }
    }

    /// Steps of systems, in milliseconds on an H200 (`benches/results/h200-multigrid.csv`): a turn of their loop and what stands around
    /// it, and nothing of the set-up, which is made once. No turn moves less than the memory takes.
    #[test]
    fn loops_are_one_turn_of_a_step() {
        let device = DeviceSpec::preset("h200").unwrap();
        for (method, measured) in [(SolveMethod::Direct, 1.87), (SolveMethod::Multigrid, 10.8 / 6.0)] {
            let mut p = Definition::new("poisson", 3);
            p.field("u", Centring::CELL).field("f", Centring::CELL).boundary(Boundary::Periodic);
            let how = Solve { method, null_space: true, ..Solve::default() };
            p.step().solve("u", &how, &|s| -s.field("u").laplacian(), &|s| s.field("f").here());
            let shape = Shape::new(&[256; 3]).unwrap();
            let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap();
            let plan = plan(&problem, &device, &Options { tune: Tune::Off, ..Options::default() }).unwrap();
            let estimate = 1e3 * plan.estimated_seconds;
            println!("{method:?}: {estimate:.3} ms, measured {measured}");
            assert!((0.7..2.0).contains(&(estimate / measured)), "{method:?}: {estimate} ms, not {measured}");
            assert!(plan.project(1000).seconds <= 1000.0 * plan.estimated_seconds, "{method:?}");
        }
    }

    /// A persistent kernel is for domains on which launches matter: there it is estimated to be faster, and where tiles do
    /// not go round evenly it is slower than its share of them.
    #[test]
    fn a_persistent_kernel_pays_on_small_domains() {
        let ratio = |extent: usize| {
            let persistent =
                Options { execution: Execution::Persistent, fuse: Fuse::Off, ..Options::default() };
            let own = seconds(extent, &persistent);
            own / seconds(extent, &Options { fuse: Fuse::Off, ..Options::default() })
        };
        let (small, large) = (ratio(96), ratio(3840));
        println!("{small} {large}");
        assert!(small < 0.8 && (0.95..1.1).contains(&large), "{small} {large}");
        assert_eq!(uneven(528, 528, 132), 1.0);
        // A block has two tiles, the others one.
        assert_eq!(uneven(529, 528, 132), 1056.0 / 529.0);
        // 140 tiles: a multiprocessor has two of them.
        assert_eq!(uneven(140, 528, 132), 264.0 / 140.0);
    }
}
