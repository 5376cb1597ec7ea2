//! Memory that the process may still take.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Returns the bytes that the process may still take: the least of what the system has, what every control
/// group around the process leaves, and what limits on its address space and data (`ulimit -v`, `ulimit -d`)
/// leave. `None` where the system does not report it.
pub fn available() -> Option<u64> {
    let within = [machine(Path::new("/")), groups(Path::new("/")), room_for_addresses(), room_for_data()];
    within.into_iter().flatten().min()
}

/// Returns the bytes of address space that the process may still take; `None` where there is no limit.
pub fn room_for_addresses() -> Option<u64> {
    Some(limit(&read("/proc/self/limits")?, "Max address space")?.saturating_sub(status("VmSize:")?))
}

fn room_for_data() -> Option<u64> {
    Some(limit(&read("/proc/self/limits")?, "Max data size")?.saturating_sub(status("VmData:")?))
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn status(name: &str) -> Option<u64> {
    kibibytes(&read("/proc/self/status")?, name)
}

/// Returns the bytes that the machine has left, from its files under `root`.
fn machine(root: &Path) -> Option<u64> {
    kibibytes(&read(root.join("proc/meminfo"))?, "MemAvailable:")
}

/// Reads the bytes of a line `name   N kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Reads the soft limit in a line of `/proc/self/limits`; `None` where it is `unlimited`.
fn limit(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The names that one of the two versions of control groups gives to what is needed here.
struct Version {
    filesystem: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Cached pages of files, which count as used but are evicted when processes need the memory.
    files: [&'static str; 2],
}

const VERSIONS: [Version; 2] = [
    Version {
        filesystem: "cgroup2",
        limit: "memory.max",
        used: "memory.current",
        files: ["inactive_file ", "active_file "],
    },
    Version {
        filesystem: "cgroup",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        files: ["total_inactive_file ", "total_active_file "],
    },
];

/// Returns the bytes that the process's control groups, and all groups around them, leave; from the files
/// under `root`.
fn groups(root: &Path) -> Option<u64> {
    let (own, mounts) = (read(root.join("proc/self/cgroup"))?, read(root.join("proc/self/mountinfo"))?);
    let left = VERSIONS.iter().filter_map(|version| {
        let group = own.lines().find_map(|line| version.group(line))?;
        let (top, place) = mounts.lines().find_map(|line| version.place(line, group))?;
        let top = root.join(top.strip_prefix("/").unwrap_or(&top));
        top.join(place)
            .ancestors()
            .take_while(|group| group.starts_with(&top))
            .filter_map(|at| version.left(at))
            .min()
    });
    left.min()
}

impl Version {
    /// Returns the path of the process's group, from a line `number:controllers:path` of `/proc/self/cgroup`.
    fn group<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let is_second = self.filesystem == "cgroup2";
        let counts = if is_second {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == "memory")
        };
        counts.then_some(path)
    }

    /// Returns where the groups are mounted, and the path of `group` from there, from a line of
    /// `/proc/self/mountinfo`: `id parent device root mount-point options … - filesystem source options`.
    fn place(&self, line: &str, group: &str) -> Option<(PathBuf, PathBuf)> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (filesystem, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let has_memory = self.filesystem == "cgroup2" || options.split(',').any(|option| option == "memory");
        if filesystem != self.filesystem || !has_memory {
            return None;
        }
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        // A container may see its own group as the root of all groups, under the path that it has outside.
        let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
        let below = if below.components().all(|part| matches!(part, Component::Normal(_))) {
            below
        } else {
            Path::new("")
        };
        Some((PathBuf::from(point), below.to_owned()))
    }

    /// Returns the bytes that a group leaves; `None` where it has no limit.
    fn left(&self, group: &Path) -> Option<u64> {
        let number = |file: &str| read(group.join(file))?.trim().parse::<u64>().ok();
        let limit = number(self.limit)?;
        let used = number(self.used).unwrap_or(0);
        let stat = read(group.join("memory.stat")).unwrap_or_default();
        let line =
            |name: &str| stat.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
        let files: u64 = self.files.iter().filter_map(|name| line(name)).sum();
        Some(limit.saturating_sub(used.saturating_sub(files)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_tables_are_read() {
        let text = "MemTotal:       24 kB\nMemAvailable:    1024 kB\nSwapFree: 0 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable:"), Some(1 << 20));
        assert_eq!(kibibytes("MemTotal: 3 kB", "MemAvailable:"), None);
        let text = "Max data size             unlimited            unlimited            bytes     \n\
                    Max address space         307200000            unlimited            bytes     \n";
        assert_eq!(limit(text, "Max address space"), Some(307_200_000));
        assert_eq!(limit(text, "Max data size"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_tells() {
        assert!(available().is_some_and(|bytes| bytes > 0));
    }

    /// Writes a system's files into a folder of their own.
    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    const SECOND: &str = "25 1 0:22 / /proc rw - proc proc rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_tightest_group_around_the_process_counts() {
        let root = system(&[
            ("proc/self/cgroup", "0::/user/batch/job\n"),
            ("proc/self/mountinfo", SECOND),
            // The root of all groups has no limit.
            ("sys/fs/cgroup/memory.stat", "file 1\n"),
            ("sys/fs/cgroup/user/memory.max", "9000\n"),
            ("sys/fs/cgroup/user/memory.current", "5000\n"),
            ("sys/fs/cgroup/user/memory.stat", "anon 1\nfile 3900\ninactive_file 1000\nactive_file 500\n"),
            ("sys/fs/cgroup/user/batch/memory.max", "max\n"),
            ("sys/fs/cgroup/user/batch/job/memory.max", "8000\n"),
            ("sys/fs/cgroup/user/batch/job/memory.current", "100\n"),
        ]);
        assert_eq!(groups(root.path()), Some(9000 - (5000 - 1500)));
        fs::write(root.path().join("sys/fs/cgroup/user/batch/job/memory.max"), "2000").unwrap();
        assert_eq!(groups(root.path()), Some(1900));
    }

    #[test]
    fn a_container_that_sees_its_own_group_as_the_root_is_understood() {
        for (group, mount) in [("0::/docker/abc\n", "/docker/abc"), ("0::/\n", "/"), ("0::/../other\n", "/")]
        {
            let mounts = format!("30 23 0:26 {mount} /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
            let root = system(&[
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", &mounts),
                ("sys/fs/cgroup/memory.max", "4096\n"),
                ("sys/fs/cgroup/memory.current", "96\n"),
            ]);
            assert_eq!(groups(root.path()), Some(4000), "{group}");
        }
    }

    #[test]
    fn the_first_version_is_read_too() {
        let root = system(&[
            ("proc/self/cgroup", "12:cpu,cpuacct:/\n7:memory:/slurm/job_1\n0::/\n"),
            (
                "proc/self/mountinfo",
                "40 39 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 41 39 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "7000\n"),
            ("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "6000\n"),
            ("sys/fs/cgroup/memory/slurm/memory.stat", "total_inactive_file 2000\ntotal_active_file 0\n"),
            ("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(groups(root.path()), Some(3000));
        assert_eq!(groups(system(&[]).path()), None);
    }
}
