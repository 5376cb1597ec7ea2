//! A program whose formulas have loops of every kind, on one to three axes.

use abide_core::program::{Centring, Definition};
use abide_core::{Expr, Parameter, Program, Result, Scope, Stencil};

/// The components of the field `x`.
const COMPONENTS: usize = 5;

struct Looped {
    dimensions: usize,
    tame: bool,
}

impl Stencil for Looped {
    fn name(&self) -> &str {
        "looped"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        let components = (0..COMPONENTS).map(|number| format!("x[{number}]"));
        std::iter::once("u".to_owned()).chain(components).collect()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("p", 0.3, "")]
    }

    fn define(&self, s: &Scope<'_>) {
        let (g, n, p) = (s.graph(), COMPONENTS, s.param("p"));
        let x = s.components("x");
        let weights = g.table(&[0.11, -0.23, 0.31, 0.07, 0.19]);
        let entries: Vec<f64> = (0..n * n).map(|at| 0.02 + 0.01 * ((7 * at) % 11) as f64).collect();
        let pairs = g.table_of(n, &entries);
        let mean = g.sum(0..n, |i| x.at(i) * weights.at(i));
        // Needs the sum before it.
        let spread = g.sum_of_products(0..n, |i| [x.at(i) - mean; 2]);
        let form = g.sum_of_products(0..n, |i| {
            let row =
                g.fold(i.plus(1).to(n), x.at(i) * 0.5, |j, sum| x.at(j).mul_add(pairs.at_row(i, j), sum));
            [x.at(i), row]
        });
        // Differs from turn to turn by the index itself, and by a component beside.
        let least = g.least(1..n, |i| x.at(i).mul_add(i.value() * 0.1, p * x.at(i.plus(-1))));
        let product = g.product(0..n - 1, |i| x.at(i) * 0.1 + 0.9);
        // Two values that change places.
        let [turned, _] = g.repeat(0..3, [mean, p], |_, [a, b]| [b, a.mul_add(0.25, b * 0.5)]);
        let mut all = (form + least * 0.25) * 0.2 + product * 0.1 + turned * 0.1 + spread * 0.05;
        if !self.tame {
            all = all + hard(s, spread);
        }
        s.set("u", all);
        s.set_component("x", 2, s.component("x", 2).here().mul_add(0.5, all * 0.25));
    }
}

/// Returns neighbours' components, functions, and an iteration until it no longer changes.
fn hard<'g>(s: &Scope<'g>, spread: Expr<'g>) -> Expr<'g> {
    let (g, n) = (s.graph(), COMPONENTS);
    let beside = s.components_at("x", &[1, 0, -1][3 - s.dimensions()..]);
    let greatest = g.greatest(0..n, |i| beside.at(i).abs().max(1e-3).log() * 0.01);
    let square = spread.abs() + 1.0;
    let root = g.converge(12, square, |y| 0.5 * (y + square / y), |old, new| new.ge(old));
    greatest + root * 0.01
}

/// Halves `u`: a stage without loops.
struct Half(usize);

impl Stencil for Half {
    fn name(&self) -> &str {
        "half"
    }

    fn dimensions(&self) -> usize {
        self.0
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        s.set("u", u.here().lt(0.25).select(u.here().exp(), u.along(0, 1) * 0.5));
    }
}

/// Returns the program that is not tame, with a stage without loops behind.
///
/// # Errors
///
/// Those of [`program`].
pub fn of_two_stages(dimensions: usize) -> Result<Program> {
    Program::sequence("looped and half", &[&Looped { dimensions, tame: false }, &Half(dimensions)])
}

/// Returns the program, plain and of one stage; where it is `tame` it has no function and no division, and no value grows.
///
/// # Errors
///
/// [`abide_core::Error::Limit`] for other than one to three axes.
pub fn program(dimensions: usize, tame: bool) -> Result<Program> {
    Program::new(&Looped { dimensions, tame })
}

/// Returns a program of results of loops: the products of two times `n` components, each a result that a loop within a loop stores;
/// a result of each component that needs a sum over all and its old value; and a field that is set alone, whose taps
/// make cells at the sides fixed.
///
/// # Errors
///
/// [`abide_core::Error::Limit`] for more components than a program may have.
pub fn products(n: usize, dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("products", dimensions);
    for name in ["a", "b", "c", "d"] {
        p.components(name, n, Centring::CELL);
    }
    p.field("u", Centring::CELL).components("pair", n * n, Centring::CELL).components(
        "own",
        n,
        Centring::CELL,
    );
    p.step().stage("products", |s| {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| s.components(name));
        s.set_components_of("pair", n, |y, x| b.at(x).mul_add(d.at(y), a.at(x) * c.at(y)));
        let u = s.field("u");
        s.set("u", u.along(0, -1) * 0.5 + u.here() * 0.5);
        // What is read is of before the stage.
        let old = s.components("own");
        s.set_components("own", |i| {
            let sum = s.graph().sum_of_products(0..n, |j| [b.at(j), a.at(j)]);
            (a.at(i) * 0.25).mul_add(sum, old.at(i) * 0.25)
        });
    });
    p.build()
}

/// Returns a program of tree sums of `lanes` lanes over `n` components: one that needs the sum before it, two beside each other
/// whose terms have loops of their own, one within a loop and one within a stored result, and one of two lanes; and a field
/// that is set alone, whose taps make cells at the sides fixed.
///
/// # Errors
///
/// [`abide_core::Error::Limit`] for other than one to three axes, or lanes that are no power of two up to 32.
pub fn trees(lanes: usize, n: usize, dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("trees", dimensions);
    p.components("x", n, Centring::CELL).field("u", Centring::CELL).field("all", Centring::CELL);
    p.components("own", n, Centring::CELL);
    p.step().stage("trees", |s| {
        let (g, x) = (s.graph(), s.components("x"));
        let weights: Vec<f64> = (0..n).map(|i| 0.01 * ((7 * i) % 11) as f64 - 0.03).collect();
        let entries: Vec<f64> = (0..n * n).map(|at| 0.002 * ((5 * at) % 13) as f64).collect();
        let (weights, pairs) = (g.table(&weights), g.table_of(n, &entries));
        let mean = g.tree_sum(lanes, 0..n, |i| x.at(i) * weights.at(i));
        let spread = g.tree_sum_of_products(lanes, 0..n, |i| [x.at(i) - mean; 2]);
        let [triangle, rows] = g.tree_sums(lanes, 0..n, |i, [triangle, rows]| {
            let row =
                g.fold(i.plus(1).to(n), x.at(i) * 0.5, |j, sum| x.at(j).mul_add(pairs.at_row(i, j), sum));
            [x.at(i).mul_add(row, triangle), rows + row * 0.125]
        });
        let carried = g.fold(0..3, 0.1, |k, before| {
            before * 0.5 + g.tree_sum(lanes, 1..n, |i| (x.at(i) - before) * (k.value() * 0.01))
        });
        let of_two = g.tree_sum(2, 0..n, |i| x.at(i) * 0.01);
        s.set("all", (mean + spread * 0.01) + (triangle * 0.01 + rows * 0.1) + (carried + of_two) * 0.1);
        let u = s.field("u");
        s.set("u", u.along(0, -1) * 0.5 + mean * 0.25);
        s.set_components("own", |i| {
            let row = g.tree_sum(lanes, i.to(n), |j| x.at(j) * pairs.at_row(i, j));
            (x.at(i) * 0.25).mul_add(spread, row)
        });
    });
    p.build()
}
