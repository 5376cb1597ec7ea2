//! The six properties of a mixture at random states.

use abide::backend::Session;
use abide::gas::{Columns, GAS_CONSTANT, Mixture, Points, Property, States as Given, Sums};
use abide::program::Program;
use abide::{Array, Choice, DType, Lowering, Result, Team};

/// The properties that a flow code asks for at every point.
pub const SIX: [&str; 6] = ["rho", "h", "cp", "c", "mu", "lambda"];

/// The most by which properties may differ from the CPU's: relative, of h in R T.
const TOLERANCE: f64 = 1e-11;

/// A mixture whose properties are computed.
#[derive(Debug, Clone)]
pub(super) struct Properties(pub Mixture);

/// States in the order of the fields that a program begins from.
pub(super) struct States {
    columns: Columns,
    points: usize,
}

impl Properties {
    /// Returns the program, with sums over species as loops where they are kept, and as trees where a team shares them.
    pub fn program(&self, lowering: Lowering, team: Team) -> Result<Program> {
        let sums = match (lowering, team) {
            (Lowering::Team, Team::Threads(lanes)) => Sums::Trees(lanes as usize),
            // The planner chooses of formulas with loops.
            _ if lowering.keeps_loops() || lowering == Lowering::Auto => Sums::Loops,
            _ => Sums::Terms,
        };
        Given { sums, ..Given::default() }.program(&self.0, &Property::named(&SIX)?)
    }

    /// Returns random states: 300 to 2900 K, 0.1 to 30 MPa, all species.
    pub fn states(&self, points: usize) -> Result<States> {
        let species = self.0.species().len();
        let mut random = fastrand::Rng::with_seed(20);
        let temperature = (0..points).map(|_| 300.0 + 2600.0 * random.f64()).collect();
        let pressure = (0..points).map(|_| 1e5 * 300f64.powf(random.f64())).collect();
        let mut fractions: Vec<Vec<f64>> = vec![Vec::with_capacity(points); species];
        let mut parts = vec![0.0; species];
        for _ in 0..points {
            parts.iter_mut().for_each(|part| *part = random.f64());
            let whole: f64 = parts.iter().sum();
            fractions.iter_mut().zip(&parts).for_each(|(column, part)| column.push(part / whole));
        }
        let columns = Columns {
            given: [Array::F64(temperature), Array::F64(pressure)],
            fractions: fractions.into_iter().map(Array::F64).collect(),
        };
        Ok(States { columns, points })
    }

    /// Compares a session's properties with the CPU's at the states that it began from, the first of its own.
    pub fn faults(&self, states: Vec<Array>, session: &mut dyn Session) -> Result<Vec<String>> {
        let species = self.0.species().len();
        let mut states = states.into_iter();
        let (Some(temperature), Some(pressure)) = (states.next(), states.next()) else {
            return Ok(Vec::new());
        };
        let few = Columns { given: [temperature, pressure], fractions: states.take(species).collect() };
        let count = few.given[0].len();
        let own = Points::new(&self.0, Given::LOOPS, &Property::named(&SIX)?, count, Choice::CPU)?
            .evaluate(&few)?;
        let mut faults = Vec::new();
        for (number, (name, own)) in SIX.into_iter().zip(&own).enumerate() {
            let found = session.read_window(2 + species + number, [0; 3], [1, 1, count])?;
            let (Array::F64(own), Array::F64(found), Array::F64(t)) = (own, &found, &few.given[0]) else {
                continue;
            };
            // The molar mass is between those of the lightest and the heaviest species: R T/M of the heaviest is the
            // smallest unit.
            let heaviest = self.0.species().iter().map(|species| species.molar_mass).fold(0.0, f64::max);
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

impl States {
    /// Returns the fields that a program of the properties begins from.
    pub fn start(self) -> Result<Vec<Array>> {
        let Columns { given, fractions } = self.columns;
        let mut start = Vec::from(given);
        start.extend(fractions);
        for _ in SIX {
            start.push(Array::zeros(DType::F64, self.points)?);
        }
        Ok(start)
    }
}
