//! The promises of every session, whatever it computes.

use std::sync::Arc;

use abide::backend::{window_of, write_rows};
use abide::{Array, Boundary, DType, Error, Execution, Options, Result, Shape, Simulation, catalogue};

use crate::trust::subject::{Subject, describe, each, entry, field, fields, problem};

pub fn zero_steps_change_nothing(subject: &Subject) -> Result<()> {
    for entry in catalogue::plain() {
        let axes = *entry.dimensions.start();
        let extents = &[11, 13, 17][..axes];
        for dtype in subject.dtypes() {
            let program = Arc::new(entry.program(axes)?);
            let boundary = program.boundary();
            let problem = problem(program, extents, dtype, abide::Boundaries::all(boundary))?;
            let before = fields(&problem, 5)?;
            each(&subject.variants(&problem), |options| {
                let after = subject.run(&problem, options, &before, 0)?;
                assert!(after.iter().zip(&before).all(|(a, b)| a.same_bits(b)), "{}", describe(&problem));
                Ok(())
            })?;
        }
    }
    Ok(())
}

pub fn a_fixed_domain_without_interior_stays(subject: &Subject) -> Result<()> {
    let cases: [(&str, &[usize]); 6] = [
        ("1d3pt", &[2]),
        ("2d21pt", &[10, 40]),
        ("2d21pt", &[1, 1]),
        ("3d13pt", &[4, 9, 9]),
        ("wave", &[1, 9]),
        ("fdtd-tm", &[2, 50]),
    ];
    for (name, extents) in cases {
        for dtype in subject.dtypes() {
            let problem = entry(name, extents, dtype, Boundary::Fixed)?;
            let before = fields(&problem, 6)?;
            each(&subject.variants(&problem), |options| {
                let after = subject.run(&problem, options, &before, 9)?;
                assert!(
                    after.iter().zip(&before).all(|(a, b)| a.same_bits(b)),
                    "{} {options:?}",
                    describe(&problem)
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}

pub fn nan_spreads_as_far_as_the_taps_reach(subject: &Subject) -> Result<()> {
    for (poison, dtype) in [(f64::NAN, DType::F32), (f64::INFINITY, DType::F32), (f64::NAN, DType::F64)] {
        if !subject.has(dtype) {
            continue;
        }
        let problem = entry("2d5pt", &[31, 37], dtype, Boundary::Fixed)?;
        let start = field(&problem, |at| if at == [0, 15, 18] { poison } else { 0.5 });
        let mut run = Simulation::builder("2d5pt")
            .size(&[31, 37])
            .dtype(dtype)
            .input("u", start)
            .on(&subject.opened)
            .build()?;
        run.run(5)?;
        // A star of radius 1 reaches 2n² + 2n + 1 cells in n steps.
        assert_eq!(run.non_finite()?, 61, "{poison} {dtype}");
        let end = run.field("u")?.to_f64();
        for (i, value) in end.iter().enumerate() {
            let [_, y, x] = problem.shape.cell(i);
            let reached = y.abs_diff(15) + x.abs_diff(18) <= 5;
            assert_eq!(!value.is_finite(), reached, "{poison} {dtype} at {y}, {x}: {value}");
        }
    }
    Ok(())
}

pub fn a_checkpoint_splits_a_run_without_a_trace(subject: &Subject) -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("checkpoint");
    for (name, extents) in
        [("gray-scott", &[61, 47][..]), ("wave", &[13, 17, 19]), ("fdtd-tm", &[33, 29]), ("1d3pt", &[101])]
    {
        for dtype in subject.dtypes() {
            let build = || Simulation::builder(name).size(extents).dtype(dtype).on(&subject.opened);
            let mut whole = build().build()?;
            whole.advance(100)?;
            let mut first = build().build()?;
            first.advance(37)?;
            first.checkpoint(&file)?;
            drop(first);
            let mut second = Simulation::builder(name).resume(&file).on(&subject.opened).build()?;
            assert_eq!(second.step(), 37);
            second.advance(63)?;
            assert_eq!(second.step(), 100);
            for field in whole.problem().program.clone().fields() {
                assert!(second.field(field)?.same_bits(&whole.field(field)?), "{name} {dtype} {field}");
            }
        }
    }
    Ok(())
}

pub fn windows_are_parts_of_the_whole(subject: &Subject) -> Result<()> {
    for (name, extents) in [("1d3pt", &[97][..]), ("gray-scott", &[31, 43]), ("3d7pt", &[7, 11, 13])] {
        for dtype in subject.dtypes() {
            let mut run = Simulation::builder(name).size(extents).dtype(dtype).on(&subject.opened).build()?;
            run.advance(3)?;
            let problem = run.problem().clone();
            let end = problem.shape.padded();
            for field in problem.program.fields() {
                let whole = run.field(field)?;
                let low = end.map(|n| n / 3);
                let high = end.map(|n| (2 * n).div_ceil(3));
                for (low, high) in [([0; 3], end), (low, high), (end.map(|n| n - 1), end)] {
                    let window = run.window(field, low, high)?;
                    assert!(
                        window.same_bits(&window_of(problem.shape.padded(), &whole, low, high)?),
                        "{} {low:?} {high:?}",
                        describe(&problem)
                    );
                }
                let beyond = run.window(field, [0; 3], end.map(|n| n + 1));
                assert!(matches!(beyond, Err(Error::Limit { .. })));
            }
        }
    }
    Ok(())
}

/// A window's values take the place of those in it and of no others, for the next step too.
pub fn windows_are_written_alone(subject: &Subject) -> Result<()> {
    for (name, extents) in [("1d3pt", &[97][..]), ("gray-scott", &[31, 43]), ("3d7pt", &[7, 11, 13])] {
        for dtype in subject.dtypes() {
            let boundary = if name == "3d7pt" { Boundary::Fixed } else { Boundary::Periodic };
            let problem = entry(name, extents, dtype, boundary)?;
            let (start, end) = (fields(&problem, 8)?, problem.shape.padded());
            let last = start.len() - 1;
            let boxes = [
                ([0; 3], end),
                (end.map(|n| n / 3), end.map(|n| (2 * n).div_ceil(3))),
                (end.map(|n| n - 1), end),
                ([0, end[1] / 2, 0], [end[0], end[1] / 2 + 1, end[2]]),
                ([0, 0, end[2] / 2], [end[0], end[1], end[2] / 2 + 1]),
            ];
            each(&subject.variants(&problem), |options| {
                let plan = subject.opened.backend.plan(&problem, options)?;
                let mut session = subject.opened.backend.open(&problem, &plan, start.clone())?;
                for (number, (low, high)) in boxes.into_iter().enumerate() {
                    session.advance(number as u64 % 3)?;
                    let mut expected = session.read(last)?;
                    let count = (0..3).map(|axis| high[axis] - low[axis]).product();
                    let values = Array::from_fn(dtype, count, |i| (i % 17) as f64 / 32.0);
                    match (&mut expected, &values) {
                        (Array::F32(to), Array::F32(from)) => write_rows(end, to, low, high, from),
                        (Array::F64(to), Array::F64(from)) => write_rows(end, to, low, high, from),
                        _ => unreachable!("both are of the run's type"),
                    }
                    session.write_window(last, low, high, &values)?;
                    let what = || format!("{} {options:?} {low:?} {high:?}", describe(&problem));
                    assert!(session.read(last)?.same_bits(&expected), "{}", what());
                    assert!(session.read_window(last, low, high)?.same_bits(&values), "{}", what());
                    subject.check_step(&problem, options, session.as_mut())?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The device counts as the host does, at any place of a field, and numbers close to the largest are finite.
pub fn what_is_not_finite_is_counted_where_it_lies(subject: &Subject) -> Result<()> {
    for (name, extents) in [("1d3pt", &[70001][..]), ("gray-scott", &[131, 257]), ("3d7pt", &[7, 11, 13])] {
        for dtype in subject.dtypes() {
            let problem = entry(name, extents, dtype, Boundary::Fixed)?;
            let plan = subject.opened.backend.plan(&problem, &Options::default())?;
            let mut session = subject.opened.backend.open(&problem, &plan, fields(&problem, 4)?)?;
            let cells = problem.shape.cells();
            let largest = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
            let strange = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, largest, -largest, 0.0, -f64::NAN];
            for sparse in [1, 3, 1009, cells] {
                let value = |i: usize| if i % sparse == sparse - 1 { strange[i / sparse % 7] } else { 0.5 };
                let values = Array::from_fn(dtype, cells, value);
                let last = problem.program.fields().len() - 1;
                session.write(last, &values)?;
                let found = session.non_finite(last)?;
                assert_eq!(found, values.non_finite() as u64, "{} {sparse}", describe(&problem));
            }
            assert!(session.non_finite(problem.program.fields().len()).is_err());
        }
    }
    Ok(())
}

/// A record changes neither the schedule nor the bits, and each row has the values that a run of as many steps
/// ends with.
pub fn probes_are_the_values_of_each_step(subject: &Subject) -> Result<()> {
    for (name, extents) in [("1d3pt", &[97][..]), ("gray-scott", &[31, 43]), ("3d7pt", &[7, 11, 13])] {
        for dtype in subject.dtypes() {
            let build = || Simulation::builder(name).size(extents).dtype(dtype).on(&subject.opened);
            let middle: Vec<usize> = extents.iter().map(|n| n / 2).collect();
            let corner: Vec<usize> = extents.iter().map(|n| n - 1).collect();
            let mut run = build().first_step(4).record(3).probe("u", &middle).probe("u", &corner).build()?;
            // Kernels may note the values in the pass.
            assert_eq!(run.plan().execution, build().build()?.plan().execution, "{name} {dtype}");
            run.advance(8)?;
            let rows = run.records()?;
            assert_eq!(rows.iter().map(|(step, _)| step).collect::<Vec<_>>(), [4, 6, 9, 12]);
            let mut other = build().first_step(4).build()?;
            for (step, row) in rows.iter() {
                other.advance(step - other.step())?;
                let u = other.field("u")?.to_f64();
                let shape = Shape::new(extents)?;
                for (index, value) in [&middle, &corner].into_iter().zip(row) {
                    let mut padded = [0; 3];
                    padded[3 - extents.len()..].copy_from_slice(index);
                    assert_eq!(u[shape.index(padded)].to_bits(), value.to_bits(), "{name} {dtype} {step}");
                }
            }
            assert!(run.records()?.is_empty());
            run.advance(100)?;
            assert_eq!(run.records()?.len(), 33);
        }
    }
    Ok(())
}

pub fn parameters_and_fields_can_change_between_steps(subject: &Subject) -> Result<()> {
    for dtype in subject.dtypes() {
        let problem = entry("gray-scott", &[37, 53], dtype, Boundary::Periodic)?;
        let start = fields(&problem, 2)?;
        let fresh = fields(&problem, 99)?[1].clone();
        let feed = problem.program.parameter("feed")?;

        let mut changed = problem.clone();
        changed.parameters[feed] = 0.05;
        let mut expected = start.clone();
        abide_cpu::reference::advance(&problem, &mut expected, 4)?;
        abide_cpu::reference::advance(&changed, &mut expected, 3)?;
        expected[1] = fresh.clone();
        abide_cpu::reference::advance(&changed, &mut expected, 4)?;

        each(&subject.variants(&problem), |options| {
            let plan = subject.opened.backend.plan(&problem, options)?;
            let mut session = subject.opened.backend.open(&problem, &plan, start.clone())?;
            session.advance(4)?;
            session.set_parameter(feed, 0.05)?;
            session.advance(3)?;
            subject.check_step(&changed, options, session.as_mut())?;

            let mut session = subject.opened.backend.open(&problem, &plan, start.clone())?;
            session.advance(4)?;
            session.set_parameter(feed, 0.05)?;
            session.advance(3)?;
            session.write(1, &fresh)?;
            assert!(session.read(1)?.same_bits(&fresh));
            session.advance(4)?;
            for (field, expected) in expected.iter().enumerate() {
                let (got, expected) = (session.read(field)?, expected.to_f64());
                // The steps magnify a difference a little; a missed change would differ in the second digit.
                let error =
                    got.to_f64().iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                let allowed = if subject.is_exact() { 0.0 } else { 1e-5 };
                assert!(error <= allowed, "{} {options:?}: off by {error:e}", describe(&problem));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Every mistake is an error that says what to change; none is a panic, and none is ignored.
pub fn bad_requests_are_refused(subject: &Subject) -> Result<()> {
    let problem = entry("heat", &[9, 11], DType::F32, Boundary::Mirror)?;
    let backend = &subject.opened.backend;
    let plan = backend.plan(&problem, &Options::default())?;
    let good = fields(&problem, 1)?;
    let short = vec![Array::F32(vec![0.0; 98])];
    let wrong_type = vec![good[0].cast(DType::F64).unwrap()];
    for bad in [vec![], short.clone(), wrong_type.clone(), [good.clone(), good.clone()].concat()] {
        assert!(matches!(
            backend.open(&problem, &plan, bad),
            Err(Error::Invalid { .. } | Error::Limit { .. })
        ));
    }
    let mut session = backend.open(&problem, &plan, good.clone())?;
    for number in [1, usize::MAX] {
        assert!(session.read(number).is_err());
        assert!(session.write(number, &good[0]).is_err());
        assert!(session.set_parameter(number, 1.0).is_err());
    }
    assert!(session.write(0, &short[0]).is_err());
    assert!(session.write(0, &wrong_type[0]).is_err());
    let one = [[0, 2, 3], [1, 3, 4]];
    assert!(session.write_window(0, one[0], one[1], &Array::F32(vec![0.0; 2])).is_err());
    assert!(session.write_window(0, one[0], one[1], &Array::F64(vec![0.0])).is_err());
    assert!(session.write_window(1, one[0], one[1], &Array::F32(vec![0.0])).is_err());
    for (low, high) in
        [([0, 0, 0], [1, 10, 11]), ([0, 5, 5], [1, 5, 6]), ([1, 0, 0], [2, 9, 11]), ([0, 9, 3], [1, 8, 4])]
    {
        assert!(session.read_window(0, low, high).is_err(), "{low:?} {high:?}");
        assert!(session.write_window(0, low, high, &good[0]).is_err(), "{low:?} {high:?}");
    }
    // After all these mistakes the session still works.
    session.advance(2)?;
    subject.check_step(&problem, &Options::default(), session.as_mut())?;

    let mut thin = problem.clone();
    thin.shape = Shape::new(&[9])?;
    assert!(backend.plan(&thin, &Options::default()).is_err());
    let mut missing = problem.clone();
    missing.parameters.clear();
    assert!(backend.plan(&missing, &Options::default()).is_err());
    // Axes shorter than the radius have a launch per stage alone.
    for boundary in [Boundary::Periodic, Boundary::Mirror] {
        let thin = entry("2d21pt", &[4, 40], DType::F32, boundary)?;
        let streaming = Options { execution: Execution::Streaming, ..Options::default() };
        assert!(backend.plan(&thin, &streaming).is_err());
        let plan = backend.plan(&thin, &Options::default())?;
        let mut session = backend.open(&thin, &plan, fields(&thin, 1)?)?;
        session.advance(2)?;
        subject.check_step(&thin, &Options::default(), session.as_mut())?;
    }
    Ok(())
}
