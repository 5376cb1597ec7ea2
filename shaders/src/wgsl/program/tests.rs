//! The text of programs' kernels, checked by naga with no device at hand.

use std::sync::Arc;

use abide_core::plan::{Options, plan_stepwise};
use abide_core::{DeviceSpec, Shape, catalogue};

use super::*;
use crate::wgsl::tests::check_module;

fn kernels_of(problem: &Problem) -> ProgramKernels {
    let plan = plan_stepwise(problem, &DeviceSpec::preset("a100").unwrap(), &Options::default()).unwrap();
    let storage = Storage::of(problem, &Boxes::of(problem).unwrap()).unwrap();
    program_kernels(problem, plan.stepwise().unwrap(), &storage).unwrap()
}

/// Checks every program of the catalogue that is not plain, with and without tiles inside, and with a
/// condition.
#[test]
fn every_kernel_of_programs_is_valid() {
    let mut seen = 0;
    for entry in catalogue::entries() {
        for dimensions in entry.dimensions.clone() {
            let program = Arc::new(entry.program(dimensions).unwrap());
            for extents in [[1, 1, 1], [5, 3, 9], [9, 31, 101]] {
                for dtype in [DType::F32, DType::F64] {
                    let shape = Shape::new(&extents[3 - dimensions..]).unwrap();
                    let mut problem = Problem::unchecked(program.clone(), shape, dtype);
                    // Some of them have walls at which cells are held, so that one cell has no room.
                    if problem.check().is_err()
                        || problem.is_plain()
                        || check(&problem, &Boxes::of(&problem).unwrap()).is_err()
                    {
                        continue;
                    }
                    problem.until = program
                        .scalars()
                        .first()
                        .map(|scalar| Until::parse(&format!("{} >= 0.1", scalar.name), &program).unwrap());
                    let made = kernels_of(&problem);
                    assert_eq!(made.until.is_some(), problem.until.is_some());
                    for kernel in &made.kernels {
                        let names = kernel.bindings.iter().map(|binding| match binding {
                            Place::Scalars(_) => "parameters".to_owned(),
                            Place::Leaves => "leaves".to_owned(),
                            Place::Slot(slot, _) => format!("values_{slot}"),
                        });
                        check_module(kernel, names.collect());
                    }
                    seen += 1;
                }
            }
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// Stages that do the same share a kernel, and a kernel binds no buffer that its stage does not use.
#[test]
fn cloverleaf_binds_what_it_uses() {
    let program = Arc::new(catalogue::cloverleaf().unwrap());
    let problem = Problem::new(program.clone(), Shape::new(&[67, 101]).unwrap(), DType::F64).unwrap();
    let made = kernels_of(&problem);
    assert!(made.kernels.len() < program.stages().len(), "{}", made.kernels.len());
    for kernel in &made.kernels {
        for (number, binding) in kernel.bindings.iter().enumerate() {
            let Place::Slot(slot, _) = binding else { continue };
            let uses = kernel.text.matches(&format!("values_{slot}[")).count();
            assert!(uses > 0, "binding {number} of {}", kernel.name);
        }
        let gas = kernel.name.contains("ideal gas");
        assert!(!gas || kernel.bindings.len() == 4, "{:?}", kernel.bindings);
    }
}

/// A condition on an f32 holds for the same numbers as on an f64.
#[test]
fn a_limit_between_two_numbers_divides_the_same() {
    use Binary::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let mut rng = fastrand::Rng::with_seed(9);
    let between = (0..200).map(|_| f64::from_bits(rng.u64(..))).filter(|value| !value.is_nan());
    let all = [0.1, 0.5, -0.0, 1e300, -1e300, 1e-60, f64::INFINITY, f64::NEG_INFINITY, 16_777_217.0];
    let values: Vec<f64> = all.into_iter().chain(between).collect();
    for &value in &values {
        for relation in [Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual] {
            let until = Until { scalar: 0, relation, value };
            let limit = limit(DType::F32, until);
            let near = value as f32;
            for number in [near, near.next_up(), near.next_down(), 0.0, -1.0, f32::MAX, f32::INFINITY] {
                let number = f64::from(number);
                let holds = |limit| Until { value: limit, ..until }.ends(number);
                let expected = until.ends(number);
                let found = limit.map_or(relation == NotEqual, holds);
                assert!(found == expected, "{number:e} {relation:?} {value:e}");
                assert!(limit.is_none_or(|limit| f64::from(limit as f32) == limit));
            }
        }
    }
}
