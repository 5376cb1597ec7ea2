//! The table of `abide plan --measured`: the planner's predictions beside the times measured on the device.

use std::fmt::Write as _;

use abide::backend::Opened;
use abide::plan::fused::Report;
use abide::plan::papers::Compared;
use abide::program::Problem;
use abide::{Measured, Options};
use serde_json::{Value, json};

/// Formats the table; the first row is the planner's own choice.
pub fn table(rows: &[Measured], problem: &Problem, opened: &Opened) -> String {
    let mut text = format!(
        "{} on {} {}, boundary {}: plans timed on {}\n\n{:<13}{:>13}{:>13}{:>8}{:>11}{:>9}  plan\n{:<13}{:>13}{:>13}\n",
        problem.program.name(),
        problem.shape,
        problem.dtype,
        problem.boundaries.describe(problem.shape.dimensions()),
        opened.backend.device().name,
        "",
        "predicted",
        "measured",
        "ratio",
        "registers",
        "spilled",
        "",
        "µs per step",
        "µs per step",
    );
    let fastest = Measured::fastest(rows);
    for (place, row) in rows.iter().enumerate() {
        let mark = match (place == 0, Some(row) == fastest) {
            (true, true) => "own, fastest",
            (true, false) => "own",
            (false, true) => "fastest",
            (false, false) => "",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{mark:<13}{:>13.2}{:>13}{:>8}{:>11}{:>9}  {}",
            row.predicted_seconds * 1e6,
            or_dash(row.seconds.map(|seconds| format!("{:.2}", seconds * 1e6))),
            or_dash(row.ratio().map(|ratio| format!("{ratio:.2}"))),
            or_dash(row.registers()),
            or_dash(row.spill_bytes()),
            row.plan.summary(),
        );
        if let Some(note) = &row.note {
            let _ = writeln!(text, "{:<13}{note}", "");
        }
    }
    text += &match own_over_fastest(rows) {
        Some(ratio) => format!("\nThe planner's own choice takes {ratio:.2} times as long as the fastest.\n"),
        None => "\nThe planner's own choice was not timed.\n".to_owned(),
    };
    text
}

/// Returns the same table for machines, with what the papers' models say where they were asked.
pub fn as_json(
    rows: &[Measured],
    problem: &Problem,
    opened: &Opened,
    options: &Options,
    papers: Option<&Compared>,
) -> Value {
    let fastest = Measured::fastest(rows);
    let plans = rows.iter().enumerate().map(|(place, row)| {
        json!({
            "plan": row.plan.summary(),
            "execution": row.plan.execution,
            "cache": row.plan.cache,
            "depth": row.plan.depth,
            "schedule": row.plan.schedule,
            "predicted_seconds": row.predicted_seconds,
            "measured_seconds": row.seconds,
            "ratio": row.ratio(),
            "registers": row.registers(),
            "spill_bytes": row.spill_bytes(),
            "note": row.note,
            "own": place == 0,
            "fastest": Some(row) == fastest,
        })
    });
    let mut reported = json!({
        "program": problem.program.name(),
        "shape": problem.shape,
        "dtype": problem.dtype,
        "boundary": problem.boundaries.describe(problem.shape.dimensions()),
        "device": opened.backend.device().name,
        "driver": opened.backend.driver(),
        "tune": options.tune,
        "own_over_fastest": own_over_fastest(rows),
        "plans": plans.collect::<Vec<_>>(),
    });
    if let Some(papers) = papers {
        reported["papers"] = json!(papers);
    }
    reported
}

/// Returns the groups of a program's loops for machines, with what follows from all of them.
pub fn groups_as_json(groups: &Report) -> Value {
    let mut reported = json!(groups);
    reported["efficiency"] = json!(groups.efficiency());
    reported["projection_error"] = json!(groups.error());
    reported["slower"] = json!(groups.slower());
    reported
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Returns the time of the planner's own choice over that of the fastest plan; 1 where they are the same
/// plan.
fn own_over_fastest(rows: &[Measured]) -> Option<f64> {
    let fastest = Measured::fastest(rows)?.seconds?;
    Some(rows.first()?.seconds? / fastest)
}

#[cfg(test)]
mod tests {
    use abide::plan::candidates;
    use abide::plan::papers::compare;
    use abide::{DType, DeviceSpec, backend};

    use super::*;

    fn measured() -> (Problem, Vec<Measured>) {
        let problem = abide_bench::problem("2d5pt", "2304x2304".parse().unwrap(), DType::F64).unwrap();
        let plans = candidates(&problem, &DeviceSpec::preset("h200").unwrap(), &Options::default()).unwrap();
        let row = |(place, plan): (usize, abide::Plan)| Measured {
            predicted_seconds: 10e-6,
            seconds: [Some(15e-6), None, Some(12e-6)].get(place).copied().unwrap_or(Some(20e-6)),
            note: (place == 1).then(|| "left out: it spills 96 bytes per thread".to_owned()),
            plan,
        };
        (problem, plans.into_iter().enumerate().map(row).collect())
    }

    #[test]
    fn the_table_marks_and_compares() {
        let (problem, rows) = measured();
        let opened = backend::open("cpu").unwrap();
        let text = table(&rows, &problem, &opened);
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: usize| lines[line].split_whitespace().take(4).collect::<Vec<_>>();
        assert!(lines[0].starts_with("2d5pt on 2304x2304 f64, boundary fixed: plans timed on "));
        assert_eq!(words(4), ["own", "10.00", "15.00", "1.50"]);
        assert_eq!(words(5)[..3], ["10.00", "-", "-"]);
        assert_eq!(lines[6].trim(), "left out: it spills 96 bytes per thread");
        assert_eq!(words(7), ["fastest", "10.00", "12.00", "1.20"]);
        assert_eq!(lines.last(), Some(&"The planner's own choice takes 1.25 times as long as the fastest."));
        let end_of =
            |line: &str, words: &str| line.find(words).map(|at| line[..at].chars().count() + words.len());
        assert_eq!(end_of(lines[2], "predicted"), end_of(lines[4], "10.00"));
        assert_eq!(end_of(lines[2], "ratio"), end_of(lines[4], "1.50"));
        assert_eq!(lines[3].chars().count(), end_of(lines[2], "measured").unwrap());
    }

    #[test]
    fn machines_are_told_the_same() {
        let (problem, mut rows) = measured();
        let opened = backend::open("cpu").unwrap();
        let reported = as_json(&rows, &problem, &opened, &Options::default(), None);
        assert_eq!(reported["own_over_fastest"], 1.25);
        assert_eq!(reported["plans"].as_array().unwrap().len(), rows.len());
        assert_eq!(reported["plans"][0]["own"], true);
        assert_eq!(reported["plans"][2]["fastest"], true);
        assert_eq!(reported["plans"][1]["measured_seconds"], Value::Null);
        assert_eq!((&reported["tune"], &reported["papers"]), (&json!("kept"), &Value::Null));
        let papers = compare(&problem, &rows[0].plan, &rows).unwrap();
        let reported = as_json(&rows, &problem, &opened, &Options::default(), Some(&papers));
        assert_eq!(reported["papers"]["plan"]["measured_seconds"], 15e-6);
        assert_eq!(reported["papers"]["plan"]["reached"], 10e-6 / 15e-6);
        assert!(
            reported["papers"]["perks"]["projected"]["gcells_per_s"].as_f64().unwrap() > 0.0,
            "{reported}"
        );
        rows[0].seconds = None;
        assert_eq!(own_over_fastest(&rows), None);
        assert!(table(&rows, &problem, &opened).ends_with("The planner's own choice was not timed.\n"));
    }
}
