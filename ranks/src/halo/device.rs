//! Exchanges by puts, or over a network of the ranks' devices ([`DeviceCommunicator`]): they are work of the devices, in order
//! with their steps. The communicator only checks whether all ranks are still there.

use std::time::Instant;

use abide_core::backend::{CancelCheck, DeviceCommunicator};
use abide_core::communicator::{Pause, RankFailure};
use abide_core::plan::Exchanging;
use abide_core::slabs::{Side, Slabs};
use abide_core::{Error, Result, Session};

use super::Halo;

impl Halo {
    /// Joins all ranks' devices, to exchange in one of the ways that are their own work; returns whether all of them are in it.
    pub(super) fn join(&self, way: Exchanging, session: &mut dyn Session) -> Result<bool, RankFailure> {
        let rank = self.endpoint.rank();
        let own = device_of(session).and_then(|device| device.key(way, rank == 0));
        let keys = self.all_gather(&own.unwrap_or_default())?;
        if keys.iter().any(Vec::is_empty) {
            return Ok(false);
        }
        self.on_device(session, "the start", "joining a network", |device, cancel_check| {
            device.join(way, &keys, rank, cancel_check)
        })
    }

    /// Agrees with all ranks on whether steps themselves store what neighbours read: they do where all can.
    pub(super) fn agree_on_stores(
        &self,
        slabs: &Slabs,
        session: &mut dyn Session,
    ) -> Result<bool, RankFailure> {
        let rank = self.endpoint.rank();
        let beside = [Side::Low, Side::High].map(|side| {
            let to = self.exchanges.iter().find(|exchange| exchange.side == side)?.neighbour;
            let there = slabs.exchanges(to);
            let back = there.iter().find(|other| other.side == side.other() && other.neighbour == rank)?;
            // Fields are stored as deep as the halo, whether all of it is read or not.
            let begin = back.fields.iter().map(|edge| match back.side {
                Side::Low => 0,
                Side::High => edge.received.start,
            });
            Some((to, begin.min()?))
        });
        let stores = device_of(session).map_or(Ok(false), |device| device.store_to_neighbours(beside))?;
        let all = self.all_gather(&[u8::from(stores)])?;
        let all_store = all.iter().all(|other| other == &[1]);
        if stores
            && !all_store
            && let Some(device) = device_of(session)
        {
            device.store_to_neighbours([None; 2])?;
        }
        Ok(all_store)
    }

    /// Enqueues an exchange on the device, after all earlier work.
    pub(super) fn exchange_on_device(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        // Two ranks of a ring are neighbours at both sides. Only the order distinguishes the planes that go from one to
        // the other: planes at the sender's low side come first.
        let at = |side: Side| self.exchanges.iter().filter(move |exchange| exchange.side == side);
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
        self.on_device(session, &self.when(), "planes to and from its neighbours", |device, cancel_check| {
            device.exchange(&sent, &received, cancel_check)
        })
    }

    /// Has the device wait until the neighbours have done all that they were asked before.
    pub(super) fn wait_for_neighbours(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        self.on_device(session, &self.when(), "its neighbours' steps", |device, _| {
            device.wait_for_neighbours()
        })
    }

    /// Waits until the device has done all exchanges and steps that it was asked for.
    pub fn flush(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        let what = "planes to and from its neighbours, or steps";
        self.on_device(session, &self.when(), what, |device, cancel_check| device.flush(cancel_check))
    }

    /// Calls a session's device communicator, for as long as all ranks are there and the deadline allows. `when` and
    /// `what` say it in errors.
    fn on_device<R>(
        &self,
        session: &mut dyn Session,
        when: &str,
        what: &str,
        call: impl FnOnce(&mut dyn DeviceCommunicator, CancelCheck<'_>) -> Result<R>,
    ) -> Result<R, RankFailure> {
        let summary = session.plan().summary();
        let Some(device) = device_of(session) else {
            let change = "report this as a fault of Abide";
            return Err(Error::unsupported(summary, "its session has no network", change).into());
        };
        let (since, mut pause, mut failed) = (Instant::now(), Pause::short(), None);
        let mut cancel_check = || {
            pause.pause();
            let Err(error) = self.endpoint.check(since) else { return Ok(()) };
            let failure = self.endpoint.failure(when, what, error);
            let error = failure.error.clone();
            failed = Some(failure);
            Err(error)
        };
        let answer = call(device, &mut cancel_check);
        answer.map_err(|error| failed.unwrap_or_else(|| error.into()))
    }
}

fn device_of(session: &mut dyn Session) -> Option<&mut dyn DeviceCommunicator> {
    session.peer()?.device_communicator()
}
