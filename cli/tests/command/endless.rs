//! Files that do not end, nest without bound or stand for more than they hold, for every option that reads a file: each is an
//! error in seconds, in little memory.
#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use super::{Place, words};

/// The address space of the command in KiB: 64 MiB beside what its code, its stacks and its threads take.
const ADDRESSES: u32 = 64 * 1024;

/// Linux' `O_NONBLOCK`.
const NONBLOCKING: i32 = 0o4000;

/// The most seconds of a command, of unoptimised code on a busy machine.
const SECONDS: u64 = 60;

/// Every option that reads a file, as a command line, and the extensions of its files.
const READERS: &[(&str, &[&str])] = &[
    ("run FILE --steps 1 --backend cpu", &["toml"]),
    ("plan FILE --size 8x8 --device v100", &["toml"]),
    ("run heat --input FILE --size 8x8 --steps 1 --backend cpu", &["npy", "png", "jpg"]),
    ("run heat --input FILE --steps 1 --backend cpu", &["npy", "png", "jpg"]),
    ("run heat --resume FILE --steps 1 --backend cpu", &["npz"]),
    ("solve FILE --backend cpu", &["mtx", "mtx.gz"]),
    ("solve --matrix laplacian2d:5x5 --rhs FILE --backend cpu", &["mtx", "mtx.gz", "npy"]),
    ("gas --states FILE --output o.csv --backend cpu", &["csv"]),
    ("gas --mixture CH4 --T 300 --p 1e5 --backend cpu --species FILE", &["csv", "yaml"]),
    ("gas --mixture CH4 --T 300 --p 1e5 --backend cpu --kij FILE", &["csv"]),
    ("bench roofline FILE --output r.svg", &["csv"]),
    ("bench search FILE", &["json"]),
];

/// Files of an extension that begin as they should, and then repeat some bytes for ever.
const STREAMS: &[(&str, &[u8], &[u8])] = &[
    ("toml", b"", b"\n"),
    ("toml", b"", b"#"),
    ("toml", b"axes = [", b"["),
    ("csv", b"", b"\n"),
    ("csv", b"", b"#\n"),
    ("csv", b"", b"a,"),
    ("csv", b"T,p,x_CH4\n", b"\n"),
    ("csv", b"T,p,x_CH4\n", b"#\n"),
    ("csv", b"T,p,x_CH4\n300,1e5,", b"1"),
    ("csv", b"T,p,x_CH4\n\"", b"300,1e5,1\n"),
    ("csv", b"i,j,kij\n", b"CH4,CO2,0.1\n"),
    ("yaml", b"", b"- "),
    ("yaml", b"", b"? "),
    ("yaml", b"", b"[\n"),
    ("yaml", b"", b"#\n"),
    ("yaml", b"species:\n", b"- 1\n"),
    ("json", b"", b"["),
    ("json", b"", b" "),
    ("mtx", b"", b"\n"),
    ("mtx", b"%%MatrixMarket matrix coordinate real general\n", b"%\n"),
    ("mtx", b"%%MatrixMarket matrix coordinate real general\n", b" \n"),
    ("mtx", b"%%MatrixMarket matrix coordinate real general\n", b"1"),
    ("mtx", b"%%MatrixMarket matrix array real general\n", b"%\n"),
    ("mtx", b"%%MatrixMarket matrix coordinate real general\n99999999 99999999 999999999999\n", b"1 1 1\n"),
    ("mtx", b"%%MatrixMarket matrix array real general\n25 1\n", b"1\n"),
    ("npy", b"\x93NUMPY\x01\x00", b" "),
    (
        "npy",
        b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (8, 8), }          \n",
        b"\0",
    ),
    (
        "npy",
        b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (999999, 99999), }  \n",
        b"\0",
    ),
    ("png", b"\x89PNG\r\n\x1a\n", b"\0"),
    ("jpg", b"\xff\xd8", b"\xff\xc0"),
    ("npz", b"PK\x03\x04", b"PK\x01\x02"),
];

impl Place {
    /// Runs the command in a small address space for so long at most.
    fn small(&self, line: &str, limit: u32) -> Output {
        let script = format!("ulimit -v {limit}; exec timeout {SECONDS} \"$0\" {line}");
        let mut shell = Command::new("sh");
        shell.env("RAYON_NUM_THREADS", "2").env("ABIDE_CACHE", self.0.path().join("cache"));
        shell.current_dir(self.0.path()).args(["-c", &script, env!("CARGO_BIN_EXE_abide")]).output().unwrap()
    }

    /// Returns the least address space in KiB in which the command computes something, and some for what lies
    /// elsewhere each time, with [`ADDRESSES`] more.
    fn room(&self) -> u32 {
        let works =
            |limit: u32| self.small("run heat --size 8x8 --steps 1 --backend cpu", limit).status.success();
        let (mut low, mut high) = (0, 1 << 20);
        assert!(works(high), "the command does not run in a GiB");
        while high - low > 4096 {
            let middle = u32::midpoint(low, high);
            if works(middle) { high = middle } else { low = middle }
        }
        high + 4096 + ADDRESSES
    }

    /// Checks that the command refuses a file in words, in little time and memory.
    fn ends(&self, line: &str, what: &str, room: u32) {
        let begun = Instant::now();
        let output = self.small(line, room);
        let (reported, time) = (words(&output), begun.elapsed());
        let start: String = reported.chars().take(600).collect();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "abide {line}: {what}: {}: {start}",
            output.status
        );
        assert!(
            reported.starts_with("error: ") && !reported.contains("panicked"),
            "abide {line}: {what}: {start}"
        );
        assert!(reported.len() < 4000, "abide {line}: {what}: {} bytes of words: {start}", reported.len());
        assert!(time < Duration::from_secs(SECONDS), "abide {line}: {what}: {time:?}");
    }
}

/// Fills a pipe with what begins a file and then with the same bytes for ever, until nobody reads it.
fn pour(pipe: &Path, head: &[u8], body: &[u8]) {
    let Ok(mut pipe) = OpenOptions::new().write(true).open(pipe) else { return };
    let many = body.repeat((1 << 16) / body.len());
    let mut go_on = pipe.write_all(head);
    while go_on.is_ok() {
        go_on = pipe.write_all(&many);
    }
}

#[test]
fn devices_without_an_end_are_errors() {
    let place = Place::new();
    let room = place.room();
    for (line, extensions) in READERS {
        for extension in *extensions {
            for source in ["zero", "urandom"] {
                let name = format!("{source}.{extension}");
                if !place.path(&name).exists() {
                    symlink(Path::new("/dev").join(source), place.path(&name)).unwrap();
                }
                place.ends(&line.replace("FILE", &name), "an endless device", room);
            }
        }
    }
}

#[test]
fn pipes_without_an_end_are_errors() {
    let place = Place::new();
    let room = place.room();
    for (line, extensions) in READERS {
        for (extension, head, body) in STREAMS.iter().filter(|(extension, ..)| extensions.contains(extension))
        {
            let name = format!("pipe.{extension}");
            let pipe = place.path(&name);
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            thread::scope(|threads| {
                threads.spawn(|| pour(&pipe, head, body));
                let what = format!("{} and endless {}", head.escape_ascii(), body.escape_ascii());
                place.ends(&line.replace("FILE", &name), &what, room);
                // A command that never opened the pipe leaves the other side waiting.
                drop(OpenOptions::new().read(true).custom_flags(NONBLOCKING).open(&pipe));
            });
            let _ = fs::remove_file(&pipe);
        }
    }
}

/// Returns a model file with these lines instead of its stage.
fn model(stage: &str) -> String {
    format!("axes = 2\nboundary = \"periodic\"\n[fields]\nu = 1.0\n[[stages]]\n{stage}\n")
}

/// Small files that stand for much, or nest deeply.
#[test]
fn files_that_stand_for_much_are_errors() {
    let place = Place::new();
    let room = place.room();
    let gas = "gas --mixture CH4 --T 300 --p 1e5 --backend cpu --species FILE";
    let run = "run FILE --size 8x8 --steps 1 --backend cpu";
    let bombs: Vec<(&str, &str, String, &str)> = vec![
        (
            gas,
            "aliases.yaml",
            (0..27).fold("a: &a0 [x, x]\n".to_owned(), |all, n| {
                format!("{all}a{}: &a{} [*a{n}, *a{n}]\n", n + 1, n + 1)
            }),
            "1048576 nodes",
        ),
        (gas, "keys.yaml", "? ".repeat(10_000), "64 nodes within nodes"),
        (gas, "lists.yaml", "- ".repeat(500_000), "64 nodes within nodes"),
        (gas, "brackets.yaml", "[".repeat(500_000), "64 nodes within nodes"),
        (gas, "braces.yaml", "{a: ".repeat(250_000), "64 nodes within nodes"),
        (gas, "documents.yaml", "--- a\n".repeat(100_000), "documents"),
        (run, "arrays.toml", format!("axes = {}", "[".repeat(500_000)), "arrays.toml"),
        (run, "tables.toml", format!("axes = {}", "{a = ".repeat(150_000)), "tables.toml"),
        (run, "keys.toml", format!("{}a = 1", "a.".repeat(500_000)), "keys.toml"),
        (run, "header.toml", format!("[{}a]\n", "a.".repeat(500_000)), "header.toml"),
        (
            run,
            "headers.toml",
            (0..400).map(|n| format!("[{}a]\n", "a.".repeat(n))).collect::<String>(),
            "headers.toml",
        ),
        (run, "round.toml", model(&format!("u = \"{}u\"", "(".repeat(500_000))), "brackets within brackets"),
        (
            run,
            "calls.toml",
            model(&format!("u = \"{}u\"", "abs(".repeat(250_000))),
            "brackets within brackets",
        ),
        (run, "square.toml", model(&format!("u = \"{}u\"", "[".repeat(500_000))), "square.toml"),
        (run, "signs.toml", model(&format!("u = \"{}u\"", "-".repeat(500_000))), "signs"),
        (run, "powers.toml", model(&format!("u = \"u{}\"", "**2".repeat(250_000))), "powers"),
    ];
    for (line, name, text, words_of_limit) in &bombs {
        fs::write(place.path(name), text).unwrap();
        place.ends(&line.replace("FILE", name), name, room);
        let reported = words(&place.command(&line.replace("FILE", name)).output().unwrap());
        assert!(
            reported.contains(words_of_limit),
            "{name}: {} does not say {words_of_limit}",
            &reported[..reported.len().min(400)]
        );
    }
}

/// Large model files of many equal parts end: they run, or are refused by a limit.
#[test]
fn models_of_many_parts_end() {
    let place = Place::new();
    let many = |part: &str, count: usize| part.repeat(count);
    let models = [
        ("terms.toml", model(&format!("u = \"u{}\"", many(" + u", 20_000)))),
        (
            "lines.toml",
            model(&(0..20_000).map(|n| format!("a{n} = \"u\"\n")).collect::<String>()) + "u = \"u\"\n",
        ),
        ("stages.toml", model("u = \"u\"") + &many("[[stages]]\nu = \"u + 1\"\n", 20_000)),
        (
            "steps.toml",
            "axes = 2\n[fields]\nu = 1.0\n".to_owned()
                + &many("[[steps]]\n[[steps.stages]]\nu = \"u + 1\"\n", 20_000),
        ),
        (
            "fields.toml",
            "axes = 2\n[fields]\n".to_owned()
                + &(0..20_000).map(|n| format!("f{n} = 1\n")).collect::<String>()
                + "[[stages]]\nf0 = \"f1\"\n",
        ),
    ];
    for (name, text) in &models {
        fs::write(place.path(name), text).unwrap();
        let begun = Instant::now();
        let output = place.small(&format!("run {name} --size 8x8 --steps 2 --backend cpu"), 1 << 22);
        let reported = words(&output);
        let start: String = reported.chars().take(400).collect();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{name}: {}: {start}", output.status);
        assert!(output.status.success() || reported.starts_with("error: "), "{name}: {start}");
        assert!(begun.elapsed() < Duration::from_secs(SECONDS), "{name}: {:?}", begun.elapsed());
        println!("{name}: {:?} {}: {start}", begun.elapsed(), output.status);
    }
}
