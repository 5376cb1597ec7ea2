//! DLPack: how packages hand arrays to each other without a copy (dmlc.github.io/dlpack, versions 0.8 and 1.0).

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use abide::{DType, Error};
use abide_cuda::DeviceBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::exception;

/// The names of a capsule before and after its array was taken, of both kinds.
const PLAIN: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

/// `kDLCUDA`, and `kDLCUDAManaged`, which a device reads likewise.
const CUDA: [i32; 2] = [2, 13];
/// `kDLFloat`.
const FLOAT: u8 = 2;

#[repr(C)]
struct Device {
    kind: i32,
    number: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    axes: i32,
    dtype: DataType,
    shape: *const i64,
    /// In values; null where the values follow each other without gaps.
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
pub struct Plain {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

/// What a capsule points to, with all that it needs to live.
struct Export<T> {
    managed: T,
    _extents: [Vec<i64>; 2],
    buffer: DeviceBuffer,
}

impl<T> Export<T> {
    /// Makes the memory of a capsule, which `drop_export` takes back.
    fn leak(
        buffer: &DeviceBuffer,
        shape: &[usize],
        steps: &[usize],
        managed: impl FnOnce(Tensor) -> T,
    ) -> *mut Export<T> {
        let extents = [shape, steps].map(|all| all.iter().map(|&n| n as i64).collect::<Vec<_>>());
        let tensor = Tensor {
            data: buffer.address() as *mut c_void,
            device: Device { kind: CUDA[0], number: buffer.device() as i32 },
            axes: shape.len() as i32,
            dtype: DataType { code: FLOAT, bits: buffer.dtype().bytes() as u8 * 8, lanes: 1 },
            // Vectors keep their values in place when they are moved.
            shape: extents[0].as_ptr(),
            strides: extents[1].as_ptr(),
            byte_offset: 0,
        };
        let managed = managed(tensor);
        Box::into_raw(Box::new(Export { managed, _extents: extents, buffer: buffer.clone() }))
    }
}

/// Takes the memory of a capsule back, once its reader has no more use for it.
///
/// # Safety
///
/// `context` is of [`Export::leak`], of the same `T`, and not used afterwards.
unsafe fn drop_export<T>(context: *mut c_void) {
    // SAFETY: as promised.
    let export = unsafe { Box::from_raw(context.cast::<Export<T>>()) };
    // The reader may have asked the device for work that still reads the memory; a device that fails to answer
    // does none.
    let _ = export.buffer.wait();
}

unsafe extern "C" fn delete_plain(managed: *mut Plain) {
    // SAFETY: the reader gives back what it was given, once.
    unsafe { drop_export::<Plain>((*managed).context) }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: the reader gives back what it was given, once.
    unsafe { drop_export::<Versioned>((*managed).context) }
}

/// Frees what an unread capsule points to.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that it destroys. The capsule's name states the type of its pointer, and
    // only an unread capsule has one of these names.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN[0].as_ptr()) == 1 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN[0].as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED[0].as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED[0].as_ptr()).cast());
        }
    }
}

/// Returns a capsule with device memory of some extents, `steps` values from one to the next along each axis.
pub fn export<'py>(
    py: Python<'py>,
    buffer: &DeviceBuffer,
    shape: &[usize],
    steps: &[usize],
    is_versioned: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let (pointer, name): (*mut c_void, &CStr) = if is_versioned {
        let export = Export::leak(buffer, shape, steps, |tensor| Versioned {
            version: [1, 0],
            context: std::ptr::null_mut(),
            deleter: Some(delete_versioned),
            flags: 0,
            tensor,
        });
        // SAFETY: the export was just made.
        unsafe {
            (*export).managed.context = export.cast();
            ((&raw mut (*export).managed).cast(), VERSIONED[0])
        }
    } else {
        let export = Export::leak(buffer, shape, steps, |tensor| Plain {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(delete_plain),
        });
        // SAFETY: the export was just made.
        unsafe {
            (*export).managed.context = export.cast();
            ((&raw mut (*export).managed).cast(), PLAIN[0])
        }
    };
    // SAFETY: the pointer is not null, and the name lives as long as the program.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy));
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?.cast_into_unchecked::<PyCapsule>())
    }
}

/// An array of another package in device memory.
#[derive(FromPyObject)]
pub enum Array<'py> {
    /// What `__dlpack__` returned.
    Capsule(Bound<'py, PyCapsule>),
    /// The entries of `__cuda_array_interface__`: address, shape, strides in bytes where values have gaps, type.
    Interface(u64, Vec<usize>, Option<Vec<i64>>, String),
}

impl Array<'_> {
    /// Returns where the values lie, and what keeps them there.
    pub fn values(&self) -> PyResult<(Values, Option<Import>)> {
        match self {
            Array::Capsule(capsule) => {
                let import = import(capsule)?;
                Ok((import.values()?, Some(import)))
            }
            Array::Interface(address, shape, strides, typestr) => {
                Ok((Values::of_interface(*address, shape, strides.as_deref(), typestr)?, None))
            }
        }
    }
}

/// The array of a capsule, which goes back to its maker when this goes.
pub enum Import {
    Plain(NonNull<Plain>),
    Versioned(NonNull<Versioned>),
}

/// Takes the array of a capsule.
fn import(capsule: &Bound<'_, PyCapsule>) -> PyResult<Import> {
    let take = |[name, used]: [&'static CStr; 2]| {
        // SAFETY: the name states the type of the pointer; from now on this module owns the array.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 1 {
                return None;
            }
            let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
            ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr());
            NonNull::new(pointer)
        }
    };
    if let Some(pointer) = take(VERSIONED) {
        return Ok(Import::Versioned(pointer.cast()));
    }
    let plain = take(PLAIN).map(|pointer| Import::Plain(pointer.cast()));
    plain.ok_or_else(|| {
        let reason = "its capsule holds no array, or one that was already taken";
        exception(Error::invalid("an array by DLPack", reason, "ask for a new capsule by __dlpack__()"))
    })
}

impl Import {
    /// Returns where the values lie.
    fn values(&self) -> PyResult<Values> {
        // SAFETY: the array is this module's until it goes.
        let tensor = unsafe {
            match self {
                Import::Plain(managed) => &managed.as_ref().tensor,
                Import::Versioned(managed) => match managed.as_ref().version[0] {
                    1 => &managed.as_ref().tensor,
                    other => {
                        let reason = format!("its version is {other}, which is not known");
                        return Err(refused(reason, "give version 1, or the one before"));
                    }
                },
            }
        };
        if !CUDA.contains(&tensor.device.kind) {
            let reason = format!("it lies on a device of kind {}", tensor.device.kind);
            return Err(refused(reason, "give an array in CUDA's memory"));
        }
        let DataType { code, bits, lanes } = tensor.dtype;
        let dtype = match (code, bits, lanes) {
            (FLOAT, 32, 1) => DType::F32,
            (FLOAT, 64, 1) => DType::F64,
            _ => return Err(refused(format!("its values are of type {code} with {bits} bits"), FLOATS)),
        };
        let axes = usize::try_from(tensor.axes).unwrap_or(0);
        let list = |from: *const i64| {
            // SAFETY: both arrays have a number for each axis.
            if axes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, axes) } }
        };
        let shape: Vec<usize> = list(tensor.shape).iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
        let strides = if tensor.strides.is_null() { packed(&shape) } else { list(tensor.strides).to_vec() };
        let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
        Ok(Values { address, shape, strides, dtype })
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        // SAFETY: the array was taken from its capsule, so it is given back here, once.
        unsafe {
            match self {
                Import::Plain(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                Import::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Values of another package in device memory.
pub struct Values {
    pub address: u64,
    pub shape: Vec<usize>,
    /// Values from one to the next along each axis.
    pub strides: Vec<i64>,
    pub dtype: DType,
}

impl Values {
    /// Reads the entries of `__cuda_array_interface__`; strides are in bytes.
    fn of_interface(
        address: u64,
        shape: &[usize],
        strides: Option<&[i64]>,
        typestr: &str,
    ) -> PyResult<Values> {
        let dtype = match typestr {
            "<f4" => DType::F32,
            "<f8" => DType::F64,
            _ => return Err(refused(format!("its values are of type {typestr}"), FLOATS)),
        };
        let bytes = dtype.bytes() as i64;
        let strides = match strides {
            None => packed(shape),
            Some(strides) if strides.len() == shape.len() && strides.iter().all(|own| own % bytes == 0) => {
                strides.iter().map(|own| own / bytes).collect()
            }
            Some(strides) => {
                let reason = format!("its strides {strides:?} are not whole values of {bytes} bytes each");
                return Err(refused(reason, "give a contiguous copy"));
            }
        };
        Ok(Values { address, shape: shape.to_vec(), strides, dtype })
    }
}

const FLOATS: &str = "give float32 or float64";

/// Returns the strides of values without gaps.
fn packed(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    strides
}

fn refused(reason: String, change: &str) -> PyErr {
    exception(Error::invalid("an array in device memory", reason, change))
}
