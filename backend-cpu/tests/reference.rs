//! The reference against loops written out by hand, which know nothing of expressions.

use std::sync::Arc;

use abide_core::{Array, Boundaries, Boundary, DType, Problem, Shape, Start, catalogue};
use abide_cpu::reference;

fn problem(name: &str, extents: &[usize], dtype: DType, boundary: Boundary) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
    problem.boundaries = Boundaries::all(boundary);
    problem
}

fn start(problem: &Problem) -> Array {
    Start::Random { seed: 9, low: -1.0, high: 2.0 }.fill(&problem.shape, problem.dtype).unwrap()
}

macro_rules! five_points {
    ($name:ident, $real:ident, $tag:ident) => {
        #[test]
        fn $name() {
            let (height, width) = (13usize, 29usize);
            for boundary in Boundary::each(0.5) {
                let problem = problem("2d5pt", &[height, width], DType::$tag, boundary);
                let mut fields = vec![start(&problem)];
                let Array::$tag(mut old) = fields[0].clone() else { panic!() };
                match boundary.is_plain() {
                    true => reference::advance(&problem, &mut fields, 4).unwrap(),
                    false => drop(reference::run_program(&problem, &mut fields, 4, |_, _, _| {}).unwrap()),
                }
                for _ in 0..4 {
                    let ghost = |y: isize, x: isize| -> $real {
                        let (h, w) = (height as isize, width as isize);
                        let is_beyond = y < 0 || y >= h || x < 0 || x >= w;
                        // The cell beside the outermost one.
                        let inner = |i: isize, n: isize| {
                            if i < 0 {
                                1
                            } else if i >= n {
                                n - 2
                            } else {
                                i
                            }
                        };
                        let (y, x) = match boundary {
                            Boundary::Periodic => ((y + h) % h, (x + w) % w),
                            Boundary::Constant(c) if is_beyond => return c as $real,
                            Boundary::Reflect | Boundary::MinusReflect => (inner(y, h), inner(x, w)),
                            _ => (y.clamp(0, h - 1), x.clamp(0, w - 1)),
                        };
                        let value = old[y as usize * width + x as usize];
                        let opposite = matches!(boundary, Boundary::MinusMirror | Boundary::MinusReflect);
                        if is_beyond && opposite { -value } else { value }
                    };
                    let mut new = old.clone();
                    for y in 0..height {
                        for x in 0..width {
                            let edge = y == 0 || y == height - 1 || x == 0 || x == width - 1;
                            if edge && boundary == Boundary::Fixed {
                                continue;
                            }
                            let (cy, cx) = (y as isize, x as isize);
                            let mut sum: $real = 0.1 * ghost(cy - 1, cx);
                            sum = $real::mul_add(0.102, ghost(cy, cx - 1), sum);
                            sum = $real::mul_add(0.588, ghost(cy, cx), sum);
                            sum = $real::mul_add(0.104, ghost(cy, cx + 1), sum);
                            sum = $real::mul_add(0.106, ghost(cy + 1, cx), sum);
                            new[y * width + x] = sum;
                        }
                    }
                    old = new;
                }
                assert!(fields[0].same_bits(&Array::$tag(old)), "{boundary}");
            }
        }
    };
}

five_points!(five_points_in_f32, f32, F32);
five_points!(five_points_in_f64, f64, F64);

/// Two stages: the electric field is computed from the new magnetic one.
#[test]
fn stages_see_what_earlier_stages_wrote() {
    let n = 11;
    let problem = problem("fdtd-tm", &[n, n], DType::F64, Boundary::Periodic);
    let mut fields: Vec<Array> = (0..3).map(|_| start(&problem)).collect();
    let [mut ez, mut hx, mut hy] = [0, 1, 2].map(|f: usize| fields[f].to_f64());
    reference::advance(&problem, &mut fields, 3).unwrap();
    let c = problem.parameters[0];
    let at = |y: usize, x: usize| (y % n) * n + x % n;
    for _ in 0..3 {
        for y in 0..n {
            for x in 0..n {
                hx[at(y, x)] -= c * (ez[at(y + 1, x)] - ez[at(y, x)]);
                hy[at(y, x)] += c * (ez[at(y, x + 1)] - ez[at(y, x)]);
            }
        }
        for y in 0..n {
            for x in 0..n {
                let curl = (hy[at(y, x)] - hy[at(y, x + n - 1)]) - (hx[at(y, x)] - hx[at(y + n - 1, x)]);
                ez[at(y, x)] += c * curl;
            }
        }
    }
    for (field, expected) in fields.iter().zip([ez, hx, hy]) {
        assert!(field.same_bits(&Array::F64(expected)));
    }
}

/// Where a corner's ghost lies beyond two constant sides, the slower axis decides.
#[test]
fn the_slower_axis_decides_at_a_corner() {
    let mut problem = problem("2d9pt", &[1, 1], DType::F64, Boundary::Fixed);
    problem.boundaries = Boundaries::parse("y=constant=1,x=constant=100", Boundary::Fixed).unwrap();
    let mut fields = vec![Array::F64(vec![0.0])];
    reference::advance(&problem, &mut fields, 1).unwrap();
    let sides = (0.0589 + 0.06) * 100.0;
    let rows = 0.0556 + 0.0567 + 0.0578 + 0.0611 + 0.0622 + 0.0633;
    assert!((fields[0].to_f64()[0] - sides - rows).abs() < 1e-12);
}

#[test]
fn zero_steps_and_domains_without_interior_change_nothing() {
    for (name, extents, steps) in [("2d5pt", [7, 9], 0), ("2d5pt", [2, 9], 5), ("2ds25pt", [12, 40], 3)] {
        let problem = problem(name, &extents, DType::F32, Boundary::Fixed);
        let mut fields = vec![start(&problem)];
        reference::advance(&problem, &mut fields, steps).unwrap();
        assert!(fields[0].same_bits(&start(&problem)));
    }
}
