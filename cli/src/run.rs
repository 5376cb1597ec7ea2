//! `abide run`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use abide::backend::{Pace, processes};
use abide::io::checkpoint::Head;
use abide::io::{self, Colormap, Colours, Range};
use abide::{Choice, DType, Result, RunReport, Simulation};
use abide_console::RunOptions;
use abide_console::headings::{CHECKPOINTS, OUTPUT, PICTURES};
use abide_core::units::rate;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::again::Again;
use super::config::{Given, OfFile};
use super::devices_chosen::DeviceArguments;
use super::every::Every;
use super::finite::{Noticed, Watch};
use super::growing::Frames;
use super::outputs::{Output, Writer, Wrote};
use super::problem::{self, Domain, Input};
use super::record::{Recorded, Recording};
use super::run_files::{Asked, Read};
use super::{Ended, Ending, complain, print_report, report, signals};

const EXAMPLES: &str = "\
Examples:
  abide run gray-scott --steps 5000 --output spots.png
  abide run heat --input photo.jpg --steps 200 --output blurred.png
  abide run heat --input kappa=k.npy --steps 1000 --output u.npy
  abide run gray-scott --input u=a.npy --input v=b.npy --steps 100 --output u=c.npy --output v=d.npy
  abide run wave --steps 600 --every 4 --output wave.gif
  abide run gray-scott --steps 5000 --every 100 --output run.h5
  abide run gray-scott --input run.h5 --steps 5000 --output more.h5
  abide run run.h5 --output again.h5
  abide run life --steps 1000 --frames out_%05d.png --every 10
  abide run 3d7pt --size 200x200x200 --steps 500 --dtype f64 --output all.vti
  abide run heat --steps 100000 --checkpoint heat.npz --every 10000
  abide run heat --resume heat.npz --steps 5000 --output u.npy
  abide run cloverleaf --size 64x64 --steps 10000 --until \"time>=3\" --record scalars.csv
  abide run cloverleaf --size 64x64 --steps 10000 --every time=0.5 --frames rho_%03d.png
  abide run gray-scott --steps 5000 --write-config mine.toml --output spots.png
  abide run mine.toml --param feed=0.037 --output others.png
  abide run heat --steps 10000 --record middle.csv --record-every 10 --probe u@256,256
  abide run 3d7pt --size 200x200x200 --steps 500 --backend cpu --devices 2
  abide run gray-scott --size 64x64 --batch 256 --param feed=0.02:0.05 --steps 5000 --output v=v.npy

Ctrl-C ends a run after its current epoch, a fraction of a second: what is done is written and reported, the exit \
status is 130. So does a request to end (SIGTERM, 143) and a terminal that closes (SIGHUP, 129). What cannot be \
written on the way does not end a run: the rest is written, the exit status is 1.

Axes: sizes are written slowest axis first (z, y, x); x runs fastest in files and to the right in pictures.";

/// The arguments of `run`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    domain: Domain,

    /// Steps to advance; 0 gives the input back
    #[arg(long, value_name = "N", value_parser = steps, allow_negative_numbers = true)]
    steps: u64,

    /// End the run where a computed scalar meets a condition, as in "time>=15.5"
    #[arg(long, value_name = "SCALAR OP NUMBER")]
    until: Option<String>,

    /// Initial values: a .npy or .tif file, an array of a .npz or .h5 file as in u=run.h5:u@-1 (the last step), a .png or
    /// .jpg (grey value 0 to 1), or random:SEED, gaussian, point or own (the model's). FIELD=… for one field; without a name,
    /// for every field that the model changes, and of a .npz or .h5 for each field that it holds
    #[arg(long = "input", value_name = "[FIELD=]SOURCE")]
    inputs: Vec<Input>,

    /// A file for the result: .npy, .npz, .h5, .vti, .tif, .png, or .gif with --every; with it a .h5 grows by a step each time.
    /// FIELD=… for one field; without a name, the field that the model shows, in .npz, .h5 and .vti all fields
    #[arg(long = "output", value_name = "[FIELD=]FILE")]
    outputs: Vec<Output>,

    /// Numbered files on the way, as out_%05d.png (or .npy, .npz, .vti, .tif); the number is the step, or the scalar, over
    /// --every
    #[arg(long, help_heading = OUTPUT, value_name = "[FIELD=]PATTERN")]
    frames: Option<Frames>,

    /// Steps between frames and between checkpoints. As in time=0.5, they follow a computed scalar: one after
    /// the first step at which it has reached the next multiple of the number
    #[arg(long, help_heading = OUTPUT, value_name = "N|SCALAR=NUMBER", allow_negative_numbers = true)]
    every: Option<Every>,

    #[command(flatten)]
    recorded: Recorded,

    #[arg(long, help_heading = PICTURES, value_name = "NAME", default_value_t, help = format!("The colour map of pictures: {}", colormaps()))]
    colormap: Colormap,

    /// The values at the ends of the colour map, the same in all frames [default: the smallest and the largest finite value
    /// shown]
    #[arg(long, help_heading = PICTURES, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    range: Option<Range>,

    /// A bar of the colours with its values beside each picture, axes with the cells' indices, and the field and the step above
    #[arg(long, help_heading = PICTURES)]
    annotate: bool,

    /// A file that holds all that is needed to go on; written every --every steps and at the end
    #[arg(long, help_heading = CHECKPOINTS, value_name = "FILE")]
    checkpoint: Option<PathBuf>,

    /// Go on from a checkpoint, for --steps more steps
    #[arg(long, help_heading = CHECKPOINTS, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// Resume a checkpoint of a program with other formulas, too; the report says what differs
    #[arg(long, help_heading = CHECKPOINTS, requires = "resume")]
    force: bool,

    /// Write the run as a model file, with its program and the options given: `abide run FILE` has the same bits
    #[arg(long, help_heading = OUTPUT, value_name = "FILE")]
    write_config: Option<PathBuf>,

    /// Let a model file's table [run] name files outside of the working folder, hidden ones, and ones that are there
    /// already
    #[arg(long, help_heading = OUTPUT)]
    trust_file: bool,

    /// End with status 4 where values are NaN or infinite at the end, or were found so on the way; without this option,
    /// a warning is printed
    #[arg(long, help_heading = OUTPUT)]
    check_finite: bool,

    /// auto, cpu, wgpu or cuda; auto takes CUDA, else a hardware adapter of wgpu, else the CPU
    #[arg(long, default_value = "auto")]
    backend: Choice,

    #[command(flatten)]
    several: DeviceArguments,

    #[command(flatten)]
    run_options: RunOptions,

    #[arg(skip)]
    pub given: Given,

    #[arg(skip)]
    pub of_file: OfFile,

    /// Report the plan too, the bytes moved, the share of the projected peak, and the backends that are not here
    #[arg(long, short)]
    verbose: bool,

    /// Print the report as JSON, all of it
    #[arg(long)]
    json: bool,
}

/// The report of a run as JSON.
#[derive(Serialize)]
struct Reported<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    /// When values that are not finite were noticed; null where all are finite.
    non_finite_since: Option<Noticed>,
    /// The files written, in words.
    files: &'a [String],
}

/// Returns the colour maps with what they look like.
fn colormaps() -> String {
    Colormap::all().map(|map| format!("{map} ({})", map.about())).collect::<Vec<_>>().join(", ")
}

fn steps(text: &str) -> Result<u64> {
    super::whole("steps", text, 0, "1000")
}

impl Run {
    /// Runs, writes and reports.
    pub fn execute(&self) -> Ended {
        let resumed = match &self.resume {
            Some(path) => Some(io::checkpoint::read_head(path)?),
            None => None,
        };
        let begun = resumed.as_ref().map_or(0, |head| head.steps);
        Simulation::last_step(begun, self.steps)?;
        let asked = Asked {
            outputs: &self.outputs,
            frames: self.frames.as_ref(),
            checkpoint: self.checkpoint.as_deref(),
            every: self.every.as_ref(),
            is_every_of_file: self.of_file.has("every"),
            record: self.recorded.record.as_deref(),
            write_config: self.write_config.as_deref(),
            colours: Colours {
                map: self.colormap,
                range: self.range,
                is_annotated: self.annotate,
                is_batch: false,
            },
        };
        let again = Again::of(&self.domain)?;
        let program = self.domain.program(&self.inputs, resumed.as_ref())?;
        let inputs = problem::each(&self.inputs, &program)?;
        let read =
            Read { model: self.domain.model_file(), inputs: &inputs, resume: self.resume.as_deref(), begun };
        asked.check(&read, &program, self.steps)?;
        let described = self.domain.describe(&inputs, resumed.as_ref())?;
        let members = self.domain.batch.or(resumed.as_ref().and_then(Head::members));
        let mut writer = Writer::new(asked, &described.program, described.shape, members)?;
        let dtype = self.domain.dtype.or(resumed.map(|head| head.dtype)).unwrap_or(DType::F32);
        let mut builder =
            self.run_options.apply(described.builder, self.backend).output_bytes(writer.bytes(dtype));
        if let Some(devices) = self.several.asked() {
            builder = builder.devices(devices);
        }
        if let Some(path) = &self.resume {
            builder = builder.resume(path).force(self.force);
        }
        if let Some(condition) = &self.until {
            builder = builder.until(condition);
        }
        if let Some(every) = &self.every {
            builder = every.apply(builder);
        }
        let mut simulation = self.recorded.apply(builder)?.build()?;

        if let Some(path) = self.write_config.as_ref().filter(|_| processes::is_first()) {
            self.given.write(path, simulation.problem())?;
        }
        signals::watch();
        let mut recording = Recording::begin(&self.recorded, &mut simulation)?;
        let provenance = writer.has_provenance().then(|| self.given.provenance(&simulation));
        writer.begin(&mut simulation, provenance)?;
        let mut watch = Watch::begin(&mut simulation)?;
        let bar = progress_bar(self.steps);
        let pace = Pace { every: self.every.as_ref().and_then(Every::steps), ..Pace::default() };
        let report = simulation.run_with(self.steps, pace, |running| {
            let progress = running.progress();
            bar.set_position(progress.steps);
            bar.set_message(rate(progress.gcells_per_s));
            watch.observe(running)?;
            let fault = match &mut recording {
                Some(recording) => recording.add(&running.records()?),
                None => None,
            };
            // Faults of files that all processes write are the same in all of them.
            let news = fault.into_iter().chain(writer.observe(running)?);
            for fault in news.filter(|_| processes::is_first()) {
                bar.suspend(|| complain(format_args!("warning: {fault}; the run goes on")));
            }
            // A signal that reaches one process ends the run in all of them.
            let is_over = running.most(f64::from(signals::received()))? > 0.0;
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        bar.finish_and_clear();
        let mut report = report?;
        let non_finite = simulation.non_finite()?;
        report.non_finite = Some(non_finite);
        let noticed = watch.finish(simulation.step(), non_finite);
        let warning = noticed.map(|noticed| noticed.warning(simulation.problem(), non_finite));
        let Wrote { mut files, mut faults, notes } = writer.finish(&mut simulation);
        match recording.map(Recording::finish) {
            Some(Ok(file)) => files.push(file),
            Some(Err(fault)) => faults.push(fault),
            None => {}
        }
        report.notes.extend(notes);
        report.notes.extend(again.map(|again| again.compared(&mut simulation)).transpose()?);
        let ended = match (report.steps, report.steps_asked) {
            // A run that its condition ended is done.
            (steps, asked) if steps < asked && signals::received() => {
                Err(Ending::interrupted(format!("{steps} of {asked} steps are done")))
            }
            _ => Ok(()),
        };
        let ended = match &warning {
            Some(warning) if self.check_finite => ended.and(Err(Ending::not_finite(warning.clone()))),
            _ => ended,
        };
        // A script must know first of a file that is missing.
        let ended = Ending::unwritten(&faults).and(ended);
        if let Some(path) = &self.write_config {
            files.push(path.display().to_string());
        }
        if !processes::is_first() {
            return ended;
        }
        if let Some(warning) = warning.filter(|_| !self.check_finite) {
            complain(format_args!("warning: {warning}"));
        }
        if self.json {
            return print_report(
                &Reported { report: &report, non_finite_since: noticed, files: &files },
                ended,
            );
        }
        super::print(&report::text(&report, simulation.problem(), &files, self.verbose))?;
        ended
    }
}

/// Makes the progress bar, which is drawn on a terminal only.
fn progress_bar(steps: u64) -> ProgressBar {
    if !processes::is_first() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    let style = ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} steps  {msg}  {eta} left");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
