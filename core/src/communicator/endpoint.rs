//! A rank's end of the communicator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::{CommError, Communicator, Pause, Tag, What};
use crate::error::{Error, Result};
use crate::real::{Array, DType};

/// Why a rank stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFailure {
    /// The error, which names the rank.
    pub error: Error,
    /// Whether the rank stopped only because another one had.
    pub follows: bool,
    /// The wait that failed, by its own deadline or because another rank aborted, numbered in the order in which
    /// all ranks wait; 0 for any other reason.
    pub wait: u64,
}

impl RankFailure {
    /// Returns whether this is nearer to the cause than another rank's reason.
    pub fn is_before(&self, other: &RankFailure) -> bool {
        self.order() < other.order()
    }

    /// Returns what orders reasons from the cause on: a fault, a rank that is gone, then waits. The rank that stands earliest
    /// holds all others up, whichever of them is the first to reach its deadline.
    pub fn order(&self) -> (bool, u64, bool) {
        (self.follows || self.wait > 0, self.wait, self.follows)
    }
}

impl From<Error> for RankFailure {
    fn from(error: Error) -> Self {
        RankFailure { error, follows: false, wait: 0 }
    }
}

/// A rank's end of the communicator, which the rank shares with its session or its solver: clones are the same endpoint.
///
/// The rank exchanges planes between steps; its session gathers parts of reductions within them, and solvers exchange entries
/// and gather sums within their iterations. They never do so at the same time: the rank waits for its session. What a
/// session or a solver calls is timed, and its first failure is kept: later calls but [`Endpoint::broadcast`] return that
/// error at once, and send nothing.
#[derive(Clone)]
pub struct Endpoint(Arc<Mutex<State>>);

struct State {
    /// The backend's name, for errors.
    backend: &'static str,
    communicator: Box<dyn Communicator>,
    /// Exchanges and gathers so far.
    rounds: u64,
    gathers: u64,
    /// Seconds of the session's calls, with the waiting.
    seconds: f64,
    /// Why one of them failed.
    failed: Option<RankFailure>,
}

impl Endpoint {
    /// Makes the endpoint of a backend's rank.
    pub fn new(backend: &'static str, communicator: Box<dyn Communicator>) -> Endpoint {
        Endpoint(Arc::new(Mutex::new(State::new(backend, communicator))))
    }

    /// Connects the rank with the others anew, and discards the former state.
    pub fn reconnect(&self, communicator: Box<dyn Communicator>) {
        let mut state = self.lock();
        *state = State::new(state.backend, communicator);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left a count at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rank, counted from 0.
    pub fn rank(&self) -> usize {
        self.lock().communicator.rank()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.lock().communicator.size()
    }

    /// Returns whether the ranks share an address space.
    pub fn shares_memory(&self) -> bool {
        self.lock().communicator.shares_memory()
    }

    /// Returns the values that each rank gives, in the order of ranks, and of each rank as many as `values` says. Each
    /// rank calls it as often as all others.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where a rank gives up, is gone, gives something else, or nothing comes from it within a deadline.
    pub fn all_gather(&self, own: &Array, values: &[usize]) -> Result<Vec<Array>> {
        self.call(|state| {
            state.check_sound()?;
            let (round, bytes) = (state.gathers, own.dtype().bytes());
            let all = state.gather(own.as_bytes()).and_then(|all| {
                let short = all.iter().zip(values).position(|(part, values)| part.len() != values * bytes);
                match short.map(|rank| (rank, all[rank].len(), values[rank] * bytes)) {
                    None => Ok(all),
                    Some((rank, given, expected)) => {
                        let reason = format!("rank {rank} gave {given} bytes in place of {expected}");
                        Err(CommError::Failed(reason))
                    }
                }
            });
            let what = "parts of a reduction from all ranks";
            let all = all.map_err(|error| state.failure(&format!("gather {round}"), what, error))?;
            Ok(all.iter().map(|part| Array::from_bytes(own.dtype(), part)).collect())
        })
    }

    /// Returns the bytes that each rank gives, in the order of ranks. Each rank calls it as often as all others.
    ///
    /// # Errors
    ///
    /// Those of [`Endpoint::all_gather`].
    pub fn all_gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.call(|state| {
            state.check_sound()?;
            let round = state.gathers;
            let all = state.gather(own);
            all.map_err(|error| {
                state.failure(&format!("all_gather {round}"), "the words of all ranks", error)
            })
        })
    }

    /// Sends values to some ranks, and returns those that come from others: as many of the type from each as `received` says,
    /// in its order. Each rank calls it as often as all others.
    ///
    /// # Errors
    ///
    /// Those of [`Endpoint::all_gather`].
    pub fn neighbour_exchange(
        &self,
        dtype: DType,
        sent: &[(usize, Array)],
        received: &[(usize, usize)],
    ) -> Result<Vec<Array>> {
        let sent = sent.iter().map(|(to, values)| (*to, values.as_bytes().to_vec())).collect();
        let received: Vec<_> =
            received.iter().map(|(from, values)| (*from, values * dtype.bytes())).collect();
        self.call(|state| {
            state.check_sound()?;
            state.rounds += 1;
            let all = state.communicator.neighbour_exchange(state.rounds, sent, &received);
            let all = all.map_err(|(message, error)| {
                let when = format!("exchange {}", state.rounds);
                state.failure(&when, &format!("entries of a vector {message}"), error)
            })?;
            Ok(all.iter().map(|bytes| Array::from_bytes(dtype, bytes)).collect())
        })
    }

    /// Returns the byte that rank 0 gives. After a failure it still sends and receives, because the other ranks may wait for
    /// this byte before they meet their own failure.
    ///
    /// # Errors
    ///
    /// Those of [`Endpoint::all_gather`].
    pub fn broadcast(&self, own: u8) -> Result<u8> {
        self.call(|state| {
            let round = state.gathers;
            let first = state.broadcast(own);
            first.map_err(|error| {
                state.failure(&format!("gather {round}"), "whether to go on, from rank 0", error)
            })
        })
    }

    /// Polls, with pauses, until a joint operation of all devices is over.
    ///
    /// # Errors
    ///
    /// The errors of `is_over`, and those of [`Endpoint::all_gather`].
    pub fn until(&self, mut is_over: impl FnMut() -> Result<bool>) -> Result<()> {
        let (since, mut pause) = (Instant::now(), Pause::short());
        while !is_over()? {
            pause.pause();
            self.call(|state| {
                let checked = state.communicator.check(since);
                checked.map_err(|error| {
                    let when = format!("after all_gather {}", state.gathers);
                    state.failure(&when, "what all devices do together", error)
                })
            })?;
        }
        Ok(())
    }

    /// Calls the communicator for a session: adds to its seconds, and keeps the first failure.
    fn call<R>(&self, call: impl FnOnce(&mut State) -> Result<R, RankFailure>) -> Result<R> {
        let begun = Instant::now();
        let mut state = self.lock();
        let answer = call(&mut state);
        state.seconds += begun.elapsed().as_secs_f64();
        answer.map_err(|failure| state.failed.get_or_insert(failure).error.clone())
    }

    /// Returns the first failure of the session's calls.
    pub fn failed(&self) -> Option<RankFailure> {
        self.lock().failed.clone()
    }

    /// Returns the seconds of the session's calls since this was last called.
    pub fn take_seconds(&self) -> f64 {
        std::mem::take(&mut self.lock().seconds)
    }
}

/// What a rank does itself, outside of its session's calls.
impl Endpoint {
    /// Returns the bytes that each rank gives at this point, of which `when` says in errors when that is.
    ///
    /// # Errors
    ///
    /// Why the communicator failed.
    pub fn all_gather_at(&self, when: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, RankFailure> {
        let mut state = self.lock();
        state.gather(own).map_err(|error| state.failure(when, "all ranks", error))
    }

    /// Begins the next exchange of planes.
    pub fn begin_round(&self) {
        self.lock().rounds += 1;
    }

    /// Calls the communicator with the tag of a message of the current exchange.
    pub fn in_round<R>(&self, what: What, call: impl FnOnce(&mut dyn Communicator, Tag) -> R) -> R {
        let mut state = self.lock();
        let tag = Tag { round: state.rounds, what };
        call(&mut *state.communicator, tag)
    }

    /// Returns the number of the current exchange, counted from 1.
    pub fn round(&self) -> u64 {
        self.lock().rounds
    }

    /// Returns the failure of something that the communicator did not do.
    pub fn failure(&self, when: &str, what: &str, error: CommError) -> RankFailure {
        self.lock().failure(when, what, error)
    }

    /// Checks whether the rank may keep waiting, as [`Communicator::check`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Communicator::check`].
    pub fn check(&self, since: Instant) -> Result<(), CommError> {
        self.lock().communicator.check(since)
    }

    /// Aborts all ranks, for a reason.
    pub fn abort(&self, reason: &str) {
        self.lock().communicator.abort(reason);
    }
}

impl State {
    fn new(backend: &'static str, communicator: Box<dyn Communicator>) -> State {
        State { backend, communicator, rounds: 0, gathers: 0, seconds: 0.0, failed: None }
    }

    fn check_sound(&self) -> Result<(), RankFailure> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.communicator.all_gather(self.gathers, own);
        self.gathers += 1;
        all
    }

    fn broadcast(&mut self, own: u8) -> Result<u8, CommError> {
        // A gather of one rank's part: all ranks count it.
        let tag = Tag { round: self.gathers, what: What::Gathered };
        self.gathers += 1;
        if self.communicator.rank() > 0 {
            return match self.communicator.receive(0, tag)?[..] {
                [first] => Ok(first),
                ref bytes => Err(CommError::Failed(format!("the word of rank 0 has {} bytes", bytes.len()))),
            };
        }
        (1..self.communicator.size()).try_for_each(|to| self.communicator.send(to, tag, vec![own]))?;
        Ok(own)
    }

    fn failure(&self, when: &str, what: &str, error: CommError) -> RankFailure {
        let follows = matches!(error, CommError::Aborted { .. } | CommError::Gone { .. });
        let operation =
            format!("rank {} of {}, {when}: {what}", self.communicator.rank(), self.communicator.size());
        // All ranks exchange and gather in the same order. Each counts twice, because a rank waits once more, for its
        // exports to be copied.
        let is_wait = matches!(error, CommError::Late { .. } | CommError::Aborted { .. });
        let wait = if is_wait { 2 * (self.rounds + self.gathers) } else { 0 };
        let error = Error::Device { backend: self.backend, operation, message: error.to_string() };
        RankFailure { error, follows, wait }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Rank 1 of two, to which rank 0 sends four bytes, but nothing from round 2 on. It counts what it is asked.
    struct Alone(Arc<AtomicUsize>);

    impl Communicator for Alone {
        fn rank(&self) -> usize {
            1
        }

        fn size(&self) -> usize {
            2
        }

        fn send(&mut self, _: usize, _: Tag, _: Vec<u8>) -> Result<(), CommError> {
            Ok(())
        }

        fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            if tag.round < 2 { Ok(vec![0; 4]) } else { Err(CommError::Gone { rank: from }) }
        }

        fn check(&mut self, _: Instant) -> Result<(), CommError> {
            Ok(())
        }

        fn abort(&mut self, _: &str) {}
    }

    #[test]
    fn the_first_failure_is_kept_and_later_calls_return_it() {
        let asked = Arc::new(AtomicUsize::new(0));
        let endpoint = Endpoint::new("test", Box::new(Alone(asked.clone())));
        let values = Array::F32(vec![1.0]);
        let exchange = || endpoint.neighbour_exchange(DType::F32, &[(0, values.clone())], &[(0, 1)]);
        assert_eq!(endpoint.all_gather(&values, &[1, 1]), Ok(vec![Array::F32(vec![0.0]), values.clone()]));
        assert_eq!(exchange(), Ok(vec![Array::F32(vec![0.0])]));
        assert!(endpoint.failed().is_none());
        let first = exchange().unwrap_err();
        let operation = "rank 1 of 2, exchange 2: entries of a vector from rank 0";
        assert_eq!(first, Error::device("test", operation, "rank 0 is gone"));
        assert_eq!(endpoint.failed(), Some(RankFailure { error: first.clone(), follows: true, wait: 0 }));
        assert_eq!(
            (exchange(), endpoint.all_gather(&values, &[1, 1])),
            (Err(first.clone()), Err(first.clone()))
        );
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        // Others may wait for this byte still.
        assert_eq!(endpoint.broadcast(0), Err(first));
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        endpoint.reconnect(Box::new(Alone(asked)));
        assert!(endpoint.failed().is_none() && exchange().is_ok());
    }
}
