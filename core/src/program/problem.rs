//! A program on a domain.

use std::sync::Arc;

use super::{Boxes, Centring, Follows, Marks, Member, Probe, Program, Record, Scalar, Stage, Until};
use crate::domain::{Boundaries, Boundary, Shape, Sides};
use crate::error::{Error, Result};
use crate::floating::standard;
use crate::precision::Precision;
use crate::real::{Array, DType, Real};

/// A program on a domain: all that a backend needs besides the initial fields.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The computation.
    pub program: Arc<Program>,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundary at each axis and side, for every field that has none of its own there.
    pub boundaries: Boundaries,
    /// The boundary of each field at the sides where it has one of its own; none of the program's fields has
    /// one where this is empty.
    pub sides: Vec<Sides>,
    /// The parameters' values, in the program's order.
    pub parameters: Vec<f64>,
    /// The computed scalars' values before the first step, in the program's order; 0 where a stage makes one
    /// before another uses it, and the domain's extent where the scalar is one.
    pub scalars: Vec<f64>,
    /// The domains of a batch, which share all else; none where the problem is a single domain, whose
    /// parameters and scalars are those above.
    pub batch: Vec<Member>,
    /// The number of steps done before the first one, which says where the cycle begins.
    pub first_step: u64,
    /// The condition that ends a run before its last step.
    pub until: Option<Until>,
    /// The marks at which a run halts.
    pub marks: Option<Marks>,
    /// What a run records.
    pub record: Option<Record>,
    /// The values of fields that kernels of several steps note after each step: probes of a plain form ([`super::Clock`])
    /// whose rows are so close that a run does not halt for them.
    pub noted: Vec<Probe>,
}

impl Problem {
    /// Makes a problem with the program's own boundaries, parameters and scalars, checked by
    /// [`Problem::check`].
    pub fn new(program: Arc<Program>, shape: Shape, dtype: DType) -> Result<Self> {
        let mut problem = Problem::unchecked(program, shape, dtype);
        problem.lower_walls()?;
        problem.check()?;
        Ok(problem)
    }

    /// Makes the same problem, for a caller that changes it before it checks it.
    pub fn unchecked(program: Arc<Program>, shape: Shape, dtype: DType) -> Self {
        Problem {
            boundaries: program.boundaries(),
            sides: program.kinds().iter().map(|kind| kind.sides).collect(),
            parameters: program.parameters().iter().map(|p| p.default).collect(),
            scalars: program.scalars().iter().map(|s| before(s, &shape)).collect(),
            batch: Vec::new(),
            first_step: 0,
            until: program.until(),
            marks: None,
            record: None,
            noted: Vec::new(),
            program,
            shape,
            dtype,
        }
    }

    /// Sets the boundaries of all fields, coefficients included, at the sides where the program gives a field none of its
    /// own. A plain program stays plain then, where constants are among them, too.
    pub fn set_boundaries(&mut self, boundaries: Boundaries) {
        let (program, is_held) = (&self.program, boundaries.holds_values());
        let sides = program.kinds().iter().enumerate().map(|(field, kind)| match is_held {
            true if program.is_tapped_coefficient(field) => kind.sides.or(Sides::all(boundaries)),
            _ => kind.sides,
        });
        (self.sides, self.boundaries) = (sides.collect(), boundaries);
    }

    /// Returns the boundaries of a field: its own, and those of all fields at the sides where it has none.
    ///
    /// The value that ghost cells of all fields hold is one of what the program computes. A coefficient, which no stage
    /// sets, has its value at the edge there (`clamp`), unless it has a boundary of its own.
    pub fn boundaries_of(&self, field: usize) -> Boundaries {
        let is_held = self.boundaries.holds_values() && self.program.is_tapped_coefficient(field);
        let shared = if is_held { self.boundaries.without_values(self.slowest()) } else { self.boundaries };
        self.sides.get(field).map_or(shared, |sides| sides.over(shared))
    }

    /// Returns what a plan says of coefficients that have the boundary `clamp` where all fields have a constant; `None` if
    /// there are none.
    pub fn note_of_coefficients(&self) -> Option<String> {
        let fields = self.program.fields();
        let own =
            |field: usize| self.sides.get(field).map_or(self.boundaries, |own| own.over(self.boundaries));
        let held: Vec<&str> = (0..fields.len())
            .filter(|&field| self.boundaries_of(field) != own(field))
            .map(|field| &*fields[field])
            .collect();
        let first = held.first()?;
        let more = match held.len() {
            1 => String::new(),
            more => format!(" and {} more coefficients", more - 1),
        };
        Some(format!(
            "{first}{more}: no stage sets it, so where the boundary of all fields is a constant it has its value at the \
             edge (clamp), unless it has a boundary of its own ({first}:constant=C)"
        ))
    }

    /// Returns what a plan says of loops, whose turns it does not know; `None` if there are none.
    pub fn note_of_loops(&self) -> Option<String> {
        let loops = self.program.phases().iter().filter(|phase| phase.repeat.is_some()).count();
        let which = if loops == 1 { "the loop".to_owned() } else { format!("each of {loops} loops") };
        (loops > 0).then(|| format!("{which} of the steps is estimated as one turn of it"))
    }

    /// Returns the boundaries of a field while the parameters, and then the computed scalars, have these
    /// values.
    pub fn boundaries_with<T: Real>(&self, field: usize, scalars: &[T]) -> Boundaries {
        self.boundaries_of(field).with_scalars(|name| {
            let number = self.program.number_of_scalar(name.as_str()).ok()?;
            scalars.get(number).map(|value| value.to_f64())
        })
    }

    /// Returns the extents of a field's values along the three padded axes.
    pub fn extents_of(&self, field: usize) -> [usize; 3] {
        let centring = self.program.kinds().get(field).map_or_else(Default::default, |kind| kind.centring);
        centring.extents(&self.shape, &self.boundaries_of(field))
    }

    /// Returns the slowest of the domain's axes, of the three padded ones.
    pub fn slowest(&self) -> usize {
        3 - self.shape.dimensions()
    }

    /// Returns the extents of a field's values as a shape, for files and starts.
    pub fn shape_of(&self, field: usize) -> Result<Shape> {
        Shape::new(&self.extents_of(field)[3 - self.shape.dimensions()..])
    }

    /// Returns whether a fixed boundary holds the field's value at an index: its initial one, at every step.
    pub fn is_held(&self, field: usize, index: [usize; 3]) -> bool {
        let (boundaries, extents) = (self.boundaries_of(field), self.extents_of(field));
        let radius = self.program.radius();
        (0..3).any(|axis| !boundaries.computed(axis, extents[axis], radius[axis]).contains(&index[axis]))
    }

    /// Returns the number of a field's values; in a batch, of each member.
    pub fn values_of(&self, field: usize) -> usize {
        self.extents_of(field).iter().product()
    }

    /// Returns the cells of the grid on which a field or temporary stands.
    pub fn cells_of(&self, name: usize) -> usize {
        self.cells_on(self.program.centring(name))
    }

    /// Returns the cells of a grid.
    pub(super) fn cells_on(&self, grid: Centring) -> usize {
        self.shape.padded().iter().map(|extent| extent.div_ceil(1 << grid.level())).product()
    }

    /// Returns the precision in which a device may store a field: its own, where that is narrower than the run's type and the
    /// problem is a whole domain. Slabs of one exchange values of the run's type.
    pub fn stored_precision(&self, field: usize) -> Option<Precision> {
        let own = self.program.kinds().get(field)?.precision;
        own.filter(|own| own.is_narrower(self.dtype) && !self.is_slab() && !self.is_batch())
    }

    /// Returns whether the domain is a slab of another one: a side is open.
    pub(super) fn is_slab(&self) -> bool {
        self.boundaries.0.as_flattened().contains(&Boundary::Open)
    }

    /// Returns the bytes of a value of a field or temporary as a device may store it.
    pub fn value_bytes(&self, name: usize) -> usize {
        Precision::stored_bytes(self.stored_precision(name), self.dtype)
    }

    /// Rounds values of a field to its precision, if it has one.
    pub fn round(&self, field: usize, values: &mut Array) {
        if let Some(precision) = self.program.kinds()[field].precision {
            standard(|| precision.round(values));
        }
    }

    /// Returns the bytes that a stage by itself loads and stores: each field that it reads or writes once for every cell, or
    /// its taps and results at points.
    pub fn stage_bytes(&self, stage: &Stage) -> [f64; 2] {
        if !stage.points.is_empty() {
            let all = [stage.footprint.taps, stage.writes.len()];
            return all.map(|values| (values * self.dtype.bytes() * stage.points.len()) as f64);
        }
        let bytes_of = |name: usize| (self.cells_of(name) * self.value_bytes(name)) as f64;
        let read = stage.footprint.field_radius.iter().enumerate().filter(|(_, own)| own.is_some());
        [read.map(|(name, _)| bytes_of(name)).sum(), stage.writes.iter().map(|&name| bytes_of(name)).sum()]
    }

    /// Returns whether the problem is a plain program with plain boundaries that all fields share, on axes that are no
    /// shorter than its taps reach, which every schedule can run; any other runs a launch per stage.
    pub fn is_plain(&self) -> bool {
        let (extents, radius) = (self.shape.padded(), self.program.radius());
        self.program.is_plain()
            && self.has_shared_boundaries()
            && (0..3).all(|axis| self.boundaries.is_wide(axis, extents[axis], radius[axis]))
    }

    /// Returns whether the boundaries are plain and every field's.
    pub(super) fn has_shared_boundaries(&self) -> bool {
        let is_shared = |field: usize| self.boundaries_of(field) == self.boundaries;
        self.boundaries.is_plain() && (0..self.program.fields().len()).all(is_shared)
    }

    /// Returns whether formulas in the fields' type tell all indices along an axis from one another.
    pub(super) fn tells_indices(&self) -> bool {
        self.shape.padded().iter().all(|&extent| self.dtype.tells_indices(extent))
    }

    /// Checks that domain, boundaries, parameters and scalars fit the program.
    pub fn check(&self) -> Result<()> {
        let program = &self.program;
        if self.shape.dimensions() != program.dimensions() {
            return Err(Error::invalid(
                format!("size {}", self.shape),
                format!("{} has {} axes", program.name(), program.dimensions()),
                format!("give {} extents, slowest axis first", program.dimensions()),
            ));
        }
        let counts = [
            ("parameters", self.parameters.len(), program.parameters().len()),
            ("computed scalars", self.scalars.len(), program.scalars().len()),
        ];
        if let Some((what, given, needed)) = counts.into_iter().find(|(_, given, needed)| given != needed) {
            return Err(Error::limit(what, given, needed, "give one value each"));
        }
        if !program.walls.is_empty() {
            return Err(Error::invalid(
                format!("program {}", program.name()),
                "its formulas do not meet its conditions at walls yet",
                "call Problem::lower_walls once the boundaries are set",
            ));
        }
        self.spacing()?;
        self.check_batch()?;
        let all = self.batch.iter().map(|member| &member.scalars).chain([&self.scalars]);
        for (scalar, &value) in all.flat_map(|scalars| program.scalars().iter().zip(scalars)) {
            if scalar.extent.is_some() && value != before(scalar, &self.shape) {
                return Err(Error::invalid(
                    format!("scalar {}", scalar.name),
                    format!(
                        "it is {value}, and the domain has {} cells along its axis",
                        before(scalar, &self.shape)
                    ),
                    "make the problem anew for another domain",
                ));
            }
        }
        if !self.sides.is_empty() && self.sides.len() != program.fields().len() {
            return Err(Error::limit(
                "boundaries of fields",
                self.sides.len(),
                format!("none, or {}", program.fields().len()),
                "give one set of sides for each field",
            ));
        }
        for name in (0..program.fields().len()).flat_map(|field| self.boundaries_of(field).scalars()) {
            let number = program.number_of_scalar(name.as_str())?;
            let computed = number.checked_sub(program.parameters().len());
            let scalar = computed.and_then(|number| program.scalars().get(number));
            if scalar.is_some_and(|scalar| scalar.initial.is_none() && scalar.extent.is_none()) {
                return Err(Error::invalid(
                    format!("boundary constant={name}"),
                    format!("{name} has no value before the first step"),
                    "declare the scalar with a value",
                ));
            }
        }
        self.check_followers()?;
        if self.is_plain() {
            self.boundaries.check(&self.shape, program.radius(), self.dtype)?;
        } else {
            Boxes::of(self)?;
        }
        // After the boundaries, which the extents of fields depend on.
        self.record.as_ref().map_or(Ok(()), |record| record.check(self))
    }
}

impl Problem {
    /// Checks that boundaries that follow those of other fields do.
    fn check_followers(&self) -> Result<()> {
        let differs = |&(field, of, how): &(usize, usize, Follows)| {
            self.boundaries_of(field).0[self.slowest()..]
                != how.boundaries(self.boundaries_of(of)).0[self.slowest()..]
        };
        match self.program.followers().find(differs) {
            None => Ok(()),
            Some((field, of, how)) => Err(Error::invalid(
                format!("boundary of {}", self.program.fields()[field]),
                format!("it {} {}, and has not its boundary", how.word(), self.program.fields()[of]),
                "call Problem::lower_walls once the boundaries are set",
            )),
        }
    }
}

/// Returns a scalar's value before the first step.
fn before(scalar: &Scalar, shape: &Shape) -> f64 {
    let extent = scalar.extent.and_then(|axis| shape.extents().get(axis));
    extent.map_or(scalar.initial.unwrap_or(0.0), |&cells| cells as f64)
}
