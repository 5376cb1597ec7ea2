//! What came back from a launch, and what it means.

use std::ops::ControlFlow;

use abide_core::solver::{Exhausted, Run, SolverError};
use abide_core::{Error, Real};
use abide_shaders::cuda::QUANTITIES;

/// The kernels' `Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    Converged,
    /// A limit on iterations.
    Limited,
    Stagnant,
    NotFinite,
    NotPositive,
    Vanished,
    /// A wait was given up.
    Lost,
    Unknown(i32),
}

/// The kernels' `State`, as far as the host reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    pub value: f64,
    pub true_square: f64,
    pub length: u32,
    pub status: Status,
    pub quantity: usize,
}

/// Where in a `State` its words begin: behind eleven doubles.
const WORDS: usize = 11 * 8;

/// Bytes of the kernels' `State`: the doubles, and four words.
pub const STATE_BYTES: usize = WORDS + 4 * 4;

/// The state before the first launch: no residual yet.
pub fn fresh() -> Vec<u8> {
    let mut bytes = vec![0; STATE_BYTES];
    bytes[..8].copy_from_slice(&f64::INFINITY.to_ne_bytes());
    bytes
}

impl State {
    /// Reads a `State`; nothing where the bytes are not as many.
    pub fn read(bytes: &[u8]) -> Option<State> {
        let double = |number: usize| bytes.get(8 * number..)?.first_chunk().map(|b| f64::from_ne_bytes(*b));
        let word =
            |number: usize| bytes.get(WORDS + 4 * number..)?.first_chunk().map(|b| i32::from_ne_bytes(*b));
        let status = match word(2)? {
            0 => Status::Running,
            1 => Status::Converged,
            2 => Status::Limited,
            3 => Status::Stagnant,
            4 => Status::NotFinite,
            5 => Status::NotPositive,
            6 => Status::Vanished,
            7 => Status::Lost,
            other => Status::Unknown(other),
        };
        Some(State {
            value: double(7)?,
            true_square: double(8)?,
            length: word(0)? as u32,
            status,
            quantity: word(3)? as usize,
        })
    }

    /// Passes new residuals through the run's own tests, and then what else ended it. `Break` once it has
    /// converged.
    pub fn told<T: Real>(
        &self,
        run: &mut Run<'_>,
        residuals: &[f64],
    ) -> Result<ControlFlow<()>, SolverError> {
        // GMRES goes on from a residual that is small enough by the recurrence alone.
        let mut is_small = false;
        for &residual in residuals {
            is_small = run.converged_norm(residual)?;
        }
        let quantity = QUANTITIES.get(self.quantity).copied().unwrap_or(QUANTITIES[0]);
        let value = T::from_f64(self.value);
        match self.status {
            Status::Running => Ok(ControlFlow::Continue(())),
            Status::Converged if is_small => Ok(ControlFlow::Break(())),
            Status::Limited if is_small => Err(run.exhausted(Exhausted::Iterations)),
            Status::Stagnant => Err(run.stagnation()),
            Status::NotFinite => Err(run.not_finite(quantity)),
            Status::NotPositive => {
                Err(run.positive(quantity, value).err().unwrap_or_else(|| run.stagnation()))
            }
            Status::Vanished => Err(run.breakdown(quantity, value)),
            Status::Lost => {
                let message = "a block waited for another for some 20 seconds and gave up";
                Err(Error::device("cuda", "running a persistent solver", message).into())
            }
            // The history is the same here and there, and so are the tests.
            Status::Limited | Status::Converged | Status::Unknown(_) => {
                let message =
                    format!("the device ended the run ({:?}) where the host would not", self.status);
                Err(Error::device("cuda", "running a persistent solver", message).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::solver::{Begin, Method, Observe, Parameters};

    use super::*;

    #[test]
    fn a_state_is_read_as_the_kernels_write_it() {
        let mut bytes = fresh();
        assert_eq!(State::read(&bytes).map(|state| state.status), Some(Status::Running));
        bytes[56..64].copy_from_slice(&2.5_f64.to_ne_bytes());
        bytes[64..72].copy_from_slice(&0.25_f64.to_ne_bytes());
        for (place, word) in [(88, 9_i32), (96, 5), (100, 2)] {
            bytes[place..place + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let state =
            State { value: 2.5, true_square: 0.25, length: 9, status: Status::NotPositive, quantity: 2 };
        assert_eq!(State::read(&bytes), Some(state));
        assert_eq!(State::read(&bytes[1..]), None);
    }

    /// GMRES goes on where the recurred residual was small enough and the true one was not.
    #[test]
    fn a_small_residual_ends_a_run_where_the_device_says_so() {
        let parameters = Parameters { relative: 1e-3, iterations: 3, ..Parameters::default() };
        let told = |status: Status, residuals: &[f64]| {
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
            let state = State { value: 0.0, true_square: 0.0, length: 0, status, quantity: 0 };
            state.told::<f64>(&mut run, residuals)
        };
        assert_eq!(told(Status::Converged, &[1.0, 1e-4]).ok(), Some(ControlFlow::Break(())));
        assert_eq!(told(Status::Running, &[1.0, 1e-4, 1e-2]).ok(), Some(ControlFlow::Continue(())));
        assert!(matches!(told(Status::Stagnant, &[1.0, 1e-4]), Err(SolverError::Stagnation { .. })));
        assert!(matches!(
            told(Status::Limited, &[1.0, 0.5, 0.5, 1e-4]),
            Err(SolverError::NotConverged { .. })
        ));
        let error = told(Status::Stagnant, &[1.0, 1e-4]).unwrap_err();
        assert_eq!(error.report().map(|report| report.iteration_seconds), Some(2.5));
        // What the host's own tests would not have ended.
        assert!(matches!(told(Status::Limited, &[1.0, 0.5]), Err(SolverError::Invalid(_))));
        assert!(matches!(told(Status::Converged, &[1.0, 0.5]), Err(SolverError::Invalid(_))));
    }
}
