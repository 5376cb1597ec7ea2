//! Work on files beside a run, in a thread of its own.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use abide_core::{Error, Result};

/// A thread that does pieces of work, one after another, on a `W`.
///
/// Whoever hands a piece over waits until the thread is done with the one before. So two pieces are in memory at most, one that
/// is worked on and one that is handed over, and a run waits for a disk that is slower than the run, and for nothing else.
/// Where the system gives no thread, pieces are worked on as they come.
pub struct Background<W, P> {
    own: Arc<Mutex<W>>,
    work: fn(&mut W, P),
    beside: Option<(SyncSender<Option<P>>, JoinHandle<()>)>,
}

impl<W: Send + 'static, P: Send + 'static> Background<W, P> {
    /// Begins with what is worked on.
    pub fn new(own: W, work: fn(&mut W, P)) -> Background<W, P> {
        let own = Arc::new(Mutex::new(own));
        // Without room: a piece is taken when the one before is done.
        let (sender, receiver) = sync_channel(0);
        let shared = Arc::clone(&own);
        let thread = std::thread::Builder::new().name("files".to_owned());
        let thread = thread.spawn(move || follow(&shared, &receiver, work));
        Background { own, work, beside: thread.ok().map(|thread| (sender, thread)) }
    }

    /// Hands a piece over.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where the work has stopped at a defect.
    pub fn add(&mut self, piece: P) -> Result<()> {
        match &self.beside {
            Some((sender, _)) => sender.send(Some(piece)).map_err(|_| defect()),
            None => {
                (self.work)(&mut *self.own.lock().map_err(|_| defect())?, piece);
                Ok(())
            }
        }
    }

    /// Waits until all pieces are done, and returns what `look` finds then.
    ///
    /// # Errors
    ///
    /// Those of [`Background::add`].
    pub fn wait<R>(&mut self, look: impl FnOnce(&mut W) -> R) -> Result<R> {
        if let Some((sender, _)) = &self.beside {
            sender.send(None).map_err(|_| defect())?;
        }
        Ok(look(&mut *self.own.lock().map_err(|_| defect())?))
    }

    /// Ends the thread once all pieces are done, and returns what they were done on.
    ///
    /// # Errors
    ///
    /// Those of [`Background::add`].
    pub fn finish(self) -> Result<W> {
        let Background { own, beside, .. } = self;
        if let Some((sender, thread)) = beside {
            drop(sender);
            thread.join().map_err(|_| defect())?;
        }
        let own = Arc::into_inner(own).ok_or_else(defect)?;
        Ok(own.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn follow<W, P>(own: &Mutex<W>, pieces: &Receiver<Option<P>>, work: fn(&mut W, P)) {
    while let Ok(piece) = pieces.recv() {
        let (Some(piece), Ok(mut own)) = (piece, own.lock()) else { continue };
        work(&mut own, piece);
    }
}

fn defect() -> Error {
    let reason = "the thread that writes them stopped at a defect of Abide's";
    Error::invalid("the files of the run", reason, "report it, and write fewer kinds of files")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn pieces_are_done_in_their_order_and_one_waits_at_most() {
        let (begun, begins) = channel();
        let (go, goes) = channel::<()>();
        let mut all = Background::new((Vec::new(), begun, goes), |(done, begun, goes), piece: u32| {
            begun.send(piece).unwrap();
            goes.recv().unwrap();
            done.push(piece);
        });
        all.add(0).unwrap();
        assert_eq!(begins.recv(), Ok(0));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                all.add(1).unwrap();
                all
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!other.is_finished() && begins.try_recv().is_err());
            go.send(()).unwrap();
            go.send(()).unwrap();
            let mut all = other.join().unwrap();
            assert_eq!(all.wait(|(done, ..)| done.clone()).unwrap(), [0, 1]);
            assert_eq!(all.finish().unwrap().0, [0, 1]);
        });
    }

    #[test]
    fn a_defect_is_an_error_of_all_that_follows() {
        let mut all = Background::new(0, |_, is_defect: bool| {
            if is_defect {
                std::panic::resume_unwind(Box::new("defect"));
            }
        });
        all.add(false).unwrap();
        all.add(true).unwrap();
        assert!(all.wait(|_| ()).unwrap_err().to_string().contains("stopped at a defect"));
        assert!(all.add(false).is_err() && all.finish().is_err());
    }
}
