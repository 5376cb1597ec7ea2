//! The keyboard: a key for everything that the pointer can do.

use egui::{Context, Key, Modifiers, ThemePreference};

use super::state::{Screen, Slicing, State, Tab, Tool};
use crate::engine::{Order, Speed};
use crate::field::canvas_zoom;
use crate::field::look::{ColourMap, Span};
use crate::field::viewport::Viewport;

/// The keys and their actions, as the help shows them.
pub const HELP: &[(&str, &str)] = &[
    ("Space", "run or pause"),
    (".", "one step"),
    ("R", "back to the first step"),
    ("Ctrl+Enter", "start what the model's panel says"),
    ("Q", "as fast as possible, or some steps per frame"),
    ("1 – 5", "the pages beside the field"),
    ("G", "the gallery"),
    ("F", "all of the field in sight"),
    ("+ −", "zoom; with the field in focus, the arrows move it"),
    ("N", "the next field"),
    ("X", "the next axis of a box"),
    ("PgUp PgDn", "the slice of a box"),
    ("Z", "a slice, three slices, the maximum"),
    ("C", "the next colour map"),
    ("L", "logarithmic or linear"),
    ("H", "hold the range as it is, or automatic"),
    ("K", "contour lines"),
    ("I", "values between cells"),
    ("M B O", "move, brush, point source"),
    ("[ ]", "the brush's radius"),
    ("S", "the curves of the computed scalars"),
    ("D", "the program's loops: which waits for which"),
    ("P", "a picture of what is shown"),
    ("V", "begin or end a recording"),
    ("T", "light or dark"),
    ("Ctrl + −", "the size of everything"),
    ("F1 ?", "these keys"),
    ("Esc", "close what is open"),
    ("Tab", "from one control to the next; Space or Enter presses it"),
];

/// Acts on the keys pressed since the last frame.
pub fn act(ctx: &Context, state: &mut State, canvas: Option<egui::Id>) {
    let pressed = |modifiers: Modifiers, key: Key| ctx.input_mut(|input| input.consume_key(modifiers, key));
    if ctx.text_edit_focused() {
        // Formulas run as soon as they are written.
        if pressed(Modifiers::CTRL, Key::Enter) {
            state.restart();
        }
        return;
    }
    let plain = |key: Key| pressed(Modifiers::NONE, key);
    if plain(Key::F1) || pressed(Modifiers::SHIFT, Key::Questionmark) || plain(Key::Questionmark) {
        state.help = !state.help;
    }
    if plain(Key::Escape) {
        escape(state);
    }
    if plain(Key::T) {
        let dark = ctx.theme() == egui::Theme::Dark;
        ctx.set_theme(if dark { ThemePreference::Light } else { ThemePreference::Dark });
    }
    if state.screen != Screen::Run {
        return;
    }
    if pressed(Modifiers::CTRL, Key::Enter) {
        state.restart();
    }
    // Space itself presses a control that has the focus.
    let focused = ctx.memory(|memory| memory.focused());
    if (focused.is_none() || focused == canvas) && plain(Key::Space) {
        state.toggle();
    }
    if plain(Key::Period) {
        state.orders.push(Order::Advance(1));
    }
    if plain(Key::R) {
        state.orders.push(Order::Reset);
    }
    if plain(Key::G) {
        state.leave();
        return;
    }
    if plain(Key::Q) {
        state.speed = if state.speed == Speed::Fastest { Speed::PerFrame(1) } else { Speed::Fastest };
        state.orders.push(Order::Speed(state.speed));
    }
    for (key, tab) in [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5].into_iter().zip(Tab::ALL) {
        if plain(key) {
            state.tab = tab;
        }
    }
    view(state, &plain);
    colours(state, &plain);
    for (key, tool) in [(Key::M, Tool::Move), (Key::B, Tool::Brush), (Key::O, Tool::Point)] {
        if plain(key) {
            state.hand.tool = tool;
        }
    }
    if plain(Key::OpenBracket) {
        state.hand.radius = (state.hand.radius / 1.25 - 0.5).max(0.0);
    }
    if plain(Key::CloseBracket) {
        state.hand.radius = (state.hand.radius * 1.25 + 0.5).min(4096.0);
    }
    if plain(Key::S) {
        state.curves.open = !state.curves.open;
    }
    if plain(Key::D) {
        state.loops.open = !state.loops.open;
    }
    if plain(Key::P) {
        state.keep_picture();
    }
    if plain(Key::V) {
        state.record();
    }
}

fn escape(state: &mut State) {
    if state.help {
        state.help = false;
    } else if state.run.is_some() && state.loops.open {
        state.loops.open = false;
    } else if !state.notices.dismiss() {
        state.hand.tool = Tool::Move;
    }
}

fn view(state: &mut State, plain: &dyn Fn(Key) -> bool) {
    let (Some(problem), Some(extents)) = (state.problem(), state.extents()) else { return };
    let (kinds, axes) = (problem.program.kinds().to_vec(), problem.shape.dimensions());
    if plain(Key::N) {
        let others = (1..=kinds.len()).map(|by| (state.show.field + by) % kinds.len());
        state.show.field = others.into_iter().find(|&field| !kinds[field].is_internal).unwrap_or(0);
    }
    if plain(Key::F) {
        state.fit();
    }
    let (closer, farther) = (plain(Key::Plus) || plain(Key::Equals), plain(Key::Minus));
    if (closer || farther)
        && let Some(frame) = &state.frame
    {
        for (viewport, image) in state.show.sights.iter_mut().zip(&frame.images) {
            canvas_zoom(viewport.get_or_insert_with(|| Viewport::all(image.plane)), closer);
        }
    }
    if axes < 3 {
        return;
    }
    let axis = state.show.axis;
    if plain(Key::X) {
        state.show.axis = (axis + 1) % 3;
        state.fit();
    }
    if plain(Key::PageUp) {
        state.show.at[axis] = (state.show.at[axis] + 1).min(extents[axis] - 1);
    }
    if plain(Key::PageDown) {
        state.show.at[axis] = state.show.at[axis].saturating_sub(1);
    }
    if plain(Key::Z) {
        state.show.slicing = match state.show.slicing {
            Slicing::Slice => Slicing::Three,
            Slicing::Three => Slicing::Maximum,
            Slicing::Maximum => Slicing::Slice,
        };
        state.fit();
    }
}

fn colours(state: &mut State, plain: &dyn Fn(Key) -> bool) {
    if plain(Key::C) {
        let at = ColourMap::ALL.iter().position(|&map| map == state.look.map).unwrap_or(0);
        state.look.map = ColourMap::ALL[(at + 1) % ColourMap::ALL.len()];
    }
    if plain(Key::L) {
        state.look.log = !state.look.log;
    }
    if plain(Key::H) {
        state.look.span = match state.look.span {
            Span::Auto => {
                let scale = state.scale();
                Span::Fixed { low: scale.low, high: scale.high }
            }
            Span::Fixed { .. } => Span::Auto,
        };
    }
    if plain(Key::K) {
        state.look.contours = !state.look.contours;
    }
    if plain(Key::I) {
        state.look.smooth = !state.look.smooth;
    }
}
