use abide_core::catalogue::cloverleaf;
use std::sync::Arc;

use abide_core::{DType, Problem, Shape};

use super::picture::Picture;
use super::{Drawing, hex};
use crate::fusion::graph::Graph;
use crate::fusion::of_program::Form;
use crate::fusion::order::Order;

/// Every loop, array, access and needed precedence is in both pictures, and text is quoted.
#[test]
fn pictures_show_both_graphs() {
    let shape = Shape::new(&[96, 96]).unwrap();
    let problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
    let graph = Graph::of(&problem, &Form { step: Some(0), renamed: true, split: false }).unwrap();
    let order = Order::of(&graph);
    let groups: Vec<Vec<usize>> = [vec![0, 1, 2]].into_iter().chain((3..30).map(|own| vec![own])).collect();
    let drawing = Drawing { graph: &graph, order: &order, groups: &groups, title: "a < \"b\" & c" };
    let dot = drawing.dot();
    let reads = || graph.loops.iter().flat_map(|own| &own.accesses).filter(|access| access.reads.is_some());
    let writes = || graph.loops.iter().flat_map(|own| &own.accesses).filter(|access| access.writes);
    let edges = order.needed().count() + reads().count() + writes().count();
    assert_eq!(dot.matches(" -> ").count(), edges);
    assert_eq!(dot.matches("shape=diamond").count() + dot.matches("shape=note").count(), graph.arrays.len());
    assert!(dot.contains("o1 -> o2 [tooltip=\"RAW viscosity.1\"]") && dot.contains("a < \\\"b\\\" & c"));
    assert_eq!((dot.matches('{').count(), dot.matches("o0 [").count()), (dot.matches('}').count(), 1));
    let svg = drawing.svg();
    let count = |part: &str| svg.matches(part).count();
    assert_eq!(count("marker-end"), order.needed().count());
    // One of each is in the legend.
    assert_eq!((count("class=\"r\""), count("class=\"w\"")), (reads().count() + 1, writes().count() + 1));
    assert!(svg.contains("a &lt; \"b\" &amp; c") && svg.contains("30 time") == graph.loops.len().gt(&30));
    let [group, alone] = [0, 3].map(|own| hex(drawing.colours()[own]));
    // Twice for each loop: in the order and in the table.
    assert_eq!((count(&format!("fill=\"{group}\"")), count(&format!("fill=\"{alone}\""))), (6, 54));
    // The same for whatever else draws it, however wide its letters.
    let picture = drawing.picture(|title| 100.0 + title.len() as f64);
    assert_eq!((picture.loops.len(), picture.arrows.len()), (graph.loops.len(), order.needed().count()));
    for arrow in &picture.arrows {
        let [from, to] = [&picture.loops[arrow.from], &picture.loops[arrow.to]];
        let (first, last) = (arrow.points[0], arrow.points[arrow.points.len() - 1]);
        assert_eq!(first, [from.centre[0], from.centre[1] + Picture::HEIGHT / 2.0]);
        assert_eq!(last, [to.centre[0], to.centre[1] - Picture::HEIGHT / 2.0]);
        assert_eq!(arrow.curves().count(), arrow.points.len() - 1);
    }
    assert!(picture.arrows.iter().any(|arrow| arrow.causes == "RAW viscosity.1"));
    let same = |one: usize, two: usize| picture.loops[one].colour == picture.loops[two].colour;
    assert!(same(0, 2) && !same(0, 3) && same(3, 4) && picture.loops[3].group == 1);
    assert_eq!(count("<g ") + count("<g>"), count("</g>"));
}
