//! Steps that set points alone, on several devices: a device that has none of the points takes the step, too.

use crate::common;

use std::sync::Arc;

use abide_core::program::{Centring, Definition};
use abide_core::{Boundary, DType, Options, Problem, Shape};

use common::{assert_same, ranked};

#[test]
fn steps_of_points_alone_have_the_bits_of_one_device() {
    for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror] {
        let mut p = Definition::new("sources", 2);
        p.field("u", Centring::CELL).field("v", Centring::CELL).boundary(boundary);
        p.scalar("time", Some(0.0), "time");
        p.step().points("source", &[[3, 1], [29, 4]], |s| {
            s.set("u", s.field("u").here() + 1.0);
            s.set("v", s.field("u").here() * 2.0);
        });
        p.step().points("drain", &[[17, 2]], |s| s.set("v", s.field("v").here() - 0.5));
        p.step().stage("spread", |s| {
            let u = s.field("u");
            s.set("u", u.here() + 0.1 * (u.at([-1, 0]) + u.at([1, 0]) - 2.0 * u.here()));
        });
        let program = Arc::new(p.build().unwrap());
        for dtype in [DType::F32, DType::F64] {
            let problem = Problem::new(program.clone(), Shape::new(&[37, 6]).unwrap(), dtype).unwrap();
            for depth in [1, 2, 3] {
                assert_same(&problem, &ranked(&[2, 1, 2]).every(depth), &Options::default(), 11);
                assert_same(&problem, &ranked(&[1; 6]).every(depth), &Options::default(), 7);
            }
        }
    }
    // Nothing but points.
    let mut p = Definition::new("points", 1);
    p.field("u", Centring::CELL);
    p.step().points("source", &[[20]], |s| s.set("u", s.field("u").here() + 1.0));
    let program = Arc::new(p.build().unwrap());
    let problem = Problem::new(program, Shape::new(&[40]).unwrap(), DType::F64).unwrap();
    assert_same(&problem, &ranked(&[1; 4]), &Options::default(), 5);
}
