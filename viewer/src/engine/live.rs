//! The simulation that runs, and its recovery when its device is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use abide::backend::Kind;
use abide::{Array, Builder, Choice, Error, Plan, Problem, Result, Simulation};

use super::{OnDevice, Opener};
use crate::setup::{Setup, Source};

/// The least time between copies of the state, which are kept in case the device is lost.
const RESCUE_INTERVAL: Duration = Duration::from_secs(5);
/// The most that these copies may take of a run's time.
const RESCUE_SHARE: f64 = 0.02;

/// A simulation that has just started.
#[derive(Debug, Clone)]
pub struct Started {
    /// Number of the start.
    pub run: u64,
    /// The setup that was asked for.
    pub setup: Setup,
    /// The problem.
    pub problem: Problem,
    /// The plan that runs.
    pub plan: Arc<Plan>,
    /// The backend that runs it.
    pub backend: &'static str,
    /// The deviations from what was asked, each with its reason.
    pub notes: Vec<String>,
    /// The step from which the simulation goes on.
    pub step: u64,
}

/// A simulation, the setup it was started from, and whether it was changed by hand since.
pub struct Live {
    pub setup: Setup,
    pub simulation: Simulation,
    /// Whether the fields are no longer those that the setup leads to.
    pub touched: bool,
    /// Whether the simulation runs on the window's device.
    shared: bool,
    rescue: Option<Rescue>,
}

/// The state at some step, in the machine's memory.
struct Rescue {
    taken: Instant,
    /// Time until the next copy.
    rest: Duration,
    step: u64,
    fields: Vec<(String, Array)>,
    scalars: Vec<(String, f64)>,
}

/// Opens a setup; returns also whether the opener opened its backend.
pub fn open(setup: &Setup, opener: &Opener) -> Result<(Simulation, bool)> {
    let own = opener(setup.backend);
    let mut builder = setup.builder()?;
    if let Some(opened) = &own {
        builder = builder.on(opened);
    }
    Ok((single(builder)?, own.is_some()))
}

/// Builds a simulation of a single domain; a checkpoint may hold a batch.
fn single(builder: Builder) -> Result<Simulation> {
    let simulation = builder.build()?;
    simulation.problem().refuse_batch("the window")?;
    Ok(simulation)
}

impl Live {
    pub fn start(setup: Setup, opener: &Opener) -> Result<Live> {
        let (mut simulation, mut shared) = open(&setup, opener)?;
        // A backend that the library chose is opened once more where the window can then draw its fields as
        // they lie.
        let backend = Choice::Named(simulation.backend());
        if setup.backend == Choice::Auto && opener(backend).is_some() {
            drop(simulation);
            (simulation, shared) = open(&Setup { backend, ..setup.clone() }, opener)?;
        }
        Ok(Live { simulation, setup, touched: false, shared, rescue: None })
    }

    /// Returns a field where the window's device can draw it.
    pub fn on_device(&self, field: usize) -> Option<OnDevice> {
        let problem = self.simulation.problem();
        // A line is no plane; the host draws its values.
        let name = problem.program.fields().get(field).filter(|_| problem.shape.dimensions() > 1)?;
        if self.shared { OnDevice::of(&self.simulation, name) } else { None }
    }

    pub fn started(&self, run: u64) -> Started {
        let simulation = &self.simulation;
        Started {
            run,
            setup: self.setup.clone(),
            problem: simulation.problem().clone(),
            plan: Arc::new(simulation.plan().clone()),
            backend: simulation.backend(),
            notes: simulation
                .notes()
                .iter()
                .chain(&simulation.plan().notes)
                .cloned()
                .chain(self.detour())
                .collect(),
            step: simulation.step(),
        }
    }

    /// Returns a note of the fields that the window's device does not draw by itself, although it holds them.
    fn detour(&self) -> Option<String> {
        let problem = self.simulation.problem();
        let names = problem.program.fields().iter().enumerate();
        let read: Vec<&str> = names
            .filter(|(field, _)| self.on_device(*field).is_none())
            .map(|(_, name)| name.as_str())
            .collect();
        (self.shared && problem.shape.dimensions() > 1 && !read.is_empty()).then(|| {
            format!("to be drawn, {} passes through the host: it lies in no one buffer", read.join(", "))
        })
    }

    /// Reads the computed scalars, in the program's order. One that has no value before the first step is NaN
    /// there.
    pub fn scalars(&mut self) -> Result<Vec<f64>> {
        let values = self.simulation.scalars()?;
        let begun = self.simulation.step() > 0;
        let known = self.simulation.problem().program.scalars().iter();
        let known = known.map(|scalar| begun || scalar.initial.is_some() || scalar.extent.is_some());
        Ok(values
            .into_iter()
            .zip(known)
            .map(|((_, value), known)| if known { value } else { f64::NAN })
            .collect())
    }

    /// Copies the state from time to time where the device can be lost.
    pub fn keep_rescue(&mut self) -> Result<()> {
        let due = self.rescue.as_ref().is_none_or(|rescue| rescue.taken.elapsed() >= rescue.rest);
        if self.simulation.kind() == Kind::Cpu || !due {
            return Ok(());
        }
        let begun = Instant::now();
        let names = self.simulation.problem().program.fields().to_vec();
        let fields = names.into_iter().map(|name| self.simulation.field(&name).map(|values| (name, values)));
        let fields = fields.collect::<Result<_>>()?;
        let program = self.simulation.problem().program.clone();
        let values = self.simulation.scalars()?.into_iter().zip(program.scalars());
        // A stage makes the others before another uses them.
        let scalars = values.filter(|(_, scalar)| scalar.initial.is_some()).map(|(value, _)| value).collect();
        let rest = begun.elapsed().div_f64(RESCUE_SHARE).max(RESCUE_INTERVAL);
        let step = self.simulation.step();
        self.rescue = Some(Rescue { taken: Instant::now(), rest, step, fields, scalars });
        Ok(())
    }

    /// Returns whether an error means that the device is gone, and there is another to go on with.
    pub fn is_lost(&self, error: &Error) -> bool {
        matches!(error, Error::Device { .. }) && self.simulation.kind() != Kind::Cpu
    }

    /// Goes on from the last copy of the state on the CPU, or from the start where there is none.
    pub fn onto_cpu(self) -> Result<Live> {
        let parameters = self.simulation.problem();
        let parameters: Vec<(String, f64)> = parameters
            .program
            .parameters()
            .iter()
            .map(|p| p.name.clone())
            .zip(parameters.parameters.iter().copied())
            .collect();
        let setup = Setup { backend: Choice::CPU, parameters, ..self.setup };
        let mut builder = match &self.rescue {
            // The fields come from the copy, so their inputs are not read again.
            Some(_) => Setup {
                size: self.simulation.problem().shape.to_string(),
                inputs: Vec::new(),
                resume: None,
                ..setup.clone()
            }
            .builder()?,
            None => setup.builder()?,
        };
        let touched = self.touched && self.rescue.is_some();
        if let Some(rescue) = self.rescue {
            builder = builder.first_step(rescue.step);
            for (name, values) in rescue.fields {
                builder = builder.input(&name, values);
            }
            for (name, value) in rescue.scalars {
                builder = builder.scalar(&name, value);
            }
        }
        Ok(Live { simulation: single(builder)?, setup, touched, shared: false, rescue: None })
    }

    /// Sets a parameter. A parameter set in the middle of a run makes a history that no command line repeats.
    pub fn set_parameter(&mut self, name: &str, value: f64) -> Result<()> {
        self.simulation.set_parameter(name, value)?;
        self.touched |= self.simulation.step() > 0;
        self.setup.set(name, value);
        Ok(())
    }

    /// Returns whether the command can repeat the run from its setup alone.
    pub fn is_repeatable(&self) -> bool {
        let drawn = self.setup.inputs.iter().any(|(_, source)| matches!(source, Source::Drawn(_)));
        !self.touched && !drawn
    }
}
