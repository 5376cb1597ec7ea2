//! Device memory shared with other code: a session's fields where they lie, and copies of them.

use std::sync::Arc;

use abide_core::{DType, Error, Result};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, sys};

use crate::driver::{bind, during};
use crate::memory::ask_for;
use crate::rows::{Place, copy};
use crate::window::Layout;

/// The values of a field in device memory, for other code on the same device: where a session has them, or a
/// copy. The memory lives as long as this does, also where the session has ended; later steps of the session
/// overwrite its own.
///
/// The context is the device's primary one, which CUDA's runtime shares. The values are there when this is
/// handed out. What other code has begun to do with them must have ended before the session goes on, and before
/// the last clone of this goes: [`DeviceBuffer::wait`].
#[derive(Clone)]
pub struct DeviceBuffer {
    memory: Arc<CudaSlice<u8>>,
    /// The byte of the memory at which the values begin.
    first: usize,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) layout: Layout,
}

/// Returns a distance in bytes. Some packages divide the bytes of a negative one as if it had no sign, CuPy among them; where the
/// product wraps, as addresses do, it is theirs again.
fn in_bytes(stride: i64, bytes: i64) -> i64 {
    stride.wrapping_mul(bytes)
}

impl DeviceBuffer {
    pub(crate) fn new(
        memory: &Arc<CudaSlice<u8>>,
        first: usize,
        stream: &Arc<CudaStream>,
        layout: Layout,
    ) -> DeviceBuffer {
        DeviceBuffer { memory: memory.clone(), first, stream: stream.clone(), layout }
    }

    /// Returns whether another is of the same memory.
    pub(crate) fn is_of(&self, other: &DeviceBuffer) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }

    /// Returns the address of the first value in device memory.
    pub fn address(&self) -> u64 {
        self.memory.device_ptr(&self.stream).0 + self.first as u64
    }

    /// Returns the number of the device, as CUDA counts them.
    pub fn device(&self) -> usize {
        self.stream.context().ordinal()
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        self.layout.dtype
    }

    /// Returns the extents along the three padded axes, slowest first.
    pub fn extents(&self) -> [usize; 3] {
        self.layout.extents
    }

    /// Returns the values from one to the next along each of the three padded axes, slowest first: rows lie a
    /// pitch apart, planes of rows one behind the other.
    pub fn strides(&self) -> [usize; 3] {
        let Layout { extents, pitch, .. } = self.layout;
        [extents[1] * pitch, pitch, 1]
    }

    /// Returns the session's stream, a `CUstream`.
    pub fn stream(&self) -> usize {
        self.stream.cu_stream() as usize
    }

    /// Returns a copy in memory of its own, without gaps between rows. An error where the device has no memory
    /// left for it.
    pub fn copy(&self) -> Result<DeviceBuffer> {
        let Layout { extents, dtype, .. } = self.layout;
        let bytes = extents.iter().product::<usize>() * dtype.bytes();
        bind(&self.stream)?;
        ask_for(self.stream.context(), bytes as u128)?;
        // SAFETY: the copy below writes all values before this is handed out.
        let memory = unsafe { self.stream.alloc::<u8>(bytes) }.map_err(during("allocating a copy"))?;
        let layout = Layout { pitch: extents[2], ..self.layout };
        let packed = DeviceBuffer::new(&Arc::new(memory), 0, &self.stream, layout);
        // SAFETY: this buffer has its values at these strides, and lives until the copy has ended.
        unsafe { packed.fill(self.address(), self.strides().map(|stride| stride as i64)) }?;
        Ok(packed)
    }

    /// Replaces the values by those of other code on the same device: the first lies at `address`, the next
    /// along each of the three padded axes `strides` values further. What the device is doing ends first, so
    /// they may still be under way. An error where neighbours along the last axis are not neighbours in memory.
    ///
    /// # Safety
    ///
    /// Values of this buffer's type lie at all these places until the call returns.
    pub unsafe fn fill(&self, address: u64, strides: [i64; 3]) -> Result<()> {
        let foreign = self.foreign(address, strides)?;
        // SAFETY: as promised; this buffer has its values at its strides.
        unsafe { self.copied(&self.own(), &foreign) }
    }

    /// Copies the values to other code's memory on the same device, at places as of [`DeviceBuffer::fill`].
    ///
    /// # Safety
    ///
    /// There is room for values of this buffer's type at all these places until the call returns.
    pub unsafe fn store(&self, address: u64, strides: [i64; 3]) -> Result<()> {
        let foreign = self.foreign(address, strides)?;
        // SAFETY: as promised; this buffer has its values at its strides.
        unsafe { self.copied(&foreign, &self.own()) }
    }

    /// Returns where this buffer has its values.
    fn own(&self) -> Place {
        let bytes = self.layout.dtype.bytes() as i64;
        Place { address: self.address(), strides: self.strides().map(|stride| stride as i64 * bytes) }
    }

    /// Returns where other code has values, once what the device is doing has ended.
    fn foreign(&self, address: u64, strides: [i64; 3]) -> Result<Place> {
        if self.layout.extents[2] > 1 && strides[2] != 1 {
            let reason = format!("its values lie {} apart along the last axis", strides[2]);
            let change = "give a contiguous copy, as by cupy.ascontiguousarray or torch's .contiguous()";
            return Err(Error::invalid("an array in device memory", reason, change));
        }
        self.wait()?;
        self.check(address)?;
        let bytes = self.layout.dtype.bytes() as i64;
        Ok(Place { address, strides: strides.map(|stride| in_bytes(stride, bytes)) })
    }

    /// Copies values of this buffer's extents and type, and waits for them.
    ///
    /// # Safety
    ///
    /// Values lie at all places of `from`, and there is room at all places of `to`.
    unsafe fn copied(&self, to: &Place, from: &Place) -> Result<()> {
        let Layout { extents, dtype, .. } = self.layout;
        // SAFETY: as promised.
        unsafe { copy(to, from, extents, dtype.bytes(), &self.stream) }.map_err(during("copying a field"))?;
        self.stream.synchronize().map_err(during("copying a field"))
    }

    /// Fails if an address is of no memory of this device, for which copies would end the process.
    fn check(&self, address: u64) -> Result<()> {
        let mut device: i32 = -1;
        let attribute = sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: the attribute is one integer.
        let known = unsafe { sys::cuPointerGetAttribute((&raw mut device).cast(), attribute, address) };
        if known.result().is_ok() && usize::try_from(device) == Ok(self.device()) {
            return Ok(());
        }
        let reason = format!("it does not lie on device {}, which runs the simulation", self.device());
        Err(Error::invalid("an array in device memory", reason, "copy it to that device first"))
    }

    /// Reads the values, without gaps between rows.
    pub fn read(&self) -> Result<abide_core::Array> {
        bind(&self.stream)?;
        // SAFETY: the buffer has its layout.
        unsafe { self.layout.read(self.address(), [[0; 3], self.layout.extents], &self.stream) }
    }

    /// Waits for all that the device has been asked to do in the primary context, by other code too.
    pub fn wait(&self) -> Result<()> {
        self.stream.context().synchronize().map_err(during("waiting for the device"))
    }
}

#[cfg(test)]
mod tests {
    use super::in_bytes;

    #[test]
    fn a_distance_divided_without_its_sign_is_itself_again() {
        for (bytes, distance) in [(4, -248_i64), (8, -8), (4, 128), (8, 0)] {
            let divided = (distance as u64 / bytes as u64) as i64;
            assert_eq!(in_bytes(divided, bytes), distance);
            assert_eq!(in_bytes(distance / bytes, bytes), distance);
        }
    }
}
