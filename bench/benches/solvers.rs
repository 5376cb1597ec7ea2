//! The rate of the threaded solvers, compared with the bandwidth of plain loops.
//!
//! `cargo bench --bench solvers` prints, before criterion's own table, for the 2D Laplacian of 1000 × 999
//! cells in f64: the bandwidth of its product as a ratio to a plain copy loop's, and the time of an iteration
//! of conjugate gradients as a ratio to that of its product and its vectors' traffic at the copy loop's
//! bandwidth.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use abide::solve::{
    Exhausted, Matrix, Method, Operator, Parameters, Preconditioning, SolverError, named, random_vector,
};
use abide::{Array, Boundaries, Boundary, Choice, DType, Shape, Solve, solve::GridOperator};
use abide_cpu::threaded_operator;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;

/// Copies by `to[i] = from[i]` in a loop that the compiler leaves a loop: the factor `one`, unknown to it,
/// keeps it from a call of memcpy.
fn copy_loop(to: &mut [f64], from: &[f64], one: f64) {
    const PIECE: usize = 1 << 14;
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = one * from);
    });
}

fn seconds(body: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    body();
    begun.elapsed().as_secs_f64()
}

/// Returns the shortest of several runs: anything else that the machine does only lengthens them.
fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the seconds per iteration of conjugate gradients, over `iterations` of them.
fn iteration(system: &mut abide::System, b: &Array, iterations: usize) -> f64 {
    let parameters = Parameters { relative: 0.0, iterations, ..Parameters::DEFAULT };
    let mut x = Array::zeros(b.dtype(), b.len()).expect("a vector");
    match system.solve_with(b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(())) {
        Err(SolverError::NotConverged { limit: Exhausted::Iterations, report }) => {
            report.iteration_seconds / iterations as f64
        }
        other => panic!("a fixed number of iterations: {other:?}"),
    }
}

/// Returns the seconds of each of `iterations` iterations, from one residual to the next.
fn iterations_of(system: &mut abide::System, b: &Array, iterations: usize) -> Vec<f64> {
    let parameters = Parameters { relative: 0.0, iterations, ..Parameters::DEFAULT };
    let mut x = Array::zeros(b.dtype(), b.len()).expect("a vector");
    let mut at = Vec::with_capacity(iterations + 1);
    let outcome = system.solve_with(b, &mut x, &parameters, &mut |_, _| {
        at.push(Instant::now());
        ControlFlow::Continue(())
    });
    assert!(matches!(outcome, Err(SolverError::NotConverged { .. })), "{outcome:?}");
    at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
}

fn ratios(name: &str, matrix: &Matrix) {
    let rows = matrix.rows();
    let operator = threaded_operator::<f64>(matrix).expect("an operator of f64");
    let b = random_vector(DType::F64, rows, 1).unwrap();
    let x = b.to_f64();
    let mut y = vec![0.0; rows];
    let mut system = Solve::new(matrix.clone())
        .backend(Choice::CPU)
        .method(Method::Cg)
        .preconditioner(Preconditioning::None)
        .open()
        .expect("a system");
    // The bytes that the product reads and writes: its matrix, a vector in, a vector out.
    let bytes = matrix.bytes() + 16 * rows;
    let (from, mut to) = (vec![1.5; bytes / 16], vec![0.0; bytes / 16]);
    let one = black_box(1.0);
    let (mut copies, mut products, mut iterations) = (Vec::new(), Vec::new(), Vec::new());
    // Taken in turn, so that anything else that the machine does meets all alike.
    for _ in 0..24 {
        copies.push(seconds(|| copy_loop(&mut to, &from, one)));
        products.push(seconds(|| operator.apply(black_box(&x), &mut y)));
        iterations.extend(iterations_of(&mut system, &b, 3));
    }
    black_box((&to, &y));
    let (copy, product, cg) = (best(&copies), best(&products), best(&iterations));
    let bandwidth = bytes as f64 / copy;
    // Besides the product: (p, q) reads 2 vectors, x and r read 4 and write 2, (r, r) reads 1, p reads 2 and
    // writes 1.
    let vectors = 12.0 * 8.0 * rows as f64 / bandwidth;
    println!(
        "{name}: copy loop {:.2} GB/s; product {:.2} GB/s, ratio {:.2}; CG {:.2} ms an iteration, {:.2} times its product and \
         vector traffic ({:.2} + {:.2} ms)",
        bandwidth / 1e9,
        bytes as f64 / product / 1e9,
        copy / product,
        1e3 * cg,
        cg / (product + vectors),
        1e3 * product,
        1e3 * vectors,
    );
}

fn solvers(c: &mut Criterion) {
    let laplacian: Matrix = named::matrix("laplacian2d:1000x999", DType::F64).expect("a matrix").into();
    let free: Matrix = GridOperator::new(
        named::operator("laplacian2d").expect("a stencil"),
        Shape::new(&[1000, 999]).expect("a shape"),
        Boundaries::all(Boundary::Constant(0.0)),
        DType::F64,
    )
    .expect("an operator")
    .into();
    ratios("laplacian2d:1000x999", &laplacian);
    ratios("laplacian2d/1000x999 matrix-free", &free);
    let hpcg: Matrix = named::matrix("hpcg:64x64x64", DType::F64).expect("a matrix").into();
    let mut group = c.benchmark_group("product");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for (name, matrix) in
        [("laplacian2d:1000x999", &laplacian), ("matrix-free", &free), ("hpcg:64x64x64", &hpcg)]
    {
        let operator = threaded_operator::<f64>(matrix).expect("an operator of f64");
        let x = random_vector(DType::F64, matrix.rows(), 2).unwrap().to_f64();
        let mut y = vec![0.0; x.len()];
        group.throughput(Throughput::Bytes((matrix.bytes() + 16 * x.len()) as u64));
        group.bench_function(name, |bencher| bencher.iter(|| operator.apply(black_box(&x), &mut y)));
    }
    group.finish();
    let mut group = c.benchmark_group("iteration");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for method in Method::all() {
        let mut system =
            Solve::new(laplacian.clone()).backend(Choice::CPU).method(method).open().expect("a system");
        let b = random_vector(DType::F64, laplacian.rows(), 1).unwrap();
        group.bench_function(method.name(), |bencher| {
            bencher.iter_custom(|count| {
                let count = usize::try_from(count).unwrap_or(usize::MAX).max(2);
                Duration::from_secs_f64(iteration(&mut system, &b, count) * count as f64)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, solvers);
criterion_main!(benches);
