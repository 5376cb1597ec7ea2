//! Reductions of what an update has just made: the update's threads hold the values, and join them where they are.

use abide_core::domain::Shape;
use abide_core::program::{Boxes, Indices, StageKind, around, is_empty, outlasts};
use abide_core::reduction::leaf;
use abide_core::{Problem, Stage};

/// Returns whether stages are an update and a reduction that one kernel makes without a second look at memory: the reduction
/// taps values at its own index alone, one at least of which the update makes, at all indices that the update computes; and
/// the tiles of both, which are the leaves of the reduction's tree, are the same.
pub fn is_tail(problem: &Problem, boxes: &Boxes, stages: &[usize]) -> bool {
    let all = problem.program.stages();
    let &[number, reduction] = stages else { return false };
    let (update, reduce) = (&all[number], &all[reduction]);
    let is_update = update.does == StageKind::Update && update.points.is_empty() && update.looped.is_none();
    let is_reduction = matches!(reduce.does, StageKind::Reduce(..)) && reduce.looped.is_none();
    if !is_update || !is_reduction || !problem.program.are_on_one_grid([update, reduce]) {
        return false;
    }
    let Some(region) = boxes.stages[reduction].first().filter(|region| !is_empty(region)) else {
        return false;
    };
    let own = &boxes.stages[number];
    let (Some(computed), Some(held)) = (around(own), held(problem, boxes, update, own)) else { return false };
    let outlasts = outlasts(problem, boxes, stages);
    let output_of = |name: usize| update.writes.iter().position(|&made| made == name);
    let is_at_hand = |name: usize| match output_of(name) {
        // What is kept in no buffer is only known where it is computed; a ghost value is another thread's.
        Some(output) => {
            let known = if outlasts[name] { boxes.buffers[name].indices() } else { own[output].clone() };
            own[output] == computed && holds(&known, region)
        }
        None => true,
    };
    let taps: Vec<_> = reduce.dag.taps().collect();
    let names = || taps.iter().map(|tap| usize::from(tap.field));
    taps.iter().all(|tap| tap.offset == [0; 3])
        && names().any(|name| output_of(name).is_some())
        && names().all(is_at_hand)
        && are_same_tiles(&problem.shape, &held, region)
}

/// Returns the box around all values that an update's kernel makes or takes along.
fn held(problem: &Problem, boxes: &Boxes, update: &Stage, own: &[Indices]) -> Option<Indices> {
    let fields = problem.program.fields().len();
    let of = |(own, &name): (&Indices, &usize)| {
        if name < fields { boxes.buffers[name].indices() } else { own.clone() }
    };
    around(&own.iter().zip(&update.writes).map(of).collect::<Vec<_>>())
}

/// Returns whether a box has all indices of another one.
fn holds(whole: &Indices, part: &Indices) -> bool {
    (0..3).all(|axis| whole[axis].start <= part[axis].start && whole[axis].end >= part[axis].end)
}

/// Returns whether the leaves over a region are those over all that is held.
fn are_same_tiles(shape: &Shape, held: &Indices, region: &Indices) -> bool {
    let tiles = |end: isize, axis: usize| (end.max(1) as usize).div_ceil(leaf(shape.dimensions())[axis]);
    (0..3).all(|axis| held[axis].start >= 0 && tiles(held[axis].end, axis) <= tiles(region[axis].end, axis))
}
