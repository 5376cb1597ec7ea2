//! Stencils: the formulas that a user writes.

use std::cell::RefCell;
use std::ops::Range;

use super::centring::Centring;
use super::component;
use super::grid::Grid;
use super::start::Start;
use crate::domain::Boundary;
use crate::error::{Error, Result};
use crate::expr::{Components, Dag, Expr, Graph, Id, Index, Node, Tap};
use crate::precision::Precision;

/// A parameter of a stencil: constant in space, settable between steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name, as the formula and the command use it.
    pub name: String,
    /// The value unless another one is given.
    pub default: f64,
    /// The meaning with its unit, in a few words.
    pub about: String,
    /// Whether it varies from stage to stage: a scalar of a program whose [`Clock`](super::Clock) knows it before the step.
    pub varies: bool,
}

impl Parameter {
    /// Returns the condition under which a scheme with this parameter is stable, as the meaning states it behind
    /// "; stable", as in `up to 1/(2·axes)`; `None` where it states none.
    pub fn stability(&self) -> Option<&str> {
        self.about.split_once("; stable ").map(|(_, condition)| condition)
    }

    /// Makes a parameter with a default and its meaning.
    pub fn new(name: impl Into<String>, default: f64, about: impl Into<String>) -> Self {
        Parameter { name: name.into(), default, about: about.into(), varies: false }
    }
}

/// One stage of a computation: the new value of some fields as formulas of old values around the cell.
///
/// ```
/// use abide_core::{Scope, Stencil};
///
/// struct Smooth;
/// impl Stencil for Smooth {
///     fn name(&self) -> &str { "smooth" }
///     fn dimensions(&self) -> usize { 1 }
///     fn define(&self, s: &Scope<'_>) {
///         let u = s.field("u");
///         s.set("u", 0.25 * u.at([-1]) + 0.5 * u.here() + 0.25 * u.at([1]));
///     }
/// }
/// let program = abide_core::Program::new(&Smooth)?;
/// assert_eq!(program.radius(), [0, 0, 1]);
/// # Ok::<(), abide_core::Error>(())
/// ```
pub trait Stencil: Send + Sync {
    /// Returns the name under which the stencil is listed.
    fn name(&self) -> &str;

    /// Returns the number of axes, 1 to 3.
    fn dimensions(&self) -> usize;

    /// Returns the names of the fields that the stencil reads or writes, in order; one field `u` by default.
    fn fields(&self) -> Vec<String> {
        vec!["u".to_owned()]
    }

    /// Returns the parameters that the stencil uses; none by default.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Returns the boundary that suits the stencil; `fixed` by default.
    fn boundary(&self) -> Boundary {
        Boundary::Fixed
    }

    /// Returns the number of the field that a picture shows; the first by default.
    fn shown(&self) -> usize {
        0
    }

    /// Returns the initial state of a field unless another one is given.
    fn start(&self, _field: &str) -> Start {
        Start::Random { seed: 1, low: 0.0, high: 1.0 }
    }

    /// Writes the new values: calls [`Scope::set`] for each field that changes.
    fn define(&self, scope: &Scope<'_>);
}

/// The means of a formula: fields, parameters, coordinates, and [`Scope::set`] for the results.
///
/// A wrong name does not stop the definition; the error comes when the program is made.
pub struct Scope<'g> {
    graph: &'g Graph,
    names: &'g Names,
    updates: RefCell<Vec<(u16, Expr<'g>)>>,
    stored: RefCell<Vec<Range<u16>>>,
    mask: RefCell<Option<Expr<'g>>>,
    here: RefCell<Vec<u16>>,
    fault: RefCell<Option<Error>>,
}

/// The names that a formula may use.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// The number of axes.
    pub dimensions: usize,
    /// Fields and temporaries, by their numbers in taps.
    pub fields: Vec<String>,
    /// Parameters and computed scalars, by their numbers in formulas.
    pub scalars: Vec<String>,
    /// The grid in space.
    pub grid: Grid,
    /// The fields whose values are rounded to a precision, by their numbers.
    pub precisions: Vec<(u16, Precision)>,
}

impl Names {
    /// Returns the precision to which a field's values are rounded, by its number.
    pub fn precision(&self, field: u16) -> Option<Precision> {
        self.precisions.iter().find(|own| own.0 == field).map(|own| own.1)
    }
}

/// What a formula has defined.
pub(super) struct Defined<'g> {
    /// The new values, by the numbers of their fields.
    pub updates: Vec<(u16, Expr<'g>)>,
    /// The fields that loops set, in the order in which they were asked for.
    pub stored: Vec<Range<u16>>,
    /// The numbers of the fields that were read by [`Field::here`].
    pub here: Vec<u16>,
}

impl<'g> Scope<'g> {
    pub(super) fn new(graph: &'g Graph, names: &'g Names) -> Self {
        graph.set_singles(names.precisions.iter().map(|(field, _)| *field).collect());
        Scope {
            graph,
            names,
            updates: RefCell::default(),
            stored: RefCell::default(),
            mask: RefCell::new(None),
            here: RefCell::default(),
            fault: RefCell::new(None),
        }
    }

    pub(super) fn finish(self) -> Result<Defined<'g>> {
        let mut updates = self.updates.take();
        let stored = self.stored.take();
        if !stored.is_empty() && self.mask.borrow().is_some() {
            self.fail(Error::invalid(
                "mask of a stage",
                "it keeps old values of fields that are set one by one, and loops set components of one",
                "select the old component in the formula of the new one",
            ));
        }
        if let Some(mask) = self.mask.take() {
            for (number, value) in &mut updates {
                let old = self.graph.add(Node::Tap(Tap { field: *number, offset: [0; 3] }));
                *value = mask.select(*value, old);
            }
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(Defined { updates, stored, here: self.here.take() }),
        }
    }

    pub(super) fn fail(&self, error: Error) {
        self.fault.borrow_mut().get_or_insert(error);
    }

    pub(super) fn number(&self, field: &str) -> u16 {
        match self.names.fields.iter().position(|name| name == field) {
            Some(number) => number as u16,
            None => {
                self.fail(Error::unknown("field", field, &self.names.fields));
                0
            }
        }
    }

    /// Returns the tap of a field at an offset with a number for each axis.
    fn tap(&self, field: u16, offset: &[i32]) -> Tap {
        let mut padded = [0; 3];
        if offset.len() == self.dimensions() {
            padded[3 - offset.len()..].copy_from_slice(offset);
        } else {
            self.fail(Error::invalid(
                format!("offset {offset:?}"),
                format!("it has {} numbers", offset.len()),
                format!("give one for each of the {} axes", self.dimensions()),
            ));
        }
        if let Some(&far) = padded.iter().find(|o| o.unsigned_abs() > MAX_RADIUS) {
            self.fail(Error::limit("offset of a tap", far, MAX_RADIUS, "use nearer taps"));
        }
        Tap { field, offset: padded }
    }

    /// Returns the number of axes.
    pub fn dimensions(&self) -> usize {
        self.names.dimensions
    }

    /// Returns a field or temporary, to be read at offsets.
    pub fn field<'s>(&'s self, name: &str) -> Field<'s, 'g> {
        Field { scope: self, number: self.number(name) }
    }

    /// Returns a component of a field that has several.
    pub fn component<'s>(&'s self, name: &str, number: usize) -> Field<'s, 'g> {
        self.field(&component(name, number))
    }

    /// Returns the numbers of all components of a field.
    fn numbers(&self, name: &str) -> Range<u16> {
        let first = self.number(&component(name, 0));
        let later = self.names.fields.iter().skip(usize::from(first));
        let number = |field: &String| {
            let number = field.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            number.parse::<usize>().ok()
        };
        let count = later.enumerate().take_while(|(i, field)| number(field) == Some(*i)).count();
        first..first + count as u16
    }

    /// Returns all components of a field, to be read at the cell by the index of a loop.
    pub fn components(&self, name: &str) -> Components<'g> {
        self.components_at(name, &[0; 3][..self.dimensions()])
    }

    /// Returns all components of a field, to be read by the index of a loop at an offset in cells, slowest axis first.
    pub fn components_at(&self, name: &str, offset: &[i32]) -> Components<'g> {
        let Range { start: number, end } = self.numbers(name);
        let (count, first) = (usize::from(end - number), self.tap(number, offset));
        if first.offset == [0; 3] {
            self.here.borrow_mut().push(number);
        }
        self.graph.components(first, count)
    }

    /// Returns the graph that the formula lives in, whose loops and tables it may have.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns the value of a parameter or of a computed scalar.
    pub fn param(&self, name: &str) -> Expr<'g> {
        let number = self.names.scalars.iter().position(|known| known == name).unwrap_or_else(|| {
            self.fail(Error::unknown("parameter", name, &self.names.scalars));
            0
        });
        self.graph.add(Node::Param(number as u16))
    }

    /// Returns the names of parameters and computed scalars, by their numbers in formulas.
    pub(super) fn scalars(&self) -> &[String] {
        &self.names.scalars
    }

    /// Returns a literal.
    pub fn constant(&self, value: f64) -> Expr<'g> {
        self.graph.constant(value)
    }

    /// Returns the cell's index along an axis as a number, 0 at the low side; axis 0 is the stencil's
    /// slowest.
    pub fn coord(&self, axis: usize) -> Expr<'g> {
        if axis >= self.dimensions() {
            self.fail(Error::limit(
                "axis of a coordinate",
                axis,
                self.dimensions() - 1,
                "use an axis of the stencil",
            ));
            return self.constant(0.0);
        }
        self.graph.add(Node::Coord((3 - self.dimensions() + axis) as u8))
    }

    /// Returns the distance between neighbouring cells along an axis, counted from the slowest, as the program says
    /// ([`Definition::spacing`](super::Definition::spacing)); 1 unless it does.
    pub fn spacing(&self, axis: usize) -> Expr<'g> {
        self.of_grid(axis, |grid, axis| &grid.spacing[axis]).unwrap_or_else(|| self.constant(1.0))
    }

    /// Returns the place of the values of a formula along an axis, counted from the slowest, in the units of the spacing:
    /// the program's origin, and the spacing times the index for values on nodes of the axis, times half a cell more for
    /// values in the middle of cells.
    pub fn position(&self, axis: usize, on: Centring) -> Expr<'g> {
        let index = self.coord(axis);
        let is_on_nodes = on.of(self.dimensions()).on_nodes_of(self.dimensions(), axis);
        let own = if is_on_nodes { index } else { index + 0.5 };
        // A cell of a coarser grid is as wide as all that it joins.
        let cells = if on.level() == 0 { own } else { own * (1_u64 << on.level()) as f64 };
        let spaced = match self.of_grid(axis, |grid, axis| &grid.spacing[axis]) {
            Some(spacing) => cells * spacing,
            None => cells,
        };
        match self.of_grid(axis, |grid, axis| &grid.origin[axis]) {
            Some(origin) => origin + spaced,
            None => spaced,
        }
    }

    /// Returns the number of an axis among the padded three; `None`, with a fault, for one that the program does not have.
    fn padded(&self, what: &str, axis: usize) -> Option<usize> {
        let is_known = axis < self.dimensions();
        if !is_known {
            self.fail(Error::limit(what, axis, self.dimensions() - 1, "use an axis of the program"));
        }
        is_known.then(|| 3 - self.dimensions() + axis)
    }

    /// Returns a formula of the grid along an axis, if the program has it.
    fn of_grid(&self, axis: usize, get: impl Fn(&Grid, usize) -> &Option<Dag>) -> Option<Expr<'g>> {
        let axis = self.padded("axis of the grid", axis)?;
        let dag = get(&self.names.grid, axis).as_ref()?;
        let mut all: Vec<Expr<'g>> = Vec::with_capacity(dag.nodes.len());
        for node in &dag.nodes {
            let node = node.map(|operand| all[operand as usize].id());
            all.push(self.graph.add(node));
        }
        dag.outputs.first().map(|&output| all[output as usize])
    }

    /// Returns the value of a formula at a cell so far away along an axis, counted from the slowest.
    pub fn shifted(&self, expr: Expr<'g>, axis: usize, distance: i32) -> Expr<'g> {
        let Some(padded) = self.padded("axis of a formula", axis) else { return expr };
        let shifted = self.graph.rewritten(expr, |node| match node {
            Node::Tap(mut tap) => {
                tap.offset[padded] += distance;
                if tap.offset[padded].unsigned_abs() > MAX_RADIUS {
                    let far = tap.offset[padded];
                    self.fail(Error::limit("offset of a tap", far, MAX_RADIUS, "use nearer taps"));
                }
                self.graph.add(Node::Tap(tap))
            }
            Node::Coord(own) if usize::from(own) == padded => self.graph.add(node) + f64::from(distance),
            Node::Draw(..) => {
                let reason = "it draws random numbers, which are those of the cell";
                let change = "give them to a field in a stage before, and read that";
                self.fail(Error::invalid("formula at another cell", reason, change));
                self.graph.add(node)
            }
            other => self.graph.add(other),
        });
        shifted.unwrap_or_else(|| {
            let reason = "it has a loop, whose iterations are not moved";
            self.fail(Error::invalid("formula at another cell", reason, "write the loop for that cell"));
            expr
        })
    }

    /// Returns the first derivative of a formula along an axis, counted from the slowest, by the difference of its values at
    /// both neighbouring cells: of second order in the spacing, `(a[1] - a[-1]) * (0.5 / dx)`.
    pub fn derivative(&self, expr: Expr<'g>, axis: usize) -> Expr<'g> {
        let [low, high] = [-1, 1].map(|distance| self.shifted(expr, axis, distance));
        (high - low) * (0.5 / self.spacing(axis))
    }

    /// Returns the second derivative as [`Scope::derivative`] returns the first: `(a[-1] - 2 a + a[1]) * (1 / dx²)`.
    pub fn second_derivative(&self, expr: Expr<'g>, axis: usize) -> Expr<'g> {
        let [low, high] = [-1, 1].map(|distance| self.shifted(expr, axis, distance));
        let spacing = self.spacing(axis);
        (low - 2.0 * expr + high) * (1.0 / (spacing * spacing))
    }

    /// Returns the sum of `term(i)` over a range of components, added in order.
    pub fn sum(&self, range: std::ops::Range<usize>, term: impl FnMut(usize) -> Expr<'g>) -> Expr<'g> {
        range.map(term).reduce(|sum, term| sum + term).unwrap_or_else(|| self.constant(0.0))
    }

    /// Returns the same formula with products fused into the additions around them (see
    /// [`Graph::contracted`]).
    pub fn contracted(&self, expr: Expr<'g>) -> Expr<'g> {
        self.graph.contracted(expr)
    }

    /// Keeps the old values of all fields that the stage sets wherever `mask` is zero, as in an obstacle.
    pub fn only_where(&self, mask: Expr<'g>) {
        self.mask.replace(Some(mask));
    }

    /// Sets the new value of a component of a field that has several.
    pub fn set_component(&self, field: &str, number: usize, value: Expr<'g>) {
        self.set(&component(field, number), value);
    }

    /// Sets the new values of all components of a field: of each that of a loop's turn.
    pub fn set_components(&self, field: &str, value: impl FnOnce(Index<'g>) -> Expr<'g>) {
        self.set_components_of(field, 1, |_, number| value(number));
    }

    /// Sets the new values of all components of a field that stand row by row in so many rows: of each that of a turn of a
    /// loop over the columns within one over the rows, as out_ij = x_i y_j of all pairs.
    pub fn set_components_of(
        &self,
        field: &str,
        rows: usize,
        value: impl FnOnce(Index<'g>, Index<'g>) -> Expr<'g>,
    ) {
        let numbers = self.numbers(field);
        if rows == 0 || !numbers.len().is_multiple_of(rows) {
            let limit = format!("a divisor of its {} components", numbers.len());
            return self.fail(Error::limit(format!("rows of field {field}"), rows, limit, "give another"));
        }
        let is_set = self.updates.borrow().iter().any(|(number, _)| numbers.contains(number))
            || self.stored.borrow().contains(&numbers);
        if is_set {
            self.fail(set_twice(field));
        }
        let precision = self.names.precision(numbers.start);
        self.graph
            .each_of(rows, numbers.len() / rows, |row, column| self.rounded(precision, value(row, column)));
        self.stored.borrow_mut().push(numbers);
    }

    /// Returns a value rounded to a precision, if there is one and the value is none of it already.
    fn rounded(&self, precision: Option<Precision>, value: Expr<'g>) -> Expr<'g> {
        match precision {
            Some(precision) if !self.is_of(precision, value.id()) => value.unary(precision.operator()),
            _ => value,
        }
    }

    /// Returns whether a formula's values are of a precision whatever it reads.
    fn is_of(&self, precision: Precision, value: Id) -> bool {
        match self.graph.node(value) {
            _ if precision == Precision::F32 && self.graph.is_single(value) => true,
            Some(Node::Unary(op, _)) => op == precision.operator(),
            // Beyond the domain stand values of the boundary; a field that is read where the formula stands has none there.
            Some(Node::Tap(Tap { field, offset: [0, 0, 0] })) => {
                self.names.precision(field) == Some(precision) && self.here.borrow().contains(&field)
            }
            Some(Node::Select(_, yes, no)) => self.is_of(precision, yes) && self.is_of(precision, no),
            Some(Node::Const(value)) => precision.rounded(value.value()).to_bits() == value.value().to_bits(),
            _ => false,
        }
    }

    /// Sets a field's new value.
    pub fn set(&self, field: &str, value: Expr<'g>) {
        let number = self.number(field);
        let mut updates = self.updates.borrow_mut();
        let is_stored = || self.stored.borrow().iter().any(|numbers| numbers.contains(&number));
        if updates.iter().any(|(n, _)| *n == number) || is_stored() {
            self.fail(set_twice(field));
        }
        updates.push((number, self.rounded(self.names.precision(number), value)));
    }
}

/// A field inside a formula.
#[derive(Clone, Copy)]
pub struct Field<'s, 'g> {
    scope: &'s Scope<'g>,
    number: u16,
}

impl<'g> Field<'_, 'g> {
    /// Returns the old value at an offset in cells, slowest axis first, with as many numbers as the stencil
    /// has axes.
    pub fn at<const D: usize>(&self, offset: [i32; D]) -> Expr<'g> {
        self.at_slice(&offset)
    }

    /// Returns the same as [`Field::at`], for an offset whose length is not known when compiling.
    pub fn at_slice(&self, offset: &[i32]) -> Expr<'g> {
        self.scope.graph.add(Node::Tap(self.scope.tap(self.number, offset)))
    }

    /// Returns the old value at the cell itself.
    ///
    /// The field must stand where the values do that the formula sets; else say by [`Field::at`] which of its
    /// values is meant.
    pub fn here(&self) -> Expr<'g> {
        self.scope.here.borrow_mut().push(self.number);
        self.at_slice(&[0; 3][..self.scope.dimensions()])
    }

    /// Returns the old value `distance` cells away along one axis; axis 0 is the stencil's slowest.
    pub fn along(&self, axis: usize, distance: i32) -> Expr<'g> {
        let mut offset = vec![0; self.scope.dimensions()];
        match offset.get_mut(axis) {
            Some(o) => *o = distance,
            None => self.scope.fail(Error::limit(
                "axis of a tap",
                axis,
                self.scope.dimensions() - 1,
                "use an axis of the stencil",
            )),
        }
        self.at_slice(&offset)
    }

    /// Returns the sum of the nearest neighbours along every axis minus as many times the cell: the
    /// second-order Laplacian times the square of the cell's width. Neighbours are added in the order of
    /// their offsets, slowest axis first.
    pub fn laplacian(&self) -> Expr<'g> {
        let dimensions = self.scope.dimensions();
        let low = (0..dimensions).map(|axis| self.along(axis, -1));
        let high = (0..dimensions).rev().map(|axis| self.along(axis, 1));
        let sum = low.chain(high).reduce(|sum, term| sum + term).unwrap_or_else(|| self.scope.constant(0.0));
        self.here().mul_add(-2.0 * dimensions as f64, sum)
    }
}

fn set_twice(field: &str) -> Error {
    Error::invalid(format!("field {field}"), "set twice in one stage", "set each field once a stage")
}

/// The farthest tap that a formula may use, in cells; far beyond what any tile holds.
pub const MAX_RADIUS: u32 = 1024;
