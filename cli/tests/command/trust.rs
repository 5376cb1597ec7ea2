//! What a model file's table `run` may do: files of others name no others, and the command line wins.

#[cfg(unix)]
use super::exists;
use super::{Place, json, words};

const MODEL: &str = r#"
axes = 2
[fields]
u = "gaussian"
v = 1.0
[parameters]
k = 0.1
g = 0.2
[[stages]]
u = "u + k*(u[-1,0] + u[1,0] - 2*u)"
v = "v*g"
[run]
steps = 6
size = "8x9"
backend = "cpu"
"#;

/// Writes a model file with more in its table `run`.
fn model(place: &Place, name: &str, more: &str) {
    std::fs::write(place.path(name), format!("{MODEL}{more}\n")).unwrap();
}

/// Each of these is refused, writes nothing, and is done where the user trusts the file or names the file itself.
#[test]
fn a_model_file_writes_nowhere_else() {
    let place = Place::new();
    let outside = Place::new();
    let far = outside.path("far.npy");
    let far = far.display();
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("there.npy"), "precious").unwrap();
    std::fs::write(place.path("f3.npy"), "precious").unwrap();
    for (more, reason) in [
        (format!("output = \"{far}\""), "leads out of the working folder"),
        (format!("output = \"u={far}\""), "leads out of the working folder"),
        ("output = \"../x.npy\"".to_owned(), "leads out of the working folder"),
        ("output = \"d/../../x.npy\"".to_owned(), "leads out of the working folder"),
        ("output = [\"a.npy\", \"u=../x.npy\"]".to_owned(), "leads out of the working folder"),
        ("output = { u = \"../x.npy\" }".to_owned(), "leads out of the working folder"),
        ("output = \"there.npy\"".to_owned(), "there already"),
        ("output = \".x.npy\"".to_owned(), "hidden"),
        ("output = \"d/.x/y.npy\"".to_owned(), "hidden"),
        ("every = 2\nframes = \"f%d.npy\"".to_owned(), "f3.npy is there already"),
        ("every = 2\nframes = \"../f%d.npy\"".to_owned(), "leads out of the working folder"),
        ("every = 2\ncheckpoint = \"/tmp/x.npz\"".to_owned(), "leads out of the working folder"),
        ("every = 2\ncheckpoint = \"x.sh\"".to_owned(), "a .npz file"),
        ("record = \"../r.csv\"\nprobe = \"u@1,1\"".to_owned(), "leads out of the working folder"),
        ("record = \"run.sh\"\nprobe = \"u@1,1\"".to_owned(), "a .csv file"),
        ("write-config = \"/home/u/.bashrc\"".to_owned(), "leads out of the working folder"),
        ("write-config = \"profile\"".to_owned(), "a .toml file"),
        ("write-config = \"m.toml\"".to_owned(), "there already"),
        ("input = \"/etc/x.npy\"".to_owned(), "leads out of the working folder"),
        ("resume = \"../x.npz\"".to_owned(), "leads out of the working folder"),
        ("trust-file = true\noutput = \"../x.npy\"".to_owned(), "cannot say that it is to be trusted"),
    ] {
        model(&place, "m.toml", &more);
        place.fails("run m.toml", &[reason, "m.toml, [run]"]);
        assert!(outside.names().is_empty(), "{more}");
    }
    model(&place, "m.toml", &format!("output = \"{far}\""));
    place.fails("run m.toml --steps 3", &["--trust-file"]);
    place.works("run m.toml --trust-file");
    assert_eq!(outside.names(), ["far.npy"]);
    place.works("run m.toml --output here.npy");
    model(&place, "m.toml", "output = [\"d/x.npy\", \"./y.npy\"]");
    let reported = place.works("run m.toml");
    assert!(reported.contains("d/x.npy") && reported.contains("y.npy"), "{reported}");
    // A verb that writes nothing takes nothing from the table that does.
    model(&place, "m.toml", "output = \"/far/away.npy\"");
    place.works("plan m.toml --device a100");
}

#[cfg(unix)]
#[test]
fn links_lead_a_model_file_nowhere_else() {
    use std::os::unix::fs::symlink;

    let (place, outside) = (Place::new(), Place::new());
    symlink(outside.path("."), place.path("d")).unwrap();
    symlink(outside.path("x.npy"), place.path("x.npy")).unwrap();
    std::fs::create_dir(place.path("e")).unwrap();
    symlink("e", place.path("inside")).unwrap();
    place.write("u.npy", &[8, 9], &abide::Array::F32(vec![0.5; 72]));
    std::fs::copy(place.path("u.npy"), outside.path("u.npy")).unwrap();
    symlink(outside.path("u.npy"), place.path("linked.npy")).unwrap();
    for more in [
        "output = \"d/y.npy\"",
        "output = \"x.npy\"",
        "every = 2\nframes = \"d/f%d.npy\"",
        "input = \"linked.npy\"",
        "input = \"u=d/u.npy\"",
    ] {
        model(&place, "m.toml", more);
        let output = place.command("run m.toml").output().unwrap();
        assert!(words(&output).contains("a link leads out"), "{more}: {}", words(&output));
        assert_eq!(outside.names(), ["u.npy"], "{more}");
    }
    model(&place, "m.toml", "output = \"inside/y.npy\"");
    place.works("run m.toml");
    assert!(exists(&place.path("e/y.npy")));
}

/// Whatever the command line says is so, for every key; of options that have a name for each value, for that name.
#[test]
fn the_command_line_wins() {
    let place = Place::new();
    place.write("half.npy", &[8, 9], &abide::Array::F32(vec![0.5; 72]));
    let more = "dtype = \"f64\"\nevery = 2\noutput = [\"own.png\", \"own.gif\"]\nframes = \"own%d.npy\"\n\
                record = \"own.csv\"\nprobe = [\"u@1,1\", \"u@2,2\"]\ncheckpoint = \"own.npz\"\n\
                write-config = \"own.toml\"\ndevice-list = [0, 0]\nrange = \"0:1\"\nboundary = \"mirror\"\n\
                param = { k = 0.2, g = 0.5 }\ninput = [\"u=point\", \"v=half.npy\"]";
    model(&place, "m.toml", more);
    place.works(
        "run m.toml --output a.png --every 3 --frames a%d.npy --record a.csv --probe v@1,1 --checkpoint a.npz \
         --write-config a.toml --devices 1 --range 0:2 --boundary periodic --param k=0.05 --input u=random:1 --dtype f32",
    );
    assert_eq!(
        place.names(),
        ["a.csv", "a.npz", "a.png", "a.toml", "a0.npy", "a1.npy", "a2.npy", "half.npy", "m.toml"]
    );
    let written = std::fs::read_to_string(place.path("a.toml")).unwrap();
    for part in ["k=0.05", "g=0.5", "u=random:1", "v=half.npy", "boundary = \"periodic\"", "v@1,1"] {
        assert!(written.contains(part), "{part}: {written}");
    }
    assert!(
        !written.contains("k=0.2") && !written.contains("u=point") && !written.contains("own"),
        "{written}"
    );
    // An interval that has nothing to do beside the user's own output is no fault of theirs.
    model(&place, "m.toml", "every = 2\noutput = \"own.gif\"");
    place.works("run m.toml --output b.png");
    place.fails("run heat --size 8x8 --steps 4 --every 2 --output b.png", &["nothing is written on the way"]);
    // An input for all fields, beside one that the user names.
    model(&place, "m.toml", "input = \"point\"");
    place.works("run m.toml --steps 0 --input u=half.npy --output u=u.npy --output v=v.npy");
    assert_eq!(place.read("u.npy"), place.read("half.npy"));
    assert_eq!(place.read("v.npy").values.to_f64().iter().sum::<f64>(), 1.0);
    place.works("run m.toml --steps 0 --input half.npy --output v=v.npy");
    assert_eq!(place.read("v.npy"), place.read("half.npy"));
    // A checkpoint brings all fields with it.
    place.works("run m.toml --steps 4 --checkpoint c.npz --every 4");
    let report = json(&place.works("run m.toml --resume c.npz --json"));
    assert_eq!(report["steps"], 6);
}

/// Every file that is written is reported in words and as JSON, also where the model file asks for it.
#[test]
fn every_file_is_told() {
    let place = Place::new();
    let names = ["a.npy", "b.png", "c.csv", "d.npz", "e.toml", "f0.npy"];
    let more = "output = [\"a.npy\", \"b.png\"]\nrecord = \"c.csv\"\nprobe = \"u@1,1\"\ncheckpoint = \"d.npz\"\n\
                write-config = \"e.toml\"\nframes = \"f%d.npy\"\nevery = 5";
    model(&place, "m.toml", more);
    let reported = place.works("run m.toml");
    let report = json(&place.works("run m.toml --trust-file --json"));
    for name in names {
        assert!(
            reported.lines().any(|line| line.starts_with("wrote") && line.contains(name)),
            "{name}: {reported}"
        );
        assert!(
            report["files"].as_array().unwrap().iter().any(|file| file.as_str().unwrap().contains(name)),
            "{report}"
        );
    }
}

/// Names with parts of paths or with what a terminal obeys are refused where they are read.
#[test]
fn names_are_checked_where_they_are_read() {
    let place = Place::new();
    for (field, name, about) in [
        ("../../etc/x", "m", "rate"),
        ("a/b", "m", "rate"),
        ("u\\u001b[2J", "m", "rate"),
        ("u", "../m", "rate"),
        ("u", "\\u001b]0;x\\u0007", "rate"),
        ("u", "m", "\\u001b[31mred"),
    ] {
        let text = format!(
            "name = \"{name}\"\naxes = 1\n[fields]\n\"{field}\" = 1.0\n[parameters]\nk = {{ default = 1.0, about = \"{about}\" }}\n\
             [[stages]]\n\"{field}\" = \"1.0\"\n"
        );
        std::fs::write(place.path("n.toml"), text).unwrap();
        let output = place.command("run n.toml --steps 1 --size 4 --backend cpu").output().unwrap();
        let reported = words(&output);
        assert!(
            !output.status.success() && !reported.contains('\u{1b}'),
            "{field} {name} {about}: {reported:?}"
        );
        assert!(
            reported.contains("its name is a path") || reported.contains("control character"),
            "{reported:?}"
        );
    }
}

/// A model may come by a pipe, which is read once.
#[cfg(unix)]
#[test]
fn a_model_comes_by_a_pipe() {
    use std::io::Write;
    use std::process::Stdio;

    let place = Place::new();
    let mut child = place.command("run /dev/stdin --output u.npy");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(MODEL.as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(std::process::Command::new("mkfifo").arg(place.path("p.toml")).status().unwrap().success());
    let pipe = place.path("p.toml");
    let writer = std::thread::spawn(move || std::fs::write(pipe, MODEL).unwrap());
    place.works("run p.toml --output v.npy");
    writer.join().unwrap();
    assert_eq!(place.read("u.npy"), place.read("v.npy"));
}

/// Numbers that mean nothing are refused, and so are those that the run's type does not hold.
#[test]
fn numbers_of_a_model_are_checked() {
    let place = Place::new();
    for (start, reason) in [
        ("{ coin = 1, probability = 2.0 }", "the probability of a start: 2 asked"),
        ("{ coin = 1, probability = nan }", "the probability of a start: NaN asked"),
        ("{ random = 1, low = nan }", "low of a start: NaN asked"),
        ("{ random = 1, high = inf }", "high of a start: inf asked"),
        ("{ random = 1, low = 2.0, high = 1.0 }", "the range of a start"),
        ("{ corner = [2.0, 1.0, 1.0] }", "a part of a corner of a start: 2 asked"),
        ("1e39", "the value of a start in f32"),
        ("{ seeds = 1, inside = 1e39 }", "inside of a start in f32"),
    ] {
        let text = format!("axes = 2\n[fields]\nu = {{ start = {start} }}\n[[stages]]\nu = \"0.5*u\"\n");
        std::fs::write(place.path("s.toml"), text).unwrap();
        place.fails("run s.toml --size 8x8 --steps 1 --backend cpu", &[reason]);
    }
    place.works("run s.toml --size 8x8 --steps 1 --backend cpu --dtype f64");
    let text = "axes = 1\n[fields]\nu = 1.0\n[parameters]\nk = 1e39\n[[stages]]\nu = \"k*u\"\n";
    std::fs::write(place.path("k.toml"), text).unwrap();
    place
        .fails("run k.toml --size 8 --steps 1 --backend cpu", &["parameter k", "not a finite number in f32"]);
    place.works("run k.toml --size 8 --steps 1 --backend cpu --param k=2");
    let mut text = "axes = 1\n[fields]\nu = 1.0\n".to_owned();
    (0..20_000).for_each(|_| text.push_str("[[steps]]\n[[steps.stages]]\nu = \"0.5*u\"\n"));
    std::fs::write(place.path("long.toml"), text).unwrap();
    let begun = std::time::Instant::now();
    place.fails(
        "run long.toml --size 8 --steps 1 --backend cpu",
        &["steps of a cycle: 20000 asked, the limit is 1024"],
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A component of a field is named as it is everywhere.
#[test]
fn a_component_has_a_name_on_the_command_line() {
    let place = Place::new();
    let text =
        "axes = 1\n[fields]\nY = { components = 2, start = 0.25 }\n[[stages]]\n\"Y[0]\" = \"Y[0] + Y[1]\"\n";
    std::fs::write(place.path("y.toml"), text).unwrap();
    place.works("run y.toml --size 8 --steps 2 --backend cpu --input Y[1]=point --output Y[0]=o.npy --output Y[1]=p.npy");
    assert_eq!(place.read("o.npy").values.get(4), Some(2.25));
    assert_eq!(place.read("p.npy").values.get(4), Some(1.0));
}
