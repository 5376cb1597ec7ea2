//! The calls into the system's MPI: messages of bytes between the processes of one communicator.
//!
//! MPI is initialised for calls from any thread, one at a time. Calls need the [`Wire`], which the lock of the progress
//! engine protects. MPI returns errors as codes; they are passed on as MPI's own texts.

use std::collections::VecDeque;
use std::os::raw::{c_char, c_int, c_void};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator};

/// The most bytes of a message: MPI counts them in an `int`.
pub const MOST: usize = 1 << 30;

/// The processes' communicator, with the messages on their way.
pub struct Wire {
    /// Before the universe, because it is freed before MPI ends.
    _own: mpi::topology::SimpleCommunicator,
    _universe: Universe,
    comm: ffi::MPI_Comm,
    pub rank: usize,
    pub size: usize,
    sending: Vec<Pending>,
    /// In the order in which the messages were found.
    receiving: VecDeque<Pending>,
}

// SAFETY: MPI's handles belong to the process, not to a thread. MPI was initialised for calls from any thread, one at a
// time, and every call takes `&mut Wire`.
unsafe impl Send for Wire {}

/// A message on its way: MPI reads or writes the bytes until the request is done, so nothing else touches them.
struct Pending {
    request: ffi::MPI_Request,
    other: usize,
    bytes: Vec<u8>,
    is_done: bool,
}

impl Wire {
    /// Initialises MPI, once per process, and makes a communicator of its own for all processes of the launch.
    pub fn new() -> Result<Wire, String> {
        let (universe, level) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or("MPI is initialised already, by another library of this process")?;
        if level < Threading::Serialized {
            return Err(format!(
                "this MPI allows calls at the level {level:?} alone, and ranks call it from a thread of their own: it needs \
                 the level Serialized, an MPI built with threads"
            ));
        }
        let own = universe.world().duplicate();
        let comm = own.as_raw();
        // SAFETY: the communicator is valid, and the handler one of MPI's own.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN) };
        checked(code, "setting how errors are told")?;
        let (rank, size) = (number(own.rank()), number(own.size()));
        let (sending, receiving) = (Vec::new(), VecDeque::new());
        Ok(Wire { _own: own, _universe: universe, comm, rank, size, sending, receiving })
    }

    /// Begins to send a message to another process, of [`MOST`] bytes at most, and returns at once.
    pub fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<(), String> {
        let (count, dest) = (counted(bytes.len())?, counted(to)?);
        // SAFETY: a null handle, in place of the one that the call below writes.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the bytes are kept in `sending`, unmoved on the heap and unchanged, until the request is done.
        let code = unsafe {
            let data = bytes.as_ptr().cast::<c_void>();
            ffi::MPI_Isend(data, count, ffi::RSMPI_UINT8_T, dest, 0, self.comm, &mut request)
        };
        checked(code, "sending")?;
        self.sending.push(Pending { request, other: to, bytes, is_done: false });
        Ok(())
    }

    /// Frees the messages that have been sent, and returns the messages that have arrived completely, each with its
    /// sender. Messages of one sender are in the order in which it sent them.
    pub fn poll(&mut self) -> Result<Vec<(usize, Vec<u8>)>, String> {
        for pending in &mut self.sending {
            pending.test("sending")?;
        }
        self.sending.retain(|pending| !pending.is_done);
        while let Some(pending) = self.probe()? {
            self.receiving.push_back(pending);
        }
        let (mut come, mut left, mut waited) = (Vec::new(), VecDeque::new(), Vec::new());
        let mut fault = None;
        for mut pending in std::mem::take(&mut self.receiving) {
            if let Err(error) = pending.test("receiving") {
                fault = Some(error);
            }
            if pending.is_done && !waited.contains(&pending.other) {
                come.push((pending.other, pending.bytes));
            } else {
                waited.push(pending.other);
                left.push_back(pending);
            }
        }
        self.receiving = left;
        fault.map_or(Ok(come), Err)
    }

    /// Returns whether everything that was sent has left.
    pub fn is_sent(&self) -> bool {
        self.sending.is_empty()
    }

    /// Begins to receive a message, if one has come.
    fn probe(&mut self) -> Result<Option<Pending>, String> {
        let (mut flag, mut count): (c_int, c_int) = (0, 0);
        // SAFETY: null handles and a status of zeros, a plain structure of numbers; the calls below write them.
        let (mut message, mut request, mut status) = unsafe {
            (ffi::RSMPI_MESSAGE_NULL, ffi::RSMPI_REQUEST_NULL, std::mem::zeroed::<ffi::MPI_Status>())
        };
        // SAFETY: the communicator is valid, and all that the call writes is there.
        let code = unsafe {
            let (source, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            ffi::MPI_Improbe(source, tag, self.comm, &mut flag, &mut message, &mut status)
        };
        checked(code, "looking for messages")?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the call above has written the status of a message.
        let code = unsafe { ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut count) };
        checked(code, "asking for a message's length")?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(number(count))
            .map_err(|_| format!("there is no memory for a message of {count} bytes"))?;
        bytes.resize(number(count), 0);
        // SAFETY: there is room for as many bytes as the message has, which are kept in `receiving`, unmoved on the heap,
        // until the request is done.
        let code = unsafe {
            let data = bytes.as_mut_ptr().cast::<c_void>();
            ffi::MPI_Imrecv(data, count, ffi::RSMPI_UINT8_T, &mut message, &mut request)
        };
        checked(code, "receiving")?;
        Ok(Some(Pending { request, other: number(status.MPI_SOURCE), bytes, is_done: false }))
    }

    /// Ends all processes at once, this one too, with an exit status.
    pub fn abort(&mut self, status: u8) {
        // SAFETY: the communicator is valid. The call does not return where it succeeds.
        unsafe { ffi::MPI_Abort(self.comm, c_int::from(status)) };
    }
}

impl Pending {
    fn test(&mut self, what: &str) -> Result<(), String> {
        if self.is_done {
            return Ok(());
        }
        let mut flag: c_int = 0;
        // SAFETY: the request is one that is not done; where it is now, the call makes it null and it is not used again.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        checked(code, what).map_err(|error| format!("{error} (rank {})", self.other))?;
        self.is_done = flag != 0;
        Ok(())
    }
}

/// Returns the name of the machine that the process runs on.
pub fn host() -> String {
    mpi::environment::processor_name().unwrap_or_default()
}

/// Turns a code into MPI's words for it.
fn checked(code: c_int, what: &str) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    const ROOM: usize = 8192;
    let (mut text, mut length): (Vec<u8>, c_int) = (vec![0; ROOM], 0);
    // SAFETY: there is more room than MPI_MAX_ERROR_STRING is in any MPI, at most 1024.
    let known = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut length) } == 0;
    text.truncate(if known { number(length) } else { 0 });
    Err(format!("MPI, {what}: code {code}: {}", String::from_utf8_lossy(&text)))
}

/// Returns a number as MPI counts.
fn counted(number: usize) -> Result<c_int, String> {
    c_int::try_from(number).map_err(|_| format!("{number} is more than MPI counts"))
}

/// Returns a count of MPI's, none of which is below 0.
fn number(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}
