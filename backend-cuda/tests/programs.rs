//! Programs that are not plain, on the device against the CPU's reference, bit for bit.

use crate::{clover, common, deck, parallel};

use abide_core::backend::{window_of, write_rows};
use abide_core::plan::{Execution, Fuse, Schedule};
use abide_core::program::{Marks, Probe, Record, Until};
use abide_core::{Array, Backend, DType, Error, Options, Plan, Problem, Result, Session, Shape, catalogue};
use abide_cuda::CudaBackend;
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::{partition, passes};
use abide_random::swept;

use clover::clover;
use common::{AROUND_CALLS, present};
use deck::Deck;

/// Steps that have a recording of the steps that repeat, whole rounds that do not fill one, and more.
const MANY: u64 = 150;

/// A session on the device, and what the reference says of it.
struct Pair {
    name: String,
    session: Box<dyn Session>,
    problem: Problem,
    fields: Vec<Array>,
}

impl Pair {
    fn open(
        backend: &CudaBackend,
        name: &str,
        problem: Problem,
        fields: Vec<Array>,
        options: &Options,
    ) -> Result<Pair> {
        let plan = backend.plan(&problem, options)?;
        Pair::open_plan(backend, name, problem, fields, &plan)
    }

    fn open_plan(
        backend: &CudaBackend,
        name: &str,
        problem: Problem,
        fields: Vec<Array>,
        plan: &Plan,
    ) -> Result<Pair> {
        let session = backend.open(&problem, plan, fields.clone())?;
        Ok(Pair { name: name.to_owned(), session, problem, fields })
    }

    fn advance(&mut self, steps: u64) -> Result<()> {
        self.session.advance(steps)?;
        let none = |_: usize, _: &[Array], _: &[f64]| {};
        self.problem.scalars =
            abide_cpu::reference::run_program(&self.problem, &mut self.fields, steps, none)?;
        self.problem.first_step += steps;
        self.compare()
    }

    fn compare(&mut self) -> Result<()> {
        let at = self.problem.first_step;
        for (number, expected) in self.fields.iter().enumerate() {
            let field = &self.problem.program.fields()[number];
            let found = self.session.read(number)?;
            assert!(found.same_bits(expected), "{}: field {field} after {at} steps", self.name);
        }
        let scalars = self.session.scalars()?;
        let pairs = scalars.iter().zip(&self.problem.scalars);
        let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        let alike = scalars.len() == self.problem.scalars.len() && pairs.clone().all(is_same);
        assert!(alike, "{}: {scalars:?}, not {:?} after {at} steps", self.name, self.problem.scalars);
        Ok(())
    }

    /// Replaces a field by other values, and finds all others as they were.
    fn write(&mut self, field: usize) -> Result<()> {
        let old = &self.fields[field];
        let len = old.len();
        let new =
            Array::from_fn(self.problem.dtype, len, |i| 0.5 * old.get((i + 1) % len).unwrap_or(0.0) + 0.125);
        self.session.write(field, &new)?;
        self.fields[field] = new;
        self.compare()
    }
}

/// Replaces a window of a field, and finds all else as it was.
fn write_window(pair: &mut Pair, field: usize) -> Result<()> {
    let high = pair.problem.extents_of(field);
    let low = high.map(|extent| extent / 3);
    let count = (0..3).map(|axis| high[axis] - low[axis]).product();
    let values = Array::from_fn(pair.problem.dtype, count, |i| (i % 13) as f64 / 16.0);
    match (&mut pair.fields[field], &values) {
        (Array::F32(to), Array::F32(from)) => write_rows(high, to, low, high, from),
        (Array::F64(to), Array::F64(from)) => write_rows(high, to, low, high, from),
        _ => unreachable!("both are of the run's type"),
    }
    pair.session.write_window(field, low, high, &values)?;
    assert!(pair.session.write_window(field, low, high.map(|extent| extent + 1), &values).is_err());
    let found = pair.session.non_finite(field)?;
    assert_eq!(found, pair.fields[field].non_finite() as u64, "{}: field {field}", pair.name);
    pair.compare()
}

/// Runs a case with its stages in random groups, whose blocks have these threads.
fn follow_groups(backend: &CudaBackend, case: Case, seed: u64, threads: usize) -> Result<usize> {
    let values = backend.device().shared_bytes_per_block / case.problem.dtype.bytes();
    let partition = partition(&case.problem, seed, threads, values, true)?;
    let groups = partition.all().filter(|group| group.fused.is_some()).count();
    let mut plan = backend.plan(&case.problem, &Options::default())?;
    if let Schedule::Stepwise(stepwise) = &mut plan.schedule {
        stepwise.partition = partition;
    }
    let mut pair = Pair::open_plan(backend, &case.name, case.problem, case.start, &plan)?;
    pair.advance(1)?;
    pair.advance(case.steps)?;
    let fields = pair.fields.len();
    pair.write(fields - 1)?;
    pair.advance(MANY / 3)?;
    Ok(groups)
}

/// Stages in groups have the bits of the stages one by one, whatever the groups, tiles and threads.
#[test]
fn groups_have_the_references_bits() -> Result<()> {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return Ok(()) };
    let decks = [
        include_str!("../../tests/cloverleaf/trace13x7/clover.in"),
        include_str!("../../tests/cloverleaf/flows7x6x5/clover.in"),
    ];
    let mut all: Vec<Case> = Vec::new();
    for deck in decks {
        let (problem, start) = clover(&Deck::parse(deck)?)?;
        all.push(Case { name: format!("cloverleaf {}", problem.shape), problem, start, steps: 4 });
    }
    all.extend(cases()?);
    all.extend(random(300..380));
    let mut groups = 0;
    for (case, seed) in all.into_iter().zip(0..) {
        groups += follow_groups(&backend, case, seed, [64, 128, 256][seed as usize % 3])?;
    }
    assert!(groups > 100, "{groups} groups");
    Ok(())
}

/// Stages that repeat one formula have the bits of the stages one by one as passes of a streaming kernel, after a parameter is
/// set, too.
#[test]
fn passes_have_the_references_bits() -> Result<()> {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return Ok(()) };
    let mut count = 0;
    let [own, parts] = parallel::part();
    let seeds = (own as u64..40).step_by(parts);
    for (seed, (problem, start)) in seeds.filter_map(|seed| Some((seed, swept::problem(seed).ok()?))) {
        let partition = passes(&problem, backend.device(), seed)?;
        count += partition.all().filter(|group| group.pass.is_some()).count();
        let mut plan = backend.plan(&problem, &Options { fuse: Fuse::Off, ..Options::default() })?;
        if let Schedule::Stepwise(stepwise) = &mut plan.schedule {
            stepwise.partition = partition;
        }
        let mut pair = Pair::open_plan(&backend, &format!("swept {seed}"), problem, start, &plan)?;
        pair.advance(3)?;
        pair.advance(MANY / 3)?;
        pair.session.set_parameter(0, 0.375)?;
        pair.problem.parameters[0] = 0.375;
        pair.write(1)?;
        pair.advance(MANY / 3)?;
    }
    assert!(count > if parts == 1 { 30 } else { 0 }, "{count} passes");
    Ok(())
}

fn follow(backend: &CudaBackend, case: Case, options: &Options) -> Result<()> {
    let mut pair = Pair::open(backend, &case.name, case.problem, case.start, options)?;
    pair.compare()?;
    pair.advance(0)?;
    pair.advance(1)?;
    let fields = pair.fields.len();
    pair.write(fields - 1)?;
    pair.advance(case.steps)?;
    if !pair.problem.parameters.is_empty() {
        pair.session.set_parameter(0, 0.0625)?;
        pair.problem.parameters[0] = 0.0625;
    }
    pair.advance(MANY)?;
    pair.write(0)?;
    pair.write(fields / 2)?;
    pair.advance(MANY / 2)?;
    for field in 0..fields {
        write_window(&mut pair, field)?;
        pair.advance(1)?;
    }
    for field in 0..fields {
        let high = pair.problem.extents_of(field);
        let low = high.map(|extent| extent / 2);
        let window = pair.session.read_window(field, low, high)?;
        let expected = window_of(high, &pair.fields[field], low, high)?;
        assert!(window.same_bits(&expected), "{}: a window of field {field}", pair.name);
        assert!(pair.session.read_window(field, low, high.map(|extent| extent + 1)).is_err());
    }
    assert!(pair.session.write(fields, &pair.fields[0]).is_err() && pair.session.read(fields).is_err());
    Ok(())
}

#[test]
fn programs_have_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    for case in cases().unwrap().into_iter().chain(random(0..100)) {
        let name = case.name.clone();
        follow(&backend, case, &Options::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}");
    }
}

/// One persistent kernel has them too: through writes, parameters and the windows of fields, from run to run.
#[test]
fn persistent_programs_have_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    // One kernel of all steps has a schedule that is known before, and one grid.
    let fits = |case: &Case| !case.problem.program.has_loops() && !case.problem.program.has_levels();
    let all = cases().unwrap().into_iter().chain(random(400..480)).filter(fits);
    for (number, case) in all.enumerate() {
        let name = case.name.clone();
        let fuse = [Fuse::Off, Fuse::Greedy][number % 2];
        follow(&backend, case, &persistent(fuse)).unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}");
    }
}

fn persistent(fuse: Fuse) -> Options {
    Options { execution: Execution::Persistent, fuse, ..Options::default() }
}

/// Many steps of whole programs end, with the bits of a launch per stage.
#[test]
fn long_persistent_runs_have_the_bits_of_launches() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let two = || catalogue::cloverleaf().unwrap();
    let three = || catalogue::cloverleaf_3d().unwrap();
    for (program, extents, dtype, steps) in [
        (two(), &[960, 960][..], DType::F64, 1000),
        (two(), &[1021, 517], DType::F32, 300),
        (three(), &[67, 41, 97], DType::F64, 100),
        (three(), &[96, 96, 96], DType::F32, 50),
    ] {
        let shape = Shape::new(extents).unwrap();
        let problem = Problem::new(program.into(), shape, dtype).unwrap();
        let start: Vec<Array> = (0..problem.program.fields().len())
            .map(|field| problem.program.start(field).fill(&problem.shape_of(field).unwrap(), dtype).unwrap())
            .collect();
        let launched = Options { execution: Execution::Stepwise, fuse: Fuse::Off, ..Options::default() };
        let mut ends = Vec::new();
        for options in [launched, persistent(Fuse::Off), persistent(Fuse::Greedy), persistent(Fuse::Search)] {
            let plan = backend.plan(&problem, &options).unwrap();
            let mut session = backend.open(&problem, &plan, start.clone()).unwrap();
            let seconds: f64 = [1, steps - 4, 3].iter().map(|&part| session.advance(part).unwrap()).sum();
            println!("{shape} {dtype} {}: {:.1} µs a step", plan.summary(), seconds / steps as f64 * 1e6);
            let fields: Vec<Array> = (0..start.len()).map(|field| session.read(field).unwrap()).collect();
            ends.push((fields, session.scalars().unwrap()));
        }
        for (fields, scalars) in &ends[1..] {
            assert_eq!(scalars, &ends[0].1, "{shape}");
            for (number, (found, expected)) in fields.iter().zip(&ends[0].0).enumerate() {
                assert!(found.same_bits(expected), "{shape}: field {number}");
            }
        }
    }
}

/// Blocks that are not all on the device at once are refused before any is launched.
#[test]
fn more_blocks_than_the_device_holds_are_refused() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    // Without divisions, whose kernels may spill: a plan of fewer blocks takes the place of theirs.
    let named = |case: &Case| case.name.starts_with("staggered 27x101");
    let Case { problem, start, .. } = cases().unwrap().into_iter().find(named).unwrap();
    let mut plan = backend.plan(&problem, &persistent(Fuse::Off)).unwrap();
    if let Schedule::PersistentProgram(own) = &mut plan.schedule {
        own.blocks = 100_000;
    }
    let error = backend.open(&problem, &plan, start).map(drop).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("co-resident"), "{error}");
}

#[test]
fn cloverleaf_has_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=27");
    let trace = include_str!("../../tests/cloverleaf/trace13x7/clover.in");
    let flows = include_str!("../../tests/cloverleaf/flows7x6x5/clover.in");
    for (name, text, steps) in
        [("built in", deck::BUILT_IN, 75), ("13x7", trace, 6), ("101x27", &larger, 75), ("7x6x5", flows, 24)]
    {
        let deck = Deck::parse(text).unwrap();
        let (problem, fields) = clover(&deck).unwrap();
        for options in [Options::default(), persistent(Fuse::Off), persistent(Fuse::Greedy)] {
            let (problem, fields) = (problem.clone(), fields.clone());
            let mut pair = Pair::open(&backend, name, problem, fields, &options).unwrap();
            pair.advance(1).unwrap();
            pair.advance(steps - 1).unwrap();
            let compiled = &pair.session.plan().compiled;
            assert!(compiled.iter().all(|kernel| kernel.spill_bytes <= AROUND_CALLS), "{compiled:?}");
        }
    }
}

/// A condition ends a run on the device after the step in which it first holds, within a recording and outside.
#[test]
fn a_condition_ends_a_run() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let deck = Deck::parse(deck::BUILT_IN).unwrap();
    for ((end, steps), options) in [
        ((0.1, 3), Options::default()),
        ((2.5, 63), Options::default()),
        ((0.1, 3), persistent(Fuse::Off)),
        ((2.5, 63), persistent(Fuse::Greedy)),
    ] {
        let (mut problem, mut fields) = clover(&deck).unwrap();
        let condition = format!("time >= {end}");
        problem.until = Some(Until::parse(&condition, &problem.program).unwrap());
        let plan = backend.plan(&problem, &options).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        let mut done = 0;
        for part in [2, 200, 7] {
            session.advance(part).unwrap();
            done += part - session.remaining();
        }
        assert_eq!(done, steps, "{condition}");
        let none = |_: usize, _: &[Array], _: &[f64]| {};
        let scalars = abide_cpu::reference::run_program(&problem, &mut fields, steps, none).unwrap();
        assert_eq!(session.scalars().unwrap(), scalars);
        for (number, expected) in fields.iter().enumerate() {
            assert!(session.read(number).unwrap().same_bits(expected), "{condition}: field {number}");
        }
        // Where something is set, the run goes on, until the condition holds after a step again.
        for set in 0..2 {
            match set {
                0 => session.write(0, &fields[0]).unwrap(),
                _ => session.set_parameter(0, problem.parameters[0]).unwrap(),
            }
            for remaining in [4, 5] {
                session.advance(5).unwrap();
                assert_eq!(session.remaining(), remaining, "{condition}, set {set}");
            }
        }
    }
}

/// The device records what the reference's session records, within a recording and outside, with rows that
/// come in parts; marks halt it at the same steps.
#[test]
fn rows_and_marks_are_the_references() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let (mut problem, fields) = clover(&Deck::parse(deck::BUILT_IN).unwrap()).unwrap();
    let program = problem.program.clone();
    let probes = [("density0", [1, 9]), ("xvel0", [2, 10]), ("vol_flux_x", [0, 10])];
    let probes = probes.map(|(field, index)| Probe::new(&program, field, &index).unwrap()).to_vec();
    for (every, by) in [(1, None), (7, None), (3, Some(0.4))] {
        problem.record = Some(Record::new(&program, every, probes.clone()));
        problem.marks = by.map(|by| Marks::new(&program, "time", by).unwrap());
        let reference = abide_cpu::CpuBackend::reference();
        let ways = [
            (&reference as &dyn Backend, Options::default()),
            (&backend, Options::default()),
            (&backend, persistent(Fuse::Auto)),
        ];
        let ends = ways.map(|(backend, options)| {
            let plan = backend.plan(&problem, &options).unwrap();
            let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
            let (mut rows, mut halts) = (Vec::new(), Vec::new());
            for part in [2, 150, 0, 40] {
                let mut left = part;
                loop {
                    session.advance(left).unwrap();
                    halts.extend(session.is_at_mark().then(|| session.scalars().unwrap()));
                    left = session.remaining();
                    if left == 0 {
                        break;
                    }
                    assert!(session.is_at_mark());
                }
                let new = session.take_rows().unwrap();
                rows.extend(new.iter().map(|(step, row)| (step, row.to_vec())));
            }
            (rows, halts)
        });
        assert!(ends[0] == ends[1] && ends[0] == ends[2], "every {every} by {by:?}");
        assert_eq!(ends[0].0.len() as u64, 1 + 192 / every);
        assert_eq!(ends[0].1.is_empty(), by.is_none());
    }
}
