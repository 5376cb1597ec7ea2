//! Formulas as bytecodes of operations on lanes, which a row's sweep carries out for each chunk of cells.
//!
//! Parts of the formula that are the same along a row (constants, parameters, the slower coordinates) become
//! scalars, computed once per row at most. A formula that is one sum of taps with scalar weights, as every
//! linear stencil is, stays a sum. Any other becomes instructions on an accumulator, which `steps` carries
//! out for a few vectors of cells at a time: most values stay in registers from one instruction to the next.

mod code;
mod emit;
mod inner;
mod select;
mod step;

use std::ops::Range;

use abide_core::Real;
use abide_core::expr::Dag;

pub(crate) use code::with_codes;
pub use code::{Instruction, Opcode};
pub use inner::Inner;

pub use step::{MAX_TERMS, Operand, RowAt, TapAt, Term, Weighted};

use select::Compiler;

#[cfg(all(target_arch = "x86_64", unix))]
use crate::native::Native;

/// A formula ready to be swept over rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytecode {
    /// The nodes that are the same along a row; their values are the scalars.
    pub uniform: Dag,
    /// Whether the scalars differ from row to row.
    pub varies_by_row: bool,
    /// The taps.
    pub taps: Vec<TapAt>,
    /// The rows that the taps lie in; nine for 27 taps in a box of three dimensions.
    pub rows: Vec<RowAt>,
    /// The least and the greatest offset of a tap along each axis, slowest first.
    pub reach: [[isize; 2]; 3],
    /// Offsets of lines along the two slower axes; a line is where rows of several fields lie beside the
    /// computed row.
    pub lines: Vec<[isize; 2]>,
    /// The number of the formula's outputs.
    pub outputs: usize,
    /// The formula's steps.
    pub steps: Steps,
    /// Those of cells that make none of its choices, where it has some, and those of rows that make none.
    pub inner: Vec<Inner>,
}

/// The steps of a bytecode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steps {
    /// One sum, of taps alone; the formula has one output.
    Sum(Weighted),
    /// Instructions.
    Code(Code),
}

/// Instructions, and how many operands of each kind they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The instructions, in order. Their operands count slots first, then scalars, taps and outputs, and last the
    /// coordinate along the row.
    pub instructions: Vec<Instruction<u32>>,
    /// The slots.
    pub slots: usize,
    /// Whether they read the coordinate along the row.
    pub reads_along: bool,
    /// The same for the processor, where [`Bytecode::compile`] found that it has such.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub native: Option<Native>,
}

impl Bytecode {
    /// Returns the number of slots that the steps need.
    pub fn slots(&self) -> usize {
        self.all_steps()
            .map(|steps| if let Steps::Code(code) = steps { code.slots } else { 0 })
            .max()
            .unwrap_or(0)
    }

    fn all_steps(&self) -> impl Iterator<Item = &Steps> {
        [&self.steps].into_iter().chain(self.inner.iter().map(|inner| &inner.steps))
    }

    /// Returns the steps of the cells of a part, or of all others.
    #[inline(always)]
    pub fn steps_of(&self, part: Option<usize>) -> &Steps {
        part.and_then(|part| self.inner.get(part)).map_or(&self.steps, |inner| &inner.steps)
    }

    /// Returns the part of a row of so many cells, at a place along the two slower axes, that has steps of its own.
    #[inline(always)]
    pub fn inner_of(&self, row: [isize; 2], width: isize) -> InnerPart {
        for (number, inner) in self.inner.iter().enumerate().filter(|(_, inner)| inner.has_row(row)) {
            let cells = inner.cells(width);
            if !cells.is_empty() {
                return InnerPart { number: Some(number), cells };
            }
        }
        InnerPart::default()
    }

    /// Returns whether the scalars that a row with such a part needs differ from row to row.
    #[inline(always)]
    pub fn varies_in(&self, part: &InnerPart) -> bool {
        let inner = part.number.and_then(|number| self.inner.get(number));
        match inner {
            Some(inner) if inner.is_whole_rows() => inner.varies_by_row,
            _ => self.varies_by_row,
        }
    }

    /// Returns the number of the instructions' operands of all kinds.
    pub fn operands(&self) -> usize {
        self.slots() + self.uniform.nodes.len() + self.taps.len() + self.outputs + 1
    }

    /// Returns whether the steps read the coordinate along the row.
    pub fn reads_along(&self) -> bool {
        self.all_steps().any(Steps::reads_along)
    }

    /// Returns the bytecode with instructions of the machine for values of type `T`, where it has such. They give
    /// the same bits.
    #[cfg_attr(not(all(target_arch = "x86_64", unix)), allow(unused_mut))]
    pub fn compiled<T: Real>(mut self) -> Bytecode {
        #[cfg(all(target_arch = "x86_64", unix))]
        for steps in [&mut self.steps].into_iter().chain(self.inner.iter_mut().map(|inner| &mut inner.steps))
        {
            if let Steps::Code(code) = steps {
                code.native = Native::new::<T>(code, self.uniform.nodes.len());
            }
        }
        self
    }

    /// Returns the bytecode of a formula. With `fused`, additions count as multiply-adds with weight one, which
    /// round the same and make more formulas a sum. This is worth it only where a fused multiply-add is one
    /// instruction.
    pub fn new(dag: &Dag, fused: bool) -> Bytecode {
        let mut compiler = Compiler::new(dag, fused);
        let made = Made::of(dag, &mut compiler);
        let inner = inner::all(dag, fused, &mut compiler);
        let counts = [compiler.uniform.len(), compiler.taps.len(), dag.outputs.len()];
        let steps = made.steps(counts);
        let inner = inner.into_iter().map(|made| made.inner(counts)).collect();
        let Compiler { uniform, varies_by_row, taps, rows, lines, .. } = compiler;
        let mut reach = [[0; 2]; 3];
        for TapAt { row, shift } in &taps {
            let [dz, dy] = lines[rows[*row].line];
            for (reach, offset) in reach.iter_mut().zip([dz, dy, *shift]) {
                *reach = [reach[0].min(offset), reach[1].max(offset)];
            }
        }
        let uniform = Dag { nodes: uniform, outputs: Vec::new() };
        Bytecode {
            uniform,
            varies_by_row,
            taps,
            rows,
            reach,
            lines,
            outputs: dag.outputs.len(),
            steps,
            inner,
        }
    }
}

/// The cells of a row that have steps of their own, by the number of these among [`Bytecode::inner`]; none by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InnerPart {
    /// The number.
    pub number: Option<usize>,
    /// The cells.
    pub cells: Range<isize>,
}

impl InnerPart {
    /// Returns the number of the steps of a cell, and the next cell at which that changes, if there is one.
    #[inline(always)]
    pub fn at(&self, cell: isize) -> (Option<usize>, isize) {
        if self.number.is_none() || cell >= self.cells.end {
            (None, isize::MAX)
        } else if cell >= self.cells.start {
            (self.number, self.cells.end)
        } else {
            (None, self.cells.start)
        }
    }
}

impl Steps {
    /// Returns whether they read the coordinate along the row.
    pub fn reads_along(&self) -> bool {
        matches!(self, Steps::Code(Code { reads_along: true, .. }))
    }
}

/// Steps whose operands have no numbers yet.
enum Made {
    Sum(Weighted),
    Code(Vec<Instruction>, usize),
}

impl Made {
    /// Returns the steps of a formula: a sum where it is one.
    fn of(dag: &Dag, compiler: &mut Compiler<'_>) -> Made {
        let scalars = compiler.uniform.len();
        if let Some(sum) = compiler.weighted() {
            return Made::Sum(sum);
        }
        // The weights of what was no sum after all.
        compiler.uniform.truncate(scalars);
        let (instructions, slots) = emit::emit(dag, &compiler.operands, &compiler.draws);
        Made::Code(instructions, slots)
    }

    /// Returns the same over scalars that come behind `first` others, and over other taps.
    fn moved(self, first: usize, taps: &[usize]) -> Made {
        match self {
            Made::Sum(Weighted { terms, scale }) => {
                let term = |term: Term| Term { weight: term.weight + first, tap: taps[term.tap] };
                let scale = scale.map(|scale| scale + first);
                Made::Sum(Weighted { terms: terms.into_iter().map(term).collect(), scale })
            }
            Made::Code(instructions, slots) => {
                let operand = |operand| match operand {
                    Operand::Scalar(number) => Operand::Scalar(number + first),
                    Operand::Tap(number) => Operand::Tap(taps[number]),
                    other => other,
                };
                Made::Code(instructions.iter().map(|one| one.map(operand)).collect(), slots)
            }
        }
    }

    /// Numbers the operands of a formula of so many scalars, taps and outputs.
    fn steps(self, [scalars, taps, outputs]: [usize; 3]) -> Steps {
        let (instructions, slots) = match self {
            Made::Sum(sum) => return Steps::Sum(sum),
            Made::Code(instructions, slots) => (instructions, slots),
        };
        let (from_taps, from_outputs) = (slots + scalars, slots + scalars + taps);
        let number = |operand| match operand {
            Operand::None => 0,
            Operand::Slot(number) => number as u32,
            Operand::Scalar(number) => (slots + number) as u32,
            Operand::Tap(number) => (from_taps + number) as u32,
            Operand::Output(number) => (from_outputs + number) as u32,
            Operand::Along => (from_outputs + outputs) as u32,
        };
        Steps::Code(Code {
            reads_along: instructions.iter().any(|one| [one.a, one.b].contains(&Operand::Along)),
            instructions: instructions.iter().map(|instruction| instruction.map(number)).collect(),
            slots,
            #[cfg(all(target_arch = "x86_64", unix))]
            native: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use abide_core::expr::{Graph, Node, Tap};
    use abide_core::{DType, catalogue};

    use super::*;

    fn bytecodes(name: &str, dimensions: usize) -> Vec<Bytecode> {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap().simplified(DType::F64);
        program
            .stages()
            .iter()
            .flat_map(|stage| [true, false].map(|fused| Bytecode::new(&stage.dag, fused)))
            .collect()
    }

    #[test]
    fn a_linear_stencil_is_one_sum() {
        for (name, dimensions, taps) in [("1d3pt", 1, 3), ("2d5pt", 2, 5), ("3d27pt", 3, 27)] {
            for bytecode in bytecodes(name, dimensions) {
                let Steps::Sum(Weighted { terms, scale: None }) = &bytecode.steps else {
                    panic!("{:?}", bytecode.steps)
                };
                assert!(terms.iter().map(|term| term.tap).eq(0..taps));
            }
        }
    }

    #[test]
    fn additions_make_a_sum_only_where_they_are_fused() {
        let graph = Graph::new();
        let [a, b, c] = [0, 1, 2].map(|field| graph.add(Node::Tap(Tap { field, offset: [0; 3] })));
        let dag = graph.dag(&[(a + b + c) * 0.25]);
        let Steps::Sum(Weighted { terms, scale: Some(_) }) = Bytecode::new(&dag, true).steps else {
            panic!()
        };
        assert_eq!(terms.len(), 3);
        assert!(matches!(Bytecode::new(&dag, false).steps, Steps::Code(_)));
    }

    #[test]
    fn a_value_is_stored_only_where_a_later_instruction_reads_it() {
        let graph = Graph::new();
        let [a, b] = [0, 1].map(|field| graph.add(Node::Tap(Tap { field, offset: [0; 3] })));
        let does = |dag: &Dag| match Bytecode::new(dag, true).steps {
            Steps::Code(code) => code.instructions.iter().map(|one| one.does).collect::<Vec<_>>(),
            Steps::Sum(sum) => panic!("{sum:?}"),
        };
        use Opcode::{Abs, Add, Load, LoadMul, LoadSub, Mul, Sqrt, Store};
        assert_eq!(does(&graph.dag(&[(a.abs() * b).sqrt()])), [Load, Abs, Mul, Sqrt, Store]);
        let two = does(&graph.dag(&[(a - b) + (a * b)]));
        assert_eq!(two, [LoadMul, Store, LoadSub, Add, Store]);
    }

    #[test]
    fn slots_are_used_again() {
        for entry in catalogue::entries() {
            for bytecode in bytecodes(entry.name, *entry.dimensions.end()) {
                let Steps::Code(code) = &bytecode.steps else { continue };
                let stores = code.instructions.iter().filter(|one| one.does == Opcode::Store).count();
                assert!(code.slots + bytecode.outputs <= stores, "{}", entry.name);
                assert!(code.slots <= 32, "{}: {} slots", entry.name, code.slots);
            }
        }
    }

    #[test]
    fn taps_share_rows() {
        for (name, dimensions, taps, rows) in
            [("1d3pt", 1, 3, 1), ("2d5pt", 2, 5, 3), ("3d27pt", 3, 27, 9), ("gray-scott", 2, 10, 6)]
        {
            for bytecode in bytecodes(name, dimensions) {
                assert_eq!((bytecode.taps.len(), bytecode.rows.len()), (taps, rows), "{name}");
            }
        }
    }
}
