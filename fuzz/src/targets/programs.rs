//! Random programs on random domains: however the CPU runs them, the bits are the reference's.
//!
//! The input is the key of the random numbers from which the tests' generators draw. A changed key makes an
//! entirely different case.

use std::sync::OnceLock;

use abide::backend::Backend;
use abide::{Array, DType, Options, Plan, Problem};
use abide_cpu::{CpuBackend, reference, variants};
use abide_random::{Way, formulas, grown, ways};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::ensure;

/// Bytes of the key.
pub const KEY: usize = 32;

/// The way in which a problem is run.
#[derive(Debug, Clone)]
enum Run {
    /// By the planner, for one of the backend's variants.
    Planned(usize),
    /// By a way that no planner would choose.
    Free(Way),
}

fn runs() -> impl Strategy<Value = Run> {
    prop_oneof![any::<usize>().prop_map(Run::Planned), ways().prop_map(Run::Free)]
}

/// A problem, its start and the steps of two calls.
#[derive(Debug, Clone)]
struct Case {
    problem: Problem,
    fields: Vec<Array>,
    steps: [u64; 2],
}

/// Returns a case of either generator; `None` where its domain is too small for its boundaries.
fn cases() -> impl Strategy<Value = Option<Case>> {
    let narrow = any::<bool>().prop_map(|narrow| if narrow { DType::F32 } else { DType::F64 });
    let grown = (grown::cases(), narrow).prop_map(|(case, dtype)| {
        let problem = case.problem(dtype)?;
        Some(Case { fields: case.fields(&problem), problem, steps: case.steps })
    });
    let formulas = formulas::cases(false, vec![DType::F32, DType::F64]);
    let formulas = (formulas, [0u64..7, 0u64..3], any::<u64>()).prop_map(|(case, steps, seed)| {
        let problem = case.problem().ok()?;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut field =
            |_| Array::from_fn(problem.dtype, problem.shape.cells(), |_| random.f64() * 2.0 - 1.0);
        let fields = (0..problem.program.fields().len()).map(&mut field).collect();
        Some(Case { problem, fields, steps })
    });
    prop_oneof![grown.boxed(), formulas.boxed()]
}

/// Runs a program on its domain in some way.
pub fn run(input: &[u8]) -> Result<(), String> {
    let mut key = [0; KEY];
    key.iter_mut().zip(input).for_each(|(key, byte)| *key = *byte);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let (case, run) = match (cases(), runs()).new_tree(&mut runner) {
        Ok(tree) => tree.current(),
        Err(_) => return Ok(()),
    };
    let Some(Case { problem, fields, steps: [first, second] }) = case else { return Ok(()) };
    let mut expected = fields.clone();
    reference::advance(&problem, &mut expected, first + second).map_err(|e| format!("the reference: {e}"))?;
    let words = |error: abide::Error| format!("{run:?} of {} {}: {error}", problem.shape, problem.dtype);
    let Some(plan) = plan(&problem, &run).map_err(words)? else { return Ok(()) };
    let advanced = backend()?.open(&problem, &plan, fields).and_then(|mut session| {
        session.advance(first)?;
        session.advance(second)?;
        Ok(session)
    });
    let mut session = match advanced {
        // Rings of many levels are promised more memory than they touch, and an execution is granted little
        // memory.
        Err(abide::Error::Limit { .. }) => return Ok(()),
        advanced => advanced.map_err(words)?,
    };
    for (field, expected) in expected.iter().enumerate() {
        let found = session.read(field).map_err(words)?;
        ensure(found.same_bits(expected), || {
            let boundaries = problem.boundaries.describe(problem.shape.dimensions());
            let (shape, dtype, steps) = (problem.shape, problem.dtype, first + second);
            format!(
                "{run:?} has other bits in field {field} after {steps} steps on {shape} {dtype}, {boundaries}"
            )
        })?;
    }
    Ok(())
}

/// Threads of every run: more than the rows of many tiles.
const THREADS: usize = 3;

fn backend() -> Result<&'static CpuBackend, String> {
    static BACKEND: OnceLock<Result<CpuBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| CpuBackend::with_threads(THREADS).map_err(|e| e.to_string()));
    backend.as_ref().map_err(Clone::clone)
}

/// Returns the plan; `None` where the planner has none, as for a domain too small to be cut.
fn plan(problem: &Problem, run: &Run) -> abide::Result<Option<Plan>> {
    let backend = backend().map_err(|e| abide::Error::device("cpu", "starting", e))?;
    match run {
        Run::Planned(number) => {
            let ways = variants();
            match backend.plan(problem, &ways[number % ways.len()]) {
                Err(abide::Error::Limit { .. } | abide::Error::Unsupported { .. }) => Ok(None),
                plan => plan.map(Some),
            }
        }
        Run::Free(way) => Ok(Some(way.of(backend.plan(problem, &Options::default())?, THREADS).0)),
    }
}
