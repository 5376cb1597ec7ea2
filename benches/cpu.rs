//! How fast the threaded path is, and how close to what a plain copy loop moves.
//!
//! `cargo bench -p abide-cpu --bench cpu` prints, before criterion's own table, the ratio of the bandwidth of 2d5pt
//! (8192², f64, a value read and a value written a cell) to that of a copy by the same threads in an ordinary loop.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::{Array, Backend, Options, Problem, Session, Shape, catalogue};
use abide_cpu::{CpuBackend, reference};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;

/// A value in 0..1 that looks random.
fn noise(i: usize) -> f64 {
    let mixed = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// Non-trivial values, first touched by the threads that will work on them.
fn values(len: usize) -> Vec<f64> {
    (0..len).into_par_iter().map(noise).collect()
}

fn problem(name: &str, extents: &[usize], dtype: abide_core::DType) -> Problem {
    let program =
        catalogue::find(name).and_then(|entry| entry.program(extents.len())).expect("an entry of the catalogue");
    Problem::new(Arc::new(program), Shape::new(extents).expect("a shape"), dtype).expect("a problem")
}

fn session(problem: &Problem) -> Box<dyn Session> {
    let backend = CpuBackend::new();
    let plan = backend.plan(problem, &Options::default()).expect("a plan");
    let len = problem.shape.cells();
    let field = || match problem.dtype {
        abide_core::DType::F32 => Array::F32((0..len).into_par_iter().map(|i| noise(i) as f32).collect()),
        abide_core::DType::F64 => Array::F64(values(len)),
    };
    let fields = problem.program.fields().iter().map(|_| field()).collect();
    backend.open(problem, &plan, fields).expect("a session")
}

/// `to[i] = from[i]` in a loop that stays one: the factor of one, unknown to the compiler, keeps it from a call of memcpy.
fn copy_loop(to: &mut [f64], from: &[f64], width: usize, one: f64) {
    to.par_chunks_mut(width).zip(from.par_chunks(width)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = one * from);
    });
}

/// The shortest of several runs: whatever else the machine does only lengthens them.
fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Holds a few rows of the next step against the reference on the three rows that they depend on.
fn verify(session: &mut dyn Session, problem: &Problem) {
    let [_, height, width] = problem.shape.padded();
    let rows = [1, height / 3, height / 2, height - 2];
    let window = |y: usize, session: &mut dyn Session| {
        session.read_window(0, [0, y - 1, 0], [1, y + 2, width]).expect("a window")
    };
    let mut expected: Vec<Array> = rows.iter().map(|&y| window(y, session)).collect();
    session.advance(1).expect("a step");
    let three = Problem { shape: Shape::new(&[3, width]).expect("a shape"), ..problem.clone() };
    for (&y, rows) in rows.iter().zip(&mut expected) {
        reference::advance(&three, std::slice::from_mut(rows), 1).expect("a step");
        let (found, expected) = (window(y, session).to_f64(), rows.to_f64());
        assert_eq!(found[width..2 * width], expected[width..2 * width], "row {y}");
    }
}

fn ratio_to_copy(width: usize) {
    let problem = problem("2d5pt", &[width, width], abide_core::DType::F64);
    let cells = problem.shape.cells();
    let mut session = session(&problem);
    let (from, mut to) = (values(cells), vec![0.0; cells]);
    let one = black_box(1.0);
    let (mut copies, mut memcpys, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    // Taken in turn, so that whatever else the machine does meets all alike.
    for round in 0..24 {
        let begun = Instant::now();
        copy_loop(&mut to, &from, width, one);
        let copy = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        to.par_chunks_mut(width).zip(from.par_chunks(width)).for_each(|(to, from)| to.copy_from_slice(from));
        let memcpy = begun.elapsed().as_secs_f64();
        let step = session.advance(1).expect("a step");
        if round > 0 {
            copies.push(copy);
            memcpys.push(memcpy);
            steps.push(step);
        }
    }
    black_box(&to);
    verify(session.as_mut(), &problem);
    let (copy, memcpy, step) = (best(&copies), best(&memcpys), best(&steps));
    let gcells = |seconds: f64| cells as f64 / seconds / 1e9;
    println!(
        "2d5pt {width}² f64: {:.2} GCells/s; plain copy loop {:.2}, memcpy {:.2}; ratio to the copy loop {:.2}, to memcpy {:.2}",
        gcells(step),
        gcells(copy),
        gcells(memcpy),
        copy / step,
        memcpy / step,
    );
}

fn stencils(c: &mut Criterion) {
    for width in [8192, 2304] {
        ratio_to_copy(width);
    }
    use abide_core::DType::{F32, F64};
    let runs: [(&str, &[usize], _); 8] = [
        ("2d5pt", &[8192, 8192], F64),
        ("2d5pt", &[2304, 2304], F64),
        ("2d5pt", &[512, 512], F64),
        ("2d5pt", &[2304, 2304], F32),
        ("2ds25pt", &[2304, 2304], F64),
        ("3d27pt", &[192, 192, 192], F64),
        ("gray-scott", &[1024, 1024], F64),
        ("gray-scott", &[1024, 1024], F32),
    ];
    let mut group = c.benchmark_group("step");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for (name, extents, dtype) in runs {
        let problem = problem(name, extents, dtype);
        let mut session = session(&problem);
        group.throughput(Throughput::Elements(problem.shape.cells() as u64));
        group.bench_function(format!("{name} {} {dtype}", problem.shape), |b| {
            b.iter_custom(|steps| Duration::from_secs_f64(session.advance(steps).expect("steps")));
        });
    }
    group.finish();
}

criterion_group!(benches, stencils);
criterion_main!(benches);
