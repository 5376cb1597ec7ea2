//! The stages of one step of a program while it is defined.

use super::definition::{Definition, Rare, Value};
use super::region::Region;
use super::stage::{Stage, StageKind, single, update};
use super::stencil::Scope;
use super::{MAX_CYCLE, Scalar};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::reduction::Reduction;

/// One step of a program's cycle while it is defined; its stages follow in order.
pub struct Step<'d> {
    pub(super) definition: &'d mut Definition,
    pub(super) number: usize,
}

impl Step<'_> {
    /// Adds a stage that gives fields and temporaries new values, all of them standing alike, by calls of
    /// [`Scope::set`].
    pub fn stage(&mut self, name: &str, define: impl FnOnce(&Scope<'_>)) -> &mut Self {
        let stage = update(name, &self.definition.names, &|field| self.definition.centring(field), define);
        self.add(stage)
    }

    /// Adds a stage that gives fields new values at some points alone, slowest axis first: a source, or values
    /// that are driven. Neither boundary nor mask keeps it from any of a field's values.
    pub fn points<const D: usize>(
        &mut self,
        name: &str,
        points: &[[usize; D]],
        define: impl FnOnce(&Scope<'_>),
    ) -> &mut Self {
        let points: Vec<&[usize]> = points.iter().map(|point| &point[..]).collect();
        self.points_slice(name, &points, define)
    }

    /// Adds the same as [`Step::points`], for points whose number of indices is not known when compiling.
    pub fn points_slice(
        &mut self,
        name: &str,
        points: &[impl AsRef<[usize]>],
        define: impl FnOnce(&Scope<'_>),
    ) -> &mut Self {
        let fault =
            |reason: String, change: &str| Err(Error::invalid(format!("stage {name}"), reason, change));
        let dimensions = self.definition.names.dimensions;
        let wrong = points.iter().map(|point| point.as_ref().len()).find(|&len| len > 3 || len != dimensions);
        if wrong.is_some() || points.is_empty() {
            let indices = wrong.unwrap_or(dimensions);
            let reason = format!("it has {} points of {indices} indices on {dimensions} axes", points.len());
            return self.add(fault(reason, "give a point at least, and an index for each axis"));
        }
        let mut padded: Vec<[usize; 3]> = Vec::with_capacity(points.len());
        for point in points {
            let mut at = [0; 3];
            at[3 - dimensions..].copy_from_slice(point.as_ref());
            padded.push(at);
        }
        padded.sort_unstable();
        if let Some(twice) = padded.windows(2).find(|pair| pair[0] == pair[1]) {
            let reason = format!("the point {:?} is given twice", &twice[0][3 - dimensions..]);
            return self.add(fault(reason, "give each point once"));
        }
        let stage = update(name, &self.definition.names, &|field| self.definition.centring(field), define);
        let is_temporary = |&field: &usize| self.definition.kinds[field].1.is_none();
        if stage.as_ref().is_ok_and(|stage| stage.writes.iter().any(is_temporary)) {
            let reason = "it sets a temporary, which has no values but those that stages make".to_owned();
            return self.add(fault(reason, "set fields at points"));
        }
        self.add(stage.map(|stage| Stage { points: padded, ..stage }))
    }

    /// Adds a stage that reduces a formula over a region to a scalar, for the stages that follow.
    pub fn reduce(
        &mut self,
        scalar: &str,
        reduction: Reduction,
        region: impl Into<Region>,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        let mut region = region.into();
        region.centring = region.centring.of(self.definition.names.dimensions);
        self.single(scalar, |scalar| StageKind::Reduce(reduction, region, scalar), define)
    }

    /// Adds a reduction that is made in the first of so many steps alone, counted from the beginning of the run; the steps between
    /// keep its value, so that kernels can do them at a time. The cycle becomes that long.
    ///
    /// A time step that follows from such a value is as old: it has to be stable for what the fields become until the next, so
    /// leave it room, as by a smaller Courant number. That nothing moves farther than a few cells in so many steps bounds how
    /// much it takes.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition, Reduction};
    ///
    /// let mut p = Definition::new("burgers", 1);
    /// p.field("u", Centring::CELL).scalar("fastest", None, "largest speed");
    /// let mut step = p.step();
    /// step.reduce_every(8, "fastest", Reduction::Max, Centring::CELL, |s| s.field("u").here().abs());
    /// step.stage("advect", |s| {
    ///     let u = s.field("u");
    ///     s.set("u", u.here() - 0.4 / s.param("fastest") * u.here() * (u.here() - u.at([-1])));
    /// });
    /// assert_eq!(p.build()?.steps().len(), 8);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn reduce_every(
        &mut self,
        steps: usize,
        scalar: &str,
        reduction: Reduction,
        region: impl Into<Region>,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        if !(1..=MAX_CYCLE).contains(&steps) {
            let what = format!("steps from one reduction to {scalar} to the next");
            return self.add(Err(Error::limit(what, steps, format!("1 to {MAX_CYCLE}"), "give another")));
        }
        self.reduce(scalar, reduction, region, define);
        let number = self.definition.names.scalars.iter().position(|known| known == scalar);
        if let (Some(scalar), true) = (number, steps > 1) {
            self.definition.rare.push(Rare { step: self.number, scalar, every: steps });
        }
        self
    }

    /// Adds a reduction to the sum of products of two formulas.
    pub fn dot(
        &mut self,
        scalar: &str,
        region: impl Into<Region>,
        define: impl for<'g> FnOnce(&Scope<'g>) -> [Expr<'g>; 2],
    ) -> &mut Self {
        self.reduce(scalar, Reduction::Sum, region, |s| {
            let [left, right] = define(s);
            left * right
        })
    }

    /// Adds a stage that computes a scalar from scalars, for the stages that follow.
    pub fn compute(
        &mut self,
        scalar: &str,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        self.single(scalar, StageKind::Scalar, define)
    }

    fn single(
        &mut self,
        scalar: &str,
        does: impl FnOnce(usize) -> StageKind,
        define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        let Definition { names, values, .. } = &*self.definition;
        let number = names.scalars.iter().position(|known| known == scalar);
        let is_made = |value: &Value| matches!(value, Value::Computed(Scalar { extent: None, .. }));
        let number = number.filter(|&number| is_made(&values[number])).ok_or_else(|| {
            let computed =
                names.scalars.iter().zip(values).filter(|(_, value)| is_made(value)).map(|(name, _)| name);
            Error::unknown("computed scalar", scalar, computed)
        });
        let centring = |field| self.definition.centring(field);
        let stage = number.and_then(|number| single(scalar, names, &centring, does(number), define));
        self.add(stage)
    }

    pub(super) fn add(&mut self, stage: Result<Stage>) -> &mut Self {
        match stage {
            Ok(stage) => {
                if let Some(step) = self.definition.steps.get_mut(self.number) {
                    step.push(stage);
                }
            }
            Err(fault) => self.definition.note(Err(fault)),
        }
        self
    }
}
