//! Tests of what becomes of files, of files that were there before, and of places that are no files.

use super::*;

#[test]
fn what_is_under_way_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let is_listed = |path: &Path| UNFINISHED.lock().unwrap().contains(path);
    let staged = Staged::new(&folder.path().join("b")).unwrap();
    let path = staged.file.path().to_owned();
    assert!(is_listed(&path) && path.exists());
    drop(staged);
    assert!(!is_listed(&path) && !path.exists());
}

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

#[test]
fn the_temporary_name_tells_the_target_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin) in
        [("u.npy".to_owned(), ".u.npy.abide-".to_owned()), ("ä".repeat(120), ".ääää".to_owned())]
    {
        let _staged = Staged::new(&folder.path().join(&name)).unwrap();
        let entries: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(entries.len() == 1 && entries[0].to_string_lossy().starts_with(&begin), "{entries:?}");
    }
}

#[test]
fn a_full_disk_is_told_from_other_failures_through_all_layers() {
    let full = || std::io::Error::from(ErrorKind::StorageFull);
    let deep = std::io::Error::other(ndarray_npy::WriteNpyError::Io(full()));
    for (error, words) in [
        (full(), "make room"),
        (std::io::Error::other(full()), "make room"),
        (deep, "make room"),
        (std::io::Error::from(ErrorKind::PermissionDenied), "a folder of your own"),
        (std::io::Error::from(ErrorKind::BrokenPipe), "the pipe's reader"),
    ] {
        assert!(fault(Path::new("a"), &error).to_string().contains(words), "{error}");
    }
}

#[test]
fn one_file_that_cannot_be_put_in_its_place_holds_up_no_other_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, good) = (folder.path().join("bad"), folder.path().join("good"));
    let staged = |path: &Path| Staged::new(path).unwrap().fill(|w| w.write_all(b"all of it"));
    let mut batch = Batch::default();
    batch.add("bad".to_owned(), staged(&bad));
    batch.add("good".to_owned(), staged(&good));
    batch.add("none".to_owned(), Err(Error::file("none", "no", "no")));
    // A folder, which no rename replaces, comes there in the meantime.
    std::fs::create_dir(&bad).unwrap();
    let Written { files, faults } = batch.commit();
    assert_eq!((files.as_slice(), faults.len()), (&["good".to_owned()][..], 2));
    let message = faults[1].to_string();
    let (_, kept) = message.split_once("all of it is in ").unwrap();
    assert_eq!(std::fs::read(kept.split_once(';').unwrap().0).unwrap(), b"all of it");
    assert_eq!(std::fs::read(good).unwrap(), b"all of it");
    // A file that is written again before long is not kept.
    std::fs::remove_file(kept.split_once(';').unwrap().0).unwrap();
    std::fs::remove_dir(&bad).unwrap();
    let again = staged(&bad).unwrap();
    std::fs::create_dir(&bad).unwrap();
    assert!(again.replace_durably().is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_mode_of_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        for old in [0o600, 0o640, 0o666, 0o755, 0o4755] {
            std::fs::write(&target, "secret").unwrap();
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(old)).unwrap();
            let staged = Staged::new(&target).unwrap();
            let hidden = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
            assert!(hidden.into_iter().all(|path| mode(&path) & 0o777 == old & 0o777));
            staged.fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
            assert_eq!(mode(&target), old & 0o777);
        }
    }

    #[test]
    fn a_dangling_link_is_followed_and_one_that_has_no_end_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("d")).unwrap();
        symlink("d/there", path("a")).unwrap();
        symlink(path("a"), path("b")).unwrap();
        Staged::new(&path("b")).unwrap().fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
        assert!(path("a").is_symlink() && path("b").is_symlink());
        assert_eq!(std::fs::read(path("d/there")).unwrap(), b"new");
        symlink("y", path("x")).unwrap();
        symlink("x", path("y")).unwrap();
        assert!(check_target(&path("x")).unwrap_err().to_string().contains("in a circle"));
        symlink("no/there", path("z")).unwrap();
        assert!(check_target(&path("z")).unwrap_err().to_string().contains("is not there"));
    }

    #[test]
    fn a_pipe_stays_a_pipe_and_gets_the_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("p");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Without a reader, only the final copy waits for one.
        check_target(&pipe).unwrap();
        let staged = Staged::new(&pipe).unwrap().fill(|w| {
            w.write_all(b"?bc")?;
            w.rewind()?;
            w.write_all(b"a")
        });
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        staged.unwrap().commit().unwrap();
        assert_eq!(reader.join().unwrap(), b"abc");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
    }

    #[test]
    fn sockets_and_nameless_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(check_target(&socket).unwrap_err().to_string().contains("a socket"));
        let nameless = tempfile::tempfile().unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&nameless));
        if Path::new("/proc/self/fd").exists() {
            assert!(check_target(Path::new(&link)).unwrap_err().to_string().contains("has no name"));
        }
    }

    #[test]
    fn an_owner_who_differs_stays_where_the_user_may_give_files_away() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::chown(&target, Some(1234), Some(4321)).unwrap();
        Staged::new(&target).unwrap().commit().unwrap();
        let new = target.metadata().unwrap();
        assert_eq!((new.uid(), new.gid(), new.len()), (1234, 4321, 0));
    }
}
