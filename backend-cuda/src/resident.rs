//! Persistent execution of domains that lie on the chip as a whole: one launch per epoch, the time loop inside.

use std::ffi::c_void;

use abide_core::plan::resident::Exchange;
use abide_core::{Error, Plan, Result, plan};
use abide_shaders::cuda::{self, exchange_bytes};
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};

use crate::driver::during;
use crate::kernels::Kernels;
use crate::launcher::Launcher;
use crate::memory::{DoubleBuffer, Fields, ask_for};
use crate::noted::NotedTables;
use crate::parameters::Parameters;
use crate::persistent::{FLAG_BYTES, check_resident};

/// A cooperative launch per epoch.
pub(crate) struct Resident {
    function: CudaFunction,
    plan: plan::Resident,
    counters: CudaSlice<u8>,
    exchange_buffer: ExchangeBuffer,
    /// The most steps of one launch: the counters count warps and exchanges in 32 bits.
    most_steps: u64,
    noted: Option<NotedTables>,
}

/// What tiles exchange: the kernels' `ExchangeBuffer`.
enum ExchangeBuffer {
    /// Copies of the domain, by turns with the fields' other buffers.
    Counted(DoubleBuffer),
    /// Words with tags, and the number of the last exchange. Tags begin at 1 in words of 0 and go on from launch to
    /// launch. They may begin anew after 2^32 exchanges, because what a word holds before it is written again is that of
    /// two exchanges before.
    Tagged { words: CudaSlice<u8>, exchanges: u32 },
}

impl ExchangeBuffer {
    fn new(plan: &plan::Resident, fields: &Fields) -> Result<ExchangeBuffer> {
        match plan.exchange {
            Exchange::Counted => Ok(ExchangeBuffer::Counted(DoubleBuffer::new(fields)?)),
            Exchange::Tagged => {
                let bytes = exchange_bytes(&fields.problem, plan);
                ask_for(&fields.context, bytes as u128)?;
                let words = fields.stream.alloc_zeros::<u8>(bytes);
                let words = words.map_err(during("allocating what tiles exchange"))?;
                Ok(ExchangeBuffer::Tagged { words, exchanges: 0 })
            }
        }
    }

    /// Returns the kernels' argument, in words of 64 bits; `buffers` are those of the fields.
    fn argument(&self, buffers: &[u64], fields: &Fields) -> Vec<u64> {
        match self {
            ExchangeBuffer::Counted(turns) => turns.pointers(buffers, &fields.stream),
            // The number is the first half of its word, because hosts with CUDA are little-endian.
            ExchangeBuffer::Tagged { words, exchanges } => {
                vec![words.device_ptr(&fields.stream).0, u64::from(*exchanges)]
            }
        }
    }

    /// Notes that so many exchanges were done.
    fn exchanged(&mut self, number: u32) {
        if let ExchangeBuffer::Tagged { exchanges, .. } = self {
            *exchanges = exchanges.wrapping_add(number);
        }
    }
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
        let exchange_buffer = ExchangeBuffer::new(&resident, fields)?;
        let most_steps = u64::from(u32::MAX / 2) / resident.warps as u64 * resident.depth as u64;
        Ok(Resident {
            function,
            plan: resident,
            counters,
            exchange_buffer,
            most_steps: most_steps.min(u32::MAX.into()),
            noted: NotedTables::load(&fields.problem, plan, &fields.stream)?,
        })
    }
}

impl Launcher for Resident {
    fn most_steps(&self) -> u64 {
        self.most_steps
    }

    fn prepare(&mut self, _: &Fields, _: &mut Parameters, _: u64) -> Result<()> {
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        let stream = fields.stream.cu_stream();
        let mut counters = self.counters.device_ptr(&fields.stream).0;
        // SAFETY: the counters are as long as allocated; the stream orders this before the launch.
        unsafe { result::memset_d8_async(counters, 0, self.plan.blocks() * FLAG_BYTES, stream) }
            .map_err(during("clearing counters"))?;
        let mut buffers = fields.pointers(&fields.flips(0, 0));
        let mut exchange_buffer = self.exchange_buffer.argument(&buffers, fields);
        // `steps` is at most `most_steps`, which 32 bits hold.
        let mut count = steps as u32;
        let mut arguments: [*mut c_void; 5] = [
            buffers.as_mut_ptr().cast(),
            exchange_buffer.as_mut_ptr().cast(),
            parameters.argument_noting(self.noted.as_ref(), &fields.stream),
            (&raw mut counters).cast(),
            (&raw mut count).cast(),
        ];
        // SAFETY: the kernel takes Buffers, ExchangeBuffer and Parameters by value, the counters' address and the steps, in
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
        .map_err(during("launching a resident kernel"))?;
        parameters.pass_steps(steps);
        self.exchange_buffer.exchanged(self.plan.exchanges_in(steps) as u32);
        Ok(())
    }
}
