//! Persistent sessions: one cooperative launch an epoch, the time loop inside.

use std::ffi::c_void;

use abide_core::plan::{Sweep, Synchronisation};
use abide_core::{Array, Error, Plan, Result, Session};
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};

use crate::driver::during;
use crate::kernels::Kernels;
use crate::memory::{Fields, parameter_bytes, set_parameter};
use crate::timing::Timer;

/// Bytes between two blocks' flags: a line of the cache each.
const FLAG_BYTES: usize = 128;

pub(crate) struct PersistentSession {
    plan: Plan,
    fields: Fields,
    function: CudaFunction,
    sweep: Sweep,
    flags: CudaSlice<u8>,
    /// The most steps of one launch: the flags count finished stages in 32 bits.
    most_steps: u64,
    parameters: Vec<u8>,
    timer: Timer,
}

impl PersistentSession {
    pub fn new(plan: Plan, fields: Fields, kernels: &Kernels) -> Result<Self> {
        let Some(sweep) = plan.sweep().cloned() else {
            return Err(Error::invalid("plan", "it is not persistent", "make it with plan_sweep"));
        };
        let function = kernels.function(cuda::PERSISTENT_ENTRY, sweep.shared_bytes)?;
        let threads = sweep.threads_per_block() as u32;
        // Blocks wait for each other: all of them must be on the device at once, or the kernel would never end.
        let resident = function
            .occupancy_max_active_blocks_per_multiprocessor(threads, sweep.shared_bytes, None)
            .map_err(during("asking for the occupancy"))? as usize
            * plan.device.multiprocessors;
        if resident < sweep.blocks {
            return Err(Error::limit(
                "co-resident blocks of a persistent kernel",
                sweep.blocks,
                resident,
                "use --execution stepwise, or another cache policy",
            ));
        }
        let flags = fields.stream.alloc_zeros::<u8>(sweep.blocks * FLAG_BYTES).map_err(during("allocating flags"))?;
        let counts =
            plan_stages(&fields) * if sweep.synchronisation == Synchronisation::Grid { sweep.blocks as u64 } else { 1 };
        let timer = Timer::new(&fields)?;
        let parameters = parameter_bytes(&fields.problem);
        let most_steps = u64::from(u32::MAX / 2) / counts.max(1);
        Ok(PersistentSession { plan, fields, function, sweep, flags, most_steps, parameters, timer })
    }

    fn launch(&mut self, steps: u32) -> Result<()> {
        let stream = self.fields.stream.cu_stream();
        let flags = self.flags.device_ptr(&self.fields.stream).0;
        // SAFETY: the flags are as long as allocated; the stream orders this before the launch.
        unsafe { result::memset_d8_async(flags, 0, self.sweep.blocks * FLAG_BYTES, stream) }
            .map_err(during("clearing flags"))?;
        let mut buffers = self.fields.pointers(&self.fields.flips(0, 0));
        let (mut flags, mut steps) = (flags, steps);
        let mut arguments: [*mut c_void; 4] = [
            buffers.as_mut_ptr().cast(),
            self.parameters.as_mut_ptr().cast(),
            (&raw mut flags).cast(),
            (&raw mut steps).cast(),
        ];
        // SAFETY: the kernel takes Buffers and Parameters by value, the flags' address and the steps, in this order and
        // layout; the call copies them. Co-residency was checked when the session was opened.
        unsafe {
            result::launch_cooperative_kernel(
                self.function.cu_function(),
                (self.sweep.blocks as u32, 1, 1),
                (self.sweep.threads_per_block() as u32, 1, 1),
                self.sweep.shared_bytes as u32,
                stream,
                &mut arguments,
            )
        }
        .map_err(during("launching a persistent kernel"))
    }
}

fn plan_stages(fields: &Fields) -> u64 {
    fields.problem.program.stages().len() as u64
}

impl Session for PersistentSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.fields.context.bind_to_thread().map_err(during("binding the context"))?;
        let mut seconds = 0.0;
        let mut left = steps;
        while left > 0 {
            let now = left.min(self.most_steps);
            self.timer.start(&self.fields)?;
            self.launch(now as u32)?;
            seconds += self.timer.stop(&self.fields)?;
            self.fields.advanced(now);
            left -= now;
        }
        Ok(seconds)
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.fields.read(field)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.fields.read_window(field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.fields.write(field, values)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        set_parameter(&mut self.fields.problem, parameter, value)?;
        self.parameters = parameter_bytes(&self.fields.problem);
        Ok(())
    }
}
