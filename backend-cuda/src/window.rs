//! Boxes of values in pitched device memory, to and from the host.

use std::ffi::c_void;

use abide_core::{Array, DType, Precision, Result, memory, with_array};
use cudarc::driver::{CudaStream, DriverError, sys};

use crate::driver::during;
use crate::staging::{self, STAGED};

/// A field's values in device memory: rows a pitch apart, planes of rows one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The field's extents, slowest axis first.
    pub extents: [usize; 3],
    /// Values from the beginning of one row to the beginning of the next.
    pub pitch: usize,
    pub dtype: DType,
    /// The type of stored values, where that is narrower.
    pub precision: Option<Precision>,
}

/// A part of a window that one copy moves: rows that lie a pitch apart in device memory, and without gaps on
/// the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Bytes before the first row, in device memory and on the host.
    pub device: usize,
    pub host: usize,
    pub count: usize,
    /// Bytes of a row, and from one row to the next.
    pub bytes: usize,
    pub pitch: usize,
}

impl Layout {
    /// Returns the bytes of a stored value.
    pub fn bytes(&self) -> usize {
        Precision::stored_bytes(self.precision, self.dtype)
    }

    /// Reads the values of the box `low..high`, which lies within the extents, from a buffer at an address.
    ///
    /// # Safety
    ///
    /// The buffer at `device` has this layout.
    pub unsafe fn read(
        &self,
        device: sys::CUdeviceptr,
        [low, high]: [[usize; 3]; 2],
        stream: &CudaStream,
    ) -> Result<Array> {
        let values = (0..3).map(|axis| high[axis] - low[axis]).product();
        if let Some(precision) = self.precision {
            let bytes = values * precision.bytes();
            let mut packed = memory::filled(0, bytes, "a field", "choose a smaller size")?;
            // SAFETY: there is room for each of the box's values.
            unsafe { self.copy(Way::ToHost, packed.as_mut_ptr().cast(), device, [low, high], stream) }
                .map_err(during("reading a field"))?;
            return precision.unpack(&packed, self.dtype);
        }
        let mut array = Array::zeros(self.dtype, values)?;
        let host = with_array!(&mut array, values => values.as_mut_ptr().cast::<c_void>());
        // SAFETY: the array has each of the box's values, which the buffer has by its layout.
        unsafe { self.copy(Way::ToHost, host, device, [low, high], stream) }
            .map_err(during("reading a field"))?;
        Ok(array)
    }

    /// Replaces the values of the box `low..high`, which lies within the extents, in a buffer at an address.
    ///
    /// # Safety
    ///
    /// The buffer at `device` has this layout, and the array is of its type and has each of the box's values.
    pub unsafe fn write(
        &self,
        device: sys::CUdeviceptr,
        [low, high]: [[usize; 3]; 2],
        array: &Array,
        stream: &CudaStream,
    ) -> Result<()> {
        let packed = self.precision.map(|precision| precision.pack(array)).transpose()?;
        let host = match &packed {
            Some(packed) => packed.as_ptr().cast_mut().cast::<c_void>(),
            None => with_array!(array, values => values.as_ptr().cast_mut().cast::<c_void>()),
        };
        // SAFETY: as promised.
        unsafe { self.copy(Way::ToDevice, host, device, [low, high], stream) }
            .map_err(during("writing a field"))
    }

    /// Copies the values of a box between the host and a buffer, and waits until they are there.
    ///
    /// # Safety
    ///
    /// The buffer at `device` has this layout, and `host` has room for each of the box's values; it is not written on the
    /// way to the device.
    unsafe fn copy(
        &self,
        way: Way,
        host: *mut c_void,
        device: sys::CUdeviceptr,
        [low, high]: [[usize; 3]; 2],
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        for rows in self.rows(low, high) {
            if rows.count * rows.bytes >= STAGED {
                stream.synchronize()?;
                // SAFETY: as promised; the stream has done what it was given.
                if unsafe { staging::copy(&rows, way, host, device, stream.context()) }? {
                    continue;
                }
            }
            // SAFETY: as promised; the stream is waited for below.
            unsafe { rows.copy(way, host, device, stream) }?;
        }
        stream.synchronize()
    }

    /// Returns the copies that move a box: one where its planes follow each other as its rows do, else one for
    /// each plane.
    pub fn rows(&self, low: [usize; 3], high: [usize; 3]) -> Vec<Rows> {
        let bytes = self.bytes();
        let [planes, rows, width] = [0, 1, 2].map(|axis| high[axis] - low[axis]);
        let first = |z: usize| ((z * self.extents[1] + low[1]) * self.pitch + low[2]) * bytes;
        let part = |z: usize, count: usize| Rows {
            device: first(low[0] + z),
            host: z * rows * width * bytes,
            count,
            bytes: width * bytes,
            pitch: self.pitch * bytes,
        };
        match rows == self.extents[1] {
            true => vec![part(0, planes * rows)],
            false => (0..planes).map(|z| part(z, rows)).collect(),
        }
    }
}

/// The direction of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    ToHost,
    ToDevice,
}

impl Rows {
    /// Returns the same rows in parts of no more than so many bytes, or of one row that is longer.
    pub fn parts(&self, most: usize) -> Vec<Rows> {
        let all = self.count * self.bytes;
        // Rows without gaps are cut anywhere.
        let (count, bytes, pitch) = if self.count == 1 || self.bytes == self.pitch {
            (all.div_ceil(most), most, most)
        } else {
            (self.count, self.bytes, self.pitch)
        };
        let together = (most / bytes.max(1)).max(1);
        (0..count)
            .step_by(together)
            .map(|first| {
                let host = first * bytes;
                let count = together.min(count - first);
                let bytes = bytes.min(all - host);
                Rows { device: self.device + first * pitch, host: self.host + host, count, bytes, pitch }
            })
            .collect()
    }

    /// Copies the rows between the host's values and a buffer.
    ///
    /// # Safety
    ///
    /// `host` has room for all rows until the stream has finished the copy; it is not written on the way to
    /// the device. `device` has room for all rows with their gaps.
    pub unsafe fn copy(
        &self,
        way: Way,
        host: *mut c_void,
        device: sys::CUdeviceptr,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        let &Rows { device: before, host: done, count, bytes, pitch } = self;
        // SAFETY: the rows begin within both, as promised.
        let (host, device) = (unsafe { host.byte_add(done) }, device + before as u64);
        // Rows without gaps are copied as one row, because a strided copy may not span 2 GiB.
        let (width, height) = if bytes == pitch { (count * bytes, 1) } else { (bytes, count) };
        let (stream, there) = (stream.cu_stream(), sys::CUmemorytype::CU_MEMORYTYPE_DEVICE);
        let here = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        if height == 1 {
            // SAFETY: as promised.
            return unsafe {
                match way {
                    Way::ToHost => sys::cuMemcpyDtoHAsync_v2(host, device, width, stream),
                    Way::ToDevice => sys::cuMemcpyHtoDAsync_v2(device, host, width, stream),
                }
            }
            .result();
        }
        let ((from, from_pitch), (to, to_pitch)) = match way {
            Way::ToHost => ((there, pitch), (here, bytes)),
            Way::ToDevice => ((here, bytes), (there, pitch)),
        };
        let copy = sys::CUDA_MEMCPY2D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from,
            srcHost: host,
            srcDevice: device,
            srcArray: std::ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to,
            dstHost: host,
            dstDevice: device,
            dstArray: std::ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: width,
            Height: height,
        };
        // SAFETY: as promised.
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream) }.result()
    }
}

#[cfg(test)]
mod tests {
    use abide_core::backend::window_of;

    use super::*;

    /// The copies of every box of a small field move its values, and nothing else.
    #[test]
    fn rows_are_those_of_the_box() {
        let extents = [3, 4, 5];
        let layout = Layout { extents, pitch: 8, dtype: DType::F64, precision: None };
        let values = Array::from_fn(DType::F64, 60, |i| i as f64);
        // Memory with space behind its rows.
        let place = |i: usize| i / 5 * 8 + i % 5;
        let mut memory = vec![f64::NAN; 12 * 8];
        (0..60).for_each(|i| memory[place(i)] = i as f64);
        let ranges = |n: usize| (0..n).flat_map(move |low| (low + 1..=n).map(move |high| (low, high)));
        for (z0, z1) in ranges(3) {
            for (y0, y1) in ranges(4) {
                for (x0, x1) in ranges(5) {
                    let (low, high) = ([z0, y0, x0], [z1, y1, x1]);
                    let mut found = Vec::new();
                    for rows in layout.rows(low, high) {
                        assert_eq!(rows.host, found.len() * 8);
                        for row in 0..rows.count {
                            let from = (rows.device + row * rows.pitch) / 8;
                            found.extend_from_slice(&memory[from..from + rows.bytes / 8]);
                        }
                    }
                    assert_eq!(Array::F64(found), window_of(extents, &values, low, high).unwrap());
                }
            }
        }
        assert_eq!(layout.rows([0; 3], extents).len(), 1);
    }

    /// Parts of rows, with gaps and without, are the rows: each byte once, none longer than asked where rows are not.
    #[test]
    fn parts_are_the_whole() {
        let bytes = |rows: &Rows| -> Vec<(usize, usize)> {
            let row = |row: usize| {
                (0..rows.bytes)
                    .map(move |at| (rows.device + row * rows.pitch + at, rows.host + row * rows.bytes + at))
            };
            (0..rows.count).flat_map(row).collect()
        };
        for (count, row, pitch) in
            [(1, 1000, 1000), (1, 1000, 1024), (7, 24, 24), (7, 24, 32), (5, 90, 100), (64, 1, 1)]
        {
            let rows = Rows { device: 40, host: 16, count, bytes: row, pitch };
            for most in [1, 7, 24, 50, 72, 89, 1000, 5000] {
                let parts = rows.parts(most);
                assert_eq!(
                    parts.iter().flat_map(bytes).collect::<Vec<_>>(),
                    bytes(&rows),
                    "{rows:?} in {most}"
                );
                let longest = if count == 1 || row == pitch { most } else { most.max(row) };
                assert!(parts.iter().all(|part| part.count * part.bytes <= longest), "{rows:?} in {most}");
            }
        }
    }
}
