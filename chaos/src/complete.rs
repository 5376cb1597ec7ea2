//! Checks that a file is whole, by its format alone, for files whose bytes depend on the moment at which a
//! run was ended.

use anyhow::{Context, Result, bail};

/// Checks that a file of this name is whole.
pub fn check(name: &str, bytes: &[u8]) -> Result<()> {
    let ends = |begin: &[u8], end: &[u8]| {
        if bytes.len() < begin.len() + end.len() || !bytes.starts_with(begin) || !bytes.ends_with(end) {
            bail!("{name} is no whole file of its format: {} bytes", bytes.len());
        }
        Ok(())
    };
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "npy" => npy(bytes).with_context(|| name.to_owned()),
        "npz" => crate::checkpoint::steps(bytes).map(drop).with_context(|| name.to_owned()),
        "png" => ends(b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"),
        "gif" => ends(b"GIF89a", b"\0;"),
        "vti" | "pvd" => ends(b"<?xml", b"</VTKFile>\n"),
        "svg" => ends(b"<svg", b"</svg>\n"),
        "csv" => ends(b"iteration,residual\n", b"\n"),
        "mtx" => market(bytes).with_context(|| name.to_owned()),
        _ => bail!("{name} has no known format"),
    }
}

/// Checks that a NumPy array has as many values as its header says.
pub fn npy(bytes: &[u8]) -> Result<()> {
    let Some((b"\x93NUMPY\x01\x00", rest)) = bytes.split_at_checked(8) else {
        bail!("no NumPy array of version 1")
    };
    let Some((length, rest)) = rest.split_first_chunk::<2>() else { bail!("no header") };
    let Some((header, values)) = rest.split_at_checked(u16::from_le_bytes(*length).into()) else {
        bail!("half a header")
    };
    let header = std::str::from_utf8(header)?;
    let size = if header.contains("'<f4'") { 4 } else { 8 };
    let (_, shape) = header.split_once('(').context("no shape")?;
    let (shape, _) = shape.split_once(')').context("no end of the shape")?;
    let extents = shape.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::parse::<usize>);
    let cells: usize = extents.collect::<Result<Vec<_>, _>>()?.into_iter().product();
    if values.len() != cells * size {
        bail!("{} bytes of values, not {}", values.len(), cells * size);
    }
    Ok(())
}

/// Checks that a Matrix Market vector has as many lines as its header says.
fn market(bytes: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(bytes)?;
    let mut lines = text.lines().filter(|line| !line.starts_with('%'));
    let rows: usize =
        lines.next().and_then(|line| line.split_whitespace().next()).context("no size")?.parse()?;
    let found = lines.count();
    if found != rows || !text.ends_with('\n') {
        bail!("{found} values, not {rows}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_files_are_not_whole() {
        let header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
        let npy = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header, &[0; 8]].concat();
        let csv = b"iteration,residual\n0,1e0\n";
        let mtx = b"%%MatrixMarket matrix array real general\n2 1\n1\n2\n";
        for (name, whole) in [("a.npy", &npy[..]), ("a.csv", csv), ("a.mtx", mtx), ("a.gif", b"GIF89a..\0;")]
        {
            assert!(check(name, whole).is_ok(), "{name}: {:?}", check(name, whole));
            assert!(check(name, &whole[..whole.len() - 1]).is_err(), "{name}");
            assert!(check(name, b"").is_err(), "{name}");
        }
    }
}
