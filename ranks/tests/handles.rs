//! Sessions that copy from each other's memory, in place of messages with values: the same bits, no step while planes are
//! still being copied, and an error where a handle or its return is lost.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use abide_core::backend::{Peer, Planes};
use abide_core::communicator::{CommError, Communicator, ExportedHandle, IpcHandle, Tag, What};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Error, Options, Problem, Result, Session};
use abide_ranks::threads::{Threads, threads};
use common::{Wrap, as_inner, as_threads, assert_held_up_by_rank_1, assert_same, open, problem, wrapped};

/// A field's planes, and the exporter's count of exports that are not released yet.
struct Lent(Array, Arc<AtomicUsize>);

/// The CPU's session, which counts exports whose copies it has not waited for yet.
struct Lender {
    inner: Box<dyn Session>,
    out: Arc<AtomicUsize>,
    /// The exporters' counters for the planes that this session copied since its last acknowledgement.
    taken: Vec<Arc<AtomicUsize>>,
    /// What it offers to sessions of other processes, and whether it exports planes as IPC handles.
    offer: Option<&'static [u8]>,
    packs: bool,
    ipc_handles: u8,
}

impl Lender {
    fn new(inner: Box<dyn Session>, offer: Option<&'static [u8]>) -> Lender {
        Lender { inner, out: Arc::default(), taken: Vec::new(), offer, packs: false, ipc_handles: 0 }
    }
}

impl Session for Lender {
    as_inner!();
    fn advance(&mut self, steps: u64) -> Result<f64> {
        assert_eq!(self.out.load(Ordering::SeqCst), 0, "a step while planes are being copied");
        self.inner.advance(steps)
    }
    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }
}

impl Peer for Lender {
    fn offer(&mut self) -> Option<Vec<u8>> {
        self.packs = self.offer.is_some();
        self.offer.map(<[u8]>::to_vec)
    }
    fn accepts(&mut self, offer: &[u8]) -> bool {
        self.offer == Some(offer)
    }
    fn export(&mut self, planes: Planes) -> Result<ExportedHandle> {
        self.out.fetch_add(1, Ordering::SeqCst);
        let values = self.inner.read_window(planes.field, planes.low, planes.high)?;
        if self.packs {
            return Ok(Box::new(IpcHandle(values.as_bytes().to_vec())));
        }
        Ok(Box::new(Lent(values, self.out.clone())))
    }
    fn take(&mut self, planes: Planes, handle: ExportedHandle) -> Result<()> {
        if let Some(IpcHandle(bytes)) = handle.downcast_ref::<IpcHandle>() {
            self.ipc_handles += 1;
            let values = bytes.as_chunks().0.iter().map(|&value| f64::from_ne_bytes(value)).collect();
            return self.inner.write_window(planes.field, planes.low, planes.high, &Array::F64(values));
        }
        let Lent(values, out) = *handle.downcast::<Lent>().unwrap();
        self.taken.push(out);
        self.inner.write_window(planes.field, planes.low, planes.high, &values)
    }
    fn taken(&mut self) -> Result<ExportedHandle> {
        if self.packs {
            return Ok(Box::new(IpcHandle(vec![std::mem::take(&mut self.ipc_handles)])));
        }
        Ok(Box::new(std::mem::take(&mut self.taken)))
    }
    fn wait_for(&mut self, point: ExportedHandle) -> Result<()> {
        if let Some(IpcHandle(count)) = point.downcast_ref::<IpcHandle>() {
            self.out.fetch_sub(count[0].into(), Ordering::SeqCst);
            return Ok(());
        }
        for out in *point.downcast::<Vec<Arc<AtomicUsize>>>().unwrap() {
            assert!(Arc::ptr_eq(&out, &self.out), "the point is of what another rank lent");
            out.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Sessions that export planes, and sessions that send values.
const LENDS: Option<Wrap> = Some(|inner| Box::new(Lender::new(inner, None)));
const SENDS: Option<Wrap> = None;

#[test]
fn loans_have_the_bits_of_messages() {
    for (name, extents) in
        [("wave", &[45, 17][..]), ("3d7pt", &[31, 5, 7]), ("1d3pt", &[47]), ("fdtd-tm", &[37, 9])]
    {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror] {
            let mut problem = problem(name, extents, DType::F64);
            problem.boundaries = Boundaries::all(boundary);
            // Two ranks of a ring are neighbours at both sides. Where one does not export, all send values.
            for ranks in [&[LENDS; 2][..], &[LENDS; 3], &[LENDS, SENDS, LENDS]] {
                assert_same(&problem, &wrapped(ranks).every(2), &Options::default(), 9);
            }
        }
    }
}

/// Ranks on machines apart cannot export, whatever their sessions could.
struct Apart(Threads);

impl Communicator for Apart {
    as_threads!(0);
}

fn apart(ranks: usize) -> Vec<Box<dyn Communicator>> {
    threads(ranks, DEADLINE).into_iter().map(|end| Box::new(Apart(end)) as Box<dyn Communicator>).collect()
}

/// Sessions that export to other processes too, on one machine and on another.
const PACKS: Option<Wrap> = Some(|inner| Box::new(Lender::new(inner, Some(b"here"))));
const PACKS_ELSEWHERE: Option<Wrap> = Some(|inner| Box::new(Lender::new(inner, Some(b"there"))));

/// Returns the words for how planes were exchanged.
fn word(backend: &impl Backend, problem: &Problem) -> &'static str {
    let mut session = open(backend, problem, &Options::default());
    session.advance(3).unwrap();
    session.take_ranks().unwrap()[0].exchange
}

#[test]
fn ranks_apart_send_ipc_handles_where_all_accept_them() {
    for (name, extents) in [("wave", &[45, 17][..]), ("3d7pt", &[31, 5, 7])] {
        for boundary in [Boundary::Fixed, Boundary::Periodic] {
            let mut problem = problem(name, extents, DType::F64);
            problem.boundaries = Boundaries::all(boundary);
            let cases = [
                (&[PACKS; 2][..], "copies"),
                (&[PACKS; 3], "copies"),
                (&[PACKS, LENDS, PACKS], "messages"),
                (&[PACKS, PACKS, PACKS_ELSEWHERE], "messages"),
            ];
            for (ranks, how) in cases {
                let apart = wrapped(ranks).every(2).connected(apart);
                assert_same(&problem, &apart, &Options::default(), 9);
                assert_eq!(word(&apart, &problem), how);
            }
        }
    }
}

const DEADLINE: Duration = Duration::from_millis(300);

#[test]
fn ranks_apart_send_values() {
    let apart = wrapped(&[LENDS; 3]).every(1).connected(apart);
    assert_same(&problem("gray-scott", &[41, 11], DType::F32), &apart, &Options::default(), 5);
    assert!(
        Apart(threads(1, DEADLINE).remove(0))
            .export(0, Tag { round: 1, what: What::Gathered }, vec![Box::new(())])
            .is_err()
    );
}

/// Returns whether a handle for this is lost.
type Loses = fn(What) -> bool;

/// The second rank's handles, or its returns, are lost from the third exchange on.
struct Losing {
    inner: Threads,
    loses: Loses,
}

impl Communicator for Losing {
    as_threads!(inner);
    fn shares_memory(&self) -> bool {
        true
    }
    fn export(&mut self, to: usize, tag: Tag, handles: Vec<ExportedHandle>) -> Result<(), CommError> {
        match self.inner.rank() == 1 && tag.round >= 3 && (self.loses)(tag.what) {
            true => Ok(()),
            false => self.inner.export(to, tag, handles),
        }
    }
    fn import(&mut self, from: usize, tag: Tag) -> Result<Vec<ExportedHandle>, CommError> {
        self.inner.import(from, tag)
    }
}

#[test]
fn a_lost_loan_or_return_ends_all_ranks_within_the_deadline() {
    let cases: [(Loses, &str); 2] = [
        (|what| matches!(what, What::Planes(_)), "from rank 1 at the"),
        (|what| matches!(what, What::Taken(_)), "taken by rank 1 at the"),
    ];
    for (loses, says) in cases {
        let connect = move |ranks| -> Vec<Box<dyn Communicator>> {
            let end = |inner| Box::new(Losing { inner, loses }) as Box<dyn Communicator>;
            threads(ranks, DEADLINE).into_iter().map(end).collect()
        };
        let mut problem = problem("wave", &[45, 17], DType::F32);
        problem.boundaries = Boundaries::all(Boundary::Periodic);
        let begun = Instant::now();
        let mut session =
            open(&wrapped(&[LENDS; 3]).every(2).connected(connect), &problem, &Options::default());
        let error = session.advance(20).unwrap_err();
        assert!(matches!(error, Error::Device { backend: "cpu", .. }), "{error:?}");
        let told = error.to_string();
        assert!(["exchange 3: planes u ", says].iter().all(|words| told.contains(words)), "{told}");
        assert_held_up_by_rank_1(&told, DEADLINE);
        drop(session);
        assert!(begun.elapsed() < 5 * DEADLINE, "{:?}", begun.elapsed());
    }
}
