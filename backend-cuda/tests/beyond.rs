//! A domain beyond the memory of one device, on all that there are: windows of it have the reference's bits.

use crate::{common, line};

use std::sync::Arc;
use std::time::Instant;

use abide_core::catalogue;
use abide_core::{Array, Backend, DType, Options, Problem, Result, Shape};
use abide_cpu::CpuBackend;
use abide_cuda::{CudaBackend, device_count};
use common::present;
use line::slabs;

/// The side of the square domain: both buffers in f64 are 194 GB, and its cells more than 32 bits count.
const SIDE: usize = 110_000;
/// The side of a smaller one, with which machines of one device test the test.
const SMALL: usize = 1_500;
/// Windows are squares of this side.
const WINDOW: usize = 96;
/// Two exchanges and a rest.
const STEPS: u64 = 47;

/// Returns the first value of a cell, between 0 and 1 (Steele, Lea, Flood, OOPSLA'14: SplitMix64 of its number).
fn first(cell: usize) -> f64 {
    let mut z = (cell as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the first values of all cells of a square, by all threads of the machine.
fn start(side: usize) -> Vec<f64> {
    let mut values = vec![0.0; side * side];
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let each = values.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (thread, own) in values.chunks_mut(each).enumerate() {
            scope.spawn(move || {
                own.iter_mut().enumerate().for_each(|(at, value)| *value = first(thread * each + at));
            });
        }
    });
    values
}

fn problem(rows: usize, columns: usize) -> Result<Problem> {
    let program = catalogue::find("2d5pt")?.program(2)?;
    Problem::new(Arc::new(program), Shape::new(&[rows, columns])?, DType::F64)
}

/// Returns the values of a window after some steps: of the window and as many cells around it as the steps reach, by the
/// definition.
fn expected(side: usize, low: [usize; 2]) -> Result<Array> {
    let reach = STEPS as usize;
    let from = low.map(|at| at.saturating_sub(reach));
    let to = low.map(|at| (at + WINDOW + reach).min(side));
    let [rows, columns] = [0, 1].map(|axis| to[axis] - from[axis]);
    let cells = (0..rows * columns).map(|cell| {
        let (y, x) = (from[0] + cell / columns, from[1] + cell % columns);
        first(y * side + x)
    });
    let (problem, backend) = (problem(rows, columns)?, CpuBackend::reference());
    let plan = backend.plan(&problem, &Options::default())?;
    let mut session = backend.open(&problem, &plan, vec![Array::F64(cells.collect())])?;
    session.advance(STEPS)?;
    let [y, x] = [0, 1].map(|axis| low[axis] - from[axis]);
    session.read_window(0, [0, y, x], [1, y + WINDOW, x + WINDOW])
}

/// Runs a square domain on devices and compares windows at its corners, in its midst, and around every cut.
fn follow(side: usize, numbers: &[usize]) -> Result<()> {
    let begun = Instant::now();
    let (problem, ranked) = (problem(side, side)?, slabs(numbers)?);
    let plan = ranked.plan(&problem, &Options::default())?;
    let ranks = plan.ranks.as_ref().expect("several devices");
    let cuts: Vec<usize> = ranks.own.iter().skip(1).map(|own| own.start).collect();
    println!("{side}², {} devices, cuts {cuts:?}: {}", numbers.len(), plan.summary());
    let mut session = ranked.open(&problem, &plan, vec![Array::F64(start(side))])?;
    println!("begun after {:.1} s", begun.elapsed().as_secs_f64());
    let seconds = session.advance(STEPS)?;
    println!("{STEPS} steps: {:.1} GCells/s", (side * side) as f64 * STEPS as f64 / seconds / 1e9);
    let far = side - WINDOW;
    let mut places = vec![[0, 0], [0, far], [far, 0], [far, far], [side / 3, side / 2]];
    places.extend(cuts.iter().flat_map(|cut| [0, side / 2, far].map(|x| [cut - WINDOW / 2, x])));
    for &[y, x] in &places {
        let found = session.read_window(0, [0, y, x], [1, y + WINDOW, x + WINDOW])?;
        assert!(found.same_bits(&expected(side, [y, x])?), "the window at {y}, {x}");
    }
    println!(
        "{} windows have the reference's bits, after {:.1} s",
        places.len(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

#[test]
fn windows_of_slabs_have_the_references_bits() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    follow(SMALL, &[0, 0])
}

/// Needs two devices with 97 GB each for the domain, and 200 GB of the machine's memory.
#[test]
#[ignore = "needs two devices of 141 GB"]
fn windows_of_a_domain_beyond_one_device_have_the_references_bits() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    follow(SIDE, &(0..device_count()?).collect::<Vec<_>>())
}
