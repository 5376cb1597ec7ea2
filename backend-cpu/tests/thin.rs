//! Axes that are shorter than taps reach: the rule of a side is applied until the index is inside. What beyond a side is
//! never read stays as it is, also where nothing is computed.

use std::sync::Arc;

use abide_core::program::{Centring, Definition};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Options, Problem, Shape};
use abide_cpu::{CpuBackend, reference};

/// The boundaries of both sides of an axis, by the words of the definition.
const SIDES: [&str; 8] =
    ["periodic", "mirror", "reflect", "-mirror", "-reflect", "clamp", "constant=2.5", "constant=c"];

/// Returns the value that an index shows, written from the words of the guide: what each rule says of the first place
/// beyond the edge and of those farther out, applied again and again.
fn shown(values: &[f64], low: &str, high: &str, index: i64) -> f64 {
    let n = values.len() as i64;
    let (mut at, mut sign) = (index, 1.0);
    for _ in 0..1000 {
        if (0..n).contains(&at) {
            return sign * values[at as usize];
        }
        let is_low = at < 0;
        // How far beyond the edge: 1 for the first place.
        let beyond = if is_low { -at } else { at - (n - 1) };
        let rule = if is_low { low } else { high };
        // A place counted from this side's outermost value inwards.
        let inwards = |steps: i64| if is_low { steps } else { n - 1 - steps };
        match rule {
            "periodic" => at += if is_low { n } else { -n },
            "clamp" => at = inwards(0),
            "mirror" => at = inwards(beyond - 1),
            "-mirror" => (at, sign) = (inwards(beyond - 1), -sign),
            "reflect" => at = inwards(beyond),
            "-reflect" => (at, sign) = (inwards(beyond), -sign),
            constant => {
                let value = if constant == "constant=c" { 0.75 } else { 2.5 };
                return sign * value;
            }
        }
    }
    // Two mirrors in a single value: it shows itself by the rule of the side that is asked.
    let own = if index < 0 { low } else { high };
    assert!(n == 1 && own.ends_with("reflect"));
    if own == "-reflect" { -values[0] } else { values[0] }
}

/// Returns a stencil that takes the values at an offset; a program where it has a scalar.
fn moving(offset: i32, is_program: bool) -> Arc<abide_core::Program> {
    let mut p = Definition::new("moving", 1);
    p.field("u", Centring::CELL).parameter("c", 0.75, "beyond a side");
    if is_program {
        p.scalar("count", Some(0.0), "steps");
    }
    let mut step = p.step();
    if is_program {
        step.compute("count", |s| s.param("count") + 1.0);
    }
    step.stage("move", |s| s.set("u", s.field("u").at([offset]) + 0.0 * s.param("c")));
    Arc::new(p.build().unwrap())
}

#[test]
fn thin_axes_follow_the_rule_of_their_sides() {
    let backends =
        [CpuBackend::reference(), CpuBackend::with_threads(1).unwrap(), CpuBackend::with_threads(2).unwrap()];
    let mut count = 0;
    for (low, high) in SIDES.iter().flat_map(|low| SIDES.iter().map(move |high| (*low, *high))) {
        if (low == "periodic") != (high == "periodic") {
            continue;
        }
        for (extent, offset) in (1..=4).flat_map(|extent| (-4..=4).map(move |offset| (extent, offset))) {
            let values: Vec<f64> = (0..extent).map(|i| 1.0 + 0.1 * i as f64).collect();
            let expected: Vec<f64> =
                (0..extent).map(|i| shown(&values, low, high, i as i64 + i64::from(offset))).collect();
            let twice: Vec<f64> =
                (0..extent).map(|i| shown(&expected, low, high, i as i64 + i64::from(offset))).collect();
            for is_program in [false, true] {
                let shape = Shape::new(&[extent]).unwrap();
                let mut problem = Problem::unchecked(moving(offset, is_program), shape, DType::F64);
                problem.boundaries =
                    Boundaries::parse(&format!("x-={low},x+={high}"), Boundary::Fixed).unwrap();
                problem.check().unwrap();
                for backend in &backends {
                    let plan = backend.plan(&problem, &Options::default()).unwrap();
                    for (steps, expected) in [(1, &expected), (2, &twice)] {
                        let fields = vec![Array::F64(values.clone())];
                        let mut session = backend.open(&problem, &plan, fields).unwrap();
                        session.advance(steps).unwrap();
                        let about = format!(
                            "x-={low},x+={high}, {extent} cells, u[{offset}], {is_program}, {steps} steps"
                        );
                        assert_eq!(session.read(0).unwrap(), Array::F64(expected.clone()), "{about}");
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 10_000, "{count}");
}

/// Fields of all kinds on domains of which `fixed` sides leave nothing, or nothing of some fields.
#[test]
fn fields_without_interior_stay_as_they_are() {
    let mut p = Definition::new("kinds", 2);
    p.boundary(Boundary::Fixed).scalar("time", Some(0.0), "time");
    p.field("u", Centring::CELL).field("v", Centring::CELL).field("f", Centring::face(2, 1));
    p.field("n", Centring::NODE).components("c", 2, Centring::CELL);
    p.step()
        .compute("time", |s| s.param("time") + 1.0)
        .stage("both", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("u", 0.5 * (u.at([0, -1]) + v.at([0, 1])));
            s.set("v", v.at([-1, 0]) - u.at([1, 0]));
        })
        .stage("faces", |s| s.set("f", s.field("f").at([0, 1]) + s.field("f").at([1, 0])))
        .stage("nodes", |s| s.set("n", 1.0 + s.field("n").at([0, -1])))
        .stage("components", |s| s.set_components("c", |_| 2.0 * s.field("u").here()));
    let program = Arc::new(p.build().unwrap());
    let backends = [CpuBackend::with_threads(1).unwrap(), CpuBackend::with_threads(3).unwrap()];
    for extents in [[1, 1], [1, 9], [2, 9], [9, 2], [9, 1], [2, 2], [3, 2], [3, 3], [40, 2], [2, 700]] {
        for dtype in [DType::F32, DType::F64] {
            let problem = Problem::new(program.clone(), Shape::new(&extents).unwrap(), dtype).unwrap();
            let field = |field: usize| {
                Array::from_fn(dtype, problem.values_of(field), |i| 1.0 + i as f64 + 100.0 * field as f64)
            };
            let fields: Vec<Array> = (0..problem.program.fields().len()).map(field).collect();
            for steps in 1..5 {
                let mut expected = fields.clone();
                reference::run_program(&problem, &mut expected, steps, |_, _, _| {}).unwrap();
                if extents[0] < 3 || extents[1] < 3 {
                    // The definition leaves cells as they are, so this is not of the definition alone.
                    assert_eq!(expected[0], fields[0]);
                }
                for backend in &backends {
                    let plan = backend.plan(&problem, &Options::default()).unwrap();
                    let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
                    session.advance(steps).unwrap();
                    for (number, expected) in expected.iter().enumerate() {
                        let found = session.read(number).unwrap();
                        assert!(
                            found.same_bits(expected),
                            "{extents:?}, field {number}, {steps} steps: {found:?}"
                        );
                    }
                }
            }
        }
    }
}
