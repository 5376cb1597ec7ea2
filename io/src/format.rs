//! The formats of output files.

use std::path::Path;

use abide_core::{Error, Result};

/// The formats of output files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// NumPy's array file: one field, exactly.
    Npy,
    /// NumPy's archive: any number of fields, exactly.
    Npz,
    /// A picture of one field.
    Png,
    /// VTK's image data: any number of fields, exactly.
    Vti,
    /// An animated picture of one field.
    Gif,
    /// A stack of pictures of one field, exactly.
    Tiff,
    /// HDF5, laid out as NetCDF-4 and VTKHDF: any number of fields and steps, exactly.
    Hdf5,
}

/// The formats by the extensions of their files, a file's usual one first.
const FORMATS: [(Format, &[&str]); 7] = [
    (Format::Npy, &["npy"]),
    (Format::Npz, &["npz"]),
    (Format::Png, &["png"]),
    (Format::Vti, &["vti"]),
    (Format::Gif, &["gif"]),
    (Format::Tiff, &["tif", "tiff"]),
    (Format::Hdf5, &["h5", "hdf5", "vtkhdf", "nc"]),
];

impl Format {
    /// Returns the format of an output file by its name.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for an extension that no format has.
    pub fn of(path: &Path) -> Result<Format> {
        let own = super::extension(path);
        let found = FORMATS.iter().find(|(_, extensions)| extensions.contains(&own.as_str()));
        found.map(|(format, _)| *format).ok_or_else(|| {
            let change = format!("name it {}", listed(FORMATS.iter().map(|(_, extensions)| extensions[0])));
            Error::file(path, "no output format has this extension", change)
        })
    }

    /// Returns the extensions of its files, the usual one first.
    pub fn extensions(self) -> &'static [&'static str] {
        FORMATS.iter().find(|(format, _)| *format == self).map_or(&[], |(_, extensions)| extensions)
    }

    /// Returns the extensions of the files of all formats that `is_asked` picks.
    pub fn all_extensions(is_asked: impl Fn(Format) -> bool) -> Vec<&'static str> {
        let asked = FORMATS.iter().filter(|(format, _)| is_asked(*format));
        asked.flat_map(|(_, extensions)| extensions.iter().copied()).collect()
    }

    /// Returns whether a file holds all fields, unless one is named.
    pub fn holds_all(self) -> bool {
        matches!(self, Format::Npz | Format::Vti | Format::Hdf5)
    }

    /// Returns whether a file grows with the run, a frame at a time.
    pub fn grows(self) -> bool {
        matches!(self, Format::Gif | Format::Hdf5)
    }

    /// Returns whether a file says where the result comes from.
    pub fn has_provenance(self) -> bool {
        matches!(self, Format::Npz | Format::Hdf5)
    }

    /// Returns whether a file has room for the members of any batch.
    pub fn has_room_for_members(self) -> bool {
        self.most_axes() > 3
    }

    /// Returns the most axes of a field that a file of it has room for, in a batch with the members'.
    pub(super) fn most_axes(self) -> usize {
        match self {
            Format::Png | Format::Gif => 2,
            Format::Vti | Format::Tiff => 3,
            Format::Npy | Format::Npz | Format::Hdf5 => 4,
        }
    }
}

/// Returns extensions as in `.npy, .png or .vti`.
pub(super) fn listed<'a>(extensions: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = extensions.map(|extension| format!(".{extension}")).collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_is_a_formats() {
        for extension in Format::all_extensions(|_| true) {
            let path = format!("a.{}", extension.to_uppercase());
            let format = Format::of(Path::new(&path)).unwrap();
            assert!(format.extensions().contains(&extension));
        }
        let error = Format::of(Path::new("a.txt")).unwrap_err().to_string();
        assert!(error.contains("name it .npy, .npz, .png, .vti, .gif, .tif or .h5"), "{error}");
    }
}
