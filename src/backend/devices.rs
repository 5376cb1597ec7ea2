//! The devices of a run, and the backends that can take several.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use abide_core::backend::Backend;
use abide_ranks::{Device, Ranked};

use super::{Kind, Opened, entry, processes};
use crate::{DeviceSpec, Error, Result};

/// The environment variable with the devices of runs that do not say it themselves: a number, or `all`.
pub const VARIABLE: &str = "ABIDE_DEVICES";

/// The devices that a run takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    /// So many of them.
    Count(usize),
    /// All that the backend has.
    All,
    /// Those of these numbers, as the backend counts them; one that is named twice has two slabs.
    These(Vec<usize>),
}

impl Devices {
    /// Returns whether a single device was asked for, whichever.
    pub fn is_one(&self) -> bool {
        *self == Devices::Count(1)
    }

    fn check(self) -> Result<Devices> {
        match &self {
            Devices::Count(0) => Err(none()),
            Devices::These(numbers) if numbers.is_empty() => Err(none()),
            _ => Ok(self),
        }
    }
}

impl From<usize> for Devices {
    fn from(count: usize) -> Devices {
        Devices::Count(count)
    }
}

impl Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Devices::Count(1) => f.write_str("1 device"),
            Devices::Count(count) => write!(f, "{count} devices"),
            Devices::All => f.write_str("all devices"),
            Devices::These(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                write!(f, "devices {}", numbers.join(", "))
            }
        }
    }
}

impl FromStr for Devices {
    type Err = Error;

    fn from_str(text: &str) -> Result<Devices> {
        match text.trim() {
            "all" => Ok(Devices::All),
            number => number.parse().map(Devices::Count).map_err(|_| {
                let what = format!("devices `{text}`");
                Error::invalid(what, "neither a whole number nor `all`", "write 2, or all")
            }),
        }
    }
}

pub(super) fn none() -> Error {
    Error::limit("devices", 0, "at least 1", "ask for one device or more")
}

/// Returns the devices of a run: those asked for, else those of [`VARIABLE`], else one.
///
/// # Errors
///
/// [`Error::Limit`] for no device, [`Error::Invalid`] where the variable is neither a number nor `all`.
pub fn devices(asked: Option<Devices>) -> Result<Devices> {
    let named = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
    let devices = match (asked, named) {
        (Some(devices), _) => devices,
        (None, None) => Devices::Count(processes::count()),
        (None, Some(text)) => text.to_string_lossy().parse().map_err(|_| {
            let what = format!("{VARIABLE}={}", text.to_string_lossy());
            let change = "set it to a number of devices or to all, or unset it";
            Error::invalid(what, "neither a whole number nor `all`", change)
        })?,
    };
    processes::check(devices.check()?)
}

/// A backend's way to run on several devices.
pub(super) struct DeviceKind {
    /// Opens devices that jointly advance one domain.
    pub(super) open: fn(&Devices) -> Result<Opened>,
    /// Counts the devices that can be asked for by number.
    pub(super) count: fn() -> Result<usize>,
    /// Lists them.
    pub(super) list: fn() -> Result<Vec<Listed>>,
}

/// The CPU's threads, in as many groups as are asked for.
pub(super) const CPUS: DeviceKind = DeviceKind { open: cpus, count: || Ok(0), list: || Ok(Vec::new()) };

/// A device among several of a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its number, for [`Devices::These`].
    pub number: usize,
    /// The device.
    pub device: DeviceSpec,
    /// The numbers of the other devices whose memory it can copy from directly.
    pub reaches: Vec<usize>,
}

/// Counts the devices of a backend that can be asked for by number, and opens none; 0 where it runs on one alone, or on
/// groups of threads.
///
/// # Errors
///
/// [`Error::Unavailable`] where there is no driver.
pub fn count(name: &str) -> Result<usize> {
    entry(name)?.built()?.several.as_ref().map_or(Ok(0), |several| (several.count)())
}

/// Lists the devices of a backend that can be asked for by number; none where it runs on one alone, or on groups of
/// threads.
///
/// # Errors
///
/// Those of [`super::open`].
pub fn list(name: &str) -> Result<Vec<Listed>> {
    entry(name)?.built()?.several.as_ref().map_or(Ok(Vec::new()), |several| (several.list)())
}

/// Opens devices of a backend, which jointly advance one domain.
///
/// # Errors
///
/// Those of [`super::open`]; [`Error::Unsupported`] where the backend runs on one device alone, [`Error::Limit`] where
/// it has fewer devices.
pub fn open_on(name: &str, devices: &Devices) -> Result<Opened> {
    let built = entry(name)?.built()?;
    if let Some(opened) = processes::open_on(name, devices)? {
        return Ok(opened);
    }
    match &built.several {
        _ if devices.is_one() => (built.open)(),
        Some(several) => (several.open)(devices),
        None => Err(Error::unsupported(
            format!("backend {name}"),
            format!("{devices} were asked for (--devices, --device-list or {VARIABLE}), and it runs on one"),
            "ask for one device, or use --backend cuda, or --backend cpu, whose devices are groups of its threads",
        )),
    }
}

/// Returns the most groups into which so many threads can be divided. Beyond one a thread, groups wait for each other; some
/// such are there for a look at what more devices would do.
fn most_groups(threads: usize) -> usize {
    const OF_A_THREAD: usize = 8;
    const FEW: usize = 16;
    threads.saturating_mul(OF_A_THREAD).max(FEW)
}

/// Opens a CPU whose threads are divided among ranks.
fn cpus(devices: &Devices) -> Result<Opened> {
    let &Devices::Count(count) = devices else {
        let reason =
            format!("{devices} were asked for, and its devices are groups of threads, as many as one likes");
        return Err(Error::unsupported("backend cpu", reason, "ask for a number of devices (--devices 2)"));
    };
    let threads = abide_cpu::count_threads()?;
    let most = most_groups(threads);
    if count > most {
        return Err(Error::limit(
            "devices of backend cpu",
            count,
            format!("{most}: its devices are groups of threads, and {threads} threads have no use for more"),
            format!("ask for fewer; {threads} or less are fastest"),
        ));
    }
    let make = |ranks: usize| {
        let own = abide_cpu::CpuBackend::divided(ranks)?.into_iter();
        let device = |(backend, weight)| Device { backend: Arc::new(backend) as Arc<dyn Backend>, weight };
        Ok(own.map(device).collect())
    };
    let single = Arc::new(abide_cpu::CpuBackend::new());
    Ok(Opened::new(Kind::Cpu, Ranked::new(single, count, make)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_a_number_or_all() {
        assert_eq!("3".parse(), Ok(Devices::Count(3)));
        assert_eq!(" all ".parse(), Ok(Devices::All));
        for wrong in ["", "-1", "2.5", "some", "0,1"] {
            let error = wrong.parse::<Devices>().unwrap_err().to_string();
            assert!(error.contains("neither a whole number nor `all`"), "{error}");
        }
        assert!(matches!(devices(Some(Devices::Count(0))), Err(Error::Limit { .. })));
        assert!(matches!(devices(Some(Devices::These(Vec::new()))), Err(Error::Limit { .. })));
        assert_eq!(Devices::These(vec![0, 2]).to_string(), "devices 0, 2");
    }

    /// A CPU has no devices of its own that one could count or name.
    #[test]
    fn a_cpu_is_cut_into_a_number_of_devices_alone() {
        for asked in [Devices::All, Devices::These(vec![0])] {
            let error = open_on("cpu", &asked).err().unwrap().to_string();
            assert!(error.contains(&asked.to_string()) && error.contains("groups of threads"), "{error}");
        }
        assert!(open_on("wgpu", &Devices::Count(2)).err().unwrap().to_string().contains("2 devices"));
    }

    /// Thousands of groups would take minutes to start, or more than the system has.
    #[test]
    fn a_cpu_has_few_more_groups_than_threads() {
        let threads = abide_cpu::count_threads().unwrap();
        assert!(open_on("cpu", &Devices::Count(most_groups(threads))).is_ok());
        for asked in [most_groups(threads) + 1, 20_000, usize::MAX] {
            let error = open_on("cpu", &Devices::Count(asked)).err().unwrap().to_string();
            assert!(error.contains(&asked.to_string()) && error.contains("groups of threads"), "{error}");
        }
    }
}
