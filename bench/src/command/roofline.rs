//! The roofline: rates against the limits of memory and arithmetic (Williams, Waterman and Patterson, CACM
//! 2009).
//!
//! A stencil's place along the x axis is that of a code that loads and stores each cell once per step:
//! `2 · points` operations over `2 · bytes`. Such a code stays under the memory's roof, wherever it runs. A
//! code that keeps cells on the chip, or takes several steps per pass, can rise above the memory's roof, up
//! to the roof of the arithmetic.

use std::fmt::Display;

use abide::{DType, Error, Result, Shape, catalogue};
use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::labels::{Labels, Rect, nearest};
use super::record::{Line, Machine};
use crate::Domain;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

const PANEL: u32 = 620;
const HEIGHT: u32 = 630;
const LEGEND: u32 = 50;
const FONT: &str = "sans-serif";
const LABEL: i32 = 11;
const INK: RGBColor = RGBColor(40, 40, 40);
const MEMORY: RGBColor = RGBColor(120, 120, 120);
const ON_CHIP: RGBColor = RGBColor(31, 119, 180);
const LARGE: RGBColor = RGBColor(214, 96, 20);
const OTHER: RGBColor = RGBColor(90, 140, 90);

/// A measured rate in the plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    stencil: String,
    points: usize,
    dtype: DType,
    shape: Shape,
    domain: Option<Domain>,
    gcells_per_s: f64,
}

impl Mark {
    /// Returns a line's mark; an error where the line names no stencil.
    pub fn of(line: &Line) -> Result<Mark> {
        let shape: Shape = line.domain.parse()?;
        let program = catalogue::find(&line.stencil)?.program(shape.dimensions())?;
        if line.gcells_per_s.is_nan() || line.gcells_per_s <= 0.0 || line.gcells_per_s.is_infinite() {
            let change = "leave its line out";
            return Err(Error::invalid(
                format!("rate of {}", line.stencil),
                "it is no positive number",
                change,
            ));
        }
        Ok(Mark {
            stencil: line.stencil.clone(),
            points: program.stages().iter().map(|stage| stage.footprint.taps).sum(),
            dtype: line.dtype.parse()?,
            shape,
            domain: Domain::of(&shape),
            gcells_per_s: line.gcells_per_s,
        })
    }

    /// Returns the operations per byte of a code whose cells go through memory in every step.
    fn intensity(&self) -> f64 {
        self.points as f64 / self.dtype.bytes() as f64
    }

    /// Returns the operations per second, in 10⁹.
    fn gflop_per_s(&self) -> f64 {
        self.gcells_per_s * 2.0 * self.points as f64
    }

    fn colour(&self) -> RGBColor {
        match self.domain.map(Domain::friendly) {
            Some(Domain::OnChip) => ON_CHIP,
            Some(_) => LARGE,
            None => OTHER,
        }
    }

    /// Returns whether the symbol is filled; symbols of unfriendly domains are hollow.
    fn is_filled(&self) -> bool {
        self.domain.is_none_or(|domain| domain.friendly() == domain)
    }
}

/// Draws the plot as SVG: a panel for each type that was measured.
pub fn draw(machine: &Machine, marks: &[Mark]) -> Result<String> {
    let dtypes: Vec<DType> = [DType::F64, DType::F32]
        .into_iter()
        .filter(|&dtype| marks.iter().any(|mark| mark.dtype == dtype))
        .collect();
    if dtypes.is_empty() {
        return Err(Error::invalid(
            "the roofline",
            "there is no rate to draw",
            "give results that have some",
        ));
    }
    let mut svg = String::new();
    paint(&mut svg, machine, marks, &dtypes)
        .map_err(|e| Error::invalid("the roofline", e, "leave --plot out"))?;
    Ok(svg)
}

fn paint(svg: &mut String, machine: &Machine, marks: &[Mark], dtypes: &[DType]) -> Result<(), String> {
    let size = (PANEL * dtypes.len() as u32, HEIGHT);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE).map_err(text_of)?;
    let title = format!("Linear stencils on {}", machine.device);
    let root = root.titled(&title, (FONT, 20).into_font().color(&INK)).map_err(text_of)?;
    let (panels, legend) = root.split_vertically(root.dim_in_pixel().1 - LEGEND);
    // One range for all panels, so that they can be compared.
    let ranges = Ranges::of(machine, marks, dtypes);
    for (panel, &dtype) in panels.split_evenly((1, dtypes.len())).iter().zip(dtypes) {
        let own: Vec<&Mark> = marks.iter().filter(|mark| mark.dtype == dtype).collect();
        paint_panel(panel, machine, dtype, &own, &ranges)?;
    }
    paint_legend(&legend, marks)?;
    root.present().map_err(text_of)
}

fn text_of(error: impl Display) -> String {
    error.to_string()
}

/// The axes' ends: operations per byte, and operations per second in a unit.
struct Ranges {
    x: [f64; 2],
    y: [f64; 2],
    unit: &'static str,
    /// The value of 10⁹ operations per second in the unit.
    giga: f64,
}

impl Ranges {
    fn of(machine: &Machine, marks: &[Mark], dtypes: &[DType]) -> Ranges {
        let ends = |values: &[f64]| {
            values.iter().fold([f64::INFINITY, 0f64], |[low, high], &value| [low.min(value), high.max(value)])
        };
        let x = ends(&marks.iter().map(Mark::intensity).collect::<Vec<_>>());
        let roofs = dtypes.iter().map(|&dtype| 1e3 * machine.tflop_per_s(dtype)).filter(|&roof| roof > 0.0);
        let y = ends(&marks.iter().map(Mark::gflop_per_s).chain(roofs).collect::<Vec<_>>());
        // Space at the sides for labels, above for the name of the roof.
        let (unit, giga) = if y[1] > 2e3 { ("TFlop/s", 1e-3) } else { ("GFlop/s", 1.0) };
        Ranges { x: [x[0] / 1.4, x[1] * 1.6], y: [giga * y[0] / 1.6, giga * y[1] * 1.4], unit, giga }
    }
}

fn paint_panel(
    panel: &Area<'_>,
    machine: &Machine,
    dtype: DType,
    marks: &[&Mark],
    ranges: &Ranges,
) -> Result<(), String> {
    let &Ranges { x: [x0, x1], y: [y0, y1], unit, giga } = ranges;
    let mut chart = ChartBuilder::on(panel)
        .margin(8)
        .margin_right(16)
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d((x0..x1).log_scale(), (y0..y1).log_scale())
        .map_err(text_of)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(226, 226, 226))
        .x_label_formatter(&|value| format!("{value}"))
        .y_label_formatter(&|value| format!("{value}"))
        .x_desc("flop per byte, where each cell is loaded and stored once per step")
        .y_desc(unit)
        .label_style((FONT, 12).into_font().color(&INK))
        .axis_desc_style((FONT, 13).into_font().color(&INK))
        .draw()
        .map_err(text_of)?;

    let (across, down) = chart.plotting_area().get_pixel_range();
    let mut labels = Labels::new([across.start, down.start, across.end, down.end]);
    let pixel = |chart: &Chart<'_>, x: f64, y: f64| chart.backend_coord(&(x, y));
    let pen = Pen { panel };

    // The memory's roof up to where it meets that of the arithmetic, and from there the roof of the
    // arithmetic.
    let (bandwidth, peak) = (giga * machine.memory_gb_per_s, giga * 1e3 * machine.tflop_per_s(dtype));
    if bandwidth > 0.0 {
        let low = x0.max(y0 / bandwidth);
        let high = x1.min(if peak > 0.0 { peak } else { y1 } / bandwidth);
        chart
            .draw_series(LineSeries::new(
                [(low, bandwidth * low), (high, bandwidth * high)],
                MEMORY.stroke_width(2),
            ))
            .map_err(text_of)?;
        let (from, to) = (pixel(&chart, low, bandwidth * low), pixel(&chart, high, bandwidth * high));
        labels.block_line(from, to);
        let words = format!("device memory, {} GB/s", machine.memory_gb_per_s);
        let rect = labels
            .place((from.0 + (to.0 - from.0) / 12 + 4, from.1 + (to.1 - from.1) / 12), width_of(&words));
        pen.text(rect, &words, MEMORY)?;
    }
    if peak > 0.0 {
        let low = if bandwidth > 0.0 { (peak / bandwidth).clamp(x0, x1) } else { x0 };
        chart
            .draw_series(LineSeries::new([(low, peak), (x1, peak)], INK.stroke_width(2)))
            .map_err(text_of)?;
        chart
            .draw_series(DashedLineSeries::new([(x0, peak), (low, peak)], 4, 4, INK.stroke_width(1)))
            .map_err(text_of)?;
        let (from, to) = (pixel(&chart, x0, peak), pixel(&chart, x1, peak));
        labels.block_line(from, to);
        let words = format!("arithmetic in {dtype}, {} TFlop/s", machine.tflop_per_s(dtype));
        let (width, height) = width_of(&words);
        let rect = [from.0 + 8, from.1 - height - 5, from.0 + 8 + width, from.1 - 5];
        labels.block(rect);
        pen.text(rect, &words, INK)?;
    }

    for mark in marks {
        let at = pixel(&chart, mark.intensity(), giga * mark.gflop_per_s());
        labels.block([at.0 - 5, at.1 - 5, at.0 + 5, at.1 + 5]);
        pen.symbol(at, mark.shape.dimensions(), mark.colour(), mark.is_filled())?;
    }
    // The best mark of each stencil is named, starting from the top, where it is crowded.
    let mut best: Vec<&Mark> = Vec::new();
    for mark in marks {
        match best.iter_mut().find(|other| other.stencil == mark.stencil) {
            Some(other) if other.gcells_per_s < mark.gcells_per_s => *other = mark,
            Some(_) => {}
            None => best.push(mark),
        }
    }
    best.sort_by(|a, b| b.gflop_per_s().total_cmp(&a.gflop_per_s()));
    for mark in best {
        let at = pixel(&chart, mark.intensity(), giga * mark.gflop_per_s());
        let words = format!("{} {}", mark.stencil, rate(mark.gcells_per_s));
        let rect = labels.place(at, width_of(&words));
        pen.leader(at, rect)?;
        pen.text(rect, &words, mark.colour())?;
    }
    Ok(())
}

/// Formats a rate for a label.
fn rate(gcells_per_s: f64) -> String {
    if gcells_per_s >= 100.0 { format!("{gcells_per_s:.0}") } else { format!("{gcells_per_s:.2}") }
}

/// Estimates the width and height of a label. The font is the viewer's, so the estimate is a generous guess.
fn width_of(words: &str) -> (i32, i32) {
    (words.chars().count() as i32 * (6 * LABEL / 10) + 2, LABEL + 2)
}

/// Draws at pixels of the whole picture.
struct Pen<'a, 'b> {
    panel: &'a Area<'b>,
}

impl Pen<'_, '_> {
    fn within(&self, (x, y): (i32, i32)) -> (i32, i32) {
        let (across, down) = self.panel.get_pixel_range();
        (x - across.start, y - down.start)
    }

    fn text(&self, rect: Rect, words: &str, colour: RGBColor) -> Result<(), String> {
        let style = (FONT, LABEL).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Center));
        let at = self.within((rect[0], (rect[1] + rect[3]) / 2));
        self.panel.draw(&Text::new(words.to_owned(), at, style)).map_err(text_of)
    }

    /// Draws a circle for two axes, a triangle for three.
    fn symbol(
        &self,
        at: (i32, i32),
        dimensions: usize,
        colour: RGBColor,
        filled: bool,
    ) -> Result<(), String> {
        let at = self.within(at);
        let style = if filled { colour.filled() } else { colour.stroke_width(1) };
        match dimensions {
            3 => {
                let corners = [(0, -5), (5, 4), (-5, 4), (0, -5)].map(|(x, y)| (at.0 + x, at.1 + y));
                if filled {
                    self.panel.draw(&Polygon::new(corners, style)).map_err(text_of)
                } else {
                    self.panel.draw(&PathElement::new(corners, style)).map_err(text_of)
                }
            }
            _ => self.panel.draw(&Circle::new(at, 4, style)).map_err(text_of),
        }
    }

    /// Draws a thin line to a label that stands off.
    fn leader(&self, at: (i32, i32), rect: Rect) -> Result<(), String> {
        let near = nearest(at, rect);
        if (near.0 - at.0).abs().max((near.1 - at.1).abs()) < 12 {
            return Ok(());
        }
        let line = [self.within(at), self.within(near)];
        self.panel.draw(&PathElement::new(line, RGBColor(170, 170, 170).stroke_width(1))).map_err(text_of)
    }
}

/// Explains the symbols that are in the plot.
fn paint_legend(area: &Area<'_>, marks: &[Mark]) -> Result<(), String> {
    let (across, down) = area.get_pixel_range();
    let left = across.start + 70;
    let (mut x, mut y) = (left, down.start + 14);
    let pen = Pen { panel: area };
    let any = |of: &dyn Fn(&Mark) -> bool| marks.iter().any(of);
    let on = |domain: Domain| any(&|mark: &Mark| mark.domain == Some(domain));
    let entries = [
        (any(&|mark| mark.shape.dimensions() < 3), 2, INK, true, "two axes"),
        (any(&|mark| mark.shape.dimensions() == 3), 3, INK, true, "three axes"),
        (on(Domain::OnChip), 2, ON_CHIP, true, "fits on the chip"),
        (on(Domain::UnfriendlyOnChip), 2, ON_CHIP, false, "the same, unfriendly extents"),
        (on(Domain::Large), 2, LARGE, true, "large"),
        (on(Domain::UnfriendlyLarge), 2, LARGE, false, "large, unfriendly extents"),
        (any(&|mark| mark.domain.is_none()), 2, OTHER, true, "another size"),
    ];
    let mut room = |words: &str, x: &mut i32| {
        let width = width_of(words).0 + 26;
        if *x + width > across.end {
            (*x, y) = (left, y + 18);
        }
        *x += width;
        (*x - width, y)
    };
    for (_, dimensions, colour, filled, words) in entries.into_iter().filter(|entry| entry.0) {
        let (x, y) = room(words, &mut x);
        pen.symbol((x, y), dimensions, colour, filled)?;
        pen.text([x + 10, y - LABEL / 2, x + 10, y + LABEL / 2], words, INK)?;
    }
    let words = "labels: the best rate in GCells/s";
    let (x, y) = room(words, &mut x);
    pen.text([x - 4, y - LABEL / 2, x, y + LABEL / 2], words, INK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stencil: &str, dtype: &str, domain: &str, gcells_per_s: f64) -> Line {
        Line {
            stencil: stencil.to_owned(),
            dtype: dtype.to_owned(),
            domain: domain.to_owned(),
            boundary: "fixed".to_owned(),
            steps: 100,
            gcells_per_s,
            spread_percent: 0.5,
            share_of_ceiling: None,
            cache: "none".to_owned(),
            depth: 1,
            plan: "any".to_owned(),
        }
    }

    /// A code that loads and stores each cell once per step, at the full bandwidth, is on the memory's roof,
    /// whatever the stencil and the type. A code at the ceiling of the arithmetic is on the roof of the
    /// arithmetic.
    #[test]
    fn the_roofs_are_where_a_perfect_code_is() {
        let h200 = abide::DeviceSpec::preset("h200").unwrap();
        let bandwidth = h200.memory_bandwidth / 1e9;
        for (stencil, domain, points) in
            [("2d5pt", "64x64", 5), ("3d27pt", "8x8x8", 27), ("poisson", "8x8x8", 19)]
        {
            for (dtype, bytes) in [(DType::F64, 8.0), (DType::F32, 4.0)] {
                let streaming =
                    Mark::of(&line(stencil, dtype.name(), domain, bandwidth / (2.0 * bytes))).unwrap();
                assert!((streaming.gflop_per_s() / (bandwidth * streaming.intensity()) - 1.0).abs() < 1e-12);
                let ceiling = crate::ceiling(&h200, dtype, points).unwrap();
                let computing = Mark::of(&line(stencil, dtype.name(), domain, ceiling)).unwrap();
                assert!((computing.gflop_per_s() * 1e9 / h200.flops(dtype) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn every_type_has_a_panel_and_every_stencil_its_best_rate() {
        let lines = [
            line("2d5pt", "f64", "2304x2304", 700.0),
            line("2d5pt", "f64", "8352x8352", 900.0),
            line("3d7pt", "f32", "127x193x251", 333.0),
        ];
        let marks: Vec<Mark> = lines.iter().map(|line| Mark::of(line).unwrap()).collect();
        let machine = Machine {
            device: "A & B".to_owned(),
            memory_gb_per_s: 4800.0,
            f32_tflop_per_s: 67.0,
            f64_tflop_per_s: 33.5,
            ..Machine::default()
        };
        let svg = draw(&machine, &marks).unwrap();
        for words in
            ["2d5pt 900", "3d7pt 333", "A &amp; B", "4800 GB/s", "in f64, 33.5 TFlop/s", "in f32, 67 TFlop/s"]
        {
            assert!(svg.contains(words), "{words}");
        }
        assert!(!svg.contains("2d5pt 700"), "only the best of a stencil is named");
        // A device that reports no rates has no roofs.
        let svg = draw(&Machine::default(), &marks[2..]).unwrap();
        assert!(svg.contains("3d7pt 333") && !svg.contains("arithmetic") && !svg.contains("f64"));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for bad in [
            line("nothing", "f64", "64x64", 1.0),
            line("2d5pt", "f16", "64x64", 1.0),
            line("2d5pt", "f64", "64x64", f64::NAN),
        ] {
            assert!(Mark::of(&bad).is_err(), "{bad:?}");
        }
        assert!(draw(&Machine::default(), &[]).is_err());
    }
}
