//! Curves, and plots that look alike.

use egui::{Color32, Ui};
use egui_plot::Plot;

/// The colours of curves, each on dark and on light background.
const COLOURS: [[[u8; 3]; 2]; 6] = [
    [[94, 201, 190], [14, 116, 110]],
    [[253, 190, 80], [190, 84, 0]],
    [[150, 170, 255], [58, 76, 196]],
    [[240, 140, 170], [176, 30, 84]],
    [[170, 214, 110], [78, 122, 12]],
    [[200, 200, 200], [90, 90, 90]],
];

/// Returns the colour of a curve by its number.
pub fn colour(ui: &Ui, number: usize) -> Color32 {
    let [dark, light] = COLOURS[number % COLOURS.len()];
    let [r, g, b] = if ui.visuals().dark_mode { dark } else { light };
    Color32::from_rgb(r, g, b)
}

/// Makes a small plot that stays where it is.
pub fn still<'a>(ui: &Ui, id: &str) -> Plot<'a> {
    Plot::new(id)
        .grid_color(ui.visuals().weak_text_color().gamma_multiply(0.5))
        .grid_spacing(12.0..=36.0)
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .y_axis_min_width(34.0)
}

/// Returns the parts of a curve, which breaks where a value is not finite.
pub fn parts(points: &[[f64; 2]]) -> impl Iterator<Item = &[[f64; 2]]> {
    points.split(|point| !point[1].is_finite()).filter(|part| !part.is_empty())
}
