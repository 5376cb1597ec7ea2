//! Too little memory, and too few threads.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::start::{Limit, Start};
use crate::trial::{Leaves, Trial, signal};

/// Addresses beyond the least with which the command says its version, because its parts lie at other places
/// in every start.
const MARGIN: u64 = 1 << 20;

/// Tries fewer addresses than a work needs, or just enough of them.
pub fn addresses(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    // The need grows with the machine's cores, so most limits are small and some large.
    let more = 1 << trial.random.u64(12..31);
    let limit = trial.bench.least_memory + MARGIN + trial.random.u64(0..more);
    let mut start = work.start().within(Limit::Memory, limit);
    if trial.random.bool() {
        start = start.with("RAYON_NUM_THREADS", trial.random.u32(1..5).to_string());
    }
    trial.works_or_says_why(&start, &place, work, peace).map(drop)
}

/// Tries more threads than there are addresses for.
pub fn many_threads(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let limit = trial.bench.least_memory + MARGIN + trial.random.u64(0..1 << 30);
    let start = work
        .start()
        .within(Limit::Memory, limit)
        .with("RAYON_NUM_THREADS", trial.random.u32(500..3000).to_string());
    trial.works_or_says_why(&start, &place, work, peace).map(drop)
}

/// Tries a user who may have a few threads and no more.
pub fn few_threads(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    // A user of this trial's own, so that no other process counts.
    let user = trial.random.u32(FIRST_USER..FIRST_USER + 1_000_000);
    give(&place, user)?;
    let mut start = work.start().within(Limit::Threads, trial.random.u64(1..9));
    start.user = Some(user);
    if trial.random.bool() {
        start = start.with("RAYON_NUM_THREADS", trial.random.u32(1..20).to_string());
    }
    trial.works_or_says_why(&start, &place, work, peace).map(drop)
}

/// The first of the user numbers that belong to nobody.
pub const FIRST_USER: u32 = 100_000;

/// Gives a folder and its files to a user.
pub fn give(place: &Path, user: u32) -> Result<()> {
    chown(place, Some(user), Some(user)).with_context(|| format!("cannot give {} away", place.display()))?;
    for entry in fs::read_dir(place)? {
        chown(entry?.path(), Some(user), Some(user))?;
    }
    Ok(())
}

/// Checks that the command can be started for another user.
pub fn can_be_others(bench: &Bench) -> Result<(), String> {
    let place = bench.folder.join("user");
    let in_words = |error: anyhow::Error| format!("{error:#}");
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let able = give(&place, FIRST_USER).and_then(|()| {
        let start = Start { user: Some(FIRST_USER), ..Start::of("--version") };
        let logs = tempfile::tempdir()?;
        let ending =
            start.spawn(&bench.binary, &place, logs.path())?.finish(std::time::Duration::from_secs(60))?;
        anyhow::ensure!(ending.status.success(), "it ends with {}", ending.status);
        Ok(())
    });
    let _ = fs::remove_dir(&place);
    able.map_err(in_words).map_err(|why| format!("the command cannot be started for another user: {why}"))
}

/// The folders of control groups for memory, and the names of the files for the limit and the members, in
/// both versions.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// A control group with a limit; it is removed when this value is dropped.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, bytes: u64) -> Result<Group> {
        let mut reason = anyhow::anyhow!("there are no control groups for memory");
        for (root, limit) in GROUPS {
            let root = Path::new(root);
            if !root.join("cgroup.procs").exists() {
                continue;
            }
            let group = Group(root.join(name));
            let made =
                fs::create_dir(&group.0).and_then(|()| fs::write(group.0.join(limit), bytes.to_string()));
            match made {
                Ok(()) => return Ok(group),
                Err(error) => {
                    reason = anyhow::Error::new(error).context(format!("no group in {}", root.display()))
                }
            }
        }
        Err(reason)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Checks that groups with a limit can be made here.
pub fn can_group(_: &Bench) -> Result<(), String> {
    Group::new(&format!("chaos-{}", std::process::id()), 1 << 30)
        .map(drop)
        .map_err(|error| format!("{error:#}"))
}

/// Tries a container whose memory is used up: the system kills the processes in it.
pub fn group(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let bytes = trial.random.u64(1 << 20..1 << 26);
    let group = Group::new(&format!("chaos-{}-{}", std::process::id(), trial.random.u64(..)), bytes)?;
    let mut start = work.start();
    let script = "echo $$ > \"$0\" && exec \"$@\"";
    start.through = ["sh", "-c", script]
        .into_iter()
        .map(Into::into)
        .chain([group.0.join("cgroup.procs").into()])
        .collect();
    trial.remark(format!("a control group of {bytes} bytes: {}", group.0.display()));
    let ending = trial.run_to_end(&start, &place, peace)?;
    if signal(ending.status) == Some(9) && !ending.late {
        trial.check_files(work, peace, &place, Leaves::Pieces, false)?;
        if work.goes_on() { trial.check_resumes(work, peace, &place) } else { Ok(()) }
    } else {
        trial.worked_or_said_why(&ending, &place, work, peace).map(drop)
    }
}
