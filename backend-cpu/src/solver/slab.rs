//! The session of a slab of rows, whose other rows are other ranks'.

use std::sync::Arc;

use abide_core::backend::{LinearSession, LinearSlabs};
use abide_core::communicator::Endpoint;
use abide_core::solver::{Matrix, Operator, RowSlab, SlabProduct, SolveOptions, SolvePlan, SolverError};
use abide_core::{DType, Error, Real, Result};
use abide_solvers::{Serial, SlabSession};

use super::engine::Threads;
use super::{grid, rows};
use crate::backend::CpuBackend;

/// Returns the product with a slab's rows on the threads of rayon's current pool.
fn threaded<T: Real>(slab: &RowSlab) -> Result<Box<SlabProduct<T>>> {
    let plain = slab.matrix.operator::<T>()?;
    Ok(match &slab.matrix {
        Matrix::Stored(matrix) => {
            let rows = rows::Rows::new(Arc::clone(matrix), plain);
            Box::new(move |read: &[T], product: &mut [T]| rows.apply(read, product))
        }
        Matrix::Stencil(operator) => {
            let grid = grid::Grid::of_slab(Arc::clone(operator), plain, slab);
            Box::new(move |read: &[T], product: &mut [T]| grid.apply(read, product))
        }
    })
}

impl CpuBackend {
    fn slab_session<T: Real>(
        &self,
        slab: &Arc<RowSlab>,
        plan: SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        if self.is_reference() {
            return Ok(Box::new(SlabSession::open(
                slab,
                Serial,
                slab.product::<T>(),
                plan,
                options,
                endpoint,
            )?));
        }
        let Some(pool) = self.pool() else {
            return Err(Error::unsupported(
                "backend cpu on several devices",
                "its sessions share the threads on which they would wait for each other",
                "give each rank threads of its own (CpuBackend::with_threads)",
            )
            .into());
        };
        let engine = Threads::<T>::new(Some(pool), slab.rows().len())?;
        Ok(Box::new(SlabSession::open(slab, engine, threaded(slab)?, plan, options, endpoint)?))
    }
}

impl LinearSlabs for CpuBackend {
    fn open_slab(
        &self,
        slab: &Arc<RowSlab>,
        plan: &SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        match slab.matrix.dtype() {
            DType::F32 => self.slab_session::<f32>(slab, plan.clone(), options, endpoint),
            DType::F64 => self.slab_session::<f64>(slab, plan.clone(), options, endpoint),
        }
    }
}
