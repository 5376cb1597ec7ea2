//! Keeps the messages that other processes have sent, until the process's ranks receive them.
//!
//! Each session has a *channel*. All processes number channels alike, because they open the same sessions in the same
//! order. One process may open a channel before the others: a message for a channel that is not open yet is kept, a
//! message for a closed one is dropped.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_core::communicator::{CommError, Pause, Tag};

use super::message::{Begun, Kind, Message};
use super::wire::Wire;

/// How a process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The exit status; 0 where all went well.
    pub status: u8,
    /// Whether it failed only because another process had.
    pub follows: bool,
    /// Why it failed.
    pub reason: String,
}

pub struct ProgressEngine(Mutex<Held>);

/// The state of a process; a thread that has locked it may call MPI.
pub struct Held {
    /// None after the end of MPI.
    wire: Option<Wire>,
    pub rank: usize,
    pub size: usize,
    /// Of each sender.
    begun: Vec<Begun>,
    messages: Vec<(u64, usize, Tag, Vec<u8>)>,
    gone: Vec<(u64, usize)>,
    /// The first reason of each channel.
    aborted: Vec<(u64, usize, String)>,
    pub closings: Vec<Option<Closing>>,
    /// The number of the next channel, and those that are open.
    next: u64,
    open: BTreeSet<u64>,
    /// Whether another rank aborted before this one did; `None` where none has aborted.
    follows: Option<bool>,
    /// The error of MPI itself, after which it is not called any more.
    fault: Option<String>,
}

impl ProgressEngine {
    pub fn new(wire: Wire) -> ProgressEngine {
        let (rank, size) = (wire.rank, wire.size);
        ProgressEngine(Mutex::new(Held {
            wire: Some(wire),
            rank,
            size,
            begun: (0..size).map(|_| Begun::default()).collect(),
            messages: Vec::new(),
            gone: Vec::new(),
            aborted: Vec::new(),
            closings: vec![None; size],
            next: 0,
            open: BTreeSet::new(),
            follows: None,
            fault: None,
        }))
    }

    pub fn lock(&self) -> MutexGuard<'_, Held> {
        // Nothing is ever half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `ask` repeatedly, while messages arrive, until it returns a value. Other threads can lock the progress
    /// engine in between.
    pub fn wait<T>(&self, mut ask: impl FnMut(&mut Held) -> Option<T>) -> T {
        let mut pause = Pause::default();
        loop {
            let mut held = self.lock();
            held.poll();
            if let Some(answer) = ask(&mut held) {
                return answer;
            }
            drop(held);
            pause.pause();
        }
    }
}

impl Held {
    /// Takes what has come.
    pub fn poll(&mut self) {
        let (Some(wire), None) = (&mut self.wire, &self.fault) else { return };
        match wire.poll() {
            Ok(come) => come.into_iter().for_each(|(from, bytes)| self.take(from, bytes)),
            Err(fault) => self.fault = Some(fault),
        }
    }

    fn take(&mut self, from: usize, bytes: Vec<u8>) {
        let Some(begun) = self.begun.get_mut(from) else { return };
        match begun.add(bytes) {
            Ok(Some(message)) => self.sort(from, message),
            Ok(None) => {}
            Err(fault) => self.fault = Some(fault),
        }
    }

    fn sort(&mut self, from: usize, message: Message) {
        let Message { channel, kind, bytes } = message;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if let Kind::Closing { status, follows } = kind {
            self.closings[from] = Some(Closing { status, follows, reason: text(bytes) });
            return;
        }
        if channel < self.next && !self.open.contains(&channel) {
            return;
        }
        match kind {
            Kind::Tagged(tag) => self.messages.push((channel, from, tag, bytes)),
            Kind::Gone => self.gone.push((channel, from)),
            Kind::Aborted => self.abort(channel, from, text(bytes)),
            Kind::Closing { .. } => {}
        }
    }

    /// Records that a rank aborted; the first reason is the cause of all others.
    fn abort(&mut self, channel: u64, rank: usize, reason: String) {
        self.follows.get_or_insert(rank != self.rank);
        if !self.aborted.iter().any(|(own, ..)| *own == channel) {
            self.aborted.push((channel, rank, reason));
        }
    }

    /// Sends a message to a rank, which may be this one.
    pub fn send(&mut self, to: usize, message: Message) -> Result<(), CommError> {
        if to == self.rank {
            self.sort(to, message);
            return Ok(());
        }
        if to >= self.size {
            return Err(CommError::Gone { rank: to });
        }
        let Some(wire) = &mut self.wire else { return Err(CommError::Failed("MPI has ended".to_owned())) };
        message
            .messages()
            .into_iter()
            .try_for_each(|message| wire.send(to, message))
            .map_err(CommError::Failed)
    }

    /// Sends a message to all ranks, this one included. A rank that cannot be reached is gone.
    pub fn tell(&mut self, channel: u64, kind: Kind, words: &str) {
        for to in 0..self.size {
            let _ = self.send(to, Message { channel, kind, bytes: words.as_bytes().to_vec() });
        }
    }

    /// Opens the next channel.
    pub fn open(&mut self) -> u64 {
        let channel = self.next;
        self.open.insert(channel);
        self.next += 1;
        channel
    }

    /// Closes a channel and reports that to the others, which then expect no more messages from it.
    pub fn close(&mut self, channel: u64) {
        let own = self.rank;
        for to in (0..self.size).filter(|&to| to != own) {
            let _ = self.send(to, Message { channel, kind: Kind::Gone, bytes: Vec::new() });
        }
        self.open.remove(&channel);
        self.messages.retain(|(own, ..)| *own != channel);
        self.gone.retain(|(own, _)| *own != channel);
        self.aborted.retain(|(own, ..)| *own != channel);
    }

    /// Returns the message of a tag, if it has come.
    pub fn find(&mut self, channel: u64, from: usize, tag: Tag) -> Option<Vec<u8>> {
        let is_it = |(own, rank, other, _): &(u64, usize, Tag, Vec<u8>)| {
            (*own, *rank, *other) == (channel, from, tag)
        };
        let at = self.messages.iter().position(is_it)?;
        Some(self.messages.swap_remove(at).3)
    }

    /// Returns why nothing more is waited for on a channel from a rank, if it is so.
    pub fn broken(&self, channel: u64, from: usize) -> Option<CommError> {
        if let Some((_, rank, reason)) = self.aborted.iter().find(|(own, ..)| *own == channel) {
            return Some(CommError::Aborted { rank: *rank, reason: reason.clone() });
        }
        if let Some((rank, reason)) = self.failed() {
            return Some(CommError::Aborted { rank, reason });
        }
        if self.gone.contains(&(channel, from)) || self.closings.get(from).is_none_or(Option::is_some) {
            return Some(CommError::Gone { rank: from });
        }
        self.fault.clone().map(CommError::Failed)
    }

    /// Returns the lowest rank whose process has failed, and why; a failure of this process is left out.
    pub fn failed(&self) -> Option<(usize, String)> {
        let mut others = self.closings.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        others.find_map(|(rank, closing)| {
            closing.as_ref().filter(|own| own.status != 0).map(|own| (rank, own.reason.clone()))
        })
    }

    /// Returns whether a failure of this process comes from another's.
    pub fn follows(&self) -> bool {
        self.follows.unwrap_or_else(|| self.failed().is_some())
    }

    /// Returns whether all that was sent has left.
    pub fn is_sent(&self) -> bool {
        self.wire.as_ref().is_none_or(Wire::is_sent)
    }

    /// Ends all processes at once.
    pub fn abort_all(&mut self, status: u8) {
        if let Some(wire) = &mut self.wire {
            wire.abort(status);
        }
    }

    /// Ends MPI, for which all processes wait for each other.
    pub fn finalise(&mut self) {
        self.wire = None;
    }
}

/// Returns whether a wait is over that began then.
pub fn is_late(begun: Instant, deadline: Duration) -> bool {
    begun.elapsed() >= deadline
}
