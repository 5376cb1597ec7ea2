//! CloverLeaf against the Fortran reference (UK-MAC/CloverLeaf_Serial): every bit of every field.

#[path = "../../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;

use std::sync::Arc;

use abide::catalogue::cloverleaf;
use abide::{Array, Backend, DType, Options, Problem, Program, Result, Shape};
use abide_cpu::CpuBackend;
use deck::Deck;

/// Returns a deck's problem and its initial fields.
fn begin(deck: &Deck, program: Program) -> Result<(Problem, Vec<Array>)> {
    let mut problem = Problem::unchecked(Arc::new(program), Shape::new(&deck.cells)?, DType::F64);
    let program = problem.program.clone();
    let widths = deck.widths();
    for (name, value) in ["dx", "dy", "dz"].into_iter().zip(widths.iter().rev()) {
        problem.parameters[program.parameter(name)?] = *value;
    }
    problem.parameters[program.parameter("dtrise")?] = deck.timestep_rise;
    problem.parameters[program.parameter("dtmax")?] = deck.max_timestep;
    problem.scalars[program.scalar("dt")?] = deck.initial_timestep;
    problem.check()?;
    let mut fields = Vec::new();
    for number in 0..program.fields().len() {
        fields.push(Array::zeros(DType::F64, problem.values_of(number))?);
    }
    for (name, values) in deck.generate() {
        fields[program.field(name)?] = values;
    }
    Ok((problem, fields))
}

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
    let (problem, mut fields) = begin(&deck, cloverleaf().unwrap()).unwrap();
    let program = problem.program.clone();
    let mut found = std::collections::HashMap::new();
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

/// The same on all threads, as any program runs on the CPU.
#[test]
fn launches_on_the_cpu_have_the_bits_of_the_reference() {
    let trace = include_str!("trace13x7/phases.csv");
    let deck = Deck::parse(include_str!("trace13x7/clover.in")).unwrap();
    for threads in [1, 2, 5] {
        let (problem, fields) = begin(&deck, cloverleaf().unwrap()).unwrap();
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
        assert_eq!(time, 4.600_000_000_000_000_8e-1);
    }
}
