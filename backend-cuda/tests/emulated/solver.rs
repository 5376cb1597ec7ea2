//! A solver's kernel from its plan to the solution, run as C++ and held against the reference.

use abide_solvers::{build_preconditioner, solver};
use std::borrow::Cow;
use std::ops::Range;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use abide_core::reduction;
use abide_core::solver::plan::krylov::{Configuration, Division, Krylov, Slabs, Vector};
use abide_core::solver::{Matrix, Method, Parameters, Quantity, Report, SolveOptions, SolverError, Status};
use abide_core::{Array, DType, DeviceSpec, Real};
use abide_cuda::{PackedSystem, Piece, numbers_of};
use abide_shaders::cuda::{self, KrylovArrays, KrylovNumbers};
use abide_shaders::state::State;
use abide_solvers::Serial;
use abide_solvers::plan::krylov::plan_krylov_configuration;

use super::rig;

/// Words that only the device understands beside those of flags, and their replacements here; solvers have each exactly once.
const WORDS: &[(&str, &str)] = &[
    (
        "extern __shared__ __align__(16) unsigned char shared[];",
        "unsigned char* const shared = emulated::shared_memory();",
    ),
    (r#"asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");"#, "emulated::meet_cluster();"),
    (r#"asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");"#, ""),
    ("const unsigned address = unsigned(__cvta_generic_to_shared(at));", ""),
    (
        "unsigned remote;\n    asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(remote) : \"r\"(address), \"r\"(rank));",
        "T* const remote = emulated::remote(at, rank);",
    ),
    (
        r#"asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(remote), "d"(value) : "memory");"#,
        "*remote = value;",
    ),
    (
        r#"asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");"#,
        "*remote = value;",
    ),
    ("static __device__ __noinline__ void", "static __device__ void"),
    (r#"asm volatile("fence.acq_rel.sys;" ::: "memory");"#, ""),
    (r#"asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");"#, "*p += v;"),
    (
        r#"asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");"#,
        "emulated::pause(); v = *p;",
    ),
    (
        r#"asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(word[0]), "l"(word[WORDS - 1]) : "memory");"#,
        "{ to->word[0] = word[0]; emulated::sometimes(); to->word[WORDS - 1] = word[WORDS - 1]; }",
    ),
    (
        r#"asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(to), "l"(word[0]) : "memory");"#,
        "to->word[0] = word[0];",
    ),
    (
        r#"asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[WORDS - 1]) : "l"(from) : "memory");"#,
        "{ emulated::pause(); word[0] = from->word[0]; word[WORDS - 1] = from->word[WORDS - 1]; }",
    ),
    (
        r#"asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(word[0]) : "l"(from) : "memory");"#,
        "{ emulated::pause(); word[0] = from->word[0]; }",
    ),
    rig::AHEAD,
    (r#"asm volatile("exit;");"#, "emulated::fail(\"a wait was given up\");"),
];

/// The files that stand for CUDA, and the program.
const FILES: [(&str, &str); 4] = [
    ("lanes.h", include_str!("lanes.h")),
    ("cuda.h", include_str!("cuda.h")),
    ("more.h", include_str!("more.h")),
    ("main.cc", include_str!("solver.cc")),
];

/// A solve that is emulated.
#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub matrix: Matrix,
    pub options: SolveOptions,
    pub configuration: Configuration,
    /// Bytes of a block's shared memory, where it shall have less than an H200, and no last-level cache.
    pub shared: Option<usize>,
}

/// A kernel compiled as a program, and the system that it solves.
pub struct Program {
    folder: tempfile::TempDir,
    layout: Krylov,
    rows: usize,
    stride: usize,
    dtype: DType,
    systems: usize,
    /// The rows of each slab, and values from one of its vectors to the next.
    slabs: Vec<(Range<usize>, usize)>,
}

/// The results of a run.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub x: Vec<f64>,
    pub history: Vec<f64>,
    pub true_residual: f64,
    pub status: Status,
    pub quantity: Quantity,
}

impl Case {
    pub fn parameters(&self) -> Parameters {
        let relative = if self.matrix.dtype() == DType::F32 { 1e-4 } else { 1e-9 };
        Parameters { relative, iterations: 1500, ..Parameters::default() }
    }

    /// Returns a right-hand side without symmetry.
    pub fn right(&self) -> Array {
        let mut random = fastrand::Rng::with_seed(5);
        Array::from_fn(self.matrix.dtype(), self.matrix.rows(), |_| random.f64() - 0.3)
    }

    /// Returns the layout that the planner makes of the configuration.
    pub fn layout(&self) -> Result<Krylov, String> {
        let mut device = DeviceSpec::preset("h200").map_err(|error| error.to_string())?;
        device.multiprocessors = self.configuration.blocks;
        if let Some(bytes) = self.shared {
            device.shared_bytes_per_block = bytes;
            // What does not stay there is streamed.
            device.l2_bytes = 0;
        }
        let plan = plan_krylov_configuration(&self.matrix, &device, &self.options, &self.configuration);
        Ok(plan.map_err(|error| error.to_string())?.krylov().cloned().ok_or("no layout")?)
    }

    /// Compiles the kernel with some words replaced, and puts the system beside it.
    pub fn compile(&self, compiler: &[String], changes: &[(&str, &str)]) -> Result<Program, String> {
        let layout = self.layout()?;
        let mut program = Program::compile(compiler, &self.matrix, &self.options, layout, None, changes)?;
        program.write(&[(&self.matrix, self.right())], &self.options, &self.parameters())?;
        Ok(program)
    }

    /// Returns the reference's report and solution.
    pub fn reference(&self) -> Result<(Report, Vec<f64>), String> {
        let (ended, x) = reference(&self.matrix, &self.options, &self.right(), &self.parameters())?;
        Ok((ended.map_err(|error| error.to_string())?, x))
    }

    /// Returns whether the kernel does all that the reference does, in the same order: sums have one tree, and
    /// a row's products are added one after the other where they are one thread's.
    fn has_the_references_bits(&self) -> bool {
        let is_in_order = matches!(
            self.configuration.division,
            Division::Sliced { .. } | Division::Stencil | Division::Split { lanes: 1 }
        );
        let is_whole = self.configuration.spread.is_none();
        // The norm of GMRES's newest vector follows from its projections.
        is_in_order && is_whole && !matches!(self.options.method, Method::Gmres(_))
    }

    /// Compares the kernel with the reference, in several orders of its lanes and cuts of its iterations.
    pub fn check(&self, compiler: &[String]) -> Result<(), String> {
        let begun = Instant::now();
        let (report, expected) = self.reference().map_err(|why| format!("the reference: {why}"))?;
        let program = self.compile(compiler, &[])?;
        if self.configuration.spread.is_some() && program.layout.spread_rows.is_empty() {
            return Err("no row is spread".to_owned());
        }
        let outcome = program.run(1, 0)?;
        let iterations = outcome.history.len().saturating_sub(1);
        if outcome.status != Status::Converged {
            return Err(format!(
                "status {:?}, quantity {:?}, {iterations} iterations",
                outcome.status, outcome.quantity
            ));
        }
        // The convergence of BiCGStab depends on rounding more than that of the others.
        let slack = if self.options.method.name() == "bicgstab" { 2 + report.iterations / 10 } else { 2 };
        if iterations.abs_diff(report.iterations) > slack {
            return Err(format!("{iterations} iterations, the reference takes {}", report.iterations));
        }
        let parameters = self.parameters();
        if outcome.true_residual.is_nan() || outcome.true_residual > report.threshold * parameters.drift {
            return Err(format!(
                "a true residual of {:e}, the threshold is {:e}",
                outcome.true_residual, report.threshold
            ));
        }
        let norm = |x: &[f64]| reduction::dot(x, x).sqrt();
        let difference: Vec<f64> = outcome.x.iter().zip(&expected).map(|(a, b)| a - b).collect();
        if norm(&difference) > 2e3 * parameters.relative * norm(&expected) {
            return Err(format!(
                "a solution that differs by {:e} of {:e}",
                norm(&difference),
                norm(&expected)
            ));
        }
        if self.has_the_references_bits() {
            let bits = |all: &[f64]| all.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let same_history = match self.matrix.dtype() {
                // The device takes the roots of f32 in f64.
                DType::F32 => iterations == report.iterations,
                DType::F64 => bits(&outcome.history) == bits(&report.history),
            };
            if !same_history || bits(&outcome.x) != bits(&expected) {
                return Err("other bits than the reference's".to_owned());
            }
        }
        for (seed, chunk) in [(2, 0), (3, 9)] {
            if program.run(seed, chunk)? != outcome {
                return Err(format!("other bits in order {seed}, {chunk} iterations a launch"));
            }
        }
        let (kept, all) = program
            .layout
            .shares
            .iter()
            .fold((0, 0), |sum, s| (sum.0 + s.cached_entries, sum.1 + s.entries + s.spread_entries));
        println!(
            "{}: {iterations} iterations ({} by the reference), {kept} of {all} entries kept, {:?}, {:.1} s",
            self.name,
            report.iterations,
            program
                .layout
                .vectors
                .iter()
                .map(|(vector, home)| format!("{vector:?}/{home:?}"))
                .collect::<Vec<_>>(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Case {
    /// Holds the bits of several slabs to those of one with the same product and another number of blocks, where the
    /// reference sums rows in another order.
    pub fn check_on_one_slab(&self, compiler: &[String]) -> Result<(), String> {
        if self.has_the_references_bits() {
            return Ok(());
        }
        let slabs = self.compile(compiler, &[])?.run(1, 0)?;
        let configuration = Configuration { slabs: Slabs::default(), blocks: 3, ..self.configuration };
        let one = Case { configuration, ..self.clone() }.compile(compiler, &[])?.run(1, 0)?;
        if slabs == one { Ok(()) } else { Err("other bits than on one slab".to_owned()) }
    }

    /// Checks that the kernel without some of its words is found to be wrong: it fails, or has other bits in
    /// some order of the lanes.
    pub fn misses(&self, compiler: &[String], change: (&str, &str)) -> Result<(), String> {
        let right = self.compile(compiler, &[])?.run(1, 0)?;
        let program = self.compile(compiler, &[change])?;
        let found = (1..=6).any(|seed| program.run(seed, 0).map_or(true, |outcome| outcome != right));
        if found { Ok(()) } else { Err(format!("{} has the same bits without: {}", self.name, change.0)) }
    }
}

/// Returns how the reference ends, and its last iterate.
pub fn reference(
    matrix: &Matrix,
    options: &SolveOptions,
    right: &Array,
    parameters: &Parameters,
) -> Result<(Result<Report, SolverError>, Vec<f64>), String> {
    match matrix.dtype() {
        DType::F32 => reference_of::<f32>(matrix, options, right, parameters),
        DType::F64 => reference_of::<f64>(matrix, options, right, parameters),
    }
    .map_err(|error| error.to_string())
}

fn reference_of<T: Real>(
    matrix: &Matrix,
    options: &SolveOptions,
    right: &Array,
    parameters: &Parameters,
) -> Result<(Result<Report, SolverError>, Vec<f64>), SolverError> {
    let operator = matrix.operator::<T>()?;
    let mut m = build_preconditioner(&options.preconditioner, &Serial, operator.clone())?;
    let b = T::slice(right).unwrap_or_default();
    let mut x = vec![T::ZERO; b.len()];
    let solver = solver::<T, Serial>(&options.method);
    let ended = solver.solve_on(&Serial, &operator, &mut m, b, &mut x, parameters);
    Ok((ended, x.iter().map(|x| x.to_f64()).collect()))
}

/// A solve with a right-hand side and limits of its own.
pub struct End {
    pub case: Case,
    pub right: Array,
    pub parameters: Parameters,
}

impl End {
    fn compile(&self, compiler: &[String]) -> Result<Program, String> {
        let mut program = self.case.compile(compiler, &[])?;
        program.write(&[(&self.case.matrix, self.right.clone())], &self.case.options, &self.parameters)?;
        Ok(program)
    }

    /// Holds the end of a run to the reference's: its kind, its history, its last iterate.
    pub fn check(&self, compiler: &[String]) -> Result<(), String> {
        let (ended, x) = reference(&self.case.matrix, &self.case.options, &self.right, &self.parameters)?;
        let (status, quantity) = match &ended {
            Ok(_) => (Status::Converged, None),
            Err(SolverError::NotConverged { .. }) => (Status::Limited, None),
            Err(SolverError::Stagnation { .. }) => (Status::Stagnant, None),
            Err(SolverError::NotFinite { quantity, .. }) => (Status::NotFinite, Some(*quantity)),
            Err(SolverError::Breakdown { quantity, .. }) => (Status::Vanished, Some(*quantity)),
            Err(error) => return Err(format!("the reference: {error}")),
        };
        let history = ended.as_ref().map_or_else(SolverError::history, |report| &report.history);
        let program = self.compile(compiler)?;
        let outcome = program.run(1, 0)?;
        let named = outcome.quantity.words();
        if outcome.status != status || quantity.is_some_and(|quantity| quantity != named) {
            return Err(format!(
                "status {:?}, {named}; the reference has {status:?}, {quantity:?}",
                outcome.status
            ));
        }
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * history[0] || a.to_bits() == b.to_bits();
        let alike =
            |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(*a, *b));
        if !alike(&outcome.history, history) {
            return Err(format!("history {:?}, the reference's is {history:?}", outcome.history));
        }
        // After a breakdown x has no promised value.
        let is_ended = matches!(status, Status::Converged | Status::Limited | Status::Stagnant);
        if is_ended && !alike(&outcome.x, &x) {
            return Err(format!("x is {:?}, the reference's is {x:?}", outcome.x));
        }
        if program.run(2, 4)? != outcome {
            return Err("other bits in launches of 4 iterations".to_owned());
        }
        println!("{}: status {status:?}, {named}, {} iterations", self.case.name, history.len() - 1);
        Ok(())
    }

    /// Compares x as one launch of `iterations` iterations leaves it with the last entry of its history.
    pub fn check_cut(&self, compiler: &[String], iterations: usize) -> Result<(), String> {
        let program = self.compile(compiler)?;
        let outcome = program.launch(1, iterations, 1)?.pop().ok_or("no system")?;
        let operator = self.case.matrix.operator::<f64>().map_err(|error| error.to_string())?;
        let mut product = vec![0.0; outcome.x.len()];
        operator.apply(&outcome.x, &mut product);
        let rest: Vec<f64> = self.right.to_f64().iter().zip(&product).map(|(b, ax)| b - ax).collect();
        let (norm, told) =
            (reduction::dot(&rest, &rest).sqrt(), outcome.history.last().copied().unwrap_or(f64::NAN));
        if outcome.status != Status::Running
            || outcome.history.len() != iterations
            || (norm - told).abs() > 1e-9 * told
        {
            let length = outcome.history.len();
            return Err(format!(
                "status {:?}, {length} residuals, {norm:e} where {told:e} is told",
                outcome.status
            ));
        }
        Ok(())
    }
}

impl Program {
    /// Compiles the kernel of a layout, with some words replaced; for a batch, the kernel of that many
    /// systems.
    fn compile(
        compiler: &[String],
        matrix: &Matrix,
        options: &SolveOptions,
        layout: Krylov,
        systems: Option<usize>,
        changes: &[(&str, &str)],
    ) -> Result<Program, String> {
        let text =
            cuda::krylov(matrix, options, &layout, systems.is_some()).map_err(|error| error.to_string())?;
        let text = rig::replaced(&rig::rewritten(&text, &[&rig::FLAGS[..], WORDS].concat())?, changes)?;
        let names: String =
            KrylovArrays::<()>::default().all().iter().map(|(name, _)| format!("ARRAY({name})\n")).collect();
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (name, content) in FILES.into_iter().chain([("kernel.h", text.as_str()), ("arrays.h", &names)]) {
            std::fs::write(folder.path().join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        let blocks = systems.unwrap_or(layout.blocks);
        let mut command = rig::Compilation::new(compiler, folder.path(), "launch");
        command
            .arg("-DARCHITECTURE=900")
            .arg(format!("-DBLOCKS_LAUNCHED={blocks}"))
            .arg(format!("-DTHREADS_LAUNCHED={}", layout.threads));
        command.arg(format!("-DSHARED_BYTES={}", layout.regions.total));
        command.run()?;
        let (rows, dtype) = (matrix.rows(), matrix.dtype());
        let stride = rows.next_multiple_of(64);
        let slabs = match layout.slabs.count {
            1 => vec![(0..rows, stride)],
            _ => layout.rows_of_slabs().into_iter().map(|rows| (rows, 0)).collect(),
        };
        Ok(Program { folder, layout, rows, stride, dtype, systems: systems.unwrap_or(1), slabs })
    }

    fn x(&self) -> usize {
        self.layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).unwrap_or(usize::MAX)
    }

    /// Writes the systems for the program.
    fn write(
        &mut self,
        systems: &[(&Matrix, Array)],
        options: &SolveOptions,
        parameters: &Parameters,
    ) -> Result<(), String> {
        let (real, vectors) = (self.dtype.bytes(), self.layout.vectors.len());
        let vector = self.stride * real;
        let (mut values, mut inverse, mut homes, mut rights, mut thresholds) =
            (vec![], vec![], vec![], vec![], vec![]);
        let mut last = None;
        for (matrix, right) in systems {
            let packed =
                PackedSystem::new(matrix, options, &self.layout).map_err(|error| error.to_string())?;
            let mut own = vec![0xff_u8; vectors * vector];
            own[self.x() * vector..][..self.rows * real].fill(0);
            if let Some((number, diagonal)) = &packed.diagonal {
                own[number * vector..][..self.rows * real].copy_from_slice(diagonal.as_bytes());
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
        let (count, layout) = (systems.len(), &self.layout);
        let histories = parameters.iterations + 2;
        let fresh = |numbers: usize, bytes: usize| vec![0xff_u8; numbers * bytes];
        let exchanged = layout.exchanged() * self.stride;
        let numbers = KrylovNumbers {
            stride: self.stride as u64,
            turn: self.stride as u64,
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
        let mut bytes = Vec::new();
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
                basis: fresh(layout.basis() * self.stride, real),
                triangle: fresh(layout.triangle(), real),
                given: Vec::new(),
                beyond: Vec::new(),
                clocks: Vec::new(),
                arrived: fresh(1, 4),
                state,
                history: fresh(count * histories, 8),
                thresholds,
            };
            append(&mut bytes, &numbers, &arrays.map(|loaded| whole(loaded)));
        } else {
            let (_, right) = systems.first().ok_or("no system")?;
            for number in 0..layout.slabs.count {
                let mut slab = packed.slab(layout, number).map_err(|error| error.to_string())?;
                let own = slab.rows.start * real..slab.rows.end * real;
                slab.arrays.b.loaded = Cow::Owned(right.as_bytes()[own].to_vec());
                let mut homes = vec![0xff_u8; slab.arrays.homes.bytes];
                homes[self.x() * slab.stride * real..][..slab.rows.len() * real].fill(0);
                if let Some((number, diagonal)) =
                    packed.diagonal_of(&slab.rows).map_err(|error| error.to_string())?
                {
                    homes[number * slab.stride * real..][..slab.rows.len() * real]
                        .copy_from_slice(diagonal.as_bytes());
                }
                slab.arrays.homes.loaded = Cow::Owned(homes);
                slab.arrays.history = Piece { bytes: histories * 8, ..Piece::default() };
                let numbers = numbers_of(numbers, [slab.stride, slab.turn], &slab.beyond);
                self.slabs[number].1 = slab.stride;
                append(&mut bytes, &numbers, &slab.arrays);
            }
        }
        std::fs::write(self.folder.path().join("arrays"), bytes).map_err(|error| error.to_string())
    }

    /// Runs the program to the end of its only solve.
    pub fn run(&self, seed: usize, chunk: usize) -> Result<Outcome, String> {
        self.run_all(seed, chunk)?.pop().ok_or_else(|| "no system".to_owned())
    }

    /// Runs the program to the end of all solves.
    pub fn run_all(&self, seed: usize, chunk: usize) -> Result<Vec<Outcome>, String> {
        self.launch(seed, chunk, usize::MAX)
    }

    /// Runs the program to the end of all solves, or for `launches` launches.
    fn launch(&self, seed: usize, chunk: usize, launches: usize) -> Result<Vec<Outcome>, String> {
        let folder = self.folder.path();
        let numbers = [seed, chunk, launches].map(|number| number.to_string());
        succeeds(Command::new(folder.join("launch")).arg(folder).args(numbers))?;
        let read = |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let doubles = |bytes: &[u8]| {
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect::<Vec<f64>>()
        };
        let (homes, states, histories) = (read("homes")?, read("state")?, read("history")?);
        let parts = |bytes: &[u8]| bytes.len() / self.systems;
        let mut all = Vec::new();
        for system in 0..self.systems {
            let own = |bytes: &[u8]| bytes[system * parts(bytes)..][..parts(bytes)].to_vec();
            let (homes, state, history) = (own(&homes), own(&states), own(&histories));
            let real = self.dtype.bytes();
            // The vectors of one slab stand behind those of another.
            let (mut x, mut begin) = (Vec::new(), 0);
            for (rows, stride) in &self.slabs {
                x.extend_from_slice(&homes[begin + self.x() * stride * real..][..rows.len() * real]);
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

/// Returns an array of a system that has no slabs.
fn whole(loaded: &[u8]) -> Piece<'static> {
    Piece { bytes: loaded.len(), loaded: Cow::Owned(loaded.to_owned()), before: 0 }
}

/// Appends what a slab's kernel is handed: the numbers, behind places for the addresses, which the program fills in; and
/// the arrays.
fn append(bytes: &mut Vec<u8>, numbers: &KrylovNumbers, arrays: &KrylovArrays<Piece<'_>>) {
    bytes.extend(vec![0; 8 * arrays.all().len()]);
    bytes.extend(numbers.bytes());
    for (_, piece) in arrays.all() {
        for length in [piece.bytes, piece.before, piece.loaded.len()] {
            bytes.extend((length as u64).to_ne_bytes());
        }
        bytes.extend_from_slice(&piece.loaded);
    }
}

/// Solves systems in one batch, and holds each to the bits that it has when solved alone, in several orders
/// of the lanes and cuts of the iterations.
pub fn check_batch(compiler: &[String], matrices: &[Matrix], options: &SolveOptions) -> Result<(), String> {
    let device = DeviceSpec::preset("h200").map_err(|error| error.to_string())?;
    let plan = abide_cuda::plan_batch(&matrices[0], &device, options).map_err(|error| error.to_string())?;
    let layout = plan.krylov().cloned().ok_or("no layout")?;
    let parameters = Parameters { relative: 1e-9, ..Parameters::default() };
    let right = |number: usize| {
        Array::from_fn(DType::F64, matrices[0].rows(), |i| ((i * 7 + number) % 11) as f64 - 4.0)
    };
    let mut alone = Vec::new();
    for (number, matrix) in matrices.iter().enumerate() {
        let mut program = Program::compile(compiler, matrix, options, layout.clone(), None, &[])?;
        program.write(&[(matrix, right(number))], options, &parameters)?;
        alone.push(program.run(1, 0)?);
    }
    if alone.iter().any(|outcome| outcome.status != Status::Converged) {
        return Err("a system does not converge alone".to_owned());
    }
    let mut program = Program::compile(compiler, &matrices[0], options, layout, Some(matrices.len()), &[])?;
    let systems: Vec<(&Matrix, Array)> =
        matrices.iter().enumerate().map(|(n, matrix)| (matrix, right(n))).collect();
    program.write(&systems, options, &parameters)?;
    for (seed, chunk) in [(1, 0), (2, 5)] {
        if program.run_all(seed, chunk)? != alone {
            return Err(format!("other bits in a batch, order {seed}, {chunk} iterations a launch"));
        }
    }
    println!(
        "{} alone and in a batch: {:?} iterations",
        options.method,
        alone.iter().map(|o| o.history.len() - 1).collect::<Vec<_>>()
    );
    Ok(())
}

/// Calls `work` with each case, two at once, because each takes a compiler or a processor. One failure names
/// all that is wrong.
pub fn all<T: Sync>(cases: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let turns = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = work(case) {
                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(turns))));
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a program; if it fails, its output is the error.
fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
