//! Slabs of a domain on devices, for tests.

use std::sync::Arc;

use abide_core::Result;
use abide_cuda::CudaBackend;
use abide_ranks::{Device, Ranked};

/// Returns a backend of slabs on the devices of these numbers.
pub fn slabs(numbers: &[usize]) -> Result<Ranked> {
    let all = CudaBackend::connected(numbers)?;
    let (single, count) = (all[0].clone(), all.len());
    let make = move |ranks: usize| {
        let device = |backend: &Arc<CudaBackend>| Device { backend: backend.clone(), weight: 1 };
        Ok(all[..ranks].iter().map(device).collect())
    };
    Ranked::new(single, count, make)
}
