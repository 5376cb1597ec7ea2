//! What is kept on disk: compiled kernels, by the content that made them, and what else has a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::Result;
use abide_core::plan::Compiled;
use sha2::{Digest, Sha256};

use crate::nvrtc::{Cubin, Nvrtc};

/// The environment variable that names the folder of what is kept, instead of the user's cache folder.
pub const FOLDER_VARIABLE: &str = "ABIDE_CACHE";

/// Compiles, or finds what the same compiler made of the same text, target and options before.
///
/// The cache is a convenience: where it cannot be read or written the kernel is compiled anew, and nothing is lost.
pub fn compile(nvrtc: &Nvrtc, text: &str, target: &str, options: &[&str]) -> Result<Cubin> {
    let key = key(&[&format!("{:?} {target} {options:?}\n", nvrtc.version()), text]);
    let folder = folder("kernels");
    if let Some(cubin) = folder.as_ref().and_then(|folder| read(folder.join(&key))) {
        return Ok(cubin);
    }
    let cubin = nvrtc.compile(text, target, options)?;
    if let Some(folder) = folder {
        write(&folder, &key, &bytes(&cubin));
    }
    Ok(cubin)
}

/// The folder of one kind of what is kept; `None` where the user has no cache folder.
pub fn folder(kind: &str) -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    Some(named.or_else(dirs::cache_dir)?.join("abide").join(kind))
}

/// The name of a file for a content given in parts.
pub fn key(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A cached file: one line a kernel (name, target, registers, spilled bytes), an empty line, the image.
fn read(path: PathBuf) -> Option<Cubin> {
    let bytes = fs::read(path).ok()?;
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

/// The content of a file that [`read`] reads.
fn bytes(cubin: &Cubin) -> Vec<u8> {
    let line = |c: &Compiled| format!("{} {} {} {}\n", c.kernel, c.target, c.registers, c.spill_bytes);
    let mut bytes = cubin.report.iter().map(line).collect::<String>().into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(&cubin.image);
    bytes
}

/// Writes a file whole, or leaves what was there.
pub fn write(folder: &Path, key: &str, bytes: &[u8]) {
    // Under a name of its own first, so that no other process or thread reads half a file.
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!("{key}.{}.{number}", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&partial, bytes))
        .and_then(|()| fs::rename(&partial, folder.join(key)));
    if written.is_err() {
        let _ = fs::remove_file(partial);
    }
}
