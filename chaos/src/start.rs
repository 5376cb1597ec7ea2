//! Starts of the command: its arguments, surroundings, limits and streams.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait_timeout::ChildExt as _;

/// A resource that a process may have only so much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of addresses.
    Memory,
    /// Bytes of a file.
    FileSize,
    /// Processes and threads of the user.
    Threads,
    /// Files that are open at once.
    Files,
}

impl Limit {
    /// Returns the option of `prlimit`, from util-linux.
    fn option(self) -> &'static str {
        match self {
            Limit::Memory => "--as",
            Limit::FileSize => "--fsize",
            Limit::Threads => "--nproc",
            Limit::Files => "--nofile",
        }
    }
}

/// The target of a standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// Input: nothing to read. Output: a file in which words are looked for.
    #[default]
    Usual,
    /// Not open.
    Closed,
    /// A device on which there is no room.
    Full,
    /// A pipe that nobody reads.
    CommError,
}

/// A start of the command.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub arguments: Vec<OsString>,
    /// Variables that are set or, with `None`, taken away.
    pub variables: Vec<(&'static str, Option<OsString>)>,
    /// Whether the variables in `variables` are the only ones kept.
    pub bare: bool,
    pub limits: Vec<(Limit, u64)>,
    /// Whether a file beyond its limit is an error of the write instead of a signal.
    pub quiet_limit: bool,
    /// The streams for input, output and errors.
    pub streams: [Stream; 3],
    /// A program that starts the command, with its arguments, such as `unshare --time`.
    pub through: Vec<OsString>,
    /// Another user's number.
    pub user: Option<u32>,
}

impl Start {
    /// Makes a start with the words of a line as arguments.
    pub fn of(line: &str) -> Start {
        Start { arguments: line.split_whitespace().map(OsString::from).collect(), ..Start::default() }
    }

    /// Adds one more variable.
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Start {
        self.variables.push((name, Some(value.into())));
        self
    }

    /// Adds one more limit.
    pub fn within(mut self, limit: Limit, value: u64) -> Start {
        self.limits.push((limit, value));
        self
    }

    /// Starts the command in the folder `place`, with its words going to files in `logs`.
    pub fn spawn(&self, binary: &Path, place: &Path, logs: &Path) -> Result<Running> {
        let mut words = self.through.iter().map(OsString::as_os_str).chain([binary.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or(OsStr::new("")));
        command.args(words).args(&self.arguments).current_dir(place);
        if self.bare {
            command.env_clear();
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let files = [logs.join("stdout"), logs.join("stderr")];
        command.stdin(Stdio::null());
        command.stdout(self.sink(1, &files[0])?).stderr(self.sink(2, &files[1])?);
        #[cfg(target_os = "linux")]
        self.prepare(&mut command);
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Running { child, files, begun })
    }

    fn sink(&self, stream: usize, file: &Path) -> Result<Stdio> {
        let made = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
        Ok(match self.streams[stream] {
            Stream::Usual => made.into(),
            Stream::Closed => Stdio::null(),
            Stream::Full => {
                OpenOptions::new().write(true).open("/dev/full").context("cannot open /dev/full")?.into()
            }
            Stream::CommError => std::io::pipe().context("cannot make a pipe")?.1.into(),
        })
    }

    /// Asks for everything to be done in the new process before it becomes the command.
    #[cfg(target_os = "linux")]
    fn prepare(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt as _;

        use nix::sys::resource::{Resource, setrlimit};
        use nix::sys::signal::{SigHandler, Signal, signal};

        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let limits: Vec<(Resource, u64)> =
            self.limits.iter().map(|&(limit, value)| (limit.resource(), value)).collect();
        let quiet = self.quiet_limit;
        let closed: Vec<i32> = (0..3).filter(|&n| self.streams[n as usize] == Stream::Closed).collect();
        // With nothing to do, the faster way to start a process is kept.
        if limits.is_empty() && !quiet && closed.is_empty() {
            return;
        }
        let prepare = move || {
            if quiet {
                // SAFETY: ignoring a signal runs no code of this program.
                unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }?;
            }
            for stream in &closed {
                nix::unistd::close(*stream)?;
            }
            for &(resource, value) in &limits {
                setrlimit(resource, value, value)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, which are safe there, and nothing is
        // allocated.
        unsafe { command.pre_exec(prepare) };
    }

    /// Returns the line that does the same in a shell.
    pub fn line(&self, binary: &Path, place: &Path) -> OsString {
        let mut words: Vec<OsString> = Vec::new();
        let mut push = |word: &str| words.push(word.into());
        if self.bare || !self.variables.is_empty() {
            push("env");
            if self.bare {
                push("-i");
            }
            for (name, _) in self.variables.iter().filter(|(_, value)| value.is_none()) {
                push("-u");
                push(name);
            }
        }
        for (name, value) in &self.variables {
            if let Some(value) = value {
                let mut word = OsString::from(format!("{name}="));
                word.push(value);
                words.push(word);
            }
        }
        if let Some(user) = self.user {
            words.push("setpriv".into());
            words
                .extend(["--reuid", "--regid"].into_iter().flat_map(|o| [o.into(), user.to_string().into()]));
            words.push("--clear-groups".into());
        }
        if !self.limits.is_empty() {
            words.push("prlimit".into());
            words.extend(
                self.limits.iter().map(|(limit, value)| format!("{}={value}", limit.option()).into()),
            );
        }
        words.extend(self.through.iter().cloned());
        words.push(binary.into());
        words.extend(self.arguments.iter().cloned());
        let mut line = OsString::from("( cd ");
        line.push(quoted(place.as_os_str()));
        line.push(if self.quiet_limit { "; trap '' XFSZ;" } else { ";" });
        for word in words {
            line.push(" ");
            line.push(quoted(&word));
        }
        for (stream, (from, to)) in self.streams.iter().zip([("0", "<"), ("1", ">"), ("2", ">")]) {
            line.push(match stream {
                Stream::Usual => String::new(),
                Stream::Closed => format!(" {from}{to}&-"),
                Stream::Full => format!(" {from}{to}/dev/full"),
                Stream::CommError => format!(" {from}{to} >(true)"),
            });
        }
        line.push(" )");
        line
    }
}

#[cfg(target_os = "linux")]
impl Limit {
    fn resource(self) -> nix::sys::resource::Resource {
        use nix::sys::resource::Resource;
        match self {
            Limit::Memory => Resource::RLIMIT_AS,
            Limit::FileSize => Resource::RLIMIT_FSIZE,
            Limit::Threads => Resource::RLIMIT_NPROC,
            Limit::Files => Resource::RLIMIT_NOFILE,
        }
    }
}

/// Quotes a word for a shell, whatever its bytes are.
#[cfg(unix)]
fn quoted(word: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let quoted = shlex::bytes::try_quote(word.as_bytes());
    quoted.map_or_else(|_| word.to_owned(), |quoted| OsString::from_vec(quoted.into_owned()))
}

#[cfg(not(unix))]
fn quoted(word: &OsStr) -> OsString {
    shlex::try_quote(&word.to_string_lossy())
        .map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned().into())
}

/// The command while it runs.
pub struct Running {
    pub child: Child,
    files: [PathBuf; 2],
    begun: Instant,
}

/// The end of a start of the command.
pub struct Ending {
    pub status: ExitStatus,
    pub output: String,
    pub words: String,
    /// Whether it was ended by force because its time was up.
    pub late: bool,
    pub time: Duration,
}

impl Running {
    /// Waits no longer than until `moment` after the start; returns `None` where the command still runs then.
    pub fn until(&mut self, moment: Duration) -> Result<Option<ExitStatus>> {
        let left = moment.saturating_sub(self.begun.elapsed());
        self.child.wait_timeout(left).context("cannot wait")
    }

    /// Waits for the end, and ends it by force once `deadline` after the start has passed.
    pub fn finish(mut self, deadline: Duration) -> Result<Ending> {
        let ended = self.until(deadline)?;
        let time = self.begun.elapsed();
        let status = match ended {
            Some(status) => status,
            None => {
                self.child.kill().context("cannot end it")?;
                self.child.wait().context("cannot wait")?
            }
        };
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let [output, words] = &self.files;
        Ok(Ending { status, output: read(output)?, words: read(words)?, late: ended.is_none(), time })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A command that was given up must not be left behind; one that has ended is left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command undisturbed in a new folder, where it must succeed. Returns the time taken.
pub fn peace(start: &Start, binary: &Path, place: &Path) -> Result<Duration> {
    fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    let logs = tempfile::tempdir().context("cannot make a temporary folder")?;
    let ending = start.spawn(binary, place, logs.path())?.finish(Duration::from_secs(300))?;
    if ending.late || !ending.status.success() {
        bail!(
            "{} fails undisturbed: {}\n{}",
            start.line(binary, place).display(),
            ending.status,
            ending.words
        );
    }
    Ok(ending.time)
}
