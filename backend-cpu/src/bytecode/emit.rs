//! Instructions for a formula that is more than one sum.
//!
//! The nodes come in an order in which most are computed right before their only reader: their values stay
//! in the accumulator. Others are stored in a slot, and a slot is used again as soon as its value is dead.

use abide_core::expr::{Dag, Id, Node};

use super::code::{Instruction, Opcode};
use super::step::Operand;

/// Returns the instructions and the number of slots that they need. `places` are the operands of nodes that
/// lie somewhere already (`None` for those that are computed), `draws` the random numbers and the first of the scalars of each.
pub fn emit(dag: &Dag, places: &[Option<Operand>], draws: &[(Id, usize)]) -> (Vec<Instruction>, usize) {
    let mut uses = vec![0; dag.nodes.len()];
    let computed = dag.nodes.iter().zip(places).filter(|(_, place)| place.is_none());
    let read = computed.flat_map(|(node, _)| node.operands());
    read.chain(dag.outputs.iter().copied()).for_each(|id| uses[id as usize] += 1);
    let order = order(dag, places, &uses);
    let mut emitter =
        Emitter { dag, draws, places: places.to_vec(), uses, code: Vec::new(), free: Vec::new(), slots: 0 };
    let mut held = None;
    for (number, &id) in order.iter().enumerate() {
        emitter.compute(id, held);
        held = Some(id);
        emitter.keep(id, order.get(number + 1).copied());
    }
    for (output, &id) in dag.outputs.iter().enumerate() {
        if let Some(place) = places[id as usize] {
            emitter.push(Opcode::Load, place, Operand::None);
            emitter.push(Opcode::Store, Operand::Output(output), Operand::None);
        }
    }
    (joined(&emitter.code), emitter.slots)
}

/// Joins neighbouring instructions to one wherever there is one for both.
fn joined(code: &[Instruction]) -> Vec<Instruction> {
    let mut joined: Vec<Instruction> = Vec::with_capacity(code.len());
    for &next in code {
        let both = joined.last().and_then(|last| last.and(next));
        if both.is_some() {
            joined.pop();
        }
        joined.push(both.unwrap_or(next));
    }
    joined
}

/// Returns the nodes to be computed, operands first and as near before their readers as may be.
fn order(dag: &Dag, places: &[Option<Operand>], uses: &[usize]) -> Vec<Id> {
    let mut is_done: Vec<bool> = places.iter().map(Option::is_some).collect();
    let mut order = Vec::new();
    // A stack of its own: formulas may be deeper than a thread's stack allows.
    let mut stack: Vec<(Id, bool)> = dag.outputs.iter().rev().map(|&id| (id, false)).collect();
    while let Some((id, is_ready)) = stack.pop() {
        if is_done[id as usize] {
            continue;
        }
        if is_ready {
            is_done[id as usize] = true;
            order.push(id);
            continue;
        }
        stack.push((id, true));
        // The last operand stays in the accumulator: rather one that no other node reads.
        let mut operands: Vec<Id> = dag.nodes[id as usize].operands().collect();
        operands.sort_by_key(|&operand| uses[operand as usize]);
        stack.extend(operands.into_iter().map(|operand| (operand, false)));
    }
    order
}

struct Emitter<'d> {
    dag: &'d Dag,
    draws: &'d [(Id, usize)],
    places: Vec<Option<Operand>>,
    /// The reads of each node that are still to come.
    uses: Vec<usize>,
    code: Vec<Instruction>,
    free: Vec<usize>,
    slots: usize,
}

impl Emitter<'_> {
    fn push(&mut self, does: Opcode, a: Operand, b: Operand) {
        self.code.push(Instruction { does, a, b });
    }

    fn place(&self, id: Id) -> Operand {
        self.places[id as usize].unwrap_or(Operand::None)
    }

    /// Computes a node's value in the accumulator, which holds that of `held`.
    fn compute(&mut self, id: Id, held: Option<Id>) {
        let node = self.dag.nodes[id as usize];
        let operands: Vec<Id> = match node {
            // The others are scalars.
            Node::Draw(_, [_, _, along, ..]) => vec![along],
            _ => node.operands().collect(),
        };
        // Which operand is in the accumulator; if none is, the first is loaded.
        let in_accumulator = operands.iter().position(|&operand| Some(operand) == held);
        if let (None, Some(&first)) = (in_accumulator, operands.first()) {
            self.push(Opcode::Load, self.place(first), Operand::None);
        }
        let which = in_accumulator.unwrap_or(0);
        let others: Vec<Operand> = (0..operands.len())
            .filter(|&number| number != which)
            .map(|number| self.place(operands[number]))
            .collect();
        let drawn =
            || self.draws.iter().find(|(node, _)| *node == id).map(|(_, first)| Operand::Scalar(*first));
        let (a, b) = (
            others.first().copied().or_else(drawn).unwrap_or(Operand::None),
            others.get(1).copied().unwrap_or(Operand::None),
        );
        let does = match node {
            Node::Unary(op, _) => Opcode::unary(op),
            Node::Binary(op, ..) => Opcode::binary(op, which == 1),
            Node::Fma(..) if which == 2 => Opcode::FmaOnto,
            Node::Fma(..) => Opcode::FmaBy,
            Node::Draw(..) => Opcode::Draw,
            Node::Select(..) => [Opcode::SelectBy, Opcode::SelectYes, Opcode::SelectNo][which],
            // The others lie somewhere, and are not computed.
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => Opcode::Load,
        };
        self.push(does, a, b);
        for operand in operands {
            self.uses[operand as usize] -= 1;
            if let (0, Some(Operand::Slot(slot))) =
                (self.uses[operand as usize], self.places[operand as usize])
            {
                self.free.push(slot);
            }
        }
    }

    /// Writes the accumulator, which holds the value of `id`, where it is needed after `next` is computed.
    fn keep(&mut self, id: Id, next: Option<Id>) {
        for output in 0..self.dag.outputs.len() {
            if self.dag.outputs[output] == id {
                self.push(Opcode::Store, Operand::Output(output), Operand::None);
                self.uses[id as usize] -= 1;
            }
        }
        let reads = |next: Id| self.dag.nodes[next as usize].operands().any(|operand| operand == id);
        let is_passed_on = self.uses[id as usize] == 1 && next.is_some_and(reads);
        if self.uses[id as usize] > 0 && !is_passed_on {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots - 1
            });
            self.places[id as usize] = Some(Operand::Slot(slot));
            self.push(Opcode::Store, Operand::Slot(slot), Operand::None);
        }
    }
}
