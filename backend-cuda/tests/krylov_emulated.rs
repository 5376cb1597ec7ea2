//! Solvers' kernels that run without a GPU: the generated text as C++, every lane on its own, several blocks
//! concurrently.
//!
//! As in `emulated.rs`; each run is compared with the reference solver. It must take as many iterations, give
//! or take 2, reach a true residual below the threshold, and have the same bits whatever the order of the
//! lanes and however many launches the iterations are cut into.
#![cfg(target_os = "linux")]

use crate::{cases, common, emulated_slabs as slabs, solver, systems};

use abide_core::solver::plan::krylov::{Division, RecomputedHalo, Space};
use abide_core::solver::{
    Matrix, Method, Parameters, PipelinedCg, Preconditioning, SolveCache, SolverError, Status,
};
use abide_core::sparse::{Csr, Triplets};
use abide_core::{Array, DType};
use abide_emulator::{Compiler, all};
use abide_solvers::sparse::laplacian_2d;

use cases::{cases, configuration, gmres, options};
use common::{by_parts, part};
use solver::{Case, End};
use systems::{hub, wind};

by_parts!(
    solvers_agree_with_the_reference_without_a_gpu,
    recurrences_that_lose_the_residual_start_anew,
    energies_below_rounding_end_a_run,
    cycles_end_as_the_reference_ends_them,
    systems_of_a_batch_have_the_bits_that_they_have_alone,
);

/// Holds cases to the reference; those that `ABIDE_CASE` names, if it does.
fn solvers_agree_with_the_reference_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let chosen: Vec<Case> = match std::env::var("ABIDE_CASE") {
        Ok(name) => cases().into_iter().filter(|case| case.name.contains(&name)).collect(),
        Err(_) => part(cases(), is_other),
    };
    all(&chosen, |case| case.check(&compiler).map_err(|why| format!("{}: {why}", case.name)));
}

/// Compares slabs of one device, whose blocks form one grid, with the bits of the reference, or with the bits of one
/// slab.
fn check_slabs(cases: &[Case], compiler: &Compiler) {
    all(cases, |case| {
        let fail = |why| format!("{}: {why}", case.name);
        case.check(compiler).map_err(fail)?;
        case.check_on_one_slab(compiler).map_err(fail)
    });
}

/// Returns the case of slabs with this name.
fn of_slabs(name: &str) -> Case {
    slabs::cases().into_iter().find(|case| case.name == name).unwrap()
}

#[test]
fn slabs_have_the_bits_of_one() {
    let Some(compiler) = common::compiler() else { return };
    check_slabs(&["slabs-cg-ring", "slabs-cg-apart", "slabs-pipelined"].map(of_slabs), &compiler);
}

/// Every method, and each defect in the messages of slabs and in their waits.
#[test]
#[ignore = "takes a minute"]
fn all_slabs_have_the_bits_of_one_and_defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let only = std::env::var("ABIDE_CASE").ok();
    let mut chosen = slabs::cases();
    chosen.retain(|case| only.as_ref().is_none_or(|name| case.name.contains(name)));
    check_slabs(&chosen, &compiler);
    assert!(of_slabs("slabs-cg-groups").layout().unwrap().sums.groups > 1);
    let defects: Vec<_> = slabs::DEFECTS
        .into_iter()
        .filter(|(name, ..)| only.as_ref().is_none_or(|only| name.contains(only)))
        .map(|(name, words, instead)| (of_slabs(name), (words, instead)))
        .collect();
    all(&defects, |(case, change)| case.misses(&compiler, *change));
    // A block that aborts and does not set the abort word of the other slabs leaves them waiting.
    let untold = ("add_devices(beyond(a, a.arrived, other) + GIVEN_UP, 1u);", ";");
    let changes = [&slabs::IMPATIENT[..], &[untold]].concat();
    let error = of_slabs("slabs-cg").compile(&compiler, &changes).and_then(|program| program.run(1, 0));
    assert!(error.as_ref().is_err_and(|error| error.contains("wait for ever")), "{error:?}");
}

/// Where one block gives a wait up, all blocks of all slabs end.
#[test]
fn slabs_abort_together() {
    let Some(compiler) = common::compiler() else { return };
    let program = of_slabs("slabs-cg").compile(&compiler, &slabs::IMPATIENT).unwrap();
    assert_eq!(program.run(1, 0).map(|outcome| outcome.status), Ok(Status::Lost));
}

/// In f32, with a dense row, the recurrences of pipelined CG meet the threshold long before the true residual
/// does.
fn recurrences_that_lose_the_residual_start_anew(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let method = Method::PipelinedCg(PipelinedCg { replacement: 0 });
    let options = options(method, Preconditioning::None, SolveCache::Auto);
    let configuration = configuration(Space::Block, 1, Division::Merged { items: 7 });
    let cases = [2111, 1700].map(|rows| Case {
        name: "lost",
        matrix: hub(rows, DType::F32),
        options,
        configuration,
        shared: None,
    });
    all(&part(cases, is_other), |case| {
        let bound = case.reference()?.0.threshold * case.parameters().drift;
        let outcome = case.compile(&compiler, &[])?.run(1, 0)?;
        if outcome.status != Status::Converged || outcome.true_residual > bound {
            return Err(format!(
                "status {:?}, {:e} where {bound:e} is wanted",
                outcome.status, outcome.true_residual
            ));
        }
        if case.compile(&compiler, &[])?.run(2, 2)? != outcome {
            return Err("other bits in launches of 2 iterations".to_owned());
        }
        // Without a look at the true residual the run ends too early.
        let blind = ("if (stop_test.lost(true_square)) {", "if (false) {");
        let outcome = case.compile(&compiler, &[blind])?.run(1, 0)?;
        if outcome.true_residual > bound {
            Ok(())
        } else {
            Err(format!("nothing is lost here: {:e}, {bound:e}", outcome.true_residual))
        }
    });
}

/// Where no threshold can be met, the energy that iterations take off ends a run: at the same iteration as
/// the reference, however the launches are cut.
fn energies_below_rounding_end_a_run(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let ends = [Method::Cg, Method::SingleReductionCg].map(|method| End {
        case: Case {
            name: "energy",
            matrix: laplacian_2d(9, 11, DType::F64).unwrap().into(),
            options: options(method, Preconditioning::None, SolveCache::Mixed),
            configuration: configuration(Space::Grid, 2, Division::Split { lanes: 2 }),
            shared: None,
        },
        right: Array::from_fn(DType::F64, 99, |i| ((i * 7) % 11) as f64 - 4.0),
        parameters: Parameters {
            relative: 0.0,
            iterations: 2000,
            stagnation: Some(60),
            ..Parameters::default()
        },
    });
    all(&part(ends, is_other), |end| {
        let ended = solver::reference(&end.case.matrix, &end.case.options, &end.right, &end.parameters)?.0;
        if !matches!(ended, Err(SolverError::Stagnation { .. })) {
            return Err(format!("{}: the reference: {ended:?}", end.case.options.method));
        }
        end.check(&compiler).map_err(|why| format!("{}: {why}", end.case.options.method))
    });
}

/// Makes a matrix of these entries.
fn entries(rows: usize, all: impl IntoIterator<Item = (usize, usize, f64)>) -> Matrix {
    let mut entries = Triplets::new(rows, rows).unwrap();
    all.into_iter().for_each(|(row, column, value)| entries.push(row, column, value).unwrap());
    entries.into_csr().unwrap().into()
}

fn cycles_end_as_the_reference_ends_them(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let unit = |rows: usize| Array::from_fn(DType::F64, rows, |i| if i == 0 { 3.0 } else { 0.0 });
    let parameters = Parameters { relative: 1e-9, iterations: 60, ..Parameters::default() };
    let end = |name, matrix: Matrix, restart, right, parameters| End {
        case: Case {
            name,
            matrix,
            options: options(gmres(restart), Preconditioning::None, SolveCache::Mixed),
            configuration: configuration(Space::Grid, 2, Division::Split { lanes: 2 }),
            shared: None,
        },
        right,
        parameters,
    };
    let plane = wind([9, 11], DType::F64);
    let random = Array::from_fn(DType::F64, 99, |i| ((i * 7) % 11) as f64 - 4.0);
    let ends = [
        // The Krylov space is exhausted and holds the solution.
        end("lucky", entries(7, (0..7).map(|i| (i, i, 2.0))), 5, unit(7), parameters.clone()),
        // The Krylov space is exhausted and does not hold the solution: A v = 0 at last.
        end("nilpotent", entries(6, (1..6).map(|i| (i, i - 1, 1.0))), 30, unit(6), parameters.clone()),
        // No progress before step n, and the cycle is shorter; then as long.
        end("shift", entries(9, (0..9).map(|i| ((i + 1) % 9, i, 1.0))), 8, unit(9), parameters.clone()),
        end("whole shift", entries(9, (0..9).map(|i| ((i + 1) % 9, i, 1.0))), 9, unit(9), parameters.clone()),
        // Squares beyond what the type holds.
        end("overflow", entries(7, (0..7).map(|i| ((i + 1) % 7, i, 1e200))), 5, unit(7), parameters.clone()),
        // A limit in the middle of a cycle: x is the best of it so far.
        end("limit", plane.clone(), 6, random.clone(), Parameters { iterations: 9, ..parameters.clone() }),
        end(
            "first cycle",
            plane.clone(),
            30,
            random.clone(),
            Parameters { iterations: 5, ..parameters.clone() },
        ),
        // A residual that no iteration lowers for the stagnation limit.
        end(
            "stagnation",
            entries(9, (0..9).map(|i| ((i + 1) % 9, i, 1.0))),
            9,
            unit(9),
            Parameters { stagnation: Some(4), ..parameters.clone() },
        ),
        // The recurrence meets the threshold, and the true residual does not: another cycle follows, then the
        // type's precision is exhausted.
        end(
            "drift",
            wind([9, 11], DType::F32),
            30,
            random.cast(DType::F32).unwrap(),
            Parameters { relative: 1e-7, drift: 1.0, ..parameters.clone() },
        ),
    ];
    all(&part(ends, is_other), |end| end.check(&compiler).map_err(|why| format!("{}: {why}", end.case.name)));
    // Between launches, within a cycle and at its end, x is the iterate whose residual was reported last.
    let cuts: Vec<(End, usize)> =
        [5, 7, 10].map(|cut| (end("cut", plane.clone(), 6, random.clone(), parameters.clone()), cut)).into();
    all(&part(cuts, is_other), |(end, cut)| {
        end.check_cut(&compiler, *cut).map_err(|why| format!("cut at {cut}: {why}"))
    });
}

fn systems_of_a_batch_have_the_bits_that_they_have_alone(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    // One pattern, different values: a Laplacian with more and more on the diagonal.
    let matrix = |shift: usize| -> Matrix {
        let plain = laplacian_2d(9, 11, DType::F64).unwrap();
        let values = (0..plain.rows()).flat_map(|row| {
            plain
                .row(row)
                .map(move |(column, value)| value + if column == row { shift as f64 } else { 0.0 })
                .collect::<Vec<_>>()
        });
        Csr::new(99, plain.offsets().clone(), plain.indices().to_vec(), Array::F64(values.collect()))
            .unwrap()
            .into()
    };
    let matrices: Vec<Matrix> = (0..3).map(matrix).collect();
    let kinds = [
        options(Method::Cg, Preconditioning::Jacobi, SolveCache::Auto),
        options(Method::BiCgStab, Preconditioning::BlockJacobi { size: 4 }, SolveCache::Vectors),
    ];
    all(&part(kinds, is_other), |options| solver::check_batch(&compiler, &matrices, options));
}

#[test]
fn directions_made_where_they_are_read_have_the_bits_of_exchanged_ones() {
    directions_are_those_exchanged(&["cg-sliced"], &[]);
}

#[test]
#[ignore = "two kernels for each case: a minute"]
fn directions_made_in_other_ways_have_the_bits_of_exchanged_ones() {
    let slabs = ["slabs-cg", "slabs-cg-apart", "slabs-cg-blocks"];
    directions_are_those_exchanged(&["cg-blocks", "cg-stencil"], &slabs);
}

/// Directions that readers make of the residual and of the direction before have the bits of their owners', whatever the
/// preconditioner and however the launches are cut.
fn directions_are_those_exchanged(names: &[&str], slabs: &[&str]) {
    let Some(compiler) = common::compiler() else { return };
    let mut chosen = cases();
    chosen.retain(|case| names.contains(&case.name));
    assert_eq!(chosen.len(), names.len());
    chosen.extend(slabs.iter().map(|name| of_slabs(name)));
    all(&chosen, |case| {
        let fail = |why| format!("{}: {why}", case.name);
        let how = match case.layout()?.recomputed {
            RecomputedHalo::Nothing => return Err(fail("directions are exchanged".to_owned())),
            RecomputedHalo::Slabs => "constexpr int RECOMPUTED = OF_SLABS;",
            RecomputedHalo::Blocks => "constexpr int RECOMPUTED = OF_BLOCKS;",
        };
        let exchanged = (how, "constexpr int RECOMPUTED = NOTHING;");
        let expected = case.compile(&compiler, &[exchanged]).and_then(|program| program.run(1, 0));
        let recomputed = case.compile(&compiler, &[]).and_then(|program| program.run(2, 3));
        if recomputed.map_err(fail)? == expected.map_err(fail)? {
            Ok(())
        } else {
            Err(fail("other bits".to_owned()))
        }
    });
}

/// Takes away from the kernels what blocks and threads must wait for; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        // Every block's sum, and every block's part of the exchanged vector, must be there before they are
        // read.
        ("cg-sliced", "return arrivals() >= barriers * unsigned(BLOCKS);", "return arrivals() >= 1;"),
        ("cg-split", "if (threadIdx.x == 0) await();\n        __syncthreads();", "__syncthreads();"),
        ("cg-sliced", "if (threadIdx.x == 0) team.await();\n        __syncwarp();", ""),
        // A block arrives behind what it has stored.
        ("cg-sliced", "else add_release(a.arrived, 1u);", "else atomicAdd(a.arrived, 1u);"),
        ("gmres-grid", "else add_release(a.arrived, 1u);", "else atomicAdd(a.arrived, 1u);"),
        (
            "single-cluster",
            "if constexpr (SPACE == CLUSTER) cluster_barrier();\n            else __syncthreads();",
            "__syncthreads();",
        ),
        // One buffer is not enough where a vector is published before all have met again.
        ("pipelined-cluster", "if constexpr (TURNS > 1) turn ^= 1;", ""),
        ("single-polynomial", "if constexpr (TURNS > 1) turn ^= 1;", ""),
        // A lane's node ends where its share does; a chain of nodes is joined whole.
        ("cg-sliced", "if (joins & step)", "if (true)"),
        ("single-grid", "link < int(chains[n] >> 24) ? __ldcg", "link < 1 ? __ldcg"),
        // One set of sums is not enough either.
        ("pipelined-grid", "return (sums & 1) * REDUCED;", "return 0;"),
        ("pipelined-cluster", "return (sums & 1) * REDUCED;", "return 0;"),
        // Results of a product that several threads have made are seen by others after a barrier of the
        // block.
        (
            "single-cluster",
            "else merged(team, entries, offsets, x, y);\n        __syncthreads();",
            "else merged(team, entries, offsets, x, y);",
        ),
        // A piece of a spread row needs the block's part of the vector, and the parts that its warps have
        // made of it;
        (
            "spread-cg-polynomial",
            "__syncthreads();                                 // the block's part of the vector is there",
            "",
        ),
        ("spread-cg", "__syncthreads();                             // the parts of each piece", ""),
        // it must be there before the barrier;
        (
            "spread-cg",
            "if constexpr (SPREAD > 0) leave_pieces(team);\n    team.meet();",
            "team.meet();\n    leave_pieces(team);",
        ),
        // its turn is the vector's;
        ("spread-pipelined", "(TURNS > 1 ? team.turn * (SPREAD * BLOCKS) : 0)", "0"),
        // and the row's owner waits for the warp that adds the pieces up.
        ("spread-cg", "if constexpr (PRODUCT == SLICED) __syncthreads();", ""),
        // Projections of all blocks, and those of the pass before; parts of more sums than are held at once.
        (
            "gmres-grid",
            "team.meet();\n                gather(team, nodes, count, products);",
            "__syncthreads();\n                gather(team, nodes, count, products);",
        ),
        ("gmres-short", "basis.project(team, w, j + 1, 1,", "basis.project(team, w, j + 1, 0,"),
        ("gmres-long", "if (begin > 0) __syncthreads();", ""),
        // The rotation by one thread, and the minimisation by one warp.
        (
            "gmres-block",
            "basis.add<-1>(team, w, triangle.products(), j + 1);\n        __syncthreads();",
            "basis.add<-1>(team, w, triangle.products(), j + 1);",
        ),
        ("gmres-cluster", "__syncthreads();\n        return told()[SINGULAR]", "return told()[SINGULAR]"),
        // Of directions made where they are read: the rows that others read, from the first; others' rows and the block's own
        // are made before the product.
        (
            "cg-sliced",
            "if (i < own.read_before || i >= own.read_from)",
            "if (i + 1 < own.read_before || i > own.read_from)",
        ),
        ("cg-stencil", "publish_residual(team, i, scaled);", ""),
        ("cg-blocks", "publish_residual(team, i, z.get(k, i));", ""),
        (
            "cg-sliced",
            "if constexpr (RECOMPUTED == OF_BLOCKS) team.publish_beyond(i, p.get(k, i));",
            "if (true) ;",
        ),
        ("cg-sliced", "__syncthreads();                             // p is made", ""),
        ("cg-stencil", "return z + beta * old;", "return z;"),
        // Rows that threads of a merge share.
        ("cg-merged", "joined(joined(open, before_warp), before).sum + head_sum", "head_sum"),
    ];
    let tried = cases();
    let chosen: Vec<(Case, (&str, &str))> = defects
        .iter()
        .filter_map(|&(name, words, instead)| {
            let case = tried.iter().find(|case| case.name == name)?;
            Some((case.clone(), (words, instead)))
        })
        .collect();
    assert_eq!(chosen.len(), defects.len());
    all(&chosen, |(case, change)| case.misses(&compiler, *change));
}
