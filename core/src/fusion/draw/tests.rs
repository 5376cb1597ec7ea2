use std::sync::Arc;

use super::*;
use crate::catalogue::cloverleaf;
use crate::domain::Shape;
use crate::fusion::{Form, Loops, Search, in_turn, search};
use crate::program::Problem;
use crate::real::DType;

#[test]
fn tmp() {
    let shape = Shape::new(&[96, 96]).unwrap();
    let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
    for renamed in [false, true] {
        let graph = Graph::of(&problem, &Form { step: Some(0), renamed, split: false }).unwrap();
        let order = Order::of(&graph);
        for cap in [12] {
            let loops = Loops::of(&graph, cap).unwrap();
            let found = search(&loops, &Search::default(), &in_turn, || true);
            println!("{cap} {} {} {} {:?}", loops.unfused(), found.bytes, found.groups.len(), found.groups);
            let d = Drawing { graph: &graph, order: &order, groups: &found.groups, title: "CloverLeaf" };
            std::fs::write(format!("/tmp/clover{renamed}.dot"), d.dot()).unwrap();
            std::fs::write(format!("/tmp/clover{renamed}.svg"), d.svg()).unwrap();
        }
        println!(
            "{} loops {} arrays {} edges {} needed, spares {:?}",
            graph.loops.len(),
            graph.arrays.len(),
            order.edges.len(),
            order.needed().count(),
            graph.spares()
        );
        for e in order.needed() {
            println!(
                "  {} -> {} {:?}",
                graph.title(e.from),
                graph.title(e.to),
                e.causes
                    .iter()
                    .map(|(a, c)| format!("{} {}", c.name(), graph.arrays[*a].label()))
                    .collect::<Vec<_>>()
            );
        }
    }
}
