//! A campaign: jobs that fuzz one target side by side, and their findings.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use abide_fuzz::{Target, files};
use anyhow::{Context as _, Result, bail};

use crate::TARGET_VARIABLE;

/// Processes of a target that may go wrong before the target is given up, because each costs a start.
const MOST_FAILURES: u64 = 200;

/// Seconds between two lines of progress.
const PROGRESS: u64 = 30;

/// The campaign of each target.
pub struct Campaign {
    /// Executions, summed over all jobs.
    pub runs: Option<u64>,
    /// The time of the campaign.
    pub time: Option<Duration>,
    /// The first job's seed.
    pub seed: u32,
    /// Processes side by side.
    pub jobs: usize,
    /// The folder for inputs that take new branches.
    pub corpus: Option<PathBuf>,
    /// The folder for inputs that go wrong.
    pub findings: PathBuf,
}

/// A fault found: how often, and its shortest input.
#[derive(Default)]
struct Finding {
    text: String,
    times: u64,
    input: Option<PathBuf>,
}

/// A target's campaign in progress.
struct State {
    begun: Instant,
    /// Executions of each job.
    runs: Vec<AtomicU64>,
    failures: AtomicU64,
    done: AtomicBool,
    /// Whether libFuzzer said that it has branches to count.
    counted: AtomicBool,
    /// The findings, by their words without numbers and names.
    findings: Mutex<BTreeMap<String, Finding>>,
}

/// The folders of a target's campaign.
struct Folders {
    /// The folder for the jobs' own temporary files, which processes that go wrong leave behind.
    own: PathBuf,
    corpus: PathBuf,
    seeds: PathBuf,
    words: PathBuf,
    findings: PathBuf,
}

impl Folders {
    /// Removes an input that goes wrong from the inputs to start from, so that the next process gets beyond
    /// it.
    fn forget(&self, input: &Path) {
        let Ok(wrong) = fs::read(input) else { return };
        let files =
            [&self.seeds, &self.corpus].into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        for path in files.filter_map(|entry| Some(entry.ok()?.path())) {
            // A long file may not have been tried whole.
            if fs::read(&path).is_ok_and(|contents| contents.starts_with(&wrong)) {
                // Another job may have removed it.
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Campaign {
    /// Fuzzes a target and prints the results; returns whether nothing was found.
    pub fn fuzz(&self, target: &Target) -> Result<bool> {
        let own = tempfile::tempdir().context("cannot make a temporary folder")?;
        let folders = self.folders(target, own.path())?;
        let before = count(&folders.corpus)? + count(&folders.seeds)?;
        println!("{}: {}, {} jobs, {before} inputs", target.name, target.what, self.jobs);
        let state = State {
            begun: Instant::now(),
            runs: (0..self.jobs).map(|_| AtomicU64::new(0)).collect(),
            failures: AtomicU64::new(0),
            done: AtomicBool::new(false),
            counted: AtomicBool::new(false),
            findings: Mutex::default(),
        };
        std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..self.jobs)
                .map(|job| {
                    scope.spawn({
                        let (state, folders) = (&state, &folders);
                        move || self.job(target, job, folders, state)
                    })
                })
                .collect();
            let progress = scope.spawn(|| state.report_progress(target));
            let ended =
                jobs.into_iter().map(|job| job.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
            let outcome = ended.fold(Ok(()), |so_far: Result<()>, job| so_far.and(job));
            state.done.store(true, Ordering::Relaxed);
            progress.thread().unpark();
            outcome
        })?;
        let after = count(&folders.corpus)? + count(&folders.seeds)?;
        state.report(target, before, after);
        Ok(state.findings.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }

    fn folders(&self, target: &Target, own: &Path) -> Result<Folders> {
        let folders = Folders {
            own: own.to_owned(),
            corpus: self.corpus.clone().unwrap_or_else(|| own.join("corpus")).join(target.name),
            seeds: own.join("seeds"),
            words: own.join("words"),
            findings: self.findings.join(target.name),
        };
        for folder in [&folders.corpus, &folders.seeds, &folders.findings] {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let seeds = files::corpus(target.name).into_iter().chain(files::regressions(target.name));
        for (name, contents) in seeds {
            fs::write(folders.seeds.join(name), contents).context("cannot write the corpus")?;
        }
        let words: String = target.words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
        fs::write(&folders.words, words).context("cannot write the words")?;
        Ok(folders)
    }

    /// Runs one process after another; each goes on after the input that the last one went wrong on.
    fn job(&self, target: &Target, job: usize, folders: &Folders, state: &State) -> Result<()> {
        let share =
            self.runs.map(|runs| runs / self.jobs as u64 + u64::from((job as u64) < runs % self.jobs as u64));
        let mut done = 0;
        for attempt in 0.. {
            let left = share.map(|share| share.saturating_sub(done));
            let time = self.time.map(|time| time.saturating_sub(state.begun.elapsed()));
            if left == Some(0) || time.is_some_and(|time| time < Duration::from_secs(1)) {
                break;
            }
            let mut arguments = vec![
                format!("-seed={}", self.seed.wrapping_add((job + self.jobs * attempt) as u32).max(1)),
                format!("-max_len={}", target.longest),
                format!("-artifact_prefix={}/", folders.findings.display()),
                // Limits of time and memory are checked in each execution, not by libFuzzer.
                "-timeout=0".to_owned(),
                "-report_slow_units=1000000".to_owned(),
                "-rss_limit_mb=4096".to_owned(),
                "-print_final_stats=1".to_owned(),
                "-print_funcs=0".to_owned(),
            ];
            if !target.words.is_empty() {
                arguments.push(format!("-dict={}", folders.words.display()));
            }
            arguments.extend(left.map(|left| format!("-runs={left}")));
            arguments.extend(time.map(|time| format!("-max_total_time={}", time.as_secs())));
            arguments.extend([&folders.corpus, &folders.seeds].map(|folder| folder.display().to_string()));
            let command = &mut command(target)?;
            done += state.run(command.args(arguments).env("TMPDIR", &folders.own), job, done, folders)?;
            if state.failures.load(Ordering::Relaxed) >= MOST_FAILURES {
                break;
            }
        }
        Ok(())
    }
}

fn command(target: &Target) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program does not find itself")?);
    command.env(TARGET_VARIABLE, target.name);
    Ok(command)
}

impl State {
    /// Runs one process to its end, and returns its executions.
    fn run(&self, command: &mut Command, job: usize, before: u64, folders: &Folders) -> Result<u64> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let Some(output) = child.stderr.take() else { bail!("a job has no output") };
        let (mut runs, mut text, mut input, mut last) = (0, None, None, Vec::new());
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line.context("a job's output breaks off")?).into_owned();
            if let Some(rest) = line.strip_prefix('#') {
                runs = rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(runs);
                self.runs[job].store(before + runs, Ordering::Relaxed);
            } else if let Some(rest) = line.strip_prefix("stat::number_of_executed_units:") {
                runs = rest.trim().parse().unwrap_or(runs);
            } else if let Some(rest) = line.strip_prefix("finding: ") {
                text = Some(rest.to_owned());
            } else if line.starts_with("INFO: Loaded") {
                self.counted.store(true, Ordering::Relaxed);
            } else if let Some((_, path)) = line.split_once("Test unit written to ") {
                input = Some(PathBuf::from(path));
            } else if text.is_none()
                && ["memory allocation of", "ERROR: libFuzzer", "overflowed its stack"]
                    .iter()
                    .any(|s| line.contains(s))
            {
                text = Some(line.clone());
            }
            last.push(line);
            last.drain(..last.len().saturating_sub(5));
        }
        self.runs[job].store(before + runs, Ordering::Relaxed);
        let status = child.wait()?;
        if !status.success() {
            if runs == 0 && input.is_none() {
                bail!("a job does not start: {status}: {}", last.join(" | "));
            }
            self.failures.fetch_add(1, Ordering::Relaxed);
            input.iter().for_each(|input| folders.forget(input));
            self.keep(text.unwrap_or_else(|| format!("ends with {status}")), input)?;
        }
        Ok(runs)
    }

    /// Keeps the shortest input of each kind of finding, under its digest.
    fn keep(&self, text: String, input: Option<PathBuf>) -> Result<()> {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let known = findings.entry(kind(&text)).or_default();
        known.times += 1;
        let Some(input) = input else {
            known.text = text;
            return Ok(());
        };
        let length = |path: &Path| fs::metadata(path).map_or(u64::MAX, |file| file.len());
        if known.input.as_deref().is_some_and(|old| length(old) <= length(&input)) {
            // Another job may have found the same bytes, and put the file away.
            let _ = fs::remove_file(&input);
            return Ok(());
        }
        let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digest = name.rsplit_once('-').map_or(name.as_str(), |(_, digest)| digest);
        let kept = input.with_file_name(digest);
        fs::rename(&input, &kept).with_context(|| format!("cannot keep {}", input.display()))?;
        if let Some(old) = known.input.replace(kept.clone()).filter(|old| *old != kept) {
            let _ = fs::remove_file(old);
        }
        known.text = text;
        Ok(())
    }

    fn executions(&self) -> u64 {
        self.runs.iter().map(|runs| runs.load(Ordering::Relaxed)).sum()
    }

    fn rate(&self) -> f64 {
        self.executions() as f64 / self.begun.elapsed().as_secs_f64().max(1e-3)
    }

    fn report_progress(&self, target: &Target) {
        let mut next = PROGRESS;
        while !self.done.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(1));
            if self.begun.elapsed().as_secs() >= next {
                next += PROGRESS;
                println!("{}: {} executions so far, {:.0}/s", target.name, self.executions(), self.rate());
            }
        }
    }

    fn report(&self, target: &Target, before: usize, after: usize) {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        println!(
            "{}: {} executions, {:.0}/s, {} new inputs beside {before}, {} findings",
            target.name,
            self.executions(),
            self.rate(),
            after.saturating_sub(before),
            findings.len()
        );
        if !self.counted.load(Ordering::Relaxed) {
            println!(
                "  this build counts no branches, so that inputs are changed blindly: build it with cargo xtask fuzz"
            );
        }
        if self.failures.load(Ordering::Relaxed) >= MOST_FAILURES {
            println!("  given up after {MOST_FAILURES} failures");
        }
        for Finding { text, times, input } in findings.values() {
            println!("  finding, {times} times: {text}");
            if let Some(input) = input {
                println!("    input: {}", input.display());
                println!("    a test of it: cp {} fuzz/regressions/{}/NAME", input.display(), target.name);
            }
        }
    }
}

/// Returns the words of a finding without the parts that differ from one input to the next: everything after
/// the target and the fault, and numbers other than those of a place in the code.
fn kind(text: &str) -> String {
    let start = text.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": ");
    if start.contains("panics at") {
        start
    } else {
        start.replace(|letter: char| letter.is_ascii_digit(), "")
    }
}

/// Formats a word for libFuzzer's dictionaries.
fn escaped(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b' '..=b'~' if byte != b'"' && byte != b'\\' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}

fn count(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?.count())
}

/// Looks for a shorter input that goes wrong, and writes it beside the file.
pub fn minimise(target: &Target, file: &Path) -> Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let shorter = file.with_file_name(format!("{name}.min"));
    let arguments = ["-minimize_crash=1", "-max_total_time=60", "-timeout=0"];
    let to = format!("-exact_artifact_path={}", shorter.display());
    let status = command(target)?
        .args(arguments)
        .arg(to)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match fs::metadata(&shorter) {
        Ok(found) => println!("{}: {} bytes", shorter.display(), found.len()),
        Err(_) => println!("no shorter input was found ({status})"),
    }
    Ok(())
}
