//! Both graphs as a picture: on the left the order of execution, in layers; on the right the data dependencies, a row
//! for each loop and a column for each array.

use std::fmt::{self, Write};

use super::picture::Picture;
use super::{Drawing, hex, tint};
use crate::fusion::graph::Use;

/// The height of a row, and the distance of two columns.
const ROW: f64 = 21.0;

const COLUMN: f64 = 17.0;

/// Space around and between the parts.
const MARGIN: f64 = 18.0;

/// Widths of a letter of text of 11 px, on average, and of 10 px.
const LETTER: f64 = 6.6;

const SMALL_LETTER: f64 = 5.7;

/// The height of the headings, and of the legend.
const HEAD: f64 = 58.0;

const LEGEND: f64 = 44.0;

impl Drawing<'_> {
    /// Returns both graphs as an SVG picture.
    ///
    /// On the left an arrow leads to a loop that waits for another; what other arrows say already is left out. On the
    /// right loops stand in the order in which their groups run; a ring is a read, a dot a write, and both a loop that
    /// reads and writes.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        // Writing to a string never fails.
        let _ = self.write_svg(&mut text);
        text
    }

    fn write_svg(&self, text: &mut String) -> fmt::Result {
        let graph = self.graph;
        let titles: Vec<String> = (0..graph.loops.len()).map(|own| graph.title(own)).collect();
        let picture = self.picture(|title| 12.0 + LETTER * count(title));
        let labels: Vec<String> = graph.arrays.iter().map(|array| array.label()).collect();
        let longest = |all: &[String]| all.iter().map(|text| count(text)).fold(0.0, f64::max);
        let names = SMALL_LETTER * longest(&labels);
        let rows = 14.0 + LETTER * longest(&titles);
        let left = MARGIN + picture.size[0] + 3.0 * MARGIN;
        let table = [rows + COLUMN * labels.len() as f64, names + ROW * titles.len() as f64];
        // The last name leans to the right.
        let width = left + table[0] + names * 0.5 + MARGIN;
        let height = HEAD + picture.size[1].max(table[1]) + LEGEND;
        writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <style>.e{{fill:none;stroke:#555}}.r{{fill:#fff;stroke:#222;stroke-width:1.5}}.w{{fill:#222}}</style>\n\
             <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#555\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        )?;
        let title = escaped(self.title);
        writeln!(text, "<text x=\"{MARGIN}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>")?;
        for (x, heading) in [(MARGIN, "Order of execution"), (left, "Data dependencies")] {
            writeln!(text, "<text x=\"{x:.0}\" y=\"46\" font-size=\"13\">{heading}</text>")?;
        }
        writeln!(text, "<g transform=\"translate({MARGIN} {HEAD})\">")?;
        order_of_execution(text, &picture)?;
        writeln!(text, "</g>\n<g transform=\"translate({left:.0} {:.0})\">", HEAD + names * 0.87)?;
        self.data_dependencies(text, &titles, &labels, rows)?;
        writeln!(text, "</g>\n<g transform=\"translate({MARGIN} {:.0})\">", height - LEGEND / 2.0)?;
        legend(text)?;
        writeln!(text, "</g>\n</svg>")
    }

    fn data_dependencies(
        &self,
        text: &mut String,
        titles: &[String],
        labels: &[String],
        rows: f64,
    ) -> fmt::Result {
        let (group_of, colours) = (self.group_of(), self.colours());
        let (order, right) = (self.in_order(), rows + COLUMN * labels.len() as f64);
        for (row, &own) in order.iter().enumerate() {
            let (y, title) = (ROW * row as f64, escaped(&titles[own]));
            let fill = hex(colours[own]);
            writeln!(
                text,
                "<rect y=\"{y}\" width=\"{right:.0}\" height=\"{ROW}\" fill=\"{fill}\"/>\
                 <text x=\"4\" y=\"{}\">{title}</text>",
                y + 15.0
            )?;
            // A line where another group begins.
            if row > 0 && group_of[own] != group_of[order[row - 1]] {
                writeln!(text, "<path class=\"e\" d=\"M0 {y}h{right:.0}\"/>")?;
            }
        }
        for (array, label) in labels.iter().enumerate() {
            let x = rows + COLUMN * (array as f64 + 0.5);
            let fill = tint(self.graph.use_of(array));
            let touched = |own: &usize| self.graph.access(*own, array).is_some();
            let (first, last) = (order.iter().position(touched), order.iter().rposition(touched));
            let middle = |row: Option<usize>| ROW * (row.unwrap_or(0) as f64 + 0.5);
            writeln!(
                text,
                "<path stroke=\"#888\" d=\"M{x:.1} {}V{}\"/><path d=\"M{x:.1} -13l5 5-5 5-5-5z\" fill=\"{fill}\" \
                 stroke=\"#777\"/><text font-size=\"10\" transform=\"translate({:.1} -16) rotate(-60)\">{}</text>",
                middle(first),
                middle(last),
                x + 3.0,
                escaped(label),
            )?;
            for (row, &own) in order.iter().enumerate() {
                let Some(access) = self.graph.access(own, array) else { continue };
                let y = ROW * (row as f64 + 0.5);
                if access.reads.is_some() {
                    writeln!(text, "<circle class=\"r\" cx=\"{x:.1}\" cy=\"{y}\" r=\"5.5\"/>")?;
                }
                if access.writes {
                    writeln!(text, "<circle class=\"w\" cx=\"{x:.1}\" cy=\"{y}\" r=\"3\"/>")?;
                }
            }
        }
        Ok(())
    }
}

fn order_of_execution(text: &mut String, picture: &Picture) -> fmt::Result {
    for arrow in &picture.arrows {
        write!(text, "<path class=\"e\" marker-end=\"url(#a)\" d=\"")?;
        for (number, [from, one, two, to]) in arrow.curves().enumerate() {
            if number == 0 {
                write!(text, "M{:.1} {:.1}", from[0], from[1])?;
            }
            write!(
                text,
                "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                one[0], one[1], two[0], two[1], to[0], to[1]
            )?;
        }
        writeln!(text, "\"><title>{}</title></path>", escaped(&arrow.causes))?;
    }
    for own in &picture.loops {
        let ([x, y], width) = (own.centre, own.width);
        writeln!(
            text,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.0}\" rx=\"9\" fill=\"{}\" \
             stroke=\"#777\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x - width / 2.0,
            y - Picture::HEIGHT / 2.0,
            Picture::HEIGHT,
            hex(own.colour),
            y + 4.0,
            escaped(&own.title),
        )?;
    }
    Ok(())
}

fn legend(text: &mut String) -> fmt::Result {
    let mut x = 0.0;
    for (mark, word) in [
        ("<circle class=\"r\" cx=\"6\" r=\"5.5\"/>", "read"),
        ("<circle class=\"w\" cx=\"6\" r=\"3\"/>", "written"),
    ] {
        writeln!(text, "<g transform=\"translate({x} 0)\">{mark}<text x=\"16\" y=\"4\">{word}</text></g>")?;
        x += 30.0 + LETTER * count(word);
    }
    for of in Use::ALL {
        let (fill, word) = (tint(of), of.name());
        writeln!(
            text,
            "<g transform=\"translate({x} 0)\"><path d=\"M6 -5l5 5-5 5-5-5z\" fill=\"{fill}\" stroke=\"#777\"/>\
             <text x=\"16\" y=\"4\">{word}</text></g>"
        )?;
        x += 30.0 + LETTER * count(word);
    }
    writeln!(text, "<text x=\"{x}\" y=\"4\">same colour: one group; grey: alone</text>")
}

fn count(text: &str) -> f64 {
    text.chars().count() as f64
}

/// Returns a text as XML quotes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
