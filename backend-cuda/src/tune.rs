//! Tuning: plans around the planner's own choice, compiled side by side and timed one after another; the
//! fastest is kept.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use abide_cache::tuned::{Tuning, alone};
use abide_core::backend::Tuner;
use abide_core::plan::{Execution, Measured, Options, Tune, neighbours};
use abide_core::{Array, Backend, Error, Plan, Problem, Result};
use abide_shaders::cuda;

use crate::driver::during;
use crate::kernels::{Kernels, fit, target};
use crate::memory::{Fields, parameter_bytes};
use crate::nvrtc::{Cubin, Nvrtc};
use crate::session::{Launcher, launcher};
use crate::stepwise::GRAPH_STEPS;
use crate::timing::Timer;
use crate::{CudaBackend, cache};

/// The least seconds of a timed run: beside them the launch and the clock's resolution are nothing.
const RUN_SECONDS: f64 = 0.02;

/// Seconds of work before the first run is timed, in which an idle device reaches its clock.
const WARM_UP_SECONDS: f64 = 0.3;

/// A plan whose first run takes so many times as long as the fastest plan's runs is not run again.
const BEATEN: f64 = 1.3;

/// How long timing may take; compiling is not in it.
fn budget(tune: Tune) -> Duration {
    Duration::from_secs(if tune == Tune::Full { 60 } else { 5 })
}

/// Timed runs of a plan, of which the median counts.
fn repeats(tune: Tune) -> usize {
    if tune == Tune::Full { 5 } else { 3 }
}

/// The plan for a problem: what an earlier tuning kept, or what tuning finds now, or the planner's own
/// choice, as the options ask.
pub(crate) fn plan(backend: &CudaBackend, problem: &Problem, options: &Options) -> Result<Plan> {
    let own = abide_core::plan::plan(problem, &backend.device, options)?;
    // A launch per stage leaves nothing to choose.
    if options.execution == Execution::Stepwise {
        return Ok(own);
    }
    let driver = backend.driver();
    tuning(backend, problem, options, &driver).plan(own, || measure(backend, problem, options))
}

fn tuning<'a>(
    backend: &'a CudaBackend,
    problem: &'a Problem,
    options: &'a Options,
    driver: &'a str,
) -> Tuning<'a> {
    Tuning { winners: &backend.winners, device: &backend.device, driver, problem, options }
}

impl Tuner for CudaBackend {
    fn measure(&self, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
        let _alone = alone();
        measure(self, problem, options)
    }
}

/// Compiles the plans worth trying and times those that do not spill, the planner's own choice in any case,
/// until the budget is used up. The caller sees to it that nothing else is timed meanwhile.
fn measure(backend: &CudaBackend, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
    let plans = neighbours(problem, &backend.device, options)?;
    let compiled = compile_all(&backend.nvrtc, problem, &plans, &target(&backend.device));
    let any_clean = compiled.iter().flatten().any(|(plan, _)| spilled(plan) == 0);
    let mut stand = Stand::new(backend, problem)?;
    let (begun, budget) = (Instant::now(), budget(options.tune));
    let mut rows: Vec<Measured> = Vec::with_capacity(plans.len());
    for (number, (plan, compiled)) in plans.into_iter().zip(compiled).enumerate() {
        let predicted_seconds = plan.estimated_seconds;
        let mut row = Measured { plan, predicted_seconds, seconds: None, note: None };
        let (compiled, cubin) = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                row.note = Some(format!("it does not compile: {}", brief(&error)));
                rows.push(row);
                continue;
            }
        };
        let changes = &compiled.notes[row.plan.notes.len().min(compiled.notes.len())..];
        row.note = (!changes.is_empty()).then(|| changes.join("; "));
        row.plan = compiled;
        let best = Measured::fastest(&rows).and_then(|place| rows[place].seconds);
        if number > 0 && any_clean && spilled(&row.plan) > 0 {
            row.note = Some(format!("left out: it spills {} bytes a thread", spilled(&row.plan)));
        } else if best.is_some() && begun.elapsed() > budget {
            row.note = Some(format!("left out: the {} s for timing were used up", budget.as_secs()));
        } else {
            match stand.time(&row.plan, cubin, best, repeats(options.tune)) {
                Ok(seconds) => row.seconds = Some(seconds),
                Err(error) => row.note = Some(format!("it does not run: {}", brief(&error))),
            }
        }
        rows.push(row);
    }
    drop(stand);
    // Memory is given back to the system when the device is idle: the session that follows may need all of
    // it.
    let _ = backend.context.synchronize();
    tuning(backend, problem, options, &backend.driver()).keep(&rows);
    Ok(rows)
}

/// The most bytes a thread that a kernel of a compiled plan spills.
fn spilled(plan: &Plan) -> usize {
    plan.compiled.iter().map(|kernel| kernel.spill_bytes).max().unwrap_or(0)
}

/// The first line of an error: a compiler's log is long.
fn brief(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Compiles plans on as many threads as there are cores; the first is the planner's own choice.
fn compile_all(nvrtc: &Nvrtc, problem: &Problem, plans: &[Plan], target: &str) -> Vec<Result<(Plan, Cubin)>> {
    let compile = |number: usize, plan: &Plan| {
        // A stream that spills is left out here; a session would open another in its place, and so does the
        // own choice.
        if number == 0 || plan.warp_streaming().is_none() {
            return fit(nvrtc, problem, plan, target);
        }
        let cubin = cache::compile(nvrtc, &cuda::kernel(problem, plan)?, target, &cuda::COMPILE_OPTIONS)?;
        Ok((Plan { compiled: cubin.report.clone(), ..plan.clone() }, cubin))
    };
    let done: Vec<OnceLock<Result<(Plan, Cubin)>>> = plans.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(number) else { return };
            done[number].get_or_init(|| compile(number, plan));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(plans.len());
    std::thread::scope(|scope| {
        // Those that the system does not grant leave their work to the others, and to this one.
        (1..threads).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, work)));
        work();
    });
    let missing = || Err(Error::device("cuda", "compiling a plan", "no thread took it"));
    done.into_iter().map(|one| one.into_inner().unwrap_or_else(missing)).collect()
}

/// Fields on the device that all plans are timed with, one after another.
struct Stand<'a> {
    backend: &'a CudaBackend,
    fields: Fields,
    parameters: Vec<u8>,
    /// What the fields hold at the beginning of each plan's runs: the program's own start, so that values are
    /// of the kind that it is made for.
    start: Vec<Array>,
    timer: Timer,
    is_warm: bool,
}

impl<'a> Stand<'a> {
    fn new(backend: &'a CudaBackend, problem: &Problem) -> Result<Self> {
        backend.context.bind_to_thread().map_err(during("binding the context"))?;
        let fields = 0..problem.program.fields().len();
        let fill = |field| problem.program.start(field).fill(&problem.shape, problem.dtype);
        let start: Vec<Array> = fields.map(fill).collect::<Result<_>>()?;
        let fields = Fields::new(problem, &backend.context, &start)?;
        let (parameters, timer) = (parameter_bytes(problem), Timer::new(&fields)?);
        Ok(Stand { backend, fields, parameters, start, timer, is_warm: false })
    }

    /// The median seconds a step of a compiled plan; of its first run alone where `best` is far from it.
    fn time(&mut self, plan: &Plan, cubin: Cubin, best: Option<f64>, repeats: usize) -> Result<f64> {
        let kernels = Kernels::load(&self.backend.context, cubin)?;
        let mut launcher = launcher(plan, &self.fields, &kernels, &self.backend.nvrtc)?;
        for (field, values) in self.start.iter().enumerate() {
            self.fields.write(field, values)?;
        }
        // Whole passes, and whole graphs where there are many: what is left over runs slower.
        let pass = u64::from(plan.depth.max(1));
        let most = launcher.most_steps() / pass * pass;
        // The first launch of a kernel also loads it.
        self.run(&mut *launcher, pass)?;
        let mut steps = pass;
        let mut seconds = self.run(&mut *launcher, steps)?;
        while seconds < RUN_SECONDS && steps < most {
            steps = longer(steps, seconds, pass).min(most);
            seconds = self.run(&mut *launcher, steps)?;
        }
        if !self.is_warm {
            let mut worked = 0.0;
            while worked < WARM_UP_SECONDS {
                seconds = self.run(&mut *launcher, steps)?;
                worked += seconds;
            }
            self.is_warm = true;
        }
        let mut samples = vec![seconds / steps as f64];
        while samples.len() < repeats && best.is_none_or(|best| samples[0] < BEATEN * best) {
            samples.push(self.run(&mut *launcher, steps)? / steps as f64);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }

    fn run(&mut self, launcher: &mut dyn Launcher, steps: u64) -> Result<f64> {
        launcher.prepare(&self.fields, &mut self.parameters, steps)?;
        self.timer.start(&self.fields)?;
        launcher.launch(&mut self.fields, &mut self.parameters, steps)?;
        self.timer.stop(&self.fields)
    }
}

/// More steps than `steps`, which took `seconds`: about as many as a timed run needs, in whole passes, and in
/// whole graphs where there are so many.
fn longer(steps: u64, seconds: f64, pass: u64) -> u64 {
    let factor = (1.2 * RUN_SECONDS / seconds.max(1e-7)).clamp(2.0, 1000.0);
    let wanted = (steps as f64 * factor) as u64;
    let unit = if wanted >= GRAPH_STEPS * pass { GRAPH_STEPS * pass } else { pass };
    wanted.next_multiple_of(unit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::{DType, DeviceSpec, Shape, catalogue};

    use super::*;

    #[test]
    fn runs_grow_in_whole_passes_to_what_is_worth_timing() {
        for (pass, a_step) in [(1, 1e-9), (1, 3e-6), (8, 40e-6), (24, 1e-3), (7, 0.05)] {
            let (mut steps, mut rounds) = (pass, 0);
            while (steps as f64 * a_step) < RUN_SECONDS {
                let more = longer(steps, steps as f64 * a_step, pass);
                assert!(more >= 2 * steps && more.is_multiple_of(pass));
                (steps, rounds) = (more, rounds + 1);
            }
            assert!(rounds <= 4, "{rounds} rounds");
            // No longer than needed, but for the least that can be run.
            let whole = (GRAPH_STEPS * pass) as f64 * a_step;
            assert!(
                steps as f64 * a_step <= (1.25 * RUN_SECONDS + whole).max(pass as f64 * a_step),
                "{steps}"
            );
            assert!(steps < GRAPH_STEPS * pass || steps.is_multiple_of(GRAPH_STEPS * pass));
        }
    }

    #[test]
    fn all_plans_are_compiled_each_in_its_place() {
        let nvrtc = match Nvrtc::open() {
            Ok(nvrtc) => nvrtc,
            Err(reason) => {
                let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
                assert!(required.split(',').all(|one| one.trim() != "nvrtc"), "nvrtc is required: {reason}");
                println!("skipped: nvrtc: {reason}");
                return;
            }
        };
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let problem = Problem::new(program, Shape::new(&[509, 521]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { tune: Tune::Quick, ..Options::default() };
        let plans = neighbours(&problem, &device, &options).unwrap();
        let compiled = compile_all(&nvrtc, &problem, &plans, &target(&device));
        assert_eq!(compiled.len(), plans.len());
        for (plan, compiled) in plans.iter().zip(compiled) {
            let (compiled, cubin) = compiled.unwrap();
            assert_eq!((compiled.execution, compiled.depth), (plan.execution, plan.depth));
            assert_eq!(compiled.compiled, cubin.report);
            assert!(!cubin.report.is_empty() && cubin.report.iter().all(|kernel| kernel.registers > 0));
        }
    }
}
