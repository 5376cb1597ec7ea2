//! Solvers allocate before the loop, never in it: counted by the allocator of this test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use abide_core::DType;
use abide_core::solver::{METHODS, Matrix, Operator, PRECONDITIONERS, Parameters, SolverError};
use abide_solvers::sparse::laplacian_2d;
use abide_solvers::{Serial, method, preconditioner};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The 1D Laplacian with fixed ends, which allocates only for its diagonal and blocks.
struct Line(usize);

impl Operator<f64> for Line {
    fn rows(&self) -> usize {
        self.0
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) {
        for i in 0..self.0 {
            let before = if i > 0 { x[i - 1] } else { 0.0 };
            let after = x.get(i + 1).copied().unwrap_or(0.0);
            y[i] = 2.0 * x[i] - before - after;
        }
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(vec![2.0; self.0])
    }

    fn diagonal_block(&self, _start: usize, size: usize) -> Option<Vec<f64>> {
        let entry = |k: usize| match (k / size).abs_diff(k % size) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        Some((0..size * size).map(entry).collect())
    }
}

#[test]
fn the_loop_allocates_nothing() {
    let a = Line(301);
    let b: Vec<f64> = (0..301).map(|i| (i as f64 * 0.7).sin()).collect();
    for name in METHODS {
        let solver = method::<f64, Serial>(name).unwrap();
        // The host's own solve such a line within few iterations.
        for preconditioner_name in PRECONDITIONERS.into_iter().filter(|name| !["ilu", "amg"].contains(name)) {
            // As many allocations for 60 iterations as for 35: all of them are before the loop (and in the
            // error that ends it). Both counts pass a restart of GMRES (30); the second passes a replacement
            // of pipelined CG (50).
            let [few, many] = [35, 60].map(|iterations| {
                let mut m = preconditioner(preconditioner_name, &Serial, &a).unwrap();
                let mut x = vec![0.0; 301];
                let parameters =
                    Parameters { relative: 0.0, absolute: 1e-250, iterations, ..Parameters::default() };
                let before = ALLOCATIONS.with(Cell::get);
                let result = solver.solve_on(&Serial, &a, &mut *m, &b, &mut x, &parameters);
                let after = ALLOCATIONS.with(Cell::get);
                let error = result.unwrap_err();
                assert!(
                    matches!(error, SolverError::NotConverged { .. }),
                    "{name} with {preconditioner_name}: {error}"
                );
                assert_eq!(error.history().len(), iterations + 1);
                after - before
            });
            assert!(few > 0, "the counter does not count");
            assert_eq!(few, many, "{name} with {preconditioner_name}");
        }
    }
}

#[test]
fn factors_and_cycles_are_applied_without_allocating() {
    let a = Matrix::from(laplacian_2d(40, 41, DType::F64).unwrap()).operator::<f64>().unwrap();
    let r: Vec<f64> = (0..1640).map(|i| (i as f64 * 0.7).sin()).collect();
    for name in ["ilu", "amg"] {
        let mut m = preconditioner(name, &Serial, &*a).unwrap();
        let mut z = vec![0.0; 1640];
        let before = ALLOCATIONS.with(Cell::get);
        m.apply(&Serial, &r, &mut z);
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{name}");
        assert!(z.iter().all(|value| value.is_finite()) && z != r);
    }
}
