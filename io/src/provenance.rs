//! Where a result comes from: all that is needed to make it again.

use std::path::Path;

use abide_core::{Array, Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Number;

const FORMAT: &str = "abide-provenance";
const VERSION: u32 = 1;

/// It as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    version: u32,
    #[serde(flatten)]
    own: Provenance,
}

/// The program, the options and the machine that a result comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of Abide that ran it.
    pub abide: String,
    /// The program's name.
    pub program: String,
    /// A model file: the program, and a table `run` of the options. Empty where a program cannot be written as text.
    pub model: String,
    /// The parameters' names and values.
    pub parameters: Vec<(String, Number)>,
    /// The extents of the domain, slowest axis first.
    pub size: Vec<usize>,
    /// The type of all fields.
    pub dtype: String,
    /// The plan, in words.
    pub plan: String,
    /// The backend that ran it.
    pub backend: String,
    /// The device that ran it.
    pub device: String,
    /// Steps done since the start.
    pub steps: u64,
    /// The digest of the fields after the last step, as [`Digest`] makes it; `None` before the run has ended.
    pub digest: Option<String>,
}

impl Default for Provenance {
    /// Nothing but the version of this library.
    fn default() -> Provenance {
        Provenance {
            abide: env!("CARGO_PKG_VERSION").to_owned(),
            program: String::new(),
            model: String::new(),
            parameters: Vec::new(),
            size: Vec::new(),
            dtype: String::new(),
            plan: String::new(),
            backend: String::new(),
            device: String::new(),
            steps: 0,
            digest: None,
        }
    }
}

impl Provenance {
    /// The most bytes of its JSON that are read.
    pub(super) const MOST_BYTES: u64 = 32 << 20;

    /// Returns it as JSON.
    pub(super) fn json(&self, path: &Path) -> Result<String> {
        let fault = |error| Error::file(path, format!("its provenance: {error}"), "write another format");
        let stored = Stored { format: FORMAT.to_owned(), version: VERSION, own: self.clone() };
        serde_json::to_string_pretty(&stored).map_err(fault)
    }

    /// Reads it from JSON that stands in a file.
    pub(super) fn read(path: &Path, json: &str) -> Result<Provenance> {
        let fault = |message: String| {
            Error::file(path, format!("its provenance: {message}"), "give a file that Abide wrote")
        };
        let read: Stored = serde_json::from_str(json).map_err(|error| fault(error.to_string()))?;
        match (read.format.as_str(), read.version) {
            (FORMAT, VERSION) => Ok(read.own),
            (format, version) => Err(fault(format!(
                "it is {format} of version {version}, this program reads {FORMAT} of version {VERSION}"
            ))),
        }
    }
}

/// A digest of fields: SHA-256 over the name, the extents, the type and the values of each, in the program's order.
#[derive(Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Adds a field.
    pub fn add(&mut self, name: &str, extents: &[usize], values: &Array) {
        let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
        self.0.update(format!("{name} {} {}\n", extents.join("x"), values.dtype()));
        self.0.update(values.as_bytes());
    }

    /// Returns the digest in hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_other_versions_are_refused() {
        let path = Path::new("a.h5");
        let parameters = vec![("k".to_owned(), Number(f64::INFINITY)), ("d".to_owned(), Number(0.1 + 0.2))];
        let own = Provenance { model: "a = \"ü\"\n".to_owned(), parameters, ..Provenance::default() };
        let json = own.json(path).unwrap();
        assert_eq!(Provenance::read(path, &json).unwrap(), own);
        let other = json.replace("\"version\": 1", "\"version\": 2");
        let error = Provenance::read(path, &other).unwrap_err().to_string();
        assert!(
            error.contains("of version 2") && error.contains("reads abide-provenance of version 1"),
            "{error}"
        );
    }

    #[test]
    fn a_digest_is_of_names_extents_types_and_bits() {
        let of = |name: &str, extents: &[usize], values: Array| {
            let mut digest = Digest::default();
            digest.add(name, extents, &values);
            digest.finish()
        };
        let own = of("u", &[2], Array::F64(vec![0.0, 1.0]));
        assert_eq!(own.len(), 64);
        assert_eq!(own, of("u", &[2], Array::F64(vec![0.0, 1.0])));
        for other in [
            of("v", &[2], Array::F64(vec![0.0, 1.0])),
            of("u", &[1, 2], Array::F64(vec![0.0, 1.0])),
            of("u", &[2], Array::F32(vec![0.0, 1.0])),
            of("u", &[2], Array::F64(vec![-0.0, 1.0])),
        ] {
            assert_ne!(own, other);
        }
    }
}
