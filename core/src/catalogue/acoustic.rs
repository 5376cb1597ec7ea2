//! Acoustic waves of eighth order in space.

use super::Entry;
use crate::expr::Expr;
use crate::program::{Field, Scope, Start, Stencil};

/// The weights of the second derivative of eighth order, by the distance in cells (Fornberg, Math. Comp. 51, 1988).
const WEIGHTS: [f64; 5] = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];

/// The distance in cells that the Laplacian reaches.
pub(super) const REACH: usize = WEIGHTS.len() - 1;

/// Returns the Laplacian of eighth order along so many axes.
pub(super) fn laplacian<'g>(u: Field<'_, 'g>, axes: usize) -> Expr<'g> {
    (1..=REACH).fold(axes as f64 * WEIGHTS[0] * u.here(), |sum, distance| {
        let far = distance as i32;
        let beside = |axis: usize| u.along(axis, -far) + u.along(axis, far);
        sum + WEIGHTS[distance] * (1..axes).fold(beside(0), |around, axis| around + beside(axis))
    })
}

/// Acoustic waves, second order in time and eighth in space: `u' = 2u − before + velocity²·lap(u)`, where `before` is the
/// pressure a step before `u`.
///
/// `velocity` is the speed of sound in each cell, in cells a step; no stage sets it. The model is stable while it is nowhere above
/// 0.784/√axes: 0.55 on two axes, 0.45 on three. The start has a slow layer above a fast one.
///
/// ```
/// use abide_core::catalogue::Acoustic;
/// use abide_core::program::Program;
///
/// let program = Program::new(&Acoustic { dimensions: 3 })?;
/// assert_eq!(program.radius(), [4; 3]);
/// # Ok::<(), abide_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acoustic {
    /// The number of axes, 2 or 3.
    pub dimensions: usize,
}

impl Stencil for Acoustic {
    fn name(&self) -> &str {
        "acoustic"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        ["u", "before", "velocity"].map(str::to_owned).to_vec()
    }

    fn start(&self, field: &str) -> Start {
        match field {
            "velocity" => Start::Corner { inside: 0.2, outside: 0.4, parts: [1.0, 0.6, 1.0] },
            _ => Start::Gaussian,
        }
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, before, velocity) = (s.field("u"), s.field("before"), s.field("velocity"));
        let inertia = u.here().mul_add(2.0, -before.here());
        s.set("u", velocity.here().squared().mul_add(laplacian(u, self.dimensions), inertia));
        s.set("before", u.here());
    }
}

/// The model of acoustic waves.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "acoustic",
    about: "acoustic waves of 8th order in space, with a velocity for each cell",
    dimensions: 2..=3,
    make: |dimensions| Ok(Box::new(Acoustic { dimensions })),
}];
