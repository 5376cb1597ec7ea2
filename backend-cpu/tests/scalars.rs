//! Computed scalars are f64, whatever the type of the fields; and coefficients keep their values beyond a constant edge.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Program, Record, Reduction, Until};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Options, Problem, Session, Shape};
use abide_cpu::CpuBackend;

fn backends() -> [CpuBackend; 2] {
    [CpuBackend::reference(), CpuBackend::with_threads(2).unwrap()]
}

fn open(backend: &CpuBackend, problem: &Problem, fields: Vec<Array>) -> Box<dyn Session> {
    let plan = backend.plan(problem, &Options::default()).unwrap();
    backend.open(problem, &plan, fields).unwrap()
}

/// A clock, a field that holds what a stage reads of it, and the field's sum.
fn clock(start: f64) -> Program {
    let mut p = Definition::new("clock", 1);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).parameter("dt", 1e-3, "time step");
    p.scalar("time", Some(start), "the clock").scalar("sum", None, "sum of u").scalar("third", None, "of it");
    p.step()
        .compute("time", |s| s.param("time") + s.param("dt"))
        .stage("read", |s| s.set("u", s.field("u").here() * 0.0 + s.param("time")))
        .reduce("sum", Reduction::Sum, Centring::CELL, |s| s.field("u").here())
        .compute("third", |s| s.param("sum") / 3.0);
    p.build().unwrap()
}

fn problem(program: Program, dtype: DType) -> Problem {
    Problem::new(Arc::new(program), Shape::new(&[3]).unwrap(), dtype).unwrap()
}

/// A million steps of 1e-3 add up to what they are in f64; f32 would come to 991.14.
#[test]
fn a_clock_of_an_f32_run_counts_in_f64() {
    let mut problem = problem(clock(0.0), DType::F32);
    const STEPS: u64 = 200_000;
    problem.record = Some(Record::new(&problem.program, STEPS, Vec::new()));
    let expected = (0..STEPS).fold(0.0, |time, _| time + 1e-3);
    for backend in backends() {
        let mut session = open(&backend, &problem, vec![Array::F32(vec![0.0; 3])]);
        session.advance(STEPS).unwrap();
        // A stage reads the scalar rounded once, a reduction of f32 is exactly what a scalar holds.
        let read = expected as f32;
        let sum = f64::from((read + read) + read);
        let scalars = session.scalars().unwrap();
        assert_eq!(scalars, [expected, sum, sum / 3.0]);
        assert!(session.read(0).unwrap().same_bits(&Array::F32(vec![read; 3])));
        let rows = session.take_rows().unwrap();
        assert_eq!(rows.iter().last(), Some((STEPS, &scalars[..])));
    }
}

/// A clock that f32 cannot move ends a run.
#[test]
fn a_condition_on_a_clock_of_an_f32_run_ends_it() {
    for (start, condition, steps) in [(32_768.0, "time >= 32770", 2000), (0.1, "time > 0.1", 1)] {
        let mut problem = problem(clock(start), DType::F32);
        problem.until = Some(Until::parse(condition, &problem.program).unwrap());
        let expected = (0..steps).fold(start, |time, _| time + 1e-3);
        for backend in backends() {
            let mut session = open(&backend, &problem, vec![Array::F32(vec![0.0; 3])]);
            session.advance(10_000).unwrap();
            assert!(
                (10_000 - session.remaining()).abs_diff(steps) <= 1,
                "{condition}: {}",
                session.remaining()
            );
            let time = session.scalars().unwrap()[0];
            assert!((time - expected).abs() <= 1.1e-3, "{condition}: {time}");
        }
    }
}

/// The values that a session begins with and a parameter that is set are not rounded to f32 either.
#[test]
fn scalars_and_parameters_keep_their_digits_in_an_f32_run() {
    let mut problem = problem(clock(0.1), DType::F32);
    problem.parameters[0] = 0.3;
    for backend in backends() {
        let mut session = open(&backend, &problem, vec![Array::F32(vec![0.0; 3])]);
        assert_eq!(session.scalars().unwrap()[0], 0.1);
        session.advance(1).unwrap();
        session.set_parameter(0, 0.7).unwrap();
        session.advance(1).unwrap();
        assert_eq!(session.scalars().unwrap()[0], 0.1 + 0.3 + 0.7);
    }
}

/// Heat in a medium whose conductivity is tapped at the faces.
fn conduction() -> Program {
    let mut p = Definition::new("conduction", 1);
    p.field("u", Centring::CELL).field("k", Centring::CELL);
    p.step().stage("conduct", |s| {
        let (u, k) = (s.field("u"), s.field("k"));
        let right = (k.here() + k.at([1])) * (u.at([1]) - u.here());
        let left = (k.at([-1]) + k.here()) * (u.here() - u.at([-1]));
        s.set("u", u.here() + 0.125 * (right - left));
    });
    p.build().unwrap()
}

/// Beyond a wall of 300 the field is 300, and the conductivity is that of the wall's cell, unless it has a boundary of its
/// own.
#[test]
fn a_coefficient_beyond_a_constant_edge_is_that_of_the_edge() {
    let program = Arc::new(conduction());
    let shape = Shape::new(&[4]).unwrap();
    let start = || vec![Array::F64(vec![300.0; 4]), Array::F64(vec![1.0, 2.0, 2.0, 4.0])];
    let after = |problem: &Problem| {
        let found = backends().map(|backend| {
            let plan = backend.plan(problem, &Options::default()).unwrap();
            let mut session =
                backend.open(problem, &plan, vec![Array::F64(vec![0.0; 4]), start().remove(1)]).unwrap();
            session.advance(1).unwrap();
            (session.read(0).unwrap(), plan.notes)
        });
        assert!(found[0].0.same_bits(&found[1].0));
        (found[0].0.to_f64(), found[1].1.clone())
    };
    let with = |text: &str| {
        let mut problem = Problem::unchecked(program.clone(), shape, DType::F64);
        problem.boundaries = Boundaries::parse(text, Boundary::Fixed).unwrap();
        problem
    };
    let mut constant = with("constant=300");
    constant.check().unwrap();
    assert!(!constant.is_plain());
    let (u, notes) = after(&constant);
    assert_eq!(u, [0.125 * 2.0 * 300.0, 0.0, 0.0, 0.125 * 8.0 * 300.0]);
    let note = notes.iter().find(|note| note.contains("k: no stage sets it")).expect("a note");
    assert!(note.contains("clamp") && note.contains("k:constant=C"), "{note}");
    // A state of rest stays one.
    let mut session = open(&backends()[1], &constant, start());
    session.advance(7).unwrap();
    assert!(session.read(0).unwrap().same_bits(&start()[0]));
    // Its own boundary, the same as that of all: the schedules of plain programs again.
    constant.sides = vec![
        Default::default(),
        "constant=300".parse::<abide_core::domain::BoundaryText>().unwrap().sides(1).unwrap(),
    ];
    constant.check().unwrap();
    assert!(constant.is_plain());
    let (u, notes) = after(&constant);
    assert_eq!(u, [0.125 * 301.0 * 300.0, 0.0, 0.0, 0.125 * 304.0 * 300.0]);
    assert!(notes.iter().all(|note| !note.contains("no stage sets it")), "{notes:?}");
    // One side alone; and kinds that hold no value.
    let (u, _) = after(&with("x-=constant=300,x+=mirror"));
    assert_eq!(u, [0.125 * 2.0 * 300.0, 0.0, 0.0, 0.0]);
    for other in ["mirror", "clamp", "periodic", "fixed"] {
        assert!(with(other).is_plain(), "{other}");
        assert!(after(&with(other)).1.iter().all(|note| !note.contains("no stage sets it")), "{other}");
    }
}

/// A coefficient that is read at the place of the value alone keeps a program plain; one whose value a temporary takes beyond
/// the domain is clamped; a constant by a scalar's name counts too.
#[test]
fn only_coefficients_that_are_read_beyond_the_domain_are_clamped() {
    let mut p = Definition::new("here", 1);
    p.boundary(Boundary::Constant(300.0)).field("u", Centring::CELL).field("k", Centring::CELL);
    p.step().stage("all", |s| s.set("u", s.field("k").here() * s.field("u").at([1])));
    assert!(problem(p.build().unwrap(), DType::F64).is_plain());
    let mut p = Definition::new("temporary", 1);
    p.boundary("constant=wall".parse().unwrap()).field("u", Centring::CELL).field("k", Centring::CELL);
    p.parameter("wall", 300.0, "at the edge").temporary("t", Centring::CELL);
    p.step()
        .stage("t", |s| s.set("t", s.field("k").here() * s.field("u").here()))
        .stage("u", |s| s.set("u", s.field("t").at([-1])));
    let problem = problem(p.build().unwrap(), DType::F64);
    assert_eq!(problem.boundaries_of(1).0[2], [Boundary::Clamp; 2]);
    for backend in backends() {
        let fields = vec![Array::F64(vec![1.0, 2.0, 3.0]), Array::F64(vec![5.0, 6.0, 7.0])];
        let mut session = open(&backend, &problem, fields);
        session.advance(1).unwrap();
        assert_eq!(session.read(0).unwrap().to_f64(), [5.0 * 300.0, 5.0, 12.0]);
    }
}
