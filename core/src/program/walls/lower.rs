//! Conditions at walls in the formulas that read beyond them.

use std::sync::Arc;

use super::FieldWall;
use crate::domain::{Boundary, Condition, ScalarName, Sides, axis_name};
use crate::error::{Error, Result};
use crate::expr::{Binary, Dag, Id, Node, Tap, Unary};
use crate::program::beyond::{Beyond, choose_at, is_by_planes, number};
use crate::program::flat::Formula;
use crate::program::{Footprint, Problem, Program, Stage, StageKind};

/// What formulas choose beyond a side of a field.
#[derive(Clone, Copy)]
enum Rule<'p> {
    /// The value by which the field meets a condition.
    Wall(&'p FieldWall),
    /// A number, beside a side with a condition.
    Number(f64),
    /// A scalar's value, beside a side with a condition.
    Scalar(ScalarName),
    /// The opposite of what ghost cells show, beside a side with a condition.
    Negated,
}

/// The rules of a field's sides.
type Rules<'p> = [[Option<Rule<'p>>; 2]; 3];

impl Problem {
    /// Has the formulas of the program meet its conditions at walls, and gives the fields the rules for ghost cells that these
    /// begin with. Boundaries are set before.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for an axis that is shorter than formulas reach beyond its wall; [`Error::Invalid`] where the type of
    /// the fields cannot tell the indices of an axis apart.
    pub fn lower_walls(&mut self) -> Result<()> {
        if self.program.walls.is_empty() {
            self.correct_sides();
            self.leave_out_levels();
            return Ok(());
        }
        let original = self.program.clone();
        let declared = original.with_walls_of_corrections();
        if !self.tells_indices() {
            return Err(Error::invalid(
                format!("conditions at walls in {}", self.dtype),
                format!("{} does not tell all indices of {} from each other", self.dtype, self.shape),
                "choose f64 or a smaller size",
            ));
        }
        self.sides.resize(declared.fields.len(), Sides::default());
        for wall in &declared.walls {
            let stands_on_it = declared.centring(wall.field).is_on_nodes(wall.axis);
            let base = if stands_on_it { Boundary::Reflect } else { Boundary::Mirror };
            self.sides[wall.field].0[wall.axis][wall.side] = Some(base);
        }
        self.correct_sides();
        let rules = self.rules(&declared);
        self.keep_coefficients(&declared);
        let lowering = Lowering { problem: self, program: &declared, rules };
        let mut program = declared.clone();
        for stage in &mut program.stages {
            if let Some(dag) = lowering.formulas(stage)? {
                // Loops would read ghost cells as they are.
                let footprint = Footprint::of(&dag, stage.footprint.field_radius.len());
                let stores = stage.footprint.stores;
                (stage.dag, stage.looped) = (dag, None);
                stage.footprint = Footprint { stores, ..footprint };
            }
        }
        program.walls.clear();
        program.declared = Some(original);
        self.program = Arc::new(program);
        self.share_sides();
        self.leave_out_levels();
        Ok(())
    }

    /// Gives fields whose boundaries follow those of others theirs.
    fn correct_sides(&mut self) {
        let followers: Vec<_> = self.program.followers().collect();
        if !followers.is_empty() {
            self.sides.resize(self.program.fields.len(), Sides::default());
        }
        for (field, of, how) in followers {
            let boundaries = how.boundaries(self.boundaries_of(of));
            for axis in self.slowest()..3 {
                self.sides[field].0[axis] = boundaries.0[axis].map(Some);
            }
        }
    }

    /// Returns what formulas choose beyond each side of each field: conditions, and for fields that have some also the signs and
    /// values of the other sides, so that beyond two axes the rule of the slower one comes first.
    fn rules<'p>(&mut self, declared: &'p Program) -> Vec<Rules<'p>> {
        let mut rules: Vec<Rules<'p>> = vec![[[None; 2]; 3]; declared.fields.len()];
        for wall in &declared.walls {
            rules[wall.field][wall.axis][wall.side] = Some(Rule::Wall(wall));
        }
        for (field, own) in rules.iter_mut().enumerate() {
            let has_wall = |axis: usize| declared.walls.iter().any(|w| w.field == field && w.axis == axis);
            if !(0..3).any(has_wall) || !is_read_diagonally(declared, field) {
                continue;
            }
            let boundaries = self.boundaries_of(field);
            for (axis, side) in (self.slowest()..3).flat_map(|axis| [(axis, 0), (axis, 1)]) {
                let (kind, slot) = (boundaries.0[axis][side], &mut own[axis][side]);
                let (rule, base) = match kind {
                    Boundary::MinusMirror => (Rule::Negated, Boundary::Mirror),
                    Boundary::MinusReflect => (Rule::Negated, Boundary::Reflect),
                    Boundary::Constant(value) => (Rule::Number(value), Boundary::Clamp),
                    Boundary::Scalar(name) => (Rule::Scalar(name), Boundary::Clamp),
                    _ => continue,
                };
                if slot.is_none() {
                    *slot = Some(rule);
                    self.sides[field].0[axis][side] = Some(base);
                }
            }
        }
        rules
    }

    /// Gives coefficients, which no stage sets, their values at the edge beyond walls of other fields, unless they have a boundary
    /// of their own: where the boundary of all fields would hold the outermost cells.
    fn keep_coefficients(&mut self, declared: &Program) {
        let radius = declared.radius();
        for field in (0..declared.fields.len()).filter(|&field| !declared.is_written(field)) {
            for wall in &declared.walls {
                let side = &mut self.sides[field].0[wall.axis][wall.side];
                if side.is_none() && self.boundaries.0[wall.axis][wall.side] == Boundary::Fixed {
                    // One cell beyond the edge both show the same.
                    let near = radius[wall.axis] <= 1 && !declared.centring(field).is_on_nodes(wall.axis);
                    *side = Some(if near { Boundary::Mirror } else { Boundary::Clamp });
                }
            }
        }
    }

    /// Makes a boundary that all fields have of their own that of all fields.
    fn share_sides(&mut self) {
        for (axis, side) in (self.slowest()..3).flat_map(|axis| [(axis, 0), (axis, 1)]) {
            let mut own = self.sides.iter().map(|sides| sides.0[axis][side]);
            let Some(Some(first)) = own.next() else { continue };
            if own.all(|other| other == Some(first)) {
                self.boundaries.0[axis][side] = first;
                self.sides.iter_mut().for_each(|sides| sides.0[axis][side] = None);
            }
        }
    }
}

/// Returns whether a formula reads a field at an offset along two axes.
fn is_read_diagonally(program: &Program, field: usize) -> bool {
    let taps = program.stages.iter().flat_map(|stage| stage.dag.taps());
    let of_field = |tap: &Tap| usize::from(tap.field) == field;
    let mut offsets = taps.filter(of_field).map(|tap| tap.offset);
    offsets.any(|offset| offset.iter().filter(|&&o| o != 0).count() > 1)
}

struct Lowering<'p> {
    problem: &'p Problem,
    program: &'p Program,
    rules: Vec<Rules<'p>>,
}

/// The formula of a stage in the making.
struct Place<'f> {
    formula: &'f mut Formula,
    /// The number of values that the stage sets along each axis; `None` where it may set some beyond the domain.
    extents: Option<[usize; 3]>,
}

/// A tap beyond a side: the index of the ghost cell, counted from the side, which is 1 for the outermost.
enum Far {
    Known(usize),
    Formula(Id),
}

impl Lowering<'_> {
    /// Returns the formulas of a stage that meet the conditions; `None` where they need no change.
    fn formulas(&self, stage: &Stage) -> Result<Option<Dag>> {
        let has_rules = |field: usize| {
            self.rules.get(field).is_some_and(|own| own.as_flattened().iter().any(Option::is_some))
        };
        let is_read = stage.dag.taps().any(|tap| has_rules(usize::from(tap.field)));
        if !is_read && !stage.writes.iter().any(|&field| has_rules(field)) {
            return Ok(None);
        }
        let mut formula = Formula::default();
        let mut place = Place { formula: &mut formula, extents: self.extents(stage) };
        let mut new: Vec<Id> = Vec::with_capacity(stage.dag.nodes.len());
        for &node in &stage.dag.nodes {
            let id = match node {
                Node::Tap(tap) if has_rules(usize::from(tap.field)) => {
                    self.check_grid(stage, tap)?;
                    self.check_reach(tap)?;
                    self.tap(&mut place, self.problem.slowest(), tap)
                }
                other => place.formula.put(other.map(|operand| new[operand as usize])),
            };
            new.push(id);
        }
        let mut outputs: Vec<Id> = stage.dag.outputs.iter().map(|&output| new[output as usize]).collect();
        for (output, &field) in outputs.iter_mut().zip(&stage.writes) {
            *output = self.held(&mut place, field, *output);
        }
        let dag = formula.finished(&outputs);
        Ok((dag != stage.dag).then_some(dag))
    }

    /// Returns how many values a stage sets along each axis, if that is known.
    fn extents(&self, stage: &Stage) -> Option<[usize; 3]> {
        match (stage.does, stage.writes.as_slice()) {
            (StageKind::Update | StageKind::Transform(_), [first, others @ ..])
                if *first < self.rules.len() && others.iter().all(|&field| field < self.rules.len()) =>
            {
                Some(self.problem.extents_of(*first))
            }
            (StageKind::Reduce(_, region, _), _) if region.centring.is_cell() => {
                Some(self.problem.shape.padded())
            }
            _ => None,
        }
    }

    /// Checks that a field with conditions is read on its own grid.
    fn check_grid(&self, stage: &Stage, tap: Tap) -> Result<()> {
        let field = usize::from(tap.field);
        if self.program.levels(stage, field).is_same() {
            return Ok(());
        }
        Err(Error::invalid(
            format!("stage {}", stage.name),
            format!("it reads {} of another grid, which has conditions at walls", self.program.fields[field]),
            "keep its values in a field without conditions, and read that",
        ))
    }

    /// Checks that the ghost cells that a tap reaches show cells of the domain.
    fn check_reach(&self, tap: Tap) -> Result<()> {
        let field = usize::from(tap.field);
        let extents = self.problem.extents_of(field);
        let has_rule = |axis: usize| self.rules[field][axis].iter().any(Option::is_some);
        let short =
            (0..3).find(|&axis| has_rule(axis) && extents[axis] <= tap.offset[axis].unsigned_abs() as usize);
        match short {
            None => Ok(()),
            Some(axis) => Err(Error::limit(
                format!(
                    "values of {} along {}, which has a condition at a wall",
                    self.program.fields[field],
                    axis_name(axis)
                ),
                extents[axis],
                format!("more than the formulas reach, {}", tap.offset[axis].unsigned_abs()),
                "choose a larger size",
            )),
        }
    }

    /// Returns the value of a tap where it reaches beyond sides of this axis and of faster ones. The rule of the slowest axis comes
    /// first: it is chosen last.
    fn tap(&self, place: &mut Place<'_>, axis: usize, tap: Tap) -> Id {
        if axis == 3 {
            return place.formula.put(Node::Tap(tap));
        }
        let inside = self.tap(place, axis + 1, tap);
        let rules = self.rules[usize::from(tap.field)][axis];
        (0..2).fold(inside, |value, side| match rules[side] {
            Some(rule) => self.beyond(place, tap, (axis, side, rule), [inside, value]),
            None => value,
        })
    }

    /// Returns what the rule of a side says where a tap reaches beyond it, and `other` elsewhere. `shown` is what ghost cells show.
    fn beyond(
        &self,
        place: &mut Place<'_>,
        tap: Tap,
        (axis, side, rule): (usize, usize, Rule<'_>),
        [shown, other]: [Id; 2],
    ) -> Id {
        let (slowest, offset) = (self.problem.slowest(), tap.offset[axis]);
        let last = self.problem.extents_of(usize::from(tap.field))[axis] as isize - 1;
        let Some(extents) = place.extents else {
            let at = self.index(place, axis, offset);
            let (below, above) = match side {
                0 => (at, number(place.formula, 0.0)),
                _ => (number(place.formula, last as f64), at),
            };
            let is_beyond = place.formula.put(Node::Binary(Binary::Less, below, above));
            let far = Far::Formula(self.far(place, (axis, side), offset, last));
            let instead = self.ghost(place, tap, axis, rule, far, shown);
            return place.formula.put(Node::Select(is_beyond, instead, other));
        };
        // From how many of the outermost values the tap reaches beyond the side.
        let extent = extents[axis];
        let reach = match side {
            0 => -(offset as isize),
            _ => extent as isize - 1 + offset as isize - last,
        };
        let reach = usize::try_from(reach).unwrap_or(0).min(extent);
        let is_wall = matches!(rule, Rule::Wall(wall) if wall.condition != Condition::Dirichlet);
        if reach == 0 {
            return other;
        }
        if is_by_planes(axis, slowest) && is_wall {
            return (0..reach).fold(other, |other, from_side| {
                let instead = self.ghost(place, tap, axis, rule, Far::Known(reach - from_side), shown);
                let index = if side == 0 { from_side } else { extent - 1 - from_side };
                choose_at(place.formula, axis, index, instead, other)
            });
        }
        let far = match reach {
            1 => Far::Known(1),
            _ => Far::Formula(self.far(place, (axis, side), offset, last)),
        };
        let instead = self.ghost(place, tap, axis, rule, far, shown);
        Beyond { axis, side, distance: reach, extent }.choose(place.formula, slowest, instead, other)
    }

    /// Returns how far the cell at an offset lies beyond a side of an axis whose last index this is.
    fn far(&self, place: &mut Place<'_>, (axis, side): (usize, usize), offset: i32, last: isize) -> Id {
        let at = self.index(place, axis, offset);
        if side == 0 {
            return place.formula.put(Node::Unary(Unary::Neg, at));
        }
        let last = number(place.formula, last as f64);
        place.formula.put(Node::Binary(Binary::Sub, at, last))
    }

    /// Returns the index along an axis of the cell at an offset.
    fn index(&self, place: &mut Place<'_>, axis: usize, offset: i32) -> Id {
        let at = place.formula.put(Node::Coord(axis as u8));
        if offset == 0 {
            return at;
        }
        let by = number(place.formula, offset.into());
        place.formula.put(Node::Binary(Binary::Add, at, by))
    }

    /// Returns the value of a ghost cell that is so far beyond a side and shows a value.
    fn ghost(&self, place: &mut Place<'_>, tap: Tap, axis: usize, rule: Rule<'_>, far: Far, shown: Id) -> Id {
        let wall = match rule {
            Rule::Wall(wall) => wall,
            Rule::Number(value) => return number(place.formula, value),
            Rule::Scalar(name) => {
                let known = self.program.number_of_scalar(name.as_str());
                return match known {
                    Ok(number) => place.formula.put(Node::Param(number as u16)),
                    Err(_) => number(place.formula, f64::NAN),
                };
            }
            Rule::Negated => return place.formula.put(Node::Unary(Unary::Neg, shown)),
        };
        let values = self.values(place, wall, tap);
        let binary = |place: &mut Place<'_>, op, a, b| place.formula.put(Node::Binary(op, a, b));
        match (wall.condition, values.as_slice()) {
            (Condition::Dirichlet, &[value]) => {
                let twice = self.product(place, 2.0, value);
                binary(place, Binary::Sub, twice, shown)
            }
            (Condition::Neumann, &[slope]) => {
                if is_zero(place, slope) {
                    return shown;
                }
                let distance = self.distance(place, wall.field, axis, far);
                let rise = self.times(place, slope, distance);
                binary(place, Binary::Add, shown, rise)
            }
            (Condition::Robin, &[a, b, c]) => {
                // u (b - a d / 2) / (b + a d / 2) + c d / (b + a d / 2), of the distance d between ghost cell and mirrored cell:
                // quotients of what all cells have in common.
                let distance = self.distance(place, wall.field, axis, far);
                let half = self.product(place, 0.5, a);
                let across = self.times(place, half, distance);
                let [less, more] = [Binary::Sub, Binary::Add].map(|op| folded(place, op, b, across));
                let [share, source] = [less, distance].map(|of| folded(place, Binary::Div, of, more));
                let own = binary(place, Binary::Mul, shown, share);
                let given = self.times(place, c, source);
                binary(place, Binary::Add, own, given)
            }
            _ => number(place.formula, f64::NAN),
        }
    }

    /// Returns a value times a distance, which may be the literal 1.
    fn times(&self, place: &mut Place<'_>, value: Id, distance: Id) -> Id {
        match literal(place, distance) {
            Some(1.0) => value,
            _ => folded(place, Binary::Mul, value, distance),
        }
    }

    /// Returns a literal times a value.
    fn product(&self, place: &mut Place<'_>, factor: f64, value: Id) -> Id {
        if let Some(known) = literal(place, value) {
            return number(place.formula, factor * known);
        }
        let factor = number(place.formula, factor);
        place.formula.put(Node::Binary(Binary::Mul, factor, value))
    }

    /// Returns the distance between a ghost cell and the cell that it mirrors.
    fn distance(&self, place: &mut Place<'_>, field: usize, axis: usize, far: Far) -> Id {
        let stands_on_it = self.program.centring(field).is_on_nodes(axis);
        let cells = match far {
            Far::Known(far) => number(place.formula, if stands_on_it { 2 * far } else { 2 * far - 1 } as f64),
            Far::Formula(far) => {
                let twice = self.product(place, 2.0, far);
                if stands_on_it {
                    twice
                } else {
                    let one = number(place.formula, 1.0);
                    place.formula.put(Node::Binary(Binary::Sub, twice, one))
                }
            }
        };
        match &self.program.grid.spacing[axis] {
            None => cells,
            Some(spacing) => {
                let spacing = place.formula.put_all(spacing)[0];
                self.times(place, spacing, cells)
            }
        }
    }

    /// Returns the values of a condition where a tap meets it, at the place along the wall of the cell that the tap reads.
    fn values(&self, place: &mut Place<'_>, wall: &FieldWall, tap: Tap) -> Vec<Id> {
        let boundaries = self.problem.boundaries_of(wall.field);
        let extents = self.problem.extents_of(wall.field);
        let mut new: Vec<Id> = Vec::with_capacity(wall.dag.nodes.len());
        for &node in &wall.dag.nodes {
            let id = match node {
                Node::Coord(axis) => {
                    let axis = usize::from(axis);
                    let at = self.index(place, axis, tap.offset[axis]);
                    let goes_round = boundaries.0[axis][0] == Boundary::Periodic && tap.offset[axis] != 0;
                    if goes_round { self.around(place, at, extents[axis]) } else { at }
                }
                other => place.formula.put(other.map(|operand| new[operand as usize])),
            };
            new.push(id);
        }
        wall.dag.outputs.iter().map(|&output| new[output as usize]).collect()
    }

    /// Returns an index of a periodic axis, of which it may be less than one extent beyond.
    fn around(&self, place: &mut Place<'_>, at: Id, extent: usize) -> Id {
        let [none, all] = [0.0, extent as f64].map(|value| number(place.formula, value));
        let binary = |place: &mut Place<'_>, op, a, b| place.formula.put(Node::Binary(op, a, b));
        let above = binary(place, Binary::Sub, at, all);
        let below = binary(place, Binary::Add, at, all);
        let is_inside = binary(place, Binary::Less, at, all);
        let at_most = place.formula.put(Node::Select(is_inside, at, above));
        let is_below = binary(place, Binary::Less, at, none);
        place.formula.put(Node::Select(is_below, below, at_most))
    }

    /// Returns the new value of a field whose values stand on a wall, where those on it are given.
    fn held(&self, place: &mut Place<'_>, field: usize, value: Id) -> Id {
        let (Some(rules), Some(extents)) = (self.rules.get(field), place.extents) else { return value };
        let on_walls = rules.iter().enumerate().flat_map(|(axis, sides)| {
            let is_on = self.program.centring(field).is_on_nodes(axis);
            let walls = sides.iter().enumerate().filter(move |_| is_on);
            walls.map(move |(side, rule)| (axis, side, *rule))
        });
        let mut value = value;
        for (axis, side, rule) in on_walls {
            let Some(Rule::Wall(wall)) = rule else { continue };
            if wall.condition == Condition::Dirichlet {
                let own = Tap { field: field as u16, offset: [0; 3] };
                let given = self.values(place, wall, own)[0];
                let beyond = Beyond { axis, side, distance: 1, extent: extents[axis] };
                value = beyond.choose(place.formula, self.problem.slowest(), given, value);
            }
        }
        value
    }
}

/// Returns an operation of two values, as a literal where both are.
fn folded(place: &mut Place<'_>, op: Binary, a: Id, b: Id) -> Id {
    match (literal(place, a), literal(place, b)) {
        (Some(a), Some(b)) => number(place.formula, crate::expr::binary(op, a, b)),
        _ => place.formula.put(Node::Binary(op, a, b)),
    }
}

/// Returns the value of a literal.
fn literal(place: &Place<'_>, id: Id) -> Option<f64> {
    match place.formula.node(id) {
        Node::Const(constant) => Some(constant.value()),
        _ => None,
    }
}

fn is_zero(place: &Place<'_>, id: Id) -> bool {
    literal(place, id) == Some(0.0)
}
