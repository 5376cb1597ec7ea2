//! WGSL kernels.
