//! GPUs through Vulkan, Metal or DX12.

pub use abide_wgpu::device_descriptor;

use super::{Built, Kind, Opened};
use crate::memory::amount;
use crate::{Error, Result};

pub(super) const BUILT: Option<Built> = Some(Built {
    open,
    several: None,
    variants: abide_wgpu::variants,
    bound: abide_wgpu::ulp_bound_per_step_of,
});

/// Bytes of address space that drivers may take while backends look for devices. Some drivers corrupt their
/// memory where there is less.
const DRIVERS: u64 = 1 << 30;

fn open() -> Result<Opened> {
    if let Some(room) = abide_cpu::memory::room_for_addresses().filter(|&room| room < DRIVERS) {
        let least = amount(DRIVERS as f64);
        let reason = format!(
            "the process may take {} more of address space, and drivers want {least}; raise the limit (ulimit -v)",
            amount(room as f64)
        );
        return Err(Error::Unavailable { backend: abide_wgpu::NAME, reason });
    }
    abide_wgpu::WgpuBackend::new().map(opened)
}

fn opened(backend: abide_wgpu::WgpuBackend) -> Opened {
    let kind = if backend.is_software() { Kind::Software } else { Kind::Gpu };
    Opened::new(kind, backend)
}

/// Opens the wgpu backend on a device that is open already, such as a window's, which then draws fields where
/// they lie ([`Simulation::device_buffer`](crate::Simulation::device_buffer)).
///
/// # Errors
///
/// [`Error::Unavailable`] where the backend by itself would take another adapter. Runs go to the best
/// adapter, wherever windows are drawn.
pub fn share_wgpu(
    adapter: &abide_wgpu::wgpu::Adapter,
    device: &abide_wgpu::wgpu::Device,
    queue: &abide_wgpu::wgpu::Queue,
) -> Result<Opened> {
    let backend = abide_wgpu::WgpuBackend::sharing(adapter, device, queue)?;
    let place = |adapter: &abide_wgpu::Adapter| format!("{} through {}", adapter.name, adapter.interface);
    let (own, best) = (place(backend.adapter()), abide_wgpu::adapters().first().map(place));
    match best {
        Some(best) if best != own => Err(Error::Unavailable {
            backend: abide_wgpu::NAME,
            reason: format!("the device to be shared is {own}, runs go to {best}"),
        }),
        _ => Ok(opened(backend)),
    }
}
