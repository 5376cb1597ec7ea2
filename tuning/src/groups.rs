//! The groups of a program's loops that a search found, kept beside the plans that tuning found fastest.

use abide_core::plan::{Fuse, Tune};
use abide_core::program::{Groups, Place, Split};
use abide_core::{DeviceSpec, Plan, Problem, Result};
use abide_planner::{plan_grouped, plan_searched};
use serde::{Deserialize, Serialize};
use web_time::Instant;

use crate::tuned::{Tuning, alone};

/// The most searches for groups that a device takes: each goes on without what was refused before.
const SEARCHES: usize = 4;

/// All that the groups of a program depend on. Tiles and what the last blocks leave idle depend on the extents, so
/// these count one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Question {
    /// The digest of the program's form: its fields, temporaries, stages and steps.
    grouped_program: String,
    dtype: String,
    extents: Vec<usize>,
    boundaries: String,
    device: String,
    driver: String,
    version: String,
}

impl Question {
    fn new(problem: &Problem, device: &DeviceSpec, driver: &str) -> Question {
        let program = &problem.program;
        let (kinds, temporaries) = (program.kinds(), program.temporaries());
        let counts = [program.fields().len(), program.parameters().len(), program.scalars().len()];
        let form = (kinds, temporaries, counts, program.steps(), program.stages());
        Question {
            grouped_program: crate::key(&[&format!("{form:?}")]),
            dtype: problem.dtype.to_string(),
            extents: problem.shape.extents().to_vec(),
            boundaries: format!("{:?} {:?}", problem.boundaries, problem.sides),
            device: device.name.clone(),
            driver: driver.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The groups that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Found {
    /// The question that is answered.
    question: Question,
    /// The program and the domain, for a reader of the file.
    searched_for: String,
    /// Seconds that the search took.
    seconds: f64,
    /// The stages that run in parts; the numbers of stages below are those of the program split so.
    splits: Vec<Split>,
    /// Of each step, the stages of each group.
    groups: Vec<Vec<Vec<usize>>>,
}

impl Tuning<'_> {
    /// Returns the plan of a problem that is not plain: where a search is asked for, in the groups that an earlier one
    /// kept or in those that are found now and kept, else `other`. `refused` says which groups of a plan the device
    /// cannot run well, by their results; the search goes on without them, a few times at most.
    ///
    /// # Errors
    ///
    /// Those of planning and of `refused`.
    pub fn grouped(
        &self,
        other: impl FnOnce() -> Result<Plan>,
        mut refused: impl FnMut(&Plan) -> Result<Vec<Vec<Place>>>,
    ) -> Result<Plan> {
        if self.options.fuse != Fuse::Search || self.problem.is_plain() {
            return other();
        }
        let keeps = self.options.tune != Tune::Off;
        if let Some(plan) = self.kept_groups().filter(|_| keeps) {
            return Ok(plan);
        }
        // Searches side by side would slow each other down, and do the same twice.
        let _alone = alone();
        if let Some(plan) = self.kept_groups().filter(|_| keeps) {
            return Ok(plan);
        }
        let begun = Instant::now();
        let (mut without, mut searches) = (Vec::new(), 1);
        let mut plan = plan_searched(self.problem, self.device, self.options, &without)?;
        let left = loop {
            let new = refused(&plan)?;
            if new.is_empty() || searches == SEARCHES {
                break new.len();
            }
            without.extend(new);
            searches += 1;
            plan = plan_searched(self.problem, self.device, self.options, &without)?;
        };
        let seconds = begun.elapsed().as_secs_f64();
        plan.notes.push(search_note(seconds, without.len(), left));
        if keeps && let Some(tiles) = plan.stepwise() {
            let (question, groups) = (self.grouped_question(), tiles.partition.groups().steps);
            let splits = tiles.partition.splits.clone();
            let searched_for = format!("{} {}", self.problem.program.name(), self.problem.shape);
            let found = Found { question, searched_for, seconds, splits, groups };
            self.tuned_plans.write(&found.question, &found);
        }
        Ok(plan)
    }

    /// Returns the plan in the groups that an earlier search kept; `None` where there are none, or they are no groups
    /// of the problem.
    fn kept_groups(&self) -> Option<Plan> {
        let question = self.grouped_question();
        let found: Found = self.tuned_plans.read(&question)?;
        if found.question != question {
            return None;
        }
        let groups = Groups { steps: found.groups };
        let mut plan = plan_grouped(self.problem, self.device, self.options, &found.splits, &groups)?;
        plan.notes.push(format!(
            "groups kept from a search for {} that took {:.1} s; --tune off searches anew",
            found.searched_for, found.seconds
        ));
        Some(plan)
    }

    fn grouped_question(&self) -> Question {
        Question::new(self.problem, self.device, &self.driver)
    }
}

fn search_note(seconds: f64, refused: usize, left: usize) -> String {
    let count = |count: usize| format!("{count} group{}", if count == 1 { "" } else { "s" });
    let mut note = format!("groups found by a search in {seconds:.1} s");
    if refused > 0 {
        note += &format!(", without {} that spill registers as compiled", count(refused));
    }
    if left > 0 {
        note += &format!("; {} still spill registers after {SEARCHES} searches", count(left));
    }
    note
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use abide_core::plan::Options;
    use abide_core::program::{Centring, Definition, Reduction};
    use abide_core::{Boundaries, Boundary, DType, Shape};
    use abide_planner::plan_stepwise;

    use super::*;
    use crate::tuned_plans::TunedPlans;

    /// Loops of which some are worth one kernel: temporaries that lie in memory otherwise.
    fn problem(extents: &[usize]) -> Problem {
        let mut p = Definition::new("chain", 2);
        p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("v", Centring::CELL);
        p.temporary("s", Centring::CELL).temporary("t", Centring::CELL);
        p.step()
            .stage("s", |s| s.set("s", s.field("u").at([0, 1]) - s.field("u").here()))
            .stage("t", |s| s.set("t", s.field("s").at([-1, 0]) + s.field("s").here()))
            .stage("v", |s| s.set("v", s.field("t").here() * s.field("v").here()))
            .stage("u", |s| s.set("u", s.field("v").at([0, -1]) + s.field("t").here()));
        let shape = Shape::new(extents).unwrap();
        Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap()
    }

    fn options(fuse: Fuse, tune: Tune) -> Options {
        Options { fuse, tune, ..Options::default() }
    }

    /// Plans as a backend does that refuses these groups, one round after another; returns the plan and the number of
    /// searches that it was shown.
    fn planned(
        folder: &Path,
        problem: &Problem,
        options: &Options,
        mut refuse: impl FnMut(usize, &Plan) -> Vec<Vec<usize>>,
    ) -> (Plan, usize) {
        let device = DeviceSpec::preset("h200").unwrap();
        let tuned_plans = TunedPlans::at(folder.to_owned());
        let tuning = Tuning {
            tuned_plans: &tuned_plans,
            device: &device,
            driver: "CUDA 13.0".to_owned(),
            problem,
            options,
        };
        let mut shown = 0;
        let refused = |plan: &Plan| {
            shown += 1;
            let partition = &plan.stepwise().unwrap().partition;
            let places = |group: &Vec<usize>| partition.places(&problem.program, group);
            Ok(refuse(shown, plan).iter().map(places).collect())
        };
        let plan = tuning.grouped(|| plan_stepwise(problem, &device, options), refused).unwrap();
        (plan, shown)
    }

    fn several(plan: &Plan) -> Vec<Vec<usize>> {
        let all = plan.stepwise().unwrap().partition.all().map(|group| group.stages.clone());
        all.filter(|stages| stages.len() > 1).collect()
    }

    fn files(folder: &Path) -> Vec<std::path::PathBuf> {
        fs::read_dir(folder).map_or(Vec::new(), |all| all.map(|one| one.unwrap().path()).collect())
    }

    const SEARCH: Options = Options {
        execution: abide_core::Execution::Auto,
        cache: abide_core::CachePolicy::Auto,
        depth: abide_core::Depth::Auto,
        tune: Tune::Kept,
        fuse: Fuse::Search,
        lowering: abide_core::Lowering::Auto,
        jam: abide_core::Jam::Auto,
        team: abide_core::Team::Auto,
        rows: abide_core::LoopRows::Auto,
        tables: abide_core::Placement::Auto,
        exchange: abide_core::plan::Exchanging::Auto,
        pin: false,
        slab: false,
    };

    #[test]
    fn a_search_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("tuned");
        let problem = problem(&[4096, 4096]);
        let none = |_: usize, _: &Plan| Vec::new();
        let (first, shown) = planned(&folder, &problem, &SEARCH, none);
        assert_eq!((shown, files(&folder).len()), (1, 1));
        assert!(first.notes.last().unwrap().starts_with("groups found by a search in "), "{:?}", first.notes);
        assert!(!several(&first).is_empty());
        let (second, shown) = planned(&folder, &problem, &SEARCH, none);
        assert_eq!(shown, 0, "nothing is searched or compiled");
        let note = second.notes.last().unwrap();
        assert!(note.starts_with("groups kept from a search for chain 4096x4096 that took "), "{note}");
        assert_eq!(second.schedule, first.schedule);
        // Nothing is kept, nor what is kept used, where tuning is off.
        let (third, shown) = planned(&folder, &problem, &options(Fuse::Search, Tune::Off), none);
        assert_eq!((shown, third.schedule == first.schedule), (1, true));
        // No other choice than a search's looks there.
        let (greedy, shown) = planned(&folder, &problem, &options(Fuse::Greedy, Tune::Kept), none);
        assert_eq!((shown, greedy.notes.len()), (0, 0));
        // A damaged file, and one without all stages, do not count and are replaced.
        let path = files(&folder).remove(0);
        let whole = fs::read_to_string(&path).unwrap();
        let mut foreign: Found = serde_json::from_str(&whole).unwrap();
        foreign.groups[0].clear();
        let foreign = serde_json::to_string(&foreign).unwrap();
        let driver = whole.replace("CUDA 13.0", "CUDA 12.0");
        assert_ne!(driver, whole);
        for damaged in [&whole[..whole.len() / 2], "", "null", &foreign, &driver] {
            fs::write(&path, damaged).unwrap();
            let (plan, shown) = planned(&folder, &problem, &SEARCH, none);
            assert_eq!((shown, plan.schedule == first.schedule), (1, true), "{damaged:.40}");
            assert_eq!(planned(&folder, &problem, &SEARCH, none).1, 0, "it is kept again");
        }
    }

    /// Stages in parts are kept as they are; a file whose parts are not the program's does not count.
    #[test]
    fn parts_of_stages_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut p = Definition::new("parts", 2);
        p.boundary(Boundary::Mirror);
        for field in ["u", "x", "y", "q"] {
            p.field(field, Centring::CELL);
        }
        p.temporary("p", Centring::CELL).scalar("most", None, "of p");
        p.step()
            .stage("p", |s| s.set("p", s.field("u").at([0, 1]) * s.field("u").at([1, 0])))
            .reduce("most", Reduction::Max, Centring::CELL, |s| s.field("p").here())
            .stage("both", |s| {
                s.set("x", s.field("x").here() * 0.5 + s.field("p").here());
                s.set("y", s.field("y").here() * s.param("most") + s.field("q").here());
            });
        let shape = Shape::new(&[4096, 4096]).unwrap();
        let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap();
        let none = |_: usize, _: &Plan| Vec::new();
        let (first, _) = planned(folder.path(), &problem, &SEARCH, none);
        let splits = |plan: &Plan| plan.stepwise().unwrap().partition.splits.clone();
        assert_eq!(splits(&first), [Split { stage: 2, parts: vec![vec![0], vec![1]] }]);
        // Of u, x, y and q each is read once, and of x and y each written once: p is nowhere.
        assert_eq!((first.traffic.load_bytes, first.traffic.store_bytes), (32.0, 16.0));
        let (second, shown) = planned(folder.path(), &problem, &SEARCH, none);
        assert_eq!((shown, second.schedule == first.schedule), (0, true));
        let path = files(folder.path()).remove(0);
        let whole = fs::read_to_string(&path).unwrap();
        for parts in [vec![vec![0, 1]], vec![vec![0], vec![0]], vec![vec![0], vec![1], vec![2]]] {
            let mut foreign: Found = serde_json::from_str(&whole).unwrap();
            foreign.splits[0].parts = parts;
            fs::write(&path, serde_json::to_string(&foreign).unwrap()).unwrap();
            let (plan, shown) = planned(folder.path(), &problem, &SEARCH, none);
            assert_eq!((shown, plan.schedule == first.schedule), (1, true));
        }
    }

    #[test]
    fn a_search_goes_on_without_what_is_refused_a_few_times() {
        let folder = tempfile::tempdir().unwrap();
        let problem = problem(&[4096, 4096]);
        let mut first = Vec::new();
        let (plan, shown) = planned(folder.path(), &problem, &SEARCH, |round, plan| {
            first = if round == 1 { several(plan) } else { std::mem::take(&mut first) };
            if round == 1 { first.clone() } else { Vec::new() }
        });
        assert_eq!(shown, 2);
        let note = plan.notes.last().unwrap();
        assert!(note.contains(", without ") && !note.contains("still"), "{note}");
        // The groups without spills are those that are kept.
        let (kept, shown) = planned(folder.path(), &problem, &SEARCH, |_, _| Vec::new());
        assert_eq!((shown, several(&kept)), (0, several(&plan)));
        let off = options(Fuse::Search, Tune::Off);
        let (plan, shown) = planned(folder.path(), &problem, &off, |_, plan| several(plan));
        assert_eq!(shown, SEARCHES);
        let note = plan.notes.last().unwrap();
        assert!(note.ends_with("still spill registers after 4 searches"), "{note}");
    }

    #[test]
    fn a_question_is_another_where_groups_may_be() {
        let base = problem(&[4096, 4096]);
        let device = DeviceSpec::preset("h200").unwrap();
        let ask = |problem: &Problem| Question::new(problem, &device, "CUDA 13.0");
        let (mut single, mut periodic, mut hotter) = (base.clone(), base.clone(), base.clone());
        single.dtype = DType::F32;
        periodic.boundaries = Boundaries::all(Boundary::Periodic);
        hotter.parameters.iter_mut().for_each(|value| *value *= 2.0);
        hotter.first_step = 17;
        let other = DeviceSpec::preset("a100").unwrap();
        let all = [
            ask(&base),
            ask(&problem(&[4096, 4097])),
            ask(&single),
            ask(&periodic),
            Question::new(&base, &other, "CUDA 13.0"),
            Question::new(&base, &device, "CUDA 12.4"),
            Question { version: "0.0.1".to_owned(), ..ask(&base) },
            Question { grouped_program: crate::key(&["another"]), ..ask(&base) },
        ];
        for (place, question) in all.iter().enumerate() {
            assert!(!all[..place].contains(question), "{question:?}");
        }
        // The values of parameters change no kernel, and the step at which a run begins no group.
        assert_eq!(ask(&base), ask(&hotter));
    }
}
