//! Device time between two points of a stream.

use abide_core::Result;
use cudarc::driver::sys::{self, CUevent_flags};
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
        self.end(stream)?;
        stream.synchronize().map_err(during("running the kernel"))?;
        self.seconds()
    }

    /// Ends the time that is measured, once the work so far is done.
    pub fn end(&self, stream: &CudaStream) -> Result<()> {
        self.stop.record(stream).map_err(during("stopping the clock"))
    }

    /// Returns the seconds between start and end, which the stream has passed.
    pub fn seconds(&self) -> Result<f64> {
        let milliseconds = self.start.elapsed_ms(&self.stop).map_err(during("reading the clock"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

/// Points in the device's time that a recorded graph passes whenever it runs.
pub(crate) struct Marks(Vec<CudaEvent>);

impl Marks {
    /// Makes so many of them.
    pub fn new(stream: &CudaStream, count: usize) -> Result<Marks> {
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let event = |_| stream.context().new_event(flags).map_err(during("making an event"));
        Ok(Marks((0..count).map(event).collect::<Result<_>>()?))
    }

    /// Records that the stream, into whose graph is being recorded, passes the point of this number.
    pub fn pass(&self, number: usize, stream: &CudaStream) -> Result<()> {
        // An event that is recorded plainly orders streams, and is no node of the graph.
        let flags = sys::CUevent_record_flags_enum::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: event and stream live, and are of the same context.
        unsafe { sys::cuEventRecordWithFlags(self.0[number].cu_event(), stream.cu_stream(), flags) }
            .result()
            .map_err(during("recording an event"))
    }

    /// Waits for the stream, and returns the seconds between each point and the next.
    pub fn seconds(&self, stream: &CudaStream) -> Result<Vec<f64>> {
        stream.synchronize().map_err(during("running the kernels"))?;
        let between = |pair: &[CudaEvent]| {
            let milliseconds = pair[0].elapsed_ms(&pair[1]).map_err(during("reading the clock"))?;
            Ok(f64::from(milliseconds) * 1e-3)
        };
        self.0.windows(2).map(between).collect()
    }
}
