//! The kernels of a stage that transforms lines.

use abide_core::program::{Indices, StageKind};

use super::stages::{Body, StageContext, Writer, strides};
use crate::program::{self, Slot, Slots};
use crate::text::Text;
use crate::wgsl::{constant, moved};

const TRANSFORM: &str = include_str!("../../../kernels/wgsl/program/transform.wgsl");

/// The rows and columns of results of a workgroup.
const OF_GROUP: usize = 16;

impl StageContext<'_> {
    /// Returns the kernels of a stage that transforms lines and their slots: first one that takes all values along which it does not
    /// compute, if there are any and they go to another buffer.
    pub fn transform(&self, number: usize, own: &[Indices], stays: &[bool]) -> (Vec<Body>, Vec<Slot>) {
        let stage = &self.stages[number];
        let work = program::points(self.kinds, stage, own, self.problem.shape.dimensions());
        let StageKind::Transform(transform) = stage.does else { return (Vec::new(), Vec::new()) };
        let (Some(matrix), Some(of), Some(work)) = (self.matrices.at(number), stage.transformed(), work)
        else {
            return (Vec::new(), Vec::new());
        };
        let mut writer = Writer { context: self, stage, stays, slots: Slots::default(), taps: Vec::new() };
        let [from, to] = [Slot::Read(of), Slot::Write(0)].map(|slot| writer.slots.number(slot));
        let keep = writer.keep(&work, own);
        let [zs, ys, xs] = &own[0];
        let lines = own[0].iter().map(ExactSizeIterator::len).product::<usize>() / matrix.rows.max(1);
        let of_line = matrix.rows.div_ceil(OF_GROUP);
        let mut text = Text::default();
        for (name, value) in [
            ("COUNT", matrix.rows),
            ("PITCH", matrix.pitch),
            ("MATRIX", matrix.first),
            ("LINES", lines),
            ("OF_LINE", of_line),
            ("BESIDE", if transform.axis == 2 { ys.len() } else { xs.len() }.max(1)),
        ] {
            constant(&mut text, name, value);
        }
        text.push(format!("const ALONG_ROWS: bool = {};", transform.axis == 2));
        let [z, y, x] = match transform.axis {
            2 => ["line / BESIDE", "line % BESIDE", "i"],
            1 => ["line / BESIDE", "i", "line % BESIDE"],
            _ => ["i", "line / BESIDE", "line % BESIDE"],
        };
        let (distances, first) = strides(self.kinds.kind(of));
        text.push("fn place(line: i32, i: i32) -> i32 {");
        text.push(format!(
            "return ({} + {z}) * {} + ({} + {y}) * {} + {} + {x}{};\n}}",
            zs.start,
            distances[0],
            ys.start,
            distances[1],
            xs.start,
            moved(-first)
        ));
        text.push(format!("fn source(at: i32) -> real {{\nreturn values_{from}[at];\n}}"));
        text.push(format!("fn store(at: i32, value: real) {{\nvalues_{to}[at] = value;\n}}"));
        text.blank();
        text.filled(TRANSFORM, &[("ended", self.ended())]);
        let slots = writer.slots.0.clone();
        let carry =
            writer.carrying(&work, keep).filter(|_| self.kinds.kind(stage.writes[0]).held() != own[0]);
        let (threads, groups) = (OF_GROUP * OF_GROUP, of_line * lines.div_ceil(OF_GROUP));
        let dtype = self.problem.dtype;
        let workgroup_bytes = 2 * OF_GROUP * (OF_GROUP + 1) * dtype.bytes();
        let body = Body { workgroup_bytes, ..Body::of_values(text, dtype, &slots, threads, groups) };
        (carry.into_iter().chain((lines > 0).then_some(body)).collect(), slots)
    }
}
