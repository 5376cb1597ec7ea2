//! From a solver's plan to its compiled kernel.

use abide_core::plan::Compiled;
use abide_core::solver::plan::krylov::Home;
use abide_core::solver::{Matrix, SolveOptions, SolvePlan};
use abide_core::{Error, Result};
use abide_shaders::cuda;
use abide_solvers::plan::krylov::plan_krylov_configuration;

use crate::cache;
use crate::nvrtc::{Cubin, Nvrtc};

/// Compiles the kernel of a plan. While the compiler's report shows spills, it retries with fewer vectors in registers,
/// shorter runs of rows or no prefetch, and at last with half the threads. Returns the plan that was kept, with the
/// compiler's report in it. `batched` selects the kernel of many systems, one block per system.
pub fn fit_solver(
    nvrtc: &Nvrtc,
    matrix: &Matrix,
    plan: &SolvePlan,
    options: &SolveOptions,
    target: &str,
    batched: bool,
) -> Result<(SolvePlan, Cubin)> {
    let compile = |plan: &SolvePlan| -> Result<(SolvePlan, Cubin, usize)> {
        let Some(layout) = plan.krylov() else {
            return Err(Error::invalid(
                "the plan of a solver",
                "it is not a CUDA device's",
                "plan it with this backend",
            ));
        };
        let text = cuda::krylov(matrix, options, layout, batched)?;
        let cubin = cache::compile(nvrtc, &text, target, &cuda::COMPILE_OPTIONS)?;
        let spilled = Compiled::most_spilled(&cubin.report).unwrap_or(0);
        Ok((SolvePlan { compiled: cubin.report.clone(), ..plan.clone() }, cubin, spilled))
    };
    let mut best = compile(plan)?;
    while best.2 > 0 {
        let Some(layout) = best.0.krylov() else { break };
        let mut configuration = layout.configuration();
        let in_registers = layout.vectors.iter().filter(|(_, home)| *home == Home::Registers).count();
        if in_registers > 0 {
            configuration.registers = in_registers - 1;
        } else if layout.sums.run > 1 {
            configuration.run = 1;
        } else if layout.ahead > 0 {
            configuration.ahead = false;
        } else if configuration.threads > 256 {
            configuration.run = usize::MAX;
            configuration.threads = (configuration.threads / 2).next_multiple_of(32);
        } else {
            break;
        }
        let mut next = plan_krylov_configuration(matrix, &plan.device, options, &configuration)?;
        next.notes.push(
            "fewer vectors in registers, rows summed at a time, entries asked for ahead or threads than modelled, for the compiler's report showed spills"
                .to_owned(),
        );
        let next = compile(&next)?;
        let helps = next.2 < best.2 || in_registers > 0 || layout.sums.run > 1 || layout.ahead > 0;
        if !helps {
            break;
        }
        best = next;
    }
    let (mut plan, cubin, spilled) = best;
    if spilled > 0 {
        plan.notes.push(format!("the kernel spills {spilled} bytes per thread to local memory"));
    }
    Ok((plan, cubin))
}
