use std::sync::Arc;

use abide_core::program::{Centring, Definition};
use abide_core::{
    DType, DeviceSpec, Execution, Jam, LoopRows, Lowering, Options, Placement, Plan, Problem, Result, Shape,
    Team,
};

use crate::choice::plan;

/// A program of `n` components with a table of an entry each and one of all pairs, of which the upper triangle is read.
fn problem(n: usize, extents: &[usize]) -> Problem {
    let mut p = Definition::new("pairs", extents.len());
    p.field("u", Centring::CELL).components("x", n, Centring::CELL);
    p.step().stage("form", |s| {
        let (g, x) = (s.graph(), s.components("x"));
        let weights = g.table(&vec![0.5; n]);
        let pairs = g.table_of(n, &(0..n * n).map(|at| at as f64).collect::<Vec<_>>());
        let row = |i| {
            g.sum_of_products(abide_core::expr::Index::plus(i, 1).to(n), |j| [x.at(j), pairs.at_row(i, j)])
        };
        s.set("u", g.sum_of_products(0..n, |i| [x.at(i) * weights.at(i), row(i)]));
    });
    let program = p.build().unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap()
}

fn planned(problem: &Problem, device: &DeviceSpec, options: Options) -> Result<Plan> {
    let lowering = if options.lowering == Lowering::Auto { Lowering::Loops } else { options.lowering };
    plan(problem, device, &Options { execution: Execution::Stepwise, lowering, ..options })
}

fn places(plan: &Plan) -> Vec<Placement> {
    plan.stepwise().unwrap().tables[0].iter().map(|table| table.place).collect()
}

#[test]
fn tables_are_shared_as_far_as_there_is_room() {
    let device = DeviceSpec::preset("h200").unwrap();
    let of = |n: usize| planned(&problem(n, &[100_000]), &device, Options::default()).unwrap();
    let some = of(16);
    assert_eq!(places(&some), [Placement::Shared; 2]);
    let tiles = some.stepwise().unwrap();
    assert_eq!((tiles.table_bytes(0), tiles.tile, tiles.threads), (2176, [1, 1, 256], [1, 1, 256]));
    // Eight blocks of 256 threads fill a multiprocessor; there are not as many tiles.
    assert_eq!((tiles.launched, tiles.launched(some.shape.padded())), (Some(132 * 8), 391));
    assert!(some.explain().contains("2 of 2176 bytes in shared memory"));
    // The pairs are read once each and take what is left no more: half of 227 KiB, with 1 KiB for the system.
    assert_eq!(places(&of(119)), [Placement::Shared; 2]);
    assert_eq!(places(&of(120)), [Placement::Shared, Placement::Memory]);
    let constant = Options { tables: Placement::Constant, ..Options::default() };
    let asked = planned(&problem(15, &[1000]), &device, constant).unwrap();
    assert_eq!(asked.stepwise().unwrap().launched, None);
    assert!(asked.explain().contains("2 of 1920 bytes in constant memory"));
}

#[test]
fn long_formulas_stay_loops_where_blocks_share_tables() {
    let device = DeviceSpec::preset("h200").unwrap();
    let other = DeviceSpec { constant_bytes: None, ..device.clone() };
    let of = |n: usize, device: &DeviceSpec| {
        let problem = problem(n, &[1000]);
        let terms = problem.program.stages()[0].dag.nodes.len();
        let plan = plan(&problem, device, &Options::default()).unwrap();
        (terms, plan.stepwise().map(|stepwise| stepwise.lowering))
    };
    let (few, many) = (of(40, &device), of(90, &device));
    assert!(few.0 < 5000 && 5000 < many.0, "{few:?} {many:?}");
    assert_ne!(few.1, Some(Lowering::Loops));
    assert_eq!(many.1, Some(Lowering::Loops));
    assert_ne!(of(90, &other).1, Some(Lowering::Loops));
}

#[test]
fn places_are_forced_within_their_limits() {
    let device = DeviceSpec::preset("h200").unwrap();
    let of =
        |n: usize, tables| planned(&problem(n, &[1000]), &device, Options { tables, ..Options::default() });
    for tables in [Placement::Memory, Placement::Constant, Placement::Shared] {
        assert_eq!(places(&of(53, tables).unwrap()), [tables; 2]);
    }
    assert_eq!(places(&of(90, Placement::Constant).unwrap()), [Placement::Constant; 2]);
    let error = of(91, Placement::Constant).unwrap_err().to_string();
    assert!(
        error.contains("66976") && error.contains("65536") && error.contains("--tables shared"),
        "{error}"
    );
    // 96 KiB of a V100's block.
    let device = DeviceSpec::preset("v100").unwrap();
    let of =
        |n: usize, tables| planned(&problem(n, &[1000]), &device, Options { tables, ..Options::default() });
    assert_eq!(places(&of(110, Placement::Shared).unwrap()), [Placement::Shared; 2]);
    let error = of(111, Placement::Shared).unwrap_err().to_string();
    assert!(error.contains("99456") && error.contains("98304") && error.contains("form"), "{error}");
    assert_eq!(places(&of(111, Placement::Memory).unwrap()), [Placement::Memory; 2]);
}

#[test]
fn tables_and_jam_are_options_of_kept_loops() {
    let (device, problem) = (DeviceSpec::preset("h200").unwrap(), problem(5, &[1000]));
    let error = |options| plan(&problem, &device, &options).unwrap_err().to_string();
    let shared = Options { tables: Placement::Shared, ..Options::default() };
    assert!(error(shared).contains("--lowering loops, jammed or team"));
    let jam = Options { jam: Jam::Points(4), lowering: Lowering::Loops, ..Options::default() };
    assert!(error(jam).contains("--lowering jammed"));
    let other = DeviceSpec { constant_bytes: None, ..device.clone() };
    let options = Options { lowering: Lowering::Loops, ..shared };
    let error = plan(&problem, &other, &options).unwrap_err().to_string();
    assert!(error.contains("leave --tables at auto"), "{error}");
}

#[test]
fn points_are_as_many_as_registers_hold() {
    let device = DeviceSpec::preset("h200").unwrap();
    let jammed = |jam| Options { jam, lowering: Lowering::Jammed, ..Options::default() };
    let points = |extents: &[usize], jam| -> Result<_> {
        let plan = planned(&problem(10, extents), &device, jammed(jam))?;
        let tiles = plan.stepwise().unwrap();
        Ok((tiles.points, tiles.tile, tiles.threads))
    };
    assert_eq!(points(&[1000], Jam::Auto), Ok((8, [1, 1, 2048], [1, 1, 256])));
    assert_eq!(points(&[1000], Jam::Points(2)), Ok((2, [1, 1, 512], [1, 1, 256])));
    assert_eq!(points(&[9, 1000], Jam::Points(4)), Ok((4, [1, 8, 128], [1, 8, 32])));
    for refused in [3, 32] {
        let error = points(&[1000], Jam::Points(refused)).unwrap_err().to_string();
        assert!(error.contains("a power of two up to 16"), "{error}");
    }
}

#[test]
fn rows_go_together_within_their_limits() {
    let device = DeviceSpec::preset("h200").unwrap();
    let of = |n: usize, options| -> Result<_> {
        let plan = planned(&problem(n, &[1000]), &device, options)?;
        let tiles = plan.stepwise().unwrap();
        Ok((tiles.rows, tiles.points, plan.explain()))
    };
    let rows = |rows| Options { rows, ..Options::default() };
    let (one, _, words) = of(53, rows(LoopRows::Turns(1))).unwrap();
    assert!(one == 1 && !words.contains("turns of a loop go"), "{words}");
    assert_eq!(of(53, rows(LoopRows::Auto)).unwrap().0, 4);
    assert_eq!(of(1, rows(LoopRows::Auto)).unwrap().0, 1);
    let other = DeviceSpec { constant_bytes: None, ..device.clone() };
    let portable = planned(&problem(53, &[1000]), &other, Options::default()).unwrap();
    assert_eq!(portable.stepwise().unwrap().rows, 1);
    let (five, _, words) = of(53, rows(LoopRows::Turns(5))).unwrap();
    assert!(five == 5 && words.contains("up to 5 turns of a loop go through the loops within it together"));
    // Each row takes registers of points.
    let jammed = |rows| of(53, Options { lowering: Lowering::Jammed, rows, ..Options::default() }).unwrap().1;
    assert!(jammed(LoopRows::Turns(16)) < jammed(LoopRows::Auto));
    // Rows of results carry nothing; each thread has one point.
    let mut p = Definition::new("products", 1);
    p.components("x", 40, Centring::CELL).components("out", 1600, Centring::CELL);
    p.step().stage("products", |s| {
        let x = s.components("x");
        s.set_components_of("out", 40, |i, j| x.at(i) * x.at(j));
    });
    let program = Arc::new(p.build().unwrap());
    let products = Problem::new(program, Shape::new(&[100_000]).unwrap(), DType::F64).unwrap();
    let plan = planned(&products, &device, Options::default()).unwrap();
    let tiles = plan.stepwise().unwrap();
    assert_eq!((tiles.rows, tiles.tile, tiles.launched), (16, [1, 1, 256], None));
    let streaming = Options { execution: Execution::Streaming, ..Options::default() };
    let error = crate::plan(&products, &device, &streaming).unwrap_err().to_string();
    assert!(error.contains("1640") && error.contains("128") && error.contains("stepwise"), "{error}");
    let error = of(53, rows(LoopRows::Turns(17))).unwrap_err().to_string();
    assert!(error.contains("17") && error.contains("1 to 16") && error.contains("--rows auto"), "{error}");
    let error = of(1, rows(LoopRows::Turns(4))).unwrap_err().to_string();
    assert!(error.contains("no formula has a loop of two turns"), "{error}");
    let options = Options { lowering: Lowering::Straight, ..rows(LoopRows::Turns(4)) };
    let error = of(53, options).unwrap_err().to_string();
    assert!(error.contains("--rows") && error.contains("--lowering loops or jammed"), "{error}");
}

#[test]
fn a_team_is_as_large_as_trees_have_lanes() {
    let device = DeviceSpec::preset("h200").unwrap();
    let of_lanes = |lanes: &[usize]| {
        let mut p = Definition::new("trees", 1);
        p.field("u", Centring::CELL).components("x", 40, Centring::CELL);
        p.step().stage("sums", |s| {
            let (g, x) = (s.graph(), s.components("x"));
            let sums = lanes.iter().map(|&lanes| g.tree_sum(lanes, 0..40, |i| x.at(i)));
            s.set("u", sums.fold(g.constant(0.5), |all, sum| all * sum));
        });
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[100_000]).unwrap(), DType::F64).unwrap()
    };
    let asked = |team| Options { lowering: Lowering::Team, team, ..Options::default() };
    let of = |lanes: &[usize], team| planned(&of_lanes(lanes), &device, asked(team));
    let plan = of(&[4, 16], Team::Auto).unwrap();
    let tiles = plan.stepwise().unwrap();
    assert_eq!((tiles.team, tiles.threads, tiles.tile), (16, [1, 1, 16], [1, 1, 16]));
    assert_eq!((tiles.threads_per_block(), tiles.rows, tiles.points), (256, 1, 1));
    assert!(plan.explain().contains("16 threads share those of a point"), "{}", plan.explain());
    assert_eq!(of(&[4, 16], Team::Threads(4)).unwrap().stepwise().unwrap().team, 4);
    let error = |lanes: &[usize], team| of(lanes, team).unwrap_err().to_string();
    assert!(error(&[8], Team::Threads(3)).contains("a power of two from 2 to 32"));
    assert!(error(&[8], Team::Threads(64)).contains("--team auto"));
    assert!(error(&[8], Team::Threads(4)).contains("no formula has a tree sum of 4 lanes"));
    assert!(error(&[1], Team::Auto).contains("write the sum as tree_sum"));
    let other = Options { lowering: Lowering::Loops, ..asked(Team::Threads(8)) };
    let error = planned(&of_lanes(&[8]), &device, other).unwrap_err().to_string();
    assert!(error.contains("--team") && error.contains("add --lowering team"), "{error}");
    let rows = Options { rows: LoopRows::Turns(2), ..asked(Team::Auto) };
    let error = planned(&of_lanes(&[8]), &device, rows).unwrap_err().to_string();
    assert!(error.contains("--rows") && error.contains("loops or jammed"), "{error}");
}
