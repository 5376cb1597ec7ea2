//! The run's thread: it obeys, advances an epoch, shows, and begins again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use abide::backend::RunReport;
use abide::{Error, Result};

use super::keep::{Recorder, keep};
use super::live::Live;
use super::meter::{Meter, Status, Tempo};
use super::orders::{Answer, Order, Speed};
use super::sampling::Seen;
use super::{Frame, History, Latest, Opener, Touch, View, compare, sampling, touch};

/// The length of an epoch, and the least time between frames.
const EPOCH: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// The most that frames may take of a run's time, including drawing in the window where drawing takes the
/// same cores.
const DISPLAY_SHARE: f64 = 0.05;

/// The least time between looks at the values of a field that the window's device draws by itself.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The destination of answers, frames and the status.
pub struct Outlet {
    pub answers: Sender<Answer>,
    pub frames: Arc<Latest<Frame>>,
    pub status: Arc<Latest<Status>>,
    /// Microseconds of the machine's cores that the window takes to draw a frame.
    pub drawing: Arc<AtomicU64>,
    pub wake: Box<dyn Fn() + Send + Sync>,
}

impl Outlet {
    fn answer(&self, answer: Answer) {
        // A window that is gone hears nothing.
        let _ = self.answers.send(answer);
        (self.wake)();
    }

    fn failed(&self, doing: &'static str, error: Error) {
        self.answer(Answer::Failed { doing, error });
    }
}

/// The thread's state.
pub struct Worker {
    inbox: Receiver<Order>,
    waiting: VecDeque<Order>,
    outlet: Outlet,
    opener: Opener,
    live: Option<Live>,
    runs: u64,
    view: View,
    running: bool,
    /// Steps until the run stops by itself.
    left: Option<u64>,
    speed: Speed,
    /// Steps of the next epoch.
    batch: u64,
    meter: Meter,
    scalars: History,
    recorder: Option<Recorder>,
    /// Whether anything that a frame shows has changed.
    stale: bool,
    /// The time of the last frame; `cost` is what it cost.
    shown: Option<Instant>,
    cost: Duration,
    /// End of the last epoch, if the run went on from there.
    ended: Option<Instant>,
    /// The last look at the values of a field that the window's device draws by itself.
    looked: Option<Look>,
}

/// A look: what was looked at, the results, and how long they are good enough.
struct Look {
    view: View,
    seen: Seen,
    until: Instant,
}

/// Whether the window is still open.
enum Window {
    Open,
    Closed,
}

impl Worker {
    pub fn new(inbox: Receiver<Order>, outlet: Outlet, opener: Opener) -> Worker {
        Worker {
            inbox,
            waiting: VecDeque::new(),
            outlet,
            opener,
            live: None,
            runs: 0,
            view: View::default(),
            running: false,
            left: None,
            speed: Speed::Fastest,
            batch: 1,
            meter: Meter::new(),
            scalars: History::default(),
            recorder: None,
            stale: false,
            shown: None,
            cost: Duration::ZERO,
            ended: None,
            looked: None,
        }
    }

    /// Obeys orders and runs until the window is closed.
    pub fn work(mut self) {
        while let Window::Open = self.obey() {
            if self.running {
                self.epoch();
            }
            if self.stale && self.frame_wait().is_zero() {
                self.show();
            }
        }
        if let Some(recorder) = self.recorder.take() {
            // A recording is kept; there is no receiver left for a fault.
            let _ = recorder.finish();
        }
    }

    /// Returns the time until the next frame may be made.
    fn frame_wait(&self) -> Duration {
        let drawing = Duration::from_micros(self.outlet.drawing.load(Ordering::Relaxed));
        let cost = self.cost + drawing;
        // A run that waits is not slowed by frames, so frames may come one after another.
        let rest = if self.running { cost.div_f64(DISPLAY_SHARE).max(EPOCH) } else { Duration::ZERO };
        self.shown.map_or(Duration::ZERO, |shown| rest.saturating_sub(shown.elapsed()))
    }

    /// Takes all pending orders; waits for one where there is nothing else to do.
    fn obey(&mut self) -> Window {
        if !self.running && !self.stale && self.waiting.is_empty() {
            match self.inbox.recv() {
                Ok(order) => self.waiting.push_back(order),
                Err(_) => return Window::Closed,
            }
        }
        loop {
            match self.inbox.try_recv() {
                Ok(order) => self.waiting.push_back(order),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Window::Closed,
            }
        }
        let mut touches: Vec<Touch> = Vec::new();
        while let Some(order) = self.waiting.pop_front() {
            // Strokes that arrive at the same time are painted at the same time.
            if let Order::Touch(touch) = order {
                touches.push(touch);
                continue;
            }
            self.touch(&mut touches);
            self.follow(order);
        }
        self.touch(&mut touches);
        Window::Open
    }

    fn touch(&mut self, touches: &mut Vec<Touch>) {
        if touches.is_empty() {
            return;
        }
        let strokes = std::mem::take(touches);
        self.change("painting", |live| touch::apply(&mut live.simulation, &strokes));
    }

    /// Changes the fields by hand.
    fn change(&mut self, doing: &'static str, change: impl FnOnce(&mut Live) -> Result<()>) {
        let Some(live) = &mut self.live else { return };
        live.touched = true;
        match change(live) {
            Ok(()) => self.stale = true,
            Err(error) => self.fault(doing, error),
        }
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Start { setup, run } => match Live::start(*setup, &self.opener) {
                Ok(live) => {
                    self.end_recording();
                    self.begin(live, run);
                }
                Err(error) => self.outlet.failed("starting", error),
            },
            Order::Clear => {
                self.end_recording();
                self.live = None;
                self.set_running(false, None);
            }
            Order::Run => self.set_running(true, None),
            Order::Pause => self.set_running(false, None),
            Order::Advance(0) => {}
            Order::Advance(steps) => self.set_running(true, Some(steps)),
            Order::Speed(speed) => self.speed = speed,
            Order::Reset => self.reset(),
            Order::View(view) => {
                self.stale |= self.view != view;
                self.view = view;
            }
            Order::Parameter { name, value } => {
                let done = self.live.as_mut().map_or(Ok(()), |live| live.set_parameter(&name, value));
                if let Err(error) = done {
                    self.fault("setting the parameter", error);
                }
            }
            Order::Touch(touch) => self.touch(&mut vec![touch]),
            Order::Load { field, path } => {
                self.change("loading the file", |live| touch::load(&mut live.simulation, &field, &path));
            }
            Order::Keep(what) => {
                let Some(live) = &mut self.live else { return };
                match keep(live, &self.view, &what) {
                    Ok((file, line)) => {
                        file.into_iter().for_each(|path| self.outlet.answer(Answer::Wrote(path)));
                        line.into_iter().for_each(|line| self.outlet.answer(Answer::Command(line)));
                    }
                    Err(error) => self.outlet.failed("writing", error),
                }
            }
            Order::Record(recording) => self.record(recording),
            Order::Compare(variants) => self.compare(&variants),
            Order::CompareNoMore => {}
        }
    }

    fn begin(&mut self, live: Live, run: bool) {
        self.runs += 1;
        self.outlet.answer(Answer::Started(Box::new(live.started(self.runs))));
        self.scalars = History::new(live.simulation.problem().program.scalars().len());
        self.live = Some(live);
        self.meter = Meter::new();
        self.batch = 1;
        self.stale = true;
        self.shown = None;
        self.cost = Duration::ZERO;
        self.looked = None;
        if let Err(error) = self.note_scalars() {
            self.outlet.failed("reading the scalars", error);
        }
        self.set_running(run, None);
    }

    /// Notes the computed scalars after the present step, where there are any.
    fn note_scalars(&mut self) -> Result<()> {
        let Some(live) = &mut self.live else { return Ok(()) };
        if !live.simulation.problem().program.scalars().is_empty() {
            self.scalars.add(live.simulation.step(), &live.scalars()?);
        }
        Ok(())
    }

    fn reset(&mut self) {
        let Some(live) = &self.live else { return };
        let running = self.running;
        match Live::start(live.setup.clone(), &self.opener) {
            Ok(live) => self.begin(live, running),
            Err(error) => self.outlet.failed("starting over", error),
        }
    }

    fn set_running(&mut self, running: bool, left: Option<u64>) {
        let running = running && self.live.is_some();
        // After glances, the values are looked at once more.
        self.stale |= self.running && !running;
        self.running = running;
        self.ended = None;
        self.left = left;
        self.publish();
    }

    /// Advances for an epoch, or by the steps of a frame.
    fn epoch(&mut self) {
        let Some(live) = &mut self.live else { return };
        let depth = u64::from(live.simulation.plan().depth.max(1));
        let begun = Instant::now();
        let mut steps = match self.speed {
            // Whole passes, because steps outside of whole passes are slower.
            Speed::Fastest => (self.batch / depth).max(1) * depth,
            Speed::PerFrame(steps) => steps.max(1),
        };
        steps = self.left.map_or(steps, |left| steps.min(left));
        if let Some(recorder) = &self.recorder {
            steps = steps.min(recorder.until_due(live.simulation.step()));
        }
        let done = live.simulation.advance(steps).and_then(|seconds| live.keep_rescue().map(|()| seconds));
        let seconds = match done {
            Ok(seconds) => seconds,
            Err(error) => return self.halt("advancing", error),
        };
        let cells = live.simulation.problem().shape.cells() as u64;
        // Measures the run's progress while frames are made, not what the device could do meanwhile.
        let since = self.ended.filter(|_| self.speed == Speed::Fastest).unwrap_or(begun);
        self.meter.count(steps, since.elapsed().as_secs_f64(), cells);
        self.ended = Some(Instant::now());
        let fitting = (steps as f64 * EPOCH.as_secs_f64() / seconds.max(1e-6)) as u64;
        self.batch = fitting.clamp(1, self.batch.max(steps).saturating_mul(8));
        self.stale = true;
        if let Err(error) = self.note_scalars() {
            return self.halt("reading the scalars", error);
        }
        let Some(live) = &mut self.live else { return };
        if let Some(recorder) = &mut self.recorder
            && live.simulation.step().is_multiple_of(recorder.recording.every)
            && let Err(error) = recorder.add(&mut live.simulation)
        {
            self.recorder = None;
            self.outlet.failed("recording", error);
        }
        if let Some(left) = &mut self.left {
            *left -= steps;
            if *left == 0 {
                self.set_running(false, None);
            }
        } else if let Speed::PerFrame(_) = self.speed {
            self.rest(EPOCH.saturating_sub(begun.elapsed()));
        }
    }

    /// Waits for this time, or until there is an order.
    fn rest(&mut self, time: Duration) {
        match self.inbox.recv_timeout(time) {
            Ok(order) => self.waiting.push_back(order),
            // A window that is gone is noticed when orders are taken.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn show(&mut self) {
        let Some(live) = &mut self.live else {
            self.stale = false;
            return;
        };
        let begun = Instant::now();
        let field = live.on_device(self.view.field);
        // Only the scale of the colours needs the values of a field that the device draws. While the run goes
        // on, the values of a while ago are good enough.
        let view = View { probe: None, ..self.view.clone() };
        let good = |look: &&Look| self.running && field.is_some() && look.view == view && begun < look.until;
        let glanced = self.looked.as_ref().filter(good);
        let frame = match glanced {
            Some(look) => sampling::glance(&mut live.simulation, self.runs, &self.view, &look.seen),
            None => sampling::frame(&mut live.simulation, self.runs, &self.view),
        };
        let taken = begun.elapsed();
        let glanced = glanced.is_some();
        self.cost = if field.is_some() && !glanced { Duration::ZERO } else { taken };
        self.shown = Some(Instant::now());
        self.stale = false;
        match frame {
            Ok(mut frame) => {
                if field.is_some() && !glanced {
                    let until = begun + taken.div_f64(DISPLAY_SHARE).max(LOOK_INTERVAL);
                    self.looked = Some(Look { view, seen: Seen::of(&frame), until });
                }
                frame.field = field;
                self.outlet.frames.put(frame);
                self.publish();
            }
            Err(error) => self.halt("reading the field", error),
        }
    }

    /// Publishes the status.
    fn publish(&self) {
        let tempo = match (&self.live, self.running) {
            (None, _) => Tempo::Empty,
            (_, true) => Tempo::Running,
            (_, false) => Tempo::Paused,
        };
        self.put_status(tempo);
    }

    fn put_status(&self, tempo: Tempo) {
        let (steps, seconds) = self.meter.recent();
        let report = |live: &Live| {
            RunReport::new(live.simulation.backend(), live.simulation.plan(), steps, steps, seconds)
        };
        self.outlet.status.put(Status {
            tempo,
            step: self.live.as_ref().map_or(0, |live| live.simulation.step()),
            recent: self.live.as_ref().filter(|_| steps > 0).map(report),
            history: self.meter.history(),
            scalars: self.scalars.clone(),
            recorded: self.recorder.as_ref().map(|recorder| recorder.frames),
        });
        (self.outlet.wake)();
    }

    /// Stops at a fault after which the run can only go on elsewhere.
    fn halt(&mut self, doing: &'static str, error: Error) {
        let run = self.runs;
        self.fault(doing, error);
        if self.runs == run {
            self.set_running(false, None);
        }
    }

    /// Reports an error; goes on on the CPU where the error means that the device is gone.
    fn fault(&mut self, doing: &'static str, error: Error) {
        let lost = self.live.as_ref().is_some_and(|live| live.is_lost(&error));
        let running = self.running;
        self.outlet.failed(doing, error);
        if !lost {
            return;
        }
        self.end_recording();
        let Some(live) = self.live.take() else { return };
        match live.onto_cpu() {
            Ok(live) => {
                let step = live.simulation.step();
                self.begin(live, running);
                self.outlet.answer(Answer::Warning(format!(
                    "The device is lost; going on on the CPU from step {step}."
                )));
            }
            Err(error) => {
                self.outlet.failed("going on on the CPU", error);
                self.set_running(false, None);
            }
        }
    }

    fn record(&mut self, recording: Option<super::Recording>) {
        self.end_recording();
        if let (Some(recording), Some(live)) = (recording, &mut self.live) {
            match Recorder::new(recording, &self.view, &mut live.simulation) {
                Ok(recorder) => self.recorder = Some(recorder),
                Err(error) => self.outlet.failed("recording", error),
            }
        }
        self.publish();
    }

    fn end_recording(&mut self) {
        let Some(recorder) = self.recorder.take() else { return };
        match recorder.finish() {
            Ok(path) => self.outlet.answer(Answer::Wrote(path)),
            Err(error) => self.outlet.failed("recording", error),
        }
    }

    /// Runs two ways in turn; any order but a new view ends the comparison.
    fn compare(&mut self, variants: &[compare::Variant; 2]) {
        let Some(live) = &self.live else { return };
        self.put_status(Tempo::Comparing);
        let Worker { inbox, waiting, outlet, opener, .. } = self;
        let mut stop = || match inbox.try_recv() {
            Ok(order) => {
                let ends = !matches!(order, Order::View(_));
                waiting.push_back(order);
                ends
            }
            Err(TryRecvError::Empty) => false,
            // Noticed again when orders are taken.
            Err(TryRecvError::Disconnected) => true,
        };
        let report = |comparison| outlet.answer(Answer::Compared(comparison));
        if let Err(error) = compare::compare(&live.setup, variants, opener, report, &mut stop) {
            self.outlet.failed("comparing", error);
        }
        self.meter.forget();
        self.ended = None;
        self.publish();
    }
}
