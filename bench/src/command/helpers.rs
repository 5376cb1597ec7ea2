//! Processes that compile the kernels of coming rows. NVIDIA's run-time compiler takes one kernel at a time in a
//! process, so that threads compile no faster than one; compiled kernels are kept on disk, where all processes
//! find them.
//!
//! A helper is this command again, with the same arguments and [`VARIABLE`] set. It opens the device, writes
//! [`READY`], and answers each line of its input, the numbers of a row and of one of its plans, with the same line
//! once that plan's kernels are kept. It measures nothing, writes no file, and ends when its input does, hence also
//! with the command that started it, however that ends. Rows are counted before those that a file keeps are left
//! out, so that it reads no file that is being written.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide::backend::{Compiler, Opened};
use abide::program::Problem;
use abide_console::Ending;

use crate::{Wanted, Worker, compiled_ahead, workers};

/// Set in the environment of a helper.
const VARIABLE: &str = "ABIDE_BENCH_HELPER";
/// What a helper writes once its device is open.
const READY: &str = "ready";
/// The most helpers: fewer than a large machine has threads, for the device's memory.
const MOST: usize = 16;
/// Bytes of device memory that the context of a process takes, about.
const CONTEXT: u64 = 512 << 20;
/// Helpers take at most one part in so many of the device's memory, so that the rows keep theirs.
const SHARE: u64 = 8;
/// By how much helpers stand back behind what is measured and verified.
#[cfg(unix)]
const NICE: i32 = 10;

/// Returns whether this process is a helper.
pub fn is_helper() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Does a helper's work until its input ends or makes no sense.
pub fn serve(opened: &Opened, problems: &[&Problem], wanted: impl Fn(usize) -> Wanted) {
    #[cfg(unix)]
    let _ = rustix::process::nice(NICE);
    let compiler = opened.backend.compiler();
    // Whoever reads has gone: nothing is left to do.
    let _ = answer(compiler, problems, wanted, std::io::stdin().lock(), std::io::stdout().lock());
}

fn answer(
    compiler: Option<&dyn Compiler>,
    problems: &[&Problem],
    wanted: impl Fn(usize) -> Wanted,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<()> {
    let mut say = |line: &str| writeln!(output, "{line}").and_then(|()| output.flush());
    say(READY)?;
    let mut last: Option<(usize, Wanted)> = None;
    for line in input.lines() {
        let line = line?;
        let numbers: Vec<usize> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        let [row, plan] = numbers[..] else { return Err(ErrorKind::InvalidData.into()) };
        if let (Some(compiler), Some(problem)) = (compiler, problems.get(row)) {
            // Plans of one row follow each other, and to list them takes time.
            let (_, wanted) = match last.take() {
                Some(known) if known.0 == row => last.insert(known),
                _ => last.insert((row, wanted(row))),
            };
            wanted.compile(compiler, problem, plan);
        }
        say(&line)?;
    }
    Ok(())
}

/// Calls `each` with the number of each row, in order, once the kernels that `wanted` names for it are compiled, where
/// the backend has a compiler and kernels are kept: by helpers, as many as two threads fewer than the machine has.
/// `rows` are problems with their numbers in the list that a helper makes.
///
/// Helpers do not wait for the measurements: the earlier they are done, the longer nothing runs beside.
pub fn with_helpers(
    opened: &Opened,
    rows: &[(usize, &Problem)],
    wanted: impl Fn(usize) -> Wanted + Sync,
    each: impl FnMut(usize) -> std::result::Result<(), Ending>,
) -> std::result::Result<(), Ending> {
    // What is not kept, a session compiles again.
    let compiler = opened.backend.compiler().filter(|_| abide_tuning::folder("kernels").is_some());
    let threads = workers();
    let helpers = most(threads, opened.backend.device().memory_bytes);
    let again = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).env(VARIABLE, "1");
        Ok(command)
    };
    run(compiler, [threads, helpers], again, rows, wanted, each)
}

/// Returns how many helpers there may be, by the threads that are free and the bytes of the device.
fn most(threads: usize, memory: u64) -> usize {
    let room = usize::try_from(memory / SHARE / CONTEXT).unwrap_or(MOST);
    threads.min(MOST).min(room)
}

/// The same with so many helpers, started by a command, or with so many threads where there is to be no helper.
fn run<E>(
    compiler: Option<&dyn Compiler>,
    [threads, helpers]: [usize; 2],
    command: impl Fn() -> Result<Command> + Sync,
    rows: &[(usize, &Problem)],
    wanted: impl Fn(usize) -> Wanted + Sync,
    mut each: impl FnMut(usize) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let processes = Processes::default();
    let worker = |compiler| -> Worker {
        let (processes, command) = (&processes, &command);
        // Started when first needed: a short table needs few.
        let mut helper: Option<Result<Helper>> = None;
        Box::new(move |row, plan, wanted: &Wanted| {
            let (number, problem) = rows[row];
            let start = || command().and_then(|command| processes.start(command));
            match helper
                .get_or_insert_with(|| if helpers > 0 { start() } else { Err(ErrorKind::Other.into()) })
            {
                // What ended a helper might end this process too.
                Ok(helper) => helper.compile(number, plan).is_ok(),
                Err(_) if processes.have_ended() => false,
                Err(_) => {
                    wanted.compile(compiler, problem, plan);
                    true
                }
            }
        })
    };
    let count = if helpers > 0 { helpers } else { threads };
    let workers = compiler.iter().flat_map(|&compiler| (0..count).map(move |_| compiler)).map(worker);
    let each = |row| each(row).inspect_err(|_| processes.end());
    compiled_ahead(rows.len(), wanted, workers.collect(), each)
}

/// The helpers that were started; they are ended when this is dropped.
#[derive(Default)]
struct Processes(Mutex<Started>);

#[derive(Default)]
struct Started {
    children: Vec<Child>,
    have_ended: bool,
}

/// The two ends of a helper.
struct Helper {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Processes {
    fn started(&self) -> MutexGuard<'_, Started> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a helper and waits until it is ready.
    fn start(&self, mut command: Command) -> Result<Helper> {
        // The helper's errors are dropped: the row's session meets the same ones and reports them.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut started = self.started();
        if started.have_ended {
            return Err(ErrorKind::Interrupted.into());
        }
        let mut child = command.spawn()?;
        let ends = (child.stdin.take(), child.stdout.take());
        started.children.push(child);
        drop(started);
        let (Some(input), Some(output)) = ends else { return Err(ErrorKind::BrokenPipe.into()) };
        let mut helper = Helper { input, output: BufReader::new(output) };
        helper.hear(READY)?;
        Ok(helper)
    }

    fn have_ended(&self) -> bool {
        self.started().have_ended
    }

    /// Ends all helpers, and starts no more.
    fn end(&self) {
        let mut started = self.started();
        started.have_ended = true;
        for mut child in started.children.drain(..) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

impl Helper {
    /// Has the kernels of a row's plan compiled.
    fn compile(&mut self, row: usize, plan: usize) -> Result<()> {
        let line = format!("{row} {plan}");
        writeln!(self.input, "{line}")?;
        self.hear(&line)
    }

    /// Reads until a line comes; drivers may write others.
    fn hear(&mut self, expected: &str) -> Result<()> {
        for line in (&mut self.output).lines() {
            if line? == expected {
                return Ok(());
            }
        }
        Err(Error::from(ErrorKind::UnexpectedEof))
    }
}

#[cfg(test)]
mod tests;
