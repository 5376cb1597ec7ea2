//! Random programs on random domains: the threaded path against the reference, bit for bit.

use abide_core::{Array, DType, Options, Problem, Real, Session};
use abide_planner::plan_cpu;
use abide_random::grown::{Case, cases};
use abide_random::{Way, ways};
use proptest::prelude::*;

use crate::device::machine;
use crate::reference;
use crate::session::{Threaded, Workers};
use crate::state::State;

fn check<T: Real>(case: &Case, problem: &Problem, way: &Way, fused: bool) -> Result<(), TestCaseError> {
    let [first, second] = case.steps;
    let mut expected = case.fields(problem);
    let fields = expected.iter().filter_map(T::slice).map(<[T]>::to_vec).collect();
    reference::advance(problem, &mut expected, first + second).unwrap();
    let (plan, rows) = way.of(plan_cpu(problem, &machine(2, 20e9), &Options::default()).unwrap(), 3);
    let state = State::new(problem, fields).unwrap();
    let mut session = Threaded::<T>::open(problem, &plan, &rows, Workers::default(), fused, state).unwrap();
    session.advance(first).unwrap();
    session.advance(second).unwrap();
    for (field, expected) in expected.iter().enumerate() {
        let found: Array = session.read(field).unwrap();
        prop_assert!(found.same_bits(expected), "field {field}, ulp {:?}", found.ulp_distance(expected));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn threaded_has_the_bits_of_the_reference(case in cases(), way in ways(), fused: bool) {
        for dtype in [DType::F32, DType::F64] {
            let Some(problem) = case.problem(dtype) else { continue };
            match dtype {
                DType::F32 => check::<f32>(&case, &problem, &way, fused)?,
                DType::F64 => check::<f64>(&case, &problem, &way, fused)?,
            }
        }
    }
}
