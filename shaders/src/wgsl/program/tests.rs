//! The text of programs' kernels, checked by naga with no device at hand.

use std::sync::Arc;

use abide_core::plan::Options;
use abide_core::plan::fused::Partition;
use abide_core::{DeviceSpec, Shape, catalogue};
use abide_planner::fused::{Passing, greedy};
use abide_planner::plan_stepwise;
use abide_random::cases::{cases, random};
use abide_random::partitions::partition;

use super::*;
use crate::wgsl::tests::check_module;

fn kernels_of(problem: &Problem, has_f64: bool) -> ProgramKernels {
    let plan = plan_stepwise(problem, &DeviceSpec::preset("a100").unwrap(), &Options::default()).unwrap();
    let storage = Storage::of(problem, &Boxes::of(problem).unwrap()).unwrap();
    program_kernels(problem, plan.stepwise().unwrap(), &storage, ScalarLayout::of(problem, has_f64)).unwrap()
}

/// Checks a kernel's text, and the names of what it binds.
fn check_names(kernel: &Kernel<Place>) {
    let names = kernel.bindings.iter().map(|binding| match binding {
        Place::Scalars(_) => "parameters".to_owned(),
        Place::Leaves => "leaves".to_owned(),
        Place::Matrices => "matrices".to_owned(),
        Place::Slot(slot, _) => format!("values_{slot}"),
    });
    check_module(kernel, names.collect());
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
                    if problem.lower_walls().is_err()
                        || problem.check().is_err()
                        || problem.is_plain()
                        || check(&problem, &Boxes::of(&problem).unwrap()).is_err()
                    {
                        continue;
                    }
                    problem.until = program
                        .scalars()
                        .first()
                        .map(|scalar| Until::parse(&format!("{} >= 0.1", scalar.name), &program).unwrap());
                    for has_f64 in [true, false] {
                        let made = kernels_of(&problem, has_f64);
                        let loops = program.phases().iter().filter(|phase| phase.repeat.is_some()).count();
                        assert_eq!(made.until.is_some(), problem.until.is_some() && loops == 0);
                        let conditions = program.phases().iter().filter_map(|phase| phase.repeat?.until);
                        assert_eq!(made.turns.len(), conditions.count(), "{}", program.name());
                        made.kernels.iter().for_each(check_names);
                        let uses = made.kernels.iter().any(|kernel| kernel.text.contains("f64;"));
                        assert!(has_f64 || dtype == DType::F64 || !uses, "{}", program.name());
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
    let made = kernels_of(&problem, true);
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

/// Checks the kernels of groups: those that the planner makes of CloverLeaf, and random ones of random programs.
#[test]
fn every_kernel_of_groups_is_valid() {
    let device = DeviceSpec::preset("a100").unwrap();
    let mut problems: Vec<(Problem, Partition)> = Vec::new();
    for (extents, program) in
        [(&[240, 200][..], catalogue::cloverleaf()), (&[24, 40, 100], catalogue::cloverleaf_3d())]
    {
        let program = Arc::new(program.unwrap());
        for dtype in [DType::F32, DType::F64] {
            let shape = Shape::new(extents).unwrap();
            let problem = Problem::new(program.clone(), shape, dtype).unwrap();
            let partition = greedy(&problem, &Boxes::of(&problem).unwrap(), &device, Passing::Allowed);
            problems.push((problem, partition));
        }
    }
    for (case, seed) in cases().unwrap().into_iter().chain(random(300..340)).zip(0..) {
        let partition = partition(&case.problem, seed, 256, 8192, false).unwrap();
        problems.push((partition.split_problem(&case.problem).unwrap(), partition));
    }
    let mut seen = 0;
    for (problem, partition) in problems {
        let plan = plan_stepwise(&problem, &device, &Options::default()).unwrap();
        let boxes = Boxes::of(&problem).unwrap();
        let storage = Storage::of_groups(&problem, &boxes, &partition.groups()).unwrap();
        let tiles = Stepwise { partition, ..plan.stepwise().unwrap().clone() };
        let made = program_kernels(&problem, &tiles, &storage, ScalarLayout::of(&problem, true)).unwrap();
        for fused in tiles.partition.all().filter_map(|group| group.fused.as_ref()) {
            let names: Vec<&str> =
                fused.members.iter().map(|member| &*problem.program.stages()[member.stage].name).collect();
            let own =
                |kernel: &&Kernel<Place>| kernel.name.contains(names[0]) && kernel.threads == fused.threads;
            let bindings = made.kernels.iter().filter(own).map(|kernel| kernel.bindings.len()).min();
            assert!(bindings.is_some_and(|bindings| bindings <= fused.buffers(&problem, &boxes)));
            let bytes = (fused.values(&problem) * problem.dtype.bytes()).next_multiple_of(16);
            assert!(made.kernels.iter().any(|kernel| own(&kernel) && kernel.workgroup_bytes <= bytes));
            seen += 1;
        }
        made.kernels.iter().for_each(check_names);
    }
    assert!(seen > 60, "{seen}");
}
