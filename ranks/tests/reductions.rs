//! Programs with reductions on several ranks: the reduction tree does not depend on the ranks. So its value, and all
//! results that depend on it, have the bits of one device.

use crate::common;

use std::sync::Arc;
use std::time::Instant;

use abide_core::communicator::{CommError, Communicator, Tag};
use abide_core::program::{Centring, Definition, Reduction};
use abide_core::reduction::{join_box, join_rows, leaf};
use abide_core::slabs::{Share, Slabs, cut};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Options, Problem, Session, Shape};
use abide_cpu::CpuBackend;
use abide_ranks::threads::{DEADLINE, Threads, threads};
use common::{as_threads, assert_same_from, cpu, fields, open, open_from, problem, ranked, same_scalars};

/// Returns the start of a program of the catalogue.
fn start(problem: &Problem) -> Vec<Array> {
    let program = &problem.program;
    let field = |field| program.start(field).fill(&problem.shape_of(field).unwrap(), problem.dtype).unwrap();
    (0..program.fields().len()).map(field).collect()
}

/// Returns all fields and scalars after each of some numbers of steps.
fn run(session: &mut dyn Session, problem: &Problem, steps: &[u64]) -> Vec<(Vec<Array>, Vec<f64>)> {
    let after = steps.iter().map(|&steps| {
        session.advance(steps).unwrap();
        let fields = (0..problem.program.fields().len()).map(|field| session.read(field).unwrap());
        (fields.collect(), session.scalars().unwrap())
    });
    after.collect()
}

/// CloverLeaf's time step is the least over all cells, and steers every loop of the step. Its cycle has two steps that read
/// different distances, and its fields stand on cells, nodes and faces.
fn cloverleaf(name: &str, extents: &[usize], cuts: &[(&[usize], u32)]) {
    for dtype in [DType::F32, DType::F64] {
        let problem = problem(name, extents, dtype);
        let fields = start(&problem);
        let steps = [1, 2, 18, 3];
        let [mut one, mut first] = [cpu(), CpuBackend::reference()]
            .map(|backend| open_from(&backend, &problem, fields.clone(), &Options::default()));
        let expected = run(&mut *one, &problem, &steps);
        // The definition is slow: the first steps of both kinds are enough of it here.
        for (of_definition, expected) in run(&mut *first, &problem, &steps[..2]).iter().zip(&expected) {
            assert!(same_scalars(&of_definition.1, &expected.1), "{name} {dtype}");
            assert!(of_definition.0.iter().zip(&expected.0).all(|(one, other)| one.same_bits(other)));
        }
        for &(weights, depth) in cuts {
            let backend = ranked(weights).every(depth);
            let mut several = open_from(&backend, &problem, fields.clone(), &Options::default());
            let own = several.plan().ranks.as_ref().map(|ranks| ranks.own.clone());
            assert_eq!(own.as_ref().map_or(1, Vec::len), weights.len(), "{name}: {own:?}");
            for (number, (fields, scalars)) in run(&mut *several, &problem, &steps).iter().enumerate() {
                let what = format!("{name} {dtype}, {own:?} every {depth}, after {:?}", &steps[..=number]);
                assert!(same_scalars(scalars, &expected[number].1), "{what}: {scalars:?}");
                for (field, values) in fields.iter().enumerate() {
                    let name = &problem.program.fields()[field];
                    assert!(values.same_bits(&expected[number].0[field]), "{what}: {name}");
                }
            }
        }
    }
}

#[test]
fn cloverleaf_has_the_same_bits() {
    let cuts: [(&[usize], u32); 6] =
        [(&[1, 1], 1), (&[1, 1], 2), (&[1, 2, 1], 1), (&[1, 1, 1, 1], 1), (&[3, 1, 1, 2], 1), (&[2, 1], 3)];
    cloverleaf("cloverleaf", &[133, 9], &cuts);
}

#[test]
fn cloverleaf_3d_has_the_same_bits() {
    let cuts: [(&[usize], u32); 4] = [(&[1, 2], 2), (&[1, 1, 1], 1), (&[1, 1, 1, 1], 1), (&[3, 1, 1, 2], 1)];
    cloverleaf("cloverleaf-3d", &[131, 5, 3], &cuts);
}

/// A system of a step has as many iterations on any ranks, each with the bits of one device: the sea's level and the
/// temperature, with walls where a rank has them. Coarser grids are not cut.
#[test]
fn systems_of_steps_have_the_same_bits() {
    for (name, extents) in [("ocean-surface", &[45, 9][..]), ("heat-implicit", &[67, 5, 3])] {
        let problem = problem(name, extents, DType::F64);
        let mut fields = start(&problem);
        fields[0] = Array::from_fn(DType::F64, fields[0].len(), |i| (i as f64 * 0.37).sin());
        for weights in [&[1, 1][..], &[1, 2, 1]] {
            let ranked = ranked(weights).every(1);
            assert_same_from(&problem, fields.clone(), &ranked, &Options::default(), 3);
        }
        assert!(ranked(&[1, 1]).every(2).plan(&problem, &Options::default()).is_err(), "{name}");
    }
    let flow = problem("navier-stokes", &[45, 9], DType::F64);
    let refused = ranked(&[1, 1]).plan(&flow, &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("coarser grid") && refused.contains("one device"), "{refused}");
}

/// Every reduction over every region, with zeros of both signs and NaN among the values; staggered fields; walls.
#[test]
fn every_reduction_has_the_same_bits() {
    let mut reduced = 0;
    for case in abide_random::cases::cases().unwrap() {
        let mut problem = case.problem;
        (problem.record, problem.marks) = (None, None);
        if Slabs::check(&problem).is_err() || Slabs::most(&problem, 1) < 2 {
            continue;
        }
        reduced += usize::from(case.name.starts_with("reductions"));
        for weights in [&[1, 1][..], &[1, 2, 1, 1]] {
            let ranked = ranked(weights).every(1);
            assert_same_from(&problem, case.start.clone(), &ranked, &Options::default(), case.steps);
        }
    }
    assert!(reduced >= 2, "{reduced}");
}

/// A share's blocks, joined by any rank, are the tree over all leaves, wherever slabs are cut between them; and only in
/// the order of ranks.
#[test]
fn shares_finish_the_one_tree() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut differ = 0;
    for round in 0..300 {
        let axis = random.usize(0..3);
        let mut leaves = [1; 3];
        leaves[axis..].fill_with(|| random.usize(1..6));
        leaves[axis] = random.usize(1..70);
        let layer: usize = leaves[axis + 1..].iter().product();
        let all = |i: usize| (i as f64 * 0.731).sin() * 10f64.powi((i * 7 % 13) as i32 - 6);
        let values: Vec<f64> = (0..leaves[axis] * layer).map(all).collect();
        for reduction in [Reduction::Sum, Reduction::Min, Reduction::Max] {
            let expected = join_box(reduction, leaves, &mut values.clone());
            let ranks = random.usize(1..5);
            let weights: Vec<usize> = (0..ranks).map(|_| random.usize(1..9)).collect();
            // A rank may have no leaf.
            let layers = cut(leaves[axis], &weights, 0);
            let share = |rank| Share { rank, axis, begin: 0, leaves, layers: layers.clone() };
            let give = |rank: usize| {
                let own = &layers[rank];
                let mut values = values[own.start * layer..own.end * layer].to_vec();
                share(rank).join(reduction, &mut values)
            };
            let mut given: Vec<Array> = (0..ranks).map(|rank| Array::F64(give(rank))).collect();
            let lengths: Vec<usize> = given.iter().map(Array::len).collect();
            assert_eq!(share(0).values(), lengths);
            for rank in 0..ranks {
                let found: f64 = share(rank).finish(reduction, &given);
                assert_eq!(found.to_bits(), expected.to_bits(), "{round}: {leaves:?} {layers:?}");
            }
            // The same leaves in another order are another sum.
            if reduction == Reduction::Sum && ranks > 2 && lengths[1] == lengths[2] {
                given.swap(1, 2);
                differ +=
                    usize::from(share(0).finish::<f64>(reduction, &given).to_bits() != expected.to_bits());
            }
        }
    }
    assert!(differ > 5, "{differ}");
    // A leaf's extents are powers of two, so that the layers of a slab that begins at one are aligned.
    assert!((1..=3).all(|axes| leaf(axes).iter().all(|extent| extent.is_power_of_two())));
    let mut row = [1.0, 2.0, 4.0];
    join_rows(Reduction::Sum, 3, 1, &mut row);
    assert_eq!(row[0], 7.0);
}

/// A sum that steers what it is a sum of.
fn summed(extents: &[usize], dtype: DType) -> Problem {
    let mut p = Definition::new("summed", extents.len());
    p.field("u", Centring::CELL).scalar("sum", None, "sum of all cells");
    p.step()
        .reduce("sum", Reduction::Sum, Centring::CELL, |s| s.field("u").here())
        .stage("steer", |s| s.set("u", 0.9 * s.field("u").along(0, 1) + 1e-3 * s.param("sum")));
    let program = Arc::new(p.build().unwrap());
    let mut problem = Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap();
    problem.boundaries = Boundaries::all(Boundary::Periodic);
    problem
}

/// A communicator that confuses the ranks of what it gathers.
struct Confused(Threads);

impl Communicator for Confused {
    as_threads!(0);
    fn all_gather(&mut self, round: u64, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let mut all = self.0.all_gather(round, own)?;
        all.swap(1, 2);
        Ok(all)
    }
}

/// What the other tests rest on: leaves in a wrong order are another sum, which they would see.
#[test]
fn leaves_in_a_wrong_order_are_seen() {
    let confused = || {
        let ends = |ranks| {
            let ends = threads(ranks, DEADLINE).into_iter();
            ends.map(|end| Box::new(Confused(end)) as Box<dyn Communicator>).collect()
        };
        ranked(&[1, 1, 1, 1]).every(1).connected(ends)
    };
    for dtype in [DType::F32, DType::F64] {
        let problem = summed(&[64, 37], dtype);
        let sums = |backend: &dyn Backend| -> Vec<u64> {
            let mut session = open(backend, &problem, &Options::default());
            let sum = |_| {
                session.advance(1).unwrap();
                session.scalars().unwrap()[0].to_bits()
            };
            (0..20).map(sum).collect()
        };
        let expected = sums(&CpuBackend::reference());
        assert_eq!(sums(&ranked(&[1, 1, 1, 1]).every(1)), expected);
        assert_ne!(sums(&confused()), expected, "{dtype}");
    }
}

/// Slabs are cut between leaves, and a value that a user writes counts in the next sum.
#[test]
fn cuts_lie_between_leaves() {
    for (extents, own) in [
        (&[1100][..], vec![0..512, 512..768, 768..1100]),
        (&[53, 7], vec![0..16, 16..32, 32..53]),
        (&[13, 5, 3], vec![0..4, 4..8, 8..13]),
    ] {
        let problem = summed(extents, DType::F64);
        let mut one = open(&CpuBackend::reference(), &problem, &Options::default());
        let mut several = open(&ranked(&[1, 1, 1]).every(2), &problem, &Options::default());
        assert_eq!(several.plan().ranks.as_ref().unwrap().own, own);
        for session in [&mut one, &mut several] {
            session.advance(3).unwrap();
            let values = fields(&problem).remove(0);
            session.write(0, &values).unwrap();
            session.advance(4).unwrap();
        }
        assert!(same_scalars(&one.scalars().unwrap(), &several.scalars().unwrap()));
        assert!(one.read(0).unwrap().same_bits(&several.read(0).unwrap()));
        let ranks = several.take_ranks().unwrap();
        assert!(ranks.iter().all(|rank| rank.efficiency > 0.0 && rank.efficiency < 1.0));
    }
}
