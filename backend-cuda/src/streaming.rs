//! Streaming execution: passes of several steps, in one launch where all blocks are resident, else a launch each.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::plan::WarpStreaming;
use abide_core::plan::streaming::warp::Configuration;
use abide_core::{Error, Plan, Problem, Result};
use abide_planner::Fitted;
use abide_planner::streaming::warp::plan_configuration;
use abide_shaders::cuda;
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr, result};

use crate::driver::during;
use crate::kernels::{self, Kernels};
use crate::launcher::Launcher;
use crate::memory::Fields;
use crate::noted::NotedTables;
use crate::nvrtc::Nvrtc;
use crate::parameters::Parameters;
use crate::persistent::{FLAG_BYTES, check_resident};

/// A kernel whose passes advance `stream.depth` steps each.
struct Pass {
    function: CudaFunction,
    stream: WarpStreaming,
    /// The passes that each block of a launch has ended, 128 bytes apart; `None` where every pass is a launch.
    ended: Option<CudaSlice<u8>>,
    noted: Option<NotedTables>,
}

/// The most passes of a launch: blocks count them in 32 bits.
const MOST_PASSES: u64 = 1 << 31;

/// Launches of passes. Steps that do not fill a whole pass are done by passes of half the depth, of a quarter,
/// … of one step, whose kernels are compiled when first needed.
pub(crate) struct Streaming {
    plan: Plan,
    nvrtc: Arc<Nvrtc>,
    /// The passes, the deepest first, each half as deep as the one before.
    passes: Vec<Option<Pass>>,
    given: Option<PutPlanes>,
}

impl Pass {
    fn new(plan: &Plan, stream: &WarpStreaming, fields: &Fields, kernels: &Kernels) -> Result<Pass> {
        let function = kernels.function(cuda::STREAM_ENTRY, stream.shared_bytes)?;
        let mut ended = None;
        if stream.chained {
            let block = (stream.threads_per_block(), stream.shared_bytes);
            check_resident(&function, block, &plan.device, stream.shares)?;
            let counts = fields.stream.alloc_zeros::<u8>(stream.shares * FLAG_BYTES);
            ended = Some(counts.map_err(during("allocating the counts of passes"))?);
        }
        let noted = NotedTables::load(&fields.problem, plan, &fields.stream)?;
        Ok(Pass { function, stream: stream.clone(), ended, noted })
    }

    /// Puts so many passes on the fields' stream as one launch; more than one only where blocks stay for all of them.
    fn launch(
        &self,
        fields: &mut Fields,
        parameters: &mut Parameters,
        given: Option<&PutPlanes>,
        mut passes: u32,
    ) -> Result<()> {
        let stream = fields.stream.clone();
        let mut turns = match &self.stream.edges {
            Some(_) => PutPlanes::pointers(given, fields),
            None => Vec::new(),
        };
        turns.extend(fields.pointers(&fields.flips(0, 0)));
        fields.passed();
        turns.extend(fields.pointers(&fields.flips(0, 0)));
        if passes.is_multiple_of(2) {
            fields.passed();
        }
        let mut ended = self.ended.as_ref().map_or(0, |ended| ended.device_ptr(&stream).0);
        let mut arguments: [*mut c_void; 4] = [
            turns.as_mut_ptr().cast(),
            parameters.argument_noting(self.noted.as_ref(), &stream),
            (&raw mut ended).cast(),
            (&raw mut passes).cast(),
        ];
        let (blocks, threads) = (self.stream.shares as u32, self.stream.threads_per_block() as u32);
        let shared = self.stream.shared_bytes as u32;
        let function = self.function.cu_function();
        // SAFETY: the kernel takes the structs Turns and Parameters by value, the counts' address and the passes, in this
        // order and layout; the call copies them. There is a block for every share, as the kernel's constants say. The
        // counts are as long as allocated, and the stream orders their clearing before the launch. Co-residency was checked
        // when they were allocated.
        unsafe {
            if passes > 1 {
                result::memset_d8_async(ended, 0, self.stream.shares * FLAG_BYTES, stream.cu_stream())
                    .map_err(during("clearing the counts of passes"))?;
                let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
                result::launch_cooperative_kernel(
                    function,
                    grid,
                    block,
                    shared,
                    stream.cu_stream(),
                    &mut arguments,
                )
            } else {
                let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
                result::launch_kernel(function, grid, block, shared, stream.cu_stream(), &mut arguments)
            }
        }
        .map_err(during("launching passes"))
    }
}

/// Where planes go that are given to the slabs below and above: of each array the addresses in its two buffers, as if all own
/// planes lay there; 0 where there is no slab.
pub(crate) struct PutPlanes(pub [Vec<[u64; 2]>; 2]);

impl PutPlanes {
    /// Returns the kernel's `Given` for a pass, whose neighbours write the same of their two buffers.
    fn pointers(given: Option<&PutPlanes>, fields: &Fields) -> Vec<u64> {
        let turns = fields.next_turns();
        let side = |side: usize| {
            let places = given.map_or(&[][..], |given| &given.0[side]);
            turns.iter().enumerate().map(|(array, &turn)| places.get(array).map_or(0, |place| place[turn]))
        };
        side(0).chain(side(1)).collect()
    }
}

/// Returns the plan of a pass of fewer steps than the plan's own, which gives the same planes.
fn shallower(problem: &Problem, plan: &Plan, depth: usize) -> Result<Plan> {
    let plan_of = |stream: &WarpStreaming| -> Option<Plan> {
        let configuration = Configuration { depth, ..stream.configuration() };
        plan_configuration(problem, &plan.device, &configuration)?.giving_as(plan)
    };
    plan.warp_streaming().and_then(plan_of).ok_or_else(|| {
        Error::invalid(
            format!("a pass of {depth} steps"),
            "it does not fit the device",
            "use another --depth",
        )
    })
}

/// Returns the plans of the passes that do the steps which are no whole pass, the deepest first; none unless the plan is a
/// streaming one.
pub(crate) fn shallower_passes(problem: &Problem, plan: &Plan) -> Vec<Result<Plan>> {
    let depth = plan.warp_streaming().map_or(0, |stream| stream.depth);
    let depths = std::iter::successors(Some(depth / 2), |depth| Some(depth / 2));
    depths.take_while(|&depth| depth > 0).map(|depth| shallower(problem, plan, depth)).collect()
}

impl Streaming {
    pub fn new(plan: &Plan, fields: &Fields, kernels: &Kernels, nvrtc: &Arc<Nvrtc>) -> Result<Self> {
        let Some(stream) = plan.warp_streaming() else {
            return Err(Error::invalid("plan", "it does not stream", "make it with plan_streaming"));
        };
        let mut passes = vec![Some(Pass::new(plan, stream, fields, kernels)?)];
        let mut depth = stream.depth / 2;
        while depth > 0 {
            passes.push(None);
            depth /= 2;
        }
        Ok(Streaming { plan: plan.clone(), nvrtc: nvrtc.clone(), passes, given: None })
    }

    fn depth(&self, number: usize) -> u64 {
        self.plan.depth as u64 >> number
    }

    fn compile(&mut self, fields: &Fields, number: usize) -> Result<()> {
        if self.passes[number].is_some() {
            return Ok(());
        }
        let shallower = shallower(&fields.problem, &self.plan, self.depth(number) as usize)?;
        let Fitted { plan, code } =
            kernels::fit(&self.nvrtc, &fields.problem, &shallower, &kernels::target(&self.plan.device))?;
        let loaded = Kernels::load(&fields.context, code.cubin)?;
        let Some(stream) = plan.warp_streaming() else { return Ok(()) };
        self.passes[number] = Some(Pass::new(&plan, stream, fields, &loaded)?);
        Ok(())
    }
}

impl Launcher for Streaming {
    fn store_to_neighbours(&mut self, given: Option<PutPlanes>) -> bool {
        let gives = self.plan.warp_streaming().is_some_and(|stream| stream.edges.is_some());
        self.given = given.filter(|_| gives);
        gives
    }

    fn most_steps(&self) -> u64 {
        u64::MAX
    }

    fn prepare(&mut self, fields: &Fields, _: &mut Parameters, steps: u64) -> Result<()> {
        let mut left = steps;
        for number in 0..self.passes.len() {
            let depth = self.depth(number);
            if left >= depth {
                self.compile(fields, number)?;
                left %= depth;
            }
        }
        Ok(())
    }

    fn launch(&mut self, fields: &mut Fields, parameters: &mut Parameters, steps: u64) -> Result<()> {
        let mut left = steps;
        for pass in self.passes.iter().flatten() {
            let depth = pass.stream.depth as u64;
            while left >= depth {
                let passes = if pass.ended.is_some() { (left / depth).min(MOST_PASSES) } else { 1 };
                pass.launch(fields, parameters, self.given.as_ref(), passes as u32)?;
                parameters.pass_steps(passes * depth);
                left -= passes * depth;
            }
        }
        Ok(())
    }
}
