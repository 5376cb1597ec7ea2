//! Persistent execution: one cooperative launch per epoch, the time loop inside.

use std::ffi::c_void;

use abide_core::plan::{self, Synchronisation};
use abide_core::{DeviceSpec, Error, Plan, Result};
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};

use crate::driver::during;
use crate::kernels::Kernels;
use crate::launcher::Launcher;
use crate::memory::Fields;
use crate::parameters::Parameters;

/// Bytes between two blocks' flags, so that each has a cache line of its own.
pub(crate) const FLAG_BYTES: usize = 128;

/// Checks that all blocks of a kernel, of so many threads and bytes of shared memory each, are on the device at
/// once: blocks that wait for one that is not would never end.
pub(crate) fn check_resident(
    function: &CudaFunction,
    (threads, shared_bytes): (usize, usize),
    device: &DeviceSpec,
    blocks: usize,
) -> Result<()> {
    let resident = function
        .occupancy_max_active_blocks_per_multiprocessor(threads as u32, shared_bytes, None)
        .map_err(during("asking for the occupancy"))? as usize
        * device.multiprocessors;
    if resident >= blocks {
        return Ok(());
    }
    Err(Error::limit(
        "co-resident blocks of a persistent kernel",
        blocks,
        resident,
        "use --execution stepwise, or another cache policy",
    ))
}

/// A cooperative launch per epoch.
pub(crate) struct Persistent {
    function: CudaFunction,
    plan: plan::Persistent,
    flags: CudaSlice<u8>,
    /// The most steps of one launch: the flags count finished stages in 32 bits.
    most_steps: u64,
}

impl Persistent {
    pub fn new(plan: &Plan, fields: &Fields, kernels: &Kernels) -> Result<Self> {
        let Some(persistent) = plan.persistent().cloned() else {
            return Err(Error::invalid("plan", "it is not persistent", "make it with plan_persistent"));
        };
        let function = kernels.function(cuda::PERSISTENT_ENTRY, persistent.shared_bytes)?;
        check_resident(
            &function,
            (persistent.threads_per_block(), persistent.shared_bytes),
            &plan.device,
            persistent.blocks,
        )?;
        let flags = fields
            .stream
            .alloc_zeros::<u8>(persistent.blocks * FLAG_BYTES)
            .map_err(during("allocating flags"))?;
        // Where every block waits for all others, all count on one flag.
        let counted =
            if persistent.synchronisation == Synchronisation::Grid { persistent.blocks as u64 } else { 1 };
        let a_step = counted * fields.problem.program.stages().len() as u64;
        Ok(Persistent {
            function,
            plan: persistent,
            flags,
            most_steps: u64::from(u32::MAX / 2) / a_step.max(1),
        })
    }
}

impl Launcher for Persistent {
    fn most_steps(&self) -> u64 {
        self.most_steps
    }

    fn prepare(&mut self, _: &Fields, _: &mut Parameters, _: u64) -> Result<()> {
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        let stream = fields.stream.cu_stream();
        let mut flags = self.flags.device_ptr(&fields.stream).0;
        // SAFETY: the flags are as long as allocated; the stream orders this before the launch.
        unsafe { result::memset_d8_async(flags, 0, self.plan.blocks * FLAG_BYTES, stream) }
            .map_err(during("clearing flags"))?;
        let mut buffers = fields.pointers(&fields.flips(0, 0));
        // `steps` is at most `most_steps`, which 32 bits hold.
        let mut count = steps as u32;
        let mut arguments: [*mut c_void; 4] = [
            buffers.as_mut_ptr().cast(),
            parameters.argument(&fields.stream),
            (&raw mut flags).cast(),
            (&raw mut count).cast(),
        ];
        // SAFETY: the kernel takes Buffers and Parameters by value, the flags' address and the steps, in this
        // order and layout; the call copies them. Co-residency was checked when the session was opened.
        unsafe {
            result::launch_cooperative_kernel(
                self.function.cu_function(),
                (self.plan.blocks as u32, 1, 1),
                (self.plan.threads_per_block() as u32, 1, 1),
                self.plan.shared_bytes as u32,
                stream,
                &mut arguments,
            )
        }
        .map_err(during("launching a persistent kernel"))?;
        parameters.pass_steps(steps);
        fields.advanced(steps);
        Ok(())
    }
}
