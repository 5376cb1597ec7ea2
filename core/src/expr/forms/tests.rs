use super::*;
use crate::expr::{Dag, Node, Tap};
use crate::real::DType;

/// Returns a smooth matrix, as of reduced masses, and one with few entries.
fn matrices(n: usize) -> [Vec<f64>; 2] {
    let mass = |i: usize| 2.0 + 0.8 * i as f64;
    let scale = |i: usize| 1.0 + 0.3 * (i % 5) as f64;
    let all = || (0..n).flat_map(|i| (0..n).map(move |j| (i.min(j), i.max(j))));
    let smooth = |(i, j): (usize, usize)| {
        scale(i) * scale(j) * (2.0 * (mass(i) * mass(j)).sqrt() / (mass(i) + mass(j))).sqrt()
    };
    let few = |(i, j): (usize, usize)| if (3 * i + 5 * j) % 11 == 0 { 0.1 - 0.03 * i as f64 } else { 0.0 };
    [all().map(smooth).collect(), all().map(few).collect()]
}

fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.05 + 0.9 * ((7 * i + 3) % 13) as f64 / 13.0).collect()
}

/// Returns a form's value with its loops, with each turn of them, and written out.
fn evaluated(form: &QuadraticForm, x: &[f64]) -> [f64; 3] {
    let graph = Graph::new();
    let components = graph.components(Tap { field: 0, offset: [0; 3] }, x.len());
    let own = form.of(&graph, |i| components.at(i));
    let terms = form.written_out(&graph, |i| components.at(i));
    assert_eq!(graph.fault(), None);
    let tap = |tap: Tap| x[usize::from(tap.field)];
    let of = |dag: &Dag| {
        let mut values = Vec::new();
        dag.evaluate::<f64>(&mut values, &[], [0; 3], tap);
        values[dag.outputs[0] as usize]
    };
    let unrolled = of(&graph.looped(&[own]).map_or_else(|| graph.dag(&[own]), |looped| looped.unrolled()));
    let looped =
        graph.looped(&[own]).map_or(unrolled, |looped| looped.evaluate(&[], [0; 3], tap).next().unwrap());
    [looped, unrolled, of(&graph.dag(&[terms]).simplified(DType::F64))]
}

/// Sums every product exactly in twice the digits, in another order.
fn expected(entries: &[f64], x: &[f64]) -> f64 {
    let (mut sum, mut rest, n) = (0.0f64, 0.0f64, x.len());
    for j in 0..n {
        for i in 0..n {
            let pair = x[i] * x[j];
            let product = pair * entries[i * n + j];
            let lost =
                x[i].mul_add(x[j], -pair) * entries[i * n + j] + pair.mul_add(entries[i * n + j], -product);
            let next = sum + product;
            let back = next - sum;
            rest += (sum - (next - back)) + (product - back) + lost;
            sum = next;
        }
    }
    sum + rest
}

#[test]
fn forms_are_the_double_sum() {
    for n in [1, 2, 7, 33, 53] {
        let ([smooth, few], x) = (matrices(n), values(n));
        let cases = [
            ("symmetric", QuadraticForm::symmetric(n, &smooth).unwrap(), &smooth),
            ("low rank", QuadraticForm::low_rank(n, &smooth, 1e-15).unwrap(), &smooth),
            ("sparse", QuadraticForm::sparse(n, &few).unwrap(), &few),
            ("sparse, but full", QuadraticForm::sparse(n, &smooth).unwrap(), &smooth),
        ];
        for (name, form, entries) in cases {
            let [looped, unrolled, terms] = evaluated(&form, &x);
            let (expected, size) =
                (expected(entries, &x), entries.iter().map(|entry| entry.abs()).sum::<f64>());
            assert_eq!(looped.to_bits(), unrolled.to_bits(), "{name}, {n}");
            for found in [looped, terms] {
                assert!((found - expected).abs() <= 1e-14 * size, "{name}, {n}: {found} for {expected}");
            }
        }
        // Ones less a sparse matrix.
        let sum: f64 = x.iter().sum();
        let own = sum * sum - evaluated(&QuadraticForm::sparse(n, &few).unwrap(), &x)[0];
        let less: Vec<f64> = few.iter().map(|entry| 1.0 - entry).collect();
        assert!((own / expected(&less, &x) - 1.0).abs() < 1e-14);
    }
}

#[test]
fn structures_take_as_many_operations_as_they_say() {
    let [smooth, few] = matrices(53);
    let low = QuadraticForm::low_rank(53, &smooth, 1e-15).unwrap();
    assert!(low.operations() < 17 * 54 && low.operations() > 8 * 40, "{}", low.operations());
    assert_eq!(QuadraticForm::symmetric(53, &smooth).unwrap().operations(), 53 * 56 / 2);
    let sparse = QuadraticForm::sparse(53, &few).unwrap();
    let graph = Graph::new();
    let tap = |i: Index<'_>| graph.add(Node::Tap(Tap { field: i.number().unwrap() as u16, offset: [0; 3] }));
    let dag = graph.dag(&[sparse.written_out(&graph, tap)]).simplified(DType::F64);
    // And the doubling.
    assert_eq!(dag.nodes.iter().filter(|node| node.operands().count() > 1).count(), sparse.operations() + 1);
}

#[test]
fn a_smooth_table_has_few_factors() {
    let mass = |i: usize| 2.0 + 0.8 * i as f64;
    let entry = |i: usize, j: usize| {
        if i == j { 1.0 } else { (2.0 * (mass(i) * mass(j)).sqrt() / (mass(i) + mass(j))).sqrt() }
    };
    let columns = factors(53, entry, 1e-15);
    assert!(columns.len() < 17, "{}", columns.len());
    for i in 0..53 {
        for j in 0..53 {
            let product: f64 = columns.iter().map(|c| c[i] * c[j]).sum();
            assert!((product - entry(i, j)).abs() < 2e-15, "{i} {j}: {:e}", product - entry(i, j));
        }
    }
}

#[test]
fn other_matrices_are_refused() {
    let words = |form: Result<QuadraticForm>| form.unwrap_err().to_string();
    assert!(
        words(QuadraticForm::symmetric(2, &[1.0, 2.0, 3.0, 1.0])).contains("entry 1, 0 is 3, and 0, 1 is 2")
    );
    assert!(words(QuadraticForm::sparse(2, &[1.0, 2.0, 2.0])).contains("2 rows of as many"));
    assert!(words(QuadraticForm::symmetric(1, &[f64::NAN])).contains("finite"));
    assert!(words(QuadraticForm::low_rank(2, &[1.0, 2.0, 2.0, 1.0], 1e-15)).contains("semidefinite"));
    assert!(words(QuadraticForm::low_rank(2, &[0.0, 1.0, 1.0, 1.0], 1e-15)).contains("semidefinite"));
    assert!(words(QuadraticForm::low_rank(1, &[-1.0], 1e-15)).contains("semidefinite"));
}
