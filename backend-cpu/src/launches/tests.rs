//! Launches in groups, on strips and behind fronts as small as they may be.

use std::sync::Arc;

use abide_core::catalogue::cloverleaf;
use abide_core::plan::Schedule;
use abide_core::program::{Centring, Definition, Watch};
use abide_core::{Array, Backend, DType, Expr, Options, Problem, Real, Scope, Session, Shape, Start};
use abide_random::programs;

use super::group::{Group, Sizes};
use super::{Launched, groups_of};
use crate::stepwise::has_fused_multiply_add;
use crate::{CpuBackend, reference};

/// Checks that the groups of a problem have the bits of the definition; returns the most launches of a group
/// that is cut into strips, of one step and of several.
fn check<T: Real>(
    problem: &Problem,
    fields: &[Array],
    threads: usize,
    steps: u64,
    about: &str,
) -> [usize; 2] {
    let alone = format!("{about}, loop by loop");
    assert_eq!(check_one::<T>(problem, fields, (threads, false), steps, &alone), [0; 2]);
    check_one::<T>(problem, fields, (threads, true), steps, about)
}

fn check_one<T: Real>(
    problem: &Problem,
    fields: &[Array],
    (threads, fuse): (usize, bool),
    steps: u64,
    about: &str,
) -> [usize; 2] {
    let mut expected = fields.to_vec();
    reference::run_program(problem, &mut expected, steps, |_, _, _| {}).unwrap();
    let backend = CpuBackend::with_threads(threads).unwrap();
    let plan = backend.plan(problem, &Options::default()).unwrap();
    let Schedule::Cpu(mut cpu) = plan.schedule.clone() else { panic!("{plan:?}") };
    (cpu.threads, cpu.fuse) = (threads, fuse);
    let values = fields.iter().map(|field| T::slice(field).unwrap().to_vec()).collect();
    let (watch, fused) = (Watch::new(problem, fields).unwrap(), has_fused_multiply_add());
    let mut session = Launched::<T>::open(problem, &plan, &cpu, None, fused, watch, values).unwrap();
    session.sizes = fuse.then_some(Sizes { few: 0, front: 1, in_flight: usize::MAX, strip: [1; 2] });
    let Launched { field_rows, boxes, storage, stages, sizes, .. } = &session;
    (session.groups, session.deep) = groups_of(field_rows, boxes, storage, stages, threads, *sizes);
    assert!(fuse || session.groups.iter().flatten().all(|group| group.launches.len() == 1), "{about}");
    let most = |groups: Vec<&Group>| {
        let cut = groups.into_iter().filter(|group| group.is_cut());
        cut.map(|group| group.launches.len()).max().unwrap_or(0)
    };
    let deep = session.deep.iter().flatten().map(|deep| &deep.group).collect();
    let most = [most(session.groups.iter().flatten().collect()), most(deep)];
    session.advance(steps).unwrap();
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
            let [most, _] = match problem.dtype {
                DType::F32 => check::<f32>(&problem, &fields, threads, 3, &about),
                DType::F64 => check::<f64>(&problem, &fields, threads, 3, &about),
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
        let [most, _] = check::<f64>(&problem, &fields, threads, 3, "CloverLeaf");
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

/// The names of velocities.
const FACES: [&str; 3] = ["u", "v", "w"];

fn divergence<'g>(s: &Scope<'g>, axes: usize) -> Expr<'g> {
    let pairs = FACES[..axes].iter().enumerate().map(|(axis, name)| {
        let mut ahead = vec![0; axes];
        ahead[axis] = 1;
        s.field(name).at_slice(&ahead) - s.field(name).at_slice(&vec![0; axes])
    });
    pairs.reduce(|sum, pair| sum + pair).unwrap()
}

/// Waves on a staggered grid, with a boundary for each field; in one of three a cycle of two steps, or a temporary.
fn waves(extents: &[usize], boundaries: [&str; 2], form: usize) -> Problem {
    let axes = extents.len();
    let mut p = Definition::new("waves", axes);
    p.boundary(boundaries[0].parse().unwrap()).field("p", Centring::CELL).temporary("d", Centring::CELL);
    for (axis, name) in FACES[..axes].iter().enumerate() {
        p.field(name, Centring::face(axes, axis)).boundary_of(name, boundaries[1]);
    }
    for cycle in 0..1 + usize::from(form == 1) {
        let mut step = p.step();
        for (axis, name) in FACES[..axes].iter().enumerate() {
            step.stage(name, |s| {
                let mut back = vec![0; axes];
                back[axis] = -1;
                let pressure = s.field("p");
                s.set(
                    name,
                    s.field(name).here()
                        - 0.3 * (pressure.at_slice(&vec![0; axes]) - pressure.at_slice(&back)),
                );
            });
        }
        if form == 2 {
            step.stage("d", |s| s.set("d", divergence(s, axes)));
            step.stage("p", |s| s.set("p", s.field("p").here() - 0.3 * s.field("d").here()));
        } else {
            let k = if cycle == 0 { 0.3 } else { 0.25 };
            step.stage("p", |s| s.set("p", s.field("p").here() - k * divergence(s, axes)));
        }
    }
    let dtype = [DType::F32, DType::F64][form % 2];
    Problem::new(Arc::new(p.build().unwrap()), Shape::new(extents).unwrap(), dtype).unwrap()
}

#[test]
fn passes_over_several_steps_have_the_bits_of_the_definition() {
    let mut cut = 0;
    let kinds = ["mirror", "clamp", "constant=0.5", "-mirror", "x=periodic,y=reflect"];
    for (number, kind) in kinds.iter().enumerate() {
        for (extents, form) in [(&[91, 7][..], 0), (&[64, 5], 1), (&[77, 9], 2), (&[43, 3, 5], number % 3)] {
            let problem = waves(extents, [kinds[(number + 1) % 3], kind], form);
            let start = |field| {
                let start = Start::Random { seed: field as u64, low: -1.0, high: 1.0 };
                start.fill(&problem.shape_of(field).unwrap(), problem.dtype).unwrap()
            };
            let fields: Vec<Array> = (0..problem.program.fields().len()).map(start).collect();
            for threads in [1, 2, 3] {
                let about = format!("{kind} {extents:?} {form}");
                let [_, most] = match problem.dtype {
                    DType::F32 => check::<f32>(&problem, &fields, threads, 19, &about),
                    DType::F64 => check::<f64>(&problem, &fields, threads, 19, &about),
                };
                cut += usize::from(most > 8);
            }
        }
    }
    assert!(cut > 20, "only {cut} had passes over several steps that are cut into strips");
}
