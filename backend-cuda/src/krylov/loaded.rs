//! A system's slabs in the memory of their devices.

use std::ops::Range;
use std::sync::Arc;

use abide_core::{Array, Error, Result};
use abide_shaders::cuda::KrylovArrays;
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, result};

use super::session::DeviceAllocator;
use super::slab::{Slab, region};
use crate::driver::during;
use crate::mapped::Shared;

/// A device, and the numbers of its slabs.
pub(super) struct Member {
    pub context: Arc<CudaContext>,
    pub multiprocessors: usize,
    pub slabs: Vec<usize>,
}

/// A device with its kernel.
pub(super) struct Here {
    pub member: Member,
    pub stream: Arc<CudaStream>,
    /// Copies to a device whose kernel waits.
    pub word: Arc<CudaStream>,
    pub function: CudaFunction,
}

/// A slab in the memory of its device.
pub(super) struct Loaded {
    /// The slab's number.
    pub number: usize,
    pub rows: Range<usize>,
    /// Values from one of its vectors to the next.
    pub stride: usize,
    /// Values from one turn of the exchanged vector to the next.
    pub turn: usize,
    /// The rows of other slabs that it reads, before its own and behind them.
    pub beyond: [Range<usize>; 2],
    /// The number of its device among those of the session.
    pub device: usize,
    /// What kernels are handed: the addresses from which they count.
    pub arrays: KrylovArrays<u64>,
    /// The memory behind the addresses, but for the history.
    #[expect(dead_code, reason = "it is freed with the slab")]
    memory: Vec<CudaSlice<u8>>,
    /// That of the region, where other processes map it.
    pub shared: Option<Shared>,
    /// The memory of the history, as long as a solve asked for last.
    history: Option<CudaSlice<u8>>,
}

impl Here {
    /// Returns a driver's error with the device's number.
    pub fn error(&self, what: &str, error: DriverError) -> Error {
        let number = self.member.context.ordinal();
        Error::device("cuda", format!("{what} on device {number}"), error)
    }

    /// Returns a slab in words.
    pub fn words(&self, slab: &Loaded) -> String {
        format!("on device {}, rows {}..{}", self.member.context.ordinal(), slab.rows.start, slab.rows.end)
    }
}

impl Loaded {
    /// Makes room for so many entries of the history.
    pub fn make_room(&mut self, here: &Here, entries: usize) -> Result<()> {
        here.member.context.bind_to_thread().map_err(during("binding the context"))?;
        let room = DeviceAllocator { context: &here.member.context, stream: &here.stream };
        self.history = None;
        room.check(entries * 8)?;
        let history = room.zeros(entries * 8)?;
        self.arrays.history = history.device_ptr(&here.stream).0;
        self.history = Some(history);
        Ok(())
    }
}

/// Reads bytes of a device.
pub(super) fn read(here: &Here, from: u64, bytes: usize, what: &str) -> Result<Vec<u8>> {
    let mut to = vec![0_u8; bytes];
    here.member.context.bind_to_thread().map_err(during(what))?;
    // SAFETY: there are as many bytes, which may have any bits; the stream is waited for before they are used.
    unsafe { result::memcpy_dtoh_async(&mut to, from, here.stream.cu_stream()) }.map_err(during(what))?;
    here.stream.synchronize().map_err(during(what))?;
    Ok(to)
}

/// Loads the arrays of the slab of a number, on the device of one. Other processes can map its region where `is_shared`.
pub(super) fn load(
    here: &Here,
    [number, device]: [usize; 2],
    slab: &Slab<'_>,
    diagonal: Option<(usize, Array)>,
    is_shared: bool,
) -> Result<Loaded> {
    let (context, stream) = (&here.member.context, &here.stream);
    context.bind_to_thread().map_err(during("binding the context"))?;
    let room = DeviceAllocator { context, stream };
    let begins = region(&slab.arrays);
    let all: usize = slab.arrays.all().iter().map(|(_, piece)| piece.bytes).sum();
    room.check(all)?;
    let (mut memory, mut shared) = (Vec::new(), None);
    let base = if is_shared {
        let region = Shared::new(context, begins[4])?;
        // SAFETY: there are as many bytes; the stream is waited for below.
        unsafe { result::memset_d8_async(region.address, 0, begins[4], stream.cu_stream()) }
            .map_err(during("clearing a solver's memory"))?;
        shared.insert(region).address
    } else {
        let region = room.zeros(begins[4])?;
        let base = region.device_ptr(stream).0;
        memory.push(region);
        base
    };
    let mut place = |bytes: usize| -> Result<u64> {
        let buffer = room.zeros(bytes)?;
        let address = buffer.device_ptr(stream).0;
        memory.push(buffer);
        Ok(address)
    };
    let mut addresses = Vec::new();
    for (name, piece) in slab.arrays.all() {
        let address = match name {
            "arrived" => base + begins[0] as u64,
            "partials" => base + begins[1] as u64,
            "exchanged" => base + begins[2] as u64,
            "tagged" => base + begins[3] as u64,
            _ => place(piece.bytes)?,
        };
        if !piece.loaded.is_empty() {
            // SAFETY: the array has at least these bytes; the stream is waited for while they live.
            unsafe { result::memcpy_htod_async(address, &piece.loaded, stream.cu_stream()) }
                .map_err(during("loading a solver's memory"))?;
        }
        // Kernels count from the beginning of the whole system's array, and never read there.
        addresses.push(address.wrapping_sub(piece.before as u64));
    }
    let mut next = addresses.into_iter();
    let arrays = slab.arrays.filled(|| next.next().unwrap_or(0));
    if let Some((vector, diagonal)) = diagonal {
        let real = diagonal.dtype().bytes();
        let to = arrays.homes.wrapping_add(((vector * slab.stride + slab.rows.start) * real) as u64);
        // SAFETY: the vector has room for the slab's rows; the stream is waited for while they live.
        unsafe { result::memcpy_htod_async(to, diagonal.as_bytes(), stream.cu_stream()) }
            .map_err(during("loading the diagonal"))?;
    }
    stream.synchronize().map_err(during("loading a matrix"))?;
    let (rows, stride, turn, beyond) = (slab.rows.clone(), slab.stride, slab.turn, slab.beyond.clone());
    Ok(Loaded { number, rows, stride, turn, beyond, device, arrays, memory, shared, history: None })
}

/// Writes to a slab the addresses of all slabs' regions, as its device sees them.
pub(super) fn connect(here: &Here, slab: &Loaded, bases: &[u64]) -> Result<()> {
    let own = slab.arrays.arrived;
    let others = bases.iter().enumerate().filter(|(other, _)| *other != slab.number);
    let beyond: Vec<i64> = others.map(|(_, base)| base.wrapping_sub(own) as i64).collect();
    here.member.context.bind_to_thread().map_err(during("binding the context"))?;
    // SAFETY: there is room for a number for each other slab; the stream is waited for while they live.
    unsafe { result::memcpy_htod_async(slab.arrays.beyond, &beyond, here.stream.cu_stream()) }
        .map_err(during("loading a solver's memory"))?;
    here.stream.synchronize().map_err(during("loading a solver's memory"))
}
