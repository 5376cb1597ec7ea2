//! Colour maps by name: a table.

use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;

use abide_core::{Error, Result};
use colorous::Gradient;

use super::Range;

/// A colour map: one of a table, by its name. The default is `viridis`.
#[derive(Clone, Copy)]
pub struct Colormap(&'static Row);

struct Row {
    name: &'static str,
    about: &'static str,
    scale: Scale,
    /// The colour of NaN and infinity, which the map has not.
    mark: [u8; 3],
}

enum Scale {
    Of(Gradient),
    /// From its end to its beginning; the middle is 0.
    Diverging(Gradient),
    Grey,
}

const MAGENTA: [u8; 3] = [255, 0, 255];
const GREEN: [u8; 3] = [0, 255, 0];

/// All maps. Of all but `turbo` and `diverging` the lightness grows evenly from the smallest value to the largest.
const ROWS: [Row; 8] = [
    Row {
        name: "viridis",
        about: "dark blue, green, yellow",
        scale: Scale::Of(colorous::VIRIDIS),
        mark: MAGENTA,
    },
    Row {
        name: "cividis",
        about: "blue, grey, yellow; the same to colour-blind readers",
        scale: Scale::Of(colorous::CIVIDIS),
        mark: MAGENTA,
    },
    Row {
        name: "magma",
        about: "black, purple, pale yellow",
        scale: Scale::Of(colorous::MAGMA),
        mark: GREEN,
    },
    Row {
        name: "inferno",
        about: "black, red, bright yellow",
        scale: Scale::Of(colorous::INFERNO),
        mark: GREEN,
    },
    Row { name: "plasma", about: "blue, red, yellow", scale: Scale::Of(colorous::PLASMA), mark: GREEN },
    Row { name: "grey", about: "black to white", scale: Scale::Grey, mark: MAGENTA },
    Row {
        name: "diverging",
        about: "blue below 0, white at 0, red above; for values of both signs",
        scale: Scale::Diverging(colorous::RED_BLUE),
        mark: GREEN,
    },
    Row {
        name: "turbo",
        about: "a rainbow; sharp, but its lightness rises and falls",
        scale: Scale::Of(colorous::TURBO),
        mark: MAGENTA,
    },
];

impl Colormap {
    /// Returns all maps.
    pub fn all() -> impl Iterator<Item = Colormap> {
        ROWS.iter().map(Colormap)
    }

    /// Returns the map's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the map's colours in words.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// Returns the colour at a place between 0 and 1.
    pub fn at(self, place: f64) -> [u8; 3] {
        match &self.0.scale {
            Scale::Of(gradient) => gradient.eval_continuous(place).as_array(),
            Scale::Diverging(gradient) => gradient.eval_continuous(1.0 - place).as_array(),
            Scale::Grey => [(place.clamp(0.0, 1.0) * 255.0).round() as u8; 3],
        }
    }

    /// Returns the colour of NaN and infinity.
    pub fn mark(self) -> [u8; 3] {
        self.0.mark
    }

    /// Returns the range of the map's ends for values of this range: of a map with a middle, as far below 0 as above.
    pub fn ends(self, values: Range) -> Range {
        match self.0.scale {
            Scale::Diverging(_) => {
                let far = values.low.abs().max(values.high.abs());
                Range { low: -far, high: far }
            }
            Scale::Of(_) | Scale::Grey => values,
        }
    }
}

impl Default for Colormap {
    fn default() -> Colormap {
        Colormap(&ROWS[0])
    }
}

impl PartialEq for Colormap {
    fn eq(&self, other: &Colormap) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Colormap {}

impl Debug for Colormap {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "Colormap({})", self.name())
    }
}

impl Display for Colormap {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Colormap {
    type Err = Error;

    /// Reads a map's name.
    fn from_str(text: &str) -> Result<Colormap> {
        let found = Colormap::all().find(|map| map.name() == text);
        found.ok_or_else(|| Error::unknown("colour map", text, ROWS.iter().map(|row| row.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lightness as CIE L*, 0 to 100.
    fn lightness(colour: [u8; 3]) -> f64 {
        let linear = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        let y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
        if y > 0.008856 { 116.0 * y.cbrt() - 16.0 } else { 903.3 * y }
    }

    #[test]
    fn sequential_maps_grow_lighter_evenly() {
        for map in Colormap::all().filter(|map| !["diverging", "turbo"].contains(&map.name())) {
            let steps: Vec<f64> = (0..=16).map(|step| lightness(map.at(f64::from(step) / 16.0))).collect();
            let growth: Vec<f64> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let mean = growth.iter().sum::<f64>() / growth.len() as f64;
            assert!(mean > 3.0 && growth.iter().all(|own| *own > 0.3 * mean), "{map}: {growth:?}");
        }
    }

    #[test]
    fn no_colour_of_a_map_is_its_mark() {
        for map in Colormap::all() {
            let far = |place: i32| {
                let colour = map.at(f64::from(place) / 255.0);
                colour.iter().zip(map.mark()).map(|(a, b)| a.abs_diff(b) as i32).sum::<i32>()
            };
            let nearest = (0..=255).map(far).min().unwrap();
            assert!(nearest > 120, "{map}: {nearest}");
        }
    }

    #[test]
    fn a_diverging_map_has_zero_in_its_middle() {
        let map: Colormap = "diverging".parse().unwrap();
        assert_eq!(map.ends(Range { low: -1.0, high: 3.0 }), Range { low: -3.0, high: 3.0 });
        let [blue, white, red] = [0.0, 0.5, 1.0].map(|place| map.at(place));
        assert!(blue[2] > blue[0] && red[0] > red[2] && white.iter().all(|part| *part > 230));
        let own = Range { low: -1.0, high: 3.0 };
        assert_eq!(Colormap::default().ends(own), own);
    }

    #[test]
    fn maps_have_names() {
        assert_eq!("magma".parse::<Colormap>().unwrap().to_string(), "magma");
        assert_eq!(Colormap::default().name(), "viridis");
        for (bad, meant) in
            [("Viridis", "viridis"), ("gray", "grey"), ("coolwarm", "diverging"), ("jet", "turbo")]
        {
            let error = bad.parse::<Colormap>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean `{meant}`")), "{error}");
        }
    }
}
