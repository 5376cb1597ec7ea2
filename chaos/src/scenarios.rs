//! The table of scenarios: the disturbance, and what must hold besides what always holds.

use anyhow::Result;

use crate::bench::Bench;
use crate::trial::Trial;
#[cfg(target_os = "linux")]
use crate::{
    caches, devices, disk, folders, memory, models, processes, series, signals, streams, surroundings,
};
use crate::{clocks, concurrent, kills};

/// One kind of hostile circumstances.
pub struct Scenario {
    pub name: &'static str,
    pub does: &'static str,
    /// The claims that hold besides [`ALWAYS`].
    pub holds: &'static str,
    /// Trials per pass.
    pub pass: usize,
    /// Whether the scenario's trials count as kills.
    pub kills: bool,
    /// The functions that run it; `None` where this system cannot.
    pub run: Option<Run>,
}

/// The functions that run a scenario.
#[derive(Clone, Copy)]
pub struct Run {
    /// Checks that the scenario can be run on this machine, or says why not.
    pub ready: fn(&Bench) -> Result<(), String>,
    /// Runs one trial.
    pub trial: fn(&mut Trial<'_>) -> Result<()>,
}

/// The claims that always hold.
pub const ALWAYS: &str = "files old or complete; checkpoints load and go on to the same bits; no panic, abort or hang; \
                          an error in words; no temporary file left";

/// Makes the functions that run a scenario on Linux alone.
macro_rules! linux {
    ($trial:expr) => {
        linux!($trial, ready)
    };
    ($trial:expr, $ready:expr) => {{
        #[cfg(target_os = "linux")]
        let run = Some(Run { ready: $ready, trial: $trial });
        #[cfg(not(target_os = "linux"))]
        let run = None;
        run
    }};
}

/// Makes the functions that run a scenario on any system.
const fn anywhere(trial: fn(&mut Trial<'_>) -> Result<()>) -> Option<Run> {
    Some(Run { ready, trial })
}

fn ready(_: &Bench) -> Result<(), String> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn can_mount(bench: &Bench) -> Result<(), String> {
    disk::can_mount(&bench.folder)
}

/// All scenarios, in the order of a pass.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "kill",
        does: "kill -9 at any moment; goes on from the checkpoint, is killed again, until the end",
        holds: "the end has the undisturbed bits; temporary files are counted",
        pass: 8,
        kills: true,
        run: anywhere(kills::kill),
    },
    Scenario {
        name: "interrupt",
        does: "Ctrl-C (SIGINT) at any moment",
        holds: "status 130; the outputs are those of its checkpoint",
        pass: 8,
        kills: true,
        run: linux!(signals::interrupt),
    },
    Scenario {
        name: "terminate",
        does: "SIGTERM at any moment",
        holds: "status 143; the outputs are those of its checkpoint",
        pass: 8,
        kills: true,
        run: linux!(signals::terminate),
    },
    Scenario {
        name: "hang-up",
        does: "SIGHUP at any moment",
        holds: "status 129; the outputs are those of its checkpoint",
        pass: 4,
        kills: true,
        run: linux!(signals::hang_up),
    },
    Scenario {
        name: "twice",
        does: "SIGINT or SIGTERM twice within 20 ms",
        holds: "ends at once, with 130 or 143; temporary files are counted",
        pass: 4,
        kills: true,
        run: linux!(signals::twice),
    },
    Scenario {
        name: "halt",
        does: "halted at any moment for up to 0.4 s (SIGSTOP, SIGCONT)",
        holds: "it succeeds",
        pass: 4,
        kills: false,
        run: linux!(signals::halt),
    },
    Scenario {
        name: "full-disk",
        does: "a file system with room for a part of the bytes or of the files",
        holds: "what fits is written",
        pass: 8,
        kills: false,
        run: linux!(disk::full, can_mount),
    },
    Scenario {
        name: "file-size",
        does: "files that may not grow beyond a limit (RLIMIT_FSIZE)",
        holds: "the system's signal for it counts as kill -9",
        pass: 8,
        kills: false,
        run: linux!(disk::file_size),
    },
    Scenario {
        name: "memory",
        does: "too few addresses (RLIMIT_AS), from the least with which it says its version",
        holds: "an abort for at most 64 KiB is counted as starved: any Rust program does",
        pass: 16,
        kills: false,
        run: linux!(memory::addresses),
    },
    Scenario {
        name: "memory-group",
        does: "a control group with 1 to 64 MB, whose members the system kills",
        holds: "as after kill -9",
        pass: 6,
        kills: false,
        run: linux!(memory::group, memory::can_group),
    },
    Scenario {
        name: "few-threads",
        does: "a user who may have 1 to 8 threads (RLIMIT_NPROC)",
        holds: "",
        pass: 8,
        kills: false,
        run: linux!(memory::few_threads, memory::can_be_others),
    },
    Scenario {
        name: "many-threads",
        does: "RAYON_NUM_THREADS in the thousands and addresses for fewer",
        holds: "",
        pass: 4,
        kills: false,
        run: linux!(memory::many_threads),
    },
    Scenario {
        name: "read-only",
        does: "a file system that is mounted read-only",
        holds: "it fails",
        pass: 4,
        kills: false,
        run: linux!(folders::read_only, can_mount),
    },
    Scenario {
        name: "foreign",
        does: "a sticky folder with another's files, another's folder, another's file that may not be written",
        holds: "a complete result may stay under a name that the error tells",
        pass: 6,
        kills: false,
        run: linux!(folders::foreign, memory::can_be_others),
    },
    Scenario {
        name: "immutable",
        does: "an output that not even root may replace (chattr +i)",
        holds: "it fails; a complete result may stay under a name that the error tells",
        pass: 4,
        kills: false,
        run: linux!(folders::fixed, folders::can_fix),
    },
    Scenario {
        name: "vanishing",
        does: "on the way, the folder goes or a folder takes an output's place",
        holds: "",
        pass: 6,
        kills: false,
        run: linux!(folders::vanishing),
    },
    Scenario {
        name: "devices",
        does: "copies of /dev/null and /dev/full, or links to them, in the place of an output",
        holds: "devices and links stay; a full one is a failure",
        pass: 8,
        kills: false,
        run: linux!(devices::device, devices::can_make),
    },
    Scenario {
        name: "pipes",
        does: "a pipe with a name in the place of an output",
        holds: "it stays, and carries the whole file or nothing",
        pass: 4,
        kills: false,
        run: linux!(devices::pipe),
    },
    Scenario {
        name: "cache",
        does: "a cache of cut, random and foreign files, or no folder (wgpu)",
        holds: "it succeeds with the same bits",
        pass: 5,
        kills: false,
        run: linux!(caches::foreign, caches::can_keep),
    },
    Scenario {
        name: "together",
        does: "two or three processes on the same files, one of them killed at times; a reader reads all meanwhile",
        holds: "the reader meets only old or complete files",
        pass: 8,
        kills: false,
        run: anywhere(concurrent::concurrent),
    },
    Scenario {
        name: "file-times",
        does: "outputs and checkpoints written in the past and the future",
        holds: "it succeeds",
        pass: 3,
        kills: false,
        run: anywhere(clocks::file_times),
    },
    Scenario {
        name: "clock-offset",
        does: "a system that has been up for a second or for centuries (unshare --time)",
        holds: "it succeeds",
        pass: 4,
        kills: false,
        run: linux!(clocks::offset, clocks::can_offset),
    },
    Scenario {
        name: "clock-jumps",
        does: "the clock is set to and fro by years while it runs (libfaketime)",
        holds: "it succeeds",
        pass: 4,
        kills: false,
        run: linux!(clocks::jumps, clocks::can_jump),
    },
    Scenario {
        name: "open-files",
        does: "too few files that may be open at once (RLIMIT_NOFILE)",
        holds: "",
        pass: 8,
        kills: false,
        run: linux!(streams::open_files),
    },
    Scenario {
        name: "streams",
        does: "standard streams closed, on a full device or a pipe without a reader",
        holds: "files as ever; it fails where its report is lost on a full device, and only there",
        pass: 10,
        kills: false,
        run: linux!(streams::streams),
    },
    Scenario {
        name: "words",
        does: "the same with errors, help and plans",
        holds: "the status is the same as ever, or 1 where output is lost",
        pass: 14,
        kills: false,
        run: linux!(streams::words),
    },
    Scenario {
        name: "variables",
        does: "HOME missing, odd locales, time zones, terminals, folders for temporary files and caches",
        holds: "it succeeds",
        pass: 8,
        kills: false,
        run: linux!(surroundings::variables),
    },
    Scenario {
        name: "names",
        does: "outputs with line ends, escape sequences, invalid UTF-8 in their names, or of 255 bytes",
        holds: "it succeeds; names that are no text may be refused",
        pass: 16,
        kills: false,
        run: linux!(surroundings::names),
    },
    Scenario {
        name: "long-path",
        does: "a folder whose path is about as long as paths may be",
        holds: "",
        pass: 4,
        kills: false,
        run: linux!(surroundings::long_path),
    },
    Scenario {
        name: "frames",
        does: "Ctrl-C at any moments of a run with frames, which goes on from its checkpoint each time",
        holds: "frames and results are those of the run in one piece, by name and to the byte",
        pass: 6,
        kills: true,
        run: linux!(series::frames),
    },
    Scenario {
        name: "record",
        does: "a record on a file system with room for a part of its lines",
        holds: "it fails and names the file, which is what was there before, or whole lines",
        pass: 6,
        kills: false,
        run: linux!(series::record, can_mount),
    },
    Scenario {
        name: "models",
        does: "a model file of others, whose table `run` names paths elsewhere and files that are there, or whose names \
               hold escape sequences",
        holds: "nothing outside changes, nothing is replaced, no control sequence is told",
        pass: 31,
        kills: false,
        run: linux!(models::models),
    },
    Scenario {
        name: "modes",
        does: "a library that sets the floating-point mode before the command begins: rounding, denormals",
        holds: "it succeeds with the same bits",
        pass: 8,
        kills: false,
        run: linux!(processes::modes, processes::can_preload),
    },
    Scenario {
        name: "many-devices",
        does: "64 to a million devices of one CPU",
        holds: "the bits of one device, or an error, within 20 s",
        pass: 7,
        kills: false,
        run: linux!(processes::devices),
    },
    Scenario {
        name: "fork",
        does: "Python's multiprocessing by fork, spawn and forkserver, after a run and after a solve",
        holds: "the children find the same bits; a fork may be an error that names spawn",
        pass: 6,
        kills: false,
        run: linux!(processes::forks, processes::can_import),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_passes_are_not_empty() {
        let mut names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len());
        assert!(SCENARIOS.iter().all(|scenario| scenario.pass > 0));
    }
}
