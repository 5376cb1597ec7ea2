//! The states of a run, and the quantities that can end it: one table each. The kernels of every language get
//! their constants from these tables, and hosts read by them what a device says.

use std::ops::ControlFlow;

use super::{Exhausted, Run, SolverError};
use crate::error::Error;
use crate::real::Real;

/// An enumeration that kernels know by constants. A row has a variant, its constant, and its meaning in
/// words.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($row:ident $constant:literal $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $(#[doc = concat!("`", $words, "`")] $row),*
        }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$row),*];

            /// Returns the variant of a number; `None` if there is none.
            pub fn of(number: u32) -> Option<$name> {
                $name::ALL.get(number as usize).copied()
            }

            /// Returns the name of the variant's constant in kernels.
            pub fn constant(self) -> &'static str {
                match self { $($name::$row => $constant),* }
            }

            /// Returns the variant's meaning, in words.
            pub fn words(self) -> &'static str {
                match self { $($name::$row => $words),* }
            }
        }
    };
}

numbered! {
    /// The state of a run. Some states occur on some devices only: kernels that are launched phase by phase
    /// have states between phases, and persistent kernels wait for each other.
    Status {
        Running "RUNNING" "iterating",
        Converged "CONVERGED" "the residual is small enough",
        Limited "ITERATIONS" "a limit on iterations",
        Stagnant "STAGNATION" "no progress",
        NotFinite "NOT_FINITE" "a quantity is not finite",
        NotPositive "NOT_POSITIVE" "a quantity is not positive",
        Vanished "VANISHED" "a quantity that is divided by is 0",
        Lost "LOST" "a wait was given up",
        Ended "ENDED" "ended as the history tells",
        Suspect "SUSPECT" "a recurred product is to be computed afresh",
        Renew "RENEW" "all recurred products are to be computed afresh",
        Confirm "CONFIRM" "a recurred residual is small enough: is the true one?",
        Closing "CLOSING" "GMRES's cycle is at its end",
    }
}

numbered! {
    /// The quantities that may end a run, in words as the methods' papers write them.
    Quantity {
        Residual "OF_RESIDUAL" "|r|",
        Rho "OF_RHO" "(r, M^-1 r)",
        Curvature "OF_CURVATURE" "(p, A p)",
        Form "OF_FORM" "(u, A u)",
        Shadow "OF_SHADOW" "rho = (r~, r)",
        ShadowProduct "OF_SHADOW_PRODUCT" "(r~, A M^-1 p)",
        Square "OF_SQUARE" "(t, t)",
        Omega "OF_OMEGA" "omega = (t, s) / (t, t)",
        Basis "OF_BASIS" "A M^-1 v",
        Determinant "OF_DETERMINANT" "the Hessenberg matrix's determinant",
        Next "OF_NEXT" "the next basis vector",
        TrueResidual "OF_TRUE_RESIDUAL" "|b - A x|",
        RightHandSide "OF_RIGHT_HAND_SIDE" "|b|",
    }
}

/// A device's statement on a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The state of the run.
    pub status: Status,
    /// The quantity that ended the run.
    pub quantity: Quantity,
    /// The value of that quantity.
    pub value: f64,
}

impl Status {
    /// Returns whether the run waits for a phase that looks into a recurred value or ends a cycle.
    pub fn awaits_mending(self) -> bool {
        matches!(self, Status::Suspect | Status::Renew | Status::Confirm | Status::Closing)
    }
}

impl Outcome {
    /// Passes new residuals through the run's own tests, and then handles whatever else ended the run.
    /// Returns `Break` once the run has converged.
    pub fn told<T: Real>(
        &self,
        backend: &'static str,
        run: &mut Run<'_>,
        residuals: &[f64],
    ) -> Result<ControlFlow<()>, SolverError> {
        // GMRES goes on from a residual that is small enough by the recurrence alone.
        let mut is_small = false;
        for &residual in residuals {
            is_small = run.converged_norm(residual)?;
        }
        let (quantity, value) = (self.quantity, T::from_f64(self.value));
        let wrong = |message: &str| Err(Error::device(backend, "running a solver", message).into());
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
                wrong(&format!("the device ended the run ({:?}) where the host would not", self.status))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::{Begin, Method, Observe, Parameters};

    #[test]
    fn numbers_count_the_rows() {
        for (number, &status) in Status::ALL.iter().enumerate() {
            assert_eq!((status as usize, Status::of(number as u32)), (number, Some(status)));
        }
        for (number, &quantity) in Quantity::ALL.iter().enumerate() {
            assert_eq!((quantity as usize, Quantity::of(number as u32)), (number, Some(quantity)));
        }
        assert_eq!((Status::of(99), Quantity::of(99)), (None, None));
    }

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
            outcome.told::<f64>("cuda", &mut run, residuals)
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
