//! The GPUs of processes: each takes one of those that its machine has.

use std::collections::BTreeSet;
use std::sync::Arc;

use abide_core::backend::Backend;
use abide_cuda::CudaBackend;
use abide_ranks::mpi::Processes;

use super::imp::Own;
use crate::backend::Kind;
use crate::backend::cuda::weight;
use crate::{Error, Result};

/// Opens the process's GPU: of those that it sees the one of its number among the machine's processes.
pub(super) fn gpu(processes: &Processes) -> Result<Own> {
    let fail = |message: String| Error::device("mpi", "dividing GPUs among processes", message);
    let gathered = |own: String| -> Result<Vec<String>> {
        let all = processes.gather(own.as_bytes()).map_err(|broken| fail(broken.to_string()))?;
        all.into_iter()
            .map(|words| String::from_utf8(words).map_err(|error| fail(error.to_string())))
            .collect()
    };
    let hosts = gathered(processes.host())?;
    let before = hosts[..processes.rank()].iter().filter(|host| **host == hosts[processes.rank()]).count();
    let there = abide_cuda::device_count()?;
    let backend = CudaBackend::with_ordinal(before % there.max(1))?;
    // All plan as the first does, because they must have the same plans.
    let costs = gathered(backend.costs().map(|cost| cost.to_bits().to_string()).join(" "))?;
    let costs =
        costs_of(&costs[0]).ok_or_else(|| fail("the first process did not tell its costs".to_owned()))?;
    let backend = backend.with_costs(costs);
    let weight = weight(backend.device(), 1);
    let all = gathered(format!("{weight} {}", backend.identity()?))?;
    let (weights, devices) = taken(&all).ok_or_else(|| fail("a process did not tell its GPU".to_owned()))?;
    if devices < all.len() {
        let change =
            "start one process a GPU, and let each see its own or all of them (CUDA_VISIBLE_DEVICES)";
        return Err(Error::limit("processes with a GPU each", all.len(), format!("{devices} GPUs"), change));
    }
    Ok((Kind::Gpu, Arc::new(backend), weights))
}

/// Returns the seconds in the message of a process.
fn costs_of(words: &str) -> Option<[f64; 3]> {
    let costs: Option<Vec<f64>> =
        words.split(' ').map(|word| Some(f64::from_bits(word.parse().ok()?))).collect();
    costs?.try_into().ok()
}

/// Returns the weights in the messages of processes, and the number of different devices.
fn taken(all: &[String]) -> Option<(Vec<usize>, usize)> {
    let pairs: Vec<(usize, &str)> = all
        .iter()
        .map(|words| words.split_once(' ').and_then(|(weight, device)| Some((weight.parse().ok()?, device))))
        .collect::<Option<_>>()?;
    let devices: BTreeSet<&str> = pairs.iter().map(|(_, device)| *device).collect();
    Some((pairs.iter().map(|(weight, _)| *weight).collect(), devices.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_tell_their_gpus() {
        let all = |words: &[&str]| {
            let all: Vec<String> = words.iter().map(|&words| words.to_owned()).collect();
            taken(&all)
        };
        assert_eq!(all(&["4800 a", "3350 b"]), Some((vec![4800, 3350], 2)));
        assert_eq!(all(&["4800 a", "4800 a", "1 b"]), Some((vec![4800, 4800, 1], 2)));
        assert_eq!(all(&["4800 a", ""]), None);
    }

    #[test]
    fn processes_tell_their_costs() {
        let costs = [0.54e-6, 1.1e-6, 0.1];
        let words = costs.map(|cost: f64| cost.to_bits().to_string()).join(" ");
        assert_eq!(costs_of(&words), Some(costs));
        assert_eq!((costs_of(""), costs_of("1 2")), (None, None));
    }
}
