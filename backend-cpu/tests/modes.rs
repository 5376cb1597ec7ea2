//! The floating-point mode of the caller, and of the threads that share work, changes no bit, and is restored.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;
use std::sync::Arc;

use abide_core::backend::LinearBackend;
use abide_core::solver::{Matrix, Method, Parameters, Preconditioning, SolveOptions};
use abide_core::{
    Array, Backend, Boundaries, Boundary, DType, Execution, Options, Problem, Shape, catalogue,
};
use abide_cpu::{CpuBackend, on_threads, variants};
use abide_random::programs;
use abide_solvers::sparse::laplacian_2d;

/// The bits of MXCSR that are a mode: denormals-are-zero, masks, rounding, flush-to-zero.
const CONTROL: u32 = 0xffc0;
const STANDARD: u32 = 0x1f80;
const FLUSHING: u32 = STANDARD | 0x8040;

/// Flushing alone, and flushing with each direction of rounding.
const MODES: [u32; 5] =
    [FLUSHING, FLUSHING | 0x2000, FLUSHING | 0x4000, FLUSHING | 0x6000, STANDARD | 0x4000];

fn set(mode: u32) {
    // SAFETY: it loads MXCSR from four bytes of a mode that the processor has. What is computed in it are comparisons
    // of integers.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack)) };
}

fn mode() -> u32 {
    let mut mode = 0u32;
    // SAFETY: it stores MXCSR in four bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack)) };
    mode & CONTROL
}

/// Returns what `work` returns in the mode that every thread has at first, after a look at whether it returns the same bits
/// where the caller has another mode, and whether that is its mode afterwards.
fn in_all_modes<R: PartialEq>(about: &str, work: impl Fn() -> R) -> R {
    let expected = work();
    for other in MODES {
        set(other);
        let found = work();
        let after = mode();
        set(STANDARD);
        assert!(found == expected, "{about} in mode {other:#x}");
        assert_eq!(after, other, "{about}: the caller's mode");
    }
    expected
}

fn bits(values: &Array) -> Vec<u64> {
    (0..values.len()).map(|i| values.get(i).unwrap().to_bits()).collect()
}

fn run(backend: &CpuBackend, problem: &Problem, options: &Options, fields: &[Array]) -> Vec<Vec<u64>> {
    let plan = backend.plan(problem, options).unwrap();
    let mut session = backend.open(problem, &plan, fields.to_vec()).unwrap();
    session.advance(7).unwrap();
    (0..fields.len()).map(|field| bits(&session.read(field).unwrap())).collect()
}

/// Every way to run a stencil, from numbers near the smallest: they would be flushed.
#[test]
fn stencils_have_the_same_bits_in_every_mode() {
    for (dtype, scale) in [(DType::F32, 1e-38), (DType::F64, 1e-308)] {
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let mut problem = Problem::new(program, Shape::new(&[60, 50]).unwrap(), dtype).unwrap();
        problem.boundaries = Boundaries::all(Boundary::Periodic);
        let field = Array::from_fn(dtype, 60 * 50, |i| scale * (1.0 + (i % 17) as f64 / 3.0));
        let backends = [CpuBackend::new(), CpuBackend::with_threads(2).unwrap(), CpuBackend::reference()];
        for (number, backend) in backends.iter().enumerate() {
            let stepwise = [Options { execution: Execution::Stepwise, ..Options::default() }];
            let all = if number == 2 { stepwise.to_vec() } else { variants() };
            for options in all {
                in_all_modes(&format!("{dtype} {options:?}"), || {
                    run(backend, &problem, &options, std::slice::from_ref(&field))
                });
            }
        }
    }
}

/// Programs: launches, groups, reductions, scalars, machine code, formulas that are folded as they are planned.
#[test]
fn programs_have_the_same_bits_in_every_mode() {
    let backend = CpuBackend::with_threads(2).unwrap();
    for (problem, fields) in (0..60).filter_map(|seed| programs::problem(seed).ok()) {
        in_all_modes(problem.program.name(), || run(&backend, &problem, &Options::default(), &fields));
    }
}

#[test]
fn solves_have_the_same_bits_in_every_mode() {
    let matrix = Matrix::from(laplacian_2d(90, 100, DType::F64).unwrap());
    let b = Array::from_fn(DType::F64, 9000, |i| 1e-300 * (1.0 + (i % 7) as f64));
    let backend = CpuBackend::with_threads(2).unwrap();
    for method in [Method::Cg, Method::BiCgStab, Method::Gmres(Default::default())] {
        let options =
            SolveOptions { preconditioner: Preconditioning::Jacobi, ..SolveOptions::with_method(method) };
        in_all_modes(&format!("{method}"), || {
            let plan = backend.plan_solve(&matrix, &options).unwrap();
            let mut session = backend.open_solver(&matrix, &plan, &options).unwrap();
            let mut x = Array::zeros(DType::F64, 9000).unwrap();
            let parameters = Parameters { iterations: 20, ..Parameters::DEFAULT };
            let _ = session.solve(&b, &mut x, &parameters, &mut |_, _| std::ops::ControlFlow::Continue(()));
            bits(&x)
        });
    }
}

/// Threads that share work may have another mode, too: of the thread that started them, or of code that ran on them.
#[test]
fn threads_in_another_mode_have_the_same_bits() {
    let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
    let mut problem = Problem::new(program, Shape::new(&[400, 300]).unwrap(), DType::F64).unwrap();
    problem.boundaries = Boundaries::all(Boundary::Mirror);
    let fields = [Array::from_fn(DType::F64, 120_000, |i| 1e-308 * (1.0 + (i % 17) as f64 / 3.0))];
    let options = Options { execution: Execution::Stepwise, ..Options::default() };
    let expected = run(&CpuBackend::new(), &problem, &options, &fields);
    on_threads(|| rayon::broadcast(|_| set(FLUSHING))).unwrap();
    assert!(run(&CpuBackend::new(), &problem, &options, &fields) == expected);
    set(FLUSHING);
    let backend = CpuBackend::with_threads(3).unwrap();
    let found = run(&backend, &problem, &options, &fields);
    set(STANDARD);
    assert!(found == expected);
    on_threads(|| rayon::broadcast(|_| set(STANDARD))).unwrap();
}
