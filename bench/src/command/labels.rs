//! Places for labels beside the points of a plot, so that none covers another.

/// A box in pixels: left, top, right and bottom.
pub type Rect = [i32; 4];

/// The occupied parts of a plot, in small boxes.
pub struct Labels {
    within: Rect,
    lines: Vec<Rect>,
    symbols: Vec<Rect>,
    labels: Vec<Rect>,
    leaders: Vec<Rect>,
}

impl Labels {
    /// Makes an empty set of labels, in a plot of this box.
    pub fn new(within: Rect) -> Labels {
        Labels { within, lines: Vec::new(), symbols: Vec::new(), labels: Vec::new(), leaders: Vec::new() }
    }

    /// Keeps labels off a symbol and, where there is another way, their leaders too.
    pub fn block(&mut self, rect: Rect) {
        self.symbols.push(rect);
    }

    /// Keeps labels off a line.
    pub fn block_line(&mut self, from: (i32, i32), to: (i32, i32)) {
        self.lines.extend(along(from, to));
    }

    /// Returns the box for a label of this width and height near a point: the nearest free box whose leader
    /// crosses nothing, or as little as possible; beside the point where no box is free.
    pub fn place(&mut self, point: (i32, i32), size: (i32, i32)) -> Rect {
        // The leader has to cross whatever lies on the point, its own symbol and others.
        let own = [point.0 - 5, point.1 - 5, point.0 + 5, point.1 + 5];
        let others =
            |all: &[Rect]| -> Vec<Rect> { all.iter().copied().filter(|r| !overlap(*r, own)).collect() };
        let (symbols, labels) = (others(&self.symbols), others(&self.labels));
        let clear_of = [symbols, others(&self.leaders)].concat();
        let is_free = |rect: &Rect| {
            let taken = [&self.lines, &self.symbols, &self.labels, &self.leaders];
            inside(*rect, self.within) && !taken.into_iter().flatten().any(|taken| overlap(*rect, *taken))
        };
        let crosses = |rect: &Rect, taken: &[Rect]| {
            along(point, nearest(point, *rect)).any(|piece| taken.iter().any(|one| overlap(piece, *one)))
        };
        // The first of the best kind: no symbol or leader crossed and no label; else no label crossed; else
        // any free box.
        let best = candidates(point, size).filter(is_free).min_by_key(|rect| match () {
            _ if crosses(rect, &labels) => 2,
            _ if crosses(rect, &clear_of) => 1,
            _ => 0,
        });
        let [x, y] = [point.0 + 8, point.1 - size.1 / 2];
        let rect = best.unwrap_or([x, y, x + size.0, y + size.1]);
        self.leaders.extend(along(point, nearest(point, rect)));
        self.labels.push(rect);
        rect
    }
}

/// Returns the point of a box that is nearest to a point; a leader ends there.
pub fn nearest((x, y): (i32, i32), rect: Rect) -> (i32, i32) {
    (x.clamp(rect[0], rect[2]), y.clamp(rect[1], rect[3]))
}

/// Returns small boxes along a line.
fn along(from: (i32, i32), to: (i32, i32)) -> impl Iterator<Item = Rect> {
    let pieces = ((to.0 - from.0).abs().max((to.1 - from.1).abs()) / 2).max(1);
    (0..=pieces).map(move |piece| {
        let at = |a: i32, b: i32| a + (b - a) * piece / pieces;
        let (x, y) = (at(from.0, to.0), at(from.1, to.1));
        [x - 2, y - 2, x + 2, y + 2]
    })
}

/// Returns boxes around a point, at growing distances. At each distance there are sixteen directions: first
/// to the right, then left, above, below and between.
fn candidates((x, y): (i32, i32), (width, height): (i32, i32)) -> impl Iterator<Item = Rect> {
    const SIXTEENTHS: [i32; 16] = [0, 8, 12, 4, 14, 2, 10, 6, 15, 1, 9, 7, 13, 11, 3, 5];
    (0..16).flat_map(move |ring| {
        let gap = f64::from(7 + 6 * ring);
        SIXTEENTHS.into_iter().map(move |sixteenth| {
            let angle = f64::from(sixteenth) * std::f64::consts::FRAC_PI_8;
            // The centres lie on an ellipse that keeps the gap on all sides of the box; y runs downwards.
            let centre = [
                f64::from(x) + angle.cos() * (gap + f64::from(width) / 2.0),
                f64::from(y) + angle.sin() * (gap + f64::from(height) / 2.0),
            ];
            let (left, top) = (centre[0].round() as i32 - width / 2, centre[1].round() as i32 - height / 2);
            [left, top, left + width, top + height]
        })
    })
}

fn inside(a: Rect, b: Rect) -> bool {
    a[0] >= b[0] && a[1] >= b[1] && a[2] <= b[2] && a[3] <= b[3]
}

/// Returns whether two boxes share an inner point.
pub fn overlap(a: Rect, b: Rect) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_crowd_do_not_overlap() {
        let mut labels = Labels::new([0, 0, 400, 300]);
        labels.block_line((0, 300), (400, 100));
        let points: Vec<(i32, i32)> = (0..24).map(|i| (150 + 9 * (i % 6), 120 + 11 * (i / 6))).collect();
        for (x, y) in &points {
            labels.block([x - 4, y - 4, x + 4, y + 4]);
        }
        let mut placed = Vec::new();
        for point in points {
            let rect = labels.place(point, (40, 12));
            assert!(inside(rect, [0, 0, 400, 300]), "{rect:?}");
            assert!(placed.iter().all(|other| !overlap(rect, *other)), "{rect:?} on another");
            placed.push(rect);
        }
    }

    #[test]
    fn alone_a_label_stands_to_the_right() {
        let rect = Labels::new([0, 0, 100, 100]).place((50, 50), (20, 10));
        assert_eq!(rect, [57, 45, 77, 55]);
        // At the right edge: to the left. Without any room: still somewhere.
        assert_eq!(Labels::new([0, 0, 60, 100]).place((50, 50), (20, 10)), [23, 45, 43, 55]);
        assert_eq!(Labels::new([0, 0, 1, 1]).place((0, 0), (20, 10)), [8, -5, 28, 5]);
    }
}
