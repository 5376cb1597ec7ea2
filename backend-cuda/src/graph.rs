//! Launches recorded once and replayed.

use std::sync::Arc;

use abide_core::{Error, Result};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode_enum as CaptureMode};
use cudarc::driver::{CudaGraph, CudaStream};

use crate::driver::during;

/// Records what `launch` puts on the stream.
pub(crate) fn recorded(stream: &Arc<CudaStream>, launch: impl FnOnce() -> Result<()>) -> Result<CudaGraph> {
    stream
        .begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        .map_err(during("recording a graph"))?;
    let launched = launch();
    let graph = stream.end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    launched?;
    let graph = graph.map_err(during("recording a graph"))?;
    graph.ok_or_else(|| Error::device("cuda", "recording a graph", "the recording is empty"))
}
