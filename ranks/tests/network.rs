//! Ranks whose devices have a network of their own: the same bits, in rings too, and an error where a rank is lost.

use crate::common;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use abide_core::backend::{CancelCheck, DeviceCommunicator, Peer, Planes};
use abide_core::communicator::{Communicator, ExportedHandle};
use abide_core::plan::Exchanging;
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Error, Options, Problem, Result, Session};
use abide_ranks::Ranked;
use abide_ranks::threads::threads;
use common::{Wrap, as_inner, assert_same, open, problem, wrapped};

const DEADLINE: Duration = Duration::from_millis(300);

/// What is on its way, by sender and receiver.
type Mailboxes = Mutex<HashMap<(usize, usize), VecDeque<Array>>>;

/// The networks of this program, by the number in the first rank's key.
static MEETINGS: Mutex<Vec<Arc<Mailboxes>>> = Mutex::new(Vec::new());

/// How a rank's end of a network behaves.
#[derive(Clone, Copy, PartialEq)]
enum RunOptions {
    Sound,
    /// What it sends from the third exchange on is lost.
    Mute,
    /// Its third exchange fails.
    Failing,
    /// It cannot be with the others.
    Elsewhere,
}

/// The CPU's session, whose device has a network.
struct Member {
    inner: Box<dyn Session>,
    run_options: RunOptions,
    rank: usize,
    mail: Option<Arc<Mailboxes>>,
    exchanges: usize,
}

fn member(inner: Box<dyn Session>, run_options: RunOptions) -> Box<dyn Session> {
    Box::new(Member { inner, run_options, rank: 0, mail: None, exchanges: 0 })
}

impl Session for Member {
    as_inner!();
    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.inner.advance(steps)
    }
    fn peer(&mut self) -> Option<&mut dyn Peer> {
        Some(self)
    }
}

impl Peer for Member {
    fn export(&mut self, _: Planes) -> Result<ExportedHandle> {
        panic!("nothing is lent to machines elsewhere");
    }
    fn take(&mut self, _: Planes, _: ExportedHandle) -> Result<()> {
        panic!("nothing is lent to machines elsewhere");
    }
    fn taken(&mut self) -> Result<ExportedHandle> {
        panic!("nothing is lent to machines elsewhere");
    }
    fn wait_for(&mut self, _: ExportedHandle) -> Result<()> {
        panic!("nothing is lent to machines elsewhere");
    }
    fn device_communicator(&mut self) -> Option<&mut dyn DeviceCommunicator> {
        Some(self)
    }
}

impl DeviceCommunicator for Member {
    fn key(&mut self, _: Exchanging, is_first: bool) -> Option<Vec<u8>> {
        let mut communicators = MEETINGS.lock().unwrap();
        if is_first {
            communicators.push(Arc::default());
        }
        let place = u8::from(self.run_options == RunOptions::Elsewhere);
        Some([&[place], &(communicators.len() as u64).to_le_bytes()[..]].concat())
    }

    fn join(&mut self, _: Exchanging, keys: &[Vec<u8>], rank: usize, _: CancelCheck<'_>) -> Result<bool> {
        self.rank = rank;
        let (places, first) = (keys.iter().map(|key| key[0]), &keys[0][1..]);
        let number = u64::from_le_bytes(first.try_into().unwrap()) as usize;
        self.mail = Some(MEETINGS.lock().unwrap()[number - 1].clone());
        Ok(places.sum::<u8>() == 0)
    }

    fn exchange(
        &mut self,
        sent: &[(usize, Planes)],
        received: &[(usize, Planes)],
        cancel_check: CancelCheck<'_>,
    ) -> Result<()> {
        self.exchanges += 1;
        if self.run_options == RunOptions::Failing && self.exchanges == 3 {
            return Err(Error::device("cpu", "exchanging planes", "the cable is out"));
        }
        let mail = self.mail.clone().unwrap();
        for (rank, planes) in sent {
            let values = self.inner.read_window(planes.field, planes.low, planes.high)?;
            if self.run_options != RunOptions::Mute || self.exchanges < 3 {
                mail.lock().unwrap().entry((self.rank, *rank)).or_default().push_back(values);
            }
        }
        for (rank, planes) in received {
            let values = loop {
                let next = mail.lock().unwrap().get_mut(&(*rank, self.rank)).and_then(VecDeque::pop_front);
                if let Some(values) = next {
                    break values;
                }
                cancel_check()?;
            };
            self.inner.write_window(planes.field, planes.low, planes.high, &values)?;
        }
        Ok(())
    }

    fn flush(&mut self, _: CancelCheck<'_>) -> Result<()> {
        Ok(())
    }
}

const SOUND: Option<Wrap> = Some(|inner| member(inner, RunOptions::Sound));
const MUTE: Option<Wrap> = Some(|inner| member(inner, RunOptions::Mute));
const FAILING: Option<Wrap> = Some(|inner| member(inner, RunOptions::Failing));
const ELSEWHERE: Option<Wrap> = Some(|inner| member(inner, RunOptions::Elsewhere));
const NONE: Option<Wrap> = None;

/// Asks for a way by name, because threads of one process would store or export each other planes first.
fn by(exchange: Exchanging) -> Options {
    Options { exchange, ..Options::default() }
}

fn ranks(members: &'static [Option<Wrap>], every: u32) -> Ranked {
    let connect = |ranks| -> Vec<Box<dyn Communicator>> {
        threads(ranks, DEADLINE).into_iter().map(|end| Box::new(end) as Box<dyn Communicator>).collect()
    };
    wrapped(members).every(every).connected(connect)
}

/// Returns the words for how planes were exchanged.
fn word(backend: &impl Backend, problem: &Problem, options: &Options) -> &'static str {
    let mut session = open(backend, problem, options);
    session.advance(3).unwrap();
    session.take_ranks().unwrap()[0].exchange
}

#[test]
fn a_network_has_the_bits_of_one_device() {
    for (name, extents) in
        [("wave", &[45, 17][..]), ("3d7pt", &[31, 5, 7]), ("1d3pt", &[47]), ("fdtd-tm", &[37, 9])]
    {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror] {
            let mut problem = problem(name, extents, DType::F64);
            problem.boundaries = Boundaries::all(boundary);
            // Two ranks of a ring are neighbours at both sides.
            for members in [&[SOUND; 2][..], &[SOUND; 3], &[SOUND; 4]] {
                let ranked = ranks(members, 2);
                for way in [Exchanging::PeerPuts, Exchanging::Network] {
                    assert_same(&problem, &ranked, &by(way), 11);
                    assert_eq!(word(&ranked, &problem, &by(way)), way.name());
                }
            }
        }
    }
}

#[test]
fn a_way_that_is_asked_for_is_taken_or_refused() {
    let problem = problem("heat", &[41, 9], DType::F32);
    assert_eq!(word(&ranks(&[SOUND; 2], 1), &problem, &by(Exchanging::Messages)), "messages");
    let refused = |members: &'static [Option<Wrap>], way| {
        let (ranked, options) = (ranks(members, 1), by(way));
        let plan = ranked.plan(&problem, &options).unwrap();
        ranked.open(&problem, &plan, common::fields(&problem)).err().unwrap().to_string()
    };
    for members in [&[SOUND, NONE][..], &[SOUND, SOUND, ELSEWHERE]] {
        for way in [Exchanging::PeerPuts, Exchanging::Network] {
            let error = refused(members, way);
            let says = [&format!("exchanging by {way}"), "--exchange"];
            assert!(says.iter().all(|words| error.contains(*words)), "{error}");
        }
    }
    let error = refused(&[NONE; 2], Exchanging::Copies);
    assert!(error.contains("exchanging by copies"), "{error}");
    assert_eq!(word(&ranks(&[NONE; 2], 1), &problem, &by(Exchanging::Auto)), "messages");
    assert_eq!(word(&ranks(&[SOUND; 2], 1), &problem, &by(Exchanging::Auto)), "stores");
}

#[test]
fn a_lost_rank_ends_all_within_the_deadline() {
    let problem = problem("heat", &[41, 9], DType::F64);
    let cases: [(&'static [Option<Wrap>], &str); 2] =
        [(&[SOUND, MUTE, SOUND], "did not end within 0.3 s"), (&[SOUND, FAILING, SOUND], "the cable is out")];
    for (members, says) in cases {
        let ranked = ranks(members, 1);
        let mut session = open(&ranked, &problem, &by(Exchanging::Network));
        let begun = Instant::now();
        let error = session.advance(20).unwrap_err().to_string();
        assert!(begun.elapsed() < 10 * DEADLINE, "{:?}", begun.elapsed());
        assert!(error.contains(says), "{error}");
        if says.contains("within") {
            assert!(error.contains("exchange 3: planes to and from its neighbours"), "{error}");
        }
        assert_eq!(session.advance(1).unwrap_err().to_string(), error, "it stays failed");
    }
}
