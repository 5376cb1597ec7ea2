//! VTK's `.vti`: any number of fields on an image grid, for ParaView and the like.
//!
//! XML with the values appended in base64, each array behind its length in bytes, as VTK's own writer does.

use std::io::Write;
use std::path::Path;

use abide_core::program::Space;
use abide_core::{DType, Result, Shape};
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;

use super::{Named, Staged};

/// Writes fields of one shape, a point per value, where they stand in space; the step is the time.
pub fn write(path: &Path, shape: &Shape, space: &Space, fields: &[Named<'_>], step: u64) -> Result<Staged> {
    Staged::new(path)?.fill(|writer| encode(writer, shape, space, fields, step))
}

fn encode(
    w: &mut impl Write,
    shape: &Shape,
    space: &Space,
    fields: &[Named<'_>],
    step: u64,
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
        r#"      <DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">{step}</DataArray>"#
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

fn escaped(name: &str) -> String {
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
        encode(&mut bytes, &shape, &space, &[("u", &u), ("a<b", &v)], 7).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#"Origin="0.05 -0.5 0" Spacing="0.1 0.25 1""#));
        assert!(text.contains(r#"WholeExtent="0 2 0 1 0 0""#));
        assert!(text.contains(r#"Name="a&lt;b""#));
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
}
