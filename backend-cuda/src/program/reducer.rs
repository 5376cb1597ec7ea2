//! Reductions of fields between the passes of a session, by the kernels that a program's stages have.

use std::sync::Arc;

use abide_core::backend::{Ahead, Reducer};
use abide_core::expr::Node;
use abide_core::plan::{Execution, Fuse, Options, Tune};
use abide_core::program::{Boxes, Clock, Groups, Stage, Storage};
use abide_core::{DeviceSpec, Error, Problem, Result, Session};
use abide_planner::{Fitted, plan_stepwise};
use abide_shaders::cuda::{ProgramKernels, program_scalars};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr};

use super::device_clock::DeviceClock;
use super::launch_kernel;
use super::memory::{Progress, rounded_at};
use crate::driver::{bind, during};
use crate::kernels::{Kernels, fit, target};
use crate::lent::DeviceBuffer;
use crate::nvrtc::Nvrtc;
use crate::session::Reserved;

const REDUCING: &str = "reducing fields between passes";

/// The reductions of a problem, compiled.
pub(crate) struct Reductions {
    problem: Problem,
    storage: Storage,
    kernels: ProgramKernels,
    /// Of each reduction, in the order of its launches.
    functions: Vec<Vec<CudaFunction>>,
    /// Whether a formula reads parameters or scalars.
    reads_scalars: bool,
    /// The session's stream, and what kernels need besides fields, once the first reduction was made.
    memory: Option<Memory>,
    /// What makes scalars between them.
    clock: Option<DeviceClock>,
}

/// What kernels need besides fields.
struct Memory {
    stream: Arc<CudaStream>,
    /// Those of [`program_scalars`].
    scalars: CudaSlice<u8>,
    /// The addresses of the scalars as stages of fields read them, of leaves, of the progress, in which blocks count themselves, of
    /// rows, which no reduction has, of the scalars in f64, and of matrices, which none has.
    last: [u64; 6],
    _leaves: CudaSlice<u8>,
    _progress: CudaSlice<u64>,
}

impl Reductions {
    /// Compiles the reductions of [`abide_core::program::Clock::reductions`].
    ///
    /// # Errors
    ///
    /// The compiler's, and those of a plan with a launch per stage.
    pub fn new(
        problem: &Problem,
        device: &DeviceSpec,
        context: &Arc<CudaContext>,
        nvrtc: &Nvrtc,
    ) -> Result<Reductions> {
        let options = Options {
            execution: Execution::Stepwise,
            fuse: Fuse::Off,
            tune: Tune::Off,
            ..Options::default()
        };
        let plan = plan_stepwise(problem, device, &options)?;
        let Fitted { code, .. } = fit(nvrtc, problem, &plan, &target(device))?;
        let storage = Storage::of_groups(problem, &Boxes::of(problem)?, &Groups::alone(&problem.program))?;
        let kernels = code.program.ok_or_else(|| Error::device("cuda", REDUCING, "there are no kernels"))?;
        context.bind_to_thread().map_err(during("binding the context"))?;
        let loaded = Kernels::load(context, code.cubin)?;
        let functions = storage.launches(0).launches.iter().map(|launch| {
            let own = kernels.of(launch).map_or(&[][..], |group| &group.launches);
            own.iter().map(|kernel| loaded.function(&kernel.entry, kernel.shared_bytes)).collect()
        });
        let functions = functions.collect::<Result<_>>()?;
        let nodes = |stage: &Stage| stage.dag.nodes.iter().any(|node| matches!(node, Node::Param(_)));
        let reads_scalars = problem.program.stages().iter().any(nodes);
        let (problem, memory, clock) = (problem.clone(), None, None);
        Ok(Reductions { problem, storage, kernels, functions, reads_scalars, memory, clock })
    }

    /// Compiles the reductions of a clock, and what it does between them; `None` where it has no reductions.
    ///
    /// # Errors
    ///
    /// Those of [`Reductions::new`].
    pub fn of_clock(
        clock: &Clock,
        device: &DeviceSpec,
        context: &Arc<CudaContext>,
        nvrtc: &Nvrtc,
    ) -> Result<Option<Reductions>> {
        let Some(problem) = clock.reductions() else { return Ok(None) };
        let own = Reductions::new(problem, device, context, nvrtc)?;
        Ok(Some(Reductions { clock: DeviceClock::new(clock, device, context, nvrtc)?, ..own }))
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.functions.len()
    }
}

impl Memory {
    fn new(problem: &Problem, kernels: &ProgramKernels, stream: &Arc<CudaStream>) -> Result<Memory> {
        let values = program_scalars(problem);
        let scalars = stream.clone_htod(&values).map_err(during("loading scalars"))?;
        let bytes = (kernels.leaves * problem.dtype.bytes()).max(1);
        // SAFETY: leaves are written before they are read.
        let leaves = unsafe { stream.alloc::<u8>(bytes) }.map_err(during("allocating leaves"))?;
        let words = Progress::default().words().len();
        let progress = stream.alloc_zeros(words).map_err(during("allocating the progress"))?;
        let exact = scalars.device_ptr(stream).0;
        let rounded = exact + rounded_at(values.len(), problem.dtype) as u64;
        let last = [rounded, leaves.device_ptr(stream).0, progress.device_ptr(stream).0, 0, exact, 0];
        Ok(Memory { stream: stream.clone(), scalars, last, _leaves: leaves, _progress: progress })
    }

    /// Loads the values of parameters and scalars.
    fn load(&mut self, problem: &Problem) -> Result<()> {
        let values = program_scalars(problem);
        self.stream.memcpy_htod(&values, &mut self.scalars).map_err(during("loading scalars"))
    }

    /// Returns one of the scalars, once all that was launched is done.
    fn scalar(&self, number: usize) -> Result<f64> {
        let place = number * size_of::<f64>()..(number + 1) * size_of::<f64>();
        let own = self.scalars.try_slice(place);
        let own = own.ok_or_else(|| Error::device("cuda", REDUCING, "the scalar is none"))?;
        let bytes = self.stream.clone_dtoh(&own).map_err(during(REDUCING))?;
        self.stream.synchronize().map_err(during(REDUCING))?;
        let bytes =
            bytes.try_into().map_err(|_| Error::device("cuda", REDUCING, "the scalar is too short"))?;
        Ok(f64::from_ne_bytes(bytes))
    }
}

impl Reducer for Reductions {
    fn reduce(
        &mut self,
        session: &mut dyn Session,
        reduction: usize,
        clock: &Clock,
        ahead: Option<Ahead>,
    ) -> Result<Vec<f64>> {
        self.load(session, clock.values(), ahead.is_some())?;
        self.launch(session, reduction)?;
        let Some(ahead) = ahead else { return Ok(vec![self.value(reduction)?]) };
        let missing = || Error::device("cuda", REDUCING, "there is no clock on the device");
        let mut own = self.clock.take().ok_or_else(missing)?;
        let done = self.go_ahead(session, clock, &ahead, &mut own);
        self.clock = Some(own);
        let (mut values, last) = done?;
        values.push(self.value(last)?);
        Ok(values)
    }

    fn goes_ahead(&self) -> bool {
        self.clock.is_some()
    }
}

impl Reductions {
    /// Returns the value of a reduction of a session's fields. `scalars` are the values of the parameters and scalars.
    ///
    /// # Errors
    ///
    /// Those of [`Reducer::reduce`].
    pub fn reduce_now(
        &mut self,
        session: &mut dyn Session,
        reduction: usize,
        scalars: &[f64],
    ) -> Result<f64> {
        self.load(session, scalars, false)?;
        self.launch(session, reduction)?;
        self.value(reduction)
    }

    /// Does stretches behind a reduction. Returns the values of that and of all others but the last, and the number of the last.
    fn go_ahead(
        &self,
        session: &mut dyn Session,
        clock: &Clock,
        ahead: &Ahead,
        own: &mut DeviceClock,
    ) -> Result<(Vec<f64>, usize)> {
        let failed = |what: &str| Error::device("cuda", REDUCING, what);
        let memory = self.memory.as_ref().ok_or_else(|| failed("no scalars are loaded"))?;
        let reserved = ahead.reserved.downcast_ref::<Reserved>();
        let reserved = reserved.ok_or_else(|| failed("memory was reserved by another backend"))?;
        let [rounded, .., exact, _] = memory.last;
        own.load(clock.all_values(), ahead.stretches, &memory.stream)?;
        let mut last = 0;
        for number in 0..ahead.stretches {
            let stretch = clock.next_stretch() + number;
            let (steps, reduction) =
                own.launch(stretch, number, [reserved.address, exact, rounded], &memory.stream)?;
            if steps > 0 && !session.peer().map_or(Ok(false), |peer| peer.begin(steps, &[]))? {
                return Err(failed("the session does not begin steps"));
            }
            self.launch(session, reduction)?;
            last = reduction;
        }
        Ok((own.reduced(ahead.stretches, &memory.stream)?, last))
    }

    /// Loads the scalars where kernels read them, if they do.
    fn load(&mut self, session: &mut dyn Session, scalars: &[f64], is_needed: bool) -> Result<()> {
        let stream = fields(session, 1)?.swap_remove(0).stream;
        bind(&stream)?;
        let parameters = self.problem.parameters.len().min(scalars.len());
        self.problem.parameters.copy_from_slice(&scalars[..parameters]);
        self.problem.scalars.copy_from_slice(&scalars[parameters..]);
        let mut memory = match self.memory.take() {
            Some(memory) => memory,
            None => Memory::new(&self.problem, &self.kernels, &stream)?,
        };
        if self.reads_scalars || is_needed {
            memory.load(&self.problem)?;
        }
        self.memory = Some(memory);
        Ok(())
    }

    /// Launches the kernels of a reduction of a session's fields as they are behind all that was begun.
    fn launch(&self, session: &mut dyn Session, reduction: usize) -> Result<()> {
        let fields: Vec<u64> =
            fields(session, self.problem.program.fields().len())?.iter().map(DeviceBuffer::address).collect();
        let none = || Error::limit("number of a reduction", reduction, self.functions.len(), "use another");
        let launch = self.storage.launches(0).launches.get(reduction);
        let (launch, functions) = launch.zip(self.functions.get(reduction)).ok_or_else(none)?;
        let missing = || Error::device("cuda", REDUCING, "a reduction has no kernels");
        let memory = self.memory.as_ref().ok_or_else(missing)?;
        let group = self.kernels.of(launch).ok_or_else(missing)?;
        // A buffer is that of a field: no stage writes any.
        let field = |buffer: usize| self.storage.first.iter().position(|&own| own == buffer);
        let buffers = group.buffers(launch);
        let address = |slot: usize| {
            let field = buffers.get(slot).copied().flatten().and_then(field);
            field.and_then(|field| fields.get(field).copied()).unwrap_or(0)
        };
        let arguments: Vec<u64> = (0..self.kernels.slots).map(address).chain(memory.last).collect();
        // Fields have the pitch of the kernels' buffers, leaves as many values as they write.
        let mut all = group.launches.iter().zip(functions);
        all.try_for_each(|(kernel, function)| launch_kernel(function, kernel, &arguments, &memory.stream))
    }

    /// Returns the value of a reduction, once all that was launched is done.
    fn value(&self, reduction: usize) -> Result<f64> {
        let made = self.problem.program.stages().get(reduction).and_then(|stage| stage.does.scalar());
        let missing = || Error::device("cuda", REDUCING, "a reduction makes no scalar");
        self.memory.as_ref().ok_or_else(missing)?.scalar(made.ok_or_else(missing)?)
    }
}

/// Returns the buffers of a session's first fields.
fn fields(session: &mut dyn Session, count: usize) -> Result<Vec<DeviceBuffer>> {
    let buffer = |field: usize| Some(*session.device_buffer(field)?.downcast::<DeviceBuffer>().ok()?);
    let buffers: Option<Vec<_>> = (0..count).map(buffer).collect();
    let missing = || Error::device("cuda", REDUCING, "the session has no fields on the device");
    buffers.filter(|buffers| !buffers.is_empty()).ok_or_else(missing)
}
