//! Programs written as text and read back have the same graphs.

use std::collections::HashMap;

use abide_core::expr::{Dag, Id, Node};
use abide_core::program::Program;
use abide_core::{DType, catalogue};
use abide_random::{cases, formulas, grown, programs};
use proptest::prelude::*;

/// Returns the nodes in the order in which they are met from the outputs, and the outputs: the same for equal
/// graphs, in whatever order their nodes were made.
fn canonical(dag: &Dag) -> (Vec<Node>, Vec<Id>) {
    let (mut nodes, mut known) = (Vec::new(), HashMap::<Id, Id>::new());
    let mut waiting: Vec<Id> = dag.outputs.iter().rev().copied().collect();
    while let Some(&id) = waiting.last() {
        let node = dag.nodes[id as usize];
        let missing: Vec<Id> = node.operands().filter(|operand| !known.contains_key(operand)).collect();
        if missing.is_empty() {
            waiting.pop();
            if !known.contains_key(&id) {
                nodes.push(node.map(|operand| known[&operand]));
                known.insert(id, (nodes.len() - 1) as Id);
            }
        } else {
            waiting.extend(missing.into_iter().rev());
        }
    }
    (nodes, dag.outputs.iter().map(|id| known[id]).collect())
}

fn check(program: &Program) -> Result<(), TestCaseError> {
    let text = abide_text::write(program).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let read = abide_text::read(&text, "model");
    let read = read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.program;
    let differs =
        |what: &str| Err(TestCaseError::fail(format!("{what} of {} differ\n{text}", program.name())));
    macro_rules! same {
        ($($part:ident),*) => {$(
            if program.$part() != read.$part() {
                return differs(stringify!($part));
            }
        )*};
    }
    same!(
        name,
        dimensions,
        fields,
        kinds,
        temporaries,
        parameters,
        scalars,
        steps,
        phases,
        boundary,
        shown,
        is_plain
    );
    for field in 0..program.fields().len() {
        prop_assert_eq!(program.start(field), read.start(field));
    }
    for (own, read) in program.stages().iter().zip(read.stages()) {
        let same = own.name == read.name
            && own.does == read.does
            && own.writes == read.writes
            && own.points == read.points
            && canonical(&own.dag) == canonical(&read.dag);
        if !same {
            return differs(&format!("stages {}", own.name));
        }
    }
    // What is written again is the same text.
    prop_assert_eq!(abide_text::write(&read).ok(), Some(text));
    Ok(())
}

#[test]
fn every_entry_of_the_catalogue_comes_back() {
    for entry in catalogue::entries() {
        for dimensions in entry.dimensions.clone() {
            check(&entry.program(dimensions).unwrap()).unwrap();
        }
    }
}

#[test]
fn programs_of_all_parts_come_back() {
    for case in cases::cases().unwrap() {
        check(case.problem.program.declared()).unwrap();
    }
    let mut checked = 0;
    for seed in 0..400 {
        if let Ok((problem, _)) = programs::problem(seed) {
            check(&problem.program).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            checked += 1;
        }
    }
    assert!(checked > 200);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn formulas_of_all_operators_come_back(case in grown::cases()) {
        if let Some(problem) = case.problem(DType::F64) {
            check(&problem.program)?;
        }
    }

    #[test]
    fn trees_of_exact_operators_come_back(case in formulas::cases(false, vec![DType::F32])) {
        check(&case.problem().unwrap().program)?;
    }
}
