//! Random numbers of cells and steps: what their programs have, and how they are distributed.

use abide::prelude::*;
use abide::text;

/// Returns a model of one field that each step draws anew by a formula.
fn model(formula: &str) -> String {
    format!("axes = 1\nboundary = \"periodic\"\n[fields]\nu = 0.0\n[[stages]]\nu = \"{formula}\"\n")
}

fn begin(formula: &str, cells: usize, dtype: DType) -> Simulation {
    let program = text::read(&model(formula), "drawn.toml").unwrap();
    let run = Simulation::builder(program).size(&[cells]).dtype(dtype).backend(Choice::CPU);
    run.param("seed", 77.0).build().unwrap()
}

#[test]
fn a_program_that_draws_counts_its_steps() {
    let mut run = begin("uniform(3)", 100, DType::F32);
    run.run(7).unwrap();
    assert_eq!(["random_step", "random_turn"].map(|name| run.scalar(name).unwrap()), [7.0, 0.0]);
    // A model that is written and read again has the same numbers.
    let program = text::read(&model("uniform(3) + normal(1)*uniform(3, 1)"), "drawn.toml").unwrap().program;
    let written = text::write(&program).unwrap();
    let again = text::read(&written, "again.toml").unwrap().program;
    assert_eq!(text::write(&again).unwrap(), written);
    assert_eq!(again.scalars().len(), 2);
}

#[test]
fn what_is_no_stream_is_refused() {
    for (formula, words) in [
        ("uniform(u)", "uniform takes the number of a stream, 0 to 65535"),
        ("normal(-1)", "normal takes the number of a stream"),
        ("exponential(65536)", "exponential takes the number of a stream"),
        ("bernoulli(0.5)", "bernoulli(0, 0.25), with the stream and the probability"),
        ("uniform(0, 2)", "uniform takes the number of a stream"),
        ("d(uniform(0), x)", "it draws random numbers, which are those of the cell"),
    ] {
        let said = text::read(&model(formula), "drawn.toml").err().map(|error| error.to_string());
        assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{formula}: {said:?}");
    }
}

/// Kolmogorov and Smirnov's distance, below which 99.9 % of samples lie, and the first two moments within four deviations.
fn check_distribution(steps: u64, cells: usize) {
    let normal = |x: f64| 0.5 * (1.0 + abide::functions::erf(x / 2.0_f64.sqrt()));
    type Below<'a> = &'a dyn Fn(f64) -> f64;
    // Each with its distribution, mean, variance, and the fourth central moment.
    let all: [(&str, Below<'_>, [f64; 3]); 3] = [
        ("uniform(0)", &|x| x, [0.5, 1.0 / 12.0, 1.0 / 80.0]),
        ("normal(1)", &normal, [0.0, 1.0, 3.0]),
        ("exponential(2)", &|x: f64| -(-x).exp_m1(), [1.0, 1.0, 9.0]),
    ];
    for dtype in [DType::F32, DType::F64] {
        for (formula, below, [mean, variance, fourth]) in &all {
            let mut run = begin(formula, cells, dtype);
            let mut bins = vec![0_u64; 20_000];
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..steps {
                run.run(1).unwrap();
                for x in run.field("u").unwrap().to_f64() {
                    bins[((below(x) * 20_000.0) as usize).min(19_999)] += 1;
                    sum += x - mean;
                    squares += (x - mean) * (x - mean);
                }
            }
            let n = (steps * cells as u64) as f64;
            let mut seen = 0;
            let distance = bins.iter().enumerate().fold(0.0_f64, |most, (bin, &count)| {
                seen += count;
                most.max((seen as f64 / n - (bin + 1) as f64 / bins.len() as f64).abs())
            });
            let what =
                format!("{formula} {dtype}: distance {distance}, mean {}, variance {}", sum / n, squares / n);
            println!("{what}");
            // Numbers of 24 bits lie on a lattice, whose points are 6e-8 apart.
            assert!(distance < 1.95 / n.sqrt() + 1e-7, "{what}");
            assert!((sum / n).abs() < 4.0 * (variance / n).sqrt(), "{what}");
            assert!(
                (squares / n - variance).abs() < 4.0 * ((fourth - variance * variance) / n).sqrt(),
                "{what}"
            );
        }
    }
}

#[test]
fn two_hundred_thousand_numbers_are_distributed_as_they_should_be() {
    check_distribution(2, 100_000);
}

#[test]
#[ignore = "10^8 numbers of each distribution: a minute"]
fn a_hundred_million_numbers_are_distributed_as_they_should_be() {
    check_distribution(20, 5_000_000);
}
