//! A result that is computed again from the file that holds it.

use std::path::{Path, PathBuf};

use abide::io;
use abide::{Result, Simulation};

use super::problem::Domain;

/// The digest that a file says its fields have.
pub struct Again {
    path: PathBuf,
    digest: String,
}

impl Again {
    /// Reads the digest of the file that a computation is described by; `None` where that is no result, or its run has not
    /// ended.
    pub fn of(domain: &Domain) -> Result<Option<Again>> {
        let path = Path::new(&domain.stencil);
        if !io::model::is_result(path) {
            return Ok(None);
        }
        let digest = io::provenance(path)?.and_then(|own| own.digest);
        Ok(digest.map(|digest| Again { path: path.to_owned(), digest }))
    }

    /// Compares the fields with those of the file, in words.
    pub fn compared(&self, simulation: &mut Simulation) -> Result<String> {
        let path = self.path.display();
        Ok(match simulation.digest()? == self.digest {
            true => format!("the fields have the bits of {path}"),
            false => format!("the fields differ from those of {path}, by its digest {}", self.digest),
        })
    }
}
