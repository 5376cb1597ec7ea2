//! Copies between two places in device memory whose rows are laid out differently.

use cudarc::driver::{CudaStream, DriverError, sys};

/// The longest pitch that a strided copy takes on every device, in bytes.
const LONGEST_PITCH: i64 = i32::MAX as i64;

/// Where values lie in device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The address of the first value.
    pub address: u64,
    /// Bytes from one value to the next along each axis, slowest first.
    pub strides: [i64; 3],
}

/// Rows that one copy moves: `count` of them, and where the first lies and the bytes from one to the next, in
/// both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    first: [i64; 2],
    pitch: [i64; 2],
    count: i64,
}

/// Returns the copies that move all values from one place to another: as few as their strides allow.
fn batches(strides: [[i64; 3]; 2], extents: [usize; 3], width: i64) -> Vec<Batch> {
    let [planes, rows, _] = extents.map(|extent| extent as i64);
    // A single row, or a plane, follows the one before as well as any.
    let pitch = strides.map(|own| if rows > 1 { own[1] } else { own[0] });
    let follows = |own: [i64; 3]| planes == 1 || rows == 1 || own[0] == rows * own[1];
    let whole = match strides.iter().all(|&own| follows(own)) {
        true => vec![Batch { first: [0; 2], pitch, count: planes * rows }],
        false => {
            let plane = |z| Batch { first: strides.map(|own| z * own[0]), pitch, count: rows };
            (0..planes).map(plane).collect()
        }
    };
    let is_strided = |batch: &Batch| batch.pitch.iter().all(|pitch| (width..=LONGEST_PITCH).contains(pitch));
    let single = |batch: Batch| {
        let first = move |row: i64| [0, 1].map(|place| batch.first[place] + row * batch.pitch[place]);
        (0..batch.count).map(move |row| Batch { first: first(row), pitch: [width; 2], count: 1 })
    };
    let parts = |batch: Batch| match batch.count == 1 || is_strided(&batch) {
        true => vec![batch],
        // Rows that overlap, or run backwards.
        false => single(batch).collect(),
    };
    whole.into_iter().flat_map(parts).collect()
}

/// Copies values of `size` bytes that follow each other along the last axis.
///
/// # Safety
///
/// Both places have values at all indices of the extents until the stream has done the copies.
pub(crate) unsafe fn copy(
    to: &Place,
    from: &Place,
    extents: [usize; 3],
    size: usize,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    let width = (extents[2] * size) as i64;
    for batch in batches([to.strides, from.strides], extents, width) {
        let [to, from] = [(to, 0), (from, 1)].map(|(own, i)| own.address.wrapping_add_signed(batch.first[i]));
        let stream = stream.cu_stream();
        if batch.count == 1 || batch.pitch == [width; 2] {
            let bytes = (batch.count * width) as usize;
            // SAFETY: the rows are there, as promised, and follow each other in both places.
            unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) }.result()?;
            continue;
        }
        let there = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        let copy = sys::CUDA_MEMCPY2D_st {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: there,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            srcPitch: batch.pitch[1] as usize,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: there,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            dstPitch: batch.pitch[0] as usize,
            WidthInBytes: width as usize,
            Height: batch.count as usize,
        };
        // SAFETY: as promised.
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream) }.result()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value is moved once, to its own place, whatever the strides of both places.
    #[test]
    fn batches_move_every_value() {
        let packed = [20, 5, 1];
        let layouts =
            [packed, [32, 8, 1], [40, 8, 1], [5, 15, 1], [0, 5, 1], [20, 0, 1], [-20, 5, 1], [20, -5, 1]];
        for extents in [[3, 4, 5], [1, 4, 5], [3, 1, 5], [1, 1, 5]] {
            for to in [packed, [32, 8, 1], [40, 8, 1]] {
                for from in layouts {
                    let mut moved = std::collections::BTreeMap::new();
                    for batch in batches([to, from], extents, 5) {
                        for (row, column) in
                            (0..batch.count).flat_map(|row| (0..5).map(move |column| (row, column)))
                        {
                            let [to, from] = [0, 1].map(|i| batch.first[i] + row * batch.pitch[i] + column);
                            assert_eq!(moved.insert(to, from), None, "{extents:?} {to:?} {from:?}");
                        }
                    }
                    let [planes, rows, _] = extents.map(|extent| extent as i64);
                    let at = |own: [i64; 3], z: i64, y: i64, x: i64| z * own[0] + y * own[1] + x;
                    for (z, y, x) in
                        (0..planes).flat_map(|z| (0..rows).flat_map(move |y| (0..5).map(move |x| (z, y, x))))
                    {
                        assert_eq!(moved.remove(&at(to, z, y, x)), Some(at(from, z, y, x)));
                    }
                    assert!(moved.is_empty());
                }
            }
        }
        assert_eq!(batches([packed, packed], [3, 4, 5], 5).len(), 1);
        assert_eq!(batches([packed, [32, 8, 1]], [3, 4, 5], 5).len(), 1);
        assert_eq!(batches([packed, [40, 8, 1]], [3, 4, 5], 5).len(), 3);
    }
}
