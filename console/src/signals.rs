//! Signals that end a command from outside: Ctrl-C, a terminal that closes, a system that shuts down, a batch
//! queue whose time is up.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use abide::{Error, Result};

use super::ending::Ending;

/// The number of the first signal; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);
/// Whether the command looks at the first signal itself.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C, the same number everywhere.
const INTERRUPT: i32 = 2;

/// Leaves the first signal to the command from now on; the second still ends it at once.
pub fn watch() {
    WATCHED.store(true, Ordering::SeqCst);
}

/// Returns whether a signal came.
pub fn received() -> bool {
    FIRST.load(Ordering::Relaxed) != 0
}

/// Returns the exit status of a command that a signal ended, as shells define it: 130 for Ctrl-C, 143 for a
/// request to end.
pub fn status() -> u8 {
    let number = match FIRST.load(Ordering::Relaxed) {
        0 => INTERRUPT,
        number => number,
    };
    u8::try_from(128 + number).unwrap_or(1)
}

/// Returns the signal by its name.
pub fn words() -> String {
    match name(FIRST.load(Ordering::Relaxed)) {
        Some(name) => format!("interrupted by {name}"),
        None => "interrupted".to_owned(),
    }
}

/// Begins to listen. A signal that nobody watches for, and every second signal, ends the command at once,
/// after `last` is called.
pub fn listen(last: impl Fn(&Ending) + Send + 'static) -> Result<()> {
    start(move |number| {
        let is_first = FIRST.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if !(is_first && WATCHED.load(Ordering::SeqCst)) {
            FIRST.store(number, Ordering::SeqCst);
            abide::io::remove_unfinished();
            last(&Ending::interrupted("it was ended at once"));
            std::process::exit(status().into());
        }
    })
    .map_err(|e| Error::device("command", "listening for signals", e))
}

#[cfg(unix)]
fn start(take: impl Fn(i32) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    // SAFETY: no handler is installed. The signal is ignored, so that a limit on the size of files becomes an
    // error of the write.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let asked = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
    let mut signals = signal_hook::iterator::Signals::new(asked)?;
    let listener = std::thread::Builder::new().name("signals".to_owned());
    listener.spawn(move || signals.forever().for_each(take)).map(drop)
}

/// Returns whether the parent process had the signal ignored, as `nohup` does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call changes nothing, and writes the present one to memory of that
    // type.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: the call has written it; and the zeros that it was made of are a value of every field.
    known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(unix)]
fn name(signal: i32) -> Option<&'static str> {
    signal_hook::low_level::signal_name(signal)
}

#[cfg(not(unix))]
fn start(take: impl Fn(i32) + Send + 'static) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || take(INTERRUPT))
}

#[cfg(not(unix))]
fn name(signal: i32) -> Option<&'static str> {
    (signal == INTERRUPT).then_some("Ctrl-C")
}
