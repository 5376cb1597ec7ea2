//! The window's look in light and in dark.

use egui::{Color32, Context, FontId, Stroke, TextStyle, Theme};

/// Returns the colour that panels lie on.
pub fn background(theme: Theme) -> Color32 {
    match theme {
        Theme::Dark => Color32::from_gray(24),
        Theme::Light => Color32::from_gray(249),
    }
}

/// Sets fonts, spacing and colours of both themes.
pub fn apply(ctx: &Context) {
    for theme in [Theme::Dark, Theme::Light] {
        ctx.style_mut_of(theme, |style| {
            style.spacing.item_spacing = egui::vec2(8.0, 6.0);
            style.spacing.button_padding = egui::vec2(8.0, 3.0);
            style.spacing.interact_size.y = 22.0;
            style.spacing.slider_width = 150.0;
            style.text_styles.insert(TextStyle::Body, FontId::proportional(14.0));
            style.text_styles.insert(TextStyle::Button, FontId::proportional(14.0));
            style.text_styles.insert(TextStyle::Small, FontId::proportional(12.0));
            style.text_styles.insert(TextStyle::Monospace, FontId::monospace(13.0));
            style.text_styles.insert(TextStyle::Heading, FontId::proportional(17.0));
            let visuals = &mut style.visuals;
            // The background is drawn once, under all panels.
            visuals.panel_fill = Color32::TRANSPARENT;
            let accent = match theme {
                Theme::Dark => {
                    visuals.faint_bg_color = Color32::from_gray(33);
                    visuals.widgets.noninteractive.fg_stroke.color = Color32::from_gray(205);
                    visuals.widgets.inactive.fg_stroke.color = Color32::from_gray(222);
                    visuals.weak_text_color = Some(Color32::from_gray(155));
                    visuals.error_fg_color = Color32::from_rgb(255, 128, 118);
                    Color32::from_rgb(38, 106, 110)
                }
                Theme::Light => {
                    visuals.faint_bg_color = Color32::from_gray(240);
                    visuals.widgets.noninteractive.fg_stroke.color = Color32::from_gray(45);
                    visuals.widgets.inactive.fg_stroke.color = Color32::from_gray(40);
                    visuals.weak_text_color = Some(Color32::from_gray(100));
                    visuals.error_fg_color = Color32::from_rgb(176, 28, 20);
                    Color32::from_rgb(150, 214, 210)
                }
            };
            visuals.selection.bg_fill = accent;
            let ink = if theme == Theme::Dark {
                Color32::from_rgb(216, 245, 242)
            } else {
                Color32::from_rgb(8, 60, 62)
            };
            visuals.selection.stroke = Stroke::new(1.0, ink);
        });
    }
}
