//! Domains: their extents, their axes and the boundaries at their sides.

mod axes;
mod boundaries;
mod boundary;
mod boundary_text;
mod condition;
mod scalar_name;
mod shape;

pub use self::axes::{Axes, axis_name};
pub use self::boundaries::{Boundaries, Sides, Source};
pub use self::boundary::{Boundary, KindText};
pub use self::boundary_text::BoundaryText;
pub(crate) use self::boundary_text::{Named, is_of, sides_of};
pub use self::condition::{Condition, ConditionText, Given};
pub use self::scalar_name::ScalarName;
pub use self::shape::Shape;
