//! A system on several devices, and the launches of their kernels.
//!
//! A launch is one cooperative kernel on each device, with the blocks of all its slabs; all blocks of all devices wait for
//! each other (shaders/kernels/cuda/krylov/krylov.cuh). No kernel is launched before the counters of all slabs are clear, and the host
//! waits for all of them. A wait in a kernel ends after a deadline, or when a block or this host sets the abort word of
//! all slabs. So where a device does not launch or fails, the others end.

use std::ffi::c_void;
use std::ops::Range;
use std::time::Instant;

use abide_core::backend::{LinearSession, Observe};
use abide_core::communicator::Endpoint;
use abide_core::solver::plan::krylov::{Krylov, Vector};
use abide_core::solver::{
    Matrix, Outcome, Parameters, RankSolve, Report, SolveOptions, SolvePlan, SolverError, Status,
};
use abide_core::{Array, DType, Error, Real, Result, reduction};
use abide_shaders::cuda::{KRYLOV_ALWAYS, KRYLOV_ENTRY, KrylovArguments, KrylovNumbers};
use abide_shaders::state::State;
use abide_solvers::{Begin, Run, vectors_of};
use cudarc::driver::result;

use super::epochs::{self, Launches, numbers, residuals};
use super::loaded::{Here, Loaded, Member, connect, load, read};
use super::outcome::{fresh, left, state_bytes};
use super::packed::PackedSystem;
use super::peers::PeerProcesses;
use super::session::check_blocks;
use super::slab::numbers_of;
use crate::driver::{bind, during};
use crate::kernels::Kernels;
use crate::nvrtc::Cubin;

/// Bytes from a slab's counter to its abort word, which ends the waits of its blocks.
const GIVEN_UP: u64 = 4;

/// A system whose rows are divided among devices.
pub(super) struct DistributedSession {
    /// Peer processes, where each has a device. Declared first, because their mappings must be unmapped before our
    /// memory is freed.
    peers: Option<PeerProcesses>,
    plan: SolvePlan,
    layout: Krylov,
    dtype: DType,
    packed: PackedSystem,
    /// The devices of this process, and their slabs in order.
    devices: Vec<Here>,
    slabs: Vec<Loaded>,
    /// The number of the iterate's vector.
    x: usize,
    rate: f64,
    /// The last tag that a launch may have given to nodes.
    tags: u32,
    /// Seconds of launches since they were last asked for.
    seconds: f64,
    /// Why no solve is possible any more.
    stopped: Option<Error>,
}

impl DistributedSession {
    /// Loads the slabs of a plan, each on its device. Where processes have one each, `members` is this one's alone, and the
    /// others are met over `endpoint`.
    pub fn open(
        matrix: &Matrix,
        plan: SolvePlan,
        options: &SolveOptions,
        cubin: &Cubin,
        members: Vec<Member>,
        endpoint: Option<Endpoint>,
    ) -> Result<DistributedSession, SolverError> {
        let Some(layout) = plan.krylov().cloned() else {
            let change = "plan it with this backend";
            return Err(Error::invalid("the plan of a solver", "it is not a CUDA device's", change).into());
        };
        let mut packed = PackedSystem::new(matrix, options, &layout)?;
        let mut devices = Vec::with_capacity(members.len());
        for member in members {
            let context = &member.context;
            context.bind_to_thread().map_err(during("binding the context"))?;
            let function =
                Kernels::load(context, cubin.clone())?.function(KRYLOV_ENTRY, layout.regions.total)?;
            let blocks = layout.blocks_of_a_slab() * member.slabs.len();
            check_blocks(&function, &layout, member.multiprocessors, blocks)?;
            let [stream, word] = [context.new_stream(), context.new_stream()]
                .map(|made| made.map_err(during("making a stream")));
            devices.push(Here { stream: stream?, word: word?, function, member });
        }
        let mut peers = endpoint.map(PeerProcesses::new);
        let mut slabs = Vec::with_capacity(plan.ranks.len());
        for (device, here) in devices.iter().enumerate() {
            for &number in &here.member.slabs {
                let Some(rows) = plan.ranks.get(number) else {
                    let change = "plan with these devices";
                    return Err(Error::limit("number of a slab", number, plan.ranks.len(), change).into());
                };
                let (slab, diagonal) = (packed.slab(&layout, number)?, packed.diagonal_of(rows)?);
                slabs.push(load(here, [number, device], &slab, diagonal, peers.is_some())?);
            }
        }
        slabs.sort_by_key(|slab| slab.number);
        let expected = if peers.is_some() { 1 } else { plan.ranks.len() };
        if slabs.len() != expected {
            let change = "plan with these devices";
            return Err(Error::limit("slabs of a plan", expected, slabs.len(), change).into());
        }
        let bases = match &mut peers {
            Some(peers) => peers.connect(&layout, &devices[slabs[0].device], &slabs[0])?,
            None => slabs.iter().map(|slab| slab.arrays.arrived).collect(),
        };
        for slab in &slabs {
            connect(&devices[slab.device], slab, &bases)?;
        }
        for here in &devices {
            here.stream.synchronize().map_err(during("loading a matrix"))?;
        }
        packed.unload();
        let x = layout.vectors.iter().position(|(vector, _)| *vector == Vector::X).unwrap_or(0);
        let dtype = matrix.dtype();
        Ok(DistributedSession {
            peers,
            plan,
            layout,
            dtype,
            packed,
            devices,
            slabs,
            x,
            rate: 0.0,
            tags: 0,
            seconds: 0.0,
            stopped: None,
        })
    }

    /// Returns a slab's address of the iterate.
    fn iterate(&self, slab: &Loaded) -> u64 {
        let real = self.dtype.bytes();
        slab.arrays.homes + ((self.x * slab.stride + slab.rows.start) * real) as u64
    }

    fn solve_of<T: Real>(
        &mut self,
        b: &[T],
        x: &mut [T],
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone().into());
        }
        let profile = self.plan.method.profile();
        let square = |b: &[T]| reduction::dot(b, b);
        let run = match Run::open(profile, self.plan.rows, b, x, square, parameters, observe)? {
            Begin::Zero(report) => return Ok(report),
            Begin::Iterate(run) => run,
        };
        for slab in &self.slabs {
            let (stream, real) = (&self.devices[slab.device].stream, size_of::<T>() as u64);
            bind(stream)?;
            let right = slab.arrays.b + slab.rows.start as u64 * real;
            // SAFETY: both places have room for the slab's rows, and the stream is waited for while the vectors live.
            unsafe {
                result::memcpy_htod_async(right, &b[slab.rows.clone()], stream.cu_stream())
                    .and_then(|()| {
                        result::memcpy_htod_async(
                            self.iterate(slab),
                            &x[slab.rows.clone()],
                            stream.cu_stream(),
                        )
                    })
                    .and_then(|()| result::memcpy_htod_async(slab.arrays.state, &fresh(), stream.cu_stream()))
            }
            .map_err(during("loading vectors"))?;
            stream.synchronize().map_err(during("loading vectors"))?;
        }
        let outcome = epochs::run::<T>(self, run, parameters);
        if let Err(SolverError::Invalid(_)) = outcome {
            return outcome;
        }
        for slab in &self.slabs {
            let stream = &self.devices[slab.device].stream;
            bind(stream)?;
            // SAFETY: the values may have any bits; the stream is waited for before they are used.
            unsafe {
                result::memcpy_dtoh_async(&mut x[slab.rows.clone()], self.iterate(slab), stream.cu_stream())
            }
            .map_err(during("reading x"))?;
            stream.synchronize().map_err(during("reading x"))?;
        }
        outcome
    }

    fn solve_in_type(
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

    /// Launches on all devices; the number of those that have begun comes with an error.
    fn begin(&self, arguments: &[KrylovArguments]) -> std::result::Result<(), (usize, Error)> {
        let block = (self.layout.threads as u32, 1, 1);
        let shared = self.layout.regions.total as u32;
        for (begun, here) in self.devices.iter().enumerate() {
            let slabs = &here.member.slabs;
            let mut handed = vec![KrylovArguments::default(); self.layout.slabs.of_a_device.max(slabs.len())];
            let own = self.slabs.iter().zip(arguments).filter(|(slab, _)| slab.device == begun);
            handed.iter_mut().zip(own).for_each(|(handed, (_, arguments))| *handed = *arguments);
            let mut parameters: [*mut c_void; 1] = [handed.as_mut_ptr().cast()];
            let grid = ((self.layout.blocks_of_a_slab() * slabs.len()) as u32, 1, 1);
            let mut launch = || {
                here.member.context.bind_to_thread()?;
                // SAFETY: the kernel takes as many `Arguments` by value as a device has slabs at most, whose text is made of
                // the struct here, and the call copies them. Every array is as long as the layout says. Co-residency was
                // checked. Memory of other devices is open to this one.
                unsafe {
                    result::launch_cooperative_kernel(
                        here.function.cu_function(),
                        grid,
                        block,
                        shared,
                        here.stream.cu_stream(),
                        &mut parameters,
                    )
                }
            };
            launch().map_err(|error| (begun, here.error("launching a solver", error)))?;
        }
        Ok(())
    }

    /// Aborts the waits of the blocks of all slabs.
    fn abort(&self) {
        for slab in &self.slabs {
            let here = &self.devices[slab.device];
            // A device that cannot be reached ends by its own deadline.
            let _ = here.member.context.bind_to_thread().and_then(|()| {
                // SAFETY: the word is in the slab's region; the stream is waited for while the value lives.
                unsafe {
                    result::memcpy_htod_async(slab.arrays.arrived + GIVEN_UP, &[1_u32], here.word.cu_stream())
                }?;
                here.word.synchronize()
            });
        }
    }

    /// Waits for all devices, and returns the first error of one.
    fn wait(&mut self) -> Result<()> {
        let mut first = Ok(());
        if let Some(peers) = &mut self.peers {
            first = self.devices.iter().try_for_each(|here| peers.wait(here));
            if first.is_err() {
                self.abort();
            }
        }
        for here in &self.devices {
            let ended = here.member.context.bind_to_thread().and_then(|()| here.stream.synchronize());
            if let Err(error) = ended
                && first.is_ok()
            {
                first = Err(here.error("running a solver", error));
                self.abort();
            }
        }
        first
    }

    /// Reads the state of each slab, which must be the same, and returns it.
    fn state(&mut self) -> Result<(State, Outcome)> {
        let mut first: Option<Vec<u8>> = None;
        for slab in &self.slabs {
            let here = &self.devices[slab.device];
            let bytes = read(here, slab.arrays.state, state_bytes(), "reading a solver's state")?;
            if left(&bytes)?.1.status == Status::Lost {
                let message =
                    "a block waited for those of another device for some 20 seconds, or was told to give up";
                return Err(Error::device("cuda", format!("running a solver {}", here.words(slab)), message));
            }
            match &first {
                None => first = Some(bytes),
                Some(first) if *first != bytes => {
                    let message = "its sums are not those of the first device";
                    return Err(Error::device(
                        "cuda",
                        format!("running a solver {}", here.words(slab)),
                        message,
                    ));
                }
                Some(_) => {}
            }
        }
        let first = first.unwrap_or_default();
        if let Some(peers) = &mut self.peers {
            peers.compare(&first)?;
        }
        left(&first)
    }

    /// Keeps an error after which devices may no longer be in step.
    fn keep<V>(&mut self, result: Result<V>) -> Result<V> {
        result.inspect_err(|error| self.stopped = Some(error.clone()))
    }
}

impl Launches for DistributedSession {
    fn make_room(&mut self, entries: usize) -> Result<()> {
        for slab in &mut self.slabs {
            slab.make_room(&self.devices[slab.device], entries)?;
        }
        Ok(())
    }

    fn ready(&mut self, until: u32) -> Result<u32> {
        let cleared = self.clear();
        let agreed = match &mut self.peers {
            Some(peers) => cleared.and_then(|()| peers.agree(until)),
            None => cleared.map(|()| until),
        };
        self.keep(agreed)
    }

    fn launch(
        &mut self,
        run: &Run<'_>,
        base: u32,
        parameters: &Parameters,
        until: u32,
    ) -> Result<(State, Outcome, f64)> {
        // Each iteration has one sum of tagged nodes. The largest tag is reserved for nodes that no block writes.
        let sums = until - base + 2;
        if self.tags >= KRYLOV_ALWAYS - sums {
            self.tags = 0;
        }
        let tags = u64::from(self.tags);
        self.tags += sums;
        let common = KrylovNumbers { tags, ..numbers(&self.packed, run, parameters, until) };
        let arguments: Vec<KrylovArguments> = (self.slabs.iter())
            .map(|slab| {
                let mut arrays = slab.arrays;
                arrays.history = arrays.history.wrapping_sub(8 * u64::from(base));
                KrylovArguments {
                    arrays,
                    numbers: numbers_of(common, [slab.stride, slab.turn], &slab.beyond),
                }
            })
            .collect();
        let begun = Instant::now();
        if let Err((others, error)) = self.begin(&arguments) {
            if others > 0 {
                self.abort();
                // The reason is the launch that failed.
                let _ = self.wait();
            }
            return self.keep(Err(error));
        }
        let ended = self.wait();
        let seconds = begun.elapsed().as_secs_f64();
        self.seconds += seconds;
        let state = ended.and_then(|()| self.state());
        let (state, outcome) = self.keep(state)?;
        Ok((state, outcome, seconds))
    }

    fn tell<R>(&mut self, tell: impl FnOnce() -> Result<R, SolverError>) -> Result<R, SolverError> {
        match &mut self.peers {
            Some(peers) => peers.tell(tell),
            None => tell(),
        }
    }

    fn history(&mut self, entries: Range<usize>) -> Result<Vec<f64>> {
        let Some(slab) = self.slabs.first() else { return Ok(Vec::new()) };
        let from = slab.arrays.history + 8 * entries.start as u64;
        Ok(residuals(&read(&self.devices[slab.device], from, 8 * entries.len(), "reading the history")?))
    }

    fn rate(&mut self) -> &mut f64 {
        &mut self.rate
    }
}

impl DistributedSession {
    /// Clears the counters of all slabs, before any block adds to one.
    fn clear(&self) -> Result<()> {
        let what = "clearing counters";
        for slab in &self.slabs {
            let here = &self.devices[slab.device];
            here.member.context.bind_to_thread().map_err(during(what))?;
            // SAFETY: the region begins with 128 bytes for the counter and the word behind it.
            unsafe { result::memset_d8_async(slab.arrays.arrived, 0, 128, here.stream.cu_stream()) }
                .map_err(during(what))?;
        }
        for here in &self.devices {
            here.member.context.bind_to_thread().map_err(during(what))?;
            here.stream.synchronize().map_err(during(what))?;
        }
        Ok(())
    }
}

impl LinearSession for DistributedSession {
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
        let decision = self.peers.as_mut().map(PeerProcesses::begin);
        match decision {
            Some(decision) => self.solve_in_type(b, x, parameters, &mut decision.observer(observe)),
            None => self.solve_in_type(b, x, parameters, observe),
        }
    }

    /// Returns for each slab the share of its launches that its first block spent waiting for all blocks.
    fn take_ranks(&mut self) -> Vec<RankSolve> {
        let all = std::mem::take(&mut self.seconds);
        let taken = self.slabs.iter().map(|slab| {
            let here = &self.devices[slab.device];
            // A report is not worth an error.
            let clocks = read(here, slab.arrays.clocks, 16, "reading clocks").unwrap_or_default();
            let clocks: Vec<f64> =
                clocks.as_chunks::<8>().0.iter().map(|clocks| u64::from_ne_bytes(*clocks) as f64).collect();
            let _ = here.member.context.bind_to_thread().and_then(|()| {
                // SAFETY: both numbers are there; the stream orders this before what follows.
                unsafe { result::memset_d8_async(slab.arrays.clocks, 0, 16, here.stream.cu_stream()) }
            });
            let waited = match clocks[..] {
                [waited, whole] if whole > 0.0 => (waited / whole).min(1.0),
                _ => 0.0,
            };
            RankSolve {
                rank: slab.number,
                rows: slab.rows.clone(),
                exchange: "stores",
                seconds: all * (1.0 - waited),
                exchange_seconds: all * waited,
                efficiency: 1.0 - waited,
            }
        });
        taken.collect()
    }
}
