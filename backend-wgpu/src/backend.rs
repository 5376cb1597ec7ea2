//! The wgpu backend: an adapter, its limits, and plans for it.

use std::path::PathBuf;
use std::sync::Arc;

use abide_core::backend::LinearBackend;
use abide_core::backend::{Backend, MemberSessions, Segmented, Tuner};
use abide_core::device::DISPATCH_SECONDS;
use abide_core::plan::{Depth, Measured, Order};
use abide_core::program::Clock;
use abide_core::{Array, DeviceSpec, Error, Options, Plan, Problem, Result, Session};
use abide_planner::{is_of_clock, plan_members, plan_of_clock};
use abide_shaders::wgsl::{self, Bound, Kernel};
use abide_tuning::tuned::{Tuning, alone};
use abide_tuning::tuned_plans::TunedPlans;

use crate::NAME;
use crate::adapter::{Adapter, choose};
use crate::bandwidth::bandwidth;
use crate::blocking::block_on;
use crate::gpu::Gpu;
use crate::krylov::Modules;
use crate::pass::grid;
use crate::plain::{PlainSession, uniform_bytes};
use crate::program::{Made, ProgramSession};
use crate::session::{WgpuSession, check_type};
use crate::tune::{measure, planned};

/// Stencil programs and linear solvers on one wgpu adapter.
pub struct WgpuBackend {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) spec: DeviceSpec,
    pub(crate) tuned_plans: TunedPlans,
    /// The modules that solvers compiled.
    pub(crate) modules: Modules,
}

impl WgpuBackend {
    /// Opens the backend on the best adapter: hardware where there is any.
    pub fn new() -> Result<WgpuBackend> {
        block_on(WgpuBackend::new_async())
    }

    /// Returns what [`WgpuBackend::new`] returns, without blocking; in a browser, on the adapter that it
    /// offers.
    pub async fn new_async() -> Result<WgpuBackend> {
        WgpuBackend::chosen(None).await
    }

    /// Opens the backend on the adapter of this number in [`adapters`](crate::adapters), or whose name
    /// contains this text (as in `llvmpipe`, `rtx` or `(gl)`).
    pub fn on(adapter: &str) -> Result<WgpuBackend> {
        block_on(WgpuBackend::chosen(Some(adapter)))
    }

    /// Returns the backend on a device that is open already, such as a window's, best opened as
    /// [`device_descriptor`](crate::device_descriptor) asks. Code that draws on that device finds the fields
    /// by [`Session::device_buffer`]. Every submission ends with whole passes, so a drawing after it shows
    /// the state after some step.
    pub fn sharing(
        adapter: &wgpu::Adapter,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
    ) -> Result<WgpuBackend> {
        let description = Adapter::of(adapter.get_info(), &device.limits(), device.features());
        block_on(WgpuBackend::on_device(Gpu::of(description, device.clone(), queue.clone())))
    }

    async fn chosen(asked: Option<&str>) -> Result<WgpuBackend> {
        let (description, adapter) = choose(asked).await?;
        WgpuBackend::on_device(Gpu::open(description, &adapter).await?).await
    }

    async fn on_device(gpu: Gpu) -> Result<WgpuBackend> {
        let gpu = Arc::new(gpu);
        let bandwidth = bandwidth(&gpu).await?;
        let spec = spec(&gpu.adapter, bandwidth);
        Ok(WgpuBackend { gpu, spec, tuned_plans: TunedPlans::of_user(), modules: Modules::default() })
    }

    /// Keeps and looks for what tuning finds in this folder instead of the user's cache folder.
    pub fn keeping_winners_in(mut self, folder: impl Into<PathBuf>) -> WgpuBackend {
        self.tuned_plans = TunedPlans::at(folder.into());
        self
    }

    /// Returns the adapter that the backend runs on.
    pub fn adapter(&self) -> &Adapter {
        &self.gpu.adapter
    }

    /// Returns whether the adapter is a program on the CPU.
    pub fn is_software(&self) -> bool {
        self.gpu.adapter.is_software()
    }

    /// Opens a session as [`Backend::open`] does, without blocking; its steps can be awaited too.
    pub async fn open_async(
        &self,
        problem: &Problem,
        plan: &Plan,
        fields: Vec<Array>,
    ) -> Result<WgpuSession> {
        check_type(&self.gpu, problem.dtype)?;
        if problem.is_batch() {
            let reason = "a session that is awaited runs a single domain, not a batch";
            return Err(Error::unsupported(format!("backend {NAME}"), reason, "await one for each member"));
        }
        let Some(clock) = Clock::on_device(problem, false).filter(|clock| is_of_clock(plan, clock)) else {
            return self.open_alone(problem, plan, fields).await;
        };
        let plain = clock.plain().clone();
        let kernels = wgsl::kernels(&plain, plan)?;
        self.check_plain(&plain, plan, &kernels)?;
        let cut = Segmented::clocked(problem, clock, &fields, None)?;
        let session = PlainSession::open(self.gpu.clone(), &plain, plan, &kernels, fields).await?;
        Ok(WgpuSession::clocked(session, problem, cut))
    }

    /// Opens a session whose scalars, if there are any, are made on the device.
    async fn open_alone(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<WgpuSession> {
        check_type(&self.gpu, problem.dtype)?;
        let gpu = self.gpu.clone();
        if !problem.is_plain() {
            let made = self.made(problem, plan)?;
            return Ok(ProgramSession::open(gpu, problem, plan, made, fields).await?.into());
        }
        let kernels = wgsl::kernels(problem, plan)?;
        self.check_plain(problem, plan, &kernels)?;
        Ok(PlainSession::open(gpu, problem, plan, &kernels, fields).await?.into())
    }

    /// Returns the launches and kernels of a problem that is not plain, within the device's limits.
    fn made(&self, problem: &Problem, plan: &Plan) -> Result<Made> {
        let made = Made::of(problem, plan, self.gpu.adapter.f64)?;
        let largest = made.storage.buffers.iter().map(|buffer| buffer.len()).max().unwrap_or(0);
        self.check(problem, &made.kernels.kernels, largest)?;
        Ok(made)
    }

    fn tuning<'a>(&'a self, problem: &'a Problem, options: &'a Options) -> Tuning<'a> {
        Tuning { tuned_plans: &self.tuned_plans, device: &self.spec, driver: self.driver(), problem, options }
    }

    /// Plans the plain form of a problem whose scalars a clock makes.
    fn plan_at_rest(&self, problem: &Problem, at_rest: &Problem, options: &Options) -> Result<Plan> {
        let mut plan = self.plan(at_rest, options)?;
        let Some(clock) = Clock::on_device(problem, false).filter(|clock| is_of_clock(&plan, clock)) else {
            return Ok(plan);
        };
        // What varies in a dispatch's steps must lie in one uniform buffer.
        let per_step = uniform_bytes(clock.plain(), &plan).div_ceil(plan.depth.into()).max(1);
        let most = self.gpu.limits.max_uniform_buffer_binding_size / per_step;
        if options.depth == Depth::Auto && (1..u64::from(plan.depth)).contains(&most) {
            plan = self.plan(at_rest, &Options { depth: Depth::Steps(most as u32), ..*options })?;
        }
        self.check_plain(clock.plain(), &plan, &wgsl::kernels(clock.plain(), &plan)?)?;
        Ok(plan)
    }

    /// Checks the limits of a plain problem's kernels.
    pub(crate) fn check_plain(&self, problem: &Problem, plan: &Plan, kernels: &[Kernel]) -> Result<()> {
        let uniform_bytes = uniform_bytes(problem, plan);
        let most = self.gpu.limits.max_uniform_buffer_binding_size;
        self.within("bytes of parameters", uniform_bytes, most, "use fewer parameters")?;
        self.check(problem, kernels, problem.shape.cells())
    }

    fn within(&self, what: &str, asked: u64, limit: u64, change: &str) -> Result<()> {
        match asked <= limit {
            true => Ok(()),
            false => Err(Error::limit(format!("{what} on {}", self.gpu.adapter.name), asked, limit, change)),
        }
    }

    /// Checks limits that wgpu itself does not check, or that it reports without naming a way out. A field
    /// has at most so many `values`.
    fn check<B: Bound>(&self, problem: &Problem, kernels: &[Kernel<B>], values: usize) -> Result<()> {
        let limits = &self.gpu.limits;
        for kernel in kernels {
            let bytes = values.min(kernel.piece_cells) as u64 * problem.dtype.bytes() as u64;
            let change = "make the plan for this device, or choose a smaller size or f32";
            self.within("bytes of a field that are bound at once", bytes, self.spec.buffer_bytes, change)?;
            let stage = &kernel.name;
            let buffers = kernel.bindings.iter().filter(|binding| binding.access().is_storage()).count();
            let (threads, bytes) = (kernel.threads as u64, kernel.workgroup_bytes as u64);
            let smaller = "make the plan for this device";
            self.within(
                &format!("threads of a workgroup of {stage}"),
                threads,
                self.spec.threads_per_block as u64,
                smaller,
            )?;
            self.within(
                &format!("bytes of workgroup memory of {stage}"),
                bytes,
                self.spec.shared_bytes_per_block as u64,
                smaller,
            )?;
            let change =
                "use fewer fields a stage, a smaller size where fields are split, or another backend";
            self.within(
                &format!("buffers that {stage} reads and writes"),
                buffers as u64,
                limits.max_storage_buffers_per_shader_stage.into(),
                change,
            )?;
            grid(kernel.workgroups, limits.max_compute_workgroups_per_dimension)?;
        }
        Ok(())
    }
}

impl Backend for WgpuBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn device(&self) -> &DeviceSpec {
        &self.spec
    }

    fn driver(&self) -> String {
        format!("{} {}", self.gpu.adapter.interface, self.gpu.adapter.driver).trim().to_owned()
    }

    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        if problem.is_batch() {
            return plan_members(problem, Order::InTurn, |member| self.plan(member, options));
        }
        check_type(&self.gpu, problem.dtype)?;
        if let Some(plan) = plan_of_clock(problem, options, false, |plain, options| {
            self.plan_at_rest(problem, plain, options)
        }) {
            return plan;
        }
        wgsl::check(problem)?;
        let mut plan = planned(&self.tuning(problem, options), self)?;
        let computes = problem.program.stages().iter().any(|stage| stage.does.scalar().is_some());
        if computes && !self.gpu.adapter.f64 {
            let device = &self.gpu.adapter.name;
            plan.notes.push(format!("computed scalars are kept in f32, because {device} has no f64"));
        }
        match problem.is_plain() {
            true => self.check_plain(problem, &plan, &wgsl::kernels(problem, &plan)?)?,
            false => drop(self.made(problem, &plan)?),
        }
        Ok(plan)
    }

    fn tuner(&self) -> Option<&dyn Tuner> {
        Some(self)
    }

    fn linear(&self) -> Option<&dyn LinearBackend> {
        Some(self)
    }

    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        if problem.is_batch() {
            let open = |problem: &Problem, plan: &Plan, fields| Backend::open(self, problem, plan, fields);
            return Ok(Box::new(MemberSessions::open(problem, plan, fields, open)?));
        }
        // A program records by itself, but halts at no mark unless its steps have loops; a clock takes note of both.
        let by_clock = Clock::on_device(problem, false).is_some_and(|clock| is_of_clock(plan, &clock));
        let notes = problem.program.has_loops() || problem.marks.is_none();
        if by_clock || (!problem.is_plain() && notes) {
            return Ok(Box::new(block_on(self.open_async(problem, plan, fields))?));
        }
        let cut = Segmented::new(problem, &fields)?;
        let inner = Problem { record: None, marks: None, ..problem.clone() };
        Ok(Segmented::around(cut, Box::new(block_on(self.open_alone(&inner, plan, fields))?)))
    }
}

impl Tuner for WgpuBackend {
    fn measure(&self, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
        let _alone = alone();
        let at_rest = Clock::on_device(problem, false).map(|clock| clock.at_rest());
        measure(&self.tuning(at_rest.as_ref().unwrap_or(problem), options), self)
    }
}

/// Returns the properties that a plan needs. A rate that no interface reports and no short copy measures is 0:
/// unknown.
fn spec(adapter: &Adapter, bandwidth: f64) -> DeviceSpec {
    DeviceSpec {
        name: adapter.name.clone(),
        compute_capability: None,
        multiprocessors: 0,
        registers: None,
        // A driver that computes on the CPU has the CPU's vector registers; others do not report theirs.
        registers_per_thread: adapter.is_software().then_some(16),
        shared_bytes: adapter.workgroup_bytes,
        shared_bytes_per_block: adapter.workgroup_bytes / 16 * 16,
        constant_bytes: None,
        caches: None,
        shared_bytes_reserved: 0,
        threads: adapter.workgroup_threads,
        threads_per_block: adapter.workgroup_threads,
        warp: adapter.subgroup,
        l2_bytes: 0,
        memory_bytes: 0,
        buffer_bytes: adapter.buffer_bytes,
        kernel_buffers: Some(adapter.buffers),
        memory_bandwidth: bandwidth,
        l2_bandwidth: bandwidth,
        shared_bandwidth: 0.0,
        f32_flops: 0.0,
        f64_flops: 0.0,
        launch_seconds: DISPATCH_SECONDS,
        barrier_seconds: 0.0,
        exchange_seconds: 0.0,
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use abide_core::{DType, Shape, catalogue};

    use super::*;

    #[test]
    fn a_device_that_goes_away_is_an_error() {
        let Ok(backend) = WgpuBackend::new() else {
            return println!("skipped: wgpu: no adapter");
        };
        let program = catalogue::find("heat").and_then(|entry| entry.program(2)).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[32, 32]).unwrap(), DType::F32).unwrap();
        let field = vec![Array::F32(vec![0.5; 1024])];
        let plan = Backend::plan(&backend, &problem, &Options::default()).unwrap();
        let mut session = Backend::open(&backend, &problem, &plan, field.clone()).unwrap();
        session.advance(3).unwrap();
        backend.gpu.device.destroy();
        let error = session.advance(3).unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
        assert!(session.read(0).is_err());
        assert!(session.write(0, &field[0]).is_err());
        assert!(matches!(session.set_parameter(0, 0.2), Err(Error::Device { .. })));
        assert!(Backend::open(&backend, &problem, &plan, field).is_err());
    }

    #[test]
    fn too_large_an_allocation_is_an_error() {
        let Ok(backend) = WgpuBackend::new() else {
            return println!("skipped: wgpu: no adapter");
        };
        let allocate = |label, bytes| block_on(backend.gpu.buffer(label, bytes, wgpu::BufferUsages::STORAGE));
        let error = allocate("too much", 1 << 46).unwrap_err();
        assert!(error.to_string().contains("for too much"), "{error}");
        allocate("a little", 64).unwrap();
    }
}
