//! The part of a plane that is in view: the zoom, the place, and the way from cells to the screen and back.

use egui::{Pos2, Rect, Vec2, pos2, vec2};

/// The largest number of points that a cell can fill.
const CLOSEST: f32 = 64.0;

/// The position of a plane of cells in a rectangle of the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Viewport {
    /// Factor over the size at which the whole plane just fits.
    pub zoom: f32,
    /// The column and row in the middle.
    pub middle: Vec2,
}

impl Viewport {
    /// Returns the viewport of a whole plane of (rows, columns).
    pub fn all(plane: [usize; 2]) -> Viewport {
        Viewport { zoom: 1.0, middle: vec2(plane[1] as f32, plane[0] as f32) / 2.0 }
    }

    /// Returns the points that a cell fills.
    pub fn scale(&self, rect: Rect, plane: [usize; 2]) -> f32 {
        let fitting = (rect.width() / plane[1].max(1) as f32).min(rect.height() / plane[0].max(1) as f32);
        (fitting * self.zoom).max(1e-6)
    }

    /// Returns the same viewport, moved so that the plane's middle or edges are where they may be.
    pub fn held(self, rect: Rect, plane: [usize; 2]) -> Viewport {
        let fitting = Viewport { zoom: 1.0, ..self }.scale(rect, plane);
        let zoom =
            if self.zoom.is_finite() { self.zoom.clamp(1.0, (CLOSEST / fitting).max(1.0)) } else { 1.0 };
        let scale = Viewport { zoom, ..self }.scale(rect, plane);
        let held = |middle: f32, cells: usize, points: f32| {
            let (cells, half) = (cells as f32, points / scale / 2.0);
            if 2.0 * half >= cells || !middle.is_finite() {
                cells / 2.0
            } else {
                middle.clamp(half, cells - half)
            }
        };
        let middle =
            vec2(held(self.middle.x, plane[1], rect.width()), held(self.middle.y, plane[0], rect.height()));
        Viewport { zoom, middle }
    }

    /// Returns the viewport zoomed by a factor; the cell under `at` stays there.
    pub fn zoomed(self, by: f32, at: Pos2, rect: Rect, plane: [usize; 2]) -> Viewport {
        let under = self.cell_at(at, rect, plane);
        let mut new = Viewport { zoom: self.zoom * by, ..self }.held(rect, plane);
        new.middle = under - (at - rect.center()) / new.scale(rect, plane);
        new.held(rect, plane)
    }

    /// Returns the column and row at a point of the screen, with their fractions.
    pub fn cell_at(&self, at: Pos2, rect: Rect, plane: [usize; 2]) -> Vec2 {
        self.middle + (at - rect.center()) / self.scale(rect, plane)
    }

    /// Returns the point of the screen at a column and row.
    pub fn point_at(&self, cell: Vec2, rect: Rect, plane: [usize; 2]) -> Pos2 {
        rect.center() + (cell - self.middle) * self.scale(rect, plane)
    }

    /// Returns the part of the screen that the plane fills.
    pub fn covered(&self, rect: Rect, plane: [usize; 2]) -> Rect {
        let whole = Rect::from_min_max(
            self.point_at(Vec2::ZERO, rect, plane),
            self.point_at(vec2(plane[1] as f32, plane[0] as f32), rect, plane),
        );
        whole.intersect(rect)
    }

    /// Returns the (row, column) of the cell at a point of the screen, where there is one.
    pub fn index_at(&self, at: Pos2, rect: Rect, plane: [usize; 2]) -> Option<[usize; 2]> {
        let cell = self.cell_at(at, rect, plane);
        let inside = cell.x >= 0.0 && cell.y >= 0.0 && cell.x < plane[1] as f32 && cell.y < plane[0] as f32;
        (inside && rect.contains(at)).then_some([cell.y as usize, cell.x as usize])
    }

    /// Returns the cells in view, `[low, high)` of (rows, columns), with a margin so that a small move shows
    /// no gap.
    pub fn window(&self, rect: Rect, plane: [usize; 2]) -> [[usize; 2]; 2] {
        let margin = vec2(rect.width(), rect.height()) / self.scale(rect, plane) / 8.0;
        let low = self.cell_at(rect.min, rect, plane) - margin;
        let high = self.cell_at(rect.max, rect, plane) + margin;
        let within = |x: f32, cells: usize| (x.max(0.0) as usize).min(cells);
        [
            [within(low.y.floor(), plane[0]), within(low.x.floor(), plane[1])],
            [within(high.y.ceil(), plane[0]), within(high.x.ceil(), plane[1])],
        ]
    }
}

/// Returns the middle of a cell, as a place in cells.
pub fn centre([row, column]: [usize; 2]) -> Vec2 {
    pos2(column as f32 + 0.5, row as f32 + 0.5).to_vec2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect() -> Rect {
        Rect::from_min_size(pos2(10.0, 20.0), vec2(300.0, 200.0))
    }

    #[test]
    fn the_whole_plane_fits_and_points_go_there_and_back() {
        let plane = [100, 50];
        let viewport = Viewport::all(plane).held(rect(), plane);
        assert_eq!(viewport.scale(rect(), plane), 2.0);
        assert_eq!(viewport.covered(rect(), plane).height(), 200.0);
        let at = viewport.point_at(centre([40, 30]), rect(), plane);
        assert_eq!(viewport.index_at(at, rect(), plane), Some([40, 30]));
        assert_eq!(viewport.index_at(pos2(11.0, 21.0), rect(), plane), None);
        assert_eq!(viewport.window(rect(), plane), [[0, 0], [100, 50]]);
    }

    #[test]
    fn zooming_keeps_the_cell_under_the_pointer_and_ends() {
        let plane = [1000, 1000];
        let at = pos2(150.0, 90.0);
        let mut viewport = Viewport::all(plane);
        let cell = viewport.index_at(at, rect(), plane);
        for _ in 0..3 {
            viewport = viewport.zoomed(2.0, at, rect(), plane);
            assert_eq!(viewport.index_at(at, rect(), plane), cell);
        }
        for _ in 0..100 {
            viewport = viewport.zoomed(2.0, at, rect(), plane);
        }
        assert_eq!(viewport.scale(rect(), plane), CLOSEST);
        assert_eq!(viewport.zoomed(0.0, at, rect(), plane), Viewport::all(plane));
    }

    #[test]
    fn nothing_breaks_without_room_or_with_one_cell() {
        let flat = Rect::from_min_size(pos2(0.0, 0.0), Vec2::ZERO);
        for plane in [[1, 1], [1, 4096], [0, 0]] {
            let viewport =
                Viewport::all(plane).held(flat, plane).zoomed(f32::NAN, pos2(0.0, 0.0), flat, plane);
            assert!(viewport.zoom >= 1.0 && viewport.scale(flat, plane) > 0.0);
            viewport.window(flat, plane);
        }
    }
}
