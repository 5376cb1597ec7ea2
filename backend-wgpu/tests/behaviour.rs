//! A session's behaviour beside stepping the catalogue: own formulas, tiles of any kind, windows, parameters,
//! refusals.

use crate::common;

use std::sync::Arc;

use abide_core::backend::{Backend, window_of};
use abide_core::plan::Schedule;
use abide_core::{
    Array, Boundary, CachePolicy, DType, Error, Execution, LinearStencil, Options, Parameter, Plan, Problem,
    Program, Scope, Session, Shape, Stencil, catalogue,
};
use abide_wgpu::{WgpuBackend, WgpuSession, adapters, device_descriptor, ulp_bound_per_step, wgpu};
use common::{backend, check, check_plan, distance, magnitude, problem, read_all, values};

type Define = fn(&Scope<'_>);

/// A name of the catalogue, extents, tiles.
type Tiled = (&'static str, &'static [usize], &'static [[usize; 3]]);

fn entry(name: &str, dimensions: usize) -> Program {
    catalogue::find(name).unwrap().program(dimensions).unwrap()
}

/// Returns a plan with other tiles.
fn tiled(
    backend: &WgpuBackend,
    problem: &Problem,
    tile: [usize; 3],
    threads: [usize; 3],
    staged: bool,
) -> Plan {
    let stepwise = Options { execution: Execution::Stepwise, ..Options::default() };
    let mut plan = backend.plan(problem, &stepwise).unwrap();
    if let Schedule::Stepwise(tiles) = &mut plan.schedule {
        (tiles.tile, tiles.threads) = (tile, threads);
        tiles.shared_bytes.fill(usize::from(staged));
    }
    plan
}

#[test]
fn any_tile_gives_the_same_bits() {
    let Some(backend) = backend() else { return };
    let cases: [Tiled; 3] = [
        ("1d3pt", &[1019], &[[1, 1, 64], [1, 1, 7]]),
        ("2d13pt", &[67, 129], &[[1, 16, 16], [1, 5, 64], [1, 64, 1]]),
        ("3d27pt", &[9, 14, 35], &[[2, 4, 8], [1, 1, 32], [3, 3, 3]]),
    ];
    let boundaries = || Boundary::each_plain(-2.5).into_iter();
    let cases = cases.into_iter().flat_map(|case| boundaries().map(move |kind| (case, kind.to_string())));
    for ((name, extents, tiles), boundary) in common::sampled(cases, 3) {
        let problem = problem(entry(name, extents.len()), extents, DType::F32, &boundary).unwrap();
        let fields = values(&problem, 9);
        let run = |plan: &Plan| {
            let mut session = backend.open(&problem, plan, fields.clone()).unwrap();
            session.advance(5).unwrap();
            read_all(session.as_mut(), &problem)
        };
        let expected = run(&backend.plan(&problem, &Options::default()).unwrap());
        for &tile in tiles {
            for staged in [true, false] {
                let threads = tile.map(|side| if side % 2 == 0 { side / 2 } else { side });
                let got = run(&tiled(&backend, &problem, tile, threads, staged));
                assert!(got[0].same_bits(&expected[0]), "{name} {boundary} {tile:?} {staged}");
            }
        }
    }
}

#[test]
fn more_workgroups_than_one_axis_of_a_grid_holds() {
    let Some(backend) = backend() else { return };
    let line = problem(entry("1d3pt", 1), &[300_007], DType::F32, "periodic").unwrap();
    let plan = tiled(&backend, &line, [1, 1, 4], [1, 1, 4], true);
    check_plan(&backend, &line, &plan, &values(&line, 1), 2);
}

#[test]
fn long_and_flat_domains() {
    let Some(backend) = backend() else { return };
    for (name, extents) in [
        ("1d3pt", vec![1_000_003]),
        ("2d5pt", vec![1, 200_003]),
        ("2d5pt", vec![200_003, 2]),
        ("3d7pt", vec![2, 1, 65_537]),
    ] {
        for boundary in ["periodic", "fixed"] {
            let problem = problem(entry(name, extents.len()), &extents, DType::F32, boundary).unwrap();
            check(&backend, &problem, &values(&problem, 2), 2);
        }
    }
}

#[test]
fn taps_beyond_any_tile_read_device_memory() {
    let Some(backend) = backend() else { return };
    let line = LinearStencil::new("line", &[([-1000], 0.25), ([0], 0.5), ([777], 0.25)]).unwrap();
    let cube =
        LinearStencil::new("cube", &[([-9, 9, 8], 0.25), ([0, 0, 0], 0.5), ([9, -9, 9], 0.25)]).unwrap();
    for dtype in [DType::F32, DType::F64] {
        for boundary in
            Boundary::each(0.5).into_iter().filter(|kind| kind.is_plain()).map(|kind| kind.to_string())
        {
            let line = problem(Program::new(&line).unwrap(), &[3001], dtype, &boundary).unwrap();
            check(&backend, &line, &values(&line, 3), 2);
            let cube = problem(Program::new(&cube).unwrap(), &[19, 23, 21], dtype, &boundary).unwrap();
            check(&backend, &cube, &values(&cube, 3), 2);
        }
    }
}

/// A formula of two fields along an axis, with a parameter.
struct Own(Define);

impl Stencil for Own {
    fn name(&self) -> &str {
        "own \"formula\""
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        vec!["u".to_owned(), "naïve field".to_owned()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("c", 0.25, "a factor")]
    }

    fn define(&self, s: &Scope<'_>) {
        (self.0)(s);
    }
}

fn own(define: Define, dtype: DType, boundary: &str) -> Problem {
    problem(Program::new(&Own(define)).unwrap(), &[23, 41], dtype, boundary).unwrap()
}

#[test]
fn own_formulas_of_every_exact_operator() {
    let Some(backend) = backend() else { return };
    let formulas: [Define; 6] = [
        |s| s.set("u", (s.field("u").along(0, 1) - s.field("naïve field").here()).abs().sqrt()),
        |s| s.set("naïve field", s.field("u").along(1, 2) / (1.0 + s.field("u").here().abs())),
        |s| {
            let (u, v) = (s.field("u"), s.field("naïve field"));
            s.set("u", u.here().min(v.along(0, -1)).max(s.param("c")));
            s.set("naïve field", u.along(0, 1).le(v.here()).select(v.here(), -u.here()));
        },
        |s| s.set("u", 1e-3 * s.coord(0) + s.param("c") * s.coord(1) - s.field("naïve field").here()),
        // Constants that WGSL has no literals for, and one that only f64 holds.
        |s| {
            s.set(
                "u",
                s.field("u").along(0, 1).min(s.constant(1.0) / 0.0).max(s.constant(-1.0) / 0.0) + 1e-300,
            )
        },
        |s| s.set("u", s.constant(0.0) / 0.0 * s.field("u").here()),
    ];
    for dtype in [DType::F32, DType::F64] {
        for define in formulas {
            for boundary in ["fixed", "mirror"] {
                let problem = own(define, dtype, boundary);
                check(&backend, &problem, &values(&problem, 5), 3);
            }
        }
    }
}

#[test]
fn functions_stay_within_their_stated_errors() {
    let Some(backend) = backend() else { return };
    let formulas: [(&str, Define); 18] = [
        ("exp", |s| s.set("u", s.field("u").here().exp() * 0.3)),
        ("log", |s| s.set("u", (s.field("u").here() + 1.5).log())),
        ("sin", |s| s.set("u", s.field("u").along(0, 1).sin())),
        ("cos", |s| s.set("u", s.field("u").along(0, 1).cos())),
        ("tanh", |s| s.set("u", s.field("u").along(0, 1).tanh())),
        ("cbrt", |s| s.set("u", (s.field("u").here() + 1.5).cbrt())),
        ("expm1", |s| s.set("u", s.field("u").along(0, 1).expm1() * 0.3)),
        ("log1p", |s| s.set("u", (s.field("u").here() + 0.5).log1p())),
        ("erf", |s| s.set("u", (2.0 * s.field("u").here()).erf())),
        ("atan2", |s| s.set("u", s.field("u").here().atan2(s.field("u").along(0, 1) + 1.5))),
        ("pow", |s| s.set("u", (s.field("u").here() + 1.5).pow(1.7) * 0.1)),
        ("constants", |s| s.set("u", s.field("u").here() * s.constant(2.0).log() + s.constant(-0.7).exp())),
        // A driver may fuse a product into an addition, of the reduction too: powers of two are exact.
        ("sin of turns", |s| s.set("u", (1024.0 * s.field("u").along(0, 1)).sin())),
        ("cos of turns", |s| s.set("u", (8192.0 * s.field("u").along(0, 1)).cos())),
        ("sin of many turns", |s| s.set("u", (1_048_576.0 * s.field("u").along(0, 1)).sin())),
        ("cos of constants", |s| s.set("u", s.field("u").here() * s.constant(12_000.125).cos())),
        ("sin of a parameter", |s| s.set("u", s.field("u").here() * (s.param("c") + 12_000.0).sin())),
        ("tanh of much", |s| s.set("u", (1e6 * s.field("u").here()).tanh())),
    ];
    for dtype in [DType::F32, DType::F64] {
        for (name, define) in formulas {
            let problem = own(define, dtype, "periodic");
            let [off, bound] = check(&backend, &problem, &values(&problem, 6), 2);
            println!("{name} {dtype}: off by {off:.1} a step, bound {bound:.1}");
        }
    }
}

#[test]
fn pow_takes_zeros_and_negative_bases() {
    let Some(backend) = backend() else { return };
    for dtype in [DType::F32, DType::F64] {
        pow_of_any_base(&backend, dtype);
    }
}

fn pow_of_any_base(backend: &WgpuBackend, dtype: DType) {
    let problem =
        own(|s| s.set("u", s.field("u").here().pow(s.field("naïve field").here())), dtype, "periodic");
    let cells = problem.shape.cells();
    let bases = [-2.0, -1.5, 0.0, 1.0, 3.0, 0.25];
    let exponents = [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 7.0];
    let fields = vec![
        Array::from_fn(dtype, cells, |i| bases[i % bases.len()]),
        Array::from_fn(dtype, cells, |i| exponents[i / bases.len() % exponents.len()]),
    ];
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
    session.advance(1).unwrap();
    let got = session.read(0).unwrap();
    let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for i in 0..cells {
        let (base, exponent) = (fields[0].get(i).unwrap(), fields[1].get(i).unwrap());
        let (got, expected) = (got.get(i).unwrap(), base.powf(exponent));
        let same = got == expected
            || (got.is_nan() && expected.is_nan())
            || (got - expected).abs() <= 4.0 * epsilon * expected.abs();
        assert!(same, "{base}^{exponent}: {got}, not {expected}");
    }
}

#[test]
fn not_a_number_is_carried_as_arithmetic_carries_it() {
    let Some(backend) = backend() else { return };
    for dtype in [DType::F32, DType::F64] {
        let problem = problem(entry("2d5pt", 2), &[33, 47], dtype, "fixed").unwrap();
        let mut fields = values(&problem, 7);
        let poison = |values: &mut Array, at: usize, value: f64| match values {
            Array::F32(v) => v[at] = value as f32,
            Array::F64(v) => v[at] = value,
        };
        poison(&mut fields[0], 20 * 47 + 20, f64::NAN);
        poison(&mut fields[0], 5 * 47 + 9, f64::INFINITY);
        check(&backend, &problem, &fields, 3);
    }
}

#[test]
fn many_steps_in_many_submissions() {
    let Some(backend) = backend() else { return };
    let problem = problem(entry("2d5pt", 2), &[19, 23], DType::F64, "periodic").unwrap();
    let mut expected = values(&problem, 8);
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let mut session = backend.open(&problem, &plan, expected.clone()).unwrap();
    assert_eq!(session.advance(0).unwrap(), 0.0);
    assert!(read_all(session.as_mut(), &problem)[0].same_bits(&expected[0]));
    let steps = 701;
    let scale = magnitude(&expected);
    assert!(session.advance(steps).unwrap() > 0.0);
    abide_cpu::reference::advance(&problem, &mut expected, steps).unwrap();
    // Positive weights that sum to 1 magnify nothing: the bound of many steps is the sum of the steps'
    // bounds.
    let off = distance(&read_all(session.as_mut(), &problem), &expected, scale);
    assert!(off <= steps as f64 * ulp_bound_per_step(&problem.program), "{off}");
}

#[test]
fn parameters_and_fields_can_change_between_steps() {
    let Some(backend) = backend() else { return };
    let mut problem = problem(entry("heat", 2), &[21, 34], DType::F32, "mirror").unwrap();
    let mut expected = values(&problem, 10);
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let mut session = backend.open(&problem, &plan, expected.clone()).unwrap();
    for (kappa, steps) in [(0.1, 3), (0.2, 1), (0.05, 2)] {
        session.set_parameter(0, kappa).unwrap();
        problem.parameters[0] = kappa;
        session.advance(steps).unwrap();
        abide_cpu::reference::advance(&problem, &mut expected, steps).unwrap();
        let off = distance(&read_all(session.as_mut(), &problem), &expected, 1.0);
        assert!(off <= 40.0, "{off}");
        expected = values(&problem, steps);
        session.write(0, &expected[0]).unwrap();
    }
    assert!(session.set_parameter(1, 0.0).is_err());
    assert!(session.read(1).is_err());
    assert!(session.write(0, &Array::F64(vec![0.0; 21 * 34])).is_err());
    assert!(session.write(0, &Array::F32(vec![0.0; 7])).is_err());
}

#[test]
fn windows_of_every_kind() {
    let Some(backend) = backend() else { return };
    for dtype in [DType::F32, DType::F64] {
        let problem = problem(entry("3d7pt", 3), &[7, 11, 13], dtype, "periodic").unwrap();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, values(&problem, 11)).unwrap();
        session.advance(1).unwrap();
        let whole = session.read(0).unwrap();
        for (low, high) in [
            ([0, 0, 0], [7, 11, 13]),
            ([2, 0, 0], [5, 11, 13]),
            ([3, 4, 0], [4, 9, 13]),
            ([1, 2, 3], [6, 10, 12]),
            ([6, 10, 12], [7, 11, 13]),
            ([0, 3, 5], [7, 4, 6]),
        ] {
            let window = session.read_window(0, low, high).unwrap();
            assert!(
                window.same_bits(&window_of(problem.shape.padded(), &whole, low, high).unwrap()),
                "{low:?} {high:?}"
            );
        }
        for (low, high) in [([0, 0, 0], [7, 11, 14]), ([3, 3, 3], [3, 4, 4]), ([5, 0, 0], [4, 1, 1])] {
            assert!(matches!(session.read_window(0, low, high), Err(Error::Limit { .. })));
        }
    }
}

#[test]
fn a_field_larger_than_a_transfer() {
    let Some(backend) = backend() else { return };
    let problem = problem(entry("2d5pt", 2), &[3001, 3001], DType::F64, "fixed").unwrap();
    if problem.shape.bytes(DType::F64) as u64 > backend.device().buffer_bytes {
        return;
    }
    let fields = values(&problem, 12);
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
    assert!(session.read(0).unwrap().same_bits(&fields[0]));
    let window = session.read_window(0, [0, 2990, 17], [1, 3001, 3000]).unwrap();
    assert!(
        window.same_bits(
            &window_of(problem.shape.padded(), &fields[0], [0, 2990, 17], [1, 3001, 3000]).unwrap()
        )
    );
}

#[test]
fn sessions_of_one_backend_run_side_by_side() {
    let Some(backend) = backend() else { return };
    let backend = Arc::new(backend);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let backend = backend.clone();
            scope.spawn(move || {
                let problem =
                    problem(entry("gray-scott", 2), &[31, 43 + seed], DType::F32, "periodic").unwrap();
                check(&backend, &problem, &values(&problem, seed as u64), 6);
            });
        }
    });
}

/// A caller that awaits gets what a caller that blocks gets, on whatever thread, and can go on from either.
#[test]
fn what_can_be_awaited_is_what_blocks() {
    let Some(backend) = backend() else { return };
    let problem = problem(entry("gray-scott", 2), &[37, 53], DType::F32, "periodic").unwrap();
    let plan =
        backend.plan(&problem, &Options { execution: Execution::Streaming, ..Options::default() }).unwrap();
    let start = values(&problem, 4);
    let mut waiting = backend.open(&problem, &plan, start.clone()).unwrap();
    let steps = 2 * u64::from(plan.depth) + 3;
    waiting.advance(steps).unwrap();
    waiting.set_parameter(2, 0.04).unwrap();
    waiting.advance(steps).unwrap();

    let (low, high) = ([0, 5, 7], [1, 20, 11]);
    let awaited = async {
        let backend = WgpuBackend::new_async().await?;
        assert_eq!(abide_wgpu::adapters_async().await, adapters());
        let mut session = backend.open_async(&problem, &plan, values(&problem, 5)).await?;
        for (field, values) in start.iter().enumerate() {
            session.write_async(field, values).await?;
        }
        session.advance_async(steps).await?;
        session.set_parameter_async(2, 0.04).await?;
        assert_eq!(session.advance_async(0).await?, 0.0);
        assert!(session.advance_async(steps).await? > 0.0);
        let window = session.read_window_async(1, low, high).await?;
        Ok::<_, Error>((session.read_async(0).await?, window, session))
    };
    // A future may move to another thread.
    let finished = std::thread::scope(|scope| scope.spawn(|| pollster::block_on(awaited)).join().unwrap());
    let (field, window, mut session) = finished.unwrap();
    assert!(field.same_bits(&waiting.read(0).unwrap()));
    assert!(
        window.same_bits(&window_of(problem.shape.padded(), &waiting.read(1).unwrap(), low, high).unwrap())
    );
    session.advance(3).unwrap();
    waiting.advance(3).unwrap();
    assert!(session.read(1).unwrap().same_bits(&waiting.read(1).unwrap()));
    assert!(matches!(pollster::block_on(session.read_async(2)), Err(Error::Limit { .. })));
}

/// On somebody else's device the same steps have the same bits, and lie in a buffer that its owner can read.
#[test]
fn a_device_can_be_shared() {
    let Some(own) = backend() else { return };
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let all = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let adapter = all.iter().find(|adapter| {
        let info = adapter.get_info();
        (info.name.trim(), info.backend.to_str())
            == (own.adapter().name.as_str(), own.adapter().interface.as_str())
    });
    let adapter = adapter.unwrap();
    let (device, queue) = pollster::block_on(adapter.request_device(&device_descriptor(adapter))).unwrap();
    let sharing = WgpuBackend::sharing(adapter, &device, &queue).unwrap();
    assert_eq!(sharing.adapter(), own.adapter());
    let problem = problem(entry("2d9pt", 2), &[61, 47], DType::F32, "mirror").unwrap();
    let fields = values(&problem, 4);
    let mut sessions = [&own, &sharing].map(|backend| {
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        backend.open(&problem, &plan, fields.clone()).unwrap()
    });
    let [expected, got] = sessions.each_mut().map(|session| {
        session.advance(23).unwrap();
        session.read(0).unwrap()
    });
    assert!(got.same_bits(&expected));

    let buffer = sessions[1].device_buffer(0).unwrap().downcast::<wgpu::Buffer>().unwrap();
    assert!(sessions[1].device_buffer(1).is_none());
    let bytes = 4 * 61 * 47;
    let copy = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(&buffer, 0, &copy, 0, bytes);
    queue.submit([encoder.finish()]);
    copy.slice(..).map_async(wgpu::MapMode::Read, |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    assert_eq!(&*copy.slice(..).get_mapped_range().unwrap(), expected.as_bytes());
}

/// Tries every other adapter there is, such as OpenGL beside Vulkan: f32, and f64 where the adapter has it.
#[test]
fn every_adapter() {
    if backend().is_none() {
        return;
    }
    for (number, adapter) in adapters().iter().enumerate() {
        println!("{adapter:?}");
        let backend = WgpuBackend::on(&number.to_string()).unwrap();
        assert_eq!(backend.adapter(), adapter);
        for (name, extents) in [
            ("1d3pt", vec![2053]),
            ("2d9pt", vec![37, 131]),
            ("3d13pt", vec![11, 13, 37]),
            ("fdtd-tm", vec![37, 41]),
            ("gray-scott", vec![29, 31]),
        ] {
            for dtype in [DType::F32, DType::F64] {
                let problem = problem(
                    entry(name, extents.len()),
                    &extents,
                    dtype,
                    "z=mirror,y-=fixed,y+=constant=0.25,x=periodic",
                )
                .unwrap();
                if dtype == DType::F64 && !adapter.f64 {
                    let error = backend.plan(&problem, &Options::default()).unwrap_err();
                    assert!(
                        matches!(error, Error::Unsupported { .. })
                            && error.to_string().contains("--dtype f32"),
                        "{error}"
                    );
                    continue;
                }
                check(&backend, &problem, &values(&problem, 13), 3);
            }
        }
    }
    assert!(matches!(WgpuBackend::on("no such device"), Err(Error::Unknown { .. })));
}

#[test]
fn what_the_device_cannot_do_is_refused_in_words() {
    let Some(backend) = backend() else { return };
    let refusal = |problem: &Problem, options: &Options| backend.plan(problem, options).unwrap_err();
    let small = problem(entry("2d5pt", 2), &[64, 64], DType::F32, "fixed").unwrap();
    let persistent = Options { execution: Execution::Persistent, ..Options::default() };
    assert!(matches!(refusal(&small, &persistent), Error::Unsupported { .. }));
    let shared = Options { cache: CachePolicy::Shared, ..Options::default() };
    assert!(!backend.plan(&small, &shared).unwrap().notes.is_empty());
    assert!(backend.plan(&small, &Options::default()).unwrap().notes.is_empty());

    let cells = backend.device().buffer_bytes as usize / 4 + 1;
    if cells < 1 << 31 {
        let large =
            Problem::new(Arc::new(entry("1d3pt", 1)), Shape::new(&[cells]).unwrap(), DType::F32).unwrap();
        let plan = backend.plan(&large, &Options::default()).unwrap();
        assert!(plan.notes.iter().any(|note| note.contains("split over 2 buffers")), "{:?}", plan.notes);
    }

    // More buffers than a kernel can bind.
    struct Many;
    impl Stencil for Many {
        fn name(&self) -> &str {
            "many"
        }
        fn dimensions(&self) -> usize {
            1
        }
        fn fields(&self) -> Vec<String> {
            (0..60).map(|i| format!("f{i}")).collect()
        }
        fn define(&self, s: &Scope<'_>) {
            for field in self.fields() {
                s.set(&field, 0.5 * s.field(&field).along(0, 1));
            }
        }
    }
    let many = problem(Program::new(&Many).unwrap(), &[100], DType::F32, "fixed").unwrap();
    if backend.adapter().buffers < 120 {
        let error = refusal(&many, &Options::default());
        assert!(
            matches!(error, Error::Limit { .. }) && error.to_string().contains("buffers that many reads"),
            "{error}"
        );
    } else {
        check(&backend, &many, &values(&many, 1), 2);
    }

    // A plan that is not this device's, and one for another problem.
    let wide = tiled(&backend, &small, [1, 1, 4096], [1, 1, 4096], true);
    assert!(matches!(backend.open(&small, &wide, values(&small, 1)), Err(Error::Limit { .. })));
    let deep = tiled(&backend, &small, [1, 256, 256], [1, 8, 8], true);
    assert!(matches!(backend.open(&small, &deep, values(&small, 1)), Err(Error::Limit { .. })));
    let other = problem(entry("2d5pt", 2), &[64, 63], DType::F32, "fixed").unwrap();
    let plan = backend.plan(&small, &Options::default()).unwrap();
    assert!(backend.open(&other, &plan, values(&other, 1)).is_err());
    assert!(backend.open(&small, &plan, Vec::new()).is_err());
}

/// What a session's methods await can be handed to another thread.
#[test]
fn futures_can_be_sent() {
    fn sent<T: Send>(_: T) {}
    fn all(session: &mut WgpuSession, values: &Array) {
        sent(session.advance_async(1));
        sent(session.read_async(0));
        sent(session.read_window_async(0, [0; 3], [1; 3]));
        sent(session.write_async(0, values));
        sent(session.scalars_async());
        sent(session.set_parameter_async(0, 0.0));
    }
    let _: fn(&mut WgpuSession, &Array) = all;
}
