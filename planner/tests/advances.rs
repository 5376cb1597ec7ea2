use std::ops::ControlFlow;
use std::sync::Arc;

use abide_core::backend::{Pace, Ran, Segmented, drive};
use abide_core::plan::Advances;
use abide_core::program::{Probe, Record};
use abide_core::{
    Array, DType, Depth, DeviceSpec, Execution, Options, Plan, Problem, Result, Session, Shape, catalogue,
};

use abide_planner::plan;

/// A session that does its steps and has zeros.
struct Zeros(Plan);

impl Session for Zeros {
    fn plan(&self) -> &Plan {
        &self.0
    }
    fn advance(&mut self, _: u64) -> Result<f64> {
        Ok(1e-6)
    }
    fn read(&mut self, _: usize) -> Result<Array> {
        Array::zeros(DType::F64, self.0.shape.cells())
    }
    fn read_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3]) -> Result<Array> {
        Array::zeros(DType::F64, 1)
    }
    fn write(&mut self, _: usize, _: &Array) -> Result<()> {
        Ok(())
    }
    fn write_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3], _: &Array) -> Result<()> {
        Ok(())
    }
    fn set_parameter(&mut self, _: usize, _: f64) -> Result<()> {
        Ok(())
    }
}

fn problem() -> Problem {
    let program = catalogue::find("2d5pt").unwrap().program(2).unwrap();
    Problem::new(Arc::new(program), Shape::new(&[512, 512]).unwrap(), DType::F64).unwrap()
}

/// A run that is halted at each step, whose kernel takes eight, reports single steps and their traffic.
#[test]
fn a_run_that_halts_reports_what_ran() {
    let once = 16.0 * 512.0 * 512.0;
    let probe = Probe { field: 0, index: [0, 10, 20] };
    let options = Options { execution: Execution::Streaming, depth: Depth::Steps(8), ..Options::default() };
    let run = |every: Option<u64>, steps: u64| {
        let mut problem = problem();
        problem.record = every.map(|every| Record::new(&problem.program, every, vec![probe]));
        let plan = plan(&problem, &DeviceSpec::preset("h200").unwrap(), &options).unwrap();
        let fields = [Array::zeros(DType::F64, 512 * 512).unwrap()];
        let mut session =
            Segmented::around(Segmented::new(&problem, &fields).unwrap(), Box::new(Zeros(plan)));
        let pace = Pace { epoch: std::time::Duration::from_secs(9), ..Pace::default() };
        drive("zeros", session.as_mut(), steps, pace, &mut |_, _| Ok(ControlFlow::Continue(()))).unwrap()
    };
    let halted = run(Some(1), 400);
    assert_eq!(halted.ran, Ran { advances: 400, longest: 1, passes: 400, depth: 1 });
    assert_eq!((halted.bytes_moved, halted.bytes_least), (400.0 * once, once));
    let words = halted.ran.differs(&halted.plan, halted.steps).unwrap();
    assert!(words.starts_with("400 passes, 1 step deep at the most"), "{words}");
    let four = run(Some(4), 400);
    assert_eq!(four.ran, Ran { advances: 100, longest: 4, passes: 100, depth: 4 });
    assert_eq!(four.bytes_moved, 100.0 * once);
    // Without a record, epochs are whole passes.
    let free = run(None, 400);
    assert_eq!((free.ran.passes, free.ran.depth, free.bytes_moved), (50, 8, 50.0 * once));
    assert_eq!(free.ran.differs(&free.plan, free.steps), None);
}

#[test]
fn advances_are_counted_and_cut() {
    let all = Advances::halting(17, 5);
    assert_eq!((all.steps(), all.count(), all.longest()), (17, 4, 5));
    assert_eq!(all.cut(2).iter().collect::<Vec<_>>(), [(1, 3), (2, 7)]);
    assert_eq!(Advances::one(0).count(), 0);
}
