//! Planes that go over NCCL: between devices of one machine that do not reach each other's memory, and between machines.
//!
//! Sends and receives are work of the session's stream, so they follow the steps before them and steps that follow have their
//! planes. They are copies of bytes, so no bit changes.

use std::mem::{MaybeUninit, offset_of};
use std::sync::Arc;

use abide_core::backend::{CancelCheck, Planes};
use abide_core::{Error, Result};
use cudarc::driver::CudaStream;
use cudarc::nccl::result::{self, NcclError};
use cudarc::nccl::sys;

use crate::driver::{bind, is_done};
use crate::lent::DeviceBuffer;
use crate::peer::span;

/// Bytes that say where all meet, and those of a device's identity; a session's key has both.
const MEETING: usize = 128;
const IDENTITY: usize = 16;

/// The version of NCCL of which the settings below are.
const SETTINGS: u32 = 21800;

/// A session's end of the NCCL communicator that connects the sessions of all ranks.
pub(crate) struct NcclCommunicator {
    communicator: sys::ncclComm_t,
    stream: Arc<CudaStream>,
    /// Whether it was aborted; no call uses it afterwards.
    is_over: bool,
}

// SAFETY: a communicator belongs to no thread; one thread at a time uses it.
unsafe impl Send for NcclCommunicator {}

/// Returns what other sessions need to join that of a stream; `None` where there is no NCCL.
pub(crate) fn key(stream: &CudaStream, is_first: bool) -> Option<Vec<u8>> {
    // SAFETY: opens the vendor's library, which runs nothing of consequence when opened. Every other call into it panics where
    // it is missing.
    if !unsafe { sys::is_culib_present() } {
        return None;
    }
    let context = stream.context();
    context.bind_to_thread().ok()?;
    let communicator = match is_first {
        true => result::get_uniqueid().ok()?.internal.map(|byte| byte as u8),
        false => [0; MEETING],
    };
    let identity = context.uuid().ok()?.bytes.map(|byte| byte as u8);
    Some([&communicator[..], &identity[..]].concat())
}

impl NcclCommunicator {
    /// Joins the sessions of these keys; `None` where two are of one device, which NCCL does not have twice.
    pub fn join(
        stream: &Arc<CudaStream>,
        keys: &[Vec<u8>],
        rank: usize,
        cancel_check: CancelCheck<'_>,
    ) -> Result<Option<NcclCommunicator>> {
        let strange = || {
            let reason = "a rank gave none of NCCL";
            Error::invalid("keys of a network", reason, "start one version of Abide everywhere")
        };
        let split = |key: &Vec<u8>| -> Option<([u8; MEETING], [u8; IDENTITY])> {
            let (communicator, identity) = key.split_first_chunk()?;
            Some((*communicator, identity.try_into().ok()?))
        };
        let keys: Vec<_> = keys.iter().map(split).collect::<Option<_>>().ok_or_else(strange)?;
        let is_there_twice = |(at, key): (usize, &(_, [u8; IDENTITY]))| {
            keys[..at].iter().any(|(_, identity)| *identity == key.1)
        };
        if keys.iter().enumerate().any(is_there_twice) {
            return Ok(None);
        }
        let (Some((communicator, _)), Ok(ranks), Ok(rank)) =
            (keys.first(), i32::try_from(keys.len()), i32::try_from(rank))
        else {
            return Err(strange());
        };
        let id = sys::ncclUniqueId { internal: communicator.map(|byte| byte as std::ffi::c_char) };
        bind(stream)?;
        let mut settings = settings();
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the call reads the settings, whose size they state, and writes a communicator.
        let begun = unsafe {
            result::comm_init_rank_config(&raw mut communicator, ranks, id, rank, &raw mut settings)
        };
        begun.map_err(failed("joining"))?;
        let mut joined = NcclCommunicator { communicator, stream: stream.clone(), is_over: false };
        joined.ready("joining", cancel_check)?;
        Ok(Some(joined))
    }

    /// Puts an exchange on the stream: of each plane's buffer and place, to and from ranks.
    pub fn exchange(
        &mut self,
        sent: &[(usize, Planes, DeviceBuffer)],
        received: &[(usize, Planes, DeviceBuffer)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()> {
        /// What goes to or comes from a rank: its number, an address and bytes.
        type Pieces = Vec<(i32, u64, usize)>;
        let pieces = |all: &[(usize, Planes, DeviceBuffer)]| -> Result<Pieces> {
            let piece = |(rank, planes, buffer): &(usize, Planes, DeviceBuffer)| {
                let bytes = span(&buffer.layout, planes)?;
                Ok((*rank as i32, buffer.address() + bytes.start as u64, bytes.len()))
            };
            all.iter().map(piece).collect()
        };
        let (out, into) = (pieces(sent)?, pieces(received)?);
        self.usable()?;
        bind(&self.stream)?;
        let (communicator, stream) = (self.communicator, self.stream.cu_stream() as sys::cudaStream_t);
        let kind = sys::ncclDataType_t::ncclUint8;
        result::group_start().map_err(failed("beginning an exchange"))?;
        let mut asked = Ok(());
        for (rank, address, bytes) in out {
            // SAFETY: the range lies within a buffer of the session, whose stream orders this with all that uses it.
            let send =
                || unsafe { result::send(address as *const _, bytes, kind, rank, communicator, stream) };
            asked = asked.and_then(|()| send().map(drop));
        }
        for (rank, address, bytes) in into {
            // SAFETY: as above; no other piece overlaps it, because halos at two sides are apart.
            let receive =
                || unsafe { result::recv(address as *mut _, bytes, kind, rank, communicator, stream) };
            asked = asked.and_then(|()| receive().map(drop));
        }
        // A group that was begun is ended, whatever was asked in it.
        let ended = result::group_end().map(drop);
        if let Err(error) = asked.and(ended) {
            self.abort();
            return Err(failed("exchanging planes")(error));
        }
        self.ready("exchanging planes", cancel_check)
    }

    /// Waits until the stream has done all that it was asked.
    pub fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        self.usable()?;
        bind(&self.stream)?;
        loop {
            self.check("waiting for planes")?;
            if is_done(&self.stream).inspect_err(|_| self.abort())? {
                return Ok(());
            }
            self.wait(cancel_check)?;
        }
    }

    /// Waits until NCCL has taken what it was asked, so that what follows on the stream comes after it.
    fn ready(&mut self, what: &str, cancel_check: CancelCheck<'_>) -> Result<()> {
        while self.check(what)? {
            self.wait(cancel_check)?;
        }
        Ok(())
    }

    fn wait(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        // Whoever waits for a rank that is gone would do so for ever.
        cancel_check().inspect_err(|_| self.abort())
    }

    /// Returns whether NCCL is still at work on what it was asked.
    fn check(&mut self, what: &str) -> Result<bool> {
        let mut state = sys::ncclResult_t::ncclSuccess;
        // SAFETY: the communicator lives, and the call writes its state.
        let asked = unsafe { sys::ncclCommGetAsyncError(self.communicator, &raw mut state) }.result();
        let state = match asked.and_then(|_| state.result()) {
            Ok(state) => state,
            Err(error) => {
                self.abort();
                return Err(failed(what)(error));
            }
        };
        Ok(matches!(state, result::NcclStatus::InProgress))
    }

    fn usable(&self) -> Result<()> {
        match self.is_over {
            false => Ok(()),
            true => Err(Error::device("cuda", "exchanging planes by NCCL", "an earlier exchange failed")),
        }
    }

    /// Ends all that is under way, on this device alone: kernels that wait for other ranks end too.
    fn abort(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            // SAFETY: nothing asks anything of the communicator after this. Nothing can be done where it fails.
            let _ = bind(&self.stream).map(|()| unsafe { result::comm_abort(self.communicator) });
        }
    }
}

impl Drop for NcclCommunicator {
    fn drop(&mut self) {
        // Ranks have agreed that all is done, unless one failed: then nothing is waited for.
        self.abort();
    }
}

/// Returns settings with which no call waits for other ranks.
fn settings() -> sys::ncclConfig_t {
    // SAFETY: the struct is of whole numbers and addresses of texts, which may be none.
    let mut settings: sys::ncclConfig_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // As in NCCL_CONFIG_INITIALIZER of that version: NCCL chooses every value that is not set.
    settings.size = offset_of!(sys::ncclConfig_t, trafficClass);
    settings.magic = 0xcafe_beef;
    settings.version = SETTINGS;
    settings.blocking = 0;
    (settings.cgaClusterSize, settings.minCTAs) = (i32::MIN, i32::MIN);
    (settings.maxCTAs, settings.splitShare) = (i32::MIN, i32::MIN);
    settings
}

fn failed(what: &str) -> impl FnOnce(NcclError) -> Error + '_ {
    move |error| Error::device("cuda", format!("{what} by NCCL"), format!("{:?}", error.0))
}
