//! The few machine instructions that formulas need, as bytes: vectors of 512 bits (EVEX), and a loop.

use abide_core::DType;

use crate::rings::LINE_BYTES;

/// A register of the machine that holds a vector, by its number below 32.
pub type Vector = u8;

/// The last operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A register.
    In(Vector),
    /// The vector of this number from the address in `rax` on.
    At(u8),
    /// The vector of this number from the address in `rax` and the bytes in `rsi` on.
    Moving(u8),
    /// The one value at the address in `rax`, in every lane.
    Same,
    /// The vector of this number on the stack.
    Stack(u8),
}

/// What an instruction does to lanes; its numbers in the tables of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    map: u8,
    opcode: [u8; 2],
    /// Whether the prefix `66` goes with `f32` too.
    prefixed: bool,
}

const fn op(map: u8, opcode: u8, prefixed: bool) -> Op {
    Op { map, opcode: [opcode; 2], prefixed }
}

/// Sums, differences and their like: the first operand stands left.
pub const ADD: Op = op(1, 0x58, false);
pub const MUL: Op = op(1, 0x59, false);
pub const SUB: Op = op(1, 0x5c, false);
pub const MIN: Op = op(1, 0x5d, false);
pub const DIV: Op = op(1, 0x5e, false);
pub const MAX: Op = op(1, 0x5f, false);
pub const SQRT: Op = op(1, 0x51, false);
pub const LOAD: Op = op(1, 0x10, false);
pub const STORE: Op = op(1, 0x11, false);
/// The second operand, without the bits that are set in the first.
pub const AND_NOT: Op = op(1, 0x55, false);
pub const XOR: Op = op(1, 0x57, false);
/// Values of f64 become values of f32, or where the type is f32, the other way.
const CONVERT: Op = op(1, 0x5a, false);
/// Integers of 32 bits, whatever the type: sums, bits set in either, and bits of three operands by a table; shifts by a number, whose
/// target stands first.
const ADD_WORDS: Op = op(1, 0xfe, true);
const OR_WORDS: Op = op(1, 0xeb, true);
const BITS_OF_WORDS: Op = op(3, 0x25, true);
const SHIFT_WORDS: Op = op(1, 0x72, true);
/// Values of f32 become values of binary16, the target standing last, and the other way.
const TO_HALF: Op = op(3, 0x1d, true);
const FROM_HALF: Op = op(2, 0x13, true);
const COMPARE: Op = op(1, 0xc2, false);
/// The target becomes the first operand times the second, and the target, rounded once.
pub const FMA_231: Op = op(2, 0xb8, true);
/// The target becomes it times the second operand, and the first, rounded once.
pub const FMA_132: Op = op(2, 0x98, true);
/// The target becomes it times the first operand, and the second, rounded once.
pub const FMA_213: Op = op(2, 0xa8, true);
/// The second operand where the mask is set, else the first.
pub const BLEND: Op = op(2, 0x65, true);
const BROADCAST: Op = Op { map: 2, opcode: [0x18, 0x19], prefixed: true };
const ROUND: Op = Op { map: 3, opcode: [0x08, 0x09], prefixed: true };

/// How values are compared, as the processor numbers it; the last two are each other's opposite, for NaN too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Less = 0x01,
    LessEqual = 0x02,
    GreaterEqual = 0x0d,
    Greater = 0x0e,
    Equal = 0x00,
    NotEqual = 0x04,
    Unordered = 0x03,
}

/// Bytes of a program in the making.
pub struct Assembler {
    pub bytes: Vec<u8>,
    is_wide: bool,
}

impl Assembler {
    /// Returns an assembler without instructions, for values of a type.
    pub fn new(dtype: DType) -> Self {
        Assembler { bytes: Vec::new(), is_wide: dtype == DType::F64 }
    }

    /// Writes an instruction: what precedes its opcode, the opcode, and where its operands are. `mask` is the
    /// number of a mask register, and `zeroes` says whether lanes become zero where it is not set.
    fn encode(&mut self, op: Op, target: u8, first: Vector, second: Place, mask: u8, zeroes: bool) {
        let bit = |number: u8, bit: u8| number >> bit & 1;
        let (x, b) = match second {
            Place::In(register) => (bit(register, 4), bit(register, 3)),
            _ => (0, 0),
        };
        let not = |value: u8| value ^ 1;
        let wide = u8::from(self.is_wide);
        let prefix = u8::from(op.prefixed || self.is_wide);
        let same = u8::from(second == Place::Same && op != BROADCAST);
        self.bytes.extend([
            0x62,
            not(bit(target, 3)) << 7 | not(x) << 6 | not(b) << 5 | not(bit(target, 4)) << 4 | op.map,
            wide << 7 | (!first & 15) << 3 | 1 << 2 | prefix,
            u8::from(zeroes) << 7 | 2 << 5 | same << 4 | not(bit(first, 4)) << 3 | mask,
            op.opcode[usize::from(self.is_wide)],
        ]);
        let low = (target & 7) << 3;
        match second {
            Place::In(register) => self.bytes.push(0xc0 | low | register & 7),
            // One byte counts vectors from the address on.
            Place::At(vector) => self.bytes.extend([0x40 | low, vector]),
            Place::Moving(vector) => self.bytes.extend([0x44 | low, 6 << 3, vector]),
            Place::Same => self.bytes.extend([0x40 | low, 0]),
            Place::Stack(vector) => self.bytes.extend([0x44 | low, 4 << 3 | 4, vector]),
        }
    }

    /// Writes an instruction of a target and two operands.
    pub fn two(&mut self, op: Op, target: Vector, first: Vector, second: Place) {
        self.encode(op, target, first, second, 0, false);
    }

    /// Writes an instruction of a target and one operand.
    pub fn one(&mut self, op: Op, target: Vector, from: Place) {
        self.encode(op, target, 0, from, 0, false);
    }

    /// Copies values to a register.
    pub fn load(&mut self, target: Vector, from: Place) {
        self.one(if from == Place::Same { BROADCAST } else { LOAD }, target, from);
    }

    /// Sets a mask where two values are in a relation.
    pub fn compare(&mut self, mask: u8, first: Vector, second: Place, relation: Relation) {
        self.two(COMPARE, mask, first, second);
        self.bytes.push(relation as u8);
    }

    /// Chooses between two values by a mask.
    pub fn blend(&mut self, target: Vector, mask: u8, no: Vector, yes: Place) {
        self.encode(BLEND, target, no, yes, mask, false);
    }

    /// Copies a register where a mask is set; the rest becomes zero.
    pub fn copy_or_zero(&mut self, target: Vector, mask: u8, from: Vector) {
        self.encode(LOAD, target, 0, Place::In(from), mask, true);
    }

    /// Rounds down to whole numbers.
    pub fn floor(&mut self, target: Vector, from: Place) {
        self.one(ROUND, target, from);
        self.bytes.push(0x09);
    }

    /// Rounds values to f32, in place.
    pub fn round_f32(&mut self, value: Vector) {
        self.in_f32(value, |_| ());
    }

    /// Rounds values to f32 and then to binary16, in place.
    pub fn round_f16(&mut self, value: Vector) {
        self.in_f32(value, |all| {
            all.one(TO_HALF, value, Place::In(value));
            // To nearest, ties to even.
            all.bytes.push(0);
            all.one(FROM_HALF, value, Place::In(value));
        });
    }

    /// Rounds values to f32 and then to bfloat16, in place, by two vectors of scratch.
    pub fn round_bf16(&mut self, value: Vector, mask: u8, [sum, bits]: [Vector; 2]) {
        self.in_f32(value, |all| {
            all.compare(mask, value, Place::In(value), Relation::Unordered);
            // Half of what is cut off, less one, and the last bit that is kept: ties go to even.
            all.shift_left(sum, value, 15);
            all.shift_right(sum, sum, 31);
            all.ones(bits);
            all.shift_right(bits, bits, 17);
            all.two(ADD_WORDS, sum, sum, Place::In(bits));
            all.two(ADD_WORDS, sum, sum, Place::In(value));
            // What is no number stays none: its first bit is set, and nothing is added.
            all.ones(bits);
            all.shift_left(bits, bits, 31);
            all.shift_right(bits, bits, 9);
            all.encode(OR_WORDS, sum, value, Place::In(bits), mask, false);
            all.shift_right(value, sum, 16);
            all.shift_left(value, value, 16);
        });
    }

    /// Writes what is done with values of f32 in a register, and what makes them so before and of the type after.
    fn in_f32(&mut self, value: Vector, write: impl FnOnce(&mut Self)) {
        let is_wide = self.is_wide;
        if is_wide {
            self.one(CONVERT, value, Place::In(value));
        }
        self.is_wide = false;
        write(self);
        if is_wide {
            self.one(CONVERT, value, Place::In(value));
        }
        self.is_wide = is_wide;
    }

    /// Sets all bits of a register.
    fn ones(&mut self, target: Vector) {
        self.two(BITS_OF_WORDS, target, target, Place::In(target));
        self.bytes.push(0xff);
    }

    fn shift_right(&mut self, target: Vector, from: Vector, bits: u8) {
        self.two(SHIFT_WORDS, 2, target, Place::In(from));
        self.bytes.push(bits);
    }

    fn shift_left(&mut self, target: Vector, from: Vector, bits: u8) {
        self.two(SHIFT_WORDS, 6, target, Place::In(from));
        self.bytes.push(bits);
    }

    /// Loads the address at `rdi` and a number of bytes into `rax`.
    pub fn address(&mut self, offset: u32) {
        self.bytes.extend([0x48, 0x8b, 0x87]);
        self.bytes.extend(offset.to_le_bytes());
    }

    /// Copies the fourth argument, `rcx`, or this many bytes beyond it, into `rax`.
    pub fn constants(&mut self, offset: u8) {
        self.bytes.extend([0x48, 0x8d, 0x41, offset]);
    }

    /// Keeps the function's arguments and makes room for vectors on the stack, whose end lies between two multiples of 16
    /// bytes before.
    pub fn enter(&mut self, vectors: u8) {
        // push rdi; push rsi; push rdx; push rcx; sub rsp, bytes.
        self.bytes.extend([0x57, 0x56, 0x52, 0x51, 0x48, 0x81, 0xec]);
        self.bytes.extend(room(vectors).to_le_bytes());
    }

    /// Calls a function of the address of the first vector on the stack, that of the vector of the number `second`,
    /// and a number.
    pub fn call(&mut self, function: usize, second: u8, number: u32) {
        // mov rdi, rsp; lea rsi, [rsp + bytes]; mov edx, number; mov rax, function; call rax.
        self.bytes.extend([0x48, 0x89, 0xe7, 0x48, 0x8d, 0xb4, 0x24]);
        self.bytes.extend((u32::from(second) * LINE_BYTES as u32).to_le_bytes());
        self.bytes.push(0xba);
        self.bytes.extend(number.to_le_bytes());
        self.bytes.extend([0x48, 0xb8]);
        self.bytes.extend((function as u64).to_le_bytes());
        self.bytes.extend([0xff, 0xd0]);
    }

    /// Undoes [`Assembler::enter`].
    pub fn leave(&mut self, vectors: u8) {
        // add rsp, bytes; pop rcx; pop rdx; pop rsi; pop rdi.
        self.bytes.extend([0x48, 0x81, 0xc4]);
        self.bytes.extend(room(vectors).to_le_bytes());
        self.bytes.extend([0x59, 0x5a, 0x5e, 0x5f]);
    }

    /// Ends a loop that begins at the byte `top`: adds `bytes` to `rsi`, but goes no farther than `rdx`, and
    /// returns once the loop was carried out there.
    pub fn repeat(&mut self, top: usize, bytes: u32) {
        // cmp rsi, rdx; jae behind the jump.
        self.bytes.extend([0x48, 0x39, 0xd6, 0x73, 19]);
        // add rsi, bytes; cmp rsi, rdx; cmova rsi, rdx; jmp top.
        self.bytes.extend([0x48, 0x81, 0xc6]);
        self.bytes.extend(bytes.to_le_bytes());
        self.bytes.extend([0x48, 0x39, 0xd6, 0x48, 0x0f, 0x47, 0xf2, 0xe9]);
        let back = top as i64 - (self.bytes.len() as i64 + 4);
        self.bytes.extend((back as i32).to_le_bytes());
        // vzeroupper; ret.
        self.bytes.extend([0xc5, 0xf8, 0x77, 0xc3]);
    }
}

/// Returns the bytes of vectors on the stack, with which its end is a multiple of 16: an odd number of words lie there
/// before, the return address and four arguments.
fn room(vectors: u8) -> u32 {
    u32::from(vectors) * LINE_BYTES as u32 + 8
}
