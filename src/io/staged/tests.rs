//! What becomes of files, of what was there before them, and of what is no file.

use super::*;

#[test]
fn what_is_not_committed_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.txt");
    std::fs::write(&target, "old").unwrap();
    let staged = Staged::new(&target).unwrap().fill(|w| w.write_all(b"new")).unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
    drop(staged);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    Staged::new(&target).unwrap().fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_folder_and_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check_target(&folder.path().join("not/there.npy")).is_err());
    assert!(check_target(folder.path()).is_err());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_others_may_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("a"), folder.path().join("b"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    Staged::new(&link).unwrap().fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
    let plain = folder.path().join("c");
    std::fs::write(&plain, "").unwrap();
    let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode();
    assert_eq!(mode(&target), mode(&plain));
}
