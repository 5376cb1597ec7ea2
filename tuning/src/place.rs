//! Folders and files that are the user's alone.

use std::fs::File;
use std::io;
use std::path::Path;

/// Says why a folder is not the user's alone; a folder that does not exist yet is created as the user's
/// alone.
///
/// On systems whose permissions are not those of Unix, the user's cache folder is assumed to be the user's
/// alone.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let user = rustix::process::geteuid().as_raw();
        // The link is checked too, because its owner chose where it leads.
        for found in [std::fs::symlink_metadata(folder), std::fs::metadata(folder)] {
            let found = match found {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    return Err(refused(folder, &error.to_string(), "give a folder that can be read"));
                }
            };
            if found.uid() != user {
                let why = format!("it belongs to user {}, not to user {user}", found.uid());
                return Err(refused(folder, &why, "name a folder of your own by ABIDE_CACHE"));
            }
            if !found.is_symlink() && found.mode() & 0o022 != 0 {
                return Err(refused(folder, "others can write to it", "take their right away (chmod go-w)"));
            }
        }
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

#[cfg(unix)]
fn refused(folder: &Path, why: &str, change: &str) -> String {
    format!("nothing is kept in {}: {why}; {change}", folder.display())
}

/// Opens a file that is regular, and no link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Without waiting for a pipe's writer.
        options.custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Writes a file whole, or leaves the earlier one: under a random name of its own, through no link, then
/// renamed once it has come to the disk.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn write(folder: &Path, key: &str, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    check(folder).map_err(io::Error::other)?;
    let mut partial = tempfile::Builder::new().prefix(".partial-").tempfile_in(folder)?;
    partial.write_all(bytes)?;
    partial.as_file().sync_all()?;
    partial.persist(folder.join(key))?;
    Ok(())
}

/// Does nothing, because a browser keeps no files.
#[cfg(target_family = "wasm")]
pub(crate) fn write(_: &Path, _: &str, _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folders_that_others_can_write_to_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("abide");
        assert_eq!(check(&folder), Ok(()), "it can be made");
        write(&folder.join("kernels"), "a", b"1").unwrap();
        for made in [folder.clone(), folder.join("kernels")] {
            assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(check(&made), Ok(()));
        }
        for bits in [0o770, 0o702, 0o777] {
            mode(&folder, bits);
            let why = check(&folder).unwrap_err();
            assert!(why.contains("others can write to it") && why.contains("chmod go-w"), "{why}");
            mode(&folder, 0o700);
            mode(&folder.join("kernels"), bits);
            assert!(write(&folder.join("kernels"), "b", b"2").is_err());
            assert!(!folder.join("kernels").join("b").exists());
            mode(&folder.join("kernels"), 0o755);
        }
        assert_eq!(check(&folder.join("kernels")), Ok(()), "reading is no harm");
    }

    #[test]
    fn folders_of_others_are_refused() {
        let why = match rustix::process::geteuid().is_root() {
            // Only root can give a folder away.
            true => {
                let parent = tempfile::tempdir().unwrap();
                std::os::unix::fs::chown(parent.path(), Some(65534), None).unwrap();
                check(parent.path()).unwrap_err()
            }
            false => check(Path::new("/")).unwrap_err(),
        };
        assert!(why.contains("belongs to user") && why.contains("ABIDE_CACHE"), "{why}");
    }

    #[test]
    fn links_are_not_followed_and_nothing_partial_stays() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("kernels");
        write(&folder, "a", b"1").unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "mine").unwrap();
        symlink(&precious, folder.join("b")).unwrap();
        assert!(open(&folder.join("b")).is_err());
        write(&folder, "b", b"2").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine", "the link was replaced, not followed");
        assert!(open(&folder.join("b")).is_ok() && open(&folder).is_err());
        // A folder is in the way of the file.
        fs::create_dir(folder.join("c")).unwrap();
        assert!(write(&folder, "c", b"3").is_err());
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
