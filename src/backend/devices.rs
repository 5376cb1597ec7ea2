//! How many devices a run takes, and the backends that can take several.

use std::sync::Arc;

use abide_core::backend::Backend;
use abide_ranks::{Device, Ranked};

use super::{Kind, Opened, entry, processes};
use crate::{Error, Result};

/// The environment variable with the number of devices of runs that do not say it themselves.
pub const VARIABLE: &str = "ABIDE_DEVICES";

/// Returns the number of devices of a run: the one asked for, else that of [`VARIABLE`], else 1.
///
/// # Errors
///
/// [`Error::Limit`] for no device, [`Error::Invalid`] where the variable is no number.
pub fn devices(asked: Option<usize>) -> Result<usize> {
    let named = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
    let devices = match (asked, named) {
        (Some(devices), _) => devices,
        (None, None) => processes::count(),
        (None, Some(text)) => text.to_str().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
            let what = format!("{VARIABLE}={}", text.to_string_lossy());
            Error::invalid(what, "not a whole number", "set it to a number of devices, or unset it")
        })?,
    };
    match devices {
        0 => Err(Error::limit("devices", 0, "at least 1", "ask for one device or more")),
        _ => processes::check(devices),
    }
}

/// Opens so many devices of a backend, which advance a domain together.
///
/// # Errors
///
/// Those of [`super::open`]; [`Error::Unsupported`] where the backend runs on one device alone.
pub fn open_on(name: &str, devices: usize) -> Result<Opened> {
    let entry = entry(name)?;
    if let Some(opened) = processes::open_on(name, devices)? {
        return Ok(opened);
    }
    match (devices, entry.several) {
        (1, _) => (entry.open)(),
        (_, Some(open)) => open(devices),
        (_, None) => Err(Error::unsupported(
            format!("backend {name}"),
            format!("{devices} devices were asked for (--devices or {VARIABLE}), and it runs on one"),
            "ask for one device, or use --backend cpu, whose devices are groups of its threads",
        )),
    }
}

/// Opens a CPU whose threads are divided among ranks.
pub(super) fn cpus(devices: usize) -> Result<Opened> {
    abide_cpu::start_threads()?;
    let make = |ranks: usize| {
        let own = abide_cpu::CpuBackend::divided(ranks)?.into_iter();
        let device = |(backend, weight)| Device { backend: Arc::new(backend) as Arc<dyn Backend>, weight };
        Ok(own.map(device).collect())
    };
    let single = Arc::new(abide_cpu::CpuBackend::new());
    Ok(Opened::new(Kind::Cpu, Ranked::new(single, devices, make)?))
}
