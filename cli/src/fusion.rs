//! What `abide plan` prints and draws of a program's loops in groups.

use std::io::Write;
use std::path::{Path, PathBuf};

use abide::fusion::{
    Drawing, Form, Graph, Loops, Modelled, Order, Search, Spread, USUAL_ARRAYS, fuse, search,
};
use abide::io::{Staged, Targets};
use abide::program::Problem;
use abide::{DeviceSpec, Error, Result};
use abide_console::headings::LOOPS;
use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

/// The exchanges without anything better after which a search for a plan ends.
const STAGNATION: usize = 12;

/// What is drawn, and of which loops.
#[derive(Args)]
pub struct LoopArgs {
    /// Draw the program's loops and arrays, and which loop waits for which, the groups of a search in colours: a picture
    /// (.svg) or a text for Graphviz (.dot)
    #[arg(long, help_heading = LOOPS, value_name = "OUT.svg|OUT.dot")]
    graph: Option<PathBuf>,

    /// The step of the program's cycle of which --graph and --papers show the loops, from 0, or `all` one after the other
    #[arg(long, help_heading = LOOPS, value_name = "N|all", default_value = "0", value_parser = step)]
    cycle_step: Step,

    /// Give each value of a name an array of its own for --graph and --papers, so that loops wait only for the values that
    /// they read
    #[arg(long, help_heading = LOOPS)]
    rename: bool,

    /// Split loops whose results share no operation for --graph and --papers
    #[arg(long, help_heading = LOOPS)]
    split: bool,
}

/// A step of the cycle; all of them if `None`.
#[derive(Clone, Copy)]
struct Step(Option<usize>);

fn step(text: &str) -> std::result::Result<Step, String> {
    match text {
        "all" => Ok(Step(None)),
        number => number.parse().map(|step| Step(Some(step))).map_err(|_| "give a number, or all".to_owned()),
    }
}

/// The groups, or why there are none.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The groups with what the models say of them.
    Groups(Box<Modelled>),
    /// The reason why the models do not apply to this device.
    NotApplicable(String),
}

impl LoopArgs {
    fn form(&self) -> Form {
        Form { step: self.cycle_step.0, renamed: self.rename, split: self.split }
    }

    /// Checks the file to be drawn, by its name and against the model file that is read.
    pub fn check(&self, model: Option<&Path>) -> Result<()> {
        let Some(path) = &self.graph else { return Ok(()) };
        kind(path)?;
        let mut targets = Targets::default();
        targets.output(path);
        model.into_iter().for_each(|model| targets.input(model, Vec::new()));
        targets.check()
    }

    /// Finds groups where they are asked for; those of a program of one loop only to be drawn.
    pub fn groups(&self, problem: &Problem, device: &DeviceSpec, papers: bool) -> Result<Option<Answer>> {
        let several = problem.program.stages().len() > problem.program.steps().len();
        if self.graph.is_none() && !(papers && several) {
            return Ok(None);
        }
        let form = self.form();
        let settings = Search { stagnation: STAGNATION, ..Search::default() };
        let spread: Spread<'_> = &|count, work| (0..count).into_par_iter().for_each(work);
        let answer = match fuse(problem, &form, device, &settings, spread) {
            Ok(fused) => Answer::Groups(Box::new(fused)),
            Err(why @ Error::Invalid { .. }) => Answer::NotApplicable(why.to_string()),
            Err(error) => return Err(error),
        };
        if let Some(path) = &self.graph {
            self.draw(path, problem, device, &answer, &settings, spread)?;
        }
        Ok(Some(answer).filter(|_| papers && several))
    }

    fn draw(
        &self,
        path: &Path,
        problem: &Problem,
        device: &DeviceSpec,
        answer: &Answer,
        settings: &Search,
        spread: Spread<'_>,
    ) -> Result<()> {
        let name = problem.program.name();
        let (graph, order, groups, how) = match answer {
            Answer::Groups(fused) => {
                let groups = fused.groups.iter().map(|group| group.loops.clone()).collect();
                let how = format!("least estimated time on {}", device.name);
                (fused.graph.clone(), fused.order.clone(), groups, how)
            }
            Answer::NotApplicable(_) => {
                let graph = Graph::of(problem, &self.form())?;
                let loops = Loops::of(&graph, USUAL_ARRAYS)?;
                let groups: Vec<Vec<usize>> = search(&loops, settings, spread, || true).groups;
                (
                    graph.clone(),
                    Order::of(&graph),
                    groups,
                    format!("least traffic, {USUAL_ARRAYS} arrays at most"),
                )
            }
        };
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (loops, all) = (count(graph.loops.len(), "loop"), count(groups.len(), "group"));
        let title = format!("{name}: {loops} in {all}, by {how}");
        let drawing = Drawing { graph: &graph, order: &order, groups: &groups, title: &title };
        let text = match kind(path)? {
            Kind::Svg => drawing.svg(),
            Kind::Dot => drawing.dot(),
        };
        Staged::new(path)?.fill(|out| out.write_all(text.as_bytes()))?.commit()
    }
}

/// A format of graphs.
enum Kind {
    Svg,
    Dot,
}

fn kind(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(Kind::Svg),
        Some("dot") => Ok(Kind::Dot),
        _ => Err(Error::file(
            path,
            "a graph is a picture or a text for Graphviz",
            "end the name in .svg or .dot",
        )),
    }
}

impl Answer {
    /// Returns the groups as a table after a blank line.
    pub fn table(&self) -> String {
        match self {
            Answer::Groups(fused) => format!("\n{fused}"),
            Answer::NotApplicable(why) => format!("\nfusion not applicable: {why}\n"),
        }
    }
}
