//! The memory that a run holds, asked for before any of it is taken.

use abide_core::plan::{Order, Schedule};

use super::{Kind, Opened, processes};
use crate::memory::Budget;
use crate::program::Problem;
use crate::{DType, Plan, Result};

/// Bytes of the host's memory that a run takes beside what its backend takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    /// Number of initial fields that are still to be made.
    pub(crate) fields: usize,
    /// Bytes that reading initial fields from files takes besides.
    pub(crate) reading: u128,
    /// Bytes that reading them takes where a process has a part of the domain and the file is read whole all the same.
    pub(crate) reading_whole: u128,
    /// Bytes that reading fields back and writing files takes at once.
    pub(crate) output: u128,
}

impl Host {
    /// Nothing beside what the backend takes: memory for the rest was asked for already.
    pub(crate) const ASKED: Host = Host { fields: 0, reading: 0, reading_whole: 0, output: 0 };

    /// Sums up a run that makes all fields anew and reads them back one at a time.
    pub(crate) fn of(problem: &Problem) -> Host {
        let output = field_bytes(problem);
        Host { fields: problem.program.fields().len(), reading: 0, reading_whole: 0, output }
    }
}

/// Returns the bytes of a field, in a batch the sum over all members.
fn field_bytes(problem: &Problem) -> u128 {
    problem.shape.bytes(problem.dtype) as u128 * problem.members() as u128
}

/// Bytes of a session of its own for a member of a batch, and of each of its stages, beside its fields: somewhat
/// more than was found on a CPU with a program of many stages.
const SESSION: u128 = 64 << 10;
const STAGE: u128 = 12 << 10;

/// Returns the bytes that sessions take beside the fields, where each member of a batch has its own.
fn session_bytes(kind: Kind, problem: &Problem, plan: Option<&Plan>) -> u128 {
    let is_at_once = plan.and_then(|plan| plan.batch).is_some_and(|batch| batch.order == Order::AtOnce);
    let are_apart = match kind {
        // The members of a plain batch take turns in a few sessions.
        Kind::Cpu => !problem.is_plain(),
        Kind::Gpu | Kind::Software => !is_at_once,
    };
    match problem.is_batch() && are_apart {
        true => problem.members() as u128 * (SESSION + STAGE * problem.program.stages().len() as u128),
        false => 0,
    }
}

/// Checks that the machine has memory for all that a run holds at the same time.
pub(super) fn check_memory(
    opened: &Opened,
    problem: &Problem,
    plan: Option<&Plan>,
    host: Host,
    copies: usize,
) -> Result<()> {
    let program = &problem.program;
    let (all, field) = (program.fields().len(), field_bytes(problem));
    let written = (0..all).filter(|&field| program.is_written(field)).count();
    // The planes that threads keep in a pass, of all threads at once.
    let rings = match plan.map(|plan| &plan.schedule) {
        Some(Schedule::Cpu(cpu)) => {
            // Members of a batch that run side by side have the planes of a thread each.
            let is_shared =
                plan.and_then(|plan| plan.batch).is_some_and(|batch| batch.order == Order::AtOnce);
            let threads =
                if is_shared { plan.map_or(1, |plan| plan.device.multiprocessors) } else { cpu.threads };
            let threads = threads as u128;
            cpu.tiling.as_ref().map_or(0, |tiling| threads * tiling.ring_bytes as u128)
        }
        _ => 0,
    };
    if let Some(ranks) = plan.and_then(|plan| plan.ranks.as_ref())
        && let Some(own) = ranks.own.get(processes::rank())
        && processes::count() > 1
    {
        return of_slab(problem, own.len() + 2 * ranks.halo, rings, host)
            .check(&format!("{}, or start more processes on other machines", smaller(problem)));
    }
    let budget = Budget::new("memory for the fields").with(several(host.fields), host.fields as u128 * field);
    // With a device that has its own memory, the machine's memory holds the initial fields alone. Other
    // devices compute beside the fields.
    let budget = match opened.kind {
        Kind::Gpu => budget,
        Kind::Cpu => {
            budget.with("the CPU's second copy", written as u128 * field).with("the planes at work", rings)
        }
        Kind::Software => budget.with("the driver's copies", (all + written) as u128 * field),
    };
    let budget = match plan.and_then(|plan| plan.ranks.as_ref()) {
        Some(ranks) => {
            let planes = problem.shape.padded()[problem.slowest()].max(1) as u128;
            let halos = 2 * (ranks.halo * ranks.own.len()) as u128 * field / planes;
            let budget = budget.with("the halos of slabs", (all + written) as u128 * halos);
            budget.with("a field in slabs beside the whole", field)
        }
        None => budget,
    };
    let budget = budget.with("a session for each member", session_bytes(opened.kind, problem, plan));
    let budget = budget.with("a copy for another backend", (copies * all) as u128 * field);
    // Files are read before anything is written.
    let budget = match host.reading > host.output {
        true => budget.with("reading the input", host.reading),
        false => budget.with("the output", host.output),
    };
    budget.check(&smaller(problem))
}

/// Returns the advice for a problem that memory has no room for: what would take less.
pub fn smaller(problem: &Problem) -> String {
    let batch = problem.is_batch().then_some("a smaller --batch");
    let dtype = (problem.dtype == DType::F64).then_some("--dtype f32");
    let all: Vec<&str> = batch.into_iter().chain(["a smaller --size"]).chain(dtype).collect();
    match all.split_last() {
        Some((last, [])) => format!("choose {last}"),
        Some((last, others)) => format!("choose {} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the memory of a process with a slab of so many planes: it makes, reads and keeps no more than that.
fn of_slab(problem: &Problem, planes: usize, rings: u128, host: Host) -> Budget {
    let program = &problem.program;
    let (all, field) = (program.fields().len(), field_bytes(problem));
    let written = (0..all).filter(|&field| program.is_written(field)).count();
    let whole = problem.shape.padded()[problem.slowest()].max(1) as u128;
    let slab = field * planes as u128 / whole;
    let reading = (host.reading * planes as u128 / whole).max(host.reading_whole);
    let budget =
        Budget::new("memory for a process's slab of the fields").with(several(all), all as u128 * slab);
    let budget =
        budget.with("the CPU's second copy", written as u128 * slab).with("the planes at work", rings);
    match reading > host.output {
        true => budget.with("reading the input", reading),
        false => budget.with("the output", host.output),
    }
}

fn several(count: usize) -> String {
    if count == 1 { "1 field".to_owned() } else { format!("{count} fields") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Shape;

    #[test]
    fn a_process_asks_for_its_slab_and_not_for_the_whole() {
        let program = abide_core::catalogue::find("gray-scott").unwrap().program(2).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[1000, 50]).unwrap(), DType::F32).unwrap();
        let plane = 50 * 4;
        let bytes = |host| of_slab(&problem, 250, 7, host).bytes();
        let output = Host { output: 3, ..Host::of(&problem) };
        // Two fields and a second copy of each.
        assert_eq!(bytes(output), 4 * 250 * plane + 7 + 3);
        // An array of the other type is read in part, a picture whole.
        let array = Host { reading: 2000 * plane, ..output };
        assert_eq!(bytes(array), 4 * 250 * plane + 7 + 500 * plane);
        assert_eq!(bytes(Host { reading_whole: 1000 * plane, ..array }), 5 * 250 * plane + 7 + 750 * plane);
    }

    #[test]
    fn advice_is_of_what_would_take_less() {
        let program = abide_core::catalogue::find("heat").unwrap().program(2).unwrap();
        let shape = Shape::new(&[10, 10]).unwrap();
        let mut problem = Problem::new(Arc::new(program), shape, DType::F32).unwrap();
        assert_eq!(smaller(&problem), "choose a smaller --size");
        problem.dtype = DType::F64;
        assert_eq!(smaller(&problem), "choose a smaller --size or --dtype f32");
        problem.repeat(3).unwrap();
        assert_eq!(smaller(&problem), "choose a smaller --batch, a smaller --size or --dtype f32");
    }
}
