//! Kernels that shuffle, on devices that cannot: their text with the shuffle done through workgroup memory.

use std::sync::Arc;

use abide_core::plan::{Recipe, streaming};
use abide_core::{
    Array, Boundaries, Boundary, DType, DeviceSpec, Options, Plan, Problem, Session, Shape, catalogue,
};
use abide_planner::plan_recipe;
use abide_shaders::wgsl;

use crate::WgpuBackend;
use crate::blocking::block_on;
use crate::plain::PlainSession;
use crate::session::WgpuSession;

const SUBGROUP: usize = 32;

fn problem(name: &str, extents: &[usize], boundary: &str) -> Problem {
    let program = catalogue::find(name).and_then(|entry| entry.program(extents.len())).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F32).unwrap();
    problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
    problem
}

/// Returns all fields after some passes, `through_memory` where shuffles are replaced.
fn after(
    backend: &WgpuBackend,
    problem: &Problem,
    plan: &Plan,
    passes: u64,
    through_memory: bool,
) -> Vec<Array> {
    let mut kernels = wgsl::kernels(problem, plan).unwrap();
    if through_memory {
        let text = &mut kernels[0].text;
        let (from, to) = ("subgroup_invocation_id", "local_invocation_index");
        assert_eq!(text.matches(from).count(), 1);
        *text = text.replace(from, to);
        let shuffle = "    return subgroupShuffle(value, (thread + further) & 31u);\n";
        assert_eq!(text.matches("subgroupShuffle").count(), 1);
        assert_eq!(text.matches(shuffle).count(), 1);
        *text = text.replace(
            shuffle,
            "    workgroupBarrier();\n    shown[thread] = value;\n    workgroupBarrier();\n    return shown[(thread + further) & 31u];\n",
        );
        text.push_str(&format!("var<workgroup> shown: array<real, {SUBGROUP}>;\n"));
    }
    let mut rng = fastrand::Rng::with_seed(3);
    let values = |_: &String| Array::from_fn(problem.dtype, problem.shape.cells(), |_| 0.1 * rng.f64());
    let fields: Vec<Array> = problem.program.fields().iter().map(values).collect();
    let gpu = backend.gpu.clone();
    let session = block_on(PlainSession::open(gpu, problem, plan, &kernels, fields)).unwrap();
    let mut session = WgpuSession::from(session);
    session.advance(passes * u64::from(plan.depth)).unwrap();
    (0..problem.program.fields().len()).map(|field| session.read(field).unwrap()).collect()
}

/// Shuffles give the bits of slots: another thread's value is what that thread would have put into a slot.
#[test]
fn shuffles_hand_over_what_slots_do() {
    let backend = match WgpuBackend::new() {
        Ok(backend) => backend,
        Err(reason) => return println!("skipped: wgpu: {reason}"),
    };
    let device = DeviceSpec { warp: Some(SUBGROUP), registers_per_thread: Some(255), ..backend.spec.clone() };
    let mut tried = 0;
    for (name, extents, depth, columns) in [
        ("2d5pt", [61, 140], 3, 2),
        ("2ds9pt", [50, 97], 2, 4),
        ("2d9pt", [33, 77], 2, 1),
        ("2d25pt", [40, 203], 2, 2),
        ("gray-scott", [70, 88], 2, 2),
        ("fdtd-tm", [45, 130], 3, 2),
    ] {
        for boundary in ["fixed", "periodic", "constant=0.5"] {
            let problem = problem(name, &extents, boundary);
            let plan = |handover| {
                let (threads, cells) = ([1, SUBGROUP], [1, columns]);
                let configuration = streaming::portable::Configuration {
                    depth,
                    threads,
                    cells,
                    ahead: 2,
                    handover,
                    shares: 2,
                };
                plan_recipe(
                    &Recipe::PortableStreaming { configuration },
                    &problem,
                    &device,
                    &Options::default(),
                )
            };
            let shuffled =
                plan(streaming::portable::Handover::Shuffles).unwrap_or_else(|| panic!("{name} {boundary}"));
            let slots = plan(streaming::portable::Handover::DoubleSlots).unwrap();
            assert_eq!(wgsl::kernels(&problem, &shuffled).unwrap()[0].workgroup_bytes, 0);
            let expected = after(&backend, &problem, &slots, 2, false);
            let got = after(&backend, &problem, &shuffled, 2, true);
            assert!(got.iter().zip(&expected).all(|(a, b)| a.same_bits(b)), "{name} {boundary}");
            tried += 1;
        }
    }
    assert_eq!(tried, 18);
}
