//! Compiled kernels kept on disk, under a key made of all that they were compiled from.

use std::path::Path;

use abide_core::Result;
use abide_core::plan::Compiled;
use abide_tuning::{find, folder, keep, key};

use crate::nvrtc::{Cubin, Nvrtc};

/// Compiles a text, or finds the kernel that the same compiler made of the same text, target and options
/// before.
///
/// The cache is a convenience: where it cannot be read or written the kernel is compiled anew, and nothing is
/// lost.
pub fn compile(nvrtc: &Nvrtc, text: &str, target: &str, options: &[&str]) -> Result<Cubin> {
    let key = key(&[&format!("{:?} {target} {options:?}\n", nvrtc.version()), text]);
    let folder = folder("kernels");
    kept(folder.as_deref(), &key, || nvrtc.compile(text, target, options))
}

/// Returns the kernel that a folder keeps under a key; else the result of `compile`, which the folder then
/// keeps.
fn kept(folder: Option<&Path>, key: &str, compile: impl FnOnce() -> Result<Cubin>) -> Result<Cubin> {
    // What has no report was found by the compiler in a cache of its own: its spills are not known.
    let is_reported = |cubin: &Cubin| !cubin.report.is_empty();
    if let Some(cubin) = folder.and_then(|folder| parsed(&find(folder, key)?)).filter(is_reported) {
        return Ok(cubin);
    }
    let cubin = compile()?;
    if let Some(folder) = folder.filter(|_| is_reported(&cubin)) {
        keep(folder, key, &bytes(&cubin));
    }
    Ok(cubin)
}

/// Reads a kept file: one line per kernel (name, target, registers, spilled bytes), an empty line, the image.
fn parsed(bytes: &[u8]) -> Option<Cubin> {
    let split = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let mut report = Vec::new();
    for line in std::str::from_utf8(&bytes[..split]).ok()?.lines() {
        let mut words = line.split(' ');
        report.push(Compiled {
            kernel: words.next()?.to_owned(),
            target: words.next()?.to_owned(),
            registers: words.next()?.parse().ok()?,
            spill_bytes: words.next()?.parse().ok()?,
        });
    }
    Some(Cubin { image: bytes[split + 2..].to_vec(), report })
}

/// Returns the file content that [`parsed`] reads.
fn bytes(cubin: &Cubin) -> Vec<u8> {
    let line = |c: &Compiled| format!("{} {} {} {}\n", c.kernel, c.target, c.registers, c.spill_bytes);
    let mut bytes = cubin.report.iter().map(line).collect::<String>().into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(&cubin.image);
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file that was cut or changed is never loaded: it counts as missing and is made anew.
    #[test]
    fn only_what_was_compiled_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let compiled =
            Compiled { kernel: "step".to_owned(), target: "sm_90".to_owned(), registers: 40, spill_bytes: 0 };
        let cubin = Cubin { image: b"\x7fELF\n\n code".to_vec(), report: vec![compiled] };
        let place = Some(folder.path());
        let anew = || kept(place, "key", || Ok(cubin.clone()));
        let found = || kept(place, "key", || panic!("it was kept"));
        assert_eq!(anew().unwrap(), cubin);
        assert_eq!(found().unwrap(), cubin);
        let path = folder.path().join("key");
        let whole = fs::read(&path).unwrap();
        let changed = [&whole[..whole.len() - 1], b"X"].concat();
        for damaged in [&whole[..whole.len() - 3], &changed, &bytes(&cubin)] {
            fs::write(&path, damaged).unwrap();
            let mut compilations = 0;
            let again = kept(place, "key", || {
                compilations += 1;
                Ok(cubin.clone())
            });
            assert_eq!((again.unwrap(), compilations), (cubin.clone(), 1));
            assert_eq!(found().unwrap(), cubin);
        }
        assert_eq!(kept(None, "key", || Ok(cubin.clone())).unwrap(), cubin);
        // Without a report spills are unknown: nothing is kept, and what was kept before does not count.
        let silent = Cubin { report: Vec::new(), ..cubin.clone() };
        assert_eq!(kept(place, "other", || Ok(silent.clone())).unwrap(), silent);
        assert_eq!(kept(place, "other", || Ok(cubin.clone())).unwrap(), cubin);
    }
}
