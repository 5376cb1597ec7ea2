//! A rank's exchange of planes with its neighbours, in the way on which all ranks agree.
//!
//! `messages` sends values through the host. In `copies`, sessions copy from each other's memory. In `device`, the devices
//! exchange by their own work: by puts, between steps or within them, or over a network.

mod copies;
mod device;
mod messages;

use std::ops::Range;

use abide_core::communicator::{CommError, Endpoint, RankFailure};
use abide_core::plan::Exchanging;
use abide_core::slabs::{Edge, Exchange, Side, Slabs};
use abide_core::{DType, Error, Problem, Session};

/// What a rank exchanges with its neighbours, and how.
pub(crate) struct Halo {
    endpoint: Endpoint,
    /// The names of the program's fields, for errors.
    names: Vec<String>,
    /// The index in the whole domain of the slab's first plane, for errors.
    first: isize,
    dtype: DType,
    /// The axis that is cut, and the extents of each field in the slab.
    axis: usize,
    extents: Vec<[usize; 3]>,
    exchanges: Vec<Exchange>,
    /// How all ranks exchange planes.
    way: Exchanging,
    /// Whether the session's steps store what neighbours read into their memory, so that an exchange only waits for them.
    steps_store: bool,
}

impl Halo {
    /// Agrees with all ranks on a way to exchange the planes of a slab: the one asked for, or the first of which all are able.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where not all ranks can exchange as asked; those of a communicator.
    pub fn new(
        endpoint: &Endpoint,
        slabs: &Slabs,
        slab: &Problem,
        asked: Exchanging,
        session: &mut dyn Session,
    ) -> Result<Halo, RankFailure> {
        let (rank, names) = (endpoint.rank(), slab.program.fields().to_vec());
        let mut halo = Halo {
            endpoint: endpoint.clone(),
            first: slabs.slabs[rank].first(),
            dtype: slab.dtype,
            axis: slabs.axis,
            extents: (0..names.len()).map(|field| slab.extents_of(field)).collect(),
            names,
            exchanges: slabs.exchanges(rank),
            way: Exchanging::Messages,
            steps_store: false,
        };
        halo.way = halo.agree(asked, session)?;
        halo.steps_store = halo.way == Exchanging::PeerPuts && halo.agree_on_stores(slabs, session)?;
        Ok(halo)
    }

    fn agree(&self, asked: Exchanging, session: &mut dyn Session) -> Result<Exchanging, RankFailure> {
        for &way in Exchanging::ALL.iter().filter(|&&way| asked == Exchanging::Auto || asked == way) {
            let able = match way {
                Exchanging::Auto => false,
                Exchanging::Copies => self.agree_on_copies(session)?,
                Exchanging::PeerPuts | Exchanging::Network => self.join(way, session)?,
                Exchanging::Messages => true,
            };
            if able {
                return Ok(way);
            }
        }
        let reason = match asked {
            Exchanging::PeerPuts => "not all of them store into each other's memory, each one device alone",
            Exchanging::Network => "not all of them are in one network of devices",
            _ => "not all of them reach each other's memory",
        };
        let what = format!("devices exchanging by {asked}");
        Err(Error::unsupported(what, reason, "leave --exchange out, or exchange messages").into())
    }

    /// Returns what each rank gives before the first step.
    fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, RankFailure> {
        self.endpoint.all_gather_at("the start", own)
    }

    /// Returns how planes are exchanged.
    pub fn way(&self) -> Exchanging {
        self.way
    }

    /// Hands the outermost own planes to the neighbours, and takes theirs.
    pub fn exchange(&self, session: &mut dyn Session) -> Result<(), RankFailure> {
        self.endpoint.begin_round();
        match self.way {
            Exchanging::Copies => self.exchange_copies(session),
            Exchanging::PeerPuts if self.steps_store => self.wait_for_neighbours(session),
            Exchanging::PeerPuts | Exchanging::Network => self.exchange_on_device(session),
            Exchanging::Auto | Exchanging::Messages => self.exchange_messages(session),
        }
    }

    /// Returns the box of some planes of a field.
    pub fn window(&self, field: usize, planes: Range<usize>) -> [[usize; 3]; 2] {
        let (mut low, mut high) = ([0; 3], self.extents[field]);
        (low[self.axis], high[self.axis]) = (planes.start, planes.end);
        [low, high]
    }

    /// Returns what errors call the current exchange.
    fn when(&self) -> String {
        format!("exchange {}", self.endpoint.round())
    }

    /// Returns the failure of an exchange, which names its round and the planes.
    fn failure(
        &self,
        exchange: &Exchange,
        way: &str,
        planes: impl Fn(&Edge) -> &Range<usize>,
        error: CommError,
    ) -> RankFailure {
        let edges = exchange.fields.iter().map(|edge| {
            let (name, planes) = (&self.names[edge.field], planes(edge));
            let at = |plane: usize| self.first + plane as isize;
            format!("{name} {}..{}", at(planes.start), at(planes.end))
        });
        let side = match exchange.side {
            Side::Low => "low",
            Side::High => "high",
        };
        let edges = edges.collect::<Vec<_>>().join(", ");
        let what = format!("planes {edges} {way} rank {} at the {side} side", exchange.neighbour);
        self.endpoint.failure(&self.when(), &what, error)
    }
}
