//! Systems as the host hands them to a solver's kernel.

use std::borrow::Cow;

use abide_core::reduction;
use abide_core::solver::plan::krylov::Vector;
use abide_core::solver::{Matrix, Parameters, SolveOptions};
use abide_core::{Array, DType};
use abide_cuda::{PackedSystem, Piece, numbers_of};
use abide_emulator::{Part, Slab, Solver};
use abide_shaders::cuda::{self, KrylovArrays, KrylovNumbers};
use abide_shaders::state::State;

/// Hands systems to a solver: one, or all of a batch.
pub fn hand_over(
    solver: &mut Solver,
    systems: &[(&Matrix, Array)],
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<(), String> {
    let layout = solver.layout().clone();
    let (first, right) = systems.first().ok_or("no system")?;
    let (rows, real, vectors) = (first.rows(), first.dtype().bytes(), layout.vectors.len());
    let stride = rows.next_multiple_of(64);
    let vector = stride * real;
    let x = layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).ok_or("no x")?;
    let (mut values, mut inverse, mut homes, mut rights, mut thresholds) =
        (vec![], vec![], vec![], vec![], vec![]);
    let mut last = None;
    for (matrix, right) in systems {
        let packed = PackedSystem::new(matrix, options, &layout).map_err(|error| error.to_string())?;
        let mut own = vec![0xff_u8; vectors * vector];
        own[x * vector..][..rows * real].fill(0);
        if let Some((number, diagonal)) = &packed.diagonal {
            own[number * vector..][..rows * real].copy_from_slice(diagonal.as_bytes());
        }
        homes.extend(own);
        values.extend_from_slice(&packed.values);
        inverse.extend_from_slice(&packed.inverse);
        rights.extend_from_slice(right.as_bytes());
        rights.resize(rights.len().next_multiple_of(vector), 0xff);
        let norm = match right {
            Array::F32(b) => f64::from(reduction::dot(b, b)).sqrt(),
            Array::F64(b) => reduction::dot(b, b).sqrt(),
        };
        thresholds.push((parameters.relative * norm).max(parameters.absolute));
        last = Some(packed);
    }
    let packed = last.ok_or("no system")?;
    let count = systems.len();
    let histories = parameters.iterations + 2;
    let fresh = |numbers: usize, bytes: usize| vec![0xff_u8; numbers * bytes];
    let exchanged = layout.exchanged() * stride;
    let numbers = KrylovNumbers {
        stride: stride as u64,
        turn: stride as u64,
        entries: (values.len() / count / real) as u64,
        inverses: (inverse.len() / count / real) as u64,
        histories: histories as u64,
        threshold: thresholds[0],
        near: thresholds[0] * parameters.drift.max(1.0),
        weight: packed.weight,
        centre: packed.interval[0],
        half: packed.interval[1],
        until: 0,
        most: parameters.iterations as u32,
        stagnation: parameters.stagnation(),
        replacement: packed.replacement,
        ..KrylovNumbers::default()
    };
    let state = State::fresh(DType::F64, cuda::KRYLOV_STATE_OWN).repeat(count);
    let thresholds: Vec<u8> = thresholds.iter().flat_map(|threshold| threshold.to_ne_bytes()).collect();
    if layout.slabs.count == 1 {
        let arrays = KrylovArrays {
            shares: packed.shares,
            offsets: packed.offsets,
            searches: packed.searches,
            nodes: packed.nodes,
            chains: packed.chains,
            spread: packed.spread,
            columns: packed.columns,
            values,
            b: rights,
            inverse,
            factors: packed.factors,
            homes,
            exchanged: fresh(exchanged, real),
            partials: packed.partials,
            tagged: Vec::new(),
            pieces: fresh(layout.turns * layout.spread_rows.len() * layout.blocks, real),
            basis: fresh(layout.basis() * stride, real),
            triangle: fresh(layout.triangle(), real),
            given: Vec::new(),
            beyond: Vec::new(),
            clocks: Vec::new(),
            arrived: fresh(1, 4),
            state,
            history: fresh(count * histories, 8),
            thresholds,
        };
        let whole =
            |loaded: &Vec<u8>| Part { bytes: loaded.len(), loaded: Cow::Owned(loaded.clone()), before: 0 };
        return solver.write(&[Slab { rows: 0..rows, stride, numbers, arrays: arrays.map(whole) }]);
    }
    let mut slabs = Vec::new();
    for number in 0..layout.slabs.count {
        let mut slab = packed.slab(&layout, number).map_err(|error| error.to_string())?;
        let own = slab.rows.start * real..slab.rows.end * real;
        slab.arrays.b.loaded = Cow::Owned(right.as_bytes()[own].to_vec());
        let mut homes = vec![0xff_u8; slab.arrays.homes.bytes];
        homes[x * slab.stride * real..][..slab.rows.len() * real].fill(0);
        if let Some((number, diagonal)) = packed.diagonal_of(&slab.rows).map_err(|error| error.to_string())? {
            homes[number * slab.stride * real..][..slab.rows.len() * real]
                .copy_from_slice(diagonal.as_bytes());
        }
        slab.arrays.homes.loaded = Cow::Owned(homes);
        slab.arrays.history = Piece { bytes: histories * 8, ..Piece::default() };
        let numbers = numbers_of(numbers, [slab.stride, slab.turn], &slab.beyond);
        let part = |piece: &Piece<'_>| Part {
            loaded: Cow::Owned(piece.loaded.to_vec()),
            bytes: piece.bytes,
            before: piece.before,
        };
        let arrays = slab.arrays.map(part);
        slabs.push(Slab { rows: slab.rows, stride: slab.stride, numbers, arrays });
    }
    solver.write(&slabs)
}
