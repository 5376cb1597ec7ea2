//! One stage of a program: a formula for each field that it changes.

use super::footprint::Footprint;
use super::stencil::{Parameter, Scope, Stencil};
use crate::error::{Error, Result};
use crate::expr::{Dag, Graph};

/// One stage of a program: all its outputs are computed from the values before the stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The stencil's name.
    pub name: String,
    /// The formula; output `i` is the new value of field `writes[i]`.
    pub dag: Dag,
    /// The numbers of the fields written, in the order of the formula's outputs.
    pub writes: Vec<usize>,
    /// The formula's footprint.
    pub footprint: Footprint,
}

/// Returns the stage that a stencil defines.
pub(super) fn stage(
    stencil: &dyn Stencil,
    dimensions: usize,
    fields: &[String],
    parameters: &[Parameter],
) -> Result<Stage> {
    let graph = Graph::new();
    let scope = Scope::new(&graph, dimensions, fields, parameters);
    stencil.define(&scope);
    let updates = scope.finish()?;
    if updates.is_empty() {
        return Err(Error::invalid(
            format!("stencil {}", stencil.name()),
            "it sets no field",
            "call Scope::set for each field that changes",
        ));
    }
    let values: Vec<_> = updates.iter().map(|(_, value)| *value).collect();
    if values.iter().any(|value| !std::ptr::eq(value.graph(), &graph)) {
        return Err(Error::invalid(
            format!("stencil {}", stencil.name()),
            "a value was made in another scope",
            "build formulas from the scope given",
        ));
    }
    let dag = graph.dag(&values);
    let footprint = Footprint::of(&dag, fields.len());
    let writes = updates.iter().map(|(field, _)| *field as usize).collect();
    Ok(Stage { name: stencil.name().to_owned(), dag, writes, footprint })
}
