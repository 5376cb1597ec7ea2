//! Reductions of fields between the passes of a session, by the kernels that a program's stages have.

use std::sync::Arc;

use abide_core::backend::Reducer;
use abide_core::expr::Node;
use abide_core::plan::{Execution, Fuse, Options, Tune};
use abide_core::program::{Boxes, Groups, Launch, Stage, Storage};
use abide_core::{DeviceSpec, Error, Problem, Result, Session};
use abide_planner::{Fitted, plan_stepwise};
use abide_shaders::cuda::{ProgramKernels, program_scalars};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr};

use super::launch_kernel;
use super::memory::rounded_at;
use crate::driver::{bind, during};
use crate::kernels::{Kernels, fit, target};
use crate::lent::DeviceBuffer;
use crate::nvrtc::Nvrtc;

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
}

/// What kernels need besides fields.
struct Memory {
    stream: Arc<CudaStream>,
    /// Those of [`program_scalars`].
    scalars: CudaSlice<u8>,
    /// The addresses of the scalars as stages of fields read them, of leaves, of what no reduction has, and of the scalars in f64.
    last: [u64; 5],
    _leaves: CudaSlice<u8>,
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
        Ok(Reductions { problem: problem.clone(), storage, kernels, functions, reads_scalars, memory: None })
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    /// Launches the kernels of a reduction.
    fn launch(
        &self,
        launch: &Launch,
        functions: &[CudaFunction],
        fields: &[u64],
        memory: &Memory,
    ) -> Result<()> {
        let Some(group) = self.kernels.of(launch) else {
            return Err(Error::device("cuda", REDUCING, "a reduction has no kernels"));
        };
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
}

impl Memory {
    fn new(problem: &Problem, kernels: &ProgramKernels, stream: &Arc<CudaStream>) -> Result<Memory> {
        let values = program_scalars(problem);
        let scalars = stream.clone_htod(&values).map_err(during("loading scalars"))?;
        let bytes = (kernels.leaves * problem.dtype.bytes()).max(1);
        // SAFETY: leaves are written before they are read.
        let leaves = unsafe { stream.alloc::<u8>(bytes) }.map_err(during("allocating leaves"))?;
        let exact = scalars.device_ptr(stream).0;
        let rounded = exact + rounded_at(values.len(), problem.dtype) as u64;
        let last = [rounded, leaves.device_ptr(stream).0, 0, 0, exact];
        Ok(Memory { stream: stream.clone(), scalars, last, _leaves: leaves })
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
    fn reduce(&mut self, session: &mut dyn Session, reduction: usize, scalars: &[f64]) -> Result<f64> {
        let count = self.problem.program.fields().len();
        let buffer = |field: usize| session.device_buffer(field)?.downcast::<DeviceBuffer>().ok();
        let buffers: Option<Vec<_>> = (0..count).map(buffer).collect();
        let missing = || Error::device("cuda", REDUCING, "the session has no fields on the device");
        let buffers = buffers.filter(|buffers| !buffers.is_empty()).ok_or_else(missing)?;
        let stream = &buffers[0].stream;
        bind(stream)?;
        let parameters = self.problem.parameters.len().min(scalars.len());
        self.problem.parameters.copy_from_slice(&scalars[..parameters]);
        self.problem.scalars.copy_from_slice(&scalars[parameters..]);
        let mut memory = match self.memory.take() {
            Some(memory) => memory,
            None => Memory::new(&self.problem, &self.kernels, stream)?,
        };
        if self.reads_scalars {
            memory.load(&self.problem)?;
        }
        let (Some(launch), Some(functions)) =
            (self.storage.launches(0).launches.get(reduction), self.functions.get(reduction))
        else {
            return Err(Error::limit(
                "number of a reduction",
                reduction,
                self.functions.len(),
                "use another",
            ));
        };
        let fields: Vec<u64> = buffers.iter().map(|buffer| buffer.address()).collect();
        self.launch(launch, functions, &fields, &memory)?;
        let made = self.problem.program.stages().get(reduction).and_then(|stage| stage.does.scalar());
        let value = memory.scalar(made.ok_or_else(missing)?)?;
        self.memory = Some(memory);
        Ok(value)
    }
}
