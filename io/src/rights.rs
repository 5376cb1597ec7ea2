//! Checks of who may replace a file, and the new file's rights: nobody gains a right by the replacement.

use std::fs::{File, Metadata};
use std::path::Path;

/// The reason why something cannot be written, and what to change.
type Refusal = (String, &'static str);

/// Checks that a file can be made in `folder`, and that it can replace the old file.
#[cfg(unix)]
pub(super) fn check(folder: &Path, old: Option<(&Path, &Metadata)>) -> Result<(), Refusal> {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{Access, access};

    const ELSEWHERE: &str = "write elsewhere";
    if is_marked(folder, Mark::APPEND) {
        let folder = folder.display();
        return Err((
            format!("files in {folder} can be made and not renamed (it is append-only)"),
            ELSEWHERE,
        ));
    }
    let Some((path, metadata)) = old else { return Ok(()) };
    access(path, Access::WRITE_OK).map_err(|e| (format!("it cannot be written to: {e}"), ELSEWHERE))?;
    if is_marked(path, Mark::APPEND | Mark::IMMUTABLE) {
        return Err((
            "it is marked as never to be replaced".to_owned(),
            "take the mark off (chattr -ia), or write elsewhere",
        ));
    }
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let around = folder.metadata().map_err(|e| (e.to_string(), ELSEWHERE))?;
    if around.mode() & STICKY != 0
        && ![metadata.uid(), around.uid()].contains(&user)
        && !replaces_others(user)
    {
        let message = "it is another user's, in a folder where everyone may replace their own files only";
        return Err((message.to_owned(), "write to a folder of your own"));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn check(_: &Path, old: Option<(&Path, &Metadata)>) -> Result<(), Refusal> {
    match old {
        Some((_, metadata)) if metadata.permissions().readonly() => {
            Err(("it is marked read-only".to_owned(), "write elsewhere"))
        }
        _ => Ok(()),
    }
}

/// Checks that a device or a pipe can be written to.
#[cfg(unix)]
pub(super) fn check_node(path: &Path, metadata: &Metadata) -> Result<(), Refusal> {
    use std::os::unix::fs::FileTypeExt;

    use rustix::fs::{Access, access};

    let kind = metadata.file_type();
    if kind.is_block_device() {
        return Err((
            "it is a disk, which does not say where a file on it ends".to_owned(),
            "give a file's name",
        ));
    }
    if kind.is_socket() {
        return Err(("it is a socket".to_owned(), "give a file's name, or a pipe's"));
    }
    access(path, Access::WRITE_OK).map_err(|e| (format!("it cannot be written to: {e}"), "write elsewhere"))
}

#[cfg(not(unix))]
pub(super) fn check_node(_: &Path, _: &Metadata) -> Result<(), Refusal> {
    Err(("it is no file".to_owned(), "give a file's name"))
}

/// Gives a new file, so far its owner's alone, the owner, group and mode of the file at `path` that it will
/// replace. Where owner or group cannot be kept, the new ones may do no more than they could before.
#[cfg(unix)]
pub(super) fn adopt(new: &File, path: &Path, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let (owner, group) = (Some(old.uid()), Some(old.gid()));
    let _ = fchown(new, owner, group).or_else(|_| fchown(new, None, group));
    let same_group = new.metadata().is_ok_and(|metadata| metadata.gid() == old.gid());
    let listed = lists::carry(new, path);
    // A list's mask stands where the mode has the group's bits; without the list those bits would grant too
    // much.
    let mode = mode(old.mode(), same_group && listed);
    // Where a file system has no modes, the file stays its owner's alone.
    let _ = new.set_permissions(std::fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
pub(super) fn adopt(_: &File, _: &Path, _: &Metadata) {}

/// Returns the mode of a file that replaces one of this mode. In another group, the new group's members were
/// among the others so far, and the old group's members now are. Both may do what both could before.
#[cfg(unix)]
fn mode(old: u32, same_group: bool) -> u32 {
    let (owner, group, others) = (old & 0o700, (old >> 3) & 7, old & 7);
    if same_group { old & 0o777 } else { owner | ((group & others) * 0o11) }
}

/// Returns whether the user may replace other users' files in a sticky folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn replaces_others(_: u32) -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::FOWNER))
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn replaces_others(user: u32) -> bool {
    user == 0
}

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::StatxAttributes as Mark;

/// Returns whether a file or folder has one of these marks; `false` where the system does not report them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_marked(path: &Path, marks: Mark) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        .is_ok_and(|stat| stat.stx_attributes.intersects(marks))
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod marks {
    /// A stand-in for marks that other systems do not report.
    pub struct Mark;

    impl Mark {
        pub const APPEND: u32 = 1;
        pub const IMMUTABLE: u32 = 2;
    }

    pub fn is_marked(_: &std::path::Path, _: u32) -> bool {
        false
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use marks::{Mark, is_marked};

/// Access control lists, which name more users and groups than a mode does.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod lists {
    use std::fs::File;
    use std::path::Path;

    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
    use rustix::io::Errno;

    const LIST: &str = "system.posix_acl_access";

    /// Gives a new file the list of the file at `path`, or none where that file has none; returns whether the
    /// new file has the right list.
    pub fn carry(new: &File, path: &Path) -> bool {
        // The longest attribute that Linux keeps.
        let mut list = vec![0; 1 << 16];
        match getxattr(path, LIST, &mut list[..]) {
            Ok(length) => fsetxattr(new, LIST, &list[..length], XattrFlags::empty()).is_ok(),
            // A folder may give its new files a list.
            Err(_) => matches!(fremovexattr(new, LIST), Ok(()) | Err(Errno::NODATA | Errno::NOTSUP)),
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod lists {
    pub fn carry(_: &std::fs::File, _: &std::path::Path) -> bool {
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn in_another_group_nobody_gains_a_right() {
        for (old, kept, other) in [
            (0o100644, 0o644, 0o644),
            (0o100600, 0o600, 0o600),
            (0o100660, 0o660, 0o600),
            (0o100640, 0o640, 0o600),
            (0o100664, 0o664, 0o644),
            (0o100606, 0o606, 0o600),
            (0o106755, 0o755, 0o755),
        ] {
            assert_eq!((mode(old, true), mode(old, false)), (kept, other), "{old:o}");
        }
    }
}
