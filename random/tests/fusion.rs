//! Groups of random programs' loops, held to what the stages read and write: values are carried along by name.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use abide_core::expr::Node;
use abide_core::program::{Stage, StageKind};
use abide_core::{Boundary, Problem};
use abide_planner::fusion::{Form, Graph, Loops, MOST_LOOPS, Order, Search, exhaustive, in_turn, search};

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Returns the names that a stage reads and those that it writes: fields, temporaries, and then scalars.
fn names(problem: &Problem, stage: &Stage) -> (BTreeSet<usize>, Vec<usize>) {
    let program = &problem.program;
    let all = program.names().len();
    let computed = |number: usize| number.checked_sub(program.parameters().len()).map(|number| all + number);
    let mut reads = BTreeSet::new();
    for node in &stage.dag.nodes {
        match node {
            Node::Tap(tap) => {
                let field = usize::from(tap.field);
                reads.insert(field);
                if field < program.fields().len() && stage.points.is_empty() {
                    let held = problem.boundaries_of(field).scalars();
                    reads.extend(
                        held.filter_map(|name| computed(program.number_of_scalar(name.as_str()).unwrap())),
                    );
                }
            }
            Node::Param(number) => reads.extend(computed(usize::from(*number))),
            _ => {}
        }
    }
    let writes = match stage.does {
        StageKind::Update | StageKind::Transform(_) => stage.writes.clone(),
        StageKind::Reduce(.., scalar) | StageKind::Scalar(scalar) => vec![computed(scalar).unwrap()],
    };
    // What single points are set of stays elsewhere, and so do values at fixed sides, which points may have set.
    let at_points = |name: &usize| {
        program.stages().iter().any(|other| !other.points.is_empty() && other.writes.contains(name))
    };
    let is_fixed = |name: &usize| {
        let sides = |name| problem.boundaries_of(name).0.into_iter().flatten();
        *name < program.fields().len() && sides(*name).any(|side| side == Boundary::Fixed)
    };
    let stays = |name: &usize| !stage.points.is_empty() || at_points(name) && is_fixed(name);
    if stage.does == StageKind::Update {
        reads.extend(writes.iter().copied().filter(stays));
    }
    (reads, writes)
}

/// Carries a value for each name through stages in this order; a value encodes which stage made it from which inputs.
fn carried(problem: &Problem, stages: impl Iterator<Item = usize>) -> Vec<u64> {
    let program = &problem.program;
    let mut values: Vec<u64> =
        (0..program.names().len() + program.scalars().len()).map(|name| hash(("first", name))).collect();
    for number in stages {
        let (reads, writes) = names(problem, &program.stages()[number]);
        let inputs: BTreeSet<u64> = reads.iter().map(|&name| values[name]).collect();
        for (output, target) in writes.into_iter().enumerate() {
            values[target] = hash((number, output, &inputs));
        }
    }
    values
}

fn programs() -> impl Iterator<Item = (u64, Problem)> {
    (0..400).filter_map(|seed| Some((seed, abide_random::programs::problem(seed).ok()?.0)))
}

/// Loops run group by group leave every field and scalar as the stages do in their own order.
#[test]
fn groups_carry_the_values_of_their_stages() {
    let (mut fused, mut programs_seen) = (0, 0);
    for (seed, problem) in programs() {
        let form = Form { step: Some(0), ..Form::default() };
        let graph = Graph::of(&problem, &form).unwrap();
        let loops = Loops::of(&graph, 4 + (seed % 4) as usize).unwrap();
        let settings = Search { seed, stagnation: 3, ..Search::default() };
        let found = search(&loops, &settings, &in_turn, || true);
        if loops.len() <= MOST_LOOPS.min(7) {
            assert_eq!(found.cost, exhaustive(&loops).unwrap().cost, "seed {seed}");
        }
        programs_seen += 1;
        fused += found.groups.iter().filter(|group| group.len() > 1).count();
        let stages = found.groups.iter().flatten().map(|&own| graph.loops[own].stage);
        let mut all: Vec<usize> = stages.clone().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(problem.program.steps()[0].clone()), "seed {seed}");
        // Temporaries mean nothing after the step.
        let (fields, names) = (problem.program.fields().len(), problem.program.names().len());
        let outside = |mut values: Vec<u64>| {
            values.drain(fields..names);
            values
        };
        let expected = outside(carried(&problem, problem.program.steps()[0].clone()));
        assert_eq!(outside(carried(&problem, stages)), expected, "seed {seed}: {:?}", found.groups);
        // No loop of a group knows what another one reduces all cells to, nor is a group without some array in common.
        let touched = |own: usize| {
            let (reads, writes) = self::names(&problem, &problem.program.stages()[graph.loops[own].stage]);
            reads.into_iter().chain(writes).collect::<BTreeSet<_>>()
        };
        for group in &found.groups {
            for &own in group {
                let others = || group.iter().filter(|&&other| other != own);
                let stage = &problem.program.stages()[graph.loops[own].stage];
                if let StageKind::Reduce(..) = stage.does {
                    let result = self::names(&problem, stage).1[0];
                    assert!(others().all(|&other| !touched(other).contains(&result)), "seed {seed}");
                }
                let shares = |&other: &usize| touched(other).iter().any(|name| touched(own).contains(name));
                assert!(group.len() == 1 || others().any(shares), "seed {seed}");
                assert!(group.len() == 1 || stage.points.is_empty(), "seed {seed}");
            }
        }
    }
    assert!(programs_seen > 150 && fused > 100, "{programs_seen} {fused}");
}

/// With values renamed, each loop still reads the values that its stage reads, in every order that the groups may take,
/// and the fields' last values are kept.
#[test]
fn renamed_loops_read_the_values_of_their_stages() {
    let mut freed = 0;
    for (seed, problem) in programs() {
        let form = |renamed| Form { step: None, renamed, split: false };
        let (named, graph) =
            (Graph::of(&problem, &form(false)).unwrap(), Graph::of(&problem, &form(true)).unwrap());
        let loops = Loops::of(&graph, 6).unwrap();
        let settings = Search { seed, stagnation: 2, ..Search::default() };
        let found = search(&loops, &settings, &in_turn, || true);
        let program = &problem.program;
        // In their own order.
        let mut values: Vec<u64> =
            (0..program.names().len() + program.scalars().len()).map(|name| hash(("first", name))).collect();
        let mut made: Vec<(usize, usize, u64)> = Vec::new();
        for number in program.steps().iter().cloned().flatten() {
            let stage = &program.stages()[number];
            let (reads, writes) = names(&problem, stage);
            let inputs: BTreeSet<u64> = reads.iter().map(|&name| values[name]).collect();
            let is_loop = graph.loops.iter().any(|own| own.stage == number);
            let sources: Vec<u64> = stage
                .dag
                .outputs
                .iter()
                .map(|&output| match stage.dag.nodes[output as usize] {
                    Node::Tap(tap) => values[usize::from(tap.field)],
                    _ => 0,
                })
                .collect();
            for (output, target) in writes.into_iter().enumerate() {
                values[target] = if is_loop { hash((number, output, &inputs)) } else { sources[output] };
                made.push((number, output, values[target]));
            }
        }
        // In the groups' order, by the graph's arrays.
        let first = |array: &abide_planner::fusion::Array| {
            let all = program.names();
            let scalars = program.scalars().iter().map(|scalar| scalar.name.clone());
            let names: Vec<String> = all.into_iter().chain(scalars).collect();
            hash(("first", names.iter().position(|name| *name == array.name).unwrap()))
        };
        let mut arrays: Vec<u64> =
            graph.arrays.iter().map(|array| if array.is_given { first(array) } else { 0 }).collect();
        for &own in found.groups.iter().flatten() {
            let node = &graph.loops[own];
            let reads = node.accesses.iter().filter(|access| access.reads.is_some() || access.keeps);
            let inputs: BTreeSet<u64> = reads.map(|access| arrays[access.array]).collect();
            let (_, targets) = names(&problem, &program.stages()[node.stage]);
            for (output, target) in targets.into_iter().enumerate() {
                let value = hash((node.stage, output, &inputs));
                assert!(made.contains(&(node.stage, output, value)), "seed {seed}: {}", node.name);
                let all = program.names();
                let name = all.get(target).cloned();
                let name = name.unwrap_or_else(|| program.scalars()[target - all.len()].name.clone());
                let written = node.accesses.iter().filter(|access| access.writes);
                for access in written.filter(|access| graph.arrays[access.array].name == name) {
                    arrays[access.array] = value;
                }
            }
        }
        let kept: BTreeSet<u64> = graph
            .arrays
            .iter()
            .zip(&arrays)
            .filter(|(array, _)| array.is_kept)
            .map(|(_, value)| *value)
            .collect();
        for field in (0..program.fields().len()).filter(|&field| program.is_written(field)) {
            assert!(kept.contains(&values[field]), "seed {seed}: {}", program.fields()[field]);
        }
        let edges = |graph: &Graph| Order::of(graph).edges.len();
        freed += usize::from(edges(&graph) < edges(&named));
    }
    assert!(freed > 50, "{freed}");
}
