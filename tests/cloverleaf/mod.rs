//! CloverLeaf against the Fortran references (UK-MAC/CloverLeaf_Serial and UK-MAC/CloverLeaf3D_ref): every bit
//! of every field.

mod clover;

use std::collections::HashMap;
use std::sync::Arc;

use crate::deck::{self, Deck};
use abide::backend::Choice;
use abide::{Array, Backend, DType, Options, Problem, Shape, Simulation};
use abide_cpu::CpuBackend;
use abide_wgpu::WgpuBackend;
use clover::clover;

/// Returns the hash FNV-1a of the bits of a field.
fn hash(values: &Array) -> String {
    let bytes = values.to_f64().into_iter().flat_map(f64::to_le_bytes);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The last stage of each phase of the trace.
const PHASES: [(&str, &str); 7] = [
    ("timestep", "dt"),
    ("pdv_predict", "revert"),
    ("accelerate", "accelerate"),
    ("pdv_correct", "PdV correct"),
    ("flux_calc", "flux calc y"),
    ("advection", "velocity update"),
    ("reset", "reset nodes"),
];

/// All fields after each of seven phases of six steps, of a domain of 13×7 cells with flows in all directions.
#[test]
fn each_phase_has_the_bits_of_the_reference() {
    let trace = include_str!("trace13x7/phases.csv");
    let deck = Deck::parse(include_str!("trace13x7/clover.in")).unwrap();
    let (problem, mut fields) = clover(&deck).unwrap();
    let program = problem.program.clone();
    let mut found = HashMap::new();
    let steps = deck.end_step;
    let (mut step, mut last) = (1, 0);
    abide_cpu::reference::run_program(&problem, &mut fields, steps, |number, fields, _| {
        let stages = program.stages().len() / 2;
        if number % stages < last {
            step += 1;
        }
        last = number % stages;
        // The last of several stages of one name counts.
        for (phase, _) in PHASES.iter().filter(|(_, stage)| *stage == program.stages()[number].name) {
            for (name, values) in program.fields().iter().zip(fields) {
                found.insert(format!("{step},{phase},{name}"), hash(values));
            }
        }
    })
    .unwrap();
    let mut compared = 0;
    for line in trace.lines().skip(1).filter(|line| !line.starts_with("0,")) {
        let (key, expected) = line.rsplit_once(',').unwrap();
        assert_eq!(found[key], expected, "{key}");
        compared += 1;
    }
    assert_eq!(compared, 6 * 7 * 15);
}

/// Runs a deck by the oracle, and returns the fields by name.
fn run(deck: &Deck, steps: u64) -> HashMap<String, Array> {
    let (problem, mut fields) = clover(deck).unwrap();
    abide_cpu::reference::run_program(&problem, &mut fields, steps, |_, _, _| ()).unwrap();
    problem.program.fields().iter().cloned().zip(fields).collect()
}

/// Returns the pressure of the final gas, which the reference computes anew for each summary.
fn pressure(fields: &HashMap<String, Array>) -> Vec<f64> {
    let gas = fields["density0"].to_f64().into_iter().zip(fields["energy0"].to_f64());
    gas.map(|(density, energy)| (1.4 - 1.0) * density * energy).collect()
}

/// Returns the reference's summary: volume, mass, pressure, internal and kinetic energy, added in its order.
fn summary(deck: &Deck, fields: &HashMap<String, Array>) -> [f64; 5] {
    let axes = deck.cells.len();
    let (density, energy, pressure) =
        (fields["density0"].to_f64(), fields["energy0"].to_f64(), pressure(fields));
    let velocities: Vec<Vec<f64>> =
        ["xvel0", "yvel0", "zvel0"][..axes].iter().map(|name| fields[*name].to_f64()).collect();
    let volume = deck.widths().iter().rev().product::<f64>();
    let mut sums = [0.0; 5];
    for cell in 0..density.len() {
        let mut rest = cell;
        let mut at = vec![0; axes];
        for axis in (0..axes).rev() {
            at[axis] = rest % deck.cells[axis];
            rest /= deck.cells[axis];
        }
        let mut squared = 0.0;
        for corner in 0..1_usize << axes {
            let node = (0..axes).fold(0, |node, axis| {
                node * (deck.cells[axis] + 1) + at[axis] + (corner >> (axes - 1 - axis) & 1)
            });
            let square = velocities.iter().map(|v| v[node] * v[node]).reduce(|sum, next| sum + next).unwrap();
            squared += square / f64::from(1 << axes);
        }
        let mass = volume * density[cell];
        let own = [volume, mass, volume * pressure[cell], mass * energy[cell], mass * 0.5 * squared];
        for (sum, value) in sums.iter_mut().zip(own) {
            *sum += value;
        }
    }
    sums
}

fn check_summary(deck: &Deck, fields: &HashMap<String, Array>, expected: [f64; 5]) {
    for (own, expected) in summary(deck, fields).into_iter().zip(expected) {
        assert!((own - expected).abs() <= 1e-12 * expected, "{own} {expected}");
    }
}

fn check_fields(fields: &HashMap<String, Array>, hashes: &str) {
    assert!(hashes.lines().count() > 7);
    for line in hashes.lines().skip(1) {
        let (name, expected) = line.split_once(',').unwrap();
        assert_eq!(hash(&fields[name]), expected, "{name}");
    }
}

/// The built-in test; its kinetic energy is as published.
#[test]
fn the_built_in_test_has_the_published_energy() {
    let deck = Deck::parse(deck::BUILT_IN).unwrap();
    let fields = run(&deck, 75);
    let kinetic = summary(&deck, &fields)[4];
    assert!((kinetic - 1.82280367310258).abs() < 1e-12, "{kinetic}");
}

/// Flow along x alone, which reaches the lines where the sides of x and z meet.
#[test]
#[ignore = "a quarter of a minute: flows in all directions ask the same"]
fn the_built_in_test_of_three_dimensions_has_the_bits_of_the_reference() {
    let deck = Deck::parse(include_str!("builtin10x2x2/clover.in")).unwrap();
    let fields = run(&deck, deck.end_step);
    check_fields(&fields, include_str!("builtin10x2x2/fields.csv"));
    let kinetic = summary(&deck, &fields)[4];
    assert!((kinetic - 3.64560737191257).abs() < 1e-12, "{kinetic}");
    let pressure = 40.0 * 5.012_394_215_361_916e-1;
    let expected = [40.0, 2.3999999974422824e1, pressure, 5.012_394_215_361_918e1, 3.645_607_371_912_569];
    check_summary(&deck, &fields, expected);
}

/// Flow along all axes.
#[test]
#[ignore = "half a minute: the smaller domains ask the same"]
fn a_cuboid_has_the_bits_of_the_reference() {
    let deck = Deck::parse(include_str!("cuboid20x16x12/clover.in")).unwrap();
    let mut fields = run(&deck, deck.end_step);
    // A summary follows each step.
    fields.insert("pressure".to_owned(), Array::F64(pressure(&fields)));
    check_fields(&fields, include_str!("cuboid20x16x12/fields.csv"));
    let volume = 9.999_999_999_999_44e2;
    let pressure = volume * 1.0601620773517134e-1;
    let expected = [volume, 2.250_159_998_546_505e2, pressure, 2.6504051933793187e2, 6.166_470_815_770_972];
    check_summary(&deck, &fields, expected);
}

/// Flows in all directions, which meet all lines where the sides of z and of x or y meet, on unequal widths
/// and with time steps that the gas decides.
#[test]
fn flows_in_all_directions_have_the_bits_of_the_reference() {
    let deck = Deck::parse(include_str!("flows7x6x5/clover.in")).unwrap();
    let fields = run(&deck, deck.end_step);
    check_fields(&fields, include_str!("flows7x6x5/fields.csv"));
    let expected =
        [25.20000000000003, 10.850915780702755, 7.847079098530659, 19.617697746326655, 0.9375442784322471];
    check_summary(&deck, &fields, expected);
}

/// The same on all threads, as any program runs on the CPU.
#[test]
fn launches_on_the_cpu_have_the_bits_of_the_reference() {
    let trace = include_str!("trace13x7/phases.csv");
    let deck = Deck::parse(include_str!("trace13x7/clover.in")).unwrap();
    for threads in [1, 2, 5] {
        let (problem, fields) = clover(&deck).unwrap();
        let backend = CpuBackend::with_threads(threads).unwrap();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields).unwrap();
        for steps in [1, 3, 2] {
            session.advance(steps).unwrap();
        }
        for (number, name) in problem.program.fields().iter().enumerate() {
            let key = format!("6,reset,{name},");
            let expected = trace.lines().find_map(|line| line.strip_prefix(&key)).unwrap();
            assert_eq!(hash(&session.read(number).unwrap()), expected, "{name} on {threads} threads");
        }
        let time = session.scalars().unwrap()[problem.program.scalar("time").unwrap()];
        assert_eq!(time, 4.600_000_000_000_001e-1);
    }
}

/// The same in three dimensions, with values that depend on where the domain ends.
#[test]
fn launches_on_the_cpu_have_the_bits_of_the_reference_in_three_dimensions() {
    let deck = Deck::parse(include_str!("flows7x6x5/clover.in")).unwrap();
    let (problem, fields) = clover(&deck).unwrap();
    let backend = CpuBackend::with_threads(3).unwrap();
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let mut session = backend.open(&problem, &plan, fields).unwrap();
    session.advance(deck.end_step).unwrap();
    for line in include_str!("flows7x6x5/fields.csv").lines().skip(1) {
        let (name, expected) = line.split_once(',').unwrap();
        let values = session.read(problem.program.field(name).unwrap()).unwrap();
        assert_eq!(hash(&values), expected, "{name}");
    }
}

/// What a driver of wgpu makes of the operations is its own matter, but the energies are those published: in
/// f64 to 1e-12, in f32 to 5e-6 of each, five times what is observed.
#[test]
fn launches_on_wgpu_have_the_published_energies() {
    let backend = match WgpuBackend::new() {
        Ok(backend) => backend,
        Err(reason) => {
            println!("skipped: wgpu: {reason}");
            let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
            return assert!(!required.contains("wgpu"), "ABIDE_REQUIRE={required}, but {reason}");
        }
    };
    let decks = [
        (deck::BUILT_IN, 75, 1.822_803_673_102_58),
        (include_str!("builtin10x2x2/clover.in"), 75, 3.645_607_371_912_57),
        (include_str!("cuboid20x16x12/clover.in"), 20, 6.166_470_815_770_972),
    ];
    let count = if crate::has_all_cases("wgpu") { decks.len() } else { 1 };
    for (text, steps, kinetic) in decks.into_iter().take(count) {
        let deck = Deck::parse(text).unwrap();
        let (problem, start) = clover(&deck).unwrap();
        for (dtype, within) in [(DType::F64, 1e-12), (DType::F32, 5e-6)] {
            if dtype == DType::F64 && !backend.adapter().f64 {
                println!("skipped: {} has no f64", backend.adapter().name);
                continue;
            }
            let problem = Problem { dtype, ..problem.clone() };
            let fields = start.iter().map(|field| field.cast(dtype).unwrap()).collect();
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, fields).unwrap();
            session.advance(1).unwrap();
            session.advance(steps - 1).unwrap();
            let names = problem.program.fields().iter().cloned().enumerate();
            let fields = names.map(|(number, name)| (name, session.read(number).unwrap())).collect();
            let found = summary(&deck, &fields)[4];
            println!("{} {dtype}: {:e}", problem.shape, (found - kinetic) / kinetic);
            assert!((found - kinetic).abs() <= within * kinetic, "{} {dtype}: {found}", problem.shape);
        }
    }
}

/// The catalogue's own start is a gas that flows out of its corner, with all of its mass.
#[test]
fn the_start_of_the_catalogue_flows() {
    for (name, extents) in [("cloverleaf", &[15, 20][..]), ("cloverleaf-3d", &[10, 10, 12])] {
        let program = abide::catalogue::find(name).unwrap().program(extents.len()).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap();
        let program = &problem.program;
        let fields: Vec<Array> = (0..program.fields().len())
            .map(|field| {
                let shape = problem.shape_of(field).unwrap();
                program.start(field).fill(&shape, DType::F64).unwrap()
            })
            .collect();
        let density = program.field("density0").unwrap();
        let before = fields[density].to_f64();
        let backend = CpuBackend::new();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields).unwrap();
        session.advance(10).unwrap();
        let after = session.read(density).unwrap().to_f64();
        assert!(after.iter().all(|&d| (0.05..1.05).contains(&d)), "{name}: {after:?}");
        assert!(before.iter().zip(&after).any(|(a, b)| (a - b).abs() > 0.1), "{name}");
        let [old, new]: [f64; 2] = [before.iter().sum(), after.iter().sum()];
        assert!((old - new).abs() < 0.01 * old, "{name}: {old} {new}");
    }
}

/// A run from a checkpoint goes on with the step of the cycle that is next, and with all scalars.
#[test]
fn a_checkpoint_splits_a_run_without_a_trace() {
    let deck = Deck::parse(include_str!("trace13x7/clover.in")).unwrap();
    let (problem, fields) = clover(&deck).unwrap();
    let begin = || {
        let mut run = Simulation::builder(problem.program.clone())
            .size(problem.shape.extents())
            .dtype(DType::F64)
            .backend(Choice::CPU)
            .scalar("dt", deck.initial_timestep);
        for (parameter, &value) in problem.program.parameters().iter().zip(&problem.parameters) {
            run = run.param(&parameter.name, value);
        }
        for (name, values) in problem.program.fields().iter().zip(&fields) {
            run = run.input(name, values.clone());
        }
        run.build().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("after-37.npz");
    let mut whole = begin();
    whole.advance(100).unwrap();
    let mut first = begin();
    first.advance(37).unwrap();
    first.checkpoint(&place).unwrap();
    let mut second =
        Simulation::builder(problem.program.clone()).resume(&place).backend(Choice::CPU).build().unwrap();
    assert_eq!(second.step(), 37);
    second.advance(63).unwrap();
    for name in problem.program.fields() {
        assert!(second.field(name).unwrap().same_bits(&whole.field(name).unwrap()), "{name}");
    }
    let bits = |run: &mut Simulation| -> Vec<(String, u64)> {
        run.scalars().unwrap().into_iter().map(|(name, value)| (name, value.to_bits())).collect()
    };
    assert_eq!(bits(&mut second), bits(&mut whole));
}

/// The deck `clover_bm_short` has the published kinetic energy after 87 steps, and so has that of 3840×3840
/// cells.
#[test]
#[ignore = "takes minutes: cargo xtask test --full"]
fn the_benchmarks_have_the_published_energies() {
    for (cells, expected) in [(960, 1.193_168_987_563_07), (3840, 0.307_475_452_287_895)] {
        let deck = format!(
            "*clover\nstate 1 density=0.2 energy=1.0\n\
             state 2 density=1.0 energy=2.5 geometry=rectangle xmin=0.0 xmax=5.0 ymin=0.0 ymax=2.0\n\
             x_cells={cells}\ny_cells={cells}\nxmin=0.0\nymin=0.0\nxmax=10.0\nymax=10.0\n\
             initial_timestep=0.04\ntimestep_rise=1.5\nmax_timestep=0.04\nend_time=15.5\nend_step=87\n*endclover\n"
        );
        let deck = Deck::parse(&deck).unwrap();
        let (problem, fields) = clover(&deck).unwrap();
        let backend = CpuBackend::new();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields).unwrap();
        session.advance(deck.end_step).unwrap();
        let names = problem.program.fields().iter().enumerate();
        let fields = names.map(|(field, name)| (name.clone(), session.read(field).unwrap())).collect();
        let kinetic = summary(&deck, &fields)[4];
        assert!((kinetic - expected).abs() <= 1e-12 * expected, "{cells}: {kinetic}");
    }
}
