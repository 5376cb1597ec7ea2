//! What files say of a simulation: its fields after a step, and where they come from.

use std::borrow::Cow;
use std::path::Path;

use super::{Simulation, values};
use crate::backend::processes;
use crate::io::{self, Format, Number, Provenance, Snapshot, Staged};
use crate::{Error, Result, text};

impl Simulation {
    /// Reads fields by their names, with where their values stand, the step and the time: the scalar `time` or `t`, else the
    /// steps times the parameter `dt`, else the steps. It is what [`io::write_as`] writes.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field; the [device's](Simulation#errors-of-the-device).
    pub fn snapshot(&mut self, names: &[String]) -> Result<Snapshot<'static>> {
        values::snapshot(&self.problem, self.session.here()?, self.step, names)
    }

    /// Returns the SHA-256 of all fields as they are now, in hexadecimal digits: two runs that have one have the same bits.
    ///
    /// # Errors
    ///
    /// The [device's](Simulation#errors-of-the-device).
    pub fn digest(&mut self) -> Result<String> {
        values::digest(&self.problem, self.session.here()?)
    }

    /// Returns what a file says of where this result comes from: the version of Abide, the program as a model file with its
    /// size, type, boundaries and parameters, the plan, the device and the steps done. The digest is none yet:
    /// [`Simulation::digest`] reads all fields.
    pub fn provenance(&self) -> Provenance {
        let problem = &self.problem;
        let names = problem.program.parameters().iter().map(|parameter| parameter.name.clone());
        let parameters: Vec<(String, f64)> = names.zip(problem.parameters.iter().copied()).collect();
        let mut options = vec![
            ("size".to_owned(), vec![problem.shape.to_string()]),
            ("dtype".to_owned(), vec![problem.dtype.to_string()]),
            ("steps".to_owned(), vec![self.step.to_string()]),
        ];
        if problem.boundaries != problem.program.boundaries() && problem.program.walls().is_empty() {
            let boundary = problem.boundaries.describe(problem.shape.dimensions());
            options.push(("boundary".to_owned(), vec![boundary]));
        }
        let given = parameters.iter().filter(|(name, _)| problem.program.settable(name).is_ok());
        let given: Vec<String> = given.map(|(name, value)| format!("{name}={value:?}")).collect();
        if !given.is_empty() {
            options.push(("param".to_owned(), given));
        }
        let written = options.iter().map(|(name, values)| text::option(name, values)).collect::<String>();
        // A program that no text can say is left out, and the file says its name alone.
        let model = match problem.is_batch() {
            // Its members have parameters of their own.
            true => String::new(),
            false => text::write(&problem.program)
                .map(|text| format!("{text}\n[run]\n{written}"))
                .unwrap_or_default(),
        };
        let plan = self.plan();
        Provenance {
            program: problem.program.name().to_owned(),
            model,
            parameters: parameters.into_iter().map(|(name, value)| (name, Number(value))).collect(),
            size: problem.shape.extents().to_vec(),
            dtype: problem.dtype.to_string(),
            plan: plan.summary(),
            backend: self.backend.to_owned(),
            device: plan.device.name.clone(),
            steps: self.step,
            ..Provenance::default()
        }
    }

    /// Writes fields to a file, whose name says the format: `.h5`, `.npz` and `.vti` hold all fields, unless some are named;
    /// `.npy`, `.tif` and `.png` one, that which the program shows unless another is named. `.h5` and `.npz` say where the result
    /// comes from.
    ///
    /// ```
    /// use abide::prelude::*;
    ///
    /// let path = std::env::temp_dir().join(format!("abide-save-{}.npz", std::process::id()));
    /// let mut heat = Simulation::builder("heat").size(&[16, 20]).backend(Choice::CPU).build()?;
    /// heat.run(10)?;
    /// heat.save(&path, &[])?;
    /// let u = abide::io::read(&abide::io::naming(&path, "u"))?;
    /// assert!(u.values.same_bits(&heat.field("u")?));
    /// assert_eq!(abide::io::provenance(&path)?.unwrap().digest, Some(heat.digest()?));
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] where the program has no such field; [`Error::File`] where the format has no room for the fields, or
    /// the file cannot be written; the [device's](Simulation#errors-of-the-device).
    pub fn save(&mut self, path: impl AsRef<Path>, fields: &[String]) -> Result<()> {
        let path = path.as_ref();
        let format = Format::of(path)?;
        let names = self.names_for(format, fields);
        if !format.holds_all() && names.len() > 1 {
            let message = format!("it holds one field, {} are named", names.len());
            return Err(Error::file(path, message, "name one, or write .npz or .h5"));
        }
        let mut provenance = None;
        if format.has_provenance() {
            provenance = Some(Provenance { digest: Some(self.digest()?), ..self.provenance() });
        }
        let staged = match format {
            Format::Npy => self.write_npy(&names[0], path)?,
            Format::Npz => self.write_npz(&names, provenance.as_ref(), path)?,
            _ => {
                let snapshot = self.snapshot(&names)?;
                let snapshot = Snapshot { provenance: provenance.map(Cow::Owned), ..snapshot };
                let write = || io::write_as(path, &snapshot, None);
                processes::is_first().then(write).transpose()?
            }
        };
        staged.map_or(Ok(()), Staged::commit)
    }

    /// Returns the fields that a file of a format holds, where these are named.
    fn names_for(&self, format: Format, named: &[String]) -> Vec<String> {
        let program = &self.problem.program;
        match (named.is_empty(), format.holds_all()) {
            (false, _) => named.to_vec(),
            (true, true) => program.public_fields(),
            (true, false) => vec![program.fields()[program.shown()].clone()],
        }
    }
}
