//! Problems, backends and comparisons of the suites.
// Each suite is a program of its own and uses a part of this.
#![allow(dead_code, unused_imports, unused_macros)]

pub mod faulty;
pub mod solving;

use std::sync::Arc;
use std::time::Duration;

use abide_core::{
    Array, Backend, DType, DeviceSpec, Options, Plan, Problem, Result, Session, Shape, catalogue,
};
use abide_cpu::CpuBackend;
use abide_ranks::{Device, Ranked};

/// The methods of a session that has another as `inner`, and does as that one does: all but its steps.
macro_rules! as_inner {
    () => {
        fn plan(&self) -> &abide_core::Plan {
            self.inner.plan()
        }
        fn remaining(&self) -> u64 {
            self.inner.remaining()
        }
        fn read(&mut self, field: usize) -> abide_core::Result<abide_core::Array> {
            self.inner.read(field)
        }
        fn read_window(
            &mut self,
            field: usize,
            low: [usize; 3],
            high: [usize; 3],
        ) -> abide_core::Result<abide_core::Array> {
            self.inner.read_window(field, low, high)
        }
        fn write(&mut self, field: usize, values: &abide_core::Array) -> abide_core::Result<()> {
            self.inner.write(field, values)
        }
        fn write_window(
            &mut self,
            field: usize,
            low: [usize; 3],
            high: [usize; 3],
            values: &abide_core::Array,
        ) -> abide_core::Result<()> {
            self.inner.write_window(field, low, high, values)
        }
        fn set_parameter(&mut self, parameter: usize, value: f64) -> abide_core::Result<()> {
            self.inner.set_parameter(parameter, value)
        }
    };
}
pub(crate) use as_inner;

/// The methods of a communicator that has threads in a field, and does as those do: all but what is provided.
macro_rules! as_threads {
    ($inner:tt) => {
        fn rank(&self) -> usize {
            self.$inner.rank()
        }
        fn size(&self) -> usize {
            self.$inner.size()
        }
        fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
            self.$inner.send(to, tag, bytes)
        }
        fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError> {
            self.$inner.receive(from, tag)
        }
        fn check(&mut self, since: Instant) -> Result<(), CommError> {
            self.$inner.check(since)
        }
        fn abort(&mut self, reason: &str) {
            self.$inner.abort(reason);
        }
    };
}
pub(crate) use as_threads;

/// Asserts that an error comes from a rank whose wait for rank 1 failed, at its own deadline or at another rank's. Rank
/// 1 itself waits for the others later on, and may be the first to abort; so may a rank that waits for one that waits for
/// rank 1.
pub fn assert_held_up_by_rank_1(error: &str, deadline: Duration) {
    let within = format!(" within {} s", deadline.as_secs_f64());
    let own = error.contains(&format!("nothing came from rank 1{within}"));
    assert!(own || error.contains(" gave up: ") && error.contains(&within), "{error}");
}

/// Returns a problem of the catalogue.
pub fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

/// Returns a backend of one rank, a thread of its own.
pub fn cpu() -> CpuBackend {
    CpuBackend::with_threads(1).unwrap()
}

/// Returns a backend of a rank for each weight, a thread each.
pub fn ranked(weights: &[usize]) -> Ranked {
    let own = weights.to_vec();
    let make = move |ranks: usize| {
        let device = |&weight: &usize| -> Result<Device> {
            Ok(Device { backend: Arc::new(CpuBackend::with_threads(1)?), weight })
        };
        own[..ranks].iter().map(device).collect()
    };
    Ranked::new(Arc::new(cpu()), weights.len(), make).unwrap()
}

/// The CPU's backend with its sessions in others.
struct Wrapped(CpuBackend, Wrap);

/// Puts a session into another.
pub type Wrap = fn(Box<dyn Session>) -> Box<dyn Session>;

impl Backend for Wrapped {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn device(&self) -> &DeviceSpec {
        self.0.device()
    }
    fn driver(&self) -> String {
        self.0.driver()
    }
    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        self.0.plan(problem, options)
    }
    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        Ok((self.1)(self.0.open(problem, plan, fields)?))
    }
}

/// Returns a backend of a rank for each element, a thread each, whose sessions are in others where one is named.
pub fn wrapped(wraps: &'static [Option<Wrap>]) -> Ranked {
    let make = move |ranks: usize| {
        let device = |wrap: &Option<Wrap>| -> Result<Device> {
            let own = CpuBackend::with_threads(1)?;
            let backend: Arc<dyn Backend> = match *wrap {
                Some(wrap) => Arc::new(Wrapped(own, wrap)),
                None => Arc::new(own),
            };
            Ok(Device { backend, weight: 1 })
        };
        wraps[..ranks].iter().map(device).collect()
    };
    Ranked::new(Arc::new(cpu()), wraps.len(), make).unwrap()
}

/// Returns random fields of a problem.
pub fn fields(problem: &Problem) -> Vec<Array> {
    let mut random = fastrand::Rng::with_seed(11);
    let values = |field| problem.values_of(field);
    (0..problem.program.fields().len())
        .map(|field| Array::from_fn(problem.dtype, values(field), |_| 0.1 + 0.8 * random.f64()))
        .collect()
}

/// Opens a session by a backend's own plan.
pub fn open(backend: &dyn Backend, problem: &Problem, options: &Options) -> Box<dyn Session> {
    open_from(backend, problem, fields(problem), options)
}

/// Opens a session by a backend's own plan, with these fields.
pub fn open_from(
    backend: &dyn Backend,
    problem: &Problem,
    fields: Vec<Array>,
    options: &Options,
) -> Box<dyn Session> {
    let plan = backend.plan(problem, options).unwrap();
    backend.open(problem, &plan, fields).unwrap()
}

/// Checks that ranks have the bits of the definition, after some steps and after some more.
pub fn assert_same(problem: &Problem, ranked: &Ranked, options: &Options, steps: u64) {
    assert_same_from(problem, fields(problem), ranked, options, steps);
}

/// Checks the same from these fields on, and returns the session of the ranks.
pub fn assert_same_from(
    problem: &Problem,
    fields: Vec<Array>,
    ranked: &Ranked,
    options: &Options,
    steps: u64,
) -> Box<dyn Session> {
    let mut one = open_from(&CpuBackend::reference(), problem, fields.clone(), &Options::default());
    let mut several = open_from(ranked, problem, fields, options);
    let what = format!(
        "{} on {} {}, boundary {}, {:?}: {}",
        problem.program.name(),
        problem.shape,
        problem.dtype,
        problem.boundaries.describe(problem.shape.dimensions()),
        several.plan().ranks.as_ref().map(|ranks| (&ranks.own, ranks.depth)),
        several.plan().summary(),
    );
    for steps in [steps, 2, 1] {
        one.advance(steps).unwrap();
        several.advance(steps).unwrap();
        assert_eq!(one.remaining(), several.remaining(), "{what}");
        for (field, name) in problem.program.fields().iter().enumerate() {
            let (one, several) = (one.read(field).unwrap(), several.read(field).unwrap());
            assert!(one.same_bits(&several), "{what}: field {name} after {steps} steps");
        }
        let (one, several) = (one.scalars().unwrap(), several.scalars().unwrap());
        assert!(same_scalars(&one, &several), "{what}: {one:?}, {several:?}");
    }
    several
}

/// Returns whether scalars have the same bits; NaN is NaN.
pub fn same_scalars(one: &[f64], other: &[f64]) -> bool {
    let same =
        |(one, other): (&f64, &f64)| one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan();
    one.len() == other.len() && one.iter().zip(other).all(same)
}
