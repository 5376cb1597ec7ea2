//! Rates of several devices beside one: of a domain that grows with them, and of one that is divided.

use abide::backend::Opened;
use abide::program::Problem;
use abide::{Array, Boundaries, Boundary, DType, Error, Result, Shape};

use super::check::differs;
use super::measure::random;
use super::timing::{Timed, rates};
use super::{Settings, afford, begin, problem};

/// How a domain goes with the number of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// Each device has as many planes as one device alone.
    Weak,
    /// The domain of one device is divided.
    Strong,
}

impl Scaling {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Scaling::Weak => "weak",
            Scaling::Strong => "strong",
        }
    }
}

/// A stencil on the domain of one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingCase {
    /// How the domain goes with the number of devices.
    pub scaling: Scaling,
    /// The stencil.
    pub stencil: &'static str,
    /// The extents for one device, slowest axis first.
    pub extents: &'static [usize],
    /// The boundary of all sides.
    pub boundary: Boundary,
    /// The type of the field.
    pub dtype: DType,
}

/// Domains of one device that grow with the devices, and those that are divided.
const DOMAINS: [(Scaling, &str, &[usize]); 8] = [
    (Scaling::Weak, "2d5pt", &[8352, 8352]),
    (Scaling::Weak, "2d5pt", &[2304, 2304]),
    (Scaling::Weak, "3d7pt", &[512, 512, 512]),
    (Scaling::Strong, "2d5pt", &[8352, 8352]),
    (Scaling::Strong, "2d5pt", &[8192, 8192]),
    (Scaling::Strong, "2d5pt", &[2304, 2304]),
    (Scaling::Strong, "3d7pt", &[512, 512, 512]),
    (Scaling::Strong, "3d7pt", &[1024, 1024, 1024]),
];

impl ScalingCase {
    /// Returns all cases: each domain in both types, fixed and as a ring of devices.
    pub fn all() -> Vec<ScalingCase> {
        let ways =
            [DType::F64, DType::F32].map(|dtype| [Boundary::Fixed, Boundary::Periodic].map(|b| (dtype, b)));
        let case = |(scaling, stencil, extents)| {
            let of = move |(dtype, boundary)| ScalingCase { scaling, stencil, extents, boundary, dtype };
            ways.into_iter().flatten().map(of)
        };
        DOMAINS.into_iter().flat_map(case).collect()
    }

    /// Returns the problem that this number of devices advance jointly.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the domain has too many cells to be counted.
    pub fn problem(&self, devices: usize) -> Result<Problem> {
        let mut extents = self.extents.to_vec();
        if self.scaling == Scaling::Weak {
            extents[0] = extents[0].saturating_mul(devices.max(1));
        }
        let mut problem = problem(self.stencil, Shape::new(&extents)?, self.dtype)?;
        problem.boundaries = Boundaries::all(self.boundary);
        problem.check()?;
        Ok(problem)
    }
}

/// What several devices reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingRow {
    /// The devices that ran; fewer than were asked for where the domain is too thin.
    pub devices: usize,
    /// How they exchanged planes; empty for one.
    pub exchange: &'static str,
    /// The median rate in 10⁹ cells per second; every cell counts once per step.
    pub gcells_per_s: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// The share of the runs' time in which devices exchanged planes or waited, their mean.
    pub exchange_share: f64,
    /// The plan in one line.
    pub plan: String,
    /// Where the fields differ from those of one device after the timed steps.
    pub faults: Vec<String>,
}

/// Times a problem of [`ScalingCase::problem`] on several devices from random values, and compares all fields after the
/// timed steps with those that `single` makes.
///
/// # Errors
///
/// Those of a plan and a run; [`Error::Limit`] for no runs.
pub fn measure_scaling(
    opened: &Opened,
    single: &Opened,
    problem: &Problem,
    settings: &Settings,
) -> Result<ScalingRow> {
    abide_cpu::start_threads()?;
    afford(problem, "memory to measure and compare", 5, "leave large domains out with --most-cells")?;
    let start = random(problem)?;
    let mut timed = Timed::new(begin(opened, problem, &settings.options, &start)?, &start).in_whole_passes();
    let filling = timed.calibrate(settings.seconds)?;
    let steps = timed.whole(settings.steps.unwrap_or(filling.max(settings.least_steps)));
    timed.session().take_ranks()?;
    let cells = problem.shape.cells() as f64;
    let (mut runs, mut ranks) = (Vec::new(), Vec::new());
    for _ in 0..settings.repeats {
        runs.push(cells / timed.run(steps)?.max(1e-15) / 1e9);
        ranks = timed.session().take_ranks()?;
    }
    let found =
        rates(&runs).ok_or_else(|| Error::limit("timed runs", 0, "at least 1", "give one or more"))?;
    let plan = timed.session().plan().summary();
    let (state, warm_up) = (timed.read()?, timed.whole(Timed::warm_up(steps)));
    drop(timed);
    let fault = match ranks.len() {
        0 => None,
        _ => {
            let all = warm_up + steps;
            differs(problem, &alone(single, problem, settings, &start, all)?, &state)
                .map(|how| format!("after {all} steps from those of one device: {how}"))
        }
    };
    let share = |rank: &abide::backend::RankReport| 1.0 - rank.efficiency;
    let shares = ranks.iter().map(share).fold(0.0, |all, own| all + own);
    Ok(ScalingRow {
        devices: ranks.len().max(1),
        exchange: ranks.first().map_or("", |rank| rank.exchange),
        gcells_per_s: found.median,
        spread_percent: found.spread_percent,
        exchange_share: shares / ranks.len().max(1) as f64,
        plan,
        faults: fault.into_iter().collect(),
    })
}

/// Returns the fields that one device makes in so many steps.
fn alone(
    single: &Opened,
    problem: &Problem,
    settings: &Settings,
    start: &[Array],
    steps: u64,
) -> Result<Vec<Array>> {
    let mut timed = Timed::new(begin(single, problem, &settings.options, start)?, start);
    timed.rerun(steps)?;
    timed.read()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::backend::{Devices, open, open_on};

    #[test]
    fn domains_grow_or_are_divided() {
        let cases = ScalingCase::all();
        assert_eq!(cases.len(), 32);
        for case in cases {
            let [one, four] = [1, 4].map(|devices| case.problem(devices).unwrap().shape.padded());
            let grown = match case.scaling {
                Scaling::Weak => 4,
                Scaling::Strong => 1,
            };
            let all = |extents: [usize; 3]| extents.iter().product::<usize>();
            assert_eq!(all(four), grown * all(one), "{case:?}");
        }
    }

    /// Ranks of a CPU are timed, have the bits of one, and report how they exchanged; a wrong state is reported.
    #[test]
    fn several_are_timed_and_compared_with_one() {
        let case = ScalingCase {
            scaling: Scaling::Weak,
            stencil: "2d5pt",
            extents: &[33, 21],
            boundary: Boundary::Periodic,
            dtype: DType::F32,
        };
        let problem = case.problem(2).unwrap();
        let settings = Settings { steps: Some(7), ..Settings::quick() };
        let (one, two) = (open("cpu").unwrap(), open_on("cpu", &Devices::Count(2)).unwrap());
        let row = measure_scaling(&two, &one, &problem, &settings).unwrap();
        assert_eq!((row.devices, row.exchange, &row.faults[..]), (2, "messages", &[][..]));
        assert!(row.gcells_per_s > 0.0 && (0.0..1.0).contains(&row.exchange_share), "{row:?}");
        let single = measure_scaling(&one, &one, &problem, &settings).unwrap();
        assert_eq!((single.devices, single.exchange), (1, ""));
    }
}
