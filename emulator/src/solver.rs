//! A solver's launches from their text to the solution.

use std::borrow::Cow;
use std::ops::Range;

use abide_core::DType;
use abide_core::solver::plan::krylov::{Krylov, Vector};
use abide_core::solver::{Matrix, Quantity, SolveOptions, Status};
use abide_shaders::cuda::{self, KrylovArrays, KrylovNumbers};
use abide_shaders::state::State;

use crate::{Compiler, Emulation, Kernel, replaced};

/// A solver's kernel, compiled.
pub struct Solver {
    emulation: Emulation,
    layout: Krylov,
    dtype: DType,
    systems: usize,
    /// The number of rows of each slab, and values from one of its vectors to the next.
    slabs: Vec<(usize, usize)>,
}

/// What a slab's kernel is handed: one slab holds a whole system, or all systems of a batch.
pub struct Slab<'a> {
    /// Its rows.
    pub rows: Range<usize>,
    /// Values from one of its vectors to the next.
    pub stride: usize,
    /// Its numbers.
    pub numbers: KrylovNumbers,
    /// Its arrays.
    pub arrays: KrylovArrays<Part<'a>>,
}

/// A slab's part of an array.
pub struct Part<'a> {
    /// What its first bytes hold; the others hold nothing.
    pub loaded: Cow<'a, [u8]>,
    /// Its bytes.
    pub bytes: usize,
    /// The bytes before it in the array of the whole system: kernels count from there.
    pub before: usize,
}

/// The results of a solve.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// The solution.
    pub x: Vec<f64>,
    /// The residuals' norms.
    pub history: Vec<f64>,
    /// The norm of b − A x.
    pub true_residual: f64,
    /// How it ended.
    pub status: Status,
    /// What it ended for.
    pub quantity: Quantity,
}

impl Solver {
    /// Compiles the kernel of a layout with some words of it replaced; of a batch of so many `systems`, with a block for each.
    ///
    /// # Errors
    ///
    /// There is no such kernel, its text has not the words, or what the compiler says.
    pub fn compile(
        compiler: &Compiler,
        matrix: &Matrix,
        options: &SolveOptions,
        layout: Krylov,
        systems: Option<usize>,
        changes: &[(&str, &str)],
    ) -> Result<Solver, String> {
        let text =
            cuda::krylov(matrix, options, &layout, systems.is_some()).map_err(|error| error.to_string())?;
        let names: String =
            KrylovArrays::<()>::default().all().iter().map(|(name, _)| format!("ARRAY({name})\n")).collect();
        let mut kernel = Kernel::new(replaced(&text, changes)?, include_str!("../hosts/solver.cc"));
        let blocks = systems.unwrap_or(layout.blocks);
        kernel.file("arrays.h", names).launched([blocks, layout.threads, layout.regions.total], 900);
        // Slabs are of devices, though a kernel may have those of several in one launch.
        kernel.define("DEVICES_LAUNCHED", if systems.is_none() { layout.slabs.count } else { 1 });
        let emulation = kernel.compile(compiler)?;
        Ok(Solver {
            emulation,
            layout,
            dtype: matrix.dtype(),
            systems: systems.unwrap_or(1),
            slabs: Vec::new(),
        })
    }

    /// Returns the kernel's layout.
    pub fn layout(&self) -> &Krylov {
        &self.layout
    }

    /// Hands over the slabs of a system, or the one of all systems of a batch.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write(&mut self, slabs: &[Slab<'_>]) -> Result<(), String> {
        let mut bytes = Vec::new();
        for slab in slabs {
            // The numbers stand behind places for the addresses, which the host fills in.
            bytes.extend(vec![0; 8 * slab.arrays.all().len()]);
            bytes.extend(slab.numbers.bytes());
            for (_, part) in slab.arrays.all() {
                for length in [part.bytes, part.before, part.loaded.len()] {
                    bytes.extend((length as u64).to_ne_bytes());
                }
                bytes.extend_from_slice(&part.loaded);
            }
        }
        self.slabs = slabs.iter().map(|slab| (slab.rows.len(), slab.stride)).collect();
        self.emulation.write("arrays", bytes)
    }

    /// Runs the only solve to its end, `chunk` iterations per launch, or all at once; lanes take turns in the order that the
    /// seed gives.
    ///
    /// # Errors
    ///
    /// What a launch says where lanes wait for ever, or store where they may not.
    pub fn run(&self, seed: usize, chunk: usize) -> Result<Outcome, String> {
        self.run_all(seed, chunk)?.pop().ok_or_else(|| "no system".to_owned())
    }

    /// Runs all solves to their ends.
    ///
    /// # Errors
    ///
    /// As [`Solver::run`].
    pub fn run_all(&self, seed: usize, chunk: usize) -> Result<Vec<Outcome>, String> {
        self.launch(seed, chunk, usize::MAX)
    }

    /// Runs all solves to their ends, or for `launches` launches.
    ///
    /// # Errors
    ///
    /// As [`Solver::run`].
    pub fn launch(&self, seed: usize, chunk: usize, launches: usize) -> Result<Vec<Outcome>, String> {
        self.emulation.run([seed, chunk, launches])?;
        let doubles = |bytes: &[u8]| {
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect::<Vec<f64>>()
        };
        let read = |name: &str| self.emulation.read(name);
        let (homes, states, histories) = (read("homes")?, read("state")?, read("history")?);
        let parts = |bytes: &[u8]| bytes.len() / self.systems;
        let number = self.layout.vectors.iter().position(|(vector, _)| *vector == Vector::X);
        let number = number.ok_or("the layout has no x")?;
        let mut all = Vec::new();
        for system in 0..self.systems {
            let own = |bytes: &[u8]| bytes[system * parts(bytes)..][..parts(bytes)].to_vec();
            let (homes, state, history) = (own(&homes), own(&states), own(&histories));
            let real = self.dtype.bytes();
            // The vectors of one slab stand behind those of another.
            let (mut x, mut begin) = (Vec::new(), 0);
            for &(rows, stride) in &self.slabs {
                x.extend_from_slice(&homes[begin + number * stride * real..][..rows * real]);
                begin += self.layout.vectors.len() * stride * real;
            }
            let x = match self.dtype {
                DType::F32 => {
                    x.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect()
                }
                DType::F64 => doubles(&x),
            };
            let (state, told) =
                State::left("emulation", DType::F64, &state).map_err(|error| error.to_string())?;
            let history = doubles(&history[..8 * state.length as usize]);
            let true_residual = state.true_square.sqrt();
            all.push(Outcome { x, history, true_residual, status: told.status, quantity: told.quantity });
        }
        Ok(all)
    }
}
