//! Exchanges by puts, or over a network of the ranks' devices ([`Network`]): they are work of the devices, in order
//! with their steps. The communicator only checks whether all ranks are still there.

use std::time::Instant;

use abide_core::backend::{CancelCheck, Network};
use abide_core::plan::Exchanging;
use abide_core::slabs::{Exchange, Side};
use abide_core::{Error, Result, Session};

use crate::endpoint::Endpoint;
use crate::handles::gathered;
use crate::pause::Pause;
use crate::rank::{Rank, RankFailure};

/// Joins all ranks' devices, to exchange in one of the ways that are their own work; returns whether all of them are in it.
pub(crate) fn join(
    session: &mut dyn Session,
    endpoint: &mut Endpoint,
    way: Exchanging,
) -> Result<bool, RankFailure> {
    let rank = endpoint.communicator.rank();
    let own = session.peer().and_then(|peer| peer.network()?.key(way, rank == 0));
    let keys = gathered(endpoint, &own.unwrap_or_default())?;
    if keys.iter().any(Vec::is_empty) {
        return Ok(false);
    }
    waiting(session, endpoint, "the start", "joining a network", |network, cancel_check| {
        network.join(way, &keys, rank, cancel_check)
    })
}

/// Has a session's network do something, for as long as all ranks are there and the deadline allows. `when` and `what` say it
/// in errors.
fn waiting<R>(
    session: &mut dyn Session,
    endpoint: &mut Endpoint,
    when: &str,
    what: &str,
    ask: impl FnOnce(&mut dyn Network, CancelCheck<'_>) -> Result<R>,
) -> Result<R, RankFailure> {
    let summary = session.plan().summary();
    let Some(network) = session.peer().and_then(|peer| peer.network()) else {
        let change = "report this as a fault of Abide";
        return Err(Error::unsupported(summary, "its session has no network", change).into());
    };
    let (since, mut pause, mut stopped) = (Instant::now(), Pause::short(), None);
    let mut cancel_check = || {
        pause.pause();
        let Err(broken) = endpoint.communicator.check(since) else { return Ok(()) };
        let found = endpoint.stopped(when, what, broken);
        let error = found.error.clone();
        stopped = Some(found);
        Err(error)
    };
    let answer = ask(network, &mut cancel_check);
    answer.map_err(|error| stopped.unwrap_or_else(|| error.into()))
}

impl Rank {
    /// Enqueues an exchange on the device, after all earlier work.
    pub(crate) fn swap(&mut self, exchanges: &[Exchange]) -> Result<(), RankFailure> {
        // Two ranks of a ring are neighbours at both sides. Only the order distinguishes the planes that go from one to
        // the other: planes at the sender's low side come first.
        let at = |side: Side| exchanges.iter().filter(move |exchange| exchange.side == side);
        let mut sent = Vec::new();
        for exchange in at(Side::Low).chain(at(Side::High)) {
            let planes = exchange.fields.iter().map(|edge| self.planes(edge.field, edge.sent.clone()));
            sent.extend(planes.map(|planes| (exchange.neighbour, planes)));
        }
        let mut received = Vec::new();
        for exchange in at(Side::High).chain(at(Side::Low)) {
            let planes = exchange.fields.iter().map(|edge| self.planes(edge.field, edge.received.clone()));
            received.extend(planes.map(|planes| (exchange.neighbour, planes)));
        }
        self.on_network("planes to and from its neighbours", |network, cancel_check| {
            network.swap(&sent, &received, cancel_check)
        })
    }

    /// Puts a communicator with the neighbours behind all that the device was asked before.
    pub(crate) fn meet(&mut self) -> Result<(), RankFailure> {
        self.on_network("its neighbours' steps", |network, _| network.meet())
    }

    /// Waits until the device has done all exchanges and steps that it was asked for.
    pub(crate) fn flush(&mut self) -> Result<(), RankFailure> {
        self.on_network("planes to and from its neighbours, or steps", |network, cancel_check| {
            network.flush(cancel_check)
        })
    }

    fn on_network<R>(
        &mut self,
        what: &str,
        ask: impl FnOnce(&mut dyn Network, CancelCheck<'_>) -> Result<R>,
    ) -> Result<R, RankFailure> {
        let mut endpoint = self.endpoint.lock();
        let when = format!("exchange {}", endpoint.rounds);
        waiting(self.session.as_mut(), &mut endpoint, &when, what, ask)
    }
}
