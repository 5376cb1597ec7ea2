//! Groups of stages, each as one kernel (fusion): a block goes over a tile's rows, and every stage of the group
//! follows at a distance behind the one before it.
//!
//! What a stage makes for later stages of its group stays in a ring of rows in shared memory, or goes on in a register
//! where the other stage needs it at the same index and in the same turn. Near a tile's sides stages also compute
//! what others of the group read of the tiles beside (overlapped tiling), so blocks never wait for each other.
//!
//! Rows are planes where the domain has three axes: what is counted along the slowest.

use serde::Serialize;

use super::chain::Chain;
use super::streaming::warp::Configuration;
use crate::error::Result;
use crate::program::{Boxes, Groups, Place, Problem, Program, Split, StageKind};
use crate::reduction::leaf;

/// A group of stages as one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fused {
    /// The stages, in order.
    pub members: Vec<Member>,
    /// The axis along which blocks go from row to row.
    pub axis: usize,
    /// The indices that a block owns along the three axes.
    pub tile: [usize; 3],
    /// The first index of the first tile.
    pub first: [isize; 3],
    /// The tiles along the three axes.
    pub blocks: [usize; 3],
    /// Threads of a block.
    pub threads: usize,
    /// The most indices that a member computes beyond the low and high side of its tile, along each axis.
    pub beyond: [[usize; 2]; 3],
    /// The rows that stay in shared memory.
    pub rings: Vec<Ring>,
    /// What is copied into shared memory before it is read; empty where stages read device memory where it lies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
    /// The indices that are copied beyond the low and high side of a tile, along each axis.
    #[serde(skip_serializing_if = "is_nothing")]
    pub copied: [[usize; 2]; 3],
    /// The axes along which indices beyond the domain are computed anew: those where all of the group's fields are
    /// periodic and a member reads what another makes.
    pub wraps: [bool; 3],
}

fn is_nothing(copied: &[[usize; 2]; 3]) -> bool {
    *copied == [[0; 2]; 3]
}

/// A stage of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The number of the stage.
    pub stage: usize,
    /// The indices that it computes beyond the low and high side of a tile, along each axis.
    pub beyond: [[usize; 2]; 3],
    /// The rows by which it is behind the block's front.
    pub lag: usize,
    /// The fields and temporaries that it taps and that an earlier member makes.
    pub sources: Vec<(usize, Source)>,
    /// Of each output, in the order of the stage's.
    pub outputs: Vec<Output>,
}

/// Where a member finds what an earlier one has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Source {
    /// In the ring of this number.
    Ring(usize),
    /// At the same index, computed just before: by this member, as this output.
    Passed(usize, usize),
}

/// Where an output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct Output {
    /// The ring for later members.
    pub ring: Option<usize>,
    /// Whether a later member takes it over at the same index.
    pub is_passed: bool,
    /// Whether it is stored in device memory: nothing of the group makes the field or temporary anew, and something
    /// outside reads it.
    pub is_stored: bool,
}

/// Rows of a tile, with what lies beyond its sides, in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ring {
    /// The field or temporary.
    pub name: usize,
    /// The rows that are kept.
    pub rows: usize,
}

/// A field or temporary whose rows are copied from device memory into a ring, some turns before they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Load {
    /// The field or temporary.
    pub name: usize,
    /// The rows of the ring.
    pub rows: usize,
    /// The row, from the block's front, that is the last one read in a turn.
    pub top: isize,
    /// The rows before it that are read in the same turn.
    pub window: usize,
    /// The number of its layout and boundary among those of all loads.
    pub layout: usize,
}

/// Turns by which rows are copied before they are read.
pub const COPIES_AHEAD: usize = 2;

impl Fused {
    /// Returns the indices of a row that is copied, along the three axes.
    pub fn wide(&self) -> [usize; 3] {
        self.across(self.copied)
    }

    /// Returns the values of a row that is copied.
    pub fn values_of_wide(&self) -> usize {
        self.wide().iter().product()
    }

    /// Returns the indices of a row with so many beyond the tile's sides, along the three axes.
    fn across(&self, beyond: [[usize; 2]; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| match axis > self.axis {
            true => self.tile[axis] + beyond[axis][0] + beyond[axis][1],
            false => 1,
        })
    }

    /// Returns the 4-byte words that a block has to know where the places of copied rows lie.
    pub fn words_of_tables(&self) -> usize {
        let layouts = self.loads.iter().map(|load| load.layout + 1).max().unwrap_or(0);
        layouts * self.values_of_wide()
    }

    /// Returns the indices of a row with all that is computed beyond the tile's sides, along the three axes.
    pub fn row(&self) -> [usize; 3] {
        self.across(self.beyond)
    }

    /// Returns the values of a row.
    pub fn values_of_row(&self) -> usize {
        self.row().iter().product()
    }

    /// Returns the values of all rings.
    pub fn values_of_rings(&self) -> usize {
        self.rings.iter().map(|ring| ring.rows).sum::<usize>() * self.values_of_row()
    }

    /// Returns the values that a block keeps in shared memory: those of all rings, of a reduction's argument the rows of a leaf and
    /// one more, and what is copied.
    pub fn values(&self, problem: &Problem) -> usize {
        let stages = problem.program.stages();
        let reduces =
            self.members.iter().any(|member| matches!(stages[member.stage].does, StageKind::Reduce(..)));
        let rows = if reduces { leaf(problem.shape.dimensions())[self.axis] + 1 } else { 0 };
        let copied = self.loads.iter().map(|load| load.rows).sum::<usize>() * self.values_of_wide();
        self.values_of_rings() + rows * self.values_of_row() + copied
    }

    /// Returns the bytes of shared memory of a block.
    pub fn shared_bytes(&self, problem: &Problem) -> usize {
        self.values(problem) * problem.dtype.bytes() + 4 * self.words_of_tables()
    }

    /// Returns the buffers that the group's kernel names at most: those that it reads and writes, the scalars, and the
    /// leaves of a reduction.
    pub fn buffers(&self, problem: &Problem, boxes: &Boxes) -> usize {
        let program = &problem.program;
        let (mut reads, mut others): (Vec<usize>, usize) = (Vec::new(), 1);
        for member in &self.members {
            let stage = &program.stages()[member.stage];
            let is_made = |name: usize| member.sources.iter().any(|&(made, _)| made == name);
            reads.extend(stage.dag.taps().map(|tap| usize::from(tap.field)).filter(|&name| !is_made(name)));
            let outputs = stage.writes.iter().zip(&member.outputs).zip(&boxes.stages[member.stage]);
            for ((&name, output), own) in outputs {
                others += usize::from(output.is_stored);
                // What a stage does not compute it takes along.
                let is_whole = own.clone().map(|own| own.len()) == boxes.buffers[name].extents;
                reads.extend((name < program.fields().len() && !is_whole).then_some(name));
            }
            others += usize::from(matches!(stage.does, StageKind::Reduce(..)));
        }
        reads.sort_unstable();
        reads.dedup();
        reads.len() + others
    }

    /// Returns the share by which a member computes more indices than its tile's, 1 for none.
    pub fn redundancy(&self, member: usize) -> f64 {
        let beyond = self.members[member].beyond;
        (0..3)
            .map(|axis| (self.tile[axis] + beyond[axis][0] + beyond[axis][1]) as f64 / self.tile[axis] as f64)
            .product()
    }

    /// Returns the turns that a block takes: rows, those beyond the tile's ends, and those by which members are behind.
    pub fn turns(&self) -> usize {
        let axis = self.axis;
        let lag = self.members.iter().map(|member| member.lag).max().unwrap_or(0);
        self.tile[axis] + self.beyond[axis][0] + self.beyond[axis][1] + lag
    }
}

/// The stages of each step in groups, with those of several stages as kernels.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Partition {
    /// The reductions of what a step finds that are made at the end of the step before ([`Problem::carried`]). All other numbers of
    /// stages are those of the program so changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<usize>,
    /// The stages of the program that run in parts. All other numbers of stages are those of the program split so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<Split>,
    /// Of each step of the cycle, the groups in the order in which they run.
    pub steps: Vec<Vec<Group>>,
    /// The groups that share a launch with those behind them, none of them in two chains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<Chain>,
}

/// A group of stages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The numbers of the stages, ascending.
    pub stages: Vec<usize>,
    /// How they run as one kernel by rows; `None` for a single stage, and for a reduction in the kernel of the update before it.
    pub fused: Option<Fused>,
    /// How they run as the steps of one pass of a streaming kernel, where they repeat one formula ([`Problem::repeated`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<Configuration>,
}

/// The kernel of a group of several stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupKernel {
    /// One that goes over tiles.
    Tiles(Fused),
    /// A pass of a streaming kernel.
    Pass(Configuration),
}

impl Group {
    /// Returns a group with its kernel.
    pub fn new(stages: Vec<usize>, kernel: Option<GroupKernel>) -> Group {
        let (fused, pass) = match kernel {
            Some(GroupKernel::Tiles(fused)) => (Some(fused), None),
            Some(GroupKernel::Pass(pass)) => (None, Some(pass)),
            None => (None, None),
        };
        Group { stages, fused, pass }
    }

    /// Returns whether the group is an update whose kernel makes the reduction behind it.
    pub fn is_tail(&self) -> bool {
        self.stages.len() > 1 && self.fused.is_none() && self.pass.is_none()
    }
}

impl Partition {
    /// Returns every stage by itself.
    pub fn alone(program: &Program) -> Partition {
        Partition::of(Groups::alone(program), |_| None)
    }

    /// Returns groups with their kernels, of a program whose stages are whole.
    pub fn of(groups: Groups, mut kernel: impl FnMut(&[usize]) -> Option<GroupKernel>) -> Partition {
        let mut group = |stages: Vec<usize>| {
            let kernel = kernel(&stages);
            Group::new(stages, kernel)
        };
        Partition {
            carried: Vec::new(),
            splits: Vec::new(),
            steps: groups.steps.into_iter().map(|step| step.into_iter().map(&mut group).collect()).collect(),
            chains: Vec::new(),
        }
    }

    /// Returns the problem whose stages the groups are of: that of the user, with some stages in parts, and some reductions at the
    /// end of the step before.
    ///
    /// # Errors
    ///
    /// Those of [`Problem::carried`] and [`Program::split`], where the partition is of another program.
    pub fn split_problem(&self, problem: &Problem) -> Result<Problem> {
        problem.carried(&self.carried)?.split(&self.splits)
    }

    /// Returns the results that a group of stages computes, by their places in the user's program.
    pub fn places(&self, program: &Program, stages: &[usize]) -> Vec<Place> {
        let places = program.places(&self.splits);
        let mut own: Vec<Place> =
            stages.iter().filter_map(|&stage| places.get(stage)).flatten().copied().collect();
        own.sort_unstable();
        own
    }

    /// Returns the stages of the groups.
    pub fn groups(&self) -> Groups {
        let stages = |step: &Vec<Group>| step.iter().map(|group| group.stages.clone()).collect();
        Groups { steps: self.steps.iter().map(stages).collect() }
    }

    /// Returns the groups of a chain.
    pub fn of_chain(&self, chain: &Chain) -> &[Group] {
        self.steps.get(chain.step).and_then(|step| step.get(chain.groups.clone())).unwrap_or_default()
    }

    /// Returns the number of the chain that has the group of these stages; `None` if it is launched by itself.
    pub fn chain_of(&self, stages: &[usize]) -> Option<usize> {
        self.chains.iter().position(|chain| self.of_chain(chain).iter().any(|group| group.stages == stages))
    }

    /// Returns each group once, whatever steps have it.
    pub fn all(&self) -> impl Iterator<Item = &Group> {
        self.steps.iter().flatten()
    }
}
