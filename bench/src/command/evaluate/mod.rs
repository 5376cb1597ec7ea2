//! `abide evaluate`: one page on what Abide does on the machine at hand.

mod extent;
mod page;
mod parts;

use std::path::PathBuf;

use abide::io::Targets;
use abide::{Choice, Error, Result};
use abide_console::{Ended, print, print_report};
use clap::Args;

use self::extent::Extent;
use self::parts::Evaluation;
use super::record::Line;
use super::{choose, judge, progress_bar, roofline};

const EXAMPLES: &str = "\
Examples:
  abide evaluate
  abide evaluate --quick --plot roofline.svg
  abide evaluate --backend cpu --json evaluation.json

One page, after five minutes at most, or one with --quick: the devices that are here; whether the bits of a backend are those \
of the reference; the bandwidth of a copy; the rates of five stencils beside a launch per step and the limits of memory and \
arithmetic; a step of CloverLeaf with its stages by themselves and in groups; an iteration of conjugate gradients beside the \
time that memory takes; and what that means. What there is no time for is left out by name.

`abide verify` compares everything, and `abide bench` has more of each measurement, in rates to quote.";

/// The arguments of `evaluate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Evaluate {
    /// auto, cpu, wgpu or cuda; auto takes CUDA, else a hardware adapter of wgpu, else the CPU
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// A minute instead of five: smaller domains, shorter runs
    #[arg(long)]
    quick: bool,

    /// A file for the roofline of the stencils
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print as JSON or, with a name, write the JSON into a file and print the page
    #[arg(long, value_name = "FILE")]
    json: Option<Option<PathBuf>>,
}

impl Evaluate {
    /// Measures and prints the page.
    pub fn execute(&self) -> Ended {
        self.check()?;
        let (opened, _) = choose(self.backend, |_| None)?;
        let extent = if self.quick { Extent::quick(&opened)? } else { Extent::full(&opened)? };
        let bar = progress_bar(extent.parts());
        let evaluation = Evaluation::of(&opened, &extent, |part| {
            bar.set_message(part.to_owned());
            bar.inc(1);
        });
        bar.finish_and_clear();
        self.report(&evaluation?)
    }

    /// Writes the files, prints the page or the JSON, and judges.
    fn report(&self, evaluation: &Evaluation) -> Ended {
        let mut files = Vec::new();
        if let Some(path) = self.plot.as_ref().filter(|_| !evaluation.stencils.is_empty()) {
            let marks = evaluation.stencils.iter().map(|row| roofline::Mark::of(&Line::of(row)));
            let marks = marks.collect::<Result<Vec<_>>>()?;
            super::write(path, &roofline::draw(&evaluation.machine, &marks)?)?;
            files.push(path.display().to_string());
        }
        let ended = judge(evaluation.holds());
        match &self.json {
            Some(None) => return print_report(evaluation, ended),
            Some(Some(path)) => {
                let text = serde_json::to_string_pretty(evaluation).map_err(|e| {
                    Error::invalid("the evaluation as JSON", e.to_string(), "leave --json out")
                })?;
                super::write(path, &(text + "\n"))?;
                files.push(path.display().to_string());
            }
            None => {}
        }
        print(&page::text(evaluation, &files))?;
        ended
    }

    /// Checks the files as far as possible before anything is measured.
    fn check(&self) -> Result<()> {
        let mut targets = Targets::default();
        self.plot.iter().chain(self.json.iter().flatten()).for_each(|path| targets.output(path));
        targets.check()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use abide::{Shape, backend};

    use super::*;

    /// The smallest evaluation there is.
    fn tiny() -> Extent {
        Extent {
            planes: Shape::new(&[96, 64]).unwrap(),
            boxes: Shape::new(&[24, 20, 32]).unwrap(),
            copied: Shape::new(&[64, 64]).unwrap(),
            program: Shape::new(&[24, 24]).unwrap(),
            system: "laplacian2d:20x21",
            verified: &["1d3pt"],
            ..Extent::quick(&backend::open("cpu").unwrap()).unwrap()
        }
    }

    #[test]
    fn an_evaluation_has_all_its_parts() {
        let opened = backend::open("cpu").unwrap();
        let (mut parts, extent) = (0, tiny());
        let evaluation = Evaluation::of(&opened, &extent, |_| parts += 1).unwrap();
        assert_eq!(parts, extent.parts());
        assert!(evaluation.holds() && evaluation.left_out.is_empty(), "{evaluation:?}");
        assert_eq!(evaluation.stencils.len(), 5);
        assert!(evaluation.stencils.iter().all(|row| row.stepwise_gcells_per_s.is_some()));
        assert!(evaluation.copy_gb_per_s > 0.0);
        assert!(evaluation.solver.as_ref().unwrap().us_per_iteration > 0.0);
        let program = evaluation.program.as_ref().unwrap();
        assert!(program.ms_per_step > 0.0 && program.ms_by_stages > 0.0);
        let page = page::text(&evaluation, &["roofline.svg".to_owned()]);
        for words in [
            "devices",
            "bits",
            "copy",
            "2d5pt",
            "poisson",
            "cloverleaf",
            "cg",
            "verdict",
            "wrote       roofline.svg",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(page.lines().count() < 40, "more than a page: {page}");
        assert!(serde_json::to_string(&evaluation).unwrap().contains("\"copy_gb_per_s\""));
    }

    /// The page, the JSON in a file and the picture.
    #[test]
    fn an_evaluation_writes_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let [json, plot] = ["e.json", "r.svg"].map(|name| folder.path().join(name));
        let evaluation = Evaluation::of(&backend::open("cpu").unwrap(), &tiny(), |_| {}).unwrap();
        let asked = Evaluate {
            backend: Choice::CPU,
            quick: true,
            plot: Some(plot.clone()),
            json: Some(Some(json.clone())),
        };
        asked.check().unwrap();
        asked.report(&evaluation).unwrap();
        let written: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert_eq!(written["machine"]["backend"], "cpu");
        assert_eq!(written["stencils"].as_array().unwrap().len(), 5);
        assert!(std::fs::read_to_string(plot).unwrap().contains("<svg"));
    }

    /// A slow device has smaller domains, and a fast one those that are asked for at most.
    #[test]
    fn domains_are_as_large_as_there_is_time_for() {
        let opened = backend::open("cpu").unwrap();
        let [quick, full] = [Extent::quick(&opened).unwrap(), Extent::full(&opened).unwrap()];
        assert!(quick.planes.cells() <= 2304 * 2304 && full.planes.cells() <= 4096 * 4096);
        assert!(quick.planes.cells() <= full.planes.cells() && quick.budget < full.budget);
    }

    /// Without time, everything but the comparison of bits is left out by name.
    #[test]
    fn what_there_is_no_time_for_is_left_out() {
        let opened = backend::open("cpu").unwrap();
        let extent = Extent { budget: Duration::ZERO, ..tiny() };
        let evaluation = Evaluation::of(&opened, &extent, |_| {}).unwrap();
        assert!(evaluation.holds() && evaluation.stencils.is_empty() && evaluation.solver.is_none());
        assert!(evaluation.left_out.len() >= 8, "{:?}", evaluation.left_out);
        let page = page::text(&evaluation, &[]);
        assert!(page.contains("left out") && page.contains("poisson"), "{page}");
    }

    /// A difference is in the verdict and makes the command fail.
    #[test]
    fn a_fault_is_the_verdict() {
        let opened = backend::open("cpu").unwrap();
        let mut evaluation = Evaluation::of(&opened, &tiny(), |_| {}).unwrap();
        evaluation.stencils[0].checked.as_mut().unwrap().faults.push("row 3 differs".to_owned());
        assert!(!evaluation.holds());
        let page = page::text(&evaluation, &[]);
        assert!(page.contains("WRONG") && page.contains("row 3 differs"), "{page}");
    }
}
