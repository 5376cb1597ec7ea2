//! One execution, and the checks of it.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use crate::Target;
use crate::memory;

/// Bytes that any execution may take, whatever the length of its input.
const ANY: usize = 4 << 20;

/// Factor on times: unoptimised code on a busy machine takes long, and still ends.
const PATIENCE: u32 = if cfg!(debug_assertions) { 10 } else { 1 };

/// Runs a target on an input; the error says in one line what is wrong.
///
/// An execution that does not end in the target's time ends the process. So does one that cannot go on
/// without memory that it is refused. Both say so on standard error first.
pub fn execute(target: &Target, input: &[u8]) -> Result<(), String> {
    watch();
    Running::begin(target, input);
    memory::begin(target.most);
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let taken = memory::end();
    Running::end();
    match outcome {
        Err(panic) => Err(panicked(panic.as_ref())),
        Ok(Err(fault)) => Err(fault),
        Ok(Ok(())) => {
            if taken <= ANY {
                return Ok(());
            }
            let granted = ANY.saturating_add((target.memory)(input));
            if taken <= granted {
                return Ok(());
            }
            Err(format!(
                "takes {taken} bytes of memory for {} bytes of input; {granted} would be enough",
                input.len()
            ))
        }
    }
}

thread_local! {
    /// Place of the last panic of this thread.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PLACE.with_borrow(|place| format!("panics at {place}: {}", words.escape_debug()))
}

/// The execution that is watched.
struct Running {
    target: &'static str,
    input: Vec<u8>,
    limit: Duration,
    /// The start, by the clock and by the processor.
    begun: Option<(Instant, Duration)>,
}

static RUNNING: Mutex<Running> =
    Mutex::new(Running { target: "", input: Vec::new(), limit: Duration::ZERO, begun: None });

/// Number of time limits after which an execution is late by the clock alone, however little of the processor
/// it was given.
const WAITS: u32 = 30;

/// Returns the time that processors have worked for this process.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the clock's time, where the system reports no processor time.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

impl Running {
    fn begin(target: &Target, input: &[u8]) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.target = target.name;
        running.input.clear();
        running.input.extend_from_slice(input);
        running.limit = target.time * PATIENCE;
        running.begun = Some((Instant::now(), processor_time()));
    }

    fn end() {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).begun = None;
    }

    /// Returns whether the execution takes longer than it may. On a busy machine the clock alone says little.
    fn is_late(&self) -> bool {
        self.begun.is_some_and(|(begun, worked)| {
            let (elapsed, worked) = (begun.elapsed(), processor_time().saturating_sub(worked));
            elapsed > WAITS * self.limit || (elapsed > self.limit && worked > self.limit)
        })
    }
}

/// Starts, once, the thread that ends the process where an execution does not end. Also keeps panics for the
/// report.
fn watch() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let printed = take_hook();
        set_hook(Box::new(move |panic| {
            // Another thread's panic may reach nobody, so it is printed as usual.
            if std::thread::current().name() != Some("main") {
                printed(panic);
            }
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            PLACE.with_borrow_mut(|last| *last = place);
        }));
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(50));
                let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
                if running.is_late() {
                    let start = &running.input[..running.input.len().min(1000)];
                    eprintln!(
                        "finding: {}: does not end in its time: {}",
                        running.target,
                        start.escape_ascii()
                    );
                    std::process::abort();
                }
            }
        });
    });
}
