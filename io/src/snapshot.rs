//! What a file of a run's state holds.

use std::borrow::Cow;

use abide_core::program::Space;
use abide_core::{Array, Shape};

use super::Provenance;

/// A field's values and where they stand.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// The field's name.
    pub name: Cow<'a, str>,
    /// Its values; in a batch those of all members, one after another.
    pub values: Cow<'a, Array>,
    /// Its extents, in a batch each member's.
    pub shape: Shape,
    /// Where the values stand.
    pub space: Space,
}

impl<'a> Placed<'a> {
    /// Describes a field whose values stand at their indices.
    pub fn new(name: &'a str, values: &'a Array, shape: Shape) -> Placed<'a> {
        Placed { name: name.into(), values: Cow::Borrowed(values), shape, space: Space::default() }
    }
}

/// Fields of a run after a step.
#[derive(Debug, Clone, Default)]
pub struct Snapshot<'a> {
    /// The number of members of a batch.
    pub members: Option<usize>,
    /// The fields.
    pub fields: Vec<Placed<'a>>,
    /// Steps done since the start.
    pub step: u64,
    /// The time, in the units of the program; the step, where it has none.
    pub time: f64,
    /// The computed scalars.
    pub scalars: Vec<(String, f64)>,
    /// Where the result comes from.
    pub provenance: Option<Cow<'a, Provenance>>,
}
