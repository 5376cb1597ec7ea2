//! The arguments of a persistent solver's kernel. One table per struct gives the kernel's text, the host's
//! launch and the emulation the same fields in the same order.

use crate::record::{Field, c_fields};
use crate::text::Text;

/// The C++ type of a number.
macro_rules! c_type {
    (u32) => {
        "unsigned"
    };
    (u64) => {
        "unsigned long long"
    };
    (f64) => {
        "double"
    };
}

/// A struct of numbers, laid out as in C++. Wide numbers come first, so that there are no gaps.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:tt $is:literal,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name {
            $(#[doc = $is] pub $field: $kind,)*
        }

        impl $name {
            const FIELDS: &'static [(&'static str, Field)] =
                &[$((c_type!($kind), (stringify!($field), $is))),*];

            /// Returns the struct's bytes.
            pub fn bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(size_of::<$name>());
                $(bytes.extend(self.$field.to_ne_bytes());)*
                bytes
            }
        }
    };
}

/// A struct of arrays in device memory, whatever stands for each array. A row of the table gives an array's
/// type in C++, and what the array holds.
macro_rules! arrays {
    ($(#[$doc:meta])* $name:ident { $($field:ident $kind:literal $is:literal,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name<T> {
            $(#[doc = $is] pub $field: T,)*
        }

        impl<T> $name<T> {
            const FIELDS: &'static [(&'static str, Field)] = &[$(($kind, (stringify!($field), $is))),*];

            /// Returns the struct in which `of` is applied to each field.
            pub fn map<U>(&self, of: impl Fn(&T) -> U) -> $name<U> {
                $name { $($field: of(&self.$field)),* }
            }

            /// Returns the struct with other values, called for in the kernel's order.
            pub fn filled<U>(&self, mut of: impl FnMut() -> U) -> $name<U> {
                $name { $($field: of()),* }
            }

            /// Returns all fields with their names, in the kernel's order.
            pub fn all(&self) -> Vec<(&'static str, &T)> {
                vec![$((stringify!($field), &self.$field)),*]
            }
        }
    };
}

numbers! {
    /// The rows of a block, and where its part of the matrix begins: the kernels' `Share`.
    KrylovShare {
        entries: u64 "the first of its values and columns; after its rows' come those of spread rows",
        offsets: u64 "the first of its row (SLICED: slice) offsets, which count from `entries`; before \
                      them stand those of its pieces of spread rows",
        reach: u64 "rows from `base` to the last that it reads",
        first: u32 "the first row",
        rows: u32 "how many",
        cached: u32 "of these rows the entries stay in shared memory",
        cached_entries: u32 "their entries",
        base: u32 "columns count from here",
        searches: u32 "MERGED: the first of its merge-path coordinates",
        spread_first: u32 "the first of the spread rows that are its own",
        spread_rows: u32 "how many are",
        read_before: u32 "of its rows, other blocks read only those before this one",
        read_from: u32 "and from this one on",
    }
}

arrays! {
    /// The arrays among the kernels' `Arguments`.
    KrylovArrays {
        shares "const Share*" "of each block",
        offsets "const unsigned*" "of rows or slices",
        searches "const unsigned*" "MERGED: merge-path coordinates",
        nodes "const unsigned*" "GRID: of sums: `[BLOCKS][PASSES][32]`, each a node's joins and slot",
        chains "const unsigned*" "GRID: of sums: the first slot and the length of each window's chain",
        spread "const unsigned*" "the rows that are spread over all blocks, ascending",
        columns "const Column*" "of the entries",
        values "const real*" "of the entries",
        b "const real*" "the right-hand side",
        inverse "const real*" "JACOBI: of the diagonal; BLOCK_JACOBI: of its blocks, row by row",
        factors "const double*" "of a Chebyshev recurrence",
        homes "real*" "the vectors in device memory, `stride` apart",
        exchanged "real*" "GRID: the vector that all blocks read, TURNS of them",
        partials "real*" "GRID: nodes of sums, `[2][REDUCED][SLOTS]`; GMRES: then `[2][PROJECTED][SLOTS]`",
        tagged "unsigned long long*" "SLABS: nodes of a sum that carry their own tag, `[SLOTS]`",
        pieces "real*" "of spread rows: `[TURNS][SPREAD][BLOCKS]`",
        basis "real*" "GMRES: RESTART + 1 vectors, `stride` apart",
        triangle "real*" "GMRES: its least-squares problem",
        given "const unsigned*" "SLABS: for each block and each other slab, the first of the block's rows that the \
                                 slab reads, and how many",
        beyond "const long long*" "SLABS: bytes from `exchanged`, `partials`, `tagged` and `arrived` to each other slab's",
        clocks "unsigned long long*" "SLABS: of the first block: in waits, and of all",
        arrived "unsigned*" "GRID: counts the blocks at barriers; SLABS: then tells whether a wait was given up",
        state "State*" "of the run; BATCHED: of each",
        history "double*" "the residuals' norms",
        thresholds "const double*" "BATCHED: of each system",
    }
}

numbers! {
    /// The numbers among the kernels' `Arguments`.
    KrylovNumbers {
        stride: u64 "values from one vector to the next",
        turn: u64 "GRID: values from one turn of the exchanged vector to the next",
        entries: u64 "BATCHED: values from one system to the next in `values`",
        inverses: u64 "BATCHED: and in `inverse`",
        histories: u64 "BATCHED: and in `history`",
        tags: u64 "SLABS: the last tag of nodes before this launch",
        threshold: f64 "the norm of a residual that is small enough",
        near: f64 "the threshold of a true residual whose recurred one is small enough",
        weight: f64 "of Jacobi's method: its damping",
        centre: f64 "of Chebyshev iteration: its interval's centre",
        half: f64 "and half its width",
        until: u32 "the length of the history at which this launch ends",
        most: u32 "iterations at most",
        stagnation: u32 "iterations without progress at most; ~0 for any number",
        replacement: u32 "pipelined: iterations from one replacement to the next, or 0",
        low: u32 "SLABS: the first of the rows before the slab's that it reads",
        low_rows: u32 "how many",
        high: u32 "SLABS: the first of the rows behind the slab's that it reads",
        high_rows: u32 "how many",
    }
}

/// The kernels' `Arguments`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct KrylovArguments {
    /// The addresses of the arrays.
    pub arrays: KrylovArrays<u64>,
    /// The numbers behind the arrays.
    pub numbers: KrylovNumbers,
}

/// Writes the structs `Share` and `Arguments`.
pub(super) fn declarations(text: &mut Text) {
    let arguments = [KrylovArrays::<u64>::FIELDS, KrylovNumbers::FIELDS].concat();
    for (name, fields) in [("Share", KrylovShare::FIELDS), ("Arguments", &arguments)] {
        text.push(format!("struct {name} {{"));
        fields.iter().for_each(|&(kind, field)| c_fields(text, &[field], kind));
        text.push("};");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field behind a gap would stand elsewhere in the bytes than in the struct.
    #[test]
    fn structs_have_no_gaps() {
        assert_eq!(size_of::<KrylovShare>(), KrylovShare::default().bytes().len());
        let numbers = KrylovNumbers::default();
        assert_eq!(size_of::<KrylovNumbers>(), numbers.bytes().len());
        let arrays = KrylovArrays::<u64>::default();
        assert_eq!(size_of::<KrylovArguments>(), 8 * arrays.all().len() + numbers.bytes().len());
    }
}
