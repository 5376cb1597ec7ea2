//! The text of solvers' phases, checked by naga with no device at hand.

use abide_core::sparse::{Csr, Triplets};
use abide_core::{Boundaries, Boundary, DeviceSpec, LinearStencil, Shape};
use abide_solvers::plan::plan_dispatches;
use naga::valid::{Capabilities, GlobalUse, ValidationFlags, Validator};

use super::*;

fn device() -> DeviceSpec {
    DeviceSpec { threads_per_block: 256, buffer_bytes: 1 << 27, ..DeviceSpec::preset("a100").unwrap() }
}

/// Returns a matrix with rows of `width` entries. If `dense`, the first row is full.
fn rows(width: usize, dense: bool, dtype: DType) -> Matrix {
    let n = 600;
    let mut triplets = Triplets::new(n, n).unwrap();
    for row in 0..n {
        let entries = if dense && row == 0 { n } else { width };
        (0..entries).for_each(|k| triplets.push(row, (row + k) % n, 1.0).unwrap());
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap().into()
}

fn stencil(boundaries: &str, dtype: DType) -> Matrix {
    let taps = [([-1, 0], -1.0), ([0, -2], -1.0), ([0, 0], 4.3), ([0, 1], -0.1), ([1, 0], -1.0)];
    let stencil = LinearStencil::new("skewed", &taps).unwrap();
    let boundaries = Boundaries::parse(boundaries, Boundary::Fixed).unwrap();
    GridOperator::new(stencil, Shape::new(&[13, 37]).unwrap(), boundaries, dtype).unwrap().into()
}

fn every_case(mut each: impl FnMut(&Matrix, &SolveOptions, &Dispatches, &Script, &str)) {
    for dtype in [DType::F32, DType::F64] {
        let mut matrices = vec![rows(1, false, dtype), rows(5, true, dtype), rows(42, false, dtype)];
        matrices.extend(["fixed", "periodic", "y=mirror,x=constant=0"].map(|text| stencil(text, dtype)));
        for matrix in &matrices {
            for method in Method::all() {
                for preconditioner in Preconditioning::OF_KERNELS {
                    let options = SolveOptions { preconditioner, ..SolveOptions::with_method(method) };
                    let script = script(matrix, &options).unwrap();
                    let plan =
                        plan_dispatches("wgpu", matrix, &device(), &options, &script.effort()).unwrap();
                    let layout = plan.dispatches().unwrap();
                    let text = module(matrix, &options, layout, &script).unwrap();
                    each(matrix, &options, layout, &script, &text);
                }
            }
        }
    }
}

/// Every text is valid. Every phase binds the buffers that its entry point uses; its vectors are exactly
/// those that the entry point uses, with the access that the phase states.
#[test]
fn every_phase_is_valid_and_binds_what_it_uses() {
    every_case(|matrix, options, layout, script, text| {
        let what = format!("{} {} {}", options.method, options.preconditioner, matrix.dtype());
        let module = naga::front::wgsl::parse_str(text)
            .unwrap_or_else(|e| panic!("{}\n{text}", e.emit_to_string(text)));
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::FLOAT64);
        let info =
            validator.validate(&module).unwrap_or_else(|e| panic!("{}\n{text}", e.emit_to_string(text)));
        for phase in script.phases() {
            let number = module.entry_points.iter().position(|entry| entry.name == phase.entry());
            let number = number.unwrap_or_else(|| panic!("{what}: no entry point {}", phase.name));
            assert_eq!(module.entry_points[number].workgroup_size, [layout.threads as u32, 1, 1]);
            let info = info.get_entry_point(number);
            let mut bound: Vec<u32> = phase.fixed.iter().map(|fixed| fixed.binding()).collect();
            bound.extend(phase.uses.iter().map(|used| used.role.binding()));
            for (handle, variable) in module.global_variables.iter() {
                let (uses, Some(binding)) = (info[handle], &variable.binding) else { continue };
                if !uses.is_empty() {
                    assert!(
                        bound.contains(&binding.binding),
                        "{what}: {} uses {:?}",
                        phase.name,
                        variable.name
                    );
                }
                if let Some(used) = phase.uses.iter().find(|used| used.role.binding() == binding.binding) {
                    assert_eq!(variable.name.as_deref(), Some(used.role.name().as_str()));
                    let access = [GlobalUse::READ, GlobalUse::WRITE].map(|flag| uses.contains(flag));
                    assert_eq!(access, used.access, "{what}: {} and {}", phase.name, used.role.name());
                }
            }
        }
    });
}

/// No vector that a phase writes is visible through another of its bindings, because neither WebGPU nor a
/// compiler allows for that.
#[test]
fn no_phase_binds_a_vector_twice() {
    every_case(|_, options, _, script, _| {
        for phase in script.phases() {
            for (number, used) in phase.uses.iter().enumerate() {
                let twice = phase.uses[..number].iter().any(|other| other.vector == used.vector);
                assert!(
                    !twice,
                    "{} {}: {} has {:?} twice",
                    options.method, options.preconditioner, phase.name, used.vector
                );
            }
        }
    });
}

/// WebGPU promises 8 storage buffers per shader stage. The polynomial of a stored matrix takes 10, the
/// directions of pipelined conjugate gradients 9; opening such a system says so where there are fewer.
#[test]
fn phases_bind_few_buffers() {
    every_case(|matrix, options, _, script, _| {
        for phase in script.phases() {
            let storage = phase.fixed.iter().filter(|fixed| !fixed.is_uniform()).count() + phase.uses.len();
            let most = match (options.method, phase.name) {
                (_, "polynomial_step") if matches!(matrix, Matrix::Stored(_)) => 10,
                (Method::PipelinedCg(_), "directions") => 9,
                _ => 8,
            };
            assert!(storage <= most, "{} {}: {} {storage}", options.method, matrix.dtype(), phase.name);
        }
    });
}

/// Systems of one layout share their pipelines: no extent of a stored matrix is in the text.
#[test]
fn the_text_of_stored_matrices_is_the_layouts_alone() {
    let text = |n: usize| {
        let mut triplets = Triplets::new(n, n).unwrap();
        (0..n).for_each(|row| triplets.push(row, row, 1.0).unwrap());
        let matrix: Csr = triplets.into_csr().unwrap();
        let (matrix, options) = (Matrix::from(matrix), SolveOptions::default());
        let script = script(&matrix, &options).unwrap();
        let plan = plan_dispatches("wgpu", &matrix, &device(), &options, &script.effort()).unwrap();
        module(&matrix, &options, plan.dispatches().unwrap(), &script).unwrap()
    };
    assert_eq!(text(3), text(70_001));
}
