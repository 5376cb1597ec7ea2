//! Loops against the same sums in plain Rust, and against each turn written out.

use proptest::prelude::*;

use super::*;
use crate::real::{DType, Real};

fn component(graph: &Graph, count: usize) -> Components<'_> {
    graph.components(Tap { field: 1, offset: [0; 3] }, count)
}

/// Returns the first output by its loops, and with each turn written out, simplified or not.
fn values<T: Real>(graph: &Graph, output: Expr<'_>, fields: &[f64]) -> [T; 3] {
    assert_eq!(graph.fault(), None);
    let tap = |tap: Tap| T::from_f64(fields[usize::from(tap.field)]);
    let straight = |dag: &Dag| {
        let mut values = Vec::new();
        dag.evaluate(&mut values, &[], [0, 0, 3], tap);
        values[dag.outputs[0] as usize]
    };
    let looped = graph.looped(&[output]).unwrap();
    let dag = graph.dag(&[output]);
    let by_loops = looped.evaluate(&[], [0, 0, 3], tap).next().unwrap();
    [by_loops, straight(&dag), straight(&dag.simplified(T::DTYPE))]
}

#[test]
fn folds_are_in_ascending_order_from_their_neutral_value() {
    let graph = Graph::new();
    let (x, w) = (component(&graph, 5), graph.table(&[0.1, 0.7, -3.3, 1e17, 1.0]));
    let fields = [0.0, 0.3, -1.7, 1e16, 0.9, 0.77];
    let (own, weights) = (&fields[1..], [0.1, 0.7, -3.3, 1e17, 1.0]);
    let sum = graph.sum(0..5, |i| x.at(i) * w.at(i));
    let expected = own.iter().zip(weights).fold(-0.0, |sum, (x, w)| sum + x * w);
    assert_eq!(values::<f64>(&graph, sum, &fields), [expected; 3]);
    let fused = graph.sum_of_products(1..5, |i| [x.at(i), w.at(i.plus(-1))]);
    let expected = (1..5).fold(-0.0f64, |sum, i| own[i].mul_add(weights[i - 1], sum));
    assert_eq!(values::<f64>(&graph, fused, &fields), [expected; 3]);
    let product = graph.product(0..5, |i| x.at(i));
    let expected: f64 = own.iter().fold(1.0, |product, x| product * x);
    assert_eq!(values::<f64>(&graph, product, &fields), [expected; 3]);
    assert_eq!(values::<f64>(&graph, graph.least(0..5, |i| x.at(i)), &fields), [-1.7; 3]);
    assert_eq!(values::<f32>(&graph, graph.greatest(0..5, |i| x.at(i)), &fields), [1e16; 3]);
    // No turns: the neutral value, with its sign.
    let [none, ..] = values::<f64>(&graph, graph.sum(3..3, |i| x.at(i)), &fields);
    assert!(none == 0.0 && none.is_sign_negative());
    // Of one term alone the sum is that term.
    let one = graph.sum(2..3, |i| x.at(i)) + 0.0;
    assert_eq!(graph.dag(&[one]).simplified(DType::F64).nodes.len(), 3);
}

#[test]
fn a_triangle_goes_beyond_the_outer_index() {
    const N: usize = 6;
    let graph = Graph::new();
    let entries: Vec<f64> = (0..N * N).map(|at| 0.1 + 0.37 * at as f64).collect();
    let (x, k) = (component(&graph, N), graph.table_of(N, &entries));
    let form = graph.sum_of_products(0..N, |i| {
        let row = graph.sum_of_products(i.plus(1).to(N), |j| [x.at(j), k.at_row(i, j)]);
        [x.at(i), row]
    });
    let fields: Vec<f64> = (0..=N).map(|i| (1.3 * i as f64).sin()).collect();
    let expected = (0..N).fold(-0.0f64, |sum, i| {
        let row = (i + 1..N).fold(-0.0f64, |row, j| fields[1 + j].mul_add(entries[i * N + j], row));
        fields[1 + i].mul_add(row, sum)
    });
    assert_eq!(values::<f64>(&graph, form, &fields), [expected; 3]);
    // 15 pairs of three terms and 6 rows of two at least.
    let looped = graph.looped(&[form]).unwrap();
    assert!(looped.written_out() >= 57 && looped.loops.len() == 2);
    assert_eq!(looped.components(), [(Tap { field: 1, offset: [0; 3] }, [0, N as i64 - 1])]);
}

#[test]
fn loops_of_the_same_turns_go_together_unless_one_needs_the_other() {
    let graph = Graph::new();
    let x = component(&graph, 7);
    let sum = graph.sum(0..7, |i| x.at(i));
    let squares = graph.sum_of_products(0..7, |i| [x.at(i); 2]);
    let looped = graph.looped(&[sum, squares]).unwrap();
    assert_eq!((looped.loops.len(), looped.loops[0].carried.len()), (1, 2));
    // A component is read once for both.
    let reads = looped.terms.iter().filter(|term| matches!(term, Term::Component(..))).count();
    assert_eq!(reads, 1);
    let deviation = graph.sum(0..7, |i| (x.at(i) - sum / 7.0).squared());
    let shorter = graph.sum(1..7, |i| x.at(i));
    assert_eq!(graph.looped(&[squares, deviation, shorter]).unwrap().loops.len(), 3);
    let fields: Vec<f64> = (0..8).map(f64::from).collect();
    assert_eq!(values::<f64>(&graph, deviation, &fields), [28.0; 3]);
}

#[test]
fn rows_go_together_where_they_need_nothing_carried() {
    const N: usize = 11;
    let graph = Graph::new();
    let (x, k) = (component(&graph, N), graph.table_of(N, &[0.5; N * N]));
    let form = |size: usize| {
        graph.sum_of_products(0..size, |i| {
            let row =
                graph.fold(i.plus(1).to(N), x.at(i), |j, sum| (x.at(j) * 2.0).mul_add(k.at_row(i, j), sum));
            [x.at(i) * 3.0, row]
        })
    };
    let looped = graph.looped(&[form(N)]).unwrap();
    let rows = looped.rows(0).unwrap();
    assert_eq!((rows.loops().collect::<Vec<_>>(), rows.together.len(), looped.rows(1)), (vec![1], 2, None));
    // x_i before the rows, and of each its entry, its sum and the product; x_j and its double are of all.
    let named = |wanted: bool| {
        let all = looped.loops[1].body.iter().filter_map(|item| match *item {
            Item::Term(id) if rows.differs[id as usize] == wanted => Some(looped.terms[id as usize]),
            _ => None,
        });
        all.collect::<Vec<_>>()
    };
    assert!(
        matches!(named(false)[..], [Term::Component(..), Term::Node(Node::Binary(..))]),
        "{:?}",
        named(false)
    );
    assert_eq!(named(true).len(), 3);
    let group = |from, to, rows| Group { from, to, rows };
    assert_eq!(rows.groups(4), [group(0, 8, 4), group(8, 11, 3)]);
    assert_eq!(rows.groups(16), [group(0, 11, 11)]);
    assert_eq!(rows.groups(1), [group(0, 11, 1)]);
    // Each row more holds its component and its sum.
    assert_eq!(looped.most_held(8) - looped.most_held(4), 8);
    // One turn has no other beside it, and rows that need those before go one after another.
    assert_eq!(graph.looped(&[form(1)]).unwrap().rows(0), None);
    let bound = graph.fold(0..N, 0.5, |i, before| before + graph.sum(0..N, |j| (x.at(j) - before) * x.at(i)));
    assert!(!graph.looped(&[bound]).unwrap().has_rows());
}

#[test]
fn what_is_carried_together_changes_together() {
    let graph = Graph::new();
    let x = component(&graph, 1).at(graph.index(0));
    // Fibonacci's numbers times x.
    let [_, value] = graph.repeat(0..10, [x * 0.0, x], |_, [a, b]| [b, a + b]);
    assert_eq!(values::<f64>(&graph, value, &[0.0, 3.0]), [267.0; 3]);
    let weighted = graph.fold(2..5, 0.0, |i, sum| sum + x * i.value());
    assert_eq!(values::<f64>(&graph, weighted, &[0.0, 3.0]), [27.0; 3]);
}

/// Heron's iteration ends where it no longer changes; what is done keeps its value.
#[test]
fn a_cell_that_has_converged_stays_as_it_is() {
    let graph = Graph::new();
    let x = component(&graph, 1).at(graph.index(0));
    let root = graph.converge(40, x, |y| 0.5 * (y + x / y), |old, new| new.ge(old));
    for value in [2.0, 10.0, 1e300, 1e-300] {
        let mut expected: f64 = value;
        for _ in 0..40 {
            let next = 0.5 * (expected + value / expected);
            let is_done = next >= expected;
            expected = next;
            if is_done {
                break;
            }
        }
        assert_eq!(values::<f64>(&graph, root, &[0.0, value]), [expected; 3], "{value}");
    }
}

#[test]
fn limits_are_named() {
    let fault = |build: &dyn Fn(&Graph)| {
        let graph = Graph::new();
        build(&graph);
        graph.fault().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let sum = |graph: &Graph, turns: std::ops::Range<usize>| {
        graph.sum(turns, |i| component(graph, 3).at(i));
    };
    assert!(fault(&|graph| sum(graph, 0..4)).contains("index of the components of a field"));
    assert!(fault(&|graph| sum(graph, 0..MAX_TURNS + 1)).contains("65536"));
    let beyond = fault(&|graph| {
        let table = graph.table(&[1.0, 2.0]);
        graph.sum(0..2, |i| table.at(i.plus(1)));
    });
    assert!(beyond.contains("table") && beyond.contains('1'), "{beyond}");
    let table = |rows: usize, entries: &[f64]| {
        fault(&|graph| {
            graph.table_of(rows, entries);
        })
    };
    assert!(table(1, &[]).contains("entries of a table"));
    assert!(table(1, &[f64::NAN]).contains("finite"));
    assert!(table(2, &[1.0, 2.0, 3.0]).contains("as many in each row"));
    let deep = fault(&|graph| {
        graph.sum(0..2, |_| {
            graph.sum(0..2, |_| {
                graph.sum(0..2, |_| graph.sum(0..2, |_| graph.sum(0..2, |i| component(graph, 3).at(i))))
            })
        });
    });
    assert!(deep.contains("loops within loops"), "{deep}");
    // A turn's value outside of its loop.
    let leaked = fault(&|graph| {
        let mut kept = None;
        graph.sum(0..3, |i| *kept.insert(component(graph, 3).at(i)));
        let _ = kept.unwrap() + 1.0;
    });
    assert!(leaked.contains("outside of it"), "{leaked}");
    let graph = Graph::new();
    let mut kept = None;
    let sum = graph.sum(0..3, |i| *kept.insert(component(&graph, 3).at(i)));
    graph.looped(&[sum, kept.unwrap()]);
    assert!(graph.fault().is_some());
}

/// Grows a formula of loops from random choices: what a turn makes is of components, entries, what is carried, and
/// loops within it.
fn grow<'g>(
    graph: &'g Graph,
    choices: &mut std::slice::Iter<'_, u8>,
    around: &[Index<'g>],
    outer: Expr<'g>,
) -> Expr<'g> {
    let (x, k) = (
        component(graph, 6),
        graph.table_of(6, &std::array::from_fn::<_, 36, _>(|i| 0.3 + (i as f64).cos())),
    );
    let mut next = || choices.next().copied().unwrap_or(0);
    let (from, kind, extra) = (usize::from(next() % 4), next(), next());
    let turns = match around.last() {
        Some(i) if kind % 3 == 0 => i.to(6),
        _ => (from..6).into(),
    };
    let deep = around.len() < 2 && kind % 4 != 1;
    let [value, other] = graph.repeat(turns, [outer, graph.constant(0.5)], |i, [sum, other]| {
        let around = [around, &[i]].concat();
        let entry = k.at_row(around[0], i);
        let inner = if deep { grow(graph, choices, &around, sum * entry) } else { x.at(i) * entry };
        let inner = match extra % 5 {
            0 => inner.abs().sqrt(),
            1 => inner.lt(other).select(sum, inner),
            2 => inner + i.value(),
            3 => inner / (1.0 + entry.squared()),
            _ => inner,
        };
        match kind % 5 {
            0 => [x.at(i).mul_add(inner, sum), sum],
            1 => [sum + inner, other * entry],
            2 => [sum.min(inner), inner],
            3 => [sum.max(inner + other), other],
            _ => [inner - sum, sum + other],
        }
    });
    value - other
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn turns_written_out_have_the_bits_of_the_loop(
        choices in prop::collection::vec(any::<u8>(), 1..24),
        fields in prop::array::uniform7(prop_oneof![-10.0..10.0f64, Just(0.0), Just(-0.0), Just(f64::INFINITY)]),
    ) {
        let graph = Graph::new();
        let mut choices = choices.iter();
        let start = component(&graph, 6).at(graph.index(1));
        let (a, b) = (grow(&graph, &mut choices, &[], start), grow(&graph, &mut choices, &[], start));
        let output = a + b * 0.25;
        let alike = |bits: [u64; 3], is_nan: [bool; 3]| bits.iter().all(|b| *b == bits[0]) || is_nan == [true; 3];
        let own = values::<f64>(&graph, output, &fields);
        prop_assert!(alike(own.map(f64::to_bits), own.map(f64::is_nan)), "{own:?}");
        let own = values::<f32>(&graph, output, &fields);
        prop_assert!(alike(own.map(|v| u64::from(v.to_bits())), own.map(f32::is_nan)), "{own:?}");
    }
}

#[test]
fn results_of_loops_stand_behind_the_others() {
    const N: usize = 3;
    let graph = Graph::new();
    let (x, w) = (component(&graph, N), graph.table(&[0.25, -3.0, 7.0]));
    let sum = graph.sum(0..N, |i| x.at(i));
    // Of rows of two, of which none needs its column; then of each component, needing a sum over all.
    assert_eq!(graph.each_of(N, 2, |i, j| x.at(i) * w.at(i) + j.value()), 2 * N);
    assert_eq!(graph.each_of(1, N, |_, i| x.at(i) - sum * graph.sum(0..N, |j| w.at(j) * x.at(i))), N);
    assert_eq!(graph.fault(), None);
    let fields = [0.0, 0.3, -1.7, 5.5];
    let (own, weights) = (&fields[1..], [0.25, -3.0, 7.0]);
    let all = own.iter().fold(-0.0, |sum, x| sum + x);
    let mut expected = vec![all];
    expected.extend((0..N).flat_map(|i| [0.0, 1.0].map(|j| own[i] * weights[i] + j)));
    expected.extend(own.iter().map(|x| x - all * weights.iter().fold(-0.0, |sum, w| sum + w * x)));
    let tap = |tap: Tap| fields[usize::from(tap.field)];
    let looped = graph.looped(&[sum]).unwrap();
    assert_eq!((looped.outputs.len(), looped.stored), (1, 3 * N));
    assert_eq!(looped.evaluate(&[], [0; 3], tap).collect::<Vec<f64>>(), expected);
    let (dag, mut values) = (graph.dag(&[sum]).simplified(DType::F64), Vec::new());
    dag.evaluate(&mut values, &[], [0; 3], tap);
    let written: Vec<f64> = dag.outputs.iter().map(|&output| values[output as usize]).collect();
    assert_eq!(written, expected);
}

/// A tree of lanes joins neighbours, then pairs of them; lanes without terms change nothing.
#[test]
fn trees_are_sums_of_lanes_that_are_joined_pair_by_pair() {
    let graph = Graph::new();
    let x = component(&graph, 11);
    let fields: Vec<f64> = (0..12).map(|i| (1.7 * i as f64).sin() * 10f64.powi(i % 5)).collect();
    let lane = |lanes: usize, l: usize, from: usize| (from + l..11).step_by(lanes).map(|i| fields[1 + i]);
    let plain = |lanes: usize, from: usize| {
        let mut sums: Vec<f64> =
            (0..lanes).map(|l| lane(lanes, l, from).fold(-0.0, |sum, x| sum + x)).collect();
        while sums.len() > 1 {
            sums = sums.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        sums[0]
    };
    for lanes in [1, 2, 4, 8, 16, 32] {
        let sum = graph.tree_sum(lanes, 0..11, |i| x.at(i));
        assert_eq!(values::<f64>(&graph, sum, &fields), [plain(lanes, 0); 3], "{lanes} lanes");
        let [short, squares] =
            graph.tree_sums(lanes, 3..11, |i, [a, b]| [a + x.at(i), x.at(i).mul_add(x.at(i), b)]);
        assert_eq!(values::<f64>(&graph, short, &fields), [plain(lanes, 3); 3], "{lanes} lanes");
        assert!(values::<f64>(&graph, squares, &fields)[0] > 0.0);
    }
    // Other lanes are other sums.
    assert!([2, 4, 8, 16].iter().any(|&lanes| plain(lanes, 0) != plain(1, 0)));
    let none = graph.tree_sum(8, 3..3, |i| x.at(i));
    let [none, ..] = values::<f64>(&graph, none, &fields);
    assert!(none == 0.0 && none.is_sign_negative());
    for lanes in [0, 3, 64] {
        let graph = Graph::new();
        graph.tree_sum(lanes, 0..5, |i| i.value());
        let fault = graph.fault().unwrap().to_string();
        assert!(fault.contains("lanes of a tree sum") && fault.contains("power of two"), "{fault}");
    }
}

/// A team shares the outermost tree sums of its lanes, and loops that carry nothing.
#[test]
fn a_team_shares_outermost_trees() {
    let graph = Graph::new();
    let x = component(&graph, 8);
    let sum = graph.tree_sum(4, 0..8, |i| x.at(i) + graph.tree_sum(4, 0..3, |j| x.at(j)));
    let within = graph.fold(0..2, 0.0, |_, before| before + graph.tree_sum(4, 1..8, |i| x.at(i) * before));
    let looped = graph.looped(&[sum, within]).unwrap();
    let of = |team: usize| {
        let shared = looped.shared(team);
        looped
            .loops
            .iter()
            .zip(shared)
            .map(|(each, is)| (each.turns.to, each.turns.lanes(), is))
            .collect::<Vec<_>>()
    };
    let mut four = of(4);
    four.sort_unstable();
    assert_eq!(four, [(2, 1, false), (3, 4, false), (8, 4, true), (8, 4, true)]);
    assert!(of(8).iter().all(|(.., is)| !is));
    // Four lanes wait with two values beside the sum.
    let plain = graph.sum(0..8, |i| x.at(i));
    let tree = graph.tree_sum(4, 0..8, |i| x.at(i));
    let held = |value| graph.looped(&[value]).unwrap().most_held(1);
    assert_eq!(held(tree) - held(plain), 2);
}
