//! Pipelines that draw one triangle over their whole target; the fragment shader makes the picture.

use eframe::wgpu;

/// Makes a pipeline of a module's `vertex` and `fragment`, with values for the module's constants. Without a
/// layout, the pipeline has the bindings that the module names.
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
