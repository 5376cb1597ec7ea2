//! The options that a user may set for a plan.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::named::named;

named! {
    /// The schedule: where the time loop runs, and what stays on the chip between steps.
    Execution "execution" {
        /// The execution that is estimated to be fastest.
        #[default]
        Auto = "auto",
        /// On the host: a launch per stage and step. The baseline.
        Stepwise = "stepwise",
        /// In the kernel, several steps per launch: tiles overlap, and the halo is recomputed (overlapped
        /// tiling).
        Overlapped = "overlapped",
        /// In the kernel, several steps per launch: planes of the domain pass through a window (2.5-D
        /// temporal blocking).
        Streaming = "streaming",
        /// In the kernel, for the whole run: tiles stay on the chip (PERKS).
        Persistent = "persistent",
    }
}

named! {
    /// Where a persistent kernel keeps its cells from step to step.
    CachePolicy "cache policy" {
        /// The policy that keeps the most.
        #[default]
        Auto = "auto",
        /// Nowhere: every cell goes through device memory in each step.
        None = "none",
        /// In shared memory.
        Shared = "shared",
        /// In registers.
        Registers = "registers",
        /// In both shared memory and registers.
        Mixed = "mixed",
    }
}

named! {
    /// Whether plans are timed on the device before one of them runs.
    Tune "tuning" {
        /// No, and no earlier tuning is used either: the planner's own choice.
        Off = "off",
        /// No, but the plan that an earlier tuning of the same question found fastest is used.
        #[default]
        Kept = "kept",
        /// A few plans that differ much, for some seconds, unless the answer is kept.
        Quick = "quick",
        /// Many plans, for a minute at most, unless the answer of as thorough a tuning is kept.
        Full = "full",
    }
}

named! {
    /// How the stages of a program that is not plain become kernels.
    Fuse "fusion" {
        /// The device's default: a CPU runs stages in one sweep over rows, wgpu launches each by itself. CUDA makes reductions in
        /// the kernel of the update before them, groups stages where that is estimated to save 10 % of the time, and
        /// gives stages of few values that follow each other one launch.
        #[default]
        Auto = "auto",
        /// Each stage by itself.
        Off = "off",
        /// Groups are united two at a time, as long as that is estimated to save time.
        Greedy = "greedy",
        /// A genetic search over all partitions of the stages.
        Search = "search",
    }
}

named! {
    /// How the loops of a formula become text; no bit depends on it.
    Lowering "lowering" {
        /// Straight, unless that would be more text than compilers take in some seconds or, in launches per stage of a
        /// device whose blocks share tables, than its caches of instructions hold: then loops.
        #[default]
        Auto = "auto",
        /// Each turn is written out.
        Straight = "straight",
        /// Loops stay loops: in launches per stage of a GPU.
        Loops = "loops",
        /// Loops over which several points of a thread share a pass, so that tables are read once for all of them: in
        /// launches per stage of CUDA.
        Jammed = "jammed",
        /// Loops whose turns a team of threads shares for each point, where the formula says that it may: tree sums, and loops
        /// that only store. In launches per stage of CUDA.
        Team = "team",
    }
}

named! {
    /// Where the constant tables that loops read lie; no bit depends on it.
    Placement "placement of tables" {
        /// In shared memory as far as there is room, which was the fastest place of each table measured; in device memory
        /// where blocks have no room to share.
        #[default]
        Auto = "auto",
        /// In device memory, read through the first-level cache.
        Memory = "memory",
        /// In constant memory.
        Constant = "constant",
        /// In shared memory, where each block loads them once: in launches per stage of CUDA, whose blocks then go over
        /// tiles one after another.
        Shared = "shared",
    }
}

named! {
    /// How devices hand each other the planes of their halos; no bit depends on it.
    Exchanging "way to exchange" {
        /// Peer-to-peer puts where all devices can make them, else copies, else over their network, else messages.
        #[default]
        Auto = "auto",
        /// By a kernel of each device, which stores into its neighbours' memory: different devices of one process that links
        /// connect.
        PeerPuts = "stores",
        /// From device to device, which are of one machine.
        Copies = "copies",
        /// Over the devices' own network, on one machine or several: NCCL between CUDA's.
        Network = "network",
        /// As values, by way of the hosts.
        Messages = "messages",
    }
}

impl Exchanging {
    /// Returns whether exchanges are work of the devices alone, which hosts neither see nor take part in.
    pub fn is_of_devices(self) -> bool {
        matches!(self, Exchanging::PeerPuts | Exchanging::Network)
    }
}

impl Lowering {
    /// Returns whether loops are asked for.
    pub fn keeps_loops(self) -> bool {
        matches!(self, Lowering::Loops | Lowering::Jammed | Lowering::Team)
    }
}

impl Tune {
    /// Returns whether plans are timed.
    pub fn measures(self) -> bool {
        matches!(self, Tune::Quick | Tune::Full)
    }
}

macro_rules! counted {
    ($(#[$doc:meta])* $name:ident $kind:literal $example:literal {
        $(#[$auto_doc:meta])* Auto, $(#[$count_doc:meta])* $count:ident
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $(#[$auto_doc])*
            #[default]
            Auto,
            $(#[$count_doc])*
            $count(u32),
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                match (text, text.parse()) {
                    ("auto", _) => Ok($name::Auto),
                    (_, Ok(count)) if count > 0 => Ok($name::$count(count)),
                    _ => Err(Error::invalid(
                        format!(concat!($kind, " `{}`"), text),
                        "neither `auto` nor a whole number above 0",
                        concat!("write --", $kind, " auto or --", $kind, " ", $example),
                    )),
                }
            }
        }
    };
}

counted! {
    /// Temporal depth: steps per launch of an overlapped or a streaming kernel; on a CPU also steps per pass of a
    /// persistent run. Other kernels advance one step at a time.
    Depth "depth" "1" {
        /// The depth that the planner finds best.
        Auto,
        /// This many steps.
        Steps
    }
}

counted! {
    /// The points of a thread that share a pass over jammed loops.
    Jam "jam" "4" {
        /// As many as registers allow.
        Auto,
        /// This many.
        Points
    }
}

counted! {
    /// The threads that share the loops of a point.
    Team "team" "8" {
        /// As many as the tree sums have lanes; a warp where there are none.
        Auto,
        /// This many.
        Threads
    }
}

counted! {
    /// The turns of a loop that share a pass over its inner loops, as the rows of a double sum; no bit depends on it.
    LoopRows "rows" "4" {
        /// Four where blocks share tables and points share no pass: of 1, 2, 4 and 8 the fastest measured.
        Auto,
        /// This many, and those that are left; 1 for one after another.
        Turns
    }
}

impl Depth {
    /// Returns the depths to try: `many`, unless one is asked for.
    pub fn or(self, many: &[usize]) -> Vec<usize> {
        match self {
            Depth::Auto => many.to_vec(),
            Depth::Steps(steps) => vec![steps as usize],
        }
    }
}

/// A user's options for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The schedule.
    pub execution: Execution,
    /// Where a persistent kernel keeps its cells.
    pub cache: CachePolicy,
    /// Temporal depth.
    pub depth: Depth,
    /// Whether plans are timed on the device first, if there are several.
    pub tune: Tune,
    /// How the stages of a program become kernels; a plain one's do not.
    pub fuse: Fuse,
    /// How the loops of formulas become text.
    pub lowering: Lowering,
    /// Points of a thread that share a pass over jammed loops.
    pub jam: Jam,
    /// Threads that share the loops of a point.
    pub team: Team,
    /// Turns of a kept loop that share a pass over its inner loops.
    pub rows: LoopRows,
    /// Where the tables of loops lie.
    pub tables: Placement,
    /// How several devices exchange planes.
    pub exchange: Exchanging,
    /// Whether each of a CPU's threads stays on a core of its own. No other device has threads to pin.
    pub pin: bool,
    /// Whether the problem is a slab of a larger one, the reductions of which are joined outside of its kernels.
    pub slab: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_refused() {
        for &policy in CachePolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "l3".parse::<CachePolicy>().unwrap_err().to_string();
        assert_eq!(error, "no cache policy is named `l3`; known: auto, none, shared, registers, mixed");
        assert_eq!("4".parse(), Ok(Depth::Steps(4)));
        assert!("0".parse::<Depth>().is_err());
        assert!("-3".parse::<Depth>().is_err());
        assert_eq!(Options::default().tune, Tune::Kept);
        assert_eq!("8".parse(), Ok(Jam::Points(8)));
        assert!("0".parse::<Jam>().is_err());
        assert_eq!("8".parse(), Ok(Team::Threads(8)));
        assert_eq!("8".parse(), Ok(LoopRows::Turns(8)));
        let error = "many".parse::<LoopRows>().unwrap_err().to_string();
        assert!(error.contains("rows `many`") && error.contains("write --rows auto or --rows 4"), "{error}");
        let error = "fast".parse::<Tune>().unwrap_err().to_string();
        assert_eq!(error, "no tuning is named `fast`; known: off, kept, quick, full");
    }
}
