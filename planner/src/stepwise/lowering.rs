//! How loops of formulas become text.

use abide_core::expr::{Looped, MAX_LANES};
use abide_core::{
    DeviceSpec, Error, Execution, Jam, LoopRows, Lowering, Options, Placement, Plan, Problem, Result, Stage,
    Team,
};

use super::{plan_stepwise, tables};

/// The most terms of a stage whose loops are written out unless they are to be kept: compilers take some seconds for them.
const MOST_WRITTEN_OUT: usize = 1 << 15;

/// The most nodes of a stage with each turn written out, on a device whose blocks share tables. Of an H100, text of 1189 to 4278
/// nodes was 1.7 to 2.1 times as fast as loops, and that of 8173, which its caches of instructions do not hold, took 1.28
/// times as long.
const MOST_BESIDE_TABLES: usize = 5000;

/// The most points of a thread that share a pass over a loop.
const MOST_TOGETHER: usize = 16;

/// The most turns of a loop that share a pass over its inner loops.
const MOST_ROWS: usize = 16;

/// The turns that share a pass unless a number is given, where blocks share tables. On an H200 the properties of 10,
/// 33 and 53 species were 1.17 to 1.33 times as fast as with one, up to 5 % faster than with two; eight leave too few
/// warps.
const ROWS: usize = 4;

/// The same of loops that carry nothing, whose rows hold little: on an H200 a kernel by hand that stores the products of two times
/// 64 components took 5.9 ms row by row, 4.2, 3.5, 2.8 and 2.6 ms with 2, 4, 8 and 16 rows.
const ROWS_OF_RESULTS: usize = 16;

/// Registers of a thread beside those of its points' values: addresses, indices, entries of tables and constants.
const OTHER_REGISTERS: usize = 40;

/// Returns how many points of a thread share a pass over loops. Jammed loops hold the values of each point and of each
/// row that shares the pass. Unless a number is given, the result is the largest power of two for which registers hold
/// all of these values, and at least 2.
pub(super) fn points(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    lowering: Lowering,
    rows: usize,
) -> Result<usize> {
    if lowering != Lowering::Jammed {
        return Ok(1);
    }
    if let Jam::Points(asked) = options.jam {
        return match asked as usize {
            points @ 1..=MOST_TOGETHER if points.is_power_of_two() => Ok(points),
            points => {
                let limit = format!("a power of two up to {MOST_TOGETHER}");
                Err(Error::limit(
                    "points of a thread that go through loops together",
                    points,
                    limit,
                    "use --jam auto",
                ))
            }
        };
    }
    let held = looped(problem).map(|looped| looped.most_held(rows)).max().unwrap_or(0);
    let held = held * problem.dtype.bytes().div_ceil(4);
    let registers = device.registers_per_thread.unwrap_or(0);
    let fits = |points: &usize| OTHER_REGISTERS + held * points <= registers;
    Ok([8, 4].into_iter().find(fits).unwrap_or(2))
}

/// Returns how many threads share the loops of a point, 1 where a point is a thread's alone.
pub(super) fn team(problem: &Problem, options: &Options, lowering: Lowering) -> Result<usize> {
    if lowering != Lowering::Team {
        return Ok(1);
    }
    let lanes = || looped(problem).flat_map(|looped| &looped.loops).map(|each| each.turns.lanes());
    let team = match options.team {
        Team::Auto => lanes().filter(|lanes| *lanes > 1).max().unwrap_or(MAX_LANES),
        Team::Threads(asked) => asked as usize,
    };
    if !team.is_power_of_two() || !(2..=MAX_LANES).contains(&team) {
        let limit = format!("a power of two from 2 to {MAX_LANES}");
        return Err(Error::limit("threads of a team", team, limit, "use --team auto"));
    }
    if !looped(problem).any(|looped| looped.shared(team).contains(&true)) {
        let reason = format!("no formula has a tree sum of {team} lanes, or a loop that only stores");
        let change = "write the sum as tree_sum, whose bits a team can make, or use --lowering loops";
        return Err(Error::invalid("--lowering team", reason, change));
    }
    Ok(team)
}

/// Returns how many turns of a loop share a pass over its inner loops; 1 where each turn has its own pass. Jammed
/// points leave few registers, so their turns share a pass only on request.
pub(super) fn rows(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    lowering: Lowering,
) -> Result<usize> {
    let have_rows = || looped(problem).any(Looped::has_rows);
    match options.rows {
        // A team's threads have turns of their own.
        _ if !lowering.keeps_loops() || lowering == Lowering::Team => Ok(1),
        LoopRows::Auto if lowering == Lowering::Loops && tables::are_shared(device) && have_rows() => {
            let carry = looped(problem).any(Looped::rows_carry);
            Ok(if carry { ROWS } else { ROWS_OF_RESULTS })
        }
        LoopRows::Auto | LoopRows::Turns(1) => Ok(1),
        LoopRows::Turns(asked) if asked as usize > MOST_ROWS => {
            let what = "turns of a loop that go through the loops within it together";
            Err(Error::limit(what, asked, format!("1 to {MOST_ROWS}"), "use --rows auto"))
        }
        LoopRows::Turns(_) if !have_rows() => {
            let reason = "no formula has a loop of two turns or more with an innermost loop within it that needs \
                          nothing of the turn before";
            Err(Error::invalid("--rows", reason, "leave --rows at auto"))
        }
        LoopRows::Turns(asked) => Ok(asked as usize),
    }
}

/// Returns the formulas of a problem that have loops.
fn looped(problem: &Problem) -> impl Iterator<Item = &Looped> {
    problem.program.stages().iter().filter_map(|stage| stage.looped.as_ref())
}

/// Fits a tile and its threads to the points of a thread that share a pass over loops, to the threads of a point, and
/// to blocks that process tiles one after another. A tile that is staged in shared memory keeps its size, and has
/// fewer threads.
pub(super) fn fit(
    points: usize,
    team: usize,
    is_staged: bool,
    goes_on: bool,
    tile: &mut [usize; 3],
    threads: &mut [usize; 3],
) -> Result<()> {
    // A row of threads is a warp or more, and no team is larger.
    threads[2] = (threads[2] / team).max(1);
    if !is_staged {
        if goes_on || team > 1 {
            *tile = *threads;
        }
        tile[2] = tile[2].next_multiple_of(points * threads[2]);
        return Ok(());
    }
    if !tile[2].is_multiple_of(points) {
        let what = "cells of a tile's rows that go through loops together";
        return Err(Error::limit(what, tile[2], format!("a multiple of {points}"), "use --lowering loops"));
    }
    threads[2] = threads[2].min(tile[2] / points);
    Ok(())
}

/// Returns how the loops of a problem's launches per stage become text.
pub(super) fn lowering(problem: &Problem, device: &DeviceSpec, options: &Options) -> Lowering {
    let is_too_long = |stage: &Stage| match stage.looped.as_ref() {
        None => false,
        Some(_) if tables::are_shared(device) => stage.dag.nodes.len() > MOST_BESIDE_TABLES,
        Some(looped) => looped.written_out() > MOST_WRITTEN_OUT,
    };
    match options.lowering {
        _ if looped(problem).next().is_none() || !can_keep(problem, device) => Lowering::Straight,
        Lowering::Auto if problem.program.stages().iter().any(is_too_long) => Lowering::Loops,
        asked @ (Lowering::Loops | Lowering::Jammed | Lowering::Team) => asked,
        Lowering::Auto | Lowering::Straight => Lowering::Straight,
    }
}

/// Returns whether launches per stage can keep a problem's loops.
fn can_keep(problem: &Problem, device: &DeviceSpec) -> bool {
    problem.is_plain() || (!problem.is_batch() && tables::are_shared(device))
}

/// Refuses options of loops that are kept where none are.
fn check(options: &Options) -> Result<()> {
    let other = match options.lowering {
        lowering if options.team != Team::Auto && lowering != Lowering::Team => {
            ("--team", "threads share the loops of a point", "add --lowering team")
        }
        Lowering::Jammed => return Ok(()),
        Lowering::Auto | Lowering::Straight | Lowering::Team if options.rows != LoopRows::Auto => {
            ("--rows", "turns of loops that are kept go together", "add --lowering loops or jammed")
        }
        _ if options.jam != Jam::Auto => {
            ("--jam", "points go through loops together", "add --lowering jammed")
        }
        Lowering::Loops | Lowering::Team => return Ok(()),
        _ if options.tables != Placement::Auto => {
            ("--tables", "loops that are kept read tables", "add --lowering loops, jammed or team")
        }
        _ => return Ok(()),
    };
    let (what, reason, change) = other;
    Err(Error::invalid(what, format!("{reason} only where that is asked for"), change))
}

/// Plans for a device whose launches per stage keep loops, where loops are asked for: no other kernels do. `None` where
/// they are not asked for.
pub(crate) fn plan_loops(problem: &Problem, device: &DeviceSpec, options: &Options) -> Option<Result<Plan>> {
    if let Err(error) = check(options) {
        return Some(Err(error));
    }
    options.lowering.keeps_loops().then(|| {
        let is_stepwise = matches!(options.execution, Execution::Auto | Execution::Stepwise);
        if !is_stepwise {
            let reason = format!("execution {} writes out each turn of a loop", options.execution);
            return Err(refused(device, reason, "use --execution stepwise, or --lowering straight"));
        }
        if !can_keep(problem, device) {
            let reason = "kernels of batches, and on other devices than CUDA's those of programs of several stages, write \
                          out each turn of a loop";
            return Err(refused(device, reason.to_owned(), "use --lowering straight"));
        }
        let has_tables = matches!(options.tables, Placement::Auto | Placement::Memory);
        if !problem.is_plain() && (options.lowering != Lowering::Loops || !has_tables) {
            let reason = "a thread of a program of several stages goes through the loops of its cell, with tables in \
                          device memory";
            return Err(refused(device, reason.to_owned(), "use --lowering loops, with --tables auto"));
        }
        plan_stepwise(problem, device, options)
    })
}

/// Refuses loops where a device runs formulas with each turn written out.
pub(crate) fn refuse_loops(device: &DeviceSpec, options: &Options) -> Result<()> {
    check(options)?;
    match options.lowering.keeps_loops() {
        true => {
            let reason = "a CPU's instructions are those of each turn of a loop".to_owned();
            Err(refused(device, reason, "use --lowering straight, or a GPU"))
        }
        false => Ok(()),
    }
}

/// Refuses what only CUDA's kernels do: several points of a thread, and several threads of a point.
pub(crate) fn refuse_points_and_teams(device: &DeviceSpec, options: &Options) -> Result<()> {
    let reason = match options.lowering {
        Lowering::Jammed => "WGSL has no operators for several points of a thread",
        Lowering::Team => "WGSL does not say which threads can add their values without a barrier",
        _ => return Ok(()),
    };
    Err(refused(device, reason.to_owned(), "use --lowering loops, or CUDA"))
}

fn refused(device: &DeviceSpec, reason: String, change: &str) -> Error {
    Error::unsupported(device.name.clone(), reason, change)
}
