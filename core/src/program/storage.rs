//! The buffers in which a launch per stage keeps the fields and temporaries of a program, and which of them
//! each launch reads and writes.
//!
//! A name has a buffer, and two names may share one: a stage that only copies a field onto another makes both
//! names mean the same buffer, and nothing is moved. A stage writes a field where it lies if it taps it at
//! the place of the value alone and no other name means that buffer, else into a free one. So the buffers of
//! names change from step to step. The changes repeat after some steps, which a recording of launches needs.

use super::boxes::{Boxes, Buffer, Indices, is_empty};
use super::groups::made;
use super::{Groups, Problem, Stage, StageKind};
use crate::error::{Error, Result};
use crate::expr::Node;

/// The longest way to a repetition that is searched, in steps.
const MOST_STEPS: usize = 4096;

/// The buffers of a run, and its launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// The buffer of each field before the first step; no two share one.
    pub first: Vec<usize>,
    /// The steps from the first on, of which those from `repeated` on are repeated for ever. Of a program with loops, each phase
    /// with each way in which its fields may lie when it begins; how one leads to another, they say themselves.
    pub steps: Vec<Launches>,
    /// The number of the first step that is repeated; 0 for a program with loops.
    pub repeated: usize,
    /// The field or temporary for which each buffer was added, behind those in which fields begin.
    added_for: Vec<usize>,
}

/// The launches of one step, or of a phase of a step with loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launches {
    /// The number of the step or phase in [`Program::steps`](super::Program::steps).
    pub number: usize,
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// The buffer of each field before the step.
    pub before: Vec<usize>,
    /// The buffer of each field after the step.
    pub fields: Vec<usize>,
    /// The place among [`Storage::steps`] of what follows: of the same loop again, after a turn of one.
    pub next: usize,
    /// The place of what follows where a loop has no turn more.
    pub end: usize,
}

/// One stage, or a group of them, carried out over all values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The numbers of the stages, ascending.
    pub stages: Vec<usize>,
    /// The buffer of each field and temporary before the launch; `None` for a temporary that has none.
    pub reads: Vec<Option<usize>>,
    /// The fields and temporaries that are made: those of [`Stage::writes`], or those of any stage of a group.
    pub made: Vec<usize>,
    /// The buffers that these go to; `None` for a temporary that nothing reads later. Values of a field that no
    /// stage computes are copied there from the field's old buffer, if that is another one.
    pub writes: Vec<Option<usize>>,
}

impl Launch {
    /// Returns the number of the first stage, which is the only one unless stages are grouped.
    pub fn stage(&self) -> usize {
        self.stages[0]
    }

    /// Returns whether this is a group of several stages.
    pub fn is_group(&self) -> bool {
        self.stages.len() > 1
    }
}

/// The buffers of names at one point of a run.
#[derive(Clone, PartialEq, Eq)]
struct State {
    /// Of each field, and then of each temporary.
    names: Vec<Option<usize>>,
    /// The step of the cycle that comes next.
    next: usize,
}

impl Storage {
    /// Assigns buffers for a problem, whose [`Boxes`] are given, from its [`Problem::first_step`] on, where each
    /// stage is launched alone.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the assignment does not repeat within 4096 steps.
    pub fn of(problem: &Problem, boxes: &Boxes) -> Result<Storage> {
        Storage::of_groups(problem, boxes, &Groups::alone(&problem.program))
    }

    /// Does the same where each of some groups, which have been checked, is launched at once.
    ///
    /// # Errors
    ///
    /// Those of [`Storage::of`].
    pub fn of_groups(problem: &Problem, boxes: &Boxes, groups: &Groups) -> Result<Storage> {
        Storage::from_phase(problem, boxes, groups, problem.program.first_phase(problem.first_step))
    }

    /// Does the same from a phase of a step on.
    ///
    /// # Errors
    ///
    /// Those of [`Storage::of`].
    pub fn from_phase(problem: &Problem, boxes: &Boxes, groups: &Groups, phase: usize) -> Result<Storage> {
        let program = &problem.program;
        let fields = program.fields().len();
        let count = program.steps().len();
        let first: Vec<usize> = (0..fields).collect();
        let mut storage = Storage {
            buffers: boxes.buffers[..fields].to_vec(),
            first: first.clone(),
            steps: Vec::new(),
            repeated: 0,
            added_for: Vec::new(),
        };
        let mut seen = vec![State {
            names: first.into_iter().map(Some).chain(program.temporaries().iter().map(|_| None)).collect(),
            next: phase,
        }];
        let fields_of = |state: &State| state.names[..fields].iter().map(|own| own.unwrap_or(0)).collect();
        while let Some(mut state) = seen.get(storage.steps.len()).cloned() {
            if storage.steps.len() == MOST_STEPS {
                return Err(Error::limit(
                    "steps after which the buffers of fields repeat",
                    format!("more than {MOST_STEPS}"),
                    MOST_STEPS,
                    "use fewer copies between fields",
                ));
            }
            let (number, before) = (state.next, fields_of(&state));
            let behind = State { next: (number + 1) % count, ..state.clone() };
            let launches = storage.step(problem, boxes, &groups.steps[number], &mut state);
            let is_loop = program.repeat(number).is_some();
            if !is_loop {
                state.next = behind.next;
            }
            let fields = fields_of(&state);
            let next = find(&mut seen, state);
            let end = if is_loop { find(&mut seen, behind) } else { next };
            storage.steps.push(Launches { number, launches, before, fields, next, end });
        }
        if !program.has_loops() {
            storage.repeated = storage.steps.last().map_or(0, |last| last.next);
        }
        Ok(storage)
    }

    /// Returns the number of the step, or of the phase of a step, that stands at a place.
    pub fn number(&self, place: usize) -> usize {
        self.steps.get(place).map_or(0, |step| step.number)
    }

    /// Returns the place of what comes next after so many turns of the loop that stands at a place.
    pub fn after_turns(&self, place: usize, turns: u64) -> usize {
        let mut place = place;
        for _ in 0..turns {
            let next = self.steps[place].next;
            if next == place {
                break;
            }
            place = next;
        }
        place
    }

    /// Returns the place among [`Storage::steps`] of a step, counted from the first, of a program without loops.
    pub fn place(&self, step: u64) -> usize {
        let (all, repeated) = (self.steps.len() as u64, self.repeated as u64);
        let place = if step < all { step } else { repeated + (step - repeated) % (all - repeated) };
        place as usize
    }

    /// Returns the launches of a step, counted from the first.
    pub fn launches(&self, step: u64) -> &Launches {
        &self.steps[self.place(step)]
    }

    /// Returns the buffer of each field after a number of steps.
    pub fn fields_after(&self, steps: u64) -> &[usize] {
        match steps {
            0 => &self.first,
            _ => &self.launches(steps - 1).fields,
        }
    }

    /// Returns the old buffer that becomes each buffer of this storage; `None` for one to be allocated. A field
    /// keeps its own, unless another field that shares it has taken it. The old buffers are of these `kinds`,
    /// and `names` are those in which the fields lie.
    pub fn taken(&self, kinds: &[&Buffer], names: &[usize]) -> Vec<Option<usize>> {
        let mut from: Vec<Option<usize>> = Vec::new();
        for (number, buffer) in self.buffers.iter().enumerate() {
            let is_free = |old: usize| !from.contains(&Some(old));
            let own = names.get(number).copied().filter(|&old| is_free(old));
            let spare = || {
                (0..kinds.len()).find(|&old| is_free(old) && !names.contains(&old) && kinds[old] == buffer)
            };
            from.push(own.or_else(spare));
        }
        from
    }

    fn step(
        &mut self,
        problem: &Problem,
        boxes: &Boxes,
        groups: &[Vec<usize>],
        state: &mut State,
    ) -> Vec<Launch> {
        let stages = problem.program.stages();
        let fields = problem.program.fields().len();
        let mut launches = Vec::new();
        for (place, group) in groups.iter().enumerate() {
            let is_last = |temporary: usize| {
                let reads = |later: &Stage| later.dag.taps().any(|tap| usize::from(tap.field) == temporary);
                let mut later = groups[place + 1..].iter().flatten().map(|&stage| &stages[stage]);
                // Another stage may set it anew, and readers after that read the new values.
                !later
                    .by_ref()
                    .take_while(|later| reads(later) || !later.writes.contains(&temporary))
                    .any(reads)
            };
            let reads = state.names.clone();
            if let Some(renamed) = copies(boxes, stages, group)
                .filter(|renamed| renamed.iter().all(|&(_, source)| state.names[source].is_some()))
            {
                renamed.into_iter().for_each(|(target, source)| state.names[target] = reads[source]);
            } else {
                let made = made(&problem.program, group);
                let mut writes: Vec<Option<usize>> = Vec::new();
                for (output, &target) in made.iter().enumerate() {
                    let number = group[0];
                    let is_needed = match group.len() {
                        1 => target < fields || !is_empty(&boxes.stages[number][output]),
                        _ => target < fields || !is_last(target),
                    };
                    let own = reads[target].filter(|_| {
                        reads_in_place(stages, group)
                            && may_stay(boxes, number, &stages[number], &reads, target)
                    });
                    writes.push(match own {
                        _ if !is_needed => None,
                        Some(own) => Some(own),
                        None => {
                            let home = Home { of: target, fields, keeps: problem.program.has_loops() };
                            Some(self.free(home, &boxes.buffers[target], &reads, state, &writes))
                        }
                    });
                }
                for (&target, &buffer) in made.iter().zip(&writes) {
                    state.names[target] = buffer;
                }
                launches.push(Launch { stages: group.clone(), reads, made, writes });
            }
            for temporary in fields..state.names.len() {
                if state.names[temporary].is_some() && is_last(temporary) {
                    state.names[temporary] = None;
                }
            }
        }
        state.names[fields..].fill(None);
        launches
    }

    /// Returns a buffer of this kind that no name means, before the stage or after its first outputs; a new
    /// one where there is none. Where fields keep their homes, those of others are none.
    fn free(
        &mut self,
        home: Home,
        kind: &Buffer,
        reads: &[Option<usize>],
        state: &State,
        writes: &[Option<usize>],
    ) -> usize {
        let used = |buffer: usize| {
            reads.contains(&Some(buffer))
                || state.names.contains(&Some(buffer))
                || writes.contains(&Some(buffer))
        };
        let may_take = |buffer: usize| {
            let is_spare = |added_for: usize| added_for == home.of || home.of.min(added_for) >= home.fields;
            !home.keeps
                || buffer == home.of
                || buffer.checked_sub(home.fields).is_some_and(|own| is_spare(self.added_for[own]))
        };
        let mut all = (0..self.buffers.len()).filter(|&buffer| self.buffers[buffer] == *kind);
        let known = all.find(|&buffer| may_take(buffer) && !used(buffer));
        known.unwrap_or_else(|| {
            self.buffers.push(kind.clone());
            self.added_for.push(home.of);
            self.buffers.len() - 1
        })
    }
}

/// What is asked of a buffer for a field or temporary: a field's home is the buffer in which it begins.
///
/// The turns of loops, and what stands between them, bring fields to other buffers in an order that differs from step to step. Where one may
/// take the home or the spare buffer of another, that makes thousands of assignments; where none may, each field is in one of its
/// own. Temporaries share theirs, because nothing of them is left behind a phase.
#[derive(Clone, Copy)]
struct Home {
    of: usize,
    fields: usize,
    keeps: bool,
}

/// Returns the place of a state among those seen, where it is added if it is none.
fn find(seen: &mut Vec<State>, state: State) -> usize {
    let known = seen.iter().position(|known| *known == state);
    known.unwrap_or_else(|| {
        seen.push(state);
        seen.len() - 1
    })
}

/// Returns whether a stage only copies, so that it gives its outputs other buffers and is never launched.
pub fn is_renamed(problem: &Problem, boxes: &Boxes, stage: usize) -> bool {
    copies(boxes, problem.program.stages(), &[stage]).is_some()
}

/// Returns what a group renames, as pairs of a target and its source, where it is one stage that only copies.
fn copies(boxes: &Boxes, stages: &[Stage], group: &[usize]) -> Option<Vec<(usize, usize)>> {
    let &[number] = group else { return None };
    let stage = &stages[number];
    let pair = |output: usize| Some((stage.writes[output], copied(boxes, number, stage, output)?));
    (stage.does == StageKind::Update && stage.points.is_empty())
        .then(|| (0..stage.writes.len()).map(pair).collect())
        .flatten()
}

/// Returns the field or temporary that an output copies whole; `None` if it is no such copy.
fn copied(boxes: &Boxes, number: usize, stage: &Stage, output: usize) -> Option<usize> {
    let Node::Tap(tap) = stage.dag.nodes[stage.dag.outputs[output] as usize] else { return None };
    let (source, target) = (usize::from(tap.field), stage.writes[output]);
    let (from, to) = (&boxes.buffers[source], &boxes.buffers[target]);
    let own = &boxes.stages[number][output];
    let whole = (0..3).all(|axis| {
        own[axis].start == to.low[axis] && own[axis].end == to.low[axis] + to.extents[axis] as isize
    });
    (tap.offset == [0; 3] && from == to && whole).then_some(source)
}

/// Returns whether what follows the first stage of a group reads nothing beside the values that it makes: what others read near their
/// tiles must not be overwritten by the tiles beside.
fn reads_in_place(stages: &[Stage], group: &[usize]) -> bool {
    match *group {
        [_] => true,
        [_, reduction] => {
            let StageKind::Reduce(..) = stages[reduction].does else { return false };
            stages[reduction].dag.taps().all(|tap| tap.offset == [0; 3])
        }
        _ => false,
    }
}

/// Returns whether a field may be written where it lies: no other name means its buffer, and the stage taps
/// it at the place of the value alone. A tap without offset is not there where the stage computes other fields
/// beyond this one's values.
fn may_stay(boxes: &Boxes, number: usize, stage: &Stage, reads: &[Option<usize>], target: usize) -> bool {
    let Some(buffer) = reads[target] else { return false };
    let kind = &boxes.buffers[target];
    let within = |own: &Indices| {
        (0..3).all(|axis| {
            let end = kind.low[axis] + kind.extents[axis] as isize;
            own[axis].start >= kind.low[axis] && own[axis].end <= end
        })
    };
    let alone = reads.iter().filter(|&&other| other == Some(buffer)).count() == 1;
    let mut taps = stage.dag.taps().filter(|tap| usize::from(tap.field) == target).peekable();
    let is_tapped = taps.peek().is_some();
    let mut own = boxes.stages[number].iter().filter(|own| !is_empty(own));
    // A value of a line changes all of it.
    let is_whole = is_tapped && matches!(stage.does, StageKind::Transform(_));
    alone && !is_whole && taps.all(|tap| tap.offset == [0; 3]) && (!is_tapped || own.all(within))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalogue::cloverleaf;
    use crate::domain::Shape;
    use crate::real::DType;

    fn clover() -> (Problem, Boxes) {
        let shape = Shape::new(&[7, 13]).unwrap();
        let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
        let boxes = Boxes::of(&problem).unwrap();
        (problem, boxes)
    }

    /// Resetting costs nothing, and neither does reverting; the assignment soon repeats.
    #[test]
    fn copies_are_names() {
        let (problem, boxes) = clover();
        let storage = Storage::of(&problem, &boxes).unwrap();
        for step in &storage.steps {
            let names: Vec<&str> =
                step.launches.iter().map(|launch| &*problem.program.stages()[launch.stage()].name).collect();
            assert!(!names.iter().any(|name| name.starts_with("reset") || *name == "revert"), "{names:?}");
            let field = |name: &str| step.fields[problem.program.field(name).unwrap()];
            assert_eq!(field("density0"), field("density1"));
        }
        assert!(storage.steps.len() <= 8, "{}", storage.steps.len());
        // A spare buffer for each field that is not updated where it lies, and the temporaries of a sweep.
        assert!(storage.buffers.len() <= 15 + 12, "{}", storage.buffers.len());
    }

    /// If one stage computes a field and a temporary, and the temporary reaches beyond the domain, then it taps the
    /// field's ghost values, and so the field is not updated in place.
    #[test]
    fn what_shows_beyond_the_domain_is_not_overwritten() {
        use crate::domain::Boundary;
        use crate::program::{Centring, Definition};
        let mut p = Definition::new("both", 1);
        p.boundary(Boundary::Mirror).field("u", Centring::CELL).temporary("t", Centring::CELL);
        p.step()
            .stage("both", |s| {
                s.set("u", s.field("u").here() + 1.0);
                s.set("t", 2.0 * s.field("u").here());
            })
            .stage("later", |s| s.set("u", s.field("u").here() + s.field("t").at([-1])));
        let shape = Shape::new(&[9]).unwrap();
        let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap();
        let storage = Storage::of(&problem, &Boxes::of(&problem).unwrap()).unwrap();
        let launches = &storage.steps[0].launches;
        assert_ne!(launches[0].writes[0], launches[0].reads[0]);
        assert_eq!(launches[1].writes[0], launches[1].reads[0]);
    }

    /// No launch writes a buffer that it taps elsewhere, or that another living name means.
    #[test]
    fn launches_write_what_nobody_reads() {
        let (problem, boxes) = clover();
        let storage = Storage::of(&problem, &boxes).unwrap();
        for launch in storage.steps.iter().flat_map(|step| &step.launches) {
            let stage = &problem.program.stages()[launch.stage()];
            for (&target, buffer) in stage.writes.iter().zip(&launch.writes) {
                let buffer = buffer.unwrap();
                assert_eq!(storage.buffers[buffer], boxes.buffers[target]);
                for tap in stage.dag.taps() {
                    let read = launch.reads[usize::from(tap.field)];
                    assert!(read.is_some());
                    let same = usize::from(tap.field) == target && tap.offset == [0; 3];
                    assert!(same || read != Some(buffer), "{}", stage.name);
                }
                let others = launch.reads.iter().enumerate().filter(|(name, _)| *name != target);
                assert!(others.clone().all(|(_, &other)| other != Some(buffer)), "{}", stage.name);
            }
        }
    }

    /// After a step of CloverLeaf two names mean one buffer. Each field then gets one of its own kind, those
    /// that need not move stay, and no old buffer becomes two new ones.
    #[test]
    fn fields_that_share_a_buffer_part() {
        let (mut problem, boxes) = clover();
        let old = Storage::of(&problem, &boxes).unwrap();
        for steps in 1..6 {
            let names = old.fields_after(steps);
            problem.first_step = steps;
            let new = Storage::of(&problem, &boxes).unwrap();
            let kinds: Vec<&Buffer> = old.buffers.iter().collect();
            let from = new.taken(&kinds, names);
            assert_eq!(from.len(), new.buffers.len());
            for (number, &from) in from.iter().enumerate() {
                assert!(from.is_none_or(|from| *kinds[from] == new.buffers[number]));
            }
            let mut used: Vec<usize> = from.iter().copied().flatten().collect();
            used.sort_unstable();
            let count = used.len();
            used.dedup();
            assert_eq!(used.len(), count);
            // The first of the fields in a buffer keeps it, and is there for the others to copy.
            for (field, &name) in names.iter().enumerate() {
                let first = names.iter().position(|&other| other == name).unwrap();
                assert_eq!(from[field] == Some(name), first == field, "field {field} after {steps} steps");
                assert_eq!(from[first], Some(name));
            }
            assert!(names.iter().enumerate().any(|(field, name)| names[..field].contains(name)));
        }
    }
}
