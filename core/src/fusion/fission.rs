//! Fission: a stage whose results share no operation, taken apart before loops are fused (Wahib and Maruyama,
//! HPDC'15).

use super::set::Set;
use crate::expr::Node;
use crate::program::Stage;

/// Returns the results of a stage, by their places in the formula's outputs, in parts that can be loops of their own.
///
/// Two results stay together where their formulas share an operation, which each part would compute again, or
/// where one is written over what the other reads, which was there before the stage. Taps, constants, scalars and
/// coordinates may be shared: parts that read the same array may be fused again.
pub(super) fn parts(stage: &Stage) -> Vec<Vec<usize>> {
    let count = stage.dag.outputs.len();
    let needs: Vec<Needs> = (0..count).map(|output| Needs::of(stage, output)).collect();
    let mut part: Vec<usize> = (0..count).collect();
    for later in 0..count {
        for earlier in 0..later {
            if needs[later].binds(&needs[earlier]) {
                let (from, to) = (part[later], part[earlier]);
                part.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
            }
        }
    }
    let all = |number: usize| (0..count).filter(|&output| part[output] == number).collect::<Vec<_>>();
    (0..count).map(all).filter(|outputs| !outputs.is_empty()).collect()
}

/// What a result needs.
struct Needs {
    operations: Vec<bool>,
    reads: Set,
    writes: usize,
}

impl Needs {
    fn of(stage: &Stage, output: usize) -> Needs {
        let nodes = &stage.dag.nodes;
        let mut needed = vec![false; nodes.len()];
        needed[stage.dag.outputs[output] as usize] = true;
        let mut reads = Set::default();
        for id in (0..nodes.len()).rev() {
            if needed[id] {
                nodes[id].operands().for_each(|operand| needed[operand as usize] = true);
                if let Node::Tap(tap) = nodes[id] {
                    reads.insert(usize::from(tap.field));
                }
            }
        }
        let operations =
            needed.iter().zip(nodes).map(|(&needed, node)| needed && node.operands().next().is_some());
        Needs { operations: operations.collect(), reads, writes: stage.writes[output] }
    }

    fn binds(&self, other: &Needs) -> bool {
        self.reads.has(other.writes)
            || other.reads.has(self.writes)
            || self.operations.iter().zip(&other.operations).any(|(own, other)| *own && *other)
    }
}
