//! A rank: a session of its slab, advanced between exchanges with its neighbours.

use std::collections::BTreeSet;
use std::time::Instant;

use abide_core::communicator::{CommError, Communicator, Endpoint, RankFailure};
use abide_core::plan::Exchanging;
use abide_core::program::{Phase, Until};
use abide_core::slabs::{Share, Slabs};
use abide_core::{Problem, Session};

use crate::halo::Halo;

/// A rank at work on its slab.
pub struct Rank {
    depth: u64,
    /// The session of the slab.
    pub session: Box<dyn Session>,
    endpoint: Endpoint,
    /// The exchange with the neighbours.
    pub(crate) halo: Halo,
    /// Whether the session's passes store own planes alone, so that halos last for one pass.
    keeps_to_own: bool,
    /// Steps for which the halos are deep enough.
    left: u64,
    /// The phases of steps, where these have loops, and the one that comes next.
    phases: Vec<Phase>,
    phase: usize,
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

impl Rank {
    /// Makes a rank of a session of its slab, whose fields and halos have been filled, and waits until all ranks are there.
    /// `shares` has what [`Slabs::shares`] returns. All ranks ask for the same way to exchange.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](abide_core::Error::Unsupported) where not all ranks can exchange as asked; those of a communicator.
    pub fn new(
        backend: &'static str,
        slabs: &Slabs,
        slab: &Problem,
        shares: Vec<Option<Share>>,
        exchange: Exchanging,
        mut session: Box<dyn Session>,
        communicator: Box<dyn Communicator>,
    ) -> Result<Rank, RankFailure> {
        let endpoint = Endpoint::new(backend, communicator);
        if shares.iter().any(Option::is_some)
            && let Err(error) = session.reduce_together(shares, endpoint.clone())
        {
            endpoint.abort(&error.to_string());
            return Err(error.into());
        }
        let halo = Halo::new(&endpoint, slabs, slab, exchange, session.as_mut())?;
        let streaming = session.plan().warp_streaming();
        Ok(Rank {
            depth: u64::from(slabs.depth).max(1),
            keeps_to_own: streaming.is_some_and(|streaming| streaming.edges.is_some()),
            session,
            endpoint,
            halo,
            left: u64::from(slabs.depth),
            phases: slab.program.phases().to_vec(),
            phase: slab.program.first_phase(slab.first_step),
            until: slab.until,
            has_ended: false,
            prepared: BTreeSet::new(),
            begun: 0,
            seconds: [0.0; 2],
        })
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
        if !self.phases.is_empty() {
            return self.advance_with_loops(steps);
        }
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
            if self.halo.way().is_of_devices() {
                // While the session itself waits for its steps, it does not see whether others are still there.
                self.halo.flush(self.session.as_mut())?;
                self.seconds[1] += wall.elapsed().as_secs_f64();
            }
            self.computed(|session| session.advance(now))?;
            let done = now - self.session.remaining();
            (self.left, remaining) = (self.after(done), remaining - done);
            self.find_end()?;
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

    /// Advances steps of a program with loops: what a phase or a turn reads beyond the slab is exchanged before it. All ranks have
    /// the same scalars, so that a loop has as many turns on each.
    fn advance_with_loops(&mut self, steps: u64) -> Result<Advanced, RankFailure> {
        let (begun, mut remaining) = (Instant::now(), steps);
        while remaining > 0 && !self.has_ended {
            loop {
                if self.left == 0 {
                    self.exchange()?;
                }
                if self.halo.way().is_of_devices() {
                    self.halo.flush(self.session.as_mut())?;
                }
                let turned = self.computed(|session| session.advance_phase(1))?;
                self.left -= turned.turns;
                if turned.is_over {
                    let ends_step = self.phases[self.phase].ends_step;
                    self.phase = (self.phase + 1) % self.phases.len();
                    if ends_step {
                        break;
                    }
                }
            }
            remaining -= 1;
            self.find_end()?;
        }
        let wall = Instant::now();
        let seconds = self.agree(remaining, begun.elapsed().as_secs_f64())?;
        self.seconds[1] += wall.elapsed().as_secs_f64();
        Ok(Advanced { remaining, seconds })
    }

    /// Has the session compute, and adds the time that it takes to those of computing and of exchanging.
    fn computed<R>(
        &mut self,
        compute: impl FnOnce(&mut dyn Session) -> abide_core::Result<R>,
    ) -> Result<R, RankFailure> {
        let wall = Instant::now();
        let computed = compute(self.session.as_mut());
        let gathering = self.endpoint.take_seconds();
        self.seconds[0] += (wall.elapsed().as_secs_f64() - gathering).max(0.0);
        self.seconds[1] += gathering;
        // Where a gather failed, the rank may only follow another.
        computed.map_err(|error| self.endpoint.failed().unwrap_or_else(|| error.into()))
    }

    /// Finds whether the condition has ended the run.
    fn find_end(&mut self) -> Result<(), RankFailure> {
        if let Some(until) = self.until {
            let scalars = self.session.scalars()?;
            self.has_ended = scalars.get(until.scalar).is_some_and(|&value| until.ends(value));
        }
        Ok(())
    }

    /// Has the device begin steps if the host need not see their end, and returns whether it has.
    fn begin(&mut self, steps: u64) -> Result<bool, RankFailure> {
        if self.halo.way() == Exchanging::Messages || self.until.is_some() {
            return Ok(false);
        }
        if self.begun == MOST_BEGUN {
            self.finish()?;
        }
        let Some(peer) = self.session.peer() else { return Ok(false) };
        let has_begun = peer.begin(steps, &[])?;
        self.begun += u32::from(has_begun);
        Ok(has_begun)
    }

    /// Waits for all steps begun.
    fn finish(&mut self) -> Result<(), RankFailure> {
        if std::mem::take(&mut self.begun) == 0 {
            return Ok(());
        }
        if self.halo.way().is_of_devices() {
            self.halo.flush(self.session.as_mut())?;
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
        const WHEN: &str = "the end of an advance";
        let own = [remaining.to_le_bytes(), seconds.to_le_bytes()];
        let mut most = seconds;
        for (rank, other) in self.endpoint.all_gather_at(WHEN, own.as_flattened())?.iter().enumerate() {
            match other.as_chunks::<8>().0 {
                [steps, seconds] if *steps == own[0] => most = most.max(f64::from_le_bytes(*seconds)),
                _ => {
                    let own = self.endpoint.rank();
                    let failed = format!("rank {rank} did not do as many steps as rank {own}");
                    return Err(self.endpoint.failure(WHEN, "all ranks", CommError::Failed(failed)));
                }
            }
        }
        Ok(most)
    }

    /// Returns what each rank gives at this point, outside of an advance. `what` says it in errors.
    pub fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, RankFailure> {
        self.endpoint.all_gather_at(what, own)
    }

    /// Aborts all ranks because this one stopped, unless its error only follows from another rank's.
    pub fn abort(&mut self, stopped: &RankFailure) {
        if !stopped.follows {
            self.endpoint.abort(&stopped.error.to_string());
        }
    }

    /// Exchanges planes with the neighbours, after which the halos are as deep as they get.
    fn exchange(&mut self) -> Result<(), RankFailure> {
        let wall = Instant::now();
        self.halo.exchange(self.session.as_mut())?;
        self.left = self.depth;
        self.seconds[1] += wall.elapsed().as_secs_f64();
        Ok(())
    }

    /// Returns how many of some steps are done at once: those of one pass where halos do not last for more. Passes are as deep as
    /// an exchange, or half as deep, a quarter, … one step.
    fn pass(&self, steps: u64) -> u64 {
        if !self.keeps_to_own {
            return steps;
        }
        let passes = std::iter::successors(Some(self.depth), |depth| Some(depth / 2));
        passes.take_while(|&depth| depth > 0).find(|&depth| depth <= steps).unwrap_or(steps)
    }

    /// Returns for how many steps halos are deep enough after so many.
    fn after(&self, done: u64) -> u64 {
        match self.keeps_to_own {
            true if done > 0 => 0,
            _ => self.left - done,
        }
    }

    /// Returns the seconds of computing, and those of exchanging with the waiting for it, since the last call.
    pub fn take_seconds(&mut self) -> [f64; 2] {
        std::mem::take(&mut self.seconds)
    }
}
