//! Device time between two points of a stream.

use abide_core::Result;
use cudarc::driver::CudaEvent;
use cudarc::driver::sys::CUevent_flags;

use crate::driver::during;
use crate::memory::Fields;

/// A pair of events.
pub(crate) struct Timer {
    start: CudaEvent,
    stop: CudaEvent,
}

impl Timer {
    pub fn new(fields: &Fields) -> Result<Timer> {
        let event = || {
            fields.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(during("making an event"))
        };
        Ok(Timer { start: event()?, stop: event()? })
    }

    pub fn start(&self, fields: &Fields) -> Result<()> {
        self.start.record(&fields.stream).map_err(during("starting the clock"))
    }

    /// Waits for the work since [`Timer::start`] and returns its seconds.
    pub fn stop(&self, fields: &Fields) -> Result<f64> {
        self.stop.record(&fields.stream).map_err(during("stopping the clock"))?;
        fields.stream.synchronize().map_err(during("running the kernel"))?;
        let milliseconds = self.start.elapsed_ms(&self.stop).map_err(during("reading the clock"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}
