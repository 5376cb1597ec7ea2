//! The window's background: one triangle in one colour. Panels are clear and lie on it. On a software adapter
//! egui's shader, which samples a texture and blends, costs as much for a plain background as for everything
//! on it.

use eframe::egui_wgpu::{self, CallbackResources, CallbackTrait, RenderState, ScreenDescriptor};
use eframe::wgpu;
use egui::{Color32, PaintCallbackInfo, Rect, Rgba, Shape};

use super::triangle;

/// Makes the pipeline, and keeps it with the window's renderer.
pub fn install(state: &RenderState) {
    let gpu = Gpu::new(&state.device, state.target_format);
    state.renderer.write().callback_resources.insert(gpu);
}

/// Returns the shape that fills the window, which is `rect`.
pub fn shape(rect: Rect, colour: Color32) -> Shape {
    Shape::Callback(egui_wgpu::Callback::new_paint_callback(rect, Background(colour)))
}

struct Background(Color32);

struct Gpu {
    pipeline: wgpu::RenderPipeline,
    colour: wgpu::Buffer,
    bindings: wgpu::BindGroup,
    linear_target: bool,
}

impl Gpu {
    fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Gpu {
        let shader = device.create_shader_module(wgpu::include_wgsl!("background.wgsl"));
        let pipeline = triangle::pipeline(device, "background", &shader, None, &[], format);
        let colour = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("background"),
            size: size_of::<[f32; 4]>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("background"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: colour.as_entire_binding() }],
        });
        Gpu { pipeline, colour, bindings, linear_target: format.is_srgb() }
    }
}

impl CallbackTrait for Background {
    fn prepare(
        &self,
        _device: &wgpu::Device,
        queue: &wgpu::Queue,
        _screen: &ScreenDescriptor,
        _encoder: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(gpu) = resources.get::<Gpu>() {
            let colour = match gpu.linear_target {
                true => Rgba::from(self.0).to_array(),
                false => self.0.to_normalized_gamma_f32(),
            };
            queue.write_buffer(&gpu.colour, 0, bytemuck::cast_slice(&colour));
        }
        Vec::new()
    }

    fn paint(
        &self,
        _info: PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        if let Some(gpu) = resources.get::<Gpu>() {
            pass.set_pipeline(&gpu.pipeline);
            pass.set_bind_group(0, &gpu.bindings, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}
