//! Launches in groups, on strips and behind fronts as small as they may be.

use std::sync::Arc;

use abide_core::catalogue::cloverleaf;
use abide_core::plan::Schedule;
use abide_core::program::Watch;
use abide_core::{Array, Backend, DType, Options, Problem, Real, Session, Shape};
use abide_random::programs;

use super::group::Sizes;
use super::{Launched, groups_of};
use crate::stepwise::has_fused_multiply_add;
use crate::{CpuBackend, reference};

/// Checks that the groups of a problem have the bits of the definition; returns the most launches of a group
/// that is cut into strips.
fn check<T: Real>(problem: &Problem, fields: &[Array], threads: usize, about: &str) -> usize {
    assert_eq!(check_one::<T>(problem, fields, threads, false, &format!("{about}, loop by loop")), 0);
    check_one::<T>(problem, fields, threads, true, about)
}

fn check_one<T: Real>(problem: &Problem, fields: &[Array], threads: usize, fuse: bool, about: &str) -> usize {
    let mut expected = fields.to_vec();
    reference::run_program(problem, &mut expected, 3, |_, _, _| {}).unwrap();
    let backend = CpuBackend::with_threads(threads).unwrap();
    let plan = backend.plan(problem, &Options::default()).unwrap();
    let Schedule::Cpu(mut cpu) = plan.schedule.clone() else { panic!("{plan:?}") };
    (cpu.threads, cpu.fuse) = (threads, fuse);
    let values = fields.iter().map(|field| T::slice(field).unwrap().to_vec()).collect();
    let (watch, fused) = (Watch::new(problem, fields).unwrap(), has_fused_multiply_add());
    let mut session = Launched::<T>::open(problem, &plan, &cpu, None, fused, watch, values).unwrap();
    session.sizes = fuse.then_some(Sizes { few: 0, front: 1, in_flight: usize::MAX, strip: 1 });
    let Launched { field_rows, boxes, storage, stages, sizes, .. } = &session;
    session.groups = groups_of(field_rows, boxes, storage, stages, threads, *sizes);
    assert!(fuse || session.groups.iter().flatten().all(|group| group.launches.len() == 1), "{about}");
    let cut = session.groups.iter().flatten().filter(|group| group.is_cut());
    let most = cut.map(|group| group.launches.len()).max().unwrap_or(0);
    session.advance(3).unwrap();
    for (field, expected) in expected.iter().enumerate() {
        assert!(
            session.read(field).unwrap().same_bits(expected),
            "{about}: field {field}, {threads} threads"
        );
    }
    most
}

#[test]
fn groups_of_random_programs_have_the_bits_of_the_definition() {
    let mut cut = 0;
    for seed in 0..400 {
        let Ok((problem, fields)) = programs::problem(seed) else { continue };
        for threads in [1, 2, 3, 5] {
            let about = format!("seed {seed}");
            let most = match problem.dtype {
                DType::F32 => check::<f32>(&problem, &fields, threads, &about),
                DType::F64 => check::<f64>(&problem, &fields, threads, &about),
            };
            cut += usize::from(most > 1);
        }
    }
    assert!(cut > 50, "only {cut} were cut into strips");
}

#[test]
fn groups_of_cloverleaf_have_the_bits_of_the_definition() {
    let shape = Shape::new(&[150, 9]).unwrap();
    let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
    let program = problem.program.clone();
    let field = |field| program.start(field).fill(&problem.shape_of(field).unwrap(), DType::F64).unwrap();
    let fields: Vec<Array> = (0..program.fields().len()).map(field).collect();
    for threads in [1, 2, 4] {
        let most = check::<f64>(&problem, &fields, threads, "CloverLeaf");
        assert!(threads == 1 || most > 8, "{most} launches in a group");
    }
}

/// Parameters are constants of what runs, which must not outlive them.
#[test]
fn parameters_set_in_a_run_count_from_then_on() {
    let shape = Shape::new(&[40, 37]).unwrap();
    for dtype in [DType::F32, DType::F64] {
        let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, dtype).unwrap();
        let program = problem.program.clone();
        let dx = program.parameters().iter().position(|parameter| parameter.name == "dx").unwrap();
        let run = |backend: CpuBackend| {
            let field = |field| program.start(field).fill(&problem.shape_of(field).unwrap(), dtype).unwrap();
            let fields: Vec<Array> = (0..program.fields().len()).map(field).collect();
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, fields).unwrap();
            for width in [0.75, 2.0, 1.0, 1.3] {
                session.advance(2).unwrap();
                session.set_parameter(dx, width).unwrap();
            }
            session.advance(3).unwrap();
            (0..program.fields().len()).map(|field| session.read(field).unwrap()).collect::<Vec<_>>()
        };
        let found = run(CpuBackend::with_threads(2).unwrap());
        for (field, expected) in run(CpuBackend::reference()).iter().enumerate() {
            assert!(found[field].same_bits(expected), "{dtype}: field {field}");
        }
    }
}
