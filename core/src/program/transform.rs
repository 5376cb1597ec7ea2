//! Transforms along an axis: each line of values times a matrix that diagonalises an operator there.
//!
//! An operator is *separable* if it is a sum of one tridiagonal matrix per axis, each of which the index along its axis alone changes. The
//! matrices of a transform follow from the operator's formula, the boundaries of the field that it reads, and the parameters: a
//! backend asks [`Transforms::of`] for them when it begins, and again when a parameter was set.

use super::boxes::{Indices, around, computed};
use super::footprint::Footprint;
use super::solve::{Line, Spectrum};
use super::stage::{Stage, StageKind, check_graph};
use super::stencil::{Names, Scope};
use super::step::Step;
use super::{Centring, GhostSource, Problem};
use crate::domain::{Boundary, axis_name};
use crate::error::{Error, Result};
use crate::expr::{Dag, Expr, Graph};
use crate::named::named;

/// What a stage does with each line of values along an axis: value i of the result is the sum of the products of row i of a matrix with
/// the line, one fused multiply-add after the other in ascending order, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transform {
    /// The axis, of the three padded ones.
    pub axis: usize,
    /// The matrix.
    pub matrix: Matrix,
}

named! {
    /// A matrix of an operator along an axis, T = V Λ V⁻¹.
    Matrix "matrix of a transform" {
        /// V⁻¹: from values at cells to amplitudes of modes.
        #[default]
        Forward = "forward",
        /// V: from amplitudes of modes to values at cells.
        Backward = "backward",
        /// Λ: the operator's factor for each mode.
        Values = "values",
        /// The shares of the cells in a mean: the diagonal matrix of those of which T cannot make any other than 0, where its rows add
        /// up to 0. They add up to 1, and are the widths of cells where T is conduction between cells.
        Shares = "shares",
    }
}

/// What to do instead where an operator has no transforms.
const OTHERS: &str = "solve by multigrid, cg or bicgstab";

impl Step<'_> {
    /// Adds a stage that sets a field to the transform of another one along an axis, counted from the slowest. `operator` is a formula
    /// of one field at the cell and its neighbours along the axes, whose boundaries are the operator's.
    ///
    /// ```
    /// use abide_core::program::{Centring, Definition, Matrix};
    ///
    /// // The amplitudes of a string's modes.
    /// let mut p = Definition::new("modes", 1);
    /// p.field("u", Centring::CELL).field("modes", Centring::CELL);
    /// p.step().transform("modes", "u", 0, Matrix::Forward, |s| s.field("u").laplacian());
    /// assert_eq!(p.build()?.stages().len(), 1);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn transform(
        &mut self,
        target: &str,
        of: &str,
        axis: usize,
        matrix: Matrix,
        operator: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
    ) -> &mut Self {
        let definition = &*self.definition;
        let centring = |field| definition.centring(field);
        let stage = transform([target, of], &definition.names, (axis, matrix), centring, operator);
        let uses_temporary = |stage: &Stage| stage.names().any(|field| definition.kinds[field].1.is_none());
        let stage = stage.and_then(|stage| match uses_temporary(&stage) {
            true => refuse(target, "it reads or sets a temporary".to_owned(), "use fields"),
            false => Ok(stage),
        });
        self.add(stage)
    }
}

fn refuse<T>(target: &str, reason: String, change: &str) -> Result<T> {
    Err(Error::invalid(format!("transform that makes {target}"), reason, change))
}

/// Returns the stage of a transform.
fn transform(
    [target, of]: [&str; 2],
    names: &Names,
    (axis, matrix): (usize, Matrix),
    centring: impl Fn(usize) -> Centring,
    operator: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
) -> Result<Stage> {
    let graph = Graph::new();
    let scope = Scope::new(&graph, names);
    let values = [scope.field(of).here(), operator(&scope)];
    let [number, source] = [target, of].map(|name| usize::from(scope.number(name)));
    let defined = scope.finish()?;
    check_graph(&graph, &values, format!("transform that makes {target}"))?;
    if let Some(fault) = graph.fault() {
        return Err(fault);
    }
    if let Some(own) = [number, source].into_iter().find_map(|own| names.precision(own as u16)) {
        return refuse(
            target,
            format!("its values, or those it reads, are rounded to {own}"),
            "give it a field of the run's type",
        );
    }
    if axis >= names.dimensions {
        let limit = format!("0 to {}", names.dimensions.saturating_sub(1));
        let what = format!("axis of the transform that makes {target}");
        return Err(Error::limit(what, axis, limit, "give another"));
    }
    if !defined.updates.is_empty() || !defined.stored.is_empty() || graph.looped(&values).is_some() {
        let reason = "its operator sets fields, or has loops".to_owned();
        return refuse(target, reason, "return the operator's formula");
    }
    let dag = graph.dag(&values);
    let read = dag.taps().map(|tap| usize::from(tap.field));
    if let Some(other) = read.chain([number]).find(|&name| centring(name) != Centring::CELL) {
        let reason = format!("{} does not stand on cells", names.fields[other]);
        return refuse(target, reason, OTHERS);
    }
    check_operator(target, names, &dag.restricted(&[1]))?;
    // Memory and operations of a transform are none of a cell's.
    let footprint = Footprint { stores: 1, ..Footprint::of(&dag, names.fields.len()) };
    let axis = 3 - names.dimensions + axis;
    let does = StageKind::Transform(Transform { axis, matrix });
    let name = target.to_owned();
    Ok(Stage { name, dag, looped: None, does, writes: vec![number], points: Vec::new(), footprint })
}

/// Checks that an operator is of one field and its neighbours along the axes, with coefficients that no field and no chance changes.
fn check_operator(target: &str, names: &Names, operator: &Dag) -> Result<()> {
    let mut taps = operator.taps();
    let Some(first) = taps.next() else {
        return refuse(target, "its operator reads no field".to_owned(), "read the unknown");
    };
    if let Some(other) = taps.find(|tap| tap.field != first.field) {
        let fields = [first.field, other.field].map(|field| &*names.fields[usize::from(field)]);
        let reason = format!(
            "its operator reads {} and {}: coefficients change from cell to cell",
            fields[0], fields[1]
        );
        return refuse(target, reason, OTHERS);
    }
    if let Some(far) =
        operator.taps().find(|tap| tap.offset.iter().map(|by| by.unsigned_abs()).sum::<u32>() > 1)
    {
        let far = &far.offset[3 - names.dimensions..];
        let reason = format!("its operator reads {} at {far:?}", names.fields[usize::from(first.field)]);
        return refuse(target, format!("{reason}, which is no neighbour along an axis"), OTHERS);
    }
    match operator.draws() {
        true => refuse(target, "its operator draws random numbers".to_owned(), OTHERS),
        false => Ok(()),
    }
}

/// The matrices of a problem's transforms.
#[derive(Debug, Clone, Default)]
pub struct Transforms {
    spectra: Vec<(Line, Spectrum)>,
    /// Of each stage.
    of_stage: Vec<Option<usize>>,
}

impl Transforms {
    /// Returns those of a problem.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an operator that is no sum of lines along the axes, or has no modes; [`Error::Memory`] where there is not
    /// enough of it.
    pub fn of(problem: &Problem) -> Result<Transforms> {
        let mut all = Transforms::default();
        all.renew(problem)?;
        Ok(all)
    }

    /// Makes those anew that parameters have changed, and returns whether there are any.
    ///
    /// # Errors
    ///
    /// Those of [`Transforms::of`].
    pub fn renew(&mut self, problem: &Problem) -> Result<bool> {
        let before = std::mem::take(self);
        let mut is_new = false;
        // The transforms of a solve have one operator.
        let mut operators: Vec<(Operator<'_>, Vec<Line>)> = Vec::new();
        for stage in problem.program.stages() {
            let StageKind::Transform(transform) = stage.does else {
                self.of_stage.push(None);
                continue;
            };
            let own = Operator::of(problem, stage)?;
            let number = match operators.iter().position(|(known, _)| known.is_like(&own)) {
                Some(number) => number,
                None => {
                    let lines = own.lines()?;
                    operators.push((own, lines));
                    operators.len() - 1
                }
            };
            let line = &operators[number].1[transform.axis - problem.slowest()];
            let known = self.spectra.iter().position(|(known, _)| known == line);
            let place = known.unwrap_or(self.spectra.len());
            if known.is_none() {
                let kept = before.spectra.iter().find(|(known, _)| known == line);
                is_new |= kept.is_none();
                let spectrum = match kept {
                    Some((_, spectrum)) => spectrum.clone(),
                    None => line.spectrum(&format!("operator along {}", axis_name(transform.axis)))?,
                };
                self.spectra.push((line.clone(), spectrum));
            }
            self.of_stage.push(Some(place));
        }
        Ok(is_new)
    }

    /// Returns the matrix of a stage, row by row, and its rows; none if the stage transforms nothing.
    pub fn matrix(&self, problem: &Problem, stage: usize) -> Option<(Vec<f64>, usize)> {
        let StageKind::Transform(transform) = problem.program.stages().get(stage)?.does else { return None };
        let (line, spectrum) = self.spectra.get((*self.of_stage.get(stage)?)?)?;
        let rows = line.diagonal.len();
        let diagonal = |values: &[f64]| {
            let place =
                |number: usize| if number / rows == number % rows { values[number % rows] } else { 0.0 };
            (0..rows * rows).map(place).collect()
        };
        let matrix = match transform.matrix {
            Matrix::Forward => spectrum.forward.clone(),
            Matrix::Backward => spectrum.backward.clone(),
            Matrix::Values => diagonal(&spectrum.values),
            Matrix::Shares => diagonal(&shares(line)),
        };
        Some((matrix, rows))
    }
}

/// Returns the shares of a line's cells, as [`Matrix::Shares`] has them.
fn shares(line: &Line) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::with_capacity(line.diagonal.len());
    for place in 0..line.diagonal.len() {
        let before = place.checked_sub(1).map(|before| all[before] * line.upper[before] / line.lower[place]);
        all.push(before.filter(|share| share.is_finite()).unwrap_or(1.0));
    }
    let sum: f64 = all.iter().sum();
    all.iter_mut().for_each(|share| *share /= sum);
    all
}

/// The operator of a transform, as it acts on a problem's domain.
struct Operator<'p> {
    problem: &'p Problem,
    target: &'p str,
    dag: Dag,
    field: usize,
    /// The indices that the operator changes.
    indices: Indices,
    /// The parameters, and the scalars that are extents; others are not known.
    scalars: Vec<f64>,
}

impl<'p> Operator<'p> {
    fn of(problem: &'p Problem, stage: &'p Stage) -> Result<Self> {
        let (program, dag) = (&problem.program, stage.dag.restricted(&[1]));
        let Some(field) = dag.taps().next().map(|tap| usize::from(tap.field)) else {
            return refuse(&stage.name, "its operator reads no field".to_owned(), "read the unknown");
        };
        let computed_scalars = program.scalars().iter().zip(&problem.scalars);
        let known =
            computed_scalars.map(|(scalar, &value)| if scalar.extent.is_some() { value } else { f64::NAN });
        Ok(Operator {
            problem,
            target: &stage.name,
            field,
            indices: computed(problem, stage.writes[0], program.radius()),
            scalars: problem.parameters.iter().copied().chain(known).collect(),
            dag,
        })
    }

    /// Returns the operator's value at a place for a field of these values; what is held is 0.
    fn at(&self, at: [isize; 3], value: impl Fn([isize; 3]) -> f64) -> f64 {
        let mut nodes = Vec::with_capacity(self.dag.nodes.len());
        self.dag.evaluate(&mut nodes, &self.scalars, at, |tap| {
            let from = [0, 1, 2].map(|axis| at[axis] + tap.offset[axis] as isize);
            match self.problem.shown(self.field, from, &self.scalars) {
                GhostSource::Value(value) => value,
                GhostSource::At(place, _)
                    if (0..3).any(|axis| !self.indices[axis].contains(&place[axis])) =>
                {
                    0.0
                }
                GhostSource::At(place, false) => value(place),
                GhostSource::At(place, true) => -value(place),
            }
        });
        self.dag.outputs.first().map_or(f64::NAN, |&output| nodes[output as usize])
    }

    /// Returns the sum of the coefficients of a row.
    fn sum(&self, at: [isize; 3]) -> f64 {
        self.at(at, |_| 1.0)
    }

    fn is_periodic(&self, axis: usize) -> bool {
        self.problem.boundaries_of(self.field).0[axis][0] == Boundary::Periodic
    }

    /// Returns the coefficients of the neighbours before and behind a place along an axis; one of both is 0 where they are one, and
    /// both where they are the place itself.
    fn beside(&self, at: [isize; 3], axis: usize) -> [f64; 2] {
        let range = &self.indices[axis];
        let count = range.len() as isize;
        [-1, 1].map(|by| {
            let mut other = at;
            other[axis] += by;
            match self.is_periodic(axis) {
                true => other[axis] = range.start + (other[axis] - range.start).rem_euclid(count),
                false if !range.contains(&other[axis]) => return 0.0,
                false => {}
            }
            let is_known = other == at || (self.is_periodic(axis) && count == 2 && by == 1);
            if is_known { 0.0 } else { self.at(at, |place| f64::from(place == other)) }
        })
    }

    fn middle(&self) -> [isize; 3] {
        [0, 1, 2].map(|axis| (self.indices[axis].start + self.indices[axis].end) / 2)
    }

    /// Returns whether another operator is the same one on the same indices.
    fn is_like(&self, other: &Self) -> bool {
        (&self.dag, &self.indices) == (&other.dag, &other.indices)
    }

    /// Returns the tridiagonal matrix of each axis. What the rows add up to away from walls is the slowest axis's.
    fn lines(&self) -> Result<Vec<Line>> {
        if around([&self.indices]).is_none() {
            let reason = "the domain has no values but held ones".to_owned();
            return refuse(self.target, reason, "choose a larger size");
        }
        let all: Vec<Line> = (self.problem.slowest()..3).map(|axis| self.along(axis)).collect();
        self.check(&all).map(|()| all)
    }

    fn along(&self, axis: usize) -> Line {
        let middle = self.middle();
        let sum = self.sum(middle);
        let own = if axis == self.problem.slowest() { sum } else { 0.0 };
        let mut line = Line {
            lower: Vec::new(),
            diagonal: Vec::new(),
            upper: Vec::new(),
            is_periodic: self.is_periodic(axis),
        };
        for index in self.indices[axis].clone() {
            let mut at = middle;
            at[axis] = index;
            let [lower, upper] = self.beside(at, axis);
            let walls = self.sum(at) - sum;
            line.lower.push(lower);
            line.upper.push(upper);
            line.diagonal.push((walls - (lower + upper)) + own);
        }
        line
    }

    /// Checks that lines along the axes are the whole operator: at corners, and at places that look random.
    fn check(&self, lines: &[Line]) -> Result<()> {
        let slowest = self.problem.slowest();
        let all = || lines.iter().flat_map(|line| line.diagonal.iter().chain(&line.lower).chain(&line.upper));
        if all().any(|value| !value.is_finite()) {
            let reason = "its operator follows from what steps compute, or is no number".to_owned();
            return refuse(self.target, reason, OTHERS);
        }
        let largest = all().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let differs = |one: f64, other: f64| (one - other).abs() > 1e-11 * largest;
        for number in 0..128_usize {
            let at: [isize; 3] = [0, 1, 2].map(|axis| {
                let range = &self.indices[axis];
                let mixed = (number * 3 + axis).wrapping_mul(0x9e37_79b1) >> 7;
                match number {
                    0..8 if number >> axis & 1 == 1 => range.end - 1,
                    0..8 => range.start,
                    _ => range.start + (mixed % range.len()) as isize,
                }
            });
            let mut sum = 0.0;
            for (line, axis) in lines.iter().zip(slowest..) {
                let place = (at[axis] - self.indices[axis].start) as usize;
                let [lower, upper] = self.beside(at, axis);
                if differs(lower, line.lower[place]) || differs(upper, line.upper[place]) {
                    let axis = axis_name(axis);
                    let reason =
                        format!("its operator's coefficients along {axis} change along other axes too");
                    return refuse(self.target, reason, OTHERS);
                }
                sum += line.diagonal[place] + (lower + upper);
            }
            if differs(sum, self.sum(at)) {
                let reason = "its operator is no sum of one along each axis".to_owned();
                return refuse(self.target, reason, OTHERS);
            }
        }
        Ok(())
    }
}
