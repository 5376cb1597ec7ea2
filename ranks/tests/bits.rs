//! Several ranks have the bits of one: every entry of the catalogue, every boundary, both types, uneven cuts, several
//! depths, odd extents.

use crate::common;

use std::sync::Arc;

use abide_core::catalogue;
use abide_core::expr::Expr;
use abide_core::program::{Centring, Definition, Probe, Record, StageKind, Until};
use abide_core::slabs::Slabs;
use abide_core::{
    Array, Boundaries, Boundary, DType, Depth, Error, Execution, Options, Problem, Program, Scope, Shape,
    Tune,
};
use abide_cpu::CpuBackend;
use common::{assert_same, assert_same_from, fields, open, problem, ranked};

/// Extents for a number of axes: enough planes for four ranks of any entry, and no even number.
fn extents(dimensions: usize) -> &'static [usize] {
    match dimensions {
        1 => &[47],
        2 => &[47, 13],
        _ => &[31, 5, 7],
    }
}

#[test]
fn every_entry_has_the_same_bits() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for (number, boundary) in Boundary::each(0.375).into_iter().enumerate() {
                let dtype = [DType::F32, DType::F64][number % 2];
                let mut problem = problem(entry.name, extents(dimensions), dtype);
                problem.set_boundaries(Boundaries::all(boundary));
                // Weights and depths in turn; the plan takes fewer ranks where the stencil reads too far.
                let (weights, depth): (&[usize], u32) =
                    [(&[1, 1][..], 1), (&[1, 2, 1], 2), (&[3, 1, 1, 2], 1), (&[2, 1], 3)][number % 4];
                assert_same(&problem, &ranked(weights).every(depth), &Options::default(), 4);
            }
        }
    }
}

#[test]
fn every_schedule_of_a_slab_has_the_same_bits() {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let streaming =
        [2, 3, 5].map(|depth| Options { execution: Execution::Streaming, depth: Depth::Steps(depth), ..own });
    let persistent = Options { execution: Execution::Persistent, depth: Depth::Steps(2), ..own };
    for (name, extents) in [("2d9pt", &[67, 21][..]), ("gray-scott", &[45, 23]), ("3d7pt", &[41, 7, 9])] {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.25)] {
            for dtype in [DType::F32, DType::F64] {
                let mut problem = problem(name, extents, dtype);
                problem.set_boundaries(Boundaries::all(boundary));
                for options in streaming.iter().chain([&own, &persistent]) {
                    assert_same(&problem, &ranked(&[3, 2, 4]), options, 11);
                }
            }
        }
    }
}

/// Random programs with fields on faces and nodes, temporaries, scalars, reductions that steer, points and cycles of steps.
/// Those with reductions run on larger domains, which have leaves for several ranks.
#[test]
fn random_programs_have_the_same_bits() {
    let (mut run, mut reduced, mut refused) = (0, 0, 0);
    for case in abide_random::cases::random(0..400) {
        let mut problem = case.problem;
        (problem.record, problem.marks) = (None, None);
        let mut start = case.start;
        let reduces =
            problem.program.stages().iter().any(|stage| matches!(stage.does, StageKind::Reduce(..)));
        if reduces {
            let extents: &[usize] = [&[1300][..], &[61, 41], &[21, 13, 35]][problem.shape.dimensions() - 1];
            let larger = Shape::new(extents).unwrap();
            let Ok(own) = Problem::new(problem.program.clone(), larger, problem.dtype) else { continue };
            problem = Problem { first_step: problem.first_step, ..own };
            start = fields(&problem);
        }
        if let Err(error) = Slabs::check(&problem) {
            assert!(matches!(error, Error::Unsupported { .. }), "{}: {error}", case.name);
            refused += 1;
            continue;
        }
        let depth = 1 + run % 3;
        if Slabs::most(&problem, depth) < 2 {
            continue;
        }
        assert_same_from(&problem, start, &ranked(&[1, 2, 1]).every(depth), &Options::default(), case.steps);
        run += 1;
        reduced += usize::from(reduces);
    }
    assert!(run > 60 && reduced > 30, "{run} run, {reduced} of them with reductions, {refused} refused");
}

/// Programs whose steps read less far than as many times their radius, or whose first stages read less far than the last: what is
/// wrong at an inner side comes no nearer than what is exchanged.
#[test]
fn programs_that_read_unequally_far_have_the_same_bits() {
    fn mean<'g>(s: &Scope<'g>, field: &str, radius: i32) -> Expr<'g> {
        let u = s.field(field);
        0.4 * u.here() + 0.3 * (u.along(0, -radius) + u.along(0, radius))
    }
    let mut stages = Definition::new("stages", 1);
    stages.field("u", Centring::CELL).field("v", Centring::CELL);
    stages
        .step()
        .stage("near", |s| s.set("u", mean(s, "v", 1) + 0.1 * s.field("u").here()))
        .stage("far", |s| s.set("v", mean(s, "u", 5)));
    let mut crossed = Definition::new("crossed", 1);
    crossed.field("u", Centring::CELL).field("v", Centring::CELL);
    crossed.step().stage("swap", |s| {
        s.set("u", mean(s, "v", 3));
        s.set("v", s.field("u").here());
    });
    for program in [stages, crossed].map(|definition| Arc::new(definition.build().unwrap())) {
        for boundary in [Boundary::Fixed, Boundary::Mirror, Boundary::Periodic] {
            let shape = Shape::new(&[211]).unwrap();
            let mut problem = Problem::new(program.clone(), shape, DType::F64).unwrap();
            problem.set_boundaries(Boundaries::all(boundary));
            for depth in [1, 2, 3, 5] {
                assert_same(&problem, &ranked(&[2, 1, 2]).every(depth), &Options::default(), 23);
            }
        }
    }
}

/// A program that uses coordinates, sets points, counts planes, and ends by a condition.
fn placed(dimensions: usize, boundary: Boundary) -> Program {
    let mut p = Definition::new("placed", dimensions);
    p.field("u", Centring::CELL).field("w", Centring::face(dimensions, 0)).boundary(boundary);
    p.extent("planes", 0, "planes of the whole domain").scalar("time", Some(0.0), "steps done");
    let points: Vec<Vec<usize>> =
        [0, 17, 30, 31].iter().map(|&z| [vec![z], vec![2; dimensions - 1]].concat()).collect();
    p.step()
        .compute("time", |s| s.param("time") + 1.0)
        .stage("flow", |s| {
            let (u, at) = (s.field("u"), s.coord(0) / s.param("planes"));
            s.set("w", 0.5 * s.field("w").along(0, 0) + at * (u.along(0, 0) - u.along(0, -1)));
        })
        .stage("change", |s| {
            let (u, w) = (s.field("u"), s.field("w"));
            s.set("u", u.here() + 0.1 * (w.along(0, 1) - w.along(0, 0)) + 0.001 * (0.3 * s.coord(0)).sin());
        })
        .points_slice("source", &points, |s| s.set("u", s.field("u").here() + 0.01 * s.param("time")));
    p.build().unwrap()
}

#[test]
fn slabs_know_where_they_are() {
    for (number, boundary) in Boundary::each(0.25).into_iter().enumerate() {
        // The stages read beyond all sides, which fixed ones do not have.
        if boundary == Boundary::Fixed {
            continue;
        }
        let extents: &[usize] = [&[37][..], &[37, 5], &[37, 5, 3]][number % 3];
        for dtype in [DType::F32, DType::F64] {
            let program = Arc::new(placed(extents.len(), boundary));
            let mut problem = Problem::new(program.clone(), Shape::new(extents).unwrap(), dtype).unwrap();
            problem.until = Some(Until::parse("time >= 12", &program).unwrap());
            for depth in [1, 2, 3] {
                assert_same(&problem, &ranked(&[2, 1, 2]).every(depth), &Options::default(), 10);
            }
            // An ended run goes on where a parameter or a value is set, on whichever rank.
            let (mut one, mut several) = (
                open(&CpuBackend::reference(), &problem, &Options::default()),
                open(&ranked(&[1, 1]).every(2), &problem, &Options::default()),
            );
            let (low, mut high) = ([0; 3], [1; 3]);
            high[3 - extents.len()] = 2;
            for session in [&mut one, &mut several] {
                session.advance(15).unwrap();
                assert_eq!(session.remaining(), 3);
                session.advance(2).unwrap();
                assert_eq!(session.remaining(), 2);
                let value = Array::from_fn(dtype, 2, |_| 0.25);
                session.write_window(0, low, high, &value).unwrap();
                session.advance(3).unwrap();
                assert_eq!(session.remaining(), 2);
            }
            assert!(one.read(0).unwrap().same_bits(&several.read(0).unwrap()));
        }
    }
}

/// What is read and written in windows, and noted step by step, is that of one domain.
#[test]
fn windows_records_and_parameters_are_those_of_one_domain() {
    for boundary in [Boundary::Periodic, Boundary::Mirror] {
        let mut problem = problem("heat-conductivity", &[31, 11], DType::F64);
        problem.set_boundaries(Boundaries::all(boundary));
        let probes = vec![Probe::new(&problem.program, "u", &[20, 3]).unwrap()];
        problem.record = Some(Record::new(&problem.program, 2, probes));
        let single = CpuBackend::reference();
        let mut one = open(&single, &problem, &Options::default());
        let mut several = open(&ranked(&[1, 1, 2]).every(3), &problem, &Options::default());
        for round in 0..4 {
            for session in [&mut one, &mut several] {
                session.advance(4).unwrap();
                // Across all slabs and their halos, in a field that changes and in a coefficient.
                for field in 0..2 {
                    let (low, high) = ([0, 1 + round, 2], [1, 29 - round, 9]);
                    let values = (high[1] - low[1]) * (high[2] - low[2]);
                    let values = Array::from_fn(DType::F64, values, |i| 0.2 + 0.001 * i as f64);
                    session.write_window(field, low, high, &values).unwrap();
                }
                session.advance(5).unwrap();
                let whole = session.read(0).unwrap();
                session.write(0, &whole).unwrap();
                session.advance(2).unwrap();
            }
            for field in 0..2 {
                assert!(
                    one.read(field).unwrap().same_bits(&several.read(field).unwrap()),
                    "{boundary} {round}"
                );
                let (low, high) = ([0, 3, 1], [1, 28, 10]);
                let window = one.read_window(field, low, high).unwrap();
                assert!(window.same_bits(&several.read_window(field, low, high).unwrap()));
                assert_eq!(several.non_finite(field), Ok(0));
            }
            let (one, several) = (one.take_rows().unwrap(), several.take_rows().unwrap());
            assert!(one.iter().eq(several.iter()) && one.iter().count() > 4);
        }
        assert!(several.read_window(0, [0; 3], [1, 32, 1]).is_err());
        assert!(several.read(7).is_err() && several.set_parameter(9, 1.0).is_err());
        let ranks = several.take_ranks().unwrap();
        assert_eq!(ranks.iter().map(|rank| rank.planes.clone()).collect::<Vec<_>>(), [0..8, 8..16, 16..31]);
        assert!(ranks.iter().all(|rank| rank.efficiency > 0.0 && rank.efficiency <= 1.0));
    }
}

/// Many random plain problems: a longer sweep.
#[test]
#[ignore = "takes a minute"]
fn every_entry_boundary_type_rank_and_depth() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for boundary in Boundary::each(0.375) {
                for dtype in [DType::F32, DType::F64] {
                    for weights in [&[1][..], &[1, 1], &[2, 1, 3], &[3, 1, 1, 2]] {
                        for depth in [1, 2, 5] {
                            let mut problem = problem(entry.name, extents(dimensions), dtype);
                            problem.set_boundaries(Boundaries::all(boundary));
                            assert_same(&problem, &ranked(weights).every(depth), &Options::default(), 11);
                        }
                    }
                }
            }
        }
    }
}
