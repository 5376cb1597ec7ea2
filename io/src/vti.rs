//! VTK's `.vti`: any number of fields on an image grid, for ParaView and the like.
//!
//! XML with the values appended in base64, each array behind its length in bytes, as VTK's own writer does.

use std::io::{Read, Write};
use std::path::Path;

use abide_core::program::Space;
use abide_core::{DType, Error, Result, Shape};
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;

use super::{Named, Staged};

/// Writes fields of one shape, a point per value, where they stand in space, at a time.
pub fn write(path: &Path, shape: &Shape, space: &Space, fields: &[Named<'_>], time: f64) -> Result<Staged> {
    Staged::new(path)?.fill(|writer| encode(writer, shape, space, fields, time))
}

fn encode(
    w: &mut impl Write,
    shape: &Shape,
    space: &Space,
    fields: &[Named<'_>],
    time: f64,
) -> std::io::Result<()> {
    let [nz, ny, nx] = shape.padded().map(|n| n - 1);
    let extent = format!("0 {nx} 0 {ny} 0 {nz}");
    let [[oz, oy, ox], [dz, dy, dx]] = [space.origin, space.spacing];
    let order = if cfg!(target_endian = "big") { "BigEndian" } else { "LittleEndian" };
    writeln!(w, r#"<?xml version="1.0"?>"#)?;
    writeln!(w, r#"<VTKFile type="ImageData" version="1.0" byte_order="{order}" header_type="UInt64">"#)?;
    writeln!(w, r#"  <ImageData WholeExtent="{extent}" Origin="{ox} {oy} {oz}" Spacing="{dx} {dy} {dz}">"#)?;
    writeln!(w, "    <FieldData>")?;
    writeln!(
        w,
        r#"      <DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">{time}</DataArray>"#
    )?;
    writeln!(w, "    </FieldData>")?;
    writeln!(w, r#"    <Piece Extent="{extent}">"#)?;
    writeln!(
        w,
        r#"      <PointData Scalars="{}">"#,
        fields.first().map(|f| escaped(f.0)).unwrap_or_default()
    )?;
    let mut offset = 0;
    for (name, values) in fields {
        let kind = match values.dtype() {
            DType::F32 => "Float32",
            DType::F64 => "Float64",
        };
        writeln!(
            w,
            r#"        <DataArray type="{kind}" Name="{}" format="appended" offset="{offset}"/>"#,
            escaped(name)
        )?;
        // Four characters for every three bytes or part of three.
        offset += (values.as_bytes().len() as u64 + 8).div_ceil(3) * 4;
    }
    writeln!(w, "      </PointData>\n    </Piece>\n  </ImageData>")?;
    write!(w, r#"  <AppendedData encoding="base64">_"#)?;
    for (_, values) in fields {
        let bytes = values.as_bytes();
        let mut encoder = EncoderWriter::new(&mut *w, &STANDARD);
        encoder.write_all(&(bytes.len() as u64).to_ne_bytes())?;
        encoder.write_all(bytes)?;
        encoder.finish()?;
    }
    writeln!(w, "\n  </AppendedData>\n</VTKFile>")
}

/// What a file says before its values.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The extents of its points, slowest axis first, as many as there are axes of more than a point.
    pub extents: Vec<usize>,
    /// The names of its arrays, and their types.
    pub arrays: Vec<(String, String)>,
    /// Its origin, spacing and time, in words.
    pub facts: Vec<(&'static str, String)>,
}

/// The most bytes that stand before a file's values.
const MOST_BYTES: u64 = 1 << 20;

/// Reads what a file that [`write()`] wrote says before its values.
///
/// # Errors
///
/// [`Error::File`] for a file that is none.
pub fn about(path: &Path) -> Result<About> {
    let foreign = || Error::file(path, "it is no .vti file that Abide wrote", "give one");
    let (reader, _) = super::open(path)?;
    let mut bytes = Vec::new();
    let read = reader.take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| Error::file(path, error, "give a file that can be read"))?;
    let text = String::from_utf8_lossy(&bytes);
    let (text, _) = text.split_once("<AppendedData").ok_or_else(foreign)?;
    let value = |from: &str, name: &str| -> Option<String> {
        let (_, behind) = from.split_once(&format!(" {name}=\""))?;
        Some(unescaped(behind.split_once('"')?.0))
    };
    let whole = value(text, "WholeExtent").ok_or_else(foreign)?;
    let bounds: Vec<i64> = whole.split_whitespace().filter_map(|bound| bound.parse().ok()).collect();
    let [x0, x1, y0, y1, z0, z1] = bounds[..] else { return Err(foreign()) };
    let counts = [(z0, z1), (y0, y1), (x0, x1)].map(|(low, high)| high.saturating_sub(low).saturating_add(1));
    let extents: Vec<usize> = counts.iter().filter_map(|&count| usize::try_from(count).ok()).collect();
    let first = extents.iter().position(|&extent| extent > 1).unwrap_or(extents.len().saturating_sub(1));
    let arrays = text.split("<DataArray").skip(1).filter_map(|from| Some((from, value(from, "Name")?)));
    let (mut facts, mut all) = (Vec::new(), Vec::new());
    for (from, name) in arrays {
        if name == "TimeValue" {
            let time =
                from.split_once('>').and_then(|(_, behind)| Some(behind.split_once('<')?.0.to_owned()));
            facts.extend(time.map(|time| ("time", time)));
        } else {
            let dtype = value(from, "type").unwrap_or_default();
            let own = [("Float32", "f32"), ("Float64", "f64")].iter().find(|(vtk, _)| *vtk == dtype);
            all.push((name, own.map_or(dtype.clone(), |(_, own)| (*own).to_owned())));
        }
    }
    for (name, attribute) in [("origin", "Origin"), ("spacing", "Spacing")] {
        facts.extend(value(text, attribute).map(|own| (name, format!("{own} (x y z)"))));
    }
    Ok(About { extents: extents[first..].to_vec(), arrays: all, facts })
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
}

pub(super) fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::Array;
    use base64::Engine;

    #[test]
    fn offsets_point_at_lengths_and_values() {
        let shape = Shape::new(&[2, 3]).unwrap();
        let (u, v) = (Array::F32((0..6).map(|i| i as f32).collect()), Array::F64(vec![0.25; 6]));
        let mut bytes = Vec::new();
        let space = Space { origin: [0.0, -0.5, 0.05], spacing: [1.0, 0.25, 0.1] };
        encode(&mut bytes, &shape, &space, &[("u", &u), ("a<b", &v)], 7.25).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#"Origin="0.05 -0.5 0" Spacing="0.1 0.25 1""#));
        assert!(text.contains(r#"WholeExtent="0 2 0 1 0 0""#));
        assert!(text.contains(r#"Name="a&lt;b""#) && text.contains(">7.25</DataArray>"));
        let data = text.split_once("base64\">_").unwrap().1.split_once('\n').unwrap().0;
        let offsets: Vec<usize> = text
            .match_indices("offset=\"")
            .map(|(at, m)| text[at + m.len()..].split_once('"').unwrap().0.parse().unwrap())
            .collect();
        for ((from, to), array) in
            [(offsets[0], offsets[1]), (offsets[1], data.len())].into_iter().zip([&u, &v])
        {
            let decoded = STANDARD.decode(&data[from..to]).unwrap();
            assert_eq!(decoded[..8], (array.as_bytes().len() as u64).to_ne_bytes());
            assert_eq!(&decoded[8..], array.as_bytes());
        }
    }

    #[test]
    fn a_file_says_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.vti");
        let (u, v) = (Array::F32(vec![0.0; 6]), Array::F64(vec![0.25; 6]));
        let space = Space { origin: [0.0, -0.5, 0.05], spacing: [1.0, 0.25, 0.1] };
        let shape = Shape::new(&[2, 3]).unwrap();
        write(&path, &shape, &space, &[("u", &u), ("a<b", &v)], 7.5).unwrap().commit().unwrap();
        let said = about(&path).unwrap();
        assert_eq!(said.extents, [2, 3]);
        let arrays = [("u", "f32"), ("a<b", "f64")].map(|(name, dtype)| (name.to_owned(), dtype.to_owned()));
        assert_eq!(said.arrays, arrays);
        let facts = [("time", "7.5"), ("origin", "0.05 -0.5 0 (x y z)"), ("spacing", "0.1 0.25 1 (x y z)")];
        assert_eq!(said.facts, facts.map(|(name, value)| (name, value.to_owned())));
        let whole = std::fs::read(&path).unwrap();
        let head = whole.windows(13).position(|own| own == b"<AppendedData").unwrap() + 13;
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(about(&path).ok(), (length >= head).then(|| said.clone()), "{length}");
        }
    }
}
