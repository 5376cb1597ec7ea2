use std::sync::Arc;

use super::*;
use crate::catalogue;
use crate::device::DeviceSpec;
use crate::domain::Shape;
use crate::program::{Boxes, Problem, Storage};
use crate::real::DType;

fn clover(extents: &[usize]) -> (Problem, Boxes) {
    let program = if extents.len() == 2 { catalogue::cloverleaf() } else { catalogue::cloverleaf_3d() };
    let shape = Shape::new(extents).unwrap();
    let problem = Problem::new(Arc::new(program.unwrap()), shape, DType::F64).unwrap();
    let boxes = Boxes::of(&problem).unwrap();
    (problem, boxes)
}

#[test]
fn groups_of_cloverleaf() {
    let device = DeviceSpec::preset("h200").unwrap();
    for extents in [&[3840, 3840][..], &[960, 960], &[256, 256, 256]] {
        let (problem, boxes) = clover(extents);
        let begun = std::time::Instant::now();
        let partition = partition(&problem, &boxes, &device);
        println!("{extents:?} {:?}", begun.elapsed());
        partition.groups.check(&problem, &boxes).unwrap();
        for step in &partition.groups.steps {
            for group in step {
                let names: Vec<&str> = group.iter().map(|&s| &*problem.program.stages()[s].name).collect();
                println!("  {names:?}");
                if let Some(f) = partition.fused.get(group) {
                    println!("     tile {:?} threads {} beyond {:?} turns {} rings {} values {} blocks {:?}", f.tile, f.threads, f.beyond, f.turns(), f.rings.len(), f.values_of_rings(), f.blocks);
                    for (n, m) in f.members.iter().enumerate() { println!("       {} lag {} beyond {:?} r {:.2}", names[n], m.lag, m.beyond, f.redundancy(n)); }
                }
            }
        }
        let storage = Storage::of_groups(&problem, &boxes, &partition.groups).unwrap();
        println!("buffers {} launches {:?}", storage.buffers.len(), storage.steps.iter().map(|s| s.launches.len()).collect::<Vec<_>>());
    }
}
