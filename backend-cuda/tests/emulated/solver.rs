//! A solver's kernel from its plan to the solution, run as C++ and held against the reference.

use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use abide_core::plan::krylov::{Form, Krylov, Vector, plan_krylov_form};
use abide_core::solver::{Matrix, Parameters, Report, Serial, SolveOptions, reduce};
use abide_core::{Array, DType, DeviceSpec, Real};
use abide_cuda::Image;
use abide_shaders::cuda;

use super::rig;

/// What solvers say to the device alone, and what stands for it here; once each.
const WORDS: &rig::Words = &[
    (
        "extern __shared__ __align__(16) unsigned char shared[];",
        "unsigned char* const shared = emulated::shared_memory();",
    ),
    (
        r#"asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");"#,
        "emulated::pause(); v = *p;",
    ),
    (r#"asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");"#, "*p += v;"),
    (r#"asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");"#, "emulated::meet_cluster();"),
    (r#"asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");"#, ""),
    ("const unsigned address = unsigned(__cvta_generic_to_shared(at));", ""),
    (
        "unsigned remote;\n    asm volatile(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(remote) : \"r\"(address), \"r\"(rank));",
        "T* const remote = emulated::remote(at, rank);",
    ),
    (r#"asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(remote), "d"(value) : "memory");"#, "*remote = value;"),
    (r#"asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");"#, "*remote = value;"),
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
    pub form: Form,
    /// Bytes of shared memory of a block, where there shall be less than an H200 has.
    pub shared: Option<usize>,
}

/// A kernel compiled as a program, and the system that it solves.
pub struct Program {
    folder: tempfile::TempDir,
    layout: Krylov,
    rows: usize,
    stride: usize,
    dtype: DType,
}

/// What a run left.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub x: Vec<f64>,
    pub history: Vec<f64>,
    pub true_residual: f64,
    /// The kernels' `Status`, and `Quantity`.
    pub status: i32,
    pub quantity: i32,
}

impl Case {
    pub fn parameters(&self) -> Parameters {
        let relative = if self.matrix.dtype() == DType::F32 { 1e-4 } else { 1e-9 };
        Parameters { relative, iterations: 1500, ..Parameters::default() }
    }

    /// A right-hand side without symmetry.
    pub fn right(&self) -> Array {
        let mut random = fastrand::Rng::with_seed(5);
        Array::from_fn(self.matrix.dtype(), self.matrix.rows(), |_| random.f64() - 0.3)
    }

    /// The kernel with some words replaced, compiled, and the system beside it.
    pub fn compile(&self, compiler: &[String], changes: &[(&str, &str)]) -> Result<Program, String> {
        let said = |error: abide_core::Error| error.to_string();
        let mut device = DeviceSpec::preset("h200").map_err(said)?;
        device.multiprocessors = self.form.blocks;
        if let Some(bytes) = self.shared {
            device.shared_bytes_per_block = bytes;
        }
        let plan = plan_krylov_form(&self.matrix, &device, &self.options, &self.form).map_err(said)?;
        let layout = plan.krylov().cloned().ok_or("no layout")?;
        let text = cuda::krylov(&self.matrix, &self.options, &layout).map_err(said)?;
        let text = rig::replaced(&rig::rewritten(&text, WORDS)?, changes)?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (name, content) in FILES.into_iter().chain([("kernel.h", text.as_str())]) {
            std::fs::write(folder.path().join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        let mut command = Command::new(&compiler[0]);
        command.args(&compiler[1..]).current_dir(folder.path());
        command.args(["-std=c++20", "-O1", "-ffp-contract=off", "-w", "main.cc", "-o", "launch", "-DARCHITECTURE=900"]);
        command
            .arg(format!("-DBLOCKS_LAUNCHED={}", layout.blocks))
            .arg(format!("-DTHREADS_LAUNCHED={}", layout.threads));
        command.arg(format!("-DSHARED_BYTES={}", layout.regions.total));
        command.arg(format!("-DVECTORS_LAUNCHED={}", layout.vectors.len()));
        succeeds(&mut command)?;
        let image = Image::new(&self.matrix, &self.options, &layout).map_err(|error| error.to_string())?;
        let program =
            Program { folder, layout, rows: self.matrix.rows(), stride: image.stride, dtype: self.matrix.dtype() };
        program.write(&image, &self.right(), &self.parameters())?;
        Ok(program)
    }

    fn reference(&self) -> Result<(Report, Vec<f64>), String> {
        match self.matrix.dtype() {
            DType::F32 => self.reference_of::<f32>(),
            DType::F64 => self.reference_of::<f64>(),
        }
    }

    fn reference_of<T: Real>(&self) -> Result<(Report, Vec<f64>), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let operator = self.matrix.operator::<T>().map_err(|error| said(&error))?;
        let mut m = self.options.preconditioner.build(&Serial, operator.clone()).map_err(|error| said(&error))?;
        let right = self.right();
        let b = T::slice(&right).unwrap_or_default();
        let mut x = vec![T::ZERO; b.len()];
        let solver = self.options.method.solver::<T, Serial>();
        let report = solver.solve_on(&Serial, &operator, &mut m, b, &mut x, &self.parameters());
        Ok((report.map_err(|error| said(&error))?, x.iter().map(|x| x.to_f64()).collect()))
    }

    /// Compares the kernel with the reference, in several orders of its lanes and cuts of its iterations.
    pub fn check(&self, compiler: &[String]) -> Result<(), String> {
        let begun = Instant::now();
        let (report, expected) = self.reference().map_err(|why| format!("the reference: {why}"))?;
        let program = self.compile(compiler, &[])?;
        let outcome = program.run(1, 0)?;
        let iterations = outcome.history.len().saturating_sub(1);
        if outcome.status != 1 {
            return Err(format!("status {}, quantity {}, {iterations} iterations", outcome.status, outcome.quantity));
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
        let norm = |x: &[f64]| reduce::dot(x, x).sqrt();
        let difference: Vec<f64> = outcome.x.iter().zip(&expected).map(|(a, b)| a - b).collect();
        if norm(&difference) > 2e3 * parameters.relative * norm(&expected) {
            return Err(format!("a solution that differs by {:e} of {:e}", norm(&difference), norm(&expected)));
        }
        for (seed, chunk) in [(2, 0), (3, 9)] {
            if program.run(seed, chunk)? != outcome {
                return Err(format!("other bits in order {seed}, {chunk} iterations a launch"));
            }
        }
        let (kept, all) =
            program.layout.shares.iter().fold((0, 0), |sum, s| (sum.0 + s.cached_entries, sum.1 + s.entries));
        println!(
            "{}: {iterations} iterations ({} by the reference), {kept} of {all} entries kept, {:?}, {:.1} s",
            self.name,
            report.iterations,
            program.layout.vectors.iter().map(|(vector, home)| format!("{vector:?}/{home:?}")).collect::<Vec<_>>(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Case {
    /// Whether the kernel without some of its words is found to be wrong: it fails, or has other bits in some order of the lanes.
    pub fn misses(&self, compiler: &[String], change: (&str, &str)) -> Result<(), String> {
        let right = self.compile(compiler, &[])?.run(1, 0)?;
        let program = self.compile(compiler, &[change])?;
        let found = (1..=6).any(|seed| program.run(seed, 0).map_or(true, |outcome| outcome != right));
        if found { Ok(()) } else { Err(format!("{} has the same bits without: {}", self.name, change.0)) }
    }
}

impl Program {
    fn write(&self, image: &Image, right: &Array, parameters: &Parameters) -> Result<(), String> {
        let real = self.dtype.bytes();
        let mut homes = vec![0xff_u8; self.layout.vectors.len() * image.stride * real];
        let x = self.layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).ok_or("no x")?;
        homes[x * image.stride * real..][..self.rows * real].fill(0);
        if let Some((number, diagonal)) = &image.diagonal {
            homes[number * image.stride * real..][..self.rows * real].copy_from_slice(diagonal.as_bytes());
        }
        let norm = match right {
            Array::F32(b) => f64::from(reduce::dot(b, b)).sqrt(),
            Array::F64(b) => reduce::dot(b, b).sqrt(),
        };
        let mut bytes = Vec::new();
        let arrays: [&[u8]; 9] = [
            &image.shares,
            &image.offsets,
            &image.searches,
            &image.columns,
            &image.values,
            right.as_bytes(),
            &image.inverse,
            &image.factors,
            &homes,
        ];
        for array in arrays {
            bytes.extend((array.len() as u64).to_ne_bytes());
            bytes.extend_from_slice(array);
        }
        bytes.extend((image.stride as u64).to_ne_bytes());
        let threshold = (parameters.relative * norm).max(parameters.absolute);
        for number in [threshold, image.weight, image.interval[0], image.interval[1]] {
            bytes.extend(number.to_ne_bytes());
        }
        for number in [parameters.iterations as u32, parameters.stagnation as u32, image.replacement] {
            bytes.extend(number.to_ne_bytes());
        }
        std::fs::write(self.folder.path().join("arrays"), bytes).map_err(|error| error.to_string())
    }

    /// Runs the program to the end of the solve.
    pub fn run(&self, seed: usize, chunk: usize) -> Result<Outcome, String> {
        let folder = self.folder.path();
        succeeds(Command::new(folder.join("launch")).arg(folder).arg(seed.to_string()).arg(chunk.to_string()))?;
        let read = |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let doubles =
            |bytes: &[u8]| bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect::<Vec<f64>>();
        let (homes, state) = (read("homes")?, read("state")?);
        let real = self.dtype.bytes();
        let x = self.layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).ok_or("no x")?;
        let x = &homes[x * self.stride * real..][..self.rows * real];
        let x = match self.dtype {
            DType::F32 => x.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect(),
            DType::F64 => doubles(x),
        };
        let word = |at: usize| state.get(at..).and_then(<[u8]>::first_chunk).map_or(-1, |b| i32::from_ne_bytes(*b));
        let squares = doubles(&state);
        let true_residual = squares.get(8).copied().unwrap_or(f64::NAN).sqrt();
        Ok(Outcome { x, history: doubles(&read("history")?), true_residual, status: word(80), quantity: word(84) })
    }
}

/// Does something with each case, two at once: each takes a compiler, or a processor. What is wrong with any is a failure that
/// names all.
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

/// Runs a program; what it says if it fails is the error.
fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
