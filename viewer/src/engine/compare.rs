//! The same problem run in two ways in turn.

use std::time::Duration;

use abide::{CachePolicy, Choice, Execution, Result};

use super::{Opener, live};
use crate::setup::Setup;

/// Seconds of each turn.
const TURN: f64 = 0.5;
/// Turns of each way; the ways alternate, so that a clock that changes affects both.
const TURNS: usize = 3;
/// Length of an epoch; orders are looked for in between.
const EPOCH: Duration = Duration::from_millis(30);

/// A way of running.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The backend.
    pub backend: Choice,
    /// The schedule.
    pub execution: Execution,
    /// The place where a persistent run keeps its cells.
    pub cache: CachePolicy,
    /// Temporal depth.
    pub depth: String,
}

impl Variant {
    /// Returns the way in which a setup runs.
    pub fn of(setup: &Setup) -> Variant {
        Variant {
            backend: setup.backend,
            execution: setup.execution,
            cache: setup.cache,
            depth: setup.depth.clone(),
        }
    }

    /// Returns the setup run in this way.
    pub fn applied(&self, setup: &Setup) -> Setup {
        Setup {
            backend: self.backend,
            execution: self.execution,
            cache: self.cache,
            depth: self.depth.clone(),
            ..setup.clone()
        }
    }
}

/// The rates of two ways of running.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The outcome of each way: the backend, and the plan in one line.
    pub ways: [String; 2],
    /// GCells/s of each; 0 before its first turn.
    pub gcells_per_s: [f64; 2],
    /// Whether all turns are done.
    pub done: bool,
}

impl Comparison {
    /// Returns the second rate over the first, where both are known.
    pub fn ratio(&self) -> Option<f64> {
        let [first, second] = self.gcells_per_s;
        (first > 0.0 && second > 0.0).then(|| second / first)
    }
}

/// Runs both ways in turn; `report` gets the comparison after each turn, and `stop` is called between epochs.
pub fn compare(
    setup: &Setup,
    variants: &[Variant; 2],
    opener: &Opener,
    mut report: impl FnMut(Comparison),
    mut stop: impl FnMut() -> bool,
) -> Result<()> {
    let open =
        |variant: &Variant| live::open(&variant.applied(setup), opener).map(|(simulation, _)| simulation);
    let mut simulations = [open(&variants[0])?, open(&variants[1])?];
    let ways =
        std::array::from_fn(|i| format!("{}: {}", simulations[i].backend(), simulations[i].plan().summary()));
    let mut comparison = Comparison { ways, gcells_per_s: [0.0; 2], done: false };
    let mut totals = [(0u64, 0.0f64); 2];
    let mut batches = [1u64; 2];
    for turn in 0..TURNS {
        for way in 0..2 {
            let simulation = &mut simulations[way];
            let cells = simulation.problem().shape.cells() as f64;
            let depth = u64::from(simulation.plan().depth.max(1));
            let (mut steps, mut seconds) = (0, 0.0);
            while seconds < TURN {
                let batch = batches[way].div_ceil(depth) * depth;
                let took = simulation.advance(batch)?;
                (steps, seconds) = (steps + batch, seconds + took);
                let fitting = (batch as f64 * EPOCH.as_secs_f64() / took.max(1e-6)) as u64;
                batches[way] = fitting.clamp(1, batch.saturating_mul(8));
                if stop() {
                    return Ok(());
                }
            }
            // The first turn warms up; it counts only until there is another turn.
            let total = &mut totals[way];
            *total = if turn == 1 { (steps, seconds) } else { (total.0 + steps, total.1 + seconds) };
            comparison.gcells_per_s[way] = total.0 as f64 * cells / total.1 / 1e9;
            comparison.done = (turn, way) == (TURNS - 1, 1);
            report(comparison.clone());
        }
    }
    Ok(())
}
