//! Assignment of steps' values to slots, as few as the values that are alive at once.

use super::step::{Op, Operand, Place, Step};

/// A step whose value still has a number of its own instead of a place.
pub struct Draft {
    /// The value's number.
    pub value: usize,
    /// The operation; its slots are numbers of values.
    pub op: Op,
}

/// Gives each value a place: the output where only the output needs it, else a slot that is free again after
/// its last reader.
pub fn place(mut drafts: Vec<Draft>, outputs: &[Operand]) -> (Vec<Step>, usize) {
    let values = drafts.iter().map(|draft| draft.value + 1).max().unwrap_or(0);
    let mut last_reader = vec![None; values];
    for (number, draft) in drafts.iter_mut().enumerate() {
        draft.op.each_operand(|operand| {
            if let Operand::Slot(value) = *operand {
                last_reader[value] = Some(number);
            }
        });
    }
    let is_output_once =
        |value| outputs.iter().filter(|&&output| output == Operand::Slot(value)).count() == 1;
    let mut slot_of = vec![0; values];
    let (mut free, mut slots) = (Vec::new(), 0);
    let mut copied: Vec<bool> = outputs.iter().map(|_| true).collect();
    let mut steps = Vec::new();
    for (number, Draft { value, mut op }) in drafts.into_iter().enumerate() {
        let direct = (last_reader[value].is_none() && is_output_once(value))
            .then(|| outputs.iter().position(|&output| output == Operand::Slot(value)))
            .flatten();
        let place = match direct {
            Some(output) => {
                copied[output] = false;
                Place::Output(output)
            }
            None => {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                slot_of[value] = slot;
                Place::Slot(slot)
            }
        };
        op.each_operand(|operand| {
            if let Operand::Slot(value) = *operand {
                *operand = Operand::Slot(slot_of[value]);
                let is_output = outputs.contains(&Operand::Slot(value));
                if last_reader[value] == Some(number) && !is_output {
                    last_reader[value] = None;
                    free.push(slot_of[value]);
                }
            }
        });
        steps.push(Step { place, op });
    }
    for (number, &output) in outputs.iter().enumerate().filter(|(number, _)| copied[*number]) {
        let operand = match output {
            Operand::Slot(value) => Operand::Slot(slot_of[value]),
            other => other,
        };
        steps.push(Step { place: Place::Output(number), op: Op::Copy(operand) });
    }
    (steps, slots)
}
