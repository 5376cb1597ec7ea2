//! Plans for a device that need not be here, by the planner of the backend that would run it.

use abide_core::device::Capability;
use abide_core::plan::{CachePolicy, Order};
use abide_core::{DeviceSpec, Error, Execution, Options, Plan, Problem, Result};

use super::plan_portable;
use crate::choice::{plan, plan_members, plan_of_clock};

/// Plans for a device that is not opened, as a preset: by [`plan()`] where kernels can be planned to the register and the warp, as
/// CUDA's are, else as wgpu plans.
///
/// # Errors
///
/// Those of [`plan()`] and [`plan_portable`]; [`Error::Unsupported`] for f64 on a device that has none.
pub fn plan_absent(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    if device.has(Capability::Warps) {
        return plan(problem, device, options);
    }
    if device.f32_flops > 0.0 && device.flops(problem.dtype) == 0.0 {
        let reason = format!("it does not compute in {}", problem.dtype);
        return Err(Error::unsupported(device.name.clone(), reason, "use --dtype f32, or another device"));
    }
    if problem.is_batch() {
        return plan_members(problem, Order::InTurn, |member| plan_absent(member, device, options));
    }
    let at_rest = |plain: &Problem, options: &Options| plan_absent(plain, device, options);
    if let Some(plan) = plan_of_clock(problem, options, false, at_rest) {
        return plan;
    }
    match (options.execution, options.cache) {
        (Execution::Auto, CachePolicy::Auto)
        | (Execution::Stepwise | Execution::Overlapped | Execution::Streaming, _) => {
            plan_portable(problem, device, options)
        }
        // This refuses a persistent kernel, and notes why a cache policy is not followed.
        _ => plan(problem, device, options),
    }
}

#[cfg(test)]
mod tests {
    use abide_core::device::PRESETS;
    use abide_core::{DType, Depth};

    use super::super::tests::problem;
    use super::*;

    fn presets(has_warps: bool) -> impl Iterator<Item = DeviceSpec> {
        let all = PRESETS.iter().map(|name| DeviceSpec::preset(name).unwrap());
        all.filter(move |device| device.has(Capability::Warps) == has_warps)
    }

    /// Devices without warps to plan with are planned as wgpu runs them: several steps per dispatch where that pays, and never a
    /// kernel that stays on the chip.
    #[test]
    fn devices_without_warps_have_portable_plans() {
        assert_eq!(presets(false).count(), 3);
        for device in presets(false) {
            for (name, extents) in [
                ("2d5pt", &[8352, 8352][..]),
                ("3d7pt", &[256, 256, 256]),
                ("gray-scott", &[4096, 4096]),
                ("cloverleaf", &[960, 960]),
                ("heat", &[100_000]),
            ] {
                let own = problem(name, extents, DType::F32, "mirror");
                let plan = plan_absent(&own, &device, &Options::default()).unwrap();
                assert_ne!(plan.execution, Execution::Persistent, "{}", plan.explain());
                assert!(
                    plan.estimated_seconds > 0.0 && plan.estimated_seconds.is_finite(),
                    "{}",
                    plan.explain()
                );
                assert!(plan.explain().contains(&device.name), "{}", plan.explain());
            }
            let large = problem("2d5pt", &[8352, 8352], DType::F32, "fixed");
            let deep = Options { depth: Depth::Steps(4), ..Options::default() };
            let plan = plan_absent(&large, &device, &deep).unwrap();
            assert!(plan.depth == 4 && (plan.overlapped().is_some() || plan.portable_streaming().is_some()));
            let persistent = Options { execution: Execution::Persistent, ..Options::default() };
            let error = plan_absent(&large, &device, &persistent).unwrap_err().to_string();
            assert!(error.contains("barrier") && error.contains(&device.name), "{error}");
            let mut batch = problem("heat", &[64, 64], DType::F32, "mirror");
            batch.repeat(100).unwrap();
            assert!(plan_absent(&batch, &device, &Options::default()).is_ok());
            let wide = plan_absent(
                &problem("2d5pt", &[512, 512], DType::F64, "fixed"),
                &device,
                &Options::default(),
            );
            match device.f64_flops > 0.0 {
                true => assert!(wide.is_ok()),
                false => {
                    assert!(wide.unwrap_err().to_string().contains("use --dtype f32"), "{}", device.name)
                }
            }
        }
    }

    /// Devices of CUDA are planned as before, and each schedule fits each of them.
    #[test]
    fn devices_with_warps_have_the_plans_of_cuda() {
        for device in presets(true) {
            for (name, extents) in
                [("2d5pt", &[8352, 8352][..]), ("3d7pt", &[128, 128, 128]), ("2d25pt", &[512, 512])]
            {
                for dtype in [DType::F32, DType::F64] {
                    let own = problem(name, extents, dtype, "fixed");
                    for execution in
                        [Execution::Auto, Execution::Stepwise, Execution::Streaming, Execution::Persistent]
                    {
                        let options = Options { execution, ..Options::default() };
                        let absent = plan_absent(&own, &device, &options).unwrap();
                        assert_eq!(absent, plan(&own, &device, &options).unwrap());
                        assert!(absent.estimated_seconds > 0.0, "{}", absent.explain());
                    }
                }
            }
        }
    }
}
