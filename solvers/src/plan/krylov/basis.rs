//! GMRES's basis and least-squares problem: how long a cycle may be, how much room it takes, and what it
//! moves.

use abide_core::solver::plan::krylov::{Space, Sums, group, products};
use abide_core::solver::{Matrix, Method};
use abide_core::{DeviceSpec, Error, Result};

/// The most iterations of a cycle: their rotations and projections take 48 KiB of shared memory in f64, which
/// every device has.
const MOST: usize = 1024;

/// Returns the iterations of a cycle for a system of `rows` rows, beyond which there is nothing to find; 0
/// for methods without cycles.
pub fn restart(method: Method, rows: usize) -> usize {
    if let Method::Gmres(gmres) = method { gmres.restart.min(rows) } else { 0 }
}

/// Fails if a cycle is longer than the kernel's, or its basis larger than the device's memory.
pub fn check(matrix: &Matrix, device: &DeviceSpec, method: Method) -> Result<()> {
    let Method::Gmres(gmres) = method else { return Ok(()) };
    gmres.check()?;
    let restart = restart(method, matrix.rows());
    if restart > MOST {
        let what = "GMRES's restart in a persistent solver";
        return Err(Error::limit(what, restart, MOST, "restart earlier"));
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

/// Values that a cycle needs in a block's shared memory.
pub struct Needs {
    /// Cosines, sines, right-hand side, newest column, projections, minimiser, and the values that one thread passes
    /// to the others.
    pub triangle: usize,
    /// Sums of a block's runs, of some dot products at a time.
    pub parts: usize,
    /// Sums of all runs of a cluster, of all dot products of two reductions.
    pub projected: usize,
}

impl Needs {
    /// Counts the values for cycles of `restart` iterations.
    pub fn new(restart: usize, sums: &Sums, space: Space) -> Needs {
        let (parts, projected) = match space {
            Space::Cluster => (0, 2 * products(restart) * sums.runs),
            Space::Block | Space::Grid => (group(sums) * sums.runs, 0),
        };
        Needs { triangle: 6 * restart + 7, parts, projected }
    }
}
