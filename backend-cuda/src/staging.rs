//! Large copies between the host's values and a device, by way of pinned pages and on several threads.
//!
//! A copy from or to ordinary memory goes through one thread of the driver, which makes a fraction of the bus's rate.

use std::ffi::c_void;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

use crate::window::{Rows, Way};

/// Bytes of a lane's pages.
const LANE: usize = 8 << 20;

/// The most lanes of a copy. One thread copies at about a sixth of the bus's rate.
const MOST_LANES: usize = 8;

/// Bytes from which a copy is staged: several lanes have several turns.
pub(crate) const STAGED: usize = 8 * LANE;

/// Pages that stay in place, and the stream that copies from or to them.
struct Lane {
    pages: *mut c_void,
    stream: Arc<CudaStream>,
}

// SAFETY: the pages belong to the lane alone, and a context's memory may be used by any thread.
unsafe impl Send for Lane {}

impl Lane {
    fn new(context: &Arc<CudaContext>) -> Result<Lane, DriverError> {
        context.bind_to_thread()?;
        let stream = context.new_stream()?;
        // SAFETY: the context is current. Write-combined pages would be slow to read, so no flags.
        Ok(Lane { pages: unsafe { result::malloc_host(LANE, 0) }?, stream })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Nothing can be done about pages that the driver keeps.
        let _ = self.stream.context().bind_to_thread();
        // SAFETY: the pages came from `malloc_host`, and no copy is under way: each was waited for.
        let _ = unsafe { result::free_host(self.pages) };
    }
}

/// Lanes between copies, of whichever contexts.
static LANES: Mutex<Vec<Lane>> = Mutex::new(Vec::new());

/// Takes lanes of a context, as many as the machine has threads for; fewer where no pages are to be had.
fn lanes(context: &Arc<CudaContext>) -> Vec<Lane> {
    let wanted = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_LANES);
    let mut kept = LANES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut taken = Vec::new();
    while let Some(at) = kept.iter().position(|lane| lane.stream.context() == context)
        && taken.len() < wanted
    {
        taken.push(kept.swap_remove(at));
    }
    drop(kept);
    while taken.len() < wanted {
        let Ok(lane) = Lane::new(context) else { break };
        taken.push(lane);
    }
    taken
}

/// Copies rows of at least [`STAGED`] bytes by way of lanes; returns `false` where there are none or a row is longer than
/// their pages, and nothing was copied.
///
/// # Safety
///
/// As for [`Rows::copy`]; all work on the buffer that other streams were given is done.
pub(crate) unsafe fn copy(
    rows: &Rows,
    way: Way,
    host: *mut c_void,
    device: sys::CUdeviceptr,
    context: &Arc<CudaContext>,
) -> Result<bool, DriverError> {
    let parts = rows.parts(LANE);
    if parts.iter().any(|part| part.count * part.bytes > LANE) {
        return Ok(false);
    }
    let mut lanes = lanes(context);
    if lanes.is_empty() {
        return Ok(false);
    }
    let next = AtomicUsize::new(0);
    let places = Places(host);
    let run = |lane: &mut Lane| -> Result<(), DriverError> {
        let places = &places;
        context.bind_to_thread()?;
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = part.count * part.bytes;
            // SAFETY: parts lie within the rows and share no bytes, and none is longer than a lane's pages.
            unsafe {
                let values = places.0.byte_add(part.host);
                let packed = Rows { host: 0, ..*part };
                if let Way::ToDevice = way {
                    std::ptr::copy_nonoverlapping(values.cast::<u8>(), lane.pages.cast(), bytes);
                }
                packed.copy(way, lane.pages, device, &lane.stream)?;
                lane.stream.synchronize()?;
                if let Way::ToHost = way {
                    std::ptr::copy_nonoverlapping(lane.pages.cast::<u8>(), values.cast(), bytes);
                }
            }
        }
        Ok(())
    };
    let ended = std::thread::scope(|scope| {
        let run = &run;
        let (first, others) = lanes.split_at_mut(1);
        // A thread that does not start leaves its parts to the others.
        let started: Vec<_> = others
            .iter_mut()
            .filter_map(|lane| std::thread::Builder::new().spawn_scoped(scope, move || run(lane)).ok())
            .collect();
        let own = first.iter_mut().try_for_each(run);
        started.into_iter().fold(own, |all, thread| all.and(thread.join().unwrap_or(LOST)))
    });
    LANES.lock().unwrap_or_else(PoisonError::into_inner).append(&mut lanes);
    ended.map(|()| true)
}

/// The result that stands for a thread that panicked.
const LOST: Result<(), DriverError> = Err(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN));

/// The host's values, of which each thread has parts of its own.
struct Places(*mut c_void);

// SAFETY: threads read or write different parts.
unsafe impl Sync for Places {}
