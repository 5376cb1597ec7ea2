//! The grid of a program in space: the distance between cells and the origin along each axis, as formulas of parameters.

use super::derived::value;
use super::stage::{StageKind, single};
use super::stencil::Scope;
use super::{Definition, Problem, Program};
use crate::error::{Error, Result};
use crate::expr::{Dag, Expr};

/// The spacing and the origin along each of the padded axes, where the program says them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// The distance between neighbouring cells; 1 where there is none.
    pub spacing: [Option<Dag>; 3],
    /// The low side of the domain; 0 where there is none.
    pub origin: [Option<Dag>; 3],
}

impl Grid {
    /// Returns the formulas, to be given other numbers of parameters.
    pub(super) fn formulas_mut(&mut self) -> impl Iterator<Item = &mut Dag> {
        self.spacing.iter_mut().chain(&mut self.origin).flatten()
    }

    /// Returns the numbers of the scalars that the formulas read.
    pub(super) fn uses(&self) -> impl Iterator<Item = usize> + '_ {
        self.spacing.iter().chain(&self.origin).flatten().flat_map(Dag::parameters)
    }
}

impl Definition {
    /// Sets the distance between neighbouring cells along an axis, counted from the slowest: a formula of parameters.
    /// Conditions at walls, [`Scope::position`] and files of fields have their units.
    pub fn spacing(&mut self, axis: usize, define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>) -> &mut Self {
        self.of_grid("spacing", axis, define, |grid, axis| &mut grid.spacing[axis])
    }

    /// Sets the place of the domain's low side along an axis, counted from the slowest: a formula of parameters.
    pub fn origin(&mut self, axis: usize, define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>) -> &mut Self {
        self.of_grid("origin", axis, define, |grid, axis| &mut grid.origin[axis])
    }

    fn of_grid(
        &mut self,
        what: &str,
        axis: usize,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
        get: impl Fn(&mut Grid, usize) -> &mut Option<Dag>,
    ) -> &mut Self {
        let dimensions = self.names.dimensions;
        if axis >= dimensions {
            let most = dimensions.saturating_sub(1);
            self.note(Err(Error::limit(
                format!("axis of the {what}"),
                axis,
                most,
                "use an axis of the program",
            )));
            return self;
        }
        let centring = |field| self.centring(field);
        match single(what, &self.names, &centring, StageKind::Scalar(0), define) {
            Ok(stage) => *get(&mut self.names.grid, 3 - dimensions + axis) = Some(stage.dag),
            Err(fault) => self.note(Err(fault)),
        }
        self
    }
}

impl Program {
    /// Returns the grid in space.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }
}

/// Where the values of a field stand: the place of the first one along each axis of the padded three, slowest first, and the
/// distance from one to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Space {
    /// The place of the first value.
    pub origin: [f64; 3],
    /// The distance between neighbours.
    pub spacing: [f64; 3],
}

impl Default for Space {
    /// Indices.
    fn default() -> Space {
        Space { origin: [0.0; 3], spacing: [1.0; 3] }
    }
}

impl Problem {
    /// Returns where the values of a field stand, in the units of the program's spacing; by their indices, where the program has
    /// neither spacing nor origin.
    pub fn space_of(&self, field: usize) -> Space {
        let mut space = Space::default();
        let centring = self.program.centring(field);
        // Of the domain's grid, that are one on the field's.
        let cells = f64::from(1_u32 << centring.level());
        if self.program.grid == Grid::default() {
            for axis in self.slowest()..3 {
                space.spacing[axis] = cells;
                space.origin[axis] += if centring.is_on_nodes(axis) { 0.0 } else { 0.5 * (cells - 1.0) };
            }
            return space;
        }
        let along = (self.slowest()..3).zip(self.of_grid(&self.program.grid.spacing, 1.0)).zip(self.origin());
        for ((axis, spacing), origin) in along {
            let half = if centring.is_on_nodes(axis) { 0.0 } else { 0.5 };
            space.spacing[axis] = cells * spacing;
            space.origin[axis] = origin + half * cells * spacing;
        }
        space
    }

    /// Returns the distance between neighbouring cells along each of the domain's axes, slowest first.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for one that is no positive number.
    pub fn spacing(&self) -> Result<Vec<f64>> {
        let own = self.of_grid(&self.program.grid.spacing, 1.0);
        match own.iter().find(|&&width| !(width.is_finite() && width > 0.0)) {
            None => Ok(own),
            Some(wrong) => {
                let change = "give the parameters that it is a formula of other values";
                Err(Error::invalid("spacing", format!("it is {wrong:?}, and no positive number"), change))
            }
        }
    }

    /// Returns the place of the domain's low side along each of its axes, slowest first.
    pub fn origin(&self) -> Vec<f64> {
        self.of_grid(&self.program.grid.origin, 0.0)
    }

    fn of_grid(&self, formulas: &[Option<Dag>; 3], default: f64) -> Vec<f64> {
        let of = |dag: &Option<Dag>| dag.as_ref().map_or(default, |dag| value(dag, &self.parameters));
        formulas[self.slowest()..].iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::Shape;
    use crate::program::Centring;
    use crate::real::DType;

    #[test]
    fn values_stand_where_the_grid_says() {
        let mut p = Definition::new("p", 2);
        p.field("u", Centring::CELL).field("f", Centring::face(2, 1)).parameter("h", 0.5, "cell in m");
        p.spacing(1, |s| s.param("h")).origin(1, |s| -2.0 * s.param("h")).origin(0, |s| s.constant(3.0));
        p.step().stage("where", |s| {
            s.set("u", s.position(1, Centring::CELL) + s.position(0, Centring::CELL) * 100.0);
        });
        p.extend(0).stage("faces", |s| s.set("f", s.position(1, Centring::face(2, 1))));
        let program = Arc::new(p.build().unwrap());
        let mut problem = Problem::new(program, Shape::new(&[3, 4]).unwrap(), DType::F64).unwrap();
        assert_eq!(problem.spacing().unwrap(), [1.0, 0.5]);
        let space = problem.space_of(0);
        assert_eq!((space.origin, space.spacing), ([0.0, 3.5, -0.75], [1.0, 1.0, 0.5]));
        assert_eq!(problem.space_of(1).origin, [0.0, 3.5, -1.0]);
        // The formulas say the same.
        let value = |stage: usize, coord: [isize; 3]| {
            let dag = &problem.program.stages()[stage].dag;
            let mut values = Vec::new();
            dag.evaluate(&mut values, &problem.parameters, coord, |_| 0.0);
            values[dag.outputs[0] as usize]
        };
        assert_eq!(value(0, [0, 2, 3]), -0.75 + 3.0 * 0.5 + 100.0 * 5.5);
        assert_eq!(value(1, [0, 2, 3]), -1.0 + 3.0 * 0.5);
        problem.parameters[0] = -1.0;
        assert!(problem.check().unwrap_err().to_string().contains("no positive number"));
    }

    #[test]
    fn a_grid_is_of_parameters() {
        let mut p = Definition::new("p", 1);
        p.field("u", Centring::CELL).scalar("time", Some(0.0), "time").spacing(0, |s| s.param("time"));
        p.step().stage("same", |s| s.set("u", s.field("u").here()));
        assert!(p.build().unwrap_err().to_string().contains("time, which is computed in each step"));
        let mut p = Definition::new("p", 1);
        p.field("u", Centring::CELL).spacing(1, |s| s.constant(1.0));
        p.step().stage("same", |s| s.set("u", s.field("u").here()));
        assert!(p.build().unwrap_err().to_string().contains("axis of the spacing"));
    }
}
