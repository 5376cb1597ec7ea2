//! Programs: one or more stencils in order per step, over shared fields.

use std::sync::Arc;

use crate::domain::{Boundaries, Boundary, Shape};
use crate::error::{Error, Result};
use crate::expr::{Dag, Graph};
use crate::footprint::Footprint;
use crate::real::DType;
use crate::start::Start;
use crate::stencil::{Parameter, Scope, Stencil};

/// One stage of a program: all its outputs are computed from the values before the stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The stencil's name.
    pub name: String,
    /// The formula; output `i` is the new value of field `writes[i]`.
    pub dag: Dag,
    /// The numbers of the fields written, in the order of the formula's outputs.
    pub writes: Vec<usize>,
    /// What the formula reads and costs.
    pub footprint: Footprint,
}

/// A computation: fields, parameters and the stages of one step.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    dimensions: usize,
    fields: Vec<String>,
    parameters: Vec<Parameter>,
    stages: Vec<Stage>,
    boundary: Boundary,
    shown: usize,
    starts: Vec<Start>,
}

impl Program {
    /// The program of a single stencil a step.
    pub fn new(stencil: &dyn Stencil) -> Result<Program> {
        Program::sequence(stencil.name(), &[stencil])
    }

    /// The program that applies several stencils in order each step. Fields and parameters of the same name
    /// are shared; boundary, starts and the shown field are the first stencil's that has them.
    pub fn sequence(name: impl Into<String>, stencils: &[&dyn Stencil]) -> Result<Program> {
        let name = name.into();
        let Some(first) = stencils.first() else {
            return Err(Error::invalid(format!("program {name}"), "it has no stencils", "give at least one"));
        };
        let dimensions = first.dimensions();
        if !(1..=3).contains(&dimensions) {
            return Err(Error::limit(
                format!("axes of stencil {}", first.name()),
                dimensions,
                "1 to 3",
                "use 1 to 3 axes",
            ));
        }
        let mut fields: Vec<String> = Vec::new();
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut starts: Vec<Start> = Vec::new();
        for stencil in stencils {
            if stencil.dimensions() != dimensions {
                return Err(Error::invalid(
                    format!("program {name}"),
                    format!(
                        "{} has {} axes, {} has {dimensions}",
                        stencil.name(),
                        stencil.dimensions(),
                        first.name()
                    ),
                    "use stencils of the same number of axes",
                ));
            }
            for field in stencil.fields() {
                if !fields.contains(&field) {
                    starts.push(stencil.start(&field));
                    fields.push(field);
                }
            }
            for parameter in stencil.parameters() {
                if !parameters.iter().any(|p| p.name == parameter.name) {
                    parameters.push(parameter);
                }
            }
        }
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            return Err(Error::limit(
                "fields of a program",
                fields.len(),
                format!("1 to {MAX_FIELDS}"),
                "split the program",
            ));
        }
        let stages = stencils
            .iter()
            .map(|stencil| stage(*stencil, dimensions, &fields, &parameters))
            .collect::<Result<Vec<_>>>()?;
        let shown = first.shown().min(fields.len() - 1);
        Ok(Program {
            name,
            dimensions,
            fields,
            parameters,
            stages,
            boundary: first.boundary(),
            shown,
            starts,
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of axes.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The names of the fields, in order.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The number of a field by name.
    pub fn field(&self, name: &str) -> Result<usize> {
        self.fields.iter().position(|f| f == name).ok_or_else(|| Error::unknown("field", name, &self.fields))
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The number of a parameter by name.
    pub fn parameter(&self, name: &str) -> Result<usize> {
        let position = self.parameters.iter().position(|p| p.name == name);
        position
            .ok_or_else(|| Error::unknown("parameter", name, self.parameters.iter().map(|p| p.name.as_str())))
    }

    /// The stages of a step, in order.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The boundary that suits the program.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// The number of the field a picture shows.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// The initial state of a field, by number.
    pub fn start(&self, field: usize) -> &Start {
        &self.starts[field]
    }

    /// Whether any stage writes the field; a field that none writes is a coefficient.
    pub fn is_written(&self, field: usize) -> bool {
        self.stages.iter().any(|stage| stage.writes.contains(&field))
    }

    /// The radius along each of the three axes, slowest first: the largest of any stage's.
    pub fn radius(&self) -> [usize; 3] {
        let mut radius = [0; 3];
        for stage in &self.stages {
            for (most, own) in radius.iter_mut().zip(stage.footprint.radius) {
                *most = own.max(*most);
            }
        }
        radius
    }

    /// Floating-point operations per cell and step.
    pub fn flops(&self) -> usize {
        self.stages.iter().map(|stage| stage.footprint.flops).sum()
    }

    /// Operations a cell and step that take a place in an arithmetic pipe; a fused multiply-add is one.
    pub fn operations(&self) -> usize {
        let nodes = self.stages.iter().flat_map(|stage| &stage.dag.nodes);
        nodes.filter(|node| node.operands().next().is_some()).count()
    }

    /// Bytes a cell and step that a code moves which runs the stages in turn, reading and writing each field
    /// once a stage.
    pub fn bytes(&self, dtype: DType) -> usize {
        self.stages.iter().map(|stage| stage.footprint.bytes(dtype)).sum()
    }

    /// Whether all backends agree to the bit: no operator is used whose rounding the backends may choose.
    pub fn is_exact(&self) -> bool {
        use crate::expr::Node;
        self.stages.iter().flat_map(|stage| &stage.dag.nodes).all(|node| match node {
            Node::Unary(op, _) => op.is_exact(),
            Node::Binary(op, ..) => op.is_exact(),
            _ => true,
        })
    }

    /// The same program with every stage's formula simplified for a type; no value changes by a bit.
    pub fn simplified(&self, dtype: DType) -> Program {
        let mut program = self.clone();
        for stage in &mut program.stages {
            stage.dag = stage.dag.simplified(dtype);
            stage.footprint = Footprint::of(&stage.dag, self.fields.len());
        }
        program
    }
}

/// The most fields a program may have.
pub const MAX_FIELDS: usize = 64;

fn stage(
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

/// A program on a domain: all that a backend needs besides the initial fields.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The computation.
    pub program: Arc<Program>,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundary at each axis and side.
    pub boundaries: Boundaries,
    /// The parameters' values, in the program's order.
    pub parameters: Vec<f64>,
}

impl Problem {
    /// A problem with the program's own boundary and parameters, checked by [`Problem::check`].
    pub fn new(program: Arc<Program>, shape: Shape, dtype: DType) -> Result<Self> {
        let boundaries = Boundaries::all(program.boundary());
        let parameters = program.parameters().iter().map(|p| p.default).collect();
        let problem = Problem { program, shape, dtype, boundaries, parameters };
        problem.check()?;
        Ok(problem)
    }

    /// Checks that domain, boundaries and parameters fit the program.
    pub fn check(&self) -> Result<()> {
        if self.shape.dimensions() != self.program.dimensions() {
            return Err(Error::invalid(
                format!("size {}", self.shape),
                format!("{} has {} axes", self.program.name(), self.program.dimensions()),
                format!("give {} extents, slowest axis first", self.program.dimensions()),
            ));
        }
        if self.parameters.len() != self.program.parameters().len() {
            return Err(Error::limit(
                "parameters",
                self.parameters.len(),
                self.program.parameters().len(),
                "give one value each",
            ));
        }
        self.boundaries.check(&self.shape, self.program.radius(), self.dtype)
    }
}
