//! The check of all files of a run against each other, before anything large is read.

use std::path::Path;

use abide::io::{self, Collection, Colours, Format, Selected, Targets};
use abide::{Error, Program, Result};

use super::every::Every;
use super::growing::Frames;
use super::outputs::Output;
use super::problem::Input;

/// The arguments of a run that concern files.
pub struct Asked<'a> {
    pub outputs: &'a [Output],
    pub frames: Option<&'a Frames>,
    pub checkpoint: Option<&'a Path>,
    pub every: Option<&'a Every>,
    /// Whether the interval is a model file's, which may have nothing to do where the command line has other outputs.
    pub is_every_of_file: bool,
    pub record: Option<&'a Path>,
    pub write_config: Option<&'a Path>,
    pub colours: Colours,
}

/// The files that a run reads.
pub struct Read<'a> {
    pub model: Option<&'a Path>,
    pub inputs: &'a [Input],
    pub resume: Option<&'a Path>,
    /// The steps done before this run.
    pub begun: u64,
}

impl Asked<'_> {
    /// Refuses files that cannot be written, and files by which a result or an input would be lost.
    pub fn check(&self, read: &Read<'_>, program: &Program, steps: u64) -> Result<()> {
        const CHECKPOINT: &str = "a checkpoint";
        let exactly = |field: &str| format!("{field} as .npy");
        let shown = &program.fields()[program.shown()];
        let mut targets = Targets::default();
        for output in self.outputs {
            let is_there = output.format == Format::Hdf5 && self.every.is_some() && output.path.exists();
            if is_there && read.begun > 0 {
                return Err(Error::file(
                    &output.path,
                    "it is there already, perhaps with the frames before the checkpoint, and would be replaced",
                    "name another; xarray.open_mfdataset reads both as one",
                ));
            }
            match output.format {
                Format::Npy => {
                    targets.output_of(&output.path, exactly(output.field.as_ref().unwrap_or(shown)))
                }
                _ => targets.output(&output.path),
            }
        }
        if let Some(path) = self.checkpoint {
            targets.rewritten(path, Some(CHECKPOINT.to_owned()));
        }
        if let Some(path) = self.record {
            targets.output(path);
        }
        if let Some(path) = self.write_config {
            targets.output(path);
        }
        if let (Some(frames), Some(every)) = (self.frames, self.every) {
            let numbers = match every {
                Every::Steps(every) => read.begun.div_ceil(*every)..=(read.begun + steps) / every,
                // A scalar may come to any number.
                Every::Marks(..) => 0..=u64::MAX,
            };
            targets.numbered(frames.names.clone(), numbers);
            if frames.format()? == Format::Vti {
                targets.output(&Collection::path(&frames.names));
            }
        }
        if let Some(path) = read.model {
            targets.input(path, Vec::new());
        }
        for (field, path) in read.inputs.iter().filter_map(Input::file) {
            // A picture that is written never holds the same as a picture that was read: it has colours for
            // grey values.
            let holds = match (Format::of(path), field) {
                (Ok(Format::Npy), Some(field)) => vec![exactly(field)],
                (Ok(Format::Npy), None) => {
                    let fields = program.fields().iter().enumerate();
                    fields
                        .filter(|(number, _)| program.is_written(*number))
                        .map(|(_, name)| exactly(name))
                        .collect()
                }
                _ => Vec::new(),
            };
            targets.input(&Selected::of(path).file, holds);
        }
        if let Some(path) = read.resume {
            targets.input(path, vec![CHECKPOINT.to_owned()]);
        }
        targets.check()?;
        let kinds = [
            (self.checkpoint, "npz", "a checkpoint"),
            (self.record, "csv", "a record"),
            (self.write_config, "toml", "a model file"),
        ];
        kinds.into_iter().try_for_each(|(path, own, what)| match path {
            Some(path) => io::check_kind(path, own, what),
            None => Ok(()),
        })
    }
}
