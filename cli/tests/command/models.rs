//! Model files: `abide run model.toml`, and `--write-config`.

use super::{Place, exists, json};

/// Gray–Scott as a user would write it, with operations in another order than the catalogue's.
const SPOTS: &str = r#"
axes = 2
boundary = "periodic"
shown = "v"

[fields]
u = { start = { seeds = 8, inside = 0.5, outside = 1.0 } }
v = { start = { seeds = 8, inside = 0.25 } }

[parameters]
feed = 0.03
kill = 0.062

[scalars]
time = 0.0
most = {}

[[stages]]
lap_u = "u[-1,0] + u[0,-1] + u[0,1] + u[1,0] - 4*u"
lap_v = "v[-1,0] + v[0,-1] + v[0,1] + v[1,0] - 4*v"
r = "u * v**2"
u = "u + 0.16*lap_u - r + feed*(1 - u)"
v = "v + 0.08*lap_v + r - (feed + kill)*v"

[[stages]]
time = "time + 0.5"
most = "max(v)"

[run]
steps = 300
size = "48x37"
dtype = "f64"
backend = "cpu"
param = { feed = 0.037 }
output = ["u=u.npy", "spots.png"]
"#;

fn spots(place: &Place) {
    std::fs::write(place.path("spots.toml"), SPOTS).unwrap();
}

/// The run has the bits of the same formula in plain Rust, and its table `run` says what it writes.
#[test]
fn a_model_file_is_run() {
    let place = Place::new();
    spots(&place);
    let reported = place.works("run spots.toml");
    assert!(reported.contains("48x37 f64, boundary periodic: 300 steps"), "{reported}");
    assert!(exists(&place.path("spots.png")));
    place.works("run spots.toml --steps 0 --output u=u0.npy --output v=v0.npy");
    let [mut u, mut v] = ["u0.npy", "v0.npy"].map(|name| place.read(name).values.to_f64());
    let (rows, columns) = (48, 37);
    for _ in 0..300 {
        let lap = |w: &[f64], y: usize, x: usize| {
            let at = |y: usize, x: usize| w[y % rows * columns + x % columns];
            at(y + rows - 1, x) + at(y, x + columns - 1) + at(y, x + 1) + at(y + 1, x) - 4.0 * at(y, x)
        };
        let cells = (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x)));
        let new: Vec<(f64, f64)> = cells
            .map(|(y, x)| {
                let (a, b) = (u[y * columns + x], v[y * columns + x]);
                let r = a * (b * b);
                (
                    a + 0.16 * lap(&u, y, x) - r + 0.037 * (1.0 - a),
                    b + 0.08 * lap(&v, y, x) + r - (0.037 + 0.062) * b,
                )
            })
            .collect();
        (u, v) = new.into_iter().unzip();
    }
    place.works("run spots.toml --trust-file");
    let found = place.read("u.npy").values.to_f64();
    assert!(found.iter().zip(&u).all(|(a, b)| a.to_bits() == b.to_bits()));
    let report = json(&place.works("run spots.toml --trust-file --json --until time>=20"));
    assert_eq!((report["steps"].as_u64(), report["scalars"]["time"].as_f64()), (Some(40), Some(20.0)));
}

/// What a user gives goes before what the file says; a plan takes what it knows of it.
#[test]
fn options_given_win() {
    let place = Place::new();
    spots(&place);
    let reported = place.works("run spots.toml --steps 3 --size 10x11 --output other.png");
    assert!(reported.contains("10x11 f64") && reported.contains("3 steps"), "{reported}");
    assert!(exists(&place.path("other.png")));
    assert!(!exists(&place.path("u.npy")) && !exists(&place.path("spots.png")));
    let reported = place.works("plan spots.toml --dtype f32");
    assert!(reported.contains("48x37 f32"), "{reported}");
}

/// A run written as a model file has the same bits again.
#[test]
fn a_run_is_written() {
    let place = Place::new();
    for (line, field) in [
        ("gray-scott --size 33x41 --boundary y=mirror --param feed=0.037 --steps 70", "v"),
        ("life --size 20x30 --input random:3 --steps 9", "u"),
        ("fdtd-tm --size 20x21 --dtype f64 --steps 30", "ez"),
        ("cloverleaf --size 9x12 --dtype f64 --until time>=0.3 --steps 40", "xvel0"),
    ] {
        let both = format!("--backend cpu --output {field}=a.npy");
        place.works(&format!("run {line} {both} --write-config written.toml"));
        std::fs::rename(place.path("a.npy"), place.path("b.npy")).unwrap();
        place.works("run written.toml");
        assert_eq!(place.read("a.npy"), place.read("b.npy"), "{line}");
        // It says all there is to say: written again, it is the same.
        place.works("run written.toml --trust-file --write-config again.toml");
        let [written, again] =
            ["written.toml", "again.toml"].map(|name| std::fs::read_to_string(place.path(name)).unwrap());
        assert_eq!(written.matches('=').count(), again.matches('=').count(), "{line}: {again}");
    }
}

/// A checkpoint of a model file's run goes on.
#[test]
fn a_model_file_is_resumed() {
    let place = Place::new();
    spots(&place);
    place.works("run spots.toml --steps 100 --checkpoint c.npz --every 60");
    place.works("run spots.toml --resume c.npz --steps 200 --output u=rest.npy");
    place.works("run spots.toml --trust-file");
    assert_eq!(place.read("rest.npy"), place.read("u.npy"));
}

#[test]
fn faults_of_model_files_are_told() {
    let place = Place::new();
    spots(&place);
    let with = |part: &str, other: &str| {
        let text = SPOTS.replacen(part, other, 1);
        assert_ne!(text, SPOTS, "{part}");
        std::fs::write(place.path("bad.toml"), text).unwrap();
    };
    with("u * v**2", "u * w**2");
    place
        .fails("run bad.toml", &["bad.toml, line 21, column 10", "no value is named `w`", "use one of u, v"]);
    with("[fields]", "[fields");
    place.fails("run bad.toml", &["bad.toml, line 6", "TOML"]);
    with("steps = 300", "step = 300");
    let reported = place.command("run bad.toml").output().unwrap();
    assert_eq!(reported.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&reported.stderr).contains("--step"));
    place.fails("run none.toml", &["none.toml", "No such file", "give a model file"]);
    std::fs::write(place.path("bytes.toml"), b"axes = \xff").unwrap();
    place.fails("run bytes.toml", &["bytes.toml", "UTF-8"]);
    place.fails("plan none.toml", &["none.toml"]);
    place.fails("run spots.toml --param k=1", &["no parameter is named `k`"]);
    place.fails("run spots.toml --write-config no/where.toml", &["no/where.toml"]);
}

/// Python takes some options of the table `run`, and refuses those that `abide run` refuses.
#[test]
fn readers_of_model_files_know_every_option_of_run() {
    let help = Place::new().works("run --help");
    let options = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    let names: Vec<&str> = options.filter_map(|rest| rest.split([' ', ',']).next()).collect();
    assert!(names.contains(&"size") && names.contains(&"write-config"), "{names:?}");
    // A file cannot say that it is to be trusted.
    let is_known = |name: &&str| abide::io::model::RUN_OPTIONS.contains(name) || *name == "trust-file";
    assert!(names.iter().all(is_known), "{names:?}");
}

/// The model files of the book's codes run with what their table `run` says, here for fewer steps.
#[test]
fn models_of_the_examples_run() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/models");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        std::fs::copy(entry.path(), place.path(&name)).unwrap();
        let reported = place.works(&format!("run {name} --steps 3 --backend cpu"));
        assert!(reported.contains(": 3 steps"), "{reported}");
        count += 1;
    }
    assert!(count >= 10, "{count} models");
}
