//! What sessions of slabs hand to each other: planes that go from device to device without the host's memory between them.

use std::any::Any;

use crate::communicator::ExportedHandle;
use crate::error::Result;
use crate::plan::Exchanging;

/// A box of a field's values, `low..high`, slowest axis first; of whole planes along the slowest axis of the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planes {
    /// The field's number.
    pub field: usize,
    /// The first index along each axis.
    pub low: [usize; 3],
    /// The index behind the last along each axis.
    pub high: [usize; 3],
}

/// The part of a session that hands planes to those of other devices of the same backend.
///
/// The exporter continues only after [`Peer::wait_for`] has given it a point behind all copies of what it exported
/// ([`Peer::taken`]). So no step changes values that are still being copied, and the host waits for no copy.
pub trait Peer {
    /// Puts steps on the device behind all that it was asked before, and returns without waiting for them. Whoever begins
    /// steps calls [`Peer::finish`] before anything of the session but its other methods as a peer.
    ///
    /// Returns `false`, with nothing begun, where the host has to see each step's end, as of a program whose condition ends
    /// the run: then [`Session::advance`](super::Session::advance) does the steps.
    ///
    /// `read` has what stages read where that changes from step to step, as
    /// [`Session::advance_by`](super::Session::advance_by) takes it; nothing where parameters stay.
    fn begin(&mut self, steps: u64, read: &[f64]) -> Result<bool> {
        let _ = (steps, read);
        Ok(false)
    }

    /// Reserves memory for what so many steps note, and for what varies in at most so many that are begun at a time; steps that are
    /// begun next without what they read find it there. Returns where it is on the device, as the backend knows it; `None` where
    /// the device does not make what varies.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](crate::Error::Limit) where the device does not have that much memory.
    fn reserve(&mut self, steps: u64, at_a_time: u64) -> Result<Option<Box<dyn Any>>> {
        let _ = (steps, at_a_time);
        Ok(None)
    }

    /// Waits for all steps begun, and returns the seconds that the device took for them, without those between them.
    fn finish(&mut self) -> Result<f64> {
        Ok(0.0)
    }

    /// Offers to exchange planes with sessions of other processes on the same machine: what it exports from now on, and its
    /// points, are [`IpcHandle`](crate::communicator::IpcHandle)s. Returns what the others need to say whether they can take
    /// them; `None` where it cannot.
    fn offer(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether it can take what a session of another process exports that has offered this.
    fn accepts(&mut self, offer: &[u8]) -> bool {
        let _ = offer;
        false
    }

    /// Exports planes as the last step leaves them, which may still be under way.
    fn export(&mut self, planes: Planes) -> Result<ExportedHandle>;

    /// Replaces planes by those of a handle, which are as many values. Steps that follow have them.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid) for a handle of another backend or of another number of values.
    fn take(&mut self, planes: Planes, handle: ExportedHandle) -> Result<()>;

    /// Returns the point after all that was taken so far, for the exporter to wait for.
    fn taken(&mut self) -> Result<ExportedHandle>;

    /// Has all that follows wait for a point that another session returned.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid) for a point of another backend.
    fn wait_for(&mut self, point: ExportedHandle) -> Result<()>;

    /// Returns the part that hands planes on by work of the devices alone; `None` where there is none.
    fn device_communicator(&mut self) -> Option<&mut dyn DeviceCommunicator> {
        None
    }
}

/// What is asked again and again while a session waits for others. It pauses between two looks; an error ends the wait, and the
/// session lets go of all that it waits for.
pub type CancelCheck<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The part of a session that exchanges planes with those of all ranks by work of their devices, in order with the steps: by
/// stores into each other's memory, or over a network of devices on whatever machines. The host waits for none of it but
/// in [`DeviceCommunicator::flush`].
pub trait DeviceCommunicator {
    /// Returns what the others need to join this session, to exchange by stores or by their network, of which the first says
    /// where all meet; `None` where it cannot.
    fn key(&mut self, way: Exchanging, is_first: bool) -> Option<Vec<u8>>;

    /// Joins the sessions of these keys, in the order of ranks, as one of them; all that is exchanged goes that way. Returns
    /// `false`, as it does on all of them, where their devices cannot exchange so.
    fn join(
        &mut self,
        way: Exchanging,
        keys: &[Vec<u8>],
        rank: usize,
        cancel_check: CancelCheck<'_>,
    ) -> Result<bool>;

    /// Sends planes as the last step leaves them to ranks, and replaces planes by what ranks send. What one rank sends another
    /// arrives in the order in which it is sent. Steps that follow have it.
    fn exchange(
        &mut self,
        sent: &[(usize, Planes)],
        received: &[(usize, Planes)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()>;

    /// Has steps from now on store the planes that their plan gives to neighbours ([`Edges`](crate::plan::streaming::warp::Edges))
    /// into the neighbours' memory. `beside` has for the slabs below and above the rank, and which of its planes the first
    /// given one becomes. Returns whether that is possible; with neither slab it ends.
    fn store_to_neighbours(&mut self, beside: [Option<(usize, usize)>; 2]) -> Result<bool> {
        let _ = beside;
        Ok(false)
    }

    /// Has all that follows wait until the neighbours to which steps give planes have done what they were asked before: what
    /// they gave is then there, and what they read may be stored into.
    fn wait_for_neighbours(&mut self) -> Result<()> {
        Ok(())
    }

    /// Waits until all exchanges, and all steps begun, are done.
    fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()>;
}
