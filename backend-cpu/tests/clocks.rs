//! Programs whose scalars follow from the step's number alone: in every schedule, with the bits of the definition.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Marks, Probe, Program, Record, Rows, Until};
use abide_core::{Array, Backend, Boundary, DType, Options, Problem, Session, Shape};
use abide_cpu::{CpuBackend, variants};

/// Heat with a source that swings, an amplitude that is made between the two stages of a step, and a sum that no stage reads.
fn swinging(dimensions: usize, boundary: Boundary) -> Program {
    let mut p = Definition::new("swinging", dimensions);
    p.boundary(boundary).field("u", Centring::CELL).field("v", Centring::CELL);
    p.parameter("dt", 0.125, "time step").parameter("k", 0.1, "conductivity");
    p.scalar("time", Some(0.25), "the time").scalar("force", Some(1.5), "of the source");
    p.scalar("drift", Some(-0.5), "of v").scalar("work", Some(0.0), "done");
    p.step()
        .compute("time", |s| s.param("time") + s.param("dt"))
        .stage("heat", |s| {
            let u = s.field("u");
            s.set(
                "u",
                u.here()
                    + s.param("k") * u.laplacian()
                    + s.param("force") * s.coord(0) * s.param("time").sin(),
            );
        })
        .compute("drift", |s| (s.param("time") * 3.0).cos() / (1.0 + s.param("drift") * s.param("drift")))
        .stage("follow", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("v", v.here() + s.param("drift") * (u.here() - v.here()) + s.param("force"));
        })
        .compute("force", |s| s.param("force") * 0.875 + s.param("drift"))
        .compute("work", |s| s.param("work") + s.param("force") * s.param("dt"));
    p.build().unwrap()
}

fn fields(problem: &Problem) -> Vec<Array> {
    let value = |field: usize, cell: usize| ((cell * 37 + field * 11) % 19) as f64 * 0.25 - 2.0;
    (0..2)
        .map(|field| Array::from_fn(problem.dtype, problem.shape.cells(), |cell| value(field, cell)))
        .collect()
}

/// What a run leaves: fields, scalars, rows, and the steps that were not done.
#[derive(Debug, PartialEq)]
struct Left(Vec<Vec<u64>>, Vec<u64>, Vec<(u64, Vec<u64>)>, Vec<u64>);

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Advances in several calls, between which a parameter and a field change.
fn run(mut session: Box<dyn Session>, problem: &Problem) -> Left {
    let (mut remaining, mut rows) = (Vec::new(), Vec::new());
    let keep = |rows: &mut Vec<(u64, Vec<u64>)>, own: Rows| {
        rows.extend(own.iter().map(|(step, values)| (step, bits(values))));
    };
    for (call, steps) in [1, 5, 12, 3].into_iter().enumerate() {
        session.advance(steps).unwrap();
        remaining.push(session.remaining());
        remaining.push(session.is_at_mark().into());
        keep(&mut rows, session.take_rows().unwrap());
        if call == 1 {
            session.set_parameter(0, 0.0625).unwrap();
            assert!(session.set_parameter(2, 1.0).is_err(), "a scalar is no parameter");
            session.write(1, &fields(problem)[0]).unwrap();
        }
    }
    let values = (0..2).map(|field| bits(&session.read(field).unwrap().to_f64())).collect();
    Left(values, bits(&session.scalars().unwrap()), rows, remaining)
}

fn check(problem: &Problem) {
    problem.check().unwrap();
    let reference = CpuBackend::reference();
    let plan = reference.plan(problem, &Options::default()).unwrap();
    let expected = run(reference.open(problem, &plan, fields(problem)).unwrap(), problem);
    let backend = CpuBackend::with_threads(2).unwrap();
    for options in variants() {
        let Ok(plan) = backend.plan(problem, &options) else { continue };
        let found = run(backend.open(problem, &plan, fields(problem)).unwrap(), problem);
        assert_eq!(found, expected, "{} {} {options:?}", problem.shape, problem.dtype);
    }
}

fn problem(extents: &[usize], boundary: Boundary, dtype: DType) -> Problem {
    let program = Arc::new(swinging(extents.len(), boundary));
    Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap()
}

#[test]
fn every_schedule_has_the_bits_of_the_definition() {
    for (number, extents) in [&[67][..], &[19, 23], &[9, 7, 13]].into_iter().enumerate() {
        for (kind, boundary) in Boundary::each(0.5).into_iter().filter(|kind| kind.is_plain()).enumerate() {
            // Boundaries take turns in the two types.
            let dtype = [DType::F32, DType::F64][(number + kind) % 2];
            check(&problem(extents, boundary, dtype));
        }
    }
}

/// The plan is that of the stencils: several steps a pass, where that is asked for.
#[test]
fn a_clock_costs_no_schedule() {
    let problem = problem(&[40, 50], Boundary::Mirror, DType::F32);
    let backend = CpuBackend::with_threads(2).unwrap();
    for options in variants() {
        let plan = backend.plan(&problem, &options).unwrap();
        assert!(options.depth != abide_core::Depth::Steps(5) || plan.depth == 5, "{options:?}");
    }
}

#[test]
fn conditions_marks_and_records_are_noted() {
    for (dtype, extents) in [(DType::F32, &[19, 23][..]), (DType::F64, &[67])] {
        let plain = problem(extents, Boundary::Periodic, dtype);
        let probe = Probe::new(&plain.program, "u", &vec![3; extents.len()]).unwrap();
        let until = |text: &str| Some(Until::parse(text, &plain.program).unwrap());
        let record = |every, probes| Some(Record::new(&plain.program, every, probes));
        let marks = |by| Some(Marks::new(&plain.program, "time", by).unwrap());
        for problem in [
            Problem { until: until("time >= 1.3"), ..plain.clone() },
            Problem { marks: marks(0.3), ..plain.clone() },
            Problem { record: record(2, Vec::new()), until: until("work < -0.5"), ..plain.clone() },
            Problem { record: record(3, vec![probe]), first_step: 4, ..plain.clone() },
            Problem { record: record(1, vec![probe]), marks: marks(0.5), ..plain.clone() },
            Problem { record: record(4, vec![probe]), until: until("time > 1.9"), ..plain.clone() },
        ] {
            check(&problem);
        }
    }
}
