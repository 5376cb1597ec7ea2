//! The boundary at each side of a domain, and what ghost cells show.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::Serialize;

use super::axes::axis_name;
use super::boundary::Boundary;
use super::boundary_text::BoundaryText;
use super::scalar_name::ScalarName;
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::real::DType;

/// The boundary at each axis and side, slowest axis first; `[axis][0]` is the low side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Boundaries(pub [[Boundary; 2]; 3]);

/// The boundaries of some axes and sides; `None` where another one holds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Sides(pub [[Option<Boundary>; 2]; 3]);

impl Sides {
    /// Returns the boundaries of all sides, for a field that has each of them of its own.
    pub fn all(boundaries: Boundaries) -> Sides {
        Sides(boundaries.0.map(|sides| sides.map(Some)))
    }

    /// Returns the boundaries, with `others` for the sides that have none here.
    pub fn over(self, others: Boundaries) -> Boundaries {
        Boundaries(
            [0, 1, 2].map(|axis| [0, 1].map(|side| self.0[axis][side].unwrap_or(others.0[axis][side]))),
        )
    }

    /// Returns these boundaries, with those of `others` for the sides that have none here.
    pub fn or(self, others: Sides) -> Sides {
        Sides([0, 1, 2].map(|axis| [0, 1].map(|side| self.0[axis][side].or(others.0[axis][side]))))
    }
}

impl Display for Sides {
    /// Writes the sides that have a boundary as a user writes them, as in `x-=-reflect,x+=mirror`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (axis, sides) in self.0.iter().enumerate() {
            for (side, sign) in sides.iter().zip(["-", "+"]) {
                if let Some(boundary) = side {
                    write!(f, "{separator}{}{sign}={boundary}", axis_name(axis))?;
                    separator = ",";
                }
            }
        }
        Ok(())
    }
}

/// The place of a tap's value after the boundary has been applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// The cell at this index along the axis.
    Cell(usize),
    /// No cell: the tap has this value.
    Value(f64),
}

impl Boundaries {
    /// Returns whether ghost cells at any side hold a number or a scalar's value.
    pub fn holds_values(&self) -> bool {
        self.0.iter().flatten().any(|side| side.holds_value())
    }

    /// Returns the boundaries of differences of fields that have these: 0 in place of each value beyond a side.
    pub fn homogeneous(self) -> Boundaries {
        Boundaries(self.0.map(|sides| {
            sides.map(|side| match side {
                Boundary::Constant(_) | Boundary::Scalar(_) => Boundary::Constant(0.0),
                other => other,
            })
        }))
    }

    /// Returns the boundaries of a mark of what lies inside of these: 0 beyond each side that is not periodic.
    pub fn closed(self) -> Boundaries {
        Boundaries(self.0.map(|sides| {
            sides.map(|side| match side {
                Boundary::Periodic | Boundary::Fixed | Boundary::Open => side,
                _ => Boundary::Constant(0.0),
            })
        }))
    }

    /// Returns the boundaries with [`Boundary::Clamp`] for each that holds a number or a scalar's value, from an axis on.
    pub fn without_values(mut self, slowest: usize) -> Boundaries {
        let sides = self.0.iter_mut().skip(slowest).flatten();
        sides.filter(|side| side.holds_value()).for_each(|side| *side = Boundary::Clamp);
        self
    }

    /// Returns the same boundary on all axes and sides.
    pub fn all(boundary: Boundary) -> Self {
        Boundaries([[boundary; 2]; 3])
    }

    /// Reads a [`BoundaryText`] that names no field; sides that it does not name keep `default`.
    pub fn parse(text: &str, default: Boundary) -> Result<Self> {
        let named = text.parse::<BoundaryText>()?;
        named.refuse_conditions()?;
        Ok(named.sides(3)?.over(Boundaries::all(default)))
    }

    /// Checks the boundaries of the domain's axes against the domain, the radius of the program on each axis
    /// and the type of the fields.
    pub fn check(&self, shape: &Shape, radius: [usize; 3], dtype: DType) -> Result<()> {
        for axis in 3 - shape.dimensions()..3 {
            let [low, high] = self.0[axis];
            let name = axis_name(axis);
            if (low == Boundary::Periodic) != (high == Boundary::Periodic) {
                return Err(Error::invalid(
                    format!("boundary of axis {name}"),
                    "only one side is periodic",
                    "make both sides periodic or neither",
                ));
            }
            for boundary in [low, high] {
                if let Boundary::Constant(value) = boundary
                    && !dtype.is_finite(value)
                {
                    return Err(Error::invalid(
                        format!("boundary of axis {name}"),
                        format!("the constant {value:?} is not a finite number in {dtype}"),
                        "give a finite value",
                    ));
                }
            }
            let extent = shape.padded()[axis];
            let least = |side: &Boundary| side.least_extent(radius[axis]);
            if let Some(side) = [low, high].into_iter().find(|side| extent < least(side)) {
                return Err(Error::limit(
                    format!("extent of axis {name} under a {side} boundary"),
                    extent,
                    match least(&side) - radius[axis] {
                        0 => format!("at least the radius, {}", radius[axis]),
                        _ => format!("more than the radius, {}", radius[axis]),
                    },
                    "choose a larger size or another boundary",
                ));
            }
        }
        Ok(())
    }

    /// Returns where the value at `index` along `axis` is found, where no ghost cell holds a scalar's value (see
    /// [`Boundaries::with_scalars`]). The index is at most one extent outside
    /// `0..extent`, or anywhere if the axis is periodic.
    pub fn source(&self, axis: usize, index: isize, extent: usize) -> Source {
        let n = extent as isize;
        let side = match index {
            i if i < 0 => 0,
            i if i >= n => 1,
            _ => return Source::Cell(index as usize),
        };
        match self.0[axis][side] {
            Boundary::Constant(value) => Source::Value(value),
            Boundary::Open => Source::Value(0.0),
            Boundary::Scalar(_) => Source::Value(f64::NAN),
            kind => {
                // A periodic axis repeats. Beyond other sides, only cells that no computed cell taps lie
                // farther out.
                let near = match kind {
                    Boundary::Periodic if index < 0 => index.rem_euclid(n) - n,
                    Boundary::Periodic => index % n + n,
                    _ => index,
                };
                Source::Cell(kind.shown(near, n).clamp(0, n - 1) as usize)
            }
        }
    }

    /// Returns the boundaries with each scalar's name replaced by its value; one that `value` does not know
    /// becomes NaN.
    pub fn with_scalars(mut self, value: impl Fn(ScalarName) -> Option<f64>) -> Self {
        for side in self.0.as_flattened_mut() {
            if let Boundary::Scalar(name) = *side {
                *side = Boundary::Constant(value(name).unwrap_or(f64::NAN));
            }
        }
        self
    }

    /// Returns the names of the scalars whose values ghost cells hold.
    pub fn scalars(self) -> impl Iterator<Item = ScalarName> {
        self.0.into_iter().flatten().filter_map(|side| match side {
            Boundary::Scalar(name) => Some(name),
            _ => None,
        })
    }

    /// Returns where the value at `index` along `axis` is found, however far outside `0..extent` it lies, and
    /// whether its sign is the opposite: the rule of a side is applied until the index is inside. A single value whose
    /// sides both mirror it shows itself, by the rule of the side that is asked. Scalars' values must have been put in
    /// ([`Boundaries::with_scalars`]).
    pub fn shown(&self, axis: usize, index: isize, extent: usize) -> (Source, bool) {
        let n = extent as isize;
        let (mut at, mut negated) = (index, false);
        while !(0..n).contains(&at) {
            let kind = self.0[axis][usize::from(at >= n)];
            match kind {
                Boundary::Constant(value) => {
                    return (Source::Value(if negated { -value } else { value }), false);
                }
                Boundary::Open => return (Source::Value(0.0), false),
                Boundary::Scalar(_) => return (Source::Value(f64::NAN), false),
                Boundary::Periodic => at = at.rem_euclid(n),
                // The rules would lead from one side to the other and back for ever.
                _ if n == 1 && self.0[axis].iter().all(|side| side.mirrors_a_value()) => {
                    (at, negated) = (0, negated ^ kind.is_negated());
                }
                _ => (at, negated) = (kind.shown(at, n), negated ^ kind.is_negated()),
            }
        }
        (Source::Cell(at as usize), negated)
    }

    /// Returns whether an axis of so many cells has all that taps within `radius` show beyond its sides, so that the rule of a
    /// side is applied once.
    pub fn is_wide(&self, axis: usize, extent: usize, radius: usize) -> bool {
        self.0[axis].iter().all(|side| extent >= side.least_extent(radius))
    }

    /// Returns whether every schedule can run all of them.
    pub fn is_plain(&self) -> bool {
        self.0.as_flattened().iter().all(|boundary| boundary.is_plain())
    }

    /// Returns the boundary of a side of the axis whose ghost cells show cells of that side, if there is one.
    pub fn shows_a_side(&self, axis: usize) -> Option<Boundary> {
        self.0[axis].into_iter().find(|side| side.shows_this_side())
    }

    /// Returns the number of outermost cells of an axis that ghost cells within `radius` of a side show at that side; 0 or
    /// `radius`, or one more where the outermost value is the mirror.
    pub fn shown_at_side(&self, axis: usize, radius: usize) -> usize {
        let sides = self.0[axis].iter().filter(|side| side.shows_this_side() && radius > 0);
        sides.map(|side| side.least_extent(radius)).max().unwrap_or(0)
    }

    /// Returns the first of the axes for which `is_meant` holds that has such a side, with its boundary.
    pub fn first_that_shows(&self, is_meant: impl Fn(usize) -> bool) -> Option<(usize, Boundary)> {
        (0..3).filter(|&axis| is_meant(axis)).find_map(|axis| Some((axis, self.shows_a_side(axis)?)))
    }

    /// Returns the indices along `axis` that are computed; the rest of `0..extent` keep their values.
    pub fn computed(&self, axis: usize, extent: usize, radius: usize) -> Range<usize> {
        let width = |side: usize| if self.0[axis][side] == Boundary::Fixed { radius } else { 0 };
        let start = width(0).min(extent);
        start..extent.saturating_sub(width(1)).max(start)
    }

    /// Returns the boundaries in words: once if all axes agree, else per axis and side.
    pub fn describe(&self, dimensions: usize) -> String {
        let axes = &self.0[3 - dimensions..];
        if axes.iter().flatten().all(|b| *b == axes[0][0]) {
            return axes[0][0].to_string();
        }
        let axis = |(number, [low, high]): (usize, &[Boundary; 2])| {
            let name = axis_name(3 - dimensions + number);
            if low == high { format!("{name}={low}") } else { format!("{name}-={low},{name}+={high}") }
        };
        axes.iter().enumerate().map(axis).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_as_written_are_resolved_for_a_program() {
        let text: BoundaryText = "y=periodic,x-=mirror".parse().unwrap();
        let boundaries = text.resolve(Boundary::Constant(2.0), 2).unwrap();
        let default = Boundary::Constant(2.0);
        let expected = [[default; 2], [Boundary::Periodic; 2], [Boundary::Mirror, default]];
        assert_eq!(boundaries, Boundaries(expected));
        let error = text.resolve(Boundary::Fixed, 1).unwrap_err().to_string();
        assert!(error.contains("no axis is named `y`"), "{error}");
        // The default boundary itself may be named like any other.
        let named: BoundaryText = "z=fixed".parse().unwrap();
        assert!(named.resolve(Boundary::Fixed, 2).is_err());
        let all: BoundaryText = "mirror".parse().unwrap();
        assert_eq!(all.resolve(Boundary::Fixed, 1), Ok(Boundaries::all(Boundary::Mirror)));
    }

    #[test]
    fn single_fields_have_boundaries_of_their_own() {
        let text: BoundaryText = "mirror, u:x=-reflect, v:y-=constant=2, v:y+=clamp".parse().unwrap();
        let fields = ["u", "v", "w"].map(str::to_owned);
        let own = text.of_fields(&fields, 2).unwrap();
        assert_eq!(own[0].to_string(), "x-=-reflect,x+=-reflect");
        assert_eq!(own[1].to_string(), "y-=constant=2,y+=clamp");
        assert_eq!(own[2], Sides::default());
        assert_eq!(text.resolve(Boundary::Fixed, 2), Ok(Boundaries::all(Boundary::Mirror)));
        // What is written is read again.
        for sides in &own[..2] {
            assert_eq!(sides.to_string().parse::<BoundaryText>().unwrap().sides(2).as_ref(), Ok(sides));
        }
        for (bad, says) in [
            ("q:mirror", "no field is named `q`"),
            ("u:z=mirror", "no axis is named `z`"),
            ("u:mirror,u:x=clamp", "names no axis"),
            ("u:x=clamp,u:mirror", "`mirror` names no axis"),
            ("u:x=clamp,u:x-=mirror", "the low side of axis x has two"),
        ] {
            let error = bad.parse::<BoundaryText>().and_then(|text| text.of_fields(&fields, 2)).unwrap_err();
            assert!(error.to_string().contains(says), "{bad}: {error}");
        }
        assert!(Boundaries::parse("u:mirror", Boundary::Fixed).is_err());
    }

    /// However far out: the rule of the side is applied again.
    #[test]
    fn values_far_beyond_the_domain_are_folded_back() {
        let shown = |text: &str, i| {
            let (source, negated) = Boundaries::parse(text, Boundary::Fixed).unwrap().shown(2, i, 3);
            let Source::Cell(at) = source else { panic!("{source:?}") };
            if negated { -(at as isize) - 1 } else { at as isize }
        };
        let row = |text: &str| (-4..7).map(|i| shown(text, i)).collect::<Vec<_>>();
        assert_eq!(row("periodic"), [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(row("mirror"), [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0]);
        assert_eq!(row("reflect"), [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]);
        assert_eq!(row("-mirror"), [2, -3, -2, -1, 0, 1, 2, -3, -2, -1, 0]);
        assert_eq!(row("-reflect"), [0, 1, -3, -2, 0, 1, 2, -2, -1, 1, 2]);
        assert_eq!(row("clamp"), [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]);
        let mixed = Boundaries::parse("x-=-mirror,x+=constant=5", Boundary::Fixed).unwrap();
        assert_eq!(mixed.shown(2, 4, 3), (Source::Value(5.0), false));
        assert_eq!(mixed.shown(2, -5, 3), (Source::Value(-5.0), false));
    }

    #[test]
    fn boundaries_map_ghosts() {
        let source = |b: Boundary, i| Boundaries::all(b).source(2, i, 5);
        assert_eq!(source(Boundary::Periodic, -2), Source::Cell(3));
        assert_eq!(source(Boundary::Periodic, 6), Source::Cell(1));
        for (kind, shown) in
            [(Boundary::Mirror, 3), (Boundary::Reflect, 4), (Boundary::Clamp, 0), (Boundary::Fixed, 0)]
        {
            let all = Boundaries::all(kind);
            assert_eq!([all.shown_at_side(1, 3), all.shown_at_side(1, 0)], [shown, 0], "{kind}");
        }
        assert_eq!(source(Boundary::Mirror, -1), Source::Cell(0));
        assert_eq!(source(Boundary::Mirror, -5), Source::Cell(4));
        assert_eq!(source(Boundary::Mirror, 5), Source::Cell(4));
        assert_eq!(source(Boundary::Mirror, 9), Source::Cell(0));
        for ghost in [-3, -2, -1, 5, 6, 7] {
            let edge = if ghost < 0 { 0 } else { 4 };
            assert_eq!(source(Boundary::Clamp, ghost), Source::Cell(edge));
        }
        assert_eq!(source(Boundary::Constant(2.5), 5), Source::Value(2.5));
        assert_eq!(source(Boundary::Open, -3), Source::Value(0.0));
        assert_eq!(Boundaries::all(Boundary::Open).shown(2, 11, 5), (Source::Value(0.0), false));
        assert!("open".parse::<Boundary>().is_err(), "no user's boundary");
    }

    #[test]
    fn per_axis_and_side_syntax() {
        let b = Boundaries::parse("y=periodic,x-=mirror,x+=constant=1.5", Boundary::Fixed).unwrap();
        assert_eq!(b.0[1], [Boundary::Periodic; 2]);
        assert_eq!(b.0[2], [Boundary::Mirror, Boundary::Constant(1.5)]);
        assert_eq!(b.0[0], [Boundary::Fixed; 2]);
        assert_eq!(b.describe(2), "y=periodic,x-=mirror,x+=constant=1.5");
        assert_eq!(
            Boundaries::parse("constant=2", Boundary::Fixed).unwrap(),
            Boundaries::all(Boundary::Constant(2.0))
        );
        for name in Boundary::NAMES {
            assert_eq!(Boundaries::parse(name, Boundary::Fixed).unwrap().describe(1), *name);
        }
        for bad in ["round", "y=round", "periodic,x=fixed", "constant=nan", "q=fixed"] {
            assert!(Boundaries::parse(bad, Boundary::Fixed).is_err(), "{bad}");
        }
        for twice in
            ["x=fixed,x=mirror", "x=fixed,x=fixed", "x-=fixed,x=mirror", "y=mirror,x+=fixed,x+=constant=1"]
        {
            let error = Boundaries::parse(twice, Boundary::Fixed).unwrap_err().to_string();
            assert!(error.contains("axis x has two"), "{twice}: {error}");
        }
    }

    #[test]
    fn constants_are_numbers_of_the_type() {
        let shape = Shape::new(&[9, 9]).unwrap();
        let check = |value, dtype| Boundaries::all(Boundary::Constant(value)).check(&shape, [0, 1, 1], dtype);
        assert!(check(3e38, DType::F32).is_ok() && check(1e39, DType::F64).is_ok());
        assert!(
            check(1e39, DType::F32)
                .unwrap_err()
                .to_string()
                .contains("the constant 1e39 is not a finite number in f32")
        );
        assert!(check(f64::INFINITY, DType::F64).is_err());
    }

    #[test]
    fn thin_domains_and_half_periodic_axes_are_refused() {
        let shape = Shape::new(&[1, 9]).unwrap();
        let check = |boundaries: Boundaries, radius| boundaries.check(&shape, radius, DType::F64);
        assert!(check(Boundaries::all(Boundary::Mirror), [0, 2, 2]).is_err());
        assert!(check(Boundaries::all(Boundary::Clamp), [0, 2, 2]).is_ok());
        assert!(check(Boundaries::all(Boundary::Constant(0.0)), [0, 2, 2]).is_ok());
        assert!(check(Boundaries::parse("x-=periodic", Boundary::Fixed).unwrap(), [0, 0, 1]).is_err());
    }

    #[test]
    fn a_fixed_domain_without_interior_computes_nothing() {
        let b = Boundaries::all(Boundary::Fixed);
        assert!(b.computed(2, 3, 2).is_empty());
        assert_eq!(b.computed(2, 5, 2), 2..3);
        assert!(b.computed(2, 1, 2).is_empty());
    }
}
