//! Sessions that only begin steps, which a device's stream completes later: the host does not wait for steps and
//! copies, and the bits are those of the definition.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use abide_core::backend::{Peer, Planes};
use abide_core::communicator::ExportedHandle;
use abide_core::{Array, Boundaries, Boundary, DType, Options, Plan, Result, Session};
use common::{Wrap, assert_same, problem, wrapped};

/// The longest that a stream waits for another.
const DEADLINE: Duration = Duration::from_secs(20);

type Inner = Arc<Mutex<Box<dyn Session>>>;
type Work = Box<dyn FnOnce() + Send>;

/// A point of a stream, and whether it was reached.
#[derive(Clone, Default)]
struct Point(Arc<(Mutex<bool>, Condvar)>);

impl Point {
    fn reach(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
    fn wait(&self) {
        let reached = self.0.0.lock().unwrap();
        let (reached, _) = self.0.1.wait_timeout_while(reached, DEADLINE, |reached| !*reached).unwrap();
        assert!(*reached, "a stream waits for a point that is never reached");
    }
}

/// The CPU's session behind a stream of work, a thread of its own.
struct Stream {
    plan: Plan,
    inner: Inner,
    /// Exported planes whose copies the stream has not waited for yet.
    out: Arc<AtomicUsize>,
    /// The exporters' counters for the planes that this stream copied since its last acknowledgement.
    taken: Vec<Arc<AtomicUsize>>,
    /// Steps begun and not waited for.
    begun: u64,
    works: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// An export: planes of a session, from a point of its stream on.
struct Lent {
    inner: Inner,
    planes: Planes,
    made: Point,
    out: Arc<AtomicUsize>,
}

impl Stream {
    fn new(inner: Box<dyn Session>) -> Stream {
        let (plan, inner) = (inner.plan().clone(), Arc::new(Mutex::new(inner)));
        let (works, orders) = mpsc::channel::<Work>();
        let thread = thread::spawn(move || {
            let mut random = fastrand::Rng::new();
            for work in orders {
                // A device is late.
                thread::sleep(Duration::from_micros(random.u64(0..150)));
                work();
            }
        });
        let (works, thread) = (Some(works), Some(thread));
        Stream { plan, inner, out: Arc::default(), taken: Vec::new(), begun: 0, works, thread }
    }

    fn put(&self, work: impl FnOnce() + Send + 'static) {
        self.works.as_ref().unwrap().send(Box::new(work)).expect("the stream has failed");
    }

    /// Returns the session, of which nothing is under way.
    fn idle(&self) -> MutexGuard<'_, Box<dyn Session>> {
        assert_eq!(self.begun, 0, "steps are under way");
        self.wait();
        self.inner.lock().unwrap()
    }

    fn wait(&self) {
        let (done, waits) = mpsc::channel();
        self.put(move || done.send(()).unwrap());
        waits.recv().expect("the stream has failed");
    }
}

impl Session for Stream {
    fn plan(&self) -> &Plan {
        &self.plan
    }
    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.idle().advance(steps)
    }
    fn remaining(&self) -> u64 {
        0
    }
    fn read(&mut self, field: usize) -> Result<Array> {
        self.idle().read(field)
    }
    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.idle().read_window(field, low, high)
    }
    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.idle().write(field, values)
    }
    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.idle().write_window(field, low, high, values)
    }
    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.idle().set_parameter(parameter, value)
    }
    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }
}

impl Peer for Stream {
    fn begin(&mut self, steps: u64, _: &[f64]) -> Result<bool> {
        let (inner, out) = (self.inner.clone(), self.out.clone());
        self.put(move || {
            assert_eq!(out.load(Ordering::SeqCst), 0, "a step while planes are being copied");
            inner.lock().unwrap().advance(steps).unwrap();
        });
        self.begun += steps;
        Ok(true)
    }
    fn finish(&mut self) -> Result<f64> {
        self.wait();
        Ok(1e-9 * std::mem::take(&mut self.begun) as f64)
    }
    fn export(&mut self, planes: Planes) -> Result<ExportedHandle> {
        let (made, out) = (Point::default(), self.out.clone());
        let lent = Lent { inner: self.inner.clone(), planes, made: made.clone(), out: out.clone() };
        self.put(move || {
            out.fetch_add(1, Ordering::SeqCst);
            made.reach();
        });
        Ok(Box::new(lent))
    }
    fn take(&mut self, planes: Planes, handle: ExportedHandle) -> Result<()> {
        let lent = *handle.downcast::<Lent>().unwrap();
        self.taken.push(lent.out.clone());
        let inner = self.inner.clone();
        self.put(move || {
            lent.made.wait();
            let Planes { field, low, high } = lent.planes;
            let values = lent.inner.lock().unwrap().read_window(field, low, high).unwrap();
            inner.lock().unwrap().write_window(planes.field, planes.low, planes.high, &values).unwrap();
        });
        Ok(())
    }
    fn taken(&mut self) -> Result<ExportedHandle> {
        let point = Point::default();
        let reached = point.clone();
        self.put(move || reached.reach());
        Ok(Box::new((point, std::mem::take(&mut self.taken))))
    }
    fn wait_for(&mut self, point: ExportedHandle) -> Result<()> {
        let (point, lent) = *point.downcast::<(Point, Vec<Arc<AtomicUsize>>)>().unwrap();
        let own = self.out.clone();
        self.put(move || {
            point.wait();
            for out in lent {
                assert!(Arc::ptr_eq(&out, &own), "the point is of what another rank lent");
                out.fetch_sub(1, Ordering::SeqCst);
            }
        });
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.works.take());
        let joined = self.thread.take().unwrap().join();
        assert!(joined.is_ok() || thread::panicking(), "the stream has failed");
    }
}

const STREAMS: Option<Wrap> = Some(|inner| Box::new(Stream::new(inner)));

#[test]
fn a_host_that_runs_ahead_has_the_bits_of_the_definition() {
    for (name, extents) in
        [("wave", &[45, 17][..]), ("3d7pt", &[31, 5, 7]), ("1d3pt", &[47]), ("fdtd-tm", &[37, 9])]
    {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror] {
            let mut problem = problem(name, extents, DType::F64);
            problem.boundaries = Boundaries::all(boundary);
            for ranks in [&[STREAMS; 2][..], &[STREAMS; 3]] {
                assert_same(&problem, &wrapped(ranks).every(2), &Options::default(), 11);
            }
        }
    }
}

/// More exchanges than the host begins before it waits, with a remainder.
#[test]
fn a_long_run_waits_now_and_then() {
    let mut problem = problem("2d5pt", &[21, 8], DType::F32);
    problem.boundaries = Boundaries::all(Boundary::Periodic);
    assert_same(&problem, &wrapped(&[STREAMS; 2]).every(1), &Options::default(), 203);
}
