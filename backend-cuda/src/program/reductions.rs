//! Reductions of a slab, whose leaves are joined with those of all other slabs.
//!
//! The kernels make the leaves. The host reads those of the slab's own planes, gathers, finishes the tree, and sets the
//! scalar before what follows is launched; so each step is launched kernel by kernel.

use abide_core::communicator::Endpoint;
use abide_core::program::{Reduction, StageKind};
use abide_core::reduction::leaf;
use abide_core::slabs::Share;
use abide_core::{Error, Real, Result, with_array};
use abide_shaders::cuda::KernelLaunch;

use super::ProgramSession;

/// The slab's share of each stage's reduction, and the way to all other slabs.
pub(super) struct SlabReductions {
    shares: Vec<Option<Share>>,
    endpoint: Endpoint,
}

impl SlabReductions {
    pub fn new(
        session: &ProgramSession,
        shares: Vec<Option<Share>>,
        endpoint: Endpoint,
    ) -> Result<SlabReductions> {
        let refuse = |reason: &str, change: &str| {
            let what = format!("a program with reductions on several devices ({})", session.plan.summary());
            Err(Error::unsupported(what, reason, change))
        };
        if session.persistent.is_some() {
            return refuse(
                "a persistent kernel joins its reductions itself",
                "leave --execution persistent out",
            );
        }
        // A stage that fusion has split has other numbers.
        if session.problem.program.stages().len() != shares.len() {
            return refuse("its loops have been split", "leave --fuse search out");
        }
        Ok(SlabReductions { shares, endpoint })
    }
}

impl ProgramSession {
    /// Does steps whose reductions go over all slabs.
    pub(super) fn advance_together(&mut self, together: &mut SlabReductions, steps: u64) -> Result<f64> {
        let (end, may_end) = (self.steps + steps, self.problem.until.is_some());
        self.timer.start(&self.memory.stream)?;
        while self.steps < end && !(may_end && self.drain()?.has_ended) {
            let place = self.storage.place(self.steps);
            self.launch_together(together, place)?;
            self.launch_end(self.steps)?;
            self.steps += 1;
        }
        let seconds = self.timer.stop(&self.memory.stream)?;
        self.neighbours.done();
        self.remaining = end - self.steps;
        Ok(seconds)
    }

    /// Launches what stands at a place of the storage.
    pub(super) fn launch_together(&mut self, together: &mut SlabReductions, place: usize) -> Result<()> {
        for launch in &self.storage.steps[place].launches.clone() {
            self.launch_group(launch, false)?;
            let reduced = launch.stages.iter().find_map(|&stage| {
                let does = &self.problem.program.stages()[stage].does;
                let StageKind::Reduce(reduction, _, scalar) = *does else { return None };
                Some((stage, reduction, scalar))
            });
            let Some((stage, reduction, scalar)) = reduced else { continue };
            let kernels = self.kernels.of(launch).map_or(&[][..], |kernels| &kernels.launches);
            let (Some(Some(share)), Some(blocks)) =
                (together.shares.get(stage), kernels.iter().find_map(KernelLaunch::joined_leaves))
            else {
                return Err(Error::device("cuda", "a reduction over slabs", "a stage has no share of it"));
            };
            let leaves = self.memory.leaves(blocks.iter().product())?;
            let leaf = leaf(self.problem.shape.dimensions());
            let value = with_array!(&leaves, leaves => {
                let own = own(share, reduction, leaf, blocks, leaves);
                finish(reduction, share, &together.endpoint, own)
            })?;
            self.memory.set_scalar(scalar, value)?;
        }
        Ok(())
    }
}

/// Returns the leaves of the slab's own planes among all that its kernel makes, in the order of memory; leaves that the
/// kernel does not have are neutral.
fn own<T: Real>(
    share: &Share,
    reduction: Reduction,
    leaf: [usize; 3],
    blocks: [usize; 3],
    leaves: &[T],
) -> Vec<T> {
    let (count, mut first) = (share.count(), [0; 3]);
    // Slabs with reductions begin at a leaf of the whole domain.
    first[share.axis] = share.begin / leaf[share.axis];
    let value = |number: usize| {
        let place = [number / (count[1] * count[2]), number / count[2] % count[1], number % count[2]];
        let [z, y, x] = [0, 1, 2].map(|axis| first[axis] + place[axis]);
        let is_made = z < blocks[0] && y < blocks[1] && x < blocks[2];
        let made = is_made.then(|| leaves.get((z * blocks[1] + y) * blocks[2] + x)).flatten();
        made.copied().unwrap_or_else(|| reduction.neutral())
    };
    (0..count.iter().product()).map(value).collect()
}

/// Gathers what the leaves are joined to, and returns the value of the tree.
fn finish<T: Real>(
    reduction: Reduction,
    share: &Share,
    endpoint: &Endpoint,
    mut leaves: Vec<T>,
) -> Result<f64> {
    let given = T::into_array(share.join(reduction, &mut leaves));
    Ok(share.finish::<T>(reduction, &endpoint.all_gather(&given, &share.values())?).to_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two slabs of a line, each with a halo of a leaf below: the leaves that they have of their own are all.
    #[test]
    fn own_leaves_are_those_of_the_whole_domain() {
        let share = |rank, begin| Share { rank, axis: 1, begin, leaves: [1, 5, 2], layers: vec![0..3, 3..5] };
        let made = |rows: std::ops::Range<usize>| -> Vec<f64> {
            rows.flat_map(|row| [10.0 * row as f64, 10.0 * row as f64 + 1.0]).collect()
        };
        let leaf = [1, 8, 32];
        let low = own(&share(0, 0), Reduction::Sum, leaf, [1, 3, 2], &made(0..3));
        // The slab begins with a layer of its neighbour's, and its region ends in the first of its own.
        let high = own(&share(1, 8), Reduction::Sum, leaf, [1, 2, 2], &made(2..4));
        assert_eq!(low, made(0..3));
        assert_eq!(high[..2], made(3..4)[..]);
        assert!(high[2..].iter().all(|value| value.to_bits() == (-0.0_f64).to_bits()), "{high:?}");
    }
}
