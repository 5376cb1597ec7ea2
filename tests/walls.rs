//! Conditions at walls against exact solutions: each kind, on cells and nodes, in one to three dimensions.

use abide::prelude::*;
use abide::text;

/// Phases along x, y and z of the solution exp(-d t) Π cos(x_i + p_i) of the heat equation in d dimensions.
const PHASES: [(&str, f64); 3] = [("x", 0.3), ("y", -0.2), ("z", 0.5)];

/// Writes the model whose solution that is, with one kind of condition at all walls.
fn model(dimensions: usize, condition: &str, on: &str) -> String {
    let axes = &PHASES[..dimensions];
    let mut walls = String::new();
    for (axis, phase) in axes {
        let others = axes.iter().filter(|(other, _)| other != axis);
        let others: String = others.map(|(other, phase)| format!("*cos({other} + {phase:?})")).collect();
        for (side, place, normal) in [("-", 0.0, 1.0), ("+", 1.0, -1.0)] {
            let value = format!("decay*{:?}{others}", f64::cos(place + phase));
            let slope = format!("decay*{:?}{others}", normal * f64::sin(place + phase));
            let all = match condition {
                "robin" => format!("[2, 3, \"2*{value} + 3*{slope}\"]"),
                "neumann" => format!("\"{slope}\""),
                _ => format!("\"{value}\""),
            };
            walls += &format!("\"{axis}{side}\" = {{ {condition} = {all} }}\n");
        }
    }
    let flux: Vec<String> = axes.iter().map(|(axis, _)| format!("d2(u, {axis})")).collect();
    format!(
        "name = \"walls\"\naxes = {dimensions}\nspacing = \"h\"\n\
         [fields]\nu = {{ on = \"{on}\", start = \"given\" }}\n\
         [parameters]\nh = 0.1\ndt = {{ formula = \"0.125*h*h\" }}\n\
         [scalars]\ntime = 0.0\ndecay = 1.0\n\
         [walls.u]\n{walls}\
         [[stages]]\nu = \"u + dt*({})\"\n\
         [[stages]]\ntime = \"time + dt\"\ndecay = \"exp(-{dimensions}*time)\"\n",
        flux.join(" + ")
    )
}

/// Returns the root of the mean squared error at time 0.05 on so many cells an axis, in three dimensions at time 0.02.
fn error(dimensions: usize, condition: &str, on: &str, cells: usize) -> f64 {
    let model = text::read(&model(dimensions, condition, on), "walls.toml").unwrap();
    let (extent, offset) = if on == "nodes" { (cells + 1, 0.0) } else { (cells, 0.5) };
    let h = 1.0 / cells as f64;
    let exact = |time: f64| {
        Array::from_fn(DType::F64, extent.pow(dimensions as u32), |cell| {
            let along = (0..dimensions).map(|axis| {
                let index = cell / extent.pow(axis as u32) % extent;
                f64::cos((index as f64 + offset) * h + PHASES[axis].1)
            });
            along.product::<f64>() * (-(dimensions as f64) * time).exp()
        })
    };
    let end = if dimensions == 3 { 0.02 } else { 0.05 };
    let steps = (end / (0.125 * h * h)).round() as u64;
    let mut run = Simulation::builder(model)
        .size(&vec![cells; dimensions])
        .dtype(DType::F64)
        .backend(Choice::CPU)
        .param("h", h)
        .input("u", exact(0.0))
        .build()
        .unwrap();
    run.run(steps).unwrap();
    let (found, expected) = (run.field("u").unwrap().to_f64(), exact(run.scalar("time").unwrap()).to_f64());
    let squares = found.iter().zip(&expected).map(|(a, b)| (a - b) * (a - b));
    (squares.sum::<f64>() / found.len() as f64).sqrt()
}

#[test]
fn each_kind_of_wall_is_of_second_order() {
    for dimensions in 1..=3 {
        let cells = [[50, 100], [32, 64], [20, 40]][dimensions - 1];
        for (condition, on) in [
            ("dirichlet", "cells"),
            ("neumann", "cells"),
            ("robin", "cells"),
            ("dirichlet", "nodes"),
            ("neumann", "nodes"),
        ] {
            let errors = cells.map(|cells| error(dimensions, condition, on, cells));
            let order = (errors[0] / errors[1]).log2();
            let what = format!("{condition} on {on}, {dimensions} axes: errors {errors:?}, order {order:.2}");
            println!("{what}");
            assert!((order - 2.0).abs() <= 0.1 && errors[1] < 1e-3, "{what}");
        }
    }
}

/// What `--boundary` names takes the place of what the program has, and leaves no trace of it.
#[test]
fn a_run_may_have_other_conditions() {
    let model = || text::read(&model(1, "dirichlet", "cells"), "walls.toml").unwrap();
    let run = |boundary: &str| {
        let text = boundary.parse::<abide::domain::BoundaryText>().unwrap();
        let start = Array::from_fn(DType::F64, 30, |cell| (cell % 7) as f64);
        let run = Simulation::builder(model()).size(&[30]).dtype(DType::F64).backend(Choice::CPU);
        let mut run = run.boundary_text(text).input("u", start).build().unwrap();
        run.run(150_000).unwrap();
        run.field("u").unwrap().to_f64()
    };
    // A steady state: a line between the walls, half a cell beyond the outermost cells, of width 0.1.
    let near = |found: &[f64], line: &dyn Fn(f64) -> f64| {
        let error = found.iter().enumerate().map(|(i, u)| (u - line((i as f64 + 0.5) * 0.1)).abs());
        assert!(error.fold(0.0, f64::max) < 1e-8, "{found:?}");
    };
    near(&run("u:x-=dirichlet=1,u:x+=dirichlet=4"), &|x| 1.0 + x);
    near(&run("u:x-=dirichlet=1,u:x+=neumann=-2"), &|x| 1.0 - 2.0 * x);
    near(&run("u:x-=robin=1/1/0,u:x+=dirichlet=4"), &|x| 1.0 + x);
    near(&run("u:x-=mirror,u:x+=dirichlet=0.5"), &|_| 0.5);
    near(&run("u:x-=dirichlet=h,u:x+=neumann=0"), &|_| 0.1);
}

#[test]
fn faulty_conditions_are_refused_by_name() {
    let base = |walls: &str| {
        format!(
            "axes = 2\nspacing = \"h\"\n[fields]\nu = 0.0\nk = 1.0\nn = {{ on = \"nodes\", start = 0.0 }}\n\
             [parameters]\nh = 0.1\n[scalars]\nlate = {{}}\n{walls}\n\
             [[stages]]\nu = \"u + 0.1*(d2(u, x) + u[0,3])\"\n[[stages]]\nlate = \"h\"\n"
        )
    };
    for (walls, says) in [
        ("[walls.u]\n\"x-\" = { dirichlet = \"k\" }", "no value is named `k`"),
        ("[walls.u]\n\"x-\" = { dirichlet = \"x\" }", "the place along x, the normal"),
        ("[walls.u]\n\"x-\" = { dirichlet = \"late\" }", "late has no value before the first step"),
        ("[walls.u]\n\"x-\" = { robin = [1, 2] }", "it has 2 values, and robin takes 3"),
        ("[walls.u]\n\"q\" = { neumann = 1 }", "no side is named `q`"),
        ("[walls.u]\n\"x-\" = { slope = 1 }", "no condition is named `slope`"),
        ("[walls.u]\n\"x-\" = 1", "integer stands where a table should be"),
        ("[walls.w]\n\"x-\" = { neumann = 1 }", "no field is named `w`"),
        ("[walls.n]\nx = { robin = [1, 2, 3] }", "its values stand on the wall"),
    ] {
        let error = text::read(&base(walls), "walls.toml").unwrap_err().to_string();
        assert!(error.contains(says), "{walls}: {error}");
    }
    let short = text::read(&base("[walls.u]\n\"x-\" = { dirichlet = 1 }"), "walls.toml").unwrap();
    let error =
        Simulation::builder(short).size(&[9, 3]).backend(Choice::CPU).build().err().unwrap().to_string();
    assert!(error.contains("more than the formulas reach, 3"), "{error}");
    let spaced = text::read(&base("[walls.u]\n\"x-\" = { neumann = 1 }"), "walls.toml").unwrap();
    let twice = Simulation::builder(spaced).size(&[9, 9]).backend(Choice::CPU).param("h", 0.0).build();
    let error = twice.err().unwrap().to_string();
    assert!(error.contains("spacing") && error.contains("no positive number"), "{error}");
}
