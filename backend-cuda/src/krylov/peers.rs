//! Processes whose devices solve jointly, one device each: their messages about memory, launches and decisions.

use std::hash::{DefaultHasher, Hash, Hasher};

use abide_core::communicator::Endpoint;
use abide_core::solver::SolverError;
use abide_core::solver::plan::krylov::Krylov;
use abide_core::{Error, Result};
use abide_solvers::Decision;
use cudarc::driver::{result, sys};

use super::group::check_pair;
use super::loaded::{Here, Loaded};
use crate::driver::{during, is_done};
use crate::mapped::{Handle, Mapped, machine};

/// The peer processes of this process.
pub(super) struct PeerProcesses {
    endpoint: Endpoint,
    /// The first process's decision on the solve under way.
    decision: Decision,
    /// The regions of the others' slabs.
    regions: Vec<Mapped>,
}

/// The description of a process's slab that it sends to the others.
struct Handshake {
    /// An identifier of the device that no other device has.
    device: [u8; 16],
    /// A number in which layouts differ.
    layout: [u8; 8],
    region: Handle,
    /// An identifier of the machine that no other machine has.
    machine: Vec<u8>,
}

impl Handshake {
    fn bytes(&self) -> Vec<u8> {
        [&self.device[..], &self.layout, &self.region, &self.machine].concat()
    }

    fn of(bytes: &[u8]) -> Option<Handshake> {
        let (device, rest) = bytes.split_first_chunk()?;
        let (layout, rest) = rest.split_first_chunk()?;
        let (region, machine) = rest.split_first_chunk()?;
        Some(Handshake { device: *device, layout: *layout, region: *region, machine: machine.to_vec() })
    }
}

impl PeerProcesses {
    pub fn new(endpoint: Endpoint) -> PeerProcesses {
        let decision = Decision::new(endpoint.rank());
        PeerProcesses { endpoint, decision, regions: Vec::new() }
    }

    /// Maps the regions of the others' slabs, and returns the addresses of all slabs' regions.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where devices cannot work as one; [`Error::Invalid`] where their layouts are not the same.
    pub fn connect(&mut self, layout: &Krylov, here: &Here, own: &Loaded) -> Result<Vec<u64>> {
        let context = &here.member.context;
        let uuid = context.uuid().map_err(during("asking for the device's identity"))?;
        let mut hash = DefaultHasher::new();
        format!("{layout:?}").hash(&mut hash);
        let handshake = Handshake {
            device: uuid.bytes.map(|byte| byte as u8),
            layout: hash.finish().to_le_bytes(),
            region: own.shared.as_ref().map_or([0; 64], |region| region.handle),
            machine: machine().unwrap_or_default(),
        };
        let all = self.endpoint.all_gather_bytes(&handshake.bytes())?;
        let all: Option<Vec<Handshake>> = all.iter().map(|bytes| Handshake::of(bytes)).collect();
        let wrong = |reason: &str| {
            let change = "start all processes with the same arguments, on devices of one kind";
            Err(Error::invalid("the plans of processes that solve together", reason, change))
        };
        let Some(all) = all else { return wrong("a process tells something else") };
        if all.iter().any(|other| other.layout != handshake.layout) {
            return wrong("they are not the same");
        }
        context.bind_to_thread().map_err(during("binding the context"))?;
        let mut bases = Vec::with_capacity(all.len());
        for (number, other) in all.iter().enumerate() {
            if number == own.number {
                bases.push(own.arrays.arrived);
                continue;
            }
            let who = || format!("a linear system on {} processes with a CUDA device each", all.len());
            if other.machine != handshake.machine || handshake.machine.is_empty() {
                let reason = format!("those of ranks {} and {number} are on different machines", own.number);
                return Err(Error::unsupported(
                    who(),
                    reason,
                    "start all on one machine, or use --backend cpu",
                ));
            }
            let Some(device) = seen(&other.device)? else {
                let reason = format!("rank {} does not see the device of rank {number}", own.number);
                let change =
                    "let each process see the devices of all (CUDA_VISIBLE_DEVICES), or use --backend cpu";
                return Err(Error::unsupported(who(), reason, change));
            };
            check_pair(who, [(own.number, context.cu_device()), (number, device)], "rank")?;
            let region = Mapped::open(context, &other.region)
                .map_err(during("mapping a solver's memory of another process"))?;
            bases.push(region.address);
            self.regions.push(region);
        }
        Ok(bases)
    }

    /// Begins a solve, and returns what the first process decides of it.
    pub fn begin(&mut self) -> Decision {
        self.decision = Decision::new(self.endpoint.rank());
        self.decision.clone()
    }

    /// Waits for all processes before a launch, and returns the first process's `until`.
    pub fn agree(&mut self, until: u32) -> Result<u32> {
        let all = self.endpoint.all_gather_bytes(&until.to_le_bytes())?;
        let first = all.first().and_then(|bytes| bytes[..].try_into().ok()).map(u32::from_le_bytes);
        let strange = || {
            let change = "start one version of Abide everywhere";
            Error::invalid("what the first process launches", "it tells something else", change)
        };
        first.ok_or_else(strange)
    }

    /// Waits for the device's launch, as long as all other processes are there.
    pub fn wait(&mut self, here: &Here) -> Result<()> {
        here.member.context.bind_to_thread().map_err(during("binding the context"))?;
        self.endpoint.until(|| is_done(&here.stream))
    }

    /// Exchanges the final state of a launch with all processes; an error where they differ.
    pub fn compare(&mut self, left: &[u8]) -> Result<()> {
        let all = self.endpoint.all_gather_bytes(left)?;
        match all.iter().position(|other| other != left) {
            None => Ok(()),
            Some(rank) => {
                let message = format!("its sums are not those of rank {rank}");
                Err(Error::device(
                    "cuda",
                    format!("running a solver on rank {}", self.endpoint.rank()),
                    message,
                ))
            }
        }
    }

    /// Passes a launch's final state to the `Run`: on the first process, and then on the others.
    pub fn tell<R>(&mut self, tell: impl FnOnce() -> Result<R, SolverError>) -> Result<R, SolverError> {
        self.decision.told(&self.endpoint, tell)
    }
}

/// Returns the device of an identity; `None` where this process does not see it.
fn seen(identity: &[u8; 16]) -> Result<Option<sys::CUdevice>> {
    let what = "looking for another process's device";
    let count = result::device::get_count().map_err(during(what))?;
    for ordinal in 0..count {
        let device = result::device::get(ordinal).map_err(during(what))?;
        let uuid = result::device::get_uuid(device).map_err(during(what))?;
        if uuid.bytes.map(|byte| byte as u8) == *identity {
            return Ok(Some(device));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_their_bytes() {
        let handshake =
            Handshake { device: [1; 16], layout: [2; 8], region: [3; 64], machine: b"a machine".to_vec() };
        let back = Handshake::of(&handshake.bytes()).unwrap();
        assert_eq!(
            (back.device, back.layout, back.region, back.machine),
            (handshake.device, handshake.layout, handshake.region, handshake.machine)
        );
        assert!(Handshake::of(&[0; 87]).is_none() && Handshake::of(&[0; 88]).is_some());
    }
}
