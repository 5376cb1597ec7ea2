//! Properties of real-gas mixtures, and a kernel of products of components, at many points: timed and held to the CPU's.

mod properties;
mod slides;

use std::sync::Arc;

use properties::Properties;
pub use properties::SIX;

use super::timing::rates;
use super::{Settings, afford, begin};
use abide::backend::Opened;
use abide::expr::Looped;
use abide::gas::{Interactions, Mixture, Property, States, Table};
use abide::program::Problem;
use abide::{
    Array, DType, Error, Execution, Jam, LoopRows, Lowering, Options, Placement, Result, Shape, Team,
};

/// The species of a combustion chamber of liquid oxygen and methane.
const CHAMBER: [&str; 10] = ["CH4", "O2", "CO2", "H2O", "CO", "H2", "N2", "C2H6", "C2H4", "C3H8"];

/// The numbers of species that are timed.
const SIZES: [usize; 3] = [10, 33, 53];

/// A way in which sums over species become text: as terms or loops, the points and the turns of double sums that share
/// loops, and where tables lie.
type Way = (Lowering, Jam, LoopRows, Placement);

/// One turn after another.
const ALONE: LoopRows = LoopRows::Turns(1);

/// The ways of each mixture; the planner's own choice of what is left open first.
const WAYS: [Way; 13] = [
    (Lowering::Auto, Jam::Auto, LoopRows::Auto, Placement::Auto),
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

/// The threads of teams that share sums over species, which are trees then, or the rows of products.
const TEAMS: [usize; 4] = [4, 8, 16, 32];

/// The ways of products of components, which have no tables: the planner's own, which a CPU has alone; loops turn by turn; and turns
/// of the outer loop jammed, and points. Written out, NVRTC compiles 4096 results for minutes and spills 200 kB of each thread.
const OF_PRODUCTS: [Way; 9] = [
    (Lowering::Auto, Jam::Auto, LoopRows::Auto, Placement::Auto),
    (Lowering::Loops, Jam::Auto, ALONE, Placement::Auto),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(2), Placement::Auto),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(4), Placement::Auto),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(8), Placement::Auto),
    (Lowering::Loops, Jam::Auto, LoopRows::Turns(16), Placement::Auto),
    (Lowering::Jammed, Jam::Points(2), ALONE, Placement::Auto),
    (Lowering::Jammed, Jam::Points(2), LoopRows::Turns(8), Placement::Auto),
    (Lowering::Jammed, Jam::Points(4), ALONE, Placement::Auto),
];

/// The states whose results are compared.
const COMPARED: usize = 2048;

/// What is computed at each point.
#[derive(Debug, Clone)]
enum Formulas {
    /// The six properties of a mixture.
    Properties(Box<Properties>),
    /// Products of components.
    Products,
}

/// What is timed, in a way in which loops become text: the properties of a mixture, of the species of a chamber or as many of
/// the table's first, without interactions or with those of all pairs; or products of components.
#[derive(Debug, Clone)]
pub struct GasCase {
    /// The number of species.
    pub species: usize,
    /// Whether every pair has a k_ij; `None` where there are no pairs.
    pub is_interacting: Option<bool>,
    /// How loops over species become text: of terms, of loops that stay loops, or of loops that points share.
    pub lowering: Lowering,
    /// The points that share loops.
    pub jam: Jam,
    /// The threads that share the loops of a point.
    pub team: Team,
    /// The turns of double sums that share loops.
    pub rows: LoopRows,
    /// Where tables of loops lie.
    pub tables: Placement,
    formulas: Formulas,
}

/// The rate of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct GasRow {
    /// Points per second: the median of the runs.
    pub points_per_s: f64,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// The operations of the formulas per second over the device's peak in f64, a multiply-add and a function counting
    /// as two and one; `None` where the device does not report its peak.
    pub share_of_f64_peak: Option<f64>,
    /// Registers of a thread, and the bytes that it spills; `None` where no compiler reports them.
    pub compiled: Option<[usize; 2]>,
    /// The plan in one line.
    pub plan: String,
    /// Where the results differ from the CPU's.
    pub faults: Vec<String>,
}

impl GasCase {
    /// Returns all cases.
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
                let program = States::LOOPS.program(&gas, &Property::named(&SIX)?)?;
                let mut looped = program.stages().iter().filter_map(|stage| stage.looped.as_ref());
                let of_rows = if looped.any(Looped::has_rows) { &OF_ROWS[..] } else { &[] };
                let formulas = Formulas::Properties(Box::new(Properties(gas)));
                let ways = WAYS.iter().chain(of_rows);
                all.extend(GasCase::of(species, Some(is_interacting), &formulas, ways));
            }
        }
        all.extend(GasCase::of(slides::SPECIES, None, &Formulas::Products, OF_PRODUCTS.iter()));
        Ok(all)
    }

    /// Returns the cases of formulas in some ways, and by teams.
    fn of<'w>(
        species: usize,
        is_interacting: Option<bool>,
        formulas: &Formulas,
        ways: impl Iterator<Item = &'w Way>,
    ) -> impl Iterator<Item = GasCase> {
        let alone = ways.map(|way| (*way, Team::Auto));
        let by_team = (Lowering::Team, Jam::Auto, LoopRows::Auto, Placement::Auto);
        let teams = TEAMS.iter().map(move |&threads| (by_team, Team::Threads(threads as u32)));
        alone.chain(teams).map(move |((lowering, jam, rows, tables), team)| {
            let formulas = formulas.clone();
            GasCase { species, is_interacting, lowering, jam, team, rows, tables, formulas }
        })
    }

    /// Returns the name of the case: `properties`, or `slides` of the products.
    pub fn name(&self) -> &'static str {
        match self.formulas {
            Formulas::Properties(_) => "properties",
            Formulas::Products => "slides",
        }
    }

    /// Returns the points unless a number is asked for.
    pub fn points(&self) -> usize {
        match self.formulas {
            Formulas::Properties(_) => 1 << 20,
            Formulas::Products => slides::POINTS,
        }
    }

    /// Returns the problem at so many points.
    pub fn problem(&self, points: usize) -> Result<Problem> {
        let program = match &self.formulas {
            Formulas::Properties(own) => own.program(self.lowering, self.team)?,
            Formulas::Products => slides::program()?,
        };
        Problem::new(Arc::new(program), Shape::new(&[points])?, DType::F64)
    }

    /// Returns the options of a run.
    pub fn options(&self) -> Options {
        let GasCase { lowering, jam, team, rows, tables, .. } = *self;
        Options { execution: Execution::Stepwise, lowering, jam, team, rows, tables, ..Options::default() }
    }

    /// Returns the word of the way in which loops become text: `straight-line`, `loops`, `jammed`, `team` or the planner's `auto`,
    /// then the points that share loops or the threads that share a point's, the turns of double sums that do if there are several, and where tables lie, as in `jammed-4-shared` and
    /// `loops-rows-8-constant`, where the planner does not choose.
    pub fn way(&self) -> String {
        let mut word = match self.lowering {
            Lowering::Straight => "straight-line".to_owned(),
            lowering => lowering.name().to_owned(),
        };
        if let Jam::Points(points) = self.jam {
            word += &format!("-{points}");
        }
        if let Team::Threads(threads) = self.team {
            word += &format!("-{threads}");
        }
        match self.rows {
            // Without a place of tables, only this word distinguishes one turn from the planner's own choice.
            LoopRows::Turns(rows) if rows > 1 || self.tables == Placement::Auto && self.jam == Jam::Auto => {
                word += &format!("-rows-{rows}");
            }
            LoopRows::Turns(_) | LoopRows::Auto => {}
        }
        if self.tables != Placement::Auto {
            word += &format!("-{}", self.tables);
        }
        word
    }
}

/// Times a case at the points of its problem, from random states, and compares some of the results with the CPU's.
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
    let start = match &case.formulas {
        Formulas::Properties(own) => own.states(points)?.start()?,
        Formulas::Products => slides::start(points)?,
    };
    let mut session = begin(opened, problem, &case.options(), &start)?;
    // Of the states only those are needed further that are compared.
    let few = first(start, points.min(COMPARED));
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
    let faults = match &case.formulas {
        Formulas::Properties(own) => own.faults(few, session.as_mut())?,
        Formulas::Products => slides::faults(case, few, session.as_mut())?,
    };
    let plan = session.plan();
    let peak = opened.backend.device().flops(DType::F64);
    let flops = problem.program.simplified(DType::F64).flops() as f64;
    let most = |of: fn(&abide::plan::Compiled) -> usize| plan.compiled.iter().map(of).max();
    Ok(GasRow {
        points_per_s: found.median,
        spread_percent: found.spread_percent,
        share_of_f64_peak: (peak > 0.0).then(|| found.median * flops / peak),
        compiled: most(|kernel| kernel.registers).zip(most(|kernel| kernel.spill_bytes)).map(|(a, b)| [a, b]),
        plan: plan.summary(),
        faults,
    })
}

/// Returns the first values of each array.
fn first(all: Vec<Array>, count: usize) -> Vec<Array> {
    let first = |array| match array {
        Array::F32(values) => Array::F32(values[..count].to_vec()),
        Array::F64(values) => Array::F64(values[..count].to_vec()),
    };
    all.into_iter().map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::backend;

    #[test]
    fn every_case_has_words_of_its_own_and_a_plan() {
        let cases = GasCase::all().unwrap();
        let words = |case: &GasCase| (case.species, case.is_interacting, case.way());
        let all: std::collections::HashSet<_> = cases.iter().map(words).collect();
        // Only pairs with k_ij are double sums of these mixtures.
        let count = 3 * (2 * (WAYS.len() + TEAMS.len()) + OF_ROWS.len()) + OF_PRODUCTS.len() + TEAMS.len();
        assert_eq!((all.len(), cases.len()), (count, count));
        assert!(
            all.iter()
                .all(|(_, is_interacting, way)| *is_interacting != Some(false) || !way.contains("-rows-"))
        );
        assert!(all.contains(&(53, Some(true), "jammed-4-shared".to_owned())));
        assert!(all.contains(&(53, Some(true), "loops-rows-8-constant".to_owned())));
        assert!(all.contains(&(64, None, "loops-rows-1".to_owned())));
        assert!(all.contains(&(64, None, "jammed-2-rows-8".to_owned())));
        assert!(all.contains(&(64, None, "team-16".to_owned())));
        let device = abide::DeviceSpec::preset("h200").unwrap();
        for case in cases.iter().filter(|case| case.species == 33 || case.name() == "slides") {
            abide::plan::plan(&case.problem(1000).unwrap(), &device, &case.options()).unwrap();
        }
    }

    #[test]
    fn cases_are_timed_and_compared() {
        let all = GasCase::all().unwrap();
        let products = all.iter().find(|case| case.name() == "slides").unwrap();
        assert_eq!((all[0].species, all[0].is_interacting), (10, Some(true)));
        for (case, points) in [(&all[0], 3001), (products, 37)] {
            let problem = case.problem(points).unwrap();
            let settings = Settings { seconds: 0.001, repeats: 1, ..Settings::quick() };
            let row = measure_gas(&backend::open("cpu").unwrap(), case, &problem, &settings).unwrap();
            assert!(row.faults.is_empty() && row.points_per_s > 0.0, "{row:?}");
        }
    }
}
