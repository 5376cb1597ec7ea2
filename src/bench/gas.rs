//! Properties of real-gas mixtures at many points, timed and held to the CPU's.

use std::sync::Arc;

use super::timing::rates;
use super::{Settings, afford, begin};
use crate::backend::{Opened, Session};
use crate::expr::Looped;
use crate::gas::{Columns, GAS_CONSTANT, Interactions, Mixture, Points, Property, Sums, Table};
use crate::program::Problem;
use crate::{
    Array, Choice, DType, Error, Execution, Jam, LoopRows, Lowering, Options, Placement, Result, Shape,
};

/// The properties that a flow code asks for at every point.
pub const SIX: [&str; 6] = ["rho", "h", "cp", "c", "mu", "lambda"];

/// The species of a combustion chamber of liquid oxygen and methane.
const CHAMBER: [&str; 10] = ["CH4", "O2", "CO2", "H2O", "CO", "H2", "N2", "C2H6", "C2H4", "C3H8"];

/// The numbers of species that are timed.
const SIZES: [usize; 3] = [10, 33, 53];

/// A way in which sums over species become text: as terms or loops, the points and the turns of double sums that go through
/// loops together, and where tables lie.
type Way = (Lowering, Jam, LoopRows, Placement);

/// One turn after another.
const ALONE: LoopRows = LoopRows::Turns(1);

/// The ways of each mixture; the planner's own choice of what is left open first.
const WAYS: [Way; 12] = [
    (Lowering::Straight, Jam::Auto, LoopRows::Auto, Placement::Auto),
    (Lowering::Loops, Jam::Auto, LoopRows::Auto, Placement::Auto),
    (Lowering::Loops, Jam::Auto, ALONE, Placement::Memory),
    (Lowering::Loops, Jam::Auto, ALONE, Placement::Constant),
    (Lowering::Loops, Jam::Auto, ALONE, Placement::Shared),
    (Lowering::Jammed, Jam::Auto, LoopRows::Auto, Placement::Auto),
    (Lowering::Jammed, Jam::Points(2), ALONE, Placement::Memory),
    (Lowering::Jammed, Jam::Points(2), ALONE, Placement::Constant),
    (Lowering::Jammed, Jam::Points(2), ALONE, Placement::Shared),
    (Lowering::Jammed, Jam::Points(4), ALONE, Placement::Memory),
    (Lowering::Jammed, Jam::Points(4), ALONE, Placement::Constant),
    (Lowering::Jammed, Jam::Points(4), ALONE, Placement::Shared),
];

/// The ways beside those of mixtures whose formulas have double sums, as of pairs with k_ij.
const OF_ROWS: [Way; 10] = [
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(2), Placement::Memory),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(2), Placement::Constant),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(2), Placement::Shared),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(4), Placement::Memory),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(4), Placement::Constant),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(4), Placement::Shared),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(8), Placement::Memory),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(8), Placement::Constant),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(8), Placement::Shared),
    (Lowering::Jammed, Jam::Points(2), LoopRows::Turns(4), Placement::Shared),
];

/// The states whose properties are compared.
const COMPARED: usize = 2048;

/// The most by which properties may differ from the CPU's: relative, of h in R T.
const TOLERANCE: f64 = 1e-11;

/// A mixture that is timed: the species of a chamber, or as many of the table's first, without interactions or with
/// those of all pairs.
#[derive(Debug, Clone)]
pub struct GasCase {
    /// The number of species.
    pub species: usize,
    /// Whether every pair has a k_ij.
    pub is_interacting: bool,
    /// How sums over species become text: of terms, of loops that stay loops, or of loops that points share.
    pub lowering: Lowering,
    /// The points that share loops.
    pub jam: Jam,
    /// The turns of double sums that go through loops together.
    pub rows: LoopRows,
    /// Where tables of loops lie.
    pub tables: Placement,
    gas: Mixture,
}

/// The rate of a mixture's properties.
#[derive(Debug, Clone, PartialEq)]
pub struct GasRow {
    /// Points per second: the median of the runs.
    pub points_per_s: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// The operations of the formulas per second over the device's peak in f64, a multiply-add and a function counting
    /// as two and one; `None` where the device does not tell its peak.
    pub share_of_f64_peak: Option<f64>,
    /// Registers of a thread, and the bytes that it spills; `None` where no compiler tells.
    pub compiled: Option<[usize; 2]>,
    /// The plan in one line.
    pub plan: String,
    /// Where the properties differ from the CPU's.
    pub faults: Vec<String>,
}

impl GasCase {
    /// Returns all mixtures.
    pub fn all() -> Result<Vec<GasCase>> {
        let table = Table::builtin()?;
        let mut all = Vec::new();
        for species in SIZES {
            let names: Vec<&str> = match species == CHAMBER.len() {
                true => CHAMBER.to_vec(),
                false => table.species().iter().take(species).map(|species| &*species.name).collect(),
            };
            // Numbers without pattern from −0.05 to 0.1.
            let pairs = (0..species).flat_map(|j| (0..j).map(move |i| (i, j)));
            let pairs = pairs.map(|(i, j)| {
                let value = 0.15 * ((37 * i + 61 * j + 11) % 101) as f64 / 100.0 - 0.05;
                (names[i].to_owned(), names[j].to_owned(), value)
            });
            let interactions = Interactions::new(&table, pairs)?;
            for is_interacting in [true, false] {
                let gas = Mixture::of(&table, &names)?.fewest_operations();
                let gas = if is_interacting { gas.interactions(&interactions) } else { gas };
                let program = gas.program_of(&Property::named(&SIX)?, Sums::Loops)?;
                let mut looped = program.stages().iter().filter_map(|stage| stage.looped.as_ref());
                let of_rows = if looped.any(Looped::has_rows) { &OF_ROWS[..] } else { &[] };
                all.extend(WAYS.iter().chain(of_rows).map(|&(lowering, jam, rows, tables)| {
                    let gas = gas.clone();
                    GasCase { species, is_interacting, lowering, jam, rows, tables, gas }
                }));
            }
        }
        Ok(all)
    }

    /// Returns the problem of the six properties at so many points.
    pub fn problem(&self, points: usize) -> Result<Problem> {
        let sums = if self.lowering.keeps_loops() { Sums::Loops } else { Sums::Terms };
        let program = self.gas.program_of(&Property::named(&SIX)?, sums)?;
        Problem::new(Arc::new(program), Shape::new(&[points])?, DType::F64)
    }

    /// Returns the options of a run.
    pub fn options(&self) -> Options {
        let GasCase { lowering, jam, rows, tables, .. } = *self;
        Options { execution: Execution::Stepwise, lowering, jam, rows, tables, ..Options::default() }
    }

    /// Returns the word of the way in which sums become text: `straight-line`, `loops` or `jammed`, then the points that
    /// share loops, the turns of double sums that do if there are several, and where tables lie, as in `jammed-4-shared` and
    /// `loops-rows-8-constant`, where the planner does not choose.
    pub fn way(&self) -> String {
        let mut word = match self.lowering {
            lowering if lowering.keeps_loops() => lowering.name().to_owned(),
            _ => "straight-line".to_owned(),
        };
        if let Jam::Points(points) = self.jam {
            word += &format!("-{points}");
        }
        if let LoopRows::Turns(rows @ 2..) = self.rows {
            word += &format!("-rows-{rows}");
        }
        if self.tables != Placement::Auto {
            word += &format!("-{}", self.tables);
        }
        word
    }

    /// Returns random states: 300 to 2900 K, 0.1 to 30 MPa, all species.
    fn states(&self, points: usize) -> Columns {
        let mut random = fastrand::Rng::with_seed(20);
        let temperature = (0..points).map(|_| 300.0 + 2600.0 * random.f64()).collect();
        let pressure = (0..points).map(|_| 1e5 * 300f64.powf(random.f64())).collect();
        let mut fractions: Vec<Vec<f64>> = vec![Vec::with_capacity(points); self.species];
        let mut parts = vec![0.0; self.species];
        for _ in 0..points {
            parts.iter_mut().for_each(|part| *part = random.f64());
            let whole: f64 = parts.iter().sum();
            fractions.iter_mut().zip(&parts).for_each(|(column, part)| column.push(part / whole));
        }
        Columns {
            temperature: Array::F64(temperature),
            pressure: Array::F64(pressure),
            fractions: fractions.into_iter().map(Array::F64).collect(),
        }
    }

    /// Compares the first of a session's properties with the CPU's.
    fn faults(&self, states: &Columns, session: &mut dyn Session, points: usize) -> Result<Vec<String>> {
        let count = points.min(COMPARED);
        let first = |array: &Array| match array {
            Array::F64(values) => Array::F64(values[..count].to_vec()),
            other => other.clone(),
        };
        let few = Columns {
            temperature: first(&states.temperature),
            pressure: first(&states.pressure),
            fractions: states.fractions.iter().map(first).collect(),
        };
        let own = Points::new(&self.gas, &Property::named(&SIX)?, count, Choice::CPU)?.evaluate(&few)?;
        let mut faults = Vec::new();
        for (number, (name, own)) in SIX.into_iter().zip(&own).enumerate() {
            let found = session.read_window(2 + self.species + number, [0; 3], [1, 1, count])?;
            let (Array::F64(own), Array::F64(found), Array::F64(t)) = (own, &found, &few.temperature) else {
                continue;
            };
            // The molar mass is between those of the lightest and the heaviest species: R T/M of the heaviest is the
            // smallest unit.
            let heaviest = self.gas.species().iter().map(|species| species.molar_mass).fold(0.0, f64::max);
            let error = |i: usize| {
                let unit = if name == "h" { GAS_CONSTANT * t[i] / heaviest } else { own[i].abs() };
                ((found[i] - own[i]) / unit).abs()
            };
            let worst = (0..count).map(error).fold(0.0, |a: f64, b| if a.is_nan() || a > b { a } else { b });
            if worst.is_nan() || worst > TOLERANCE {
                faults.push(format!("{name} differs from the CPU's by {worst:.1e}"));
            }
        }
        Ok(faults)
    }
}

/// Times the properties of a mixture at the points of its problem, from random states, and compares some with the CPU's.
///
/// # Errors
///
/// Those of a plan and a run; [`Error::Limit`] for no runs.
pub fn measure_gas(
    opened: &Opened,
    case: &GasCase,
    problem: &Problem,
    settings: &Settings,
) -> Result<GasRow> {
    abide_cpu::start_threads()?;
    afford(problem, "memory to measure and compare", 3, "choose fewer --points")?;
    let points = problem.shape.cells();
    let states = case.states(points);
    let mut start = vec![states.temperature.try_clone()?, states.pressure.try_clone()?];
    for column in &states.fractions {
        start.push(column.try_clone()?);
    }
    for _ in SIX {
        start.push(Array::zeros(DType::F64, points)?);
    }
    let mut session = begin(opened, problem, &case.options(), &start)?;
    drop(start);
    let mut steps = 1;
    session.advance(steps)?;
    let mut seconds = session.advance(steps)?;
    while seconds < 0.25 * settings.seconds {
        steps *= 2;
        seconds = session.advance(steps)?;
    }
    let steps = ((settings.seconds * steps as f64 / seconds.max(1e-9)).ceil() as u64).max(1);
    let mut runs = Vec::new();
    for _ in 0..settings.repeats {
        runs.push(points as f64 * steps as f64 / session.advance(steps)?.max(1e-9));
    }
    let found =
        rates(&runs).ok_or_else(|| Error::limit("timed runs", 0, "at least 1", "give one or more"))?;
    let faults = case.faults(&states, session.as_mut(), points)?;
    let plan = session.plan();
    let peak = opened.backend.device().flops(DType::F64);
    let flops = problem.program.simplified(DType::F64).flops() as f64;
    let most = |of: fn(&crate::plan::Compiled) -> usize| plan.compiled.iter().map(of).max();
    Ok(GasRow {
        points_per_s: found.median,
        spread_percent: found.spread_percent,
        share_of_f64_peak: (peak > 0.0).then(|| found.median * flops / peak),
        compiled: most(|kernel| kernel.registers).zip(most(|kernel| kernel.spill_bytes)).map(|(a, b)| [a, b]),
        plan: plan.summary(),
        faults,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    #[test]
    fn every_case_has_words_of_its_own_and_a_plan() {
        let cases = GasCase::all().unwrap();
        let words = |case: &GasCase| (case.species, case.is_interacting, case.way());
        let all: std::collections::HashSet<_> = cases.iter().map(words).collect();
        // Only pairs with k_ij are double sums of these mixtures.
        let count = 3 * (2 * WAYS.len() + OF_ROWS.len());
        assert_eq!((all.len(), cases.len()), (count, count));
        assert!(all.iter().all(|(_, is_interacting, way)| *is_interacting || !way.contains("-rows-")));
        assert!(all.contains(&(53, true, "jammed-4-shared".to_owned())));
        assert!(all.contains(&(53, true, "loops-rows-8-constant".to_owned())));
        let device = crate::DeviceSpec::preset("h200").unwrap();
        for case in cases.iter().filter(|case| case.species == 33) {
            crate::plan::plan(&case.problem(1000).unwrap(), &device, &case.options()).unwrap();
        }
    }

    #[test]
    fn a_mixture_is_timed_and_compared() {
        let case = GasCase::all().unwrap().remove(0);
        assert_eq!((case.species, case.is_interacting), (10, true));
        let problem = case.problem(3001).unwrap();
        let settings = Settings { seconds: 0.001, repeats: 1, ..Settings::quick() };
        let row = measure_gas(&backend::open("cpu").unwrap(), &case, &problem, &settings).unwrap();
        assert!(row.faults.is_empty() && row.points_per_s > 0.0, "{row:?}");
    }
}
