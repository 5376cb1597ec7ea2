//! Loops in formulas: what they mean, and what is wrong with them.

use abide_core::program::Program;

const MODEL: &str = "\
axes = 1
boundary = \"periodic\"
[fields]
x = { components = 4 }
u = 0.0
[parameters]
p = 0.5
[tables]
w = [0.1, -0.7, 1e3, 2]
m = [[2, 0, 0.5, 0], [0, 3, 0, -1], [0.5, 0, 1, 0], [0, -1, 0, 4]]
k = [[0, 1.5, 2.5, 3.5], [0, 0, -1.25, 0.3], [0, 0, 0, 7], [0, 0, 0, 0]]
[[stages]]
u = \"FORMULA\"
";

fn read(formula: &str) -> abide_core::Result<Program> {
    Ok(abide_text::read(&MODEL.replace("FORMULA", formula), "m.toml")?.program)
}

/// Returns the value at a cell, by the loops and with each turn written out; fields have other values beside the cell.
fn value(formula: &str) -> f64 {
    let program = read(formula).unwrap_or_else(|error| panic!("{formula}: {error}"));
    let stage = &program.stages()[0];
    assert!(stage.looped.is_some(), "{formula}");
    let tap = |tap: abide_core::expr::Tap| X[usize::from(tap.field)] + f64::from(tap.offset[2]);
    let (mut values, mut nodes) = (Vec::new(), Vec::new());
    stage.values(&mut values, &[0.5], [0, 0, 7], tap);
    stage.dag.evaluate(&mut nodes, &[0.5], [0, 0, 7], tap);
    assert_eq!(values, [nodes[stage.dag.outputs[0] as usize]], "{formula}");
    values[0]
}

const X: [f64; 5] = [0.3, -1.1, 0.007, 2.9, 0.0];
const W: [f64; 4] = [0.1, -0.7, 1e3, 2.0];
const K: [[f64; 4]; 4] =
    [[0.0, 1.5, 2.5, 3.5], [0.0, 0.0, -1.25, 0.3], [0.0, 0.0, 0.0, 7.0], [0.0, 0.0, 0.0, 0.0]];

const S: [[f64; 4]; 4] =
    [[2.0, 0.0, 0.5, 0.0], [0.0, 3.0, 0.0, -1.0], [0.5, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 4.0]];

/// Sums over pairs by the structure of a table, which the formula names, have an order of their own.
#[test]
fn forms_have_the_order_that_they_name() {
    let y: [f64; 4] = std::array::from_fn(|i| X[i] * W[i] + i as f64);
    let triangle = (0..4).fold(-0.0f64, |sum, i| {
        let row = (i + 1..4).fold(y[i] * (0.5 * S[i][i]), |row, j| y[j].mul_add(S[i][j], row));
        y[i].mul_add(row, sum)
    });
    assert_eq!(value("symmetric(m, x[i]*w[i] + i for i in range(4))"), 2.0 * triangle);
    let rows = [y[2].mul_add(0.5, y[0] * 1.0), y[3].mul_add(-1.0, y[1] * 1.5), y[2] * 0.5, y[3] * 2.0];
    let few = (1..4).fold(y[0] * rows[0], |sum, i| y[i].mul_add(rows[i], sum));
    // A loop beside it, so that there is one.
    assert_eq!(
        value("sum(0*x[i] for i in range(4)) + sparse(m, x[i]*w[i] + i for i in range(4))"),
        2.0 * few
    );
    let low = value("sum(0*x[i] for i in range(4)) + lowrank(m, x[i]*w[i] + i for i in range(len(m)))");
    assert!((low / (2.0 * triangle) - 1.0).abs() < 1e-14, "{low}");
}

#[test]
fn forms_of_other_tables_are_faults() {
    let words = |formula: &str| read(formula).unwrap_err().to_string();
    for (formula, expected) in [
        ("symmetric(k, x[i] for i in range(4))", "entry 1, 0 is 0, and 0, 1 is 1.5"),
        ("symmetric(w, x[i] for i in range(1))", "1 rows of as many"),
        ("sparse(q, x[i] for i in range(4))", "`q`"),
        ("sparse(m, x[i] for i in range(3))", "write for i in range(4)"),
        ("lowrank(m for i in range(4))", "takes 2"),
        ("lowrank(m, x[i] for i in range(4) with a = 0)", "begins at a value of its own"),
    ] {
        assert!(words(formula).contains(expected), "{formula}: {}", words(formula));
    }
}

#[test]
fn loops_are_those_of_rust() {
    let x = &X[..4];
    let sum = (0..4).fold(-0.0, |sum, i| sum + x[i] * W[i]);
    assert_eq!(value("sum(x[i]*w[i] for i in range(4))"), sum);
    assert_eq!(value("sum(x[i]*w[i] for i in range(len(x)))"), sum);
    assert_eq!(value("sum(x[i]*w[i] for i in range(len(w)))"), sum);
    let fused = (1..4).fold(-0.0f64, |sum, i| x[i].mul_add(W[i - 1], sum));
    assert_eq!(value("dot(x[i], w[i - 1] for i in range(1, 4))"), fused);
    let product = (0..4).fold(1.0, |product, i| product * (x[i] + 1.0));
    assert_eq!(value("prod(x[i] + 1 for i in range(4))"), product);
    assert_eq!(value("min(x[i] for i in range(4)) - max(x[j] for j in range(4))"), -1.1 - 2.9);
    let pairs = (0..4).fold(-0.0, |sum, i| sum + (i + 1..4).fold(-0.0, |row, j| row + K[i][j] * x[j]) * x[i]);
    assert_eq!(value("sum(sum(k[i,j]*x[j] for j in range(i + 1, len(k)))*x[i] for i in range(4))"), pairs);
    // At an offset; by the index itself; with constant entries beside.
    let beside = (0..4).fold(-0.0, |sum, i| sum + (x[i] - 1.0) * i as f64 * W[2] * K[0][3]);
    assert_eq!(value("sum(x[i][-1]*i*w[2]*k[0,3] for i in range(4))"), beside);
    // Newton's method for the root of 2, of a fixed count of steps; what has converged stays as it is.
    let newton = "fold(where(y*y == 2, y, 0.5*(y + 2/y)) for n in range(9) with y = p + 1)";
    assert!((value(newton) - 2f64.sqrt()).abs() < 1e-15);
    assert_eq!(value("fold(s*p + x[i] for i in range(2, 4) with s = 1)"), (0.5 + 0.007) * 0.5 + 2.9);
}

/// Trees have the lanes that stand before what they sum.
#[test]
fn trees_have_lanes() {
    let y: [f64; 4] = std::array::from_fn(|i| X[i] * W[i]);
    assert_eq!(value("tree_sum(2, x[i]*w[i] for i in range(4))"), (y[0] + y[2]) + (y[1] + y[3]));
    assert_eq!(value("tree_sum(4, x[i]*w[i] for i in range(4))"), (y[0] + y[1]) + (y[2] + y[3]));
    assert_eq!(
        value("tree_dot(2, x[i], w[i] for i in range(4))"),
        X[2].mul_add(W[2], y[0]) + X[3].mul_add(W[3], y[1])
    );
    for (formula, words) in [
        ("tree_sum(3, x[i] for i in range(4))", "a power of two up to 32"),
        ("tree_sum(p, x[i] for i in range(4))", "`p` is no number of lanes"),
        ("tree_dot(2, x[i] for i in range(4))", "takes 3"),
    ] {
        let error = read(formula).unwrap_err().to_string();
        assert!(error.contains(words), "{formula}: {error}");
    }
}

#[test]
fn loops_stand_among_locals_and_scalars() {
    let model = "\
axes = 1
[fields]
u = 1.0
[scalars]
s = 0.0
[tables]
w = [1, 2, 4]
[[stages]]
s = \"sum(w[i]*s for i in range(3))\"
[[stages]]
t = \"sum(w[i]*u for i in range(3))\"
u = \"t + fold(v + t for i in range(2) with v = 0)\"
";
    let program = abide_text::read(model, "m.toml").unwrap().program;
    let mut values = Vec::new();
    program.stages()[1].values(&mut values, &[0.0], [0; 3], |_| 1.5);
    assert_eq!(values, [3.0 * 10.5]);
    // As it is written again, each turn is written out, with the same bits.
    let written = abide_text::write(&program).unwrap();
    let again = abide_text::read(&written, "m.toml").unwrap().program;
    let (stage, again) = (&program.stages()[1], &again.stages()[1]);
    assert_eq!((again.dag.nodes.len(), again.looped.is_none()), (stage.dag.nodes.len(), true));
    let mut others = Vec::new();
    again.values(&mut others, &[0.0], [0; 3], |_| 1.5);
    assert_eq!(others, values);
}

#[test]
fn faults_name_what_is_wrong() {
    let faults = [
        ("sum(x[i] for i in range(5))", "index of the components of a field: 4 asked, the limit is 0 to 3"),
        ("sum(w[i + 1] for i in range(4))", "index of the entries of a table's row: 4 asked"),
        ("sum(k[i] for i in range(4))", "the table k is read by 2, and 1 are given"),
        ("sum(w[i][1] for i in range(4))", "w is a table, and has no value at an offset"),
        ("w", "the table w is read by 1, and 0 are given"),
        ("sum(x[j] for i in range(4))", "no index of a loop is named `j`; use one of i"),
        ("x[j]", "no index of a loop is named `j`"),
        ("sum(u[i] for i in range(4))", "u has no components"),
        ("sum(x[i][i] for i in range(4))", "an offset is the index of a loop"),
        ("sum(x[i] for u in range(4))", "u stands for two things"),
        ("sum(x[i] for i in range(len(u)))", "`u` is no table, and no field of several components"),
        ("sum(x[i] for i in range(-1, 4))", "-1 is no bound of a range"),
        ("sum(sum(x[j] for j in range(i)) for i in range(4))", "a range ends at an index"),
        ("sum(x[i], u for i in range(4))", "sum has 2 operands before its loop, and takes 1"),
        ("exp(x[i] for i in range(4))", "no loop is named `exp`; use one of sum, prod, min, max, dot, fold"),
        ("fold(x[i] for i in range(4))", "a fold carries a value"),
        ("sum(x[i] for i in range(4) with s = 0)", "leave `with` out"),
        (
            "sum(x[i] for i in range(100000))",
            "turns of a loop times those around it: 100000 asked, the limit is 65536",
        ),
        (
            "sum(sum(i*j for j in range(100)) for i in range(200))",
            "terms of a model with each turn of its loops",
        ),
        ("sum(x[i] for i)", "where `in range(…)` should be"),
        ("sum(q for i in range(4))", "no value is named `q`"),
        ("sum(u)", "sum(x[i] for i in range(5))"),
    ];
    for (formula, words) in faults {
        let error = read(formula).unwrap_err().to_string();
        println!("{formula}: {error}");
        let line = if words.starts_with("terms of a model") { "line 12" } else { "line 13" };
        assert!(error.starts_with(&format!("m.toml, {line}, column")), "{formula}: {error}");
        assert!(error.contains(words), "{formula}: {error}");
    }
    let table = |text: &str| {
        let text = MODEL.replace("w = [0.1, -0.7, 1e3, 2]", text).replace("FORMULA", "u");
        abide_text::read(&text, "m.toml").unwrap_err().to_string()
    };
    assert!(table("w = [[1, 2], [3]]").contains("row 1 has 1 entries, the first 2"));
    assert!(table("w = []").contains("entries of a table"));
    assert!(table("w = [nan]").contains("a finite number"));
    assert!(table("u = [1]").contains("u stands for two things"));
    assert!(table("x = [1]").contains("x stands for two things"));
}
