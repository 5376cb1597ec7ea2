//! Plans made again from their recipes.

use abide_core::plan::{Recipe, Schedule};
use abide_core::{Depth, DeviceSpec, Options, Plan, Problem};

use crate::stepwise::plan_stepwise;
use crate::streaming::{portable, warp};
use crate::{overlapped, persistent, resident};

/// Returns the plan of a recipe for a problem on a device; `None` if it does not fit them, or keeps less of the
/// domain on the chip than the plan from which the recipe was made.
pub fn plan_recipe(
    recipe: &Recipe,
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
) -> Option<Plan> {
    problem.check().ok()?;
    if !is_sane(recipe) {
        return None;
    }
    match recipe {
        Recipe::Stepwise => plan_stepwise(problem, device, options).ok(),
        Recipe::Persistent { cache, configuration, whole } => {
            let plan = persistent::plan_configuration(problem, device, *cache, configuration)?;
            (!whole || plan.cached_share() >= 1.0).then_some(plan)
        }
        Recipe::Resident { configuration } => resident::plan_configuration(problem, device, configuration),
        Recipe::Overlapped { configuration } => {
            overlapped::plan_configuration(problem, device, configuration)
        }
        Recipe::PortableStreaming { configuration } => {
            portable::plan_configuration(problem, device, configuration)
        }
        Recipe::WarpStreaming { configuration } => {
            let mut plan = warp::plan_configuration(problem, device, configuration)?;
            if let Schedule::WarpStreaming(streaming) = &mut plan.schedule {
                streaming.depth_asked = options.depth != Depth::Auto;
            }
            Some(plan)
        }
    }
}

/// Returns whether the recipe's numbers are in the range of real plans. A file may hold any numbers;
/// within this range the planner's arithmetic neither divides by 0 nor overflows.
fn is_sane(recipe: &Recipe) -> bool {
    let are_counts = |counts: &[usize]| counts.iter().all(|count| (1..=1024).contains(count));
    match recipe {
        Recipe::Stepwise | Recipe::Persistent { .. } => true,
        Recipe::Resident { configuration: c } => {
            are_counts(&[c.depth, c.warps, c.planes, c.blocks_per_multiprocessor])
                && are_counts(&c.cells_per_thread)
                && c.planes_registers <= 1024
        }
        Recipe::Overlapped { configuration: c } => {
            are_counts(&c.threads) && are_counts(&c.cells) && are_counts(&[c.depth])
        }
        // There are no more shares than planes.
        Recipe::PortableStreaming { configuration: c } => {
            are_counts(&c.threads) && are_counts(&c.cells) && are_counts(&[c.depth, c.ahead]) && c.shares > 0
        }
        Recipe::WarpStreaming { configuration: c } => {
            are_counts(&[c.depth, c.warps, c.ahead, c.blocks_per_multiprocessor, c.waves])
                && are_counts(&c.cells_per_thread)
                && c.carried_shared <= 1024
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::plan::persistent;
    use abide_core::{CachePolicy, DType, Execution, Shape, catalogue};

    use super::*;
    use crate::persistent::persistent_plans;
    use crate::streaming::warp::streaming_plans;

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    #[test]
    fn every_plan_is_made_again() {
        let device = DeviceSpec::preset("h200").unwrap();
        for problem in
            [problem("2d5pt", &[2304, 2304], DType::F64), problem("3d7pt", &[127, 193, 251], DType::F32)]
        {
            let options = Options::default();
            let mut plans = vec![plan_stepwise(&problem, &device, &options).unwrap()];
            plans.extend(persistent_plans(&problem, &device, &options).unwrap().into_iter().step_by(23));
            plans.extend(streaming_plans(&problem, &device, &options).unwrap().into_iter().step_by(97));
            assert!(plans.len() > 10);
            for plan in plans {
                assert_eq!(plan_recipe(&Recipe::of(&plan).unwrap(), &problem, &device, &options), Some(plan));
            }
        }
    }

    /// 2304² f64 stays on an H200 as a whole, 3000² does not: the recipe of the first gives no plan for the
    /// second.
    #[test]
    fn a_recipe_is_refused_where_less_stays_on_the_chip() {
        let device = DeviceSpec::preset("h200").unwrap();
        let options = Options { execution: Execution::Persistent, ..Options::default() };
        let small = problem("2d5pt", &[2304, 2304], DType::F64);
        let plan = super::super::plan_persistent(&small, &device, &options).unwrap();
        assert_eq!(plan.cached_share(), 1.0);
        let recipe = Recipe::of(&plan).unwrap();
        let like = plan_recipe(&recipe, &problem("2d5pt", &[2297, 2311], DType::F64), &device, &options);
        assert!(like.is_none_or(|plan| plan.cached_share() == 1.0));
        assert_eq!(
            plan_recipe(&recipe, &problem("2d5pt", &[3000, 3000], DType::F64), &device, &options),
            None
        );
    }

    #[test]
    fn numbers_that_no_plan_has_give_none() {
        let device = DeviceSpec::preset("h200").unwrap();
        let problem = problem("2d5pt", &[99, 99], DType::F64);
        let plans = streaming_plans(&problem, &device, &Options::default()).unwrap();
        let good = Recipe::of(&plans[0]).unwrap();
        assert!(plan_recipe(&good, &problem, &device, &Options::default()).is_some());
        for wrong in [0, usize::MAX] {
            for which in 0..7 {
                let mut recipe = good.clone();
                let Recipe::WarpStreaming { configuration } = &mut recipe else { unreachable!() };
                let [rows, columns] = &mut configuration.cells_per_thread;
                let (depth, warps, ahead) =
                    (&mut configuration.depth, &mut configuration.warps, &mut configuration.ahead);
                let (blocks, waves) =
                    (&mut configuration.blocks_per_multiprocessor, &mut configuration.waves);
                *[depth, warps, rows, columns, ahead, blocks, waves][which] = wrong;
                assert_eq!(plan_recipe(&recipe, &problem, &device, &Options::default()), None, "{recipe:?}");
            }
            let (threads, cells_per_thread) = ([wrong, 1], [1, wrong]);
            let cache = CachePolicy::Mixed;
            let configuration = persistent::Configuration {
                threads,
                cells_per_thread,
                blocks_per_multiprocessor: 1,
                chunk: 1,
            };
            let recipe = Recipe::Persistent { cache, configuration, whole: false };
            assert_eq!(plan_recipe(&recipe, &problem, &device, &Options::default()), None);
        }
    }
}
