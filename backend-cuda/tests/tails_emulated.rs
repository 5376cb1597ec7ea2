//! Reductions in the kernel of the update before them, run without a GPU: the bits of the stages one by one.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::plan::fused::{Group, Partition};
use abide_core::program::{Boxes, Centring, Definition, Reduction};
use abide_core::{Array, Boundaries, Boundary, DType, Problem, Program as Computed, Shape, Start};
use abide_emulator::{Compiler, Form, Program, all};
use abide_planner::fused::is_tail;
use abide_random::cases::{cases, random};

use crate::common::{self, by_parts, part};

/// Heat whose conductivity follows from the largest value: `kind` says what is reduced, and of what.
fn limited(dimensions: usize, kind: usize) -> Computed {
    let mut p = Definition::new("limited", dimensions);
    p.field("u", Centring::CELL).field("v", Centring::CELL);
    if kind == 1 {
        p.temporary("t", Centring::CELL);
    }
    p.scalar("most", Some(0.75), "of all").scalar("k", Some(0.125), "conductivity");
    let mut step = p.step();
    step.stage("heat", |s| {
        let (u, v) = (s.field("u"), s.field("v"));
        let new = u.here() + s.param("k") * u.laplacian();
        if kind == 1 {
            s.set("t", new * v.here());
        }
        s.set("u", new);
        if kind == 2 {
            s.set("v", v.here() * 0.5 + u.along(0, -1));
        }
    });
    let reduction = [Reduction::Max, Reduction::Sum, Reduction::Min, Reduction::Max][kind % 4];
    step.reduce("most", reduction, Centring::CELL, |s| {
        let (u, v) = (s.field("u"), s.field("v"));
        match kind {
            0 => u.here().abs(),
            1 => s.field("t").here() + s.coord(0),
            2 => u.here() - v.here(),
            _ => u.here() * s.param("k") + v.here(),
        }
    });
    step.compute("k", |s| 0.125 / (1.0 + s.param("most").abs()));
    p.build().unwrap()
}

/// The same where each step begins with the reduction, of what the step before has made.
fn limited_by_found(dimensions: usize) -> Computed {
    let mut p = Definition::new("limited-by-found", dimensions);
    p.field("u", Centring::CELL).field("v", Centring::CELL);
    p.scalar("most", None, "of u").scalar("k", None, "conductivity").scalar("sum", Some(0.5), "of all");
    p.step()
        .reduce("most", Reduction::Max, Centring::CELL, |s| s.field("u").here().abs())
        .compute("k", |s| 0.125 / (1.0 + s.param("most") + s.param("sum").abs()))
        .reduce("sum", Reduction::Sum, Centring::CELL, |s| s.field("u").here() + s.field("v").here())
        .stage("heat", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            s.set("u", u.here() + s.param("k") * u.laplacian() + v.here() * 0.125);
        });
    p.build().unwrap()
}

/// Returns the groups of a problem in which each reduction that can be has the update before it, that of the step before, too; and
/// how many are.
fn tails(problem: &Problem) -> (Partition, usize) {
    let carried = problem.reductions_of_found();
    let problem = &problem.carried(&carried).unwrap();
    let boxes = Boxes::of(problem).unwrap();
    let mut partition = Partition::alone(&problem.program);
    let mut count = 0;
    for step in &mut partition.steps {
        let mut place = 0;
        while place + 1 < step.len() {
            let pair = [&step[place].stages[..], &step[place + 1].stages[..]].concat();
            if is_tail(problem, &boxes, &pair) {
                step.splice(place..place + 2, [Group::new(pair, None)]);
                count += 1;
            }
            place += 1;
        }
    }
    (Partition { carried, ..partition }, count)
}

fn check(
    compiler: &Compiler,
    problem: &Problem,
    start: &[Array],
    steps: u64,
    changes: &[(&str, &str)],
) -> Result<usize, String> {
    let (partition, count) = tails(problem);
    if count > 0 {
        // As launches, and as one persistent kernel.
        let blocks = problem.shape.cells().is_multiple_of(2).then_some(3);
        let form = Form { partition: Some(partition), blocks, ..Form::default() };
        Program::compile_as(compiler, problem, form, changes)?.check(start, steps)?;
    }
    Ok(count)
}

/// Problems of all kinds and boundaries, with their starts.
fn problems() -> Vec<(Problem, Vec<Array>)> {
    let boundaries =
        ["fixed", "periodic", "mirror", "constant=0.5", "clamp", "y=fixed,x=periodic", "x-=fixed,x+=mirror"];
    let mut all = Vec::new();
    for (number, boundary) in boundaries.into_iter().enumerate() {
        // A temporary has no values where cells are held.
        for kind in (0..5).filter(|&kind| kind != 1 || !boundary.contains("fixed")) {
            let turn = if boundary.contains('y') { 0 } else { (number + kind) % 3 };
            let extents = [&[37, 68][..], &[301], &[9, 11, 35]][turn];
            let dtype = [DType::F32, DType::F64][(number + kind) % 2];
            let dimensions = extents.len();
            let program =
                Arc::new(if kind == 4 { limited_by_found(dimensions) } else { limited(dimensions, kind) });
            let mut problem = Problem::unchecked(program, Shape::new(extents).unwrap(), dtype);
            problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
            problem.check().unwrap();
            let random =
                |seed| Start::Random { seed, low: -1.0, high: 1.0 }.fill(&problem.shape, dtype).unwrap();
            let start = vec![random(1), random(2)];
            all.push((problem, start));
        }
    }
    all
}

by_parts!(
    reductions_of_what_is_made_have_the_bits_of_the_reference,
    rows_of_many_leaves_are_joined_by_many_blocks,
);

fn reductions_of_what_is_made_have_the_bits_of_the_reference(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let own = problems();
    assert!(own.iter().all(|(problem, _)| tails(problem).1 == 1), "an update whose reduction stays apart");
    let drawn = cases().unwrap().into_iter().chain(random(0..600));
    let drawn = drawn.filter(|case| tails(&case.problem).1 > 0).map(|case| (case.problem, case.start));
    let drawn: Vec<_> = drawn.take(40).collect();
    assert!(drawn.len() > 5, "{} random programs", drawn.len());
    let tried = AtomicUsize::new(0);
    all(&part(own.into_iter().chain(drawn), is_other), |(problem, start)| {
        let words = format!("{} {} {}", problem.program.name(), problem.shape, problem.dtype);
        let count = check(&compiler, problem, start, 4, &[]).map_err(|why| format!("{words}: {why}"))?;
        tried.fetch_add(count, Ordering::Relaxed);
        Ok(())
    });
    assert!(tried.into_inner() > if is_other { 2 } else { 0 });
}

/// What joins a value to the wrong leaf, or leaves out what is kept, is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_of_tails_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        ("what a side keeps", "value = S::value_kept(edge);", "value = S::neutral();"),
        ("the region", "if (counts) value = made;", "value = made + real(counts);"),
        (
            "what is at hand",
            "return inside ? S::compute(Inside{{arguments, z, y, x}})",
            "return inside ? (S::compute(Inside{{arguments, z, y, x}}), S::neutral())",
        ),
    ];
    all(&defects, |&(what, words, instead)| {
        let found = problems().iter().any(|(problem, start)| {
            check(&compiler, problem, start, 4, &[(words, instead)])
                .is_err_and(|why| !why.contains("has 0 times"))
        });
        if found { Ok(()) } else { Err(format!("the bits are right without {what}")) }
    });
}

/// Leaves that are too many for one block: their rows are joined by many, along each axis that may be the first.
fn rows_of_many_leaves_are_joined_by_many_blocks(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let cases =
        [(&[1030, 520][..], 1, DType::F32), (&[524_500], 2, DType::F64), (&[131, 33, 130], 0, DType::F32)];
    all(&part(cases, is_other), |(extents, kind, dtype)| many_leaves(&compiler, extents, *kind, *dtype));
}

/// So many leaves that each warp has several.
#[test]
#[ignore = "eight million cells: minutes"]
fn warps_have_several_of_very_many_leaves() {
    let Some(compiler) = common::compiler() else { return };
    for (extents, kind) in [(&[4104, 2070][..], 1), (&[130, 264, 250], 0)] {
        many_leaves(&compiler, extents, kind, DType::F32).unwrap();
    }
}

fn many_leaves(
    compiler: &Compiler,
    extents: &[usize],
    kind: usize,
    dtype: DType,
) -> std::result::Result<(), String> {
    let program = Arc::new(limited(extents.len(), kind));
    let mut problem = Problem::unchecked(program, Shape::new(extents).unwrap(), dtype);
    problem.set_boundaries(Boundaries::all(Boundary::Mirror));
    let random = |seed| Start::Random { seed, low: -1.0, high: 1.0 }.fill(&problem.shape, dtype).unwrap();
    let start = [random(1), random(2)];
    let program = Program::compile_as(compiler, &problem, Form::default(), &[])?;
    program.check(&start, 1)?;
    check(compiler, &problem, &start, 1, &[]).map(drop)
}
