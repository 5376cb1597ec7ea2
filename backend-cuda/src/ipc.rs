//! Planes that go between processes of one machine: the driver maps memory of one into the other (`cuIpc`), and events order
//! the copies on their streams.
//!
//! Fields lie in memory of a pool, which cannot be mapped. So planes are copied into an IPC buffer, which is an
//! allocation of its own, and from there into the other process's halo. The hosts send each other the handles of
//! buffers and events.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use abide_core::backend::Planes;
use abide_core::communicator::IpcHandle;
use abide_core::{Error, Result};
use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};

use crate::driver::{bind, during};
use crate::lent::DeviceBuffer;
use crate::mapped::{Handle, Mapped, Shared, machine};
use crate::peer::{span, wait};

/// Points that are used in rotation: each of two neighbours is sent one per exchange, and no rank leads another by two
/// exchanges.
const POINTS: usize = 8;

/// What a session exchanges with those of other processes.
pub(crate) struct IpcExchange {
    /// Drop order: unmap imports before freeing exports.
    opened: Opened,
    /// By field and box.
    ipc_buffers: HashMap<(usize, [[usize; 3]; 2]), IpcBuffer>,
    /// A buffer that others map as a test before they agree; it carries no data.
    _sample: IpcBuffer,
    points: Vec<Point>,
    next: usize,
    /// Points of others, recorded after they copied the last exports.
    awaited: Vec<Handle>,
    /// Declared last, because it keeps the context alive.
    stream: Arc<CudaStream>,
}

/// Memory that other processes map, and the point after which it holds the last copy.
struct IpcBuffer {
    memory: Shared,
    made: Point,
}

/// An event that other processes can wait for.
struct Point {
    event: Event,
    handle: Handle,
}

struct Event(sys::CUevent);

// SAFETY: events belong to no thread.
unsafe impl Send for Event {}

/// Memory and events of other processes, by their handles.
#[derive(Default)]
struct Opened {
    memory: HashMap<Handle, Mapped>,
    events: HashMap<Handle, Event>,
}

impl IpcExchange {
    /// Makes the points of a session, and the offer by which another process tests whether it can map them; `None`
    /// where the driver or the system does not support them.
    pub fn offer(stream: &Arc<CudaStream>) -> Option<(IpcExchange, Vec<u8>)> {
        let (machine, context) = (machine()?, stream.context());
        context.bind_to_thread().ok()?;
        let points = (0..POINTS).map(|_| Point::new().ok()).collect::<Option<_>>()?;
        let sample = IpcBuffer::new(context, 1).ok()?;
        let offer = [&sample.memory.handle[..], &sample.made.handle[..], &machine[..]].concat();
        let (ipc_buffers, opened, stream) = (HashMap::new(), Opened::default(), stream.clone());
        let awaited = Vec::new();
        Some((IpcExchange { ipc_buffers, _sample: sample, points, next: 0, awaited, opened, stream }, offer))
    }

    /// Returns whether the offer of another process can be mapped; that needs the same machine.
    pub fn accepts(&mut self, offer: &[u8]) -> bool {
        let mut find = || -> Option<()> {
            let (memory, rest) = offer.split_first_chunk()?;
            let (event, other) = rest.split_first_chunk()?;
            if machine()? != other {
                return None;
            }
            self.stream.context().bind_to_thread().ok()?;
            self.opened.memory(self.stream.context(), memory).ok()?;
            self.opened.event(event).ok().map(drop)
        };
        find().is_some()
    }

    /// Copies planes into their IPC buffer, and returns its handle.
    pub fn export(&mut self, buffer: &DeviceBuffer, planes: &Planes) -> Result<IpcHandle> {
        bind(&self.stream)?;
        self.await_taken()?;
        let (stream, bytes) = (&self.stream, span(&buffer.layout, planes)?);
        let ipc_buffer = match self.ipc_buffers.entry((planes.field, [planes.low, planes.high])) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(free) => free.insert(IpcBuffer::new(stream.context(), bytes.len())?),
        };
        let from = buffer.address() + bytes.start as u64;
        // SAFETY: the range lies within the buffer and the IPC buffer, which both live until the stream has done the
        // copy. Other processes have copied the former content, because the stream has waited for them.
        unsafe {
            sys::cuMemcpyDtoDAsync_v2(ipc_buffer.memory.address, from, bytes.len(), stream.cu_stream())
        }
        .result()
        .map_err(during("copying planes for another process"))?;
        ipc_buffer.made.record(stream)?;
        let length = (bytes.len() as u64).to_le_bytes();
        Ok(IpcHandle([&ipc_buffer.memory.handle[..], &ipc_buffer.made.handle[..], &length[..]].concat()))
    }

    /// Copies the planes that a session of another process exported into planes of a buffer.
    pub fn take(&mut self, to: &DeviceBuffer, planes: &Planes, ipc_handle: &IpcHandle) -> Result<()> {
        let own = span(&to.layout, planes)?;
        let parts = || -> Option<(&Handle, &Handle)> {
            let (memory, rest) = ipc_handle.0.split_first_chunk()?;
            let (event, length) = rest.split_first_chunk()?;
            (length == (own.len() as u64).to_le_bytes()).then_some((memory, event))
        };
        let Some((memory, event)) = parts() else {
            let reason = format!("they are not the {} bytes that are read", own.len());
            return Err(Error::invalid("planes lent by another process", reason, "export as many values"));
        };
        bind(&self.stream)?;
        let from = self
            .opened
            .memory(self.stream.context(), memory)
            .map_err(during("mapping memory of another process"))?;
        let made = self.opened.event(event).map_err(during("opening an event of another process"))?;
        wait(&self.stream, made)?;
        let target = to.address() + own.start as u64;
        // SAFETY: the IPC buffer has as many bytes, and its process changes them only after this stream's next point.
        unsafe { sys::cuMemcpyDtoDAsync_v2(target, from, own.len(), self.stream.cu_stream()) }
            .result()
            .map_err(during("copying planes from another process"))
    }

    /// Returns a point after all imports so far.
    pub fn taken(&mut self) -> Result<IpcHandle> {
        bind(&self.stream)?;
        let point = &self.points[self.next];
        self.next = (self.next + 1) % POINTS;
        point.record(&self.stream)?;
        Ok(IpcHandle(point.handle.to_vec()))
    }

    /// Has the next export wait for a point of another process. Exports write only IPC buffers, so steps need not
    /// wait.
    pub fn wait_for(&mut self, ipc_handle: &IpcHandle) -> Result<()> {
        let Ok(handle) = <&Handle>::try_from(&ipc_handle.0[..]) else {
            let reason = "it is none of a CUDA session";
            return Err(Error::invalid("a point of another process", reason, "start one version of Abide"));
        };
        bind(&self.stream)?;
        self.awaited.push(*handle);
        Ok(())
    }

    /// Has the stream wait until others have copied the last exports.
    fn await_taken(&mut self) -> Result<()> {
        for handle in std::mem::take(&mut self.awaited) {
            let event = self.opened.event(&handle).map_err(during("opening an event of another process"))?;
            wait(&self.stream, event)?;
        }
        Ok(())
    }
}

impl Drop for IpcExchange {
    fn drop(&mut self) {
        // What others map of this process they have copied once this stream has waited for them. Nothing can be done about a
        // device that no longer answers.
        let _ = bind(&self.stream).and_then(|()| self.await_taken());
        let _ = self.stream.synchronize();
    }
}

impl IpcBuffer {
    fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<IpcBuffer> {
        let memory = Shared::new(context, bytes)?;
        let made = Point::new().map_err(during("making an event for other processes"))?;
        Ok(IpcBuffer { memory, made })
    }
}

impl Point {
    fn new() -> std::result::Result<Point, DriverError> {
        let flags = sys::CUevent_flags::CU_EVENT_INTERPROCESS as u32
            | sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = std::ptr::null_mut();
        // SAFETY: the call writes an event.
        unsafe { sys::cuEventCreate(&raw mut event, flags).result() }?;
        let event = Event(event);
        let mut handle = sys::CUipcEventHandle { reserved: [0; 64] };
        // SAFETY: the call writes a handle of an event that is there.
        unsafe { sys::cuIpcGetEventHandle(&raw mut handle, event.0).result() }?;
        Ok(Point { event, handle: handle.reserved.map(|byte| byte as u8) })
    }

    fn record(&self, stream: &CudaStream) -> Result<()> {
        // SAFETY: stream and event live.
        unsafe { sys::cuEventRecord(self.event.0, stream.cu_stream()) }
            .result()
            .map_err(during("recording an event"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nothing of this process uses it any more; the driver keeps it as long as a stream waits for it.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

impl Opened {
    fn memory(
        &mut self,
        context: &Arc<CudaContext>,
        handle: &Handle,
    ) -> std::result::Result<sys::CUdeviceptr, DriverError> {
        if let Some(there) = self.memory.get(handle) {
            return Ok(there.address);
        }
        let mapped = Mapped::open(context, handle)?;
        let address = mapped.address;
        self.memory.insert(*handle, mapped);
        Ok(address)
    }

    fn event(&mut self, handle: &Handle) -> std::result::Result<sys::CUevent, DriverError> {
        if let Some(event) = self.events.get(handle) {
            return Ok(event.0);
        }
        let mut event = std::ptr::null_mut();
        let reserved = handle.map(|byte| byte as std::ffi::c_char);
        // SAFETY: the call writes an event.
        unsafe { sys::cuIpcOpenEventHandle(&raw mut event, sys::CUipcEventHandle { reserved }) }.result()?;
        self.events.insert(*handle, Event(event));
        Ok(event)
    }
}
