use abide_core::expr::{Binary, Dag, Expr, Graph, Node, Tap, Unary};

use super::*;

/// Values of the taps `field` 0 to 3, from one cell before the chunk on.
struct Fields<'a, T>(&'a [Vec<T>; 4], &'a Bytecode, usize);

impl<T> Taps<T> for Fields<'_, T> {
    fn tap(&self, number: usize) -> &[T] {
        let tap = self.1.taps[number];
        let start = (1 + tap.shift) as usize;
        &self.0[self.1.rows[tap.row].field][start..start + self.2]
    }
}

struct New<T>(Vec<Vec<T>>);

impl<T> NewValues<T> for New<T> {
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T] {
        &mut self.0[output][range]
    }
}

/// Lengths around those of vectors and groups.
const LENGTHS: [usize; 12] = [1, 2, 7, 8, 31, 33, 63, 64, 65, 127, 129, 300];

/// Checks that a bytecode computes every value as the formula's definition does, with the machine's instructions
/// too.
fn check<T: Real>(dag: &Dag) {
    let bytecode = Bytecode::new(dag, true);
    check_tape::<T>(dag, bytecode.clone());
    check_tape::<T>(dag, bytecode.compiled::<T>());
}

fn check_tape<T: Real>(dag: &Dag, bytecode: Bytecode) {
    let mut step_scratch = StepScratch::new(&[&bytecode], 300).unwrap();
    let (parameters, mut scalars) = ([T::from_f64(0.75), T::from_f64(-1.5)], Vec::new());
    bytecode.uniform.evaluate(&mut scalars, &parameters, [0; 3], |_| T::ZERO);
    for len in LENGTHS {
        let value = |field: usize, i: usize| match (field * 31 + i * 7) % 23 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NAN,
            4 | 5 => 0.5,
            other => (other as f64 + i as f64 * 0.37).sin() * 3.0,
        };
        let fields =
            [0, 1, 2, 3].map(|field| (0..len + 2).map(|i| T::from_f64(value(field, i))).collect::<Vec<T>>());
        let mut new = New(vec![vec![T::ONE; len + 1]; dag.outputs.len()]);
        let chunk = Chunk {
            bytecode: &bytecode,
            first: 5,
            to: 1..len + 1,
            ahead: Ahead { read: false, write: false },
            inner: None,
        };
        chunk.compute(&mut step_scratch, &scalars, &Fields(&fields, &bytecode, len), &mut new);
        let mut nodes = Vec::new();
        for i in 0..len {
            let tap =
                |tap: Tap| fields[tap.field as usize][(1 + i as isize + tap.offset[2] as isize) as usize];
            dag.evaluate(&mut nodes, &parameters, [0, 0, 5 + i as isize], tap);
            for (output, &id) in dag.outputs.iter().enumerate() {
                let (found, expected) = (new.0[output][1 + i], nodes[id as usize]);
                let both_nan = found.to_f64().is_nan() && expected.to_f64().is_nan();
                assert!(
                    both_nan || found.to_bits64() == expected.to_bits64(),
                    "{found} for {expected} in cell {i} of {len}: {:?}",
                    bytecode.steps
                );
            }
        }
        assert!(new.0.iter().all(|values| values[0] == T::ONE), "a value before the chunk");
    }
}

fn check_both(graph: &Graph, outputs: &[Expr<'_>]) {
    let dag = graph.dag(outputs);
    check::<f32>(&dag);
    check::<f64>(&dag);
}

fn tap(graph: &Graph, field: u16, dx: i32) -> Expr<'_> {
    graph.add(Node::Tap(Tap { field: field as _, offset: [0, 0, dx as _] }))
}

#[test]
fn operators_of_one_operand() {
    for &op in Unary::ALL {
        let graph = Graph::new();
        let u = tap(&graph, 0, 0);
        let of = |e: Expr<'_>| Node::Unary(op, e.id());
        check_both(&graph, &[graph.add(of(u)), graph.add(of(u * tap(&graph, 1, 1)))]);
    }
}

#[test]
fn operators_of_two_operands_in_either_order() {
    for &op in Binary::ALL {
        let graph = Graph::new();
        let (u, v) = (tap(&graph, 0, -1), tap(&graph, 1, 0));
        let k = graph.add(Node::Param(1));
        let computed = u - v;
        let all = [u, v, k, computed];
        for a in all {
            for b in all {
                check_both(&graph, &[graph.add(Node::Binary(op, a.id(), b.id()))]);
            }
        }
    }
}

#[test]
fn operators_of_three_operands_with_each_in_the_accumulator() {
    let graph = Graph::new();
    let (u, v, w) = (tap(&graph, 0, 0), tap(&graph, 1, 1), tap(&graph, 2, -1));
    let k = graph.add(Node::Param(0));
    for operands in [[u - v, v, w], [u, v - w, w], [u, v, w - u], [u, v, w], [k, v, w], [u, u, k], [k, k, u]]
    {
        let [a, b, c] = operands.map(Expr::id);
        check_both(&graph, &[graph.add(Node::Fma(a, b, c))]);
        check_both(&graph, &[graph.add(Node::Select(a, b, c))]);
    }
    let holds = u.lt(v);
    check_both(&graph, &[holds.select(v, w), holds.select(w - u, 1.0), u.lt(k).select(u * holds, holds)]);
}

#[test]
fn values_that_several_read_outputs_and_the_index_along_the_row() {
    let graph = Graph::new();
    let (u, v, x) = (tap(&graph, 0, 0), tap(&graph, 3, 1), graph.add(Node::Coord(2)));
    let (k, shared) = (graph.add(Node::Param(0)), u * v);
    let square = (shared - u) * (shared - u);
    check_both(&graph, &[shared, square + shared, u, k, x, shared, (x + square).sqrt() / shared]);
}

#[test]
fn sums_of_taps() {
    let graph = Graph::new();
    let (u, v, k) = (tap(&graph, 0, 0), tap(&graph, 1, 1), graph.add(Node::Param(0)));
    check_both(&graph, &[u + v + tap(&graph, 2, -1)]);
    check_both(&graph, &[(u - v - tap(&graph, 2, -1)) * k]);
    let long = (0..50).fold(u * 0.5, |sum, n| tap(&graph, n % 4, n as i32 % 3 - 1).mul_add(n as f64, sum));
    check_both(&graph, &[long]);
}

#[test]
fn two_instructions_that_are_one() {
    fn apply<'g>(op: usize, held: Expr<'g>, a: Expr<'g>) -> Expr<'g> {
        match op {
            0 => held + a,
            1 => held - a,
            2 => a - held,
            _ => held * a,
        }
    }
    for [first, second, third] in (0..64).map(|n| [n / 16, n / 4 % 4, n % 4]) {
        let graph = Graph::new();
        let taps = [(0, 0), (1, 1), (2, -1), (3, 0)].map(|(field, dx)| tap(&graph, field, dx));
        let one = apply(first, taps[0], taps[1]);
        check_both(&graph, &[apply(third, apply(second, one, taps[2]), taps[3])]);
    }
}

/// More values are alive at once than there are registers.
#[test]
fn many_values_that_are_read_later() {
    let graph = Graph::new();
    let taps = [tap(&graph, 0, 0), tap(&graph, 1, 1), tap(&graph, 2, -1), tap(&graph, 3, 0)];
    let values: Vec<Expr<'_>> = (0..40).map(|n| taps[n % 4] * taps[(n + n / 4) % 4] + n as f64).collect();
    let forward = values.iter().fold(taps[0], |sum, &value| sum - value);
    let backward = values.iter().rev().fold(forward, |sum, &value| value.lt(sum).select(sum * value, value));
    let dag = graph.dag(&[forward, backward]);
    let Steps::Code(code) = Bytecode::new(&dag, true).steps else { panic!("a sum") };
    assert!(code.slots > 32, "{} slots", code.slots);
    check_both(&graph, &[forward, backward]);
}
