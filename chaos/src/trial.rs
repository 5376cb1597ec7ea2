//! One trial of a scenario: its folder, the commands started, and the checks that failed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;

use crate::bench::Bench;
use crate::start::{Ending, Running, Start, Stream};
use crate::works::{CHECKPOINT, Peace, Work};
use crate::{checkpoint, complete};

/// Statuses of a command that crashed: that of a panic, and those that a shell makes of signals.
const CRASHES: [i32; 3] = [101, 134, 139];

/// Signals of a command that crashed: illegal instruction, abort, bus error, division, memory that is not
/// there.
const CRASHING: [i32; 5] = [4, 6, 7, 8, 11];

/// Statuses of a command that says what is wrong: its own, and that for arguments that it does not
/// understand.
const REFUSALS: [i32; 2] = [1, 2];

/// One trial of a scenario.
pub struct Trial<'a> {
    pub bench: &'a Bench,
    pub random: Rng,
    /// Number of the scenario's trials before this one; scenarios that go through a list choose by it.
    pub number: usize,
    /// The folder of the trial; it is removed when all checks held.
    pub folder: PathBuf,
    /// Contents of the outputs' places before the first start.
    old: BTreeMap<String, Vec<u8>>,
    /// The command lines started, for a shell.
    pub lines: Vec<OsString>,
    /// The checks that failed.
    pub failures: Vec<String>,
    /// Starts that were ended by a signal of the trial.
    pub kills: u64,
    /// Temporary files that kills left.
    pub left: u64,
    /// Starts that ended because the system refused a little memory; see [`starved`].
    pub starved: u64,
    /// The last command's words.
    said: String,
}

/// The files that a start may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// All files of the whole work.
    All,
    /// Each file as it was before, or as the whole work leaves it.
    Either,
    /// As `Either`, and temporary files, which are counted and removed, because the command had no time to
    /// remove them.
    Pieces,
    /// The outputs of the step at which the work stopped, whole, and frames and checkpoints until then.
    Stopped,
    /// Outputs as they were or whole, of any step, and temporary files as in `Pieces`.
    Abandoned,
}

impl<'a> Trial<'a> {
    pub fn new(bench: &'a Bench, random: Rng, number: usize, folder: PathBuf) -> Result<Trial<'a>> {
        let trial = Trial {
            bench,
            random,
            number,
            folder,
            old: BTreeMap::new(),
            lines: Vec::new(),
            failures: Vec::new(),
            kills: 0,
            left: 0,
            starved: 0,
            said: String::new(),
        };
        fs::create_dir_all(trial.place())
            .with_context(|| format!("cannot make {}", trial.folder.display()))?;
        Ok(trial)
    }

    /// Returns the folder in which the command runs.
    pub fn place(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Returns the work whose turn it is.
    pub fn work(&self) -> (&'static Work, &'a Peace) {
        let works: Vec<_> = self.bench.works().collect();
        works[self.number % works.len()]
    }

    /// Starts the work whose turn it is, to be disturbed at a random moment.
    pub fn begin(&mut self) -> Result<Begun<'a>> {
        let ((work, peace), place) = (self.work(), self.place());
        self.seed(work, peace, &place)?;
        let start = work.start();
        let running = self.start(&start, &place)?;
        let delay = self.moment(peace);
        Ok(Begun { work, peace, place, start, running, delay })
    }

    /// Records a failed check.
    pub fn fail(&mut self, what: impl Into<String>) {
        self.failures.push(what.into());
    }

    /// Records a failed check, unless it holds.
    pub fn hold(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(what());
        }
    }

    /// Puts old contents into the places of a work's files, or nothing, by chance.
    pub fn seed(&mut self, work: &Work, peace: &Peace, place: &Path) -> Result<()> {
        if self.random.bool() { self.seed_all(work, peace, place) } else { Ok(()) }
    }

    /// Puts old contents into the places of all of a work's files.
    pub fn seed_all(&mut self, work: &Work, peace: &Peace, place: &Path) -> Result<()> {
        for name in work.files() {
            let content = match (&peace.earlier, name.as_str()) {
                (Some(earlier), CHECKPOINT) => earlier.clone(),
                _ => format!("what was in {name} before\n").into_bytes(),
            };
            let path = place.join(&name);
            fs::write(&path, &content).with_context(|| format!("cannot write {}", path.display()))?;
            self.old.insert(name, content);
        }
        Ok(())
    }

    /// Starts the command in `place`.
    pub fn start(&mut self, start: &Start, place: &Path) -> Result<Running> {
        self.lines.push(start.line(&self.bench.binary, place));
        start.spawn(&self.bench.binary, place, &self.folder)
    }

    /// Runs the command in `place` to its end.
    pub fn run_to_end(&mut self, start: &Start, place: &Path, peace: &Peace) -> Result<Ending> {
        let deadline = self.bench.deadline(peace);
        let ending = self.start(start, place)?.finish(deadline)?;
        self.check_end(&ending, start);
        Ok(ending)
    }

    /// Checks what holds of every end: it came in time, it is no crash, and a failure says what is wrong.
    pub fn check_end(&mut self, ending: &Ending, start: &Start) {
        self.said.clone_from(&ending.words);
        self.hold(!ending.late, || format!("it did not end within {:.0} s", ending.time.as_secs_f64()));
        for words in [&ending.output, &ending.words] {
            self.hold(!words.contains("panicked at"), || format!("it panicked: {}", short(words)));
        }
        if starved(ending) {
            self.starved += 1;
            return;
        }
        let (code, signal) = (ending.status.code(), signal(ending.status));
        if code.is_some_and(|code| CRASHES.contains(&code))
            || signal.is_some_and(|signal| CRASHING.contains(&signal))
        {
            return self.fail(format!("it crashed, {}: {}", ending.status, short(&ending.words)));
        }
        let refused = code.is_some_and(|code| REFUSALS.contains(&code));
        if refused && start.streams[2] == Stream::Usual {
            // Faults on the way may be reported before.
            let begins = ["error: ", "warning: "].iter().any(|word| ending.words.starts_with(word));
            let says =
                begins && ending.words.lines().any(|line| line.starts_with("error: ") && line.len() > 20);
            self.hold(says, || format!("it fails without a plain `error: `: {}", short(&ending.words)));
        }
    }

    /// Runs the command to an end that is a success or an error in words, never a signal, and checks the
    /// files: all of them after a success; each old or complete after an error. Returns whether it succeeded.
    pub fn works_or_says_why(
        &mut self,
        start: &Start,
        place: &Path,
        work: &Work,
        peace: &Peace,
    ) -> Result<bool> {
        let ending = self.run_to_end(start, place, peace)?;
        self.worked_or_said_why(&ending, place, work, peace)
    }

    /// Makes the checks of [`Trial::works_or_says_why`].
    pub fn worked_or_said_why(
        &mut self,
        ending: &Ending,
        place: &Path,
        work: &Work,
        peace: &Peace,
    ) -> Result<bool> {
        let (success, status) = (ending.status.success(), ending.status);
        let crashed = status.code().map_or_else(
            || signal(status).is_some_and(|signal| CRASHING.contains(&signal)),
            |code| CRASHES.contains(&code),
        );
        // A crash and a hang have been recorded already; both leave pieces.
        let pieces = crashed || ending.late;
        let known = success || pieces || status.code().is_some_and(|code| REFUSALS.contains(&code));
        self.hold(known, || format!("it ended with {status}: {}", short(&ending.words)));
        let leaves = match (success, pieces) {
            (true, _) => Leaves::All,
            (false, true) => Leaves::Pieces,
            (false, false) => Leaves::Either,
        };
        self.check_files(work, peace, place, leaves, false)?;
        Ok(success)
    }

    /// Runs the command to an end that must be a success with all files.
    pub fn works(&mut self, start: &Start, place: &Path, work: &Work, peace: &Peace) -> Result<()> {
        let ending = self.run_to_end(start, place, peace)?;
        self.succeeded(&ending);
        self.check_files(work, peace, place, Leaves::All, false)
    }

    /// Checks that the command succeeded.
    pub fn succeeded(&mut self, ending: &Ending) {
        let status = ending.status;
        self.hold(ending.late || status.success(), || {
            format!("it failed, {status}: {}", short(&ending.words))
        });
    }

    /// Checks every file in `place`. `resumed`: the start went on from a checkpoint, and its movie begins
    /// there.
    pub fn check_files(
        &mut self,
        work: &Work,
        peace: &Peace,
        place: &Path,
        leaves: Leaves,
        resumed: bool,
    ) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(expected) = peace.files.get(&name) else {
                self.check_stray(&name, &path, leaves, peace)?;
                continue;
            };
            let found = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let whole = found == *expected;
            let is_old = self.old.get(&name) == Some(&found);
            let holds = match leaves {
                _ if name == CHECKPOINT => self.check_checkpoint(work, &found, leaves),
                _ if resumed && name.ends_with(".gif") => {
                    complete::check(&name, &found).is_ok() || is_old && leaves != Leaves::All
                }
                // It names the frames that there are, and grows with them.
                _ if name.ends_with(".pvd") && (resumed || leaves != Leaves::All) => {
                    is_old || complete::check(&name, &found).is_ok()
                }
                // Frames before the checkpoint are those of an earlier start, which may have had none to
                // write.
                Leaves::All if resumed && !work.finals().any(|last| last == name) => whole || is_old,
                Leaves::All => whole,
                Leaves::Either | Leaves::Pieces => whole || is_old,
                // Everything done until the stop is as in the whole work.
                Leaves::Stopped if name.ends_with(".csv") => {
                    // The last residual may be the recurred one where the whole work has computed the true
                    // one.
                    let lines =
                        found[..found.len().saturating_sub(1)].iter().rposition(|&byte| byte == b'\n');
                    complete::check(&name, &found).is_ok()
                        && expected.starts_with(&found[..lines.unwrap_or(0)])
                }
                Leaves::Stopped if work.finals().any(|last| last == name) => {
                    complete::check(&name, &found).is_ok()
                }
                Leaves::Abandoned if work.finals().any(|last| last == name) => {
                    is_old || complete::check(&name, &found).is_ok()
                }
                Leaves::Stopped | Leaves::Abandoned => whole || is_old,
            };
            let (bytes, length) = (found.len(), expected.len());
            self.hold(holds, || {
                format!("{name} of {bytes} bytes is not what it must be: {length} bytes ({leaves:?})")
            });
            names.push(name);
        }
        let finals: Vec<&str> = work.finals().collect();
        for name in peace.files.keys().filter(|name| !names.contains(name)) {
            let wanted = match leaves {
                Leaves::All if !resumed => true,
                Leaves::All | Leaves::Stopped => finals.contains(&name.as_str()),
                Leaves::Either | Leaves::Pieces | Leaves::Abandoned => false,
            };
            let gone = self.old.contains_key(name);
            self.hold(!gone && !wanted, || format!("{name} is not there ({leaves:?})"));
        }
        Ok(())
    }

    /// Checks that a checkpoint loads, and is one that this work writes.
    fn check_checkpoint(&mut self, work: &Work, found: &[u8], leaves: Leaves) -> bool {
        match checkpoint::steps(found) {
            Ok(steps) => match leaves {
                Leaves::All => steps == work.steps,
                Leaves::Stopped | Leaves::Abandoned => steps <= work.steps,
                Leaves::Either | Leaves::Pieces => steps <= work.steps && steps.is_multiple_of(work.every),
            },
            Err(error) => {
                self.fail(format!("the checkpoint does not load: {error:#}"));
                false
            }
        }
    }

    /// Checks a file that nobody asked for.
    fn check_stray(&mut self, name: &str, path: &Path, leaves: Leaves, peace: &Peace) -> Result<()> {
        let temporary = name.starts_with('.') && name.contains("abide-");
        if temporary && matches!(leaves, Leaves::Pieces | Leaves::Abandoned) {
            self.left += 1;
            return fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()));
        }
        // A result that could not be put in its place may stay, whole, where the error names it.
        let is_named = self.said.contains(name);
        if is_named && fs::read(path).is_ok_and(|found| peace.files.values().any(|whole| *whole == found)) {
            return Ok(());
        }
        self.fail(format!("{name} is left behind ({leaves:?})"));
        Ok(())
    }

    /// Returns the steps of the checkpoint in `place`; `None` where there is none or it does not load.
    pub fn steps_done(&self, place: &Path) -> Option<u64> {
        checkpoint::steps(&fs::read(place.join(CHECKPOINT)).ok()?).ok()
    }

    /// Goes on, in a folder of its own, from the checkpoint in `place`, and checks that the end has the bits
    /// of the undisturbed run.
    pub fn check_resumes(&mut self, work: &Work, peace: &Peace, place: &Path) -> Result<()> {
        let Some(done) = self.steps_done(place) else { return Ok(()) };
        let own = self.folder.join("resumed");
        fs::create_dir_all(&own)?;
        fs::copy(place.join(CHECKPOINT), own.join(CHECKPOINT))?;
        let ending = self.run_to_end(&work.rest(done), &own, peace)?;
        self.succeeded(&ending);
        for name in work.finals().filter(|name| !name.ends_with(".gif")) {
            let same = fs::read(own.join(name)).is_ok_and(|found| peace.files.get(name) == Some(&found));
            self.hold(same, || format!("{name} of the run resumed after {done} steps has other bits"));
        }
        fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))
    }

    /// Adds a remark to the command lines, for whatever no line of a shell says.
    pub fn remark(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("# {}", text.as_ref()).into());
    }

    /// Notes when the last start was disturbed.
    pub fn note_delay(&mut self, delay: Duration) {
        self.remark(format!("disturbed after {:.4} s", delay.as_secs_f64()));
    }

    /// Copies the files of a place that is about to vanish, where a check failed.
    pub fn keep_copy(&self, place: &Path) -> Result<()> {
        if self.failures.is_empty() {
            return Ok(());
        }
        let kept = self.folder.join("kept");
        fs::create_dir_all(&kept)?;
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if path.is_file() {
                fs::copy(&path, kept.join(path.file_name().unwrap_or_default()))?;
            }
        }
        Ok(())
    }

    /// Returns whether a file exists that is not the old one.
    pub fn is_new(&self, name: &str, place: &Path) -> bool {
        fs::read(place.join(name)).is_ok_and(|found| self.old.get(name) != Some(&found))
    }

    /// Forgets the old contents of a place that now has other contents.
    pub fn forget(&mut self, name: &str) {
        self.old.remove(name);
    }

    /// Returns a random moment of a work's undisturbed time, uniformly distributed.
    pub fn moment(&mut self, peace: &Peace) -> Duration {
        peace.time.mul_f64(self.random.f64())
    }
}

/// A work under way.
pub struct Begun<'a> {
    pub work: &'static Work,
    pub peace: &'a Peace,
    pub place: PathBuf,
    pub start: Start,
    pub running: Running,
    /// Time from its start until it is disturbed.
    pub delay: Duration,
}

/// Returns whether the command ended as any Rust program does where the system denies it a little memory: the
/// language's library aborts. A large piece must be asked for in a way that can be refused.
fn starved(ending: &Ending) -> bool {
    const LITTLE: u64 = 1 << 16;
    let asked =
        |line: &str| line.strip_prefix("memory allocation of ")?.split_once(' ')?.0.parse::<u64>().ok();
    ending.words.lines().find_map(asked).is_some_and(|bytes| bytes <= LITTLE)
        && signal(ending.status) == Some(6)
}

/// Returns the signal that ended a process.
pub fn signal(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    {
        let _ = status;
        None
    }
}

/// Returns the first lines of a program's words.
pub fn short(words: &str) -> String {
    let text: String = words.trim().chars().take(300).collect();
    text.replace('\n', " | ")
}
