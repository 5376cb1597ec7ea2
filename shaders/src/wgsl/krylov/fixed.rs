//! The buffers of the phases other than the method's vectors. One table gives their bindings, their
//! declarations and the host's bind groups.

/// The access that kernels have to a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Uniform,
    Read,
    Write,
}

macro_rules! fixed {
    ($($row:ident $name:literal $access:ident $kind:literal $is:literal,)*) => {
        /// A buffer other than the method's vectors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fixed {
            $(#[doc = $is] $row),*
        }

        impl Fixed {
            /// All buffers, in the order of their binding numbers.
            pub(super) const ALL: &'static [Fixed] = &[$(Fixed::$row),*];

            /// Returns the buffer's name in the kernels, the access that kernels have to it, and its type
            /// there.
            fn seen(self) -> (&'static str, Access, &'static str) {
                match self { $(Fixed::$row => ($name, Access::$access, $kind)),* }
            }
        }
    };
}

fixed! {
    Task "task" Uniform "Task" "What does not change in a solve.",
    Call "call" Uniform "Call" "What differs from phase to phase.",
    State "state" Read "State" "The state, to read.",
    StopTest "stop_test" Write "State" "The state, to change.",
    Partials "partials" Write "array<real>" "Shares of sums.",
    History "history" Write "array<real>" "The last entries of the history.",
    Factors "factors" Read "array<real>" "Chebyshev iteration's factors.",
    Offsets "offsets" Read "array<u32>" "Where rows begin, and the list of long ones.",
    Columns "columns" Read "array<u32>" "The column of each entry.",
    Values "values" Read "array<real>" "The values.",
    Inverses "inverses" Read "array<real>" "The inverse blocks of block-Jacobi.",
    RightHandSide "b" Read "array<real>" "The right-hand side.",
    Basis "basis" Write "array<real>" "The vectors of GMRES's basis, one after the other.",
    Triangle "triangle" Write "array<real>" "GMRES's least-squares problem, to change.",
    Coefficients "coefficients" Read "array<real>" "The same, to read.",
}

impl Fixed {
    /// Returns the number of the buffer's binding.
    pub fn binding(self) -> u32 {
        self as u32
    }

    /// Checks whether the buffer is a uniform buffer.
    pub fn is_uniform(self) -> bool {
        self.seen().1 == Access::Uniform
    }

    /// Checks whether kernels write to the buffer.
    pub fn is_written(self) -> bool {
        self.seen().1 == Access::Write
    }

    pub(super) fn declaration(self) -> String {
        let (name, access, kind) = self.seen();
        let space = match access {
            Access::Uniform => "uniform",
            Access::Read => "storage, read",
            Access::Write => "storage, read_write",
        };
        format!("@group(0) @binding({}) var<{space}> {name}: {kind};", self.binding())
    }
}
