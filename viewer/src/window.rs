//! The real window.

use std::sync::Arc;

use abide::{Error, Result};
use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};
use eframe::{NativeOptions, wgpu};

use crate::app::{App, Opening};

/// The name under which the system keeps what is remembered.
const NAME: &str = "abide-view";

/// Whether egui dithers its colours: nothing here is shaded so finely that it would show, and a software adapter takes its
/// time over it.
pub const DITHERING: bool = false;

/// Opens the window and returns when it is closed.
pub fn open(opening: Opening) -> Result<()> {
    let viewport = egui::ViewportBuilder::default()
        .with_app_id(NAME)
        .with_title("Abide")
        .with_inner_size([1280.0, 800.0])
        .with_min_inner_size([320.0, 240.0]);
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    // What the adapter has, and not the least that every one has: planes are as wide as screens are.
    setup.device_descriptor = Arc::new(|adapter: &wgpu::Adapter| wgpu::DeviceDescriptor {
        label: Some("abide window"),
        required_limits: wgpu::Limits::downlevel_defaults().using_resolution(adapter.limits()),
        ..wgpu::DeviceDescriptor::default()
    });
    let options = NativeOptions {
        viewport,
        wgpu_options: WgpuConfiguration { wgpu_setup: WgpuSetup::CreateNew(setup), ..WgpuConfiguration::default() },
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
