//! The CPU backend: plans runs and opens sessions.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use abide_core::backend::{LinearBackend, Segmented, check_fields};
use abide_core::floating::standard;
use abide_core::functions::{Function, FunctionRate};
use abide_core::plan::{Cpu, Schedule};
use abide_core::program::{Clock, Watch};
use abide_core::{
    Array, Backend, DType, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Real, Result,
    Session, Tune,
};
use abide_planner::{is_too_small_to_choose, plan_cpu};

use crate::device::{bandwidth, instruction_set, machine};
use crate::functions;
use crate::launches::Launched;
use crate::pin;
use crate::reference;
use crate::session::{Threaded, Workers};
use crate::state::State;
use crate::stepwise::has_fused_multiply_add;
use crate::threads::{self, Pool, on};

/// The code that a session runs. Both give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    Threaded,
    Reference,
}

/// The CPU of this machine.
pub struct CpuBackend {
    path: Path,
    /// Its own threads; `None` where it runs on those that all share.
    pool: Option<Arc<Pool>>,
    /// The pool of pinned threads; `None` until a plan has asked for one.
    pinned: Mutex<Option<Arc<Pool>>>,
    /// The machine, and the machine without the bandwidth of its memory, which takes a while to measure.
    device: OnceLock<DeviceSpec>,
    unmeasured: OnceLock<DeviceSpec>,
}

impl CpuBackend {
    /// Returns a backend on all threads of rayon's global pool.
    pub fn new() -> Self {
        let (device, unmeasured) = (OnceLock::new(), OnceLock::new());
        CpuBackend { path: Path::Threaded, pool: None, pinned: Mutex::new(None), device, unmeasured }
    }

    /// Returns a backend with a pool of its own, of the given number of threads.
    pub fn with_threads(threads: usize) -> Result<Self> {
        if threads == 0 {
            return Err(Error::limit("threads", threads, "at least 1", "give one thread or more"));
        }
        Ok(CpuBackend { pool: Some(Arc::new(Pool::new(threads)?)), ..Self::new() })
    }

    /// Returns a backend for each of so many ranks, with a pool of its own: all threads that there are, divided among
    /// them, and one each where there are too few. With each its number of threads.
    pub fn divided(ranks: usize) -> Result<Vec<(Self, usize)>> {
        let all = threads::count()?;
        let own = |rank: usize| (all / ranks + usize::from(rank < all % ranks)).max(1);
        (0..ranks).map(|rank| Ok((Self::with_threads(own(rank))?, own(rank)))).collect()
    }

    /// Returns a backend on the path that reads like the definition, one cell after the other on one thread:
    /// slow, and the oracle.
    pub fn reference() -> Self {
        CpuBackend { path: Path::Reference, ..Self::new() }
    }

    pub(crate) fn is_reference(&self) -> bool {
        self.path == Path::Reference
    }

    /// Starts the threads; an error where there are none to work with.
    pub(crate) fn ready(&self) -> Result<()> {
        match (self.path, &self.pool) {
            (Path::Threaded, None) => threads::start(),
            _ => Ok(()),
        }
    }

    /// Returns the machine, with the bandwidth of its memory where that counts.
    pub(crate) fn machine(&self, is_bandwidth_needed: bool) -> &DeviceSpec {
        match is_bandwidth_needed {
            true => self.device.get_or_init(|| machine(self.threads(), bandwidth())),
            false => self.unmeasured.get_or_init(|| machine(self.threads(), 0.0)),
        }
    }

    pub(crate) fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.clone()
    }

    pub(crate) fn threads(&self) -> usize {
        match (self.path, &self.pool) {
            (Path::Reference, _) => 1,
            // Without threads, every session is refused.
            (Path::Threaded, Some(pool)) => pool.threads().unwrap_or(1),
            (Path::Threaded, None) => threads::count().unwrap_or(1),
        }
    }

    fn session<T: Real>(
        &self,
        problem: &Problem,
        plan: &Plan,
        cpu: &Cpu,
        watch: Watch,
        fields: Vec<Vec<T>>,
    ) -> Result<Box<dyn Session>> {
        let fused = has_fused_multiply_add();
        let workers = self.workers(cpu)?;
        let pool = workers.pool.clone();
        if !problem.is_plain() {
            return Ok(Box::new(Launched::open(problem, plan, cpu, pool, fused, watch, fields)?));
        }
        let open = || Threaded::open(problem, plan, cpu, workers, fused, State::new(problem, fields)?);
        // The threads that will sweep the arrays are the first to touch them.
        Ok(Box::new(on(pool.as_ref(), open)??))
    }

    fn planned(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        self.ready()?;
        if problem.is_batch() {
            return self.plan_batch(problem, options);
        }
        // The reference has the program as it is.
        if let (Path::Threaded, Some(clock)) = (self.path, Clock::of(problem)) {
            return self.planned(clock.plain(), options);
        }
        let device = self.machine(!is_too_small_to_choose(problem, options));
        let waits = !matches!(options.execution, Execution::Auto | Execution::Stepwise);
        if self.path == Path::Reference {
            if waits || options.pin || !matches!(options.depth, Depth::Auto | Depth::Steps(1)) {
                return Err(Error::unsupported(
                    "backend cpu",
                    "the reference takes one step after another, on the thread that asks",
                    "leave the execution and the depth at auto, and pin out",
                ));
            }
            return plan_cpu(problem, device, &Options { execution: Execution::Stepwise, ..*options });
        }
        if options.pin {
            pin::cores(self.threads())?;
        }
        let plan = plan_cpu(problem, device, options)?;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        if plan.execution != Execution::Persistent || self.threads() <= cores {
            return Ok(plan);
        }
        let mut plan = plan_cpu(problem, device, &Options { execution: Execution::Streaming, ..*options })?;
        if options.execution == Execution::Persistent {
            let threads = self.threads();
            plan.notes.push(format!(
                "persistent was asked for, but {threads} threads on {cores} cores would wait for neighbours that do not \
                 run: streaming instead"
            ));
        }
        Ok(plan)
    }

    fn opened(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        self.ready()?;
        if problem.is_batch() {
            return self.open_batch(problem, plan, fields);
        }
        plan.check(problem)?;
        check_fields(problem, &fields)?;
        let Schedule::Cpu(cpu) = &plan.schedule else {
            return Err(Error::unsupported(
                "backend cpu",
                format!("the plan is for {}, in tiles", plan.device.name),
                "open it with a plan that this backend made",
            ));
        };
        if self.path == Path::Reference {
            return Ok(Box::new(reference::Plain::open(problem, plan, fields)?));
        }
        if let Some(clock) = Clock::of(problem) {
            let plain = clock.plain().clone();
            let cut = Segmented::clocked(problem, clock, &fields, None)?;
            return Ok(Segmented::around(Some(cut), self.opened(&plain, plan, fields)?));
        }
        let watch = Watch::new(problem, &fields)?;
        let plan = &noted(plan);
        // The sweeps of a plain program take no note of anything.
        let cut = if problem.is_plain() { Segmented::new(problem, &fields)? } else { None };
        let session = match problem.dtype {
            DType::F32 => self.session(problem, plan, cpu, watch, singles(fields)),
            DType::F64 => self.session(problem, plan, cpu, watch, doubles(fields)),
        };
        Ok(Segmented::around(cut, session?))
    }

    /// Returns the threads and cores that a plan asks for.
    pub(crate) fn workers(&self, cpu: &Cpu) -> Result<Workers> {
        Ok(match cpu.pinned {
            true => Workers { pool: Some(self.pinned(cpu.threads)?), cores: pin::cores(cpu.threads)? },
            false => Workers { pool: self.pool.clone(), cores: Vec::new() },
        })
    }

    /// Returns a pool of the given number of pinned threads.
    fn pinned(&self, threads: usize) -> Result<Arc<Pool>> {
        let mut known = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = known.as_ref().filter(|pool| pool.threads() == Ok(threads)) {
            return Ok(pool.clone());
        }
        Ok(known.insert(Arc::new(Pool::pinned(threads)?)).clone())
    }
}

/// Returns the plan, with a note where the system keeps formulas from becoming instructions of the machine.
#[cfg_attr(not(all(target_arch = "x86_64", unix)), allow(unused_mut))]
fn noted(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    #[cfg(all(target_arch = "x86_64", unix))]
    if crate::native::is_refused() {
        plan.notes.push("the system grants no memory for instructions: formulas are interpreted".to_owned());
    }
    plan
}

/// Returns the values of fields in f32.
pub(crate) fn singles(fields: Vec<Array>) -> Vec<Vec<f32>> {
    let own = |field| if let Array::F32(values) = field { Some(values) } else { None };
    fields.into_iter().filter_map(own).collect()
}

/// Returns the values of fields in f64.
pub(crate) fn doubles(fields: Vec<Array>) -> Vec<Vec<f64>> {
    let own = |field| if let Array::F64(values) = field { Some(values) } else { None };
    fields.into_iter().filter_map(own).collect()
}

/// Returns options for every way in which the backend can run a problem: stepwise, and in passes of several
/// depths with and without threads that keep their tiles.
pub fn variants() -> Vec<Options> {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let stepwise = Options { execution: Execution::Stepwise, ..own };
    let depths = [Depth::Auto].into_iter().chain([1, 2, 3, 5].map(Depth::Steps));
    let streaming = depths.map(|depth| Options { execution: Execution::Streaming, depth, ..own });
    let depths = [Depth::Auto, Depth::Steps(2)];
    let persistent = depths.map(|depth| Options { execution: Execution::Persistent, depth, ..own });
    std::iter::once(stepwise).chain(streaming).chain(persistent).collect()
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn device(&self) -> &DeviceSpec {
        self.machine(true)
    }

    fn driver(&self) -> String {
        format!("abide-cpu {}, {}", env!("CARGO_PKG_VERSION"), instruction_set())
    }

    fn function_rate(&self, function: Function, dtype: DType) -> Result<Option<FunctionRate>> {
        Ok(Some(functions::rate(function, dtype)))
    }

    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        standard(|| self.planned(problem, options))
    }

    fn linear(&self) -> Option<&dyn LinearBackend> {
        Some(self)
    }

    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        standard(|| self.opened(problem, plan, fields))
    }
}
