use proptest::prelude::*;
use std::io::{Cursor, Write};

use abide_core::sparse::Csr;
use abide_core::{Array, DType, Error};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::read::{read_matrix, read_matrix_from, read_matrix_if, read_vector_from, read_vector_if};
use super::write::{write_matrix, write_vector};
use crate::sparse::generate::laplacian_2d;
use crate::sparse::tests::{any_matrix, assembled};

fn read(text: &str) -> abide_core::Result<Csr> {
    read_matrix_from(text.as_bytes(), "a.mtx", DType::F64)
}

fn entries(matrix: &Csr) -> Vec<(usize, usize, f64)> {
    (0..matrix.rows())
        .flat_map(|row| matrix.row(row).map(move |(column, value)| (row, column, value)))
        .collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_field_and_symmetry() {
    type Entries = &'static [(usize, usize, f64)];
    let cases: &[(&str, Entries)] = &[
        ("real general\n2 3 3\n2 1 -1.5e-3\n1 3 +2\n1 1 .5", &[(0, 0, 0.5), (0, 2, 2.0), (1, 0, -0.0015)]),
        (
            "integer general\n1 2 2\n1 1 -7\n1 2 +9007199254740993\n",
            &[(0, 0, -7.0), (0, 1, 9_007_199_254_740_992.0)],
        ),
        ("pattern general\n2 2 2\n1 2\n2 2\n", &[(0, 1, 1.0), (1, 1, 1.0)]),
        ("real symmetric\n2 2 2\n1 1 4\n2 1 -1\n", &[(0, 0, 4.0), (0, 1, -1.0), (1, 0, -1.0)]),
        ("pattern symmetric\n2 2 1\n2 1\n", &[(0, 1, 1.0), (1, 0, 1.0)]),
        ("integer symmetric\n2 2 1\n2 1 3\n", &[(0, 1, 3.0), (1, 0, 3.0)]),
        ("real skew-symmetric\n2 2 1\n2 1 3\n", &[(0, 1, -3.0), (1, 0, 3.0)]),
        ("double general\n1 1 1\n1 1 1.25D+02\n", &[(0, 0, 125.0)]),
        ("real general\n2 2 3\n1 1 1\n2 2 5\n1 1 2\n", &[(0, 0, 3.0), (1, 1, 5.0)]),
        ("real general\n0 0 0\n", &[]),
    ];
    for (text, expected) in cases {
        let matrix = read(&format!("%%MatrixMarket matrix coordinate {text}")).unwrap();
        assert_eq!(entries(&matrix), *expected, "{text}");
    }
}

#[test]
fn case_comments_blank_lines_and_line_ends() {
    let text = "%%matrixmarket MATRIX Coordinate REAL General\n% one\n\n  % two\n \t \n 2  2\t2 \n%three\n1 1 1\n\n% four\n  2 2 2\n\n%end";
    let plain = read(text).unwrap();
    assert_eq!(entries(&plain), [(0, 0, 1.0), (1, 1, 2.0)]);
    assert_eq!(read(&text.replace('\n', "\r\n")).unwrap(), plain);
    assert_eq!(read(&format!("{text}\n")).unwrap(), plain);
}

#[test]
fn values_are_rounded_once() {
    // Just above the middle between two f32 neighbours, but by less than f64 can resolve.
    let text =
        "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1.00000005960464477539062500000001\n";
    let narrow = read_matrix_from(text.as_bytes(), "a.mtx", DType::F32).unwrap();
    assert_eq!(narrow.values(), &Array::F32(vec![1.0 + f32::EPSILON]));
    assert_eq!(read(text).unwrap().cast(DType::F32).unwrap().values(), &Array::F32(vec![1.0]));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
    let general = |rest: &str| format!("{GENERAL}{rest}");
    let banner = |rest: &str| format!("%%MatrixMarket {rest}\n1 1 1\n1 1 1\n");
    let cases: Vec<(String, u64, &str)> = vec![
        (String::new(), 1, "the file is empty"),
        ("\n".into(), 1, "not a Matrix Market banner"),
        ("1 1 1\n1 1 1\n".into(), 1, "not a Matrix Market banner"),
        ("%MatrixMarket matrix coordinate real general\n".into(), 1, "where the banner is due"),
        (banner("matrix coordinate real"), 1, "five words"),
        (banner("matrix coordinate real general too"), 1, "five words"),
        (banner("vector coordinate real general"), 1, "the object `vector`"),
        (banner("matrix list real general"), 1, "the format `list`"),
        (banner("matrix coordinate rational general"), 1, "the field `rational`"),
        (banner("matrix coordinate complex general"), 1, "complex values are not supported"),
        (banner("matrix coordinate real hermitian"), 1, "Hermitian matrices are not supported"),
        (banner("matrix coordinate complex hermitian"), 1, "complex values are not supported"),
        (banner("matrix coordinate real antisymmetric"), 1, "the symmetry `antisymmetric`"),
        (banner("matrix coordinate pattern skew-symmetric"), 1, "pattern cannot be skew-symmetric"),
        (banner("matrix array pattern general"), 1, "an array has values"),
        (banner("matrix array real general").replace("1 1 1\n", "1 1\n"), 1, "an array is a dense matrix"),
        (general(""), 2, "where the size line is due"),
        (general("% only\n\n"), 4, "where the size line is due"),
        (general("2 2\n1 1 1\n"), 2, "size line of 3 numbers"),
        (general("2 2 1 1\n1 1 1\n"), 2, "size line of 3 numbers"),
        (general("2 x 1\n"), 2, "the size `x`"),
        (general("2 -2 1\n"), 2, "the size `-2`"),
        (general("2 99999999999999999999 1\n"), 2, "the size `99999999999999999999`"),
        (general("4294967296 2 1\n"), 2, "4294967296 rows, the limit is 4294967295"),
        (general("2 2 2\n1 1 1\n"), 4, "ends after 1 of the 2 entries that line 2 announces"),
        (general("2 2 18446744073709551615\n1 1 1\n"), 4, "ends after 1 of the 18446744073709551615"),
        (general("2 2 1\n1 1 1\n\n2 2 1\n"), 5, "beyond the 1 that line 2 announces"),
        (general("% note\n2 2 1\n\n0 1 1\n"), 5, "row 0, the first is 1"),
        (general("2 2 1\n1 0 1\n"), 3, "column 0, the first is 1"),
        (general("2 2 1\n3 1 1\n"), 3, "row 3, the matrix has 2 rows"),
        (general("2 2 1\n1 3 1\n"), 3, "column 3, the matrix has 2 columns"),
        (general("2 2 1\n1.0 1 1\n"), 3, "the row `1.0` is not a whole number"),
        (general("2 2 1\n1 -1 1\n"), 3, "the column `-1` is not a whole number"),
        (general("2 2 1\n1 1 one\n"), 3, "the value `one` is not a number"),
        (general("2 2 1\n1 1 1,5\n"), 3, "the value `1,5` is not a number"),
        (general("2 2 1\n1 1 nan\n"), 3, "the value `nan` is not finite"),
        (general("2 2 1\n1 1 -Inf\n"), 3, "the value `-Inf` is not finite"),
        (general("2 2 1\n1 1 1e999\n"), 3, "the value `1e999` is beyond the range of f64"),
        (general("2 2 1\n1 1\n"), 3, "where row, column and value are due"),
        (general("2 2 1\n1 1 1 0\n"), 3, "where row, column and value are due"),
        (banner("matrix coordinate pattern general"), 3, "where row and column are due"),
        (
            banner("matrix coordinate integer general").replace("1 1 1\n1 1 1", "1 1 1\n1 1 1.5"),
            3,
            "`1.5` is not a whole",
        ),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n".into(), 2, "cannot be symmetric"),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".into(),
            3,
            "lies above the diagonal",
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 2 1\n".into(),
            3,
            "lies above the diagonal",
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n".into(),
            3,
            "lies on the diagonal",
        ),
    ];
    for (text, line, words) in cases {
        for text in [text.clone(), text.replace('\n', "\r\n")] {
            match read(&text) {
                Err(Error::File { path, message, change }) => {
                    assert_eq!(path.as_os_str(), "a.mtx");
                    assert!(message.starts_with(&format!("line {line}: ")), "{text:?}: {message}");
                    assert!(message.contains(words), "{text:?}: {message}");
                    assert!(!change.is_empty() && !message.contains('\r'), "{text:?}: {message}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut bytes = b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \xff\xfe\n".to_vec();
    let error = read_matrix_from(&bytes[..], "a.mtx", DType::F64).unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("is not a number"), "{error}");
    bytes.truncate(52);
    bytes.resize(3 << 20, b'1');
    let error = read_matrix_from(&bytes[..], "a.mtx", DType::F64).unwrap_err().to_string();
    assert!(error.contains("line 3: it is longer than"), "{error}");
    let error = read_matrix_from(&[0u8; 100][..], "a.mtx", DType::F64).unwrap_err().to_string();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn lines_may_break_anywhere_between_reads() {
    /// A reader that gives out a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);
    impl std::io::Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }
    let matrix = laplacian_2d(5, 4, DType::F64).unwrap();
    let mut text = Vec::new();
    write_matrix(&matrix, &mut text).unwrap();
    for size in 1..7 {
        assert_eq!(read_matrix_from(Drops(&text, size), "a.mtx", DType::F64).unwrap(), matrix);
    }
    // Lines also cross the buffer's end.
    let large = laplacian_2d(300, 300, DType::F32).unwrap();
    let mut text = Vec::new();
    write_matrix(&large, &mut text).unwrap();
    assert!(text.len() > 3 << 20);
    assert_eq!(read_matrix_from(Cursor::new(text), "a.mtx", DType::F32).unwrap(), large);
}

#[test]
fn files_are_found_and_decompressed() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = laplacian_2d(30, 20, DType::F64).unwrap();
    let mut text = Vec::new();
    write_matrix(&matrix, &mut text).unwrap();
    let packed = gzip(&text);
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    // Two gzip members, one after the other, are one file.
    let (first, second) = text.split_at(100);
    let members = [gzip(first), gzip(second)].concat();
    for path in [
        file("plain.mtx", &text),
        file("packed.mtx.gz", &packed),
        file("packed.MTX.GZ", &packed),
        file("disguised.mtx", &packed),
        file("members.mtx.gz", &members),
    ] {
        assert_eq!(read_matrix(&path, DType::F64).unwrap(), matrix, "{}", path.display());
    }
    for (path, words) in [
        (file("cut.mtx.gz", &packed[..packed.len() / 2]), "reading stopped here"),
        (file("header.mtx.gz", &packed[..5]), "line 1: reading stopped here"),
        (file("text.mtx.gz", &text), "line 1: reading stopped here: invalid gzip header"),
        (file("empty.mtx", b""), "line 1: the file is empty"),
        (file("a.tar.gz", &packed), "it is an archive of files; unpack it"),
        (folder.path().join("none.mtx"), "none.mtx: "),
        (folder.path().to_owned(), "give a Matrix Market file"),
    ] {
        let error = read_matrix(&path, DType::F64).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // A cut behind a few hundred entries is found in their line, not in the first.
    let error =
        read_matrix(file("late.mtx.gz", &packed[..packed.len() - 9]), DType::F64).unwrap_err().to_string();
    let line: usize =
        error.split("line ").nth(1).and_then(|rest| rest.split(':').next()).unwrap().parse().unwrap();
    assert!(line > 1000, "{error}");
}

#[test]
fn vectors_are_arrays_or_columns() {
    let vector = |text: &str| read_vector_from(text.as_bytes(), "b.mtx", DType::F64);
    let array = "%%MatrixMarket matrix array real general\n% b\n3 1\n1.5\n\n-2\n% c\n1e-3\n";
    assert_eq!(vector(array).unwrap(), Array::F64(vec![1.5, -2.0, 0.001]));
    let column = "%%MatrixMarket matrix coordinate integer general\n4 1 2\n4 1 7\n2 1 -1\n";
    assert_eq!(vector(column).unwrap(), Array::F64(vec![0.0, -1.0, 0.0, 7.0]));
    assert_eq!(vector("%%MatrixMarket matrix array integer general\n0 1\n").unwrap(), Array::F64(vec![]));
    for (text, words) in [
        (
            "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
            "line 2: 2 columns, where a vector has one",
        ),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "line 2: 3 columns"),
        ("%%MatrixMarket matrix array real symmetric\n1 1\n1\n", "line 2: a vector is `general`"),
        ("%%MatrixMarket matrix array real general\n2 1 2\n1\n2\n", "line 2: `2 1 2` stands where"),
        ("%%MatrixMarket matrix array real general\n2 1\n1\n", "line 4: the file ends after 1 of the 2"),
        ("%%MatrixMarket matrix array real general\n2 1\n1\n2\n3\n", "line 5: an entry beyond the 2"),
        (
            "%%MatrixMarket matrix array real general\n2 1\n1 2\n",
            "line 3: `1 2` stands where one value is due",
        ),
        ("%%MatrixMarket matrix array real general\n2 1\n1\nx\n", "line 4: the value `x` is not a number"),
        ("%%MatrixMarket matrix array complex general\n2 1\n1 0\n1 0\n", "complex values are not supported"),
    ] {
        let error = vector(text).unwrap_err().to_string();
        assert!(error.starts_with("b.mtx: ") && error.contains(words), "{error}");
    }
}

#[test]
fn symmetric_matrices_are_written_as_their_lower_triangles() {
    let mut text = Vec::new();
    write_matrix(&laplacian_2d(1, 3, DType::F32).unwrap(), &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4.0\n2 1 -1.0\n2 2 4.0\n3 2 -1.0\n3 3 4.0\n"
    );
}

#[test]
fn what_is_not_finite_is_not_written() {
    let mut text = Vec::new();
    let error = write_vector(&Array::F32(vec![1.0, f32::NAN]), &mut text).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(text.is_empty());
}

#[test]
fn a_row_below_the_types_range_is_no_row_of_zeros() {
    let matrix = |rest: &str, dtype| {
        let text = format!("%%MatrixMarket matrix coordinate real {rest}");
        read_matrix_from(text.as_bytes(), "a.mtx", dtype)
    };
    let tiny = "general\n2 2 3\n1 1 1\n2 1 0\n2 2 -4.5e-300\n";
    let message = matrix(tiny, DType::F32).unwrap_err().to_string();
    assert!(
        message.starts_with("a.mtx: row 2 has no values but 0") && message.contains("below the range of f32"),
        "{message}"
    );
    assert_eq!(matrix(tiny, DType::F64).unwrap().get(1, 1), -4.5e-300);
    let message = matrix("symmetric\n2 2 2\n2 1 1D-400\n2 2 1\n", DType::F64).unwrap_err().to_string();
    assert!(message.contains("row 1 ") && message.contains("below the range of f64"), "{message}");
    // A small value beside larger ones is rounded like any other; zeros that are written are no loss.
    let beside = matrix("general\n2 2 4\n1 1 1\n1 2 1e-60\n2 1 0\n2 2 0.0e-9\n", DType::F32).unwrap();
    assert_eq!(entries(&beside), [(0, 0, 1.0), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 0.0)]);
}

#[test]
fn a_vector_below_the_types_range_is_no_vector_of_zeros() {
    let vector = |rest: &str| {
        read_vector_from(format!("%%MatrixMarket matrix {rest}").as_bytes(), "b.mtx", DType::F32)
    };
    for lost in ["array real general\n2 1\n1e-60\n0\n", "coordinate real general\n2 1 1\n2 1 1e-60\n"] {
        assert!(vector(lost).unwrap_err().to_string().contains("below the range of f32"), "{lost}");
    }
    for (kept, values) in [
        ("array real general\n2 1\n1e-60\n2\n", [0.0, 2.0]),
        ("array real general\n2 1\n0\n-0\n", [0.0, 0.0]),
        ("coordinate real general\n2 1 2\n2 1 1e-60\n1 1 3\n", [3.0, 0.0]),
    ] {
        assert_eq!(vector(kept).unwrap().to_f64(), values, "{kept}");
    }
}

proptest! {
    #[test]
    fn matrices_return_from_their_files(listed in any_matrix(), mirrored: bool, narrow: bool) {
        let (rows, columns, mut entries) = listed;
        if mirrored {
            let upper: Vec<_> = entries.iter().filter(|(i, j, _)| i != j).map(|&(i, j, v)| (j, i, v)).collect();
            entries.extend(upper);
        }
        let extent = if mirrored { rows.max(columns) } else { 0 };
        let mut matrix = assembled(&(rows.max(extent), columns.max(extent), entries));
        if narrow {
            matrix = matrix.cast(DType::F32).unwrap();
        }
        prop_assume!(matrix.values().non_finite() == 0);
        let mut text = Vec::new();
        write_matrix(&matrix, &mut text).unwrap();
        for bytes in [text.clone(), String::from_utf8(text).unwrap().replace('\n', "\r\n").into_bytes()] {
            let back = read_matrix_from(&bytes[..], "a.mtx", matrix.dtype()).unwrap();
            prop_assert!(back.values().same_bits(matrix.values()));
            prop_assert_eq!(&back, &matrix);
        }
    }

    #[test]
    fn vectors_return_from_their_files(values in prop::collection::vec(proptest::num::f64::NORMAL, 0..50)) {
        let vector = Array::F64(values);
        let mut text = Vec::new();
        write_vector(&vector, &mut text).unwrap();
        prop_assert!(read_vector_from(&text[..], "b.mtx", DType::F64).unwrap().same_bits(&vector));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..120) {
        let _ = read_matrix_from(&bytes[..], "a.mtx", DType::F32);
        // One byte of a good file is changed.
        let mut good = b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 3\n1 1 1\n2 1 -0.5\n3 3 2e1\n".to_vec();
        if let (Some(place), Some(byte)) = (good.get_mut(at), bytes.pop()) {
            *place = byte;
        }
        let _ = read_matrix_from(&good[..], "a.mtx", DType::F64);
        let _ = read_vector_from(&good[..], "a.mtx", DType::F64);
    }
}

/// The file's header is shown before memory is taken for what it announces. A file cannot list more entries
/// than it has room for.
#[test]
fn what_a_file_announces_may_be_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let no = || abide_core::Error::limit("memory", 1, 0, "ask for less");
    let write = |text: &str| std::fs::write(&path, format!("%%MatrixMarket matrix {text}")).unwrap();
    write("coordinate real symmetric\n500000000 500000000 3\n1 1 1\n2 1 1\n3 3 1\n");
    let mut seen = None;
    let refused = read_matrix_if(&path, DType::F64, |size| {
        seen = Some(*size);
        Err(no())
    });
    assert_eq!(refused, Err(no()));
    let size = seen.unwrap();
    assert_eq!(
        (size.rows, size.columns, size.listed, size.entries, size.line),
        (500_000_000, 500_000_000, 3, 6, 2)
    );
    assert!(size.matrix_bytes(DType::F64) > 20 * 500_000_000);
    write("coordinate real general\n2 2 1000000000000\n1 1 1\n");
    let mut listed = 0;
    let cut = read_matrix_if(&path, DType::F64, |size| {
        listed = size.listed;
        Ok(())
    });
    assert!(listed < 20, "{listed}");
    assert!(cut.unwrap_err().to_string().contains("ends after 1 of the 1000000000000 entries"));

    write("array real general\n300000000 1\n1\n");
    let refused = read_vector_if(&path, DType::F32, |size| {
        assert_eq!((size.rows, size.columns), (300_000_000, 1));
        assert_eq!(size.vector_bytes(DType::F32) / 300_000_000, 4);
        Err(no())
    });
    assert_eq!(refused, Err(no()));
}

/// A vector of entries has the same bits as the matrix of one column, including the signs of zeros.
#[test]
fn entries_of_a_vector_are_added_in_order() {
    let text = "%%MatrixMarket matrix coordinate real general\n70 1 7\n66 1 0.1\n1 1 -0.0\n66 1 0.2\n3 1 5\n2 1 -0.0\n2 1 0.0\n66 1 0.3\n";
    let vector = read_vector_from(text.as_bytes(), "v.mtx", DType::F64).unwrap();
    let matrix = read(text).unwrap();
    let Array::F64(stored) = matrix.values() else { panic!("{matrix:?}") };
    let mut expected = vec![0.0; 70];
    (0..70).for_each(|row| matrix.range(row).for_each(|at| expected[row] = stored[at]));
    assert!(vector.same_bits(&Array::F64(expected)), "{vector:?}");
    assert_eq!(vector.get(65), Some(0.1 + 0.2 + 0.3));
}
