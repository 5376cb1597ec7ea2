//! Arrays of the caller's: any strides, up to four axes, on the host or in a GPU's memory.

use std::ffi::c_void;

use abide::{Array, DType, Error};

use crate::status::{Failure, Outcome, invalid};
use crate::text::null;

/// Values of 32 bits, `float` and `real(real32)`.
pub const ABIDE_F32: i32 = 1;
/// Values of 64 bits, `double` and `real(real64)`.
pub const ABIDE_F64: i32 = 2;

/// An array in the host's memory.
pub const ABIDE_HOST: i32 = 0;
/// An array in the memory of a CUDA device.
pub const ABIDE_CUDA: i32 = 1;

/// The most axes of an array: three of a domain, and one before them, of variables or of a batch's members.
pub const ABIDE_AXES: usize = 4;

/// An array of the caller's. Axes are listed slowest first, as fields have them: `z, y, x`. Where they lie in memory is
/// what the strides say; of a Fortran array `u(i, j, k)` the extents are those of `k`, `j`, `i` and the strides
/// `ni * nj`, `ni`, `1`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AbideView {
    /// The address of the value whose indices are all the first.
    pub data: *mut c_void,
    /// `ABIDE_F32` or `ABIDE_F64`.
    pub dtype: i32,
    /// `ABIDE_HOST` or `ABIDE_CUDA`.
    pub memory: i32,
    /// The number of the device, for `ABIDE_CUDA`.
    pub device: i32,
    /// The number of axes, 1 to 4.
    pub axes: i32,
    /// The values along each axis.
    pub extents: [i64; ABIDE_AXES],
    /// The distance from one value to the next along each axis, in values; may be negative.
    pub strides: [i64; ABIDE_AXES],
}

/// Returns the type of a number of the interface.
pub(crate) fn dtype_of(number: i32, what: &str) -> Outcome<DType> {
    match number {
        ABIDE_F32 => Ok(DType::F32),
        ABIDE_F64 => Ok(DType::F64),
        other => Err(invalid(
            format!("the type of {what}"),
            format!("{other} is none"),
            "give ABIDE_F32 or ABIDE_F64",
        )),
    }
}

/// Returns the number of a type in the interface.
pub(crate) fn number_of(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => ABIDE_F32,
        DType::F64 => ABIDE_F64,
    }
}

/// Where an array's values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Host,
    Cuda(usize),
}

/// An array of the caller's whose description has been checked, padded to four axes at the front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    pub data: *mut c_void,
    pub dtype: DType,
    pub memory: Memory,
    axes: usize,
    extents: [usize; ABIDE_AXES],
    strides: [isize; ABIDE_AXES],
}

impl AbideView {
    /// Checks the description; `what` names the array in errors.
    pub(crate) fn checked(&self, what: &str) -> Outcome<Checked> {
        let refused = |reason: String, change: &str| invalid(what, reason, change);
        let dtype = dtype_of(self.dtype, what)?;
        let axes = usize::try_from(self.axes).ok().filter(|axes| (1..=ABIDE_AXES).contains(axes));
        let axes = axes.ok_or_else(|| {
            Failure::from(Error::limit(
                format!("axes of {what}"),
                self.axes,
                "1 to 4",
                "describe one to four axes",
            ))
        })?;
        let memory = match self.memory {
            ABIDE_HOST => Memory::Host,
            ABIDE_CUDA => match usize::try_from(self.device) {
                Ok(device) => Memory::Cuda(device),
                Err(_) => {
                    return Err(refused(format!("device {} is none", self.device), "count devices from 0"));
                }
            },
            other => {
                return Err(refused(format!("memory {other} is none"), "give ABIDE_HOST or ABIDE_CUDA"));
            }
        };
        if self.data.is_null() {
            return Err(null(&format!("the data of {what}")));
        }
        if !(self.data as usize).is_multiple_of(dtype.bytes()) {
            return Err(refused(
                format!("its address is no multiple of {} bytes", dtype.bytes()),
                "give the address of a value",
            ));
        }
        let (mut extents, mut strides) = ([1; ABIDE_AXES], [0; ABIDE_AXES]);
        let mut reach: i128 = 0;
        for axis in 0..axes {
            let (extent, stride) = (self.extents[axis], self.strides[axis]);
            if extent < 1 {
                let limit = Error::limit(
                    format!("extent of axis {axis} of {what}"),
                    extent,
                    "1 or more",
                    "give a value at least",
                );
                return Err(limit.into());
            }
            reach += i128::from(extent - 1) * i128::from(stride).abs();
            extents[ABIDE_AXES - axes + axis] = usize::try_from(extent).unwrap_or(usize::MAX);
            strides[ABIDE_AXES - axes + axis] = isize::try_from(stride).unwrap_or(isize::MAX);
        }
        let most = isize::MAX as i128 / dtype.bytes() as i128;
        if reach >= most
            || extents
                .iter()
                .try_fold(1_usize, |all, &n| all.checked_mul(n))
                .is_none_or(|all| all as i128 > most)
        {
            return Err(refused(
                "its values reach beyond what addresses can say".to_owned(),
                "correct its extents and strides",
            ));
        }
        Ok(Checked { data: self.data, dtype, memory, axes, extents, strides })
    }
}

impl Checked {
    /// Returns the extents, slowest axis first.
    pub fn extents(&self) -> &[usize] {
        &self.extents[ABIDE_AXES - self.axes..]
    }

    /// Returns the strides of the last three axes, in values.
    #[cfg(feature = "cuda")]
    pub fn strides_of_domain(&self) -> [i64; 3] {
        [1, 2, 3].map(|axis| self.strides[axis] as i64)
    }

    pub fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Checks the extents; `what` names the array in errors.
    pub fn expect(&self, extents: &[usize], what: &str) -> Outcome<()> {
        if self.extents() == extents {
            return Ok(());
        }
        let reason = format!("its extents are {:?}, {extents:?} are needed", self.extents());
        Err(invalid(what, reason, "describe as many values, slowest axis first"))
    }

    /// Checks that values can be written: each place is one value's.
    pub fn check_places(&self, what: &str) -> Outcome<()> {
        let shared = (0..ABIDE_AXES).any(|axis| self.extents[axis] > 1 && self.strides[axis] == 0);
        match shared {
            true => Err(invalid(
                what,
                "a stride of 0 has several values share a place",
                "give places of their own",
            )),
            false => Ok(()),
        }
    }

    /// Returns the part with one index on the first of its axes.
    pub fn part(&self, index: usize) -> Checked {
        let first = ABIDE_AXES - self.axes;
        let mut part = *self;
        part.data = self
            .data
            .wrapping_byte_offset(index as isize * self.strides[first] * self.dtype.bytes() as isize);
        (part.extents[first], part.strides[first], part.axes) = (1, 0, self.axes - 1);
        part
    }

    /// Returns the distance of the first value of each row from the first of all, and the length and the stride of rows.
    fn rows(&self) -> (impl Iterator<Item = isize> + use<>, usize, isize) {
        let [n3, n2, n1, mut n] = self.extents;
        let [s3, mut s2, mut s1, s] = self.strides;
        let (mut n2, mut n1) = (n2, n1);
        // Rows without gaps between them are one row.
        if s1 == n as isize * s {
            (n, n1) = (n * n1, 1);
            if s2 == n as isize * s {
                (n, n2) = (n * n2, 1);
            }
        }
        if n1 == 1 {
            s1 = 0;
        }
        if n2 == 1 {
            s2 = 0;
        }
        let starts = move |k: usize| {
            (0..n2)
                .flat_map(move |j| (0..n1).map(move |i| k as isize * s3 + j as isize * s2 + i as isize * s1))
        };
        ((0..n3).flat_map(starts), n, s)
    }

    /// Copies the values of a host's array, in the order of its axes.
    ///
    /// # Safety
    ///
    /// The caller's array has values at all places that the description names, and nobody writes them meanwhile.
    pub unsafe fn gather(&self) -> Outcome<Array> {
        let mut values = Array::zeros(self.dtype, self.len())?;
        match &mut values {
            // SAFETY: as promised.
            Array::F32(values) => unsafe { self.gather_to(values) },
            // SAFETY: as promised.
            Array::F64(values) => unsafe { self.gather_to(values) },
        }
        Ok(values)
    }

    /// # Safety
    ///
    /// As of [`Checked::gather`]; `T` is the array's type.
    unsafe fn gather_to<T: Copy>(&self, values: &mut [T]) {
        let from = self.data.cast::<T>().cast_const();
        let (starts, width, stride) = self.rows();
        for (start, row) in starts.zip(values.chunks_exact_mut(width)) {
            if stride == 1 {
                // SAFETY: the description names all places of the row, which are the caller's and not ours.
                unsafe { from.offset(start).copy_to_nonoverlapping(row.as_mut_ptr(), width) };
                continue;
            }
            for (index, value) in row.iter_mut().enumerate() {
                // SAFETY: the description names the place.
                *value = unsafe { *from.offset(start + index as isize * stride) };
            }
        }
    }

    /// Copies values to the places of a host's array, rounded to its type.
    ///
    /// # Safety
    ///
    /// The caller's array has room at all places that the description names, and nobody uses it meanwhile.
    pub unsafe fn scatter(&self, values: &Array) -> Outcome<()> {
        let cast;
        let values = if values.dtype() == self.dtype {
            values
        } else {
            cast = values.cast(self.dtype)?;
            &cast
        };
        match values {
            // SAFETY: as promised.
            Array::F32(values) => unsafe { self.scatter_from(values) },
            // SAFETY: as promised.
            Array::F64(values) => unsafe { self.scatter_from(values) },
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As of [`Checked::scatter`]; `T` is the array's type.
    pub unsafe fn scatter_from<T: Copy>(&self, values: &[T]) {
        let to = self.data.cast::<T>();
        let (starts, width, stride) = self.rows();
        for (start, row) in starts.zip(values.chunks_exact(width)) {
            if stride == 1 {
                // SAFETY: the description names all places of the row.
                unsafe { to.offset(start).copy_from(row.as_ptr(), width) };
                continue;
            }
            for (index, value) in row.iter().enumerate() {
                // SAFETY: the description names the place.
                unsafe { *to.offset(start + index as isize * stride) = *value };
            }
        }
    }
}
