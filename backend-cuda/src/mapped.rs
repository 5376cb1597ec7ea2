//! Memory that processes of one machine have in common: the driver maps what one has allocated into the others (`cuIpc`).
//!
//! Memory of a pool cannot be mapped, so what others map is allocated by itself.

use std::sync::Arc;

use abide_core::Result;
use cudarc::driver::{CudaContext, DriverError, sys};

use crate::driver::during;
use crate::memory::ask_for;

/// The driver's handle by which another process opens memory or an event.
pub(crate) type Handle = [u8; 64];

/// Whole pieces of this size are shared, in which the driver maps memory, so that nothing else is mapped with them.
const PIECE: usize = 2 << 20;

/// Memory that other processes can map.
pub(crate) struct Shared {
    pub address: sys::CUdeviceptr,
    pub handle: Handle,
    /// Keeps the memory's device.
    context: Arc<CudaContext>,
}

impl Shared {
    /// Allocates memory for so many bytes, which hold nothing yet. The context is that of the thread.
    pub fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Shared> {
        let bytes = bytes.max(1).next_multiple_of(PIECE);
        ask_for(context, bytes as u128)?;
        let mut address = 0;
        // SAFETY: the call writes an address.
        let got = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes).result() };
        got.map_err(during("allocating memory for other processes"))?;
        let mut shared = Shared { address, handle: [0; 64], context: context.clone() };
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: the call writes a handle of memory that is there.
        let got = unsafe { sys::cuIpcGetMemHandle(&raw mut handle, address).result() };
        got.map_err(during("sharing memory with other processes"))?;
        shared.handle = handle.reserved.map(|byte| byte as u8);
        Ok(shared)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nothing of this process uses it any more. Nothing can be done about a device that no longer answers.
        let _ =
            self.context.bind_to_thread().and_then(|()| unsafe { sys::cuMemFree_v2(self.address).result() });
    }
}

/// Memory of another process.
pub(crate) struct Mapped {
    pub address: sys::CUdeviceptr,
    context: Arc<CudaContext>,
}

impl Mapped {
    /// Maps memory of another process, for work on a device whose context is that of the thread.
    pub fn open(context: &Arc<CudaContext>, handle: &Handle) -> std::result::Result<Mapped, DriverError> {
        let mut address = 0;
        let reserved = handle.map(|byte| byte as std::ffi::c_char);
        let flags = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        // SAFETY: the call writes an address.
        unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, sys::CUipcMemHandle { reserved }, flags) }
            .result()?;
        Ok(Mapped { address, context: context.clone() })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the work of this process with it has ended.
        let close = || unsafe { sys::cuIpcCloseMemHandle(self.address).result() };
        let _ = self.context.bind_to_thread().and_then(|()| close());
    }
}

/// Returns an identifier of the machine, the same in all its processes; `None` where the system publishes none.
pub(crate) fn machine() -> Option<Vec<u8>> {
    std::fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|words| !words.is_empty())
}
