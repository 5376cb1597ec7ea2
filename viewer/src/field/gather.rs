//! Shown values, taken from the field where it lies on the window's device.

use bytemuck::{Pod, Zeroable};
use eframe::wgpu;

use super::triangle;
use crate::engine::sampling::plane_axes;
use crate::engine::{Image, OnDevice};

/// Mirrors `Plane` in `gather.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Plane {
    first: u32,
    along: u32,
    row: u32,
    column: u32,
    depth: u32,
    words: u32,
    factor: [u32; 2],
    cells: [u32; 2],
}

impl Plane {
    /// Describes an image of a field. The indices fit, because [`OnDevice::of`] has checked them.
    fn new(field: &OnDevice, image: &Image) -> Plane {
        let [_, height, width] = field.extents;
        let strides = [height * width, width, 1];
        let [rows, columns] = plane_axes(image.axis);
        let first = image.depth[0] * strides[image.axis]
            + image.low[0] * strides[rows]
            + image.low[1] * strides[columns];
        let words = |pair: [usize; 2]| pair.map(|n| n as u32);
        Plane {
            first: first as u32,
            along: strides[image.axis] as u32,
            row: strides[rows] as u32,
            column: strides[columns] as u32,
            depth: (image.depth[1] - image.depth[0]) as u32,
            words: field.words,
            factor: words(image.factor),
            cells: words([image.high[0] - image.low[0], image.high[1] - image.low[1]]),
        }
    }
}

/// The pipeline that takes the values.
pub struct Gather {
    pipeline: wgpu::RenderPipeline,
}

impl Gather {
    /// Makes the pipeline for textures of one 32-bit float per texel.
    pub fn new(device: &wgpu::Device) -> Gather {
        let shader = device.create_shader_module(wgpu::include_wgsl!("gather.wgsl"));
        let target = wgpu::TextureFormat::R32Float;
        Gather { pipeline: triangle::pipeline(device, "gather", &shader, None, &[], target) }
    }

    /// Records the commands that put an image's values into `values`, a texture of the image's size.
    pub fn record(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        encoder: &mut wgpu::CommandEncoder,
        field: &OnDevice,
        image: &Image,
        values: &wgpu::Texture,
    ) {
        let plane = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("gather"),
            size: size_of::<Plane>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        queue.write_buffer(&plane, 0, bytemuck::bytes_of(&Plane::new(field, image)));
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("gather"),
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: plane.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: field.buffer.as_entire_binding() },
            ],
        });
        let view = values.create_view(&wgpu::TextureViewDescriptor::default());
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("gather"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                    store: wgpu::StoreOp::Store,
                },
                depth_slice: None,
            })],
            ..wgpu::RenderPassDescriptor::default()
        });
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        pass.draw(0..3, 0..1);
    }
}
