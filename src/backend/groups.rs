//! The groups of a program's loops, timed on a device.

use super::{Host, Opened, check_memory, check_pin};
use crate::backend::{LaunchTime, Timing, time_launches};
use crate::plan::Fuse;
use crate::plan::fused::{Report, report};
use crate::program::Problem;
use crate::{Error, Options, Plan, Result, Tune};

/// Plans a program that is not plain and times its groups, and its loops one by one by the same means, on the
/// program's own start. Returns the plan that ran, with its groups.
///
/// # Errors
///
/// [`Error::Unsupported`] for a plain program and for a batch; those of planning and of running.
pub fn measure_groups(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    timing: &Timing,
) -> Result<(Plan, Report)> {
    check_pin(opened, options)?;
    if problem.is_plain() || problem.is_batch() {
        let what = if problem.is_batch() { "a batch" } else { "a plain program" };
        return Err(Error::unsupported(
            format!("timing groups of {what}"),
            "groups are of the loops of a program on a single domain",
            "leave --batch out, and time the plans of plain programs",
        ));
    }
    // Nothing but the launches is timed.
    let problem = &Problem { until: None, marks: None, record: None, ..problem.clone() };
    check_memory(opened, problem, None, Host { output: 0, ..Host::of(problem) }, 0)?;
    let (mut plan, together) = timed(opened, problem, options, timing)?;
    if plan.persistent_program().is_some() {
        return Err(Error::unsupported(
            format!("timing groups of {} as one persistent kernel", plan.program),
            "all groups and steps are one launch",
            "leave --execution persistent out",
        ));
    }
    // Plans of small domains do without the bandwidth of a CPU's memory, which takes a while to measure.
    plan.device = opened.backend.device().clone();
    let one_by_one = Options { fuse: Fuse::Off, tune: Tune::Off, ..*options };
    // Of a stage in parts each part is a loop.
    let (_, alone) = timed(opened, &plan.split_problem(problem)?, &one_by_one, timing)?;
    let mut report = report(problem, &plan, &together)?.ok_or_else(|| {
        let reason = "its plan has no groups, and its session told none";
        Error::unsupported(format!("timing groups of {}", plan.program), reason, "leave --measured out")
    })?;
    report.set_times(&together, &alone);
    Ok((plan, report))
}

/// Plans and times the launches; the session's memory is given back.
fn timed(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    timing: &Timing,
) -> Result<(Plan, Vec<LaunchTime>)> {
    let plan = super::plan(opened, problem, options)?;
    let start = |field| problem.program.start(field).fill(&problem.shape_of(field)?, problem.dtype);
    let fields = (0..problem.program.fields().len()).map(start).collect::<Result<_>>()?;
    let mut session = opened.backend.open(problem, &plan, fields)?;
    let times = time_launches(&mut *session, problem.program.steps().len(), timing)?;
    Ok((session.plan().clone(), times))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::catalogue::cloverleaf;
    use crate::program::{Centring, Definition};
    use crate::{Boundary, DType, Shape, backend};

    const SHORT: Timing = Timing { warm_up: Duration::ZERO, budget: Duration::ZERO, rounds: [3, 3] };

    fn clover() -> Problem {
        let shape = Shape::new(&[96, 128]).unwrap();
        Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F32).unwrap()
    }

    /// Means of means on many cells, in three loops: even where a driver computes on the CPU's threads, bytes bind them, and
    /// groups pay.
    fn means() -> Problem {
        let mut p = Definition::new("means", 2);
        p.boundary(Boundary::Mirror).field("u", Centring::CELL);
        p.temporary("along", Centring::CELL).temporary("across", Centring::CELL);
        p.step()
            .stage("means along", |s| {
                s.set("along", (s.field("u").at([0, -1]) + s.field("u").at([0, 1])) * 0.5)
            })
            .stage("means across", |s| {
                s.set("across", (s.field("along").at([-1, 0]) + s.field("along").at([1, 0])) * 0.5);
            })
            .stage("update", |s| s.set("u", s.field("across").here() * 0.9));
        Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[2048, 2048]).unwrap(), DType::F32).unwrap()
    }

    /// Every loop that is not a copy is in one group of its step, is timed by itself, and the bytes are those of a
    /// count of arrays.
    fn check(report: &Report, problem: &Problem) {
        assert!(report.has_groups());
        let stages = problem.program.stages();
        let mut all: Vec<usize> = report.groups.iter().flat_map(|row| row.stages.clone()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "no loop is in two groups");
        for (number, stage) in stages.iter().enumerate() {
            // Copies of fields are names, and nobody reads what `revert` makes.
            let is_name = stage.name.starts_with("reset") || stage.name == "revert";
            assert!(is_name || all.contains(&number), "{}", stage.name);
        }
        for row in &report.groups {
            let seconds = (row.measured.unwrap(), row.measured_alone.unwrap());
            assert!(seconds.0 > 0.0 && seconds.1 >= 0.0, "{row:?}");
            assert!(row.bytes <= row.bytes_alone + 1.0, "{row:?}");
            assert_eq!(row.efficiency.is_some(), row.is_group(), "{row:?}");
            if let Some(efficiency) = row.efficiency {
                let expected = (row.bytes / row.bytes_alone) / (seconds.0 / seconds.1);
                assert!((efficiency - expected).abs() < 1e-12 * expected, "{row:?}");
            }
        }
        let text = report.to_string();
        assert!(text.contains("slower than their loops one by one: "), "{text}");
        assert!(text.contains("projection: off by "), "{text}");
    }

    #[test]
    fn launches_of_a_cpu_are_timed_with_the_rows_that_they_share() {
        let (opened, problem) = (backend::open("cpu").unwrap(), clover());
        let (plan, report) = measure_groups(&opened, &problem, &Options::default(), &SHORT).unwrap();
        assert_eq!(plan.program, "cloverleaf");
        check(&report, &problem);
        // Without groups, every loop stands by itself and moves what it moves alone.
        let off = Options { fuse: Fuse::Off, ..Options::default() };
        let (_, report) = measure_groups(&opened, &problem, &off, &SHORT).unwrap();
        assert!(!report.has_groups() && report.efficiency().is_none());
        assert!(report.groups.iter().all(|row| row.bytes == row.bytes_alone));
    }

    #[test]
    fn groups_of_wgpu_are_timed() {
        let opened = match backend::open("wgpu") {
            Ok(opened) => opened,
            Err(reason) => {
                let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
                assert!(required.split(',').all(|one| one.trim() != "wgpu"), "wgpu is required: {reason}");
                return println!("skipped: wgpu: {reason}");
            }
        };
        let (greedy, problem) = (Options { fuse: Fuse::Greedy, ..Options::default() }, means());
        let (plan, report) = measure_groups(&opened, &problem, &greedy, &SHORT).unwrap();
        let partition = &plan.stepwise().unwrap().partition;
        assert!(report.groups.iter().all(|row| partition.all().any(|group| group.stages == row.stages)));
        check(&report, &problem);
    }

    /// Steps that are timed launch by launch leave the fields as others do, on every backend that is there.
    #[test]
    fn timed_steps_are_steps() {
        let problem = clover();
        let start = |field: usize| {
            problem.program.start(field).fill(&problem.shape_of(field).unwrap(), problem.dtype).unwrap()
        };
        let count = problem.program.fields().len();
        for opened in backend::names().filter_map(|name| backend::open(name).ok()) {
            for fuse in [Fuse::Auto, Fuse::Greedy] {
                let options = Options { fuse, ..Options::default() };
                let plan = backend::plan(&opened, &problem, &options).unwrap();
                let mut sessions = [0, 1]
                    .map(|_| opened.backend.open(&problem, &plan, (0..count).map(start).collect()).unwrap());
                let [plain, timed] = &mut sessions;
                plain.advance(5).unwrap();
                timed.advance(1).unwrap();
                for _ in 0..3 {
                    assert!(!timed.time_step().unwrap().is_empty());
                }
                timed.advance(1).unwrap();
                for field in 0..count {
                    let [one, two] = [&mut *plain, &mut *timed].map(|session| session.read(field).unwrap());
                    let name = &problem.program.fields()[field];
                    assert!(one == two, "{name} on {} with {fuse}", opened.backend.name());
                }
                assert_eq!(plain.scalars().unwrap(), timed.scalars().unwrap());
            }
        }
    }

    #[test]
    fn a_plain_program_has_no_groups_to_time() {
        let opened = backend::open("cpu").unwrap();
        let program = crate::catalogue::find("2d5pt").unwrap().program(2).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[64, 64]).unwrap(), DType::F32).unwrap();
        let error = measure_groups(&opened, &problem, &Options::default(), &SHORT).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}
