//! Batches in one launch: a block for each member, which keeps the member's whole domain on the chip.

use std::ffi::c_void;
use std::sync::Arc;

use abide_core::backend::{check_field, check_values, check_window};
use abide_core::{Array, Error, Plan, Problem, Result, Session, plan};
use abide_shaders::cuda::{self, pitched_cells, row_pitch};
use cudarc::driver::sys::CUfunction_attribute_enum as FunctionAttribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, result};

use crate::count::Counter;
use crate::driver::during;
use crate::kernels::Kernels;
use crate::memory::{ask_for, no_field};
use crate::parameters::{parameter_bytes, set_parameter};
use crate::timing::Timer;
use crate::window::Layout;

/// The most blocks of a launch.
const MOST_BLOCKS: usize = i32::MAX as usize;

/// A batch in progress: fields have the members' domains one behind the other.
pub(crate) struct Batch {
    problem: Problem,
    plan: Plan,
    tiles: plan::Resident,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    function: CudaFunction,
    fields: Vec<CudaSlice<u8>>,
    /// The kernel's `Parameters` of each member.
    parameters: CudaSlice<u8>,
    timer: Timer,
    counter: Arc<Counter>,
}

impl Batch {
    /// Allocates all members' fields and loads the initial values, which have been checked.
    pub fn new(
        problem: &Problem,
        mut plan: Plan,
        context: &Arc<CudaContext>,
        kernels: &Kernels,
        values: &[Array],
        counter: Arc<Counter>,
    ) -> Result<Batch> {
        let Some(tiles) = plan.resident().filter(|_| plan.is_at_once()).cloned() else {
            let reason = "its members do not run side by side, a block for each";
            return Err(Error::invalid("plan", reason, "make it with resident::plan_batch"));
        };
        if problem.members() > MOST_BLOCKS {
            let change = "run the batch in several parts";
            return Err(Error::limit("members of a launch", problem.members(), MOST_BLOCKS, change));
        }
        let function = kernels.function(cuda::RESIDENT_ENTRY, tiles.shared_bytes)?;
        share_multiprocessors(&function, &tiles, &mut plan)?;
        let stream = context.new_stream().map_err(during("making a stream"))?;
        let bytes = bytes_of_field(problem)?;
        let parameters = all_parameters(problem);
        ask_for(context, values.len() as u128 * bytes as u128 + parameters.len() as u128)?;
        let mut fields = Vec::with_capacity(values.len());
        for _ in values {
            // SAFETY: each field is written below, before anything reads it.
            let field = unsafe { stream.alloc::<u8>(bytes) };
            fields.push(field.map_err(during("allocating a field of all members"))?);
        }
        let parameters =
            stream.clone_htod(&parameters).map_err(during("loading the parameters of all members"))?;
        let timer = Timer::new(&stream)?;
        let (problem, context) = (problem.clone(), context.clone());
        let mut batch =
            Batch { problem, plan, tiles, context, stream, function, fields, parameters, timer, counter };
        for (field, values) in values.iter().enumerate() {
            batch.write(field, values)?;
        }
        Ok(batch)
    }

    /// Returns the layout that a field has over the first `members` members.
    fn layout(&self, members: usize) -> Layout {
        let [planes, rows, width] = self.problem.shape.padded();
        Layout {
            extents: [members * planes, rows, width],
            pitch: row_pitch(&self.problem),
            dtype: self.problem.dtype,
            precision: None,
        }
    }

    fn address(&self, field: usize) -> Result<u64> {
        let slice = self.fields.get(field).ok_or_else(|| no_field(field, self.fields.len()))?;
        Ok(slice.device_ptr(&self.stream).0)
    }

    /// Returns where the domain of each member begins in a field.
    fn members(&self, field: usize) -> Result<impl Iterator<Item = u64> + use<>> {
        let first = self.address(field)?;
        let bytes = (pitched_cells(&self.problem) * self.problem.dtype.bytes()) as u64;
        Ok((0..self.problem.members() as u64).map(move |member| first + member * bytes))
    }

    fn bind(&self) -> Result<()> {
        self.context.bind_to_thread().map_err(during("binding the context"))
    }

    fn launch(&self, steps: u32) -> Result<()> {
        let mut buffers = (0..self.fields.len()).map(|f| self.address(f)).collect::<Result<Vec<_>>>()?;
        // The kernel's `Buffers` has as many for what comes next, which stays on the chip.
        buffers.resize(2 * self.fields.len(), 0);
        let mut parameters = self.parameters.device_ptr(&self.stream).0;
        let mut steps = steps;
        let mut arguments: [*mut c_void; 3] =
            [buffers.as_mut_ptr().cast(), (&raw mut parameters).cast(), (&raw mut steps).cast()];
        // SAFETY: the kernel takes Buffers by value, the address of as many Parameters as there are blocks and the
        // steps, in this order and layout; the call copies them. Each buffer has a domain for each block.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                // At most `MOST_BLOCKS`.
                (self.problem.members() as u32, 1, 1),
                (self.tiles.threads_per_block() as u32, 1, 1),
                self.tiles.shared_bytes as u32,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during("launching a kernel of all members"))
    }
}

/// Sees to it that as many blocks as planned share a multiprocessor; where they are fewer, a note says so.
fn share_multiprocessors(function: &CudaFunction, tiles: &plan::Resident, plan: &mut Plan) -> Result<()> {
    // What is not shared memory would be a cache, which the kernel has no use for.
    let carveout = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    function.set_attribute(carveout, 100).map_err(during("asking for shared memory"))?;
    let threads = tiles.threads_per_block() as u32;
    let blocks = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, tiles.shared_bytes, None)
        .map_err(during("asking for the occupancy"))?;
    if (blocks as usize) < tiles.blocks_per_multiprocessor {
        plan.notes.push(format!(
            "{blocks} blocks share a multiprocessor, and {} were planned",
            tiles.blocks_per_multiprocessor
        ));
    }
    Ok(())
}

/// Returns the bytes that a field has over all members.
fn bytes_of_field(problem: &Problem) -> Result<usize> {
    let one = pitched_cells(problem) * problem.dtype.bytes();
    one.checked_mul(problem.members()).ok_or_else(|| {
        let asked = format!("{} members of {one}", problem.members());
        Error::limit("bytes of a field of all members", asked, usize::MAX, "choose a smaller batch")
    })
}

/// Returns the bytes of the kernel's `Parameters` of all members.
fn all_parameters(problem: &Problem) -> Vec<u8> {
    let of = |member: &abide_core::program::Member| parameter_bytes(problem.dtype, &member.parameters);
    problem.batch.iter().flat_map(of).collect()
}

impl Session for Batch {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.bind()?;
        let (mut seconds, mut left) = (0.0, steps);
        while left > 0 {
            // The kernel counts in 32 bits.
            let now = u32::try_from(left).unwrap_or(u32::MAX);
            self.timer.start(&self.stream)?;
            self.launch(now)?;
            seconds += self.timer.stop(&self.stream)?;
            left -= u64::from(now);
        }
        Ok(seconds)
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let (from, layout) = (self.address(field)?, self.layout(self.problem.members()));
        self.bind()?;
        // SAFETY: every field has this layout.
        unsafe { layout.read(from, [[0; 3], layout.extents], &self.stream) }
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let layout = self.layout(1);
        let window = check_window(layout.extents, low, high)?;
        let values = window.iter().product::<usize>() * self.problem.members();
        let members = self.members(field)?;
        self.bind()?;
        // SAFETY: every field has this layout at each member's place.
        let windows = members.map(|from| unsafe { layout.read(from, [low, high], &self.stream) });
        Array::join(self.problem.dtype, values, windows)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.problem, field, values)?;
        let (to, layout) = (self.address(field)?, self.layout(self.problem.members()));
        self.bind()?;
        // SAFETY: every field has this layout, and the array was checked.
        unsafe { layout.write(to, [[0; 3], layout.extents], values, &self.stream) }
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        let own = check_values(&self.problem, field, low, high, values)?.iter().product::<usize>();
        let (layout, mut members) = (self.layout(1), self.members(field)?.enumerate());
        self.bind()?;
        members.try_for_each(|(at, to)| {
            let values = values.part(at * own..(at + 1) * own)?;
            // SAFETY: every field has this layout at each member's place, and the array was checked.
            unsafe { layout.write(to, [low, high], &values, &self.stream) }
        })
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        // SAFETY: every field has this layout.
        unsafe {
            self.counter.count(self.address(field)?, &self.layout(self.problem.members()), &self.stream)
        }
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        set_parameter(&mut self.problem.parameters, parameter, value)?;
        for member in &mut self.problem.batch {
            set_parameter(&mut member.parameters, parameter, value)?;
        }
        self.bind()?;
        let bytes = all_parameters(&self.problem);
        self.stream
            .memcpy_htod(&bytes, &mut self.parameters)
            .map_err(during("setting a parameter of all members"))?;
        self.stream.synchronize().map_err(during("setting a parameter of all members"))
    }
}
