//! Pictures: grey values in, a colour map out.

use std::path::Path;

use abide_core::{Array, DType, Error, Result, Shape, memory};
use image::codecs::png::PngEncoder;
use image::{
    ColorType, DynamicImage, ExtendedColorType, ImageBuffer, ImageDecoder, ImageEncoder, ImageReader,
};

use super::annotation::{Inks, Layout, heading};
use super::colour::{Colours, Plane};
use super::decoding::{guarded, jpeg_bytes};
use super::members::foreign;
use super::{Announced, Axes, Loaded, Range, Staged};

/// Rows that a decoder of PNG keeps beside the picture, each of pixels of at most four channels of 16 bits, and its other
/// bytes. It asks for none of them in a way that can be refused.
const DECODED_ROWS: u64 = 8;
const LARGEST_PIXEL: u64 = 8;
const DECODER: u64 = 256 << 10;

/// A picture whose header has been read. All its rows are decoded at once, and made grey one at a time.
struct Picture<'p> {
    path: &'p Path,
    decoder: Box<dyn ImageDecoder>,
    shape: Shape,
    colour: ColorType,
    /// Bytes that the decoder takes beside the picture itself.
    beside: u64,
}

impl<'p> Picture<'p> {
    fn open(path: &'p Path) -> Result<Picture<'p>> {
        let (mut reader, length) = super::open(path)?;
        let beside = jpeg_bytes(&mut reader, length).map_err(|e| fault(path, e))?;
        let reader = ImageReader::new(reader).with_guessed_format().map_err(|e| fault(path, e))?;
        let decoder =
            guarded(|| reader.into_decoder()).ok_or_else(|| broken(path))?.map_err(|e| fault(path, e))?;
        let ((width, height), colour) = (decoder.dimensions(), decoder.color_type());
        let beside = beside.max(DECODED_ROWS * LARGEST_PIXEL * u64::from(width) + DECODER);
        let shape = Shape::new(&[height as usize, width as usize])
            .map_err(|e| Error::file(path, e, "give a picture of one pixel or more"))?;
        Ok(Picture { path, decoder: Box::new(decoder), shape, colour, beside })
    }

    /// Returns the bytes of the decoded picture, in its own colours.
    fn bytes(&self) -> usize {
        self.shape.cells().saturating_mul(usize::from(self.colour.bytes_per_pixel()))
    }

    /// Refuses a picture whose decoder would find no memory.
    fn check_memory(&self) -> Result<()> {
        let beside = usize::try_from(self.beside).unwrap_or(usize::MAX);
        memory::reserved::<u8>(beside, "the decoder of a picture", "give a smaller one").map(drop)
    }

    /// Reads the grey values.
    fn read(self, dtype: DType, axes: &Axes) -> Result<Loaded> {
        let (members, own) = axes.split(self.shape.extents()).map_err(|e| foreign(self.path, e))?;
        let mut values = Array::zeros(dtype, self.shape.cells())?;
        let mut pixels = memory::filled(0, self.bytes(), "a picture", "give a smaller one")?;
        self.check_memory()?;
        let Picture { path, decoder, shape, colour, .. } = self;
        let decoded = guarded(|| decoder.read_image_boxed(&mut pixels)).ok_or_else(|| broken(path))?;
        decoded.map_err(|e| fault(path, e))?;
        let width = shape.padded()[2];
        for (number, row) in pixels.chunks_exact(width * usize::from(colour.bytes_per_pixel())).enumerate() {
            let levels = grey(colour, width as u32, row)
                .ok_or_else(|| fault(path, format!("its pixels are {colour:?}")))?;
            let level = |x: usize| f64::from(levels[x]) / f64::from(u16::MAX);
            let cells = number * width..(number + 1) * width;
            match &mut values {
                Array::F32(values) => {
                    values[cells].iter_mut().enumerate().for_each(|(x, v)| *v = level(x) as f32)
                }
                Array::F64(values) => values[cells].iter_mut().enumerate().for_each(|(x, v)| *v = level(x)),
            }
        }
        Ok(Loaded { values, shape: own, members })
    }
}

fn fault(path: &Path, error: impl ToString) -> Error {
    Error::file(path, error.to_string(), "give a whole .png or .jpg picture")
}

/// Returns the error for a picture whose decoder panicked.
fn broken(path: &Path) -> Error {
    fault(path, "it is broken in a way that its decoder does not expect")
}

/// Returns the grey levels of a row of pixels; `None` for colours that no .png or .jpg has.
fn grey(colour: ColorType, width: u32, row: &[u8]) -> Option<Vec<u16>> {
    let bytes = || row.to_vec();
    let words = || row.as_chunks().0.iter().map(|word| u16::from_ne_bytes(*word)).collect();
    let picture = match colour {
        ColorType::L8 => DynamicImage::ImageLuma8(ImageBuffer::from_raw(width, 1, bytes())?),
        ColorType::La8 => DynamicImage::ImageLumaA8(ImageBuffer::from_raw(width, 1, bytes())?),
        ColorType::Rgb8 => DynamicImage::ImageRgb8(ImageBuffer::from_raw(width, 1, bytes())?),
        ColorType::Rgba8 => DynamicImage::ImageRgba8(ImageBuffer::from_raw(width, 1, bytes())?),
        ColorType::L16 => DynamicImage::ImageLuma16(ImageBuffer::from_raw(width, 1, words())?),
        ColorType::La16 => DynamicImage::ImageLumaA16(ImageBuffer::from_raw(width, 1, words())?),
        ColorType::Rgb16 => DynamicImage::ImageRgb16(ImageBuffer::from_raw(width, 1, words())?),
        ColorType::Rgba16 => DynamicImage::ImageRgba16(ImageBuffer::from_raw(width, 1, words())?),
        _ => return None,
    };
    Some(picture.into_luma16().into_raw())
}

/// Reads what a picture's header announces.
pub(super) fn announced(path: &Path, axes: &Axes) -> Result<Announced> {
    let picture = Picture::open(path)?;
    let (members, shape) = axes.split(picture.shape.extents()).map_err(|e| foreign(path, e))?;
    Ok(Announced {
        shape,
        members,
        dtype: None,
        form_bytes: picture.beside.saturating_add(picture.bytes() as u64),
        is_read_whole: true,
    })
}

/// Reads a picture's grey values, 0 for black to 1 for white, rows from the top.
pub(super) fn read(path: &Path, dtype: DType, axes: &Axes) -> Result<Loaded> {
    Picture::open(path)?.read(dtype, axes)
}

/// Writes a field as a picture, one pixel per cell.
pub(super) fn write(
    path: &Path,
    shape: &Shape,
    (name, values): (&str, &Array),
    step: u64,
    colours: Colours,
) -> Result<Staged> {
    let plane = Plane::of(shape, colours.is_batch);
    let layout = Layout::of(&plane, colours.is_annotated);
    let (width, height) = layout.size();
    let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else {
        return Err(Error::limit("pixels of a picture's side", shape, u32::MAX, "write .npy or .vti"));
    };
    let range = colours.ends(Range::of(values)).unwrap_or(Range { low: 0.0, high: 1.0 });
    let colour = |place| colours.map.at(place);
    let cells = plane.pixels(values, |value| range.place(value).map_or(colours.map.mark(), colour))?;
    let inks = Inks { paper: [255; 3], ink: [0; 3], at: colour };
    let pixels = layout.draw(cells, &inks, range, &heading(name, step, &plane))?;
    let staged = Staged::new(path)?;
    staged.fill(|writer| {
        let encoder = PngEncoder::new(writer);
        encoder
            .write_image(pixels.as_flattened(), width, height, ExtendedColorType::Rgb8)
            .map_err(std::io::Error::other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Colormap;

    #[test]
    fn cells_become_pixels_and_nan_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.png");
        let shape = Shape::new(&[2, 3]).unwrap();
        let values = Array::F32(vec![0.0, 1.0, f32::NAN, f32::INFINITY, 0.5, 0.25]);
        for map in Colormap::all() {
            let colours = Colours { map, range: Some(Range { low: 0.0, high: 1.0 }), ..Colours::default() };
            write(&path, &shape, ("u", &values), 0, colours).unwrap().commit().unwrap();
            let picture = image::open(&path).unwrap().into_rgb8();
            assert_eq!(picture.dimensions(), (3, 2));
            let of = |x, y| picture.get_pixel(x, y).0;
            assert_eq!([of(0, 0), of(1, 0), of(1, 1)], [0.0, 1.0, 0.5].map(|place| map.at(place)), "{map}");
            assert_eq!([of(2, 0), of(0, 1)], [map.mark(); 2], "{map}");
        }
    }

    /// Without a range, the middle of a diverging map is 0.
    #[test]
    fn a_diverging_map_is_white_at_zero() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.png");
        let map: Colormap = "diverging".parse().unwrap();
        let values = Array::F64(vec![0.0, -1.0, 4.0]);
        let colours = Colours { map, ..Colours::default() };
        write(&path, &Shape::new(&[1, 3]).unwrap(), ("u", &values), 0, colours).unwrap().commit().unwrap();
        let picture = image::open(&path).unwrap().into_rgb8();
        assert_eq!(
            [0, 1, 2].map(|x| picture.get_pixel(x, 0).0),
            [0.5, 0.375, 1.0].map(|place| map.at(place))
        );
    }

    #[test]
    fn grey_values_are_exact_fractions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.png");
        image::GrayImage::from_raw(3, 1, vec![0, 51, 255]).unwrap().save(&path).unwrap();
        let loaded = read(&path, DType::F64, &Axes::DOMAIN).unwrap();
        assert_eq!(loaded.values, Array::F64(vec![0.0, 0.2, 1.0]));
        assert_eq!(loaded.shape.extents(), [1, 3]);
        assert_eq!(read(&path, DType::F32, &Axes::DOMAIN).unwrap().values, Array::F32(vec![0.0, 0.2, 1.0]));
    }

    /// For every kind of pixel, the grey levels made row by row are those of the picture made grey as a
    /// whole.
    #[test]
    fn colours_are_made_grey_row_by_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.png");
        let mut random = fastrand::Rng::with_seed(5);
        let mut words: Vec<u16> = (0..7 * 5 * 4).map(|_| random.u16(..)).collect();
        words[..8].copy_from_slice(&[0, 0, 0, u16::MAX, u16::MAX, u16::MAX, u16::MAX, 0]);
        let whole = DynamicImage::ImageRgba16(ImageBuffer::from_raw(7, 5, words).unwrap());
        let rgb = whole.clone().into_rgb8();
        let kinds = [
            whole.clone(),
            whole.to_rgb16().into(),
            whole.to_luma_alpha16().into(),
            whole.to_luma16().into(),
            whole.to_rgba8().into(),
            rgb.clone().into(),
            whole.to_luma_alpha8().into(),
            whole.to_luma8().into(),
        ];
        for kind in kinds {
            kind.save(&path).unwrap();
            let expected = image::open(&path).unwrap().into_luma16().into_raw();
            let expected = expected.into_iter().map(|level| f64::from(level) / f64::from(u16::MAX)).collect();
            assert_eq!(
                read(&path, DType::F64, &Axes::DOMAIN).unwrap().values,
                Array::F64(expected),
                "{:?}",
                kind.color()
            );
        }
        let path = folder.path().join("c.jpg");
        rgb.save(&path).unwrap();
        let expected = image::open(&path).unwrap().into_luma16().into_raw();
        let expected = expected.into_iter().map(|level| f64::from(level) / f64::from(u16::MAX)).collect();
        assert_eq!(read(&path, DType::F64, &Axes::DOMAIN).unwrap().values, Array::F64(expected));
    }

    #[test]
    fn a_header_tells_the_size_without_the_pixels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.png");
        image::RgbImage::new(64, 32).save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 30]).unwrap();
        let found = announced(&path, &Axes::DOMAIN).unwrap();
        assert_eq!(
            (found.shape.extents(), found.dtype, found.form_bytes),
            (&[32, 64][..], None, 3 * 32 * 64 + DECODED_ROWS * LARGEST_PIXEL * 64 + DECODER)
        );
        assert!(read(&path, DType::F64, &Axes::DOMAIN).is_err());
    }

    #[test]
    fn foreign_and_truncated_pictures_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.png");
        image::GrayImage::new(64, 64).save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 4, 20, whole.len() / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read(&path, DType::F64, &Axes::DOMAIN), Err(Error::File { .. })), "{length}");
        }
        std::fs::write(&path, "not a picture").unwrap();
        assert!(matches!(read(&path, DType::F64, &Axes::DOMAIN), Err(Error::File { .. })));
    }
}
