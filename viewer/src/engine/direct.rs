//! Fields in the memory of the device that draws the window: their values need not pass through the host to
//! be shown.

use std::sync::OnceLock;

use abide::backend::{Opened, share_wgpu};
use abide::{Choice, Simulation};
use eframe::egui_wgpu::RenderState;
use eframe::wgpu;

use super::Opener;

/// A field's values where they lie.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDevice {
    /// The values, slowest axis first. Later steps overwrite them, by whole passes.
    pub buffer: wgpu::Buffer,
    /// The field's extents along the three axes.
    pub extents: [usize; 3],
    /// Words of 32 bits of a value: 1 in f32, 2 in f64.
    pub words: u32,
}

impl OnDevice {
    /// Finds a field of a simulation that runs on the window's device; `None` where its values lie in no one
    /// buffer, or a shader cannot count its words.
    pub fn of(simulation: &Simulation, name: &str) -> Option<OnDevice> {
        let problem = simulation.problem();
        let extents = problem.extents_of(problem.program.field(name).ok()?);
        let words = (problem.dtype.bytes() / 4) as u32;
        u32::try_from(extents.iter().product::<usize>() * words as usize).ok()?;
        let buffer = simulation.device_buffer(name)?;
        Some(OnDevice { buffer, extents, words })
    }
}

/// Opens wgpu on the device that draws, where runs would go to its adapter anyway.
pub fn sharing(render: &RenderState) -> Opener {
    let (adapter, device, queue) = (render.adapter.clone(), render.device.clone(), render.queue.clone());
    let opened: OnceLock<Option<Opened>> = OnceLock::new();
    Box::new(move |choice| {
        // Where the device cannot be shared, the usual way is open, and reports any fault.
        let shared = || opened.get_or_init(|| share_wgpu(&adapter, &device, &queue).ok()).clone();
        if choice == Choice::WGPU { shared() } else { None }
    })
}
