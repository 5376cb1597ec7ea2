//! Compiled kernels kept on disk, by the content that made them.

use std::fs;
use std::path::PathBuf;

use abide_cache::{folder, key, write};
use abide_core::Result;
use abide_core::plan::Compiled;

use crate::nvrtc::{Cubin, Nvrtc};

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
