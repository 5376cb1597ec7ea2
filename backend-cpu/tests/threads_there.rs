//! A program that started rayon's threads itself keeps them.

use abide_core::Backend;
use abide_cpu::{CpuBackend, start_threads};

#[test]
fn threads_that_are_there_are_used() {
    rayon::ThreadPoolBuilder::new().num_threads(3).build_global().unwrap();
    assert_eq!((start_threads(), start_threads()), (Ok(()), Ok(())));
    assert_eq!(CpuBackend::new().device().multiprocessors, 3);
}
