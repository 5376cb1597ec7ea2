//! Exchanges between devices whose sessions copy from each other's memory ([`Peer`]).

use std::ops::Range;

use abide_core::backend::{ExportedHandle, Peer, Planes};
use abide_core::slabs::Exchange;
use abide_core::{Error, Result, Session};

use crate::communicator::{CommError, Tag, What};
use crate::endpoint::Endpoint;
use crate::rank::{Rank, RankFailure};

/// Agrees with all ranks on whether their sessions copy from each other's memory: they do where all can, within a process or
/// between those of one machine.
pub(crate) fn agree(
    session: &mut dyn Session,
    endpoint: &mut Endpoint,
    neighbours: &[usize],
) -> Result<bool, RankFailure> {
    let shares = endpoint.communicator.shares_memory();
    let offer = match session.peer() {
        Some(_) if shares => Some(Vec::new()),
        peer => peer.and_then(|peer| peer.offer()),
    };
    let own = offer.map_or_else(Vec::new, |offer| [&[1], &offer[..]].concat());
    let all = gathered(endpoint, &own)?;
    if all.iter().any(Vec::is_empty) {
        return Ok(false);
    }
    if shares {
        return Ok(true);
    }
    let accepts =
        session.peer().is_some_and(|peer| neighbours.iter().all(|&rank| peer.accepts(&all[rank][1..])));
    let all = gathered(endpoint, &[u8::from(accepts)])?;
    Ok(all.iter().all(|other| other == &[1]))
}

/// Returns what each rank gives before the first step.
pub(crate) fn gathered(endpoint: &mut Endpoint, own: &[u8]) -> Result<Vec<Vec<u8>>, RankFailure> {
    let all = endpoint.gather(own);
    all.map_err(|broken| endpoint.stopped("the start", "all ranks", broken))
}

impl Rank {
    /// Exports the outermost own planes to the neighbours, copies theirs into the halo, and has the following steps
    /// wait until all planes are copied. The host waits only for messages.
    pub(crate) fn exchange_loans(&mut self, exchanges: &[Exchange]) -> Result<(), RankFailure> {
        for exchange in exchanges {
            let lent = (exchange.fields.iter())
                .map(|edge| {
                    let planes = self.planes(edge.field, edge.sent.clone());
                    self.peer()?.export(planes)
                })
                .collect::<Result<Vec<ExportedHandle>>>()?;
            let tag = self.tag(What::Planes(exchange.side.other()));
            let sent = self.endpoint.lock().communicator.export(exchange.neighbour, tag, lent);
            sent.map_err(|broken| self.stopped_at(exchange, "to", |edge| &edge.sent, broken))?;
        }
        for exchange in exchanges {
            let broken = |own: &Rank, broken| own.stopped_at(exchange, "from", |edge| &edge.received, broken);
            let lent = self.borrow(exchange, What::Planes(exchange.side));
            let lent = lent.map_err(|own| broken(self, own))?;
            if lent.len() != exchange.fields.len() {
                return Err(broken(self, CommError::Failed("something else was lent".to_owned())));
            }
            for (edge, handle) in exchange.fields.iter().zip(lent) {
                let planes = self.planes(edge.field, edge.received.clone());
                self.peer()?.take(planes, handle)?;
            }
            let point = self.peer()?.taken()?;
            // The receiver's side is the one at which it exported.
            let tag = self.tag(What::Taken(exchange.side.other()));
            let sent = self.endpoint.lock().communicator.export(exchange.neighbour, tag, vec![point]);
            sent.map_err(|own| broken(self, own))?;
        }
        for exchange in exchanges {
            let points = self.borrow(exchange, What::Taken(exchange.side));
            let points = points.map_err(|broken| {
                let stopped = self.stopped_at(exchange, "taken by", |edge| &edge.sent, broken);
                RankFailure { wait: stopped.wait + u64::from(stopped.wait > 0), ..stopped }
            })?;
            points.into_iter().try_for_each(|point| self.peer()?.wait_for(point))?;
        }
        Ok(())
    }

    fn borrow(&self, exchange: &Exchange, what: What) -> Result<Vec<ExportedHandle>, CommError> {
        let tag = self.tag(what);
        self.endpoint.lock().communicator.borrow(exchange.neighbour, tag)
    }

    fn tag(&self, what: What) -> Tag {
        Tag { round: self.endpoint.lock().rounds, what }
    }

    pub(crate) fn planes(&self, field: usize, planes: Range<usize>) -> Planes {
        let [low, high] = self.window(field, planes);
        Planes { field, low, high }
    }

    fn peer(&mut self) -> Result<&mut dyn Peer> {
        let summary = self.session.plan().summary();
        self.session.peer().ok_or_else(|| {
            Error::unsupported(summary, "its session exports no planes", "report this as a fault of Abide")
        })
    }
}
