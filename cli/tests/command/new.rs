//! `abide new`: model files to begin with.

use super::{Place, exists, json};

/// The file runs as it is, twice, and plans; its parameters and scalars are there.
#[test]
fn a_new_file_runs_as_it_is() {
    let place = Place::new();
    let wrote = place.works("new plate.toml");
    assert!(wrote.contains("plate.toml") && wrote.contains("abide run plate.toml"), "{wrote}");
    let text = std::fs::read_to_string(place.path("plate.toml")).unwrap();
    assert!(text.contains("abide run plate.toml") && !text.contains("NAME"), "{text}");
    for _ in 0..2 {
        let report = json(&place.works("run plate.toml --json"));
        assert_eq!((report["steps"].as_u64(), report["scalars"]["time"].as_f64()), (Some(500), Some(500.0)));
    }
    place.works("run plate.toml --steps 20 --param spread=0.05 --output plate.png");
    assert!(exists(&place.path("plate.png")));
    place.works("plan plate.toml --device h200");
}

/// The commands that the file's comments name work, and so do the lines of `[run]` that are commented out.
#[test]
fn what_the_comments_say_works() {
    let place = Place::new();
    place.works("new plate.toml");
    let text = std::fs::read_to_string(place.path("plate.toml")).unwrap();
    let mut commands = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("# abide ")) {
        // What the command does stands behind two spaces, or behind a word.
        let line = line.split("  ").next().unwrap();
        if line.contains("start.png") {
            continue;
        }
        let steps = if line.starts_with("run") && !line.contains("--steps") { " --steps 20" } else { "" };
        place.works(&format!("{line}{steps}"));
        commands += 1;
    }
    assert!(commands >= 4, "{commands}");
    let options = text.replace("# until", "until").replace("# record", "record");
    let options: String = options.lines().map(|line| line.to_owned() + "\n").collect();
    let options = options.replace("ends the run", "# ends the run").replace("a row of", "# a row of");
    std::fs::write(place.path("more.toml"), options).unwrap();
    let report = json(&place.works("run more.toml --json"));
    assert_eq!(report["steps"], 200);
    assert!(exists(&place.path("plate.csv")));
}

/// A file of an entry runs with the bits of the entry.
#[test]
fn a_file_of_an_entry_has_its_bits() {
    let place = Place::new();
    for (entry, size, field) in [
        ("wave", "40x30", "u"),
        ("gray-scott", "33x41", "v"),
        ("cloverleaf", "9x12", "density"),
        ("lbm-d3q19", "8x9x10", "rho"),
        ("1d3pt", "50", "u"),
    ] {
        let file = format!("{entry}.toml");
        place.works(&format!("new {file} --from {entry} --size {size}"));
        let shown = json(&place.works(&format!("list {entry} --json")))[0]["shown"].clone();
        let field = shown.as_str().unwrap_or(field).to_owned();
        let run = |what: &str, to: &str| {
            place.works(&format!("run {what} --steps 7 --backend cpu --output {field}={to}"));
        };
        run(&file, "a.npy");
        run(&format!("{entry} --size {size}"), "b.npy");
        assert_eq!(place.read("a.npy"), place.read("b.npy"), "{entry}");
    }
    let written = json(&place.works("new json.toml --from heat --json"));
    assert_eq!(written["files"][0], "json.toml");
    let text = std::fs::read_to_string(place.path("json.toml")).unwrap();
    assert!(text.contains("size = \"512x512\"") && text.contains("steps = 500"), "{text}");
}

#[test]
fn nothing_is_replaced() {
    let place = Place::new();
    std::fs::write(place.path("mine.toml"), "axes = 1\n").unwrap();
    place.fails("new mine.toml", &["mine.toml", "it is there already", "choose another name, or remove"]);
    place.fails("new mine.toml --from wave", &["it is there already"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", place.path("link.toml")).unwrap();
        place.fails("new link.toml", &["it is there already"]);
    }
    place.fails("new mine", &["ends in .toml", "name it mine.toml"]);
    place.fails("new mine.txt", &["name it mine.toml"]);
    place.fails("new other.toml --from wavee", &["did you mean `wave`?"]);
    place.fails("new other.toml --from mine.toml", &["it is a model file already"]);
    place.fails("new other.toml --from 2d5pt --size 8x8x8", &["2d5pt"]);
    place.fails("new no/where.toml", &["no/where.toml"]);
}
