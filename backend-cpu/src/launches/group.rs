//! Launches of a step that sweep the rows in one pass, so that a row comes from memory once for all of them.
//!
//! The rows are cut into strips, one for each thread. In a strip a front moves from row to row, and each launch
//! follows it at a distance: by then the earlier launches have written what it reads, and have read what it
//! overwrites. Near a cut a launch leaves out the rows that depend on the neighbouring strip. Those rows are
//! computed at the end, launch by launch. Every value is computed from the same values as without groups.
//!
//! Rows are counted along the slowest axis: in three dimensions they are planes.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::Real;
use abide_core::floating::standard;
use abide_core::program::{Boxes, Indices, Launch, around};
use rayon::prelude::*;

use super::Stage;
use super::field_rows::{FieldRows, Line};
use super::sweep::{FEW, Task, Work, covers, share};

/// What groups are made for.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Values for which a second thread is worth waking.
    pub few: usize,
    /// Values by which the front of a strip moves on at once, about: enough for what is set up once for them.
    pub front: usize,
    /// The most bytes between the front and the last launch of a group, which should stay in a thread's share
    /// of the last cache.
    pub in_flight: usize,
    /// A strip has at least so many times the rows that are left out at its ends: in a group of launches of one step, and of
    /// several steps, whose rows at the ends come from memory for each launch anew.
    pub strip: [isize; 2],
}

/// With fronts of half or twice as many values CloverLeaf on 960² takes about as long.
pub const SIZES: Sizes = Sizes { few: FEW, front: 8192, in_flight: 8 << 20, strip: [3, 12] };

/// Launches that follow each other in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their numbers; a single one goes over its values by itself.
    pub launches: Range<usize>,
    /// The rows of each launch.
    rows: Vec<Range<isize>>,
    /// The rows that each launch leaves out after a cut and before one.
    margins: Vec<[isize; 2]>,
    /// Between strips, the first row of the second.
    cuts: Vec<isize>,
    /// The rows by which a front moves on at once.
    front: isize,
    /// The axis along which rows are counted.
    axis: usize,
}

/// The rows of a name that a stage reads, counted from the row that it computes.
struct Reach {
    name: usize,
    low: isize,
    high: isize,
}

/// The part of a launch that matters for others of its group.
struct Member {
    rows: Range<isize>,
    /// The values of a row.
    row: usize,
    /// The buffers read, and how far they are read before and after the row.
    reads: Vec<(usize, [isize; 2])>,
    writes: Vec<usize>,
    margins: [isize; 2],
}

/// A finder of the groups of a problem's steps.
pub struct Finder<'a> {
    field_rows: &'a FieldRows,
    boxes: &'a Boxes,
    threads: usize,
    /// `None` where each launch goes over its values by itself.
    sizes: Option<Sizes>,
    /// The axis along which rows are counted.
    axis: usize,
    /// Of each stage that may be part of a group, what it reads.
    reaches: Vec<Option<Vec<Reach>>>,
}

impl<'a> Finder<'a> {
    /// Returns a finder of groups for a number of threads.
    pub fn new(
        field_rows: &'a FieldRows,
        boxes: &'a Boxes,
        stages: &[Stage],
        threads: usize,
        sizes: Option<Sizes>,
    ) -> Self {
        let axis = usize::from(field_rows.problem.shape.dimensions() < 3);
        let mut finder = Finder { field_rows, boxes, threads, sizes, axis, reaches: Vec::new() };
        let reaches = stages.iter().enumerate().map(|(number, stage)| finder.reaches(number, stage));
        finder.reaches = reaches.collect();
        finder
    }

    /// Returns what a stage reads; `None` if it goes over its values by itself.
    fn reaches(&self, number: usize, stage: &Stage) -> Option<Vec<Reach>> {
        let (Stage::Update(bytecode), Some(_)) = (stage, self.sizes) else { return None };
        let program = &self.field_rows.problem.program;
        if program.has_levels() && !program.are_on_one_grid([&program.stages()[number]]) {
            return None;
        }
        let all = self.all(number)?;
        if self.axis == 1 && all[0].len() != 1 {
            return None;
        }
        let mut reaches: Vec<Reach> = Vec::new();
        for row in &bytecode.rows {
            let offset = bytecode.lines[row.line];
            // Every row is asked: boundaries show rows of other places.
            for at in all[self.axis].clone() {
                // Along the other axis any place that is held will do.
                let low = self.field_rows.kind(row.field).low;
                let mut place = [low[0], low[1]];
                place[self.axis] = at + offset[self.axis];
                let Line::At { name, start, .. } = self.field_rows.line::<f64>(row.field, place) else {
                    continue;
                };
                let kind = self.field_rows.kind(name);
                let of_row: usize = kind.extents[self.axis + 1..].iter().product();
                let far = (start / of_row.max(1)) as isize + kind.low[self.axis] - at;
                match reaches.iter_mut().find(|reach| reach.name == name) {
                    Some(reach) => (reach.low, reach.high) = (reach.low.min(far), reach.high.max(far)),
                    None => reaches.push(Reach { name, low: far, high: far }),
                }
            }
        }
        Some(reaches)
    }

    fn all(&self, stage: usize) -> Option<Indices> {
        around(&self.boxes.stages[stage])
    }

    /// Returns the groups of a step's launches, which come in order.
    pub fn groups(&self, stages: &[abide_core::Stage], launches: &[Launch]) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut start = 0;
        while start < launches.len() {
            let mut members: Vec<Member> = Vec::new();
            let mut group = None;
            for launch in &launches[start..] {
                let Some(member) = self.member(&stages[launch.stage()], launch, &members) else { break };
                members.push(member);
                let Some(larger) = self.group(start, &members, 0) else { break };
                group = Some(larger);
            }
            let alone = Group {
                launches: start..start + 1,
                rows: Vec::new(),
                margins: Vec::new(),
                cuts: Vec::new(),
                front: 0,
                axis: self.axis,
            };
            let group = group.unwrap_or(alone);
            start = group.launches.end;
            groups.push(group);
        }
        groups
    }

    /// Returns the group of all launches of several steps, which come in order; `None` where they are none.
    pub fn deep(&self, stages: &[abide_core::Stage], launches: &[&Launch]) -> Option<Group> {
        let mut members: Vec<Member> = Vec::new();
        for launch in launches {
            members.push(self.member(&stages[launch.stage()], launch, &members)?);
        }
        self.group(0, &members, 1)
    }

    /// Returns a launch as a member of a group, after others; `None` if it goes over its values by itself.
    fn member(&self, stage: &abide_core::Stage, launch: &Launch, others: &[Member]) -> Option<Member> {
        let reaches = self.reaches[launch.stage()].as_ref()?;
        let outputs = || stage.writes.iter().zip(&launch.writes);
        for ((&name, &write), own) in outputs().zip(&self.boxes.stages[launch.stage()]) {
            let is_new = write.is_some() && !launch.reads.contains(&write);
            // What the stage does not compute is copied before it.
            if is_new && launch.reads[name].is_some() && !covers(self.field_rows, name, own) {
                return None;
            }
        }
        let read = |reach: &Reach| Some((launch.reads[reach.name]?, [-reach.low.min(0), reach.high.max(0)]));
        let all = self.all(launch.stage())?;
        let mut member = Member {
            rows: all[self.axis].clone(),
            row: all[self.axis + 1..].iter().map(Range::len).product(),
            reads: reaches.iter().filter_map(read).collect(),
            writes: launch.writes.iter().copied().flatten().collect(),
            margins: [0; 2],
        };
        for other in others {
            let [mut after, mut before] = [-1; 2];
            for (_, [low, high]) in member.reads.iter().filter(|(read, _)| other.writes.contains(read)) {
                // The rows must have been written by the other launch.
                (after, before) = (after.max(*low), before.max(*high));
            }
            for (_, [low, high]) in other.reads.iter().filter(|(read, _)| member.writes.contains(read)) {
                // The other launch must have read the rows, be it after all strips.
                (after, before) = (after.max(*high), before.max(*low));
            }
            if other.writes.iter().any(|write| member.writes.contains(write)) {
                (after, before) = (after.max(0), before.max(0));
            }
            for (margin, (other, far)) in
                member.margins.iter_mut().zip(other.margins.into_iter().zip([after, before]))
            {
                if far >= 0 {
                    *margin = (*margin).max(other + far);
                }
            }
        }
        Some(member)
    }

    /// Returns the group of some launches, of one step or of several (1); `None` if they are too few, or too far apart for the
    /// rows or for the caches.
    fn group(&self, start: usize, members: &[Member], several: usize) -> Option<Group> {
        let sizes = self.sizes?;
        let low = members.iter().map(|member| member.rows.start).min()?;
        let high = members.iter().map(|member| member.rows.end).max()?;
        let mut buffers: Vec<usize> = Vec::new();
        for member in members {
            buffers.extend(member.reads.iter().map(|(buffer, _)| buffer));
            buffers.extend(&member.writes);
        }
        buffers.sort_unstable();
        buffers.dedup();
        let row = members.iter().map(|member| member.row).max()?;
        let [after, before] = [0, 1].map(|side| members.iter().map(|member| member.margins[side]).max());
        let (after, before) = (after?, before?);
        let front = (sizes.front / row.max(1)).max(1) as isize;
        let in_flight =
            buffers.len() * row * (before + front) as usize * self.field_rows.problem.dtype.bytes();
        let strips = if row * (high - low) as usize > sizes.few { self.threads as isize } else { 1 };
        let strip = (high - low) / strips;
        if in_flight > sizes.in_flight
            || (strips > 1 && strip < sizes.strip[several] * (after + before).max(1))
        {
            return None;
        }
        Some(Group {
            launches: start..start + members.len(),
            rows: members.iter().map(|member| member.rows.clone()).collect(),
            margins: members.iter().map(|member| member.margins).collect(),
            cuts: (1..strips).map(|strip| low + (high - low) * strip / strips).collect(),
            front,
            axis: self.axis,
        })
    }
}

impl Group {
    /// Returns whether there is more than one strip.
    #[cfg(test)]
    pub fn is_cut(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Carries out the launches, each given as what it does.
    pub fn run<T: Real>(&self, tasks: &[Task<'_, T>], works: &mut [Work<T>]) {
        let next = AtomicUsize::new(0);
        let all = |work: &mut Work<T>| loop {
            let strip = next.fetch_add(1, Ordering::Relaxed);
            if strip > self.cuts.len() {
                break;
            }
            standard(|| self.strip(strip, tasks, work));
        };
        match works {
            [work, ..] if self.cuts.is_empty() => all(work),
            _ => works.par_iter_mut().with_max_len(1).for_each(all),
        }
        for (member, task) in tasks.iter().enumerate() {
            let [after, before] = self.margins[member];
            // Rows at cuts are counted one cut after another.
            let of_cut = (after + before) as usize;
            let rows = of_cut * self.cuts.len();
            share(works, rows, rows * task.values_of(1, self.axis), |work, band| {
                let mut row = band.start;
                while row < band.end {
                    let (cut, end) = (row / of_cut, band.end.min((row / of_cut + 1) * of_cut));
                    let first = self.cuts[cut] - before - (cut * of_cut) as isize;
                    self.compute(member, task, work, first + row as isize..first + end as isize);
                    row = end;
                }
            });
        }
    }

    /// Carries out the launches on a strip, but for the rows near cuts.
    fn strip<T: Real>(&self, strip: usize, tasks: &[Task<'_, T>], work: &mut Work<T>) {
        let cut = |strip: usize| self.cuts.get(strip).copied();
        let before = strip.checked_sub(1).and_then(cut);
        let low = self.rows.iter().map(|rows| rows.start).min().unwrap_or(0);
        let reach = self.rows.iter().zip(&self.margins).map(|(rows, [_, before])| rows.end + before);
        let end = cut(strip).unwrap_or(reach.max().unwrap_or(0));
        let first = |[after, _]: &[isize; 2]| before.map_or(isize::MIN, |cut| cut + after);
        let mut done: Vec<isize> = self.margins.iter().map(first).collect();
        let mut front = before.unwrap_or(low);
        while front < end {
            front = end.min(front + self.front);
            for (member, task) in tasks.iter().enumerate() {
                let to = front - self.margins[member][1];
                if to > done[member] {
                    self.compute(member, task, work, done[member]..to);
                    done[member] = to;
                }
            }
        }
    }

    /// Computes those of some rows that a launch has.
    fn compute<T: Real>(&self, member: usize, task: &Task<'_, T>, work: &mut Work<T>, rows: Range<isize>) {
        let all = &self.rows[member];
        let rows = rows.start.max(all.start)..rows.end.min(all.end);
        if !rows.is_empty() {
            // SAFETY: no other thread computes these rows. What they read is complete, and nobody overwrites
            // it meanwhile: see the margins.
            unsafe {
                task.rows(work, self.axis, (rows.start - all.start) as usize..(rows.end - all.start) as usize)
            };
        }
    }
}
