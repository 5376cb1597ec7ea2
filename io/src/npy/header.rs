//! The header of a `.npy` file, versions 1 to 3: a dictionary in Python's notation with three keys, read in
//! one pass.
//!
//! General parsers of Python's literals take exponential time in the depth of nesting. A plain array's header
//! nests nothing but its shape, so anything nested deeper is skipped, and only counted.

use std::io::Read;

use abide_core::DType;

/// The longest header that is read; the header of a plain array has some hundred bytes.
const LONGEST: u32 = 1 << 16;

/// The kind of values in the file.
#[derive(Debug, PartialEq)]
pub(crate) enum Descriptor {
    /// Plain numbers, as `<f8`.
    Plain(String),
    /// Records of several numbers.
    Records,
}

/// The contents of a header.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) descriptor: Descriptor,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes before the values.
    pub(crate) length: u64,
}

impl Header {
    /// Reads a header and leaves the stream at the values; an error says in one line what is wrong.
    pub(super) fn read(reader: &mut impl Read) -> Result<Header, String> {
        let mut start = [0; 12];
        let short = |_| "it ends within its header".to_owned();
        reader.read_exact(&mut start[..10]).map_err(short)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("it does not begin as one".to_owned());
        }
        let mut used = 10;
        let mut length = u32::from(u16::from_le_bytes([start[8], start[9]]));
        match start[6..8] {
            [1, 0] => {}
            [2 | 3, 0] => {
                used = 12;
                reader.read_exact(&mut start[10..]).map_err(short)?;
                length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
            }
            _ => return Err(format!("its version is {}.{}, and 1.0 to 3.0 are known", start[6], start[7])),
        }
        if length > LONGEST {
            return Err(format!("its header claims {length} bytes, and {LONGEST} are the most that is read"));
        }
        let mut text = vec![0; length as usize];
        reader.read_exact(&mut text).map_err(short)?;
        let mut header = Scanner { text: &text, at: 0 }.header()?;
        header.length = used + u64::from(length);
        Ok(header)
    }
}

/// Returns the bytes before the values of an array in C's order of the axes, in this machine's order of bytes.
pub(crate) fn bytes(dtype: DType, extents: &[usize]) -> Vec<u8> {
    const BEFORE: usize = 10;
    const UNIT: usize = 64;
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let axes: String = match extents {
        [one] => format!("{one},"),
        all => all.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let text = format!("{{'descr': '{order}f{}', 'fortran_order': False, 'shape': ({axes})}}", dtype.bytes());
    // Three axes of 64 bits each leave far less than 64 KiB.
    let used = BEFORE + text.len() + 1;
    let blanks = UNIT - used % UNIT;
    let length = ((used + blanks - BEFORE) as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), " ".repeat(blanks).as_bytes(), b"\n"].concat()
}

/// Reads the dictionary from left to right and never goes back.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut descriptor, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{', "a dictionary's `{`")?;
        while !self.takes(b'}') {
            let key = self.string("a key in quotes")?;
            self.expect(b':', "`:`")?;
            let again = match key {
                "descr" => descriptor.replace(self.descriptor()?).is_some(),
                "fortran_order" => fortran.replace(self.truth()?).is_some(),
                "shape" => shape.replace(self.extents()?).is_some(),
                _ => return Err(format!("its header has a key `{}`", key.escape_debug())),
            };
            if again {
                return Err(format!("its header has two keys `{key}`"));
            }
            if !self.takes(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.fault("the header's end"));
        }
        let missing = |key: &str| format!("its header has no key `{key}`");
        Ok(Header {
            descriptor: descriptor.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            length: 0,
        })
    }

    fn descriptor(&mut self) -> Result<Descriptor, String> {
        if !matches!(self.peek(), Some(b'[' | b'(')) {
            return Ok(Descriptor::Plain(self.string("a type in quotes, or records")?.to_owned()));
        }
        let mut open = Vec::new();
        loop {
            match self.peek() {
                Some(b'"' | b'\'') => {
                    self.string("a name")?;
                    continue;
                }
                Some(b'[') => open.push(b']'),
                Some(b'(') => open.push(b')'),
                Some(close @ (b']' | b')')) => {
                    if open.pop() != Some(close) {
                        return Err(self.fault("the bracket that closes the last one"));
                    }
                }
                Some(byte) if byte.is_ascii_alphanumeric() || b",_-".contains(&byte) => {}
                _ => return Err(self.fault("the end of the records")),
            }
            self.at += 1;
            if open.is_empty() {
                return Ok(Descriptor::Records);
            }
        }
    }

    fn truth(&mut self) -> Result<bool, String> {
        let word = self.word();
        match word {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => {
                self.at -= word.len();
                Err(self.fault("True or False"))
            }
        }
    }

    /// Reads a tuple of whole numbers; a tuple of a single number has a comma.
    fn extents(&mut self) -> Result<Vec<usize>, String> {
        let mut extents = Vec::new();
        self.expect(b'(', "a tuple's `(`")?;
        loop {
            if self.takes(b')') {
                return Ok(extents);
            }
            let word = self.word();
            // Python 2 wrote long numbers with an L behind them.
            let digits = word.strip_suffix(b"L").unwrap_or(word);
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                self.at -= word.len();
                return Err(self.fault("an extent, a whole number of 0 or more,"));
            }
            let digits = String::from_utf8_lossy(digits);
            extents.push(digits.parse().map_err(|_| format!("its extent {digits} is beyond any memory"))?);
            if !self.takes(b',') {
                if extents.len() == 1 {
                    return Err(self.fault("`,`"));
                }
                self.expect(b')', "`,` or `)`")?;
                return Ok(extents);
            }
        }
    }

    /// Reads the text between quotes. Escapes stay as they are, because no known key or type has any.
    fn string(&mut self, due: &str) -> Result<&'a str, String> {
        self.peek();
        // Python 2 marks text so, Python 3 marks bytes so.
        if matches!(self.text.get(self.at..self.at + 2), Some([b'u' | b'b', b'\'' | b'"'])) {
            self.at += 1;
        }
        let Some(quote @ (b'"' | b'\'')) = self.peek() else { return Err(self.fault(due)) };
        let begin = self.at + 1;
        self.at = begin;
        loop {
            match self.text.get(self.at) {
                Some(&byte) if byte == quote => break,
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None => return Err(self.fault("a closing quote")),
                Some(_) => self.at += 1,
            }
        }
        let inner = &self.text[begin..self.at];
        self.at += 1;
        // Only names in records have characters beyond ASCII, and no name is used.
        Ok(std::str::from_utf8(inner).unwrap_or("?"))
    }

    fn word(&mut self) -> &'a [u8] {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        self.at += length;
        &rest[..length]
    }

    /// Returns the next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, due: &str) -> Result<(), String> {
        if self.takes(byte) { Ok(()) } else { Err(self.fault(due)) }
    }

    fn fault(&self, due: &str) -> String {
        match self.text.get(self.at) {
            Some(&byte) => {
                format!("its header has {:?} at byte {} where {due} is due", char::from(byte), self.at)
            }
            None => format!("its header ends where {due} is due"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, String> {
        Scanner { text: text.as_bytes(), at: 0 }.header()
    }

    fn plain(kind: &str, fortran: bool, shape: &[usize]) -> Header {
        Header { descriptor: Descriptor::Plain(kind.to_owned()), fortran, shape: shape.to_vec(), length: 0 }
    }

    #[test]
    fn what_python_writes_is_read() {
        for (text, header) in [
            (
                "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   \n",
                plain("<f8", false, &[2, 3]),
            ),
            ("{'shape':(7,),'fortran_order':True,'descr':\">f4\"}\n", plain(">f4", true, &[7])),
            ("{'descr': u'<f4', 'fortran_order': False, 'shape': (4L, 5L)}", plain("<f4", false, &[4, 5])),
            (" { 'descr' : '|b1' , 'fortran_order' : False , 'shape' : ( ) , } ", plain("|b1", false, &[])),
        ] {
            assert_eq!(parse(text), Ok(header), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_what_a_library_writes() {
        use ndarray::{ArrayD, IxDyn};
        use ndarray_npy::WriteNpyExt;

        for extents in [&[7][..], &[2, 3], &[1, 1, 4], &[5, 1, 1, 2], &[0, 3], &[10_000_019, 0, 1_000_003]] {
            for dtype in [DType::F32, DType::F64] {
                let mut written = Vec::new();
                match dtype {
                    DType::F32 => ArrayD::<f32>::zeros(IxDyn(extents)).write_npy(&mut written),
                    DType::F64 => ArrayD::<f64>::zeros(IxDyn(extents)).write_npy(&mut written),
                }
                .unwrap();
                let values = extents.iter().product::<usize>() * dtype.bytes();
                written.truncate(written.len() - values);
                assert_eq!(bytes(dtype, extents), written, "{extents:?}");
            }
        }
    }

    #[test]
    fn all_three_versions_are_read() {
        let text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n";
        for version in [1, 2, 3] {
            let length: &[u8] = if version == 1 {
                &(text.len() as u16).to_le_bytes()
            } else {
                &(text.len() as u32).to_le_bytes()
            };
            let file = [&b"\x93NUMPY"[..], &[version, 0], length, text, b"rest"].concat();
            let mut reader = &*file;
            let header = Header::read(&mut reader).unwrap();
            assert_eq!((header.length, header.shape, reader), (file.len() as u64 - 4, vec![1], &b"rest"[..]));
        }
        for version in [[0, 0], [4, 0], [1, 1]] {
            let file = [&b"\x93NUMPY"[..], &version, &[0; 80]].concat();
            assert!(Header::read(&mut &*file).unwrap_err().contains("its version is"), "{version:?}");
        }
    }

    #[test]
    fn records_are_told_from_plain_numbers() {
        for records in [
            "[('x', '<f8'), ('y', '<f8')]",
            "[(('title', 'ä\\''), '<i4', (2, 3)), ('b', [('c', '|S3')])]",
            "('<f4', (3,))",
            &format!("{}{}", "[".repeat(3000), "]".repeat(3000)),
        ] {
            let header =
                parse(&format!("{{'descr': {records}, 'fortran_order': False, 'shape': (2,), }}")).unwrap();
            assert_eq!(header.descriptor, Descriptor::Records);
        }
    }

    #[test]
    fn what_is_no_header_is_refused_in_one_line() {
        let good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
        for cut in 0..good.len() {
            assert!(parse(&good[..cut]).is_err(), "{cut}");
        }
        for (text, words) in [
            ("[]", "a dictionary's"),
            ("{}", "no key `descr`"),
            ("{'descr': '<f8', 'shape': (2,)}", "no key `fortran_order`"),
            ("{'descr': '<f8', 'descr': '<f4'}", "two keys `descr`"),
            ("{'de\x1bscr': 1}", "a key `de\\u{1b}scr`"),
            ("{'descr': 7}", "a type in quotes"),
            ("{'descr': [('a', '<f4'})}", "the end of the records"),
            ("{'descr': [('a', '<f4']}", "the bracket that closes"),
            ("{'fortran_order': 1}", "'1' at byte 18 where True or False is due"),
            ("{'shape': [2, 3]}", "a tuple's"),
            ("{'shape': (2)}", "`,` is due"),
            ("{'shape': (2, -3)}", "'-' at byte 14"),
            ("{'shape': (,)}", "an extent"),
            ("{'shape': (99999999999999999999,)}", "beyond any memory"),
            ("{'descr': '<f8\n', 'x': 1}", "'\\n' at byte 14 where a closing quote"),
            (&format!("{good} x"), "the header's end is due"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
        }
    }

    /// Brackets of every kind, as many as a header may have, are read in the time of one look at each.
    #[test]
    fn nesting_takes_linear_time() {
        let begun = std::time::Instant::now();
        let pairs = "[(".repeat(LONGEST as usize / 2);
        for nested in
            ["{".repeat(LONGEST as usize), format!("{{'descr': {pairs}"), format!("{{'shape': {pairs}")]
        {
            assert!(parse(&nested).is_err());
        }
        assert!(begun.elapsed().as_secs() < 5);
    }
}
