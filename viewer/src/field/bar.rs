//! The colour bar with its numbers.

use egui::{
    Align2, Color32, CornerRadius, FontId, Mesh, Rect, Sense, Stroke, StrokeKind, TextStyle, Ui, pos2, vec2,
};

use super::look::{Look, MARK, Scale};

/// Width of the coloured strip, in points.
const STRIP: f32 = 18.0;
/// Width of the numbers beside it.
const NUMBERS: f32 = 66.0;
/// The least room between two numbers.
const ROOM: f32 = 44.0;

/// Shows the bar in all available height; `marked` adds the colour of NaN and infinity.
pub fn bar(ui: &mut Ui, look: &Look, scale: Scale, marked: bool) {
    let height = ui.available_height();
    let (rect, response) = ui.allocate_exact_size(vec2(STRIP + NUMBERS, height), Sense::hover());
    let text = format!("Colours from {} to {}", number(scale.low), number(scale.high));
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &text));
    let font = TextStyle::Small.resolve(ui.style());
    let strip = Rect::from_min_max(
        rect.min + vec2(0.0, font.size / 2.0),
        pos2(rect.min.x + STRIP, rect.max.y - font.size / 2.0 - if marked { 26.0 } else { 0.0 }),
    );
    if !ui.is_rect_visible(rect) || strip.height() < 4.0 {
        return;
    }
    let painter = ui.painter_at(rect);
    let mut mesh = Mesh::default();
    const BANDS: u32 = 64;
    for i in 0..=BANDS {
        let place = i as f32 / BANDS as f32;
        let [r, g, b] = look.map.at(f64::from(place));
        let y = strip.max.y - place * strip.height();
        mesh.colored_vertex(pos2(strip.min.x, y), Color32::from_rgb(r, g, b));
        mesh.colored_vertex(pos2(strip.max.x, y), Color32::from_rgb(r, g, b));
        if i > 0 {
            let at = 2 * i;
            mesh.add_triangle(at - 2, at - 1, at);
            mesh.add_triangle(at - 1, at, at + 1);
        }
    }
    painter.add(mesh);
    let line = Stroke::new(1.0, ui.visuals().widgets.noninteractive.bg_stroke.color);
    painter.rect_stroke(strip, CornerRadius::ZERO, line, StrokeKind::Outside);
    for value in marks(scale, (strip.height() / ROOM).clamp(1.0, 10.0) as usize) {
        let Some(place) = scale.place(value) else { continue };
        let y = strip.max.y - place as f32 * strip.height();
        painter.hline(strip.max.x..=strip.max.x + 4.0, y, Stroke::new(1.0, ui.visuals().text_color()));
        write(&painter, ui, pos2(strip.max.x + 8.0, y), &number(value), &font);
    }
    if marked {
        let [r, g, b] = MARK;
        let at = Rect::from_min_size(pos2(strip.min.x, strip.max.y + 12.0), vec2(STRIP, 12.0));
        painter.rect_filled(at, CornerRadius::ZERO, Color32::from_rgb(r, g, b));
        write(&painter, ui, pos2(strip.max.x + 8.0, at.center().y), "not finite", &font);
    }
}

/// Returns about `most` round values along a scale: multiples of 1, 2 or 5 times a power of ten, or powers of
/// ten.
fn marks(scale: Scale, most: usize) -> Vec<f64> {
    let most = most.max(1) as f64;
    if scale.log {
        let (low, high) = (scale.low.log10().ceil() as i32, scale.high.log10().floor() as i32);
        let every = (f64::from(high - low + 1) / most).ceil().max(1.0) as usize;
        let powers: Vec<f64> = (low..=high).step_by(every).map(|power| 10f64.powi(power)).collect();
        return if powers.len() > 1 { powers } else { vec![scale.low, scale.high] };
    }
    let narrow = scale.high - scale.low <= 1e-12 * scale.high.abs().max(scale.low.abs());
    if narrow {
        return vec![scale.low, scale.high];
    }
    let rough = (scale.high / most - scale.low / most).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    // Counted from whole multiples, so that zero is zero. A quotient that rounding put beside a whole number
    // counts as that number.
    let (low, high) = (scale.low / step, scale.high / step);
    let first = (low - 1e-9 * low.abs()).ceil();
    let count = ((high + 1e-9 * high.abs()).floor() - first).clamp(0.0, 100.0) as usize;
    let values: Vec<f64> = (0..=count).map(|i| (first + i as f64) * step).collect();
    if values.iter().all(|v| v.is_finite()) && values.len() > 1 {
        values
    } else {
        vec![scale.low, scale.high]
    }
}

fn write(painter: &egui::Painter, ui: &Ui, at: egui::Pos2, text: &str, font: &FontId) {
    painter.text(at, Align2::LEFT_CENTER, text, font.clone(), ui.visuals().text_color());
}

/// Formats a value with all the digits of an f32.
pub fn exact(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        format!("{value:.6e}")
    } else {
        format!("{value:.7}")
    }
}

/// Formats a number in at most about eight characters.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !value.is_finite() {
        value.to_string()
    } else if (1e-3..1e5).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_lie_on_the_scale() {
        let scale = |low, high, log| Scale { low, high, log };
        assert_eq!(
            marks(scale(5e-12, 1.0, false), 10),
            (1..=10).map(|i| f64::from(i) * 0.1).collect::<Vec<_>>()
        );
        assert_eq!(
            marks(scale(-0.6, 0.6, false), 7),
            [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0].map(|i| i * 0.2)
        );
        assert_eq!(marks(scale(1e-6, 1.0, true), 4), [1e-6, 1e-4, 1e-2, 1.0]);
        assert_eq!(marks(scale(2.0, 3.0, true), 4), [2.0, 3.0]);
        assert_eq!(marks(scale(f64::MIN, f64::MAX, false), 3), [f64::MIN, f64::MAX]);
        assert_eq!(marks(scale(1.0, 1.0 + f64::EPSILON, false), 9).len(), 2);
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0.0, "0"), (0.25, "0.25"), (-1.0, "-1"), (1234.5, "1234"), (1e-9, "1.00e-9"), (0.001, "0.001")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(3.0e7), "3.00e7");
        assert_eq!(number(f64::NAN), "NaN");
    }
}
