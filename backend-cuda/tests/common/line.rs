//! Slabs of a domain on devices, for tests.

use std::sync::Arc;

use abide_core::Result;
use abide_cuda::CudaBackend;
use abide_ranks::{Device, Ranked};

/// Returns a backend of slabs on the devices of these numbers.
#[allow(dead_code)] // Not every test that has this module takes slabs of one size.
pub fn slabs(numbers: &[usize]) -> Result<Ranked> {
    weighted(CudaBackend::connected(numbers)?.into_iter().map(|backend| (backend, 1)).collect())
}

/// Returns a backend of slabs, each on its device and as large beside the others as its weight.
pub fn weighted(all: Vec<(Arc<CudaBackend>, usize)>) -> Result<Ranked> {
    let (single, count) = (all[0].0.clone(), all.len());
    let make = move |ranks: usize| {
        let device = |(backend, weight): &(Arc<CudaBackend>, usize)| Device {
            backend: backend.clone(),
            weight: *weight,
        };
        Ok(all[..ranks].iter().map(device).collect())
    };
    Ranked::new(single, count, make)
}
