//! Pictures: grey values in, a colour map out.

use std::path::Path;

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageReader};

use super::colour::{MARK, Plane, Range};
use super::{Loaded, Staged, palette};
use crate::{Array, Error, Result, Shape};

/// Reads a picture's grey values, 0 for black to 1 for white, rows from the top.
pub(super) fn read(path: &Path) -> Result<Loaded> {
    let (mut reader, _) = super::open(path)?;
    palette::check(&mut reader, path)?;
    let fault = |e: &dyn ToString| Error::file(path, e.to_string(), "give a whole .png or .jpg picture");
    let reader = ImageReader::new(reader).with_guessed_format().map_err(|e| fault(&e))?;
    let grey = reader.decode().map_err(|e| fault(&e))?.into_luma16();
    let shape = Shape::new(&[grey.height() as usize, grey.width() as usize])
        .map_err(|e| Error::file(path, e, "give a picture of one pixel or more"))?;
    let values = grey.into_raw().into_iter().map(|level| f64::from(level) / f64::from(u16::MAX)).collect();
    Ok(Loaded { values: Array::F64(values), shape })
}

/// Writes a field as a picture, one pixel a cell.
pub(super) fn write(path: &Path, shape: &Shape, values: &Array, range: Option<Range>) -> Result<Staged> {
    let plane = Plane::of(shape);
    let (Ok(width), Ok(height)) = (u32::try_from(plane.width), u32::try_from(plane.height)) else {
        return Err(Error::limit("pixels of a picture's side", shape, u32::MAX, "write .npy or .vti"));
    };
    let range = range.or_else(|| Range::of(values)).unwrap_or(Range { low: 0.0, high: 1.0 });
    let pixels = plane.pixels(values, |value| match range.place(value) {
        Some(place) => colorous::VIRIDIS.eval_continuous(place).as_array(),
        None => MARK,
    })?;
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

    #[test]
    fn cells_become_pixels_and_nan_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.png");
        let shape = Shape::new(&[2, 3]).unwrap();
        let values = Array::F32(vec![0.0, 1.0, f32::NAN, f32::INFINITY, 0.5, 0.25]);
        write(&path, &shape, &values, None).unwrap().commit().unwrap();
        let picture = image::open(&path).unwrap().into_rgb8();
        assert_eq!(picture.dimensions(), (3, 2));
        assert_eq!(picture.get_pixel(0, 0).0, colorous::VIRIDIS.eval_continuous(0.0).as_array());
        assert_eq!(picture.get_pixel(1, 0).0, colorous::VIRIDIS.eval_continuous(1.0).as_array());
        assert_eq!((picture.get_pixel(2, 0).0, picture.get_pixel(0, 1).0), (MARK, MARK));
    }

    #[test]
    fn grey_values_are_exact_fractions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.png");
        image::GrayImage::from_raw(3, 1, vec![0, 51, 255]).unwrap().save(&path).unwrap();
        let loaded = read(&path).unwrap();
        assert_eq!(loaded.values, Array::F64(vec![0.0, 0.2, 1.0]));
        assert_eq!(loaded.shape.extents(), [1, 3]);
    }

    #[test]
    fn foreign_and_truncated_pictures_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.png");
        image::GrayImage::new(64, 64).save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 4, 20, whole.len() / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read(&path), Err(Error::File { .. })), "{length}");
        }
        std::fs::write(&path, "not a picture").unwrap();
        assert!(matches!(read(&path), Err(Error::File { .. })));
    }
}
