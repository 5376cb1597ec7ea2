//! NVIDIA's GPUs.

use std::sync::Arc;

use abide_core::backend::Backend;
use abide_cuda::{CudaBackend, CudaDeviceGroup};
use abide_ranks::{Device, Ranked};

use super::devices::{DeviceKind, Devices, Listed, none};
use super::{Built, Kind, Opened, exact};
use crate::{DeviceSpec, Error, Result};

pub(super) const BUILT: Option<Built> = Some(Built {
    open: || CudaBackend::new().map(|backend| Opened::new(Kind::Gpu, backend)),
    several: Some(GPUS),
    variants: abide_cuda::variants,
    bound: exact,
});

/// NVIDIA's GPUs, as the driver counts those that it shows (`CUDA_VISIBLE_DEVICES`).
const GPUS: DeviceKind = DeviceKind { open: gpus, count: abide_cuda::device_count, list: list_gpus };

fn list_gpus() -> Result<Vec<Listed>> {
    let all = (0..abide_cuda::device_count()?).map(CudaBackend::with_ordinal).collect::<Result<Vec<_>>>()?;
    let listed = |(number, own): (usize, &CudaBackend)| {
        let mut reaches = Vec::new();
        for (other, backend) in all.iter().enumerate().filter(|(other, _)| *other != number) {
            if own.reaches(backend)? {
                reaches.push(other);
            }
        }
        Ok(Listed { number, device: own.device().clone(), reaches })
    };
    all.iter().enumerate().map(listed).collect()
}

/// Returns the weight of a slab, by bandwidth, because most of what is computed is bound by it; slabs of one device share it.
pub(super) fn weight(device: &DeviceSpec, slabs: usize) -> usize {
    ((device.memory_bandwidth / 1e9) as usize / slabs).max(1)
}

/// Opens GPUs, each of which may copy from the others' memory.
fn gpus(devices: &Devices) -> Result<Opened> {
    let there = abide_cuda::device_count()?;
    let numbers: Vec<usize> = match devices {
        &Devices::Count(count) if count > there => {
            let change = "ask for fewer, or name some twice (--device-list 0,0)";
            return Err(Error::limit("CUDA devices", count, there, change));
        }
        &Devices::Count(count) => (0..count).collect(),
        Devices::All => (0..there).collect(),
        Devices::These(numbers) => numbers.clone(),
    };
    let connected = CudaBackend::connected(&numbers)?;
    let team = Arc::new(CudaDeviceGroup::new(connected.clone())?);
    let times = |number: usize| numbers.iter().filter(|&&other| other == number).count();
    let all: Vec<Device> = (connected.into_iter().zip(&numbers))
        .map(|(backend, &number)| {
            let weight = weight(backend.device(), times(number));
            Device { backend, weight }
        })
        .collect();
    match &all[..] {
        [only] => Ok(Opened { backend: only.backend.clone(), kind: Kind::Gpu }),
        [first, ..] => {
            let single = first.backend.clone();
            let count = all.len();
            let make = move |ranks: usize| Ok(all[..ranks.min(all.len())].to_vec());
            Ok(Opened::new(Kind::Gpu, Ranked::new(single, count, make)?.with_team(team)))
        }
        [] => Err(none()),
    }
}
