//! A simulation's setup, as the panels edit it, the memory keeps it and the command line expresses it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide::catalogue;
use abide::domain::BoundaryText;
use abide::io::{self, checkpoint::Head};
use abide::{
    Builder, CachePolicy, Choice, DType, Depth, Error, Execution, IntoModel, Model, Program, Result, Shape,
    Simulation, text,
};
use serde::{Deserialize, Serialize};

use crate::drawing::Drawing;

/// A simulation as described, before any of it is checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The name of an entry of the catalogue, or that of the formulas' program.
    pub model: String,
    /// The text of a model file, which is run instead of the catalogue's entry.
    pub formulas: Option<String>,
    /// Extents as in `512x512`; empty for an input's or the model's own.
    pub size: String,
    /// The type of all fields.
    #[serde(with = "words")]
    pub dtype: DType,
    /// As in `periodic`, `y=periodic,x=fixed` or `u:x-=mirror`; empty for the model's own.
    pub boundary: String,
    /// The parameters that are not the model's defaults.
    pub parameters: Vec<(String, f64)>,
    /// The fields that do not start as the model says.
    pub inputs: Vec<(String, Source)>,
    /// The checkpoint that the simulation goes on from.
    pub resume: Option<PathBuf>,
    /// The backend.
    #[serde(with = "words")]
    pub backend: Choice,
    /// The schedule.
    pub execution: Execution,
    /// The place where a persistent run keeps its cells.
    pub cache: CachePolicy,
    /// Temporal depth: `auto` or a number.
    pub depth: String,
}

/// The source of a field's initial values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A start by its name, as the command knows it: `random:7`, `gaussian`, `point`, or `own`, the model's.
    Named(String),
    /// A file: `.npy`, `.png` or `.jpg`.
    File(PathBuf),
    /// One of the viewer's own drawings.
    Drawn(Drawing),
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            model: "gray-scott".to_owned(),
            formulas: None,
            size: String::new(),
            dtype: DType::F32,
            boundary: String::new(),
            parameters: Vec::new(),
            inputs: Vec::new(),
            resume: None,
            backend: Choice::Auto,
            execution: Execution::Auto,
            cache: CachePolicy::Auto,
            depth: "auto".to_owned(),
        }
    }
}

impl Setup {
    /// Makes the setup of a model of the catalogue with its defaults.
    pub fn model(name: &str) -> Setup {
        Setup { model: name.to_owned(), ..Setup::default() }
    }

    /// Makes the setup of a model file's text, with those options of its table `run` that say what is computed.
    pub fn of_formulas(text: String, source: &str) -> Result<Setup> {
        let model = text::read(&text, source)?;
        let mut setup = Setup::model(model.program.name());
        setup.formulas = Some(text);
        for option in &model.options {
            let (name, value) = option.trim_start_matches('-').split_once('=').unwrap_or((option, ""));
            match name {
                "size" => setup.size = value.to_owned(),
                "dtype" => setup.dtype = value.parse()?,
                "boundary" => setup.boundary = value.to_owned(),
                "backend" => setup.backend = value.parse()?,
                "execution" => setup.execution = value.parse()?,
                "cache" => setup.cache = value.parse()?,
                "depth" => setup.depth = value.to_owned(),
                "param" => {
                    let given =
                        value.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
                    let (name, value) = given.ok_or_else(|| {
                        Error::invalid(option, "not a name and a number", "write it like kappa=0.1")
                    })?;
                    setup.set(name, value);
                }
                // The others say what the command writes, and when.
                _ => {}
            }
        }
        Ok(setup)
    }

    /// Returns the model: that of the formulas, if there are some.
    pub fn source(&self) -> Result<Model> {
        match &self.formulas {
            Some(formulas) => text::read(formulas, "formulas")?.into_model(),
            None => self.model.as_str().into_model(),
        }
    }

    /// Makes the setup of the checkpoint at `path`.
    pub fn of_checkpoint(path: &Path) -> Result<Setup> {
        let head = io::checkpoint::read_head(path)?;
        Ok(Setup { resume: Some(path.to_owned()), ..Setup::of_head(&head) })
    }

    fn of_head(head: &Head) -> Setup {
        let axes = head.shape.dimensions();
        Setup {
            size: head.shape.to_string(),
            dtype: head.dtype,
            boundary: boundary_argument(head, axes),
            parameters: head.parameters.clone(),
            ..Setup::model(&head.program)
        }
    }

    /// Sets a parameter and returns the setup.
    pub fn with(mut self, parameter: &str, value: f64) -> Setup {
        self.set(parameter, value);
        self
    }

    /// Sets a parameter.
    pub fn set(&mut self, parameter: &str, value: f64) {
        match self.parameters.iter_mut().find(|(name, _)| name == parameter) {
            Some((_, old)) => *old = value,
            None => self.parameters.push((parameter.to_owned(), value)),
        }
    }

    /// Returns the extents: those given, else the checkpoint's, an input's or the model's own.
    pub fn shape(&self) -> Result<Shape> {
        if !self.size.trim().is_empty() {
            return self.size.trim().parse();
        }
        if let Some(path) = &self.resume {
            return Ok(io::checkpoint::read_head(path)?.shape);
        }
        let model = self.source()?;
        for (field, source) in &self.inputs {
            if let Source::File(path) = source {
                let shape = match io::announced(path)? {
                    Some(announced) => announced.shape,
                    None => io::read(path)?.shape,
                };
                if model.is_on_cells(field, shape.dimensions()) {
                    return Ok(shape);
                }
            }
        }
        model.default_size()
    }

    /// Returns the program for the extents.
    pub fn program(&self) -> Result<Arc<Program>> {
        self.source()?.program(self.shape()?.dimensions())
    }

    /// Describes the simulation, ready to be started.
    pub fn builder(&self) -> Result<Builder> {
        let shape = self.shape()?;
        let program = self.program()?;
        let mut builder = Simulation::builder(program.clone())
            .size(shape.extents())
            .dtype(self.dtype)
            .backend(self.backend)
            .execution(self.execution)
            .cache(self.cache)
            .depth(self.depth.trim().parse::<Depth>()?);
        if !self.boundary.trim().is_empty() {
            builder = builder.boundary_text(self.boundary.trim().parse::<BoundaryText>()?);
        }
        // A formula that was changed may have lost a parameter, or compute it from others.
        let is_known = |name: &String| self.formulas.is_none() || program.settable(name).is_ok();
        for (name, value) in self.parameters.iter().filter(|(name, _)| is_known(name)) {
            builder = builder.param(name, *value);
        }
        if let Some(path) = &self.resume {
            return Ok(builder.resume(path));
        }
        for (field, source) in &self.inputs {
            let number = program.field(field)?;
            builder = match source {
                Source::Named(name) if name == "own" => builder.start(field, program.start(number).clone()),
                Source::Named(name) => builder.start(field, name.parse()?),
                Source::File(path) => builder.input(field, io::read(path)?),
                Source::Drawn(drawing) => builder.input(field, drawing.values(field, &shape, self.dtype)?),
            };
        }
        Ok(builder)
    }

    /// Returns the command that computes the same to a step, and writes the picture of a field to `output`.
    /// `model` is the model's name, or the file that has the formulas. `None` where an input has no name that the
    /// command knows.
    pub fn command(&self, model: &str, steps: u64, output: &str) -> Option<String> {
        let own = Setup::default();
        let mut line = format!("abide run {model} --steps {steps}");
        let mut option = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = write!(line, " --{name} {}", quoted(value));
        };
        if !self.size.trim().is_empty() {
            option("size", self.size.trim());
        }
        // The file of the formulas may say another type.
        if self.dtype != own.dtype || self.formulas.is_some() {
            option("dtype", self.dtype.name());
        }
        if !self.boundary.trim().is_empty() {
            option("boundary", self.boundary.trim());
        }
        for (name, value) in &self.parameters {
            option("param", &format!("{name}={value}"));
        }
        for (field, source) in &self.inputs {
            match source {
                Source::Named(name) => option("input", &format!("{field}={name}")),
                Source::File(path) => option("input", &format!("{field}={}", path.display())),
                Source::Drawn(_) => return None,
            }
        }
        if let Some(path) = &self.resume {
            option("resume", &path.display().to_string());
        }
        for (name, value, default) in [
            ("backend", self.backend.to_string(), own.backend.to_string()),
            ("execution", self.execution.to_string(), own.execution.to_string()),
            ("cache", self.cache.to_string(), own.cache.to_string()),
            ("depth", self.depth.trim().to_owned(), own.depth),
        ] {
            if value != default {
                option(name, &value);
            }
        }
        option("output", output);
        Some(line)
    }
}

/// Formats the boundaries of a checkpoint as [`BoundaryText`] reads them; those of single fields only where
/// they are not the program's own.
fn boundary_argument(head: &Head, axes: usize) -> String {
    let sides = (3 - axes..3).flat_map(|axis| {
        let name = abide::domain::axis_name(axis);
        let [low, high] = head.boundaries.0[axis];
        [format!("{name}-={low}"), format!("{name}+={high}")]
    });
    // A program that is not known is refused when it is started.
    let program = catalogue::find(&head.program).and_then(|entry| entry.program(axes)).ok();
    let own = |field: usize| program.as_ref().and_then(|program| program.kinds().get(field));
    let fields = head.fields.iter().zip(&head.sides).enumerate();
    let of_fields = fields
        .filter(|(field, (_, sides))| own(*field).is_none_or(|own| own.sides != **sides))
        .flat_map(|(_, (name, sides))| {
            let sides = sides.to_string();
            sides.split_terminator(',').map(|side| format!("{name}:{side}")).collect::<Vec<_>>()
        });
    sides.chain(of_fields).collect::<Vec<_>>().join(",")
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns the setup that an argument names: a model, a model file, a checkpoint, or a file with a field, which `heat` then
/// smooths.
pub fn named(argument: &str) -> Result<Setup> {
    let path = Path::new(argument);
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "npz" => Setup::of_checkpoint(path),
        _ if io::is_input(path) => {
            let loaded = io::read(path)?;
            let mut setup = Setup::model("heat");
            setup.dtype = loaded.values.dtype();
            setup.inputs = vec![("u".to_owned(), Source::File(path.to_owned()))];
            Ok(setup)
        }
        "toml" => Setup::of_formulas(io::model::contents(path)?, argument),
        "" => Ok(Setup::model(catalogue::find(argument)?.name)),
        _ => Err(Error::file(
            path,
            "the viewer opens no such file",
            "give a model, a model file (.toml), a checkpoint (.npz), or a .npy, .png or .jpg",
        )),
    }
}

/// Values as the text that the command uses for them.
mod words {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_cloverleaf() -> Setup {
        Setup { size: "6x9".to_owned(), backend: Choice::CPU, ..named("cloverleaf").unwrap() }
    }

    #[test]
    fn a_program_on_faces_and_nodes_goes_on_from_its_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.npz");
        // The boundary of one field is not the program's.
        let setup = Setup { boundary: "xvel0:y-=reflect,xvel0:y+=-reflect".to_owned(), ..small_cloverleaf() };
        let mut simulation = setup.builder().unwrap().build().unwrap();
        simulation.advance(3).unwrap();
        simulation.checkpoint(&path).unwrap();
        let resumed = Setup::of_checkpoint(&path).unwrap();
        assert!(resumed.boundary.contains("xvel0:y+=-reflect") && !resumed.boundary.contains("yvel0"));
        let mut other = resumed.builder().unwrap().backend(Choice::CPU).build().unwrap();
        assert_eq!(other.step(), 3);
        simulation.advance(2).unwrap();
        other.advance(2).unwrap();
        assert_eq!(other.scalars().unwrap(), simulation.scalars().unwrap());
        assert_eq!(other.field("xvel0").unwrap(), simulation.field("xvel0").unwrap());
    }

    #[test]
    fn files_of_fields_on_faces_and_nodes_are_no_size_of_the_domain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.npy");
        let mut setup = small_cloverleaf();
        let write = |extents: &[usize]| {
            let shape = Shape::new(extents).unwrap();
            let values = abide::Array::F32(vec![0.25; shape.cells()]);
            io::write(&path, &shape, &[("u", &values)], 0, None).unwrap().commit().unwrap();
        };
        write(&[6, 10]);
        setup.inputs = vec![("vol_flux_x".to_owned(), Source::File(path.clone()))];
        let mut simulation = setup.builder().unwrap().build().unwrap();
        assert_eq!(simulation.field("vol_flux_x").unwrap(), abide::Array::F32(vec![0.25; 60]));
        assert_eq!(Setup { size: String::new(), ..setup.clone() }.shape().unwrap().to_string(), "512x512");
        // As many values, in another shape.
        write(&[10, 6]);
        let error = setup.builder().unwrap().build().err().unwrap().to_string();
        assert!(error.contains("its size is 10x6, the field's is 6x10"), "{error}");
        write(&[6, 9]);
        setup.inputs[0].0 = "density0".to_owned();
        assert_eq!(Setup { size: String::new(), ..setup }.shape().unwrap().to_string(), "6x9");
    }

    #[test]
    fn a_setup_survives_being_remembered() {
        let mut setup = Setup::model("wave-medium").with("courant", 0.3);
        setup.inputs = vec![
            ("c".to_owned(), Source::Drawn(Drawing::TwoSlits)),
            ("u".to_owned(), Source::Named("point".to_owned())),
        ];
        setup.backend = Choice::CPU;
        setup.cache = CachePolicy::Mixed;
        let text = serde_json::to_string(&setup).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&text).unwrap(), setup);
    }

    #[test]
    fn the_command_says_what_differs_from_the_defaults_and_nothing_else() {
        let setup = Setup::model("gray-scott");
        assert_eq!(
            setup.command("gray-scott", 10, "v.png").unwrap(),
            "abide run gray-scott --steps 10 --output v.png"
        );
        let mut setup = setup.with("feed", 0.04);
        setup.size = "31x57".to_owned();
        setup.dtype = DType::F64;
        setup.backend = Choice::CPU;
        setup.inputs = vec![("v".to_owned(), Source::File("a b.npy".into()))];
        let line = setup.command("gray-scott", 7, "v.png").unwrap();
        let words =
            "--size 31x57 --dtype f64 --param feed=0.04 --input 'v=a b.npy' --backend cpu --output v.png";
        assert_eq!(line, format!("abide run gray-scott --steps 7 {words}"));
        setup.inputs = vec![("v".to_owned(), Source::Drawn(Drawing::TwoSlits))];
        assert_eq!(setup.command("gray-scott", 7, "v.png"), None);
    }

    #[test]
    fn a_model_file_is_opened_with_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decay.toml");
        let file = "axes = 2\n[fields]\nu = 'gaussian'\n[parameters]\nk = 0.5\n[[stages]]\nu = 'u - k*u'\n[run]\n\
                    steps = 3\nsize = '9x8'\ndtype = 'f64'\nparam = { k = 0.25 }\noutput = 'u.png'\nbackend = 'cpu'\n";
        std::fs::write(&path, file).unwrap();
        let setup = named(&path.display().to_string()).unwrap();
        assert_eq!((setup.model.as_str(), setup.size.as_str(), setup.dtype), ("decay", "9x8", DType::F64));
        let mut simulation = setup.builder().unwrap().build().unwrap();
        let before = simulation.field("u").unwrap().to_f64();
        simulation.advance(1).unwrap();
        let after = simulation.field("u").unwrap().to_f64();
        assert!(before.iter().zip(&after).all(|(a, b)| a - 0.25 * a == *b));
        let line = setup.command("decay.toml", 7, "u.png").unwrap();
        let words = "--size 9x8 --dtype f64 --param k=0.25 --backend cpu --output u.png";
        assert_eq!(line, format!("abide run decay.toml --steps 7 {words}"));
        let wrong = Setup { formulas: Some(file.replace("k*u", "k*w")), ..setup.clone() };
        let error = wrong.builder().err().unwrap().to_string();
        assert!(error.contains("formulas, line 7, column 12") && error.contains("`w`"), "{error}");
        // A parameter that the formulas lost is no fault.
        let lost = file
            .replace("[parameters]\nk = 0.5\n", "")
            .replace("k*u", "0.5*u")
            .replace("param = { k = 0.25 }\n", "");
        assert!(Setup { formulas: Some(lost), ..setup }.builder().unwrap().build().is_ok());
    }

    #[test]
    fn words_with_quotes_reach_the_command_whole() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_cannot_be_opened_is_told() {
        assert!(named("no-such-model").unwrap_err().to_string().contains("no stencil is named"));
        assert!(named("movie.mp4").unwrap_err().to_string().contains("give a model"));
        assert!(named("missing.npz").is_err());
    }
}
