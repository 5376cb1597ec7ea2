//! A program where its domain is a part of another one, cut along the slowest axis.

use super::{Program, Stage, StageKind};
use crate::domain::Shape;
use crate::expr::{Binary, Constant, Dag, Id, Node, Tap};

/// Where a part of a domain lies along the axis that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The axis, of the three padded ones.
    pub axis: usize,
    /// The index in the whole domain of the part's first cell; below 0 or beyond the end only in a ring.
    pub first: isize,
    /// Cells of the whole domain along the axis.
    pub whole: usize,
    /// Whether the whole domain is periodic along the axis.
    pub is_ring: bool,
}

impl Part {
    /// Returns the indices in a part of so many planes at which the plane of an index of the whole domain lies: none,
    /// one, or in a ring several.
    pub fn images(&self, index: usize, planes: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, turn) = (index as isize - self.first, self.whole as isize);
        let (start, step) = match self.is_ring {
            true => (first.rem_euclid(turn), turn as usize),
            // One image alone, if it lies inside.
            false if first >= 0 => (first, usize::MAX / 2),
            false => (planes as isize, 1),
        };
        (start as usize..planes).step_by(step)
    }
}

impl Program {
    /// Returns the program for a part of a domain: formulas that know where they are, points and extents mean the whole
    /// domain. A stage none of whose points lie in the part is left out; where a step would have no stage then, one stays that
    /// changes nothing.
    ///
    /// No value differs by a bit as long as the type of the fields has every index of the domain exactly.
    pub(crate) fn placed(&self, place: &Part, part: &Shape, whole: &Shape) -> Program {
        let mut program = self.clone();
        for scalar in &mut program.scalars {
            if let Some(axis) = scalar.extent.take() {
                scalar.initial = Some(whole.extents().get(axis).map_or(0.0, |&cells| cells as f64));
            }
        }
        // Ranks exchange before each phase, whatever a window that is written changes on one of them.
        program
            .phases
            .iter_mut()
            .filter_map(|phase| phase.repeat.as_mut())
            .for_each(|repeat| repeat.once = false);
        program.stages.clear();
        for (own, step) in self.steps.iter().zip(&mut program.steps) {
            let begin = program.stages.len();
            program.stages.extend(self.stages[own.clone()].iter().filter_map(|stage| {
                let planes = part.padded()[place.axis] + usize::from(self.has_one_more(stage, place));
                placed_stage(stage, place, planes)
            }));
            if program.stages.len() == begin {
                program.stages.extend(self.stages[own.clone()].first().map(idle));
            }
            *step = begin..program.stages.len();
        }
        program
    }

    /// Confines a stage's reduction along an axis by these margins in place of its own.
    pub(crate) fn set_margins(&mut self, stage: usize, axis: usize, margins: [usize; 2]) {
        if let StageKind::Reduce(_, region, _) = &mut self.stages[stage].does {
            region.margins[axis] = margins;
        }
    }

    /// Returns whether a stage's fields have a value more along the axis of the cut than the part has cells.
    fn has_one_more(&self, stage: &Stage, place: &Part) -> bool {
        let first = stage.writes.first().and_then(|&field| self.kinds.get(field));
        first.is_some_and(|kind| kind.centring.is_on_nodes(place.axis))
    }
}

/// Returns a stage for a part of a domain; `None` where it has points and none of them lies there.
fn placed_stage(stage: &Stage, place: &Part, planes: usize) -> Option<Stage> {
    let mut placed = stage.clone();
    if !stage.points.is_empty() {
        let images = |point: &[usize; 3]| {
            let point = *point;
            place.images(point[place.axis], planes).map(move |at| {
                let mut image = point;
                image[place.axis] = at;
                image
            })
        };
        placed.points = stage.points.iter().flat_map(images).collect();
        placed.points.sort_unstable();
        if placed.points.is_empty() {
            return None;
        }
    }
    if knows_where(&stage.dag, place.axis) && (place.first != 0 || place.is_ring) {
        placed.dag = shifted(&stage.dag, place);
        // A loop is its turns, one after another: nothing but its text is lost.
        placed.looped = None;
    }
    Some(placed)
}

/// Returns a stage that sets the first value of each field which another one sets, to what it is.
fn idle(stage: &Stage) -> Stage {
    let tap = |&field: &usize| Node::Tap(Tap { field: field as u16, offset: [0; 3] });
    let nodes: Vec<Node> = stage.writes.iter().map(tap).collect();
    let outputs = (0..nodes.len() as Id).collect();
    Stage { dag: Dag { nodes, outputs }, looped: None, points: vec![[0; 3]], ..stage.clone() }
}

/// Returns whether a formula has the index along an axis.
pub(crate) fn knows_where(dag: &Dag, axis: usize) -> bool {
    dag.nodes.contains(&Node::Coord(axis as u8))
}

/// Returns the formula with the whole domain's index along the axis in place of the part's: their difference is added,
/// and in a ring what lies beyond an end is one turn away. All of these are whole numbers, so nothing is rounded.
fn shifted(dag: &Dag, place: &Part) -> Dag {
    let mut nodes: Vec<Node> = Vec::with_capacity(dag.nodes.len() + 10);
    let mut new: Vec<Id> = Vec::with_capacity(dag.nodes.len());
    for node in &dag.nodes {
        let mut put = |node: Node| -> Id {
            nodes.push(node);
            (nodes.len() - 1) as Id
        };
        let id = match node {
            Node::Coord(axis) if usize::from(*axis) == place.axis => {
                let constant = |value: f64| Node::Const(Constant::new(value));
                let (own, first) = (put(*node), put(constant(place.first as f64)));
                let at = put(Node::Binary(Binary::Add, own, first));
                match place.is_ring {
                    true => {
                        let (turn, zero) = (put(constant(place.whole as f64)), put(constant(0.0)));
                        let (less, more) = (
                            put(Node::Binary(Binary::Sub, at, turn)),
                            put(Node::Binary(Binary::Add, at, turn)),
                        );
                        let (is_below, is_within) = (
                            put(Node::Binary(Binary::Less, at, zero)),
                            put(Node::Binary(Binary::Less, at, turn)),
                        );
                        let high = put(Node::Select(is_within, at, less));
                        put(Node::Select(is_below, more, high))
                    }
                    false => at,
                }
            }
            other => {
                let node = other.map(|operand| new[operand as usize]);
                put(node)
            }
        };
        new.push(id);
    }
    Dag { nodes, outputs: dag.outputs.iter().map(|&id| new[id as usize]).collect() }
}
