//! NumPy's `.npy`: the exact values of one field.

pub(super) mod header;

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;

use abide_core::backend::Part;
use abide_core::program::Problem;
use abide_core::{Array, DType, Error, Real, Result, Shape};
use crc32fast::Hasher;
use ndarray::{ArrayView, ShapeBuilder};

use self::header::{Descriptor, Header};
use super::members::foreign;
use super::{Announced, Axes, Loaded, Staged, extents, parts};
use crate::memory::Budget;

/// Reads an array of one to three axes in f32 or f64, of either byte order, in C's or Fortran's order of the
/// axes.
pub fn read(path: &Path) -> Result<Loaded> {
    read_as(path, &Axes::DOMAIN)
}

/// Reads an array as [`read`] does, whose first axis may be that of a batch's members.
pub(super) fn read_as(path: &Path, axes: &Axes) -> Result<Loaded> {
    let (mut reader, length) = super::open(path)?;
    decode_as(&mut reader, length, path, axes)
}

/// Reads what a file's header announces of an array that [`read`] can read.
pub(super) fn announced(path: &Path, axes: &Axes) -> Result<Option<Announced>> {
    let (mut reader, length) = super::open(path)?;
    announced_in(&mut reader, length, path, axes)
}

/// Reads what the header of an array in a stream of at most `length` bytes announces.
pub(super) fn announced_in(
    reader: &mut impl Read,
    length: u64,
    path: &Path,
    axes: &Axes,
) -> Result<Option<Announced>> {
    let header = read_header(reader, path)?;
    let dtype = match &header.descriptor {
        Descriptor::Plain(descriptor) if matches!(descriptor.as_str(), "<f4" | ">f4") => DType::F32,
        Descriptor::Plain(descriptor) if matches!(descriptor.as_str(), "<f8" | ">f8") => DType::F64,
        _ => return Ok(None),
    };
    let Ok((members, shape)) = axes.split(&header.shape) else { return Ok(None) };
    let bytes = shape.bytes(dtype) as u64 * members.unwrap_or(1) as u64;
    // A second array is filled in the other order of the axes.
    let form_bytes = if header.fortran { bytes } else { 0 };
    Ok((bytes <= length.saturating_sub(header.length)).then_some(Announced {
        shape,
        members,
        dtype: Some(dtype),
        form_bytes,
        is_read_whole: false,
    }))
}

/// Reads an array from a stream of at most `length` bytes; `path` is named in errors.
pub fn decode(reader: &mut impl Read, length: u64, path: &Path) -> Result<Loaded> {
    decode_as(reader, length, path, &Axes::DOMAIN)
}

/// Reads an array as [`decode`] does, whose first axis may be that of a batch's members.
pub fn decode_as(reader: &mut impl Read, length: u64, path: &Path, axes: &Axes) -> Result<Loaded> {
    decode_picked(reader, path, axes, |reader, header, count, _| {
        let available = length.saturating_sub(header.length);
        Ok(Picked { reader, count, available, extents: header.shape.clone() })
    })
}

/// Reads planes along the slowest axis of an array of a domain, from a reader that stands at its header and has `length`
/// bytes of it. Returns their values alone, with the extents of the whole array. `hasher` takes their bytes.
pub(super) fn decode_planes(
    reader: &mut BufReader<File>,
    length: u64,
    path: &Path,
    planes: Range<usize>,
    hasher: &mut Hasher,
) -> Result<Loaded> {
    decode_picked(reader, path, &Axes::DOMAIN, |reader, header, count, width| {
        let (all, bytes) = (header.shape[0], (count * width) as u64);
        let available = length.saturating_sub(header.length);
        if bytes > available {
            return Err(too_short(count, width, available));
        }
        if bytes < available {
            return Err(too_long(count));
        }
        if planes.start > planes.end || planes.end > all {
            return Err(format!("it has {all} planes, {planes:?} are asked for"));
        }
        let (len, others) = (planes.len(), count / all);
        // In Fortran's order each plane has a value in each run of all planes.
        let (before, run, gap, runs) = match header.fortran {
            false => (planes.start * others, len * others, 0, 1),
            true => (planes.start, len, all - len, others),
        };
        reader.seek_relative((before * width) as i64).map_err(|error| error.to_string())?;
        let mut extents = header.shape.clone();
        extents[0] = len;
        let runs =
            Runs { reader, hasher, run: run * width, gap: gap * width, runs, left: 0, is_begun: false };
        Ok(Picked { reader: runs, count: len * others, available: (len * others * width) as u64, extents })
    })
}

/// Reads planes of the array in a file as [`decode_planes`] does.
pub(super) fn read_planes(path: &Path, planes: Range<usize>) -> Result<Loaded> {
    let (mut reader, length) = super::open(path)?;
    decode_planes(&mut reader, length, path, planes, &mut Hasher::new())
}

/// Bytes from which on a stream's length is not known, as that of a pipe.
const UNKNOWN: u64 = u64::MAX / 2;

/// The values that are wanted of an array, and their extents.
struct Picked<R> {
    reader: R,
    count: usize,
    /// Bytes that there are of them at most.
    available: u64,
    extents: Vec<usize>,
}

/// Runs of bytes of a file with gaps between them, one after another.
struct Runs<'a> {
    reader: &'a mut BufReader<File>,
    hasher: &'a mut Hasher,
    run: usize,
    gap: usize,
    /// Runs that are not begun, and bytes left of the last one that is.
    runs: usize,
    left: usize,
    is_begun: bool,
}

impl Read for Runs<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            if self.runs == 0 {
                return Ok(0);
            }
            if std::mem::replace(&mut self.is_begun, true) {
                self.reader.seek_relative(self.gap as i64)?;
            }
            (self.runs, self.left) = (self.runs - 1, self.run);
            if self.run == 0 {
                return Ok(0);
            }
        }
        let most = bytes.len().min(self.left);
        let count = self.reader.read(&mut bytes[..most])?;
        self.hasher.update(&bytes[..count]);
        self.left -= count;
        Ok(count)
    }
}

fn too_short(count: usize, width: usize, available: u64) -> String {
    format!("its header promises {count} values of {width} bytes, {available} bytes follow")
}

fn too_long(count: usize) -> String {
    format!("it goes on after the {count} values that its header promises")
}

/// Reads what `pick` picks of an array by its header, the number of its values and their width.
fn decode_picked<R: Read, P: Read>(
    mut reader: R,
    path: &Path,
    axes: &Axes,
    pick: impl FnOnce(R, &Header, usize, usize) -> Result<Picked<P>, String>,
) -> Result<Loaded> {
    let fault = |message: String| Error::file(path, message, "save it anew, as with numpy.save");
    let header = read_header(&mut reader, path)?;
    let Descriptor::Plain(descriptor) = &header.descriptor else {
        return Err(fault("it holds records, not plain numbers".to_owned()));
    };
    let (members, shape) = match axes.split(&header.shape) {
        Ok(split) => split,
        Err(error @ Error::Invalid { .. }) if *axes != Axes::DOMAIN && header.shape.len() <= 4 => {
            return Err(foreign(path, error));
        }
        Err(_) => {
            let extents = match header.shape.len() {
                0..=8 => format!("extents {:?}", header.shape),
                axes => format!("{axes} axes"),
            };
            return Err(fault(format!("its {extents} are not those of a domain of one to three axes")));
        }
    };
    let count = shape.cells() * members.unwrap_or(1);
    let picked = |width: usize| -> Result<Picked<P>> {
        let picked = pick(reader, &header, count, width).map_err(fault)?;
        if picked.available >= UNKNOWN {
            // A file is as long as its header promises, or is refused; a pipe may promise what no machine has.
            let bytes = count as u128 * width as u128;
            Budget::new(format!("memory for {}", path.display()))
                .with(format!("{count} values"), bytes)
                .with("their order in the file", if header.fortran { bytes } else { 0 })
                .check("give a smaller file")?;
        }
        Ok(picked)
    };
    let (values, extents) = match descriptor.as_str() {
        "<f4" => values(picked(4)?, f32::from_le_bytes),
        ">f4" => values(picked(4)?, f32::from_be_bytes),
        "<f8" => values(picked(8)?, f64::from_le_bytes),
        ">f8" => values(picked(8)?, f64::from_be_bytes),
        other => {
            let kind = match other.trim_start_matches(['<', '>', '=', '|']).chars().next() {
                Some('c') => "complex numbers",
                Some('i' | 'u') => "whole numbers",
                Some('b' | '?') => "truth values",
                Some('f') => "numbers of another width",
                _ => "something else",
            };
            return Err(Error::file(
                path,
                format!("it holds {kind} (`{}`), not f32 or f64", other.escape_debug()),
                "convert it, as with a.astype('float64')",
            ));
        }
    }
    .map_err(fault)?;
    let values = if header.fortran { from_fortran(values, &extents).map_err(fault)? } else { values };
    Ok(Loaded { values, shape, members })
}

pub(super) fn read_header(reader: &mut impl Read, path: &Path) -> Result<Header> {
    let foreign =
        |why: String| Error::file(path, format!("not a .npy file: {why}"), "save it with numpy.save");
    Header::read(reader).map_err(foreign)
}

/// Reads values, and reserves no more memory than the stream has bytes. Returns them with their extents.
fn values<T: Real, const N: usize>(
    picked: Picked<impl Read>,
    convert: impl Fn([u8; N]) -> T,
) -> Result<(Array, Vec<usize>), String> {
    let Picked { mut reader, count, available, extents } = picked;
    let memory = |_| format!("there is no memory for its {count} values");
    let promised = count as u64 * N as u64;
    if promised > available {
        return Err(too_short(count, N, available));
    }
    let mut values: Vec<T> = Vec::new();
    if available < UNKNOWN {
        values.try_reserve_exact(count).map_err(memory)?;
    }
    let mut buffer = vec![0; (1 << 16).min(promised as usize)];
    while values.len() < count {
        let now = buffer.len().min((count - values.len()) * N);
        reader
            .read_exact(&mut buffer[..now])
            .map_err(|e| format!("it ends after {} of {count} values: {e}", values.len()))?;
        values.try_reserve(now / N).map_err(memory)?;
        values.extend(buffer[..now].as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)));
    }
    // This read also makes the stream check a checksum that follows the data.
    match reader.read(&mut [0]) {
        Ok(0) => Ok((T::into_array(values), extents)),
        Ok(_) => Err(too_long(count)),
        Err(e) => Err(e.to_string()),
    }
}

/// Puts values whose first axis varies fastest into the order in which the last axis does.
fn from_fortran(values: Array, extents: &[usize]) -> Result<Array, String> {
    fn reordered<T: Real>(values: Vec<T>, extents: &[usize]) -> Result<Array, String> {
        let mut ordered = Vec::new();
        let memory = |_| format!("there is no memory to put its {} values in order", values.len());
        ordered.try_reserve_exact(values.len()).map_err(memory)?;
        let view = ArrayView::from_shape(extents.f(), &values).map_err(|e| e.to_string())?;
        ordered.extend(view.iter());
        Ok(T::into_array(ordered))
    }
    match values {
        Array::F32(values) => reordered(values, extents),
        Array::F64(values) => reordered(values, extents),
    }
}

/// Writes a field to a `.npy` file.
pub fn write(path: &Path, shape: &Shape, values: &Array) -> Result<Staged> {
    write_as(path, shape.extents(), values)
}

/// Writes an array of any extents to a `.npy` file.
pub(super) fn write_as(path: &Path, extents: &[usize], values: &Array) -> Result<Staged> {
    Staged::new(path)?.fill(|writer| encode_as(writer, extents, values))
}

/// Writes this process's part of a field to a `.npy` file; the other processes write the rest. In a batch the members'
/// axis is the first. Returns the file in the first process, which puts it in its place, and nothing in the others.
///
/// # Errors
///
/// [`Error::File`], the same in all processes; those of reading the field.
pub fn write_parts(
    path: &Path,
    problem: &Problem,
    field: usize,
    part: &mut dyn Part,
) -> Result<Option<Staged>> {
    let members = problem.is_batch().then_some(problem.members());
    let header = header::bytes(problem.dtype, &extents(members, &problem.shape_of(field)?));
    let values = parts::Values::of(problem, field, header.len() as u64);
    let length = values.at + values.bytes;
    parts::write(part, path, length, &[values], |_| vec![(0, header)])
}

/// Writes a field to a stream.
pub fn encode(writer: &mut impl Write, shape: &Shape, values: &Array) -> std::io::Result<()> {
    encode_as(writer, shape.extents(), values)
}

/// Writes an array of any extents to a stream.
pub(super) fn encode_as(writer: &mut impl Write, extents: &[usize], values: &Array) -> std::io::Result<()> {
    if extents.iter().product::<usize>() != values.len() {
        let reason = format!("{} values are not those of extents {extents:?}", values.len());
        return Err(std::io::Error::other(reason));
    }
    writer.write_all(&header::bytes(values.dtype(), extents))?;
    writer.write_all(values.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_bytes(bytes: &[u8]) -> Result<Loaded> {
        decode(&mut &*bytes, bytes.len() as u64, Path::new("a.npy"))
    }

    fn file(descriptor: &str, order: &str, extents: &str, data: &[u8]) -> Vec<u8> {
        let mut header =
            format!("{{'descr': '{descriptor}', 'fortran_order': {order}, 'shape': {extents}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
    }

    fn bytes_of(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn what_is_written_is_read_to_the_bit() {
        let nan = f64::from_bits(0x7ff8_0000_0000_1234);
        for values in [
            Array::F64(vec![1.5, -0.0, nan, f64::MIN_POSITIVE, 5.0, 6.0]),
            Array::F32(vec![1.0, f32::INFINITY, 3.0, -4.0, 5.0, 6.0]),
        ] {
            for extents in [&[6][..], &[2, 3], &[1, 3, 2]] {
                let shape = Shape::new(extents).unwrap();
                let mut bytes = Vec::new();
                encode(&mut bytes, &shape, &values).unwrap();
                let loaded = decode_bytes(&bytes).unwrap();
                assert_eq!(loaded.values.as_bytes(), values.as_bytes());
                assert_eq!(loaded.shape, shape);
            }
        }
    }

    #[test]
    fn both_byte_orders_and_both_axis_orders() {
        let big: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(
            decode_bytes(&file(">f4", "False", "(2,)", &big)).unwrap().values,
            Array::F32(vec![1.0, 2.0])
        );
        let columns = bytes_of(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let loaded = decode_bytes(&file("<f8", "True", "(2, 3)", &columns)).unwrap();
        assert_eq!(loaded.values, Array::F64(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    }

    #[test]
    fn other_numbers_are_refused_by_name() {
        for (descriptor, words) in [
            ("<c16", "complex"),
            ("<i8", "whole"),
            ("|u1", "whole"),
            ("|b1", "truth"),
            ("<f2", "width"),
            ("|O", "else"),
        ] {
            let error = decode_bytes(&file(descriptor, "False", "(2,)", &[0; 32])).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn lies_and_cuts_are_errors_and_take_no_memory() {
        let good = file("<f8", "False", "(2, 3)", &bytes_of(&[0.0; 6]));
        assert!(decode_bytes(&good).is_ok());
        for length in 0..good.len() {
            assert!(matches!(decode_bytes(&good[..length]), Err(Error::File { .. })), "{length}");
        }
        assert!(decode_bytes(&[&good[..], &[0]].concat()).is_err());
        for extents in [
            "(2, 4)",
            "(1000000, 1000000, 100)",
            "(18446744073709551615,)",
            "(0,)",
            "()",
            "(1,1,1,6)",
            "(-1,)",
            "6",
            "(99999999999999999999999,)",
        ] {
            assert!(
                matches!(decode_bytes(&file("<f8", "False", extents, &[0; 48])), Err(Error::File { .. })),
                "{extents}"
            );
        }
        let records = file("", "False", "(2,)", &[]);
        let records = String::from_utf8_lossy(&records[10..]).replace("''", "[('x', '<f8'), ('y', '<f8')]");
        let records =
            [b"\x93NUMPY\x01\x00", &(records.len() as u16).to_le_bytes()[..], records.as_bytes()].concat();
        assert!(decode_bytes(&records).unwrap_err().to_string().contains("it holds records"));
        let long = [b"\x93NUMPY\x02\x00\xff\xff\xff\xff", &[b' '; 100][..]].concat();
        assert!(decode_bytes(&long).is_err());
        // A stream of unknown length.
        let lie = file("<f8", "False", "(1000000, 1000000, 100)", &[0; 48]);
        assert!(decode(&mut &*lie, u64::MAX, Path::new("pipe")).is_err());
    }

    #[test]
    fn planes_are_those_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let numbers: Vec<f64> = (0..5 * 3 * 2).map(f64::from).collect();
        for (extents, text) in [(&[30][..], "(30,)"), (&[5, 6], "(5, 6)"), (&[5, 3, 2], "(5, 3, 2)")] {
            for (descriptor, order) in [("<f8", "False"), (">f8", "False"), ("<f8", "True"), (">f4", "True")]
            {
                let data: Vec<u8> = match descriptor {
                    "<f8" => bytes_of(&numbers),
                    ">f8" => numbers.iter().flat_map(|v| v.to_be_bytes()).collect(),
                    _ => numbers.iter().flat_map(|&v| (v as f32).to_be_bytes()).collect(),
                };
                let bytes = file(descriptor, order, text, &data);
                std::fs::write(&path, &bytes).unwrap();
                let whole = read(&path).unwrap();
                let all = extents[0];
                for planes in [0..all, 0..1, 1..all, 2..4, all - 1..all, 3..3] {
                    let part = read_planes(&path, planes.clone()).unwrap();
                    assert_eq!(part.shape.extents(), extents);
                    let values = abide_core::backend::planes_of(&whole.values, all, planes.clone()).unwrap();
                    assert_eq!(part.values, values, "{extents:?} {descriptor} {order} {planes:?}");
                }
                assert!(read_planes(&path, 0..all + 1).is_err());
                for spoilt in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat()] {
                    std::fs::write(&path, spoilt).unwrap();
                    let error = read(&path).unwrap_err();
                    assert_eq!(read_planes(&path, 0..1).unwrap_err(), error);
                }
            }
        }
    }
}
