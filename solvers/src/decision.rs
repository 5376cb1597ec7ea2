//! The decision of the first of several processes that jointly solve a linear system.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::backend::Observe;
use abide_core::communicator::Endpoint;
use abide_core::solver::SolverError;
use abide_core::{Error, Result};

/// What the first process's observer has decided for all: the iteration with which the solve ends.
#[derive(Clone)]
pub struct Decision {
    is_first: bool,
    /// [`NEVER`] while the solve goes on.
    last: Arc<AtomicUsize>,
}

const NEVER: usize = usize::MAX;

impl Decision {
    /// Returns the decision of a new solve, as a peer of this number has it: to go on.
    pub fn new(rank: usize) -> Decision {
        Decision { is_first: rank == 0, last: Arc::new(AtomicUsize::new(NEVER)) }
    }

    /// Returns an observer that passes everything on to `observe`, and ends the solve where the first process's
    /// observer ended it.
    pub fn observer<'o>(
        &self,
        observe: &'o mut Observe<'_>,
    ) -> impl FnMut(usize, f64) -> ControlFlow<()> + Send + 'o {
        let Decision { is_first, last } = self.clone();
        move |iteration, residual| {
            let own = observe(iteration, residual);
            if is_first && own.is_break() {
                last.fetch_min(iteration, Ordering::Relaxed);
            }
            match iteration < last.load(Ordering::Relaxed) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        }
    }

    /// Passes a launch's final state to the run. The first process does so before the others, and sends them its
    /// decision.
    ///
    /// # Errors
    ///
    /// The errors of `report` and of the communicator.
    pub fn told<R>(
        &self,
        endpoint: &Endpoint,
        report: impl FnOnce() -> Result<R, SolverError>,
    ) -> Result<R, SolverError> {
        if self.is_first {
            let reported = report();
            endpoint.all_gather_bytes(&(self.last.load(Ordering::Relaxed) as u64).to_le_bytes())?;
            return reported;
        }
        let all = endpoint.all_gather_bytes(&[])?;
        let word = all.first().and_then(|first| first[..].try_into().ok()).map(u64::from_le_bytes);
        let Some(last) = word else {
            let change = "start one version of Abide everywhere";
            return Err(
                Error::invalid("the decision of the first process", "it is of another kind", change).into()
            );
        };
        self.last.store(usize::try_from(last).unwrap_or(NEVER), Ordering::Relaxed);
        report()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Instant;

    use abide_core::communicator::{CommError, Communicator, Tag};
    use abide_core::solver::{Method, Parameters, SolverError};

    use super::*;
    use crate::run::{Begin, Run};

    /// One of two peers on threads.
    struct Pair {
        rank: usize,
        to: Sender<Vec<u8>>,
        from: Receiver<Vec<u8>>,
    }

    impl Communicator for Pair {
        fn rank(&self) -> usize {
            self.rank
        }

        fn size(&self) -> usize {
            2
        }

        fn send(&mut self, to: usize, _: Tag, bytes: Vec<u8>) -> std::result::Result<(), CommError> {
            self.to.send(bytes).map_err(|_| CommError::Gone { rank: to })
        }

        fn receive(&mut self, from: usize, _: Tag) -> std::result::Result<Vec<u8>, CommError> {
            self.from.recv().map_err(|_| CommError::Gone { rank: from })
        }

        fn check(&mut self, _: Instant) -> std::result::Result<(), CommError> {
            Ok(())
        }

        fn abort(&mut self, _: &str) {}
    }

    fn endpoint(rank: usize, to: Sender<Vec<u8>>, from: Receiver<Vec<u8>>) -> Endpoint {
        Endpoint::new("test", Box::new(Pair { rank, to, from }))
    }

    /// Passes residuals to a run in launches of five, with an observer that ends it at an iteration. Returns how it
    /// ended, and all that the observer saw.
    fn run(endpoint: &Endpoint, ends: usize) -> (Result<(), SolverError>, Vec<usize>) {
        let (mut seen, decision) = (Vec::new(), Decision::new(endpoint.rank()));
        let mut observe = |iteration, _| {
            seen.push(iteration);
            if iteration >= ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = {
            let mut observe = decision.observer(&mut observe);
            let (parameters, mut x) = (Parameters { relative: 1e-9, ..Parameters::DEFAULT }, [0.0]);
            let begun =
                Run::open(Method::Cg.profile(), 1, &[1.0], &mut x, |_| 1.0, &parameters, &mut observe);
            let Ok(Begin::Iterate(mut run)) = begun else { panic!("a run of something") };
            (0..4).try_for_each(|launch| {
                let residuals: Vec<f64> = (0..5).map(|at| 0.9_f64.powi(launch * 5 + at)).collect();
                let report =
                    || residuals.iter().try_for_each(|&residual| run.converged_norm(residual).map(drop));
                decision.told(endpoint, report)
            })
        };
        (outcome, seen)
    }

    /// Whatever the second peer's observer says, both end where that of the first does.
    #[test]
    fn the_first_decides_for_all() {
        for (first, second, last) in
            [(7, 99, Some(7)), (99, 3, None), (5, 5, Some(5)), (0, 99, Some(0)), (19, 2, Some(19))]
        {
            let ((to_second, from_first), (to_first, from_second)) = (channel(), channel());
            let (own, other) = (endpoint(0, to_second, from_second), endpoint(1, to_first, from_first));
            let ended = thread::scope(|scope| {
                let other = scope.spawn(|| run(&other, second));
                [run(&own, first), other.join().unwrap()]
            });
            for (outcome, seen) in ended {
                match last {
                    Some(last) => {
                        let error = outcome.unwrap_err();
                        assert!(matches!(error, SolverError::Stopped { .. }), "{error}");
                        assert_eq!(error.report().map(|report| report.iterations), Some(last));
                        assert_eq!(seen, (0..=last).collect::<Vec<_>>());
                    }
                    None => assert!(outcome.is_ok() && seen.len() == 20),
                }
            }
        }
    }

    /// A peer ends where the other is gone.
    #[test]
    fn a_peer_that_is_alone_ends() {
        for rank in [0, 1] {
            let ((to, _), (_, from)) = (channel(), channel());
            let (outcome, _) = run(&endpoint(rank, to, from), 99);
            assert!(matches!(outcome, Err(SolverError::Invalid(Error::Device { .. }))), "{outcome:?}");
        }
    }
}
