//! A rank: a session of its slab, advanced between exchanges with its neighbours.

use std::collections::BTreeSet;
use std::time::Instant;

use abide_core::plan::Exchanging;
use abide_core::program::Until;
use abide_core::slabs::{Edge, Exchange, Share, Side, Slabs};
use abide_core::{DType, Error, Problem, Session};

use crate::communicator::{CommError, Communicator, Tag, What};
use crate::endpoint::{Endpoint, SharedEndpoint, array};
use crate::{device_exchange, handles};

/// A rank at work on its slab.
pub struct Rank {
    /// The names of the program's fields, for errors.
    names: Vec<String>,
    /// The index in the whole domain of the slab's first plane, for errors.
    first: isize,
    dtype: DType,
    /// The axis that is cut, and the extents of each field in the slab.
    axis: usize,
    extents: Vec<[usize; 3]>,
    pub(crate) depth: u64,
    pub(crate) exchanges: Vec<Exchange>,
    /// The session of the slab.
    pub session: Box<dyn Session>,
    pub(crate) endpoint: SharedEndpoint,
    /// How all ranks exchange planes.
    pub(crate) exchange: Exchanging,
    /// Whether the session's passes store own planes alone, so that halos last for one pass.
    pub(crate) keeps_to_own: bool,
    /// Whether its steps store what neighbours read into their memory, so that an exchange is a communicator.
    pub(crate) gives: bool,
    /// Steps for which the halos are deep enough.
    pub(crate) left: u64,
    /// The condition that ends the run, and whether it has.
    until: Option<Until>,
    has_ended: bool,
    /// Numbers of steps for which the session has been prepared.
    prepared: BTreeSet<u64>,
    /// Times that steps were begun since the host last waited for the device.
    begun: u32,
    /// Seconds of computing, and of exchanging.
    seconds: [f64; 2],
}

/// The times that steps are begun before the host waits for the device. The wait bounds the device's queue and the
/// number of its imports, and reports errors.
const MOST_BEGUN: u32 = 64;

/// What a rank did in an advance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advanced {
    /// Steps that were not done, as in [`Session::remaining`].
    pub remaining: u64,
    /// Seconds from the first step to the last, of the rank that took longest.
    pub seconds: f64,
}

/// Why a rank stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFailure {
    /// The error, which names the rank.
    pub error: Error,
    /// Whether the rank stopped only because another one had.
    pub follows: bool,
    /// The wait that failed, by its own deadline or because another rank aborted, numbered in the order in which
    /// all ranks wait; 0 for any other reason.
    pub wait: u64,
}

impl RankFailure {
    /// Returns whether this is nearer to the cause than another rank's reason.
    pub fn is_before(&self, other: &RankFailure) -> bool {
        self.order() < other.order()
    }

    /// Returns what orders reasons from the cause on: a fault, a rank that is gone, then waits. The rank that stands earliest
    /// holds all others up, whichever of them is the first to reach its deadline.
    pub(crate) fn order(&self) -> (bool, u64, bool) {
        (self.follows || self.wait > 0, self.wait, self.follows)
    }
}

impl From<Error> for RankFailure {
    fn from(error: Error) -> Self {
        RankFailure { error, follows: false, wait: 0 }
    }
}

impl Rank {
    /// Makes a rank of a session of its slab, whose fields and halos have been filled, and waits until all ranks are there.
    /// `shares` has what [`Slabs::shares`] returns. All ranks ask for the same way to exchange.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where not all ranks can exchange as asked; those of a communicator.
    pub fn new(
        backend: &'static str,
        slabs: &Slabs,
        slab: &Problem,
        shares: Vec<Option<Share>>,
        exchange: Exchanging,
        mut session: Box<dyn Session>,
        communicator: Box<dyn Communicator>,
    ) -> Result<Rank, RankFailure> {
        let rank = communicator.rank();
        let endpoint = SharedEndpoint::new(Endpoint::new(backend, communicator));
        if shares.iter().any(Option::is_some)
            && let Err(error) = session.reduce_together(shares, Box::new(endpoint.clone()))
        {
            endpoint.lock().communicator.abort(&error.to_string());
            return Err(error.into());
        }
        let names = slab.program.fields().to_vec();
        let mut own = Rank {
            first: slabs.slabs[rank].first(),
            dtype: slab.dtype,
            axis: slabs.axis,
            extents: (0..names.len()).map(|field| slab.extents_of(field)).collect(),
            names,
            depth: u64::from(slabs.depth).max(1),
            exchanges: slabs.exchanges(rank),
            session,
            endpoint,
            exchange: Exchanging::Messages,
            keeps_to_own: false,
            gives: false,
            left: u64::from(slabs.depth),
            until: slab.until,
            has_ended: false,
            prepared: BTreeSet::new(),
            begun: 0,
            seconds: [0.0; 2],
        };
        own.exchange = own.agree_on(exchange)?;
        let streaming = own.session.plan().warp_streaming();
        own.keeps_to_own = streaming.is_some_and(|streaming| streaming.edges.is_some());
        own.gives = own.agree_on_giving(slabs)?;
        Ok(own)
    }

    /// Agrees with all ranks on a way to exchange planes: the one asked for, or the first of which all are able.
    fn agree_on(&mut self, asked: Exchanging) -> Result<Exchanging, RankFailure> {
        let neighbours: Vec<usize> = self.exchanges.iter().map(|exchange| exchange.neighbour).collect();
        for &way in Exchanging::ALL.iter().filter(|&&way| asked == Exchanging::Auto || asked == way) {
            let (session, mut endpoint) = (self.session.as_mut(), self.endpoint.lock());
            let able = match way {
                Exchanging::Auto => false,
                Exchanging::Copies => handles::agree(session, &mut endpoint, &neighbours)?,
                Exchanging::PeerPuts | Exchanging::Network => {
                    device_exchange::join(session, &mut endpoint, way)?
                }
                Exchanging::Messages => true,
            };
            if able {
                return Ok(way);
            }
        }
        let reason = match asked {
            Exchanging::PeerPuts => "not all of them store into each other's memory, each one device alone",
            Exchanging::Network => "not all of them are in one network of devices",
            _ => "not all of them reach each other's memory",
        };
        let what = format!("devices exchanging by {asked}");
        Err(Error::unsupported(what, reason, "leave --exchange out, or exchange messages").into())
    }

    /// Advances the slab as far as it goes, and compares with all ranks how far that was. Where this rank fails, all give
    /// up.
    pub fn advance(&mut self, steps: u64) -> Result<Advanced, RankFailure> {
        let advanced = self.try_advance(steps);
        if let Err(stopped) = &advanced {
            self.abort(stopped);
        }
        advanced
    }

    /// Has the session compile what an advance needs before the clock begins, and waits until all ranks are ready. All ranks
    /// have the same numbers of steps before them.
    fn prepare(&mut self, steps: u64) -> Result<(), RankFailure> {
        let (mut left, mut remaining, mut fresh) = (self.left, steps, BTreeSet::new());
        // After two exchanges all is as after one, but for the end.
        let cut = 3 * self.depth.max(1);
        if remaining > cut {
            remaining = cut + remaining % self.depth.max(1);
        }
        while remaining > 0 {
            if left < self.depth.min(remaining) {
                left = self.depth;
            }
            let now = self.pass(remaining.min(left));
            fresh.insert(now);
            (left, remaining) = (if self.keeps_to_own { 0 } else { left - now }, remaining - now);
        }
        fresh.retain(|steps| !self.prepared.contains(steps));
        if fresh.is_empty() {
            return Ok(());
        }
        let mut prepares = false;
        for &steps in &fresh {
            prepares |= self.session.prepare(steps)?;
        }
        self.prepared.append(&mut fresh);
        // Sessions of all ranks are of one backend.
        if prepares { self.gather("compiling kernels", &[]).map(drop) } else { Ok(()) }
    }

    fn try_advance(&mut self, steps: u64) -> Result<Advanced, RankFailure> {
        self.prepare(steps)?;
        let (begun, before) = (Instant::now(), self.seconds);
        let (mut remaining, mut has_begun) = (steps, false);
        // To a session whose run has ended, an exchange would look like a user's change, after which it goes on.
        while remaining > 0 && !self.has_ended {
            // Passes shorter than what is asked for cost more than an exchange.
            if self.left < self.depth.min(remaining) {
                self.exchange()?;
            }
            let now = self.pass(remaining.min(self.left));
            if self.begin(now)? {
                has_begun = true;
                (self.left, remaining) = (self.after(now), remaining - now);
                continue;
            }
            let wall = Instant::now();
            if self.exchange.is_of_devices() {
                // While the session itself waits for its steps, it does not see whether others are still there.
                self.flush()?;
                self.seconds[1] += wall.elapsed().as_secs_f64();
            }
            let wall = Instant::now();
            let advanced = self.session.advance(now);
            let mut endpoint = self.endpoint.lock();
            let gathering = std::mem::take(&mut endpoint.seconds);
            self.seconds[0] += (wall.elapsed().as_secs_f64() - gathering).max(0.0);
            self.seconds[1] += gathering;
            if let Err(error) = advanced {
                // Where a gather failed, the rank may only follow another.
                return Err(endpoint.stopped.take().unwrap_or_else(|| error.into()));
            }
            drop(endpoint);
            let done = now - self.session.remaining();
            (self.left, remaining) = (self.after(done), remaining - done);
            if let Some(until) = self.until {
                let scalars = self.session.scalars()?;
                self.has_ended = scalars.get(until.scalar).is_some_and(|&value| until.ends(value));
            }
            if done < now {
                break;
            }
        }
        self.finish()?;
        if has_begun {
            // The host saw none of the exchanges: they took what the device did not compute.
            let computed = self.seconds[0] - before[0];
            self.seconds[1] = before[1] + (begun.elapsed().as_secs_f64() - computed).max(0.0);
        }
        let wall = Instant::now();
        let seconds = self.agree(remaining, begun.elapsed().as_secs_f64())?;
        self.seconds[1] += wall.elapsed().as_secs_f64();
        Ok(Advanced { remaining, seconds })
    }

    /// Has the device begin steps if the host need not see their end, and returns whether it has.
    fn begin(&mut self, steps: u64) -> Result<bool, RankFailure> {
        if self.exchange == Exchanging::Messages || self.until.is_some() {
            return Ok(false);
        }
        if self.begun == MOST_BEGUN {
            self.finish()?;
        }
        let Some(peer) = self.session.peer() else { return Ok(false) };
        let has_begun = peer.begin(steps)?;
        self.begun += u32::from(has_begun);
        Ok(has_begun)
    }

    /// Waits for all steps begun.
    fn finish(&mut self) -> Result<(), RankFailure> {
        if std::mem::take(&mut self.begun) == 0 {
            return Ok(());
        }
        if self.exchange.is_of_devices() {
            self.flush()?;
        }
        if let Some(peer) = self.session.peer() {
            self.seconds[0] += peer.finish()?;
        }
        Ok(())
    }

    /// Goes on although a condition has ended the run, because a value was written on some rank.
    pub fn go_on(&mut self) -> Result<(), RankFailure> {
        if std::mem::take(&mut self.has_ended) {
            // The session goes on where it is written to, be it the value that is there.
            let value = self.session.read_window(0, [0; 3], [1; 3])?;
            self.session.write_window(0, [0; 3], [1; 3], &value)?;
        }
        Ok(())
    }

    /// Compares with all ranks how many steps were not done: a condition ends the run on all of them or on none. Returns the
    /// seconds of the rank that took longest.
    fn agree(&mut self, remaining: u64, seconds: f64) -> Result<f64, RankFailure> {
        let mut endpoint = self.endpoint.lock();
        let own = [remaining.to_le_bytes(), seconds.to_le_bytes()];
        let all = endpoint.gather(own.as_flattened());
        let all = all.map_err(|broken| endpoint.stopped("the end of an advance", "all ranks", broken))?;
        let mut most = seconds;
        for (rank, other) in all.iter().enumerate() {
            match other.as_chunks::<8>().0 {
                [steps, seconds] if *steps == own[0] => most = most.max(f64::from_le_bytes(*seconds)),
                _ => {
                    let failed = format!(
                        "rank {rank} did not do as many steps as rank {}",
                        endpoint.communicator.rank()
                    );
                    return Err(endpoint.stopped(
                        "the end of an advance",
                        "all ranks",
                        CommError::Failed(failed),
                    ));
                }
            }
        }
        Ok(most)
    }

    /// Returns what each rank gives at this point, outside of an advance. `what` says it in errors.
    pub fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, RankFailure> {
        let mut endpoint = self.endpoint.lock();
        let all = endpoint.gather(own);
        all.map_err(|broken| endpoint.stopped(what, "all ranks", broken))
    }

    /// Aborts all ranks because this one stopped, unless its error only follows from another rank's.
    pub fn abort(&mut self, stopped: &RankFailure) {
        if !stopped.follows {
            self.endpoint.lock().communicator.abort(&stopped.error.to_string());
        }
    }

    /// Hands the outermost own planes to the neighbours, and takes theirs.
    fn exchange(&mut self) -> Result<(), RankFailure> {
        let wall = Instant::now();
        self.endpoint.lock().rounds += 1;
        let exchanges = std::mem::take(&mut self.exchanges);
        let done = match self.exchange {
            Exchanging::Copies => self.exchange_loans(&exchanges),
            Exchanging::PeerPuts if self.gives => self.meet(),
            Exchanging::PeerPuts | Exchanging::Network => self.swap(&exchanges),
            Exchanging::Auto | Exchanging::Messages => {
                self.send(&exchanges).and_then(|()| self.take(&exchanges))
            }
        };
        self.exchanges = exchanges;
        done?;
        self.left = self.depth;
        self.seconds[1] += wall.elapsed().as_secs_f64();
        Ok(())
    }

    fn send(&mut self, exchanges: &[Exchange]) -> Result<(), RankFailure> {
        for exchange in exchanges {
            let mut bytes = Vec::new();
            for edge in &exchange.fields {
                let [low, high] = self.window(edge.field, edge.sent.clone());
                bytes.extend_from_slice(self.session.read_window(edge.field, low, high)?.as_bytes());
            }
            let mut endpoint = self.endpoint.lock();
            let tag = Tag { round: endpoint.rounds, what: What::Planes(exchange.side.other()) };
            let sent = endpoint.communicator.send(exchange.neighbour, tag, bytes);
            drop(endpoint);
            sent.map_err(|broken| self.stopped_at(exchange, "to", |edge| &edge.sent, broken))?;
        }
        Ok(())
    }

    fn take(&mut self, exchanges: &[Exchange]) -> Result<(), RankFailure> {
        for exchange in exchanges {
            let fail = |own: &Rank, broken| own.stopped_at(exchange, "from", |edge| &edge.received, broken);
            let mut endpoint = self.endpoint.lock();
            let tag = Tag { round: endpoint.rounds, what: What::Planes(exchange.side) };
            let received = endpoint.communicator.receive(exchange.neighbour, tag);
            drop(endpoint);
            let bytes = match received {
                Ok(bytes) => bytes,
                Err(broken) => return Err(fail(self, broken)),
            };
            let mut rest = &bytes[..];
            for edge in &exchange.fields {
                let [low, high] = self.window(edge.field, edge.received.clone());
                let values: usize = (0..3).map(|axis| high[axis] - low[axis]).product();
                let Some((own, others)) = rest.split_at_checked(values * self.dtype.bytes()) else {
                    let short = format!("the message has {} bytes too few", bytes.len());
                    return Err(fail(self, CommError::Failed(short)));
                };
                self.session.write_window(edge.field, low, high, &array(self.dtype, own))?;
                rest = others;
            }
        }
        Ok(())
    }

    /// Returns the box of some planes of a field.
    pub fn window(&self, field: usize, planes: std::ops::Range<usize>) -> [[usize; 3]; 2] {
        let (mut low, mut high) = ([0; 3], self.extents[field]);
        (low[self.axis], high[self.axis]) = (planes.start, planes.end);
        [low, high]
    }

    /// Returns how planes are exchanged, as a report has it.
    pub fn exchange_word(&self) -> &'static str {
        self.exchange.name()
    }

    /// Returns the seconds of computing, and those of exchanging with the waiting for it, since the last call.
    pub fn take_seconds(&mut self) -> [f64; 2] {
        std::mem::take(&mut self.seconds)
    }

    /// Returns the error of an exchange, which names its round and the planes.
    pub(crate) fn stopped_at(
        &self,
        exchange: &Exchange,
        way: &str,
        planes: impl Fn(&Edge) -> &std::ops::Range<usize>,
        broken: CommError,
    ) -> RankFailure {
        let edges = exchange.fields.iter().map(|edge| {
            let (name, planes) = (&self.names[edge.field], planes(edge));
            let at = |plane: usize| self.first + plane as isize;
            format!("{name} {}..{}", at(planes.start), at(planes.end))
        });
        let side = match exchange.side {
            Side::Low => "low",
            Side::High => "high",
        };
        let edges = edges.collect::<Vec<_>>().join(", ");
        let what = format!("planes {edges} {way} rank {} at the {side} side", exchange.neighbour);
        let endpoint = self.endpoint.lock();
        endpoint.stopped(&format!("exchange {}", endpoint.rounds), &what, broken)
    }
}
