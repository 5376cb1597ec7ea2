//! Tiles that hold a whole domain and exchange words with tags, without a GPU: as in `emulated.rs`, where the same tiles
//! exchange by counters.
//!
//! The two words of an access are stored and loaded with other lanes between them, as the device may do. One of the
//! orders of lanes begins with exchange buffers of zeros, the others after so many exchanges that tags begin anew.
#![cfg(target_os = "linux")]

use crate::{case, common};

use std::time::Instant;

use abide_core::DType::{F32, F64};
use abide_core::plan::resident::Exchange;
use abide_emulator::all;

use case::{Case, How, resident};
use common::{by_parts, part};

const fn tagged(
    depth: usize,
    warps: usize,
    planes: usize,
    planes_registers: usize,
    cells_per_thread: [usize; 2],
    multiprocessors: usize,
    steps: u64,
) -> How {
    let mut how = resident(depth, warps, planes, planes_registers, cells_per_thread, multiprocessors, steps);
    if let How::Resident { configuration, .. } = &mut how {
        configuration.exchange = Exchange::Tagged;
    }
    how
}

#[rustfmt::skip]
const CASES: [Case; 22] = [
    // Stars and boxes, every kind of side; planes in registers and in shared memory.
    Case { name: "star", program: "2d5pt", extents: &[61, 131], dtype: F64, boundaries: "fixed",
        architecture: 900, plan: tagged(3, 4, 6, 6, [1, 2], 9, 11) },
    Case { name: "box", program: "2d25pt", extents: &[59, 151], dtype: F32, boundaries: "y=mirror,x=clamp",
        architecture: 800, plan: tagged(2, 4, 8, 5, [1, 4], 8, 7) },
    Case { name: "reflect", program: "2d25pt", extents: &[59, 151], dtype: F32, boundaries: "reflect",
        architecture: 800, plan: tagged(2, 4, 8, 5, [1, 4], 8, 7) },
    Case { name: "star-deep", program: "2d5pt", extents: &[67, 200], dtype: F32, boundaries: "y=constant=0.5,x=constant=0.25",
        architecture: 900, plan: tagged(6, 4, 8, 3, [1, 4], 8, 19) },
    Case { name: "star-far", program: "2d13pt", extents: &[67, 141], dtype: F64, boundaries: "y=constant=0.5,x=mirror",
        architecture: 900, plan: tagged(1, 3, 8, 8, [1, 4], 8, 4) },
    Case { name: "mixed", program: "2d9pt", extents: &[59, 133], dtype: F64, boundaries: "y-=mirror,y+=fixed,x-=clamp,x+=constant=0.5",
        architecture: 900, plan: tagged(2, 4, 6, 2, [1, 2], 12, 7) },
    Case { name: "round", program: "2d9pt", extents: &[57, 134], dtype: F64, boundaries: "periodic",
        architecture: 900, plan: tagged(2, 4, 6, 6, [1, 2], 16, 7) },
    Case { name: "odd-round", program: "2ds9pt", extents: &[57, 133], dtype: F32, boundaries: "y=clamp,x=periodic",
        architecture: 800, plan: tagged(2, 4, 9, 9, [1, 4], 16, 5) },
    // Two tiles along an axis, each of which is on both sides of the other; tiles wider than the axis; one tile that
    // reads its own far end.
    Case { name: "two", program: "2d5pt", extents: &[43, 96], dtype: F64, boundaries: "periodic",
        architecture: 900, plan: tagged(2, 4, 6, 6, [1, 2], 4, 7) },
    Case { name: "wide", program: "2ds9pt", extents: &[67, 61], dtype: F32, boundaries: "periodic",
        architecture: 900, plan: tagged(2, 4, 7, 7, [1, 2], 10, 7) },
    Case { name: "own-end", program: "2d5pt", extents: &[24, 51], dtype: F64, boundaries: "periodic",
        architecture: 900, plan: tagged(3, 4, 6, 6, [1, 2], 1, 8) },
    // No exchange at all before the end, and only one.
    Case { name: "short", program: "2d5pt", extents: &[61, 131], dtype: F64, boundaries: "fixed",
        architecture: 900, plan: tagged(3, 4, 6, 6, [1, 2], 9, 2) },
    Case { name: "once", program: "2d5pt", extents: &[61, 131], dtype: F32, boundaries: "mirror",
        architecture: 900, plan: tagged(3, 4, 6, 6, [1, 2], 9, 5) },
    // Several stages and fields.
    Case { name: "maxwell", program: "fdtd-tm", extents: &[41, 70], dtype: F64, boundaries: "fixed",
        architecture: 800, plan: tagged(2, 4, 6, 4, [1, 2], 8, 7) },
    Case { name: "unequal", program: "unequal", extents: &[45, 129], dtype: F64, boundaries: "fixed",
        architecture: 900, plan: tagged(2, 4, 6, 6, [1, 2], 9, 5) },
    Case { name: "reaction", program: "gray-scott", extents: &[44, 132], dtype: F32, boundaries: "periodic",
        architecture: 700, plan: tagged(3, 4, 6, 6, [1, 4], 8, 7) },
    Case { name: "wave", program: "wave", extents: &[41, 83], dtype: F64, boundaries: "clamp",
        architecture: 900, plan: tagged(4, 4, 6, 5, [1, 2], 8, 11) },
    // Cubes, ...
    Case { name: "cube", program: "3d7pt", extents: &[13, 19, 61], dtype: F64, boundaries: "fixed",
        architecture: 900, plan: tagged(2, 4, 5, 4, [2, 2], 16, 7) },
    Case { name: "cube-box", program: "3d27pt", extents: &[11, 13, 33], dtype: F32, boundaries: "z=mirror,y=constant=0.5,x=periodic",
        architecture: 800, plan: tagged(2, 3, 5, 5, [3, 2], 27, 5) },
    Case { name: "cube-wave", program: "wave", extents: &[11, 17, 61], dtype: F32, boundaries: "z=periodic,y=clamp,x=mirror",
        architecture: 900, plan: tagged(1, 4, 5, 3, [2, 2], 16, 4) },
    // ... and lines, of several columns and of one, whose words travel alone.
    Case { name: "line", program: "1d3pt", extents: &[301], dtype: F64, boundaries: "mirror",
        architecture: 900, plan: tagged(5, 1, 1, 1, [1, 2], 8, 23) },
    Case { name: "line-narrow", program: "1d3pt", extents: &[79], dtype: F32, boundaries: "periodic",
        architecture: 900, plan: tagged(3, 1, 1, 1, [1, 1], 12, 17) },
];

by_parts!(kernels_have_the_references_bits_without_a_gpu);

fn kernels_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    all(&part(&CASES, is_other), |case| {
        let begun = Instant::now();
        let outcome = case.run(&compiler, &[]);
        println!("{}: {:.1} s", case.name, begun.elapsed().as_secs_f64());
        outcome.map_err(|why| format!("{}: {why}", case.name))
    });
}

/// Takes away from kernels what makes an exchange right; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let (wrong, stuck, other) = ("not the reference's", "wait for ever", "than the host counts");
    let defects = [
        // A reader takes what is there, ...
        ("star", "} while (!all);", "} while (false);", wrong),
        ("reaction", "} while (!all);", "} while (false);", wrong),
        // ... or trusts the second half of a value because of the first.
        (
            "star",
            "each<TAGGED_WORDS>([&](auto w) { all = all &&",
            "each<1>([&](auto w) { all = all &&",
            wrong,
        ),
        ("box", "each<TAGGED_WORDS>([&](auto w) { all = all &&", "each<1>([&](auto w) { all = all &&", wrong),
        // The second half of a value has a tag of its own, which is another.
        ("star", "Tagged(tag) << 32 | bits[w.value]", "Tagged(tag + w.value) << 32 | bits[w.value]", stuck),
        // With one half a tile writes over what others have not read yet, ...
        ("star", "int(tag & 1)", "0", stuck),
        // ... and with two if it goes on before all its warps have received.
        (
            "star",
            "[](int f) { return changes(f); });\n        barrier();",
            "[](int f) { return changes(f); });",
            wrong,
        ),
        // Numbers begin anew with each launch.
        (
            "star",
            "const unsigned tag = exchange_buffer.before + pass;",
            "const unsigned tag = 2 - (pass & 1);",
            other,
        ),
        // What comes from the tile before lies at that tile's end.
        ("round", "low ? column + MARGIN_X : column - MARGIN_X", "column", wrong),
        // Corners come from the tiles at corners, columns of lines beyond too.
        ("cube-box", "side_y > 0 ? along_y.behind + RING_Y : 0", "0", stuck),
        ("box", "side < 0 ? x + MARGIN_X : x - TILE_X + MARGIN_X", "x % MARGIN_X", stuck),
        // Tiles store in place where others may not have loaded yet.
        ("short", "if constexpr (EXCHANGES) await(0);", "", wrong),
        // Lanes send columns that others have collected, and receive for others.
        ("reaction", "__syncwarp();                // all lanes have written their columns", "", wrong),
        ("reaction", "__syncwarp();                // all lanes' columns have arrived", "", wrong),
    ];
    all(&defects, |&(name, words, instead, said)| {
        let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| format!("no case {name}"))?;
        match case.run(&compiler, &[(words, instead)]) {
            Err(why) if why.contains(said) => Ok(()),
            Err(why) => Err(format!("{name} without `{words}`: {why}")),
            Ok(()) => Err(format!("{name} has the reference's bits without: {words}")),
        }
    });
}
