//! The command `abide`; the library's module `cli` does its work.

fn main() -> std::process::ExitCode {
    keep_mesa_quiet();
    // A library that the environment loads first may have changed the mode.
    abide::floating::standard(abide::cli::main)
}

/// Silences Mesa's Vulkan layer that looks for the display's GPU. Without a display the layer finds none and
/// says `error: …` on every run. Its own switch turns it off; a user's choice of a device through it stands.
fn keep_mesa_quiet() {
    const DISPLAYS: [&str; 3] = ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY"];
    const CHOICES: [&str; 3] = ["NODEVICE_SELECT", "MESA_VK_DEVICE_SELECT", "DRI_PRIME"];
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    if cfg!(target_os = "linux") && !DISPLAYS.iter().chain(&CHOICES).any(is_set) {
        // SAFETY: this is the first thing that the process does, so no other thread reads the environment
        // yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
