//! A program that was refused rayon's threads and goes on: whatever needs them is an error, nothing panics.

use std::sync::Arc;

use abide_core::backend::LinearBackend;
use abide_core::solver::{Matrix, SolveOptions};
use abide_core::{Backend, DType, Error, Options, Problem, Shape, catalogue};
use abide_cpu::{CpuBackend, Threads, start_threads, threaded_operator};
use abide_solvers::sparse::laplacian_2d;

fn is_told<T>(result: Result<T, Error>) {
    let error = result.err().expect("there are no threads").to_string();
    assert!(error.starts_with("threads: ") && error.contains("RAYON_NUM_THREADS"), "{error}");
}

#[test]
fn threads_that_are_refused_are_an_error_to_libraries_too() {
    // No system has room for stacks of that size.
    assert!(rayon::ThreadPoolBuilder::new().num_threads(2).stack_size(1 << 60).build_global().is_err());
    is_told(start_threads());
    is_told(start_threads());
    let backend = CpuBackend::new();
    assert!(backend.device().multiprocessors == 1);
    let program = catalogue::find("heat").and_then(|entry| entry.program(2)).unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[64, 64]).unwrap(), DType::F64).unwrap();
    is_told(backend.plan(&problem, &Options::default()));
    let plan = CpuBackend::reference().plan(&problem, &Options::default()).unwrap();
    is_told(backend.open(&problem, &plan, Vec::new()));
    let matrix = Matrix::from(laplacian_2d(5, 5, DType::F64).unwrap());
    is_told(backend.plan_solve(&matrix, &SolveOptions::default()));
    is_told(Threads::<f64>::new(None, 25));
    is_told(threaded_operator::<f64>(&matrix));
    // The reference needs no threads.
    let fields = vec![abide_core::Array::F64(vec![0.5; 64 * 64])];
    CpuBackend::reference().open(&problem, &plan, fields).unwrap().advance(2).unwrap();
}
