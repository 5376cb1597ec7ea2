//! Instances of the interfaces to GPUs that print nothing where there is no session of Wayland.
//!
//! Mesa's Vulkan layer `VK_LAYER_MESA_device_select` connects to Wayland in each enumeration of devices, if the
//! instance has `VK_KHR_wayland_surface`. Without a session, libwayland prints `error: XDG_RUNTIME_DIR is invalid or
//! not set in the environment.` to stderr. wgpu asks for that extension always; kernels need no surface.

/// Returns instances that cover all of a descriptor's interfaces.
#[cfg(not(all(target_os = "linux", not(target_env = "ohos"))))]
pub fn instances(descriptor: wgpu::InstanceDescriptor) -> Vec<wgpu::Instance> {
    vec![wgpu::Instance::new(descriptor)]
}

/// Returns instances that cover all of a descriptor's interfaces.
#[cfg(all(target_os = "linux", not(target_env = "ohos")))]
pub fn instances(mut descriptor: wgpu::InstanceDescriptor) -> Vec<wgpu::Instance> {
    let mut all = Vec::new();
    if descriptor.backends.contains(wgpu::Backends::VULKAN) && !has_wayland(|name| std::env::var_os(name)) {
        all.extend(vulkan(&descriptor));
        descriptor.backends.remove(wgpu::Backends::VULKAN);
    }
    all.push(wgpu::Instance::new(descriptor));
    all
}

/// Returns an instance of Vulkan without surfaces of Wayland; `None` where there is no Vulkan.
#[cfg(all(target_os = "linux", not(target_env = "ohos")))]
fn vulkan(descriptor: &wgpu::InstanceDescriptor) -> Option<wgpu::Instance> {
    use wgpu::hal;

    let own = hal::InstanceDescriptor {
        name: "wgpu",
        flags: descriptor.flags,
        memory_budget_thresholds: descriptor.memory_budget_thresholds,
        backend_options: descriptor.backend_options.clone(),
        telemetry: None,
        display: None,
    };
    let without_wayland: Box<hal::vulkan::CreateInstanceCallback<'_>> = Box::new(|arguments| {
        arguments.extensions.retain(|name| *name != c"VK_KHR_wayland_surface");
    });
    // SAFETY: the callback takes one extension away, which wgpu-hal uses in `create_surface_from_wayland` alone, and
    // there only where the instance has it. No surface is made of this instance.
    let instance = unsafe { hal::vulkan::Instance::init_with_callback(&own, Some(without_wayland)) }.ok()?;
    // SAFETY: the instance was just made, of the interface that is named.
    Some(unsafe { wgpu::Instance::from_hal::<hal::api::Vulkan>(instance) })
}

/// Returns whether libwayland can find a session, by the variables that it reads.
#[cfg(all(target_os = "linux", not(target_env = "ohos")))]
fn has_wayland(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let is_absolute =
        |name: &str| variable(name).is_some_and(|path| path.as_encoded_bytes().starts_with(b"/"));
    variable("WAYLAND_SOCKET").is_some() || is_absolute("WAYLAND_DISPLAY") || is_absolute("XDG_RUNTIME_DIR")
}

#[cfg(all(test, target_os = "linux", not(target_env = "ohos")))]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_wayland_is_found_as_libwayland_finds_it() {
        let has = |set: &[(&str, &str)]| {
            has_wayland(|name| set.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into()))
        };
        assert!(!has(&[]));
        assert!(!has(&[("DISPLAY", ":99"), ("WAYLAND_DISPLAY", "wayland-0")]));
        assert!(!has(&[("XDG_RUNTIME_DIR", "")]) && !has(&[("XDG_RUNTIME_DIR", "run")]));
        assert!(has(&[("XDG_RUNTIME_DIR", "/run/user/1000")]));
        assert!(has(&[("WAYLAND_DISPLAY", "/run/wayland-0")]) && has(&[("WAYLAND_SOCKET", "3")]));
    }
}
