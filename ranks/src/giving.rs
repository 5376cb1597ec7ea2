//! Slabs whose passes give neighbours what these read of them: then an exchange is a communicator, after each pass.

use abide_core::plan::Exchanging;
use abide_core::slabs::{Side, Slabs};

use crate::handles::gathered;
use crate::rank::{Rank, RankFailure};

impl Rank {
    /// Agrees with all ranks on whether steps themselves store what neighbours read: they do where all can.
    pub(crate) fn agree_on_giving(&mut self, slabs: &Slabs) -> Result<bool, RankFailure> {
        if self.exchange != Exchanging::PeerPuts {
            return Ok(false);
        }
        let rank = self.endpoint.lock().communicator.rank();
        let beside = [Side::Low, Side::High].map(|side| {
            let to = self.exchanges.iter().find(|exchange| exchange.side == side)?.neighbour;
            let there = slabs.exchanges(to);
            let back = there.iter().find(|other| other.side == side.other() && other.neighbour == rank)?;
            // Fields are given as deep as the halo, whether all of it is read or not.
            let begin = back.fields.iter().map(|edge| match back.side {
                Side::Low => 0,
                Side::High => edge.received.start,
            });
            Some((to, begin.min()?))
        });
        let network = self.session.peer().and_then(|peer| peer.network());
        let gives = network.map_or(Ok(false), |network| network.give(beside))?;
        let all = gathered(&mut self.endpoint.lock(), &[u8::from(gives)])?;
        let all_give = all.iter().all(|other| other == &[1]);
        if gives
            && !all_give
            && let Some(network) = self.session.peer().and_then(|peer| peer.network())
        {
            network.give([None; 2])?;
        }
        Ok(all_give)
    }

    /// Returns how many of some steps are done at once: those of one pass where halos do not last for more. Passes are as deep as
    /// an exchange, or half as deep, a quarter, … one step.
    pub(crate) fn pass(&self, steps: u64) -> u64 {
        if !self.keeps_to_own {
            return steps;
        }
        let passes = std::iter::successors(Some(self.depth), |depth| Some(depth / 2));
        passes.take_while(|&depth| depth > 0).find(|&depth| depth <= steps).unwrap_or(steps)
    }

    /// Returns for how many steps halos are deep enough after so many.
    pub(crate) fn after(&self, done: u64) -> u64 {
        match self.keeps_to_own {
            true if done > 0 => 0,
            _ => self.left - done,
        }
    }
}
