//! The plans that tuning found fastest, kept on disk by the question that they answer.

use std::path::PathBuf;

use abide_core::plan::{Options, Recipe, Tune};
use abide_core::{Boundary, DeviceSpec, Problem};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All that an answer depends on. Extents count by their class and constants beyond a boundary not at all, so
/// that one answer serves many problems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The digest of the formulas of the simplified program, because kernels are made of these.
    program: String,
    dtype: String,
    size_class: Vec<u32>,
    boundaries: Vec<String>,
    execution: String,
    cache: String,
    depth: String,
    device: String,
    driver: String,
    version: String,
}

impl Question {
    /// Returns the question that a problem and options put to a device under a driver.
    pub fn new(problem: &Problem, options: &Options, device: &DeviceSpec, driver: &str) -> Question {
        let program = problem.program.simplified(problem.dtype);
        let formulas = program.stages().iter().map(|stage| format!("{:?} {:?}\n", stage.writes, stage.dag));
        let lowering = match options.lowering.keeps_loops() {
            true => {
                let Options { lowering, jam, team, rows, tables, .. } = options;
                format!("{lowering} {jam:?} {team:?} {rows:?} {tables}")
            }
            false => String::new(),
        };
        let notes = if problem.noted.is_empty() { "" } else { "notes" };
        let content =
            format!("{} fields\n{}{lowering}{notes}", program.fields().len(), formulas.collect::<String>());
        let kind = |boundary: Boundary| match boundary {
            Boundary::Constant(_) => "constant".to_owned(),
            other => other.to_string(),
        };
        let axes = 3 - problem.shape.dimensions()..3;
        Question {
            program: crate::key(&[&content]),
            dtype: problem.dtype.to_string(),
            size_class: problem.shape.extents().iter().map(|&extent| size_class(extent)).collect(),
            boundaries: axes.flat_map(|axis| problem.boundaries.0[axis]).map(kind).collect(),
            execution: options.execution.to_string(),
            cache: options.cache.to_string(),
            depth: format!("{:?}", options.depth),
            device: device.name.clone(),
            driver: driver.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Returns the class of an extent, the nearest half octave: 512 and its prime neighbours 509 and 521 are of
/// one class, which goes from 431 to 608.
fn size_class(extent: usize) -> u32 {
    (2.0 * (extent.max(1) as f64).log2()).round() as u32
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// The question that is answered.
    pub question: Question,
    /// The program and the domain that were timed, for a reader of the file.
    pub timed_on: String,
    /// The thoroughness of the tuning that found it.
    pub tune: Tune,
    /// Measured seconds per step.
    pub seconds: f64,
    /// The plan.
    pub recipe: Recipe,
}

/// A folder of tuned_plans. The folder is a convenience: where it cannot be read or written nothing is kept, and
/// nothing is lost.
pub struct TunedPlans {
    folder: Option<PathBuf>,
}

impl TunedPlans {
    /// Returns the user's tuned_plans.
    pub fn of_user() -> TunedPlans {
        TunedPlans { folder: crate::folder("tuned") }
    }

    /// Returns the tuned_plans in a folder.
    pub fn at(folder: PathBuf) -> TunedPlans {
        TunedPlans { folder: Some(folder) }
    }

    /// Returns the answer to a question; a file that cannot be understood, or answers another question, does
    /// not count.
    pub fn find(&self, question: &Question) -> Option<Winner> {
        let winner: Winner = self.read(question)?;
        (winner.question == *question).then_some(winner)
    }

    /// Keeps an answer in place of an earlier one.
    pub fn keep(&self, winner: &Winner) {
        self.write(&winner.question, winner);
    }

    /// Returns what the file of a question holds, if that is of this kind; the caller compares the question.
    pub(crate) fn read<A: DeserializeOwned>(&self, question: &impl Serialize) -> Option<A> {
        let text = crate::read(&self.folder.as_ref()?.join(name(question)?))?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes an answer to the file of its question.
    pub(crate) fn write(&self, question: &impl Serialize, answer: &impl Serialize) {
        if let (Some(folder), Some(name)) = (&self.folder, name(question))
            && let Ok(text) = serde_json::to_vec_pretty(answer)
        {
            crate::write(folder, &name, &text);
        }
    }
}

fn name(question: &impl Serialize) -> Option<String> {
    Some(crate::key(&[&serde_json::to_string(question).ok()?]) + ".json")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use abide_core::plan::streaming::warp;
    use abide_core::plan::{CachePolicy, Depth, Execution, persistent};
    use abide_core::{Boundaries, DType, LinearStencil, Program, Shape, catalogue};

    use super::*;

    fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
    }

    fn ask(problem: &Problem) -> Question {
        Question::new(problem, &Options::default(), &DeviceSpec::preset("h200").unwrap(), "CUDA 13.0")
    }

    fn winner(question: Question) -> Winner {
        let configuration = persistent::Configuration {
            threads: [1, 256],
            cells_per_thread: [1, 2],
            blocks_per_multiprocessor: 2,
            chunk: 4,
        };
        let recipe = Recipe::Persistent { cache: CachePolicy::Mixed, configuration, whole: true };
        // A number without a short decimal form.
        let seconds = 0.1f64.powi(5) / 3.0;
        Winner { question, timed_on: "2d5pt 512x512".to_owned(), tune: Tune::Full, seconds, recipe }
    }

    #[test]
    fn what_is_kept_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tuned_plans = TunedPlans::at(folder.path().join("not").join("there"));
        let question = ask(&problem("2d5pt", &[512, 512], DType::F64));
        assert_eq!(tuned_plans.find(&question), None);
        let first = winner(question.clone());
        tuned_plans.keep(&first);
        assert_eq!(tuned_plans.find(&question), Some(first.clone()));
        let configuration = warp::Configuration {
            depth: 8,
            warps: 1,
            cells_per_thread: [1, 4],
            lag: false,
            ahead: 5,
            carried_shared: 0,
            blocks_per_multiprocessor: 8,
            waves: 2,
        };
        for recipe in [Recipe::WarpStreaming { configuration }, Recipe::Stepwise] {
            let second = Winner { recipe, tune: Tune::Quick, ..first.clone() };
            tuned_plans.keep(&second);
            assert_eq!(tuned_plans.find(&question), Some(second));
        }
        let files = fs::read_dir(folder.path().join("not").join("there")).unwrap().count();
        assert_eq!(files, 1, "one file a question, and no half-written ones");
    }

    #[test]
    fn a_question_is_another_where_the_answer_may_be() {
        let base = problem("2d5pt", &[512, 512], DType::F64);
        let with = |boundary: Boundary| Problem { boundaries: Boundaries::all(boundary), ..base.clone() };
        let device = DeviceSpec::preset("h200").unwrap();
        let under = |options: Options| Question::new(&base, &options, &device, "CUDA 13.0");
        let mut all = vec![
            ask(&base),
            ask(&problem("2d5pt", &[512, 512], DType::F32)),
            ask(&problem("2d5pt", &[512, 1024], DType::F64)),
            ask(&problem("2d5pt", &[640, 512], DType::F64)),
            ask(&problem("2d9pt", &[512, 512], DType::F64)),
            ask(&with(Boundary::Periodic)),
            ask(&with(Boundary::Mirror)),
            ask(&with(Boundary::Constant(1.0))),
            under(Options { execution: Execution::Persistent, ..Options::default() }),
            under(Options { cache: CachePolicy::Shared, ..Options::default() }),
            under(Options { depth: Depth::Steps(4), ..Options::default() }),
            Question::new(&base, &Options::default(), &device, "CUDA 12.4"),
            Question::new(&base, &Options::default(), &DeviceSpec::preset("a100").unwrap(), "CUDA 13.0"),
        ];
        all.push(Question { version: "0.0.1".to_owned(), ..ask(&base) });
        let names: std::collections::HashSet<_> =
            all.iter().map(|question| name(question).unwrap()).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_question_is_the_same_where_the_answer_is() {
        let base = problem("2d5pt", &[512, 512], DType::F64);
        assert_eq!(ask(&base), ask(&problem("2d5pt", &[509, 521], DType::F64)));
        let constant =
            |value| Problem { boundaries: Boundaries::all(Boundary::Constant(value)), ..base.clone() };
        assert_eq!(ask(&constant(0.0)), ask(&constant(2.5)));
        let tuned = Options { tune: Tune::Full, ..Options::default() };
        let device = DeviceSpec::preset("h200").unwrap();
        assert_eq!(Question::new(&base, &tuned, &device, "CUDA 13.0"), ask(&base));
        // Programs are distinguished by their formula, not by their name.
        let taps = |edge: f64| [([-1], edge), ([0], 0.5), ([1], edge)];
        let of = |name: &str, edge: f64| {
            let program = Program::new(&LinearStencil::new(name, &taps(edge)).unwrap()).unwrap();
            ask(&Problem::new(Arc::new(program), Shape::new(&[99]).unwrap(), DType::F64).unwrap())
        };
        assert_eq!(of("mine", 0.25), of("yours", 0.25));
        assert_ne!(of("mine", 0.25), of("mine", 0.125));
        // The value of a parameter changes no kernel.
        let heat = problem("heat", &[64, 64], DType::F32);
        let hotter =
            Problem { parameters: heat.parameters.iter().map(|p| 2.0 * p).collect(), ..heat.clone() };
        assert_eq!(ask(&heat), ask(&hotter));
    }

    #[test]
    fn classes_are_half_octaves() {
        assert_eq!([1, 2, 509, 512, 521, 8191, 8352].map(size_class), [0, 2, 18, 18, 18, 26, 26]);
        // The bounds of a class are powers of two by odd quarters: 2^8.75 = 430.5, 2^9.25 = 608.9.
        assert_eq!([430, 431, 608, 609].map(size_class), [17, 18, 18, 19]);
    }

    #[test]
    fn a_damaged_file_is_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let tuned_plans = TunedPlans::at(folder.path().to_owned());
        let question = ask(&problem("2d5pt", &[512, 512], DType::F64));
        tuned_plans.keep(&winner(question.clone()));
        let path = folder.path().join(name(&question).unwrap());
        let whole = fs::read_to_string(&path).unwrap();
        let foreign = whole.replace("CUDA 13.0", "CUDA 12.0");
        assert_ne!(foreign, whole);
        let unknown = whole.replace("\"persistent\"", "\"spiral\"");
        assert_ne!(unknown, whole);
        for damaged in [&whole[..whole.len() / 2], "", "null", "[1, 2]", &foreign, &unknown] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(tuned_plans.find(&question), None, "{damaged}");
        }
        fs::write(&path, [0xff, 0x00, 0xfe]).unwrap();
        assert_eq!(tuned_plans.find(&question), None);
        tuned_plans.keep(&winner(question.clone()));
        assert_eq!(tuned_plans.find(&question), Some(winner(question)));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_no_error() {
        let place = tempfile::NamedTempFile::new().unwrap();
        // A folder below a file.
        for tuned_plans in [TunedPlans::at(place.path().join("tuned")), TunedPlans { folder: None }] {
            let question = ask(&problem("2d5pt", &[512, 512], DType::F64));
            tuned_plans.keep(&winner(question.clone()));
            assert_eq!(tuned_plans.find(&question), None);
        }
    }
}
