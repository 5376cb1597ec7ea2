//! Pipelines that draw one triangle over all of their target: what there is to see is the fragment shader's.

use eframe::wgpu;

/// A pipeline of a module's `vertex` and `fragment`, with values for the module's constants; without a
/// layout, with the bindings that the module names.
pub fn pipeline(
    device: &wgpu::Device,
    label: &str,
    shader: &wgpu::ShaderModule,
    layout: Option<&wgpu::PipelineLayout>,
    constants: &[(&str, f64)],
    target: wgpu::TextureFormat,
) -> wgpu::RenderPipeline {
    let options =
        || wgpu::PipelineCompilationOptions { constants, ..wgpu::PipelineCompilationOptions::default() };
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(label),
        layout,
        vertex: wgpu::VertexState {
            module: shader,
            entry_point: Some("vertex"),
            compilation_options: options(),
            buffers: &[],
        },
        fragment: Some(wgpu::FragmentState {
            module: shader,
            entry_point: Some("fragment"),
            compilation_options: options(),
            targets: &[Some(target.into())],
        }),
        primitive: wgpu::PrimitiveState::default(),
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        multiview_mask: None,
        cache: None,
    })
}
