//! What the window asks of the run, and what it is told.

use std::path::PathBuf;

use super::{Comparison, Keep, Recording, Started, Touch, Variant, View};
use crate::setup::Setup;

/// How fast a run advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As fast as the device can.
    Fastest,
    /// This many steps a frame, 60 frames a second at most.
    PerFrame(u64),
}

/// An order to the run's thread.
#[derive(Debug, Clone)]
pub enum Order {
    /// Ends what runs and starts this, running or paused.
    Start {
        /// What to compute.
        setup: Box<Setup>,
        /// Whether it runs at once.
        run: bool,
    },
    /// Ends what runs and leaves nothing in its place.
    Clear,
    /// Advances until told otherwise.
    Run,
    /// Stops after the current epoch.
    Pause,
    /// Advances exactly this many steps, then stops.
    Advance(u64),
    /// How fast to advance.
    Speed(Speed),
    /// Back to the first step, with the parameters as they are now.
    Reset,
    /// What frames show from now on.
    View(View),
    /// Sets a parameter for the steps that follow.
    Parameter {
        /// Its name.
        name: String,
        /// Its new value.
        value: f64,
    },
    /// Changes cells of a field.
    Touch(Touch),
    /// Fills a field from a file, fitted to the domain.
    Load {
        /// The field.
        field: String,
        /// A `.npy`, `.png` or `.jpg` file.
        path: PathBuf,
    },
    /// Writes what there is now.
    Keep(Keep),
    /// Writes a frame every so many steps from now on, or completes what is being written.
    Record(Option<Recording>),
    /// Runs the same problem in two ways in turn.
    Compare(Box<[Variant; 2]>),
    /// Ends a comparison.
    CompareNoMore,
}

/// What the run's thread has to say.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A simulation has started.
    Started(Box<Started>),
    /// An order failed; what ran before goes on.
    Failed {
        /// What was being done, as in `starting`.
        doing: &'static str,
        /// Why it failed and what to change.
        error: abide::Error,
    },
    /// Something that goes on otherwise than was asked.
    Warning(String),
    /// A file was written.
    Wrote(PathBuf),
    /// The command line that reproduces what is on screen.
    Command(String),
    /// How a comparison stands.
    Compared(Comparison),
}
