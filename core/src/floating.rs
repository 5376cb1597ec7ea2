//! The floating-point mode of the threads that compute.
//!
//! A processor has a mode, for each thread: the direction of rounding, and whether numbers below the smallest normal one
//! count as 0. A library that was built with `-ffast-math` changes it in the thread that loads the library, and
//! threads begin with the mode of the thread that starts them. So every entry into Abide's computing, and every
//! piece of work that other threads take, is inside [`standard`].

use std::hint::black_box;
use std::marker::PhantomData;

/// Calls `work` in the standard mode: to nearest, ties to even, with subnormal numbers, and without traps. The caller's mode
/// is back when `work` returns or unwinds.
///
/// It takes some nanoseconds.
///
/// ```
/// let third = abide_core::floating::standard(|| 1.0 / 3.0);
/// assert_eq!(third, 0.3333333333333333);
/// ```
#[inline]
pub fn standard<R>(work: impl FnOnce() -> R) -> R {
    let _mode = Mode::standard();
    outlined(work)
}

/// Calls `work`, which is not Abide's, and brings back the mode that the thread had before: `work` may load a library that
/// changes it.
pub fn kept<R>(work: impl FnOnce() -> R) -> R {
    let _mode = Mode { before: processor::read(), of_thread: PhantomData };
    outlined(work)
}

/// Returns the result of `work`, which no compiler may move out of here: it assumes the standard mode everywhere, and
/// knows nothing of an order between arithmetic and changes of the mode.
#[inline(never)]
fn outlined<R>(work: impl FnOnce() -> R) -> R {
    black_box(black_box(work)())
}

/// A changed mode of the thread; dropping it brings the old one back.
struct Mode {
    before: processor::Word,
    /// The mode is a thread's own.
    of_thread: PhantomData<*const ()>,
}

impl Mode {
    fn standard() -> Mode {
        let before = processor::read();
        if before & processor::CONTROL != processor::STANDARD {
            processor::write(before & !processor::CONTROL | processor::STANDARD);
        }
        Mode { before, of_thread: PhantomData }
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // What was computed meanwhile may have raised flags, which the caller's code has not.
        if processor::read() != self.before {
            processor::write(self.before);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::asm;

    pub type Word = u32;

    /// The bits of MXCSR that are the mode; the others are flags of what has happened.
    pub const CONTROL: Word = 0xffc0;
    /// All exceptions masked; to nearest; neither flush-to-zero nor denormals-are-zero.
    pub const STANDARD: Word = 0x1f80;

    #[inline]
    pub fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: the instruction stores MXCSR in the four bytes of `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: the instruction loads MXCSR from the four bytes of `word`, none of whose reserved bits is set: all come
        // from `read`. The compiler assumes the standard mode, and `outlined` keeps arithmetic away from here.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    use std::arch::asm;

    pub type Word = u64;

    /// The bits of FPCR that are the mode: FIZ, AH, NEP, traps, FZ16, rounding, FZ, DN and AHP.
    pub const CONTROL: Word = 0x07ff_9f07;
    pub const STANDARD: Word = 0;

    #[inline]
    pub fn read() -> Word {
        let word: Word;
        // SAFETY: the instruction reads FPCR.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: the instruction writes FPCR, all of whose bits come from `read` or are 0. The compiler assumes the
        // standard mode, and `outlined` keeps arithmetic away from here.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

/// Other processors' modes are left as they are.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    pub type Word = u32;
    pub const CONTROL: Word = 0;
    pub const STANDARD: Word = 0;

    #[inline]
    pub fn read() -> Word {
        0
    }

    #[inline]
    pub fn write(_: Word) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    /// Flush-to-zero, denormals-are-zero and rounding up.
    const STRANGE: processor::Word = 0x1f80 | 0x8040 | 0x4000;

    fn product(a: f64, b: f64) -> u64 {
        black_box(black_box(a) * black_box(b)).to_bits()
    }

    fn mode() -> processor::Word {
        processor::read() & processor::CONTROL
    }

    #[test]
    fn work_is_in_the_standard_mode_and_the_caller_keeps_its_own() {
        let smallest = f64::from_bits(1);
        kept(|| {
            processor::write(STRANGE);
            assert_eq!((product(smallest, 1.0), mode()), (0, STRANGE));
            assert_eq!(standard(|| (product(smallest, 1.0), mode())), (1, processor::STANDARD));
            assert_eq!((product(smallest, 1.0), mode()), (0, STRANGE), "the caller's mode is back");
            assert!(catch_unwind(|| standard(|| panic!("{}", product(2.0, 2.0)))).is_err());
            assert_eq!(mode(), STRANGE, "also where work unwinds");
            standard(|| {
                kept(|| processor::write(STRANGE));
                assert_eq!(product(smallest, 1.0), 1);
            });
        });
        assert_eq!(mode(), processor::STANDARD);
    }
}
