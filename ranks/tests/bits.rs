//! Several ranks have the bits of one: every entry of the catalogue, every boundary, both types, uneven cuts, several
//! depths, odd extents.

mod common;

use abide_core::catalogue;
use abide_core::{Boundaries, Boundary, DType, Depth, Execution, Options, Tune};
use common::{assert_same, problem, ranked};

/// Extents for a number of axes: enough planes for four ranks of any entry, and no even number.
fn extents(dimensions: usize) -> &'static [usize] {
    match dimensions {
        1 => &[61],
        2 => &[61, 13],
        _ => &[61, 7, 9],
    }
}

#[test]
fn every_entry_has_the_same_bits() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for (number, boundary) in Boundary::each(0.375).into_iter().enumerate() {
                let dtype = [DType::F32, DType::F64][number % 2];
                let mut problem = problem(entry.name, extents(dimensions), dtype);
                problem.boundaries = Boundaries::all(boundary);
                // Weights and depths in turn; the plan takes fewer ranks where the stencil reads too far.
                let (weights, depth): (&[usize], u32) =
                    [(&[1, 1][..], 1), (&[1, 2, 1], 2), (&[3, 1, 1, 2], 1), (&[2, 1], 3)][number % 4];
                assert_same(&problem, &ranked(weights).every(depth), &Options::default(), 7);
            }
        }
    }
}

#[test]
fn every_schedule_of_a_slab_has_the_same_bits() {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let streaming = [2, 3, 5].map(|depth| {
        Options { execution: Execution::Streaming, depth: Depth::Steps(depth), ..own }
    });
    let persistent = Options { execution: Execution::Persistent, depth: Depth::Steps(2), ..own };
    for (name, extents) in [("2d9pt", &[97, 31][..]), ("gray-scott", &[45, 33]), ("3d7pt", &[41, 11, 13])] {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.25)] {
            for dtype in [DType::F32, DType::F64] {
                let mut problem = problem(name, extents, dtype);
                problem.boundaries = Boundaries::all(boundary);
                for options in streaming.iter().chain([&own, &persistent]) {
                    assert_same(&problem, &ranked(&[3, 2, 4]), options, 11);
                }
            }
        }
    }
}
