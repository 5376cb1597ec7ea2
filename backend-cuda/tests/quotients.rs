//! Quotients and square roots as formulas of programs compute them on the device, against the processor's own: every significand
//! as a divisor and as a square, and a billion pairs of each type.

use std::sync::Arc;

use abide_core::expr::{Unary, unary};
use abide_core::program::{Centring, Definition};
use abide_core::{Array, Backend, Boundary, DType, Options, Problem, Real, Result, Shape};
use abide_cuda::CudaBackend;

use crate::common::present;

/// The significands of f32 in two binades, which all square roots are of.
const COUNT: usize = 1 << 24;

/// Dividends for each divisor: a billion pairs.
const ROUNDS: u64 = 60;

/// Returns how many quotients a / b and roots of |b| have other bits than the processor's.
fn wrong<T: Real>(a: &[T], b: &[T], quotients: &[T], roots: &[T]) -> usize {
    let differs = |&i: &usize| {
        let root = unary(Unary::Sqrt, unary(Unary::Abs, b[i]));
        quotients[i].to_bits64() != (a[i] / b[i]).to_bits64() || roots[i].to_bits64() != root.to_bits64()
    };
    (0..a.len()).filter(differs).count()
}

#[test]
#[ignore = "takes a minute"]
fn a_billion_quotients_and_all_roots_have_the_processors_bits() -> Result<()> {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return Ok(()) };
    let mut p = Definition::new("quotients", 1);
    p.boundary(Boundary::Clamp);
    for name in ["a", "b", "q", "r"] {
        p.field(name, Centring::CELL);
    }
    // Nodes too, so that the stages are those of a program.
    p.field("n", Centring::NODE);
    let mut step = p.step();
    step.stage("quotients and roots", |s| {
        let [a, b] = ["a", "b"].map(|name| s.field(name).here());
        s.set("q", a / b);
        s.set("r", b.abs().sqrt());
    });
    step.stage("nodes", |s| s.set("n", s.field("n").here() + 1.0));
    let program = Arc::new(p.build()?);
    let mut random = fastrand::Rng::with_seed(5);
    for dtype in [DType::F32, DType::F64] {
        let problem = Problem::new(program.clone(), Shape::new(&[COUNT])?, dtype)?;
        let plan = backend.plan(&problem, &Options::default())?;
        let zero = |count: usize| Array::from_fn(dtype, count, |_| 0.0);
        let fields = vec![zero(COUNT), zero(COUNT), zero(COUNT), zero(COUNT), zero(COUNT + 1)];
        let mut session = backend.open(&problem, &plan, fields)?;
        for round in 0..ROUNDS {
            let power = 2.0f64.powi(random.i32(-50..=50));
            // Divisors of f32 are all significands, those of f64 any, and beside powers of two.
            let divisor = |i: usize, low: u64| match dtype {
                DType::F32 => f64::from(f32::from_bits(0x3f80_0000 + i as u32)) * power,
                DType::F64 if round % 4 == 0 => (1.0 + (i % 4096) as f64 * f64::EPSILON) * power,
                DType::F64 if round % 4 == 1 => (2.0 - (1 + i % 4096) as f64 * f64::EPSILON) * power,
                DType::F64 => f64::from_bits(0x3ff0_0000_0000_0000 | (low >> 12)) * power,
            };
            let mut state = random.u64(..);
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let mut pairs: Vec<(f64, f64)> = Vec::new();
            pairs.extend((0..COUNT).map(|i| {
                let b = divisor(i, next());
                let q = f64::from_bits(0x3ff0_0000_0000_0000 | (next() >> 12));
                // Every second dividend makes a quotient near one of the type's numbers, or near the middle of two.
                let a = match (i % 2, dtype) {
                    (0, _) => q,
                    (_, DType::F32) => {
                        f64::from(b as f32) * (f64::from(q as f32) + 0.5 * f64::from(f32::EPSILON))
                    }
                    (_, DType::F64) => b.mul_add(q, 0.5 * b * f64::EPSILON),
                };
                (if i % 3 == 0 { -a } else { a }, b)
            }));
            let [a, b] =
                [Array::from_fn(dtype, COUNT, |i| pairs[i].0), Array::from_fn(dtype, COUNT, |i| pairs[i].1)];
            session.write(0, &a)?;
            session.write(1, &b)?;
            session.advance(1)?;
            let (q, r) = (session.read(2)?, session.read(3)?);
            let wrong = match (&a, &b, &q, &r) {
                (Array::F32(a), Array::F32(b), Array::F32(q), Array::F32(r)) => wrong(a, b, q, r),
                (Array::F64(a), Array::F64(b), Array::F64(q), Array::F64(r)) => wrong(a, b, q, r),
                _ => COUNT,
            };
            assert_eq!(wrong, 0, "{dtype}, round {round}");
        }
    }
    Ok(())
}
