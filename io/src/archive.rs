//! The layout of a `.zip` whose entries are stored as they are: where everything stands follows from the names and
//! lengths alone, so that several processes can write its entries' parts before any checksum is known.

/// Lengths and offsets from here on stand in fields of 64 bits.
const LARGE: u64 = u32::MAX as u64;
/// The versions of the format that a reader must know: for plain entries, and for those with lengths of 64 bits.
const VERSIONS: [u16; 2] = [10, 45];
/// The first of January 1980, so that the same contents are the same bytes.
const DATE: u16 = 0x21;
/// A regular file that its owner may write and everybody may read, made on Unix.
const RIGHTS: u32 = 0o100_644 << 16;
const UNIX: u16 = 3 << 8;
/// The flag of a name that is not in ASCII.
const IN_UTF8: u16 = 1 << 11;

/// An entry and its place.
struct Entry {
    name: String,
    length: u64,
    /// Where its header stands.
    at: u64,
}

/// The layout of an archive.
pub(super) struct Layout {
    entries: Vec<Entry>,
    /// Whether lengths have 64 bits, whatever they are.
    large: bool,
    /// Where the directory stands.
    end: u64,
}

impl Layout {
    /// Lays out entries of these names and lengths. None is as long as 4 GiB unless `large`.
    pub fn new(entries: impl IntoIterator<Item = (String, u64)>, large: bool) -> Layout {
        let mut layout = Layout { entries: Vec::new(), large, end: 0 };
        for (name, length) in entries {
            let entry = Entry { name, length, at: layout.end };
            layout.end += layout.head(&entry, 0).len() as u64 + length;
            layout.entries.push(entry);
        }
        layout
    }

    /// Returns where an entry's bytes begin.
    pub fn begin(&self, entry: usize) -> u64 {
        let entry = &self.entries[entry];
        entry.at + self.head(entry, 0).len() as u64
    }

    /// Returns the archive's length in bytes.
    pub fn length(&self) -> u64 {
        let none = vec![0; self.entries.len()];
        self.end + self.directory(&none).len() as u64
    }

    /// Returns all that stands around the entries' bytes, and where, once their checksums are known: their headers, and
    /// the directory.
    pub fn frame(&self, checksums: &[u32]) -> Vec<(u64, Vec<u8>)> {
        let heads = self.entries.iter().zip(checksums).map(|(entry, &sum)| (entry.at, self.head(entry, sum)));
        heads.chain([(self.end, self.directory(checksums))]).collect()
    }

    fn version(&self) -> u16 {
        VERSIONS[usize::from(self.large)]
    }

    /// Returns what the two headers of an entry have in common: from the version to the length of its name.
    fn common(&self, entry: &Entry, checksum: u32) -> Bytes {
        let flags = if entry.name.is_ascii() { 0 } else { IN_UTF8 };
        // Not compressed, at midnight.
        let bytes = Bytes::default().short(self.version()).short(flags).short(0).short(0).short(DATE);
        let length = if self.large { u32::MAX } else { short_of(entry.length) };
        bytes.word(checksum).word(length).word(length).short(entry.name.len() as u16)
    }

    fn head(&self, entry: &Entry, checksum: u32) -> Vec<u8> {
        let extra = if self.large { Bytes::extra(&[entry.length, entry.length]) } else { Vec::new() };
        let bytes = Bytes::default().text(b"PK\x03\x04").text(&self.common(entry, checksum).0);
        bytes.short(extra.len() as u16).text(entry.name.as_bytes()).text(&extra).0
    }

    fn directory(&self, checksums: &[u32]) -> Vec<u8> {
        let mut all = Bytes::default();
        for (entry, &checksum) in self.entries.iter().zip(checksums) {
            let mut long = if self.large { vec![entry.length; 2] } else { Vec::new() };
            if entry.at >= LARGE {
                long.push(entry.at);
            }
            let extra = if long.is_empty() { Vec::new() } else { Bytes::extra(&long) };
            all = all.text(b"PK\x01\x02").short(UNIX | self.version());
            all = all.text(&self.common(entry, checksum).0).short(extra.len() as u16);
            // No comment, on the first disk, no attributes of its contents.
            all = all.short(0).short(0).short(0).word(RIGHTS).word(short_of(entry.at));
            all = all.text(entry.name.as_bytes()).text(&extra);
        }
        let (length, entries) = (all.0.len() as u64, self.entries.len() as u64);
        let is_long = length.max(self.end) > LARGE;
        if is_long {
            let version = self.version();
            all = all.text(b"PK\x06\x06").long(44).short(version).short(version).word(0).word(0);
            all = all.long(entries).long(entries).long(length).long(self.end);
            all = all.text(b"PK\x06\x07").word(0).long(self.end + length).word(1);
        }
        // A program has far fewer fields than the format has room for entries.
        let (entries, length) = (entries as u16, if is_long { u32::MAX } else { short_of(length) });
        all = all.text(b"PK\x05\x06").short(0).short(0).short(entries).short(entries);
        all.word(length).word(short_of(self.end)).short(0).0
    }
}

/// Returns a number as a field of 32 bits has it, all bits set where it is too large.
fn short_of(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Bytes with numbers, the lowest byte first.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn text(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend_from_slice(bytes);
        self
    }

    fn short(self, number: u16) -> Bytes {
        self.text(&number.to_le_bytes())
    }

    fn word(self, number: u32) -> Bytes {
        self.text(&number.to_le_bytes())
    }

    fn long(self, number: u64) -> Bytes {
        self.text(&number.to_le_bytes())
    }

    /// Returns the field of numbers that do not stand in 32 bits.
    fn extra(numbers: &[u64]) -> Vec<u8> {
        let bytes = Bytes::default().short(1).short(8 * numbers.len() as u16);
        numbers.iter().fold(bytes, |bytes, &number| bytes.long(number)).0
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Seek, SeekFrom, Write};

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipArchive, ZipWriter};

    use super::*;

    #[test]
    fn an_archive_is_what_a_library_writes() {
        let entries = [("abide.json", &b"{}"[..]), ("u.npy", &[7; 300]), ("empty.npy", &[]), ("ü.npy", &[1])];
        for large in [false, true] {
            let options =
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            for (name, bytes) in entries {
                zip.start_file(name, options).unwrap();
                zip.write_all(bytes).unwrap();
            }
            let written = zip.finish().unwrap().into_inner();
            let layout =
                Layout::new(entries.map(|(name, bytes)| (name.to_owned(), bytes.len() as u64)), large);
            let mut own = vec![0; layout.length() as usize];
            let mut put = |at: u64, bytes: &[u8]| own[at as usize..][..bytes.len()].copy_from_slice(bytes);
            for (number, (_, bytes)) in entries.iter().enumerate() {
                put(layout.begin(number), bytes);
            }
            let sums = entries.map(|(_, bytes)| crc32fast::hash(bytes));
            layout.frame(&sums).iter().for_each(|(at, bytes)| put(*at, bytes));
            assert_eq!(own, written, "{large}");
        }
    }

    /// A file of zeros but for some pieces.
    struct Sparse(Vec<(u64, Vec<u8>)>, u64, u64);

    impl Read for Sparse {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            let count = bytes.len().min((self.2 - self.1.min(self.2)) as usize);
            for (number, byte) in bytes[..count].iter_mut().enumerate() {
                let at = self.1 + number as u64;
                let piece =
                    self.0.iter().find(|(begin, own)| (*begin..begin + own.len() as u64).contains(&at));
                *byte = piece.map_or(0, |(begin, own)| own[(at - begin) as usize]);
            }
            self.1 += count as u64;
            Ok(count)
        }
    }

    impl Seek for Sparse {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.1 = match to {
                SeekFrom::Start(at) => at,
                SeekFrom::Current(by) => self.1.saturating_add_signed(by),
                SeekFrom::End(by) => self.2.saturating_add_signed(by),
            };
            Ok(self.1)
        }
    }

    #[test]
    fn entries_and_places_beyond_four_gigabytes_are_found() {
        for (large, lengths) in [(false, [3 << 30, 3 << 30, 5]), (true, [6 << 30, 1 << 30, 5])] {
            let entries =
                lengths.iter().enumerate().map(|(number, &length)| (format!("{number}.npy"), length));
            let layout = Layout::new(entries, large);
            let file = Sparse(layout.frame(&[1, 2, 3]), 0, layout.length());
            let mut zip = ZipArchive::new(file).unwrap();
            for (number, &length) in lengths.iter().enumerate() {
                let entry = zip.by_index_raw(number).unwrap();
                assert_eq!((entry.size(), entry.crc32()), (length, number as u32 + 1), "{large}");
                assert_eq!(entry.data_start(), Some(layout.begin(number)), "{large}");
            }
        }
    }
}
