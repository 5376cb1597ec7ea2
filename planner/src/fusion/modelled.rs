//! A program's loops gathered into groups for a device, with what the models say of each.

use std::fmt::{self, Display, Write};

use abide_core::{DeviceSpec, Problem, Result};
use serde::Serialize;

use super::graph::Graph;
use super::model::{Kernel, Model};
use super::of_program::Form;
use super::order::Order;
use super::projection::{Machine, Projection, efficiency, theoretical_gain};
use super::search::{Search, Spread, search};
use super::set::Set;

/// A program's graphs and the groups that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// The data-dependency graph.
    pub graph: Graph,
    /// The order-of-execution graph.
    pub order: Order,
    /// The groups, in an order in which they can run.
    pub groups: Vec<ModelledGroup>,
}

/// A group with what the models say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelledGroup {
    /// The loops, ascending.
    pub loops: Vec<usize>,
    /// Bytes for each cell of the loops one by one.
    pub unfused_bytes: u64,
    /// Seconds of the loops one by one, by the model.
    pub unfused_seconds: f64,
    /// The kernel, by the model.
    pub kernel: Kernel,
    /// The paper's projection of the kernel; `None` where it has no arithmetic over cells.
    pub projection: Option<Projection>,
}

/// Finds the groups that the model finds fastest for the steps of a problem, which has been checked, on a device. The work is
/// `spread` over threads.
///
/// # Errors
///
/// Those of [`Graph::of`] and [`Model::new`].
pub fn fuse(
    problem: &Problem,
    form: &Form,
    device: &DeviceSpec,
    settings: &Search,
    spread: Spread<'_>,
) -> Result<Modelled> {
    let graph = Graph::of(problem, form)?;
    let order = Order::of(&graph);
    let model = Model::new(&graph, problem, device)?;
    let found = search(&model, settings, spread, || true);
    let (machine, cells) = (Machine::of(device, problem.dtype), problem.shape.cells());
    let group = |loops: Vec<usize>| {
        let set: Set = loops.iter().copied().collect();
        let alone = || loops.iter().filter_map(|&own| model.kernel(&Set::of(own)));
        Some(ModelledGroup {
            unfused_bytes: alone().map(|kernel| kernel.bytes).sum(),
            unfused_seconds: alone().map(|kernel| kernel.seconds).sum(),
            kernel: model.kernel(&set)?,
            projection: graph.project(&set, cells, &machine).filter(|projection| projection.flops > 0.0),
            loops,
        })
    };
    let groups = found.groups.into_iter().filter_map(group).collect();
    Ok(Modelled { graph, order, groups })
}

/// A group as it is reported.
#[derive(Serialize)]
struct Reported<'a> {
    loops: &'a [usize],
    names: Vec<&'a str>,
    unfused_bytes: u64,
    bytes: u64,
    unfused_seconds: f64,
    seconds: f64,
    paper_seconds: Option<f64>,
    block: [usize; 3],
    shared_bytes: usize,
    registers: usize,
    recomputed: f64,
    efficiency: f64,
}

impl ModelledGroup {
    /// Returns the fusion efficiency that the model expects (12): 1 where time shrinks as traffic does.
    pub fn efficiency(&self) -> f64 {
        let gain = theoretical_gain(self.kernel.bytes, self.unfused_bytes);
        efficiency(gain, self.kernel.seconds, self.unfused_seconds)
    }
}

impl Serialize for Modelled {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.groups.iter().map(|group| Reported {
            loops: &group.loops,
            names: group.loops.iter().map(|&own| &*self.graph.loops[own].name).collect(),
            unfused_bytes: group.unfused_bytes,
            bytes: group.kernel.bytes,
            unfused_seconds: group.unfused_seconds,
            seconds: group.kernel.seconds,
            paper_seconds: group.projection.map(|projection| projection.seconds),
            block: group.kernel.block,
            shared_bytes: group.kernel.shared_bytes,
            registers: group.kernel.registers,
            recomputed: group.kernel.recomputed,
            efficiency: group.efficiency(),
        }))
    }
}

impl Display for Modelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: &dyn Fn(&ModelledGroup) -> f64| self.groups.iter().map(of).sum::<f64>();
        writeln!(
            f,
            "The loops as groups, each to be one kernel, by a model of the loops and by the fusion paper's:\n"
        )?;
        writeln!(
            f,
            "{:<6}{:>14}{:>14}{:>12}{:>10}{:>11}{:>6}  loops",
            "group", "bytes a cell", "one by one", "est. µs", "alone", "paper µs", "FE"
        )?;
        for (number, group) in self.groups.iter().enumerate() {
            let paper = group.projection.map(|projection| format!("{:.1}", projection.seconds * 1e6));
            let mut names = String::new();
            for (place, &own) in group.loops.iter().enumerate() {
                write!(names, "{}{}", if place > 0 { ", " } else { "" }, self.graph.title(own))?;
            }
            let fe = match group.loops.len() {
                1 => "-".to_owned(),
                _ => format!("{:.2}", group.efficiency()),
            };
            writeln!(
                f,
                "{number:<6}{:>14}{:>14}{:>12.1}{:>10.1}{:>11}{fe:>6}  {names}",
                group.kernel.bytes,
                group.unfused_bytes,
                group.kernel.seconds * 1e6,
                group.unfused_seconds * 1e6,
                paper.as_deref().unwrap_or("-"),
            )?;
        }
        writeln!(
            f,
            "{:<6}{:>14}{:>14}{:>12.1}{:>10.1}{:>11.1}",
            "all",
            sum(&|group| group.kernel.bytes as f64),
            sum(&|group| group.unfused_bytes as f64),
            sum(&|group| group.kernel.seconds * 1e6),
            sum(&|group| group.unfused_seconds * 1e6),
            sum(&|group| group.projection.map_or(0.0, |projection| projection.seconds * 1e6)),
        )?;
        writeln!(
            f,
            "These are the models' groups; those that run are chosen by --fuse, and the plan lists them."
        )
    }
}
