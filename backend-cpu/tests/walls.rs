//! Conditions at walls on long and short rows: most cells make no choice, and their steps leave it out.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Wall};
use abide_core::{Array, Backend, Boundary, DType, Execution, Options, Problem, Shape, Start};
use abide_cpu::CpuBackend;

/// Returns a program of one stage, or with a scalar that counts.
fn program(dimensions: usize, is_plain: bool) -> Arc<abide_core::Program> {
    let mut p = Definition::new("walls", dimensions);
    p.boundary(Boundary::Periodic).field("u", Centring::CELL).parameter("k", 0.09, "a weight");
    if !is_plain {
        p.scalar("time", Some(0.0), "steps done");
    }
    p.wall("u", "x-", |s| {
        Wall::dirichlet(if dimensions > 1 { (0.1 * s.coord(0)).sin() } else { s.constant(0.5) })
    });
    p.wall("u", "x+", |s| Wall::robin(s.param("k"), s.constant(1.0), s.constant(0.25)));
    if dimensions > 1 {
        p.wall("u", "y", |s| Wall::neumann((0.01 * s.coord(dimensions - 1)).cos()));
    }
    let mut step = p.step();
    step.stage("spread", |s| {
        let u = s.field("u");
        let far = u.along(dimensions - 1, -2) - u.along(dimensions - 1, 2);
        s.set("u", u.here() + s.param("k") * u.laplacian() + 0.01 * far);
    });
    if !is_plain {
        step.compute("time", |s| s.param("time") + 1.0);
    }
    Arc::new(p.build().unwrap())
}

#[test]
fn cells_beside_walls_and_between_have_the_bits_of_the_reference() {
    let extents: [&[usize]; 7] =
        [&[37], &[5000], &[23, 57], &[9, 1500], &[2, 1024], &[5, 7, 61], &[3, 6, 2050]];
    for extents in extents {
        for (dtype, is_plain) in [(DType::F32, true), (DType::F64, true), (DType::F64, false)] {
            let shape = Shape::new(extents).unwrap();
            // A formula reaches two cells along x, and one along y.
            let problem = Problem::new(program(extents.len(), is_plain), shape, dtype).unwrap();
            assert_eq!(problem.is_plain(), is_plain);
            let start = Start::Random { seed: 5, low: -1.0, high: 1.0 }.fill(&shape, dtype).unwrap();
            let run = |backend: CpuBackend, execution: Execution| {
                let options = Options { execution, ..Options::default() };
                let plan = backend.plan(&problem, &options).unwrap();
                let mut session = backend.open(&problem, &plan, vec![start.clone()]).unwrap();
                session.advance(9).unwrap();
                session.read(0).unwrap()
            };
            let expected: Array = run(CpuBackend::reference(), Execution::Auto);
            for threads in [1, 3] {
                for execution in [Execution::Auto, Execution::Stepwise] {
                    let found = run(CpuBackend::with_threads(threads).unwrap(), execution);
                    assert!(found.same_bits(&expected), "{shape} {dtype} {is_plain} {threads} {execution:?}");
                }
            }
        }
    }
}
