//! The vectors of the methods.

use serde::Serialize;

use crate::solver::options::Preconditioning;

macro_rules! vectors {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// A vector of a method, by the name it has in the kernels.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Vector {
            $($(#[$doc])* $variant),*
        }

        /// The names of all vectors in the kernels.
        pub const VECTOR_NAMES: &[(Vector, &str)] = &[$((Vector::$variant, $name)),*];
    };
}

vectors! {
    /// The iterate.
    X = "X",
    /// The residual.
    R = "R",
    /// The direction.
    P = "P",
    /// `A p`; in the pipelined method `M^-1 s`.
    Q = "Q",
    /// `M^-1 r`; in the pipelined method `A q`.
    Z = "Z",
    /// `A u`; in GMRES the vector that is made orthogonal.
    W = "W",
    /// `A p`, recurred.
    S = "S",
    /// `M^-1 r`, if it is exchanged.
    U = "U",
    /// `A m`, in the pipelined method.
    N = "N",
    /// `M^-1 w`, in the pipelined method.
    M = "M",
    /// BiCGStab's shadow residual.
    Shadow = "SHADOW",
    /// `A M^-1 p`.
    V = "V",
    /// `A M^-1 s`; in MINRES the Lanczos vector before.
    T = "T",
    /// `M^-1 p`.
    PHat = "P_HAT",
    /// `M^-1 s`.
    SHat = "S_HAT",
    /// The inverse diagonal.
    Inverse = "INVERSE",
    /// The polynomial's residual.
    Residue = "RESIDUE",
    /// The polynomial's direction.
    Direction = "DIRECTION",
    /// The polynomial's product.
    Image = "IMAGE",
}

impl Vector {
    /// Returns the vector's name in the kernels.
    pub fn name(self) -> &'static str {
        VECTOR_NAMES.iter().find(|(vector, _)| *vector == self).map_or("", |(_, name)| name)
    }
}

/// Checks whether `M` is diagonal or the identity.
pub fn is_pointwise(applied: Preconditioning) -> bool {
    matches!(applied, Preconditioning::None | Preconditioning::Jacobi)
}
