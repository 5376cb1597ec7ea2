//! Conditions at walls as users write them beside rules for ghost cells: of numbers and scalars.

use std::sync::Arc;

use super::FieldWall;
use crate::domain::{BoundaryText, ConditionText, Given, Named, is_of};
use crate::error::Result;
use crate::expr::{Constant, Dag, Id, Node};
use crate::program::Program;

impl Program {
    /// Returns the program with the conditions at walls that a text names, for single fields or for all that stages set and
    /// that have no boundary of their own there. A rule for ghost cells takes the place of a field's condition.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`](crate::Error::Unknown) for a field, an axis or a scalar that the program does not have;
    /// [`Error::Invalid`](crate::Error::Invalid) for a condition that the field cannot meet.
    pub fn with_boundary_text(self: &Arc<Program>, text: &BoundaryText) -> Result<Arc<Program>> {
        if !text.has_conditions() && self.walls.is_empty() {
            return Ok(self.clone());
        }
        let mut program = (**self).clone();
        program.take_conditions(None, text, |_, _| false)?;
        program.walls.iter().try_for_each(|wall| program.check_wall(wall))?;
        Ok(Arc::new(program))
    }

    /// Takes the conditions of a text: of all fields and of those that it names, or of the one field that it is for; none at the
    /// axes and sides of fields that are kept.
    pub(in crate::program) fn take_conditions(
        &mut self,
        only: Option<&str>,
        text: &BoundaryText,
        is_kept: impl Fn(&str, [usize; 2]) -> bool,
    ) -> Result<()> {
        let (own, all) = text.at_sides(&self.fields, self.dimensions)?;
        for (field, own) in own.into_iter().enumerate() {
            let is_meant = only.is_some_and(|only| is_of(&self.fields[field], only));
            for (axis, side) in (0..3).flat_map(|axis| [(axis, 0), (axis, 1)]) {
                let has_wall = |wall: &FieldWall| [wall.field, wall.axis, wall.side] == [field, axis, side];
                let has_own =
                    self.kinds[field].sides.0[axis][side].is_some() || self.walls.iter().any(has_wall);
                let named = match (own[axis][side], all[axis][side]) {
                    (Some(own), _) => Some(own),
                    (None, Some(all)) if is_meant => Some(all),
                    (None, Some(all @ Named::Condition(_)))
                        if only.is_none() && !has_own && self.is_written(field) =>
                    {
                        Some(all)
                    }
                    _ => None,
                };
                if let Some(named) = named.filter(|_| !is_kept(&self.fields[field], [axis, side])) {
                    self.walls.retain(|wall| !has_wall(wall));
                    if let Named::Condition(condition) = named {
                        let dag = self.dag_of(&condition)?;
                        self.kinds[field].sides.0[axis][side] = None;
                        self.walls.push(FieldWall { field, axis, side, condition: condition.condition, dag });
                    }
                }
            }
        }
        self.sort_walls();
        Ok(())
    }

    /// Sorts the conditions by field, axis and side.
    pub(in crate::program) fn sort_walls(&mut self) {
        self.walls.sort_by_key(|wall| [wall.field, wall.axis, wall.side]);
    }

    /// Returns the values of a condition as formulas.
    fn dag_of(&self, condition: &ConditionText) -> Result<Dag> {
        let node = |given: &Given| {
            Ok(match given {
                Given::Number(number) => Node::Const(Constant::new(*number)),
                Given::Scalar(name) => Node::Param(self.number_of_scalar(name.as_str())? as u16),
            })
        };
        let mut nodes: Vec<Node> = Vec::new();
        let mut outputs = Vec::new();
        for given in condition.values() {
            let node = node(given)?;
            let known = nodes.iter().position(|known| *known == node);
            outputs.push(known.unwrap_or(nodes.len()) as Id);
            if known.is_none() {
                nodes.push(node);
            }
        }
        Ok(Dag { nodes, outputs })
    }
}
