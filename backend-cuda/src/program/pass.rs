//! A group of stages as a pass of a streaming kernel, which is compiled by itself: the kernel of a plain problem over the
//! buffers of a program.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::plan::WarpStreaming;
use abide_core::program::{Launch, Repeated};
use abide_core::{Error, Result};
use abide_shaders::cuda;
use cudarc::driver::{CudaContext, CudaFunction, result};

use super::memory::Memory;
use crate::driver::during;
use crate::kernels::{Kernels, PassCode};
use crate::parameters::parameter_bytes;

/// A loaded pass.
pub(super) struct Pass {
    function: CudaFunction,
    stream: WarpStreaming,
    repeated: Repeated,
    /// The kernel's `Parameters`, in words of their alignment.
    parameters: Vec<u64>,
}

impl Pass {
    pub fn load(context: &Arc<CudaContext>, code: PassCode) -> Result<Pass> {
        let stream = code.plan.warp_streaming().cloned().ok_or_else(|| {
            Error::invalid("plan of a pass", "it does not stream", "make it with plan_streaming")
        })?;
        let function =
            Kernels::load(context, code.cubin)?.function(cuda::STREAM_ENTRY, stream.shared_bytes)?;
        let mut pass = Pass { function, stream, repeated: code.repeated, parameters: Vec::new() };
        pass.set_parameters(&pass.repeated.problem.parameters.clone());
        Ok(pass)
    }

    /// Takes over the parameters' values for the launches that follow.
    pub fn set_parameters(&mut self, values: &[f64]) {
        let bytes = parameter_bytes(self.repeated.problem.dtype, values);
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        };
        self.parameters = bytes.chunks(8).map(word).collect();
    }

    /// Puts the pass on the stream: it reads what the launch reads, and its last stage's results go where the launch's do.
    pub fn launch(&self, launch: &Launch, memory: &Memory) -> Result<()> {
        let Some(buffers) = self.repeated.buffers(launch) else {
            return Err(Error::device("cuda", "launching a pass of stages", "a field has no buffer"));
        };
        let addresses: Vec<u64> = buffers.concat().into_iter().map(|buffer| memory.address(buffer)).collect();
        // Twice: of this pass, and of a next one, which there is not.
        let mut turns = [&*addresses, &*addresses].concat();
        let (mut parameters, mut ended, mut passes) = (self.parameters.clone(), 0_u64, 1_u32);
        let mut arguments: [*mut c_void; 4] = [
            turns.as_mut_ptr().cast(),
            parameters.as_mut_ptr().cast(),
            (&raw mut ended).cast(),
            (&raw mut passes).cast(),
        ];
        // SAFETY: the kernel takes the structs Turns and Parameters by value, an address that one pass alone does not use, and
        // the passes, in this order and layout; the call copies them. There is a block for every share, as the kernel's
        // constants say, and the buffers have the layout of the plain problem's fields.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                (self.stream.shares as u32, 1, 1),
                (self.stream.threads_per_block() as u32, 1, 1),
                self.stream.shared_bytes as u32,
                memory.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during("launching a pass of stages"))
    }
}
