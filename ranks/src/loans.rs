//! Exchanges between devices whose sessions copy from each other's memory ([`Peer`]).

use std::ops::Range;

use abide_core::backend::{Loan, Peer, Planes};
use abide_core::slabs::Exchange;
use abide_core::{Error, Result};

use crate::fabric::{Broken, Tag, What};
use crate::rank::{Rank, Stopped};

/// What a rank lends at a side: the planes of each field of the exchange, in order.
type Lent = Vec<Loan>;

impl Rank {
    /// Lends the outermost own planes to the neighbours, copies theirs into the halo, and has the steps that follow wait
    /// until all of that is copied. The host waits for messages alone.
    pub(crate) fn exchange_loans(&mut self, exchanges: &[Exchange]) -> Result<(), Stopped> {
        for exchange in exchanges {
            let lent: Lent = (exchange.fields.iter())
                .map(|edge| {
                    let planes = self.planes(edge.field, edge.sent.clone());
                    self.peer()?.lend(planes)
                })
                .collect::<Result<_>>()?;
            let tag = self.tag(What::Planes(exchange.side.other()));
            let sent = self.line.lock().fabric.lend(exchange.neighbour, tag, Box::new(lent));
            sent.map_err(|broken| self.stopped_at(exchange, "to", |edge| &edge.sent, broken))?;
        }
        for exchange in exchanges {
            let broken = |own: &Rank, broken| own.stopped_at(exchange, "from", |edge| &edge.received, broken);
            let lent = self.borrow(exchange, What::Planes(exchange.side));
            let lent = lent.map_err(|own| broken(self, own))?;
            let lent = match lent.downcast::<Lent>() {
                Ok(lent) if lent.len() == exchange.fields.len() => lent,
                _ => return Err(broken(self, Broken::Failed("something else was lent".to_owned()))),
            };
            for (edge, loan) in exchange.fields.iter().zip(*lent) {
                let planes = self.planes(edge.field, edge.received.clone());
                self.peer()?.take(planes, loan)?;
            }
            let point = self.peer()?.taken()?;
            // The receiver's side is the one at which it has lent.
            let tag = self.tag(What::Taken(exchange.side.other()));
            let sent = self.line.lock().fabric.lend(exchange.neighbour, tag, point);
            sent.map_err(|own| broken(self, own))?;
        }
        for exchange in exchanges {
            let point = self.borrow(exchange, What::Taken(exchange.side));
            let point =
                point.map_err(|broken| self.stopped_at(exchange, "taken by", |edge| &edge.sent, broken))?;
            self.peer()?.wait_for(point)?;
        }
        Ok(())
    }

    fn borrow(&self, exchange: &Exchange, what: What) -> Result<Loan, Broken> {
        let tag = self.tag(what);
        self.line.lock().fabric.borrow(exchange.neighbour, tag)
    }

    fn tag(&self, what: What) -> Tag {
        Tag { round: self.line.lock().rounds, what }
    }

    fn planes(&self, field: usize, planes: Range<usize>) -> Planes {
        let [low, high] = self.window(field, planes);
        Planes { field, low, high }
    }

    fn peer(&mut self) -> Result<&mut dyn Peer> {
        let summary = self.session.plan().summary();
        self.session.peer().ok_or_else(|| {
            Error::unsupported(summary, "its session lends no planes", "report this as a fault of Abide")
        })
    }
}
