//! The groups of a plan, with what each moves and takes: by the planner's estimate, and on a device.

use std::fmt::{self, Display, Write as _};

use abide_core::backend::LaunchTime;
use abide_core::plan::Chain;
use abide_core::plan::fused::Partition;
use abide_core::program::{Boxes, Launch, Storage, is_renamed};
use abide_core::{Plan, Problem, Result};
use serde::Serialize;

use crate::estimate::{bytes_alone, grouped, tail};
use crate::fused::pass_seconds;
use crate::fusion;
use crate::rates::MEMORY_SHARE;
use crate::stepwise::{chain_seconds, moved, reached_cells, stage_seconds};

/// The groups of a program's steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The program's name.
    pub program: String,
    /// The device's name.
    pub device: String,
    /// Cells of the domain.
    pub cells: usize,
    /// Steps of the program's cycle.
    pub cycle: usize,
    /// The groups, in the order in which they run; what only renames is never launched, and is none.
    pub groups: Vec<Row>,
}

/// A group, or a loop by itself. All is for one time that it runs. Of a stage that the plan runs in parts each part is a
/// loop, and numbers of stages are those of the program split so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The step of the cycle.
    pub step: usize,
    /// The numbers of the stages, ascending.
    pub stages: Vec<usize>,
    /// The names of the stages.
    pub loops: Vec<String>,
    /// Bytes that the loops one by one load and store, and that the group does.
    pub bytes_alone: f64,
    /// See `bytes_alone`.
    pub bytes: f64,
    /// The planner's estimate in seconds of the loops one by one, and of the group.
    pub projected_alone: f64,
    /// See `projected_alone`.
    pub projected: f64,
    /// Measured seconds of the loops one by one, and of the group; `None` where nothing was measured.
    pub measured_alone: Option<f64>,
    /// See `measured_alone`.
    pub measured: Option<f64>,
    /// The paper's fusion efficiency (12), measured; `None` for a loop by itself.
    pub efficiency: Option<f64>,
}

/// Returns the groups that a plan launches. A backend that joins launches by itself says which it does, by the times of
/// its launches; groups of a plan are its own. `None` where the plan has neither.
///
/// # Errors
///
/// Those of [`Boxes::of`] and [`Storage::of`].
pub fn report(problem: &Problem, plan: &Plan, together: &[LaunchTime]) -> Result<Option<Report>> {
    let problem = &plan.split_problem(problem)?;
    let boxes = Boxes::of(problem)?;
    let partition = plan.stepwise().map(|tiles| &tiles.partition).filter(|p| !p.steps.is_empty());
    let one_by_one = Storage::of(problem, &boxes)?;
    let storage = match partition {
        Some(partition) => &Storage::of_groups(problem, &boxes, &partition.groups())?,
        None => &one_by_one,
    };
    let groups: Vec<Vec<usize>> = match (partition, together) {
        (Some(partition), _) => launched(partition, storage),
        (None, []) => return Ok(None),
        (None, together) => together.iter().map(|time| time.stages.clone()).collect(),
    };
    let device = &plan.device;
    let streamed = |bytes: f64| match device.memory_bandwidth * MEMORY_SHARE {
        rate if rate > 0.0 => bytes / rate,
        _ => 0.0,
    };
    let reached = reached_cells(problem, device);
    let mut rows = Vec::new();
    for stages in groups {
        let launches = launches(storage, &stages);
        if launches.is_empty() {
            continue;
        }
        let own: f64 = moved(problem, &boxes, storage, &launches).iter().sum();
        let mut row = Row {
            step: problem.program.steps().iter().position(|step| step.contains(&stages[0])).unwrap_or(0),
            loops: stages.iter().map(|&stage| problem.program.stages()[stage].name.clone()).collect(),
            bytes_alone: 0.0,
            bytes: own,
            projected_alone: 0.0,
            projected: streamed(own),
            measured_alone: None,
            measured: None,
            efficiency: None,
            stages,
        };
        for &stage in row.stages.iter().filter(|&&stage| !is_renamed(problem, &boxes, stage)) {
            let launches = self::launches(&one_by_one, &[stage]);
            let bytes: f64 = moved(problem, &boxes, &one_by_one, &launches).iter().sum();
            row.bytes_alone += bytes;
            row.projected_alone += match partition {
                Some(_) => {
                    let own = &problem.program.stages()[stage];
                    let bytes = bytes_alone(problem, &boxes, own);
                    device.launch_seconds + stage_seconds(problem, device, own, bytes, reached[stage])
                }
                None => streamed(bytes),
            };
        }
        if let Some(partition) = partition {
            let chain =
                partition.chains.iter().find(|chain| of_chain(partition, chain, storage) == row.stages);
            if let Some(chain) = chain {
                row.projected = chain_seconds(problem, &boxes, device, partition, chain);
                rows.push(row);
                continue;
            }
            let fused = partition.all().find(|group| group.stages == row.stages);
            let pass = fused.and_then(|group| pass_seconds(problem, &boxes, device, group));
            row.projected = match (pass, fused.and_then(|group| group.fused.as_ref())) {
                (Some(seconds), _) => seconds,
                (None, Some(fused)) => {
                    grouped(problem, &boxes, device, fused).seconds + device.launch_seconds
                }
                (None, None) => match row.stages[..] {
                    [update, reduction] => {
                        tail(problem, &boxes, device, [update, reduction]).seconds + device.launch_seconds
                    }
                    _ => row.projected_alone,
                },
            };
        }
        rows.push(row);
    }
    let (program, cells) = (problem.program.name().to_owned(), problem.shape.cells());
    let cycle = problem.program.cycle();
    Ok(Some(Report { program, device: device.name.clone(), cells, cycle, groups: rows }))
}

/// Returns the stages of each launch of a partition's steps: those of a chain together.
fn launched(partition: &Partition, storage: &Storage) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (number, groups) in partition.steps.iter().enumerate() {
        let mut place = 0;
        while let Some(group) = groups.get(place) {
            let begins = |chain: &&Chain| chain.step == number && chain.groups.start == place;
            match partition.chains.iter().find(begins) {
                Some(chain) => {
                    all.push(of_chain(partition, chain, storage));
                    place = chain.groups.end.max(place + 1);
                }
                None => {
                    all.push(group.stages.clone());
                    place += 1;
                }
            }
        }
    }
    all
}

/// Returns the stages of a chain that are launched.
fn of_chain(partition: &Partition, chain: &Chain, storage: &Storage) -> Vec<usize> {
    let groups = partition.of_chain(chain).iter();
    let launched = groups.filter(|group| !launches(storage, &group.stages).is_empty());
    launched.flat_map(|group| group.stages.iter().copied()).collect()
}

/// Returns the launches of some stages in the first step that has them.
fn launches<'a>(storage: &'a Storage, stages: &[usize]) -> Vec<&'a Launch> {
    let own = |launch: &&Launch| launch.stages.iter().all(|stage| stages.contains(stage));
    // A step that repeats is like all that follow; the first ones may have other buffers.
    let steps = storage.steps[storage.repeated..].iter().chain(&storage.steps);
    let found = steps.map(|step| step.launches.iter().filter(own).collect::<Vec<_>>());
    found.into_iter().find(|launches| !launches.is_empty()).unwrap_or_default()
}

/// How far a number is from another one, as a share of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Error {
    /// The median of all groups.
    pub median: f64,
    /// The worst.
    pub worst: f64,
    /// The place of the worst among the groups.
    pub group: usize,
}

impl Report {
    /// Returns whether any group has several loops.
    pub fn has_groups(&self) -> bool {
        self.groups.iter().any(Row::is_group)
    }

    /// Takes the times of the launches of the plan, and of its stages one by one. A stage that was not launched only
    /// renames, and takes no time.
    pub fn set_times(&mut self, together: &[LaunchTime], alone: &[LaunchTime]) {
        let of = |times: &[LaunchTime], stages: &[usize]| {
            times.iter().find(|time| time.stages == stages).map(|time| time.seconds)
        };
        for row in &mut self.groups {
            row.measured = of(together, &row.stages);
            let each = row.stages.iter().filter_map(|&stage| of(alone, &[stage]));
            row.measured_alone = (!alone.is_empty()).then(|| each.sum());
            row.efficiency = match (row.is_group(), row.measured, row.measured_alone) {
                (true, Some(seconds), Some(alone)) => {
                    efficiency([row.bytes, row.bytes_alone], [seconds, alone])
                }
                _ => None,
            };
        }
    }

    /// Returns the sums of a step of the groups that several loops have become, or of all: bytes, then projected and
    /// measured seconds, each of the loops one by one and of the groups.
    fn sums(&self, groups_alone: bool) -> [[f64; 2]; 3] {
        let mut sums = [[0.0; 2]; 3];
        for row in self.groups.iter().filter(|row| !groups_alone || row.is_group()) {
            let own = [
                [row.bytes_alone, row.bytes],
                [row.projected_alone, row.projected],
                [row.measured_alone.unwrap_or(0.0), row.measured.unwrap_or(0.0)],
            ];
            for (sum, own) in sums.as_flattened_mut().iter_mut().zip(own.as_flattened()) {
                *sum += own / self.cycle.max(1) as f64;
            }
        }
        sums
    }

    /// Returns the combined fusion efficiency of all groups of several loops; `None` where they were not measured.
    pub fn efficiency(&self) -> Option<f64> {
        let [[bytes_alone, bytes], _, [alone, seconds]] = self.sums(true);
        efficiency([bytes, bytes_alone], [seconds, alone])
    }

    /// Returns how far projections are from what was measured; `None` where nothing was.
    pub fn error(&self) -> Option<Error> {
        let error = |(place, row): (usize, &Row)| {
            // Scalars cost nothing where bytes alone are counted.
            let measured = row.measured.filter(|&seconds| seconds > 0.0 && row.projected > 0.0)?;
            Some(((row.projected - measured).abs() / measured, place))
        };
        let mut all: Vec<(f64, usize)> = self.groups.iter().enumerate().filter_map(error).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let &(worst, group) = all.last()?;
        Some(Error { median: all[all.len() / 2].0, worst, group })
    }

    /// Returns the places of groups that took longer than their loops one by one.
    pub fn slower(&self) -> Vec<usize> {
        let is_slower = |row: &Row| row.is_group() && row.measured > row.measured_alone;
        (0..self.groups.len()).filter(|&place| is_slower(&self.groups[place])).collect()
    }
}

impl Row {
    /// Returns whether there are several loops.
    pub fn is_group(&self) -> bool {
        self.stages.len() > 1
    }
}

/// Returns the paper's fusion efficiency of a group beside its loops alone; `None` where one of them does nothing.
fn efficiency([bytes, bytes_alone]: [f64; 2], [seconds, alone]: [f64; 2]) -> Option<f64> {
    (bytes_alone > 0.0 && seconds > 0.0 && alone > 0.0)
        .then(|| fusion::efficiency(bytes / bytes_alone, seconds, alone))
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.iter().filter(|row| row.is_group()).count();
        let loops: usize = self.groups.iter().map(|row| row.stages.len()).sum();
        let launches = self.groups.len();
        writeln!(
            f,
            "groups of {} on {}: {loops} loops in {launches} kernels, {groups} of several loops",
            self.program, self.device
        )?;
        let is_measured = self.groups.iter().any(|row| row.measured.is_some());
        let measured = |text: String| if is_measured { text } else { String::new() };
        writeln!(
            f,
            "{:>5}{:>6}{:>18}{:>20}{}  loops",
            "",
            "",
            "bytes a cell",
            "projected µs",
            measured(format!("{:>20}{:>7}", "measured µs", ""))
        )?;
        let pair = format!("{:>10}{:>10}", "alone", "group");
        writeln!(
            f,
            "{:>6}{:>5}{:>9}{:>9}{pair}{}",
            "kernel",
            "step",
            "alone",
            "group",
            measured(format!("{pair}{:>7}", "FE"))
        )?;
        let cells = self.cells.max(1) as f64;
        let micro = |seconds: Option<f64>| match seconds {
            Some(seconds) => format!("{:>10.2}", seconds * 1e6),
            None => format!("{:>10}", "-"),
        };
        let percent = |share: Option<f64>| match share {
            Some(share) => format!("{:>5.0} %", share * 100.0),
            None => format!("{:>7}", "-"),
        };
        for (place, row) in self.groups.iter().enumerate() {
            let times =
                format!("{}{}{}", micro(row.measured_alone), micro(row.measured), percent(row.efficiency));
            writeln!(
                f,
                "{:>6}{:>5}{:>9.1}{:>9.1}{}{}{}  {}",
                place + 1,
                row.step,
                row.bytes_alone / cells,
                row.bytes / cells,
                micro(Some(row.projected_alone)),
                micro(Some(row.projected)),
                measured(times),
                row.loops.join(", ")
            )?;
        }
        let [[bytes_alone, bytes], [projected_alone, projected], [alone, seconds]] = self.sums(false);
        let times = format!("{}{}{}", micro(Some(alone)), micro(Some(seconds)), percent(self.efficiency()));
        writeln!(
            f,
            "{:>6}{:>5}{:>9.1}{:>9.1}{}{}{}  all, the mean of a step; FE of the groups of several loops",
            "",
            "",
            bytes_alone / cells,
            bytes / cells,
            micro(Some(projected_alone)),
            micro(Some(projected)),
            measured(times)
        )?;
        let Some(error) = self.error() else { return Ok(()) };
        writeln!(
            f,
            "projection: off by {:.0} % in the median, {:.0} % at the worst, kernel {}",
            error.median * 100.0,
            error.worst * 100.0,
            error.group + 1
        )?;
        if groups == 0 {
            return Ok(());
        }
        let slower = self.slower();
        let mut names = String::new();
        for &place in &slower {
            let row = &self.groups[place];
            let ratio = row.measured.unwrap_or(0.0) / row.measured_alone.unwrap_or(f64::NAN);
            write!(
                names,
                "{} kernel {} ({ratio:.2} times)",
                if names.is_empty() { ":" } else { "," },
                place + 1
            )?;
        }
        writeln!(f, "slower than their loops one by one: {} of {groups} groups{names}", slower.len())
    }
}
