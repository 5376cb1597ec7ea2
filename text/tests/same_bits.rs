//! A program that is written as text and read back computes the same bits, for other parameters too.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Probe, Program, Record};
use abide_core::{Array, Backend, Options, Problem, Result, Shape};
use abide_cpu::CpuBackend;
use abide_random::{cases, described, grown, programs};
use proptest::prelude::*;

/// What a run leaves: the fields, the scalars, and the record by the bits.
type Left = (Vec<Array>, Vec<u64>, Vec<(u64, Vec<u64>)>);

/// Runs a problem on the reference.
fn run(problem: &Problem, fields: &[Array], steps: u64) -> Result<Left> {
    let mut problem = problem.clone();
    let probe = Probe { field: problem.program.shown(), index: [0; 3] };
    problem.record = Some(Record::new(&problem.program, 1, vec![probe]));
    let backend = CpuBackend::reference();
    let plan = backend.plan(&problem, &Options::default())?;
    let mut session = backend.open(&problem, &plan, fields.to_vec())?;
    session.advance(steps)?;
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    let rows = session.take_rows()?;
    let fields = (0..fields.len()).map(|field| session.read(field)).collect::<Result<_>>()?;
    let rows = rows.iter().map(|(step, values)| (step, bits(values))).collect();
    Ok((fields, bits(&session.scalars()?), rows))
}

/// Returns the same problem of another program, with whatever of the first is a run's own.
fn of(program: Program, problem: &Problem) -> Problem {
    let mut other = Problem::unchecked(Arc::new(program), problem.shape, problem.dtype);
    other.first_step = problem.first_step;
    other.lower_walls().unwrap();
    other
}

/// Checks that a program comes back from text, with the bits of some steps. `problem` has the program's own boundaries,
/// parameters and scalars, or a run's.
fn check(
    problem: &Problem,
    fields: &[Array],
    is_own: bool,
    seed: u64,
) -> std::result::Result<(), TestCaseError> {
    let fail = |error: abide_core::Error, text: &str| TestCaseError::fail(format!("{error}\n{text}"));
    let program = &problem.program;
    let text = abide_text::write(program).map_err(|error| fail(error, ""))?;
    let read = abide_text::read(&text, "model").map_err(|error| fail(error, &text))?.program;
    prop_assert_eq!(abide_text::formulas(program.declared()), abide_text::formulas(&read));
    for field in 0..program.fields().len() {
        prop_assert_eq!(program.start(field), read.start(field));
    }
    let mut other = of(read, problem);
    if is_own {
        prop_assert_eq!(
            problem.boundaries.describe(program.dimensions()),
            other.boundaries.describe(program.dimensions())
        );
        prop_assert_eq!((&problem.sides, problem.until), (&other.sides, other.until));
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&problem.parameters), bits(&other.parameters), "{}", &text);
        prop_assert_eq!(bits(&problem.scalars), bits(&other.scalars));
    } else {
        (other.boundaries, other.sides) = (problem.boundaries, problem.sides.clone());
        other.parameters = problem.parameters.clone();
    }
    let mut problem = problem.clone();
    let mut rng = fastrand::Rng::with_seed(seed);
    for turn in 0..3 {
        let left = run(&problem, fields, 4).map_err(|error| fail(error, &text))?;
        let (mine, scalars, rows) = run(&other, fields, 4).map_err(|error| fail(error, &text))?;
        let same = left.0.iter().zip(&mine).all(|(own, other)| own.same_bits(other));
        prop_assert!(same, "turn {} has other fields\n{}", turn, &text);
        prop_assert_eq!(&left.1, &scalars, "turn {}\n{}", turn, &text);
        prop_assert_eq!(&left.2, &rows, "turn {}\n{}", turn, &text);
        for number in 0..program.parameters().len() {
            let value = rng.f64() + 0.0625;
            if !program.is_derived(number) {
                problem.parameters[number] = value;
                other.parameters[number] = value;
            }
        }
        problem.derive();
        other.derive();
    }
    Ok(())
}

#[test]
fn programs_of_every_part_keep_their_bits() {
    let (mut checked, mut derived, mut ended) = (0, 0, 0);
    for seed in 0..160 {
        let Ok((problem, fields)) = described::problem(seed) else { continue };
        check(&problem, &fields, true, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        checked += 1;
        derived += problem.program.derived().len();
        ended += usize::from(problem.until.is_some());
    }
    assert!(checked > 60 && derived == 2 * checked && ended > 20, "{checked} {derived} {ended}");
}

#[test]
fn programs_of_several_kinds_keep_their_bits() {
    for (number, case) in cases::cases().unwrap().into_iter().enumerate() {
        if case.problem.shape.cells() < 3000 {
            check(&case.problem, &case.start, false, number as u64).unwrap();
        }
    }
    for seed in 0..60 {
        if let Ok((problem, fields)) = programs::problem(seed) {
            check(&problem, &fields, true, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn stencils_keep_their_bits(case in grown::cases(), seed in any::<u64>()) {
        if let Some(problem) = case.problem(abide_core::DType::F32) {
            check(&problem, &case.fields(&problem), false, seed)?;
        }
    }
}

/// Each part of a program that a run would see stands in the text, or is refused by name.
#[test]
fn what_text_cannot_hold_is_refused_by_name() {
    let error = |define: fn(&mut Definition)| {
        let mut p = Definition::new("model", 1);
        define(&mut p);
        let program = p.build().unwrap();
        abide_text::write(&program).unwrap_err().to_string()
    };
    // What looks like a component is one where a field of the name before the brackets is not.
    let both = error(|p| {
        p.field("Y", Centring::CELL).field("Y[0]", Centring::CELL);
        p.step().stage("keep", |s| s.set("Y", s.field("Y[0]").here() * 2.0));
    });
    assert!(both.contains("model as text") && both.contains("Y[0]"), "{both}");
    assert!(error(|p| keep(p, "a`b")).contains("a`b"));
    assert!(error(|p| keep(p, "where")).contains("where"));
    let long = error(|p| {
        p.field("u", Centring::CELL);
        let mut step = p.step();
        for number in 0..9000 {
            let name = format!("{number} {}", "long ".repeat(30));
            step.stage(&name, |s| s.set("u", s.field("u").here()));
        }
    });
    assert!(long.contains("bytes of model as text"), "{long}");
}

fn keep(p: &mut Definition, name: &str) {
    p.field(name, Centring::CELL);
    p.step().stage("keep", |s| s.set(name, s.field(name).here()));
}

/// A model file says boundaries by side and by field at its top, and a condition that ends a run.
#[test]
fn a_model_says_its_sides_and_its_end() {
    let text = "axes = 2\nboundary = \"y=periodic,x-=constant=k,x+=mirror,v:x=-reflect\"\nuntil = \"time >= 0.5\"\n[fields]\n\
                u = 1\nv = { start = 'given', boundary = 'y=periodic,x=clamp' }\n[parameters]\nk = 2\n[scalars]\ntime = 0.0\n[[stages]]\n\
                u = 'u + 0.1*(u[0,1] - u)'\nv = 'v[0,-1]'\n[[stages]]\ntime = 'time + 0.125'\n";
    let program = abide_text::read(text, "m").unwrap().program;
    assert_eq!(program.boundaries().describe(2), "y=periodic,x-=constant=k,x+=mirror");
    let problem =
        Problem::new(Arc::new(program), Shape::new(&[4, 5]).unwrap(), abide_core::DType::F64).unwrap();
    assert_eq!(problem.boundaries_of(1).describe(2), "y=periodic,x=-reflect");
    let u = Array::from_fn(abide_core::DType::F64, 20, |i| i as f64);
    let (_, scalars, rows) = run(&problem, &[u.clone(), u.clone()], 100).unwrap();
    assert_eq!((scalars, rows.len()), (vec![0.5f64.to_bits()], 5));
    check(&problem, &[u.clone(), u], true, 3).unwrap();
    for (from, to, says) in [
        ("x+=mirror", "x+=mirrored", "line 2, column 12"),
        ("v:x", "w:x", "no field is named `w`"),
        ("time >= 0.5", "times >= 0.5", "line 3, column 9"),
        ("time >= 0.5", "time = 0.5", "it is no condition"),
    ] {
        let error = abide_text::read(&text.replace(from, to), "m").unwrap_err().to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
}

/// A parameter may be a formula of those before it, which the host computes.
#[test]
fn formulas_of_parameters_are_read() {
    let text = |entry: &str| {
        format!(
            "axes = 1\n[fields]\nu = 1\n[parameters]\ndt = 0.1\ndx = 0.5\nc = {entry}\nlast = 3\n[[stages]]\nu = 'u*c + last'\n"
        )
    };
    let read = |entry: &str| abide_text::read(&text(entry), "m");
    let program = read("{ formula = 'dt/dx', about = 'cells a step' }").unwrap().program;
    assert_eq!(program.parameters()[2].default, 0.1 / 0.5);
    assert!(program.is_derived(2) && !program.is_derived(3));
    let parts = read("{ parts = { a = 'dt*dt', b = 'a + dx' }, formula = 'a/b' }").unwrap().program;
    assert_eq!(parts.parameters()[2].default, (0.1 * 0.1) / (0.1 * 0.1 + 0.5));
    for (entry, says) in [
        ("{ formula = 'dt/dy' }", "line 7, column 21: no value is named `dy`"),
        ("{ formula = 'last' }", "no value is named `last`"),
        ("{ formula = 'u' }", "no value is named `u`"),
        ("{ formula = 'dt', default = 1 }", "another value"),
        ("{ formula = 'dt', vary = 'dt' }", "another value"),
        ("{ parts = { a = 'dt' }, default = 1 }", "no formula"),
        ("{ formula = 3 }", "a text in quotes"),
        ("{ parts = { a = 'dt +' }, formula = 'a' }", "line 7"),
    ] {
        let error = read(entry).unwrap_err().to_string();
        assert!(error.contains(says), "{entry}: {error}");
    }
}
