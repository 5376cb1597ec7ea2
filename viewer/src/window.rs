//! The real window.

use std::sync::Arc;

use abide::{Error, Result};
use eframe::NativeOptions;
use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};

use crate::app::{App, Opening};

/// The name under which the system keeps the remembered settings.
const NAME: &str = "abide-view";

/// Whether egui dithers its colours. Nothing here is shaded so finely that it would show, and it costs a
/// software adapter time.
pub const DITHERING: bool = false;

/// Describes a device that suits runs, so that they can share it.
pub fn setup() -> WgpuSetup {
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    setup.device_descriptor = Arc::new(abide::backend::device_descriptor);
    WgpuSetup::CreateNew(setup)
}

/// Opens the window and returns when it is closed.
pub fn open(opening: Opening) -> Result<()> {
    let viewport = egui::ViewportBuilder::default()
        .with_app_id(NAME)
        .with_title("Abide")
        .with_inner_size([1280.0, 800.0])
        .with_min_inner_size([320.0, 240.0]);
    let options = NativeOptions {
        viewport,
        wgpu_options: WgpuConfiguration { wgpu_setup: setup(), ..WgpuConfiguration::default() },
        dithering: DITHERING,
        ..NativeOptions::default()
    };
    eframe::run_native(NAME, options, Box::new(|cc| Ok(Box::new(App::new(cc, opening))))).map_err(|e| {
        Error::device(
            "window",
            "opening the window",
            format!("{e}; a display and a Vulkan, Metal or DX12 driver are needed"),
        )
    })
}
