//! `abide bench`.

use super::{Place, json, words};

const QUICK: &str = "bench stencils --backend cpu --quick --steps 20";

/// Returns the lines of a file of results that are no comments.
fn table(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn a_row_holds_all_that_the_table_needs() {
    let place = Place::new();
    let report = json(&place.works(&format!("{QUICK} --stencil 2ds9pt --size 60x70 --baseline --json")));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "f64 and f32");
    for (row, dtype) in rows.iter().zip(["f64", "f32"]) {
        assert_eq!((row["stencil"].as_str(), row["dtype"].as_str()), (Some("2ds9pt"), Some(dtype)));
        assert_eq!(
            (row["points"].as_u64(), row["steps"].as_u64(), row["depth"].as_u64()),
            (Some(9), Some(20), Some(1))
        );
        assert_eq!((row["boundary"].as_str(), row["execution"].as_str()), (Some("fixed"), Some("stepwise")));
        let number = |name: &str| row[name].as_f64().unwrap();
        let runs: Vec<f64> =
            row["runs"].as_array().unwrap().iter().map(|run| run.as_f64().unwrap()).collect();
        let mut sorted = runs.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!((runs.len(), number("gcells_per_s")), (3, sorted[1]), "the median of three");
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} and {b}");
        close(number("share_of_ceiling") * number("ceiling_gcells_per_s"), sorted[1]);
        close(number("share_of_projected_peak") * number("projected_gcells_per_s"), sorted[1]);
        close(number("stepwise_gcells_per_s"), sorted[1]);
        assert_eq!(row["checked"]["faults"].as_array().unwrap().len(), 0);
        assert_eq!(
            (row["checked"]["cpu_steps"].as_u64(), row["checked"]["repeated_steps"].as_u64()),
            (Some(3), Some(22))
        );
    }
    // One multiply-add per point: twice the lanes in f32, twice the rate.
    let ceiling = |row: usize| rows[row]["ceiling_gcells_per_s"].as_f64().unwrap();
    assert!((ceiling(1) / ceiling(0) - 2.0).abs() < 1e-9);
    assert_eq!(report["holds"], true);
    for word in ["date", "device", "driver", "version", "commit"] {
        assert!(!report["machine"][word].as_str().unwrap().is_empty(), "{word}");
    }
}

#[test]
fn the_table_the_file_and_the_plot_tell_the_same() {
    let place = Place::new();
    let line = format!(
        "{QUICK} --dtype f64 --size 40x50 --csv results.csv --plot plot.svg --verify sampled --baseline"
    );
    let text = place.works(&line);
    assert!(text.contains("stencil  type") && text.contains("×stepwise"), "{text}");
    assert!(text.contains("8 measured, verified in every cell (sampled)"), "{text}");
    let results = std::fs::read_to_string(place.path("results.csv")).unwrap();
    let lines = table(&results);
    assert_eq!(
        lines[0],
        "stencil,dtype,domain,boundary,steps,gcells_per_s,spread_percent,share_of_ceiling,cache,depth,plan"
    );
    let stencils: Vec<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(stencils, ["2d5pt", "2ds9pt", "2d13pt", "2d17pt", "2d21pt", "2ds25pt", "2d9pt", "2d25pt"]);
    for line in &lines[1..] {
        let cells: Vec<&str> = line.splitn(11, ',').collect();
        assert_eq!(cells[1..5], ["f64", "40x50", "fixed", "20"], "{line}");
        assert!(cells[5].parse::<f64>().unwrap() > 0.0 && cells[6].parse::<f64>().unwrap() >= 0.0, "{line}");
        assert_eq!((cells[8], cells[9]), ("none", "1"), "{line}");
        assert!(cells[10].starts_with("stepwise on "), "{line}");
    }
    for comment in
        ["# date: ", "# device: ", "# driver: abide-cpu", "# commit: ", "# runs: 3", "verified: sampled"]
    {
        assert!(results.contains(comment), "{results} does not say {comment}");
    }
    let plot = std::fs::read_to_string(place.path("plot.svg")).unwrap();
    for stencil in stencils {
        assert!(plot.contains(stencil), "the plot does not name {stencil}");
    }
    place.works("bench roofline results.csv --output again.svg");
    assert_eq!(std::fs::read_to_string(place.path("again.svg")).unwrap(), plot, "drawn again from the file");
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is() {
    let place = Place::new();
    for (rest, reasons) in [
        ("--stencil nothing", vec!["no stencil is named `nothing`"]),
        ("--stencil gray-scott --size 64x64", vec!["no linear stencil", "2d5pt, 2ds9pt"]),
        ("--stencil 3d7pt --size 64x64", vec!["axes of 3d7pt"]),
        ("--stencil 1d3pt", vec!["axes of a domain", "give a size"]),
        ("--size 64", vec!["no stencil has so many axes"]),
        ("--steps 0", vec!["steps of a timed run: 0 asked"]),
        ("--repeats 4", vec!["timed runs: 4 asked, the limit is at least 5", "--quick"]),
        ("--domains huge", vec!["no domain is named `huge`", "unfriendly, all"]),
        ("--domains large --size 64x64", vec!["--size"]),
        ("--verify never", vec!["full, sampled, off"]),
        ("--size 8x8 --csv not/there.csv", vec!["not/there.csv", "the folder not is not there"]),
    ] {
        place.fails(&format!("bench stencils --backend cpu {rest}"), &reasons);
    }
    if abide::backend::open("cuda").is_err() {
        place.fails("bench stencils --backend cuda --size 8x8", &["backend cuda is unavailable"]);
    }
    place.fails("bench roofline nothing.csv --output plot.svg", &["nothing.csv"]);
}

/// A run that keeps nothing to compare says so. A plan that cannot be made is reported in its row, and the
/// command fails.
#[test]
fn what_is_not_verified_says_so_and_what_cannot_run_fails() {
    let place = Place::new();
    let text = place.works(&format!("{QUICK} --stencil 2d5pt --size 9x9 --verify off"));
    assert!(text.contains("2 measured, not verified"), "{text}");
    let output = place
        .command(&format!("{QUICK} --stencil 2d5pt --dtype f32 --size 9x9 --depth 300 --csv results.csv"))
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{reported}{}", words(&output));
    assert!(
        reported.contains("2d5pt") && (reported.contains("FAILED") || reported.contains("refused")),
        "{reported}"
    );
    let results = std::fs::read_to_string(place.path("results.csv")).unwrap();
    assert_eq!(table(&results).len(), 1, "{results}");
}

#[test]
fn several_steps_at_once_are_set_against_one() {
    let place = Place::new();
    let line = "bench portable --backend cpu --quick --most-cells 300000";
    let text = place.works(&format!("{line} --csv portable.csv"));
    assert!(text.contains("2d5pt") && text.contains("ratio") && !text.contains("WRONG"), "{text}");
    let results = std::fs::read_to_string(place.path("portable.csv")).unwrap();
    let lines = table(&results);
    assert_eq!(lines[0], "backend,device,stencil,dtype,domain,steps,gcells_per_s,ratio_to_one_step");
    assert!(lines.len() == 2 && lines[1].starts_with("cpu,"), "{results}");
    let report = json(&place.works(&format!("{line} --json")));
    assert_eq!(
        (report["rows"][0]["holds"].as_bool(), report["rows"][0]["target_ratio"].as_f64()),
        (Some(true), Some(1.15))
    );
    assert!(report["rows"][0]["ratio_to_one_step"].as_f64().unwrap() > 0.0);
    let report = json(&place.works(&format!("{line} --json --verify off")));
    assert_eq!(report["rows"][0]["holds"].as_bool(), Some(true));
}

#[test]
fn the_planners_choice_is_set_against_every_other_plan() {
    let place = Place::new();
    let line = "bench planner --backend cpu --quick --seconds 0.002 --csv planner.csv --only 2d5pt 64x64";
    let text = place.works(&format!("{line} f32"));
    assert!(text.contains("regret") && text.contains("problems: 1; within 10 % of the best"), "{text}");
    let first = std::fs::read_to_string(place.path("planner.csv")).unwrap();
    let lines = table(&first);
    assert_eq!(lines[0], "problem,domain,dtype,boundary,chosen,best,chosen_us,best_us,regret");
    assert!(lines.len() == 2 && lines[1].starts_with("2d5pt,64x64,f32,fixed,"), "{first}");
    let regret: f64 = lines[1].rsplit(',').next().unwrap().parse().unwrap();
    assert!(regret >= 1.0, "{first}");

    // The row that is there is kept, and the other one is measured.
    place.works(&format!("{line} --append"));
    let both = std::fs::read_to_string(place.path("planner.csv")).unwrap();
    assert_eq!((table(&both).len(), table(&both)[1]), (3, lines[1]));
    std::fs::write(place.path("planner.csv"), both.replace("# commit: ", "# commit: another")).unwrap();
    place.fails(&format!("{line} --append"), &["planner.csv", "leave --append out"]);
    place.fails("bench planner --backend cpu --only 2d5pt 63x63", &["no row has all these words"]);
    place.fails("bench planner --backend cpu --append", &["--csv"]);
}

#[test]
fn programs_are_timed_by_stages_and_in_groups() {
    let place = Place::new();
    let line = "bench programs --backend cpu --quick --seconds 0.002 --only 960x960";
    let report = json(&place.works(&format!("{line} off,greedy --json --csv programs.csv")));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((report["holds"].as_bool(), rows.len()), (Some(true), 2), "{report}");
    assert!(rows.iter().all(|row| row["ms_per_step"].as_f64().unwrap() > 0.0), "{report}");
    let results = std::fs::read_to_string(place.path("programs.csv")).unwrap();
    assert_eq!(
        table(&results)[0],
        "program,domain,dtype,fuse,groups,ms_per_step,planned_bytes_per_cell,dram_bytes_per_cell,spread_percent"
    );
    let refused = place.works(&format!("{line} search"));
    assert!(refused.contains("use --fuse greedy"), "{refused}");
}

#[test]
fn features_are_measured_beside_the_stencil_without_them() {
    let place = Place::new();
    let line = "bench features --backend cpu --quick --seconds 0.002 --only heat-small f64";
    let report = json(&place.works(&format!("{line} none,sign,probe --json --csv features.csv")));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!((report["holds"].as_bool(), rows.len()), (Some(true), 3), "{report}");
    let factors: Vec<f64> = rows.iter().map(|row| row["factor"].as_f64().unwrap()).collect();
    assert!(factors[0] == 1.0 && factors.iter().all(|&factor| factor > 0.0), "{report}");
    let results = std::fs::read_to_string(place.path("features.csv")).unwrap();
    let columns = "stencil,domain,dtype,feature,us_per_step,factor,estimated_us,depth,spread_percent";
    assert_eq!(table(&results)[0], columns);
}

#[test]
fn what_a_chip_holds_is_measured_and_verified() {
    let place = Place::new();
    let line = "bench chip --backend cpu --quick --seconds 0.002 --only 3d7pt 32x32x32";
    let report = json(&place.works(&format!("{line} --json --csv chip.csv")));
    let row = &report["rows"][0];
    assert_eq!((report["holds"].as_bool(), row["domain"].as_str()), (Some(true), Some("32x32x32")));
    assert!(row["gcells_per_s"].as_f64().unwrap() > 0.0);
    let results = std::fs::read_to_string(place.path("chip.csv")).unwrap();
    assert_eq!(table(&results)[0], "problem,domain,dtype,boundary,execution,gcells_per_s,spread_percent");
    place.fails("bench chip --backend cpu --repeats 3", &["timed runs: 3 asked", "--quick"]);
    place.fails("bench chip --backend cpu --seconds 0", &["seconds of a timed run"]);
}

#[test]
fn stencils_are_measured_under_any_boundary() {
    let place = Place::new();
    let line = format!("{QUICK} --stencil 2d5pt --dtype f32 --size 30x40 --csv results.csv");
    let text = place.works(&format!("{line} --boundary periodic,constant=1"));
    assert!(text.contains("periodic; ") && text.contains("constant=1; "), "{text}");
    let text = place.works(&format!("{line} --boundary fixed,periodic --append"));
    assert!(text.contains("1 measured") && !text.contains("periodic; "), "{text}");
    let results = std::fs::read_to_string(place.path("results.csv")).unwrap();
    let boundaries: Vec<_> =
        table(&results)[1..].iter().map(|line| line.split(',').nth(3).unwrap()).collect();
    assert_eq!(boundaries, ["periodic", "constant=1", "fixed"]);
}

/// A chain of three loops saves the arrays between them; another one shares nothing with them.
const LOOPS: &str = r#"{"capacity": 3, "seed": 9, "kernels": [
    {"reads": {"0": 1}, "writes": [1], "flops": 5}, {"reads": {"4": 0}, "writes": [5]},
    {"reads": {"1": 0}, "writes": [2]}, {"reads": {"2": 0}, "writes": [1]}]}"#;

#[test]
fn loops_are_grouped_so_that_little_is_moved() {
    let place = Place::new();
    std::fs::write(place.path("loops.json"), LOOPS).unwrap();
    for method in ["search", "greedy", "exhaustive"] {
        let reported =
            json(&place.works(&format!("bench search loops.json --method {method} --seed 4 --json")));
        // Array 0 is loaded, 1 and 2 are stored; 4 and 5 are the other loop's.
        assert_eq!(
            (reported["cost"].as_u64(), reported["group_count"].as_u64()),
            (Some(40), Some(2)),
            "{reported}"
        );
        assert_eq!(
            (&reported["groups"][0], reported["seed"].as_u64()),
            (&serde_json::json!([0, 2, 3]), Some(4)),
            "{reported}"
        );
        assert!(reported["evaluations"].as_u64() > reported["evaluations_computed"].as_u64());
        assert!(
            reported["evaluations_per_s"].as_f64() > Some(0.0) && reported["seconds"].as_f64() >= Some(0.0)
        );
    }
    let text = place.works("bench search loops.json --seconds 0.01");
    assert!(text.contains("4 loops of 64 bytes per cell: 2 groups of 40 bytes, 37.5 % less"), "{text}");
    assert!(text.contains("\n  0 2 3\n"), "{text}");

    std::fs::write(place.path("word.json"), LOOPS.replace("\"0\"", "\"a\"")).unwrap();
    std::fs::write(place.path("far.json"), LOOPS.replace("[5]", "[5000]")).unwrap();
    let reasons: [(&str, &[&str]); 5] = [
        ("word.json", &["word.json", "array `a` is no number"]),
        ("far.json", &["arrays of a program to be fused: 5001 asked", "512"]),
        ("none.json", &["none.json", "--help"]),
        ("loops.json --method best", &["search, greedy, exhaustive"]),
        ("loops.json --seconds 0", &["seconds of a search"]),
    ];
    for (line, words) in reasons {
        place.fails(&format!("bench search {line}"), words);
    }
}

/// A helper, which compiles kernels for another process, answers line by line, and does nothing else. The CPU has no
/// compiler, so that its answers are all there is.
#[test]
fn a_helper_answers_and_neither_measures_nor_writes() {
    use std::io::Write as _;
    use std::process::Stdio;

    let place = Place::new();
    std::fs::write(place.path("kept.csv"), "no table").unwrap();
    let before = place.contents();
    for line in [
        "bench chip --only 2d5pt --csv kept.csv --append",
        "bench planner --only 64x64 --csv kept.csv --append --plans plans.csv",
        "bench programs --csv rows.csv --json",
        "bench stencils --csv kept.csv --append --plot plot.svg",
    ] {
        let asked = "0 0\n1 25\n77 0\n";
        let mut command = place.command(&format!("{line} --backend cpu"));
        command.env("ABIDE_BENCH_HELPER", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut helper = command.stderr(Stdio::piped()).spawn().unwrap();
        helper.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        let output = helper.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {}", words(&output));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("ready\n{asked}"), "{line}");
        assert_eq!(place.contents(), before, "{line}");
    }
}

/// What an evaluation refuses before it measures; its parts are tested in the crate of the benchmarks.
#[test]
fn an_evaluation_checks_its_files_first() {
    let place = Place::new();
    place.fails("evaluate --quick --json a.svg --plot a.svg", &["a.svg"]);
    place.fails("evaluate --quick --plot no/where.svg", &["no/where.svg"]);
    if abide::backend::open("cuda").is_err() {
        place.fails("evaluate --quick --backend cuda --json e.json", &["backend cuda is unavailable"]);
    }
}

#[test]
fn both_multigrids_are_counted() {
    let place = Place::new();
    let line = "bench multigrid --backend cpu --quick --repeats 1 --size 8";
    let text = place.works(&format!("{line} --only smooth --csv multigrid.csv"));
    assert!(text.contains("smooth k") && text.contains("amg") && !text.contains("not converged"), "{text}");
    let results = std::fs::read_to_string(place.path("multigrid.csv")).unwrap();
    let lines = table(&results);
    assert!(
        lines.len() == 3 && lines[1].contains(",multigrid,cpu,") && lines[2].contains(",amg,cpu,"),
        "{results}"
    );
    let report = json(&place.works(&format!("{line} --only wide --json")));
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() == 4 && rows.iter().all(|row| row["factor"].as_f64().unwrap() < 1.0), "{report}");
    place.fails(&format!("{line} --only nonsense"), &["nonsense", "bubbles"]);
    place.fails("bench multigrid --size 4", &["8 to 512"]);
}
