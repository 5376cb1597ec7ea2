//! Exchanges by messages of values, which go through the host.

use abide_core::communicator::{CommError, RankFailure, What};
use abide_core::{Array, Session};

use super::Halo;

impl Halo {
    /// Sends the outermost own planes to the neighbours, and writes theirs into the halo.
    pub(super) fn exchange_messages(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        for exchange in &self.exchanges {
            let mut bytes = Vec::new();
            for edge in &exchange.fields {
                let [low, high] = self.window(edge.field, edge.sent.clone());
                bytes.extend_from_slice(session.read_window(edge.field, low, high)?.as_bytes());
            }
            let sent = self.endpoint.in_round(What::Planes(exchange.side.other()), |communicator, tag| {
                communicator.send(exchange.neighbour, tag, bytes)
            });
            sent.map_err(|error| self.failure(exchange, "to", |edge| &edge.sent, error))?;
        }
        for exchange in &self.exchanges {
            let fail = |error| self.failure(exchange, "from", |edge| &edge.received, error);
            let received = self.endpoint.in_round(What::Planes(exchange.side), |communicator, tag| {
                communicator.receive(exchange.neighbour, tag)
            });
            let bytes = received.map_err(fail)?;
            let mut rest = &bytes[..];
            for edge in &exchange.fields {
                let [low, high] = self.window(edge.field, edge.received.clone());
                let values: usize = (0..3).map(|axis| high[axis] - low[axis]).product();
                let Some((own, others)) = rest.split_at_checked(values * self.dtype.bytes()) else {
                    let short = format!("the message has {} bytes too few", bytes.len());
                    return Err(fail(CommError::Failed(short)));
                };
                session.write_window(edge.field, low, high, &Array::from_bytes(self.dtype, own))?;
                rest = others;
            }
        }
        Ok(())
    }
}
