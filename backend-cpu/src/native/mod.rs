//! Instructions of a bytecode as instructions of the machine: wherever it has vectors of 512 bits, a bytecode becomes a
//! function of its own.
//!
//! The loops of `lanes` choose what to do for every instruction and few vectors, and keep slots in memory. Here
//! all is chosen once, and as many slots as there are registers for stay in them. Each code becomes the
//! instructions that the compiler makes of its definition in `lanes`, so the bits are the same. Elementary functions
//! are called, on a group of cells.

mod assembler;
mod pages;

use std::sync::{Arc, OnceLock};

use abide_core::Real;
use abide_core::functions::Function;

use self::assembler::{self as machine, Assembler, Op, Place, Relation, Vector};
use self::pages::Pages;
use crate::bytecode::{Code, Instruction, Opcode};
use crate::functions::replace;
use crate::lanes::FEW_VECTORS;
use crate::rings::LINE_BYTES;

/// Vectors of a group of cells.
const GROUP: u8 = FEW_VECTORS as u8;
/// The first registers of the accumulator, of scratch and of slots, each a group of registers.
const ACCUMULATOR: Vector = 0;
const SCRATCH: Vector = GROUP;
const SLOTS: Vector = 2 * GROUP;
/// Registers that hold the same value in each lane, throughout.
const SIGN: Vector = 29;
const ONE: Vector = 30;
const ZERO: Vector = 31;
/// The slots that lie in registers.
const HELD: usize = ((SIGN - SLOTS) / GROUP) as usize;

/// A bytecode's instructions, ready for the processor.
#[derive(Debug, Clone)]
pub struct Native(Arc<Pages>);

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Native {}

/// Where an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// In registers from this one on.
    Held(Vector),
    /// In memory, each group of cells in the same place; found by its number.
    Slot(usize),
    /// One value in memory.
    Scalar(usize),
    /// In memory, each cell in a place of its own.
    Moving(usize),
}

/// Returns whether the machine has the vectors.
fn has_vectors() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

/// Returns whether the system refuses memory for instructions that the machine has.
pub fn is_refused() -> bool {
    static IS_REFUSED: OnceLock<bool> = OnceLock::new();
    *IS_REFUSED.get_or_init(|| has_vectors() && Pages::new(&[]).is_none())
}

impl Native {
    /// Returns the machine's instructions for a code, whose operands are so many scalars and others; `None`
    /// where the machine or the system has none.
    pub fn new<T: Real>(code: &Code, scalars: usize) -> Option<Native> {
        let bytes = has_vectors().then(|| Translator::<T>::bytes(code, scalars)).flatten()?;
        Some(Native(Arc::new(Pages::new(&bytes)?)))
    }

    /// Carries out the instructions on `len` cells, at least a group of them. `operands` are pairs of words, of
    /// which the first is an operand's address.
    ///
    /// # Safety
    ///
    /// The conditions of `steps::groups`, for the code and the type that this was made for.
    pub unsafe fn run<T: Real>(&self, operands: *const [usize; 2], len: usize) {
        type Function = unsafe extern "sysv64" fn(*const [usize; 2], usize, usize, *const u8);
        let last = (len - usize::from(GROUP) * LINE_BYTES / size_of::<T>()) * size_of::<T>();
        let constants = [T::ONE, -T::ZERO];
        // SAFETY: the pages hold such a function. It reads and writes what the caller promises.
        unsafe {
            let function: Function = std::mem::transmute(self.0.start());
            function(operands, 0, last, constants.as_ptr().cast());
        }
    }
}

/// Replaces a group of values by a function of them, and of as many others where it has two arguments; `number` is twice
/// the function's, and one more where the values are its second arguments.
///
/// # Safety
///
/// There are as many values, and others where the function has two arguments.
unsafe extern "sysv64" fn called<T: Real>(values: *mut T, others: *const T, number: u32) {
    let len = usize::from(GROUP) * LINE_BYTES / size_of::<T>();
    let function = Function::ALL[number as usize / 2];
    // SAFETY: the caller promises it.
    let values = unsafe { std::slice::from_raw_parts_mut(values, len) };
    let others = match function.arguments() {
        1 => &[][..],
        // SAFETY: as above.
        _ => unsafe { std::slice::from_raw_parts(others, len) },
    };
    replace(function, values, others, number % 2 == 1);
}

/// A writer of the machine's instructions.
struct Translator<T> {
    to: Assembler,
    /// The number of slots, and of these and scalars.
    slots: usize,
    same: usize,
    /// The operand whose address `rax` holds.
    address: Option<usize>,
    of: std::marker::PhantomData<T>,
}

impl<T: Real> Translator<T> {
    /// Returns the bytes of a function; `None` if an instruction is not known here.
    fn bytes(code: &Code, scalars: usize) -> Option<Vec<u8>> {
        let (slots, same) = (code.slots, code.slots + scalars);
        let to = Assembler::new(T::DTYPE);
        let mut all = Translator::<T> { to, slots, same, address: None, of: std::marker::PhantomData };
        all.constants();
        let top = all.to.bytes.len();
        for &Instruction { does, a, b } in &code.instructions {
            let (a, b) = (a as usize, b as usize);
            match does.parts() {
                Some([first, second]) => {
                    all.write(first, a, b)?;
                    all.write(second, b, b)?;
                }
                None => all.write(does, a, b)?,
            }
        }
        all.to.repeat(top, u32::from(GROUP) * LINE_BYTES as u32);
        Some(all.to.bytes)
    }

    /// Writes what fills the registers that hold the same value in each lane.
    fn constants(&mut self) {
        for (register, place) in [(ONE, 0), (SIGN, size_of::<T>())] {
            self.to.constants(place as u8);
            self.to.load(register, Place::Same);
        }
        self.to.two(machine::XOR, ZERO, ZERO, Place::In(ZERO));
        self.address = None;
    }

    /// Writes the call of a function of the accumulator and, where it has two arguments, of an operand.
    fn call(&mut self, function: Function, turned: bool, other: usize) {
        // The called function may use every register: what they hold waits on the stack.
        let slots = self.slots.min(HELD) as u8 * GROUP;
        let vectors = 2 * GROUP + slots;
        self.to.enter(vectors);
        self.each(|all, held, v| {
            all.to.one(machine::STORE, held, Place::Stack(v));
            if function.arguments() == 2 {
                let other = all.register(other, v);
                all.to.one(machine::STORE, other, Place::Stack(GROUP + v));
            }
        });
        (0..slots).for_each(|v| self.to.one(machine::STORE, SLOTS + v, Place::Stack(2 * GROUP + v)));
        let number = Function::ALL.iter().position(|known| *known == function).unwrap_or_default();
        let called: unsafe extern "sysv64" fn(*mut T, *const T, u32) = called;
        self.to.call(called as usize, GROUP, 2 * number as u32 + u32::from(turned));
        self.each(|all, held, v| all.to.load(held, Place::Stack(v)));
        (0..slots).for_each(|v| self.to.load(SLOTS + v, Place::Stack(2 * GROUP + v)));
        self.to.leave(vectors);
        self.constants();
    }

    fn operand(&self, number: usize) -> Operand {
        match number {
            _ if number < self.slots.min(HELD) => Operand::Held(SLOTS + number as u8 * GROUP),
            _ if number < self.slots => Operand::Slot(number),
            _ if number < self.same => Operand::Scalar(number),
            _ => Operand::Moving(number),
        }
    }

    /// Returns the place of a vector of an operand, once its address is in a register.
    fn place(&mut self, number: usize, vector: u8) -> Place {
        let operand = self.operand(number);
        if !matches!(operand, Operand::Held(_)) && self.address != Some(number) {
            self.to.address((number * size_of::<[usize; 2]>()) as u32);
            self.address = Some(number);
        }
        match operand {
            Operand::Held(first) => Place::In(first + vector),
            Operand::Slot(_) => Place::At(vector),
            Operand::Scalar(_) => Place::Same,
            Operand::Moving(_) => Place::Moving(vector),
        }
    }

    /// Returns a register that holds a vector of an operand: its own, or one of scratch.
    fn register(&mut self, number: usize, vector: u8) -> Vector {
        match self.place(number, vector) {
            Place::In(register) => register,
            place => {
                self.to.load(SCRATCH + vector, place);
                SCRATCH + vector
            }
        }
    }

    /// Writes what one code does; `None` if it is not known here.
    fn write(&mut self, does: Opcode, a: usize, b: usize) -> Option<()> {
        use Opcode::*;
        match does {
            Load => self.each(|all, held, v| {
                let from = all.place(a, v);
                all.to.load(held, from);
            }),
            Store => self.each(|all, held, v| match all.place(a, v) {
                Place::In(slot) => all.to.load(slot, Place::In(held)),
                to => all.to.one(machine::STORE, held, to),
            }),
            FmaOnto => self.each(|all, held, v| {
                let left = all.register(a, v);
                let right = all.place(b, v);
                all.to.two(machine::FMA_231, held, left, right);
            }),
            FmaBy => self.each(|all, held, v| match all.place(a, v) {
                Place::In(factor) => {
                    let term = all.place(b, v);
                    all.to.two(machine::FMA_213, held, factor, term);
                }
                _ => {
                    let term = all.register(b, v);
                    let factor = all.place(a, v);
                    all.to.two(machine::FMA_132, held, term, factor);
                }
            }),
            SelectBy => self.each(|all, held, v| {
                all.to.compare(1 + v, ZERO, Place::In(held), Relation::NotEqual);
                let no = all.register(b, v);
                let yes = all.place(a, v);
                all.to.blend(held, 1 + v, no, yes);
            }),
            SelectYes => self.select(a, b, Relation::Equal),
            SelectNo => self.select(a, b, Relation::NotEqual),
            Neg => self.each(|all, held, _| all.to.two(machine::XOR, held, held, Place::In(SIGN))),
            Abs => self.each(|all, held, _| all.to.two(machine::AND_NOT, held, SIGN, Place::In(held))),
            Sqrt => self.each(|all, held, _| all.to.one(machine::SQRT, held, Place::In(held))),
            Floor => self.each(|all, held, _| all.to.floor(held, Place::In(held))),
            RoundF32 => self.each(|all, held, _| all.to.round_f32(held)),
            RoundF16 => self.each(|all, held, _| all.to.round_f16(held)),
            RoundBf16 => self.each(|all, held, v| all.to.round_bf16(held, 1 + v, [SCRATCH, SCRATCH + 1])),
            Widened => {}
            Add | AddTurned => self.left(machine::ADD, a),
            Sub => self.left(machine::SUB, a),
            SubTurned => self.right(machine::SUB, a),
            Mul | MulTurned => self.left(machine::MUL, a),
            Div => self.left(machine::DIV, a),
            DivTurned => self.right(machine::DIV, a),
            Min => self.left(machine::MIN, a),
            MinTurned => self.right(machine::MIN, a),
            Max => self.left(machine::MAX, a),
            MaxTurned => self.right(machine::MAX, a),
            Less | GreaterTurned => self.compare(a, Relation::Less),
            LessEqual | GreaterEqualTurned => self.compare(a, Relation::LessEqual),
            Greater | LessTurned => self.compare(a, Relation::Greater),
            GreaterEqual | LessEqualTurned => self.compare(a, Relation::GreaterEqual),
            Equal | EqualTurned => self.compare(a, Relation::Equal),
            NotEqual | NotEqualTurned => self.compare(a, Relation::NotEqual),
            // Calls. Codes that stand for two were taken apart.
            _ => {
                let (function, turned) = does.called()?;
                self.call(function, turned, a);
            }
        }
        Some(())
    }

    /// Writes for each vector of a group what `write` writes for one, and the accumulator's register.
    fn each(&mut self, mut write: impl FnMut(&mut Self, Vector, u8)) {
        for vector in 0..GROUP {
            write(self, ACCUMULATOR + vector, vector);
        }
    }

    /// Writes an operator whose left operand is the accumulator.
    fn left(&mut self, op: Op, right: usize) {
        self.each(|all, held, v| {
            let right = all.place(right, v);
            all.to.two(op, held, held, right);
        });
    }

    /// Writes an operator whose right operand is the accumulator.
    fn right(&mut self, op: Op, left: usize) {
        self.each(|all, held, v| {
            let left = all.register(left, v);
            all.to.two(op, held, left, Place::In(held));
        });
    }

    /// Writes a comparison: one where the accumulator is in the relation to an operand, and zero elsewhere.
    fn compare(&mut self, right: usize, relation: Relation) {
        self.each(|all, held, v| {
            let right = all.place(right, v);
            all.to.compare(1 + v, held, right, relation);
            all.to.copy_or_zero(held, 1 + v, ONE);
        });
    }

    /// Writes that the accumulator becomes another value where a condition is in a relation to zero.
    fn select(&mut self, condition: usize, other: usize, relation: Relation) {
        self.each(|all, held, v| {
            let condition = all.place(condition, v);
            all.to.compare(1 + v, ZERO, condition, relation);
            let other = all.place(other, v);
            all.to.blend(held, 1 + v, held, other);
        });
    }
}
