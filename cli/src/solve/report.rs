//! The report of a solve, for people and for programs.

use std::fmt::Write as _;

use abide::System;
use abide::backend::is_absence;
use abide::solve::{Matrix, Place, Precision, Report, Resident, SolvePlan};
use serde_json::{Value, json};

use super::super::{bytes, report::duration};

/// The contents of the report on a solve.
pub struct Reported<'a> {
    /// The system's name.
    pub name: &'a str,
    pub precision: Precision,
    pub opened: &'a System,
    pub report: &'a Report,
    /// The norm of `b - A x`, computed in f64 apart from the solver.
    pub true_residual: f64,
    /// The norm of `b`.
    pub norm: f64,
    /// Factor by which the true residual may exceed the threshold; see `Parameters::drift`.
    pub drift: f64,
    pub converged: bool,
    pub files: &'a [String],
}

impl Reported<'_> {
    fn plan(&self) -> &SolvePlan {
        self.opened.plan()
    }

    fn recurred(&self) -> f64 {
        self.report.history.last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the true residual over the threshold, where that is above 1 though the solve converged:
    /// rounding kept the recurred residual from showing it.
    fn excess(&self) -> Option<f64> {
        let excess = self.true_residual / self.report.threshold;
        (self.converged && excess > 1.0).then_some(excess)
    }

    /// Returns the microseconds per iteration; `None` where there was no iteration.
    fn us_per_iteration(&self) -> Option<f64> {
        (self.report.iterations > 0)
            .then(|| self.report.iteration_seconds * 1e6 / self.report.iterations as f64)
    }

    /// Formats the report as a table of names and values: what came out, the files written, and a line on how. `is_verbose` adds
    /// the plan, what is kept and moved, and the backends that are not here.
    pub fn text(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12}{value}");
        };
        let (plan, report) = (self.plan(), self.report);
        let what = match self.opened.matrix() {
            Matrix::Stored(_) => format!("{} entries", plan.nonzeros),
            Matrix::Stencil(operator) => format!("{} taps, never stored", operator.stencil().taps().len()),
        };
        line("system", format!("{}: {} rows, {what}, {}", self.name, plan.rows, self.precision.name()));
        let each =
            self.us_per_iteration().map_or(String::new(), |us| format!(", {} each", duration(1e-6 * us)));
        let ended = if self.converged { "converged" } else { "ended" };
        line(ended, format!("{} iterations in {}{each}", report.iterations, duration(report.seconds)));
        if report.restarts > 0 {
            line("restarts", format!("{}, where {} broke down", report.restarts, plan.method));
        }
        let relative = |norm: f64| if self.norm > 0.0 { norm / self.norm } else { norm };
        line(
            "residual",
            format!(
                "{:.3e} of the right-hand side's norm by the recurrence, {:.3e} in truth (wanted {:.1e}{})",
                relative(self.recurred()),
                relative(self.true_residual),
                relative(report.threshold),
                self.excess().map_or(String::new(), |times| format!(
                    "; it is {times:.3} times that, up to {} times count as converged",
                    self.drift
                )),
            ),
        );
        for file in self.files {
            line("wrote", file.clone());
        }
        line(
            "how",
            format!(
                "{} on {}: {}, preconditioner {}",
                self.opened.backend(),
                plan.device.name,
                plan.method,
                plan.preconditioner
            ),
        );
        for rank in &report.ranks {
            line(
                &format!("device {}", rank.rank),
                format!(
                    "rows {}..{}: {} computing, {} exchanging and waiting, {:.0} % efficiency",
                    rank.rows.start,
                    rank.rows.end,
                    duration(rank.seconds),
                    duration(rank.exchange_seconds),
                    100.0 * rank.efficiency,
                ),
            );
        }
        if is_verbose {
            self.details().into_iter().for_each(|(name, value)| line(name, value));
        }
        for note in self.opened.notes().iter().chain(&plan.notes) {
            if is_verbose || !is_absence(note) {
                line("note", note.clone());
            }
        }
        text
    }

    /// Returns the lines on the plan and its traffic.
    fn details(&self) -> [(&'static str, String); 3] {
        let plan = self.plan();
        let places = |all: &dyn Fn(&Resident) -> bool| -> String {
            let found = plan.residents.iter().filter(|resident| resident.bytes > 0 && all(resident));
            let words = found.map(|r| format!("{} of the {} in {}", bytes(r.bytes as f64), r.what, r.place));
            words.collect::<Vec<_>>().join(", ")
        };
        let traffic = plan.traffic;
        let in_memory = places(&|resident| resident.place == Place::Memory);
        let least = if traffic.least > 0.0 {
            format!(
                "{:.1} times the least possible ({})",
                traffic.moved / traffic.least,
                bytes(traffic.least)
            )
        } else if in_memory.is_empty() {
            "the least possible is nothing: all of it fits on the chip".to_owned()
        } else {
            // The chip has room for what one iteration hands to the next, and the plan has more than that.
            format!(
                "the least possible is nothing: what an iteration leaves to the next would fit on the chip; the plan has {in_memory}"
            )
        };
        let schedule = plan.schedule.describe();
        [
            (
                "plan",
                format!("product by {}, {schedule}, synchronisation {}", plan.product, plan.synchronisation),
            ),
            ("cache", format!("{}: {}", plan.cache, places(&|_| true))),
            ("moved", format!("{} per iteration by the plan's model; {least}", bytes(traffic.moved))),
        ]
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        json!({
            "system": self.name,
            "dtype": self.precision.name(),
            "backend": self.opened.backend(),
            "converged": self.converged,
            "us_per_iteration": self.us_per_iteration(),
            "residual": {
                "norm_of_b": self.norm,
                "recurred": self.recurred(),
                "true": self.true_residual,
                "wanted": self.report.threshold,
                "met": self.true_residual <= self.report.threshold,
            },
            "report": self.report,
            "plan": self.plan(),
            "notes": self.opened.notes(),
            "files": self.files,
        })
    }
}
