//! The communicator over MPI, tried by the processes that a launcher starts: `mpirun -np 4 PROGRAM`. Each process runs all cases,
//! in step with the others; started alone, it says so and tries nothing.

mod common;

use std::time::{Duration, Instant};

use abide_core::communicator::{CommError, Communicator, Tag, What};
use abide_core::slabs::Side;
use abide_core::{Boundaries, Boundary, DType, Error, Options};
use abide_ranks::CommunicatorFactory;
use abide_ranks::mpi::{Mpi, Processes, is_launched};
use common::{assert_same, problem, ranked};

const DEADLINE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

type Case = fn(&Processes);

const CASES: [(&str, Case); 6] = [
    ("messages_are_taken_by_their_tag_in_any_order", tags),
    ("large_messages_do_not_wait_for_the_receiver", large),
    ("all_ranks_gather_and_meet", gather),
    ("a_wait_ends_at_its_deadline_and_where_a_rank_is_gone_or_gives_up", ends),
    ("a_process_without_a_plan_is_told_to_all", plans),
    ("sessions_have_the_bits_of_one_rank_in_all_processes", sessions),
];

fn main() {
    let joined = if is_launched() { Processes::join(DEADLINE).unwrap() } else { None };
    let Some(processes) = joined else {
        println!("skipped: the communicator over MPI (no launcher started several processes)");
        return;
    };
    for (name, case) in CASES {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&processes)));
        if ran.is_err() {
            println!("test {name} ... FAILED (rank {})", processes.rank());
            processes.close(1, name);
            processes.end(1);
            std::process::exit(1);
        }
        if processes.rank() == 0 {
            println!("test {name} ... ok");
        }
    }
    if processes.rank() == 0 {
        println!("test result: ok. {} passed; 0 failed; 0 ignored", CASES.len());
    }
    processes.close(0, "");
    processes.end(0);
}

fn tag(round: u64) -> Tag {
    Tag { round, what: What::Planes(Side::Low) }
}

/// Returns the ranks before and after this one, in a ring.
fn neighbours(end: &Mpi) -> [usize; 2] {
    [(end.rank() + end.size() - 1) % end.size(), (end.rank() + 1) % end.size()]
}

fn tags(processes: &Processes) {
    let mut end = processes.connect(DEADLINE);
    let [low, high] = neighbours(&end);
    for round in [3, 1, 2] {
        end.send(high, tag(round), vec![round as u8, end.rank() as u8]).unwrap();
    }
    let other = Tag { what: What::Planes(Side::High), ..tag(1) };
    end.send(high, other, vec![9]).unwrap();
    for round in [1, 2, 3] {
        assert_eq!(end.receive(low, tag(round)), Ok(vec![round as u8, low as u8]));
    }
    assert_eq!(end.receive(low, other), Ok(vec![9]));
    // A rank may send to itself.
    let own = end.rank();
    end.send(own, tag(7), vec![7]).unwrap();
    assert_eq!(end.receive(own, tag(7)), Ok(vec![7]));
    end.barrier(1).unwrap();
}

fn large(processes: &Processes) {
    let mut end = processes.connect(DEADLINE);
    let [low, high] = neighbours(&end);
    let bytes = |rank: usize| -> Vec<u8> { (0..20_000_000).map(|at| ((at * 31) ^ rank) as u8).collect() };
    for round in [1, 2] {
        end.send(high, tag(round), bytes(end.rank())).unwrap();
    }
    for round in [2, 1] {
        assert!(end.receive(low, tag(round)) == Ok(bytes(low)));
    }
}

fn gather(processes: &Processes) {
    let mut end = processes.connect(DEADLINE);
    for round in 0..50 {
        let own = vec![end.rank() as u8; end.rank() + round];
        let all = end.all_gather(round as u64, &own).unwrap();
        let right = (0..end.size()).map(|rank| vec![rank as u8; rank + round]);
        assert!(all.into_iter().eq(right));
    }
    end.barrier(50).unwrap();
    let own = processes.rank() as u8;
    assert_eq!(processes.gather(&[own]).unwrap()[0], [0]);
}

fn ends(processes: &Processes) {
    let mut end = processes.connect(SHORT);
    let last = processes.size() - 1;
    let begun = Instant::now();
    let late = Err(CommError::Late { from: last, within: SHORT });
    assert_eq!(end.receive(last, tag(1)), late);
    assert!(begun.elapsed() < 20 * SHORT);
    processes.gather(&[]).unwrap();
    drop(end);

    let mut end = processes.connect(DEADLINE);
    if end.rank() == last {
        end.send(0, tag(1), vec![1]).unwrap();
        drop(end);
    } else {
        assert_eq!(end.receive(last, tag(2)), Err(CommError::Gone { rank: last }));
        // What was sent before is still there.
        assert!(end.rank() != 0 || end.receive(last, tag(1)) == Ok(vec![1]));
        drop(end);
    }
    processes.gather(&[]).unwrap();

    let mut end = processes.connect(DEADLINE);
    if end.rank() == last {
        end.abort("no memory");
        end.abort("again");
    }
    let aborted = Err(CommError::Aborted { rank: last, reason: "no memory".to_owned() });
    assert_eq!(end.receive(0, tag(1)), aborted);
    assert_eq!(end.receive(last, tag(2)), aborted);
    processes.gather(&[]).unwrap();
}

fn plans(processes: &Processes) {
    assert_eq!(processes.of_first(Ok(5 + processes.rank() as u32), "heat"), Ok(5));
    let words = if processes.rank() == 1 { "wave" } else { "heat" };
    let told = processes.of_first(Ok(1), words).unwrap_err().to_string();
    assert!(told.contains("rank 1 runs wave, rank 0 heat; start all"), "{told}");
    let last = processes.size() - 1;
    let error = Error::limit("memory", 2, 1, "take less");
    let own = if processes.rank() == last { Err(error.clone()) } else { Ok(1) };
    let told = processes.of_first(own, "heat").unwrap_err();
    match processes.rank() == last {
        true => assert_eq!(told, error),
        false => assert!(told.to_string().contains(&format!("rank {last} has none")), "{told}"),
    }
}

/// Every process compares all fields and scalars with those of the definition.
fn sessions(processes: &Processes) {
    let periodic = Boundaries::all(Boundary::Periodic);
    for (name, extents, boundaries) in [
        ("2d5pt", &[37, 21][..], None),
        ("heat", &[40, 16], Some(periodic)),
        ("3d7pt", &[23, 9, 10], None),
        ("wave", &[41, 12], None),
    ] {
        let weights: Vec<usize> = (0..processes.size()).map(|rank| 1 + rank % 2).collect();
        let mut problem = problem(name, extents, DType::F64);
        problem.boundaries = boundaries.unwrap_or(problem.boundaries);
        let ranked = ranked(&weights).every(2).connected(processes.clone());
        assert_same(&problem, &ranked, &Options::default(), 7);
    }
}
