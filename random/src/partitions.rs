//! Random partitions of a program's stages into groups, some of the stages in parts, with random tiles: any that can
//! run.

use abide_core::plan::fused::{Fused, Group, GroupKernel, Partition};
use abide_core::program::{Boxes, Groups, Split, outlasts, waits};
use abide_core::reduction::leaf;
use abide_core::{Depth, DeviceSpec, Execution, Options, Problem, Result, Tune};
use abide_planner::fused::{Links, chains, fused};
use abide_planner::plan_streaming;
use fastrand::Rng;

/// Tries that fail before a partition is taken as it is.
const FAILURES: usize = 40;

/// Returns some of the stages that have parts in random parts; the same for the same seed.
fn splits(problem: &Problem, seed: u64) -> Result<Vec<Split>> {
    let mut rng = Rng::with_seed(seed ^ 0x5911);
    let mut splits = problem.splits(&Boxes::of(problem)?);
    splits.retain(|_| rng.u8(..4) > 0);
    for split in &mut splits {
        rng.shuffle(&mut split.parts);
        while split.parts.len() > 2 && rng.bool() {
            let mut part = split.parts.pop().unwrap_or_default();
            split.parts[0].append(&mut part);
            split.parts[0].sort_unstable();
        }
    }
    Ok(splits)
}

/// Returns a random partition of a problem that is not plain, some of its stages in parts, whose groups are blocks of so many threads and keep at
/// most so many values in shared memory; the same for the same seed. Where `copies` is given, some groups copy what they read there.
pub fn partition(
    problem: &Problem,
    seed: u64,
    threads: usize,
    values: usize,
    copies: bool,
) -> Result<Partition> {
    let mut rng = Rng::with_seed(seed);
    let splits = splits(problem, seed)?;
    let problem = &problem.split(&splits)?;
    let boxes = Boxes::of(problem)?;
    let mut groups = Groups::needed(&problem.program, &boxes);
    let mut made: Vec<(Vec<usize>, Fused)> = Vec::new();
    for step in &mut groups.steps {
        let mut failures = 0;
        while failures < FAILURES && step.len() > 1 {
            failures += 1;
            let [one, two] = [rng.usize(..step.len()), rng.usize(..step.len())];
            if one == two {
                continue;
            }
            let mut union = [&step[one][..], &step[two]].concat();
            union.sort_unstable();
            let others = step.iter().enumerate().filter(|(place, _)| *place != one && *place != two);
            let all = others.map(|(_, group)| group.clone()).chain([union.clone()]).collect();
            let Some(ordered) = ordered(problem, all, &mut rng) else { continue };
            let tile = tile(problem, &mut rng);
            let needed = outlasts(problem, &boxes, &union);
            let copied = copies && rng.u8(..3) > 0;
            let Ok(group) = fused(problem, &boxes, &union, &needed, tile, threads, copied) else { continue };
            // The argument of a reduction has rows of its own.
            let rows = group.rings.iter().map(|ring| ring.rows).sum::<usize>() + 9;
            let bytes = values * problem.dtype.bytes();
            if rows * group.values_of_row() > values || group.shared_bytes(problem) > bytes {
                continue;
            }
            made.push((union, group));
            *step = ordered;
            if rng.u8(..6) == 0 {
                break;
            }
        }
    }
    let partition = Partition::of(groups, |stages| {
        let fused = made.iter().find(|(known, _)| known == stages);
        fused.map(|(_, fused)| GroupKernel::Tiles(fused.clone()))
    });
    Ok(Partition { splits, ..partition })
}

/// Returns the partition of a problem in which stages that repeat one formula are passes of 2 to 4 of them on a device.
///
/// # Errors
///
/// Those of [`Boxes::of`].
pub fn passes(problem: &Problem, device: &DeviceSpec, seed: u64) -> Result<Partition> {
    let boxes = Boxes::of(problem)?;
    let mut partition = Partition::alone(&problem.program);
    let pass = |stages: &[usize]| {
        let repeated = problem.repeated(&boxes, stages)?;
        let options = Options {
            execution: Execution::Streaming,
            depth: Depth::Steps(stages.len() as u32),
            tune: Tune::Off,
            ..Options::default()
        };
        let plan = plan_streaming(&repeated.problem, device, &options).ok()?;
        Some(GroupKernel::Pass(plan.warp_streaming()?.configuration()))
    };
    for step in &mut partition.steps {
        let mut place = 0;
        while place < step.len() {
            let most = (2 + seed as usize % 3).min(step.len() - place);
            for depth in (2..=most).rev() {
                let stages: Vec<usize> = (0..depth).map(|by| step[place + by].stages[0]).collect();
                if let Some(kernel) = pass(&stages) {
                    step.splice(place..place + depth, [Group::new(stages, Some(kernel))]);
                    break;
                }
            }
            place += 1;
        }
    }
    Ok(partition)
}

/// Returns a random tile, of whole leaves in half of all cases.
fn tile(problem: &Problem, rng: &mut Rng) -> [usize; 3] {
    let dimensions = problem.shape.dimensions();
    let whole = rng.bool();
    let leaf = leaf(dimensions);
    std::array::from_fn(|axis| match (axis < 3 - dimensions, whole) {
        (true, _) => 1,
        (_, true) => leaf[axis] * rng.usize(1..=2),
        _ => rng.usize(1..=[9, 9, 40][axis]),
    })
}

/// Returns groups in a random order in which they can run; `None` if there is none.
fn ordered(problem: &Problem, mut left: Vec<Vec<usize>>, rng: &mut Rng) -> Option<Vec<Vec<usize>>> {
    let follows = |later: &[usize], earlier: &[usize]| {
        later.iter().any(|&two| earlier.iter().any(|&one| one < two && waits(problem, two, one)))
    };
    let mut done = Vec::new();
    while !left.is_empty() {
        let is_free = |place: &usize| {
            left.iter().enumerate().all(|(other, group)| other == *place || !follows(&left[*place], group))
        };
        let ready: Vec<usize> = (0..left.len()).filter(is_free).collect();
        let chosen = *ready.get(rng.usize(..ready.len().max(1)))?;
        done.push(left.swap_remove(chosen));
    }
    Some(done)
}

/// Returns a partition with chains of few small blocks wherever groups can be chained, however many values they go over.
///
/// # Errors
///
/// Those of [`Partition::split_problem`] and [`Boxes::of`].
pub fn chained(problem: &Problem, partition: Partition, seed: u64) -> Result<Partition> {
    let mut rng = Rng::with_seed(seed ^ 0xc4a1);
    let problem = &partition.split_problem(problem)?;
    let (blocks, threads) = (rng.usize(1..3), [32, 64][rng.usize(..2)]);
    let links = Links { blocks, threads, most: usize::MAX, alone: [0, 64, 256][rng.usize(..3)] };
    let chains = chains(problem, &Boxes::of(problem)?, &partition, &links);
    Ok(Partition { chains, ..partition })
}
