//! `cargo xtask mpi`: processes as ranks. The communicator's tests, and the command with the feature `mpi`, whose files must be to
//! the byte those of one process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait_timeout::ChildExt as _;

use crate::cargo::{build, cargo};
use crate::setup;
use crate::summary::{Counts, counted};

/// Runs whose files are compared: a name, and the arguments without those for files.
const RUNS: [(&str, &str); 9] = [
    ("two axes", "run 2d5pt --size 61x47 --steps 23 --dtype f64 --input random:1"),
    ("three axes", "run 3d7pt --size 33x20x18 --steps 20 --dtype f32 --input random:2"),
    (
        "a periodic ring",
        "run heat --size 48x31 --steps 30 --boundary periodic --input random:3 --record rows.csv --probe u@40,7",
    ),
    ("uneven cuts", "run 2d9pt --size 23x40 --steps 17 --dtype f64 --depth 2 --input random:4"),
    ("an array of the other type", "run 3d7pt --steps 9 --input array.npy"),
    ("two fields", "run gray-scott --size 64x48 --steps 60"),
    (
        "fields on nodes and faces",
        "run cloverleaf --size 101x37 --dtype f32 --steps 12 --output xvel0=x.npy --output vol_flux_y=y.npy",
    ),
    ("reductions", "run cloverleaf --size 96x40 --dtype f64 --steps 40 --record rows.csv"),
    ("a condition", "run cloverleaf --size 96x40 --dtype f64 --steps 400 --until time>=0.5 --every time=0.1"),
];

/// Solves whose files are compared likewise.
const SOLVES: [(&str, &str); 4] = [
    ("a system", "solve --matrix laplacian2d:71x49 --rhs random:3"),
    ("a system of uneven rows", "solve --matrix trefethen:5000 --preconditioner jacobi --rhs random:4"),
    (
        "an operator",
        "solve --operator laplacian3d --size 23x19x17 --dtype f32 --tolerance 1e-5 --method cg-pipelined",
    ),
    ("a system of two types", "solve --matrix laplacian2d:71x49 --dtype mixed --method bicgstab"),
];

/// The file that a run reads, of the other type.
const INPUT: &str = "array.npy";

/// How long anything that ends may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How long other processes may go on after one was killed.
const AFTER_A_KILL: Duration = Duration::from_secs(10);

/// Runs the step alone.
pub fn run() -> Result<bool> {
    let mut counts = Counts::default();
    let ok = check(&mut counts)?;
    counts.skipped.iter().for_each(|skipped| println!("skipped: {skipped}"));
    println!("\n{} passed, {} failed", counts.passed, counts.failed);
    Ok(ok)
}

/// Installs what is missing, builds with the feature and runs everything with two and with four processes.
pub fn check(counts: &mut Counts) -> Result<bool> {
    if !cfg!(target_os = "linux") {
        counts.skipped.push("MPI: its tests are for Linux".to_owned());
        return Ok(true);
    }
    setup::mpi()?;
    let of = |kind: &[&str]| build(&[kind, &["--features", "mpi"]].concat());
    let tests = of(&["test", "--package", "abide-ranks", "--test", "mpi", "--no-run"])?;
    let Some(communicator) = tests.iter().find(|program| program.target == "mpi") else {
        bail!("no test was built")
    };
    let units = ["test", "--package", "abide-ranks", "--lib", "--features", "mpi"];
    let mut ok = counted(&mut cargo(&units), counts)?;
    for ranks in [2, 4] {
        ok &= counted(&mut launched(ranks, &communicator.path), counts)?;
    }
    let programs = of(&["build", "--package", "abide-cli", "--bin", "abide"])?;
    let Some(abide) = programs.iter().find(|program| program.target == "abide") else {
        bail!("no command was built")
    };
    let gpus = gpus(&abide.path)?;
    if gpus < 2 {
        counts.skipped.push(format!("MPI: processes with a GPU each: {gpus} CUDA devices are there"));
    }
    let mut count = |name: &str, outcome: Result<()>| {
        let fault = outcome.err().map(|error| format!("{error:#}"));
        println!("{name}: {}", fault.as_deref().unwrap_or("ok"));
        *(if fault.is_none() { &mut counts.passed } else { &mut counts.failed }) += 1;
        ok &= fault.is_none();
    };
    for (name, arguments) in RUNS {
        count(name, same_files(&abide.path, arguments, "cpu", &[1, 2, 4]));
    }
    for (name, arguments) in SOLVES {
        count(name, same_files(&abide.path, arguments, "cpu", &[1, 2, 4]));
    }
    if gpus >= 2 {
        for (name, arguments) in RUNS.iter().chain(&SOLVES) {
            count(&format!("{name}, on GPUs"), same_files(&abide.path, arguments, "cuda", &[1, 2]));
        }
    }
    count("a checkpoint that others go on from", resumed(&abide.path));
    count("one process without a launcher", alone(&abide.path));
    count("an error told once", told_once(&abide.path));
    count("a process whose part cannot be written", unwritten(&abide.path));
    count("a checkpoint that is spoilt", spoilt(&abide.path));
    count("a process that is killed", killed(&abide.path));
    Ok(ok)
}

/// Returns the command that starts a program several times.
fn launched(processes: usize, program: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-np", &processes.to_string()]).arg(program);
    // Open MPI asks twice whether root may.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// Returns the command on one process or several.
fn ranks(abide: &Path, processes: usize) -> Command {
    match processes {
        1 => Command::new(abide),
        _ => launched(processes, abide),
    }
}

/// What a command wrote, and its exit status.
struct Ended {
    status: Option<i32>,
    out: String,
    err: String,
}

/// Runs a command in a folder. Its output is kept in files, so that it never waits for a reader.
fn ended(mut command: Command, folder: &Path) -> Result<Ended> {
    let paths = ["out.txt", "err.txt"].map(|name| folder.join(name));
    let [out, err] = paths.each_ref().map(std::fs::File::create);
    command.current_dir(folder).stdin(Stdio::null()).stdout(out?).stderr(err?);
    let mut child = command.spawn().context("cannot start it")?;
    let Some(status) = child.wait_timeout(LIMIT)? else {
        child.kill()?;
        bail!("it did not end within {} s", LIMIT.as_secs());
    };
    let [out, err] = paths.map(std::fs::read_to_string);
    Ok(Ended { status: status.code(), out: out?, err: err? })
}

/// Runs a command that must succeed and must report once, with this word.
fn reported(command: Command, folder: &Path, reports_by: &str) -> Result<Ended> {
    let ended = ended(command, folder)?;
    let reports = ended.out.matches(reports_by).count();
    if ended.status != Some(0) || reports != 1 {
        bail!("status {:?}, {reports} reports: {}{}", ended.status, ended.out, ended.err);
    }
    Ok(ended)
}

/// Runs a run that must succeed and must report once.
fn succeeded(command: Command, folder: &Path) -> Result<Ended> {
    reported(command, folder, "Cells/s")
}

fn words(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split(' ')
}

/// Returns the number of CUDA devices that the command lists.
fn gpus(abide: &Path) -> Result<usize> {
    let output =
        Command::new(abide).args(["devices", "--json"]).output().context("cannot list the devices")?;
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).context("the list is no JSON")?;
    let cuda = all.as_array().into_iter().flatten().find(|entry| entry["backend"] == "cuda");
    Ok(cuda.and_then(|entry| entry["devices"].as_array()).map_or(0, Vec::len))
}

/// Compares results, checkpoints and, where a run has any, records and frames of some numbers of processes, one first.
fn same_files(abide: &Path, arguments: &str, backend: &str, numbers: &[usize]) -> Result<()> {
    let is_solve = arguments.starts_with("solve");
    let (reports_by, least) = if is_solve { ("\nconverged ", 3) } else { ("Cells/s", 4) };
    let mut files: Vec<Vec<(String, Vec<u8>)>> = Vec::new();
    for &processes in numbers {
        let folder = tempfile::tempdir()?;
        if arguments.contains(INPUT) {
            let mut command = ranks(abide, 1);
            command.args(words(
                "run 3d7pt --size 26x9x7 --steps 0 --dtype f64 --input random:5 --backend cpu --output",
            ));
            command.arg(INPUT);
            ended(command, folder.path())?;
        }
        let mut command = ranks(abide, processes);
        command.args(words(arguments)).args(["--backend", backend, "--output", "all.npy"]);
        match is_solve {
            true => command.args(["--history", "h.csv", "--plot", "h.svg"]),
            false => command.args(["--checkpoint", "c.npz", "--frames", "frame_%03d.npy"]),
        };
        if !is_solve && !arguments.contains("--every") {
            command.args(["--every", "8"]);
        }
        let ended = reported(command, folder.path(), reports_by)?;
        if processes > 1 && !ended.out.contains("device 1") && !ended.out.contains("rank 1") {
            bail!("the report of {processes} processes tells nothing of the second: {}", ended.out);
        }
        let mut all = Vec::new();
        for file in std::fs::read_dir(folder.path())? {
            let (name, path) =
                file.map(|file| (file.file_name().to_string_lossy().into_owned(), file.path()))?;
            if !name.ends_with(".txt") {
                all.push((name, std::fs::read(path)?));
            }
        }
        all.sort();
        files.push(all);
    }
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if files[0].len() < least {
        bail!("one process wrote {:?} alone", names(&files[0]));
    }
    for (all, processes) in files[1..].iter().zip(&numbers[1..]) {
        if names(all) != names(&files[0]) {
            bail!("{processes} processes wrote {:?} in place of {:?}", names(all), names(&files[0]));
        }
        if let Some(((name, _), _)) = all.iter().zip(&files[0]).find(|(own, one)| own != one) {
            bail!("{name} of {processes} processes differs from that of one");
        }
    }
    Ok(())
}

/// Goes on from a checkpoint of four processes with two, and with one.
fn resumed(abide: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |processes: usize, arguments: &str| {
        let mut command = ranks(abide, processes);
        command.args(words("run gray-scott --size 48x40 --backend cpu")).args(words(arguments));
        succeeded(command, folder.path())
    };
    run(1, "--steps 50 --output v=one.npy")?;
    run(4, "--steps 20 --checkpoint c.npz --every 9")?;
    run(2, "--steps 20 --resume c.npz --checkpoint c.npz --every 9")?;
    run(1, "--steps 10 --resume c.npz --output v=last.npy")?;
    match std::fs::read(folder.path().join("one.npy"))? == std::fs::read(folder.path().join("last.npy"))? {
        true => Ok(()),
        false => bail!("the result differs from that of one process throughout"),
    }
}

fn alone(abide: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = ranks(abide, 1);
    command.args(words("run heat --size 20x20 --steps 5 --backend cpu --json"));
    let ended = ended(command, folder.path())?;
    let report: serde_json::Value = serde_json::from_str(&ended.out).context("its report is no JSON")?;
    match report["ranks"].as_array().is_none_or(Vec::is_empty) {
        true => Ok(()),
        false => bail!("it has ranks: {}", report["ranks"]),
    }
}

/// Errors of all processes, of none but the first, and of the arguments.
fn told_once(abide: &Path) -> Result<()> {
    for (arguments, status, reason) in [
        ("run heat --size 20x20 --steps 5 --backend cpu --devices 3", 1, "2 processes"),
        ("run heat --size 20x20 --steps 5 --backend cpu --no-such-thing", 2, "--no-such-thing"),
        ("run heat --size 1x20 --steps 5 --backend cpu", 1, "of 1 in all"),
        ("run heat --size 20x20 --steps 5 --backend wgpu", 1, "it runs in one"),
        (
            "run heat --size 20x20 --steps 9000000 --backend cpu --record /dev/full --probe u@1,1",
            1,
            "/dev/full",
        ),
        ("run heat --size 20x20 --steps 9 --backend cpu --output none/u.npy", 1, "none/u.npy"),
        ("run heat --steps 9 --backend cpu --input none.npy", 1, "none.npy"),
        ("run heat --size 20x20 --steps 9 --backend cpu --every 4 --checkpoint /dev/full", 1, "/dev/full"),
    ] {
        let folder = tempfile::tempdir()?;
        let mut command = ranks(abide, 2);
        command.args(words(arguments));
        let ended = ended(command, folder.path())?;
        let found = ended.err.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
        if ended.status != Some(status) || found.len() != 1 || !found[0].contains(reason) {
            bail!("{arguments}: status {:?}, {found:?}: {}", ended.status, ended.err);
        }
    }
    Ok(())
}

/// Changes a bit of a checkpoint in the planes of one process: several processes report what a single one reports.
fn spoilt(abide: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |processes: usize, arguments: &str| {
        let mut command = ranks(abide, processes);
        command.args(words("run heat --size 48x40 --backend cpu")).args(words(arguments));
        ended(command, folder.path())
    };
    run(2, "--steps 20 --checkpoint c.npz --every 9")?;
    let path = folder.path().join("c.npz");
    let mut bytes = std::fs::read(&path)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes)?;
    let mut found = Vec::new();
    for processes in [1, 2, 4] {
        let ended = run(processes, "--steps 20 --resume c.npz")?;
        let errors = ended.err.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned);
        found.push((ended.status, errors.collect::<Vec<_>>()));
    }
    match found[0].0 == Some(1) && found[0].1.len() == 1 && found.iter().all(|own| *own == found[0]) {
        true => Ok(()),
        false => bail!("{found:?}"),
    }
}

/// Lets one of four processes write no further into files than its own planes begin.
fn unwritten(abide: &Path) -> Result<()> {
    const LIMITED: &str =
        "if [ \"$OMPI_COMM_WORLD_RANK\" = 2 ]; then trap '' XFSZ; ulimit -f 1; fi; exec \"$0\" \"$@\"";
    let folder = tempfile::tempdir()?;
    let mut command = launched(4, Path::new("sh"));
    command.args(["-c", LIMITED]).arg(abide);
    command.args(words(
        "run heat --size 100x80 --steps 30 --backend cpu --every 9 --output u.npy --checkpoint c.npz",
    ));
    let ended = ended(command, folder.path())?;
    let found = |start: &str| ended.err.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    let (errors, warnings) = (found("error: "), found("warning: "));
    let is_named = |line: &&str, file: &str| line.contains(file) && line.contains("rank 2: writing failed");
    // On the way one warning, in the end an error for each file.
    let is_right = ended.status == Some(1)
        && (errors.len(), warnings.len()) == (2, 1)
        && is_named(&warnings[0], "c.npz")
        && ["u.npy", "c.npz"].iter().all(|file| errors.iter().any(|line| is_named(line, file)));
    let left: Vec<_> = std::fs::read_dir(folder.path())?.flatten().map(|file| file.file_name()).collect();
    match is_right && left.len() == 2 {
        true => Ok(()),
        false => bail!("status {:?}, {left:?} there: {}", ended.status, ended.err),
    }
}

/// Kills one of four processes in the midst of a run.
fn killed(abide: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut command = ranks(abide, 4);
    command.args(words("run heat --size 400x400 --steps 900000000 --backend cpu"));
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start it")?;
    let begun = Instant::now();
    let started = loop {
        let all = children(child.id());
        if all.len() == 4 {
            break all;
        }
        if begun.elapsed() > LIMIT {
            child.kill()?;
            bail!("four processes did not start");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    std::thread::sleep(Duration::from_secs(3));
    let kill = Command::new("kill").args(["-KILL", &started[2].to_string()]).status()?;
    let killed = Instant::now();
    let Some(status) = child.wait_timeout(AFTER_A_KILL)? else {
        child.kill()?;
        bail!("the launcher did not end within {} s", AFTER_A_KILL.as_secs());
    };
    // The launcher does not wait for those that it ends.
    let is_there = |pid: &u32| stat(*pid).is_some_and(|stat| stat[0] != "Z");
    let left = || started.iter().filter(|&pid| is_there(pid)).collect::<Vec<_>>();
    while !left().is_empty() && killed.elapsed() < AFTER_A_KILL {
        std::thread::sleep(Duration::from_millis(50));
    }
    if !kill.success() || status.success() || !left().is_empty() {
        bail!("status {status}, still there: {:?}", left());
    }
    Ok(())
}

/// Returns the processes that a process started.
fn children(of: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| stat(pid).is_some_and(|stat| stat[1] == of.to_string())).collect()
}

/// Returns a process's state, `Z` where it has ended, and its parent; none where nothing is left of it.
fn stat(pid: u32) -> Option<[String; 2]> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some([words.next()?, words.next()?])
}
