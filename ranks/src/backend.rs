//! The backend of several devices.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::backend::{Compiler, Fields, LinearBackend, LinearDeviceGroup, Segmented, check_fields};
use abide_core::communicator::Communicator;
use abide_core::functions::{Function, FunctionRate};
use abide_core::plan::Ranks;
use abide_core::slabs::Slabs;
use abide_core::{Array, Backend, DType, DeviceSpec, Error, Options, Plan, Problem, Result, Session};
use abide_planner::{Devices, plan_ranks};

use crate::factory::CommunicatorFactory;
use crate::session::{DistributedSession, Initial, Open};
use crate::threads::{DEADLINE, threads};

/// A device of one rank.
#[derive(Clone)]
pub struct Device {
    /// The backend that runs the rank's slab.
    pub backend: Arc<dyn Backend>,
    /// The device's rate beside the others', in any unit: slabs are cut in proportion.
    pub weight: usize,
}

type Make = dyn Fn(usize) -> Result<Vec<Device>> + Send + Sync;

/// Several devices of one kind that advance a domain jointly, or one where the domain is too thin for more.
pub struct Ranked {
    /// The backend of a single device.
    pub(crate) single: Arc<dyn Backend>,
    pub(crate) asked: usize,
    between: Option<u32>,
    make: Box<Make>,
    pub(crate) factory: Arc<dyn CommunicatorFactory>,
    pub(crate) team: Option<Arc<dyn LinearDeviceGroup>>,
    made: Mutex<BTreeMap<usize, Vec<Device>>>,
}

impl Ranked {
    /// Makes a backend of so many devices. `make` returns the devices of a number of ranks; a single one is `single`.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for no device.
    pub fn new(
        single: Arc<dyn Backend>,
        asked: usize,
        make: impl Fn(usize) -> Result<Vec<Device>> + Send + Sync + 'static,
    ) -> Result<Ranked> {
        if asked == 0 {
            return Err(Error::limit("devices", 0, "at least 1", "ask for one device or more"));
        }
        let connect = |ranks| {
            let ends = threads(ranks, DEADLINE).into_iter();
            ends.map(|end| Box::new(end) as Box<dyn Communicator>).collect::<Vec<_>>()
        };
        let (made, make, factory) = (Mutex::default(), Box::new(make), Arc::new(connect));
        Ok(Ranked { single, asked, between: None, make, factory, team: None, made })
    }

    /// Connects ranks by another communicator. Where ranks are processes, `make` has the devices of all of them, but this
    /// process opens its own alone.
    pub fn connected(mut self, factory: impl CommunicatorFactory + 'static) -> Ranked {
        self.factory = Arc::new(factory);
        self
    }

    /// Has the device group solve linear systems, in place of ranks that exchange messages.
    pub fn with_team(mut self, team: Arc<dyn LinearDeviceGroup>) -> Ranked {
        self.team = Some(team);
        self
    }

    /// Exchanges after so many steps, whatever the temporal depth; the planner chooses unless this is called.
    pub fn every(mut self, steps: u32) -> Ranked {
        self.between = Some(steps.max(1));
        self
    }

    pub(crate) fn devices(&self, ranks: usize) -> Result<Vec<Device>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(devices) = made.get(&ranks) {
            return Ok(devices.clone());
        }
        let devices = self.new_devices(ranks)?;
        made.insert(ranks, devices.clone());
        Ok(devices)
    }

    /// Returns devices that no other session has, as far as the backend can make such.
    pub(crate) fn new_devices(&self, ranks: usize) -> Result<Vec<Device>> {
        let devices = (self.make)(ranks)?;
        if devices.len() != ranks {
            let change = "ask for as many devices as there are";
            return Err(Error::limit("devices", ranks, devices.len(), change));
        }
        Ok(devices)
    }
}

/// Devices that exchange after a number of steps that is given.
struct Fixed<'a>(&'a Ranked, u32);

impl Devices for Fixed<'_> {
    fn asked(&self) -> usize {
        self.0.asked
    }

    fn weights(&self, ranks: usize) -> Result<Vec<usize>> {
        self.0.weights(ranks)
    }

    fn plan(&self, ranks: usize, rank: usize, slab: &Problem, options: &Options) -> Result<Plan> {
        Devices::plan(self.0, ranks, rank, slab, options)
    }

    fn fitted(&self, ranks: usize, rank: usize, slab: &Problem, plan: &Plan) -> Result<Plan> {
        Devices::fitted(self.0, ranks, rank, slab, plan)
    }

    fn stores(&self, ranks: usize) -> Result<bool> {
        Devices::stores(self.0, ranks)
    }

    fn between(&self) -> Option<u32> {
        Some(self.1)
    }
}

impl Devices for Ranked {
    fn asked(&self) -> usize {
        self.asked
    }

    fn weights(&self, ranks: usize) -> Result<Vec<usize>> {
        Ok(self.devices(ranks)?.iter().map(|device| device.weight).collect())
    }

    fn plan(&self, ranks: usize, rank: usize, slab: &Problem, options: &Options) -> Result<Plan> {
        match ranks {
            1 => self.single.plan(slab, options),
            _ => self.devices(ranks)?[rank].backend.plan(slab, &Options { slab: true, ..*options }),
        }
    }

    fn fitted(&self, ranks: usize, rank: usize, slab: &Problem, plan: &Plan) -> Result<Plan> {
        match self.devices(ranks)?[rank].backend.compiler() {
            Some(compiler) => compiler.fitted(slab, plan),
            None => Ok(plan.clone()),
        }
    }

    fn stores(&self, ranks: usize) -> Result<bool> {
        // Ranks of other processes are planned as this one's device, too.
        let all = self.devices(ranks)?;
        let is_there_twice = |(at, own): (usize, &Device)| {
            all[..at].iter().any(|other| Arc::ptr_eq(&own.backend, &other.backend))
        };
        Ok(!all.iter().enumerate().any(is_there_twice))
    }

    fn between(&self) -> Option<u32> {
        self.between
    }
}

impl Backend for Ranked {
    fn name(&self) -> &'static str {
        self.single.name()
    }

    fn device(&self) -> &DeviceSpec {
        self.single.device()
    }

    fn driver(&self) -> String {
        self.single.driver()
    }

    fn compiler(&self) -> Option<&dyn Compiler> {
        self.single.compiler().map(|_| self as &dyn Compiler)
    }

    fn linear(&self) -> Option<&dyn LinearBackend> {
        self.single.linear().map(|_| self as &dyn LinearBackend)
    }

    fn function_rate(&self, function: Function, dtype: DType) -> Result<Option<FunctionRate>> {
        self.single.function_rate(function, dtype)
    }

    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        if options.pin && self.asked > 1 {
            return Err(Error::unsupported(
                format!("backend {} on {} devices", self.name(), self.asked),
                "pinned threads were asked for, and the ranks' threads would share the first cores",
                "leave --pin out, or take one device",
            ));
        }
        let own = plan_ranks(problem, options, self);
        let Some(processes) = self.factory.processes() else { return own };
        // Estimates follow what each process measures; all do as the first.
        let words = format!(
            "{} {} {} with boundary {} and parameters {:?}",
            problem.program.name(),
            problem.shape,
            problem.dtype,
            problem.boundaries.describe(problem.shape.dimensions()),
            problem.parameters,
        );
        let steps = |plan: &Plan| plan.ranks.as_ref().map_or(0, |ranks| ranks.depth);
        let first = self.factory.of_first(own.as_ref().map(steps).map_err(Error::clone), &words)?;
        let plan = match own? {
            own if steps(&own) == first => own,
            _ => plan_ranks(problem, options, &Fixed(self, first))?,
        };
        let ranks = plan.ranks.as_ref().map_or(1, |ranks| ranks.own.len());
        if ranks < processes {
            let planes = problem.shape.padded()[problem.slowest()];
            let what =
                format!("processes, each with the planes that its neighbours read, of {planes} in all");
            return Err(Error::limit(what, processes, ranks, "start fewer, or take a larger size"));
        }
        Ok(plan)
    }

    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        let Some(ranks) = &plan.ranks else { return self.single.open(problem, plan, fields) };
        check_fields(problem, &fields)?;
        // What follows the whole domain is noted here, not by the ranks.
        let cut = Segmented::new(problem, &fields)?;
        Ok(Segmented::around(cut, self.together(problem, plan, ranks, Initial::Whole(fields))?))
    }

    fn open_from(&self, problem: &Problem, plan: &Plan, fields: &mut dyn Fields) -> Result<Box<dyn Session>> {
        let (Some(ranks), Some(_)) = (&plan.ranks, self.factory.processes()) else {
            return self.open(problem, plan, fields.whole()?);
        };
        Segmented::of_session(problem, self.together(problem, plan, ranks, Initial::Made(fields))?)
    }
}

impl Ranked {
    /// Opens the sessions of this process's ranks.
    fn together(
        &self,
        problem: &Problem,
        plan: &Plan,
        ranks: &Ranks,
        fields: Initial<'_>,
    ) -> Result<Box<dyn Session>> {
        let slabs = slabs_of(problem, ranks)?;
        let devices = self.devices(slabs.slabs.len())?;
        let open = |end: Box<dyn Communicator>| -> Result<(Open, Box<dyn Communicator>)> {
            let (Some(device), Some(plan)) = (devices.get(end.rank()), ranks.slabs.get(end.rank())) else {
                return Err(Error::limit(
                    "rank",
                    end.rank(),
                    devices.len(),
                    "connect as many ranks as there are",
                ));
            };
            let (device, plan) = (device.clone(), plan.clone());
            Ok((Box::new(move |slab, fields| device.backend.open(slab, &plan, fields)), end))
        };
        let ends = self.factory.connect(slabs.slabs.len())?.into_iter().map(open);
        let ends = ends.collect::<Result<Vec<_>>>()?;
        Ok(Box::new(DistributedSession::open(self.name(), problem, plan, slabs, fields, ends)?))
    }
}

impl Compiler for Ranked {
    fn compile(&self, problem: &Problem, plan: &Plan, any_steps: bool) -> Result<()> {
        let compile = |backend: &dyn Backend, problem: &Problem, plan: &Plan| match backend.compiler() {
            Some(compiler) => compiler.compile(problem, plan, any_steps),
            None => Ok(()),
        };
        let Some(ranks) = &plan.ranks else { return compile(self.single.as_ref(), problem, plan) };
        let slabs = slabs_of(problem, ranks)?;
        let devices = self.devices(slabs.slabs.len())?;
        for (rank, (device, plan)) in devices.iter().zip(&ranks.slabs).enumerate() {
            compile(device.backend.as_ref(), &slabs.problem(rank, problem)?, plan)?;
        }
        Ok(())
    }
}

/// Returns the slabs of a plan.
///
/// # Errors
///
/// [`Error::Invalid`] where the plan is not for the problem.
fn slabs_of(problem: &Problem, ranks: &Ranks) -> Result<Slabs> {
    let weights: Vec<usize> = ranks.own.iter().map(|own| own.len()).collect();
    let slabs = Slabs::new(problem, ranks.depth, &weights)?;
    if slabs.slabs.iter().map(|slab| &slab.own).ne(&ranks.own) || ranks.slabs.len() != ranks.own.len() {
        let reason = "its slabs are not those of the problem's domain";
        return Err(Error::invalid("plan", reason, "make a plan for this problem"));
    }
    Ok(slabs)
}
