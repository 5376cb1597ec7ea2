//! The pixels of a canvas for a field's values.

/// Colours of a map, from the smallest value to the largest.
const COLOURS: usize = 256;

/// A colour map: red, green, blue and opacity for each of its places.
pub struct Palette([[u8; 4]; COLOURS]);

impl Default for Palette {
    /// Blue over green to yellow, perceptually uniform: the map of the command's pictures.
    fn default() -> Self {
        Palette(std::array::from_fn(|place| {
            let [red, green, blue] = colorous::VIRIDIS.eval_rational(place, COLOURS).as_array();
            [red, green, blue, 255]
        }))
    }
}

impl Palette {
    /// Makes the pixels of `values`, row by row. The smallest value gets the map's first colour and the
    /// largest its last. A value that is not finite is transparent.
    pub fn pixels(&self, values: &[f32], pixels: &mut Vec<u8>) {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let low = finite().fold(f32::INFINITY, f32::min);
        let high = finite().fold(f32::NEG_INFINITY, f32::max);
        let scale = if high > low { (COLOURS - 1) as f32 / (high - low) } else { 0.0 };
        pixels.clear();
        pixels.extend(values.iter().flat_map(|&value| match value.is_finite() {
            true => self.0[((value - low) * scale).round() as usize],
            false => [0; 4],
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_largest_have_the_ends_of_the_map() {
        let (palette, mut pixels) = (Palette::default(), vec![7; 99]);
        palette.pixels(&[0.5, -1.0, f32::NAN, 3.0], &mut pixels);
        assert_eq!(pixels.len(), 16);
        assert_eq!(pixels[4..8], palette.0[0]);
        assert_eq!(pixels[8..12], [0; 4]);
        assert_eq!(pixels[12..], palette.0[255]);
        palette.pixels(&[2.5; 3], &mut pixels);
        assert_eq!(pixels, [palette.0[0]; 3].concat());
        palette.pixels(&[f32::NAN, f32::INFINITY], &mut pixels);
        assert_eq!(pixels, [0; 8]);
    }
}
