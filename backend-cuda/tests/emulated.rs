//! Kernels that run without a GPU: the generated text, compiled as C++, with every lane on its own.
//!
//! The crate `abide-emulator` compiles it. Each lane has a program counter of its own and runs until it meets others, in an
//! order drawn at random. Shared memory begins as no number, copies to it arrive late, at once or either way at random,
//! stores reach device memory in any order, and that memory has guards around its arrays. The result is
//! compared with the CPU's reference, bit for bit, over several blocks and windows. This finds wrong indices,
//! missing barriers of a warp, a block and the grid, missing releases and fences before what others read, and reads of what
//! was never written.
#![cfg(target_os = "linux")]

use crate::{case, common};

use std::time::Instant;

use abide_core::DType;
use abide_core::plan::persistent;
use abide_core::plan::persistent::Synchronisation;
use abide_core::plan::resident::{self, Exchange};
use abide_core::plan::streaming::warp;
use abide_emulator::all;

use case::{Case, How, resident};
use common::{by_parts, part};

const fn streaming(
    depth: usize,
    warps: usize,
    cells_per_thread: [usize; 2],
    lag: bool,
    ahead: usize,
    carried_shared: usize,
    blocks_per_multiprocessor: usize,
) -> How {
    let configuration = warp::Configuration {
        depth,
        warps,
        cells_per_thread,
        lag,
        ahead,
        carried_shared,
        blocks_per_multiprocessor,
        waves: 3,
    };
    How::Streaming { configuration, multiprocessors: 1, passes: 1 }
}

/// Returns the same with as many blocks as are resident, which stay for so many passes.
const fn chained(how: How, multiprocessors: usize, passes: u64) -> How {
    match how {
        How::Streaming { configuration, .. } => How::Streaming {
            configuration: warp::Configuration { waves: 1, ..configuration },
            multiprocessors,
            passes,
        },
        other => other,
    }
}

/// Returns a pass of a slab of so many own planes that gives others to its neighbours.
const fn giving(how: How, own: [usize; 2], given: [usize; 2]) -> How {
    match how {
        How::Streaming { configuration, .. } => How::Giving { configuration, own, given },
        other => other,
    }
}

#[rustfmt::skip]
const CASES: [Case; 77] = [
    // One warp: across a line of the plane.
    Case { name: "star", program: "2d5pt", extents: &[23, 131], dtype: DType::F64, boundaries: "y=periodic,x=constant=0.5",
        architecture: 900, plan: streaming(3, 1, [1, 2], false, 5, 0, 4) },
    // Two words per lane, windows that end where the last word of a row does, ...
    Case { name: "star-words", program: "2ds9pt", extents: &[23, 131], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(3, 1, [1, 4], true, 3, 0, 4) },
    Case { name: "box-words", program: "2d9pt", extents: &[19, 261], dtype: DType::F32, boundaries: "fixed",
        architecture: 900, plan: streaming(2, 1, [1, 8], false, 3, 0, 4) },
    // ... held cells that lie in the two outermost lanes at one side, ...
    Case { name: "cube-held", program: "3d13pt", extents: &[9, 17, 131], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: streaming(2, 4, [3, 2], true, 2, 0, 1) },
    // ... and rows so narrow that they follow each other without a gap.
    Case { name: "star-narrow", program: "2ds9pt", extents: &[23, 9], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    Case { name: "box", program: "2d9pt", extents: &[21, 131], dtype: DType::F32, boundaries: "y=constant=0.5,x=mirror",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    // Four warps that wait for each other level by level, ...
    Case { name: "cube", program: "3d7pt", extents: &[13, 21, 67], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(2, 4, [2, 2], false, 2, 0, 1) },
    Case { name: "cube-narrow", program: "3d7pt", extents: &[13, 21, 9], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(2, 4, [2, 2], false, 2, 0, 1) },
    // ... or once per plane; the carried values in shared memory.
    Case { name: "cube-lag", program: "3d7pt", extents: &[13, 21, 131], dtype: DType::F32, boundaries: "z=mirror,y=constant=0.5,x=periodic",
        architecture: 800, plan: streaming(2, 4, [2, 4], true, 2, 1, 1) },
    // Slabs whose passes give planes to the slabs beside them: between two, the last of a line, and of a ring.
    Case { name: "cube-gives", program: "3d7pt", extents: &[13, 21, 67], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: giving(streaming(2, 4, [2, 2], false, 2, 0, 1), [2, 11], [2, 2]) },
    Case { name: "cube-gives-below", program: "3d7pt", extents: &[13, 21, 131], dtype: DType::F32, boundaries: "z+=mirror,y=constant=0.5,x=periodic",
        architecture: 800, plan: giving(streaming(2, 4, [2, 4], true, 2, 1, 1), [2, 13], [2, 0]) },
    Case { name: "box-gives", program: "3d27pt", extents: &[9, 21, 67], dtype: DType::F64, boundaries: "z=constant=0,y=periodic,x=mirror",
        architecture: 800, plan: giving(streaming(2, 4, [2, 2], false, 3, 1, 1), [2, 7], [2, 2]) },
    Case { name: "cube-box", program: "3d27pt", extents: &[9, 21, 67], dtype: DType::F64, boundaries: "periodic",
        architecture: 900, plan: streaming(2, 4, [2, 2], false, 3, 1, 1) },
    // Two stages, each of which writes what the other reads.
    Case { name: "maxwell", program: "fdtd-tm", extents: &[19, 70], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    // Stages of the radii 0 and 2: the first of two windows ends among the cells that the far side holds.
    Case { name: "unequal", program: "unequal", extents: &[20, 129], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    // Ghost cells along each axis: of radius 2 and more, which show cells of several lanes, ...
    Case { name: "mirror-far", program: "2ds25pt", extents: &[29, 201], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    Case { name: "reflect-far", program: "2ds25pt", extents: &[29, 201], dtype: DType::F64, boundaries: "reflect",
        architecture: 800, plan: streaming(2, 1, [1, 4], false, 3, 0, 4) },
    Case { name: "mirror-lag", program: "2d13pt", extents: &[23, 263], dtype: DType::F32, boundaries: "mirror",
        architecture: 900, plan: streaming(3, 1, [1, 4], true, 3, 0, 4) },
    Case { name: "clamp-far", program: "2d17pt", extents: &[23, 131], dtype: DType::F64, boundaries: "clamp",
        architecture: 800, plan: streaming(2, 1, [1, 2], false, 3, 0, 4) },
    Case { name: "constant-box", program: "2d25pt", extents: &[19, 270], dtype: DType::F32, boundaries: "constant=0.5",
        architecture: 900, plan: streaming(2, 1, [1, 8], false, 3, 0, 4) },
    Case { name: "mixed-box", program: "2d25pt", extents: &[19, 139], dtype: DType::F64, boundaries: "y-=mirror,y+=clamp,x-=fixed,x+=mirror",
        architecture: 800, plan: streaming(2, 1, [1, 4], true, 3, 0, 4) },
    // ... in windows that are wider than the domain, ...
    Case { name: "mirror-within", program: "2d21pt", extents: &[31, 75], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: streaming(1, 1, [1, 4], false, 3, 0, 4) },
    Case { name: "cube-within", program: "3d27pt", extents: &[13, 11, 37], dtype: DType::F32, boundaries: "z=clamp,y=mirror,x=constant=0.25",
        architecture: 900, plan: streaming(2, 4, [3, 4], false, 2, 0, 1) },
    Case { name: "lean", program: "lean", extents: &[9, 10, 37], dtype: DType::F32, boundaries: "mirror",
        architecture: 800, plan: streaming(2, 4, [3, 4], true, 2, 0, 1) },
    Case { name: "lean-reflect", program: "lean", extents: &[9, 10, 37], dtype: DType::F32, boundaries: "reflect",
        architecture: 800, plan: streaming(2, 4, [3, 4], true, 2, 0, 1) },
    // ... and across rows and planes, of strips in step and a plane apart.
    Case { name: "cube-mirror", program: "3d13pt", extents: &[11, 29, 75], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: streaming(2, 4, [4, 2], false, 2, 0, 1) },
    Case { name: "cube-reflect", program: "3d13pt", extents: &[11, 29, 75], dtype: DType::F64, boundaries: "reflect",
        architecture: 800, plan: streaming(2, 4, [4, 2], false, 2, 0, 1) },
    Case { name: "cube-mirror-lag", program: "3d13pt", extents: &[12, 27, 133], dtype: DType::F32, boundaries: "mirror",
        architecture: 900, plan: streaming(2, 4, [4, 4], true, 2, 2, 1) },
    Case { name: "cube-reflect-lag", program: "3d13pt", extents: &[12, 27, 133], dtype: DType::F32, boundaries: "z-=reflect,z+=mirror,y=reflect,x-=clamp,x+=reflect",
        architecture: 900, plan: streaming(2, 4, [4, 4], true, 2, 2, 1) },
    Case { name: "cube-clamp", program: "3d17pt", extents: &[9, 21, 67], dtype: DType::F64, boundaries: "clamp",
        architecture: 800, plan: streaming(2, 4, [3, 2], false, 2, 0, 1) },
    Case { name: "cube-constant", program: "poisson", extents: &[9, 21, 131], dtype: DType::F32, boundaries: "z=constant=0.1,y=constant=0.2,x=constant=0.3",
        architecture: 900, plan: streaming(2, 4, [3, 4], true, 3, 0, 1) },
    // Words from the other side, and cells where words lie across the seam.
    Case { name: "cube-round", program: "3d7pt", extents: &[9, 21, 132], dtype: DType::F32, boundaries: "periodic",
        architecture: 900, plan: streaming(2, 4, [4, 4], false, 3, 0, 1) },
    Case { name: "cube-seam", program: "3d13pt", extents: &[9, 23, 131], dtype: DType::F64, boundaries: "periodic",
        architecture: 800, plan: streaming(1, 4, [4, 4], true, 2, 0, 1) },
    // Several stages that tap to one side each, and several fields.
    Case { name: "maxwell-mirror", program: "fdtd-tm", extents: &[19, 141], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: streaming(2, 1, [1, 4], true, 3, 0, 4) },
    Case { name: "maxwell-constant", program: "fdtd-tm", extents: &[19, 270], dtype: DType::F32, boundaries: "y=clamp,x=constant=0.5",
        architecture: 900, plan: streaming(2, 1, [1, 8], false, 3, 0, 4) },
    Case { name: "reaction-mirror", program: "gray-scott", extents: &[19, 141], dtype: DType::F32, boundaries: "mirror",
        architecture: 800, plan: streaming(3, 1, [1, 4], false, 2, 0, 4) },
    // Without asynchronous copies.
    Case { name: "reaction", program: "gray-scott", extents: &[19, 140], dtype: DType::F32, boundaries: "periodic",
        architecture: 700, plan: streaming(3, 1, [1, 4], false, 2, 0, 4) },
    // Planes in registers and in shared memory; blocks that wait for their neighbours.
    Case { name: "persistent-star", program: "2d13pt", extents: &[61, 201], dtype: DType::F64, boundaries: "y=fixed,x=periodic",
        architecture: 800, plan: How::Persistent {
            configuration: persistent::Configuration { threads: [1, 96], cells_per_thread: [1, 2], blocks_per_multiprocessor: 2, chunk: 2 },
            multiprocessors: 2, planes_registers: 4, steps: 5, synchronisation: Synchronisation::Neighbours } },
    // More tiles than blocks; blocks that wait for all, at a counter.
    Case { name: "persistent-cube", program: "3d7pt", extents: &[12, 17, 67], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: How::Persistent {
            configuration: persistent::Configuration { threads: [4, 16], cells_per_thread: [2, 2], blocks_per_multiprocessor: 4, chunk: 1 },
            multiprocessors: 2, planes_registers: 1, steps: 5, synchronisation: Synchronisation::Grid } },
    Case { name: "persistent-reflect", program: "3d7pt", extents: &[12, 17, 67], dtype: DType::F64, boundaries: "reflect",
        architecture: 800, plan: How::Persistent {
            configuration: persistent::Configuration { threads: [4, 16], cells_per_thread: [2, 2], blocks_per_multiprocessor: 4, chunk: 1 },
            multiprocessors: 2, planes_registers: 1, steps: 5, synchronisation: Synchronisation::Grid } },
    // Tiles that hold the whole domain: the sides of a block, of a warp and of a lane; tiles and words that are no
    // divisors; every kind of side.
    Case { name: "tiles-fixed", program: "2d5pt", extents: &[61, 131], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: resident(3, 4, 6, 6, [1, 2], 9, 11) },
    Case { name: "tiles-box", program: "2d25pt", extents: &[59, 151], dtype: DType::F32, boundaries: "y=mirror,x=clamp",
        architecture: 800, plan: resident(2, 4, 8, 5, [1, 4], 8, 7) },
    Case { name: "tiles-reflect", program: "2d25pt", extents: &[59, 151], dtype: DType::F32, boundaries: "reflect",
        architecture: 800, plan: resident(2, 4, 8, 5, [1, 4], 8, 7) },
    Case { name: "tiles-star", program: "2d13pt", extents: &[67, 141], dtype: DType::F64, boundaries: "y=constant=0.5,x=mirror",
        architecture: 900, plan: resident(1, 3, 8, 8, [1, 4], 8, 3) },
    Case { name: "tiles-periodic", program: "2d9pt", extents: &[57, 134], dtype: DType::F64, boundaries: "periodic",
        architecture: 900, plan: resident(2, 4, 6, 6, [1, 2], 16, 7) },
    Case { name: "tiles-odd-periodic", program: "2ds9pt", extents: &[57, 133], dtype: DType::F32, boundaries: "y=clamp,x=periodic",
        architecture: 800, plan: resident(2, 4, 9, 9, [1, 4], 16, 5) },
    // Tiles wider than the periodic axis that they divide.
    Case { name: "tiles-wide", program: "2ds9pt", extents: &[67, 61], dtype: DType::F32, boundaries: "periodic",
        architecture: 900, plan: resident(2, 4, 7, 7, [1, 2], 10, 7) },
    // One tile: warps that overlap, an axis that a tile holds from side to side, and one that reads its own far end.
    Case { name: "tile-overlaps", program: "2d5pt", extents: &[29, 60], dtype: DType::F64, boundaries: "y=constant=0.5,x=constant=0.25",
        architecture: 900, plan: resident(4, 4, 8, 8, [1, 2], 1, 9) },
    Case { name: "tile-mirror", program: "2ds9pt", extents: &[23, 61], dtype: DType::F32, boundaries: "mirror",
        architecture: 900, plan: resident(1, 4, 6, 3, [1, 2], 1, 5) },
    Case { name: "tile-reflect", program: "2ds9pt", extents: &[23, 61], dtype: DType::F32, boundaries: "reflect",
        architecture: 900, plan: resident(1, 4, 6, 3, [1, 2], 1, 5) },
    Case { name: "tile-whole", program: "2d9pt", extents: &[24, 64], dtype: DType::F32, boundaries: "periodic",
        architecture: 900, plan: resident(1, 4, 6, 6, [1, 2], 1, 5) },
    Case { name: "tile-round", program: "2d5pt", extents: &[24, 51], dtype: DType::F64, boundaries: "periodic",
        architecture: 900, plan: resident(3, 4, 6, 6, [1, 2], 1, 8) },
    // Fewer steps than lie between exchanges: tiles store where their neighbours load.
    Case { name: "tiles-short", program: "2d5pt", extents: &[61, 131], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: resident(3, 4, 6, 6, [1, 2], 9, 2) },
    // One copy of the lines that warps read of each other.
    Case { name: "tile-one-half", program: "2ds9pt", extents: &[24, 61], dtype: DType::F64, boundaries: "clamp",
        architecture: 900, plan: How::Resident {
            configuration: resident::Configuration { depth: 1, warps: 4, planes: 6, planes_registers: 3, cells_per_thread: [1, 2], blocks_per_multiprocessor: 1, exchange: Exchange::Counted },
            multiprocessors: 1, steps: 5, halves: 1 } },
    // Several stages and fields.
    Case { name: "tiles-maxwell", program: "fdtd-tm", extents: &[41, 70], dtype: DType::F64, boundaries: "fixed",
        architecture: 800, plan: resident(2, 4, 6, 4, [1, 2], 8, 7) },
    Case { name: "tiles-unequal", program: "unequal", extents: &[45, 129], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: resident(2, 4, 6, 6, [1, 2], 9, 5) },
    Case { name: "tiles-reaction", program: "gray-scott", extents: &[44, 132], dtype: DType::F32, boundaries: "periodic",
        architecture: 700, plan: resident(3, 4, 6, 6, [1, 4], 8, 7) },
    // Cubes, whose warps stand one above another, and lines.
    Case { name: "tiles-cube", program: "3d7pt", extents: &[13, 19, 61], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: resident(2, 4, 5, 4, [2, 2], 16, 7) },
    Case { name: "tiles-cube-box", program: "3d27pt", extents: &[11, 13, 33], dtype: DType::F32, boundaries: "z=mirror,y=constant=0.5,x=periodic",
        architecture: 800, plan: resident(2, 3, 5, 5, [3, 2], 27, 5) },
    Case { name: "tiles-cube-reflect", program: "3d27pt", extents: &[11, 13, 33], dtype: DType::F32, boundaries: "reflect",
        architecture: 800, plan: resident(2, 3, 5, 5, [3, 2], 27, 5) },
    Case { name: "tile-cube", program: "3d13pt", extents: &[5, 11, 32], dtype: DType::F64, boundaries: "z=periodic,y=clamp,x=constant=0.5",
        architecture: 900, plan: resident(1, 4, 5, 3, [3, 2], 1, 4) },
    // … with more warps than rows, so that several have the first; and with fewer rows of a warp than taps reach.
    Case { name: "tiles-cube-low", program: "advection-diffusion", extents: &[19, 2, 29], dtype: DType::F32,
        boundaries: "z-=constant=0.3,z+=fixed,y-=fixed,y+=clamp,x=fixed", architecture: 900, plan: resident(2, 3, 13, 13, [1, 1], 8, 5) },
    Case { name: "tiles-cube-lapped", program: "3d7pt", extents: &[14, 7, 29], dtype: DType::F64,
        boundaries: "z=fixed,y-=mirror,y+=constant=0.3,x-=clamp,x+=fixed", architecture: 900, plan: resident(1, 9, 6, 6, [1, 1], 40, 4) },
    Case { name: "tiles-cube-flat", program: "3d13pt", extents: &[15, 8, 15], dtype: DType::F32, boundaries: "z=fixed,y=mirror,x=fixed",
        architecture: 900, plan: resident(1, 8, 6, 6, [1, 1], 40, 3) },
    Case { name: "tiles-cube-round", program: "3d13pt", extents: &[15, 8, 15], dtype: DType::F32, boundaries: "z=fixed,y=periodic,x=fixed",
        architecture: 800, plan: resident(1, 8, 6, 6, [1, 1], 40, 3) },
    // Blocks stay from pass to pass: shares of windows cut by themselves, windows all round, two words a lane, ...
    Case { name: "star-chained", program: "2d5pt", extents: &[67, 131], dtype: DType::F64, boundaries: "y=periodic,x=constant=0.5",
        architecture: 900, plan: chained(streaming(3, 1, [1, 2], false, 5, 0, 4), 6, 3) },
    Case { name: "box-chained", program: "2d9pt", extents: &[61, 261], dtype: DType::F32, boundaries: "y=mirror,x=periodic",
        architecture: 800, plan: chained(streaming(2, 1, [1, 4], false, 3, 0, 4), 8, 4) },
    Case { name: "maxwell-chained", program: "fdtd-tm", extents: &[59, 70], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: chained(streaming(2, 1, [1, 4], false, 3, 0, 4), 3, 3) },
    // ... windows laid end to end, strips in step and a plane apart.
    Case { name: "cube-chained", program: "3d7pt", extents: &[13, 21, 67], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: chained(streaming(2, 4, [2, 2], false, 2, 0, 1), 7, 3) },
    Case { name: "cube-lag-chained", program: "3d7pt", extents: &[11, 21, 131], dtype: DType::F32, boundaries: "periodic",
        architecture: 800, plan: chained(streaming(2, 4, [2, 4], true, 2, 1, 1), 5, 2) },
    Case { name: "wide-chained", program: "3d13pt", extents: &[19, 17, 131], dtype: DType::F64, boundaries: "z=periodic,y=clamp,x=mirror",
        architecture: 900, plan: chained(streaming(2, 4, [3, 2], true, 2, 0, 1), 9, 3) },
    Case { name: "tiles-line", program: "1d3pt", extents: &[301], dtype: DType::F64, boundaries: "mirror",
        architecture: 900, plan: resident(5, 1, 1, 1, [1, 2], 8, 23) },
    // Parameters that vary from stage to stage: in passes, in step or a plane apart, ...
    Case { name: "varying", program: "swinging", extents: &[23, 67], dtype: DType::F64, boundaries: "mirror",
        architecture: 900, plan: streaming(2, 1, [1, 2], false, 3, 0, 4) },
    Case { name: "varying-lag", program: "swinging", extents: &[9, 17, 67], dtype: DType::F32, boundaries: "periodic",
        architecture: 800, plan: streaming(2, 4, [2, 4], true, 2, 1, 1) },
    // ... in passes of one launch, ...
    Case { name: "varying-chained", program: "swinging", extents: &[13, 21, 67], dtype: DType::F64, boundaries: "fixed",
        architecture: 900, plan: chained(streaming(2, 4, [2, 2], false, 2, 0, 1), 7, 3) },
    // ... and in steps of one launch.
    Case { name: "varying-tiles", program: "swinging", extents: &[61, 131], dtype: DType::F64, boundaries: "clamp",
        architecture: 900, plan: resident(3, 4, 6, 6, [1, 2], 9, 11) },
    Case { name: "varying-persistent", program: "swinging", extents: &[12, 17, 67], dtype: DType::F64, boundaries: "mirror",
        architecture: 800, plan: How::Persistent {
            configuration: persistent::Configuration { threads: [4, 16], cells_per_thread: [2, 2], blocks_per_multiprocessor: 4, chunk: 1 },
            multiprocessors: 2, planes_registers: 1, steps: 5, synchronisation: Synchronisation::Grid } },
];

by_parts!(kernels_have_the_references_bits_without_a_gpu);

fn kernels_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let only = std::env::var("ABIDE_CASE").unwrap_or_default();
    let cases: Vec<&Case> =
        part(&CASES, is_other).into_iter().filter(|case| case.name.contains(&only)).collect();
    all(&cases, |&case| {
        let begun = Instant::now();
        let outcome = case.run(&compiler, &[]);
        println!("{}: {:.1} s", case.name, begun.elapsed().as_secs_f64());
        outcome.map_err(|why| format!("{}: {why}", case.name))
    });
}

/// Takes away from kernels what lanes must wait for and what windows must see; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        // Lanes read rows that other lanes of their warp have copied.
        ("cube-narrow", "those of the other warps.\n            __syncwarp();", "those of the other warps."),
        // Warps read rows of other warps: those they have copied, and those they publish at each level, ...
        ("cube", "if constexpr (SYNCED) barrier();", ""),
        // ... or publish by turns in two halves, where stages lag.
        ("cube-lag", "turn ^= 1;", ""),
        // Held cells lie in two lanes, each of which has its own.
        (
            "cube-held",
            "HIGH_X == FIXED && beside(X_HIGH, LANES_HIGH)",
            "HIGH_X == FIXED && beside(X_HIGH, 0)",
        ),
        // Windows next to the last may reach held cells where stages differ in radius.
        ("unequal", "STAGES == 1 || (CLEAR_X && CLEAR_Y)", "true"),
        // Ghost cells show others, or hold a value: columns on either side, in more lanes than one, ...
        (
            "mirror-lag",
            "LOW_X == CONSTANT ? given(LOW_VALUE_X) : row[RX + cell.value]",
            "row[RX + ghost.value]",
        ),
        (
            "constant-box",
            "HIGH_X == CONSTANT ? given(HIGH_VALUE_X) : row[RX + cell.value]",
            "row[RX + ghost.value]",
        ),
        ("mirror-far", "each<(REACH + OWN - 1) / OWN>", "each<1>"),
        ("mirror-far", "(REACH > LAST ? (REACH - LAST + OWN - 1) / OWN : 0)", "0"),
        // ... rows, ...
        ("cube-mirror", "if constexpr (LOW_Y != CONSTANT) show(ghost, row);", ""),
        ("cube-constant", "fill(ghost, given(HIGH_VALUE_Y));", ";"),
        // ... and planes, before a value across: the first once all that they show are there, the last kept.
        ("cube-constant", "if constexpr (EDGE == ALL) fill_plane(p, [&](real value) { side = value; });", ""),
        ("cube-mirror", "plane < 0 ? below(LOW_S, plane, 0) : plane", "0"),
        ("clamp-far", "p == SHOWN - 1 ? -S::BACK : SHOWN - 1", "SHOWN - 1"),
        ("cube-mirror-lag", "made[f][r][c] = kept.high[LEVEL][k][f][r][c];", ""),
        // Where stages tap to one side, ghost cells show rows and columns that no tap reaches.
        ("lean", "shown(HIGH_Y, S::high_y(F)) - LAST_ROWS", "0"),
        ("lean", "!EDGE ? 0 :", "true ? 0 :"),
        // Ghost rows among a strip's own have columns only once they show something.
        ("cube-within", "EDGE == NONE || TILES_Y > 1 || LAST_ROWS == OWN_Y", "true"),
        // Words from the other side lie within a row.
        ("cube-seam", "column + WORD <= (WRAPS_X ? EXTENT_X : END_X)", "true"),
        // A block's flag stands for all its warps; blocks read their halo from others.
        ("persistent-star", "__syncthreads();\n    if constexpr (BLOCKS == 1)", "if constexpr (BLOCKS == 1)"),
        ("persistent-star", "while (load_acquire(flags + other * 32) < done) {}", "{}"),
        ("persistent-cube", "while (load_acquire(flags) < done * unsigned(BLOCKS)) {}", ""),
        // A flag is stored, and a counter added to, behind what the block has stored.
        (
            "persistent-star",
            "store_release(flags + blockIdx.x * 32, done)",
            "atomicAdd(flags + blockIdx.x * 32, 1u)",
        ),
        ("persistent-cube", "__threadfence();\n        atomicAdd(flags, 1u);", "atomicAdd(flags, 1u);"),
        (
            "star-chained",
            "store_release(ended + blockIdx.x * 32, pass + 1)",
            "ended[blockIdx.x * 32] = pass + 1",
        ),
        (
            "cube-chained",
            "store_release(ended + blockIdx.x * 32, pass + 1)",
            "ended[blockIdx.x * 32] = pass + 1",
        ),
        ("tiles-fixed", "if (lane == 0) add_release(", "if (lane == 0) atomicAdd("),
        ("tiles-cube", "if (lane == 0) add_release(", "if (lane == 0) atomicAdd("),
        ("tiles-fixed", "__syncwarp();\n        if (lane == 0) add_release(", "if (lane == 0) add_release("),
        // Neighbours get all planes that they read, and each slab stores its own alone.
        ("cube-gives", "q >= OWN_LAST - GIVEN_HIGH", "q > OWN_LAST - GIVEN_HIGH"),
        ("cube-gives-below", "q < OWN_FIRST + GIVEN_LOW", "q <= OWN_FIRST + GIVEN_LOW"),
        ("box-gives", "uniform(Offset(OWN_FIRST + low))", "uniform(Offset(low))"),
        // Blocks that stay from pass to pass wait for the blocks around: at all, in the planes before and behind, in the
        // windows beside, over a periodic side. They publish the end of a pass no sooner than they reach it.
        ("star-chained", "if (pass > 0) await_around(ended, pass);", ""),
        ("cube-chained", "if (pass > 0) await_around(ended, pass);", ""),
        ("cube-chained", "while (!__all_sync(~0u, load_acquire(count) >= passes)) {}", ""),
        (
            "box-chained",
            "constexpr int AROUND_Y = (TILE_Y - 1) / USE_Y + 1, AROUND_X = (TILE_X - 1) / USE_X + 1;",
            "constexpr int AROUND_Y = 0, AROUND_X = 0;",
        ),
        (
            "star-chained",
            "int round = LOW_S == PERIODIC ? -1 : 0; round <= (LOW_S == PERIODIC ? 1 : 0)",
            "int round = 0; round <= 0",
        ),
        ("star-chained", "int block = (from < 0 ? 0 : from)", "int block = 1 + to"),
        (
            "cube-chained",
            "store_release(ended + blockIdx.x * 32, pass + 1)",
            "store_release(ended + blockIdx.x * 32, pass + 2)",
        ),
        // Blocks that hold the whole domain wait for what they read of others, and before they store for those that
        // have not loaded yet; warps wait for each other's lines, and until all have read what is replaced.
        ("tiles-fixed", "while (load_acquire(counters + other * 32) < (pass + 1) * WARPS) {}", "{}"),
        ("tiles-short", "if constexpr (EXCHANGES) await(0);", ""),
        (
            "tiles-fixed",
            "HALF - half[S::writes(o.value)]; });\n            barrier();",
            "HALF - half[S::writes(o.value)]; });",
        ),
        ("tile-one-half", "barrier();               // all have read the lines that are now replaced", ""),
        (
            "tiles-fixed",
            "[](int f) { return changes(f); });\n        barrier();",
            "[](int f) { return changes(f); });",
        ),
        // Lanes exchange columns of one field after the other.
        (
            "tiles-reaction",
            "__syncwarp();                    // all lanes are done with the columns before",
            "",
        ),
        ("tiles-reaction", "__syncwarp();                    // all lanes have written their columns", ""),
        (
            "tiles-reaction",
            "__syncwarp();                    // all lanes have taken theirs of the field before",
            "",
        ),
        ("tiles-reaction", "__syncwarp();        // all lanes' columns have arrived", ""),
        // Warps that overlap find the lines beside theirs a line nearer.
        ("tile-overlaps", "return first - skip_low - K;", "return first - K;"),
        // Rows beyond the domain are beside more warps than the first and the last.
        ("tiles-cube-lapped", "tile_y == 0 && first_y + Y < 0", "tile_y == 0 && warp == 0"),
        ("tiles-cube-flat", "tile_y == 0 && first_y + Y < 0", "tile_y == 0 && warp == 0"),
        ("tiles-cube-low", "first_y + Y >= TILE_Y", "warp == WARPS - 1"),
        // Of two lanes at a side that is no multiple of a lane's columns both see cells beyond it.
        ("tile-mirror", "(BACK == 0 || INSIDE < RX)", "BACK == 0"),
    ];
    all(&defects, |&(name, words, instead)| {
        let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| format!("no case {name}"))?;
        match case.run(&compiler, &[(words, instead)]) {
            Err(why) if why.contains("not the reference's") => Ok(()),
            Err(why) => Err(format!("{name}: {why}")),
            Ok(()) => Err(format!("{name} has the reference's bits without: {words}")),
        }
    });
}
