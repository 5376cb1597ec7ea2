//! The kernels between the turns of a loop that ends by a condition.

use std::collections::BTreeMap;

use abide_core::Problem;
use abide_core::program::Until;

use super::end::{holds, value_of};
use super::{KernelLaunch, Part};
use crate::text::Text;

const TURNS: &str = include_str!("../../../kernels/cuda/program/turns.cuh");

/// The kernels of a program's loops.
#[derive(Debug, Clone)]
pub struct LoopKernels {
    /// What goes before each turn of a loop, by the loop's number among the program's phases: it counts the turn, or stops all
    /// launches that follow.
    pub turns: BTreeMap<usize, KernelLaunch>,
    /// What comes after the last launch of a loop: launches go on.
    pub leave: KernelLaunch,
}

/// Returns the conditions that end loops, by the loops' numbers among the program's phases.
fn conditions(problem: &Problem) -> impl Iterator<Item = (usize, Until)> {
    let phases = problem.program.phases().iter().enumerate();
    phases.filter_map(|(number, phase)| Some((number, phase.repeat?.until?)))
}

impl LoopKernels {
    /// Returns what the kernels of a problem will be; `None` if no condition ends a loop.
    pub(super) fn of(problem: &Problem) -> Option<LoopKernels> {
        let kernel = |entry: String| KernelLaunch {
            entry,
            blocks: 1,
            threads: 1,
            shared_bytes: 0,
            carries: false,
            part: Part::End,
        };
        let turns: BTreeMap<usize, KernelLaunch> =
            conditions(problem).map(|(number, _)| (number, kernel(format!("begin_turn_{number}")))).collect();
        (!turns.is_empty()).then(|| LoopKernels { turns, leave: kernel("leave_loop_kernel".to_owned()) })
    }

    /// Writes the kernels and what they do.
    pub(super) fn write(&self, text: &mut Text, problem: &Problem) {
        text.file(TURNS);
        for (number, until) in conditions(problem) {
            text.blank();
            text.push(format!("struct Loop{number} {{"));
            text.push("__device__ static __forceinline__ bool is_over(const Arguments& arguments)");
            text.push("{");
            text.push(value_of(problem, until.scalar));
            text.push(format!("return {};", holds(until)));
            text.push("}");
            text.push("};");
        }
        let calls = self
            .turns
            .iter()
            .map(|(number, kernel)| (kernel, format!("begin_turn<Loop{number}>(arguments);")));
        let leave = (&self.leave, "leave_loop(arguments);".to_owned());
        for (KernelLaunch { entry, threads, .. }, call) in calls.chain([leave]) {
            text.blank();
            text.push(format!(
                "extern \"C\" __global__ void __launch_bounds__({threads}) \
                 {entry}(const __grid_constant__ Arguments arguments)"
            ));
            text.push("{");
            text.push(call);
            text.push("}");
        }
    }
}
