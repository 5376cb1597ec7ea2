//! Exchanges between devices whose sessions copy from each other's memory ([`Peer`]).

use std::ops::Range;

use abide_core::backend::{Peer, Planes};
use abide_core::communicator::{CommError, ExportedHandle, RankFailure, What};
use abide_core::slabs::Exchange;
use abide_core::{Error, Result, Session};

use super::Halo;

impl Halo {
    /// Agrees with all ranks on whether their sessions copy from each other's memory: they do where all can, within a process or
    /// between those of one machine.
    pub(super) fn agree_on_copies(&self, session: &mut dyn Session) -> Result<bool, RankFailure> {
        let shares = self.endpoint.shares_memory();
        let offer = match session.peer() {
            Some(_) if shares => Some(Vec::new()),
            peer => peer.and_then(|peer| peer.offer()),
        };
        let own = offer.map_or_else(Vec::new, |offer| [&[1], &offer[..]].concat());
        let all = self.all_gather(&own)?;
        if all.iter().any(Vec::is_empty) {
            return Ok(false);
        }
        if shares {
            return Ok(true);
        }
        let mut neighbours = self.exchanges.iter().map(|exchange| exchange.neighbour);
        let accepts = session.peer().is_some_and(|peer| neighbours.all(|rank| peer.accepts(&all[rank][1..])));
        let all = self.all_gather(&[u8::from(accepts)])?;
        Ok(all.iter().all(|other| other == &[1]))
    }

    /// Exports the outermost own planes to the neighbours, copies theirs into the halo, and has the following steps
    /// wait until all planes are copied. The host waits only for messages.
    pub(super) fn exchange_copies(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        for exchange in &self.exchanges {
            let exported = (exchange.fields.iter())
                .map(|edge| peer(session)?.export(self.planes(edge.field, edge.sent.clone())))
                .collect::<Result<Vec<ExportedHandle>>>()?;
            let sent = self.export(exchange, What::Planes(exchange.side.other()), exported);
            sent.map_err(|error| self.failure(exchange, "to", |edge| &edge.sent, error))?;
        }
        for exchange in &self.exchanges {
            let fail = |error| self.failure(exchange, "from", |edge| &edge.received, error);
            let imported = self.import(exchange, What::Planes(exchange.side)).map_err(fail)?;
            if imported.len() != exchange.fields.len() {
                return Err(fail(CommError::Failed("something else was lent".to_owned())));
            }
            for (edge, handle) in exchange.fields.iter().zip(imported) {
                peer(session)?.take(self.planes(edge.field, edge.received.clone()), handle)?;
            }
            let point = peer(session)?.taken()?;
            // The receiver's side is the one at which it exported.
            self.export(exchange, What::Taken(exchange.side.other()), vec![point]).map_err(fail)?;
        }
        for exchange in &self.exchanges {
            let points = self.import(exchange, What::Taken(exchange.side)).map_err(|error| {
                let failure = self.failure(exchange, "taken by", |edge| &edge.sent, error);
                RankFailure { wait: failure.wait + u64::from(failure.wait > 0), ..failure }
            })?;
            points.into_iter().try_for_each(|point| peer(session)?.wait_for(point))?;
        }
        Ok(())
    }

    fn export(&self, exchange: &Exchange, what: What, handles: Vec<ExportedHandle>) -> Result<(), CommError> {
        self.endpoint
            .in_round(what, |communicator, tag| communicator.export(exchange.neighbour, tag, handles))
    }

    fn import(&self, exchange: &Exchange, what: What) -> Result<Vec<ExportedHandle>, CommError> {
        self.endpoint.in_round(what, |communicator, tag| communicator.import(exchange.neighbour, tag))
    }

    pub(super) fn planes(&self, field: usize, planes: Range<usize>) -> Planes {
        let [low, high] = self.window(field, planes);
        Planes { field, low, high }
    }
}

fn peer(session: &mut dyn Session) -> Result<&mut dyn Peer> {
    let summary = session.plan().summary();
    session.peer().ok_or_else(|| {
        Error::unsupported(summary, "its session exports no planes", "report this as a fault of Abide")
    })
}
