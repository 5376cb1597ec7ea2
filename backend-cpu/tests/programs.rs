//! Programs of several kinds of fields: all threads against the definition.

use abide_core::{Array, Backend, Options, Problem, Session};
use abide_cpu::{CpuBackend, reference};
use abide_random::programs;

fn read(session: &mut dyn Session, problem: &Problem) -> Vec<Array> {
    (0..problem.program.fields().len()).map(|field| session.read(field).unwrap()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Random programs have the bits of the definition, for any number of threads, however the steps are cut, and
/// where fields are written between steps.
#[test]
fn random_programs_have_the_bits_of_the_definition() {
    let (mut ran, mut refused) = (0, 0);
    for seed in 0..400 {
        let (problem, fields) = match programs::problem(seed) {
            Ok(problem) => problem,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("fixed") || text.contains("reduction of nothing"), "{seed}: {text}");
                refused += 1;
                continue;
            }
        };
        let mut expected = fields.clone();
        let scalars = reference::run_program(&problem, &mut expected, 5, |_, _, _| {}).unwrap();
        for threads in [1, 3] {
            let backend = CpuBackend::with_threads(threads).unwrap();
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
            session.advance(2).unwrap();
            // Writing what is there changes nothing, also where two names share a buffer.
            let last = problem.program.fields().len() - 1;
            let own = session.read(last).unwrap();
            session.write(last, &own).unwrap();
            session.advance(3).unwrap();
            for (name, (found, expected)) in
                problem.program.fields().iter().zip(read(&mut *session, &problem).iter().zip(&expected))
            {
                assert!(found.same_bits(expected), "seed {seed}, field {name}, {threads} threads");
            }
            assert_eq!(bits(&session.scalars().unwrap()), bits(&scalars), "seed {seed}");
        }
        ran += 1;
    }
    assert!(ran > 200, "{ran} ran, {refused} were refused");
}
