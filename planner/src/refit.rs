//! Plans made anew by a compiler's report. A plan's registers are a model's; the compiler may need more, and then stores
//! values of the inner loop in local memory. While its report shows such spills, another plan takes the place.

use abide_core::plan::streaming::warp::Configuration;
use abide_core::plan::{Compiled, Depth, Options, Plan};
use abide_core::{Problem, Result};

use crate::persistent::with_planes_in_registers;
use crate::resident::with_resident_registers;
use crate::{streaming_plans, with_fewer_blocks};

/// A plan with the compiler's report in it, and its code.
#[derive(Debug, Clone)]
pub struct Fitted<C> {
    /// The plan that was kept.
    pub plan: Plan,
    /// What the compiler made of it.
    pub code: C,
}

impl<C> Fitted<C> {
    /// Returns the bytes per thread that the kernel with the most spills.
    fn spilled(&self) -> usize {
        Compiled::most_spilled(&self.plan.compiled).unwrap_or(0)
    }

    /// Returns the other if it spills less.
    fn or_less(self, other: Fitted<C>) -> Fitted<C> {
        if other.spilled() < self.spilled() { other } else { self }
    }

    /// Adds notes on the changes that the compiler's report made necessary.
    fn noted(mut self, given_up: usize) -> Fitted<C> {
        let spilled = self.spilled();
        let fewer = (given_up > 0).then(|| {
            format!(
                "{given_up} planes fewer in registers than modelled, for the compiler's report showed spills"
            )
        });
        let spills = (spilled > 0).then(|| {
            format!(
                "the kernel spills {spilled} bytes per thread to local memory: the formula needs more registers than a thread has"
            )
        });
        // A plan that was compiled before has its notes.
        for note in fewer.into_iter().chain(spills) {
            if !self.plan.notes.contains(&note) {
                self.plan.notes.push(note);
            }
        }
        self
    }
}

/// What compiles a plan's kernels: the report and the code.
pub type Compile<'a, C> = dyn Fn(&Plan) -> Result<(Vec<Compiled>, C)> + 'a;

fn compiled<C>(plan: &Plan, compile: &Compile<'_, C>) -> Result<Fitted<C>> {
    let (report, code) = compile(plan)?;
    let mut plan = plan.clone();
    plan.compiled = report;
    Ok(Fitted { plan, code })
}

/// Compiles a plan, and others in its place while the report shows spills. For a persistent plan these have fewer planes in
/// registers: the interval between what fits and what does not is halved, down to an eighth of what was planned, or by
/// eighths where the whole domain stays on the chip. For a streaming plan they are of other configurations; for a program's
/// persistent kernel fewer blocks share a multiprocessor.
///
/// # Errors
///
/// What `compile` returns.
pub fn refit<C>(problem: &Problem, plan: &Plan, compile: &Compile<'_, C>) -> Result<Fitted<C>> {
    if plan.warp_streaming().is_some() {
        let mut best = refit_alone(plan, compile)?;
        for other in other_streams(problem, plan) {
            if best.spilled() <= slight_spills(&best.plan) {
                break;
            }
            best = best.or_less(refit_alone(&other, compile)?);
        }
        return Ok(best.noted(0));
    }
    let mut best = compiled(plan, compile)?;
    if plan.persistent_program().is_some() {
        while let Some(fewer) = with_fewer_blocks(&best.plan, problem).filter(|_| best.spilled() > 0) {
            let tried = compiled(&fewer, compile)?;
            if tried.spilled() >= best.spilled() {
                break;
            }
            best = tried;
        }
        return Ok(best.noted(0));
    }
    if let Some(resident) = plan.resident() {
        return refit_resident(problem, plan, resident.planes_registers, best, compile);
    }
    let Some(persistent) =
        plan.persistent().filter(|persistent| best.spilled() > 0 && persistent.planes_registers > 0)
    else {
        return Ok(best.noted(0));
    };
    let (planned, finest) =
        (persistent.planes_registers, persistent.chunk.max(persistent.planes_registers / 8));
    let (mut fits, mut spills) = (None, planned);
    while spills - fits.unwrap_or(0) > finest || fits.is_none() {
        let planes = (fits.unwrap_or(0) + spills) / 2 / persistent.chunk * persistent.chunk;
        let tried = compiled(&with_planes_in_registers(plan, problem, planes), compile)?;
        if tried.spilled() == 0 || planes == 0 {
            (fits, best) = (Some(planes), tried);
        } else {
            spills = planes;
        }
    }
    Ok(best.noted(planned - fits.unwrap_or(0)))
}

/// The bytes that a streaming kernel may spill per thread, of planes of one row and of several. Of the latter the inner
/// loop has few of the loads; of one row, 16 to 32 bytes made kernels of a step more 3 to 4 % slower than those of a step
/// less without any (`2ds9pt` and `2d13pt` f32 8352²).
const SLIGHT_SPILLS: [usize; 2] = [0, 16];

/// Returns the bytes per thread that a kernel of a plan may spill before another takes its place.
pub fn slight_spills(plan: &Plan) -> usize {
    plan.warp_streaming().map_or(0, |streaming| SLIGHT_SPILLS[usize::from(streaming.window()[0] > 1)])
}

/// The bytes per thread up to which another text of the same configuration may do without spills: texts differ by a few
/// tens of bytes.
const NEARLY_FITS: usize = 64;

/// Compiles one plan, and no other in its place: what tuning times. Of a streaming plan with few spills it tries what stays
/// the same plan: copies' places summed the other way, and each pass a launch of its own where passes are chained.
///
/// # Errors
///
/// What `compile` returns.
pub fn refit_alone<C>(plan: &Plan, compile: &Compile<'_, C>) -> Result<Fitted<C>> {
    let unchained = plan.unchained();
    let others =
        [plan.with_other_sums(), unchained.clone(), unchained.as_ref().and_then(Plan::with_other_sums)];
    let mut best = compiled(plan, compile)?;
    for other in others.into_iter().flatten() {
        if !(1..=NEARLY_FITS).contains(&best.spilled()) {
            break;
        }
        best = best.or_less(compiled(&other, compile)?);
    }
    Ok(best)
}

/// Moves planes of a resident plan from registers to shared memory, one of eight at a time, while the report shows spills
/// and there is room. `first` is the plan as it was compiled.
fn refit_resident<C>(
    problem: &Problem,
    plan: &Plan,
    planned: usize,
    first: Fitted<C>,
    compile: &Compile<'_, C>,
) -> Result<Fitted<C>> {
    let mut best = first;
    let (mut planes, mut given_up) = (planned, 0);
    while best.spilled() > 0 && planes > 0 {
        planes -= (planned / 8).clamp(1, planes);
        let Some(fewer) = with_resident_registers(plan, problem, planes) else { break };
        let tried = compiled(&fewer, compile)?;
        if tried.spilled() < best.spilled() {
            (best, given_up) = (tried, planned - planes);
        }
    }
    Ok(best.noted(given_up))
}

/// The most streaming plans that are compiled in search of one that does not spill.
const STREAMS_TRIED: usize = 8;

/// Returns streaming plans of other configurations, in order of their estimates, the least first; as deep as
/// `plan` where its depth was asked for.
fn other_streams(problem: &Problem, plan: &Plan) -> Vec<Plan> {
    // Devices whose passes give planes to each other go through as many steps.
    let asked = plan.warp_streaming().is_some_and(|stream| stream.edges.is_some() || stream.depth_asked);
    let depth = if asked { Depth::Steps(plan.depth) } else { Depth::Auto };
    let options = Options { depth, ..Options::default() };
    let shape = |plan: &Plan| {
        plan.warp_streaming().map(|stream| Configuration { waves: 0, ..stream.configuration() })
    };
    let mut shapes = vec![shape(plan)];
    // Plans can be made, because one was made before.
    let mut all = streaming_plans(problem, &plan.device, &options).unwrap_or_default();
    // What the plan counts besides its passes, as for reductions between them, the others cost too.
    let same = all.iter().find(|other| shape(other) == shape(plan));
    let besides = same.map_or(0.0, |same| (plan.estimated_seconds - same.estimated_seconds).max(0.0));
    all.iter_mut().for_each(|other| other.estimated_seconds += besides);
    let fresh = all.into_iter().filter_map(|other| other.giving_as(plan)).filter(|other| {
        let shape = shape(other);
        let is_fresh = !shapes.contains(&shape);
        shapes.push(shape);
        is_fresh
    });
    fresh.take(STREAMS_TRIED).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use abide_core::plan::{CachePolicy, Execution};
    use abide_core::program::{Centring, Clock, Definition, Reduction};
    use abide_core::{DType, DeviceSpec, Shape, catalogue};

    use super::*;
    use crate::plan;

    fn problem(name: &str, extents: &[usize]) -> Problem {
        let program = Arc::new(catalogue::find(name).unwrap().program(extents.len()).unwrap());
        Problem::new(program, Shape::new(extents).unwrap(), DType::F64).unwrap()
    }

    fn planned(problem: &Problem, execution: Execution, cache: CachePolicy) -> Plan {
        let options = Options { execution, cache, ..Options::default() };
        plan(problem, &DeviceSpec::preset("h200").unwrap(), &options).unwrap()
    }

    /// A compiler whose kernels spill as a function says; returns what was kept and all that was compiled.
    fn refitted(
        problem: &Problem,
        plan: &Plan,
        spills: impl Fn(&Plan) -> usize,
    ) -> (Fitted<usize>, Vec<Plan>) {
        let all = RefCell::new(Vec::new());
        let compile = |plan: &Plan| {
            all.borrow_mut().push(plan.clone());
            let (kernel, target) = ("kernel".to_owned(), "sm_90".to_owned());
            let report = Compiled { kernel, target, registers: 255, spill_bytes: spills(plan) };
            Ok((vec![report], all.borrow().len() - 1))
        };
        let fitted = refit(problem, plan, &compile).unwrap();
        (fitted, all.into_inner())
    }

    #[test]
    fn a_plan_that_does_not_spill_is_kept() {
        for (name, extents, execution) in [
            ("2d5pt", &[8352, 8352][..], Execution::Streaming),
            ("2d5pt", &[2304, 2304], Execution::Persistent),
            ("cloverleaf", &[960, 960], Execution::Auto),
        ] {
            let problem = problem(name, extents);
            let plan = planned(&problem, execution, CachePolicy::Auto);
            let (fitted, all) = refitted(&problem, &plan, |_| 0);
            assert_eq!(all.len(), 1, "{name}");
            assert_eq!(fitted.plan.notes, plan.notes);
            assert_eq!(fitted.plan.compiled.len(), 1);
        }
    }

    #[test]
    fn planes_leave_registers_until_none_spills() {
        let problem = problem("2d5pt", &[2304, 2304]);
        let plan = planned(&problem, Execution::Persistent, CachePolicy::Mixed);
        let planned = plan.persistent().unwrap().planes_registers;
        assert!(planned > 8, "{planned}");
        for fitting in [0, planned / 3, planned - 1] {
            let of = |plan: &Plan| plan.persistent().unwrap().planes_registers;
            let (fitted, all) = refitted(&problem, &plan, |plan| 8 * of(plan).saturating_sub(fitting));
            let kept = of(&fitted.plan);
            assert!(kept <= fitting && fitting - kept <= planned / 8 + 1, "{kept} of {fitting} of {planned}");
            assert!(all.len() < 8, "{}", all.len());
            assert_eq!(of(&all[fitted.code]), kept, "the code is that of the plan");
            let note = format!("{} planes fewer in registers", planned - kept);
            assert!(fitted.plan.notes.iter().any(|own| own.starts_with(&note)), "{:?}", fitted.plan.notes);
        }
    }

    #[test]
    fn the_streaming_plan_that_spills_least_is_kept_and_says_so() {
        let problem = problem("2d5pt", &[8352, 8352]);
        let plan = planned(&problem, Execution::Streaming, CachePolicy::Auto);
        let spills = |plan: &Plan| 100 + plan.depth as usize;
        let (fitted, all) = refitted(&problem, &plan, spills);
        assert_eq!(all.len(), 1 + STREAMS_TRIED);
        let least = all.iter().map(spills).min().unwrap();
        assert_eq!(fitted.spilled(), least);
        let words = format!("the kernel spills {least} bytes");
        assert!(fitted.plan.notes.iter().any(|note| note.starts_with(&words)), "{:?}", fitted.plan.notes);
    }

    #[test]
    fn passes_stay_whole_between_reductions() {
        let mut p = Definition::new("heat", 2);
        p.field("u", Centring::CELL).scalar("most", None, "largest value");
        let mut step = p.step();
        step.reduce_every(8, "most", Reduction::Max, Centring::CELL, |s| s.field("u").here());
        step.stage("heat", |s| {
            let u = s.field("u");
            s.set("u", 0.25 * (u.at([-1, 0]) + u.at([1, 0]) + u.at([0, -1]) + u.at([0, 1])));
        });
        let program = Arc::new(p.build().unwrap());
        let problem = Problem::new(program, Shape::new(&[8192, 8192]).unwrap(), DType::F64).unwrap();
        let plan = planned(&problem, Execution::Auto, CachePolicy::Auto);
        let plain = Clock::on_device(&problem, true).unwrap().plain().clone();
        let (fitted, all) = refitted(&plain, &plan, |_| 100);
        assert!(all.len() > 1);
        for tried in all {
            assert!(8_u32.is_multiple_of(tried.depth), "{} steps a pass", tried.depth);
            // A halt of the host alone, once in eight steps.
            assert!(tried.estimated_seconds > 4e-6 + 25e-6, "{:e}", tried.estimated_seconds);
        }
        assert!(8_u32.is_multiple_of(fitted.plan.depth));
    }

    #[test]
    fn a_compilers_error_is_passed_on() {
        let problem = problem("2d5pt", &[512, 512]);
        let plan = planned(&problem, Execution::Auto, CachePolicy::Auto);
        let fails = |_: &Plan| -> Result<(Vec<Compiled>, ())> {
            Err(abide_core::Error::device("cuda", "compiling", "no room"))
        };
        assert!(refit(&problem, &plan, &fails).is_err());
    }
}
