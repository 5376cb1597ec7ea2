//! Formulas whose loops stay loops, against the reference, and against each turn written out.

use crate::common;

use abide_core::backend::Backend;
use abide_core::expr::Looped;
use abide_core::plan::{Execution, LoopRows, Lowering};
use abide_core::{DType, Options, Problem};
use abide_random::looped;
use abide_wgpu::WgpuBackend;
use common::{backend, check_plan, problem, values};

#[test]
fn loops_are_within_the_bound_of_each_turn_written_out() {
    let Some(backend) = backend() else { return };
    for (extents, dtype, boundary) in [
        (&[1021][..], DType::F32, "periodic"),
        (&[37, 53], DType::F32, "mirror"),
        (&[37, 53], DType::F64, "fixed"),
        (&[7, 13, 35], DType::F64, "constant=0.25"),
    ] {
        let program = looped::program(extents.len(), true).unwrap();
        check(&backend, &problem(program, extents, dtype, boundary).unwrap());
    }
}

#[test]
fn results_of_loops_are_within_the_bound_of_each_turn_written_out() {
    let Some(backend) = backend() else { return };
    for (extents, dtype, boundary) in [(&[301][..], DType::F32, "fixed"), (&[17, 35], DType::F64, "periodic")]
    {
        let program = looped::products(2, extents.len()).unwrap();
        check(&backend, &problem(program, extents, dtype, boundary).unwrap());
    }
}

#[test]
fn tree_sums_are_within_the_bound_of_each_turn_written_out() {
    let Some(backend) = backend() else { return };
    for (lanes, extents, dtype) in [(8, &[301][..], DType::F32), (4, &[17, 35], DType::F64)] {
        let program = looped::trees(lanes, 7, extents.len()).unwrap();
        check(&backend, &problem(program, extents, dtype, "fixed").unwrap());
    }
}

/// Runs a problem in each way against the bound.
fn check(backend: &WgpuBackend, problem: &Problem) {
    let fields = values(problem, 3);
    let has_rows =
        problem.program.stages().iter().filter_map(|stage| stage.looped.as_ref()).any(Looped::has_rows);
    for (lowering, rows) in [
        (Lowering::Straight, LoopRows::Auto),
        (Lowering::Loops, LoopRows::Auto),
        (Lowering::Loops, LoopRows::Turns(4)),
    ]
    .into_iter()
    .filter(|(_, rows)| has_rows || *rows == LoopRows::Auto)
    {
        let options = Options { execution: Execution::Stepwise, lowering, rows, ..Options::default() };
        let plan = backend.plan(problem, &options).unwrap();
        assert_eq!(plan.stepwise().unwrap().lowering, lowering);
        let [worst, bound] = check_plan(backend, problem, &plan, &fields, 3);
        println!("{} {}, {lowering} {rows:?}: {worst} of {bound} ulp", problem.shape, problem.dtype);
    }
}
