//! A system on the device, and its launches.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{LinearSession, Observe};
use abide_core::solver::plan::krylov::{Krylov, Space, Vector};
use abide_core::solver::{Matrix, Outcome, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use abide_core::{Array, DType, Error, Real, Result, reduction};
use abide_shaders::cuda::{KRYLOV_ENTRY, KrylovArguments, KrylovArrays, KrylovNumbers};
use abide_shaders::state::State;
use abide_solvers::{Begin, Run, vectors_of};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, result};

use super::epochs::{self, Launches, numbers, residuals};
use super::outcome::{fresh, left, state_bytes};
use super::packed::PackedSystem;
use crate::driver::during;
use crate::kernels::{Kernels, check_cluster};
use crate::nvrtc::Cubin;

/// A matrix on a CUDA device, and the kernel that solves with it.
pub struct KrylovSession {
    plan: SolvePlan,
    layout: Krylov,
    dtype: DType,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    function: CudaFunction,
    packed: PackedSystem,
    buffers: KrylovArrays<CudaSlice<u8>>,
    /// The number of the iterate's vector.
    x: usize,
    /// Iterations per second of the last launch; 0 before the first.
    rate: f64,
}

impl KrylovSession {
    pub fn open(
        context: &Arc<CudaContext>,
        matrix: &Matrix,
        plan: SolvePlan,
        options: &SolveOptions,
        cubin: Cubin,
    ) -> Result<Self, SolverError> {
        let Some(layout) = plan.krylov().cloned() else {
            return Err(Error::invalid(
                "the plan of a solver",
                "it is not a CUDA device's",
                "plan it with this backend",
            )
            .into());
        };
        context.bind_to_thread().map_err(during("binding the context"))?;
        let mut packed = PackedSystem::new(matrix, options, &layout)?;
        let function = Kernels::load(context, cubin)?.function(KRYLOV_ENTRY, layout.regions.total)?;
        check_residency(&function, &layout, &plan)?;
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let real = matrix.dtype().bytes();
        let vector = packed.stride * real;
        let room = DeviceAllocator { context, stream: &stream };
        let homes = layout.vectors.len() * vector;
        let exchanged = layout.exchanged() * vector;
        let triangle = layout.triangle() * real;
        let basis = layout.basis() * vector;
        let pieces = layout.turns * layout.spread_rows.len() * layout.blocks * real;
        let loaded = packed.shares.len()
            + packed.offsets.len()
            + packed.searches.len()
            + packed.nodes.len()
            + packed.chains.len()
            + packed.partials.len()
            + packed.columns.len()
            + packed.values.len();
        room.check_part("bytes of GMRES's basis", basis, "restart earlier, or choose f32")?;
        room.check(loaded + packed.inverse.len() + homes + exchanged + pieces + basis + triangle + vector)?;
        let mut buffers = KrylovArrays {
            shares: room.load(&packed.shares)?,
            offsets: room.load(&packed.offsets)?,
            searches: room.load(&packed.searches)?,
            nodes: room.load(&packed.nodes)?,
            chains: room.load(&packed.chains)?,
            spread: room.load(&packed.spread)?,
            columns: room.load(&packed.columns)?,
            values: room.load(&packed.values)?,
            inverse: room.load(&packed.inverse)?,
            factors: room.load(&packed.factors)?,
            b: room.zeros(vector)?,
            homes: room.zeros(homes)?,
            exchanged: room.zeros(exchanged)?,
            partials: room.load(&packed.partials)?,
            tagged: room.zeros(0)?,
            pieces: room.zeros(pieces)?,
            basis: room.zeros(basis)?,
            triangle: room.zeros(triangle)?,
            given: room.zeros(0)?,
            beyond: room.zeros(0)?,
            clocks: room.zeros(0)?,
            arrived: room.zeros(128)?,
            state: room.zeros(state_bytes())?,
            // The history is allocated per run, the thresholds per batch.
            history: room.zeros(0)?,
            thresholds: room.zeros(0)?,
        };
        if let Some((number, diagonal)) = &packed.diagonal {
            let mut part = buffers.homes.slice_mut(number * vector..);
            stream.memcpy_htod(diagonal.as_bytes(), &mut part).map_err(during("loading the diagonal"))?;
        }
        stream.synchronize().map_err(during("loading a matrix"))?;
        packed.unload();
        let x = layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).unwrap_or(0);
        let dtype = matrix.dtype();
        Ok(KrylovSession {
            plan,
            layout,
            dtype,
            context: context.clone(),
            stream,
            function,
            packed,
            buffers,
            x,
            rate: 0.0,
        })
    }

    fn solve_of<T: Real>(
        &mut self,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let begin = Run::open(
            self.plan.method.profile(),
            self.plan.rows,
            b,
            x,
            |b| reduction::dot(b, b),
            parameters,
            observe,
        )?;
        let run = match begin {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        self.context.bind_to_thread().map_err(during("binding the context"))?;
        let vector = self.packed.stride * self.dtype.bytes();
        let home = self.x * vector..self.x * vector + size_of_val(x);
        let upload = |values: &[T]| T::into_array(values.to_vec());
        let (right, guess) = (upload(b), upload(x));
        let stream = self.stream.clone();
        stream.memcpy_htod(right.as_bytes(), &mut self.buffers.b).map_err(during("loading b"))?;
        let mut part = self.buffers.homes.slice_mut(home.clone());
        stream.memcpy_htod(guess.as_bytes(), &mut part).map_err(during("loading x"))?;
        stream.memcpy_htod(&fresh(), &mut self.buffers.state).map_err(during("resetting a solver"))?;
        stream.synchronize().map_err(during("loading vectors"))?;
        let outcome = epochs::run::<T>(self, run, parameters);
        if !matches!(outcome, Err(SolverError::Invalid(_))) {
            let from = self.buffers.homes.device_ptr(&stream).0 + home.start as u64;
            // SAFETY: `home` is as long as `x`, whose values may have any bits; the stream is waited for
            // before `x` is used.
            unsafe { result::memcpy_dtoh_async(x, from, stream.cu_stream()) }.map_err(during("reading x"))?;
            stream.synchronize().map_err(during("reading x"))?;
        }
        outcome
    }
}

impl Launches for KrylovSession {
    fn make_room(&mut self, entries: usize) -> Result<()> {
        let room = DeviceAllocator { context: &self.context, stream: &self.stream };
        room.check(entries * 8)?;
        self.buffers.history = room.zeros(entries * 8)?;
        Ok(())
    }

    fn launch(
        &mut self,
        run: &Run<'_>,
        base: u32,
        parameters: &Parameters,
        until: u32,
    ) -> Result<(State, Outcome, f64)> {
        let stream = &self.stream;
        let at = |buffer: &CudaSlice<u8>| buffer.device_ptr(stream).0;
        let mut arrays = self.buffers.map(at);
        arrays.history = arrays.history.wrapping_sub(8 * u64::from(base));
        let stride = self.packed.stride as u64;
        let numbers = KrylovNumbers { stride, turn: stride, ..numbers(&self.packed, run, parameters, until) };
        let mut arguments = KrylovArguments { arrays, numbers };
        // SAFETY: the counter is a buffer of 128 bytes; the stream orders this before the launch.
        unsafe { result::memset_d8_async(arguments.arrays.arrived, 0, 128, stream.cu_stream()) }
            .map_err(during("clearing a counter"))?;
        let grid = (self.layout.blocks as u32, 1, 1);
        let block = (self.layout.threads as u32, 1, 1);
        let (shared, entry) = (self.layout.regions.total as u32, self.function.cu_function());
        let mut parameters: [*mut c_void; 1] = [(&raw mut arguments).cast()];
        let begun = Instant::now();
        // SAFETY: the kernel takes one `Arguments` by value, whose text is made of the struct here, and the
        // call copies it. Every buffer is as long as the layout says because the session made them so.
        // Co-residency was checked.
        let launched = unsafe {
            match self.layout.space {
                Space::Grid => result::launch_cooperative_kernel(
                    entry,
                    grid,
                    block,
                    shared,
                    stream.cu_stream(),
                    &mut parameters,
                ),
                Space::Block | Space::Cluster => {
                    result::launch_kernel(entry, grid, block, shared, stream.cu_stream(), &mut parameters)
                }
            }
        };
        launched.map_err(during("launching a solver"))?;
        stream.synchronize().map_err(during("running a solver"))?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut bytes = vec![0; state_bytes()];
        stream
            .memcpy_dtoh(&self.buffers.state.slice(..bytes.len()), &mut bytes)
            .map_err(during("reading a solver's state"))?;
        stream.synchronize().map_err(during("reading a solver's state"))?;
        let (state, outcome) = left(&bytes)?;
        Ok((state, outcome, seconds))
    }

    fn history(&mut self, entries: Range<usize>) -> Result<Vec<f64>> {
        let mut bytes = vec![0; entries.len() * 8];
        let part = self.buffers.history.slice(entries.start * 8..entries.end * 8);
        self.stream.memcpy_dtoh(&part, &mut bytes).map_err(during("reading the history"))?;
        self.stream.synchronize().map_err(during("reading the history"))?;
        Ok(residuals(&bytes))
    }

    fn rate(&mut self) -> &mut f64 {
        &mut self.rate
    }
}

impl LinearSession for KrylovSession {
    fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        match self.dtype {
            DType::F32 => {
                let (b, x) = vectors_of::<f32>(b, x)?;
                self.solve_of(b, x, parameters, observe)
            }
            DType::F64 => {
                let (b, x) = vectors_of::<f64>(b, x)?;
                self.solve_of(b, x, parameters, observe)
            }
        }
    }
}

/// What to change where blocks cannot all be resident.
const CHANGE: &str = "choose another cache policy, or --backend cpu";

/// Checks that all blocks can be resident, because they wait for each other; the error names both numbers.
fn check_residency(function: &CudaFunction, layout: &Krylov, plan: &SolvePlan) -> Result<()> {
    if layout.space == Space::Cluster {
        return check_cluster(function, [layout.blocks, layout.threads, layout.regions.total], CHANGE);
    }
    check_blocks(function, layout, plan.device.multiprocessors, layout.blocks)
}

/// Checks that so many blocks of a grid can be resident on so many multiprocessors.
pub(super) fn check_blocks(
    function: &CudaFunction,
    layout: &Krylov,
    multiprocessors: usize,
    blocks: usize,
) -> Result<()> {
    let (threads, shared) = (layout.threads as u32, layout.regions.total);
    let a_multiprocessor = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, shared, None)
        .map_err(during("asking for the occupancy"))?;
    let resident = a_multiprocessor as usize * multiprocessors;
    if resident < blocks {
        return Err(Error::limit("co-resident blocks of a persistent solver", blocks, resident, CHANGE));
    }
    Ok(())
}

/// The place where buffers are allocated.
pub(super) struct DeviceAllocator<'a> {
    pub context: &'a Arc<CudaContext>,
    pub stream: &'a Arc<CudaStream>,
}

impl DeviceAllocator<'_> {
    /// Checks that so much device memory is free.
    pub fn check(&self, bytes: usize) -> Result<()> {
        self.check_part("bytes of device memory of a solver", bytes, "choose f32, or another backend")
    }

    /// Checks the memory for a part; the error gives its name and what to change.
    fn check_part(&self, what: &str, bytes: usize, change: &str) -> Result<()> {
        let (free, _) = self.context.mem_get_info().map_err(during("asking for free memory"))?;
        if bytes > free {
            return Err(Error::limit(what, bytes, format!("{free} free"), change));
        }
        Ok(())
    }

    /// Allocates a buffer of zeros, at least a cache line long so that it has an address.
    pub fn zeros(&self, bytes: usize) -> Result<CudaSlice<u8>> {
        self.stream.alloc_zeros::<u8>(bytes.max(128)).map_err(during("allocating a solver's memory"))
    }

    pub fn load(&self, bytes: &[u8]) -> Result<CudaSlice<u8>> {
        let mut buffer = self.zeros(bytes.len())?;
        if !bytes.is_empty() {
            let mut part = buffer.slice_mut(..bytes.len());
            self.stream.memcpy_htod(bytes, &mut part).map_err(during("loading a solver's memory"))?;
        }
        Ok(buffer)
    }
}
