use abide_core::program::Space;
use abide_core::{Array, DType, Error, Shape};
use std::path::{Path, PathBuf};

use super::super::{Axes, Number, Placed, Provenance, Snapshot};
use super::*;

fn layout(extents: &[usize], dtype: DType, members: Option<usize>) -> Layout {
    let cells = Shape::new(extents).unwrap();
    let nodes = Shape::new(&extents.iter().map(|n| n + 1).collect::<Vec<_>>()).unwrap();
    let variable = |name: &str, shape| Variable { name: name.to_owned(), shape, space: Space::default() };
    let fields = vec![variable("u", cells), variable("x", cells), variable("n", nodes)];
    Layout { cells, dtype, members, fields, scalars: vec!["dt".to_owned()] }
}

fn values(layout: &Layout, field: usize, step: u64) -> Array {
    let count = layout.fields[field].shape.cells() * layout.members.unwrap_or(1);
    Array::from_fn(layout.dtype, count, |i| 1.0 / (3 + i + 7 * field + 100 * step as usize) as f64)
}

fn add(series: &mut Series, layout: &Layout, step: u64) -> abide_core::Result<()> {
    let all: Vec<Array> = (0..layout.fields.len()).map(|field| values(layout, field, step)).collect();
    let own = layout.fields.iter().zip(&all);
    let fields =
        own.map(|(own, values)| Placed { space: own.space, ..Placed::new(&own.name, values, own.shape) });
    let scalars = vec![("dt".to_owned(), 0.25 * step as f64)];
    series.add(&Snapshot {
        members: layout.members,
        fields: fields.collect(),
        step,
        time: 0.5 * step as f64,
        scalars,
        provenance: None,
    })
}

fn named(path: &Path, behind: &str) -> PathBuf {
    PathBuf::from(format!("{}{behind}", path.display()))
}

fn check(path: &Path, layout: &Layout, frames: u64) {
    let axes = layout.members.map_or(Axes::DOMAIN, |members| {
        let dimensions = layout.cells.dimensions();
        Axes::of_batch(members, dimensions..=dimensions)
    });
    // Of many frames some.
    let stride = frames.div_ceil(20).max(1) as usize;
    for (number, field) in layout.fields.iter().enumerate() {
        for step in (0..frames).step_by(stride).chain(frames.checked_sub(1)) {
            let name = named(path, &format!(":{}@{step}", field.name));
            let read = read_as(&name, &axes).unwrap();
            assert_eq!((read.shape, read.members), (field.shape, layout.members));
            assert!(
                read.values.same_bits(&values(layout, number, step)),
                "{} {step} of {frames}",
                field.name
            );
        }
        let last = read_as(&named(path, &format!(":/{}", field.name)), &axes);
        match frames {
            0 => assert!(last.unwrap_err().to_string().contains("has 0 steps")),
            _ => assert!(last.unwrap().values.same_bits(&values(layout, number, frames - 1))),
        }
    }
}

#[test]
fn frames_come_back_to_the_bit_after_each_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for (extents, members) in [
        (&[7][..], None),
        (&[40], None),
        (&[3, 5], None),
        (&[2, 37], None),
        (&[3, 1, 5], None),
        (&[5, 4, 3], None),
        (&[3, 5], Some(2)),
        (&[5, 4, 3], Some(3)),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let layout = layout(extents, dtype, members);
            let mut series = Series::begin(&path, layout.clone(), &Provenance::default()).unwrap();
            series.publish().unwrap();
            check(&path, &layout, 0);
            for step in 0..6 {
                add(&mut series, &layout, step).unwrap();
                check(&path, &layout, step + 1);
            }
            assert!(series.finish(5, None).unwrap().is_none());
            check(&path, &layout, 6);
        }
    }
}

/// Many small chunks fill nodes of an index on several levels.
#[test]
fn long_files_are_read_as_short_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let layout = layout(&[3, 30], DType::F64, None);
    let mut series = Series::begin(&path, layout.clone(), &Provenance::default()).unwrap();
    // Twelve chunks a frame: 64 children a node, 63 above.
    for step in 0..400 {
        add(&mut series, &layout, step).unwrap();
    }
    series.finish(400, None).unwrap().unwrap().commit().unwrap();
    check(&path, &layout, 400);
}

/// Whatever of the last frame has not reached the file, those before are there.
#[test]
fn a_file_that_was_cut_has_the_frames_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let layout = layout(&[3, 5], DType::F32, None);
    let mut series = Series::begin(&path, layout.clone(), &Provenance::default()).unwrap();
    series.publish().unwrap();
    for step in 0..9 {
        let before = std::fs::read(&path).unwrap();
        add(&mut series, &layout, step).unwrap();
        let after = std::fs::read(&path).unwrap();
        // All that a frame writes, but for the superblock, in any order and any part of it.
        for part in [1, 2, 3, 5] {
            let mut torn = after.clone();
            torn[..512].copy_from_slice(&before[..512]);
            for (at, byte) in torn.iter_mut().enumerate().skip(512) {
                if (at / 64) % part != 0 {
                    *byte = before.get(at).copied().unwrap_or(0);
                }
            }
            let torn_path = folder.path().join("torn.h5");
            std::fs::write(&torn_path, torn).unwrap();
            check(&torn_path, &layout, step);
        }
    }
}

#[test]
fn where_a_result_comes_from_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let layout = layout(&[3, 5], DType::F32, None);
    let mut own = Provenance {
        program: "heat".to_owned(),
        model: "name = \"hüat\"\n".repeat(9000),
        parameters: vec![("kappa".to_owned(), Number(0.1 + 0.2)), ("k".to_owned(), Number(f64::INFINITY))],
        size: vec![3, 5],
        dtype: "f32".to_owned(),
        plan: "persistent".to_owned(),
        backend: "cpu".to_owned(),
        device: "a CPU".to_owned(),
        ..Provenance::default()
    };
    let mut series = Series::begin(&path, layout.clone(), &own).unwrap();
    series.publish().unwrap();
    assert_eq!(provenance(&path).unwrap().unwrap(), own);
    add(&mut series, &layout, 3).unwrap();
    series.finish(3, Some("abc")).unwrap();
    (own.steps, own.digest) = (3, Some("abc".to_owned()));
    assert_eq!(provenance(&path).unwrap().unwrap(), own);
    let all: Vec<_> = contents(&path).unwrap().into_iter().map(|own| own.name).collect();
    for name in ["u", "x", "n", "x_axis", "y", "x_nodes", "y_nodes", "t", "step", "dt", "VTKHDF/CellData/u"] {
        assert!(all.iter().any(|own| own == name), "{name} {all:?}");
    }
}

#[test]
fn broken_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let layout = layout(&[3, 5], DType::F64, None);
    let mut series = Series::begin(&path, layout.clone(), &Provenance::default()).unwrap();
    add(&mut series, &layout, 0).unwrap();
    series.finish(0, None).unwrap().unwrap().commit().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let read = read_as(&named(&path, ":u"), &Axes::DOMAIN);
        assert!(matches!(read, Err(Error::File { .. })), "{length}");
    }
    std::fs::write(&path, &whole).unwrap();
    for (behind, words) in [
        ("", "it has "),
        (":w", "it has no array w"),
        (":u@1", "u has 1 steps, @1"),
        (":u@-2", "u has 1 steps, @-2"),
        (":abide_provenance/model", "holds no numbers"),
    ] {
        let error = read_as(&named(&path, behind), &Axes::DOMAIN).unwrap_err().to_string();
        assert!(error.contains(words), "{behind}: {error}");
    }
}
