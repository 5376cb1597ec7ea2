//! The part of a plan that is for several devices, each of which advances a slab of the domain.

use std::ops::Range;

use serde::Serialize;

use super::Plan;
use super::description::Line;
use super::options::Exchanging;
use crate::units::count;

/// The part of a plan that is for several devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranks {
    /// The axis that is cut.
    pub axis: &'static str,
    /// The planes of each rank, in cells of the whole domain.
    pub own: Vec<Range<usize>>,
    /// Planes of a halo at an inner side.
    pub halo: usize,
    /// Steps between two exchanges.
    pub depth: u32,
    /// How planes are to be exchanged.
    pub exchange: Exchanging,
    /// The most bytes that a rank sends in an exchange.
    pub exchange_bytes: f64,
    /// Seconds that an exchange is estimated to take.
    pub exchange_seconds: f64,
    /// The most reductions of a step, each of which gathers a part from every device.
    pub reductions: usize,
    /// The plan of each rank's slab.
    #[serde(skip)]
    pub slabs: Vec<Plan>,
}

impl Ranks {
    /// Returns the words that a summary begins with.
    pub(super) fn summary(&self) -> String {
        format!("{} devices, exchanging every {}, each ", self.own.len(), count(self.depth as usize, "step"))
    }

    /// Returns the lines of an explanation.
    pub(super) fn lines(&self) -> Vec<Line> {
        let reductions = format!(
            "{} a step, each gathered from all devices and finished by each",
            count(self.reductions, "reduction")
        );
        let reductions = (self.reductions > 0).then_some(("reductions", reductions));
        let lines = [
            (
                "devices",
                format!("{}, each a slab of {}: planes {}", self.own.len(), self.axis, planes(&self.own)),
            ),
            (
                "exchange",
                format!(
                    "every {}, halos of {}; a device sends {:.1} KB at most, estimated at {:.1} µs",
                    count(self.depth as usize, "step"),
                    count(self.halo, "plane"),
                    self.exchange_bytes / 1e3,
                    self.exchange_seconds * 1e6,
                ),
            ),
        ];
        let last = (
            "each device",
            "what follows is said of one device's slab; cells and bytes are those of all".to_owned(),
        );
        lines.into_iter().chain(reductions).chain([last]).collect()
    }
}

/// Returns the planes of all ranks in words, of many the first and the last.
fn planes(own: &[Range<usize>]) -> String {
    /// The most ranks that are listed one by one.
    const MOST: usize = 8;
    let listed = |own: &[Range<usize>]| -> Vec<String> {
        own.iter().map(|own| format!("{}..{}", own.start, own.end)).collect()
    };
    match own {
        [first @ .., last] if own.len() > MOST => {
            let first = listed(&first[..MOST / 2]).join(", ");
            format!("{first}, … {}..{}", last.start, last.end)
        }
        all => listed(all).join(", "),
    }
}
