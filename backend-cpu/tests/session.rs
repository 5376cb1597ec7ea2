//! A session's promises beside its bits: reading, writing, parameters, zero steps, and errors that say what
//! to change.

use std::sync::Arc;

use abide_core::{
    Array, Backend, CachePolicy, DType, Depth, Error, Execution, Options, Problem, Shape, catalogue,
};
use abide_cpu::{CpuBackend, reference};

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn fields(problem: &Problem) -> Vec<Array> {
    let program = &problem.program;
    (0..program.fields().len())
        .map(|f| program.start(f).fill(&problem.shape, problem.dtype).unwrap())
        .collect()
}

fn backends() -> [CpuBackend; 3] {
    [CpuBackend::new(), CpuBackend::with_threads(3).unwrap(), CpuBackend::reference()]
}

#[test]
fn sessions_read_write_and_take_parameters() {
    for backend in backends() {
        for dtype in [DType::F32, DType::F64] {
            let mut problem = problem("gray-scott", &[151, 201], dtype);
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, fields(&problem)).unwrap();
            assert_eq!(session.plan(), &plan);
            assert!(session.advance(0).unwrap() >= 0.0);
            assert!(session.read(1).unwrap().same_bits(&fields(&problem)[1]), "zero steps change nothing");

            let mut expected = fields(&problem);
            session.advance(2).unwrap();
            reference::advance(&problem, &mut expected, 2).unwrap();
            let feed = problem.program.parameter("feed").unwrap();
            session.set_parameter(feed, 0.05).unwrap();
            problem.parameters[feed] = 0.05;
            let other = abide_core::Start::Gaussian.fill(&problem.shape, dtype).unwrap();
            session.write(1, &other).unwrap();
            expected[1] = other;
            session.advance(3).unwrap();
            reference::advance(&problem, &mut expected, 3).unwrap();
            for (field, expected) in expected.iter().enumerate() {
                assert!(session.read(field).unwrap().same_bits(expected));
            }
            let window = session.read_window(0, [0, 3, 199], [1, 5, 201]).unwrap();
            let whole = expected[0].to_f64();
            let at = |y: usize, x: usize| whole[y * 201 + x];
            assert_eq!(window.to_f64(), [at(3, 199), at(3, 200), at(4, 199), at(4, 200)]);
        }
    }
}

/// Written cells that are not computed must be right whichever of the two arrays is current.
#[test]
fn fixed_cells_survive_a_write() {
    let problem = problem("2ds9pt", &[9, 14], DType::F64);
    for backend in backends() {
        let plan = backend.plan(&problem, &Options::default()).unwrap();
        let mut session = backend.open(&problem, &plan, fields(&problem)).unwrap();
        session.advance(1).unwrap();
        let other = Array::from_fn(DType::F64, problem.shape.cells(), |i| i as f64);
        for steps in [1, 2] {
            session.write(0, &other).unwrap();
            session.advance(steps).unwrap();
            let mut expected = vec![other.clone()];
            reference::advance(&problem, &mut expected, steps).unwrap();
            assert!(session.read(0).unwrap().same_bits(&expected[0]));
        }
    }
}

#[test]
fn bad_requests_are_errors() {
    let small = problem("2d5pt", &[5, 6], DType::F64);
    for backend in backends() {
        let plan = backend.plan(&small, &Options::default()).unwrap();
        assert!(backend.open(&small, &plan, vec![]).is_err());
        assert!(backend.open(&small, &plan, vec![Array::F64(vec![0.0; 29])]).is_err());
        assert!(backend.open(&small, &plan, vec![Array::F32(vec![0.0; 30])]).is_err());
        let mut session = backend.open(&small, &plan, fields(&small)).unwrap();
        assert!(matches!(session.read(1), Err(Error::Unknown { .. })));
        assert!(session.write(1, &fields(&small)[0]).is_err());
        assert!(session.write(0, &Array::F64(vec![0.0; 31])).is_err());
        assert!(session.write(0, &Array::F32(vec![0.0; 30])).is_err());
        assert!(matches!(session.set_parameter(0, 1.0), Err(Error::Unknown { .. })));
        assert!(session.read_window(0, [0, 0, 0], [1, 5, 7]).is_err());

        let other = problem("2d9pt", &[5, 6], DType::F64);
        assert!(backend.open(&other, &plan, fields(&other)).is_err(), "a plan of another program");
        let h200 = abide_core::DeviceSpec::preset("h200").unwrap();
        let tiles = abide_planner::plan(&small, &h200, &Options::default()).unwrap();
        assert!(matches!(backend.open(&small, &tiles, fields(&small)), Err(Error::Unsupported { .. })));
        let registers =
            Options { execution: Execution::Persistent, cache: CachePolicy::Registers, ..Options::default() };
        assert!(matches!(backend.plan(&small, &registers), Err(Error::Unsupported { .. })));
    }
    let deep = Options { execution: Execution::Streaming, depth: Depth::Steps(2), ..Options::default() };
    assert!(matches!(CpuBackend::reference().plan(&small, &deep), Err(Error::Unsupported { .. })));
    assert!(matches!(CpuBackend::with_threads(0), Err(Error::Limit { .. })));
}

#[test]
fn the_device_is_this_machine() {
    let backend = CpuBackend::with_threads(3).unwrap();
    assert_eq!(backend.device().multiprocessors, 3);
    assert_eq!(backend.name(), "cpu");
    let stepwise = Options { execution: Execution::Stepwise, ..Options::default() };
    let plan = backend.plan(&problem("2d5pt", &[64, 64], DType::F32), &stepwise).unwrap();
    assert_eq!(plan.summary(), "stepwise on 3 threads");
    let p = plan.project(100);
    assert!(p.seconds > 0.0 && p.gcells_per_s.is_finite());
}

/// More threads than cores would wait for neighbours that do not run.
#[test]
fn a_crowded_machine_streams_where_persistent_was_asked_for() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let persistent = Options { execution: Execution::Persistent, ..Options::default() };
    let problem = problem("2d5pt", &[64, 64], DType::F64);
    let plan = CpuBackend::with_threads(cores).unwrap().plan(&problem, &persistent).unwrap();
    assert_eq!((plan.execution, plan.notes.len()), (Execution::Persistent, 0));
    let plan = CpuBackend::with_threads(cores + 1).unwrap().plan(&problem, &persistent).unwrap();
    assert_eq!(plan.execution, Execution::Streaming);
    assert!(plan.notes[0].contains("persistent was asked for"), "{:?}", plan.notes);
}

/// Returns the names and allowed cores, as the system writes them, of this process's threads whose names
/// begin with `prefix`.
#[cfg(target_os = "linux")]
fn threads(prefix: &str) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let named = tasks.filter_map(|task| {
        // A thread may end meanwhile.
        let name = std::fs::read_to_string(task.join("comm")).ok()?.trim().to_owned();
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        let cores =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
        name.starts_with(prefix).then_some((name, cores))
    });
    named.collect()
}

/// The threads of a persistent run last as long as the run, so they are looked at while the run lasts.
#[cfg(target_os = "linux")]
#[test]
fn threads_are_pinned_where_it_is_asked_for_and_nowhere_else() {
    let count = std::thread::available_parallelism().unwrap().get().min(2);
    let backend = CpuBackend::with_threads(count).unwrap();
    let problem = problem("2d5pt", &[130, 140], DType::F64);
    let mut expected = fields(&problem);
    reference::advance(&problem, &mut expected, 7).unwrap();
    let own = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let allowed =
        |status: String| status.lines().find(|line| line.starts_with("Cpus_allowed_list")).map(str::to_owned);
    let before = allowed(own());
    for execution in [Execution::Stepwise, Execution::Streaming, Execution::Persistent] {
        let options = Options { execution, pin: true, ..Options::default() };
        let plan = backend.plan(&problem, &options).unwrap();
        assert!(
            plan.explain().contains(&format!("{count} threads, each pinned to a core")),
            "{}",
            plan.explain()
        );
        let mut session = backend.open(&problem, &plan, fields(&problem)).unwrap();
        session.advance(7).unwrap();
        assert!(session.read(0).unwrap().same_bits(&expected[0]), "{execution}");
        if execution == Execution::Persistent {
            let done = std::sync::atomic::AtomicBool::new(false);
            let seen = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        session.advance(2000).unwrap();
                    }
                });
                // Each worker on a core, and no two on the same; the pool's threads have names that begin
                // alike.
                let pinned = |seen: &Vec<(String, String)>| {
                    let workers = seen.iter().filter(|(name, _)| !name.starts_with("abide-pinned"));
                    let mut cores: Vec<usize> = workers.filter_map(|(_, cores)| cores.parse().ok()).collect();
                    cores.sort_unstable();
                    cores.dedup();
                    cores.len() == count
                };
                let seen = (0..5000).map(|_| threads("abide-")).find(pinned);
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                seen
            });
            assert!(seen.is_some(), "the run's threads were not on cores of their own");
        }
    }
    // The threads of a pool stay as long as the backend.
    let pool = threads("abide-pinned");
    assert!(!pool.is_empty() && pool.iter().all(|(_, cores)| cores.parse::<usize>().is_ok()), "{pool:?}");
    assert_eq!(allowed(own()), before, "the thread that asked stays free");
    let free = backend.plan(&problem, &Options::default()).unwrap();
    assert!(!free.explain().contains("pinned"));
}

#[test]
fn more_pinned_threads_than_cores_are_refused() {
    let crowded = CpuBackend::with_threads(600).unwrap();
    let options = Options { pin: true, ..Options::default() };
    let error = crowded.plan(&problem("2d5pt", &[64, 64], DType::F64), &options).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("600"), "{error}");
    let reference = CpuBackend::reference().plan(&problem("2d5pt", &[64, 64], DType::F64), &options);
    assert!(matches!(reference, Err(Error::Unsupported { .. })));
}

/// A batch has the bits of the reference for each member, whether members run side by side or in turn.
#[test]
fn a_batch_runs_on_any_number_of_threads() {
    for (name, extents) in [("gray-scott", &[19, 23][..]), ("2d9pt", &[130, 151]), ("cloverleaf", &[12, 9])] {
        for backend in [1, 3, 8].map(|threads| CpuBackend::with_threads(threads).unwrap()) {
            let mut problem = problem(name, extents, DType::F64);
            problem.repeat(4).unwrap();
            for (at, member) in problem.batch.iter_mut().enumerate().filter(|_| name == "gray-scott") {
                member.parameters[2] += 0.01 * at as f64;
            }
            let own = |at: usize| -> Vec<Array> {
                let start = |f| match problem.program.start(f) {
                    abide_core::Start::Corner { .. } => problem.program.start(f).clone(),
                    _ if name == "cloverleaf" => problem.program.start(f).clone(),
                    _ => abide_core::Start::Random { seed: at as u64, low: 0.0, high: 1.0 },
                };
                let fill = |f| start(f).fill(&problem.shape_of(f).unwrap(), DType::F64).unwrap();
                (0..problem.program.fields().len()).map(fill).collect()
            };
            let joined = |f: usize| {
                let len = 4 * problem.values_of(f);
                Array::join(DType::F64, len, (0..4).map(|at| Ok(own(at)[f].clone()))).unwrap()
            };
            let all: Vec<Array> = (0..problem.program.fields().len()).map(joined).collect();
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut batch = backend.open(&problem, &plan, all).unwrap();
            batch.advance(3).unwrap();
            batch.advance(4).unwrap();
            for at in 0..4 {
                let alone = problem.member(at);
                let oracle = CpuBackend::reference();
                let of_one = oracle.plan(&alone, &Options::default()).unwrap();
                let mut single = oracle.open(&alone, &of_one, own(at)).unwrap();
                single.advance(7).unwrap();
                for f in 0..problem.program.fields().len() {
                    let values = problem.values_of(f);
                    let of_batch = batch.read(f).unwrap().part(at * values..(at + 1) * values).unwrap();
                    assert!(of_batch.same_bits(&single.read(f).unwrap()), "{name}, member {at}, field {f}");
                }
            }
            assert!(batch.read(99).is_err() && batch.set_parameter(99, 1.0).is_err());
        }
    }
}
