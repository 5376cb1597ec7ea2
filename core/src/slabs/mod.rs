//! Slabs: a domain cut along its slowest axis, so that several devices can advance it.
//!
//! Each device has a *rank*, and the slab of that rank: planes of its own and a *halo* of its neighbours' planes at each
//! inner side. A slab is a [`Problem`] like any other. It advances by itself for as many steps as its halo is deep;
//! what is wrong near an inner side by then never reaches its own planes ([`reach`]). Then the ranks exchange their
//! outermost own planes. So every cell is computed by the formula, in the order and from the values that it has in an
//! undivided domain, and has the same bits.
//!
//! Inner sides have [`Boundary::Open`], of lattices between fixed sides [`Boundary::Fixed`]; outer sides keep their boundaries,
//! and a periodic axis closes the ring of ranks.

mod cut;
mod exchange;
mod reach;
mod share;
mod slab;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use self::cut::{common_multiple, cut};
pub use self::exchange::{Edge, Exchange, Side};
pub use self::reach::reach;
use self::share::unit;
pub use self::share::{Share, blocks};

use crate::domain::{Boundaries, Boundary, axis_name};
use crate::error::{Error, Result};
use crate::program::{Problem, knows_where};
use crate::real::DType;

/// The slab of a rank, in cells along the slowest axis. Fields on nodes of that axis count the node at a cell's low end
/// as the cell's, and the last one as the last rank's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slab {
    /// The rank's own cells of the whole domain.
    pub own: Range<usize>,
    /// Cells of the halos below and above them; 0 at an outer side. Below a slab whose leaves are reduced they are whole
    /// leaves, so that the slab's own leaves are those of the whole domain: more planes than are read.
    pub halo: [usize; 2],
}

impl Slab {
    /// Returns the number of cells, own and halo.
    pub fn cells(&self) -> usize {
        self.own.len() + self.halo[0] + self.halo[1]
    }

    /// Returns the index in the whole domain of the slab's first cell; below 0 only in a ring.
    pub fn first(&self) -> isize {
        self.own.start as isize - self.halo[0] as isize
    }
}

/// A domain in slabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    /// The axis that is cut, of the three padded ones: the slowest.
    pub axis: usize,
    /// Cells of the whole domain along the axis.
    pub whole: usize,
    /// Whether the axis is periodic, so that the last rank is the first one's neighbour.
    pub is_ring: bool,
    /// Steps between two exchanges.
    pub depth: u32,
    /// Planes of each field that are exchanged at each side; 0 for a field that no stage writes, whose halos never
    /// change.
    pub reach: Vec<usize>,
    /// The slab of each rank.
    pub slabs: Vec<Slab>,
}

impl Slabs {
    /// Cuts a domain into a slab for each weight, as large as its share of the weights, for so many steps between
    /// exchanges. The domain of a program with reductions is cut between the leaves of their tree.
    ///
    /// # Errors
    ///
    /// Those of [`Slabs::check`]; [`Error::Limit`] where a slab would have fewer planes than its neighbours' halos
    /// take.
    pub fn new(problem: &Problem, depth: u32, weights: &[usize]) -> Result<Slabs> {
        Slabs::check(problem)?;
        let (axis, ranks) = (problem.slowest(), weights.len());
        let reach = reach(&problem.program, axis, depth);
        let halo = reach.iter().copied().max().unwrap_or(0);
        let whole = problem.shape.padded()[axis];
        let most = Slabs::most(problem, depth);
        if ranks == 0 || ranks > most {
            return Err(Error::limit(
                format!(
                    "devices for {whole} planes, of which {depth} steps read {halo} beyond a device's own{}",
                    whole_leaves(problem)
                ),
                ranks,
                format!("1 to {most}"),
                "take fewer devices, a larger size, or exchange after fewer steps (--depth)",
            ));
        }
        let is_ring = ring(problem)? && ranks > 1;
        let unit = unit(problem);
        let own = cut(whole / unit, weights, least(problem, halo).div_ceil(unit));
        let slabs = own.into_iter().enumerate().map(|(rank, own)| {
            // A leaf that the domain does not fill is the last rank's.
            let own = own.start * unit..if rank + 1 == ranks { whole } else { own.end * unit };
            let is_inner = [is_ring || rank > 0, is_ring || rank + 1 < ranks];
            let mut halo = is_inner.map(|is_inner| if is_inner { halo } else { 0 });
            halo[0] = halo[0].next_multiple_of(unit);
            Slab { own, halo }
        });
        let slabs = slabs.collect();
        let program = &problem.program;
        let exchanged =
            (0..program.fields().len()).map(|field| if program.is_written(field) { reach[field] } else { 0 });
        Ok(Slabs { axis, whole, is_ring, depth, reach: exchanged.collect(), slabs })
    }

    /// Returns the most ranks among which the domain can be divided, for so many steps between exchanges: each must have
    /// all the planes that a neighbour's halo takes. 1 at least.
    pub fn most(problem: &Problem, depth: u32) -> usize {
        let axis = problem.slowest();
        let halo = reach(&problem.program, axis, depth).into_iter().max().unwrap_or(0);
        let unit = unit(problem);
        (problem.shape.padded()[axis] / unit / least(problem, halo).div_ceil(unit)).max(1)
    }

    /// Checks that a problem can be cut at all.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a batch, for fields of coarser grids, where some fields alone are periodic along the slowest axis, and where a
    /// temporary's formula knows its index along a periodic axis; [`Error::Limit`] where formulas know their index and
    /// the fields' type does not have every index exactly.
    pub fn check(problem: &Problem) -> Result<()> {
        problem.check()?;
        problem.refuse_batch("a run on several devices")?;
        let (program, axis) = (&problem.program, problem.slowest());
        let refuse = |reason: String, change: &str| {
            Err(Error::unsupported(format!("{} on several devices", program.name()), reason, change))
        };
        if program.has_levels() {
            let coarse = program.kinds().iter().position(|kind| kind.centring.level() > 0).unwrap_or(0);
            let reason = format!("{} stands on a coarser grid, which is not cut", program.fields()[coarse]);
            return refuse(reason, "run it on one device, or solve by cg");
        }
        if program.transforms() {
            let reason = "its transforms go over whole lines of the domain, which is cut".to_owned();
            return refuse(reason, "run it on one device, or solve by cg");
        }
        let is_ring = ring(problem)?;
        let knowing = program.stages().iter().filter(|stage| knows_where(&stage.dag, axis));
        for stage in knowing {
            let is_temporary = stage.writes.iter().any(|&target| target >= program.fields().len());
            if is_temporary && is_ring {
                let reason = format!(
                    "stage {} makes a temporary by its index along {}, which is periodic: beyond the end the index goes \
                     on, on another device it begins anew",
                    stage.name,
                    axis_name(axis)
                );
                return refuse(reason, "run it on one device, or make it a field");
            }
            // In 64 bits because a `usize` of a browser has 32.
            let most = match problem.dtype {
                DType::F32 => 1_u64 << f32::MANTISSA_DIGITS,
                DType::F64 => 1_u64 << f64::MANTISSA_DIGITS,
            };
            let planes = problem.shape.padded()[axis];
            if planes as u64 >= most {
                return Err(Error::limit(
                    format!("planes on several devices where stage {} knows its index", stage.name),
                    planes,
                    format!("below {most}, the first number that {} may round", problem.dtype),
                    "use --dtype f64, or one device",
                ));
            }
        }
        Ok(())
    }

    /// Returns the planes of a field of the whole domain that are a rank's own.
    pub fn own(&self, rank: usize, planes: usize) -> Range<usize> {
        let own = &self.slabs[rank].own;
        // The last rank has the node beyond the last cell.
        let end = if rank + 1 == self.slabs.len() { planes } else { own.end };
        own.start..end
    }
}

/// Returns the words that a cut between leaves needs; none where a domain is cut anywhere.
pub fn whole_leaves(problem: &Problem) -> String {
    match unit(problem) {
        1 => String::new(),
        unit => format!(", in whole leaves of {unit} planes of its reductions' tree"),
    }
}

/// Returns the fewest planes of a slab whose neighbours' halos are so many planes deep.
///
/// Where a program of several stages has a fixed side, no other rank may hold the planes that are fixed there: a stage
/// that reads less far than the program would change what it ought to keep, nearer to a rank's own planes than
/// [`reach`] knows of.
fn least(problem: &Problem, halo: usize) -> usize {
    let (program, axis) = (&problem.program, problem.slowest());
    let mut all = (0..program.fields().len()).map(|field| problem.boundaries_of(field).0[axis]);
    let margin = match program.stages().len() > 1 && all.any(|sides| sides.contains(&Boundary::Fixed)) {
        true => program.radius()[axis],
        false => 0,
    };
    (halo + margin).max(1)
}

/// Returns whether the slowest axis is periodic.
fn ring(problem: &Problem) -> Result<bool> {
    let axis = problem.slowest();
    let is_ring = |boundaries: &Boundaries| boundaries.0[axis].contains(&Boundary::Periodic);
    let all: Vec<bool> =
        (0..problem.program.fields().len()).map(|field| is_ring(&problem.boundaries_of(field))).collect();
    match all.iter().all(|&own| own == all[0]) {
        true => Ok(all[0]),
        false => Err(Error::unsupported(
            format!("{} on several devices", problem.program.name()),
            format!("only some of its fields are periodic along {}", axis_name(axis)),
            "give all fields a periodic boundary there, or none, or run it on one device",
        )),
    }
}
