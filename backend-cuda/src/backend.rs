//! The CUDA backend: a device, its compiler, plans and sessions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use abide_core::backend::{Compiler, LinearBackend, MemberSessions, Reducer, Segmented, Tuner, check_fields};
use abide_core::functions::{Function, FunctionRate};
use abide_core::plan::{CachePolicy, Depth, Execution, Measured, Options, Tune};
use abide_core::program::Clock;
use abide_core::{Array, Backend, DType, DeviceSpec, Plan, Problem, Result, Session};
use abide_planner::{Fitted, is_of_clock, plan_batch, plan_of_clock};
use abide_tuning::tuned::{Tuning, alone};
use abide_tuning::tuned_plans::TunedPlans;
use cudarc::driver::CudaContext;

use crate::batch::Batch;
use crate::count::Counter;
use crate::kernels::{Kernels, fit, target};
use crate::memory::Fields;
use crate::nvrtc::Nvrtc;
use crate::program::{ProgramSession, Reductions};
use crate::puts::PutKernel;
use crate::session::{CudaSession, launcher};
use crate::streaming::shallower_passes;
use crate::{costs, driver, functions, peer, tune};

/// One CUDA device.
pub struct CudaBackend {
    pub(crate) context: Arc<CudaContext>,
    device: DeviceSpec,
    pub(crate) nvrtc: Arc<Nvrtc>,
    tuned_plans: TunedPlans,
    counter: Arc<Counter>,
    put_kernel: Arc<PutKernel>,
}

impl CudaBackend {
    /// Opens the first device; `Unavailable`, with the reason, where driver, device or compiler is missing.
    pub fn new() -> Result<Self> {
        Self::with_ordinal(0)
    }

    /// Opens a device by number, as the driver counts them.
    pub fn with_ordinal(ordinal: usize) -> Result<Self> {
        let (context, mut device) = driver::open(ordinal)?;
        let (nvrtc, tuned_plans) = (Arc::new(Nvrtc::open()?), TunedPlans::of_user());
        costs::set(&mut device, &context, &nvrtc);
        let counter = Arc::new(Counter::new(&context, &nvrtc, target(&device)));
        let put_kernel = Arc::new(PutKernel::new(&nvrtc, target(&device)));
        Ok(CudaBackend { context, device, nvrtc, tuned_plans, counter, put_kernel })
    }

    /// Opens devices by their numbers, each once, and lets each copy from the others' memory directly, as exchanges of
    /// planes do. Where two cannot, because no link connects them, the driver copies by way of the host.
    pub fn connected(numbers: &[usize]) -> Result<Vec<Arc<CudaBackend>>> {
        let mut opened: BTreeMap<usize, Arc<CudaBackend>> = BTreeMap::new();
        for &number in numbers {
            if let Entry::Vacant(free) = opened.entry(number) {
                free.insert(Arc::new(Self::with_ordinal(number)?));
            }
        }
        for (own, other) in opened.values().flat_map(|own| opened.values().map(move |other| (own, other))) {
            peer::connect(&own.context, &other.context)?;
        }
        Ok(numbers.iter().map(|number| opened[number].clone()).collect())
    }

    /// Returns whether this device could copy from another's memory directly.
    pub fn reaches(&self, other: &CudaBackend) -> Result<bool> {
        let devices = [self, other].map(|device| device.context.cu_device());
        peer::reaches(devices[0], devices[1]).map_err(driver::during("asking for peer access"))
    }

    /// Returns words that no other device has, in any process or on any machine.
    pub fn identity(&self) -> Result<String> {
        let uuid = self.context.uuid().map_err(driver::during("asking for the device's identity"))?;
        Ok(uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect())
    }

    /// Returns what launches and waits cost on this device, in seconds, as its plans have it.
    pub fn costs(&self) -> [f64; 3] {
        costs::of(&self.device)
    }

    /// Plans with these costs in place of its own, as processes do that must have the same plans.
    pub fn with_costs(mut self, costs: [f64; 3]) -> Self {
        costs::assume(&mut self.device, costs);
        self
    }

    /// Keeps and looks for what tuning finds in this folder instead of the user's cache folder.
    pub fn keeping_winners_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tuned_plans = TunedPlans::at(folder.into());
        self
    }

    fn tuning<'a>(&'a self, problem: &'a Problem, options: &'a Options) -> Tuning<'a> {
        Tuning {
            tuned_plans: &self.tuned_plans,
            device: &self.device,
            driver: self.driver(),
            problem,
            options,
        }
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn device(&self) -> &DeviceSpec {
        &self.device
    }

    fn driver(&self) -> String {
        let (major, minor) = self.nvrtc.version();
        format!("{}, NVRTC {major}.{minor}", driver::version())
    }

    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        if problem.is_batch() {
            let mut plan = plan_batch(problem, &self.device, options, |member| self.plan(member, options))?;
            if plan.is_at_once() && options.tune.measures() {
                plan.notes.push(format!(
                    "tuning {} was asked for: plans of members that run side by side are chosen by the model alone",
                    options.tune
                ));
            }
            return Ok(plan);
        }
        let plan = |problem: &Problem, options: &Options| {
            tune::plan(&self.tuning(problem, options), &self.context, &self.nvrtc)
        };
        plan_of_clock(problem, options, true, plan).unwrap_or_else(|| plan(problem, options))
    }

    fn compiler(&self) -> Option<&dyn Compiler> {
        Some(self)
    }

    fn linear(&self) -> Option<&dyn LinearBackend> {
        Some(self)
    }

    fn function_rate(&self, function: Function, dtype: DType) -> Result<Option<FunctionRate>> {
        functions::rate_of(&self.device, &self.context, &self.nvrtc, function, dtype).map(Some)
    }

    fn tuner(&self) -> Option<&dyn Tuner> {
        Some(self)
    }

    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        if problem.is_batch() && !plan.is_at_once() {
            let open = |problem: &Problem, plan: &Plan, fields| self.open(problem, plan, fields);
            return Ok(Box::new(MemberSessions::open(problem, plan, fields, open)?));
        }
        check_fields(problem, &fields)?;
        if let Some(clock) = Clock::on_device(problem, true).filter(|clock| is_of_clock(plan, clock)) {
            let plain = clock.plain().clone();
            let reductions = Reductions::of_clock(&clock, &self.device, &self.context, &self.nvrtc)?;
            let reductions = reductions.map(|own| Box::new(own) as Box<dyn Reducer>);
            let cut = Segmented::clocked(problem, clock, &fields, reductions)?;
            return Ok(Segmented::around(Some(cut), self.open(&plain, plan, fields)?));
        }
        plan.check(problem)?;
        let Fitted { plan, code } = fit(&self.nvrtc, problem, plan, &target(&self.device))?;
        self.context.bind_to_thread().map_err(driver::during("binding the context"))?;
        let kernels = Kernels::load(&self.context, code.cubin)?;
        if problem.is_batch() {
            let counter = self.counter.clone();
            return Ok(Box::new(Batch::new(problem, plan, &self.context, &kernels, &fields, counter)?));
        }
        if let Some(program) = code.program {
            // Between the steps of a program with loops the host is there itself.
            let has_loops = problem.program.has_loops();
            let cut = if has_loops { Segmented::new(problem, &fields)? } else { None };
            let alone = has_loops.then(|| Problem { record: None, marks: None, ..problem.clone() });
            let problem = alone.as_ref().unwrap_or(problem);
            let (counter, put_kernel) = (self.counter.clone(), self.put_kernel.clone());
            let loaded = (&kernels, program, code.passes);
            let carried = plan.stages().map_or(Vec::new(), |tiles| tiles.partition.carried.clone());
            let mut session =
                ProgramSession::new(problem, plan, &self.context, loaded, &fields, counter, put_kernel)?;
            if !carried.is_empty() {
                let found = problem.of_reductions(&carried);
                let reductions = Reductions::new(&found, &self.device, &self.context, &self.nvrtc)?;
                session.carry(reductions);
            }
            return Ok(Segmented::around(cut, Box::new(session)));
        }
        let cut = Segmented::new(problem, &fields)?;
        let fields = Fields::new(problem, &self.context, &fields)?;
        let launcher = launcher(&plan, &fields, &kernels, &self.nvrtc)?;
        let session =
            CudaSession::new(plan, fields, launcher, self.counter.clone(), self.put_kernel.clone())?;
        Ok(Segmented::around(cut, Box::new(session)))
    }
}

impl Compiler for CudaBackend {
    fn compile(&self, problem: &Problem, plan: &Plan, any_steps: bool) -> Result<()> {
        let target = target(&self.device);
        let problem = &*planned(problem, plan);
        let plan = fit(&self.nvrtc, problem, plan, &target)?.plan;
        let shallower = if any_steps { shallower_passes(problem, &plan) } else { Vec::new() };
        for pass in shallower {
            fit(&self.nvrtc, problem, &pass?, &target)?;
        }
        Ok(())
    }

    fn fitted(&self, problem: &Problem, plan: &Plan) -> Result<Plan> {
        Ok(fit(&self.nvrtc, &planned(problem, plan), plan, &target(&self.device))?.plan)
    }
}

impl Tuner for CudaBackend {
    fn measure(&self, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
        let _alone = alone();
        let at_rest = Clock::on_device(problem, true).map(|clock| clock.at_rest());
        let problem = at_rest.as_ref().unwrap_or(problem);
        tune::measure(&self.tuning(problem, options), &self.context, &self.nvrtc)
    }
}

/// Returns the problem whose kernels run by a plan.
fn planned<'a>(problem: &'a Problem, plan: &Plan) -> Cow<'a, Problem> {
    match Clock::on_device(problem, true).filter(|clock| is_of_clock(plan, clock)) {
        Some(clock) => Cow::Owned(clock.plain().clone()),
        None => Cow::Borrowed(problem),
    }
}

/// Returns options for every execution, cache policy and several depths that this backend runs, for tests
/// that try them all: as the planner plans them, whatever tuning found. Kernels of several steps may refuse a
/// problem, with [`abide_core::Error::Limit`].
pub fn variants() -> Vec<Options> {
    let own = Options { tune: Tune::Off, ..Options::default() };
    let stepwise = Options { execution: Execution::Stepwise, ..own };
    let policies = CachePolicy::ALL.iter().filter(|policy| **policy != CachePolicy::Auto);
    let persistent = policies.map(|&cache| Options { execution: Execution::Persistent, cache, ..own });
    let depths = [Depth::Auto].into_iter().chain([1, 2, 3, 5].map(Depth::Steps));
    let streaming = depths.clone().map(|depth| Options { execution: Execution::Streaming, depth, ..own });
    // Of these, those fit that hold the whole domain.
    let resident = depths.map(|depth| Options { execution: Execution::Persistent, depth, ..own });
    std::iter::once(stepwise).chain(persistent).chain(streaming).chain(resident).collect()
}
