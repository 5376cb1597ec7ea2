//! Random numbers as functions: what a cell draws in a step follows from its place, the step and a seed alone, so that each
//! backend, schedule and number of devices has the same bits.
//!
//! The function is Philox 4×32 with ten rounds (J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11). Its
//! counter is the cell's three indices and the step, its key the seed and the number of the stream.

use super::{Expr, Graph, Node};
use crate::real::{DType, Real};

/// The steps after which the counter of steps begins again at 0 and that of its turns goes on: all of them are whole numbers in
/// both types.
pub const STEPS_OF_TURN: f64 = 16_777_216.0;

/// A random number that a cell draws in a step, uniform in [0, 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Draw {
    /// The stream: those of two streams are independent.
    pub stream: u16,
    /// Which of the stream's two numbers of the cell and step it is: 0 or 1.
    pub part: u8,
}

impl Draw {
    /// The operands: the cell's indices, slowest axis first, the seed, the step in its turn, and the turn. All are whole
    /// numbers, of 31 bits at most.
    pub const OPERANDS: usize = 6;

    /// The places in an arithmetic pipe that a number takes, in f32 and f64: products of whole numbers, as long in both. By the rates
    /// of noisy heat on an H200.
    pub const PLACES: [f64; 2] = [72.0, 36.0];

    /// Returns the number: of 24 random bits in f32, of 53 in f64.
    #[inline(always)]
    pub fn value<T: Real>(self, operands: [T; Draw::OPERANDS]) -> T {
        let [z, y, x, seed, step, turn] = operands.map(word);
        let words = philox([x, y, z, step], [seed, u32::from(self.stream) | turn << 16]);
        match T::DTYPE {
            DType::F32 => T::from_f64(f64::from(words[usize::from(self.part & 1)] >> 8) / STEPS_OF_TURN),
            DType::F64 => {
                let [high, low] =
                    [words[usize::from(2 * (self.part & 1))], words[usize::from(2 * (self.part & 1) + 1)]];
                let bits = u64::from(high >> 5) << 26 | u64::from(low >> 6);
                T::from_f64(bits as f64 / (1_u64 << 53) as f64)
            }
        }
    }
}

impl Graph {
    /// Returns a random number.
    pub fn draw<'g>(&'g self, draw: Draw, operands: [Expr<'g>; Draw::OPERANDS]) -> Expr<'g> {
        self.add(Node::Draw(draw, operands.map(|operand| operand.id())))
    }
}

/// Returns a whole number as a word.
#[inline(always)]
fn word<T: Real>(value: T) -> u32 {
    value.to_f64() as i32 as u32
}

/// Returns the four words of a counter and a key.
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    let ([mut a, mut b, mut c, mut d], [mut first, mut second]) = (counter, key);
    for _ in 0..10 {
        let [left, right] =
            [(MULTIPLIERS[0], a), (MULTIPLIERS[1], c)].map(|(by, word)| u64::from(by) * u64::from(word));
        (a, b, c, d) =
            ((right >> 32) as u32 ^ b ^ first, right as u32, (left >> 32) as u32 ^ d ^ second, left as u32);
        first = first.wrapping_add(WEYL[0]);
        second = second.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of Random123, the authors' library, for philox4x32 of ten rounds.
    #[test]
    fn the_words_are_those_of_random123() {
        let ones = u32::MAX;
        let known = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, words) in known {
            assert_eq!(philox(counter, key), words);
        }
    }

    #[test]
    fn numbers_are_of_the_words_and_below_one() {
        let draw = |part: u8| Draw { stream: 3, part };
        let words = philox([7, 5, 2, 11], [42, 3 | 1 << 16]);
        let single = draw(1).value([2.0_f32, 5.0, 7.0, 42.0, 11.0, 1.0]);
        assert_eq!(f64::from(single) * 16_777_216.0, f64::from(words[1] >> 8));
        let double = draw(0).value([2.0_f64, 5.0, 7.0, 42.0, 11.0, 1.0]);
        assert_eq!(
            double * 2.0_f64.powi(53),
            f64::from(words[0] >> 5) * 67_108_864.0 + f64::from(words[1] >> 6)
        );
        let all = (0..100_000).map(|x| draw(0).value([0.0_f32, 0.0, x as f32, 0.0, 0.0, 0.0]));
        let (least, most) =
            all.fold((1.0_f32, 0.0_f32), |(low, high), value| (low.min(value), high.max(value)));
        assert!((0.0..1e-4).contains(&least) && (0.9999..1.0).contains(&most), "{least} {most}");
    }
}
