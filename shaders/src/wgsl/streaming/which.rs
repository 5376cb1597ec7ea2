//! Which part of the domain a workgroup has.

use abide_core::plan::streaming::portable::PortableStreaming;

use super::Writer;

impl Writer<'_> {
    /// Which window and share a workgroup has.
    pub(super) fn which(&self) -> Vec<String> {
        let PortableStreaming { tiles, sides, .. } = *self.streaming;
        let place = |row: String, column: String| {
            ["window_r", "window_c"]
                .iter()
                .zip([row, column])
                .map(|(name, at)| format!("{name} = {at};"))
                .collect()
        };
        let [middle, _] = self.streaming.windows();
        let mut lines: Vec<String> =
            ["window_r", "window_c", "share"].map(|name| format!("var {name}: i32;")).into();
        let mut part = |condition: &str, count: &str, from: &str, shares: &str, inner: Vec<String>| {
            lines.push(condition.to_owned());
            lines.push(format!("    let window = (number - {from}) % {count};"));
            lines.push(format!("    share = (number - {from}) / {count};"));
            lines.push(format!("    shares = {shares};"));
            lines.extend(inner.into_iter().map(|line| format!("    {line}")));
        };
        // Rows of windows at a side, then what is at a side of other rows, then all that is at none.
        let rows: Vec<String> =
            place("select(0, TILES_R - 1, window >= TILES_C)".to_owned(), "window % TILES_C".to_owned());
        let skipped = [usize::from(sides[0] > 0), usize::from(sides[1] > 0)];
        let columns: Vec<String> = place(
            format!("{} + (window - {}) / {}", skipped[0], sides[0] * tiles[1], sides[1].max(1)),
            format!("select(0, TILES_C - 1, (window - {}) % {} == 1)", sides[0] * tiles[1], sides[1].max(1)),
        );
        let at_side = match sides {
            [_, 0] => rows,
            [0, _] => columns,
            _ => [
                vec![format!("if window < {} {{", sides[0] * tiles[1])],
                rows,
                vec!["} else {".to_owned()],
                columns,
                vec!["}".to_owned()],
            ]
            .concat(),
        };
        let across = tiles[1] - sides[1];
        let inner = || {
            place(
                format!("{} + window / {across}", skipped[0]),
                format!("{} + window % {across}", skipped[1]),
            )
        };
        match (sides, middle) {
            ([0, 0], _) => part("{", "MIDDLE", "0", "SHARES", inner()),
            (_, 0) => part("{", "SIDES", "0", "SIDE_SHARES", at_side),
            _ => {
                part("if number < SIDES * SIDE_SHARES {", "SIDES", "0", "SIDE_SHARES", at_side);
                part("} else {", "MIDDLE", "SIDES * SIDE_SHARES", "SHARES", inner());
            }
        }
        lines.insert(0, "var shares: i32;".to_owned());
        lines.push("}".to_owned());
        lines
    }
}
