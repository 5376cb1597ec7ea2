//! Persistent execution of domains that lie on the chip as a whole: one launch per epoch, the time loop inside.

use std::ffi::c_void;

use abide_core::{Error, Plan, Result, plan};
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};

use crate::driver::during;
use crate::kernels::Kernels;
use crate::launcher::Launcher;
use crate::memory::{Fields, Turns};
use crate::persistent::{FLAG_BYTES, check_resident};

/// A cooperative launch per epoch.
pub(crate) struct Resident {
    function: CudaFunction,
    plan: plan::Resident,
    counters: CudaSlice<u8>,
    /// What tiles exchange, by turns with the fields' other buffers.
    turns: Turns,
    /// The most steps of one launch: the counters count warps and exchanges in 32 bits.
    most_steps: u64,
}

impl Resident {
    pub fn new(plan: &Plan, fields: &Fields, kernels: &Kernels) -> Result<Self> {
        let Some(resident) = plan.resident().cloned() else {
            return Err(Error::invalid("plan", "it is not resident", "make it with plan_resident"));
        };
        let function = kernels.function(cuda::RESIDENT_ENTRY, resident.shared_bytes)?;
        check_resident(
            &function,
            (resident.threads_per_block(), resident.shared_bytes),
            &plan.device,
            resident.blocks(),
        )?;
        let counters = fields
            .stream
            .alloc_zeros::<u8>(resident.blocks() * FLAG_BYTES)
            .map_err(during("allocating counters"))?;
        let turns = Turns::new(fields)?;
        let most_steps = u64::from(u32::MAX / 2) / resident.warps as u64 * resident.depth as u64;
        Ok(Resident {
            function,
            plan: resident,
            counters,
            turns,
            most_steps: most_steps.min(u32::MAX.into()),
        })
    }
}

impl Launcher for Resident {
    fn most_steps(&self) -> u64 {
        self.most_steps
    }

    fn prepare(&mut self, _: &Fields, _: &mut [u8], _: u64) -> Result<()> {
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut [u8], steps: u64) -> Result<()> {
        let stream = fields.stream.cu_stream();
        let mut counters = self.counters.device_ptr(&fields.stream).0;
        // SAFETY: the counters are as long as allocated; the stream orders this before the launch.
        unsafe { result::memset_d8_async(counters, 0, self.plan.blocks() * FLAG_BYTES, stream) }
            .map_err(during("clearing counters"))?;
        let mut buffers = fields.pointers(&fields.flips(0, 0));
        let mut turns = self.turns.pointers(&buffers, &fields.stream);
        // `steps` is at most `most_steps`, which 32 bits hold.
        let mut count = steps as u32;
        let mut arguments: [*mut c_void; 5] = [
            buffers.as_mut_ptr().cast(),
            turns.as_mut_ptr().cast(),
            parameters.as_mut_ptr().cast(),
            (&raw mut counters).cast(),
            (&raw mut count).cast(),
        ];
        // SAFETY: the kernel takes twice Buffers, and Parameters, by value, the counters' address and the steps, in
        // this order and layout; the call copies them. Co-residency was checked when the session was opened.
        unsafe {
            result::launch_cooperative_kernel(
                self.function.cu_function(),
                (self.plan.blocks() as u32, 1, 1),
                (self.plan.threads_per_block() as u32, 1, 1),
                self.plan.shared_bytes as u32,
                stream,
                &mut arguments,
            )
        }
        .map_err(during("launching a resident kernel"))
    }
}
