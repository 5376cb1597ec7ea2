//! Programs of several kinds of fields: all threads against the definition.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use abide_core::backend::{Ahead, Peer, Planes, Reducer, Segmented, window_of, write_rows};
use abide_core::catalogue::cloverleaf;
use abide_core::communicator::ExportedHandle;
use abide_core::domain::Sides;
use abide_core::program::{Boxes, Clock, Marks, Probe, Record, Rows, Until};
use abide_core::{Array, Backend, Boundaries, DType, Options, Plan, Problem, Result, Session, Shape};
use abide_cpu::{CpuBackend, reference};
use abide_random::{programs, swept, timed};

fn read(session: &mut dyn Session, problem: &Problem) -> Vec<Array> {
    (0..problem.program.fields().len()).map(|field| session.read(field).unwrap()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Random programs have the bits of the definition, for any number of threads, however the steps are cut, and
/// where fields are written between steps.
#[test]
fn random_programs_have_the_bits_of_the_definition() {
    let ran = (0..400).filter(|&seed| random_program(seed)).count();
    assert!(ran > 200, "{ran} ran");
}

/// The same of a hundred thousand programs.
#[test]
#[ignore = "a hundred thousand programs: minutes"]
fn a_hundred_thousand_random_programs_have_the_bits_of_the_definition() {
    let (next, ran) = (AtomicU64::new(1000), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if ran.load(Ordering::Relaxed) >= 100_000 {
                return;
            }
            ran.fetch_add(u64::from(random_program(seed)), Ordering::Relaxed);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
}

/// Compares the program of a seed with the definition; returns whether there is one.
fn random_program(seed: u64) -> bool {
    let (problem, fields) = match programs::problem(seed) {
        Ok(problem) => problem,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("fixed") || text.contains("reduction of nothing"), "{seed}: {text}");
            return false;
        }
    };
    let mut expected = fields.clone();
    let scalars = reference::run_program(&problem, &mut expected, 5, |_, _, _| {}).unwrap();
    for threads in [1, 3] {
        let backend = CpuBackend::with_threads(threads).unwrap();
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        session.advance(2).unwrap();
        // Writing what is there changes nothing, also where two names share a buffer.
        let last = problem.program.fields().len() - 1;
        let own = session.read(last).unwrap();
        session.write(last, &own).unwrap();
        session.advance(3).unwrap();
        for (name, (found, expected)) in
            problem.program.fields().iter().zip(read(&mut *session, &problem).iter().zip(&expected))
        {
            assert!(found.same_bits(expected), "seed {seed}, field {name}, {threads} threads");
        }
        assert_eq!(bits(&session.scalars().unwrap()), bits(&scalars), "seed {seed}");
    }
    true
}

/// A problem's plain form has the bits of the definition: temporaries where they are read, points that formulas choose by, and
/// parts of formulas that all cells have in common.
#[test]
fn plain_forms_have_the_bits_of_the_definition() {
    let backend = CpuBackend::with_threads(2).unwrap();
    // Of programs whose fields share their boundaries, and of others: those that were drawn, and those that have a plain form.
    let mut drawn = [[0; 2]; 2];
    for (seed, (problem, fields)) in (0..1200).filter_map(|seed| Some((seed, timed::problem(seed).ok()?))) {
        let clock = Clock::on_device(&problem, false);
        let has_own = problem.sides.iter().any(|sides| *sides != Sides::default());
        drawn[usize::from(has_own)][0] += 1;
        drawn[usize::from(has_own)][1] += usize::from(clock.is_some());
        let Some(clock) = clock else { continue };
        let mut expected = fields.clone();
        let scalars = reference::run_program(&problem, &mut expected, 5, |_, _, _| {}).unwrap();
        let own = clock.plain().clone();
        let plan = backend.plan(&own, &Options::default()).unwrap();
        let cut = Segmented::clocked(&problem, clock, &fields, None).unwrap();
        let inner = backend.open(&own, &plan, fields).unwrap();
        let mut session = Segmented::around(Some(cut), inner);
        session.advance(2).unwrap();
        session.advance(3).unwrap();
        for (name, (found, expected)) in
            problem.program.fields().iter().zip(read(&mut *session, &problem).iter().zip(&expected))
        {
            assert!(found.same_bits(expected), "seed {seed}, field {name}, {}", problem.shape);
        }
        assert_eq!(bits(&session.scalars().unwrap()), bits(&scalars), "seed {seed}");
    }
    let [[shared, plain], [own, chosen]] = drawn;
    assert!(shared > 150 && plain > shared / 2 && own > 100 && chosen > own / 3, "{drawn:?}");
}

/// Reduces fields by the steps of a program that has the reductions alone, and goes ahead where it is told to.
struct Alone {
    problem: Problem,
    goes_ahead: bool,
    /// The stretches that it did by itself.
    done: Arc<AtomicU64>,
}

impl Reducer for Alone {
    fn reduce(
        &mut self,
        session: &mut dyn Session,
        reduction: usize,
        clock: &Clock,
        ahead: Option<Ahead>,
    ) -> Result<Vec<f64>> {
        let mut values = vec![self.value(session, reduction, clock)?];
        let Some(Ahead { stretches, reserved }) = ahead else { return Ok(values) };
        let reserved = reserved.downcast::<Arc<Mutex<Vec<f64>>>>().unwrap();
        let (all, first, mut clock) = (clock.stretches(), clock.next_stretch(), clock.clone());
        for number in first..first + stretches {
            clock.reduced(values[number - first]);
            let mut read = Vec::new();
            let asked = loop {
                if let Some(asked) = clock.step(&mut read) {
                    break asked;
                }
            };
            let stretch = &all[number % all.len()];
            assert_eq!(stretch.reduction, asked.reduction);
            *reserved.lock().unwrap() = read;
            if stretch.steps() > 0 {
                assert!(session.peer().unwrap().begin(stretch.steps(), &[])?);
            }
            values.push(self.value(session, asked.reduction, &clock)?);
        }
        self.done.fetch_add(stretches as u64, Ordering::Relaxed);
        Ok(values)
    }

    fn goes_ahead(&self) -> bool {
        self.goes_ahead
    }
}

impl Alone {
    fn value(&self, session: &mut dyn Session, reduction: usize, clock: &Clock) -> Result<f64> {
        let (parameters, scalars) = clock.values().split_at(self.problem.parameters.len());
        let mut problem =
            Problem { parameters: parameters.to_vec(), scalars: scalars.to_vec(), ..self.problem.clone() };
        // One that is made after another reads what was before both.
        let made = problem.program.stages()[reduction].does.scalar().unwrap();
        let mut fields = read(session, &problem);
        problem.first_step = 0;
        let found = reference::run_program(&problem, &mut fields, 1, |_, _, _| {})?;
        Ok(found[made - problem.parameters.len()])
    }
}

/// The methods of a session that does as the one within: all but those of its steps.
macro_rules! as_inner {
    () => {
        fn plan(&self) -> &Plan {
            self.inner.plan()
        }

        fn read(&mut self, field: usize) -> Result<Array> {
            self.inner.read(field)
        }

        fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
            self.inner.read_window(field, low, high)
        }

        fn write(&mut self, field: usize, values: &Array) -> Result<()> {
            self.inner.write(field, values)
        }

        fn write_window(
            &mut self,
            field: usize,
            low: [usize; 3],
            high: [usize; 3],
            values: &Array,
        ) -> Result<()> {
            self.inner.write_window(field, low, high, values)
        }

        fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
            self.inner.set_parameter(parameter, value)
        }
    };
}

/// A session that takes steps as a device does: what varies in them may have been made there.
struct Device {
    inner: Box<dyn Session>,
    reserved: Arc<Mutex<Vec<f64>>>,
    noted: Vec<f64>,
    /// Steps for which there is memory for what they note.
    left: u64,
}

impl Session for Device {
    as_inner!();

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.advance_by(steps, &[])
    }

    fn advance_by(&mut self, steps: u64, read: &[f64]) -> Result<f64> {
        self.begin(steps, read)?;
        self.finish()
    }

    fn take_noted(&mut self) -> Result<Vec<f64>> {
        assert_eq!(self.left, 0, "steps are missing");
        self.inner.take_noted().map(|_| std::mem::take(&mut self.noted))
    }

    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }
}

impl Peer for Device {
    fn reserve(&mut self, steps: u64, _: u64) -> Result<Option<Box<dyn Any>>> {
        (self.left, self.noted) = (steps, Vec::new());
        Ok(Some(Box::new(self.reserved.clone())))
    }

    fn begin(&mut self, steps: u64, read: &[f64]) -> Result<bool> {
        if self.left < steps {
            (self.left, self.noted) = (steps, Vec::new());
        }
        self.left -= steps;
        let reserved = std::mem::take(&mut *self.reserved.lock().unwrap());
        match if read.is_empty() { &reserved } else { read } {
            [] => self.inner.advance(steps)?,
            read => self.inner.advance_by(steps, read)?,
        };
        self.noted.extend(self.inner.take_noted()?);
        Ok(true)
    }

    fn export(&mut self, _: Planes) -> Result<ExportedHandle> {
        unreachable!("there are no slabs")
    }

    fn take(&mut self, _: Planes, _: ExportedHandle) -> Result<()> {
        unreachable!("there are no slabs")
    }

    fn taken(&mut self) -> Result<ExportedHandle> {
        unreachable!("there are no slabs")
    }

    fn wait_for(&mut self, _: ExportedHandle) -> Result<()> {
        unreachable!("there are no slabs")
    }
}

/// A problem that reduces fields once in several steps has the bits of the definition where its plain form goes over the steps
/// between at a time, however advances cut the run and wherever it begins.
#[test]
fn steps_between_reductions_have_the_bits_of_the_definition() {
    let backend = CpuBackend::with_threads(2).unwrap();
    let (mut seen, done) = ([0; 2], Arc::new(AtomicU64::new(0)));
    for (seed, (mut problem, fields)) in (0..4000).filter_map(|seed| Some((seed, timed::reduced(seed).ok()?)))
    {
        problem.first_step = seed % 4;
        let middle = problem.shape.padded().map(|extent| extent / 2);
        let probes = vec![Probe { field: 0, index: middle }; usize::from(seed % 4 > 1)];
        problem.record = Some(Record::new(&problem.program, 2, probes));
        let Some(clock) = Clock::on_device(&problem, true) else { continue };
        assert!(Clock::on_device(&problem, false).is_none() && Clock::of(&problem).is_none());
        let reductions = clock.reductions().unwrap().clone();
        reductions.check().unwrap();
        let mut expected = fields.clone();
        let scalars = reference::run_program(&problem, &mut expected, 21, |_, _, _| {}).unwrap();
        let own = clock.plain().clone();
        let plan = backend.plan(&own, &Options::default()).unwrap();
        let alone = Alone { problem: reductions, goes_ahead: seed % 2 > 0, done: done.clone() };
        let cut = Segmented::clocked(&problem, clock, &fields, Some(Box::new(alone))).unwrap();
        let reference = CpuBackend::reference();
        let options = Options::default();
        let mut defined =
            reference.open(&problem, &reference.plan(&problem, &options).unwrap(), fields.clone()).unwrap();
        let inner = backend.open(&own, &plan, fields).unwrap();
        let inner = Box::new(Noting { inner, problem: own, noted: Vec::new() });
        let device = Device { inner, reserved: Arc::default(), noted: Vec::new(), left: 0 };
        let mut session = Segmented::around(Some(cut), Box::new(device));
        for steps in [1, 3, 4, 13] {
            session.advance(steps).unwrap();
            defined.advance(steps).unwrap();
            let [rows, others] = [session.take_rows().unwrap(), defined.take_rows().unwrap()];
            let words = |rows: &Rows| -> Vec<(u64, Vec<u64>)> {
                rows.iter().map(|(step, row)| (step, bits(row))).collect()
            };
            assert_eq!(words(&rows), words(&others), "seed {seed}");
        }
        for (name, (found, expected)) in
            problem.program.fields().iter().zip(read(&mut *session, &problem).iter().zip(&expected))
        {
            assert!(found.same_bits(expected), "seed {seed}, field {name}, {}", problem.shape);
        }
        assert_eq!(bits(&session.scalars().unwrap()), bits(&scalars), "seed {seed}");
        seen[usize::from(problem.program.steps()[0].len() > problem.program.steps()[1].len())] += 1;
    }
    let done = done.load(Ordering::Relaxed);
    assert!(seen[1] > 50 && done > 40, "{seen:?} {done}");
}

/// A program whose reductions of what a step finds are made at the end of the step before has the bits of the definition, and the
/// same scalars after each step.
#[test]
fn carried_reductions_have_the_bits_of_the_definition() {
    let mut seen = 0;
    for (seed, (problem, fields)) in (0..2000).filter_map(|seed| Some((seed, programs::problem(seed).ok()?)))
    {
        let carried = problem.reductions_of_found();
        if carried.is_empty() {
            continue;
        }
        let mut changed = problem.carried(&carried).unwrap();
        let made = reference::reduced(&problem, &carried, &fields).unwrap();
        let own = problem.scalars.len();
        changed.scalars[own..].copy_from_slice(&made);
        for steps in 1..4 {
            let [mut expected, mut other] = [fields.clone(), fields.clone()];
            let scalars = reference::run_program(&problem, &mut expected, steps, |_, _, _| {}).unwrap();
            let others = reference::run_program(&changed, &mut other, steps, |_, _, _| {}).unwrap();
            assert!(expected.iter().zip(&other).all(|(one, other)| one.same_bits(other)), "seed {seed}");
            assert_eq!(bits(&others[..own]), bits(&scalars), "seed {seed}");
        }
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

/// A session that notes values after each step, as kernels of several steps do.
struct Noting {
    inner: Box<dyn Session>,
    problem: Problem,
    noted: Vec<f64>,
}

impl Session for Noting {
    as_inner!();

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.advance_by(steps, &[])
    }

    fn advance_by(&mut self, steps: u64, read: &[f64]) -> Result<f64> {
        self.noted.clear();
        let mut seconds = 0.0;
        for step in 0..steps as usize {
            let of_step = read.len() / steps as usize;
            seconds += match &read[step * of_step..(step + 1) * of_step] {
                [] => self.inner.advance(1)?,
                read => self.inner.advance_by(1, read)?,
            };
            for probe in &self.problem.noted {
                let [low, high] = probe.window();
                self.noted.extend(self.inner.read_window(probe.field, low, high)?.get(0));
            }
        }
        Ok(seconds)
    }

    fn take_noted(&mut self) -> Result<Vec<f64>> {
        Ok(std::mem::take(&mut self.noted))
    }
}

/// Rows of noted values are the rows of the definition, with the scalars of their steps, however advances cut the run.
#[test]
fn noted_values_are_the_rows_of_the_definition() {
    let backend = CpuBackend::with_threads(1).unwrap();
    let mut compared = 0;
    for (seed, (mut problem, fields)) in (0..300).filter_map(|seed| Some((seed, timed::problem(seed).ok()?)))
    {
        let extents = problem.shape.padded();
        let last = problem.program.fields().len() - 1;
        let ends =
            [(0, [0; 3]), (last, extents.map(|extent| extent - 1)), (0, extents.map(|extent| extent / 2))];
        let probes = ends.map(|(field, index)| Probe { field, index });
        problem.record = Some(Record::new(&problem.program, 1 + seed % 3, probes.to_vec()));
        let Some(clock) = Clock::on_device(&problem, true) else { continue };
        assert!(Clock::on_device(&problem, false).is_none() && clock.noted() == probes);
        let mut rows = Vec::new();
        let reference = CpuBackend::reference();
        let mut defined = reference
            .open(&problem, &reference.plan(&problem, &Options::default()).unwrap(), fields.clone())
            .unwrap();
        let plain = Problem { noted: Vec::new(), ..clock.plain().clone() };
        let plan = backend.plan(&plain, &Options::default()).unwrap();
        let cut = Segmented::clocked(&problem, clock, &fields, None).unwrap();
        let inner = backend.open(&plain, &plan, fields).unwrap();
        let noting =
            Noting { inner, problem: Problem { noted: probes.to_vec(), ..plain }, noted: Vec::new() };
        let mut session = Segmented::around(Some(cut), Box::new(noting));
        for steps in [1, 4, 2] {
            defined.advance(steps).unwrap();
            session.advance(steps).unwrap();
            rows.push([defined.take_rows().unwrap(), session.take_rows().unwrap()]);
        }
        for [defined, noted] in &rows {
            assert_eq!(defined.len(), noted.len(), "seed {seed}");
            for ((step, defined), (other, noted)) in defined.iter().zip(noted.iter()) {
                assert_eq!((step, bits(defined)), (other, bits(noted)), "seed {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

/// A program whose stages are all in parts (fission) has the bits of the whole one's definition.
#[test]
fn stages_in_parts_have_the_bits_of_the_definition() {
    let backend = CpuBackend::with_threads(2).unwrap();
    let mut splits = 0;
    for (problem, fields) in (0..400).filter_map(|seed| programs::problem(seed).ok()) {
        let all = problem.splits(&Boxes::of(&problem).unwrap());
        if all.is_empty() {
            continue;
        }
        splits += all.len();
        let mut expected = fields.clone();
        let scalars = reference::run_program(&problem, &mut expected, 5, |_, _, _| {}).unwrap();
        let split = problem.split(&all).unwrap();
        split.check().unwrap();
        let plan = backend.plan(&split, &Options::default()).unwrap();
        let mut session = backend.open(&split, &plan, fields).unwrap();
        session.advance(5).unwrap();
        assert!(read(&mut *session, &split).iter().zip(&expected).all(|(a, b)| a.same_bits(b)), "{all:?}");
        assert_eq!(bits(&session.scalars().unwrap()), bits(&scalars), "{all:?}");
    }
    assert!(splits > 50, "{splits}");
}

fn clover() -> (Problem, Vec<Array>) {
    let shape = Shape::new(&[9, 7]).unwrap();
    let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
    let program = problem.program.clone();
    let field = |field| program.start(field).fill(&problem.shape_of(field).unwrap(), DType::F64).unwrap();
    let fields = (0..program.fields().len()).map(field).collect();
    (problem, fields)
}

/// All threads record what the definition's session records, which is what it reads after each step.
#[test]
fn rows_are_the_values_after_each_step() {
    let (mut problem, fields) = clover();
    let program = problem.program.clone();
    let probes = [("density0", [8, 6]), ("xvel0", [9, 7]), ("vol_flux_y", [9, 0])];
    let probes = probes.map(|(field, index)| Probe::new(&program, field, &index).unwrap());
    problem.first_step = 3;
    problem.record = Some(Record::new(&program, 2, probes.to_vec()));
    let record = problem.record.clone().unwrap();
    for backend in
        [CpuBackend::reference(), CpuBackend::with_threads(1).unwrap(), CpuBackend::with_threads(3).unwrap()]
    {
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        let now = |session: &mut dyn Session| -> Vec<u64> {
            let scalars = session.scalars().unwrap();
            let mut row: Vec<f64> = record.scalars.iter().map(|&number| scalars[number]).collect();
            for probe in &probes {
                row.extend(
                    session.read(probe.field).unwrap().get(probe.position(problem.extents_of(probe.field))),
                );
            }
            bits(&row)
        };
        let mut expected = vec![(3, now(&mut *session))];
        for step in 4..=11 {
            session.advance(1).unwrap();
            if step % 2 == 0 {
                expected.push((step, now(&mut *session)));
            }
        }
        let rows = session.take_rows().unwrap();
        let found: Vec<_> = rows.iter().map(|(step, row)| (step, bits(row))).collect();
        assert_eq!(found, expected);
        let mut whole = backend.open(&problem, &plan, fields.clone()).unwrap();
        whole.advance(8).unwrap();
        assert_eq!(whole.take_rows().unwrap(), rows);
        assert!(whole.take_rows().unwrap().is_empty());
    }
}

/// A run halts after each step at which the time has reached the next multiple, and ends by its condition.
#[test]
fn marks_halt_a_run() {
    let (mut problem, fields) = clover();
    let program = problem.program.clone();
    problem.marks = Some(Marks::new(&program, "time", 0.25).unwrap());
    problem.until = Some(Until::parse("time >= 1.1", &program).unwrap());
    let time = program.scalar("time").unwrap();
    for backend in [CpuBackend::reference(), CpuBackend::with_threads(2).unwrap()] {
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        let (mut left, mut marks, mut times) = (1000, Vec::new(), vec![0.0]);
        loop {
            session.advance(left).unwrap();
            left = session.remaining();
            if !session.is_at_mark() {
                break;
            }
            marks.push(session.scalars().unwrap()[time]);
        }
        let end = session.scalars().unwrap()[time];
        let mut single = backend
            .open(&Problem { marks: None, until: None, ..problem.clone() }, &plan, fields.clone())
            .unwrap();
        while *times.last().unwrap() < 1.1 {
            single.advance(1).unwrap();
            times.push(single.scalars().unwrap()[time]);
        }
        let reached = |time: f64| (time / 0.25).floor();
        let expected: Vec<f64> =
            times.windows(2).filter(|pair| reached(pair[0]) < reached(pair[1])).map(|pair| pair[1]).collect();
        assert_eq!(marks, expected);
        assert_eq!((end, left), (*times.last().unwrap(), 1000 - (times.len() as u64 - 1)));
        session.advance(5).unwrap();
        assert_eq!((session.remaining(), session.is_at_mark()), (5, false));
        goes_on_where_it_is_set(&mut *session, &problem);
    }
}

/// A run that its condition has ended does a step more after each thing that is set, because the condition
/// still holds after it.
fn goes_on_where_it_is_set(session: &mut dyn Session, problem: &Problem) {
    let value = session.read(0).unwrap();
    let one = Array::from_fn(problem.dtype, 1, |_| 1.0);
    for set in 0..3 {
        match set {
            0 => session.write(0, &value).unwrap(),
            1 => session.write_window(0, [0; 3], [1; 3], &one).unwrap(),
            _ => session.set_parameter(0, problem.parameters[0]).unwrap(),
        }
        for remaining in [4, 5] {
            session.advance(5).unwrap();
            assert_eq!(session.remaining(), remaining, "set {set}");
        }
    }
}

/// Windows are written into the field alone, also where another name shares its buffer: density0 and density1
/// do after a step.
#[test]
fn windows_of_all_kinds_of_fields_are_written() {
    let (problem, fields) = clover();
    for backend in [CpuBackend::reference(), CpuBackend::with_threads(2).unwrap()] {
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
        for field in 0..fields.len() {
            session.advance(1).unwrap();
            let mut expected = read(&mut *session, &problem);
            let high = problem.extents_of(field);
            let low = high.map(|n| n / 2);
            let count = (0..3).map(|axis| high[axis] - low[axis]).product();
            let values = Array::from_fn(DType::F64, count, |i| 1.0 + i as f64 / 64.0);
            if let (Array::F64(to), Array::F64(from)) = (&mut expected[field], &values) {
                write_rows(high, to, low, high, from);
            }
            session.write_window(field, low, high, &values).unwrap();
            let found = read(&mut *session, &problem);
            assert!(found.iter().zip(&expected).all(|(a, b)| a.same_bits(b)), "field {field}");
            let window = session.read_window(field, low, high).unwrap();
            assert!(window.same_bits(&window_of(high, &expected[field], low, high).unwrap()));
            assert!(session.write_window(field, low, high.map(|n| n + 1), &values).is_err());
            assert_eq!(session.non_finite(field).unwrap(), expected[field].non_finite() as u64);
        }
    }
}

/// Stages that repeat one formula are the steps of a plain problem, which has their bits: its definition between the stages before
/// and behind them is that of the whole step.
#[test]
fn stages_that_repeat_are_steps_of_a_plain_problem() {
    let mut found = 0;
    for (seed, (problem, fields)) in (0..200).filter_map(|seed| Some((seed, swept::problem(seed).ok()?))) {
        let boxes = Boxes::of(&problem).unwrap();
        let stages = problem.program.stages();
        let is_sweep = |stage: &usize| stages[*stage].name == "sweep";
        let sweeps: Vec<usize> = (0..stages.len()).filter(is_sweep).collect();
        let Some(repeated) = problem.repeated(&boxes, &sweeps) else { continue };
        assert!(repeated.problem.is_plain() && repeated.problem.check().is_ok(), "{seed}");
        // The fields before the first sweep, and behind the last.
        let mut between = [fields.clone(), fields.clone()];
        let after = |stage: usize, now: &[Array], _: &[f64]| {
            if stage + 1 == sweeps[0] || Some(&stage) == sweeps.last() {
                between[usize::from(stage >= sweeps[0])] = now.to_vec();
            }
        };
        let mut run = fields.clone();
        reference::run_program(&problem, &mut run, 1, after).unwrap();
        // A temporary has no values there: only sweeps without one are compared.
        let [before, behind] = between;
        let own: Option<Vec<Array>> = repeated.names.iter().map(|&name| before.get(name).cloned()).collect();
        let Some(mut own) = own else { continue };
        let count = sweeps.len() as u64;
        reference::run_program(&repeated.problem, &mut own, count, |_, _, _| {}).unwrap();
        for (own, &name) in own.iter().zip(&repeated.names) {
            assert!(own.same_bits(&behind[name]), "seed {seed}, {}", problem.program.names()[name]);
        }
        found += 1;
    }
    assert!(found > 20, "{found} were compared");
}

/// What makes stages no steps of a plain problem is found.
#[test]
fn stages_that_do_not_repeat_are_none() {
    let of = |change: &dyn Fn(&mut Problem), stages: &[usize]| {
        let seeds = (0..200).filter_map(|seed| swept::problem(seed).ok());
        let taken = seeds.filter(|(problem, _)| {
            let boxes = Boxes::of(problem).unwrap();
            // Of one field alone, whose boundary is its own.
            let is_alone = problem.program.stages()[1].writes.len() == 1;
            is_alone && problem.repeated(&boxes, &[1, 2]).is_some()
        });
        let mut problem = taken.map(|(problem, _)| problem).next().unwrap();
        change(&mut problem);
        let boxes = Boxes::of(&problem).unwrap();
        problem.repeated(&boxes, stages).is_some()
    };
    assert!(of(&|_| {}, &[1, 2]) && of(&|_| {}, &[1]));
    for stages in [&[][..], &[0, 1], &[1, 1], &[2, 1], &[1, 99]] {
        assert!(!of(&|_| {}, stages), "{stages:?}");
    }
    let marks = Marks { scalar: 0, by: 1.0 };
    assert!(!of(&|problem| problem.marks = Some(marks), &[1, 2]));
    let sides = |kind: &str| Sides::all(Boundaries::all(kind.parse().unwrap()));
    for kind in ["-mirror", "constant=h"] {
        assert!(!of(&|problem| problem.sides[1] = sides(kind), &[1, 2]), "{kind}");
    }
    for kind in ["mirror", "periodic", "constant=2"] {
        assert!(of(&|problem| problem.sides[1] = sides(kind), &[1, 2]), "{kind}");
    }
}
