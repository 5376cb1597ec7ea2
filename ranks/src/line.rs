//! A rank's end of the fabric, as the rank and its session share it: the one exchanges planes between steps, the other
//! gathers what reductions need within them. Solvers exchange entries and gather sums within their iterations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use abide_core::backend::Gather;
use abide_core::solver::Meeting;
use abide_core::{Array, DType, Error, Result};

use crate::fabric::{Broken, Fabric};
use crate::pause::Pause;
use crate::rank::Stopped;

/// An end of the fabric with the counts of what went over it.
pub(crate) struct Line {
    /// The backend's name, for errors.
    backend: &'static str,
    pub fabric: Box<dyn Fabric>,
    /// Exchanges and gathers so far.
    pub rounds: u64,
    pub gathers: u64,
    /// Seconds of what goes over the line within steps or a solve, with the waiting for it.
    pub seconds: f64,
    /// Why something within steps or a solve failed.
    pub stopped: Option<Stopped>,
}

impl Line {
    pub fn new(backend: &'static str, fabric: Box<dyn Fabric>) -> Line {
        Line { backend, fabric, rounds: 0, gathers: 0, seconds: 0.0, stopped: None }
    }

    /// Returns the bytes that each rank gives at this point.
    pub fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, Broken> {
        let all = self.fabric.all_gather(self.gathers, own);
        self.gathers += 1;
        all
    }

    /// Returns the error of something that the fabric did not do.
    pub fn stopped(&self, when: &str, what: &str, broken: Broken) -> Stopped {
        let follows = matches!(broken, Broken::Aborted { .. } | Broken::Gone { .. });
        let operation = format!("rank {} of {}, {when}: {what}", self.fabric.rank(), self.fabric.size());
        // All ranks exchange and gather in the same order. Each counts twice, because what was lent is waited for once more.
        let is_wait = matches!(broken, Broken::Late { .. } | Broken::Aborted { .. });
        let wait = if is_wait { 2 * (self.rounds + self.gathers) } else { 0 };
        let error = Error::Device { backend: self.backend, operation, message: broken.to_string() };
        Stopped { error, follows, wait }
    }

    /// Keeps why the line stopped, and returns the error of it.
    pub fn keep(&mut self, stopped: Stopped) -> Error {
        let error = stopped.error.clone();
        self.stopped = Some(stopped);
        error
    }
}

/// The line of a rank and of its session. They never use it at the same time: the rank waits for its session's steps.
#[derive(Clone)]
pub(crate) struct SharedLine(Arc<Mutex<Line>>);

impl SharedLine {
    pub fn new(line: Line) -> SharedLine {
        SharedLine(Arc::new(Mutex::new(line)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Line> {
        // A thread that panicked has left a count at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gather for SharedLine {
    fn gather(&mut self, own: Array, values: &[usize]) -> Result<Vec<Array>> {
        let begun = Instant::now();
        let mut line = self.lock();
        let line = &mut *line;
        let round = line.gathers;
        let all = line.gather(own.as_bytes());
        line.seconds += begun.elapsed().as_secs_f64();
        let bytes = own.dtype().bytes();
        let parts = all.and_then(|all| {
            let short = all.iter().zip(values).position(|(part, values)| part.len() != values * bytes);
            match short {
                None => Ok(all),
                Some(rank) => Err(Broken::Failed(format!(
                    "rank {rank} gave {} bytes in place of {}",
                    all[rank].len(),
                    values[rank] * bytes
                ))),
            }
        });
        match parts {
            Ok(parts) => Ok(parts.iter().map(|part| array(own.dtype(), part)).collect()),
            Err(broken) => {
                let stopped =
                    line.stopped(&format!("gather {round}"), "parts of a reduction from all ranks", broken);
                Err(line.keep(stopped))
            }
        }
    }
}

impl Meeting for SharedLine {
    fn rank(&self) -> usize {
        self.lock().fabric.rank()
    }

    fn meet(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut line = self.lock();
        let round = line.gathers;
        line.gather(own).map_err(|broken| {
            let stopped = line.stopped(&format!("meeting {round}"), "the words of all ranks", broken);
            line.keep(stopped)
        })
    }

    fn until(&mut self, is_over: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        let (since, mut pause) = (Instant::now(), Pause::short());
        while !is_over()? {
            pause.pause();
            let mut line = self.lock();
            if let Err(broken) = line.fabric.check(since) {
                let when = format!("after meeting {}", line.gathers);
                let stopped = line.stopped(&when, "what all devices do together", broken);
                return Err(line.keep(stopped));
            }
        }
        Ok(())
    }
}

/// Returns the values that bytes of a message are.
pub(crate) fn array(dtype: DType, bytes: &[u8]) -> Array {
    match dtype {
        DType::F32 => Array::F32(bytemuck::pod_collect_to_vec(bytes)),
        DType::F64 => Array::F64(bytemuck::pod_collect_to_vec(bytes)),
    }
}
