//! What runs and plans tell.

use abide::RunReport;
use pyo3::prelude::*;

use crate::errors::raise;

/// The report on a run.
#[pyclass(frozen, module = "pyabide")]
pub struct Report(pub RunReport);

#[pymethods]
impl Report {
    /// Steps done.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.steps
    }

    /// Steps asked for; more than `steps` only if the run was ended.
    #[getter]
    fn steps_asked(&self) -> u64 {
        self.0.steps_asked
    }

    /// Cells of the domain.
    #[getter]
    fn cells(&self) -> u64 {
        self.0.cells
    }

    /// Seconds that the device took.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds
    }

    /// Cells times steps per second, in 10⁹.
    #[getter]
    fn gcells_per_s(&self) -> f64 {
        self.0.gcells_per_s
    }

    /// The measured rate over the rate that the plan projects as the peak.
    #[getter]
    fn share_of_projected_peak(&self) -> f64 {
        self.0.share_of_projected_peak
    }

    /// The computed scalars after the last step.
    #[getter]
    fn scalars(&self) -> std::collections::BTreeMap<String, f64> {
        self.0.scalars.clone()
    }

    /// The backend's name.
    #[getter]
    fn backend(&self) -> &str {
        &self.0.backend
    }

    /// The device's name.
    #[getter]
    fn device(&self) -> &str {
        &self.0.device
    }

    /// The plan that ran.
    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan.clone())
    }

    /// Where the run differs from what was asked, and why.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// All of it as JSON.
    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    fn __repr__(&self) -> String {
        let RunReport { steps, seconds, gcells_per_s, device, .. } = &self.0;
        let notes: String = self.0.notes.iter().map(|note| format!("\n  {note}")).collect();
        format!("{steps} steps in {seconds:.4} s, {gcells_per_s:.3} GCells/s on {device}{notes}")
    }

    fn _repr_html_(&self) -> String {
        let row = |name: &str, value: String| format!("<tr><th>{name}</th><td>{}</td></tr>", escaped(&value));
        let mut rows = vec![
            row("steps", self.0.steps.to_string()),
            row("seconds", format!("{:.4}", self.0.seconds)),
            row("GCells/s", format!("{:.3}", self.0.gcells_per_s)),
            row("device", self.0.device.clone()),
            row("plan", self.0.plan.summary()),
        ];
        rows.extend(self.0.scalars.iter().map(|(name, value)| row(&escaped(name), value.to_string())));
        rows.extend(self.0.notes.iter().map(|note| row("note", note.clone())));
        format!("<table>{}</table>", rows.concat())
    }
}

/// A plan: how a device runs a problem, and why so.
#[pyclass(frozen, module = "pyabide")]
pub struct Plan(pub abide::Plan);

#[pymethods]
impl Plan {
    /// The execution that was chosen.
    #[getter]
    fn execution(&self) -> &'static str {
        self.0.execution.name()
    }

    /// Where a persistent run keeps its cells.
    #[getter]
    fn cache(&self) -> &'static str {
        self.0.cache.name()
    }

    /// Steps per pass over the domain.
    #[getter]
    fn depth(&self) -> u32 {
        self.0.depth
    }

    /// The share of the domain that stays on the chip, 0 to 1.
    #[getter]
    fn cached_share(&self) -> f64 {
        self.0.cached_share()
    }

    /// The device planned for.
    #[getter]
    fn device(&self) -> &str {
        &self.0.device.name
    }

    /// The planner's estimate in seconds per step; 0 where there is nothing to choose.
    #[getter]
    fn estimated_seconds(&self) -> f64 {
        self.0.estimated_seconds
    }

    /// Where the plan differs from what was asked, and why.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// The plan in a line.
    fn summary(&self) -> String {
        self.0.summary()
    }

    /// All of it as JSON.
    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    fn __str__(&self) -> String {
        self.0.explain()
    }

    fn __repr__(&self) -> String {
        self.0.summary()
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(&self.0.explain()))
    }
}

/// Returns a value as JSON.
pub fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| raise("Error", format!("it cannot be written as JSON: {error}")))
}

/// Returns text as HTML shows it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
