//! Fields that a device cannot bind whole: each in several buffers, with the bits that it has in one.

use crate::common;

use abide_core::backend::Backend;
use abide_core::plan::Execution;
use abide_core::{Array, DType, DeviceSpec, Error, Options, Plan, Problem, catalogue};
use abide_planner::{plan_portable, plan_stepwise};
use abide_wgpu::WgpuBackend;
use common::random::{boundary, check_cuts, program};
use common::{backend, check_plan, problem, read_all, values};
use fastrand::Rng;

/// Returns the device as if it bound at most `bytes` bytes.
fn binding(backend: &WgpuBackend, bytes: u64) -> DeviceSpec {
    DeviceSpec { buffer_bytes: bytes, ..backend.device().clone() }
}

/// Plans a launch per stage with fields in `pieces` buffers.
fn plan(backend: &WgpuBackend, problem: &Problem, pieces: u64) -> Plan {
    let bytes = problem.shape.bytes(problem.dtype) as u64;
    plan_stepwise(
        problem,
        &binding(backend, bytes.div_ceil(pieces).next_multiple_of(512)),
        &Options::default(),
    )
    .unwrap()
}

fn after(backend: &WgpuBackend, problem: &Problem, plan: &Plan, fields: &[Array], steps: u64) -> Vec<Array> {
    let mut session = backend.open(problem, plan, fields.to_vec()).unwrap();
    session.advance(steps).unwrap();
    read_all(session.as_mut(), problem)
}

#[test]
fn pieces_have_the_bits_of_the_whole() {
    let Some(backend) = backend() else { return };
    for seed in 0..24 {
        let mut rng = Rng::with_seed(seed);
        let program = program(seed, &mut rng);
        let most = [0, 4000, 90, 20][program.dimensions()];
        let extents: Vec<usize> = (0..program.dimensions()).map(|_| rng.usize(most / 3..=most)).collect();
        let dtype = if rng.bool() { DType::F32 } else { DType::F64 };
        let boundary = boundary(&mut rng, |_| true);
        let Ok(problem) = problem(program, &extents, dtype, &boundary) else { continue };
        let (fields, pieces) = (values(&problem, seed), rng.u64(2..=3));
        let split = plan(&backend, &problem, pieces);
        println!("seed {seed}: {} {} {boundary} {:?}", problem.program.name(), problem.shape, split.notes);
        check_plan(&backend, &problem, &split, &fields, 3);
        check_cuts(&backend, &problem, &split, &fields, 5, &mut rng);
        let whole = plan_stepwise(&problem, backend.device(), &Options::default()).unwrap();
        let [expected, got] = [&whole, &split].map(|plan| after(&backend, &problem, plan, &fields, 5));
        assert!(got.iter().zip(&expected).all(|(a, b)| a.same_bits(b)), "seed {seed}");
    }
}

/// Transfers go from piece to piece, and code that draws from a device's buffer is given none.
#[test]
fn windows_lie_across_pieces() {
    let Some(backend) = backend() else { return };
    let program = catalogue::find("3d7pt").unwrap().program(3).unwrap();
    let problem = problem(program, &[7, 11, 13], DType::F64, "fixed").unwrap();
    let fields = values(&problem, 4);
    let mut session = backend.open(&problem, &plan(&backend, &problem, 4), fields.clone()).unwrap();
    assert!(session.read(0).unwrap().same_bits(&fields[0]));
    assert!(session.device_buffer(0).is_none());
    for (low, high) in [([0, 0, 0], [7, 11, 13]), ([1, 0, 0], [6, 11, 13]), ([1, 2, 3], [6, 10, 12])] {
        let window = session.read_window(0, low, high).unwrap();
        let expected = abide_core::backend::window_of(problem.shape.padded(), &fields[0], low, high).unwrap();
        assert!(window.same_bits(&expected), "{low:?} {high:?}");
    }
    let other = values(&problem, 5);
    session.write(0, &other[0]).unwrap();
    assert!(session.read(0).unwrap().same_bits(&other[0]));
    let (low, high) = ([1, 2, 3], [6, 10, 12]);
    let Array::F64(mut expected) = other[0].clone() else { unreachable!("the run is f64") };
    let values: Vec<f64> = (0..5 * 8 * 9).map(|i| if i % 7 == 0 { f64::NAN } else { i as f64 }).collect();
    abide_core::backend::write_rows(problem.shape.padded(), &mut expected, low, high, &values);
    session.write_window(0, low, high, &Array::F64(values)).unwrap();
    let expected = Array::F64(expected);
    assert!(session.read(0).unwrap().same_bits(&expected));
    assert_eq!(session.non_finite(0).unwrap(), expected.non_finite() as u64);
}

/// Only a launch per stage splits fields: the plan says so, and several steps per launch that are asked for
/// are refused.
#[test]
fn what_splits_is_said() {
    let Some(backend) = backend() else { return };
    let program = || catalogue::find("2d5pt").unwrap().program(2).unwrap();
    let problem = problem(program(), &[300, 300], DType::F32, "fixed").unwrap();
    let small = binding(&backend, 128 << 10);
    let plan = plan_portable(&problem, &small, &Options::default()).unwrap();
    assert_eq!(plan.execution, Execution::Stepwise);
    assert!(plan.notes.iter().any(|note| note.contains("split over 3 buffers")), "{:?}", plan.notes);
    assert!(plan.notes.iter().any(|note| note.contains("because several cannot be")), "{:?}", plan.notes);
    for execution in [Execution::Overlapped, Execution::Streaming] {
        let options = Options { execution, ..Options::default() };
        assert!(matches!(plan_portable(&problem, &small, &options), Err(Error::Limit { .. })));
    }
    // A field in more buffers than a kernel can bind.
    let tiny = plan_stepwise(&problem, &binding(&backend, 256), &Options::default()).unwrap();
    let error = backend.open(&problem, &tiny, values(&problem, 1)).err().unwrap().to_string();
    assert!(error.contains("buffers that"), "{error}");
}
