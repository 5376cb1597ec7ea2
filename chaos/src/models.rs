//! Model files of others: what their table `run` and their names may do to the machine of who runs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::start::Start;
use crate::trial::{Trial, short};

/// A small model, before the lines that a case adds.
const MODEL: &str = "axes = 2\nboundary = \"periodic\"\n";

/// Fields and stages, behind the lines that a case adds.
const STAGES: &str = "[[stages]]\nu = \"0.25*(u[-1,0] + u[0,-1] + u[0,1] + u[1,0])\"\n";

/// What stands in files that a model file must not touch.
const TREASURE: &str = "what was there before\n";

/// A model file: its lines at the top, its fields, and the lines of its table `run`. `OUTSIDE` stands for the path of a
/// folder beside the one in which the command runs, `link` for a link to that folder, `own` for a link to a file there.
struct Case {
    top: &'static str,
    fields: &'static str,
    run: &'static str,
}

const fn run(run: &'static str) -> Case {
    Case { top: "", fields: "u = 1.0", run }
}

/// Every option that writes a file, each with a path that leads elsewhere or to a file that is there; and names with
/// escape sequences, line ends and path parts.
const CASES: &[Case] = &[
    run("output = \"../outside/u.npy\""),
    run("output = \"OUTSIDE/u.npy\""),
    run("output = \"link/u.npy\""),
    run("output = \"own.npy\""),
    run("output = \"kept.npy\""),
    run("output = { u = \"../outside/kept.npy\" }"),
    run("output = [\"u=a/../../outside/u.png\", \"link/kept.vti\"]"),
    run("frames = \"../outside/f%03d.npy\"\nevery = 1"),
    run("frames = \"OUTSIDE/f%03d.png\"\nevery = 1"),
    run("frames = \"link/f%03d.vti\"\nevery = 1"),
    run("checkpoint = \"../outside/c.npz\""),
    run("checkpoint = \"OUTSIDE/kept\""),
    run("checkpoint = \"link/c.npz\""),
    run("checkpoint = \"kept.npz\""),
    run("record = \"../outside/r.csv\"\nprobe = \"u@1,1\""),
    run("record = \"OUTSIDE/kept\"\nprobe = \"u@1,1\""),
    run("record = \"own.npy\"\nprobe = \"u@1,1\""),
    run("write-config = \"../outside/m.toml\""),
    run("write-config = \"OUTSIDE/kept\""),
    run("write-config = \"link/kept\""),
    run("write-config = \"kept.npy\""),
    run("write-config = \"m.toml\""),
    Case { top: "name = \"\\u001b]0;title\\u0007\\u001b[2J\"", ..run("output = \"u.npy\"") },
    Case { top: "name = \"../../outside/x\"", ..run("checkpoint = \"c.npz\"") },
    Case { top: "name = \"two\\nlines\"", ..run("output = \"u.npy\"") },
    Case { fields: "u = 1.0\n\"\\u001b[31mv\" = 2.0", ..run("output = \"u.npy\"") },
    Case { fields: "u = 1.0\n\"../../outside/v\" = 2.0", ..run("checkpoint = \"c.npz\"") },
    run("output = \"\\u001b[2J.npy\""),
    run("\"\\u001b[2J\" = \"x\""),
    run("boundary = \"\\u001b[2J\""),
    run("input = \"\\u001b[2J.npy\""),
];

/// Runs a model file that its user knows nothing of. Nothing outside of the folder in which the command runs may change,
/// no file may be replaced, and no control sequence may come to the terminal.
pub fn models(trial: &mut Trial<'_>) -> Result<()> {
    let (_, peace) = trial.work();
    let (place, outside) = (trial.place(), trial.folder.join("outside"));
    fs::create_dir_all(&outside)?;
    let put =
        |path: &Path| fs::write(path, TREASURE).with_context(|| format!("cannot write {}", path.display()));
    put(&outside.join("kept"))?;
    put(&outside.join("kept.npy"))?;
    put(&outside.join("own"))?;
    for name in ["kept.npy", "kept.npz"] {
        put(&place.join(name))?;
    }
    symlink(&outside, place.join("link"))?;
    symlink(outside.join("own"), place.join("own.npy"))?;
    let Case { top, fields, run } = CASES[trial.number % CASES.len()];
    let run = run.replace("OUTSIDE", &outside.canonicalize()?.display().to_string());
    let model =
        format!("{top}\n{MODEL}[fields]\n{fields}\n{STAGES}[run]\nsteps = 2\nsize = \"8x8\"\n{run}\n");
    fs::write(place.join("m.toml"), &model)?;
    trial.remark(format!("m.toml: {}", model.replace('\n', "; ")));

    let ending = trial.run_to_end(&Start::of("run m.toml --backend cpu"), &place, peace)?;
    let is_odd = |letter: &char| letter.is_control() && !matches!(letter, '\n' | '\t');
    for words in [&ending.output, &ending.words] {
        let odd = words.chars().find(is_odd);
        trial.hold(odd.is_none(), || {
            format!("its words hold {odd:?}: {}", short(&words.escape_debug().to_string()))
        });
    }
    let mut there: Vec<String> = Vec::new();
    for entry in fs::read_dir(&outside)? {
        there.push(entry?.file_name().to_string_lossy().into_owned());
    }
    there.sort();
    trial.hold(there == ["kept", "kept.npy", "own"], || format!("it writes outside: {there:?}"));
    let kept = ["kept", "kept.npy", "own"].map(|name| outside.join(name));
    for path in kept.into_iter().chain(["kept.npy", "kept.npz"].map(|name| place.join(name))) {
        let same = fs::read_to_string(&path).is_ok_and(|text| text == TREASURE);
        trial.hold(same, || format!("{} is replaced", path.display()));
    }
    let same = fs::read_to_string(place.join("m.toml")).is_ok_and(|text| text == model);
    trial.hold(same, || "the model file is replaced".to_owned());
    Ok(())
}
