use std::sync::Arc;

use super::*;
use crate::catalogue;
use crate::domain::Shape;
use crate::program::{Boxes, Centring, Definition, Program, Reduction, Region};
use crate::real::Array;

fn program(name: &str, dimensions: usize) -> Program {
    catalogue::find(name).unwrap().program(dimensions).unwrap()
}

fn problem(program: Program, extents: &[usize], boundary: Boundary) -> Problem {
    let mut problem = Problem::unchecked(Arc::new(program), Shape::new(extents).unwrap(), DType::F64);
    problem.boundaries = Boundaries::all(boundary);
    problem
}

#[test]
fn cuts_follow_weights_and_leave_nothing() {
    assert_eq!(cut(10, &[1, 1, 1], 1), [0..4, 4..7, 7..10]);
    assert_eq!(cut(13, &[3, 1, 2], 1), [0..7, 7..9, 9..13]);
    assert_eq!(cut(10, &[100, 1], 3), [0..7, 7..10], "the least is kept");
    assert_eq!(cut(7, &[0, 0], 1), [0..4, 4..7]);
    assert_eq!(cut(usize::MAX, &[usize::MAX, usize::MAX], 1)[1].end, usize::MAX);
    for planes in 9..40 {
        for weights in [&[1, 2, 3][..], &[5, 1, 1], &[1, 1, 9]] {
            let all = cut(planes, weights, 3);
            assert!(all.iter().all(|own| own.len() >= 3), "{planes} {weights:?}: {all:?}");
            assert!(
                all[0].start == 0 && all[2].end == planes && all.windows(2).all(|p| p[0].end == p[1].start)
            );
        }
    }
}

/// What a step reads is the sum of radii of stages that depend on each other, not their number times the largest.
#[test]
fn the_reach_is_that_of_all_stages_that_depend_on_each_other() {
    assert_eq!(reach(&program("2ds25pt", 2), 1, 3), [18]);
    assert_eq!(reach(&program("2ds25pt", 2), 0, 3), [0], "no axis of the program");
    // A wave's second field is read at the cell alone, so a step less of it is read beyond.
    assert_eq!(reach(&program("wave", 2), 1, 1), [1, 0]);
    assert_eq!(reach(&program("wave", 2), 1, 4), [4, 3]);
    let mut p = Definition::new("apart", 1);
    p.field("a", Centring::CELL)
        .field("b", Centring::CELL)
        .field("k", Centring::CELL)
        .temporary("t", Centring::CELL);
    p.step()
        .stage("flux", |s| s.set("t", s.field("k").here() * s.field("a").at([3])))
        .stage("a", |s| s.set("a", s.field("t").at([-1]) + s.field("t").at([2])))
        .stage("b", |s| s.set("b", s.field("b").at([1]) + s.field("a").here()));
    let apart = p.build().unwrap();
    // b reads a, which reads t up to 2 away, which reads a up to 3 away and k at the cell.
    assert_eq!(reach(&apart, 2, 1), [5, 1, 2]);
    assert_eq!(reach(&apart, 2, 2), [10, 2, 7]);
}

#[test]
fn slabs_hold_their_neighbours_planes_and_close_the_ring() {
    let whole = problem(program("2d5pt", 2), &[11, 3], Boundary::Mirror);
    let slabs = Slabs::new(&whole, 2, &[1, 1, 1]).unwrap();
    let halos: Vec<_> = slabs.slabs.iter().map(|slab| (slab.own.clone(), slab.halo)).collect();
    assert_eq!(halos, [(0..4, [0, 2]), (4..8, [2, 2]), (8..11, [2, 0])]);
    let values = Array::from_fn(DType::F64, 33, |i| i as f64);
    let part = slabs.problem(1, &whole).unwrap();
    assert_eq!(part.shape.extents(), [8, 3]);
    assert_eq!(part.boundaries.0[1], [Boundary::Open; 2]);
    assert_eq!(part.boundaries.0[2], [Boundary::Mirror; 2]);
    assert_eq!(slabs.problem(0, &whole).unwrap().boundaries.0[1], [Boundary::Mirror, Boundary::Open]);
    assert_eq!(slabs.part(1, &values, 11, 8).unwrap().to_f64(), (6..30).map(f64::from).collect::<Vec<_>>());
    let [low, high] = <[Exchange; 2]>::try_from(slabs.exchanges(1)).unwrap();
    assert_eq!((low.neighbour, low.fields), (0, vec![Edge { field: 0, sent: 2..4, received: 0..2 }]));
    assert_eq!((high.neighbour, high.fields), (2, vec![Edge { field: 0, sent: 4..6, received: 6..8 }]));

    let ring = problem(program("2d5pt", 2), &[11, 3], Boundary::Periodic);
    let slabs = Slabs::new(&ring, 2, &[1, 1]).unwrap();
    assert_eq!(slabs.place(0).first, -2);
    let part = slabs.part(0, &values, 11, 10).unwrap();
    assert_eq!([0, 3, 6, 27].map(|i| part.get(i).unwrap()), [27.0, 30.0, 0.0, 21.0]);
    assert_eq!(slabs.pieces(0, 5..10, 11, 10), [(9..10, 0), (5..8, 7)]);
    let [low, high] = <[Exchange; 2]>::try_from(slabs.exchanges(0)).unwrap();
    assert_eq!([low.neighbour, high.neighbour], [1, 1]);
}

/// Planes that one rank's side keeps fixed are in no other rank's halo, where several stages may change them.
#[test]
fn fixed_planes_are_in_no_halo_where_there_are_several_stages() {
    let mut p = Definition::new("two", 1);
    p.field("u", Centring::CELL).field("v", Centring::CELL);
    p.step()
        .stage("double", |s| s.set("u", 2.0 * s.field("u").here()))
        .stage("far", |s| s.set("v", s.field("u").at([-3]) + s.field("u").at([3])));
    let program = p.build().unwrap();
    let fixed = problem(program.clone(), &[11], Boundary::Fixed);
    assert_eq!(Slabs::most(&fixed, 1), 1);
    assert_eq!(Slabs::most(&problem(program, &[11], Boundary::Mirror), 1), 3);
}

/// A sum over the nodes but the first three and the last.
fn summed() -> Program {
    let mut p = Definition::new("summed", 1);
    p.field("u", Centring::NODE).scalar("sum", None, "sum");
    let region = Region::from(Centring::NODE).without(2, 3, 1);
    p.step()
        .reduce("sum", Reduction::Sum, region, |s| s.field("u").here())
        .stage("move", |s| s.set("u", s.field("u").at([-2]) + s.field("u").at([1])));
    p.build().unwrap()
}

/// A reduction counts every value once: a rank's own, of which a halo has none, within the margins of the whole.
#[test]
fn ranks_reduce_their_own_values_and_share_the_leaves() {
    let whole = problem(summed(), &[1100], Boundary::Mirror);
    let slabs = Slabs::new(&whole, 2, &[1, 1, 2]).unwrap();
    assert_eq!(
        slabs.slabs.iter().map(|slab| slab.own.clone()).collect::<Vec<_>>(),
        [0..256, 256..512, 512..1100]
    );
    let mut next = 3;
    for rank in 0..3 {
        let slab = slabs.problem(rank, &whole).unwrap();
        let own = Boxes::of(&slab).unwrap().stages[0][0][2].clone();
        let first = slabs.slabs[rank].first();
        assert_eq!(own.start + first, next);
        next = own.end + first;
        let shares = slabs.shares(rank, &whole, &slab);
        let [Some(share), None] = &shares[..] else { panic!("{shares:?}") };
        assert_eq!((share.leaves, share.begin), ([1, 1, 5], slabs.begin(rank)));
        assert_eq!(share.begin, if rank == 0 { 0 } else { 256 }, "slabs begin at a leaf");
        assert_eq!(share.layers, [0..1, 1..2, 2..5]);
        // Three leaves that begin at an even one are a block of two and one more.
        assert_eq!(share.values(), [1, 1, 2]);
    }
    assert_eq!(next, 1100, "all 1101 nodes but the last");
}

#[test]
fn what_cannot_be_cut_is_refused_by_name() {
    let refused = |problem: &Problem, says: &str| {
        let error = Slabs::new(problem, 1, &[1, 1]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    let thin = problem(program("2ds25pt", 2), &[11, 20], Boundary::Mirror);
    refused(
        &thin,
        "devices for 11 planes, of which 1 steps read 6 beyond a device's own: 2 asked, the limit is 1 to 1",
    );
    let mut batch = problem(program("2d5pt", 2), &[11, 20], Boundary::Mirror);
    batch.repeat(3).unwrap();
    refused(&batch, "a batch of 3 members");
    refused(
        &problem(summed(), &[511], Boundary::Mirror),
        "a device's own, in whole leaves of 256 planes of its reductions' tree: 2 asked, the limit is 1 to 1",
    );
    let mut p = Definition::new("partly", 1);
    p.field("u", Centring::CELL).field("v", Centring::CELL).boundary_of("v", "x=periodic");
    p.step().stage("move", |s| s.set("u", s.field("v").at([1])));
    let mut partly = problem(p.build().unwrap(), &[20], Boundary::Mirror);
    refused(&partly, "only some of its fields are periodic along x");
    partly.sides.clear();
    assert!(Slabs::new(&partly, 1, &[1, 1]).is_ok());
    let mut p = Definition::new("placed", 1);
    p.field("u", Centring::CELL).temporary("t", Centring::CELL);
    p.step()
        .stage("place", |s| s.set("t", s.coord(0) * s.field("u").here()))
        .stage("move", |s| s.set("u", s.field("t").at([1])));
    let placed = p.build().unwrap();
    refused(
        &problem(placed.clone(), &[20], Boundary::Periodic),
        "stage place makes a temporary by its index along x",
    );
    assert!(Slabs::new(&problem(placed.clone(), &[20], Boundary::Clamp), 1, &[1, 1]).is_ok());
    let mut long = problem(placed, &[1 << 24], Boundary::Clamp);
    assert!(Slabs::new(&long, 1, &[1, 1]).is_ok());
    long.dtype = DType::F32;
    refused(&long, "planes on several devices where stage place knows its index: 16777216 asked");
}
