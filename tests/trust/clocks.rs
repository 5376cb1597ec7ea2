//! Programs whose scalars follow from the step's number alone: in every way to run, with the bits of the definition.

use std::sync::Arc;

use abide::program::{Centring, Clock, Definition, Marks, Probe, Record, Rows, Until};
use abide::{
    Array, Backend, Boundary, DType, Depth, Execution, Options, Problem, Program, Result, Session, Shape,
    Tune,
};
use abide_cpu::{CpuBackend, reference};
use abide_random::timed;

use crate::trust::subject::{Subject, describe};

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

/// A recorded row: the step, and the values' bits.
type Row = (u64, Vec<u64>);

/// What a run leaves: fields, scalars, rows, and the steps that were not done.
#[derive(Debug, PartialEq)]
struct Left(Vec<Vec<u64>>, Vec<u64>, Vec<Row>, Vec<u64>);

impl Left {
    /// Returns whether the rows and steps are the same, and the values and scalars almost.
    fn is_near(&self, other: &Left) -> bool {
        let values = self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| near(a, b));
        let rows = self.2.len() == other.2.len()
            && self.2.iter().zip(&other.2).all(|(a, b)| a.0 == b.0 && near(&a.1, &b.1));
        values && rows && near(&self.1, &other.1) && self.3 == other.3
    }
}

/// Returns whether two lists of values differ by little.
fn near(a: &[u64], b: &[u64]) -> bool {
    let [a, b] = [a, b].map(|bits| bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<_>>());
    let largest = b.iter().fold(1.0_f64, |most, value| most.max(value.abs()));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-4 * largest)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Advances in several calls, between which a parameter and a field change.
fn run(mut session: Box<dyn Session>, problem: &Problem) -> Left {
    let (mut remaining, mut rows) = (Vec::new(), Vec::new());
    let keep = |rows: &mut Vec<Row>, own: Rows| rows.extend(of_rows(&own));
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

/// Compares runs in every way with the definition's: bits where the backend promises them, else values.
fn check(subject: &Subject, problem: &Problem) -> Result<()> {
    problem.check()?;
    let reference = CpuBackend::reference();
    let open = |backend: &dyn Backend, options: &Options| {
        backend.open(problem, &backend.plan(problem, options)?, fields(problem))
    };
    let expected = run(open(&reference, &Options::default())?, problem);
    for options in subject.variants(problem) {
        let found = run(open(&*subject.opened.backend, &options)?, problem);
        let words = format!("{}: {} {options:?}", subject.name, describe(problem));
        match subject.is_exact() {
            true => assert_eq!(found, expected, "{words}"),
            false => assert!(found.is_near(&expected), "{words}: {found:?} instead of {expected:?}"),
        }
    }
    Ok(())
}

fn problem(extents: &[usize], boundary: Boundary, dtype: DType) -> Result<Problem> {
    Problem::new(Arc::new(swinging(extents.len(), boundary)), Shape::new(extents)?, dtype)
}

/// Boundaries take turns in extents and types; on the CPU each is met with all extents.
pub fn every_way_has_the_bits_of_the_definition(subject: &Subject) -> Result<()> {
    let dtypes = subject.dtypes();
    for (number, extents) in [&[67][..], &[19, 23], &[9, 7, 13]].into_iter().enumerate() {
        for (kind, boundary) in Boundary::each(0.5).into_iter().filter(|kind| kind.is_plain()).enumerate() {
            if subject.name == "cpu" || kind % 3 == number {
                check(subject, &problem(extents, boundary, dtypes[(number + kind) % dtypes.len()])?)?;
            }
        }
    }
    Ok(())
}

/// The plan is that of the stencils alone, several steps deep.
pub fn a_clock_costs_no_schedule(subject: &Subject) -> Result<()> {
    let problem = problem(&[400, 500], Boundary::Periodic, DType::F32)?;
    let stencils = Clock::of(&problem).map(|clock| clock.at_rest()).expect("a clock");
    for options in subject.variants(&stencils) {
        let [found, plain] = [&problem, &stencils].map(|own| subject.opened.backend.plan(own, &options));
        // A launch per stage is one of the program as it is.
        let (found, plain) = (found?, plain?);
        assert!(found == plain || plain.stepwise().is_some(), "{}: {options:?}", subject.name);
    }
    Ok(())
}

pub fn conditions_marks_and_records_are_noted(subject: &Subject) -> Result<()> {
    for (dtype, extents) in [(DType::F32, &[19, 23][..]), (DType::F64, &[67])] {
        if !subject.has(dtype) {
            continue;
        }
        let plain = problem(extents, Boundary::Periodic, dtype)?;
        let probe = Probe::new(&plain.program, "u", &vec![3; extents.len()])?;
        let until = |text: &str| Until::parse(text, &plain.program).map(Some);
        let record = |every, probes| Some(Record::new(&plain.program, every, probes));
        let marks = |by| Marks::new(&plain.program, "time", by).map(Some);
        let all = [
            Problem { until: until("time >= 1.3")?, ..plain.clone() },
            Problem { marks: marks(0.3)?, ..plain.clone() },
            Problem { record: record(2, Vec::new()), until: until("work < -0.5")?, ..plain.clone() },
            Problem { record: record(3, vec![probe]), first_step: 4, ..plain.clone() },
            Problem { record: record(1, vec![probe]), marks: marks(0.5)?, ..plain.clone() },
            Problem { record: record(4, vec![probe]), until: until("time > 1.9")?, ..plain.clone() },
        ];
        all.iter().try_for_each(|problem| check(subject, problem))?;
    }
    Ok(())
}

/// Returns the rows of the definition after fourteen steps.
fn recorded(problem: &Problem, start: &[Array]) -> Result<Vec<Row>> {
    let reference = CpuBackend::reference();
    let plan = reference.plan(problem, &Options::default())?;
    let mut session = reference.open(problem, &plan, start.to_vec())?;
    session.advance(14)?;
    Ok(of_rows(&session.take_rows()?))
}

fn of_rows(rows: &Rows) -> Vec<Row> {
    rows.iter().map(|(step, values)| (step, bits(values))).collect()
}

/// Random programs with scalars, temporaries and points, as the backend chooses and by passes of two steps; and the same with a
/// reduction once in several steps.
pub fn random_programs_have_the_bits_of_the_definition(subject: &Subject) -> Result<()> {
    [timed::problem, timed::reduced].into_iter().try_for_each(|draw| random_programs(subject, draw))
}

fn random_programs(subject: &Subject, draw: fn(u64) -> Result<(Problem, Vec<Array>)>) -> Result<()> {
    let most = match subject.name {
        "cpu" => 60,
        _ if subject.has_all_cases() => 12,
        _ => 4,
    };
    let drawn = (0..).filter_map(|seed| Some((seed, draw(seed).ok()?)));
    let drawn = drawn
        .filter(|(_, (problem, _))| Clock::on_device(problem, true).is_some() && subject.has(problem.dtype));
    for (seed, (mut problem, start)) in drawn.take(most) {
        // Every second one has a row after each step, with values of a corner and of the middle.
        let middle = problem.shape.padded().map(|extent| extent / 2);
        let probes = [[0; 3], middle].map(|index| Probe { field: 0, index });
        problem.record = (seed % 2 == 1).then(|| Record::new(&problem.program, 1, probes.to_vec()));
        let rows = recorded(&problem, &start)?;
        let mut expected = start.clone();
        let scalars = reference::run_program(&problem, &mut expected, 14, |_, _, _| {})?;
        let own = Options { tune: Tune::Off, ..Options::default() };
        // Two steps are less than a pass of three.
        let deep = Options { execution: Execution::Streaming, depth: Depth::Steps(3), ..own };
        for options in [own, deep] {
            let Ok(plan) = subject.opened.backend.plan(&problem, &options) else { continue };
            let mut session = subject.opened.backend.open(&problem, &plan, start.clone())?;
            session.advance(2)?;
            session.advance(12)?;
            let words = format!("{}: seed {seed}: {} {options:?}", subject.name, describe(&problem));
            let found = of_rows(&session.take_rows()?);
            let is_same = |(a, b): (&Row, &Row)| match subject.is_exact() {
                true => a == b,
                false => a.0 == b.0 && near(&a.1, &b.1),
            };
            assert!(found.len() == rows.len() && found.iter().zip(&rows).all(is_same), "{words}: rows");
            for (number, expected) in expected.iter().enumerate() {
                let found = session.read(number)?;
                match subject.is_exact() {
                    true => assert!(found.same_bits(expected), "{words}: field {number}"),
                    false => assert!(near(&bits(&found.to_f64()), &bits(&expected.to_f64())), "{words}"),
                }
            }
            assert_eq!(bits(&session.scalars()?), bits(&scalars), "{words}");
        }
    }
    Ok(())
}
