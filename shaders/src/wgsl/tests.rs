//! The text of kernels, checked by naga with no device at hand.

use std::sync::Arc;

use abide_core::expr::{Binary, Node, Unary};
use abide_core::{Boundaries, DeviceSpec, Expr, LoopRows, Options, Scope, Shape, Stencil, catalogue};
use abide_planner::{overlapped_plans, plan_stepwise, portable_streaming_plans};
use naga::valid::{Capabilities, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator};

use super::*;

/// Returns a device of 256 threads per block and this much shared memory.
fn device(shared_bytes_per_block: usize) -> DeviceSpec {
    DeviceSpec { shared_bytes_per_block, threads_per_block: 256, ..DeviceSpec::preset("a100").unwrap() }
}

fn problem(program: Program, extents: &[usize], dtype: DType) -> Problem {
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn kernels_on(problem: &Problem, shared_bytes: usize) -> Vec<Kernel> {
    kernels(problem, &plan_stepwise(problem, &device(shared_bytes), &Options::default()).unwrap()).unwrap()
}

fn parsed(text: &str) -> naga::Module {
    naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)))
}

fn validate(text: &str) -> naga::Module {
    let module = parsed(text);
    let mut validator =
        Validator::new(ValidationFlags::all(), Capabilities::FLOAT64 | Capabilities::SUBGROUP);
    validator.subgroup_stages(ShaderStages::COMPUTE).subgroup_operations(SubgroupOperationSet::SHUFFLE);
    validator.validate(&module).unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)));
    module
}

fn boundaries() -> Vec<Boundaries> {
    let mixed = "z=periodic,y-=mirror,y+=constant=0.1,x-=fixed,x+=constant=-1e-3";
    let mut all: Vec<Boundaries> = ["fixed", "periodic", "mirror", "constant=0.5"]
        .map(|text| Boundaries::parse(text, Boundary::Fixed).unwrap())
        .to_vec();
    all.push(Boundaries::parse(mixed, Boundary::Fixed).unwrap());
    all
}

#[test]
fn every_kernel_of_the_catalogue_is_valid() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for dtype in [DType::F32, DType::F64] {
                let extents = &[13, 11, 67][3 - dimensions..];
                let mut problem = problem(entry.program(dimensions).unwrap(), extents, dtype);
                for boundaries in boundaries() {
                    problem.set_boundaries(boundaries);
                    for shared_bytes in [48 << 10, 0] {
                        for kernel in kernels_on(&problem, shared_bytes) {
                            check_against_module(&kernel, shared_bytes);
                            assert!(problem.shape.cells() <= kernel.workgroups * 16384);
                        }
                    }
                }
            }
        }
    }
}

/// Checks loops of every kind that stay loops, with tiles in workgroup memory and without, in one buffer a field and in
/// several.
#[test]
fn every_kernel_with_loops_is_valid() {
    for dimensions in 1..=3 {
        // One turn after another, and two together of five.
        let rows = if dimensions == 2 { LoopRows::Turns(2) } else { LoopRows::Turns(1) };
        let options = Options { lowering: Lowering::Loops, rows, ..Options::default() };
        for dtype in [DType::F32, DType::F64] {
            let program = abide_random::looped::program(dimensions, false).unwrap();
            let mut problem = problem(program, &[13, 11, 67][3 - dimensions..], dtype);
            let bytes = (problem.shape.bytes(dtype) as u64).div_ceil(3).next_multiple_of(512);
            for boundaries in boundaries() {
                problem.set_boundaries(boundaries);
                for (shared_bytes, buffer_bytes) in [(48 << 10, u64::MAX), (0, u64::MAX), (48 << 10, bytes)] {
                    let device = DeviceSpec { buffer_bytes, memory_bytes: 0, ..device(shared_bytes) };
                    let plan = plan_stepwise(&problem, &device, &options).unwrap();
                    let kernels = kernels(&problem, &plan).unwrap();
                    check_against_module(&kernels[0], shared_bytes);
                    assert!(kernels[0].text.contains("for (var i0: i32 ="), "{}", kernels[0].text);
                    let steps = kernels[0].text.matches(" += 2) {").count();
                    assert_eq!(steps > 0, rows == LoopRows::Turns(2), "{}", kernels[0].text);
                }
            }
        }
    }
}

#[test]
fn kernels_that_store_in_loops_are_valid() {
    for (n, rows) in [(3, LoopRows::Turns(1)), (5, LoopRows::Turns(2))] {
        let problem = problem(abide_random::looped::products(n, 2).unwrap(), &[11, 67], DType::F32);
        let options = Options { lowering: Lowering::Loops, rows, ..Options::default() };
        let plan = plan_stepwise(&problem, &device(48 << 10), &options).unwrap();
        let kernels = kernels(&problem, &plan).unwrap();
        check_against_module(&kernels[0], 48 << 10);
        let stored = format!("var stored: array<real, {}>;", n * n + n);
        assert!(kernels[0].text.contains(&stored), "{}", kernels[0].text);
    }
}

/// Checks kernels of fields that lie in three buffers each.
#[test]
fn every_kernel_of_split_fields_is_valid() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let extents = &[13, 11, 67][3 - dimensions..];
            let problem = problem(entry.program(dimensions).unwrap(), extents, DType::F32);
            let bytes = (problem.shape.bytes(DType::F32) as u64).div_ceil(3).next_multiple_of(256);
            for shared_bytes in [48 << 10, 0] {
                let device = DeviceSpec { buffer_bytes: bytes, memory_bytes: 0, ..device(shared_bytes) };
                let plan = plan_stepwise(&problem, &device, &Options::default()).unwrap();
                for kernel in kernels(&problem, &plan).unwrap() {
                    check_against_module(&kernel, shared_bytes);
                    let pieces = problem.shape.cells().div_ceil(kernel.piece_cells);
                    let bound = kernel.bindings.iter().filter(|b| matches!(b, Binding::New(..))).count();
                    assert!(
                        bound.is_multiple_of(pieces) && (pieces > 1 || dimensions == 1),
                        "{}",
                        entry.name
                    );
                }
            }
        }
    }
}

/// Checks windows of every kind, for devices of little and of much workgroup memory.
#[test]
fn every_kernel_of_windows_is_valid() {
    let mut turn = 0;
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for dtype in [DType::F32, DType::F64] {
                let extents = &[53, 71, 307][3 - dimensions..];
                let mut problem = problem(entry.program(dimensions).unwrap(), extents, dtype);
                for boundaries in boundaries() {
                    problem.set_boundaries(boundaries);
                    turn += 1;
                    let (shared_bytes, threads) = [(16 << 10, 256), (48 << 10, 1024)][turn % 2];
                    let device = DeviceSpec { threads_per_block: threads, ..device(shared_bytes) };
                    let plans = overlapped_plans(&problem, &device, &Options::default()).unwrap();
                    assert!(!plans.is_empty() || dimensions == 3, "{} {dtype}", entry.name);
                    // The model's choice, and another plan that no other case is likely to take.
                    for plan in plans.first().into_iter().chain(plans.get(turn * 37 % plans.len().max(1))) {
                        let made = kernels(&problem, plan);
                        if let Ok(made) = &made {
                            check_against_module(&made[0], shared_bytes);
                            assert!(problem.shape.cells() <= made[0].workgroups * 16384);
                        }
                        assert!(made.is_ok() || check(&problem).is_err());
                    }
                }
            }
        }
    }
}

/// Checks streaming plans of every kind, and their kernels for fewer steps.
#[test]
fn every_kernel_of_planes_is_valid() {
    let mut turn = 0;
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone().filter(|&dimensions| dimensions > 1) {
            for dtype in [DType::F32, DType::F64] {
                let extents = &[53, 71, 307][3 - dimensions..];
                let mut problem = problem(entry.program(dimensions).unwrap(), extents, dtype);
                for boundary in
                    ["fixed", "periodic", "constant=0.5", "z=periodic,y-=constant=0.1,x-=fixed,x+=constant=1"]
                {
                    problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
                    turn += 1;
                    let (shared_bytes, threads) = [(16 << 10, 256), (48 << 10, 1024)][turn % 2];
                    let device = DeviceSpec { threads_per_block: threads, ..device(shared_bytes) };
                    let plans = portable_streaming_plans(&problem, &device, &Options::default()).unwrap();
                    assert!(!plans.is_empty(), "{} {dtype}", entry.name);
                    // The model's choice, and another plan that no other case is likely to take.
                    for plan in [&plans[0], &plans[turn * 37 % plans.len()]] {
                        let Ok(made) = kernels(&problem, plan) else {
                            assert!(check(&problem).is_err());
                            continue;
                        };
                        check_against_module(&made[0], shared_bytes);
                        let shorter = shorter(&problem, plan).unwrap();
                        assert_eq!(shorter.is_some(), plan.depth > 1);
                        shorter.iter().for_each(|kernel| check_against_module(kernel, shared_bytes));
                    }
                }
            }
        }
    }
}

/// Checks a kernel of a plain problem, whose workgroup memory fits a device's.
fn check_against_module(kernel: &Kernel, shared_bytes: usize) {
    let name = |binding: &Binding| match *binding {
        Binding::Parameters | Binding::VaryingParameters => "parameters".to_owned(),
        Binding::Steps => "run".to_owned(),
        Binding::Old(field, piece) => pieces::old(field, piece),
        Binding::New(field, piece) => pieces::new(field, piece),
    };
    check_module(kernel, kernel.bindings.iter().map(name).collect());
    assert!(kernel.workgroup_bytes <= shared_bytes);
}

/// Checks that a kernel's module is valid, and that it has the bindings, of these names, the threads and the
/// workgroup memory that the kernel's description claims.
pub(super) fn check_module<B: Bound>(kernel: &Kernel<B>, names: Vec<String>) {
    let module = validate(&kernel.text);
    let entry = &module.entry_points[0];
    assert_eq!((entry.name.as_str(), entry.workgroup_size), (ENTRY, [kernel.threads as u32, 1, 1]));
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).unwrap();
    let mut bindings = 0;
    let mut workgroup_bytes = 0;
    for (_, global) in module.global_variables.iter() {
        if global.space == naga::AddressSpace::WorkGroup {
            workgroup_bytes += layouter[global.ty].size.next_multiple_of(16);
            continue;
        }
        // A table is each thread's own.
        if global.space == naga::AddressSpace::Private {
            continue;
        }
        let number = global.binding.unwrap().binding as usize;
        assert_eq!(global.name.as_ref(), Some(&names[number]));
        let access = match global.space {
            naga::AddressSpace::Uniform => Access::Uniform,
            naga::AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE) => {
                Access::Write
            }
            _ => Access::Read,
        };
        assert_eq!(access, kernel.bindings[number].access(), "{}", names[number]);
        bindings += 1;
    }
    assert_eq!(bindings, kernel.bindings.len());
    assert_eq!(workgroup_bytes as usize, kernel.workgroup_bytes);
    assert!(kernel.workgroups >= 1);
}

#[test]
fn literals_read_back_exactly() {
    let mut values = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        1.0 / 3.0,
        1e16,
        123_456_789.123,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1e-310,
    ];
    values.extend([f32::MAX, f32::MIN_POSITIVE, 1e-45, 1e-40, 0.1, 16_777_217.0].map(f64::from));
    let mut rng = fastrand::Rng::with_seed(4);
    values.extend((0..2000).map(|_| f64::from_bits(rng.u64(..))).filter(|value| value.is_finite()));
    values
        .extend((0..2000).map(|_| f64::from(f32::from_bits(rng.u32(..)))).filter(|value| value.is_finite()));
    for value in values {
        for dtype in [DType::F32, DType::F64] {
            let rounded = if dtype == DType::F32 { f64::from(value as f32) } else { value };
            if !rounded.is_finite() {
                continue;
            }
            for value in [rounded, -rounded] {
                let text = format!("const c: {dtype} = {};", language::literal(dtype, value));
                let module = parsed(&text);
                let (_, constant) = module.constants.iter().next().unwrap();
                let read = match module.global_expressions[constant.init] {
                    naga::Expression::Literal(naga::Literal::F32(x)) => f64::from(x),
                    naga::Expression::Literal(naga::Literal::F64(x)) => x,
                    ref other => panic!("{other:?}"),
                };
                assert_eq!(read.to_bits(), value.to_bits(), "{text}");
            }
        }
    }
}

/// A stencil of one field and one formula.
struct Formula1(Define);

type Define = fn(&Scope<'_>);

impl Stencil for Formula1 {
    fn name(&self) -> &str {
        "a \"name\" of words"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn define(&self, s: &Scope<'_>) {
        (self.0)(s);
    }
}

fn line(define: Define, dtype: DType) -> Problem {
    problem(Program::new(&Formula1(define)).unwrap(), &[100], dtype)
}

#[test]
fn every_operator_is_valid_text() {
    fn all<'g>(s: &Scope<'g>) {
        let (u, v) = (s.field("u").here(), s.field("u").along(0, 1));
        let terms: [Expr<'g>; 28] = [
            u + v,
            u - v,
            u * v,
            u / v,
            -u,
            u.abs(),
            u.sqrt(),
            u.floor(),
            u.exp(),
            u.log(),
            u.round_f32() + u.round_f16() + u.round_bf16() + u.widened(),
            u.sin(),
            u.cos(),
            u.tanh(),
            u.cbrt(),
            u.expm1(),
            u.log1p(),
            u.erf(),
            u.min(v),
            u.max(v),
            u.pow(v),
            u.atan2(v),
            u.mul_add(v, -3.0),
            u.lt(v).select(u, v) + u.le(v) + u.gt(v),
            u.ge(v) + u.eq(v) + u.ne(v),
            (u + v).select(s.coord(0), -0.5),
            s.constant(1000.0).exp() + s.constant(2.0).pow(0.5),
            s.constant(1.0) / 0.0 - s.constant(f64::NAN) - 1e-40,
        ];
        s.set("u", s.sum(0..terms.len(), |i| terms[i]));
    }
    let problems = [DType::F32, DType::F64].map(|dtype| line(all, dtype));
    let nodes = &problems[0].program.stages()[0].dag.nodes;
    for op in Unary::ALL {
        assert!(nodes.iter().any(|node| matches!(node, Node::Unary(own, _) if own == op)), "{op:?}");
    }
    for op in Binary::ALL {
        assert!(nodes.iter().any(|node| matches!(node, Node::Binary(own, ..) if own == op)), "{op:?}");
    }
    for shared_bytes in [16 << 10, 0] {
        for problem in &problems {
            kernels_on(problem, shared_bytes).iter().for_each(|kernel| drop(validate(&kernel.text)));
        }
    }
}

#[test]
fn functions_of_constants_are_values() {
    let constant: Define = |s| s.set("u", s.field("u").here() * s.constant(2.0).sin());
    for kernel in kernels_on(&line(constant, DType::F64), 16 << 10) {
        validate(&kernel.text);
        assert!(kernel.text.contains(&format!("{:?}lf", 2f64.sin())), "{}", kernel.text);
        assert!(!kernel.text.contains("formula_"), "{}", kernel.text);
    }
}

#[test]
fn a_domain_beyond_32_bit_indices_is_refused() {
    let problem = problem(catalogue::find("1d3pt").unwrap().program(1).unwrap(), &[1 << 31], DType::F32);
    let error = check(&problem).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("2147483648"), "{error}");
}

#[test]
fn far_taps_are_read_from_device_memory() {
    let far: Define = |s| s.set("u", s.field("u").along(0, 1000) + s.field("u").along(0, -1024));
    let kernels = kernels_on(&line(far, DType::F64), 16 << 10);
    assert!(kernels[0].text.contains("tap_0(s, y, x + 1000)") && kernels[0].workgroup_bytes == 0);
    validate(&kernels[0].text);
}

#[test]
fn the_counts_are_sound() {
    for dtype in [DType::F32, DType::F64] {
        let kernel = count(dtype, 1 << 20);
        validate(&kernel.text);
        assert_eq!((kernel.threads, kernel.workgroups), (256, 1 << 10));
        assert_eq!(count(dtype, 1).workgroups, 1);
        assert_eq!(count(dtype, 1 << 30).workgroups, 65535);
    }
}

#[test]
fn the_copy_is_sound() {
    let kernel = copy(1 << 28);
    validate(&kernel.text);
    assert_eq!((kernel.threads, kernel.workgroups), (256, 1 << 14));
}
