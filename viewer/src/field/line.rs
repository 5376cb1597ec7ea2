//! A field of one axis, as a curve.

use egui::Ui;
use egui_plot::{Line, Plot, PlotPoints};

use super::look::{Look, MARK, Scale};
use crate::engine::Image;
use crate::plot::parts;

/// Shows the values over the cells, or over the nodes; values that are not finite are marked along the bottom.
pub fn line(ui: &mut Ui, image: &Image, look: &Look, scale: Scale, on_nodes: bool) {
    // A cell's value stands in its middle, a node's on the node.
    let within = (image.factor[1] as f64 - f64::from(u8::from(on_nodes))) / 2.0;
    let x = |i: usize| (image.low[1] + i * image.factor[1]) as f64 + within;
    let values = image.values.iter().map(|&v| f64::from(v));
    let points: Vec<[f64; 2]> = values.clone().enumerate().map(|(i, v)| [x(i), v]).collect();
    let marks: Vec<[f64; 2]> =
        values.enumerate().filter(|(_, v)| !v.is_finite()).map(|(i, _)| [x(i), scale.low]).collect();
    let [r, g, b] = look.map.at(0.6);
    Plot::new("line")
        .include_y(scale.low)
        .include_y(scale.high)
        .grid_color(ui.visuals().weak_text_color().gamma_multiply(0.4))
        .x_axis_label(if on_nodes { "node" } else { "cell" })
        .show(ui, |plot| {
            for (number, part) in parts(&points).enumerate() {
                let curve = Line::new(format!("values {number}"), PlotPoints::from(part.to_vec()));
                plot.line(curve.color(egui::Color32::from_rgb(r, g, b)).width(1.5));
            }
            let [r, g, b] = MARK;
            let marks = egui_plot::Points::new("not finite", PlotPoints::from(marks));
            plot.points(marks.color(egui::Color32::from_rgb(r, g, b)).radius(3.0));
        });
}
