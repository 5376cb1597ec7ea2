//! Conditions that fields meet at walls: Dirichlet's, Neumann's and Robin's, each of formulas of scalars and of the places
//! along the wall.
//!
//! Ghost values follow from a condition to second order. Beyond a wall a formula finds the value of the cell that the ghost
//! cell mirrors, and a value that makes the field meet the condition halfway between the two ([`Problem::lower_walls`]). No
//! ghost value is stored.

mod lower;
mod named;

use super::stencil::{Names, Scope};
use super::{FieldKind, Program};
use crate::domain::{Boundaries, Condition, axis_name};
use crate::error::{Error, Result};
use crate::expr::{Constant, Dag, Expr, Graph, Id, Node};

/// A condition at a wall while a program is defined, with its values.
///
/// ```
/// use abide_core::program::{Centring, Condition, Definition, Wall};
///
/// // A rod that is heated at one end and loses heat at the other.
/// let mut p = Definition::new("rod", 1);
/// p.field("u", Centring::CELL).parameter("dx", 0.1, "cell in m").parameter("loss", 2.0, "1/m");
/// p.spacing(0, |s| s.param("dx"));
/// p.wall("u", "x-", |s| Wall::dirichlet(s.constant(1.0)));
/// p.wall("u", "x+", |s| Wall::robin(s.param("loss"), s.constant(1.0), s.constant(0.0)));
/// p.step().stage("diffuse", |s| s.set("u", s.field("u").here() + 0.2 * s.field("u").laplacian()));
/// assert_eq!(p.build()?.walls().len(), 2);
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Wall<'g> {
    condition: Condition,
    values: [Expr<'g>; 3],
}

impl<'g> Wall<'g> {
    /// The field has this value at the wall.
    pub fn dirichlet(value: Expr<'g>) -> Wall<'g> {
        Wall { condition: Condition::Dirichlet, values: [value; 3] }
    }

    /// The field's derivative along the outward normal has this value, in the units of the spacing.
    pub fn neumann(slope: Expr<'g>) -> Wall<'g> {
        Wall { condition: Condition::Neumann, values: [slope; 3] }
    }

    /// a u + b ∂u/∂n = c along the outward normal.
    pub fn robin(a: Expr<'g>, b: Expr<'g>, c: Expr<'g>) -> Wall<'g> {
        Wall { condition: Condition::Robin, values: [a, b, c] }
    }

    /// Makes the condition of a kind; `None` unless it has as many values.
    pub fn of(condition: Condition, values: &[Expr<'g>]) -> Option<Wall<'g>> {
        let first = *values.first()?;
        let all = [0, 1, 2].map(|number| values.get(number).copied().unwrap_or(first));
        (values.len() == condition.values()).then_some(Wall { condition, values: all })
    }
}

/// How a field's boundaries follow those of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// As those of differences of two such fields ([`Definition::correction`](super::Definition::correction)).
    Correction,
    /// As those of a mark of where such a field has values ([`Definition::inside`](super::Definition::inside)).
    Inside,
}

impl Follows {
    /// All, with the words by which model files say them.
    pub const ALL: [(Follows, &'static str); 2] =
        [(Follows::Correction, "corrects"), (Follows::Inside, "inside")];

    /// Returns the word of model files.
    pub fn word(self) -> &'static str {
        Follows::ALL.iter().find(|(own, _)| *own == self).map_or("", |(_, word)| word)
    }

    /// Returns the boundaries that follow some.
    pub(super) fn boundaries(self, of: Boundaries) -> Boundaries {
        match self {
            Follows::Correction => of.homogeneous(),
            Follows::Inside => of.closed(),
        }
    }
}

/// A condition that a field of a program meets at a side.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldWall {
    /// The field's number.
    pub field: usize,
    /// The axis of the padded three, slowest first.
    pub axis: usize,
    /// 0 at the low side, 1 at the high one.
    pub side: usize,
    /// The kind.
    pub condition: Condition,
    /// The formulas of its values, of literals, scalars and the indices along the wall.
    pub dag: Dag,
}

impl FieldWall {
    /// Returns the condition that a difference of two fields meets which both meet this one.
    fn without_value(&self) -> FieldWall {
        let mut wall = self.clone();
        if let Some(last) = wall.dag.outputs.last_mut() {
            wall.dag.nodes.push(Node::Const(Constant::new(0.0)));
            *last = (wall.dag.nodes.len() - 1) as Id;
        }
        wall
    }

    /// Returns the side as in `x-`.
    pub fn side_name(&self) -> String {
        format!("{}{}", axis_name(self.axis), ["-", "+"][self.side])
    }
}

/// Returns the condition that a definition gives some sides of a field.
pub(super) fn walls_of(
    names: &Names,
    field: usize,
    sides: &[[usize; 2]],
    define: impl for<'g> FnOnce(&Scope<'g>) -> Wall<'g>,
) -> Result<Vec<FieldWall>> {
    let graph = Graph::new();
    let scope = Scope::new(&graph, names);
    let Wall { condition, values } = define(&scope);
    scope.finish()?;
    let values = &values[..condition.values()];
    if !values.iter().all(|value| std::ptr::eq(value.graph(), &graph)) {
        let reason = "a value was made in another scope";
        return Err(Error::invalid("condition at a wall", reason, "build formulas from the scope given"));
    }
    let dag = graph.dag(values);
    if let Some(fault) = graph.fault() {
        return Err(fault);
    }
    if dag.draws() {
        let reason = "it draws random numbers, which are those of cells";
        return Err(Error::invalid(
            "condition at a wall",
            reason,
            "use scalars and the places along the wall",
        ));
    }
    let of = |&[axis, side]: &[usize; 2]| FieldWall { field, axis, side, condition, dag: dag.clone() };
    Ok(sides.iter().map(of).collect())
}

impl Program {
    /// Returns the conditions that fields meet at walls, as they were declared.
    pub fn walls(&self) -> &[FieldWall] {
        &self.declared().walls
    }

    /// Returns the program as it was written, with the conditions at walls that the formulas of this one meet.
    pub fn declared(&self) -> &Program {
        self.declared.as_deref().unwrap_or(self)
    }

    /// Returns the conditions at walls in words, as in `u x-: dirichlet`, one for each.
    pub fn words_of_walls(&self) -> Vec<String> {
        let word = |wall: &FieldWall| {
            format!("{} {}: {}", self.fields[wall.field], wall.side_name(), wall.condition.name())
        };
        self.walls().iter().map(word).collect()
    }

    /// Returns the fields whose boundaries follow those of others, each with that one and how.
    pub(super) fn followers(&self) -> impl Iterator<Item = (usize, usize, Follows)> {
        let follower = |(field, kind): (usize, &FieldKind)| kind.follows.map(|(of, how)| (field, of, how));
        self.kinds.iter().enumerate().filter_map(follower)
    }

    /// Returns the program with the conditions that corrections meet: those of their fields, with zeros in place of values.
    fn with_walls_of_corrections(&self) -> Program {
        let mut program = self.clone();
        for (field, of, _) in self.followers().filter(|(.., how)| *how == Follows::Correction) {
            program.walls.retain(|wall| wall.field != field);
            let own = self.walls.iter().filter(|wall| wall.field == of);
            program.walls.extend(own.map(|wall| FieldWall { field, ..wall.without_value() }));
        }
        program
    }

    /// Checks a condition against the field that meets it.
    pub(super) fn check_wall(&self, wall: &FieldWall) -> Result<()> {
        let invalid = |reason: String, change: &str| {
            let what = format!("condition of {} at {}", self.fields[wall.field], wall.side_name());
            Err(Error::invalid(what, reason, change))
        };
        for node in &wall.dag.nodes {
            match *node {
                Node::Param(number) => {
                    let computed = usize::from(number).checked_sub(self.parameters.len());
                    let scalar = computed.and_then(|number| self.scalars.get(number));
                    if let Some(scalar) = scalar.filter(|s| s.initial.is_none() && s.extent.is_none()) {
                        let reason = format!("{} has no value before the first step", scalar.name);
                        return invalid(reason, "declare the scalar with a value");
                    }
                }
                Node::Tap(tap) => {
                    let name = &self.names()[usize::from(tap.field)];
                    let change = "use scalars and the places along the wall";
                    return invalid(format!("it reads the field {name}"), change);
                }
                Node::Coord(axis) if usize::from(axis) == wall.axis => {
                    let reason =
                        format!("it is a formula of the place along {}, the normal", axis_name(wall.axis));
                    return invalid(reason, "use the places along the wall");
                }
                _ => {}
            }
        }
        if wall.condition == Condition::Robin && self.centring(wall.field).is_on_nodes(wall.axis) {
            let reason = "its values stand on the wall, where robin needs those of cells on both sides of it"
                .to_owned();
            return invalid(
                reason,
                "use dirichlet or neumann, or let the field stand on cells along this axis",
            );
        }
        Ok(())
    }
}
