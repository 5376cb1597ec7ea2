//! An evaluation as a page for people.

use std::fmt::Write as _;

use abide_core::units::rate;

use super::parts::Evaluation;
use crate::Row;

/// The ratio to a launch per step from which a schedule is called faster.
const FASTER: f64 = 1.1;

/// Formats the page; `files` are those that were written.
pub fn text(evaluation: &Evaluation, files: &[String]) -> String {
    let mut text = evaluation.machine.title(&[]);
    // Writing to a string cannot fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("", String::new());
    for found in &evaluation.devices {
        let device = match (&found.device, &found.reason) {
            (Some(device), Some(reason)) => format!("{device} ({reason})"),
            (Some(device), None) => device.clone(),
            (None, reason) => reason.clone().unwrap_or_default(),
        };
        line("devices", format!("{}: {device}", found.backend));
    }
    line("bits", bits(evaluation));
    if evaluation.copy_gb_per_s > 0.0 {
        let own = evaluation.machine.memory_gb_per_s;
        let of = if own > 0.0 { format!(" of {own:.0} that the device states") } else { String::new() };
        line("copy", format!("{:.1} GB/s read and written{of}", evaluation.copy_gb_per_s));
    }
    if !evaluation.stencils.is_empty() {
        line("", String::new());
        line(
            "stencil",
            format!(
                "{:>5}{:>14}{:>18}{:>12}{:>12}{:>14}",
                "type", "domain", "rate", "×stepwise", "×memory", "% arithmetic"
            ),
        );
    }
    for row in &evaluation.stencils {
        let factor =
            |factor: Option<f64>| factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"));
        let over_memory = evaluation.memory_roof(row.dtype).map(|roof| row.gcells_per_s / roof);
        let arithmetic = row.share_of_ceiling.map(|share| 100.0 * share);
        line(
            &row.stencil,
            format!(
                "{:>5}{:>14}{:>18}{:>12}{:>12}{:>14}",
                row.dtype,
                row.shape.to_string(),
                rate(row.gcells_per_s),
                factor(row.ratio_to_stepwise()),
                factor(over_memory),
                arithmetic.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}")),
            ),
        );
    }
    line("", String::new());
    if let Some(program) = &evaluation.program {
        line(
            program.name,
            format!(
                "{} {}: {:.3} ms per step, {:.3} with each stage by itself",
                program.shape, program.dtype, program.ms_per_step, program.ms_by_stages
            ),
        );
    }
    if let Some(row) = &evaluation.solver {
        let memory = match row.us_by_bandwidth > 0.0 {
            true => format!("{:.1} µs by the bandwidth of memory", row.us_by_bandwidth),
            false => "all of it stays on the chip".to_owned(),
        };
        line(
            "cg",
            format!(
                "{} {}: {:.1} µs per iteration, {memory}; {} iterations to {:.0e}",
                row.matrix, row.dtype, row.us_per_iteration, row.iterations, row.tolerance
            ),
        );
    }
    line("", String::new());
    verdict(evaluation).into_iter().for_each(|sentence| line("verdict", sentence));
    evaluation.faults().into_iter().for_each(|fault| line("WRONG", fault));
    if !evaluation.left_out.is_empty() {
        line("left out", evaluation.left_out.join("; "));
    }
    files.iter().for_each(|file| line("wrote", file.clone()));
    line("took", format!("{:.0} s", evaluation.seconds));
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Returns the line on the comparison with the reference.
fn bits(evaluation: &Evaluation) -> String {
    let verification = &evaluation.verification;
    let runs: usize = verification.findings.iter().map(|finding| finding.runs).sum();
    let mut entries: Vec<&str> = verification.findings.iter().map(|finding| finding.entry).collect();
    entries.dedup();
    let exact = verification.findings.iter().all(|finding| finding.bound == 0.0);
    let claim = match (verification.holds(), exact) {
        (true, true) => "all have the reference's bits",
        (true, false) => "all are within their bounds",
        (false, _) => "NOT all are within their bounds",
    };
    format!("{runs} runs of {}: {claim}", entries.join(", "))
}

/// Returns what the figures mean.
fn verdict(evaluation: &Evaluation) -> Vec<String> {
    let mut sentences = vec![match evaluation.holds() {
        true => "Everything that was compared is right.".to_owned(),
        false => "Results are WRONG: please report it with this page.".to_owned(),
    }];
    let best = |of: &dyn Fn(&Row) -> Option<f64>| {
        let rows = evaluation.stencils.iter().filter_map(|row| Some((of(row)?, row.stencil.as_str())));
        rows.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    if let Some((ratio, stencil)) = best(&Row::ratio_to_stepwise) {
        sentences.push(match ratio >= FASTER {
            true => format!(
                "Several steps per pass pay: {stencil} runs {ratio:.1} times as fast as a launch per step."
            ),
            false => "Several steps per pass do not pay here; `abide run … --tune full` times other plans."
                .to_owned(),
        });
    }
    let over_memory = |row: &Row| Some(row.gcells_per_s / evaluation.memory_roof(row.dtype)?);
    if let Some((factor, stencil)) = best(&over_memory) {
        const OTHER: &str = "allows a code that loads and stores each cell in each step";
        sentences.push(match factor > 1.0 {
            true => format!("{stencil} runs {factor:.1} times as fast as memory {OTHER}."),
            false => format!("{stencil} reaches {:.0} % of the rate that memory {OTHER}.", 100.0 * factor),
        });
    }
    if let Some(program) = &evaluation.program {
        let ratio = program.ms_by_stages / program.ms_per_step;
        sentences.push(match ratio >= FASTER {
            true => format!("Stages in groups pay: a step of {} is {ratio:.1} times as fast.", program.name),
            false => format!("A step of {} takes as long in groups as stage by stage.", program.name),
        });
    }
    if let Some(row) = evaluation.solver.as_ref().filter(|row| row.us_by_bandwidth > 0.0) {
        let ratio = row.us_per_iteration / row.us_by_bandwidth;
        sentences.push(format!("An iteration of cg takes {ratio:.1} times what moving its data takes."));
    }
    sentences
}
