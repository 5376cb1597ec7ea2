//! Peer-to-peer puts: a kernel of each device stores planes into the memory of the neighbouring devices of one process.
//!
//! An exchange is one launch on the session's stream (shaders/kernels/cuda/exchange/puts.cu). The kernels of two neighbours signal
//! each other where planes go and that they have arrived; the hosts exchange nothing. The target memory is kept alive
//! until the last session that stores into it is gone.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use abide_core::backend::{CancelCheck, Planes};
use abide_core::{Error, Result};
use abide_shaders::cuda::{
    COMPILE_OPTIONS, PUTS, PUTS_ENTRY, PUTS_GIVEN_UP, PUTS_LATE, PUTS_PIECES, PUTS_POST, PUTS_THREADS,
    PUTS_WAYS, PutsExchange, PutsWay,
};
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, result, sys};

use crate::cache;
use crate::driver::{bind, during, is_done};
use crate::kernels::Kernels;
use crate::lent::DeviceBuffer;
use crate::nvrtc::Nvrtc;
use crate::peer::{connect, reaches, span};
use crate::streaming::PutPlanes;

/// The most ranks: each rank has a slot for the post of every other rank.
const RANKS: usize = 64;

/// What a block stores before more blocks are worth their launch.
const BYTES_OF_A_BLOCK: u64 = 16 << 10;

/// How long a kernel waits for a neighbour's kernel, unless a host aborts the wait before.
const DEADLINE: Duration = Duration::from_secs(300);

/// The kernel of a device, compiled when first needed.
pub(crate) struct PutKernel {
    nvrtc: Arc<Nvrtc>,
    target: String,
    function: OnceLock<CudaFunction>,
}

impl PutKernel {
    pub fn new(nvrtc: &Arc<Nvrtc>, target: String) -> PutKernel {
        PutKernel { nvrtc: nvrtc.clone(), target, function: OnceLock::new() }
    }

    fn function(&self, context: &Arc<CudaContext>) -> Result<CudaFunction> {
        if let Some(function) = self.function.get() {
            return Ok(function.clone());
        }
        let cubin = cache::compile(&self.nvrtc, PUTS, &self.target, &COMPILE_OPTIONS)?;
        let function = Kernels::load(context, cubin)?.function(PUTS_ENTRY, 0)?;
        // Whoever was first has set the same.
        Ok(self.function.get_or_init(|| function).clone())
    }
}

/// Memory of a session into which the neighbours' sessions store.
struct Shared {
    context: Arc<CudaContext>,
    /// The posts of all ranks, [`PUTS_POST`] bytes each, and their address.
    _posts: CudaSlice<u8>,
    posts: u64,
    /// Fields whose halos neighbours store into.
    fields: Mutex<Vec<DeviceBuffer>>,
    /// The buffers of each array that passes write by turns.
    turns: Vec<[DeviceBuffer; 2]>,
}

/// The sessions of this process that offer to store, by number.
static SHARED: Mutex<Option<HashMap<u64, Weak<Shared>>>> = Mutex::new(None);

/// A number of this process, which no other has, on any machine.
fn process() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// A word of the host's memory that kernels read and write.
struct Word {
    host: *mut u32,
    device: u64,
    context: Arc<CudaContext>,
}

// SAFETY: the word belongs to no thread, and is read and written as one.
unsafe impl Send for Word {}

impl Word {
    fn new(context: &Arc<CudaContext>) -> Result<Word, DriverError> {
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the context is bound; the memory has room for the word, and is asked for its address on the device.
        unsafe {
            let host = result::malloc_host(size_of::<u32>(), flags)?.cast::<u32>();
            host.write_volatile(0);
            let mut word = Word { host, device: 0, context: context.clone() };
            sys::cuMemHostGetDevicePointer_v2(&raw mut word.device, host.cast(), 0).result()?;
            Ok(word)
        }
    }

    fn get(&self) -> u32 {
        // SAFETY: the word lives as long as this.
        unsafe { self.host.read_volatile() }
    }

    fn set(&self, value: u32) {
        // SAFETY: as above.
        unsafe { self.host.write_volatile(value) }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: no kernel that reads it is under way. Nothing can be done about a device that no longer answers.
        let _ = self.context.bind_to_thread().and_then(|()| unsafe { result::free_host(self.host.cast()) });
    }
}

/// Pieces of memory: the address of each, and its bytes.
type Pieces = Vec<(u64, u64)>;

/// What goes to a rank and comes from it in an exchange.
struct PeerExchange {
    rank: usize,
    out: Pieces,
    into: Pieces,
}

impl PeerExchange {
    fn nothing(rank: usize) -> PeerExchange {
        PeerExchange { rank, out: Vec::new(), into: Vec::new() }
    }
}

/// A session's end of what connects it with those beside it.
pub(crate) struct PeerPuts {
    stream: Arc<CudaStream>,
    function: CudaFunction,
    own: Arc<Shared>,
    /// Of each rank; the own one among them.
    ranks: Vec<Arc<Shared>>,
    rank: usize,
    /// A word for each neighbour in which blocks are counted.
    stored: CudaSlice<u32>,
    word: Word,
    rounds: u32,
    /// The ranks to which steps give planes.
    given_to: Vec<usize>,
}

/// What a session that offers to store has before it has joined others.
pub(crate) struct ExportedPuts(Arc<Shared>);

/// The bytes of a key: the process, the session's number.
const KEY: usize = 16;

/// Makes what other sessions of this process need to join that of a stream; `None` where another such session is on its device:
/// kernels of two runs that wait on the same devices might leave each other no room.
/// Steps of others may store into the buffers that are written by turns.
pub(crate) fn offer(
    stream: &Arc<CudaStream>,
    turns: Vec<[DeviceBuffer; 2]>,
) -> Result<Option<(ExportedPuts, Vec<u8>)>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    bind(stream)?;
    let posts = stream.alloc_zeros(RANKS * PUTS_POST).map_err(during("allocating what neighbours tell"))?;
    // Others store into it as soon as they have joined.
    stream.synchronize().map_err(during("allocating what neighbours tell"))?;
    let address = posts.device_ptr(stream).0;
    let context = stream.context().clone();
    let shared = Arc::new(Shared { context, _posts: posts, posts: address, fields: Mutex::default(), turns });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    all.retain(|_, session| session.strong_count() > 0);
    let device = shared.context.ordinal();
    if all.values().filter_map(Weak::upgrade).any(|other| other.context.ordinal() == device) {
        return Ok(None);
    }
    all.insert(number, Arc::downgrade(&shared));
    let key = [process().to_le_bytes(), number.to_le_bytes()].concat();
    Ok(Some((ExportedPuts(shared), key)))
}

impl PeerPuts {
    /// Joins the sessions of these keys; `None` where they are of several processes, two of one device, or of devices that
    /// cannot store into each other's memory.
    pub fn join(
        stream: &Arc<CudaStream>,
        put_kernel: &PutKernel,
        offered: ExportedPuts,
        keys: &[Vec<u8>],
        rank: usize,
    ) -> Result<Option<PeerPuts>> {
        let found = |key: &Vec<u8>| -> Option<Arc<Shared>> {
            let (of, number) = key.split_first_chunk::<{ KEY / 2 }>()?;
            let number = u64::from_le_bytes(number.try_into().ok()?);
            let all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            (u64::from_le_bytes(*of) == process()).then(|| all.as_ref()?.get(&number)?.upgrade()).flatten()
        };
        let Some(ranks) = keys.iter().map(found).collect::<Option<Vec<_>>>() else { return Ok(None) };
        if ranks.len() > RANKS {
            return Ok(None);
        }
        for (at, own) in ranks.iter().enumerate() {
            for other in &ranks[..at] {
                let [own, other] = [&own.context, &other.context];
                if own.ordinal() == other.ordinal() {
                    return Ok(None);
                }
                for (from, to) in [(own, other), (other, own)] {
                    if !reaches(from.cu_device(), to.cu_device()).map_err(during("asking for peer access"))? {
                        return Ok(None);
                    }
                }
            }
        }
        for other in &ranks {
            connect(stream.context(), &other.context)?;
        }
        bind(stream)?;
        let function = put_kernel.function(stream.context())?;
        let stored = stream.alloc_zeros(PUTS_WAYS).map_err(during("allocating counts of blocks"))?;
        let word = Word::new(stream.context()).map_err(during("allocating a word of the host"))?;
        let (stream, own) = (stream.clone(), offered.0);
        Ok(Some(PeerPuts {
            stream,
            function,
            own,
            ranks,
            rank,
            stored,
            word,
            rounds: 0,
            given_to: Vec::new(),
        }))
    }

    /// Puts an exchange on the stream: of each plane's buffer and place, to and from ranks.
    pub fn exchange(
        &mut self,
        sent: &[(usize, Planes, DeviceBuffer)],
        received: &[(usize, Planes, DeviceBuffer)],
    ) -> Result<()> {
        self.usable()?;
        bind(&self.stream)?;
        let mut neighbours: Vec<usize> = sent.iter().chain(received).map(|(rank, ..)| *rank).collect();
        neighbours.sort_unstable();
        neighbours.dedup();
        if neighbours.len() > PUTS_WAYS {
            let change = "cut the domain along one axis";
            return Err(Error::limit("neighbours of a device", neighbours.len(), PUTS_WAYS, change));
        }
        let pieces = |all: &[(usize, Planes, DeviceBuffer)], rank: usize| -> Result<Pieces> {
            let own = all.iter().filter(|(of, ..)| *of == rank);
            own.map(|(_, planes, buffer)| {
                let bytes = span(&buffer.layout, planes)?;
                Ok((buffer.address() + bytes.start as u64, bytes.len() as u64))
            })
            .collect()
        };
        let way = |&rank: &usize| {
            Ok(PeerExchange { rank, out: pieces(sent, rank)?, into: pieces(received, rank)? })
        };
        let ways: Vec<PeerExchange> = neighbours.iter().map(way).collect::<Result<_>>()?;
        self.keep(received);
        let longest = ways.iter().map(|way| way.out.len().max(way.into.len())).max().unwrap_or(0);
        for first in (0..longest).step_by(PUTS_PIECES) {
            self.launch(&ways, first)?;
        }
        Ok(())
    }

    /// Returns where planes of a slab go that its steps give to those below and above, along an axis: the first given to each,
    /// and the rank and its plane which that becomes; `None` where they cannot.
    pub fn put_planes(
        &mut self,
        axis: usize,
        from: [usize; 2],
        beside: [Option<(usize, usize)>; 2],
    ) -> Option<PutPlanes> {
        self.given_to = beside.iter().flatten().map(|(rank, _)| *rank).collect();
        self.given_to.sort_unstable();
        self.given_to.dedup();
        let side = |side: usize| -> Option<Vec<[u64; 2]>> {
            let Some((rank, to)) = beside[side] else { return Some(Vec::new()) };
            let there = &self.ranks.get(rank)?.turns;
            if there.is_empty() || there.len() != self.own.turns.len() {
                return None;
            }
            let place = |(own, other): (&[DeviceBuffer; 2], &[DeviceBuffer; 2])| {
                let [own_layout, layout] = [&own[0].layout, &other[0].layout];
                let alike = (0..3).all(|at| at == axis || own_layout.extents[at] == layout.extents[at])
                    && own_layout.pitch == layout.pitch
                    && own_layout.dtype == layout.dtype;
                let plane = (own[0].strides()[axis] * layout.dtype.bytes()) as i64;
                let apart = (to as i64 - from[side] as i64) * plane;
                alike.then(|| [0, 1].map(|turn| other[turn].address().wrapping_add_signed(apart)))
            };
            self.own.turns.iter().zip(there).map(place).collect()
        };
        Some(PutPlanes([side(0)?, side(1)?]))
    }

    /// Has the stream wait until the ranks to which steps give planes have come as far.
    pub fn wait_for_neighbours(&mut self) -> Result<()> {
        self.usable()?;
        bind(&self.stream)?;
        let ways: Vec<PeerExchange> = self.given_to.iter().map(|&rank| PeerExchange::nothing(rank)).collect();
        self.launch(&ways, 0)
    }

    /// Launches an exchange of as many pieces as go at once.
    fn launch(&mut self, ways: &[PeerExchange], first: usize) -> Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        let mut exchange = PutsExchange {
            count: ways.len() as u32,
            round: self.rounds,
            deadline: DEADLINE.as_nanos() as u64,
            word: self.word.device,
            ..PutsExchange::default()
        };
        let stored = self.stored.device_ptr(&self.stream).0;
        let mut most = 0;
        for (number, (PeerExchange { rank, out, into }, way)) in
            ways.iter().zip(&mut exchange.ways).enumerate()
        {
            let post = |of: &Shared, from: usize| of.posts + (from * PUTS_POST) as u64;
            *way = PutsWay {
                own: post(&self.own, *rank),
                theirs: post(&self.ranks[*rank], self.rank),
                stored: stored + (number * size_of::<u32>()) as u64,
                ..PutsWay::default()
            };
            let out = out.iter().skip(first).take(PUTS_PIECES);
            for (i, &(address, bytes)) in out.enumerate() {
                (way.sent[i], way.bytes[i], way.sends) = (address, bytes, i as u32 + 1);
            }
            let into = into.iter().skip(first).take(PUTS_PIECES);
            for (i, &(address, _)) in into.enumerate() {
                (way.places[i], way.receives) = (address, i as u32 + 1);
            }
            most = way.bytes.iter().sum::<u64>().max(most);
        }
        let multiprocessors = self.multiprocessors()?;
        let each = (multiprocessors / exchange.count.max(1)).max(1);
        let blocks = exchange.count * (most.div_ceil(BYTES_OF_A_BLOCK).clamp(1, u64::from(each)) as u32);
        let mut arguments: [*mut c_void; 1] = [(&raw mut exchange).cast()];
        // SAFETY: the kernel takes the struct by value, of which the call copies it. All addresses are of memory that this
        // session, the neighbours' of which it keeps, or the host's word have, and pieces are as long as their planes in
        // slabs that all ranks cut alike.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                (blocks, 1, 1),
                (PUTS_THREADS, 1, 1),
                0,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during("exchanging planes by stores"))
    }

    fn multiprocessors(&self) -> Result<u32> {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let count =
            self.stream.context().attribute(attribute).map_err(during("asking for multiprocessors"))?;
        Ok(count.max(1) as u32)
    }

    /// Keeps fields for as long as a neighbour may store into them.
    fn keep(&self, received: &[(usize, Planes, DeviceBuffer)]) {
        let mut fields = self.own.fields.lock().unwrap_or_else(PoisonError::into_inner);
        for (.., buffer) in received {
            if !fields.iter().any(|known| known.is_of(buffer)) {
                fields.push(buffer.clone());
            }
        }
    }

    /// Waits until the stream has done all that it was asked.
    pub fn flush(&mut self, cancel_check: CancelCheck<'_>) -> Result<()> {
        self.usable()?;
        bind(&self.stream)?;
        while !is_done(&self.stream)? {
            cancel_check().inspect_err(|_| self.abort())?;
        }
        self.usable()
    }

    fn usable(&self) -> Result<()> {
        let reason = match self.word.get() {
            0 => return Ok(()),
            PUTS_LATE => format!("nothing came from a neighbour within {} s", DEADLINE.as_secs()),
            _ => "an earlier exchange failed".to_owned(),
        };
        Err(Error::device("cuda", "exchanging planes by stores", reason))
    }

    /// Ends all that is under way on this device, so that it stores into no other's memory any more.
    fn abort(&self) {
        self.word.set(PUTS_GIVEN_UP);
        // Nothing can be done about a device that no longer answers.
        let _ = bind(&self.stream).map(|()| self.stream.synchronize());
    }
}

impl Drop for PeerPuts {
    fn drop(&mut self) {
        // Ranks have agreed that all is done, unless one failed: then nothing is waited for.
        self.abort();
    }
}
