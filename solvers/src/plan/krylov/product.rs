//! The products that suit a matrix, and the forms that are worth an estimate.

use abide_core::device::Capability;
use abide_core::solver::plan::krylov::{CLUSTER, Configuration, Division, SLICE, Slabs, Space, UNDER_WAY};
use abide_core::solver::{Matrix, Method, SolveOptions};
use abide_core::sparse::RowLengths;
use abide_core::{DType, DeviceSpec};

use super::spread::Parts;
use super::{LONG, spread};

/// The most entries that padding may add, in per cent, for slices to be considered.
const PADDING: usize = 30;

/// Rows and entries of a merge tile's thread; odd, so that neighbouring threads use different banks.
const ITEMS: usize = 7;

/// The fewest threads of a block for GMRES, whose projections are a warp's each, however few the rows.
const THREADS_OF_GMRES: usize = 256;

/// The lengths of rows that a product meets, and the entries that padding adds to them, in per cent.
struct Lengths {
    all: RowLengths,
    padding: usize,
}

impl Lengths {
    fn of(parts: &Parts<'_>) -> Lengths {
        let all = RowLengths::of((0..parts.rows()).map(|row| parts.range(row).len()));
        let padding = padding(parts, all.entries);
        Lengths { all, padding }
    }
}

/// Returns the forms for a matrix: one block, clusters, all multiprocessors, each with the products that suit
/// its shares. On all multiprocessors there are also forms with the longest rows spread over them, if these
/// rows are long enough.
pub fn configurations(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions) -> Vec<Configuration> {
    let multiprocessors = device.multiprocessors.max(1);
    let clusters: &[usize] = if device.has(Capability::Clusters) { &[2, 4, 8, CLUSTER] } else { &[] };
    let spaces = std::iter::once((Space::Block, 1))
        .chain(clusters.iter().map(|&blocks| (Space::Cluster, blocks)))
        .chain(std::iter::once((Space::Grid, multiprocessors)));
    let rows = matrix.rows();
    let stored = if let Matrix::Stored(stored) = matrix { Some(stored) } else { None };
    let lengths = |spread| stored.and_then(|stored| Some(Lengths::of(&Parts::new(stored, spread).ok()?)));
    let whole = lengths(None);
    let mut configurations = Vec::new();
    for (space, blocks) in spaces {
        // Every block must have a unit of rows, and a replica must fit in shared memory.
        if blocks > rows.div_ceil(SLICE)
            || (space != Space::Grid && rows * matrix.dtype().bytes() > device.shared_bytes_for(1))
        {
            continue;
        }
        let mut add = |lengths: Option<&Lengths>, spread| {
            let divisions = shared_out(rows, matrix.nonzeros(), blocks, lengths).into_iter();
            configurations.extend(divisions.map(|(division, wanted)| Configuration {
                spread,
                ..form(matrix, device, options, (space, blocks), lengths, (division, wanted))
            }));
        };
        add(whole.as_ref(), None);
        if let (Space::Grid, Some(stored)) = (space, stored)
            && let Some(threshold) = spread::threshold(stored, blocks)
        {
            add(lengths(Some(threshold)).as_ref(), Some(threshold));
        }
    }
    configurations
}

/// Returns the form on so many slabs of devices, for the product that one device has.
pub(super) fn on_slabs(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    slabs: usize,
    division: Division,
) -> Configuration {
    let blocks = slabs * device.multiprocessors.max(1);
    let lengths = match matrix {
        Matrix::Stored(stored) => Parts::new(stored, None).ok().map(|parts| Lengths::of(&parts)),
        Matrix::Stencil(_) => None,
    };
    // The width follows from the matrix again.
    let division =
        if let Division::Sliced { .. } = division { Division::Sliced { width: None } } else { division };
    let share = matrix.rows().div_ceil(SLICE).div_ceil(blocks) * SLICE;
    let wanted = if let Division::Split { lanes } = division { share * lanes } else { share };
    form(matrix, device, options, (Space::Grid, blocks), lengths.as_ref(), (division, wanted))
}

/// Returns the form of blocks with a product that has work for so many threads of each.
fn form(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    (space, blocks): (Space, usize),
    lengths: Option<&Lengths>,
    (division, wanted): (Division, usize),
) -> Configuration {
    let longest = match division {
        Division::Sliced { .. } => lengths.map_or(0, |lengths| lengths.all.max),
        _ => 0,
    };
    let most = most_threads(longest, matrix.dtype(), options.method).min(device.threads_per_block);
    let threads = wanted.next_multiple_of(SLICE).max(128);
    let threads = if let Method::Gmres(_) = options.method {
        threads.next_power_of_two().max(THREADS_OF_GMRES)
    } else {
        threads
    };
    Configuration {
        space,
        blocks,
        threads: threads.min(most),
        division,
        registers: usize::MAX,
        run: usize::MAX,
        ahead: true,
        spread: None,
        slabs: Slabs::default(),
    }
}

/// Returns the most threads of a block whose slices have rows up to `longest` entries. In double precision wide
/// slices have many loads under way, and methods that wait less the terms of several sums besides: half the
/// threads have registers for both, which is worth more (measured on an H200).
fn most_threads(longest: usize, dtype: DType, method: Method) -> usize {
    let has_terms = matches!(method, Method::SingleReductionCg | Method::PipelinedCg(_));
    if has_terms && longest > UNDER_WAY && dtype == DType::F64 { 512 } else { 1024 }
}

/// Returns the products that suit the shares of `blocks` blocks, each with the number of threads for which it
/// has work.
fn shared_out(
    rows: usize,
    entries: usize,
    blocks: usize,
    lengths: Option<&Lengths>,
) -> Vec<(Division, usize)> {
    let share = rows.div_ceil(SLICE).div_ceil(blocks) * SLICE;
    let Some(lengths) = lengths else { return vec![(Division::Stencil, share)] };
    // Entries of spread rows are work for all threads, whatever the product.
    let spread = (entries - lengths.all.entries) / blocks;
    let threads = |division: &Division| match division {
        Division::Split { lanes } => share * lanes,
        // A merge has work for as many threads as there are groups of `items`.
        Division::Merged { items } => (lengths.all.entries / blocks + share) / items,
        Division::Sliced { .. } | Division::Stencil => share,
    };
    let divisions = divisions(&lengths.all, lengths.padding, share);
    divisions.into_iter().map(|division| (division, threads(&division).max(spread))).collect()
}

/// Returns the products for rows of these lengths, of which a block has `share`.
fn divisions(lengths: &RowLengths, padding: usize, share: usize) -> Vec<Division> {
    let (mean, max) = (lengths.mean().max(1.0), lengths.max as f64);
    let mut all = Vec::new();
    if padding <= PADDING {
        all.push(Division::Sliced { width: None });
    }
    if max > LONG * mean {
        all.push(Division::Merged { items: ITEMS });
    } else {
        // As many lanes as a row has entries, and a few times fewer if a block has rows for all its threads.
        let most = (mean.ceil() as usize).next_power_of_two().min(SLICE);
        let lanes = std::iter::successors(Some(most), |&lanes| (lanes > 1).then_some(lanes / 2));
        all.extend(
            lanes
                .take(3)
                .filter(|lanes| share * lanes <= 1 << 14 || *lanes == most)
                .map(|lanes| Division::Split { lanes }),
        );
    }
    if all.is_empty() {
        all.push(Division::Merged { items: ITEMS });
    }
    all
}

/// Returns the entries that padding the rows of every slice to one length adds, in per cent of all entries.
fn padding(parts: &Parts<'_>, entries: usize) -> usize {
    let longest = (0..parts.rows()).step_by(SLICE).map(|first| {
        let rows = first..parts.rows().min(first + SLICE);
        rows.map(|row| parts.range(row).len()).max().unwrap_or(0)
    });
    let padded: usize = longest.sum::<usize>() * SLICE;
    padded.saturating_sub(entries) * 100 / entries.max(1)
}
