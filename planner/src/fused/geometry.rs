//! What the members of a group compute beyond a tile, how far one is behind the other, and which rows are kept.

use std::ops::Range;

use abide_core::domain::Source as GhostSource;
use abide_core::expr::Node;
use abide_core::plan::fused::{Fused, Member, Output, Ring, Source};
use abide_core::program::{Boxes, Indices, StageKind, around, is_empty};
use abide_core::reduction::leaf;
use abide_core::{Problem, Stage};

use abide_core::domain::Boundary;

use super::loads;

/// Why stages are no group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

type Outcome<T> = std::result::Result<T, Refusal>;

fn refuse<T>(why: impl Into<String>) -> Outcome<T> {
    Err(Refusal(why.into()))
}

/// Makes a group of stages of a problem that is not plain, ascending and of one step, with tiles of these extents for
/// blocks of so many threads. `outlasts` says of each field and temporary whether somebody reads it
/// after the group; `copies`, whether what it reads is copied into shared memory before.
///
/// # Errors
///
/// A [`Refusal`] where the stages are no group: one of them needs what the whole domain has to be known for, or blocks
/// would have to wait for each other.
pub fn fused(
    problem: &Problem,
    boxes: &Boxes,
    stages: &[usize],
    outlasts: &[bool],
    tile: [usize; 3],
    threads: usize,
    copies: bool,
) -> Outcome<Fused> {
    let mut group = Geometry::new(problem, boxes, stages, outlasts)?;
    group.lay(tile, copies)?;
    group.follow()?;
    if copies {
        // Stages of one turn compute at the same indices then, as one formula.
        group.even();
        group.lay(tile, copies)?;
        group.follow()?;
    }
    let mut group = group.finish(threads);
    if copies {
        loads::copy(problem, boxes, &mut group);
    }
    Ok(group)
}

/// What a member makes for another one.
struct Link {
    from: usize,
    output: usize,
    to: usize,
    name: usize,
    offsets: Vec<[isize; 3]>,
}

struct Geometry<'a> {
    problem: &'a Problem,
    boxes: &'a Boxes,
    stages: Vec<&'a Stage>,
    numbers: Vec<usize>,
    links: Vec<Link>,
    axis: usize,
    wraps: [bool; 3],
    /// Of each member, and each output: whether it is stored.
    stored: Vec<Vec<bool>>,
    /// The box of indices at which a member has values, before and after it.
    held: Vec<Indices>,
    tile: [usize; 3],
    first: [isize; 3],
    blocks: [usize; 3],
    beyond: Vec<[[usize; 2]; 3]>,
    lags: Vec<usize>,
    members: Vec<Member>,
    rings: Vec<Ring>,
}

impl<'a> Geometry<'a> {
    fn new(
        problem: &'a Problem,
        boxes: &'a Boxes,
        numbers: &[usize],
        outlasts: &[bool],
    ) -> Outcome<Geometry<'a>> {
        let program = &problem.program;
        let stages: Vec<&Stage> = numbers.iter().map(|&number| &program.stages()[number]).collect();
        if !program.are_on_one_grid(stages.iter().copied()) {
            return refuse("they are on several grids");
        }
        for (place, stage) in stages.iter().enumerate() {
            match stage.does {
                StageKind::Scalar(_) => return refuse(format!("{} computes a scalar", stage.name)),
                StageKind::Transform(_) => return refuse(format!("{} transforms whole lines", stage.name)),
                StageKind::Update if !stage.points.is_empty() => {
                    return refuse(format!("{} computes at points", stage.name));
                }
                StageKind::Reduce(..) => {
                    let mut others = stages[place + 1..].iter();
                    let waits = |later: usize| abide_core::program::waits(problem, later, numbers[place]);
                    if others.any(|other| matches!(other.does, StageKind::Reduce(..)))
                        || numbers[place + 1..].iter().any(|&later| waits(later))
                    {
                        return refuse(format!("others wait for the scalar of {}", stage.name));
                    }
                }
                StageKind::Update => {}
            }
        }
        let own = |member: usize| &boxes.stages[numbers[member]];
        let makes = |member: usize, name: usize| {
            let output = stages[member].writes.iter().position(|&made| made == name)?;
            (!is_empty(&own(member)[output])).then_some(output)
        };
        let mut links: Vec<Link> = Vec::new();
        for (to, stage) in stages.iter().enumerate() {
            for tap in stage.dag.taps() {
                let (name, offset) = (usize::from(tap.field), tap.offset.map(|by| by as isize));
                match links.iter_mut().find(|link| link.to == to && link.name == name) {
                    Some(link) => link.offsets.push(offset),
                    None => {
                        let made = (0..to).rev().find_map(|from| Some((from, makes(from, name)?)));
                        links.extend(made.map(|(from, output)| Link {
                            from,
                            output,
                            to,
                            name,
                            offsets: vec![offset],
                        }));
                    }
                }
            }
        }
        let stored = (0..stages.len()).map(|member| {
            let is_last = |name: usize| (member + 1..stages.len()).all(|later| makes(later, name).is_none());
            let writes = stages[member].writes.iter();
            writes.map(|&name| makes(member, name).is_some() && is_last(name) && outlasts[name]).collect()
        });
        let fields = program.fields().len();
        let mut held = Vec::new();
        for (member, stage) in stages.iter().enumerate() {
            let mut all: Vec<Indices> = own(member).clone();
            for (output, &name) in stage.writes.iter().enumerate() {
                let buffer = &boxes.buffers[name];
                if name < fields && is_empty(&own(member)[output]) {
                    return refuse(format!("{} computes no value of a field", stage.name));
                }
                let whole = buffer.indices();
                if name < fields && own(member)[output] != whole {
                    // What the stage does not compute it takes along.
                    if (0..member).any(|earlier| makes(earlier, name).is_some()) {
                        return refuse(format!("{} leaves values of an earlier stage", stage.name));
                    }
                    all.push(whole);
                }
            }
            held.push(around(&all).unwrap_or([0..0, 0..0, 0..0]));
        }
        let axis = if problem.shape.dimensions() == 3 { 0 } else { 1 };
        let stored: Vec<Vec<bool>> = stored.collect();
        let mut group = Geometry {
            problem,
            boxes,
            numbers: numbers.to_vec(),
            links,
            axis,
            wraps: [false; 3],
            stored,
            held,
            tile: [1; 3],
            first: [0; 3],
            blocks: [1; 3],
            beyond: vec![[[0; 2]; 3]; stages.len()],
            lags: vec![0; stages.len()],
            members: Vec::new(),
            rings: Vec::new(),
            stages,
        };
        for axis in 0..3 {
            group.wraps[axis] = group.wraps_along(axis)?;
        }
        Ok(group)
    }

    fn is_field(&self, name: usize) -> bool {
        name < self.problem.program.fields().len()
    }

    fn is_periodic(&self, name: usize, axis: usize) -> bool {
        self.problem.boundaries_of(name).0[axis][0] == Boundary::Periodic
    }

    /// Returns whether indices beyond the domain are computed anew along an axis, because a field that the group
    /// makes repeats there.
    fn wraps_along(&self, axis: usize) -> Outcome<bool> {
        let is_away = |link: &Link| link.offsets.iter().any(|offset| offset[axis] != 0);
        let mut repeating = self
            .links
            .iter()
            .filter(|link| self.is_field(link.name) && self.is_periodic(link.name, axis) && is_away(link));
        if repeating.next().is_none() {
            return Ok(false);
        }
        let mut extent = None;
        for stage in &self.stages {
            let has_place = stage.dag.nodes.contains(&Node::Coord(axis as u8));
            let differs = stage.names().any(|name| {
                let own = self.boxes.buffers[name].extents[axis];
                self.is_field(name) && (!self.is_periodic(name, axis) || *extent.get_or_insert(own) != own)
            });
            if has_place || differs || stage.does != StageKind::Update {
                return refuse(format!("{} does not repeat along a periodic axis as others do", stage.name));
            }
        }
        Ok(true)
    }

    /// Returns the indices of a member along an axis, beyond the domain where they are computed anew.
    fn range(&self, member: usize, axis: usize) -> Range<isize> {
        let Range { start, end } = self.held[member][axis].clone();
        match self.wraps[axis] {
            true => {
                start - self.beyond[member][axis][0] as isize..end + self.beyond[member][axis][1] as isize
            }
            false => start..end,
        }
    }

    /// Lays tiles over all that is stored or reduced, and finds what each member computes beyond them. Where rows are copied, tiles
    /// begin where words of 16 bytes do.
    fn lay(&mut self, tile: [usize; 3], copies: bool) -> Outcome<()> {
        let is_reduced = |stage: &&Stage| matches!(stage.does, StageKind::Reduce(..));
        let reduces = self.stages.iter().any(is_reduced);
        let laid: Vec<Indices> = (0..self.stages.len())
            .filter(|&member| is_reduced(&self.stages[member]) || self.stored[member].contains(&true))
            .map(|member| self.held[member].clone())
            .collect();
        let Some(all) = around(&laid) else { return refuse("nothing of it is read") };
        let leaf = leaf(self.problem.shape.dimensions());
        for axis in 0..3 {
            if reduces && !tile[axis].is_multiple_of(leaf[axis]) {
                return refuse("a reduction needs tiles of whole leaves");
            }
            self.tile[axis] = tile[axis];
            // Leaves are counted from the first index of the domain.
            let word =
                if copies && axis == 2 { loads::values_of_word(self.problem.dtype) } else { 1 } as isize;
            self.first[axis] = if reduces { 0 } else { all[axis].start.div_euclid(word) * word };
            if all[axis].start < self.first[axis] {
                return refuse("a reduction beside values beyond the domain");
            }
            let count = (all[axis].end - self.first[axis]).max(1) as usize;
            self.blocks[axis] = count.div_ceil(tile[axis]);
        }
        for member in (0..self.stages.len()).rev() {
            let mut beyond = [[0; 2]; 3];
            for link in self.links.iter().filter(|link| link.from == member) {
                for (axis, beyond) in beyond.iter_mut().enumerate() {
                    for offset in &link.offsets {
                        let needed = self.needed(link, axis, offset[axis]);
                        *beyond = [beyond[0].max(needed[0]), beyond[1].max(needed[1])];
                    }
                }
            }
            let is_read = self.links.iter().any(|link| link.from == member);
            for axis in (0..3).filter(|&axis| is_read && self.wraps[axis]) {
                // What is stored beyond the domain needs more of a stage whose own indices end before it.
                let own = &self.held[member][axis];
                beyond[axis][0] += (own.start - all[axis].start).max(0) as usize;
                beyond[axis][1] += (all[axis].end - own.end).max(0) as usize;
            }
            let most = |new: [usize; 2], old: [usize; 2]| [new[0].max(old[0]), new[1].max(old[1])];
            let beyond = [0, 1, 2].map(|axis| most(beyond[axis], self.beyond[member][axis]));
            self.beyond[member] = beyond;
            let is_anew = (0..3).any(|axis| self.wraps[axis] && beyond[axis] != [0; 2]);
            let is_linked =
                |name: usize| self.links.iter().any(|link| link.to == member && link.name == name);
            let mut taps = self.stages[member].dag.taps().map(|tap| usize::from(tap.field));
            if is_anew && taps.any(|name| !self.is_field(name) && !is_linked(name)) {
                let name = &self.stages[member].name;
                return refuse(format!(
                    "{name} is needed beyond the domain, where a temporary has no values"
                ));
            }
        }
        Ok(())
    }

    /// Has members of the same lag compute as far beyond a tile's sides as one of them.
    fn even(&mut self) {
        let updates: Vec<usize> =
            (0..self.stages.len()).filter(|&member| self.stages[member].does == StageKind::Update).collect();
        let before = self.beyond.clone();
        for &one in &updates {
            for &other in updates.iter().filter(|&&other| self.lags[other] == self.lags[one]) {
                for (axis, own) in self.beyond[one].iter_mut().enumerate() {
                    let most = before[other][axis];
                    *own = [own[0].max(most[0]), own[1].max(most[1])];
                }
            }
        }
    }

    /// Returns the indices that a link's maker computes beyond a tile's sides for a tap along an axis.
    fn needed(&self, link: &Link, axis: usize, offset: isize) -> [usize; 2] {
        let [low, high] = self.beyond[link.to][axis].map(|by| by as isize);
        let mut needed = [(low - offset).max(0), (high + offset).max(0)];
        if self.is_field(link.name) && !self.wraps[axis] {
            let (n, tile) = (self.boxes.buffers[link.name].extents[axis] as isize, self.tile[axis] as isize);
            let (all, boundaries) = (self.range(link.to, axis), self.problem.boundaries_of(link.name));
            let mut ask = |block: isize| {
                let start = self.first[axis] + block * tile;
                let own = (start - low).max(all.start)..(start + tile + high).min(all.end);
                let mut reaches_out = false;
                for tapped in own.start + offset..own.end + offset {
                    if (0..n).contains(&tapped) {
                        continue;
                    }
                    reaches_out = true;
                    if let (GhostSource::Cell(at), _) = boundaries.shown(axis, tapped, n as usize) {
                        let at = at as isize;
                        needed = [needed[0].max(start - at), needed[1].max(at - (start + tile - 1))];
                    }
                }
                reaches_out || own.is_empty()
            };
            let blocks = self.blocks[axis] as isize;
            let _ = (0..blocks).try_for_each(|block| ask(block).then_some(()));
            let _ = (0..blocks).rev().try_for_each(|block| ask(block).then_some(()));
        }
        needed.map(|by| by as usize)
    }

    /// Returns the rows, relative to its own, that a member reads of a link.
    fn rows(&self, link: &Link) -> [isize; 2] {
        let axis = self.axis;
        let own = self.range(link.to, axis);
        let mut rows = [isize::MAX, isize::MIN];
        let mut add = |row: isize| rows = [rows[0].min(row), rows[1].max(row)];
        for offset in link.offsets.iter().map(|offset| offset[axis]) {
            add(offset);
            if !self.is_field(link.name) || self.wraps[axis] {
                continue;
            }
            let n = self.boxes.buffers[link.name].extents[axis] as isize;
            let boundaries = self.problem.boundaries_of(link.name);
            let low = own.start..own.end.min(-offset);
            let high = own.start.max(n - offset).max(low.end)..own.end;
            for row in low.chain(high) {
                if let (GhostSource::Cell(at), _) = boundaries.shown(axis, row + offset, n as usize) {
                    add(at as isize - row);
                }
            }
        }
        rows
    }

    /// Returns whether a link is read at other indices of a row than the own one.
    fn is_away(&self, link: &Link) -> bool {
        (self.axis + 1..3)
            .any(|axis| link.offsets.iter().any(|offset| offset[axis] != 0) || !self.is_within(link, axis))
    }

    /// Returns whether all that a member taps of a link at its own index along an axis is a value of the field.
    fn is_within(&self, link: &Link, axis: usize) -> bool {
        let (own, made) = (&self.held[link.to][axis], &self.boxes.buffers[link.name]);
        let low = made.low[axis];
        self.wraps[axis]
            || !self.is_field(link.name)
            || own.start >= low && own.end <= low + made.extents[axis] as isize
    }

    /// Puts each member so far behind that what it reads is there, and finds what is kept for it.
    fn follow(&mut self) -> Outcome<()> {
        self.rings.clear();
        for to in 0..self.stages.len() {
            let mut lag = 0;
            for link in self.links.iter().filter(|link| link.to == to) {
                let [_, last] = self.rows(link);
                let turns = last + isize::from(self.is_away(link));
                lag = lag.max(self.lags[link.from] as isize + turns);
            }
            self.lags[to] = lag as usize;
        }
        let mut members: Vec<Member> = (0..self.stages.len())
            .map(|member| Member {
                stage: self.numbers[member],
                beyond: self.beyond[member],
                lag: self.lags[member],
                sources: Vec::new(),
                outputs: (self.stored[member].iter())
                    .map(|&is_stored| Output { is_stored, ..Output::default() })
                    .collect(),
            })
            .collect();
        for link in &self.links {
            let made = &self.boxes.stages[self.numbers[link.from]][link.output];
            let is_here = link.offsets.iter().all(|offset| *offset == [0; 3]);
            let is_made = (0..3).all(|axis| {
                let own = &self.held[link.to][axis];
                self.wraps[axis] || own.start >= made[axis].start && own.end <= made[axis].end
            });
            if is_here && is_made && self.lags[link.to] == self.lags[link.from] {
                members[link.from].outputs[link.output].is_passed = true;
                members[link.to].sources.push((link.name, Source::Passed(link.from, link.output)));
                continue;
            }
            let [first, _] = self.rows(link);
            let rows = self.lags[link.to] as isize - self.lags[link.from] as isize - first + 1;
            let output = &mut members[link.from].outputs[link.output];
            let ring = *output.ring.get_or_insert(self.rings.len());
            if ring == self.rings.len() {
                self.rings.push(Ring { name: link.name, rows: 1 });
            }
            self.rings[ring].rows = self.rings[ring].rows.max(rows.max(1) as usize);
            members[link.to].sources.push((link.name, Source::Ring(ring)));
        }
        self.members = members;
        Ok(())
    }

    fn finish(self, threads: usize) -> Fused {
        let most =
            |axis: usize, side: usize| self.beyond.iter().map(|beyond| beyond[axis][side]).max().unwrap_or(0);
        Fused {
            beyond: [0, 1, 2].map(|axis| [0, 1].map(|side| most(axis, side))),
            members: self.members,
            axis: self.axis,
            tile: self.tile,
            first: self.first,
            blocks: self.blocks,
            threads,
            rings: self.rings,
            loads: Vec::new(),
            copied: [[0; 2]; 3],
            wraps: self.wraps,
        }
    }
}
