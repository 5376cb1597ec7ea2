//! The report of a run, for people.

use std::fmt::Write as _;

use abide::RunReport;
use abide::backend::is_absence;
use abide::program::Problem;
use abide_core::units::{count, rate};

use super::bytes;

/// Formats the report as text: what was asked, the files written, and a line on how it ran. `is_verbose` adds the plan, the bytes
/// moved, the share of the peak, and the backends that are not here.
pub fn text(report: &RunReport, problem: &Problem, files: &[String], is_verbose: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line(
        problem.program.name(),
        format!(
            " {}{} {}, boundary {}: {} in {}",
            if problem.is_batch() { format!("{} members of ", problem.members()) } else { String::new() },
            problem.shape,
            problem.dtype,
            problem.boundaries.describe(problem.shape.dimensions()),
            count(usize::try_from(report.steps).unwrap_or(usize::MAX), "step"),
            duration(report.seconds),
        ),
    );
    if report.seconds > 0.0 {
        line("rate", rate(report.gcells_per_s));
    }
    if !report.scalars.is_empty() {
        let scalars: Vec<String> =
            report.scalars.iter().map(|(name, &value)| format!("{name} {}", plain(value))).collect();
        line("scalars", scalars.join(", "));
    }
    if let Some(count) = report.non_finite.filter(|&count| count > 0) {
        let all = report.cells * problem.program.fields().len() as u64;
        line("non-finite", format!("{count} of {all} values are NaN or infinite"));
    }
    for file in files {
        line("wrote", file.clone());
    }
    line("how", format!("{} on {}: {}", report.backend, report.device, report.plan.how()));
    if let Some(ran) = report.ran.differs(&report.plan, report.steps) {
        line("ran", ran);
    }
    for rank in &report.ranks {
        line(
            &format!("device {}", rank.rank),
            format!(
                "planes {}..{}: {} computing, {} exchanging and waiting, {:.0} % efficiency",
                rank.planes.start,
                rank.planes.end,
                duration(rank.seconds),
                duration(rank.exchange_seconds),
                100.0 * rank.efficiency,
            ),
        );
    }
    if is_verbose {
        details(report).into_iter().for_each(|(name, value)| line(name, value));
    }
    for note in report.notes.iter().filter(|note| is_verbose || !is_absence(note)) {
        line("note", note.clone());
    }
    text
}

/// Returns the lines on the plan and its traffic.
fn details(report: &RunReport) -> Vec<(&'static str, String)> {
    let mut lines = vec![("plan", report.plan.summary())];
    if report.seconds > 0.0 {
        let each = report.bytes_moved / (report.cells as f64 * report.steps.max(1) as f64);
        lines.push((
            "moved",
            format!(
                "{} by the plan's model, {each:.2} bytes per cell and step, {}/s",
                bytes(report.bytes_moved),
                bytes(report.bytes_moved / report.seconds),
            ),
        ));
        lines.push((
            "least",
            format!(
                "{}: each field that is read, read once, and each that changes, written once, in the whole run",
                bytes(report.bytes_least),
            ),
        ));
        lines
            .push(("peak", format!("{:.1} % of the projected peak", 100.0 * report.share_of_projected_peak)));
    }
    lines
}

/// Formats a time with its unit.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.2} s"),
        s => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
    }
}

/// Returns a number with all its digits, and with an exponent where it would have many zeros.
fn plain(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-5..1e16 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_many_zeros_have_an_exponent() {
        let words = [0.0, -0.5, 12.0, 1e-160, -3.5e20, f64::INFINITY].map(plain);
        assert_eq!(words, ["0", "-0.5", "12", "1e-160", "-3.5e20", "inf"]);
    }
}
