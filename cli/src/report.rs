//! The report of a run, for people.

use std::fmt::Write as _;

use abide::RunReport;
use abide::program::Problem;
use abide_core::units::rate;

use super::bytes;

/// Formats the report as text; `files` are the files written.
pub fn text(report: &RunReport, problem: &Problem, files: &[String]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line(
        problem.program.name(),
        format!(
            " {}{} {}, boundary {}: {} steps in {}",
            if problem.is_batch() { format!("{} members of ", problem.members()) } else { String::new() },
            problem.shape,
            problem.dtype,
            problem.boundaries.describe(problem.shape.dimensions()),
            report.steps,
            duration(report.seconds),
        ),
    );
    line("backend", format!("{} on {}", report.backend, report.device));
    line("plan", report.plan.summary());
    if let Some(ran) = report.ran.differs(&report.plan, report.steps) {
        line("ran", ran);
    }
    if report.seconds > 0.0 {
        let moved = report.bytes_moved / report.seconds;
        line("rate", format!("{}, {}/s by the plan's model", rate(report.gcells_per_s), bytes(moved)));
        let each = report.bytes_moved / (report.cells as f64 * report.steps.max(1) as f64);
        line(
            "moved",
            format!(
                "{}, {each:.2} bytes per cell and step; the whole run needs {} (each field that is read, read once, and each \
                 that changes, written once)",
                bytes(report.bytes_moved),
                bytes(report.bytes_least),
            ),
        );
        line("peak", format!("{:.1} % of the projected peak", 100.0 * report.share_of_projected_peak));
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
    if let Some(count) = report.non_finite.filter(|&count| count > 0) {
        let all = report.cells * problem.program.fields().len() as u64;
        line("non-finite", format!("{count} of {all} values are NaN or infinite"));
    }
    if !report.scalars.is_empty() {
        let scalars: Vec<String> =
            report.scalars.iter().map(|(name, &value)| format!("{name} {}", plain(value))).collect();
        line("scalars", scalars.join(", "));
    }
    for note in &report.notes {
        line("note", note.clone());
    }
    for file in files {
        line("wrote", file.clone());
    }
    text
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
