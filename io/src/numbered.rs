//! Numbered files, as `out_%05d.png`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf, is_separator};
use std::str::FromStr;

use abide_core::{Error, Result};

/// A name with a place for a number, `%d`, or `%05d` for a number of at least five digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    before: String,
    digits: usize,
    after: String,
}

impl FromStr for Numbered {
    type Err = Error;

    fn from_str(text: &str) -> Result<Numbered> {
        let wrong =
            |reason: &str| Error::invalid(format!("frames `{text}`"), reason, "write them like out_%05d.png");
        let (before, number) =
            text.split_once('%').ok_or_else(|| wrong("they have no place for a number"))?;
        let (digits, after) = number.split_once('d').ok_or_else(|| wrong("the number is not written %d"))?;
        // The digits are checked here, because parsing would accept a sign.
        if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong("the number is not written %d or %05d"));
        }
        let digits = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX) };
        if after.contains('%') || digits > 20 {
            return Err(wrong("one number of at most 20 digits has a place"));
        }
        Ok(Numbered { before: before.to_owned(), digits, after: after.to_owned() })
    }
}

impl Numbered {
    /// Returns the file of a number.
    pub fn path(&self, number: u64) -> PathBuf {
        PathBuf::from(format!("{}{}{}", self.before, self.digits(number), self.after))
    }

    /// Returns a number as the names have it.
    pub(super) fn digits(&self, number: u64) -> String {
        format!("{number:0width$}", width = self.digits)
    }

    /// Returns what stands after the number.
    pub(super) fn after(&self) -> &str {
        &self.after
    }

    /// Returns the folder in which the number stands, and the name before and after the number there.
    pub(super) fn part(&self) -> (&str, &str, &str) {
        let folder = self.before.rfind(is_separator).map_or(0, |at| at + 1);
        let end = self.after.find(is_separator).unwrap_or(self.after.len());
        (&self.before[..folder], &self.before[folder..], &self.after[..end])
    }

    /// Returns the folder of all files; `None` where the number stands in a folder's name.
    pub(super) fn folder(&self) -> Option<&Path> {
        let (folder, ..) = self.part();
        let folder = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
        (!self.after.contains(is_separator)).then_some(folder)
    }

    /// Returns the number in a name; `None` where the name is not of this pattern.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let (_, before, after) = self.part();
        let digits = name.strip_prefix(before)?.strip_suffix(after)?;
        let number: u64 =
            digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())??;
        (self.digits(number) == digits).then_some(number)
    }

    /// Returns the files of any number that exist, sorted by number; also files that do not, in numbered folders that do.
    pub fn found(&self) -> Vec<PathBuf> {
        self.present(&(0..=u64::MAX)).into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the files of these numbers that exist, or whose numbered folders exist, sorted by number. Only
    /// files that a look into the folder shows are found; in a folder that cannot be read there are none.
    pub(super) fn present(&self, numbers: &RangeInclusive<u64>) -> Vec<(u64, PathBuf)> {
        let (folder, ..) = self.part();
        let entries = std::fs::read_dir(if folder.is_empty() { "." } else { folder });
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let found = names.filter_map(|name| self.number(name.to_str()?));
        let mut found: Vec<_> = found.filter(|n| numbers.contains(n)).map(|n| (n, self.path(n))).collect();
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        for (pattern, number, name) in [
            ("out_%05d.png", 42, "out_00042.png"),
            ("out_%05d.png", 1234567, "out_1234567.png"),
            ("a/%d.npy", 7, "a/7.npy"),
            ("run%3d/u.npy", 7, "run007/u.npy"),
            ("%020d", u64::MAX, "18446744073709551615"),
        ] {
            let numbered: Numbered = pattern.parse().unwrap();
            assert_eq!(numbered.path(number), Path::new(name));
            let part = name.split('/').find(|part| part.contains(|c: char| c.is_ascii_digit())).unwrap();
            assert_eq!(numbered.number(part), Some(number), "{pattern} {part}");
        }
        let numbered: Numbered = "out_%03d.png".parse().unwrap();
        for name in [
            "out_7.png",
            "out_0007.png",
            "out_.png",
            "out_+07.png",
            "out_007.npy",
            "xout_007.png",
            "out_1e3.png",
        ] {
            assert_eq!(numbered.number(name), None, "{name}");
        }
    }

    #[test]
    fn a_pattern_has_one_number_without_a_sign() {
        for bad in [
            "out.png",
            "out_%s.png",
            "%d%d.png",
            "out_%5x.png",
            "%99d.png",
            "f%+5d.npy",
            "f%-5d.npy",
            "f% 5d.npy",
        ] {
            assert!(bad.parse::<Numbered>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_there_is_found_by_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["f1.npy", "f03.npy", "f12.npy", "f4.npy", "g2.npy"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let numbered: Numbered = format!("{}/f%d.npy", folder.path().display()).parse().unwrap();
        let found: Vec<u64> = numbered.present(&(1..=11)).into_iter().map(|(number, _)| number).collect();
        assert_eq!(found, [1, 4]);
        assert_eq!(
            numbered.folder().map(Path::to_path_buf),
            Some(PathBuf::from(format!("{}/", folder.path().display())))
        );
    }
}
