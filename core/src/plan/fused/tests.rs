use std::sync::Arc;

use super::*;
use crate::catalogue;
use crate::device::DeviceSpec;
use crate::domain::Shape;
use crate::program::{Boxes, Problem, Storage, outlasts};
use crate::real::DType;

fn clover(extents: &[usize]) -> (Problem, Boxes) {
    let program = if extents.len() == 2 { catalogue::cloverleaf() } else { catalogue::cloverleaf_3d() };
    let shape = Shape::new(extents).unwrap();
    let problem = Problem::new(Arc::new(program.unwrap()), shape, DType::F64).unwrap();
    let boxes = Boxes::of(&problem).unwrap();
    (problem, boxes)
}

/// The loops of a step of CloverLeaf become a few kernels, whose order keeps every precedence; what nobody reads is
/// not computed, and copies stay names.
#[test]
fn cloverleaf_becomes_a_few_kernels() {
    let device = DeviceSpec::preset("h200").unwrap();
    for (extents, most) in [(&[3840, 3840][..], 6), (&[960, 960], 7), (&[256, 256, 256], 20)] {
        let (problem, boxes) = clover(extents);
        let partition = greedy(&problem, &boxes, &device);
        let groups = partition.groups();
        groups.check(&problem, &boxes).unwrap();
        let storage = Storage::of_groups(&problem, &boxes, &groups).unwrap();
        for step in &storage.steps {
            assert!(step.launches.len() <= most, "{extents:?}: {} launches", step.launches.len());
        }
        let named = |group: &Group, name: &str| {
            group.stages.iter().any(|&stage| problem.program.stages()[stage].name == name)
        };
        assert!(!partition.all().any(|group| named(group, "revert")));
        assert!(partition.all().any(|group| named(group, "reset cells") && group.stages.len() == 1));
    }
}

/// A member computes as far beyond a tile as those read that need it, and follows when they are there.
#[test]
fn members_follow_what_they_read() {
    let (problem, boxes) = clover(&[40, 70]);
    let number = |name: &str| problem.program.stages().iter().position(|stage| stage.name == name).unwrap();
    let stages = [number("ideal gas"), number("viscosity"), number("dt_stable")];
    let outlasts = outlasts(&problem, &boxes, &stages);
    let group = fused(&problem, &boxes, &stages, &outlasts, [1, 16, 32], 64).unwrap();
    let members: Vec<_> = group.members.iter().map(|member| (member.lag, member.beyond)).collect();
    // The viscosity taps the pressure of the four cells around; the time step takes the rest at the cell itself.
    assert_eq!(members, [(0, [[0; 2], [1; 2], [1; 2]]), (2, [[0; 2]; 3]), (2, [[0; 2]; 3])]);
    let pressure = problem.program.field("pressure").unwrap();
    // Three rows are read while the next one is made.
    assert_eq!(group.rings[0], Ring { name: pressure, rows: 4 });
    assert!(group.members[2].sources.iter().any(|(_, source)| *source == Source::Passed(1, 0)));
    assert_eq!((group.blocks, group.first), ([1, 3, 3], [0; 3]));
    assert!(fused(&problem, &boxes, &stages, &outlasts, [1, 12, 32], 64).is_err(), "no whole leaves");
}
