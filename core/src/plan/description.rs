//! A plan in words.

use std::fmt::Write as _;

use super::options::Execution;
use super::ranks::Ranks;
use super::{Plan, Schedule};
use crate::units::{amount, count};

/// A line of an explanation: its name and its text.
pub(super) type Line = (&'static str, String);

/// The descriptions that every schedule gives of itself.
pub(super) trait Describe {
    /// Returns the schedule in one line, its concept first.
    fn summary(&self, plan: &Plan) -> String;

    /// Returns the lines that explain how the cells are divided and where they stay.
    fn lines(&self, plan: &Plan) -> Vec<Line>;
}

impl Plan {
    /// Returns the plan in one line.
    pub fn summary(&self) -> String {
        let batch = self.batch.map(|batch| batch.summary()).unwrap_or_default();
        let ranks = self.ranks.as_ref().map(Ranks::summary).unwrap_or_default();
        batch + &ranks + &self.schedule.describe().summary(self)
    }

    /// Returns how the plan runs in a few words: the schedule, and the steps that it takes at a time.
    pub fn how(&self) -> String {
        let steps = count(self.depth as usize, "step");
        let own = match &self.schedule {
            Schedule::Cpu(cpu) => {
                let threads = count(cpu.threads, "thread");
                match self.execution {
                    Execution::Streaming => format!("2.5-D streaming, {steps} per pass, {threads}"),
                    Execution::Persistent => {
                        format!("persistent, {steps} between exchanges of tiles, {threads}")
                    }
                    _ => format!("stepwise, a sweep of the domain per stage, {threads}"),
                }
            }
            Schedule::Stepwise(stepwise) => match stepwise.partition.steps.as_slice() {
                [groups] if !groups.is_empty() => {
                    format!(
                        "stepwise, {} launch{} per step",
                        groups.len(),
                        if groups.len() == 1 { "" } else { "es" }
                    )
                }
                _ => "stepwise, a launch per stage".to_owned(),
            },
            Schedule::Overlapped(_) => format!("overlapped tiling, {steps} per launch"),
            Schedule::WarpStreaming(_) | Schedule::PortableStreaming(_) => {
                format!("2.5-D streaming, {steps} per launch")
            }
            Schedule::Persistent(_) => {
                let kept = self.traffic.cached() / self.traffic.cells.max(1.0);
                format!(
                    "persistent, all steps in one kernel, {:.0} % of the cells stay on the chip",
                    100.0 * kept
                )
            }
            Schedule::Resident(_) => {
                format!("persistent, the domain stays on the chip, {steps} between exchanges of tiles")
            }
            Schedule::PersistentProgram(_) => "persistent, all steps in one kernel".to_owned(),
        };
        let batch = self.batch.map(|batch| batch.summary()).unwrap_or_default();
        let ranks = self.ranks.as_ref().map(Ranks::summary).unwrap_or_default();
        batch + &ranks + &own
    }

    /// Returns the plan as an explanation: what is asked, where the cells stay, the planner's estimate, what no run
    /// surpasses, and what bounds it.
    pub fn explain(&self) -> String {
        let on_cpu = matches!(self.schedule, Schedule::Cpu(_));
        let mut lines = vec![
            ("problem", self.problem_line()),
            ("device", self.device_line()),
            ("execution", concept(self.execution, on_cpu).to_owned()),
        ];
        lines.extend(self.batch.map(|batch| ("batch", batch.line())));
        lines.extend(self.ranks.iter().flat_map(Ranks::lines));
        lines.extend(self.schedule.describe().lines(self));
        lines.extend(self.estimate_line().map(|line| ("estimate", line)));
        lines.extend([("bound", self.bound_line()), ("moved", self.moved_line())]);
        lines.extend(self.compiled.iter().map(|c| {
            let words = format!(
                "{} for {}: {} registers, {} bytes spilled",
                c.kernel, c.target, c.registers, c.spill_bytes
            );
            ("compiled", words)
        }));
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.into_iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<14}{value}");
            text
        })
    }

    fn problem_line(&self) -> String {
        format!(
            "{} on {} {}, boundary {}, {} for all fields together",
            self.program,
            self.shape,
            self.dtype,
            self.boundaries.describe(self.shape.dimensions()),
            amount(self.traffic.cells * self.traffic.cell_bytes * self.members() as f64),
        )
    }

    fn device_line(&self) -> String {
        let d = &self.device;
        let mut words = match d.memory_bandwidth {
            rate if rate > 0.0 => format!("{}: {:.0} GB/s", d.name, rate / 1e9),
            _ => format!("{}: the bandwidth of memory was not needed", d.name),
        };
        if let Some(registers) = d.registers {
            let _ = write!(
                words,
                ", {} SMs with {} KiB of registers and {} KiB of shared memory each ({:.1} MB on the chip), {:.0} MB L2",
                d.multiprocessors,
                registers / 256,
                d.shared_bytes / 1024,
                d.on_chip_bytes() as f64 / 1e6,
                d.l2_bytes as f64 / 1e6,
            );
        }
        words
    }

    /// Returns the planner's own estimate, by which it chooses; `None` where it made none.
    fn estimate_line(&self) -> Option<String> {
        // Members of a batch share the device; a plan of ranks is estimated as a whole.
        let seconds = self.estimated_seconds * self.members() as f64;
        (seconds > 0.0 && seconds.is_finite()).then(|| {
            format!(
                "{:.2} µs per step, {} GCells/s",
                seconds * 1e6,
                rate(self.cells() as f64 / seconds / 1e9)
            )
        })
    }

    fn bound_line(&self) -> String {
        let p = self.project(1000);
        format!(
            "at least {:.2} µs per step, at most {} GCells/s, by {} alone (memory {:.2}, halo {:.2}, shared {:.2}, arithmetic {:.2} µs)",
            p.seconds * 1e3,
            rate(p.gcells_per_s),
            p.bound,
            p.memory_seconds * 1e3,
            p.halo_seconds * 1e3,
            p.shared_seconds * 1e3,
            p.arithmetic_seconds * 1e3,
        )
    }

    fn moved_line(&self) -> String {
        let t = &self.traffic;
        format!(
            "{:.2} bytes per cell and step through device memory over 1000 steps ({:.2} with a launch per step)",
            self.project(1000).memory_bytes / (t.cells * self.members() as f64) / 1000.0,
            t.launched_bytes,
        )
    }
}

impl Schedule {
    fn describe(&self) -> &dyn Describe {
        match self {
            Schedule::Cpu(cpu) => cpu,
            Schedule::Stepwise(stepwise) => stepwise,
            Schedule::Overlapped(overlapped) => overlapped,
            Schedule::WarpStreaming(streaming) => streaming,
            Schedule::PortableStreaming(streaming) => streaming,
            Schedule::Persistent(persistent) => persistent,
            Schedule::Resident(resident) => resident,
            Schedule::PersistentProgram(persistent) => persistent,
        }
    }
}

/// Returns the field's term for an execution, and what that execution does.
fn concept(execution: Execution, on_cpu: bool) -> &'static str {
    match (execution, on_cpu) {
        (Execution::Auto | Execution::Stepwise, true) => {
            "stepwise: all threads sweep the domain once per stage and step"
        }
        (Execution::Auto | Execution::Stepwise, false) => "stepwise: a launch per stage and step",
        (Execution::Overlapped, _) => {
            "overlapped tiling: several steps per launch, each tile recomputes its halo"
        }
        (Execution::Streaming, true) => {
            "2.5-D streaming: several steps per pass, the planes of the domain pass through the caches once"
        }
        (Execution::Streaming, false) => {
            "2.5-D streaming: several steps per launch, the planes of the domain pass through the chip once"
        }
        (Execution::Persistent, true) => "persistent: threads keep their tiles and wait for neighbours only",
        (Execution::Persistent, false) => {
            "persistent (PERKS): the time loop is in the kernel, tiles stay on the chip"
        }
    }
}

/// Returns 10⁹ cells per second with three digits or more.
fn rate(gcells_per_s: f64) -> String {
    match gcells_per_s {
        fast if fast >= 100.0 => format!("{fast:.0}"),
        fast if fast >= 10.0 => format!("{fast:.1}"),
        slow if slow >= 0.01 => format!("{slow:.2}"),
        slow => format!("{slow:.2e}"),
    }
}
