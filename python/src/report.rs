//! Reports of runs and plans.

use abide::RunReport;
use pyo3::prelude::*;

use crate::advice::in_python;
use crate::errors::raise;

/// The report on a run.
#[pyclass(frozen, module = "pyabide")]
pub struct Report {
    pub report: RunReport,
    /// The sentence about values that became NaN or infinite in this run.
    pub went_wrong: Option<String>,
}

#[pymethods]
impl Report {
    /// Steps done.
    #[getter]
    fn steps(&self) -> u64 {
        self.report.steps
    }

    /// Steps asked for; more than `steps` only if the run was ended.
    #[getter]
    fn steps_asked(&self) -> u64 {
        self.report.steps_asked
    }

    /// Cells of the domain.
    #[getter]
    fn cells(&self) -> u64 {
        self.report.cells
    }

    /// Seconds that the device took.
    #[getter]
    fn seconds(&self) -> f64 {
        self.report.seconds
    }

    /// Cells times steps per second, in 10⁹.
    #[getter]
    fn gcells_per_s(&self) -> f64 {
        self.report.gcells_per_s
    }

    /// The measured rate over the rate that the plan projects as the peak.
    #[getter]
    fn share_of_projected_peak(&self) -> f64 {
        self.report.share_of_projected_peak
    }

    /// The computed scalars after the last step.
    #[getter]
    fn scalars(&self) -> std::collections::BTreeMap<String, f64> {
        self.report.scalars.clone()
    }

    /// The backend's name.
    #[getter]
    fn backend(&self) -> &str {
        &self.report.backend
    }

    /// The device's name.
    #[getter]
    fn device(&self) -> &str {
        &self.report.device
    }

    /// The plan that ran.
    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.report.plan.clone())
    }

    /// Where the run differs from what was asked, and why.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.report.notes.iter().map(|note| in_python(note)).collect()
    }

    /// What is to be warned of: values that became NaN or infinite in this run.
    #[getter]
    fn went_wrong(&self) -> Option<&str> {
        self.went_wrong.as_deref()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(raise("Invalid", "a report cannot be pickled; take report.to_json()".to_owned()))
    }

    /// All of it as JSON.
    fn to_json(&self) -> PyResult<String> {
        json(&self.report)
    }

    fn __repr__(&self) -> String {
        let RunReport { steps, seconds, gcells_per_s, device, .. } = &self.report;
        let notes: String = self.notes().iter().map(|note| format!("\n  {note}")).collect();
        format!("{steps} steps in {seconds:.4} s, {gcells_per_s:.3} GCells/s on {device}{notes}")
    }

    fn _repr_html_(&self) -> String {
        let row = |name: &str, value: String| format!("<tr><th>{name}</th><td>{}</td></tr>", escaped(&value));
        let mut rows = vec![
            row("steps", self.report.steps.to_string()),
            row("seconds", format!("{:.4}", self.report.seconds)),
            row("GCells/s", format!("{:.3}", self.report.gcells_per_s)),
            row("device", self.report.device.clone()),
            row("plan", self.report.plan.summary()),
        ];
        rows.extend(self.report.scalars.iter().map(|(name, value)| row(&escaped(name), value.to_string())));
        rows.extend(self.notes().into_iter().map(|note| row("note", note)));
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
        self.0.notes.iter().map(|note| in_python(note)).collect()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(raise("Invalid", "a plan cannot be pickled; take plan.to_json()".to_owned()))
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
        in_python(&self.0.explain())
    }

    fn __repr__(&self) -> String {
        self.0.summary()
    }

    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", escaped(&self.__str__()))
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
