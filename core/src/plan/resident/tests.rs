use std::sync::Arc;

use super::*;
use crate::catalogue;
use crate::domain::Shape;
use crate::real::DType;

/// Tiles cover the domain, and blocks have what they are given.
#[test]
fn a_domain_is_divided_among_blocks() {
    let program = catalogue::find("2d5pt").unwrap().program(2).unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[700, 700]).unwrap(), DType::F64).unwrap();
    let device = DeviceSpec::preset("h200").unwrap();
    let plan = plan_resident(&problem, &device, &Options::default()).unwrap();
    let tiles = plan.resident().unwrap();
    assert!(tiles.blocks() > 1 && tiles.blocks() <= device.multiprocessors * tiles.blocks_per_multiprocessor);
    assert!(tiles.valid(problem.shape.cells()) <= 1.01);
    assert!(tiles.shared_bytes <= device.shared_bytes_for(tiles.blocks_per_multiprocessor));
    assert_eq!(plan.check(&problem), Ok(()));
}
