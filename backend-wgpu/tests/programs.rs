//! Programs that are not plain, on the device against the CPU's reference.
//!
//! WGSL lets a driver fuse operations, and drivers do. So each step is held against the reference's step from
//! the same values, within the stated bound; where none can be stated, because a comparison may fall either way
//! or a divisor may come near 0, within `WITHOUT_BOUND`.

use crate::{clover, common, deck};

use std::sync::Arc;

use abide_core::backend::window_of;
use abide_core::program::{Centring, Definition, MAX_FIELDS, Marks, Probe, Record, Reduction, Until};
use abide_core::{Array, Backend, Boundary, DType, Error, Options, Problem, Result, Session, Shape};
use abide_cpu::CpuBackend;
use abide_random::cases::{Case, cases, random};
use abide_random::systems::systems;
use abide_wgpu::WgpuBackend;

use clover::clover;
use common::pair::{Pair, reference};
use common::{backend, read_all};
use deck::Deck;

/// Steps that take several submissions and all that repeats.
const MANY: u64 = 40;

/// Runs a case, with writes and another parameter between steps, and reads windows at last.
fn follow(backend: &WgpuBackend, case: &Case) -> Result<[f64; 2]> {
    let plan = backend.plan(&case.problem, &Options::default())?;
    let mut pair = Pair::open(backend, case, &plan)?;
    pair.compare()?;
    pair.advance(0)?;
    pair.advance(1)?;
    let fields = case.start.len();
    pair.write(fields - 1)?;
    pair.advance(case.steps)?;
    if !pair.problem.parameters.is_empty() {
        pair.single.set_parameter(0, 0.0625)?;
        pair.several.set_parameter(0, 0.0625)?;
        pair.problem.parameters[0] = 0.0625;
    }
    pair.advance(MANY)?;
    pair.write(0)?;
    pair.write(fields / 2)?;
    pair.advance(MANY / 2)?;
    for (field, values) in read_all(&mut *pair.single, &pair.problem).iter().enumerate() {
        let high = pair.problem.extents_of(field);
        let low = high.map(|extent| extent / 2);
        let window = pair.single.read_window(field, low, high)?;
        let expected = window_of(high, values, low, high)?;
        assert!(window.same_bits(&expected), "{}: a window of field {field}", pair.name);
        assert!(pair.single.read_window(field, low, high.map(|extent| extent + 1)).is_err());
    }
    assert!(pair.single.write(fields, &case.start[0]).is_err() && pair.single.read(fields).is_err());
    Ok(pair.worst)
}

#[test]
fn programs_agree_with_the_reference() {
    let Some(backend) = backend() else { return };
    let seeds = if common::is_whole() { 0..60 } else { 0..3 };
    for case in common::sampled(cases().unwrap(), 4).chain(random(seeds)) {
        let begun = std::time::Instant::now();
        let [off, bound] = follow(&backend, &case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        println!("{}: {off:.1} of {bound:.1}, {:.1} s", case.name, begun.elapsed().as_secs_f64());
    }
}

/// Loops have as many turns as the reference's: the device counts them, and the host looks.
#[test]
fn loops_agree_with_the_reference() {
    let Some(backend) = backend() else { return };
    let loops = cases().unwrap().into_iter().filter(|case| case.name.starts_with("loops"));
    for case in common::sampled(loops, 2) {
        let [off, bound] = follow(&backend, &case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        println!("{}: {off:.1} of {bound:.1}", case.name);
    }
}

#[test]
fn cloverleaf_agrees_with_the_reference() {
    let Some(backend) = backend() else { return };
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=27");
    let trace = include_str!("../../tests/cloverleaf/trace13x7/clover.in");
    let flows = include_str!("../../tests/cloverleaf/flows7x6x5/clover.in");
    let cases =
        [("13x7", trace, 6), ("built in", deck::BUILT_IN, 75), ("7x6x5", flows, 24), ("101x27", &larger, 20)];
    for (name, text, steps) in common::sampled(cases, 4) {
        let (problem, start) = clover(&Deck::parse(text).unwrap()).unwrap();
        let case = Case { name: name.to_owned(), problem, start, steps };
        let begun = std::time::Instant::now();
        let plan = backend.plan(&case.problem, &Options::default()).unwrap();
        let mut pair = Pair::open(&backend, &case, &plan).unwrap();
        println!("{name}: opened after {:.1} s", begun.elapsed().as_secs_f64());
        pair.advance(1).unwrap();
        pair.advance(steps - 1).unwrap();
        println!("{name}: {:?} done after {:.1} s", pair.worst, begun.elapsed().as_secs_f64());
    }
}

/// A condition ends a run on the device after the step in which it first holds, and nothing changes after
/// that, however many steps are asked for.
#[test]
fn a_condition_ends_a_run() {
    let Some(backend) = backend() else { return };
    let deck = Deck::parse(include_str!("../../tests/cloverleaf/trace13x7/clover.in")).unwrap();
    let cases = [
        // The third step comes to 0.22.
        ("time >= 0.2", DType::F64, 3),
        ("time > -1", DType::F64, 1),
        ("time >= 0.2", DType::F32, 3),
        ("dt != 1e300", DType::F32, 1),
    ];
    for (condition, dtype, steps) in common::sampled(cases, 2) {
        let (mut problem, mut fields) = clover(&deck).unwrap();
        problem.dtype = dtype;
        fields.iter_mut().for_each(|field| *field = field.cast(dtype).unwrap());
        problem.until = Some(Until::parse(condition, &problem.program).unwrap());
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        let (mut done, mut after) = (0, None);
        for part in [2, 200, 7] {
            session.advance(part).unwrap();
            done += part - session.remaining();
            if session.remaining() > 0 {
                let now: Vec<Array> = (0..fields.len()).map(|field| session.read(field).unwrap()).collect();
                let known = after.get_or_insert_with(|| now.clone());
                assert!(known.iter().zip(&now).all(|(a, b)| a.same_bits(b)), "{condition}");
            }
        }
        assert_eq!(done, steps, "{condition} {dtype}");
        problem.until = None;
        let scalars = reference(&problem, &mut fields, steps).unwrap();
        for (found, expected) in session.scalars().unwrap().iter().zip(&scalars) {
            assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{condition}: {found} {expected}");
        }
        // Where something is set, the run goes on, until the condition holds after a step again.
        session.write(0, &fields[0]).unwrap();
        session.advance(1).unwrap();
        assert_eq!(session.remaining(), 0);
        session.set_parameter(0, problem.parameters[0]).unwrap();
        session.advance(5).unwrap();
        assert_eq!(session.remaining(), 4);
    }
}

/// The device records what can be read after each step, over several rounds of its storage, also where another
/// field is given a buffer of its own in between; marks halt it, and a condition ends the record too.
#[test]
fn rows_are_what_is_read() {
    let Some(backend) = backend() else { return };
    let (mut problem, fields) = clover(&Deck::parse(deck::BUILT_IN).unwrap()).unwrap();
    let program = problem.program.clone();
    let probes = [("density0", [1, 9]), ("xvel0", [2, 10]), ("vol_flux_x", [0, 10])];
    let probes = probes.map(|(field, index)| Probe::new(&program, field, &index).unwrap()).to_vec();
    let bits = |row: &[f64]| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    problem.first_step = 5;
    for (every, by, until, dtype) in [
        (1, None, None, DType::F64),
        (7, None, Some("time >= 1.2"), DType::F32),
        (3, Some(0.4), None, DType::F64),
    ] {
        problem.dtype = dtype;
        let start: Vec<Array> = fields.iter().map(|field| field.cast(dtype).unwrap()).collect();
        problem.marks = by.map(|by| Marks::new(&program, "time", by).unwrap());
        (problem.record, problem.until) = (None, None);
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let record = Record::new(&program, every, probes.clone());
        let mut single = backend.open(&problem, &plan, start.clone()).unwrap();
        problem.record = Some(record.clone());
        problem.until = until.map(|until| Until::parse(until, &program).unwrap());
        let mut session = backend.open(&problem, &plan, start).unwrap();
        let (mut found, mut expected, mut last) = (Vec::new(), Vec::new(), 5);
        for part in [2, 60, 0, 10] {
            let mut left = part;
            while left > 0 {
                session.advance(left).unwrap();
                last += left - session.remaining();
                left = session.remaining();
                if !session.is_at_mark() {
                    break;
                }
            }
            let rows = session.take_rows().unwrap();
            found.extend(rows.iter().map(|(step, row)| (step, bits(row))));
            if until.is_none() {
                let value = session.read(0).unwrap();
                session.write(0, &value).unwrap();
            }
        }
        assert_eq!(last < 77, until.is_some(), "{last}");
        for step in 5..=last {
            if step > 5 {
                single.advance(1).unwrap();
            }
            if step == 5 || step % every == 0 {
                let scalars = single.scalars().unwrap();
                let mut row: Vec<f64> = record.scalars.iter().map(|&number| scalars[number]).collect();
                for probe in &probes {
                    let values = single.read(probe.field).unwrap();
                    row.extend(values.get(probe.position(problem.extents_of(probe.field))));
                }
                expected.push((step, bits(&row)));
            }
        }
        assert!(found == expected, "every {every} by {by:?} until {until:?}");
    }
}

/// A scalar that is not a number ends a run, and each reduction hands it on.
#[test]
fn nan_ends_a_run() {
    let Some(backend) = backend() else { return };
    for reduction in [Reduction::Min, Reduction::Max, Reduction::Sum] {
        let mut p = Definition::new("watched", 2);
        p.boundary(Boundary::Mirror).field("u", Centring::CELL).scalar("found", None, "the reduction");
        p.step()
            .reduce("found", reduction, Centring::CELL, |s| s.field("u").here())
            .stage("halved", |s| s.set("u", 0.5 * s.field("u").at([0, 1])));
        let program = Arc::new(p.build().unwrap());
        for dtype in [DType::F32, DType::F64] {
            let mut problem = Problem::new(program.clone(), Shape::new(&[19, 70]).unwrap(), dtype).unwrap();
            problem.until = Some(Until::parse("found == 1e30", &program).unwrap());
            let start = vec![Array::from_fn(dtype, 19 * 70, |i| (i as f64).cos())];
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, start.clone()).unwrap();
            session.advance(3).unwrap();
            assert_eq!(session.remaining(), 0, "{reduction:?} {dtype}");
            for place in [0, 700, 19 * 70 - 1] {
                let broken =
                    Array::from_fn(dtype, 19 * 70, |i| if i == place { f64::NAN } else { (i as f64).cos() });
                session.write(0, &broken).unwrap();
                session.advance(5).unwrap();
                assert_eq!(session.remaining(), 4, "{reduction:?} {dtype}");
                assert!(session.scalars().unwrap()[0].is_nan());
            }
            session.write(0, &start[0]).unwrap();
            session.advance(5).unwrap();
            assert_eq!(session.remaining(), 0, "{reduction:?} {dtype}");
        }
    }
}

/// A stage that needs more buffers than the device binds is refused, and the refusal says so.
#[test]
fn too_many_buffers_of_a_stage_are_refused() {
    let Some(backend) = backend() else { return };
    let most = backend.adapter().buffers;
    let names: Vec<String> = (0..MAX_FIELDS).map(|number| format!("u{number}")).collect();
    if most > names.len() {
        return println!("skipped: {} binds {most} buffers", backend.adapter().name);
    }
    let mut p = Definition::new("wide", 1);
    p.boundary(Boundary::Mirror).scalar("time", Some(0.0), "steps done");
    for name in &names {
        p.field(name, Centring::NODE);
    }
    p.step().compute("time", |s| s.param("time") + 1.0).stage("all", |s| {
        let sum = s.sum(0..names.len(), |i| s.field(&names[i]).at([1]));
        s.set("u0", sum);
    });
    let problem = Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[9]).unwrap(), DType::F32).unwrap();
    let error = backend.plan(&problem, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("buffers"), "{error}");
}

/// Systems along one to three axes that transforms solve: within rounding of the CPU's, with walls of several kinds, and with a parameter
/// of the operator that is set on the way.
#[test]
fn separable_systems_are_solved() {
    let Some(backend) = backend() else { return };
    let direct = systems().unwrap().into_iter().filter(|case| case.name.contains("Direct"));
    let direct: Vec<Case> = direct.collect();
    assert_eq!(direct.len(), 3);
    for Case { name, problem, start, .. } in direct {
        let runs = [&backend as &dyn Backend, &CpuBackend::with_threads(1).unwrap()].map(|on| {
            let plan = on.plan(&problem, &Options::default()).unwrap();
            let mut session = on.open(&problem, &plan, start.clone()).unwrap();
            let run = |session: &mut dyn Session| {
                session.advance(1).unwrap();
                let residual = problem.program.scalar("u_residual").unwrap();
                (session.read(0).unwrap().to_f64(), session.scalars().unwrap()[residual])
            };
            let first = run(session.as_mut());
            let parameter = problem.program.parameter("own").unwrap();
            session.set_parameter(parameter, 2.0).unwrap();
            [first, run(session.as_mut())]
        });
        for (turn, (found, expected)) in runs[0].iter().zip(&runs[1]).enumerate() {
            let scale = expected.0.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let worst = found.0.iter().zip(&expected.0).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            let near = if problem.dtype == DType::F32 { 1e-5 } else { 1e-12 };
            println!("{name} {} {} {turn}: {worst:e} of {scale:e}", problem.shape, problem.dtype);
            assert!(
                worst <= near * scale && found.1 < 1e-5,
                "{name} {turn}: {worst:e} of {scale:e}, {}",
                found.1
            );
        }
    }
}
