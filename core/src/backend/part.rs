//! A process's part of a domain, for files that several processes read and write jointly.

use std::ops::Range;

use crate::error::Result;
use crate::real::Array;

/// The part of a domain that a process has, where other processes have the rest: whole planes along the slowest axis. All
/// processes make the same calls of [`Part::gather_bytes`] in the same order.
pub trait Part {
    /// Returns the process's number, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the planes of a field that are the process's own: each plane is one process's, in the order of ranks.
    fn own(&self, field: usize) -> Range<usize>;

    /// Reads some of the own planes, counted in the whole domain, packed.
    fn read_planes(&mut self, field: usize, planes: Range<usize>) -> Result<Array>;

    /// Returns the bytes that each process gives, in the order of ranks.
    fn gather_bytes(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>>;
}
