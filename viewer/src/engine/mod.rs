//! The run in its own thread: orders go in, answers and the latest picture of the field come out.
//!
//! The thread looks for orders between epochs of a sixtieth of a second and never waits for the display: a
//! frame that nobody has taken is replaced by the next one. Making frames may take at most a fixed share of
//! its time.

mod compare;
mod direct;
mod history;
mod keep;
mod latest;
mod live;
mod meter;
pub mod orders;
pub mod sampling;
mod touch;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use abide::Choice;
use abide::backend::Opened;
use thread_priority::{ThreadPriority, ThreadPriorityValue, set_current_thread_priority};

pub use compare::{Comparison, Variant};
pub use direct::{OnDevice, sharing};
pub use history::History;
pub use keep::{Keep, Recording};
pub use latest::Latest;
pub use live::Started;
pub use meter::{Status, Tempo};
pub use orders::{Answer, Order, Speed};
pub use sampling::{Extremes, Frame, Image, Section, View};
pub use touch::Touch;

/// The longest that closing waits for the run's thread, which ends after its epoch.
const FAREWELL: Duration = Duration::from_secs(2);

/// The run's priority, from 0 to 99 with 50 as the usual one: a niceness of 10.
const BELOW_NORMAL: u8 = 25;

/// A function that opens backends in place of the usual way; where it returns `None`, the library chooses. A
/// wgpu backend of an opener must be on the window's own device, which then draws fields where they lie.
pub type Opener = Box<dyn Fn(Choice) -> Option<Opened> + Send>;

/// The other end of the run's thread. Dropping it ends the thread after its epoch.
pub struct Engine {
    orders: Option<Sender<Order>>,
    answers: Receiver<Answer>,
    frames: Arc<Latest<Frame>>,
    status: Arc<Latest<Status>>,
    drawing: Arc<AtomicU64>,
    gone: Receiver<()>,
}

impl Engine {
    /// Starts the thread, which calls `wake` whenever there is news.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Engine {
        Engine::with_opener(wake, Box::new(|_| None))
    }

    /// Starts an engine whose backends are opened by `opener`.
    pub fn with_opener(wake: impl Fn() + Send + Sync + 'static, opener: Opener) -> Engine {
        let (orders, inbox) = mpsc::channel();
        let (sender, answers) = mpsc::channel();
        let (leaving, gone) = mpsc::channel();
        let frames = Arc::new(Latest::default());
        let status = Arc::new(Latest::default());
        let drawing = Arc::new(AtomicU64::new(0));
        let outlet = worker::Outlet {
            answers: sender,
            frames: frames.clone(),
            status: status.clone(),
            drawing: drawing.clone(),
            wake: Box::new(wake),
        };
        let spawned = std::thread::Builder::new().name("abide run".to_owned()).spawn(move || {
            give_way();
            worker::Worker::new(inbox, outlet, opener).work();
            // The receiver may be gone already.
            let _ = leaving.send(());
        });
        // Without a thread the inbox is gone, and every order says so.
        drop(spawned);
        Engine { orders: Some(orders), answers, frames, status, drawing, gone }
    }

    /// Gives an order. `false` where the thread has ended; by itself it ends only after a fault of its own.
    pub fn order(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }

    /// Returns the next answer, if there is one.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Returns the newest frame, unless it was taken before.
    pub fn frame(&self) -> Option<Frame> {
        self.frames.take()
    }

    /// Returns the newest status, unless it was taken before.
    pub fn status(&self) -> Option<Status> {
        self.status.take()
    }

    /// Sets how much time of the machine's cores the window takes to draw a frame, so that this time counts
    /// as display.
    pub fn drawing_takes(&self, time: Duration) {
        self.drawing.store(time.as_micros() as u64, Ordering::Relaxed);
    }
}

/// Lets the window go first where both want the machine's cores, because drawing needs few of them, and at
/// once. The threads that the run starts have the same priority.
fn give_way() {
    let below = ThreadPriorityValue::try_from(BELOW_NORMAL).map(ThreadPriority::Crossplatform);
    // Where the system refuses, frames take longer and nothing else changes.
    let _ = below.map(set_current_thread_priority);
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.orders = None;
        // A thread whose step takes longer is left behind: the process ends without it.
        if let Err(RecvTimeoutError::Timeout) = self.gone.recv_timeout(FAREWELL) {
            eprintln!("the run is still in a step; leaving it behind");
        }
    }
}
