//! Domains: their extents, their axes and the boundaries at their sides.

mod axes;
mod boundary;
mod shape;

pub use self::axes::{Axes, axis_name};
pub use self::boundary::{Boundaries, Boundary, BoundaryText, KindText, Source};
pub use self::shape::Shape;
