//! A rank's end of the communicator, as the rank and its session share it: the one exchanges planes between steps, the other
//! gathers what reductions need within them. Solvers exchange entries and gather sums within their iterations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use abide_core::backend::{AllGather, PeerCommunicator};
use abide_core::{Array, DType, Error, Result};

use crate::communicator::{CommError, Communicator};
use crate::pause::Pause;
use crate::rank::RankFailure;

/// An end of the communicator with the counts of what went over it.
pub(crate) struct Endpoint {
    /// The backend's name, for errors.
    backend: &'static str,
    pub communicator: Box<dyn Communicator>,
    /// Exchanges and gathers so far.
    pub rounds: u64,
    pub gathers: u64,
    /// Seconds of what goes over the endpoint within steps or a solve, with the waiting for it.
    pub seconds: f64,
    /// Why something within steps or a solve failed.
    pub stopped: Option<RankFailure>,
}

impl Endpoint {
    pub fn new(backend: &'static str, communicator: Box<dyn Communicator>) -> Endpoint {
        Endpoint { backend, communicator, rounds: 0, gathers: 0, seconds: 0.0, stopped: None }
    }

    /// Returns the bytes that each rank gives at this point.
    pub fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.communicator.all_gather(self.gathers, own);
        self.gathers += 1;
        all
    }

    /// Returns the error of something that the communicator did not do.
    pub fn stopped(&self, when: &str, what: &str, broken: CommError) -> RankFailure {
        let follows = matches!(broken, CommError::Aborted { .. } | CommError::Gone { .. });
        let operation =
            format!("rank {} of {}, {when}: {what}", self.communicator.rank(), self.communicator.size());
        // All ranks exchange and gather in the same order. Each counts twice, because a rank waits once more, for its
        // exports to be copied.
        let is_wait = matches!(broken, CommError::Late { .. } | CommError::Aborted { .. });
        let wait = if is_wait { 2 * (self.rounds + self.gathers) } else { 0 };
        let error = Error::Device { backend: self.backend, operation, message: broken.to_string() };
        RankFailure { error, follows, wait }
    }

    /// Keeps why the endpoint stopped, and returns the error of it.
    pub fn keep(&mut self, stopped: RankFailure) -> Error {
        let error = stopped.error.clone();
        self.stopped = Some(stopped);
        error
    }
}

/// The endpoint that a rank and its session share. They never use it at the same time: the rank waits for its session's
/// steps.
#[derive(Clone)]
pub(crate) struct SharedEndpoint(Arc<Mutex<Endpoint>>);

impl SharedEndpoint {
    pub fn new(endpoint: Endpoint) -> SharedEndpoint {
        SharedEndpoint(Arc::new(Mutex::new(endpoint)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Endpoint> {
        // A thread that panicked has left a count at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AllGather for SharedEndpoint {
    fn gather(&mut self, own: Array, values: &[usize]) -> Result<Vec<Array>> {
        let begun = Instant::now();
        let mut endpoint = self.lock();
        let endpoint = &mut *endpoint;
        let round = endpoint.gathers;
        let all = endpoint.gather(own.as_bytes());
        endpoint.seconds += begun.elapsed().as_secs_f64();
        let bytes = own.dtype().bytes();
        let parts = all.and_then(|all| {
            let short = all.iter().zip(values).position(|(part, values)| part.len() != values * bytes);
            match short {
                None => Ok(all),
                Some(rank) => Err(CommError::Failed(format!(
                    "rank {rank} gave {} bytes in place of {}",
                    all[rank].len(),
                    values[rank] * bytes
                ))),
            }
        });
        match parts {
            Ok(parts) => Ok(parts.iter().map(|part| array(own.dtype(), part)).collect()),
            Err(broken) => {
                let stopped = endpoint.stopped(
                    &format!("gather {round}"),
                    "parts of a reduction from all ranks",
                    broken,
                );
                Err(endpoint.keep(stopped))
            }
        }
    }
}

impl PeerCommunicator for SharedEndpoint {
    fn rank(&self) -> usize {
        self.lock().communicator.rank()
    }

    fn meet(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut endpoint = self.lock();
        let round = endpoint.gathers;
        endpoint.gather(own).map_err(|broken| {
            let stopped = endpoint.stopped(&format!("all_gather {round}"), "the words of all ranks", broken);
            endpoint.keep(stopped)
        })
    }

    fn until(&mut self, is_over: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        let (since, mut pause) = (Instant::now(), Pause::short());
        while !is_over()? {
            pause.pause();
            let mut endpoint = self.lock();
            if let Err(broken) = endpoint.communicator.check(since) {
                let when = format!("after all_gather {}", endpoint.gathers);
                let stopped = endpoint.stopped(&when, "what all devices do together", broken);
                return Err(endpoint.keep(stopped));
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
