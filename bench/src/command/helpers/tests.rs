use std::sync::atomic::{AtomicUsize, Ordering};

use abide::{DType, Options, Plan, Shape};

use super::*;
use crate::problem;

/// A compiler that notes the rows of what it has compiled.
#[derive(Default)]
struct Notes(Mutex<Vec<usize>>);

impl Compiler for Notes {
    fn compile(&self, problem: &Problem, _: &Plan, _: bool) -> abide::Result<()> {
        self.0.lock().unwrap().push(problem.shape.extents()[0] - 20);
        Ok(())
    }
}

impl Notes {
    /// Returns how often kernels of a row were compiled.
    fn of(&self, row: usize) -> usize {
        self.0.lock().unwrap().iter().filter(|&&own| own == row).count()
    }
}

/// Problems whose sizes differ by row, and three plans for each.
fn table(rows: usize) -> (Vec<Problem>, impl Fn(usize) -> Wanted + Sync) {
    fn of(row: usize) -> Problem {
        problem("2d5pt", Shape::new(&[20 + row, 64]).unwrap(), DType::F32).unwrap()
    }
    let problems = (0..rows).map(of).collect();
    let wanted = |row: usize| {
        let opened = abide::backend::open("cpu").unwrap();
        Wanted::of(&opened, &of(row), &[Options::default(); 3])
    };
    (problems, wanted)
}

fn numbered(problems: &[Problem]) -> Vec<(usize, &Problem)> {
    problems.iter().enumerate().collect()
}

#[test]
fn helpers_leave_threads_and_memory_to_the_rows() {
    const GB: u64 = 1 << 30;
    for (threads, memory, expected) in [
        (30, 80 * GB, MOST),
        (6, 80 * GB, 6),
        (30, 16 * GB, 4),
        (30, 3 * GB, 0),
        (0, 80 * GB, 0),
        (30, u64::MAX, MOST),
    ] {
        assert_eq!(most(threads, memory), expected, "{threads} threads, {memory} bytes");
    }
}

#[test]
fn a_helper_compiles_what_it_is_asked_for_and_says_so() {
    let (problems, wanted) = table(4);
    let problems: Vec<&Problem> = problems.iter().collect();
    let ask = |input: &str| {
        let (notes, listed, mut output) = (Notes::default(), AtomicUsize::new(0), Vec::new());
        let wanted = |row| {
            listed.fetch_add(1, Ordering::Relaxed);
            wanted(row)
        };
        let ended = answer(Some(&notes), &problems, wanted, input.as_bytes(), &mut output);
        (
            ended.is_ok(),
            String::from_utf8(output).unwrap(),
            notes.0.into_inner().unwrap(),
            listed.into_inner(),
        )
    };
    assert_eq!(ask(""), (true, "ready\n".to_owned(), vec![], 0));
    let line = "1 0\n1 2\n3 1\n";
    assert_eq!(ask(line), (true, format!("ready\n{line}"), vec![1, 1, 3], 2));
    // What is not in its list is done at once.
    let line = "4 0\n0 3\n";
    assert_eq!(ask(line), (true, format!("ready\n{line}"), vec![], 1));
    for nonsense in ["1", "a b", "1 2 3", "-1 0", ""] {
        assert_eq!(ask(&format!("{nonsense}\n0 0\n")), (false, "ready\n".to_owned(), vec![], 0));
    }
}

#[test]
fn without_helpers_threads_compile_and_without_threads_nothing_does() {
    let (problems, wanted) = table(5);
    let rows = numbered(&problems);
    for (counts, compiled) in [([0, 0], 0), ([1, 0], 3), ([3, 0], 3), ([3, 2], 3)] {
        let (notes, tries) = (Notes::default(), AtomicUsize::new(0));
        // No helper can be started.
        let command = || {
            tries.fetch_add(1, Ordering::Relaxed);
            Err(ErrorKind::NotFound.into())
        };
        let ended = run(Some(&notes), counts, command, &rows, &wanted, |row| {
            assert_eq!(notes.of(row), compiled);
            if row == 3 { Err("enough") } else { Ok(()) }
        });
        assert_eq!(ended, Err("enough"));
        let tries = tries.into_inner();
        assert!(if counts[1] > 0 { (1..=counts[1]).contains(&tries) } else { tries == 0 }, "{tries}");
    }
}

/// Helpers that are real processes: they follow the protocol as a script says.
#[cfg(unix)]
mod processes {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;

    /// The script of a good helper: it notes in a file what it was asked for, and says other things too.
    const GOOD: &str = "echo banner; echo ready; while read -r line; do echo \"$line\" >> notes; echo 0; echo \"$line\"; done";

    fn script(text: &str, folder: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]).current_dir(folder);
        command
    }

    fn notes(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_row_comes_when_helpers_have_told_that_all_of_it_is_compiled() {
        let (problems, wanted) = table(7);
        // Rows 1, 2 and 5 are in the file already.
        let rows: Vec<(usize, &Problem)> =
            numbered(&problems).into_iter().filter(|(number, _)| ![1, 2, 5].contains(number)).collect();
        let wanted = |row: usize| wanted(rows[row].0);
        for helpers in [1, 3, 20] {
            let folder = tempfile::tempdir().unwrap();
            let (own, started, mut seen) = (Notes::default(), AtomicUsize::new(0), Vec::new());
            let command = || {
                started.fetch_add(1, Ordering::Relaxed);
                Ok(script(GOOD, folder.path()))
            };
            let ended = run(Some(&own), [3, helpers], command, &rows, wanted, |row| {
                let number = rows[row].0;
                let reported = notes(folder.path());
                for plan in 0..3 {
                    let line = format!("{number} {plan}");
                    assert_eq!(
                        reported.iter().filter(|reported| **reported == line).count(),
                        1,
                        "{line} in {reported:?}"
                    );
                }
                seen.push(number);
                Ok::<(), ()>(())
            });
            assert_eq!((ended, seen), (Ok(()), vec![0, 3, 4, 6]));
            assert_eq!(notes(folder.path()).len(), 12);
            assert!(own.0.into_inner().unwrap().is_empty(), "helpers did it all");
            assert!((1..=helpers.min(12)).contains(&started.into_inner()));
        }
    }

    #[test]
    fn nobody_waits_for_helpers_that_die() {
        let (problems, wanted) = table(4);
        let rows = numbered(&problems);
        let folder = tempfile::tempdir().unwrap();
        let dying = [
            // After an answer, in the midst of its work, with another answer, and killed.
            ("echo ready; read -r line; echo \"$line\"", 0),
            ("echo ready; read -r line; exit 3", 0),
            ("echo ready; read -r line; echo nonsense", 0),
            ("echo ready; read -r line; kill -9 $$", 0),
            // Before they are ready: threads take over.
            ("exit 1", 3),
            ("echo error", 3),
        ];
        for (text, compiled) in dying {
            let (own, mut seen) = (Notes::default(), 0);
            let ended = run(
                Some(&own),
                [3, 2],
                || Ok(script(text, folder.path())),
                &rows,
                &wanted,
                |row| {
                    assert_eq!(own.of(row), compiled, "{text}");
                    seen += 1;
                    Ok::<(), ()>(())
                },
            );
            assert_eq!((ended, seen), (Ok(()), 4), "{text}");
        }
        // Where one dies, the other does the rest.
        let own = Notes::default();
        let first = AtomicUsize::new(0);
        let command = || {
            let is_first = first.fetch_add(1, Ordering::Relaxed) == 0;
            Ok(script(if is_first { "echo ready; read -r line" } else { GOOD }, folder.path()))
        };
        assert_eq!(run(Some(&own), [3, 2], command, &rows, &wanted, |_| Ok::<(), ()>(())), Ok(()));
        assert_eq!(notes(folder.path()).len(), 11);
    }

    #[test]
    fn an_error_ends_helpers_at_work() {
        let (problems, wanted) = table(3);
        let rows = numbered(&problems);
        let folder = tempfile::tempdir().unwrap();
        // The first row is compiled, the others take for ever.
        let slow = "echo $$ >> notes; echo ready; while read -r line; do case $line in 0*) ;; *) exec sleep 600;; esac; echo \"$line\"; done";
        let (own, begun) = (Notes::default(), Instant::now());
        let ended = run(
            Some(&own),
            [3, 2],
            || Ok(script(slow, folder.path())),
            &rows,
            &wanted,
            |row| {
                assert_eq!(row, 0);
                Err("enough")
            },
        );
        assert_eq!(ended, Err("enough"));
        assert!(begun.elapsed() < Duration::from_secs(60), "they were waited for");
        assert!(own.0.into_inner().unwrap().is_empty());
        for id in notes(folder.path()) {
            assert!(!Path::new("/proc").join(&id).exists(), "{id} is there");
        }
    }

    #[test]
    fn no_helper_is_started_once_they_were_ended() {
        let folder = tempfile::tempdir().unwrap();
        let processes = Processes::default();
        let mut helper = processes.start(script(GOOD, folder.path())).unwrap();
        helper.compile(5, 7).unwrap();
        assert_eq!(notes(folder.path()), ["5 7"]);
        processes.end();
        assert!(helper.compile(5, 8).is_err());
        assert!(processes.start(script(GOOD, folder.path())).is_err());
        assert_eq!(notes(folder.path()), ["5 7"]);
    }
}
