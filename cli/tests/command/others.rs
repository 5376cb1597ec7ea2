//! `abide list`, `devices`, `plan` and `verify`.

use abide::catalogue;

use super::{Place, json, words};

#[test]
fn list_has_a_line_for_each_entry_and_the_details_of_one() {
    let place = Place::new();
    let text = place.works("list");
    let lines: Vec<&str> = text.lines().collect();
    // A head, the entries, an empty line, and what to do next.
    assert_eq!(lines.len(), catalogue::entries().count() + 3, "{text}");
    for (entry, line) in catalogue::entries().zip(&lines[1..]) {
        assert!(line.starts_with(entry.name) && line.ends_with(entry.about), "{line}");
        let one = place.works(&format!("list {}", entry.name));
        assert!(one.contains(&format!("{}  (", entry.name)), "{}", entry.name);
        for parameter in entry.program(*entry.dimensions.start()).unwrap().parameters() {
            assert!(
                one.contains(&format!("--param {}=", parameter.name)),
                "{} {}",
                entry.name,
                parameter.name
            );
        }
    }
    let one = place.works("list 2d5pt");
    assert!(one.contains("· ● ·   u") && one.contains("● ◉ ●") && !one.contains("2d9pt"), "{one}");
    let all = json(&place.works("list --json"));
    assert_eq!(all.as_array().unwrap().len(), catalogue::entries().count());
    assert_eq!(json(&place.works("list heat --json"))[0]["parameters"][0]["name"], "kappa");
    place.fails("list nothing", &["no stencil is named `nothing`"]);
}

#[test]
fn without_arguments_it_says_what_to_do_next() {
    let text = Place::new().works("");
    assert!(text.lines().count() == 4 && text.lines().all(|line| line.starts_with("abide ")), "{text}");
}

#[test]
fn devices_names_every_backend() {
    let place = Place::new();
    let text = place.works("devices");
    for name in abide::backend::names() {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    let all = json(&place.works("devices --json"));
    let cpu = all.as_array().unwrap().iter().find(|d| d["backend"] == "cpu").unwrap();
    assert!(cpu["device"]["multiprocessors"].as_u64().unwrap() > 0);
}

#[test]
fn plan_needs_no_device() {
    let place = Place::new();
    let text = place.works("plan 2d5pt --size 3072x3072 --device a100 --execution persistent");
    for words in [
        "2d5pt on 3072x3072 f32",
        "A100: 1555 GB/s",
        "persistent",
        "of the domain stays on the chip",
        "GCells/s",
    ] {
        assert!(text.contains(words), "{text} does not say {words}");
    }
    let plan = json(&place.works("plan 2d5pt --size 3072x3072 --device a100 --execution stepwise --json"));
    assert_eq!(plan["execution"], "stepwise");
    assert_eq!(plan["device"]["name"], "A100");
    let text = place.works("plan heat --size 64x64 --backend cpu");
    assert!(text.contains("rows"), "{text}");
    let text = place.works("plan gray-scott");
    assert!(text.contains("no CUDA device here: planned for an A100") || text.contains("GB/s"), "{text}");
    place.fails("plan 2d5pt --device b300", &["no device preset is named `b300`", "v100, a100, h100, h200"]);
    for (name, words) in [
        ("rtx5090", "RTX 5090: 1792 GB/s"),
        ("m3max", "M3 Max: 400 GB/s"),
        ("mi300x", "MI300X: 5300 GB/s"),
        ("ArcA770", "Arc A770: 560 GB/s"),
    ] {
        let text = place.works(&format!("plan 3d7pt --size 256x256x256 --device {name}"));
        assert!(text.contains(words), "{text}");
    }
    place.fails("plan 2d5pt --device m3max --dtype f64", &["M3 Max", "f64", "use --dtype f32"]);
    place.fails("plan 2d5pt --device mi300x --devices 4", &["wgpu runs on one", "leave --devices out"]);
    place.fails("plan 2d5pt --device mi300x --execution persistent", &["MI300X", "barrier"]);
    place.fails("plan 2d5pt --device a100 --backend cpu", &["--device"]);
    place.fails("plan 2d5pt --size 5x5x5", &["axes of 2d5pt"]);
}

#[test]
fn plan_shows_the_papers_models_beside_it() {
    let place = Place::new();
    let a100 = "plan 2d5pt --size 8352x8352 --dtype f64 --device a100";
    let plain = place.works(a100);
    assert!(!plain.contains("EBISU   "), "{plain}");
    let text = place.works(&format!("{a100} --papers"));
    assert!(text.starts_with(&plain), "the plan comes first: {text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("PERKS").contains("% of the cells in registers"), "{text}");
    assert!(line("EBISU").contains("SM tiling, 7 steps per pass, tiles of 256 cells"), "{text}");
    assert!(line("plan ").contains("2.5-D streaming"), "{text}");
    assert!(!text.contains("reached"), "nothing was measured: {text}");

    let reported = json(&place.works(&format!("{a100} --papers --json")));
    assert_eq!(reported["device"]["name"], "A100");
    let ebisu = &reported["papers"]["ebisu"]["projected"];
    assert_eq!(ebisu["details"]["sm"]["depth"], 7);
    assert_eq!(ebisu["bound"], "shared");
    assert_eq!(reported["papers"]["ebisu"]["reached"], serde_json::Value::Null);
    assert!(reported["papers"]["perks"]["projected"]["details"]["in_registers"].as_f64().unwrap() > 0.0);
    let own = reported["papers"]["plan"]["projected"]["seconds"].as_f64().unwrap();
    assert!((own / reported["estimated_seconds"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    assert!(json(&place.works(&format!("{a100} --json"))).get("papers").is_none());

    // A device of which the models' numbers are not known, and a line.
    let text = place.works("plan heat --size 64x64 --backend cpu --papers");
    assert_eq!(text.matches("the model needs what is not known of it: registers").count(), 2, "{text}");
    let text = place.works("plan 1d3pt --size 4096 --device h200 --papers");
    assert!(text.contains("not applicable: a domain of one axis: EBISU streams"), "{text}");
    place.fails("plan heat --size 64x64 --backend cpu --papers --measured", &["its model alone"]);
}

#[test]
fn plan_draws_a_programs_loops_and_lists_their_groups() {
    let place = Place::new();
    let clover = "plan cloverleaf --size 960x960 --dtype f64";
    place.works(&format!("{clover} --device h200 --graph loops.svg"));
    let svg = std::fs::read_to_string(place.path("loops.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("33 loops in ") && svg.contains("least estimated time on H200"), "{svg}");
    for word in ["31 reset nodes", "density1", "Order of execution", "Data dependencies"] {
        assert!(svg.contains(word), "{word}");
    }
    // A CPU has no shared memory to plan for: traffic alone decides.
    place.works(&format!("{clover} --backend cpu --rename --cycle-step all --graph loops.dot"));
    let dot = std::fs::read_to_string(place.path("loops.dot")).unwrap();
    assert!(dot.starts_with("digraph") && dot.contains("60 loops in") && dot.contains("density1.5"), "{dot}");
    place.fails(&format!("{clover} --graph loops.png"), &["loops.png", "end the name in .svg or .dot"]);
    place.fails(&format!("{clover} --graph x.svg --cycle-step 2"), &["step of the cycle", "below 2"]);

    let text = place.works(&format!("{clover} --device h200 --papers"));
    assert!(text.contains("paper µs") && text.contains("0 ideal gas, 1 viscosity"), "{text}");
    let reported = json(&place.works(&format!("{clover} --device h200 --papers --json")));
    let groups = reported["fusion"]["groups"].as_array().unwrap();
    let loops: usize = groups.iter().map(|group| group["loops"].as_array().unwrap().len()).sum();
    assert_eq!(loops, 33);
    assert!(groups.iter().all(|group| group["bytes"].as_u64() <= group["unfused_bytes"].as_u64()));
    let text = place.works(&format!("{clover} --backend cpu --papers"));
    assert!(text.contains("fusion not applicable"), "{text}");
    assert!(json(&place.works("plan 2d5pt --device h200 --papers --json")).get("fusion").is_none());
}

#[test]
fn plans_are_measured_only_where_there_are_several() {
    let place = Place::new();
    place.fails(
        "plan 2d5pt --size 64x64 --backend cpu --measured",
        &["backend cpu cannot run this", "its model alone"],
    );
    place.fails("plan 2d5pt --device a100 --measured", &["--device"]);
    if abide::backend::open("cuda").is_err() {
        place.fails("plan 2d5pt --size 64x64 --measured --tune full", &["backend cuda is unavailable"]);
    }
}

#[test]
fn groups_of_loops_are_measured() {
    let place = Place::new();
    let clover = "plan cloverleaf --size 64x96 --dtype f64";
    let text = place.works(&format!("{clover} --backend cpu --measured"));
    for words in ["groups of cloverleaf on ", "measured µs", "FE", "projection: off by ", "one by one: "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let reported = json(&place.works(&format!("{clover} --backend cpu --fuse off --measured --json")));
    let groups = reported["groups"]["groups"].as_array().unwrap();
    assert!(groups.iter().all(|group| group["stages"].as_array().unwrap().len() == 1));
    assert!(groups.iter().all(|group| group["measured"].as_f64() > Some(0.0)), "{groups:?}");
    assert!(
        reported["groups"]["efficiency"].is_null() && reported["groups"]["slower"] == serde_json::json!([])
    );
    // Without a device groups are listed as they are projected.
    let text = place.works("plan cloverleaf --size 3840x3840 --dtype f64 --device h200 --fuse greedy");
    assert!(text.contains("projected µs") && !text.contains("measured"), "{text}");
}

#[test]
fn tuning_where_there_is_nothing_to_tune_is_noted() {
    let place = Place::new();
    for tune in ["quick", "full"] {
        let text = place.works(&format!("plan heat --size 64x64 --backend cpu --tune {tune}"));
        assert!(text.contains("backend cpu chooses by its model alone, there is nothing to tune"), "{text}");
        let text = place.works(&format!("plan heat --size 64x64 --device h200 --tune {tune}"));
        assert!(text.contains(&format!("tuning {tune} was asked for: nothing can be timed")), "{text}");
    }
    let report = json(&place.works("run heat --size 16x16 --steps 3 --backend cpu --tune quick --json"));
    assert!(report["notes"].to_string().contains("nothing to tune"), "{report}");
    for tune in ["", "--tune off", "--tune kept"] {
        let text = place.works(&format!("plan heat --size 64x64 --backend cpu {tune}"));
        assert!(!text.contains("tun"), "{text}");
    }
}

#[test]
fn verify_compares_and_says_what_is_absent() {
    let place = Place::new();
    let text = place.works("verify --backend cpu 2d5pt heat cloverleaf");
    assert!(text.contains("2d5pt") && text.contains("all within their bounds"), "{text}");
    let verification = json(&place.works("verify --backend cpu --json heat"));
    let findings = verification["findings"].as_array().unwrap();
    assert!(
        findings.len() == 2
            && findings
                .iter()
                .all(|f| f["entry"] == "heat" && f["largest"] == 0.0 && f["runs"].as_u64() > Some(0))
    );
    if abide::backend::open("cuda").is_err() {
        let output = place.command("verify --backend cuda").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", words(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("skipped: cuda, but it is required"));
        let output = place.command("verify --backend cuda --json").output().unwrap();
        let reported = json(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(reported["skipped"][0]["backend"], "cuda", "{reported}");
        assert_eq!(reported["findings"].as_array().map(Vec::len), Some(0), "{reported}");
    }
}

#[test]
fn help_has_examples() {
    let place = Place::new();
    assert!(place.works("--help").contains("abide run gray-scott --steps 5000 --output spots.png"));
    assert!(place.works("run --help").contains("Examples:"));
    assert!(place.works("--version").contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn view_without_the_windows_program_says_what_to_build() {
    let place = Place::new();
    // Away from the folder where a build of the workspace may have put the window's program.
    let alone = place.path(&format!("abide{}", std::env::consts::EXE_SUFFIX));
    std::fs::copy(env!("CARGO_BIN_EXE_abide"), &alone).unwrap();
    let view = |rest: &[&str]| std::process::Command::new(&alone).arg("view").args(rest).output().unwrap();
    let output = view(&["heat"]);
    let words = words(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("cargo build --release -p abide-viewer") && output.stdout.is_empty(), "{words}");
    let reported = json(&String::from_utf8(view(&["heat", "--json"]).stdout).unwrap());
    assert_eq!(reported["kind"], "refusal");
    assert!(view(&["--", "--json"]).stdout.is_empty());
    for help in ["--help", "-h"] {
        let output = view(&["heat", help]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("abide view --scene coral"), "{text}");
        assert!(text.contains("cargo build --release -p abide-viewer"), "{text}");
    }
}
