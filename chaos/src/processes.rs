//! What stands around a process's computing: the floating-point mode that others set, forks, and more devices than there
//! are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::start::{Ending, Start, peace as undisturbed};
use crate::trial::{Trial, short};

/// A library that sets the floating-point mode where it is loaded, before the program begins: `MODE` is that of SSE.
const SOURCE: &str = "#include <xmmintrin.h>\n\
                      __attribute__((constructor)) static void set(void) { _mm_setcsr(_mm_getcsr() | MODE); }\n";

/// Modes, and how they are compiled: denormals are 0; rounding down, up, to zero; what `-ffast-math` links.
const MODES: [&[&str]; 5] = [
    &["-DMODE=0x8040"],
    &["-DMODE=0x2000"],
    &["-DMODE=0x4000"],
    &["-DMODE=0x6000"],
    &["-DMODE=0", "-ffast-math"],
];

/// Makes the library of a mode.
fn library(folder: &Path, options: &[&str]) -> Result<PathBuf> {
    let (source, library) = (folder.join("mode.c"), folder.join("mode.so"));
    fs::write(&source, SOURCE).with_context(|| format!("cannot write {}", source.display()))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).args(options).arg(&source);
    let made = compiler.output().context("cannot start cc")?;
    if !made.status.success() {
        bail!("cc fails: {}", short(&String::from_utf8_lossy(&made.stderr)));
    }
    Ok(library)
}

/// Checks that such a library can be made here.
pub fn can_preload(bench: &Bench) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("only on x86-64".to_owned());
    }
    let folder = bench.folder.join("mode");
    let able =
        fs::create_dir_all(&folder).map_err(anyhow::Error::from).and_then(|()| library(&folder, MODES[0]));
    let _ = fs::remove_dir_all(&folder);
    able.map(drop).map_err(|error| format!("{error:#}"))
}

/// Tries a floating-point mode that a library has set before.
pub fn modes(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let options = MODES[trial.random.usize(0..MODES.len())];
    let library = library(&trial.folder, options)?;
    trial.remark(format!("cc -shared -fPIC -o {} {} mode.c", library.display(), options.join(" ")));
    let start = work.start().with("LD_PRELOAD", library.canonicalize()?);
    trial.works(&start, &place, work, peace)
}

/// The least time that a run on many devices takes too long.
const LATE: Duration = Duration::from_secs(20);

/// Tries hundreds to tens of thousands of devices on a CPU: the bits of one, or an error in time.
pub fn devices(trial: &mut Trial<'_>) -> Result<()> {
    const RUN: &str = "run heat --backend cpu --size 97x64 --input random:3 --steps 3 --output u.npy";
    let (_, peace) = trial.work();
    let (place, own) = (trial.place(), trial.folder.join("undisturbed"));
    undisturbed(&Start::of(RUN), &trial.bench.binary, &own)?;
    let whole = fs::read(own.join("u.npy"))?;
    let asked = [64, 97, 500, 2000, 5000, 20_000, 1_000_000][trial.number % 7];
    let start = Start::of(&format!("{RUN} --devices {asked}"));
    let ending = trial.run_to_end(&start, &place, peace)?;
    let time = ending.time;
    trial.hold(time < LATE, || format!("{asked} devices take {:.0} s", time.as_secs_f64()));
    let found = fs::read(place.join("u.npy")).ok();
    let expected = ending.status.success().then_some(whole);
    trial.hold(found == expected, || format!("{}, and u.npy is not what it must be", ending.status));
    Ok(())
}

/// A run, or a solve, and then processes that start others; prints `same` where their bits are those of the first, or the
/// words of the error.
const FORKS: &str = "\
import multiprocessing, sys
import numpy as np
import pyabide as ab

def run(seed):
    sim = ab.start('heat', u=np.random.default_rng(seed).random((61, 67)), backend='cpu')
    sim.run(20)
    return np.asarray(sim['u']).tobytes()

def solve(seed):
    n = 300
    A = 2.1 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return ab.cg(A, np.random.default_rng(seed).random(n), backend='cpu')[0].tobytes()

def tried(task):
    kind, seed = task
    try:
        return {'run': run, 'solve': solve}[kind](seed)
    except ab.Error as error:
        return str(error)

if __name__ == '__main__':
    kind, method = sys.argv[1:]
    tasks = [(kind, 1), (kind, 2)]
    expected = [tried(task) for task in tasks]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(tried, tasks)
    for result, known in zip(found, expected):
        print('same' if result == known else result if isinstance(result, str) else 'other bits')
";

/// Returns the interpreter of the environment in which `cargo xtask python` installs the package.
fn python(bench: &Bench) -> PathBuf {
    bench.root.join("target/python/venv/bin/python")
}

/// Checks that the package is installed.
pub fn can_import(bench: &Bench) -> Result<(), String> {
    let tried = Command::new(python(bench)).args(["-c", "import numpy, pyabide"]).output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("pyabide is not installed in target/python/venv; `cargo xtask python` does that".to_owned()),
    }
}

/// Forks after a run or a solve: the child computes the same bits, or its error names `spawn`.
pub fn forks(trial: &mut Trial<'_>) -> Result<()> {
    let (_, peace) = trial.work();
    let (place, script) = (trial.place(), trial.folder.join("forks.py"));
    fs::write(&script, FORKS)?;
    let first = ["run", "solve"][trial.number % 2];
    let method = ["fork", "spawn", "forkserver"][trial.number / 2 % 3];
    let start =
        Start { arguments: vec![OsString::from(&script), first.into(), method.into()], ..Start::default() };
    let python = python(trial.bench);
    trial.lines.push(start.line(&python, &place));
    let running = start.spawn(&python, &place, &trial.folder)?;
    let Ending { status, output, words, late, .. } = running.finish(trial.bench.deadline(peace))?;
    trial.hold(!late, || format!("{first} by {method} does not end"));
    trial.hold(late || status.success(), || format!("{status}: {}", short(&words)));
    for line in output.lines() {
        let holds = line == "same" || (method == "fork" && line.contains("spawn"));
        trial.hold(holds, || format!("{first} by {method}: {}", short(line)));
    }
    Ok(())
}
