//! The plane as a widget: drawn, moved, zoomed, pointed at and painted on.

use std::sync::Arc;

use egui::{
    Color32, CornerRadius, CursorIcon, Key, PointerButton, Rect, Response, Sense, Stroke, StrokeKind, Ui,
    Vec2, vec2,
};

use super::gpu::{self, Plane};
use super::look::{Look, Scale};
use super::viewport::Viewport;
use crate::engine::Frame;

/// Lines of equal values where they are drawn.
const CONTOURS: u32 = 9;
/// Factor by which a press of a key or a notch of a wheel zooms.
const ZOOM: f32 = 1.25;

/// The pointer's actions on the field.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gesture {
    /// The (row, column) under the pointer.
    pub hovered: Option<[usize; 2]>,
    /// The (rows, columns) that a stroke of the brush went over.
    pub stroke: Vec<[usize; 2]>,
}

/// One plane on screen.
pub struct Canvas<'a> {
    /// The frame and the number of the image.
    pub frame: &'a Arc<Frame>,
    /// See [`Canvas::frame`].
    pub image: usize,
    /// Number that distinguishes frames.
    pub serial: u64,
    /// The look of the field.
    pub look: &'a Look,
    /// The scale of its colours.
    pub scale: Scale,
    /// The radius in cells of the brush for strokes; `None` where dragging moves the plane.
    pub brush: Option<f64>,
    /// The plane's name for users who do not see it.
    pub label: String,
    /// Whether a device draws.
    pub drawn: bool,
}

impl Canvas<'_> {
    /// Shows the plane in all available room.
    pub fn show(self, ui: &mut Ui, viewport: &mut Viewport) -> (Response, Gesture) {
        let (rect, response) =
            ui.allocate_exact_size(ui.available_size().max(Vec2::ZERO), Sense::click_and_drag());
        let Some(image) = self.frame.images.get(self.image) else { return (response, Gesture::default()) };
        let plane = image.plane;
        let label = self.label.clone();
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &label));
        *viewport = viewport.held(rect, plane);
        let gesture = self.gesture(ui, &response, rect, plane, viewport);
        if ui.is_rect_visible(rect) && rect.width() >= 1.0 && rect.height() >= 1.0 {
            self.draw(ui, rect, plane, viewport);
            self.draw_brush(ui, rect, plane, viewport, &gesture);
        }
        (response, gesture)
    }

    fn gesture(
        &self,
        ui: &Ui,
        response: &Response,
        rect: Rect,
        plane: [usize; 2],
        viewport: &mut Viewport,
    ) -> Gesture {
        let moves = self.brush.is_none();
        if response.dragged_by(PointerButton::Middle)
            || response.dragged_by(PointerButton::Secondary)
            || (moves && response.dragged_by(PointerButton::Primary))
        {
            viewport.middle -= response.drag_delta() / viewport.scale(rect, plane);
        }
        if response.double_clicked() && moves {
            *viewport = Viewport::all(plane);
        }
        if let Some(at) = response.hover_pos() {
            let (pinched, rolled) = ui.input(|input| (input.zoom_delta(), input.smooth_scroll_delta().y));
            let by = pinched * (rolled / 50.0 * ZOOM.ln()).exp();
            if by != 1.0 {
                *viewport = viewport.zoomed(by, at, rect, plane);
            }
        }
        if response.has_focus() {
            self.keys(ui, rect, plane, viewport);
        }
        *viewport = viewport.held(rect, plane);
        let hovered = response.hover_pos().and_then(|at| viewport.index_at(at, rect, plane));
        let pressed = response.dragged_by(PointerButton::Primary) || response.is_pointer_button_down_on();
        let mut stroke = Vec::new();
        if !moves
            && pressed
            && ui.input(|input| input.pointer.primary_down() || input.pointer.primary_released())
        {
            let at = response.interact_pointer_pos();
            let from = at.map(|at| at - response.drag_delta());
            stroke = self.between(from, at, rect, plane, viewport);
        } else if !moves && response.clicked() {
            let at = response.interact_pointer_pos();
            stroke = self.between(at, at, rect, plane, viewport);
        }
        Gesture { hovered, stroke }
    }

    /// Moves the plane by the arrow keys once the plane has the focus.
    fn keys(&self, ui: &Ui, rect: Rect, plane: [usize; 2], viewport: &mut Viewport) {
        let step = rect.size() / viewport.scale(rect, plane) / 10.0;
        ui.input(|input| {
            for (key, way) in [
                (Key::ArrowLeft, vec2(-step.x, 0.0)),
                (Key::ArrowRight, vec2(step.x, 0.0)),
                (Key::ArrowUp, vec2(0.0, -step.y)),
                (Key::ArrowDown, vec2(0.0, step.y)),
            ] {
                if input.key_pressed(key) {
                    viewport.middle += way;
                }
            }
        });
    }

    /// Returns the cells between two points of a drag, so that a fast stroke leaves no gaps.
    fn between(
        &self,
        from: Option<egui::Pos2>,
        to: Option<egui::Pos2>,
        rect: Rect,
        plane: [usize; 2],
        viewport: &Viewport,
    ) -> Vec<[usize; 2]> {
        let (Some(from), Some(to)) = (from, to) else { return Vec::new() };
        let apart = (to - from).length() / viewport.scale(rect, plane);
        let steps = (apart / (self.brush.unwrap_or(1.0) as f32 / 2.0).max(1.0)).ceil().min(4096.0) as usize;
        let mut cells: Vec<[usize; 2]> = (0..=steps)
            .filter_map(|i| viewport.index_at(from.lerp(to, i as f32 / steps.max(1) as f32), rect, plane))
            .collect();
        cells.dedup();
        cells
    }

    fn draw(&self, ui: &Ui, rect: Rect, plane: [usize; 2], viewport: &Viewport) {
        let covered = viewport.covered(rect, plane);
        if !covered.is_positive() {
            return;
        }
        if self.drawn {
            let low = viewport.cell_at(covered.min, rect, plane);
            let size = covered.size() / viewport.scale(rect, plane);
            let picture = Plane {
                frame: self.frame.clone(),
                image: self.image,
                serial: self.serial,
                view: [low.into(), size.into()],
                scale: self.scale,
                map: self.look.map,
                contours: if self.look.contours { CONTOURS } else { 0 },
                smooth: self.look.smooth,
            };
            ui.painter_at(rect).add(gpu::shape(covered, picture));
        }
        let edge = Stroke::new(1.0, ui.visuals().widgets.noninteractive.bg_stroke.color);
        ui.painter_at(rect.expand(1.0)).rect_stroke(covered, CornerRadius::ZERO, edge, StrokeKind::Outside);
    }

    fn draw_brush(&self, ui: &Ui, rect: Rect, plane: [usize; 2], viewport: &Viewport, gesture: &Gesture) {
        let (Some(radius), Some(cell)) = (self.brush, gesture.hovered) else { return };
        let at = viewport.point_at(super::viewport::centre(cell), rect, plane);
        let radius = (radius as f32 + 0.5) * viewport.scale(rect, plane);
        let painter = ui.painter_at(rect);
        // Visible on any colour.
        painter.circle_stroke(at, radius, Stroke::new(2.5, Color32::from_black_alpha(160)));
        painter.circle_stroke(at, radius, Stroke::new(1.0, Color32::WHITE));
        ui.set_cursor_icon(CursorIcon::Crosshair);
    }
}

/// Zooms about the middle, as keys do.
pub fn zoom(viewport: &mut Viewport, closer: bool) {
    viewport.zoom *= if closer { ZOOM } else { 1.0 / ZOOM };
}
