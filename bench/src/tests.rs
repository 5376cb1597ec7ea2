//! Tests of measuring on backends that are right, wrong, and wrong only now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abide::backend::{Backend, Kind, Opened, Session};
use abide::program::Problem;
use abide::{Array, DType, DeviceSpec, Error, Execution, Options, Plan, Result, Shape, backend};
use abide_cpu::CpuBackend;

use super::*;

/// The runs in which a value goes wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Never,
    /// In every call that advances by more steps than this number, like a kernel with a fault in its time
    /// loop.
    Beyond(u64),
    /// In one of the timed runs, like a kernel with a race; the first run is 1.
    Run(u64),
}

/// The CPU's backend under CUDA's name. Whatever it is asked to run otherwise than stepwise it calls
/// persistent, and runs with a fault.
struct Faulty {
    cpu: CpuBackend,
    fault: Fault,
    runs: Arc<AtomicU64>,
}

/// Steps of a timed run: a number that no calibration yields.
const STEPS: u64 = 997;

impl Backend for Faulty {
    fn name(&self) -> &'static str {
        "cuda"
    }
    fn device(&self) -> &DeviceSpec {
        self.cpu.device()
    }
    fn driver(&self) -> String {
        self.cpu.driver()
    }
    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        let plan = self.cpu.plan(problem, &Options::default())?;
        let stepwise = options.execution == Execution::Stepwise;
        Ok(if stepwise { plan } else { Plan { execution: Execution::Persistent, depth: 6, ..plan } })
    }
    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        let inner = self.cpu.open(problem, plan, fields)?;
        let fault = if plan.execution == Execution::Persistent { self.fault } else { Fault::Never };
        Ok(Box::new(FaultySession { inner, fault, runs: self.runs.clone() }))
    }
}

struct FaultySession {
    inner: Box<dyn Session>,
    fault: Fault,
    runs: Arc<AtomicU64>,
}

impl Session for FaultySession {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }
    fn advance(&mut self, steps: u64) -> Result<f64> {
        let seconds = self.inner.advance(steps)?;
        let run = self.runs.fetch_add(u64::from(steps == STEPS), Ordering::Relaxed) + 1;
        let wrong = match self.fault {
            Fault::Never => false,
            Fault::Beyond(limit) => steps > limit,
            Fault::Run(number) => steps == STEPS && run == number,
        };
        if wrong {
            let mut values = self.inner.read(0)?;
            if let Array::F64(values) = &mut values {
                values[100] = values[100].next_up();
            }
            self.inner.write(0, &values)?;
        }
        Ok(seconds)
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
}

fn measured(fault: Fault, check: Check) -> Row {
    let faulty = Faulty { cpu: CpuBackend::new(), fault, runs: Arc::default() };
    let problem = problem("2d5pt", Shape::new(&[40, 50]).unwrap(), DType::F64).unwrap();
    let settings = Settings { steps: Some(STEPS), check, seconds: 1e-4, repeats: 5, ..Settings::default() };
    measure(&Opened::new(Kind::Gpu, faulty), &problem, &settings).unwrap()
}

fn faults(row: &Row) -> String {
    row.checked.as_ref().map(|checked| checked.faults.join("; ")).unwrap_or_default()
}

#[test]
fn what_is_right_holds_and_says_what_was_compared() {
    let row = measured(Fault::Never, Check::Full);
    let checked = row.checked.clone().unwrap();
    assert!(row.holds(), "{checked:?}");
    // Two rounds of depth 6 and one step more; a tenth of the steps is added for warming up.
    assert_eq!((checked.cpu_steps, checked.repeated_steps, checked.stepwise_steps), (13, 1097, 1097));
    assert_eq!((row.steps, row.runs.len(), row.depth, row.points), (STEPS, 5, 6, 5));
    assert_eq!((row.stencil.as_str(), row.boundary.as_str(), row.domain), ("2d5pt", "fixed", None));
    let sampled = measured(Fault::Never, Check::Sampled).checked.unwrap();
    assert_eq!((sampled.cpu_steps, sampled.repeated_steps, sampled.stepwise_steps), (13, 0, 0));
    assert_eq!(measured(Fault::Never, Check::Off).checked, None);
}

#[test]
fn a_fault_that_few_steps_do_not_show_is_found_by_a_launch_a_step() {
    let row = measured(Fault::Beyond(100), Check::Full);
    assert!(!row.holds());
    let reported = faults(&row);
    assert!(
        reported.contains("after 1097 steps from a launch per step")
            && reported.contains("values of u differ"),
        "{reported}"
    );
    assert!(!reported.contains("the CPU's"), "{reported}");
    assert!(measured(Fault::Beyond(100), Check::Sampled).holds(), "as few steps are right");
}

#[test]
fn a_fault_in_few_steps_is_found_with_the_cpu() {
    let reported = faults(&measured(Fault::Beyond(12), Check::Sampled));
    assert!(
        reported.contains("after 13 steps from the CPU's: 1 of 2000 values of u differ, the first at [2, 0]"),
        "{reported}"
    );
}

/// The stepwise comparison sees the first run alone; the other runs are compared with the first.
#[test]
fn a_run_that_differs_from_the_others_is_found() {
    for run in 1..=5 {
        let reported = faults(&measured(Fault::Run(run), Check::Full));
        let expected = if run == 1 { 2 } else { run };
        assert!(
            reported.contains(&format!("run 1 and run {expected}: 1 of 2000 values")),
            "{run}: {reported}"
        );
        assert_eq!(reported.contains("a launch per step"), run == 1, "{reported}");
    }
    assert!(measured(Fault::Run(6), Check::Full).holds());
}

#[test]
fn the_baseline_is_timed_and_a_stepwise_plan_is_its_own() {
    let problem = problem("3d7pt", Shape::new(&[9, 10, 11]).unwrap(), DType::F32).unwrap();
    let settings = Settings { seconds: 1e-3, baseline: true, ..Settings::quick() };
    let faulty = Faulty { cpu: CpuBackend::new(), fault: Fault::Never, runs: Arc::default() };
    let row = measure(&Opened::new(Kind::Gpu, faulty), &problem, &settings).unwrap();
    assert!(row.ratio_to_stepwise().unwrap() > 0.0 && row.steps >= 10);
    let row = measure(&backend::open("cpu").unwrap(), &problem, &settings).unwrap();
    assert_eq!(row.ratio_to_stepwise(), Some(1.0));
    let checked = row.checked.unwrap();
    assert!(checked.faults.is_empty());
    assert_eq!((checked.cpu_steps, checked.stepwise_steps), (3, 0), "by the definition, and no second path");
}

/// A backend that promises a bound instead of bits is compared step by step, where it has a device.
#[test]
fn a_bound_is_enough_where_bits_are_not_promised() {
    match backend::open("wgpu") {
        Ok(opened) => {
            let problem = problem("2d9pt", Shape::new(&[65, 67]).unwrap(), DType::F32).unwrap();
            let row = measure(&opened, &problem, &Settings { steps: Some(10), ..Settings::quick() }).unwrap();
            assert!(row.holds(), "{:?}", row.checked);
        }
        Err(error) => println!("skipped: {error}"),
    }
}

#[test]
fn nothing_to_time_is_an_error() {
    let problem = problem("2d5pt", Shape::new(&[8, 8]).unwrap(), DType::F64).unwrap();
    let opened = backend::open("cpu").unwrap();
    for settings in
        [Settings { repeats: 0, ..Settings::quick() }, Settings { steps: Some(0), ..Settings::quick() }]
    {
        assert!(matches!(measure(&opened, &problem, &settings), Err(Error::Limit { .. })));
    }
    let huge = super::problem("2d5pt", Shape::new(&[1 << 20, 1 << 20]).unwrap(), DType::F64).unwrap();
    assert!(matches!(measure(&opened, &huge, &Settings::quick()), Err(Error::Limit { .. })));
}

/// The published figures for the H200 are 33.5 TFlop/s in f64 and 67 in f32. With one multiply-add per point
/// that is 16.75/p and 33.5/p TCells/s.
#[test]
fn the_ceiling_is_a_multiply_add_a_point() {
    let h200 = DeviceSpec::preset("h200").unwrap();
    for points in [5usize, 7, 19, 25] {
        for (dtype, tera) in [(DType::F64, 16.75), (DType::F32, 33.5)] {
            let expected = 1e3 * tera / points as f64;
            let found = ceiling(&h200, dtype, points).unwrap();
            assert!((found / expected - 1.0).abs() < 0.01, "{points} {dtype}: {found} against {expected}");
        }
    }
    assert_eq!(ceiling(&DeviceSpec { f64_flops: 0.0, ..h200.clone() }, DType::F64, 5), None);
    assert_eq!(ceiling(&h200, DType::F64, 0), None);
}
