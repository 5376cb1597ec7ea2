//! The rate of the CPU: the gain of streaming and persistent runs over the plain threaded loop, and
//! comparisons beside it.
//!
//! `cargo bench --bench cpu` prints, before criterion's own table, the lines of `benches/results/cpu.csv`:
//! each execution's rate and its ratio to a sweep per stage and step, taken in turn with it. Then it prints
//! two more kinds of ratios. The first is the stepwise bandwidth of 2d5pt (one value read and one written per
//! cell) over that of a copy by the same threads in an ordinary loop. The others compare
//! gray-scott and 2d5pt with the same steps in ordinary loops written by hand.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::{Array, Backend, Execution, Options, Problem, Session, Shape, catalogue};
use abide_cpu::{CpuBackend, reference};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use multiversion::multiversion;
use rayon::prelude::*;

/// Returns a value in 0..1 that looks random.
fn noise(i: usize) -> f64 {
    let mixed = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// Makes non-trivial values, first touched by the threads that will work on them.
fn values(len: usize) -> Vec<f64> {
    (0..len).into_par_iter().map(noise).collect()
}

fn problem(name: &str, extents: &[usize], dtype: abide_core::DType) -> Problem {
    let program = catalogue::find(name)
        .and_then(|entry| entry.program(extents.len()))
        .expect("an entry of the catalogue");
    Problem::new(Arc::new(program), Shape::new(extents).expect("a shape"), dtype).expect("a problem")
}

fn session(problem: &Problem, execution: Execution) -> Box<dyn Session> {
    let backend = CpuBackend::new();
    let plan = backend.plan(problem, &Options { execution, ..Options::default() }).expect("a plan");
    let len = problem.shape.cells();
    let field = || match problem.dtype {
        abide_core::DType::F32 => Array::F32((0..len).into_par_iter().map(|i| noise(i) as f32).collect()),
        abide_core::DType::F64 => Array::F64(values(len)),
    };
    let fields = problem.program.fields().iter().map(|_| field()).collect();
    backend.open(problem, &plan, fields).expect("a session")
}

/// Copies by `to[i] = from[i]` in a loop that the compiler leaves a loop: the factor `one`, unknown to it,
/// keeps it from a call of memcpy.
fn copy_loop(to: &mut [f64], from: &[f64], width: usize, one: f64) {
    to.par_chunks_mut(width).zip(from.par_chunks(width)).for_each(|(to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = one * from);
    });
}

/// Returns the shortest of several runs: anything else that the machine does only lengthens them.
fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Compares a few rows of the next step with the reference on the three rows that each depends on.
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
    let mut session = session(&problem, Execution::Stepwise);
    let (from, mut to) = (values(cells), vec![0.0; cells]);
    let one = black_box(1.0);
    let (mut copies, mut memcpys, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    // Taken in turn, so that anything else that the machine does meets all alike.
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

/// Prints each execution's rate and its ratio to a sweep per stage and step. The executions take turns, so
/// that anything else that the machine does meets all alike.
fn ratios_to_stepwise(problem: &Problem) {
    const ROUNDS: usize = 12;
    let executions = [Execution::Stepwise, Execution::Streaming, Execution::Persistent];
    let mut sessions = executions.map(|execution| session(problem, execution));
    let depths = sessions.each_ref().map(|session| u64::from(session.plan().depth.max(1)));
    let mut seconds = executions.map(|_| Vec::new());
    // Some hundredths of a second or more, in whole passes.
    let warm = sessions[0].advance(2).expect("steps") / 2.0;
    let steps = depths.map(|depth| ((0.02 / warm) as u64).next_multiple_of(depth).max(depth));
    for round in 0..ROUNDS {
        for (i, session) in sessions.iter_mut().enumerate() {
            let taken = session.advance(steps[i]).expect("steps") / steps[i] as f64;
            if round > 0 {
                seconds[i].push(taken);
            }
        }
    }
    let device = CpuBackend::new().device().name.clone();
    let plain = best(&seconds[0]);
    for ((session, seconds), steps) in sessions.iter().zip(&seconds).zip(steps) {
        let taken = best(seconds);
        println!(
            "cpu,\"{device}, {} threads\",{},{},{},{steps},{:.3},{:.2}  # {}",
            rayon::current_num_threads(),
            problem.program.name(),
            problem.dtype,
            problem.shape,
            problem.shape.cells() as f64 / taken / 1e9,
            plain / taken,
            session.plan().summary(),
        );
    }
}

/// Takes a step of gray-scott in an ordinary loop over rows, periodic in both axes; the parameters are
/// `[du, dv, feed, kill]`.
fn gray_scott(new: [&mut [f64]; 2], [u, v]: [&[f64]; 2], width: usize, [du, dv, feed, kill]: [f64; 4]) {
    let height = u.len() / width;
    let [new_u, new_v] = new;
    let rows = new_u.par_chunks_mut(width).zip(new_v.par_chunks_mut(width)).enumerate();
    rows.for_each(|(y, (new_u, new_v))| {
        let rows = [(y + height - 1) % height, y, (y + 1) % height].map(|y| y * width..(y + 1) * width);
        let [u0, u1, u2] = rows.clone().map(|row| &u[row]);
        let [v0, v1, v2] = rows.map(|row| &v[row]);
        let mut cell = |west: usize, x: usize, east: usize| {
            let (a, b) = (u1[x], v1[x]);
            let lap_u = u0[x] + u1[west] + u1[east] + u2[x] - 4.0 * a;
            let lap_v = v0[x] + v1[west] + v1[east] + v2[x] - 4.0 * b;
            let reaction = a * b * b;
            new_u[x] = a + du * lap_u - reaction + feed * (1.0 - a);
            new_v[x] = b + dv * lap_v + reaction - (feed + kill) * b;
        };
        cell(width - 1, 0, 1);
        (1..width - 1).for_each(|x| cell(x - 1, x, x + 1));
        cell(width - 2, width - 1, 0);
    });
}

/// Returns the shortest time per step, by hand and in each session, in runs of `steps` steps; sessions take
/// whole passes. All take turns, so that anything else that the machine does meets all alike.
fn beside<const N: usize>(
    sessions: &mut [Box<dyn Session>; N],
    steps: u64,
    mut by_hand: impl FnMut(),
) -> (f64, [f64; N]) {
    let (mut hand, mut ours) = (Vec::new(), [const { Vec::new() }; N]);
    for round in 0..12 {
        let begun = Instant::now();
        (0..steps).for_each(|_| by_hand());
        let taken = begun.elapsed().as_secs_f64() / steps as f64;
        if round > 0 {
            hand.push(taken);
        }
        for (session, seconds) in sessions.iter_mut().zip(&mut ours) {
            let steps = steps.next_multiple_of(u64::from(session.plan().depth.max(1)));
            let taken = session.advance(steps).expect("steps") / steps as f64;
            if round > 0 {
                seconds.push(taken);
            }
        }
    }
    (best(&hand), ours.map(|seconds| best(&seconds)))
}

/// Prints the time of gray-scott in each execution over that of the loop written by hand.
fn ratio_to_hand(width: usize) {
    let problem = problem("gray-scott", &[width, width], abide_core::DType::F64);
    let cells = problem.shape.cells();
    let parameters: [f64; 4] = problem.parameters.clone().try_into().expect("four parameters");
    let (mut now, mut new) = ([values(cells), values(cells)], [values(cells), values(cells)]);
    let mut sessions =
        [Execution::Stepwise, Execution::Streaming].map(|execution| session(&problem, execution));
    let (hand, [stepwise, streaming]) = beside(&mut sessions, 4, || {
        let [u, v] = &mut new;
        gray_scott([u, v], [&now[0], &now[1]], width, parameters);
        std::mem::swap(&mut now, &mut new);
    });
    black_box(&now);
    println!(
        "gray-scott {width}² f64: the loop by hand {:.2} GCells/s; stepwise takes {:.2} times as long, streaming {:.2} times",
        cells as f64 / hand / 1e9,
        stepwise / hand,
        streaming / hand,
    );
}

/// Computes a row of a stencil like 2d5pt in an ordinary loop, compiled for the CPU's vectors; the row's ends
/// stay as they are.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn star_row(new: &mut [f64], [above, here, below]: [&[f64]; 3], [c, w, e, n, s]: [f64; 5]) {
    let width = new.len();
    let (above, here, below) = (&above[..width], &here[..width], &below[..width]);
    for x in 1..width - 1 {
        let sum = w.mul_add(here[x - 1], e.mul_add(here[x + 1], n.mul_add(above[x], s * below[x])));
        new[x] = c.mul_add(here[x], sum);
    }
}

/// Takes a step of that stencil, its rows shared among rayon's threads.
fn star(new: &mut [f64], old: &[f64], width: usize, weights: [f64; 5]) {
    let rows = old.len() / width;
    new.par_chunks_mut(width).enumerate().skip(1).take(rows - 2).for_each(|(y, new)| {
        let row = |y: usize| &old[y * width..(y + 1) * width];
        star_row(new, [row(y - 1), row(y), row(y + 1)], weights);
    });
}

/// Prints the rate of the plain threaded loop, and by what factor each execution of 2d5pt is faster.
fn ratios_to_plain(width: usize) {
    let problem = problem("2d5pt", &[width, width], abide_core::DType::F64);
    let cells = problem.shape.cells();
    let executions = [Execution::Stepwise, Execution::Streaming, Execution::Persistent];
    let mut sessions = executions.map(|execution| session(&problem, execution));
    let (mut now, mut new) = (values(cells), values(cells));
    let weights = black_box([0.2, 0.19, 0.21, 0.18, 0.22]);
    // Some hundredths of a second or more.
    let steps = ((0.02 * 2e9 / cells as f64) as u64).max(2);
    let (plain, [stepwise, streaming, persistent]) = beside(&mut sessions, steps, || {
        star(&mut new, &now, width, weights);
        std::mem::swap(&mut now, &mut new);
    });
    black_box(&now);
    println!(
        "2d5pt {width}² f64: the plain threaded loop {:.2} GCells/s; stepwise {:.2} times that, streaming {:.2}, persistent {:.2}",
        cells as f64 / plain / 1e9,
        plain / stepwise,
        plain / streaming,
        plain / persistent,
    );
}

fn stencils(c: &mut Criterion) {
    use abide_core::DType::{F32, F64};
    let ways: [(&str, &[usize], _); 8] = [
        ("2d5pt", &[8192, 8192], F64),
        ("2d5pt", &[2304, 2304], F64),
        ("2d5pt", &[512, 512], F64),
        ("2d5pt", &[8192, 8192], F32),
        ("2d9pt", &[2304, 2304], F64),
        ("3d7pt", &[384, 384, 384], F64),
        ("gray-scott", &[2048, 2048], F64),
        ("fdtd-tm", &[2048, 2048], F64),
    ];
    for (name, extents, dtype) in ways {
        ratios_to_stepwise(&problem(name, extents, dtype));
    }
    ratio_to_hand(2048);
    for width in [8192, 2304, 512] {
        ratios_to_plain(width);
    }
    for width in [8192, 2304] {
        ratio_to_copy(width);
    }
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
        group.throughput(Throughput::Elements(problem.shape.cells() as u64));
        for execution in [Execution::Stepwise, Execution::Streaming, Execution::Persistent] {
            let mut session = session(&problem, execution);
            let depth = u64::from(session.plan().depth.max(1));
            group.bench_function(format!("{name} {} {dtype} {execution}", problem.shape), |b| {
                // Runs are whole passes, counted as the steps that they are.
                b.iter_custom(|steps| {
                    let passes = steps.div_ceil(depth) * depth;
                    let seconds = session.advance(passes).expect("steps");
                    Duration::from_secs_f64(seconds * steps as f64 / passes as f64)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, stencils);
criterion_main!(benches);
