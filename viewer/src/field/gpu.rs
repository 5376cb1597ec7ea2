//! The field's picture on the window's own device: values in a texture, colours by a fragment shader.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use eframe::egui_wgpu::{self, CallbackResources, CallbackTrait, RenderState, ScreenDescriptor};
use eframe::wgpu;
use egui::PaintCallbackInfo;

use super::gather::Gather;
use super::look::{ColourMap, Scale};
use super::triangle;
use crate::engine::{Frame, Image};

/// Entries of a colour map's texture.
const COLOURS: u32 = 256;

/// Mirrors `Uniforms` in `field.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Uniforms {
    view_low: [f32; 2],
    view_size: [f32; 2],
    low: [f32; 2],
    high: [f32; 2],
    factor: [f32; 2],
    size: [f32; 2],
    range: [f32; 2],
    logarithmic: u32,
    contours: u32,
    smooth: u32,
    linear_target: u32,
}

/// One plane to be drawn.
pub struct Plane {
    /// The frame and the number of its image.
    pub frame: Arc<Frame>,
    /// See [`Plane::frame`].
    pub image: usize,
    /// Number that distinguishes frames: values are uploaded once per frame.
    pub serial: u64,
    /// The column and row at the view's top left corner, and the numbers of columns and rows that it shows.
    pub view: [[f32; 2]; 2],
    /// The scale.
    pub scale: Scale,
    /// The colours.
    pub map: ColourMap,
    /// Lines of equal values; 0 for none.
    pub contours: u32,
    /// Whether values are interpolated.
    pub smooth: bool,
}

/// Makes the pipeline, and keeps it with the window's renderer.
pub fn install(state: &RenderState) {
    let gpu = Gpu::new(&state.device, state.target_format);
    state.renderer.write().callback_resources.insert(gpu);
}

struct Gpu {
    /// One pipeline without the code for places between values, and one with it: most pixels need none of
    /// that code.
    pipelines: [wgpu::RenderPipeline; 2],
    layout: wgpu::BindGroupLayout,
    linear_target: bool,
    /// The pipeline for fields that are drawn from where they lie, made when it is first needed.
    gather: Option<Gather>,
    maps: HashMap<ColourMap, wgpu::TextureView>,
    /// One slot for each image of a frame.
    slots: HashMap<usize, Slot>,
}

/// The values of an image.
struct Slot {
    serial: u64,
    size: [usize; 2],
    map: ColourMap,
    values: wgpu::Texture,
    uniforms: wgpu::Buffer,
    bindings: wgpu::BindGroup,
}

impl Gpu {
    fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Gpu {
        let shader = device.create_shader_module(wgpu::include_wgsl!("field.wgsl"));
        let texture = |binding, filterable| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty: wgpu::BindingType::Texture {
                sample_type: wgpu::TextureSampleType::Float { filterable },
                view_dimension: wgpu::TextureViewDimension::D2,
                multisampled: false,
            },
            count: None,
        };
        let uniforms = wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("field"),
            entries: &[uniforms, texture(1, false), texture(2, true)],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("field"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = |between: bool| {
            let constants = [("BETWEEN", f64::from(u8::from(between)))];
            triangle::pipeline(device, "field", &shader, Some(&pipeline_layout), &constants, format)
        };
        Gpu {
            pipelines: [false, true].map(pipeline),
            layout,
            linear_target: format.is_srgb(),
            gather: None,
            maps: HashMap::new(),
            slots: HashMap::new(),
        }
    }

    /// Returns the texture of a colour map.
    fn map(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, map: ColourMap) -> wgpu::TextureView {
        let make = || {
            let (format, usage) = (wgpu::TextureFormat::Rgba8Unorm, wgpu::TextureUsages::empty());
            let texture = texture(device, "colours", [1, COLOURS as usize], format, usage);
            let colour = |i: u32| {
                let [r, g, b] = map.at(f64::from(i) / f64::from(COLOURS - 1));
                [r, g, b, 255]
            };
            let bytes: Vec<u8> = (0..COLOURS).flat_map(colour).collect();
            upload(queue, &texture, &bytes, [1, COLOURS as usize]);
            texture.create_view(&wgpu::TextureViewDescriptor::default())
        };
        self.maps.entry(map).or_insert_with(make).clone()
    }

    /// Puts an image's values where the shader finds them.
    fn load(
        &mut self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        encoder: &mut wgpu::CommandEncoder,
        plane: &Plane,
        image: &Image,
    ) {
        let fits = |slot: &Slot| slot.size == image.size && slot.map == plane.map;
        let kept = self.slots.remove(&plane.image).filter(fits);
        let fresh = kept.is_none();
        let mut slot = match kept {
            Some(slot) => slot,
            None => self.slot(device, queue, plane.map, image.size),
        };
        if fresh || slot.serial != plane.serial {
            match &plane.frame.field {
                Some(field) => {
                    let gather = self.gather.get_or_insert_with(|| Gather::new(device));
                    gather.record(device, queue, encoder, field, image, &slot.values);
                }
                None => upload(queue, &slot.values, bytemuck::cast_slice(&image.values), image.size),
            }
            slot.serial = plane.serial;
        }
        let pair = |v: [usize; 2]| [v[1] as f32, v[0] as f32];
        let along = |value: f64| if plane.scale.log { value.ln() } else { value };
        let uniforms = Uniforms {
            view_low: plane.view[0],
            view_size: plane.view[1],
            low: pair(image.low),
            high: pair(image.high),
            factor: pair(image.factor),
            size: pair(image.size),
            range: [along(plane.scale.low) as f32, along(plane.scale.high) as f32],
            logarithmic: plane.scale.log.into(),
            contours: plane.contours,
            smooth: plane.smooth.into(),
            linear_target: self.linear_target.into(),
        };
        queue.write_buffer(&slot.uniforms, 0, bytemuck::bytes_of(&uniforms));
        self.slots.insert(plane.image, slot);
    }

    fn slot(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, map: ColourMap, size: [usize; 2]) -> Slot {
        let values = texture(
            device,
            "values",
            size,
            wgpu::TextureFormat::R32Float,
            wgpu::TextureUsages::RENDER_ATTACHMENT,
        );
        let uniforms = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("field"),
            size: size_of::<Uniforms>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let colours = self.map(device, queue, map);
        let view = values.create_view(&wgpu::TextureViewDescriptor::default());
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("field"),
            layout: &self.layout,
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: uniforms.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::TextureView(&view) },
                wgpu::BindGroupEntry { binding: 2, resource: wgpu::BindingResource::TextureView(&colours) },
            ],
        });
        Slot { serial: 0, size, map, values, uniforms, bindings }
    }
}

/// Makes a texture of rows and columns of texels that can be written and read, and has other usages too.
fn texture(
    device: &wgpu::Device,
    label: &str,
    size: [usize; 2],
    format: wgpu::TextureFormat,
    usage: wgpu::TextureUsages,
) -> wgpu::Texture {
    device.create_texture(&wgpu::TextureDescriptor {
        label: Some(label),
        size: extent(size),
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage: usage | wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    })
}

/// Writes four bytes per texel.
fn upload(queue: &wgpu::Queue, texture: &wgpu::Texture, bytes: &[u8], size: [usize; 2]) {
    let layout = wgpu::TexelCopyBufferLayout {
        offset: 0,
        bytes_per_row: Some(4 * size[1] as u32),
        rows_per_image: None,
    };
    queue.write_texture(texture.as_image_copy(), bytes, layout, extent(size));
}

fn extent(size: [usize; 2]) -> wgpu::Extent3d {
    wgpu::Extent3d { width: size[1] as u32, height: size[0] as u32, depth_or_array_layers: 1 }
}

impl CallbackTrait for Plane {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _screen: &ScreenDescriptor,
        encoder: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let (Some(gpu), Some(image)) = (resources.get_mut::<Gpu>(), self.frame.images.get(self.image)) {
            gpu.load(device, queue, encoder, self, image);
        }
        Vec::new()
    }

    fn paint(
        &self,
        _info: PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        let slot = resources.get::<Gpu>().and_then(|gpu| Some((gpu, gpu.slots.get(&self.image)?)));
        if let Some((gpu, slot)) = slot {
            pass.set_pipeline(&gpu.pipelines[usize::from(self.smooth || self.contours > 0)]);
            pass.set_bind_group(0, &slot.bindings, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}

/// Returns the shape that draws a plane into a rectangle.
pub fn shape(rect: egui::Rect, plane: Plane) -> egui::Shape {
    egui::Shape::Callback(egui_wgpu::Callback::new_paint_callback(rect, plane))
}
