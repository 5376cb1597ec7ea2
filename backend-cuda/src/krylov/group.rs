//! Devices that solve a linear system jointly: one kernel on each, and the blocks of all kernels form one grid.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_core::backend::{LinearBackend, LinearDeviceGroup, LinearSession};
use abide_core::solver::plan::krylov::Slabs;
use abide_core::solver::{Matrix, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, DeviceSpec, Error, Result};
use abide_solvers::plan::krylov::{plan_krylov, plan_krylov_slabs};
use cudarc::driver::sys;

use super::distributed::DistributedSession;
use super::fit::fit_solver;
use super::loaded::Member;
use crate::backend::CudaBackend;
use crate::driver::during;
use crate::kernels::target;
use crate::nvrtc::Cubin;
use crate::peer;

/// What to change where devices cannot work as one.
const CHANGE: &str = "take devices of one kind that NVLink connects, one device, or --backend cpu";

/// Devices of one kind, each with a slab of rows for each time that it is named.
pub struct CudaDeviceGroup {
    devices: Vec<Arc<CudaBackend>>,
}

impl CudaDeviceGroup {
    /// Makes a team of devices that [`CudaBackend::connected`] has opened.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for no device.
    pub fn new(devices: Vec<Arc<CudaBackend>>) -> Result<CudaDeviceGroup> {
        if devices.is_empty() {
            return Err(Error::limit("devices", 0, "at least 1", "ask for one device or more"));
        }
        Ok(CudaDeviceGroup { devices })
    }

    /// Returns the numbers of the slabs of each device, by the device's number.
    fn slabs_of(&self, count: usize) -> BTreeMap<usize, Vec<usize>> {
        let mut slabs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (slab, device) in self.devices.iter().take(count).enumerate() {
            slabs.entry(device.context.ordinal()).or_default().push(slab);
        }
        slabs
    }

    /// Returns the part of a device that each slab has, of the device that has least for its slabs.
    fn slab(&self, count: usize) -> (DeviceSpec, Slabs) {
        let slabs = self.slabs_of(count);
        let parts = self.devices.iter().take(count).map(|device| {
            let times = slabs[&device.context.ordinal()].len();
            part(device.device(), times)
        });
        let least = parts.min_by_key(|part| part.multiprocessors);
        let of_a_device = slabs.values().map(Vec::len).max().unwrap_or(1);
        (least.unwrap_or_else(|| self.devices[0].device().clone()), Slabs { count, of_a_device })
    }

    /// Checks that kernels of the first devices can work as one: they are alike, and each can add to the others' memory.
    fn check(&self, count: usize) -> Result<()> {
        let devices = &self.devices[..count.min(self.devices.len())];
        let who = || format!("a linear system on {count} CUDA devices");
        let [first, ..] = devices else { return Ok(()) };
        for own in devices {
            let targets = [first, own].map(|device| target(device.device()));
            if targets[0] != targets[1] {
                let reason =
                    format!("they are of different architectures, {} and {}", targets[0], targets[1]);
                return Err(Error::unsupported(who(), reason, CHANGE));
            }
            for other in devices {
                if own.context.ordinal() == other.context.ordinal() {
                    continue;
                }
                let pair = [own, other].map(|device| (device.context.ordinal(), device.context.cu_device()));
                check_pair(who, pair, "device")?;
                peer::connect(&own.context, &other.context)?;
            }
        }
        Ok(())
    }
}

/// Returns one of so many equal parts of a device.
fn part(device: &DeviceSpec, times: usize) -> DeviceSpec {
    let share = 1.0 / times as f64;
    DeviceSpec {
        multiprocessors: (device.multiprocessors / times).max(1),
        l2_bytes: device.l2_bytes / times,
        memory_bytes: device.memory_bytes / times as u64,
        buffer_bytes: device.buffer_bytes / times as u64,
        memory_bandwidth: device.memory_bandwidth * share,
        l2_bandwidth: device.l2_bandwidth * share,
        shared_bandwidth: device.shared_bandwidth * share,
        f32_flops: device.f32_flops * share,
        f64_flops: device.f64_flops * share,
        ..device.clone()
    }
}

/// Checks that kernels of the first device can use the second's memory, and add to numbers in it as one step. The devices'
/// numbers are what `whose` counts.
pub(super) fn check_pair(
    who: impl Fn() -> String,
    [(own, from), (other, to)]: [(usize, sys::CUdevice); 2],
    whose: &str,
) -> Result<()> {
    let lacks = |what: &str| {
        let reason = format!("{whose} {own}'s device cannot {what} {whose} {other}'s memory");
        Err(Error::unsupported(who(), reason, CHANGE))
    };
    if !peer::reaches(from, to).map_err(during("asking for peer access"))? {
        return lacks("use");
    }
    let mut can = 0;
    let attribute = sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    // SAFETY: the call writes one integer.
    unsafe { sys::cuDeviceGetP2PAttribute(&raw mut can, attribute, from, to) }
        .result()
        .map_err(during("asking for atomic operations between devices"))?;
    if can == 0 { lacks("add to numbers in") } else { Ok(()) }
}

/// Returns the plan of slabs that a device's compiler has no reports against, and its kernel.
pub(super) fn fitted(
    device: &CudaBackend,
    matrix: &Matrix,
    plan: &SolvePlan,
    options: &SolveOptions,
) -> Result<(SolvePlan, Cubin)> {
    let (mut fitted, cubin) =
        fit_solver(&device.nvrtc, matrix, plan, options, &target(device.device()), false)?;
    // What is said of the devices holds for the layout that was kept, too.
    let said = plan.notes.iter().filter(|note| !fitted.notes.contains(note)).cloned().collect::<Vec<_>>();
    fitted.notes.extend(said);
    Ok((fitted, cubin))
}

impl LinearDeviceGroup for CudaDeviceGroup {
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        let alone = plan_krylov(matrix, self.devices[0].device(), options)?;
        let count = self.devices.len();
        if count == 1 {
            return Ok(alone);
        }
        self.check(count)?;
        let (slab, slabs) = self.slab(count);
        plan_krylov_slabs(matrix, &slab, options, slabs, &alone)
    }

    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        plan.check(self.devices[0].name(), matrix, options)?;
        matrix.check(options)?;
        let count = plan.ranks.len();
        if count == 0 {
            return self.devices[0].open_solver(matrix, plan, options);
        }
        if count > self.devices.len() {
            let change = "plan with these devices";
            return Err(Error::limit("devices of a plan", count, self.devices.len(), change).into());
        }
        self.check(count)?;
        let (fitted, cubin) = fitted(&self.devices[0], matrix, plan, options)?;
        let members = self.slabs_of(count).into_values().map(|slabs| {
            let device = &self.devices[slabs[0]];
            let multiprocessors = device.device().multiprocessors;
            Member { context: device.context.clone(), multiprocessors, slabs }
        });
        Ok(Box::new(DistributedSession::open(matrix, fitted, options, &cubin, members.collect(), None)?))
    }
}
