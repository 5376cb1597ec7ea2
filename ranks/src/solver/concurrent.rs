//! All ranks of a solve at work at the same time, each on a thread of its own.

use std::thread;

use abide_core::Error;
use abide_core::communicator::Endpoint;
use abide_core::floating::standard;
use abide_core::solver::SolverError;

/// Why a rank ended early.
pub struct Ended {
    /// The error.
    pub error: SolverError,
    /// What orders errors from the cause on, as in [`RankFailure::order`](abide_core::communicator::RankFailure::order).
    order: (bool, u64, bool),
    /// Whether the rank's thread is gone, in the middle of something.
    pub is_lost: bool,
}

/// Aborts the other ranks where the thread panics.
struct Leaving<'a>(&'a Endpoint);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abort(ENDED);
        }
    }
}

const ENDED: &str = "its thread has ended";

/// The order of an error that follows from no other.
const CAUSE: (bool, u64, bool) = (false, 0, false);

/// Runs the work of all ranks concurrently, and returns the results in the order of ranks. A rank that fails aborts all
/// others.
///
/// # Errors
///
/// The first cause: of several errors, the one from which the others follow.
pub fn together<I: Send, R: Send>(
    backend: &'static str,
    ranks: Vec<(Endpoint, I)>,
    work: impl Fn(&Endpoint, I) -> Result<R, SolverError> + Sync,
) -> Result<Vec<R>, Ended> {
    let (count, work) = (ranks.len(), &work);
    let ended = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(count);
        let mut refused = None;
        for (endpoint, input) in ranks {
            let (own, rank) = (endpoint.clone(), endpoint.rank());
            let run = move || {
                let _leaving = Leaving(&own);
                standard(|| work(&own, input)).map_err(|error| abort(&own, error))
            };
            match thread::Builder::new().name(format!("abide-rank-{rank}")).spawn_scoped(scope, run) {
                Ok(thread) => threads.push((rank, thread)),
                Err(error) => {
                    let limit = format!("what the system grants ({error})");
                    let error = Error::limit("threads of ranks", count, limit, "take fewer devices");
                    endpoint.abort(&error.to_string());
                    refused = Some(Ended { error: error.into(), order: CAUSE, is_lost: false });
                    break;
                }
            }
        }
        let ended = threads.into_iter().map(|(rank, thread)| {
            thread.join().unwrap_or_else(|_| {
                let operation = format!("rank {rank}");
                let error = Error::Device { backend, operation, message: ENDED.to_owned() };
                Err(Ended { error: error.into(), order: CAUSE, is_lost: true })
            })
        });
        let ended: Vec<_> = ended.collect();
        refused.map(Err).into_iter().chain(ended).collect::<Vec<_>>()
    });
    let mut done = Vec::with_capacity(count);
    let mut first: Option<Ended> = None;
    let mut is_lost = false;
    for ended in ended {
        match ended {
            Ok(own) => done.push(own),
            Err(own) => {
                is_lost |= own.is_lost;
                if first.as_ref().is_none_or(|first| own.order < first.order) {
                    first = Some(own);
                }
            }
        }
    }
    match first {
        Some(first) => Err(Ended { is_lost, ..first }),
        None => Ok(done),
    }
}

/// Aborts all ranks with an error, unless it only follows from theirs.
fn abort(endpoint: &Endpoint, error: SolverError) -> Ended {
    let (error, order, follows) = match endpoint.failed() {
        Some(failure) => (failure.error.clone().into(), failure.order(), failure.follows),
        None => (error, CAUSE, false),
    };
    if !follows {
        endpoint.abort(&error.to_string());
    }
    Ended { error, order, is_lost: false }
}
