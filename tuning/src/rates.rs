//! Rates of a machine that take a while to measure, kept for the next process.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The time for which a measured rate stands: machines are upgraded, and a machine that was busy while it was
/// measured is measured again.
const STANDS: Duration = Duration::from_secs(30 * 24 * 3600);

/// The share of the larger of two measurements that the smaller has where they agree.
const AGREES: f64 = 0.85;

/// The measurements after which the largest stands though no other agrees with it.
const MOST: u32 = 4;

/// A folder of measured rates. The folder is a convenience: where it cannot be read or written, rates are
/// measured anew.
pub struct Rates {
    folder: Option<PathBuf>,
}

/// A rate, and the machine that it was measured on.
#[derive(Serialize, Deserialize)]
struct Rate {
    what: String,
    machine: Vec<String>,
    version: String,
    /// The largest of what was measured: what else a machine does makes a rate smaller, never larger.
    per_second: f64,
    /// The number of measurements.
    measured: u32,
    /// Whether a second measurement agrees with the largest.
    agreed: bool,
}

impl Rates {
    /// Returns the user's rates.
    pub fn of_user() -> Rates {
        Rates { folder: crate::folder("rates") }
    }

    /// Returns the rates in a folder.
    pub fn at(folder: PathBuf) -> Rates {
        Rates { folder: Some(folder) }
    }

    /// Returns a rate of a machine, described in words, that was kept not long ago and lies within `plausible`; else the
    /// rate that `measure` finds, which is then kept. A machine may have been busy with something else: a rate is
    /// measured again by the next process, and stands once two measurements agree.
    pub fn kept(
        &self,
        what: &str,
        machine: &[String],
        plausible: Range<f64>,
        measure: impl FnOnce() -> Option<f64>,
    ) -> Option<f64> {
        let version = env!("CARGO_PKG_VERSION");
        let parts: Vec<&str> =
            [what, version].into_iter().chain(machine.iter().map(String::as_str)).collect();
        let name = crate::key(&[&parts.join("\n")]) + ".json";
        let found = self.find(&name).filter(|found| {
            (&*found.what, &*found.machine, &*found.version) == (what, machine, version)
                && plausible.contains(&found.per_second)
        });
        if let Some(found) = found.as_ref().filter(|found| found.agreed || found.measured >= MOST) {
            return Some(found.per_second);
        }
        let before = found.as_ref().map_or(0.0, |found| found.per_second);
        let Some(measured) = measure().filter(|per_second| plausible.contains(per_second)) else {
            return found.map(|found| found.per_second);
        };
        let per_second = measured.max(before);
        let rate = Rate {
            what: what.to_owned(),
            machine: machine.to_vec(),
            version: version.to_owned(),
            per_second,
            measured: found.map_or(0, |found| found.measured).saturating_add(1),
            agreed: measured.min(before) >= AGREES * per_second,
        };
        if let (Some(folder), Ok(text)) = (&self.folder, serde_json::to_vec_pretty(&rate)) {
            crate::write(folder, &name, &text);
        }
        Some(per_second)
    }

    fn find(&self, name: &str) -> Option<Rate> {
        let path = self.folder.as_ref()?.join(name);
        // A clock that was set back leaves a file of the future, which does not stand any longer either.
        let age = SystemTime::now().duration_since(fs::metadata(&path).ok()?.modified().ok()?).ok()?;
        serde_json::from_slice(&crate::read(&path)?).ok().filter(|_| age < STANDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Range<f64> = 1.0..1e9;

    fn machine(name: &str) -> Vec<String> {
        vec![name.to_owned(), "8".to_owned()]
    }

    #[test]
    fn a_rate_stands_once_two_measurements_agree() {
        let folder = tempfile::tempdir().unwrap();
        let rates = Rates::at(folder.path().join("rates"));
        assert_eq!(rates.kept("copy", &machine("a"), ALL, || Some(7.5)), Some(7.5));
        assert_eq!(rates.kept("copy", &machine("a"), ALL, || None), Some(7.5));
        assert_eq!(rates.kept("copy", &machine("a"), ALL, || Some(7.4)), Some(7.5));
        assert_eq!(rates.kept("copy", &machine("a"), ALL, || panic!("it was kept")), Some(7.5));
        assert_eq!(rates.kept("copy", &machine("b"), ALL, || Some(8.0)), Some(8.0));
        assert_eq!(rates.kept("load", &machine("a"), ALL, || None), None);
    }

    /// A machine that was busy while its rate was measured is measured until it is not, but not for ever.
    #[test]
    fn a_rate_of_a_busy_machine_does_not_stand() {
        let folder = tempfile::tempdir().unwrap();
        let rates = Rates::at(folder.path().to_owned());
        let mut kept = |measured| rates.kept("copy", &machine("a"), ALL, || Some(measured));
        assert_eq!([2.0, 13.0, 5.0, 12.5].map(&mut kept), [Some(2.0), Some(13.0), Some(13.0), Some(13.0)]);
        assert_eq!(rates.kept("copy", &machine("a"), ALL, || panic!("two agree")), Some(13.0));
        let mut kept = |measured| rates.kept("copy", &machine("b"), ALL, || Some(measured));
        assert_eq!([1.0, 2.0, 4.0, 8.0].map(&mut kept).last(), Some(&Some(8.0)));
        assert_eq!(rates.kept("copy", &machine("b"), ALL, || panic!("enough")), Some(8.0));
    }

    #[test]
    fn stale_foreign_and_damaged_files_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let rates = Rates::at(folder.path().to_owned());
        for _ in 0..2 {
            rates.kept("copy", &machine("a"), ALL, || Some(7.5));
        }
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read_to_string(&path).unwrap();
        for text in
            ["", "{}", "7.5", &whole.replace("\"a\"", "\"b\""), &whole.replace("7.5", "1e300"), &whole[..20]]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(rates.kept("copy", &machine("a"), ALL, || Some(9.0)), Some(9.0), "{text}");
            assert_eq!(rates.kept("copy", &machine("a"), ALL, || None), Some(9.0), "{text}");
        }
        let file = fs::File::options().write(true).open(&path).unwrap();
        for time in [SystemTime::now() - 2 * STANDS, SystemTime::now() + STANDS] {
            file.set_modified(time).unwrap();
            assert_eq!(
                rates.find(path.file_name().unwrap().to_str().unwrap()).map(|rate| rate.per_second),
                None
            );
        }
        // An impossible rate is not kept.
        assert_eq!(Rates { folder: None }.kept("copy", &machine("a"), ALL, || Some(f64::NAN)), None);
    }
}
