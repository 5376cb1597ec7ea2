//! Tuning: plans around the planner's own choice, compiled side by side and timed one after another; the
//! fastest is kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use abide_core::plan::{Compiled, Execution, Measured, Stepwise};
use abide_core::program::Place;
use abide_core::{Array, Error, Plan, Problem, Result};
use abide_planner::{Fitted, candidates, slight_spills};
use abide_shaders::cuda;
use abide_tuning::tuned::Tuning;
use abide_tuning::{Run, Stand, brief};
use cudarc::driver::CudaContext;

use crate::driver::during;
use crate::kernels::{Code, Kernels, fit, fit_alone, target};
use crate::launcher::Launcher;
use crate::memory::Fields;
use crate::nvrtc::{Cubin, Nvrtc};
use crate::parameters::Parameters;
use crate::session::launcher;
use crate::stepwise::GRAPH_STEPS;
use crate::timing::Timer;

/// Returns the plan for a problem: as the options ask, the one that an earlier tuning kept, the one that
/// tuning finds now, or the planner's own choice.
pub(crate) fn plan(tuning: &Tuning<'_>, context: &Arc<CudaContext>, nvrtc: &Arc<Nvrtc>) -> Result<Plan> {
    let own = || abide_planner::plan(tuning.problem, tuning.device, tuning.options);
    // Other programs than plain ones have a launch per stage or group alone.
    if !tuning.problem.is_plain() {
        return tuning.grouped(own, |plan| spilling(nvrtc, tuning.problem, plan));
    }
    let own = own()?;
    // A launch per stage leaves nothing to choose.
    if tuning.options.execution == Execution::Stepwise {
        return Ok(own);
    }
    tuning.plan(own, || measure(tuning, context, nvrtc))
}

/// Compiles a plan's kernels and returns the groups of several stages whose kernels spill registers, each by the results
/// that it computes. What is compiled is kept, so that a session need not compile it again.
fn spilling(nvrtc: &Nvrtc, problem: &Problem, plan: &Plan) -> Result<Vec<Vec<Place>>> {
    let Some(tiles) = plan.stepwise() else { return Ok(Vec::new()) };
    let Fitted { plan, code } = fit(nvrtc, problem, plan, &target(&plan.device))?;
    let Some(kernels) = code.program else { return Ok(Vec::new()) };
    let places = |group: &Vec<usize>| tiles.partition.places(&problem.program, group);
    Ok(spilling_of(tiles, &kernels, &plan.compiled).iter().map(places).collect())
}

/// Returns the groups of several stages that have a kernel which spills by the compiler's report.
fn spilling_of(tiles: &Stepwise, kernels: &cuda::ProgramKernels, report: &[Compiled]) -> Vec<Vec<usize>> {
    let spills = |entry: &str| report.iter().any(|own| own.kernel == entry && own.spill_bytes > 0);
    let several = tiles.partition.all().filter(|group| group.stages.len() > 1);
    let spilling = several.filter(|group| {
        let own = kernels.groups.get(&group.stages);
        own.is_some_and(|own| own.launches.iter().any(|launch| spills(&launch.entry)))
    });
    spilling.map(|group| group.stages.clone()).collect()
}

/// Compiles the plans worth trying and times those that do not spill, and the planner's own choice in any
/// case, until the budget is used up. The caller sees to it that nothing else is timed meanwhile.
pub(crate) fn measure(
    tuning: &Tuning<'_>,
    context: &Arc<CudaContext>,
    nvrtc: &Arc<Nvrtc>,
) -> Result<Vec<Measured>> {
    if !tuning.problem.is_plain() {
        return Err(Error::unsupported(
            "backend cuda",
            format!("{} runs a launch per stage, and there is no other plan", tuning.problem.program.name()),
            "leave tuning out",
        ));
    }
    let plans = candidates(tuning.problem, tuning.device, tuning.options)?;
    let compiled = compile_all(nvrtc, tuning.problem, &plans, &target(tuning.device));
    let candidates = measured(plans, compiled);
    let rows = tuning.measure(Launches::new(tuning, context, nvrtc)?, candidates);
    // Memory is given back to the system when the device is idle, and the session that follows may need all
    // of it.
    let _ = context.synchronize();
    Ok(rows)
}

/// Returns the plans as they were compiled, with the code of those that are to be timed: plans that do not
/// spill but slightly, and the first, which is the planner's own choice.
fn measured(plans: Vec<Plan>, compiled: Vec<Result<(Plan, Cubin)>>) -> Vec<(Measured, Option<Cubin>)> {
    let any_clean = compiled.iter().flatten().any(|(plan, _)| !spills_much(plan));
    let candidate = |(number, (plan, compiled)): (usize, (Plan, Result<(Plan, Cubin)>))| {
        let row = Measured::of(plan);
        let (plan, cubin) = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                let note = Some(format!("it does not compile: {}", brief(&error)));
                return (Measured { note, ..row }, None);
            }
        };
        if number > 0 && any_clean && spills_much(&plan) {
            let spilled = spilled(&plan);
            let note = Some(format!("left out: it spills {spilled} bytes per thread"));
            return (Measured { plan, note, ..row }, None);
        }
        let changes = &plan.notes[row.plan.notes.len().min(plan.notes.len())..];
        let note = (!changes.is_empty()).then(|| changes.join("; "));
        (Measured { plan, note, ..row }, Some(cubin))
    };
    plans.into_iter().zip(compiled).enumerate().map(candidate).collect()
}

/// Returns the most bytes per thread that a kernel of a compiled plan spills.
fn spilled(plan: &Plan) -> usize {
    Compiled::most_spilled(&plan.compiled).unwrap_or(0)
}

/// Returns whether a compiled plan spills more than a session would run as it is.
fn spills_much(plan: &Plan) -> bool {
    spilled(plan) > slight_spills(plan)
}

/// Compiles plans on as many threads as there are cores; the first is the planner's own choice.
fn compile_all(nvrtc: &Nvrtc, problem: &Problem, plans: &[Plan], target: &str) -> Vec<Result<(Plan, Cubin)>> {
    let kept = |fitted: Fitted<Code>| Ok((fitted.plan, fitted.code.cubin));
    let compile = |number: usize, plan: &Plan| {
        // A streaming plan that spills much is left out here: a session would open another in its place, as it
        // does for the planner's own choice.
        if number == 0 || plan.warp_streaming().is_none() {
            return kept(fit(nvrtc, problem, plan, target)?);
        }
        kept(fit_alone(nvrtc, problem, plan, target)?)
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
        // Threads that the system does not grant leave their work to the others, and to this one.
        (1..threads).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, work)));
        work();
    });
    let missing = || Err(Error::device("cuda", "compiling a plan", "no thread took it"));
    done.into_iter().map(|one| one.into_inner().unwrap_or_else(missing)).collect()
}

/// Fields on the device with which all plans are timed, one after another.
struct Launches<'a> {
    context: &'a Arc<CudaContext>,
    nvrtc: &'a Arc<Nvrtc>,
    fields: Fields,
    parameters: Parameters,
    /// The fields' values at the beginning of each plan's runs.
    start: Vec<Array>,
    timer: Timer,
}

impl<'a> Launches<'a> {
    fn new(tuning: &Tuning<'_>, context: &'a Arc<CudaContext>, nvrtc: &'a Arc<Nvrtc>) -> Result<Self> {
        context.bind_to_thread().map_err(during("binding the context"))?;
        let start = tuning.start()?;
        let fields = Fields::new(tuning.problem, context, &start)?;
        let (parameters, timer) = (Parameters::new(tuning.problem), Timer::new(&fields.stream)?);
        Ok(Launches { context, nvrtc, fields, parameters, start, timer })
    }
}

impl Stand for Launches<'_> {
    type Code = Cubin;
    type Run<'s>
        = Launched<'s>
    where
        Self: 's;

    /// Time for the runs alone; compiling does not count.
    const BUDGETS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(5)];
    /// The steps of a whole graph, because steps left over from one run slower.
    const PASSES_AT_ONCE: u64 = GRAPH_STEPS;
    const WARMS_WHILE_LENGTHENING: bool = false;

    fn open(&mut self, plan: &Plan, cubin: Cubin) -> Result<Launched<'_>> {
        let kernels = Kernels::load(self.context, cubin)?;
        let launcher = launcher(plan, &self.fields, &kernels, self.nvrtc)?;
        for (field, values) in self.start.iter().enumerate() {
            self.fields.write(field, values)?;
        }
        let Launches { fields, parameters, timer, .. } = self;
        Ok(Launched { launcher, fields, parameters, timer })
    }
}

/// A plan's launches on the fields.
struct Launched<'s> {
    launcher: Box<dyn Launcher>,
    fields: &'s mut Fields,
    parameters: &'s mut Parameters,
    timer: &'s Timer,
}

impl Run for Launched<'_> {
    fn most_steps(&self) -> u64 {
        self.launcher.most_steps()
    }

    fn run(&mut self, steps: u64) -> Result<f64> {
        self.parameters.begin(steps, &[], &self.fields.stream)?;
        self.launcher.prepare(self.fields, self.parameters, steps)?;
        self.timer.start(&self.fields.stream)?;
        self.launcher.launch(self.fields, self.parameters, steps)?;
        self.timer.stop(&self.fields.stream)
    }
}

#[cfg(test)]
mod tests {
    use abide_core::plan::{Fuse, Options, Tune};
    use abide_core::{DType, DeviceSpec, Shape, catalogue};

    use super::*;

    #[test]
    fn what_spills_or_does_not_compile_is_left_out_with_its_reason() {
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let problem = Problem::new(program, Shape::new(&[509, 521]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let plan_of = |execution: Execution| {
            let options = Options { execution, ..Options::default() };
            abide_planner::plan(&problem, &device, &options).unwrap()
        };
        let compiled_of = |plan: &Plan, spill_bytes: usize, note: Option<&str>| {
            let (kernel, target) = ("step".to_owned(), "sm_90".to_owned());
            let report = vec![Compiled { kernel, target, registers: 40, spill_bytes }];
            let mut plan = Plan { compiled: report.clone(), ..plan.clone() };
            plan.notes.extend(note.map(str::to_owned));
            Ok((plan, Cubin { image: Vec::new(), report }))
        };
        let plan = plan_of(Execution::Persistent);
        let compiled = |spill_bytes: usize, note: Option<&str>| compiled_of(&plan, spill_bytes, note);
        let refused = || Err(Error::device("cuda", "compiling", "no such register\nand a long log"));
        let found = |compiled: Vec<Result<(Plan, Cubin)>>| -> Vec<(bool, String)> {
            let all = measured(vec![plan.clone(); compiled.len()], compiled);
            all.into_iter().map(|(row, code)| (code.is_some(), row.note.unwrap_or_default())).collect()
        };
        let rows =
            found(vec![compiled(8, Some("fewer planes")), compiled(0, None), compiled(4, None), refused()]);
        assert_eq!(
            rows[0],
            (true, "fewer planes".to_owned()),
            "the planner's own choice is timed in any case"
        );
        assert_eq!(rows[1], (true, String::new()));
        assert_eq!(rows[2], (false, "left out: it spills 4 bytes per thread".to_owned()));
        assert!(
            !rows[3].0 && rows[3].1.starts_with("it does not compile") && !rows[3].1.contains("log"),
            "{rows:?}"
        );
        // Where all plans spill, all are timed.
        assert!(found(vec![compiled(8, None), compiled(4, None)]).iter().all(|row| row.0));
        // A session runs a streaming plan that spills slightly, so it is timed.
        let streaming = plan_of(Execution::Streaming);
        let spilling = |bytes: usize| compiled_of(&streaming, bytes, None);
        let slight = slight_spills(&streaming);
        let rows = found(vec![compiled(0, None), spilling(slight), spilling(slight + 4)]);
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [true, true, false]);
    }

    fn nvrtc() -> Option<Nvrtc> {
        match Nvrtc::open() {
            Ok(nvrtc) => Some(nvrtc),
            Err(reason) => {
                let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
                assert!(required.split(',').all(|one| one.trim() != "nvrtc"), "nvrtc is required: {reason}");
                println!("skipped: nvrtc: {reason}");
                None
            }
        }
    }

    /// A group is refused for its own kernel's spills alone, and the report has every kernel of every group.
    #[test]
    fn groups_whose_kernels_spill_are_found() {
        let program = Arc::new(catalogue::cloverleaf().unwrap());
        let problem = Problem::new(program, Shape::new(&[3840, 3840]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { fuse: Fuse::Greedy, ..Options::default() };
        let plan = abide_planner::plan(&problem, &device, &options).unwrap();
        let tiles = plan.stepwise().unwrap();
        let kernels = cuda::program_kernels(&problem, tiles).unwrap();
        let entries = |stages: &Vec<usize>| -> Vec<&str> {
            kernels.groups[stages].launches.iter().map(|launch| &*launch.entry).collect()
        };
        let groups: Vec<&Vec<usize>> = tiles.partition.all().map(|group| &group.stages).collect();
        let several: Vec<&Vec<usize>> = groups.iter().filter(|stages| stages.len() > 1).copied().collect();
        assert!(several.len() > 1);
        for stages in &groups {
            // Only the kernels of this group spill; groups of the same kernel spill with it.
            let own = entries(stages);
            let (target, registers) = ("sm_90".to_owned(), 255);
            let of = |entry: &&str| Compiled {
                kernel: (*entry).to_owned(),
                target: target.clone(),
                registers,
                spill_bytes: if own.contains(entry) { 8 } else { 0 },
            };
            let report: Vec<Compiled> =
                groups.iter().flat_map(|stages| entries(stages)).map(|e| of(&e)).collect();
            let same = |other: &&&Vec<usize>| entries(other).iter().any(|entry| own.contains(entry));
            let expected: Vec<Vec<usize>> =
                several.iter().filter(same).map(|&stages| stages.clone()).collect();
            assert_eq!(spilling_of(tiles, &kernels, &report), expected, "{stages:?}");
            assert_eq!(expected.contains(stages), stages.len() > 1);
        }
        let Some(nvrtc) = nvrtc() else { return };
        let compiled = fit(&nvrtc, &problem, &plan, &target(&device)).unwrap().plan;
        for entry in groups.iter().flat_map(|stages| entries(stages)) {
            assert!(compiled.compiled.iter().any(|own| own.kernel == entry), "{entry}");
        }
        let any = spilling(&nvrtc, &problem, &plan).unwrap();
        assert_eq!(any.is_empty(), compiled.compiled.iter().all(|own| own.spill_bytes == 0), "{any:?}");
    }

    #[test]
    fn all_plans_are_compiled_each_in_its_place() {
        let Some(nvrtc) = nvrtc() else { return };
        let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
        let problem = Problem::new(program, Shape::new(&[509, 521]).unwrap(), DType::F32).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { tune: Tune::Quick, ..Options::default() };
        let plans = candidates(&problem, &device, &options).unwrap();
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
