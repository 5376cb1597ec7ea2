//! The kernel by which devices store planes into each other's memory: one for any problem.

/// The text of the kernel.
pub const PUTS: &str = concat!(
    include_str!("../../kernels/cuda/common/device.cuh"),
    "\n",
    include_str!("../../kernels/cuda/exchange/puts.cu")
);

/// The name of the kernel.
pub const PUTS_ENTRY: &str = "stores";

/// Threads of a block.
pub const PUTS_THREADS: u32 = 512;

/// The most pieces of an exchange that go to a neighbour.
pub const PUTS_PIECES: usize = 32;

/// The most neighbours.
pub const PUTS_WAYS: usize = 2;

/// The word by which the host ends all waits.
pub const PUTS_GIVEN_UP: u32 = 1;

/// The word by which the kernel tells that nothing came in time.
pub const PUTS_LATE: u32 = 2;

/// Bytes of a `Post`, which a device gives each of its neighbours to store into; 0 at first.
pub const PUTS_POST: usize = 8 * PUTS_PIECES + 256;

/// What goes to and comes from one neighbour, as the kernel's struct `Way` has it: addresses in device memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PutsWay {
    /// Where the neighbour stores what it has to tell: [`PUTS_POST`] bytes.
    pub own: u64,
    /// Where this device stores what it has to tell the neighbour.
    pub theirs: u64,
    /// A word of 0.
    pub stored: u64,
    /// The pieces that go there.
    pub sends: u32,
    /// The pieces that come from there.
    pub receives: u32,
    /// Where each piece lies that goes there.
    pub sent: [u64; PUTS_PIECES],
    /// Its bytes, a multiple of 4.
    pub bytes: [u64; PUTS_PIECES],
    /// Where each piece goes that comes from there.
    pub places: [u64; PUTS_PIECES],
}

/// An exchange, the kernel's argument.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PutsExchange {
    /// What is exchanged with each neighbour.
    pub ways: [PutsWay; PUTS_WAYS],
    /// The neighbours; the launch has a multiple of so many blocks.
    pub count: u32,
    /// The number of the exchange, one above that of the last.
    pub round: u32,
    /// Nanoseconds after which a wait is given up.
    pub deadline: u64,
    /// A word of the host's memory: 0, until a wait is to be given up.
    pub word: u64,
}
