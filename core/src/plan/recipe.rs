//! A plan reduced to what was chosen freely of it: small enough to be kept, enough to make the plan again.

use serde::{Deserialize, Serialize};

use super::{CachePolicy, Depth, Options, Plan, Schedule, blocks, plan_tiles, planes, stream, sweep};
use crate::device::DeviceSpec;
use crate::program::Problem;

/// The free choices of a plan; the rest follows from them, the problem and the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "schedule", rename_all = "lowercase")]
pub enum Recipe {
    /// A launch a stage: nothing is free.
    Tiles,
    /// Tiles that stay on the chip.
    Sweep {
        /// Where they stay.
        cache: CachePolicy,
        /// Their form.
        form: sweep::Form,
        /// Whether the whole domain stays on the chip: what is fast then may be slow where it does not.
        whole: bool,
    },
    /// Windows of a tile and its halo.
    Blocks {
        /// Their form.
        form: blocks::Form,
    },
    /// Planes that stream through windows.
    Planes {
        /// Their form.
        form: planes::Form,
    },
    /// Windows that stream.
    Stream {
        /// Their form.
        form: stream::Form,
    },
}

impl Recipe {
    /// What was chosen freely of a plan; `None` for a CPU's, of which nothing can be.
    pub fn of(plan: &Plan) -> Option<Recipe> {
        match &plan.schedule {
            Schedule::Rows(_) => None,
            Schedule::Tiles(_) => Some(Recipe::Tiles),
            Schedule::Sweep(sweep) => {
                Some(Recipe::Sweep { cache: plan.cache, form: sweep.form(), whole: plan.cached_share() >= 1.0 })
            }
            Schedule::Blocks(blocks) => Some(Recipe::Blocks { form: blocks.form }),
            Schedule::Planes(planes) => Some(Recipe::Planes { form: planes.form }),
            Schedule::Stream(stream) => Some(Recipe::Stream { form: stream.form() }),
        }
    }

    /// The plan for a problem on a device; `None` where it does not fit them, or keeps less of the domain on the chip
    /// than the plan that the recipe is of.
    pub fn plan(&self, problem: &Problem, device: &DeviceSpec, options: &Options) -> Option<Plan> {
        problem.check().ok()?;
        match *self {
            Recipe::Tiles => plan_tiles(problem, device, options).ok(),
            Recipe::Sweep { cache, form, whole } => {
                let plan = sweep::plan_form(problem, device, cache, &form)?;
                (!whole || plan.cached_share() >= 1.0).then_some(plan)
            }
            Recipe::Blocks { form } => {
                // As below: a file may hold any number.
                let counts = form.threads.iter().chain(&form.cells).chain([&form.depth]);
                if counts.into_iter().any(|count| !(1..=1024).contains(count)) {
                    return None;
                }
                let mut plan = blocks::plan_form(problem, device, &form)?;
                if let Schedule::Blocks(blocks) = &mut plan.schedule {
                    blocks.depth_asked = options.depth != Depth::Auto;
                }
                Some(plan)
            }
            Recipe::Planes { form } => {
                // As below; there are as many shares as planes at most.
                let counts = form.threads.iter().chain(&form.cells).chain([&form.depth, &form.ahead]);
                if counts.into_iter().any(|count| !(1..=1024).contains(count)) || form.shares == 0 {
                    return None;
                }
                let mut plan = planes::plan_form(problem, device, &form)?;
                if let Schedule::Planes(planes) = &mut plan.schedule {
                    planes.depth_asked = options.depth != Depth::Auto;
                }
                Some(plan)
            }
            Recipe::Stream { form } => {
                // A file may hold any number; within these the planner's arithmetic neither divides by nothing nor
                // overflows, and no plan lies beyond them.
                let [rows, columns] = form.cells_per_thread;
                let counts =
                    [form.depth, form.warps, rows, columns, form.ahead, form.blocks_per_multiprocessor, form.waves];
                if counts.iter().any(|count| !(1..=1024).contains(count)) || form.carried_shared > 1024 {
                    return None;
                }
                let mut plan = stream::plan_form(problem, device, &form)?;
                if let Schedule::Stream(stream) = &mut plan.schedule {
                    stream.depth_asked = options.depth != Depth::Auto;
                }
                Some(plan)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::{Execution, stream_plans, sweep_plans};
    use crate::{DType, Shape, catalogue};

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    #[test]
    fn every_plan_is_made_again() {
        let device = DeviceSpec::preset("h200").unwrap();
        for problem in [problem("2d5pt", &[2304, 2304], DType::F64), problem("3d7pt", &[127, 193, 251], DType::F32)] {
            let options = Options::default();
            let mut plans = vec![plan_tiles(&problem, &device, &options).unwrap()];
            plans.extend(sweep_plans(&problem, &device, &options).unwrap().into_iter().step_by(23));
            plans.extend(stream_plans(&problem, &device, &options).unwrap().into_iter().step_by(97));
            assert!(plans.len() > 10);
            for plan in plans {
                assert_eq!(Recipe::of(&plan).unwrap().plan(&problem, &device, &options), Some(plan));
            }
        }
    }

    /// 2304² f64 stays on an H200 whole, 3000² does not: the recipe of the first is none for the second.
    #[test]
    fn a_recipe_is_refused_where_less_stays_on_the_chip() {
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { execution: Execution::Persistent, ..Options::default() };
        let small = problem("2d5pt", &[2304, 2304], DType::F64);
        let plan = super::super::plan_sweep(&small, &device, &options).unwrap();
        assert_eq!(plan.cached_share(), 1.0);
        let recipe = Recipe::of(&plan).unwrap();
        let like = recipe.plan(&problem("2d5pt", &[2297, 2311], DType::F64), &device, &options);
        assert!(like.is_none_or(|plan| plan.cached_share() == 1.0));
        assert_eq!(recipe.plan(&problem("2d5pt", &[3000, 3000], DType::F64), &device, &options), None);
    }

    #[test]
    fn numbers_that_no_plan_has_give_none() {
        let device = DeviceSpec::preset("h200").unwrap();
        let problem = problem("2d5pt", &[99, 99], DType::F64);
        let plans = stream_plans(&problem, &device, &Options::default()).unwrap();
        let good = Recipe::of(&plans[0]).unwrap();
        assert!(good.plan(&problem, &device, &Options::default()).is_some());
        for wrong in [0, usize::MAX] {
            for which in 0..7 {
                let mut recipe = good.clone();
                let Recipe::Stream { form } = &mut recipe else { unreachable!() };
                let [rows, columns] = &mut form.cells_per_thread;
                let (depth, warps, ahead) = (&mut form.depth, &mut form.warps, &mut form.ahead);
                let (blocks, waves) = (&mut form.blocks_per_multiprocessor, &mut form.waves);
                *[depth, warps, rows, columns, ahead, blocks, waves][which] = wrong;
                assert_eq!(recipe.plan(&problem, &device, &Options::default()), None, "{recipe:?}");
            }
            let (threads, cells_per_thread) = ([wrong, 1], [1, wrong]);
            let cache = CachePolicy::Mixed;
            let form = sweep::Form { threads, cells_per_thread, blocks_per_multiprocessor: 1, chunk: 1 };
            let recipe = Recipe::Sweep { cache, form, whole: false };
            assert_eq!(recipe.plan(&problem, &device, &Options::default()), None);
        }
    }
}
