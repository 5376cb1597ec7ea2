//! Whether the machine has the memory that is asked for.
//!
//! Systems grant more memory than they have and end the process when it is used; so ask first.

use crate::{Error, Result};

/// An error where `bytes` more are known not to be there.
pub(crate) fn check(what: &str, bytes: u128) -> Result<()> {
    match available() {
        Some(available) if bytes > u128::from(available) => {
            let asked = format!("{} MB", bytes / 1_000_000);
            let limit = format!("{} MB available", available / 1_000_000);
            Err(Error::limit(what, asked, limit, "choose a smaller --size or --dtype f32"))
        }
        _ => Ok(()),
    }
}

/// Bytes that the system, and the container where there is one, still grant; `None` where they do not tell.
fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let system = read("/proc/meminfo").and_then(|text| meminfo(&text));
    let container = number("/sys/fs/cgroup/memory.max").map(|limit| {
        let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
        // Pages of files count as used, and are given up when others need them.
        let cached = read("/sys/fs/cgroup/memory.stat").and_then(|text| stat(&text, "file ")).unwrap_or(0);
        limit.saturating_sub(used.saturating_sub(cached))
    });
    match (system, container) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn stat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_tables_are_read() {
        let text = "MemTotal:       24 kB\nMemAvailable:    1024 kB\nSwapFree: 0 kB\n";
        assert_eq!(meminfo(text), Some(1 << 20));
        assert_eq!(meminfo("MemTotal: 3 kB"), None);
        assert_eq!(stat("anon 5\nfile 77\nfile_mapped 3\n", "file "), Some(77));
    }

    #[test]
    fn a_little_is_there_and_too_much_is_not() {
        assert!(check("memory", 1).is_ok());
        if available().is_some() {
            assert!(matches!(check("memory", u128::from(u64::MAX)), Err(Error::Limit { .. })));
        }
    }
}
