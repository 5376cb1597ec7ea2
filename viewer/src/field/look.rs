//! Numbers as colours: colour maps, ranges, and the mark of a value that is not finite.

use serde::{Deserialize, Serialize};

use crate::engine::Extremes;

/// The colour of NaN and infinity; no map has a colour like it.
pub const MARK: [u8; 3] = [255, 0, 255];

/// Colours of a map in a movie's palette, which also holds the mark and white.
pub const PALETTE: usize = 254;
/// The palette's entry for NaN and infinity.
const MARKED: u8 = PALETTE as u8;
/// The palette's entry for pixels beside the field.
pub const BLANK: u8 = MARKED + 1;

/// The part of the range that a logarithmic scale shows where the smallest value is not above zero.
const DECADES: f64 = 1e-6;

/// Perceptually uniform colour maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColourMap {
    /// Blue over green to yellow.
    #[default]
    Viridis,
    /// Black over purple to cream.
    Magma,
    /// Blue over grey to yellow; looks the same to eyes that cannot distinguish red from green.
    Cividis,
    /// Blue over white to red, white at zero.
    Diverging,
}

impl ColourMap {
    /// All maps, in the order of the menu.
    pub const ALL: [ColourMap; 4] =
        [ColourMap::Viridis, ColourMap::Magma, ColourMap::Cividis, ColourMap::Diverging];

    /// Returns the name in the menu.
    pub fn name(self) -> &'static str {
        match self {
            ColourMap::Viridis => "viridis",
            ColourMap::Magma => "magma",
            ColourMap::Cividis => "cividis",
            ColourMap::Diverging => "diverging",
        }
    }

    /// Returns the colour at a place from 0 to 1.
    pub fn at(self, place: f64) -> [u8; 3] {
        let place = place.clamp(0.0, 1.0);
        let colour = match self {
            ColourMap::Viridis => colorous::VIRIDIS.eval_continuous(place),
            ColourMap::Magma => colorous::MAGMA.eval_continuous(place),
            ColourMap::Cividis => colorous::CIVIDIS.eval_continuous(place),
            ColourMap::Diverging => colorous::RED_BLUE.eval_continuous(1.0 - place),
        };
        colour.as_array()
    }
}

/// The values at the ends of the colour map.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// The extremes of the values shown.
    #[default]
    Auto,
    /// These values, always.
    Fixed {
        /// The value shown darkest.
        low: f64,
        /// The value shown brightest.
        high: f64,
    },
}

/// The look of a field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// The colours.
    pub map: ColourMap,
    /// The range.
    pub span: Span,
    /// Whether equal ratios, instead of equal differences, are equally far apart; a diverging map is always
    /// linear.
    pub log: bool,
    /// Whether lines of equal values are drawn.
    pub contours: bool,
    /// Whether values are interpolated between cells.
    pub smooth: bool,
}

/// The scale along which a frame's values lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The value at the dark end.
    pub low: f64,
    /// The value at the bright end; above `low`.
    pub high: f64,
    /// Whether the scale is logarithmic; then `low` is above zero.
    pub log: bool,
}

impl Look {
    /// Returns the scale for values of these extremes.
    pub fn scale(&self, extremes: Option<Extremes>) -> Scale {
        let found = extremes.unwrap_or(Extremes { low: 0.0, high: 1.0, positive: Some(1.0) });
        let (mut low, mut high) = match self.span {
            Span::Auto => (found.low, found.high),
            Span::Fixed { low, high } => (low, high),
        };
        if self.map == ColourMap::Diverging {
            let most = low.abs().max(high.abs());
            (low, high) = (-most, most);
        }
        let log = self.log && self.map != ColourMap::Diverging && high > 0.0;
        // A range typed in may be NaN.
        if log && (low.is_nan() || low <= 0.0) {
            low = found.positive.unwrap_or(0.0).max(high * DECADES).min(high);
        }
        if low.is_nan() || high.is_nan() || high <= low {
            let middle = if low.is_finite() { low } else { 0.0 };
            let half = (middle.abs() * 1e-3).max(f64::from(f32::MIN_POSITIVE));
            (low, high) = if log { (middle / 2.0, middle * 2.0) } else { (middle - half, middle + half) };
        }
        Scale { low, high, log }
    }

    /// Returns the same look with its range for these extremes fixed.
    pub fn fixed(&self, extremes: Option<Extremes>) -> Look {
        let Scale { low, high, .. } = self.scale(extremes);
        Look { span: Span::Fixed { low, high }, ..self.clone() }
    }

    /// Returns the colour of a value.
    pub fn colour(&self, scale: Scale, value: f32) -> [u8; 3] {
        scale.place(f64::from(value)).map_or(MARK, |place| self.map.at(place))
    }

    /// Returns the entry of [`Look::palette`] for a value.
    pub fn index(&self, scale: Scale, value: f32) -> u8 {
        scale.place(f64::from(value)).map_or(MARKED, |place| (place * (PALETTE - 1) as f64).round() as u8)
    }

    /// Returns the colours of a movie: the map's, the mark and white.
    pub fn palette(&self) -> Vec<u8> {
        let colours = (0..PALETTE).map(|i| self.map.at(i as f64 / (PALETTE - 1) as f64));
        colours.chain([MARK, [255; 3]]).flatten().collect()
    }
}

impl Scale {
    /// Returns where a value lies, 0 to 1; `None` for NaN and infinity.
    pub fn place(self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let (low, high) = (self.along(self.low), self.along(self.high));
        let at = if self.log && value <= 0.0 { low } else { self.along(value) };
        // Halved, so that a range as wide as the type does not overflow.
        Some(((at / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)).clamp(0.0, 1.0))
    }

    /// Returns the value at a place from 0 to 1.
    pub fn value(self, place: f64) -> f64 {
        let (low, high) = (self.along(self.low), self.along(self.high));
        let at = low * (1.0 - place) + high * place;
        if self.log { at.exp() } else { at }
    }

    fn along(self, value: f64) -> f64 {
        if self.log { value.ln() } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extremes(low: f64, high: f64) -> Option<Extremes> {
        Some(Extremes {
            low,
            high,
            positive: (high > 0.0).then_some(if low > 0.0 { low } else { high / 10.0 }),
        })
    }

    #[test]
    fn every_scale_has_a_width_and_holds_its_ends() {
        for map in ColourMap::ALL {
            for log in [false, true] {
                for span in [
                    Span::Auto,
                    Span::Fixed { low: 2.0, high: 2.0 },
                    Span::Fixed { low: f64::NAN, high: 1.0 },
                ] {
                    let look = Look { map, log, span, ..Look::default() };
                    for e in [
                        None,
                        extremes(0.0, 0.0),
                        extremes(-1.0, 3.0),
                        extremes(5.0, 5.0),
                        extremes(-7.0, -2.0),
                    ] {
                        let scale = look.scale(e);
                        assert!(scale.high > scale.low, "{look:?} {e:?} {scale:?}");
                        assert!(!scale.log || scale.low > 0.0, "{look:?} {e:?} {scale:?}");
                        assert!(
                            scale.place(scale.low) <= Some(1e-9)
                                && scale.place(scale.high) >= Some(1.0 - 1e-9)
                        );
                        assert_eq!(scale.place(f64::INFINITY), None);
                    }
                }
            }
        }
    }

    #[test]
    fn a_diverging_map_is_centred_on_zero() {
        let look = Look { map: ColourMap::Diverging, ..Look::default() };
        let scale = look.scale(extremes(-1.0, 4.0));
        assert_eq!(scale.place(0.0), Some(0.5));
        let [red, _, blue] = look.colour(scale, 3.9);
        assert!(red > blue);
    }

    #[test]
    fn logarithmic_scales_put_the_geometric_mean_in_the_middle() {
        let scale = Look { log: true, ..Look::default() }.scale(extremes(1e-2, 1e4));
        assert!((scale.place(10.0).unwrap() - 0.5).abs() < 1e-12);
        assert!((scale.value(0.5) / 10.0 - 1.0).abs() < 1e-12);
        assert_eq!(scale.place(-1.0), Some(0.0));
    }

    #[test]
    fn marks_are_no_colour_of_a_map() {
        for map in ColourMap::ALL {
            let look = Look { map, ..Look::default() };
            assert_eq!(look.palette().len(), 768);
            assert!(look.palette().chunks(3).take(PALETTE).all(|colour| colour != MARK));
            assert_eq!(look.colour(look.scale(None), f32::NAN), MARK);
        }
    }
}
