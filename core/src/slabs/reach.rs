//! How far steps read along an axis.

use crate::program::Program;

/// Returns for each field how many planes beyond a part of the domain must be valid before `steps` steps, so that all
/// of the part is valid after them: the sum of the radii along the axis of all stages that depend on each other. In a
/// program of several steps a cycle, the result holds for any first step.
pub fn reach(program: &Program, axis: usize, steps: u32) -> Vec<usize> {
    let fields = program.fields().len();
    let all = fields + program.temporaries().len();
    let cycle = program.steps().len().max(1);
    let mut most = vec![0; fields];
    for last in 0..cycle {
        let mut needed = vec![0; all];
        for step in 0..steps as usize {
            // Backwards, from the last step to the first.
            let step = &program.steps()[(last + cycle - step % cycle) % cycle];
            for stage in program.stages()[step.clone()].iter().rev() {
                let beyond = stage.writes.iter().map(|&target| needed[target]).max().unwrap_or(0);
                for (own, radius) in needed.iter_mut().zip(&stage.footprint.field_radius) {
                    if let Some(radius) = radius {
                        *own = (*own).max(beyond + radius[axis]);
                    }
                }
            }
            // Each step makes its temporaries anew.
            needed[fields..].fill(0);
        }
        for (most, needed) in most.iter_mut().zip(&needed) {
            *most = (*most).max(*needed);
        }
    }
    most
}
