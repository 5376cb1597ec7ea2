//! Compiled kernels on disk, by the content that made them.

use std::fs;
use std::path::PathBuf;

use abide_core::Result;
use abide_core::plan::Compiled;
use sha2::{Digest, Sha256};

use crate::nvrtc::{Cubin, Nvrtc};

/// The environment variable that names the folder of compiled kernels instead of the user's cache folder.
pub const FOLDER_VARIABLE: &str = "ABIDE_CACHE";

/// Compiles, or finds what the same compiler made of the same text, target and options before.
///
/// The cache is a convenience: where it cannot be read or written the kernel is compiled anew, and nothing is lost.
pub fn compile(nvrtc: &Nvrtc, text: &str, target: &str, options: &[&str]) -> Result<Cubin> {
    let mut digest = Sha256::new();
    digest.update(format!("{:?} {target} {options:?}\n", nvrtc.version()));
    digest.update(text);
    let key: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = folder();
    if let Some(cubin) = folder.as_ref().and_then(|folder| read(folder.join(&key))) {
        return Ok(cubin);
    }
    let cubin = nvrtc.compile(text, target, options)?;
    if let Some(folder) = folder {
        write(&folder, &key, &cubin);
    }
    Ok(cubin)
}

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    Some(named.or_else(dirs::cache_dir)?.join("abide").join("kernels"))
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

fn write(folder: &std::path::Path, key: &str, cubin: &Cubin) {
    let line = |c: &Compiled| format!("{} {} {} {}\n", c.kernel, c.target, c.registers, c.spill_bytes);
    let mut bytes = cubin.report.iter().map(line).collect::<String>().into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(&cubin.image);
    // Under a name of its own first, so that another process never reads half a file.
    let partial = folder.join(format!("{key}.{}", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&partial, bytes))
        .and_then(|()| fs::rename(&partial, folder.join(key)));
    if written.is_err() {
        let _ = fs::remove_file(partial);
    }
}
