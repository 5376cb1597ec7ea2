//! Many small systems of one pattern in one launch, one block per system.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::time::Instant;

use abide_core::backend::{BatchSystem, check_batch};
use abide_core::solver::plan::krylov::{Configuration, Krylov, Space, Vector};
use abide_core::solver::{
    Matrix, Method, Parameters, Preconditioning, Report, SolveOptions, SolvePlan, SolverError, Status,
};
use abide_core::{Array, Backend, DType, DeviceSpec, Error, Real, Result, reduction};
use abide_shaders::cuda::{KRYLOV_ENTRY, KrylovArguments, KrylovArrays, KrylovNumbers};
use abide_solvers::plan::krylov::{configurations, plan_krylov_configuration};
use abide_solvers::{Begin, Run};
use cudarc::driver::{CudaSlice, DevicePtr, result};

use super::epochs::{EPOCH_SECONDS, FIRST_EPOCH};
use super::fit::fit_solver;
use super::outcome::{fresh, left, state_bytes};
use super::packed::PackedSystem;
use super::session::DeviceAllocator;
use crate::backend::CudaBackend;
use crate::driver::during;
use crate::kernels::{Kernels, target};

/// The most threads of a block; several systems shall share a multiprocessor.
const THREADS: usize = 256;

/// Plans one system of a batch, which one block solves: the form of the least estimate that fits.
pub fn plan_batch(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions) -> Result<SolvePlan> {
    let refused = |what: &str| {
        Error::unsupported(
            "backend cuda",
            format!("its batches do not include {what}"),
            "take cg or bicgstab with none, jacobi or block-jacobi, or solve one by one",
        )
    };
    if !matches!(options.method, Method::Cg | Method::BiCgStab) {
        return Err(refused(options.method.name()));
    }
    if let Preconditioning::Chebyshev { .. } = options.preconditioner {
        return Err(refused("the preconditioner chebyshev"));
    }
    let in_a_block = configurations(matrix, device, options)
        .into_iter()
        .filter(|configuration| configuration.space == Space::Block);
    let plans = in_a_block.filter_map(|configuration| {
        let configuration = Configuration { threads: configuration.threads.min(THREADS), ..configuration };
        plan_krylov_configuration(matrix, device, options, &configuration).ok()
    });
    let seconds = |plan: &SolvePlan| plan.krylov().map_or(f64::INFINITY, |krylov| krylov.seconds);
    plans.min_by(|a, b| seconds(a).total_cmp(&seconds(b))).ok_or_else(|| {
        let most = device.shared_bytes_for(1) / matrix.dtype().bytes();
        Error::limit(
            "rows of a system in a batch",
            matrix.rows(),
            format!("about {most}"),
            "solve them one by one",
        )
    })
}

/// Solves the systems; a system that is wrong by itself gets its own error.
pub fn solve(
    backend: &CudaBackend,
    systems: &mut [BatchSystem<'_>],
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<Vec<Result<Report, SolverError>>> {
    check_batch(systems)?;
    if parameters.time.is_some() {
        let reason = "systems of a batch have no clocks of their own";
        return Err(Error::invalid("a limit on time", reason, "limit the iterations"));
    }
    match systems.first().map(|system| system.matrix.dtype()) {
        None => Ok(Vec::new()),
        Some(DType::F32) => solve_of::<f32>(backend, systems, options, parameters),
        Some(DType::F64) => solve_of::<f64>(backend, systems, options, parameters),
    }
}

/// A system that iterates.
struct Live<'r> {
    number: usize,
    run: Run<'r>,
    packed: PackedSystem,
}

fn solve_of<T: Real>(
    backend: &CudaBackend,
    systems: &mut [BatchSystem<'_>],
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<Vec<Result<Report, SolverError>>> {
    let Some(first) = systems.first().map(|system| system.matrix) else { return Ok(Vec::new()) };
    let plan = plan_batch(first, backend.device(), options)?;
    let (plan, cubin) = fit_solver(&backend.nvrtc, first, &plan, options, &target(backend.device()), true)?;
    let Some(layout) = plan.krylov() else {
        return Err(Error::invalid(
            "the plan of a batch",
            "it is not a CUDA device's",
            "plan it with this backend",
        ));
    };
    let mut observers: Vec<_> =
        systems.iter().map(|_| |_: usize, _: f64| ControlFlow::Continue(())).collect();
    let mut results: Vec<Option<Result<Report, SolverError>>> = systems.iter().map(|_| None).collect();
    let mut live: Vec<Live<'_>> = Vec::new();
    for (number, (system, observe)) in systems.iter_mut().zip(&mut observers).enumerate() {
        let begun = begin::<T>(system, options, parameters, layout, observe);
        match begun {
            Ok((Begin::Iterate(run), packed)) => live.push(Live { number, run, packed }),
            Ok((Begin::Zero(report), _)) => results[number] = Some(Ok(report)),
            Err(error) => results[number] = Some(Err(error)),
        }
    }
    if !live.is_empty() {
        let launch = Launch { backend, layout, parameters, kernels: Kernels::load(&backend.context, cubin)? };
        for (number, result) in launch.all::<T>(systems, live)? {
            results[number] = Some(result);
        }
    }
    // Every system is in one of the two groups above.
    Ok(results.into_iter().flatten().collect())
}

/// Checks a system and finds its threshold; packs it if it iterates.
fn begin<'r, T: Real>(
    system: &mut BatchSystem<'_>,
    options: &SolveOptions,
    parameters: &'r Parameters,
    layout: &Krylov,
    observe: &'r mut (impl FnMut(usize, f64) -> ControlFlow<()> + Send),
) -> Result<(Begin<'r>, PackedSystem), SolverError> {
    system.matrix.check(options)?;
    system.matrix.check_vector("b", system.b)?;
    system.matrix.check_vector("x", system.x)?;
    let packed = PackedSystem::new(system.matrix, options, layout)?;
    let (b, x) = (T::slice(system.b).unwrap_or_default(), T::slice_mut(system.x).unwrap_or_default());
    let rows = system.matrix.rows();
    let begin =
        Run::open(options.method.profile(), rows, b, x, |b| reduction::dot(b, b), parameters, observe)?;
    Ok((begin, packed))
}

/// The data that all launches of a batch share.
struct Launch<'a> {
    backend: &'a CudaBackend,
    layout: &'a Krylov,
    parameters: &'a Parameters,
    kernels: Kernels,
}

impl Launch<'_> {
    /// Runs all systems to their ends, and returns how each of them ended, by its number.
    fn all<T: Real>(
        &self,
        systems: &mut [BatchSystem<'_>],
        live: Vec<Live<'_>>,
    ) -> Result<Vec<(usize, Result<Report, SolverError>)>> {
        let Some(first) = live.first().map(|one| &one.packed) else { return Ok(Vec::new()) };
        let context = &self.backend.context;
        context.bind_to_thread().map_err(during("binding the context"))?;
        let function = self.kernels.function(KRYLOV_ENTRY, self.layout.regions.total)?;
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let room = DeviceAllocator { context, stream: &stream };
        let (stride, vectors, count) = (first.stride, self.layout.vectors.len(), live.len());
        let most = u32::try_from(self.parameters.iterations).unwrap_or(u32::MAX - 2).min(u32::MAX - 2);
        let histories = most as usize + 2;
        let real = T::DTYPE.bytes();
        let all = |part: fn(&PackedSystem) -> &[u8]| {
            live.iter().flat_map(|one| part(&one.packed)).copied().collect::<Vec<u8>>()
        };
        let x = self.layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).unwrap_or(0);
        let (values, inverse) = (all(|packed| &packed.values), all(|packed| &packed.inverse));
        let (mut right, mut homes) =
            (vec![0_u8; count * stride * real], vec![0_u8; count * vectors * stride * real]);
        for (place, one) in live.iter().enumerate() {
            let system = &systems[one.number];
            copy(&mut right, place * stride * real, system.b.as_bytes());
            copy(&mut homes, (place * vectors + x) * stride * real, system.x.as_bytes());
            if let Some((number, diagonal)) = &one.packed.diagonal {
                copy(&mut homes, (place * vectors + number) * stride * real, diagonal.as_bytes());
            }
        }
        room.check(values.len() + inverse.len() + right.len() + homes.len() + count * histories * 8)?;
        let thresholds: Vec<u8> = live.iter().flat_map(|one| one.run.threshold().to_ne_bytes()).collect();
        let states: Vec<u8> = std::iter::repeat_with(fresh).take(count).flatten().collect();
        let (shares, offsets) = (room.load(&first.shares)?, room.load(&first.offsets)?);
        let (searches, columns) = (room.load(&first.searches)?, room.load(&first.columns)?);
        let (values_there, inverse_there) = (room.load(&values)?, room.load(&inverse)?);
        let (right, homes_there) = (room.load(&right)?, room.load(&homes)?);
        let (thresholds, states_there) = (room.load(&thresholds)?, room.load(&states)?);
        let history = room.zeros(count * histories * 8)?;
        let at = |buffer: &CudaSlice<u8>| buffer.device_ptr(&stream).0;
        let arrays = KrylovArrays {
            shares: at(&shares),
            offsets: at(&offsets),
            searches: at(&searches),
            columns: at(&columns),
            values: at(&values_there),
            b: at(&right),
            inverse: at(&inverse_there),
            homes: at(&homes_there),
            state: at(&states_there),
            history: at(&history),
            thresholds: at(&thresholds),
            ..KrylovArrays::default()
        };
        let numbers = KrylovNumbers {
            stride: stride as u64,
            entries: (values.len() / count / real) as u64,
            inverses: (inverse.len() / count / real) as u64,
            histories: histories as u64,
            most,
            stagnation: self.parameters.stagnation(),
            ..KrylovNumbers::default()
        };
        let mut arguments = KrylovArguments { arrays, numbers };
        let grid = u32::try_from(count).ok().filter(|&count| count <= i32::MAX as u32);
        let grid = grid.ok_or_else(|| {
            Error::limit("systems of a batch", count, i32::MAX, "solve them in several batches")
        })?;
        let mut bytes = vec![0; count * state_bytes()];
        let (mut seconds, mut epoch) = (0.0, FIRST_EPOCH);
        loop {
            let until = &mut arguments.numbers.until;
            *until = until.saturating_add(epoch).min(most + 1);
            let begun = Instant::now();
            let mut passed: [*mut c_void; 1] = [(&raw mut arguments).cast()];
            // SAFETY: the kernel takes one `Arguments` by value, which the call copies; every buffer holds as
            // much for each system as the layout and the strides say. Blocks wait for none but their own
            // threads.
            unsafe {
                result::launch_kernel(
                    function.cu_function(),
                    (grid, 1, 1),
                    (self.layout.threads as u32, 1, 1),
                    self.layout.regions.total as u32,
                    stream.cu_stream(),
                    &mut passed,
                )
            }
            .map_err(during("launching a batch"))?;
            let states = states_there.slice(..bytes.len());
            stream.memcpy_dtoh(&states, &mut bytes).map_err(during("reading states"))?;
            stream.synchronize().map_err(during("running a batch"))?;
            let took = begun.elapsed().as_secs_f64();
            seconds += took;
            let running =
                |state: &[u8]| left(state).is_ok_and(|(_, outcome)| outcome.status == Status::Running);
            if arguments.numbers.until > most || !bytes.chunks(state_bytes()).any(running) {
                break;
            }
            epoch =
                (f64::from(epoch) * EPOCH_SECONDS / took.max(1e-6)).clamp(f64::from(FIRST_EPOCH), 1e8) as u32;
        }
        let homes_back = homes_there.slice(..homes.len());
        stream.memcpy_dtoh(&homes_back, &mut homes).map_err(during("reading x"))?;
        stream.synchronize().map_err(during("reading x"))?;
        let mut ended = Vec::with_capacity(count);
        for (place, mut one) in live.into_iter().enumerate() {
            let (state, outcome) = left(&bytes[place * state_bytes()..])?;
            let length = (state.length as usize).min(histories);
            let mut residuals = vec![0; length * 8];
            if length > 0 {
                let part = history.slice(place * histories * 8..(place * histories + length) * 8);
                stream.memcpy_dtoh(&part, &mut residuals).map_err(during("reading a history"))?;
                stream.synchronize().map_err(during("reading a history"))?;
            }
            let residuals: Vec<f64> =
                residuals.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect();
            one.run.timed(seconds);
            let flow = one.run.absorb::<T>("cuda", &outcome, &residuals);
            let result = flow.and_then(|flow| match flow {
                ControlFlow::Break(()) => one.run.conclude(state.true_square.sqrt()),
                ControlFlow::Continue(()) => {
                    Err(Error::device("cuda", "running a batch", "a system was left before it ended").into())
                }
            });
            take(&homes[(place * vectors + x) * stride * real..], systems[one.number].x);
            ended.push((one.number, result));
        }
        Ok(ended)
    }
}

fn copy(to: &mut [u8], at: usize, from: &[u8]) {
    to[at..at + from.len()].copy_from_slice(from);
}

/// Reads an array from bytes.
fn take(from: &[u8], to: &mut Array) {
    match to {
        Array::F32(to) => {
            to.iter_mut().zip(from.as_chunks::<4>().0).for_each(|(x, b)| *x = f32::from_ne_bytes(*b))
        }
        Array::F64(to) => {
            to.iter_mut().zip(from.as_chunks::<8>().0).for_each(|(x, b)| *x = f64::from_ne_bytes(*b))
        }
    }
}
