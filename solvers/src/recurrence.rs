//! The recurrence of Chebyshev polynomials: of the iteration, and of the preconditioner.

use abide_core::Real;
use abide_core::solver::Bounds;

/// The coefficients of `d <- old d + new z`, where z is the preconditioned residual; computed in f64 and
/// rounded once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recurrence {
    centre: f64,
    half: f64,
    rho: f64,
}

impl Recurrence {
    pub fn new(bounds: Bounds) -> Self {
        let (centre, half) = ((bounds.high() + bounds.low()) / 2.0, (bounds.high() - bounds.low()) / 2.0);
        Recurrence { centre, half, rho: half / centre }
    }

    /// Returns the factor of the first residual.
    pub fn first<T: Real>(&self) -> T {
        T::from_f64(1.0 / self.centre)
    }

    /// Returns the factors of the old direction and of the residual in the next step.
    pub fn step<T: Real>(&mut self) -> (T, T) {
        // rho / half = 1 / (2 centre - half rho_before) has a limit if the interval is a point; 1 / half has
        // none.
        let over_half = 1.0 / (2.0 * self.centre - self.half * self.rho);
        let next = self.half * over_half;
        let factors = (T::from_f64(next * self.rho), T::from_f64(2.0 * over_half));
        self.rho = next;
        factors
    }
}

/// Returns the factors of the polynomial preconditioner of a degree: that of the first residual, then those
/// of the old direction and of the residual in each step. They are computed in f64;
/// [`ChebyshevPolynomial`](crate::ChebyshevPolynomial) rounds each once.
pub fn polynomial_factors(bounds: Bounds, degree: usize) -> Vec<f64> {
    let mut recurrence = Recurrence::new(bounds);
    let first = recurrence.first();
    let steps = (0..degree).flat_map(|_| {
        let (old, new) = recurrence.step::<f64>();
        [old, new]
    });
    std::iter::once(first).chain(steps).collect()
}
