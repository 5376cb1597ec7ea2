//! One stage of a program: new values of fields, a reduction of fields to a scalar, or a new scalar.

use super::Problem;
use super::centring::Centring;
use super::footprint::Footprint;
use super::region::Region;
use super::stencil::{Names, Scope};
use super::transform::Transform;
use crate::error::{Error, Result};
use crate::expr::{Dag, Expr, Graph, Looped, Node, Tap};
use crate::real::{DType, Real};
use crate::reduction::Reduction;

/// One stage of a program: all its results are computed from the values before the stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The stencil's or the stage's name.
    pub name: String,
    /// The formula with each turn of its loops; its outputs are the results.
    pub dag: Dag,
    /// The same formula with its loops, if it has any.
    pub looped: Option<Looped>,
    /// The results.
    pub does: StageKind,
    /// The numbers of the fields and temporaries written, in the order of the formula's outputs; none unless
    /// the stage is an update.
    pub writes: Vec<usize>,
    /// The only indices at which the stage computes, along the three padded axes; everywhere if there are none.
    pub points: Vec<[usize; 3]>,
    /// The formula's footprint.
    pub footprint: Footprint,
}

/// The kind of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StageKind {
    /// New values of fields and temporaries; output `i` of the formula is that of `writes[i]`.
    Update,
    /// The formula's only output, reduced over a region, becomes the scalar of this number.
    Reduce(Reduction, Region, usize),
    /// The formula's only output, which taps no field, becomes the scalar of this number.
    Scalar(usize),
    /// The new values of `writes[0]` are those of a field, the formula's first output, transformed along an axis by a matrix of the
    /// operator that the second output is.
    Transform(Transform),
}

impl Stage {
    /// Computes the results at one cell into `values`: loops turn by turn, as they were written. The arguments are those of
    /// [`Dag::evaluate`].
    pub fn values<T: Real>(
        &self,
        values: &mut Vec<T>,
        params: &[T],
        coord: [isize; 3],
        tap: impl FnMut(Tap) -> T,
    ) {
        match &self.looped {
            Some(looped) => {
                values.clear();
                values.extend(looped.evaluate(params, coord, tap));
            }
            None => {
                let mut nodes = Vec::with_capacity(self.dag.nodes.len());
                self.dag.evaluate(&mut nodes, params, coord, tap);
                values.clear();
                values.extend(self.dag.outputs.iter().map(|&output| nodes[output as usize]));
            }
        }
    }
}

impl Stage {
    /// Returns the type in which the formula is evaluated where the fields are of a type: a formula of scalars is
    /// evaluated in f64 whatever that is.
    pub fn dtype(&self, fields: DType) -> DType {
        match self.does {
            StageKind::Scalar(_) => DType::F64,
            StageKind::Update | StageKind::Reduce(..) | StageKind::Transform(_) => fields,
        }
    }

    /// Returns the fields and temporaries that are set one by one, by outputs of the formula with its loops; loops set the
    /// others that it writes.
    pub fn set_alone(&self) -> &[usize] {
        let loops = self.looped.as_ref().map_or(0, |looped| looped.stored);
        &self.writes[..self.writes.len() - loops]
    }
}

impl Stage {
    /// Returns the field whose lines a transform takes, by its number; `None` if the stage is none.
    pub fn transformed(&self) -> Option<usize> {
        let StageKind::Transform(_) = self.does else { return None };
        match self.dag.nodes[*self.dag.outputs.first()? as usize] {
            Node::Tap(tap) => Some(usize::from(tap.field)),
            _ => None,
        }
    }

    /// Returns the fields and temporaries that the stage taps or sets, each as often as it does.
    pub fn names(&self) -> impl Iterator<Item = usize> {
        self.dag.taps().map(|tap| usize::from(tap.field)).chain(self.writes.iter().copied())
    }

    /// Returns whether the stage goes over the domain cell by cell, and not over points, a scalar alone, or lines.
    pub fn sweeps(&self) -> bool {
        self.points.is_empty() && !matches!(self.does, StageKind::Scalar(_) | StageKind::Transform(_))
    }

    /// Returns the places of what the stage sets or reduces, where those of each name are known.
    pub fn grid(&self, centring: impl Fn(usize) -> Centring) -> Centring {
        match self.does {
            StageKind::Update | StageKind::Transform(_) => {
                self.writes.first().map_or(Centring::CELL, |&name| centring(name))
            }
            StageKind::Reduce(_, region, _) => region.centring,
            StageKind::Scalar(_) => Centring::CELL,
        }
    }

    /// Returns at how many indices of its grid the stage computes.
    pub fn indices(&self, problem: &Problem) -> usize {
        match self.does {
            StageKind::Scalar(_) => 1,
            _ if !self.points.is_empty() => self.points.len(),
            _ => problem.cells_on(problem.program.grid_of(self)),
        }
    }
}

impl StageKind {
    /// Returns the scalar that the stage makes, by its number in formulas.
    pub fn scalar(self) -> Option<usize> {
        match self {
            StageKind::Update | StageKind::Transform(_) => None,
            StageKind::Reduce(_, _, scalar) | StageKind::Scalar(scalar) => Some(scalar),
        }
    }
}

/// Returns the stage of new values that `define` writes.
pub(super) fn update(
    name: &str,
    names: &Names,
    centring: &dyn Fn(usize) -> Centring,
    define: impl FnOnce(&Scope<'_>),
) -> Result<Stage> {
    let graph = Graph::new();
    let scope = Scope::new(&graph, names);
    define(&scope);
    let defined = scope.finish()?;
    let what = || format!("stencil {name}");
    if defined.updates.is_empty() && defined.stored.is_empty() {
        return Err(Error::invalid(
            what(),
            "it sets no field",
            "call Scope::set for each field that changes",
        ));
    }
    let values: Vec<_> = defined.updates.iter().map(|(_, value)| *value).collect();
    check_graph(&graph, &values, what())?;
    let updated = defined.updates.iter().map(|(field, _)| *field);
    let writes = updated.chain(defined.stored.iter().cloned().flatten());
    let writes: Vec<usize> = writes.map(usize::from).collect();
    let own = centring(writes[0]);
    if let Some(&other) = writes.iter().find(|&&field| centring(field) != own) {
        return Err(Error::invalid(
            what(),
            format!(
                "it sets {}, which stands on {own}, and {}, which stands on {}",
                names.fields[writes[0]],
                names.fields[other],
                centring(other)
            ),
            "write a stage for each",
        ));
    }
    check_here(&defined.here, own, names, centring, what())?;
    let (dag, looped) = formula(&graph, &values, what())?;
    let footprint = Footprint::of(&dag, names.fields.len());
    let name = name.to_owned();
    Ok(Stage { name, dag, looped, does: StageKind::Update, writes, points: Vec::new(), footprint })
}

/// Returns the stage of one value: a reduction over a region, or a formula of scalars.
pub(super) fn single(
    name: &str,
    names: &Names,
    centring: &dyn Fn(usize) -> Centring,
    does: StageKind,
    define: impl for<'g> FnOnce(&Scope<'g>) -> Expr<'g>,
) -> Result<Stage> {
    let graph = Graph::new();
    let scope = Scope::new(&graph, names);
    let value = define(&scope);
    let defined = scope.finish()?;
    let what = || format!("stage {name}");
    check_graph(&graph, &[value], what())?;
    if !defined.updates.is_empty() || !defined.stored.is_empty() {
        return Err(Error::invalid(what(), "it sets a field", "return the value, and set fields in a stage"));
    }
    let (dag, looped) = formula(&graph, &[value], what())?;
    match does {
        StageKind::Reduce(_, region, _) => {
            check_here(&defined.here, region.centring, names, centring, what())?;
            if dag.taps().next().is_none() {
                return Err(Error::invalid(
                    what(),
                    "it is a reduction of nothing: the formula reads no field",
                    "read a field, or make it a stage of scalars",
                ));
            }
        }
        _ => {
            let varies = |node: &&Node| matches!(node, Node::Tap(_) | Node::Coord(_));
            if let Some(node) = dag.nodes.iter().find(varies) {
                let reason = match node {
                    Node::Tap(Tap { field, .. }) => {
                        format!("a scalar is no function of the field {}", names.fields[usize::from(*field)])
                    }
                    _ => "a scalar is no function of a coordinate".to_owned(),
                };
                return Err(Error::invalid(what(), reason, "reduce the field to a scalar first"));
            }
        }
    }
    // The result is a scalar: no field is written.
    let footprint = Footprint { stores: 0, ..Footprint::of(&dag, names.fields.len()) };
    let name = name.to_owned();
    Ok(Stage { name, dag, looped, does, writes: Vec::new(), points: Vec::new(), footprint })
}

/// The most terms of a stage's formula with each turn of its loops.
pub const MAX_WRITTEN_OUT: usize = 1 << 18;

/// Returns the formula of values with each turn of its loops, and with its loops.
fn formula(graph: &Graph, values: &[Expr<'_>], what: String) -> Result<(Dag, Option<Looped>)> {
    let looped = graph.looped(values);
    if let Some(fault) = graph.fault() {
        return Err(fault);
    }
    let terms = looped.as_ref().map_or(0, Looped::written_out);
    if terms > MAX_WRITTEN_OUT {
        let what = format!("terms of {what} with each turn of its loops");
        return Err(Error::limit(what, terms, MAX_WRITTEN_OUT, "choose fewer turns"));
    }
    let dag = looped.as_ref().map_or_else(|| graph.dag(values), Looped::unrolled);
    Ok((dag, looped))
}

pub(super) fn check_graph(graph: &Graph, values: &[Expr<'_>], what: String) -> Result<()> {
    match values.iter().all(|value| std::ptr::eq(value.graph(), graph)) {
        true => Ok(()),
        false => Err(Error::invalid(
            what,
            "a value was made in another scope",
            "build formulas from the scope given",
        )),
    }
}

/// Checks that fields read at the place of the value itself stand where the value does.
fn check_here(
    here: &[u16],
    own: Centring,
    names: &Names,
    centring: &dyn Fn(usize) -> Centring,
    what: String,
) -> Result<()> {
    let other = here.iter().map(|&field| usize::from(field)).find(|&field| centring(field) != own);
    match other.and_then(|field| Some((names.fields.get(field)?, centring(field)))) {
        None => Ok(()),
        Some((field, centring)) => Err(Error::invalid(
            what,
            format!("it reads {field}, which stands on {centring}, `here`, but its values stand on {own}"),
            "say by `at` which value is meant: node i is the low end of cell i",
        )),
    }
}
