//! Device time between two points of a stream.

use abide_core::Result;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaStream};

use crate::driver::during;

/// A pair of events.
pub(crate) struct Timer {
    start: CudaEvent,
    stop: CudaEvent,
}

impl Timer {
    pub fn new(stream: &CudaStream) -> Result<Timer> {
        let event = || {
            let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
            stream.context().new_event(flags).map_err(during("making an event"))
        };
        Ok(Timer { start: event()?, stop: event()? })
    }

    pub fn start(&self, stream: &CudaStream) -> Result<()> {
        self.start.record(stream).map_err(during("starting the clock"))
    }

    /// Waits for the work since [`Timer::start`] and returns its seconds.
    pub fn stop(&self, stream: &CudaStream) -> Result<f64> {
        self.stop.record(stream).map_err(during("stopping the clock"))?;
        stream.synchronize().map_err(during("running the kernel"))?;
        let milliseconds = self.start.elapsed_ms(&self.stop).map_err(during("reading the clock"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}
