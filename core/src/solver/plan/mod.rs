//! Plans of solvers, made before anything is allocated.

mod dispatches;
pub mod krylov;

use std::fmt::{self, Display, Write as _};
use std::ops::Range;

use serde::Serialize;

use self::krylov::Krylov;
use super::matrix::Matrix;
use super::options::{Method, Preconditioning, SolveCache, SolveOptions};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::named::named;
use crate::plan::Compiled;
use crate::real::DType;
use crate::units::amount;

pub use dispatches::{Dispatches, Effort};

named! {
    /// The division of a product with the matrix among threads.
    Product "product" {
        /// Whole rows; each thread or warp has rows with about equally many entries.
        #[default]
        Rows = "rows",
        /// Equal shares of rows plus entries, whatever the rows' lengths (merge path).
        Merge = "merge",
        /// Slices of rows padded to one length, stored by columns.
        Sliced = "sliced",
        /// Taps of a stencil; nothing is stored.
        MatrixFree = "matrix-free",
    }
}

named! {
    /// The way in which the parts of an iteration wait for each other.
    SolveSync "synchronisation" {
        /// No part waits: there is one thread.
        #[default]
        None = "none",
        /// Threads of a CPU join after each product, update and reduction.
        Join = "join",
        /// A kernel or dispatch ends before the next begins, launched one by one.
        Launches = "launches",
        /// A kernel ends before the next begins, launched as a graph.
        Graph = "graph",
        /// Barriers of all blocks of a cooperative kernel.
        Grid = "grid",
        /// Barriers of all blocks of cooperative kernels on several devices.
        Devices = "devices",
        /// Barriers of one block's threads.
        Block = "block",
        /// Barriers of the blocks of one thread-block cluster.
        Cluster = "cluster",
    }
}

named! {
    /// A place where data stays from iteration to iteration.
    Place "place" {
        /// Memory of the device or machine, streamed through in each iteration.
        #[default]
        Memory = "memory",
        /// The last-level cache, which has room for all of the data.
        Cache = "cache",
        /// Shared memory.
        Shared = "shared",
        /// Registers.
        Registers = "registers",
    }
}

/// Data that stay in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// `matrix` or `vectors`.
    pub what: &'static str,
    /// The place.
    pub place: Place,
    /// Bytes in that place.
    pub bytes: usize,
}

/// Bytes that an iteration moves between memory and the chip, by the plan's model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SolveTraffic {
    /// Bytes that the plan moves.
    pub moved: f64,
    /// Bytes that the plan would move with nothing kept on the chip, each datum read and written once: the
    /// matrix once for each product, the vectors that the method carries twice, those that it only consults
    /// once.
    pub streamed: f64,
    /// The least bytes possible: what is left of [`streamed`](SolveTraffic::streamed) when the chip is filled
    /// with the data that an iteration touches most often first. A kept byte of a carried vector saves two
    /// bytes, a kept byte of the matrix one per product.
    pub least: f64,
}

impl SolveTraffic {
    /// Computes the traffic of a plan that moves `moved` bytes, on a chip that could hold `on_chip`.
    pub fn new(matrix: &Matrix, options: &SolveOptions, moved: f64, on_chip: usize) -> Self {
        let vector = (matrix.rows() * matrix.dtype().bytes()) as f64;
        let products = (options.method.products() * (1 + options.preconditioner.products())) as f64;
        let (carried, consulted) = (options.method.carried() as f64, options.method.consulted() as f64);
        let stored = matrix.bytes() as f64;
        let streamed = products * stored + (2.0 * carried + consulted) * vector;
        let mut room = on_chip as f64;
        let mut saved = 0.0;
        let mut keep = |bytes: f64, times: f64| {
            let kept = bytes.min(room);
            room -= kept;
            saved += times * kept;
        };
        // Data that are touched most often in an iteration go first.
        if products > 2.0 {
            keep(stored, products);
            keep(carried * vector, 2.0);
        } else {
            keep(carried * vector, 2.0);
            keep(stored, products);
        }
        keep(consulted * vector, 1.0);
        SolveTraffic { moved, streamed, least: streamed - saved }
    }
}

/// A backend's own details of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SolveSchedule {
    /// Bands of rows on the threads of a CPU.
    Bands(Bands),
    /// A persistent kernel on a CUDA device.
    Krylov(Box<Krylov>),
    /// A few dispatches per iteration, on any GPU.
    Dispatches(Dispatches),
}

impl SolveSchedule {
    /// Returns the schedule in words, within a line.
    pub fn describe(&self) -> String {
        match self {
            SolveSchedule::Bands(bands) => {
                format!("bands of {} entries, {} threads", bands.work, bands.threads)
            }
            SolveSchedule::Krylov(krylov) => krylov.describe(),
            SolveSchedule::Dispatches(dispatches) => dispatches.describe(),
        }
    }
}

/// Rows cut into bands with about equally many entries, which threads take one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bands {
    /// Threads.
    pub threads: usize,
    /// Approximate number of entries plus rows of a band.
    pub work: usize,
}

/// How a device will solve systems with one matrix; printable with `{}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SolvePlan {
    /// The backend's name.
    pub backend: &'static str,
    /// The device planned for.
    pub device: DeviceSpec,
    /// Rows of the matrix.
    pub rows: usize,
    /// Entries of the matrix, as [`Matrix::nonzeros`] counts them.
    pub nonzeros: usize,
    /// The type of matrix and vectors.
    pub dtype: DType,
    /// The method.
    pub method: Method,
    /// The preconditioner.
    pub preconditioner: Preconditioning,
    /// The data that stay on the chip; never `auto`.
    pub cache: SolveCache,
    /// The product's kernel.
    pub product: Product,
    /// The places of matrix and vectors, summed over all blocks.
    pub residents: Vec<Resident>,
    /// How the parts of an iteration wait for each other.
    pub synchronisation: SolveSync,
    /// Bytes per iteration.
    pub traffic: SolveTraffic,
    /// The backend's own details.
    pub schedule: SolveSchedule,
    /// The rows of each device, where several devices solve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<Range<usize>>,
    /// The compiler's reports, one per kernel; empty until the plan is compiled.
    pub compiled: Vec<Compiled>,
    /// The differences from the request, with their reasons.
    pub notes: Vec<String>,
}

impl SolvePlan {
    /// Makes a plan of which neither matrix nor vectors stay on the chip, and that has no notes yet.
    pub fn new(
        backend: &'static str,
        device: &DeviceSpec,
        matrix: &Matrix,
        options: &SolveOptions,
        traffic: SolveTraffic,
        schedule: SolveSchedule,
    ) -> Self {
        SolvePlan {
            backend,
            device: device.clone(),
            rows: matrix.rows(),
            nonzeros: matrix.nonzeros(),
            dtype: matrix.dtype(),
            method: options.method,
            preconditioner: options.preconditioner,
            cache: SolveCache::None,
            product: if matches!(matrix, Matrix::Stored(_)) { Product::Rows } else { Product::MatrixFree },
            residents: Vec::new(),
            synchronisation: SolveSync::None,
            traffic,
            schedule,
            ranks: Vec::new(),
            compiled: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the least seconds per iteration by the memory bandwidth of all devices; 0 if the bandwidth is not
    /// known.
    pub fn seconds_by_bandwidth(&self) -> f64 {
        let devices = self.ranks.len().max(1) as f64;
        if self.device.memory_bandwidth > 0.0 {
            self.traffic.moved / (devices * self.device.memory_bandwidth)
        } else {
            0.0
        }
    }

    /// Checks that the plan is for this matrix and these options.
    pub fn check(&self, backend: &str, matrix: &Matrix, options: &SolveOptions) -> Result<()> {
        let planned = (self.backend, self.rows, self.nonzeros, self.dtype, self.method, self.preconditioner);
        let asked = (
            backend,
            matrix.rows(),
            matrix.nonzeros(),
            matrix.dtype(),
            options.method,
            options.preconditioner,
        );
        if planned == asked {
            return Ok(());
        }
        let what = |(backend, rows, nonzeros, dtype, method, preconditioner): (&str, _, _, _, _, _)| {
            let system: String = system_in_words(rows, nonzeros, dtype);
            let method: Method = method;
            let preconditioner: Preconditioning = preconditioner;
            format!("{method} with preconditioner {preconditioner} on {backend} for {system}")
        };
        let reason = format!("it is for {}, and {} is asked for", what(planned), what(asked));
        Err(Error::invalid("the plan of a solver", reason, "plan this system"))
    }
}

fn system_in_words(rows: usize, nonzeros: usize, dtype: DType) -> String {
    format!("{rows} rows, {nonzeros} entries, {dtype}")
}

impl Display for SolvePlan {
    /// Writes one line per fact, without an end of line after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14}{}", "system", system_in_words(self.rows, self.nonzeros, self.dtype))?;
        writeln!(f, "{:<14}{}: {}", "device", self.backend, self.device.name)?;
        writeln!(f, "{:<14}{}, preconditioner {}", "method", self.method, self.preconditioner)?;
        let (product, wait) = (self.product, self.synchronisation);
        writeln!(f, "{:<14}{product}, {}, synchronisation {wait}", "product", self.schedule.describe())?;
        for (rank, rows) in self.ranks.iter().enumerate() {
            writeln!(f, "{:<14}rows {}..{}", format!("device {rank}"), rows.start, rows.end)?;
        }
        let mut places = String::new();
        for Resident { what, place, bytes } in &self.residents {
            let comma = if places.is_empty() { "" } else { ", " };
            write!(places, "{comma}{what} in {place} {}", amount(*bytes as f64))?;
        }
        writeln!(f, "{:<14}{}: {places}", "cache", self.cache)?;
        let SolveTraffic { moved, streamed, least } = self.traffic;
        write!(
            f,
            "{:<14}{} moved, {} with nothing kept, {} the least possible",
            "per iteration",
            amount(moved),
            amount(streamed),
            amount(least)
        )?;
        for note in &self.notes {
            write!(f, "\n{:<14}{note}", "note")?;
        }
        Ok(())
    }
}
