//! The options that say how a problem is run.

use abide::{
    Builder, CachePolicy, Choice, Depth, Exchanging, Execution, Fuse, Jam, LoopRows, Lowering, Options,
    Placement, Team, Tune,
};
use clap::Args;

use super::headings::{DEVICES, KERNELS, PLANNING};

/// How it is run.
#[derive(Args)]
pub struct RunOptions {
    /// The schedule: auto, stepwise (a launch per stage), overlapped (overlapped tiling), streaming (2.5-D
    /// temporal blocking) or persistent (tiles stay on the chip)
    #[arg(long, help_heading = PLANNING, default_value = "auto")]
    pub execution: Execution,

    /// Where a persistent run keeps its cells from step to step: auto, none, shared, registers or mixed
    #[arg(long, help_heading = PLANNING, default_value = "auto")]
    pub cache: CachePolicy,

    /// Temporal depth, the steps per launch of an overlapped or a streaming run: auto or a number. With several devices, the
    /// steps between two exchanges
    #[arg(long, help_heading = PLANNING, default_value = "auto")]
    pub depth: Depth,

    /// Whether plans are timed on the device first, and the fastest is kept and runs: quick takes some
    /// seconds, full a minute or more, both only until it is kept; kept uses what is kept, off does not
    /// [default: kept]
    #[arg(long, help_heading = PLANNING, default_value = "kept", hide_default_value = true)]
    pub tune: Tune,

    /// How the stages of a program become kernels: auto, off (each by itself), greedy or search
    #[arg(long, help_heading = PLANNING, default_value = "auto")]
    pub fuse: Fuse,

    /// How loops in formulas become kernels: auto, straight (each turn is written out), loops, which launches per stage of
    /// a GPU keep, jammed (several points of a thread share each pass through the loops, on CUDA), or team (tree sums,
    /// and loops that only store, which several threads share for each point, on CUDA); no bit depends on it
    #[arg(long, help_heading = KERNELS, default_value = "auto")]
    pub lowering: Lowering,

    /// With `--lowering jammed`, the points of a thread that share each pass through the loops: auto (as many as
    /// registers allow) or a number
    #[arg(long, help_heading = KERNELS, default_value = "auto")]
    pub jam: Jam,

    /// With `--lowering team`, the threads that share the loops of a point: auto (as many as tree sums have lanes, else 32) or
    /// a power of two up to 32
    #[arg(long, help_heading = KERNELS, default_value = "auto")]
    pub team: Team,

    /// With `--lowering loops` or `jammed`, the turns of a loop that share each pass through its inner loops, as rows
    /// of a double sum: auto (one after another as yet) or a number up to 16; no bit depends on it
    #[arg(long, help_heading = KERNELS, default_value = "auto")]
    pub rows: LoopRows,

    /// With `--lowering loops`, `jammed` or `team`, where tables lie on CUDA: auto, memory, constant or shared; no bit depends on it
    #[arg(long, help_heading = KERNELS, default_value = "auto")]
    pub tables: Placement,

    /// How several devices exchange planes: auto, stores (a kernel of each stores into its neighbours' memory), copies (from
    /// device to device on one machine), network (over the devices' own, NCCL between CUDA's, on one machine or several) or
    /// messages (values by way of the hosts); no bit depends on it
    #[arg(long, help_heading = DEVICES, default_value = "auto")]
    pub exchange: Exchanging,

    /// On the CPU, keep each thread on a core of its own; worth it on a machine that does little else
    #[arg(long, help_heading = DEVICES)]
    pub pin: bool,
}

impl RunOptions {
    /// Returns the options of a plan.
    pub fn options(&self) -> Options {
        Options {
            execution: self.execution,
            cache: self.cache,
            depth: self.depth,
            tune: self.tune,
            fuse: self.fuse,
            lowering: self.lowering,
            jam: self.jam,
            team: self.team,
            rows: self.rows,
            tables: self.tables,
            exchange: self.exchange,
            pin: self.pin,
            slab: false,
        }
    }

    /// Adds the options of the run to a description.
    pub fn apply(&self, builder: Builder, backend: Choice) -> Builder {
        let builder = builder.backend(backend).execution(self.execution).cache(self.cache);
        let builder =
            builder.depth(self.depth).tune(self.tune).fuse(self.fuse).exchange(self.exchange).pin(self.pin);
        builder.lowering(self.lowering).jam(self.jam).team(self.team).rows(self.rows).tables(self.tables)
    }
}
