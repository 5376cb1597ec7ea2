//! The footprint of a formula, what it reads and costs: radius, shape of the neighbourhood, linearity,
//! operations and bytes per cell.

use serde::Serialize;

use crate::expr::{Binary, Dag, Node, Unary};
use crate::real::DType;

/// The positions of a stage's taps around the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Neighbourhood {
    /// The cell alone.
    Point,
    /// Along the axes only.
    Star,
    /// Off the axes too.
    Box,
}

/// The footprint of one stage: what it reads, computes and writes per cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Footprint {
    /// The largest distance of any tap along each of the three axes, slowest first.
    pub radius: [usize; 3],
    /// The radius for each field of the program; `None` for a field that the stage does not read.
    pub field_radius: Vec<Option<[usize; 3]>>,
    /// The positions of the taps.
    pub neighbourhood: Neighbourhood,
    /// Whether every output is a sum of taps times constants or parameters (a constant term allowed).
    pub linear: bool,
    /// The number of distinct taps.
    pub taps: usize,
    /// Floating-point operations per cell; a fused multiply-add counts as two; a comparison, a selection or a
    /// change of sign as none.
    pub flops: usize,
    /// The number of fields read.
    pub loads: usize,
    /// The number of fields written.
    pub stores: usize,
}

impl Footprint {
    /// Analyses a stage's formula; `fields` is the number of fields of the program.
    pub fn of(dag: &Dag, fields: usize) -> Footprint {
        let mut field_radius: Vec<Option<[usize; 3]>> = vec![None; fields];
        let mut radius = [0; 3];
        let mut neighbourhood = Neighbourhood::Point;
        let mut taps = 0;
        for tap in dag.taps() {
            taps += 1;
            let reach = tap.offset.map(|o| o.unsigned_abs() as usize);
            let own = field_radius[tap.field as usize].get_or_insert([0; 3]);
            for axis in 0..3 {
                own[axis] = own[axis].max(reach[axis]);
                radius[axis] = radius[axis].max(reach[axis]);
            }
            match reach.iter().filter(|&&r| r > 0).count() {
                0 => {}
                1 if neighbourhood == Neighbourhood::Point => neighbourhood = Neighbourhood::Star,
                1 => {}
                _ => neighbourhood = Neighbourhood::Box,
            }
        }
        Footprint {
            radius,
            loads: field_radius.iter().flatten().count(),
            field_radius,
            neighbourhood,
            linear: is_linear(dag),
            taps,
            flops: dag.nodes.iter().map(|&node| flops(node)).sum(),
            stores: dag.outputs.len(),
        }
    }

    /// Returns the bytes per cell of a code that reads and writes each field once per step.
    pub fn bytes(&self, dtype: DType) -> usize {
        (self.loads + self.stores) * dtype.bytes()
    }
}

fn flops(node: Node) -> usize {
    match node {
        Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) | Node::Select(..) => 0,
        // Products of whole numbers.
        Node::Draw(..) => 0,
        Node::Unary(op, _) => op.flops(),
        Node::Binary(op, ..) => op.flops(),
        Node::Fma(..) => 2,
    }
}

/// Checks whether all outputs are linear in the taps. The degree of each node in the taps is 0, 1, or
/// anything else.
fn is_linear(dag: &Dag) -> bool {
    const OTHER: u8 = 2;
    let mut degree: Vec<u8> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let of = |id: u32| degree[id as usize];
        let product = |a: u8, b: u8| if a + b > 1 { OTHER } else { a + b };
        degree.push(match node {
            Node::Const(_) | Node::Param(_) => 0,
            // A weight that varies in space makes a linear map, but not the one with constant weights that
            // "linear" promises.
            Node::Coord(_) => OTHER,
            Node::Tap(_) => 1,
            Node::Unary(Unary::Neg, a) => of(a),
            Node::Binary(Binary::Add | Binary::Sub, a, b) => of(a).max(of(b)),
            Node::Binary(Binary::Mul, a, b) => product(of(a), of(b)),
            Node::Binary(Binary::Div, a, b) if of(b) == 0 => of(a),
            Node::Fma(a, b, c) => product(of(a), of(b)).max(of(c)),
            other => {
                if other.operands().all(|o| of(o) == 0) {
                    0
                } else {
                    OTHER
                }
            }
        });
    }
    dag.outputs.iter().all(|&o| degree[o as usize] < OTHER)
}
