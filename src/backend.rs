//! The backends there are, and the choice among them.

mod budget;
#[cfg(feature = "cuda")]
mod cuda;
mod devices;
mod groups;
pub mod processes;
#[cfg(feature = "wgpu")]
mod wgpu;

// What this build lacks is still a name, so that whoever asks for it is told the feature.
#[cfg(not(feature = "cuda"))]
mod cuda {
    pub(super) const BUILT: Option<super::Built> = None;
}
#[cfg(not(feature = "wgpu"))]
mod wgpu {
    pub(super) const BUILT: Option<super::Built> = None;
}

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

pub use abide_core::backend::*;
pub use abide_core::communicator;
pub use abide_core::plan::Advances;

pub(crate) use self::budget::Host;
use self::budget::check_memory;
pub use self::budget::smaller;
pub use self::devices::{Devices, Listed, VARIABLE as DEVICES_VARIABLE, count, devices, list, open_on};
pub use self::groups::measure_groups;
#[cfg(feature = "wgpu")]
pub use self::wgpu::{device_descriptor, share_wgpu};
use crate::program::Problem;
use crate::{Array, CachePolicy, Error, Measured, Options, Plan, Result};

/// Every backend, in the order in which `auto` tries them. A new one is a line here.
const TABLE: &[Entry] = &[
    Entry { name: "cuda", built: cuda::BUILT },
    Entry { name: "wgpu", built: wgpu::BUILT },
    Entry { name: "cpu", built: Some(CPU) },
];

struct Entry {
    name: &'static str,
    /// `None` where this build lacks the backend: the cargo feature of its name was left out.
    built: Option<Built>,
}

impl Entry {
    fn built(&self) -> Result<&Built> {
        self.built.as_ref().ok_or_else(|| Error::Unavailable {
            backend: self.name,
            reason: format!("it is not in this build; build abide with the feature `{}`", self.name),
        })
    }
}

/// A backend of this build.
struct Built {
    open: fn() -> Result<Opened>,
    /// How several devices advance one domain; `None` where the backend runs on one device.
    several: Option<devices::DeviceKind>,
    /// Every way in which the backend can run a problem.
    variants: fn() -> Vec<Options>,
    /// See [`ulp_bound_per_step`].
    bound: fn(&Problem, f64) -> f64,
}

const CPU: Built =
    Built { open: cpu, several: Some(devices::CPUS), variants: abide_cpu::variants, bound: exact };

fn cpu() -> Result<Opened> {
    abide_cpu::start_threads()?;
    Ok(Opened::new(Kind::Cpu, abide_cpu::CpuBackend::new()))
}

fn exact(_: &Problem, _: f64) -> f64 {
    0.0
}

/// Kind of a backend's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A GPU with its own memory.
    Gpu,
    /// A driver that computes on the CPU; slower than the CPU's own backend, so `auto` passes it over.
    Software,
    /// The CPU.
    Cpu,
}

/// A backend whose device is present.
#[derive(Clone)]
pub struct Opened {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The kind of its device.
    pub kind: Kind,
}

impl Opened {
    /// Pairs a backend with its kind.
    pub fn new(kind: Kind, backend: impl Backend + 'static) -> Self {
        Opened { backend: Arc::new(backend), kind }
    }
}

/// The backends' names, in the order in which `auto` tries them.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

fn entry(name: &str) -> Result<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == name).ok_or_else(|| Error::unknown("backend", name, names()))
}

/// Opens a backend by name.
///
/// ```
/// let opened = abide::backend::open("cpu")?;
/// assert_eq!(opened.backend.name(), "cpu");
/// assert!(abide::backend::open("abacus").is_err());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unknown`] for another name; [`Error::Unavailable`] where its device or driver is absent, or this build
/// lacks the backend; [`Error::Device`] where the device fails.
pub fn open(name: &str) -> Result<Opened> {
    (entry(name)?.built()?.open)()
}

/// Returns every way in which a backend can run a problem: executions, cache policies.
///
/// # Errors
///
/// [`Error::Unknown`] for another name, [`Error::Unavailable`] where this build lacks the backend.
pub fn variants(name: &str) -> Result<Vec<Options>> {
    Ok((entry(name)?.built()?.variants)())
}

/// Returns the most by which one step of a backend may differ from the reference's step from the same values,
/// in units in the last place of the largest `magnitude` of any field; 0 where the backend has the same bits.
///
/// # Errors
///
/// [`Error::Unknown`] for another name, [`Error::Unavailable`] where this build lacks the backend.
pub fn ulp_bound_per_step(name: &str, problem: &Problem, magnitude: f64) -> Result<f64> {
    Ok((entry(name)?.built()?.bound)(problem, magnitude))
}

/// The choice of the backend that runs a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// CUDA, else a hardware adapter of wgpu, else the CPU: the first that is present and can run the
    /// problem.
    #[default]
    Auto,
    /// This backend or an error.
    Named(&'static str),
}

impl Choice {
    /// The CPU.
    pub const CPU: Choice = Choice::Named("cpu");
    /// Vulkan, Metal or DX12.
    pub const WGPU: Choice = Choice::Named("wgpu");
    /// NVIDIA's CUDA.
    pub const CUDA: Choice = Choice::Named("cuda");
}

impl Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Choice::Auto => "auto",
            Choice::Named(name) => name,
        })
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Choice::Auto);
        }
        let named = names().find(|name| *name == text).map(Choice::Named);
        named.ok_or_else(|| Error::unknown("backend", text, std::iter::once("auto").chain(names())))
    }
}

/// A session, the backend that opened it, and why other backends did not.
pub(crate) struct Begun {
    pub(crate) backend: &'static str,
    pub(crate) kind: Kind,
    pub(crate) session: Box<dyn Session>,
    pub(crate) notes: Vec<String>,
}

impl Begun {
    fn of(Opened { backend, kind }: &Opened, session: Box<dyn Session>) -> Begun {
        Begun { backend: backend.name(), kind: *kind, session, notes: Vec::new() }
    }
}

/// Returns why nothing is kept for later runs, where the cache folder is not the user's alone.
pub(crate) fn cache_refusal() -> Option<String> {
    abide_tuning::refusal()
}

/// Opens a session on devices of the chosen backend. The fields are made once a backend with room for them is found.
pub(crate) fn begin(
    choice: Choice,
    devices: &Devices,
    problem: &Problem,
    options: &Options,
    host: Host,
    fields: &mut dyn Fields,
) -> Result<Begun> {
    match choice {
        Choice::Named(name) => begin_on(&open_on(name, devices)?, problem, options, host, fields),
        Choice::Auto => {
            let candidates = names().map(|name| (name, move || open_on(name, devices)));
            first_able(candidates, problem, options, host, fields)
        }
    }
}

/// Opens a session on this backend.
pub(crate) fn begin_on(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    host: Host,
    fields: &mut dyn Fields,
) -> Result<Begun> {
    let plan = affordable_plan(opened, problem, options, host, 0)?;
    let session = opened.backend.open_from(problem, &plan, fields)?;
    Ok(Begun::of(opened, session))
}

/// Opens a session on this backend from fields that are made already. The caller has asked for the memory of all else.
///
/// # Errors
///
/// Those of [`plan`]; [`Error::Limit`] where the machine or the device has no memory for what the backend takes; those
/// of the device.
pub fn open_session(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    fields: &mut dyn Fields,
) -> Result<Box<dyn Session>> {
    Ok(begin_on(opened, problem, options, Host::ASKED, fields)?.session)
}

/// Plans a problem; the plan's notes say where it follows the options only in part.
///
/// ```
/// use std::sync::Arc;
///
/// use abide::{DType, Options, Problem, Shape, backend, catalogue};
///
/// let program = Arc::new(catalogue::find("2d5pt")?.program(2)?);
/// let problem = Problem::new(program, Shape::new(&[64, 64])?, DType::F32)?;
/// let plan = backend::plan(&backend::open("cpu")?, &problem, &Options::default())?;
/// println!("{}", plan.summary());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unsupported`] where the backend cannot run the problem as the options ask; [`Error::Limit`] where no plan
/// fits the device; [`Error::Invalid`] for options that contradict the problem or each other. With options that ask
/// for tuning, also those of the device.
pub fn plan(opened: &Opened, problem: &Problem, options: &Options) -> Result<Plan> {
    check_pin(opened, options)?;
    let mut plan = opened.backend.plan(problem, options)?;
    let wish = options.cache;
    if wish != CachePolicy::Auto && plan.cache != wish {
        let has = format!("cache {wish} was asked for, the plan has cache {}", plan.cache);
        plan.notes.push(format!(
            "{has}: only persistent kernels keep cells on the chip, this plan is {}",
            plan.execution
        ));
    }
    if options.tune.measures() && opened.backend.tuner().is_none() {
        let name = opened.backend.name();
        plan.notes.push(format!(
            "tuning {} was asked for: backend {name} chooses by its model alone, there is nothing to tune",
            options.tune
        ));
    }
    Ok(plan)
}

/// Times the plans around the planner's own choice, which is the first of them; [`Error::Unsupported`] where
/// the backend has no tuner. Where the options ask for tuning, the fastest is kept for later plans.
///
/// # Errors
///
/// [`Error::Unsupported`] where the backend has no tuner, and for a batch; [`Error::Limit`] where the machine has no
/// memory for it; those of [`plan`] and of the device.
pub fn measure(opened: &Opened, problem: &Problem, options: &Options) -> Result<Vec<Measured>> {
    let tuner = opened.backend.tuner().ok_or_else(|| {
        Error::unsupported(
            format!("backend {}", opened.backend.name()),
            "it chooses by its model alone, there are no plans to measure against each other",
            "leave --measured out, or use --backend cuda or wgpu",
        )
    })?;
    check_pin(opened, options)?;
    if problem.is_batch() {
        return Err(Error::unsupported(
            format!("a batch of {} members", problem.members()),
            "plans are timed for a single domain",
            "leave --batch out: where members do not share a launch, each runs by the plan of one",
        ));
    }
    check_memory(opened, problem, None, Host { output: 0, ..Host::of(problem) }, 0)?;
    tuner.measure(problem, options)
}

/// Plans like [`plan`], once the machine is found to have memory for the problem and for `copies` of the
/// initial fields.
fn affordable_plan(
    opened: &Opened,
    problem: &Problem,
    options: &Options,
    host: Host,
    copies: usize,
) -> Result<Plan> {
    // Tuning itself takes the memory of a run.
    if options.tune.measures() {
        check_memory(opened, problem, None, host, copies)?;
    }
    let plan = plan(opened, problem, options)?;
    check_memory(opened, problem, Some(&plan), host, copies)?;
    Ok(plan)
}

/// Checks that the backend has threads to pin, if the options ask for pinned threads.
fn check_pin(opened: &Opened, options: &Options) -> Result<()> {
    if options.pin && opened.kind != Kind::Cpu {
        return Err(Error::unsupported(
            format!("backend {}", opened.backend.name()),
            "pinned threads were asked for, and its threads are the device's own",
            "leave --pin out",
        ));
    }
    Ok(())
}

/// What begins the note on a backend that `auto` passed over.
pub(crate) const PASSED_OVER: &str = "auto: ";

/// Returns whether a note of a report says only that a backend is not here, which `auto` therefore passed over. A backend that is
/// here and refused the problem is something else.
///
/// ```
/// assert!(abide::backend::is_absence("auto: backend cuda is unavailable: no driver"));
/// assert!(!abide::backend::is_absence("auto: backend wgpu cannot run this: no f64; use --dtype f32"));
/// ```
pub fn is_absence(note: &str) -> bool {
    let error = note.strip_prefix(PASSED_OVER).and_then(|error| error.strip_prefix("backend "));
    error
        .and_then(|error| error.split_once(' '))
        .is_some_and(|(_, rest)| rest.starts_with("is unavailable: "))
}

/// Opens a session on the first candidate that is present, is not [`Kind::Software`] and can run the problem.
fn first_able(
    candidates: impl Iterator<Item = (&'static str, impl Fn() -> Result<Opened>)>,
    problem: &Problem,
    options: &Options,
    host: Host,
    fields: &mut dyn Fields,
) -> Result<Begun> {
    let mut refusals: Vec<String> = Vec::new();
    let mut candidates = candidates.peekable();
    let mut made: Option<Vec<Array>> = None;
    while let Some((name, open)) = candidates.next() {
        let copies = usize::from(candidates.peek().is_some());
        let host = if made.is_some() { Host { fields: 0, reading: 0, ..host } } else { host };
        let able = open().and_then(|opened| match opened.kind {
            Kind::Software => Err(Error::Unavailable {
                backend: name,
                reason: "only a software driver is there".to_owned(),
            }),
            _ => affordable_plan(&opened, problem, options, host, copies).map(|plan| (opened, plan)),
        });
        if able.is_ok() && made.is_none() && copies == 1 {
            made = Some(fields.whole()?);
        }
        let begun = able.and_then(|(opened, plan)| {
            // The last candidate takes the fields. Candidates before it take a copy, because they may turn
            // out to be unable.
            let session = match (&made, copies) {
                (Some(made), 1) => {
                    let given = made.iter().map(Array::try_clone).collect::<Result<_>>()?;
                    opened.backend.open(problem, &plan, given)?
                }
                (Some(_), _) => opened.backend.open(problem, &plan, made.take().unwrap_or_default())?,
                (None, _) => opened.backend.open_from(problem, &plan, fields)?,
            };
            Ok(Begun::of(&opened, session))
        });
        match begun {
            Ok(begun) => {
                let notes = refusals.iter().map(|refusal| format!("{PASSED_OVER}{refusal}")).collect();
                return Ok(Begun { notes, ..begun });
            }
            Err(error @ (Error::Unavailable { .. } | Error::Unsupported { .. } | Error::Limit { .. })) => {
                refusals.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::unsupported(
        "backend auto",
        format!("none of them can ({})", refusals.join("; ")),
        "make one of them able",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, DeviceSpec, Shape};

    /// The CPU's backend under another name, which refuses every problem.
    struct Refusing(abide_cpu::CpuBackend);

    impl Backend for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }
        fn device(&self) -> &DeviceSpec {
            self.0.device()
        }
        fn driver(&self) -> String {
            self.0.driver()
        }
        fn plan(&self, _: &Problem, _: &Options) -> Result<Plan> {
            Err(Error::unsupported("backend refusing", "on principle", "ask another"))
        }
        fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
            self.0.open(problem, plan, fields)
        }
    }

    type Candidate = (&'static str, fn() -> Result<Opened>);

    const ABSENT: Candidate =
        ("absent", || Err(Error::Unavailable { backend: "absent", reason: "no driver".to_owned() }));
    const SOFTWARE: Candidate =
        ("software", || Ok(Opened::new(Kind::Software, abide_cpu::CpuBackend::new())));
    const REFUSING: Candidate =
        ("refusing", || Ok(Opened::new(Kind::Gpu, Refusing(abide_cpu::CpuBackend::new()))));
    const BROKEN: Candidate = ("broken", || Err(Error::device("broken", "starting", "lost")));
    const CPU: Candidate = ("cpu", || Ok(Opened::new(Kind::Cpu, abide_cpu::CpuBackend::new())));

    fn begin_among(candidates: &[Candidate]) -> Result<Begun> {
        begin_as(candidates, &Options::default())
    }

    fn begin_as(candidates: &[Candidate], options: &Options) -> Result<Begun> {
        let program = abide_core::catalogue::find("1d3pt")?.program(1)?;
        let problem = Problem::new(Arc::new(program), Shape::new(&[5])?, DType::F32)?;
        let fields = vec![Array::F32(vec![1.0; 5])];
        let mut fields = Given::new(&problem, fields);
        first_able(candidates.iter().copied(), &problem, options, Host::of(&problem), &mut fields)
    }

    #[test]
    fn auto_goes_on_to_the_first_that_can_and_says_why() {
        let begun = begin_among(&[ABSENT, SOFTWARE, REFUSING, CPU]).unwrap();
        assert_eq!(begun.backend, "cpu");
        let words = ["auto: backend absent is unavailable: no driver", "software driver", "on principle"];
        assert_eq!(begun.notes.len(), 3);
        let absent: Vec<bool> = begun.notes.iter().map(|note| is_absence(note)).collect();
        assert_eq!(absent, [true, true, false]);
        for (note, words) in begun.notes.iter().zip(words) {
            assert!(note.contains(words), "{note}");
        }
        assert!(begin_among(&[CPU, BROKEN]).unwrap().notes.is_empty());
    }

    #[test]
    fn only_a_cpu_has_threads_to_pin() {
        let gpu: Candidate = ("gpu", || Ok(Opened::new(Kind::Gpu, abide_cpu::CpuBackend::new())));
        let pinned = Options { pin: true, ..Options::default() };
        let one: Candidate = ("cpu", || Ok(Opened::new(Kind::Cpu, abide_cpu::CpuBackend::with_threads(1)?)));
        let begun = begin_as(&[gpu, one], &pinned).unwrap();
        assert!(begun.notes.len() == 1 && begun.notes[0].contains("leave --pin out"), "{:?}", begun.notes);
        assert!(matches!(begin_as(&[gpu], &pinned), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn auto_hides_no_fault_and_names_all_that_refuse() {
        assert!(matches!(begin_among(&[BROKEN, CPU]), Err(Error::Device { .. })));
        let error = begin_among(&[ABSENT, REFUSING]).err().unwrap().to_string();
        assert!(error.contains("no driver") && error.contains("on principle"), "{error}");
    }

    #[test]
    fn a_backend_that_was_left_out_names_its_feature() {
        let error = Entry { name: "abacus", built: None }.built().err().unwrap();
        assert!(matches!(error, Error::Unavailable { backend: "abacus", .. }));
        assert!(error.to_string().contains("feature `abacus`"), "{error}");
    }

    #[test]
    fn choices_parse() {
        assert_eq!("auto".parse(), Ok(Choice::Auto));
        assert_eq!("cpu".parse(), Ok(Choice::CPU));
        assert!("tpu".parse::<Choice>().is_err());
    }
}
