//! Programs that are not plain, run without a GPU: the generated text, compiled as C++, with the bits of the
//! reference.
//!
//! Blocks, and the threads of a block, run in an order drawn at random, so that a stage that reads what it
//! writes is found; buffers have guards, and what nobody has written is not a number.
#![cfg(target_os = "linux")]

use crate::common::{by_parts, part};
use crate::{clover, common, deck};

use std::sync::Arc;
use std::time::Instant;

use abide_core::program::{Centring, Definition, Marks, Probe, Record, Reduction, Until};
use abide_core::slabs::Slabs;
use abide_core::{Array, Boundary, DType, Lowering, Problem, Shape, Start, catalogue};
use abide_emulator::{Compiler, Form, Program, all};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::partition;
use abide_random::systems::systems;
use clover::clover;
use deck::Deck;

by_parts!(
    programs_have_the_references_bits_without_a_gpu,
    a_condition_ends_a_run_without_a_gpu,
    rows_are_recorded_without_a_gpu,
    quotients_and_roots_of_any_numbers_have_the_references_bits_without_a_gpu,
    random_numbers_have_the_references_bits_without_a_gpu,
    loops_have_the_references_bits_without_a_gpu,
    kept_loops_have_the_references_bits_without_a_gpu,
    systems_have_the_references_bits_without_a_gpu,
    a_mark_halts_a_run_without_a_gpu,
);

fn programs_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let mut cases: Vec<Case> = cases().unwrap().into_iter().chain(random(0..40)).collect();
    // The second is so large that tiles lie inside.
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=53");
    for (deck, steps) in [
        (include_str!("../../tests/cloverleaf/trace13x7/clover.in"), 5),
        (include_str!("../../tests/cloverleaf/flows7x6x5/clover.in"), 3),
        (&larger, 3),
    ] {
        let (problem, start) = clover(&Deck::parse(deck).unwrap()).unwrap();
        let name = format!("cloverleaf {}", problem.shape);
        cases.insert(0, Case { name, problem, start, steps });
    }
    for name in ["shallow-water", "lbm-d2q9", "seismic-shot", "euler"] {
        cases.push(from_its_start(name, &[21, 45], 3));
    }
    // A slab in the midst of others: open sides, and reductions of its own planes.
    let (whole, start) = clover(&Deck::parse(&larger).unwrap()).unwrap();
    let slabs = Slabs::new(&whole, 1, &[1; 3]).unwrap();
    let problem = slabs.problem(1, &whole).unwrap();
    let planes = |problem: &Problem, field: usize| problem.extents_of(field)[slabs.axis];
    let of_slab = |(field, values): (usize, &Array)| {
        slabs.part(1, values, planes(&whole, field), planes(&problem, field)).unwrap()
    };
    let start = start.iter().enumerate().map(of_slab).collect();
    cases.push(Case { name: "a slab of cloverleaf".to_owned(), problem, start, steps: 3 });
    check(&compiler, &part(cases, is_other));
}

/// Returns the case of an entry of the catalogue with its own boundaries and start.
fn from_its_start(name: &str, extents: &[usize], steps: u64) -> Case {
    let program = Arc::new(catalogue::find(name).unwrap().program(extents.len()).unwrap());
    let mut problem = Problem::unchecked(program.clone(), Shape::new(extents).unwrap(), DType::F64);
    problem.boundaries = program.boundaries();
    problem.check().unwrap();
    let start = |field| program.start(field).fill(&problem.shape_of(field).unwrap(), DType::F64).unwrap();
    let start = (0..program.fields().len()).map(start).collect();
    Case { name: name.to_owned(), problem, start, steps }
}

/// Holds programs to the reference's bits.
fn check(compiler: &Compiler, cases: &[Case]) {
    all(cases, |case| {
        let begun = Instant::now();
        // Some with a tile that is larger than a block.
        let rows = if case.problem.shape.cells() % 3 == 0 { 2 } else { 1 };
        let outcome = Program::compile(compiler, &case.problem, rows, &[])
            .and_then(|program| program.check(&case.start, case.steps));
        println!("{}: {:.1} s", case.name, begun.elapsed().as_secs_f64());
        outcome.map_err(|why| format!("{}: {why}", case.name))
    });
}

/// A condition ends a run after the step in which it first holds; the launches that follow change nothing.
/// Random numbers in temporaries, masks, reductions and at points.
fn random_numbers_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let draws: Vec<Case> =
        cases().unwrap().into_iter().filter(|case| case.name.starts_with("draws")).collect();
    check(&compiler, if is_other { &draws[..] } else { &draws[2..4] });
}

/// Loops that a condition ends after several turns or none, or that have a number of turns; behind their last turn comes another
/// one, which changes nothing.
fn loops_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let loops: Vec<Case> =
        cases().unwrap().into_iter().filter(|case| case.name.starts_with("loops")).collect();
    check(&compiler, if is_other { &loops[..] } else { &loops[2..4] });
}

/// Loops over components that are kept in kernels of a program of several stages, tables and loops within loops among them: the bits
/// of each turn written out.
fn kept_loops_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    for (dtype, lowering) in
        [(DType::F64, Lowering::Loops), (DType::F32, Lowering::Loops), (DType::F64, Lowering::Straight)]
    {
        if is_other == (dtype == DType::F64 && lowering == Lowering::Loops) {
            continue;
        }
        let mut p = Definition::new("kept loops", 2);
        p.boundary(Boundary::Mirror).components("x", 7, Centring::CELL).field("u", Centring::CELL);
        p.field("t", Centring::CELL).temporary("mean", Centring::CELL).parameter("rate", 0.3, "of change");
        p.step()
            .stage("mean", |s| {
                let (x, g) = (s.components("x"), s.graph());
                let weights = g.table(&[0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 3.0]);
                let pairs = g.table_of(
                    7,
                    &(0..49).map(|entry| 0.01 * f64::from(entry % 11) - 0.03).collect::<Vec<_>>(),
                );
                let own = g.sum(0..7, |i| x.at(i) * weights.at(i));
                let all = g.fold(0..7, own, |i, sum| {
                    g.fold(i.to(7), sum, |j, sum| (x.at(j) * pairs.at_row(i, j)).mul_add(x.at(i), sum))
                });
                s.set("mean", all + s.param("rate"));
                let start = s.field("t").here();
                s.set("t", g.fold(0..4, start, |_, t| t - 0.25 * (t * t - own) / (t.abs() + 1.0)));
            })
            .stage("spread", |s| {
                let mean = s.field("mean");
                let around = mean.at([0, 1]) + mean.at([0, -1]) + mean.at([1, 0]) + mean.at([-1, 0]);
                s.set("u", s.field("u").here() + 0.1 * (around - 4.0 * mean.here()));
                s.set("x[2]", s.component("x", 2).here() * 0.9 + 0.01 * mean.here());
            });
        let program = Arc::new(p.build().unwrap());
        assert!(!program.is_plain());
        let problem = Problem::new(program, Shape::new(&[19, 37]).unwrap(), dtype).unwrap();
        let start: Vec<Array> = (0..problem.program.fields().len() as u64)
            .map(|seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, dtype).unwrap())
            .collect();
        let form = Form { lowering, ..Form::default() };
        // The text has the loop, or it cannot be replaced by itself.
        let same = [("for (int i0 =", "for (int i0 =")];
        let changes = if lowering == Lowering::Loops { &same[..] } else { &[] };
        let kernels = Program::compile_as(&compiler, &problem, form, changes).unwrap();
        kernels.check(&start, 3).unwrap();
    }
}

/// Systems solved in a step by each method, on coarser grids too: as many iterations, and the same values.
fn systems_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let systems = systems().unwrap();
    check(&compiler, if is_other { &systems[1..] } else { &systems[..1] });
}

/// Returns CloverLeaf, or a flow that is compiled in a fifth of the time: with the same names and time steps, the third of which
/// comes to 0.23.
fn flow(is_other: bool) -> (Problem, Vec<Array>) {
    if is_other {
        let deck = include_str!("../../tests/cloverleaf/trace13x7/clover.in");
        return clover(&Deck::parse(deck).unwrap()).unwrap();
    }
    let mut p = Definition::new("flow", 2);
    p.boundary(Boundary::Mirror).field("density0", Centring::CELL).field("xvel0", Centring::NODE);
    p.field("vol_flux_x", Centring::face(2, 1)).boundary_of("vol_flux_x", "x=-mirror");
    p.scalar("dt", Some(0.04), "in s").scalar("time", Some(0.0), "in s").scalar("most", None, "a speed");
    p.step()
        .reduce("most", Reduction::Max, Centring::NODE, |s| s.field("xvel0").here().abs())
        .compute("dt", |s| (1.5 * s.param("dt")).min(0.085).min(0.5 / s.param("most")))
        .stage("flux", |s| {
            let v = s.field("xvel0");
            s.set("vol_flux_x", 0.5 * s.param("dt") * (v.at([0, 0]) + v.at([1, 0])));
        })
        .stage("density", |s| {
            let (density, flux) = (s.field("density0"), s.field("vol_flux_x"));
            s.set("density0", density.here() * (1.0 - flux.at([0, 1]) + flux.at([0, 0])));
        })
        .stage("speed", |s| {
            let (v, density) = (s.field("xvel0"), s.field("density0"));
            let slope = density.at([0, 0]) - density.at([0, -1]) + density.at([-1, 0]) - density.at([-1, -1]);
            s.set("xvel0", v.here() - s.param("dt") * slope);
        })
        .compute("time", |s| s.param("time") + s.param("dt"));
    let problem =
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[7, 13]).unwrap(), DType::F64).unwrap();
    let start = |(field, low): (usize, f64)| {
        let drawn = Start::Random { seed: field as u64, low, high: 1.0 };
        drawn.fill(&problem.shape_of(field).unwrap(), DType::F64).unwrap()
    };
    let start = [(0, 0.5), (1, -1.0), (2, 0.0)].map(start).to_vec();
    (problem, start)
}

fn a_condition_ends_a_run_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let (mut problem, start) = flow(is_other);
    let program = problem.program.clone();
    for (condition, steps) in part([("time >= 0.2", 3), ("time > -1", 1), ("dt >= 0.08", 2)], is_other) {
        problem.until = Some(Until::parse(condition, &program).unwrap());
        let kernels = Program::compile(&compiler, &problem, 1, &[]).unwrap();
        kernels.check_beyond(&start, steps, 3).unwrap();
        assert!(kernels.check_beyond(&start, steps + 1, 2).is_err(), "{condition}");
    }
}

/// Rows of the record, every step and every few, in rounds of the steps that repeat: scalars, and values of
/// fields on cells, nodes and faces, whose buffers change from step to step.
fn rows_are_recorded_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let deck = |deck: &str| clover(&Deck::parse(deck).unwrap()).unwrap();
    let flat =
        [("density0", &[6, 12][..]), ("xvel0", &[7, 13]), ("vol_flux_x", &[3, 0]), ("density0", &[0, 0])];
    let deep = [("energy0", &[2, 3, 4][..]), ("zvel0", &[5, 6, 7])];
    let runs = match is_other {
        false => vec![(flow(false), &flat[..], 1, 11)],
        true => vec![
            (deck(include_str!("../../tests/cloverleaf/trace13x7/clover.in")), &flat[..], 1, 11),
            (deck(include_str!("../../tests/cloverleaf/flows7x6x5/clover.in")), &deep[..], 4, 9),
        ],
    };
    for ((mut problem, start), probes, every, steps) in runs {
        let program = problem.program.clone();
        let probes =
            probes.iter().map(|(field, index)| Probe::new(&program, field, index).unwrap()).collect();
        problem.first_step = 6;
        problem.record = Some(Record::new(&program, every, probes));
        problem.check().unwrap();
        Program::compile(&compiler, &problem, 1, &[]).unwrap().check(&start, steps).unwrap();
        // The last row is that of the step that ends the run.
        problem.until = Some(Until::parse("time >= 0.1", &program).unwrap());
        let kernels = Program::compile(&compiler, &problem, 1, &[]).unwrap();
        let ended = (1..steps).find(|&steps| kernels.check_beyond(&start, steps, 3).is_ok());
        assert!(ended.is_some(), "no step ends the run of {}", problem.shape);
        let groups = partition(&problem, 1, 256, 1 << 16, true).unwrap();
        let kernels = Program::compile_as(
            &compiler,
            &problem,
            Form { partition: Some(groups), ..Form::default() },
            &[],
        )
        .unwrap();
        kernels.check_beyond(&start, ended.unwrap(), 3).unwrap();
    }
    // Fields of a single type, f32, are widened. Of steps with loops the host takes the rows.
    let has_rows = |case: &Case| !case.problem.scalars.is_empty() && !case.problem.program.has_loops();
    let with_scalars = cases().unwrap().into_iter().filter(has_rows);
    for case in part(with_scalars, is_other) {
        let mut problem = case.problem;
        let dimensions = problem.shape.dimensions();
        let last = |field: usize| problem.extents_of(field).map(|n| n - 1)[3 - dimensions..].to_vec();
        let probes = problem.program.fields().iter().enumerate();
        let probes = probes.map(|(field, name)| Probe::new(&problem.program, name, &last(field)).unwrap());
        problem.record = Some(Record::new(&problem.program, 2, probes.collect()));
        let outcome = Program::compile(&compiler, &problem, 1, &[])
            .and_then(|program| program.check(&case.start, case.steps));
        outcome.unwrap_or_else(|why| panic!("{}: {why}", case.name));
    }
}

/// A run halts after the first step at which a scalar has reached the next mark; launches that follow change
/// nothing.
fn a_mark_halts_a_run_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let (problem, start) = flow(is_other);
    let run = |every, until: Option<&str>, check: &dyn Fn(Program)| {
        let mut problem = problem.clone();
        problem.marks = Some(Marks::new(&problem.program, "time", every).unwrap());
        problem.until = until.map(|until| Until::parse(until, &problem.program).unwrap());
        check(Program::compile(&compiler, &problem, 1, &[]).unwrap());
    };
    let cases: [&dyn Fn(); 3] = [
        &|| {
            run(0.21, None, &|kernels| {
                kernels.check_beyond(&start, 3, 4).unwrap();
                assert!(kernels.check_beyond(&start, 2, 4).is_err());
                assert_eq!(kernels.run(&start, [3, 4], 0).unwrap().progress[..3], [2, 3, 0]);
            });
        },
        &|| run(50.0, None, &|kernels| kernels.check(&start, 3).unwrap()),
        // The end of the run and a mark may coincide.
        &|| {
            run(0.01, Some("dt > 0"), &|kernels| {
                assert_eq!(kernels.run(&start, [1, 2], 0).unwrap().progress[..2], [3, 1]);
            });
        },
    ];
    part(cases, is_other).into_iter().for_each(|case| case());
}

/// Takes away from kernels what edges and reductions need; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let cases = cases().unwrap();
    let defects = [
        ("reductions", "rows[warp][lane] = value;\n    __syncthreads();", "rows[warp][lane] = value;"),
        (
            "reductions",
            "        __syncthreads();\n        real* const done = to;",
            "        real* const done = to;",
        ),
        ("reductions", "return a == real(0) ? -(-a + -b) : a;", "return b;"),
        (
            "staggered",
            "(Z * K::STRIDE_Z + Y * K::STRIDE_Y + X - K::FIRST)",
            "(Z * K::STRIDE_Z + Y * K::STRIDE_Y - K::FIRST)",
        ),
        ("walls", "if (K::All::holds(z, y, x)) here<K, TO>()", "if (false) here<K, TO>()"),
        ("ring", "fold < FOLDS", "fold < 1"),
        ("ring", ": all ? -stored : stored;", ": stored;"),
    ];
    all(&defects, |&(name, words, instead)| {
        for case in cases.iter().filter(|case| case.name.starts_with(name)) {
            let program = Program::compile(&compiler, &case.problem, 1, &[(words, instead)])?;
            if program.check(&case.start, case.steps).is_err() {
                return Ok(());
            }
        }
        Err(format!("{name} has the reference's bits without: {words}"))
    });
}

/// Quotients and roots have the bits of division and the square root whatever their operands are: numbers of all sizes, beside
/// powers of two, zeros of both signs, and what is no number; divisors that differ, that are one for all cells, and constants. The
/// others are kernels with defects, each of which is found.
fn quotients_and_roots_of_any_numbers_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        ("ask_dividend(a);\n        ask_divisor(b);", "ask_dividend(a);"),
        ("ask_dividend(a);\n        ask_divisor(b);", "ask_divisor(b);"),
        ("return is_zero(a) ? q : corrected;", "return corrected;"),
        ("a * infinity_of(b)", "infinity_of(b)"),
        ("corrected = fma(-rest, y, q)", "corrected = q"),
        ("odd |= is_odd_square(a);", ""),
        ("corrected = fma(fma(-s, s, a), Number(0.5) * y, s)", "corrected = s"),
        ("ask_dividend(a);\n        return quotient(a, b, y);", "return quotient(a, b, y);"),
    ];
    let mut p = Definition::new("quotients", 1);
    p.parameter("scale", -3.7, "a divisor");
    p.boundary(Boundary::Clamp)
        .field("a", Centring::CELL)
        .field("b", Centring::CELL)
        .field("n", Centring::NODE);
    for name in ["q", "r", "s", "t", "v"] {
        p.field(name, Centring::CELL);
    }
    let mut step = p.step();
    // Each in a formula of its own: one odd operand is enough for all of a formula.
    step.stage("quotients", |s| s.set("q", s.field("a").here() / s.field("b").here()));
    step.stage("roots", |s| s.set("r", s.field("a").here().sqrt()));
    step.stage("by a parameter", |s| s.set("s", s.field("a").here() / s.param("scale")));
    step.stage("by a constant", |s| s.set("t", s.field("a").here() / 5.999));
    step.stage("by what is asked", |s| {
        let [a, b] = ["a", "b"].map(|name| s.field(name).here());
        s.set("v", b.lt(-4.0).select(1.0, a / b));
    });
    step.stage("nodes", |s| s.set("n", s.field("n").here() + 1.0));
    let program = Arc::new(p.build().unwrap());
    let (odd, count) = (common::ODD_OPERANDS.len(), 4099);
    let mut random = fastrand::Rng::with_seed(81);
    let mut drawn = || {
        let size = [4, 30, 110][random.usize(..3)];
        let significand = match random.usize(..4) {
            0 | 1 => 1.0 + random.f64(),
            2 => 1.0 + f64::from(random.u8(..4)) * f64::from(f32::EPSILON),
            _ => 2.0 - f64::from(random.u8(1..4)) * f64::from(f32::EPSILON),
        };
        [1.0, -1.0][random.usize(..2)] * significand * 2.0f64.powi(random.i32(-size..=size))
    };
    // Every pair of odd numbers, then any others.
    let mut column = |of: fn(usize, usize) -> usize| -> Vec<f64> {
        (0..count).map(|i| if i < odd * odd { common::ODD_OPERANDS[of(i, odd)] } else { drawn() }).collect()
    };
    let [a, b] = [column(|i, odd| i % odd), column(|i, odd| i / odd)];
    for dtype in [DType::F32, DType::F64] {
        let problem = Problem::new(program.clone(), Shape::new(&[count]).unwrap(), dtype).unwrap();
        let mut start = vec![
            Array::from_fn(dtype, count, |i| a[i]),
            Array::from_fn(dtype, count, |i| b[i]),
            Array::from_fn(dtype, count + 1, |_| 0.0),
        ];
        start.extend((0..5).map(|_| Array::from_fn(dtype, count, |_| 7.0)));
        if !is_other {
            Program::compile(&compiler, &problem, 1, &[]).unwrap().check(&start, 1).unwrap();
            continue;
        }
        for defect in defects {
            let wrong = Program::compile(&compiler, &problem, 1, &[defect]).unwrap();
            assert!(wrong.check(&start, 1).is_err(), "{dtype}: {}", defect.0);
        }
    }
}
