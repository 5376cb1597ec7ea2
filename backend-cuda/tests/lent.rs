//! Memory that a session exports holds the values that the session reads, at the strides that it reports.

use crate::common;

use std::sync::Arc;

use abide_core::{Array, Backend, DType, Options, Problem, Session, Shape, catalogue};
use abide_cuda::{CudaBackend, DeviceBuffer};
use cudarc::driver::result;

use common::present;

fn lent(session: &dyn Session, field: usize) -> DeviceBuffer {
    *session.device_buffer(field).unwrap().downcast().unwrap()
}

/// Reads values one by one, at the reported strides.
fn values(buffer: &DeviceBuffer) -> Vec<f64> {
    let ([depth, rows, columns], strides) = (buffer.extents(), buffer.strides());
    let mut all = Vec::new();
    for (z, y) in (0..depth).flat_map(|z| (0..rows).map(move |y| (z, y))) {
        let mut bytes = vec![0_u8; columns * buffer.dtype().bytes()];
        let at = buffer.address() + ((z * strides[0] + y * strides[1]) * buffer.dtype().bytes()) as u64;
        // SAFETY: the row lies within the buffer, by its strides.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, at) }.unwrap();
        all.extend(abide_shaders::numbers(buffer.dtype(), &bytes));
    }
    all
}

#[test]
fn lent_memory_is_the_field() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    for (name, extents) in [("wave", &[37, 101][..]), ("3d7pt", &[5, 6, 77]), ("cloverleaf", &[13, 9])] {
        for dtype in [DType::F32, DType::F64] {
            let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
            let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
            let start: Vec<Array> = (0..problem.program.fields().len())
                .map(|field| Array::from_fn(dtype, problem.values_of(field), |i| 1.0 + (i % 7) as f64 / 8.0))
                .collect();
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, start).unwrap();
            session.advance(3).unwrap();
            let (mut kept, mut expected) = (Vec::new(), Vec::new());
            for field in 0..problem.program.fields().len() {
                let buffer = lent(&*session, field);
                let read = session.read(field).unwrap().to_f64();
                assert!(values(&buffer).iter().zip(&read).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
                kept.push(buffer);
                expected.push(read);
            }
            assert!(session.device_buffer(problem.program.fields().len()).is_none());
            // The memory outlives the session.
            drop(session);
            for (buffer, expected) in kept.iter().zip(&expected) {
                assert!(
                    values(buffer).iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn fields_are_copied_out_and_filled_on_the_device() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    for (name, extents) in [("wave", &[37, 101][..]), ("3d7pt", &[5, 6, 77]), ("cloverleaf", &[13, 9])] {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap();
        let start: Vec<Array> = (0..problem.program.fields().len())
            .map(|field| Array::from_fn(DType::F64, problem.values_of(field), |i| 1.0 + (i % 7) as f64 / 8.0))
            .collect();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, start).unwrap();
        session.advance(3).unwrap();
        let before = session.read(0).unwrap();
        let copy = lent(&*session, 0).copy().unwrap();
        let [_, rows, columns] = copy.extents();
        assert_eq!(copy.strides(), [rows * columns, columns, 1]);
        session.advance(2).unwrap();
        assert_eq!(copy.read().unwrap(), before, "a copy stays as it is");
        let own: DeviceBuffer = *session.device_buffer_mut(0).unwrap().unwrap().downcast().unwrap();
        let strides = copy.strides().map(|stride| stride as i64);
        // SAFETY: the copy has its values at its strides.
        unsafe { own.fill(copy.address(), strides) }.unwrap();
        assert_eq!(session.read(0).unwrap(), before);
        session.advance(1).unwrap();
        let after = session.read(0).unwrap();
        let own: DeviceBuffer = *session.device_buffer_mut(0).unwrap().unwrap().downcast().unwrap();
        // SAFETY: the copy has room at its strides.
        unsafe { own.store(copy.address(), strides) }.unwrap();
        assert_eq!(copy.read().unwrap(), after);
        // SAFETY: refused before it is read.
        let gaps = unsafe { own.fill(copy.address(), [strides[0], strides[1], 2]) };
        assert!(gaps.unwrap_err().to_string().contains("2 apart along the last axis"));
        // SAFETY: refused before it is read.
        let host = unsafe { own.fill((&raw const strides).addr() as u64, strides) };
        assert!(host.unwrap_err().to_string().contains("does not lie on device"));
    }
}
