//! The initial fields of a problem, made when a backend asks for them.

use std::ops::Range;

use crate::error::Result;
use crate::program::Problem;
use crate::real::Array;

/// Where the initial fields of a problem come from. A backend asks for all of them whole, or plane by plane for those that
/// this process computes.
pub trait Fields {
    /// Makes all fields, in the program's order, in a batch of all members one after another. Nothing is asked for after it.
    fn whole(&mut self) -> Result<Vec<Array>>;

    /// Makes planes of a field along the slowest axis. Those of them that are in `own` are this process's, and no other's;
    /// each process asks for all of its own once.
    fn planes(&mut self, field: usize, planes: Range<usize>, own: &Range<usize>) -> Result<Array>;

    /// Checks conditions that need the planes of all processes, once every process has its planes.
    fn finish(&mut self) -> Result<()>;
}

/// Fields that are there already, once.
pub struct Given {
    fields: Vec<Array>,
    /// The planes of each.
    planes: Vec<usize>,
}

impl Given {
    /// Gives fields of a problem.
    pub fn new(problem: &Problem, fields: Vec<Array>) -> Given {
        let planes = |field| problem.extents_of(field)[problem.slowest()];
        Given { planes: (0..fields.len()).map(planes).collect(), fields }
    }
}

impl Fields for Given {
    fn whole(&mut self) -> Result<Vec<Array>> {
        Ok(std::mem::take(&mut self.fields))
    }

    fn planes(&mut self, field: usize, planes: Range<usize>, _: &Range<usize>) -> Result<Array> {
        planes_of(&self.fields[field], self.planes[field], planes)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns a copy of planes of a field's values, which are so many planes.
pub fn planes_of(values: &Array, all: usize, planes: Range<usize>) -> Result<Array> {
    let plane = values.len() / all.max(1);
    values.part(planes.start * plane..planes.end * plane)
}
