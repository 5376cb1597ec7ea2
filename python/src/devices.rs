//! What there is: devices, and the entries of the catalogue.

use abide::backend::{self, Kind};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::exception;
use crate::guard::{caught, detached};
use crate::report::json as text;

/// Every backend with its device, or the reason why it has none, as JSON.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<String> {
    detached(py, || {
        let one = |name: &str| match backend::open(name) {
            Ok(opened) => {
                let kind = match opened.kind {
                    Kind::Gpu => "GPU",
                    Kind::Software => "software",
                    Kind::Cpu => "CPU",
                };
                let driver = opened.backend.driver();
                json!({ "backend": name, "kind": kind, "device": opened.backend.device(), "driver": driver })
            }
            Err(error) => json!({ "backend": name, "unavailable": error.to_string() }),
        };
        text(&backend::names().map(one).collect::<Vec<_>>())
    })
}

/// Name, description, numbers of axes, fields and parameters with their defaults of each entry of the
/// catalogue.
type Entry = (String, String, Vec<usize>, Vec<String>, Vec<(String, f64)>);

/// All entries of the catalogue.
#[pyfunction]
pub fn catalogue() -> PyResult<Vec<Entry>> {
    let described = |entry: &abide::catalogue::Entry| {
        let program = entry.program(*entry.dimensions.start()).map_err(exception)?;
        let parameters = program.parameters().iter();
        Ok((
            entry.name.to_owned(),
            entry.about.to_owned(),
            entry.dimensions.clone().collect(),
            program.fields().to_vec(),
            parameters.map(|parameter| (parameter.name.clone(), parameter.default)).collect(),
        ))
    };
    caught(|| abide::catalogue::entries().map(described).collect())
}
