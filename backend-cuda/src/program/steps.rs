//! The steps of a program as launches of one persistent kernel.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use abide_core::plan::PersistentProgram;
use abide_core::program::{Boxes, Storage};
use abide_core::{Error, Plan, Problem, Result};
use abide_shaders::cuda::{ProgramKernels, STEPS_ENTRY, TaskSchedule};
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, result};

use super::memory::Memory;
use crate::driver::during;
use crate::kernels::Kernels;
use crate::persistent::{FLAG_BYTES, check_resident};

/// A cooperative launch for many steps.
pub struct Steps {
    function: CudaFunction,
    plan: PersistentProgram,
    flags: CudaSlice<u8>,
    /// The number of the first step that is repeated.
    repeated: u64,
    /// Through the steps before those that repeat, and through these; `None` after a storage that had no room.
    schedules: Option<[Loaded; 2]>,
}

/// A schedule in device memory.
struct Loaded {
    schedule: TaskSchedule,
    tasks: CudaSlice<u32>,
    arguments: CudaSlice<u64>,
    first: CudaSlice<u32>,
    waits: CudaSlice<u32>,
}

/// The kernel's `TaskSchedule`.
#[repr(C)]
struct Argument {
    tasks: u64,
    arguments: u64,
    first: u64,
    waits: u64,
    flags: u64,
    round: u32,
    begin: u32,
    count: u32,
}

impl Steps {
    /// Loads the kernel of a plan and the schedules of a storage; `Limit` where not all blocks are on the device at once.
    pub fn new(
        problem: &Problem,
        plan: &Plan,
        loaded: &Kernels,
        (kernels, storage): (&ProgramKernels, &Storage),
        memory: &Memory,
    ) -> Result<Steps> {
        let Some(own) = plan.persistent_program().cloned() else {
            return Err(Error::invalid(
                "plan",
                "it is not persistent",
                "make it with plan_persistent_program",
            ));
        };
        let function = loaded.function(STEPS_ENTRY, own.shared_bytes)?;
        check_resident(&function, (own.threads(), own.shared_bytes), &plan.device, own.blocks)?;
        let flags = memory.stream.alloc_zeros::<u8>(own.blocks * FLAG_BYTES);
        let flags = flags.map_err(during("allocating flags"))?;
        let schedules = Some(schedules(problem, &own, (kernels, storage), memory)?);
        Ok(Steps { function, plan: own, flags, repeated: storage.repeated as u64, schedules })
    }

    /// Goes by another storage of the same problem and groups. Where that cannot be, no step is launched any more, because
    /// the buffers of the old one are gone.
    pub fn unalias(
        &mut self,
        problem: &Problem,
        (kernels, storage): (&ProgramKernels, &Storage),
        memory: &Memory,
    ) -> Result<()> {
        self.schedules = None;
        self.repeated = storage.repeated as u64;
        self.schedules = Some(schedules(problem, &self.plan, (kernels, storage), memory)?);
        Ok(())
    }

    /// Returns how many steps a launch from a step on does, counted from the storage's first, of so many at the most.
    pub fn fit(&self, step: u64, most: u64) -> u64 {
        match self.repeated.checked_sub(step) {
            Some(left @ 1..) => most.min(left),
            _ => most.min(
                self.schedules.as_ref().map_or(1, |[_, schedule]| schedule.schedule.most_steps().max(1)),
            ),
        }
    }

    /// Launches as many steps as [`Steps::fit`] says at most, from a step on, counted from the storage's first.
    pub fn launch(&self, storage: &Storage, step: u64, steps: u64, stream: &Arc<CudaStream>) -> Result<()> {
        let Some([first, repeated]) = &self.schedules else {
            return Err(Error::device(
                "cuda",
                "launching a persistent kernel",
                "its schedule could not be loaded",
            ));
        };
        let (loaded, place) = match step.checked_sub(self.repeated) {
            None => (first, step as usize),
            Some(_) => (repeated, storage.place(step) - storage.repeated),
        };
        let (begin, count) = loaded.schedule.span(place, steps);
        let flags = self.flags.device_ptr(stream).0;
        // SAFETY: the flags are as long as allocated; the stream orders this before the launch.
        unsafe { result::memset_d8_async(flags, 0, self.plan.blocks * FLAG_BYTES, stream.cu_stream()) }
            .map_err(during("clearing flags"))?;
        let mut argument = Argument {
            tasks: loaded.tasks.device_ptr(stream).0,
            arguments: loaded.arguments.device_ptr(stream).0,
            first: loaded.first.device_ptr(stream).0,
            waits: loaded.waits.device_ptr(stream).0,
            flags,
            round: loaded.schedule.tasks.len() as u32,
            begin,
            // 32 bits hold it, because `fit` keeps the steps to that.
            count: count as u32,
        };
        let mut arguments: [*mut c_void; 1] = [(&raw mut argument).cast()];
        // SAFETY: the kernel takes the struct TaskSchedule by value, which has this layout; the call copies it. Its tables are
        // those of the schedule, and the buffers that they name live as long as the session. Co-residency was checked when
        // the session was opened.
        unsafe {
            result::launch_cooperative_kernel(
                self.function.cu_function(),
                (self.plan.blocks as u32, 1, 1),
                (self.plan.threads() as u32, 1, 1),
                self.plan.shared_bytes as u32,
                stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(during("launching a persistent kernel"))
    }
}

/// Makes and loads the schedules of a storage.
fn schedules(
    problem: &Problem,
    plan: &PersistentProgram,
    (kernels, storage): (&ProgramKernels, &Storage),
    memory: &Memory,
) -> Result<[Loaded; 2]> {
    let boxes = Boxes::of(problem)?;
    let load = |steps: Range<usize>| -> Result<Loaded> {
        let schedule = TaskSchedule::new(problem, &boxes, storage, steps, kernels, plan)?;
        let stream = &memory.stream;
        let arguments = schedule.buffers.iter().flat_map(|own| memory.arguments(own, kernels.slots));
        Ok(Loaded {
            tasks: loaded(stream, schedule.tasks.as_flattened())?,
            arguments: loaded(stream, &arguments.collect::<Vec<_>>())?,
            first: loaded(stream, &schedule.first)?,
            waits: loaded(stream, schedule.waits.as_flattened())?,
            schedule,
        })
    };
    let all = [load(0..storage.repeated)?, load(storage.repeated..storage.steps.len())?];
    memory.stream.synchronize().map_err(during("loading a schedule"))?;
    Ok(all)
}

/// Returns values in device memory, of which there is at least one.
fn loaded<T: DeviceRepr + Default + Clone>(stream: &Arc<CudaStream>, values: &[T]) -> Result<CudaSlice<T>> {
    let none = [T::default()];
    let values = if values.is_empty() { &none[..] } else { values };
    stream.clone_htod(values).map_err(during("loading a schedule"))
}
