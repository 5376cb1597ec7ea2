//! The window's orders to the run, and the run's answers.

use std::path::PathBuf;

use super::{Comparison, Keep, Recording, Started, Touch, Variant, View};
use crate::setup::Setup;

/// The speed at which a run advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As fast as the device can.
    Fastest,
    /// This many steps per frame, at most 60 frames per second.
    PerFrame(u64),
}

/// An order to the run's thread.
#[derive(Debug, Clone)]
pub enum Order {
    /// Ends the present run and starts this one, running or paused.
    Start {
        /// The setup to compute.
        setup: Box<Setup>,
        /// Whether it runs at once.
        run: bool,
    },
    /// Ends the present run and leaves nothing in its place.
    Clear,
    /// Advances until another order comes.
    Run,
    /// Stops after the current epoch.
    Pause,
    /// Advances exactly this many steps, then stops.
    Advance(u64),
    /// Sets the speed.
    Speed(Speed),
    /// Returns to the first step, with the parameters as they are now.
    Reset,
    /// Sets the part that frames show from now on.
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
    /// Writes files of the present state.
    Keep(Keep),
    /// Writes a frame at fixed intervals of steps from now on, or completes the recording in progress.
    Record(Option<Recording>),
    /// Runs the same problem in two ways in turn.
    Compare(Box<[Variant; 2]>),
    /// Ends a comparison.
    CompareNoMore,
}

/// An answer of the run's thread.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A simulation has started.
    Started(Box<Started>),
    /// An order failed; the run before it goes on.
    Failed {
        /// The activity that failed, as in `starting`.
        doing: &'static str,
        /// The reason and what to change.
        error: abide::Error,
    },
    /// A warning that the run goes on otherwise than was asked.
    Warning(String),
    /// A file was written.
    Wrote(PathBuf),
    /// The command line that reproduces the run on screen.
    Command(String),
    /// The state of a comparison.
    Compared(Comparison),
}
