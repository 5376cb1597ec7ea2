//! Formulas as tapes of operations on lanes, which a row's sweep carries out for each chunk of cells.
//!
//! Parts of the formula that are the same along a row (constants, parameters, the slower coordinates) become
//! scalars, computed once per row at most. The rest become steps. Sums of products with scalar weights, the
//! bulk of every stencil, become a single step that keeps its sum in registers. Other steps store one value
//! per node in a slot, and a slot is used again as soon as its value is dead.

mod select;
mod slots;
mod step;

use abide_core::expr::Dag;

pub use step::{MAX_TERMS, Op, Operand, Place, RowAt, Step, TapAt, Term};

use select::Compiler;

/// A formula ready to be swept over rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tape {
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
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The number of slots that the steps need.
    pub slots: usize,
}

impl Tape {
    /// Returns the number of the formula's outputs.
    pub fn outputs(&self) -> usize {
        let output = |step: &Step| if let Place::Output(output) = step.place { output + 1 } else { 0 };
        self.steps.iter().map(output).max().unwrap_or(0)
    }

    /// Returns the tape of a formula. With `fused`, additions count as multiply-adds with weight one, which
    /// round the same and let long sums stay in registers. This is worth it only where a fused multiply-add
    /// is one instruction.
    pub fn new(dag: &Dag, fused: bool) -> Tape {
        let mut compiler = Compiler::new(dag, fused);
        let steps = compiler.select();
        let (steps, slots) = slots::place(steps, &compiler.outputs());
        let Compiler { uniform, varies_by_row, taps, rows, lines, .. } = compiler;
        let mut reach = [[0; 2]; 3];
        for TapAt { row, shift } in &taps {
            let [dz, dy] = lines[rows[*row].line];
            for (reach, offset) in reach.iter_mut().zip([dz, dy, *shift]) {
                *reach = [reach[0].min(offset), reach[1].max(offset)];
            }
        }
        let uniform = Dag { nodes: uniform, outputs: Vec::new() };
        Tape { uniform, varies_by_row, taps, rows, reach, lines, steps, slots }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::expr::Binary;
    use abide_core::{DType, catalogue};

    use super::*;

    fn tapes(name: &str, dimensions: usize) -> Vec<Tape> {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap().simplified(DType::F64);
        program
            .stages()
            .iter()
            .flat_map(|stage| [true, false].map(|fused| Tape::new(&stage.dag, fused)))
            .collect()
    }

    #[test]
    fn a_linear_stencil_is_one_sum_into_its_output() {
        for (name, dimensions, taps) in [("1d3pt", 1, 3), ("2d5pt", 2, 5), ("3d27pt", 3, 27)] {
            for tape in tapes(name, dimensions) {
                assert_eq!(tape.slots, 0);
                let [Step { place: Place::Output(0), op: Op::Sum(terms, None) }] = &tape.steps[..] else {
                    panic!("{:?}", tape.steps)
                };
                assert!(terms.iter().map(|term| term.operand).eq((0..taps).map(Operand::Tap)));
            }
        }
    }

    #[test]
    fn additions_join_sums_only_where_they_are_fused() {
        let lengths: Vec<usize> = tapes("gray-scott", 2).iter().map(|tape| tape.steps.len()).collect();
        assert!(lengths[0] * 3 < lengths[1] * 2, "{lengths:?}");
    }

    #[test]
    fn products_of_three_and_scaled_differences_are_one_step() {
        for tape in tapes("gray-scott", 2) {
            let count = |of: fn(&Op) -> bool| tape.steps.iter().filter(|step| of(&step.op)).count();
            assert_eq!(count(|op| matches!(op, Op::Product(..))), 1, "{:#?}", tape.steps);
            assert_eq!(count(|op| matches!(op, Op::Scaled(_, Binary::Sub, ..))), 1, "{:#?}", tape.steps);
        }
    }

    #[test]
    fn a_sum_is_scaled_where_nothing_else_reads_it() {
        for tape in tapes("gray-scott", 2) {
            let scaled = tape.steps.iter().filter(|step| matches!(step.op, Op::Sum(_, Some(_)))).count();
            assert_eq!(scaled, if tape.steps.len() == 7 { 2 } else { 0 }, "{:#?}", tape.steps);
        }
    }

    #[test]
    fn taps_share_rows() {
        for (name, dimensions, taps, rows) in
            [("1d3pt", 1, 3, 1), ("2d5pt", 2, 5, 3), ("3d27pt", 3, 27, 9), ("gray-scott", 2, 10, 6)]
        {
            for tape in tapes(name, dimensions) {
                assert_eq!((tape.taps.len(), tape.rows.len()), (taps, rows), "{name}");
            }
        }
    }

    #[test]
    fn no_step_reads_the_slot_it_writes() {
        for entry in catalogue::entries() {
            for mut step in tapes(entry.name, *entry.dimensions.end()).into_iter().flat_map(|tape| tape.steps)
            {
                let Place::Slot(slot) = step.place else { continue };
                step.op.each_operand(|operand| assert_ne!(*operand, Operand::Slot(slot), "{}", entry.name));
            }
        }
    }
}
