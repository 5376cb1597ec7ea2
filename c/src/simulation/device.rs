//! Arrays in the memory of a CUDA device.

#[cfg(feature = "cuda")]
pub use with_cuda::{mapped, read_to, write_from};

#[cfg(not(feature = "cuda"))]
pub use without::{mapped, read_to, write_from};

#[cfg(feature = "cuda")]
mod with_cuda {
    use std::ffi::c_void;

    use abide::Simulation;
    use abide_cuda::DeviceBuffer;

    use crate::status::{Outcome, invalid};
    use crate::view::{ABIDE_AXES, ABIDE_CUDA, AbideView, Checked, number_of};

    /// Checks that a field's buffer is on the device of an array and of its type.
    fn check(
        buffer: Option<DeviceBuffer>,
        simulation: &Simulation,
        device: usize,
        array: &Checked,
    ) -> Outcome<DeviceBuffer> {
        let refused =
            |reason: String, change: &str| Err(invalid("an array in device memory", reason, change));
        let Some(buffer) = buffer else {
            let reason = format!("the simulation runs on {}", simulation.backend());
            return refused(reason, "give an array of the host's, or run on one device with backend=cuda");
        };
        if buffer.device() != device {
            let reason =
                format!("it lies on device {device}, the simulation runs on device {}", buffer.device());
            return refused(reason, "copy it to that device first");
        }
        if buffer.dtype() != array.dtype {
            let reason = format!("it is {}, the run is {}", array.dtype, buffer.dtype());
            return refused(reason, "convert it on the device first");
        }
        Ok(buffer)
    }

    /// Copies a field's values to an array on the same device.
    ///
    /// # Safety
    ///
    /// The array has room at its places.
    pub unsafe fn read_to(simulation: &Simulation, field: &str, device: usize, to: &Checked) -> Outcome<()> {
        let buffer = check(simulation.device_buffer(field), simulation, device, to)?;
        // SAFETY: as promised.
        Ok(unsafe { buffer.store(to.data as u64, to.strides_of_domain()) }?)
    }

    /// Replaces a field's values by those of an array on the same device.
    ///
    /// # Safety
    ///
    /// The array has values at its places.
    pub unsafe fn write_from(
        simulation: &mut Simulation,
        field: &str,
        device: usize,
        from: &Checked,
    ) -> Outcome<()> {
        let buffer = simulation.device_buffer_mut(field)?;
        let buffer = check(buffer, simulation, device, from)?;
        // SAFETY: as promised.
        Ok(unsafe { buffer.fill(from.data as u64, from.strides_of_domain()) }?)
    }

    /// Describes where a field's values lie on a CUDA device; `None` where they do not.
    pub fn mapped(simulation: &Simulation, field: &str, axes: usize) -> Option<AbideView> {
        let buffer: DeviceBuffer = simulation.device_buffer(field)?;
        let (mut extents, mut strides) = ([1; ABIDE_AXES], [0; ABIDE_AXES]);
        for axis in 0..axes.min(3) {
            extents[axis] = buffer.extents()[3 - axes + axis] as i64;
            strides[axis] = buffer.strides()[3 - axes + axis] as i64;
        }
        Some(AbideView {
            data: buffer.address() as *mut c_void,
            dtype: number_of(buffer.dtype()),
            memory: ABIDE_CUDA,
            device: buffer.device() as i32,
            axes: axes as i32,
            extents,
            strides,
        })
    }
}

#[cfg(not(feature = "cuda"))]
mod without {
    use abide::{Error, Simulation};

    use crate::status::{Failure, Outcome};
    use crate::view::{AbideView, Checked};

    fn absent() -> Failure {
        let reason = "it is not in this build; build abide-c with the feature `cuda`".to_owned();
        Error::Unavailable { backend: "cuda", reason }.into()
    }

    /// Refuses: this build has no CUDA.
    ///
    /// # Safety
    ///
    /// Nothing is touched.
    pub unsafe fn read_to(_: &Simulation, _: &str, _: usize, _: &Checked) -> Outcome<()> {
        Err(absent())
    }

    /// Refuses: this build has no CUDA.
    ///
    /// # Safety
    ///
    /// Nothing is touched.
    pub unsafe fn write_from(_: &mut Simulation, _: &str, _: usize, _: &Checked) -> Outcome<()> {
        Err(absent())
    }

    /// Returns `None`: this build has no CUDA.
    pub fn mapped(_: &Simulation, _: &str, _: usize) -> Option<AbideView> {
        None
    }
}
