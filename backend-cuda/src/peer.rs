//! Planes that go from device to device: copies on the receiver's stream, and events that the exporter's stream waits
//! for. Between processes they go as IPC handles. Or the devices exchange them by their own work: by puts or over a
//! network.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::backend::{CancelCheck, Planes};
use abide_core::communicator::{ExportedHandle, IpcHandle};
use abide_core::plan::Exchanging;
use abide_core::{Error, Result};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};

use crate::driver::{bind, during};
use crate::ipc::IpcExchange;
use crate::lent::DeviceBuffer;
use crate::nccl::{self, NcclCommunicator};
use crate::puts::{self, ExportedPuts, PeerPuts, PutKernel};
use crate::window::Layout;

/// What a session exports: a field's buffer, where in it the planes lie, and when they are there.
struct Lent {
    buffer: DeviceBuffer,
    bytes: Range<usize>,
    made: CudaEvent,
}

/// What a session has of those of other devices, in this process or in others of the machine.
pub(crate) struct Neighbours {
    put_kernel: Arc<PutKernel>,
    /// Imported buffers, until its own stream has copied them.
    borrowed: Vec<DeviceBuffer>,
    /// What it exchanges with other processes, once it has offered to.
    ipc_handles: Option<IpcExchange>,
    /// What it has offered to those that would store into its memory.
    offered: Option<ExportedPuts>,
    /// What connects it with those of all ranks, once it has joined.
    joined: Option<Joined>,
}

/// What connects sessions whose exchanges are work of their devices.
enum Joined {
    PeerPuts(PeerPuts),
    Nccl(NcclCommunicator),
}

impl Neighbours {
    pub fn new(put_kernel: Arc<PutKernel>) -> Neighbours {
        Neighbours { put_kernel, borrowed: Vec::new(), ipc_handles: None, offered: None, joined: None }
    }

    /// Offers to exchange planes with other processes from now on; `None` where that is not possible.
    pub fn offer(&mut self, stream: &Arc<CudaStream>) -> Option<Vec<u8>> {
        let (ipc_handles, offer) = IpcExchange::offer(stream)?;
        self.ipc_handles = Some(ipc_handles);
        Some(offer)
    }

    /// Returns whether it can take what a session of another process exports that has offered this.
    pub fn accepts(&mut self, offer: &[u8]) -> bool {
        self.ipc_handles.as_mut().is_some_and(|ipc_handles| ipc_handles.accepts(offer))
    }

    /// Exports planes of a buffer.
    pub fn export(&mut self, buffer: DeviceBuffer, planes: &Planes) -> Result<ExportedHandle> {
        // Whoever exports does not store, and leaves the device to runs that do.
        self.offered = None;
        if let Some(ipc_handles) = &mut self.ipc_handles {
            return Ok(Box::new(ipc_handles.export(&buffer, planes)?));
        }
        let bytes = span(&buffer.layout, planes)?;
        let made = reached(&buffer.stream)?;
        Ok(Box::new(Lent { buffer, bytes, made }))
    }

    /// Enqueues a copy of exported planes into planes of a buffer, on the buffer's stream.
    pub fn take(&mut self, to: &DeviceBuffer, planes: &Planes, handle: ExportedHandle) -> Result<()> {
        if let (Some(ipc_handles), Some(ipc_handle)) =
            (&mut self.ipc_handles, handle.downcast_ref::<IpcHandle>())
        {
            return ipc_handles.take(to, planes, ipc_handle);
        }
        let Ok(lent) = handle.downcast::<Lent>() else { return Err(not_ours("planes")) };
        let Lent { buffer: from, bytes, made } = *lent;
        let own = span(&to.layout, planes)?;
        if own.len() != bytes.len() || from.layout.dtype != to.layout.dtype {
            let reason = format!("{} bytes of {} in place of {}", bytes.len(), from.layout.dtype, own.len());
            return Err(Error::invalid("planes lent by another device", reason, "export as many values"));
        }
        let [here, there] = [to, &from].map(|buffer| buffer.stream.context());
        here.bind_to_thread().map_err(during("binding the context"))?;
        wait(&to.stream, made.cu_event())?;
        let [target, source] = [to.address() + own.start as u64, from.address() + bytes.start as u64];
        let stream = to.stream.cu_stream();
        // SAFETY: both ranges lie within their buffers. This session owns one buffer; the list below keeps the other
        // until the stream has done the copy. The stream waits for the exporter's work on its buffer, and the exporter
        // for the copy.
        let status = unsafe {
            if here.cu_ctx() == there.cu_ctx() {
                sys::cuMemcpyDtoDAsync_v2(target, source, own.len(), stream)
            } else {
                sys::cuMemcpyPeerAsync(target, here.cu_ctx(), source, there.cu_ctx(), own.len(), stream)
            }
        };
        self.borrowed.push(from);
        status.result().map_err(during("copying planes from another device"))
    }

    /// Returns the point that a stream has reached once all that it was asked is done.
    pub fn taken(&mut self, stream: &CudaStream) -> Result<ExportedHandle> {
        match &mut self.ipc_handles {
            Some(ipc_handles) => Ok(Box::new(ipc_handles.taken()?)),
            None => Ok(Box::new(reached(stream)?)),
        }
    }

    /// Has a stream wait for a point of another one.
    pub fn wait_for(&mut self, stream: &CudaStream, point: ExportedHandle) -> Result<()> {
        if let (Some(ipc_handles), Some(ipc_handle)) =
            (&mut self.ipc_handles, point.downcast_ref::<IpcHandle>())
        {
            return ipc_handles.wait_for(ipc_handle);
        }
        let Ok(event) = point.downcast::<CudaEvent>() else { return Err(not_ours("a point")) };
        bind(stream)?;
        wait(stream, event.cu_event())
    }

    /// Returns what other sessions need to join that of a stream.
    /// Others' steps may store into the buffers that are written by turns.
    pub fn key(
        &mut self,
        stream: &Arc<CudaStream>,
        turns: Vec<[DeviceBuffer; 2]>,
        way: Exchanging,
        is_first: bool,
    ) -> Option<Vec<u8>> {
        self.offered = None;
        match way {
            Exchanging::PeerPuts => {
                let (offered, key) = puts::offer(stream, turns).ok()??;
                self.offered = Some(offered);
                Some(key)
            }
            Exchanging::Network => nccl::key(stream, is_first),
            Exchanging::Auto | Exchanging::Copies | Exchanging::Messages => None,
        }
    }

    /// Joins the sessions of these keys; returns whether that is possible.
    pub fn join(
        &mut self,
        stream: &Arc<CudaStream>,
        way: Exchanging,
        keys: &[Vec<u8>],
        rank: usize,
        cancel_check: CancelCheck<'_>,
    ) -> Result<bool> {
        self.joined = match (way, self.offered.take()) {
            (Exchanging::PeerPuts, Some(offered)) => {
                PeerPuts::join(stream, &self.put_kernel, offered, keys, rank)?.map(Joined::PeerPuts)
            }
            (Exchanging::Network, _) => {
                NcclCommunicator::join(stream, keys, rank, cancel_check)?.map(Joined::Nccl)
            }
            _ => None,
        };
        Ok(self.joined.is_some())
    }

    /// Puts an exchange on the stream: of each plane's buffer and place, to and from ranks.
    pub fn exchange(
        &mut self,
        sent: &[(usize, Planes, DeviceBuffer)],
        received: &[(usize, Planes, DeviceBuffer)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()> {
        match self.joined()? {
            Joined::PeerPuts(stores) => stores.exchange(sent, received),
            Joined::Nccl(nccl) => nccl.exchange(sent, received, cancel_check),
        }
    }

    /// Returns what exchanges by stores; `None` where that is not how this session does.
    pub fn stores(&mut self) -> Option<&mut PeerPuts> {
        match &mut self.joined {
            Some(Joined::PeerPuts(stores)) => Some(stores),
            _ => None,
        }
    }

    /// Waits until the stream has done all that it was asked.
    pub fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        match self.joined()? {
            Joined::PeerPuts(stores) => stores.flush(cancel_check),
            Joined::Nccl(nccl) => nccl.flush(cancel_check),
        }
    }

    fn joined(&mut self) -> Result<&mut Joined> {
        let none =
            || Error::invalid("an exchange of devices", "the session has joined no other", "join them first");
        self.joined.as_mut().ok_or_else(none)
    }

    /// Releases the imports, because the stream has completed its work.
    pub fn done(&mut self) {
        self.borrowed.clear();
    }

    /// Waits for the copies that may still be under way, on the stream of the session that ends.
    pub fn end(&mut self, stream: &CudaStream) {
        // Ends what still waits for others, or else the stream would.
        drop(self.joined.take());
        // Waits for its own, while the session's memory is still there.
        drop(self.ipc_handles.take());
        if !self.borrowed.is_empty() {
            // Nothing can be done about a device that no longer answers.
            let _ = stream.context().bind_to_thread().and_then(|()| stream.synchronize());
            self.borrowed.clear();
        }
    }
}

fn reached(stream: &CudaStream) -> Result<CudaEvent> {
    let record = || -> std::result::Result<CudaEvent, DriverError> {
        stream.context().bind_to_thread()?;
        let event = stream.context().new_event(Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING))?;
        event.record(stream)?;
        Ok(event)
    };
    record().map_err(during("recording an event"))
}

/// Has a stream, whose context is that of the thread, wait for an event of any device, which lives.
pub(crate) fn wait(stream: &CudaStream, event: sys::CUevent) -> Result<()> {
    // SAFETY: stream and event live; an event that is destroyed is kept by the driver as long as a stream waits for it.
    unsafe { sys::cuStreamWaitEvent(stream.cu_stream(), event, 0) }
        .result()
        .map_err(during("waiting for another device"))
}

fn not_ours(what: &str) -> Error {
    let change = "let devices of one backend exchange planes";
    Error::invalid(format!("{what} of another device"), "it is not of a CUDA session", change)
}

/// Returns the bytes of a buffer that planes span, with the gaps behind their rows.
pub(crate) fn span(layout: &Layout, planes: &Planes) -> Result<Range<usize>> {
    match layout.rows(planes.low, planes.high)[..] {
        [rows] if rows.count > 0 => Ok(rows.device..rows.device + (rows.count - 1) * rows.pitch + rows.bytes),
        _ => Err(Error::invalid(
            format!("planes {:?}..{:?} of {:?}", planes.low, planes.high, layout.extents),
            "they are not one piece of memory",
            "exchange whole planes along the slowest axis",
        )),
    }
}

/// Pairs of devices, by number, of which the first may copy from the second's memory directly.
static CONNECTED: Mutex<BTreeSet<(usize, usize)>> = Mutex::new(BTreeSet::new());

/// Lets a device copy from another's memory directly, and returns whether it can; where it cannot, the driver copies by
/// way of the host.
pub(crate) fn connect(own: &Arc<CudaContext>, other: &Arc<CudaContext>) -> Result<bool> {
    let pair = (own.ordinal(), other.ordinal());
    if pair.0 == pair.1 {
        return Ok(true);
    }
    let mut connected = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if connected.contains(&pair) {
        return Ok(true);
    }
    if !reaches(own.cu_device(), other.cu_device()).map_err(during("asking for peer access"))? {
        return Ok(false);
    }
    let allow = || -> std::result::Result<(), DriverError> {
        own.bind_to_thread()?;
        // SAFETY: both contexts live as long as their devices are used, because they are the primary ones.
        match unsafe { sys::cuCtxEnablePeerAccess(other.cu_ctx(), 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
            status => status.result()?,
        }
        // That is not for memory of a pool, from which fields are allocated where there is one.
        if other.has_async_alloc() {
            let mut pool = std::ptr::null_mut();
            let access = sys::CUmemAccessDesc {
                location: sys::CUmemLocation {
                    type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                    id: own.cu_device(),
                },
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            // SAFETY: the first call writes the pool's handle, the second reads one description.
            unsafe {
                sys::cuDeviceGetDefaultMemPool(&raw mut pool, other.cu_device()).result()?;
                sys::cuMemPoolSetAccess(pool, &raw const access, 1).result()?;
            }
        }
        Ok(())
    };
    allow().map_err(during("allowing peer access"))?;
    connected.insert(pair);
    Ok(true)
}

/// Returns whether a device can use another's memory directly.
pub(crate) fn reaches(own: sys::CUdevice, other: sys::CUdevice) -> std::result::Result<bool, DriverError> {
    let mut can = 0;
    // SAFETY: the call writes one integer.
    unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, own, other) }.result()?;
    Ok(can != 0)
}

#[cfg(test)]
mod tests {
    use abide_core::DType;

    use super::*;

    /// Planes along the slowest axis of one, two and three are one piece, which includes the gaps between rows alone.
    #[test]
    fn planes_are_one_piece_of_memory() {
        let layout = |extents, pitch| Layout { extents, pitch, dtype: DType::F64, precision: None };
        let planes = |low, high| Planes { field: 0, low, high };
        let space = layout([5, 4, 6], 8);
        assert_eq!(span(&space, &planes([1, 0, 0], [3, 4, 6])), Ok(256..256 + (7 * 8 + 6) * 8));
        let plane = layout([1, 9, 6], 8);
        assert_eq!(span(&plane, &planes([0, 2, 0], [1, 5, 6])), Ok(128..128 + (2 * 8 + 6) * 8));
        let line = layout([1, 1, 90], 96);
        assert_eq!(span(&line, &planes([0, 0, 7], [1, 1, 9])), Ok(56..72));
        assert!(span(&space, &planes([1, 0, 0], [3, 3, 6])).is_err(), "planes with a row missing");
    }
}
