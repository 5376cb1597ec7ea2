//! Steps with loops: all threads against the definition, and against the same loops written by hand.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Probe, Record, Reduction};
use abide_core::{Array, Backend, Boundary, DType, Options, Problem, Session, Shape};
use abide_cpu::{CpuBackend, reference};
use abide_random::cases::{Case, cases};
use abide_random::systems::systems;

fn open(backend: &CpuBackend, problem: &Problem, fields: &[Array]) -> Box<dyn Session> {
    let plan = backend.plan(problem, &Options::default()).unwrap();
    backend.open(problem, &plan, fields.to_vec()).unwrap()
}

fn same(session: &mut dyn Session, problem: &Problem, expected: &[Array], what: &str) {
    for (field, expected) in expected.iter().enumerate() {
        let name = &problem.program.fields()[field];
        assert!(session.read(field).unwrap().same_bits(expected), "{what}: {name}");
    }
}

/// Loops have the bits of the definition for any number of threads, however the steps are cut, in sessions that begin at any step,
/// and where fields are written between steps.
#[test]
fn loops_have_the_bits_of_the_definition() {
    let loops = cases().unwrap().into_iter().filter(|case| case.name.starts_with("loops"));
    for Case { name, problem, start, steps } in loops.chain(systems().unwrap()) {
        for threads in [1, 3] {
            let backend = CpuBackend::with_threads(threads).unwrap();
            let (mut problem, mut fields) = (problem.clone(), start.clone());
            let mut whole = open(&backend, &problem, &fields);
            for step in 0..steps {
                let what = format!("{name}, {threads} threads, step {step}");
                // One session goes on, another begins here.
                let mut fresh = open(&backend, &problem, &fields);
                problem.scalars = reference::run_program(&problem, &mut fields, 1, |_, _, _| {}).unwrap();
                problem.first_step += 1;
                for session in [&mut whole, &mut fresh] {
                    session.advance(1).unwrap();
                    same(session.as_mut(), &problem, &fields, &what);
                    assert_eq!(session.scalars().unwrap(), problem.scalars, "{what}");
                }
                let written = start[0].clone();
                whole.write(0, &written).unwrap();
                fields[0] = written;
            }
        }
    }
}

/// Sweeps until they change little are as many as a loop written by hand has, and leave the same values.
#[test]
fn sweeps_are_those_of_a_loop_by_hand() {
    let mut p = Definition::new("sweeps", 1);
    p.boundary(Boundary::Constant(0.0)).field("u", Centring::CELL).field("f", Centring::CELL);
    p.scalar("change", None, "largest change of a sweep").scalar("sweeps", Some(0.0), "sweeps so far");
    let mut step = p.step();
    step.compute("change", |s| s.constant(f64::INFINITY));
    step.repeat(1000, Some("change < 1e-5"), |sweep| {
        sweep.reduce("change", Reduction::Max, Centring::CELL, |s| {
            let u = s.field("u");
            (0.5 * (u.at([-1]) + u.at([1]) + s.field("f").here()) - u.here()).abs()
        });
        sweep.stage("sweep", |s| {
            let u = s.field("u");
            s.set("u", 0.5 * (u.at([-1]) + u.at([1]) + s.field("f").here()));
        });
        sweep.compute("sweeps", |s| s.param("sweeps") + 1.0);
    });
    let program = Arc::new(p.build().unwrap());
    let mut problem = Problem::new(program, Shape::new(&[13]).unwrap(), DType::F64).unwrap();
    let probe = Probe { field: 0, index: [0, 0, 6] };
    problem.record = Some(Record { scalars: vec![1], probes: vec![probe], every: 1 });
    problem.check().unwrap();
    let f: Vec<f64> = (0..13).map(|i| f64::from(i % 3)).collect();
    let (mut u, mut sweeps) = (vec![0.0; 13], Vec::new());
    let mut expected = Vec::new();
    for _ in 0..2 {
        let (mut change, mut count) = (f64::INFINITY, 0.0);
        while change >= 1e-5 {
            let at = |u: &[f64], i: isize| if (0..13).contains(&i) { u[i as usize] } else { 0.0 };
            let new: Vec<f64> =
                (0..13).map(|i| 0.5 * (at(&u, i - 1) + at(&u, i + 1) + f[i as usize])).collect();
            change = new.iter().zip(&u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            (u, count) = (new, count + 1.0);
        }
        sweeps.push(sweeps.last().copied().unwrap_or(0.0) + count);
        expected.push(u[6]);
    }
    assert!(sweeps[0] > 100.0 && sweeps[1] < sweeps[0] + 5.0, "{sweeps:?}");
    let fields = [Array::F64(vec![0.0; 13]), Array::F64(f)];
    for backend in [CpuBackend::reference(), CpuBackend::with_threads(2).unwrap()] {
        let mut session = open(&backend, &problem, &fields);
        session.advance(2).unwrap();
        same(session.as_mut(), &problem, &[Array::F64(u.clone()), fields[1].clone()], "by hand");
        let rows = session.take_rows().unwrap();
        let found: Vec<Vec<f64>> = rows.iter().skip(1).map(|(_, row)| row.to_vec()).collect();
        let by_hand: Vec<Vec<f64>> = sweeps.iter().zip(&expected).map(|(&a, &b)| vec![a, b]).collect();
        assert_eq!(found, by_hand);
    }
}
