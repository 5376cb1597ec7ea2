//! The parts of the domain that workgroups own.

use abide_core::plan::streaming::portable::PortableStreaming;

use super::Writer;
use crate::text::Text;

impl Writer<'_> {
    /// Returns the text that finds the window and the share of a workgroup.
    pub(super) fn which(&self) -> Text {
        let PortableStreaming { tiles, sides, .. } = *self.streaming;
        let place = |row: String, column: String| {
            [format!("window_y = {row};"), format!("window_x = {column};")].into_iter().collect::<Text>()
        };
        let [middle, _] = self.streaming.windows();
        let mut text: Text = ["shares", "window_y", "window_x", "share"]
            .iter()
            .map(|name| format!("var {name}: i32;"))
            .collect();
        let mut part = |condition: &str, count: &str, from: &str, shares: &str, inner: &Text| {
            text.push(condition);
            text.push(format!("let window = (number - {from}) % {count};"));
            text.push(format!("share = (number - {from}) / {count};"));
            text.push(format!("shares = {shares};"));
            text.push(inner);
        };
        // First come the rows of windows at a side, then the windows at a side in other rows, then all
        // windows at no side.
        let rows =
            place("select(0, TILES_Y - 1, window >= TILES_X)".to_owned(), "window % TILES_X".to_owned());
        let skipped = [usize::from(sides[0] > 0), usize::from(sides[1] > 0)];
        let columns = place(
            format!("{} + (window - {}) / {}", skipped[0], sides[0] * tiles[1], sides[1].max(1)),
            format!("select(0, TILES_X - 1, (window - {}) % {} == 1)", sides[0] * tiles[1], sides[1].max(1)),
        );
        let at_side = match sides {
            [_, 0] => rows,
            [0, _] => columns,
            _ => {
                let mut both = Text::default();
                both.push(format!("if window < {} {{", sides[0] * tiles[1]));
                both.push(rows);
                both.push("} else {");
                both.push(columns);
                both.push("}");
                both
            }
        };
        let across = tiles[1] - sides[1];
        let inner = place(
            format!("{} + window / {across}", skipped[0]),
            format!("{} + window % {across}", skipped[1]),
        );
        match (sides, middle) {
            ([0, 0], _) => part("{", "MIDDLE", "0", "SHARES", &inner),
            (_, 0) => part("{", "SIDES", "0", "SIDE_SHARES", &at_side),
            _ => {
                part("if number < SIDES * SIDE_SHARES {", "SIDES", "0", "SIDE_SHARES", &at_side);
                part("} else {", "MIDDLE", "SIDES * SIDE_SHARES", "SHARES", &inner);
            }
        }
        text.push("}");
        text
    }
}
