//! What a device reports on a run, passed to the run.

use std::ops::ControlFlow;

use abide_core::solver::{Exhausted, Outcome, SolverError, Status};
use abide_core::{Error, Real};

use crate::run::Run;

impl Run<'_> {
    /// Passes new residuals through the run's own tests, and then handles whatever else ended the run.
    /// Returns `Break` once the run has converged.
    pub fn absorb<T: Real>(
        &mut self,
        backend: &'static str,
        outcome: &Outcome,
        residuals: &[f64],
    ) -> Result<ControlFlow<()>, SolverError> {
        // GMRES goes on from a residual that is small enough by the recurrence alone.
        let mut is_small = false;
        for &residual in residuals {
            is_small = self.converged_norm(residual)?;
        }
        let (quantity, value) = (outcome.quantity, T::from_f64(outcome.value));
        let wrong = |message: &str| Err(Error::device(backend, "running a solver", message).into());
        match outcome.status {
            Status::Running => Ok(ControlFlow::Continue(())),
            Status::Converged if is_small => Ok(ControlFlow::Break(())),
            Status::Limited if is_small => Err(self.exhausted(Exhausted::Iterations)),
            Status::Stagnant => Err(self.stagnation()),
            Status::NotFinite => Err(self.not_finite(quantity)),
            Status::NotPositive => {
                Err(self.positive(quantity, value).err().unwrap_or_else(|| self.stagnation()))
            }
            Status::Vanished => Err(self.breakdown(quantity, value)),
            Status::Lost => wrong("a block waited for another for some 20 seconds and gave up"),
            // Host and device have the same history and the same tests, and a suspicion has been looked into.
            // So these states should not be met here.
            Status::Converged
            | Status::Limited
            | Status::Ended
            | Status::Suspect
            | Status::Renew
            | Status::Confirm
            | Status::Closing => {
                wrong(&format!("the device ended the run ({:?}) where the host would not", outcome.status))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::backend::Observe;
    use abide_core::solver::{Method, Parameters, Quantity};

    use super::*;
    use crate::run::Begin;

    /// GMRES goes on if the recurred residual is small enough and the true one is not.
    #[test]
    fn a_small_residual_ends_a_run_where_the_device_says_so() {
        let parameters = Parameters { relative: 1e-3, iterations: 3, ..Parameters::default() };
        let absorbed = |status: Status, residuals: &[f64]| {
            let observe: &mut Observe<'_> = &mut |_, _| ControlFlow::Continue(());
            let begin = Run::open(
                Method::Gmres(Default::default()).profile(),
                1,
                &[1.0],
                &mut [0.0],
                |_| 1.0,
                &parameters,
                observe,
            );
            let Ok(Begin::Iterate(mut run)) = begin else { panic!("not begun") };
            run.timed(2.5);
            let outcome = Outcome { status, quantity: Quantity::Residual, value: 0.0 };
            run.absorb::<f64>("cuda", &outcome, residuals)
        };
        assert_eq!(absorbed(Status::Converged, &[1.0, 1e-4]).ok(), Some(ControlFlow::Break(())));
        assert_eq!(absorbed(Status::Running, &[1.0, 1e-4, 1e-2]).ok(), Some(ControlFlow::Continue(())));
        assert!(matches!(absorbed(Status::Stagnant, &[1.0, 1e-4]), Err(SolverError::Stagnation { .. })));
        assert!(matches!(
            absorbed(Status::Limited, &[1.0, 0.5, 0.5, 1e-4]),
            Err(SolverError::NotConverged { .. })
        ));
        let error = absorbed(Status::Stagnant, &[1.0, 1e-4]).unwrap_err();
        assert_eq!(error.report().map(|report| report.iteration_seconds), Some(2.5));
        // States that the host's own tests would not have given.
        for status in [Status::Limited, Status::Converged, Status::Ended, Status::Lost] {
            assert!(matches!(absorbed(status, &[1.0, 0.5]), Err(SolverError::Invalid(_))), "{status:?}");
        }
    }
}
