//! The works that the command is given under hostile circumstances, and their undisturbed results.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::checkpoint;
use crate::start::{Start, peace};

/// The name of every checkpoint.
pub const CHECKPOINT: &str = "c.npz";

/// A run or a solve, small enough to be repeated thousands of times and long enough to be hit in its middle.
pub struct Work {
    pub name: &'static str,
    /// The run or the solve, and its options.
    pub head: &'static str,
    /// The arguments that a run going on from a checkpoint is not given again.
    pub problem: &'static str,
    /// The outputs; the files' names follow from them.
    pub outputs: &'static str,
    /// Steps of a run; 0 for a solve, which has no checkpoints.
    pub steps: u64,
    /// Steps between frames and between checkpoints.
    pub every: u64,
}

/// The works, of several models, ways to run, types and formats.
pub const WORKS: &[Work] = &[
    Work {
        name: "heat",
        head: "run heat --backend cpu",
        problem: "--size 61x67 --input random:3",
        outputs: "--output u.npy --output u.png",
        steps: 6000,
        every: 150,
    },
    Work {
        name: "gray-scott",
        head: "run gray-scott --backend cpu --execution stepwise",
        problem: "--size 37x41 --dtype f64 --boundary y=periodic,x=mirror --param feed=0.04 --input random:5",
        outputs: "--output u=u.npy --output v=v.npy --output all.vti --frames v=f%03d.npy",
        steps: 3000,
        every: 100,
    },
    Work {
        name: "movie",
        head: "run wave --backend cpu",
        problem: "--size 33x29 --input gaussian",
        outputs: "--output w.gif --output w.npy --frames p%03d.png --range -1:1",
        steps: 2000,
        every: 100,
    },
    Work {
        name: "box",
        head: "run 3d7pt --backend cpu --execution persistent --depth 2",
        problem: "--size 17x19x23 --dtype f64 --input random:7",
        outputs: "--output u.npy --output u.vti",
        steps: 1200,
        every: 60,
    },
    Work {
        name: "line",
        head: "run heat --backend cpu",
        problem: "--size 4099 --dtype f64 --boundary periodic --input random:11",
        outputs: "--output u.npy",
        steps: 8000,
        every: 400,
    },
    Work {
        name: "life",
        head: "run life --backend cpu --execution streaming --depth 5",
        problem: "--size 83x71 --boundary periodic --input random:13",
        outputs: "--output u.npy --frames g%d.vti",
        steps: 2000,
        every: 125,
    },
    Work {
        name: "cg",
        head: "solve --backend cpu",
        problem: "--matrix laplacian2d:150x151 --rhs random:17 --method cg",
        outputs: "--output x.npy --history h.csv --plot h.svg",
        steps: 0,
        every: 0,
    },
    Work {
        name: "gmres",
        head: "solve --backend cpu",
        problem: "--operator laplacian3d --size 20x21x22 --dtype mixed --method gmres:20 --preconditioner jacobi",
        outputs: "--output x.mtx --history h.csv",
        steps: 0,
        every: 0,
    },
];

impl Work {
    /// Returns whether the work has checkpoints.
    pub fn goes_on(&self) -> bool {
        self.steps > 0
    }

    /// Returns the arguments of the whole work.
    pub fn start(&self) -> Start {
        let mut words = format!("{} {} {}", self.head, self.problem, self.outputs);
        if self.goes_on() {
            words += &format!(" --steps {} --every {} --checkpoint {CHECKPOINT}", self.steps, self.every);
        }
        Start::of(&words)
    }

    /// Returns the arguments of the rest after `done` steps; the checkpoint is replaced on the way.
    pub fn rest(&self, done: u64) -> Start {
        let left = self.steps.saturating_sub(done);
        Start::of(&format!(
            "{} {} --steps {left} --every {} --checkpoint {CHECKPOINT} --resume {CHECKPOINT}",
            self.head, self.outputs, self.every
        ))
    }

    /// Returns the arguments that write a checkpoint's fields and take no step.
    pub fn show(&self) -> Start {
        let finals = self.pairs().filter(|(option, file)| *option == "--output" && !file.ends_with(".gif"));
        let outputs: Vec<String> = finals.map(|(option, file)| format!("{option} {file}")).collect();
        Start::of(&format!("{} {} --steps 0 --resume {CHECKPOINT}", self.head, outputs.join(" ")))
    }

    /// Returns the files that the work leaves at its end, in the order in which they are named.
    pub fn finals(&self) -> impl Iterator<Item = &'static str> {
        let written = ["--output", "--history", "--plot"];
        let finals = self.pairs().filter(move |(option, _)| written.contains(option));
        finals.map(|(_, file)| file_name(file))
    }

    /// Returns all files that the work may write, frames and checkpoint included.
    pub fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.finals().map(str::to_owned).collect();
        if self.goes_on() {
            files.push(CHECKPOINT.to_owned());
            let frames = self.pairs().filter(|(option, _)| *option == "--frames");
            for (_, pattern) in frames {
                let pattern = file_name(pattern);
                files.extend((0..=self.steps / self.every).map(|n| frame(pattern, n)));
                if let Some((before, _)) = pattern.split_once('%').filter(|_| pattern.ends_with(".vti")) {
                    files.push(format!("{before}.pvd"));
                }
            }
        }
        files
    }

    fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let words: Vec<&'static str> = self.outputs.split_whitespace().collect();
        (0..words.len() / 2).map(move |n| (words[2 * n], words[2 * n + 1]))
    }
}

/// Returns the file of `v=f.npy`.
fn file_name(text: &'static str) -> &'static str {
    text.split_once('=').map_or(text, |(_, file)| file)
}

/// Returns the file of `f%03d.npy` with a number in it.
fn frame(pattern: &str, number: u64) -> String {
    let (before, rest) = pattern.split_once('%').unwrap_or((pattern, "d"));
    let (digits, after) = rest.split_once('d').unwrap_or((rest, ""));
    format!("{before}{number:0width$}{after}", width = digits.parse().unwrap_or(0))
}

/// The results of an undisturbed work.
pub struct Peace {
    /// Every file's bytes.
    pub files: BTreeMap<String, Vec<u8>>,
    /// A checkpoint of the same problem after a quarter of its steps.
    pub earlier: Option<Vec<u8>>,
    /// Time from start to end.
    pub time: Duration,
}

impl Peace {
    /// Runs a work in a folder of its own, twice: bits that differ between the two runs would make all
    /// further checks pointless.
    pub fn of(work: &Work, binary: &Path, folder: &Path) -> Result<Peace> {
        let mut found: Option<Peace> = None;
        for turn in ["first", "second"] {
            let place = folder.join(turn);
            let time = peace(&work.start(), binary, &place)?;
            let files = read_all(&place)?;
            let expected = work.files();
            if let Some(missing) = expected.iter().find(|name| !files.contains_key(*name)) {
                bail!("{} leaves no {missing}", work.name);
            }
            if files.len() != expected.len() {
                bail!(
                    "{} leaves {} files, not {}: {:?}",
                    work.name,
                    files.len(),
                    expected.len(),
                    files.keys()
                );
            }
            found = Some(match found {
                Some(first) if first.files != files => bail!("{} has other bits the second time", work.name),
                Some(first) => Peace { time: first.time.min(time), ..first },
                None => Peace { files, earlier: None, time },
            });
        }
        let Some(mut found) = found else { bail!("nothing was run") };
        if work.goes_on() {
            let place = folder.join("earlier");
            let steps = work.steps / 4 / work.every * work.every;
            let words = format!(
                "{} {} --steps {steps} --every {} --checkpoint {CHECKPOINT}",
                work.head, work.problem, work.every
            );
            peace(&Start::of(&words), binary, &place)?;
            let path = place.join(CHECKPOINT);
            let earlier = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let read = checkpoint::steps(&earlier)?;
            if read != steps {
                bail!("a checkpoint after {steps} steps says {read}");
            }
            found.earlier = Some(earlier);
        }
        Ok(found)
    }
}

/// Reads every file of a folder.
fn read_all(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(OsString::from).unwrap_or_default();
        files.insert(name.to_string_lossy().into_owned(), fs::read(&path)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_follow_from_the_arguments() {
        let work = WORKS.iter().find(|work| work.name == "gray-scott").unwrap();
        assert_eq!(work.finals().collect::<Vec<_>>(), ["u.npy", "v.npy", "all.vti"]);
        let files = work.files();
        assert!(files.contains(&"f000.npy".to_owned()) && files.contains(&"f030.npy".to_owned()));
        assert_eq!(files.len(), 3 + 1 + 31);
        assert_eq!(frame("g%d.vti", 7), "g7.vti");
    }
}
