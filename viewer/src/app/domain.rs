//! The domain: its planes, the colour bar, and strokes of the brush on it.

use egui::{Align, Id, Layout, Rect, RichText, Ui, UiBuilder, vec2};

use super::state::{Slicing, State, Tool};
use crate::engine::sampling::plane_axes;
use crate::engine::{Frame, Section};
use crate::field::viewport::Viewport;
use crate::field::{Canvas, bar, line};

/// Width of the colour bar and the room before it.
const BAR: f32 = 100.0;
/// Space between planes.
const GAP: f32 = 8.0;

/// Shows the domain in all available room; returns the plane that takes keys. `drawn` says whether a device
/// draws.
pub fn show(ui: &mut Ui, state: &mut State, drawn: bool) -> Option<Id> {
    state.pointed = None;
    let Some(frame) = state.frame.clone() else {
        ui.centered_and_justified(|ui| ui.label(RichText::new("starting…").weak()));
        return None;
    };
    let room = ui.available_rect_before_wrap();
    let is_line = state.problem().is_some_and(|problem| problem.shape.dimensions() == 1);
    let wide = room.width() > 3.0 * BAR && !is_line;
    let field = if wide { room.with_max_x(room.max.x - BAR) } else { room };
    let mut canvas = None;
    if is_line {
        let scale = state.scale();
        let on_nodes = state.centring().is_some_and(|centring| centring.is_on_nodes(2));
        state.show.pixels = pixels(ui, field);
        ui.scope_builder(UiBuilder::new().max_rect(field), |ui| {
            if let Some(image) = frame.images.first() {
                line(ui, image, &state.look, scale, on_nodes);
            }
        });
    } else {
        canvas = planes(ui, state, &frame, field, drawn);
    }
    if wide {
        let beside = Rect::from_min_max(field.right_top() + vec2(14.0, 0.0), room.max);
        ui.scope_builder(UiBuilder::new().max_rect(beside), |ui| {
            bar(ui, &state.look, state.scale(), frame.non_finite > 0);
        });
    }
    ui.advance_cursor_after_rect(room);
    canvas
}

/// Returns the pixels of a part of the screen: (rows, columns).
fn pixels(ui: &Ui, rect: Rect) -> [usize; 2] {
    let size = (rect.size() * ui.pixels_per_point()).max(egui::Vec2::ZERO);
    [size.y.ceil() as usize, size.x.ceil() as usize]
}

fn planes(
    ui: &mut Ui,
    state: &mut State,
    frame: &std::sync::Arc<Frame>,
    room: Rect,
    drawn: bool,
) -> Option<Id> {
    let places = match frame.view.cut {
        Section::Three(_) => thirds(room),
        _ => vec![room],
    };
    let single = places.len() == 1;
    let mut first = None;
    for (number, (image, rect)) in frame.images.iter().zip(places).enumerate() {
        let named = !single || state.problem().is_some_and(|problem| problem.shape.dimensions() == 3);
        let text = caption(state, image.axis);
        let (rect, captioned) =
            if named { (rect.with_min_y(rect.min.y + 20.0), Some(rect)) } else { (rect, None) };
        if let Some(rect) = captioned {
            let place = rect.with_max_y(rect.min.y + 18.0);
            ui.scope_builder(
                UiBuilder::new().max_rect(place).layout(Layout::left_to_right(Align::Center)),
                |ui| {
                    ui.label(RichText::new(&text).small());
                },
            );
        }
        let mut viewport = state.show.sights[number].unwrap_or_else(|| Viewport::all(image.plane));
        let brush = match state.hand.tool {
            Tool::Move => None,
            Tool::Brush => Some(state.hand.radius),
            Tool::Point => Some(0.0),
        };
        let canvas = Canvas {
            frame,
            image: number,
            serial: state.serial,
            look: &state.look,
            scale: state.scale(),
            brush: if state.show.slicing == Slicing::Maximum { None } else { brush },
            label: format!("Field {text}"),
            drawn,
        };
        let shown = ui.scope_builder(UiBuilder::new().max_rect(rect), |ui| canvas.show(ui, &mut viewport));
        let (response, gesture) = shown.inner;
        first.get_or_insert(response.id);
        let moved = viewport != Viewport::all(image.plane).held(rect, image.plane);
        state.show.sights[number] = moved.then_some(viewport);
        if single {
            state.show.pixels = pixels(ui, rect);
            state.show.window = moved.then(|| viewport.window(rect, image.plane));
        } else if number == 0 {
            state.show.pixels = pixels(ui, rect);
            state.show.window = None;
        }
        let cell = |at: [usize; 2]| cell(state, image.axis, at);
        let strokes: Vec<[usize; 3]> = gesture.stroke.into_iter().map(cell).collect();
        if let Some(at) = gesture.hovered {
            state.pointed = Some(cell(at));
        }
        state.paint(image.axis, strokes);
    }
    first
}

/// Returns the places for three planes: one large beside two.
fn thirds(room: Rect) -> Vec<Rect> {
    let middle = room.min.x + (room.width() - GAP) * 0.6;
    let half = room.min.y + (room.height() - GAP) / 2.0;
    let right = room.with_min_x(middle + GAP);
    vec![room.with_max_x(middle), right.with_max_y(half), right.with_min_y(half + GAP)]
}

/// Returns the cell of the domain at a row and column of the plane across an axis.
fn cell(state: &State, axis: usize, [row, column]: [usize; 2]) -> [usize; 3] {
    let mut cell = state.show.at;
    let [rows, columns] = plane_axes(axis);
    (cell[rows], cell[columns]) = (row, column);
    if state.problem().is_some_and(|problem| problem.shape.dimensions() < 3) {
        cell[0] = 0;
    }
    cell
}

fn caption(state: &State, axis: usize) -> String {
    let Some(problem) = state.problem() else { return String::new() };
    let [rows, columns] = plane_axes(axis).map(abide::domain::axis_name);
    let name = problem.program.fields().get(state.show.field).map_or("", String::as_str);
    if problem.shape.dimensions() < 3 {
        return name.to_owned();
    }
    let across = abide::domain::axis_name(axis);
    match state.show.slicing {
        Slicing::Maximum => {
            format!("{name}: the largest along {across}; {rows} down, {columns} to the right")
        }
        _ => format!("{name} at {across} = {}; {rows} down, {columns} to the right", state.show.at[axis]),
    }
}
