//! Odd variables, odd names and long paths.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use anyhow::{Context as _, Result};

use crate::start::Start;
use crate::trial::{Trial, short};
use crate::works::CHECKPOINT;

/// Values that a variable may have by accident; `None` removes the variable.
const VARIABLES: &[(&str, &[Option<&[u8]>])] = &[
    ("HOME", &[None, Some(b""), Some(b"/not/there"), Some(b"/dev/null"), Some(b"\xff\xfe")]),
    ("XDG_CACHE_HOME", &[None, Some(b""), Some(b"relative"), Some(b"/proc/1")]),
    ("ABIDE_CACHE", &[None, Some(b""), Some(b"/dev/null"), Some(b"/not/there"), Some(b"/not/\xff")]),
    ("TMPDIR", &[None, Some(b""), Some(b"/not/there"), Some(b"/proc")]),
    ("LANG", &[None, Some(b"C"), Some(b"tr_TR.UTF-8"), Some(b"de_DE@euro"), Some(b"\xff")]),
    ("LC_ALL", &[None, Some(b"POSIX"), Some(b"ar_EG.UTF-8"), Some(b"zz_ZZ.KOI9"), Some(b"")]),
    ("LC_NUMERIC", &[None, Some(b"de_DE.UTF-8"), Some(b"fr_FR")]),
    ("TZ", &[None, Some(b""), Some(b"Nowhere/None"), Some(b"<-99>99:59:59"), Some(b":/dev/zero/x")]),
    ("TERM", &[None, Some(b""), Some(b"dumb"), Some(b"no-such-terminal")]),
    ("COLUMNS", &[None, Some(b"0"), Some(b"-1"), Some(b"99999999999999999999")]),
    ("PATH", &[None, Some(b""), Some(b"/not/there")]),
    ("USER", &[None, Some(b"nobody at all")]),
    ("SOURCE_DATE_EPOCH", &[None, Some(b"-1"), Some(b"999999999999999999")]),
    ("RUST_BACKTRACE", &[None, Some(b"full"), Some(b"\xff")]),
];

/// Tries variables that are missing or make no sense.
pub fn variables(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let mut start = work.start();
    start.bare = trial.random.u32(0..4) == 0;
    for (name, values) in VARIABLES {
        let value = values[trial.random.usize(0..values.len())];
        start.variables.push((name, value.map(|bytes| OsStr::from_bytes(bytes).to_owned())));
    }
    trial.works(&start, &place, work, peace)
}

/// Names that files may have; `*` stands for as many letters as make the name as long as names may be.
const NAMES: &[&[u8]] = &[
    b"two\nlines",
    b"-",
    b"--help",
    b"a b  c",
    b"'quoted\"",
    b"$(true)`true`;#",
    b"./a=b",
    b"100%d",
    b"\xc3\xbc\xe2\x98\x83",
    b"\xff\xfe\x80",
    b".hidden",
    b"\x1b[31m",
    b"*",
    b"\t",
    b"u.npy",
    b"CON",
];

/// The most bytes of a name.
const LONGEST: usize = 255;

/// Tries odd names for an output and a checkpoint.
pub fn names(trial: &mut Trial<'_>) -> Result<()> {
    let place = trial.place();
    let (work, peace) = trial.bench.works().find(|(work, _)| work.name == "line").context("no such work")?;
    let stem = NAMES[trial.number % NAMES.len()];
    let named = |extension: &str| {
        let letters = [b'x'; LONGEST];
        let stem = if stem == b"*" { &letters[..LONGEST - extension.len()] } else { stem };
        OsStr::from_bytes(&[stem, extension.as_bytes()].concat()).to_owned()
    };
    let (output, checkpoint) = (named(".npy"), named(".npz"));
    let mut start =
        Start::of(&format!("{} {} --steps {} --every {}", work.head, work.problem, work.steps, work.every));
    let option = |option: &str, value: &OsStr| {
        let mut word = OsString::from(option);
        word.push(value);
        word
    };
    start.arguments.extend([option("--output=", &output), option("--checkpoint=", &checkpoint)]);
    let ending = trial.run_to_end(&start, &place, peace)?;
    // Arguments that are not text may be refused.
    let may_fail = std::str::from_utf8(stem).is_err();
    let status = ending.status;
    trial.hold(ending.late || status.success() || may_fail, || format!("{status}: {}", short(&ending.words)));
    for (name, usual) in [(&output, "u.npy"), (&checkpoint, CHECKPOINT)] {
        let found = fs::read(place.join(name)).ok();
        let holds = if status.success() { found.as_ref() == peace.files.get(usual) } else { found.is_none() };
        trial.hold(holds, || format!("{} is not what it must be", name.display()));
    }
    let count = fs::read_dir(&place)?.count();
    let expected = if status.success() { 2 } else { 0 };
    trial.hold(count == expected, || format!("{count} files, not {expected}"));
    Ok(())
}

/// The most bytes of a path, its terminating zero included.
const LONGEST_PATH: usize = 4096;

/// Tries folders so deep that their path is about as long as paths may be.
pub fn long_path(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let mut place = trial.place().canonicalize()?;
    let wanted = LONGEST_PATH - trial.random.usize(2..120);
    loop {
        let left = wanted.saturating_sub(place.as_os_str().len() + 1);
        if left == 0 {
            break;
        }
        // Never one letter short: no folder's name could fill that.
        let letters = if left > 202 { 200 } else { left };
        place.push("d".repeat(letters.min(LONGEST)));
    }
    fs::create_dir_all(&place).context("cannot make a long path")?;
    trial.works_or_says_why(&work.start(), &place, work, peace).map(drop)
}
