//! GMRES's basis and least-squares problem: how long a cycle may be, how much room it takes, what it moves.

use super::{Krylov, Space};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::solver::{Matrix, Method};

/// Iterations of a cycle at most: what their rotations and projections take of shared memory, 48 KiB in f64,
/// every device has.
const MOST: usize = 1024;

/// Dot products whose parts of warps are in shared memory at once.
const GROUP: usize = 32;

/// Sums of other reductions, of which two may be under way; those of the basis come after them.
const OTHERS: usize = 2 * super::place::REDUCED;

/// Vectors that one pass over the rows takes.
const TOGETHER: f64 = 8.0;

/// How often an iteration reads the basis: it projects twice, and twice subtracts.
const READS: f64 = 4.0;

/// Iterations of a cycle of a system of so many rows, beyond which there is nothing to find; 0 for methods
/// without cycles.
pub fn restart(method: Method, rows: usize) -> usize {
    if let Method::Gmres(gmres) = method { gmres.restart.min(rows) } else { 0 }
}

/// An error where a cycle is longer than the kernel's, or its basis larger than the device.
pub fn check(matrix: &Matrix, device: &DeviceSpec, method: Method) -> Result<()> {
    let Method::Gmres(gmres) = method else { return Ok(()) };
    gmres.check()?;
    let restart = restart(method, matrix.rows());
    if restart > MOST {
        let change = "restart earlier, or choose --backend cpu";
        return Err(Error::limit("GMRES's restart on a CUDA device", restart, MOST, change));
    }
    let vector = (matrix.rows() * matrix.dtype().bytes()) as u64;
    let bytes = vector.saturating_mul(restart as u64 + 1);
    if bytes > device.memory_bytes {
        let (what, change) =
            (format!("bytes of GMRES's basis on {}", device.name), "restart earlier, or choose f32");
        return Err(Error::limit(what, bytes, device.memory_bytes, change));
    }
    Ok(())
}

/// Values of a block's shared memory.
pub struct Needs {
    /// Cosines, sines, right-hand side, newest column, projections, minimiser, and what one thread tells the
    /// others.
    pub triangle: usize,
    /// Sums of warps.
    pub parts: usize,
    /// Sums of the cluster's blocks, of two reductions.
    pub projected: usize,
}

impl Needs {
    /// For cycles of `restart` iterations on blocks of so many warps; `cluster` is the cluster's blocks, or
    /// 0.
    pub fn new(restart: usize, warps: usize, cluster: usize) -> Needs {
        Needs { triangle: 6 * restart + 7, parts: GROUP * warps, projected: 2 * (restart + 1) * cluster }
    }
}

impl Krylov {
    /// Values in device memory of the sums of blocks that pass between them.
    pub fn partials(&self) -> usize {
        let projected =
            if self.restart > 0 && self.space == Space::Grid { 2 * (self.restart + 1) } else { 0 };
        (OTHERS + projected) * self.blocks
    }

    /// Vectors in device memory beside those of [`vectors`](Krylov::vectors): GMRES's basis, and its first
    /// iterate.
    pub fn basis(&self) -> usize {
        if self.restart > 0 { self.restart + 1 } else { 0 }
    }

    /// Values in device memory of GMRES's least-squares problem: columns, and what waits between launches.
    pub fn triangle(&self) -> usize {
        let m = self.restart;
        if m > 0 { m * (m + 1) / 2 + 4 * m + 2 } else { 0 }
    }

    /// Vectors of the basis that an iteration reads and writes, on average over a cycle.
    pub(super) fn consulted(&self) -> f64 {
        if self.restart > 0 { READS * (self.restart as f64 + 1.0) / 2.0 + 1.0 } else { 0.0 }
    }

    /// Passes over a block's rows that an iteration makes for them, on average.
    pub(super) fn passes(&self) -> f64 {
        if self.restart > 0 { READS * ((self.restart as f64 + 1.0) / 2.0 / TOGETHER).ceil() } else { 0.0 }
    }
}
