//! The arguments of `abide view`.

use std::path::PathBuf;

use abide::domain::BoundaryText;
use abide::solve::Precision;
use abide::{CachePolicy, Choice, DType, Depth, Execution, Result, Shape};
use clap::Parser;

use crate::app::{Opening, TimedWindow};
use crate::field::look::Look;
use crate::scenes;
use crate::setup::{self, Setup, Source};
use crate::solve::Question;

const EXAMPLES: &str = "\
Examples:
  abide view
  abide view --scene coral
  abide view gray-scott --size 1024x1024 --param feed=0.037 --param kill=0.06
  abide view wave --size 96x96x96 --backend cpu
  abide view cloverleaf --size 480x480
  abide view run.npz
  abide view photo.jpg
  abide view --solve A.mtx --preconditioner jacobi

Without an argument the gallery is shown; F1 in the window shows the keys.";

/// Watch a simulation, see its rate, change it by hand.
#[derive(Debug, Parser)]
#[command(name = "abide view", version, after_help = EXAMPLES, max_term_width = 110)]
pub struct Arguments {
    /// A stencil or model, a checkpoint (.npz), or a field (.npy, .png, .jpg), which heat conduction then
    /// smooths
    what: Option<String>,

    /// A scene of the gallery
    #[arg(long, conflicts_with = "what")]
    scene: Option<String>,

    /// Extents, slowest axis first, as in 512x512
    #[arg(long, value_name = "NxN")]
    size: Option<Shape>,

    /// The type of all fields, f32 or f64
    #[arg(long)]
    dtype: Option<DType>,

    /// As in periodic, y=periodic,x=fixed, or u:x-=mirror for one field
    #[arg(long)]
    boundary: Option<String>,

    /// A parameter of the model; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, f64)>,

    /// How a field starts: a .npy, .png or .jpg file, random:SEED, gaussian, point or own; may be given
    /// several times
    #[arg(long = "input", value_name = "FIELD=SOURCE", value_parser = input)]
    inputs: Vec<(String, Source)>,

    /// A checkpoint to go on from
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// auto, cpu, wgpu or cuda
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// auto, stepwise, overlapped, streaming or persistent
    #[arg(long, default_value = "auto")]
    execution: Execution,

    /// Where a persistent run keeps its cells: auto, none, shared, registers or mixed
    #[arg(long, default_value = "auto")]
    cache: CachePolicy,

    /// Temporal depth, the steps per launch of an overlapped or a streaming run: auto or a number
    #[arg(long, default_value = "auto", value_parser = depth)]
    depth: String,

    /// Solve a system of linear equations and show its residual: a .mtx file, or a name as in
    /// laplacian2d:100x100
    #[arg(long, value_name = "A.mtx", conflicts_with_all = ["what", "scene", "size", "resume"])]
    solve: Option<String>,

    /// The method that solves, as in cg or gmres:50 [default: the one that suits the matrix]
    #[arg(long, requires = "solve", default_value = "", hide_default_value = true)]
    method: String,

    /// none, jacobi, block-jacobi[:ROWS] or chebyshev[:DEGREE]; on the CPU also ilu and amg[:STRENGTH]
    #[arg(long, requires = "solve", default_value = "none")]
    preconditioner: String,

    /// Stop when the residual's norm is at most this times the right-hand side's
    #[arg(long, requires = "solve", default_value = "1e-8")]
    tolerance: f64,

    /// Wait for a press of the button
    #[arg(long)]
    paused: bool,

    /// Close by itself after so many seconds, and print the rate of the last two
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// A .png of the window when it closes by itself
    #[arg(long, value_name = "FILE", requires = "seconds")]
    screenshot: Option<PathBuf>,
}

fn parameter(text: &str) -> Result<(String, f64)> {
    let parsed = text
        .split_once('=')
        .and_then(|(name, value)| Some((name.trim().to_owned(), value.trim().parse().ok()?)));
    parsed.ok_or_else(|| {
        abide::Error::invalid(
            format!("parameter `{text}`"),
            "not a name and a number",
            "write it like kappa=0.1",
        )
    })
}

fn input(text: &str) -> Result<(String, Source)> {
    let Some((field, source)) = text.split_once('=') else {
        return Err(abide::Error::invalid(
            format!("input `{text}`"),
            "it names no field",
            "write it like u=photo.jpg",
        ));
    };
    let path = PathBuf::from(source);
    let source =
        if abide::io::is_input(&path) { Source::File(path) } else { Source::Named(source.to_owned()) };
    Ok((field.trim().to_owned(), source))
}

fn depth(text: &str) -> Result<String> {
    text.parse::<Depth>().map(|_| text.to_owned())
}

impl Arguments {
    /// Returns the first contents of the window; an argument that cannot be used is reported in the window.
    pub fn opening(self) -> Opening {
        let screenshot = self.screenshot.clone();
        let timed = self.seconds.map(|seconds| TimedWindow { seconds, screenshot });
        Opening { timed, ..self.first() }
    }

    fn first(self) -> Opening {
        if let Some(matrix) = &self.solve {
            let precision = Precision::Plain(self.dtype.unwrap_or(DType::F64));
            let question = Question {
                method: self.method,
                preconditioner: self.preconditioner,
                tolerance: self.tolerance,
                precision,
                backend: self.backend,
                ..Question::new(matrix)
            };
            return Opening { solve: Some(question), ..Opening::default() };
        }
        let paused = self.paused;
        match self.setup() {
            Ok(setup) => Opening { setup, paused, ..Opening::default() },
            Err(error) => Opening { error: Some(error.to_string()), ..Opening::default() },
        }
    }

    fn setup(self) -> Result<Option<(Setup, Look)>> {
        let (mut setup, look) = match (&self.what, &self.scene, &self.resume) {
            (Some(what), _, _) => (setup::named(what)?, Look::default()),
            (None, Some(scene), _) => {
                let scene = scenes::find(scene)?;
                (scene.setup, scene.look)
            }
            (None, None, Some(path)) => (Setup::of_checkpoint(path)?, Look::default()),
            (None, None, None) => return Ok(None),
        };
        if let Some(size) = self.size {
            setup.size = size.to_string();
        }
        if let Some(dtype) = self.dtype {
            setup.dtype = dtype;
        }
        if let Some(boundary) = self.boundary {
            // Refused here, before there is a window that could refuse it.
            boundary.parse::<BoundaryText>()?;
            setup.boundary = boundary;
        }
        for (name, value) in &self.parameters {
            setup.set(name, *value);
        }
        for (field, source) in self.inputs {
            setup.inputs.retain(|(other, _)| *other != field);
            setup.inputs.push((field, source));
        }
        if self.resume.is_some() {
            setup.resume = self.resume;
        }
        (setup.backend, setup.execution, setup.cache, setup.depth) =
            (self.backend, self.execution, self.cache, self.depth);
        Ok(Some((setup, look)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn arguments_become_a_setup() {
        let line = "abide wave --size 31x57 --dtype f64 --param courant=0.3 --input u=point --backend cpu";
        let opening = Arguments::parse_from(line.split(' ')).opening();
        let (setup, _) = opening.setup.unwrap();
        assert_eq!((setup.model.as_str(), setup.size.as_str(), setup.dtype), ("wave", "31x57", DType::F64));
        assert_eq!(setup.parameters, [("courant".to_owned(), 0.3)]);
        assert_eq!(setup.inputs, [("u".to_owned(), Source::Named("point".to_owned()))]);
        assert_eq!(setup.backend, Choice::CPU);
    }

    #[test]
    fn cloverleaf_opens_by_its_name() {
        let line = "abide cloverleaf --size 20x30 --boundary xvel0:x-=-reflect";
        let (setup, _) = Arguments::parse_from(line.split(' ')).opening().setup.unwrap();
        let problem = setup.builder().and_then(abide::Builder::problem).unwrap();
        let field = problem.program.field("xvel0").unwrap();
        assert_eq!(problem.extents_of(field), [1, 21, 31]);
    }

    #[test]
    fn what_cannot_be_opened_is_told_in_the_window() {
        let opening = Arguments::parse_from(["abide", "no-such"]).opening();
        assert!(opening.setup.is_none() && opening.error.unwrap().contains("no stencil is named"));
    }
}
