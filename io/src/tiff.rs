//! TIFF: a field as a page, or as a stack of pages one behind another along the slowest of three axes, as microscopes and
//! tomographs write them. Values are the numbers that are stored, without a scale.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use abide_core::{Array, DType, Error, Real, Result, Shape, with_array};
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::encoder::colortype::{ColorType as Pixels, Gray32Float, Gray64Float};
use tiff::encoder::{TiffEncoder, TiffKind, TiffValue};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};

use super::decoding::guarded;
use super::members::foreign;
use super::{Announced, Axes, Loaded, Staged, staged};

/// Bytes from which on a file's own places do not stand in 32 bits, with room for what is beside the values.
const LARGE: usize = (u32::MAX as usize) - (1 << 28);

/// What the numbers of a page are, as its tag says.
const FLOATING: u16 = 3;

/// Bytes of a decoder beside two forms of a page.
const DECODER: u64 = 1 << 20;

/// The most pages of a file.
const MOST_PAGES: usize = 1 << 20;

fn fault(path: &Path, error: impl ToString) -> Error {
    Error::file(path, error.to_string(), "give a whole .tif file of grey pages")
}

/// Does something with a file's pages; whatever the decoder meets becomes an error.
fn opened<T>(path: &Path, work: impl FnOnce(&mut Pages<'_>) -> Result<T>) -> Result<T> {
    let (reader, _) = super::open(path)?;
    let read = guarded(|| work(&mut Pages::of(path, reader)?));
    read.unwrap_or_else(|| Err(fault(path, "it is broken in a way that its decoder does not expect")))
}

/// A stack of pages whose headers have been read.
struct Pages<'p> {
    path: &'p Path,
    decoder: Decoder<BufReader<File>>,
    /// The extents of the stack: of one page its two.
    extents: Vec<usize>,
    /// The type of the values; none for whole numbers.
    dtype: Option<DType>,
}

impl<'p> Pages<'p> {
    fn of(path: &'p Path, reader: BufReader<File>) -> Result<Pages<'p>> {
        let fault = |error: TiffError| fault(path, error);
        let mut decoder = Decoder::new(reader).map_err(fault)?;
        let first = page(path, &mut decoder)?;
        let mut count = 1;
        while decoder.more_images() {
            decoder.next_image().map_err(fault)?;
            count += 1;
            if count > MOST_PAGES {
                return Err(Error::file(path, format!("it has more than {MOST_PAGES} pages"), "give fewer"));
            }
            let own = page(path, &mut decoder)?;
            if own != first {
                let message = format!("its page {count} is {own}, the first is {first}");
                return Err(Error::file(path, message, "give pages of one size and kind"));
            }
        }
        let stack = (count > 1).then_some(count);
        let extents = stack.into_iter().chain([first.height as usize, first.width as usize]).collect();
        Ok(Pages { path, decoder, extents, dtype: first.dtype })
    }

    /// Reads the values of some pages; the rows of a single page.
    fn read(&mut self, dtype: DType, planes: Range<usize>) -> Result<Array> {
        let (all, path) = (self.extents[0], self.path);
        if planes.start > planes.end || planes.end > all {
            return Err(fault(path, format!("it has {all} planes, {planes:?} are asked for")));
        }
        // After the memory was asked for.
        let (dtype, limits) = (self.dtype.unwrap_or(dtype), Limits::unlimited());
        let decoder = std::mem::replace(&mut self.decoder, Pages::again(path)?);
        self.decoder = decoder.with_limits(limits);
        let page: usize = self.extents[self.extents.len() - 2..].iter().product();
        let is_stack = self.extents.len() == 3;
        let row = if is_stack { page } else { page / all };
        let (pages, rows) = if is_stack { (planes, 0..1) } else { (0..1, planes) };
        let mut values = Array::zeros(dtype, pages.len() * rows.len() * row)?;
        for (number, page) in pages.enumerate() {
            self.decoder.seek_to_image(page).map_err(|error| fault(path, error))?;
            let read = self.decoder.read_image().map_err(|error| fault(path, error))?;
            let picked = rows.start * row..rows.end * row;
            let own = number * row..number * row + picked.len();
            let fits = match (&mut values, &read) {
                // To the bit, NaN too.
                (Array::F32(values), DecodingResult::F32(read)) => {
                    read.get(picked).map(|read| values[own].copy_from_slice(read))
                }
                (Array::F32(values), _) => copy(&read, picked, &mut values[own]),
                (Array::F64(values), _) => copy(&read, picked, &mut values[own]),
            };
            fits.ok_or_else(|| fault(path, format!("page {page} has not the values that its header says")))?;
        }
        Ok(values)
    }

    fn again(path: &Path) -> Result<Decoder<BufReader<File>>> {
        Decoder::new(super::open(path)?.0).map_err(|error| fault(path, error))
    }
}

/// A page, as its header describes it.
#[derive(PartialEq)]
struct Page {
    width: u32,
    height: u32,
    bits: u8,
    dtype: Option<DType>,
}

impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{} of {} bits", self.height, self.width, self.bits)
    }
}

fn page(path: &Path, decoder: &mut Decoder<BufReader<File>>) -> Result<Page> {
    let fault = |error: TiffError| fault(path, error);
    let (width, height) = decoder.dimensions().map_err(fault)?;
    let bits = match decoder.colortype().map_err(fault)? {
        ColorType::Gray(bits) => bits,
        other => {
            let change = "convert it to grey, as with ImageJ or tifffile";
            return Err(Error::file(path, format!("its pixels are {other:?}, not grey"), change));
        }
    };
    let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).map_err(fault)?;
    let is_floating = format.is_some_and(|formats| formats.first() == Some(&FLOATING));
    let dtype = match (is_floating, bits) {
        (true, 32) => Some(DType::F32),
        (true, 64) => Some(DType::F64),
        _ => None,
    };
    Ok(Page { width, height, bits, dtype })
}

/// Copies some of the values of a page; `None` where it has not so many.
fn copy<T: Real>(read: &DecodingResult, picked: Range<usize>, own: &mut [T]) -> Option<()> {
    macro_rules! as_numbers {
        ($values:expr, $convert:expr) => {{
            let values = $values.get(picked)?;
            own.iter_mut().zip(values).for_each(|(own, value)| *own = T::from_f64($convert(*value)));
        }};
    }
    match read {
        DecodingResult::U8(values) => as_numbers!(values, f64::from),
        DecodingResult::I8(values) => as_numbers!(values, f64::from),
        DecodingResult::U16(values) => as_numbers!(values, f64::from),
        DecodingResult::I16(values) => as_numbers!(values, f64::from),
        DecodingResult::U32(values) => as_numbers!(values, f64::from),
        DecodingResult::I32(values) => as_numbers!(values, f64::from),
        DecodingResult::F32(values) => as_numbers!(values, f64::from),
        DecodingResult::F64(values) => as_numbers!(values, |value| value),
        DecodingResult::U64(values) => as_numbers!(values, |value| value as f64),
        DecodingResult::I64(values) => as_numbers!(values, |value| value as f64),
        DecodingResult::F16(values) => as_numbers!(values, f64::from),
    }
    Some(())
}

/// Reads what the headers of a file's pages announce.
pub(super) fn announced(path: &Path, axes: &Axes) -> Result<Announced> {
    opened(path, |pages| {
        let (members, shape) = axes.split(&pages.extents).map_err(|error| foreign(path, error))?;
        let page: u64 =
            pages.extents[pages.extents.len() - 2..].iter().map(|&extent| extent as u64).product();
        let form_bytes = page.saturating_mul(2 * 8).saturating_add(DECODER);
        Ok(Announced { shape, members, dtype: pages.dtype, form_bytes, is_read_whole: false })
    })
}

/// Reads a stack, whose first axis may be that of a batch's members; whole numbers in this type.
pub(super) fn read_as(path: &Path, dtype: DType, axes: &Axes) -> Result<Loaded> {
    opened(path, |pages| {
        let (members, shape) = axes.split(&pages.extents).map_err(|error| foreign(path, error))?;
        let values = pages.read(dtype, 0..pages.extents[0])?;
        Ok(Loaded { values, shape, members })
    })
}

/// Reads planes of a stack along its slowest axis, with the extents of the whole.
pub(super) fn read_planes(path: &Path, dtype: DType, planes: Range<usize>) -> Result<Loaded> {
    opened(path, |pages| {
        let (members, shape) = Axes::DOMAIN.split(&pages.extents).map_err(|error| foreign(path, error))?;
        Ok(Loaded { values: pages.read(dtype, planes)?, shape, members })
    })
}

/// Writes a field of this shape exactly: a page for each index along the slowest of three axes.
pub(super) fn write(path: &Path, shape: &Shape, values: &Array) -> Result<Staged> {
    let staged = Staged::new(path)?;
    let written = with_array!(values, values => encode(&staged, shape, values));
    written.map_err(|error| match error {
        TiffError::IoError(error) => staged::fault(path, &error),
        other => Error::file(path, other.to_string(), "write .npy or .h5"),
    })?;
    Ok(staged)
}

/// The pages of a type.
trait Paged: Real {
    type Pixels: Pixels<Inner = Self>;
}

impl Paged for f32 {
    type Pixels = Gray32Float;
}

impl Paged for f64 {
    type Pixels = Gray64Float;
}

fn encode<T: Paged>(staged: &Staged, shape: &Shape, values: &[T]) -> Result<(), TiffError>
where
    [T]: TiffValue,
{
    let file = std::io::BufWriter::new(staged.handle().map_err(std::io::Error::other)?);
    match size_of_val(values) > LARGE {
        true => put(TiffEncoder::new_big(file)?, shape, values),
        false => put(TiffEncoder::new(file)?, shape, values),
    }
}

fn put<T: Paged, W, K>(mut encoder: TiffEncoder<W, K>, shape: &Shape, values: &[T]) -> Result<(), TiffError>
where
    W: std::io::Write + std::io::Seek,
    K: TiffKind,
    [T]: TiffValue,
{
    let [_, height, width] = shape.padded();
    for page in values.chunks_exact(height * width) {
        encoder.write_image::<T::Pixels>(width as u32, height as u32, page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tiff::encoder::colortype::{Gray8, Gray16, RGB8};

    use super::*;

    #[test]
    fn stacks_come_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        for dtype in [DType::F32, DType::F64] {
            for (extents, read_as_extents) in [
                (&[7][..], &[1, 7][..]),
                (&[3, 5], &[3, 5]),
                (&[3, 1, 5], &[3, 1, 5]),
                (&[5, 4, 3], &[5, 4, 3]),
            ] {
                let shape = Shape::new(extents).unwrap();
                let values = Array::from_fn(dtype, shape.cells(), |i| 1.0 / (3 + i) as f64);
                write(&path, &shape, &values).unwrap().commit().unwrap();
                let read = read_as(&path, DType::F64, &Axes::DOMAIN).unwrap();
                assert!(read.values.same_bits(&values));
                assert_eq!(read.shape.extents(), read_as_extents);
                let said = announced(&path, &Axes::DOMAIN).unwrap();
                assert_eq!((said.shape, said.dtype), (read.shape, Some(dtype)));
                let all = read_as_extents[0];
                for planes in [0..all, 0..1, all - 1..all] {
                    let part = read_planes(&path, dtype, planes.clone()).unwrap();
                    let own = abide_core::backend::planes_of(&values, all, planes).unwrap();
                    assert!(part.values.same_bits(&own) && part.shape == read.shape);
                }
                assert!(read_planes(&path, dtype, 0..all + 1).is_err());
            }
        }
    }

    fn of<C: Pixels>(path: &Path, pages: &[(u32, u32, &[C::Inner])])
    where
        [C::Inner]: TiffValue,
    {
        let mut encoder = TiffEncoder::new(File::create(path).unwrap()).unwrap();
        pages
            .iter()
            .for_each(|(width, height, page)| encoder.write_image::<C>(*width, *height, page).unwrap());
    }

    #[test]
    fn masks_are_the_numbers_that_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        of::<Gray8>(&path, &[(2, 1, &[0, 1]), (2, 1, &[2, 255])]);
        let read = read_as(&path, DType::F32, &Axes::DOMAIN).unwrap();
        assert_eq!(
            (read.values, read.shape.extents()),
            (Array::F32(vec![0.0, 1.0, 2.0, 255.0]), &[2, 1, 2][..])
        );
        of::<Gray16>(&path, &[(2, 1, &[7, 65535])]);
        assert_eq!(read_as(&path, DType::F64, &Axes::DOMAIN).unwrap().values, Array::F64(vec![7.0, 65535.0]));
        of::<Gray8>(&path, &[(2, 1, &[0, 1]), (1, 2, &[2, 255])]);
        let error = read_as(&path, DType::F32, &Axes::DOMAIN).unwrap_err().to_string();
        assert!(error.contains("its page 2 is 2x1 of 8 bits, the first is 1x2"), "{error}");
        of::<RGB8>(&path, &[(1, 1, &[0, 1, 2])]);
        let error = read_as(&path, DType::F32, &Axes::DOMAIN).unwrap_err().to_string();
        assert!(error.contains("not grey"), "{error}");
    }

    #[test]
    fn cut_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        let shape = Shape::new(&[3, 4, 5]).unwrap();
        let values = Array::zeros(DType::F64, 60).unwrap();
        write(&path, &shape, &values).unwrap().commit().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(3) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read_as(&path, DType::F32, &Axes::DOMAIN), Err(Error::File { .. })), "{length}");
        }
    }
}
