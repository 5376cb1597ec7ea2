//! The available adapters, and the choice among them.

use std::sync::OnceLock;

use abide_core::process::{Process, forked};
use abide_core::{Error, Result};
use async_lock::OnceCell;
use serde::Serialize;

use crate::NAME;
use crate::blocking::block_on;
use crate::quiet;

/// Advice for a machine without an adapter.
const HOW_TO_GET_ONE: &str = if cfg!(target_arch = "wasm32") {
    "this browser offers no WebGPU adapter; a recent one does, on a page served over https or from this machine"
} else {
    "no adapter that computes was found through Vulkan, Metal, DX12 or OpenGL; a graphics driver brings one, or on Debian \
     and Ubuntu `apt-get install mesa-vulkan-drivers` in software"
};

/// A device and the interface through which it is reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Adapter {
    /// The device's name.
    pub name: String,
    /// The interface: `vulkan`, `metal`, `dx12`, `gl`, or in a browser `webgpu`.
    pub interface: String,
    /// The driver and its version, as far as it reports them.
    pub driver: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// Whether the device computes in f64.
    pub f64: bool,
    /// Whether the device reports the times at which work began and ended.
    pub timestamps: bool,
    /// Threads of a subgroup, which can shuffle values; `None` where there are no subgroups, or their number
    /// of threads is not always the same.
    pub subgroup: Option<usize>,
    /// Bytes of workgroup memory of a workgroup.
    pub workgroup_bytes: usize,
    /// The most threads of a workgroup.
    pub workgroup_threads: usize,
    /// The most bytes of a buffer that a kernel can address.
    pub buffer_bytes: u64,
    /// The most buffers that a kernel can read and write.
    pub buffers: usize,
}

impl Adapter {
    /// Returns an adapter with the limits and features at hand: its own, or those of a device opened on it.
    pub(crate) fn of(info: wgpu::AdapterInfo, limits: &wgpu::Limits, features: wgpu::Features) -> Adapter {
        let driver = [info.driver.as_str(), info.driver_info.as_str()].map(str::trim);
        Adapter {
            kind: match info.device_type {
                wgpu::DeviceType::DiscreteGpu => "discrete",
                wgpu::DeviceType::IntegratedGpu => "integrated",
                wgpu::DeviceType::VirtualGpu => "virtual",
                wgpu::DeviceType::Cpu => "software",
                wgpu::DeviceType::Other => "other",
            },
            // Browsers do not report the device's name.
            name: if info.name.trim().is_empty() {
                "unnamed".to_owned()
            } else {
                info.name.trim().to_owned()
            },
            interface: info.backend.to_str().to_owned(),
            driver: driver.join(" ").trim().to_owned(),
            f64: features.contains(wgpu::Features::SHADER_F64),
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            subgroup: (features.contains(wgpu::Features::SUBGROUP)
                && info.subgroup_min_size == info.subgroup_max_size)
                .then_some(info.subgroup_max_size as usize),
            workgroup_bytes: limits.max_compute_workgroup_storage_size as usize,
            workgroup_threads: limits
                .max_compute_invocations_per_workgroup
                .min(limits.max_compute_workgroup_size_x) as usize,
            buffer_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
            buffers: limits.max_storage_buffers_per_shader_stage as usize,
        }
    }

    /// Returns whether the adapter is a program on the CPU that behaves as a device: correct, but slower than
    /// Abide's own CPU backend.
    pub fn is_software(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let known = ["llvmpipe", "lavapipe", "swiftshader", "softpipe", "basic render driver"];
        self.kind == "software" || known.iter().any(|software| name.contains(software))
    }

    /// Returns the adapter's rank, the smaller the better for a run: hardware before software, direct
    /// interfaces before OpenGL, discrete first.
    fn rank(&self) -> (bool, bool, usize) {
        let kinds = ["discrete", "integrated", "virtual", "other", "software"];
        let kind = kinds.iter().position(|&kind| kind == self.kind).unwrap_or(kinds.len());
        (self.is_software(), self.interface == "gl", kind)
    }

    /// Returns the text in which a name is looked for where an adapter is chosen by name.
    fn title(&self) -> String {
        format!("{} ({})", self.name, self.interface)
    }
}

/// Returns all adapters that can compute, the best first. Their places in this list are the numbers by which
/// [`WgpuBackend::on`](crate::WgpuBackend::on) finds them.
///
/// In a browser the list is empty, because this function cannot wait there; await [`adapters_async`] instead. It is empty,
/// too, in a process that was forked after its parent had looked for adapters.
pub fn adapters() -> Vec<Adapter> {
    match check_process() {
        Ok(()) => block_on(async { Ok(adapters_async().await) }).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Returns what [`adapters`] returns, without blocking.
pub async fn adapters_async() -> Vec<Adapter> {
    found().await.iter().map(|(adapter, _)| adapter.clone()).collect()
}

/// Returns the adapters, which are looked for once per process: another search would load every driver again.
async fn found() -> &'static [(Adapter, wgpu::Adapter)] {
    static FOUND: OnceCell<Vec<(Adapter, wgpu::Adapter)>> = OnceCell::new();
    FOUND.get_or_init(search).await
}

async fn search() -> Vec<(Adapter, wgpu::Adapter)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    // The same checks in debug and release builds, and none but those that the environment asks for.
    descriptor.flags = wgpu::InstanceFlags::empty();
    let mut all = Vec::new();
    for instance in quiet::instances(descriptor.with_env()) {
        all.extend(instance.enumerate_adapters(wgpu::Backends::all()).await);
    }
    let computes = |adapter: &wgpu::Adapter| {
        adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
    };
    let mut list: Vec<(Adapter, wgpu::Adapter)> = all
        .into_iter()
        .filter(computes)
        .map(|adapter| (Adapter::of(adapter.get_info(), &adapter.limits(), adapter.features()), adapter))
        .filter(|(adapter, _)| adapter.interface != "gl" || has_compute_language(&adapter.driver))
        .collect();
    list.sort_by_key(|(adapter, _)| adapter.rank());
    list
}

/// Returns whether an OpenGL version is new enough that its shading language has compute shaders: 4.3, or ES
/// 3.1. Some drivers of older versions claim them through an extension, but no kernel can be written in it.
fn has_compute_language(driver: &str) -> bool {
    let least = if driver.contains("OpenGL ES") { (3, 1) } else { (4, 3) };
    let words = driver.split(|c: char| !c.is_ascii_digit() && c != '.');
    let version = words.filter(|word| word.contains('.')).find_map(|word| {
        let mut numbers = word.split('.').map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    version.is_none_or(|version| version >= least)
}

/// Checks that drivers were not loaded by a process of which this one is a fork: they work in no other.
fn check_process() -> Result<()> {
    static LOADED: OnceLock<Process> = OnceLock::new();
    match LOADED.get_or_init(Process::current).is_current() {
        true => Ok(()),
        false => Err(Error::Unavailable { backend: NAME, reason: forked("graphics drivers were loaded") }),
    }
}

/// Returns the best adapter, or the one asked for by its number in [`adapters`] or by a part of its name.
pub(crate) async fn choose(asked: Option<&str>) -> Result<(Adapter, wgpu::Adapter)> {
    check_process()?;
    let all = found().await;
    let titles: Vec<String> = all.iter().map(|(adapter, _)| adapter.title()).collect();
    if all.is_empty() {
        return Err(Error::Unavailable { backend: NAME, reason: HOW_TO_GET_ONE.to_owned() });
    }
    let position = position(&titles, asked)?;
    Ok(all[position].clone())
}

fn position(titles: &[String], asked: Option<&str>) -> Result<usize> {
    let Some(asked) = asked else { return Ok(0) };
    let by_number = asked.parse::<usize>().ok().filter(|&number| number < titles.len());
    let lower = asked.to_lowercase();
    let by_name = || titles.iter().position(|title| title.to_lowercase().contains(&lower));
    by_number.or_else(by_name).ok_or_else(|| {
        let known = titles.iter().enumerate().map(|(number, title)| format!("{number}: {title}"));
        Error::unknown("wgpu adapter", asked, known)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(name: &str, interface: &str, kind: &'static str) -> Adapter {
        Adapter {
            name: name.to_owned(),
            interface: interface.to_owned(),
            driver: String::new(),
            kind,
            f64: true,
            timestamps: true,
            subgroup: Some(32),
            workgroup_bytes: 32 << 10,
            workgroup_threads: 256,
            buffer_bytes: 1 << 27,
            buffers: 8,
        }
    }

    #[test]
    fn hardware_comes_first_and_software_last() {
        let mut list = [
            adapter("llvmpipe (LLVM 15)", "gl", "software"),
            adapter("Some GPU", "gl", "discrete"),
            adapter("llvmpipe (LLVM 15)", "vulkan", "software"),
            adapter("Small GPU", "vulkan", "integrated"),
            adapter("Some GPU", "vulkan", "discrete"),
            adapter("SwiftShader Device", "vulkan", "other"),
        ];
        list.sort_by_key(Adapter::rank);
        let titles: Vec<String> = list.iter().map(Adapter::title).collect();
        assert_eq!(
            titles[..3],
            ["Some GPU (vulkan)", "Small GPU (vulkan)", "Some GPU (gl)"].map(str::to_owned)
        );
        assert!(list[3..].iter().all(Adapter::is_software) && titles[5].contains("(gl)"));
        assert_eq!(position(&titles, None), Ok(0));
        assert_eq!(position(&titles, Some("2")), Ok(2));
        assert_eq!(position(&titles, Some("small gpu")), Ok(1));
        assert_eq!(position(&titles, Some("some gpu (GL")), Ok(2));
        let error = position(&titles, Some("Voodoo")).unwrap_err().to_string();
        assert!(error.contains("1: Small GPU (vulkan)"), "{error}");
        assert!(position(&titles, Some("17")).is_err());
    }
    #[test]
    fn old_opengl_is_left_out() {
        for (driver, expected) in [
            ("3.3.0 NVIDIA 580.159.04", false),
            ("4.5 (Core Profile) Mesa 22.3.6", true),
            ("OpenGL ES 3.0 Mesa 22.3.6", false),
            ("OpenGL ES 3.2 Mesa 22.3.6", true),
            ("", true),
        ] {
            assert_eq!(has_compute_language(driver), expected, "{driver}");
        }
    }
}
