//! `abide bench search`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide::fusion::{Found, Loop, Loops, Search as Settings, exhaustive, greedy, search};
use abide::io::bounded;
use abide::{Error, Result};
use abide_console::{Ended, Ending, print, print_report};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  abide bench search loops.json
  abide bench search loops.json --seed 7 --seconds 60 --json
  abide bench search few.json --method exhaustive

The file has the arrays that each loop reads, with the largest offset at which it does, and writes, in program order, and \
the most arrays that a group of several loops may touch:
  {\"capacity\": 6, \"kernels\": [{\"reads\": {\"0\": 1}, \"writes\": [1]}, {\"reads\": {\"1\": 0}, \"writes\": [2]}]}

A group costs 8 bytes per cell for each array that it reads before it writes it, and for each whose last value is read \
outside or is the program's. DeviceArguments loops make a group if they are joined by arrays that they share, and all groups must \
have an order in which no loop runs before one that it waits for. A seed gives the same groups on any number of threads, \
unless --seconds ends the search.";

/// The arguments of `bench search`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Search {
    /// The loops, their arrays and the capacity
    #[arg(value_name = "FILE.json")]
    file: PathBuf,

    /// How groups are found
    #[arg(long, value_enum, default_value_t = Method::Search)]
    method: Method,

    /// The seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// End the search after so many seconds [default: once nothing better comes, and after 8 million groups]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// Threads [default: as many as the machine has]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A way to find groups.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Method {
    /// The grouping genetic algorithm
    Search,
    /// One union after the other, each the one that saves most
    Greedy,
    /// Every partition, of ten loops at most
    Exhaustive,
}

/// The file; what else stands in it is not read.
#[derive(Deserialize)]
struct File {
    capacity: usize,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    reads: std::collections::BTreeMap<String, f64>,
    writes: Vec<usize>,
}

impl Search {
    /// Searches and prints.
    pub fn execute(&self) -> Ended {
        if self.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds < 1e9)) {
            let (asked, change) = (self.seconds.unwrap_or(0.0), "give more, or leave --seconds out");
            return Err(Ending::usage(Error::limit("seconds of a search", asked, "above 0", change)));
        }
        let (loops, unfused) = self.read()?;
        let begun = Instant::now();
        let found = match self.method {
            Method::Search => match self.threads {
                Some(threads) => pool(threads)?.install(|| self.search(&loops, begun)),
                None => self.search(&loops, begun),
            },
            Method::Greedy => greedy(&loops),
            Method::Exhaustive => exhaustive(&loops)?,
        };
        let seconds = begun.elapsed().as_secs_f64();
        let asked = found.evaluations.asked;
        let rate = asked as f64 / seconds.max(1e-9);
        if self.json {
            let reported = json!({
                "cost": found.bytes,
                "groups": found.groups,
                "group_count": found.groups.len(),
                "evaluations": asked,
                "evaluations_computed": found.evaluations.computed,
                "evaluations_per_s": rate.round(),
                "seconds": seconds,
                "seed": self.seed,
            });
            return print_report(&reported, Ok(()));
        }
        let groups = found.groups.iter().filter(|group| group.len() > 1);
        let listed: String = groups.map(|group| format!("  {}\n", words(group))).collect();
        Ok(print(&format!(
            "{} loops of {unfused} bytes per cell: {} groups of {} bytes, {:.1} % less\n{listed}\
             {asked} groups asked for, {} of them computed, in {seconds:.2} s: {rate:.3e} per second\n",
            loops.len(),
            found.groups.len(),
            found.bytes,
            100.0 * (1.0 - found.bytes as f64 / (unfused as f64).max(1.0)),
            found.evaluations.computed,
        ))?)
    }

    fn search(&self, loops: &Loops, begun: Instant) -> Found {
        let mut settings = Settings { seed: self.seed, ..Settings::default() };
        let limit = self.seconds.map(Duration::from_secs_f64);
        if limit.is_some() {
            (settings.evaluations, settings.stagnation) = (u64::MAX, usize::MAX);
        }
        let spread = |count: usize, work: &(dyn Fn(usize) + Sync)| (0..count).into_par_iter().for_each(work);
        search(loops, &settings, &spread, || limit.is_none_or(|limit| begun.elapsed() < limit))
    }

    /// Reads the file; returns the loops, and the bytes that they move one by one.
    fn read(&self) -> Result<(Loops, u64)> {
        let change = "give the loops as `abide bench search --help` describes them";
        let fault = |error: &dyn std::fmt::Display| Error::file(&self.file, error, change);
        let text = bounded::text(&self.file, bounded::LARGEST_TABLE, change)?;
        let File { capacity, kernels } = serde_json::from_str(&text).map_err(|error| fault(&error))?;
        let array =
            |name: &String| name.parse::<usize>().map_err(|_| fault(&format!("array `{name}` is no number")));
        let loops = kernels
            .iter()
            .map(|Kernel { reads, writes }| {
                let reads = reads.keys().map(array).collect::<Result<Vec<_>>>()?;
                Ok(Loop { reads, writes: writes.clone() })
            })
            .collect::<Result<Vec<_>>>()?;
        let loops = Loops::new(&loops, capacity)?;
        let unfused = loops.unfused();
        Ok((loops, unfused))
    }
}

/// Returns threads for the search alone.
fn pool(threads: NonZeroUsize) -> Result<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.get()).build();
    pool.map_err(|error| Error::device("cpu", "starting threads for the search", error))
}

fn words(group: &[usize]) -> String {
    group.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}
