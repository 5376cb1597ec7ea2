//! Instructions on lanes: one loop over the lanes of a group each, which becomes a few vector instructions.
//!
//! Everything is inlined into the function that carries out a bytecode, which is compiled once for each
//! instruction set, so that a fused multiply-add is one instruction wherever the machine has it.

use abide_core::Real;
use abide_core::expr::{Binary, Draw, Unary, binary, unary};
use abide_core::functions::Function;

use crate::bytecode::{Opcode, with_codes};
use crate::functions::{draw, replace};
use crate::rings::LINE_BYTES;

/// The most vectors of a group of cells, and those of the groups at the end of a chunk.
pub const MOST_VECTORS: usize = 8;
/// See [`MOST_VECTORS`].
pub const FEW_VECTORS: usize = 2;

/// Returns the most cells of a group.
pub const fn group<T>() -> usize {
    MOST_VECTORS * LINE_BYTES / size_of::<T>()
}

/// Returns the fewest cells of a group.
pub const fn least<T>() -> usize {
    FEW_VECTORS * LINE_BYTES / size_of::<T>()
}

/// A vector of values of either type. A vector type, unlike an array, stays in a register wherever the
/// machine has registers of that width.
#[cfg(target_arch = "x86_64")]
type Bits = std::arch::x86_64::__m512d;
#[cfg(not(target_arch = "x86_64"))]
type Bits = [f64; LINE_BYTES / 8];

/// The values of a group of `G` vectors of cells.
pub type Accumulator<const G: usize> = [Bits; G];

#[inline(always)]
fn pack<T: Real, const V: usize>(values: [T; V]) -> Bits {
    assert!(size_of::<[T; V]>() == size_of::<Bits>());
    // SAFETY: both are as large, and any bits are values of both.
    unsafe { std::mem::transmute_copy(&values) }
}

#[inline(always)]
fn unpack<T: Real, const V: usize>(bits: Bits) -> [T; V] {
    assert!(size_of::<[T; V]>() == size_of::<Bits>());
    // SAFETY: as above.
    unsafe { std::mem::transmute_copy(&bits) }
}

/// Returns an accumulator of zeros.
#[inline(always)]
pub fn zero<T: Real, const V: usize, const G: usize>() -> Accumulator<G> {
    [pack([T::ZERO; V]); G]
}

/// Applies `f` to each lane of the accumulator and of operands.
///
/// # Safety
///
/// Each operand has values for a group of cells, which nobody writes meanwhile.
#[inline(always)]
unsafe fn each<T: Real, const V: usize, const G: usize, const N: usize>(
    mut accumulator: Accumulator<G>,
    from: [*const T; N],
    f: impl Fn(T, [T; N]) -> T,
) -> Accumulator<G> {
    // Loops rather than functions of arrays, which are not always inlined.
    for k in 0..G {
        let held: [T; V] = unpack(accumulator[k]);
        let mut operands = [[T::ZERO; V]; N];
        for n in 0..N {
            // SAFETY: the caller promises it.
            operands[n] = unsafe { *from[n].add(k * V).cast::<[T; V]>() };
        }
        let mut values = [T::ZERO; V];
        for i in 0..V {
            let mut of_lane = [T::ZERO; N];
            for n in 0..N {
                of_lane[n] = operands[n][i];
            }
            values[i] = f(held[i], of_lane);
        }
        accumulator[k] = pack(values);
    }
    accumulator
}

/// Carries out an instruction on a group of cells; returns the new accumulator.
///
/// # Safety
///
/// The operands that the code uses have values for a group of cells, or places if they are stored to, which
/// nobody else uses meanwhile.
#[inline(always)]
pub unsafe fn carry_out<T: Real, const V: usize, const G: usize>(
    does: Opcode,
    accumulator: Accumulator<G>,
    a: *mut T,
    b: *mut T,
) -> Accumulator<G> {
    let (none, one, two) = ([], [a.cast_const()], [a.cast_const(), b.cast_const()]);
    macro_rules! all {
        (
            [$($one:ident)*] [$($one_called:ident)*]
            [$($two:ident $turned:ident,)*] [$($two_called:ident $turned_called:ident,)*]
            [$($both:ident $first:ident $second:ident,)*]
        ) => {
            // SAFETY: the caller promises it.
            unsafe {
                match does {
                    Opcode::Load => each::<T, V, G, 1>(accumulator, one, |_, [a]| a),
                    Opcode::Store => {
                        for k in 0..G {
                            *a.add(k * V).cast::<[T; V]>() = unpack(accumulator[k]);
                        }
                        accumulator
                    }
                    Opcode::FmaOnto => each::<T, V, G, 2>(accumulator, two, |held, [a, b]| a.mul_add(b, held)),
                    Opcode::FmaBy => each::<T, V, G, 2>(accumulator, two, |held, [a, b]| held.mul_add(a, b)),
                    Opcode::SelectBy => each::<T, V, G, 2>(accumulator, two, |c, [a, b]| select(c, a, b)),
                    Opcode::SelectYes => each::<T, V, G, 2>(accumulator, two, |held, [c, b]| select(c, held, b)),
                    Opcode::SelectNo => each::<T, V, G, 2>(accumulator, two, |held, [c, b]| select(c, b, held)),
                    $(Opcode::$one => each::<T, V, G, 0>(accumulator, none, |held, []| unary(Unary::$one, held)),)*
                    $(
                        Opcode::$two => {
                            each::<T, V, G, 1>(accumulator, one, |held, [a]| binary(Binary::$two, held, a))
                        }
                        Opcode::$turned => {
                            each::<T, V, G, 1>(accumulator, one, |held, [a]| binary(Binary::$two, a, held))
                        }
                    )*
                    $(
                        Opcode::$both => each::<T, V, G, 2>(accumulator, two, |held, [a, b]| {
                            simple(Opcode::$second, simple(Opcode::$first, held, a), b)
                        }),
                    )*
                    Opcode::Draw $(| Opcode::$one_called)* $(| Opcode::$two_called | Opcode::$turned_called)* => {
                        let mut values = [[T::ZERO; V]; G];
                        let mut accumulator = accumulator;
                        for k in 0..G {
                            values[k] = unpack(accumulator[k]);
                        }
                        call(does, values.as_flattened_mut(), a);
                        for k in 0..G {
                            accumulator[k] = pack(values[k]);
                        }
                        accumulator
                    }
                }
            }
        };
    }
    with_codes!(all)
}

/// Does the operation of one of two codes that are one instruction. The caller names it as a constant, so that no
/// branch remains here.
#[inline(always)]
fn simple<T: Real>(does: Opcode, held: T, a: T) -> T {
    match does {
        Opcode::Load => a,
        Opcode::Add => binary(Binary::Add, held, a),
        Opcode::Sub => binary(Binary::Sub, held, a),
        Opcode::SubTurned => binary(Binary::Sub, a, held),
        Opcode::Mul => binary(Binary::Mul, held, a),
        _ => unreachable!("not one of the codes that are joined"),
    }
}

#[inline(always)]
fn select<T: Real>(condition: T, yes: T, no: T) -> T {
    if condition != T::ZERO { yes } else { no }
}

/// Carries out the instructions that are calls of a function, away from those that keep the accumulator in
/// registers.
///
/// # Safety
///
/// The conditions of [`carry_out`].
#[inline(never)]
unsafe fn call<T: Real>(does: Opcode, values: &mut [T], a: *const T) {
    let len = values.len();
    // SAFETY: the caller promises it.
    let others = || unsafe { std::slice::from_raw_parts(a, len) };
    if does == Opcode::Draw {
        // SAFETY: the caller promises it: the other operands stand there, each as a group of cells, and behind them the number of
        // the stream and part.
        let at = |number: usize| unsafe { *a.add(number * group::<T>()) };
        let which = at(Draw::OPERANDS - 1).to_f64() as u32;
        let own = Draw { stream: (which / 2) as u16, part: (which % 2) as u8 };
        return draw(own, values, std::array::from_fn(at));
    }
    macro_rules! called {
        (
            [$($one:ident)*] [$($one_called:ident)*]
            [$($two:tt)*] [$($two_called:ident $turned_called:ident,)*] [$($both:tt)*]
        ) => {
            match does {
                $(Opcode::$one_called => replace(Function::$one_called, values, &[], false),)*
                $(
                    Opcode::$two_called => replace(Function::$two_called, values, others(), false),
                    Opcode::$turned_called => replace(Function::$two_called, values, others(), true),
                )*
                // The others are carried out in place.
                _ => {}
            }
        };
    }
    with_codes!(called);
}
