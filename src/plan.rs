//! Plans: how a device will run a problem, decided before anything is allocated, printable and testable anywhere.
//!
//! What a plan says is from the crate `abide-core`, how it is found from `abide-planner`.

pub use abide_core::plan::*;
pub use abide_planner::{
    Alike, Devices, MAX_CPU_DEPTH, MAX_PERSISTENT_RADIUS, candidates, is_too_small_to_choose, notes_probes,
    on_chip_plans, overlapped_plans, papers, persistent_plans, plan, plan_absent, plan_batch, plan_cpu,
    plan_grouped, plan_members, plan_on_chip, plan_overlapped, plan_persistent, plan_persistent_program,
    plan_portable, plan_portable_streaming, plan_ranks, plan_recipe, plan_resident, plan_searched,
    plan_stepwise, plan_streaming, portable_candidates, portable_streaming_plans, resident_plans,
    streaming_plans, with_fewer_blocks,
};

/// Groups of stages, each as one kernel (fusion).
pub mod fused {
    pub use abide_core::plan::fused::*;
    pub use abide_planner::fused::*;
    pub use abide_planner::report::{Report, Row, report};
}

/// Overlapped tiling: each launch advances several steps, and tiles recompute the halo that they share.
pub mod overlapped {
    pub use abide_core::plan::overlapped::*;
    pub use abide_planner::overlapped::*;
}

/// The persistent schedule: the time loop is in the kernel, and a block keeps its tile on the chip for the whole run.
pub mod persistent {
    pub use abide_core::plan::persistent::*;
    pub use abide_planner::persistent::*;
}

/// The persistent schedule of domains that lie on the chip as a whole.
pub mod resident {
    pub use abide_core::plan::resident::*;
    pub use abide_planner::resident::*;
}

/// 2.5-D streaming with temporal blocking: planes of the domain pass through a window once and leave it several steps later.
pub mod streaming {
    pub use abide_core::plan::streaming::carry;

    /// The portable form: for devices without a barrier of all workgroups.
    pub mod portable {
        pub use abide_core::plan::streaming::portable::*;
        pub use abide_planner::streaming::portable::*;
    }

    /// The warp form for CUDA.
    pub mod warp {
        pub use abide_core::plan::streaming::warp::*;
        pub use abide_planner::streaming::warp::*;
    }
}
