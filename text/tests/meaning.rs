//! What the text means is what the same program means in Rust.

use abide_core::catalogue;
use abide_core::expr::{Binary, Node};
use abide_core::program::{Centring, Definition, Program, Reduction, StageKind};

/// Reads a model of one stage of the field `u` on `axes` axes.
fn model(axes: usize, formula: &str) -> Program {
    let text = format!("axes = {axes}\n[fields]\nu = 1\n[parameters]\nk = 2\n[[stages]]\nu = '{formula}'\n");
    abide_text::read(&text, "model").unwrap_or_else(|error| panic!("{formula}: {error}")).program
}

/// Returns the value of a formula where `u` is 3 and its neighbour at +1 is 5.
fn value(formula: &str) -> f64 {
    let program = model(1, formula);
    let dag = &program.stages()[0].dag;
    let mut values = Vec::new();
    let tap = |tap: abide_core::expr::Tap| if tap.offset == [0; 3] { 3.0 } else { 5.0 };
    dag.evaluate(&mut values, &[2.0], [0, 0, 7], tap);
    values[dag.outputs[0] as usize]
}

#[test]
fn operators_bind_as_in_python() {
    for (formula, expected) in [
        ("1 + 2*3", 7.0),
        ("(1 + 2)*3", 9.0),
        ("2 - 3 - 4", -5.0),
        ("24/4/3", 2.0),
        ("-2**2", -4.0),
        ("2**-1", 0.5),
        ("2**3**2", 512.0),
        ("-u**2", -9.0),
        ("u**0.5", 3f64.sqrt()),
        ("2 * -u", -6.0),
        ("--u", 3.0),
        ("+u - -u", 6.0),
        ("1 < u", 1.0),
        ("1 + 1 == 2", 1.0),
        ("(u > 4) + (u <= 3)*10", 10.0),
        ("u[0] + u[1] * k", 13.0),
        ("u[+1]", 5.0),
        (".5 + 1.e1 + 1E-1", 10.6),
        ("where(u > 4, 1, max(u, k))", 3.0),
        ("fma(u, k, 1)", 7.0),
        ("pow(u, 3)", 27.0),
        ("erf(7) + atan2(0, u)", 1.0),
        ("min(u, k) + abs(-7) + floor(2.5)", 11.0),
        ("coord(x)", 7.0),
        ("laplacian(u)", 4.0),
        ("exp(log(1)) + sin(0) + cos(0) + tanh(0)", 2.0),
        ("inf", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
        ("inf + u", f64::INFINITY),
    ] {
        assert_eq!(value(formula), expected, "{formula}");
    }
    assert!(value("nan").is_nan());
}

/// Small whole powers are products, so that every backend has the same bits.
#[test]
fn powers_are_products() {
    let program = model(1, "u**3 + u**2.5");
    let nodes = &program.stages()[0].dag.nodes;
    let count = |op| nodes.iter().filter(|node| matches!(node, Node::Binary(own, ..) if *own == op)).count();
    assert_eq!((count(Binary::Mul), count(Binary::Pow)), (2, 1));
}

/// A program with all that a file can say is the one that Rust defines.
#[test]
fn every_part_has_its_meaning() {
    let text = r#"
name = "all"
axes = 2
boundary = "mirror"
shown = "n"

[fields]
u = { start = 0.5, boundary = "x=periodic" }
n = { on = "nodes", start = { random = 3, low = -1.0, high = 1 } }
Y = { components = 2, boundary = "clamp" }

[temporaries]
flux = "x-faces"

[parameters]
k = { default = 0.1, about = "rate" }
drive = { default = 1, vary = "sin(0.3*time)" }

[scalars]
time = 0.0
dt = { about = "step" }
nx = { extent = "x" }

[[steps]]
[[steps.stages]]
over = { on = "nodes", x = [1, 2] }
dt = "max(abs(n))"
[[steps.stages]]
half = "0.5*dt"
time = "time + half"
[[steps.stages]]
name = "flux"
flux = "u[0,0] - u[0,-1]"
[[steps.stages]]
name = "move"
where = "u > 0"
d = "flux[0,1] - flux[0,0]"
u = "u + k*d*drive"
"Y[1]" = "Y[0] + Y[1][-1,0]/nx"
[[steps.stages]]
name = "source"
points = [[4, 6], [1, 2]]
u = "u + drive"

[[steps]]
[[steps.stages]]
dt = "dot(u, u + 1)"
"#;
    let read = abide_text::read(text, "all.toml").unwrap().program;
    let mut p = Definition::new("all", 2);
    p.boundary("mirror".parse().unwrap());
    p.field("u", Centring::CELL).boundary_of("u", "x=periodic");
    p.start("u", abide_core::program::Start::Constant(0.5));
    p.field("n", Centring::NODE);
    p.start("n", abide_core::program::Start::Random { seed: 3, low: -1.0, high: 1.0 });
    p.components("Y", 2, Centring::CELL).boundary_of("Y", "clamp").shown("n");
    p.temporary("flux", Centring::face(2, 1));
    p.parameter("k", 0.1, "rate").parameter("drive", 1.0, "");
    p.scalar("time", Some(0.0), "").scalar("dt", None, "step").extent("nx", 1, "");
    p.step()
        .reduce(
            "dt",
            Reduction::Max,
            abide_core::program::Region::from(Centring::NODE).without(2, 1, 2),
            |s| s.field("n").here().abs(),
        )
        .compute("time", |s| s.param("time") + 0.5 * s.param("dt"))
        .stage("flux", |s| {
            let u = s.field("u");
            s.set("flux", u.at([0, 0]) - u.at([0, -1]));
        })
        .stage("move", |s| {
            let (u, flux) = (s.field("u"), s.field("flux"));
            s.only_where(u.here().gt(0.0));
            let d = flux.at([0, 1]) - flux.at([0, 0]);
            s.set("u", u.here() + s.param("k") * d * s.param("drive"));
            let y = s.component("Y", 0).here() + s.component("Y", 1).at([-1, 0]) / s.param("nx");
            s.set_component("Y", 1, y);
        })
        .points("source", &[[4, 6], [1, 2]], |s| s.set("u", s.field("u").here() + s.param("drive")));
    p.step().dot("dt", Centring::CELL, |s| {
        let u = s.field("u").here();
        [u, u + 1.0]
    });
    p.vary("drive", |s| (0.3 * s.param("time")).sin());
    let expected = p.build().unwrap();
    assert_eq!(abide_text::write(&read).unwrap(), abide_text::write(&expected).unwrap());
    assert_eq!(read.stages().iter().filter(|stage| matches!(stage.does, StageKind::Scalar(_))).count(), 3);
}

/// A file may begin with an entry of the catalogue, and add a source to it.
#[test]
fn an_entry_is_extended() {
    let text = r#"
base = "wave"
name = "driven"
axes = 2
[scalars]
step = 0
[[stages]]
step = "step + 1"
[[stages]]
points = [[40, 60]]
u = "u + 0.1*sin(0.3*step)"
"#;
    let program = abide_text::read(text, "driven.toml").unwrap().program;
    let wave = catalogue::find("wave").unwrap().program(2).unwrap();
    assert_eq!(program.name(), "driven");
    assert_eq!(program.fields(), wave.fields());
    assert_eq!(program.stages().len(), wave.stages().len() + 2);
    assert_eq!(program.stages()[2].points, [[0, 40, 60]]);
}

/// The table `run` says what a user would type.
#[test]
fn options_of_a_run() {
    let text = "axes = 1\n[fields]\nu = 1\n[[stages]]\nu = 'u'\n[run]\nsteps = 100\nsize = \"64\"\ndtype = 'f64'\n\
                json = true\npin = false\noutput = ['a.npy', 'b.png']\nparam = { k = 0.25, feed = 3 }\n";
    let expected = [
        "--steps=100",
        "--size=64",
        "--dtype=f64",
        "--json",
        "--output=a.npy",
        "--output=b.png",
        "--param=k=0.25",
        "--param=feed=3",
    ];
    assert_eq!(abide_text::read(text, "m").unwrap().options, expected);
    assert_eq!(abide_text::options(text, "m").unwrap(), expected);
    for bad in ["'--steps' = 1", "steps = {a = []}", "a_b = 1", "steps = [[1]]", "steps = 1979-05-27"] {
        let text = format!("axes = 1\n[run]\n{bad}\n");
        assert!(abide_text::options(&text, "m").unwrap_err().to_string().contains("line 3"), "{bad}");
    }
}
