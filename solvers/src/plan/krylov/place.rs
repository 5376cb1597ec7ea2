//! The places of vectors and matrix: the parts of them that stay in registers and shared memory.

use std::ops::Range;

use abide_core::solver::plan::krylov::{
    Configuration, Division, Home, Krylov, REDUCED, RecomputedHalo, Regions, SLICE, Share, Space, UNDER_WAY,
    Vector, applied, entry_bytes, rows_of,
};
use abide_core::solver::{Matrix, Method, Preconditioning, SolveCache, SolveOptions};
use abide_core::{DeviceSpec, Error, Result};

use super::shares::RowPartition;
use super::spread::Parts;
use super::{UNROLLED_ROWS, basis, estimate, reach, shares, sums, vectors};

/// Registers of a thread that the loops themselves need; what is left may hold vectors.
const REGISTERS_OF_LOOPS: usize = 48;

/// Registers that the loops of a product by slices need besides those of the entries under way. Without them
/// fewer loads are under way, which costs more than a vector in registers saves (measured on an H200: rows of
/// 7 and 27 entries).
const REGISTERS_OF_SLICES: usize = 23;

/// The most numbers derived from the sums, in f64.
const DERIVED: usize = 4;

/// Shared memory, handed out in bytes one part after the other.
struct SharedAllocator {
    used: usize,
    limit: usize,
}

impl SharedAllocator {
    /// Returns the first byte of a part, if there is room for the part.
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let (at, end) = (self.used, self.used.checked_add(bytes.next_multiple_of(16))?);
        (end <= self.limit).then(|| {
            self.used = end;
            at
        })
    }

    fn left(&self) -> usize {
        self.limit - self.used
    }
}

/// Returns whether vectors stay on the chip.
pub fn keeps_vectors(cache: SolveCache) -> bool {
    matches!(cache, SolveCache::Auto | SolveCache::Vectors | SolveCache::Mixed)
}

/// Hands out registers and shared memory, to vectors first and then to the matrix, as the policy says. With
/// many products per iteration the matrix goes first. Where blocks remake directions, theirs must have room in shared memory
/// for all rows that they read.
pub fn place(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    configuration: &Configuration,
    cut: &RowPartition<'_>,
    remakes: bool,
) -> Result<Krylov> {
    let Configuration { space, blocks, threads, registers, run, .. } = *configuration;
    let RowPartition { unit, width, column_bytes, ref parts, .. } = *cut;
    let mut shares = cut.shares.clone();
    let (applied, real) = (applied(options), matrix.dtype().bytes());
    let division = if let Division::Sliced { .. } = configuration.division {
        Division::Sliced { width }
    } else {
        configuration.division
    };
    let most_rows = shares.iter().map(|share| share.rows).max().unwrap_or(0);
    let longest_reach = shares.iter().map(|share| share.reach).max().unwrap_or(0);
    let warps = threads / SLICE;
    let together = vectors::sums(options.method, applied);
    let entries = shares.iter().map(|share| share.entries).max().unwrap_or(0);
    let entry = entry_bytes(matrix.dtype(), column_bytes);
    let streams = entries * entry > device.shared_bytes_for(1);
    let most = run.min(sums::most_of_a_run(device.registers_for(threads), real, together, streams));
    let sums = sums::lay_out(matrix.rows(), &shares, unit, space, [warps, most]);
    let rows_per_thread = most_rows.div_ceil(sums.run * SLICE).div_ceil(warps) * sums.run;
    let turns = match (options.method, applied) {
        (Method::PipelinedCg(_), _) | (_, Preconditioning::Chebyshev { .. }) => 2,
        _ => 1,
    };
    let mut room = SharedAllocator { used: 0, limit: device.shared_bytes_for(1) };
    let mut regions = Regions::default();
    let fit = |at: Option<usize>| {
        at.ok_or_else(|| {
            let change = "take more blocks, or another product";
            Error::limit(
                "shared memory of a persistent solver's block",
                "more",
                device.shared_bytes_for(1),
                change,
            )
        })
    };
    // Blocks of a cluster write the sums of two reductions by turns.
    let sets = if space == Space::Cluster { 2 } else { 1 };
    regions.scratch = fit(room.take(sets * REDUCED * sums.runs * real))?;
    regions.totals = fit(room.take(REDUCED * real))?;
    regions.derived = fit(room.take(DERIVED * 8))?;
    regions.lost = fit(room.take(4))?;
    if space != Space::Grid {
        regions.replica = fit(room.take(turns * matrix.rows() * real))?;
    }
    let restart = basis::restart(options.method, matrix.rows());
    if restart > 0 {
        let needs = basis::Needs::new(restart, &sums, space);
        regions.triangle = fit(room.take(needs.triangle * real))?;
        regions.parts = fit(room.take(needs.parts * real))?;
        regions.projected = fit(room.take(needs.projected * real))?;
    }
    if let Division::Merged { items } = division {
        regions.tile = fit(room.take(threads * items * real))?;
        regions.carries = fit(room.take(warps * real))?;
        regions.closed = fit(room.take(warps * 4))?;
    }
    let spread_rows = parts.as_ref().map_or_else(Vec::new, |parts| parts.spread.clone());
    if !spread_rows.is_empty() {
        regions.pieces = fit(room.take(spread_rows.len().max(warps) * real))?;
        regions.piece_offsets = fit(room.take(4 * (spread_rows.len() + 1)))?;
    }
    let keeps_matrix = matches!(options.cache, SolveCache::Auto | SolveCache::Matrix | SolveCache::Mixed);
    let keeps_vectors = keeps_vectors(options.cache);
    let offsets = match division {
        Division::Sliced { width: None } => most_rows.div_ceil(SLICE) + 1,
        Division::Split { .. } | Division::Merged { .. } => most_rows + 1,
        Division::Sliced { width: Some(_) } | Division::Stencil => 0,
    };
    let mut offsets_kept = false;
    if keeps_matrix
        && offsets > 0
        && let Some(at) = room.take(4 * offsets)
    {
        (regions.offsets, offsets_kept) = (at, true);
    }
    let matrix_first =
        options.cache == SolveCache::Auto && options.method.products() * (1 + applied.products()) > 2;
    let stored = parts.as_ref().filter(|_| keeps_matrix);
    if let (true, Some(parts)) = (matrix_first, stored) {
        keep_matrix(parts, division, column_bytes, &mut shares, &mut room, &mut regions);
    }
    let mut words = register_words(device, [threads, rows_per_thread, real], division);
    let mut vectors: Vec<(Vector, Home)> = Vec::new();
    for vector in vectors::of(options.method, applied) {
        let taken = vectors.iter().filter(|(_, home)| *home == Home::Registers).count();
        let own_words = rows_per_thread * real.div_ceil(4);
        // The exchanged vector is best kept in shared memory, where the block's other threads read it.
        let is_near = space == Space::Grid && vectors::exchanged(options.method) == Some(vector);
        let is_private = !is_near && !vectors::is_shared_within(vector, division, applied);
        let home = if remakes && is_near {
            regions.vectors.push(fit(room.take(longest_reach * real))?);
            Home::Shared
        } else if !keeps_vectors || vectors::is_seldom(options.method, vector) {
            Home::Device
        } else if is_private && taken < registers && own_words <= words {
            words -= own_words;
            Home::Registers
        } else if let Some(at) = room.take(most_rows * real) {
            regions.vectors.push(at);
            Home::Shared
        } else {
            Home::Device
        };
        if home != Home::Shared {
            regions.vectors.push(0);
        }
        vectors.push((vector, home));
    }
    if let (false, Some(parts)) = (matrix_first, stored) {
        keep_matrix(parts, division, column_bytes, &mut shares, &mut room, &mut regions);
    }
    regions.total = room.used;
    if remakes {
        reach::find_seams(&mut shares);
    }
    let streamed: usize = shares.iter().map(Share::streamed).sum();
    let evict_first = streamed * entry > configuration.slabs.count * device.l2_bytes;
    let ahead =
        if evict_first && configuration.ahead { estimate::ahead(device, configuration, entry) } else { 0 };
    let (given, beyond) = cut.read.clone();
    let is_few = |(rows, own): (&[Range<usize>; 2], Range<usize>)| rows[0].len() + rows[1].len() <= own.len();
    let recomputed = if remakes {
        RecomputedHalo::Blocks
    } else if reach::may_remake(options, &spread_rows)
        && configuration.slabs.count > 1
        && beyond.iter().zip(rows_of(&shares, configuration.slabs.count)).all(is_few)
    {
        RecomputedHalo::Slabs
    } else {
        RecomputedHalo::Nothing
    };
    let mut krylov = Krylov {
        space,
        blocks,
        threads,
        rows_per_thread,
        division,
        column_bytes,
        vectors,
        shares,
        spread: configuration.spread,
        spread_rows,
        sums,
        turns,
        recomputed,
        ahead,
        restart,
        offsets_kept,
        evict_first,
        regions,
        barriers: vectors::barriers(options.method, applied)
            - usize::from(recomputed == RecomputedHalo::Blocks),
        seconds: 0.0,
        registers,
        run,
        slabs: configuration.slabs,
        given,
        beyond,
    };
    krylov.seconds = estimate::seconds(matrix, device, options, &krylov);
    Ok(krylov)
}

/// Returns the 32-bit registers of a thread that may hold vectors.
fn register_words(
    device: &DeviceSpec,
    [threads, rows_per_thread, real]: [usize; 3],
    division: Division,
) -> usize {
    if rows_per_thread > UNROLLED_ROWS {
        return 0;
    }
    if let Division::Sliced { width: Some(width) } = division
        && width > UNDER_WAY
        && real == 8
    {
        // Loops unrolled for rows in registers leave wide slices too few loads under way, however many
        // registers there are (measured on an H200).
        return 0;
    }
    let of_loops = match division {
        Division::Sliced { width: Some(width) } => {
            // A value, what is gathered, and a column.
            let of_an_entry = 2 * real.div_ceil(4) + 1;
            REGISTERS_OF_LOOPS.max(REGISTERS_OF_SLICES + of_an_entry * width.min(UNDER_WAY))
        }
        _ => REGISTERS_OF_LOOPS,
    };
    device.registers_for(threads).saturating_sub(of_loops)
}

/// Keeps the entries of the first rows of every share, of as many rows as there is room for.
fn keep_matrix(
    parts: &Parts<'_>,
    division: Division,
    column_bytes: usize,
    shares: &mut [Share],
    room: &mut SharedAllocator,
    regions: &mut Regions,
) {
    // There are two parts, each a multiple of 16 bytes.
    let most = room.left().saturating_sub(32) / entry_bytes(parts.dtype(), column_bytes);
    let mut kept = 0;
    for share in shares.iter_mut() {
        match division {
            Division::Sliced { width } => {
                for (slice, own) in shares::slices(parts, share).enumerate() {
                    let entries = share.cached_entries + SLICE * width.unwrap_or(own);
                    if entries > most {
                        break;
                    }
                    share.cached_entries = entries;
                    share.cached = share.rows.min((slice + 1) * SLICE);
                }
            }
            // Entries are kept one by one, because rows play no part in a merge's first half.
            Division::Merged { .. } => {
                share.cached_entries = share.entries.min(most);
                share.cached = if share.cached_entries == share.entries { share.rows } else { 0 };
            }
            Division::Split { .. } => {
                let first = parts.start(share.first);
                let fits = |rows: usize| parts.start(share.first + rows) - first <= most;
                let (mut low, mut high) = (0, share.rows);
                while low < high {
                    let middle = (low + high).div_ceil(2);
                    if fits(middle) { low = middle } else { high = middle - 1 }
                }
                share.cached = low;
                share.cached_entries = parts.start(share.first + low) - first;
            }
            Division::Stencil => {}
        }
        kept = kept.max(share.cached_entries);
    }
    // There is room for both by the choice of `most`.
    regions.values = room.take(kept * parts.dtype().bytes()).unwrap_or(0);
    regions.columns = room.take(kept * column_bytes).unwrap_or(0);
}
