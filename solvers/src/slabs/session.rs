//! The session of a slab.

use std::sync::Arc;

use abide_core::backend::{LinearSession, Observe};
use abide_core::communicator::Endpoint;
use abide_core::solver::{Parameters, Report, RowSlab, SlabProduct, SolveOptions, SolvePlan, SolverError};
use abide_core::{Array, Real};

use super::engine::SlabEngine;
use super::operator::SlabOperator;
use crate::engine::Engine;
use crate::session::EngineSession;

/// A [`LinearSession`] of a rank's slab: `b` and `x` are the rank's parts, and so is the report but for its times.
pub struct SlabSession<T: Real, E: Engine<T>> {
    inner: EngineSession<T, SlabEngine<E>>,
    endpoint: Endpoint,
}

impl<T: Real, E: Engine<T>> SlabSession<T, E> {
    /// Makes the slab's part of the preconditioner, while all other ranks do; `engine` computes, and `product` has the
    /// bits of [`RowSlab::product`].
    ///
    /// # Errors
    ///
    /// Those of the preconditioner, [`Error::Limit`](abide_core::Error::Limit) where the machine has no memory for what the rows
    /// read, and the error of the communicator where it failed.
    pub fn open(
        slab: &Arc<RowSlab>,
        engine: E,
        product: Box<SlabProduct<T>>,
        plan: SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Self, SolverError> {
        let engine = SlabEngine::new(engine, slab, endpoint.clone());
        let operator = Arc::new(SlabOperator::new(slab, product, endpoint.clone())?);
        let inner = EngineSession::open(engine, operator, plan, options);
        // Whatever a method made of values that never came, this is why.
        match endpoint.failed() {
            Some(failure) => Err(failure.error.into()),
            None => Ok(SlabSession { inner: inner?, endpoint }),
        }
    }
}

impl<T: Real, E: Engine<T>> LinearSession for SlabSession<T, E> {
    fn plan(&self) -> &SolvePlan {
        self.inner.plan()
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let outcome = self.inner.solve(b, x, parameters, observe);
        match self.endpoint.failed() {
            Some(failure) => Err(failure.error.into()),
            None => outcome,
        }
    }
}
