//! What the kernels of a launch per stage have to know of a problem that is not plain, in any language: where
//! values lie, which ghost values show them, which indices a stage computes, and which buffers it names.

mod kinds;
pub(crate) mod matrices;
mod stages;
pub(crate) mod waits;

use std::collections::HashMap;

use abide_core::program::Launch;

pub(crate) use self::kinds::{Kind, Kinds};
pub(crate) use self::stages::{Grid, Slots, Work, boxes, points, reduce, update};

/// A buffer that a stage's kernel names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The one in which a field or temporary lies before the stage.
    Read(usize),
    /// The one that an output goes to, by its number among [`Launch::made`].
    Write(usize),
}

impl Slot {
    /// Returns the number of the buffer that a launch of the stage has here; `None` for a temporary that has
    /// none.
    pub fn buffer(self, launch: &Launch) -> Option<usize> {
        match self {
            Slot::Read(name) => launch.reads[name],
            Slot::Write(output) => launch.writes[output],
        }
    }
}

/// The bodies of kernels, of which stages that do the same share one.
pub(crate) struct Distinct<'a, B> {
    /// Each body, with the names of its stages.
    pub all: Vec<(B, Vec<&'a str>)>,
    known: HashMap<String, usize>,
}

impl<B> Default for Distinct<'_, B> {
    fn default() -> Self {
        Distinct { all: Vec::new(), known: HashMap::new() }
    }
}

impl<'a, B> Distinct<'a, B> {
    /// Returns the number of a stage's body, whose text tells it from others.
    pub fn number(&mut self, text: &str, body: B, stage: &'a str) -> usize {
        let number = *self.known.entry(text.to_owned()).or_insert(self.all.len());
        if number == self.all.len() {
            self.all.push((body, Vec::new()));
        }
        let stages = &mut self.all[number].1;
        if !stages.contains(&stage) {
            stages.push(stage);
        }
        number
    }
}
