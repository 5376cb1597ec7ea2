//! What the session of a program hands to those of other devices, and takes from them.

use abide_core::Result;
use abide_core::backend::{CancelCheck, DeviceCommunicator, Peer, Planes};
use abide_core::communicator::ExportedHandle;
use abide_core::plan::Exchanging;

use super::ProgramSession;

impl Peer for ProgramSession {
    fn offer(&mut self) -> Option<Vec<u8>> {
        self.neighbours.offer(&self.memory.stream)
    }

    fn accepts(&mut self, offer: &[u8]) -> bool {
        self.neighbours.accepts(offer)
    }

    fn export(&mut self, planes: Planes) -> Result<ExportedHandle> {
        let buffer = self.memory.export(self.buffer(planes.field)?);
        self.neighbours.export(buffer, &planes)
    }

    fn take(&mut self, planes: Planes, handle: ExportedHandle) -> Result<()> {
        let buffer = self.own_buffer(planes.field)?;
        self.neighbours.take(&self.memory.export(buffer), &planes, handle)?;
        self.go_on()
    }

    fn taken(&mut self) -> Result<ExportedHandle> {
        self.neighbours.taken(&self.memory.stream)
    }

    fn wait_for(&mut self, point: ExportedHandle) -> Result<()> {
        self.neighbours.wait_for(&self.memory.stream, point)
    }

    fn device_communicator(&mut self) -> Option<&mut dyn DeviceCommunicator> {
        Some(self)
    }
}

impl DeviceCommunicator for ProgramSession {
    fn key(&mut self, way: Exchanging, is_first: bool) -> Option<Vec<u8>> {
        self.neighbours.key(&self.memory.stream, Vec::new(), way, is_first)
    }

    fn join(
        &mut self,
        way: Exchanging,
        keys: &[Vec<u8>],
        rank: usize,
        cancel_check: CancelCheck<'_>,
    ) -> Result<bool> {
        self.neighbours.join(&self.memory.stream, way, keys, rank, cancel_check)
    }

    fn exchange(
        &mut self,
        sent: &[(usize, Planes)],
        received: &[(usize, Planes)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()> {
        // Before anything is sent, because it may move fields.
        let mut into = Vec::new();
        for &(rank, planes) in received {
            let buffer = self.own_buffer(planes.field)?;
            into.push((rank, planes, self.memory.export(buffer)));
        }
        let mut out = Vec::new();
        for &(rank, planes) in sent {
            out.push((rank, planes, self.memory.export(self.buffer(planes.field)?)));
        }
        self.neighbours.exchange(&out, &into, cancel_check)?;
        self.go_on()
    }

    fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        self.neighbours.flush(cancel_check)
    }
}
